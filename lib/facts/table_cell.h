/* SPDX-License-Identifier: Apache-2.0 */
/* table_number.c: what the text of a number cell means. */
#ifndef OPI_FACTS_TABLE_CELL_H
#define OPI_FACTS_TABLE_CELL_H
#include "omnipilot/types.h"

enum {
    OPI__CELL_NUMBER,       /* *out is a finite double */
    OPI__CELL_NAN,          /* "nan", "n/a", "-", … */
    OPI__CELL_INFINITE,     /* "inf" */
    OPI__CELL_TOO_LARGE,    /* a number beyond a double's range */
    OPI__CELL_COMMA,        /* "12,5", "1,234" */
    OPI__CELL_GROUPED,      /* "1 234", "1'234", "1_234" */
    OPI__CELL_UNIT,         /* "12ms", "90 %" */
    OPI__CELL_NOT_A_NUMBER
};
/* `text` is trimmed and not empty. */
int32_t opi__cell_number(const char *text, size_t n, double *out);
const char *opi__cell_kind(int32_t verdict);   /* machine-readable kind of the problem; static */
const char *opi__cell_advice(int32_t verdict); /* "has a unit: …"; static */
/* A value as it may stand in a message: printable ASCII, at most 40 bytes. cap >= 48. */
void opi__cell_show(char *out, size_t cap, const char *text, size_t n);
void opi__cell_trim(const char **text, size_t *n);
#endif
