/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery: how long from a SIGKILL until every slot computes again; and what a sleeping spare costs. */
#include "bench_swap.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_KILL = 4, BETWEEN_KILLS = 5, KERNEL_MS = 5 };

typedef struct job {
    const options *o;
    opi_swap *swap;
    opi_swap_view view;
    content state;
    kill_record *kill; /* [o->kills], shared by all ranks */
    int rank;
    int64_t step;
    double until, piece; /* ends of the step's device work, and of the part that runs now */
    int unreported; /* kill whose first new step this rank has not seen yet, -1 = none */
} job;

static uint64_t draw(uint64_t *x)
{
    *x = *x * 6364136223846793005ull + 1442695040888963407ull;
    return *x >> 33;
}

/* Kill k: which slot, and when in its step. */
static void plan(const options *o, int k, int32_t *slot, double *part)
{
    uint64_t x = o->seed * 977 + (uint64_t)k;
    draw(&x);
    *slot = (int32_t)(draw(&x) % (uint64_t)(o->dp * o->tp));
    *part = 0.2 + 0.6 * (double)(draw(&x) % 1000) / 1000;
}

/* The device computes; at its moment a victim dies. */
static int32_t device(void *user)
{
    job *j = user;
    double now = now_s();
    for (int k = 0; k < j->o->kills; k++) {
        int32_t slot;
        double part;
        plan(j->o, k, &slot, &part);
        if (j->kill[k].killed > 0 || j->view.slot != slot || j->step < FIRST_KILL + k * BETWEEN_KILLS ||
            (k > 0 && (!(j->kill[k - 1].killed > 0) || j->step < (int64_t)j->kill[k - 1].step + BETWEEN_KILLS)) ||
            now < j->until - (1 - part) * j->o->step_ms * 1e-3)
            continue;
        j->kill[k].victim = j->rank;
        j->kill[k].slot = slot;
        j->kill[k].step = (double)j->step;
        j->kill[k].killed = now_s();
        kill(getpid(), SIGKILL);
    }
    return now >= j->piece;
}

static int32_t rebuild(void *user, const opi_swap_view *view)
{
    job *j = user;
    j->view = *view;
    if (!content_right(&j->state, view->slot) && view->epoch > 0)
        j->kill[view->epoch - 1].wrong += 1;
    return 0;
}

static int32_t init(void *user, const opi_swap_view *view)
{
    job *j = user;
    j->state.changes = -1;
    content_change(&j->state, view->slot);
    return 0;
}

static void event(void *user, const opi_swap_event *e)
{
    job *j = user;
    int k = e->epoch - 1;
    if (e->kind != OPI_SWAP_RECOVERED || k < 0 || k >= j->o->kills)
        return;
    for (int p = 0; p < OPI_SWAP_PHASES; p++)
        j->kill[k].rank[j->rank].phase_s[p] = e->phase_s[p];
    j->kill[k].redone = (double)e->redone;
    j->unreported = k;
}

static int32_t compute(job *j)
{
    opi_error err;
    double begin = now_s(), sum = 0, one = 1;
    int32_t fault = 0;
    j->piece = begin;
    j->until = begin + j->o->step_ms * 1e-3;
    /* Kernel after kernel, as a device is given its work: what is not begun is not begun after a failure. */
    for (int i = 1; !fault && j->piece < j->until; i++) {
        j->piece = begin + i * KERNEL_MS * 1e-3;
        if (j->piece > j->until)
            j->piece = j->until;
        fault = opi_swap_idle(j->swap, device, j);
    }
    if (!fault)
        fault = MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_Comm_f2c(j->view.comm_active));
    if (!fault && !(fault = opi_swap_update(j->swap, &err)))
        content_change(&j->state, j->view.slot);
    return fault;
}

/* Bytes a second that one rank copies while the others wait. */
static double copy_rate(const content *c)
{
    size_t bytes = c->words * 8;
    char *to = malloc(bytes);
    double best = 0;
    if (!to)
        die("not enough memory", NULL);
    memset(to, 1, bytes);
    for (int i = 0; i < 5; i++) {
        double begin = now_s();
        memcpy(to, c->word, bytes);
        double rate = (double)bytes / (now_s() - begin);
        best = rate > best ? rate : best;
    }
    best = to[bytes / 2] == 1 ? best : 0;
    free(to);
    return best;
}

int bench_kills(const options *o, int rank, int ranks)
{
    static job j;
    opi_error err;
    size_t bytes = sizeof(kill_record) * MAX_KILLS;
    int file = open(o->shared ? o->shared : "", O_RDWR);
    void *map = file < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED)
        die("--shared must name a file of the right size", NULL);
    j.o = o;
    j.kill = map;
    j.rank = rank;
    j.unreported = -1;
    j.view.slot = -1;
    (void)ranks;
    opi_swap_options wanted = {
        .struct_size = sizeof wanted, .world = MPI_Comm_c2f(MPI_COMM_WORLD), .dp = o->dp, .tp = o->tp,
        .steps = FIRST_KILL + o->kills * BETWEEN_KILLS + 4,
        .callbacks = {.user = &j, .init = init, .rebuild = rebuild, .event = event}};
    if (!content_make(&j.state, o->mib) || opi_swap_create(NULL, &wanted, &j.swap, &err))
        die("opi_swap_create", &err);
    if (rank == 0)
        j.kill[0].reserved[0] = copy_rate(&j.state);
    MPI_Barrier(MPI_COMM_WORLD);
    content_register(j.swap, &j.state);
    int32_t more;
    while ((more = opi_swap_step(j.swap, &j.step, &err)) > 0) {
        if (j.unreported >= 0)
            j.kill[j.unreported].rank[rank].resumed = now_s();
        j.unreported = -1;
        int32_t fault = compute(&j);
        if (opi_swap_commit(j.swap, fault, 0, &err) < 0)
            die("opi_swap_commit", &err);
    }
    if (more < 0)
        die("opi_swap_step", &err);
    opi_swap_destroy(j.swap);
    return 1;
}

/* ---- an idle spare ---- */

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct look {
    const options *o;
    const char *who;
} look;

static void *watch(void *user)
{
    const look *l = user;
    pause_s(0.5); /* the first meeting is over */
    double begin = now_s(), used = cpu_s();
    pause_s(l->o->seconds);
    used = cpu_s() - used;
    printf("{\"kind\":\"cpu\",\"who\":\"%s\",\"share\":%.6f}\n", l->who, used / (now_s() - begin));
    fflush(stdout);
    return NULL;
}

/* The first dp * tp ranks train, the next one is a spare, the last one waits inside an MPI call. */
int bench_idle(const options *o, int rank, int ranks)
{
    static job j;
    pthread_t thread;
    opi_error err;
    MPI_Comm members;
    int outside = rank == ranks - 1, number = 0, slots = o->dp * o->tp;
    look l = {o, outside ? "blocked in MPI" : "spare"};
    if (MPI_Comm_split(MPI_COMM_WORLD, outside, rank, &members))
        die("MPI_Comm_split", NULL);
    if (rank >= slots && pthread_create(&thread, NULL, watch, &l))
        die("pthread_create", NULL);
    if (outside) {
        MPI_Recv(&number, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pthread_join(thread, NULL);
        return 1;
    }
    j.o = o;
    j.rank = rank;
    opi_swap_options wanted = {
        .struct_size = sizeof wanted, .world = MPI_Comm_c2f(members), .dp = o->dp, .tp = o->tp,
        .steps = (int64_t)((o->seconds + 1) / (o->step_ms * 1e-3)) + 1,
        .callbacks = {.user = &j, .init = init, .rebuild = rebuild}};
    if (!content_make(&j.state, o->mib) || opi_swap_create(NULL, &wanted, &j.swap, &err))
        die("opi_swap_create", &err);
    content_register(j.swap, &j.state);
    options no_kills = *o;
    no_kills.kills = 0;
    j.o = &no_kills;
    while (opi_swap_step(j.swap, &j.step, &err) > 0) {
        int32_t fault = compute(&j);
        opi_swap_commit(j.swap, fault, 0, &err);
    }
    if (rank == 0)
        MPI_Send(&number, 1, MPI_INT, ranks - 1, 7, MPI_COMM_WORLD);
    opi_swap_destroy(j.swap);
    if (rank >= slots)
        pthread_join(thread, NULL);
    return 1;
}
