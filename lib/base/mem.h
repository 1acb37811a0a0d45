/* SPDX-License-Identifier: Apache-2.0 */
/* Memory through the context's allocator. Sizes are checked for overflow; NULL on failure. */
#ifndef OPI_BASE_MEM_H
#define OPI_BASE_MEM_H
#include "omnipilot/types.h"

void *opi__alloc(opi_ctx *ctx, size_t n, size_t size);  /* n * size bytes, uninitialized; n * size == 0 gives 1 byte */
void *opi__zalloc(opi_ctx *ctx, size_t n, size_t size); /* zeroed */
void *opi__resize(opi_ctx *ctx, void *p, size_t n, size_t size);
void opi__free(opi_ctx *ctx, void *p);

/* Bump arena for many small things that die together. */
typedef struct opi__arena {
    opi_ctx *ctx;
    struct opi__arena_block *head;
} opi__arena;
void opi__arena_init(opi__arena *a, opi_ctx *ctx);
void *opi__arena_alloc(opi__arena *a, size_t size); /* 16-byte aligned, zeroed; NULL on failure */
char *opi__arena_text(opi__arena *a, const char *s, size_t n); /* NUL-terminated copy */
void opi__arena_free(opi__arena *a);
#endif
