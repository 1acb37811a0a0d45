/* SPDX-License-Identifier: Apache-2.0 */
/* From held-out residuals to calibration groups, and what the held-out cells say of the fit. */
#include "base/mem.h"
#include "base/rng.h"
#include "learn/conformal.h"
#include "model/fit.h"
#include <math.h>
#include <stdlib.h>

#define MOST_SCORES 1500 /* a group keeps */
/* Residuals of held-out cells come from models that miss a fold of the cells the final one has: few folds would
 * calibrate for a poorer model than the one shipped (intervals covered 89 % instead of 80 % with five). Small tables
 * can afford more. */
#define MANY_ROWS   3000
#define LEAST_CURVE .8
#define LEAST_SITES 3

uint32_t opi__cell_folds(size_t n)
{
    return n < MANY_ROWS ? OPI__MOST_CELL_FOLDS : 12;
}

uint32_t opi__cell_fold(uint64_t cell, uint64_t seed, size_t n)
{
    return (uint32_t)(opi__mix64(cell ^ opi__mix64(seed + 1)) % opi__cell_folds(n));
}

typedef struct scored { /* key: opi__group_key */
    uint64_t key;
    float score;
} scored;

static float score(double z, const double *head, double share)
{
    return (float)((z - share * head[0]) / opi__gap(head));
}

static int by_key_and_score(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->score > y->score) - (x->score < y->score);
}

/* Outside: an LLM or a family that leaves nothing like it behind, any GPU. New site: whole campaigns, when there are
 * enough of them to say anything; else the spread, which has the campaigns' variance in it, must do. */
static size_t collect_apart(const opi__target_work *w, size_t i, const int32_t *code, double share, int sites,
                            scored *out, size_t n)
{
    for (int k = OPI__HELD_LLM; k < (sites ? OPI__HELD_KINDS : OPI__HELD_SITE) && w->apart[k]; k++) {
        if (k < OPI__NOVEL_KINDS && !isnan(w->novel[k][i]))
            continue;
        int novelty = k == OPI__HELD_SITE ? OPI__N_SITE : OPI__N_OUTSIDE;
        float s = score(w->apart[k][i], w->head[i], share);
        for (int level = OPI__COMBINATION_LEVEL; level < OPI__GROUP_LEVELS; level++)
            out[n++] = (scored){opi__group_key(novelty, level, code), s};
    }
    return n;
}

static size_t collect(const opi__dataset *d, const opi__target_work *w, double share, double curve, int sites,
                      scored *out)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        size_t row = w->row[i];
        const int32_t *code = &d->code[row * OPI__CATEGORIES];
        float s = score(w->z[row], w->head[i], share);
        for (int level = 0; level < OPI__GROUP_LEVELS; level++)
            out[n++] = (scored){opi__group_key(OPI__N_KNOWN, level, code), s * (float)curve};
        for (int k = 0; k < OPI__NOVEL_KINDS; k++) {
            if (isnan(w->novel[k][i]))
                continue;
            s = score(w->novel[k][i], w->head[i], share);
            for (int level = OPI__COMBINATION_LEVEL; level < OPI__GROUP_LEVELS; level++)
                out[n++] = (scored){opi__group_key(OPI__N_COMBINATION, level, code), s};
        }
        n = collect_apart(w, i, code, share, sites, out, n);
    }
    return n;
}

/* A random subset of exchangeable scores calibrates as validly as all of them; a model need not carry thousands. */
static size_t thin(scored *group, size_t n, uint64_t seed)
{
    opi__rng rng;
    size_t kept = 0, want = n < MOST_SCORES ? n : MOST_SCORES;
    opi__rng_seed(&rng, seed ^ group[0].key);
    for (size_t k = 0; k < n; k++)
        if (opi__rng_uniform(&rng) * (double)(n - k) < (double)(want - kept))
            group[kept++] = group[k];
    return kept;
}

/* Keeps the groups that are large enough (the coarsest always). */
static int32_t group(opi_ctx *ctx, opi__target_model *g, scored *all, size_t n, uint64_t seed)
{
    qsort(all, n, sizeof *all, by_key_and_score);
    g->group = opi__alloc(ctx, n, sizeof *g->group);
    g->score = opi__alloc(ctx, n, sizeof *g->score);
    if (!g->group || !g->score)
        return OPI_E_NOMEM;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && all[end].key == all[i].key;)
            end++;
        int coarsest = (all[i].key >> 56 & 15) == OPI__GROUP_LEVELS - 1;
        if (end - i < OPI__GROUP_LEAST && !coarsest)
            continue;
        size_t kept = thin(&all[i], end - i, seed);
        g->group[g->n_groups++] = (opi__group){all[i].key, (uint32_t)g->n_scores, (uint32_t)kept};
        for (size_t k = i; k < i + kept; k++)
            g->score[g->n_scores++] = all[k].score;
    }
    return OPI_OK;
}

/* How much of the head's shift of the median to believe: what lowers the absolute error of cells it did not see. */
static double choose_share(const opi__target_work *w)
{
    static const double choices[] = {0, .25, .5, .75, 1};
    double best = INFINITY, share = 0;
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
        double sum = 0;
        for (size_t i = 0; i < w->n; i++)
            sum += w->spread[i] * fabs(w->z[w->row[i]] - choices[k] * w->head[i][0]);
        if (sum < best)
            best = sum, share = choices[k];
    }
    return share;
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Size of held-out residuals where an 80 % interval ends. */
static double typical_residual(const opi__dataset *d, int32_t target, const opi__target_work *w, const double *location,
                               double *scratch)
{
    for (size_t i = 0; i < w->n; i++)
        scratch[i] = fabs(d->y[target][w->row[i]] - location[i]);
    qsort(scratch, w->n, sizeof *scratch, by_number);
    return scratch[w->n * 8 / 10];
}

/* The shipped model has seen all cells, those that gave the residuals all but a fold: its errors are smaller. How
 * much follows from the learning curve through two fold counts, residual ~ cells ^ -a. Never below LEAST_CURVE,
 * never above 1. */
static double learning_curve(const opi__dataset *d, int32_t target, const opi__target_work *w, double *scratch)
{
    double fine = 1 - 1. / opi__cell_folds(w->n), coarse = 1 - 1. / OPI__COARSE_FOLDS;
    double ratio =
        typical_residual(d, target, w, w->coarse, scratch) / typical_residual(d, target, w, w->held, scratch);
    double a = log(ratio) / log(fine / coarse);
    return a > 0 ? fmax(pow(fine, a), LEAST_CURVE) : 1;
}

int32_t opi__calibrate(opi_model *m, int32_t target, const opi__dataset *d, const opi__target_work *w, uint64_t seed)
{
    opi__target_model *g = &m->target[target];
    size_t most = w->n * OPI__GROUP_LEVELS * (1 + OPI__NOVEL_KINDS + OPI__HELD_KINDS);
    scored *all = opi__alloc(m->ctx, most, sizeof *all);
    double *scratch = opi__alloc(m->ctx, w->n, sizeof *scratch);
    g->head_share = choose_share(w);
    /* A closed form leaves out one cell only: no curve to correct for. */
    double curve = scratch && !m->learner->closed_form ? learning_curve(d, target, w, scratch) : 1;
    opi__free(m->ctx, scratch);
    int32_t status = all && scratch ? group(m->ctx, g, all,
                                            collect(d, w, g->head_share, curve, g->sources >= LEAST_SITES, all), seed)
                                    : OPI_E_NOMEM;
    opi__free(m->ctx, all);
    return status;
}

/* Rows of one calibration group inside their 80 % interval when their own fold of cells gives it no scores. */
static size_t covered(const opi__target_model *t, const opi__group *g, const opi__dataset *d, const opi__target_work *w,
                      uint64_t seed, float *others)
{
    double share = t->head_share;
    int level = (int)(g->key >> 56 & 15);
    size_t inside = 0;
    for (uint32_t k = 0; k < opi__cell_folds(w->n); k++) {
        double lo, hi;
        size_t n = 0;
        for (size_t i = 0; i < w->n; i++)
            if (opi__group_key(OPI__N_KNOWN, level, &d->code[w->row[i] * OPI__CATEGORIES]) == g->key &&
                opi__cell_fold(d->cell[w->row[i]], seed, w->n) != k)
                others[n++] = score(w->z[w->row[i]], w->head[i], share);
        opi__conformal_sort(others, n);
        opi__conformal_bounds(others, n, .8, &lo, &hi);
        for (size_t i = 0; i < w->n; i++) {
            if (opi__group_of(t, OPI__N_KNOWN, &d->code[w->row[i] * OPI__CATEGORIES]) != g ||
                opi__cell_fold(d->cell[w->row[i]], seed, w->n) != k)
                continue;
            double s = (double)score(w->z[w->row[i]], w->head[i], share);
            inside += s >= lo && s <= hi;
        }
    }
    return inside;
}

int32_t opi__summarize(const opi_model *m, int32_t target, const opi__dataset *d, const opi__target_work *w,
                       uint64_t seed, opi__fit_summary *out)
{
    const opi__target_model *g = &m->target[target];
    *out = (opi__fit_summary){NAN, NAN, NAN};
    if (!g->learned)
        return OPI_OK;
    double *ape = opi__alloc(m->ctx, w->n, sizeof *ape), sum = 0;
    float *others = opi__alloc(m->ctx, w->n, sizeof *others);
    size_t inside = 0;
    for (size_t i = 0; i < w->n && ape; i++) {
        ape[i] = fabs(expm1(w->spread[i] * (g->head_share * w->head[i][0] - w->z[w->row[i]])));
        sum += ape[i];
    }
    for (size_t k = 0; k < g->n_groups && others; k++)
        if (g->group[k].key >> 60 == OPI__N_KNOWN)
            inside += covered(g, &g->group[k], d, w, seed, others);
    if (ape && others) {
        qsort(ape, w->n, sizeof *ape, by_number);
        *out = (opi__fit_summary){ape[w->n / 2], sum / (double)w->n, (double)inside / (double)w->n};
    }
    opi__free(m->ctx, ape);
    opi__free(m->ctx, others);
    return ape && others ? OPI_OK : OPI_E_NOMEM;
}
