/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled-in model: it is the file of the repository, it says where it comes from, and it answers everyday questions. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "facts/schema.h"
#include "omnipilot/omnipilot.h"

Suite *suite_default_model(void);

#define FILE_NAME "lib/model/default.opi" /* the tests run in the root of the repository */
#define LLM "meta-llama/Llama-3.1-70B-Instruct"

static opi_ctx *ctx;
static opi_model *model;
static opi_error err;

static void setup(void)
{
    model = NULL;
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
    ck_assert_msg(opi_model_load_default(ctx, &model, &err) == OPI_OK, "%s", err.message);
}

static void teardown(void)
{
    opi_model_free(model);
    opi_ctx_destroy(ctx);
}

static opi_config question(opi_gpu *gpu, opi_llm *llm)
{
    *gpu = (opi_gpu){.struct_size = sizeof *gpu};
    *llm = (opi_llm){.struct_size = sizeof *llm};
    ck_assert_int_eq(opi_gpu_find("H100-80GB-SXM", gpu, NULL), OPI_OK);
    ck_assert_int_eq(opi_llm_find(LLM, llm, NULL), OPI_OK);
    return (opi_config){.struct_size = sizeof(opi_config), .n_gpus = 8, .tp = 8, .llm = llm, .gpu = gpu, .engine = "vllm",
                        .precision = "fp8", .load_kind = "concurrency", .input_len = 1024, .output_len = 1024,
                        .concurrency = 32};
}

START_TEST(is_the_file)
{
    opi_text *bytes = NULL;
    opi_model *again = NULL;
    FILE *f = fopen(FILE_NAME, "rb");
    ck_assert_msg(f != NULL, "%s is not here: run from the root of the repository", FILE_NAME);
    ck_assert_int_eq(opi_model_save_memory(model, &bytes, &err), OPI_OK);
    size_t size = opi_text_size(bytes);
    char *file = malloc(size + 1);
    ck_assert_uint_eq(fread(file, 1, size + 1, f), size);
    fclose(f);
    ck_assert_mem_eq(file, opi_text_data(bytes), size);
    ck_assert_uint_lt(size, 8 << 20); /* a few MiB at most */
    free(file);
    ck_assert_int_eq(opi_model_load_file(ctx, FILE_NAME, &again, &err), OPI_OK);
    opi_prediction a[OPI__T_COUNT], b[OPI__T_COUNT];
    opi_gpu gpu;
    opi_llm llm;
    opi_config c = question(&gpu, &llm);
    memset(a, 0, sizeof a), memset(b, 0, sizeof b);
    ck_assert_int_eq(opi_predict(model, &c, 1, NULL, a, sizeof *a, NULL), OPI_OK);
    ck_assert_int_eq(opi_predict(again, &c, 1, NULL, b, sizeof *b, NULL), OPI_OK);
    ck_assert_mem_eq(a, b, sizeof a);
    opi_model_free(again);
    opi_text_free(bytes);
}
END_TEST

static const opi__json *member(const opi__json *o, const char *key)
{
    const opi__json *v = opi__json_get(o, key);
    ck_assert_msg(v != NULL, "no member \"%s\"", key);
    return v;
}

static double number(const opi__json *o, const char *key)
{
    double v = NAN;
    ck_assert_msg(opi__json_number(member(o, key), &v), "\"%s\" is no number", key);
    return v;
}

/* Sources with their licenses, the training table's hash and rows, and what held-out cells say of each learned target. */
START_TEST(says_where_it_comes_from)
{
    opi_text *text = NULL;
    opi__json *root = NULL;
    double rows = 0;
    ck_assert_int_eq(opi_model_inspect(model, &text, &err), OPI_OK);
    ck_assert_int_eq(opi__json_parse(opi_text_data(text), opi_text_size(text), "inspect", &root, &err), OPI_OK);
    opi_text_free(text);
    const opi__json *manifest = member(root, "manifest"), *table = member(manifest, "training_table");
    ck_assert_uint_eq(strspn(opi__json_string(member(table, "sha256")), "0123456789abcdef"), 64);
    for (const opi__json *s = opi__json_first(member(manifest, "sources")); s; s = opi__json_next(s)) {
        const char *license = opi__json_string(member(s, "license"));
        ck_assert_msg(license && *license && strcmp(license, "not stated"), "%s has no license",
                      opi__json_string(member(s, "source")));
        rows += number(s, "rows");
    }
    ck_assert_double_eq(rows, number(table, "usable_rows"));
    ck_assert(rows > 1000);
    size_t many = 0;
    for (const opi__json *t = opi__json_first(member(manifest, "held_out_cells")); t; t = opi__json_next(t)) {
        ck_assert(number(t, "median_ape") > 0 && number(t, "median_ape") < .5);
        if (number(t, "rows") < 300)
            continue;
        many++;
        ck_assert_msg(number(t, "coverage80") > .7 && number(t, "coverage80") < .9, "%s: %g", opi__json_key(t),
                      number(t, "coverage80"));
    }
    ck_assert_uint_ge(many, 5);
    opi__json_free(root);
}
END_TEST

START_TEST(answers_an_everyday_question)
{
    opi_gpu gpu;
    opi_llm llm;
    opi_config c = question(&gpu, &llm), more = c;
    opi_prediction p[OPI__T_COUNT], q[OPI__T_COUNT];
    more.concurrency = 64;
    ck_assert_int_eq(opi_predict(model, &c, 1, NULL, p, sizeof *p, NULL), OPI_OK);
    ck_assert_int_eq(opi_predict(model, &more, 1, NULL, q, sizeof *q, NULL), OPI_OK);
    static const size_t asked[] = {OPI__T_OUT_TOK_S, OPI__T_TTFT_P50, OPI__T_ITL_P50};
    for (size_t k = 0; k < 3; k++) {
        const opi_prediction *a = &p[asked[k]];
        ck_assert_msg(a->status == OPI_P_OK || a->status == OPI_P_NEW_COMBINATION, "target %zu: %s", asked[k],
                      opi_prediction_status_name(a->status));
        ck_assert(a->lo > 0 && a->lo < a->p50 && a->p50 < a->hi && isfinite(a->hi) && a->hi < 20 * a->lo);
        ck_assert_uint_ge(a->calibration_rows, 50);
    }
    ck_assert(p[OPI__T_OUT_TOK_S].p50 > 200 && p[OPI__T_OUT_TOK_S].p50 < 20000);
    ck_assert(p[OPI__T_ITL_P50].p50 > 2 && p[OPI__T_ITL_P50].p50 < 200);
    ck_assert(q[OPI__T_OUT_TOK_S].p50 > p[OPI__T_OUT_TOK_S].p50); /* more in flight: more throughput, slower tokens */
    ck_assert(q[OPI__T_ITL_P50].p50 > p[OPI__T_ITL_P50].p50);
}
END_TEST

START_TEST(refuses_null)
{
    opi_model *m = (opi_model *)&ctx;
    ck_assert_int_eq(opi_model_load_default(NULL, &m, NULL), OPI_E_INVALID);
    ck_assert_int_eq(opi_model_load_default(ctx, NULL, NULL), OPI_E_INVALID);
    ck_assert_ptr_eq(m, (opi_model *)&ctx);
}
END_TEST

Suite *suite_default_model(void)
{
    Suite *s = suite_create("default_model");
    TCase *t = tcase_create("default_model");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, is_the_file);
    tcase_add_test(t, says_where_it_comes_from);
    tcase_add_test(t, answers_an_everyday_question);
    tcase_add_test(t, refuses_null);
    suite_add_tcase(s, t);
    return s;
}
