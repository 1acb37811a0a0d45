/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints when things fail for real: full and read-only file systems, limits, system calls that fail, a process
 * killed at each of its system calls and at random moments. Nothing is compiled in for it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* unshare */
#endif
#include "store_help.h"

#include "base/rng.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static void skip(const char *why)
{
    fprintf(stderr, "test_store_fault: skipped: %s\n", why);
}

static int names(const opi_error *e, const char *file, const char *reason)
{
    return strstr(e->message, at(file)) != NULL && strstr(e->message, reason) != NULL && !strchr(e->message, '\n');
}

/* ---- file systems ---- */

START_TEST(the_limit_of_a_file_is_said)
{
    static char big[300000];
    const opi__shard_id id = {2, 1, 0, 0};
    struct rlimit limit;
    opi_error e;
    ck_assert_int_eq(put_checkpoint(store, 1, 1, NULL), OPI_OK);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_IGN);
    limit.rlim_cur = 100000;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(opi__store_write(store, &id, big, sizeof big, &e), OPI_E_IO);
    ck_assert_msg(names(&e, "step-000000000002/slot-000000-part-0-0000000000000001", "File too large"), "%s",
                  e.message);
    ck_assert_int_eq(entries(at("step-000000000002")), 0);
    ck_assert_int_eq(opi__store_discard(store, 2, 1, NULL), OPI_OK);
    ck_assert_int_eq(entries(store), 1);
    ck_assert_str_eq(listed(store, NULL), "1 ");
}
END_TEST

/* A small file system at `store`, in a mount namespace that ends with this process. */
static int small_disk(const char *options)
{
    if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("none", store, "tmpfs", 0, options) == 0)
        return 1;
    skip("no file system can be mounted here");
    return 0;
}

START_TEST(a_full_disk_is_said_and_leaves_what_was_complete)
{
    static char big[200000];
    opi_error e;
    if (!small_disk("size=512k"))
        return;
    ck_assert_int_eq(put_checkpoint(store, 1, 1, NULL), OPI_OK);
    int32_t status = OPI_OK, slot = 0;
    for (; !status; slot++) {
        const opi__shard_id id = {2, 1, slot, 0};
        ck_assert_int_lt(slot, 4);
        status = opi__store_write(store, &id, big, sizeof big, &e);
    }
    ck_assert_int_eq(status, OPI_E_IO);
    char file[96];
    opi__format(file, sizeof file, "step-000000000002/slot-%06d-part-0-0000000000000001", slot - 1);
    ck_assert_msg(names(&e, file, "No space left on device"), "%s", e.message);
    ck_assert_int_eq(entries(at("step-000000000002")), slot - 1);
    ck_assert_str_eq(listed(store, NULL), "1 ");
    ck_assert_int_eq(opi__store_discard(store, 2, 1, NULL), OPI_OK); /* there is room again */
    ck_assert_int_eq(put_checkpoint(store, 3, 1, NULL), OPI_OK);
    ck_assert_str_eq(listed(store, NULL), "3 1 ");
    ck_assert_int_eq(umount(store), 0);
}
END_TEST

START_TEST(no_room_for_another_name_is_said)
{
    opi_error e;
    if (!small_disk("nr_inodes=6")) /* the root, a folder, four files */
        return;
    ck_assert_int_eq(put_checkpoint(store, 1, 1, &e), OPI_E_IO);
    ck_assert_msg(names(&e, "step-000000000001/slot-000002-part-1-0000000000000001", "No space left on device"), "%s",
                  e.message);
    ck_assert_int_eq(put_checkpoint(store, 2, 1, &e), OPI_E_IO);
    ck_assert_msg(names(&e, "step-000000000002", "No space left on device"), "%s", e.message);
    ck_assert_int_eq(umount(store), 0);
}
END_TEST

START_TEST(a_read_only_disk_is_said_and_can_be_read)
{
    opi_error e;
    if (!small_disk("size=512k"))
        return;
    for (int64_t step = 1; step <= 2; step++)
        ck_assert_int_eq(put_checkpoint(store, step, 1, NULL), OPI_OK);
    ck_assert_int_eq(mount(NULL, store, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    ck_assert_int_eq(put_checkpoint(store, 3, 1, &e), OPI_E_IO);
    ck_assert_msg(names(&e, "step-000000000003", "Read-only file system"), "%s", e.message);
    ck_assert_int_eq(put_checkpoint(store, 2, 5, &e), OPI_E_IO);
    ck_assert_msg(names(&e, "step-000000000002/slot-000000-part-0-0000000000000005", "Read-only file system"), "%s",
                  e.message);
    ck_assert_int_eq(opi__store_prune(NULL, store, 1, &e), OPI_E_IO);
    ck_assert_msg(names(&e, "step-000000000001/complete", "Read-only file system"), "%s", e.message);
    ck_assert_int_eq(opi__store_resume(NULL, store, 1, &e), OPI_E_IO);
    ck_assert_msg(names(&e, "step-000000000002/complete", "Read-only file system"), "%s", e.message);
    ck_assert_int_eq(opi__store_discard(store, 2, 1, &e), OPI_E_IO);
    ck_assert_str_eq(listed(store, NULL), "2 1 ");
    ck_assert_int_eq(umount(store), 0);
}
END_TEST

START_TEST(a_folder_that_may_not_be_written_is_said)
{
    opi_error e;
    ck_assert_int_eq(put_checkpoint(store, 1, 1, NULL), OPI_OK);
    ck_assert_int_eq(chmod(store, 0555), 0);
    const int root = geteuid() == 0;
    ck_assert(!root || seteuid(65534) == 0);
    int32_t new_folder = put_checkpoint(store, 2, 1, &e);
    ck_assert_msg(names(&e, "step-000000000002", "Permission denied"), "%s", e.message);
    ck_assert_str_eq(listed(store, NULL), "1 ");
    ck_assert(!root || seteuid(0) == 0);
    ck_assert_int_eq(chmod(store, 0), 0);
    ck_assert(!root || seteuid(65534) == 0);
    opi__store_mark *marks;
    size_t count;
    int32_t hidden = opi__store_list(NULL, store, NULL, NULL, &marks, &count, &e); /* not the same as "there is none" */
    ck_assert_msg(strstr(e.message, store) && strstr(e.message, "Permission denied"), "%s", e.message);
    ck_assert(!root || seteuid(0) == 0);
    ck_assert_int_eq(chmod(store, 0755), 0);
    ck_assert_int_eq(new_folder, OPI_E_IO);
    ck_assert_int_eq(hidden, OPI_E_IO);
}
END_TEST

START_TEST(a_file_in_the_path_is_said)
{
    opi_error e;
    opi__store_mark *marks;
    size_t count;
    put_file(at("file"), "", 0);
    static const char *const dirs[] = {"file", "file/checkpoints"};
    for (int i = 0; i < 2; i++) {
        const char *dir = at(dirs[i]);
        ck_assert_int_eq(put_checkpoint(dir, 1, 1, &e), OPI_E_IO);
        ck_assert_msg(names(&e, dirs[i], "Not a directory"), "%s", e.message);
        ck_assert_int_eq(opi__store_list(NULL, dir, NULL, NULL, &marks, &count, &e), OPI_E_IO);
        ck_assert_msg(names(&e, dirs[i], "Not a directory"), "%s", e.message);
        ck_assert_int_eq(opi__store_prune(NULL, dir, 1, NULL), OPI_E_IO);
    }
    ck_assert_int_eq(entries(store), 1);
}
END_TEST

/* ---- system calls that fail ---- */

/* From now on `call` fails with `code` in this process. */
static int break_call(int call, int code)
{
    struct sock_filter rule[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rule / sizeof *rule, rule};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#ifdef SYS_rename
#define CALL_RENAME SYS_rename
#else
#define CALL_RENAME SYS_renameat
#endif

typedef struct outcome {
    int ran;
    int32_t status;
    opi_error error;
    told t;
    size_t count;
} outcome;

/* Runs `work` in a child in which `call` fails. 0: that cannot be done here. */
static int run_broken(int call, int code, void (*work)(outcome *o), outcome *o)
{
    outcome *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (break_call(call, code)) {
            work(shared);
            shared->ran = 1;
        }
        _exit(0);
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert(WIFEXITED(how));
    *o = *shared;
    munmap(shared, sizeof *shared);
    if (!o->ran)
        skip("system calls cannot be made to fail here");
    return o->ran;
}

static void write_slot_1(outcome *o)
{
    const opi__shard_id id = small_shard(2, 9, 1);
    o->status = put_shard(store, &id, &o->error);
}

static void complete_2(outcome *o)
{
    const opi__store_mark mark = small_mark(2, 9);
    o->status = opi__store_complete(store, &mark, &o->error);
}

static void prune_1(outcome *o)
{
    o->status = opi__store_prune(NULL, store, 1, &o->error);
}

static void list_all(outcome *o)
{
    opi__store_mark *marks = NULL;
    o->status = opi__store_list(NULL, store, tell, &o->t, &marks, &o->count, &o->error);
}

START_TEST(a_write_that_fails_leaves_nothing)
{
    static const struct {
        int call, code;
        const char *words;
    } bad[] = {{SYS_write, EIO, "Input/output error"}, {SYS_write, EDQUOT, "Disk quota exceeded"},
               {SYS_write, ENOSPC, "No space left on device"}, {SYS_fsync, EIO, "Input/output error"},
               {SYS_fsync, EDQUOT, "Disk quota exceeded"}, {SYS_close, EIO, "Input/output error"},
               {CALL_RENAME, EIO, "Input/output error"}, {SYS_openat, EMFILE, "Too many open files"},
               {SYS_write, ESTALE, "Stale file handle"}};
    const opi__shard_id first = small_shard(2, 9, 0);
    ck_assert_int_eq(put_checkpoint(store, 1, 9, NULL), OPI_OK);
    ck_assert_int_eq(put_shard(store, &first, NULL), OPI_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        outcome o;
        if (!run_broken(bad[i].call, bad[i].code, write_slot_1, &o))
            return;
        ck_assert_int_eq(o.status, OPI_E_IO);
        ck_assert_msg(names(&o.error, "step-000000000002/slot-000001-part-0-0000000000000009", bad[i].words), "%s",
                      o.error.message);
        ck_assert_int_eq(entries(at("step-000000000002")), 1);
        ck_assert_str_eq(listed(store, NULL), "1 ");
    }
}
END_TEST

START_TEST(a_mark_that_fails_is_no_mark)
{
    static const int calls[] = {SYS_write, SYS_fsync, CALL_RENAME, SYS_openat};
    for (int32_t i = 0; i < SMALL_SHARDS; i++) {
        const opi__shard_id id = small_shard(2, 9, i);
        ck_assert_int_eq(put_shard(store, &id, NULL), OPI_OK);
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        outcome o;
        if (!run_broken(calls[i], EIO, complete_2, &o))
            return;
        ck_assert_int_eq(o.status, OPI_E_IO);
        ck_assert_msg(strstr(o.error.message, store) && strstr(o.error.message, "Input/output error"), "%s",
                      o.error.message);
        ck_assert_str_eq(listed(store, NULL), "");
        ck_assert_int_eq(entries(at("step-000000000002")), SMALL_SHARDS);
    }
}
END_TEST

START_TEST(prune_removes_nothing_that_it_cannot_judge)
{
    static const int calls[] = {SYS_read, SYS_openat, SYS_getdents64};
    for (int64_t step = 1; step <= 3; step++)
        ck_assert_int_eq(put_checkpoint(store, step, 9, NULL), OPI_OK);
    outcome o;
    for (int i = 0; i < 3; i++) {
        if (!run_broken(calls[i], EIO, prune_1, &o))
            return;
        ck_assert_int_eq(o.status, i == 0 ? OPI_OK : OPI_E_IO); /* where nothing can be read, nothing is to be done */
        ck_assert_str_eq(listed(store, NULL), "3 2 1 ");
    }
    ck_assert_int_eq(run_broken(SYS_unlinkat, EIO, prune_1, &o), 1);
    ck_assert_int_eq(o.status, OPI_E_IO);
    ck_assert_msg(names(&o.error, "step-000000000002/complete", "Input/output error"), "%s", o.error.message);
    ck_assert_str_eq(listed(store, NULL), "3 2 1 ");
}
END_TEST

/* One that cannot be read just now, beside newer ones that can: it may be complete, and stays. */
START_TEST(prune_leaves_what_may_be_complete)
{
    const int root = geteuid() == 0;
    opi_error e;
    ck_assert(!root || (chmod(store, 0777) == 0 && seteuid(65534) == 0));
    for (int64_t step = 1; step <= 3; step++)
        ck_assert_int_eq(put_checkpoint(store, step, 9, NULL), OPI_OK);
    ck_assert_int_eq(chmod(at("step-000000000002/complete"), 0), 0);
    ck_assert_msg(opi__store_prune(NULL, store, 2, &e) == OPI_OK, "%s", e.message);
    ck_assert_str_eq(listed(store, NULL), "3 1 ");
    ck_assert_int_eq(chmod(at("step-000000000002/complete"), 0644), 0);
    ck_assert_str_eq(listed(store, NULL), "3 2 1 ");
    ck_assert(!root || seteuid(0) == 0);
}
END_TEST

START_TEST(what_cannot_be_read_is_skipped_with_the_reason)
{
    outcome o;
    ck_assert_int_eq(put_checkpoint(store, 1, 9, NULL), OPI_OK);
    if (!run_broken(SYS_read, EIO, list_all, &o))
        return;
    ck_assert_int_eq(o.status, OPI_OK);
    ck_assert_uint_eq(o.count, 0);
    ck_assert_int_eq(o.t.lines, 1);
    ck_assert_msg(strstr(o.t.text[0], at("step-000000000001/complete")) && strstr(o.t.text[0], "Input/output error"),
                  "%s", o.t.text[0]);
}
END_TEST

/* ---- killed ---- */

static void make_fast_store(void)
{
    store_open(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

/* Takes the next save, as a program started anew does. */
static int32_t next_save(uint64_t save, int32_t keep, opi_error *err)
{
    opi__store_mark *marks = NULL;
    size_t count = 0;
    int32_t status = opi__store_list(NULL, store, NULL, NULL, &marks, &count, err);
    const int64_t from = !status && count ? marks->step : -1;
    opi__free(NULL, marks);
    if (!status)
        status = opi__store_resume(NULL, store, from, err);
    if (!status)
        status = put_checkpoint(store, from + 1, save, err);
    return status ? status : opi__store_prune(NULL, store, keep, err);
}

/* Runs next_save in a child that is killed at stop number `at_stop` of its system calls (their begins and ends).
 * 1: killed, 0: it came to its end before, -1: nobody can be traced here. */
static int killed_at(int at_stop, uint64_t save)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(9);
        raise(SIGSTOP);
        _exit(next_save(save, 2, NULL) ? 1 : 0);
    }
    int how, killed = 0;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    for (int stop = 0; WIFSTOPPED(how); stop++) {
        if (stop == at_stop) {
            killed = 1;
            kill(child, SIGKILL);
        } else {
            ck_assert_int_eq(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        }
        ck_assert_int_eq(waitpid(child, &how, 0), child);
    }
    if (WIFEXITED(how) && WEXITSTATUS(how) == 9)
        return -1;
    ck_assert_msg(WIFSIGNALED(how) || WEXITSTATUS(how) == 0, "the save itself failed");
    return killed;
}

START_TEST(killed_at_each_system_call)
{
    int stop = 1, new_ones = 0;
    for (;; stop++) {
        ck_assert_int_lt(stop, 2000);
        clear(store);
        for (int64_t step = 1; step <= 2; step++)
            ck_assert_int_eq(put_checkpoint(store, step, 7, NULL), OPI_OK);
        const opi__shard_id left = small_shard(3, 6, 0); /* of a crash before */
        ck_assert_int_eq(put_shard(store, &left, NULL), OPI_OK);
        int killed = killed_at(stop, 8);
        if (killed < 0) {
            skip("processes cannot be traced here");
            return;
        }
        const char *is = listed(store, NULL);
        int has_new = strcmp(is, "3 2 1 ") == 0 || strcmp(is, "3 2 ") == 0;
        ck_assert_msg(has_new || strcmp(is, "2 1 ") == 0, "after stop %d: %s", stop, is);
        ck_assert_msg(has_new || new_ones == 0, "after stop %d the complete checkpoint is gone", stop);
        new_ones += has_new;
        opi_error e;
        ck_assert_msg(next_save(9, 1, &e) == OPI_OK, "%s", e.message);
        ck_assert_str_eq(listed(store, NULL), has_new ? "4 " : "3 ");
        ck_assert_int_eq(entries(store), 1); /* nothing of all that is left */
        ck_assert_int_eq(entries(at(has_new ? "step-000000000004" : "step-000000000003")), SMALL_SHARDS + 1);
        if (!killed)
            break;
    }
    ck_assert_int_gt(stop, 200); /* a save and a prune are that many calls at least */
    ck_assert_int_gt(new_ones, 20);
}
END_TEST

START_TEST(killed_at_random_moments)
{
    volatile int64_t *saves = mmap(NULL, sizeof *saves, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne((void *)(uintptr_t)saves, MAP_FAILED);
    opi__rng random;
    opi__rng_seed(&random, 4);
    ck_assert_int_eq(put_checkpoint(store, 0, 1, NULL), OPI_OK);
    int64_t newest = 0;
    for (int i = 0; i < 200; i++) {
        *saves = 0;
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            for (;; ++*saves)
                if (next_save((uint64_t)i + 2, 2, NULL) != OPI_OK)
                    _exit(1);
        }
        /* Long enough that each child gets somewhere, then at any moment of a save. */
        const struct timespec pause = {0, (long)opi__rng_below(&random, 2000000)}, tick = {0, 20000};
        int how = 0;
        while (*saves == 0 && waitpid(child, &how, WNOHANG) == 0)
            nanosleep(&tick, NULL);
        ck_assert_msg(*saves > 0, "the save itself failed");
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        ck_assert_int_eq(waitpid(child, &how, 0), child);
        ck_assert(WIFSIGNALED(how));
        opi__store_mark *marks = NULL;
        size_t count = 0;
        ck_assert_int_eq(opi__store_list(NULL, store, NULL, NULL, &marks, &count, NULL), OPI_OK);
        ck_assert_msg(count == 2 || count == 3, "%zu complete ones", count);
        for (size_t k = 0; k < count; k++) {
            const char *wrong = judge(store, &marks[k]);
            ck_assert_msg(!wrong, "run %d, step %lld: %s", i, (long long)marks[k].step, wrong);
        }
        ck_assert_int_ge(marks->step, newest + *saves); /* what was reported complete is there, or a newer one */
        newest = marks->step;
        opi__free(NULL, marks);
    }
    ck_assert_int_ge(newest, 200);
}
END_TEST

Suite *suite_store_fault(void);
Suite *suite_store_fault(void)
{
    Suite *s = suite_create("store_fault");
    TCase *c = tcase_create("faults");
    tcase_add_checked_fixture(c, store_make, store_remove);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, the_limit_of_a_file_is_said);
    tcase_add_test(c, a_full_disk_is_said_and_leaves_what_was_complete);
    tcase_add_test(c, no_room_for_another_name_is_said);
    tcase_add_test(c, a_read_only_disk_is_said_and_can_be_read);
    tcase_add_test(c, a_folder_that_may_not_be_written_is_said);
    tcase_add_test(c, a_file_in_the_path_is_said);
    tcase_add_test(c, a_write_that_fails_leaves_nothing);
    tcase_add_test(c, a_mark_that_fails_is_no_mark);
    tcase_add_test(c, prune_removes_nothing_that_it_cannot_judge);
    tcase_add_test(c, prune_leaves_what_may_be_complete);
    tcase_add_test(c, what_cannot_be_read_is_skipped_with_the_reason);
    suite_add_tcase(s, c);
    TCase *k = tcase_create("kills");
    tcase_add_checked_fixture(k, make_fast_store, store_remove);
    tcase_set_timeout(k, 300);
    tcase_add_test(k, killed_at_each_system_call);
    tcase_add_test(k, killed_at_random_moments);
    suite_add_tcase(s, k);
    return s;
}
