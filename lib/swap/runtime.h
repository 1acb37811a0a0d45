/* SPDX-License-Identifier: Apache-2.0 */
/* What the MPI files of the runtime share: the state of one process. Each group of fields is written by the file that
 * its comment names.
 *
 * Communicators: `world` (all processes ever; never revoked, never freed; point-to-point control messages, and what is
 * shrunk), `now` (the living ones as last agreed), and those of the active slots, which are made anew by every recovery
 * and revoked by the next. */
#ifndef OPI_SWAP_RUNTIME_H
#define OPI_SWAP_RUNTIME_H
#include "base/ctx.h"
#include "swap/blob.h"
#include "swap/engine.h"
#include "swap/events.h"
#include "swap/placement.h"
#include "swap/store.h"
#include "swap/worker.h"

#define OPI__SNAPS 3       /* ping and pong, and one more while a file is written from the third */
#define OPI__REPLICAS 4    /* most copies of a slot's unique state on peers */
#define OPI__HELD 24       /* most blocks kept for others */
#define OPI__COPIES 32     /* most blocks a rank tells about */
#define OPI__WATCHED 32    /* most communicators of the program's own */
#define OPI__NO_STEP (-2)  /* -1 is the state before step 0 */
#define OPI__CHUNK ((size_t)8 << 20) /* of replica traffic */

/* Test builds call this at each phase boundary; a kill point in the campaign. */
#ifdef OPI_SWAP_HOOKS
typedef void (*opi__hook_fn)(const char *point);
extern opi__hook_fn opi__swap_hook;
#define OPI__POINT(name)                                                                                               \
    do {                                                                                                               \
        if (opi__swap_hook) opi__swap_hook(name);                                                                      \
    } while (0)
#else
#define OPI__POINT(name) ((void)0)
#endif

/* A snapshot of this slot. */
enum { OPI__EMPTY, OPI__COPYING, OPI__LOCAL, OPI__GLOBAL };
typedef struct opi__snap {
    int32_t phase, failed, pinned; /* pinned: a file is being written from it */
    int32_t want_file;             /* a persistent checkpoint of it was asked for */
    int64_t step;
    int32_t dp, slot;
    void *blob[2];
    size_t bytes[2], room[2], filled[2];
    uint64_t sum[2];
} opi__snap;

/* A block kept for another slot. */
typedef struct opi__held {
    int32_t slot, dp, complete;
    int64_t step;
    void *blob;
    size_t bytes, room;
    uint64_t sum;
} opi__held;

/* One block that a rank has, as it tells the others. `bad`: it failed its checksum in this recovery. */
typedef struct opi__copy {
    int64_t step;
    uint64_t bytes, sum;
    int32_t slot, dp, part, bad;
} opi__copy;

/* What a process says of itself. */
typedef struct opi__card {
    uint64_t node, rack, host, job;
    int64_t pid;
    int32_t id, reserved; /* id: rank in the first world; new processes count on; -1 = not numbered yet */
} opi__card;
typedef struct opi__process {
    opi__card card;
    opi__domain domain;
} opi__process;

/* Message heads. Every message names its epoch. */
typedef struct opi__wire {
    uint64_t magic, bytes, sum;
    int64_t step;
    int32_t epoch, kind, slot, dp, ok, reserved;
} opi__wire;
enum { OPI__TAG_CONTROL = 1, OPI__TAG_LINK = 2, OPI__TAG_RESTORE = 3 };
enum { OPI__WIRE_HEAD = 1, OPI__WIRE_TAIL, OPI__WIRE_NOTICE, OPI__WIRE_RECOVER,
       OPI__WIRE_DONE, OPI__WIRE_FENCED, OPI__WIRE_LEAVE };

/* Replica traffic with one peer. Requests: the head, the chunks, the tail. */
typedef struct opi__link {
    int32_t peer;  /* slot */
    int32_t done;
    int32_t entry; /* incoming: index into held, -1 = none yet */
    opi__wire head, tail;
    MPI_Request *request;
    size_t posted, room, moved; /* requests posted; bytes they cover */
} opi__link;

struct opi_swap {
    opi_ctx *ctx;
    opi_swap_options options; /* swap.c; strings are copies */
    opi_swap_view view;       /* recover.c */
    opi__journal journal;     /* events.c */
    /* states: swap.c */
    opi__state state[OPI__STATES];
    size_t states;
    int32_t sealed; /* the first step was asked for: registering again means moving */
    /* processes: swap.c, join.c */
    MPI_Comm world;
    int32_t world_rank, world_size;
    opi__process *process; /* [world_size] */
    int32_t next_id, joins, gave_up;
    int32_t carried_kind, carried_dead; /* a loss that was found before new processes joined */
    char carried_lost[160];
    double wait_until;
    MPI_Comm *keep; /* all that span jobs */
    size_t kept, keep_room;
    uint64_t job; /* the same on all ranks, another in the next job */
    /* who lives and holds what: recover.c */
    MPI_Comm now, active, dp, tp, pp, ring, files;
    MPI_Comm watched[OPI__WATCHED];
    int32_t watching;
    opi__grid grid;   /* dp may have shrunk */
    int32_t members;  /* of `now` */
    int32_t *member;  /* [members] rank in world */
    int32_t *owner;   /* [slots of the first grid] rank in world of the slot's owner */
    int32_t *holder;  /* [slots * replicas] */
    int32_t replicas;
    int32_t wide_dp;  /* the width before it last shrank */
    int32_t *wide_row; /* [first width] row of that grid which each row continues */
    int32_t established, finished;
    int64_t committed; /* last completed step that the live state shows (when not dirty) */
    int64_t next;      /* step to compute */
    int32_t dirty, in_step;
    int32_t stuck; /* recoveries in a row without a death and without a step between */
    int32_t recovering; /* inside opi__recover, where callbacks may register */
    int32_t broken;     /* an error ended this runtime */
    int32_t fenced, file_asked, finish_flag;
    int32_t left; /* 1 + number of a rank that left the job alive, 0 = none */
    /* failures: control.c */
    int32_t fault;        /* 1: recovery is needed */
    int32_t recover_epoch, done_epoch; /* last epoch somebody recovers from, and says to be done in */
    double fault_time, good_time, looked;
    MPI_Request control_request;
    opi__wire control_in;
    opi__wire control_out[64];
    MPI_Request control_sent[64];
    int32_t control_next;
    int32_t *dead; /* [world_size] 1 = known dead, 2 = and acted on */
    /* snapshots: snapshot.c */
    opi__snap snap[OPI__SNAPS];
    opi__held held[OPI__HELD];
    opi__worker copier;
    opi__snap *current;  /* COPYING or LOCAL, NULL = none */
    int64_t pending;     /* step whose copy waits for a buffer; OPI__NO_STEP = none */
    int32_t pending_file;
    opi__state saved[OPI__STATES]; /* the states as of the last commit; SMALL ones point into stash */
    size_t saved_states;
    char *stash;
    size_t stash_room;
    opi__link out[OPI__REPLICAS], *in;
    int32_t outs, ins, in_room;
    MPI_Request barrier;
    double *barrier_all; /* [slots * 2] busy seconds, ok */
    double barrier_mine[2];
    double busy;
    int32_t slow_run; /* snapshots in a row with the same straggler */
    int32_t slow_slot;
    uint64_t buffer_bytes;
    /* persistent checkpoints: persist.c */
    struct opi__persist *persist;
};

/* snapshot.c */
void *opi__swap_room(opi_swap *s, void **p, size_t *room, size_t bytes); /* grows *p, old contents lost; NULL = no memory */
int32_t opi__snapshot_memory(const opi_swap *s, opi_error *err);         /* do the buffers fit? */
void opi__snapshot_due(opi_swap *s, int64_t step, int32_t file);
int32_t opi__snapshot_progress(opi_swap *s);  /* sets s->fault on a failure */
int32_t opi__snapshot_settle(opi_swap *s);    /* waits until nothing is being copied out of the live state */
void opi__snapshot_finish(opi_swap *s);       /* waits until none is under way */
void opi__snapshot_halt(opi_swap *s);         /* ends all traffic; the comms are revoked */
int32_t opi__snapshot_resume(opi_swap *s, opi__snap *snap, const int32_t *skip_out, const int32_t *skip_in);
opi__snap *opi__snapshot_of(opi_swap *s, int64_t step, int32_t dp, int32_t slot);
opi__snap *opi__snapshot_take(opi_swap *s); /* a buffer that may be overwritten, EMPTY; NULL = all are needed */
void opi__snapshot_forget(opi_swap *s, int64_t after, int32_t dp); /* drops own and held blocks of later steps */
void opi__snapshot_free(opi_swap *s);

/* control.c */
int32_t opi__control_open(opi_swap *s);
void opi__control_poll(opi_swap *s);
void opi__control_look(opi_swap *s); /* who has died since? */
void opi__control_send(opi_swap *s, int32_t to, int32_t kind);
void opi__control_tell(opi_swap *s, int32_t kind, int32_t spares); /* all others, or only the spares */
void opi__control_leave(opi_swap *s); /* this rank goes before the end: nobody is to wait for it */
int32_t opi__control_spare(opi_swap *s); /* sleeps: 1 = recover, 0 = training is done */
void opi__control_close(opi_swap *s);
void opi__fault(opi_swap *s); /* a failure was noticed */

/* recover.c */
int32_t opi__recover(opi_swap *s, opi_error *err); /* until all agree; also the first meeting */
void opi__revoke_active(opi_swap *s); /* the slots' communicators and the watched ones */
struct opi__attempt;
void opi__evict(opi_swap *s, const struct opi__attempt *a); /* tells, and where asked ends, who was declared dead */
int32_t opi__owned_slot(const opi_swap *s, int32_t world_rank); /* -1 = spare */

/* persist.c */
int32_t opi__persist_open(opi_swap *s, opi_error *err);
void opi__persist_progress(opi_swap *s);
void opi__persist_begin(opi_swap *s, opi__snap *snap);
void opi__persist_halt(opi_swap *s);
int32_t opi__persist_busy(const opi_swap *s);
void opi__persist_close(opi_swap *s);

#endif
