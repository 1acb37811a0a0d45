/* SPDX-License-Identifier: Apache-2.0 */
#include "swap/blob.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/status.h"
#include <stdatomic.h>
#include <string.h>

#define MAGIC      0x31424f4c42504f00ull /* read with the other byte order it is another number */
#define ALIGN      64u
#define SUM_BLOCK  ((size_t)128 << 10)
#define COPY_BLOCK ((size_t)128 << 10) /* copied and summed while it is still in the cache */

typedef struct head {
    uint64_t magic, bytes;
    int64_t step;
    int32_t dp, slot, part;
    uint32_t count;
} head;

typedef struct entry {
    char name[OPI__NAME_BYTES];
    int32_t kind, reserved;
    uint64_t offset, size, total, element;
} entry;

int32_t opi__blob_part(int32_t kind, int32_t dp)
{
    switch (kind) {
    case OPI_SWAP_REPLICATED:
        return dp > 1 ? OPI__COMMON : OPI__UNIQUE;
    case OPI_SWAP_SHARDED:
    case OPI_SWAP_SMALL:
        return OPI__UNIQUE;
    default:
        return -1;
    }
}

static size_t aligned(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t members(const opi__state *state, size_t n, int32_t part, int32_t dp)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += opi__blob_part(state[i].kind, dp) == part;
    return count;
}

size_t opi__blob_bytes(const opi__state *state, size_t n, int32_t part, int32_t dp)
{
    size_t bytes = aligned(sizeof(head) + members(state, n, part, dp) * sizeof(entry));
    for (size_t i = 0; i < n; i++)
        if (opi__blob_part(state[i].kind, dp) == part)
            bytes += aligned((size_t)state[i].size);
    return bytes;
}

static const entry *table(const void *blob)
{
    return (const entry *)((const char *)blob + sizeof(head));
}

void opi__blob_begin(void *blob, const opi__blob_id *id, const opi__state *state, size_t n)
{
    head h = {MAGIC,    opi__blob_bytes(state, n, id->part, id->dp),  id->step, id->dp, id->slot,
              id->part, (uint32_t)members(state, n, id->part, id->dp)};
    size_t offset = aligned(sizeof h + h.count * sizeof(entry));
    entry *e = (entry *)((char *)blob + sizeof h);
    memset(blob, 0, offset);
    memcpy(blob, &h, sizeof h);
    for (size_t i = 0; i < n; i++) {
        if (opi__blob_part(state[i].kind, id->dp) != id->part)
            continue;
        memcpy(e->name, state[i].name, sizeof e->name);
        e->kind = state[i].kind;
        e->offset = offset;
        e->size = state[i].size;
        e->total = state[i].total;
        e->element = state[i].element;
        if (e->kind == OPI_SWAP_SMALL && e->size)
            memcpy((char *)blob + offset, state[i].data, (size_t)e->size);
        /* The gap behind a state is part of the checksum and of what is sent. */
        memset((char *)blob + offset + e->size, 0, aligned((size_t)e->size) - (size_t)e->size);
        offset += aligned((size_t)e->size);
        e++;
    }
}

static uint64_t word_at(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* One bijection of the word and of the lane, so that a change within one word always changes the result. */
static uint64_t stir(uint64_t lane, uint64_t word)
{
    uint64_t x = lane ^ word;
    return (x << 29 | x >> 35) * 0xd6e8feb86659fd93ull;
}

/* Faster than memory: one multiplication a word and eight lanes, where opi__checksum64 has two and four. These sums are
 * made and compared in one job on one kind of machine, never written down. */
static uint64_t sum_block(const char *p, size_t n)
{
    uint64_t a = 0x243f6a8885a308d3ull, b = 0x13198a2e03707344ull, c = 0xa4093822299f31d0ull, d = 0x082efa98ec4e6c89ull;
    uint64_t e = 0x452821e638d01377ull, f = 0xbe5466cf34e90c6cull, g = 0xc0ac29b7c97c50ddull, h = 0x3f84d5b5b5470917ull;
    size_t left = n;
    for (; left >= 64; left -= 64, p += 64) {
        a = stir(a, word_at(p));
        b = stir(b, word_at(p + 8));
        c = stir(c, word_at(p + 16));
        d = stir(d, word_at(p + 24));
        e = stir(e, word_at(p + 32));
        f = stir(f, word_at(p + 40));
        g = stir(g, word_at(p + 48));
        h = stir(h, word_at(p + 56));
    }
    const uint64_t lane[] = {a, b, c, d, e, f, g, h};
    uint64_t sum = opi__checksum64(p, left);
    for (size_t i = 0; i < sizeof lane / sizeof lane[0]; i++)
        sum = opi__mix64(sum ^ lane[i]);
    return sum;
}

/* Sums the full blocks of [*done, filled), the last partial one too when it is the end. */
static void sum_up_to(const void *blob, size_t filled, size_t end, size_t *done, uint64_t *sum)
{
    while (*done < filled) {
        size_t n = end - *done < SUM_BLOCK ? end - *done : SUM_BLOCK;
        if (*done + n > filled)
            return;
        *sum = opi__mix64(*sum ^ sum_block((const char *)blob + *done, n));
        *done += n;
    }
}

uint64_t opi__blob_sum(const void *blob, size_t bytes)
{
    size_t done = 0;
    uint64_t sum = bytes;
    sum_up_to(blob, bytes, bytes, &done, &sum);
    return sum;
}

static const opi__state *by_name(const opi__state *state, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strncmp(state[i].name, name, OPI__NAME_BYTES))
            return &state[i];
    return NULL;
}

static void publish(size_t *filled, size_t value)
{
    __atomic_store_n(filled, value, __ATOMIC_RELEASE);
}

int32_t opi__blob_fill(void *blob, const opi__state *state, size_t n, opi__copy_fn copy, void *user, size_t *filled,
                       uint64_t *sum)
{
    head h;
    memcpy(&h, blob, sizeof h);
    size_t bytes = (size_t)h.bytes, done = 0;
    uint64_t total = bytes;
    const entry *e = table(blob);
    for (uint32_t i = 0; i < h.count; i++, e++) {
        const opi__state *s = by_name(state, n, e->name);
        char *to = (char *)blob + e->offset;
        size_t end = i + 1 < h.count ? (size_t)e[1].offset : bytes;
        if (copy && e->kind != OPI_SWAP_SMALL) {
            int32_t rc = copy(user, OPI_SWAP_COPY_SAVE, s->name, s->data, to, e->size);
            if (rc)
                return rc;
        }
        for (size_t at = 0; at < e->size; at += COPY_BLOCK) {
            size_t piece = (size_t)e->size - at < COPY_BLOCK ? (size_t)e->size - at : COPY_BLOCK;
            if (!copy && e->kind != OPI_SWAP_SMALL)
                memcpy(to + at, (const char *)s->data + at, piece);
            sum_up_to(blob, (size_t)e->offset + at + piece, bytes, &done, &total);
            publish(filled, (size_t)e->offset + at + piece);
        }
        sum_up_to(blob, end, bytes, &done, &total);
        publish(filled, end);
    }
    sum_up_to(blob, bytes, bytes, &done, &total);
    *sum = total;
    publish(filled, bytes);
    return 0;
}

int opi__blob_valid(const void *blob, size_t bytes, const opi__blob_id *id)
{
    head h;
    if (bytes < sizeof h)
        return 0;
    memcpy(&h, blob, sizeof h);
    if (h.magic != MAGIC || h.bytes != bytes || h.count > OPI__STATES)
        return 0;
    if (id->step >= 0 && (h.step != id->step || h.dp != id->dp || h.slot != id->slot || h.part != id->part))
        return 0;
    if (bytes < sizeof h + h.count * sizeof(entry))
        return 0;
    for (uint32_t i = 0; i < h.count; i++) {
        const entry *e = table(blob) + i;
        if (e->offset > bytes || e->size > bytes - e->offset || !memchr(e->name, 0, sizeof e->name))
            return 0;
        if (e->total && (!e->element || e->size % e->element))
            return 0;
    }
    return 1;
}

static const entry *find(const void *blob, const char *name)
{
    head h;
    if (!blob)
        return NULL;
    memcpy(&h, blob, sizeof h);
    for (uint32_t i = 0; i < h.count; i++)
        if (!strcmp(table(blob)[i].name, name))
            return table(blob) + i;
    return NULL;
}

static int32_t copy_in(const opi__blob_source *r, const opi__state *s, void *to, const void *from, uint64_t bytes,
                       opi_error *err)
{
    if (!bytes)
        return OPI_OK;
    if (!r->copy || s->kind == OPI_SWAP_SMALL) {
        memcpy(to, from, (size_t)bytes);
        return OPI_OK;
    }
    int32_t rc = r->copy(r->user, OPI_SWAP_COPY_RESTORE, s->name, to, (void *)(uintptr_t)from, bytes);
    if (!rc)
        return OPI_OK;
    return opi__fail(err, OPI_E_INVALID, -1, "callback copy returned %d while it restored state \"%s\"", (int)rc,
                     s->name);
}

/* Room for what was saved. */
static int32_t fit_size(const opi__blob_source *r, opi__state *s, const entry *e, uint64_t size, opi_error *err)
{
    void *data = s->data;
    if (size == s->size && e->total == s->total && e->element == s->element)
        return OPI_OK;
    if (!r->resize)
        return opi__fail(err, OPI_E_FORMAT, -1,
                         "state \"%s\" has %llu bytes here and %llu bytes as saved, and there is no resize callback",
                         s->name, (unsigned long long)s->size, (unsigned long long)size);
    int32_t rc = r->resize(r->user, s->name, size, &data);
    if (rc || (size && !data))
        return opi__fail(err, OPI_E_INVALID, -1, "callback resize returned %d for %llu bytes of state \"%s\"", (int)rc,
                         (unsigned long long)size, s->name);
    s->data = data;
    s->size = size;
    s->total = e->total;
    s->element = e->element;
    return OPI_OK;
}

/* From one block, whole. */
static int32_t restore_whole(const opi__blob_source *r, opi__state *s, opi_error *err)
{
    const void *blob = r->blob[r->home];
    const entry *e = find(blob, s->name);
    if (!e || e->kind != s->kind)
        return opi__fail(err, OPI_E_FORMAT, -1, "the saved state has no \"%s\" of this kind", s->name);
    int32_t rc = fit_size(r, s, e, e->size, err);
    return rc ? rc : copy_in(r, s, s->data, (const char *)blob + e->offset, e->size, err);
}

/* From the blocks of several rows: each holds its own range of the whole. */
static int32_t restore_pieces(const opi__blob_source *r, opi__state *s, opi_error *err)
{
    uint64_t begin, end;
    const entry *saved = find(r->blob[r->home], s->name);
    if (!saved || saved->kind != s->kind || !saved->total)
        return opi__fail(err, OPI_E_FORMAT, -1, "the saved state has no \"%s\" that can be divided anew", s->name);
    opi__range(saved->total, r->dp, r->row, &begin, &end);
    int32_t fits = fit_size(r, s, saved, (end - begin) * saved->element, err);
    if (fits)
        return fits;
    for (int32_t d = 0; d < r->from_dp; d++) {
        uint64_t from, to;
        opi__range(s->total, r->from_dp, d, &from, &to);
        uint64_t first = from > begin ? from : begin, last = to < end ? to : end;
        if (first >= last)
            continue;
        const entry *e = find(r->blob[d], s->name);
        if (!e || e->total != s->total || e->element != s->element || e->size != (to - from) * s->element)
            return opi__fail(err, OPI_E_FORMAT, -1, "row %d saved no \"%s\" of %llu elements", (int)d, s->name,
                             (unsigned long long)s->total);
        const char *source = (const char *)r->blob[d] + e->offset + (first - from) * s->element;
        int32_t rc =
            copy_in(r, s, (char *)s->data + (first - begin) * s->element, source, (last - first) * s->element, err);
        if (rc)
            return rc;
    }
    return OPI_OK;
}

int32_t opi__blob_restore(const opi__blob_source *r, opi__state *state, size_t n, opi_error *err)
{
    for (size_t i = 0; i < n; i++) {
        opi__state *s = &state[i];
        if (opi__blob_part(s->kind, r->from_dp) != r->part)
            continue;
        if (r->only_small && s->kind != OPI_SWAP_SMALL)
            continue;
        int divided = s->kind == OPI_SWAP_SHARDED && s->total && r->from_dp != r->dp;
        int32_t rc = divided ? restore_pieces(r, s, err) : restore_whole(r, s, err);
        if (rc)
            return rc;
    }
    return OPI_OK;
}

int opi__blob_rows(const opi__state *state, size_t n, int32_t from_dp, int32_t dp, int32_t row, int32_t *first,
                   int32_t *last)
{
    *first = from_dp;
    *last = -1;
    if (from_dp == dp) {
        *first = *last = row;
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        if (state[i].kind != OPI_SWAP_SHARDED)
            continue;
        if (!state[i].total)
            return 0;
        uint64_t begin, end, from, to;
        opi__range(state[i].total, dp, row, &begin, &end);
        for (int32_t d = 0; d < from_dp; d++) {
            opi__range(state[i].total, from_dp, d, &from, &to);
            if (from >= end || to <= begin)
                continue;
            if (d < *first)
                *first = d;
            if (d > *last)
                *last = d;
        }
    }
    return 1;
}
