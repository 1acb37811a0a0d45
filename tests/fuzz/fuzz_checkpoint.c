/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of checkpoints as the input says: each record makes or changes one of its files (whole files, edits of good
 * ones with the header's checksum put right again, foreign names, links, folders). Then it is listed, read, pruned and
 * gone back in; what is called complete must be readable and of a possible grid, whatever is refused must say why. */
#include "base/hash.h"
#include "base/mem.h"
#include "base/text.h"
#include "swap/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEADER 64
#define MOST_RECORDS 12

static char root[64], dir[80];
static unsigned char good_shard[HEADER + 16], good_mark[HEADER];

static void check(int holds)
{
    if (!holds)
        abort();
}

static void empty(int folder)
{
    DIR *d = fdopendir(folder);
    check(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || unlinkat(dirfd(d), e->d_name, 0) == 0)
            continue;
        int inner = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        check(inner >= 0);
        empty(inner);
        check(unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) == 0);
    }
    closedir(d);
}

static void clean(void)
{
    int folder = open(dir, O_RDONLY | O_DIRECTORY);
    check(folder >= 0);
    empty(folder);
}

static void finish(void)
{
    clean();
    rmdir(dir);
    rmdir(root);
}

static void get(const char *name, unsigned char *bytes, size_t size)
{
    char path[200];
    opi__format(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDONLY);
    check(fd >= 0 && read(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    const opi__shard_id id = {1, 2, 0, 0};
    const opi__store_mark mark = {1, 2, {1, 1, 1}, -1};
    opi__format(root, sizeof root, "%s/opi-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    check(mkdtemp(root) != NULL);
    opi__format(dir, sizeof dir, "%s/store", root);
    check(opi__store_write(dir, &id, "sixteen bytes ok", 16, NULL) == OPI_OK);
    check(opi__store_complete(dir, &mark, NULL) == OPI_OK);
    get("step-000000000001/slot-000000-part-0-0000000000000002", good_shard, sizeof good_shard);
    get("step-000000000001/complete", good_mark, sizeof good_mark);
    atexit(finish);
    return 0;
}

static void fix(unsigned char *bytes, size_t size)
{
    if (size < HEADER)
        return;
    memset(bytes + 16, 0, 8);
    uint64_t sum = opi__checksum64(bytes, HEADER);
    for (int i = 0; i < 8; i++)
        bytes[16 + i] = (unsigned char)(sum >> 8 * i);
}

/* Two bytes an edit: place and value. */
static void edit(unsigned char *bytes, size_t size, const uint8_t *e, size_t n)
{
    for (size_t i = 0; i + 2 <= n; i += 2)
        bytes[e[i] % size] = e[i + 1];
}

static void put(int folder, const char *name, const void *bytes, size_t size)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0)
        return; /* a folder or a link is there */
    check(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

/* head: what, step, slot (4 bits) and save (4 bits), number of bytes that follow. */
static void record(int top, const uint8_t *head, const uint8_t *more, size_t n)
{
    char step[32], name[300];
    unsigned char bytes[300];
    opi__format(step, sizeof step, "step-%012d", head[1] & 7);
    mkdirat(top, step, 0777);
    int folder = openat(top, step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (head[0] & 1)
        opi__format(name, sizeof name, "complete");
    else
        opi__format(name, sizeof name, "slot-%06d-part-%d-%016x", head[2] & 7, head[2] >> 3 & 1, head[2] >> 4 & 3);
    size_t size = head[0] & 1 ? sizeof good_mark : sizeof good_shard;
    memcpy(bytes, head[0] & 1 ? good_mark : good_shard, size);
    switch (folder < 0 ? 5 : head[0] >> 1 & 7) {
    case 0: /* a good file's bytes, changed */
        edit(bytes, size, more, n);
        put(folder, name, bytes, size);
        break;
    case 1: case 2: /* the same with the right checksum, and with the step, slot, part and save of its name first */
        bytes[24] = head[1] & 7;
        if (head[0] >> 1 & 2) {
            bytes[32] = head[2] >> 4 & 3;
            if (!(head[0] & 1)) {
                bytes[56] = head[2] & 7;
                bytes[60] = head[2] >> 3 & 1;
            }
        }
        edit(bytes, size, more, n);
        fix(bytes, size);
        put(folder, name, bytes, size);
        break;
    case 3: put(folder, name, more, n); break;
    case 4: put(folder, name, bytes, n < size ? n : size); break; /* cut */
    case 5: /* a foreign name in `dir` */
    case 6: /* or in the step's folder */
        memcpy(name, more, n);
        name[n] = '\0';
        if (!strchr(name, '/') && name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            if (head[2] & 1)
                mkdirat(folder >= 0 && head[0] >> 1 == 6 ? folder : top, name, 0777);
            else
                put(folder >= 0 && head[0] >> 1 == 6 ? folder : top, name, good_mark, sizeof good_mark);
        }
        break;
    default: /* a link, to a good file where there is one */
        unlinkat(folder, name, 0);
        check(symlinkat(head[2] & 1 ? "complete" : ".", folder, name) == 0 || access(dir, F_OK) == 0);
    }
    if (folder >= 0)
        close(folder);
}

static void told(void *user, const char *line)
{
    check(line[0] && !strchr(line, '\n') && strstr(line, dir));
    ++*(int *)user;
}

/* Reads all shards of a checkpoint that list called complete: their headers are good, so only the payload may fail. */
static void read_all(const opi__store_mark *m)
{
    const int64_t slots = (int64_t)m->grid.dp * m->grid.tp * m->grid.pp, row = slots / m->grid.dp;
    check(m->grid.dp > 0 && m->grid.tp > 0 && m->grid.pp > 0 && slots <= 8 && m->common_row < m->grid.dp);
    for (int64_t i = 0; i < slots + (m->common_row < 0 ? 0 : row); i++) {
        const opi__shard_id id = {m->step, m->save, (int32_t)(i < slots ? i : m->common_row * row + i - slots),
                                  i >= slots};
        opi_error e = {0, 0, 0, ""};
        void *bytes = NULL;
        size_t size = 0;
        if (opi__store_read(NULL, dir, &id, &bytes, &size, &e) == OPI_OK) {
            check(bytes && size <= 300);
            opi__free(NULL, bytes);
        } else {
            check(!bytes && e.code == OPI_E_FORMAT && strstr(e.message, "checksum"));
        }
    }
}

static size_t list(opi__store_mark **marks)
{
    int lines = 0;
    size_t count = 0;
    check(opi__store_list(NULL, dir, told, &lines, marks, &count, NULL) == OPI_OK);
    for (size_t i = 0; i < count; i++) {
        check(i == 0 || (*marks)[i].step < (*marks)[i - 1].step);
        read_all(&(*marks)[i]);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    opi__store_mark *before = NULL, *after = NULL;
    clean();
    int top = open(dir, O_RDONLY | O_DIRECTORY);
    check(top >= 0);
    for (size_t at = 0, k = 0; at + 4 <= size && k < MOST_RECORDS; k++) {
        size_t n = data[at + 3];
        if (n > size - at - 4)
            n = size - at - 4;
        record(top, data + at, data + at + 4, n);
        at += 4 + n;
    }
    close(top);
    size_t count = list(&before), keep = size > 0 ? data[size - 1] % 3 + 1 : 1;
    check(opi__store_prune(NULL, dir, (int32_t)keep, NULL) == OPI_OK);
    size_t left = list(&after);
    check(left == (count < keep ? count : keep));
    check(left == 0 || memcmp(before, after, left * sizeof *after) == 0);
    opi__free(NULL, after);
    after = NULL;
    int64_t to = count > 1 ? before[left - 1].step : -1; /* to the oldest that is left, or to none */
    opi_error e = {0, 0, 0, ""};
    if (opi__store_resume(NULL, dir, to, &e) == OPI_OK) {
        check(list(&after) == (to >= 0 ? 1 : 0));
        check(to < 0 || memcmp(after, &before[left - 1], sizeof *after) == 0);
    } else {
        check(e.code == OPI_E_IO && strstr(e.message, "cannot rename")); /* a folder `refused` is in the way */
    }
    opi__free(NULL, after);
    opi__free(NULL, before);
    return 0;
}
