/* SPDX-License-Identifier: Apache-2.0 */
/* The order of candidates, and which of them may be recommended. */
#ifndef OPI_DECIDE_RANK_H
#define OPI_DECIDE_RANK_H
#include "decide/advice.h"

/* How close a measured candidate's score must be to be preferred over a combination never measured together, as a share of
 * the larger of that combination's |value|, |node cost| (or |score| where the score is not in dollars per hour). */
#define OPI__TIE_SHARE 0.05

/* Order, best first:
 *  1. feasible before infeasible;
 *  2. SLOs and demand met, then demand missed (most tokens/s first), then SLOs missed (least violation first);
 *  3. priced before unpriced: an unknown price must not look like none;
 *  4. score; 5. fewer GPUs; 6. order of enumeration.
 * Infeasible ones: by reason, then order of enumeration. Heap sort: no heap memory, no quadratic case. */
void opi__rank(const opi__cand *v, size_t n, uint32_t *order);

/* Whether candidate x comes before y. */
int opi__ranks_before(const opi__cand *x, const opi__cand *y);

/* Neither outside what was measured nor without calibration. */
int opi__within(const opi__cand *c);
/* May the candidate be recommended: meets the requirements and does not lie outside what was measured. */
int opi__recommendable(const opi__cand *c);

/* Sets verdict, winner and runner-up from the order. The winner is the best recommendable candidate; if it is a new
 * combination and a measured one is within the tie share, the measured one. */
void opi__pick(opi_advice *a);
#endif
