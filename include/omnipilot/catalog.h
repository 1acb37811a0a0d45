/* SPDX-License-Identifier: Apache-2.0 */
/** @file catalog.h
 * Facts and physics: GPUs, LLM architectures, one serving configuration, its memory fit and its roofline.
 */
#ifndef OMNIPILOT_CATALOG_H
#define OMNIPILOT_CATALOG_H

#include "omnipilot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OPI_FACT_VERIFIED 1u   /**< confirmed by a stored datasheet or config, or by the architecture formulas */
#define OPI_FACT_RECALLED 2u   /**< from memory of public material, not confirmed: shown wherever it is used */

/** One accelerator. A fact that is not known is NaN. Unit: as each field says (GB = 1e9 bytes). */
typedef struct opi_gpu {
    uint32_t struct_size;
    uint32_t flags; /**< OPI_FACT_… */
    char name[48];  /**< canonical, e.g. "H100-80GB-SXM" */
    char arch[24];
    char link[24];
    char source[192]; /**< where the figures come from */
    int32_t year;
    int32_t reserved;
    double mem_gb, mem_bw_gbs;                             /**< GB, GB/s */
    double fp16_tflops, fp8_tflops, int8_tops, fp4_tflops; /**< dense peak, 1e12/s */
    double link_gbs;                                       /**< GPU to GPU, one direction, GB/s */
    double tdp_w;
    double price_ondemand_usd_h, price_rental_usd_h; /**< US dollars per GPU hour; NaN = no cited source */
} opi_gpu;

/** One LLM architecture. A number that is not known is NaN (doubles) or 0 (integers). */
typedef struct opi_llm {
    uint32_t struct_size;
    uint32_t flags;      /**< OPI_FACT_… */
    char name[96];       /**< canonical, e.g. "Qwen/Qwen2.5-72B-Instruct" */
    char family[32];     /**< e.g. "qwen2.5" */
    char arch[32];       /**< architecture type as Hugging Face's model_type, e.g. "qwen2" */
    char attention[16];  /**< mha, gqa, mqa, mla, hybrid, … */
    char source[192];
    double params_b, active_params_b; /**< 1e9 parameters: all, and touched per token */
    int32_t n_layers, hidden_size, n_heads, n_kv_heads, head_dim, intermediate_size;
    int32_t vocab_size, max_context, is_moe, n_experts, experts_per_token, moe_intermediate_size;
    int32_t kv_lora_rank, qk_rope_head_dim, sliding_window, n_kv_layers; /**< n_kv_layers: layers with a KV cache; 0 = all */
    double kv_elems_per_token; /**< cached elements per token over all layers */
    double weight_bits, kv_bits; /**< of the checkpoint's own quantization; NaN = not quantized / not stated */
    char quant[16];              /**< the checkpoint's own format ("fp8", "mxfp4", "awq", …); empty = none */
    int32_t n_window_layers;     /**< layers that cache only the last sliding_window tokens; 0 = none */
    int32_t n_moe_layers;        /**< layers with experts; 0 = all when is_moe */
    int32_t shared_intermediate_size; /**< of the shared experts, summed; 0 = none */
    int32_t q_lora_rank;
    int32_t mlp_matrices;        /**< 3 = gated, 2 = plain, 0 = not known */
    int32_t tied_embeddings;     /**< 1: input and output embedding are one matrix */
} opi_llm;

OPI_API size_t opi_gpu_count(void);
/** Entry `index` of the compiled-in table. Errors: OPI_E_RANGE. `out->struct_size` must be set by the caller. */
OPI_API int32_t opi_gpu_at(size_t index, opi_gpu *out, opi_error *err);
/** Looks up a name or an alias people type ("H100", "h100-sxm", "A100 80GB"). Errors: OPI_E_UNKNOWN (nearest names in
 *  the message), OPI_E_AMBIGUOUS (all candidates in the message). */
OPI_API int32_t opi_gpu_find(const char *name, opi_gpu *out, opi_error *err);

OPI_API size_t opi_llm_count(void);
OPI_API int32_t opi_llm_at(size_t index, opi_llm *out, opi_error *err);
OPI_API int32_t opi_llm_find(const char *name, opi_llm *out, opi_error *err);
/** Reads a Hugging Face config.json (nested text_config, MLA, sliding window, MoE variants, quantization_config).
 *  `name` names the result (may be NULL: taken from _name_or_path or model_type). Errors: OPI_E_FORMAT, OPI_E_RANGE,
 *  OPI_E_UNSUPPORTED (encoder-decoders). */
OPI_API int32_t opi_llm_from_config(opi_ctx *ctx, const char *json, size_t size, const char *name, opi_llm *out,
                                    opi_error *err);

/** One serving configuration under one load. 0 or NULL = not stated. Strings stay the caller's. */
typedef struct opi_config {
    uint32_t struct_size;
    int32_t n_gpus;                 /**< tp * pp * dp */
    int32_t tp, pp, ep, dp;
    const opi_llm *llm;
    const opi_gpu *gpu;
    const char *engine;             /**< "vllm", "sglang", "tensorrt-llm", … */
    const char *engine_version;
    const char *precision;          /**< "bf16", "fp8", "fp4", "int8", "awq", "gptq", … */
    const char *load_kind;          /**< "concurrency", "rate", "batch", "offline" */
    double weight_bits, kv_bits;    /**< bits per weight, per cached element */
    double input_len, output_len;   /**< mean tokens per request */
    double concurrency;             /**< requests in flight */
    double request_rate;            /**< requests/s offered (open loop) */
    double max_context;             /**< tokens the engine must be able to hold per request */
    double mem_util;                /**< share of device memory the engine may take; 0 = 0.9 */
} opi_config;

/** Memory of one configuration, per GPU unless said. Unit: GiB (2^30 bytes). */
typedef struct opi_memory {
    uint32_t struct_size;
    int32_t fits;                /**< 1: weights, overheads and the KV cache of at least one full-length request fit */
    double total_gib;            /**< device memory */
    double usable_gib;           /**< total * mem_util */
    double weights_gib;          /**< with quantization scales, largest rank */
    double activation_gib, runtime_gib;
    double kv_gib;               /**< left for the KV cache (may be negative) */
    double kv_bytes_per_token;   /**< on one GPU: layers / pp, KV heads replicated when tp > n_kv_heads */
    double kv_tokens;            /**< tokens the KV cache holds (0 when kv_gib <= 0) */
    double kv_needed_tokens;     /**< for one request: max_context, else input + output, else the LLM's own limit; for the
                                      whole batch where the engine has no paged cache ("hf-pipeline") */
    double margin_gib;           /**< signed: kv_gib - kv_needed_tokens * kv_bytes_per_token */
    double kv_pressure;          /**< KV demand of the load / capacity (input + output/2 per request); may exceed 1; NaN
                                      when the load is not stated or there is no capacity */
    char limit[160];             /**< what does not fit or divide, one line; empty when fits */
} opi_memory;
/** The one memory formula. Errors: OPI_E_INVALID, OPI_E_RANGE; not fitting is an answer (`fits` 0), as is a TP that
 *  does not divide (`fits` 0, `limit` says which). Threads: any. No heap. */
OPI_API int32_t opi_memory_fit(const opi_config *config, opi_memory *out, opi_error *err);

/** First-principles bounds (Williams et al. 2009, roofline): a feature and the base of the learned residual. */
typedef struct opi_roofline {
    uint32_t struct_size;
    uint32_t reserved;
    double decode_step_s, decode_mem_s, decode_flop_s, link_s; /**< seconds per decode step and its parts */
    double prefill_s;                                          /**< seconds for one request's prompt */
    double out_tok_s, total_tok_s, req_s, ttft_ms, itl_ms, e2e_s, power_w, tokens_per_joule;
    double cold_start_s, kv_usage, sm_activity, tensor_activity; /**< physics estimates, shares in 0..1 */
} opi_roofline;
OPI_API int32_t opi_roofline_of(const opi_config *config, opi_roofline *out, opi_error *err);

/* ---- the schema: targets and axes, by index; names are stable ---- */
typedef struct opi_target_info {
    uint32_t struct_size;
    int32_t higher_is_better; /**< 1 or 0 */
    const char *name;         /**< the column's name, e.g. "ttft_ms_p50"; static storage */
    const char *alias;        /**< short name, e.g. "ttft_p50" */
    const char *unit;         /**< "ms", "tokens/s", … */
    const char *title;        /**< "TTFT p50" */
} opi_target_info;
OPI_API size_t opi_target_count(void);
OPI_API int32_t opi_target_at(size_t index, opi_target_info *out, opi_error *err);
/** Index of a target by name, alias or title. Errors: OPI_E_UNKNOWN. */
OPI_API int32_t opi_target_find(const char *name, size_t *index, opi_error *err);

#define OPI_AXIS_NUMBER 1
#define OPI_AXIS_CATEGORY 2
typedef struct opi_axis_info {
    uint32_t struct_size;
    int32_t kind;      /**< OPI_AXIS_… */
    int32_t enveloped; /**< 1: part of the support envelope */
    int32_t reserved;
    const char *name;  /**< e.g. "params_b" */
    const char *unit;
    const char *title;
} opi_axis_info;
OPI_API size_t opi_axis_count(void);
OPI_API int32_t opi_axis_at(size_t index, opi_axis_info *out, opi_error *err);

#ifdef __cplusplus
}
#endif
#endif
