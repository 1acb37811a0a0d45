/* SPDX-License-Identifier: Apache-2.0 */
/* A synthetic training program for the tests of the hot-swap runtime: small, fast, and wrong in the end when a single
 * byte of state was. Numbers are 64-bit integers whose sums wrap, so no sum depends on its order, and a job whose
 * data-parallel width shrank must still end with the same parameters. It links the library built with OPI_SWAP_HOOKS. */
#ifndef TESTS_SWAP_WORKER_H
#define TESTS_SWAP_WORKER_H
#include "swap/runtime.h"
#include <signal.h>

#define MAX_INJECT 64
#define MAX_VICTIMS 16
#define MAX_PIDS 256

/* What is done to a rank: when it passes a point for the so-manieth time, or some microseconds after the start. */
enum { DO_KILL = 1, DO_FREEZE, DO_CORRUPT_OWN, DO_CORRUPT_HELD, DO_FAULT, DO_REVOKE, DO_FAIL, DO_EXIT, DO_FENCE, DO_THAW };
typedef struct inject {
    int what, occurrence, seen, rank;
    long usec; /* >= 0: a timer instead of a point */
    char point[24];
    int victim[MAX_VICTIMS], victims; /* the first is `rank` */
} inject;

typedef struct options {
    int dp, tp, pp, policy, replicas, interval, steps, size, micro, ranks_per_node, nodes_per_rack;
    int checkpoint_interval, keep, opaque, user_comm, copy, evict, no_init, pace_us, slow_rank, slow_us, grow;
    long fsize, memory;
    double straggler, wait_s;
    const char *dir, *fallback, *log, *bad, *pids;
    uint64_t seed;
    inject inject[MAX_INJECT];
    int injects;
} options;

typedef struct model {
    int slots_known;
    opi_swap_view view;
    uint64_t n, begin, end;  /* parameters of a cell, and this row's range of them */
    uint64_t *parameters;    /* replicated */
    uint64_t *moments;       /* sharded, total and element given */
    uint64_t *own;           /* sharded, opaque: what it holds depends on the slot */
    uint64_t own_n;
    uint64_t *table;         /* derived */
    uint64_t *gradient;
    struct grown { uint64_t *list, *piece, list_n, piece_n, total, begin; } grown; /* other sizes in each step */
    struct small { int64_t steps; uint64_t random, position; } small;
} model;

typedef struct program {
    options opt;
    model m;
    opi_swap *swap;
    MPI_Comm user; /* a communicator of the program's own */
    int rank;      /* as the runtime numbers it */
    int log, recovered, fault_now;
} program;

extern program worker;

/* worker.c */
void worker_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* inject.c */
int inject_parse(options *o, int what, const char *text);
void inject_point(const char *point); /* also the program's own points */
void inject_open(void);
int inject_fails(const char *callback);
/* model.c */
int model_room(program *p);
void model_init(program *p);
void model_rebuild(program *p);
int32_t model_gradient(program *p, int64_t step);
int32_t model_update(program *p, int64_t step);
void model_final(program *p);
int32_t model_register(program *p);
int32_t model_grow(program *p, int64_t steps);
int32_t model_resize(program *p, const char *name, uint64_t bytes, void **data);
uint64_t mix(uint64_t x);
#endif
