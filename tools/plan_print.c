/* SPDX-License-Identifier: Apache-2.0 */
/* plan-training: what an operator reads. */
#include "out.h"
#include "plan_view.h"
#include "tool.h"

#include <math.h>
#include <string.h>

/* A duration in the unit people would use. */
static const char *duration(char *buf, double s)
{
    double unit = s < 1 ? 1e-3 : s < 120 ? 1 : s < 7200 ? 60 : s < 48 * 3600 ? 3600 : 86400;
    const char *name = s < 1 ? "ms" : s < 120 ? "s" : s < 7200 ? "min" : s < 48 * 3600 ? "h" : "days";
    snprintf(buf, 2 * OUT_NUM, "%.3g %s", s / unit, name);
    return buf;
}

static const char *count(char *buf, double v)
{
    if (v >= 999.5) {
        return out_human(buf, rint(v), 6);
    }
    snprintf(buf, OUT_NUM, "%.3g", v);
    return buf;
}

/* Shares of time: enough digits to tell what is left to 100 %. */
static const char *percent(char *buf, double share)
{
    double p = 100 * share;
    if (p > 0 && p < 0.005) {
        return strcpy(buf, "< 0.01 %");
    }
    snprintf(buf, OUT_NUM, "%.2f %%", p > -0.005 && p < 0 ? 0 : p);
    return buf;
}

static void line(out_table *t, const char *name, const char *swap, const char *restart)
{
    out_cell(t, name);
    out_cell(t, swap);
    out_cell(t, restart);
}

static void line_share(out_table *t, const char *name, double swap, double restart)
{
    char a[OUT_NUM], b[OUT_NUM];
    line(t, name, percent(a, swap), percent(b, restart));
}

static void line_count(out_table *t, const char *name, double swap, double restart)
{
    char a[OUT_NUM], b[OUT_NUM];
    line(t, name, isnan(swap) ? "" : count(a, swap), isnan(restart) ? "" : count(b, restart));
}

static void print_question(const opi_plan_options *o, const opi_plan_closed *c, const opi_plan_measured *m)
{
    static const char *const arrivals[] = {"Exponential", "Weibull", "Hyperexponential", "Clustered"};
    static const char *const policies[] = {"the job stops and starts again", "the data-parallel width shrinks",
                                           "the job waits"};
    char a[2 * OUT_NUM], b[2 * OUT_NUM], d[2 * OUT_NUM], text[640];
    int nodes = (o->gpus + o->per_node - 1) / o->per_node;
    out_printf("%sTraining on %s GPUs%s", out_on(OUT_BOLD), out_human(a, o->gpus, 6), out_off());
    out_printf(": %s nodes of %d, racks of %d, DP %d x TP %d x PP %d, %d spare node%s\n", out_human(b, nodes, 6),
               o->per_node, o->nodes_per_rack, o->gpus / (o->tp * o->pp), o->tp, o->pp, o->spares,
               o->spares == 1 ? "" : "s");
    snprintf(text, sizeof text,
             "%d replays of %s, seed %llu. %s failures, one in %s reaches the job; a node is back after %s on average. "
             "When spares run out, %s.",
             o->replays, duration(a, o->days * 86400), (unsigned long long)o->seed, arrivals[o->arrivals],
             duration(b, c->job_mtbf_s), duration(d, o->node_repair_h * 3600), policies[o->policy]);
    out_wrap(0, 0, text);
    snprintf(text, sizeof text,
             "A step takes %s; a snapshot every %d step%s; %.3g GB of state a process, %.3g GB of it copied to %d peer%s. "
             "%s %s.",
             duration(a, o->step_s), o->snapshot_interval, o->snapshot_interval == 1 ? "" : "s", o->state_gb, o->unique_gb,
             o->replicas, o->replicas == 1 ? "" : "s",
             m ? "Recoveries as measured in the run:" : "From a failure until every copy exists again:",
             m ? "" : duration(b, c->window_s));
    if (m) {
        double sum = 0;
        for (int i = 0; i < OPI_PLAN_PHASES; i++) {
            sum += m->phase_s[i];
        }
        snprintf(text + strlen(text) - 2, sizeof text - strlen(text) + 2, "%s, the median of %llu.", duration(b, sum),
                 (unsigned long long)m->recoveries);
    }
    out_wrap(0, 0, text);
    out_puts("\n");
}

static void print_results(const opi_plan_options *o, const opi_plan_result *s, const opi_plan_result *r,
                          const opi_plan_closed *c)
{
    static const char *const heads[] = {"", ">hot swap", ">restart from checkpoints"};
    out_table *t = out_table_new(heads, 3);
    char a[4 * OUT_NUM], b[4 * OUT_NUM];
    double none = NAN;
    line_share(t, "goodput, mean", s->goodput, r->goodput);
    line_share(t, "  its standard error", s->goodput_se, r->goodput_se);
    line_share(t, "  median of the replays", s->goodput_median, r->goodput_median);
    line_share(t, "  worst replay", s->goodput_low, r->goodput_low);
    if (c->applies) {
        line_share(t, "  by formula", c->swap_goodput, c->restart_goodput);
    }
    line_share(t, "time: steps computed again", s->redone, r->redone);
    line_share(t, "  waiting for snapshots, checkpoints", s->stalled, r->stalled);
    line_share(t, "  recovering by swap", s->recovering, r->recovering);
    line_share(t, "  starting the job again", s->restarting, r->restarting);
    line_share(t, "  waiting for nodes", s->waiting, r->waiting);
    if (o->policy == OPI_PLAN_SHRINK) {
        line_share(t, "  smaller data-parallel width", s->narrow, r->narrow);
    }
    line_count(t, "in one replay: failures of working GPUs", s->failures, r->failures);
    line_count(t, "  recoveries by swap", s->swaps, none);
    line_count(t, "  job starts", s->restarts, r->restarts);
    line_count(t, "  steps lost", s->steps_redone, r->steps_redone);
    line_count(t, "  times spares ran out: stops, smaller", s->stops + s->shrinks, r->shrinks);
    line_count(t, "  falls back to a checkpoint", s->fallbacks, none);
    line_count(t, "nodes in repair, mean", s->nodes_down, r->nodes_down);
    line(t, "a persistent checkpoint every", duration(a, s->checkpoint_interval_s), duration(b, r->checkpoint_interval_s));
    out_table_end(t, 0);
}

static void print_summary(const opi_plan_options *o, const opi_plan_result *s, const opi_plan_result *r,
                          const opi_plan_closed *c)
{
    char a[2 * OUT_NUM], b[2 * OUT_NUM], text[512];
    double won = (s->goodput - r->goodput) * o->days * 86400;
    out_puts("\n");
    snprintf(text, sizeof text, "Hot swap %s %s of work in %s. ", won >= 0 ? "saves" : "loses", duration(a, fabs(won)),
             duration(b, o->days * 86400));
    out_wrap(0, 0, text);
    snprintf(text, sizeof text,
             "A slot and its copies die together, so that the run falls back to its persistent checkpoint: in %.3g %% of "
             "the replays. ",
             100 * s->fallback_share);
    if (o->arrivals == OPI_PLAN_EXPONENTIAL) {
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "By formula%s: %.2g times in a replay, a probability of %.2g %%.",
                 c->applies ? "" : ", if spares never ran out", c->fallbacks, 100 * c->fallback_probability);
    } else {
        snprintf(text + strlen(text), sizeof text - strlen(text), "The formula is for independent failures only.");
    }
    out_wrap(0, 0, text);
}

static void print_spares(const opi_plan *plan, const opi_plan_options *o)
{
    static const char *const heads[] = {">spare nodes", ">goodput",  ">error",         ">waiting",
                                        ">fallbacks",   ">gained per spare", ">net nodes", ""};
    out_table *t = out_table_new(heads, 8);
    int32_t worth = opi_plan_worth(plan);
    double after = NAN;
    char num[OUT_NUM], text[400];
    for (size_t i = 0; i < opi_plan_spares_count(plan); i++) {
        opi_plan_spares l = {.struct_size = sizeof l};
        if (opi_plan_spares_at(plan, i, &l, NULL)) {
            continue;
        }
        after = l.spares > worth && isnan(after) ? l.gained : after;
        out_cellf(t, "%d", l.spares);
        out_cell(t, percent(num, l.goodput));
        out_cell(t, percent(num, l.goodput_se));
        out_cell(t, percent(num, l.waiting));
        out_cell(t, count(num, l.fallbacks));
        out_cellf(t, isnan(l.gained) ? "" : "%.2f", l.gained);
        out_cellf(t, "%.1f", l.net);
        out_cell(t, l.spares == worth ? "<- worth paying for" : l.spares == o->spares ? "<- as asked" : "");
    }
    out_puts("\n");
    out_table_end(t, 0);
    snprintf(text, sizeof text,
             "%d spare node%s (%.2g %% of the nodes) %s worth paying for: an idle node costs %.3g of a working one, and "
             "the next ones gain %.2g each. Net nodes: nodes x goodput, less the cost of the idle ones.",
             worth, worth == 1 ? "" : "s", 100.0 * worth * o->per_node / o->gpus, worth == 1 ? "is" : "are", o->idle_cost,
             isnan(after) || after < 0 ? 0 : after);
    out_wrap(0, 0, text);
}

int plan_print(const opi_plan *plan, const opi_plan_measured *measured)
{
    opi_plan_options o = {.struct_size = sizeof o};
    opi_plan_result s = {.struct_size = sizeof s}, r = {.struct_size = sizeof r};
    opi_plan_closed c = {.struct_size = sizeof c};
    opi_error err;
    if (opi_plan_get_options(plan, &o, &err) || opi_plan_get_result(plan, OPI_PLAN_SWAP, &s, &err) ||
        opi_plan_get_result(plan, OPI_PLAN_RESTART, &r, &err) || opi_plan_get_closed(plan, &c, &err)) {
        return tool_error(&err, NULL);
    }
    print_question(&o, &c, measured);
    print_results(&o, &s, &r, &c);
    print_summary(&o, &s, &r, &c);
    if (opi_plan_spares_count(plan)) {
        print_spares(plan, &o);
    }
    return X_OK;
}

int plan_print_checks(opi_ctx *ctx, uint64_t seed, int json)
{
    static const char *const heads[] = {"simulator against formula", ">simulated", ">formula", ">tolerance", ""};
    out_table *t = json ? NULL : out_table_new(heads, 5);
    int failed = 0;
    if (json) {
        json_begin_object(NULL);
        json_text("schema", "omnipilot.plan-check");
        json_int("version", 1);
        json_begin_array("checks");
    }
    for (size_t i = 0; i < opi_plan_check_count(); i++) {
        opi_plan_check c = {.struct_size = sizeof c};
        opi_error err;
        if (opi_plan_check_at(ctx, i, seed, &c, &err)) {
            return tool_error(&err, NULL);
        }
        failed += !c.passed;
        if (json) {
            json_begin_object(NULL);
            json_text("name", c.name);
            json_number("simulated", c.simulated);
            json_number("formula", c.formula);
            json_number("tolerance", c.tolerance);
            json_bool("passed", c.passed);
            json_end_object();
        } else {
            out_cell(t, c.name);
            out_cellf(t, "%.5g", c.simulated);
            out_cellf(t, "%.5g", c.formula);
            out_cellf(t, "%.2g", c.tolerance);
            out_cell_style(t, c.passed ? "agrees" : "DIFFERS", c.passed ? OUT_GOOD : OUT_BAD);
        }
    }
    if (json) {
        json_end_array();
        json_end_object();
    } else {
        out_table_end(t, 0);
    }
    return failed ? tool_fail(X_FAIL, "%d of the checks do not agree with their formula", failed) : X_OK;
}
