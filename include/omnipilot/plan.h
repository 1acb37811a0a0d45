/* SPDX-License-Identifier: Apache-2.0 */
/** @file plan.h
 * Planning a training run that hot-swaps failed ranks (omnipilot/swap.h): months of failures are replayed for a cluster
 * and a policy, beside the same failures handled by restarting from checkpoints. Slots and replicas go where the
 * runtime puts them: the same code decides both. Part of libomnipilot; no MPI. The model is in docs/planning.md.
 */
#ifndef OMNIPILOT_PLAN_H
#define OMNIPILOT_PLAN_H

#include "omnipilot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** When spares run out; the numbers are those of OPI_SWAP_STOP, OPI_SWAP_SHRINK and OPI_SWAP_WAIT. */
#define OPI_PLAN_STOP 0   /**< write a checkpoint, stop, start again when enough nodes are repaired */
#define OPI_PLAN_SHRINK 1 /**< go on with fewer data-parallel rows, the global batch kept */
#define OPI_PLAN_WAIT 2   /**< the job waits, alive, for repaired nodes */

/** How failures follow each other; their mean rate is the same in all four. */
#define OPI_PLAN_EXPONENTIAL 0      /**< independently */
#define OPI_PLAN_WEIBULL 1          /**< times between failures of the system: Weibull, `burst` = shape (Schroeder and
                                         Gibson, DSN 2006: 0.7 to 0.8) */
#define OPI_PLAN_HYPEREXPONENTIAL 2 /**< the same: two phases with balanced means, `burst` = coefficient of variation */
#define OPI_PLAN_CLUSTERED 3        /**< a failure brings others with it (Neyman and Scott's cluster process; near in
                                         space: Gallet et al., Euro-Par 2010), `burst` = mean failures of a cluster */

#define OPI_PLAN_PHASES 8    /**< of a recovery, in the order of OPI_SWAP_DETECTED … OPI_SWAP_RESUMED */
#define OPI_PLAN_RESTORED 6  /**< the phase whose time follows from bytes when it is not stated */

/** What is planned. 0 = the default in brackets; where 0 would mean something, a negative number states none or
 * never. */
typedef struct opi_plan_options {
    uint32_t struct_size; /**< sizeof(opi_plan_options) */
    int32_t gpus;         /**< that train, one process each; a multiple of tp * pp. Required, 2 to 131072 */
    int32_t tp, pp;       /**< widths [1, 1]; the data-parallel width is what is left */
    int32_t per_node;     /**< GPUs of a node [8] */
    int32_t nodes_per_rack; /**< nodes that one switch takes with it [4] */
    int32_t spares;       /**< idle nodes beside those that train [0] */
    int32_t replicas;     /**< copies of unique state on peers [1] */
    int32_t policy;       /**< OPI_PLAN_STOP … OPI_PLAN_WAIT */
    int32_t arrivals;     /**< OPI_PLAN_EXPONENTIAL … OPI_PLAN_CLUSTERED */
    int32_t replays;      /**< independent replays of the same length [10]; at least 2 */
    int32_t sweep;        /**< 1: also try other numbers of spares */
    int32_t snapshot_interval; /**< steps between snapshots [1] */
    int32_t reserved;
    uint64_t seed;        /**< the same seed, the same failures */
    double days;          /**< length of a replay [30] */

    double process_mtbf_h; /**< hours between failures of one process that leave its node healthy [340000] */
    double node_mtbf_h;    /**< hours between failures of one node [8300] */
    double rack_mtbf_h;    /**< hours between failures of one rack or switch [38000] */
    double burst;          /**< see OPI_PLAN_WEIBULL …; [0.7, 3, 3] */
    double burst_window_s; /**< CLUSTERED: mean delay of a follower [600] */
    double burst_near;     /**< CLUSTERED: share of followers in the same rack [0.5] */
    double process_repair_s; /**< until a new process is there on the same node [300] */
    double node_repair_h;  /**< mean; log-normal [12] */
    double rack_repair_h;  /**< the same [4] */
    double repair_cv;      /**< coefficient of variation of repair times [1]; negative: always the mean */

    double step_s;         /**< seconds of a training step at full width, snapshots not counted [10] */
    double params_b;       /**< billions of parameters, from which the two sizes follow [70] */
    double state_gb;       /**< GB of one process's whole state [2 bytes a parameter of its TP and PP share + unique] */
    double unique_gb;      /**< GB that only it has, optimizer shards [12 bytes a parameter, over all GPUs] */
    double snapshot_gbs;   /**< GB/s from a device to host memory [20] */
    double network_gbs;    /**< GB/s of one process to a peer [20] */
    double overhead;       /**< what snapshots add to a step beyond waiting for them, as a share of it [0] */
    double phase_s[OPI_PLAN_PHASES]; /**< seconds of each phase of a recovery; all 0: [10 1 2 0.1 0.1 10 – 1]; phase
                              OPI_PLAN_RESTORED 0: the state over the network */

    double checkpoint_interval_s; /**< between persistent checkpoints of the hot-swap run [3600] */
    double checkpoint_s;          /**< writing one [60] */
    double checkpoint_stall_s;    /**< how long writing one stops the run that restarts from them [checkpoint_s] */
    double restart_interval_s;    /**< of the run that restarts [Young and Daly's] */
    double restart_s;             /**< from the failure to the first step of a job started again [600] */
    double wait_h;                /**< OPI_PLAN_WAIT: then stop [no limit] */
    double idle_cost;             /**< of an idle node, as a share of what a working one is worth [1] */
} opi_plan_options;

/** What one way of running gave: means over the replays. The shares of time and goodput sum to 1. */
typedef struct opi_plan_result {
    uint32_t struct_size;
    int32_t replays;
    double goodput;        /**< share of the time that went into steps that lasted, at full width */
    double goodput_median, goodput_low, goodput_high; /**< over the replays: median, worst and best */
    double goodput_se;     /**< standard error of the mean */
    double redone;         /**< share: computing steps again */
    double stalled;        /**< share: waiting for snapshots or checkpoints */
    double narrow;         /**< share: lost to a smaller data-parallel width */
    double recovering;     /**< share: recoveries by swap */
    double restarting;     /**< share: jobs being started */
    double waiting;        /**< share: too few nodes to go on */
    double failures;       /**< that reached the job, in one replay */
    double swaps;          /**< recoveries by swap or smaller width */
    double fallbacks;      /**< to the persistent checkpoint, because a slot and its copies were lost */
    double fallback_share; /**< of the replays with at least one */
    double stops;          /**< stopped and started again because spares had run out */
    double shrinks;        /**< times the data-parallel width became smaller */
    double restarts;       /**< jobs started again, for whatever reason */
    double steps;          /**< that lasted */
    double steps_redone;   /**< computed and lost */
    double nodes_down;     /**< in repair, mean over time */
    double checkpoint_interval_s; /**< that was used */
} opi_plan_result;

/** What formulas say of the same run, for exponential failures and enough spares (docs/planning.md). */
typedef struct opi_plan_closed {
    uint32_t struct_size;
    int32_t applies;         /**< 1: exponential, and the number of spares covers the nodes in repair */
    double job_mtbf_s;       /**< between failures that reach working GPUs */
    double young_s;          /**< Young's checkpoint interval */
    double daly_s;           /**< Daly's, of higher order */
    double restart_goodput;  /**< Daly's complete model at the interval used */
    double swap_goodput;     /**< the same renewal argument for snapshots and swaps */
    double nodes_down;       /**< expected in repair */
    double fallbacks;        /**< expected in one replay: a slot's holders die in its vulnerable window */
    double fallback_probability; /**< of at least one in a replay */
    double window_s;         /**< from a failure until every copy exists again */
} opi_plan_closed;

/** One line of the sweep over spares. */
typedef struct opi_plan_spares {
    uint32_t struct_size;
    int32_t spares;
    double goodput, goodput_se, waiting, fallbacks;
    double gained; /**< working nodes gained for each spare node more than in the line before; NaN in the first */
    double net;    /**< working nodes' worth of goodput, less what the idle ones cost */
} opi_plan_spares;

/** What a run's event log said. */
typedef struct opi_plan_measured {
    uint32_t struct_size;
    int32_t reserved;
    uint64_t lines, recoveries;       /**< read; kind "recovered" */
    double phase_s[OPI_PLAN_PHASES];  /**< medians */
    double redone;                    /**< mean steps computed again in a recovery */
    uint64_t snapshots, snapshot_bytes, replica_bytes;
    double wait_s;                    /**< spent waiting for snapshots */
} opi_plan_measured;

#define OPI_PLAN_SWAP 0
#define OPI_PLAN_RESTART 1

/** A finished plan. Owner: the caller, opi_plan_free. Immutable. */
typedef struct opi_plan opi_plan;

/** Replays. Errors: OPI_E_INVALID; OPI_E_RANGE (a number and its limit; more failures than can be replayed);
 * OPI_E_INFEASIBLE (gpus is no multiple of tp * pp); OPI_E_NOMEM. Threads: any number of plans at once. */
OPI_API int32_t opi_plan_run(opi_ctx *ctx, const opi_plan_options *options, opi_plan **out, opi_error *err);
OPI_API void opi_plan_free(opi_plan *plan);
/** The options with every default filled in. */
OPI_API int32_t opi_plan_get_options(const opi_plan *plan, opi_plan_options *out, opi_error *err);
/** `way` is OPI_PLAN_SWAP or OPI_PLAN_RESTART. */
OPI_API int32_t opi_plan_get_result(const opi_plan *plan, int32_t way, opi_plan_result *out, opi_error *err);
OPI_API int32_t opi_plan_get_closed(const opi_plan *plan, opi_plan_closed *out, opi_error *err);
/** Lines of the sweep, by rising number of spares; 0 without one. */
OPI_API size_t opi_plan_spares_count(const opi_plan *plan);
OPI_API int32_t opi_plan_spares_at(const opi_plan *plan, size_t index, opi_plan_spares *out, opi_error *err);
/** Spare nodes worth paying for: those of the line with the best net; -1 without a sweep. */
OPI_API int32_t opi_plan_worth(const opi_plan *plan);
/** Everything as a versioned JSON document (docs/json.md, "plan"). */
OPI_API int32_t opi_plan_json(const opi_plan *plan, opi_text **out, opi_error *err);

/** Reads the JSON lines of a run's event log (opi_swap_options.event_log): the phases of its recoveries become
 * inout->phase_s. Keys and kinds it does not know are skipped. `measured` is nullable. Errors: OPI_E_FORMAT (index = the
 * line, first = 1, also in the message), OPI_E_NODATA (no recovery in it), OPI_E_NOMEM. */
OPI_API int32_t opi_plan_from_run(opi_ctx *ctx, const char *bytes, size_t size, opi_plan_options *inout,
                                  opi_plan_measured *measured, opi_error *err);

/** One comparison of the simulator with a formula. */
typedef struct opi_plan_check {
    uint32_t struct_size;
    int32_t passed;    /**< |simulated - formula| <= tolerance */
    double simulated, formula;
    double tolerance;  /**< four standard errors and what the formula leaves out */
    char name[96];     /**< what is compared */
} opi_plan_check;
OPI_API size_t opi_plan_check_count(void);
/** Runs check `index`. Errors: OPI_E_RANGE, OPI_E_NOMEM. A check that does not pass is no error. */
OPI_API int32_t opi_plan_check_at(opi_ctx *ctx, size_t index, uint64_t seed, opi_plan_check *out, opi_error *err);

#ifdef __cplusplus
}
#endif
#endif
