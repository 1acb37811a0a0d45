/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster of one replay: which GPU has which slot, what is down, and what a failure destroys. Who replaces whom and
 * where copies are is asked of slots.c and placement.c. */
#include "base/mem.h"
#include "base/status.h"
#include "swap/planner.h"

#include <math.h>
#include <string.h>

static opi__domain domain_of(const opi__world *w, int32_t gpu)
{
    int32_t node = gpu / w->s->o.per_node;
    opi__domain d = {node, node / w->s->o.nodes_per_rack};
    return d;
}

static void full_grid(opi__world *w, int32_t rows)
{
    w->grid = w->s->grid;
    w->grid.dp = rows;
    w->slots = opi__grid_slots(&w->grid);
}

/* All arrays of a world, their sizes in elements. */
static int32_t allocate(opi__world *w, opi_error *err)
{
    size_t gpus = (size_t)w->gpus, slots = (size_t)w->slots, nodes = (size_t)w->nodes, copies = (size_t)w->replicas;
    size_t place = opi__place_scratch(slots), int32 = sizeof(int32_t);
    struct {
        void **to;
        size_t count, size;
    } parts[] = {
        {(void **)&w->gpu_slot, gpus, int32},      {(void **)&w->owner, slots, int32},
        {(void **)&w->spare, gpus, int32},         {(void **)&w->lost, slots, int32},
        {(void **)&w->node_hit, nodes, int32},     {(void **)&w->node_down, nodes, 1},
        {(void **)&w->dead, slots, 1},             {(void **)&w->touched, slots, int32},
        {(void **)&w->placed, slots, int32},       {(void **)&w->holder, slots * copies, int32},
        {(void **)&w->scratch, copies ? place : 0, int32}, {(void **)&w->domain, slots, sizeof(opi__domain)},
        {(void **)&w->member, gpus, sizeof(opi__member)},  {(void **)&w->shy, gpus, 1},
        {(void **)&w->member_gpu, gpus, int32},    {(void **)&w->result, slots, int32},
        {(void **)&w->from_row, (size_t)w->grid.dp, int32}, {(void **)&w->order, (size_t)w->grid.dp, int32},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i].to = opi__zalloc(w->ctx, parts[i].count, parts[i].size);
        if (!*parts[i].to)
            return opi__fail_memory(err, parts[i].count * parts[i].size);
    }
    return OPI_OK;
}

int32_t opi__world_make(opi__world *w, opi_ctx *ctx, const opi__plan_setup *s, int32_t spares, int32_t replicas,
                        opi_error *err)
{
    memset(w, 0, sizeof *w);
    w->ctx = ctx;
    w->s = s;
    w->nodes = s->nodes + spares;
    w->gpus = w->live = w->nodes * s->o.per_node;
    w->replicas = replicas;
    full_grid(w, s->grid.dp);
    w->row = opi__grid_row(&w->grid);
    int32_t status = allocate(w, err);
    if (status) {
        opi__world_free(w);
        return status;
    }
    for (int32_t g = 0; g < w->gpus; g++) {
        w->gpu_slot[g] = g < w->slots ? g : OPI__GPU_SPARE;
        if (g < w->slots)
            w->owner[g] = w->placed[g] = g;
        else
            w->spare[w->n_spare++] = g;
    }
    return OPI_OK;
}

void opi__world_free(opi__world *w)
{
    void *parts[] = {w->gpu_slot, w->owner, w->spare,  w->lost,    w->node_hit, w->node_down, w->dead,
                     w->touched,  w->placed, w->holder, w->scratch, w->domain,   w->member,    w->shy,
                     w->member_gpu, w->result, w->from_row, w->order, w->heap};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        opi__free(w->ctx, parts[i]);
    memset(w, 0, sizeof *w);
}

/* ---- failures and repairs ---- */

static int32_t book(opi__world *w, double at, int32_t index, int32_t is_node, opi_error *err)
{
    if (w->n_heap == w->cap_heap) {
        size_t cap = w->cap_heap ? 2 * w->cap_heap : 64;
        opi__repair *heap = opi__resize(w->ctx, w->heap, cap, sizeof *heap);
        if (!heap)
            return opi__fail_memory(err, cap * sizeof *heap);
        w->heap = heap;
        w->cap_heap = cap;
    }
    size_t i = w->n_heap++;
    for (; i > 0 && w->heap[(i - 1) / 2].at > at; i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i].at = at;
    w->heap[i].index = index;
    w->heap[i].is_node = is_node;
    return OPI_OK;
}

double opi__world_next_repair(const opi__world *w)
{
    return w->n_heap ? w->heap[0].at : INFINITY;
}

/* Where GPU g is, or would be, among the spares. */
static int32_t spare_place(const opi__world *w, int32_t g)
{
    int32_t lo = 0, hi = w->n_spare;
    while (lo < hi) {
        int32_t mid = lo + (hi - lo) / 2;
        if (w->spare[mid] < g)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void add_spare(opi__world *w, int32_t g)
{
    int32_t at = spare_place(w, g);
    memmove(w->spare + at + 1, w->spare + at, (size_t)(w->n_spare++ - at) * sizeof *w->spare);
    w->spare[at] = g;
    w->gpu_slot[g] = OPI__GPU_SPARE;
    w->live++;
}

static void mark(opi__world *w, int32_t slot, unsigned bits)
{
    if (!w->dead[slot])
        w->touched[w->n_touched++] = slot;
    w->dead[slot] = (uint8_t)(w->dead[slot] | bits);
}

/* One process dies. 1 when it had a slot. */
static int lose(opi__world *w, int32_t g)
{
    int32_t slot = w->gpu_slot[g];
    w->gpu_slot[g] = OPI__GPU_DOWN;
    w->live--;
    if (slot >= 0) {
        mark(w, slot, OPI__DEAD_OWNER | OPI__DEAD_STORE);
        w->owner[slot] = -1;
        w->lost[w->n_lost++] = slot;
        return 1;
    }
    int32_t at = spare_place(w, g);
    memmove(w->spare + at, w->spare + at + 1, (size_t)(--w->n_spare - at) * sizeof *w->spare);
    return 0;
}

static int32_t fail_gpus(opi__world *w, int32_t begin, int32_t end, int32_t *working, int32_t *idle)
{
    int32_t died = 0;
    for (int32_t g = begin; g < end; g++) {
        if (w->gpu_slot[g] == OPI__GPU_DOWN)
            continue;
        int had = lose(w, g);
        *working += had;
        *idle += !had;
        died++;
    }
    return died;
}

int32_t opi__world_fail(opi__world *w, const opi__arrival *a, int32_t *working, int32_t *idle, opi_error *err)
{
    int32_t g = w->s->o.per_node, per_rack = w->s->o.nodes_per_rack, status = OPI_OK;
    double back = a->at + opi__plan_repair(w->s, a->kind, a->normal);
    *working = *idle = 0;
    w->hit++;
    if (a->kind == OPI__PLAN_PROCESS) {
        if (a->index < w->gpus && fail_gpus(w, a->index, a->index + 1, working, idle)) {
            w->node_hit[a->index / g] = w->hit;
            status = book(w, back, a->index, 0, err);
        }
    } else {
        int32_t first = a->kind == OPI__PLAN_NODE ? a->index : a->index * per_rack;
        int32_t end = a->kind == OPI__PLAN_NODE ? first + 1 : first + per_rack;
        for (int32_t n = first; n < end && n < w->nodes && !status; n++) {
            if (w->node_down[n])
                continue;
            w->node_down[n] = 1;
            w->down_nodes++;
            w->node_hit[n] = w->hit;
            fail_gpus(w, n * g, (n + 1) * g, working, idle);
            status = book(w, back, n, 1, err);
        }
    }
    if (*working) {
        w->losses++;
        w->worst = a->kind > w->worst ? a->kind : w->worst;
    }
    return status;
}

void opi__world_repair(opi__world *w)
{
    opi__repair done = w->heap[0], last = w->heap[--w->n_heap];
    size_t i = 0;
    for (size_t child = 1; child < w->n_heap; i = child, child = 2 * i + 1) {
        if (child + 1 < w->n_heap && w->heap[child + 1].at < w->heap[child].at)
            child++;
        if (last.at <= w->heap[child].at)
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    int32_t g = w->s->o.per_node, node = done.is_node ? done.index : done.index / g;
    int32_t begin = done.is_node ? node * g : done.index, end = done.is_node ? begin + g : begin + 1;
    if (done.is_node) {
        w->node_down[node] = 0;
        w->down_nodes--;
    } else if (w->node_down[node]) {
        return; /* its node went down meanwhile and brings all back at once */
    }
    for (int32_t i_gpu = begin; i_gpu < end; i_gpu++)
        if (w->gpu_slot[i_gpu] == OPI__GPU_DOWN)
            add_spare(w, i_gpu);
}

/* ---- assignment ---- */

static void add_member(opi__world *w, int32_t *n, int32_t gpu, int32_t slot)
{
    w->member[*n].slot = slot;
    w->member[*n].domain = domain_of(w, gpu);
    w->shy[*n] = w->hit > 0 && w->node_hit[gpu / w->s->o.per_node] == w->hit;
    w->member_gpu[(*n)++] = gpu;
}

static void sort_rising(int32_t *v, int32_t n)
{
    for (int32_t i = 1; i < n; i++) { /* nodes lose runs of slots: nearly sorted already */
        int32_t x = v[i], j = i;
        for (; j > 0 && v[j - 1] > x; j--)
            v[j] = v[j - 1];
        v[j] = x;
    }
}

int opi__world_assign(opi__world *w)
{
    if (w->n_lost == 0)
        return 1;
    if (w->n_spare < w->n_lost)
        return 0;
    int32_t rows = 0, n = 0;
    sort_rising(w->lost, w->n_lost);
    for (int32_t i = 0; i < w->n_lost; i++)
        if (rows == 0 || w->order[rows - 1] != w->lost[i] / w->row)
            w->order[rows++] = w->lost[i] / w->row;
    for (int32_t r = 0; r < rows; r++)
        for (int32_t i = 0; i < w->row; i++)
            if (w->owner[w->order[r] * w->row + i] >= 0)
                add_member(w, &n, w->owner[w->order[r] * w->row + i], r * w->row + i);
    for (int32_t i = 0; i < w->n_spare; i++)
        add_member(w, &n, w->spare[i], -1);
    opi__grid part = w->grid;
    part.dp = rows;
    if (opi__assign(&part, (size_t)n, w->member, w->shy, w->result) > 0)
        return 0;
    for (int32_t r = 0; r < rows; r++)
        for (int32_t i = 0; i < w->row; i++) {
            int32_t slot = w->order[r] * w->row + i, gpu = w->member_gpu[w->result[r * w->row + i]];
            w->owner[slot] = gpu;
            w->gpu_slot[gpu] = slot;
        }
    int32_t left = 0;
    for (int32_t i = 0; i < w->n_spare; i++)
        if (w->gpu_slot[w->spare[i]] == OPI__GPU_SPARE)
            w->spare[left++] = w->spare[i];
    w->n_spare = left;
    w->n_lost = 0;
    return 1;
}

static int32_t all_members(opi__world *w)
{
    int32_t n = 0;
    for (int32_t g = 0; g < w->gpus; g++)
        if (w->gpu_slot[g] != OPI__GPU_DOWN)
            add_member(w, &n, g, w->gpu_slot[g]);
    return n;
}

/* w->result for a grid of `rows` rows becomes the state of the world; copies are placed anew. */
static void adopt(opi__world *w, int32_t n, int32_t rows)
{
    full_grid(w, rows);
    for (int32_t i = 0; i < n; i++)
        w->gpu_slot[w->member_gpu[i]] = OPI__GPU_SPARE;
    for (int32_t s = 0; s < w->slots; s++) {
        w->owner[s] = w->placed[s] = w->member_gpu[w->result[s]];
        w->gpu_slot[w->owner[s]] = s;
        w->dead[s] = 0;
    }
    w->n_spare = 0;
    for (int32_t i = 0; i < n; i++)
        if (w->gpu_slot[w->member_gpu[i]] == OPI__GPU_SPARE)
            w->spare[w->n_spare++] = w->member_gpu[i];
    w->n_lost = w->n_touched = w->losses = w->worst = 0;
    w->placed_known = 0;
}

int32_t opi__world_shrink(opi__world *w)
{
    int32_t n = all_members(w), rows = 0;
    opi__assign_fewer(&w->grid, (size_t)n, w->member, w->result, w->from_row, &rows, w->order);
    if (rows > 0)
        adopt(w, n, rows);
    return rows;
}

int32_t opi__world_rows(const opi__world *w)
{
    int32_t rows = w->live / w->row;
    return rows < w->s->grid.dp ? rows : w->s->grid.dp;
}

int opi__world_refill(opi__world *w, int32_t least)
{
    int32_t rows = opi__world_rows(w);
    if (rows < least)
        return 0;
    if (rows == w->grid.dp)
        return opi__world_assign(w);
    if (rows < w->grid.dp)
        return opi__world_shrink(w) > 0;
    int32_t n = all_members(w);
    full_grid(w, rows);
    opi__assign(&w->grid, (size_t)n, w->member, w->shy, w->result);
    adopt(w, n, rows);
    return 1;
}

/* ---- copies ---- */

#define FEW 2048 /* touched slots for which opi__place_lost is quicker than opi__place */

/* A lone failure cannot reach a slot and its copy when placement can keep them apart (placement.c): other nodes as soon
 * as there are more than `replicas` of them, other racks as long as none has more than its share. */
static int is_safe(const opi__world *w)
{
    if (w->losses != 1 || w->replicas == 0)
        return 0;
    int32_t g = w->s->o.per_node, rack = w->s->o.nodes_per_rack;
    if (w->worst < OPI__PLAN_RACK)
        return (int64_t)w->replicas * g < w->slots;
    return (int64_t)rack * g <= w->slots / (w->replicas + 1);
}

int opi__world_copies_lost(opi__world *w)
{
    if (is_safe(w))
        return 0;
    int uncrowded = (int64_t)w->s->o.nodes_per_rack * w->s->o.per_node <= w->slots / (w->replicas + 1);
    for (int32_t s = 0; w->replicas && !w->placed_known && s < w->slots; s++)
        w->domain[s] = domain_of(w, w->placed[s]);
    if (w->replicas && uncrowded && w->n_touched <= FEW) {
        w->placed_known = 0;
        return opi__place_lost((size_t)w->slots, w->domain, w->replicas, w->dead, (size_t)w->n_touched, w->touched,
                               w->scratch);
    }
    if (w->replicas && !w->placed_known) {
        opi__place((size_t)w->slots, w->domain, w->replicas, w->scratch, w->holder, NULL);
        w->placed_known = 1;
    }
    for (int32_t i = 0; i < w->n_touched; i++) {
        int32_t slot = w->touched[i], alive = !(w->dead[slot] & OPI__DEAD_OWNER);
        for (int32_t k = 0; k < w->replicas && !alive; k++) {
            int32_t h = w->holder[(size_t)slot * (size_t)w->replicas + (size_t)k];
            alive = h >= 0 && !(w->dead[h] & OPI__DEAD_STORE);
        }
        if (!alive)
            return 1;
    }
    return 0;
}

void opi__world_restored(opi__world *w)
{
    for (int32_t i = 0; i < w->n_touched; i++)
        w->dead[w->touched[i]] = OPI__DEAD_STORE;
}

void opi__world_replicated(opi__world *w)
{
    for (int32_t i = 0; i < w->n_touched; i++) {
        w->dead[w->touched[i]] = 0;
        w->placed[w->touched[i]] = w->owner[w->touched[i]];
    }
    if (w->n_touched)
        w->placed_known = 0;
    w->n_touched = w->losses = w->worst = 0;
}
