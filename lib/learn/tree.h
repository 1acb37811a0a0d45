/* SPDX-License-Identifier: Apache-2.0 */
/* Forests of binary trees as flat arrays, and histogram bins of a feature matrix.
 *
 * A row is `n_features` floats: numbers first (NaN = missing), then category codes (small integers as floats).
 * A node is 8 bytes. Its left child is the next node; `right` is the distance to the right one, 0 for a leaf. */
#ifndef OPI_LEARN_TREE_H
#define OPI_LEARN_TREE_H
#include <stddef.h>
#include <stdint.h>

#define OPI__MISSING_LEFT 0x8000u
#define OPI__FEATURE_MASK 0x7fffu
typedef struct opi__node {
    float value;      /* threshold (number: x <= value goes left), code (category: x == value goes left), or a
                          leaf's output (n_out 1) or index (n_out > 1) */
    uint16_t feature; /* | OPI__MISSING_LEFT: a missing number goes left */
    uint16_t right;
} opi__node;

/* Prediction = base[o] + sum of the trees' leaves. With several outputs leaf i holds leaf[i * n_out + o]; with one
 * the node itself holds it and `leaf` is empty. */
typedef struct opi__forest {
    uint32_t n_trees, n_nodes, n_leaves;
    uint16_t n_features, n_numbers, n_out, reserved;
    uint32_t *root; /* n_trees + 1 node offsets */
    opi__node *node;
    float *leaf;
    float base[4];
} opi__forest;

/* 1 when the structure is sound: offsets ascend, children lie inside their tree, features and leaves in range. */
int opi__forest_check(const opi__forest *f);
/* out: n_out sums for one row. */
void opi__forest_eval(const opi__forest *f, const float *x, double *out);

/* Bins: code 0 = missing, 1 … count for the values (numbers by upper edges, categories one code a bin). */
#define OPI__BINS 64
typedef struct opi__bins {
    size_t n, n_features, n_numbers;
    uint8_t *code;            /* n x n_features */
    float (*edge)[OPI__BINS]; /* per feature: upper edge of bin b at [b - 1], or the category's code */
    uint16_t *count;          /* per feature: bins beside the missing one */
} opi__bins;
/* Fills caller-made arrays from x (n x n_features, row-major). scratch: n floats. */
void opi__bins_build(opi__bins *b, const float *x, float *scratch);
#endif
