/* SPDX-License-Identifier: Apache-2.0 */
/* Measured tables from CSV: what a cell means and what is refused. */
#include "base/hash.h"
#include "table_help.h"

Suite *suite_table(void);

START_TEST(a_row)
{
    parse("source,license,engine,engine_version,model,precision,weight_bits,kv_bits,gpu,n_gpus,tp,pp,ep,dp,input_len,"
          "output_len,concurrency,load_kind,workload,launch_ok,throughput_out_tok_s,ttft_ms_p50,max_model_len,mem_util\n"
          "mine,MIT,vLLM,0.9.1," LLM ",FP8,8,16," GPU ",4,2,1,,2,1024,128.5,64,concurrency,fixed-1024x128,1,1234.5,"
          "56.25,8192,0.85\n");
    ck_assert_uint_eq(opi_table_rows(table), 1);
    ck_assert_uint_eq(opi_table_line(table, 0), 2);
    ck_assert_str_eq(opi_table_reason(table, 0), "");
    ck_assert_int_eq(status_of(0), OPI_OK);
    opi_config c = config_of(0);
    ck_assert_str_eq(c.gpu->name, GPU);
    ck_assert_str_eq(c.llm->name, LLM);
    ck_assert_str_eq(c.engine, "vllm");
    ck_assert_str_eq(c.engine_version, "0.9.1");
    ck_assert_str_eq(c.precision, "fp8");
    ck_assert_str_eq(c.load_kind, "concurrency");
    ck_assert_int_eq(c.n_gpus, 4);
    ck_assert_int_eq(c.tp, 2);
    ck_assert_int_eq(c.pp, 1);
    ck_assert_int_eq(c.ep, 0); /* blank: not stated */
    ck_assert_int_eq(c.dp, 2);
    ck_assert_double_eq(c.weight_bits, 8);
    ck_assert_double_eq(c.kv_bits, 16);
    ck_assert_double_eq(c.input_len, 1024);
    ck_assert_double_eq(c.output_len, 128.5);
    ck_assert_double_eq(c.concurrency, 64);
    ck_assert_double_eq(c.request_rate, 0);
    ck_assert_double_eq(c.max_context, 8192);
    ck_assert_double_eq(c.mem_util, 0.85);
    ck_assert_double_eq(opi_table_value(table, 0, OPI__T_OUT_TOK_S), 1234.5);
    ck_assert_double_eq(opi_table_value(table, 0, OPI__T_TTFT_P50), 56.25);
    ck_assert(isnan(opi_table_value(table, 0, OPI__T_POWER)));
    ck_assert_str_eq(table->rows[0].source, "mine");
    ck_assert_str_eq(table->rows[0].license, "MIT");
    ck_assert_int_eq(table->rows[0].launch_ok, 1);
}
END_TEST

START_TEST(blanks_are_not_stated)
{
    parse("gpu,model,tp,precision,engine,input_len,req_s\n" GPU "," LLM ",, ,,\t,2\n");
    opi_config c = config_of(0);
    ck_assert_int_eq(c.tp, 0);
    ck_assert_ptr_null(c.precision);
    ck_assert_ptr_null(c.engine);
    ck_assert_ptr_null(c.load_kind);
    ck_assert_double_eq(c.input_len, 0);
    ck_assert_int_eq(table->rows[0].launch_ok, -1);
    ck_assert_str_eq(table->rows[0].source, "user");
}
END_TEST

START_TEST(the_cell_is_the_raw_text)
{
    parse("source,model,workload,input_len,output_len,concurrency,load_kind,request_rate,gpu,req_s,engine,tp\n"
          "a," LLM ",fixed-100x200,100,200,8,concurrency,," GPU ",1,vllm,1\n"
          "a," LLM ",\"chat,long\",100.50,200,8,rate,2.0," GPU ",1,vllm,2\n"
          "a," LLM ",\"chat,long\",101.50,210,8,rate,2.0," GPU ",1,sglang,2\n");
    static const char *const cell[] = {"a|" LLM "|fixed-100x200|100|200|8|concurrency|",
                                       "a|" LLM "|chat,long|100.50|200|8|rate|2.0",
                                       "a|" LLM "|chat,long|101.50|210|8|rate|2.0"};
    const char *mix = "a|" LLM "|chat,long|||8|rate|2.0";
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(table->rows[i].cell, opi__fnv1a64(OPI__FNV_START, cell[i], strlen(cell[i])));
    ck_assert_uint_eq(table->rows[0].cell_mix, table->rows[0].cell);
    ck_assert_uint_eq(table->rows[1].cell_mix, opi__fnv1a64(OPI__FNV_START, mix, strlen(mix)));
    ck_assert_uint_eq(table->rows[2].cell_mix, table->rows[1].cell_mix);
    const char *hardware = GPU "||2||||", *decision = "a|vllm||a|" LLM "|chat,long|100.50|200|8|rate|2.0";
    ck_assert_uint_eq(table->rows[1].hardware, opi__fnv1a64(OPI__FNV_START, hardware, strlen(hardware)));
    ck_assert_uint_eq(table->rows[2].hardware, table->rows[1].hardware);
    ck_assert_uint_eq(table->rows[1].decision, opi__fnv1a64(OPI__FNV_START, decision, strlen(decision)));
    /* The published check of the fold rule: FNV-1a-64 of these bytes. */
    const char *first = "aiconfigurator-silicon|deepseek-ai/DeepSeek-R1|fixed-1024x8192|1024|8192|16|concurrency|";
    ck_assert_uint_eq(opi__fnv1a64(OPI__FNV_START, first, strlen(first)), 0xec2ce4e7fb529f05ull);
}
END_TEST

START_TEST(crlf_bom_and_quoted_commas)
{
    parse("\xef\xbb\xbfgpu,model,\"input_len\",notes,req_s\r\n" GPU "," LLM ",128,\"one, two\r\nlines, \"\"q\"\"\",1.5\r\n"
          "\r\n" GPU "," LLM ",\"256\",,2.5\r\n");
    ck_assert_uint_eq(opi_table_rows(table), 2);
    ck_assert_uint_eq(opi_table_line(table, 0), 2);
    ck_assert_uint_eq(opi_table_line(table, 1), 5);
    ck_assert_double_eq(config_of(1).input_len, 256);
    ck_assert_double_eq(opi_table_value(table, 1, OPI__T_REQ_S), 2.5);
    ck_assert_int_eq(status_of(0), OPI_OK);
}
END_TEST

START_TEST(a_missing_column_is_said)
{
    parse("model,input_len,req_s\n" LLM ",128,1\n");
    ck_assert_int_eq(status_of(0), OPI_E_UNKNOWN);
    reason_has(0, "line 2, column gpu: no GPU: the column is missing");
    opi__json *root = report();
    const opi__json *missing = opi__json_get(root, "missing_columns");
    int gpu = 0, input = 0;
    for (size_t i = 0; i < opi__json_size(missing); i++) {
        gpu |= strcmp(opi__json_string(opi__json_at(missing, i)), "gpu") == 0;
        input |= strcmp(opi__json_string(opi__json_at(missing, i)), "input_len") == 0;
    }
    ck_assert_int_eq(gpu, 1);
    ck_assert_int_eq(input, 0);
    ck_assert_double_eq(number_at(root, "usable_rows"), 0);
    opi__json_free(root);
    parse("gpu,model,req_s\n," LLM ",1\n");
    reason_has(0, "no GPU: the cell is blank");
}
END_TEST

START_TEST(an_unknown_column_is_said_and_ignored)
{
    parse("gpu,model,ttft_s,ttft_ms_p5O,req_s\n" GPU "," LLM ",0.05,12,3\n");
    ck_assert_int_eq(status_of(0), OPI_OK);
    ck_assert(isnan(opi_table_value(table, 0, OPI__T_TTFT_P50))); /* ttft_s is another column than ttft_ms_p50 */
    opi__json *root = report();
    const opi__json *unknown = opi__json_get(root, "unknown_columns");
    ck_assert_uint_eq(opi__json_size(unknown), 2);
    ck_assert_str_eq(opi__json_string(opi__json_get(opi__json_at(unknown, 0), "name")), "ttft_s");
    ck_assert_ptr_null(opi__json_string(opi__json_get(opi__json_at(unknown, 0), "nearest")));
    ck_assert_str_eq(opi__json_string(opi__json_get(opi__json_at(unknown, 1), "nearest")), "ttft_ms_p50");
    opi__json_free(root);
}
END_TEST

START_TEST(a_decimal_comma_refuses_the_file)
{
    refused("gpu,model,ttft_ms_p50\n" GPU "," LLM ",11\n" GPU "," LLM ",\"12,5\"\n", OPI_E_FORMAT,
            "line 3, column ttft_ms_p50: \"12,5\"", "decimal comma");
    ck_assert_int_eq(err.index, 1);
    refused("gpu,model,input_len,req_s\n" GPU "," LLM ",\"1,024\",1\n", OPI_E_FORMAT, "line 2, column input_len: \"1,024\"",
            "thousands separator");
}
END_TEST

START_TEST(separators_and_units_inside_numbers)
{
    parse("gpu,model,input_len,ttft_ms_p50,req_s\n" GPU "," LLM ",1 024,5,1\n" GPU "," LLM ",1024,12ms,1\n"
          GPU "," LLM ",1024,abc,1\n" GPU "," LLM ",1k,5,1\n" GPU "," LLM ",0x10,5,1\n" GPU "," LLM ",1.2.3,5,1\n");
    reported("thousands-separator", 2, "input_len", "write the digits without it");
    ck_assert_int_eq(status_of(0), OPI_E_INVALID); /* a configuration that is not understood is not guessed */
    reported("unit", 3, "ttft_ms_p50", "\"12ms\" has a unit: convert it to the column's unit and write the number alone "
                                       "(unit: ms)");
    ck_assert_int_eq(status_of(1), OPI_OK); /* the other measurements of the row stand */
    ck_assert(isnan(opi_table_value(table, 1, OPI__T_TTFT_P50)));
    ck_assert_double_eq(opi_table_value(table, 1, OPI__T_REQ_S), 1);
    reported("not-a-number", 4, "ttft_ms_p50", "\"abc\" is not a number");
    reported("unit", 5, "input_len", "\"1k\"");
    ck_assert_int_eq(status_of(3), OPI_E_INVALID);
    ck_assert_int_eq(status_of(4), OPI_E_INVALID);
    reported("not-a-number", 7, "input_len", "\"1.2.3\" is not a number");
    ck_assert_uint_eq(opi_table_rows(table), 6);
}
END_TEST

START_TEST(numbers_outside_their_limits)
{
    parse("gpu,model,input_len,tp,ttft_ms_p50,req_s\n" GPU "," LLM ",-5,1,5,1\n" GPU "," LLM ",0,1,5,1\n"
          GPU "," LLM ",1e308,1,5,1\n" GPU "," LLM ",1e999,1,5,1\n" GPU "," LLM ",NaN,1,5,1\n"
          GPU "," LLM ",128,1.5,5,1\n" GPU "," LLM ",128,1,0,1\n" GPU "," LLM ",128,1,-3,1\n"
          GPU "," LLM ",128,1,1e308,1\n" GPU "," LLM ",128,1,inf,1\n" GPU "," LLM ",128,1,n/a,1\n");
    static const char *const config_kinds[] = {"range", "range", "range", "range", "not-measured-mark"};
    ck_assert_uint_eq(opi_table_rows(table), 11);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_lt(status_of(i), 0);
        reason_has(i, "column input_len: ");
        reported(config_kinds[i], (double)i + 2, "input_len", "\"");
        ck_assert_double_eq(config_of(i).input_len, 0); /* no number that was not stated */
    }
    reason_has(0, "\"-5\" is outside the limits: more than 0 and at most 10000000 tokens");
    ck_assert_int_eq(status_of(5), OPI_E_RANGE);
    reason_has(5, "column tp: \"1.5\" is outside the limits: a whole number from 1 to 65536 GPUs");
    for (size_t i = 6; i < 11; i++) {
        ck_assert_int_eq(status_of(i), OPI_OK); /* a bad measurement is missing, the row stays */
        ck_assert(isnan(opi_table_value(table, i, OPI__T_TTFT_P50)));
        ck_assert_double_eq(opi_table_value(table, i, OPI__T_REQ_S), 1);
    }
    reported("range", 8, "ttft_ms_p50", "\"0\" is outside the limits: more than 0 and at most 1000000000000 ms; taken as "
                                        "not measured");
    reported("range", 9, "ttft_ms_p50", "\"-3\"");
    reported("range", 10, "ttft_ms_p50", "\"1e308\"");
    reported("range", 11, "ttft_ms_p50", "\"inf\" is not finite");
    reported("not-measured-mark", 12, "ttft_ms_p50", "leave the cell blank");
}
END_TEST

START_TEST(shares_are_at_most_one)
{
    parse("gpu,model,kv_cache_usage,sm_activity,req_s\n" GPU "," LLM ",0.5,1,1\n" GPU "," LLM ",90,90 %,1\n");
    ck_assert_double_eq(opi_table_value(table, 0, OPI__T_KV_USAGE), 0.5);
    ck_assert_double_eq(opi_table_value(table, 0, OPI__T_SM_ACTIVITY), 1);
    ck_assert(isnan(opi_table_value(table, 1, OPI__T_KV_USAGE)));
    reported("range", 3, "kv_cache_usage", "at most 1 share");
    reported("unit", 3, "sm_activity", "\"90 %\" has a unit");
}
END_TEST

START_TEST(failed_launches)
{
    parse("gpu,model,launch_ok,fail_reason,ttft_ms_p50,req_s\n" GPU "," LLM ",0,oom,12,1\n" GPU "," LLM ",0,oom,,\n"
          GPU "," LLM ",1,,12,1\n" GPU "," LLM ",yes,,12,1\n" GPU "," LLM ",2,,12,1\n");
    ck_assert_int_eq(status_of(0), OPI_OK); /* the failure itself is a measurement */
    ck_assert_int_eq(table->rows[0].launch_ok, 0);
    ck_assert_str_eq(table->rows[0].fail_reason, "oom");
    ck_assert(isnan(opi_table_value(table, 0, OPI__T_TTFT_P50)));
    ck_assert(isnan(opi_table_value(table, 0, OPI__T_REQ_S)));
    reported("failed-row-numbers", 2, "req_s", "2 measured values are stated, the first \"1\": not used");
    ck_assert_int_eq(status_of(1), OPI_OK);
    ck_assert_double_eq(opi_table_value(table, 2, OPI__T_TTFT_P50), 12);
    ck_assert_int_eq(status_of(3), OPI_E_INVALID);
    reason_has(3, "column launch_ok: \"yes\" is not a number");
    ck_assert_int_eq(status_of(4), OPI_E_RANGE);
    reason_has(4, "column launch_ok: \"2\" is outside the limits: 0 or 1");
    opi__json *root = report();
    ck_assert_double_eq(number_at(root, "failed_launches"), 2);
    ck_assert_double_eq(number_at(opi__json_get(root, "labels"), "req_s"), 1);
    opi__json_free(root);
}
END_TEST

START_TEST(gpu_counts_that_do_not_multiply)
{
    parse("gpu,model,n_gpus,tp,pp,dp,req_s\n" GPU "," LLM ",4,2,,,1\n" GPU "," LLM ",4,2,2,1,1\n" GPU "," LLM ",4,,,,1\n"
          GPU "," LLM ",2,4,1,1,1\n");
    reported("gpu-count", 2, "n_gpus", "n_gpus is 4 but tp * pp * dp is 2");
    ck_assert_int_eq(status_of(0), OPI_OK);
    ck_assert_int_eq(status_of(2), OPI_OK);
    ck_assert_int_lt(status_of(3), 0); /* TP over more GPUs than there are cannot be */
    reason_has(3, "n_gpus");
    opi__json *root = report();
    ck_assert_double_eq(number_at(root, "rows_with_problems"), 2);
    opi__json_free(root);
}
END_TEST

START_TEST(ragged_rows)
{
    parse("gpu,model,req_s\n" GPU "," LLM "\n" GPU "," LLM ",1,2\n" GPU "," LLM ",1\n");
    ck_assert_uint_eq(opi_table_rows(table), 3);
    ck_assert_int_eq(status_of(0), OPI_E_FORMAT);
    reason_has(0, "line 2: 2 fields, but the line of column names has 3");
    reason_has(1, "line 3: 4 fields");
    ck_assert_int_eq(status_of(2), OPI_OK);
    ck_assert_uint_eq(opi_table_line(table, 2), 4);
    reported("ragged-row", 3, NULL, "4 fields");
}
END_TEST

START_TEST(files_that_are_refused)
{
    refused("", OPI_E_NODATA, "the table is empty", "column names");
    refused("\r\n\n", OPI_E_NODATA, "the table is empty", "column names");
    refused("gpu,model,req_s\n", OPI_E_NODATA, "no data line", "column names");
    refused("gpu;model;req_s\nH100;x;1,5\n", OPI_E_FORMAT, "line 1", "separated by ';'");
    refused("gpu\tmodel\treq_s\nH100\tx\t1\n", OPI_E_FORMAT, "line 1", "separated by tabs");
    refused("gpu,model,gpu,req_s\na,b,c,1\n", OPI_E_FORMAT, "column gpu stands twice", "columns 1 and 3");
    refused("foo,bar\n1,2\n", OPI_E_FORMAT, "no known column name", "\"foo\"");
    refused("gpu,model,req_s\n\"H100,x,1\n", OPI_E_FORMAT, "line 2", "never closed");
    ck_assert_int_eq(opi_table_parse(ctx, "gpu,\0model\n", 11, NULL, &table, &err), OPI_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "NUL byte"));
    ck_assert_int_eq(opi_table_parse(ctx, "x", (size_t)1 << 31, NULL, &table, &err), OPI_E_RANGE);
    ck_assert_ptr_nonnull(strstr(err.message, "2147483648 bytes; the limit is 2147483647"));
    ck_assert_ptr_null(table);
}
END_TEST

Suite *suite_table(void)
{
    Suite *s = suite_create("table");
    TCase *t = tcase_create("table");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_row);
    tcase_add_test(t, blanks_are_not_stated);
    tcase_add_test(t, the_cell_is_the_raw_text);
    tcase_add_test(t, crlf_bom_and_quoted_commas);
    tcase_add_test(t, a_missing_column_is_said);
    tcase_add_test(t, an_unknown_column_is_said_and_ignored);
    tcase_add_test(t, a_decimal_comma_refuses_the_file);
    tcase_add_test(t, separators_and_units_inside_numbers);
    tcase_add_test(t, numbers_outside_their_limits);
    tcase_add_test(t, shares_are_at_most_one);
    tcase_add_test(t, failed_launches);
    tcase_add_test(t, gpu_counts_that_do_not_multiply);
    tcase_add_test(t, ragged_rows);
    tcase_add_test(t, files_that_are_refused);
    suite_add_tcase(s, t);
    return s;
}
