/* SPDX-License-Identifier: Apache-2.0 */
/* Saving and loading: the same bytes, and no damaged file that is believed or crashes. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tiny_model.h"

Suite *suite_model_io(void);

static const world small = {.targets = 1, .hardware = 2};

static opi_ctx *ctx;
static opi_table *table;
static opi_model *fitted; /* on `small`, seed 1, one thread; made once */
static opi_text *bytes;   /* of it */
static opi_error err;

#define UNTOUCHED ((void *)&ctx)

static opi_text *saved(const opi_model *m)
{
    opi_text *text = NULL;
    ck_assert_msg(opi_model_save_memory(m, &text, &err) == OPI_OK, "%s", err.message);
    return text;
}

static opi_model *loaded(const void *data, size_t size)
{
    opi_model *m = NULL;
    ck_assert_msg(opi_model_load_memory(ctx, data, size, &m, &err) == OPI_OK, "%s", err.message);
    return m;
}

static void once(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
    table = world_table(ctx, &small);
    ck_assert_ptr_nonnull(table);
    const opi_fit_options o = {.struct_size = sizeof o, .seed = 1, .learner = "boost"};
    ck_assert_int_eq(opi_model_fit(ctx, table, &o, &fitted, &err), OPI_OK);
    bytes = saved(fitted);
}

static void done(void)
{
    opi_text_free(bytes);
    opi_model_free(fitted);
    opi_table_free(table);
    opi_ctx_destroy(ctx);
}

static void same_text(const opi_text *a, const opi_text *b)
{
    ck_assert_uint_eq(opi_text_size(a), opi_text_size(b));
    ck_assert_mem_eq(opi_text_data(a), opi_text_data(b), opi_text_size(a));
}

/* Every number the model says about a few configurations, as bytes. */
static size_t answers(const opi_model *m, opi_prediction *out)
{
    opi_gpu gpu;
    opi_llm llm;
    opi_config c[3];
    c[0] = c[1] = c[2] = world_config(&gpu, &llm);
    c[1].concurrency = 40;
    c[2].engine = "sglang", c[2].precision = "fp8";
    memset(out, 0, 3 * OPI__T_COUNT * sizeof *out);
    ck_assert_int_eq(opi_predict(m, c, 3, NULL, out, sizeof *out, NULL), OPI_OK);
    return 3 * OPI__T_COUNT * sizeof *out;
}

/* ---- save and load ---- */

START_TEST(save_load_save)
{
    opi_prediction a[3 * OPI__T_COUNT], b[3 * OPI__T_COUNT];
    opi_model *again = loaded(opi_text_data(bytes), opi_text_size(bytes));
    opi_text *text = saved(again);
    size_t n = answers(fitted, a);
    same_text(bytes, text);
    answers(again, b);
    ck_assert_mem_eq(a, b, n); /* bit for bit */
    ck_assert_uint_eq(again->bytes, opi_text_size(bytes));
    opi_text_free(text);
    opi_model_free(again);
}
END_TEST

/* Bytes are copied: the caller may change or free his. An odd address is as good as any. */
START_TEST(load_copies)
{
    opi_prediction a[3 * OPI__T_COUNT], b[3 * OPI__T_COUNT];
    size_t size = opi_text_size(bytes), n = answers(fitted, a);
    char *copy = malloc(size + 1);
    memcpy(copy + 1, opi_text_data(bytes), size);
    opi_model *m = loaded(copy + 1, size);
    memset(copy, 0xee, size + 1);
    free(copy);
    answers(m, b);
    ck_assert_mem_eq(a, b, n);
    opi_model_free(m);
}
END_TEST

static int load_status(const void *data, size_t size)
{
    opi_model *m = UNTOUCHED;
    memset(&err, 0, sizeof err);
    int32_t status = opi_model_load_memory(ctx, data, size, &m, &err);
    if (status == OPI_OK) {
        opi_model_free(m);
        return status;
    }
    ck_assert_ptr_eq(m, UNTOUCHED);
    ck_assert_int_eq(err.code, status);
    ck_assert_msg(err.message[0] && !strchr(err.message, '\n'), "\"%s\"", err.message);
    return status;
}

START_TEST(foreign_files)
{
    static const char *const foreign[] = {"",
                                          "\x7f"
                                          "ELF\2\1\1",
                                          "\x89PNG\r\n\x1a\n a picture of at least thirty-two bytes",
                                          "PK\3\4 an archive of at least thirty-two bytes",
                                          "{\"learner\": \"boost\", \"manifest\": {\"seed\": 1}}",
                                          "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        ck_assert_int_eq(load_status(foreign[i], strlen(foreign[i])), OPI_E_FORMAT);
        ck_assert_msg(strstr(err.message, "not a model") != NULL, "%s", err.message);
    }
    ck_assert_int_eq(load_status(opi_text_data(bytes) + 1, opi_text_size(bytes) - 1), OPI_E_FORMAT);
    ck_assert_int_eq(load_status(NULL, 0), OPI_E_INVALID);
    ck_assert_int_eq(opi_model_load_memory(NULL, "x", 1, &(opi_model *){NULL}, NULL), OPI_E_INVALID);
    ck_assert_int_eq(opi_model_load_memory(ctx, "x", 1, NULL, NULL), OPI_E_INVALID);
    ck_assert_int_eq(load_status("x", (size_t)1 << 40), OPI_E_RANGE); /* not read */
}
END_TEST

START_TEST(newer_files)
{
    size_t size = opi_text_size(bytes);
    unsigned char *copy = malloc(size);
    memcpy(copy, opi_text_data(bytes), size);
    copy[8] = OPI__FORMAT_VERSION + 1;
    ck_assert_int_eq(load_status(copy, size), OPI_E_VERSION);
    ck_assert_int_eq(err.index, 8);
    ck_assert_msg(strstr(err.message, "model format 2") != NULL, "%s", err.message);
    free(copy);
    /* A learner, each size of the schema, and an encoding of features that this library has not. */
    for (uint32_t field = 0; field < 7; field++) {
        const uint32_t shape[] = {OPI__T_COUNT, OPI__CATEGORIES, OPI__FEATURES, OPI__ENVELOPE, OPI__PAIR_KINDS, 12345};
        opi__writer w;
        opi_text *text = NULL;
        opi__write_start(&w, ctx);
        opi__write_text(&w, "{}");
        opi__write_text(&w, field == 0 ? "oracle" : "boost");
        for (uint32_t i = 0; i < 6; i++)
            opi__write_u32(&w, shape[i] + (i + 1 == field));
        ck_assert_int_eq(opi__write_finish(&w, &text, NULL), OPI_OK);
        ck_assert_int_eq(load_status(opi_text_data(text), opi_text_size(text)), OPI_E_VERSION);
        ck_assert_msg(strstr(err.message, field ? "this library has" : "oracle") != NULL, "%s", err.message);
        opi_text_free(text);
    }
}
END_TEST

/* ---- damage, on a complete model of a few kilobytes ---- */

static unsigned char *tiny_bytes(size_t *size)
{
    opi_model *m = tiny_model(ctx);
    ck_assert_ptr_nonnull(m);
    opi_text *text = saved(m);
    unsigned char *copy = malloc(opi_text_size(text));
    *size = opi_text_size(text);
    memcpy(copy, opi_text_data(text), *size);
    opi_text_free(text);
    opi_model_free(m);
    ck_assert_int_eq(load_status(copy, *size), OPI_OK);
    return copy;
}

START_TEST(truncated_anywhere)
{
    size_t size;
    unsigned char *copy = tiny_bytes(&size), *cut = malloc(size + 64);
    for (size_t n = 0; n < size; n++) {
        unsigned char *exact = malloc(n ? n : 1); /* of the exact size: a sanitizer sees what lies beyond */
        memcpy(exact, copy, n);
        ck_assert_int_eq(load_status(exact, n), OPI_E_FORMAT);
        if (n >= OPI__HEADER_BYTES) { /* as if it had been written that way */
            tiny_fix(exact, n);
            ck_assert_msg(load_status(exact, n) == OPI_E_FORMAT, "cut after %zu of %zu bytes", n, size);
        }
        free(exact);
    }
    memset(cut, 0, size + 64);
    memcpy(cut, copy, size);
    for (size_t more = 1; more <= 64; more++) { /* bytes behind the end */
        tiny_fix(cut, size + more);
        ck_assert_int_eq(load_status(cut, size + more), OPI_E_FORMAT);
    }
    free(cut);
    free(copy);
}
END_TEST

static void use(const opi_model *m)
{
    opi_gpu gpu;
    opi_llm llm;
    opi_config c = world_config(&gpu, &llm);
    opi_prediction p[OPI__T_COUNT];
    opi_support support = {.struct_size = sizeof support};
    char reason[300];
    double exceed;
    opi_text *text = NULL;
    ck_assert_int_eq(opi_predict(m, &c, 1, NULL, p, sizeof *p, NULL), OPI_OK);
    for (size_t t = 0; t < OPI__T_COUNT; t++) {
        ck_assert(p[t].status >= OPI_P_OK && p[t].status <= OPI_P_ERROR);
        opi_predict_reason(m, &c, &p[t], reason, sizeof reason);
    }
    ck_assert_int_eq(opi_predict_exceed(m, &c, OPI__T_OUT_TOK_S, 100, &exceed, NULL), OPI_OK);
    ck_assert_int_eq(opi_predict_support(m, &c, OPI__T_OUT_TOK_S, &support, NULL), OPI_OK);
    int32_t status = opi_model_inspect(m, &text, NULL); /* a manifest that is no JSON is an error here */
    ck_assert(status == OPI_OK || status == OPI_E_FORMAT);
    opi_text_free(text);
    text = NULL;
    ck_assert_int_eq(opi_model_save_memory(m, &text, NULL), OPI_OK);
    opi_text_free(text);
}

/* As found on a bad disk: the checksum says no, whichever bit it is. Then as written by an enemy: with a checksum
 * that fits, the structure decides, and what it lets through can be used without harm. */
START_TEST(every_bit_flipped)
{
    size_t size, refused = 0, accepted = 0;
    unsigned char *copy = tiny_bytes(&size);
    for (size_t at = 0; at < size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            copy[at] ^= (unsigned char)(1 << bit);
            ck_assert_msg(load_status(copy, size) != OPI_OK, "bit %d of byte %zu", bit, at);
            copy[at] ^= (unsigned char)(1 << bit);
        }
        for (int bit = 0; bit < 8 && at >= OPI__HEADER_BYTES; bit++) {
            opi_model *m = NULL;
            copy[at] ^= (unsigned char)(1 << bit);
            tiny_fix(copy, size);
            int32_t status = opi_model_load_memory(ctx, copy, size, &m, NULL);
            ck_assert(status == OPI_OK || status == OPI_E_FORMAT || status == OPI_E_VERSION);
            if (m)
                use(m);
            opi_model_free(m);
            refused += status != OPI_OK;
            accepted += status == OPI_OK;
            copy[at] ^= (unsigned char)(1 << bit);
        }
        tiny_fix(copy, size);
    }
    ck_assert_msg(refused > size && accepted > size, "%zu refused, %zu accepted", refused, accepted);
    free(copy);
}
END_TEST

/* Written by an enemy who can save: a field of the structure is wrong, everything else is right. */
enum { DAMAGES = 34 };
static void damage(opi_model *m, int kind)
{
    opi__target_model *g = &m->target[OPI__T_OUT_TOK_S];
    opi__names *names = &m->names[OPI__C_GPU];
    const char *name = names->name[0];
    switch (kind) {
    case 0: g->learned = 2; break;
    case 1: g->group[0].count = 41; break;
    case 2: g->group[1].first = 41; break;
    case 3: /* one score past the end, where the bytes behind would pass as a score */
        for (int i = 30; i < 40; i++)
            g->score[i] = -1;
        g->group[2].count = 11;
        break;
    case 4: g->group[2].first = UINT32_MAX; break;
    case 5: g->group[0].count = 0; break;
    case 6: g->group[1].key = g->group[0].key; break;
    case 7: g->group[0].key = UINT64_MAX; break;
    case 8: g->score[3] = g->score[4] + 1; break;
    case 9: g->score[0] = NAN; break;
    case 10: g->score[9] = INFINITY; break;
    case 11: g->score[0] = -INFINITY; break;
    case 12: g->range[2].slack = 0; break;
    case 13: g->range[2].slack = NAN; break;
    case 14: g->range[2].lo = g->range[2].hi + 1; break;
    case 15: g->range[2].hi = NAN; break;
    case 16: g->head_share = 1.5; break;
    case 17: g->head_share = NAN; break;
    case 18: g->head.n_features--; break;
    case 19: g->head.n_out = 1; break;
    case 20: g->head.leaf[0] = NAN; break;
    case 21: g->head.base[1] = INFINITY; break;
    case 22: g->head.node[0].feature = OPI__FEATURES; break;
    case 23: g->head.node[0].right = 0x7000; break;
    case 24: g->head.n_numbers = OPI__FEATURES + 1; break;
    case 25: m->anchor[0].model = (uint16_t)m->names[OPI__C_MODEL].n; break;
    case 26: m->anchor[5].code[4] = (uint16_t)m->names[opi__seen_axes[4]].n; break;
    case 27: m->whiten[0] = 0; break;
    case 28: m->whiten[OPI__ENVELOPE * OPI__ENVELOPE - 1] = NAN; break;
    case 29: m->spacing = 0; break;
    case 30: m->spacing = INFINITY; break;
    case 31: names->name[0] = names->name[1], names->name[1] = name; break;
    case 32: g->head.root[1] = g->head.n_nodes; break;
    default: ((opi__forest *)g->state)->n_out = 3; break; /* the learner's own forest comes first in its state */
    }
}

START_TEST(every_field_is_checked)
{
    for (int kind = 0; kind < DAMAGES; kind++) {
        opi_model *m = tiny_model(ctx);
        ck_assert_ptr_nonnull(m);
        damage(m, kind);
        opi_text *text = saved(m);
        ck_assert_msg(load_status(opi_text_data(text), opi_text_size(text)) == OPI_E_FORMAT, "damage %d was accepted",
                      kind);
        opi_text_free(text);
        m->target[OPI__T_OUT_TOK_S].learned = 1;
        opi_model_free(m);
    }
}
END_TEST

/* A hostile count must not become an allocation: nothing larger than the file and a model's fixed parts is asked
 * for. */
static size_t largest;
static void *metered(void *user, size_t size)
{
    (void)user;
    largest = size > largest ? size : largest;
    return malloc(size);
}
static void *metered_again(void *user, void *memory, size_t size)
{
    (void)user;
    largest = size > largest ? size : largest;
    return realloc(memory, size);
}
static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

START_TEST(no_count_becomes_an_allocation)
{
    const opi_ctx_options o = {.struct_size = sizeof o, .allocator = {NULL, metered, metered_again, release}};
    opi_ctx *mine = NULL;
    opi_model *m = NULL;
    size_t size;
    unsigned char *copy = tiny_bytes(&size), keep[8];
    ck_assert_int_eq(opi_ctx_create(&o, &mine, NULL), OPI_OK);
    for (size_t at = OPI__HEADER_BYTES; at + 4 <= size; at += 4)
        for (int k = 0; k < 4; k++) {
            const uint64_t huge[] = {UINT32_MAX, 60000, UINT64_MAX, (uint64_t)1 << 40};
            size_t width = k < 2 || at + 8 > size ? 4 : 8;
            memcpy(keep, copy + at, width);
            memcpy(copy + at, &huge[k], width);
            tiny_fix(copy, size);
            if (opi_model_load_memory(mine, copy, size, &m, NULL) == OPI_OK)
                opi_model_free(m);
            memcpy(copy + at, keep, width);
        }
    ck_assert_msg(largest <= size + sizeof(opi_model) + 1024, "%zu bytes asked for at once", largest);
    ck_assert(largest > 1000);
    opi_ctx_destroy(mine);
    free(copy);
}
END_TEST

/* ---- files ---- */

static char folder[64], path[96];

static void make_folder(void)
{
    strcpy(folder, "/tmp/omnipilot-model-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.opi", folder);
}

static size_t read_back(const char *name, char *into, size_t most)
{
    FILE *f = fopen(name, "rb");
    size_t n = f ? fread(into, 1, most, f) : 0;
    if (f)
        fclose(f);
    return n;
}

static void old_file_is_intact(void)
{
    char now[32];
    ck_assert_uint_eq(read_back(path, now, sizeof now), 8);
    ck_assert_mem_eq(now, "old file", 8);
    ck_assert_int_eq(remove(path), 0);
    ck_assert_msg(rmdir(folder) == 0, "a temporary file stayed in %s", folder);
}

static void old_file(void)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite("old file", 1, 8, f), 8);
    fclose(f);
}

START_TEST(file_round_trip)
{
    opi_model *m = NULL;
    make_folder();
    old_file();
    ck_assert_msg(opi_model_save_file(fitted, path, &err) == OPI_OK, "%s", err.message);
    ck_assert_msg(opi_model_load_file(ctx, path, &m, &err) == OPI_OK, "%s", err.message);
    opi_text *text = saved(m);
    same_text(bytes, text);
    opi_text_free(text);
    opi_model_free(m);
    remove(path);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else lies there */
    m = UNTOUCHED;
    ck_assert_int_eq(opi_model_load_file(ctx, path, &m, &err), OPI_E_IO);
    ck_assert_msg(strstr(err.message, path) != NULL, "%s", err.message);
    ck_assert_int_eq(opi_model_load_file(ctx, "/tmp", &m, &err), OPI_E_IO);
    ck_assert_int_eq(opi_model_load_file(ctx, NULL, &m, &err), OPI_E_INVALID);
    ck_assert_ptr_eq(m, UNTOUCHED);
    ck_assert_int_eq(opi_model_save_file(fitted, path, &err), OPI_E_IO); /* its folder is gone */
    ck_assert_int_eq(opi_model_save_file(fitted, NULL, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_model_save_file(NULL, path, &err), OPI_E_INVALID);
}
END_TEST

START_TEST(unwritable_folder)
{
    make_folder();
    old_file();
    ck_assert_int_eq(chmod(folder, 0555), 0);
    int root = geteuid() == 0;
    if (root) /* whom no mode stops: become nobody */
        ck_assert_int_eq(seteuid(65534), 0);
    int32_t status = opi_model_save_file(fitted, path, &err);
    if (root)
        ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(status, OPI_E_IO);
    ck_assert_msg(strstr(err.message, path) != NULL, "%s", err.message);
    ck_assert_int_eq(chmod(folder, 0755), 0);
    old_file_is_intact();
}
END_TEST

/* The disk is full half-way. */
START_TEST(write_cut_short)
{
    struct rlimit before, limit;
    make_folder();
    old_file();
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = opi_text_size(bytes) / 2;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int32_t status = opi_model_save_file(fitted, path, &err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    ck_assert_int_eq(status, OPI_E_IO);
    old_file_is_intact();
}
END_TEST

Suite *suite_model_io(void)
{
    Suite *s = suite_create("model_io");
    TCase *t = tcase_create("save and load");
    tcase_set_timeout(t, 300);
    tcase_add_unchecked_fixture(t, once, done);
    tcase_add_test(t, save_load_save);
    tcase_add_test(t, load_copies);
    tcase_add_test(t, foreign_files);
    tcase_add_test(t, newer_files);
    tcase_add_test(t, truncated_anywhere);
    tcase_add_test(t, every_bit_flipped);
    tcase_add_test(t, every_field_is_checked);
    tcase_add_test(t, no_count_becomes_an_allocation);
    tcase_add_test(t, file_round_trip);
    tcase_add_test(t, unwritable_folder);
    tcase_add_test(t, write_cut_short);
    suite_add_tcase(s, t);
    return s;
}
