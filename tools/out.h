/* SPDX-License-Identifier: Apache-2.0 */
/* Results on stdout: plain text, aligned tables of at most 100 columns, CSV, JSON. Never looks at the locale: the
 * program does not call setlocale, so the C library formats as in the "C" locale. */
#ifndef OMNIPILOT_OUT_H
#define OMNIPILOT_OUT_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__GNUC__)
#define OUT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define OUT_PRINTF(f, a)
#endif
#define OUT_WIDTH 100
#define OUT_NUM   40 /* enough for any formatted number */

/* Prepares descriptors 0-2, buffering, color and SIGPIPE. Call first. */
void out_begin(void);
/* Flushes and closes stdout. 0, or 1 after a message when anything could not be written. */
int out_end(void);
/* 1 when a write has failed: long loops stop early. */
int out_failed(void);

void out_printf(const char *fmt, ...) OUT_PRINTF(1, 2);
void out_puts(const char *s);
void out_bytes(const char *bytes, size_t n);
/* Words of `text`, wrapped at OUT_WIDTH; `column` is where the cursor stands, later lines start at `indent`. Ends
 * with a newline. */
void out_wrap(size_t column, size_t indent, const char *text);
/* Text from elsewhere: control characters become '?'. Returns buf. */
char *out_clean(char *buf, size_t cap, const char *text);

/* Display columns of UTF-8 text. */
size_t out_columns(const char *text);
/* Bytes of the longest prefix that takes at most `columns`. */
size_t out_prefix(const char *text, size_t columns);

/* Styles: nothing unless stdout is a terminal and NO_COLOR is unset. */
typedef enum { OUT_PLAIN, OUT_BOLD, OUT_GOOD, OUT_WARN, OUT_BAD, OUT_DIM } out_style;
const char *out_on(out_style s);
const char *out_off(void);

/* Numbers for people: `digits` significant digits, thousands grouped by spaces ("1 840"); with more than three
 * digits (a fact, not a prediction) zeros at the end are dropped. NaN is "-", infinity "inf". Return buf (OUT_NUM
 * bytes at least). */
char *out_human(char *buf, double v, int digits);
/* "1 840 [1 510 … 2 190]" with three significant digits; "412 (no interval)" when lo and hi are NaN. buf: 4 *
 * OUT_NUM. */
char *out_interval(char *buf, double mid, double lo, double hi);
/* Numbers for machines: reads back bit for bit. NaN is "", infinity "inf" or "-inf". */
char *out_exact(char *buf, double v);

/* ---- tables ---- */
typedef struct out_table out_table;
/* `heads` has n texts; a leading '>' in one right-aligns its column. */
out_table *out_table_new(const char *const *heads, size_t n);
/* The column that is cut with "…" when the table would be wider than OUT_WIDTH. */
void out_table_flex(out_table *t, size_t column);
void out_cell(out_table *t, const char *text);
void out_cellf(out_table *t, const char *fmt, ...) OUT_PRINTF(2, 3);
void out_cell_style(out_table *t, const char *text, out_style style);
/* Prints and frees. */
void out_table_end(out_table *t, size_t indent);

/* ---- CSV: fields as RFC 4180 asks, "\n" at line ends ---- */
void csv_text(const char *text, int last);
void csv_number(double v, int last);
void csv_int(int64_t v, int last);

/* ---- JSON: a streaming writer, indented by two spaces ---- */
void json_begin_object(const char *key); /* key NULL: an array's element, or the root */
void json_end_object(void);
void json_begin_array(const char *key);
void json_end_array(void);
void json_text(const char *key, const char *text); /* NULL text: null */
void json_number(const char *key, double v);       /* NaN and infinities: null */
void json_int(const char *key, int64_t v);
void json_bool(const char *key, int v);
void json_null(const char *key);
/* A finished JSON value as it stands. */
void json_raw(const char *key, const char *json, size_t n);
#endif
