/* SPDX-License-Identifier: Apache-2.0 */
/* Small messages on `world`, which is never revoked: they reach the living whatever happens to the other communicators.
 * The receive from anyone that is always posted is also how a rank that waits for nobody in particular, a sleeping
 * spare, learns of a death. */
#include "swap/runtime.h"
#include <string.h>

#define MAGIC   0x6f70695f6374726cull
#define SLEEP_S 1e-3 /* of a spare between looks */
#define CLOSE_S 10.0

/* Open MPI looks at what the launcher reports of deaths in every eighth of its progress calls: a rank that sleeps between
 * them makes eight of them at once. */
#define LOOKS  8
#define LOOK_S 1e-3

static int post(opi_swap *s)
{
    s->control_request = MPI_REQUEST_NULL;
    return MPI_Irecv(&s->control_in, (int)sizeof s->control_in, MPI_BYTE, MPI_ANY_SOURCE, OPI__TAG_CONTROL, s->world,
                     &s->control_request) == MPI_SUCCESS;
}

int32_t opi__control_open(opi_swap *s)
{
    for (size_t i = 0; i < sizeof s->control_sent / sizeof s->control_sent[0]; i++)
        s->control_sent[i] = MPI_REQUEST_NULL;
    s->recover_epoch = s->done_epoch = -1;
    return post(s);
}

void opi__fault(opi_swap *s)
{
    if (!s->fault)
        s->fault_time = opi__now();
    s->fault = 1;
}

int32_t opi__owned_slot(const opi_swap *s, int32_t world_rank)
{
    for (int32_t i = 0; i < opi__grid_slots(&s->grid); i++)
        if (s->owner[i] == world_rank)
            return i;
    return -1;
}

static int is_member(const opi_swap *s, int32_t world_rank)
{
    for (int32_t i = 0; i < s->members; i++)
        if (s->member[i] == world_rank)
            return 1;
    return 0;
}

/* Somebody died. With a slot lost, recovery is needed; a lost spare is only told: the job needs it no more than before. */
void opi__control_look(opi_swap *s)
{
    if (!opi__engine_dead(s->world, s->world_size, s->dead))
        return;
    for (int32_t w = 0; w < s->world_size; w++) {
        if (s->dead[w] != 1 || !is_member(s, w))
            continue;
        s->dead[w] = 2; /* seen */
        if (opi__owned_slot(s, w) >= 0) {
            opi__fault(s);
            continue;
        }
        if (s->view.spares > 0)
            s->view.spares--;
        opi_swap_event e = {.kind = OPI_SWAP_SPARE_LOST,
                            .epoch = s->view.epoch,
                            .rank = s->process[w].card.id,
                            .slot = -1,
                            .lost = 1,
                            .step = s->next,
                            .time_s = opi__now()};
        opi__journal_event(&s->journal, &e, "spare rank %d died, %d left; training goes on", (int)s->process[w].card.id,
                           (int)s->view.spares);
    }
}

static void take_message(opi_swap *s)
{
    const opi__wire *m = &s->control_in;
    if (m->magic != MAGIC || m->epoch < s->view.epoch)
        return; /* from before the last recovery */
    if (m->kind == OPI__WIRE_LEAVE) {
        s->left = m->slot + 1;
        opi__fault(s);
    }
    if (m->kind == OPI__WIRE_FENCED) {
        s->fenced = 1;
        opi__fault(s);
    }
    if (m->kind == OPI__WIRE_RECOVER && m->epoch > s->recover_epoch)
        s->recover_epoch = m->epoch;
    if (m->kind == OPI__WIRE_DONE)
        s->done_epoch = m->epoch;
    if ((m->kind == OPI__WIRE_NOTICE || m->kind == OPI__WIRE_RECOVER) && m->epoch == s->view.epoch)
        opi__fault(s);
}

void opi__control_poll(opi_swap *s)
{
    double now = opi__now();
    int looks = now - s->looked >= LOOK_S ? LOOKS : 1;
    if (looks > 1)
        s->looked = now;
    for (int i = 0; i < 64; i++) {
        if (s->control_request == MPI_REQUEST_NULL && !post(s))
            return;
        int from = -1, state = opi__engine_test_any(&s->control_request, &from);
        if (!state && --looks > 0)
            continue;
        if (!state)
            return;
        if (state < 0) {
            opi__control_look(s);
            return;
        }
        /* One that was declared dead may still talk. */
        if (from >= 0 && from < s->world_size && !s->dead[from])
            take_message(s);
    }
}

void opi__control_send(opi_swap *s, int32_t to, int32_t kind)
{
    const int32_t most = (int32_t)(sizeof s->control_sent / sizeof s->control_sent[0]);
    if (to == s->world_rank || (s->dead[to] && kind != OPI__WIRE_FENCED))
        return;
    for (int32_t i = 0; i < most; i++) { /* a place whose last message has left */
        int32_t at = s->control_next = (s->control_next + 1) % most;
        if (!opi__engine_test(&s->control_sent[at], NULL))
            continue;
        opi__wire m = {MAGIC, 0, 0, s->next, s->view.epoch, kind, s->view.slot, s->grid.dp, 1, 0};
        if (kind == OPI__WIRE_LEAVE)
            m.slot = s->view.rank;
        s->control_out[at] = m;
        s->control_sent[at] = MPI_REQUEST_NULL;
        if (MPI_Isend(&s->control_out[at], (int)sizeof m, MPI_BYTE, to, OPI__TAG_CONTROL, s->world,
                      &s->control_sent[at]) != MPI_SUCCESS)
            s->control_sent[at] = MPI_REQUEST_NULL;
        return;
    }
}

void opi__control_tell(opi_swap *s, int32_t kind, int32_t spares)
{
    for (int32_t i = 0; i < s->members; i++)
        if (!spares || opi__owned_slot(s, s->member[i]) < 0)
            opi__control_send(s, s->member[i], kind);
}

/* A spare that notices a death first does not start the recovery: it would spin in there until the active ranks come. It
 * tells them, and goes on sleeping until one of them says that it is on its way, or none is left. */
int32_t opi__control_spare(opi_swap *s)
{
    int32_t told = 0;
    for (;;) {
        opi__control_poll(s);
        if (s->recover_epoch == s->view.epoch)
            return 1;
        if (s->done_epoch == s->view.epoch)
            return 0;
        if (s->left)
            return 1;
        if (s->fault) {
            int32_t active = 0;
            for (int32_t i = 0; i < opi__grid_slots(&s->grid); i++)
                active += !s->dead[s->owner[i]];
            if (!active)
                return 1;
            if (!told)
                opi__control_tell(s, OPI__WIRE_NOTICE, 0);
            told = 1;
        }
        opi__pause(SLEEP_S);
    }
}

void opi__control_leave(opi_swap *s)
{
    if (!s->established || s->finished || s->fenced)
        return;
    opi__control_tell(s, OPI__WIRE_LEAVE, 0);
    opi__engine_drain(s->control_sent, sizeof s->control_sent / sizeof s->control_sent[0]);
    opi__revoke_active(s);
}

void opi__control_close(opi_swap *s)
{
    double end = opi__now() + CLOSE_S;
    int from = -1, state = 0;
    if (s->control_request != MPI_REQUEST_NULL)
        MPI_Cancel(&s->control_request);
    /* A death that nobody has acknowledged keeps a receive from anyone pending, canceled or not; and a message that came
     * together with an old error ends only the way that opi__engine_test_any knows. */
    while (s->control_request != MPI_REQUEST_NULL && state != 1 && opi__now() < end) {
        state = opi__engine_test_any(&s->control_request, &from);
        if (state < 0)
            opi__engine_dead(s->world, s->world_size, s->dead);
        if (state != 1)
            opi__pause(20e-6);
    }
    opi__engine_drain(s->control_sent, sizeof s->control_sent / sizeof s->control_sent[0]);
}
