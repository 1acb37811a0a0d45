/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a measured table: facts, groups, defaults, labels, and that none is ever lost. */
#include "base/text.h"
#include "table_help.h"

Suite *suite_table_rows(void);

START_TEST(rows_are_grouped_by_their_configuration)
{
    parse("gpu,model,tp,kv_bits,req_s\n" GPU "," LLM ",1,8,1\n" GPU "," LLM ",1,8,2\n" GPU "," LLM ",1,16,2\n"
          GPU "," LLM ",2,8,2\n" GPU "," LLM ",1,8,1\n");
    const opi__row *r = table->rows;
    ck_assert_uint_eq(r[0].repeat, r[1].repeat);
    ck_assert_uint_ne(r[0].repeat, r[2].repeat);
    ck_assert_uint_ne(r[0].repeat, r[3].repeat);
    ck_assert_uint_eq(r[0].content, r[4].content);
    ck_assert_uint_ne(r[0].content, r[1].content);
    ck_assert_uint_eq(r[0].hardware, r[2].hardware);
    ck_assert_uint_ne(r[0].hardware, r[3].hardware);
}
END_TEST

START_TEST(unknown_names_keep_the_row)
{
    parse("gpu,model,req_s\nH1000-TURBO," LLM ",1\n" GPU ",nobody/knows-7b,1\n" GPU ",,1\n");
    ck_assert_int_eq(status_of(0), OPI_E_UNKNOWN);
    reason_has(0, "line 2, column gpu: ");
    reason_has(0, "H1000-TURBO");
    ck_assert_ptr_null(config_of(0).gpu);
    ck_assert_ptr_nonnull(config_of(0).llm);
    ck_assert_str_eq(table->rows[0].gpu_name, "H1000-TURBO");
    ck_assert_int_eq(status_of(1), OPI_E_UNKNOWN);
    reason_has(1, "nobody/knows-7b");
    reason_has(1, "or state params_b, n_layers, n_heads, n_kv_heads and head_dim");
    ck_assert_int_eq(status_of(2), OPI_E_UNKNOWN);
    reason_has(2, "no LLM: the column model is blank");
    reported("unknown-gpu", 2, "gpu", "H1000-TURBO");
    reported("unknown-llm", 3, "model", "nobody/knows-7b");
}
END_TEST

START_TEST(a_flood_of_unknown_names)
{
    opi__buf b;
    opi__buf_init(&b, ctx);
    opi__buf_puts(&b, "gpu,model,req_s\n");
    for (int i = 0; i < 2100; i++)
        opi__buf_format(&b, "card %d," LLM ",1\n", i);
    opi__buf_puts(&b, GPU "," LLM ",1\n");
    parse(b.data);
    opi__buf_free(&b);
    reason_has(0, "card 0");
    reason_has(2099, "not looked up: 2000 other names of this table are in no table");
    ck_assert_int_eq(status_of(2099), OPI_E_UNKNOWN);
    ck_assert_uint_eq(opi_table_rows(table), 2101);
}
END_TEST

START_TEST(architecture_columns)
{
    parse("gpu,model,family,params_b,active_params_b,n_layers,hidden_size,n_heads,n_kv_heads,head_dim,max_context,is_moe,"
          "req_s\n"
          GPU ",my/model,mine,7.5,,32,4096,32,8,128,8192,0,1\n"
          GPU ",my/model,mine,7.5,,32,4096,32,8,128,8192,0,2\n"
          GPU ",my/model,mine,7.5,,32,4096,32,32,128,8192,0,1\n"
          GPU ",my/model,,9,2,20,2048,16,,,,1,1\n"
          GPU "," LLM ",,,,,,,,,,,1\n"
          GPU "," LLM ",,9.5,,,,,,,,,1\n"
          GPU "," LLM ",,,,16,,,,,,,1\n");
    opi_config c = config_of(0);
    ck_assert_int_eq(status_of(0), OPI_OK);
    ck_assert_str_eq(c.llm->name, "my/model");
    ck_assert_str_eq(c.llm->family, "mine");
    ck_assert_double_eq(c.llm->params_b, 7.5);
    ck_assert_double_eq(c.llm->active_params_b, 7.5); /* dense: every parameter is active */
    ck_assert_double_eq(c.llm->kv_elems_per_token, 2.0 * 32 * 8 * 128);
    ck_assert_str_eq(c.llm->attention, "gqa");
    ck_assert_ptr_eq(config_of(1).llm, c.llm); /* one distinct architecture, one struct */
    ck_assert_ptr_ne(config_of(2).llm, c.llm);
    ck_assert_double_eq(config_of(2).llm->kv_elems_per_token, 2.0 * 32 * 32 * 128);
    ck_assert_str_eq(config_of(2).llm->attention, "mha");
    const opi_llm *moe = config_of(3).llm;
    ck_assert_int_eq(moe->is_moe, 1);
    ck_assert_double_eq(moe->active_params_b, 2);
    ck_assert_int_eq(moe->n_kv_heads, 16); /* blank: as many as heads, of hidden_size / n_heads elements */
    ck_assert_double_eq(moe->kv_elems_per_token, 2.0 * 20 * 16 * 128);
    const opi_llm *listed = config_of(4).llm;
    ck_assert_str_eq(listed->name, LLM);
    ck_assert_int_eq(listed->n_layers, 32);
    ck_assert_double_eq(config_of(5).llm->params_b, 9.5); /* the row's own figure wins */
    ck_assert_double_eq(config_of(5).llm->kv_elems_per_token, listed->kv_elems_per_token);
    ck_assert_double_eq(config_of(6).llm->kv_elems_per_token, listed->kv_elems_per_token / 2);
}
END_TEST

START_TEST(caches_that_do_not_follow_from_heads)
{
    parse("gpu,model,params_b,n_layers,hidden_size,n_heads,n_kv_heads,attention,kv_elems_per_token,req_s\n"
          GPU ",my/latent,7,32,4096,32,32,mla,,1\n" GPU ",my/latent,7,32,4096,32,32,mla,18432,1\n"
          GPU ",deepseek-ai/DeepSeek-R1,,,,,128,,,1\n" GPU ",deepseek-ai/DeepSeek-R1,,,,,,,,1\n");
    ck_assert_int_eq(status_of(0), OPI_E_UNKNOWN); /* never 2 * layers * heads * head_dim for a latent cache */
    reason_has(0, "kv_elems_per_token for mla");
    ck_assert_int_eq(status_of(1), OPI_OK);
    ck_assert_double_eq(config_of(1).llm->kv_elems_per_token, 18432);
    ck_assert_double_eq(config_of(3).llm->kv_elems_per_token, 61 * (512 + 64));
    ck_assert_double_eq(config_of(2).llm->kv_elems_per_token, 61 * (512 + 64));
}
END_TEST

START_TEST(duplicates_and_contradicting_repeats)
{
    parse("gpu,model,input_len,req_s,ttft_ms_p50\n" GPU "," LLM ",1,10,5\n" GPU "," LLM ",1,10,5\n" GPU "," LLM ",1,10,5\n"
          GPU "," LLM ",2,10,\n" GPU "," LLM ",2,29,\n" GPU "," LLM ",3,10,7\n" GPU "," LLM ",3,11,22\n"
          GPU "," LLM ",4,10,7\n");
    opi__json *root = report();
    const opi__json *copies = opi__json_get(root, "duplicates"), *repeats = opi__json_get(root, "repeats");
    const opi__json *worst = opi__json_get(root, "contradictions");
    ck_assert_double_eq(number_at(copies, "groups"), 1);
    ck_assert_double_eq(number_at(copies, "surplus_rows"), 2);
    const opi__json *lines = opi__json_get(opi__json_at(opi__json_get(copies, "listed"), 0), "lines");
    ck_assert_uint_eq(opi__json_size(lines), 3);
    ck_assert_double_eq(number_at(repeats, "groups"), 3);
    ck_assert_double_eq(number_at(repeats, "rows"), 7);
    ck_assert_double_eq(number_at(worst, "groups"), 1); /* 29 / 10 is below the factor of 3, 22 / 7 is above */
    const opi__json *one = opi__json_at(opi__json_get(worst, "listed"), 0);
    ck_assert_str_eq(opi__json_string(opi__json_get(one, "target")), "ttft_ms_p50");
    ck_assert_double_eq(number_at(one, "lowest"), 7);
    ck_assert_double_eq(number_at(one, "highest"), 22);
    ck_assert_double_eq(number_at(one, "ratio"), 22.0 / 7);
    ck_assert_double_eq(number_at(root, "usable_rows"), 8); /* they are said, not dropped */
    opi__json_free(root);
}
END_TEST

START_TEST(rows_without_a_measurement)
{
    const char *text = "gpu,model,ttft_ms_mean,req_s\n" GPU "," LLM ",12,\n" GPU "," LLM ",,1\n";
    const opi_table_options keep = {.struct_size = sizeof keep, .keep_unlabeled = 1};
    parse(text);
    ck_assert_uint_eq(opi_table_rows(table), 2);
    ck_assert_int_eq(status_of(0), OPI_E_NODATA);
    reason_has(0, "line 2: nothing was measured in this row");
    ck_assert_int_eq(status_of(1), OPI_OK);
    ck_assert_int_eq(parse_with(text, &keep), OPI_OK);
    ck_assert_int_eq(status_of(0), OPI_OK);
    ck_assert_str_eq(opi_table_reason(table, 0), "");
}
END_TEST

START_TEST(defaults_fill_what_is_not_stated)
{
    opi_gpu gpu = {.struct_size = sizeof gpu};
    opi_llm llm = {.struct_size = sizeof llm};
    char precision[] = "bf16";
    ck_assert_int_eq(opi_gpu_find(GPU, &gpu, NULL), OPI_OK);
    ck_assert_int_eq(opi_llm_find(LLM, &llm, NULL), OPI_OK);
    opi_config defaults = {.struct_size = sizeof defaults, .gpu = &gpu, .llm = &llm, .tp = 2, .precision = precision,
                           .concurrency = 7};
    const opi_table_options options = {.struct_size = sizeof options, .defaults = &defaults, .source = "bench"};
    ck_assert_int_eq(parse_with("tp,precision,req_s\n,,1\n4,fp8,1\n", &options), OPI_OK);
    memset(&gpu, 0, sizeof gpu); /* the table owns what it needs */
    memset(&llm, 0, sizeof llm);
    memset(precision, 'x', sizeof precision - 1);
    opi_config c = config_of(0), d = config_of(1);
    ck_assert_str_eq(c.gpu->name, GPU);
    ck_assert_str_eq(c.llm->name, LLM);
    ck_assert_int_eq(c.tp, 2);
    ck_assert_str_eq(c.precision, "bf16");
    ck_assert_double_eq(c.concurrency, 7);
    ck_assert_int_eq(d.tp, 4);
    ck_assert_str_eq(d.precision, "fp8");
    ck_assert_str_eq(table->rows[0].source, "bench");
    ck_assert_int_eq(status_of(1), OPI_OK);
}
END_TEST

START_TEST(many_problems_are_counted_and_the_first_listed)
{
    opi__buf b;
    opi__buf_init(&b, ctx);
    opi__buf_puts(&b, "gpu,model,ttft_ms_p50,req_s\n");
    for (int i = 0; i < OPI__MAX_PROBLEMS + 50; i++)
        opi__buf_puts(&b, GPU "," LLM ",-1,1\n");
    parse(b.data);
    opi__buf_free(&b);
    opi__json *root = report();
    ck_assert_double_eq(number_at(root, "problems_total"), OPI__MAX_PROBLEMS + 50);
    ck_assert_double_eq(number_at(root, "rows_with_problems"), OPI__MAX_PROBLEMS + 50);
    ck_assert_uint_eq(opi__json_size(opi__json_get(root, "problems")), OPI__MAX_PROBLEMS);
    ck_assert_double_eq(number_at(root, "usable_rows"), OPI__MAX_PROBLEMS + 50);
    opi__json_free(root);
}
END_TEST

START_TEST(odd_bytes_in_cells)
{
    parse("gpu,model,notes,ttft_ms_p50,req_s\n\xff\x80\x01\"\n" LLM "," LLM ",,,\n" GPU "," LLM ",\xc3,\x01\xff" "9,1\n"
          "\"a\nb\"," LLM ",,,1\n");
    ck_assert_uint_eq(opi_table_rows(table), 4);
    opi__json_free(report()); /* whatever the bytes, the report is JSON */
    for (size_t i = 0; i < 4; i++)
        ck_assert_ptr_null(strchr(opi_table_reason(table, i), '\n'));
    ck_assert_int_eq(status_of(0), OPI_E_FORMAT);
    ck_assert_int_eq(status_of(2), OPI_OK);
    ck_assert_int_eq(status_of(3), OPI_E_UNKNOWN);
}
END_TEST

/* The example table that serves where the full one is not at hand: cited, usable, and spread over the folds. */
START_TEST(the_published_example)
{
    static const size_t targets[] = {OPI__T_OUT_TOK_S, OPI__T_TTFT_P50, OPI__T_ITL_P50};
    ck_assert_msg(opi_table_read(ctx, "examples/data/published.csv", NULL, &table, &err) == OPI_OK, "%s", err.message);
    ck_assert_uint_ge(opi_table_rows(table), 100);
    ck_assert_uint_eq(table->total_problems, 0);
    ck_assert_uint_eq(table->n_unknown_columns, 0);
    for (size_t i = 0; i < table->n; i++) {
        ck_assert_int_eq(status_of(i), OPI_OK);
        ck_assert_ptr_nonnull(strchr(table->rows[i].source_ref, '@'));
        ck_assert(strncmp(table->rows[i].license, "Apache-2.0", 10) == 0 || strcmp(table->rows[i].license, "MIT") == 0);
    }
    for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
        size_t cells[5] = {0};
        for (size_t i = 0; i < table->n; i++) {
            int first = !isnan(table->rows[i].value[targets[t]]);
            for (size_t k = 0; k < i && first; k++)
                first = isnan(table->rows[k].value[targets[t]]) || table->rows[k].cell != table->rows[i].cell;
            cells[table->rows[i].cell % 5] += (size_t)first;
        }
        for (size_t f = 0; f < 5; f++)
            ck_assert_uint_ge(cells[f], 5);
    }
}
END_TEST

START_TEST(questions_out_of_range)
{
    parse("gpu,model,req_s\n" GPU "," LLM ",1\n");
    opi_config c = {.struct_size = sizeof c, .tp = 55};
    int32_t status = 55;
    ck_assert_int_eq(opi_table_config(table, 1, &c, &status, &err), OPI_E_RANGE);
    ck_assert_ptr_nonnull(strstr(err.message, "row 1: the table has 1 row"));
    ck_assert_int_eq(c.tp, 55);
    ck_assert_int_eq(status, 55);
    ck_assert(isnan(opi_table_value(table, 0, 1000)));
    ck_assert(isnan(opi_table_value(table, 1, 0)));
    ck_assert_uint_eq(opi_table_line(table, 1), 0);
    ck_assert_str_eq(opi_table_reason(table, 1), "");
    ck_assert_uint_eq(opi_table_rows(NULL), 0);
    ck_assert_int_eq(opi_table_config(NULL, 0, &c, NULL, &err), OPI_E_INVALID);
    opi_text *text = NULL;
    ck_assert_int_eq(opi_table_report(table, NULL, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_table_report(NULL, &text, &err), OPI_E_INVALID);
}
END_TEST

Suite *suite_table_rows(void)
{
    Suite *s = suite_create("table_rows");
    TCase *t = tcase_create("table_rows");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, rows_are_grouped_by_their_configuration);
    tcase_add_test(t, unknown_names_keep_the_row);
    tcase_add_test(t, a_flood_of_unknown_names);
    tcase_add_test(t, architecture_columns);
    tcase_add_test(t, caches_that_do_not_follow_from_heads);
    tcase_add_test(t, duplicates_and_contradicting_repeats);
    tcase_add_test(t, rows_without_a_measurement);
    tcase_add_test(t, defaults_fill_what_is_not_stated);
    tcase_add_test(t, many_problems_are_counted_and_the_first_listed);
    tcase_add_test(t, odd_bytes_in_cells);
    tcase_add_test(t, the_published_example);
    tcase_add_test(t, questions_out_of_range);
    suite_add_tcase(s, t);
    return s;
}
