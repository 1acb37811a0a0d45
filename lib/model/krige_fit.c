/* SPDX-License-Identifier: Apache-2.0 */
/* Fitting the kriging learner: hyperparameters by marginal likelihood, one factorization, and from its inverse the
 * residual of every row without its cell, its combination, its GPU, its family, its campaign. */
#include "base/linalg.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "model/kriged.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEARN_ROWS  700
#define LEARN_STEPS 60
#define LEARN_RATE  .08
#define CELL_FOLDS  10

typedef struct training {
    opi_ctx *ctx;
    const opi__fit_job *job;
    size_t n;
    double *x, *y, *c, *work;
    float *near[1 + OPI__HELD_KINDS];
    uint32_t *block[1 + OPI__HELD_KINDS];
    double *held[1 + OPI__HELD_KINDS], *variance[1 + OPI__HELD_KINDS];
    opi__kriged *out;
} training;

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int32_t scale_rows(training *t)
{
    const uint32_t *logs = t->out->logs;
    double *column = opi__alloc(t->ctx, t->n, sizeof *column), *scale = t->out->scale;
    if (!column)
        return OPI_E_NOMEM;
    for (int d = 0; d < OPI__DIMS; d++) {
        size_t have = 0;
        double sum = 0, square = 0;
        for (size_t i = 0; i < t->n; i++) {
            double v = (double)t->job->data->x[(size_t)t->job->row[i] * OPI__FEATURES + (size_t)d];
            if (logs[d / 32] >> (d % 32) & 1 && v > 0)
                v = log(v);
            if (!isnan(v))
                column[have++] = v;
        }
        qsort(column, have, sizeof *column, by_number);
        scale[d * 3] = have ? column[have / 2] : 0;
        for (size_t i = 0; i < have; i++)
            sum += column[i];
        sum += (double)(t->n - have) * scale[d * 3];
        double mean = sum / (double)t->n;
        for (size_t i = 0; i < have; i++)
            square += (column[i] - mean) * (column[i] - mean);
        square += (double)(t->n - have) * (scale[d * 3] - mean) * (scale[d * 3] - mean);
        double deviation = sqrt(square / (double)t->n);
        scale[d * 3 + 1] = mean;
        scale[d * 3 + 2] = deviation > 1e-9 ? 1 / deviation : 0; /* a constant column says nothing */
    }
    opi__free(t->ctx, column);
    float *x = (float *)(uintptr_t)t->out->k.x;
    uint32_t *key = (uint32_t *)(uintptr_t)t->out->k.key;
    double total = 0;
    for (size_t i = 0; i < t->n; i++) {
        size_t row = t->job->row[i];
        opi__krige_point(scale, logs, &t->job->data->x[row * OPI__FEATURES], x + i * OPI__DIMS);
        opi__krige_keys(t->out, &t->job->data->x[row * OPI__FEATURES], &t->job->data->code[row * OPI__CATEGORIES],
                        t->job->data->source[row], key + i * OPI__KEYS);
        for (int d = 0; d < OPI__DIMS; d++)
            t->x[i * OPI__DIMS + (size_t)d] = (double)x[i * OPI__DIMS + (size_t)d];
        t->y[i] = t->job->data->y[t->job->target][row];
        total += t->y[i];
    }
    t->out->k.mean = total / (double)t->n;
    for (size_t i = 0; i < t->n; i++)
        t->y[i] -= t->out->k.mean;
    return OPI_OK;
}

/* Dense numbers of equal keys. */
typedef struct keyed {
    uint64_t key;
    uint32_t at;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : (x->at > y->at) - (x->at < y->at);
}

/* Cells are left out a fold at a time: some come in twins (a scenario and its variant), and one that always has its twin
 * beside it is too easy. */
static uint64_t fold_of(const training *t, size_t row)
{
    return opi__mix64(t->job->data->cell[row] ^ opi__mix64(t->job->seed + 11)) % CELL_FOLDS;
}

static int32_t number_blocks(training *t)
{
    keyed *k = opi__alloc(t->ctx, t->n, sizeof *k);
    if (!k)
        return OPI_E_NOMEM;
    for (int b = 0; b < 1 + OPI__HELD_KINDS; b++) {
        for (size_t i = 0; i < t->n; i++)
            k[i] = (keyed){b ? opi__held_key(t->job->data, b - 1, t->job->row[i]) : fold_of(t, t->job->row[i]),
                           (uint32_t)i};
        qsort(k, t->n, sizeof *k, by_key);
        uint32_t number = 0;
        for (size_t i = 0; i < t->n; i++) {
            number += i && k[i].key != k[i - 1].key;
            t->block[b][k[i].at] = number;
        }
    }
    opi__free(t->ctx, k);
    return OPI_OK;
}

static int32_t solve(training *t, opi_error *err)
{
    const opi__krige_options o = {LEARN_ROWS, LEARN_STEPS, LEARN_RATE, t->job->seed, t->job->stop, t->job->user};
    opi__kernel *k = &t->out->k.kernel;
    size_t n = t->n, learn = opi__krige_learn_work(&o, n), cross = opi__kernel_work(n, n);
    opi__points p = {n, t->x, t->out->k.key};
    t->work = opi__alloc(t->ctx, learn > cross ? learn : cross, sizeof *t->work);
    if (!t->work)
        return opi__fail_memory(err, cross * sizeof *t->work);
    opi__kernel_start(k);
    opi__krige_learn(&o, &p, t->y, t->work, k);
    t->c = opi__alloc(t->ctx, n * n, sizeof *t->c);
    if (!t->c)
        return opi__fail_memory(err, n * n * sizeof *t->c);
    double *weight = (double *)(uintptr_t)t->out->k.weight;
    for (int again = 0;; again++) { /* rows that repeat each other exactly need some noise to be told apart */
        opi__kernel_cross(k, &p, &p, 1, t->work, t->c);
        for (size_t i = 0; i < n; i++)
            t->c[i * n + i] += opi__kernel_noise(k, t->out->k.key + i * OPI__KEYS);
        if (!opi__cholesky(n, t->c))
            break;
        if (again == 8)
            return opi__fail(err, OPI_E_NODATA, -1, "the covariance of %zu rows stays singular", n);
        k->noise += 1;
    }
    memcpy(weight, t->y, n * sizeof *weight);
    opi__solve_cholesky(n, 1, t->c, weight);
    return OPI_OK;
}

static int32_t hold_out(training *t, opi_error *err)
{
    size_t n = t->n;
    uint32_t *order = opi__alloc(t->ctx, n, sizeof *order);
    int32_t status = order ? OPI_OK : OPI_E_NOMEM;
    opi__inverse(n, t->c);
    for (int b = 0; b < 1 + OPI__HELD_KINDS && !status; b++) {
        double *work = opi__alloc(t->ctx, opi__krige_blocks_work(n, t->block[b]), sizeof *work);
        if (!work || opi__krige_blocks(n, t->c, t->out->k.weight, t->block[b], order, work, t->held[b], t->variance[b]))
            status = OPI_E_NOMEM;
        opi__free(t->ctx, work);
    }
    opi__free(t->ctx, order);
    if (status)
        return opi__fail_memory(err, n * n * sizeof(double));
    opi__points p = {n, t->x, t->out->k.key};
    opi__kernel_near(&t->out->k.kernel, &p, 1 + OPI__HELD_KINDS, (const uint32_t *const *)t->block, t->work, t->near);
    return OPI_OK;
}

/* The exact spreads of all held-out rows, of every kind, teach the forest what is due to distance alone: where the
 * campaign was left out too, its part is taken off, and opi__krige_spread puts it back. */
static int32_t learn_spread(training *t)
{
    size_t n = t->n, all = n * (1 + OPI__HELD_KINDS);
    opi__bins bins = {.n = all, .n_features = OPI__NEARS, .n_numbers = OPI__NEARS};
    float *x = opi__alloc(t->ctx, all * OPI__NEARS, sizeof *x), *scratch = opi__alloc(t->ctx, all, sizeof *scratch);
    double *y = opi__alloc(t->ctx, all, sizeof *y);
    uint32_t *row = opi__alloc(t->ctx, all, sizeof *row);
    bins.code = opi__alloc(t->ctx, all * OPI__NEARS, 1);
    bins.edge = opi__alloc(t->ctx, OPI__NEARS, sizeof *bins.edge);
    bins.count = opi__alloc(t->ctx, OPI__NEARS, sizeof *bins.count);
    int32_t status = x && scratch && y && row && bins.code && bins.edge && bins.count ? OPI_OK : OPI_E_NOMEM;
    if (!status) {
        for (int b = 0; b < 1 + OPI__HELD_KINDS; b++)
            for (size_t i = 0; i < n; i++) {
                memcpy(x + ((size_t)b * n + i) * OPI__NEARS, t->near[b] + i * OPI__NEARS, OPI__NEARS * sizeof *x);
                double whole = t->variance[b][i], *to = &y[(size_t)b * n + i];
                if (t->near[b][i * OPI__NEARS + OPI__LEVELS] == 0)
                    whole -= opi__krige_site_variance(&t->out->k.kernel);
                *to = .5 * log(fmax(whole, OPI__LEAST_SPREAD * OPI__LEAST_SPREAD));
                row[(size_t)b * n + i] = (uint32_t)((size_t)b * n + i);
            }
        for (size_t i = 0; i < all; i++) /* not a feature: opi__krige_spread looks at it apart */
            x[i * OPI__NEARS + OPI__LEVELS] = 0;
        opi__bins_build(&bins, x, scratch);
        const opi__boost_params p = {.loss = OPI__LOSS_HUBER,
                                     .trees = 80,
                                     .leaves = 16,
                                     .depth = 8,
                                     .rate = .15,
                                     .l2 = 4,
                                     .min_weight = 10,
                                     .row_share = .5,
                                     .column_share = 1,
                                     .huber = 6,
                                     .seed = t->job->seed ^ 77};
        status = opi__forest_grow(t->ctx, &p, &bins, row, all, y, t->job->stop, t->job->user, &t->out->spread);
    }
    void *parts[] = {x, scratch, y, row, bins.code, bins.edge, bins.count};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        opi__free(t->ctx, parts[i]);
    return status;
}

static void give_held(const training *t)
{
    const opi__held_out *h = t->job->held;
    for (size_t i = 0; i < t->n && h; i++) {
        double y = t->job->data->y[t->job->target][t->job->row[i]];
        h->location[i] = y - t->held[0][i];
        h->spread[i] = opi__krige_spread(t->out, t->near[0] + i * OPI__NEARS);
        for (int k = 0; k < OPI__HELD_KINDS; k++)
            h->kind[k][i] = t->held[k + 1][i] / opi__krige_spread(t->out, t->near[k + 1] + i * OPI__NEARS);
    }
}

static int32_t prepare(training *t)
{
    opi_ctx *ctx = t->ctx;
    size_t n = t->n;
    opi__kriged *k = t->out;
    opi__krige_columns(k);
    k->k.n = n;
    k->k.x = opi__alloc(ctx, n * OPI__DIMS, sizeof(float));
    k->k.key = opi__alloc(ctx, n * OPI__KEYS, sizeof(uint32_t));
    k->k.weight = opi__alloc(ctx, n, sizeof(double));
    k->scale = opi__alloc(ctx, OPI__DIMS * 3, sizeof(double));
    t->x = opi__alloc(ctx, n * OPI__DIMS, sizeof *t->x);
    t->y = opi__alloc(ctx, n, sizeof *t->y);
    int fine = k->k.x && k->k.key && k->k.weight && k->scale && t->x && t->y;
    for (int b = 0; b < 1 + OPI__HELD_KINDS; b++) {
        t->near[b] = opi__alloc(ctx, n * OPI__NEARS, sizeof(float));
        t->block[b] = opi__alloc(ctx, n, sizeof(uint32_t));
        t->held[b] = opi__alloc(ctx, n, sizeof(double));
        t->variance[b] = opi__alloc(ctx, n, sizeof(double));
        fine = fine && t->near[b] && t->block[b] && t->held[b] && t->variance[b];
    }
    return fine ? OPI_OK : OPI_E_NOMEM;
}

int32_t opi__krige_fit(opi_ctx *ctx, const opi__fit_job *job, void **state, opi_error *err)
{
    training t = {.ctx = ctx, .job = job, .n = job->n, .out = opi__zalloc(ctx, 1, sizeof(opi__kriged))};
    if (!t.out)
        return opi__fail_memory(err, sizeof(opi__kriged));
    int32_t status = prepare(&t);
    if (!status)
        status = scale_rows(&t);
    if (!status)
        status = number_blocks(&t);
    if (!status)
        status = solve(&t, err);
    if (!status)
        status = hold_out(&t, err);
    if (!status)
        status = learn_spread(&t);
    if (!status) {
        opi__krige_ready(&t.out->k);
        give_held(&t);
    }
    opi__free(ctx, t.x);
    opi__free(ctx, t.y);
    opi__free(ctx, t.c);
    opi__free(ctx, t.work);
    for (int b = 0; b < 1 + OPI__HELD_KINDS; b++) {
        opi__free(ctx, t.near[b]);
        opi__free(ctx, t.block[b]);
        opi__free(ctx, t.held[b]);
        opi__free(ctx, t.variance[b]);
    }
    if (status) {
        opi__krige_release(ctx, t.out);
        return status;
    }
    *state = t.out;
    return OPI_OK;
}
