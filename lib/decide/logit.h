/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional logit (McFadden 1974) with a ridge, on plain arrays; no heap. */
#ifndef OPI_DECIDE_LOGIT_H
#define OPI_DECIDE_LOGIT_H
#include <stddef.h>
#include <stdint.h>

#define OPI__LOGIT_MOST 8 /* attributes */

typedef struct opi__logit {
    size_t n_situations, n_attributes;
    const size_t *start;  /* situation i: rows start[i] to start[i + 1] - 1 */
    const size_t *chosen; /* row taken in situation i */
    const double *x;      /* rows x attributes, row-major; of order one (opi__logit_scale) */
} opi__logit;

typedef struct opi__logit_fit {
    double beta[OPI__LOGIT_MOST];                         /* 0 where not in use */
    double covariance[OPI__LOGIT_MOST * OPI__LOGIT_MOST]; /* inverse of the information with the ridge; 0 where not in use */
    double log_likelihood;                                /* without the ridge */
    size_t hits;                                          /* situations whose choice is above every other alternative */
} opi__logit_fit;

/* In place: each attribute less its mean of the situation, over the root mean square of what is left (`scale`, n_attributes;
 * 0 = does not vary within any situation, and the column becomes 0). */
void opi__logit_scale(double *x, size_t n_situations, const size_t *start, size_t n_attributes, double *scale);
/* Variance inflation of each attribute by the others within situations; 0 for those that do not vary. 0 or -1. */
int opi__logit_inflation(const opi__logit *p, double *inflation);
/* Damped Newton on log likelihood - ridge / 2 |beta|^2, which is strictly concave for ridge > 0: one answer, whatever beta
 * starts from (`out->beta`). Bit k of `use`: attribute k is in the model. 0, or -1 (no convergence: numbers out of range). */
int opi__logit_fit_ridge(const opi__logit *p, double ridge, uint32_t use, opi__logit_fit *out);
/* Two-sided normal quantile: P(|z| < opi__two_sided(level)) = level, for 0 < level < 1. */
double opi__two_sided(double level);
#endif
