/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* SCHED_BATCH */
#include "swap/worker.h"
#include <sched.h>
#include <signal.h>
#include <string.h>

static void *loop(void *user)
{
    opi__worker *w = user;
    pthread_mutex_lock(&w->lock);
    while (!w->quit) {
        if (!w->busy) {
            pthread_cond_wait(&w->change, &w->lock);
            continue;
        }
        void (*job)(void *) = w->job;
        void *argument = w->user;
        pthread_mutex_unlock(&w->lock);
        job(argument);
        pthread_mutex_lock(&w->lock);
        w->busy = 0;
        pthread_cond_broadcast(&w->change);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* A copy that has just been given must not take the core from the program's thread, which has a few calls to make before
 * it waits for a device: all ranks would wait for it. */
static void step_back(pthread_t thread)
{
#ifdef SCHED_BATCH
    int policy = 0;
    struct sched_param none = {0};
    if (!pthread_getschedparam(thread, &policy, &none) && policy == SCHED_OTHER)
        pthread_setschedparam(thread, SCHED_BATCH, &none);
#else
    (void)thread;
#endif
}

int opi__worker_start(opi__worker *w)
{
    memset(w, 0, sizeof *w);
    int rc = pthread_mutex_init(&w->lock, NULL);
    if (rc)
        return rc;
    rc = pthread_cond_init(&w->change, NULL);
    if (rc) {
        pthread_mutex_destroy(&w->lock);
        return rc;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&w->thread, NULL, loop, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc) {
        pthread_cond_destroy(&w->change);
        pthread_mutex_destroy(&w->lock);
        return rc;
    }
    step_back(w->thread);
    w->started = 1;
    return 0;
}

void opi__worker_give(opi__worker *w, void (*job)(void *user), void *user)
{
    pthread_mutex_lock(&w->lock);
    w->job = job;
    w->user = user;
    w->busy = 1;
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->lock);
}

int opi__worker_busy(opi__worker *w)
{
    if (!w->started)
        return 0;
    pthread_mutex_lock(&w->lock);
    int busy = w->busy;
    pthread_mutex_unlock(&w->lock);
    return busy;
}

void opi__worker_wait(opi__worker *w)
{
    if (!w->started)
        return;
    pthread_mutex_lock(&w->lock);
    while (w->busy)
        pthread_cond_wait(&w->change, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

void opi__worker_stop(opi__worker *w)
{
    if (!w->started)
        return;
    opi__worker_wait(w);
    pthread_mutex_lock(&w->lock);
    w->quit = 1;
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->change);
    pthread_mutex_destroy(&w->lock);
    w->started = 0;
}
