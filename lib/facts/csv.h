/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 4180 over a block of bytes: quoted fields with separators, newlines and doubled quotes; LF, CRLF or CR line ends;
 * a leading UTF-8 byte order mark is skipped. Blank lines are no records. Fields point into the block or into the reader
 * and live until the next call. */
#ifndef OPI_FACTS_CSV_H
#define OPI_FACTS_CSV_H
#include "base/text.h"
#include "omnipilot/types.h"

#define OPI__CSV_MAX_BYTES ((size_t)2147483647) /* 2 GiB less one */
#define OPI__CSV_MAX_FIELDS 1024                /* of one record */
#define OPI__CSV_MAX_FIELD ((size_t)1 << 20)    /* bytes of one field */
#define OPI__CSV_MAX_RECORDS 10000000

typedef struct opi__csv_field {
    const char *text; /* not NUL-terminated */
    size_t size, at;  /* at: the reader's own */
} opi__csv_field;

typedef struct opi__csv {
    const char *bytes;
    size_t size, pos;
    char separator;
    uint64_t next_line;  /* line the next record starts on; 1 = first */
    uint64_t line;       /* line the current record starts on */
    uint64_t records, blank_lines;
    opi__csv_field *fields;
    size_t n_fields, cap_fields;
    opi__buf unquoted;   /* texts of fields that held doubled quotes */
} opi__csv;

/* Refused before anything is read: size limit, UTF-16, an embedded NUL. Owner of bytes: the caller, until close. */
int32_t opi__csv_open(opi__csv *c, opi_ctx *ctx, const char *bytes, size_t size, char separator, opi_error *err);
/* 1 = `fields` hold a record, 0 = end, negative = status (line in the message, err->index = the data line, -1 = the header). */
int32_t opi__csv_next(opi__csv *c, opi_error *err);
void opi__csv_close(opi__csv *c);
#endif
