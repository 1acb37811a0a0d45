/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of a recovery: the step to go back to, whose copies are used, and the state of every slot put back by
 * the identity of its logical shard. */
#ifndef OPI_SWAP_RESTORE_H
#define OPI_SWAP_RESTORE_H
#include "swap/meet.h"

/* Chooses a->step, a->from and a->from_dp from the blocks the living have. */
void opi__restore_choose(opi_swap *s, opi__attempt *a);
/* Moves blocks, verifies them and puts them into the program's memory. A block that fails its checksum is marked bad
 * everywhere and the choice is made again. 0 = a failure in between; a->fatal as elsewhere. */
int opi__restore(opi_swap *s, opi__attempt *a);
/* Does member m have the block (part, slot) of the chosen step? NULL = no. */
const opi__copy *opi__restore_copy(const opi__attempt *a, int32_t m, int32_t part, int32_t slot);
/* For a stop: member that writes the block of a slot of the old grid; -1 = nobody has it. */
int32_t opi__restore_source(const opi__attempt *a, int32_t part, int32_t slot);
/* The block itself, when it is this rank that has it. */
const void *opi__restore_block(opi_swap *s, const opi__attempt *a, int32_t part, int32_t slot, size_t *bytes);
#endif
