/* SPDX-License-Identifier: Apache-2.0 */
/* Step times of one loop, in blocks of steps that take turns:
 *
 *   with      snapshots each step and a replica on a peer
 *   without   the same calls, no snapshot
 *   blocking  without, and after each step a copy in memory and its exchange with a peer, waited for
 *   file      without, and after each step the state in a file, fsync waited for
 *
 * Two runtimes live in each process, that of `with` and that of the others. The first step of a block does not count:
 * the end of the other's last snapshot is in it. */
#include "bench_swap.h"

#include <cblas.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void openblas_set_num_threads(int count);

enum { WITH, WITHOUT, BLOCKING, FILES, VARIANTS, SIDE = 160, RATES = 3 };
static const char *const names[] = {"with", "without", "blocking", "file"};

typedef struct lab {
    const options *o;
    MPI_Comm active;
    int rank, slots;
    content state;
    opi_swap *with, *without;
    char *copy, *replica;
    double *a, *b, *c;
    int products;      /* of a step in host mode */
    char *from, *to; /* of the measurement of the memory's speed */
    size_t room;
    double *rate;
    int rates;
    double *took[VARIANTS];
    int steps[VARIANTS];
} lab;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

/* ---- one step ---- */

static void product(lab *l)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1.0, l->a, SIDE, l->b, SIDE, 0.0, l->c,
                SIDE);
}

static void compute(lab *l, opi_swap *swap, double begin)
{
    if (!l->o->host) {
        double until = begin + l->o->step_ms * 1e-3;
        opi_swap_idle(swap, until_reached, &until);
        return;
    }
    for (int i = 0; i < l->products; i++) {
        product(l);
        opi_swap_progress(swap);
    }
}

static void blocking_copy(lab *l)
{
    int bytes = (int)(l->state.words * 8);
    memcpy(l->copy, l->state.word, (size_t)bytes);
    if (MPI_Sendrecv(l->copy, bytes, MPI_BYTE, (l->rank + 1) % l->slots, 1, l->replica, bytes, MPI_BYTE,
                     (l->rank + l->slots - 1) % l->slots, 1, l->active, MPI_STATUS_IGNORE))
        die("MPI_Sendrecv", NULL);
}

static void file_copy(lab *l)
{
    char path[600], part[620];
    snprintf(path, sizeof path, "%s/state.%d", l->o->dir, l->rank);
    snprintf(part, sizeof part, "%s.part", path);
    int file = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    size_t bytes = l->state.words * 8, done = 0;
    while (file >= 0 && done < bytes) {
        ssize_t n = write(file, (const char *)l->state.word + done, bytes - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    if (file < 0 || done < bytes || fsync(file) || close(file) || rename(part, path))
        die("cannot write the file checkpoint", NULL);
}

static double one_step(lab *l, int variant)
{
    opi_swap *swap = variant == WITH ? l->with : l->without;
    opi_error err;
    int64_t step;
    double begin = now_s(), one[8] = {1}, sum[8];
    if (opi_swap_step(swap, &step, &err) != 1)
        die("opi_swap_step", &err);
    compute(l, swap, begin);
    if (MPI_Allreduce(one, sum, 8, MPI_DOUBLE, MPI_SUM, l->active))
        die("MPI_Allreduce", NULL);
    if (opi_swap_update(swap, &err))
        die("opi_swap_update", &err);
    content_change(&l->state, l->rank);
    if (opi_swap_commit(swap, 0, 0, &err))
        die("opi_swap_commit", &err);
    if (variant == BLOCKING)
        blocking_copy(l);
    if (variant == FILES)
        file_copy(l);
    return now_s() - begin;
}

/* ---- memory bandwidth ---- */

/* Bytes a second that one rank copies while all do; measured between the blocks of steps, as they are. */
static void copy_rate(lab *l)
{
    for (int i = 0; i < RATES; i++) {
        MPI_Barrier(l->active);
        double begin = now_s();
        memcpy(l->to, l->from, l->room);
        l->rate[l->rates++] = (double)l->room / (now_s() - begin);
    }
    if (l->to[l->room - 1] != 1)
        die("a copy went wrong", NULL);
}

/* ---- the run ---- */

static void make_runtime(lab *l, MPI_Comm world, int with, opi_swap **swap)
{
    opi_error err;
    int64_t others = (int64_t)l->steps[WITHOUT] + l->steps[BLOCKING] + l->steps[FILES];
    opi_swap_options wanted = {.struct_size = sizeof wanted, .world = MPI_Comm_c2f(world), .dp = l->slots,
                               .steps = with ? l->steps[WITH] : others, .replicas = with ? 1 : -1,
                               .interval = with ? 1 : 1 << 30};
    if (opi_swap_create(NULL, &wanted, swap, &err))
        die("opi_swap_create", &err);
    content_register(*swap, &l->state);
}

static void finish(opi_swap *swap)
{
    opi_error err;
    int64_t step;
    if (opi_swap_step(swap, &step, &err) != 0)
        die("the last opi_swap_step", &err);
}

static void calibrate(lab *l)
{
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        MPI_Barrier(l->active);
        double begin = now_s();
        for (int k = 0; k < 20; k++)
            product(l);
        double took = (now_s() - begin) / 20;
        best = took < best ? took : best;
    }
    l->products = (int)(l->o->step_ms * 1e-3 / best) + 1;
    MPI_Bcast(&l->products, 1, MPI_INT, 0, l->active);
}

static void report(lab *l)
{
    opi_swap_counters c = {.struct_size = sizeof c};
    opi_error err;
    double rate = median(l->rate, l->rates), rates, all[4] = {0}, sum[4];
    opi_swap_get_counters(l->with, &c, &err);
    all[0] = c.wait_s;
    all[1] = (double)c.waits;
    all[2] = (double)c.buffer_bytes;
    MPI_Reduce(&rate, &rates, 1, MPI_DOUBLE, MPI_SUM, 0, l->active);
    MPI_Reduce(all, sum, 4, MPI_DOUBLE, MPI_MAX, 0, l->active);
    if (l->rank == 0)
        printf("{\"kind\":\"steps\",\"copy_rate\":%.6g,\"wait_s\":%.6g,\"waits\":%.0f,\"snapshots\":%llu,"
               "\"buffer_bytes\":%.0f,\"products\":%d", rates / l->slots, sum[0], sum[1],
               (unsigned long long)c.snapshots, sum[2], l->products);
    for (int v = 0; v < VARIANTS; v++) {
        double *most = l->took[v];
        MPI_Reduce(l->rank ? most : MPI_IN_PLACE, most, l->steps[v], MPI_DOUBLE, MPI_MAX, 0, l->active);
        if (l->rank)
            continue;
        printf(",\"%s\":[", names[v]);
        for (int i = 0; i < l->steps[v]; i++)
            printf("%s%.6f", i ? "," : "", most[i]);
        printf("]");
    }
    if (l->rank == 0)
        printf("}\n");
}

static void prepare(lab *l)
{
    size_t bytes = l->state.words * 8;
    l->steps[WITH] = l->steps[WITHOUT] = l->o->rounds * l->o->block;
    if (l->o->more) {
        l->steps[BLOCKING] = l->o->rounds * l->o->block;
        l->steps[FILES] = l->o->rounds * 2;
        l->copy = malloc(bytes);
        l->replica = malloc(bytes);
        if (!l->copy || !l->replica)
            die("not enough memory", NULL);
    }
    l->room = bytes < (size_t)64 << 20 ? (size_t)64 << 20 : bytes;
    l->from = malloc(l->room);
    l->to = malloc(l->room);
    l->rate = calloc((size_t)(l->o->rounds * RATES), sizeof *l->rate);
    if (!l->from || !l->to || !l->rate)
        die("not enough memory", NULL);
    memset(l->from, 1, l->room);
    memset(l->to, 1, l->room);
    l->a = calloc(3 * SIDE * SIDE, sizeof *l->a);
    if (!l->a)
        die("not enough memory", NULL);
    l->b = l->a + SIDE * SIDE;
    l->c = l->b + SIDE * SIDE;
    for (int i = 0; i < 2 * SIDE * SIDE; i++)
        l->a[i] = 1.0 / (i + 1);
    for (int v = 0; v < VARIANTS; v++)
        l->took[v] = calloc((size_t)l->steps[v] + 1, sizeof(double));
}

int bench_steps(const options *o, int rank, int ranks)
{
    static lab l;
    opi_error err;
    int64_t step;
    l.o = o;
    l.rank = rank;
    l.slots = o->dp * o->tp;
    openblas_set_num_threads(1);
    (void)ranks;
    if (MPI_Comm_split(MPI_COMM_WORLD, rank < l.slots ? 0 : MPI_UNDEFINED, rank, &l.active))
        die("MPI_Comm_split", NULL);
    if (rank >= l.slots && !content_make(&l.state, 1))
        die("not enough memory", NULL);
    if (rank < l.slots && !content_make(&l.state, o->mib))
        die("not enough memory", NULL);
    l.steps[WITH] = o->rounds * o->block;
    if (rank < l.slots)
        prepare(&l);
    make_runtime(&l, MPI_COMM_WORLD, 1, &l.with);
    if (rank >= l.slots) { /* the spare sleeps through all of it */
        int32_t more = opi_swap_step(l.with, &step, &err);
        opi_swap_destroy(l.with);
        return more == 0;
    }
    make_runtime(&l, l.active, 0, &l.without);
    calibrate(&l);
    int at[VARIANTS] = {0};
    for (int round = 0; round < o->rounds; round++) {
        copy_rate(&l);
        for (int v = 0; v < VARIANTS; v++)
            for (int i = 0; i < l.steps[v] / o->rounds; i++)
                l.took[v][at[v]++] = one_step(&l, v);
    }
    finish(l.with);
    finish(l.without);
    report(&l);
    opi_swap_destroy(l.with);
    opi_swap_destroy(l.without);
    return 1;
}
