/* SPDX-License-Identifier: Apache-2.0 */
/* A table as dense arrays: encoded once, then shared by every fit of a cross-validation. */
#ifndef OPI_MODEL_DATASET_H
#define OPI_MODEL_DATASET_H
#include "facts/encode.h"
#include "facts/table.h"
#include "learn/tree.h"

#define OPI__FEATURES (OPI__NUMBERS + OPI__TREE_CATEGORIES)

/* Names of one category, sorted; a code is the position. Blank ("") is a name like any other. */
typedef struct opi__names {
    uint32_t n;
    const char **name;
} opi__names;
int32_t opi__names_find(const opi__names *names, const char *name); /* -1 when not there */

typedef struct opi__dataset {
    opi_ctx *ctx;
    const opi_table *table;
    size_t n;         /* usable rows (launched, facts complete) */
    opi__arena arena; /* the names */
    uint32_t *row;    /* [n] of the table */
    opi__names names[OPI__CATEGORIES];
    float *x;                                     /* n x OPI__FEATURES: numbers, then codes of the tree categories */
    int32_t *code;                                /* n x OPI__CATEGORIES */
    double *envelope[OPI__ENVELOPE];              /* [n] each, on the envelope's scale */
    double *base[OPI__T_COUNT], *y[OPI__T_COUNT]; /* [n] each: log physics, log(value) - base; NaN = not measured */
    uint64_t *cell;                               /* [n] FNV of the cell */
    int32_t *source;                              /* [n] code of the campaign */
    opi__names sources;
    opi__bins bins;
} opi__dataset;

/* by_mix: cells without a mix's measured mean lengths. Errors: OPI_E_NODATA when no row is usable. */
int32_t opi__dataset_build(opi_ctx *ctx, const opi_table *table, int by_mix, opi__dataset *out, opi_error *err);
void opi__dataset_free(opi__dataset *d);

/* Numbers on the envelope's scale: log but for tp and bits. */
double opi__envelope_scale(int e, double value);
/* Feature row of an encoded configuration: x [OPI__FEATURES], code [OPI__CATEGORIES]; -1 codes for names never seen. */
void opi__feature_row(const opi__names *names, const opi__encoded *e, float *x, int32_t *code);
#endif
