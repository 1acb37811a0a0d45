/* SPDX-License-Identifier: Apache-2.0 */
/* Kriging (Gaussian process regression) with the hierarchical covariance of kernel.h. Works on plain arrays. */
#ifndef OPI_LEARN_KRIGE_H
#define OPI_LEARN_KRIGE_H
#include "learn/kernel.h"

/* Hyperparameters by marginal likelihood on random subsets of the rows, Adam steps (Kingma and Ba 2015). The same seed
 * gives the same result. */
typedef struct opi__krige_options {
    size_t rows;   /* of a subset */
    int32_t steps; /* in all; a new subset every OPI__KRIGE_SUBSET steps */
    double rate;   /* of a step, falling to a tenth */
    uint64_t seed;
    int (*stop)(void *user); /* may be NULL; non-zero: the best so far is kept */
    void *user;
} opi__krige_options;
#define OPI__KRIGE_SUBSET 15

/* k: where to start, and the result. y without its mean. work: opi__krige_learn_work doubles. 0, or -1 when no covariance
 * was positive definite. */
size_t opi__krige_learn_work(const opi__krige_options *o, size_t n);
int opi__krige_learn(const opi__krige_options *o, const opi__points *p, const double *y, double *work, opi__kernel *k);

/* Residual and variance of every row from the model without the row's block, in closed form from one inverse
 * (Rasmussen and Williams 2006, 5.4.2, for blocks): r_B = (P_BB)^-1 (P y)_B, covariance (P_BB)^-1. inverse: [n * n];
 * a = inverse * y; block [n]: equal numbers belong together. order, work: see below. held [n], variance [n]. */
size_t opi__krige_blocks_work(size_t n, const uint32_t *block);
int opi__krige_blocks(size_t n, const double *inverse, const double *a, const uint32_t *block, uint32_t *order,
                      double *work, double *held, double *variance);

/* A fitted process: what is needed for means. Arrays are the caller's. */
typedef struct opi__krige {
    size_t n;
    const float *x;      /* [n * OPI__DIMS], standardized */
    const uint32_t *key; /* [n * OPI__KEYS] */
    const double *weight; /* [n] inverse * (y - mean) */
    double mean;
    opi__kernel kernel;
    /* made by opi__krige_ready */
    float metric[OPI__LEVELS][OPI__DIMS]; /* squared inverse length scales */
    double soft[OPI__LEVELS][1u << OPI__SOFTS];
    double v[OPI__LEVELS], offset[OPI__OFFSETS], site[OPI__SITES], linear[OPI__DIMS], constant;
} opi__krige;
/* Fills what does not depend on the question; the rows' share of the linear and constant terms too. */
void opi__krige_ready(opi__krige *k);
/* Mean at a point, and how near it lies to the rows (OPI__NEARS). No heap. Time: rows x OPI__DIMS. */
double opi__krige_mean(const opi__krige *k, const float *x, const uint32_t *key, float *near);

/* What a handful of measurements of one new site adds to a fitted process. Their deviations from its mean are taken as a
 * process of their own: the site's random effect, and what the fitted process itself is unsure of, correlated as its
 * levels are; plus noise. Arrays are the caller's. */
#define OPI__LOCAL_MOST 1000
typedef struct opi__krige_local {
    size_t n;
    const float *x;       /* [n * OPI__DIMS] */
    const uint32_t *key;  /* [n * OPI__KEYS], without site keys */
    const double *spread; /* [n] the fitted process's at a site never seen */
    const double *weight; /* [n] covariance^-1 * deviation */
    const double *factor; /* [n * n] lower Cholesky factor of the covariance */
} opi__krige_local;
/* Fills weight and factor (in: weight = deviations). 0, or -1 when the covariance stays singular. */
int opi__krige_localize(const opi__krige *k, const opi__krige_local *l, double *weight, double *factor);
/* Adds to a mean, and takes from a spread, what the local rows say. c: l->n doubles. */
void opi__krige_here(const opi__krige *k, const opi__krige_local *l, const float *x, const uint32_t *key, double *c,
                     double *mean, double *spread);
#endif
