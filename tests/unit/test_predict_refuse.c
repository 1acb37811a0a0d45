/* SPDX-License-Identifier: Apache-2.0 */
/* What predicting refuses, and how: bad arguments leave the outputs alone, bad rows are a status of their own. */
#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tiny_model.h"

Suite *suite_predict_refuse(void);

static opi_ctx *ctx;
static opi_model *model;
static opi_gpu gpu;
static opi_llm llm, other_llm;
static opi_config config;
static opi_error err;

static void setup(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
    model = tiny_model(ctx);
    ck_assert_ptr_nonnull(model);
    config = world_config(&gpu, &llm);
    memset(&err, 0, sizeof err);
}

static void teardown(void)
{
    opi_model_free(model);
    opi_ctx_destroy(ctx);
}

static opi_prediction out[4 * OPI__T_COUNT], pattern[4 * OPI__T_COUNT];

/* The call fails with `code`, a message that holds `word`, and not one byte written. */
static void refused(const opi_model *m, const opi_config *c, size_t n, const opi_predict_options *o, size_t out_size,
                    int32_t code, const char *word)
{
    memset(out, 0x5a, sizeof out);
    memset(pattern, 0x5a, sizeof pattern);
    memset(&err, 0, sizeof err);
    ck_assert_int_eq(opi_predict(m, c, n, o, out, out_size, &err), code);
    ck_assert_int_eq(opi_predict(m, c, n, o, out, out_size, NULL), code);
    ck_assert_mem_eq(out, pattern, sizeof out);
    ck_assert_int_eq(err.code, code);
    ck_assert_msg(strstr(err.message, word) != NULL, "\"%s\" lacks \"%s\"", err.message, word);
}

START_TEST(levels)
{
    static const double bad[] = {.499, .991, 1, -.8, 95, INFINITY, NAN};
    opi_predict_options o = {.struct_size = sizeof o};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        o.level = bad[i];
        refused(model, &config, 1, &o, sizeof *out, OPI_E_RANGE, "0.5 to 0.99");
    }
    ck_assert_msg(strstr(err.message, "level = nan") != NULL, "%s", err.message);
    for (int k = 0; k < 2; k++) {
        o.level = k ? .99 : .5;
        ck_assert_int_eq(opi_predict(model, &config, 1, &o, out, sizeof *out, NULL), OPI_OK);
        ck_assert_double_eq(out[0].level, o.level);
    }
}
END_TEST

START_TEST(targets)
{
    const size_t asked[] = {0, 3, OPI__T_COUNT, 1}, none = SIZE_MAX;
    opi_predict_options o = {.struct_size = sizeof o, .targets = asked, .n_targets = 4};
    refused(model, &config, 1, &o, sizeof *out, OPI_E_RANGE, "target 14: there are 14 targets");
    ck_assert_int_eq(err.index, 2);
    o.targets = &none, o.n_targets = 1;
    refused(model, &config, 1, &o, sizeof *out, OPI_E_RANGE, "there are 14 targets");
    o.targets = asked, o.n_targets = 0; /* nothing asked, nothing written */
    memset(out, 0x5a, sizeof out);
    memset(pattern, 0x5a, sizeof pattern);
    ck_assert_int_eq(opi_predict(model, &config, 1, &o, out, sizeof *out, &err), OPI_OK);
    ck_assert_mem_eq(out, pattern, sizeof out);
    o.n_targets = 2;
    ck_assert_int_eq(opi_predict(model, &config, 1, &o, out, sizeof *out, &err), OPI_OK);
    ck_assert_int_eq(out[1].target, 3);
    ck_assert_mem_eq(&out[2], pattern, sizeof *out);
}
END_TEST

START_TEST(null_arguments)
{
    double probability = 7;
    opi_support s = {.struct_size = sizeof s};
    refused(NULL, &config, 1, NULL, sizeof *out, OPI_E_INVALID, "NULL");
    refused(model, NULL, 1, NULL, sizeof *out, OPI_E_INVALID, "NULL");
    ck_assert_int_eq(opi_predict(model, &config, 1, NULL, NULL, sizeof *out, NULL), OPI_E_INVALID);
    ck_assert_int_eq(opi_predict(model, NULL, 0, NULL, NULL, sizeof *out, NULL), OPI_OK); /* nothing asked */
    ck_assert_int_eq(opi_predict_exceed(NULL, &config, 0, 1, &probability, NULL), OPI_E_INVALID);
    ck_assert_int_eq(opi_predict_exceed(model, NULL, 0, 1, &probability, NULL), OPI_E_INVALID);
    ck_assert_int_eq(opi_predict_exceed(model, &config, 0, 1, NULL, NULL), OPI_E_INVALID);
    ck_assert_int_eq(opi_predict_exceed(model, &config, OPI__T_COUNT, 1, &probability, &err), OPI_E_RANGE);
    ck_assert_int_eq(opi_predict_exceed(model, &config, 0, NAN, &probability, &err), OPI_E_RANGE);
    ck_assert_double_eq(probability, 7);
    ck_assert_int_eq(opi_predict_support(NULL, &config, 0, &s, NULL), OPI_E_INVALID);
    ck_assert_int_eq(opi_predict_support(model, NULL, 0, &s, NULL), OPI_E_INVALID);
    ck_assert_int_eq(opi_predict_support(model, &config, 0, NULL, NULL), OPI_E_INVALID);
    ck_assert_int_lt(opi_predict_support(model, &config, OPI__T_COUNT, &s, NULL), 0);
    s.struct_size = 0;
    ck_assert_int_eq(opi_predict_support(model, &config, 0, &s, NULL), OPI_E_INVALID);
}
END_TEST

/* ---- struct sizes ---- */

START_TEST(options_by_size)
{
    struct {
        opi_predict_options known;
        uint64_t more[2];
    } newer = {.known = {.struct_size = sizeof newer, .level = .9}};
    opi_predict_options o = {.struct_size = 0, .level = .9};
    refused(model, &config, 1, &o, sizeof *out, OPI_E_INVALID, "struct_size");
    o.struct_size = 7;
    refused(model, &config, 1, &o, sizeof *out, OPI_E_INVALID, "struct_size");
    ck_assert_int_eq(opi_predict(model, &config, 1, &newer.known, out, sizeof *out, NULL), OPI_OK);
    ck_assert_double_eq(out[0].level, .9);
    newer.more[1] = 1;
    refused(model, &config, 1, &newer.known, sizeof *out, OPI_E_VERSION, "newer");
    o = (opi_predict_options){.struct_size = offsetof(opi_predict_options, targets),
                              .level = .6,
                              .targets = (const size_t *)&config,
                              .n_targets = 99}; /* behind the stated size: not read */
    ck_assert_int_eq(opi_predict(model, &config, 1, &o, out, sizeof *out, NULL), OPI_OK);
    ck_assert_double_eq(out[0].level, .6);
    ck_assert_int_eq(out[13].target, 13);
}
END_TEST

/* Rows of an older and of a newer caller: the stride is the caller's own size. */
START_TEST(configurations_by_size)
{
    enum { OLD = offsetof(opi_config, max_context) };
    struct wide {
        opi_config known;
        uint64_t more[3];
    } newer[2];
    unsigned char older[2 * OLD];
    opi_prediction want[2], got[2];
    const size_t target = 0;
    const opi_predict_options o = {.struct_size = sizeof o, .targets = &target, .n_targets = 1};
    opi_config two[2] = {config, config};
    two[1].concurrency = 32;
    memset(newer, 0, sizeof newer);
    memset(want, 0, sizeof want), memset(got, 0, sizeof got);
    ck_assert_int_eq(opi_predict(model, two, 2, &o, want, sizeof *want, NULL), OPI_OK);
    ck_assert(want[0].status == OPI_P_OK && want[1].status == OPI_P_OK && want[0].p50 != want[1].p50);
    for (int i = 0; i < 2; i++) {
        newer[i].known = two[i];
        newer[i].known.struct_size = sizeof *newer;
        two[i].struct_size = OLD;
        memcpy(older + i * OLD, &two[i], OLD);
    }
    ck_assert_int_eq(opi_predict(model, &newer[0].known, 2, &o, got, sizeof *got, NULL), OPI_OK);
    ck_assert_mem_eq(got, want, sizeof want);
    memset(got, 0, sizeof got);
    ck_assert_int_eq(opi_predict(model, (const opi_config *)(const void *)older, 2, &o, got, sizeof *got, NULL),
                     OPI_OK);
    ck_assert_mem_eq(got, want, sizeof want);
    newer[1].more[2] = 1; /* says something this library does not know */
    ck_assert_int_eq(opi_predict(model, &newer[0].known, 2, &o, got, sizeof *got, NULL), OPI_OK);
    ck_assert(got[0].status == OPI_P_OK && got[1].status == OPI_P_ERROR);
    config.struct_size = 0;
    ck_assert_int_eq(opi_predict(model, &config, 1, &o, got, sizeof *got, NULL), OPI_OK);
    ck_assert_int_eq(got[0].status, OPI_P_ERROR);
}
END_TEST

START_TEST(predictions_by_size)
{
    struct wide {
        opi_prediction known;
        uint64_t more;
    } newer[2];
    enum { OLD = offsetof(opi_prediction, ood_distance) };
    unsigned char older[2 * OLD + 8];
    const size_t pair[] = {0, 3};
    const opi_predict_options o = {.struct_size = sizeof o, .targets = pair, .n_targets = 2};
    memset(out, 0, sizeof out);
    memset(older, 0x5a, sizeof older);
    memset(newer, 0x5a, sizeof newer);
    ck_assert_int_eq(opi_predict(model, &config, 1, &o, out, sizeof *out, NULL), OPI_OK);
    ck_assert_int_eq(opi_predict(model, &config, 1, &o, (opi_prediction *)(void *)older, OLD, NULL), OPI_OK);
    ck_assert_int_eq(opi_predict(model, &config, 1, &o, &newer[0].known, sizeof *newer, NULL), OPI_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_mem_eq(older + i * OLD, &out[i], OLD);
        ck_assert_mem_eq(&newer[i].known, &out[i], sizeof *out);
        ck_assert_uint_eq(newer[i].more, 0x5a5a5a5a5a5a5a5aull); /* not ours to write */
    }
    ck_assert_uint_eq(older[2 * OLD], 0x5a);
    refused(model, &config, 1, &o, 0, OPI_E_INVALID, "out_size = 0");
    refused(model, &config, 1, &o, 8, OPI_E_INVALID, "out_size = 8");
}
END_TEST

/* ---- rows without an answer ---- */

static void no_numbers(const opi_prediction *p, int32_t status)
{
    ck_assert_int_eq(p->status, status);
    ck_assert(isnan(p->p10) && isnan(p->p50) && isnan(p->p90) && isnan(p->lo) && isnan(p->hi) &&
              isnan(p->ood_distance));
    ck_assert(p->ood_axis == -1 && p->ood_axis2 == -1 && p->calibration_rows == 0);
}

/* Every target of the configuration is `status`, and the reason says `word`. */
static void whole_row(int32_t status, const char *word)
{
    char text[300];
    memset(out, 0, sizeof out);
    ck_assert_msg(opi_predict(model, &config, 1, NULL, out, sizeof *out, &err) == OPI_OK, "%s", err.message);
    for (int32_t t = 0; t < OPI__T_COUNT; t++) {
        no_numbers(&out[t], status);
        ck_assert_int_eq(out[t].target, t);
        opi_predict_reason(model, &config, &out[t], text, sizeof text);
        ck_assert_msg(strstr(text, word) != NULL, "\"%s\" lacks \"%s\"", text, word);
    }
}

START_TEST(context_that_cannot_be)
{
    config.input_len = 500000;
    whole_row(OPI_P_INFEASIBLE, "500256 tokens of context asked, " WORLD_LLM " holds at most 131072");
    config.input_len = 1024, config.max_context = 131073;
    whole_row(OPI_P_INFEASIBLE, "131073 tokens");
    config.max_context = 0;
    ck_assert_int_eq(opi_predict(model, &config, 1, NULL, out, sizeof *out, NULL), OPI_OK);
    ck_assert_int_eq(out[0].status, OPI_P_OK);
}
END_TEST

START_TEST(memory_that_is_not_there)
{
    other_llm = (opi_llm){.struct_size = sizeof other_llm};
    ck_assert_int_eq(opi_llm_find("meta-llama/Llama-3.1-405B-Instruct", &other_llm, NULL), OPI_OK);
    config.llm = &other_llm;
    whole_row(OPI_P_INFEASIBLE, "GiB per GPU missing");
}
END_TEST

START_TEST(rows_that_are_no_question)
{
    static const double bad[] = {-1, NAN, 1e308, INFINITY};
    opi_config good = config;
    for (size_t i = 0; i < 4; i++) {
        config = good, config.input_len = bad[i];
        whole_row(OPI_P_ERROR, "input_len");
        config = good, config.concurrency = bad[i];
        whole_row(OPI_P_ERROR, "concurrency");
        config = good, config.mem_util = bad[i];
        whole_row(OPI_P_ERROR, "mem_util");
    }
    config = good, config.tp = -2;
    whole_row(OPI_P_ERROR, "tp = -2");
    config = good, config.tp = 4;
    whole_row(OPI_P_ERROR, "n_gpus = 1");
    config = good, config.llm = NULL;
    whole_row(OPI_P_ERROR, "llm is NULL");
    config = good, config.gpu = NULL;
    whole_row(OPI_P_ERROR, "gpu is NULL");
}
END_TEST

/* A bad row does not disturb its neighbors. */
START_TEST(one_bad_row_in_a_batch)
{
    const size_t target = 0;
    const opi_predict_options o = {.struct_size = sizeof o, .targets = &target, .n_targets = 1};
    opi_config rows[4] = {config, config, config, config};
    opi_prediction alone;
    memset(&alone, 0, sizeof alone);
    memset(out, 0, sizeof out);
    rows[1].input_len = NAN;
    rows[2].input_len = 500000;
    ck_assert_int_eq(opi_predict(model, rows, 4, &o, out, sizeof *out, NULL), OPI_OK);
    ck_assert_int_eq(opi_predict(model, &config, 1, &o, &alone, sizeof alone, NULL), OPI_OK);
    ck_assert_mem_eq(&out[0], &alone, sizeof alone);
    no_numbers(&out[1], OPI_P_ERROR);
    no_numbers(&out[2], OPI_P_INFEASIBLE);
    ck_assert_mem_eq(&out[3], &alone, sizeof alone);
}
END_TEST

START_TEST(exceed_of_a_bad_row)
{
    double probability = 7;
    config.concurrency = -3;
    ck_assert_int_eq(opi_predict_exceed(model, &config, 0, 1, &probability, &err), OPI_E_RANGE);
    ck_assert_msg(strstr(err.message, "concurrency = -3") != NULL, "%s", err.message);
    ck_assert_double_eq(probability, 7);
}
END_TEST

/* ---- words ---- */

START_TEST(reasons_fit_the_buffer)
{
    char whole[300], part[300];
    config.concurrency = 100000;
    ck_assert_int_eq(opi_predict(model, &config, 1, NULL, out, sizeof *out, NULL), OPI_OK);
    size_t n = opi_predict_reason(model, &config, &out[0], whole, sizeof whole);
    ck_assert_uint_eq(n, strlen(whole));
    ck_assert_msg(strstr(whole, "100000 requests") || strstr(whole, "1e+05 requests"), "%s", whole);
    for (size_t size = 1; size < n + 2; size++) {
        memset(part, 0x5a, sizeof part);
        ck_assert_uint_eq(opi_predict_reason(model, &config, &out[0], part, size), n);
        ck_assert_uint_eq(strlen(part), size <= n ? size - 1 : n);
        ck_assert_mem_eq(part, whole, strlen(part));
        ck_assert_int_eq(part[size], 0x5a);
    }
    ck_assert_uint_eq(opi_predict_reason(model, &config, &out[0], NULL, 0), n);
    ck_assert_uint_eq(opi_predict_reason(NULL, &config, &out[0], part, sizeof part), 0);
    ck_assert_str_eq(part, "");
    ck_assert_uint_eq(opi_predict_reason(model, NULL, &out[0], part, sizeof part), 0);
    ck_assert_uint_eq(opi_predict_reason(model, &config, NULL, part, sizeof part), 0);
    out[0].target = 99; /* a prediction nobody made */
    ck_assert_uint_eq(opi_predict_reason(model, &config, &out[0], part, sizeof part), 0);
    out[0].target = 0, out[0].ood_axis = 12345;
    opi_predict_reason(model, &config, &out[0], part, sizeof part);
    out[0].ood_axis = 0, out[0].ood_axis2 = 12345, out[0].status = OPI_P_NEW_COMBINATION;
    opi_predict_reason(model, &config, &out[0], part, sizeof part);
    out[0].ood_axis2 = -12345;
    opi_predict_reason(model, &config, &out[0], part, sizeof part);
}
END_TEST

START_TEST(status_names)
{
    static const char *const want[] = {"ok", "new-combination", "uncalibrated", "ood", "infeasible", "error"};
    for (int32_t i = 0; i < 6; i++)
        ck_assert_str_eq(opi_prediction_status_name(i), want[i]);
    ck_assert_str_eq(opi_prediction_status_name(6), "?");
    ck_assert_str_eq(opi_prediction_status_name(-1), "?");
}
END_TEST

/* ---- identities: one learned figure answers for output and total tokens/s and requests/s ---- */

static opi_prediction one(const opi_config *c, size_t target)
{
    const opi_predict_options o = {.struct_size = sizeof o, .level = .9, .targets = &target, .n_targets = 1};
    opi_prediction p;
    ck_assert_int_eq(opi_predict(model, c, 1, &o, &p, sizeof p, NULL), OPI_OK);
    return p;
}

START_TEST(rates_agree)
{
    const opi_prediction output = one(&config, OPI__T_OUT_TOK_S), total = one(&config, OPI__T_TOTAL_TOK_S);
    const opi_prediction requests = one(&config, OPI__T_REQ_S);
    const double all = 1 + config.input_len / config.output_len;
    ck_assert_double_eq_tol(total.p50, output.p50 * all, 1e-9 * total.p50);
    ck_assert_double_eq_tol(total.hi, output.hi * all, 1e-9 * total.hi);
    ck_assert_double_eq_tol(requests.p50, output.p50 / config.output_len, 1e-9 * requests.p50);
    ck_assert_double_eq_tol(requests.lo, output.lo / config.output_len, 1e-9 * requests.lo);
    double a = 0, b = 0;
    ck_assert_int_eq(opi_predict_exceed(model, &config, OPI__T_OUT_TOK_S, output.p50 * 1.1, &a, NULL), OPI_OK);
    ck_assert_int_eq(opi_predict_exceed(model, &config, OPI__T_TOTAL_TOK_S, total.p50 * 1.1, &b, NULL), OPI_OK);
    ck_assert_double_eq_tol(a, b, 1e-12);
    opi_config blank = config; /* the identity needs the lengths */
    blank.input_len = 0;
    ck_assert_int_eq(one(&blank, OPI__T_TOTAL_TOK_S).status, OPI_P_UNCALIBRATED);
}
END_TEST

Suite *suite_predict_refuse(void)
{
    Suite *s = suite_create("predict_refuse");
    TCase *t = tcase_create("predict_refuse");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, levels);
    tcase_add_test(t, rates_agree);
    tcase_add_test(t, targets);
    tcase_add_test(t, null_arguments);
    tcase_add_test(t, options_by_size);
    tcase_add_test(t, configurations_by_size);
    tcase_add_test(t, predictions_by_size);
    tcase_add_test(t, context_that_cannot_be);
    tcase_add_test(t, memory_that_is_not_there);
    tcase_add_test(t, rows_that_are_no_question);
    tcase_add_test(t, one_bad_row_in_a_batch);
    tcase_add_test(t, exceed_of_a_bad_row);
    tcase_add_test(t, reasons_fit_the_buffer);
    tcase_add_test(t, status_names);
    suite_add_tcase(s, t);
    return s;
}
