/* SPDX-License-Identifier: Apache-2.0 */
/* Layer kinds, experts and quantization of a config.json. */
#include "facts/llm_config.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

/* ---- layers: windows and caches ---- */

static int32_t count_texts(const opi__json *array, const char *const *texts)
{
    int32_t n = 0;
    for (size_t i = 0; i < opi__json_size(array); i++) {
        const char *s = opi__json_string(opi__json_at(array, i));
        for (const char *const *t = texts; s && *t; t++)
            n += strcmp(s, *t) == 0;
    }
    return n;
}

/* Layers written out one by one. 1 when they were. */
static int listed_layers(opi__config_reader *r, opi_llm *m)
{
    static const char *const windowed[] = {"sliding_attention", "chunked_attention", NULL};
    static const char *const cached[] = {"full_attention", "sliding_attention", "chunked_attention",
                                         "attention",      "hybrid",            NULL};
    char key[64] = "";
    const opi__json *list = opi__config_get(r, "layer_types layers_block_type", key);
    if (!list)
        return 0;
    if (!opi__json_is_array(list) || opi__json_size(list) != (size_t)m->n_layers) {
        opi__config_fail(r, OPI_E_FORMAT, "%s is not a list of the %d layers", key, m->n_layers);
        return 1;
    }
    m->n_window_layers = count_texts(list, windowed);
    int32_t with_cache = count_texts(list, cached);
    m->n_kv_layers = with_cache > 0 && with_cache < m->n_layers ? with_cache : 0;
    return 1;
}

/* Mixed layers described by a rule: every n-th has full attention, the others a recurrent state. */
static int32_t cached_by_rule(opi__config_reader *r, const opi_llm *m)
{
    const char *pattern = opi__config_text(r, "hybrid_override_pattern");
    int32_t interval = opi__config_int(r, "full_attention_interval", 1, 4096, 0), n = 0;
    for (const char *c = pattern; *c; c++)
        n += *c == '*';
    if (n > 0)
        return n < m->n_layers ? n : 0;
    if (interval > 1)
        return m->n_layers / interval > 0 ? m->n_layers / interval : 1;
    int32_t period = opi__config_int(r, "attn_layer_period", 1, 4096, 0);
    int32_t offset = opi__config_int(r, "attn_layer_offset", 0, 4096, 0);
    for (int32_t i = 0; period > 1 && i < m->n_layers; i++)
        n += i % period == offset;
    return n;
}

/* Windowed layers described by a rule. */
static int32_t windows_by_rule(opi__config_reader *r, const opi_llm *m)
{
    int32_t pattern = opi__config_int(r, "sliding_window_pattern _sliding_window_pattern", 1, 4096, 0);
    if (pattern == 0 && opi__config_is(r, "gemma3"))
        pattern = 6;
    if (pattern == 0 && opi__config_is(r, "cohere2"))
        pattern = 4;
    if (opi__config_is(r, "gemma2"))
        return (m->n_layers + 1) / 2;
    if (pattern > 0)
        return m->n_layers - m->n_layers / pattern;
    int32_t first = opi__config_int(r, "max_window_layers", 0, 4096, 0);
    return first < m->n_layers ? m->n_layers - first : 0;
}

void opi__config_layers(opi__config_reader *r, opi_llm *m)
{
    int32_t window = opi__config_int(r, "sliding_window attention_chunk_size", 0, 1 << 30, 0);
    int listed = listed_layers(r, m);
    if (!listed)
        m->n_kv_layers = cached_by_rule(r, m);
    if (!opi__config_flag(r, "use_sliding_window", 1))
        window = 0;
    /* A window as long as the context is none. */
    if (window > 0 && m->max_context > 0 && window >= m->max_context)
        window = 0;
    if (!listed && window > 0) {
        if (opi__config_is(r, "llama4")) /* every fourth layer sees everything */
            m->n_window_layers = m->n_layers - m->n_layers / 4;
        else
            m->n_window_layers = windows_by_rule(r, m);
    }
    m->sliding_window = m->n_window_layers > 0 ? window : 0;
    if (window == 0)
        m->n_window_layers = 0;
}

/* ---- experts ---- */

/* How many layers have experts: all but the first few, every n-th, or those listed. */
static int32_t layers_with_experts(opi__config_reader *r, const opi_llm *m)
{
    const opi__json *listed = opi__config_get(r, "moe_layers", NULL);
    const opi__json *dense = opi__config_get(r, "mlp_only_layers", NULL);
    int32_t first = opi__config_int(r, "first_k_dense_replace", 0, 4096, 0);
    int32_t step = opi__config_int(r, "decoder_sparse_step interleave_moe_layer_step moe_layer_freq "
                                      "expert_layer_period", 1, 4096, 1);
    int32_t n = 0;
    if (listed && opi__json_is_array(listed) && opi__json_size(listed) > 0)
        n = opi__json_size(listed) < (size_t)m->n_layers ? (int32_t)opi__json_size(listed) : m->n_layers;
    else
        n = (m->n_layers - first) / step;
    if (dense && opi__json_is_array(dense))
        n -= opi__json_size(dense) < (size_t)n ? (int32_t)opi__json_size(dense) : 0;
    if (n < 1)
        opi__config_fail(r, OPI_E_RANGE, "first_k_dense_replace = %d leaves none of the %d layers for the experts",
                         first, m->n_layers);
    return n;
}

static int32_t shared_width(opi__config_reader *r, const opi_llm *m)
{
    int32_t stated = opi__config_int(r, "shared_expert_intermediate_size moe_shared_expert_intermediate_size", 0,
                                     1 << 24, 0);
    int32_t shared = opi__config_int(r, "n_shared_experts num_shared_experts moe_num_shared_experts", 0, 64, 0);
    if (stated > 0)
        return stated * (shared > 1 ? shared : 1);
    if (opi__config_is(r, "llama4"))
        return m->moe_intermediate_size;
    return shared * m->moe_intermediate_size;
}

void opi__config_experts(opi__config_reader *r, opi_llm *m)
{
    m->n_experts = opi__config_int(r, "n_routed_experts num_experts num_local_experts moe_num_experts "
                                      "ffn_config.moe_num_experts", 0, 1 << 16, 0);
    if (m->n_experts <= 1 || r->status) {
        m->n_experts = 0;
        return;
    }
    m->is_moe = 1;
    m->experts_per_token =
        opi__config_int(r, "num_experts_per_tok num_experts_per_token experts_per_token moe_top_k moe_topk moe_k "
                           "ffn_config.moe_top_k", 1, 1 << 16, 0);
    if (m->experts_per_token == 0)
        opi__config_fail(r, OPI_E_FORMAT, "there are %d experts but no num_experts_per_tok", m->n_experts);
    else if (m->experts_per_token > m->n_experts)
        opi__config_fail(r, OPI_E_RANGE, "num_experts_per_tok = %d: must be at most the %d experts",
                         m->experts_per_token, m->n_experts);
    int32_t width = opi__config_int(r, "intermediate_size ffn_config.ffn_hidden_size", 1, 1 << 24, 0);
    m->moe_intermediate_size = opi__config_int(r, "moe_intermediate_size moe_ffn_hidden_size", 1, 1 << 24, 0);
    if (m->moe_intermediate_size == 0) { /* then the usual width is the experts' */
        m->moe_intermediate_size = width;
        if (m->intermediate_size == width)
            m->intermediate_size = 0;
    }
    if (m->moe_intermediate_size == 0)
        opi__config_fail(r, OPI_E_FORMAT, "there are %d experts but no moe_intermediate_size", m->n_experts);
    m->n_moe_layers = layers_with_experts(r, m);
    m->shared_intermediate_size = shared_width(r, m);
}

/* ---- quantization ---- */

typedef struct method {
    const char *name, *quant;
    double bits;
} method;

/* Methods with one meaning. */
static const method methods[] = {
    {"fp8", "fp8", 8},     {"fbgemm_fp8", "fp8", 8},      {"awq", "awq", 4},         {"gptq", "gptq", 4},
    {"mxfp4", "mxfp4", 4}, {"modelopt_fp4", "nvfp4", 4}, {"auto-round", "gptq", 4}, {"intel/auto-round", "gptq", 4},
};

static void set_quant(opi_llm *m, const char *quant, double bits)
{
    opi__copy_text(m->quant, sizeof m->quant, quant);
    m->weight_bits = bits;
}

/* Methods that say their bits and number kind in groups (compressed-tensors, quark), or in flags (bitsandbytes). */
static int from_details(opi__config_reader *r, opi_llm *m, const char *name)
{
#define Q(key) "quantization_config." key
    const char *kind = opi__config_text(r, Q("config_groups.group_0.weights.type") " "
                                           Q("global_quant_config.weight.dtype"));
    int four = opi__config_flag(r, Q("load_in_4bit"), 0);
    const char *algo = opi__config_text(r, Q("quant_algo") " " Q("quantization.quant_algo"));
    int32_t bits = opi__config_int(r, Q("config_groups.group_0.weights.num_bits"), 1, 32, 0);
    if (strcmp(algo, "NVFP4") == 0)
        set_quant(m, "nvfp4", 4);
    else if (strncmp(algo, "FP8", 3) == 0)
        set_quant(m, "fp8", 8);
    else if (strcmp(name, "bitsandbytes") == 0)
        set_quant(m, four ? "int4" : "int8", four ? 4 : 8);
    else if (strncmp(kind, "fp8", 3) == 0)
        set_quant(m, "fp8", 8);
    else if (strncmp(kind, "fp4", 3) == 0)
        set_quant(m, "mxfp4", 4);
    else if (strncmp(kind, "int4", 4) == 0)
        set_quant(m, "int4", 4);
    else if (bits == 8)
        set_quant(m, strcmp(kind, "float") == 0 ? "fp8" : "int8", 8);
    else if (bits == 4)
        set_quant(m, strcmp(kind, "float") == 0 ? "nvfp4" : "int4", 4);
    else
        return 0;
    return 1;
#undef Q
}

static void kv_cache(opi__config_reader *r, opi_llm *m)
{
    int32_t bits = opi__config_int(r, "quantization_config.kv_cache_scheme.num_bits", 1, 32, 0);
    const char *algo = opi__config_text(r, "quantization_config.kv_cache_quant_algo");
    if (bits > 0)
        m->kv_bits = bits;
    else if (strncmp(algo, "FP8", 3) == 0 || strncmp(algo, "INT8", 4) == 0)
        m->kv_bits = 8;
}

void opi__config_quantization(opi__config_reader *r, opi_llm *m)
{
    const char *name = opi__config_text(r, "quantization_config.quant_method");
    const opi__json *block = opi__config_get(r, "quantization_config", NULL);
    int32_t bits = opi__config_int(r, "quantization_config.bits quantization_config.weight_bits "
                                      "quantization_config.w_bit", 1, 32, 0);
    if (!block || r->status)
        return;
    if (!opi__json_is_object(block)) {
        opi__config_fail(r, OPI_E_FORMAT, "quantization_config is not an object");
        return;
    }
    kv_cache(r, m);
    if (from_details(r, m, name) || r->status)
        return;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (opi__equal_nocase(name, methods[i].name)) {
            double own = methods[i].bits;
            if (bits == 0 || bits == own)
                set_quant(m, methods[i].quant, own);
            else
                set_quant(m, bits == 8 ? "int8" : "", bits);
            return;
        }
    }
    if (bits > 0)
        m->weight_bits = bits; /* a format we do not know by name, of a width we do */
    else
        opi__config_fail(r, OPI_E_FORMAT, "quantization_config.quant_method = \"%.*s\" is not known and states no bits",
                         40, name);
}
