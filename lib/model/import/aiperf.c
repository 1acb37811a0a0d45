/* SPDX-License-Identifier: Apache-2.0 */
/* AIPerf's profile_export_aiperf.json: one object a run, each metric {unit, avg, p50, p95 …}. The unit decides. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "model/import/record.h"

static int match(const opi__json *o)
{
    return opi__json_string(opi__json_path(o, "request_throughput.unit")) ||
           opi__json_string(opi__json_path(o, "time_to_first_token.unit")) ||
           opi__json_string(opi__json_path(o, "request_latency.unit"));
}

/* Factor from the file's unit to the column's; 0 = unknown. */
static double factor(const char *unit, const char *wanted)
{
    static const struct {
        const char *unit, *wanted;
        double factor;
    } table[] = {
        {"ms", "ms", 1},         {"s", "ms", 1e3},        {"sec", "ms", 1e3},          {"seconds", "ms", 1e3},
        {"us", "ms", 1e-3},      {"ns", "ms", 1e-6},      {"milliseconds", "ms", 1},   {"ms", "s", 1e-3},
        {"s", "s", 1},           {"sec", "s", 1},         {"seconds", "s", 1},         {"us", "s", 1e-6},
        {"ns", "s", 1e-9},       {"milliseconds", "s", 1e-3},
        {"tokens/sec", "tokens/s", 1},     {"tokens/s", "tokens/s", 1},
        {"requests/sec", "requests/s", 1}, {"requests/s", "requests/s", 1},
        {"tokens", "tokens", 1}, {"requests", "requests", 1}, {"W", "W", 1},           {"mW", "W", 1e-3},
    };
    for (size_t i = 0; unit && i < sizeof table / sizeof table[0]; i++)
        if (opi__equal_nocase(unit, table[i].unit) && strcmp(wanted, table[i].wanted) == 0)
            return table[i].factor;
    return 0;
}

static void read_metric(opi__record *r, const opi__json *o, size_t column, const char *metric, const char *stat)
{
    const opi__json *m = opi__json_get(o, metric), *v = opi__json_get(m, stat);
    const char *unit = opi__json_string(opi__json_get(m, "unit"));
    if (!v)
        return;
    double scale = factor(unit, opi__column_at(column).unit);
    if (scale > 0)
        opi__record_json(r, column, v, scale);
    else
        opi__record_note(r, "unit", "the unit of %s cannot be turned into %s: not used", metric,
                         opi__column_at(column).unit);
}

/* The first number (or text) under a key anywhere in the run's own configuration, whose layout differs by version. */
static const opi__json *find_key(const opi__json *object, const char *key, int depth)
{
    const opi__json *found = opi__json_get(object, key);
    if (found && !opi__json_is_null(found))
        return found;
    size_t n = opi__json_is_object(object) && depth > 0 ? opi__json_size(object) : 0;
    for (size_t i = 0; i < n && i < 64; i++) {
        found = find_key(opi__json_at(object, i), key, depth - 1);
        if (found)
            return found;
    }
    return NULL;
}

static const char *model_name(const opi__json *config)
{
    const opi__json *names = find_key(config, "model_names", 4);
    if (opi__json_is_array(names))
        names = opi__json_at(names, 0);
    const char *name = opi__json_string(names);
    return name ? name : opi__json_string(find_key(config, "model", 4));
}

/* Mean over the GPUs of their mean power; the count and, when all agree, the GPU's name. */
static void read_telemetry(opi__record *r, const opi__json *o)
{
    const opi__json *endpoints = opi__json_path(o, "telemetry_data.endpoints");
    double sum = 0, watts = 0;
    size_t measured = 0;
    for (size_t e = 0; e < opi__json_size(endpoints) && e < 64; e++) {
        const opi__json *gpus = opi__json_get(opi__json_at(endpoints, e), "gpus");
        for (size_t i = 0; i < opi__json_size(gpus) && i < 64; i++) {
            const opi__json *metrics = opi__json_get(opi__json_at(gpus, i), "metrics");
            static const char *const names[] = {"nvidia_power_usage", "gpu_power_usage", "amd_power_usage"};
            for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
                const opi__json *m = opi__json_get(metrics, names[k]);
                double scale = factor(opi__json_string(opi__json_get(m, "unit")), "W");
                if (scale > 0 && opi__json_number(opi__json_get(m, "avg"), &watts)) {
                    sum += watts * scale;
                    measured++;
                    break;
                }
            }
        }
    }
    if (measured > 0)
        opi__record_number(r, OPI__COL_TARGETS + OPI__T_POWER, sum / (double)measured);
}

static int32_t read_document(opi__builder *b, const opi__json *o, opi_error *err)
{
    const struct {
        size_t column;
        const char *metric, *stat;
    } map[] = {
        {OPI__COL_INPUT_LEN, "input_sequence_length", "avg"},
        {OPI__COL_OUTPUT_LEN, "output_sequence_length", "avg"},
        {OPI__COL_TARGETS + OPI__T_OUT_TOK_S, "output_token_throughput", "avg"},
        {OPI__COL_TARGETS + OPI__T_TOTAL_TOK_S, "total_token_throughput", "avg"},
        {OPI__COL_TARGETS + OPI__T_REQ_S, "request_throughput", "avg"},
        {OPI__COL_TARGETS + OPI__T_TTFT_P50, "time_to_first_token", "p50"},
        {OPI__COL_TARGETS + OPI__T_TTFT_P95, "time_to_first_token", "p95"},
        {OPI__COL_TARGETS + OPI__T_ITL_P50, "inter_token_latency", "p50"},
        {OPI__COL_TARGETS + OPI__T_ITL_P95, "inter_token_latency", "p95"},
        {OPI__COL_TARGETS + OPI__T_E2E, "request_latency", "avg"},
        {OPI__COL_TTFT_MEAN, "time_to_first_token", "avg"},
        {OPI__COL_ITL_MEAN, "inter_token_latency", "avg"},
    };
    opi__record r;
    char why[160];
    int cancelled = 0;
    opi__record_start(&r, b);
    const opi__json *config = opi__json_get(o, "input_config");
    opi__record_text(&r, OPI__COL_MODEL, model_name(config));
    if (opi__json_bool(opi__json_get(o, "was_cancelled"), &cancelled) && cancelled)
        return opi__record_refuse(&r, "canceled", "the run was interrupted (was_cancelled)", err);
    if (opi__record_too_many_failed(&r, opi__json_number_or(opi__json_path(o, "request_count.avg"), NAN),
                                    opi__json_number_or(opi__json_path(o, "error_request_count.avg"), 0), why, sizeof why))
        return opi__record_refuse(&r, "failed-requests", why, err);
    opi__record_load(&r, opi__json_number_or(find_key(config, "request_rate", 4), 0),
                     opi__json_number_or(find_key(config, "concurrency", 4), 0));
    for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
        read_metric(&r, o, map[i].column, map[i].metric, map[i].stat);
    read_telemetry(&r, o);
    return opi__record_add(&r, err);
}

const opi__import_format opi__import_aiperf = {"aiperf", match, read_document};
