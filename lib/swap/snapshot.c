/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots off the critical path: the worker copies while the program computes, the copy is sent to peers as MPI makes
 * progress, and a nonblocking collective tells everyone when it is complete everywhere. At most one snapshot is under
 * way; the next one waits for it, so that the last complete one is never overwritten. */
#define _DEFAULT_SOURCE /* madvise */
#include "base/mem.h"
#include "base/status.h"
#include "swap/link.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_PAGE ((uintptr_t)2 << 20)

/* Memory touched for the first time in a recovery is most of its restore phase: one fault for 2 MiB in place of 512. */
static void prefer_large_pages(void *p, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    uintptr_t begin = ((uintptr_t)p + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1), end = (uintptr_t)p + bytes;
    if (end > begin && end - begin >= LARGE_PAGE)
        madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* a hint: what it returns does not matter */
#else
    (void)p, (void)bytes;
#endif
}

void *opi__swap_room(opi_swap *s, void **p, size_t *room, size_t bytes)
{
    if (bytes <= *room && *p)
        return *p;
    opi__free(s->ctx, *p);
    s->buffer_bytes -= *room;
    *room = 0;
    *p = opi__alloc(s->ctx, bytes ? bytes : 1, 1);
    if (!*p)
        return NULL;
    prefer_large_pages(*p, bytes);
    *room = bytes;
    s->buffer_bytes += bytes;
    return *p;
}

int32_t opi__snapshot_memory(const opi_swap *s, opi_error *err)
{
    uint64_t own = opi__blob_bytes(s->state, s->states, OPI__UNIQUE, s->grid.dp), both = own;
    if (s->grid.dp > 1)
        both += opi__blob_bytes(s->state, s->states, OPI__COMMON, s->grid.dp);
    /* Ping and pong of this slot, ping and pong of what is kept for others; a third while a file is written. */
    uint64_t need = both * (s->persist ? 3 : 2) + own * 2 * (uint64_t)s->replicas;
    uint64_t limit = s->options.memory_limit;
    if (!limit) {
        long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
        limit = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
    }
    if (need <= limit)
        return OPI_OK;
    return opi__fail(err, OPI_E_NOMEM, -1,
                     "snapshots and replicas of %llu bytes of state need %llu bytes of buffers, %s is %llu bytes",
                     (unsigned long long)both, (unsigned long long)need,
                     s->options.memory_limit ? "memory_limit" : "this machine's memory", (unsigned long long)limit);
}

opi__snap *opi__snapshot_of(opi_swap *s, int64_t step, int32_t dp, int32_t slot)
{
    for (int i = 0; i < OPI__SNAPS; i++) {
        opi__snap *n = &s->snap[i];
        if (n->phase >= OPI__LOCAL && !n->failed && n->step == step && n->dp == dp && n->slot == slot)
            return n;
    }
    return NULL;
}

opi__snap *opi__snapshot_take(opi_swap *s)
{
    opi__snap *best = NULL, *newest = NULL;
    for (int i = 0; i < OPI__SNAPS; i++) {
        opi__snap *n = &s->snap[i];
        if (n->phase == OPI__GLOBAL && (!newest || n->step > newest->step))
            newest = n;
    }
    for (int i = 0; i < OPI__SNAPS; i++) {
        opi__snap *n = &s->snap[i];
        if (n == newest || n == s->current || n->pinned)
            continue;
        /* Memory that is there before memory that is not; then the older. */
        if (!best || (n->blob[0] && !best->blob[0]) || (!n->blob[0] == !best->blob[0] && n->step < best->step))
            best = n;
    }
    if (best) {
        best->phase = OPI__EMPTY;
        best->failed = best->want_file = 0;
        best->step = OPI__NO_STEP;
    }
    return best;
}

void opi__snapshot_forget(opi_swap *s, int64_t after, int32_t dp)
{
    for (int i = 0; i < OPI__SNAPS; i++)
        if (s->snap[i].phase != OPI__EMPTY && (s->snap[i].step > after || s->snap[i].dp != dp || s->snap[i].failed)) {
            s->snap[i].phase = OPI__EMPTY;
            s->snap[i].step = OPI__NO_STEP;
        }
    for (int i = 0; i < OPI__HELD; i++)
        if (s->held[i].step > after || s->held[i].dp != dp)
            s->held[i].complete = 0;
}

/* ---- the copy ---------------------------------------------------------------------------------------------------- */

/* On the worker. Part 0 first: it has the longer way to go. */
static void copy_job(void *user)
{
    opi_swap *s = user;
    opi__snap *n = s->current;
    for (int part = 0; part < 2 && !n->failed; part++)
        if (n->bytes[part] && opi__blob_fill(n->blob[part], s->saved, s->saved_states, s->options.callbacks.copy,
                                             s->options.callbacks.user, &n->filled[part], &n->sum[part]))
            n->failed = 1;
}

static int stash_small(opi_swap *s)
{
    size_t need = 0, at = 0;
    for (size_t i = 0; i < s->states; i++)
        if (s->state[i].kind == OPI_SWAP_SMALL)
            need += (size_t)s->state[i].size;
    if (!opi__swap_room(s, (void **)&s->stash, &s->stash_room, need))
        return 0;
    memcpy(s->saved, s->state, s->states * sizeof *s->saved);
    s->saved_states = s->states;
    for (size_t i = 0; i < s->states; i++) {
        opi__state *t = &s->saved[i];
        if (t->kind != OPI_SWAP_SMALL || !t->size)
            continue;
        memcpy(s->stash + at, t->data, (size_t)t->size);
        t->data = s->stash + at;
        at += (size_t)t->size;
    }
    return 1;
}

static void open_links(opi_swap *s, const opi__snap *n, const int32_t *skip_out, const int32_t *skip_in)
{
    for (int32_t i = 0; i < s->ins; i++) {
        s->in[i].entry = -1; /* what this link held last says nothing about this snapshot */
        if (skip_in && skip_in[i])
            s->in[i].done = 1;
        else
            opi__link_in_begin(s, &s->in[i]);
    }
    for (int32_t i = 0; i < s->outs; i++) {
        if (skip_out && skip_out[i])
            s->out[i].done = 1;
        else
            opi__link_out_begin(s, &s->out[i], n);
    }
}

/* Starts the copy that is due when the one before is complete and a buffer is free. */
static void start_pending(opi_swap *s)
{
    if (s->pending == OPI__NO_STEP || s->current)
        return;
    opi__snap *n = opi__snapshot_take(s);
    if (!n)
        return;
    n->step = s->pending;
    n->dp = s->grid.dp;
    n->slot = s->view.slot;
    n->want_file = s->pending_file;
    s->pending = OPI__NO_STEP;
    s->pending_file = 0;
    for (int part = 0; part < 2; part++) {
        n->filled[part] = n->bytes[part] = 0;
        if (part == OPI__COMMON && n->dp == 1)
            continue;
        n->bytes[part] = opi__blob_bytes(s->saved, s->saved_states, part, n->dp);
        if (!opi__swap_room(s, &n->blob[part], &n->room[part], n->bytes[part])) {
            n->failed = 1; /* the others learn it from the barrier: this snapshot does not count */
            break;
        }
        opi__blob_id id = {n->step, n->dp, part == OPI__COMMON ? n->slot % opi__grid_row(&s->grid) : n->slot, part};
        opi__blob_begin(n->blob[part], &id, s->saved, s->saved_states);
        s->journal.counters.snapshot_bytes += n->bytes[part];
    }
    n->phase = OPI__COPYING;
    s->current = n;
    opi__worker_give(&s->copier, copy_job, s);
    open_links(s, n, NULL, NULL);
}

void opi__snapshot_due(opi_swap *s, int64_t step, int32_t file)
{
    if (!stash_small(s))
        return; /* no memory for the small states: the last snapshot stays the newest */
    s->pending = step;
    s->pending_file = file;
    start_pending(s);
}

int32_t opi__snapshot_resume(opi_swap *s, opi__snap *snap, const int32_t *skip_out, const int32_t *skip_in)
{
    snap->phase = OPI__LOCAL;
    s->current = snap;
    open_links(s, snap, skip_out, skip_in);
    return !s->fault;
}

/* ---- completeness ------------------------------------------------------------------------------------------------ */

/* What each slot tells the others beside its busy time. All see the same, so all decide the same. */
enum { COPIED = 1, WRITING = 2, WANTED = 4, FAILED = 8 };

static double median_busy(const opi_swap *s, int32_t n)
{
    /* n is small beside the traffic of a step: selection by counting. */
    for (int32_t i = 0; i < n; i++) {
        int32_t below = 0, equal = 0;
        for (int32_t k = 0; k < n; k++) {
            below += s->barrier_all[2 * k] < s->barrier_all[2 * i];
            equal += s->barrier_all[2 * k] == s->barrier_all[2 * i];
        }
        if (below <= n / 2 && n / 2 < below + equal)
            return s->barrier_all[2 * i];
    }
    return 0;
}

/* Three snapshots in a row with the same slot out of line: a single slow step is no straggler. */
static void look_for_straggler(opi_swap *s, int64_t step)
{
    int32_t n = opi__grid_slots(&s->grid), worst = 0;
    if (s->options.straggler <= 0 || n < 2 || n > 4096)
        return;
    for (int32_t i = 0; i < n; i++) {
        if (s->barrier_all[2 * i] <= 0)
            return;
        if (s->barrier_all[2 * i] > s->barrier_all[2 * worst])
            worst = i;
    }
    double middle = median_busy(s, n), most = s->barrier_all[2 * worst];
    if (most <= s->options.straggler * middle) {
        s->slow_run = 0;
        return;
    }
    s->slow_run = s->slow_slot == worst ? s->slow_run + 1 : 1;
    s->slow_slot = worst;
    if (s->slow_run % 3)
        return;
    opi_swap_event e = {.kind = OPI_SWAP_STRAGGLER,
                        .epoch = s->view.epoch,
                        .slot = worst,
                        .step = step,
                        .rank = s->process[s->owner[worst]].card.id,
                        .time_s = opi__now()};
    if (s->slow_run == 3)
        opi__journal_event(&s->journal, &e, "slot %d was busy for %.3g s of the step, the median slot for %.3g s",
                           (int)worst, most, middle);
}

/* Blocks of slots this rank no longer keeps copies for, once a newer snapshot is complete everywhere. */
static void free_stale(opi_swap *s, int64_t step)
{
    for (int32_t i = 0; i < OPI__HELD; i++) {
        opi__held *h = &s->held[i];
        int32_t mine = 0;
        for (int32_t k = 0; k < s->ins; k++)
            mine |= s->in[k].peer == h->slot;
        if (h->slot < 0 || (mine && h->dp == s->grid.dp) || h->step >= step)
            continue;
        opi__free(s->ctx, h->blob);
        s->buffer_bytes -= h->room;
        memset(h, 0, sizeof *h);
        h->slot = -1;
        h->step = OPI__NO_STEP;
    }
}

static void complete(opi_swap *s)
{
    opi__snap *n = s->current;
    int32_t slots = opi__grid_slots(&s->grid), good = 1, bad_slot = -1, failed = 0, writing = 0, wanted = WANTED;
    for (int32_t i = slots - 1; i >= 0; i--) {
        int32_t flags = (int32_t)s->barrier_all[2 * i + 1];
        writing |= flags & WRITING;
        wanted &= flags;
        good &= flags & COPIED;
        /* Not the slot that was to keep the failed copy is to be named, but the one that could not make it. */
        if ((flags & FAILED) || (!(flags & COPIED) && !failed))
            bad_slot = i;
        failed |= flags & FAILED;
    }
    s->current = NULL;
    look_for_straggler(s, n->step);
    if (!good) {
        n->phase = OPI__EMPTY;
        opi_swap_event e = {.kind = OPI_SWAP_SNAPSHOT_FAILED,
                            .epoch = s->view.epoch,
                            .slot = bad_slot,
                            .rank = -1,
                            .step = n->step,
                            .time_s = opi__now()};
        opi__journal_event(&s->journal, &e,
                           "slot %d could not copy its state after step %lld: the snapshot before "
                           "stays the newest",
                           (int)bad_slot, (long long)n->step);
        return;
    }
    n->phase = OPI__GLOBAL;
    s->journal.counters.snapshots++;
    free_stale(s, n->step);
    if (!n->want_file)
        return;
    if (!writing && wanted) {
        opi__persist_begin(s, n);
        return;
    }
    n->want_file = 0;
    opi_swap_event e = {.kind = OPI_SWAP_CHECKPOINT_SKIPPED,
                        .epoch = s->view.epoch,
                        .slot = -1,
                        .rank = -1,
                        .step = n->step,
                        .time_s = opi__now()};
    opi__journal_event(&s->journal, &e, "no checkpoint of step %lld: %s", (long long)n->step,
                       wanted ? "the one before is still being written" : "a recovery came between");
}

static int run_links(opi_swap *s)
{
    int all = 1, ready = s->current->phase == OPI__LOCAL;
    for (int32_t i = 0; i < s->outs; i++) {
        int state = opi__link_out_progress(s, &s->out[i], s->current, ready);
        if (state < 0)
            return -1;
        all &= state;
    }
    for (int32_t i = 0; i < s->ins; i++) {
        int state = opi__link_in_progress(s, &s->in[i], s->current);
        if (state < 0)
            return -1;
        all &= state;
    }
    return all && ready;
}

int32_t opi__snapshot_progress(opi_swap *s)
{
    if (s->fault || s->view.role != OPI_SWAP_ACTIVE)
        return 0;
    start_pending(s);
    opi__snap *n = s->current;
    if (!n)
        return 0;
    if (n->phase == OPI__COPYING && !opi__worker_busy(&s->copier))
        n->phase = OPI__LOCAL;
    if (s->barrier == MPI_REQUEST_NULL) {
        int state = run_links(s);
        if (state < 0)
            opi__fault(s);
        if (state <= 0)
            return 0;
        s->barrier_mine[0] = s->busy;
        int32_t copied = !n->failed;
        for (int32_t i = 0; i < s->ins; i++) /* a tail said that its copy failed */
            if (s->in[i].entry >= 0 && !s->held[s->in[i].entry].complete)
                copied = 0;
        s->barrier_mine[1] = (copied ? COPIED : 0) | (opi__persist_busy(s) ? WRITING : 0) |
                             (n->want_file ? WANTED : 0) | (n->failed ? FAILED : 0);
        if (MPI_Iallgather(s->barrier_mine, 2, MPI_DOUBLE, s->barrier_all, 2, MPI_DOUBLE, s->ring, &s->barrier) !=
            MPI_SUCCESS) {
            s->barrier = MPI_REQUEST_NULL;
            opi__fault(s);
            return 0;
        }
    }
    int state = opi__engine_test(&s->barrier, NULL);
    if (state < 0)
        opi__fault(s);
    if (state <= 0)
        return 0;
    complete(s);
    start_pending(s);
    return 1;
}

static int copying(opi_swap *s)
{
    return s->pending != OPI__NO_STEP || opi__worker_busy(&s->copier);
}

static int under_way(opi_swap *s)
{
    return s->current != NULL;
}

/* Counted, because it is time that the program loses. */
static void wait_while(opi_swap *s, int (*busy)(opi_swap *s))
{
    double start = 0;
    while (!s->fault && busy(s)) {
        if (!start)
            start = opi__now();
        opi__snapshot_progress(s);
        opi__control_poll(s);
        if (busy(s))
            opi__pause(20e-6);
    }
    if (start) {
        s->journal.counters.waits++;
        s->journal.counters.wait_s += opi__now() - start;
    }
}

int32_t opi__snapshot_settle(opi_swap *s)
{
    wait_while(s, copying);
    return s->fault;
}

void opi__snapshot_finish(opi_swap *s)
{
    wait_while(s, under_way);
}

void opi__snapshot_halt(opi_swap *s)
{
    opi__worker_wait(&s->copier);
    for (int32_t i = 0; i < s->outs; i++)
        opi__link_halt(&s->out[i]);
    for (int32_t i = 0; i < s->ins; i++)
        opi__link_halt(&s->in[i]);
    if (s->barrier != MPI_REQUEST_NULL && !opi__engine_drain(&s->barrier, 1)) {
        s->barrier_all = NULL; /* MPI may still write there: given up rather than used again */
        s->barrier = MPI_REQUEST_NULL;
    }
    if (s->current && s->current->phase == OPI__COPYING)
        s->current->phase = OPI__LOCAL;
    s->current = NULL;
    s->pending = OPI__NO_STEP;
}

void opi__snapshot_free(opi_swap *s)
{
    for (int i = 0; i < OPI__SNAPS; i++)
        for (int part = 0; part < 2; part++)
            opi__free(s->ctx, s->snap[i].blob[part]);
    for (int i = 0; i < OPI__HELD; i++)
        opi__free(s->ctx, s->held[i].blob);
    for (int32_t i = 0; i < OPI__REPLICAS; i++)
        opi__link_free(s, &s->out[i]);
    for (int32_t i = 0; i < s->in_room; i++)
        opi__link_free(s, &s->in[i]);
    opi__free(s->ctx, s->in);
    opi__free(s->ctx, s->barrier_all);
    opi__free(s->ctx, s->stash);
}
