/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/preference.h"

#include "base/status.h"
#include "base/take.h"
#include "base/text.h"
#include "decide/logit.h"
#include "decide/utility.h"

#include <math.h>
#include <string.h>

#define K OPI__ATTRIBUTES
#define RIDGE 0.1
#define LEVEL 0.95
/* Spread left of an attribute once the others are known: less than a thousandth, and its weight is anyone's guess. */
#define COLLINEAR 1e6
/* Standard errors that a weight grows by when the ridge all but goes away: there is no maximum to grow to. */
#define GROWS 2.0
#define LITTLE_RIDGE 1e-4

/* What the fit works on; freed when it is done. */
typedef struct work {
    opi__choices choices;
    double *x;
    size_t *start, *chosen;
    opi__logit logit;
    double scale[K];
    uint32_t varies; /* bit a: attribute a varies within a situation */
    opi__logit_fit fit;
    double z; /* standard errors to an interval's end */
} work;

static const double *weight_in(const opi_utility *u, size_t a)
{
    return (const double *)(const void *)((const char *)u + opi__attributes[a].offset);
}

static int32_t pack(opi_ctx *ctx, work *w, opi_error *err)
{
    const opi__choices *c = &w->choices;
    w->x = opi__alloc(ctx, c->n_offers, K * sizeof *w->x);
    w->start = opi__alloc(ctx, c->n_situations + 1, sizeof *w->start);
    w->chosen = opi__alloc(ctx, c->n_situations, sizeof *w->chosen);
    if (!w->x || !w->start || !w->chosen)
        return opi__fail_memory(err, c->n_offers * K * sizeof *w->x);
    size_t row = 0;
    for (size_t i = 0; i < c->n_situations; i++) {
        const opi__situation *s = &c->situations[i];
        w->start[i] = row;
        w->chosen[i] = row + s->chosen;
        for (size_t k = 0; k < s->n; k++, row++)
            memcpy(w->x + row * K, s->offer[k].x, K * sizeof *w->x);
    }
    w->start[c->n_situations] = row;
    w->logit = (opi__logit){c->n_situations, K, w->start, w->chosen, w->x};
    opi__logit_scale(w->x, c->n_situations, w->start, K, w->scale);
    return OPI_OK;
}

static int32_t fit_failed(opi_error *err)
{
    return opi__fail(err, OPI_E_INTERNAL, -1, "preferences: the fit did not converge");
}

/* Which weights the choices tell. */
static int32_t judge(work *w, opi_preferences *p, opi_error *err)
{
    double inflation[K];
    opi__logit_fit loose;
    if (opi__logit_inflation(&w->logit, inflation) != 0)
        return fit_failed(err);
    for (size_t a = 0; a < K; a++) {
        p->weight[a].status = !(w->choices.columns >> a & 1) ? OPI_PREF_NO_COLUMN
                              : w->scale[a] == 0             ? OPI_PREF_CONSTANT
                              : inflation[a] > COLLINEAR     ? OPI_PREF_COLLINEAR
                                                             : OPI_PREF_IDENTIFIED;
        w->varies |= w->scale[a] > 0 ? 1u << a : 0;
    }
    memset(&w->fit, 0, sizeof w->fit);
    if (opi__logit_fit_ridge(&w->logit, p->summary.ridge, w->varies, &w->fit) != 0)
        return fit_failed(err);
    loose = w->fit;
    if (opi__logit_fit_ridge(&w->logit, p->summary.ridge * LITTLE_RIDGE, w->varies, &loose) != 0)
        return fit_failed(err);
    const int all = loose.hits == w->logit.n_situations; /* a direction explains every choice: the fit has no end */
    for (size_t a = 0; a < K; a++) {
        const double grown = fabs(loose.beta[a] - w->fit.beta[a]), se = sqrt(w->fit.covariance[a * K + a]);
        if (p->weight[a].status == OPI_PREF_IDENTIFIED && (all || grown > GROWS * se))
            p->weight[a].status = OPI_PREF_SEPARATED;
    }
    return OPI_OK;
}

/* Estimate, standard error and Fieller's interval of weight a: coefficient over the cost's coefficient. */
static void ratio(const work *w, size_t a, opi_preference *out)
{
    const double b = out->coefficient, m = w->fit.beta[OPI__A_COST] / w->scale[OPI__A_COST];
    const double sa = w->scale[a], sm = w->scale[OPI__A_COST];
    const double vb = w->fit.covariance[a * K + a] / (sa * sa);
    const double vm = w->fit.covariance[OPI__A_COST * K + OPI__A_COST] / (sm * sm);
    const double c = w->fit.covariance[a * K + OPI__A_COST] / (sa * sm), zz = w->z * w->z, r = b / m;
    out->weight = r;
    out->se = sqrt(fmax(vb - 2 * r * c + r * r * vm, 0)) / fabs(m);
    /* (b - w m)^2 <= z^2 Var(b - w m), a quadratic in w; bounded since m is z standard errors from 0. */
    const double q2 = m * m - zz * vm, q1 = b * m - zz * c, q0 = b * b - zz * vb;
    const double root = sqrt(fmax(q1 * q1 - q2 * q0, 0));
    out->lo = (q1 - root) / q2;
    out->hi = (q1 + root) / q2;
}

static void describe(const work *w, opi_preferences *p)
{
    opi_preferences_summary *s = &p->summary;
    opi_preference *cost = &p->weight[OPI__A_COST];
    for (size_t a = 0; a < K; a++) {
        opi_preference *o = &p->weight[a];
        o->struct_size = sizeof *o;
        o->name = opi__attributes[a].weight;
        o->column = opi__attributes[a].column;
        o->unit = opi__attributes[a].unit;
        o->weight = o->se = o->lo = o->hi = o->coefficient = o->coefficient_se = NAN;
        if (w->scale[a] > 0) {
            o->coefficient = w->fit.beta[a] / w->scale[a];
            o->coefficient_se = sqrt(w->fit.covariance[a * K + a]) / w->scale[a];
        }
        o->used = a == OPI__A_COST ? NAN : *weight_in(&p->base, a);
    }
    if (cost->status == OPI_PREF_IDENTIFIED && !(cost->coefficient > w->z * cost->coefficient_se))
        cost->status = OPI_PREF_NO_SCALE;
    for (size_t a = OPI__A_COST + 1; a < K; a++) {
        if (p->weight[a].status == OPI_PREF_IDENTIFIED && cost->status != OPI_PREF_IDENTIFIED)
            p->weight[a].status = OPI_PREF_NO_SCALE;
        if (p->weight[a].status == OPI_PREF_IDENTIFIED)
            ratio(w, a, &p->weight[a]);
    }
    s->cost_status = cost->status;
    s->situations = w->logit.n_situations;
    s->alternatives = w->start[w->logit.n_situations];
    s->left_out = w->choices.n_single;
    s->hits = w->fit.hits;
    s->log_likelihood = w->fit.log_likelihood;
    s->cost = cost->coefficient;
    s->cost_se = cost->coefficient_se;
    /* The noise of a logit is Gumbel's: standard deviation pi / sqrt(6) in units of utility. */
    s->noise_usd_per_h = cost->status == OPI_PREF_IDENTIFIED ? acos(-1) / sqrt(6) / cost->coefficient : NAN;
    for (size_t i = 0; i < w->logit.n_situations; i++)
        s->log_likelihood_null -= log((double)(w->start[i + 1] - w->start[i]));
}

/* What goes into the utility, whose weights are not negative: those that pull the wrong way leave the model one by one, the
 * surest first, and the others are fitted again without them. */
static int32_t use(work *w, opi_preferences *p, opi_error *err)
{
    opi__logit_fit fit = w->fit;
    uint32_t in = w->varies;
    for (;;) {
        size_t worst = K;
        double least = 0;
        for (size_t a = OPI__A_COST + 1; a < K; a++) {
            const double se = sqrt(fit.covariance[a * K + a]);
            if (p->weight[a].status == OPI_PREF_IDENTIFIED && in >> a & 1 && fit.beta[a] < least * se) {
                least = fit.beta[a] / se;
                worst = a;
            }
        }
        if (worst == K)
            break;
        in &= ~(1u << worst);
        if (opi__logit_fit_ridge(&w->logit, p->summary.ridge, in, &fit) != 0)
            return fit_failed(err);
    }
    const double m = fit.beta[OPI__A_COST] / w->scale[OPI__A_COST];
    for (size_t a = OPI__A_COST + 1; a < K; a++)
        if (p->weight[a].status == OPI_PREF_IDENTIFIED)
            p->weight[a].used = in >> a & 1 && m > 0 ? fit.beta[a] / w->scale[a] / m : 0;
    p->used = p->base;
    for (size_t a = OPI__A_COST + 1; a < K; a++)
        *(double *)(void *)((char *)&p->used + opi__attributes[a].offset) = p->weight[a].used;
    return OPI_OK;
}

/* ---- what is said beside the numbers ---- */

/* "a, b and c" of the columns (or weights) with that status. Returns how many. */
static size_t listed(const opi_preferences *p, int32_t status, int weights, char *buf, size_t cap)
{
    size_t count = 0, at = 0, done = 0;
    for (size_t a = 0; a < K; a++)
        count += p->weight[a].status == status && !(weights && a == OPI__A_COST);
    buf[0] = 0;
    for (size_t a = 0; a < K; a++) {
        if (p->weight[a].status != status || (weights && a == OPI__A_COST))
            continue;
        if (at < cap)
            at += opi__format(buf + at, cap - at, "%s%s", done == 0 ? "" : done + 1 == count ? " and " : ", ",
                              weights ? opi__attributes[a].weight : opi__attributes[a].column);
        done++;
    }
    return count;
}

static void note_unidentified(opi__choices *c, const opi_preferences *p)
{
    char names[160];
    size_t n = listed(p, OPI_PREF_NO_COLUMN, 0, names, sizeof names);
    if (n > 0)
        opi__choices_note(c, "no-column", "no column %s: the weight%s of the base utility stay%s", names, n > 1 ? "s" : "",
                          n > 1 ? "" : "s");
    n = listed(p, OPI_PREF_CONSTANT, 0, names, sizeof names);
    if (n > 0)
        opi__choices_note(c, "constant", "%s: the same for all configurations of a situation, in every situation: no choice "
                          "tells the weight", names);
    n = listed(p, OPI_PREF_COLLINEAR, 0, names, sizeof names);
    if (n > 0)
        opi__choices_note(c, "collinear", "%s move together in every situation: their weights cannot be told apart; leave one "
                          "out, or record choices where they differ", names);
    n = listed(p, OPI_PREF_SEPARATED, 0, names, sizeof names);
    if (n > 0)
        opi__choices_note(c, "separated", "%s: choices follow %s without exception, so that any larger weight fits better "
                          "(perfect separation): no weight, no interval", names, n > 1 ? "them together" : "it");
    if (p->summary.cost_status == OPI_PREF_NO_SCALE)
        opi__choices_note(c, "no-scale", "usd_per_h: the choices do not show that less cost was preferred (%.3g ± %.2g for a "
                          "dollar an hour): no weight can be put into dollars", p->summary.cost, p->summary.cost_se);
}

static void note_fit(opi__choices *c, const work *w, const opi_preferences *p)
{
    size_t fitted = 0;
    for (size_t a = 0; a < K; a++) {
        const opi_preference *o = &p->weight[a];
        fitted += w->varies >> a & 1;
        if (o->status != OPI_PREF_IDENTIFIED)
            continue;
        if (a != OPI__A_COST && o->weight < 0)
            opi__choices_note(c, "wrong-sign", "%s: the choices pull the wrong way (%.3g ± %.2g)%s: 0 is used and the others "
                              "are fitted without it", o->name, o->weight, o->se,
                              o->hi < 0 ? ", and not by chance: a column that mattered may be missing" : "");
        else if (a != OPI__A_COST && o->used == 0)
            opi__choices_note(c, "wrong-sign", "%s: pulls the wrong way once the weights that do are left out: 0 is used",
                              o->name);
        if (p->summary.ridge * w->fit.covariance[a * K + a] > 0.1)
            opi__choices_note(c, "ridge", "%s: the ridge supplies more than a tenth of what is known: record more choices "
                              "where it differs", o->column);
    }
    if (p->summary.situations < 10 * fitted)
        opi__choices_note(c, "few-choices", "%llu situation%s for %zu coefficient%s: standard errors are for many choices, ten "
                          "for each at least", (unsigned long long)p->summary.situations, p->summary.situations > 1 ? "s" : "",
                          fitted, fitted > 1 ? "s" : "");
}

/* ---- the public functions ---- */

static int32_t take_options(const opi_preferences_options *options, opi_preferences *p, opi_error *err)
{
    opi_preferences_options o = {.struct_size = sizeof o};
    int32_t rc = options ? opi__take(&o, sizeof o, options, "opi_preferences_options", err) : OPI_OK;
    if (rc)
        return rc;
    p->summary.struct_size = sizeof p->summary;
    p->summary.ridge = o.ridge == 0 ? RIDGE : o.ridge;
    p->summary.level = o.level == 0 ? LEVEL : o.level;
    if (!(p->summary.ridge >= 1e-6 && p->summary.ridge <= 1e6))
        return opi__fail(err, OPI_E_RANGE, -1, "preferences: ridge = %g, must be from 1e-06 to 1e+06", o.ridge);
    if (!(p->summary.level >= 0.5 && p->summary.level <= 0.999))
        return opi__fail(err, OPI_E_RANGE, -1, "preferences: level = %g, must be from 0.5 to 0.999", o.level);
    opi_utility_default(&p->base);
    if (o.base)
        rc = opi__take(&p->base, sizeof p->base, o.base, "opi_utility", err);
    p->base.struct_size = sizeof p->base;
    return rc ? rc : opi__utility_check(&p->base, err);
}

static int32_t fit_all(opi_ctx *ctx, const char *csv, size_t size, work *w, opi_preferences *p, opi_error *err)
{
    int32_t rc = opi__choices_read(ctx, csv, size, &p->base, &w->choices, err);
    w->z = opi__two_sided(p->summary.level);
    rc = rc ? rc : pack(ctx, w, err);
    rc = rc ? rc : judge(w, p, err);
    if (rc)
        return rc;
    describe(w, p);
    if (p->summary.cost_status == OPI_PREF_IDENTIFIED)
        rc = use(w, p, err);
    note_unidentified(&w->choices, p);
    note_fit(&w->choices, w, p);
    memcpy(p->notes, w->choices.notes, sizeof p->notes);
    p->n_notes = w->choices.n_notes;
    return rc;
}

int32_t opi_preferences_fit(opi_ctx *ctx, const char *csv, size_t size, const opi_preferences_options *options,
                            opi_preferences **out, opi_error *err)
{
    if (!ctx || !csv || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_preferences_fit: %s is NULL", !ctx ? "ctx" : !csv ? "csv" : "out");
    opi_preferences *p = opi__zalloc(ctx, 1, sizeof *p);
    work *w = opi__zalloc(ctx, 1, sizeof *w);
    int32_t rc = p && w ? OPI_OK : opi__fail_memory(err, sizeof *p + sizeof *w);
    if (rc == OPI_OK) {
        p->ctx = w->choices.ctx = w->choices.texts.ctx = ctx;
        rc = take_options(options, p, err);
        rc = rc ? rc : fit_all(ctx, csv, size, w, p, err);
        opi__choices_free(&w->choices);
        opi__free(ctx, w->x);
        opi__free(ctx, w->start);
        opi__free(ctx, w->chosen);
    }
    opi__free(ctx, w);
    if (rc) {
        opi__free(ctx, p);
        return rc;
    }
    *out = p;
    return OPI_OK;
}

void opi_preferences_free(opi_preferences *preferences)
{
    if (preferences)
        opi__free(preferences->ctx, preferences);
}

int32_t opi_preferences_get_summary(const opi_preferences *preferences, opi_preferences_summary *out, opi_error *err)
{
    if (!preferences)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_preferences_get_summary: preferences is NULL");
    return opi__give(out, &preferences->summary, sizeof preferences->summary, "opi_preferences_summary", err);
}

size_t opi_preferences_count(const opi_preferences *preferences)
{
    return preferences ? K - 1 : 0;
}

int32_t opi_preferences_at(const opi_preferences *preferences, size_t index, opi_preference *out, opi_error *err)
{
    if (!preferences)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_preferences_at: preferences is NULL");
    if (index >= K - 1)
        return opi__fail(err, OPI_E_RANGE, (int64_t)index, "weight %zu: there are %d, 0 to %d", index, K - 1, K - 2);
    return opi__give(out, &preferences->weight[index + 1], sizeof *out, "opi_preference", err);
}

int32_t opi__preferences_scaled(const opi_preferences *p, opi_error *err)
{
    if (p->summary.cost_status == OPI_PREF_IDENTIFIED)
        return OPI_OK;
    return opi__fail(err, OPI_E_NODATA, -1, "the choices do not tell what a dollar weighs (usd_per_h: %s), so no "
                     "weight is in dollars", opi_preference_status_name(p->summary.cost_status));
}

int32_t opi_preferences_utility(const opi_preferences *preferences, opi_utility *out, opi_error *err)
{
    if (!preferences)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_preferences_utility: preferences is NULL");
    opi_utility u = preferences->used;
    int32_t rc = opi__preferences_scaled(preferences, err);
    rc = rc ? rc : opi__utility_check(&u, err);
    return rc ? rc : opi__give(out, &u, sizeof u, "opi_utility", err);
}

size_t opi_preferences_note_count(const opi_preferences *preferences)
{
    return preferences ? preferences->n_notes : 0;
}

const char *opi_preferences_note(const opi_preferences *preferences, size_t index)
{
    return preferences && index < preferences->n_notes ? preferences->notes[index].text : NULL;
}

const char *opi_preference_status_name(int32_t status)
{
    static const char *const names[] = {"identified", "no-column", "constant", "collinear", "separated", "no-scale"};
    return status >= 0 && status < (int32_t)(sizeof names / sizeof *names) ? names[status] : "?";
}
