/* SPDX-License-Identifier: Apache-2.0 */
#if !defined(_XOPEN_SOURCE)
#define _XOPEN_SOURCE 700 /* realpath */
#endif
#include "base/file.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h> /* rename */
#include <stdlib.h> /* realpath */
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

/* "what 'path': why" with the system's words for `code`. A long path is cut so that the reason stays visible. */
int32_t opi__fail_system(opi_error *err, const char *what, const char *path, int code)
{
    char words[128] = "";
    if (strerror_r(code, words, sizeof words) != 0 || !words[0])
        opi__format(words, sizeof words, "error %d", code);
    return opi__fail(err, OPI_E_IO, -1, "%s '%.280s': %s", what, path, words);
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

int32_t opi__open_regular(int folder, const char *name, int flags, const char *path, int *out, uint64_t *size,
                          opi_error *err)
{
    int fd, code = 0;
    do /* O_NONBLOCK: opening a pipe that nobody writes to must not wait */
        fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        code = errno;
        if (code == ELOOP && (flags & O_NOFOLLOW))
            opi__fail(err, OPI_E_IO, -1, "cannot open '%.280s': it is a symbolic link", path);
        else
            opi__fail_system(err, "cannot open", path, code);
        errno = code;
        return OPI_E_IO;
    }
    struct stat st;
    if (fstat(fd, &st) != 0) {
        code = errno;
        opi__fail_system(err, "cannot examine", path, code);
    } else if (!S_ISREG(st.st_mode)) {
        opi__fail(err, OPI_E_IO, -1, "cannot read '%.280s': it is %s, not a regular file", path, kind_of(st.st_mode));
    } else {
        *out = fd;
        *size = st.st_size > 0 ? (uint64_t)st.st_size : 0;
        return OPI_OK;
    }
    close(fd);
    errno = code;
    return OPI_E_IO;
}

static int32_t fail_large(opi_error *err, const char *path, uint64_t size, const char *or_more, size_t limit)
{
    return opi__fail(err, OPI_E_RANGE, -1, "'%.280s' has %llu bytes%s, the limit is %zu", path,
                     (unsigned long long)size, or_more, limit);
}

/* Reads to the end of the file, which may be longer than it said (it grows, or it is one of /proc). */
static int32_t read_all(opi_ctx *ctx, int fd, const char *path, size_t expected, size_t limit, char **bytes,
                        size_t *size, opi_error *err)
{
    size_t cap = expected + 2, len = 0; /* one byte to see the end, one for the NUL */
    char *data = opi__alloc(ctx, 1, cap);
    if (!data)
        return opi__fail_memory(err, cap);
    int32_t status = OPI_OK;
    for (;;) {
        ssize_t n = read(fd, data + len, cap - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            status = opi__fail_system(err, "cannot read", path, errno);
        if (n <= 0)
            break;
        len += (size_t)n;
        if (len > limit) {
            status = fail_large(err, path, (uint64_t)limit + 1, " or more", limit);
            break;
        }
        if (len < cap - 1)
            continue;
        size_t more = cap < 4096 ? 4096 : cap > SIZE_MAX / 2 ? SIZE_MAX : cap * 2;
        char *grown = opi__resize(ctx, data, 1, more);
        if (!grown) {
            status = opi__fail_memory(err, more);
            break;
        }
        data = grown;
        cap = more;
    }
    if (status) {
        opi__free(ctx, data);
        return status;
    }
    data[len] = '\0';
    *bytes = data;
    *size = len;
    return OPI_OK;
}

int32_t opi__read_file(opi_ctx *ctx, const char *path, size_t limit, char **bytes, size_t *size, opi_error *err)
{
    if (!path || !path[0])
        return opi__fail(err, OPI_E_INVALID, -1, "the path of the file to read is %s", path ? "empty" : "NULL");
    int fd = -1;
    uint64_t length = 0;
    int32_t status = opi__open_regular(AT_FDCWD, path, 0, path, &fd, &length, err);
    if (status)
        return status;
    if (length > limit)
        status = fail_large(err, path, length, "", limit);
    else
        status = read_all(ctx, fd, path, (size_t)length, limit, bytes, size, err);
    close(fd);
    return status;
}

/* ---- atomic write ---- */

static int32_t take_target(const char *path, char target[PATH_MAX], opi_error *err)
{
    if (!path || !path[0])
        return opi__fail(err, OPI_E_INVALID, -1, "the path of the file to write is %s", path ? "empty" : "NULL");
    size_t n = strlen(path);
    if (n >= PATH_MAX - 32)
        return opi__fail(err, OPI_E_RANGE, -1, "the path of the file to write has %zu bytes, the limit is %d", n,
                         PATH_MAX - 33);
    memcpy(target, path, n + 1);
    return OPI_OK;
}

/* Follows symbolic links; what is there already must be a regular file. */
static int32_t resolve_target(const char *path, char target[PATH_MAX], opi_error *err)
{
    int32_t status = take_target(path, target, err);
    if (status)
        return status;
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? OPI_OK : opi__fail_system(err, "cannot write", path, errno);
    if (S_ISLNK(st.st_mode)) {
        if (!realpath(path, target) || stat(target, &st) != 0)
            return opi__fail_system(err, "cannot follow the link", path, errno);
        if (strlen(target) >= PATH_MAX - 32)
            return opi__fail_system(err, "cannot follow the link", path, ENAMETOOLONG);
    }
    if (!S_ISREG(st.st_mode))
        return opi__fail(err, OPI_E_IO, -1, "cannot write '%.280s': it is %s, not a regular file", path,
                         kind_of(st.st_mode));
    return OPI_OK;
}

/* Length of the folder part, with its slash. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static int create_temporary(const char *target, char temp[PATH_MAX])
{
    size_t folder = folder_length(target);
    memcpy(temp, target, folder);
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = opi__fnv1a64((uint64_t)getpid() << 32 ^ (uint64_t)now.tv_nsec, target, strlen(target));
    for (uint64_t i = 0;; i++) {
        opi__format(temp + folder, PATH_MAX - folder, ".opi-%016llx.tmp",
                    (unsigned long long)opi__mix64(seed + (uint64_t)now.tv_sec + i));
        int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
        if (fd >= 0 || (errno != EEXIST && errno != EINTR) || i >= 1000)
            return fd;
    }
}

static int write_all(int fd, const char *p, size_t left)
{
    while (left > 0) {
        size_t step = left < (size_t)1 << 30 ? left : (size_t)1 << 30;
        ssize_t n = write(fd, p, step);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0) {
            errno = ENOSPC; /* POSIX leaves this open for regular files; an endless loop would be worse */
            return -1;
        }
        p += n;
        left -= (size_t)n;
    }
    return 0;
}

int opi__sync(int fd)
{
    int r;
    do
        r = fsync(fd);
    while (r != 0 && errno == EINTR);
    return r != 0 && errno != EINVAL && errno != ENOTSUP && errno != ENOSYS ? -1 : 0;
}

/* The rename itself must reach the disk. A folder that may not be opened for reading is let pass. */
static int sync_folder(char *target)
{
    size_t folder = folder_length(target);
    char kept = target[folder];
    target[folder] = '\0';
    int fd = open(folder ? target : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    target[folder] = kept;
    if (fd < 0)
        return 0;
    int r = opi__sync(fd), code = errno;
    close(fd);
    errno = code;
    return r;
}

static int write_pieces(int fd, const opi__piece *piece, size_t count)
{
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++)
        r = write_all(fd, piece[i].bytes, piece[i].size);
    return r;
}

/* `target` is where the file goes (it is changed and put right again), `path` what messages call it. */
static int32_t replace(char target[PATH_MAX], const char *path, const opi__piece *piece, size_t count, opi_error *err)
{
    char temp[PATH_MAX];
    int fd = create_temporary(target, temp);
    if (fd < 0)
        return opi__fail_system(err, "cannot create a temporary file beside", path, errno);
    const char *what = NULL;
    int code = 0;
    if (write_pieces(fd, piece, count) != 0) {
        what = "cannot write";
        code = errno;
    } else if (opi__sync(fd) != 0) {
        what = "cannot write to the disk";
        code = errno;
    }
    /* Network file systems report a full disk here. EINTR leaves the descriptor closed on Linux. */
    if (close(fd) != 0 && errno != EINTR && !what) {
        what = "cannot close";
        code = errno;
    }
    if (!what && rename(temp, target) != 0) {
        what = "cannot replace";
        code = errno;
    }
    if (what) {
        unlink(temp);
        return opi__fail_system(err, what, path, code);
    }
    if (sync_folder(target) != 0)
        return opi__fail_system(err, "written, but the folder could not be synced for", path, errno);
    return OPI_OK;
}

int32_t opi__write_file_atomic(const char *path, const void *bytes, size_t size, opi_error *err)
{
    char target[PATH_MAX];
    const opi__piece piece = {bytes, size};
    int32_t status = resolve_target(path, target, err);
    return status ? status : replace(target, path, &piece, 1, err);
}

int32_t opi__write_pieces_atomic(const char *path, const opi__piece *piece, size_t count, opi_error *err)
{
    char target[PATH_MAX];
    int32_t status = take_target(path, target, err);
    return status ? status : replace(target, path, piece, count, err);
}
