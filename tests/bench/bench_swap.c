/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_swap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void pause_s(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

_Noreturn void die(const char *what, const opi_error *err)
{
    fprintf(stderr, "bench-swap: %s%s%s\n", what, err ? ": " : "", err ? err->message : "");
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

int32_t until_reached(void *user)
{
    return now_s() >= *(const double *)user;
}

/* ---- state ---- */

static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static uint64_t expected(const content *c, int32_t slot, size_t page)
{
    return mixed(mixed((uint64_t)slot << 40 ^ (uint64_t)c->changes) + page);
}

int content_make(content *c, double mib)
{
    void *room = NULL;
    c->words = (size_t)(mib * 1048576 / 8);
    if (posix_memalign(&room, 4096, c->words * 8))
        return 0;
    c->word = memset(room, 1, c->words * 8);
    return 1;
}

static void fill(content *c, int32_t slot)
{
    for (size_t i = 0; i < c->words; i += PAGE_WORDS)
        c->word[i] = expected(c, slot, i / PAGE_WORDS);
}

void content_change(content *c, int32_t slot)
{
    c->changes++;
    fill(c, slot);
}

int content_right(const content *c, int32_t slot)
{
    for (size_t i = 0; i < c->words; i += PAGE_WORDS)
        if (c->word[i] != expected(c, slot, i / PAGE_WORDS))
            return 0;
    return 1;
}

void content_register(opi_swap *swap, content *c)
{
    opi_error err;
    opi_swap_state optimizer = {sizeof optimizer, OPI_SWAP_SHARDED, "optimizer", c->word, c->words * 8, 0, 0};
    opi_swap_state changes = {sizeof changes, OPI_SWAP_SMALL, "changes", &c->changes, sizeof c->changes, 0, 0};
    if (opi_swap_register(swap, &optimizer, &err) || opi_swap_register(swap, &changes, &err))
        die("opi_swap_register", &err);
}

/* ---- the command line ---- */

static int parse(int argc, char **argv, options *o)
{
    for (int i = 2; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        const struct {
            const char *name;
            int *value;
        } whole[] = {{"--dp", &o->dp},         {"--tp", &o->tp},     {"--host", &o->host},  {"--rounds", &o->rounds},
                     {"--block", &o->block}, {"--more", &o->more}, {"--kills", &o->kills}};
        size_t k = 0, n = sizeof whole / sizeof *whole;
        while (k < n && strcmp(whole[k].name, name))
            k++;
        if (k < n)
            *whole[k].value = atoi(value);
        else if (!strcmp(name, "--seed"))
            o->seed = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--mib"))
            o->mib = atof(value);
        else if (!strcmp(name, "--step-ms"))
            o->step_ms = atof(value);
        else if (!strcmp(name, "--seconds"))
            o->seconds = atof(value);
        else if (!strcmp(name, "--dir"))
            o->dir = value;
        else if (!strcmp(name, "--shared"))
            o->shared = value;
        else
            return 0;
    }
    return argc % 2 == 0;
}

int main(int argc, char **argv)
{
    options o = {.dp = 2, .tp = 1, .rounds = 3, .block = 5, .kills = 1, .mib = 16, .step_ms = 200, .seconds = 2};
    int level, rank, ranks, done = 0;
    opi_swap_ignore_sigpipe();
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level))
        return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2 || !parse(argc, argv, &o) || ranks > MAX_RANKS || o.kills > MAX_KILLS || o.dp * o.tp > ranks)
        die("usage: bench-swap steps|kills|idle --OPTION VALUE …; run by tests/bench/swap.py", NULL);
    if (!strcmp(argv[1], "steps"))
        done = bench_steps(&o, rank, ranks);
    else if (!strcmp(argv[1], "kills"))
        done = bench_kills(&o, rank, ranks);
    else if (!strcmp(argv[1], "idle"))
        done = bench_idle(&o, rank, ranks);
    MPI_Finalize();
    return done ? 0 : 1;
}
