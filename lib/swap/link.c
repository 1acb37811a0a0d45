/* SPDX-License-Identifier: Apache-2.0 */
#include "swap/link.h"
#include "base/mem.h"
#include <string.h>

#define MAGIC 0x6f70695f6c696e6bull

static size_t chunks(uint64_t bytes)
{
    return (size_t)((bytes + OPI__CHUNK - 1) / OPI__CHUNK);
}

static int chunk_bytes(uint64_t bytes, size_t i)
{
    uint64_t left = bytes - (uint64_t)i * OPI__CHUNK;
    return (int)(left < OPI__CHUNK ? left : OPI__CHUNK);
}

/* Requests: 0 the head, 1 … n the chunks, n + 1 the tail. */
static int make_room(opi_swap *s, opi__link *l, uint64_t bytes)
{
    size_t need = chunks(bytes) + 2;
    if (need > l->room) {
        MPI_Request *more = opi__resize(s->ctx, l->request, need, sizeof *more);
        if (!more)
            return 0;
        l->request = more;
        l->room = need;
    }
    return 1;
}

static void begin(opi__link *l)
{
    l->done = 0;
    l->entry = -1;
    l->posted = l->moved = 0;
}

/* 1 = all that is posted has arrived, 0 = not yet, -1 = failed. */
static int test_posted(opi__link *l)
{
    while (l->moved < l->posted) {
        int state = opi__engine_test(&l->request[l->moved], NULL);
        if (state != 1)
            return state;
        l->moved++;
    }
    return 1;
}

static int sent(opi_swap *s, opi__link *l, const void *bytes, int n)
{
    if (MPI_Isend(bytes, n, MPI_BYTE, l->peer, OPI__TAG_LINK, s->ring, &l->request[l->posted]) != MPI_SUCCESS)
        return 0;
    l->posted++;
    return 1;
}

static int received(opi_swap *s, opi__link *l, void *bytes, int n)
{
    if (MPI_Irecv(bytes, n, MPI_BYTE, l->peer, OPI__TAG_LINK, s->ring, &l->request[l->posted]) != MPI_SUCCESS)
        return 0;
    l->posted++;
    return 1;
}

void opi__link_out_begin(opi_swap *s, opi__link *l, const opi__snap *snap)
{
    begin(l);
    uint64_t bytes = snap->failed ? 0 : snap->bytes[OPI__UNIQUE];
    opi__wire head = {MAGIC, bytes, 0, snap->step, s->view.epoch, OPI__WIRE_HEAD, snap->slot, snap->dp, 1, 0};
    l->head = head;
    if (!make_room(s, l, bytes) || !sent(s, l, &l->head, (int)sizeof l->head))
        opi__fault(s);
}

int opi__link_out_progress(opi_swap *s, opi__link *l, const opi__snap *snap, int ready)
{
    if (l->done)
        return 1;
    size_t n = chunks(l->head.bytes), filled = __atomic_load_n(&snap->filled[OPI__UNIQUE], __ATOMIC_ACQUIRE);
    while (l->posted >= 1 && l->posted <= n) {
        size_t i = l->posted - 1, end = i * OPI__CHUNK + (size_t)chunk_bytes(l->head.bytes, i);
        /* After a failed copy the rest is sent as it is: the tail says that it does not count. */
        if (filled < end && !ready)
            break;
        if (!sent(s, l, (char *)snap->blob[OPI__UNIQUE] + i * OPI__CHUNK, (int)(end - i * OPI__CHUNK)))
            return -1;
        s->journal.counters.replica_bytes += end - i * OPI__CHUNK;
    }
    if (ready && l->posted == n + 1) {
        l->tail = l->head;
        l->tail.kind = OPI__WIRE_TAIL;
        l->tail.sum = snap->sum[OPI__UNIQUE];
        l->tail.ok = !snap->failed;
        if (!sent(s, l, &l->tail, (int)sizeof l->tail))
            return -1;
    }
    int state = test_posted(l);
    if (state < 0)
        return -1;
    l->done = state == 1 && l->posted == n + 2;
    return l->done;
}

void opi__link_in_begin(opi_swap *s, opi__link *l)
{
    begin(l);
    if (!make_room(s, l, 0) || !received(s, l, &l->head, (int)sizeof l->head))
        opi__fault(s);
}

/* Is a newer than b? A block of another grid is from before the data-parallel width changed. */
static int newer(const opi_swap *s, const opi__held *a, const opi__held *b)
{
    int new_a = a->dp == s->grid.dp, new_b = b->dp == s->grid.dp;
    return new_a != new_b ? new_a : a->step > b->step;
}

/* An entry of `held` that may be overwritten by a block of `slot`: one that never became complete or is not the newest
 * complete one of the slot, else a free one. -1 = none. */
static int32_t entry_for(opi_swap *s, int32_t slot)
{
    int32_t newest = -1, free_one = -1, same = -1;
    for (int32_t i = 0; i < OPI__HELD; i++) {
        const opi__held *h = &s->held[i];
        if (h->slot == slot && h->complete && (newest < 0 || newer(s, h, &s->held[newest])))
            newest = i;
    }
    for (int32_t i = 0; i < OPI__HELD; i++) {
        const opi__held *h = &s->held[i];
        if (h->slot == slot && i != newest)
            same = i;
        if (h->slot < 0 && free_one < 0)
            free_one = i;
    }
    return same >= 0 ? same : free_one;
}

static int32_t open_entry(opi_swap *s, const opi__wire *head)
{
    int32_t i = entry_for(s, head->slot);
    if (i < 0)
        return -1;
    opi__held *h = &s->held[i];
    h->complete = 0;
    h->slot = head->slot;
    if (!opi__swap_room(s, &h->blob, &h->room, (size_t)head->bytes)) {
        h->slot = -1;
        return -1;
    }
    h->dp = head->dp;
    h->step = head->step;
    h->bytes = (size_t)head->bytes;
    return i;
}

/* The head is here: room is made and all the rest is posted, so that it moves in whatever MPI call comes next. */
static int post_rest(opi_swap *s, opi__link *l, const opi__snap *snap)
{
    const opi__wire *h = &l->head;
    if (h->magic != MAGIC || h->kind != OPI__WIRE_HEAD || h->epoch != s->view.epoch || h->step != snap->step ||
        h->slot != l->peer || h->dp != snap->dp)
        return 0;
    size_t n = chunks(h->bytes);
    l->entry = open_entry(s, h);
    if (l->entry < 0 || !make_room(s, l, h->bytes))
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!received(s, l, (char *)s->held[l->entry].blob + i * OPI__CHUNK, chunk_bytes(h->bytes, i)))
            return 0;
    return received(s, l, &l->tail, (int)sizeof l->tail);
}

int opi__link_in_progress(opi_swap *s, opi__link *l, const opi__snap *snap)
{
    if (l->done)
        return 1;
    int state = test_posted(l);
    if (state <= 0)
        return state;
    if (l->posted == 1) {
        if (!post_rest(s, l, snap))
            return -1;
        state = test_posted(l);
        if (state <= 0)
            return state;
    }
    opi__held *h = &s->held[l->entry];
    if (l->tail.kind != OPI__WIRE_TAIL || l->tail.step != h->step || l->tail.epoch != s->view.epoch)
        return -1;
    h->sum = l->tail.sum;
    h->complete = l->tail.ok && h->bytes > 0;
    l->done = 1;
    return 1;
}

void opi__link_halt(opi__link *l)
{
    if (l->posted > l->moved && !opi__engine_drain(l->request + l->moved, l->posted - l->moved)) {
        /* MPI may still look at the requests: that memory is given up rather than used again. */
        l->request = NULL;
        l->room = 0;
    }
    l->posted = l->moved = 0;
    l->done = 1;
}

void opi__link_free(opi_swap *s, opi__link *l)
{
    opi__free(s->ctx, l->request);
    memset(l, 0, sizeof *l);
}
