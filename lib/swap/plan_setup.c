/* SPDX-License-Identifier: Apache-2.0 */
/* The planner's numbers: defaults with their sources, limits, and what follows from them. */
#include "base/status.h"
#include "base/take.h"
#include "swap/planner.h"

#include <math.h>
#include <stddef.h>

/* An option: where it is, what 0 stands for, and its limits. `never`: what a negative number states. */
typedef struct rule {
    const char *name;
    size_t at;
    double standard, least, most, never;
} rule;
#define NO_NEVER (-1) /* negative numbers are refused */
#define AT(field) #field, offsetof(opi_plan_options, field)

/* Failure rates: Llama 3 (arXiv 2407.21783, table 5): 419 unexpected interruptions of 16,384 GPUs (2,048 nodes) in 54
 * days. About 63 of them were software (a process: 16384 * 1296 h / 63), 35 switches and cables, of which half are taken
 * here as a rack of four nodes (512 * 1296 h / 17.5), the others a node (2048 * 1296 h / 321). Repair times are
 * log-normal (Schroeder and Gibson, DSN 2006), their means at the sites studied between less than an hour and more than
 * a day; the ones here are round numbers in between. The other defaults are round numbers of present clusters, not
 * measurements: state your own. */
static const rule rules[] = {
    {AT(days), 30, 1e-3, 3660, NO_NEVER},
    {AT(process_mtbf_h), 340000, 1e-3, 1e12, INFINITY},
    {AT(node_mtbf_h), 8300, 1e-3, 1e12, INFINITY},
    {AT(rack_mtbf_h), 38000, 1e-3, 1e12, INFINITY},
    {AT(burst_window_s), 600, 1e-3, 1e7, NO_NEVER},
    {AT(burst_near), 0.5, 0, 1, 0},
    {AT(process_repair_s), 300, 0, 1e9, NO_NEVER},
    {AT(node_repair_h), 12, 1e-6, 1e5, NO_NEVER},
    {AT(rack_repair_h), 4, 1e-6, 1e5, NO_NEVER},
    {AT(repair_cv), 1, 0, 10, 0},
    {AT(step_s), 10, 1e-6, 1e5, NO_NEVER},
    {AT(params_b), 70, 1e-6, 1e6, NO_NEVER},
    {AT(snapshot_gbs), 20, 1e-6, 1e6, NO_NEVER},
    {AT(network_gbs), 20, 1e-6, 1e6, NO_NEVER},
    {AT(overhead), 0, 0, 100, 0},
    {AT(checkpoint_interval_s), 3600, 1, 1e9, NO_NEVER},
    {AT(checkpoint_s), 60, 0, 1e6, 0},
    {AT(restart_s), 600, 0, 1e7, 0},
    {AT(idle_cost), 1, 0, 1e3, 0},
};

static int32_t apply(opi_plan_options *o, const rule *r, opi_error *err)
{
    double *v = (double *)((char *)o + r->at);
    if (isnan(*v))
        return opi__fail(err, OPI_E_INVALID, -1, "%s is not a number", r->name);
    if (*v == 0)
        *v = r->standard;
    else if (*v < 0 && r->never >= 0)
        *v = r->never;
    else if (!(*v >= r->least && *v <= r->most))
        return opi__fail(err, OPI_E_RANGE, -1, "%s is %.6g: it must be between %.6g and %.6g", r->name, *v, r->least,
                         r->most);
    return OPI_OK;
}

static int32_t apply_count(int32_t *v, const char *name, int32_t standard, int32_t least, int32_t most, opi_error *err)
{
    *v = *v == 0 ? standard : *v;
    if (*v < least || *v > most)
        return opi__fail(err, OPI_E_RANGE, -1, "%s is %d: it must be between %d and %d", name, *v, least, most);
    return OPI_OK;
}

static int32_t take_counts(opi_plan_options *o, opi_error *err)
{
    int32_t s = 0;
    if (o->gpus == 0)
        return opi__fail(err, OPI_E_INVALID, -1, "gpus is missing: how many GPUs train?");
    s = s ? s : apply_count(&o->gpus, "gpus", 0, 2, OPI__PLAN_MOST_GPUS, err);
    s = s ? s : apply_count(&o->tp, "tp", 1, 1, 1024, err);
    s = s ? s : apply_count(&o->pp, "pp", 1, 1, 1024, err);
    s = s ? s : apply_count(&o->per_node, "per_node", 8, 1, 1024, err);
    s = s ? s : apply_count(&o->nodes_per_rack, "nodes_per_rack", 4, 1, 65536, err);
    s = s ? s : apply_count(&o->spares, "spares", 0, 0, 16384, err);
    o->replicas = o->replicas == 0 ? 1 : o->replicas < 0 ? 0 : o->replicas;
    s = s ? s : apply_count(&o->replicas, "replicas", 0, 0, 16, err);
    s = s ? s : apply_count(&o->policy, "policy", 0, OPI_PLAN_STOP, OPI_PLAN_WAIT, err);
    s = s ? s : apply_count(&o->arrivals, "arrivals", 0, OPI_PLAN_EXPONENTIAL, OPI_PLAN_CLUSTERED, err);
    s = s ? s : apply_count(&o->replays, "replays", 10, 2, 10000, err);
    s = s ? s : apply_count(&o->sweep, "sweep", 0, 0, 1, err);
    s = s ? s : apply_count(&o->snapshot_interval, "snapshot_interval", 1, 1, 1000000, err);
    if (!s && o->gpus % (o->tp * o->pp) != 0)
        return opi__fail(err, OPI_E_INFEASIBLE, -1, "%d GPUs are no multiple of tp %d x pp %d = %d", o->gpus, o->tp,
                         o->pp, o->tp * o->pp);
    return s;
}

/* What defaults depend on other options. */
static int32_t take_rest(opi_plan_options *o, opi_error *err)
{
    static const double bursts[] = {1, 0.7, 3, 3}, least[] = {0, 0.2, 1, 1}, most[] = {0, 1, 20, 1000};
    static const double phases[OPI_PLAN_PHASES] = {10, 1, 2, 0.1, 0.1, 10, 0, 1}; /* DeadPool: < 40 s in all */
    int32_t a = o->arrivals, stated = 0;
    const rule later[] = {
        {AT(burst), bursts[a], a ? least[a] : 0, a ? most[a] : INFINITY, NO_NEVER},
        {AT(unique_gb), 12 * o->params_b / o->gpus, 0, 1e6, 0},
        {AT(checkpoint_stall_s), o->checkpoint_s, 0, 1e6, 0},
        {AT(wait_h), INFINITY, 1e-6, 1e9, INFINITY},
    };
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        int32_t status = apply(o, &later[i], err);
        if (status)
            return status;
    }
    const rule state = {AT(state_gb), 2 * o->params_b / (o->tp * o->pp) + o->unique_gb, 0, 1e6, NO_NEVER};
    int32_t status = apply(o, &state, err);
    for (int i = 0; i < OPI_PLAN_PHASES && !status; i++) {
        if (!(o->phase_s[i] >= 0 && o->phase_s[i] <= 1e6))
            status = opi__fail(err, OPI_E_RANGE, i, "phase_s[%d] is %.6g: it must be between 0 and 1e+06", i,
                               o->phase_s[i]);
        stated |= o->phase_s[i] > 0;
    }
    for (int i = 0; i < OPI_PLAN_PHASES && !stated; i++)
        o->phase_s[i] = phases[i];
    if (!status && o->unique_gb > o->state_gb)
        status = opi__fail(err, OPI_E_RANGE, -1, "unique_gb is %.6g, more than the whole state_gb of %.6g",
                           o->unique_gb, o->state_gb);
    return status;
}

int32_t opi__plan_racks(const opi__plan_setup *s, int32_t nodes)
{
    return (nodes + s->o.nodes_per_rack - 1) / s->o.nodes_per_rack;
}

double opi__plan_rate(const opi__plan_setup *s, int32_t nodes)
{
    return s->lambda[OPI__PLAN_PROCESS] * nodes * s->o.per_node + s->lambda[OPI__PLAN_NODE] * nodes +
           s->lambda[OPI__PLAN_RACK] * opi__plan_racks(s, nodes);
}

double opi__plan_job_rate(const opi__plan_setup *s)
{
    return s->lambda[OPI__PLAN_PROCESS] * s->slots + s->lambda[OPI__PLAN_NODE] * s->nodes +
           s->lambda[OPI__PLAN_RACK] * opi__plan_racks(s, s->nodes);
}

int32_t opi__plan_most_spares(const opi__plan_setup *s)
{
    /* Nodes in repair are about Poisson (M/G/infinity) with this mean, in lumps of a rack. */
    double by_node = s->lambda[OPI__PLAN_NODE] * s->o.node_repair_h * 3600;
    double by_rack = s->lambda[OPI__PLAN_RACK] * s->o.rack_repair_h * 3600, size = s->o.nodes_per_rack;
    double mean = s->nodes * (by_node + by_rack), lumps = s->nodes * (by_node + by_rack * size);
    double burst = s->o.arrivals == OPI_PLAN_EXPONENTIAL ? 1 : s->o.arrivals == OPI_PLAN_CLUSTERED ? s->o.burst : 3;
    double most = mean + 5 * sqrt(lumps * burst) + (by_rack > 0 ? 2 * size : 0) + 2;
    most = fmin(most, s->nodes);
    return (int32_t)ceil(fmax(most, s->o.spares));
}

static void derive(opi__plan_setup *s)
{
    const opi_plan_options *o = &s->o;
    s->grid.tp = o->tp;
    s->grid.pp = o->pp;
    s->grid.dp = o->gpus / (o->tp * o->pp);
    s->slots = o->gpus;
    s->nodes = (o->gpus + o->per_node - 1) / o->per_node;
    s->horizon = o->days * 86400;
    s->lambda[OPI__PLAN_PROCESS] = 1 / (o->process_mtbf_h * 3600);
    s->lambda[OPI__PLAN_NODE] = 1 / (o->node_mtbf_h * 3600);
    s->lambda[OPI__PLAN_RACK] = 1 / (o->rack_mtbf_h * 3600);
    /* Copying and sending run beside the next steps; a step waits only for what they take longer than the interval. */
    double busy = o->state_gb / o->snapshot_gbs + o->replicas * o->unique_gb / o->network_gbs;
    double beside = o->snapshot_interval * o->step_s * (1 + o->overhead);
    s->step = o->step_s * (1 + o->overhead) + fmax(0, busy - beside) / o->snapshot_interval;
    s->latency = busy;
    s->recover = o->phase_s[OPI_PLAN_RESTORED] > 0 ? 0 : o->state_gb / o->network_gbs;
    for (int i = 0; i < OPI_PLAN_PHASES; i++)
        s->recover += o->phase_s[i];
}

int32_t opi__plan_setup_make(const opi_plan_options *options, opi__plan_setup *out, opi_error *err)
{
    opi__plan_setup s = {.trace_nodes = 0};
    int32_t status = opi__take(&s.o, sizeof s.o, options, "opi_plan_options", err);
    status = status ? status : take_counts(&s.o, err);
    for (size_t i = 0; i < sizeof rules / sizeof *rules && !status; i++)
        status = apply(&s.o, &rules[i], err);
    status = status ? status : take_rest(&s.o, err);
    if (status)
        return status;
    derive(&s);
    s.trace_nodes = s.nodes + (s.o.sweep ? opi__plan_most_spares(&s) : s.o.spares);
    double failures = opi__plan_rate(&s, s.trace_nodes) * s.horizon;
    if (failures > OPI__PLAN_MOST_FAILURES)
        return opi__fail(err, OPI_E_RANGE, -1,
                         "%.3g failures are expected in %.6g days: at most %.3g can be replayed; plan fewer days or "
                         "state longer times between failures", failures, s.o.days, OPI__PLAN_MOST_FAILURES);
    double mtbf = 1 / opi__plan_job_rate(&s);
    const rule interval = {AT(restart_interval_s),
                           fmin(fmax(opi__daly_interval(s.o.checkpoint_stall_s, mtbf), s.o.step_s), 1e9), 1, 1e9,
                           NO_NEVER};
    double stated = s.o.restart_interval_s;
    if (stated != 0) {
        status = apply(&s.o, &interval, err);
        if (status)
            return status;
    } else {
        s.o.restart_interval_s = interval.standard;
    }
    s.saved_interval = s.o.restart_interval_s;
    *out = s;
    return OPI_OK;
}
