/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/utility.h"

#include <check.h>
#include <math.h>
#include <string.h>

Suite *suite_utility(void);

/* 2 replicas of 4 GPUs at $2, 1,000 tokens/s, half of the launches fail. */
static opi__outcome outcome(void)
{
    return (opi__outcome){.gpus = 8, .replicas = 2, .price = 2, .queue_s = 1800, .launch_success = 0.5, .tok_s = 1000,
                          .violations = 0.25, .kv_usage = 0.925, .power_w = 500};
}

static opi_utility weights(void)
{
    opi_utility u;
    opi_utility_default(&u);
    u.value_usd_per_mtok = 10;
    u.queue_usd_per_h = 6;
    u.restart_usd = 3;
    u.restart_node_h = 0.5;
    u.slo_penalty_usd_per_h = 8;
    u.kv_penalty_usd_per_h = 4;
    u.power_usd_per_kwh = 0.1;
    u.amortize_h = 10;
    return u;
}

START_TEST(defaults)
{
    opi_utility u;
    memset(&u, 0x5a, sizeof u); /* what was there does not matter */
    opi_utility_default(&u);
    ck_assert_uint_eq(u.struct_size, sizeof u);
    ck_assert_double_eq(u.value_usd_per_mtok, 0);
    ck_assert_double_eq(u.kv_knee, 0.85);
    ck_assert_double_eq(u.amortize_h, 24);
    ck_assert_double_eq(u.risk, 0);
    ck_assert_double_eq(u.power_usd_per_kwh, 0);
    ck_assert_int_eq(opi__utility_check(&u, NULL), OPI_OK);
    opi_utility_default(NULL);
}
END_TEST

START_TEST(terms_by_hand)
{
    const opi_utility u = weights();
    opi__outcome o = outcome();
    opi_terms t;
    opi__utility_terms(&u, &o, &t);
    ck_assert_double_eq_tol(t.value, 36, 1e-12);     /* 3.6 million tokens an hour at $10 */
    ck_assert_double_eq_tol(t.node, -16, 1e-12);
    ck_assert_double_eq_tol(t.queue, -0.3, 1e-12);   /* half an hour at $6 over 10 h */
    ck_assert_double_eq_tol(t.restart, -1.4, 1e-12); /* 1 failure a replica: $3 + 0.5 h of $8/h; twice; over 10 h */
    ck_assert_double_eq_tol(t.slo, -2, 1e-12);
    ck_assert_double_eq_tol(t.kv, -2, 1e-12);        /* half-way from 0.85 to 1 */
    ck_assert_double_eq_tol(t.power, -0.4, 1e-12);   /* 4 kW */
    ck_assert_double_eq(t.total, t.value + t.node + t.queue + t.restart + t.slo + t.kv + t.power);
    ck_assert_double_eq_tol(t.total, 13.9, 1e-12);
}
END_TEST

START_TEST(terms_at_the_edges)
{
    const opi_utility u = weights();
    opi__outcome o = outcome();
    opi_terms t;
    o.demand = 400; /* what goes beyond the demand has no value */
    o.price = NAN;
    o.power_w = NAN;
    o.kv_usage = NAN;
    o.launch_success = 1;
    opi__utility_terms(&u, &o, &t);
    ck_assert_double_eq_tol(t.value, 14.4, 1e-12);
    ck_assert_double_eq(t.node, 0);
    ck_assert_double_eq(t.power, 0);
    ck_assert_double_eq(t.kv, 0);
    ck_assert_double_eq(t.restart, 0);
    ck_assert(!signbit(t.node) && !signbit(t.kv) && !signbit(t.restart)); /* 0, not -0 */
    o.kv_usage = 0.85;
    opi__utility_terms(&u, &o, &t);
    ck_assert_double_eq(t.kv, 0);
    o.kv_usage = 7; /* cannot be fuller than full */
    opi__utility_terms(&u, &o, &t);
    ck_assert_double_eq_tol(t.kv, -4, 1e-12);
    o.launch_success = 0; /* never NaN or infinite */
    opi__utility_terms(&u, &o, &t);
    ck_assert(isfinite(t.total));
}
END_TEST

START_TEST(check_ranges)
{
    opi_error err = {0};
    opi_utility u = weights();
    u.kv_knee = 0;
    u.amortize_h = 0;
    ck_assert_int_eq(opi__utility_check(&u, &err), OPI_OK);
    ck_assert_double_eq(u.kv_knee, 0.85);
    ck_assert_double_eq(u.amortize_h, 24);
    u.risk = 1.5;
    ck_assert_int_eq(opi__utility_check(&u, &err), OPI_E_RANGE);
    ck_assert_ptr_nonnull(strstr(err.message, "risk = 1.5"));
    u = weights();
    u.value_usd_per_mtok = NAN;
    ck_assert_int_eq(opi__utility_check(&u, &err), OPI_E_RANGE);
    u = weights();
    u.restart_usd = -1;
    ck_assert_int_eq(opi__utility_check(&u, &err), OPI_E_RANGE);
    u = weights();
    u.slo_penalty_usd_per_h = 1e308;
    ck_assert_int_eq(opi__utility_check(&u, &err), OPI_E_RANGE);
}
END_TEST

static int32_t parse(const char *json, opi_utility *u, opi_error *err)
{
    return opi_utility_parse(NULL, json, strlen(json), u, err);
}

START_TEST(parse_overrides)
{
    opi_utility u;
    opi_error err = {0};
    opi_utility_default(&u);
    ck_assert_int_eq(parse("{\"version\": 1, \"value_usd_per_mtok\": 2.5, \"risk\": 0.3}", &u, &err), OPI_OK);
    ck_assert_double_eq(u.value_usd_per_mtok, 2.5);
    ck_assert_double_eq(u.risk, 0.3);
    ck_assert_double_eq(u.kv_knee, 0.85);
    ck_assert_int_eq(parse("{}", &u, &err), OPI_OK);
    ck_assert_double_eq(u.value_usd_per_mtok, 2.5);
}
END_TEST

START_TEST(parse_refuses)
{
    static const struct {
        const char *json;
        int32_t code;
        const char *says;
    } bad[] = {
        {"{\"value_usd_per_mtk\": 2}", OPI_E_UNKNOWN, "value_usd_per_mtok"},
        {"{\"zebra\": 2}", OPI_E_UNKNOWN, "zebra"},
        {"{\"risk\": 2}", OPI_E_RANGE, "risk = 2"},
        {"{\"risk\": \"0.5\"}", OPI_E_FORMAT, "not a number"},
        {"{\"amortize_h\": 0}", OPI_E_RANGE, "amortize_h"},
        {"{\"version\": 2}", OPI_E_VERSION, "version"},
        {"[1]", OPI_E_FORMAT, "object"},
        {"{\"risk\": 0.5", OPI_E_FORMAT, "utility"},
        {"", OPI_E_FORMAT, "utility"},
        {"{\"risk\": 1e999}", OPI_E_FORMAT, "utility"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        opi_utility u, before;
        opi_error err = {0};
        opi_utility_default(&u);
        before = u;
        ck_assert_msg(parse(bad[i].json, &u, &err) == bad[i].code, "%s: %s", bad[i].json, err.message);
        ck_assert_msg(strstr(err.message, bad[i].says) != NULL, "%s: %s", bad[i].json, err.message);
        ck_assert_mem_eq(&u, &before, sizeof u);
    }
    opi_utility none = {0};
    ck_assert_int_eq(parse("{}", &none, NULL), OPI_E_INVALID); /* struct_size 0 */
    ck_assert_int_eq(opi_utility_parse(NULL, NULL, 0, &none, NULL), OPI_E_INVALID);
}
END_TEST

Suite *suite_utility(void)
{
    Suite *s = suite_create("utility");
    TCase *t = tcase_create("utility");
    tcase_add_test(t, defaults);
    tcase_add_test(t, terms_by_hand);
    tcase_add_test(t, terms_at_the_edges);
    tcase_add_test(t, check_ranges);
    tcase_add_test(t, parse_overrides);
    tcase_add_test(t, parse_refuses);
    suite_add_tcase(s, t);
    return s;
}
