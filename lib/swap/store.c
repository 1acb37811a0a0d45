/* SPDX-License-Identifier: Apache-2.0 */
#include "swap/store.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/status.h"
#include "swap/store_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* renameat */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- writing ---- */

/* A folder that may not be opened for reading is let pass: it cannot be synced, and the files in it are. */
static int sync_path(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    int r = opi__sync(fd), code = errno;
    close(fd);
    errno = code;
    return r;
}

static int32_t sync_parent(const char *dir, opi_error *err)
{
    char path[OPI__STORE_PATH];
    if (opi__format(path, sizeof path, "%s/..", dir) < sizeof path && sync_path(path) != 0 && errno != EROFS)
        return opi__fail_system(err, "cannot write to the disk the folder above", dir, errno);
    return OPI_OK;
}

/* The step's folder, and the one above it when only that is missing; several ranks do this at the same time. */
static int32_t make_step(const char *dir, int64_t step, opi_error *err)
{
    char path[OPI__STORE_PATH];
    int32_t status = opi__store_path(path, dir, step, NULL, err);
    if (status)
        return status;
    int made = mkdir(path, 0777) == 0;
    if (!made && errno == ENOENT) {
        if (mkdir(dir, 0777) == 0)
            status = sync_parent(dir, err);
        else if (errno != EEXIST)
            status = opi__fail_system(err, "cannot make the folder", dir, errno);
        if (status)
            return status;
        made = mkdir(path, 0777) == 0;
    }
    if (made)
        return sync_path(dir) == 0 ? OPI_OK : opi__fail_system(err, "cannot write to the disk", dir, errno);
    if (errno != EEXIST)
        return opi__fail_system(err, "cannot make the folder", path, errno);
    struct stat st; /* a link would lead the files somewhere else */
    if (lstat(path, &st) != 0)
        return opi__fail_system(err, "cannot examine", path, errno);
    return S_ISDIR(st.st_mode) ? OPI_OK : opi__fail_system(err, "cannot write into", path, ENOTDIR);
}

static uint64_t payload_sum(const unsigned char *bytes, size_t size)
{
    uint64_t sum = 0;
    for (size_t at = 0; at < size; at += OPI__STORE_BLOCK)
        sum = opi__store_add_block(sum, bytes + at, size - at < OPI__STORE_BLOCK ? size - at : OPI__STORE_BLOCK);
    return sum;
}

int32_t opi__store_write(const char *dir, const opi__shard_id *id, const void *bytes, size_t size, opi_error *err)
{
    char path[OPI__STORE_PATH], name[OPI__STORE_NAME];
    unsigned char header[OPI__STORE_HEADER];
    int32_t status = opi__store_check_id(id, err);
    if (status)
        return status;
    if (!bytes && size > 0)
        return opi__fail(err, OPI_E_INVALID, -1, "the shard of %zu bytes is NULL", size);
    opi__store_shard_name(name, id); /* with the save in it: another save's shard is another file */
    status = opi__store_path(path, dir, id->step, name, err);
    if (!status)
        status = make_step(dir, id->step, err);
    if (status)
        return status;
    const opi__shard_header h = {*id, size, payload_sum(bytes, size)};
    opi__store_put_shard(header, &h);
    const opi__piece piece[2] = {{header, sizeof header}, {bytes, size}};
    return opi__write_pieces_atomic(path, piece, 2, err);
}

int32_t opi__store_complete(const char *dir, const opi__store_mark *mark, opi_error *err)
{
    char path[OPI__STORE_PATH];
    unsigned char bytes[OPI__STORE_HEADER];
    int32_t status = opi__store_check_mark(mark, err);
    if (!status)
        status = opi__store_path(path, dir, mark->step, OPI__STORE_COMPLETE, err);
    if (status)
        return status;
    /* Whoever made the folders may have died before it synced them; the others only found them there. */
    if (sync_path(dir) != 0)
        return opi__fail_system(err, "cannot write to the disk", dir, errno);
    status = sync_parent(dir, err);
    if (status)
        return status;
    opi__store_put_mark(bytes, mark);
    const opi__piece piece = {bytes, sizeof bytes};
    return opi__write_pieces_atomic(path, &piece, 1, err);
}

/* ---- removing: only files that a save made; what else lies in a folder stays, and so does the folder ---- */

/* Which shards go. */
enum { ALL, ONLY_SAVE, OTHER_SAVES };
typedef struct sweep {
    int which;
    uint64_t save;
} sweep;

static int goes(const sweep *s, const char *name)
{
    opi__shard_id id;
    if (opi__store_parse_shard(name, &id))
        return s->which == ALL || (id.save == s->save) == (s->which == ONLY_SAVE);
    if (opi__store_is_temporary(name))
        return s->which != ONLY_SAVE;
    return s->which == ALL && strcmp(name, OPI__STORE_REFUSED) == 0;
}

/* Of several failures the first is told. */
static int32_t first_failure(int32_t status, const char *what, const char *dir, int64_t step, const char *name,
                             int code, opi_error *err)
{
    char path[OPI__STORE_PATH];
    if (status || opi__store_path(path, dir, step, name, err))
        return status ? status : OPI_E_IO;
    return opi__fail_system(err, what, path, code);
}

/* 0, or -1 and errno. What is gone already is fine, and a folder is nothing that a save made. */
static int unlink_file(int folder, const char *name)
{
    struct stat st;
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT || errno == EISDIR)
        return 0;
    int code = errno;
    if (code == EPERM && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return 0; /* POSIX's word for EISDIR */
    errno = code;
    return -1;
}

static int32_t sweep_folder(int folder, const char *dir, int64_t step, const sweep *s, opi_error *err)
{
    int32_t status = OPI_OK;
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    if (!d) {
        status = first_failure(status, "cannot read the folder", dir, step, NULL, errno, err);
        if (copy >= 0)
            close(copy);
        return status;
    }
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e) {
            if (errno)
                status = first_failure(status, "cannot read the folder", dir, step, NULL, errno, err);
            break;
        }
        if (!goes(s, e->d_name))
            continue;
        if (unlink_file(folder, e->d_name) != 0)
            status = first_failure(status, "cannot remove", dir, step, e->d_name, errno, err);
    }
    closedir(d);
    return status;
}

/* Removes the mark of a checkpoint and makes that last, before any of its shards goes. */
static int32_t remove_mark(int folder, const char *dir, int64_t step, opi_error *err)
{
    if (unlink_file(folder, OPI__STORE_COMPLETE) != 0)
        return first_failure(OPI_OK, "cannot remove", dir, step, OPI__STORE_COMPLETE, errno, err);
    if (opi__sync(folder) != 0)
        return first_failure(OPI_OK, "cannot write to the disk", dir, step, NULL, errno, err);
    return OPI_OK;
}

static int32_t remove_folder(int top, const char *dir, int64_t step, opi_error *err)
{
    char name[OPI__STORE_NAME];
    opi__store_step_name(name, step);
    if (unlinkat(top, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST)
        return OPI_OK;
    return first_failure(OPI_OK, "cannot remove the folder", dir, step, NULL, errno, err);
}

/* All of a step. A link or a file of that name is not a save's and stays. */
static int32_t remove_step(int top, const char *dir, int64_t step, opi_error *err)
{
    static const sweep all = {ALL, 0};
    int folder = -1;
    int32_t status = opi__store_open_step(top, dir, step, &folder, err);
    if (status)
        return status == OPI_E_FORMAT ? OPI_OK : status;
    status = remove_mark(folder, dir, step, err);
    if (!status)
        status = sweep_folder(folder, dir, step, &all, err);
    close(folder);
    return status ? status : remove_folder(top, dir, step, err);
}

/* Ends what opi__store_scan began. `status` is that of the work; *err is told of it already. */
static int32_t leave(opi_ctx *ctx, const char *dir, int top, int64_t *steps, int32_t status, opi_error *err)
{
    if (top < 0)
        return status;
    opi__free(ctx, steps);
    if (opi__sync(top) != 0 && !status)
        status = opi__fail_system(err, "cannot write to the disk", dir, errno);
    close(top);
    return status;
}

int32_t opi__store_prune(opi_ctx *ctx, const char *dir, int32_t keep, opi_error *err)
{
    int top = -1;
    int64_t *steps = NULL;
    size_t n = 0;
    if (keep < 1)
        return opi__fail(err, OPI_E_RANGE, -1, "%d checkpoints are to be kept, the least is 1", keep);
    int32_t status = opi__store_scan(ctx, dir, NULL, NULL, &top, &steps, &n, err), complete = 0;
    if (status)
        return status;
    for (size_t i = 0; i < n; i++) {
        opi_error why;
        opi__store_mark mark;
        if (complete < keep) {
            int32_t is = opi__store_check_step(top, dir, steps[i], &mark, NULL);
            if (!is)
                complete++;
            /* Newer than all complete ones: perhaps in the making. Unreadable just now: perhaps complete. */
            if (is != OPI_E_FORMAT || complete == 0)
                continue;
        }
        int32_t failed = remove_step(top, dir, steps[i], &why);
        if (failed && !status) {
            status = failed;
            if (err)
                *err = why;
        }
    }
    return leave(ctx, dir, top, steps, status, err);
}

int32_t opi__store_discard(const char *dir, int64_t step, uint64_t save, opi_error *err)
{
    char path[OPI__STORE_PATH];
    int32_t status = opi__store_path(path, dir, step, NULL, err);
    if (status)
        return status;
    int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), folder = -1;
    if (top < 0)
        return errno == ENOENT ? OPI_OK : opi__fail_system(err, "cannot open the folder", dir, errno);
    opi_error why;
    status = opi__store_open_step(top, dir, step, &folder, &why);
    if (!status) {
        const sweep mine = {ONLY_SAVE, save};
        opi__store_mark mark;
        if (opi__store_read_mark(folder, dir, step, OPI__STORE_COMPLETE, &mark, NULL) == OPI_OK && mark.save == save)
            status = remove_mark(folder, dir, step, &why);
        if (!status)
            status = sweep_folder(folder, dir, step, &mine, &why);
        close(folder);
        if (!status)
            status = remove_folder(top, dir, step, &why); /* stays when it is not empty */
    } else if (status == OPI_E_FORMAT) {
        status = OPI_OK; /* no folder, no shards */
    }
    close(top);
    if (status && err)
        *err = why;
    return status;
}

/* ---- going back ---- */

/* `complete` of a newer checkpoint becomes `refused`; without either, the folder is half-written. */
static int32_t refuse(int top, int folder, const char *dir, int64_t step, opi_error *err)
{
    sweep left = {ALL, 0};
    opi__store_mark mark;
    int32_t status;
    int marked = renameat(folder, OPI__STORE_COMPLETE, folder, OPI__STORE_REFUSED) == 0;
    if (marked) {
        if (opi__sync(folder) != 0)
            return first_failure(OPI_OK, "cannot write to the disk", dir, step, NULL, errno, err);
    } else if (errno != ENOENT) {
        return first_failure(OPI_OK, "cannot rename", dir, step, OPI__STORE_COMPLETE, errno, err);
    }
    status = opi__store_read_mark(folder, dir, step, OPI__STORE_REFUSED, &mark, err);
    if (status && status != OPI_E_FORMAT)
        return status == OPI_E_VERSION ? OPI_OK : status;
    struct stat st; /* a mark that is there and cannot be read: which shards it had is not known, so all stay */
    if (status && (marked || fstatat(folder, OPI__STORE_REFUSED, &st, AT_SYMLINK_NOFOLLOW) == 0))
        return OPI_OK;
    if (!status)
        left = (sweep){OTHER_SAVES, mark.save};
    status = sweep_folder(folder, dir, step, &left, err);
    return status || left.which != ALL ? status : remove_folder(top, dir, step, err);
}

static int32_t go_back(int top, const char *dir, int64_t step, int64_t to, opi_error *err)
{
    int folder = -1;
    opi__store_mark mark;
    int32_t status = opi__store_open_step(top, dir, step, &folder, err);
    if (status)
        return status == OPI_E_FORMAT ? OPI_OK : status;
    if (step > to) {
        status = refuse(top, folder, dir, step, err);
    } else if (opi__store_read_mark(folder, dir, step, OPI__STORE_COMPLETE, &mark, NULL) == OPI_OK) {
        const sweep left = {OTHER_SAVES, mark.save};
        status = sweep_folder(folder, dir, step, &left, err);
    }
    close(folder);
    return status;
}

int32_t opi__store_resume(opi_ctx *ctx, const char *dir, int64_t step, opi_error *err)
{
    int top = -1;
    int64_t *steps = NULL;
    size_t n = 0;
    int32_t status = opi__store_scan(ctx, dir, NULL, NULL, &top, &steps, &n, err);
    if (status)
        return status;
    for (size_t i = 0; i < n && steps[i] >= step; i++) {
        opi_error why;
        int32_t failed = go_back(top, dir, steps[i], step, &why);
        if (failed && !status) {
            status = failed;
            if (err)
                *err = why;
        }
    }
    return leave(ctx, dir, top, steps, status, err);
}
