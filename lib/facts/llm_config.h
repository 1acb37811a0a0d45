/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a Hugging Face config.json: keys, checked. A reader keeps its first error and gives fallbacks after it. */
#ifndef OPI_FACTS_LLM_CONFIG_H
#define OPI_FACTS_LLM_CONFIG_H
#include "base/json.h"
#include "omnipilot/catalog.h"

typedef struct opi__config_reader {
    const opi__json *root, *text; /* the file, and its part that describes the language model (or the file itself) */
    char type[40];                /* model_type of that part without "_text", "" when not stated */
    opi_error *err;
    int32_t status;
} opi__config_reader;

/* `keys`: alternatives separated by blanks, each a path with dots ("attn_config.kv_n_heads"); looked for in the text
 * part, then in the root. NULL when absent or null. *key (nullable, 64 bytes): the one that was found. */
const opi__json *opi__config_get(const opi__config_reader *r, const char *keys, char *key);
/* An integer in lo..hi; `fallback` when absent. Errors: OPI_E_FORMAT (no number), OPI_E_RANGE. */
int32_t opi__config_int(opi__config_reader *r, const char *keys, int32_t lo, int32_t hi, int32_t fallback);
int opi__config_flag(opi__config_reader *r, const char *keys, int fallback);
const char *opi__config_text(const opi__config_reader *r, const char *keys); /* "" when absent */
/* 1 when model_type is one of a blank-separated list. */
int opi__config_is(const opi__config_reader *r, const char *types);
void opi__config_fail(opi__config_reader *r, int32_t code, const char *fmt, ...);

/* llm_config_parts.c: fill their fields of `m`, whose shape (layers, hidden size, heads, widths) is already there. */
void opi__config_layers(opi__config_reader *r, opi_llm *m);       /* windows, layers with a cache */
void opi__config_experts(opi__config_reader *r, opi_llm *m);
void opi__config_quantization(opi__config_reader *r, opi_llm *m);
#endif
