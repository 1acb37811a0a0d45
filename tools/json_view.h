/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the JSON documents the library returns, and showing their parts. */
#ifndef OMNIPILOT_JSON_VIEW_H
#define OMNIPILOT_JSON_VIEW_H
#include <cjson/cJSON.h>
#include <stddef.h>

/* NAN, "" and NULL when absent or of another type. `path` may have dots: "a.b". */
double jv_number(const cJSON *v, const char *path);
const char *jv_text(const cJSON *v, const char *path);
const cJSON *jv_get(const cJSON *v, const char *path);
/* Parses, or says on stderr that the document is damaged. NULL then. */
cJSON *jv_parse(const char *json, size_t n);
void jv_free(cJSON *v);
/* "12.3" of a share times a hundred, or "-". Returns buf (OUT_NUM). */
char *jv_percent(char *buf, double share, int digits);

/* Whatever an object holds, a line a member, nested ones indented. */
void jv_print_any(const cJSON *v, size_t indent);

/* opi_table_report on stderr: rows that cannot be used, unknown columns, contradictions. Quiet when all is well. */
void json_view_table_report(const char *json, size_t n);
/* How many targets opi_model_inspect's document calls learned. */
int json_view_learned_targets(const char *json, size_t n);
#endif
