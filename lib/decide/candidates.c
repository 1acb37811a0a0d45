/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/candidates.h"

#include "base/status.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

/* Engines tried when the request names none: those with measurements of servers under load. */
static const char *const default_engines[] = {"vllm", "sglang", "tensorrt-llm"};

int32_t opi__cands_push(opi__cands *list, const opi__cand *c, opi_error *err)
{
    if (list->n >= OPI__MOST_CANDIDATES)
        return opi__fail(err, OPI_E_RANGE, -1, "more than %d candidates: ask about fewer GPUs, precisions or engines",
                         OPI__MOST_CANDIDATES);
    if (list->n == list->cap) {
        const size_t cap = list->cap ? 2 * list->cap : 64;
        opi__cand *v = opi__resize(list->ctx, list->v, cap, sizeof *v);
        if (!v)
            return opi__fail_memory(err, cap * sizeof *v);
        list->v = v;
        list->cap = cap;
    }
    list->v[list->n] = *c;
    list->v[list->n].order = (uint32_t)list->n;
    list->n++;
    return OPI_OK;
}

void opi__cands_free(opi__cands *list)
{
    opi__free(list->ctx, list->v);
    *list = (opi__cands){.ctx = list->ctx};
}

static int refuse(opi__cand *c, int32_t code)
{
    c->pub.infeasible = code;
    c->pub.verdict = OPI_P_INFEASIBLE;
    return 0;
}

/* What no engine, precision or degree changes. */
static int check_line(const opi__ask *ask, opi__cand *c)
{
    const opi_llm *m = &ask->llm;
    const double need = ask->input_len + ask->output_len;
    char *why = c->pub.reason;
    const size_t cap = sizeof c->pub.reason;
    if (m->max_context > 0 && need > m->max_context) {
        opi__format(why, cap, "input + output = %g tokens, %s holds %d", need, m->name, (int)m->max_context);
        return refuse(c, OPI_R_CONTEXT);
    }
    if (m->max_context > 0 && ask->max_context > m->max_context) {
        opi__format(why, cap, "a context of %g tokens, %s holds %d", ask->max_context, m->name, (int)m->max_context);
        return refuse(c, OPI_R_CONTEXT);
    }
    const opi_gpu *g = &c->line->gpu;
    const char *missing = !(g->mem_gb > 0) ? "memory" : !(g->mem_bw_gbs > 0) ? "memory bandwidth" : NULL;
    if (!missing && !(g->fp16_tflops > 0))
        missing = "16-bit FLOP/s";
    if (missing) {
        opi__format(why, cap, "the %s of %s is not known", missing, g->name);
        return refuse(c, OPI_R_FACTS);
    }
    return 1;
}

static int check_degrees(const opi__ask *ask, opi__cand *c)
{
    const opi_config *k = &c->pub.config;
    char *why = c->pub.reason;
    const size_t cap = sizeof c->pub.reason;
    c->max_replicas = opi__max_replicas(c->line->count, c->line->per_node, k->tp, k->pp);
    if (c->max_replicas < 1) {
        opi__format(why, cap, "needs %d x %s (%d in a node), the inventory has %d in nodes of %d", (int)k->n_gpus,
                    c->line->gpu.name, (int)k->tp, (int)c->line->count, (int)c->line->per_node);
        return refuse(c, OPI_R_INVENTORY);
    }
    if (ask->llm.n_heads > 0 && ask->llm.n_heads % k->tp != 0) {
        opi__format(why, cap, "%d attention heads do not divide over TP %d", (int)ask->llm.n_heads, (int)k->tp);
        return refuse(c, OPI_R_DIVISIBILITY);
    }
    return 1;
}

static int check_memory(opi__cand *c)
{
    opi_error why = {0};
    opi_memory *m = &c->pub.memory;
    *m = (opi_memory){.struct_size = sizeof *m};
    if (opi_memory_fit(&c->pub.config, m, &why)) {
        opi__copy_text(c->pub.reason, sizeof c->pub.reason, why.message);
        return refuse(c, OPI_R_FACTS);
    }
    if (m->fits)
        return 1;
    if (m->margin_gib < 0) {
        opi__format(c->pub.reason, sizeof c->pub.reason,
                    "%.4g GiB a GPU missing: weights %.4g + activation %.3g + runtime %.3g + a request's KV %.3g "
                    "of %.4g usable",
                    -m->margin_gib, m->weights_gib, m->activation_gib, m->runtime_gib,
                    m->kv_needed_tokens * m->kv_bytes_per_token / 1073741824.0, m->usable_gib);
        return refuse(c, OPI_R_MEMORY);
    }
    opi__copy_text(c->pub.reason, sizeof c->pub.reason, m->limit);
    return refuse(c, OPI_R_DIVISIBILITY);
}

/* One (line, TP, PP, precision): a candidate an engine, or a single refused one. */
static int32_t add_engines(const opi__ask *ask, opi__cand base, opi__cands *out, opi_error *err)
{
    const char *const *engines = ask->n_engines ? ask->engines : default_engines;
    const size_t n = ask->n_engines ? ask->n_engines : sizeof default_engines / sizeof *default_engines;
    char why[200];
    if (!opi__precision_supported(&base.line->gpu, &ask->llm, base.pub.config.precision, base.pub.reason,
                                  sizeof base.pub.reason))
        refuse(&base, OPI_R_PRECISION);
    else if (check_degrees(ask, &base))
        check_memory(&base);
    if (base.pub.infeasible)
        return opi__cands_push(out, &base, err);
    for (size_t i = 0; i < n; i++) {
        opi__cand c = base;
        c.pub.config.engine = engines[i];
        if (!opi__engine_supported(&base.line->gpu, engines[i], why, sizeof why)) {
            if (!ask->n_engines)
                continue; /* nobody asked for it */
            opi__copy_text(c.pub.reason, sizeof c.pub.reason, why);
            refuse(&c, OPI_R_ENGINE);
        }
        const int32_t rc = opi__cands_push(out, &c, err);
        if (rc)
            return rc;
    }
    return OPI_OK;
}

static int32_t add_precisions(const opi__ask *ask, opi__cand base, opi__cands *out, opi_error *err)
{
    const char *defaults[4];
    const char *const *names = ask->n_precisions ? ask->precisions : defaults;
    const size_t n = ask->n_precisions ? ask->n_precisions : opi__default_precisions(&base.line->gpu, &ask->llm, defaults);
    for (size_t i = 0; i < n; i++) {
        base.pub.config.precision = names[i];
        const int32_t rc = add_engines(ask, base, out, err);
        if (rc)
            return rc;
    }
    return OPI_OK;
}

/* Degrees worth trying: powers of two, and what divides the heads, up to a node. */
static int is_degree(const opi__ask *ask, int32_t tp)
{
    return (tp & (tp - 1)) == 0 || (ask->llm.n_heads > 0 && ask->llm.n_heads % tp == 0);
}

static int32_t add_line(const opi__ask *ask, size_t i, opi__cands *out, opi_error *err)
{
    const opi__line *line = &ask->lines[i];
    const int32_t most_pp = ask->pipeline ? 8 : 1;
    opi__cand base;
    memset(&base, 0, sizeof base);
    base.line = line;
    base.sustained = 1;
    base.pub = (opi_candidate){.struct_size = sizeof base.pub, .replicas = 1, .inventory_index = (int32_t)i,
                               .price_stated = line->price_kind != OPI__PRICE_NONE, .usd_per_mtok = NAN, .score = NAN,
                               .slo_violation = NAN, .out_tok_s = NAN};
    base.pub.config = (opi_config){.struct_size = sizeof base.pub.config, .llm = &ask->llm, .gpu = &line->gpu, .dp = 1,
                                   .input_len = ask->input_len, .output_len = ask->output_len,
                                   .max_context = ask->max_context, .load_kind = "concurrency"};
    if (!check_line(ask, &base))
        return opi__cands_push(out, &base, err);
    for (int32_t tp = 1; tp <= line->per_node; tp++) {
        if (!is_degree(ask, tp))
            continue;
        for (int32_t pp = 1; pp <= most_pp; pp *= 2) {
            base.pub.config.tp = tp;
            base.pub.config.pp = pp;
            base.pub.config.n_gpus = tp * pp;
            const int32_t rc = add_precisions(ask, base, out, err);
            if (rc)
                return rc;
        }
    }
    return OPI_OK;
}

int32_t opi__enumerate(const opi__ask *ask, opi__cands *out, opi_error *err)
{
    for (size_t i = 0; i < ask->n_lines; i++) {
        const int32_t rc = add_line(ask, i, out, err);
        if (rc)
            return rc;
    }
    return OPI_OK;
}
