/* SPDX-License-Identifier: Apache-2.0 */
/* Status, struct_size rule, memory, random numbers, hashes, context, threads. Files: test_base_file.c. */
#include "base/ctx.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/take.h"
#include "base/text.h"

#include <check.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* An allocator that counts, and refuses from the `fail_at`-th request on. */
typedef struct meter {
    int live, requests, fail_at;
} meter;

static void *meter_alloc(void *user, size_t n)
{
    meter *m = user;
    if (++m->requests >= m->fail_at && m->fail_at)
        return NULL;
    void *p = malloc(n);
    m->live += p != NULL;
    return p;
}

static void *meter_resize(void *user, void *p, size_t n)
{
    meter *m = user;
    ck_assert_ptr_nonnull(p); /* never asked to resize nothing */
    return ++m->requests >= m->fail_at && m->fail_at ? NULL : realloc(p, n);
}

static void meter_release(void *user, void *p)
{
    ck_assert_ptr_nonnull(p);
    ((meter *)user)->live--;
    free(p);
}

static opi_ctx *metered(meter *m)
{
    opi_ctx_options o = {sizeof o, 0, {m, meter_alloc, meter_resize, meter_release}, NULL, NULL};
    opi_ctx *ctx = NULL;
    ck_assert_int_eq(opi_ctx_create(&o, &ctx, NULL), OPI_OK);
    return ctx;
}

START_TEST(errors_are_one_line_of_utf8)
{
    opi_error e;
    ck_assert_uint_eq(sizeof e, 512);
    memset(&e, 0x55, sizeof e);
    ck_assert_int_eq(opi__fail(&e, OPI_E_RANGE, 7, "tp %d\nexceeds \xff %s", 9, "caf\xc3\xa9\x1b"), OPI_E_RANGE);
    ck_assert_int_eq(e.code, OPI_E_RANGE);
    ck_assert_int_eq(e.index, 7);
    ck_assert_int_eq(e.reserved, 0);
    ck_assert_str_eq(e.message, "tp 9 exceeds ? caf\xc3\xa9 ");
    ck_assert_int_eq(opi__fail(NULL, OPI_E_IO, -1, "%s", "x"), OPI_E_IO);
    opi__fail(&e, OPI_E_IO, -1, "[%s]", e.message); /* an argument inside the error itself */
    ck_assert_str_eq(e.message, "[tp 9 exceeds ? caf\xc3\xa9 ]");
    char longer[1000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    opi__fail(&e, OPI_E_IO, -1, "%s", longer);
    ck_assert_uint_eq(strlen(e.message), sizeof e.message - 1);
    ck_assert_int_eq(opi__fail_memory(&e, 123), OPI_E_NOMEM);
    ck_assert_ptr_nonnull(strstr(e.message, "123 bytes"));
    ck_assert_int_eq(opi__fail_memory(&e, 0), OPI_E_NOMEM);
    ck_assert_ptr_null(strstr(e.message, " 0 bytes"));
}
END_TEST

START_TEST(status_codes_have_names)
{
    ck_assert_str_eq(opi_status_name(OPI_OK), "OPI_OK");
    ck_assert_str_eq(opi_status_name(OPI_E_INVALID), "OPI_E_INVALID");
    ck_assert_str_eq(opi_status_name(OPI_E_RANGE), "OPI_E_RANGE");
    ck_assert_str_eq(opi_status_name(OPI_E_UNSUPPORTED), "OPI_E_UNSUPPORTED");
    ck_assert_str_eq(opi_status_name(OPI_E_INTERNAL), "OPI_E_INTERNAL");
    ck_assert_str_eq(opi_status_name(OPI_E_LOST), "OPI_E_LOST");
    ck_assert_str_eq(opi_status_name(OPI_E_LOST - 1), "OPI_E_?");
    ck_assert_str_eq(opi_status_name(1), "OPI_E_?");
    ck_assert_str_eq(opi_status_name(INT32_MIN), "OPI_E_?");
    char v[32];
    opi__format(v, sizeof v, "%d.%d.%d", OPI_VERSION_MAJOR, OPI_VERSION_MINOR, OPI_VERSION_PATCH);
    ck_assert_str_eq(opi_version(), v);
}
END_TEST

typedef struct grown {
    uint32_t struct_size, a;
    double b, c;
} grown;

START_TEST(takes_structs_of_every_age)
{
    opi_error e;
    struct {
        grown g;
        unsigned char tail[5000];
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.g = (grown){16, 5, 2.5, 3.5};
    grown got = {1, 1, 1.0, 1.0};
    ck_assert_int_eq(opi__take(&got, sizeof got, &newer, "grown", &e), OPI_OK); /* older: b is there, c is not */
    ck_assert(got.struct_size == sizeof got && got.a == 5 && got.b == 2.5 && got.c == 0.0);
    newer.g.struct_size = sizeof newer.g + 100;
    ck_assert_int_eq(opi__take(&got, sizeof got, &newer, "grown", &e), OPI_OK); /* newer, unused fields zero */
    ck_assert(got.struct_size == sizeof got && got.c == 3.5);
    newer.tail[99] = 1;
    got.a = 77;
    ck_assert_int_eq(opi__take(&got, sizeof got, &newer, "grown", &e), OPI_E_VERSION);
    ck_assert_int_eq(e.index, (int64_t)sizeof newer.g + 99);
    ck_assert_ptr_nonnull(strstr(e.message, "grown"));
    ck_assert_uint_eq(got.a, 77); /* untouched */
    newer.g.struct_size = sizeof newer.g + 99;
    ck_assert_int_eq(opi__take(&got, sizeof got, &newer, "grown", &e), OPI_OK); /* the set byte lies behind it */
    static const uint32_t bad[] = {0, 1, 7};
    for (int i = 0; i < 3; i++) {
        newer.g.struct_size = bad[i];
        ck_assert_int_eq(opi__take(&got, sizeof got, &newer, "grown", &e), OPI_E_INVALID);
    }
    newer.g.struct_size = 0xcdcdcdcdu; /* garbage: nothing so far behind it may be read */
    ck_assert_int_eq(opi__take(&got, sizeof got, &newer, "grown", &e), OPI_E_VERSION);
    ck_assert_int_eq(opi__take(&got, sizeof got, NULL, "grown", &e), OPI_E_INVALID);
    ck_assert_str_eq(e.message, "grown is NULL");
}
END_TEST

START_TEST(gives_structs_of_every_age)
{
    opi_error e;
    const grown made = {sizeof made, 5, 2.5, 3.5};
    grown old = {16, 0, 0.0, -1.0};
    ck_assert_int_eq(opi__give(&old, &made, sizeof made, "grown", &e), OPI_OK);
    ck_assert(old.struct_size == 16 && old.a == 5 && old.b == 2.5 && old.c == -1.0);
    struct {
        grown g;
        double tail;
    } newer = {{sizeof newer, 0, 0.0, 0.0}, -1.0};
    ck_assert_int_eq(opi__give(&newer, &made, sizeof made, "grown", &e), OPI_OK);
    ck_assert(newer.g.struct_size == sizeof newer && newer.g.c == 3.5 && newer.tail == -1.0);
    old.struct_size = 0;
    ck_assert_int_eq(opi__give(&old, &made, sizeof made, "grown", &e), OPI_E_INVALID);
    ck_assert_int_eq(opi__give(NULL, &made, sizeof made, "grown", &e), OPI_E_INVALID);
}
END_TEST

START_TEST(memory_goes_through_the_context)
{
    meter m = {0, 0, 0};
    opi_ctx *ctx = metered(&m);
    ck_assert_int_eq(m.live, 1);
    void *none = opi__alloc(ctx, 0, 8);
    ck_assert_ptr_nonnull(none);
    unsigned char *z = opi__zalloc(ctx, 100, 3);
    for (int i = 0; i < 300; i++)
        ck_assert_int_eq(z[i], 0);
    ck_assert_int_eq(m.live, 3);
    z = opi__resize(ctx, z, 1000, 3);
    char *fresh = opi__resize(ctx, NULL, 10, 1);
    ck_assert_int_eq(m.live, 4);
    int before = m.requests;
    ck_assert_ptr_null(opi__alloc(ctx, SIZE_MAX / 2, 3)); /* would wrap: not even asked for */
    ck_assert_ptr_null(opi__zalloc(ctx, SIZE_MAX, SIZE_MAX));
    ck_assert_ptr_null(opi__resize(ctx, z, SIZE_MAX / 4, 8));
    ck_assert_ptr_null(opi__alloc(NULL, SIZE_MAX / 2, 3));
    ck_assert_ptr_null(opi__zalloc(NULL, SIZE_MAX / 2, 3));
    ck_assert_int_eq(m.requests, before);
    opi__free(ctx, NULL);
    opi__free(ctx, fresh);
    opi__free(ctx, z);
    opi__free(ctx, none);
    opi_ctx_destroy(ctx);
    ck_assert_int_eq(m.live, 0);
    opi_ctx_destroy(NULL);
}
END_TEST

START_TEST(arena_gives_aligned_zeroed_pieces)
{
    meter m = {0, 0, 0};
    opi_ctx *ctx = metered(&m);
    opi__arena a;
    opi__arena_init(&a, ctx);
    enum { N = 3000 };
    static unsigned char *piece[N];
    static size_t size[N];
    for (int i = 0; i < N; i++) {
        size[i] = i % 500 == 499 ? 100000 + (size_t)i : (size_t)(i * 7 % 131);
        piece[i] = opi__arena_alloc(&a, size[i]);
        ck_assert_ptr_nonnull(piece[i]);
        ck_assert_uint_eq((uintptr_t)piece[i] % 16, 0);
        for (size_t k = 0; k < size[i]; k++)
            ck_assert_int_eq(piece[i][k], 0);
        memset(piece[i], i & 255, size[i]);
    }
    for (int i = 0; i < N; i++)
        for (size_t k = 0; k < size[i]; k++)
            ck_assert_int_eq(piece[i][k], i & 255); /* no two overlap */
    ck_assert_int_lt(m.requests, 30);
    ck_assert_str_eq(opi__arena_text(&a, "abcdef", 3), "abc");
    ck_assert_str_eq(opi__arena_text(&a, NULL, 0), "");
    ck_assert_ptr_null(opi__arena_alloc(&a, SIZE_MAX));
    ck_assert_ptr_null(opi__arena_alloc(&a, (size_t)PTRDIFF_MAX - 20));
    m.fail_at = 1;
    ck_assert_ptr_null(opi__arena_alloc(&a, 200000));
    opi__arena_free(&a);
    ck_assert_int_eq(m.live, 1);
    opi_ctx_destroy(ctx);
}
END_TEST

START_TEST(buffer_grows_and_stays_failed)
{
    meter m = {0, 0, 0};
    opi_ctx *ctx = metered(&m);
    opi__buf b;
    opi__buf_init(&b, ctx);
    for (int i = 0; i < 1000; i++)
        opi__buf_format(&b, "%d,", i);
    opi__buf_puts(&b, "end");
    opi__buf_put(&b, "\0x", 2);
    opi_text *t = NULL;
    ck_assert_int_eq(opi__buf_text(&b, &t, NULL), OPI_OK);
    ck_assert_uint_eq(opi_text_size(t), 10 * 2 + 90 * 3 + 900 * 4 + 5);
    ck_assert_int_eq(strncmp(opi_text_data(t), "0,1,2,3,", 8), 0);
    ck_assert_str_eq(opi_text_data(t) + opi_text_size(t) - 5, "end");
    ck_assert_int_eq(opi_text_data(t)[opi_text_size(t)], 0);
    opi_text_free(t);
    ck_assert_int_eq(m.live, 1); /* the buffer's memory went with it */
    ck_assert_int_eq(opi__buf_text(&b, &t, NULL), OPI_OK); /* empty again */
    ck_assert_str_eq(opi_text_data(t), "");
    opi_text_free(t);

    opi__buf_puts(&b, "kept");
    m.fail_at = m.requests + 1;
    opi__buf_format(&b, "%200d", 1);
    m.fail_at = 0;
    opi__buf_puts(&b, "ignored");
    ck_assert_int_eq(b.status, OPI_E_NOMEM);
    ck_assert_str_eq(b.data, "kept");
    t = NULL;
    opi_error e;
    ck_assert_int_eq(opi__buf_text(&b, &t, &e), OPI_E_NOMEM);
    ck_assert_ptr_null(t);
    ck_assert_int_eq(m.live, 1);
    ck_assert_str_eq(opi_text_data(NULL), "");
    ck_assert_uint_eq(opi_text_size(NULL), 0);
    opi_text_free(NULL);
    opi_ctx_destroy(ctx);
}
END_TEST

static char logged[2000];
static void keep_line(void *user, int32_t level, const char *line)
{
    opi__format(logged, sizeof logged, "%s%d:%s", (const char *)user, level, line);
}

START_TEST(context_checks_its_options_and_logs_lines)
{
    opi_error e;
    opi_ctx *ctx = NULL;
    meter m = {0, 0, 1};
    opi_ctx_options o = {sizeof o, 0, {&m, meter_alloc, meter_resize, meter_release}, NULL, NULL};
    ck_assert_int_eq(opi_ctx_create(&o, &ctx, &e), OPI_E_NOMEM);
    o.allocator.resize = NULL;
    ck_assert_int_eq(opi_ctx_create(&o, &ctx, &e), OPI_E_INVALID);
    o.struct_size = 0;
    ck_assert_int_eq(opi_ctx_create(&o, &ctx, &e), OPI_E_INVALID);
    ck_assert_int_eq(opi_ctx_create(NULL, NULL, &e), OPI_E_INVALID);
    ck_assert_ptr_null(ctx);
    char who[] = "me";
    opi_ctx_options with_log = {sizeof o, 0, {NULL, NULL, NULL, NULL}, keep_line, who};
    ck_assert_int_eq(opi_ctx_create(&with_log, &ctx, &e), OPI_OK);
    opi__log(ctx, OPI_LOG_WARNING, "row %d\nof %s", 3, "x");
    ck_assert_str_eq(logged, "me2:row 3 of x");
    opi_ctx_destroy(ctx);
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, &e), OPI_OK);
    opi__log(ctx, OPI_LOG_WARNING, "nobody listens");
    opi__log(NULL, OPI_LOG_WARNING, "nobody at all");
    ck_assert_str_eq(logged, "me2:row 3 of x");
    opi_ctx_destroy(ctx);
}
END_TEST

START_TEST(random_numbers_are_the_published_generator)
{
    opi__rng r;
    opi__rng_seed(&r, 1234567); /* splitmix64's published sequence */
    ck_assert(r.s[0] == 6457827717110365317ull && r.s[1] == 3203168211198807973ull);
    ck_assert(r.s[2] == 9817491932198370423ull && r.s[3] == 4593380528125082431ull);
    opi__rng known = {{1, 2, 3, 4}};
    static const uint64_t want[] = {11520, 0, 1509978240, 1215971899390074240ull};
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(opi__rng_next(&known), want[i]);
}
END_TEST

START_TEST(random_numbers_have_their_distributions)
{
    opi__rng r;
    opi__rng_seed(&r, 5);
    enum { N = 200000 };
    double sum = 0.0, square = 0.0, tail = 0.0, uniform = 0.0;
    int counts[7] = {0};
    for (int i = 0; i < N; i++) {
        double z = opi__rng_normal(&r), u = opi__rng_uniform(&r);
        ck_assert(u >= 0.0 && u < 1.0);
        sum += z;
        square += z * z;
        tail += fabs(z) > 1.959963984540054;
        uniform += u;
        uint64_t k = opi__rng_below(&r, 7);
        ck_assert_uint_lt(k, 7);
        counts[k]++;
    }
    /* Five standard errors each. */
    ck_assert_double_lt(fabs(sum / N), 5.0 / sqrt(N));
    ck_assert_double_lt(fabs(square / N - 1.0), 5.0 * sqrt(2.0 / N));
    ck_assert_double_lt(fabs(tail / N - 0.05), 5.0 * sqrt(0.05 * 0.95 / N));
    ck_assert_double_lt(fabs(uniform / N - 0.5), 5.0 * sqrt(1.0 / 12.0 / N));
    for (int k = 0; k < 7; k++)
        ck_assert_double_lt(fabs(counts[k] - N / 7.0), 5.0 * sqrt(N * 6.0 / 49.0));
    /* A modulus that nearly halves the range shows bias at once: 1/3 of plain remainders would fall below 2^62. */
    int low = 0;
    for (int i = 0; i < N; i++)
        low += opi__rng_below(&r, 3ull << 62) < 1ull << 62;
    ck_assert_double_lt(fabs((double)low / N - 1.0 / 3.0), 5.0 * sqrt(2.0 / 9.0 / N));
    ck_assert_uint_eq(opi__rng_below(&r, 1), 0);
}
END_TEST

START_TEST(shuffles_are_fair_permutations)
{
    opi__rng r;
    opi__rng_seed(&r, 6);
    int counts[4][4] = {{0}};
    for (int i = 0; i < 40000; i++) {
        uint32_t v[4] = {0, 1, 2, 3}, seen = 0;
        opi__rng_shuffle(&r, v, 4);
        for (int k = 0; k < 4; k++) {
            seen |= 1u << v[k];
            counts[k][v[k]]++;
        }
        ck_assert_uint_eq(seen, 15);
    }
    for (int i = 0; i < 16; i++)
        ck_assert_double_lt(fabs(counts[i / 4][i % 4] - 10000.0), 5.0 * sqrt(40000 * 3.0 / 16.0));
    opi__rng_shuffle(&r, NULL, 0);
}
END_TEST

START_TEST(fnv_is_the_published_hash)
{
    ck_assert_uint_eq(opi__fnv1a64(OPI__FNV_START, "", 0), 0xcbf29ce484222325ull);
    ck_assert_uint_eq(opi__fnv1a64(OPI__FNV_START, "a", 1), 0xaf63dc4c8601ec8cull);
    ck_assert_uint_eq(opi__fnv1a64(OPI__FNV_START, "foobar", 6), 0x85944171f73967e8ull);
    ck_assert_uint_eq(opi__fnv1a64(opi__fnv1a64(OPI__FNV_START, "foo", 3), "bar", 3), 0x85944171f73967e8ull);
    static const char cell[] = "lab|org/model-7b|chat|128|64|8|concurrency|"; /* the text a fold is made of */
    ck_assert_uint_eq(opi__fnv1a64(OPI__FNV_START, cell, sizeof cell - 1), 0x9cc4fab0649a23c2ull);
}
END_TEST

START_TEST(checksum_is_stable_and_sees_every_flipped_bit)
{
    unsigned char b[256];
    for (int i = 0; i < 256; i++)
        b[i] = (unsigned char)i;
    /* Computed by a second implementation from the description; files depend on them. */
    ck_assert_uint_eq(opi__checksum64("", 0), 0xff1e5c4b4855ac17ull);
    ck_assert_uint_eq(opi__checksum64("a", 1), 0xed15215ce3148cfbull);
    ck_assert_uint_eq(opi__checksum64("The quick brown fox jumps over the lazy dog", 43), 0x857187a30cc5c039ull);
    ck_assert_uint_eq(opi__checksum64(b, 256), 0x12c92cb4605b7f91ull);
    uint64_t whole = opi__checksum64(b, 250);
    for (int bit = 0; bit < 2000; bit++) {
        b[bit / 8] ^= (unsigned char)(1u << bit % 8);
        ck_assert_uint_ne(opi__checksum64(b, 250), whole);
        b[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (size_t n = 0; n < 250; n++) {
        ck_assert_uint_ne(opi__checksum64(b, n), whole); /* truncated */
        unsigned char zero[300] = {0};
        ck_assert_uint_ne(opi__checksum64(zero, n), opi__checksum64(zero, n + 1));
    }
}
END_TEST

static void check_sha(const void *bytes, size_t n, const char *want)
{
    char hex[65];
    opi__sha256_hex(bytes, n, hex);
    ck_assert_str_eq(hex, want);
}

START_TEST(sha256_is_fips_180_4)
{
    check_sha("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sha("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    static char x[1000000];
    memset(x, 'a', sizeof x);
    check_sha(x, sizeof x, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    memset(x, 'x', sizeof x); /* the lengths around the padding's edges */
    check_sha(x, 55, "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
    check_sha(x, 56, "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
    check_sha(x, 63, "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2");
    check_sha(x, 64, "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
    check_sha(x, 65, "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9");
    check_sha(x, 119, "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c");
    check_sha(x, 120, "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98");
    check_sha(x, 128, "24da1b81d0b16df6428eee73c69fcb2a93c76bc6df706f0c6670fe6bfe800464");
}
END_TEST

static atomic_int visits[1000];
static void visit(void *user, size_t i)
{
    atomic_fetch_add(&visits[i], *(int *)user);
}

START_TEST(parallel_visits_everything_once)
{
    static const int32_t threads[] = {-1, 0, 1, 2, 3, 16, 5000};
    int one = 1, runs = 0;
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        opi__parallel(threads[t], 1000, visit, &one);
        runs++;
        for (int i = 0; i < 1000; i++)
            ck_assert_int_eq(atomic_load(&visits[i]), runs);
    }
    opi__parallel(8, 0, visit, &one);
    ck_assert_int_eq(atomic_load(&visits[0]), runs);
    opi__parallel(8, 1, visit, &one);
    ck_assert_int_eq(atomic_load(&visits[0]), runs + 1);
    ck_assert_int_eq(atomic_load(&visits[1]), runs);
    ck_assert_int_ge(opi__cores(), 1);
}
END_TEST

Suite *suite_base_core(void);
Suite *suite_base_core(void)
{
    Suite *s = suite_create("base_core");
    TCase *core = tcase_create("core"), *numbers = tcase_create("numbers");
    tcase_set_timeout(core, 60);
    tcase_set_timeout(numbers, 60);
    tcase_add_test(core, errors_are_one_line_of_utf8);
    tcase_add_test(core, status_codes_have_names);
    tcase_add_test(core, takes_structs_of_every_age);
    tcase_add_test(core, gives_structs_of_every_age);
    tcase_add_test(core, memory_goes_through_the_context);
    tcase_add_test(core, arena_gives_aligned_zeroed_pieces);
    tcase_add_test(core, buffer_grows_and_stays_failed);
    tcase_add_test(core, context_checks_its_options_and_logs_lines);
    tcase_add_test(core, parallel_visits_everything_once);
    tcase_add_test(numbers, random_numbers_are_the_published_generator);
    tcase_add_test(numbers, random_numbers_have_their_distributions);
    tcase_add_test(numbers, shuffles_are_fair_permutations);
    tcase_add_test(numbers, fnv_is_the_published_hash);
    tcase_add_test(numbers, checksum_is_stable_and_sees_every_flipped_bit);
    tcase_add_test(numbers, sha256_is_fips_180_4);
    suite_add_tcase(s, core);
    suite_add_tcase(s, numbers);
    return s;
}
