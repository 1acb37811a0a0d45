/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/load.h"

#include "base/status.h"
#include "decide/score.h"

#include <math.h>
#include <string.h>

double opi__judged(const opi_prediction *p, double risk)
{
    if (!(p->p50 > 0))
        return 0;
    return risk > 0 && isfinite(p->lo) ? (1 - risk) * p->p50 + risk * fmax(p->lo, 0) : p->p50;
}

/* Output tokens/s of many configurations in one call, with the status of the other targets in use when asked. */
typedef struct prober {
    const opi__ask *ask;
    const opi__oracle *oracle;
    opi_ctx *ctx;
    opi_config *config;
    opi_prediction *pred; /* n_targets a configuration, output tokens/s first */
    size_t target[OPI__T_COUNT], n_targets;
    double *tok_s;
    size_t *who; /* which base or candidate a configuration belongs to */
    size_t n, cap;
} prober;

static void prober_free(prober *p)
{
    opi__free(p->ctx, p->config);
    opi__free(p->ctx, p->pred);
    opi__free(p->ctx, p->tok_s);
    opi__free(p->ctx, p->who);
}

static int32_t prober_make(prober *p, const opi__ask *ask, const opi__oracle *oracle, opi_ctx *ctx, size_t cap, int all,
                           opi_error *err)
{
    *p = (prober){.ask = ask, .oracle = oracle, .ctx = ctx, .cap = cap};
    p->n_targets = all ? opi__used_targets(ask, p->target) : 1; /* tokens/s is target 0: first either way */
    p->config = opi__alloc(ctx, cap, sizeof *p->config);
    p->pred = opi__alloc(ctx, cap, p->n_targets * sizeof *p->pred);
    p->tok_s = opi__alloc(ctx, cap, sizeof *p->tok_s);
    p->who = opi__alloc(ctx, cap, sizeof *p->who);
    if (p->config && p->pred && p->tok_s && p->who)
        return OPI_OK;
    prober_free(p);
    *p = (prober){0};
    return opi__fail_memory(err, cap * (sizeof *p->config + sizeof *p->pred));
}

static void prober_add(prober *p, const opi_config *base, double concurrency, double rate, size_t who)
{
    opi_config *c = &p->config[p->n];
    *c = *base;
    c->concurrency = concurrency;
    c->request_rate = rate;
    c->load_kind = rate > 0 ? "rate" : "concurrency";
    p->who[p->n++] = who;
}

static int32_t prober_run(prober *p, opi_error *err)
{
    const opi_predict_options options = {.struct_size = sizeof options, .level = p->ask->level, .targets = p->target,
                                         .n_targets = p->n_targets};
    if (p->n == 0)
        return OPI_OK;
    const int32_t rc = p->oracle->predict(p->oracle->user, p->config, p->n, &options, p->pred, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < p->n; i++)
        p->tok_s[i] = opi__judged(&p->pred[i * p->n_targets], p->ask->utility.risk);
    return OPI_OK;
}

/* The model has measured such a load: no target in use says otherwise (one without calibration says nothing). */
static int measured(const prober *p, size_t i)
{
    const opi_prediction *v = &p->pred[i * p->n_targets];
    int ok = v[0].status == OPI_P_OK;
    for (size_t k = 1; k < p->n_targets; k++)
        ok &= v[k].status == OPI_P_OK || v[k].status == OPI_P_UNCALIBRATED;
    return ok;
}

static int32_t add(opi__cands *out, const opi__cand *base, int32_t replicas, double concurrency, double rate, int sustained,
                   opi_error *err)
{
    opi__cand c = *base;
    c.pub.replicas = replicas;
    c.pub.config.concurrency = concurrency;
    c.pub.config.request_rate = rate;
    c.pub.config.load_kind = rate > 0 ? "rate" : "concurrency";
    c.sustained = sustained;
    return opi__cands_push(out, &c, err);
}

/* ---- requests in flight ---- */

static int32_t replica_limit(const opi__ask *ask, const opi__cand *base)
{
    /* A replica with less than one request in flight would idle. */
    return ask->open_loop ? base->max_replicas : (int32_t)fmin(base->max_replicas, floor(ask->concurrency));
}

/* Powers of two from `from` up, and the limit itself. */
static int32_t add_counts(const opi__ask *ask, const opi__cand *base, int32_t from, opi__cands *out, opi_error *err)
{
    const int32_t limit = replica_limit(ask, base);
    int32_t rc = add(out, base, from, ask->concurrency / from, 0, 1, err), last = from;
    for (int64_t r = 1; !rc && r <= limit; r *= 2)
        if (r > from) {
            rc = add(out, base, (int32_t)r, ask->concurrency / (double)r, 0, 1, err);
            last = (int32_t)r;
        }
    if (!rc && last < limit && limit <= 64)
        rc = add(out, base, limit, ask->concurrency / limit, 0, 1, err);
    return rc;
}

/* Fewest replicas that meet the demand, by bisection over all bases at once. fewest[i]: 0 when even the limit does not. */
static int32_t fewest_for_demand(prober *p, const opi__cands *bases, int32_t *fewest, int32_t *below, opi_error *err)
{
    const opi__ask *ask = p->ask;
    for (size_t i = 0; i < bases->n; i++) {
        fewest[i] = 0;
        below[i] = 0;
        if (!bases->v[i].pub.infeasible)
            prober_add(p, &bases->v[i].pub.config, ask->concurrency / replica_limit(ask, &bases->v[i]), 0, i);
    }
    int32_t rc = prober_run(p, err);
    for (size_t j = 0; !rc && j < p->n; j++) {
        const int32_t limit = replica_limit(ask, &bases->v[p->who[j]]);
        fewest[p->who[j]] = p->tok_s[j] * limit >= ask->demand ? limit : 0;
    }
    while (!rc) {
        p->n = 0;
        for (size_t i = 0; i < bases->n; i++)
            if (fewest[i] - below[i] > 1) {
                const int32_t mid = below[i] + (fewest[i] - below[i]) / 2;
                prober_add(p, &bases->v[i].pub.config, ask->concurrency / mid, 0, i);
            }
        if (p->n == 0)
            break;
        rc = prober_run(p, err);
        for (size_t j = 0; !rc && j < p->n; j++) {
            const size_t i = p->who[j];
            const int32_t mid = below[i] + (fewest[i] - below[i]) / 2;
            if (p->tok_s[j] * mid >= ask->demand)
                fewest[i] = mid;
            else
                below[i] = mid;
        }
    }
    return rc;
}

static int32_t share_in_flight(const opi__ask *ask, const opi__oracle *oracle, const opi__cands *bases, opi__cands *out,
                               opi_error *err)
{
    int32_t *fewest = opi__zalloc(out->ctx, 2 * bases->n, sizeof *fewest), rc = OPI_OK;
    prober p = {0};
    if (!fewest)
        return opi__fail_memory(err, 2 * bases->n * sizeof *fewest);
    if (ask->demand > 0) {
        rc = prober_make(&p, ask, oracle, out->ctx, bases->n, 0, err);
        if (!rc)
            rc = fewest_for_demand(&p, bases, fewest, fewest + bases->n, err);
    }
    for (size_t i = 0; !rc && i < bases->n; i++) {
        const opi__cand *b = &bases->v[i];
        const int32_t limit = replica_limit(ask, b);
        if (b->pub.infeasible)
            rc = opi__cands_push(out, b, err);
        else if (ask->demand > 0 && fewest[i] == 0)
            rc = add(out, b, limit, ask->concurrency / limit, 0, 1, err); /* the most this one can do */
        else
            rc = add_counts(ask, b, ask->demand > 0 ? fewest[i] : 1, out, err);
    }
    prober_free(&p);
    opi__free(out->ctx, fewest);
    return rc;
}

/* ---- an offered rate ---- */

/* Requests in flight at which a replica's throughput is looked up: 1, 4, 16 … 1024. */
#define GRID 6
#define REFINE 4

typedef struct grid {
    double tok_s[GRID];
} grid;

static double grid_point(int k)
{
    return (double)(1 << (2 * k));
}

static int32_t fill_grids(prober *p, const opi__cands *bases, grid *grids, opi_error *err)
{
    for (size_t i = 0; i < bases->n; i++)
        for (int k = 0; k < GRID; k++)
            if (!bases->v[i].pub.infeasible)
                prober_add(p, &bases->v[i].pub.config, grid_point(k), 0, i * GRID + (size_t)k);
    const int32_t rc = prober_run(p, err);
    for (size_t j = 0; !rc && j < p->n; j++)
        grids[p->who[j] / GRID].tok_s[p->who[j] % GRID] = p->tok_s[j];
    return rc;
}

/* The replica counts worth ranking: enough for the rate, a quarter more, then powers of two up to eight times as many. */
static int32_t add_for_rate(const opi__ask *ask, const opi__cand *base, const grid *g, opi__cands *out, opi_error *err)
{
    const double offered = ask->request_rate * ask->output_len;
    double most = 0;
    int at = 0;
    for (int k = 0; k < GRID; k++)
        if (g->tok_s[k] > most) {
            most = g->tok_s[k];
            at = k;
        }
    const double enough = most > 0 ? fmax(ceil(offered / most), 1) : INFINITY;
    if (enough > base->max_replicas)
        return add(out, base, base->max_replicas, grid_point(at), 0, 0, err);
    const int32_t fewest = (int32_t)enough, more = (int32_t)ceil(1.25 * enough);
    int32_t rc = add(out, base, fewest, 0, ask->request_rate / fewest, 1, err), last = fewest;
    if (!rc && more > fewest && more <= base->max_replicas) {
        rc = add(out, base, more, 0, ask->request_rate / more, 1, err);
        last = more;
    }
    for (int64_t r = 1; !rc && r <= base->max_replicas && r <= 8 * (int64_t)fewest; r *= 2)
        if (r > last)
            rc = add(out, base, (int32_t)r, 0, ask->request_rate / (double)r, 1, err);
    return rc;
}

/* Smallest bracket [lo, hi] of requests in flight whose upper end delivers `need`. */
static void bracket(const grid *g, double need, double *lo, double *hi)
{
    for (int k = 0; k < GRID; k++)
        if (g->tok_s[k] >= need || k == GRID - 1) {
            *hi = grid_point(k);
            *lo = k ? grid_point(k - 1) : *hi;
            return;
        }
}

/* Candidates whose load kind "rate" the model has not measured get the fixed point of Little's law. from[c]: the base of
 * candidate c, for its grid. */
static int32_t convert_rates(prober *p, const grid *grids, const size_t *from, opi__cands *out, double *lo, double *hi,
                             size_t *converted, opi_error *err)
{
    const opi__ask *ask = p->ask;
    p->n = 0;
    for (size_t c = 0; c < out->n; c++)
        if (out->v[c].pub.config.request_rate > 0)
            prober_add(p, &out->v[c].pub.config, 0, out->v[c].pub.config.request_rate, c);
    int32_t rc = prober_run(p, err);
    for (size_t c = 0; c < out->n; c++)
        lo[c] = hi[c] = 0;
    for (size_t j = 0; !rc && j < p->n; j++) {
        const size_t c = p->who[j];
        const double need = ask->request_rate * ask->output_len / out->v[c].pub.replicas;
        if (measured(p, j))
            out->v[c].sustained = p->tok_s[j] >= OPI__SUSTAINED * need;
        else
            bracket(&grids[from[c]], need, &lo[c], &hi[c]);
    }
    p->n_targets = 1;
    for (int step = 0; !rc && step < REFINE; step++) {
        p->n = 0;
        for (size_t c = 0; c < out->n; c++)
            if (hi[c] > lo[c] * 1.01)
                prober_add(p, &out->v[c].pub.config, sqrt(lo[c] * hi[c]), 0, c);
        rc = prober_run(p, err);
        for (size_t j = 0; !rc && j < p->n; j++) {
            const size_t c = p->who[j];
            const double need = ask->request_rate * ask->output_len / out->v[c].pub.replicas;
            *(p->tok_s[j] >= need ? &hi[c] : &lo[c]) = p->config[j].concurrency;
        }
    }
    for (size_t c = 0; !rc && c < out->n; c++)
        if (hi[c] > 0) {
            out->v[c].pub.config.concurrency = hi[c];
            out->v[c].pub.config.request_rate = 0;
            out->v[c].pub.config.load_kind = "concurrency";
            ++*converted;
        }
    return rc;
}

static int32_t share_rate(const opi__ask *ask, const opi__oracle *oracle, const opi__cands *bases, opi__cands *out,
                          size_t *converted, opi_error *err)
{
    prober p = {0};
    grid *grids = opi__zalloc(out->ctx, bases->n, sizeof *grids);
    size_t *from = NULL;
    double *ends = NULL;
    int32_t rc = grids ? prober_make(&p, ask, oracle, out->ctx, bases->n * GRID, 0, err)
                       : opi__fail_memory(err, bases->n * sizeof *grids);
    if (!rc)
        rc = fill_grids(&p, bases, grids, err);
    prober_free(&p);
    p = (prober){0};
    /* A base gives at most this many candidates: the fewest, a quarter more, four powers of two. */
    if (!rc && !(from = opi__alloc(out->ctx, bases->n * 6, sizeof *from)))
        rc = opi__fail_memory(err, bases->n * 6 * sizeof *from);
    for (size_t i = 0; !rc && i < bases->n; i++) {
        const size_t first = out->n;
        rc = bases->v[i].pub.infeasible ? opi__cands_push(out, &bases->v[i], err)
                                        : add_for_rate(ask, &bases->v[i], &grids[i], out, err);
        for (size_t c = first; c < out->n; c++)
            from[c] = i;
    }
    if (!rc && !(ends = opi__alloc(out->ctx, 2 * out->n, sizeof *ends)))
        rc = opi__fail_memory(err, 2 * out->n * sizeof *ends);
    if (!rc)
        rc = prober_make(&p, ask, oracle, out->ctx, out->n, 1, err);
    if (!rc)
        rc = convert_rates(&p, grids, from, out, ends, ends + out->n, converted, err);
    prober_free(&p);
    opi__free(out->ctx, ends);
    opi__free(out->ctx, from);
    opi__free(out->ctx, grids);
    return rc;
}

int32_t opi__share_load(const opi__ask *ask, const opi__oracle *oracle, const opi__cands *bases, opi__cands *out,
                        size_t *converted, opi_error *err)
{
    *converted = 0;
    return ask->open_loop ? share_rate(ask, oracle, bases, out, converted, err)
                          : share_in_flight(ask, oracle, bases, out, err);
}
