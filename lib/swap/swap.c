/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of the training loop. */
#include "base/mem.h"
#include "base/status.h"
#include "base/take.h"
#include "swap/runtime.h"
#include <string.h>

#define FINISH_SLEEP_S 50e-6
#define LEAVE_SLEEP_S  1e-3
#define LEAVE_LOOKS    20

int32_t opi_swap_check_mpi(opi_error *err)
{
    return opi__engine_check(err);
}

void opi_swap_range(uint64_t total, int32_t parts, int32_t index, uint64_t *begin, uint64_t *end)
{
    opi__range(total, parts, index, begin, end);
}

int32_t opi_swap_get_view(const opi_swap *swap, opi_swap_view *view, opi_error *err)
{
    if (!swap || !view)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_get_view: a NULL argument");
    return opi__give(view, &swap->view, sizeof swap->view, "opi_swap_view", err);
}

int32_t opi_swap_get_counters(const opi_swap *swap, opi_swap_counters *counters, opi_error *err)
{
    if (!swap || !counters)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_get_counters: a NULL argument");
    opi_swap_counters now = swap->journal.counters;
    now.buffer_bytes = swap->buffer_bytes;
    return opi__give(counters, &now, sizeof now, "opi_swap_counters", err);
}

/* ---- registration ------------------------------------------------------------------------------------------------ */

static int32_t check_state(const opi_swap *s, const opi_swap_state *t, opi_error *err)
{
    size_t length = t->name ? strlen(t->name) : 0;
    if (length < 1 || length >= OPI__NAME_BYTES)
        return opi__fail(err, OPI_E_INVALID, -1, "a state's name has %zu bytes, 1 to %d are allowed", length,
                         OPI__NAME_BYTES - 1);
    if (t->kind < OPI_SWAP_REPLICATED || t->kind > OPI_SWAP_SMALL)
        return opi__fail(err, OPI_E_INVALID, -1,
                         "state \"%s\": kind %d is none of OPI_SWAP_REPLICATED … OPI_SWAP_SMALL", t->name,
                         (int)t->kind);
    if (!t->data && t->size && t->kind != OPI_SWAP_DERIVED)
        return opi__fail(err, OPI_E_INVALID, -1, "state \"%s\": data is NULL and size is %llu", t->name,
                         (unsigned long long)t->size);
    if (!t->total != !t->element || (t->total && t->kind != OPI_SWAP_SHARDED))
        return opi__fail(err, OPI_E_INVALID, -1,
                         "state \"%s\": total %llu and element %llu; both are given, for sharded "
                         "state, or neither",
                         t->name, (unsigned long long)t->total, (unsigned long long)t->element);
    if (t->total && t->total > UINT64_MAX / t->element)
        return opi__fail(err, OPI_E_RANGE, -1, "state \"%s\": %llu elements of %llu bytes are more than 64 bits count",
                         t->name, (unsigned long long)t->total, (unsigned long long)t->element);
    if (t->total && s->view.dp >= 0) {
        uint64_t begin, end;
        opi__range(t->total, s->grid.dp, s->view.dp, &begin, &end);
        /* In `assign` the widths are about to change: opi__meet_states looks after it. */
        if (!s->recovering && (end - begin) * t->element != t->size)
            return opi__fail(err, OPI_E_INVALID, -1,
                             "state \"%s\": size %llu, but elements [%llu, %llu) of %llu bytes are %llu", t->name,
                             (unsigned long long)t->size, (unsigned long long)begin, (unsigned long long)end,
                             (unsigned long long)t->element, (unsigned long long)((end - begin) * t->element));
    }
    return OPI_OK;
}

int32_t opi_swap_register(opi_swap *swap, const opi_swap_state *state, opi_error *err)
{
    opi_swap_state t;
    if (!swap || !state)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_register: a NULL argument");
    int32_t rc = opi__take(&t, sizeof t, state, "opi_swap_state", err);
    if (!rc)
        rc = check_state(swap, &t, err);
    if (rc)
        return rc;
    size_t i = 0;
    while (i < swap->states && strcmp(swap->state[i].name, t.name))
        i++;
    if (i < swap->states && !swap->sealed)
        return opi__fail(err, OPI_E_INVALID, (int64_t)i, "state \"%s\" is registered already", t.name);
    if (i < swap->states && swap->state[i].kind != t.kind)
        return opi__fail(err, OPI_E_INVALID, (int64_t)i, "state \"%s\" is registered with kind %d, not %d", t.name,
                         (int)swap->state[i].kind, (int)t.kind);
    if (i == swap->states && swap->established && swap->view.role == OPI_SWAP_ACTIVE && !swap->recovering)
        return opi__fail(err, OPI_E_INVALID, -1,
                         "state \"%s\" is new: states are registered before the first step or in "
                         "assign",
                         t.name);
    if (i == OPI__STATES)
        return opi__fail(err, OPI_E_RANGE, OPI__STATES, "state \"%s\" is one more than %d", t.name, OPI__STATES);
    opi__state before = swap->state[i], *to = &swap->state[i];
    size_t states = swap->states;
    memset(to, 0, sizeof *to);
    memcpy(to->name, t.name, strlen(t.name));
    to->kind = t.kind;
    to->data = t.data;
    to->size = t.size;
    to->total = t.total;
    to->element = t.element;
    if (i == swap->states)
        swap->states++;
    rc = opi__snapshot_memory(swap, err);
    if (rc) { /* nothing is changed by what cannot be kept */
        swap->state[i] = before;
        swap->states = states;
    }
    return rc;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static int32_t check_fence(opi_swap *s, opi_error *err)
{
    if (!s->fenced)
        return OPI_OK;
    opi_swap_event e = {.kind = OPI_SWAP_FENCED,
                        .epoch = s->view.epoch,
                        .rank = s->process[s->world_rank].card.id,
                        .slot = s->view.slot,
                        .step = s->next,
                        .time_s = opi__now()};
    opi__journal_event(&s->journal, &e, "this rank was declared dead and its place was taken");
    return opi__fail(err, OPI_E_FENCED, s->process[s->world_rank].card.id,
                     "rank %d was declared dead and its place was taken in epoch %d: it must leave",
                     (int)s->process[s->world_rank].card.id, (int)s->view.epoch + 1);
}

/* A rank that left alive takes part in no recovery, and none could do without it. Its word may be a little behind the
 * revocation that it caused: that is waited for when nobody is known to have died. */
static int32_t check_left(opi_swap *s, opi_error *err)
{
    int32_t dead = 0;
    for (int32_t i = 0; i < s->members; i++)
        dead |= s->dead[s->member[i]];
    for (int i = 0; s->established && s->fault && !dead && !s->left && i < LEAVE_LOOKS; i++) {
        opi__pause(LEAVE_SLEEP_S);
        opi__control_poll(s);
        for (int32_t k = 0; k < s->members; k++)
            dead |= s->dead[s->member[k]];
    }
    if (!s->left)
        return OPI_OK;
    return opi__fail(err, OPI_E_LOST, s->left - 1,
                     "rank %d left the job before its end, alive: nobody can take its place", (int)s->left - 1);
}

/* All steps are done here: 1 when they are everywhere, 0 when a failure sends this rank back. The agreement is not waited
 * for inside MPI: a rank that never comes here because it recovers instead could then not be followed. */
static int finish(opi_swap *s)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (s->view.role == OPI_SWAP_ACTIVE) {
        while (!s->fault && (s->current || s->pending != OPI__NO_STEP || opi__persist_busy(s))) {
            opi__snapshot_progress(s);
            opi__persist_progress(s);
            opi__control_poll(s);
            opi__pause(FINISH_SLEEP_S);
        }
        if (s->fault)
            return 0;
        OPI__POINT("finishing");
        opi__control_tell(s, OPI__WIRE_DONE, 1);
    }
    /* A lost spare does not keep the others from ending. Who is acknowledged is looked at after that, so that no lost slot
     * passes for one. Whatever is found, this rank takes part: others may be in there already. */
    opi__engine_acknowledge(s->now);
    opi__control_look(s);
    s->finish_flag = !s->fault;
    if (!opi__engine_iagree(s->now, &s->finish_flag, &request)) {
        opi__fault(s);
        return 0;
    }
    for (;;) {
        int state = opi__engine_test(&request, NULL);
        if (state == 1 && s->finish_flag)
            return 1;
        if (state)
            break;
        opi__control_poll(s);
        /* Only a rank that recovers instead is a reason to leave: deaths are the agreement's own business. */
        if (s->recover_epoch == s->view.epoch)
            break;
        opi__pause(FINISH_SLEEP_S);
    }
    opi__fault(s);
    return 0;
}

/* The copy of the last step has just been given. An MPI test would hand the core to it where there are more ranks than
 * cores (Open MPI yields), and all would wait for this rank's next step: that gets its work first. */
static int copy_begins(const opi_swap *s)
{
    return s->current && s->current->phase == OPI__COPYING && s->current->step == s->committed;
}

int32_t opi_swap_step(opi_swap *swap, int64_t *step, opi_error *err)
{
    opi_swap *s = swap;
    if (!s || !step)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_step: a NULL argument");
    if (s->broken)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_step after an error that ended this runtime");
    if (s->in_step)
        return opi__fail(err, OPI_E_INVALID, s->next, "step %lld was not committed", (long long)s->next);
    s->sealed = 1;
    while (!s->finished) {
        if (!copy_begins(s))
            opi__control_poll(s);
        int32_t rc = check_fence(s, err);
        if (!rc)
            rc = check_left(s, err);
        if (!rc && (s->fault || !s->established)) {
            s->recovering = 1;
            rc = opi__recover(s, err);
            s->recovering = 0;
            if (!rc)
                continue;
        }
        if (rc) {
            s->broken = 1;
            return rc;
        }
        if (s->view.role == OPI_SWAP_SPARE) {
            if (opi__control_spare(s))
                opi__fault(s);
            else
                s->finished = finish(s);
            continue;
        }
        if (s->next >= s->options.steps) {
            s->finished = finish(s);
            continue;
        }
        if (!copy_begins(s))
            opi__snapshot_progress(s);
        opi__persist_progress(s);
        if (s->fault)
            continue;
        s->in_step = 1;
        *step = s->next;
        s->good_time = opi__now();
        OPI__POINT("step");
        return 1;
    }
    return 0;
}

int32_t opi_swap_progress(opi_swap *swap)
{
    if (!swap || !swap->in_step)
        return 0;
    opi__snapshot_progress(swap);
    opi__persist_progress(swap);
    opi__control_poll(swap);
    if (!swap->fault)
        swap->good_time = opi__now();
    return swap->fault ? 1 : 0;
}

int32_t opi_swap_idle(opi_swap *swap, int32_t (*done)(void *user), void *user)
{
    double pause = 20e-6;
    if (!swap || !done)
        return 0;
    while (!done(user)) {
        int busy = swap->current != NULL;
        if (opi_swap_progress(swap))
            return 1;
        /* While traffic moves the next look comes soon; otherwise the core is left alone. */
        pause = busy ? 20e-6 : pause < 500e-6 ? pause * 2 : pause;
        opi__pause(pause);
    }
    return swap->fault ? 1 : 0;
}

int32_t opi_swap_update(opi_swap *swap, opi_error *err)
{
    if (!swap)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_update: swap is NULL");
    if (!swap->in_step)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_update outside of a step");
    OPI__POINT("update");
    opi_swap_progress(swap);
    if (opi__snapshot_settle(swap))
        return 1;
    swap->dirty = 1;
    return 0;
}

int32_t opi_swap_commit(opi_swap *swap, int32_t fault, double busy_s, opi_error *err)
{
    opi_swap *s = swap;
    if (!s)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_commit: swap is NULL");
    if (!s->in_step)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_commit outside of a step");
    s->in_step = 0;
    if (fault) {
        opi__fault(s);
        return OPI_OK;
    }
    /* A program that changed nothing it had to announce may skip opi_swap_update; the copy must still be over. And a step
     * counts only when the snapshot before it is complete everywhere: so at most one is ever computed again. */
    opi__snapshot_settle(s);
    opi__snapshot_finish(s);
    if (s->fault)
        return OPI_OK;
    s->committed = s->next++;
    s->stuck = 0;
    s->dirty = 0;
    s->busy = busy_s;
    OPI__POINT("commit");
    const opi_swap_options *o = &s->options;
    int64_t number = s->next; /* steps done */
    int32_t file =
        s->persist && (s->file_asked || (o->checkpoint_interval > 0 && number % o->checkpoint_interval == 0));
    if (number % (o->interval ? o->interval : 1) == 0 || file) {
        s->file_asked = 0;
        if (!s->fault)
            opi__snapshot_due(s, s->committed, file);
    }
    if (!copy_begins(s))
        opi__snapshot_progress(s);
    opi__persist_progress(s);
    return OPI_OK;
}

int32_t opi_swap_watch(opi_swap *swap, int32_t comm, opi_error *err)
{
    if (!swap)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_watch: swap is NULL");
    if (swap->watching == OPI__WATCHED)
        return opi__fail(err, OPI_E_RANGE, OPI__WATCHED, "more than %d communicators to watch", OPI__WATCHED);
    MPI_Comm c = MPI_Comm_f2c((MPI_Fint)comm);
    if (c == MPI_COMM_NULL)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_watch: comm is MPI_COMM_NULL");
    swap->watched[swap->watching++] = c;
    return OPI_OK;
}

int32_t opi_swap_checkpoint(opi_swap *swap, opi_error *err)
{
    if (!swap)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_checkpoint: swap is NULL");
    if (!swap->persist)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_checkpoint: options had no checkpoint_dir");
    swap->file_asked = 1;
    return OPI_OK;
}
