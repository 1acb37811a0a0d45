/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/envelope.h"
#include <math.h>
#include <stdlib.h>

void opi__range_fit(opi__range *r, const double *values, const uint32_t *row, size_t n, double slack)
{
    r->lo = INFINITY;
    r->hi = -INFINITY;
    r->slack = slack;
    r->blank_seen = r->seen = 0;
    for (size_t i = 0; i < n; i++) {
        double v = values[row[i]];
        if (isnan(v)) {
            r->blank_seen = 1;
            continue;
        }
        r->seen = 1;
        if (v < r->lo)
            r->lo = v;
        if (v > r->hi)
            r->hi = v;
    }
}

double opi__range_distance(const opi__range *r, double value, double unseen)
{
    if (isnan(value))
        return r->blank_seen ? 0 : unseen;
    if (!r->seen)
        return unseen;
    double excess = value < r->lo ? r->lo - value : value > r->hi ? value - r->hi : 0;
    double d = excess / r->slack;
    return d < unseen ? d : unseen;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double opi__slack_factor(double *distance, size_t n, double share, double least)
{
    if (n == 0)
        return least;
    qsort(distance, n, sizeof *distance, by_value);
    size_t allowed = (size_t)(share * (double)n); /* may stay outside */
    double need = distance[n - 1 - (allowed < n ? allowed : n - 1)];
    return need > least ? need : least;
}

static int by_code(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

size_t opi__pairs_build(uint64_t *pairs, size_t n)
{
    size_t kept = 0;
    if (n)
        qsort(pairs, n, sizeof *pairs, by_code);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || pairs[i] != pairs[kept - 1])
            pairs[kept++] = pairs[i];
    return kept;
}

int opi__pairs_has(const uint64_t *pairs, size_t n, uint64_t pair)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (pairs[mid] < pair)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && pairs[lo] == pair;
}
