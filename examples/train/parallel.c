/* SPDX-License-Identifier: Apache-2.0 */
#include "parallel.h"

#include <omnipilot/swap.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double parallel_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void *aligned_room(int64_t bytes)
{
    void *room = NULL;
    if (posix_memalign(&room, 64, (size_t)(bytes > 64 ? bytes : 64)))
        return NULL;
    return memset(room, 0, (size_t)(bytes > 64 ? bytes : 64));
}

static void owned(const parallel *p, int row, int64_t *begin, int64_t *count)
{
    uint64_t from, to;
    opi_swap_range((uint64_t)p->parameters, p->dp_width, row, &from, &to);
    *begin = (int64_t)from;
    *count = (int64_t)(to - from);
}

int parallel_room(parallel *p, int64_t largest)
{
    int64_t begin, count;
    int total = 0;
    branch list[TREE_NODES];
    parallel_free(p);
    owned(p, p->dp_rank, &begin, &count);
    for (int row = 0; row < p->dp_width; row++)
        total += parallel_branches(p, row, list);
    p->gathered = aligned_room(largest * p->tp_width * 8);
    p->branches = aligned_room(total * count * 8);
    return p->gathered && p->branches;
}

void parallel_free(parallel *p)
{
    free(p->gathered);
    free(p->branches);
    p->gathered = p->branches = NULL;
}

int32_t parallel_sum_tp(parallel *p, double *x, int64_t n)
{
    int32_t fault = p->moment ? p->moment(p->user) : 0;
    if (fault || p->tp_width == 1)
        return fault;
    double start = parallel_clock();
    fault = MPI_Allgather(x, (int)n, MPI_DOUBLE, p->gathered, (int)n, MPI_DOUBLE, p->tp);
    p->waited_s += parallel_clock() - start;
    if (fault)
        return fault;
    memcpy(x, p->gathered, (size_t)n * 8);
    for (int t = 1; t < p->tp_width; t++)
        for (int64_t i = 0; i < n; i++)
            x[i] += p->gathered[t * n + i];
    return 0;
}

int32_t parallel_gather_tp(parallel *p, uint64_t value, uint64_t *all)
{
    double start = parallel_clock();
    int32_t fault = MPI_Allgather(&value, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, p->tp);
    p->waited_s += parallel_clock() - start;
    return fault;
}

/* ---- the tree over micro-batches ---- */

static void find_branches(int lo, int hi, int begin, int end, branch *out, int *count)
{
    if (lo >= end || hi <= begin)
        return;
    if (lo >= begin && hi <= end) {
        out[*count].begin = lo;
        out[(*count)++].end = hi;
        return;
    }
    int middle = lo + (hi - lo) / 2;
    find_branches(lo, middle, begin, end, out, count);
    find_branches(middle, hi, begin, end, out, count);
}

int parallel_branches(const parallel *p, int row, branch *out)
{
    uint64_t begin, end;
    int count = 0;
    opi_swap_range((uint64_t)p->micro_batches, p->dp_width, row, &begin, &end);
    find_branches(0, p->micro_batches, (int)begin, (int)end, out, &count);
    return count;
}

/* All rows' branches lie in p->branches in the order of their micro-batches, which is the order of this walk. */
static double *add_tree(const parallel *p, int lo, int hi, int64_t count, const branch **next, double **vector)
{
    if ((*next)->begin == lo && (*next)->end == hi) {
        double *mine = *vector;
        ++*next;
        *vector += count;
        return mine;
    }
    int middle = lo + (hi - lo) / 2;
    double *left = add_tree(p, lo, middle, count, next, vector);
    const double *right = add_tree(p, middle, hi, count, next, vector);
    for (int64_t i = 0; i < count; i++)
        left[i] += right[i];
    return left;
}

typedef struct exchange {
    int *send_count, *send_at, *take_count, *take_at;
    branch *all;    /* of all rows */
    int *first;     /* of row r in `all`; first[dp_width] = the total */
} exchange;

/* Round `round` moves branch `round` of each row that has so many: its range of row r goes to row r. */
static int32_t exchange_round(parallel *p, exchange *e, int round, const double *vector)
{
    int64_t begin, count, mine;
    owned(p, p->dp_rank, &begin, &mine);
    for (int row = 0; row < p->dp_width; row++) {
        owned(p, row, &begin, &count);
        e->send_at[row] = (int)begin;
        e->send_count[row] = vector ? (int)count : 0;
        int sends = e->first[row] + round < e->first[row + 1];
        e->take_at[row] = sends ? (int)((e->first[row] + round) * mine) : 0;
        e->take_count[row] = sends ? (int)mine : 0;
    }
    return MPI_Alltoallv(vector, e->send_count, e->send_at, MPI_DOUBLE, p->branches, e->take_count, e->take_at,
                         MPI_DOUBLE, p->dp);
}

int32_t parallel_reduce(parallel *p, double *const *vectors, const double **sum)
{
    int width = p->dp_width, rounds = 0;
    int64_t begin, mine;
    int *counts = malloc((size_t)(5 * width + 1) * sizeof *counts);
    branch *all = malloc((size_t)width * TREE_NODES * sizeof *all);
    if (!counts || !all) {
        free(counts);
        free(all);
        return MPI_ERR_NO_MEM;
    }
    exchange e = {counts, counts + width, counts + 2 * width, counts + 3 * width, all, counts + 4 * width};
    owned(p, p->dp_rank, &begin, &mine);
    e.first[0] = 0;
    for (int row = 0; row < width; row++) {
        int count = parallel_branches(p, row, all + e.first[row]);
        e.first[row + 1] = e.first[row] + count;
        rounds = count > rounds ? count : rounds;
    }
    int own = e.first[p->dp_rank + 1] - e.first[p->dp_rank];
    double start = parallel_clock();
    int32_t fault = 0;
    for (int round = 0; round < rounds && !fault; round++)
        fault = exchange_round(p, &e, round, round < own ? vectors[round] : NULL);
    p->waited_s += parallel_clock() - start;
    if (!fault) {
        const branch *next = all;
        double *vector = p->branches;
        *sum = add_tree(p, 0, p->micro_batches, mine, &next, &vector);
    }
    free(counts);
    free(all);
    return fault;
}

/* An allgather in place of what row r has: [begin, end) of `total` elements. */
static int32_t gather_ranges(parallel *p, double *values, int64_t total)
{
    int *counts = malloc((size_t)p->dp_width * 2 * sizeof *counts);
    if (!counts)
        return MPI_ERR_NO_MEM;
    int *at = counts + p->dp_width;
    for (int row = 0; row < p->dp_width; row++) {
        uint64_t begin, end;
        opi_swap_range((uint64_t)total, p->dp_width, row, &begin, &end);
        at[row] = (int)begin;
        counts[row] = (int)(end - begin);
    }
    double start = parallel_clock();
    int32_t fault = MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, counts, at, MPI_DOUBLE, p->dp);
    p->waited_s += parallel_clock() - start;
    free(counts);
    return fault;
}

int32_t parallel_spread(parallel *p, double *parameters)
{
    return gather_ranges(p, parameters, p->parameters);
}

int32_t parallel_losses(parallel *p, double *values)
{
    return gather_ranges(p, values, p->micro_batches);
}
