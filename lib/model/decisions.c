/* SPDX-License-Identifier: Apache-2.0 */
/* Choices among measured configurations of one cell: what the model's median would pick, against simple rules.
 * Repeats of a configuration count as their median, ties as their mean. */
#include "base/mem.h"
#include "model/score.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_OPTIONS 3
#define UNPRICED_USD_H                                                                                                 \
    2. /* per GPU hour where no cited price exists; only for comparing with other scores of these rows */
#define VALUE_USD_MTOK 2.

enum { U_TOK_S, U_TOK_USD, U_PROFIT };
const char *const opi__utility_names[OPI__UTILITIES] = {"tok_s", "tok_s_per_usd", "2_usd_per_mtok_less_cost"};
enum { P_MODEL, P_NEAREST, P_CHEAPEST, P_NEWEST, P_RANDOM };
static const char *const picker_name[OPI__PICKERS] = {"model", "nearest_neighbor", "cheapest", "newest_most_gpus",
                                                      "random"};

typedef struct option {
    uint64_t decision, hardware, cell;
    double actual, predicted, nearest; /* tokens/s */
    double cost, newest;               /* $/h; year and GPUs */
} option;

static int by_option(const void *a, const void *b)
{
    const option *x = a, *y = b;
    if (x->decision != y->decision)
        return x->decision < y->decision ? -1 : 1;
    if (x->hardware != y->hardware)
        return x->hardware < y->hardware ? -1 : 1;
    return 0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double price(const opi_gpu *g)
{
    if (g->price_rental_usd_h > 0)
        return g->price_rental_usd_h;
    return g->price_ondemand_usd_h > 0 ? g->price_ondemand_usd_h : UNPRICED_USD_H;
}

static double median_of(const option *o, size_t n, size_t offset, double *scratch)
{
    for (size_t i = 0; i < n; i++)
        memcpy(&scratch[i], (const char *)&o[i] + offset, sizeof(double));
    qsort(scratch, n, sizeof *scratch, ascending);
    return n % 2 ? scratch[n / 2] : (scratch[n / 2 - 1] + scratch[n / 2]) / 2;
}

/* Sorted options with repeats merged. */
static size_t options_of(const opi__dataset *d, const opi__held *held, option *o, double *scratch)
{
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < d->n; i++) {
        const opi__row *r = &d->table->rows[d->row[i]];
        double gpus = r->config.n_gpus > 0 ? r->config.n_gpus : 1;
        if (!held[i].present)
            continue;
        o[n++] = (option){r->decision,
                          r->hardware,
                          d->cell[i],
                          exp(held[i].y),
                          exp(held[i].median),
                          isnan(held[i].nearest) ? 0 : exp(held[i].nearest),
                          price(r->config.gpu) * gpus,
                          r->config.gpu->year * 1000. + gpus};
    }
    qsort(o, n, sizeof *o, by_option);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && !by_option(&o[i], &o[end]);)
            end++;
        option merged = o[i];
        merged.actual = median_of(&o[i], end - i, offsetof(option, actual), scratch);
        merged.predicted = median_of(&o[i], end - i, offsetof(option, predicted), scratch);
        merged.nearest = median_of(&o[i], end - i, offsetof(option, nearest), scratch);
        o[kept++] = merged;
    }
    return kept;
}

static double utility(int kind, double tok_s, double cost)
{
    if (kind == U_TOK_S)
        return tok_s;
    return kind == U_TOK_USD ? tok_s / cost : VALUE_USD_MTOK * tok_s * 3600 / 1e6 - cost;
}

static double preference(int picker, int kind, const option *o)
{
    switch (picker) {
    case P_MODEL:
        return utility(kind, o->predicted, o->cost);
    case P_NEAREST:
        return utility(kind, o->nearest, o->cost);
    case P_CHEAPEST:
        return -o->cost;
    case P_NEWEST:
        return o->newest;
    default:
        return 0;
    }
}

static opi__outcome judge_choice(const option *o, size_t n, int picker, int kind)
{
    double top = -INFINITY, most = -INFINITY, taken = 0;
    opi__outcome s = {0, 0};
    for (size_t i = 0; i < n; i++) {
        top = fmax(top, utility(kind, o[i].actual, o[i].cost));
        most = fmax(most, preference(picker, kind, &o[i]));
    }
    for (size_t i = 0; i < n; i++) {
        double gap = top - utility(kind, o[i].actual, o[i].cost), scale = fmax(fabs(top), 1e-12);
        if (preference(picker, kind, &o[i]) < most - 1e-9 * fabs(most))
            continue;
        s.top1 += gap <= 1e-9 * scale;
        s.regret += gap / scale;
        taken++;
    }
    s.top1 /= taken;
    s.regret /= taken;
    return s;
}

int32_t opi__judge_decisions(const opi__dataset *d, const opi__held *held, opi__decision **out, size_t *count)
{
    option *o = opi__alloc(d->ctx, d->n, sizeof *o);
    double *scratch = opi__alloc(d->ctx, d->n, sizeof *scratch);
    opi__decision *all = opi__alloc(d->ctx, d->n / LEAST_OPTIONS + 1, sizeof *all);
    int32_t status = o && scratch && all ? OPI_OK : OPI_E_NOMEM;
    size_t n = status ? 0 : options_of(d, held, o, scratch), made = 0;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && o[end].decision == o[i].decision;)
            end++;
        if (end - i < LEAST_OPTIONS)
            continue;
        opi__decision *one = &all[made++];
        one->cell = o[i].cell;
        for (int kind = 0; kind < OPI__UTILITIES; kind++)
            for (int p = 0; p < OPI__PICKERS; p++)
                one->of[kind][p] = judge_choice(&o[i], end - i, p, kind);
    }
    opi__free(d->ctx, o);
    opi__free(d->ctx, scratch);
    if (status) {
        opi__free(d->ctx, all);
        return status;
    }
    *out = all;
    *count = made;
    return OPI_OK;
}

int32_t opi__score_decisions(const opi__dataset *d, const opi__held *held, opi__json *into)
{
    opi__decision *all = NULL;
    size_t n = 0;
    int32_t status = opi__judge_decisions(d, held, &all, &n);
    for (int kind = 0; kind < OPI__UTILITIES && !status; kind++) {
        opi__outcome total[OPI__PICKERS] = {{0, 0}};
        double decisions = (double)n;
        for (size_t i = 0; i < n; i++)
            for (int p = 0; p < OPI__PICKERS; p++) {
                total[p].top1 += all[i].of[kind][p].top1;
                total[p].regret += all[i].of[kind][p].regret;
            }
        opi__json *one = opi__json_add_object(into, opi__utility_names[kind]);
        opi__json_add_int(one, "n", (int64_t)n);
        opi__json_add_number(one, "top1", total[P_MODEL].top1 / decisions);
        opi__json_add_number(one, "regret", total[P_MODEL].regret / decisions);
        opi__json *baselines = opi__json_add_object(one, "baselines");
        for (int p = P_MODEL + 1; p < OPI__PICKERS; p++) {
            opi__json *base = opi__json_add_object(baselines, picker_name[p]);
            opi__json_add_number(base, "top1", total[p].top1 / decisions);
            opi__json_add_number(base, "regret", total[p].regret / decisions);
        }
    }
    opi__free(d->ctx, all);
    return status;
}
