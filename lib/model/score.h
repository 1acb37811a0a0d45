/* SPDX-License-Identifier: Apache-2.0 */
/* Held-out predictions and what is said of them. */
#ifndef OPI_MODEL_SCORE_H
#define OPI_MODEL_SCORE_H
#include "base/json.h"
#include "model/model.h"

/* Held-out prediction of one target for one dataset row, on the log scale. */
typedef struct opi__held {
    double y, median, q10, q90, lo, hi; /* y: log of the measured value */
    double nearest;                     /* log of the nearest training row's value; NaN = none */
    int32_t status;                     /* OPI_P_OK, OPI_P_NEW_COMBINATION, OPI_P_OOD */
    int32_t present;                    /* 0: no label, or not predicted */
    int32_t in_range;                   /* 1: every category of the row was in its training rows */
} opi__held;

/* One row's answer beside its measured value, both on the log scale. `code` and `x` are in the model's own dictionaries. */
void opi__hold(const opi_model *m, int32_t target, const double *envelope, const float *x, const int32_t *code,
               int32_t site, double base, double y, double level, opi__held *h);
/* Mean pinball loss of the .1, .5 and .9 quantiles. */
double opi__held_pinball(const opi__held *h);

/* Adds {n, median_ape, mape, p90_ape, r2_log, pinball, coverage, width_log, flagged, …, groups} of one target. */
int32_t opi__score_target(const opi__dataset *d, const opi__held *held, opi__json *into);

#define OPI__UTILITIES 3
extern const char *const opi__utility_names[OPI__UTILITIES];
#define OPI__PICKERS 5 /* the model's median first, then the rules it is compared with */
typedef struct opi__outcome {
    double top1, regret; /* 1 = the best was picked; what was lost, relative to the best */
} opi__outcome;
typedef struct opi__decision { /* among the measured hardware of one cell and engine */
    uint64_t cell;
    opi__outcome of[OPI__UTILITIES][OPI__PICKERS];
} opi__decision;
/* Every decision among held-out output tokens/s, in an order that the rows' order does not change. Owner of *out: the
 * caller, opi__free. OPI_OK or OPI_E_NOMEM. */
int32_t opi__judge_decisions(const opi__dataset *d, const opi__held *held, opi__decision **out, size_t *n);
/* Adds {n, top1, regret, baselines} per utility, from held-out output tokens/s. */
int32_t opi__score_decisions(const opi__dataset *d, const opi__held *held, opi__json *into);
#endif
