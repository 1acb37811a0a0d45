/* SPDX-License-Identifier: Apache-2.0 */
/* A kriged model of the made-up world: fitted, saved, moved to a site that is slower by a constant factor. */
#include <check.h>

#include "base/json.h"
#include "model_world.h"

Suite *suite_adapt(void);

#define SLOWER 1.4
#define LOCAL  12

static opi_ctx *ctx;
static opi_table *table;
static opi_model *model;
static opi_error err;

static void setup(void)
{
    const world w = {.targets = 1, .hardware = 4};
    const opi_fit_options o = {.struct_size = sizeof o, .seed = 1, .learner = "krige"};
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, &err), OPI_OK);
    table = world_table(ctx, &w);
    ck_assert_ptr_nonnull(table);
    ck_assert_msg(opi_model_fit(ctx, table, &o, &model, &err) == OPI_OK, "%s", err.message);
}

static void teardown(void)
{
    opi_model_free(model);
    opi_table_free(table);
    opi_ctx_destroy(ctx);
}

/* Rows first, first + step, ... of the world at the slower site, in the order asked for. */
static opi_table *local_table(size_t first, size_t step, size_t n, int backwards)
{
    char csv[16384];
    size_t at = 0;
    opi_table *out = NULL;
    at += (size_t)snprintf(csv, sizeof csv,
                           "source,model,engine,gpu,n_gpus,tp,precision,input_len,output_len,concurrency,"
                           "load_kind,throughput_out_tok_s\n");
    for (size_t i = 0; i < n; i++) {
        size_t row = first + step * (backwards ? n - 1 - i : i);
        opi_config c = {.struct_size = sizeof c};
        ck_assert_int_eq(opi_table_config(table, row, &c, NULL, &err), OPI_OK);
        at += (size_t)snprintf(csv + at, sizeof csv - at, "mine,%s,%s,%s,%d,%d,%s,%g,%g,%g,concurrency,%.9g\n",
                               c.llm->name, c.engine, c.gpu->name, (int)c.tp, (int)c.tp, c.precision, c.input_len,
                               c.output_len, c.concurrency, opi_table_value(table, row, OPI__T_OUT_TOK_S) / SLOWER);
    }
    ck_assert_msg(opi_table_parse(ctx, csv, at, NULL, &out, &err) == OPI_OK, "%s", err.message);
    return out;
}

static opi_model *adapted(const opi_model *base, opi_table *rows)
{
    opi_model *out = NULL;
    ck_assert_msg(opi_model_adapt(base, rows, &out, &err) == OPI_OK, "%s", err.message);
    opi_table_free(rows);
    return out;
}

static opi_prediction predict(const opi_model *m, size_t row)
{
    const size_t target = OPI__T_OUT_TOK_S;
    opi_config c = {.struct_size = sizeof c};
    opi_prediction p;
    const opi_predict_options o = {.struct_size = sizeof o, .targets = &target, .n_targets = 1};
    ck_assert_int_eq(opi_table_config(table, row, &c, NULL, &err), OPI_OK);
    ck_assert_msg(opi_predict(m, &c, 1, &o, &p, sizeof p, &err) == OPI_OK, "%s", err.message);
    return p;
}

static opi_text *saved(const opi_model *m)
{
    opi_text *text = NULL;
    ck_assert_int_eq(opi_model_save_memory(m, &text, &err), OPI_OK);
    return text;
}

START_TEST(saves_and_loads_to_the_same_bytes)
{
    opi_model *here = adapted(model, local_table(0, 7, LOCAL, 0)), *again = NULL;
    opi_text *a = saved(here), *b;
    ck_assert_msg(opi_model_load_memory(ctx, opi_text_data(a), opi_text_size(a), &again, &err) == OPI_OK, "%s",
                  err.message);
    b = saved(again);
    ck_assert_uint_eq(opi_text_size(a), opi_text_size(b));
    ck_assert_mem_eq(opi_text_data(a), opi_text_data(b), opi_text_size(a));
    for (size_t row = 0; row < 20; row++) {
        opi_prediction p = predict(here, row), q = predict(again, row);
        ck_assert_mem_eq(&p, &q, sizeof p);
    }
    opi_text_free(a);
    opi_text_free(b);
    opi_model_free(again);
    opi_model_free(here);
}
END_TEST

START_TEST(a_new_site_is_not_the_known_one)
{
    /* One campaign only: there is no spread between campaigns to learn, so intervals are wide rather than wrong. */
    opi_prediction p = predict(model, 5);
    double value = opi_table_value(table, 5, OPI__T_OUT_TOK_S);
    ck_assert_double_lt(p.lo, value / 1.1);
    ck_assert_double_gt(p.hi, value * 1.1);
}
END_TEST

START_TEST(local_rows_shift_and_narrow)
{
    double before = 0, after = 0, wide = 0, narrow = 0;
    size_t inside = 0, n = 0;
    opi_model *here = adapted(model, local_table(0, 7, LOCAL, 0));
    for (size_t row = 1; row < opi_table_rows(table) && row < 100; row++) {
        if (row % 7 == 0 && row / 7 < LOCAL)
            continue; /* was given */
        double value = opi_table_value(table, row, OPI__T_OUT_TOK_S) / SLOWER;
        opi_prediction p = predict(model, row), q = predict(here, row);
        before += fabs(log(p.p50 / value));
        after += fabs(log(q.p50 / value));
        wide += log(p.hi / p.lo);
        narrow += log(q.hi / q.lo);
        inside += value >= q.lo && value <= q.hi;
        n++;
    }
    ck_assert_double_gt(before / (double)n, .9 * log(SLOWER) - .1);
    ck_assert_double_lt(after, .35 * before);
    ck_assert_double_lt(narrow, .8 * wide);
    ck_assert_uint_ge(inside, n * 7 / 10);
    opi_model_free(here);
}
END_TEST

START_TEST(order_and_portions_do_not_matter)
{
    opi_model *forth = adapted(model, local_table(0, 7, LOCAL, 0)), *back = adapted(model, local_table(0, 7, LOCAL, 1));
    opi_model *first = adapted(model, local_table(0, 7, 5, 0)), *all = adapted(first, local_table(35, 7, LOCAL - 5, 1));
    for (size_t row = 0; row < 40; row++) {
        opi_prediction p = predict(forth, row), q = predict(back, row), r = predict(all, row);
        ck_assert_mem_eq(&p, &q, sizeof p);
        ck_assert_double_eq_tol(p.p50, r.p50, 1e-9 * p.p50); /* deviations are computed back from weights */
        ck_assert_double_eq_tol(p.hi, r.hi, 1e-9 * p.hi);
    }
    opi_model_free(forth);
    opi_model_free(back);
    opi_model_free(first);
    opi_model_free(all);
}
END_TEST

START_TEST(manifest_records_base_and_evidence)
{
    opi_model *once = adapted(model, local_table(0, 7, 5, 0)), *here = adapted(once, local_table(3, 5, 4, 0));
    opi_text *text = NULL;
    opi__json *root = NULL;
    double rows = 0;
    ck_assert_int_eq(opi_model_inspect(here, &text, &err), OPI_OK);
    ck_assert_int_eq(opi__json_parse(opi_text_data(text), opi_text_size(text), "inspect", &root, &err), OPI_OK);
    const opi__json *list = opi__json_get(opi__json_get(root, "manifest"), "adapted");
    ck_assert_uint_eq(opi__json_size(list), 2);
    const opi__json *one = opi__json_at(list, 1);
    ck_assert_uint_eq(strlen(opi__json_string(opi__json_get(one, "base_sha256"))), 64);
    ck_assert_int_eq(opi__json_number(opi__json_get(opi__json_get(one, "rows"), "throughput_out_tok_s"), &rows), 1);
    ck_assert_double_eq(rows, 4);
    opi__json_free(root);
    opi_text_free(text);
    opi_model_free(here);
    opi_model_free(once);
}
END_TEST

START_TEST(refusals_leave_nothing)
{
    static const char nothing[] = "source,model,gpu,launch_ok\nmine," WORLD_LLM ",H100-80GB-SXM,1\n";
    opi_table *rows = NULL;
    opi_model *out = (opi_model *)&ctx, *boosted = NULL;
    ck_assert_int_eq(opi_table_parse(ctx, nothing, sizeof nothing - 1, NULL, &rows, &err), OPI_OK);
    ck_assert_int_eq(opi_model_adapt(model, rows, &out, &err), OPI_E_NODATA);
    ck_assert_ptr_nonnull(strstr(err.message, "1 rows"));
    ck_assert_int_eq(opi_model_adapt(NULL, rows, &out, NULL), OPI_E_INVALID);
    ck_assert_int_eq(opi_model_adapt(model, NULL, &out, NULL), OPI_E_INVALID);
    const opi_fit_options o = {.struct_size = sizeof o, .learner = "boost"};
    ck_assert_int_eq(opi_model_fit(ctx, table, &o, &boosted, &err), OPI_OK);
    ck_assert_int_eq(opi_model_adapt(boosted, table, &out, &err), OPI_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "boost"));
    ck_assert_ptr_eq(out, (opi_model *)&ctx);
    opi_model_free(boosted);
    opi_table_free(rows);
}
END_TEST

/* Every byte of the learner's part damaged in turn is too slow; every truncation at a stride is not. */
START_TEST(damaged_files_are_refused)
{
    opi_model *here = adapted(model, local_table(0, 7, LOCAL, 0));
    opi_text *text = saved(here);
    opi_model *out = NULL;
    for (size_t n = 0; n < opi_text_size(text); n += 997) {
        ck_assert_int_eq(opi_model_load_memory(ctx, opi_text_data(text), n, &out, NULL), OPI_E_FORMAT);
        ck_assert_ptr_null(out);
    }
    opi_text_free(text);
    opi_model_free(here);
}
END_TEST

Suite *suite_adapt(void)
{
    Suite *s = suite_create("adapt");
    TCase *t = tcase_create("adapt");
    tcase_add_unchecked_fixture(t, setup, teardown);
    tcase_add_test(t, saves_and_loads_to_the_same_bytes);
    tcase_add_test(t, a_new_site_is_not_the_known_one);
    tcase_add_test(t, local_rows_shift_and_narrow);
    tcase_add_test(t, order_and_portions_do_not_matter);
    tcase_add_test(t, manifest_records_base_and_evidence);
    tcase_add_test(t, refusals_leave_nothing);
    tcase_add_test(t, damaged_files_are_refused);
    suite_add_tcase(s, t);
    return s;
}
