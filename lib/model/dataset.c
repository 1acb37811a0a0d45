/* SPDX-License-Identifier: Apache-2.0 */
#include "model/dataset.h"
#include "base/status.h"
#include "facts/config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int32_t opi__names_find(const opi__names *names, const char *name)
{
    uint32_t lo = 0, hi = names->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        int order = strcmp(names->name[mid], name);
        if (order == 0)
            return (int32_t)mid;
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return -1;
}

double opi__envelope_scale(int e, double value)
{
    return e == OPI__E_TP || e == OPI__E_BITS ? value : value > 0 ? log(value) : NAN;
}

void opi__feature_row(const opi__names *names, const opi__encoded *e, float *x, int32_t *code)
{
    memcpy(x, e->number, sizeof e->number);
    for (int c = 0; c < OPI__CATEGORIES; c++)
        code[c] = opi__names_find(&names[c], e->category[c]);
    for (int c = 0; c < OPI__TREE_CATEGORIES; c++)
        x[OPI__NUMBERS + c] = (float)code[c];
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, without repeats, copied: a name may lie in a row's own encoding. */
static int32_t names_build(opi__dataset *d, const char **all, size_t n, opi__names *out)
{
    out->name = opi__alloc(d->ctx, n, sizeof *out->name);
    if (!out->name)
        return OPI_E_NOMEM;
    memcpy(out->name, all, n * sizeof *all);
    if (n)
        qsort(out->name, n, sizeof *out->name, by_text);
    out->n = 0;
    for (size_t i = 0; i < n; i++)
        if (out->n == 0 || strcmp(out->name[i], out->name[out->n - 1]))
            out->name[out->n++] = out->name[i];
    for (uint32_t i = 0; i < out->n; i++)
        if (!(out->name[i] = opi__arena_text(&d->arena, out->name[i], strlen(out->name[i]))))
            return OPI_E_NOMEM;
    return OPI_OK;
}

/* Categories are collected over all rows first, so that codes are sorted names whatever the rows' order. */
static int32_t collect_names(opi__dataset *d, const opi__encoded *encoded)
{
    const char **all = opi__alloc(d->ctx, d->n, sizeof *all);
    int32_t status = all ? OPI_OK : OPI_E_NOMEM;
    for (int c = 0; c < OPI__CATEGORIES && !status; c++) {
        for (size_t i = 0; i < d->n; i++)
            all[i] = encoded[i].category[c];
        status = names_build(d, all, d->n, &d->names[c]);
    }
    if (!status) {
        for (size_t i = 0; i < d->n; i++)
            all[i] = d->table->rows[d->row[i]].source;
        status = names_build(d, all, d->n, &d->sources);
    }
    opi__free(d->ctx, all);
    return status;
}

static int32_t allocate(opi__dataset *d)
{
    size_t n = d->n;
    int ok = 1;
    d->x = opi__alloc(d->ctx, n * OPI__FEATURES, sizeof *d->x);
    d->code = opi__alloc(d->ctx, n * OPI__CATEGORIES, sizeof *d->code);
    d->cell = opi__alloc(d->ctx, n, sizeof *d->cell);
    d->source = opi__alloc(d->ctx, n, sizeof *d->source);
    for (int e = 0; e < OPI__ENVELOPE; e++)
        ok &= (d->envelope[e] = opi__alloc(d->ctx, n, sizeof(double))) != 0;
    for (int t = 0; t < OPI__T_COUNT; t++) {
        ok &= (d->base[t] = opi__alloc(d->ctx, n, sizeof(double))) != 0;
        ok &= (d->y[t] = opi__alloc(d->ctx, n, sizeof(double))) != 0;
    }
    d->bins.n = n;
    d->bins.n_features = OPI__FEATURES;
    d->bins.n_numbers = OPI__NUMBERS;
    d->bins.code = opi__alloc(d->ctx, n * OPI__FEATURES, 1);
    d->bins.edge = opi__alloc(d->ctx, OPI__FEATURES, sizeof *d->bins.edge);
    d->bins.count = opi__alloc(d->ctx, OPI__FEATURES, sizeof *d->bins.count);
    return ok && d->x && d->code && d->cell && d->source && d->bins.code && d->bins.edge && d->bins.count ? OPI_OK
                                                                                                          : OPI_E_NOMEM;
}

static void fill(opi__dataset *d, const opi__encoded *encoded, int by_mix)
{
    for (size_t i = 0; i < d->n; i++) {
        const opi__row *r = &d->table->rows[d->row[i]];
        opi__feature_row(d->names, &encoded[i], &d->x[i * OPI__FEATURES], &d->code[i * OPI__CATEGORIES]);
        for (int e = 0; e < OPI__ENVELOPE; e++)
            d->envelope[e][i] = opi__envelope_scale(e, encoded[i].envelope[e]);
        for (int t = 0; t < OPI__T_COUNT; t++) {
            d->base[t][i] = encoded[i].base[t];
            double y = r->value[t] > 0 && r->launch_ok != 0 ? log(r->value[t]) - encoded[i].base[t] : NAN;
            d->y[t][i] = isfinite(y) ? y : NAN;
        }
        /* A row that states requests/s or total tokens/s states output tokens/s too. */
        for (int t = OPI__T_TOTAL_TOK_S; t <= OPI__T_REQ_S && isnan(d->y[OPI__T_OUT_TOK_S][i]); t++)
            if (opi__identity_holds(t, r->config.input_len, r->config.output_len))
                d->y[OPI__T_OUT_TOK_S][i] = d->y[t][i];
        d->cell[i] = by_mix ? r->cell_mix : r->cell;
        d->source[i] = opi__names_find(&d->sources, r->source);
    }
}

int32_t opi__dataset_build(opi_ctx *ctx, const opi_table *table, int by_mix, opi__dataset *d, opi_error *err)
{
    opi__encoded *encoded = opi__alloc(ctx, table->n, sizeof *encoded);
    float *scratch = NULL;
    memset(d, 0, sizeof *d);
    d->ctx = ctx;
    d->table = table;
    opi__arena_init(&d->arena, ctx);
    d->row = opi__alloc(ctx, table->n, sizeof *d->row);
    int32_t status = encoded && d->row ? OPI_OK : OPI_E_NOMEM;
    for (size_t i = 0; i < table->n && !status; i++) {
        opi_config c;
        const opi__row *r = &table->rows[i];
        if (r->status || r->launch_ok == 0 || opi__config_take(&r->config, &c, NULL))
            continue;
        opi__encode(&r->config, &encoded[d->n]);
        d->row[d->n++] = (uint32_t)i;
    }
    if (!status && d->n == 0) {
        opi__free(ctx, encoded);
        opi__dataset_free(d);
        return opi__fail(err, OPI_E_NODATA, -1, "none of the table's %zu rows is usable (opi_table_report says why)",
                         table->n);
    }
    if (!status)
        status = collect_names(d, encoded);
    if (!status)
        status = allocate(d);
    if (!status && !(scratch = opi__alloc(ctx, d->n, sizeof *scratch)))
        status = OPI_E_NOMEM;
    if (!status) {
        fill(d, encoded, by_mix);
        opi__bins_build(&d->bins, d->x, scratch);
    }
    opi__free(ctx, scratch);
    opi__free(ctx, encoded);
    if (!status)
        return OPI_OK;
    opi__dataset_free(d);
    return opi__fail_memory(err, table->n * sizeof(opi__encoded));
}

void opi__dataset_free(opi__dataset *d)
{
    opi_ctx *ctx = d->ctx;
    if (!ctx)
        return;
    for (int c = 0; c < OPI__CATEGORIES; c++)
        opi__free(ctx, d->names[c].name);
    for (int e = 0; e < OPI__ENVELOPE; e++)
        opi__free(ctx, d->envelope[e]);
    for (int t = 0; t < OPI__T_COUNT; t++) {
        opi__free(ctx, d->base[t]);
        opi__free(ctx, d->y[t]);
    }
    opi__arena_free(&d->arena);
    opi__free(ctx, d->sources.name);
    opi__free(ctx, d->row);
    opi__free(ctx, d->x);
    opi__free(ctx, d->code);
    opi__free(ctx, d->cell);
    opi__free(ctx, d->source);
    opi__free(ctx, d->bins.code);
    opi__free(ctx, d->bins.edge);
    opi__free(ctx, d->bins.count);
    memset(d, 0, sizeof *d);
}
