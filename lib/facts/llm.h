/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPI_FACTS_LLM_H
#define OPI_FACTS_LLM_H
#include "omnipilot/catalog.h"

extern const opi_llm opi__llms[]; /* sorted by name */
extern const size_t opi__llm_entries;

/* Entry by canonical name or an alias people type; NULL when unknown or ambiguous. Static storage, no heap. */
const opi_llm *opi__llm_by_name(const char *name);
/* 1 when two entries have the same shape: what they cost to serve is the same whatever they are called. */
int opi__llm_same_shape(const opi_llm *a, const opi_llm *b);

/* Where an LLM's parameters are, by the architecture's formula. Unit: parameters. */
typedef struct opi__llm_size {
    double embedding;         /* input and output embedding (once when tied) */
    double attention;         /* all layers */
    double kv_projection;     /* part of attention that makes keys and values (not for latent attention) */
    double latent_projection; /* part of attention that every tensor-parallel rank holds whole (latent attention) */
    double mlp;               /* dense layers and shared experts */
    double router, experts;   /* routed experts, all of them */
    double total, active;     /* active: touched per token */
} opi__llm_size;
/* 1 when every number the formula needs is there, 0 otherwise (out is then zero). */
int opi__llm_size_of(const opi_llm *m, opi__llm_size *out);
#endif
