/* SPDX-License-Identifier: Apache-2.0 */
/* The choice file (docs/preferences.md): a row an offered configuration, grouped into choice situations. */
#ifndef OPI_DECIDE_CHOICES_H
#define OPI_DECIDE_CHOICES_H
#include "base/mem.h"
#include "base/text.h"
#include "omnipilot/advise.h"

#define OPI__CHOICES_ROWS 2000000
#define OPI__CHOICES_NOTES 32

/* What a configuration is judged by, each so that more is better and the weight is not negative: the term of the utility at
 * a weight of 1. COST first: the others are worth so many dollars of it. */
enum {
    OPI__A_COST, OPI__A_VALUE, OPI__A_QUEUE, OPI__A_RESTART, OPI__A_SLO, OPI__A_KV, OPI__A_POWER, OPI__ATTRIBUTES
};

typedef struct opi__attribute {
    const char *column; /* of the choice file */
    const char *weight; /* of the utility; NULL for the cost */
    const char *unit;   /* of the weight */
    size_t offset;      /* of the weight in opi_utility */
} opi__attribute;
extern const opi__attribute opi__attributes[OPI__ATTRIBUTES];

typedef struct opi__offer {
    const char *id;
    uint64_t line;
    double x[OPI__ATTRIBUTES];
    int32_t chosen;
} opi__offer;

typedef struct opi__situation {
    const opi__offer *offer; /* sorted by x, so that the order of the file's rows means nothing */
    size_t n, chosen;
} opi__situation;

typedef struct opi__choice_note {
    const char *code; /* machine-readable, docs/json.md */
    char text[400];
} opi__choice_note;

typedef struct opi__choices {
    opi_ctx *ctx;
    opi__arena texts;
    opi__offer *offers;
    size_t n_offers, cap_offers;
    opi__situation *situations; /* sorted by what was offered and taken */
    size_t n_situations, n_single; /* single: only one configuration offered, left out */
    uint32_t columns;           /* bit a: the file has attribute a's column */
    opi__choice_note notes[OPI__CHOICES_NOTES];
    size_t n_notes;
} opi__choices;

/* Reads, groups and sorts; refuses what contradicts itself (no configuration or several chosen in one situation), notes what
 * is odd. `base` has the weights that shape the terms (amortization, knee, restart node hours), checked. `out` is to be freed
 * whatever is returned. Errors: OPI_E_FORMAT, OPI_E_RANGE, OPI_E_NODATA, OPI_E_NOMEM. */
int32_t opi__choices_read(opi_ctx *ctx, const char *bytes, size_t size, const opi_utility *base, opi__choices *out,
                          opi_error *err);
/* The second half of it: situations from offers. */
int32_t opi__choices_group(opi__choices *c, opi_error *err);
void opi__choices_free(opi__choices *c);
OPI__FORMAT(3, 4) void opi__choices_note(opi__choices *c, const char *code, const char *fmt, ...);
#endif
