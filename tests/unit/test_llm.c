/* SPDX-License-Identifier: Apache-2.0 */
/* The LLM table against the architecture formulas, and the names people type for its entries. */
#include "base/text.h"
#include "facts/llm.h"

#include <check.h>
#include <math.h>
#include <string.h>

Suite *suite_llm(void);

static opi_error err;
static opi_llm found;

static int32_t find(const char *name)
{
    memset(&err, 0, sizeof err);
    memset(&found, 0, sizeof found);
    found.struct_size = sizeof found;
    return opi_llm_find(name, &found, &err);
}

static void finds(const char *typed, const char *name)
{
    int32_t status = find(typed);
    ck_assert_msg(status == OPI_OK, "%s: %s", typed, err.message);
    ck_assert_str_eq(found.name, name);
    ck_assert_str_eq(opi__llm_by_name(typed)->name, name);
}

static int nocase_order(const char *a, const char *b)
{
    for (; *a && opi__lower(*a) == opi__lower(*b); a++, b++)
        ;
    return (unsigned char)opi__lower(*a) - (unsigned char)opi__lower(*b);
}

START_TEST(the_table_is_sorted_and_terminated)
{
    ck_assert_uint_ge(opi_llm_count(), 172);
    for (size_t i = 0; i < opi__llm_entries; i++) {
        const opi_llm *m = &opi__llms[i];
        ck_assert_uint_eq(m->struct_size, sizeof *m);
        if (i > 0)
            ck_assert_msg(nocase_order(opi__llms[i - 1].name, m->name) < 0, "%s is out of order", m->name);
        ck_assert_msg(m->flags == OPI_FACT_VERIFIED || m->flags == OPI_FACT_RECALLED, "%s has no mark", m->name);
        ck_assert(memchr(m->name, 0, sizeof m->name) && strchr(m->name, '/'));
        ck_assert(m->source[0] && memchr(m->source, 0, sizeof m->source));
        ck_assert(m->family[0] && memchr(m->family, 0, sizeof m->family));
        ck_assert(m->arch[0] && memchr(m->arch, 0, sizeof m->arch));
        ck_assert(m->attention[0] && memchr(m->attention, 0, sizeof m->attention));
        ck_assert_msg(m->params_b > 0 && m->active_params_b > 0 && m->active_params_b <= m->params_b, "%s", m->name);
        finds(m->name, m->name);
    }
}
END_TEST

/* Every verified entry of a complete shape: the formula gives the stated size within 2 %. Some entries state a vision
 * tower with it (Gemma 3: 0.42 billion). */
START_TEST(sizes_agree_with_the_formula)
{
    size_t checked = 0;
    for (size_t i = 0; i < opi__llm_entries; i++) {
        const opi_llm *m = &opi__llms[i];
        opi__llm_size s;
        if (!opi__llm_size_of(m, &s) || !(m->flags & OPI_FACT_VERIFIED))
            continue;
        double tower = strcmp(m->arch, "gemma3") == 0 && m->n_layers > 26 ? 0.42 : 0;
        double error = fabs((s.total / 1e9 + tower) / m->params_b - 1);
        ck_assert_msg(error < 0.02, "%s: stated %g, formula %g", m->name, m->params_b, s.total / 1e9);
        ck_assert(s.active <= s.total && s.active > 0);
        ck_assert_double_eq_tol(s.total, s.embedding + s.attention + s.mlp + s.router + s.experts, 1);
        checked++;
    }
    ck_assert_uint_ge(checked, 200);
}
END_TEST

START_TEST(cached_elements_agree_with_the_formula)
{
    for (size_t i = 0; i < opi__llm_entries; i++) {
        const opi_llm *m = &opi__llms[i];
        if (isnan(m->kv_elems_per_token))
            continue;
        double layers = m->n_kv_layers > 0 ? m->n_kv_layers : m->n_layers;
        double per_layer = 2.0 * m->n_kv_heads * m->head_dim;
        if (m->kv_lora_rank > 0)
            per_layer = m->kv_lora_rank + m->qk_rope_head_dim;
        if (strcmp(m->attention, "enc-dec") == 0)
            per_layer *= 2;
        ck_assert_msg(m->kv_elems_per_token == layers * per_layer, "%s: %g", m->name, m->kv_elems_per_token);
    }
}
END_TEST

START_TEST(facts_of_known_models)
{
    finds("Qwen/Qwen2.5-72B-Instruct", "Qwen/Qwen2.5-72B-Instruct");
    ck_assert_str_eq(found.family, "qwen2.5");
    ck_assert_str_eq(found.arch, "qwen2");
    ck_assert_double_eq(found.params_b, 72.71);
    ck_assert_double_eq(found.kv_elems_per_token, 163840);
    ck_assert_int_eq(found.intermediate_size, 29568);
    ck_assert(isnan(found.weight_bits));
    finds("deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-R1");
    ck_assert_str_eq(found.attention, "mla");
    ck_assert_double_eq(found.kv_elems_per_token, 35136);
    ck_assert_int_eq(found.n_moe_layers, 58);
    ck_assert_str_eq(found.quant, "fp8");
    finds("openai/gpt-oss-120b", "openai/gpt-oss-120b");
    ck_assert_int_eq(found.sliding_window, 128);
    ck_assert_int_eq(found.n_window_layers, 18);
    ck_assert_str_eq(found.quant, "mxfp4");
    finds("Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B");
    ck_assert_int_eq(found.tied_embeddings, 1);
    ck_assert_double_eq_tol(found.params_b, 0.596, 0.001);
    finds("Deci/DeciLM-7B", "Deci/DeciLM-7B"); /* what is not known is NaN, never a guess */
    ck_assert(isnan(found.kv_elems_per_token));
    ck_assert_uint_eq(found.flags, OPI_FACT_RECALLED);
}
END_TEST

START_TEST(names_people_type)
{
    finds("meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B-Instruct");
    finds("llama-3.1-70b", "meta-llama/Llama-3.1-70B");
    finds("llama3.1:70b", "meta-llama/Llama-3.1-70B");
    finds("LLAMA 3.1 70B INSTRUCT", "meta-llama/Llama-3.1-70B-Instruct");
    finds("Meta-Llama-3.1-405B", "meta-llama/Llama-3.1-405B");
    finds("llama-3-8b", "meta-llama/Meta-Llama-3-8B");
    finds("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct");
    finds("qwen2.5-72b", "Qwen/Qwen2.5-72B");
    finds("qwen3-8b", "Qwen/Qwen3-8B");
    finds("qwen3-235b", "Qwen/Qwen3-235B-A22B");
    finds("mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1");
    finds("gemma-2-9b", "google/gemma-2-9b-it");
    finds("gpt-oss-120b", "openai/gpt-oss-120b");
    finds("deepseek-r1", "deepseek-ai/DeepSeek-R1");
    finds("phi4", "microsoft/phi-4");
    finds("llama-4-scout", "meta-llama/Llama-4-Scout-17B-16E-Instruct");
    finds("codestral", "mistralai/Codestral-22B-v0.1");
    finds("mistral-nemo", "mistralai/Mistral-Nemo-Instruct-2407");
    finds("deepseek-r1-distill-qwen-32b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B");
    finds("llama-2-7b", "meta-llama/Llama-2-7b-hf");
}
END_TEST

START_TEST(a_size_is_never_another_size)
{
    ck_assert_int_eq(find("llama-3.1-80b"), OPI_E_UNKNOWN);
    ck_assert_int_eq(find("qwen1.5-8b"), OPI_E_UNKNOWN);
    ck_assert_int_eq(find("qwen2.5-2b"), OPI_E_UNKNOWN);
    finds("bloom-1b7", "bigscience/bloom-1b7");
    ck_assert_int_eq(find("8b"), OPI_E_AMBIGUOUS);
    ck_assert_ptr_null(strstr(err.message, "80B"));
    ck_assert_ptr_null(strstr(err.message, "1.8B"));
    ck_assert_int_eq(find("grok"), OPI_E_AMBIGUOUS); /* no size stated: not resolved, though only one entry fits */
    ck_assert_ptr_nonnull(strstr(err.message, "xai-org/grok-2"));
}
END_TEST

START_TEST(ambiguous_names_list_their_candidates)
{
    ck_assert_int_eq(find("gpt-oss"), OPI_E_AMBIGUOUS);
    ck_assert_str_eq(err.message,
                     "\"gpt-oss\" is not the whole name of an LLM; it fits: openai/gpt-oss-120b, openai/gpt-oss-20b");
    ck_assert_str_eq(found.name, "");
    ck_assert_int_eq(find("mistral-7b"), OPI_E_AMBIGUOUS); /* v0.1 has a window, v0.3 another vocabulary */
    ck_assert_ptr_nonnull(strstr(err.message, "mistralai/Mistral-7B-v0.1"));
    ck_assert_ptr_nonnull(strstr(err.message, "mistralai/Mistral-7B-Instruct-v0.3"));
    ck_assert_int_eq(find("llama"), OPI_E_AMBIGUOUS);
    ck_assert_ptr_nonnull(strstr(err.message, " more"));
    ck_assert_uint_lt(strlen(err.message), sizeof err.message - 1);
}
END_TEST

START_TEST(unknown_names_suggest_the_nearest)
{
    ck_assert_int_eq(find("meta-lama/Llama-3.1-70B-Instruct"), OPI_E_UNKNOWN); /* another organization */
    ck_assert_ptr_nonnull(strstr(err.message, "nearest names: meta-llama/Llama-3.1-70B-Instruct"));
    ck_assert_int_eq(find("llamma-3.1-70b"), OPI_E_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(err.message, "meta-llama/Llama-3.1-70B"));
    /* A quantized checkpoint is not silently its base. */
    ck_assert_int_eq(find("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"), OPI_E_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(err.message, "meta-llama/Llama-3.3-70B-Instruct"));
    ck_assert_int_eq(find(NULL), OPI_E_INVALID);
    ck_assert_int_eq(find(""), OPI_E_INVALID);
    ck_assert_int_eq(find("///"), OPI_E_UNKNOWN);
    ck_assert_ptr_null(opi__llm_by_name("no such model"));
    ck_assert_int_eq(opi_llm_at(opi_llm_count(), &found, &err), OPI_E_RANGE);
    ck_assert_int_eq(opi_llm_at(0, &found, &err), OPI_OK);
    ck_assert_str_eq(found.name, opi__llms[0].name);
}
END_TEST

START_TEST(shapes)
{
    const opi_llm *base = opi__llm_by_name("meta-llama/Llama-3.1-70B");
    const opi_llm *tuned = opi__llm_by_name("meta-llama/Llama-3.3-70B-Instruct");
    ck_assert_int_eq(opi__llm_same_shape(base, tuned), 1);
    ck_assert_int_eq(opi__llm_same_shape(base, opi__llm_by_name("codellama/CodeLlama-70b-hf")), 0); /* vocabulary */
    ck_assert_int_eq(opi__llm_same_shape(base, opi__llm_by_name("meta-llama/Llama-3.1-8B")), 0);
}
END_TEST

Suite *suite_llm(void)
{
    Suite *s = suite_create("llm");
    TCase *c = tcase_create("table");
    tcase_add_test(c, the_table_is_sorted_and_terminated);
    tcase_add_test(c, sizes_agree_with_the_formula);
    tcase_add_test(c, cached_elements_agree_with_the_formula);
    tcase_add_test(c, facts_of_known_models);
    tcase_add_test(c, names_people_type);
    tcase_add_test(c, a_size_is_never_another_size);
    tcase_add_test(c, ambiguous_names_list_their_candidates);
    tcase_add_test(c, unknown_names_suggest_the_nearest);
    tcase_add_test(c, shapes);
    suite_add_tcase(s, c);
    return s;
}
