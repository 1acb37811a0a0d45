/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that does one job at a time beside the caller's. It makes no MPI call. */
#ifndef OPI_SWAP_WORKER_H
#define OPI_SWAP_WORKER_H
#include <pthread.h>
#include <stdint.h>

typedef struct opi__worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    void (*job)(void *user);
    void *user;
    int32_t started, busy, quit;
} opi__worker;

/* 0, or the system's error number. All signals are blocked in the thread: they stay the program's business. */
int opi__worker_start(opi__worker *w);
/* The worker must be idle. What the caller wrote before is visible to the job, and what the job wrote to the caller once
 * opi__worker_busy is 0. */
void opi__worker_give(opi__worker *w, void (*job)(void *user), void *user);
int opi__worker_busy(opi__worker *w);
/* Returns when idle. */
void opi__worker_wait(opi__worker *w);
/* Waits for the job, ends the thread. Safe when it was never started. */
void opi__worker_stop(opi__worker *w);
#endif
