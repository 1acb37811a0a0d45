/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/score.h"

#include "base/status.h"
#include "base/text.h"
#include "decide/launch.h"
#include "decide/load.h"
#include "decide/utility.h"

#include <math.h>
#include <string.h>

int32_t opi__score_unit(const opi__ask *ask, const opi__cand *c)
{
    if (ask->utility.value_usd_per_mtok > 0)
        return OPI__USD_PER_H;
    if (!c->pub.price_stated)
        return OPI__TOK_S_PER_GPU;
    return ask->demand > 0 ? OPI__USD_PER_H : OPI__USD_PER_MTOK;
}

const char *opi__score_unit_name(int32_t unit)
{
    return unit == OPI__USD_PER_H ? "usd_per_h" : unit == OPI__USD_PER_MTOK ? "usd_per_mtok" : "tok_s_per_gpu";
}

int opi__target_adds_up(size_t target)
{
    return target == OPI__T_OUT_TOK_S || target == OPI__T_TOTAL_TOK_S || target == OPI__T_REQ_S;
}

static int calibrated(const opi_prediction *p)
{
    return p->status == OPI_P_OK || p->status == OPI_P_NEW_COMBINATION || p->status == OPI_P_OOD;
}

/* ---- service-level objectives ---- */

/* Probability that the target misses its limit. Without calibration there is no distribution: the physics estimate says yes
 * or no, and a note says that it did. */
static int32_t violation_of(opi_advice *a, const opi__oracle *oracle, const opi__cand *c, const opi_slo *slo, double *out,
                            opi_error *err)
{
    const opi__target_def *t = &opi__targets[slo->target];
    const opi_prediction *p = &c->pred[slo->target];
    const double limit = opi__target_adds_up(slo->target) ? slo->limit / c->pub.replicas : slo->limit;
    double above = NAN;
    if (calibrated(p)) {
        const int32_t rc = oracle->exceed(oracle->user, &c->pub.config, slo->target, limit, &above, err);
        if (rc)
            return rc;
    }
    if (isnan(above)) {
        above = isnan(p->p50) ? (t->higher_is_better ? 0 : 1) : p->p50 > limit;
        opi__note_add(a, "slo-uncalibrated",
                      "SLO %s: no calibrated prediction; judged by the physics estimate alone, as met or missed", t->alias);
    }
    *out = fmin(fmax(t->higher_is_better ? 1 - above : above, 0), 1);
    return OPI_OK;
}

/* At least one SLO violated: as if independent, which for latencies that rise together errs to the safe side. */
static int32_t violations(opi_advice *a, const opi__oracle *oracle, opi__cand *c, double *sum, opi_error *err)
{
    double all_met = 1;
    *sum = 0;
    for (size_t i = 0; i < a->ask.n_slos; i++) {
        const int32_t rc = violation_of(a, oracle, c, &a->ask.slos[i], &c->violation[i], err);
        if (rc)
            return rc;
        all_met *= 1 - c->violation[i];
        *sum += c->violation[i];
    }
    c->pub.slo_violation = 1 - all_met;
    c->pub.meets_slo = c->pub.slo_violation < 0.5;
    return OPI_OK;
}

/* ---- verdict ---- */

size_t opi__used_targets(const opi__ask *ask, size_t used[OPI__T_COUNT])
{
    int in_use[OPI__T_COUNT] = {0};
    size_t n = 0;
    in_use[OPI__T_OUT_TOK_S] = 1;
    in_use[OPI__T_POWER] = ask->utility.power_usd_per_kwh > 0;
    for (size_t i = 0; i < ask->n_slos; i++)
        in_use[ask->slos[i].target] = 1;
    for (size_t t = 0; t < OPI__T_COUNT; t++)
        if (in_use[t])
            used[n++] = t;
    return n;
}

static int gravity(int32_t status)
{
    return status == OPI_P_OK ? 0 : status == OPI_P_NEW_COMBINATION ? 1 : status == OPI_P_UNCALIBRATED ? 2 : 3;
}

/* Worst over the targets in use. One that only physics answers says nothing about support, unless it is the throughput. */
static void judge_support(const opi_advice *a, const opi__oracle *oracle, opi__cand *c)
{
    size_t used[OPI__T_COUNT];
    const size_t n = opi__used_targets(&a->ask, used);
    c->worst_target = OPI__T_OUT_TOK_S;
    c->pub.verdict = c->pred[OPI__T_OUT_TOK_S].status;
    for (size_t i = 0; i < n; i++) {
        const opi_prediction *p = &c->pred[used[i]], *worst = &c->pred[c->worst_target];
        if (!calibrated(p))
            continue;
        if (gravity(p->status) > gravity(c->pub.verdict) ||
            (p->status == c->pub.verdict && p->ood_distance > worst->ood_distance)) {
            c->worst_target = (int32_t)used[i];
            c->pub.verdict = p->status;
        }
    }
    if (c->pub.verdict != OPI_P_OK)
        oracle->reason(oracle->user, &c->pub.config, &c->pred[c->worst_target], c->pub.reason, sizeof c->pub.reason);
}

/* ---- terms and score ---- */

static double power_of(const opi_prediction *p, const opi_gpu *gpu, double risk)
{
    double bad = p->hi;
    /* An interval without an upper end ends at the GPU's power limit. */
    if (gpu->tdp_w > 0 && (isnan(bad) || bad > gpu->tdp_w))
        bad = fmax(gpu->tdp_w, p->p50);
    return risk > 0 && isfinite(bad) ? (1 - risk) * p->p50 + risk * bad : p->p50;
}

/* The predicted usage where it was learned, else what the memory formula says of the load. */
static double kv_usage_of(const opi__cand *c, double risk)
{
    const opi_prediction *p = &c->pred[OPI__T_KV_USAGE];
    if (calibrated(p) && p->p50 >= 0)
        return risk > 0 && isfinite(p->hi) ? (1 - risk) * p->p50 + risk * p->hi : p->p50;
    return c->pub.memory.kv_pressure;
}

static double delivered(const opi__ask *ask, double per_replica, int32_t replicas)
{
    const double tok_s = per_replica * replicas;
    return ask->open_loop ? fmin(tok_s, ask->request_rate * ask->output_len) : tok_s;
}

static void terms_at(const opi__ask *ask, const opi__cand *c, double violation_sum, double risk, opi_terms *out,
                     double *tok_s)
{
    const double gpus = (double)c->pub.config.n_gpus * c->pub.replicas;
    *tok_s = delivered(ask, opi__judged(&c->pred[OPI__T_OUT_TOK_S], risk), c->pub.replicas);
    const opi__outcome o = {.gpus = gpus,
                            .replicas = c->pub.replicas,
                            .price = c->line->price,
                            .queue_s = c->line->queue_s,
                            .launch_success = c->pub.launch_success,
                            .tok_s = *tok_s,
                            .demand = ask->demand,
                            .violations = violation_sum,
                            .kv_usage = kv_usage_of(c, risk),
                            .power_w = power_of(&c->pred[OPI__T_POWER], &c->line->gpu, risk)};
    opi__utility_terms(&ask->utility, &o, out);
}

static void score_one(const opi__ask *ask, opi__cand *c, double violation_sum)
{
    opi_terms judged;
    const double gpus = (double)c->pub.config.n_gpus * c->pub.replicas;
    const double enough = ask->demand * (ask->demand_implied ? OPI__SUSTAINED : 1);
    terms_at(ask, c, violation_sum, 0, &c->pub.terms, &c->pub.out_tok_s);
    terms_at(ask, c, violation_sum, ask->utility.risk, &judged, &c->judged_tok_s);
    c->pub.meets_demand = c->sustained && c->judged_tok_s >= enough;
    if (c->pub.price_stated && c->pub.out_tok_s > 0)
        c->pub.usd_per_mtok = c->line->price * gpus / (c->pub.out_tok_s * 0.0036);
    const int32_t unit = opi__score_unit(ask, c);
    if (unit == OPI__USD_PER_H)
        c->pub.score = judged.total;
    else if (unit == OPI__USD_PER_MTOK)
        c->pub.score = c->judged_tok_s > 0 ? judged.total / (c->judged_tok_s * 0.0036) : -INFINITY;
    else
        c->pub.score = (ask->demand > 0 ? fmin(c->judged_tok_s, ask->demand) : c->judged_tok_s) / gpus;
    c->tier = !c->pub.meets_slo ? 2 : !c->pub.meets_demand ? 1 : 0;
}

/* The prior of a (line, GPUs a replica) is looked up once: candidates of a base follow each other. */
static void set_launch(opi__cand *v, size_t n)
{
    opi_prior prior = {.struct_size = sizeof prior};
    const opi__cand *of = NULL;
    for (size_t i = 0; i < n; i++) {
        if (v[i].pub.infeasible)
            continue;
        if (!of || of->line != v[i].line || of->pub.config.n_gpus != v[i].pub.config.n_gpus)
            opi__launch_prior(v[i].line->gpu.name, v[i].pub.config.n_gpus, &prior);
        of = &v[i];
        v[i].pub.launch_success = prior.mean;
        v[i].pub.launch_lo = prior.lo;
        v[i].pub.launch_hi = prior.hi;
    }
}

/* Predictions of every target for every candidate, in one call. */
static int32_t predict_all(opi_advice *a, const opi__oracle *oracle, size_t n, opi_error *err)
{
    const opi_predict_options options = {.struct_size = sizeof options, .level = a->ask.level};
    opi_config *configs = opi__alloc(a->ctx, n, sizeof *configs);
    a->predictions = opi__zalloc(a->ctx, n * OPI__T_COUNT, sizeof *a->predictions);
    a->violations = opi__zalloc(a->ctx, n * a->ask.n_slos, sizeof *a->violations);
    if (!configs || !a->predictions || !a->violations) {
        opi__free(a->ctx, configs);
        return opi__fail_memory(err, n * (sizeof *configs + OPI__T_COUNT * sizeof *a->predictions));
    }
    size_t k = 0;
    for (size_t i = 0; i < a->cands.n; i++) {
        opi__cand *c = &a->cands.v[i];
        if (c->pub.infeasible)
            continue;
        c->pred = &a->predictions[k * OPI__T_COUNT];
        c->violation = &a->violations[k * a->ask.n_slos];
        configs[k++] = c->pub.config;
    }
    const int32_t rc = oracle->predict(oracle->user, configs, n, &options, a->predictions, err);
    opi__free(a->ctx, configs);
    return rc;
}

/* The model refuses what the facts allowed (a row it cannot use): the candidate leaves with the model's reason. */
static int refused(const opi__oracle *oracle, opi__cand *c)
{
    const opi_prediction *p = &c->pred[OPI__T_OUT_TOK_S];
    if (p->status != OPI_P_INFEASIBLE && p->status != OPI_P_ERROR)
        return 0;
    oracle->reason(oracle->user, &c->pub.config, p, c->pub.reason, sizeof c->pub.reason);
    c->pub.infeasible = OPI_R_FACTS;
    c->pub.verdict = OPI_P_INFEASIBLE;
    c->pred = NULL;
    c->violation = NULL;
    return 1;
}

int32_t opi__score_all(opi_advice *a, const opi__oracle *oracle, opi_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < a->cands.n; i++)
        n += !a->cands.v[i].pub.infeasible;
    if (n == 0)
        return OPI_OK;
    int32_t rc = predict_all(a, oracle, n, err);
    if (rc)
        return rc;
    set_launch(a->cands.v, a->cands.n);
    for (size_t i = 0; i < a->cands.n; i++) {
        opi__cand *c = &a->cands.v[i];
        double sum;
        if (c->pub.infeasible || refused(oracle, c))
            continue;
        /* The KV pressure depends on the replica's share of the load. */
        opi_error ignored;
        opi_memory m = {.struct_size = sizeof m};
        if (opi_memory_fit(&c->pub.config, &m, &ignored) == OPI_OK)
            c->pub.memory = m;
        rc = violations(a, oracle, c, &sum, err);
        if (rc)
            return rc;
        judge_support(a, oracle, c);
        score_one(&a->ask, c, sum);
    }
    return OPI_OK;
}
