/* SPDX-License-Identifier: Apache-2.0 */
/* The terms of the utility, US dollars per hour. */
#ifndef OPI_DECIDE_UTILITY_H
#define OPI_DECIDE_UTILITY_H
#include "base/json.h"
#include "omnipilot/advise.h"

/* What one candidate is expected to do, over all its replicas unless said. */
typedef struct opi__outcome {
    double gpus, replicas;
    double price;          /* US dollars per GPU hour; NaN = not stated: no node cost */
    double queue_s;
    double launch_success; /* of one replica */
    double tok_s;          /* output tokens/s delivered */
    double demand;         /* output tokens/s asked for; what goes beyond has no value; 0 = none */
    double violations;     /* violation probabilities, summed over the SLOs */
    double kv_usage;       /* share of the KV cache in use; NaN = not known */
    double power_w;        /* per GPU; NaN = not known */
} opi__outcome;

/* Checks every weight (finite, in its range) and replaces a zero knee or amortization by its default. */
int32_t opi__utility_check(opi_utility *u, opi_error *err);
/* The terms, and their sum in the order value, node, queue, restart, slo, kv, power. */
void opi__utility_terms(const opi_utility *u, const opi__outcome *o, opi_terms *out);
/* Its fields as members of a JSON object: what the utility file (opi_utility_parse) and the documents have. */
void opi__utility_json(opi__json *o, const opi_utility *u);
#endif
