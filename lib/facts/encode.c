/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/encode.h"
#include "base/text.h"
#include "facts/precision.h"
#include "facts/spelling.h"
#include <math.h>
#include <string.h>

/* One line per numeric feature: name, then its value from the configuration c, LLM m, GPU g and physics p. */
/* clang-format off */
#define FEATURES(F)                                                                                              \
    F("log params", log(p.params))                                                                               \
    F("log active params", log(p.active))                                                                        \
    F("log input", logs(c->input_len))                                                                           \
    F("log output", logs(c->output_len))                                                                         \
    F("log concurrency", logs(c->concurrency))                                                                   \
    F("log rate", logs(c->request_rate))                                                                         \
    F("log batch", log(p.batch))                                                                                 \
    F("log running", log(p.running))                                                                             \
    F("log KV bytes per token", log(p.kv_token_bytes))                                                           \
    F("log KV share", log(p.kv_bytes / (p.memory * p.replica_gpus)))                                             \
    F("log weight share", log(p.weight_bytes / (p.memory * p.replica_gpus)))                                     \
    F("log KV pressure", log(p.kv_pressure))                                                                     \
    F("log bandwidth", log(p.bandwidth))                                                                         \
    F("log FLOP/s", log(p.flops))                                                                                \
    F("log link", log(p.link))                                                                                   \
    F("log TDP", logs(g->tdp_w))                                                                                 \
    F("memory", g->mem_gb)                                                                                       \
    F("year", g->year > 0 ? g->year : NAN)                                                                       \
    F("log tokens/s bound", log(p.out_tok_s))                                                                    \
    F("log memory time", log(p.mem_s))                                                                           \
    F("log FLOP time", log(p.flop_s))                                                                            \
    F("log step time", log(p.step_s))                                                                            \
    F("link share", p.link_s / (p.link_s + p.step_s))                                                            \
    F("log prefill time", log(p.prefill_s))                                                                      \
    F("log prefill share", log(p.prefill_s * p.batch / (p.step_s * p.output)))                                   \
    F("log KV over weight traffic", log(p.kv_bytes / p.weight_bytes))                                            \
    F("active share", p.active / p.params)                                                                       \
    F("weight bits", c->weight_bits > 0 || c->precision ? p.bits : NAN)                                          \
    F("KV bits", c->kv_bits > 0 ? c->kv_bits : NAN)                                                              \
    F("GPUs", p.gpus)                                                                                            \
    F("TP", c->tp > 0 ? c->tp : NAN)                                                                             \
    F("PP", c->pp > 0 || c->tp > 0 ? fmax(c->pp, 1) : NAN)                                                       \
    F("EP", c->ep > 0 ? c->ep : NAN)                                                                             \
    F("DP", c->dp > 0 || c->tp > 0 ? fmax(c->dp, 1) : NAN)                                                       \
    F("layers", whole(m->n_layers))                                                                              \
    F("hidden size", whole(m->hidden_size))                                                                      \
    F("heads", whole(m->n_heads))                                                                                \
    F("KV heads", whole(m->n_kv_heads))                                                                          \
    F("head dimension", whole(m->head_dim))                                                                      \
    F("vocabulary", whole(m->vocab_size))                                                                        \
    F("MoE", m->is_moe)                                                                                          \
    F("experts", whole(m->n_experts))                                                                            \
    F("experts per token", whole(m->experts_per_token))                                                          \
    F("engine version", version(c->engine_version))                                                              \
    F("free memory share", 1 - p.weight_bytes / (p.memory * p.replica_gpus * .9))                                \
    F("log params per GPU", log(p.params / p.replica_gpus))                                                      \
    F("log input over output", logs(c->input_len) - logs(c->output_len))                                         \
    F("log context", log(p.input + p.output))
/* clang-format on */

#define NAME(text, value) text,
const char *const opi__number_names[OPI__NUMBERS] = {FEATURES(NAME)};

static double logs(double v)
{
    return v > 0 ? log(v) : NAN;
}
static double whole(int32_t v)
{
    return v > 0 ? v : NAN;
}

/* "0.11.2" -> 1102, "2026-06-02" -> 2026 …: one number that grows with the release; NaN without a digit. */
static double version(const char *s)
{
    double v = 0, unit = 10000;
    int parts = 0;
    if (!s)
        return NAN;
    while (*s && (*s < '0' || *s > '9'))
        s++;
    while (*s >= '0' && *s <= '9' && parts < 3) {
        double n = 0;
        while (*s >= '0' && *s <= '9')
            n = n < 1e6 ? n * 10 + (*s++ - '0') : (s++, n);
        v += n * unit;
        unit /= 100;
        parts++;
        if (*s != '.' || parts == 3)
            break;
        s++;
    }
    return parts ? v : NAN;
}

static const char *text(const char *s)
{
    return s ? s : "";
}

static const char *shape_of(const opi_llm *m, char *buf, size_t size)
{
    if (m->n_layers <= 0 || m->hidden_size <= 0)
        return m->name;
    opi__format(buf, size, "%s %dx%d%s", m->family, (int)m->n_layers, (int)m->hidden_size, m->is_moe ? " moe" : "");
    return buf;
}

/* Requests in flight without a word on the load are a server's closed loop, a rate is an open one. */
static const char *load_of(const opi_config *c)
{
    if (c->load_kind && *c->load_kind)
        return opi__spell_load(c->load_kind);
    return c->request_rate > 0 ? "rate" : c->concurrency > 0 ? "concurrency" : "";
}

static void categories(const opi_config *c, opi__encoded *e)
{
    const char **out = e->category;
    const opi__precision *format = opi__precision_find(c->precision);
    out[OPI__C_GPU] = c->gpu->name;
    out[OPI__C_PRECISION] = text(opi__spell_precision(c->precision));
    out[OPI__C_ENGINE] = text(opi__spell_engine(c->engine));
    out[OPI__C_FAMILY] = c->llm->family;
    out[OPI__C_LOAD] = load_of(c);
    out[OPI__C_ATTENTION] = c->llm->attention;
    out[OPI__C_ARCH] = c->llm->arch;
    out[OPI__C_MODEL] = c->llm->name;
    out[OPI__C_VERSION] = text(c->engine_version);
    out[OPI__C_PRECISION_CLASS] = format ? format->cls : text(c->precision);
    out[OPI__C_SHAPE] = shape_of(c->llm, e->shape, sizeof e->shape);
}

static void bases(const opi__physics *p, double *base)
{
    base[OPI__T_OUT_TOK_S] = log(p->out_tok_s);
    base[OPI__T_TOTAL_TOK_S] = log(p->total_tok_s);
    base[OPI__T_REQ_S] = log(p->req_s);
    base[OPI__T_TTFT_P50] = base[OPI__T_TTFT_P95] = log(p->ttft_s * 1e3);
    base[OPI__T_ITL_P50] = base[OPI__T_ITL_P95] = log(p->step_s * 1e3);
    base[OPI__T_E2E] = log(p->e2e_s);
    base[OPI__T_POWER] = log(p->power_w);
    base[OPI__T_TOK_J] = log(p->tokens_per_joule);
    base[OPI__T_COLD_START] = log(p->cold_start_s);
    base[OPI__T_KV_USAGE] = log(fmin(p->kv_pressure, 1));
    base[OPI__T_SM_ACTIVITY] = 0; /* busy all the time at the bound */
    base[OPI__T_TENSOR_ACTIVITY] = log(fmin(p->flop_s / p->step_s, 1));
}

void opi__encode(const opi_config *c, opi__encoded *out)
{
    const opi_llm *m = c->llm;
    const opi_gpu *g = c->gpu;
    opi__physics p;
    opi__physics_of(c, &p);
#define VALUE(text, value) (float)(value),
    const float number[OPI__NUMBERS] = {FEATURES(VALUE)};
    memcpy(out->number, number, sizeof number);
    for (int i = 0; i < OPI__NUMBERS; i++)
        if (isinf(out->number[i]))
            out->number[i] = NAN;
    categories(c, out);
    out->envelope[OPI__E_PARAMS] = m->params_b;
    out->envelope[OPI__E_ACTIVE] = p.active / 1e9;
    out->envelope[OPI__E_CONTEXT] = c->input_len > 0 || c->output_len > 0 ? c->input_len + c->output_len : NAN;
    out->envelope[OPI__E_CONCURRENCY] = c->concurrency > 0 ? c->concurrency : NAN;
    out->envelope[OPI__E_KV] = p.kv_pressure;
    out->envelope[OPI__E_TP] = c->tp > 0 ? c->tp : NAN;
    out->envelope[OPI__E_BITS] = c->weight_bits > 0 || c->precision ? p.bits : NAN;
    bases(&p, out->base);
}

static int32_t axis_named(const char *name)
{
    for (size_t i = 0; i < opi__axis_total(); i++)
        if (!strcmp(opi__axes[i].name, name))
            return (int32_t)i;
    return -1;
}

int32_t opi__category_axis(int category)
{
    static const char *const name[OPI__CATEGORIES] = {"gpu",       "precision", "engine", "family",         "load_kind",
                                                      "attention", "arch",      "model",  "engine_version", "precision",
                                                      "model"};
    return axis_named(name[category]);
}

int32_t opi__envelope_axis(int e)
{
    static const char *const name[OPI__ENVELOPE] = {
        "params_b", "active_params_b", "context", "concurrency", "kv_pressure", "tp", "weight_bits"};
    return axis_named(name[e]);
}
