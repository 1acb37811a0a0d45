/* SPDX-License-Identifier: Apache-2.0 */
/* Whole-file reading and atomic writing, with what a file system can hold in the way. */
#include "base/ctx.h"
#include "base/mem.h"
#include "base/text.h"

#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static char path[128];

static const char *inside(const char *name)
{
    opi__format(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void)
{
    strcpy(folder, "/tmp/opi-file-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Removes everything and returns how many entries there were. */
static int clear_folder(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char full[512];
        opi__format(full, sizeof full, "%s/%s", folder, e->d_name);
        if (unlink(full) != 0)
            ck_assert_int_eq(rmdir(full), 0);
        n++;
    }
    closedir(d);
    return n;
}

static void remove_folder(void)
{
    clear_folder();
    ck_assert_int_eq(rmdir(folder), 0);
}

static void check_content(const char *file, const void *want, size_t n)
{
    char *bytes = NULL;
    size_t size = 99;
    opi_error e = {0, 0, 0, ""};
    ck_assert_msg(opi__read_file(NULL, file, 1 << 24, &bytes, &size, &e) == OPI_OK, "%s", e.message);
    ck_assert_uint_eq(size, n);
    ck_assert_int_eq(memcmp(bytes, want, n), 0);
    ck_assert_int_eq(bytes[n], 0);
    opi__free(NULL, bytes);
}

static void check_refused(const char *file, size_t limit, int32_t code, const char *words)
{
    char *bytes = NULL;
    size_t size = 99;
    opi_error e;
    ck_assert_int_eq(opi__read_file(NULL, file, limit, &bytes, &size, &e), code);
    ck_assert_ptr_null(bytes);
    ck_assert_uint_eq(size, 99);
    ck_assert_int_eq(e.code, code);
    ck_assert_msg(strstr(e.message, words) != NULL, "\"%s\" does not say \"%s\"", e.message, words);
    ck_assert_msg(!file || !file[0] || strstr(e.message, file) != NULL, "\"%s\" does not name the file", e.message);
}

START_TEST(writes_and_reads_back)
{
    static char big[3000001];
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i * i >> 3);
    const char *f = inside("a b.bin");
    ck_assert_int_eq(opi__write_file_atomic(f, big, sizeof big, NULL), OPI_OK);
    check_content(f, big, sizeof big);
    ck_assert_int_eq(opi__write_file_atomic(f, "short", 5, NULL), OPI_OK); /* replaces, does not overwrite in part */
    check_content(f, "short", 5);
    ck_assert_int_eq(opi__write_file_atomic(f, NULL, 0, NULL), OPI_OK);
    check_content(f, "", 0);
    ck_assert_int_eq(clear_folder(), 1); /* no temporary file stays */
}
END_TEST

START_TEST(writes_into_the_current_folder)
{
    char before[512];
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(folder), 0);
    int32_t status = opi__write_file_atomic("plain", "x", 1, NULL);
    ck_assert_int_eq(chdir(before), 0);
    ck_assert_int_eq(status, OPI_OK);
    check_content(inside("plain"), "x", 1);
}
END_TEST

START_TEST(new_files_obey_the_umask)
{
    mode_t before = umask(027);
    int32_t status = opi__write_file_atomic(inside("masked"), "x", 1, NULL);
    umask(before);
    ck_assert_int_eq(status, OPI_OK);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0640);
}
END_TEST

START_TEST(follows_links)
{
    char real[128];
    strcpy(real, inside("real"));
    ck_assert_int_eq(opi__write_file_atomic(real, "old", 3, NULL), OPI_OK);
    ck_assert_int_eq(symlink("real", inside("link")), 0);
    ck_assert_int_eq(opi__write_file_atomic(inside("link"), "new", 3, NULL), OPI_OK);
    struct stat st;
    ck_assert_int_eq(lstat(inside("link"), &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    check_content(real, "new", 3);
    ck_assert_int_eq(symlink("nowhere", inside("dangling")), 0);
    opi_error e;
    ck_assert_int_eq(opi__write_file_atomic(inside("dangling"), "x", 1, &e), OPI_E_IO);
    ck_assert_int_eq(clear_folder(), 3);
}
END_TEST

START_TEST(refuses_to_read_what_is_no_file)
{
    check_refused(inside("missing"), 100, OPI_E_IO, "No such file");
    check_refused(folder, 100, OPI_E_IO, "a directory, not a regular file");
    check_refused("/dev/zero", 100, OPI_E_IO, "a device, not a regular file");
    check_refused("", 100, OPI_E_INVALID, "empty");
    check_refused(NULL, 100, OPI_E_INVALID, "NULL");
    ck_assert_int_eq(mkfifo(inside("pipe"), 0600), 0);
    check_refused(path, 100, OPI_E_IO, "a pipe, not a regular file"); /* a plain open would wait for a writer */
}
END_TEST

START_TEST(the_limit_is_exact)
{
    const char *f = inside("ten");
    ck_assert_int_eq(opi__write_file_atomic(f, "0123456789", 10, NULL), OPI_OK);
    char *bytes = NULL;
    size_t size;
    ck_assert_int_eq(opi__read_file(NULL, f, 10, &bytes, &size, NULL), OPI_OK);
    opi__free(NULL, bytes);
    check_refused(f, 9, OPI_E_RANGE, "has 10 bytes, the limit is 9");
    check_refused(f, 0, OPI_E_RANGE, "the limit is 0");
    /* A file that says it has 0 bytes and has more. */
    if (access("/proc/self/maps", R_OK) == 0) {
        check_refused("/proc/self/maps", 100, OPI_E_RANGE, "101 bytes or more, the limit is 100");
        bytes = NULL;
        ck_assert_int_eq(opi__read_file(NULL, "/proc/self/maps", 1 << 24, &bytes, &size, NULL), OPI_OK);
        ck_assert_uint_gt(size, 100);
        ck_assert_uint_eq(strlen(bytes), size);
        opi__free(NULL, bytes);
    }
}
END_TEST

/* Refuses when its count is used up. */
static void *refuse(void *user, size_t n)
{
    return --*(int *)user < 0 ? NULL : malloc(n);
}

static void *refuse_more(void *user, void *p, size_t n)
{
    return --*(int *)user < 0 ? NULL : realloc(p, n);
}

static void release(void *user, void *p)
{
    (void)user;
    free(p);
}

START_TEST(reading_without_memory_is_an_error)
{
    int left = 0;
    opi_ctx ctx = {{&left, refuse, refuse_more, release}, NULL, NULL};
    const char *f = inside("file");
    ck_assert_int_eq(opi__write_file_atomic(f, "x", 1, NULL), OPI_OK);
    char *bytes = NULL;
    size_t size = 99;
    ck_assert_int_eq(opi__read_file(&ctx, f, 10, &bytes, &size, NULL), OPI_E_NOMEM);
    ck_assert_ptr_null(bytes);
    if (access("/proc/self/maps", R_OK) == 0) { /* a file that turns out longer than it said */
        left = 1;
        ck_assert_int_eq(opi__read_file(&ctx, "/proc/self/maps", 1 << 24, &bytes, &size, NULL), OPI_E_NOMEM);
        ck_assert_ptr_null(bytes);
    }
    ck_assert_uint_eq(size, 99);
}
END_TEST

static void check_unwritable(const char *file, int32_t code, const char *words)
{
    opi_error e;
    ck_assert_int_eq(opi__write_file_atomic(file, "x", 1, &e), code);
    ck_assert_msg(strstr(e.message, words) != NULL, "\"%s\" does not say \"%s\"", e.message, words);
}

START_TEST(refuses_to_write_over_what_is_no_file)
{
    check_unwritable(NULL, OPI_E_INVALID, "NULL");
    check_unwritable("", OPI_E_INVALID, "empty");
    check_unwritable(folder, OPI_E_IO, "a directory");
    check_unwritable("/dev/null", OPI_E_IO, "'/dev/null': it is a device");
    check_unwritable(inside("missing/file"), OPI_E_IO, "No such file");
    check_unwritable("/dev/null/file", OPI_E_IO, "Not a directory");
    char longer[5000];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    check_unwritable(longer, OPI_E_RANGE, "4999 bytes");
    ck_assert_int_eq(mkfifo(inside("pipe"), 0600), 0);
    check_unwritable(path, OPI_E_IO, "a pipe");
    ck_assert_int_eq(clear_folder(), 1);
}
END_TEST

START_TEST(a_full_disk_leaves_the_old_file)
{
    static char big[100000];
    const char *f = inside("kept");
    ck_assert_int_eq(opi__write_file_atomic(f, "old", 3, NULL), OPI_OK);
    struct rlimit before, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 40000; /* the first write is short, the second fails */
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    opi_error e;
    int32_t status = opi__write_file_atomic(f, big, sizeof big, &e);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    ck_assert_int_eq(status, OPI_E_IO);
    ck_assert_msg(strstr(e.message, "File too large") && strstr(e.message, f), "%s", e.message);
    check_content(f, "old", 3);
    ck_assert_int_eq(clear_folder(), 1); /* the temporary file is gone */
}
END_TEST

Suite *suite_base_file(void);
Suite *suite_base_file(void)
{
    Suite *s = suite_create("base_file");
    TCase *t = tcase_create("file");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, make_folder, remove_folder);
    tcase_add_test(t, writes_and_reads_back);
    tcase_add_test(t, writes_into_the_current_folder);
    tcase_add_test(t, new_files_obey_the_umask);
    tcase_add_test(t, follows_links);
    tcase_add_test(t, refuses_to_read_what_is_no_file);
    tcase_add_test(t, the_limit_is_exact);
    tcase_add_test(t, reading_without_memory_is_an_error);
    tcase_add_test(t, refuses_to_write_over_what_is_no_file);
    tcase_add_test(t, a_full_disk_leaves_the_old_file);
    suite_add_tcase(s, t);
    return s;
}
