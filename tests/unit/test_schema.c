/* SPDX-License-Identifier: Apache-2.0 */
/* Targets and axes: the public order, names, kinds and units. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "facts/schema.h"

Suite *suite_schema(void);

START_TEST(targets_in_public_order)
{
    static const struct {
        const char *name, *alias, *unit;
        int32_t higher;
        size_t base;
    } want[] = {
        {"throughput_out_tok_s", "out_tok_s", "tokens/s", 1, offsetof(opi_roofline, out_tok_s)},
        {"throughput_total_tok_s", "total_tok_s", "tokens/s", 1, offsetof(opi_roofline, total_tok_s)},
        {"req_s", "req_s", "requests/s", 1, offsetof(opi_roofline, req_s)},
        {"ttft_ms_p50", "ttft_p50", "ms", 0, offsetof(opi_roofline, ttft_ms)},
        {"ttft_ms_p95", "ttft_p95", "ms", 0, offsetof(opi_roofline, ttft_ms)},
        {"itl_ms_p50", "itl_p50", "ms", 0, offsetof(opi_roofline, itl_ms)},
        {"itl_ms_p95", "itl_p95", "ms", 0, offsetof(opi_roofline, itl_ms)},
        {"e2e_latency_s", "e2e", "s", 0, offsetof(opi_roofline, e2e_s)},
        {"power_w_per_gpu", "power", "W", 0, offsetof(opi_roofline, power_w)},
        {"tokens_per_joule", "tok_j", "tokens/J", 1, offsetof(opi_roofline, tokens_per_joule)},
        {"cold_start_s", "cold_start", "s", 0, offsetof(opi_roofline, cold_start_s)},
        {"kv_cache_usage", "kv_usage", "share", 0, offsetof(opi_roofline, kv_usage)},
        {"sm_activity", "sm", "share", 1, offsetof(opi_roofline, sm_activity)},
        {"tensor_activity", "tensor", "share", 1, offsetof(opi_roofline, tensor_activity)},
    };
    ck_assert_uint_eq(opi_target_count(), sizeof want / sizeof want[0]);
    for (size_t i = 0; i < opi_target_count(); i++) {
        opi_target_info info = {.struct_size = sizeof info};
        size_t found = 99;
        ck_assert_int_eq(opi_target_at(i, &info, NULL), OPI_OK);
        ck_assert_str_eq(info.name, want[i].name);
        ck_assert_str_eq(info.alias, want[i].alias);
        ck_assert_str_eq(info.unit, want[i].unit);
        ck_assert_int_eq(info.higher_is_better, want[i].higher);
        ck_assert_uint_eq(opi__targets[i].physics_offset, want[i].base);
        ck_assert(strcmp(want[i].unit, "share") == 0 ? opi__targets[i].upper == 1 : isinf(opi__targets[i].upper));
        ck_assert_int_eq(opi_target_find(want[i].name, &found, NULL), OPI_OK);
        ck_assert_uint_eq(found, i);
        ck_assert_int_eq(opi_target_find(want[i].alias, &found, NULL), OPI_OK);
        ck_assert_uint_eq(found, i);
        ck_assert_int_eq(opi_target_find(info.title, &found, NULL), OPI_OK);
        ck_assert_uint_eq(found, i);
    }
}
END_TEST

START_TEST(finding_a_target)
{
    size_t index = 77;
    opi_error err;
    ck_assert_int_eq(opi_target_find("TTFT_P50", &index, &err), OPI_OK);
    ck_assert_uint_eq(index, OPI__T_TTFT_P50);
    index = 77;
    ck_assert_int_eq(opi_target_find("ttft_p99", &index, &err), OPI_E_UNKNOWN);
    ck_assert_uint_eq(index, 77);
    ck_assert_ptr_nonnull(strstr(err.message, "\"ttft_p99\""));
    ck_assert_ptr_nonnull(strstr(err.message, "did you mean ttft_p95"));
    ck_assert_int_eq(opi_target_find("goodput of the whole fleet", &index, &err), OPI_E_UNKNOWN);
    ck_assert_ptr_null(strstr(err.message, "did you mean"));
    ck_assert_int_eq(opi_target_find(NULL, &index, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_target_find("power", NULL, &err), OPI_E_INVALID);
}
END_TEST

START_TEST(axes)
{
    /* The paper's seven numeric axes and the categories a server is chosen by are part of the envelope. */
    static const char *const enveloped[] = {"params_b",    "active_params_b", "context", "concurrency",
                                            "kv_pressure", "tp",              "weight_bits", "gpu",
                                            "family",      "precision",       "engine",  "load_kind"};
    static const char *const numbers[] = {"params_b",   "active_params_b", "context",      "concurrency", "kv_pressure", "tp",
                                          "weight_bits", "mem_util",       "input_len",    "output_len",  "request_rate",
                                          "n_gpus",     "pp",              "ep",           "dp",          "kv_bits",
                                          "n_experts",  "experts_per_token"};
    size_t n_numbers = 0, n_found = 0;
    ck_assert_uint_eq(opi_axis_count(), opi__axis_total());
    for (size_t i = 0; i < opi_axis_count(); i++) {
        opi_axis_info info = {.struct_size = sizeof info};
        ck_assert_int_eq(opi_axis_at(i, &info, NULL), OPI_OK);
        ck_assert_int_eq(info.kind, i < sizeof numbers / sizeof numbers[0] ? OPI_AXIS_NUMBER : OPI_AXIS_CATEGORY);
        if (info.kind == OPI_AXIS_NUMBER)
            ck_assert_str_eq(info.name, numbers[n_numbers++]);
        for (size_t k = 0; k < sizeof enveloped / sizeof enveloped[0]; k++) {
            if (strcmp(info.name, enveloped[k]) != 0)
                continue;
            ck_assert_int_eq(info.enveloped, 1);
            n_found++;
        }
        ck_assert_str_ne(info.name, "source"); /* a user has no measurement campaign */
        ck_assert(info.title && info.title[0] && info.unit);
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(opi__axes[k].name, info.name);
    }
    ck_assert_uint_eq(n_numbers, sizeof numbers / sizeof numbers[0]);
    ck_assert_uint_eq(n_found, sizeof enveloped / sizeof enveloped[0]);
}
END_TEST

START_TEST(out_of_range)
{
    opi_target_info target = {.struct_size = sizeof target};
    opi_axis_info axis = {.struct_size = sizeof axis};
    opi_error err;
    ck_assert_int_eq(opi_target_at(opi_target_count(), &target, &err), OPI_E_RANGE);
    ck_assert_ptr_nonnull(strstr(err.message, "target 14"));
    ck_assert_ptr_null(target.name);
    ck_assert_int_eq(opi_axis_at(1000, &axis, &err), OPI_E_RANGE);
    ck_assert_ptr_nonnull(strstr(err.message, "axis 1000: there are "));
    axis.struct_size = 0;
    ck_assert_int_eq(opi_axis_at(0, &axis, &err), OPI_E_INVALID);
}
END_TEST

START_TEST(short_output_struct)
{
    /* A caller built against a struct that ended after `unit` gets that much and nothing is written behind it. */
    opi_target_info info = {.struct_size = offsetof(opi_target_info, title), .title = "untouched"};
    ck_assert_int_eq(opi_target_at(0, &info, NULL), OPI_OK);
    ck_assert_str_eq(info.unit, "tokens/s");
    ck_assert_str_eq(info.title, "untouched");
    ck_assert_uint_eq(info.struct_size, offsetof(opi_target_info, title));
}
END_TEST

Suite *suite_schema(void)
{
    Suite *s = suite_create("schema");
    TCase *t = tcase_create("schema");
    tcase_add_test(t, targets_in_public_order);
    tcase_add_test(t, finding_a_target);
    tcase_add_test(t, axes);
    tcase_add_test(t, out_of_range);
    tcase_add_test(t, short_output_struct);
    suite_add_tcase(s, t);
    return s;
}
