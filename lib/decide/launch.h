/* SPDX-License-Identifier: Apache-2.0 */
/* Launch-success prior per (GPU, count), shrunk toward the pooled rate. */
#ifndef OPI_DECIDE_LAUNCH_H
#define OPI_DECIDE_LAUNCH_H
#include "omnipilot/advise.h"

#define OPI__LAUNCH_SERVER 0   /* servers started to see whether they come up */
#define OPI__LAUNCH_STATIC 1   /* static-batch inference runs; a failure is out of memory */
#define OPI__LAUNCH_TRAINING 2 /* training and debug jobs of a cluster's log */
#define OPI__LAUNCH_PODS 3     /* pods of all kinds, inference services among them */

typedef struct opi__launch {
    const char *gpu;
    int32_t n_gpus, kind;
    double succeeded, failed;
    const char *source;
} opi__launch;
size_t opi__launch_count(void);
const opi__launch *opi__launch_at(size_t index);

/* The groups the fitted priors rest on. all = 0: (GPU, count) pairs of serving launches, repeats added up; all = 1: those
 * and every training cluster and pod group. attempts, successes: at least opi__launch_count() entries. Returns groups. */
size_t opi__launch_groups(int all, double *attempts, double *successes);
/* Beta parameters that opi__beta_binomial_fit finds for those groups, kept as constants (a test compares them). */
void opi__launch_fitted(int all, double *a, double *b);

/* `gpu` is a canonical name; n_gpus >= 1. Fills everything but struct_size. */
void opi__launch_prior(const char *gpu, int32_t n_gpus, opi_prior *out);
#endif
