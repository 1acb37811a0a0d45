/* SPDX-License-Identifier: Apache-2.0 */
/* What a model knows about where it was measured: dictionaries, envelope, pairs, anchors. */
#include "base/linalg.h"
#include "base/mem.h"
#include "base/rng.h"
#include "model/fit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOLDS       5
#define FLAG_SHARE  .03 /* of held-out in-range rows that may be flagged on numeric axes */
#define MOST_FACTOR 6   /* slack never grows past this: an axis pushed out by half is always flagged */
/* Slack of each axis before it is widened: 5 % of the value on log axes; less than the step of the whole-numbered
 * ones. */
static const double slack[OPI__ENVELOPE] = {.05, .05, .05, .05, .05, .1, .1};

static int32_t copy_names(opi_model *m, const opi__dataset *d, const uint32_t *row, size_t n)
{
    for (int c = 0; c < OPI__CATEGORIES; c++) {
        opi__names *to = &m->names[c];
        to->name = opi__zalloc(m->ctx, d->names[c].n, sizeof *to->name);
        m->known[c] = opi__zalloc(m->ctx, d->names[c].n, 1);
        if (!to->name || !m->known[c])
            return OPI_E_NOMEM;
        for (to->n = 0; to->n < d->names[c].n; to->n++) {
            size_t bytes = strlen(d->names[c].name[to->n]) + 1;
            char *copy = opi__alloc(m->ctx, bytes, 1);
            if (!copy)
                return OPI_E_NOMEM;
            memcpy(copy, d->names[c].name[to->n], bytes);
            to->name[to->n] = copy;
        }
        for (size_t i = 0; i < n; i++)
            m->known[c][d->code[row[i] * OPI__CATEGORIES + (size_t)c]] = 1;
    }
    return OPI_OK;
}

static int32_t seen_and_pairs(opi_model *m, int t, const opi__dataset *d, const uint32_t *row, size_t n)
{
    opi__target_model *g = &m->target[t];
    for (int c = 0; c < OPI__CATEGORIES; c++) {
        if (!(g->seen[c] = opi__zalloc(m->ctx, d->names[c].n, 1)))
            return OPI_E_NOMEM;
        for (size_t i = 0; i < n; i++)
            g->seen[c][d->code[row[i] * OPI__CATEGORIES + (size_t)c]] = 1;
    }
    for (int k = 0; k < OPI__PAIR_KINDS; k++) {
        if (!(g->pairs[k] = opi__alloc(m->ctx, n, sizeof(uint64_t))))
            return OPI_E_NOMEM;
        for (size_t i = 0; i < n; i++) {
            const int32_t *code = &d->code[row[i] * OPI__CATEGORIES];
            g->pairs[k][i] = opi__pair(code[opi__pair_axes[k][0]], code[opi__pair_axes[k][1]]);
        }
        g->n_pairs[k] = opi__pairs_build(g->pairs[k], n);
    }
    return OPI_OK;
}

/* Slack is widened until at most FLAG_SHARE of rows whose whole cell was held out lie beyond the ranges of the
 * others. */
static int32_t ranges(opi_model *m, int t, const opi__dataset *d, const uint32_t *row, size_t n, uint64_t seed)
{
    opi__range r[OPI__ENVELOPE];
    uint32_t *kept = opi__alloc(m->ctx, n, sizeof *kept);
    double *distance = opi__alloc(m->ctx, n, sizeof *distance);
    size_t scored = 0;
    for (uint64_t fold = 0; fold < FOLDS && kept && distance; fold++) {
        size_t keep = 0;
        for (size_t i = 0; i < n; i++)
            if (opi__mix64(d->cell[row[i]] ^ opi__mix64(seed + 2)) % FOLDS != fold)
                kept[keep++] = row[i];
        for (int e = 0; e < OPI__ENVELOPE; e++)
            opi__range_fit(&r[e], d->envelope[e], kept, keep, slack[e]);
        for (size_t i = 0; i < n && keep; i++) {
            double worst = 0;
            if (opi__mix64(d->cell[row[i]] ^ opi__mix64(seed + 2)) % FOLDS != fold)
                continue;
            for (int e = 0; e < OPI__ENVELOPE; e++)
                worst = fmax(worst, opi__range_distance(&r[e], d->envelope[e][row[i]], OPI__FAR));
            distance[scored++] = worst;
        }
    }
    int ok = kept && distance;
    double factor = ok ? fmin(opi__slack_factor(distance, scored, FLAG_SHARE, 1), MOST_FACTOR) : 1;
    for (int e = 0; e < OPI__ENVELOPE; e++) {
        int whole = e == OPI__E_TP || e == OPI__E_BITS;
        opi__range_fit(&m->target[t].range[e], d->envelope[e], row, n, slack[e] * (whole ? 1 : factor));
    }
    opi__free(m->ctx, kept);
    opi__free(m->ctx, distance);
    return ok ? OPI_OK : OPI_E_NOMEM;
}

/* ---- anchors ---- */

static int same_anchor(const opi__anchor *a, const opi__anchor *b)
{
    return !memcmp(a->at, b->at, sizeof a->at) && !memcmp(a->code, b->code, sizeof a->code) && a->model == b->model;
}

static int by_anchor(const void *a, const void *b)
{
    const opi__anchor *x = a, *y = b;
    int order = memcmp(x->at, y->at, sizeof x->at);
    if (!order)
        order = memcmp(x->code, y->code, sizeof x->code);
    return order ? order : (x->model > y->model) - (x->model < y->model);
}

static void merge(opi_model *m)
{
    size_t kept = 0;
    qsort(m->anchor, m->n_anchors, sizeof *m->anchor, by_anchor);
    for (size_t i = 0; i < m->n_anchors; i++) {
        if (kept && same_anchor(&m->anchor[kept - 1], &m->anchor[i])) {
            m->anchor[kept - 1].targets |= m->anchor[i].targets;
            if (m->anchor[kept - 1].rows < UINT16_MAX)
                m->anchor[kept - 1].rows++;
        } else {
            m->anchor[kept++] = m->anchor[i];
        }
    }
    m->n_anchors = kept;
}

int opi__measured_here(const opi_model *m, const double *envelope, const int32_t *code)
{
    opi__anchor a;
    memset(&a, 0, sizeof a);
    for (int e = 0; e < OPI__ENVELOPE; e++)
        a.at[e] = (float)envelope[e];
    for (int k = 0; k < OPI__SEEN_KINDS; k++) {
        if (code[opi__seen_axes[k]] < 0)
            return 0;
        a.code[k] = (uint16_t)code[opi__seen_axes[k]];
    }
    if (code[OPI__C_MODEL] < 0)
        return 0;
    a.model = (uint16_t)code[OPI__C_MODEL];
    return m->n_anchors && bsearch(&a, m->anchor, m->n_anchors, sizeof a, by_anchor) != NULL;
}

/* Covariance with a ridge; blanks count as the mean. */
static void whiten(opi_model *m)
{
    double mean[OPI__ENVELOPE] = {0}, count[OPI__ENVELOPE] = {0};
    memset(m->whiten, 0, sizeof m->whiten);
    for (size_t i = 0; i < m->n_anchors; i++)
        for (int e = 0; e < OPI__ENVELOPE; e++)
            if (!isnan(m->anchor[i].at[e]))
                mean[e] += m->anchor[i].at[e], count[e]++;
    for (int e = 0; e < OPI__ENVELOPE; e++)
        mean[e] /= fmax(count[e], 1);
    for (size_t i = 0; i < m->n_anchors; i++)
        for (int a = 0; a < OPI__ENVELOPE; a++)
            for (int b = 0; b <= a; b++) {
                double x = m->anchor[i].at[a], y = m->anchor[i].at[b];
                if (isnan(x) || isnan(y))
                    continue;
                m->whiten[a * OPI__ENVELOPE + b] += (x - mean[a]) * (y - mean[b]) / (double)m->n_anchors;
            }
    for (int a = 0; a < OPI__ENVELOPE; a++)
        m->whiten[a * OPI__ENVELOPE + a] += .05;
    if (opi__cholesky(OPI__ENVELOPE, m->whiten)) { /* cannot happen with the ridge; unit axes are the honest fallback */
        memset(m->whiten, 0, sizeof m->whiten);
        for (int a = 0; a < OPI__ENVELOPE; a++)
            m->whiten[a * OPI__ENVELOPE + a] = 1;
    }
}

double opi__anchor_distance(const opi_model *m, const double *at, const int32_t *code, const opi__anchor *to)
{
    double z[OPI__ENVELOPE], sum = 0;
    for (int a = 0; a < OPI__ENVELOPE; a++) {
        double v = at[a] - (double)to->at[a];
        if (isnan(v))
            v = isnan(at[a]) == isnan(to->at[a]) ? 0 : 1;
        for (int b = 0; b < a; b++)
            v -= m->whiten[a * OPI__ENVELOPE + b] * z[b];
        z[a] = v / m->whiten[a * OPI__ENVELOPE + a];
        sum += z[a] * z[a];
    }
    for (int k = 0; k < OPI__SEEN_KINDS; k++)
        sum += code[opi__seen_axes[k]] != to->code[k];
    return sqrt(sum);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The distance within which nine of ten anchors (of a sample) have another: sweeps make the median tiny. */
static int32_t measure_spacing(opi_model *m)
{
    size_t step = m->n_anchors / 400 + 1, n = 0;
    double *nearest = opi__alloc(m->ctx, m->n_anchors / step + 1, sizeof *nearest);
    if (!nearest)
        return OPI_E_NOMEM;
    for (size_t i = 0; i < m->n_anchors; i += step) {
        const opi__anchor *a = &m->anchor[i];
        double at[OPI__ENVELOPE], best = INFINITY;
        int32_t code[OPI__CATEGORIES] = {0};
        for (int e = 0; e < OPI__ENVELOPE; e++)
            at[e] = a->at[e];
        for (int k = 0; k < OPI__SEEN_KINDS; k++)
            code[opi__seen_axes[k]] = a->code[k];
        for (size_t j = 0; j < m->n_anchors; j++)
            if (j != i)
                best = fmin(best, opi__anchor_distance(m, at, code, &m->anchor[j]));
        if (isfinite(best))
            nearest[n++] = best;
    }
    qsort(nearest, n, sizeof *nearest, by_value);
    m->spacing = n ? fmax(nearest[n * 9 / 10], 1e-3) : 1;
    opi__free(m->ctx, nearest);
    return OPI_OK;
}

static int32_t anchors(opi_model *m, const opi__dataset *d, const uint32_t *row, size_t n)
{
    m->anchor = opi__zalloc(m->ctx, n, sizeof *m->anchor);
    if (!m->anchor)
        return OPI_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        opi__anchor a;
        const int32_t *code = &d->code[row[i] * OPI__CATEGORIES];
        memset(&a, 0, sizeof a);
        for (int e = 0; e < OPI__ENVELOPE; e++)
            a.at[e] = (float)d->envelope[e][row[i]];
        for (int k = 0; k < OPI__SEEN_KINDS; k++)
            a.code[k] = (uint16_t)code[opi__seen_axes[k]];
        a.model = (uint16_t)code[OPI__C_MODEL];
        a.rows = 1;
        for (int t = 0; t < OPI__T_COUNT; t++)
            if (m->target[t].learned && !isnan(d->y[t][row[i]]))
                a.targets |= (uint16_t)(1u << t);
        if (a.targets)
            m->anchor[m->n_anchors++] = a;
    }
    merge(m);
    whiten(m);
    return measure_spacing(m);
}

int32_t opi__support_build(opi_model *m, const opi__dataset *d, const uint32_t *row, size_t n,
                           const opi__fit_settings *s)
{
    uint32_t *mine = opi__alloc(m->ctx, n, sizeof *mine);
    int32_t status = mine ? copy_names(m, d, row, n) : OPI_E_NOMEM;
    for (int t = 0; t < OPI__T_COUNT && !status; t++) {
        size_t kept = 0;
        if (!m->target[t].learned)
            continue;
        for (size_t i = 0; i < n; i++)
            if (!isnan(d->y[t][row[i]]))
                mine[kept++] = row[i];
        status = seen_and_pairs(m, t, d, mine, kept);
        if (!status)
            status = ranges(m, t, d, mine, kept, s->seed);
    }
    if (!status)
        status = anchors(m, d, row, n);
    opi__free(m->ctx, mine);
    return status;
}
