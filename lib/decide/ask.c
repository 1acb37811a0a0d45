/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/ask.h"

#include "base/status.h"
#include "base/take.h"
#include "base/text.h"
#include "decide/utility.h"
#include "facts/config.h"
#include "facts/precision.h"
#include "facts/spelling.h"

#include <math.h>
#include <string.h>

#define MOST_TOK_S 1e12
#define MOST_PRICE 1e6
#define MOST_QUEUE_S 1e9
#define MOST_PER_NODE 1024

static int32_t check(const char *what, double v, double lo, double hi, const char *unit, opi_error *err)
{
    if (!(v >= lo && v <= hi))
        return opi__fail(err, OPI_E_RANGE, -1, "%s = %.6g, must be a number from %g to %g%s%s", what, v, lo, hi,
                         *unit ? " " : "", unit);
    return OPI_OK;
}

/* 0 = not stated. */
static int32_t check_optional(const char *what, double v, double lo, double hi, const char *unit, opi_error *err)
{
    return v == 0 ? OPI_OK : check(what, v, lo, hi, unit, err);
}

static int32_t take_llm(const opi_llm *in, opi__ask *out, opi_error *err)
{
    if (!in)
        return opi__fail(err, OPI_E_INVALID, -1, "llm is NULL: name the LLM (opi_llm_find, opi_llm_from_config)");
    const int32_t rc = opi__take(&out->llm, sizeof out->llm, in, "opi_llm", err);
    if (rc)
        return rc;
    out->llm.name[sizeof out->llm.name - 1] = 0;
    out->llm.family[sizeof out->llm.family - 1] = 0;
    out->llm.arch[sizeof out->llm.arch - 1] = 0;
    out->llm.attention[sizeof out->llm.attention - 1] = 0;
    out->llm.quant[sizeof out->llm.quant - 1] = 0;
    if (!(out->llm.params_b > 0) || !(out->llm.params_b < 1e6))
        return opi__fail(err, OPI_E_RANGE, -1, "LLM %s: params_b = %.6g, must be above 0 and below 1e6", out->llm.name,
                         out->llm.params_b);
    return OPI_OK;
}

/* The load: requests in flight, a rate, or only a demand, which is a rate of demand / output requests. */
static int32_t take_load(const opi_advise_request *r, opi__ask *out, opi_error *err)
{
    int32_t rc = check_optional("concurrency", r->concurrency, 1, OPI__MOST_REQUESTS, "requests in flight", err);
    if (!rc)
        rc = check_optional("request_rate", r->request_rate, 1e-9, OPI__MOST_REQUESTS, "requests/s", err);
    if (!rc)
        rc = check_optional("demand_tok_s", r->demand_tok_s, 1e-9, MOST_TOK_S, "tokens/s", err);
    if (rc)
        return rc;
    if (r->concurrency == 0 && r->request_rate == 0 && r->demand_tok_s == 0)
        return opi__fail(err, OPI_E_INVALID, -1, "no load: state concurrency, request_rate or demand_tok_s");
    out->concurrency = r->concurrency;
    out->request_rate = r->request_rate;
    out->demand = r->demand_tok_s;
    out->open_loop = r->concurrency == 0;
    if (out->open_loop && out->request_rate == 0)
        out->request_rate = out->demand / out->output_len;
    if (out->demand == 0 && out->request_rate > 0) {
        out->demand = out->request_rate * out->output_len;
        out->demand_implied = 1;
    }
    return OPI_OK;
}

static int32_t take_lengths(const opi_advise_request *r, opi__ask *out, opi_error *err)
{
    int32_t rc = check("input_len", r->input_len, 1, OPI__MOST_TOKENS, "tokens", err);
    if (!rc)
        rc = check("output_len", r->output_len, 1, OPI__MOST_TOKENS, "tokens", err);
    if (!rc)
        rc = check_optional("max_context", r->max_context, 1, OPI__MOST_TOKENS, "tokens", err);
    if (rc)
        return rc;
    const double need = r->input_len + r->output_len, most = out->llm.max_context;
    if (r->max_context > 0 && r->max_context < need)
        return opi__fail(err, OPI_E_RANGE, -1, "max_context = %g tokens is less than input_len + output_len = %g tokens",
                         r->max_context, need);
    out->input_len = r->input_len;
    out->output_len = r->output_len;
    out->max_context = r->max_context > 0 ? r->max_context : 2 * need;
    /* The doubling is ours, so it gives way to what the LLM can hold; a stated context does not. */
    if (r->max_context == 0 && most > 0)
        out->max_context = fmax(need, fmin(2 * need, most));
    return OPI_OK;
}

static int32_t take_line(const opi_inventory *in, size_t i, opi__line *out, opi_error *err)
{
    opi_inventory v;
    int32_t rc = opi__take(&v, sizeof v, in, "opi_inventory", err);
    if (rc)
        return rc;
    if (!v.gpu)
        return opi__fail(err, OPI_E_INVALID, (int64_t)i, "inventory line %zu: gpu is NULL (opi_gpu_find)", i);
    rc = opi__take(&out->gpu, sizeof out->gpu, v.gpu, "opi_gpu", err);
    if (rc)
        return rc;
    out->gpu.name[sizeof out->gpu.name - 1] = 0;
    out->gpu.arch[sizeof out->gpu.arch - 1] = 0;
    const char *name = out->gpu.name;
    if (v.count < 1 || v.count > OPI__MOST_GPUS)
        return opi__fail(err, OPI_E_RANGE, (int64_t)i, "inventory: %s: %d GPUs, must be 1 to %d", name, (int)v.count,
                         OPI__MOST_GPUS);
    if (v.per_node < 0 || v.per_node > MOST_PER_NODE)
        return opi__fail(err, OPI_E_RANGE, (int64_t)i, "inventory: %s: %d GPUs per node, must be 1 to %d (0 = 8)", name,
                         (int)v.per_node, MOST_PER_NODE);
    if (!(v.price_usd_h >= 0 && v.price_usd_h <= MOST_PRICE))
        return opi__fail(err, OPI_E_RANGE, (int64_t)i,
                         "inventory: %s: price %.6g US dollars per GPU hour, must be 0 (not stated) to %g", name,
                         v.price_usd_h, MOST_PRICE);
    if (!(v.queue_s >= 0 && v.queue_s <= MOST_QUEUE_S))
        return opi__fail(err, OPI_E_RANGE, (int64_t)i, "inventory: %s: queue %.6g seconds, must be 0 to %g", name,
                         v.queue_s, MOST_QUEUE_S);
    out->count = v.count;
    out->per_node = v.per_node ? v.per_node : 8;
    out->price = v.price_usd_h > 0 ? v.price_usd_h : NAN;
    out->price_kind = v.price_usd_h > 0 ? OPI__PRICE_CALLER : OPI__PRICE_NONE;
    out->queue_s = v.queue_s;
    return OPI_OK;
}

/* Lines without a stated price take the table's cited one, of a single kind for the whole inventory: an on-demand price
 * beside a three-year rental would compare contracts, not GPUs. The kind that covers more lines wins. */
static void price_lines(opi__ask *out)
{
    size_t ondemand = 0, rental = 0;
    for (size_t i = 0; i < out->n_lines; i++)
        if (out->lines[i].price_kind == OPI__PRICE_NONE) {
            ondemand += out->lines[i].gpu.price_ondemand_usd_h > 0;
            rental += out->lines[i].gpu.price_rental_usd_h > 0;
        }
    const int use_rental = rental > ondemand;
    for (size_t i = 0; i < out->n_lines; i++) {
        opi__line *l = &out->lines[i];
        const double cited = use_rental ? l->gpu.price_rental_usd_h : l->gpu.price_ondemand_usd_h;
        if (l->price_kind == OPI__PRICE_NONE && cited > 0) {
            l->price = cited;
            l->price_kind = use_rental ? OPI__PRICE_RENTAL : OPI__PRICE_ONDEMAND;
        }
        out->n_priced += l->price_kind != OPI__PRICE_NONE;
    }
}

static int32_t take_inventory(opi__arena *arena, const opi_advise_request *r, opi__ask *out, opi_error *err)
{
    if (!r->inventory || r->n_inventory == 0)
        return opi__fail(err, OPI_E_INVALID, -1, "inventory: no GPUs given");
    if (r->n_inventory > OPI__MOST_LINES)
        return opi__fail(err, OPI_E_RANGE, -1, "inventory: %zu lines, at most %d", r->n_inventory, OPI__MOST_LINES);
    out->lines = opi__arena_alloc(arena, r->n_inventory * sizeof *out->lines);
    if (!out->lines)
        return opi__fail_memory(err, r->n_inventory * sizeof *out->lines);
    /* Lines are struct_size apart: a caller built for another version has another stride. */
    const size_t stride = r->inventory->struct_size;
    if (stride % _Alignof(opi_inventory))
        return opi__fail(err, OPI_E_INVALID, 0, "opi_inventory.struct_size is %zu: set it to sizeof(opi_inventory)",
                         stride);
    for (size_t i = 0; i < r->n_inventory; i++) {
        const opi_inventory *line = (const void *)((const char *)r->inventory + i * stride);
        const int32_t rc = take_line(line, i, &out->lines[i], err);
        if (rc)
            return rc;
        if (line->struct_size != stride)
            return opi__fail(err, OPI_E_INVALID, (int64_t)i, "inventory line %zu: struct_size is %u, line 0 has %u", i,
                             (unsigned)line->struct_size, (unsigned)stride);
    }
    out->n_lines = r->n_inventory;
    price_lines(out);
    return OPI_OK;
}

static int32_t take_names(opi__arena *arena, const char *const *in, size_t n, int engine, const char ***out, size_t *n_out,
                          opi_error *err)
{
    const char *what = engine ? "engine" : "precision";
    if (!in || n == 0)
        return OPI_OK;
    if (n > OPI__MOST_NAMES)
        return opi__fail(err, OPI_E_RANGE, -1, "%zu %ss, at most %d", n, what, OPI__MOST_NAMES);
    const char **list = opi__arena_alloc(arena, n * sizeof *list);
    if (!list)
        return opi__fail_memory(err, n * sizeof *list);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (!in[i] || !*in[i] || strlen(in[i]) > 31)
            return opi__fail(err, OPI_E_INVALID, (int64_t)i, "%s %zu: must be a name of 1 to 31 characters", what, i);
        if (!engine && !opi__precision_find(in[i]))
            return opi__fail(err, OPI_E_UNKNOWN, (int64_t)i,
                             "\"%s\" is not a precision; known: bf16, fp16, fp8, fp4, int8, int4, awq, gptq, fp32", in[i]);
        const char *name = engine ? opi__spell_engine(in[i]) : opi__spell_precision(in[i]);
        char *copy = opi__arena_text(arena, name, strlen(name));
        if (!copy)
            return opi__fail_memory(err, strlen(name) + 1);
        for (char *c = copy; *c; c++)
            *c = opi__lower(*c);
        int repeat = 0;
        for (size_t j = 0; j < kept; j++)
            repeat |= !strcmp(list[j], copy);
        if (!repeat)
            list[kept++] = copy;
    }
    *out = list;
    *n_out = kept;
    return OPI_OK;
}

static int32_t take_slos(opi__arena *arena, const opi_advise_request *r, opi__ask *out, opi_error *err)
{
    if (r->n_slos == 0)
        return OPI_OK;
    if (!r->slos)
        return opi__fail(err, OPI_E_INVALID, -1, "slos is NULL, n_slos is %zu", r->n_slos);
    if (r->n_slos > OPI__MOST_SLOS)
        return opi__fail(err, OPI_E_RANGE, -1, "%zu SLOs, at most %d", r->n_slos, OPI__MOST_SLOS);
    out->slos = opi__arena_alloc(arena, r->n_slos * sizeof *out->slos);
    if (!out->slos)
        return opi__fail_memory(err, r->n_slos * sizeof *out->slos);
    for (size_t i = 0; i < r->n_slos; i++) {
        opi_target_info target = {.struct_size = sizeof target};
        int32_t rc = opi_target_at(r->slos[i].target, &target, err);
        if (rc)
            return rc;
        if (!(r->slos[i].limit > 0) || !(r->slos[i].limit <= 1e12))
            return opi__fail(err, OPI_E_RANGE, (int64_t)i, "SLO %s: limit %.6g %s, must be above 0 and at most 1e12",
                             target.alias, r->slos[i].limit, target.unit);
        out->slos[i] = r->slos[i];
    }
    out->n_slos = r->n_slos;
    return OPI_OK;
}

int32_t opi__ask_take(opi__arena *arena, const opi_advise_request *request, opi__ask *out, opi_error *err)
{
    opi_advise_request r;
    opi__ask ask;
    memset(&ask, 0, sizeof ask);
    int32_t rc = opi__take(&r, sizeof r, request, "opi_advise_request", err);
    if (!rc)
        rc = take_llm(r.llm, &ask, err);
    if (!rc)
        rc = take_lengths(&r, &ask, err);
    if (!rc)
        rc = take_load(&r, &ask, err);
    if (!rc)
        rc = check_optional("level", r.level, 0.5, 0.99, "", err);
    if (!rc)
        rc = take_inventory(arena, &r, &ask, err);
    if (!rc)
        rc = take_names(arena, r.precisions, r.n_precisions, 0, &ask.precisions, &ask.n_precisions, err);
    if (!rc)
        rc = take_names(arena, r.engines, r.n_engines, 1, &ask.engines, &ask.n_engines, err);
    if (!rc)
        rc = take_slos(arena, &r, &ask, err);
    opi_utility_default(&ask.utility);
    if (!rc && r.utility)
        rc = opi__take(&ask.utility, sizeof ask.utility, r.utility, "opi_utility", err);
    if (!rc)
        rc = opi__utility_check(&ask.utility, err);
    if (rc)
        return rc;
    ask.level = r.level > 0 ? r.level : 0.8;
    ask.pipeline = r.pipeline != 0;
    *out = ask;
    return OPI_OK;
}
