/* SPDX-License-Identifier: Apache-2.0 */
/* The recovery, which is also the first meeting:
 *
 *   revoke -> shrink `world` -> hello -> assign slots -> split -> [assign] -> compare states -> choose the step ->
 *   move, verify, put back -> [rebuild] -> agree
 *
 * Any failure on the way, on any rank, makes the final agreement say no to everybody; all then go back to shrink. What an
 * attempt found out becomes the state of the runtime only after the agreement. */
#include "base/status.h"
#include "swap/join.h"
#include "swap/persist.h"
#include "swap/restore.h"
#include "swap/signals.h"
#include <string.h>

#define ATTEMPTS           200
#define ALL_WELL           1
#define NOT_FATAL          2
#define NO_CALLBACK_FAILED 4
#define NOT_LOST           8
#define BEGIN_AGAIN        2 /* the world has changed, or nobody came: all know it */

static void stamp(opi__attempt *a, int32_t phase)
{
    a->mark[phase] = opi__now();
}

void opi__revoke_active(opi_swap *s)
{
    MPI_Comm all[] = {s->active, s->dp, s->tp, s->pp, s->ring, s->files};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        opi__engine_revoke(all[i]);
    for (int32_t i = 0; i < s->watching; i++)
        opi__engine_revoke(s->watched[i]);
    s->watching = 0;
}

static void revoke_attempt(opi_swap *s, opi__attempt *a)
{
    MPI_Comm all[] = {a->now, a->active, a->dp, a->tp, a->pp, a->ring, a->files};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        opi__engine_revoke(all[i]);
    for (int32_t i = 0; i < s->watching; i++)
        opi__engine_revoke(s->watched[i]); /* of a `rebuild` that was half done */
    s->watching = 0;
}

/* ---- views and callbacks ----------------------------------------------------------------------------------------- */

/* A new process cannot know by itself whether the others recover or still meet for the first time. */
static int32_t next_epoch(const opi__attempt *a)
{
    int32_t epoch = 0, established = 0;
    for (int32_t m = 0; m < a->members; m++) {
        established |= a->hello[m].established;
        if (a->hello[m].epoch > epoch)
            epoch = a->hello[m].epoch;
    }
    return epoch + (established ? 1 : 0);
}

static opi_swap_view view_of(const opi_swap *s, const opi__attempt *a)
{
    opi_swap_view v = s->view;
    v.struct_size = (uint32_t)sizeof v;
    v.role = a->slot >= 0 ? OPI_SWAP_ACTIVE : OPI_SWAP_SPARE;
    v.slot = a->slot;
    v.dp = v.tp = v.pp = -1;
    if (a->slot >= 0)
        opi__grid_coordinates(&a->grid, a->slot, &v.dp, &v.tp, &v.pp);
    v.dp_width = a->grid.dp;
    v.tp_width = a->grid.tp;
    v.pp_width = a->grid.pp;
    v.epoch = next_epoch(a);
    v.spares = a->members - opi__grid_slots(&a->grid);
    v.comm_active = (int32_t)MPI_Comm_c2f(a->active);
    v.comm_dp = (int32_t)MPI_Comm_c2f(a->dp);
    v.comm_tp = (int32_t)MPI_Comm_c2f(a->tp);
    v.comm_pp = (int32_t)MPI_Comm_c2f(a->pp);
    return v;
}

/* 1 = fine. A callback that fails is told apart from a failure of communication by *callback. */
static int call(opi_swap *s, opi__attempt *a, int32_t (*fn)(void *, const opi_swap_view *), const char *name,
                int32_t *callback)
{
    if (!fn || a->slot < 0)
        return 1;
    opi_swap_view v = view_of(s, a);
    int32_t rc = fn(s->options.callbacks.user, &v);
    if (!rc)
        return 1;
    opi__fail(&a->err, OPI_E_INVALID, a->slot, "callback %s of rank %d for slot %d returned %d", name, (int)v.rank,
              (int)a->slot, (int)rc);
    *callback = 1;
    return 0;
}

static void keep_all(opi_swap *s, const opi__attempt *a)
{
    MPI_Comm all[] = {a->now, a->active, a->dp, a->tp, a->pp, a->ring, a->files};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        opi__join_keep(s, all[i]);
}

static int slot_is_new(const opi_swap *s, const opi__attempt *a)
{
    return !s->established || s->view.slot != a->slot || a->grid.dp != a->old.dp;
}

/* ---- one attempt ------------------------------------------------------------------------------------------------- */

static int from_nothing(opi_swap *s, opi__attempt *a, int32_t *callback)
{
    a->step = -1;
    a->from = OPI__FROM_INIT;
    a->from_dp = a->grid.dp;
    if (s->established && !s->options.callbacks.init) {
        a->fatal = opi__fail(&a->err, OPI_E_LOST, -1,
                             "the state of a slot and all its copies are lost, there is no checkpoint "
                             "and no init callback");
        return 1;
    }
    s->dirty = 1;
    if (!call(s, a, s->options.callbacks.init, "init", callback))
        return 0;
    s->dirty = 0;
    s->committed = -1;
    return 1;
}

static int bring_back(opi_swap *s, opi__attempt *a, int32_t *callback)
{
    opi__restore_choose(s, a);
    if (a->stop) {
        int32_t written = 0;
        return a->fatal ? 1 : opi__persist_last(s, a, &written);
    }
    if (!a->fatal && !opi__restore(s, a))
        return 0;
    if (a->fatal || a->from == OPI__FROM_MEMORY)
        return 1;
    /* The first meeting, or copies of a slot are lost. */
    if (!opi__persist_load(s, a))
        return 0;
    return a->from == OPI__FROM_FILES || a->fatal ? 1 : from_nothing(s, a, callback);
}

/* 1 = all phases done on this rank. */
static int phases(opi_swap *s, opi__attempt *a, int32_t *callback)
{
    if (!opi__meet(s, a) || a->fatal)
        return 0;
    stamp(a, OPI_SWAP_AGREED);
    OPI__POINT("met");
    a->fatal = opi__meet_assign(s, a);
    stamp(a, OPI_SWAP_CLASSIFIED);
    if (a->fatal)
        return 0;
    stamp(a, OPI_SWAP_ASSIGNED);
    OPI__POINT("assigned");
    if (a->unfilled && s->options.policy == OPI_SWAP_WAIT && !s->gave_up) {
        opi__join(s, a);
        return BEGIN_AGAIN;
    }
    a->stop |= a->unfilled > 0;
    if (!a->stop) {
        if (!opi__meet_comms(s, a))
            return 0;
        OPI__POINT("rebuilt");
        if (slot_is_new(s, a) && !call(s, a, s->options.callbacks.assign, "assign", callback))
            return 0;
        if (!opi__meet_states(s, a) || a->fatal)
            return 0;
    }
    stamp(a, OPI_SWAP_REBUILT);
    if (!bring_back(s, a, callback) || a->fatal)
        return 0;
    stamp(a, OPI_SWAP_RESTORED);
    OPI__POINT("restored");
    if (!a->stop && !call(s, a, s->options.callbacks.rebuild, "rebuild", callback))
        return 0;
    OPI__POINT("agreeing");
    return 1;
}

/* ---- after the agreement ----------------------------------------------------------------------------------------- */

static int32_t set_members(opi_swap *s, opi__attempt *a)
{
    int32_t *member = opi__alloc(s->ctx, (size_t)a->members, sizeof *member);
    if (!member)
        return 0;
    memcpy(member, a->member, (size_t)a->members * sizeof *member);
    opi__free(s->ctx, s->member);
    s->member = member;
    s->members = a->members;
    for (int32_t i = 0; i < s->world_size; i++)
        s->dead[i] = 2;
    for (int32_t i = 0; i < a->members; i++)
        s->dead[a->member[i]] = 0;
    for (int32_t i = 0; i < opi__grid_slots(&a->grid); i++)
        s->owner[i] = a->member[a->owner[i]];
    return 1;
}

static void remember_rows(opi_swap *s, const opi__attempt *a)
{
    if (a->grid.dp == a->old.dp)
        return;
    for (int32_t d = 0; d < a->grid.dp; d++) /* in place: from_row[d] >= d */
        s->wide_row[d] =
            a->from_dp == s->wide_dp && a->from_dp != a->old.dp ? s->wide_row[a->from_row[d]] : a->from_row[d];
    s->wide_dp = a->from_dp;
}

/* Whoever was left behind while it lives must stop: it is told so, and on this host it is ended if the program wishes. */
void opi__evict(opi_swap *s, const opi__attempt *a)
{
    const opi__card *mine = &s->process[s->world_rank].card;
    for (int32_t i = 0; i < s->members; i++) {
        int32_t w = s->member[i], alive = 0;
        for (int32_t k = 0; k < a->members && !alive; k++)
            alive = a->member[k] == w;
        if (alive)
            continue;
        if (a->me == 0)
            opi__control_send(s, w, OPI__WIRE_FENCED);
        if (s->options.evict && s->process[w].card.host == mine->host)
            opi__end_process(s->process[w].card.pid);
    }
}

/* Who keeps copies of whose state from now on. */
static int32_t place(opi_swap *s)
{
    int32_t slots = opi__grid_slots(&s->grid), most = s->options.replicas < slots - 1 ? s->options.replicas : slots - 1;
    s->replicas = most;
    s->outs = s->ins = 0;
    if (most < 1)
        return 1;
    opi__domain *domain = opi__alloc(s->ctx, (size_t)slots, sizeof *domain);
    int32_t *scratch = opi__alloc(s->ctx, opi__place_scratch((size_t)slots), sizeof *scratch);
    int32_t done = domain && scratch;
    opi__placement_quality quality;
    for (int32_t i = 0; done && i < slots; i++)
        domain[i] = s->process[s->owner[i]].domain;
    if (done)
        opi__place((size_t)slots, domain, most, scratch, s->holder, &quality);
    opi__free(s->ctx, domain);
    opi__free(s->ctx, scratch);
    for (int32_t i = 0; done && s->view.slot >= 0 && i < slots * most; i++) {
        int32_t source = i / most;
        if (source == s->view.slot && s->holder[i] >= 0)
            s->out[s->outs++].peer = s->holder[i];
        if (s->holder[i] != s->view.slot)
            continue;
        if (s->ins == s->in_room) {
            opi__link *more = opi__resize(s->ctx, s->in, (size_t)s->in_room + 8, sizeof *more);
            if (!more)
                return 0;
            memset(more + s->in_room, 0, 8 * sizeof *more);
            s->in = more;
            s->in_room += 8;
        }
        s->in[s->ins++].peer = source;
    }
    return done;
}

/* After a swap the peers that lack a copy of the restored step get it in the background of the next step. */
static void resume_copies(opi_swap *s, opi__attempt *a)
{
    int32_t skip_out[OPI__REPLICAS] = {0},
            *skip_in = opi__arena_alloc(&a->arena, (size_t)(s->ins + 1) * sizeof *skip_in);
    opi__snap *n = opi__snapshot_of(s, a->step, s->grid.dp, s->view.slot);
    if (!skip_in || !n) {
        opi__fault(s);
        return;
    }
    for (int32_t i = 0; i < s->outs; i++)
        skip_out[i] = opi__restore_copy(a, a->owner[s->out[i].peer], OPI__UNIQUE, s->view.slot) != NULL;
    for (int32_t i = 0; i < s->ins; i++)
        skip_in[i] = opi__restore_copy(a, a->me, OPI__UNIQUE, s->in[i].peer) != NULL;
    opi__snapshot_resume(s, n, skip_out, skip_in);
}

static void tell_loss(opi_swap *s, const opi__attempt *a)
{
    if (!a->kind)
        return;
    opi_swap_event e = {.kind = a->kind,
                        .epoch = s->view.epoch,
                        .rank = -1,
                        .slot = -1,
                        .lost = a->dead,
                        .step = s->next,
                        .time_s = opi__now()};
    if (a->dead)
        opi__journal_event(&s->journal, &e, "%s died", a->lost);
    else
        opi__journal_event(&s->journal, &e, "communication failed, every rank is alive");
    if (a->from == OPI__FROM_MEMORY || a->stop)
        return;
    e.kind = OPI_SWAP_COPIES_LOST;
    opi__journal_event(&s->journal, &e, "no complete set of copies is left in memory: back to %s",
                       a->from == OPI__FROM_FILES ? "the persistent checkpoint" : "step 0");
}

static void tell_end(opi_swap *s, const opi__attempt *a, double begin, int64_t redone)
{
    opi_swap_event e = {.kind = OPI_SWAP_RECOVERED,
                        .epoch = s->view.epoch,
                        .rank = -1,
                        .slot = s->view.slot,
                        .lost = a->dead,
                        .step = s->next,
                        .redone = redone,
                        .time_s = opi__now()};
    if (a->from == OPI__FROM_FILES) {
        e.kind = OPI_SWAP_LOADED;
        opi__journal_event(&s->journal, &e, "state loaded from the persistent checkpoint of step %lld",
                           (long long)a->step);
    }
    if (a->grid.dp != a->old.dp) {
        e.kind = OPI_SWAP_SHRUNK;
        opi__journal_event(&s->journal, &e, "data-parallel width %d, was %d", (int)a->grid.dp, (int)a->old.dp);
    }
    if (!a->kind)
        return;
    e.kind = OPI_SWAP_RECOVERED;
    e.phase_s[0] = s->fault_time > s->good_time && s->good_time > 0 ? s->fault_time - s->good_time : 0;
    double last = begin;
    for (int32_t i = 1; i < OPI_SWAP_PHASES; i++) {
        if (a->mark[i] >= last)
            e.phase_s[i] = a->mark[i] - last;
        if (a->mark[i] >= last)
            last = a->mark[i];
    }
    opi__journal_event(&s->journal, &e, "%s%s%s%sgoing on with step %lld, %lld computed again", a->lost,
                       a->dead ? " died; " : "", a->taken, a->taken[0] ? "; " : "", (long long)s->next,
                       (long long)redone);
}

static void adopt(opi_swap *s, opi__attempt *a, double begin)
{
    int64_t redone = s->established && a->furthest > a->step ? a->furthest - a->step : 0;
    opi_swap_view view = view_of(s, a);
    s->now = a->now;
    if (a->stop) {
        tell_loss(s, a);
        s->finished = 1;
        s->journal.counters.stopped = 1;
        opi_swap_event e = {.kind = OPI_SWAP_STOPPED,
                            .epoch = s->view.epoch,
                            .rank = -1,
                            .slot = s->view.slot,
                            .lost = a->dead,
                            .step = a->step,
                            .time_s = opi__now()};
        if (a->from == OPI__FROM_MEMORY)
            opi__journal_event(&s->journal, &e, "%d slots without a rank and no spare left: stopped after step %lld",
                               (int)a->unfilled, (long long)a->step);
        else
            opi__journal_event(&s->journal, &e,
                               "%d slots without a rank and no spare left: stopped, without a complete state in memory",
                               (int)a->unfilled);
        return;
    }
    tell_loss(s, a);
    s->active = a->active;
    s->dp = a->dp;
    s->tp = a->tp;
    s->pp = a->pp;
    s->ring = a->ring;
    s->files = a->files;
    s->grid = a->grid;
    s->view = view;
    s->stuck = a->dead || !a->kind ? 0 : a->stuck + 1;
    s->next = a->step + 1;
    s->fault = s->in_step = 0;
    s->carried_kind = s->carried_dead = 0;
    if (a->dead)
        opi__evict(s, a);
    if (!set_members(s, a))
        opi__fault(s);
    remember_rows(s, a);
    if (!place(s))
        opi__fault(s);
    /* Blocks of later steps are from a future that is computed again. */
    opi__snapshot_forget(s, a->step, a->from_dp);
    int same = a->from == OPI__FROM_MEMORY && a->from_dp == a->grid.dp;
    if (s->view.slot >= 0) {
        if (same)
            resume_copies(s, a);
        else
            opi__snapshot_due(s, a->step, 0);
    } else {
        s->committed = a->step;
    }
    tell_end(s, a, begin, redone);
    s->established = 1;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static void clear(opi_swap *s, opi__attempt *a, double revoked)
{
    memset(a, 0, sizeof *a);
    opi__arena_init(&a->arena, s->ctx);
    a->now = a->active = a->dp = a->tp = a->pp = a->ring = a->files = MPI_COMM_NULL;
    a->slot = -1;
    a->mark[OPI_SWAP_REVOKED] = revoked;
}

int32_t opi__recover(opi_swap *s, opi_error *err)
{
    double begin = opi__now();
    int32_t callback_failures = 0, last_members = 0, rc = OPI_E_INTERNAL;
    opi__attempt a;
    if (s->established) {
        OPI__POINT("detected");
        /* Spares sleep, and whoever waits in the last agreement listens; all others learn it from the revocation. */
        opi__control_tell(s, OPI__WIRE_RECOVER, s->next + 1 < s->options.steps);
        opi__revoke_active(s);
        opi__snapshot_halt(s);
        opi__persist_halt(s);
        OPI__POINT("revoked");
    }
    double revoked = opi__now();
    clear(s, &a, revoked);
    for (int32_t i = 0; i < ATTEMPTS; i++) {
        int32_t callback = 0;
        int good = phases(s, &a, &callback), flags = 0;
        if (a.now == MPI_COMM_NULL || good == BEGIN_AGAIN) { /* there is nothing to agree on */
            revoke_attempt(s, &a);
            keep_all(s, &a);
            i -= good == BEGIN_AGAIN; /* how long to wait for others is wait_s's business */
            opi__arena_free(&a.arena);
            clear(s, &a, revoked);
            continue;
        }
        if (!good)
            revoke_attempt(s, &a);
        flags = (good ? ALL_WELL : 0) | (a.fatal ? 0 : NOT_FATAL) | (callback ? 0 : NO_CALLBACK_FAILED) |
                (a.fatal == OPI_E_LOST ? 0 : NOT_LOST);
        int sure = opi__engine_agree(a.now, &flags);
        keep_all(s, &a);
        stamp(&a, OPI_SWAP_RESUMED);
        OPI__POINT("agreed");
        if (sure && (flags & ALL_WELL)) {
            adopt(s, &a, begin);
            opi__arena_free(&a.arena);
            return OPI_OK;
        }
        revoke_attempt(s, &a);
        /* A callback that fails because of a death is called again by the next attempt; one that fails among the same
         * ranks twice will not get better. */
        if (sure && !(flags & NO_CALLBACK_FAILED))
            callback_failures = last_members == a.members ? callback_failures + 1 : 1;
        last_members = a.members;
        if (sure && (!(flags & NOT_FATAL) || callback_failures >= 2)) {
            rc = a.err.code ? opi__fail(err, a.err.code, a.err.index, "%s", a.err.message)
                            : opi__fail(err, flags & NOT_LOST ? OPI_E_INVALID : OPI_E_LOST, -1,
                                        "recovery failed on another rank, which has the reason");
            opi__arena_free(&a.arena);
            return rc;
        }
        opi__arena_free(&a.arena);
        clear(s, &a, revoked);
    }
    return opi__fail(err, rc, -1, "no agreement after %d attempts to recover", ATTEMPTS);
}
