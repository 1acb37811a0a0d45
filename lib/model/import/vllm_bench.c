/* SPDX-License-Identifier: Apache-2.0 */
/* `vllm bench serve --save-result`, and the records of SGLang's bench_serving, which share their names: one object a
 * run, summaries in milliseconds. The client knows neither GPU nor TP nor precision: --metadata or defaults state them. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "model/import/record.h"

static int match(const opi__json *o)
{
    double v;
    return opi__json_number(opi__json_get(o, "output_throughput"), &v) &&
           (opi__json_get(o, "median_ttft_ms") || opi__json_get(o, "completed") || opi__json_get(o, "num_prompts"));
}

/* The client's backend names the server only when it is a server's own. */
static void read_engine(opi__record *r, const opi__json *o)
{
    static const char *const servers[] = {"vllm", "sglang", "tensorrt-llm", "tgi", "lmdeploy", "deepspeed-mii"};
    const char *backend = opi__json_string(opi__json_get(o, "backend"));
    for (size_t i = 0; backend && i < sizeof servers / sizeof servers[0]; i++)
        if (opi__equal_nocase(backend, servers[i]))
            opi__record_text(r, OPI__COL_ENGINE, servers[i]);
}

static void read_latencies(opi__record *r, const opi__json *o)
{
    const struct {
        size_t column;
        const char *keys[2]; /* the second when there is no first */
        double scale;
    } map[] = {
        {OPI__COL_TARGETS + OPI__T_TTFT_P50, {"median_ttft_ms", NULL}, 1},
        {OPI__COL_TARGETS + OPI__T_TTFT_P95, {"p95_ttft_ms", NULL}, 1},
        {OPI__COL_TARGETS + OPI__T_ITL_P50, {"median_itl_ms", "median_tpot_ms"}, 1},
        {OPI__COL_TARGETS + OPI__T_ITL_P95, {"p95_itl_ms", "p95_tpot_ms"}, 1},
        {OPI__COL_TARGETS + OPI__T_E2E, {"mean_e2el_ms", "mean_e2e_latency_ms"}, 1e-3},
        {OPI__COL_TTFT_MEAN, {"mean_ttft_ms", NULL}, 1},
        {OPI__COL_ITL_MEAN, {"mean_itl_ms", "mean_tpot_ms"}, 1},
    };
    for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
        for (size_t k = 0; k < 2 && map[i].keys[k]; k++)
            opi__record_json(r, map[i].column, opi__json_get(o, map[i].keys[k]), map[i].scale);
}

static int32_t read_document(opi__builder *b, const opi__json *o, opi_error *err)
{
    opi__record r;
    char why[160];
    opi__record_start(&r, b);
    double completed = opi__json_number_or(opi__json_get(o, "completed"), NAN);
    double failed = opi__json_number_or(opi__json_get(o, "failed"), NAN);
    if (isnan(failed)) /* older versions count the prompts only */
        failed = opi__json_number_or(opi__json_get(o, "num_prompts"), NAN) - completed;
    opi__record_text(&r, OPI__COL_MODEL, opi__json_string(opi__json_get(o, "model_id")));
    if (opi__record_too_many_failed(&r, completed, failed, why, sizeof why))
        return opi__record_refuse(&r, "failed-requests", why, err);
    if (completed > 0) {
        opi__record_number(&r, OPI__COL_INPUT_LEN,
                           opi__json_number_or(opi__json_get(o, "total_input_tokens"), NAN) / completed);
        opi__record_number(&r, OPI__COL_OUTPUT_LEN,
                           opi__json_number_or(opi__json_get(o, "total_output_tokens"), NAN) / completed);
    }
    /* "inf": every request is sent at once, which max_concurrency may bound. */
    opi__record_load(&r, opi__json_number_or(opi__json_get(o, "request_rate"), INFINITY),
                     opi__json_number_or(opi__json_get(o, "max_concurrency"), 0));
    opi__record_json(&r, OPI__COL_TARGETS + OPI__T_OUT_TOK_S, opi__json_get(o, "output_throughput"), 1);
    opi__record_json(&r, OPI__COL_TARGETS + OPI__T_TOTAL_TOK_S, opi__json_get(o, "total_token_throughput"), 1);
    opi__record_json(&r, OPI__COL_TARGETS + OPI__T_TOTAL_TOK_S, opi__json_get(o, "total_throughput"), 1);
    opi__record_json(&r, OPI__COL_TARGETS + OPI__T_REQ_S, opi__json_get(o, "request_throughput"), 1);
    read_latencies(&r, o);
    read_engine(&r, o);
    opi__record_own_columns(&r, o);
    return opi__record_add(&r, err);
}

const opi__import_format opi__import_vllm_bench = {"vllm-bench", match, read_document};
