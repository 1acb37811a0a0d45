/* SPDX-License-Identifier: Apache-2.0 */
/* What can be built from the inventory, and why the rest cannot. */
#ifndef OPI_DECIDE_CANDIDATES_H
#define OPI_DECIDE_CANDIDATES_H
#include "decide/ask.h"

#define OPI__MOST_CANDIDATES 200000

typedef struct opi__cand {
    opi_candidate pub;
    const opi__line *line;
    int32_t max_replicas;
    int32_t sustained;    /* 0: the offered rate is beyond what the replicas deliver */
    opi_prediction *pred; /* OPI__T_COUNT entries; NULL when infeasible */
    double *violation;    /* per SLO; NULL when infeasible */
    double judged_tok_s;  /* output tokens/s of all replicas, less the risk adjustment */
    int32_t tier;         /* requirements: 0 all met, 1 demand missed, 2 an SLO missed */
    int32_t worst_target; /* whose verdict is the candidate's */
    uint32_t order;       /* of enumeration: the last tie-break */
} opi__cand;

typedef struct opi__cands {
    opi_ctx *ctx;
    opi__cand *v;
    size_t n, cap;
} opi__cands;
int32_t opi__cands_push(opi__cands *list, const opi__cand *c, opi_error *err);
void opi__cands_free(opi__cands *list);

/* Every inventory line x TP x PP x precision x engine, one replica each, without a load. Infeasible ones carry code and
 * reason; when the reason does not depend on the engine, there is one entry with a NULL engine. */
int32_t opi__enumerate(const opi__ask *ask, opi__cands *out, opi_error *err);

/* Whether a GPU computes in (or, for weight-only formats, loads) a precision; else why not, into `why` (cap bytes). */
int opi__precision_supported(const opi_gpu *gpu, const opi_llm *llm, const char *precision, char *why, size_t cap);
int opi__engine_supported(const opi_gpu *gpu, const char *engine, char *why, size_t cap);
/* Precisions tried when the request names none; at most 4. Returns how many. */
size_t opi__default_precisions(const opi_gpu *gpu, const opi_llm *llm, const char *out[4]);
/* GPUs of `per_node`-sized nodes hold this many replicas of pp stages with tp GPUs each (a stage stays in a node). */
int32_t opi__max_replicas(int32_t count, int32_t per_node, int32_t tp, int32_t pp);
#endif
