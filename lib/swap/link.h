/* SPDX-License-Identifier: Apache-2.0 */
/* Replica traffic of one snapshot between a slot and one peer: a head, chunks, a tail with the checksum. */
#ifndef OPI_SWAP_LINK_H
#define OPI_SWAP_LINK_H
#include "swap/runtime.h"

void opi__link_out_begin(opi_swap *s, opi__link *l, const opi__snap *snap);
void opi__link_in_begin(opi_swap *s, opi__link *l);
/* 1 = done, 0 = under way, -1 = failed. `ready`: the snapshot is whole (its checksum is known). */
int opi__link_out_progress(opi_swap *s, opi__link *l, const opi__snap *snap, int ready);
int opi__link_in_progress(opi_swap *s, opi__link *l, const opi__snap *snap);
/* On a revoked communicator: ends what is under way. */
void opi__link_halt(opi__link *l);
void opi__link_free(opi_swap *s, opi__link *l);
#endif
