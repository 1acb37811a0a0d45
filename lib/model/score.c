/* SPDX-License-Identifier: Apache-2.0 */
#include "model/score.h"
#include "base/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_REPORTED 50 /* rows a group needs to be listed */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double pinball(double y, double q, double level)
{
    double e = y - q;
    return e >= 0 ? level * e : (level - 1) * e;
}

double opi__held_pinball(const opi__held *h)
{
    return (pinball(h->y, h->q10, .1) + pinball(h->y, h->median, .5) + pinball(h->y, h->q90, .9)) / 3;
}

static int all_known(const opi_model *m, int32_t target, const int32_t *code)
{
    for (int k = 0; k < OPI__SEEN_KINDS; k++) {
        int c = opi__seen_axes[k];
        if (code[c] < 0 || !m->target[target].seen[c][code[c]])
            return 0;
    }
    return 1;
}

void opi__hold(const opi_model *m, int32_t target, const double *envelope, const float *x, const int32_t *code,
               int32_t site, double base, double y, double level, opi__held *h)
{
    opi__answer a;
    opi__answer_row(m, target, envelope, x, code, site, base, &a);
    opi__answer_bounds(&a, .8, &h->q10, &h->q90);
    opi__answer_bounds(&a, level, &h->lo, &h->hi);
    h->y = y;
    h->median = a.location.median;
    h->status = a.verdict.status;
    h->in_range = all_known(m, opi__residual_of(target), code);
    h->nearest = NAN;
    h->present = 1;
}

typedef struct tally {
    size_t n, inside, finite, flagged, combined, in_range, false_flags;
    double ape_sum, pinball, width, y_sum, y_square, error_square;
    double *ape, *widths;
} tally;

static void count(tally *t, const opi__held *h)
{
    double e = h->median - h->y;
    t->ape[t->n] = fabs(expm1(e));
    t->ape_sum += t->ape[t->n];
    t->inside += h->y >= h->lo && h->y <= h->hi;
    t->pinball += opi__held_pinball(h);
    if (isfinite(h->hi - h->lo))
        t->widths[t->finite++] = h->hi - h->lo;
    t->flagged += h->status == OPI_P_OOD;
    t->combined += h->status == OPI_P_NEW_COMBINATION;
    t->in_range += (size_t)h->in_range;
    t->false_flags += h->in_range && h->status == OPI_P_OOD;
    t->y_sum += h->y;
    t->y_square += h->y * h->y;
    t->error_square += e * e;
    t->n++;
}

static double quantile(const double *sorted, size_t n, double level)
{
    if (n == 0)
        return NAN;
    double at = level * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

static void report(tally *t, int brief, opi__json *o)
{
    double n = (double)t->n;
    double width = 0;
    for (size_t i = 0; i < t->finite; i++)
        width += t->widths[i];
    qsort(t->ape, t->n, sizeof *t->ape, ascending);
    qsort(t->widths, t->finite, sizeof *t->widths, ascending);
    opi__json_add_int(o, "n", (int64_t)t->n);
    if (t->n == 0)
        return;
    opi__json_add_number(o, "median_ape", quantile(t->ape, t->n, .5));
    opi__json_add_number(o, "mape", t->ape_sum / n);
    opi__json_add_number(o, "coverage", (double)t->inside / n);
    if (brief)
        return;
    opi__json_add_number(o, "p90_ape", quantile(t->ape, t->n, .9));
    opi__json_add_number(o, "r2_log", 1 - t->error_square / (t->y_square - t->y_sum * t->y_sum / n));
    opi__json_add_number(o, "pinball", t->pinball / n);
    opi__json_add_number(o, "width_log", width / (double)t->finite);
    opi__json_add_number(o, "width_log_median", quantile(t->widths, t->finite, .5));
    opi__json_add_int(o, "unbounded", (int64_t)(t->n - t->finite));
    opi__json_add_number(o, "outside", (double)t->flagged / n);
    opi__json_add_number(o, "new_combination", (double)t->combined / n);
    opi__json_add_number(o, "in_range_flagged", t->in_range ? (double)t->false_flags / (double)t->in_range : NAN);
}

static void reset(tally *t)
{
    double *ape = t->ape, *widths = t->widths;
    *t = (tally){.ape = ape, .widths = widths};
}

/* One list of groups: by campaign (axis -1) or by a category. */
static void by_group(const opi__dataset *d, const opi__held *held, tally *t, const char *name, int axis,
                     opi__json *groups)
{
    const opi__names *names = axis < 0 ? &d->sources : &d->names[axis];
    opi__json *list = opi__json_add_array(groups, name);
    for (uint32_t k = 0; k < names->n; k++) {
        reset(t);
        for (size_t i = 0; i < d->n; i++) {
            int32_t code = axis < 0 ? d->source[i] : d->code[i * OPI__CATEGORIES + (size_t)axis];
            if (held[i].present && code == (int32_t)k)
                count(t, &held[i]);
        }
        if (t->n < GROUP_REPORTED)
            continue;
        opi__json *one = opi__json_add_object(list, NULL);
        opi__json_add_string(one, "name", names->name[k]);
        report(t, 1, one);
    }
}

int32_t opi__score_target(const opi__dataset *d, const opi__held *held, opi__json *into)
{
    tally t = {.ape = opi__alloc(d->ctx, d->n, sizeof(double)), .widths = opi__alloc(d->ctx, d->n, sizeof(double))};
    int32_t status = t.ape && t.widths ? OPI_OK : OPI_E_NOMEM;
    if (!status) {
        for (size_t i = 0; i < d->n; i++)
            if (held[i].present)
                count(&t, &held[i]);
        report(&t, 0, into);
        opi__json *groups = opi__json_add_object(into, "groups");
        by_group(d, held, &t, "source", -1, groups);
        by_group(d, held, &t, "gpu", OPI__C_GPU, groups);
        by_group(d, held, &t, "family", OPI__C_FAMILY, groups);
        by_group(d, held, &t, "engine", OPI__C_ENGINE, groups);
    }
    opi__free(d->ctx, t.ape);
    opi__free(d->ctx, t.widths);
    return status;
}
