/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/tree.h"
#include <math.h>
#include <stdlib.h>

static int leaf_sound(const opi__forest *f, float value)
{
    if (f->n_out == 1)
        return isfinite(value) != 0;
    return value >= 0 && value < (float)f->n_leaves && value == floorf(value);
}

int opi__forest_check(const opi__forest *f)
{
    if (f->n_out < 1 || f->n_out > 4 || f->n_numbers > f->n_features || f->n_features > OPI__FEATURE_MASK)
        return 0;
    if (f->root[0] != 0 || f->root[f->n_trees] != f->n_nodes)
        return 0;
    for (uint32_t t = 0; t < f->n_trees; t++) {
        uint32_t begin = f->root[t], end = f->root[t + 1];
        if (end <= begin || end > f->n_nodes)
            return 0;
        for (uint32_t i = begin; i < end; i++) {
            const opi__node *n = &f->node[i];
            if (n->right == 0) {
                if (!leaf_sound(f, n->value))
                    return 0;
            } else if (n->right < 2 || n->right >= end - i || (n->feature & OPI__FEATURE_MASK) >= f->n_features ||
                       isnan(n->value)) {
                return 0;
            }
        }
    }
    return 1;
}

void opi__forest_eval(const opi__forest *f, const float *x, double *out)
{
    for (int o = 0; o < f->n_out; o++)
        out[o] = f->base[o];
    for (uint32_t t = 0; t < f->n_trees; t++) {
        const opi__node *n = &f->node[f->root[t]];
        while (n->right) {
            unsigned k = n->feature & OPI__FEATURE_MASK;
            float v = x[k];
            int left = k >= f->n_numbers ? v == n->value
                       : isnan(v)        ? (n->feature & OPI__MISSING_LEFT) != 0
                                         : v <= n->value;
            n += left ? 1 : n->right;
        }
        if (f->n_out == 1) {
            out[0] += n->value;
            continue;
        }
        const float *leaf = &f->leaf[(size_t)n->value * f->n_out];
        for (int o = 0; o < f->n_out; o++)
            out[o] += leaf[o];
    }
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Cuts sorted values into at most OPI__BINS - 1 bins of similar counts, never inside a run of equal values; an edge
 * is the middle between neighbors, so that a value never measured falls on the nearer side. */
static uint16_t cut(const float *v, size_t n, float *edge, int category)
{
    size_t distinct = n > 0;
    for (size_t i = 1; i < n; i++)
        distinct += v[i] != v[i - 1];
    size_t most = OPI__BINS - 1, per_bin = distinct <= most ? 1 : (n + most - 1) / most, filled = 0;
    uint16_t bins = 0;
    for (size_t i = 0; i < n; i++) {
        filled++;
        int last = i + 1 == n;
        if (!last && v[i + 1] == v[i])
            continue;
        if (last || filled >= per_bin) {
            if (bins == most)
                bins--; /* the last bin takes what is left */
            edge[bins++] = category ? v[i] : last ? INFINITY : v[i] + (v[i + 1] - v[i]) / 2;
            filled = 0;
        }
    }
    return bins;
}

static uint8_t code_of(const float *edge, uint16_t bins, float v, int category)
{
    if (isnan(v))
        return 0;
    uint16_t lo = 0, hi = bins;
    while (lo < hi) {
        uint16_t mid = (uint16_t)((lo + hi) / 2);
        if (edge[mid] < v)
            lo = (uint16_t)(mid + 1);
        else
            hi = mid;
    }
    if (category)
        return lo < bins && edge[lo] == v ? (uint8_t)(lo + 1) : 0;
    return lo < bins ? (uint8_t)(lo + 1) : (uint8_t)bins;
}

void opi__bins_build(opi__bins *b, const float *x, float *scratch)
{
    for (size_t k = 0; k < b->n_features; k++) {
        size_t m = 0;
        int category = k >= b->n_numbers;
        for (size_t i = 0; i < b->n; i++) {
            float v = x[i * b->n_features + k];
            if (!isnan(v))
                scratch[m++] = v;
        }
        if (m)
            qsort(scratch, m, sizeof(float), by_value);
        b->count[k] = cut(scratch, m, b->edge[k], category);
        for (size_t i = 0; i < b->n; i++)
            b->code[i * b->n_features + k] = code_of(b->edge[k], b->count[k], x[i * b->n_features + k], category);
    }
}
