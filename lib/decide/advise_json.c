/* SPDX-License-Identifier: Apache-2.0 */
/* The answer as JSON: docs/json.md, "advice". Grows by new keys only; a changed meaning is a new "version". */
#include "base/json.h"
#include "base/status.h"
#include "decide/advice.h"
#include "decide/launch.h"
#include "decide/rank.h"
#include "decide/score.h"
#include "decide/utility.h"

#include <math.h>
#include <string.h>

static const char *const verdicts[] = {"recommended", "abstained", "nothing-feasible"};
static const char *const price_kinds[] = {"not-stated", "stated", "cited-ondemand", "cited-rental"};

static void add_stated(opi__json *o, const char *key, double v)
{
    if (v > 0)
        opi__json_add_number(o, key, v);
    else
        opi__json_add_null(o, key);
}

static void write_request(const opi_advice *a, opi__json *root)
{
    const opi__ask *ask = &a->ask;
    opi__json *r = opi__json_add_object(root, "request");
    opi__json_add_string(r, "llm", ask->llm.name);
    opi__json_add_number(r, "input_len", ask->input_len);
    opi__json_add_number(r, "output_len", ask->output_len);
    add_stated(r, "concurrency", ask->concurrency);
    add_stated(r, "request_rate", ask->request_rate);
    opi__json_add_number(r, "max_context", ask->max_context);
    add_stated(r, "demand_tok_s", ask->demand);
    opi__json_add_bool(r, "demand_from_rate", ask->demand_implied);
    opi__json_add_number(r, "level", ask->level);
    opi__json_add_bool(r, "pipeline", ask->pipeline);
    opi__json *lines = opi__json_add_array(r, "inventory");
    for (size_t i = 0; i < ask->n_lines; i++) {
        const opi__line *l = &ask->lines[i];
        opi__json *o = opi__json_add_object(lines, NULL);
        opi__json_add_string(o, "gpu", l->gpu.name);
        opi__json_add_int(o, "count", l->count);
        opi__json_add_int(o, "per_node", l->per_node);
        opi__json_add_number(o, "price_usd_per_gpu_h", l->price); /* NaN prints as null */
        opi__json_add_string(o, "price", price_kinds[l->price_kind]);
        opi__json_add_number(o, "queue_s", l->queue_s);
    }
    opi__json *slos = opi__json_add_array(r, "slos");
    for (size_t i = 0; i < ask->n_slos; i++) {
        const opi__target_def *t = &opi__targets[ask->slos[i].target];
        opi__json *o = opi__json_add_object(slos, NULL);
        opi__json_add_string(o, "target", t->name);
        opi__json_add_string(o, "must_be", t->higher_is_better ? "at-least" : "at-most");
        opi__json_add_number(o, "limit", ask->slos[i].limit);
        opi__json_add_string(o, "unit", t->unit);
    }
}

static void write_config(const opi__cand *c, opi__json *o)
{
    const opi_config *k = &c->pub.config;
    opi__json_add_string(o, "gpu", c->line->gpu.name);
    opi__json_add_int(o, "inventory_line", c->pub.inventory_index);
    opi__json_add_int(o, "replicas", c->pub.replicas);
    opi__json_add_int(o, "gpus_per_replica", k->n_gpus);
    opi__json_add_int(o, "tp", k->tp);
    opi__json_add_int(o, "pp", k->pp);
    opi__json_add_string(o, "precision", k->precision);
    opi__json_add_string(o, "engine", k->engine);
}

static void write_terms(const opi_terms *t, opi__json *parent)
{
    opi__json *o = opi__json_add_object(parent, "terms_usd_per_h");
    opi__json_add_number(o, "value", t->value);
    opi__json_add_number(o, "node", t->node);
    opi__json_add_number(o, "queue", t->queue);
    opi__json_add_number(o, "restart", t->restart);
    opi__json_add_number(o, "slo", t->slo);
    opi__json_add_number(o, "kv", t->kv);
    opi__json_add_number(o, "power", t->power);
    opi__json_add_number(o, "total", t->total);
}

static void write_memory(const opi_memory *m, opi__json *parent)
{
    opi__json *o = opi__json_add_object(parent, "memory_gib_per_gpu");
    opi__json_add_number(o, "total", m->total_gib);
    opi__json_add_number(o, "usable", m->usable_gib);
    opi__json_add_number(o, "weights", m->weights_gib);
    opi__json_add_number(o, "activation", m->activation_gib);
    opi__json_add_number(o, "runtime", m->runtime_gib);
    opi__json_add_number(o, "kv", m->kv_gib);
    opi__json_add_number(o, "margin", m->margin_gib);
    opi__json_add_number(parent, "kv_tokens", m->kv_tokens);
    opi__json_add_number(parent, "kv_pressure", m->kv_pressure);
}

static void write_prediction(const opi_prediction *p, opi__json *parent)
{
    const opi__target_def *t = &opi__targets[p->target];
    opi__json *o = opi__json_add_object(parent, t->name);
    opi__json_add_string(o, "status", opi_prediction_status_name(p->status));
    opi__json_add_string(o, "unit", t->unit);
    opi__json_add_number(o, "p10", p->p10);
    opi__json_add_number(o, "p50", p->p50);
    opi__json_add_number(o, "p90", p->p90);
    opi__json_add_number(o, "lo", p->lo);
    opi__json_add_number(o, "hi", p->hi);
    opi__json_add_number(o, "ood_distance", p->ood_distance);
    opi_axis_info axis = {.struct_size = sizeof axis};
    if (p->ood_axis >= 0 && opi_axis_at((size_t)p->ood_axis, &axis, NULL) == OPI_OK)
        opi__json_add_string(o, "ood_axis", axis.name);
    else
        opi__json_add_null(o, "ood_axis");
    opi__json_add_int(o, "calibration_rows", p->calibration_rows);
}

static void write_service(const opi_advice *a, const opi__cand *c, opi__json *o)
{
    const opi_config *k = &c->pub.config;
    opi__json *load = opi__json_add_object(o, "load_per_replica");
    opi__json_add_string(load, "kind", k->load_kind);
    add_stated(load, "concurrency", k->concurrency);
    add_stated(load, "request_rate", k->request_rate);
    opi__json_add_number(o, "out_tok_s", c->pub.out_tok_s);
    opi__json_add_bool(o, "meets_demand", c->pub.meets_demand);
    opi__json_add_bool(o, "meets_slo", c->pub.meets_slo);
    opi__json_add_number(o, "slo_violation", c->pub.slo_violation);
    opi__json *slos = opi__json_add_array(o, "slos");
    for (size_t i = 0; i < a->ask.n_slos; i++) {
        opi__json *s = opi__json_add_object(slos, NULL);
        const size_t target = a->ask.slos[i].target;
        opi__json_add_string(s, "target", opi__targets[target].name);
        opi__json_add_number(s, "violation", c->violation[i]);
        opi__json_add_bool(s, "calibrated", c->pred[target].status != OPI_P_UNCALIBRATED);
    }
    opi_prior prior = {.struct_size = sizeof prior};
    opi__launch_prior(c->line->gpu.name, k->n_gpus, &prior);
    opi__json *launch = opi__json_add_object(o, "launch_success");
    opi__json_add_number(launch, "mean", c->pub.launch_success);
    opi__json_add_number(launch, "lo", c->pub.launch_lo);
    opi__json_add_number(launch, "hi", c->pub.launch_hi);
    opi__json_add_bool(launch, "serving_rows", prior.serving_rows);
    opi__json_add_string(launch, "basis", prior.basis);
}

static void write_support(const opi_advice *a, size_t rank, opi__json *o)
{
    for (size_t i = 0; i < a->n_support; i++) {
        if (a->support_rank[i] != rank)
            continue;
        opi__json *s = opi__json_add_object(o, "support");
        opi__json_add_int(s, "cells", a->support[i].cells);
        opi__json_add_number(s, "nearest_distance", a->support[i].nearest_distance);
        opi__json_add_string(s, "nearest", a->support[i].nearest);
        return;
    }
    opi__json_add_null(o, "support");
}

static void write_feasible(const opi_advice *a, size_t rank, opi__json *list)
{
    const opi__cand *c = opi__ranked(a, rank);
    opi__json *o = opi__json_add_object(list, NULL);
    opi__json_add_int(o, "rank", (int64_t)rank);
    write_config(c, o);
    opi__json_add_string(o, "verdict", opi_prediction_status_name(c->pub.verdict));
    opi__json_add_bool(o, "recommendable", opi__recommendable(c));
    opi__json_add_string(o, "reason", *c->pub.reason ? c->pub.reason : NULL);
    write_service(a, c, o);
    opi__json_add_number(o, "score", c->pub.score);
    opi__json_add_string(o, "score_unit", opi__score_unit_name(opi__score_unit(&a->ask, c)));
    opi__json_add_number(o, "usd_per_mtok", c->pub.usd_per_mtok);
    opi__json_add_bool(o, "price_stated", c->pub.price_stated);
    write_terms(&c->pub.terms, o);
    write_memory(&c->pub.memory, o);
    write_support(a, rank, o);
    opi__json *predictions = opi__json_add_object(o, "predictions_per_replica");
    for (size_t t = 0; t < OPI__T_COUNT; t++)
        write_prediction(&c->pred[t], predictions);
}

/* Grouped by reason code, in rank order. */
static void write_infeasible(const opi_advice *a, opi__json *root)
{
    opi__json *groups = opi__json_add_array(root, "infeasible");
    size_t r = a->n_feasible;
    while (r < a->cands.n) {
        const int32_t code = opi__ranked(a, r)->pub.infeasible;
        opi__json *g = opi__json_add_object(groups, NULL);
        opi__json_add_string(g, "code", opi_reason_name(code));
        opi__json *list = opi__json_add_array(g, "candidates");
        for (; r < a->cands.n && opi__ranked(a, r)->pub.infeasible == code; r++) {
            const opi__cand *c = opi__ranked(a, r);
            opi__json *o = opi__json_add_object(list, NULL);
            opi__json_add_int(o, "rank", (int64_t)r);
            write_config(c, o);
            opi__json_add_string(o, "reason", c->pub.reason);
            if (code == OPI_R_MEMORY)
                opi__json_add_number(o, "margin_gib", c->pub.memory.margin_gib);
        }
    }
}

int32_t opi_advice_json(const opi_advice *a, opi_text **out, opi_error *err)
{
    if (!a || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_advice_json: %s is NULL", a ? "out" : "the advice");
    opi__json *root = opi__json_new_object();
    opi__json_add_string(root, "schema", "omnipilot.advice");
    opi__json_add_int(root, "version", 1);
    opi__json_add_string(root, "library", opi_version());
    opi__json_add_string(root, "verdict", verdicts[a->verdict]);
    if (a->winner == SIZE_MAX)
        opi__json_add_null(root, "winner");
    else
        opi__json_add_int(root, "winner", (int64_t)a->winner);
    opi__json_add_string(root, "sentence", a->sentence);
    opi__json_add_string(root, "probe", *a->probe ? a->probe : NULL);
    opi__json *notes = opi__json_add_array(root, "notes");
    for (size_t i = 0; i < a->n_notes; i++) {
        opi__json *n = opi__json_add_object(notes, NULL);
        opi__json_add_string(n, "code", a->notes[i].code);
        opi__json_add_string(n, "text", a->notes[i].text);
    }
    write_request(a, root);
    opi__utility_json(opi__json_add_object(root, "utility"), &a->ask.utility);
    opi__json *list = opi__json_add_array(root, "candidates");
    for (size_t r = 0; r < a->n_feasible; r++)
        write_feasible(a, r, list);
    write_infeasible(a, root);
    return opi__json_text(a->ctx, root, out, err);
}
