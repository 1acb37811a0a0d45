/* SPDX-License-Identifier: Apache-2.0 */
/* One serving configuration from options, as `predict` and `memory` take it. */
#ifndef OMNIPILOT_CONFIG_H
#define OMNIPILOT_CONFIG_H
#include "tool.h"

/* Limits of what people may type; the library has its own. */
#define LONGEST_TEXT  1e7 /* tokens */
#define MOST_REQUESTS 1e6
#define MOST_RATE     1e6

typedef struct config_in {
    opi_llm llm;
    opi_gpu gpu;
    opi_config config; /* points into this struct: do not copy it */
    char assumed[160]; /* what was not stated and taken by default: "TP 1, engine vllm"; "" when nothing */
} config_in;

/* Reads --llm --gpu --tp --pp --ep --dp --precision --engine --engine-version --load-kind --input --output
 * --concurrency --rate --max-context --kv-bits --mem-util, those the verb has. `need_load` 1: lengths and a load
 * must be stated. 0, or an exit status after a message. */
int config_from_args(opi_ctx *ctx, const args *a, int need_load, config_in *out);

/* "H100-80GB-SXM x 2, TP 2, fp8, vllm 0.11". Returns buf. */
char *config_where(char *buf, size_t cap, const opi_config *c);
/* "1 024 tokens in, 256 out, 64 requests at once". Returns buf. */
char *config_load(char *buf, size_t cap, const opi_config *c);
/* The members of a configuration, into the JSON object that is open. */
void config_json(const opi_config *c);
#endif
