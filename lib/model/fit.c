/* SPDX-License-Identifier: Apache-2.0 */
/* Fitting: locations on all rows, on all but a fold of cells, and on all but a fold of each kind of combination; the
 * quantile head on the residuals of held-out cells; conformal scores by group from heads that did not see the row's
 * cell either. */
#include "model/fit.h"
#include "base/ctx.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "base/status.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define COMBINATION_FOLDS 3
/* Kinds of held-out rows: a pair of categories, or one category whole (-1): the LLM, and the family, whose place the
 * attention kind then takes (model.c, judge_categories); the GPU. The campaign is no category. */
static const int combination[][2] = {{OPI__C_GPU, OPI__C_PRECISION_CLASS},
                                     {OPI__C_FAMILY, OPI__C_ENGINE},
                                     {OPI__C_SHAPE, -1},
                                     {OPI__C_FAMILY, -1},
                                     {OPI__C_GPU, -1}};
_Static_assert(sizeof combination / sizeof *combination == OPI__HELD_SITE, "a line a kind");

uint64_t opi__held_key(const opi__dataset *d, int kind, size_t row)
{
    const int32_t *code = &d->code[row * OPI__CATEGORIES];
    if (kind == OPI__HELD_SITE)
        return (uint64_t)d->source[row];
    const int *pair = combination[kind];
    return opi__pair(code[pair[0]], pair[1] < 0 ? 0 : code[pair[1]]);
}

/* One unit of parallel work. kind -1: all rows; 0: cells; 1 …: combination kind - 1; COARSE: cells in few folds. */
#define COARSE (OPI__NOVEL_KINDS + 1)
typedef struct job {
    int32_t target, kind, fold;
} job;

typedef struct fitting {
    opi_ctx *ctx;
    const opi__dataset *d;
    const opi__fit_settings *s;
    const opi__learner *learner;
    opi_model *m;
    opi__target_work work[OPI__T_COUNT];
    job jobs[OPI__T_COUNT * (1 + OPI__MOST_CELL_FOLDS + OPI__NOVEL_KINDS * COMBINATION_FOLDS + OPI__COARSE_FOLDS)];
    size_t n_jobs, total;
    atomic_size_t done;
    atomic_int canceled, status;
    atomic_flag telling;
} fitting;

static int stop(void *user)
{
    fitting *f = user;
    return atomic_load(&f->canceled) || atomic_load(&f->status);
}

/* One job's end is one step. One thread at a time talks to the caller; the others do not wait for it. */
static void step(fitting *f, const char *stage)
{
    size_t done = atomic_fetch_add(&f->done, 1) + 1;
    if (!f->s->progress || atomic_flag_test_and_set(&f->telling))
        return;
    if (f->s->progress(f->s->progress_user, stage, done, f->total))
        atomic_store(&f->canceled, 1);
    atomic_flag_clear(&f->telling);
}

static uint64_t fold_of(const fitting *f, const job *j, size_t i)
{
    if (j->kind == 0)
        return opi__cell_fold(f->d->cell[i], f->s->seed, f->work[j->target].n);
    if (j->kind == COARSE)
        return opi__mix64(f->d->cell[i] ^ opi__mix64(f->s->seed + 3)) % OPI__COARSE_FOLDS;
    return opi__mix64(opi__mix64(opi__held_key(f->d, j->kind - 1, i)) + f->s->seed + (uint64_t)j->kind) %
           COMBINATION_FOLDS;
}

/* Rows outside the fold into `keep`; returns how many. */
static size_t split(const fitting *f, const job *j, uint32_t *keep)
{
    const opi__target_work *w = &f->work[j->target];
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        if (j->kind < 0 || fold_of(f, j, w->row[i]) != (uint64_t)j->fold)
            keep[n++] = w->row[i];
    return n;
}

static int axis_required(int held, int k)
{
    int axis = opi__seen_axes[k];
    return axis == OPI__C_FAMILY && held == OPI__HELD_FAMILY ? OPI__C_ATTENTION : axis;
}

/* A held-out row counts as a new combination only when each of its single values is still among the rows kept. */
static void mark_seen(const fitting *f, const job *j, const uint32_t *keep, size_t n, uint8_t *flags, size_t stride)
{
    memset(flags, 0, stride * OPI__SEEN_KINDS);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < OPI__SEEN_KINDS; k++)
            flags[(size_t)k * stride +
                  (size_t)f->d->code[keep[i] * OPI__CATEGORIES + (size_t)axis_required(j->kind - 1, k)]] = 1;
}

static size_t widest(const opi__dataset *d)
{
    size_t n = 1;
    for (int c = 0; c < OPI__CATEGORIES; c++)
        n = d->names[c].n > n ? d->names[c].n : n;
    return n;
}

static void predict_held(fitting *f, const job *j, void *state, const uint32_t *keep, size_t kept, uint8_t *flags)
{
    opi__target_work *w = &f->work[j->target];
    size_t stride = widest(f->d);
    int combined = j->kind > 0 && j->kind != COARSE;
    if (combined)
        mark_seen(f, j, keep, kept, flags, stride);
    for (size_t i = 0; i < w->n; i++) {
        size_t row = w->row[i];
        const int32_t *code = &f->d->code[row * OPI__CATEGORIES];
        double mean, spread;
        int inside = 1;
        if (fold_of(f, j, row) != (uint64_t)j->fold)
            continue;
        for (int k = 0; k < OPI__SEEN_KINDS && combined; k++)
            inside &= flags[(size_t)k * stride + (size_t)code[axis_required(j->kind - 1, k)]];
        f->learner->predict(state, &f->d->x[row * OPI__FEATURES], code, f->d->source[row], &mean, &spread);
        if (j->kind == 0)
            w->held[i] = mean, w->spread[i] = spread;
        else if (j->kind == COARSE)
            w->coarse[i] = mean;
        else
            w->novel[j->kind - 1][i] = inside ? (f->d->y[j->target][row] - mean) / spread : NAN;
    }
}

/* With a closed form: a row counts as a new combination when each of its single values is measured outside of what was
 * held out too, that is in another block. */
static int32_t mark_inside(const fitting *f, opi__target_work *w, int held)
{
    size_t stride = widest(f->d);
    uint64_t *first = opi__alloc(f->ctx, stride, sizeof *first);
    uint8_t *state = opi__alloc(f->ctx, stride, 1); /* 0: not seen, 1: in one block, 2: in several */
    for (int k = 0; k < OPI__SEEN_KINDS && first && state; k++) {
        size_t axis = (size_t)axis_required(held, k);
        memset(state, 0, stride);
        for (size_t i = 0; i < w->n; i++) {
            size_t code = (size_t)f->d->code[w->row[i] * OPI__CATEGORIES + axis];
            uint64_t key = opi__held_key(f->d, held, w->row[i]);
            if (!state[code])
                first[code] = key, state[code] = 1;
            else if (first[code] != key)
                state[code] = 2;
        }
        for (size_t i = 0; i < w->n; i++)
            if (state[f->d->code[w->row[i] * OPI__CATEGORIES + axis]] < 2)
                w->novel[held][i] = NAN;
    }
    int32_t status = first && state ? OPI_OK : OPI_E_NOMEM;
    opi__free(f->ctx, first);
    opi__free(f->ctx, state);
    return status;
}

static int32_t take_closed(const fitting *f, opi__target_work *w)
{
    int32_t status = OPI_OK;
    for (int k = 0; k < OPI__NOVEL_KINDS && !status; k++) {
        memcpy(w->novel[k], w->apart[k], w->n * sizeof **w->novel);
        status = mark_inside(f, w, k);
    }
    return status;
}

static uint64_t job_seed(const fitting *f, const job *j, uint64_t stage)
{
    return opi__mix64(f->s->seed * 1000003 + (uint64_t)j->target * 8191 + (uint64_t)(j->kind + 1) * 127 +
                      (uint64_t)j->fold) ^
           stage;
}

static void run_location(void *user, size_t at)
{
    fitting *f = user;
    const job *j = &f->jobs[at];
    opi__target_work *w = &f->work[j->target];
    if (stop(f))
        return;
    uint32_t *keep = opi__alloc(f->ctx, w->n, sizeof *keep);
    uint8_t *flags = opi__alloc(f->ctx, widest(f->d) * OPI__SEEN_KINDS, 1);
    void *state = NULL;
    int32_t status = keep && flags ? OPI_OK : OPI_E_NOMEM;
    if (!status) {
        size_t n = split(f, j, keep);
        opi__held_out held = {.location = w->held, .spread = w->spread};
        memcpy(held.kind, w->apart, sizeof held.kind);
        opi__fit_job fit = {.data = f->d,
                            .target = j->target,
                            .row = keep,
                            .n = n,
                            .seed = job_seed(f, j, 0),
                            .stop = stop,
                            .user = f,
                            .held = f->learner->closed_form ? &held : NULL};
        status = f->learner->fit(f->ctx, &fit, &state, NULL);
        if (!status && f->learner->closed_form)
            status = take_closed(f, w);
        if (!status && j->kind >= 0)
            predict_held(f, j, state, keep, n, flags);
    }
    if (!status && j->kind < 0)
        f->m->target[j->target].state = state;
    else if (state)
        f->learner->release(f->ctx, state);
    opi__free(f->ctx, keep);
    opi__free(f->ctx, flags);
    if (status)
        atomic_store(&f->status, status);
    step(f, opi__targets[j->target].title);
}

static void run_head(void *user, size_t at)
{
    fitting *f = user;
    const job *j = &f->jobs[at];
    opi__target_work *w = &f->work[j->target];
    if (stop(f))
        return;
    /* A head sees residuals of models that knew the rows it will be judged on: a large head would chase them (80 %
     * intervals then cover 87 % of new cells), so small tables get a very small one. */
    opi__boost_params p = {.loss = OPI__LOSS_QUANTILES,
                           .trees = 30,
                           .leaves = 4,
                           .depth = 5,
                           .rate = .08,
                           .l2 = 5,
                           .min_weight = w->n < 500 ? 10 : 20,
                           .row_share = .7,
                           .column_share = .4,
                           .seed = job_seed(f, j, 7)};
    if (w->n >= 3000)
        p.trees = 120, p.leaves = 8, p.rate = .06;
    opi__forest head;
    uint32_t *keep = opi__alloc(f->ctx, w->n, sizeof *keep);
    int32_t status = keep ? OPI_OK : OPI_E_NOMEM;
    if (!status) {
        size_t n = split(f, j, keep);
        status = opi__forest_grow(f->ctx, &p, &f->d->bins, keep, n, w->z, stop, f, &head);
    }
    for (size_t i = 0; i < w->n && !status && j->kind == 0; i++)
        if (fold_of(f, j, w->row[i]) == (uint64_t)j->fold)
            opi__forest_eval(&head, &f->d->x[w->row[i] * OPI__FEATURES], w->head[i]);
    if (!status && j->kind < 0)
        f->m->target[j->target].head = head;
    else if (!status)
        opi__forest_free(f->ctx, &head);
    opi__free(f->ctx, keep);
    if (status)
        atomic_store(&f->status, status);
    step(f, opi__targets[j->target].title);
}

/* Distinct cells, or campaigns, of a target's rows. */
static uint32_t count_distinct(const fitting *f, const opi__target_work *w, int campaigns)
{
    uint64_t *key = opi__alloc(f->ctx, w->n, sizeof *key);
    size_t n = 0;
    for (size_t i = 0; i < w->n && key; i++)
        key[i] = campaigns ? (uint64_t)f->d->source[w->row[i]] : f->d->cell[w->row[i]];
    if (key)
        n = opi__pairs_build(key, w->n);
    opi__free(f->ctx, key);
    return (uint32_t)n;
}

static int32_t prepare(fitting *f, const uint32_t *row, size_t n)
{
    for (int t = 0; t < OPI__T_COUNT; t++) {
        opi__target_work *w = &f->work[t];
        w->row = opi__alloc(f->ctx, n, sizeof *w->row);
        if (!w->row)
            return OPI_E_NOMEM;
        for (size_t i = 0; i < n; i++)
            if (!isnan(f->d->y[t][row[i]]))
                w->row[w->n++] = row[i];
        opi__target_model *g = &f->m->target[t];
        g->rows = (uint32_t)w->n;
        g->cells = count_distinct(f, w, 0);
        g->sources = count_distinct(f, w, 1);
        g->learned = w->n >= OPI__LEAST_ROWS && g->cells >= OPI__LEAST_CELLS && opi__residual_of(t) == t;
        if (!g->learned)
            continue;
        w->held = opi__alloc(f->ctx, w->n, sizeof *w->held);
        w->spread = opi__alloc(f->ctx, w->n, sizeof *w->spread);
        w->coarse = opi__alloc(f->ctx, w->n, sizeof *w->coarse);
        w->head = opi__alloc(f->ctx, w->n, sizeof *w->head);
        w->z = opi__alloc(f->ctx, f->d->n, sizeof *w->z);
        if (!w->held || !w->spread || !w->coarse || !w->head || !w->z)
            return OPI_E_NOMEM;
        for (int k = 0; k < OPI__HELD_KINDS && f->learner->closed_form; k++)
            if (!(w->apart[k] = opi__alloc(f->ctx, w->n, sizeof(double))))
                return OPI_E_NOMEM;
        for (int k = 0; k < OPI__NOVEL_KINDS; k++) {
            if (!(w->novel[k] = opi__alloc(f->ctx, w->n, sizeof(double))))
                return OPI_E_NOMEM;
            for (size_t i = 0; i < w->n; i++)
                w->novel[k][i] = NAN;
        }
    }
    return OPI_OK;
}

static void add_jobs(fitting *f, int32_t target, int32_t kind, int32_t folds)
{
    for (int32_t k = 0; k < folds; k++)
        f->jobs[f->n_jobs++] = (job){target, kind, k};
}

/* The largest targets come first so that the threads end together. */
static void plan(fitting *f, int heads)
{
    size_t bound = SIZE_MAX;
    f->n_jobs = 0;
    for (;;) {
        int best = -1;
        size_t most = 0;
        for (int t = 0; t < OPI__T_COUNT; t++) {
            size_t size = f->work[t].n * OPI__T_COUNT + (size_t)t; /* unique */
            if (f->m->target[t].learned && size < bound && size >= most)
                most = size, best = t;
        }
        if (best < 0)
            break;
        bound = most;
        int again = !heads && !f->learner->closed_form;
        add_jobs(f, best, -1, 1);
        if (heads || again)
            add_jobs(f, best, 0, opi__cell_folds(f->work[best].n));
        for (int k = 1; k <= OPI__NOVEL_KINDS && again; k++)
            add_jobs(f, best, k, COMBINATION_FOLDS);
        if (again)
            add_jobs(f, best, COARSE, OPI__COARSE_FOLDS);
    }
}

static void standardize(fitting *f)
{
    for (int t = 0; t < OPI__T_COUNT; t++) {
        opi__target_work *w = &f->work[t];
        for (size_t i = 0; i < w->n && f->m->target[t].learned; i++)
            w->z[w->row[i]] = (f->d->y[t][w->row[i]] - w->held[i]) / w->spread[i];
    }
}

static void release(fitting *f)
{
    for (int t = 0; t < OPI__T_COUNT; t++) {
        opi__target_work *w = &f->work[t];
        opi__free(f->ctx, w->row);
        opi__free(f->ctx, w->held);
        opi__free(f->ctx, w->spread);
        opi__free(f->ctx, w->coarse);
        opi__free(f->ctx, w->head);
        opi__free(f->ctx, w->z);
        for (int k = 0; k < OPI__NOVEL_KINDS; k++)
            opi__free(f->ctx, w->novel[k]);
        for (int k = 0; k < OPI__HELD_KINDS; k++)
            opi__free(f->ctx, w->apart[k]);
    }
    opi__free(f->ctx, f);
}

static int32_t run(fitting *f, void (*work)(void *, size_t), int heads)
{
    plan(f, heads);
    opi__parallel(f->s->threads, f->n_jobs, work, f);
    return atomic_load(&f->canceled) ? OPI_E_CANCELED : atomic_load(&f->status);
}

static void count_steps(fitting *f)
{
    plan(f, 0);
    f->total = f->n_jobs;
    plan(f, 1);
    f->total += f->n_jobs;
}

int32_t opi__fit_rows(opi_ctx *ctx, const opi__dataset *d, const uint32_t *row, size_t n, const opi__fit_settings *s,
                      opi_model **out, opi__fit_summary *summary, opi_error *err)
{
    fitting *f = opi__zalloc(ctx, 1, sizeof *f);
    opi_model *m = opi__zalloc(ctx, 1, sizeof *m);
    const opi__learner *learner = opi__learner_find(s->learner);
    int32_t status = f && m ? OPI_OK : OPI_E_NOMEM;
    if (!status && !learner)
        status = OPI_E_UNKNOWN;
    if (!status) {
        f->ctx = m->ctx = ctx, f->d = d, f->s = s, f->m = m;
        f->learner = m->learner = learner;
        status = prepare(f, row, n);
    }
    if (!status)
        count_steps(f);
    int learn = !status && !s->support_only;
    if (learn)
        status = run(f, run_location, 0);
    if (learn && !status) {
        standardize(f);
        status = run(f, run_head, 1);
    }
    for (int t = 0; t < OPI__T_COUNT && learn && !status; t++)
        if (m->target[t].learned)
            status = opi__calibrate(m, t, d, &f->work[t], s->seed);
    if (!status)
        status = opi__support_build(m, d, row, n, s);
    for (int t = 0; t < OPI__T_COUNT && summary && !status; t++)
        status = opi__summarize(m, t, d, &f->work[t], s->seed, &summary[t]);
    if (f && f->ctx)
        release(f);
    else
        opi__free(ctx, f);
    if (!status) {
        *out = m;
        return OPI_OK;
    }
    if (m && m->ctx)
        opi_model_free(m);
    else
        opi__free(ctx, m);
    if (status == OPI_E_UNKNOWN)
        return opi__fail(err, status, -1,
                         "learner \"%s\": there is no such learner; this library has \"boost\" and \"krige\"",
                         s->learner);
    if (status == OPI_E_CANCELED)
        return opi__fail(err, status, -1, "fitting was canceled");
    return opi__fail_memory(err, 0);
}
