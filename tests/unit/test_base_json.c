/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"

#include <check.h>
#include <cjson/cJSON.h> /* only to make its allocations fail */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static opi__json *parsed(const char *s)
{
    opi__json *v = NULL;
    opi_error e = {0, 0, 0, ""};
    ck_assert_msg(opi__json_parse(s, strlen(s), "doc", &v, &e) == OPI_OK, "%s: %s", s, e.message);
    ck_assert_ptr_nonnull(v);
    return v;
}

/* Printed without the white space that lies outside texts. */
static char *printed(opi__json *v)
{
    opi_text *t = NULL;
    ck_assert_int_eq(opi__json_text(NULL, v, &t, NULL), OPI_OK);
    char *s = malloc(opi_text_size(t) + 1), *to = s;
    int quoted = 0;
    for (const char *p = opi_text_data(t); *p; p++) {
        if (quoted && *p == '\\') {
            *to++ = *p++;
        } else if (*p == '"') {
            quoted = !quoted;
        }
        if (quoted || (*p != ' ' && *p != '\t' && *p != '\n'))
            *to++ = *p;
    }
    *to = '\0';
    opi_text_free(t);
    return s;
}

static void check_printed(opi__json *v, const char *want)
{
    char *s = printed(v);
    ck_assert_str_eq(s, want);
    free(s);
}

START_TEST(reads_every_kind)
{
    opi__json *v = parsed("\xef\xbb\xbf {\"n\": -12.5e1, \"t\":true,\"f\":false,\r\n\"z\":null,\"s\":\"x\","
                          "\"a\":[1,[],{}],\"o\":{\"k\":0}} \n");
    double n = 0.0;
    int b = 7;
    ck_assert(opi__json_is_object(v) && !opi__json_is_array(v));
    ck_assert_uint_eq(opi__json_size(v), 7);
    ck_assert(opi__json_number(opi__json_get(v, "n"), &n) && n == -125.0);
    ck_assert(opi__json_bool(opi__json_get(v, "t"), &b) && b == 1);
    ck_assert(opi__json_bool(opi__json_get(v, "f"), &b) && b == 0);
    ck_assert(opi__json_is_null(opi__json_get(v, "z")) && !opi__json_is_null(opi__json_get(v, "n")));
    ck_assert_str_eq(opi__json_string(opi__json_get(v, "s")), "x");
    const opi__json *a = opi__json_get(v, "a");
    ck_assert(opi__json_is_array(a) && opi__json_size(a) == 3);
    ck_assert(opi__json_number(opi__json_at(a, 0), &n) && n == 1.0);
    ck_assert(opi__json_is_array(opi__json_at(a, 1)) && opi__json_size(opi__json_at(a, 1)) == 0);
    ck_assert_ptr_null(opi__json_at(a, 3));
    ck_assert_ptr_null(opi__json_key(opi__json_at(a, 0)));
    ck_assert_str_eq(opi__json_key(opi__json_at(v, 6)), "o");
    size_t walked = 0;
    for (const opi__json *c = opi__json_first(v); c; c = opi__json_next(c), walked++)
        ck_assert_ptr_eq(c, opi__json_at(v, walked));
    ck_assert_uint_eq(walked, 7);
    opi__json_free(v);
    opi__json_free(NULL);
}
END_TEST

START_TEST(readers_take_nothing_of_another_type)
{
    opi__json *v = parsed("{\"s\":\"1\",\"n\":1,\"z\":null}");
    double n = 4.0;
    int b = 7;
    ck_assert(!opi__json_number(opi__json_get(v, "s"), &n) && !opi__json_number(NULL, &n) && n == 4.0);
    ck_assert(!opi__json_bool(opi__json_get(v, "n"), &b) && !opi__json_bool(NULL, &b) && b == 7);
    ck_assert_ptr_null(opi__json_string(opi__json_get(v, "n")));
    ck_assert_ptr_null(opi__json_string(NULL));
    ck_assert_ptr_null(opi__json_get(v, "S")); /* keys are case-sensitive */
    ck_assert_ptr_null(opi__json_get(opi__json_get(v, "s"), "x"));
    ck_assert_ptr_null(opi__json_get(NULL, "x"));
    ck_assert_ptr_null(opi__json_first(opi__json_get(v, "s")));
    ck_assert_ptr_null(opi__json_next(NULL));
    ck_assert_uint_eq(opi__json_size(opi__json_get(v, "s")), 0);
    ck_assert_uint_eq(opi__json_size(NULL), 0);
    ck_assert(!opi__json_is_object(NULL) && !opi__json_is_array(NULL) && !opi__json_is_null(NULL));
    opi__json_free(v);
}
END_TEST

START_TEST(reads_texts)
{
    opi__json *v = parsed("[\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\","
                          "\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\",\"\xf0\x9f\x98\x80\",\"\"]");
    ck_assert_str_eq(opi__json_string(opi__json_at(v, 0)), "a\"\\/\b\f\n\r\tz");
    ck_assert_str_eq(opi__json_string(opi__json_at(v, 1)), "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    ck_assert_str_eq(opi__json_string(opi__json_at(v, 2)), "\xf0\x9f\x98\x80");
    ck_assert_str_eq(opi__json_string(opi__json_at(v, 3)), "");
    opi__json_free(v);
}
END_TEST

static void check_refused(const char *s, size_t n, int64_t at, const char *words)
{
    opi__json *v = NULL;
    opi_error e;
    ck_assert_msg(opi__json_parse(s, n, "doc", &v, &e) == OPI_E_FORMAT, "%.60s: accepted", s);
    ck_assert_ptr_null(v);
    ck_assert_msg(strstr(e.message, words) != NULL, "%.60s: \"%s\" does not say \"%s\"", s, e.message, words);
    ck_assert_msg(e.index == at, "%.60s: byte %lld, not %lld", s, (long long)e.index, (long long)at);
    ck_assert_int_eq(strncmp(e.message, "doc: line ", 10), 0);
    ck_assert_int_eq(opi__json_parse(s, n, "doc", &v, NULL), OPI_E_FORMAT);
}

START_TEST(refuses_what_is_not_json)
{
    static const struct {
        const char *s;
        int64_t at;
        const char *words;
    } cases[] = {
        {"", 0, "ends where a value is expected"},
        {" ", 1, "ends where a value is expected"},
        {"[1] 2", 4, "behind the end"},
        {"{}}", 2, "behind the end"},
        {"{\"a\":1,}", 7, "key in quotes"},
        {"[1,]", 3, "not a JSON value"},
        {"[1 2]", 3, "comma or a closing bracket"},
        {"{\"a\":1 \"b\":2}", 7, "comma or a closing brace"},
        {"{\"a\" 1}", 5, "colon"},
        {"{a:1}", 1, "key in quotes"},
        {"{\"a\":", 5, "ends where a value is expected"},
        {"[", 1, "ends where a value is expected"},
        {"{", 1, "key in quotes"},
        {"nul", 0, "not a JSON value"},
        {"NaN", 0, "not a JSON value"},
        {"Infinity", 0, "not a JSON value"},
        {"'a'", 0, "not a JSON value"},
        {"truefalse", 4, "behind the end"},
        {"01", 0, "number"},
        {"-", 0, "number"},
        {"1.", 0, "number"},
        {"-.5", 0, "number"},
        {"1e", 0, "number"},
        {"1e+", 0, "number"},
        {"+1", 0, "not a JSON value"},
        {".5", 0, "not a JSON value"},
        {"1,5", 1, "behind the end"},
        {"1e400", 0, "too large for a double"},
        {"0x10", 1, "behind the end"},
        {"\"abc", 0, "closing quote"},
        {"\"abc\\\"", 0, "closing quote"},
        {"\"\\", 0, "closing quote"},
        {"\"a\\x\"", 2, "unknown escape"},
        {"\"a\\u12g4\"", 2, "four hexadecimal"},
        {"\"\\u12\"", 1, "four hexadecimal"},
        {"\"\\ud800\"", 1, "surrogate"},
        {"\"\\ud800\\u0041\"", 1, "surrogate"},
        {"\"\\udc00\"", 1, "surrogate"},
        {"\"\\u0000\"", 1, "zero character"},
        {"\"a\nb\"", 2, "control character"},
        {"\"a\xff\"", 2, "UTF-8"},
        {"\"\xc0\x80\"", 1, "UTF-8"},
        {"\"\xed\xa0\x80\"", 1, "UTF-8"},
        {"\"\xe2\x82\"", 1, "UTF-8"},
        {"{\"a\":1,\"b\":2,\"a\":3}", 0, "key \"a\" twice"},
        {"[{\"x\":{\"\\u0061\":1,\"a\":2}}]", 6, "key \"a\" twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_refused(cases[i].s, strlen(cases[i].s), cases[i].at, cases[i].words);
    check_refused("{}\0", 3, 2, "behind the end");
    check_refused("\"a\0b\"", 5, 2, "control character");
    check_refused("{\n  \"a\": tru\n}", 14, 9, "doc: line 2, column 8: not a JSON value");
    opi__json *v = NULL;
    opi_error e;
    ck_assert_int_eq(opi__json_parse(NULL, 0, "doc", &v, &e), OPI_E_INVALID);
    ck_assert_ptr_null(v);
}
END_TEST

START_TEST(bounds_depth_and_size)
{
    char s[300];
    for (int depth = 64; depth <= 65; depth++) {
        memset(s, '[', (size_t)depth);
        memset(s + depth, ']', (size_t)depth);
        opi__json *v = NULL;
        opi_error e;
        int32_t status = opi__json_parse(s, 2 * (size_t)depth, "doc", &v, &e);
        ck_assert_int_eq(status, depth == 64 ? OPI_OK : OPI_E_FORMAT);
        if (status)
            ck_assert_ptr_nonnull(strstr(e.message, "more than 64 levels"));
        opi__json_free(v);
    }
    static char hostile[1 << 20];
    memset(hostile, '[', sizeof hostile);
    check_refused(hostile, sizeof hostile, 64, "more than 64 levels");
    opi__json *v = NULL;
    opi_error e;
    ck_assert_int_eq(opi__json_parse(s, ((size_t)64 << 20) + 1, "doc", &v, &e), OPI_E_RANGE); /* not even looked at */
    ck_assert_ptr_nonnull(strstr(e.message, "67108865 bytes of JSON, the limit is 67108864"));
}
END_TEST

START_TEST(many_keys_are_no_attack)
{
    opi__buf b;
    opi__buf_init(&b, NULL);
    opi__buf_puts(&b, "{");
    for (int i = 0; i < 300000; i++)
        opi__buf_format(&b, "%s\"k%d\":%d", i ? "," : "", (int)(i * 7919ll % 300000), i);
    opi__buf_puts(&b, "}");
    opi__json *v = NULL;
    ck_assert_int_eq(opi__json_parse(b.data, b.len, "doc", &v, NULL), OPI_OK);
    ck_assert_uint_eq(opi__json_size(v), 300000);
    opi__json_free(v);
    b.data[b.len - 1] = ',';
    opi__buf_puts(&b, "\"k77\":0}");
    check_refused(b.data, b.len, 0, "key \"k77\" twice");
    opi__buf_free(&b);
}
END_TEST

START_TEST(builds_and_prints)
{
    opi__json *o = opi__json_new_object(), *a = opi__json_add_array(o, "a");
    opi__json_add_number(a, NULL, 0.1);
    opi__json_add_number(a, NULL, (double)NAN);
    opi__json_add_number(a, NULL, -HUGE_VAL);
    opi__json_add_int(a, NULL, INT64_MIN);
    opi__json_add_int(a, NULL, INT64_MAX);
    opi__json_add_string(a, NULL, "q\" \\ \n \x01 \xc3\xa9 \xff");
    opi__json_add_string(a, NULL, NULL);
    opi__json_add_bool(opi__json_add_object(a, NULL), "t", 5);
    opi__json_add_bool(o, "f", 0);
    opi__json_add_null(o, "z");
    opi__json_add_string(o, "k\"", "v");
    opi__json_add_number(NULL, "ignored", 1.0);
    opi__json_add_int(NULL, "ignored", 1);
    opi__json_add_string(NULL, "ignored", "s");
    opi__json_add_bool(NULL, "ignored", 1);
    opi__json_add_null(NULL, "ignored");
    ck_assert_ptr_null(opi__json_add_object(NULL, "ignored"));
    ck_assert_ptr_null(opi__json_add_array(NULL, "ignored"));
    check_printed(o, "{\"a\":[0.1,null,null,-9223372036854775808,9223372036854775807,"
                     "\"q\\\" \\\\ \\n \\u0001 \xc3\xa9 ?\",null,{\"t\":true}],"
                     "\"f\":false,\"z\":null,\"k\\\"\":\"v\"}");
    check_printed(opi__json_new_array(), "[]");
}
END_TEST

/* What was read prints as it was written: no digit of a number is lost. */
START_TEST(prints_what_it_read)
{
    static const char *const docs[] = {
        "{\"a\":[1.50,-0,1e-7,123456789012345678901234567890,0.30000000000000004],\"b\":{\"c\":\"\"}}", "\"x\"", "null",
        "[true,false,[],{}]", "9007199254740993",
        "0.1000000000000000055511151231257827021181583404541015625000000000000000000000000000001",
    };
    for (size_t i = 0; i < sizeof docs / sizeof docs[0]; i++)
        check_printed(parsed(docs[i]), docs[i]);
}
END_TEST

static void check_round_trips(int count)
{
    opi__rng r;
    opi__rng_seed(&r, 21);
    opi__json *a = opi__json_new_array();
    double *want = malloc((size_t)count * sizeof *want);
    for (int i = 0; i < count; i++) {
        uint64_t bits;
        do {
            bits = opi__rng_next(&r);
            memcpy(&want[i], &bits, sizeof bits);
        } while (!isfinite(want[i]));
        if (i % 2)
            want[i] = opi__rng_uniform(&r) * 1000.0;
        opi__json_add_number(a, NULL, want[i]);
    }
    opi_text *t = NULL;
    ck_assert_int_eq(opi__json_text(NULL, a, &t, NULL), OPI_OK);
    opi__json *back = parsed(opi_text_data(t));
    opi_text_free(t);
    const opi__json *c = opi__json_first(back);
    for (int i = 0; i < count; i++, c = opi__json_next(c)) {
        double got;
        ck_assert(opi__json_number(c, &got));
        ck_assert_msg(memcmp(&got, &want[i], sizeof got) == 0, "%a came back as %a", want[i], got);
    }
    ck_assert_ptr_null(c);
    opi__json_free(back);
    free(want);
}

START_TEST(numbers_survive_to_the_last_bit)
{
    check_round_trips(100000);
}
END_TEST

START_TEST(the_locale_does_not_matter)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fa_IR.UTF-8", "C.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!setlocale(LC_ALL, names[i]))
            continue;
        check_round_trips(1000);
        check_printed(parsed("[1.5,2.25e-3]"), "[1.5,2.25e-3]");
        check_refused("[1,5.]", 6, 3, "number");
    }
    setlocale(LC_ALL, "C");
}
END_TEST

/* ---- cJSON without memory ---- */

static int requests, fail_at, live;

static void *failing_malloc(size_t n)
{
    if (++requests == fail_at)
        return NULL;
    live++;
    return malloc(n);
}

static void counting_free(void *p)
{
    live -= p != NULL;
    free(p);
}

static void build_and_print(opi_text **t, int32_t *status)
{
    opi__json *o = opi__json_new_object(), *a = opi__json_add_array(o, "list");
    opi__json_add_number(a, NULL, 0.25);
    opi__json_add_string(a, NULL, "s");
    opi__json_add_bool(opi__json_add_object(a, NULL), "deep", 1);
    opi__json_add_string(o, "none", NULL);
    opi__json_add_int(o, "i", 5);
    opi__json_add_null(o, "z");
    *status = opi__json_text(NULL, o, t, NULL);
}

START_TEST(every_failed_allocation_is_reported)
{
    static const char doc[] = "{\"a\":[1,\"x\\n\",true,null,{\"b\":{}}],\"c\":\"y\"}";
    cJSON_Hooks hooks = {failing_malloc, counting_free};
    cJSON_InitHooks(&hooks);
    int failures = 0, prints = 0;
    for (int k = 1;; k++) { /* the k-th request fails, once */
        requests = 0;
        fail_at = k;
        opi__json *v = NULL;
        opi_error e = {0, 0, 0, ""};
        int32_t status = opi__json_parse(doc, sizeof doc - 1, "doc", &v, &e);
        int done = requests < k;
        if (done)
            ck_assert_int_eq(status, OPI_OK);
        else
            ck_assert(status == OPI_E_NOMEM && e.code == OPI_E_NOMEM && !v);
        opi__json_free(v);
        ck_assert_int_eq(live, 0);
        if (done)
            break;
        failures++;
    }
    for (int k = 1;; k++) {
        requests = 0;
        fail_at = k;
        opi_text *t = NULL;
        int32_t status;
        build_and_print(&t, &status);
        int done = requests < k;
        ck_assert_int_eq(status, done ? OPI_OK : OPI_E_NOMEM);
        ck_assert(done == (t != NULL));
        opi_text_free(t);
        ck_assert_int_eq(live, 0);
        if (done)
            break;
        prints++;
    }
    cJSON_InitHooks(NULL);
    ck_assert_int_ge(failures, 15);
    ck_assert_int_ge(prints, 15);
}
END_TEST

Suite *suite_base_json(void);
Suite *suite_base_json(void)
{
    Suite *s = suite_create("base_json");
    TCase *t = tcase_create("json");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, reads_every_kind);
    tcase_add_test(t, readers_take_nothing_of_another_type);
    tcase_add_test(t, reads_texts);
    tcase_add_test(t, refuses_what_is_not_json);
    tcase_add_test(t, bounds_depth_and_size);
    tcase_add_test(t, many_keys_are_no_attack);
    tcase_add_test(t, builds_and_prints);
    tcase_add_test(t, prints_what_it_read);
    tcase_add_test(t, numbers_survive_to_the_last_bit);
    tcase_add_test(t, the_locale_does_not_matter);
    tcase_add_test(t, every_failed_allocation_is_reported);
    suite_add_tcase(s, t);
    return s;
}
