/* SPDX-License-Identifier: Apache-2.0 */
/* A model moved to one site by a handful of its own measurements: the posterior of the site's random effect and of what
 * the model was unsure of. Nothing is fitted again; the base and the evidence stand in the manifest. */
#include "base/ctx.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/status.h"
#include "facts/config.h"
#include "facts/table.h"
#include "model/model.h"
#include <math.h>
#include <string.h>

typedef struct evidence {
    size_t n;
    float *x;      /* [n * OPI__FEATURES] */
    int32_t *code; /* [n * OPI__CATEGORIES] */
    double *y;
} evidence;

/* log(value) - log(physics) of a target, from any column that states the same figure. */
static double residual_of(const opi__row *r, const opi__encoded *e, int32_t target)
{
    for (int32_t t = 0; t < OPI__T_COUNT; t++) {
        if (opi__residual_of(t) != target || !(r->value[t] > 0))
            continue;
        if (t != target && !opi__identity_holds(t, r->config.input_len, r->config.output_len))
            continue;
        double y = log(r->value[t]) - e->base[t];
        if (isfinite(y))
            return y;
    }
    return NAN;
}

/* Rows of the table with this target, encoded as the model knows things. */
static int32_t gather(const opi_model *m, const opi_table *table, int32_t target, evidence *ev)
{
    opi_ctx *ctx = m->ctx;
    ev->x = opi__alloc(ctx, table->n * OPI__FEATURES, sizeof *ev->x);
    ev->code = opi__alloc(ctx, table->n * OPI__CATEGORIES, sizeof *ev->code);
    ev->y = opi__alloc(ctx, table->n, sizeof *ev->y);
    if (!ev->x || !ev->code || !ev->y)
        return OPI_E_NOMEM;
    for (size_t i = 0; i < table->n; i++) {
        const opi__row *r = &table->rows[i];
        opi_config c;
        opi__encoded e;
        if (r->status || r->launch_ok == 0 || opi__config_take(&r->config, &c, NULL))
            continue;
        opi__encode(&r->config, &e);
        ev->y[ev->n] = residual_of(r, &e, target);
        if (isnan(ev->y[ev->n]))
            continue;
        opi__feature_row(m->names, &e, ev->x + ev->n * OPI__FEATURES, ev->code + ev->n * OPI__CATEGORIES);
        ev->n++;
    }
    return OPI_OK;
}

static void release(const opi_model *m, evidence *ev)
{
    opi__free(m->ctx, ev->x);
    opi__free(m->ctx, ev->code);
    opi__free(m->ctx, ev->y);
}

/* "adapted": which model it was, and what was added by which table; adapting again appends. */
static int32_t write_manifest(opi_model *m, const char *base_sha256, const opi_table *table, const size_t *rows,
                              opi_error *err)
{
    opi__json *root = NULL;
    opi_text *text = NULL;
    int32_t status = opi__json_parse(m->manifest, strlen(m->manifest), "the model's manifest", &root, err);
    if (status)
        return status;
    opi__json *list = (opi__json *)(uintptr_t)opi__json_get(root, "adapted");
    if (!list)
        list = opi__json_add_array(root, "adapted");
    opi__json *one = opi__json_add_object(list, NULL);
    opi__json_add_string(one, "base_sha256", base_sha256);
    opi__json_add_string(one, "table_sha256", table->sha256);
    opi__json *counts = opi__json_add_object(one, "rows");
    for (int32_t t = 0; t < OPI__T_COUNT; t++)
        if (rows[t])
            opi__json_add_int(counts, opi__targets[t].name, (int64_t)rows[t]);
    status = opi__json_text(m->ctx, root, &text, err);
    if (status)
        return status;
    char *manifest = opi__alloc(m->ctx, opi_text_size(text) + 1, 1);
    if (manifest) {
        memcpy(manifest, opi_text_data(text), opi_text_size(text) + 1);
        m->manifest = manifest;
        m->own_manifest = 1;
    } else {
        status = opi__fail_memory(err, opi_text_size(text));
    }
    opi_text_free(text);
    return status;
}

static int32_t adapt_all(opi_model *m, const opi_table *table, size_t *rows, opi_error *err)
{
    size_t any = 0;
    for (int32_t t = 0; t < OPI__T_COUNT; t++) {
        evidence ev = {0};
        rows[t] = 0;
        if (!m->target[t].learned || opi__residual_of(t) != t)
            continue;
        int32_t status = gather(m, table, t, &ev);
        if (status)
            opi__fail_memory(err, table->n * OPI__FEATURES * sizeof(float));
        else if (ev.n)
            status = m->learner->adapt(m->ctx, m->target[t].state, ev.n, ev.x, ev.code, ev.y, err);
        rows[t] = ev.n;
        any += ev.n;
        release(m, &ev);
        if (status)
            return status;
    }
    if (any)
        return OPI_OK;
    return opi__fail(err, OPI_E_NODATA, -1,
                     "none of the table's %zu rows has a figure of a target this model has learned", table->n);
}

int32_t opi_model_adapt(const opi_model *base, const opi_table *table, opi_model **out, opi_error *err)
{
    opi_text *bytes = NULL;
    opi_model *m = NULL;
    char sha[65];
    size_t rows[OPI__T_COUNT];
    if (!base || !table || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "base, table or out is NULL");
    if (!base->learner->adapt)
        return opi__fail(err, OPI_E_UNSUPPORTED, -1,
                         "a model of learner \"%s\" cannot be adapted, one of \"krige\" can", base->learner->name);
    int32_t status = opi_model_save_memory(base, &bytes, err);
    if (status)
        return status;
    opi__sha256_hex(opi_text_data(bytes), opi_text_size(bytes), sha);
    status = opi_model_load_memory(base->ctx, opi_text_data(bytes), opi_text_size(bytes), &m, err);
    opi_text_free(bytes);
    if (!status)
        status = adapt_all(m, table, rows, err);
    if (!status)
        status = write_manifest(m, sha, table, rows, err);
    if (status) {
        opi_model_free(m);
        return status;
    }
    *out = m;
    return OPI_OK;
}
