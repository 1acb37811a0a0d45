/* SPDX-License-Identifier: Apache-2.0 */
/* Persistent checkpoints: the bytes, what is listed and read, what is refused, what prune keeps. */
#include "store_help.h"

#include "base/ctx.h"
#include "base/hash.h"

#include <stdio.h> /* rename */

/* ---- the bytes. The right ones are from another program that followed docs/checkpoint-format.md ---- */

static size_t from_hex(const char *hex, unsigned char *out)
{
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < 2 * n; i++) {
        int digit = hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10;
        out[i / 2] = (unsigned char)(i % 2 ? out[i / 2] | digit : digit << 4);
    }
    return n;
}

static void check_file(const char *path, const char *hex)
{
    unsigned char want[256], is[256];
    size_t n = from_hex(hex, want);
    ck_assert_uint_eq(get_file(path, is, sizeof is), n);
    ck_assert_mem_eq(is, want, n);
}

START_TEST(shard_has_the_written_bytes)
{
    const opi__shard_id id = {1234567890123, 0x0123456789abcdef, 3, 1};
    ck_assert_int_eq(opi__store_write(store, &id, "hello, checkpoint", 17, NULL), OPI_OK);
    check_file(at("step-1234567890123/slot-000003-part-1-0123456789abcdef"),
               "894f5049430d0a0a01000000010000005b656bd25515038dcb04fb711f010000efcdab896745230111000000000000"
               "00e27a4cf6d4120bc3030000000100000068656c6c6f2c20636865636b706f696e74");
    ck_assert_int_eq(entries(at("step-1234567890123")), 1); /* no temporary file stays */
}
END_TEST

START_TEST(mark_has_the_written_bytes)
{
    const opi__shard_id id = {7, 1, 0, 0};
    const opi__store_mark mark = {7, 0xfedcba9876543210, {2, 3, 4}, -1};
    ck_assert_int_eq(opi__store_write(store, &id, NULL, 0, NULL), OPI_OK);
    ck_assert_int_eq(opi__store_complete(store, &mark, NULL), OPI_OK);
    check_file(at("step-000000000007/complete"),
               "894f5049430d0a0a01000000020000005aa72cacccefad8007000000000000001032547698badcfe02000000030000"
               "0004000000ffffffff0000000000000000");
}
END_TEST

START_TEST(payload_checksum_goes_by_blocks)
{
    const struct {
        size_t size;
        uint64_t sum;
    } want[] = {{0, 0}, {1 << 20, 0x2b7d398af66f8e8d}, {2621441, 0xd9da85c68ae4a3e8}};
    unsigned char *bytes = malloc(2621441), header[64], sum[8];
    for (size_t i = 0; i < 2621441; i++)
        bytes[i] = (unsigned char)(i * 7 + (i >> 8) * 3);
    for (size_t k = 0; k < 3; k++) {
        const opi__shard_id id = {1, 0, (int32_t)k, 0};
        char name[64];
        ck_assert_int_eq(opi__store_write(store, &id, bytes, want[k].size, NULL), OPI_OK);
        opi__format(name, sizeof name, "step-000000000001/slot-%06d-part-0-0000000000000000", (int)k);
        ck_assert_uint_eq(get_file(at(name), header, 64), 64);
        for (int i = 0; i < 8; i++)
            sum[i] = (unsigned char)(want[k].sum >> 8 * i);
        ck_assert_mem_eq(header + 48, sum, 8);
    }
    free(bytes);
}
END_TEST

/* ---- writing and reading ---- */

START_TEST(reads_what_was_written)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20};
    unsigned char *want = malloc(3 << 20);
    for (size_t i = 0; i < 3 << 20; i++)
        want[i] = (unsigned char)(i * i >> 5);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const opi__shard_id id = {5, 77, (int32_t)k, 0};
        void *bytes = NULL;
        size_t size = 1234;
        opi_error e;
        ck_assert_int_eq(opi__store_write(store, &id, sizes[k] ? want : NULL, sizes[k], NULL), OPI_OK);
        ck_assert_msg(opi__store_read(NULL, store, &id, &bytes, &size, &e) == OPI_OK, "%s", e.message);
        ck_assert_uint_eq(size, sizes[k]);
        ck_assert_ptr_nonnull(bytes);
        ck_assert_mem_eq(bytes, want, size);
        opi__free(NULL, bytes);
    }
    free(want);
}
END_TEST

START_TEST(lists_newest_first)
{
    static const int64_t steps[] = {9, 300, 0, 999999999999, 5000000000000, 20};
    ck_assert_str_eq(listed(at("nothing here"), NULL), "");
    ck_assert_str_eq(listed(store, NULL), "");
    for (size_t i = 0; i < 6; i++)
        ck_assert_int_eq(put_checkpoint(store, steps[i], 40 + i, NULL), OPI_OK);
    told t;
    ck_assert_str_eq(listed(store, &t), "5000000000000 999999999999 300 20 9 0 ");
    ck_assert_int_eq(t.lines, 0);
    ck_assert_str_eq(listed(at(""), NULL), "5000000000000 999999999999 300 20 9 0 "); /* a slash at the end */
}
END_TEST

START_TEST(list_gives_the_mark)
{
    const opi__store_mark mark = {12, 0xfedcba9876543210, {1, 2, 1}, -1};
    for (int32_t slot = 0; slot < 2; slot++) {
        const opi__shard_id id = {12, mark.save, slot, 0};
        ck_assert_int_eq(opi__store_write(store, &id, "x", 1, NULL), OPI_OK);
    }
    ck_assert_int_eq(opi__store_complete(store, &mark, NULL), OPI_OK);
    opi__store_mark *marks = NULL;
    size_t count = 0;
    ck_assert_int_eq(opi__store_list(NULL, store, NULL, NULL, &marks, &count, NULL), OPI_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(marks->step, 12);
    ck_assert_uint_eq(marks->save, 0xfedcba9876543210);
    ck_assert_mem_eq(&marks->grid, &mark.grid, sizeof mark.grid);
    ck_assert_int_eq(marks->common_row, -1);
    opi__free(NULL, marks);
}
END_TEST

START_TEST(makes_its_folder_but_not_those_above)
{
    opi_error e;
    ck_assert_int_eq(put_checkpoint(at("new"), 1, 1, NULL), OPI_OK);
    ck_assert_str_eq(listed(at("new"), NULL), "1 ");
    ck_assert_int_eq(put_checkpoint(at("not/there"), 1, 1, &e), OPI_E_IO);
    ck_assert_msg(strstr(e.message, at("not/there")) && strstr(e.message, "No such file"), "%s", e.message);
}
END_TEST

START_TEST(a_second_save_of_a_step_touches_the_first_only_when_complete)
{
    ck_assert_int_eq(put_checkpoint(store, 8, 100, NULL), OPI_OK);
    for (int32_t i = 0; i < SMALL_SHARDS; i++) {
        const opi__shard_id id = small_shard(8, 101, i);
        ck_assert_int_eq(put_shard(store, &id, NULL), OPI_OK);
        ck_assert_str_eq(listed(store, NULL), "8 "); /* judged by the first save's bytes */
    }
    const opi__store_mark mark = small_mark(8, 101);
    ck_assert_int_eq(opi__store_complete(store, &mark, NULL), OPI_OK);
    opi__store_mark *marks = NULL;
    size_t count = 0;
    ck_assert_int_eq(opi__store_list(NULL, store, NULL, NULL, &marks, &count, NULL), OPI_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(marks->save, 101);
    ck_assert_ptr_null(judge(store, marks));
    opi__free(NULL, marks);
}
END_TEST

START_TEST(bad_arguments_are_named)
{
    static char deep[5000];
    const struct {
        const char *dir;
        opi__shard_id id;
        int32_t code;
        const char *words;
    } bad[] = {{NULL, {1, 1, 0, 0}, OPI_E_INVALID, "is NULL"},
               {"", {1, 1, 0, 0}, OPI_E_INVALID, "is empty"},
               {store, {-1, 1, 0, 0}, OPI_E_RANGE, "step is -1"},
               {store, {1, 1, -2, 0}, OPI_E_RANGE, "slot is -2"},
               {store, {1, 1, 0, 2}, OPI_E_RANGE, "part is 2"},
               {deep, {1, 1, 0, 0}, OPI_E_RANGE, "4999 bytes"}};
    memset(deep, 'd', sizeof deep - 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        opi_error e;
        void *bytes = NULL;
        size_t size = 9;
        ck_assert_int_eq(opi__store_write(bad[i].dir, &bad[i].id, "x", 1, &e), bad[i].code);
        ck_assert_msg(strstr(e.message, bad[i].words) != NULL, "%s", e.message);
        ck_assert_int_eq(opi__store_read(NULL, bad[i].dir, &bad[i].id, &bytes, &size, &e), bad[i].code);
        ck_assert(!bytes && size == 9);
    }
    const opi__store_mark marks[] = {{-1, 0, {1, 1, 1}, -1}, {1, 0, {0, 1, 1}, -1}, {1, 0, {65536, 65536, 1}, -1},
                                     {1, 0, {65536, 2, 65536}, -1}, {1, 0, {2, 1, 1}, 2}, {1, 0, {2, 1, 1}, -2}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        ck_assert_int_eq(opi__store_complete(store, &marks[i], NULL), OPI_E_RANGE);
    ck_assert_int_eq(opi__store_prune(NULL, store, 0, NULL), OPI_E_RANGE);
    ck_assert_int_eq(entries(store), 0);
}
END_TEST

/* ---- damage ---- */

static const opi__shard_id one = {3, 5, 0, 0}; /* of a checkpoint with this one shard */
static const opi__store_mark one_mark = {3, 5, {1, 1, 1}, -1};
static const char one_bytes[] = "Each of these bytes matters.";
#define ONE_SHARD "step-000000000003/slot-000000-part-0-0000000000000005"
#define ONE_MARK "step-000000000003/complete"

static void put_one(void)
{
    ck_assert_int_eq(opi__store_write(store, &one, one_bytes, sizeof one_bytes, NULL), OPI_OK);
    ck_assert_int_eq(opi__store_complete(store, &one_mark, NULL), OPI_OK);
}

static size_t list_count(told *t)
{
    opi__store_mark *marks = NULL;
    size_t count = 99;
    t->lines = 0;
    ck_assert_int_eq(opi__store_list(NULL, store, tell, t, &marks, &count, NULL), OPI_OK);
    opi__free(NULL, marks);
    return count;
}

/* The one checkpoint neither counts nor is its shard read, and the reasons name the file. */
static void check_refused(const char *file, int shard, int header)
{
    told t;
    opi_error e = {0, 0, 0, ""};
    void *bytes = NULL;
    size_t size = 9;
    if (shard) {
        int32_t status = opi__store_read(NULL, store, &one, &bytes, &size, &e);
        ck_assert_msg(status == OPI_E_FORMAT || status == OPI_E_VERSION, "%d %s", status, e.message);
        ck_assert(!bytes && size == 9 && e.code == status);
        ck_assert_msg(strstr(e.message, at(file)) != NULL, "%s", e.message);
    }
    if (header) {
        ck_assert_uint_eq(list_count(&t), 0);
        ck_assert_int_eq(t.lines, 1);
        ck_assert_msg(strstr(t.text[0], at(file)) != NULL, "%s", t.text[0]);
    }
}

START_TEST(every_flipped_bit_is_refused)
{
    unsigned char good[2][256];
    const char *file[2] = {ONE_SHARD, ONE_MARK};
    size_t n[2];
    put_one();
    for (int f = 0; f < 2; f++)
        n[f] = get_file(at(file[f]), good[f], 256);
    ck_assert_uint_eq(n[0], 64 + sizeof one_bytes);
    ck_assert_uint_eq(n[1], 64);
    for (int f = 0; f < 2; f++) {
        for (size_t i = 0; i < n[f] * 8; i++) {
            good[f][i / 8] ^= (unsigned char)(1 << i % 8);
            put_file(at(file[f]), good[f], n[f]);
            check_refused(file[f], f == 0, i / 8 < 64);
            good[f][i / 8] ^= (unsigned char)(1 << i % 8);
        }
        put_file(at(file[f]), good[f], n[f]);
        told t;
        ck_assert_uint_eq(list_count(&t), 1);
    }
}
END_TEST

START_TEST(every_other_length_is_refused)
{
    unsigned char good[256] = {0};
    const char *file[2] = {ONE_SHARD, ONE_MARK};
    put_one();
    for (int f = 0; f < 2; f++) {
        size_t n = get_file(at(file[f]), good, 256);
        good[n] = 0;
        for (size_t cut = 0; cut <= n + 1; cut++) {
            if (cut == n)
                continue;
            put_file(at(file[f]), good, cut);
            check_refused(file[f], f == 0, 1);
        }
        put_file(at(file[f]), good, n);
    }
}
END_TEST

START_TEST(files_in_the_place_of_others_are_refused)
{
    opi_error e;
    void *bytes = NULL;
    size_t size;
    for (uint64_t save = 5; save < 7; save++)
        for (int32_t slot = 0; slot < 2; slot++) {
            const opi__shard_id id = {3, save, slot, 0};
            ck_assert_int_eq(opi__store_write(store, &id, "same size", 9, NULL), OPI_OK);
        }
    ck_assert_int_eq(opi__store_complete(store, &one_mark, NULL), OPI_OK);
    static const char *const other[] = {"step-000000000003/slot-000001-part-0-0000000000000005",
                                        "step-000000000003/slot-000000-part-0-0000000000000006", ONE_MARK};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(rename(at(other[i]), at(ONE_SHARD)), 0);
        ck_assert_int_eq(opi__store_read(NULL, store, &one, &bytes, &size, &e), OPI_E_FORMAT);
        const char *words[] = {"slot 1", "save 0000000000000006", "not a shard"};
        ck_assert_msg(strstr(e.message, words[i]) != NULL, "%s", e.message);
    }
    told t;
    ck_assert_int_eq(rename(at(ONE_SHARD), at(ONE_MARK)), 0);
    put_one();
    ck_assert_int_eq(rename(at("step-000000000003"), at("step-000000000004")), 0);
    ck_assert_uint_eq(list_count(&t), 0); /* a folder renamed to a newer step */
    ck_assert_msg(strstr(t.text[0], "it is of step 3") != NULL, "%s", t.text[0]);
}
END_TEST

static void *refuse_large(void *user, size_t size)
{
    size_t *largest = user;
    if (size > *largest)
        *largest = size;
    return size > 4096 ? NULL : malloc(size);
}

static void *refuse_large_resize(void *user, void *p, size_t size)
{
    (void)user;
    return size > 4096 ? NULL : realloc(p, size);
}

static void release(void *user, void *p)
{
    (void)user;
    free(p);
}

START_TEST(a_stated_size_costs_no_memory)
{
    unsigned char bytes[256], copy[64];
    size_t largest = 0, size, n;
    void *out = NULL;
    opi_ctx *ctx = NULL;
    opi_error e;
    const opi_ctx_options options = {.struct_size = sizeof options,
                                     .allocator = {&largest, refuse_large, refuse_large_resize, release}};
    ck_assert_int_eq(opi_ctx_create(&options, &ctx, NULL), OPI_OK);
    largest = 0;
    put_one();
    n = get_file(at(ONE_SHARD), bytes, sizeof bytes);
    for (int i = 40; i < 48; i++)
        bytes[i] = i < 47 ? 0xff : 0x3f; /* 2^62 - 1 */
    memcpy(copy, bytes, 64);
    memset(copy + 16, 0, 8);
    uint64_t sum = opi__checksum64(copy, 64);
    for (int i = 0; i < 8; i++)
        bytes[16 + i] = (unsigned char)(sum >> 8 * i);
    put_file(at(ONE_SHARD), bytes, n);
    ck_assert_int_eq(opi__store_read(ctx, store, &one, &out, &size, &e), OPI_E_FORMAT);
    ck_assert_msg(strstr(e.message, "29 bytes behind the header, 4611686018427387903 expected") != NULL, "%s",
                  e.message);
    ck_assert_uint_eq(largest, 0);
    /* A file that really is that long, all hole: the allocator decides. */
    put_one();
    ck_assert_int_eq(truncate(at(ONE_SHARD), 64 + ((off_t)1 << 40)), 0);
    ck_assert_int_eq(opi__store_read(ctx, store, &one, &out, &size, &e), OPI_E_FORMAT);
    ck_assert_uint_eq(largest, 0);
    static char big[5000];
    ck_assert_int_eq(opi__store_write(store, &one, big, sizeof big, NULL), OPI_OK);
    ck_assert_int_eq(opi__store_read(ctx, store, &one, &out, &size, &e), OPI_E_NOMEM);
    ck_assert_msg(strstr(e.message, "5000 bytes") != NULL, "%s", e.message);
    ck_assert_uint_eq(largest, 5000);
    ck_assert_ptr_null(out);
    opi_ctx_destroy(ctx);
}
END_TEST

START_TEST(half_written_ones_are_skipped_with_the_reason)
{
    told t;
    for (int64_t step = 1; step <= 4; step++)
        ck_assert_int_eq(put_checkpoint(store, step, 9, NULL), OPI_OK);
    ck_assert_int_eq(unlink(at("step-000000000004/complete")), 0);
    ck_assert_int_eq(unlink(at("step-000000000003/slot-000002-part-1-0000000000000009")), 0);
    ck_assert_int_eq(truncate(at("step-000000000002/slot-000001-part-0-0000000000000009"), 0), 0);
    ck_assert_str_eq(listed(store, &t), "1 ");
    ck_assert_int_eq(t.lines, 3);
    static const char *const words[][2] = {
        {"step-000000000004/complete'", "No such file or directory"},
        {"step-000000000003/slot-000002-part-1-0000000000000009'", "No such file or directory"},
        {"step-000000000002/slot-000001-part-0-0000000000000009'", "0 bytes, a header alone has 64"}};
    for (int i = 0; i < 3; i++)
        ck_assert_msg(strstr(t.text[i], words[i][0]) && strstr(t.text[i], words[i][1]), "%s", t.text[i]);
}
END_TEST

/* ---- names ---- */

START_TEST(hostile_names_are_skipped)
{
    static const char *const names[] = {"step-99999999999999999999", "step-9223372036854775808", "step-12", "step-",
                                        "step-0000000000001", "step--00000000001", "step-000000000001x", "complete",
                                        "step-00000000000a", "STEP-000000000001", "x\ny\xff", "slot-000000-part-0-0"};
    const size_t n = sizeof names / sizeof *names;
    ck_assert_int_eq(put_checkpoint(store, 2, 9, NULL), OPI_OK);
    for (size_t i = 0; i < n; i++) {
        if (i % 2)
            put_file(at(names[i]), "", 0);
        else
            ck_assert_int_eq(mkdir(at(names[i]), 0777), 0);
    }
    put_file(at(".hidden"), "", 0); /* not told of: snapshots of the file system, what NFS leaves */
    told t;
    ck_assert_str_eq(listed(store, &t), "2 ");
    ck_assert_int_eq(t.lines, (int)n);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(strstr(t.text[i], store) && strstr(t.text[i], "is no checkpoint") && !strchr(t.text[i], '\n'),
                      "%s", t.text[i]);
    ck_assert_int_eq(opi__store_prune(NULL, store, 1, NULL), OPI_OK);
    ck_assert_int_eq(opi__store_resume(NULL, store, -1, NULL), OPI_OK);
    ck_assert_int_eq(entries(store), (int)n + 2);
}
END_TEST

START_TEST(what_is_in_the_place_of_files_is_skipped)
{
    told t;
    ck_assert_int_eq(put_checkpoint(store, 2, 9, NULL), OPI_OK);
    put_file(at("step-000000000003"), "", 0);
    ck_assert_int_eq(mkdir(at("step-000000000004"), 0777), 0);
    ck_assert_int_eq(mkdir(at("step-000000000004/complete"), 0777), 0);
    ck_assert_int_eq(mkdir(at("step-000000000005"), 0777), 0);
    ck_assert_int_eq(mkfifo(at("step-000000000005/complete"), 0666), 0);
    ck_assert_str_eq(listed(store, &t), "2 ");
    ck_assert_int_eq(t.lines, 3);
    ck_assert_msg(strstr(t.text[0], "step-000000000005/complete': it is a pipe") != NULL, "%s", t.text[0]);
    ck_assert_msg(strstr(t.text[1], "step-000000000004/complete': it is a directory") != NULL, "%s", t.text[1]);
    ck_assert_msg(strstr(t.text[2], "step-000000000003': Not a directory") != NULL, "%s", t.text[2]);
    opi_error e;
    ck_assert_int_eq(put_checkpoint(store, 3, 9, &e), OPI_E_IO);
    ck_assert_msg(strstr(e.message, "step-000000000003': Not a directory") != NULL, "%s", e.message);
    ck_assert_int_eq(put_checkpoint(store, 4, 9, &e), OPI_E_IO);
    ck_assert_msg(strstr(e.message, "step-000000000004/complete': Is a directory") != NULL, "%s", e.message);
    ck_assert_int_eq(put_checkpoint(store, 5, 9, &e), OPI_OK); /* a pipe is replaced */
    ck_assert_str_eq(listed(store, NULL), "5 2 ");
}
END_TEST

START_TEST(links_are_not_followed)
{
    char outside[64] = "/tmp/opi-store-outside-XXXXXX", file[128];
    told t;
    opi_error e;
    void *bytes;
    size_t size;
    ck_assert_ptr_nonnull(mkdtemp(outside));
    put_one();
    opi__format(file, sizeof file, "%s/moved", outside);
    unsigned char copy[256];
    put_file(file, copy, get_file(at(ONE_SHARD), copy, sizeof copy));
    ck_assert_int_eq(unlink(at(ONE_SHARD)), 0);
    ck_assert_int_eq(symlink(file, at(ONE_SHARD)), 0);
    ck_assert_int_eq(opi__store_read(NULL, store, &one, &bytes, &size, &e), OPI_E_FORMAT);
    ck_assert_msg(strstr(e.message, "it is a symbolic link") != NULL, "%s", e.message);
    ck_assert_uint_eq(list_count(&t), 0);
    ck_assert_int_eq(opi__store_write(store, &one, "new", 3, NULL), OPI_OK); /* replaced, not written through */
    ck_assert_uint_eq(list_count(&t), 1);
    ck_assert_uint_eq(get_file(file, copy, sizeof copy), 64 + sizeof one_bytes);
    /* A step's folder elsewhere is neither listed nor written into nor emptied. */
    ck_assert_int_eq(rename(at("step-000000000003"), at("real")), 0);
    ck_assert_int_eq(symlink(at("real"), at("step-000000000003")), 0);
    ck_assert_uint_eq(list_count(&t), 0);
    ck_assert_int_eq(opi__store_write(store, &one, "new", 3, &e), OPI_E_IO);
    ck_assert_int_eq(put_checkpoint(store, 9, 1, NULL), OPI_OK);
    ck_assert_int_eq(opi__store_prune(NULL, store, 1, NULL), OPI_OK);
    ck_assert_int_eq(opi__store_discard(store, 3, 5, NULL), OPI_OK);
    ck_assert_int_eq(opi__store_resume(NULL, store, -1, NULL), OPI_OK);
    ck_assert_int_eq(entries(at("real")), 2);
    clear(outside);
    rmdir(outside);
}
END_TEST

Suite *suite_store(void);
Suite *suite_store(void)
{
    Suite *s = suite_create("store");
    TCase *c = tcase_create("store");
    tcase_add_checked_fixture(c, store_make, store_remove);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, shard_has_the_written_bytes);
    tcase_add_test(c, mark_has_the_written_bytes);
    tcase_add_test(c, payload_checksum_goes_by_blocks);
    tcase_add_test(c, reads_what_was_written);
    tcase_add_test(c, lists_newest_first);
    tcase_add_test(c, list_gives_the_mark);
    tcase_add_test(c, makes_its_folder_but_not_those_above);
    tcase_add_test(c, a_second_save_of_a_step_touches_the_first_only_when_complete);
    tcase_add_test(c, bad_arguments_are_named);
    tcase_add_test(c, every_flipped_bit_is_refused);
    tcase_add_test(c, every_other_length_is_refused);
    tcase_add_test(c, files_in_the_place_of_others_are_refused);
    tcase_add_test(c, a_stated_size_costs_no_memory);
    tcase_add_test(c, half_written_ones_are_skipped_with_the_reason);
    tcase_add_test(c, hostile_names_are_skipped);
    tcase_add_test(c, what_is_in_the_place_of_files_is_skipped);
    tcase_add_test(c, links_are_not_followed);
    suite_add_tcase(s, c);
    return s;
}
