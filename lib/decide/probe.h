/* SPDX-License-Identifier: Apache-2.0 */
/* Which measurement would help most. */
#ifndef OPI_DECIDE_PROBE_H
#define OPI_DECIDE_PROBE_H
#include "decide/advice.h"

/* Rank of the candidate to measure: the highest-ranked one that is not inside what was measured and stands before the
 * winner (or is the winner); SIZE_MAX when nothing of that kind stands in the way. */
size_t opi__probe_rank(const opi_advice *a);
/* a->probe: that measurement in one sentence; "" when none. */
void opi__probe(opi_advice *a);
#endif
