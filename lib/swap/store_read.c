/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/mem.h"
#include "base/status.h"
#include "swap/store_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h> /* qsort */
#include <string.h>
#include <unistd.h>

/* ---- files ---- */

/* Nothing is there, or something that no save ever makes: damage. Anything else may pass (a server that is away). */
static int is_damage(int code)
{
    return code == 0 || code == ENOENT || code == ENOTDIR || code == ELOOP;
}

/* Up to `size` bytes; *got is less only at the end of the file. */
static int32_t read_bytes(int fd, void *bytes, size_t size, const char *path, size_t *got, opi_error *err)
{
    size_t n = 0;
    while (n < size) {
        ssize_t r = read(fd, (char *)bytes + n, size - n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return opi__fail_system(err, "cannot read", path, errno);
        if (r == 0)
            break;
        n += (size_t)r;
    }
    *got = n;
    return OPI_OK;
}

/* Opens a file of a step folder and reads its header. *fd stays open only on success. */
static int32_t open_headed(int folder, const char *name, const char *path, unsigned char header[OPI__STORE_HEADER],
                           int *fd, uint64_t *size, opi_error *err)
{
    int32_t status = opi__open_regular(folder, name, O_NOFOLLOW, path, fd, size, err);
    if (status) {
        if (!is_damage(errno))
            return status;
        if (err)
            err->code = OPI_E_FORMAT;
        return OPI_E_FORMAT;
    }
    size_t got = 0;
    memset(header, 0, OPI__STORE_HEADER);
    status = read_bytes(*fd, header, OPI__STORE_HEADER, path, &got, err);
    if (!status && got < OPI__STORE_HEADER && *size > got)
        *size = got; /* cut meanwhile */
    if (status)
        close(*fd);
    return status;
}

static int32_t open_shard(int folder, const char *dir, const opi__shard_id *id, char path[OPI__STORE_PATH], int *out,
                          opi__shard_header *header, opi_error *err)
{
    char name[OPI__STORE_NAME];
    unsigned char bytes[OPI__STORE_HEADER];
    opi__store_shard_name(name, id);
    int fd = -1;
    uint64_t size = 0;
    int32_t status = opi__store_path(path, dir, id->step, name, err);
    if (!status)
        status = open_headed(folder, name, path, bytes, &fd, &size, err);
    if (status)
        return status;
    status = opi__store_get_shard(bytes, size, path, header, err);
    const opi__shard_id *is = &header->id;
    if (!status && (is->step != id->step || is->save != id->save || is->slot != id->slot || is->part != id->part))
        status = opi__fail(err, OPI_E_FORMAT, 24, "damaged '%.280s': it is part %d of slot %d, step %lld, save %016llx",
                           path, is->part, is->slot, (long long)is->step, (unsigned long long)is->save);
    if (status)
        close(fd);
    else
        *out = fd;
    return status;
}

/* ---- checkpoints ---- */

int32_t opi__store_open_step(int top, const char *dir, int64_t step, int *folder, opi_error *err)
{
    char path[OPI__STORE_PATH], name[OPI__STORE_NAME];
    int32_t status = opi__store_path(path, dir, step, NULL, err);
    if (status)
        return status;
    opi__store_step_name(name, step);
    *folder = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*folder >= 0)
        return OPI_OK;
    int damage = is_damage(errno);
    status = opi__fail_system(err, "cannot open the folder", path, errno);
    if (damage && err)
        err->code = OPI_E_FORMAT;
    return damage ? OPI_E_FORMAT : status;
}

int32_t opi__store_read_mark(int folder, const char *dir, int64_t step, const char *name, opi__store_mark *mark,
                             opi_error *err)
{
    char path[OPI__STORE_PATH];
    unsigned char bytes[OPI__STORE_HEADER];
    int fd = -1;
    uint64_t size = 0;
    opi__store_mark found;
    int32_t status = opi__store_path(path, dir, step, name, err);
    if (!status)
        status = open_headed(folder, name, path, bytes, &fd, &size, err);
    if (status)
        return status;
    close(fd);
    status = opi__store_get_mark(bytes, size, path, &found, err);
    if (!status && found.step != step)
        status = opi__fail(err, OPI_E_FORMAT, 24, "damaged '%.280s': it is of step %lld", path, (long long)found.step);
    if (!status)
        *mark = found;
    return status;
}

/* The first shard that is missing or damaged ends it, so a mark that lies about its grid costs nothing. */
static int32_t check_shards(int folder, const char *dir, const opi__store_mark *mark, opi_error *err)
{
    char path[OPI__STORE_PATH];
    const int32_t row = mark->grid.tp * mark->grid.pp, slots = mark->grid.dp * row;
    const int32_t common = mark->common_row < 0 ? 0 : row;
    for (int32_t part = 0; part < 2; part++)
        for (int32_t i = 0; i < (part ? common : slots); i++) {
            const opi__shard_id id = {mark->step, mark->save, part ? mark->common_row * row + i : i, part};
            opi__shard_header header;
            int fd = -1;
            int32_t status = open_shard(folder, dir, &id, path, &fd, &header, err);
            if (status)
                return status;
            close(fd);
        }
    return OPI_OK;
}

int32_t opi__store_check_step(int top, const char *dir, int64_t step, opi__store_mark *mark, opi_error *err)
{
    int folder = -1;
    opi__store_mark found;
    int32_t status = opi__store_open_step(top, dir, step, &folder, err);
    if (status)
        return status;
    status = opi__store_read_mark(folder, dir, step, OPI__STORE_COMPLETE, &found, err);
    if (!status)
        status = check_shards(folder, dir, &found, err);
    close(folder);
    if (!status)
        *mark = found;
    return status;
}

/* ---- the folder of checkpoints ---- */

static int newest_first(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Makes room for one more of `count` elements of `size` bytes, doubling at powers of two. */
static void *room_for(opi_ctx *ctx, void *array, size_t count, size_t size)
{
    if (count > 0 && (count & (count - 1)) != 0)
        return array;
    return opi__resize(ctx, array, count > SIZE_MAX / 2 ? SIZE_MAX : count ? 2 * count : 1, size);
}

static int32_t collect_steps(opi_ctx *ctx, DIR *d, const char *dir, opi__store_tell tell, void *user, int64_t **steps,
                             size_t *count, opi_error *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e)
            return errno ? opi__fail_system(err, "cannot read the folder", dir, errno) : OPI_OK;
        int64_t step;
        if (opi__store_parse_step(e->d_name, &step)) {
            int64_t *grown = room_for(ctx, *steps, *count, sizeof **steps);
            if (!grown)
                return opi__fail_memory(err, (*count + 1) * sizeof **steps);
            *steps = grown;
            grown[(*count)++] = step;
        } else if (tell && e->d_name[0] != '.') {
            opi_error line;
            opi__fail(&line, OPI_E_FORMAT, -1, "'%.140s/%.140s' is no checkpoint: its name is not that of a step", dir,
                      e->d_name);
            tell(user, line.message);
        }
    }
}

int32_t opi__store_scan(opi_ctx *ctx, const char *dir, opi__store_tell tell, void *user, int *top, int64_t **steps,
                        size_t *count, opi_error *err)
{
    char path[OPI__STORE_PATH];
    int32_t status = opi__store_path(path, dir, 0, NULL, err);
    if (status)
        return status;
    *top = -1;
    *steps = NULL;
    *count = 0;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? OPI_OK : opi__fail_system(err, "cannot open the folder", dir, errno);
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    if (d) {
        status = collect_steps(ctx, d, dir, tell, user, steps, count, err);
        closedir(d);
    } else {
        status = opi__fail_system(err, "cannot read the folder", dir, errno);
        if (copy >= 0)
            close(copy);
    }
    if (status) {
        opi__free(ctx, *steps);
        close(fd);
        return status;
    }
    if (*count > 1)
        qsort(*steps, *count, sizeof **steps, newest_first);
    *top = fd;
    return OPI_OK;
}

int32_t opi__store_list(opi_ctx *ctx, const char *dir, void (*skipped)(void *user, const char *line), void *user,
                        opi__store_mark **marks, size_t *count, opi_error *err)
{
    int top = -1;
    int64_t *steps = NULL;
    opi__store_mark *list = NULL;
    size_t n = 0, found = 0;
    int32_t status = opi__store_scan(ctx, dir, skipped, user, &top, &steps, &n, err);
    for (size_t i = 0; i < n && !status; i++) {
        opi_error why = {0, 0, 0, ""};
        opi__store_mark mark;
        if (opi__store_check_step(top, dir, steps[i], &mark, &why)) {
            if (skipped)
                skipped(user, why.message);
            continue;
        }
        opi__store_mark *grown = room_for(ctx, list, found, sizeof *list);
        if (!grown) {
            status = opi__fail_memory(err, (found + 1) * sizeof *list);
            break;
        }
        list = grown;
        list[found++] = mark;
    }
    if (top >= 0) {
        opi__free(ctx, steps);
        close(top);
    }
    if (status) {
        opi__free(ctx, list);
        return status;
    }
    *marks = list;
    *count = found;
    return OPI_OK;
}

/* ---- one shard ---- */

/* Verified block by block, while a block is still in the cache. */
static int32_t read_payload(int fd, const char *path, const opi__shard_header *header, unsigned char *bytes,
                            opi_error *err)
{
    uint64_t sum = 0;
    for (size_t at = 0, size = (size_t)header->size; at < size;) {
        size_t n = size - at < OPI__STORE_BLOCK ? size - at : OPI__STORE_BLOCK, got = 0;
        int32_t status = read_bytes(fd, bytes + at, n, path, &got, err);
        if (status)
            return status;
        if (got < n)
            return opi__fail(err, OPI_E_FORMAT, (int64_t)(OPI__STORE_HEADER + at + got),
                             "damaged '%.280s': it ends after %zu of %zu bytes", path, at + got, size);
        sum = opi__store_add_block(sum, bytes + at, n);
        at += n;
    }
    if (sum != header->sum)
        return opi__fail(err, OPI_E_FORMAT, OPI__STORE_HEADER, "damaged '%.280s': the checksum of its %llu bytes does "
                         "not match", path, (unsigned long long)header->size);
    return OPI_OK;
}

static int32_t read_shard(opi_ctx *ctx, int folder, const char *dir, const opi__shard_id *id, void **bytes,
                          size_t *size, opi_error *err)
{
    char path[OPI__STORE_PATH];
    opi__shard_header header;
    int fd = -1;
    int32_t status = open_shard(folder, dir, id, path, &fd, &header, err);
    if (status)
        return status;
    /* The file really is that long: opi__store_get_shard compared it. */
    unsigned char *data = header.size <= SIZE_MAX ? opi__alloc(ctx, 1, (size_t)header.size) : NULL;
    if (!data)
        status = opi__fail(err, OPI_E_NOMEM, -1, "out of memory: '%.280s' has %llu bytes", path,
                           (unsigned long long)header.size);
    else
        status = read_payload(fd, path, &header, data, err);
    close(fd);
    if (status) {
        opi__free(ctx, data);
        return status;
    }
    *bytes = data;
    *size = (size_t)header.size;
    return OPI_OK;
}

int32_t opi__store_read(opi_ctx *ctx, const char *dir, const opi__shard_id *id, void **bytes, size_t *size,
                        opi_error *err)
{
    char path[OPI__STORE_PATH];
    int32_t status = opi__store_check_id(id, err);
    if (!status)
        status = opi__store_path(path, dir, id->step, NULL, err);
    if (status)
        return status;
    int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return opi__fail_system(err, "cannot open the folder", dir, errno);
    int folder = -1;
    status = opi__store_open_step(top, dir, id->step, &folder, err);
    close(top);
    if (status)
        return status;
    status = read_shard(ctx, folder, dir, id, bytes, size, err);
    close(folder);
    return status;
}
