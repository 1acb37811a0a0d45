/* SPDX-License-Identifier: Apache-2.0 */
/* The schema comes before the data: what is predicted (targets) and what it depends on (axes). Index order is public. */
#include "facts/schema.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "base/take.h"
#include "base/text.h"

#define BASE(field) offsetof(opi_roofline, field)

const opi__target_def opi__targets[OPI__T_COUNT] = {
    [OPI__T_OUT_TOK_S] = {"throughput_out_tok_s", "out_tok_s", "tokens/s", "Output tokens/s", 1, BASE(out_tok_s), INFINITY},
    [OPI__T_TOTAL_TOK_S] = {"throughput_total_tok_s", "total_tok_s", "tokens/s", "Total tokens/s", 1, BASE(total_tok_s),
                            INFINITY},
    [OPI__T_REQ_S] = {"req_s", "req_s", "requests/s", "Requests/s", 1, BASE(req_s), INFINITY},
    [OPI__T_TTFT_P50] = {"ttft_ms_p50", "ttft_p50", "ms", "TTFT p50", 0, BASE(ttft_ms), INFINITY},
    [OPI__T_TTFT_P95] = {"ttft_ms_p95", "ttft_p95", "ms", "TTFT p95", 0, BASE(ttft_ms), INFINITY},
    [OPI__T_ITL_P50] = {"itl_ms_p50", "itl_p50", "ms", "ITL p50", 0, BASE(itl_ms), INFINITY},
    [OPI__T_ITL_P95] = {"itl_ms_p95", "itl_p95", "ms", "ITL p95", 0, BASE(itl_ms), INFINITY},
    [OPI__T_E2E] = {"e2e_latency_s", "e2e", "s", "End-to-end latency", 0, BASE(e2e_s), INFINITY},
    [OPI__T_POWER] = {"power_w_per_gpu", "power", "W", "Power per GPU", 0, BASE(power_w), INFINITY},
    [OPI__T_TOK_J] = {"tokens_per_joule", "tok_j", "tokens/J", "Tokens per joule", 1, BASE(tokens_per_joule), INFINITY},
    [OPI__T_COLD_START] = {"cold_start_s", "cold_start", "s", "Cold start", 0, BASE(cold_start_s), INFINITY},
    [OPI__T_KV_USAGE] = {"kv_cache_usage", "kv_usage", "share", "KV-cache usage", 0, BASE(kv_usage), 1.0},
    [OPI__T_SM_ACTIVITY] = {"sm_activity", "sm", "share", "SM activity", 1, BASE(sm_activity), 1.0},
    [OPI__T_TENSOR_ACTIVITY] = {"tensor_activity", "tensor", "share", "Tensor activity", 1, BASE(tensor_activity), 1.0},
};

#define NUMBER OPI_AXIS_NUMBER
#define CATEGORY OPI_AXIS_CATEGORY

const opi__axis_def opi__axes[] = {
    {"params_b", "1e9 parameters", "Model size", NUMBER, 1},
    {"active_params_b", "1e9 parameters", "Active parameters", NUMBER, 1},
    {"context", "tokens", "Input and output length together", NUMBER, 1},
    {"concurrency", "requests", "Requests in flight", NUMBER, 1},
    {"kv_pressure", "share", "KV demand over KV capacity", NUMBER, 1},
    {"tp", "GPUs", "Tensor-parallel degree", NUMBER, 1},
    {"weight_bits", "bits", "Bits per weight", NUMBER, 1},
    {"mem_util", "share", "Memory utilization", NUMBER, 0},
    {"input_len", "tokens", "Mean input length", NUMBER, 0},
    {"output_len", "tokens", "Mean output length", NUMBER, 0},
    {"request_rate", "requests/s", "Offered request rate", NUMBER, 0},
    {"n_gpus", "GPUs", "GPUs per replica", NUMBER, 0},
    {"pp", "stages", "Pipeline-parallel degree", NUMBER, 0},
    {"ep", "GPUs", "Expert-parallel degree", NUMBER, 0},
    {"dp", "replicas", "Data-parallel degree", NUMBER, 0},
    {"kv_bits", "bits", "Bits per cached element", NUMBER, 0},
    {"n_experts", "experts", "Experts per layer", NUMBER, 0},
    {"experts_per_token", "experts", "Experts per token", NUMBER, 0},
    {"gpu", "", "GPU type", CATEGORY, 1},
    {"family", "", "Model family", CATEGORY, 1},
    {"precision", "", "Quantization format", CATEGORY, 1},
    {"engine", "", "Serving engine", CATEGORY, 1},
    {"load_kind", "", "Kind of load", CATEGORY, 1},
    {"engine_version", "", "Engine version", CATEGORY, 0},
    {"attention", "", "Attention kind", CATEGORY, 0},
    {"arch", "", "Architecture type", CATEGORY, 0},
    {"model", "", "LLM", CATEGORY, 1},
};

size_t opi__axis_total(void)
{
    return sizeof opi__axes / sizeof opi__axes[0];
}

size_t opi_target_count(void)
{
    return OPI__T_COUNT;
}

int32_t opi_target_at(size_t index, opi_target_info *out, opi_error *err)
{
    if (index >= OPI__T_COUNT)
        return opi__fail(err, OPI_E_RANGE, (int64_t)index, "target %zu: there are %d targets, 0 to %d", index,
                         OPI__T_COUNT, OPI__T_COUNT - 1);
    const opi__target_def *def = &opi__targets[index];
    opi_target_info info = {.struct_size = sizeof info, .higher_is_better = def->higher_is_better, .name = def->name,
                            .alias = def->alias, .unit = def->unit, .title = def->title};
    return opi__give(out, &info, sizeof info, "opi_target_info", err);
}

/* The nearest name or alias, for the error message; edit distances above a third of the name suggest nothing. */
static const char *nearest_target(const char *name)
{
    const char *best = NULL;
    size_t length = strlen(name), limit = length / 3 + 1, best_distance = limit + 1;
    for (size_t i = 0; length <= 64 && i < OPI__T_COUNT; i++) {
        const char *candidates[2] = {opi__targets[i].name, opi__targets[i].alias};
        for (size_t k = 0; k < 2; k++) {
            size_t d = opi__edit_distance(name, candidates[k], limit);
            if (d < best_distance) {
                best_distance = d;
                best = candidates[k];
            }
        }
    }
    return best;
}

int32_t opi_target_find(const char *name, size_t *index, opi_error *err)
{
    if (!name || !index)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_target_find: %s is NULL", name ? "index" : "name");
    for (size_t i = 0; i < OPI__T_COUNT; i++) {
        const opi__target_def *def = &opi__targets[i];
        if (opi__equal_nocase(name, def->name) || opi__equal_nocase(name, def->alias) ||
            opi__equal_nocase(name, def->title)) {
            *index = i;
            return OPI_OK;
        }
    }
    const char *near = nearest_target(name);
    return opi__fail(err, OPI_E_UNKNOWN, -1, "target \"%.*s\" is not known%s%s", 64, name,
                     near ? "; did you mean " : ": opi_target_at lists the names", near ? near : "");
}

size_t opi_axis_count(void)
{
    return opi__axis_total();
}

int32_t opi_axis_at(size_t index, opi_axis_info *out, opi_error *err)
{
    size_t total = opi__axis_total();
    if (index >= total)
        return opi__fail(err, OPI_E_RANGE, (int64_t)index, "axis %zu: there are %zu axes, 0 to %zu", index, total,
                         total - 1);
    const opi__axis_def *def = &opi__axes[index];
    opi_axis_info info = {.struct_size = sizeof info, .kind = def->kind, .enveloped = def->enveloped,
                          .name = def->name, .unit = def->unit, .title = def->title};
    return opi__give(out, &info, sizeof info, "opi_axis_info", err);
}

int32_t opi__residual_of(int32_t target)
{
    return target == OPI__T_TOTAL_TOK_S || target == OPI__T_REQ_S ? OPI__T_OUT_TOK_S : target;
}

int opi__identity_holds(int32_t target, double input_len, double output_len)
{
    if (opi__residual_of(target) == target)
        return 1;
    return output_len > 0 && (target == OPI__T_REQ_S || input_len > 0);
}
