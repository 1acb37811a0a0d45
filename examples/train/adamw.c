/* SPDX-License-Identifier: Apache-2.0 */
#include "adamw.h"

#include <math.h>

void adamw_update(const adamw *a, int64_t step, int64_t count, const double *gradient, double *mean, double *square,
                  double *parameters)
{
    double rate = a->rate * (step + 1 < a->warmup ? (double)(step + 1) / (double)a->warmup : 1.0);
    double unbias1 = 1.0 / (1.0 - pow(a->beta1, (double)(step + 1)));
    double unbias2 = 1.0 / (1.0 - pow(a->beta2, (double)(step + 1)));
    for (int64_t i = 0; i < count; i++) {
        mean[i] = a->beta1 * mean[i] + (1.0 - a->beta1) * gradient[i];
        square[i] = a->beta2 * square[i] + (1.0 - a->beta2) * gradient[i] * gradient[i];
        double direction = mean[i] * unbias1 / (sqrt(square[i] * unbias2) + a->epsilon);
        parameters[i] -= rate * (direction + a->decay * parameters[i]);
    }
}
