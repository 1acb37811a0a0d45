/* SPDX-License-Identifier: Apache-2.0 */
/* Making and freeing the runtime of a process. */
#include "base/mem.h"
#include "base/status.h"
#include "base/take.h"
#include "swap/join.h"
#include <string.h>

#define WIDTH 65536 /* most of a width, and of slots */
#define SLOTS 1048576

static int32_t check_options(opi_swap_options *o, opi_error *err)
{
    int32_t *width[] = {&o->dp, &o->tp, &o->pp};
    static const char *const name[] = {"dp", "tp", "pp"};
    for (int i = 0; i < 3; i++) {
        if (!*width[i])
            *width[i] = 1;
        if (*width[i] < 1 || *width[i] > WIDTH)
            return opi__fail(err, OPI_E_RANGE, *width[i], "%s is %d, 1 to %d are allowed", name[i], (int)*width[i],
                             WIDTH);
    }
    if ((int64_t)o->dp * o->tp > SLOTS || (int64_t)o->dp * o->tp * o->pp > SLOTS)
        return opi__fail(err, OPI_E_RANGE, -1, "dp %d x tp %d x pp %d is more than %d slots", (int)o->dp, (int)o->tp,
                         (int)o->pp, SLOTS);
    if (o->policy < OPI_SWAP_STOP || o->policy > OPI_SWAP_WAIT)
        return opi__fail(err, OPI_E_RANGE, o->policy, "policy is %d, 0 to 2 are allowed", (int)o->policy);
    if (o->steps < 1)
        return opi__fail(err, OPI_E_RANGE, o->steps, "steps is %lld, at least 1 is needed", (long long)o->steps);
    if (!o->replicas)
        o->replicas = 1;
    if (o->replicas == -1)
        o->replicas = 0;
    if (o->replicas < 0 || o->replicas > OPI__REPLICAS)
        return opi__fail(err, OPI_E_RANGE, o->replicas, "replicas is %d, -1 (none) to %d are allowed", (int)o->replicas,
                         OPI__REPLICAS);
    if (o->interval < 0 || o->checkpoint_interval < 0 || o->checkpoint_keep < 0)
        return opi__fail(err, OPI_E_RANGE, -1,
                         "interval %d, checkpoint_interval %lld and checkpoint_keep %d cannot be "
                         "negative",
                         (int)o->interval, (long long)o->checkpoint_interval, (int)o->checkpoint_keep);
    if (!(o->straggler >= 0) || (o->straggler > 0 && !(o->straggler > 1)))
        return opi__fail(err, OPI_E_RANGE, -1, "straggler is %g, 0 or a number above 1 is needed", o->straggler);
    if (!(o->wait_s >= 0))
        return opi__fail(err, OPI_E_RANGE, -1, "wait_s is %g, it cannot be negative", o->wait_s);
    if (o->checkpoint_interval && !o->checkpoint_dir)
        return opi__fail(err, OPI_E_INVALID, -1, "checkpoint_interval is %lld and checkpoint_dir is NULL",
                         (long long)o->checkpoint_interval);
    return OPI_OK;
}

static int copy_string(opi_swap *s, const char **p)
{
    if (!*p)
        return 1;
    size_t n = strlen(*p) + 1;
    char *copy = opi__alloc(s->ctx, n, 1);
    if (copy)
        memcpy(copy, *p, n);
    *p = copy;
    return copy != NULL;
}

static int32_t make_tables(opi_swap *s, opi_error *err)
{
    size_t slots = (size_t)opi__grid_slots(&s->grid);
    s->owner = opi__alloc(s->ctx, slots, sizeof *s->owner);
    s->holder = opi__alloc(s->ctx, slots * OPI__REPLICAS, sizeof *s->holder);
    s->wide_row = opi__zalloc(s->ctx, (size_t)s->grid.dp, sizeof *s->wide_row);
    s->barrier_all = opi__alloc(s->ctx, slots * 2, sizeof *s->barrier_all);
    if (!s->owner || !s->holder || !s->wide_row || !s->barrier_all)
        return opi__fail_memory(err, slots * 64);
    for (size_t i = 0; i < slots; i++)
        s->owner[i] = (int32_t)i;
    for (int i = 0; i < OPI__SNAPS; i++)
        s->snap[i].step = OPI__NO_STEP;
    for (int i = 0; i < OPI__HELD; i++) {
        s->held[i].slot = -1;
        s->held[i].step = OPI__NO_STEP;
    }
    return OPI_OK;
}

/* Before the first meeting: the first ranks are to be active. */
static void set_view(opi_swap *s, int32_t rank)
{
    opi_swap_view *v = &s->view;
    int32_t slots = opi__grid_slots(&s->grid);
    v->struct_size = (uint32_t)sizeof *v;
    v->rank = rank;
    v->slot = rank < slots ? rank : -1;
    v->role = v->slot >= 0 ? OPI_SWAP_ACTIVE : OPI_SWAP_SPARE;
    v->dp = v->tp = v->pp = -1;
    if (v->slot >= 0)
        opi__grid_coordinates(&s->grid, v->slot, &v->dp, &v->tp, &v->pp);
    v->dp_width = s->grid.dp;
    v->tp_width = s->grid.tp;
    v->pp_width = s->grid.pp;
    v->spares = s->world_size - slots;
    v->comm_active = v->comm_dp = v->comm_tp = v->comm_pp = (int32_t)MPI_Comm_c2f(MPI_COMM_NULL);
}

/* Everything that talks; s->world is still MPI_COMM_NULL. */
static int32_t join_world(opi_swap *s, opi_error *err)
{
    MPI_Comm given = MPI_Comm_f2c((MPI_Fint)s->options.world);
    int rank = 0, size = 0;
    MPI_Comm parent = MPI_COMM_NULL;
    int32_t rc = make_tables(s, err);
    if (rc)
        return rc;
    if (s->options.policy == OPI_SWAP_WAIT && opi__join_parent(&parent)) {
        set_view(s, -1);
        rc = opi__join_world(s, parent, err);
        s->view.rank = rc ? -1 : s->process[s->world_rank].card.id;
        return rc;
    }
    if (given == MPI_COMM_NULL || MPI_Comm_rank(given, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(given, &size) != MPI_SUCCESS)
        return opi__fail(err, OPI_E_INVALID, -1, "world is no communicator");
    if (size < opi__grid_slots(&s->grid))
        return opi__fail(err, OPI_E_RANGE, size, "dp %d x tp %d x pp %d are %d slots, the communicator has %d ranks",
                         (int)s->grid.dp, (int)s->grid.tp, (int)s->grid.pp, (int)opi__grid_slots(&s->grid), size);
    opi__engine_quiet(given);
    opi__engine_quiet(MPI_COMM_SELF);
    MPI_Comm world = MPI_COMM_NULL;
    if (!opi__engine_dup(given, &world))
        return opi__fail(err, OPI_E_IO, -1, "world cannot be duplicated: a rank failed");
    opi__join_keep(s, world);
    rc = opi__join_first(s, world, err);
    if (!rc)
        set_view(s, rank);
    return rc;
}

static int32_t fill(opi_swap *s, opi_error *err)
{
    opi_swap_options *o = &s->options;
    const char **text[] = {&o->node,      &o->rack,   &o->checkpoint_dir, &o->checkpoint_fallback_dir,
                           &o->event_log, &o->program};
    int32_t whole = 1;
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
        whole &= copy_string(s, text[i]);
    if (!whole)
        return opi__fail_memory(err, 4096);
    s->grid.dp = o->dp;
    s->grid.tp = o->tp;
    s->grid.pp = o->pp;
    s->committed = s->pending = OPI__NO_STEP;
    s->journal.event = o->callbacks.event;
    s->journal.user = o->callbacks.user;
    int32_t rc = join_world(s, err);
    if (!rc)
        rc = opi__journal_open(&s->journal, s->ctx, o->event_log, s->view.rank, err);
    if (!rc)
        rc = opi__persist_open(s, err);
    int why = rc ? 0 : opi__worker_start(&s->copier);
    if (why)
        rc = opi__fail(err, OPI_E_NOMEM, -1, "cannot start the thread that copies: error %d of the system", why);
    return rc;
}

int32_t opi_swap_create(const opi_ctx_options *memory, const opi_swap_options *options, opi_swap **out, opi_error *err)
{
    opi_swap_options o;
    if (!options || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_swap_create: a NULL argument");
    int32_t rc = opi__take(&o, sizeof o, options, "opi_swap_options", err);
    if (!rc)
        rc = check_options(&o, err);
    if (!rc)
        rc = opi__engine_check(err);
    if (!rc && o.policy == OPI_SWAP_WAIT)
        rc = opi__engine_check_join(err);
    if (rc)
        return rc;
    opi_ctx *ctx = NULL;
    rc = opi_ctx_create(memory, &ctx, err);
    if (rc)
        return rc;
    opi_swap *s = opi__zalloc(ctx, 1, sizeof *s);
    if (!s) {
        opi_ctx_destroy(ctx);
        return opi__fail_memory(err, sizeof *s);
    }
    s->ctx = ctx;
    s->options = o;
    s->journal.file = -1;
    s->world = s->now = s->active = s->dp = s->tp = s->pp = s->ring = s->files = MPI_COMM_NULL;
    s->control_request = s->barrier = MPI_REQUEST_NULL;
    rc = fill(s, err);
    if (rc) {
        opi_swap_destroy(s);
        return rc;
    }
    *out = s;
    return OPI_OK;
}

void opi_swap_destroy(opi_swap *s)
{
    if (!s)
        return;
    opi_ctx *ctx = s->ctx;
    opi__control_leave(s);
    opi__worker_stop(&s->copier);
    opi__persist_close(s);
    if (s->world != MPI_COMM_NULL)
        opi__control_close(s);
    s->journal.counters.buffer_bytes = s->buffer_bytes;
    opi__journal_close(&s->journal);
    opi__snapshot_free(s);
    opi__join_release(s);
    const opi_swap_options *o = &s->options;
    const char *text[] = {o->node, o->rack, o->checkpoint_dir, o->checkpoint_fallback_dir, o->event_log, o->program};
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
        opi__free(ctx, (void *)(uintptr_t)text[i]);
    void *tables[] = {s->process, s->member, s->dead, s->owner, s->holder, s->wide_row};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        opi__free(ctx, tables[i]);
    /* Other communicators stay: freeing one that lost members is not safe, and MPI_Finalize ends them all. */
    opi__free(ctx, s);
    opi_ctx_destroy(ctx);
}
