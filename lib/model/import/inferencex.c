/* SPDX-License-Identifier: Apache-2.0 */
/* InferenceX (InferenceMAX) aggregate results: one object a configuration, latencies in SECONDS, throughput per GPU. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "model/import/record.h"

static int match(const opi__json *o)
{
    return opi__json_string(opi__json_get(o, "hw")) &&
           (opi__json_get(o, "tput_per_gpu") || opi__json_get(o, "output_tput_per_gpu"));
}

/* "b200-trt", "gb300-nv": the GPU is what stands before the dash. */
static void read_gpu(opi__record *r, const opi__json *o, char *buf, size_t cap)
{
    opi_gpu gpu = {.struct_size = sizeof gpu};
    const char *hw = opi__json_string(opi__json_get(o, "hw"));
    opi__format(buf, cap, "%.*s", (int)cap - 1, hw);
    if (opi_gpu_find(buf, &gpu, NULL) == OPI_E_UNKNOWN && strchr(buf, '-'))
        *strchr(buf, '-') = 0;
    opi__record_text(r, OPI__COL_GPU, buf);
}

static int is_true(const opi__json *v)
{
    int flag = 0;
    const char *text = opi__json_string(v);
    return (opi__json_bool(v, &flag) && flag) || (text && opi__equal_nocase(text, "true"));
}

/* ITL columns hold the per-request TPOT: engines that stream several tokens a chunk have no other figure. */
static void read_latencies(opi__record *r, const opi__json *o)
{
    const struct {
        size_t column;
        const char *key;
        double scale;
    } map[] = {
        {OPI__COL_TARGETS + OPI__T_TTFT_P50, "median_ttft", 1e3}, {OPI__COL_TARGETS + OPI__T_TTFT_P95, "p95_ttft", 1e3},
        {OPI__COL_TARGETS + OPI__T_ITL_P50, "median_tpot", 1e3},  {OPI__COL_TARGETS + OPI__T_ITL_P95, "p95_tpot", 1e3},
        {OPI__COL_TARGETS + OPI__T_E2E, "mean_e2el", 1},          {OPI__COL_TTFT_MEAN, "mean_ttft", 1e3},
        {OPI__COL_ITL_MEAN, "mean_tpot", 1e3},
    };
    for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
        opi__record_json(r, map[i].column, opi__json_get(o, map[i].key), map[i].scale);
    double interactivity = opi__json_number_or(opi__json_get(o, "median_intvty"), 0);
    if (interactivity > 0) /* tokens/s of one user: 1000 / TPOT in ms */
        opi__record_number(r, OPI__COL_TARGETS + OPI__T_ITL_P50, 1000 / interactivity);
}

static int32_t read_document(opi__builder *b, const opi__json *o, opi_error *err)
{
    opi__record r;
    char gpu[64], workload[64];
    opi__record_start(&r, b);
    opi__record_text(&r, OPI__COL_MODEL, opi__json_string(opi__json_get(o, "model")));
    read_gpu(&r, o, gpu, sizeof gpu);
    if (is_true(opi__json_get(o, "disagg")) || is_true(opi__json_get(o, "is_multinode")))
        return opi__record_refuse(&r, "disaggregated",
                                  "prefill and decode on separate or several nodes: not a configuration of this table",
                                  err);
    double tp = opi__json_number_or(opi__json_get(o, "tp"), NAN), pp = opi__json_number_or(opi__json_get(o, "pp"), 1);
    double gpus = tp * pp; /* expert and attention parallelism share these GPUs */
    opi__record_number(&r, OPI__COL_N_GPUS, gpus);
    opi__record_text(&r, OPI__COL_ENGINE, opi__json_string(opi__json_get(o, "framework")));
    opi__record_json(&r, OPI__COL_CONCURRENCY, opi__json_get(o, "conc"), 1);
    opi__record_text(&r, OPI__COL_LOAD_KIND, "concurrency");
    double isl = opi__json_number_or(opi__json_get(o, "isl"), NAN), osl = opi__json_number_or(opi__json_get(o, "osl"), NAN);
    opi__record_number(&r, OPI__COL_INPUT_LEN, isl);
    opi__record_number(&r, OPI__COL_OUTPUT_LEN, osl);
    if (!isnan(isl) && !isnan(osl)) {
        opi__format(workload, sizeof workload, "fixed-%gx%g", isl, osl);
        opi__record_text(&r, OPI__COL_WORKLOAD, workload);
    }
    if (gpus > 0) {
        opi__record_json(&r, OPI__COL_TARGETS + OPI__T_OUT_TOK_S, opi__json_get(o, "output_tput_per_gpu"), gpus);
        opi__record_json(&r, OPI__COL_TARGETS + OPI__T_TOTAL_TOK_S, opi__json_get(o, "tput_per_gpu"), gpus);
    } else {
        opi__record_note(&r, "gpu-count", "tp is not stated: throughput per GPU cannot be turned into throughput");
    }
    if (opi__json_get(o, "avg_power_w"))
        opi__record_note(&r, "power", "avg_power_w is not used: the file does not say whether it is of one GPU or of all");
    read_latencies(&r, o);
    opi__record_own_columns(&r, o);
    return opi__record_add(&r, err);
}

const opi__import_format opi__import_inferencex = {"inferencex", match, read_document};
