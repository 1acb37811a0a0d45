/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the one memory formula (memory.c), one file a part. Unit: bytes on the fullest GPU unless said. */
#ifndef OPI_FACTS_MEMORY_H
#define OPI_FACTS_MEMORY_H
#include "omnipilot/catalog.h"

#define OPI__GIB 1073741824.0

/* How weights are stored. Bits include scales and zero points. */
typedef struct opi__storage {
    double linear, experts;  /* bits per weight of the linear layers, of routed experts */
    double plain;            /* bits of what is not quantized: embeddings, output head, routers */
    double kv;               /* bits per cached element unless the configuration states them */
    int32_t pad;             /* 1: the kernels pad hidden size and expert width (mxfp4) */
} opi__storage;
/* From precision, else weight_bits, else the checkpoint's own format, else the engine's default. Errors: OPI_E_INVALID
 * for a precision nobody knows. */
int32_t opi__storage_of(const opi_config *config, opi__storage *out, opi_error *err);

#define OPI__WHOLE_BATCH 1u /* no paged cache: a batch is allocated as a whole, layers are spread over the GPUs */
#define OPI__FREE_SHARE 2u  /* mem_util is the cache's share of what the other parts leave free */
#define OPI__GRAPHS 4u      /* captures CUDA graphs */
#define OPI__UNEVEN 8u      /* spreads heads unevenly where they do not divide */

/* The configuration's parallel plan with its blanks filled in. */
typedef struct opi__plan {
    int32_t tp, pp, ep, dp;
    int32_t shards;          /* ranks a layer's experts are spread over */
    uint32_t engine;         /* OPI__… */
    double mem_util;
    double layers, stage;    /* layers in all, and of the largest pipeline stage */
    double visible_gib;
    char limit[160];         /* what does not divide; empty when everything does */
} opi__plan;
void opi__plan_of(const opi_config *config, opi__plan *out);

double opi__weight_bytes(const opi_config *config, const opi__plan *plan, const opi__storage *storage);
/* Cache of one request of `tokens` tokens; NaN when the LLM's KV facts are not known. */
double opi__kv_bytes(const opi_config *config, const opi__plan *plan, const opi__storage *storage, double tokens);
/* Peak beside weights and cache during one step. */
double opi__activation_bytes(const opi_config *config, const opi__plan *plan, const opi__storage *storage);
/* Context, communication buffers, CUDA graphs. */
double opi__runtime_bytes(const opi_config *config, const opi__plan *plan);
/* Prompt length where none is stated. */
double opi__prompt_tokens(const opi_config *config);
#endif
