/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the kriging learner, and what fitting it and answering from it share. */
#ifndef OPI_MODEL_KRIGED_H
#define OPI_MODEL_KRIGED_H
#include "learn/krige.h"
#include "model/learner.h"

#define OPI__LEAST_SPREAD 1e-3
#define OPI__DEGREES 5

typedef struct opi__kriged {
    opi__krige k;
    opi__forest spread;      /* log of the standard deviation, from OPI__NEARS numbers */
    uint32_t logs[2];        /* columns that are taken as logarithms, a bit each */
    int32_t degree[OPI__DEGREES]; /* columns that make a configuration */
    double *scale;           /* [OPI__DIMS * 3]: what stands for a missing number, mean, 1 / deviation; after logs */
    int32_t borrowed;        /* 1: the arrays lie in a loaded block */
    opi__krige_local here;
    void *local[5]; /* the arrays of `here`, owned, whatever the others are */
} opi__kriged;

/* Which columns are what; before anything else. */
void opi__krige_columns(opi__kriged *k);
/* A row as a point: numbers logarithmed where they differ by factors, standardized; and its keys. */
void opi__krige_point(const double *scale, const uint32_t *logs, const float *x, float *out);
void opi__krige_keys(const opi__kriged *k, const float *x, const int32_t *code, int32_t site, uint32_t *key);
/* How much campaigns differ, as learned; with one or two of them it is mostly the prior's word. */
double opi__krige_site_variance(const opi__kernel *k);
/* Standard deviation of a residual at a point that near the rows. */
double opi__krige_spread(const opi__kriged *k, const float *near);
void opi__krige_release(opi_ctx *ctx, void *state);
/* krige_fit.c */
int32_t opi__krige_fit(opi_ctx *ctx, const opi__fit_job *job, void **state, opi_error *err);
#endif
