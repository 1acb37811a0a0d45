/* SPDX-License-Identifier: Apache-2.0 */
#include "swap/meet.h"
#include "base/hash.h"
#include "base/status.h"
#include <string.h>

#define STUCK 20 /* a fault that recovery does not mend */

uint64_t opi__states_print(const opi__state *state, size_t n)
{
    uint64_t h = 0; /* a sum: the order of registration may differ */
    for (size_t i = 0; i < n; i++) {
        uint64_t one = opi__fnv1a64(OPI__FNV_START, state[i].name, strlen(state[i].name));
        h += opi__fnv1a64(one, &state[i].kind, sizeof state[i].kind) | 1;
    }
    return h;
}

static uint64_t options_print(const opi_swap *s)
{
    const opi_swap_options *o = &s->options;
    int64_t v[] = {o->dp,
                   o->tp,
                   o->pp,
                   o->policy,
                   o->steps,
                   o->replicas,
                   o->interval,
                   o->checkpoint_interval,
                   o->checkpoint_dir != NULL,
                   o->checkpoint_fallback_dir != NULL};
    return opi__fnv1a64(OPI__FNV_START, v, sizeof v);
}

static void add_copy(opi__hello *h, int64_t step, int32_t dp, int32_t slot, int32_t part, uint64_t bytes, uint64_t sum)
{
    if (h->copies >= OPI__COPIES)
        return;
    opi__copy c = {step, bytes, sum, slot, dp, part, 0};
    h->copy[h->copies++] = c;
}

static void say_hello(opi_swap *s, opi__hello *h)
{
    memset(h, 0, sizeof *h);
    h->id = s->process[s->world_rank].card.id;
    h->slot = s->view.slot;
    h->epoch = s->view.epoch;
    h->established = s->established;
    h->committed = s->committed;
    h->dirty = s->dirty;
    h->stuck = s->stuck;
    h->dp = s->grid.dp;
    h->options = options_print(s);
    h->kinds = opi__states_print(s->state, s->states);
    for (size_t i = 0; i < s->states; i++)
        h->opaque |= s->state[i].kind == OPI_SWAP_SHARDED && s->state[i].size && !s->state[i].total;
    for (int i = 0; i < OPI__SNAPS; i++) {
        const opi__snap *n = &s->snap[i];
        if (n->phase < OPI__LOCAL || n->failed)
            continue;
        for (int part = 0; part < 2; part++)
            if (n->bytes[part])
                add_copy(h, n->step, n->dp, n->slot, part, n->bytes[part], n->sum[part]);
    }
    for (int i = 0; i < OPI__HELD; i++) {
        const opi__held *k = &s->held[i];
        if (k->slot >= 0 && k->complete)
            add_copy(h, k->step, k->dp, k->slot, OPI__UNIQUE, k->bytes, k->sum);
    }
}

int opi__meet(opi_swap *s, opi__attempt *a)
{
    int n = 0;
    if (!opi__engine_shrink(s->world, &a->now))
        return 0;
    OPI__POINT("shrunk");
    MPI_Comm_size(a->now, &n);
    MPI_Comm_rank(a->now, &a->me);
    a->members = n;
    a->member = opi__arena_alloc(&a->arena, (size_t)n * sizeof *a->member);
    a->hello = opi__arena_alloc(&a->arena, (size_t)n * sizeof *a->hello);
    opi__hello *mine = opi__arena_alloc(&a->arena, sizeof *mine);
    if (!a->member || !a->hello || !mine) {
        a->fatal = opi__fail_memory(&a->err, (size_t)n * sizeof *a->hello);
        return 1;
    }
    if (!opi__engine_translate(a->now, s->world, n, a->member))
        return 0;
    say_hello(s, mine);
    return opi__engine_gather(a->now, mine, a->hello, (int)sizeof *mine);
}

/* ---- what was lost ----------------------------------------------------------------------------------------------- */

static void add_words(char *to, size_t room, const char *words)
{
    size_t n = strlen(to);
    opi__format(to + n, room - n, "%s%s", n ? ", " : "", words);
}

/* Classifies the loss, and marks living members on nodes with a death. up[world rank]: alive. */
static void classify(opi_swap *s, opi__attempt *a, const uint8_t *up, uint8_t *shy)
{
    int32_t owners_dead = 0, whole_node = 0, shown = 0;
    char words[80];
    for (int32_t i = 0; i < s->members; i++) {
        int32_t w = s->member[i], left = 0, others = 0;
        if (up[w])
            continue;
        a->dead++;
        int32_t slot = opi__owned_slot(s, w);
        owners_dead += slot >= 0;
        for (int32_t k = 0; k < s->members; k++) {
            int same = s->process[s->member[k]].domain.node == s->process[w].domain.node;
            left += same && up[s->member[k]];
            others += !same;
        }
        whole_node |= !left && others;
        for (int32_t k = 0; k < a->members; k++)
            if (s->process[a->member[k]].domain.node == s->process[w].domain.node)
                shy[k] = 1;
        if (shown++ >= 6)
            continue;
        if (slot >= 0)
            opi__format(words, sizeof words, "rank %d (slot %d)", (int)s->process[w].card.id, (int)slot);
        else
            opi__format(words, sizeof words, "rank %d (spare)", (int)s->process[w].card.id);
        add_words(a->lost, sizeof a->lost, words);
    }
    if (shown > 6) {
        opi__format(words, sizeof words, "%d more", (int)(shown - 6));
        add_words(a->lost, sizeof a->lost, words);
    }
    a->dead += s->carried_dead;
    if (s->carried_dead)
        add_words(a->lost, sizeof a->lost, s->carried_lost);
    if (!s->established)
        a->kind = 0;
    else if (s->carried_kind && !owners_dead)
        a->kind = s->carried_kind;
    else if (!a->dead)
        a->kind = OPI_SWAP_COMM_FAULT;
    else if (!owners_dead)
        a->kind = OPI_SWAP_SPARE_LOST;
    else
        a->kind = whole_node ? OPI_SWAP_NODE_LOST : OPI_SWAP_PROCESS_LOST;
}

static int32_t check_options(opi__attempt *a)
{
    for (int32_t i = 1; i < a->members; i++)
        if (a->hello[i].options != a->hello[0].options)
            return opi__fail(&a->err, OPI_E_INVALID, a->hello[i].id,
                             "rank %d was created with other options (widths, policy, steps, replicas, intervals or "
                             "checkpoints) than rank %d",
                             (int)a->hello[i].id, (int)a->hello[0].id);
    return OPI_OK;
}

/* The grid the living had: newcomers know only the first one. */
static void old_grid(const opi_swap *s, opi__attempt *a)
{
    a->old = s->grid;
    for (int32_t i = 0; i < a->members; i++)
        if (a->hello[i].established)
            a->old.dp = a->hello[i].dp;
}

static int32_t fewer_rows(opi__attempt *a, const opi__member *who)
{
    int32_t rows = 0, opaque = 0;
    int32_t *order = opi__arena_alloc(&a->arena, (size_t)a->old.dp * sizeof *order);
    if (!order)
        return opi__fail_memory(&a->err, (size_t)a->old.dp * sizeof *order);
    for (int32_t i = 0; i < a->members; i++)
        opaque |= a->hello[i].opaque;
    if (!opaque)
        opi__assign_fewer(&a->old, (size_t)a->members, who, a->owner, a->from_row, &rows, order);
    if (rows < 1) {
        a->stop = 1;
        return OPI_OK;
    }
    a->grid.dp = rows;
    a->unfilled = 0;
    return OPI_OK;
}

static void describe_owners(opi_swap *s, opi__attempt *a)
{
    char words[64];
    int32_t shown = 0;
    for (int32_t slot = 0; slot < opi__grid_slots(&a->grid); slot++) {
        int32_t m = a->owner[slot];
        if (m < 0 || (a->hello[m].slot == slot && a->grid.dp == a->old.dp) || !s->established || shown++ >= 6)
            continue;
        opi__format(words, sizeof words, "rank %d takes slot %d", (int)a->hello[m].id, (int)slot);
        add_words(a->taken, sizeof a->taken, words);
    }
}

int32_t opi__meet_assign(opi_swap *s, opi__attempt *a)
{
    int32_t rc = check_options(a);
    if (rc)
        return rc;
    old_grid(s, a);
    a->grid = a->old;
    size_t slots = (size_t)opi__grid_slots(&a->old), n = (size_t)a->members;
    opi__member *who = opi__arena_alloc(&a->arena, n * sizeof *who);
    uint8_t *shy = opi__arena_alloc(&a->arena, n), *up = opi__arena_alloc(&a->arena, (size_t)s->world_size);
    a->owner = opi__arena_alloc(&a->arena, slots * sizeof *a->owner);
    a->from_row = opi__arena_alloc(&a->arena, (size_t)a->old.dp * sizeof *a->from_row);
    if (!who || !shy || !up || !a->owner || !a->from_row)
        return opi__fail_memory(&a->err, n * sizeof *who);
    for (int32_t d = 0; d < a->old.dp; d++)
        a->from_row[d] = d;
    for (int32_t i = 0; i < a->members; i++)
        up[a->member[i]] = 1;
    classify(s, a, up, shy);
    a->furthest = OPI__NO_STEP;
    int32_t all_old = 1;
    for (int32_t i = 0; i < a->members; i++) {
        who[i].slot = a->hello[i].slot;
        who[i].domain = s->process[a->member[i]].domain;
        if (a->hello[i].committed > a->furthest)
            a->furthest = a->hello[i].committed;
        all_old &= a->hello[i].established; /* newcomers do not know who died */
        /* A spare commits nothing, so it cannot tell whether there was a step between. */
        if (a->hello[i].slot >= 0 && a->hello[i].stuck > a->stuck)
            a->stuck = a->hello[i].stuck;
    }
    if (!a->dead && a->stuck >= STUCK && all_old)
        return opi__fail(
            &a->err, OPI_E_INVALID, -1,
            "%d recoveries in a row without a death and without a step between: the fault does not go away",
            (int)a->stuck);
    a->unfilled = opi__assign(&a->old, n, who, shy, a->owner);
    if (a->unfilled && s->options.policy == OPI_SWAP_STOP)
        a->stop = 1;
    if (a->unfilled && s->options.policy == OPI_SWAP_SHRINK)
        rc = fewer_rows(a, who);
    if (rc)
        return rc;
    a->slot = -1;
    for (int32_t slot = 0; slot < opi__grid_slots(&a->grid); slot++)
        if (a->owner[slot] == a->me)
            a->slot = slot;
    describe_owners(s, a);
    return OPI_OK;
}

/* ---- communicators ----------------------------------------------------------------------------------------------- */

/* A group of one needs no talk. */
static int line(MPI_Comm active, int width, int color, int key, MPI_Comm *out)
{
    return width == 1 ? opi__engine_dup(MPI_COMM_SELF, out) : opi__engine_split(active, color, key, out);
}

int opi__meet_comms(opi_swap *s, opi__attempt *a)
{
    (void)s;
    /* The slot is the rank. */
    if (!opi__engine_split(a->now, a->slot >= 0 ? 0 : -1, a->slot, &a->active))
        return 0;
    /* A death can make it on some ranks only. Those without a handle could not revoke what the others then wait in, so
     * nobody uses it before all have said, over a communicator that all can revoke, that they have it. */
    if (!opi__engine_barrier(a->now))
        return 0;
    OPI__POINT("split");
    if (a->slot < 0)
        return 1;
    int32_t d, t, p, row = opi__grid_row(&a->grid);
    opi__grid_coordinates(&a->grid, a->slot, &d, &t, &p);
    return opi__engine_dup(a->active, &a->ring) && opi__engine_dup(a->active, &a->files) &&
           line(a->active, a->grid.dp, a->slot % row, d, &a->dp) &&
           line(a->active, a->grid.tp, d * a->grid.pp + p, t, &a->tp) &&
           line(a->active, a->grid.pp, d * a->grid.tp + t, p, &a->pp);
}

/* ---- registered states ------------------------------------------------------------------------------------------- */

typedef struct brief {
    char name[OPI__NAME_BYTES];
    int32_t kind, used;
    uint64_t size;
} brief;

static int32_t differ(opi__attempt *a, const brief *x, int32_t id_x, const brief *y, int32_t id_y)
{
    if (!y)
        return opi__fail(&a->err, OPI_E_INVALID, id_y, "state \"%s\" is registered on rank %d and not on rank %d",
                         x->name, (int)id_x, (int)id_y);
    if (x->kind != y->kind)
        return opi__fail(&a->err, OPI_E_INVALID, id_y, "state \"%s\" has kind %d on rank %d and kind %d on rank %d",
                         x->name, (int)x->kind, (int)id_x, (int)y->kind, (int)id_y);
    return opi__fail(
        &a->err, OPI_E_INVALID, id_y,
        "replicated state \"%s\" has %llu bytes on rank %d and %llu bytes on its data-parallel peer, rank %d", x->name,
        (unsigned long long)x->size, (int)id_x, (unsigned long long)y->size, (int)id_y);
}

static const brief *look_up(const brief *table, const char *name)
{
    for (size_t i = 0; i < OPI__STATES && table[i].used; i++)
        if (!strcmp(table[i].name, name))
            return &table[i];
    return NULL;
}

/* First difference between the tables of two slots; sizes count where both hold the same (tp, pp). */
static int32_t compare(opi__attempt *a, const brief *x, int32_t id_x, const brief *y, int32_t id_y, int peers)
{
    for (size_t i = 0; i < OPI__STATES && x[i].used; i++) {
        const brief *other = look_up(y, x[i].name);
        if (!other || other->kind != x[i].kind ||
            (peers && x[i].kind == OPI_SWAP_REPLICATED && other->size != x[i].size))
            return differ(a, &x[i], id_x, other, id_y);
    }
    return OPI_OK;
}

/* Sharded state must be what its range says: registered in `assign` it could not be compared with the widths there. */
static int32_t check_ranges(const opi_swap *s, opi__attempt *a)
{
    int32_t d, t, p;
    if (a->slot < 0)
        return OPI_OK;
    opi__grid_coordinates(&a->grid, a->slot, &d, &t, &p);
    for (size_t i = 0; i < s->states; i++) {
        const opi__state *x = &s->state[i];
        uint64_t begin, end;
        if (!x->total)
            continue;
        opi__range(x->total, a->grid.dp, d, &begin, &end);
        if ((end - begin) * x->element != x->size)
            return opi__fail(&a->err, OPI_E_INVALID, a->slot,
                             "state \"%s\" of slot %d: size %llu, but elements [%llu, %llu) of %llu bytes are %llu",
                             x->name, (int)a->slot, (unsigned long long)x->size, (unsigned long long)begin,
                             (unsigned long long)end, (unsigned long long)x->element,
                             (unsigned long long)((end - begin) * x->element));
    }
    return OPI_OK;
}

/* Fingerprints first; the tables are exchanged only when these differ. */
int opi__meet_states(opi_swap *s, opi__attempt *a)
{
    uint64_t mine[2] = {opi__states_print(s->state, s->states), 0};
    a->fatal = check_ranges(s, a);
    if (a->fatal)
        return 1;
    for (size_t i = 0; i < s->states; i++)
        if (s->state[i].kind == OPI_SWAP_REPLICATED)
            mine[1] += opi__fnv1a64(opi__fnv1a64(OPI__FNV_START, s->state[i].name, strlen(s->state[i].name)),
                                    &s->state[i].size, sizeof s->state[i].size);
    uint64_t(*all)[2] = opi__arena_alloc(&a->arena, (size_t)a->members * sizeof *all);
    if (!all) {
        a->fatal = opi__fail_memory(&a->err, (size_t)a->members * sizeof *all);
        return 1;
    }
    if (!opi__engine_gather(a->now, mine, all, (int)sizeof mine))
        return 0;
    int32_t slots = opi__grid_slots(&a->grid), row = opi__grid_row(&a->grid), same = 1, first = 1;
    for (int32_t i = 0; i < a->members; i++)
        first &= !a->hello[i].established; /* later a spare may still have the sizes of the beginning */
    for (int32_t i = 0; i < a->members && !first; i++)
        all[i][1] = 0;
    for (int32_t i = 1; i < slots; i++)
        same &= all[a->owner[i]][0] == all[a->owner[0]][0] && all[a->owner[i]][1] == all[a->owner[i % row]][1];
    if (same)
        return 1;
    brief *table = opi__arena_alloc(&a->arena, ((size_t)a->members + 1) * OPI__STATES * sizeof *table);
    if (!table) {
        a->fatal = opi__fail_memory(&a->err, (size_t)a->members * OPI__STATES * sizeof *table);
        return 1;
    }
    brief *own = table + (size_t)a->members * OPI__STATES;
    for (size_t i = 0; i < s->states; i++) {
        memcpy(own[i].name, s->state[i].name, sizeof own[i].name);
        own[i].kind = s->state[i].kind;
        own[i].size = s->state[i].size;
        own[i].used = 1;
    }
    if (!opi__engine_gather(a->now, own, table, (int)(OPI__STATES * sizeof *table)))
        return 0;
    for (int32_t i = 1; i < slots && !a->fatal; i++) {
        int32_t x = a->owner[i % row == 0 ? 0 : i % row], y = a->owner[i];
        const brief *tx = table + (size_t)x * OPI__STATES, *ty = table + (size_t)y * OPI__STATES;
        a->fatal = compare(a, tx, a->hello[x].id, ty, a->hello[y].id, first && x != y && i >= row);
        if (!a->fatal)
            a->fatal = compare(a, ty, a->hello[y].id, tx, a->hello[x].id, first && x != y && i >= row);
    }
    for (int32_t i = 1; i < row && !a->fatal; i++) { /* within the first row: names and kinds */
        const brief *tx = table + (size_t)a->owner[0] * OPI__STATES, *ty = table + (size_t)a->owner[i] * OPI__STATES;
        a->fatal = compare(a, tx, a->hello[a->owner[0]].id, ty, a->hello[a->owner[i]].id, 0);
        if (!a->fatal)
            a->fatal = compare(a, ty, a->hello[a->owner[i]].id, tx, a->hello[a->owner[0]].id, 0);
    }
    return 1;
}
