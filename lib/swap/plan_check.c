/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator against formulas, in worlds small and harsh enough that a few replays tell. Each check replays on its
 * own and has a tolerance of four standard errors of what it saw, plus what its formula leaves out. */
#include "base/mem.h"
#include "base/status.h"
#include "base/take.h"
#include "swap/planner.h"

#include <math.h>
#include <string.h>

typedef double (*pick_fn)(const opi__tally *t, const opi__plan_setup *s);

static double pick_goodput(const opi__tally *t, const opi__plan_setup *s)
{
    return t->useful / s->horizon;
}

static double pick_down(const opi__tally *t, const opi__plan_setup *s)
{
    return t->node_seconds_down / s->horizon;
}

static double pick_waiting(const opi__tally *t, const opi__plan_setup *s)
{
    return t->waiting / s->horizon;
}

static double pick_fallbacks(const opi__tally *t, const opi__plan_setup *s)
{
    (void)s;
    return t->fallbacks;
}

static double pick_redone(const opi__tally *t, const opi__plan_setup *s)
{
    (void)s;
    return t->failures > 0 ? t->steps_redone / t->failures : 0;
}

/* No two seeds share a replay. */
static uint64_t replay_seed(uint64_t seed, int32_t i)
{
    return opi__mix64(opi__mix64(seed) + (uint64_t)i);
}

/* Mean and standard error of one figure over s->o.replays replays. */
static int32_t sample(opi_ctx *ctx, const opi__plan_setup *s, int32_t way, pick_fn pick, opi_plan_check *c, double *se,
                      opi_error *err)
{
    double sum = 0, squares = 0, n = s->o.replays;
    for (int32_t i = 0; i < s->o.replays; i++) {
        opi__tally t;
        int32_t status = opi__plan_simulate(ctx, s, way, s->o.spares, replay_seed(s->o.seed, i), &t, err);
        if (status)
            return status;
        double v = pick(&t, s);
        sum += v;
        squares += v * v;
    }
    c->simulated = sum / n;
    *se = sqrt(fmax(0, squares / n - c->simulated * c->simulated) / (n - 1));
    return OPI_OK;
}

/* 512 GPUs on 64 nodes of which each fails every 500 h, nothing else fails, spares are plenty. */
static opi_plan_options harsh(uint64_t seed)
{
    opi_plan_options o = {.struct_size = sizeof o};
    o.gpus = 512;
    o.spares = 24;
    o.seed = seed;
    o.days = 60;
    o.replays = 200;
    o.process_mtbf_h = o.rack_mtbf_h = -1;
    o.node_mtbf_h = 500;
    o.node_repair_h = 6;
    return o;
}

static int32_t check_daly(opi_ctx *ctx, uint64_t seed, opi_plan_check *c, opi_error *err)
{
    opi__plan_setup s;
    opi_plan_options o = harsh(seed);
    double se = 0;
    int32_t status = opi__plan_setup_make(&o, &s, err);
    status = status ? status : sample(ctx, &s, OPI_PLAN_RESTART, pick_goodput, c, &se, err);
    if (status)
        return status;
    c->formula = opi__daly_goodput(s.saved_interval, s.o.checkpoint_stall_s, s.o.restart_s, opi__plan_job_rate(&s));
    /* The last segment of a replay counts though it is not saved yet. */
    c->tolerance = 4 * se + s.saved_interval / s.horizon;
    return OPI_OK;
}

static int32_t check_swap(opi_ctx *ctx, uint64_t seed, opi_plan_check *c, opi_error *err)
{
    opi__plan_setup s;
    opi_plan_options o = harsh(seed);
    opi_plan_closed closed = {.struct_size = sizeof closed};
    double se = 0;
    o.snapshot_interval = 20;
    int32_t status = opi__plan_setup_make(&o, &s, err);
    status = status ? status : sample(ctx, &s, OPI_PLAN_SWAP, pick_goodput, c, &se, err);
    status = status ? status : opi__plan_close(ctx, &s, &closed, err);
    c->formula = closed.swap_goodput;
    c->tolerance = 4 * se + 1e-4;
    return status;
}

static int32_t check_redone(opi_ctx *ctx, uint64_t seed, opi_plan_check *c, opi_error *err)
{
    opi__plan_setup s;
    opi_plan_options o = harsh(seed);
    double se = 0;
    o.spares = 64;
    o.snapshot_interval = 20;
    o.node_repair_h = 1e5; /* for good, and spares never fail: their recoveries redo work too */
    int32_t status = opi__plan_setup_make(&o, &s, err);
    s.trace_nodes = s.nodes;
    status = status ? status : sample(ctx, &s, OPI_PLAN_SWAP, pick_redone, c, &se, err);
    if (status)
        return status;
    /* A failure falls anywhere between two snapshots, and the newest one needs a while to count. */
    c->formula = s.o.snapshot_interval / 2.0 + s.latency / s.step;
    c->tolerance = 4 * se + 0.01 * c->formula; /* some fall into a recovery */
    return OPI_OK;
}

static int32_t check_quiet(opi_ctx *ctx, uint64_t seed, opi_plan_check *c, opi_error *err)
{
    opi__plan_setup s;
    opi_plan_options o = harsh(seed);
    double se = 0;
    o.node_mtbf_h = -1;
    o.params_b = 4000;
    o.network_gbs = 0.5; /* copies take longer than a step: each step waits for the rest */
    o.overhead = 0.01;
    int32_t status = opi__plan_setup_make(&o, &s, err);
    status = status ? status : sample(ctx, &s, OPI_PLAN_SWAP, pick_goodput, c, &se, err);
    if (status)
        return status;
    c->formula = s.o.step_s / (s.o.state_gb / s.o.snapshot_gbs + s.o.unique_gb / s.o.network_gbs);
    c->tolerance = 1e-9;
    return OPI_OK;
}

static int32_t check_repair(opi_ctx *ctx, uint64_t seed, opi_plan_check *c, opi_error *err)
{
    opi__plan_setup s;
    opi_plan_options o = harsh(seed);
    double se = 0, load = 60.0 / 500;
    o.node_repair_h = 60;
    o.repair_cv = 2; /* the mean alone matters */
    o.days = 365;
    o.replays = 20;
    int32_t status = opi__plan_setup_make(&o, &s, err);
    status = status ? status : sample(ctx, &s, OPI_PLAN_SWAP, pick_down, c, &se, err);
    if (status)
        return status;
    c->formula = (s.nodes + s.o.spares) * load / (1 + load);
    c->tolerance = 4 * se + c->formula * 300.0 / (365 * 24); /* all nodes are up at first */
    return OPI_OK;
}

/* Nodes fail and return independently of what the job does, so the number that is down is binomial, and the job waits
 * exactly while more are down than there are spares. */
static int32_t check_waiting(opi_ctx *ctx, uint64_t seed, opi_plan_check *c, opi_error *err)
{
    opi__plan_setup s;
    opi_plan_options o = harsh(seed);
    double se = 0, q = 20.0 / 500 / (1 + 20.0 / 500), term, below = 0;
    o.node_repair_h = 20;
    o.spares = 4;
    o.policy = OPI_PLAN_WAIT;
    o.days = 365;
    o.replays = 20;
    int32_t status = opi__plan_setup_make(&o, &s, err);
    status = status ? status : sample(ctx, &s, OPI_PLAN_SWAP, pick_waiting, c, &se, err);
    if (status)
        return status;
    int32_t n = s.nodes + s.o.spares;
    term = pow(1 - q, n);
    for (int32_t k = 0; k <= s.o.spares; k++) {
        below += term;
        term *= (double)(n - k) / (k + 1) * q / (1 - q);
    }
    c->formula = 1 - below;
    c->tolerance = 4 * se + c->formula * 100.0 / (365 * 24);
    return OPI_OK;
}

static int32_t check_pairs(opi_ctx *ctx, uint64_t seed, opi_plan_check *c, opi_error *err)
{
    opi__plan_setup s;
    opi_plan_options o = harsh(seed);
    opi_plan_closed closed = {.struct_size = sizeof closed};
    double se = 0;
    o.phase_s[0] = 240; /* slow detection: a wide window */
    o.node_mtbf_h = 100;
    o.days = 365;
    o.replays = 100;
    int32_t status = opi__plan_setup_make(&o, &s, err);
    status = status ? status : sample(ctx, &s, OPI_PLAN_SWAP, pick_fallbacks, c, &se, err);
    status = status ? status : opi__plan_close(ctx, &s, &closed, err);
    c->formula = closed.fallbacks;
    c->tolerance = 4 * se + 0.08 * c->formula; /* first order in window * rate; nodes in repair do not fail */
    return status;
}

#define ARRIVAL_RUNS 2000

/* Arrivals in 100 days; the formula's constant is what a renewal process is ahead or behind (Feller, volume 2). */
static int32_t count_arrivals(opi_ctx *ctx, uint64_t seed, int32_t arrivals, double burst, opi_plan_check *c,
                              double *variance, double *se, opi_error *err)
{
    opi__plan_setup s;
    opi_plan_options o = harsh(seed);
    double sum = 0, squares = 0, n = ARRIVAL_RUNS;
    o.arrivals = arrivals;
    o.burst = burst;
    o.days = 100;
    int32_t status = opi__plan_setup_make(&o, &s, err);
    for (int i = 0; i < (int)n && !status; i++) {
        opi__arrivals a;
        opi__arrival next;
        double count = 0;
        opi__arrivals_start(&a, ctx, &s, replay_seed(seed, i));
        for (;;) {
            status = opi__arrivals_next(&a, &next, err);
            if (status || next.at > s.horizon)
                break;
            count++;
        }
        opi__arrivals_end(&a);
        sum += count;
        squares += count * count;
    }
    if (status)
        return status;
    c->simulated = sum / n;
    *variance = squares / n - c->simulated * c->simulated;
    *se = sqrt(*variance / n);
    c->formula = opi__plan_rate(&s, s.trace_nodes) * s.horizon;
    return OPI_OK;
}

static int32_t check_weibull(opi_ctx *ctx, uint64_t seed, opi_plan_check *c, opi_error *err)
{
    double variance, se, k = 0.7, g1 = tgamma(1 + 1 / k), cv2 = tgamma(1 + 2 / k) / (g1 * g1) - 1;
    int32_t status = count_arrivals(ctx, seed, OPI_PLAN_WEIBULL, k, c, &variance, &se, err);
    if (status)
        return status;
    c->formula += (cv2 - 1) / 2;
    c->tolerance = 4 * se;
    return OPI_OK;
}

static int32_t check_hyperexponential(opi_ctx *ctx, uint64_t seed, opi_plan_check *c, opi_error *err)
{
    double variance, se;
    int32_t status = count_arrivals(ctx, seed, OPI_PLAN_HYPEREXPONENTIAL, 3, c, &variance, &se, err);
    if (status)
        return status;
    c->formula += (9.0 - 1) / 2;
    c->tolerance = 4 * se;
    return OPI_OK;
}

static int32_t check_clusters(opi_ctx *ctx, uint64_t seed, opi_plan_check *c, opi_error *err)
{
    double variance, se;
    int32_t status = count_arrivals(ctx, seed, OPI_PLAN_CLUSTERED, 3, c, &variance, &se, err);
    if (status)
        return status;
    /* Variance over mean of the counts: E[K^2] / E[K] of a geometric cluster size of mean m, 2m - 1. */
    c->simulated = variance / c->simulated;
    c->formula = 2 * 3 - 1;
    c->tolerance = 4 * c->formula * sqrt(2.0 / (ARRIVAL_RUNS - 1)) + 0.05;
    return OPI_OK;
}

static const struct {
    const char *name;
    int32_t (*run)(opi_ctx *, uint64_t, opi_plan_check *, opi_error *);
} checks[] = {
    {"no failures: goodput when every step waits for its snapshot", check_quiet},
    {"restarts: goodput at Daly's interval, exponential failures", check_daly},
    {"hot swap: goodput, exponential failures", check_swap},
    {"hot swap: steps computed again after a failure", check_redone},
    {"nodes in repair, long repair times (alternating renewal)", check_repair},
    {"share of time without enough nodes (binomial)", check_waiting},
    {"buddy pairs that die in the vulnerable window, in a year", check_pairs},
    {"Weibull failures, shape 0.7: how many in 100 days", check_weibull},
    {"hyperexponential failures, CV 3: how many in 100 days", check_hyperexponential},
    {"clustered failures, 3 a cluster: variance over mean", check_clusters},
};

size_t opi_plan_check_count(void)
{
    return sizeof checks / sizeof *checks;
}

int32_t opi_plan_check_at(opi_ctx *ctx, size_t index, uint64_t seed, opi_plan_check *out, opi_error *err)
{
    opi_plan_check c = {.struct_size = sizeof c};
    if (index >= opi_plan_check_count())
        return opi__fail(err, OPI_E_RANGE, (int64_t)index, "check %zu of %zu", index, opi_plan_check_count());
    int32_t status = checks[index].run(ctx, seed, &c, err);
    if (status)
        return status;
    c.passed = fabs(c.simulated - c.formula) <= c.tolerance;
    opi__copy_text(c.name, sizeof c.name, checks[index].name);
    return opi__give(out, &c, sizeof c, "opi_plan_check", err);
}
