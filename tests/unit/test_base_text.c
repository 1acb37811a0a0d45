/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers are checked against the C library, which is exact in the C locale; then in a locale with a decimal comma
 * where the machine has one, against the texts of the C locale. */
#include "base/mem.h"
#include "base/rng.h"
#include "base/text.h"

#include <check.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bits_of(double v)
{
    uint64_t b;
    memcpy(&b, &v, sizeof b);
    return b;
}

static double double_of(uint64_t b)
{
    double v;
    memcpy(&v, &b, sizeof v);
    return v;
}

/* Any finite double: all exponents, both signs, subnormals too. */
static double random_double(opi__rng *r)
{
    double v;
    do
        v = double_of(opi__rng_next(r));
    while (!isfinite(v));
    return v;
}

static int parse(const char *s, double *v)
{
    return opi__parse_double(s, strlen(s), v);
}

/* Our reading of `s` is the C library's, to the bit; overflow is a failure. */
static void check_as_strtod(const char *s)
{
    double mine = -1.0, theirs = strtod(s, NULL);
    int ok = parse(s, &mine);
    if (isinf(theirs)) {
        ck_assert_msg(!ok && mine == -1.0, "%.60s: overflow was accepted", s);
    } else {
        ck_assert_msg(ok, "%.60s: refused", s);
        ck_assert_msg(bits_of(mine) == bits_of(theirs), "%.60s: %a, the C library reads %a", s, mine, theirs);
    }
}

START_TEST(parses_known_hard_cases)
{
    static const struct {
        const char *text;
        uint64_t bits;
    } cases[] = {
        {"0", 0},
        {"-0", 1ull << 63},
        {"0e999999999999999999999", 0},
        {"1e-400", 0},
        {"-1e-99999999999999999999", 1ull << 63},
        {"4.9406564584124654e-324", 1},
        {"2.4703282292062327e-324", 0},                      /* just below half the smallest */
        {"2.4703282292062328e-324", 1},                      /* just above */
        {"2.2250738585072011e-308", 0x000fffffffffffffull},  /* largest subnormal */
        {"2.2250738585072012e-308", 0x0010000000000000ull},  /* smallest normal */
        {"2.2250738585072014e-308", 0x0010000000000000ull},
        {"1.7976931348623157e308", 0x7fefffffffffffffull},
        {"1.7976931348623158e308", 0x7fefffffffffffffull},
        {"9007199254740993", 0x4340000000000000ull},         /* a tie: to even */
        {"9007199254740993.00000000000000000000000000000001", 0x4340000000000001ull},
        {"9007199254740995", 0x4340000000000002ull},
        {"0.1", 0x3fb999999999999aull},
        {"1e23", 0x44b52d02c7e14af6ull},
        {"  1.5\t", 0x3ff8000000000000ull},
        {"+.5", 0x3fe0000000000000ull},
        {"5.", 0x4014000000000000ull},
        {"0.000000000000000000000000000001e30", 0x3ff0000000000000ull},
        {"1000000000000000000000000000000e-30", 0x3ff0000000000000ull},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double v = 7.0;
        ck_assert_msg(parse(cases[i].text, &v), "%s: refused", cases[i].text);
        ck_assert_msg(bits_of(v) == cases[i].bits, "%s: read as %a", cases[i].text, v);
    }
}
END_TEST

START_TEST(refuses_what_is_not_a_number)
{
    static const char *const cases[] = {"",     " ",    ".",     "-",    "+",       "e5",     "1e",    "1e+",   "1,5",
                                        "1.2.3", "--1", "0x10",  "inf",  "nan",     "-inf",   "1 2",   "1e5.5", "1_000",
                                        "1e400", "1f",  "1.8e308", "\n1", "1e999999999999999999999", "+-1", "1 e5",
                                        "5e309", "-2e308"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double v = 7.0;
        ck_assert_msg(!parse(cases[i], &v) && v == 7.0, "\"%s\" was read as %g", cases[i], v);
    }
    double v = 7.0;
    ck_assert_int_eq(opi__parse_double(NULL, 0, &v), 0);
    ck_assert_int_eq(opi__parse_double("12345", 2, &v), 1); /* the length counts, not a NUL */
    ck_assert_double_eq(v, 12.0);
    ck_assert_int_eq(opi__parse_double("1\0", 2, &v), 0);
}
END_TEST

START_TEST(parses_random_decimals_as_the_c_library)
{
    opi__rng r;
    opi__rng_seed(&r, 11);
    for (int i = 0; i < 100000; i++) {
        char s[96];
        size_t n = 0, digits = 1 + opi__rng_below(&r, 24), point = opi__rng_below(&r, digits + 1);
        for (size_t k = 0; k < digits; k++) {
            if (k == point)
                s[n++] = '.';
            s[n++] = (char)('0' + opi__rng_below(&r, 10));
        }
        if (i % 3)
            n += (size_t)snprintf(s + n, sizeof s - n, "e%d",
                                  i % 3 == 1 ? (int)opi__rng_below(&r, 40) - 20 : (int)opi__rng_below(&r, 680) - 350);
        s[n] = '\0';
        check_as_strtod(s);
    }
}
END_TEST

/* The exact decimal between two neighboring doubles, then a hair above and below: up to 770 digits. */
START_TEST(parses_ties_exactly)
{
    opi__rng r;
    opi__rng_seed(&r, 12);
    ck_assert_int_ge(LDBL_MANT_DIG, 64); /* the midpoint of two doubles must be representable */
    for (int i = 0; i < 2000; i++) {
        uint64_t b = opi__rng_next(&r) >> 1;
        if (i % 4 == 0)
            b >>= 11; /* subnormal or nearly */
        double low = double_of(b), high = double_of(b + 1);
        if (!isfinite(low) || !isfinite(high))
            continue;
        char s[1400];
        size_t n = (size_t)snprintf(s, sizeof s, "%.800Le", ((long double)low + (long double)high) / 2);
        check_as_strtod(s);
        double v;
        ck_assert(parse(s, &v));
        ck_assert_msg(bits_of(v) == (b & 1 ? b + 1 : b), "%.40s: a tie did not go to even", s);
        char *e = strchr(s, 'e');
        ck_assert_ptr_nonnull(e);
        memmove(e + 1, e, n - (size_t)(e - s) + 1);
        e[0] = '1';
        ck_assert(parse(s, &v));
        ck_assert_msg(bits_of(v) == b + 1, "%.40s: above the tie", s);
        e[0] = '0';
        for (char *p = e; *p == '0' || *p == '.'; p--) /* borrow: one unit less in the last place that is not zero */
            if (p[-1] != '.' && p[-1] != '0') {
                p[-1]--;
                break;
            }
        ck_assert(parse(s, &v));
        ck_assert_msg(bits_of(v) == b, "%.40s: below the tie", s);
    }
}
END_TEST

START_TEST(parses_very_long_numbers)
{
    static char s[70000];
    memset(s, '0', sizeof s);
    s[0] = '1';
    memcpy(s + 60001, "e-60000", 8); /* 1 and 60000 zeros */
    double v;
    ck_assert(parse(s, &v));
    ck_assert_double_eq(v, 1.0);
    memset(s, '0', sizeof s);
    s[1] = '.';
    memcpy(s + 60000, "25e60000", 9); /* at the 59,999th and the 60,000th place */
    ck_assert(parse(s, &v));
    ck_assert_double_eq(v, 25.0);
    memset(s, '9', 5000);
    s[1] = '.';
    s[5000] = '\0';
    ck_assert(parse(s, &v));
    ck_assert_double_eq(v, 10.0);
    memset(s, '9', 5000);
    ck_assert(!parse(s, &v));
}
END_TEST

/* What we print reads back in both readers, with as few digits as any notation that does. */
static void check_shortest(double v, int exact_count)
{
    char s[64], theirs[64];
    size_t n = opi__format_double(s, v);
    ck_assert_uint_eq(n, strlen(s));
    ck_assert_uint_lt(n, 32);
    double back = 0.5;
    ck_assert_msg(parse(s, &back) && bits_of(back) == bits_of(v), "%a printed as %s", v, s);
    ck_assert_msg(bits_of(strtod(s, NULL)) == bits_of(v), "%a printed as %s", v, s);
    int least = 1;
    while (least < 17) {
        snprintf(theirs, sizeof theirs, "%.*e", least - 1, v);
        if (strtod(theirs, NULL) == v)
            break;
        least++;
    }
    /* Compare digits: ours without sign, point, exponent and outer zeros; theirs by way of the same reader. */
    char digits[64];
    size_t k = 0;
    for (const char *p = s; *p && *p != 'e'; p++)
        if (*p >= '0' && *p <= '9' && (k > 0 || *p != '0'))
            digits[k++] = *p;
    while (k > 0 && digits[k - 1] == '0')
        k--;
    ck_assert_msg((int)k <= least, "%a printed as %s: %d digits would do", v, s, least);
    if (exact_count && (int)k == least) {
        snprintf(theirs, sizeof theirs, "%.*e", least - 1, v);
        const char *t = theirs + (theirs[0] == '-');
        ck_assert_msg(t[0] == digits[0] && (k == 1 || memcmp(t + 2, digits + 1, k - 1) == 0),
                      "%a printed as %s, nearer is %s", v, s, theirs);
    }
}

START_TEST(prints_the_shortest_text_that_reads_back)
{
    opi__rng r;
    opi__rng_seed(&r, 13);
    for (int i = 0; i < 100000; i++)
        check_shortest(random_double(&r), 1);
    for (int i = 0; i < 100000; i++) { /* the magnitudes that people use: other code */
        double scale = pow(10.0, (double)opi__rng_below(&r, 18) - 6.0);
        check_shortest((double)opi__rng_below(&r, 1000000) / 1000.0 * scale, 1);
        check_shortest(opi__rng_uniform(&r) * scale, 1);
    }
    for (int e = -1074; e < 1024; e++) /* the gap below a power of two is half the gap above */
        check_shortest(ldexp(1.0, e), 0);
}
END_TEST

START_TEST(prints_in_the_documented_notation)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {0.0, "0"},           {-0.0, "-0"},          {1.0, "1"},          {-1.5, "-1.5"},
        {0.1, "0.1"},         {1e15, "1000000000000000"}, {1e16, "1e16"}, {1.5e16, "1.5e16"},
        {0.00001, "0.00001"}, {0.000001, "1e-6"},    {1.25e-7, "1.25e-7"}, {1e23, "1e23"},
        {5e-324, "5e-324"},   {DBL_MAX, "1.7976931348623157e308"},       {DBL_MIN, "2.2250738585072014e-308"},
        {123456.789, "123456.789"}, {9007199254740993.0, "9007199254740992"}, {100.0, "100"},
        {0.3, "0.3"},         {0.1 + 0.2, "0.30000000000000004"},        {HUGE_VAL, "inf"}, {-HUGE_VAL, "-inf"},
        {(double)NAN, "nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char s[32];
        size_t n = opi__format_double(s, cases[i].v);
        ck_assert_str_eq(s, cases[i].text);
        ck_assert_uint_eq(n, strlen(s));
    }
}
END_TEST

START_TEST(prints_a_number_of_digits_as_the_c_library)
{
    opi__rng r;
    opi__rng_seed(&r, 14);
    for (int i = 0; i < 60000; i++) {
        double v = i % 3 == 0   ? random_double(&r)
                   : i % 3 == 1 ? (double)opi__rng_below(&r, 4000000) / 64.0 - 1000.0 /* many exact ties */
                                : opi__rng_normal(&r) * pow(10.0, (double)opi__rng_below(&r, 24) - 12.0);
        int digits = 1 + (int)opi__rng_below(&r, 17);
        char mine[32], theirs[64];
        size_t n = opi__format_short(mine, v, digits);
        snprintf(theirs, sizeof theirs, "%.*g", digits, v);
        ck_assert_msg(strcmp(mine, theirs) == 0, "%a, %d digits: %s, the C library prints %s", v, digits, mine, theirs);
        ck_assert_uint_eq(n, strlen(mine));
    }
    char s[32];
    opi__format_short(s, 999.9, 2);
    ck_assert_str_eq(s, "1e+03");
    opi__format_short(s, 0.5, 0);
    ck_assert_str_eq(s, "0.5");
}
END_TEST

START_TEST(parses_integers)
{
    int64_t v = 5;
    ck_assert(opi__parse_int64(" 42 ", 4, &v) && v == 42);
    ck_assert(opi__parse_int64("-9223372036854775808", 20, &v) && v == INT64_MIN);
    ck_assert(opi__parse_int64("+9223372036854775807", 20, &v) && v == INT64_MAX);
    ck_assert(opi__parse_int64("000000000000000000000000000007", 30, &v) && v == 7);
    v = 5;
    static const char *const bad[] = {"", "-", "1.0", "1e3", "9223372036854775808", "-9223372036854775809", "0x1",
                                      "1 2", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!opi__parse_int64(bad[i], strlen(bad[i]), &v) && v == 5, "\"%s\" was accepted", bad[i]);
    ck_assert(!opi__parse_int64(NULL, 0, &v));
}
END_TEST

/* The directives we share with the C library give its text and its length. */
#define SAME(...)                                                                                                      \
    do {                                                                                                               \
        char mine_[200], theirs_[200];                                                                                 \
        size_t n_ = opi__format(mine_, sizeof mine_, __VA_ARGS__);                                                     \
        ck_assert_int_eq((int)n_, snprintf(theirs_, sizeof theirs_, __VA_ARGS__));                                     \
        ck_assert_str_eq(mine_, theirs_);                                                                              \
    } while (0)

START_TEST(formats_as_snprintf)
{
    SAME("%s|%.*s|%.2s|%c|%%", "abc", 2, "xyz", "pqr", 'q');
    SAME("%d %d %u %ld %lu", -2147483647 - 1, 7, 4294967295u, -5L, 6ul);
    SAME("%lld %llu %zu", -9223372036854775807ll - 1, 18446744073709551615ull, (size_t)12);
    SAME("%x %llx %08x %016llx", 255u, 0xdeadbeefcafeull, 0xabcu, 0x1234ull);
    SAME("[%8s][%-8s][%2s][%5d][%-5d][%05d][%*d][%-*d]", "ab", "ab", "abcdef", 42, 42, -42, 6, 7, 6, 7);
    SAME("[%*d][%zd]", -6, 7, (size_t)5);
    SAME("%.3g %.6g %10.3g %-10.3g|", 3.14159, 1e-7, 2.5, 2.5);
    char s[32];
    ck_assert_uint_eq(opi__format(s, sizeof s, "%g", 0.1), 3); /* shortest round-trip, not six digits */
    ck_assert_str_eq(s, "0.1");
    opi__format(s, sizeof s, "%g", 1.0 / 3.0);
    ck_assert_str_eq(s, "0.3333333333333333");
    const char *volatile none = NULL; /* volatile: the compiler would warn, rightly */
    opi__format(s, sizeof s, "%s", none);
    ck_assert_str_eq(s, "(null)");
    const char *volatile unknown = "%d %q %s"; /* the rest stays as it is: nobody knows what %q would have taken */
    opi__format(s, sizeof s, unknown, 5, "never");
    ck_assert_str_eq(s, "5 %q %s");
}
END_TEST

START_TEST(truncates_between_characters)
{
    char s[8];
    memset(s, '#', sizeof s);
    ck_assert_uint_eq(opi__format(s, 6, "%s", "abcdefgh"), 8);
    ck_assert_str_eq(s, "abcde");
    ck_assert_int_eq(s[6], '#');
    ck_assert_uint_eq(opi__format(NULL, 0, "%d", 12345), 5);
    opi__format(s, 6, "abc%s", "\xe2\x82\xac"); /* the euro sign needs 3 bytes, 2 are left */
    ck_assert_str_eq(s, "abc");
    opi__format(s, 7, "abc%s", "\xe2\x82\xac");
    ck_assert_str_eq(s, "abc\xe2\x82\xac");
    ck_assert_int_eq(opi__copy_text(s, 6, "abcd\xc3\xa9"), 1);
    ck_assert_str_eq(s, "abcd");
    ck_assert_int_eq(opi__copy_text(s, 7, "abcd\xc3\xa9"), 0);
    ck_assert_str_eq(s, "abcd\xc3\xa9");
    s[0] = '#';
    ck_assert_int_eq(opi__copy_text(s, 0, "a"), 1);
    ck_assert_int_eq(s[0], '#');
    ck_assert_int_eq(opi__copy_text(s, 1, ""), 0);
    ck_assert_str_eq(s, "");
}
END_TEST

START_TEST(recognizes_utf8)
{
    static const struct {
        const char *s;
        size_t n;
    } cases[] = {{"a", 1}, {"\xc3\xa9", 2}, {"\xe2\x82\xac", 3}, {"\xf0\x9f\x98\x80", 4}, {"\x80", 0}, {"\xc0\xaf", 0},
                 {"\xc1\xbf", 0}, {"\xe0\x9f\xbf", 0}, {"\xed\xa0\x80", 0}, {"\xf0\x8f\xbf\xbf", 0},
                 {"\xf4\x90\x80\x80", 0}, {"\xf5\x80\x80\x80", 0}, {"\xe2\x82", 0}, {"\xff", 0},
                 {"\xf4\x8f\xbf\xbf", 4}, {"\xed\x9f\xbf", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(opi__utf8_sequence(cases[i].s, 4) == cases[i].n, "case %zu", i);
    ck_assert_uint_eq(opi__utf8_sequence("\xe2\x82\xac", 2), 0);
    ck_assert_uint_eq(opi__utf8_sequence("a", 0), 0);
}
END_TEST

START_TEST(compares_words)
{
    ck_assert(opi__equal_nocase("H100-SXM", "h100-sxm"));
    ck_assert(!opi__equal_nocase("h100", "h100 "));
    ck_assert(!opi__equal_nocase("[", "{")); /* a plain `| 32` would take these for the same letter */
    ck_assert(!opi__equal_nocase("\xc4", "\xe4"));
    ck_assert_uint_eq(opi__edit_distance("kitten", "sitting", 9), 3);
    ck_assert_uint_eq(opi__edit_distance("H100", "h100", 9), 0);
    ck_assert_uint_eq(opi__edit_distance("h010", "h100", 9), 1); /* one swap */
    ck_assert_uint_eq(opi__edit_distance("ca", "abc", 9), 3);    /* restricted: a swapped pair is not edited again */
    ck_assert_uint_eq(opi__edit_distance("", "abc", 9), 3);
    ck_assert_uint_eq(opi__edit_distance("abc", "", 2), 3);      /* limit + 1 */
    ck_assert_uint_eq(opi__edit_distance("abcdef", "uvwxyz", 4), 5);
    char a[200], b[200];
    memset(a, 'a', sizeof a);
    memset(b, 'a', sizeof b);
    a[128] = b[128] = '\0';
    ck_assert_uint_eq(opi__edit_distance(a, b, 3), 0);
    a[128] = b[128] = 'a';
    a[129] = b[129] = '\0';
    ck_assert_uint_eq(opi__edit_distance(a, b, 3), 4); /* beyond 128: not looked at */
}
END_TEST

static const char *comma_locale(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "de_DE",
                                        "nl_NL.UTF-8", "pl_PL.UTF-8", "es_ES.UTF-8", "ru_RU.UTF-8", "it_IT.UTF-8",
                                        "fa_IR.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (setlocale(LC_ALL, names[i]) && strcmp(localeconv()->decimal_point, ".") != 0)
            return names[i];
    return NULL;
}

START_TEST(ignores_the_locale)
{
    const char *name = comma_locale();
    if (!name)
        setlocale(LC_ALL, "C.UTF-8"); /* no such locale on this machine: the rest holds all the same */
    double v = 0.0;
    char s[64];
    int point = parse("1234.5", &v), comma = parse("1234,5", &v);
    opi__format(s, sizeof s, "%g %.3g", 1234.5, 0.25);
    setlocale(LC_ALL, "C");
    ck_assert_int_eq(point, 1);
    ck_assert_int_eq(comma, 0);
    ck_assert_double_eq(v, 1234.5);
    ck_assert_str_eq(s, "1234.5 0.25");
}
END_TEST

Suite *suite_base_text(void);
Suite *suite_base_text(void)
{
    Suite *s = suite_create("base_text");
    TCase *numbers = tcase_create("numbers"), *words = tcase_create("words");
    tcase_set_timeout(numbers, 300);
    tcase_add_test(numbers, parses_known_hard_cases);
    tcase_add_test(numbers, refuses_what_is_not_a_number);
    tcase_add_test(numbers, parses_random_decimals_as_the_c_library);
    tcase_add_test(numbers, parses_ties_exactly);
    tcase_add_test(numbers, parses_very_long_numbers);
    tcase_add_test(numbers, prints_the_shortest_text_that_reads_back);
    tcase_add_test(numbers, prints_in_the_documented_notation);
    tcase_add_test(numbers, prints_a_number_of_digits_as_the_c_library);
    tcase_add_test(numbers, parses_integers);
    tcase_add_test(words, formats_as_snprintf);
    tcase_add_test(words, truncates_between_characters);
    tcase_add_test(words, recognizes_utf8);
    tcase_add_test(words, compares_words);
    tcase_add_test(words, ignores_the_locale);
    suite_add_tcase(s, numbers);
    suite_add_tcase(s, words);
    return s;
}
