/* SPDX-License-Identifier: Apache-2.0 */
/* opi_model_fit and the manifest that travels with a model. */
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/take.h"
#include "base/text.h"
#include "model/fit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__clang__)
#define OPI__COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define OPI__COMPILER "gcc " __VERSION__
#else
#define OPI__COMPILER "unknown"
#endif

#define SCHEMA_VERSION 1
#define MOST_THREADS   16

typedef struct source_count {
    const char *source, *license;
    int64_t rows;
} source_count;

static int by_source(const void *a, const void *b)
{
    const source_count *x = a, *y = b;
    int order = strcmp(x->source, y->source);
    return order ? order : strcmp(x->license, y->license);
}

static int32_t add_sources(opi__json *o, const opi__dataset *d)
{
    source_count *all = opi__alloc(d->ctx, d->n, sizeof *all);
    opi__json *list = opi__json_add_array(o, "sources");
    if (!all)
        return OPI_E_NOMEM;
    for (size_t i = 0; i < d->n; i++) {
        const opi__row *r = &d->table->rows[d->row[i]];
        all[i] = (source_count){r->source ? r->source : "", r->license && *r->license ? r->license : "not stated", 1};
    }
    qsort(all, d->n, sizeof *all, by_source);
    for (size_t i = 0, end; i < d->n; i = end) {
        opi__json *one = opi__json_add_object(list, NULL);
        for (end = i; end < d->n && !by_source(&all[i], &all[end]);)
            end++;
        opi__json_add_string(one, "source", all[i].source);
        opi__json_add_string(one, "license", all[i].license);
        opi__json_add_int(one, "rows", (int64_t)(end - i));
    }
    opi__free(d->ctx, all);
    return OPI_OK;
}

static void add_measured(opi__json *o, const opi_model *m, const opi__fit_summary *summary)
{
    opi__json *all = opi__json_add_object(o, "held_out_cells");
    for (int t = 0; t < OPI__T_COUNT; t++) {
        if (!m->target[t].learned)
            continue;
        opi__json *one = opi__json_add_object(all, opi__targets[t].name);
        opi__json_add_int(one, "rows", m->target[t].rows);
        opi__json_add_int(one, "cells", m->target[t].cells);
        opi__json_add_number(one, "median_ape", summary[t].median_ape);
        opi__json_add_number(one, "mape", summary[t].mape);
        opi__json_add_number(one, "coverage80", summary[t].coverage);
    }
}

/* Hash of what the C library makes of the functions a fit depends on: two libraries, or two code paths of one chosen by
 * the processor, may differ in the last bit, and then so may the bytes of a model. */
static void libm_fingerprint(char *buf, size_t size)
{
    uint64_t h = OPI__FNV_START;
    for (int i = 1; i <= 400; i++) {
        const double x = i * .0373, v[] = {log(x), exp(x), pow(x, 1.7), expm1(-x)};
        h = opi__fnv1a64(h, v, sizeof v);
    }
    opi__format(buf, size, "%llx", (unsigned long long)h);
}

static int32_t write_manifest(opi_model *m, const opi__dataset *d, const opi_fit_options *o,
                              const opi__fit_summary *summary, opi_error *err)
{
    opi_text *text = NULL;
    opi__json *root = opi__json_new_object();
    opi__json_add_int(root, "schema_version", SCHEMA_VERSION);
    opi__json_add_string(root, "library", opi_version());
    opi__json_add_string(root, "learner", m->learner->name);
    char seed[24]; /* as text: a JSON number would lose bits */
    opi__format(seed, sizeof seed, "%llu", (unsigned long long)o->seed);
    opi__json_add_string(root, "seed", seed);
    opi__json_add_string(root, "date", o->date);
    opi__json_add_string(root, "note", o->note);
    opi__json *software = opi__json_add_object(root, "software");
    opi__json_add_string(software, "compiler", OPI__COMPILER);
    char libm[20];
    libm_fingerprint(libm, sizeof libm);
    opi__json_add_string(software, "libm", libm);
    opi__json_add_string(software, "arithmetic", "IEEE 754 double, no contraction");
    opi__json *table = opi__json_add_object(root, "training_table");
    opi__json_add_string(table, "sha256", d->table->sha256);
    opi__json_add_int(table, "rows", (int64_t)d->table->n);
    opi__json_add_int(table, "usable_rows", (int64_t)d->n);
    int32_t status = add_sources(root, d);
    add_measured(root, m, summary);
    if (status) {
        opi__json_free(root);
        return opi__fail_memory(err, d->n * sizeof(source_count));
    }
    status = opi__json_text(m->ctx, root, &text, err);
    if (status)
        return status;
    m->manifest = opi__alloc(m->ctx, opi_text_size(text) + 1, 1);
    if (m->manifest)
        memcpy(m->manifest, opi_text_data(text), opi_text_size(text) + 1);
    status = m->manifest ? OPI_OK : opi__fail_memory(err, opi_text_size(text));
    opi_text_free(text);
    return status;
}

int32_t opi__threads(int32_t asked)
{
    int32_t n = asked > 0 ? asked : opi__cores();
    return n > MOST_THREADS ? MOST_THREADS : n;
}

int32_t opi_model_fit(opi_ctx *ctx, const opi_table *table, const opi_fit_options *options, opi_model **out,
                      opi_error *err)
{
    opi_fit_options o = {0};
    opi__dataset d;
    opi_model *m = NULL;
    opi__fit_summary summary[OPI__T_COUNT];
    if (!ctx || !table || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "ctx, table or out is NULL");
    int32_t status = options ? opi__take(&o, sizeof o, options, "opi_fit_options", err) : OPI_OK;
    if (!status && o.threads < 0)
        status = opi__fail(err, OPI_E_RANGE, -1, "threads = %d: must be 0 or more", (int)o.threads);
    if (!status)
        status = opi__dataset_build(ctx, table, 0, &d, err);
    if (status)
        return status;
    uint32_t *row = opi__alloc(ctx, d.n, sizeof *row);
    opi__fit_settings s = {.learner = o.learner,
                           .seed = o.seed,
                           .threads = opi__threads(o.threads),
                           .progress = o.progress,
                           .progress_user = o.progress_user};
    for (size_t i = 0; i < d.n && row; i++)
        row[i] = (uint32_t)i;
    status = row ? opi__fit_rows(ctx, &d, row, d.n, &s, &m, summary, err) : opi__fail_memory(err, d.n * sizeof *row);
    if (!status)
        status = write_manifest(m, &d, &o, summary, err);
    opi__free(ctx, row);
    opi__dataset_free(&d);
    if (status)
        opi_model_free(m);
    else
        *out = m;
    return status;
}
