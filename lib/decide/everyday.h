/* SPDX-License-Identifier: Apache-2.0 */
/* The everyday requests: abstaining on everything would be useless, so it is counted. */
#ifndef OPI_DECIDE_EVERYDAY_H
#define OPI_DECIDE_EVERYDAY_H
#include "decide/advice.h"

typedef struct opi__everyday {
    const char *use, *llm;
    double input_len, output_len, concurrency, request_rate;
    const char *inventory; /* "GPU:count GPU:count" */
    const char *slo;       /* "target=limit target=limit", in the targets' units */
} opi__everyday;
size_t opi__everyday_count(void);
const opi__everyday *opi__everyday_at(size_t index);

/* opi_evaluate_everyday with any oracle behind it. */
int32_t opi__everyday_with(opi_ctx *ctx, const opi__oracle *oracle, opi_text **out, opi_error *err);
#endif
