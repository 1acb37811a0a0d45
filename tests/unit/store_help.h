/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in a folder of their own: what the tests of the store share. */
#ifndef OPI_TEST_STORE_HELP_H
#define OPI_TEST_STORE_HELP_H
#include "base/mem.h"
#include "base/text.h"
#include "swap/store.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char store[64]; /* the folder of checkpoints */

/* Name inside `store`; a few may be in use at a time. */
__attribute__((unused)) static const char *at(const char *name)
{
    static char path[4][512];
    static int next;
    next = (next + 1) % 4;
    opi__format(path[next], sizeof path[next], "%s/%s", store, name);
    return path[next];
}

/* Removes what is in a folder; returns how many entries there were. */
static int clear(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char full[1024];
        opi__format(full, sizeof full, "%s/%s", folder, e->d_name);
        struct stat st;
        ck_assert_int_eq(lstat(full, &st), 0);
        if (S_ISDIR(st.st_mode)) {
            clear(full);
            ck_assert_int_eq(rmdir(full), 0);
        } else {
            ck_assert_int_eq(unlink(full), 0);
        }
        n++;
    }
    closedir(d);
    return n;
}

static void store_open(const char *above)
{
    opi__format(store, sizeof store, "%s/opi-store-XXXXXX", above);
    ck_assert_ptr_nonnull(mkdtemp(store));
}

__attribute__((unused)) static void store_make(void)
{
    store_open("/tmp");
}

__attribute__((unused)) static void store_remove(void)
{
    clear(store);
    ck_assert_int_eq(rmdir(store), 0);
}

__attribute__((unused)) static int entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    if (!d)
        return -1;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

__attribute__((unused)) static void put_file(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

/* At most `most` bytes of a file; returns how many it has. */
__attribute__((unused)) static size_t get_file(const char *path, void *bytes, size_t most)
{
    int fd = open(path, O_RDONLY);
    ck_assert_msg(fd >= 0, "%s cannot be opened", path);
    ssize_t n = read(fd, bytes, most);
    close(fd);
    ck_assert_int_ge(n, 0);
    return (size_t)n;
}

/* The payload of a shard follows from its name, so what is read back can be judged by itself. */
static size_t payload_size(const opi__shard_id *id)
{
    return (size_t)(1000 + 37 * (id->step % 5) + 11 * id->slot + id->part);
}

static void payload(const opi__shard_id *id, unsigned char *bytes)
{
    uint64_t x = (uint64_t)id->step * 1000003 + id->save * 97 + (uint64_t)(id->slot * 2 + id->part);
    for (size_t i = 0, n = payload_size(id); i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (unsigned char)(x >> 56);
    }
}

static int32_t put_shard(const char *dir, const opi__shard_id *id, opi_error *err)
{
    unsigned char bytes[2000];
    payload(id, bytes);
    return opi__store_write(dir, id, bytes, payload_size(id), err);
}

/* A 2 x 2 x 1 grid: four shards of part 0, and part 1 of the second row. */
static const opi__grid small_grid = {2, 2, 1};
#define SMALL_SHARDS 6

static opi__shard_id small_shard(int64_t step, uint64_t save, int32_t i)
{
    return (opi__shard_id){step, save, i < 4 ? i : i - 2, i >= 4};
}

static opi__store_mark small_mark(int64_t step, uint64_t save)
{
    return (opi__store_mark){step, save, small_grid, 1};
}

/* All of a checkpoint. Returns the first failure. */
static int32_t put_checkpoint(const char *dir, int64_t step, uint64_t save, opi_error *err)
{
    int32_t status = OPI_OK;
    for (int32_t i = 0; i < SMALL_SHARDS && !status; i++) {
        const opi__shard_id id = small_shard(step, save, i);
        status = put_shard(dir, &id, err);
    }
    const opi__store_mark mark = small_mark(step, save);
    return status ? status : opi__store_complete(dir, &mark, err);
}

/* NULL, or what is wrong with the checkpoint that `mark` promises. */
static const char *judge(const char *dir, const opi__store_mark *mark)
{
    static char words[600];
    if (memcmp(&mark->grid, &small_grid, sizeof small_grid) != 0 || mark->common_row != 1)
        return "another grid";
    for (int32_t i = 0; i < SMALL_SHARDS; i++) {
        const opi__shard_id id = small_shard(mark->step, mark->save, i);
        unsigned char want[2000];
        void *bytes = NULL;
        size_t size = 0;
        opi_error e;
        if (opi__store_read(NULL, dir, &id, &bytes, &size, &e) != OPI_OK) {
            opi__format(words, sizeof words, "%s", e.message);
            return words;
        }
        payload(&id, want);
        int same = size == payload_size(&id) && memcmp(bytes, want, size) == 0;
        opi__free(NULL, bytes);
        if (!same)
            return "other bytes than were saved";
    }
    return NULL;
}

/* What list told. */
typedef struct told {
    int lines;
    char text[16][496];
} told;

static void tell(void *user, const char *line)
{
    told *t = user;
    if (t->lines < 16)
        opi__copy_text(t->text[t->lines], sizeof t->text[0], line);
    t->lines++;
}

/* Steps of the complete checkpoints, "30 20 "; each must be readable whole. */
__attribute__((unused)) static const char *listed(const char *dir, told *t)
{
    static char words[256];
    opi__store_mark *marks = NULL;
    size_t count = 99;
    opi_error e;
    told none = {0, {""}};
    if (!t)
        t = &none;
    t->lines = 0;
    ck_assert_msg(opi__store_list(NULL, dir, tell, t, &marks, &count, &e) == OPI_OK, "%s", e.message);
    words[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *wrong = judge(dir, &marks[i]);
        ck_assert_msg(!wrong, "step %lld: %s", (long long)marks[i].step, wrong);
        size_t n = strlen(words);
        opi__format(words + n, sizeof words - n, "%lld ", (long long)marks[i].step);
    }
    opi__free(NULL, marks);
    return words;
}
#endif
