/* SPDX-License-Identifier: Apache-2.0 */
/* Targets and axes. A new target is an entry here and a column; a new axis is an entry here. */
#ifndef OPI_FACTS_SCHEMA_H
#define OPI_FACTS_SCHEMA_H
#include "omnipilot/catalog.h"

/* Order is the public target index; append only. Names are the table's columns. */
enum {
    OPI__T_OUT_TOK_S,   /* throughput_out_tok_s */
    OPI__T_TOTAL_TOK_S, /* throughput_total_tok_s */
    OPI__T_REQ_S,       /* req_s */
    OPI__T_TTFT_P50,    /* ttft_ms_p50 */
    OPI__T_TTFT_P95,    /* ttft_ms_p95 */
    OPI__T_ITL_P50,     /* itl_ms_p50 */
    OPI__T_ITL_P95,     /* itl_ms_p95 */
    OPI__T_E2E,         /* e2e_latency_s */
    OPI__T_POWER,       /* power_w_per_gpu */
    OPI__T_TOK_J,       /* tokens_per_joule */
    OPI__T_COLD_START,  /* cold_start_s */
    OPI__T_KV_USAGE,    /* kv_cache_usage */
    OPI__T_SM_ACTIVITY, /* sm_activity */
    OPI__T_TENSOR_ACTIVITY, /* tensor_activity */
    OPI__T_COUNT
};
typedef struct opi__target_def {
    const char *name, *alias, *unit, *title;
    int32_t higher_is_better;
    size_t physics_offset; /* of the base's field in opi_roofline (double) */
    double upper;          /* largest possible value (1 for shares, INFINITY else) */
} opi__target_def;
extern const opi__target_def opi__targets[OPI__T_COUNT];
/* The target whose residual this one shares by an identity: total tokens/s and requests/s are output tokens/s times a factor
 * of the stated lengths, so one learned figure answers for all three and they cannot contradict. Itself for the others. */
int32_t opi__residual_of(int32_t target);
/* 1 when the lengths that the identity needs are stated. */
int opi__identity_holds(int32_t target, double input_len, double output_len);

/* Axes of the table and of the model: numbers then categories. */
typedef struct opi__axis_def {
    const char *name, *unit, *title;
    int32_t kind;      /* OPI_AXIS_… */
    int32_t enveloped;
} opi__axis_def;
extern const opi__axis_def opi__axes[];
size_t opi__axis_total(void);
#endif
