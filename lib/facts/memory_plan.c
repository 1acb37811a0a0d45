/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds what: the parallel plan, and the storage format of the weights. */
#include "facts/memory.h"

#include "base/status.h"
#include "base/text.h"
#include "facts/gpu.h"
#include "facts/precision.h"

#include <math.h>
#include <string.h>

#define NODE 8 /* GPUs that TP spans at most where nothing is stated */

/* ---- the plan ---- */

/* What an engine does with memory; the first entry stands for one that is not stated or not known. The share is the
 * engine's default (vLLM's documentation: 0.9; TensorRT-LLM: 0.9 of what is free). */
typedef struct engine {
    const char *name;
    double share;
    uint32_t flags;
} engine;
static const engine engines[] = {
    {"vllm", 0.9, OPI__GRAPHS},
    {"sglang", 0.9, OPI__GRAPHS},
    {"tensorrt-llm", 0.9, OPI__GRAPHS | OPI__FREE_SHARE},
    {"trtllm", 0.9, OPI__GRAPHS | OPI__FREE_SHARE},
    {"tgi", 1, 0},
    {"tgis", 1, 0},
    {"deepspeed", 1, OPI__UNEVEN},
    {"deepspeed-mii", 1, OPI__UNEVEN},
    {"llama.cpp", 1, OPI__UNEVEN},
    {"hf-pipeline", 1, OPI__WHOLE_BATCH},
    {"transformers", 1, OPI__WHOLE_BATCH},
    {"hf-transformers", 1, OPI__WHOLE_BATCH},
};

static const engine *engine_of(const char *name)
{
    for (size_t i = 0; name && i < sizeof engines / sizeof engines[0]; i++) {
        if (opi__equal_nocase(name, engines[i].name))
            return &engines[i];
    }
    return &engines[0];
}

static int splits_heads(const opi_llm *m, int32_t tp)
{
    if (m->n_heads > 0 && m->n_heads % tp != 0)
        return 0;
    return m->kv_lora_rank > 0 || m->n_kv_heads <= 0 || m->n_kv_heads % tp == 0 || tp % m->n_kv_heads == 0;
}

/* Where no TP is stated: the most GPUs of one node that divide everything; the rest are replicas. */
static int32_t likely_tp(const opi_llm *m, int32_t gpus)
{
    for (int32_t tp = gpus < NODE ? gpus : NODE; tp > 1; tp--) {
        if (gpus % tp == 0 && splits_heads(m, tp))
            return tp;
    }
    return 1;
}

static void degrees(const opi_config *c, opi__plan *p)
{
    p->pp = c->pp > 0 ? c->pp : 1;
    p->dp = c->dp > 0 ? c->dp : 1;
    p->tp = c->tp > 0 ? c->tp : 1;
    if (c->tp <= 0 && c->n_gpus > 0) {
        int32_t rest = c->n_gpus / p->pp / p->dp > 0 ? c->n_gpus / p->pp / p->dp : 1;
        if ((p->engine & OPI__WHOLE_BATCH) && c->pp <= 0)
            p->pp = rest;
        else
            p->tp = likely_tp(c->llm, rest);
    }
    int64_t replica = (int64_t)p->tp * p->pp;
    if (c->dp <= 0 && c->n_gpus > 0 && c->n_gpus % replica == 0)
        p->dp = (int32_t)(c->n_gpus / replica);
    p->ep = c->ep > 0 ? c->ep : 1;
    p->shards = p->ep > p->tp ? p->ep : p->tp;
    if (c->dp <= 0 && p->ep > 1 && replica * p->ep == c->n_gpus)
        p->shards = p->tp * p->ep; /* TensorRT-LLM states the two factors of one group */
}

/* The first thing that does not divide, in the order an engine would refuse it. */
static void divisibility(const opi_config *c, opi__plan *p)
{
    const opi_llm *m = c->llm;
    char *limit = p->limit;
    size_t cap = sizeof p->limit;
    if (c->n_gpus > 0 && (int64_t)p->tp * p->pp * p->dp != c->n_gpus)
        opi__format(limit, cap, "%d GPUs are not tp %d x pp %d x dp %d", c->n_gpus, p->tp, p->pp, p->dp);
    else if ((p->engine & OPI__UNEVEN) && p->tp <= m->n_heads)
        return;
    else if (m->n_heads > 0 && m->n_heads % p->tp != 0)
        opi__format(limit, cap, "tp %d does not divide the %d attention heads", p->tp, m->n_heads);
    else if (m->kv_lora_rank == 0 && m->n_kv_heads > 0 && p->tp <= m->n_kv_heads && m->n_kv_heads % p->tp != 0)
        opi__format(limit, cap, "tp %d does not divide the %d KV heads", p->tp, m->n_kv_heads);
    else if (m->kv_lora_rank == 0 && m->n_kv_heads > 0 && p->tp > m->n_kv_heads && p->tp % m->n_kv_heads != 0)
        opi__format(limit, cap, "tp %d is not a multiple of the %d KV heads it must replicate", p->tp, m->n_kv_heads);
    else if (m->n_layers > 0 && p->pp > m->n_layers)
        opi__format(limit, cap, "pp %d is more than the %d layers", p->pp, m->n_layers);
    else if (p->ep > 1 && !m->is_moe)
        opi__format(limit, cap, "ep %d: %.*s has no experts", p->ep, 60, m->name);
    else if (p->ep > 1 && m->n_experts > 0 && p->ep > m->n_experts)
        opi__format(limit, cap, "ep %d is more than the %d experts", p->ep, m->n_experts);
}

void opi__plan_of(const opi_config *config, opi__plan *out)
{
    memset(out, 0, sizeof *out);
    const engine *e = engine_of(config->engine);
    out->engine = e->flags;
    out->mem_util = config->mem_util > 0 ? config->mem_util : e->share;
    degrees(config, out);
    out->layers = config->llm->n_layers > 0 ? config->llm->n_layers : 1;
    out->stage = ceil(out->layers / out->pp);
    out->visible_gib = opi__gpu_visible_gib(config->gpu);
    divisibility(config, out);
}

double opi__prompt_tokens(const opi_config *config)
{
    return config->input_len > 0 ? config->input_len : 512;
}

/* ---- the format ---- */

/* Bits with what a group of weights carries: AWQ and GPTQ keep a 16-bit scale and a 4-bit zero point per 128 weights,
 * NVFP4 an 8-bit scale per 16, MXFP4 one per 32. */
#define GROUP128 (20.0 / 128)
#define NVFP4 (4 + 8.0 / 16)
#define MXFP4 (4 + 8.0 / 32)

static opi__storage of_bits(double bits)
{
    opi__storage f = {bits, bits, 16, 16, 0};
    if (bits > 16)
        f.plain = f.kv = 32;
    else if (bits < 8)
        f.linear = f.experts = bits + GROUP128;
    return f;
}

/* In 4-bit checkpoints of expert models only the experts are quantized (gpt-oss, Kimi K2, NVIDIA's NVFP4 checkpoints);
 * AWQ and GPTQ quantize every linear layer. */
static opi__storage of_name(const char *name, const opi_llm *m)
{
    const opi__precision *p = opi__precision_find(name);
    opi__storage f = of_bits(p->weight_bits);
    int every_layer = opi__equal_nocase(name, "awq") || opi__equal_nocase(name, "gptq");
    if (strcmp(p->cls, "fp4") == 0) {
        int own = strcmp(m->quant, "mxfp4") == 0 && !opi__equal_nocase(name, "nvfp4");
        int mx = own || opi__equal_nocase(name, "mxfp4");
        f.linear = f.experts = mx ? MXFP4 : NVFP4;
        f.pad = mx;
    }
    if (m->is_moe && f.linear < 8 && !every_layer)
        f.linear = 16;
    return f;
}

int32_t opi__storage_of(const opi_config *config, opi__storage *out, opi_error *err)
{
    const char *name = config->precision && config->precision[0] ? config->precision : NULL;
    const opi_llm *m = config->llm;
    if (name && opi__precision_find(name))
        *out = of_name(name, m);
    else if (config->weight_bits > 0)
        *out = of_bits(config->weight_bits);
    else if (name)
        return opi__fail(err, OPI_E_INVALID, -1,
                         "precision \"%.*s\" is not known: fp32, bf16, fp16, fp8, int8, fp4, nvfp4, mxfp4, int4, awq "
                         "or gptq; or state weight_bits", 40, name);
    else if (m->quant[0] && opi__precision_find(m->quant))
        *out = of_name(m->quant, m);
    else if (m->weight_bits > 0)
        *out = of_bits(m->weight_bits);
    else /* Transformers loads 32-bit floats unless told otherwise; serving engines take the checkpoint's 16 bits. */
        *out = of_bits(engine_of(config->engine)->flags & OPI__WHOLE_BATCH ? 32 : 16);
    if (config->kv_bits > 0)
        out->kv = config->kv_bits;
    else if (m->kv_bits > 0)
        out->kv = m->kv_bits;
    return OPI_OK;
}
