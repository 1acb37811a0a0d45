/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPI_BASE_FILE_H
#define OPI_BASE_FILE_H
#include "omnipilot/types.h"

/* Reads a whole regular file, at most `limit` bytes. A NUL stands behind the last byte, outside *size. Owner: the
 * caller, opi__free. Errors: OPI_E_IO, OPI_E_RANGE (larger than limit), OPI_E_NOMEM. */
int32_t opi__read_file(opi_ctx *ctx, const char *path, size_t limit, char **bytes, size_t *size, opi_error *err);
/* Temporary file beside `path`, fsync, rename, directory fsync: after a failure `path` is what it was. A symbolic link
 * is followed; what is there and not a regular file is refused. */
int32_t opi__write_file_atomic(const char *path, const void *bytes, size_t size, opi_error *err);

typedef struct opi__piece {
    const void *bytes;
    size_t size;
} opi__piece;
/* The same for a file of several pieces, one behind the other; what is at `path`, a symbolic link too, is replaced. */
int32_t opi__write_pieces_atomic(const char *path, const opi__piece *piece, size_t count, opi_error *err);

/* OPI_E_IO, "what 'path': why" with the system's words for the errno `code`. */
int32_t opi__fail_system(opi_error *err, const char *what, const char *path, int code);
/* Opens a regular file to read it; `flags` are added to open's (O_NOFOLLOW). `folder`: a descriptor that `name` is
 * relative to, or AT_FDCWD; `path` is what messages say. After a failure errno is the reason, 0 when it is no regular
 * file. Errors: OPI_E_IO. */
int32_t opi__open_regular(int folder, const char *name, int flags, const char *path, int *fd, uint64_t *size,
                          opi_error *err);
/* fsync of an open file or folder; 0, or -1 and errno. A file system that cannot do it and says so is no failure. */
int opi__sync(int fd);
#endif
