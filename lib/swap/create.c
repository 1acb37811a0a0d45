/* SPDX-License-Identifier: Apache-2.0 */
/* Making and freeing the runtime of a process. */
#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/take.h"
#include "swap/runtime.h"
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* What every rank tells once: where it lives. */
typedef struct place_card {
    uint64_t node, rack, job;
} place_card;

static int32_t number(const place_card *card, int32_t n, int32_t i, int rack)
{
    for (int32_t k = 0; k < i; k++)
        if (rack ? card[k].rack == card[i].rack : card[k].node == card[i].node)
            return k;
    (void)n;
    return i;
}

static int32_t exchange_places(opi_swap *s, opi_error *err)
{
    char host[256] = {0};
    gethostname(host, sizeof host - 1);
    const char *node = s->options.node ? s->options.node : host, *rack = s->options.rack ? s->options.rack : node;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    place_card mine = {opi__fnv1a64(OPI__FNV_START, node, strlen(node)),
                       opi__fnv1a64(OPI__FNV_START, rack, strlen(rack)),
                       opi__mix64((uint64_t)t.tv_sec * 1000000007u + (uint64_t)t.tv_nsec) ^ (uint64_t)getpid()};
    place_card *all = opi__alloc(s->ctx, (size_t)s->world_size, sizeof *all);
    if (!all)
        return opi__fail_memory(err, (size_t)s->world_size * sizeof *all);
    int32_t rc = OPI_OK;
    if (!opi__engine_gather(s->world, &mine, all, (int)sizeof mine))
        rc = opi__fail(err, OPI_E_IO, -1, "a rank failed while the runtime was being created");
    for (int32_t i = 0; !rc && i < s->world_size; i++) {
        s->process[i].id = i;
        s->process[i].domain.node = number(all, s->world_size, i, 0);
        s->process[i].domain.rack = number(all, s->world_size, i, 1);
        s->member[i] = i;
    }
    if (!rc)
        s->job = all[0].job;
    opi__free(s->ctx, all);
    return rc;
}

static int32_t make_tables(opi_swap *s, opi_error *err)
{
    size_t n = (size_t)s->world_size, slots = (size_t)opi__grid_slots(&s->grid);
    s->process = opi__zalloc(s->ctx, n, sizeof *s->process);
    s->member = opi__alloc(s->ctx, n, sizeof *s->member);
    s->dead = opi__zalloc(s->ctx, n, sizeof *s->dead);
    s->owner = opi__alloc(s->ctx, slots, sizeof *s->owner);
    s->holder = opi__alloc(s->ctx, slots * OPI__REPLICAS, sizeof *s->holder);
    s->wide_row = opi__zalloc(s->ctx, (size_t)s->grid.dp, sizeof *s->wide_row);
    s->barrier_all = opi__alloc(s->ctx, slots * 2, sizeof *s->barrier_all);
    if (!s->process || !s->member || !s->dead || !s->owner || !s->holder || !s->wide_row || !s->barrier_all)
        return opi__fail_memory(err, n * sizeof *s->process + slots * 64);
    s->members = s->world_size;
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

/* Everything that talks; s->world is still MPI_COMM_NULL. */
static int32_t join_world(opi_swap *s, opi_error *err)
{
    MPI_Comm given = MPI_Comm_f2c((MPI_Fint)s->options.world);
    int rank = 0, size = 0;
    if (given == MPI_COMM_NULL || MPI_Comm_rank(given, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(given, &size) != MPI_SUCCESS)
        return opi__fail(err, OPI_E_INVALID, -1, "world is no communicator");
    if (size < opi__grid_slots(&s->grid))
        return opi__fail(err, OPI_E_RANGE, size, "dp %d x tp %d x pp %d are %d slots, the communicator has %d ranks",
                         (int)s->grid.dp, (int)s->grid.tp, (int)s->grid.pp, (int)opi__grid_slots(&s->grid), size);
    opi__engine_quiet(given);
    opi__engine_quiet(MPI_COMM_SELF);
    if (!opi__engine_dup(given, &s->world))
        return opi__fail(err, OPI_E_IO, -1, "world cannot be duplicated: a rank failed");
    s->world_rank = rank;
    s->world_size = s->next_id = size;
    int32_t rc = make_tables(s, err);
    if (!rc)
        rc = exchange_places(s, err);
    if (!rc && !opi__control_open(s))
        rc = opi__fail(err, OPI_E_IO, -1, "the control channel cannot be opened");
    if (rc)
        return rc;
    s->view.struct_size = (uint32_t)sizeof s->view;
    s->view.rank = rank;
    s->view.slot = rank < opi__grid_slots(&s->grid) ? rank : -1;
    s->view.role = s->view.slot >= 0 ? OPI_SWAP_ACTIVE : OPI_SWAP_SPARE;
    s->view.dp = s->view.tp = s->view.pp = -1;
    if (s->view.slot >= 0)
        opi__grid_coordinates(&s->grid, s->view.slot, &s->view.dp, &s->view.tp, &s->view.pp);
    s->view.dp_width = s->grid.dp;
    s->view.tp_width = s->grid.tp;
    s->view.pp_width = s->grid.pp;
    s->view.spares = size - opi__grid_slots(&s->grid);
    int32_t none = (int32_t)MPI_Comm_c2f(MPI_COMM_NULL);
    s->view.comm_active = s->view.comm_dp = s->view.comm_tp = s->view.comm_pp = none;
    return OPI_OK;
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
    opi__worker_stop(&s->copier);
    opi__persist_close(s);
    if (s->world != MPI_COMM_NULL)
        opi__control_close(s);
    s->journal.counters.buffer_bytes = s->buffer_bytes;
    opi__journal_close(&s->journal);
    opi__snapshot_free(s);
    const opi_swap_options *o = &s->options;
    const char *text[] = {o->node, o->rack, o->checkpoint_dir, o->checkpoint_fallback_dir, o->event_log, o->program};
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
        opi__free(ctx, (void *)(uintptr_t)text[i]);
    void *tables[] = {s->process, s->member, s->dead, s->owner, s->holder, s->wide_row};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        opi__free(ctx, tables[i]);
    /* Communicators stay: freeing one that lost members is not safe, and MPI_Finalize ends them all. */
    opi__free(ctx, s);
    opi_ctx_destroy(ctx);
}
