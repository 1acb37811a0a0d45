/* SPDX-License-Identifier: Apache-2.0 */
#include "model/learner.h"
#include "base/mem.h"
#include "base/status.h"
#include <math.h>
#include <string.h>

int32_t opi__forest_grow(opi_ctx *ctx, const opi__boost_params *p, const opi__bins *bins, const uint32_t *row, size_t n,
                         const double *y, int (*stop)(void *), void *user, opi__forest *out)
{
    size_t outputs = p->loss == OPI__LOSS_HUBER ? 1 : 3, nodes = opi__boost_max_nodes(p);
    size_t bytes = opi__boost_workspace(p, n, bins->n_features);
    void *workspace = opi__alloc(ctx, bytes, 1);
    memset(out, 0, sizeof *out);
    out->root = opi__alloc(ctx, (size_t)p->trees + 1, sizeof *out->root);
    out->node = opi__alloc(ctx, nodes, sizeof *out->node);
    out->leaf = opi__alloc(ctx, opi__boost_max_leaves(p) * outputs, sizeof *out->leaf);
    int32_t status = workspace && out->root && out->node && out->leaf ? OPI_OK : OPI_E_NOMEM;
    if (!status)
        opi__boost_fit(p, bins, row, n, y, NULL, stop, user, workspace, out);
    opi__free(ctx, workspace);
    if (status)
        opi__forest_free(ctx, out);
    return status;
}

void opi__forest_free(opi_ctx *ctx, opi__forest *f)
{
    opi__free(ctx, f->root);
    opi__free(ctx, f->node);
    opi__free(ctx, f->leaf);
    memset(f, 0, sizeof *f);
}

void opi__forest_save(const opi__forest *f, opi__writer *w)
{
    opi__write_u32(w, f->n_features);
    opi__write_u32(w, f->n_numbers);
    opi__write_u32(w, f->n_out);
    for (int o = 0; o < 4; o++)
        opi__write_f64(w, (double)f->base[o]);
    opi__write_array(w, f->root, (size_t)f->n_trees + 1, sizeof *f->root);
    opi__write_array(w, f->node, f->n_nodes, sizeof *f->node);
    opi__write_array(w, f->leaf, (size_t)f->n_leaves * f->n_out, sizeof *f->leaf);
}

int32_t opi__forest_load(opi__reader *r, size_t features, opi__forest *out, opi_error *err)
{
    size_t roots, nodes, leaves;
    opi__forest f = {0};
    uint32_t n_features = opi__read_u32(r), n_numbers = opi__read_u32(r), n_out = opi__read_u32(r);
    for (int o = 0; o < 4; o++)
        f.base[o] = (float)opi__read_f64(r);
    f.root = (uint32_t *)opi__read_array(r, sizeof *f.root, 1, 1u << 20, &roots);
    f.node = (opi__node *)opi__read_array(r, sizeof *f.node, 0, 1u << 26, &nodes);
    f.leaf = (float *)opi__read_array(r, sizeof *f.leaf, 0, 1u << 26, &leaves);
    if (r->failed || n_features != features || n_numbers > features || n_out < 1 || n_out > 3 || leaves % n_out)
        return opi__read_error(r, err);
    f.n_features = (uint16_t)n_features, f.n_numbers = (uint16_t)n_numbers, f.n_out = (uint16_t)n_out;
    f.n_trees = (uint32_t)roots - 1, f.n_nodes = (uint32_t)nodes, f.n_leaves = (uint32_t)(leaves / n_out);
    for (size_t i = 0; i < leaves; i++)
        if (!isfinite(f.leaf[i]))
            return opi__read_error(r, err);
    for (int o = 0; o < 4; o++)
        if (!isfinite(f.base[o]))
            return opi__read_error(r, err);
    if (!opi__forest_check(&f))
        return opi__read_error(r, err);
    *out = f;
    return OPI_OK;
}

/* ---- boosting alone: the paper's method, location by a robust squared error ---- */

typedef struct boosted {
    opi__forest forest;
    int32_t borrowed; /* 1: the arrays lie in a loaded block */
} boosted;

static int32_t boost_fit(opi_ctx *ctx, const opi__fit_job *job, void **state, opi_error *err)
{
    /* Measured on the shared table, whole cells held out: more leaves pay only with thousands of rows, and with a
     * hundred rows all but the plainest trees follow noise. */
    opi__boost_params p = {.loss = OPI__LOSS_HUBER,
                           .trees = 500,
                           .leaves = 24,
                           .depth = 14,
                           .rate = .065,
                           .l2 = 1,
                           .min_weight = 2,
                           .row_share = .8,
                           .column_share = .5,
                           .huber = 4,
                           .seed = job->seed};
    if (job->n >= 3000)
        p.trees = 600, p.leaves = 56, p.l2 = 4;
    if (job->n < 200)
        p.trees = 120, p.leaves = 5, p.min_weight = 6, p.l2 = 3;
    boosted *b = opi__zalloc(ctx, 1, sizeof *b);
    if (!b)
        return opi__fail_memory(err, sizeof *b);
    int32_t status = opi__forest_grow(ctx, &p, &job->data->bins, job->row, job->n, job->data->y[job->target], job->stop,
                                      job->user, &b->forest);
    if (status) {
        opi__free(ctx, b);
        return opi__fail_memory(err, opi__boost_workspace(&p, job->n, job->data->bins.n_features));
    }
    *state = b;
    return OPI_OK;
}

static void boost_predict(const void *state, const float *x, const int32_t *code, int32_t site, double *mean,
                          double *spread)
{
    (void)code;
    (void)site;
    opi__forest_eval(&((const boosted *)state)->forest, x, mean);
    *spread = 1;
}

static void boost_save(const void *state, opi__writer *w)
{
    opi__forest_save(&((const boosted *)state)->forest, w);
}

static int32_t boost_load(opi_ctx *ctx, opi__reader *r, void **state, opi_error *err)
{
    boosted *b = opi__zalloc(ctx, 1, sizeof *b);
    if (!b)
        return opi__fail_memory(err, sizeof *b);
    int32_t status = opi__forest_load(r, OPI__FEATURES, &b->forest, err);
    if (!status && b->forest.n_out != 1)
        status = opi__read_error(r, err);
    if (status) {
        opi__free(ctx, b);
        return status;
    }
    b->borrowed = 1;
    *state = b;
    return OPI_OK;
}

static void boost_release(opi_ctx *ctx, void *state)
{
    boosted *b = state;
    if (b && !b->borrowed)
        opi__forest_free(ctx, &b->forest);
    opi__free(ctx, b);
}

static const opi__learner boosting = {"boost", 0, boost_fit, boost_predict, NULL, NULL, boost_save, boost_load, boost_release};
static const opi__learner *const learners[] = {&boosting, &opi__learner_krige};

const opi__learner *opi__learner_find(const char *name)
{
    if (!name)
        return learners[0];
    for (size_t i = 0; i < sizeof learners / sizeof *learners; i++)
        if (!strcmp(learners[i]->name, name))
            return learners[i];
    return NULL;
}
