/* SPDX-License-Identifier: Apache-2.0 */
/* The first half of a recovery: who is alive, what was lost, who holds which slot now. Everything after the gather is
 * computed by every rank alike from the same data. */
#ifndef OPI_SWAP_MEET_H
#define OPI_SWAP_MEET_H
#include "base/mem.h"
#include "swap/runtime.h"

/* What each living rank tells the others. */
typedef struct opi__hello {
    int64_t committed;
    uint64_t options, kinds; /* fingerprints: of the options, of the registered names and kinds (0 = none yet) */
    int32_t id, slot, epoch, dirty, established, opaque, dp, copies, stuck, reserved;
    opi__copy copy[OPI__COPIES];
} opi__hello;

/* Where the state comes from. */
enum { OPI__FROM_MEMORY = 1, OPI__FROM_FILES, OPI__FROM_INIT };

/* One try of a recovery; it becomes the state of the runtime only when all agree. */
typedef struct opi__attempt {
    opi__arena arena;
    MPI_Comm now, active, dp, tp, pp, ring, files;
    int32_t members, me;
    int32_t *member;      /* [members] rank in world */
    opi__hello *hello;    /* [members] */
    opi__grid old, grid;  /* before and after */
    int32_t *owner;       /* [slots of grid] member index */
    int32_t *from_row;    /* [grid.dp] row of `old` that each row was */
    int32_t slot;         /* mine, -1 = spare */
    int32_t kind;         /* OPI_SWAP_PROCESS_LOST …, 0 = the first meeting */
    int32_t dead, unfilled, stop, stuck;
    int64_t furthest;     /* last step any rank committed */
    int64_t step;         /* the step to go back to */
    int32_t from, from_dp;
    int32_t fatal;        /* an error that trying again does not mend */
    char lost[160], taken[160]; /* in words */
    opi_error err;
    double mark[OPI_SWAP_PHASES];
} opi__attempt;

/* Shrinks and gathers. 0 = a failure in between. */
int opi__meet(opi_swap *s, opi__attempt *a);
/* Fills kind … taken, owner, grid. Errors are the same on all ranks. */
int32_t opi__meet_assign(opi_swap *s, opi__attempt *a);
/* Communicators of the new grid. 0 = a failure in between. */
int opi__meet_comms(opi_swap *s, opi__attempt *a);
/* Are the registered states of all slots compatible? 0 = a failure in between; a->fatal when they are not. */
int opi__meet_states(opi_swap *s, opi__attempt *a);
uint64_t opi__states_print(const opi__state *state, size_t n);
#endif
