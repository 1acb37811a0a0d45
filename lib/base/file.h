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
#endif
