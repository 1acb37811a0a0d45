/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPI_BASE_CTX_H
#define OPI_BASE_CTX_H
#include "omnipilot/types.h"

struct opi_ctx {
    opi_allocator allocator;
    opi_log_fn log;
    void *log_user;
};
void opi__log(opi_ctx *ctx, int32_t level, const char *fmt, ...); /* opi__vformat's directives */
struct opi_text {
    opi_ctx *ctx;
    size_t size;
    char data[];
};
/* Reads a whole regular file, at most `limit` bytes. Owner: the caller, opi__free. */
int32_t opi__read_file(opi_ctx *ctx, const char *path, size_t limit, char **bytes, size_t *size, opi_error *err);
/* Temporary file beside `path`, fsync, rename, directory fsync. */
int32_t opi__write_file_atomic(const char *path, const void *bytes, size_t size, opi_error *err);
/* Runs fn(user, i) for i in [0, n) on up to `threads` threads (POSIX), joined before it returns. threads <= 1: in place.
 * A thread that cannot start is not an error: its work is done by the others. */
void opi__parallel(int32_t threads, size_t n, void (*fn)(void *user, size_t i), void *user);
int32_t opi__cores(void);
#endif
