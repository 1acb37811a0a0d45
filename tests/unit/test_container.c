/* SPDX-License-Identifier: Apache-2.0 */
/* The byte form of a model: what is written reads back bit for bit, and no count or header can make a reader leave
 * its block. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tiny_model.h"

Suite *suite_container(void);

static opi_ctx *ctx;
static opi_error err;
static opi_text *text;

static void setup(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
    memset(&err, 0, sizeof err);
    text = NULL;
}

static void teardown(void)
{
    opi_text_free(text);
    opi_ctx_destroy(ctx);
}

static const double doubles[] = {0, -0., 1. / 3, 5e-324, 1.7976931348623157e308, INFINITY, -INFINITY, NAN};
static const float floats[] = {1.5f, -0.f, 3.4e38f};
static const uint16_t shorts[] = {1, 2, 65535};
typedef struct wide {
    double a;
    uint32_t b[3];
} wide; /* 24 bytes: aligned to 8 in a file */

static void write_sample(void)
{
    opi__writer w;
    const wide two[2] = {{1.25, {1, 2, 3}}, {-1, {4, 5, 6}}};
    opi__write_start(&w, ctx);
    opi__write_text(&w, "caf\xc3\xa9");
    opi__write_u32(&w, 0xdeadbeef);
    opi__write_u64(&w, 0x0123456789abcdefull);
    opi__write_array(&w, "abc", 3, 1);
    opi__write_array(&w, shorts, 3, 2);
    opi__write_array(&w, floats, 3, 4);
    opi__write_array(&w, doubles, 8, 8);
    opi__write_array(&w, two, 2, sizeof(wide));
    opi__write_array(&w, NULL, 0, 8);
    opi__write_f64(&w, doubles[2]);
    opi__write_text(&w, "");
    opi__write_u32(&w, 7);
    ck_assert_int_eq(opi__write_finish(&w, &text, &err), OPI_OK);
}

static opi__reader start(void)
{
    opi__reader r = {0};
    ck_assert_msg(opi__read_start(&r, opi_text_data(text), opi_text_size(text), &err) == OPI_OK, "%s", err.message);
    return r;
}

START_TEST(reads_back)
{
    size_t n;
    write_sample();
    opi__reader r = start();
    ck_assert_str_eq(opi__read_text(&r), "caf\xc3\xa9");
    ck_assert_uint_eq(opi__read_u32(&r), 0xdeadbeef);
    ck_assert_uint_eq(opi__read_u64(&r), 0x0123456789abcdefull);
    ck_assert_mem_eq(opi__read_array(&r, 1, 3, 3, &n), "abc", 3);
    ck_assert_mem_eq(opi__read_array(&r, 2, 0, 9, &n), shorts, sizeof shorts);
    ck_assert_uint_eq(n, 3);
    ck_assert_mem_eq(opi__read_array(&r, 4, 3, 3, &n), floats, sizeof floats);
    const double *d = opi__read_array(&r, 8, 8, 8, &n);
    ck_assert_mem_eq(d, doubles, sizeof doubles); /* -0, NaN and infinities too */
    ck_assert_uint_eq((uintptr_t)d % 8, 0);
    const wide *two = opi__read_array(&r, sizeof(wide), 2, 2, &n);
    ck_assert(two[0].a == 1.25 && two[1].a == -1 && two[1].b[2] == 6);
    ck_assert_ptr_null(opi__read_array(&r, 8, 0, 0, &n));
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(r.failed, 0); /* an empty array is no failure */
    double v = opi__read_f64(&r);
    ck_assert_mem_eq(&v, &doubles[2], 8);
    ck_assert_str_eq(opi__read_text(&r), "");
    ck_assert_uint_eq(opi__read_u32(&r), 7);
    ck_assert_int_eq(r.failed, 0);
    ck_assert_uint_eq(r.at, opi_text_size(text));
}
END_TEST

/* The layout that docs/model-format.md writes down, byte by byte. */
START_TEST(layout)
{
    static const unsigned char want[] = {
        0x89, 'O', 'P', 'I', 'M', '\r', '\n', '\n', 1, 0, 0, 0, 0, 0, 0, 0, 72, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, /* checksum, filled in below */
        3, 0, 0, 0, 0, 0, 0, 0, 'h', 'i', 0, 0, 5, 0, 0, 0, /* text "hi", a zero up to 4, 5 as u32 */
        1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, /* one u16, zeros up to 8 */
        0, 0, 0, 0, 0, 0, 0xf0, 0x3f};                        /* 1.0 */
    unsigned char expected[sizeof want];
    opi__writer w;
    opi__write_start(&w, ctx);
    opi__write_text(&w, "hi");
    opi__write_u32(&w, 5);
    opi__write_array(&w, &shorts[2], 1, 2);
    opi__write_f64(&w, 1);
    ck_assert_int_eq(opi__write_finish(&w, &text, &err), OPI_OK);
    memcpy(expected, want, sizeof want);
    uint64_t sum = opi__checksum64(expected + 32, sizeof want - 32);
    for (int i = 0; i < 8; i++)
        expected[24 + i] = (unsigned char)(sum >> 8 * i);
    ck_assert_uint_eq(opi_text_size(text), sizeof want);
    ck_assert_mem_eq(opi_text_data(text), expected, sizeof want);
}
END_TEST

static void fix(unsigned char *bytes, size_t size)
{
    uint64_t stated = size, sum = opi__checksum64(bytes + 32, size - 32);
    memcpy(bytes + 16, &stated, 8);
    memcpy(bytes + 24, &sum, 8);
}

static void header_refused(const void *bytes, size_t size, int32_t code, int64_t index, const char *word)
{
    opi__reader r = {0};
    memset(&err, 0, sizeof err);
    ck_assert_int_eq(opi__read_start(&r, bytes, size, &err), code);
    ck_assert_int_eq(err.code, code);
    ck_assert_int_eq(err.index, index);
    ck_assert_msg(strstr(err.message, word) != NULL, "\"%s\" lacks \"%s\"", err.message, word);
    ck_assert_ptr_null(r.bytes);
}

START_TEST(headers_refused)
{
    unsigned char *b;
    size_t n;
    write_sample();
    n = opi_text_size(text);
    b = malloc(n);
    memcpy(b, opi_text_data(text), n);
    for (size_t cut = 0; cut < 32; cut++)
        header_refused(b, cut, OPI_E_FORMAT, (int64_t)cut, "header");
    for (size_t cut = 32; cut < n; cut++)
        header_refused(b, cut, OPI_E_FORMAT, 16, "expected");
    for (int i = 0; i < 8; i++) {
        b[i] ^= 0x20;
        header_refused(b, n, OPI_E_FORMAT, 0, "not a model");
        b[i] ^= 0x20;
    }
    b[8] = 2;
    header_refused(b, n, OPI_E_VERSION, 8, "model format 2: this library reads 1 to 1");
    b[8] = 0;
    header_refused(b, n, OPI_E_VERSION, 8, "model format 0");
    b[8] = 1, b[11] = 1;
    header_refused(b, n, OPI_E_VERSION, 8, "16777217");
    b[11] = 0, b[13] = 1;
    header_refused(b, n, OPI_E_FORMAT, 12, "byte 12");
    b[13] = 0, b[23] = 0x80;
    header_refused(b, n, OPI_E_FORMAT, 16, "expected");
    b[23] = 0, b[24] ^= 1;
    header_refused(b, n, OPI_E_FORMAT, 24, "checksum");
    b[24] ^= 1, b[n - 1] ^= 0x80;
    header_refused(b, n, OPI_E_FORMAT, 24, "checksum");
    fix(b, n);
    opi__reader r;
    ck_assert_int_eq(opi__read_start(&r, b, n, NULL), OPI_OK);
    ck_assert_int_eq(opi__read_start(&r, b, n - 1, NULL), OPI_E_FORMAT); /* err may be NULL */
    free(b);
}
END_TEST

/* A block whose body is the given bytes. */
static opi__reader body(const void *bytes, size_t n)
{
    static unsigned char block[256];
    opi__reader r;
    memset(block, 0, sizeof block);
    memcpy(block, "\x89OPIM\r\n\n\1", 9);
    memcpy(block + 32, bytes, n);
    fix(block, 32 + n);
    ck_assert_int_eq(opi__read_start(&r, block, 32 + n, NULL), OPI_OK);
    return r;
}

START_TEST(counts_beyond_the_block)
{
    static const uint64_t counts[] = {
        3, 4, 1ull << 29, 1ull << 32, 1ull << 60, 1ull << 61, (1ull << 61) + 1, 1ull << 63, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t size = 1; size <= 64; size *= 2) {
            uint64_t words[3] = {counts[i], 0, 0}; /* 16 bytes behind the count */
            size_t n = 99;
            opi__reader r = body(words, sizeof words);
            const void *p = opi__read_array(&r, size, 0, SIZE_MAX, &n);
            int fits = counts[i] <= 16 / size;
            ck_assert_msg((p != NULL) == fits, "%llu elements of %zu bytes", (unsigned long long)counts[i], size);
            ck_assert_uint_eq(n, fits ? counts[i] : 0);
            ck_assert_int_eq(r.failed, !fits);
        }
}
END_TEST

START_TEST(counts_outside_the_limits)
{
    const uint64_t words[2] = {4, 0};
    size_t n;
    opi__reader r = body(words, sizeof words);
    ck_assert_ptr_nonnull(opi__read_array(&r, 1, 4, 4, &n));
    r = body(words, sizeof words);
    ck_assert_ptr_null(opi__read_array(&r, 1, 5, 9, &n));
    ck_assert_int_eq(r.failed, 1);
    r = body(words, sizeof words);
    ck_assert_ptr_null(opi__read_array(&r, 1, 0, 3, &n));
    ck_assert_int_eq(r.failed, 1);
}
END_TEST

/* A text ends with its only NUL, and its count says where. */
START_TEST(texts_refused)
{
    static const struct {
        unsigned char bytes[12];
        size_t size;
    } bad[] = {{{3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c'}, 11}, {{3, 0, 0, 0, 0, 0, 0, 0, 'a', 0, 0}, 11},
               {{0, 0, 0, 0, 0, 0, 0, 0}, 8},                 {{4, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 0}, 11},
               {{1, 0, 0, 0, 0, 0, 0}, 7}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        opi__reader r = body(bad[i].bytes, bad[i].size);
        ck_assert_str_eq(opi__read_text(&r), "");
        ck_assert_msg(r.failed, "text %zu was accepted", i);
    }
}
END_TEST

START_TEST(failure_stays)
{
    const uint64_t words[2] = {5, 0x1122334455667788ull};
    size_t n = 9;
    opi__reader r = body(words, sizeof words);
    opi__read_array(&r, 8, 0, 9, &n);
    ck_assert_int_eq(r.failed, 1);
    size_t at = r.at;
    ck_assert_uint_eq(opi__read_u32(&r), 0); /* the bytes are there, but a failed reader gives none of them */
    ck_assert_uint_eq(opi__read_u64(&r), 0);
    ck_assert_double_eq(opi__read_f64(&r), 0);
    ck_assert_str_eq(opi__read_text(&r), "");
    ck_assert_ptr_null(opi__read_array(&r, 1, 0, 9, &n));
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(r.failed, 1);
    ck_assert_int_eq(opi__read_error(&r, &err), OPI_E_FORMAT);
    ck_assert_int_eq(err.index, (int64_t)at);
    ck_assert(strstr(err.message, "out of bounds") != NULL);
}
END_TEST

/* ---- a whole model, walked as docs/model-format.md describes it ---- */

static uint32_t walk_forest(opi__reader *r)
{
    size_t roots, nodes, leaves;
    uint32_t features = opi__read_u32(r), numbers = opi__read_u32(r), outputs = opi__read_u32(r);
    ck_assert(features == OPI__FEATURES && numbers == OPI__NUMBERS);
    for (int i = 0; i < 4; i++)
        opi__read_f64(r);
    const uint32_t *root = opi__read_array(r, 4, 1, 99, &roots);
    opi__read_array(r, 8, 1, 9999, &nodes);
    opi__read_array(r, 4, 0, 9999, &leaves);
    ck_assert(root && root[0] == 0 && root[roots - 1] == nodes && leaves % outputs == 0 &&
              (leaves > 0) == (outputs > 1));
    return outputs;
}

static uint32_t walk_target(opi__reader *r, const size_t *names)
{
    size_t n, scores;
    uint32_t learned = opi__read_u32(r), rows = opi__read_u32(r), cells = opi__read_u32(r), campaigns = opi__read_u32(r);
    ck_assert(learned <= 1 && rows >= cells && cells >= campaigns);
    if (!learned)
        return 0;
    ck_assert_uint_eq(walk_forest(r), 1);
    ck_assert_uint_eq(walk_forest(r), 3);
    double share = opi__read_f64(r);
    ck_assert(share >= 0 && share <= 1);
    const unsigned char *groups = opi__read_array(r, 16, 1, 99, &n);
    opi__read_array(r, 4, 1, 9999, &scores);
    for (size_t i = 0; groups && i < n; i++) {
        uint32_t range[2];
        memcpy(range, groups + 16 * i + 8, 8);
        ck_assert(range[0] + range[1] <= scores);
    }
    opi__read_array(r, 32, 7, 7, &n);
    for (int c = 0; c < OPI__CATEGORIES; c++)
        opi__read_array(r, 1, names[c], names[c], &n);
    for (int k = 0; k < 5; k++)
        opi__read_array(r, 8, 1, 99, &n);
    return 1;
}

START_TEST(model_as_documented)
{
    opi_model *m = tiny_model(ctx);
    size_t names[OPI__CATEGORIES], n;
    uint32_t learned = 0;
    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(opi_model_save_memory(m, &text, NULL), OPI_OK);
    opi_model_free(m);
    opi__reader r = start();
    ck_assert_int_eq(opi__read_text(&r)[0], '{');
    ck_assert_str_eq(opi__read_text(&r), "boost");
    ck_assert_uint_eq(opi__read_u32(&r), opi_target_count());
    ck_assert_uint_eq(opi__read_u32(&r), OPI__CATEGORIES);
    ck_assert_uint_eq(opi__read_u32(&r), OPI__FEATURES);
    ck_assert_uint_eq(opi__read_u32(&r), 7);
    ck_assert_uint_eq(opi__read_u32(&r), 5);
    ck_assert_uint_ne(opi__read_u32(&r), 0); /* the encoding's fingerprint */
    for (int c = 0; c < OPI__CATEGORIES; c++) {
        const char *last = NULL;
        names[c] = opi__read_u32(&r);
        for (size_t i = 0; i < names[c]; i++) {
            const char *name = opi__read_text(&r);
            ck_assert(!last || strcmp(last, name) < 0);
            last = name;
        }
        opi__read_array(&r, 1, names[c], names[c], &n);
    }
    for (size_t t = 0; t < opi_target_count(); t++) {
        opi_target_info info = {.struct_size = sizeof info};
        ck_assert_int_eq(opi_target_at(t, &info, NULL), OPI_OK);
        ck_assert_str_eq(opi__read_text(&r), info.name);
        learned += walk_target(&r, names);
    }
    ck_assert_uint_eq(learned, 2);
    opi__read_array(&r, 44, 6, 6, &n);
    opi__read_array(&r, 8, 49, 49, &n);
    ck_assert(opi__read_f64(&r) > 0);
    ck_assert_int_eq(r.failed, 0);
    ck_assert_uint_eq(r.at, opi_text_size(text));
}
END_TEST

static void *no_memory(void *user, size_t size)
{
    (void)user, (void)size;
    return NULL;
}
static void *no_growth(void *user, void *memory, size_t size)
{
    (void)user, (void)memory, (void)size;
    return NULL;
}
static void nothing(void *user, void *memory) { (void)user, (void)memory; }

START_TEST(no_memory_is_an_error)
{
    opi_text *untouched = (opi_text *)&ctx, *out = untouched;
    opi_ctx broken = {.allocator = {NULL, no_memory, no_growth, nothing}};
    opi__writer w;
    opi__write_start(&w, &broken);
    opi__write_text(&w, "lost");
    opi__write_array(&w, doubles, 8, 8);
    ck_assert_int_eq(opi__write_finish(&w, &out, &err), OPI_E_NOMEM);
    ck_assert_ptr_eq(out, untouched);
}
END_TEST

Suite *suite_container(void)
{
    Suite *s = suite_create("container");
    TCase *t = tcase_create("container");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, reads_back);
    tcase_add_test(t, layout);
    tcase_add_test(t, headers_refused);
    tcase_add_test(t, counts_beyond_the_block);
    tcase_add_test(t, counts_outside_the_limits);
    tcase_add_test(t, texts_refused);
    tcase_add_test(t, failure_stays);
    tcase_add_test(t, model_as_documented);
    tcase_add_test(t, no_memory_is_an_error);
    suite_add_tcase(s, t);
    return s;
}
