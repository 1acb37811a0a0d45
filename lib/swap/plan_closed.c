/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said without replaying: Young (CACM 1974) and Daly (FGCS 2006) for checkpoints, alternating renewal for
 * nodes in repair, pairs of failures within a window for lost copies. docs/planning.md derives them. */
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "swap/planner.h"

#include <math.h>

double opi__daly_interval(double stall, double mtbf)
{
    if (!(mtbf < INFINITY))
        return INFINITY;
    if (stall >= 2 * mtbf)
        return mtbf;
    double q = stall / (2 * mtbf);
    return sqrt(2 * stall * mtbf) * (1 + sqrt(q) / 3 + q / 9) - stall;
}

double opi__daly_goodput(double work, double stall, double restart, double rate)
{
    if (!(rate > 0))
        return work / (work + stall);
    return work * rate * exp(-rate * restart) / expm1(rate * (work + stall));
}

/* ---- sets of pairs of domains ---- */

static void sort_keys(uint64_t *v, size_t n)
{
    for (size_t start = n / 2, end = n; end > 1;) { /* heap sort: in place, the same time for any order */
        if (start > 0) {
            start--;
        } else {
            end--;
            uint64_t t = v[end];
            v[end] = v[0];
            v[0] = t;
        }
        size_t i = start;
        for (size_t child = 2 * i + 1; child < end; child = 2 * i + 1) {
            if (child + 1 < end && v[child + 1] > v[child])
                child++;
            if (v[i] >= v[child])
                break;
            uint64_t t = v[i];
            v[i] = v[child];
            v[child] = t;
            i = child;
        }
    }
}

static size_t unique(uint64_t *v, size_t n)
{
    size_t kept = 0;
    sort_keys(v, n);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || v[i] != v[i - 1])
            v[kept++] = v[i];
    return kept;
}

static size_t in_both(const uint64_t *a, size_t n, const uint64_t *b, size_t m)
{
    size_t both = 0;
    for (size_t i = 0, j = 0; i < n && j < m;) {
        both += a[i] == b[j];
        if (a[i] <= b[j])
            i++;
        else
            j++;
    }
    return both;
}

typedef struct copies {
    const opi__plan_setup *s;
    opi__domain *domain;
    int32_t *holder, *scratch;
    uint64_t *first, *second;
    double window_owner, window_all;
} copies;

static uint32_t part_of(const copies *c, int32_t slot, int32_t kind)
{
    return (uint32_t)(kind == OPI__PLAN_PROCESS ? slot
                      : kind == OPI__PLAN_NODE  ? c->domain[slot].node
                                                : c->domain[slot].rack);
}

/* One copy: failure of kind a, then one of kind b within the window, that together take a slot and its copy. The owner
 * first: until the spare is restored; the copy's holder first: until the copy exists again. */
static double pair_rate(const copies *c, int32_t a, int32_t b)
{
    const opi__plan_setup *s = c->s;
    size_t n = 0, m = 0;
    if (s->lambda[a] <= 0 || s->lambda[b] <= 0)
        return 0;
    for (int32_t slot = 0; slot < s->slots; slot++) {
        int32_t h = c->holder[slot];
        if (h < 0)
            continue;
        c->first[n++] = (uint64_t)part_of(c, slot, a) << 32 | part_of(c, h, b);
        c->second[m++] = (uint64_t)part_of(c, h, a) << 32 | part_of(c, slot, b);
    }
    n = unique(c->first, n);
    m = unique(c->second, m);
    double owner_only = (double)(n - in_both(c->first, n, c->second, m));
    return s->lambda[a] * s->lambda[b] * (owner_only * c->window_owner + (double)m * c->window_all);
}

/* Failures of one domain that take a slot and all its copies at once. */
static double single_rate(const copies *c, int32_t kind)
{
    const opi__plan_setup *s = c->s;
    size_t n = 0;
    for (int32_t slot = 0; slot < s->slots; slot++) {
        int inside = 1;
        for (int32_t k = 0; k < s->o.replicas && inside; k++) {
            int32_t h = c->holder[(size_t)slot * (size_t)s->o.replicas + (size_t)k];
            inside = h < 0 || part_of(c, h, kind) == part_of(c, slot, kind);
        }
        if (inside)
            c->first[n++] = part_of(c, slot, kind);
    }
    return s->lambda[kind] * (double)unique(c->first, n);
}

/* Several copies: sets of nodes that hold a slot and its copies, all of which fail one after another, each within the
 * window of the one before: (r + 1)! orders. Nodes only, an estimate from above. */
static double set_rate(const copies *c)
{
    const opi__plan_setup *s = c->s;
    int32_t r = s->o.replicas;
    for (int32_t slot = 0; slot < s->slots; slot++) {
        uint64_t key = opi__mix64((uint64_t)c->domain[slot].node + 1);
        for (int32_t k = 0; k < r; k++) {
            int32_t h = c->holder[(size_t)slot * (size_t)r + (size_t)k];
            key += h < 0 ? 0 : opi__mix64((uint64_t)c->domain[h].node + 1); /* the same in any order */
        }
        c->first[slot] = key;
    }
    double rate = (double)unique(c->first, (size_t)s->slots) * s->lambda[OPI__PLAN_NODE];
    for (int32_t k = 1; k <= r; k++)
        rate *= (k + 1) * s->lambda[OPI__PLAN_NODE] * c->window_all;
    return rate;
}

static double lost_rate(const copies *c)
{
    double rate = 0;
    for (int32_t a = 0; a < 3; a++) {
        rate += single_rate(c, a);
        for (int32_t b = 0; b < 3 && c->s->o.replicas == 1; b++)
            rate += pair_rate(c, a, b);
    }
    return c->s->o.replicas > 1 ? rate + set_rate(c) : rate;
}

/* Failures a second after which a slot's state is nowhere, with the placement of the start. */
static int32_t fallback_rate(opi_ctx *ctx, const opi__plan_setup *s, double window_all, double *rate, opi_error *err)
{
    size_t n = (size_t)s->slots, held = n * (size_t)s->o.replicas, scratch = opi__place_scratch(n);
    if (s->o.replicas == 0) {
        *rate = opi__plan_job_rate(s);
        return OPI_OK;
    }
    copies c = {s, opi__alloc(ctx, n, sizeof(opi__domain)), opi__alloc(ctx, held, sizeof(int32_t)),
                opi__alloc(ctx, scratch, sizeof(int32_t)), opi__alloc(ctx, n, sizeof(uint64_t)),
                opi__alloc(ctx, n, sizeof(uint64_t)), s->recover, window_all};
    int32_t status = OPI_OK;
    if (!c.domain || !c.holder || !c.scratch || !c.first || !c.second) {
        status = opi__fail_memory(err, n * 40);
    } else {
        for (int32_t slot = 0; slot < s->slots; slot++) {
            c.domain[slot].node = slot / s->o.per_node;
            c.domain[slot].rack = c.domain[slot].node / s->o.nodes_per_rack;
        }
        opi__place(n, c.domain, s->o.replicas, c.scratch, c.holder, NULL);
        *rate = lost_rate(&c);
    }
    opi__free(ctx, c.domain);
    opi__free(ctx, c.holder);
    opi__free(ctx, c.scratch);
    opi__free(ctx, c.first);
    opi__free(ctx, c.second);
    return status;
}

int32_t opi__plan_close(opi_ctx *ctx, const opi__plan_setup *s, opi_plan_closed *out, opi_error *err)
{
    const opi_plan_options *o = &s->o;
    opi_plan_closed c = {.struct_size = sizeof c};
    double rate = opi__plan_job_rate(s), lost = 0, segment = o->snapshot_interval * s->step;
    c.window_s = s->recover + segment + s->latency;
    int32_t status = fallback_rate(ctx, s, c.window_s, &lost, err);
    if (status)
        return status;
    c.job_mtbf_s = 1 / rate;
    c.young_s = sqrt(2 * o->checkpoint_stall_s / rate);
    c.daly_s = opi__daly_interval(o->checkpoint_stall_s, c.job_mtbf_s);
    c.restart_goodput = opi__daly_goodput(s->saved_interval, o->checkpoint_stall_s, o->restart_s, rate);
    /* Time for a second of work: the renewal argument, what a snapshot's delay loses more, falling back. */
    double cost = 1 / opi__daly_goodput(segment, 0, s->recover, rate) + rate * s->latency +
                  lost * (o->restart_s + o->checkpoint_interval_s / 2 + o->checkpoint_s);
    c.swap_goodput = o->step_s / s->step / cost;
    /* Down for R, then up for 1 / lambda on average: the share of time down needs no more than the means. */
    double load = s->lambda[OPI__PLAN_NODE] * o->node_repair_h * 3600 + s->lambda[OPI__PLAN_RACK] * o->rack_repair_h * 3600;
    c.nodes_down = (s->nodes + o->spares) * load / (1 + load);
    c.fallbacks = lost * s->horizon;
    c.fallback_probability = -expm1(-c.fallbacks);
    double lumps = c.nodes_down * (s->lambda[OPI__PLAN_RACK] > 0 ? o->nodes_per_rack : 1);
    c.applies = o->arrivals == OPI_PLAN_EXPONENTIAL && o->spares >= c.nodes_down + 3 * sqrt(lumps);
    *out = c;
    return OPI_OK;
}
