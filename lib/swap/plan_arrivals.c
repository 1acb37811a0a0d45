/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of the whole system, one after another; each strikes a process, a node or a rack at random. Burstiness is a
 * property of the system, not of one component: that is how Schroeder and Gibson (DSN 2006) found Weibull times between
 * failures, and many independent components together would look exponential again. */
#include "base/mem.h"
#include "base/status.h"
#include "swap/planner.h"

#include <math.h>

static double exponential(opi__rng *r, double mean)
{
    return -mean * log1p(-opi__rng_uniform(r));
}

void opi__arrivals_start(opi__arrivals *a, opi_ctx *ctx, const opi__plan_setup *s, uint64_t seed)
{
    a->ctx = ctx;
    a->s = s;
    opi__rng_seed(&a->rng, seed);
    a->now = 0;
    a->rate = opi__plan_rate(s, s->trace_nodes);
    a->heap = NULL;
    a->count = a->cap = 0;
}

void opi__arrivals_end(opi__arrivals *a)
{
    opi__free(a->ctx, a->heap);
    a->heap = NULL;
}

static void strike(opi__arrivals *a, opi__arrival *out)
{
    const opi__plan_setup *s = a->s;
    int32_t nodes = s->trace_nodes, racks = opi__plan_racks(s, nodes), gpus = nodes * s->o.per_node;
    double u = opi__rng_uniform(&a->rng) * a->rate;
    int32_t count[] = {gpus, nodes, racks};
    out->kind = OPI__PLAN_PROCESS;
    for (; out->kind < OPI__PLAN_RACK && u >= s->lambda[out->kind] * count[out->kind]; out->kind++)
        u -= s->lambda[out->kind] * count[out->kind];
    if (s->lambda[out->kind] <= 0) /* rounding left a little behind the last kind that happens */
        out->kind = s->lambda[OPI__PLAN_NODE] > 0 ? OPI__PLAN_NODE : OPI__PLAN_PROCESS;
    out->index = (int32_t)opi__rng_below(&a->rng, (uint64_t)count[out->kind]);
    out->normal = opi__rng_normal(&a->rng);
}

/* A follower near the first failure: the same kind of thing, in the same rack. */
static void move_near(opi__arrivals *a, const opi__arrival *first, opi__arrival *out)
{
    const opi__plan_setup *s = a->s;
    int32_t per_rack = s->o.nodes_per_rack, g = s->o.per_node, nodes = s->trace_nodes;
    int32_t node = first->kind == OPI__PLAN_PROCESS ? first->index / g
                   : first->kind == OPI__PLAN_NODE  ? first->index
                                                    : first->index * per_rack;
    int32_t begin = node / per_rack * per_rack, end = begin + per_rack < nodes ? begin + per_rack : nodes;
    int32_t near = begin + (int32_t)opi__rng_below(&a->rng, (uint64_t)(end - begin));
    if (out->kind == OPI__PLAN_PROCESS)
        out->index = near * g + (int32_t)opi__rng_below(&a->rng, (uint64_t)g);
    else if (out->kind == OPI__PLAN_NODE)
        out->index = near;
}

static void sift_down(opi__arrival *h, size_t n, size_t i)
{
    for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && h[child + 1].at < h[child].at)
            child++;
        if (h[i].at <= h[child].at)
            break;
        opi__arrival t = h[i];
        h[i] = h[child];
        h[child] = t;
        i = child;
    }
}

static int32_t push(opi__arrivals *a, const opi__arrival *v, opi_error *err)
{
    if (a->count == a->cap) {
        size_t cap = a->cap ? 2 * a->cap : 64;
        opi__arrival *heap = opi__resize(a->ctx, a->heap, cap, sizeof *heap);
        if (!heap)
            return opi__fail_memory(err, cap * sizeof *heap);
        a->heap = heap;
        a->cap = cap;
    }
    size_t i = a->count++;
    for (; i > 0 && a->heap[(i - 1) / 2].at > v->at; i = (i - 1) / 2)
        a->heap[i] = a->heap[(i - 1) / 2];
    a->heap[i] = *v;
    return OPI_OK;
}

/* A cluster: its first failure, then a geometric number of followers (mean `burst` in all), exponentially delayed. */
static int32_t spawn(opi__arrivals *a, const opi__arrival *first, opi_error *err)
{
    double more = 1 - 1 / a->s->o.burst;
    int32_t status = OPI_OK;
    while (!status && opi__rng_uniform(&a->rng) < more) {
        opi__arrival follower;
        follower.at = first->at + exponential(&a->rng, a->s->o.burst_window_s);
        strike(a, &follower);
        if (opi__rng_uniform(&a->rng) < a->s->o.burst_near)
            move_near(a, first, &follower);
        status = push(a, &follower, err);
    }
    return status;
}

static double gap(opi__arrivals *a)
{
    double burst = a->s->o.burst, mean = 1 / a->rate;
    switch (a->s->o.arrivals) {
    case OPI_PLAN_WEIBULL:
        return mean / tgamma(1 + 1 / burst) * pow(exponential(&a->rng, 1), 1 / burst);
    case OPI_PLAN_HYPEREXPONENTIAL: {
        /* Balanced means: either phase contributes half of the mean. */
        double p = 0.5 * (1 + sqrt((burst * burst - 1) / (burst * burst + 1)));
        int fast = opi__rng_uniform(&a->rng) < p;
        return exponential(&a->rng, mean / (2 * (fast ? p : 1 - p)));
    }
    case OPI_PLAN_CLUSTERED:
        return exponential(&a->rng, mean * burst);
    default:
        return exponential(&a->rng, mean);
    }
}

int32_t opi__arrivals_next(opi__arrivals *a, opi__arrival *out, opi_error *err)
{
    if (!(a->rate > 0)) {
        out->at = INFINITY;
        return OPI_OK;
    }
    if (a->s->o.arrivals != OPI_PLAN_CLUSTERED) {
        a->now += gap(a);
        out->at = a->now;
        strike(a, out);
        return OPI_OK;
    }
    /* Clusters begin in order, so what comes before the beginning of the last one made (a->now) is complete. */
    while (a->count == 0 || a->heap[0].at > a->now) {
        opi__arrival first;
        a->now += gap(a);
        first.at = a->now;
        strike(a, &first);
        int32_t status = push(a, &first, err);
        status = status ? status : spawn(a, &first, err);
        if (status)
            return status;
    }
    *out = a->heap[0];
    a->heap[0] = a->heap[--a->count];
    sift_down(a->heap, a->count, 0);
    return OPI_OK;
}

double opi__plan_repair(const opi__plan_setup *s, int32_t kind, double normal)
{
    if (kind == OPI__PLAN_PROCESS)
        return s->o.process_repair_s;
    double mean = (kind == OPI__PLAN_NODE ? s->o.node_repair_h : s->o.rack_repair_h) * 3600;
    double variance = log1p(s->o.repair_cv * s->o.repair_cv);
    return mean * exp(sqrt(variance) * normal - variance / 2);
}
