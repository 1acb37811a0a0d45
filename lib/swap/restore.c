/* SPDX-License-Identifier: Apache-2.0 */
#include "swap/restore.h"
#include "base/status.h"
#include <string.h>

#define PIECE ((uint64_t)256 << 20) /* an MPI count is an int */
#define BAD   4                     /* most bad blocks a rank names in a round; the rest are found in the next */

const opi__copy *opi__restore_copy(const opi__attempt *a, int32_t m, int32_t part, int32_t slot)
{
    const opi__hello *h = &a->hello[m];
    for (int32_t i = 0; i < h->copies; i++) {
        const opi__copy *c = &h->copy[i];
        if (!c->bad && c->step == a->step && c->dp == a->from_dp && c->part == part && c->slot == slot)
            return c;
    }
    return NULL;
}

/* The common part is the same in every data-parallel row: the slot of row 0 stands for all. */
static int32_t stands_for(const opi__attempt *a, int32_t part, int32_t slot)
{
    return part == OPI__COMMON ? slot % opi__grid_row(&a->old) : slot;
}

/* source[part * slots + slot] = a member with that block, -1 = nobody. The owner is preferred, then the lowest. */
static int covers(const opi_swap *s, const opi__attempt *a, int64_t step, int32_t dp, int32_t *source)
{
    opi__grid grid = a->old;
    grid.dp = dp;
    int32_t slots = opi__grid_slots(&grid), row = opi__grid_row(&grid);
    (void)s;
    for (int32_t i = 0; i < 2 * slots; i++)
        source[i] = -1;
    for (int32_t m = 0; m < a->members; m++)
        for (int32_t i = 0; i < a->hello[m].copies; i++) {
            const opi__copy *c = &a->hello[m].copy[i];
            if (c->bad || c->step != step || c->dp != dp || c->slot < 0 || c->slot >= slots)
                continue;
            int32_t at = c->part * slots + (c->part == OPI__COMMON ? c->slot % row : c->slot);
            if (source[at] < 0 || a->hello[m].slot == c->slot)
                source[at] = m;
        }
    for (int32_t i = 0; i < slots; i++) {
        if (source[i] < 0)
            return 0;
        if (dp > 1 && i < row && source[slots + i] < 0)
            return 0;
    }
    return 1;
}

void opi__restore_choose(opi_swap *s, opi__attempt *a)
{
    int32_t most = 2 * opi__grid_slots(&s->grid); /* widths only shrink, but newcomers know the first grid */
    if (2 * opi__grid_slots(&a->old) > most)
        most = 2 * opi__grid_slots(&a->old);
    for (int32_t m = 0; m < a->members; m++)
        for (int32_t i = 0; i < a->hello[m].copies; i++) {
            opi__grid g = a->old;
            g.dp = a->hello[m].copy[i].dp;
            if (2 * opi__grid_slots(&g) > most)
                most = 2 * opi__grid_slots(&g);
        }
    int32_t *source = opi__arena_alloc(&a->arena, (size_t)most * sizeof *source);
    a->step = OPI__NO_STEP;
    a->from = OPI__FROM_INIT;
    a->from_dp = a->grid.dp;
    if (!source) {
        a->fatal = opi__fail_memory(&a->err, (size_t)most * sizeof *source);
        return;
    }
    for (;;) { /* candidates in falling order of step; the narrower grid is the newer one */
        int64_t step = OPI__NO_STEP;
        int32_t dp = 0;
        for (int32_t m = 0; m < a->members; m++)
            for (int32_t i = 0; i < a->hello[m].copies; i++) {
                const opi__copy *c = &a->hello[m].copy[i];
                if (c->bad)
                    continue;
                int tried =
                    a->step != OPI__NO_STEP && (c->step > a->step || (c->step == a->step && c->dp <= a->from_dp));
                if (!tried && (c->step > step || (c->step == step && c->dp < dp))) {
                    step = c->step;
                    dp = c->dp;
                }
            }
        if (step == OPI__NO_STEP)
            break;
        a->step = step;
        a->from_dp = dp;
        if (covers(s, a, step, dp, source)) {
            a->from = OPI__FROM_MEMORY;
            return;
        }
    }
    a->step = OPI__NO_STEP;
    a->from_dp = a->grid.dp;
}

int32_t opi__restore_source(const opi__attempt *a, int32_t part, int32_t slot)
{
    int32_t best = -1, row = opi__grid_row(&a->old);
    for (int32_t m = 0; m < a->members; m++)
        for (int32_t d = 0; d < (part == OPI__COMMON ? a->from_dp : 1); d++) {
            int32_t same = part == OPI__COMMON ? d * row + slot % row : slot;
            if (!opi__restore_copy(a, m, part, same))
                continue;
            if (best < 0 || a->hello[m].slot == slot)
                best = m;
        }
    return best;
}

static const void *own_block(opi_swap *s, const opi__attempt *a, int32_t part, int32_t slot, size_t *bytes)
{
    opi__snap *n = opi__snapshot_of(s, a->step, a->from_dp, slot);
    if (n && n->bytes[part]) {
        *bytes = n->bytes[part];
        return n->blob[part];
    }
    for (int i = 0; part == OPI__UNIQUE && i < OPI__HELD; i++) {
        const opi__held *h = &s->held[i];
        if (h->complete && h->slot == slot && h->step == a->step && h->dp == a->from_dp) {
            *bytes = h->bytes;
            return h->blob;
        }
    }
    return NULL;
}

const void *opi__restore_block(opi_swap *s, const opi__attempt *a, int32_t part, int32_t slot, size_t *bytes)
{
    int32_t row = opi__grid_row(&a->old);
    if (part == OPI__UNIQUE)
        return own_block(s, a, part, slot, bytes);
    for (int32_t d = 0; d < a->from_dp; d++) {
        const void *found = own_block(s, a, part, d * row + slot % row, bytes);
        if (found)
            return found;
    }
    return NULL;
}

/* ---- moving blocks ----------------------------------------------------------------------------------------------- */

/* One block to be in one place. Every rank has the same list. */
typedef struct move {
    int32_t from, to; /* members; the same = it is there */
    int32_t part, slot, source_slot;
    uint64_t bytes, sum;
    void *blob; /* at the receiver */
    int32_t temporary, checked;
} move;

typedef struct plan {
    move *move;
    int32_t n, room;
    MPI_Request *request;
    size_t requests;
} plan;

static int32_t plan_one(opi_swap *s, opi__attempt *a, plan *p, int32_t to, int32_t part, int32_t slot)
{
    int32_t row = opi__grid_row(&a->old), from = -1, source_slot = -1;
    for (int32_t d = 0; d < (part == OPI__COMMON ? a->from_dp : 1); d++) {
        int32_t same = part == OPI__COMMON ? d * row + slot % row : slot;
        if (opi__restore_copy(a, to, part, same)) {
            from = to;
            source_slot = same;
            if (same == slot)
                break;
        }
    }
    for (int32_t d = 0; from < 0 && d < (part == OPI__COMMON ? a->from_dp : 1); d++) {
        int32_t same = part == OPI__COMMON ? d * row + slot % row : slot;
        for (int32_t m = 0; m < a->members && from < 0; m++)
            if (opi__restore_copy(a, m, part, same)) {
                from = m;
                source_slot = same;
            }
    }
    if (from < 0 || p->n >= p->room)
        return OPI_E_INTERNAL;
    const opi__copy *c = opi__restore_copy(a, from, part, source_slot);
    move m = {from, to, part, slot, source_slot, c->bytes, c->sum, NULL, 0, 0};
    p->move[p->n++] = m;
    (void)s;
    return OPI_OK;
}

/* Rows of the old grid whose unique blocks row `d` of the new one needs: its own when the width is the same, all of them
 * otherwise (ranks without registered state cannot know which). */
static void rows_needed(const opi__attempt *a, int32_t d, int32_t *first, int32_t *last)
{
    *first = 0;
    *last = a->from_dp - 1;
    if (a->from_dp == a->grid.dp)
        *first = *last = d;
}

static int32_t make_plan(opi_swap *s, opi__attempt *a, plan *p)
{
    int32_t slots = opi__grid_slots(&a->grid), row = opi__grid_row(&a->grid);
    p->n = 0;
    p->room = slots * (a->from_dp + 1);
    p->move = opi__arena_alloc(&a->arena, (size_t)p->room * sizeof *p->move);
    if (!p->move)
        return opi__fail_memory(&a->err, (size_t)p->room * sizeof *p->move);
    for (int32_t slot = 0; slot < slots; slot++) {
        int32_t first, last, rc = OPI_OK, to = a->owner[slot];
        rows_needed(a, slot / row, &first, &last);
        for (int32_t d = first; d <= last && !rc; d++)
            rc = plan_one(s, a, p, to, OPI__UNIQUE, d * row + slot % row);
        if (!rc && a->from_dp > 1)
            rc = plan_one(s, a, p, to, OPI__COMMON, stands_for(a, OPI__COMMON, slot));
        if (rc)
            return opi__fail(&a->err, rc, slot, "no copy of slot %d found while restoring it", (int)slot);
    }
    return OPI_OK;
}

/* Where a block arrives: in this slot's own snapshot when the grid is the same, else in memory that is freed after. */
static void *landing(opi_swap *s, opi__attempt *a, move *m)
{
    if (a->from_dp != a->grid.dp) {
        m->temporary = 1;
        return opi__alloc(s->ctx, (size_t)m->bytes, 1);
    }
    opi__snap *n = NULL;
    for (int i = 0; i < OPI__SNAPS; i++) /* one that this recovery has begun */
        if (s->snap[i].phase != OPI__EMPTY && s->snap[i].step == a->step && s->snap[i].dp == a->from_dp &&
            s->snap[i].slot == a->slot)
            n = &s->snap[i];
    if (!n) {
        n = opi__snapshot_take(s);
        if (!n)
            return NULL;
        n->step = a->step;
        n->dp = a->from_dp;
        n->slot = a->slot;
        n->phase = OPI__COPYING; /* not to be used by anyone until it is whole */
        n->bytes[0] = n->bytes[1] = 0;
    }
    if (!opi__swap_room(s, &n->blob[m->part], &n->room[m->part], (size_t)m->bytes))
        return NULL;
    n->bytes[m->part] = n->filled[m->part] = (size_t)m->bytes;
    n->sum[m->part] = m->sum;
    return n->blob[m->part];
}

static int post(opi__attempt *a, plan *p, void *bytes, uint64_t n, int32_t peer, int32_t tag, int sending)
{
    for (uint64_t at = 0; at < n; at += PIECE) {
        int piece = (int)(n - at < PIECE ? n - at : PIECE);
        MPI_Request *r = &p->request[p->requests];
        *r = MPI_REQUEST_NULL;
        int rc = sending ? MPI_Isend((char *)bytes + at, piece, MPI_BYTE, peer, tag, a->now, r)
                         : MPI_Irecv((char *)bytes + at, piece, MPI_BYTE, peer, tag, a->now, r);
        if (rc != MPI_SUCCESS)
            return 0;
        p->requests++;
    }
    return 1;
}

static int finish(plan *p)
{
    for (size_t i = 0; i < p->requests;) {
        int state = opi__engine_test(&p->request[i], NULL);
        if (state < 0)
            return 0;
        if (state)
            i++;
        else
            opi__yield(); /* every test moves all traffic along; sleeping would cost more than the rest of it */
    }
    return 1;
}

/* Receives first, then sends; the tag is the number of the move (modulo what MPI promises as a tag). */
static int run_moves(opi_swap *s, opi__attempt *a, plan *p)
{
    size_t most = 0;
    for (int32_t i = 0; i < p->n; i++)
        most += (size_t)(p->move[i].bytes / PIECE + 1);
    p->requests = 0;
    p->request = opi__arena_alloc(&a->arena, most * sizeof *p->request);
    if (!p->request) {
        a->fatal = opi__fail_memory(&a->err, most * sizeof *p->request);
        return 1;
    }
    int good = 1;
    for (int sending = 0; sending < 2 && good; sending++)
        for (int32_t i = 0; i < p->n && good && !a->fatal; i++) {
            move *m = &p->move[i];
            size_t bytes = (size_t)m->bytes;
            int32_t tag = OPI__TAG_RESTORE + i % 30000;
            if (m->from == m->to)
                continue;
            if (!sending && m->to == a->me) {
                m->blob = landing(s, a, m);
                if (!m->blob)
                    a->fatal = opi__fail_memory(&a->err, bytes);
                else
                    good = post(a, p, m->blob, m->bytes, m->from, tag, 0);
            } else if (sending && m->from == a->me) {
                const void *block = own_block(s, a, m->part, m->source_slot, &bytes);
                good = block && bytes == m->bytes && post(a, p, (void *)(uintptr_t)block, bytes, m->to, tag, 1);
            }
        }
    OPI__POINT("moving");
    if (good && !a->fatal)
        good = finish(p);
    if (!good || a->fatal)
        opi__engine_revoke(a->now); /* then what is under way ends everywhere */
    if (!good || a->fatal)
        opi__engine_drain(p->request, p->requests);
    return good;
}

/* ---- verifying --------------------------------------------------------------------------------------------------- */

typedef struct bad_block {
    int32_t member, part, slot, reserved;
} bad_block;
typedef struct report {
    int32_t n, reserved;
    bad_block bad[BAD];
} report;

/* A survivor whose memory still shows the state of that step needs nothing put back, so nothing is verified either. */
static int live_is_good(const opi_swap *s, const opi__attempt *a)
{
    return s->established && !s->dirty && s->committed == a->step && s->view.slot == a->slot && a->slot >= 0 &&
           a->from_dp == a->grid.dp && a->old.dp == a->grid.dp;
}

static int verify(opi_swap *s, opi__attempt *a, plan *p, report *mine)
{
    memset(mine, 0, sizeof *mine);
    for (int32_t i = 0; i < p->n; i++) {
        move *m = &p->move[i];
        size_t bytes = (size_t)m->bytes;
        if (m->to != a->me || m->checked)
            continue;
        if (m->from == m->to && live_is_good(s, a))
            continue;
        const void *block = m->from == m->to ? own_block(s, a, m->part, m->source_slot, &bytes) : m->blob;
        opi__blob_id id = {a->step, a->from_dp, stands_for(a, m->part, m->source_slot), m->part};
        m->checked =
            block && bytes == m->bytes && opi__blob_sum(block, bytes) == m->sum && opi__blob_valid(block, bytes, &id);
        if (m->checked || mine->n >= BAD)
            continue;
        bad_block b = {m->from, m->part, m->source_slot, 0};
        mine->bad[mine->n++] = b;
    }
    return mine->n == 0;
}

static void drop_own(opi_swap *s, const opi__attempt *a, const bad_block *b)
{
    opi__snap *n = opi__snapshot_of(s, a->step, a->from_dp, b->slot);
    if (n && n->bytes[b->part])
        n->phase = OPI__EMPTY;
    for (int i = 0; b->part == OPI__UNIQUE && i < OPI__HELD; i++)
        if (s->held[i].slot == b->slot && s->held[i].step == a->step && s->held[i].dp == a->from_dp)
            s->held[i].complete = 0;
}

/* Marks in everybody's copy of the inventory what anybody found to be bad. Returns how many. */
static int32_t mark_bad(opi_swap *s, opi__attempt *a, const report *all)
{
    int32_t found = 0;
    for (int32_t m = 0; m < a->members; m++)
        for (int32_t i = 0; i < all[m].n && i < BAD; i++) {
            const bad_block *b = &all[m].bad[i];
            opi__copy *c = (opi__copy *)(uintptr_t)opi__restore_copy(a, b->member, b->part, b->slot);
            found++;
            if (!c)
                continue; /* named by two ranks */
            c->bad = 1;
            opi_swap_event e = {.kind = OPI_SWAP_CORRUPTION,
                                .epoch = s->view.epoch,
                                .rank = a->hello[b->member].id,
                                .slot = b->slot,
                                .step = a->step,
                                .time_s = opi__now()};
            opi__journal_event(&s->journal, &e,
                               "rank %d's copy of slot %d after step %lld fails its checksum: not used",
                               (int)a->hello[b->member].id, (int)b->slot, (long long)a->step);
            if (b->member == a->me)
                drop_own(s, a, b);
        }
    return found;
}

/* ---- putting it back --------------------------------------------------------------------------------------------- */

/* The row of the saved grid that row d of the new grid continues. */
static int32_t home_row(const opi_swap *s, const opi__attempt *a, int32_t d)
{
    if (a->from_dp == a->grid.dp && a->old.dp == a->grid.dp)
        return d;
    if (a->from_dp == a->old.dp)
        return a->from_row[d];
    /* Saved before the width last changed, and no snapshot has become complete since. */
    if (a->from_dp == s->wide_dp)
        return s->wide_row[a->from_row[d]];
    return d % a->from_dp;
}

static int32_t apply(opi_swap *s, opi__attempt *a, plan *p)
{
    if (a->slot < 0)
        return OPI_OK;
    int32_t row = opi__grid_row(&a->grid), d = a->slot / row, home = home_row(s, a, d);
    int32_t only_small = live_is_good(s, a);
    const void **blob = opi__arena_alloc(&a->arena, (size_t)a->from_dp * sizeof *blob);
    if (!blob)
        return opi__fail_memory(&a->err, (size_t)a->from_dp * sizeof *blob);
    s->dirty = 1; /* until all of it is back */
    for (int32_t part = 0; part < (a->from_dp > 1 ? 2 : 1); part++) {
        for (int32_t i = 0; i < p->n; i++) {
            move *m = &p->move[i];
            size_t bytes = 0;
            if (m->to != a->me || m->part != part)
                continue;
            blob[part == OPI__COMMON ? home : m->slot / row] =
                m->from == m->to ? own_block(s, a, part, m->source_slot, &bytes) : m->blob;
        }
        opi__blob_source r = {blob,
                              a->from_dp,
                              home,
                              a->grid.dp,
                              d,
                              part,
                              only_small,
                              s->options.callbacks.copy,
                              s->options.callbacks.resize,
                              s->options.callbacks.user};
        int32_t rc = opi__blob_restore(&r, s->state, s->states, &a->err);
        if (rc)
            return rc;
    }
    s->committed = a->step;
    s->dirty = 0;
    return OPI_OK;
}

static void free_temporary(opi_swap *s, const opi__attempt *a, plan *p)
{
    for (int32_t i = 0; i < p->n; i++)
        if (p->move[i].temporary && p->move[i].to == a->me)
            opi__free(s->ctx, p->move[i].blob);
}

/* A snapshot that arrived whole counts from now on. */
static void keep_arrived(opi_swap *s, const opi__attempt *a)
{
    for (int i = 0; i < OPI__SNAPS; i++)
        if (s->snap[i].phase == OPI__COPYING && s->snap[i].step == a->step && s->snap[i].slot == a->slot)
            s->snap[i].phase = OPI__LOCAL;
}

int opi__restore(opi_swap *s, opi__attempt *a)
{
    report mine, *all = opi__arena_alloc(&a->arena, (size_t)a->members * sizeof *all);
    if (!all) {
        a->fatal = opi__fail_memory(&a->err, (size_t)a->members * sizeof *all);
        return 1;
    }
    while (a->from == OPI__FROM_MEMORY && !a->fatal) {
        plan p = {0};
        a->fatal = make_plan(s, a, &p);
        if (a->fatal)
            return 1;
        int good = run_moves(s, a, &p);
        if (good && !a->fatal) {
            verify(s, a, &p, &mine);
            good = opi__engine_gather(a->now, &mine, all, (int)sizeof mine);
        }
        if (!good || a->fatal) {
            free_temporary(s, a, &p);
            return good;
        }
        if (!mark_bad(s, a, all)) {
            keep_arrived(s, a);
            a->fatal = apply(s, a, &p);
            free_temporary(s, a, &p);
            return 1;
        }
        free_temporary(s, a, &p);
        opi__restore_choose(s, a);
    }
    return 1;
}
