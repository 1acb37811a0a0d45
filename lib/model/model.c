/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"
#include "base/ctx.h"
#include "base/mem.h"
#include "learn/conformal.h"
#include <math.h>
#include <string.h>

const int opi__pair_axes[OPI__PAIR_KINDS][2] = {
    {OPI__C_GPU, OPI__C_PRECISION_CLASS},    {OPI__C_GPU, OPI__C_ENGINE},  {OPI__C_FAMILY, OPI__C_ENGINE},
    {OPI__C_ENGINE, OPI__C_PRECISION_CLASS}, {OPI__C_ENGINE, OPI__C_LOAD},
};
const int opi__seen_axes[OPI__SEEN_KINDS] = {OPI__C_GPU, OPI__C_FAMILY, OPI__C_PRECISION_CLASS, OPI__C_ENGINE,
                                             OPI__C_LOAD};

void opi_model_free(opi_model *m)
{
    if (!m)
        return;
    opi_ctx *ctx = m->ctx;
    for (int t = 0; t < OPI__T_COUNT; t++) {
        opi__target_model *g = &m->target[t];
        if (g->state)
            m->learner->release(ctx, g->state);
        if (m->in_block)
            continue; /* the arrays lie in the block */
        opi__forest_free(ctx, &g->head);
        opi__free(ctx, g->group);
        opi__free(ctx, g->score);
        for (int c = 0; c < OPI__CATEGORIES; c++)
            opi__free(ctx, g->seen[c]);
        for (int k = 0; k < OPI__PAIR_KINDS; k++)
            opi__free(ctx, g->pairs[k]);
    }
    for (int c = 0; c < OPI__CATEGORIES; c++) {
        if (!m->in_block)
            for (uint32_t i = 0; m->names[c].name && i < m->names[c].n; i++)
                opi__free(ctx, (char *)m->names[c].name[i]);
        opi__free(ctx, m->names[c].name);
        if (!m->in_block)
            opi__free(ctx, m->known[c]);
    }
    if (!m->in_block || m->own_manifest)
        opi__free(ctx, m->manifest);
    if (!m->in_block) {
        opi__free(ctx, m->anchor);
    }
    opi_text_free(m->block);
    opi__free(ctx, m);
}

void opi__question_make(const opi_model *m, const opi_config *taken, opi__question *q)
{
    opi__encode(taken, &q->encoded);
    opi__feature_row(m->names, &q->encoded, q->x, q->code);
    for (int32_t t = 0; t < OPI__T_COUNT; t++)
        q->identity[t] = opi__identity_holds(t, taken->input_len, taken->output_len);
    for (int e = 0; e < OPI__ENVELOPE; e++)
        q->encoded.envelope[e] = opi__envelope_scale(e, q->encoded.envelope[e]);
}

static int seen(const uint8_t *flags, int32_t code)
{
    return code >= 0 && flags[code];
}

double opi__envelope_value(int e, double scaled)
{
    if (e == OPI__E_TP || e == OPI__E_BITS || !isfinite(scaled))
        return scaled;
    /* Through the logarithm and back, 256 would read 255.99999999999994. */
    double v = exp(scaled), unit = pow(10, ceil(log10(v)) - 12);
    return round(v / unit) * unit;
}

static void judge_numbers(const opi__target_model *g, const double *envelope, opi__verdict *v)
{
    for (int e = 0; e < OPI__ENVELOPE; e++) {
        double d = opi__range_distance(&g->range[e], envelope[e], OPI__FAR);
        if (d <= v->distance)
            continue;
        v->distance = d;
        v->axis = opi__envelope_axis(e);
        v->value = opi__envelope_value(e, envelope[e]);
        v->lo = g->range[e].seen ? opi__envelope_value(e, g->range[e].lo) : NAN;
        v->hi = g->range[e].seen ? opi__envelope_value(e, g->range[e].hi) : NAN;
    }
}

/* Categories never measured are outside. A family that is in the table (it was launched, say) but was never measured
 * for this target counts as a new combination when models of its attention kind were: calibrated on families held
 * out whole. */
static int judge_categories(const opi_model *m, const opi__target_model *g, const int32_t *code, opi__verdict *v)
{
    for (int k = 0; k < OPI__SEEN_KINDS; k++) {
        int c = opi__seen_axes[k];
        if (seen(g->seen[c], code[c]))
            continue;
        v->axis = opi__category_axis(c);
        v->value = v->lo = v->hi = NAN;
        if (c == OPI__C_FAMILY && seen(m->known[c], code[c]) &&
            seen(g->seen[OPI__C_ATTENTION], code[OPI__C_ATTENTION])) {
            v->status = OPI_P_NEW_COMBINATION;
            continue;
        }
        v->status = OPI_P_OOD;
        v->distance = OPI__FAR;
        return 1;
    }
    return 0;
}

void opi__judge(const opi_model *m, int32_t target, const double *envelope, const int32_t *code, opi__verdict *v)
{
    const opi__target_model *g = &m->target[target];
    *v = (opi__verdict){.status = OPI_P_OK, .axis = -1, .axis2 = -1, .value = NAN, .lo = NAN, .hi = NAN};
    if (judge_categories(m, g, code, v))
        return;
    int family = v->status == OPI_P_NEW_COMBINATION;
    opi__verdict numbers = {.axis = -1, .axis2 = -1};
    judge_numbers(g, envelope, &numbers);
    if (numbers.distance > 1) {
        *v = numbers;
        v->status = OPI_P_OOD;
        return;
    }
    v->distance = numbers.distance;
    if (family)
        return;
    for (int k = 0; k < OPI__PAIR_KINDS; k++) {
        int a = opi__pair_axes[k][0], b = opi__pair_axes[k][1];
        if (opi__pairs_has(g->pairs[k], g->n_pairs[k], opi__pair(code[a], code[b])))
            continue;
        v->status = OPI_P_NEW_COMBINATION;
        v->axis = opi__category_axis(a);
        v->axis2 = opi__category_axis(b);
        return;
    }
    if (seen(g->seen[OPI__C_SHAPE], code[OPI__C_SHAPE]))
        return;
    v->status = OPI_P_NEW_COMBINATION;
    v->axis = opi__category_axis(OPI__C_MODEL);
}

/* One gap for both sides, the geometric mean: the two sides' estimates are noisy, and the groups' scores bring the
 * asymmetry. */
double opi__gap(const double *head)
{
    return exp(fmin((head[1] + head[2]) / 2, 20));
}

void opi__locate(const opi_model *m, int32_t target, const float *x, const int32_t *code, int32_t site, double base,
                 opi__location *l)
{
    const opi__target_model *g = &m->target[target];
    double mean, spread, head[3];
    m->learner->predict(g->state, x, code, site, &mean, &spread);
    opi__forest_eval(&g->head, x, head);
    l->median = base + mean + spread * g->head_share * head[0];
    l->gap = spread * opi__gap(head);
}

uint64_t opi__group_key(int novelty, int level, const int32_t *code)
{
    uint64_t key = (uint64_t)novelty << 60 | (uint64_t)level << 56, part[3];
    part[0] = (uint64_t)(code[OPI__C_LOAD] + 1) & 0xffff;
    part[1] = (uint64_t)(code[OPI__C_ENGINE] + 1) & 0xffff;
    part[2] = (uint64_t)(code[OPI__C_PRECISION_CLASS] + 1) & 0xffff;
    for (int i = 0; i < OPI__GROUP_LEVELS - 1 - level; i++)
        key |= part[i] << 16 * i;
    return key;
}

static const opi__group *find_group(const opi__target_model *t, uint64_t key)
{
    size_t lo = 0, hi = t->n_groups;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (t->group[mid].key < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < t->n_groups && t->group[lo].key == key ? &t->group[lo] : NULL;
}

const opi__group *opi__group_of(const opi__target_model *t, int novelty, const int32_t *code)
{
    for (int level = 0; level < OPI__GROUP_LEVELS; level++) {
        const opi__group *g = find_group(t, opi__group_key(novelty, level, code));
        if (g)
            return g;
    }
    return NULL;
}

/* The calibration that matches the question. Errors at a campaign never seen hold all else that is new there. */
static const opi__group *calibration(const opi__target_model *t, int32_t status, int32_t site, const int32_t *code)
{
    const opi__group *g = NULL;
    if (status == OPI_P_OOD)
        g = opi__group_of(t, OPI__N_OUTSIDE, code);
    if (!g && site == OPI__NEW_SITE)
        g = opi__group_of(t, OPI__N_SITE, code);
    if (!g)
        g = opi__group_of(t, status == OPI_P_OK ? OPI__N_KNOWN : OPI__N_COMBINATION, code);
    return g;
}

void opi__answer_row(const opi_model *m, int32_t target, const double *envelope, const float *x, const int32_t *code,
                     int32_t site, double base, opi__answer *out)
{
    const int32_t source = opi__residual_of(target);
    const opi__target_model *t = &m->target[source];
    opi__judge(m, source, envelope, code, &out->verdict);
    opi__locate(m, source, x, code, site, base, &out->location);
    const opi__group *g = calibration(t, out->verdict.status, site, code);
    out->score = g ? &t->score[g->first] : NULL;
    out->n = g ? g->count : 0;
    out->group = g ? (uint32_t)(g - t->group) : UINT32_MAX;
}

void opi__answer_bounds(const opi__answer *a, double level, double *lo, double *hi)
{
    double below, above;
    opi__conformal_bounds(a->score, a->n, level, &below, &above);
    *lo = a->location.median + below * a->location.gap;
    *hi = a->location.median + above * a->location.gap;
}
