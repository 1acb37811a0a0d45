/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that parses or prints numbers; never looks at the locale. */
#ifndef OPI_BASE_TEXT_H
#define OPI_BASE_TEXT_H
#include "omnipilot/types.h"
#include <stdarg.h>

/* Whole-text parsers: surrounding spaces allowed, anything else left over is a failure. 1 = parsed, 0 = not a number.
 * Doubles: decimal notation only, correctly rounded; no hex, no inf/nan; overflow gives 0 (failure). */
int opi__parse_double(const char *s, size_t n, double *out);
int opi__parse_int64(const char *s, size_t n, int64_t *out);

/* Shortest decimal that reads back bit for bit ("nan", "inf", "-inf" for those). buf holds >= 32. Returns the
 * length. Plain notation from 1e-5 to below 1e16, else as 1.5e-7. */
size_t opi__format_double(char *buf, double v);
/* `digits` significant digits, %g style, trailing zeros dropped. */
size_t opi__format_short(char *buf, double v, int digits);

/* snprintf subset: %s %.*s %c %d %u %lld %llu %zu %x %llx %% and %g (shortest round-trip) %.Ng (N significant), with
 * field widths ("%-12s", "%8.3g", "%016llx"). Always terminates, never inside a UTF-8 sequence; returns the length that
 * would have been written. */
#if defined(__GNUC__)
#define OPI__FORMAT(string, first) __attribute__((format(printf, string, first)))
#else
#define OPI__FORMAT(string, first)
#endif
OPI__FORMAT(3, 0) size_t opi__vformat(char *buf, size_t cap, const char *fmt, va_list ap);
OPI__FORMAT(3, 4) size_t opi__format(char *buf, size_t cap, const char *fmt, ...);

/* Bytes of the valid UTF-8 sequence that s starts with, `left` bytes in all; 0 when it is none. */
size_t opi__utf8_sequence(const char *s, size_t left);

/* ASCII only. */
int opi__equal_nocase(const char *a, const char *b);
char opi__lower(char c);
/* Copies with truncation at a UTF-8 boundary, always terminates; returns 1 when it was cut. */
int opi__copy_text(char *dst, size_t cap, const char *src);
/* Edit distance (Damerau, restricted), ASCII case-insensitive; capped at `limit` + 1. Lengths up to 128. */
size_t opi__edit_distance(const char *a, const char *b, size_t limit);

/* Growable byte buffer on the context's allocator. After a failed growth it stays failed (status) and ignores
 * writes. */
typedef struct opi__buf {
    opi_ctx *ctx;
    char *data; /* NUL-terminated once anything was written */
    size_t len, cap;
    int32_t status;
} opi__buf;
void opi__buf_init(opi__buf *b, opi_ctx *ctx);
void opi__buf_put(opi__buf *b, const void *bytes, size_t n);
void opi__buf_puts(opi__buf *b, const char *s);
OPI__FORMAT(2, 3) void opi__buf_format(opi__buf *b, const char *fmt, ...);
void opi__buf_free(opi__buf *b);
/* Turns the buffer into an opi_text (the buffer becomes empty). */
int32_t opi__buf_text(opi__buf *b, opi_text **out, opi_error *err);
#endif
