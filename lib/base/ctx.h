/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPI_BASE_CTX_H
#define OPI_BASE_CTX_H
#include "base/file.h"
#include "base/parallel.h"
#include "base/text.h"
#include "omnipilot/types.h"

struct opi_ctx {
    opi_allocator allocator;
    opi_log_fn log;
    void *log_user;
};
OPI__FORMAT(3, 4) void opi__log(opi_ctx *ctx, int32_t level, const char *fmt, ...); /* opi__vformat's directives */
struct opi_text {
    opi_ctx *ctx;
    size_t size;
    char data[];
};
#endif
