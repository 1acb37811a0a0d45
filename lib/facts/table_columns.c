/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a measured table: names, units, limits. */
#include <math.h>
#include <string.h>

#include "facts/config.h"
#include "facts/table_build.h"

#define TEXT OPI__K_TEXT, 1, 0, 0
#define MORE_TEXT OPI__K_TEXT, 0, 0, 0
#define TOKENS "tokens"

const opi__column_def opi__columns[OPI__COL_TARGETS] = {
    [OPI__COL_SOURCE] = {"source", "", TEXT},
    [OPI__COL_SOURCE_REF] = {"source_ref", "", TEXT},
    [OPI__COL_LICENSE] = {"license", "", TEXT},
    [OPI__COL_ENGINE] = {"engine", "", TEXT},
    [OPI__COL_ENGINE_VERSION] = {"engine_version", "", TEXT},
    [OPI__COL_MODEL] = {"model", "", TEXT},
    [OPI__COL_FAMILY] = {"family", "", TEXT},
    [OPI__COL_PARAMS_B] = {"params_b", "1e9 parameters", OPI__K_NUMBER, 1, 0, 1e5},
    [OPI__COL_ACTIVE_PARAMS_B] = {"active_params_b", "1e9 parameters", OPI__K_NUMBER, 1, 0, 1e5},
    [OPI__COL_N_LAYERS] = {"n_layers", "layers", OPI__K_COUNT, 1, 1, 1e5},
    [OPI__COL_HIDDEN_SIZE] = {"hidden_size", "elements", OPI__K_COUNT, 1, 1, 1e7},
    [OPI__COL_N_HEADS] = {"n_heads", "heads", OPI__K_COUNT, 1, 1, 1e5},
    [OPI__COL_N_KV_HEADS] = {"n_kv_heads", "heads", OPI__K_COUNT, 1, 1, 1e5},
    [OPI__COL_HEAD_DIM] = {"head_dim", "elements", OPI__K_COUNT, 1, 1, 1e5},
    [OPI__COL_MAX_CONTEXT] = {"max_context", TOKENS, OPI__K_COUNT, 1, 1, 1e9},
    [OPI__COL_IS_MOE] = {"is_moe", "", OPI__K_FLAG, 1, 0, 1},
    [OPI__COL_N_EXPERTS] = {"n_experts", "experts", OPI__K_COUNT, 0, 1, 1e5},
    [OPI__COL_EXPERTS_PER_TOKEN] = {"experts_per_token", "experts", OPI__K_COUNT, 0, 1, 1e5},
    [OPI__COL_ATTENTION] = {"attention", "", MORE_TEXT},
    [OPI__COL_KV_ELEMS] = {"kv_elems_per_token", "elements", OPI__K_NUMBER, 0, 0, 1e9},
    [OPI__COL_PRECISION] = {"precision", "", TEXT},
    [OPI__COL_WEIGHT_BITS] = {"weight_bits", "bits", OPI__K_NUMBER, 1, 0, 64},
    [OPI__COL_KV_BITS] = {"kv_bits", "bits", OPI__K_NUMBER, 1, 0, 64},
    [OPI__COL_GPU] = {"gpu", "", TEXT},
    [OPI__COL_N_GPUS] = {"n_gpus", "GPUs", OPI__K_COUNT, 1, 1, OPI__MOST_GPUS},
    [OPI__COL_TP] = {"tp", "GPUs", OPI__K_COUNT, 1, 1, 65536},
    [OPI__COL_PP] = {"pp", "stages", OPI__K_COUNT, 1, 1, 65536},
    [OPI__COL_EP] = {"ep", "GPUs", OPI__K_COUNT, 1, 1, 65536},
    [OPI__COL_DP] = {"dp", "replicas", OPI__K_COUNT, 1, 1, 65536},
    [OPI__COL_INPUT_LEN] = {"input_len", TOKENS, OPI__K_NUMBER, 1, 0, OPI__MOST_TOKENS},
    [OPI__COL_OUTPUT_LEN] = {"output_len", TOKENS, OPI__K_NUMBER, 1, 0, OPI__MOST_TOKENS},
    [OPI__COL_CONCURRENCY] = {"concurrency", "requests", OPI__K_NUMBER, 1, 0, OPI__MOST_REQUESTS},
    [OPI__COL_LOAD_KIND] = {"load_kind", "", TEXT},
    [OPI__COL_REQUEST_RATE] = {"request_rate", "requests/s", OPI__K_NUMBER, 1, 0, OPI__MOST_REQUESTS},
    [OPI__COL_WORKLOAD] = {"workload", "", TEXT},
    [OPI__COL_MAX_MODEL_LEN] = {"max_model_len", TOKENS, OPI__K_NUMBER, 0, 0, OPI__MOST_TOKENS},
    [OPI__COL_MEM_UTIL] = {"mem_util", "share", OPI__K_NUMBER, 0, 0, 1},
    [OPI__COL_LAUNCH_OK] = {"launch_ok", "", OPI__K_FLAG, 1, 0, 1},
    [OPI__COL_FAIL_REASON] = {"fail_reason", "", TEXT},
    [OPI__COL_TTFT_MEAN] = {"ttft_ms_mean", "ms", OPI__K_NUMBER, 1, 0, 1e12},
    [OPI__COL_ITL_MEAN] = {"itl_ms_mean", "ms", OPI__K_NUMBER, 1, 0, 1e12},
    [OPI__COL_NOTES] = {"notes", "", TEXT},
};
/* Of a target without an upper limit of its own: far beyond any machine, far below nonsense. */
#define TARGET_MAX 1e12

const char *opi__column_name(size_t column)
{
    return column < OPI__COL_TARGETS ? opi__columns[column].name : opi__targets[column - OPI__COL_TARGETS].name;
}

size_t opi__column_find(const char *name, size_t size)
{
    for (size_t i = 0; i < OPI__COLUMNS; i++) {
        const char *known = opi__column_name(i);
        if (strlen(known) == size && memcmp(known, name, size) == 0)
            return i;
    }
    return OPI__COLUMNS;
}

opi__column_def opi__column_at(size_t column)
{
    if (column < OPI__COL_TARGETS)
        return opi__columns[column];
    const opi__target_def *t = &opi__targets[column - OPI__COL_TARGETS];
    return (opi__column_def){t->name, t->unit, OPI__K_NUMBER, column < OPI__COL_TARGETS + OPI__T_SM_ACTIVITY, 0,
                             isinf(t->upper) ? TARGET_MAX : t->upper};
}
