/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-validation on the fold rule: whole cells, FNV-1a-64 of the cell's text modulo 5. Every figure is of rows
 * whose cell the model never saw; calibration happens inside the training folds. */
#include "base/json.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/take.h"
#include "model/fit.h"
#include "model/score.h"
#include <math.h>
#include <string.h>

#define FOLDS          5
#define REPORT_VERSION 1

typedef struct evaluation {
    opi_ctx *ctx;
    opi_evaluate_options o;
    double level;
    opi__dataset d;
    opi__held *held[OPI__T_COUNT]; /* [d.n] each */
    uint32_t *row;                 /* [d.n] scratch: training rows */
    int32_t fold;
} evaluation;

static int32_t progress(void *user, const char *stage, uint64_t done, uint64_t total)
{
    evaluation *e = user;
    if (!e->o.progress)
        return 0;
    return e->o.progress(e->o.progress_user, stage, (uint64_t)e->fold * total + done, FOLDS * total);
}

static opi__fit_settings settings(evaluation *e)
{
    return (opi__fit_settings){.learner = e->o.learner,
                               .seed = e->o.seed,
                               .threads = opi__threads(e->o.threads),
                               .progress = progress,
                               .progress_user = e};
}

/* The paper's nearest-neighbor baseline: the value of the nearest training row, of the same GPU if there is any. */
static double nearest(const evaluation *e, const opi_model *m, size_t i, size_t n, int t)
{
    double at[OPI__ENVELOPE], best = INFINITY, value = NAN;
    int same_seen = 0;
    const int32_t *code = &e->d.code[i * OPI__CATEGORIES];
    for (int a = 0; a < OPI__ENVELOPE; a++)
        at[a] = e->d.envelope[a][i];
    for (size_t k = 0; k < n; k++) {
        size_t j = e->row[k];
        const int32_t *other = &e->d.code[j * OPI__CATEGORIES];
        opi__anchor anchor;
        if (isnan(e->d.y[t][j]))
            continue;
        int same = other[OPI__C_GPU] == code[OPI__C_GPU];
        if (same_seen && !same)
            continue;
        for (int a = 0; a < OPI__ENVELOPE; a++)
            anchor.at[a] = (float)e->d.envelope[a][j];
        for (int s = 0; s < OPI__SEEN_KINDS; s++)
            anchor.code[s] = (uint16_t)other[opi__seen_axes[s]];
        double distance = opi__anchor_distance(m, at, code, &anchor);
        if (distance < best || (same && !same_seen))
            best = distance, value = e->d.y[t][j] + e->d.base[t][j];
        same_seen |= same;
    }
    return value;
}

static void predict_row(const evaluation *e, const opi_model *m, size_t i, int t, opi__held *h)
{
    double at[OPI__ENVELOPE], base = e->d.base[t][i];
    for (int k = 0; k < OPI__ENVELOPE; k++)
        at[k] = e->d.envelope[k][i];
    opi__hold(m, t, at, &e->d.x[i * OPI__FEATURES], &e->d.code[i * OPI__CATEGORIES], e->d.source[i], base,
              e->d.y[t][i] + base, e->level, h);
}

static int32_t run_fold(evaluation *e, opi_error *err)
{
    size_t n = 0;
    opi_model *m = NULL;
    opi__fit_settings s = settings(e);
    for (size_t i = 0; i < e->d.n; i++)
        if (e->d.cell[i] % FOLDS != (uint64_t)e->fold)
            e->row[n++] = (uint32_t)i;
    int32_t status = opi__fit_rows(e->ctx, &e->d, e->row, n, &s, &m, NULL, err);
    for (int t = 0; t < OPI__T_COUNT && !status; t++) {
        if (!m->target[opi__residual_of(t)].learned)
            continue;
        for (size_t i = 0; i < e->d.n; i++) {
            if (e->d.cell[i] % FOLDS != (uint64_t)e->fold || isnan(e->d.y[t][i]))
                continue;
            predict_row(e, m, i, t, &e->held[t][i]);
            if (t == OPI__T_OUT_TOK_S)
                e->held[t][i].nearest = nearest(e, m, i, n, t);
        }
    }
    opi_model_free(m);
    return status;
}

/* ---- leaving a GPU type or a family out: are its rows flagged? ---- */

static int32_t flag_group(evaluation *e, int axis, uint32_t group, opi__json *list, double *flagged, double *rows,
                          opi_error *err)
{
    size_t n = 0;
    double mine = 0, outside = 0;
    opi_model *m = NULL;
    opi__fit_settings s = settings(e);
    s.support_only = 1;
    for (size_t i = 0; i < e->d.n; i++)
        if (e->d.code[i * OPI__CATEGORIES + (size_t)axis] != (int32_t)group)
            e->row[n++] = (uint32_t)i;
    int32_t status = n ? opi__fit_rows(e->ctx, &e->d, e->row, n, &s, &m, NULL, err) : OPI_OK;
    if (status || !n)
        return status;
    for (int t = 0; t < OPI__T_COUNT; t++) {
        for (size_t i = 0; i < e->d.n && m->target[opi__residual_of(t)].learned; i++) {
            const int32_t *code = &e->d.code[i * OPI__CATEGORIES];
            double at[OPI__ENVELOPE];
            opi__verdict v;
            if (code[axis] != (int32_t)group || isnan(e->d.y[t][i]))
                continue;
            for (int k = 0; k < OPI__ENVELOPE; k++)
                at[k] = e->d.envelope[k][i];
            opi__judge(m, opi__residual_of(t), at, code, &v);
            mine++;
            outside += v.status == OPI_P_OOD;
        }
    }
    opi_model_free(m);
    *flagged += outside, *rows += mine;
    if (mine == 0)
        return OPI_OK;
    opi__json *one = opi__json_add_object(list, NULL);
    opi__json_add_string(one, "name", e->d.names[axis].name[group]);
    opi__json_add_int(one, "rows", (int64_t)mine);
    opi__json_add_number(one, "flagged", outside / mine);
    return OPI_OK;
}

static int32_t flag_all(evaluation *e, const char *name, int axis, opi__json *into, opi_error *err)
{
    opi__json *o = opi__json_add_object(into, name), *list = opi__json_add_array(o, "groups");
    double flagged = 0, rows = 0;
    for (uint32_t g = 0; g < e->d.names[axis].n; g++) {
        int32_t status = flag_group(e, axis, g, list, &flagged, &rows, err);
        if (status)
            return status;
    }
    opi__json_add_number(o, "flagged", flagged / rows);
    return OPI_OK;
}

/* ---- */

static int32_t write_report(evaluation *e, opi__json *root, opi_error *err)
{
    opi__json_add_string(root, "schema", "omnipilot.evaluation");
    opi__json_add_int(root, "version", REPORT_VERSION);
    opi__json_add_string(root, "library", opi_version());
    opi__json_add_string(root, "learner", opi__learner_find(e->o.learner)->name);
    opi__json_add_string(root, "cells", e->o.by_mix ? "by mix" : "full");
    opi__json_add_number(root, "level", e->level);
    opi__json *table = opi__json_add_object(root, "table");
    opi__json_add_string(table, "sha256", e->d.table->sha256);
    opi__json_add_int(table, "rows", (int64_t)e->d.table->n);
    opi__json_add_int(table, "usable_rows", (int64_t)e->d.n);
    opi__json *targets = opi__json_add_object(root, "targets");
    int32_t status = OPI_OK;
    for (int t = 0; t < OPI__T_COUNT && !status; t++) {
        size_t n = 0;
        for (size_t i = 0; i < e->d.n; i++)
            n += (size_t)e->held[t][i].present;
        if (n)
            status = opi__score_target(&e->d, e->held[t], opi__json_add_object(targets, opi__targets[t].name));
    }
    if (!status)
        status = opi__score_decisions(&e->d, e->held[OPI__T_OUT_TOK_S], opi__json_add_object(root, "decisions"));
    if (status)
        return opi__fail_memory(err, e->d.n * sizeof(double));
    if (!e->o.leave_out)
        return OPI_OK;
    opi__json *left_out = opi__json_add_object(root, "left_out");
    status = flag_all(e, "gpu", OPI__C_GPU, left_out, err);
    return status ? status : flag_all(e, "family", OPI__C_FAMILY, left_out, err);
}

static int32_t prepare(evaluation *e, const opi_table *table, opi_error *err)
{
    e->level = e->o.level == 0 ? .8 : e->o.level;
    if (!(e->level >= .5 && e->level <= .99))
        return opi__fail(err, OPI_E_RANGE, -1, "level = %.6g: must be from 0.5 to 0.99", e->level);
    if (e->o.threads < 0)
        return opi__fail(err, OPI_E_RANGE, -1, "threads = %d: must be 0 or more", (int)e->o.threads);
    if (!opi__learner_find(e->o.learner))
        return opi__fail(err, OPI_E_UNKNOWN, -1,
                         "learner \"%s\": there is no such learner; this library has \"boost\" and \"krige\"", e->o.learner);
    int32_t status = opi__dataset_build(e->ctx, table, e->o.by_mix, &e->d, err);
    if (status)
        return status;
    e->row = opi__alloc(e->ctx, e->d.n, sizeof *e->row);
    int ok = e->row != NULL;
    for (int t = 0; t < OPI__T_COUNT; t++)
        ok &= (e->held[t] = opi__zalloc(e->ctx, e->d.n, sizeof(opi__held))) != NULL;
    return ok ? OPI_OK : opi__fail_memory(err, e->d.n * sizeof(opi__held));
}

int32_t opi_evaluate(opi_ctx *ctx, const opi_table *table, const opi_evaluate_options *options, opi_text **out,
                     opi_error *err)
{
    evaluation e = {.ctx = ctx};
    if (!ctx || !table || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "ctx, table or out is NULL");
    int32_t status = options ? opi__take(&e.o, sizeof e.o, options, "opi_evaluate_options", err) : OPI_OK;
    if (!status)
        status = prepare(&e, table, err);
    for (e.fold = 0; e.fold < FOLDS && !status; e.fold++)
        status = run_fold(&e, err);
    opi__json *root = status ? NULL : opi__json_new_object();
    if (!status)
        status = write_report(&e, root, err);
    if (!status)
        status = opi__json_text(ctx, root, out, err);
    else
        opi__json_free(root);
    for (int t = 0; t < OPI__T_COUNT; t++)
        opi__free(ctx, e.held[t]);
    opi__free(ctx, e.row);
    opi__dataset_free(&e.d);
    return status;
}
