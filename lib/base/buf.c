/* SPDX-License-Identifier: Apache-2.0 */
/* The growable buffer of text.h; apart from text.c because it is the part that allocates. */
#include "base/ctx.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"

#include <string.h>

void opi__buf_init(opi__buf *b, opi_ctx *ctx)
{
    memset(b, 0, sizeof *b);
    b->ctx = ctx;
}

/* Room for n more bytes and the NUL. */
static int reserve(opi__buf *b, size_t n)
{
    if (b->status)
        return 0;
    if (n < b->cap - b->len)
        return 1;
    size_t want = b->cap < 64 ? 64 : b->cap;
    while (want - b->len <= n && want <= SIZE_MAX / 2)
        want *= 2;
    char *data = want - b->len > n ? opi__resize(b->ctx, b->data, want, 1) : NULL;
    if (!data) {
        b->status = OPI_E_NOMEM;
        return 0;
    }
    b->data = data;
    b->cap = want;
    return 1;
}

void opi__buf_put(opi__buf *b, const void *bytes, size_t n)
{
    if (!reserve(b, n))
        return;
    if (n > 0)
        memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void opi__buf_puts(opi__buf *b, const char *s)
{
    opi__buf_put(b, s, strlen(s));
}

void opi__buf_format(opi__buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    size_t n = opi__vformat(NULL, 0, fmt, ap);
    if (reserve(b, n)) {
        opi__vformat(b->data + b->len, n + 1, fmt, again);
        b->len += n;
    }
    va_end(again);
    va_end(ap);
}

void opi__buf_free(opi__buf *b)
{
    opi__free(b->ctx, b->data);
    opi__buf_init(b, b->ctx);
}

int32_t opi__buf_text(opi__buf *b, opi_text **out, opi_error *err)
{
    size_t n = b->len;
    opi_text *text = b->status || n > SIZE_MAX - sizeof(opi_text) - 1 ? NULL
                                                                      : opi__alloc(b->ctx, 1, sizeof *text + n + 1);
    if (text) {
        text->ctx = b->ctx;
        text->size = n;
        if (n > 0)
            memcpy(text->data, b->data, n);
        text->data[n] = '\0';
    }
    opi__buf_free(b);
    if (!text)
        return opi__fail_memory(err, n);
    *out = text;
    return OPI_OK;
}
