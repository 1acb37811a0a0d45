/* SPDX-License-Identifier: Apache-2.0 */
/* Where the replicas of a slot's unique state are kept. Free of MPI; a pure function of its arguments. */
#ifndef OPI_SWAP_PLACEMENT_H
#define OPI_SWAP_PLACEMENT_H
#include "swap/slots.h"

typedef struct opi__placement_quality {
    int32_t same_node; /* copies on a node that already holds the slot or another copy of it */
    int32_t same_rack; /* the same for racks */
    int32_t most;      /* most copies any slot keeps for others */
    int32_t missing;   /* copies with no place (more replicas than other slots) */
} opi__placement_quality;

/* holder[slot * replicas + r] = slot that keeps copy r of the slot's unique state, -1 = no place. Holders of one slot
 * are different slots; preferred in another rack than the slot and its other copies, then on another node, then any;
 * the load is even (most <= replicas + 1 where the domains allow). domain[slot] is where its owner lives. scratch:
 * opi__place_scratch(slots) int32_t. Time about O(slots * replicas): 131,072 slots in well under a second. */
size_t opi__place_scratch(size_t slots);
void opi__place(size_t slots, const opi__domain *domain, int32_t replicas, int32_t *scratch, int32_t *holder,
                opi__placement_quality *quality);

/* For many questions about few slots: the answer of opi__place without making it. 1: a slot with gone[slot] & 1 has all
 * its copies with slots of gone & 2. touched: the m slots with gone != 0; comes back in another order. rank: m
 * int32_t. Only where no rack has more than slots / (replicas + 1) slots, and replicas >= 1. */
int opi__place_lost(size_t slots, const opi__domain *domain, int32_t replicas, const uint8_t *gone, size_t m,
                    int32_t *touched, int32_t *rank);
#endif
