/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/boost.h"
#include "base/rng.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OUT 3
#define STAT    (MAX_OUT + 1) /* gradient sums, then the weight */

typedef struct split {
    double gain;
    uint16_t feature, bin; /* bin: last code that goes left, or the category that does */
    int missing_left;
} split;
typedef struct part { /* a leaf while the tree grows, then a node of it */
    size_t begin, end;
    uint32_t depth;
    double sum[STAT];
    split best;
    double *hist;
    int32_t left, right; /* parts; -1 = leaf */
    float output[MAX_OUT];
} part;
typedef struct grower {
    const opi__boost_params *p;
    const opi__bins *bins;
    const uint32_t *row;
    const double *y, *w;
    size_t n;
    int n_out;
    double *pred, *grad, *scratch, *pool;
    uint32_t *index, *spare, *rest; /* sampled rows by leaf; scratch; rows the tree did not sample */
    size_t n_rest;
    uint16_t *column;
    uint32_t *at; /* where a column's bins begin in a histogram, which has no room for bins a feature does not have */
    size_t n_columns, hist_size;
    part *parts;
    opi__rng rng;
    double cut; /* Huber's threshold */
} grower;

static int outputs(const opi__boost_params *p)
{
    return p->loss == OPI__LOSS_HUBER ? 1 : MAX_OUT;
}
static size_t padded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t opi__boost_max_leaves(const opi__boost_params *p)
{
    return outputs(p) > 1 ? (size_t)p->trees * p->leaves : 0;
}
size_t opi__boost_max_nodes(const opi__boost_params *p)
{
    return (size_t)p->trees * (2 * (size_t)p->leaves - 1);
}

static size_t hist_doubles(const opi__boost_params *p, size_t n_features)
{
    return n_features * OPI__BINS * (size_t)(outputs(p) + 1);
}

size_t opi__boost_workspace(const opi__boost_params *p, size_t n, size_t n_features)
{
    size_t out = (size_t)outputs(p);
    return 2 * padded(n * out * sizeof(double)) + padded(n * sizeof(double)) + 3 * padded(n * sizeof(uint32_t)) +
           padded(n_features * sizeof(uint16_t)) + padded(n_features * sizeof(uint32_t)) +
           padded(2 * (size_t)p->leaves * sizeof(part)) +
           padded(((size_t)p->leaves + 1) * hist_doubles(p, n_features) * sizeof(double)) + 64;
}

static void *carve(char **at, size_t bytes)
{
    void *p = *at;
    *at += padded(bytes);
    return p;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double weight(const grower *g, size_t i)
{
    return g->w ? g->w[g->row[i]] : 1;
}

/* Start: the mean for Huber's loss; median and log gaps to the outer quantiles for the quantile loss. */
static void start(grower *g, opi__forest *out)
{
    double sum = 0, total = 0;
    for (size_t i = 0; i < g->n; i++) {
        g->scratch[i] = g->y[g->row[i]];
        sum += weight(g, i) * g->scratch[i];
        total += weight(g, i);
    }
    memset(out->base, 0, sizeof out->base);
    if (g->p->loss == OPI__LOSS_HUBER) {
        out->base[0] = (float)(total > 0 ? sum / total : 0);
    } else if (g->n) {
        qsort(g->scratch, g->n, sizeof(double), ascending);
        double lo = g->scratch[(size_t)(.1 * (double)(g->n - 1))], mid = g->scratch[(g->n - 1) / 2];
        double hi = g->scratch[(size_t)ceil(.9 * (double)(g->n - 1))], least = 1e-4 + 1e-3 * fabs(mid);
        out->base[0] = (float)mid;
        out->base[1] = (float)log(fmax(mid - lo, least));
        out->base[2] = (float)log(fmax(hi - mid, least));
    }
    for (size_t i = 0; i < g->n; i++)
        for (int o = 0; o < g->n_out; o++)
            g->pred[i * (size_t)g->n_out + (size_t)o] = out->base[o];
}

/* Gradients of the loss with respect to the outputs, each scaled so that a unit second derivative fits (the log
 * gaps' is about a third: density times gap of a bell shape at its outer quantiles). */
static void gradients(grower *g)
{
    for (size_t i = 0; i < g->n; i++) {
        double w = weight(g, i), r;
        if (g->p->loss == OPI__LOSS_HUBER) {
            r = g->pred[i] - g->y[g->row[i]];
            g->grad[i] = w * (r > g->cut ? g->cut : r < -g->cut ? -g->cut : r);
            continue;
        }
        const double *q = &g->pred[i * MAX_OUT];
        double z = g->y[g->row[i]] - q[0];
        double below = (z < -exp(q[1]) ? 1 : 0) - .1, mid = (z < 0 ? 1 : 0) - .5, above = (z < exp(q[2]) ? 1 : 0) - .9;
        double *d = &g->grad[i * MAX_OUT];
        d[0] = w * (below + mid + above);
        d[1] = w * -3 * below;
        d[2] = w * 3 * above;
    }
}

static void huber_cut(grower *g)
{
    for (size_t i = 0; i < g->n; i++)
        g->scratch[i] = fabs(g->pred[i] - g->y[g->row[i]]);
    qsort(g->scratch, g->n, sizeof(double), ascending);
    g->cut = fmax(g->p->huber * g->scratch[g->n / 2], 1e-9);
}

/* The common case apart: one output, no weights. */
static void fill_hist_plain(const grower *g, part *leaf)
{
    size_t nf = g->bins->n_features;
    for (size_t j = leaf->begin; j < leaf->end; j++) {
        size_t i = g->index[j];
        const uint8_t *code = &g->bins->code[(size_t)g->row[i] * nf];
        double d = g->grad[i];
        for (size_t c = 0; c < g->n_columns; c++) {
            double *at = &leaf->hist[g->at[c] + 2 * (size_t)code[g->column[c]]];
            at[0] += d;
            at[1] += 1;
        }
    }
}

static void fill_hist(const grower *g, part *leaf)
{
    size_t s = (size_t)g->n_out + 1, nf = g->bins->n_features;
    memset(leaf->hist, 0, g->hist_size * sizeof(double));
    if (g->n_out == 1 && !g->w) {
        fill_hist_plain(g, leaf);
        return;
    }
    for (size_t j = leaf->begin; j < leaf->end; j++) {
        size_t i = g->index[j];
        const uint8_t *code = &g->bins->code[(size_t)g->row[i] * nf];
        double w = weight(g, i);
        const double *d = &g->grad[i * (size_t)g->n_out];
        for (size_t c = 0; c < g->n_columns; c++) {
            double *h = &leaf->hist[g->at[c] + code[g->column[c]] * s];
            for (int o = 0; o < g->n_out; o++)
                h[o] += d[o];
            h[g->n_out] += w;
        }
    }
}

static void sum_leaf(const grower *g, part *leaf)
{
    memset(leaf->sum, 0, sizeof leaf->sum);
    for (size_t j = leaf->begin; j < leaf->end; j++) {
        size_t i = g->index[j];
        for (int o = 0; o < g->n_out; o++)
            leaf->sum[o] += g->grad[i * (size_t)g->n_out + (size_t)o];
        leaf->sum[g->n_out] += weight(g, i);
    }
}

static double score(const grower *g, const double *sum)
{
    double v = 0;
    for (int o = 0; o < g->n_out; o++)
        v += sum[o] * sum[o];
    return v / (sum[g->n_out] + g->p->l2);
}

static void consider(const grower *g, part *leaf, const double *left, size_t c, int bin, int missing_left)
{
    double right[STAT];
    for (int o = 0; o <= g->n_out; o++)
        right[o] = leaf->sum[o] - left[o];
    if (left[g->n_out] < g->p->min_weight || right[g->n_out] < g->p->min_weight)
        return;
    double gain = score(g, left) + score(g, right) - score(g, leaf->sum);
    if (gain > leaf->best.gain + 1e-12) {
        leaf->best.gain = gain;
        leaf->best.feature = g->column[c];
        leaf->best.bin = (uint16_t)bin;
        leaf->best.missing_left = missing_left;
    }
}

static void find_split(const grower *g, part *leaf)
{
    size_t s = (size_t)g->n_out + 1;
    memset(&leaf->best, 0, sizeof leaf->best);
    if (leaf->depth >= g->p->depth || leaf->sum[g->n_out] < 2 * g->p->min_weight)
        return;
    for (size_t c = 0; c < g->n_columns; c++) {
        const double *h = &leaf->hist[g->at[c]];
        unsigned k = g->column[c], bins = g->bins->count[k];
        if (k >= g->bins->n_numbers) { /* one category against the rest; code 0 (never seen) always goes right */
            for (unsigned b = 1; b <= bins; b++)
                if (h[b * s + (size_t)g->n_out] > 0)
                    consider(g, leaf, &h[b * s], c, (int)b, 0);
            continue;
        }
        double left[STAT] = {0}, with[STAT];
        int missing = h[g->n_out] > 0;
        for (unsigned b = 1; b <= bins; b++) {
            if (!(h[b * s + (size_t)g->n_out] > 0) && b < bins)
                continue; /* an empty bin: the same two sides as before it */
            for (int o = 0; o <= g->n_out; o++)
                left[o] += h[b * s + (size_t)o];
            if (b < bins)
                consider(g, leaf, left, c, (int)b, 0);
            if (!missing)
                continue;
            for (int o = 0; o <= g->n_out; o++)
                with[o] = left[o] + h[o];
            if (b < bins)
                consider(g, leaf, with, c, (int)b, 1);
            else
                consider(g, leaf, left, c, (int)b, 0); /* present against missing */
        }
    }
}

static int goes_left(const opi__bins *bins, const split *s, const uint8_t *code)
{
    unsigned b = code[s->feature];
    if (s->feature >= bins->n_numbers)
        return b == s->bin;
    return b ? b <= s->bin : s->missing_left;
}

/* Stable partition of a leaf's rows; returns the middle. */
static size_t partition(grower *g, const part *leaf)
{
    size_t at = leaf->begin, kept = 0;
    for (size_t j = leaf->begin; j < leaf->end; j++) {
        uint32_t i = g->index[j];
        if (goes_left(g->bins, &leaf->best, &g->bins->code[(size_t)g->row[i] * g->bins->n_features]))
            g->index[at++] = i;
        else
            g->spare[kept++] = i;
    }
    memcpy(&g->index[at], g->spare, kept * sizeof(uint32_t));
    return at;
}

/* Splits parts[k] in two; the smaller child's histogram is counted, the larger one's is the difference. */
static void divide(grower *g, int32_t k, int32_t *n_parts, double *fresh)
{
    part *p = &g->parts[k], *a = &g->parts[*n_parts], *b = a + 1;
    size_t mid = partition(g, p);
    a->begin = p->begin, a->end = b->begin = mid, b->end = p->end;
    a->depth = b->depth = p->depth + 1;
    a->left = a->right = b->left = b->right = -1;
    sum_leaf(g, a);
    sum_leaf(g, b);
    part *small = a->end - a->begin <= b->end - b->begin ? a : b, *large = small == a ? b : a;
    small->hist = fresh;
    large->hist = p->hist;
    fill_hist(g, small);
    for (size_t i = 0; i < g->hist_size; i++)
        large->hist[i] -= small->hist[i];
    p->left = *n_parts;
    p->right = *n_parts + 1;
    *n_parts += 2;
    find_split(g, a);
    find_split(g, b);
}

/* Samples columns and rows of one tree. */
static size_t sample(grower *g)
{
    size_t nf = g->bins->n_features, want = (size_t)(g->p->column_share * (double)nf + .5), taken = 0;
    if (want < 1)
        want = 1;
    for (size_t k = 0; k < nf; k++) /* selection sampling: in order, so that ties resolve the same way always */
        if (opi__rng_uniform(&g->rng) * (double)(nf - k) < (double)(want - taken))
            g->column[taken++] = (uint16_t)k;
    g->n_columns = taken;
    g->hist_size = 0;
    for (size_t c = 0; c < taken; c++) {
        g->at[c] = (uint32_t)g->hist_size;
        g->hist_size += ((size_t)g->bins->count[g->column[c]] + 1) * (size_t)(g->n_out + 1);
    }
    size_t rows = (size_t)(g->p->row_share * (double)g->n + .5), m = 0;
    if (rows < 1)
        rows = 1;
    g->n_rest = 0;
    for (size_t i = 0; i < g->n; i++) {
        if (opi__rng_uniform(&g->rng) * (double)(g->n - i) < (double)(rows - m))
            g->index[m++] = (uint32_t)i;
        else
            g->rest[g->n_rest++] = (uint32_t)i;
    }
    return m;
}

static int32_t grow(grower *g)
{
    int32_t n_parts = 1;
    size_t stride = hist_doubles(g->p, g->bins->n_features), used = 1;
    part *root = &g->parts[0];
    root->begin = 0, root->end = sample(g);
    root->depth = 0;
    root->left = root->right = -1;
    root->hist = g->pool;
    sum_leaf(g, root);
    fill_hist(g, root);
    find_split(g, root);
    for (uint32_t leaves = 1; leaves < g->p->leaves; leaves++) {
        int32_t best = -1;
        for (int32_t k = 0; k < n_parts; k++)
            if (g->parts[k].left < 0 && g->parts[k].best.gain > 1e-10 &&
                (best < 0 || g->parts[k].best.gain > g->parts[best].best.gain))
                best = k;
        if (best < 0)
            break;
        divide(g, best, &n_parts, g->pool + stride * used++);
    }
    return n_parts;
}

/* Leaf outputs: a Newton step, shrunk. The median of the quantile loss moves in units of the leaf's own gap. */
static void leaf_value(const grower *g, const part *leaf, float *value)
{
    double gap = 1, total = leaf->sum[g->n_out] + g->p->l2;
    if (g->p->loss == OPI__LOSS_QUANTILES) {
        gap = 0;
        for (size_t j = leaf->begin; j < leaf->end; j++) {
            const double *q = &g->pred[(size_t)g->index[j] * MAX_OUT];
            gap += .5 * (exp(q[1]) + exp(q[2]));
        }
        gap /= (double)(leaf->end > leaf->begin ? leaf->end - leaf->begin : 1);
    }
    for (int o = 0; o < g->n_out; o++)
        value[o] = (float)(-g->p->rate * leaf->sum[o] / (total > 0 ? total : 1) * (o == 0 ? gap : 1));
}

/* Writes the parts below k in preorder. Returns the nodes written. */
static uint32_t emit(grower *g, int32_t k, opi__forest *out)
{
    part *p = &g->parts[k];
    uint32_t at = out->n_nodes++;
    opi__node *node = &out->node[at];
    memset(node, 0, sizeof *node);
    if (p->left < 0) {
        leaf_value(g, p, p->output);
        node->value = out->n_out == 1 ? p->output[0] : (float)out->n_leaves;
        if (out->n_out > 1)
            memcpy(&out->leaf[(size_t)out->n_leaves++ * out->n_out], p->output, out->n_out * sizeof(float));
        return 1;
    }
    int category = p->best.feature >= g->bins->n_numbers;
    node->value = g->bins->edge[p->best.feature][p->best.bin - 1];
    node->feature = (uint16_t)(p->best.feature | (!category && p->best.missing_left ? OPI__MISSING_LEFT : 0));
    uint32_t left = emit(g, p->left, out);
    node->right = (uint16_t)(1 + left);
    return 1 + left + emit(g, p->right, out);
}

static void add_output(grower *g, size_t i, const part *leaf)
{
    for (int o = 0; o < g->n_out; o++)
        g->pred[i * (size_t)g->n_out + (size_t)o] += (double)leaf->output[o];
}

/* Sampled rows lie sorted by leaf already; only the others walk the tree. */
static void update(grower *g, int32_t n_parts)
{
    for (int32_t k = 0; k < n_parts; k++)
        for (size_t j = g->parts[k].begin; j < g->parts[k].end && g->parts[k].left < 0; j++)
            add_output(g, g->index[j], &g->parts[k]);
    for (size_t r = 0; r < g->n_rest; r++) {
        size_t i = g->rest[r];
        const uint8_t *code = &g->bins->code[(size_t)g->row[i] * g->bins->n_features];
        int32_t k = 0;
        while (g->parts[k].left >= 0)
            k = goes_left(g->bins, &g->parts[k].best, code) ? g->parts[k].left : g->parts[k].right;
        add_output(g, i, &g->parts[k]);
    }
}

uint32_t opi__boost_fit(const opi__boost_params *p, const opi__bins *bins, const uint32_t *row, size_t n,
                        const double *y, const double *w, int (*stop)(void *user), void *user, void *workspace,
                        opi__forest *out)
{
    char *at = (char *)(((uintptr_t)workspace + 63) / 64 * 64);
    size_t n_out = (size_t)outputs(p);
    grower g = {.p = p, .bins = bins, .row = row, .y = y, .w = w, .n = n, .n_out = (int)n_out};
    g.pred = carve(&at, n * n_out * sizeof(double));
    g.grad = carve(&at, n * n_out * sizeof(double));
    g.scratch = carve(&at, n * sizeof(double));
    g.index = carve(&at, n * sizeof(uint32_t));
    g.spare = carve(&at, n * sizeof(uint32_t));
    g.rest = carve(&at, n * sizeof(uint32_t));
    g.column = carve(&at, bins->n_features * sizeof(uint16_t));
    g.at = carve(&at, bins->n_features * sizeof(uint32_t));
    g.parts = carve(&at, 2 * (size_t)p->leaves * sizeof(part));
    g.pool = carve(&at, ((size_t)p->leaves + 1) * hist_doubles(p, bins->n_features) * sizeof(double));
    opi__rng_seed(&g.rng, p->seed);
    out->n_trees = out->n_nodes = out->n_leaves = 0;
    out->n_features = (uint16_t)bins->n_features;
    out->n_numbers = (uint16_t)bins->n_numbers;
    out->n_out = (uint16_t)n_out;
    out->root[0] = 0;
    start(&g, out);
    for (uint32_t t = 0; t < p->trees && n > 0; t++) {
        if (stop && stop(user))
            break;
        if (p->loss == OPI__LOSS_HUBER && t % 10 == 0)
            huber_cut(&g);
        gradients(&g);
        int32_t parts = grow(&g);
        if (parts < 2)
            continue; /* this sample of columns separates nothing; another may */
        emit(&g, 0, out);
        out->root[++out->n_trees] = out->n_nodes;
        update(&g, parts);
    }
    return out->n_trees;
}
