/* SPDX-License-Identifier: Apache-2.0 */
#include "swap/join.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/status.h"
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WAIT_S  60.0
#define AGAIN_S 0.5 /* between tries to start processes */

/* ---- places ------------------------------------------------------------------------------------------------------ */

static uint64_t print_of(const char *text)
{
    return opi__fnv1a64(OPI__FNV_START, text, strlen(text));
}

static void describe_self(const opi_swap *s, int32_t id, opi__card *c)
{
    char host[256] = {0};
    gethostname(host, sizeof host - 1);
    const char *node = s->options.node ? s->options.node : host, *rack = s->options.rack ? s->options.rack : node;
    struct timespec t;
    struct stat space;
    clock_gettime(CLOCK_REALTIME, &t);
    memset(c, 0, sizeof *c);
    c->id = id;
    c->node = print_of(node);
    c->rack = print_of(rack);
    c->pid = (int64_t)getpid();
    /* A process number means something only in its own space of numbers. */
    c->host = print_of(host);
    if (!stat("/proc/self/ns/pid", &space))
        c->host = opi__mix64(c->host ^ (uint64_t)space.st_ino);
    c->job = opi__mix64((uint64_t)t.tv_sec * 1000000007u + (uint64_t)t.tv_nsec) ^ (uint64_t)c->pid;
}

/* Dense numbers: the first process of a node or rack gives it its own number. Neighbors are looked at first. */
static int32_t number(const opi__process *p, int32_t i, int rack)
{
    uint64_t mine = rack ? p[i].card.rack : p[i].card.node;
    if (i && (rack ? p[i - 1].card.rack : p[i - 1].card.node) == mine)
        return rack ? p[i - 1].domain.rack : p[i - 1].domain.node;
    for (int32_t k = 0; k < i; k++)
        if ((rack ? p[k].card.rack : p[k].card.node) == mine)
            return k;
    return i;
}

/* Tables about the processes of a world that is not the runtime's yet. */
typedef struct places {
    opi__process *process;
    int32_t *dead, *member;
    int32_t size, next_id;
    uint64_t job;
} places;

static void free_places(opi_swap *s, places *p)
{
    opi__free(s->ctx, p->process);
    opi__free(s->ctx, p->dead);
    opi__free(s->ctx, p->member);
}

/* Every rank of `comm` tells where it lives; ranks with id < 0 get the next numbers. */
static int32_t gather_places(opi_swap *s, MPI_Comm comm, int32_t my_id, int32_t next_id, places *p, opi_error *err)
{
    int size = 0;
    MPI_Comm_size(comm, &size);
    opi__card mine, *all = opi__alloc(s->ctx, (size_t)size, sizeof *all);
    p->size = size;
    p->next_id = next_id;
    p->process = opi__zalloc(s->ctx, (size_t)size, sizeof *p->process);
    p->dead = opi__zalloc(s->ctx, (size_t)size, sizeof *p->dead);
    p->member = opi__alloc(s->ctx, (size_t)size, sizeof *p->member);
    int32_t rc = OPI_OK;
    describe_self(s, my_id, &mine);
    if (!all || !p->process || !p->dead || !p->member)
        rc = opi__fail_memory(err, (size_t)size * (sizeof *all + sizeof *p->process));
    else if (!opi__engine_gather(comm, &mine, all, (int)sizeof mine))
        rc = opi__fail(err, OPI_E_IO, -1, "a rank failed while the ranks told each other where they live");
    for (int32_t i = 0; !rc && i < size; i++) {
        p->process[i].card = all[i];
        if (all[i].id < 0)
            p->process[i].card.id = p->next_id++;
        p->process[i].domain.node = number(p->process, i, 0);
        p->process[i].domain.rack = number(p->process, i, 1);
        p->member[i] = i;
    }
    if (!rc)
        p->job = all[0].job;
    opi__free(s->ctx, all);
    return rc;
}

/* From now on `world` is the runtime's. */
static int32_t take_world(opi_swap *s, MPI_Comm world, places *p, opi_error *err)
{
    int rank = 0;
    MPI_Comm_rank(world, &rank);
    if (s->world != MPI_COMM_NULL)
        opi__control_close(s);
    opi__free(s->ctx, s->process);
    opi__free(s->ctx, s->dead);
    opi__free(s->ctx, s->member);
    s->process = p->process;
    s->dead = p->dead;
    s->member = p->member;
    s->world = world;
    s->members = s->world_size = p->size;
    s->world_rank = rank;
    s->next_id = p->next_id;
    return opi__control_open(s) ? OPI_OK : opi__fail(err, OPI_E_IO, -1, "the control channel cannot be opened");
}

int32_t opi__join_first(opi_swap *s, MPI_Comm world, opi_error *err)
{
    places p = {0};
    int32_t rc = gather_places(s, world, -1, 0, &p, err);
    if (rc) {
        free_places(s, &p);
        return rc;
    }
    s->job = p.job;
    return take_world(s, world, &p, err);
}

/* ---- what a newcomer must know ----------------------------------------------------------------------------------- */

typedef struct news {
    uint64_t job;
    int32_t next_id, epoch, dp, wide_dp, slots, reserved;
} news;

/* Both sides run this; the same answer everywhere. `n`, `owner` and s->wide_row come from the root, the lowest of the
 * living, who come first in the new world, in the order they had. */
static int32_t exchange(opi_swap *s, MPI_Comm merged, news *n, int32_t *owner, int32_t slots, int32_t my_id, places *p)
{
    int32_t rc = OPI_E_IO;
    opi_error ignored;
    if (MPI_Bcast(n, (int)sizeof *n, MPI_BYTE, 0, merged) == MPI_SUCCESS && n->slots <= slots &&
        MPI_Bcast(owner, n->slots, MPI_INT32_T, 0, merged) == MPI_SUCCESS &&
        MPI_Bcast(s->wide_row, s->options.dp, MPI_INT32_T, 0, merged) == MPI_SUCCESS)
        rc = gather_places(s, merged, my_id, n->next_id, p, &ignored);
    if (rc)
        opi__engine_revoke(merged); /* nobody waits for this rank in there */
    int flags = !rc;
    return opi__engine_agree(merged, &flags) && flags ? OPI_OK : OPI_E_IO;
}

/* ---- the living -------------------------------------------------------------------------------------------------- */

static int spawn(opi_swap *s, opi__attempt *a, MPI_Comm *merged)
{
    const char *program = s->options.program ? s->options.program : "/proc/self/exe";
    char path[4096];
    MPI_Comm inter = MPI_COMM_NULL;
    ssize_t length = s->options.program ? -1 : readlink(program, path, sizeof path - 1);
    if (length > 0) { /* the new process is started by another one: the link would be that one's */
        path[length] = 0;
        program = path;
    }
    int rc = MPI_Comm_spawn((char *)(uintptr_t)program,
                            s->options.arguments ? (char **)(uintptr_t)s->options.arguments : MPI_ARGV_NULL,
                            a->unfilled, MPI_INFO_NULL, 0, a->now, &inter, MPI_ERRCODES_IGNORE);
    if (rc != MPI_SUCCESS || inter == MPI_COMM_NULL)
        return 0;
    opi__engine_quiet(inter);
    OPI__POINT("spawned");
    rc = MPI_Intercomm_merge(inter, 0, merged);
    MPI_Comm_free(&inter);
    if (rc != MPI_SUCCESS)
        *merged = MPI_COMM_NULL;
    opi__engine_quiet(*merged);
    opi__join_keep(s, *merged);
    return *merged != MPI_COMM_NULL;
}

/* The slots' owners as ranks of the new world: the living keep their order. */
static void owners_in(const opi__attempt *a, int32_t *owner)
{
    for (int32_t slot = 0; slot < opi__grid_slots(&a->old); slot++) {
        owner[slot] = -1;
        for (int32_t m = 0; m < a->members; m++)
            if (a->hello[m].slot == slot)
                owner[slot] = m;
    }
}

static int32_t move_over(opi_swap *s, opi__attempt *a, MPI_Comm merged)
{
    int32_t slots = opi__grid_slots(&a->old);
    news n = {s->job, s->next_id, s->view.epoch, a->old.dp, s->wide_dp, slots, 0};
    places p = {0};
    int32_t *owner = opi__arena_alloc(&a->arena, (size_t)slots * sizeof *owner);
    if (!owner)
        return opi__fail_memory(&a->err, (size_t)slots * sizeof *owner);
    owners_in(a, owner);
    if (exchange(s, merged, &n, owner, slots, s->process[s->world_rank].card.id, &p)) {
        free_places(s, &p);
        return OPI_E_IO;
    }
    opi__evict(s, a);
    memcpy(s->owner, owner, (size_t)slots * sizeof *owner);
    /* The new world does not know the dead: what they were is told when the recovery is over. */
    s->carried_kind = a->kind;
    s->carried_dead = a->dead;
    opi__copy_text(s->carried_lost, sizeof s->carried_lost, a->lost);
    s->joins++;
    return take_world(s, merged, &p, &a->err);
}

int opi__join(opi_swap *s, opi__attempt *a)
{
    MPI_Comm merged = MPI_COMM_NULL;
    double limit = s->options.wait_s > 0 ? s->options.wait_s : WAIT_S, now = opi__now();
    if (!s->wait_until)
        s->wait_until = now + limit;
    int there = spawn(s, a, &merged), flags = 1 | 2;
    if (!there)
        flags &= ~1;
    if (now > s->wait_until)
        flags &= ~2; /* one clock that says it is over is enough */
    int sure = opi__engine_agree(a->now, &flags);
    if (!sure || !(flags & 1)) {
        opi__engine_revoke(merged);
        if (sure && !(flags & 2))
            s->gave_up = 1;
        else if (sure)
            opi__pause(AGAIN_S);
        return 0;
    }
    int32_t came = a->unfilled, rc = move_over(s, a, merged);
    if (rc) {
        opi__engine_revoke(merged);
        return 0;
    }
    s->wait_until = 0;
    opi_swap_event e = {.kind = OPI_SWAP_JOINED,
                        .epoch = s->view.epoch,
                        .rank = -1,
                        .slot = -1,
                        .lost = 0,
                        .step = s->next,
                        .time_s = opi__now()};
    opi__journal_event(&s->journal, &e, "%d new processes joined", (int)came);
    return 1;
}

/* ---- the newcomer ------------------------------------------------------------------------------------------------ */

int opi__join_parent(MPI_Comm *parent)
{
    return MPI_Comm_get_parent(parent) == MPI_SUCCESS && *parent != MPI_COMM_NULL;
}

int32_t opi__join_world(opi_swap *s, MPI_Comm parent, opi_error *err)
{
    MPI_Comm merged = MPI_COMM_NULL;
    news n = {0};
    opi__engine_quiet(parent);
    opi__engine_quiet(MPI_COMM_WORLD);
    int rc = MPI_Intercomm_merge(parent, 1, &merged);
    MPI_Comm_free(&parent);
    if (rc != MPI_SUCCESS || merged == MPI_COMM_NULL)
        return opi__fail(err, OPI_E_IO, -1, "a new process could not join: the others failed meanwhile");
    opi__engine_quiet(merged);
    opi__join_keep(s, merged);
    int32_t slots = opi__grid_slots(&s->grid), *owner = opi__alloc(s->ctx, (size_t)slots, sizeof *owner);
    places p = {0};
    if (!owner)
        return opi__fail_memory(err, (size_t)slots * sizeof *owner);
    if (exchange(s, merged, &n, owner, slots, -1, &p)) {
        free_places(s, &p);
        opi__free(s->ctx, owner);
        return opi__fail(err, OPI_E_IO, -1,
                         "a new process could not join: the others failed meanwhile, or have other widths");
    }
    memcpy(s->owner, owner, (size_t)n.slots * sizeof *owner);
    opi__free(s->ctx, owner);
    s->job = n.job;
    s->grid.dp = n.dp;
    s->wide_dp = n.wide_dp;
    s->view.epoch = n.epoch;
    s->joins = 1;
    return take_world(s, merged, &p, err);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

void opi__join_keep(opi_swap *s, MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL || s->options.policy != OPI_SWAP_WAIT)
        return;
    if (s->kept == s->keep_room) {
        MPI_Comm *more = opi__resize(s->ctx, s->keep, (size_t)s->keep_room + 32, sizeof *more);
        if (!more)
            return; /* then MPI_Finalize may wait; nothing is lost */
        s->keep = more;
        s->keep_room += 32;
    }
    s->keep[s->kept++] = comm;
}

void opi__join_release(opi_swap *s)
{
    if (s->joins && s->finished && !s->broken) {
        int flags = 1;
        opi__engine_agree(s->world, &flags);
        while (s->kept)
            MPI_Comm_free(&s->keep[--s->kept]);
    }
    opi__free(s->ctx, s->keep);
}
