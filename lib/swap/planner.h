/* SPDX-License-Identifier: Apache-2.0 */
/* What the planner's files share. plan_setup fills in numbers, plan_arrivals makes failures, plan_world holds who has
 * which slot and asks slots.c and placement.c, plan_sim runs time, planner.c repeats and sweeps. */
#ifndef OPI_SWAP_PLANNER_H
#define OPI_SWAP_PLANNER_H
#include "base/rng.h"
#include "omnipilot/plan.h"
#include "swap/placement.h"

#define OPI__PLAN_MOST_GPUS 131072
#define OPI__PLAN_MOST_FAILURES 1e6 /* of one replay */

#define OPI__PLAN_PROCESS 0
#define OPI__PLAN_NODE 1
#define OPI__PLAN_RACK 2

/* Options with every number in place, and what follows from them. Seconds throughout. */
typedef struct opi__plan_setup {
    opi_plan_options o;
    opi__grid grid;
    int32_t slots, nodes;   /* nodes that train */
    int32_t trace_nodes;    /* failures are drawn for so many nodes, so that sweeps meet the same ones */
    double horizon;
    double lambda[3];       /* of one process, node, rack */
    double step;            /* a step of the hot-swap run at full width, snapshots included */
    double latency;         /* from the end of a step until its snapshot counts */
    double recover;         /* a swap */
    double saved_interval;  /* work between checkpoints of the run that restarts */
} opi__plan_setup;
int32_t opi__plan_setup_make(const opi_plan_options *options, opi__plan_setup *out, opi_error *err);
int32_t opi__plan_racks(const opi__plan_setup *s, int32_t nodes);
/* Failures a second that reach working GPUs (all nodes up), and those of a given number of nodes. */
double opi__plan_job_rate(const opi__plan_setup *s);
double opi__plan_rate(const opi__plan_setup *s, int32_t nodes);
/* Spare nodes beyond which nothing changes: those in repair at nearly all times, and a rack. */
int32_t opi__plan_most_spares(const opi__plan_setup *s);

/* ---- failures ---- */
typedef struct opi__arrival {
    double at;      /* seconds */
    int32_t kind;   /* OPI__PLAN_PROCESS … */
    int32_t index;  /* of the GPU, node or rack */
    double normal;  /* standard normal deviate of its repair time */
} opi__arrival;
typedef struct opi__arrivals {
    opi_ctx *ctx;
    const opi__plan_setup *s;
    opi__rng rng;
    double now, rate;
    opi__arrival *heap; /* followers to come */
    size_t count, cap;
} opi__arrivals;
void opi__arrivals_start(opi__arrivals *a, opi_ctx *ctx, const opi__plan_setup *s, uint64_t seed);
int32_t opi__arrivals_next(opi__arrivals *a, opi__arrival *out, opi_error *err);
void opi__arrivals_end(opi__arrivals *a);
double opi__plan_repair(const opi__plan_setup *s, int32_t kind, double normal);

/* ---- the cluster ---- */
typedef struct opi__repair {
    double at;
    int32_t index, is_node;
} opi__repair;

#define OPI__GPU_SPARE (-1)
#define OPI__GPU_DOWN (-2)
#define OPI__DEAD_OWNER 1u /* whoever held the slot at the last complete placement is gone, its successor not restored */
#define OPI__DEAD_STORE 2u /* so are the copies it kept */

typedef struct opi__world {
    opi_ctx *ctx;
    const opi__plan_setup *s;
    int32_t nodes, gpus, replicas;
    opi__grid grid;              /* dp may be smaller than at the start */
    int32_t slots, row, live;    /* live: GPUs that are up */
    int32_t *gpu_slot, *owner;   /* slot of each GPU; GPU of each slot or -1 */
    int32_t *spare, n_spare;     /* GPUs, rising */
    int32_t *lost, n_lost;       /* slots without an owner */
    int32_t *node_hit, hit;      /* last failure that hit the node */
    uint8_t *node_down;
    int32_t down_nodes;
    opi__repair *heap;
    size_t n_heap, cap_heap;
    /* copies */
    uint8_t *dead;               /* OPI__DEAD_… of each slot */
    int32_t *touched, n_touched; /* slots with dead bits */
    int32_t *placed, *holder, *scratch; /* GPU of each slot when copies were last placed; where they went */
    opi__domain *domain;
    int placed_known;            /* holder belongs to placed */
    int32_t losses, worst;       /* failures since then, the widest kind of them */
    /* room for opi__assign */
    opi__member *member;
    uint8_t *shy;
    int32_t *member_gpu, *result, *from_row, *order;
} opi__world;
int32_t opi__world_make(opi__world *w, opi_ctx *ctx, const opi__plan_setup *s, int32_t spares, int32_t replicas,
                        opi_error *err);
void opi__world_free(opi__world *w);
/* A failure: processes die, their slots are lost, repairs are booked. *working, *idle: how many of each died. */
int32_t opi__world_fail(opi__world *w, const opi__arrival *a, int32_t *working, int32_t *idle, opi_error *err);
/* When the next repair ends; INFINITY without one. */
double opi__world_next_repair(const opi__world *w);
void opi__world_repair(opi__world *w);
/* opi__assign for the rows with lost slots (the answer of the whole grid: other rows do not matter to it). 1: every
 * slot has an owner; 0: too few spares, nothing was changed. */
int opi__world_assign(opi__world *w);
/* opi__assign_fewer. Returns the new data-parallel width, 0 when there is none. */
int32_t opi__world_shrink(opi__world *w);
/* The widest grid that the live GPUs fill, at most the full one; every slot owned. 1, or 0 when it is narrower than
 * `least` rows. */
int opi__world_refill(opi__world *w, int32_t least);
int32_t opi__world_rows(const opi__world *w); /* rows that the live GPUs could fill */
/* Whether a slot's state exists nowhere any more, by opi__place on the domains of the last complete placement. */
int opi__world_copies_lost(opi__world *w);
void opi__world_restored(opi__world *w); /* the successors hold their state */
void opi__world_replicated(opi__world *w); /* and all copies exist again: places may be chosen anew */

/* ---- time ---- */
typedef struct opi__tally {
    double useful, redone, stalled, narrow, recovering, restarting, waiting; /* seconds */
    double failures, swaps, fallbacks, stops, shrinks, restarts, steps, steps_redone, node_seconds_down;
} opi__tally;
int32_t opi__plan_simulate(opi_ctx *ctx, const opi__plan_setup *s, int32_t way, int32_t spares, uint64_t seed,
                           opi__tally *out, opi_error *err);

/* ---- answers ---- */
struct opi_plan {
    opi_ctx *ctx;
    opi__plan_setup setup;
    opi_plan_result result[2];
    opi_plan_closed closed;
    opi_plan_spares *spares;
    size_t n_spares;
    int32_t worth;
};
int32_t opi__plan_repeat(opi_ctx *ctx, const opi__plan_setup *s, int32_t way, int32_t spares, opi_plan_result *out,
                         opi_error *err);
int32_t opi__plan_close(opi_ctx *ctx, const opi__plan_setup *s, opi_plan_closed *out, opi_error *err);
double opi__daly_interval(double stall, double mtbf);
/* Share of useful time with segments of `work` seconds that end in `stall` seconds of saving, failures at `rate` a
 * second and `restart` seconds after each, in which failures may fall too (Daly 2006, the complete model). */
double opi__daly_goodput(double work, double stall, double restart, double rate);
#endif
