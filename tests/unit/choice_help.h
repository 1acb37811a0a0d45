/* SPDX-License-Identifier: Apache-2.0 */
/* Choice files for the tests: simulated operators with known weights, and small ones by hand. */
#ifndef OPI_TEST_CHOICE_HELP_H
#define OPI_TEST_CHOICE_HELP_H
#include "base/rng.h"
#include "omnipilot/advise.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHOICE_HEAD "choice,chosen,usd_per_h,out_tok_s,queue_s,launch_success,replicas,slo_violation,kv_usage,power_w\n"
#define CHOICE_WEIGHTS 6

/* The truth, in the order of opi_preferences_at. */
static const double choice_truth[CHOICE_WEIGHTS] = {2, 25, 60, 40, 20, 0.8};

typedef struct choice_row {
    double usd, tok_s, queue_s, success, violation, kv, watts;
    int replicas;
} choice_row;

/* Dollars per hour, as docs/json.md states the terms; not by the library's own code. */
static inline double choice_worth(const choice_row *o)
{
    const double failed = (1 - o->success) / o->success * o->replicas;
    const double full = o->kv > 0.85 ? (o->kv - 0.85) / 0.15 : 0;
    return choice_truth[0] * o->tok_s * 0.0036 - o->usd - choice_truth[1] * o->queue_s / 3600 / 24 -
           failed * (choice_truth[2] + 0.25 * o->usd / o->replicas) / 24 - choice_truth[3] * o->violation -
           choice_truth[4] * full - choice_truth[5] * o->watts / 1000;
}

static inline void choice_draw(opi__rng *r, choice_row *o)
{
    o->usd = 5 + 55 * opi__rng_uniform(r);
    o->tok_s = 500 + 7500 * opi__rng_uniform(r);
    o->queue_s = opi__rng_below(r, 2) ? 4 * 86400 * opi__rng_uniform(r) : 0;
    o->success = 0.2 + 0.8 * opi__rng_uniform(r);
    o->replicas = 1 + (int)opi__rng_below(r, 4);
    o->violation = opi__rng_uniform(r);
    o->kv = 0.7 + 0.3 * opi__rng_uniform(r);
    o->watts = 500 + 20000 * opi__rng_uniform(r);
}

/* `n` situations of 2 to 5 configurations; noise: dollars per hour of the Gumbel scale. Owner: the caller, free. */
static inline char *choice_file(uint64_t seed, int n, double noise)
{
    opi__rng r;
    char *text = malloc((size_t)n * 5 * 220 + 200);
    ck_assert_ptr_nonnull(text);
    size_t at = (size_t)sprintf(text, "%s", CHOICE_HEAD);
    opi__rng_seed(&r, seed);
    for (int i = 0; i < n; i++) {
        choice_row row[5];
        const int offered = 2 + (int)opi__rng_below(&r, 4);
        int best = 0;
        double most = -INFINITY;
        for (int k = 0; k < offered; k++) {
            choice_draw(&r, &row[k]);
            const double gumbel = -log(-log((opi__rng_uniform(&r) + 1e-17)));
            const double u = choice_worth(&row[k]) + noise * gumbel;
            if (u > most) {
                most = u;
                best = k;
            }
        }
        for (int k = 0; k < offered; k++)
            at += (size_t)sprintf(text + at, "s%d,%d,%.17g,%.17g,%.17g,%.17g,%d,%.17g,%.17g,%.17g\n", i, k == best, row[k].usd,
                                  row[k].tok_s, row[k].queue_s, row[k].success, row[k].replicas, row[k].violation, row[k].kv,
                                  row[k].watts);
    }
    return text;
}

static inline opi_preferences *choice_fit(opi_ctx *ctx, const char *csv, const opi_preferences_options *options)
{
    opi_preferences *p = NULL;
    opi_error err = {0};
    ck_assert_msg(opi_preferences_fit(ctx, csv, strlen(csv), options, &p, &err) == OPI_OK, "%s", err.message);
    return p;
}

static inline opi_preference choice_weight(const opi_preferences *p, size_t i)
{
    opi_preference w = {.struct_size = sizeof w};
    ck_assert_int_eq(opi_preferences_at(p, i, &w, NULL), OPI_OK);
    return w;
}

static inline opi_preferences_summary choice_summary(const opi_preferences *p)
{
    opi_preferences_summary s = {.struct_size = sizeof s};
    ck_assert_int_eq(opi_preferences_get_summary(p, &s, NULL), OPI_OK);
    return s;
}
#endif
