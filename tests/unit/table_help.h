/* SPDX-License-Identifier: Apache-2.0 */
/* What test_table.c and test_table_rows.c share: one table at a time, parsed from a text, and its report. */
#ifndef OPI_TEST_TABLE_HELP_H
#define OPI_TEST_TABLE_HELP_H
#include <check.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "facts/table.h"

#define GPU "H100-80GB-SXM"
#define LLM "meta-llama/Meta-Llama-3-8B"

static opi_ctx *ctx;
static opi_table *table;
static opi_error err;

static inline void setup(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
    table = NULL;
    memset(&err, 0, sizeof err);
}

static inline void teardown(void)
{
    opi_table_free(table);
    opi_ctx_destroy(ctx);
}

static inline int32_t parse_with(const char *text, const opi_table_options *options)
{
    opi_table_free(table);
    table = NULL;
    return opi_table_parse(ctx, text, strlen(text), options, &table, &err);
}

static inline void parse(const char *text)
{
    int32_t status = parse_with(text, NULL);
    ck_assert_msg(status == OPI_OK, "%s", err.message);
}

/* The file is refused with `code` and a message that holds both words; nothing is handed out. */
static inline void refused(const char *text, int32_t code, const char *word, const char *other)
{
    ck_assert_int_eq(parse_with(text, NULL), code);
    ck_assert_ptr_null(table);
    ck_assert_int_eq(err.code, code);
    ck_assert_msg(strstr(err.message, word) && strstr(err.message, other), "%s", err.message);
    ck_assert_ptr_null(strchr(err.message, '\n'));
}

static inline int32_t status_of(size_t row)
{
    opi_config c = {.struct_size = sizeof c};
    int32_t status = 99;
    ck_assert_int_eq(opi_table_config(table, row, &c, &status, NULL), OPI_OK);
    return status;
}

static inline opi_config config_of(size_t row)
{
    opi_config c = {.struct_size = sizeof c};
    ck_assert_int_eq(opi_table_config(table, row, &c, NULL, NULL), OPI_OK);
    return c;
}

static inline void reason_has(size_t row, const char *word)
{
    ck_assert_msg(strstr(opi_table_reason(table, row), word), "%s", opi_table_reason(table, row));
}

/* The report as JSON; the caller frees it. */
static inline opi__json *report(void)
{
    opi_text *text = NULL;
    opi__json *root = NULL;
    ck_assert_int_eq(opi_table_report(table, &text, &err), OPI_OK);
    ck_assert_int_eq(opi__json_parse(opi_text_data(text), opi_text_size(text), "report", &root, &err), OPI_OK);
    opi_text_free(text);
    return root;
}

static inline double number_at(const opi__json *object, const char *key)
{
    double v = NAN;
    ck_assert_msg(opi__json_number(opi__json_get(object, key), &v), "%s", key);
    return v;
}

/* The report's problem of that kind on that line; its reason must hold `word`. */
static inline void reported(const char *kind, double line, const char *column, const char *word)
{
    opi__json *root = report();
    const opi__json *list = opi__json_get(root, "problems");
    int found = 0;
    for (size_t i = 0; i < opi__json_size(list); i++) {
        const opi__json *p = opi__json_at(list, i);
        const char *has = opi__json_string(opi__json_get(p, "column"));
        if (number_at(p, "line") == line && strcmp(opi__json_string(opi__json_get(p, "kind")), kind) == 0 &&
            (!column || (has && strcmp(has, column) == 0)) &&
            strstr(opi__json_string(opi__json_get(p, "reason")), word))
            found = 1;
    }
    opi__json_free(root);
    ck_assert_msg(found, "no %s on line %g", kind, line);
}
#endif
