/* SPDX-License-Identifier: Apache-2.0 */
/* Importers: small made-up documents of each format, in the units each format uses. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "facts/table.h"

Suite *suite_import(void);

#define GPU "H100-80GB-SXM"
#define LLM "meta-llama/Meta-Llama-3-8B"

static opi_ctx *ctx;
static opi_table *table;
static opi_error err;
static opi_gpu gpu;
static opi_llm llm;
static opi_config defaults;
static opi_table_options options;

static void setup(void)
{
    table = NULL;
    memset(&err, 0, sizeof err);
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
    gpu = (opi_gpu){.struct_size = sizeof gpu};
    llm = (opi_llm){.struct_size = sizeof llm};
    ck_assert_int_eq(opi_gpu_find(GPU, &gpu, NULL), OPI_OK);
    ck_assert_int_eq(opi_llm_find(LLM, &llm, NULL), OPI_OK);
    defaults = (opi_config){.struct_size = sizeof defaults, .gpu = &gpu, .n_gpus = 2, .tp = 2, .precision = "fp8"};
    options = (opi_table_options){.struct_size = sizeof options, .defaults = &defaults};
}

static void teardown(void)
{
    opi_table_free(table);
    opi_ctx_destroy(ctx);
}

static int32_t parse(const char *text)
{
    opi_table_free(table);
    table = NULL;
    return opi_table_parse(ctx, text, strlen(text), &options, &table, &err);
}

static void accepted(const char *text, const char *format, size_t rows)
{
    int32_t status = parse(text);
    ck_assert_msg(status == OPI_OK, "%s", err.message);
    ck_assert_str_eq(table->format, format);
    ck_assert_uint_eq(opi_table_rows(table), rows);
}

static opi_config config_of(size_t row)
{
    opi_config c = {.struct_size = sizeof c};
    int32_t status = 99;
    ck_assert_int_eq(opi_table_config(table, row, &c, &status, NULL), OPI_OK);
    ck_assert_msg(status == OPI_OK, "%s", opi_table_reason(table, row));
    return c;
}

static void value_is(size_t row, size_t target, double want)
{
    double v = opi_table_value(table, row, target);
    if (isnan(want))
        ck_assert_msg(isnan(v), "%s is %g", opi__targets[target].name, v);
    else
        ck_assert_double_eq_tol(v, want, 1e-12 * want);
}

static void unusable(size_t row, const char *word)
{
    opi_config c = {.struct_size = sizeof c};
    int32_t status = 0;
    ck_assert_int_eq(opi_table_config(table, row, &c, &status, NULL), OPI_OK);
    ck_assert_int_lt(status, 0);
    ck_assert_msg(strstr(opi_table_reason(table, row), word), "%s", opi_table_reason(table, row));
}

static int reported(const char *kind, const char *word)
{
    for (size_t i = 0; i < table->n_problems; i++)
        if (strcmp(table->problems[i].kind, kind) == 0 && strstr(table->problems[i].reason, word))
            return 1;
    return 0;
}

#define VLLM(model, completed, failed, rate, more)                                                                     \
    "{\"date\": \"20250101\", \"backend\": \"vllm\", \"model_id\": \"" model "\", \"num_prompts\": 100, "               \
    "\"request_rate\": " rate ", \"duration\": 10.0, \"completed\": " completed ", \"failed\": " failed ", "            \
    "\"total_input_tokens\": 102400, \"total_output_tokens\": 12800, \"request_throughput\": 10.0, "                    \
    "\"output_throughput\": 1280.0, \"total_token_throughput\": 11520.0, \"mean_ttft_ms\": 90.0, "                      \
    "\"median_ttft_ms\": 80.0, \"p99_ttft_ms\": 200.0, \"mean_tpot_ms\": 12.0, \"median_tpot_ms\": 11.0, "              \
    "\"mean_itl_ms\": 12.5, \"median_itl_ms\": 11.5, \"p95_itl_ms\": 30.0, \"mean_e2el_ms\": 1500.0, "                  \
    "\"median_e2el_ms\": 1400.0, \"ttfts\": [0.08, 0.09], \"itls\": [[0.01], [0.02, 0.01]]" more "}"

START_TEST(vllm_bench)
{
    accepted(VLLM(LLM, "100", "0", "\"inf\"", ", \"max_concurrency\": 16"), "vllm-bench", 1);
    opi_config c = config_of(0);
    ck_assert_str_eq(c.llm->name, LLM);
    ck_assert_str_eq(c.gpu->name, GPU);
    ck_assert_int_eq(c.tp, 2);
    ck_assert_str_eq(c.precision, "fp8");
    ck_assert_str_eq(c.engine, "vllm");
    ck_assert_str_eq(c.load_kind, "concurrency");
    ck_assert_double_eq(c.concurrency, 16);
    ck_assert_double_eq(c.request_rate, 0);
    ck_assert_double_eq(c.input_len, 1024);
    ck_assert_double_eq(c.output_len, 128);
    value_is(0, OPI__T_OUT_TOK_S, 1280);
    value_is(0, OPI__T_TOTAL_TOK_S, 11520);
    value_is(0, OPI__T_REQ_S, 10);
    value_is(0, OPI__T_TTFT_P50, 80);
    value_is(0, OPI__T_TTFT_P95, NAN); /* p99 is not p95 */
    value_is(0, OPI__T_ITL_P50, 11.5);
    value_is(0, OPI__T_ITL_P95, 30);
    value_is(0, OPI__T_E2E, 1.5);
    ck_assert_str_eq(table->rows[0].source, "user");
    ck_assert_uint_eq(table->total_problems, 0);
}
END_TEST

START_TEST(vllm_bench_loads_and_metadata)
{
    accepted("[" VLLM(LLM, "100", "0", "4.0", "") "," VLLM(LLM, "100", "0", "\"inf\"", "") ","
                 VLLM(LLM, "100", "0", "2", ", \"max_concurrency\": 64, \"gpu\": \"A100-80GB-SXM\", \"tp\": \"4\", "
                      "\"precision\": \"bfloat16\", \"n_gpus\": 4, \"workload\": \"fixed-1024x128\"") "]",
             "vllm-bench", 3);
    opi_config rate = config_of(0), offline = config_of(1), stated = config_of(2);
    ck_assert_str_eq(rate.load_kind, "rate");
    ck_assert_double_eq(rate.request_rate, 4);
    ck_assert_double_eq(rate.concurrency, 0);
    ck_assert_str_eq(offline.load_kind, "offline");
    ck_assert_str_eq(stated.gpu->name, "A100-80GB-SXM");
    ck_assert_int_eq(stated.tp, 4);
    ck_assert_int_eq(stated.n_gpus, 4);
    ck_assert_str_eq(stated.precision, "bf16");
    ck_assert_str_eq(stated.load_kind, "rate");
    ck_assert_double_eq(stated.concurrency, 64);
    ck_assert_uint_eq(table->rows[2].cell, table->rows[2].cell_mix); /* a fixed workload keeps its lengths */
    ck_assert_uint_ne(table->rows[0].cell, table->rows[0].cell_mix);
}
END_TEST

START_TEST(failed_requests)
{
    accepted("[" VLLM(LLM, "95", "5", "1", "") "," VLLM(LLM, "80", "20", "1", "") "," VLLM(LLM, "0", "100", "1", "") "]",
             "vllm-bench", 3);
    config_of(0);
    ck_assert(reported("failed-requests", "record 1: 5 of 100 requests failed"));
    unusable(1, "record 2: 20 of 100 requests failed");
    value_is(1, OPI__T_OUT_TOK_S, NAN);
    unusable(2, "no request completed");
}
END_TEST

START_TEST(names_only_the_server_knew)
{
    accepted(VLLM("my-alias", "100", "0", "1", ""), "vllm-bench", 1);
    unusable(0, "my-alias"); /* never a silent substitute */
    defaults.llm = &llm;
    accepted(VLLM("my-alias", "100", "0", "1", ""), "vllm-bench", 1);
    ck_assert_str_eq(config_of(0).llm->name, LLM);
    ck_assert(reported("default-llm", "LLM \"my-alias\" is not known: taken as the stated " LLM));
    defaults.gpu = NULL;
    accepted(VLLM(LLM, "100", "0", "1", ""), "vllm-bench", 1);
    unusable(0, "no GPU");
}
END_TEST

START_TEST(one_object_a_line)
{
    accepted(VLLM(LLM, "100", "0", "1", "") "\n\n" VLLM(LLM, "100", "0", "2", "") "\r\n", "vllm-bench", 2);
    ck_assert_double_eq(config_of(1).request_rate, 2);
    ck_assert_uint_eq(opi_table_line(table, 1), 2);
    ck_assert_int_eq(parse(VLLM(LLM, "100", "0", "1", "") "\n{\"broken\": \n"), OPI_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "line 2"));
    ck_assert_ptr_null(table);
}
END_TEST

#define DIST(mean, p50, p95)                                                                                           \
    "{\"successful\": {\"mean\": " mean ", \"median\": " p50 ", \"percentiles\": {\"p50\": " p50 ", \"p95\": " p95      \
    "}}, \"errored\": {\"mean\": 9999}}"
#define GUIDE(strategy, ttft)                                                                                          \
    "{\"config\": {\"strategy\": " strategy ", \"backend\": {\"model\": \"" LLM "\"}}, "                                \
    "\"scheduler_metrics\": {\"requests_made\": {\"successful\": 50, \"errored\": 0, \"incomplete\": 3, \"total\": 53}}, " \
    "\"metrics\": {\"requests_per_second\": " DIST("2.5", "2.4", "3") ", \"output_tokens_per_second\": "                \
        DIST("640", "600", "700") ", \"tokens_per_second\": " DIST("3200", "3100", "3300")                              \
    ", \"request_latency\": " DIST("3.25", "3.0", "4") ", \"time_to_first_token_ms\": " ttft                            \
    ", \"inter_token_latency_ms\": " DIST("11", "10", "14") ", \"prompt_token_count\": " DIST("1000", "1000", "1000")   \
    ", \"output_token_count\": " DIST("256", "256", "256") "}}"

#define GUIDE_REPORT(benchmarks) "{\"metadata\": {\"version\": 2}, \"benchmarks\": [" benchmarks "]}"
#define TTFT DIST("70", "60", "120")

START_TEST(guidellm)
{
    accepted(GUIDE_REPORT(GUIDE("{\"type_\": \"concurrent\", \"streams\": 8, \"max_concurrency\": 8}", TTFT) ","
                          GUIDE("{\"type_\": \"constant\", \"rate\": 2.5}", DIST("70", "-1.7e12", "120"))),
             "guidellm", 2);
    opi_config c = config_of(0);
    ck_assert_str_eq(c.llm->name, LLM);
    ck_assert_str_eq(c.load_kind, "concurrency");
    ck_assert_double_eq(c.concurrency, 8);
    ck_assert_double_eq(c.input_len, 1000);
    ck_assert_double_eq(c.output_len, 256);
    value_is(0, OPI__T_OUT_TOK_S, 640);
    value_is(0, OPI__T_TOTAL_TOK_S, 3200);
    value_is(0, OPI__T_REQ_S, 2.5);
    value_is(0, OPI__T_TTFT_P50, 60);
    value_is(0, OPI__T_TTFT_P95, 120);
    value_is(0, OPI__T_ITL_P50, 10);
    value_is(0, OPI__T_ITL_P95, 14);
    value_is(0, OPI__T_E2E, 3.25); /* request_latency is in seconds, unlike the others */
    ck_assert_str_eq(config_of(1).load_kind, "rate");
    ck_assert_double_eq(config_of(1).request_rate, 2.5);
    value_is(1, OPI__T_TTFT_P50, NAN); /* an absurd value is refused by name, the row stays */
    ck_assert(reported("range", "record 2, column ttft_ms_p50: \"-1"));
}
END_TEST

START_TEST(guidellm_strategies)
{
    accepted(GUIDE_REPORT(GUIDE("{\"type_\": \"synchronous\"}", TTFT) ","
                          GUIDE("{\"type_\": \"throughput\", \"max_concurrency\": 512}", TTFT)), "guidellm", 2);
    ck_assert_double_eq(config_of(0).concurrency, 1);
    ck_assert_str_eq(config_of(0).load_kind, "concurrency");
    ck_assert_double_eq(config_of(1).concurrency, 512);
    ck_assert_str_eq(config_of(1).load_kind, "concurrency");
    accepted(GUIDE_REPORT(GUIDE("{\"type_\": \"throughput\"}", TTFT) "," GUIDE("{\"type_\": \"surprise\"}", TTFT)),
             "guidellm", 2);
    ck_assert_str_eq(config_of(0).load_kind, "offline");
    ck_assert_ptr_null(config_of(1).load_kind);
    ck_assert(reported("load", "record 2: the strategy is not one of"));
}
END_TEST

START_TEST(aiperf)
{
    accepted("{\"schema_version\": \"1.1\", \"input_config\": {\"endpoint\": {\"model_names\": [\"" LLM "\"]}, "
             "\"loadgen\": {\"concurrency\": 32, \"request_rate\": null}}, \"was_cancelled\": false, "
             "\"request_count\": {\"unit\": \"requests\", \"avg\": 200}, "
             "\"request_throughput\": {\"unit\": \"requests/sec\", \"avg\": 4.0}, "
             "\"output_token_throughput\": {\"unit\": \"tokens/sec\", \"avg\": 1024.0}, "
             "\"total_token_throughput\": {\"unit\": \"tokens/fortnight\", \"avg\": 1024.0}, "
             "\"time_to_first_token\": {\"unit\": \"s\", \"avg\": 0.05, \"p50\": 0.04, \"p95\": 0.09, \"p99\": 0.2}, "
             "\"inter_token_latency\": {\"unit\": \"ms\", \"avg\": 9.0, \"p50\": 8.5, \"p95\": 12.0}, "
             "\"request_latency\": {\"unit\": \"ms\", \"avg\": 2250.0, \"p50\": 2200.0}, "
             "\"input_sequence_length\": {\"unit\": \"tokens\", \"avg\": 512.5}, "
             "\"output_sequence_length\": {\"unit\": \"tokens\", \"avg\": 256}, "
             "\"telemetry_data\": {\"endpoints\": {\"h:9400\": {\"gpus\": {"
             "\"gpu_0\": {\"metrics\": {\"nvidia_power_usage\": {\"unit\": \"W\", \"avg\": 500}}}, "
             "\"gpu_1\": {\"metrics\": {\"nvidia_power_usage\": {\"unit\": \"mW\", \"avg\": 600000}}}}}}}}", "aiperf", 1);
    opi_config c = config_of(0);
    ck_assert_str_eq(c.llm->name, LLM);
    ck_assert_str_eq(c.load_kind, "concurrency");
    ck_assert_double_eq(c.concurrency, 32);
    ck_assert_double_eq(c.input_len, 512.5);
    ck_assert_double_eq(c.output_len, 256);
    value_is(0, OPI__T_OUT_TOK_S, 1024);
    value_is(0, OPI__T_TOTAL_TOK_S, NAN);
    value_is(0, OPI__T_REQ_S, 4);
    value_is(0, OPI__T_TTFT_P50, 40);
    value_is(0, OPI__T_TTFT_P95, 90);
    value_is(0, OPI__T_ITL_P50, 8.5);
    value_is(0, OPI__T_ITL_P95, 12);
    value_is(0, OPI__T_E2E, 2.25);
    value_is(0, OPI__T_POWER, 550);
    ck_assert(reported("unit", "record 1: the unit of total_token_throughput cannot be turned into tokens/s"));
    accepted("{\"request_throughput\": {\"unit\": \"requests/sec\", \"avg\": 4.0}, \"was_cancelled\": true}", "aiperf", 1);
    unusable(0, "the run was interrupted");
}
END_TEST

#define INFERENCEX(hw, more)                                                                                           \
    "{\"hw\": \"" hw "\", \"tp\": 4, \"ep\": 1, \"conc\": 64, \"model\": \"" LLM "\", \"framework\": \"trt\", "         \
    "\"precision\": \"fp8\", \"tput_per_gpu\": 2000.0, \"output_tput_per_gpu\": 1000.0, \"mean_ttft\": 0.08, "          \
    "\"median_ttft\": 0.0625, \"p99_ttft\": 0.5, \"mean_e2el\": 7.5, \"median_e2el\": 7.25, "                           \
    "\"median_intvty\": 125.0" more "}"

START_TEST(inferencex)
{
    accepted("[" INFERENCEX(GPU, ", \"isl\": 1024, \"osl\": 8192, \"median_tpot\": 0.0075, \"avg_power_w\": 600") ","
                 INFERENCEX("h200-trt", "") "," INFERENCEX("h200", ", \"disagg\": true") "]", "inferencex", 3);
    opi_config c = config_of(0);
    ck_assert_str_eq(c.gpu->name, GPU);
    ck_assert_str_eq(c.engine, "tensorrt-llm");
    ck_assert_int_eq(c.tp, 4);
    ck_assert_int_eq(c.n_gpus, 4);
    ck_assert_int_eq(c.ep, 1);
    ck_assert_double_eq(c.concurrency, 64);
    ck_assert_str_eq(c.load_kind, "concurrency");
    ck_assert_double_eq(c.input_len, 1024);
    ck_assert_double_eq(c.output_len, 8192);
    ck_assert_str_eq(table->rows[0].workload, "fixed-1024x8192");
    value_is(0, OPI__T_OUT_TOK_S, 4000);
    value_is(0, OPI__T_TOTAL_TOK_S, 8000);
    value_is(0, OPI__T_TTFT_P50, 62.5);
    value_is(0, OPI__T_TTFT_P95, NAN);
    value_is(0, OPI__T_ITL_P50, 7.5);
    value_is(0, OPI__T_E2E, 7.5);
    value_is(0, OPI__T_POWER, NAN); /* of one GPU or of all: the file does not say */
    ck_assert(reported("power", "record 1: avg_power_w is not used"));
    ck_assert_str_eq(config_of(1).gpu->name, "H200-141GB");
    value_is(1, OPI__T_ITL_P50, 8); /* 1000 / 125 tokens a second */
    ck_assert_str_eq(table->rows[1].workload, "");
    unusable(2, "record 3: prefill and decode on separate");
}
END_TEST

START_TEST(documents_that_are_refused)
{
    ck_assert_int_eq(parse("{\"foo\": 1, \"bar\": 2}"), OPI_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "record 1: not a document of a known format (its keys: foo, bar)"));
    ck_assert_int_eq(parse("[1, 2]"), OPI_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "record 1: not a JSON object"));
    ck_assert_int_eq(parse("[]"), OPI_E_NODATA);
    ck_assert_int_eq(parse("{\"benchmarks\": []}"), OPI_E_NODATA);
    ck_assert_int_eq(parse("{\"benchmarks\": [1, null]}"), OPI_OK); /* rows without anything, kept with a reason */
    unusable(0, "no LLM");
    ck_assert_int_eq(parse("{\"output_throughput\": "), OPI_E_FORMAT);
    ck_assert_ptr_null(table);
    ck_assert_int_eq(parse("[" VLLM(LLM, "100", "0", "1", "") ", {\"hw\": \"h100\", \"tput_per_gpu\": 1}]"), OPI_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "record 2: not a document of the format vllm-bench"));
    options.format = "guidellm";
    ck_assert_int_eq(parse(VLLM(LLM, "100", "0", "1", "")), OPI_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "not a document of the format guidellm"));
    options.format = "xml";
    ck_assert_int_eq(parse("{}"), OPI_E_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(err.message, "\"xml\" is not known: the formats are csv, vllm-bench, guidellm, aiperf, "
                                              "inferencex"));
    options.format = "csv";
    ck_assert_int_eq(parse("{\"hw\": 1}"), OPI_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "no known column name"));
}
END_TEST

START_TEST(numbers_as_odd_texts)
{
    accepted(VLLM(LLM, "100", "0", "1", ", \"tp\": \"two\""), "vllm-bench", 1);
    unusable(0, "record 1, column tp: \"two\" is not a number");
    ck_assert_int_eq(parse(VLLM(LLM, "100", "0", "1", ", \"mem_util\": \"0,9\"")), OPI_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "record 1, column mem_util: \"0,9\""));
}
END_TEST

START_TEST(the_registry)
{
    static const char *const names[] = {"csv", "vllm-bench", "guidellm", "aiperf", "inferencex"};
    ck_assert_uint_eq(opi_import_count(), 5);
    for (size_t i = 0; i < 5; i++)
        ck_assert_str_eq(opi_import_name_at(i), names[i]);
    ck_assert_ptr_null(opi_import_name_at(5));
}
END_TEST

START_TEST(files)
{
    char path[] = "/tmp/opi_import_XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *f = fdopen(fd, "wb");
    ck_assert_int_eq(fputs("gpu,model,req_s\n" GPU "," LLM ",1\n", f) >= 0, 1);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(opi_table_read(ctx, path, NULL, &table, &err), OPI_OK);
    value_is(0, OPI__T_REQ_S, 1);
    ck_assert_str_eq(table->sha256, "4f6dc50ff8c15d2b89b0af9112695f7c02692ba561dd052b3036529bc5539aff");
    f = fopen(path, "wb");
    ck_assert_int_eq(fputs("gpu,gpu\n1,2\n", f) >= 0, 1);
    ck_assert_int_eq(fclose(f), 0);
    opi_table *other = NULL;
    ck_assert_int_eq(opi_table_read(ctx, path, NULL, &other, &err), OPI_E_FORMAT);
    ck_assert_ptr_null(other);
    ck_assert(strncmp(err.message, path, strlen(path)) == 0); /* the message names the file */
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(opi_table_read(ctx, path, NULL, &other, &err), OPI_E_IO);
    ck_assert_ptr_nonnull(strstr(err.message, path));
    ck_assert_int_eq(opi_table_read(ctx, NULL, NULL, &other, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_table_read(ctx, path, NULL, NULL, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_table_parse(ctx, NULL, 5, NULL, &other, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_table_parse(NULL, "", 0, NULL, &other, &err), OPI_E_INVALID);
    options.struct_size = 0;
    ck_assert_int_eq(opi_table_parse(ctx, "", 0, &options, &other, &err), OPI_E_INVALID);
}
END_TEST

Suite *suite_import(void)
{
    Suite *s = suite_create("import");
    TCase *t = tcase_create("import");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, vllm_bench);
    tcase_add_test(t, vllm_bench_loads_and_metadata);
    tcase_add_test(t, failed_requests);
    tcase_add_test(t, names_only_the_server_knew);
    tcase_add_test(t, one_object_a_line);
    tcase_add_test(t, guidellm);
    tcase_add_test(t, guidellm_strategies);
    tcase_add_test(t, aiperf);
    tcase_add_test(t, inferencex);
    tcase_add_test(t, documents_that_are_refused);
    tcase_add_test(t, numbers_as_odd_texts);
    tcase_add_test(t, the_registry);
    tcase_add_test(t, files);
    suite_add_tcase(s, t);
    return s;
}
