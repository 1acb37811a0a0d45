/* SPDX-License-Identifier: Apache-2.0 */
/* The RFC 4180 reader: what a record is, and what is refused with its line. */
#include <check.h>
#include <string.h>

#include "facts/csv.h"

Suite *suite_csv(void);

static opi_ctx *ctx;

static void setup(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
}

static void teardown(void)
{
    opi_ctx_destroy(ctx);
}

static void open_text(opi__csv *c, const char *text)
{
    ck_assert_int_eq(opi__csv_open(c, ctx, text, strlen(text), ',', NULL), OPI_OK);
}

static void expect(opi__csv *c, uint64_t line, size_t n, const char *const *fields)
{
    opi_error err;
    ck_assert_int_eq(opi__csv_next(c, &err), 1);
    ck_assert_uint_eq(c->line, line);
    ck_assert_uint_eq(c->n_fields, n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(c->fields[i].size, strlen(fields[i]));
        ck_assert_mem_eq(c->fields[i].text, fields[i], strlen(fields[i]));
    }
}

START_TEST(plain_records)
{
    opi__csv c;
    open_text(&c, "a,b,c\n1,,3\n,,");
    expect(&c, 1, 3, (const char *[]){"a", "b", "c"});
    expect(&c, 2, 3, (const char *[]){"1", "", "3"});
    expect(&c, 3, 3, (const char *[]){"", "", ""});
    ck_assert_int_eq(opi__csv_next(&c, NULL), 0);
    ck_assert_uint_eq(c.records, 3);
    opi__csv_close(&c);
}
END_TEST

START_TEST(line_ends_and_blank_lines)
{
    opi__csv c;
    open_text(&c, "\r\na,b\r\n\r\n\r\n1,2\n\n3,4\r5,6\n\n");
    expect(&c, 2, 2, (const char *[]){"a", "b"});
    expect(&c, 5, 2, (const char *[]){"1", "2"});
    expect(&c, 7, 2, (const char *[]){"3", "4"});
    expect(&c, 8, 2, (const char *[]){"5", "6"});
    ck_assert_int_eq(opi__csv_next(&c, NULL), 0);
    ck_assert_uint_eq(c.blank_lines, 5);
    opi__csv_close(&c);
}
END_TEST

START_TEST(byte_order_mark)
{
    opi__csv c;
    open_text(&c, "\xef\xbb\xbf" "a,b\n");
    expect(&c, 1, 2, (const char *[]){"a", "b"});
    opi__csv_close(&c);
    open_text(&c, "\xef\xbb\xbf" "\"a,b\",c\n");
    expect(&c, 1, 2, (const char *[]){"a,b", "c"});
    opi__csv_close(&c);
}
END_TEST

START_TEST(quoted_fields)
{
    opi__csv c;
    open_text(&c, "\"a,1\",\"say \"\"hi\"\"\",\"\",\"\"\"\",x\"y\n\"two\nlines\r\nand three\",\"z\"\"\"\r\nend,1\n");
    expect(&c, 1, 5, (const char *[]){"a,1", "say \"hi\"", "", "\"", "x\"y"});
    expect(&c, 2, 2, (const char *[]){"two\nlines\r\nand three", "z\""});
    expect(&c, 5, 2, (const char *[]){"end", "1"});
    ck_assert_int_eq(opi__csv_next(&c, NULL), 0);
    opi__csv_close(&c);
}
END_TEST

START_TEST(many_doubled_quotes_in_one_record)
{
    /* The buffer of unquoted texts moves while it grows; fields settled before must follow it. */
    char text[6000] = "\"first \"\"field\"\"\"";
    size_t at = strlen(text);
    for (int i = 0; i < 400; i++) {
        memcpy(text + at, ",\"\"\"abc\"\"\"", 10);
        at += 10;
    }
    opi__csv c;
    open_text(&c, text);
    ck_assert_int_eq(opi__csv_next(&c, NULL), 1);
    ck_assert_uint_eq(c.n_fields, 401);
    ck_assert_uint_eq(c.fields[0].size, 13);
    ck_assert_mem_eq(c.fields[0].text, "first \"field\"", 13);
    for (int i = 1; i <= 400; i++)
        ck_assert_mem_eq(c.fields[i].text, "\"abc\"", 5);
    opi__csv_close(&c);
}
END_TEST

START_TEST(unterminated_quote)
{
    opi__csv c;
    opi_error err;
    open_text(&c, "a,b\n1,2\n3,\"open\nand on\n");
    ck_assert_int_eq(opi__csv_next(&c, &err), 1);
    ck_assert_int_eq(opi__csv_next(&c, &err), 1);
    ck_assert_int_eq(opi__csv_next(&c, &err), OPI_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "line 3"));
    ck_assert_ptr_nonnull(strstr(err.message, "never closed"));
    ck_assert_int_eq(err.index, 1);
    opi__csv_close(&c);
}
END_TEST

START_TEST(text_after_a_closing_quote)
{
    opi__csv c;
    opi_error err;
    open_text(&c, "a\n\"b\nc\"d\n");
    ck_assert_int_eq(opi__csv_next(&c, &err), 1);
    ck_assert_int_eq(opi__csv_next(&c, &err), OPI_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "line 3: text after the closing quote"));
    opi__csv_close(&c);
}
END_TEST

START_TEST(refused_before_reading)
{
    opi__csv c;
    opi_error err;
    ck_assert_int_eq(opi__csv_open(&c, ctx, "a,b\n1,\0002\n", 9, ',', &err), OPI_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "line 2: a NUL byte (byte 6)"));
    ck_assert_int_eq(err.index, 6);
    ck_assert_int_eq(opi__csv_open(&c, ctx, "\xff\xfe" "a\0,\0", 6, ',', &err), OPI_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "UTF-16"));
    ck_assert_int_eq(opi__csv_open(&c, ctx, "a", OPI__CSV_MAX_BYTES + 1, ',', &err), OPI_E_RANGE);
    ck_assert_ptr_nonnull(strstr(err.message, "2147483648 bytes; the limit is 2147483647"));
    ck_assert_int_eq(opi__csv_open(&c, ctx, NULL, 3, ',', &err), OPI_E_INVALID);
}
END_TEST

START_TEST(limits_of_a_record)
{
    static char text[OPI__CSV_MAX_FIELD + 8];
    opi__csv c;
    opi_error err;
    memset(text, ',', OPI__CSV_MAX_FIELDS);
    text[OPI__CSV_MAX_FIELDS] = 0;
    open_text(&c, text);
    ck_assert_int_eq(opi__csv_next(&c, &err), OPI_E_RANGE);
    ck_assert_ptr_nonnull(strstr(err.message, "line 1: more than 1024 fields"));
    opi__csv_close(&c);
    text[OPI__CSV_MAX_FIELDS - 1] = 0;
    open_text(&c, text);
    ck_assert_int_eq(opi__csv_next(&c, &err), 1);
    ck_assert_uint_eq(c.n_fields, OPI__CSV_MAX_FIELDS);
    opi__csv_close(&c);
    memset(text, 'x', OPI__CSV_MAX_FIELD + 1);
    text[OPI__CSV_MAX_FIELD + 1] = 0;
    open_text(&c, text);
    ck_assert_int_eq(opi__csv_next(&c, &err), OPI_E_RANGE);
    ck_assert_ptr_nonnull(strstr(err.message, "field 1 has 1048577 bytes; the limit is 1048576"));
    opi__csv_close(&c);
}
END_TEST

START_TEST(nothing_to_read)
{
    opi__csv c;
    open_text(&c, "");
    ck_assert_int_eq(opi__csv_next(&c, NULL), 0);
    opi__csv_close(&c);
    open_text(&c, "\n\r\n\n");
    ck_assert_int_eq(opi__csv_next(&c, NULL), 0);
    opi__csv_close(&c);
}
END_TEST

Suite *suite_csv(void)
{
    Suite *s = suite_create("csv");
    TCase *t = tcase_create("csv");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, plain_records);
    tcase_add_test(t, line_ends_and_blank_lines);
    tcase_add_test(t, byte_order_mark);
    tcase_add_test(t, quoted_fields);
    tcase_add_test(t, many_doubled_quotes_in_one_record);
    tcase_add_test(t, unterminated_quote);
    tcase_add_test(t, text_after_a_closing_quote);
    tcase_add_test(t, refused_before_reading);
    tcase_add_test(t, limits_of_a_record);
    tcase_add_test(t, nothing_to_read);
    suite_add_tcase(s, t);
    return s;
}
