/* SPDX-License-Identifier: Apache-2.0 */
/* Support envelope of one target: ranges of numeric axes, seen categories, seen pairs of categories. Plain arrays. */
#ifndef OPI_LEARN_ENVELOPE_H
#define OPI_LEARN_ENVELOPE_H
#include <stddef.h>
#include <stdint.h>

/* Range of one axis on its own scale (the caller applies a logarithm where it wants one). A value is at distance 0
 * within [lo, hi] and (excess / slack) beyond it: above 1 it is outside. */
typedef struct opi__range {
    double lo, hi, slack;
    int32_t blank_seen; /* 1: rows without this number were measured too */
    int32_t seen;       /* 1: at least one row had the number */
} opi__range;

/* values: n, NaN = blank. slack is left at `slack`. */
void opi__range_fit(opi__range *r, const double *values, const uint32_t *row, size_t n, double slack);
/* Distance in units of slack; a blank where none was measured (or a number where only blanks were) is at `unseen`. */
double opi__range_distance(const opi__range *r, double value, double unseen);
/* Smallest slack factor (>= least) for which at most `share` of the n distances (in units of the slack they were
 * measured with) exceed 1. Sorts `distance` in place. */
double opi__slack_factor(double *distance, size_t n, double share, double least);

/* Set of pairs of codes as a sorted array of (a << 32 | b). */
size_t opi__pairs_build(uint64_t *pairs, size_t n); /* sorts and removes repeats in place; returns what is left */
int opi__pairs_has(const uint64_t *pairs, size_t n, uint64_t pair);
static inline uint64_t opi__pair(int32_t a, int32_t b)
{
    return (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
}
#endif
