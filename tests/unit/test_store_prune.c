/* SPDX-License-Identifier: Apache-2.0 */
/* Which checkpoints stay: keeping N, failed saves, going back, several ranks at once, too little memory. */
#include "store_help.h"

#include "base/ctx.h"
#include "base/parallel.h"

#include <stdio.h> /* rename */

static void put_half(int64_t step, uint64_t save)
{
    for (int32_t i = 0; i < 3; i++) {
        const opi__shard_id id = small_shard(step, save, i);
        ck_assert_int_eq(put_shard(store, &id, NULL), OPI_OK);
    }
}

static void put_complete(int64_t step, uint64_t save)
{
    opi_error e;
    ck_assert_msg(put_checkpoint(store, step, save, &e) == OPI_OK, "%s", e.message);
}

START_TEST(prune_keeps_the_newest)
{
    for (int64_t step = 1; step <= 6; step++)
        put_complete(step, 9);
    ck_assert_int_eq(opi__store_prune(NULL, store, 7, NULL), OPI_OK);
    ck_assert_str_eq(listed(store, NULL), "6 5 4 3 2 1 ");
    ck_assert_int_eq(opi__store_prune(NULL, store, 3, NULL), OPI_OK);
    ck_assert_str_eq(listed(store, NULL), "6 5 4 ");
    ck_assert_int_eq(entries(store), 3);
    ck_assert_int_eq(opi__store_prune(NULL, store, 1, NULL), OPI_OK);
    ck_assert_str_eq(listed(store, NULL), "6 ");
    ck_assert_int_eq(opi__store_prune(NULL, at("nothing here"), 1, NULL), OPI_OK);
}
END_TEST

START_TEST(prune_removes_half_written_ones_that_are_older_only)
{
    put_half(1, 9);
    put_complete(2, 9);
    put_half(3, 9);
    put_file(at("step-000000000003/.opi-0123456789abcdef.tmp"), "left by a crash", 15);
    put_complete(4, 9);
    put_half(5, 9);
    ck_assert_int_eq(opi__store_prune(NULL, store, 2, NULL), OPI_OK);
    ck_assert_str_eq(listed(store, NULL), "4 2 ");
    ck_assert_int_eq(entries(store), 3);
    ck_assert_int_eq(entries(at("step-000000000005")), 3);
    ck_assert_int_eq(entries(at("step-000000000001")), -1);
    ck_assert_int_eq(entries(at("step-000000000003")), -1);
}
END_TEST

START_TEST(without_a_complete_one_prune_removes_nothing)
{
    put_half(1, 9);
    put_half(2, 9);
    ck_assert_int_eq(opi__store_prune(NULL, store, 1, NULL), OPI_OK);
    ck_assert_int_eq(entries(store), 2);
}
END_TEST

START_TEST(damaged_ones_do_not_push_out_good_ones)
{
    for (int64_t step = 1; step <= 5; step++)
        put_complete(step, 9);
    ck_assert_int_eq(truncate(at("step-000000000005/complete"), 10), 0);
    ck_assert_int_eq(unlink(at("step-000000000003/slot-000001-part-0-0000000000000009")), 0);
    ck_assert_int_eq(opi__store_prune(NULL, store, 2, NULL), OPI_OK);
    ck_assert_str_eq(listed(store, NULL), "4 2 ");
    ck_assert_int_eq(entries(store), 3); /* 5 is newer than all complete ones, so it stays; 3 is of no use */
}
END_TEST

START_TEST(foreign_files_stay)
{
    put_complete(1, 9);
    put_complete(2, 9);
    put_file(at("step-000000000001/notes"), "mine", 4);
    put_file(at("notes"), "mine", 4);
    ck_assert_int_eq(opi__store_prune(NULL, store, 1, NULL), OPI_OK);
    ck_assert_str_eq(listed(store, NULL), "2 ");
    ck_assert_int_eq(entries(at("step-000000000001")), 1);
    ck_assert_int_eq(entries(store), 3);
}
END_TEST

/* Whatever was removed of it when prune was killed, the rest is no checkpoint, and the next prune ends the work. */
START_TEST(prune_goes_on_where_it_was_killed)
{
    put_complete(1, 9);
    put_complete(2, 9);
    static const char *const order[] = {"complete", "slot-000003-part-0-0000000000000009",
                                        "slot-000002-part-1-0000000000000009"};
    for (int i = 0; i < 3; i++) {
        char file[96];
        opi__format(file, sizeof file, "step-000000000001/%s", order[i]);
        ck_assert_int_eq(unlink(at(file)), 0);
        ck_assert_str_eq(listed(store, NULL), "2 ");
    }
    ck_assert_int_eq(opi__store_prune(NULL, store, 1, NULL), OPI_OK);
    ck_assert_int_eq(entries(store), 1);
}
END_TEST

START_TEST(discard_removes_one_save)
{
    put_complete(2, 9);
    put_half(3, 9);
    put_half(2, 10);
    ck_assert_int_eq(opi__store_discard(store, 3, 9, NULL), OPI_OK);
    ck_assert_int_eq(entries(at("step-000000000003")), -1);
    ck_assert_int_eq(opi__store_discard(store, 2, 10, NULL), OPI_OK);
    ck_assert_int_eq(opi__store_discard(store, 77, 10, NULL), OPI_OK);
    ck_assert_int_eq(opi__store_discard(at("nothing here"), 77, 10, NULL), OPI_OK);
    ck_assert_int_eq(entries(at("step-000000000002")), SMALL_SHARDS + 1);
    ck_assert_str_eq(listed(store, NULL), "2 ");
    ck_assert_int_eq(opi__store_discard(store, 2, 9, NULL), OPI_OK); /* a complete one too, if it is that save */
    ck_assert_int_eq(entries(store), 0);
}
END_TEST

START_TEST(going_back_leaves_the_newer_ones_out)
{
    for (int64_t step = 1; step <= 5; step++)
        put_complete(step * 10, 9);
    put_half(60, 9);
    put_half(40, 8); /* beside the refused and the resumed one: left by earlier crashes */
    put_half(30, 8);
    ck_assert_int_eq(opi__store_resume(NULL, store, 30, NULL), OPI_OK);
    told t;
    ck_assert_str_eq(listed(store, &t), "30 20 10 ");
    ck_assert_int_eq(t.lines, 2);
    ck_assert_int_eq(entries(at("step-000000000060")), -1);
    ck_assert_int_eq(entries(at("step-000000000040")), SMALL_SHARDS + 1); /* still there, not counting */
    ck_assert_int_eq(entries(at("step-000000000030")), SMALL_SHARDS + 1);
    /* The new course passes them: without resume, keep 1 would have removed 35 at once. */
    put_complete(35, 11);
    ck_assert_int_eq(opi__store_prune(NULL, store, 1, NULL), OPI_OK);
    ck_assert_str_eq(listed(store, NULL), "35 ");
    put_complete(40, 11);
    ck_assert_int_eq(opi__store_prune(NULL, store, 2, NULL), OPI_OK);
    ck_assert_str_eq(listed(store, NULL), "40 35 ");
    put_complete(60, 11);
    ck_assert_int_eq(opi__store_prune(NULL, store, 1, NULL), OPI_OK);
    ck_assert_int_eq(entries(store), 1);
    ck_assert_int_eq(opi__store_resume(NULL, store, -1, NULL), OPI_OK);
    ck_assert_str_eq(listed(store, NULL), "");
    /* Renamed by hand it counts again. */
    ck_assert_int_eq(rename(at("step-000000000060/refused"), at("step-000000000060/complete")), 0);
    ck_assert_str_eq(listed(store, NULL), "60 ");
}
END_TEST

/* ---- several ranks at once ---- */

typedef struct turn {
    int64_t step;
    int32_t status[SMALL_SHARDS + 1];
} turn;

/* Task 0 prunes while the others write the next step into one folder. */
static void work(void *user, size_t i)
{
    turn *r = user;
    if (i == 0) {
        r->status[0] = opi__store_prune(NULL, store, 2, NULL);
        return;
    }
    const opi__shard_id id = small_shard(r->step, (uint64_t)r->step, (int32_t)i - 1);
    r->status[i] = put_shard(store, &id, NULL);
}

START_TEST(ranks_write_and_prune_at_the_same_time)
{
    for (int64_t step = 1; step <= 60; step++) {
        turn r = {step, {0}};
        const opi__store_mark mark = small_mark(step, (uint64_t)step);
        opi__parallel(7, SMALL_SHARDS + 1, work, &r);
        for (int i = 0; i <= SMALL_SHARDS; i++)
            ck_assert_int_eq(r.status[i], OPI_OK);
        ck_assert_int_eq(opi__store_complete(store, &mark, NULL), OPI_OK);
    }
    ck_assert_str_eq(listed(store, NULL), "60 59 58 ");
    ck_assert_int_eq(entries(store), 3);
}
END_TEST

/* ---- too little memory ---- */

static void *some(void *user, size_t size)
{
    int *left = user;
    return (*left)-- > 0 ? malloc(size) : NULL;
}

static void *some_resize(void *user, void *p, size_t size)
{
    int *left = user;
    return (*left)-- > 0 ? realloc(p, size) : NULL;
}

static void release(void *user, void *p)
{
    (void)user;
    free(p);
}

START_TEST(too_little_memory_is_said_and_harms_nothing)
{
    int left = 1;
    opi_ctx *ctx = NULL;
    const opi_ctx_options options = {.struct_size = sizeof options, .allocator = {&left, some, some_resize, release}};
    ck_assert_int_eq(opi_ctx_create(&options, &ctx, NULL), OPI_OK);
    for (int64_t step = 1; step <= 9; step++)
        put_complete(step, 9);
    int32_t status = OPI_E_NOMEM;
    for (int n = 0; status; n++) {
        opi__store_mark *marks = NULL;
        size_t count = 99;
        opi_error e;
        ck_assert_int_lt(n, 20);
        left = n;
        status = opi__store_list(ctx, store, NULL, NULL, &marks, &count, &e);
        ck_assert(status == OPI_OK || (status == OPI_E_NOMEM && e.code == status && !marks && count == 99));
        ck_assert(status != OPI_OK || count == 9);
        opi__free(ctx, marks);
    }
    left = 2;
    ck_assert_int_eq(opi__store_prune(ctx, store, 1, NULL), OPI_E_NOMEM);
    ck_assert_str_eq(listed(store, NULL), "9 8 7 6 5 4 3 2 1 ");
    left = 1;
    opi_ctx_destroy(ctx);
}
END_TEST

Suite *suite_store_prune(void);
Suite *suite_store_prune(void)
{
    Suite *s = suite_create("store_prune");
    TCase *c = tcase_create("store_prune");
    tcase_add_checked_fixture(c, store_make, store_remove);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, prune_keeps_the_newest);
    tcase_add_test(c, prune_removes_half_written_ones_that_are_older_only);
    tcase_add_test(c, without_a_complete_one_prune_removes_nothing);
    tcase_add_test(c, damaged_ones_do_not_push_out_good_ones);
    tcase_add_test(c, foreign_files_stay);
    tcase_add_test(c, prune_goes_on_where_it_was_killed);
    tcase_add_test(c, discard_removes_one_save);
    tcase_add_test(c, going_back_leaves_the_newer_ones_out);
    tcase_add_test(c, ranks_write_and_prune_at_the_same_time);
    tcase_add_test(c, too_little_memory_is_said_and_harms_nothing);
    suite_add_tcase(s, c);
    return s;
}
