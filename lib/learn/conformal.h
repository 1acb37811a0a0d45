/* SPDX-License-Identifier: Apache-2.0 */
/* Split-conformal calibration by group (Mondrian) with a fall-back hierarchy; normalized conformalized quantile
 * regression (Romano, Patterson and Candes 2019; Vovk, Gammerman and Shafer 2005). Plain arrays.
 *
 * A score is signed and in units of the row's own gap: z = (y - median) / gap. */
#ifndef OPI_LEARN_CONFORMAL_H
#define OPI_LEARN_CONFORMAL_H
#include <stddef.h>
#include <stdint.h>

/* The finite-sample quantile of n ascending scores for one-sided level `level`: the ceil((n + 1) level)-th smallest,
 * +inf when that is past n; never a clipped level. */
double opi__conformal_upper(const float *ascending, size_t n, double level);
/* Two-sided bounds (lo <= 0 <= hi) at `level`. Each tail takes (1 - level) / 2 when n is large enough for both
 * tails; else the symmetric bound on |z| (needs fewer rows), else infinite. */
void opi__conformal_bounds(const float *ascending, size_t n, double level, double *lo, double *hi);
/* Share of the predictive distribution above z: (1 + #{z_i > z}) / (n + 1), the conformal p-value. */
double opi__conformal_exceed(const float *ascending, size_t n, double z);
/* Sorts scores ascending in place. */
void opi__conformal_sort(float *scores, size_t n);

#endif
