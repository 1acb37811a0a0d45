/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient-boosted trees (Friedman 2001) on histograms, best-first growth, missing values by a learned direction,
 * one tree structure for all outputs (vector leaves). Deterministic for a seed. Works on plain arrays and a caller's
 * workspace. */
#ifndef OPI_LEARN_BOOST_H
#define OPI_LEARN_BOOST_H
#include "learn/tree.h"

/* OPI__LOSS_HUBER: one output, squared error whose gradient is cut at `huber` times the current median residual
 * (rows that contradict their own repeats must not bend the fit). OPI__LOSS_QUANTILES: three outputs a, b, c with
 * q10 = a - exp(b), q50 = a, q90 = a + exp(c): pinball losses whose quantiles cannot cross (Koenker and Bassett
 * 1978). */
enum { OPI__LOSS_HUBER, OPI__LOSS_QUANTILES };
typedef struct opi__boost_params {
    int32_t loss;
    uint32_t trees, leaves, depth;
    double rate, l2, min_weight, row_share, column_share, huber;
    uint64_t seed;
} opi__boost_params;

/* Bytes of workspace for n training rows. */
size_t opi__boost_workspace(const opi__boost_params *p, size_t n, size_t n_features);
/* Nodes and leaves a forest of these parameters can need (capacity of the arrays in `out`). */
size_t opi__boost_max_nodes(const opi__boost_params *p);
size_t opi__boost_max_leaves(const opi__boost_params *p);
/* Fits rows `row` (n indexes into bins and y, w; w NULL = 1). out's arrays are the caller's: root [trees + 1], node
 * [max_nodes], leaf [max_leaves * n_out]. `stop` (nullable) is asked once per tree; non-zero ends the fit early with
 * what is there. Returns the trees grown. */
uint32_t opi__boost_fit(const opi__boost_params *p, const opi__bins *bins, const uint32_t *row, size_t n,
                        const double *y, const double *w, int (*stop)(void *user), void *user, void *workspace,
                        opi__forest *out);
#endif
