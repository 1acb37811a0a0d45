/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas and the load each of them gets. */
#ifndef OPI_DECIDE_LOAD_H
#define OPI_DECIDE_LOAD_H
#include "decide/candidates.h"
#include "decide/oracle.h"

/* Sustaining a rate means delivering this share of it at least: the prediction's own noise floor is a few percent. */
#define OPI__SUSTAINED 0.95
#define OPI__MOST_IN_FLIGHT 1024.0 /* per replica, when a rate is converted */

/* Output tokens/s of one replica a decision counts on: (1 - risk) * median + risk * the interval's low end. 0 when there is
 * no number. */
double opi__judged(const opi_prediction *p, double risk);

/* Takes the enumerated candidates (one replica, no load) and appends to `out` every replica count worth ranking, each with
 * its share of the load, and the infeasible ones as they are.
 *
 * Requests in flight: powers of two of replicas, and all that fit; with a demand, the fewest that meet it and powers of two
 * beyond. A rate: kept as a rate where the model knows that load for the candidate, else turned into requests in flight by
 * Little's law: the C with C = rate * T(C), where T(C) = C * output / tokens_per_s(C) is the time a request spends in the
 * system. *converted counts the latter. */
int32_t opi__share_load(const opi__ask *ask, const opi__oracle *oracle, const opi__cands *bases, opi__cands *out,
                        size_t *converted, opi_error *err);
#endif
