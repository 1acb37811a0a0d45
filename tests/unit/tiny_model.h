/* SPDX-License-Identifier: Apache-2.0 */
/* A complete model of a few kilobytes, made in milliseconds: real dictionaries, envelope and learner state, but two
 * trees a forest, few scores and few anchors. For tests that damage every bit of a file. Needs model_world.h's
 * table. */
#ifndef TEST_TINY_MODEL_H
#define TEST_TINY_MODEL_H
#include "base/ctx.h"
#include "base/mem.h"
#include "learn/conformal.h"
#include "model/fit.h"
#include "model_world.h"

static inline int tiny_stop(void *user)
{
    int *left = user;
    return (*left)-- == 0;
}

static inline int32_t tiny_target(opi_ctx *ctx, const opi__dataset *d, const uint32_t *row, opi_model *m, int32_t t)
{
    opi__target_model *g = &m->target[t];
    int left = 2;
    opi__fit_job job = {.data = d, .target = t, .row = row, .n = d->n, .seed = 5, .stop = tiny_stop, .user = &left};
    opi__boost_params p = {.loss = OPI__LOSS_QUANTILES, .trees = 2, .leaves = 3, .depth = 2, .rate = .1, .l2 = 5,
                           .min_weight = 5, .row_share = 1, .column_share = 1, .seed = 6};
    opi__rng rng;
    int32_t status = m->learner->fit(ctx, &job, &g->state, NULL);
    if (!status)
        status = opi__forest_grow(ctx, &p, &d->bins, row, d->n, d->y[t], NULL, NULL, &g->head);
    g->group = opi__alloc(ctx, 3, sizeof *g->group);
    g->score = opi__alloc(ctx, 40, sizeof *g->score);
    if (status || !g->group || !g->score)
        return OPI_E_NOMEM;
    opi__rng_seed(&rng, 7);
    for (int i = 0; i < 40; i++)
        g->score[i] = (float)opi__rng_normal(&rng);
    const struct {
        int novelty, level;
        uint32_t first, count;
    } groups[] = {{OPI__N_KNOWN, 2, 0, 10}, {OPI__N_KNOWN, 3, 10, 20}, {OPI__N_COMBINATION, 3, 30, 10}};
    for (int i = 0; i < 3; i++) {
        g->group[i] = (opi__group){opi__group_key(groups[i].novelty, groups[i].level, d->code), groups[i].first,
                                   groups[i].count};
        opi__conformal_sort(&g->score[groups[i].first], groups[i].count);
    }
    g->n_groups = 3, g->n_scores = 40;
    return OPI_OK;
}

/* NULL on failure. Owner: the caller, opi_model_free. */
static inline opi_model *tiny_model(opi_ctx *ctx)
{
    static const char manifest[] = "{\"schema_version\": 1}";
    const world w = {.targets = 2, .hardware = 2};
    const opi__fit_settings settings = {.seed = 1, .threads = 1, .support_only = 1, .learner = "boost"};
    opi_table *table = world_table(ctx, &w);
    opi__dataset d;
    opi_model *m = NULL;
    if (!table || opi__dataset_build(ctx, table, 0, &d, NULL)) {
        opi_table_free(table);
        return NULL;
    }
    uint32_t *row = opi__alloc(ctx, d.n, sizeof *row);
    for (size_t i = 0; row && i < d.n; i++)
        row[i] = (uint32_t)i;
    int32_t status = row ? opi__fit_rows(ctx, &d, row, d.n, &settings, &m, NULL, NULL) : OPI_E_NOMEM;
    for (int32_t t = 0; t < OPI__T_COUNT && !status; t++)
        if (m->target[t].learned)
            status = tiny_target(ctx, &d, row, m, t);
    if (!status && (m->manifest = opi__alloc(ctx, 1, sizeof manifest)) != NULL) {
        memcpy(m->manifest, manifest, sizeof manifest);
        m->n_anchors = m->n_anchors < 6 ? m->n_anchors : 6;
    } else if (m) {
        opi_model_free(m);
        m = NULL;
    }
    opi__free(ctx, row);
    opi__dataset_free(&d);
    opi_table_free(table);
    return m;
}

/* Size and checksum of changed bytes, so that the structural checks are what is asked. size >= 32. */
static inline void tiny_fix(unsigned char *bytes, size_t size)
{
    uint64_t stated = size, sum = opi__checksum64(bytes + OPI__HEADER_BYTES, size - OPI__HEADER_BYTES);
    memcpy(bytes + 16, &stated, 8);
    memcpy(bytes + 24, &sum, 8);
}
#endif
