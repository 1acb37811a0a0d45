/* SPDX-License-Identifier: Apache-2.0 */
/* First-principles costs of one configuration: the features and the base of every learned residual. */
#ifndef OPI_FACTS_ROOFLINE_H
#define OPI_FACTS_ROOFLINE_H
#include "omnipilot/catalog.h"

/* Everything in SI-like units: bytes, seconds, tokens. Blank inputs were replaced by the defaults named in
 * roofline.c; what cannot be computed is NaN. */
typedef struct opi__physics {
    double params, active, bits, kv_bits;  /* parameters, bits per weight, bits per cached element */
    double input, output, batch, rate;     /* tokens, tokens, requests in flight per replica, requests/s (NaN) */
    double gpus, tp, replica_gpus;         /* in all, tensor-parallel degree, GPUs of one data-parallel replica */
    double memory, bandwidth, flops, link; /* bytes per GPU, B/s and FLOP/s per GPU, B/s per GPU */
    double weight_bytes, kv_token_bytes;   /* of one replica */
    double kv_bytes, kv_room, kv_pressure; /* demand of the load, room left in one replica, their ratio */
    double running;                        /* requests that fit in the KV cache at once, at most batch */
    double mem_s, flop_s, link_s, step_s;  /* one decode step */
    double prefill_s;                      /* one prompt */
    double out_tok_s, total_tok_s, req_s, ttft_s, e2e_s, power_w, tokens_per_joule, cold_start_s;
} opi__physics;
void opi__physics_of(const opi_config *config, opi__physics *out);
#endif
