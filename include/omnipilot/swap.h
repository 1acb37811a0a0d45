/* SPDX-License-Identifier: Apache-2.0 */
/** @file swap.h
 * The hot-swap runtime for LLM training (libomnipilot-swap): failed ranks are replaced by spare ranks while the job
 * lives. In-memory snapshots are taken off the critical path, what cannot be rebuilt is replicated on peers, and the
 * state is restored by the identity of the logical shard (DeadPool, arXiv 2607.01646). MPI with ULFM underneath.
 *
 * A training loop:
 *
 *     opi_swap_create(NULL, &options, &swap, &err);              // every rank, spares too
 *     opi_swap_register(swap, &parameters, &err);                // one call a state
 *     while ((more = opi_swap_step(swap, &step, &err)) > 0) {    // spares sleep in here
 *         int32_t fault = forward_backward(model, step);         // MPI's return code, 0 = no error
 *         if (!fault && !(fault = opi_swap_update(swap, &err)))  // before the optimizer changes the state
 *             fault = optimizer(model, step);
 *         opi_swap_commit(swap, fault, busy, &err);
 *     }
 *     opi_swap_destroy(swap);
 *
 * Threads: one thread makes all calls of one opi_swap (MPI_THREAD_FUNNELED or SERIALIZED). The library has a worker
 * thread of its own that copies and writes files; it makes no MPI call.
 *
 * MPI handles cross this interface as Fortran integers (MPI_Comm_c2f, MPI_Comm_f2c), so it does not depend on an MPI.
 */
#ifndef OMNIPILOT_SWAP_H
#define OMNIPILOT_SWAP_H

#include "omnipilot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The runtime of this process; one for each job. */
typedef struct opi_swap opi_swap;
typedef struct opi_swap_event opi_swap_event;

/* ---- slots ------------------------------------------------------------------------------------------------------ */

#define OPI_SWAP_SPARE 0  /**< holds no slot: sleeps in opi_swap_step until it is needed */
#define OPI_SWAP_ACTIVE 1 /**< holds a logical slot */

/** What this process is now. Logical slots are numbered tensor-parallel index first, then pipeline, then data-parallel:
 * slot = (dp * pp_width + pp) * tp_width + tp. They are not MPI ranks: a slot outlives the rank that holds it. */
typedef struct opi_swap_view {
    uint32_t struct_size; /**< sizeof(opi_swap_view) */
    int32_t role;         /**< OPI_SWAP_SPARE or OPI_SWAP_ACTIVE */
    int32_t slot;         /**< -1 for a spare, as are dp, tp and pp */
    int32_t dp, tp, pp;
    int32_t dp_width, tp_width, pp_width; /**< dp_width may shrink (OPI_SWAP_SHRINK) */
    int32_t rank;         /**< in the world communicator of creation; never changes */
    int32_t epoch;        /**< recoveries so far, each of them on all ranks */
    int32_t spares;       /**< spares left */
    int32_t comm_active;  /**< Fortran handle of all slots' communicator, rank = slot; MPI_COMM_NULL for a spare */
    int32_t comm_dp;      /**< slots that differ only in dp, rank = dp */
    int32_t comm_tp;      /**< slots that differ only in tp, rank = tp */
    int32_t comm_pp;      /**< slots that differ only in pp, rank = pp */
} opi_swap_view;

/* ---- state ------------------------------------------------------------------------------------------------------ */

#define OPI_SWAP_REPLICATED 1 /**< every data-parallel peer has the same: copied from a peer after a loss */
#define OPI_SWAP_SHARDED 2    /**< only this slot has it: kept on peers in memory */
#define OPI_SWAP_DERIVED 3    /**< rebuilt by the `rebuild` callback, never copied */
#define OPI_SWAP_SMALL 4      /**< unique and small (step number, random state, data position): kept as SHARDED is */

/** One piece of training state. The same names and kinds are registered on every rank, spares included, before the
 * first opi_swap_step or in the `assign` callback. With a data-parallel width of 1 nobody else has replicated state:
 * it is then kept as sharded state. */
typedef struct opi_swap_state {
    uint32_t struct_size; /**< sizeof(opi_swap_state) */
    int32_t kind;         /**< OPI_SWAP_REPLICATED … OPI_SWAP_SMALL */
    const char *name;     /**< unique, 1 to 47 bytes; copied */
    void *data;           /**< this process's memory; the caller's, must stay until it is registered elsewhere */
    uint64_t size;        /**< bytes */
    /** SHARDED state that can be divided anew when the data-parallel width changes: `total` elements of `element` bytes
     * are spread over the data-parallel slots as opi_swap_range says. 0 and 0: opaque, the width cannot change. */
    uint64_t total;
    uint64_t element;
} opi_swap_state;

/** Elements [*begin, *end) of `total` that part `index` of `parts` holds: even, the first ones take the rest. */
OPI_API void opi_swap_range(uint64_t total, int32_t parts, int32_t index, uint64_t *begin, uint64_t *end);

/* ---- options ---------------------------------------------------------------------------------------------------- */

/** When spares run out. */
#define OPI_SWAP_STOP 0   /**< write a persistent checkpoint (where a directory is given) and stop cleanly */
#define OPI_SWAP_SHRINK 1 /**< go on with fewer data-parallel rows; the caller keeps the global batch. Below 1: stop */
#define OPI_SWAP_WAIT 2   /**< start new processes in place of the lost (MPI_Comm_spawn), wait up to wait_s for them */

#define OPI_SWAP_COPY_SAVE 0    /**< from the program's memory into a snapshot; on the worker thread */
#define OPI_SWAP_COPY_RESTORE 1 /**< from a snapshot into the program's memory; on the caller's thread */

/** What the program plugs in; each may be NULL. They return 0, anything else is a failure: of `assign`, `init` and
 * `rebuild` on all ranks alike (the recovery is tried once more, then OPI_E_INVALID); of `copy` of that snapshot. */
typedef struct opi_swap_callbacks {
    void *user;
    /** This process holds a slot now, or the widths have changed: make room and register what has changed. Runs before
     * state is restored or made. No communication in here. */
    int32_t (*assign)(void *user, const opi_swap_view *view);
    /** No state exists anywhere (step 0): make it for this slot. */
    int32_t (*init)(void *user, const opi_swap_view *view);
    /** Communicators are new and the state is restored: rebuild derived state, NCCL or Gloo groups, own communicators.
     * All active ranks are in here together, so it may communicate. */
    int32_t (*rebuild)(void *user, const opi_swap_view *view);
    /** Moves bytes between the program's memory (of the state `name`) and host memory: for devices. NULL: memcpy. */
    int32_t (*copy)(void *user, int32_t direction, const char *name, void *program, void *host, uint64_t bytes);
    /** Each event, on the caller's thread. */
    void (*event)(void *user, const opi_swap_event *event);
    /** State that is being restored has another size than is registered here, because sizes changed between steps: make
     * room for `bytes` and set *data. NULL: then sizes must be those of the step that is restored. */
    int32_t (*resize)(void *user, const char *name, uint64_t bytes, void **data);
} opi_swap_callbacks;

typedef struct opi_swap_options {
    uint32_t struct_size; /**< sizeof(opi_swap_options) */
    int32_t world;        /**< Fortran handle of a communicator of all ranks, spares included; duplicated. Required */
    int32_t dp, tp, pp;   /**< widths; 0 = 1. The first dp * tp * pp ranks become active, the others spares */
    int32_t policy;       /**< OPI_SWAP_STOP, OPI_SWAP_SHRINK or OPI_SWAP_WAIT */
    int64_t steps;        /**< opi_swap_step ends after step steps - 1. Required, >= 1 */
    int32_t replicas;     /**< copies of sharded state on peers; 0 = 1, -1 = none */
    int32_t interval;     /**< a snapshot every so many steps; 0 = 1 */
    const char *node;     /**< failure domain of this rank; NULL = the host's name */
    const char *rack;     /**< NULL = the node */
    const char *checkpoint_dir;          /**< persistent checkpoints; NULL = none */
    const char *checkpoint_fallback_dir; /**< where they go when checkpoint_dir fails; NULL = they are only reported */
    int64_t checkpoint_interval;         /**< in steps; 0 = only on demand and before a stop */
    int32_t checkpoint_keep;             /**< complete ones kept; 0 = 2 */
    int32_t evict;        /**< 1: a process of this host that was declared dead and still exists is killed (SIGKILL) */
    double straggler;     /**< a slot busy for this multiple of the median is reported; 0 = off; see opi_swap_commit */
    double wait_s;        /**< OPI_SWAP_WAIT: how long; 0 = 60 */
    uint64_t memory_limit; /**< bytes all buffers of this rank may take; 0 = the memory of this machine */
    const char *event_log; /**< file that gets each event as a JSON line (appended; %r = the rank); NULL = none */
    const char *program;   /**< OPI_SWAP_WAIT: the program new processes run; NULL = /proc/self/exe */
    char *const *arguments; /**< its arguments without the program, NULL-terminated */
    opi_swap_callbacks callbacks;
} opi_swap_options;

/* ---- the loop --------------------------------------------------------------------------------------------------- */

/** Whether the MPI this library runs on can do it: OPI_OK, or OPI_E_UNSUPPORTED with what is missing (no ULFM, one
 * known to crash survivors, fault tolerance not switched on by the launcher, thread level too low). Any time after
 * MPI_Init_thread. */
OPI_API int32_t opi_swap_check_mpi(opi_error *err);

/** Ignores SIGPIPE in this process. Open MPI's TCP transport kills survivors by it when a peer dies; call this early
 * unless the program handles the signal itself. */
OPI_API void opi_swap_ignore_sigpipe(void);

/** Collective over options->world, spares included; a process started by OPI_SWAP_WAIT joins the others here. `memory`
 * NULL = the C library's allocator, no log. Owner: the caller, opi_swap_destroy. Errors: opi_swap_check_mpi's;
 * OPI_E_RANGE (more slots than ranks, a width out of range); OPI_E_INVALID (options differ between ranks). */
OPI_API int32_t opi_swap_create(const opi_ctx_options *memory, const opi_swap_options *options, opi_swap **out,
                                opi_error *err);

/** Registers a state, or moves or resizes one that is registered (the same name and kind; from opi_swap_commit to the
 * next opi_swap_update it must not move). Errors: OPI_E_INVALID (registered twice before the first step, another kind,
 * a size that is not that of the range); OPI_E_NOMEM (the buffers do not fit; the message has the bytes needed). */
OPI_API int32_t opi_swap_register(opi_swap *swap, const opi_swap_state *state, opi_error *err);

/** 1: compute step *step now; 0: training is over (all steps done, or stopped: see opi_swap_counters); negative: error.
 * Recovers from failures first; spares sleep in here. The first call is collective over all ranks: it compares the
 * registered states, loads the newest usable persistent checkpoint or calls `init`, and takes the first snapshot.
 * Errors: OPI_E_FENCED (this rank was declared dead and replaced: leave); OPI_E_INVALID (states differ between ranks, a
 * step not committed, a callback fails); OPI_E_LOST (state is lost and no checkpoint has it and there is no `init`). */
OPI_API int32_t opi_swap_step(opi_swap *swap, int64_t *step, opi_error *err);

/** To be called before the optimizer changes registered state: waits until the running copy has left it (the wait is
 * counted). 1: a failure is known, do not change the state, commit with a fault. Negative: error. */
OPI_API int32_t opi_swap_update(opi_swap *swap, opi_error *err);

/** Ends a step. `fault` 0: the state is that after the step and may be saved; else (an MPI error code, or any other
 * value) the step failed here, and the next opi_swap_step recovers. `busy_s`: seconds this rank computed in the step,
 * without waiting for others; <= 0 = unknown. */
OPI_API int32_t opi_swap_commit(opi_swap *swap, int32_t fault, double busy_s, opi_error *err);

/** Moves replica traffic along and looks for failures; cheap, to be called when the program has a moment (between
 * layers, while a device computes). 1: a failure is known: the step cannot finish, commit it with a fault. */
OPI_API int32_t opi_swap_progress(opi_swap *swap);

/** Waits for the program's own work while it moves replica traffic along: polls `done` until it returns non-zero,
 * sleeping between. 1: a failure is known, and it did not wait any longer: work that waits for a dead peer never ends.
 * The work may still run: stop it (ncclCommAbort, say) before its memory is used again. */
OPI_API int32_t opi_swap_idle(opi_swap *swap, int32_t (*done)(void *user), void *user);

/** A communicator of the program's own (Fortran handle) that recovery must revoke, or ranks blocked in it never come
 * back. Forgotten after each recovery: register the new one in `rebuild`. */
OPI_API int32_t opi_swap_watch(opi_swap *swap, int32_t comm, opi_error *err);

/** Asks for a persistent checkpoint of the next complete snapshot; the same call on all active ranks in one step. */
OPI_API int32_t opi_swap_checkpoint(opi_swap *swap, opi_error *err);

/** This process's present role, slot and communicators. */
OPI_API int32_t opi_swap_get_view(const opi_swap *swap, opi_swap_view *view, opi_error *err);

/** Frees everything; NULL is allowed. Waits for files that are being written. Before MPI_Finalize. Before the last step
 * it takes the job down: the others cannot go on without a rank that lives, and their opi_swap_step says so. */
OPI_API void opi_swap_destroy(opi_swap *swap);

/* ---- events and counters ---------------------------------------------------------------------------------------- */

#define OPI_SWAP_PROCESS_LOST 1   /**< ranks died, not all of a node */
#define OPI_SWAP_NODE_LOST 2      /**< all ranks of a node died */
#define OPI_SWAP_SPARE_LOST 3     /**< only spares died */
#define OPI_SWAP_COMM_FAULT 4     /**< communication failed, nobody died: rebuilt without a swap */
#define OPI_SWAP_COPIES_LOST 5    /**< a slot and all its replicas died: falls back to a checkpoint, or to step 0 */
#define OPI_SWAP_CORRUPTION 6     /**< a snapshot or replica failed its checksum and was not used */
#define OPI_SWAP_STORAGE_FAULT 7  /**< a persistent checkpoint failed; training goes on */
#define OPI_SWAP_STRAGGLER 8      /**< a slot is slower than the others */
#define OPI_SWAP_FENCED 9         /**< this rank was declared dead and replaced */
#define OPI_SWAP_RECOVERED 10     /**< a recovery is complete: phases has its times */
#define OPI_SWAP_SHRUNK 11        /**< the data-parallel width is smaller now */
#define OPI_SWAP_JOINED 12        /**< new processes joined */
#define OPI_SWAP_CHECKPOINTED 13  /**< a persistent checkpoint is complete */
#define OPI_SWAP_CHECKPOINT_SKIPPED 14 /**< a persistent checkpoint could not be used; the message says why */
#define OPI_SWAP_STOPPED 15       /**< stopped by policy */
#define OPI_SWAP_LOADED 16        /**< training starts from a persistent checkpoint */
#define OPI_SWAP_SNAPSHOT_FAILED 17 /**< the copy callback failed: that snapshot does not count */

/** The phases of a recovery, in order. */
#define OPI_SWAP_DETECTED 0   /**< from the last successful call to the first sign of the failure */
#define OPI_SWAP_REVOKED 1    /**< communicators revoked, everyone on the way */
#define OPI_SWAP_AGREED 2     /**< shrunk and agreed who is alive */
#define OPI_SWAP_CLASSIFIED 3 /**< what was lost, what is held by whom */
#define OPI_SWAP_ASSIGNED 4   /**< slots given to spares, the step to go back to chosen */
#define OPI_SWAP_REBUILT 5    /**< communicators rebuilt */
#define OPI_SWAP_RESTORED 6   /**< state restored and verified */
#define OPI_SWAP_RESUMED 7    /**< callbacks done, all ranks agreed to go on */
#define OPI_SWAP_PHASES 8

struct opi_swap_event {
    uint32_t struct_size;
    int32_t kind;          /**< OPI_SWAP_PROCESS_LOST … */
    int32_t epoch;
    int32_t rank;          /**< rank concerned, -1 when none or several (then see message) */
    int32_t slot;          /**< slot concerned, -1 when none */
    int32_t lost;          /**< RECOVERED and the losses: how many ranks died */
    int64_t step;          /**< step the event is about; RECOVERED: the step resumed at */
    int64_t redone;        /**< RECOVERED: completed steps that are computed again */
    double time_s;         /**< CLOCK_MONOTONIC */
    double phase_s[OPI_SWAP_PHASES]; /**< RECOVERED: seconds of each phase on this rank */
    const char *message;   /**< one line; valid during the callback */
};

typedef struct opi_swap_counters {
    uint32_t struct_size; /**< sizeof(opi_swap_counters) */
    int32_t stopped;      /**< 1: ended by policy before the last step */
    uint64_t snapshots;          /**< complete on all ranks */
    uint64_t snapshot_bytes;     /**< copied on this rank */
    uint64_t replica_bytes;      /**< sent to peers by this rank */
    uint64_t buffer_bytes;       /**< memory held now */
    uint64_t waits;              /**< calls of opi_swap_update and opi_swap_commit that had to wait */
    double wait_s;               /**< and for how long */
    uint64_t recoveries;
    uint64_t steps_redone;       /**< completed steps computed again */
    uint64_t by_kind[32];        /**< events by OPI_SWAP_ kind */
    double phase_s[OPI_SWAP_PHASES]; /**< summed over recoveries, on this rank */
    uint64_t checkpoints;        /**< persistent ones complete */
    uint64_t checkpoint_bytes;   /**< written by this rank */
} opi_swap_counters;

OPI_API int32_t opi_swap_get_counters(const opi_swap *swap, opi_swap_counters *counters, opi_error *err);
/** "process-lost" …; static storage; "?" for an unknown kind. */
OPI_API const char *opi_swap_event_name(int32_t kind);
/** "detected" …; static storage; "?" for an unknown phase. */
OPI_API const char *opi_swap_phase_name(int32_t phase);

#ifdef __cplusplus
}
#endif
#endif
