/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW on one range of the flat parameter vector. Each element on its own: how the vector is divided over the
 * data-parallel rows (ZeRO stage 1) does not change a bit. */
#ifndef TRAIN_ADAMW_H
#define TRAIN_ADAMW_H
#include <stdint.h>

typedef struct adamw {
    double rate, beta1, beta2, epsilon, decay;
    int64_t warmup; /* steps over which the rate grows */
} adamw;

/* Step `step` (0 = the first) on `count` elements; `mean` and `square` are the moments. */
void adamw_update(const adamw *a, int64_t step, int64_t count, const double *gradient, double *mean, double *square,
                  double *parameters);
#endif
