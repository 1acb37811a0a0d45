/* SPDX-License-Identifier: Apache-2.0 */
/* Is one thing better than another on the same rows, or is it luck? Paired bootstrap over whole clusters (Efron and
 * Tibshirani 1993, percentile intervals): rows of one cluster are drawn together, because their errors are alike. Plain
 * arrays. */
#ifndef OPI_LEARN_PAIRED_H
#define OPI_LEARN_PAIRED_H
#include <stddef.h>
#include <stdint.h>

#define OPI__PAIRED_FIGURES 3
typedef struct opi__cluster {
    double n;                            /* rows */
    double sum[OPI__PAIRED_FIGURES][2];  /* of each figure over the rows: of the one, of the other */
} opi__cluster;

typedef struct opi__paired {
    double value[2];   /* of each */
    double difference; /* of the other less the one */
    double lo, hi;     /* one-sided bounds of the difference, each at `level` */
} opi__paired;

/* What a figure's mean is worth: NULL = itself. */
typedef double (*opi__worth)(double mean);

/* The same seed draws the same clusters; their order matters, so sort them first. n > 0, resamples > 0.
 * worth, out: [figures]; scratch: [figures * resamples]. */
void opi__paired_compare(const opi__cluster *cluster, size_t n, int figures, const opi__worth *worth, double level,
                         uint64_t seed, size_t resamples, double *scratch, opi__paired *out);
#endif
