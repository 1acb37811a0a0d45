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

/* Adds {n, median_ape, mape, p90_ape, r2_log, pinball, coverage, width_log, flagged, …, groups} of one target. */
int32_t opi__score_target(const opi__dataset *d, const opi__held *held, opi__json *into);
/* Adds {n, top1, regret, baselines} per utility, from held-out output tokens/s. */
int32_t opi__score_decisions(const opi__dataset *d, const opi__held *held, opi__json *into);
#endif
