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

/* Every cell has another size, and no size is a multiple of the width. */
int model_room(program *p)
{
    model *m = &p->m;
    const opi_swap_view *v = &m->view;
    m->n = (uint64_t)p->opt.size + 37 * cell_of(v);
    opi_swap_range(m->n, v->dp_width, v->dp, &m->begin, &m->end);
    m->own_n = p->opt.opaque ? 11 + (uint64_t)v->slot * 3 : 0;
    memset(&m->small, 0xee, sizeof m->small);
    return room(&m->parameters, m->n) && room(&m->moments, m->end - m->begin) && room(&m->own, m->own_n) &&
           room(&m->table, 64) && room(&m->gradient, m->n);
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
    opi_error err;
    for (size_t i = 0; i < sizeof all / sizeof *all - (p->opt.opaque ? 0 : 1); i++) {
        int32_t rc = opi_swap_register(p->swap, &all[i], &err);
        if (rc) {
            worker_log("\"kind\":\"error\",\"call\":\"register\",\"code\":%d,\"message\":\"%s\"", (int)rc, err.message);
            return rc;
        }
    }
    return 0;
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
    uint64_t moments = 0, own = 0, table = 0;
    for (uint64_t i = m->begin; i < m->end; i++)
        moments += mix(m->moments[i - m->begin] ^ mix(i));
    for (uint64_t i = 0; i < m->own_n; i++)
        own += mix(m->own[i] ^ mix(i));
    for (uint64_t i = 0; i < 64; i++)
        table += mix(m->table[i] ^ mix(i));
    worker_log("\"kind\":\"final\",\"slot\":%d,\"dp_width\":%d,\"steps\":%lld,\"hash\":\"%016llx%016llx%016llx%016llx\"",
               (int)m->view.slot, (int)m->view.dp_width, (long long)m->small.steps, (unsigned long long)all_of(m),
               (unsigned long long)moments, (unsigned long long)(own + table),
               (unsigned long long)(m->small.random ^ m->small.position));
}
