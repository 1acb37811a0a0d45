/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ctx.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/take.h"

#include <string.h>

int32_t opi_ctx_create(const opi_ctx_options *options, opi_ctx **out, opi_error *err)
{
    opi_ctx_options o;
    memset(&o, 0, sizeof o);
    if (!out)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_ctx_create: out is NULL");
    if (options) {
        int32_t status = opi__take(&o, sizeof o, options, "opi_ctx_options", err);
        if (status)
            return status;
    }
    int given = !!o.allocator.alloc + !!o.allocator.resize + !!o.allocator.release;
    if (given != 0 && given != 3)
        return opi__fail(err, OPI_E_INVALID, -1,
                         "opi_ctx_options.allocator has %d of its 3 functions: give alloc, resize and release, or none",
                         given);
    opi_ctx made = {o.allocator, o.log, o.log_user};
    opi_ctx *ctx = opi__alloc(&made, 1, sizeof *ctx);
    if (!ctx)
        return opi__fail_memory(err, sizeof *ctx);
    *ctx = made;
    *out = ctx;
    return OPI_OK;
}

void opi_ctx_destroy(opi_ctx *ctx)
{
    if (!ctx)
        return;
    opi_ctx last = *ctx; /* the allocator must not be read from the memory it frees */
    opi__free(&last, ctx);
}

void opi__log(opi_ctx *ctx, int32_t level, const char *fmt, ...)
{
    if (!ctx || !ctx->log)
        return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    opi__vformat(line, sizeof line, fmt, ap);
    va_end(ap);
    for (char *p = line; *p; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    ctx->log(ctx->log_user, level, line);
}

#define TEXT_OF(x) TEXT_OF_(x)
#define TEXT_OF_(x) #x

const char *opi_version(void)
{
    return TEXT_OF(OPI_VERSION_MAJOR) "." TEXT_OF(OPI_VERSION_MINOR) "." TEXT_OF(OPI_VERSION_PATCH);
}

const char *opi_status_name(int32_t code)
{
    static const char *const names[] = {
        "OPI_OK", "OPI_E_INVALID", "OPI_E_NOMEM", "OPI_E_IO", "OPI_E_FORMAT", "OPI_E_VERSION", "OPI_E_UNKNOWN",
        "OPI_E_AMBIGUOUS", "OPI_E_RANGE", "OPI_E_INFEASIBLE", "OPI_E_NODATA", "OPI_E_CANCELED", "OPI_E_BUFFER",
        "OPI_E_UNSUPPORTED", "OPI_E_INTERNAL", "OPI_E_FENCED", "OPI_E_LOST"};
    const int32_t last = (int32_t)(sizeof names / sizeof names[0]) - 1;
    return code <= 0 && code >= -last ? names[-code] : "OPI_E_?";
}

const char *opi_text_data(const opi_text *text)
{
    return text ? text->data : "";
}

size_t opi_text_size(const opi_text *text)
{
    return text ? text->size : 0;
}

void opi_text_free(opi_text *text)
{
    if (text)
        opi__free(text->ctx, text);
}
