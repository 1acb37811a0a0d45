/* SPDX-License-Identifier: Apache-2.0 */
#if !defined(_GNU_SOURCE) && defined(__linux__)
#define _GNU_SOURCE 1 /* sched_getaffinity: a container sees the cores it may use, not the machine's */
#endif
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#define MOST_THREADS 256

typedef struct work {
    void (*fn)(void *user, size_t i);
    void *user;
    size_t n;
    atomic_size_t next;
} work;

static void run(work *w)
{
    /* Workers overshoot by one each, so that the counter cannot wrap before SIZE_MAX - MOST_THREADS items. */
    for (size_t i; (i = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed)) < w->n;)
        w->fn(w->user, i);
}

static void *worker(void *w)
{
    run(w);
    return NULL;
}

void opi__parallel(int32_t threads, size_t n, void (*fn)(void *user, size_t i), void *user)
{
    size_t count = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : (size_t)threads;
    if (count > n)
        count = n;
    if (count <= 1) {
        for (size_t i = 0; i < n; i++)
            fn(user, i);
        return;
    }
    work w;
    w.fn = fn;
    w.user = user;
    w.n = n;
    atomic_init(&w.next, 0);
    pthread_t ids[MOST_THREADS];
    size_t started = 0;
    /* The host's signals stay with the host's threads. */
    sigset_t all, before;
    sigfillset(&all);
    int masked = pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
    while (started < count - 1 && pthread_create(&ids[started], NULL, worker, &w) == 0)
        started++;
    if (masked)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    run(&w);
    for (size_t i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
}

int32_t opi__cores(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (int32_t)CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 65536 ? 65536 : (int32_t)n;
}
