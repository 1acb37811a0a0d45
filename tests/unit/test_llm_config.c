/* SPDX-License-Identifier: Apache-2.0 */
/* Hugging Face config.json. The texts are the shape keys of published configs, shortened. */
#include "facts/llm.h"
#include "omnipilot/omnipilot.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

Suite *suite_llm_config(void);

static opi_ctx *ctx;
static opi_error err;
static opi_llm m;

static void open_ctx(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
}

static void close_ctx(void)
{
    opi_ctx_destroy(ctx);
}

static int32_t read(const char *json)
{
    memset(&err, 0, sizeof err);
    memset(&m, 0, sizeof m);
    m.struct_size = sizeof m;
    return opi_llm_from_config(ctx, json, strlen(json), NULL, &m, &err);
}

static void reads(const char *json)
{
    int32_t status = read(json);
    ck_assert_msg(status == OPI_OK, "%s", err.message);
    ck_assert_uint_eq(m.struct_size, sizeof m);
}

/* Everything the memory formula uses is what the table says of the same model. */
static void same_as_table(const char *name)
{
    const opi_llm *t = opi__llm_by_name(name);
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(opi__llm_same_shape(&m, t), 1);
    ck_assert_str_eq(m.arch, t->arch);
    ck_assert_str_eq(m.family, t->family);
    ck_assert_str_eq(m.attention, t->attention);
    ck_assert_double_eq(m.kv_elems_per_token, t->kv_elems_per_token);
    ck_assert_int_eq(m.tied_embeddings, t->tied_embeddings);
    ck_assert_int_eq(m.mlp_matrices, t->mlp_matrices);
    ck_assert_int_eq(m.n_moe_layers, t->n_moe_layers);
    ck_assert_int_eq(m.shared_intermediate_size, t->shared_intermediate_size);
    ck_assert_str_eq(m.quant, t->quant);
    ck_assert_msg(fabs(m.params_b / t->params_b - 1) < 0.02, "%s: %g, table %g", name, m.params_b, t->params_b);
}

static void refused(const char *json, int32_t code, const char *part)
{
    int32_t status = read(json);
    ck_assert_msg(status == code, "status %d (%s), expected %d", status, err.message, code);
    ck_assert_msg(strstr(err.message, part) != NULL, "\"%s\" is not in \"%s\"", part, err.message);
    ck_assert_str_eq(m.name, ""); /* nothing was written */
}

START_TEST(llama)
{
    reads("{\"model_type\":\"llama\",\"hidden_size\":8192,\"intermediate_size\":28672,\"num_attention_heads\":64,"
          "\"num_hidden_layers\":80,\"num_key_value_heads\":8,\"vocab_size\":128256,\"max_position_embeddings\":131072,"
          "\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\"}");
    same_as_table("meta-llama/Llama-3.1-70B");
    ck_assert_str_eq(m.name, "llama");
    ck_assert_int_eq(m.max_context, 131072);
    ck_assert_int_eq(m.head_dim, 128);
    ck_assert(isnan(m.weight_bits) && isnan(m.kv_bits));
    ck_assert_double_eq_tol(m.params_b, 70.55, 0.01);
    ck_assert_double_eq(m.active_params_b, m.params_b);
    ck_assert_uint_eq(m.flags, OPI_FACT_VERIFIED);
}
END_TEST

START_TEST(missing_kv_heads_are_the_heads)
{
    reads("{\"model_type\":\"llama\",\"hidden_size\":4096,\"intermediate_size\":11008,\"num_attention_heads\":32,"
          "\"num_hidden_layers\":32,\"vocab_size\":32000,\"max_position_embeddings\":4096,"
          "\"num_key_value_heads\":null}");
    same_as_table("meta-llama/Llama-2-7b-hf");
    ck_assert_int_eq(m.n_kv_heads, 32);
}
END_TEST

START_TEST(explicit_head_dim_and_tied_embeddings)
{
    reads("{\"model_type\":\"qwen3\",\"hidden_size\":1024,\"head_dim\":128,\"intermediate_size\":3072,"
          "\"num_attention_heads\":16,\"num_key_value_heads\":8,\"num_hidden_layers\":28,\"vocab_size\":151936,"
          "\"max_position_embeddings\":40960,\"tie_word_embeddings\":true,\"sliding_window\":null,"
          "\"use_sliding_window\":false,\"max_window_layers\":28}");
    same_as_table("Qwen/Qwen3-0.6B");
    /* gemma leaves tie_word_embeddings to its class, which ties */
    reads("{\"model_type\":\"gemma\",\"hidden_size\":3072,\"head_dim\":256,\"intermediate_size\":24576,"
          "\"num_attention_heads\":16,\"num_key_value_heads\":16,\"num_hidden_layers\":28,\"vocab_size\":256000,"
          "\"max_position_embeddings\":8192}");
    same_as_table("google/gemma-7b");
}
END_TEST

START_TEST(multi_query_and_grouped_falcon)
{
    reads("{\"model_type\":\"falcon\",\"hidden_size\":4544,\"num_attention_heads\":71,\"num_hidden_layers\":32,"
          "\"multi_query\":true,\"new_decoder_architecture\":false,\"vocab_size\":65024,"
          "\"max_position_embeddings\":2048}");
    same_as_table("tiiuae/falcon-7b");
    reads("{\"model_type\":\"falcon\",\"hidden_size\":8192,\"num_attention_heads\":128,\"num_kv_heads\":8,"
          "\"num_hidden_layers\":60,\"multi_query\":true,\"new_decoder_architecture\":true,\"vocab_size\":65024,"
          "\"max_position_embeddings\":2048}");
    same_as_table("tiiuae/falcon-40b");
    reads("{\"model_type\":\"gpt_bigcode\",\"n_embd\":6144,\"n_head\":48,\"n_inner\":24576,\"n_layer\":40,"
          "\"n_positions\":8192,\"vocab_size\":49152,\"multi_query\":true}");
    same_as_table("bigcode/starcoder");
    reads("{\"model_type\":\"chatglm\",\"hidden_size\":4096,\"ffn_hidden_size\":13696,\"kv_channels\":128,"
          "\"num_attention_heads\":32,\"num_layers\":28,\"multi_query_attention\":true,\"multi_query_group_num\":2,"
          "\"padded_vocab_size\":65024,\"seq_length\":32768,\"tie_word_embeddings\":false}");
    ck_assert_int_eq(m.n_kv_heads, 2);
    ck_assert_double_eq(m.kv_elems_per_token, 14336);
}
END_TEST

START_TEST(gpt2_names)
{
    reads("{\"model_type\":\"gpt2\",\"n_embd\":768,\"n_head\":12,\"n_layer\":12,\"n_positions\":1024,\"n_ctx\":1024,"
          "\"n_inner\":null,\"vocab_size\":50257}");
    ck_assert_int_eq(m.intermediate_size, 3072);
    ck_assert_int_eq(m.mlp_matrices, 2);
    ck_assert_int_eq(m.tied_embeddings, 1);
    ck_assert_int_eq(m.max_context, 1024);
    ck_assert_double_eq_tol(m.params_b, 0.124, 0.001); /* GPT-2 small: 124 million */
    ck_assert_str_eq(m.attention, "mha");
}
END_TEST

START_TEST(latent_attention_and_deepseek_experts)
{
    reads("{\"model_type\":\"deepseek_v3\",\"hidden_size\":7168,\"intermediate_size\":18432,"
          "\"moe_intermediate_size\":2048,"
          "\"num_hidden_layers\":61,\"num_attention_heads\":128,\"num_key_value_heads\":128,\"n_routed_experts\":256,"
          "\"n_shared_experts\":1,\"num_experts_per_tok\":8,\"first_k_dense_replace\":3,\"moe_layer_freq\":1,"
          "\"kv_lora_rank\":512,\"q_lora_rank\":1536,\"qk_rope_head_dim\":64,\"qk_nope_head_dim\":128,"
          "\"v_head_dim\":128,"
          "\"vocab_size\":129280,\"max_position_embeddings\":163840,\"tie_word_embeddings\":false,"
          "\"quantization_config\":{\"quant_method\":\"fp8\",\"fmt\":\"e4m3\",\"weight_block_size\":[128,128]}}");
    same_as_table("deepseek-ai/DeepSeek-R1");
    ck_assert_double_eq(m.weight_bits, 8);
    ck_assert_double_eq_tol(m.params_b, 671, 1);
    ck_assert_double_eq_tol(m.active_params_b, 37.5, 0.5);
    reads("{\"model_type\":\"deepseek_v2\",\"hidden_size\":2048,\"intermediate_size\":10944,"
          "\"moe_intermediate_size\":1408,"
          "\"num_hidden_layers\":27,\"num_attention_heads\":16,\"n_routed_experts\":64,\"n_shared_experts\":2,"
          "\"num_experts_per_tok\":6,\"first_k_dense_replace\":1,\"kv_lora_rank\":512,\"q_lora_rank\":null,"
          "\"qk_rope_head_dim\":64,\"vocab_size\":102400,\"max_position_embeddings\":163840}");
    same_as_table("deepseek-ai/DeepSeek-V2-Lite");
}
END_TEST

START_TEST(expert_variants)
{
    reads("{\"model_type\":\"mixtral\",\"hidden_size\":4096,\"intermediate_size\":14336,\"num_attention_heads\":32,"
          "\"num_key_value_heads\":8,\"num_hidden_layers\":32,\"num_local_experts\":8,\"num_experts_per_tok\":2,"
          "\"vocab_size\":32000,\"max_position_embeddings\":32768,\"sliding_window\":null}");
    same_as_table("mistralai/Mixtral-8x7B-v0.1");
    ck_assert_double_eq_tol(m.active_params_b, 12.88, 0.01);
    reads("{\"model_type\":\"qwen3_moe\",\"hidden_size\":2048,\"intermediate_size\":6144,\"moe_intermediate_size\":768,"
          "\"num_attention_heads\":32,\"num_key_value_heads\":4,\"head_dim\":128,\"num_hidden_layers\":48,"
          "\"num_experts\":128,\"num_experts_per_tok\":8,\"decoder_sparse_step\":1,\"mlp_only_layers\":[],"
          "\"vocab_size\":151936,\"max_position_embeddings\":40960}");
    same_as_table("Qwen/Qwen3-30B-A3B");
    /* every second layer has experts, but not layer 1 */
    reads("{\"model_type\":\"qwen2_moe\",\"hidden_size\":2048,\"intermediate_size\":5632,"
          "\"moe_intermediate_size\":1408,"
          "\"shared_expert_intermediate_size\":5632,\"num_attention_heads\":16,\"num_hidden_layers\":24,"
          "\"num_experts\":60,"
          "\"num_experts_per_tok\":4,\"decoder_sparse_step\":2,\"mlp_only_layers\":[1],\"vocab_size\":151936,"
          "\"max_position_embeddings\":8192}");
    ck_assert_int_eq(m.n_moe_layers, 11);
    ck_assert_int_eq(m.shared_intermediate_size, 5632);
    reads("{\"model_type\":\"dbrx\",\"d_model\":6144,\"n_heads\":48,\"n_layers\":40,\"vocab_size\":100352,"
          "\"max_seq_len\":32768,\"attn_config\":{\"kv_n_heads\":8},\"ffn_config\":{\"ffn_hidden_size\":10752,"
          "\"moe_num_experts\":16,\"moe_top_k\":4}}");
    same_as_table("databricks/dbrx-instruct");
}
END_TEST

START_TEST(windows)
{
    reads("{\"model_type\":\"mistral\",\"hidden_size\":4096,\"intermediate_size\":14336,\"num_attention_heads\":32,"
          "\"num_key_value_heads\":8,\"num_hidden_layers\":32,\"vocab_size\":32000,\"max_position_embeddings\":32768,"
          "\"sliding_window\":4096}");
    same_as_table("mistralai/Mistral-7B-v0.1");
    ck_assert_int_eq(m.n_window_layers, 32);
    reads("{\"model_type\":\"gemma2\",\"hidden_size\":3584,\"head_dim\":256,\"intermediate_size\":14336,"
          "\"num_attention_heads\":16,\"num_key_value_heads\":8,\"num_hidden_layers\":42,\"vocab_size\":256000,"
          "\"max_position_embeddings\":8192,\"sliding_window\":4096}");
    same_as_table("google/gemma-2-9b-it");
    ck_assert_int_eq(m.n_window_layers, 21);
    /* the multimodal file: a nested text part that leaves out what equals its class, a vision part that is ignored */
    reads("{\"model_type\":\"gemma3\",\"vision_config\":{\"hidden_size\":1152,\"num_hidden_layers\":27},"
          "\"text_config\":"
          "{\"model_type\":\"gemma3_text\",\"hidden_size\":2560,\"intermediate_size\":10240,\"num_hidden_layers\":34,"
          "\"sliding_window\":1024}}");
    ck_assert_int_eq(m.n_window_layers, 29);
    ck_assert_int_eq(m.n_kv_heads, 4);
    ck_assert_double_eq(m.kv_elems_per_token, 69632);
    ck_assert_str_eq(m.family, "gemma3");
    reads("{\"model_type\":\"qwen2\",\"hidden_size\":1536,\"intermediate_size\":8960,\"num_attention_heads\":12,"
          "\"num_key_value_heads\":2,\"num_hidden_layers\":28,\"vocab_size\":151936,\"max_position_embeddings\":131072,"
          "\"sliding_window\":32768,\"use_sliding_window\":true,\"max_window_layers\":20,"
          "\"tie_word_embeddings\":true}");
    ck_assert_int_eq(m.n_window_layers, 8);
    ck_assert_int_eq(m.sliding_window, 32768);
}
END_TEST

START_TEST(listed_layers_and_mxfp4)
{
    char json[1200] = "{\"model_type\":\"gpt_oss\",\"hidden_size\":2880,\"intermediate_size\":2880,\"head_dim\":64,"
                      "\"num_attention_heads\":64,\"num_key_value_heads\":8,\"num_hidden_layers\":24,"
                      "\"num_local_experts\":32,\"experts_per_token\":4,\"vocab_size\":201088,\"sliding_window\":128,"
                      "\"max_position_embeddings\":131072,\"quantization_config\":{\"quant_method\":\"mxfp4\"},"
                      "\"layer_types\":[";
    for (int i = 0; i < 12; i++)
        strcat(json, i ? ",\"sliding_attention\",\"full_attention\"" : "\"sliding_attention\",\"full_attention\"");
    strcat(json, "]}");
    reads(json);
    same_as_table("openai/gpt-oss-20b");
    ck_assert_int_eq(m.n_window_layers, 12);
    /* only some layers keep a cache at all */
    reads("{\"model_type\":\"nemotron_h\",\"hidden_size\":4480,\"intermediate_size\":15680,\"num_attention_heads\":40,"
          "\"num_key_value_heads\":8,\"head_dim\":128,\"num_hidden_layers\":8,\"vocab_size\":131072,"
          "\"max_position_embeddings\":131072,\"hybrid_override_pattern\":\"M-M*-M-*\"}");
    ck_assert_int_eq(m.n_kv_layers, 2);
    ck_assert_double_eq(m.kv_elems_per_token, 2 * 2 * 8 * 128);
    ck_assert_str_eq(m.attention, "hybrid");
    ck_assert_uint_eq(m.flags, OPI_FACT_RECALLED); /* its size is an estimate */
}
END_TEST

START_TEST(layers_by_rule)
{
    /* three of four layers see a chunk only; every second one has experts and a shared expert of their width */
    reads("{\"model_type\":\"llama4\",\"text_config\":{\"model_type\":\"llama4_text\",\"hidden_size\":5120,"
          "\"intermediate_size\":8192,\"intermediate_size_mlp\":16384,\"num_hidden_layers\":48,"
          "\"num_attention_heads\":40,\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_size\":202048,"
          "\"max_position_embeddings\":1048576,\"attention_chunk_size\":8192,\"num_local_experts\":128,"
          "\"num_experts_per_tok\":1,\"interleave_moe_layer_step\":2}}");
    same_as_table("meta-llama/Llama-4-Maverick-17B-128E-Instruct");
    ck_assert_int_eq(m.n_window_layers, 36);
    /* every fourth layer has a cache */
    reads("{\"model_type\":\"qwen3_next\",\"hidden_size\":2048,\"num_attention_heads\":16,\"num_key_value_heads\":2,"
          "\"head_dim\":256,\"num_hidden_layers\":48,\"full_attention_interval\":4,\"num_experts\":512,"
          "\"num_experts_per_tok\":10,\"moe_intermediate_size\":512,\"shared_expert_intermediate_size\":512,"
          "\"vocab_size\":151936}");
    ck_assert_int_eq(m.n_kv_layers, 12);
    ck_assert_double_eq(m.kv_elems_per_token, 12 * 2 * 2 * 256);
    ck_assert_double_eq_tol(m.params_b, 80, 3); /* Qwen3-Next-80B */
    /* layers 4, 12, 20 and 28 of 32 */
    reads("{\"model_type\":\"jamba\",\"hidden_size\":4096,\"intermediate_size\":14336,\"num_attention_heads\":32,"
          "\"num_key_value_heads\":8,\"num_hidden_layers\":32,\"attn_layer_period\":8,\"attn_layer_offset\":4,"
          "\"vocab_size\":65536}");
    ck_assert_int_eq(m.n_kv_layers, 4);
    reads("{\"model_type\":\"cohere2\",\"hidden_size\":4096,\"intermediate_size\":14336,\"num_attention_heads\":32,"
          "\"num_key_value_heads\":8,\"num_hidden_layers\":32,\"sliding_window\":4096,\"vocab_size\":256000,"
          "\"max_position_embeddings\":131072}");
    ck_assert_int_eq(m.n_window_layers, 24);
    /* a window as long as the context is none */
    reads("{\"model_type\":\"mistral\",\"hidden_size\":64,\"intermediate_size\":128,\"num_attention_heads\":4,"
          "\"num_hidden_layers\":2,\"vocab_size\":100,\"sliding_window\":4096,\"max_position_embeddings\":4096}");
    ck_assert_int_eq(m.n_window_layers, 0);
    ck_assert_int_eq(m.sliding_window, 0);
    /* layers with experts, listed */
    reads("{\"model_type\":\"x\",\"hidden_size\":64,\"intermediate_size\":128,\"num_attention_heads\":4,"
          "\"num_hidden_layers\":4,\"vocab_size\":100,\"num_experts\":8,\"num_experts_per_tok\":2,"
          "\"moe_intermediate_size\":32,\"moe_layers\":[1,3]}");
    ck_assert_int_eq(m.n_moe_layers, 2);
}
END_TEST

#define SMALL                                                                                                        \
    "\"model_type\":\"llama\",\"hidden_size\":64,\"intermediate_size\":128,\"num_attention_heads\":4,"               \
    "\"num_hidden_layers\":2,\"vocab_size\":100"

START_TEST(quantizations)
{
    static const struct {
        const char *config, *quant;
        double weight_bits, kv_bits;
    } cases[] = {
        {"{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128}", "awq", 4, NAN},
        {"{\"quant_method\":\"gptq\",\"bits\":8}", "int8", 8, NAN},
        {"{\"quant_method\":\"gptq\",\"bits\":3}", "", 3, NAN},
        {"{\"quant_method\":\"fbgemm_fp8\"}", "fp8", 8, NAN},
        {"{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true,\"load_in_8bit\":false}", "int4", 4, NAN},
        {"{\"quant_method\":\"bitsandbytes\",\"load_in_8bit\":true}", "int8", 8, NAN},
        {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\",\"kv_cache_quant_algo\":\"FP8\"}", "nvfp4", 4, 8},
        {"{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_0\":{\"weights\":{\"num_bits\":8,"
         "\"type\":\"float\"}}},\"kv_cache_scheme\":{\"num_bits\":8,\"type\":\"float\"}}", "fp8", 8, 8},
        {"{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_0\":{\"weights\":{\"num_bits\":8,"
         "\"type\":\"int\"}}},\"kv_cache_scheme\":null}", "int8", 8, NAN},
        {"{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_0\":{\"weights\":{\"num_bits\":4,"
         "\"type\":\"int\"}}}}", "int4", 4, NAN},
        {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\"}", "fp8", 8, NAN},
        {"{\"quant_method\":\"quark\",\"global_quant_config\":{\"weight\":{\"dtype\":\"fp8_e4m3\"}}}", "fp8", 8, NAN},
        {"{\"quant_method\":\"quark\",\"global_quant_config\":{\"weight\":{\"dtype\":\"fp4\"}}}", "mxfp4", 4, NAN},
        {"{\"quant_method\":\"quark\",\"global_quant_config\":{\"weight\":{\"dtype\":\"int4\"}}}", "int4", 4, NAN},
        {"{\"quant_method\":\"new-one\",\"bits\":6}", "", 6, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[600];
        snprintf(json, sizeof json, "{" SMALL ",\"quantization_config\":%s}", cases[i].config);
        reads(json);
        ck_assert_str_eq(m.quant, cases[i].quant);
        ck_assert_double_eq(m.weight_bits, cases[i].weight_bits);
        ck_assert(isnan(cases[i].kv_bits) ? isnan(m.kv_bits) : m.kv_bits == cases[i].kv_bits);
    }
    refused("{" SMALL ",\"quantization_config\":{\"quant_method\":\"new-one\"}}", OPI_E_FORMAT,
            "\"new-one\" is not known");
    refused("{" SMALL ",\"quantization_config\":{\"quant_method\":\"a\\nb\"}}", OPI_E_FORMAT, "\"a?b\"");
    refused("{" SMALL ",\"quantization_config\":7}", OPI_E_FORMAT, "quantization_config is not an object");
    refused("{" SMALL ",\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":99}}", OPI_E_RANGE,
            "quantization_config.bits = 99: must be a whole number from 1 to 32");
}
END_TEST

START_TEST(refusals_name_the_key_the_value_and_the_limit)
{
    refused("", OPI_E_FORMAT, "config.json");
    refused("[1]", OPI_E_FORMAT, "not a JSON object");
    refused("{}", OPI_E_FORMAT, "no num_hidden_layers");
    refused("{" SMALL, OPI_E_FORMAT, "config.json");
    refused("{\"num_hidden_layers\":0}", OPI_E_RANGE, "num_hidden_layers = 0: must be a whole number from 1 to 4096");
    refused("{\"num_hidden_layers\":-3}", OPI_E_RANGE, "num_hidden_layers = -3");
    refused("{\"num_hidden_layers\":1e300}", OPI_E_RANGE, "num_hidden_layers = 1e+300");
    refused("{\"num_hidden_layers\":2.5}", OPI_E_RANGE, "num_hidden_layers = 2.5");
    refused("{\"num_hidden_layers\":\"32\"}", OPI_E_FORMAT, "num_hidden_layers is not a number");
    refused("{\"num_hidden_layers\":2,\"hidden_size\":64}", OPI_E_FORMAT, "no vocab_size");
    refused("{\"num_hidden_layers\":2,\"hidden_size\":64,\"vocab_size\":9}", OPI_E_FORMAT, "no num_attention_heads");
    refused("{" SMALL ",\"num_key_value_heads\":3}", OPI_E_RANGE, "num_key_value_heads = 3: must divide the 4");
    refused("{" SMALL ",\"num_key_value_heads\":8}", OPI_E_RANGE, "num_key_value_heads = 8: must divide the 4");
    refused("{\"num_hidden_layers\":2,\"hidden_size\":65,\"vocab_size\":9,\"num_attention_heads\":4}", OPI_E_RANGE,
            "hidden_size = 65: not a multiple of the 4 heads");
    refused("{" SMALL ",\"num_experts\":8}", OPI_E_FORMAT, "8 experts but no num_experts_per_tok");
    refused("{" SMALL ",\"num_experts\":8,\"num_experts_per_tok\":9}", OPI_E_RANGE, "must be at most the 8 experts");
    refused("{" SMALL ",\"n_routed_experts\":8,\"num_experts_per_tok\":2,\"first_k_dense_replace\":2}", OPI_E_RANGE,
            "leaves none of the 2 layers");
    refused("{" SMALL ",\"layer_types\":[\"full_attention\"]}", OPI_E_FORMAT,
            "layer_types is not a list of the 2 layers");
    refused("{" SMALL ",\"tie_word_embeddings\":\"no\"}", OPI_E_FORMAT,
            "tie_word_embeddings is neither true nor false");
    refused("{\"is_encoder_decoder\":true}", OPI_E_UNSUPPORTED, "encoder-decoder");
    refused("{\"num_hidden_layers\":4096,\"hidden_size\":1048576,\"vocab_size\":67108864,\"num_attention_heads\":1,"
            "\"intermediate_size\":16777216}", OPI_E_RANGE, "billion parameters");
    refused("{\"num_hidden_layers\":2,\"hidden_size\":64,\"vocab_size\":9,\"num_attention_heads\":4}", OPI_E_RANGE,
            "is intermediate_size stated?");
}
END_TEST

START_TEST(arguments)
{
    static const char json[] = "{" SMALL ",\"_name_or_path\":\"me/mine\"}";
    reads(json);
    ck_assert_str_eq(m.name, "me/mine");
    ck_assert_int_eq(opi_llm_from_config(ctx, json, strlen(json), "given", &m, &err), OPI_OK);
    ck_assert_str_eq(m.name, "given");
    ck_assert_int_eq(opi_llm_from_config(NULL, json, strlen(json), NULL, &m, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_llm_from_config(ctx, NULL, 1, NULL, &m, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_llm_from_config(ctx, json, strlen(json), NULL, NULL, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_llm_from_config(ctx, json, (size_t)1 << 30, NULL, &m, &err), OPI_E_RANGE);
    m.struct_size = 4;
    ck_assert_int_eq(opi_llm_from_config(ctx, json, strlen(json), NULL, &m, &err), OPI_E_INVALID);
    ck_assert_str_eq(m.name, "given");
}
END_TEST

Suite *suite_llm_config(void)
{
    Suite *s = suite_create("llm_config");
    TCase *c = tcase_create("config");
    tcase_add_checked_fixture(c, open_ctx, close_ctx);
    tcase_add_test(c, llama);
    tcase_add_test(c, missing_kv_heads_are_the_heads);
    tcase_add_test(c, explicit_head_dim_and_tied_embeddings);
    tcase_add_test(c, multi_query_and_grouped_falcon);
    tcase_add_test(c, gpt2_names);
    tcase_add_test(c, latent_attention_and_deepseek_experts);
    tcase_add_test(c, expert_variants);
    tcase_add_test(c, windows);
    tcase_add_test(c, listed_layers_and_mxfp4);
    tcase_add_test(c, layers_by_rule);
    tcase_add_test(c, quantizations);
    tcase_add_test(c, refusals_name_the_key_the_value_and_the_limit);
    tcase_add_test(c, arguments);
    suite_add_tcase(s, c);
    return s;
}
