/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include "base/ctx.h"

#include <stdlib.h>
#include <string.h>

/* n * size, at least 1; 0 on overflow. Halves of the address space are refused too, as malloc does. */
static size_t total_size(size_t n, size_t size)
{
    if (n == 0 || size == 0)
        return 1;
    return n > (size_t)PTRDIFF_MAX / size ? 0 : n * size;
}

void *opi__alloc(opi_ctx *ctx, size_t n, size_t size)
{
    size_t total = total_size(n, size);
    if (total == 0)
        return NULL;
    return ctx && ctx->allocator.alloc ? ctx->allocator.alloc(ctx->allocator.user, total) : malloc(total);
}

void *opi__zalloc(opi_ctx *ctx, size_t n, size_t size)
{
    size_t total = total_size(n, size);
    if (total == 0)
        return NULL;
    if (!ctx || !ctx->allocator.alloc)
        return calloc(1, total);
    void *p = ctx->allocator.alloc(ctx->allocator.user, total);
    return p ? memset(p, 0, total) : NULL;
}

void *opi__resize(opi_ctx *ctx, void *p, size_t n, size_t size)
{
    size_t total = total_size(n, size);
    if (total == 0)
        return NULL;
    if (!p)
        return opi__alloc(ctx, n, size); /* a caller's resize need not accept NULL */
    return ctx && ctx->allocator.alloc ? ctx->allocator.resize(ctx->allocator.user, p, total) : realloc(p, total);
}

void opi__free(opi_ctx *ctx, void *p)
{
    if (!p)
        return;
    if (ctx && ctx->allocator.alloc)
        ctx->allocator.release(ctx->allocator.user, p);
    else
        free(p);
}

/* ---- arena ---- */

#define ARENA_ALIGN 16u
#define ARENA_BLOCK 65536u

struct opi__arena_block {
    struct opi__arena_block *next;
    size_t used, size; /* of the bytes behind the header */
};
#define ARENA_HEADER ((sizeof(struct opi__arena_block) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN)

void opi__arena_init(opi__arena *a, opi_ctx *ctx)
{
    a->ctx = ctx;
    a->head = NULL;
}

/* The block's first usable byte: aligned even when the caller's allocator only gives 8-byte alignment. */
static char *block_start(struct opi__arena_block *b)
{
    char *p = (char *)b + ARENA_HEADER;
    size_t off = (size_t)((uintptr_t)p % ARENA_ALIGN);
    return off ? p + (ARENA_ALIGN - off) : p;
}

static struct opi__arena_block *new_block(opi__arena *a, size_t size)
{
    if (size > (size_t)PTRDIFF_MAX - ARENA_HEADER - ARENA_ALIGN)
        return NULL;
    struct opi__arena_block *b = opi__alloc(a->ctx, 1, ARENA_HEADER + size + ARENA_ALIGN);
    if (b) {
        b->used = 0;
        b->size = size;
    }
    return b;
}

void *opi__arena_alloc(opi__arena *a, size_t size)
{
    if (size > (size_t)PTRDIFF_MAX - ARENA_ALIGN)
        return NULL;
    size_t need = (size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (need == 0)
        need = ARENA_ALIGN;
    struct opi__arena_block *b = a->head;
    if (!b || b->size - b->used < need) {
        int large = need > ARENA_BLOCK / 4;
        b = new_block(a, large ? need : ARENA_BLOCK);
        if (!b)
            return NULL;
        /* A large piece gets a block of its own behind the current one, which keeps its free space. */
        struct opi__arena_block **at = large && a->head ? &a->head->next : &a->head;
        b->next = *at;
        *at = b;
    }
    void *p = block_start(b) + b->used;
    b->used += need;
    return memset(p, 0, need);
}

char *opi__arena_text(opi__arena *a, const char *s, size_t n)
{
    char *p = n < SIZE_MAX ? opi__arena_alloc(a, n + 1) : NULL;
    if (p && n > 0)
        memcpy(p, s, n);
    return p;
}

void opi__arena_free(opi__arena *a)
{
    while (a->head) {
        struct opi__arena_block *next = a->head->next;
        opi__free(a->ctx, a->head);
        a->head = next;
    }
}
