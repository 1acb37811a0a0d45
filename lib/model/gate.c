/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a new model may take the place of an old one: both answer the same rows, as at a site nobody measured, and each
 * figure's difference is judged against what resampling whole cells makes of it. */
#include "model/gate.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/take.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEWEST_RESAMPLES 100
#define MOST_RESAMPLES   100000

/* A row's figures, or a decision's: [old, new] each. */
typedef struct point {
    uint64_t cell;
    double v[OPI__PAIRED_FIGURES][2];
} point;

typedef struct figure {
    const char *what;
    int32_t higher_is_worse;
    double margin, of_old; /* the larger of a number and a share of the old value */
    opi__worth worth;
} figure;

/* What a coverage lacks to its band. Too much of it is no fault here: both models answer as at a site nobody measured, and
 * at one that they know such intervals must cover more. What width costs, the loss says. */
static double lacking(double coverage)
{
    return fmax(OPI__GATE_BAND - coverage, 0);
}

static const figure of_target[] = {{"pinball", 1, OPI__GATE_PINBALL_LOG, OPI__GATE_PINBALL, NULL},
                                   {"coverage", 1, OPI__GATE_COVERAGE, 0, lacking},
                                   {"flagged", 1, OPI__GATE_FLAGGED, 0, NULL}};
static const figure of_choice[] = {{"top1", 0, OPI__GATE_TOP1, 0, NULL}, {"regret", 1, OPI__GATE_REGRET, 0, NULL}};
#define TARGET_FIGURES 3
#define CHOICE_FIGURES 2

/* By cell, then by every figure: points that compare equal are alike, so sums do not depend on the rows' order. */
static int by_cell(const void *a, const void *b)
{
    const point *x = a, *y = b;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    for (int f = 0; f < OPI__PAIRED_FIGURES; f++)
        for (int side = 0; side < 2; side++)
            if (x->v[f][side] != y->v[f][side])
                return x->v[f][side] < y->v[f][side] ? -1 : 1;
    return 0;
}

static size_t clusters_of(point *p, size_t n, opi__cluster *out)
{
    size_t made = 0;
    qsort(p, n, sizeof *p, by_cell);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || p[i].cell != p[i - 1].cell)
            out[made++] = (opi__cluster){0};
        opi__cluster *c = &out[made - 1];
        c->n++;
        for (int f = 0; f < OPI__PAIRED_FIGURES; f++)
            for (int side = 0; side < 2; side++)
                c->sum[f][side] += p[i].v[f][side];
    }
    return made;
}

/* Written so that a difference that is not a number counts as worse. */
static int32_t verdict_of(const opi__gate_check *c)
{
    const opi__paired *p = &c->compared;
    double sign = c->higher_is_worse ? 1 : -1, surely = c->higher_is_worse ? p->lo : -p->hi;
    double at_most = c->higher_is_worse ? p->hi : -p->lo;
    if (!(surely <= c->margin))
        return OPI__G_WORSE;
    if (at_most < -c->margin)
        return OPI__G_BETTER;
    return sign * p->difference <= c->margin ? OPI__G_SAME : OPI__G_UNCLEAR;
}

static opi__gate_check *add_check(opi__gate *g, const char *of, const char *what, int32_t verdict)
{
    opi__gate_check *c = &g->check[g->n_checks++];
    *c = (opi__gate_check){.of = of, .what = what, .verdict = verdict, .margin = NAN};
    c->value[0] = c->value[1] = NAN;
    c->compared = (opi__paired){{NAN, NAN}, NAN, NAN, NAN};
    return c;
}

static int32_t compare(opi__gate *g, const char *of, const figure *figures, int n_figures, point *p, size_t n,
                       uint64_t stream)
{
    opi__paired result[OPI__PAIRED_FIGURES];
    opi__worth worth[OPI__PAIRED_FIGURES];
    opi__cluster *cluster = opi__alloc(g->ctx, n, sizeof *cluster);
    double *scratch = opi__alloc(g->ctx, g->resamples * OPI__PAIRED_FIGURES, sizeof *scratch);
    int32_t status = cluster && scratch ? OPI_OK : OPI_E_NOMEM;
    size_t cells = status ? 0 : clusters_of(p, n, cluster);
    int enough = cells >= OPI__GATE_LEAST_CELLS;
    for (int f = 0; f < n_figures; f++)
        worth[f] = figures[f].worth;
    if (enough)
        opi__paired_compare(cluster, cells, n_figures, worth, OPI__GATE_LEVEL, opi__mix64(g->o.seed ^ opi__mix64(stream)),
                            g->resamples, scratch, result);
    for (int f = 0; f < n_figures && !status; f++) {
        opi__gate_check *c = add_check(g, of, figures[f].what, n ? OPI__G_FEW : OPI__G_ABSENT);
        double sum[2] = {0, 0};
        c->rows = n, c->cells = cells;
        c->higher_is_worse = figures[f].higher_is_worse;
        for (size_t i = 0; i < cells; i++)
            sum[0] += cluster[i].sum[f][0], sum[1] += cluster[i].sum[f][1];
        c->value[0] = sum[0] / (double)n, c->value[1] = sum[1] / (double)n;
        if (!enough)
            continue;
        c->compared = result[f];
        c->margin = fmax(figures[f].margin, figures[f].of_old * result[f].value[0]);
        c->verdict = verdict_of(c);
    }
    opi__free(g->ctx, cluster);
    opi__free(g->ctx, scratch);
    return status;
}

/* ---- answers ---- */

/* The dataset's codes are its own; each model looks names up in its own dictionaries. */
static void answer(const opi__gate *g, int side, size_t i, int32_t target)
{
    opi__question q;
    const opi__row *r = &g->d.table->rows[g->d.row[i]];
    opi__held *h = &g->held[side][i];
    double base = g->d.base[target][i], y = g->d.y[target][i];
    memset(h, 0, sizeof *h);
    if (isnan(y))
        return;
    opi__question_make(g->model[side], &r->config, &q);
    opi__hold(g->model[side], target, q.encoded.envelope, q.x, q.code, OPI__NEW_SITE, base, y + base, .8, h);
}

/* An end at infinity promises nothing; it counts as a factor of 1,000, so that means stay finite and giving ends up costs. */
static double loss(const opi__held *h)
{
    opi__held bounded = *h;
    bounded.q10 = fmax(h->q10, h->median - OPI__GATE_UNBOUNDED);
    bounded.q90 = fmin(h->q90, h->median + OPI__GATE_UNBOUNDED);
    return opi__held_pinball(&bounded);
}

static int32_t judge_rows(opi__gate *g, int32_t target)
{
    size_t n = 0;
    point *p = opi__alloc(g->ctx, g->d.n, sizeof *p);
    if (!p)
        return OPI_E_NOMEM;
    for (size_t i = 0; i < g->d.n; i++) {
        if (!g->held[0][i].present)
            continue;
        p[n].cell = g->d.cell[i];
        for (int side = 0; side < 2; side++) {
            const opi__held *h = &g->held[side][i];
            p[n].v[0][side] = loss(h);
            p[n].v[1][side] = h->y >= h->lo && h->y <= h->hi;
            p[n].v[2][side] = h->status == OPI_P_OOD;
        }
        n++;
    }
    int32_t status =
        compare(g, opi__targets[target].name, of_target, TARGET_FIGURES, p, n, (uint64_t)target);
    opi__free(g->ctx, p);
    return status;
}

/* Both models choose among the same options: whatever both have answered. */
static int32_t judge_choices(opi__gate *g)
{
    opi__decision *made[2] = {NULL, NULL};
    size_t n = 0, other = 0;
    point *p = NULL;
    int32_t status = opi__judge_decisions(&g->d, g->held[0], &made[0], &n);
    if (!status)
        status = opi__judge_decisions(&g->d, g->held[1], &made[1], &other);
    if (!status && !(p = opi__alloc(g->ctx, n, sizeof *p)))
        status = OPI_E_NOMEM;
    for (int kind = 0; kind < OPI__UTILITIES && !status; kind++) {
        for (size_t i = 0; i < n; i++) {
            p[i] = (point){.cell = made[0][i].cell};
            for (int side = 0; side < 2; side++) {
                p[i].v[0][side] = made[side][i].of[kind][0].top1;
                p[i].v[1][side] = made[side][i].of[kind][0].regret;
            }
        }
        status = compare(g, opi__utility_names[kind], of_choice, CHOICE_FIGURES, p, n,
                         (uint64_t)(OPI__T_COUNT + kind));
    }
    opi__free(g->ctx, made[0]);
    opi__free(g->ctx, made[1]);
    opi__free(g->ctx, p);
    return status;
}

static int32_t judge_target(opi__gate *g, int32_t target)
{
    int32_t source = opi__residual_of(target);
    int had = g->model[0]->target[source].learned != 0, has = g->model[1]->target[source].learned != 0;
    if (!had && !has)
        return OPI_OK;
    if (had != has) {
        add_check(g, opi__targets[target].name, "learned", had ? OPI__G_LOST : OPI__G_GAINED);
        return OPI_OK;
    }
    for (size_t i = 0; i < g->d.n; i++)
        for (int side = 0; side < 2; side++)
            answer(g, side, i, target);
    int32_t status = judge_rows(g, target);
    if (!status && target == OPI__T_OUT_TOK_S)
        status = judge_choices(g);
    return status;
}

/* ---- what can be known of where the rows come from ---- */

static const char *const side_name[] = {"old", "new"};

/* A table that a model was made from is no test of it. Other tables with the same rows cannot be told from the files. */
static int32_t refuse_seen(const opi__gate *g, int side, opi_error *err)
{
    opi__json *root = NULL;
    const opi_model *m = g->model[side];
    const char *mine = g->d.table->sha256, *how = NULL;
    int32_t status = opi__json_parse(m->manifest, strlen(m->manifest), "the model's manifest", &root, err);
    if (status)
        return status;
    const char *trained = opi__json_string(opi__json_get(opi__json_get(root, "training_table"), "sha256"));
    if (trained && !strcmp(trained, mine))
        how = "fitted";
    for (const opi__json *a = opi__json_first(opi__json_get(root, "adapted")); a && !how; a = opi__json_next(a)) {
        const char *used = opi__json_string(opi__json_get(a, "table_sha256"));
        if (used && !strcmp(used, mine))
            how = "adapted";
    }
    opi__json_free(root);
    if (!how)
        return OPI_OK;
    return opi__fail(err, OPI_E_INVALID, -1,
                     "the %s model was %s on this very table (SHA-256 %.*s…): rows it has seen say nothing about it; give "
                     "rows held out from both, or allow seen rows",
                     side_name[side], how, 12, mine);
}

static int32_t count_cells(opi__gate *g)
{
    point *p = opi__zalloc(g->ctx, g->d.n, sizeof *p);
    opi__cluster *c = opi__alloc(g->ctx, g->d.n, sizeof *c);
    for (size_t i = 0; i < g->d.n && p && c; i++) {
        const opi__row *r = &g->d.table->rows[g->d.row[i]];
        p[i].cell = g->d.cell[i];
        for (int side = 0; side < 2; side++) {
            opi__question q;
            opi__question_make(g->model[side], &r->config, &q);
            g->measured[side] += (size_t)opi__measured_here(g->model[side], q.encoded.envelope, q.code);
        }
    }
    if (p && c)
        g->cells = clusters_of(p, g->d.n, c);
    opi__free(g->ctx, c);
    int32_t status = p && c ? OPI_OK : OPI_E_NOMEM;
    opi__free(g->ctx, p);
    return status;
}

/* ---- */

int opi__gate_worse(const opi__gate_check *c)
{
    return c->verdict == OPI__G_WORSE || c->verdict == OPI__G_LOST;
}

/* Something must have been compared, or a table without any labels would let everything pass. */
static int32_t check_compared(const opi__gate *g, opi_error *err)
{
    size_t most = 0;
    for (size_t i = 0; i < g->n_checks; i++) {
        const opi__gate_check *c = &g->check[i];
        if (c->verdict <= OPI__G_LOST)
            return OPI_OK;
        most = c->cells > most ? c->cells : most;
    }
    return opi__fail(err, OPI_E_NODATA, -1,
                     "nothing can be compared: no target that both models learned has %d cells in the table (the most is "
                     "%zu)",
                     OPI__GATE_LEAST_CELLS, most);
}

static int32_t prepare(opi__gate *g, const opi_table *table, opi_error *err)
{
    g->resamples = g->o.resamples ? (size_t)g->o.resamples : OPI__GATE_RESAMPLES;
    if (g->o.resamples && (g->o.resamples < FEWEST_RESAMPLES || g->o.resamples > MOST_RESAMPLES))
        return opi__fail(err, OPI_E_RANGE, -1, "resamples = %d: must be from %d to %d", (int)g->o.resamples,
                         FEWEST_RESAMPLES, MOST_RESAMPLES);
    int32_t status = opi__dataset_build(g->ctx, table, 0, &g->d, err);
    for (int side = 0; side < 2 && !status && !g->o.allow_seen; side++)
        status = refuse_seen(g, side, err);
    if (status)
        return status;
    g->held[0] = opi__alloc(g->ctx, g->d.n, sizeof(opi__held));
    g->held[1] = opi__alloc(g->ctx, g->d.n, sizeof(opi__held));
    return g->held[0] && g->held[1] && !count_cells(g) ? OPI_OK : opi__fail_memory(err, g->d.n * sizeof(opi__held));
}

int32_t opi_model_gate(const opi_model *old_model, const opi_model *new_model, const opi_table *table,
                       const opi_gate_options *options, int32_t *promoted, opi_text **out, opi_error *err)
{
    if (!old_model || !new_model || !table || !promoted || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "old_model, new_model, table, promoted or out is NULL");
    opi_ctx *ctx = new_model->ctx;
    opi__gate *g = opi__zalloc(ctx, 1, sizeof *g);
    if (!g)
        return opi__fail_memory(err, sizeof *g);
    g->ctx = ctx;
    g->model[0] = old_model, g->model[1] = new_model;
    int32_t status = options ? opi__take(&g->o, sizeof g->o, options, "opi_gate_options", err) : OPI_OK;
    if (!status)
        status = prepare(g, table, err);
    for (int32_t t = 0; t < OPI__T_COUNT && !status; t++)
        if (judge_target(g, t))
            status = opi__fail_memory(err, g->d.n * sizeof(point));
    if (!status)
        status = check_compared(g, err);
    if (!status)
        status = opi__gate_report(g, out, err);
    if (!status) {
        *promoted = 1;
        for (size_t i = 0; i < g->n_checks; i++)
            if (opi__gate_worse(&g->check[i]))
                *promoted = 0;
    }
    opi__free(ctx, g->held[0]);
    opi__free(ctx, g->held[1]);
    opi__dataset_free(&g->d);
    opi__free(ctx, g);
    return status;
}
