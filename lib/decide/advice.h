/* SPDX-License-Identifier: Apache-2.0 */
/* The answer while it is made, and afterwards. */
#ifndef OPI_DECIDE_ADVICE_H
#define OPI_DECIDE_ADVICE_H
#include "decide/candidates.h"
#include "decide/oracle.h"
#include "facts/schema.h"

#define OPI__MOST_NOTES 48
#define OPI__SUPPORTED 6 /* ranks whose nearest measurements are looked up */

typedef struct opi__note {
    const char *code; /* machine-readable, docs/json.md */
    char text[320];
} opi__note;

struct opi_advice {
    opi_ctx *ctx;
    opi__arena arena; /* what the request pointed to */
    opi__ask ask;
    opi__cands cands;
    opi_prediction *predictions;
    double *violations;
    uint32_t *order; /* rank -> candidate */
    size_t n_feasible;
    size_t converted; /* candidates whose rate became requests in flight */
    int32_t verdict;
    size_t winner, runner_up; /* ranks; SIZE_MAX = none */
    opi__note notes[OPI__MOST_NOTES];
    size_t n_notes;
    opi_support support[OPI__SUPPORTED];
    size_t support_rank[OPI__SUPPORTED], n_support;
    char sentence[1536], probe[512];
};

static inline const opi__cand *opi__ranked(const opi_advice *a, size_t rank)
{
    return &a->cands.v[a->order[rank]];
}

/* Adds a note once a code and text; what does not fit any more is dropped. */
void opi__note_add(opi_advice *a, const char *code, const char *fmt, ...);

/* advise.c: the whole way with any oracle behind it. */
int32_t opi__advise_with(opi_ctx *ctx, const opi__oracle *oracle, const opi_advise_request *request, opi_advice **out,
                         opi_error *err);
#endif
