/* SPDX-License-Identifier: Apache-2.0 */
/* One row of an imported document, put together column by column and then read by the table's own rules. */
#ifndef OPI_MODEL_IMPORT_RECORD_H
#define OPI_MODEL_IMPORT_RECORD_H
#include "model/import/import.h"

#define OPI__RECORD_NOTES 8

typedef struct opi__record {
    opi__builder *b;
    opi__cells cells;
    char number[OPI__COLUMNS][32]; /* texts of the numbers */
    struct {
        const char *kind;
        char text[200];
    } notes[OPI__RECORD_NOTES];
    size_t n_notes;
} opi__record;

void opi__record_start(opi__record *r, opi__builder *b);
/* Sets a column when it is still unset; NULL and "" set nothing. Texts must live until opi__record_add. */
void opi__record_text(opi__record *r, size_t column, const char *text);
void opi__record_number(opi__record *r, size_t column, double value);
/* A JSON number (times `scale`) or a text that stands for itself; anything else sets nothing. Returns 1 when set. */
int opi__record_json(opi__record *r, size_t column, const opi__json *value, double scale);
/* Keys that are a column's own name ("gpu", "tp", "precision" …), as users add them with --metadata. */
void opi__record_own_columns(opi__record *r, const opi__json *object);
/* A thing the report should say about the row. */
void opi__record_note(opi__record *r, const char *kind, const char *fmt, ...);
/* Load of a server benchmark: offered rate (<= 0: none) and requests kept in flight (<= 0: no limit). */
void opi__record_load(opi__record *r, double rate, double concurrency);
/* 1 when so many of `total` requests failed that the rest is another load (or none completed). A few are noted. */
int opi__record_too_many_failed(opi__record *r, double completed, double failed, char *why, size_t cap);
int32_t opi__record_add(opi__record *r, opi_error *err);
/* A row that cannot be used. */
int32_t opi__record_refuse(opi__record *r, const char *kind, const char *why, opi_error *err);

/* "a.b.c" from an object; NULL when any part is absent. */
const opi__json *opi__json_path(const opi__json *object, const char *path);
double opi__json_number_or(const opi__json *value, double otherwise); /* also numbers written as texts */
#endif
