/* SPDX-License-Identifier: Apache-2.0 */
/* advise --explain: everything behind the candidates shown. */
#include "advise_view.h"
#include "config.h"
#include "memory_view.h"
#include "out.h"
#include "predict.h"

#include <math.h>
#include <stdlib.h>

static void term(const char *name, double v, const char *note)
{
    char num[OUT_NUM];
    snprintf(num, sizeof num, isfinite(v) ? "%+.3f" : "-", v);
    out_printf("    %-34s %12s $/h%s%s\n", name, num, *note ? "  " : "", note);
}

/* As the library ranks: money an hour, money a token, or speed where no price is known. */
static const char *score_unit(const advise_view *v, const opi_candidate *c)
{
    const opi_advise_request *r = v->request;
    if (v->utility->value_usd_per_mtok > 0) {
        return "$/h";
    }
    if (!c->price_stated) {
        return "tokens/s per GPU (no price)";
    }
    return r->demand_tok_s > 0 || r->request_rate > 0 ? "$/h" : "$/Mtok";
}

static void terms(const advise_view *v, const opi_candidate *c)
{
    const opi_terms *t = &c->terms;
    char note[120], num[OUT_NUM];
    out_puts("  utility, expected\n");
    snprintf(note, sizeof note, "at $%s per million output tokens", out_human(num, v->utility->value_usd_per_mtok, 4));
    term("value of the output", t->value, v->utility->value_usd_per_mtok > 0 ? note : "no --value given");
    term("nodes", t->node, c->price_stated ? "" : "price not stated: no cost counted");
    term("queue", t->queue, "");
    snprintf(note, sizeof note, "launches expected to succeed: %.3f", c->launch_success);
    term("failed launches", t->restart, note);
    snprintf(note, sizeof note, "P(a limit is broken) %.3f", c->slo_violation);
    term("SLO violations", t->slo, v->request->n_slos ? note : "no --slo given");
    snprintf(note, sizeof note, "knee at %.2f of the KV cache", v->utility->kv_knee);
    term("KV-cache saturation", t->kv, note);
    snprintf(note, sizeof note, "at %s $/kWh", out_human(num, v->utility->power_usd_per_kwh, 3));
    term("power", t->power, note);
    term("total", t->total, "");
    out_printf("    %-34s %12.4g %s  risk %.2f\n", "ranked by", c->score, score_unit(v, c), v->utility->risk);
}

static void prior(const opi_candidate *c)
{
    opi_prior p = {.struct_size = sizeof p};
    out_printf("  launch prior: %.3f [%.3f … %.3f], 80 %%, observational\n", c->launch_success, c->launch_lo,
               c->launch_hi);
    if (!opi_prior_launch(c->config.gpu->name, c->config.n_gpus, &p, NULL)) {
        out_puts("    ");
        out_wrap(4, 4, p.basis);
    }
}

static void fact(const char *kind, const char *name, uint32_t flags, const char *source)
{
    char line[400];
    const char *mark = flags & OPI_FACT_VERIFIED   ? "verified"
                       : flags & OPI_FACT_RECALLED ? "recalled, not confirmed"
                                                   : "";
    snprintf(line, sizeof line, "%s %s: %s%s%s", kind, name, mark, *mark && *source ? "; " : "", source);
    out_puts("    ");
    out_wrap(4, 6, line);
}

static void predictions(const advise_view *v, size_t rank, const opi_candidate *c)
{
    static const char *const heads[] = {"target", "median and interval", "unit", "support", ">calibrated on"};
    out_table *t = out_table_new(heads, 5);
    size_t count = opi_target_count(), n = 0, *target = tool_alloc(count, sizeof *target);
    opi_prediction *all = tool_alloc(count, sizeof *all);
    char cell[4 * OUT_NUM];
    int style;
    for (size_t k = 0; k < count; k++) {
        opi_target_info info = {.struct_size = sizeof info};
        opi_prediction p;
        opi_target_at(k, &info, NULL);
        if (!advise_prediction(v, rank, c, k, &p)) {
            continue;
        }
        all[n] = p;
        target[n++] = k;
        out_cell(t, info.title);
        out_cell(t, out_interval(cell, p.p50, p.lo, p.hi));
        out_cell(t, info.unit);
        const char *word = predict_verdict(p.status, &style);
        out_cell_style(t, word, (out_style)style);
        out_cell(t, p.calibration_rows ? out_human(cell, p.calibration_rows, 8) : "-");
    }
    out_table_end(t, 4);
    predict_reasons(v->model, &c->config, all, target, n, 4);
    free(all);
    free(target);
}

static void support(const advise_view *v, const opi_candidate *c)
{
    opi_support s = {.struct_size = sizeof s};
    char line[400];
    size_t target = advise_target("throughput_out_tok_s");
    if (target == SIZE_MAX || opi_predict_support(v->model, &c->config, target, &s, NULL)) {
        return;
    }
    predict_support(line, sizeof line, &s);
    out_puts("  rests on ");
    out_wrap(11, 4, line);
}

static void explain(const advise_view *v, size_t rank)
{
    opi_candidate c = {.struct_size = sizeof c};
    char where[256];
    int style;
    if (opi_advice_candidate(v->advice, rank, &c, NULL)) {
        return;
    }
    predict_verdict(c.verdict, &style);
    out_printf("\n%s#%zu  %s; %d replica%s%s  %s%s%s\n", out_on(OUT_BOLD), rank + 1,
               config_where(where, sizeof where, &c.config), c.replicas, c.replicas == 1 ? "" : "s", out_off(),
               out_on((out_style)style), predict_verdict(c.verdict, NULL), out_off());
    if (*c.reason) {
        out_puts("  ");
        out_wrap(2, 2, c.reason);
    }
    terms(v, &c);
    prior(&c);
    out_puts("  predictions (throughput: all replicas)\n");
    predictions(v, rank, &c);
    support(v, &c);
    out_puts("  memory\n");
    memory_print(&c.config, &c.memory, 4);
    out_puts("  facts\n");
    fact("GPU", c.config.gpu->name, c.config.gpu->flags, c.config.gpu->source);
    fact("LLM", c.config.llm->name, c.config.llm->flags, c.config.llm->source);
}

void advise_explain(const advise_view *v)
{
    size_t shown = v->feasible < v->top ? v->feasible : v->top;
    for (size_t i = 0; i < shown && !out_failed(); i++) {
        explain(v, i);
    }
    if (v->winner != SIZE_MAX && v->winner >= shown) {
        explain(v, v->winner);
    }
}
