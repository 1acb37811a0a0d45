/* SPDX-License-Identifier: Apache-2.0 */
/* A checked request, copied so that it outlives the caller's. */
#ifndef OPI_DECIDE_ASK_H
#define OPI_DECIDE_ASK_H
#include "base/mem.h"
#include "omnipilot/advise.h"

#define OPI__PRICE_NONE 0     /* not stated anywhere */
#define OPI__PRICE_CALLER 1
#define OPI__PRICE_ONDEMAND 2 /* cited in the GPU table */
#define OPI__PRICE_RENTAL 3

#define OPI__MOST_LINES 256
#define OPI__MOST_NAMES 32
#define OPI__MOST_SLOS 32

typedef struct opi__line {
    opi_gpu gpu;
    int32_t count, per_node;
    int32_t price_kind;
    double price; /* US dollars per GPU hour; NaN when not stated */
    double queue_s;
} opi__line;

typedef struct opi__ask {
    opi_llm llm;
    int32_t pipeline;
    int32_t open_loop;      /* 1: the load is a rate */
    int32_t demand_implied; /* 1: the demand is request_rate * output_len */
    double input_len, output_len, concurrency, request_rate, max_context, demand, level;
    opi__line *lines;
    size_t n_lines, n_priced;
    const char **precisions; /* none: those the GPU supports */
    size_t n_precisions;
    const char **engines; /* none: the default list */
    size_t n_engines;
    opi_slo *slos;
    size_t n_slos;
    opi_utility utility;
} opi__ask;

/* Copies into `arena` and checks every number; errors name the value, the place and the limit. */
int32_t opi__ask_take(opi__arena *arena, const opi_advise_request *request, opi__ask *out, opi_error *err);
#endif
