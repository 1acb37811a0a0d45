/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: replays of both ways of running, the formulas, and the sweep over spares. */
#include "swap/planner.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/take.h"

#include <math.h>
#include <string.h>

#define MOST_LINES 40 /* of a sweep */

static void sort(double *v, int32_t n)
{
    for (int32_t i = 1; i < n; i++) {
        double x = v[i];
        int32_t j = i;
        for (; j > 0 && v[j - 1] > x; j--)
            v[j] = v[j - 1];
        v[j] = x;
    }
}

static void add(opi_plan_result *out, const opi__tally *t, double horizon, double n)
{
    out->goodput += t->useful / horizon / n;
    out->redone += t->redone / horizon / n;
    out->stalled += t->stalled / horizon / n;
    out->narrow += t->narrow / horizon / n;
    out->recovering += t->recovering / horizon / n;
    out->restarting += t->restarting / horizon / n;
    out->waiting += t->waiting / horizon / n;
    out->failures += t->failures / n;
    out->swaps += t->swaps / n;
    out->fallbacks += t->fallbacks / n;
    out->fallback_share += (t->fallbacks > 0) / n;
    out->stops += t->stops / n;
    out->shrinks += t->shrinks / n;
    out->restarts += t->restarts / n;
    out->steps += t->steps / n;
    out->steps_redone += t->steps_redone / n;
    out->nodes_down += t->node_seconds_down / horizon / n;
}

int32_t opi__plan_repeat(opi_ctx *ctx, const opi__plan_setup *s, int32_t way, int32_t spares, opi_plan_result *out,
                         opi_error *err)
{
    int32_t n = s->o.replays, status = OPI_OK;
    opi_plan_result r = {.struct_size = sizeof r, .replays = n};
    double *goodput = opi__alloc(ctx, (size_t)n, sizeof *goodput), squares = 0;
    if (!goodput)
        return opi__fail_memory(err, (size_t)n * sizeof *goodput);
    for (int32_t i = 0; i < n && !status; i++) {
        opi__tally t;
        status = opi__plan_simulate(ctx, s, way, spares, opi__mix64(s->o.seed + 0x9e3779b97f4a7c15ull * (uint64_t)(i + 1)),
                                    &t, err);
        if (!status) {
            goodput[i] = t.useful / s->horizon;
            add(&r, &t, s->horizon, n);
        }
    }
    for (int32_t i = 0; i < n && !status; i++)
        squares += (goodput[i] - r.goodput) * (goodput[i] - r.goodput);
    if (!status) {
        sort(goodput, n);
        r.goodput_se = sqrt(squares / (n - 1) / n);
        r.goodput_median = 0.5 * (goodput[(n - 1) / 2] + goodput[n / 2]);
        r.goodput_low = goodput[0];
        r.goodput_high = goodput[n - 1];
        r.checkpoint_interval_s = way == OPI_PLAN_SWAP ? s->o.checkpoint_interval_s : s->saved_interval;
        *out = r;
    }
    opi__free(ctx, goodput);
    return status;
}

/* ---- the sweep ---- */

static int32_t try_spares(opi_plan *p, int32_t spares, int *plenty, opi_error *err)
{
    size_t at = 0;
    while (at < p->n_spares && p->spares[at].spares < spares)
        at++;
    if (p->n_spares == MOST_LINES || (at < p->n_spares && p->spares[at].spares == spares))
        return OPI_OK;
    opi_plan_result r;
    int32_t status = opi__plan_repeat(p->ctx, &p->setup, OPI_PLAN_SWAP, spares, &r, err);
    if (status)
        return status;
    memmove(p->spares + at + 1, p->spares + at, (p->n_spares++ - at) * sizeof *p->spares);
    opi_plan_spares line = {sizeof line, spares, r.goodput, r.goodput_se, r.waiting, r.fallbacks, NAN, 0};
    line.net = r.goodput * p->setup.nodes - p->setup.o.idle_cost * spares;
    p->spares[at] = line;
    *plenty = *plenty || (r.waiting <= 0 && r.stops <= 0 && r.shrinks <= 0);
    return OPI_OK;
}

static size_t best_line(const opi_plan *p)
{
    size_t best = 0;
    for (size_t i = 1; i < p->n_spares; i++)
        if (p->spares[i].net > p->spares[best].net)
            best = i;
    return best;
}

/* Numbers of spares in growing strides until they never run out, then the gaps on both sides of the best are halved. */
static int32_t sweep(opi_plan *p, opi_error *err)
{
    int32_t most = opi__plan_most_spares(&p->setup), status = OPI_OK;
    int plenty = 0;
    for (int32_t n = 0; n < most && !status && !plenty; n = n < 4 ? n + 1 : n + (n + 1) / 2)
        status = try_spares(p, n, &plenty, err);
    if (!status && !plenty)
        status = try_spares(p, most, &plenty, err);
    for (int round = 0; round < 6 && !status; round++) {
        size_t b = best_line(p);
        int32_t here = p->spares[b].spares, below = b > 0 ? p->spares[b - 1].spares : here;
        int32_t above = b + 1 < p->n_spares ? p->spares[b + 1].spares : here;
        if (here - below > 1)
            status = try_spares(p, below + (here - below) / 2, &plenty, err);
        if (above - here > 1 && !status)
            status = try_spares(p, here + (above - here) / 2, &plenty, err);
    }
    status = status ? status : try_spares(p, p->setup.o.spares, &plenty, err);
    if (status)
        return status;
    for (size_t i = 1; i < p->n_spares; i++) {
        opi_plan_spares *l = &p->spares[i];
        l->gained = (l->goodput - l[-1].goodput) * p->setup.nodes / (l->spares - l[-1].spares);
    }
    p->worth = p->spares[best_line(p)].spares;
    return OPI_OK;
}

int32_t opi_plan_run(opi_ctx *ctx, const opi_plan_options *options, opi_plan **out, opi_error *err)
{
    opi__plan_setup setup;
    if (!out)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_plan_run: out is NULL");
    int32_t status = opi__plan_setup_make(options, &setup, err);
    if (status)
        return status;
    opi_plan *p = opi__zalloc(ctx, 1, sizeof *p);
    if (!p)
        return opi__fail_memory(err, sizeof *p);
    p->ctx = ctx;
    p->setup = setup;
    p->worth = -1;
    p->spares = opi__alloc(ctx, MOST_LINES + 1, sizeof *p->spares);
    if (!p->spares)
        status = opi__fail_memory(err, (MOST_LINES + 1) * sizeof *p->spares);
    for (int32_t way = 0; way < 2 && !status; way++)
        status = opi__plan_repeat(ctx, &p->setup, way, setup.o.spares, &p->result[way], err);
    status = status ? status : opi__plan_close(ctx, &p->setup, &p->closed, err);
    if (!status && setup.o.sweep)
        status = sweep(p, err);
    if (status) {
        opi_plan_free(p);
        return status;
    }
    *out = p;
    return OPI_OK;
}

void opi_plan_free(opi_plan *plan)
{
    if (!plan)
        return;
    opi__free(plan->ctx, plan->spares);
    opi__free(plan->ctx, plan);
}

static int32_t need(const opi_plan *plan, opi_error *err)
{
    return plan ? OPI_OK : opi__fail(err, OPI_E_INVALID, -1, "plan is NULL");
}

int32_t opi_plan_get_options(const opi_plan *plan, opi_plan_options *out, opi_error *err)
{
    int32_t status = need(plan, err);
    return status ? status : opi__give(out, &plan->setup.o, sizeof plan->setup.o, "opi_plan_options", err);
}

int32_t opi_plan_get_result(const opi_plan *plan, int32_t way, opi_plan_result *out, opi_error *err)
{
    int32_t status = need(plan, err);
    if (!status && way != OPI_PLAN_SWAP && way != OPI_PLAN_RESTART)
        status = opi__fail(err, OPI_E_INVALID, -1, "way is %d: it must be OPI_PLAN_SWAP or OPI_PLAN_RESTART", way);
    return status ? status : opi__give(out, &plan->result[way], sizeof plan->result[way], "opi_plan_result", err);
}

int32_t opi_plan_get_closed(const opi_plan *plan, opi_plan_closed *out, opi_error *err)
{
    int32_t status = need(plan, err);
    return status ? status : opi__give(out, &plan->closed, sizeof plan->closed, "opi_plan_closed", err);
}

size_t opi_plan_spares_count(const opi_plan *plan)
{
    return plan ? plan->n_spares : 0;
}

int32_t opi_plan_spares_at(const opi_plan *plan, size_t index, opi_plan_spares *out, opi_error *err)
{
    int32_t status = need(plan, err);
    if (!status && index >= plan->n_spares)
        status = opi__fail(err, OPI_E_RANGE, (int64_t)index, "line %zu of a sweep of %zu", index, plan->n_spares);
    return status ? status : opi__give(out, &plan->spares[index], sizeof plan->spares[index], "opi_plan_spares", err);
}

int32_t opi_plan_worth(const opi_plan *plan)
{
    return plan ? plan->worth : -1;
}
