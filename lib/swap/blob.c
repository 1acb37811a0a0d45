/* SPDX-License-Identifier: Apache-2.0 */
#include "swap/blob.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/status.h"
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define MAGIC      0x31424f4c42504f00ull /* read with the other byte order it is another number */
#define ALIGN      64u
#define AHEAD      4096                /* the processor alone looks less far ahead than memory is away */
#define COPY_BLOCK ((size_t)128 << 10) /* told to a sender that follows */

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

/* ---- the checksum of a block -------------------------------------------------------------------------------------- */

/* As fast as memory: one multiplication a word and eight lanes, where opi__checksum64 has two and four. These sums are made
 * and compared in one job on one kind of machine, never written down. */
typedef struct summer {
    uint64_t lane[8];
    uint64_t bytes;
} summer;

static void sum_begin(summer *s, uint64_t bytes)
{
    static const uint64_t first[] = {0x243f6a8885a308d3ull, 0x13198a2e03707344ull, 0xa4093822299f31d0ull,
                                     0x082efa98ec4e6c89ull, 0x452821e638d01377ull, 0xbe5466cf34e90c6cull,
                                     0xc0ac29b7c97c50ddull, 0x3f84d5b5b5470917ull};
    memcpy(s->lane, first, sizeof first);
    s->bytes = bytes;
}

static uint64_t word_at(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Past the cache where the machine can: what is written here is not read again soon, and the caller's data stay in. */
static void put_word(char *p, uint64_t x)
{
#ifdef __SSE2__
    _mm_stream_si64((long long *)(void *)p, (long long)x);
#else
    memcpy(p, &x, sizeof x);
#endif
}

static void written(void)
{
#ifdef __SSE2__
    _mm_sfence(); /* such stores are not ordered by a release */
#endif
}

/* One bijection of the word and of the lane, so that a change within one word always changes the result. */
static uint64_t stir(uint64_t lane, uint64_t word)
{
    uint64_t x = lane ^ word;
    return (x << 29 | x >> 35) * 0xd6e8feb86659fd93ull;
}

/* Sums lines of 64 bytes, and copies them on the way where `to` is not NULL. The constant `copying` makes two loops. */
static inline void pass(summer *s, char *to, const char *p, size_t lines, int copying)
{
    uint64_t lane[8];
    memcpy(lane, s->lane, sizeof lane);
    for (; lines; lines--, p += 64, to += copying ? 64 : 0) {
        __builtin_prefetch(p + AHEAD);
#define WORD(i)                                                                                                        \
    do {                                                                                                               \
        uint64_t w = word_at(p + 8 * (i));                                                                             \
        if (copying)                                                                                                   \
            put_word(to + 8 * (i), w);                                                                                 \
        lane[i] = stir(lane[i], w);                                                                                    \
    } while (0)
        WORD(0);
        WORD(1);
        WORD(2);
        WORD(3);
        WORD(4);
        WORD(5);
        WORD(6);
        WORD(7);
#undef WORD
    }
    memcpy(s->lane, lane, sizeof lane);
}

static uint64_t sum_end(const summer *s, const char *tail, size_t left)
{
    uint64_t sum = s->bytes ^ opi__checksum64(tail, left);
    for (size_t i = 0; i < sizeof s->lane / sizeof s->lane[0]; i++)
        sum = opi__mix64(sum ^ s->lane[i]);
    return sum;
}

uint64_t opi__blob_sum(const void *blob, size_t bytes)
{
    summer s;
    sum_begin(&s, bytes);
    pass(&s, NULL, blob, bytes / ALIGN, 0);
    return sum_end(&s, (const char *)blob + bytes / ALIGN * ALIGN, bytes % ALIGN);
}

/* ---- saving ------------------------------------------------------------------------------------------------------- */

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

/* The state of one entry; all of the block before it is summed. */
static int32_t fill_one(char *blob, const entry *e, const opi__state *s, opi__copy_fn copy, void *user, size_t *filled,
                        summer *sum)
{
    char *to = blob + e->offset;
    size_t size = (size_t)e->size, whole = size / ALIGN * ALIGN;
    int there = copy || e->kind == OPI_SWAP_SMALL;
    if (copy && e->kind != OPI_SWAP_SMALL) {
        int32_t rc = copy(user, OPI_SWAP_COPY_SAVE, s->name, s->data, to, size);
        if (rc)
            return rc;
    }
    for (size_t at = 0; at < whole; at += COPY_BLOCK) {
        size_t piece = whole - at < COPY_BLOCK ? whole - at : COPY_BLOCK;
        if (there)
            pass(sum, NULL, to + at, piece / ALIGN, 0);
        else
            pass(sum, to + at, (const char *)s->data + at, piece / ALIGN, 1);
        written();
        publish(filled, (size_t)e->offset + at + piece);
    }
    if (size > whole && !there)
        memcpy(to + whole, (const char *)s->data + whole, size - whole);
    pass(sum, NULL, to + whole, (aligned(size) - whole) / ALIGN, 0); /* with the gap behind it */
    publish(filled, (size_t)e->offset + aligned(size));
    return 0;
}

int32_t opi__blob_fill(void *blob, const opi__state *state, size_t n, opi__copy_fn copy, void *user, size_t *filled,
                       uint64_t *sum)
{
    head h;
    memcpy(&h, blob, sizeof h);
    size_t bytes = (size_t)h.bytes;
    const entry *e = table(blob);
    summer s;
    sum_begin(&s, bytes);
    pass(&s, NULL, blob, aligned(sizeof h + h.count * sizeof *e) / ALIGN, 0);
    for (uint32_t i = 0; i < h.count; i++, e++) {
        int32_t rc = fill_one(blob, e, by_name(state, n, e->name), copy, user, filled, &s);
        if (rc)
            return rc;
    }
    *sum = sum_end(&s, NULL, 0);
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
