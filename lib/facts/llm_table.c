/* SPDX-License-Identifier: Apache-2.0 */
/* The LLM table: one entry an LLM, sorted by name (ASCII letters without case; a test checks it). The size formula of
 * llm_size.c is checked against every entry by a test.
 *
 *   D  name, family, source, size, layers, hidden, heads, KV heads, head dim, MLP width, vocabulary,
 *      context;
 *      T the same with tied embeddings; P a plain (not gated) MLP; Q plain and tied
 *   S  as D, then window, layers with the window, tied
 *   M  size, active size, then as D, then experts, experts per token, expert width, MoE layers, shared width (summed)
 *      MX the same, then window, layers with the window, tied, own format, its bits
 *   L  latent attention (rank 512, rotary 64): size, active, layers, hidden, heads, dense MLP width, vocabulary,
 *      context, experts …, shared width, query rank, own format, its bits
 *   H  as D, then layers with a KV cache (0 = facts missing); HM as M with those before the experts
 *   E  encoder-decoder: size, decoder layers, hidden, heads, head dim, MLP width, vocabulary, context
 * Sizes are billions of parameters. */
#include "facts/llm.h"

#include <math.h>

/* Where an entry comes from, and its mark. FORMULA: recalled, and the size formula of the recalled shape gives the
 * published parameter count within 2 %. */
#define AIC OPI_FACT_VERIFIED, "ai-dynamo/aiconfigurator@095f58a51c4c model_configs (stored config.json)"
#define AIC_SAME OPI_FACT_VERIFIED,                                                                                  \
    "ai-dynamo/aiconfigurator@095f58a51c4c model_configs (same architecture as a stored config)"
#define WATTGPU OPI_FACT_VERIFIED, "maufadel/wattgpu@4e010359c167:data/model_features.csv"
#define FORMULA OPI_FACT_VERIFIED, "public config, recalled; the size formula gives the published parameter count"
#define RECALL OPI_FACT_RECALLED, "public config, recalled (not checked against a stored copy)"

/* Family, Hugging Face's model_type, attention. */
#define AQUILA_MHA "aquila", "aquila", "mha"
#define ARCEE "arcee", "arcee", "gqa"
#define BAICHUAN "baichuan", "baichuan", "mha-alibi"
#define BAICHUAN_MHA "baichuan", "baichuan", "mha"
#define BLOOM "bloom", "bloom", "mha-alibi"
#define CHATGLM_MQA "chatglm", "chatglm", "mqa"
#define CODEGEN_MHA "codegen", "codegen", "mha"
#define COHERE "cohere", "cohere", "gqa"
#define COHERE_MHA "cohere", "cohere", "mha"
#define DBRX "dbrx", "dbrx", "gqa"
#define DECILM_VAR "decilm", "deci", "variable-gqa"
#define DEEPSEEKV2 "deepseek-v2", "deepseek_v2", "mla"
#define DEEPSEEKV3 "deepseek-v3", "deepseek_v3", "mla"
#define FALCON "falcon", "falcon", "gqa"
#define FALCON_MQA "falcon", "falcon", "mqa"
#define GEMMA2_SW "gemma2", "gemma2", "gqa-sliding"
#define GEMMA3_MQSW "gemma3", "gemma3", "mqa-sliding"
#define GEMMA3_SW "gemma3", "gemma3", "gqa-sliding"
#define GEMMA_MHA "gemma", "gemma", "mha"
#define GEMMA_MQA "gemma", "gemma", "mqa"
#define GLM4MOE "glm4-moe", "glm4_moe", "gqa"
#define GLM4_MQA "glm4", "chatglm", "mqa"
#define GPTBIGCODE_MQA "gpt-bigcode", "gpt_bigcode", "mqa"
#define GPTJ_MHA "gptj", "gptj", "mha"
#define GPTNEOX_MHA "gpt-neox", "gpt_neox", "mha"
#define GPTOSS_SW "gpt-oss", "gpt_oss", "gqa-sliding"
#define GRANITE "granite", "granite", "gqa"
#define GRANITEMOE "granite-moe", "granitemoe", "gqa"
#define GROK "grok", "grok", "gqa"
#define INTERNLM2 "internlm2", "internlm2", "gqa"
#define JETNEMOTRON "jet-nemotron", "jet_nemotron", "hybrid-linear"
#define KIMIK2 "kimi-k2", "kimi_k2", "mla"
#define LLAMA "llama", "llama", "gqa"
#define LLAMA2 "llama2", "llama", "gqa"
#define LLAMA2_MHA "llama2", "llama", "mha"
#define LLAMA3 "llama3", "llama", "gqa"
#define LLAMA4 "llama4", "llama4", "gqa-chunked"
#define LLAMA_MHA "llama", "llama", "mha"
#define MIMO "mimo", "mimo", "gqa"
#define MINICPM3 "minicpm3", "minicpm3", "mla"
#define MINIMAXM2 "minimax-m2", "minimax_m2", "gqa"
#define MISTRAL "mistral", "mistral", "gqa"
#define MISTRAL_SW "mistral", "mistral", "gqa-sliding"
#define MIXTRAL "mixtral", "mixtral", "gqa"
#define MPT "mpt", "mpt", "mha-alibi"
#define NEMOTRONH "nemotron-h", "nemotron_h", "hybrid-mamba2"
#define NEMOTRONNAS_VAR "nemotron-nas", "nemotron-nas", "variable-gqa"
#define OLMO2_MHA "olmo2", "olmo2", "mha"
#define OLMOE_MHA "olmoe", "olmoe", "mha"
#define OPT_MHA "opt", "opt", "mha"
#define ORION_MHA "orion", "orion", "mha"
#define PERSIMMON_MHA "persimmon", "persimmon", "mha"
#define PHI3 "phi3", "phi3", "gqa"
#define PHI3_BS "phi3", "phi3", "gqa-blocksparse"
#define PHI3_MHA "phi3", "phi3", "mha"
#define PHIMOE "phimoe", "phimoe", "gqa"
#define PHI_MHA "phi", "phi", "mha"
#define QWEN15 "qwen1.5", "qwen2", "gqa"
#define QWEN15_MHA "qwen1.5", "qwen2", "mha"
#define QWEN2 "qwen2", "qwen2", "gqa"
#define QWEN25 "qwen2.5", "qwen2", "gqa"
#define QWEN3 "qwen3", "qwen3", "gqa"
#define QWEN35MOE "qwen3.5-moe", "qwen3_5_moe", "hybrid-linear"
#define QWEN3MOE "qwen3-moe", "qwen3_moe", "gqa"
#define QWEN_MHA "qwen", "qwen", "mha"
#define STABLELM "stablelm", "stablelm", "gqa"
#define STARCODER2 "starcoder2", "starcoder2", "gqa"
#define T5 "t5", "t5", "enc-dec"

#define HEAD(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, ACTIVE)                                              \
    .struct_size = sizeof(opi_llm), .flags = MARK, .name = NAME, .family = FAMILY, .arch = ARCH,                     \
    .attention = ATTENTION, .source = SOURCE, .params_b = SIZE, .active_params_b = ACTIVE
#define SHAPE(LAYERS, HIDDEN, HEADS, KV, DIM, WIDTH, VOCAB, CONTEXT)                                                 \
    .n_layers = LAYERS, .hidden_size = HIDDEN, .n_heads = HEADS, .n_kv_heads = KV, .head_dim = DIM,                  \
    .intermediate_size = WIDTH, .vocab_size = VOCAB, .max_context = CONTEXT
#define FORMAT(QUANT, BITS) .weight_bits = BITS, .kv_bits = NAN, .quant = QUANT
#define EXPERTS(N, PER_TOKEN, WIDTH, LAYERS, SHARED)                                                                 \
    .is_moe = 1, .n_experts = N, .experts_per_token = PER_TOKEN, .moe_intermediate_size = WIDTH,                     \
    .n_moe_layers = LAYERS, .shared_intermediate_size = SHARED
#define KV_CACHE(LAYERS, KV, DIM) .kv_elems_per_token = 2.0 * (LAYERS) * (KV) * (DIM)

#define DENSE(MATRICES, TIED, NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, LAYERS, HIDDEN, HEADS, KV, DIM,     \
              ...)                                                                                                   \
    {HEAD(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, SIZE),                                                  \
     SHAPE(LAYERS, HIDDEN, HEADS, KV, DIM, __VA_ARGS__),                                                             \
     KV_CACHE(LAYERS, KV, DIM), FORMAT("", NAN), .mlp_matrices = MATRICES, .tied_embeddings = TIED}
#define D(...) DENSE(3, 0, __VA_ARGS__)
#define T(...) DENSE(3, 1, __VA_ARGS__)
#define P(...) DENSE(2, 0, __VA_ARGS__)
#define Q(...) DENSE(2, 1, __VA_ARGS__)

#define WINDOWED(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, LAYERS, HIDDEN, HEADS, KV, DIM, WIDTH, VOCAB,    \
                 CONTEXT, WINDOW, WINDOWS, TIED)                                                                     \
    {HEAD(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, SIZE),                                                  \
     SHAPE(LAYERS, HIDDEN, HEADS, KV, DIM, WIDTH, VOCAB, CONTEXT), KV_CACHE(LAYERS, KV, DIM), FORMAT("", NAN),       \
     .sliding_window = WINDOW, .n_window_layers = WINDOWS, .mlp_matrices = 3, .tied_embeddings = TIED}
#define S(...) WINDOWED(__VA_ARGS__)

#define MOE(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, ACTIVE, LAYERS, HIDDEN, HEADS, KV, DIM, WIDTH, VOCAB, \
            CONTEXT, N, PER_TOKEN, EXPERT, MOE_LAYERS, SHARED, WINDOW, WINDOWS, TIED, QUANT, BITS)                   \
    {HEAD(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, ACTIVE),                                                \
     SHAPE(LAYERS, HIDDEN, HEADS, KV, DIM, WIDTH, VOCAB, CONTEXT), KV_CACHE(LAYERS, KV, DIM),                        \
     EXPERTS(N, PER_TOKEN, EXPERT, MOE_LAYERS, SHARED), FORMAT(QUANT, BITS), .sliding_window = WINDOW,               \
     .n_window_layers = WINDOWS, .mlp_matrices = 3, .tied_embeddings = TIED}
#define M(...) MOE(__VA_ARGS__, 0, 0, 0, "", NAN)
#define MX(...) MOE(__VA_ARGS__)

#define LATENT(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, ACTIVE, LAYERS, HIDDEN, HEADS, WIDTH, VOCAB,       \
               CONTEXT, N, PER_TOKEN, EXPERT, MOE_LAYERS, SHARED, QUERY, QUANT, BITS)                                \
    {HEAD(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, ACTIVE),                                                \
     SHAPE(LAYERS, HIDDEN, HEADS, HEADS, 0, WIDTH, VOCAB, CONTEXT), .kv_lora_rank = 512, .qk_rope_head_dim = 64,     \
     .kv_elems_per_token = (LAYERS) * 576.0, EXPERTS(N, PER_TOKEN, EXPERT, MOE_LAYERS, SHARED), FORMAT(QUANT, BITS), \
     .q_lora_rank = QUERY, .mlp_matrices = 3}
#define L(...) LATENT(__VA_ARGS__)

#define HYBRID(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, LAYERS, HIDDEN, HEADS, KV, DIM, WIDTH, VOCAB,      \
               CONTEXT, CACHED)                                                                                      \
    {HEAD(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, SIZE),                                                  \
     SHAPE(LAYERS, HIDDEN, HEADS, KV, DIM, WIDTH, VOCAB, CONTEXT), .n_kv_layers = CACHED,                            \
     .kv_elems_per_token = (CACHED) ? 2.0 * (CACHED) * (KV) * (DIM) : NAN, FORMAT("", NAN)}
#define H(...) HYBRID(__VA_ARGS__)
#define HYBRID_MOE(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, ACTIVE, LAYERS, HIDDEN, HEADS, KV, DIM, VOCAB, \
                   CONTEXT, CACHED, N, PER_TOKEN, EXPERT, MOE_LAYERS, SHARED)                                        \
    {HEAD(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, ACTIVE),                                                \
     SHAPE(LAYERS, HIDDEN, HEADS, KV, DIM, 0, VOCAB, CONTEXT), .n_kv_layers = CACHED, KV_CACHE(CACHED, KV, DIM),     \
     EXPERTS(N, PER_TOKEN, EXPERT, MOE_LAYERS, SHARED), FORMAT("", NAN), .mlp_matrices = 3}
#define HM(...) HYBRID_MOE(__VA_ARGS__)

/* A decoder layer caches its own keys and values and those of the encoder's output. */
#define ENCODER_DECODER(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, LAYERS, HIDDEN, HEADS, DIM, WIDTH, VOCAB, \
                        CONTEXT)                                                                                     \
    {HEAD(NAME, FAMILY, ARCH, ATTENTION, MARK, SOURCE, SIZE, SIZE),                                                  \
     SHAPE(LAYERS, HIDDEN, HEADS, HEADS, DIM, WIDTH, VOCAB, CONTEXT), KV_CACHE(2 * (LAYERS), HEADS, DIM),            \
     FORMAT("", NAN), .mlp_matrices = 3}
#define E(...) ENCODER_DECODER(__VA_ARGS__)

const opi_llm opi__llms[] = {
    /* clang-format off */
    D("01-ai/Yi-1.5-9B-Chat", LLAMA, FORMULA, 8.829, 48, 4096, 32, 4, 128, 11008, 64000, 4096),
    D("01-ai/Yi-34B-Chat", LLAMA, FORMULA, 34.39, 60, 7168, 56, 8, 128, 20480, 64000, 4096),
    D("01-ai/Yi-6B-Chat", LLAMA, FORMULA, 6.061, 32, 4096, 32, 4, 128, 11008, 64000, 4096),
    P("adept/persimmon-8b-chat", PERSIMMON_MHA, FORMULA, 9.4, 36, 4096, 64, 64, 64, 16384, 262144, 16384),
    D("allenai/OLMo-2-1124-7B-Instruct", OLMO2_MHA, WATTGPU, 7.3, 32, 4096, 32, 32, 128, 11008, 100352, 4096),
    M("allenai/OLMoE-1B-7B-0924", OLMOE_MHA, WATTGPU, 6.92, 1.28, 16, 2048, 16, 16, 128, 0, 50304, 4096, 64, 8, 1024,
      16, 0),
    P("arcee-ai/AFM-4.5B-Base", ARCEE, FORMULA, 4.6, 36, 2560, 20, 4, 128, 18432, 128004, 65536),
    D("BAAI/Aquila-7B", AQUILA_MHA, FORMULA, 7.3, 32, 4096, 32, 32, 128, 11008, 100008, 2048),
    D("baichuan-inc/Baichuan2-13B-Chat", BAICHUAN, FORMULA, 13.9, 40, 5120, 40, 40, 128, 13696, 125696, 4096),
    D("baichuan-inc/Baichuan2-7B-Chat", BAICHUAN_MHA, FORMULA, 7.51, 32, 4096, 32, 32, 128, 11008, 125696, 4096),
    Q("bigcode/starcoder", GPTBIGCODE_MQA, FORMULA, 15.52, 40, 6144, 48, 1, 128, 24576, 49152, 8192),
    P("bigcode/starcoder2-15b", STARCODER2, FORMULA, 15.96, 40, 6144, 48, 4, 128, 24576, 49152, 16384),
    Q("bigcode/starcoder2-3b", STARCODER2, FORMULA, 3.03, 30, 3072, 24, 2, 128, 12288, 49152, 16384),
    Q("bigcode/starcoder2-7b", STARCODER2, FORMULA, 7.17, 32, 4608, 36, 4, 128, 18432, 49152, 16384),
    Q("bigscience/bloom", BLOOM, FORMULA, 176.25, 70, 14336, 112, 112, 128, 57344, 250880, 2048),
    Q("bigscience/bloom-1b7", BLOOM, FORMULA, 1.72, 24, 2048, 16, 16, 128, 8192, 250880, 2048),
    Q("bigscience/bloom-3b", BLOOM, FORMULA, 3, 30, 2560, 32, 32, 80, 10240, 250880, 2048),
    Q("bigscience/bloom-7b1", BLOOM, FORMULA, 7.07, 30, 4096, 32, 32, 128, 16384, 250880, 2048),
    Q("bigscience/bloomz-7b1", BLOOM, FORMULA, 7.07, 30, 4096, 32, 32, 128, 16384, 250880, 2048),
    E("bigscience/mt0-xxl", T5, FORMULA, 12.92, 24, 4096, 64, 64, 10240, 250112, 512),
    D("codellama/CodeLlama-13b-hf", LLAMA_MHA, FORMULA, 13.02, 40, 5120, 40, 40, 128, 13824, 32016, 16384),
    D("codellama/CodeLlama-34b-hf", LLAMA, FORMULA, 33.74, 48, 8192, 64, 8, 128, 22016, 32000, 16384),
    D("codellama/CodeLlama-70b-hf", LLAMA, FORMULA, 68.98, 80, 8192, 64, 8, 128, 28672, 32016, 16384),
    D("codellama/CodeLlama-7b-hf", LLAMA_MHA, FORMULA, 6.74, 32, 4096, 32, 32, 128, 11008, 32016, 16384),
    T("CohereForAI/c4ai-command-r-08-2024", COHERE, FORMULA, 32.3, 40, 8192, 64, 8, 128, 24576, 256000, 131072),
    T("CohereForAI/c4ai-command-r-plus", COHERE, FORMULA, 103.8, 64, 12288, 96, 8, 128, 33792, 256000, 131072),
    T("CohereForAI/c4ai-command-r-v01", COHERE_MHA, FORMULA, 34.98, 40, 8192, 64, 64, 128, 22528, 256000, 131072),
    M("databricks/dbrx-instruct", DBRX, FORMULA, 131.6, 36.47, 40, 6144, 48, 8, 128, 0, 100352, 32768, 16, 4, 10752, 40,
      0),
    P("databricks/dolly-v2-12b", GPTNEOX_MHA, FORMULA, 11.85, 36, 5120, 40, 40, 128, 20480, 50280, 2048),
    H("Deci/DeciLM-7B", DECILM_VAR, RECALL, 7.04, 32, 4096, 32, 0, 128, 14336, 32000, 8192, 0),
    D("deepseek-ai/deepseek-coder-7b-instruct-v1.5", LLAMA_MHA, FORMULA, 6.91, 30, 4096, 32, 32, 128, 11008, 102400,
      4096),
    L("deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct", DEEPSEEKV2, FORMULA, 15.71, 2.661, 27, 2048, 16, 10944, 102400,
      163840, 64, 6, 1408, 26, 2816, 0, "", NAN),
    D("deepseek-ai/deepseek-llm-7b-chat", LLAMA_MHA, WATTGPU, 6.91, 30, 4096, 32, 32, 128, 11008, 102400, 4096),
    L("deepseek-ai/DeepSeek-R1", DEEPSEEKV3, AIC, 671.03, 37.55, 61, 7168, 128, 18432, 129280, 163840, 256, 8, 2048, 58,
      2048, 1536, "fp8", 8),
    L("deepseek-ai/DeepSeek-R1-0528", DEEPSEEKV3, AIC_SAME, 671.03, 37.55, 61, 7168, 128, 18432, 129280, 163840, 256, 8,
      2048, 58, 2048, 1536, "fp8", 8),
    D("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", LLAMA3, FORMULA, 70.55, 80, 8192, 64, 8, 128, 28672, 128256, 131072),
    D("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", LLAMA3, FORMULA, 8.03, 32, 4096, 32, 8, 128, 14336, 128256, 131072),
    D("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", QWEN25, FORMULA, 1.78, 28, 1536, 12, 2, 128, 8960, 151936, 131072),
    D("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", QWEN25, FORMULA, 14.77, 48, 5120, 40, 8, 128, 13824, 152064, 131072),
    D("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", QWEN25, FORMULA, 32.76, 64, 5120, 40, 8, 128, 27648, 152064, 131072),
    D("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", QWEN25, FORMULA, 7.62, 28, 3584, 28, 4, 128, 18944, 152064, 131072),
    L("deepseek-ai/DeepSeek-V2-Lite", DEEPSEEKV2, FORMULA, 15.71, 2.661, 27, 2048, 16, 10944, 102400, 163840, 64, 6,
      1408, 26, 2816, 0, "", NAN),
    L("deepseek-ai/DeepSeek-V2-Lite-Chat", DEEPSEEKV2, FORMULA, 15.71, 2.66, 27, 2048, 16, 10944, 102400, 163840, 64, 6,
      1408, 26, 2816, 0, "", NAN),
    L("deepseek-ai/DeepSeek-V2.5", DEEPSEEKV2, FORMULA, 235.7, 21.38, 60, 5120, 128, 12288, 102400, 163840, 160, 6,
      1536, 59, 3072, 1536, "", NAN),
    L("deepseek-ai/DeepSeek-V3", DEEPSEEKV3, AIC, 671.03, 37.55, 61, 7168, 128, 18432, 129280, 163840, 256, 8, 2048, 58,
      2048, 1536, "fp8", 8),
    L("deepseek-ai/DeepSeek-V3-0324", DEEPSEEKV3, FORMULA, 671, 37.55, 61, 7168, 128, 18432, 129280, 163840, 256, 8,
      2048, 58, 2048, 1536, "fp8", 8),
    L("deepseek-ai/DeepSeek-V3.1", DEEPSEEKV3, AIC_SAME, 671.03, 37.55, 61, 7168, 128, 18432, 129280, 163840, 256, 8,
      2048, 58, 2048, 1536, "fp8", 8),
    P("EleutherAI/gpt-j-6b", GPTJ_MHA, WATTGPU, 6.05, 28, 4096, 16, 16, 256, 16384, 50400, 2048),
    P("EleutherAI/gpt-neox-20b", GPTNEOX_MHA, WATTGPU, 20.55, 44, 6144, 64, 64, 96, 24576, 50432, 2048),
    P("EleutherAI/pythia-6.9b", GPTNEOX_MHA, FORMULA, 6.86, 32, 4096, 32, 32, 128, 16384, 50432, 2048),
    Q("facebook/opt-1.3b", OPT_MHA, FORMULA, 1.311, 24, 2048, 32, 32, 64, 8192, 50272, 2048),
    Q("facebook/opt-125m", OPT_MHA, FORMULA, 0.1235, 12, 768, 12, 12, 64, 3072, 50272, 2048),
    Q("facebook/opt-13b", OPT_MHA, FORMULA, 12.84, 40, 5120, 40, 40, 128, 20480, 50272, 2048),
    Q("facebook/opt-30b", OPT_MHA, FORMULA, 29.96, 48, 7168, 56, 56, 128, 28672, 50272, 2048),
    Q("facebook/opt-6.7b", OPT_MHA, FORMULA, 6.66, 32, 4096, 32, 32, 128, 16384, 50272, 2048),
    Q("facebook/opt-66b", OPT_MHA, FORMULA, 65.69, 64, 9216, 72, 72, 128, 36864, 50272, 2048),
    T("google/codegemma-1.1-2b", GEMMA_MQA, FORMULA, 2.51, 18, 2048, 8, 1, 256, 16384, 256000, 8192),
    T("google/codegemma-7b", GEMMA_MHA, FORMULA, 8.54, 28, 3072, 16, 16, 256, 24576, 256000, 8192),
    E("google/flan-t5-xl", T5, FORMULA, 2.85, 24, 2048, 32, 64, 5120, 32128, 512),
    E("google/flan-t5-xxl", T5, FORMULA, 11.14, 24, 4096, 64, 64, 10240, 32128, 512),
    E("google/flan-ul2", T5, FORMULA, 19.46, 32, 4096, 16, 256, 16384, 32128, 512),
    S("google/gemma-2-27b-it", GEMMA2_SW, FORMULA, 27.23, 46, 4608, 32, 16, 128, 36864, 256000, 8192, 4096, 23, 1),
    S("google/gemma-2-2b-it", GEMMA2_SW, WATTGPU, 2.61, 26, 2304, 8, 4, 256, 9216, 256000, 8192, 4096, 13, 1),
    S("google/gemma-2-9b-it", GEMMA2_SW, FORMULA, 9.24, 42, 3584, 16, 8, 256, 14336, 256000, 8192, 4096, 21, 1),
    T("google/gemma-2b", GEMMA_MQA, FORMULA, 2.51, 18, 2048, 8, 1, 256, 16384, 256000, 8192),
    S("google/gemma-3-12b-it", GEMMA3_SW, WATTGPU, 12.19, 48, 3840, 16, 8, 256, 15360, 262208, 131072, 1024, 40, 1),
    S("google/gemma-3-1b-it", GEMMA3_MQSW, FORMULA, 1, 26, 1152, 4, 1, 256, 6912, 262144, 32768, 512, 22, 1),
    S("google/gemma-3-27b-it", GEMMA3_SW, WATTGPU, 27.43, 62, 5376, 32, 16, 128, 21504, 262208, 131072, 1024, 52, 1),
    S("google/gemma-3-4b-it", GEMMA3_SW, RECALL, 4.3, 34, 2560, 8, 4, 256, 10240, 262208, 131072, 1024, 29, 1),
    T("google/gemma-7b", GEMMA_MHA, FORMULA, 8.54, 28, 3072, 16, 16, 256, 24576, 256000, 8192),
    S("HuggingFaceH4/zephyr-7b-beta", MISTRAL_SW, FORMULA, 7.241, 32, 4096, 32, 8, 128, 14336, 32000, 32768, 4096, 32,
      0),
    T("HuggingFaceTB/SmolLM-1.7B", LLAMA_MHA, FORMULA, 1.71, 24, 2048, 32, 32, 64, 8192, 49152, 2048),
    T("HuggingFaceTB/SmolLM2-1.7B-Instruct", LLAMA_MHA, FORMULA, 1.711, 24, 2048, 32, 32, 64, 8192, 49152, 8192),
    D("huggyllama/llama-13b", LLAMA_MHA, FORMULA, 13.02, 40, 5120, 40, 40, 128, 13824, 32000, 2048),
    D("huggyllama/llama-7b", LLAMA_MHA, FORMULA, 6.74, 32, 4096, 32, 32, 128, 11008, 32000, 2048),
    MX("ibm-granite/granite-3.0-3b-a800m-instruct", GRANITEMOE, FORMULA, 3.299, 0.882775, 32, 1536, 24, 8, 64, 0, 49155,
      4096, 40, 8, 512, 32, 0, 0, 0, 1, "", NAN),
    T("ibm-granite/granite-3.1-8b-instruct", GRANITE, FORMULA, 8.17, 40, 4096, 32, 8, 128, 12800, 49155, 131072),
    Q("ibm/mpt-7b-instruct2", MPT, FORMULA, 6.65, 32, 4096, 32, 32, 128, 16384, 50432, 2048),
    D("internlm/internlm2-20b", INTERNLM2, FORMULA, 19.86, 48, 6144, 48, 8, 128, 16384, 92544, 32768),
    D("internlm/internlm2-7b", INTERNLM2, WATTGPU, 7.74, 32, 4096, 32, 8, 128, 14336, 92544, 32768),
    H("jet-ai/Jet-Nemotron-2B", JETNEMOTRON, RECALL, 1.96, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    D("lmsys/vicuna-13b-v1.5", LLAMA2_MHA, FORMULA, 13.02, 40, 5120, 40, 40, 128, 13824, 32000, 4096),
    D("lmsys/vicuna-7b-v1.5", LLAMA2_MHA, FORMULA, 6.74, 32, 4096, 32, 32, 128, 11008, 32000, 4096),
    D("meta-llama/Llama-2-13b-chat-hf", LLAMA2_MHA, WATTGPU, 13.02, 40, 5120, 40, 40, 128, 13824, 32000, 4096),
    D("meta-llama/Llama-2-13b-hf", LLAMA2_MHA, FORMULA, 13.02, 40, 5120, 40, 40, 128, 13824, 32000, 4096),
    D("meta-llama/Llama-2-70b-chat-hf", LLAMA2, FORMULA, 68.98, 80, 8192, 64, 8, 128, 28672, 32000, 4096),
    D("meta-llama/Llama-2-70b-hf", LLAMA2, FORMULA, 68.98, 80, 8192, 64, 8, 128, 28672, 32000, 4096),
    D("meta-llama/Llama-2-7b-chat-hf", LLAMA2_MHA, FORMULA, 6.74, 32, 4096, 32, 32, 128, 11008, 32000, 4096),
    D("meta-llama/Llama-2-7b-hf", LLAMA2_MHA, FORMULA, 6.74, 32, 4096, 32, 32, 128, 11008, 32000, 4096),
    D("meta-llama/Llama-3.1-405B", LLAMA3, AIC_SAME, 405.85, 126, 16384, 128, 8, 128, 53248, 128256, 131072),
    D("meta-llama/Llama-3.1-405B-Instruct", LLAMA3, AIC_SAME, 405.85, 126, 16384, 128, 8, 128, 53248, 128256, 131072),
    D("meta-llama/Llama-3.1-70B", LLAMA3, AIC_SAME, 70.55, 80, 8192, 64, 8, 128, 28672, 128256, 131072),
    D("meta-llama/Llama-3.1-70B-Instruct", LLAMA3, AIC_SAME, 70.55, 80, 8192, 64, 8, 128, 28672, 128256, 131072),
    D("meta-llama/Llama-3.1-8B", LLAMA3, AIC_SAME, 8.03, 32, 4096, 32, 8, 128, 14336, 128256, 131072),
    D("meta-llama/Llama-3.1-8B-Instruct", LLAMA3, WATTGPU, 8.03, 32, 4096, 32, 8, 128, 14336, 128256, 131072),
    T("meta-llama/Llama-3.2-1B", LLAMA3, FORMULA, 1.236, 16, 2048, 32, 8, 64, 8192, 128256, 131072),
    T("meta-llama/Llama-3.2-1B-Instruct", LLAMA3, FORMULA, 1.24, 16, 2048, 32, 8, 64, 8192, 128256, 131072),
    T("meta-llama/Llama-3.2-3B", LLAMA3, FORMULA, 3.213, 28, 3072, 24, 8, 128, 8192, 128256, 131072),
    T("meta-llama/Llama-3.2-3B-Instruct", LLAMA3, WATTGPU, 3.21, 28, 3072, 24, 8, 128, 8192, 128256, 131072),
    D("meta-llama/Llama-3.3-70B-Instruct", LLAMA3, AIC_SAME, 70.55, 80, 8192, 64, 8, 128, 28672, 128256, 131072),
    MX("meta-llama/Llama-4-Maverick-17B-128E-Instruct", LLAMA4, AIC, 401.65, 17, 48, 5120, 40, 8, 128, 16384, 202048,
      1048576, 128, 1, 8192, 24, 8192, 8192, 36, 0, "", NAN),
    MX("meta-llama/Llama-4-Scout-17B-16E-Instruct", LLAMA4, AIC, 108.64, 17, 48, 5120, 40, 8, 128, 16384, 202048,
      10485760, 16, 1, 8192, 48, 8192, 8192, 36, 0, "", NAN),
    D("meta-llama/Llama-Guard-3-8B", LLAMA3, FORMULA, 8.03, 32, 4096, 32, 8, 128, 14336, 128256, 131072),
    D("meta-llama/Meta-Llama-3-70B", LLAMA3, FORMULA, 70.55, 80, 8192, 64, 8, 128, 28672, 128256, 8192),
    D("meta-llama/Meta-Llama-3-70B-Instruct", LLAMA3, FORMULA, 70.55, 80, 8192, 64, 8, 128, 28672, 128256, 8192),
    D("meta-llama/Meta-Llama-3-8B", LLAMA3, FORMULA, 8.03, 32, 4096, 32, 8, 128, 14336, 128256, 8192),
    D("meta-llama/Meta-Llama-3-8B-Instruct", LLAMA3, FORMULA, 8.03, 32, 4096, 32, 8, 128, 14336, 128256, 8192),
    D("meta-llama/Meta-Llama-3.1-405B-Instruct", LLAMA3, AIC_SAME, 405.85, 126, 16384, 128, 8, 128, 53248, 128256,
      131072),
    D("meta-llama/Meta-Llama-3.1-70B-Instruct", LLAMA3, AIC_SAME, 70.55, 80, 8192, 64, 8, 128, 28672, 128256, 131072),
    D("meta-llama/Meta-Llama-3.1-8B-Instruct", LLAMA3, AIC_SAME, 8.03, 32, 4096, 32, 8, 128, 14336, 128256, 131072),
    P("microsoft/phi-1", PHI_MHA, FORMULA, 1.42, 24, 2048, 32, 32, 64, 8192, 51200, 2048),
    P("microsoft/phi-1_5", PHI_MHA, FORMULA, 1.42, 24, 2048, 32, 32, 64, 8192, 51200, 2048),
    P("microsoft/phi-2", PHI_MHA, WATTGPU, 2.78, 32, 2560, 32, 32, 80, 10240, 51200, 2048),
    D("microsoft/Phi-3-medium-128k-instruct", PHI3, FORMULA, 13.96, 40, 5120, 40, 10, 128, 17920, 32064, 131072),
    D("microsoft/Phi-3-medium-4k-instruct", PHI3, WATTGPU, 13.96, 40, 5120, 40, 10, 128, 17920, 32064, 4096),
    D("microsoft/Phi-3-mini-128k-instruct", PHI3_MHA, FORMULA, 3.821, 32, 3072, 32, 32, 96, 8192, 32064, 131072),
    D("microsoft/Phi-3-mini-4k-instruct", PHI3_MHA, WATTGPU, 3.82, 32, 3072, 32, 32, 96, 8192, 32064, 4096),
    T("microsoft/Phi-3-small-8k-instruct", PHI3_BS, FORMULA, 7.39, 32, 4096, 32, 8, 128, 14336, 100352, 8192),
    D("microsoft/Phi-3.5-mini-instruct", PHI3_MHA, FORMULA, 3.82, 32, 3072, 32, 32, 96, 8192, 32064, 131072),
    M("microsoft/Phi-3.5-MoE-instruct", PHIMOE, FORMULA, 41.87, 6.6, 32, 4096, 32, 8, 128, 0, 32064, 131072, 16, 2,
      6400, 32, 0),
    D("microsoft/phi-4", PHI3, WATTGPU, 14.66, 40, 5120, 40, 10, 128, 17920, 100352, 16384),
    T("microsoft/Phi-4-mini-instruct", PHI3, FORMULA, 3.84, 32, 3072, 24, 8, 128, 8192, 200064, 131072),
    D("microsoft/Phi-4-reasoning", PHI3, FORMULA, 14.66, 40, 5120, 40, 10, 128, 17920, 100352, 32768),
    M("MiniMaxAI/MiniMax-M2", MINIMAXM2, FORMULA, 228.7, 11.03, 62, 3072, 48, 8, 128, 0, 200064, 196608, 256, 8, 1536,
      62, 0),
    M("MiniMaxAI/MiniMax-M2.5", MINIMAXM2, AIC, 229, 10, 62, 3072, 48, 8, 128, 0, 200064, 196608, 256, 8, 1536, 62, 0),
    D("mistralai/Codestral-22B-v0.1", MISTRAL, FORMULA, 22.25, 56, 6144, 48, 8, 128, 16384, 32768, 32768),
    D("mistralai/Devstral-Small-2505", MISTRAL, FORMULA, 23.57, 40, 5120, 32, 8, 128, 32768, 131072, 131072),
    D("mistralai/Ministral-8B-Instruct-2410", MISTRAL, FORMULA, 8.02, 36, 4096, 32, 8, 128, 12288, 131072, 32768),
    S("mistralai/Mistral-7B-Instruct-v0.1", MISTRAL_SW, FORMULA, 7.241, 32, 4096, 32, 8, 128, 14336, 32000, 32768, 4096,
      32, 0),
    D("mistralai/Mistral-7B-Instruct-v0.2", MISTRAL, FORMULA, 7.24, 32, 4096, 32, 8, 128, 14336, 32000, 32768),
    D("mistralai/Mistral-7B-Instruct-v0.3", MISTRAL, WATTGPU, 7.25, 32, 4096, 32, 8, 128, 14336, 32768, 32768),
    S("mistralai/Mistral-7B-v0.1", MISTRAL_SW, FORMULA, 7.24, 32, 4096, 32, 8, 128, 14336, 32000, 32768, 4096, 32, 0),
    D("mistralai/Mistral-7B-v0.3", MISTRAL, FORMULA, 7.248, 32, 4096, 32, 8, 128, 14336, 32768, 32768),
    D("mistralai/Mistral-Large-Instruct-2407", MISTRAL, FORMULA, 122.61, 88, 12288, 96, 8, 128, 28672, 32768, 131072),
    D("mistralai/Mistral-Large-Instruct-2411", MISTRAL, FORMULA, 122.6, 88, 12288, 96, 8, 128, 28672, 32768, 131072),
    D("mistralai/Mistral-Nemo-Base-2407", MISTRAL, FORMULA, 12.25, 40, 5120, 32, 8, 128, 14336, 131072, 131072),
    D("mistralai/Mistral-Nemo-Instruct-2407", MISTRAL, FORMULA, 12.25, 40, 5120, 32, 8, 128, 14336, 131072, 131072),
    D("mistralai/Mistral-Small-24B-Instruct-2501", MISTRAL, FORMULA, 23.57, 40, 5120, 32, 8, 128, 32768, 131072, 32768),
    D("mistralai/Mistral-Small-3.1-24B-Instruct-2503", MISTRAL, FORMULA, 23.57, 40, 5120, 32, 8, 128, 32768, 131072,
      131072),
    D("mistralai/Mistral-Small-3.2-24B-Instruct-2506", MISTRAL, FORMULA, 23.57, 40, 5120, 32, 8, 128, 32768, 131072,
      131072),
    D("mistralai/Mistral-Small-Instruct-2409", MISTRAL, FORMULA, 22.25, 56, 6144, 48, 8, 128, 16384, 32768, 32768),
    M("mistralai/Mixtral-8x22B-Instruct-v0.1", MIXTRAL, FORMULA, 140.63, 39.16, 56, 6144, 48, 8, 128, 0, 32768, 65536,
      8, 2, 16384, 56, 0),
    M("mistralai/Mixtral-8x22B-v0.1", MIXTRAL, AIC, 140.62, 39.15, 56, 6144, 48, 8, 128, 0, 32000, 65536, 8, 2, 16384,
      56, 0),
    M("mistralai/Mixtral-8x7B-Instruct-v0.1", MIXTRAL, AIC_SAME, 46.7, 12.88, 32, 4096, 32, 8, 128, 0, 32000, 32768, 8,
      2, 14336, 32, 0),
    M("mistralai/Mixtral-8x7B-v0.1", MIXTRAL, AIC, 46.7, 12.88, 32, 4096, 32, 8, 128, 0, 32000, 32768, 8, 2, 14336, 32,
      0),
    L("moonshotai/Kimi-K2-Instruct", KIMIK2, FORMULA, 1026, 32.86, 61, 7168, 64, 18432, 163840, 131072, 384, 8, 2048,
      60, 2048, 1536, "fp8", 8),
    L("moonshotai/Kimi-K2-Instruct-0905", KIMIK2, FORMULA, 1026, 32.86, 61, 7168, 64, 18432, 163840, 262144, 384, 8,
      2048, 60, 2048, 1536, "fp8", 8),
    L("moonshotai/Kimi-K2.5", KIMIK2, AIC, 1040, 32, 61, 7168, 64, 18432, 163840, 262144, 384, 8, 2048, 60, 2048, 1536,
      "int4", 4),
    Q("mosaicml/mpt-30b", MPT, FORMULA, 29.97, 48, 7168, 64, 64, 112, 28672, 50432, 8192),
    Q("mosaicml/mpt-7b", MPT, FORMULA, 6.649, 32, 4096, 32, 32, 128, 16384, 50432, 2048),
    D("nvidia/Llama-3.1-Nemotron-70B-Instruct-HF", LLAMA3, FORMULA, 70.55, 80, 8192, 64, 8, 128, 28672, 128256, 131072),
    D("nvidia/Llama-3.1-Nemotron-Nano-8B-v1", LLAMA3, FORMULA, 8.03, 32, 4096, 32, 8, 128, 14336, 128256, 131072),
    H("nvidia/Llama-3_3-Nemotron-Super-49B-v1", NEMOTRONNAS_VAR, AIC, 49.87, 80, 8192, 64, 8, 128, 0, 128256, 131072,
      0),
    H("nvidia/NVIDIA-Nemotron-Nano-12B-v2", NEMOTRONH, RECALL, 12.31, 62, 5120, 40, 8, 128, 20480, 131072, 131072, 6),
    H("nvidia/NVIDIA-Nemotron-Nano-9B-v2", NEMOTRONH, RECALL, 8.89, 56, 4480, 40, 8, 128, 15680, 131072, 131072, 4),
    MX("openai/gpt-oss-120b", GPTOSS_SW, AIC, 116.83, 5.13, 36, 2880, 64, 8, 64, 0, 201088, 131072, 128, 4, 2880, 36, 0,
      128, 18, 0, "mxfp4", 4),
    MX("openai/gpt-oss-20b", GPTOSS_SW, AIC, 20.91, 3.61, 24, 2880, 64, 8, 64, 0, 201088, 131072, 32, 4, 2880, 24, 0,
      128, 12, 0, "mxfp4", 4),
    H("openbmb/MiniCPM3-4B", MINICPM3, RECALL, 4.07, 62, 2560, 40, 0, 0, 6400, 73448, 32768, 0),
    D("OrionStarAI/Orion-14B-Base", ORION_MHA, FORMULA, 14.5, 40, 5120, 40, 40, 128, 15360, 84608, 4096),
    D("Qwen/Qwen-7B-Chat", QWEN_MHA, FORMULA, 7.72, 32, 4096, 32, 32, 128, 11008, 151936, 32768),
    D("Qwen/Qwen1.5-110B-Chat", QWEN15, FORMULA, 111.21, 80, 8192, 64, 8, 128, 49152, 152064, 32768),
    D("Qwen/Qwen1.5-32B-Chat", QWEN15, FORMULA, 32.51, 64, 5120, 40, 8, 128, 27392, 152064, 32768),
    D("Qwen/Qwen1.5-72B-Chat", QWEN15_MHA, FORMULA, 72.29, 80, 8192, 64, 64, 128, 24576, 152064, 32768),
    D("Qwen/Qwen1.5-7B", QWEN15_MHA, FORMULA, 7.72, 32, 4096, 32, 32, 128, 11008, 151936, 32768),
    D("Qwen/Qwen1.5-7B-Chat", QWEN15_MHA, FORMULA, 7.72, 32, 4096, 32, 32, 128, 11008, 151936, 32768),
    D("Qwen/Qwen2-72B", QWEN2, FORMULA, 72.71, 80, 8192, 64, 8, 128, 29568, 152064, 131072),
    D("Qwen/Qwen2-72B-Instruct", QWEN2, FORMULA, 72.71, 80, 8192, 64, 8, 128, 29568, 152064, 32768),
    D("Qwen/Qwen2-7B", QWEN2, FORMULA, 7.62, 28, 3584, 28, 4, 128, 18944, 152064, 131072),
    D("Qwen/Qwen2-7B-Instruct", QWEN2, FORMULA, 7.62, 28, 3584, 28, 4, 128, 18944, 152064, 32768),
    T("Qwen/Qwen2.5-0.5B", QWEN25, FORMULA, 0.494, 24, 896, 14, 2, 64, 4864, 151936, 32768),
    T("Qwen/Qwen2.5-0.5B-Instruct", QWEN25, FORMULA, 0.494, 24, 896, 14, 2, 64, 4864, 151936, 32768),
    T("Qwen/Qwen2.5-1.5B", QWEN25, FORMULA, 1.54, 28, 1536, 12, 2, 128, 8960, 151936, 131072),
    T("Qwen/Qwen2.5-1.5B-Instruct", QWEN25, FORMULA, 1.544, 28, 1536, 12, 2, 128, 8960, 151936, 32768),
    D("Qwen/Qwen2.5-14B", QWEN25, FORMULA, 14.77, 48, 5120, 40, 8, 128, 13824, 152064, 131072),
    D("Qwen/Qwen2.5-14B-Instruct", QWEN25, FORMULA, 14.77, 48, 5120, 40, 8, 128, 13824, 152064, 32768),
    D("Qwen/Qwen2.5-32B", QWEN25, FORMULA, 32.76, 64, 5120, 40, 8, 128, 27648, 152064, 131072),
    D("Qwen/Qwen2.5-32B-Instruct", QWEN25, FORMULA, 32.76, 64, 5120, 40, 8, 128, 27648, 152064, 32768),
    T("Qwen/Qwen2.5-3B", QWEN25, FORMULA, 3.09, 36, 2048, 16, 2, 128, 11008, 151936, 32768),
    T("Qwen/Qwen2.5-3B-Instruct", QWEN25, FORMULA, 3.086, 36, 2048, 16, 2, 128, 11008, 151936, 32768),
    D("Qwen/Qwen2.5-72B", QWEN25, FORMULA, 72.7, 80, 8192, 64, 8, 128, 29568, 152064, 131072),
    D("Qwen/Qwen2.5-72B-Instruct", QWEN25, FORMULA, 72.71, 80, 8192, 64, 8, 128, 29568, 152064, 32768),
    D("Qwen/Qwen2.5-7B", QWEN25, FORMULA, 7.62, 28, 3584, 28, 4, 128, 18944, 152064, 131072),
    D("Qwen/Qwen2.5-7B-Instruct", QWEN25, FORMULA, 7.615, 28, 3584, 28, 4, 128, 18944, 152064, 32768),
    D("Qwen/Qwen2.5-Coder-32B-Instruct", QWEN25, FORMULA, 32.76, 64, 5120, 40, 8, 128, 27648, 152064, 32768),
    D("Qwen/Qwen2.5-Coder-7B-Instruct", QWEN25, FORMULA, 7.62, 28, 3584, 28, 4, 128, 18944, 152064, 32768),
    T("Qwen/Qwen3-0.6B", QWEN3, AIC, 0.596, 28, 1024, 16, 8, 128, 3072, 151936, 40960),
    T("Qwen/Qwen3-1.7B", QWEN3, FORMULA, 1.72, 28, 2048, 16, 8, 128, 6144, 151936, 40960),
    D("Qwen/Qwen3-14B", QWEN3, WATTGPU, 14.77, 40, 5120, 40, 8, 128, 17408, 151936, 40960),
    M("Qwen/Qwen3-235B-A22B", QWEN3MOE, AIC, 235.09, 22.14, 94, 4096, 64, 4, 128, 12288, 151936, 40960, 128, 8, 1536,
      94, 0),
    MX("Qwen/Qwen3-235B-A22B-FP8", QWEN3MOE, AIC, 235.09, 22.14, 94, 4096, 64, 4, 128, 12288, 151936, 40960, 128, 8,
      1536, 94, 0, 0, 0, 0, "fp8", 8),
    M("Qwen/Qwen3-235B-A22B-Instruct-2507", QWEN3MOE, FORMULA, 235.09, 22.14, 94, 4096, 64, 4, 128, 12288, 151936,
      262144, 128, 8, 1536, 94, 0),
    M("Qwen/Qwen3-235B-A22B-Thinking-2507", QWEN3MOE, FORMULA, 235.09, 22.14, 94, 4096, 64, 4, 128, 12288, 151936,
      262144, 128, 8, 1536, 94, 0),
    M("Qwen/Qwen3-30B-A3B", QWEN3MOE, AIC, 30.53, 3.35, 48, 2048, 32, 4, 128, 6144, 151936, 40960, 128, 8, 768, 48, 0),
    M("Qwen/Qwen3-30B-A3B-Instruct-2507", QWEN3MOE, FORMULA, 30.53, 3.35, 48, 2048, 32, 4, 128, 6144, 151936, 262144,
      128, 8, 768, 48, 0),
    M("Qwen/Qwen3-30B-A3B-Thinking-2507", QWEN3MOE, FORMULA, 30.53, 3.35, 48, 2048, 32, 4, 128, 6144, 151936, 262144,
      128, 8, 768, 48, 0),
    D("Qwen/Qwen3-32B", QWEN3, AIC, 32.76, 64, 5120, 64, 8, 128, 25600, 151936, 40960),
    T("Qwen/Qwen3-4B", QWEN3, FORMULA, 4.022, 36, 2560, 32, 8, 128, 9728, 151936, 40960),
    T("Qwen/Qwen3-4B-Instruct-2507", QWEN3, FORMULA, 4.022, 36, 2560, 32, 8, 128, 9728, 151936, 262144),
    D("Qwen/Qwen3-8B", QWEN3, AIC, 8.19, 36, 4096, 32, 8, 128, 12288, 151936, 40960),
    M("Qwen/Qwen3-Coder-30B-A3B-Instruct", QWEN3MOE, FORMULA, 30.53, 3.35, 48, 2048, 32, 4, 128, 6144, 151936, 262144,
      128, 8, 768, 48, 0),
    M("Qwen/Qwen3-Coder-480B-A35B-Instruct", QWEN3MOE, AIC, 480.15, 35.46, 62, 6144, 96, 8, 128, 8192, 151936, 262144,
      160, 8, 2560, 62, 0),
    HM("Qwen/Qwen3.5-397B-A17B", QWEN35MOE, AIC, 397, 17, 60, 4096, 32, 2, 256, 248320, 262144, 15, 512, 10, 1024, 60,
      1024),
    D("Qwen/QwQ-32B", QWEN25, FORMULA, 32.76, 64, 5120, 40, 8, 128, 27648, 152064, 40960),
    P("Salesforce/codegen-16B-multi", CODEGEN_MHA, FORMULA, 16.03, 34, 6144, 24, 24, 256, 24576, 51200, 2048),
    P("Salesforce/codegen2-16B", CODEGEN_MHA, FORMULA, 16.03, 34, 6144, 24, 24, 256, 24576, 51200, 2048),
    D("Salesforce/xgen-7b-8k-inst", LLAMA_MHA, FORMULA, 6.9, 32, 4096, 32, 32, 128, 11008, 51200, 8192),
    D("Skywork/Skywork-OR1-7B-Preview", QWEN2, FORMULA, 7.62, 28, 3584, 28, 4, 128, 18944, 152064, 131072),
    D("stabilityai/stablelm-2-12b-chat", STABLELM, FORMULA, 12.14, 40, 5120, 32, 8, 160, 13824, 100352, 4096),
    P("stabilityai/stablelm-tuned-alpha-7b", GPTNEOX_MHA, FORMULA, 7.87, 16, 6144, 48, 48, 128, 24576, 50432, 4096),
    D("THUDM/chatglm2-6b", CHATGLM_MQA, FORMULA, 6.24, 28, 4096, 32, 2, 128, 13696, 65024, 32768),
    P("tiiuae/falcon-180B", FALCON, FORMULA, 179.52, 80, 14848, 232, 8, 64, 59392, 65024, 2048),
    Q("tiiuae/falcon-40b", FALCON, FORMULA, 41.3, 60, 8192, 128, 8, 64, 32768, 65024, 2048),
    Q("tiiuae/falcon-40b-instruct", FALCON, FORMULA, 41.3, 60, 8192, 128, 8, 64, 32768, 65024, 2048),
    Q("tiiuae/falcon-7b", FALCON_MQA, FORMULA, 6.921, 32, 4544, 71, 1, 64, 18176, 65024, 2048),
    Q("tiiuae/falcon-7b-instruct", FALCON_MQA, FORMULA, 6.92, 32, 4544, 71, 1, 64, 18176, 65024, 2048),
    D("tiiuae/Falcon3-10B-Instruct", LLAMA, FORMULA, 10.31, 40, 3072, 12, 4, 256, 23040, 131072, 32768),
    D("TinyLlama/TinyLlama-1.1B-Chat-v1.0", LLAMA, FORMULA, 1.1, 22, 2048, 32, 4, 64, 5632, 32000, 2048),
    P("togethercomputer/RedPajama-INCITE-7B-Chat", GPTNEOX_MHA, FORMULA, 6.86, 32, 4096, 32, 32, 128, 16384, 50432,
      2048),
    D("upstage/SOLAR-10.7B-Instruct-v1.0", LLAMA, WATTGPU, 10.73, 48, 4096, 32, 8, 128, 14336, 32000, 4096),
    Q("WizardLM/WizardCoder-15B-V1.0", GPTBIGCODE_MQA, FORMULA, 15.52, 40, 6144, 48, 1, 128, 24576, 49153, 8192),
    D("WizardLM/WizardCoder-33B-V1.1", LLAMA, FORMULA, 33.34, 62, 7168, 56, 8, 128, 19200, 32256, 16384),
    M("xai-org/grok-2", GROK, FORMULA, 269.52, 114.895, 64, 8192, 64, 8, 128, 0, 131072, 131072, 8, 2, 16384, 64,
      32768),
    D("XiaomiMiMo/MiMo-7B-RL", MIMO, RECALL, 7.83, 36, 4096, 32, 8, 128, 11008, 151680, 32768),
    M("zai-org/GLM-4.5", GLM4MOE, FORMULA, 352.8, 33.63, 92, 5120, 96, 8, 128, 12288, 151552, 131072, 160, 8, 1536, 89,
      1536),
    M("zai-org/GLM-4.5-Air", GLM4MOE, FORMULA, 106.9, 13.42, 46, 4096, 96, 8, 128, 10944, 151552, 131072, 128, 8, 1408,
      45, 1408),
    M("zai-org/GLM-4.6", GLM4MOE, FORMULA, 352.8, 33.63, 92, 5120, 96, 8, 128, 12288, 151552, 202752, 160, 8, 1536, 89,
      1536),
    D("ZhipuAI/glm-4-9b-chat", GLM4_MQA, FORMULA, 9.4, 40, 4096, 32, 2, 128, 13696, 151552, 131072),
    /* clang-format on */
};
const size_t opi__llm_entries = sizeof opi__llms / sizeof opi__llms[0];
