/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that includes cJSON.h. Reading: bounded depth and size, duplicate keys refused, trailing bytes refused.
 * Writing: numbers as the shortest text that reads back bit for bit; NaN and infinities as null. */
#ifndef OPI_BASE_JSON_H
#define OPI_BASE_JSON_H
#include "omnipilot/types.h"

#define OPI__JSON_BYTES (64 << 20) /* largest text */
#define OPI__JSON_DEPTH 64         /* deepest nesting */

typedef struct cJSON opi__json;
/* `what` names the text in messages. Errors: OPI_E_FORMAT (index = the byte), OPI_E_RANGE, OPI_E_NOMEM. */
int32_t opi__json_parse(const char *bytes, size_t n, const char *what, opi__json **out, opi_error *err);
void opi__json_free(opi__json *v);
/* Readers: NULL or 0 when absent or of another type. */
const opi__json *opi__json_get(const opi__json *object, const char *key);
size_t opi__json_size(const opi__json *array_or_object);
const opi__json *opi__json_at(const opi__json *array_or_object, size_t i);
/* Walking: opi__json_at looks from the start each time, these do not. */
const opi__json *opi__json_first(const opi__json *array_or_object);
const opi__json *opi__json_next(const opi__json *v);
const char *opi__json_key(const opi__json *v);
int opi__json_is_object(const opi__json *v);
int opi__json_is_array(const opi__json *v);
int opi__json_is_null(const opi__json *v);
int opi__json_number(const opi__json *v, double *out); /* 1 when a finite number */
int opi__json_bool(const opi__json *v, int *out);
const char *opi__json_string(const opi__json *v);
/* Builders: a failed allocation makes the result NULL at print time; children of NULL are ignored. */
opi__json *opi__json_new_object(void);
opi__json *opi__json_new_array(void);
opi__json *opi__json_add_object(opi__json *parent, const char *key); /* key NULL: parent is an array */
opi__json *opi__json_add_array(opi__json *parent, const char *key);
void opi__json_add_number(opi__json *parent, const char *key, double v);
void opi__json_add_int(opi__json *parent, const char *key, int64_t v);
void opi__json_add_string(opi__json *parent, const char *key, const char *v); /* NULL = null */
void opi__json_add_bool(opi__json *parent, const char *key, int v);
void opi__json_add_null(opi__json *parent, const char *key);
/* Prints indented (2 spaces or tabs) and frees v, whatever happens. */
int32_t opi__json_text(opi_ctx *ctx, opi__json *v, opi_text **out, opi_error *err);
#endif
