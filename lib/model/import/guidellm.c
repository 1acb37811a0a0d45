/* SPDX-License-Identifier: Apache-2.0 */
/* GuideLLM reports (version 2, and 1 where the names agree): one row a benchmark. Figures are those of successful
 * requests; request_latency is in seconds, the *_ms metrics are not. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "model/import/record.h"

static int match(const opi__json *o)
{
    return opi__json_is_array(opi__json_get(o, "benchmarks"));
}

/* metrics.NAME.successful.STAT; percentiles also under "percentiles", the median also under its own name. */
static const opi__json *statistic(const opi__json *benchmark, const char *name, const char *stat)
{
    const opi__json *group = opi__json_get(opi__json_get(benchmark, "metrics"), name);
    const opi__json *of = opi__json_get(group, "successful");
    const opi__json *v = opi__json_get(opi__json_get(of, "percentiles"), stat);
    if (!v)
        v = opi__json_get(of, stat);
    if (!v && strcmp(stat, "p50") == 0)
        v = opi__json_get(of, "median");
    return v;
}

static void read_load(opi__record *r, const opi__json *benchmark)
{
    const opi__json *strategy = opi__json_path(benchmark, "config.strategy");
    const char *type = opi__json_string(opi__json_get(strategy, "type_"));
    double rate = opi__json_number_or(opi__json_get(strategy, "rate"), 0);
    double in_flight = opi__json_number_or(opi__json_get(strategy, "max_concurrency"), 0);
    double streams = opi__json_number_or(opi__json_get(strategy, "streams"), 0);
    if (!type)
        type = opi__json_string(strategy);
    if (type && strcmp(type, "synchronous") == 0)
        opi__record_load(r, 0, 1);
    else if (type && strcmp(type, "concurrent") == 0)
        opi__record_load(r, 0, streams > 0 ? streams : in_flight);
    else if (type && (strcmp(type, "constant") == 0 || strcmp(type, "poisson") == 0))
        opi__record_load(r, rate, in_flight);
    else if (type && strcmp(type, "throughput") == 0)
        opi__record_load(r, 0, in_flight);
    else
        opi__record_note(r, "load", "the strategy is not one of synchronous, concurrent, throughput, constant, poisson: the "
                                    "kind of load is left blank");
}

/* Where the versions of the report keep the model's name. */
static const char *model_name(const opi__json *report, const opi__json *benchmark)
{
    static const char *const places[] = {"config.backend.model", "config.model", "worker.backend_model",
                                         "args.backend_args.model", "args.model"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *name = opi__json_string(opi__json_path(benchmark, places[i]));
        if (!name)
            name = opi__json_string(opi__json_path(report, places[i]));
        if (name)
            return name;
    }
    return NULL;
}

static int32_t read_benchmark(opi__builder *b, const opi__json *report, const opi__json *benchmark, opi_error *err)
{
    const struct {
        size_t column;
        const char *metric, *stat;
    } map[] = {
        {OPI__COL_INPUT_LEN, "prompt_token_count", "mean"},
        {OPI__COL_OUTPUT_LEN, "output_token_count", "mean"},
        {OPI__COL_TARGETS + OPI__T_OUT_TOK_S, "output_tokens_per_second", "mean"},
        {OPI__COL_TARGETS + OPI__T_TOTAL_TOK_S, "tokens_per_second", "mean"},
        {OPI__COL_TARGETS + OPI__T_REQ_S, "requests_per_second", "mean"},
        {OPI__COL_TARGETS + OPI__T_TTFT_P50, "time_to_first_token_ms", "p50"},
        {OPI__COL_TARGETS + OPI__T_TTFT_P95, "time_to_first_token_ms", "p95"},
        {OPI__COL_TARGETS + OPI__T_ITL_P50, "inter_token_latency_ms", "p50"},
        {OPI__COL_TARGETS + OPI__T_ITL_P95, "inter_token_latency_ms", "p95"},
        {OPI__COL_TARGETS + OPI__T_E2E, "request_latency", "mean"},
        {OPI__COL_TTFT_MEAN, "time_to_first_token_ms", "mean"},
        {OPI__COL_ITL_MEAN, "inter_token_latency_ms", "mean"},
    };
    opi__record r;
    char why[160];
    opi__record_start(&r, b);
    const opi__json *made = opi__json_path(benchmark, "scheduler_metrics.requests_made");
    if (!made)
        made = opi__json_path(benchmark, "run_stats.requests_made");
    opi__record_text(&r, OPI__COL_MODEL, model_name(report, benchmark));
    if (opi__record_too_many_failed(&r, opi__json_number_or(opi__json_get(made, "successful"), NAN),
                                    opi__json_number_or(opi__json_get(made, "errored"), NAN), why, sizeof why))
        return opi__record_refuse(&r, "failed-requests", why, err);
    read_load(&r, benchmark);
    for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
        opi__record_json(&r, map[i].column, statistic(benchmark, map[i].metric, map[i].stat), 1);
    opi__record_own_columns(&r, opi__json_get(benchmark, "extras"));
    opi__record_own_columns(&r, opi__json_get(report, "extras"));
    return opi__record_add(&r, err);
}

static int32_t read_document(opi__builder *b, const opi__json *o, opi_error *err)
{
    const opi__json *benchmarks = opi__json_get(o, "benchmarks");
    size_t n = opi__json_size(benchmarks);
    int32_t status = OPI_OK;
    for (size_t i = 0; status == OPI_OK && i < n && i < OPI__IMPORT_MAX_RECORDS; i++)
        status = read_benchmark(b, o, opi__json_at(benchmarks, i), err);
    return status;
}

const opi__import_format opi__import_guidellm = {"guidellm", match, read_document};
