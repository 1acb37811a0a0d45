/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/paired.h"
#include "base/rng.h"
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add(opi__cluster *total, const opi__cluster *one)
{
    total->n += one->n;
    for (int f = 0; f < OPI__PAIRED_FIGURES; f++)
        for (int side = 0; side < 2; side++)
            total->sum[f][side] += one->sum[f][side];
}

static double worth_of(const opi__cluster *total, int figure, int side, opi__worth worth)
{
    double mean = total->sum[figure][side] / total->n;
    return worth ? worth(mean) : mean;
}

void opi__paired_compare(const opi__cluster *cluster, size_t n, int figures, const opi__worth *worth, double level,
                         uint64_t seed, size_t resamples, double *scratch, opi__paired *out)
{
    opi__rng rng;
    opi__cluster total = {0};
    for (size_t i = 0; i < n; i++)
        add(&total, &cluster[i]);
    for (int f = 0; f < figures; f++) {
        out[f].value[0] = worth_of(&total, f, 0, worth[f]);
        out[f].value[1] = worth_of(&total, f, 1, worth[f]);
        out[f].difference = out[f].value[1] - out[f].value[0];
    }
    opi__rng_seed(&rng, seed);
    for (size_t b = 0; b < resamples; b++) {
        memset(&total, 0, sizeof total);
        for (size_t i = 0; i < n; i++)
            add(&total, &cluster[opi__rng_below(&rng, n)]);
        for (int f = 0; f < figures; f++)
            scratch[(size_t)f * resamples + b] = worth_of(&total, f, 1, worth[f]) - worth_of(&total, f, 0, worth[f]);
    }
    for (int f = 0; f < figures; f++) {
        double *d = scratch + (size_t)f * resamples;
        size_t tail = (size_t)((1 - level) * (double)resamples + 1e-9);
        qsort(d, resamples, sizeof *d, ascending);
        out[f].lo = d[tail];
        out[f].hi = d[resamples - 1 - tail];
    }
}
