/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"
#include <stdlib.h>
#include <string.h>

#define POISON 0xdeadbeefdeadbeefull

uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static uint64_t cell_of(const opi_swap_view *v)
{
    return (uint64_t)(v->pp * v->tp_width + v->tp);
}

static uint64_t *room(uint64_t **p, uint64_t n)
{
    free(*p);
    *p = malloc((n ? n : 1) * sizeof **p);
    for (uint64_t i = 0; *p && i < n; i++)
        (*p)[i] = POISON; /* what is not restored is seen */
    return *p;
}

/* --grow: a list that all rows have and one that is spread over them. Their lengths, which go up and down, and what is in
 * them follow from the number of steps done. Some rows' pieces are empty now and then. */
static void sizes_after(const model *m, int64_t steps, struct grown *g)
{
    uint64_t n = (uint64_t)steps, end;
    g->list_n = 5 + (n * 7 + cell_of(&m->view)) % 23;
    g->total = 1 + n * 11 % 31;
    opi_swap_range(g->total, m->view.dp_width, m->view.dp, &g->begin, &end);
    g->piece_n = end - g->begin;
}

static uint64_t grown_word(const model *m, int64_t steps, int which, uint64_t i)
{
    return mix((uint64_t)steps << 32 ^ cell_of(&m->view) << 24 ^ (uint64_t)which << 20 ^ i);
}

/* Every cell has another size, and no size is a multiple of the width. */
int model_room(program *p)
{
    model *m = &p->m;
    const opi_swap_view *v = &m->view;
    m->n = (uint64_t)p->opt.size + 37 * cell_of(v);
    opi_swap_range(m->n, v->dp_width, v->dp, &m->begin, &m->end);
    m->own_n = p->opt.opaque ? 11 + (uint64_t)v->slot * 3 : 0;
    sizes_after(m, 0, &m->grown);
    memset(&m->small, 0xee, sizeof m->small);
    return room(&m->parameters, m->n) && room(&m->moments, m->end - m->begin) && room(&m->own, m->own_n) &&
           room(&m->table, 64) && room(&m->gradient, m->n) && room(&m->grown.list, m->grown.list_n) &&
           room(&m->grown.piece, m->grown.piece_n);
}

static int32_t register_one(program *p, const opi_swap_state *s)
{
    opi_error err;
    int32_t rc = opi_swap_register(p->swap, s, &err);
    if (rc)
        worker_log("\"kind\":\"error\",\"call\":\"register\",\"code\":%d,\"message\":\"%s\"", (int)rc, err.message);
    return rc;
}

static int32_t register_grown(program *p, const struct grown *g)
{
    const opi_swap_state list = {sizeof list, OPI_SWAP_REPLICATED, "list", g->list, g->list_n * 8, 0, 0};
    const opi_swap_state piece = {sizeof piece, OPI_SWAP_SHARDED, "piece", g->piece, g->piece_n * 8, g->total, 8};
    int32_t rc = register_one(p, &list);
    return rc ? rc : register_one(p, &piece);
}

int32_t model_register(program *p)
{
    model *m = &p->m;
    const opi_swap_state all[] = {
        {sizeof *all, OPI_SWAP_REPLICATED, "parameters", m->parameters, m->n * 8, 0, 0},
        {sizeof *all, OPI_SWAP_SHARDED, "moments", m->moments, (m->end - m->begin) * 8, m->n, 8},
        {sizeof *all, OPI_SWAP_SMALL, "small", &m->small, sizeof m->small, 0, 0},
        {sizeof *all, OPI_SWAP_DERIVED, "table", m->table, 64 * 8, 0, 0},
        {sizeof *all, OPI_SWAP_SHARDED, "own", m->own, m->own_n * 8, 0, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all - (p->opt.opaque ? 0 : 1); i++) {
        int32_t rc = register_one(p, &all[i]);
        if (rc)
            return rc;
    }
    return p->opt.grow ? register_grown(p, &m->grown) : 0;
}

/* The lists as they are after so many steps, in memory of their own. */
int32_t model_grow(program *p, int64_t steps)
{
    model *m = &p->m;
    struct grown now = {0};
    if (!p->opt.grow)
        return 0;
    sizes_after(m, steps, &now);
    if (!room(&now.list, now.list_n) || !room(&now.piece, now.piece_n))
        return OPI_E_NOMEM;
    for (uint64_t i = 0; i < now.list_n; i++)
        now.list[i] = grown_word(m, steps, 0, i);
    for (uint64_t i = 0; i < now.piece_n; i++)
        now.piece[i] = grown_word(m, steps, 1, now.begin + i);
    int32_t rc = register_grown(p, &now);
    if (rc)
        return rc;
    free(m->grown.list);
    free(m->grown.piece);
    m->grown = now;
    return 0;
}

/* What is restored has another length than is registered here. */
int32_t model_resize(program *p, const char *name, uint64_t bytes, void **data)
{
    struct grown *g = &p->m.grown;
    int list = !strcmp(name, "list");
    if (!list && strcmp(name, "piece"))
        return 48;
    uint64_t **to = list ? &g->list : &g->piece;
    *(list ? &g->list_n : &g->piece_n) = bytes / 8;
    *data = room(to, bytes / 8);
    return *data ? 0 : 49;
}

/* Of the step they should be of, and no other. */
static void check_grown(program *p, int64_t step)
{
    model *m = &p->m;
    struct grown *g = &m->grown;
    struct grown want = {0};
    sizes_after(m, step, &want);
    int same = g->list_n == want.list_n && g->piece_n == want.piece_n;
    for (uint64_t i = 0; same && i < want.list_n; i++)
        same = g->list[i] == grown_word(m, step, 0, i);
    for (uint64_t i = 0; same && i < want.piece_n; i++)
        same = g->piece[i] == grown_word(m, step, 1, want.begin + i);
    if (!same)
        worker_log("\"kind\":\"wrong\",\"what\":\"lists of %llu and %llu words, not those after %lld steps\"",
                   (unsigned long long)g->list_n, (unsigned long long)g->piece_n, (long long)step);
    g->total = want.total;
}

void model_init(program *p)
{
    model *m = &p->m;
    uint64_t cell = cell_of(&m->view);
    for (uint64_t i = 0; i < m->n; i++)
        m->parameters[i] = mix(p->opt.seed ^ mix(cell << 32 ^ i));
    memset(m->moments, 0, (size_t)(m->end - m->begin) * 8);
    for (uint64_t i = 0; i < m->own_n; i++)
        m->own[i] = mix((uint64_t)m->view.slot << 20 ^ i);
    m->small.steps = 0;
    m->small.random = mix(p->opt.seed + 1);
    m->small.position = 0;
}

/* Derived state: a function of the cell only. */
void model_rebuild(program *p)
{
    for (uint64_t i = 0; i < 64; i++)
        p->m.table[i] = mix(cell_of(&p->m.view) << 8 ^ i);
}

static uint64_t all_of(const model *m)
{
    uint64_t h = 0;
    for (uint64_t i = 0; i < m->n; i++)
        h += mix(m->parameters[i] ^ mix(i));
    return h;
}

/* Gradient of the global micro-batches of this row, summed over the rows. Tensor-parallel neighbors mix their parameters
 * in, pipeline neighbors too, so that an error in one slot spreads to all. */
int32_t model_gradient(program *p, int64_t step)
{
    model *m = &p->m;
    const opi_swap_view *v = &m->view;
    MPI_Comm tp = MPI_Comm_f2c(v->comm_tp), pp = MPI_Comm_f2c(v->comm_pp), dp = MPI_Comm_f2c(v->comm_dp);
    uint64_t mine = all_of(m), both = 0, before = 0, first, last;
    if (p->opt.grow)
        check_grown(p, step);
    int32_t rc = MPI_Allreduce(&mine, &both, 1, MPI_UINT64_T, MPI_SUM, tp);
    if (rc)
        return rc;
    inject_point("forward");
    int up = (v->pp + 1) % v->pp_width, down = (v->pp + v->pp_width - 1) % v->pp_width;
    if (v->pp_width > 1)
        rc = MPI_Sendrecv(&both, 1, MPI_UINT64_T, up, 7, &before, 1, MPI_UINT64_T, down, 7, pp, MPI_STATUS_IGNORE);
    if (rc)
        return rc;
    opi_swap_range((uint64_t)p->opt.micro, v->dp_width, v->dp, &first, &last);
    memset(m->gradient, 0, (size_t)m->n * 8);
    uint64_t own = 0;
    for (uint64_t i = 0; i < m->own_n; i++)
        own += mix(m->own[i] ^ i);
    for (uint64_t b = first; b < last; b++) {
        uint64_t sample = mix(m->small.random ^ mix(m->small.position + b)) ^ both ^ before;
        for (uint64_t i = 0; i < m->n; i++)
            m->gradient[i] += mix(m->parameters[i] ^ sample ^ m->table[i & 63]);
        if (b % 2 && opi_swap_progress(p->swap))
            return MPI_ERR_OTHER;
    }
    for (uint64_t i = 0; i < m->n; i++)
        m->gradient[i] += own;
    inject_point("reduce");
    if (v->dp_width > 1)
        rc = MPI_Allreduce(MPI_IN_PLACE, m->gradient, (int)m->n, MPI_UINT64_T, MPI_SUM, dp);
    if (!rc && p->user != MPI_COMM_NULL) {
        int64_t least = step;
        rc = MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT64_T, MPI_MIN, p->user);
        if (!rc && least != step) {
            worker_log("\"kind\":\"wrong\",\"what\":\"slots are at different steps\",\"step\":%lld", (long long)step);
            return 1;
        }
    }
    return rc;
}

/* The optimizer: moments and parameters of this row's range, then everybody's parameters. */
int32_t model_update(program *p, int64_t step)
{
    model *m = &p->m;
    const opi_swap_view *v = &m->view;
    if (m->small.steps != step || m->small.position != (uint64_t)step * (uint64_t)p->opt.micro) {
        worker_log("\"kind\":\"wrong\",\"what\":\"small state is of step %lld\",\"step\":%lld",
                   (long long)m->small.steps, (long long)step);
        p->m.parameters[0] ^= 1; /* and it shall not pass unseen */
    }
    uint64_t half = m->begin + (m->end - m->begin) / 2;
    for (uint64_t i = m->begin; i < m->end; i++) {
        uint64_t *moment = &m->moments[i - m->begin];
        if (i == half)
            inject_point("moments");
        *moment = *moment * 3 + m->gradient[i];
        m->parameters[i] += mix(*moment);
    }
    for (uint64_t i = 0; i < m->own_n; i++)
        m->own[i] = mix(m->own[i] ^ m->gradient[i % m->n] ^ (uint64_t)v->slot);
    m->small.steps = step + 1;
    m->small.position += (uint64_t)p->opt.micro;
    m->small.random = mix(m->small.random);
    int32_t rc = model_grow(p, step + 1);
    if (rc)
        return rc;
    inject_point("spread");
    if (v->dp_width == 1)
        return 0;
    int counts[64], at[64];
    for (int d = 0; d < v->dp_width && d < 64; d++) {
        uint64_t a, b;
        opi_swap_range(m->n, v->dp_width, d, &a, &b);
        counts[d] = (int)(b - a);
        at[d] = (int)a;
    }
    return MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, m->parameters, counts, at, MPI_UINT64_T,
                          MPI_Comm_f2c(v->comm_dp));
}

/* One line a slot; campaign.py compares it with that of the same slot in a run without failures. */
void model_final(program *p)
{
    model *m = &p->m;
    uint64_t moments = 0, own = 0, table = 0, lists = 0, begin, end;
    if (p->opt.grow)
        check_grown(p, m->small.steps);
    for (uint64_t i = m->begin; i < m->end; i++)
        moments += mix(m->moments[i - m->begin] ^ mix(i));
    for (uint64_t i = 0; i < m->own_n; i++)
        own += mix(m->own[i] ^ mix(i));
    for (uint64_t i = 0; i < 64; i++)
        table += mix(m->table[i] ^ mix(i));
    for (uint64_t i = 0; p->opt.grow && i < m->grown.list_n; i++)
        lists += mix(m->grown.list[i] ^ mix(i));
    opi_swap_range(m->grown.total, m->view.dp_width, m->view.dp, &begin, &end);
    for (uint64_t i = 0; p->opt.grow && i < m->grown.piece_n; i++)
        lists += mix(m->grown.piece[i] ^ mix(begin + i));
    worker_log("\"kind\":\"final\",\"slot\":%d,\"dp_width\":%d,\"steps\":%lld,\"hash\":\"%016llx%016llx%016llx%016llx\"",
               (int)m->view.slot, (int)m->view.dp_width, (long long)m->small.steps, (unsigned long long)all_of(m),
               (unsigned long long)moments, (unsigned long long)(own + table + lists),
               (unsigned long long)(m->small.random ^ m->small.position));
}
