/* SPDX-License-Identifier: Apache-2.0 */
/* From predictions to probabilities, terms and a score. */
#ifndef OPI_DECIDE_SCORE_H
#define OPI_DECIDE_SCORE_H
#include "decide/advice.h"

/* What a score is measured in. Higher is better; costs are negative. */
#define OPI__USD_PER_H 0        /* a value, or a demand to be met at the least cost */
#define OPI__USD_PER_MTOK 1     /* neither: the cost of a million output tokens, negative */
#define OPI__TOK_S_PER_GPU 2    /* neither a value nor a price: tokens/s for each GPU, all GPUs alike */
int32_t opi__score_unit(const opi__ask *ask, const opi__cand *c);
const char *opi__score_unit_name(int32_t unit);

/* Targets the utility rests on: tokens/s, the SLOs' targets, power when it is paid for. Returns how many; ascending. */
size_t opi__used_targets(const opi__ask *ask, size_t used[OPI__T_COUNT]);

/* 1: the target is summed over replicas (tokens/s, requests/s), so that a limit is shared among them. */
int opi__target_adds_up(size_t target);

/* Fills prediction-dependent fields of every feasible candidate. One call of predict for all of them. */
int32_t opi__score_all(opi_advice *a, const opi__oracle *oracle, opi_error *err);
#endif
