/* SPDX-License-Identifier: Apache-2.0 */
/* When persistent checkpoints are written and read: the files are store.h's, the agreement of all ranks is here. */
#ifndef OPI_SWAP_PERSIST_H
#define OPI_SWAP_PERSIST_H
#include "swap/meet.h"

/* Loads the newest checkpoint that every slot can read, into the program's memory: sets a->step, a->from, a->from_dp.
 * Without one a->from stays. Collective over a->now; 0 = a failure in between. */
int opi__persist_load(opi_swap *s, opi__attempt *a);
/* Writes the blocks of the chosen step that the living have, and the mark. *written = 1 when complete. Collective over
 * a->now; 0 = a failure in between. */
int opi__persist_last(opi_swap *s, opi__attempt *a, int32_t *written);
#endif
