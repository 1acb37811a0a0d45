/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/conformal.h"
#include <math.h>
#include <stdlib.h>

static int ascending_order(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void opi__conformal_sort(float *scores, size_t n)
{
    if (n)
        qsort(scores, n, sizeof *scores, ascending_order);
}

double opi__conformal_upper(const float *ascending, size_t n, double level)
{
    /* A relative 1e-12 keeps (n + 1) * level from ceiling up where it is a whole number in exact arithmetic. */
    double rank = ceil((double)(n + 1) * level * (1 - 1e-12));
    if (rank < 1)
        rank = 1;
    return rank > (double)n ? INFINITY : (double)ascending[(size_t)rank - 1];
}

/* The bound on |z| where one tail has too few scores to stand alone: there the rank is the last one, or past it. */
static double symmetric(const float *z, size_t n, double level)
{
    if (n == 0 || ceil((double)(n + 1) * level * (1 - 1e-12)) > (double)n)
        return INFINITY;
    return fmax(fabs((double)z[0]), fabs((double)z[n - 1]));
}

void opi__conformal_bounds(const float *ascending, size_t n, double level, double *lo, double *hi)
{
    double tail = (1 - level) / 2, rank = floor((double)(n + 1) * tail * (1 + 1e-12));
    if (rank >= 1) {
        *lo = fmin((double)ascending[(size_t)rank - 1], 0);
        *hi = fmax((double)ascending[n - (size_t)rank], 0);
        return;
    }
    double q = symmetric(ascending, n, level);
    *hi = q;
    *lo = -q;
}

double opi__conformal_exceed(const float *ascending, size_t n, double z)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if ((double)ascending[mid] <= z)
            lo = mid + 1;
        else
            hi = mid;
    }
    return ((double)(n - lo) + 1) / ((double)n + 1);
}
