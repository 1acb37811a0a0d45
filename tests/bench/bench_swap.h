/* SPDX-License-Identifier: Apache-2.0 */
/* The measured program of `./dev bench swap`; swap.py starts it and reads what it says. */
#ifndef BENCH_SWAP_H
#define BENCH_SWAP_H
#include <mpi.h>
#include <omnipilot/swap.h>
#include <stddef.h>

enum { PAGE_WORDS = 512, MAX_RANKS = 64, MAX_KILLS = 16 };

typedef struct options {
    int dp, tp;
    int host;              /* 1: all cores compute; 0: the host waits as for a device */
    int rounds, block;     /* blocks of steps of each variant, and steps a block */
    int more;              /* 1: the blocking variants too */
    int kills;
    uint64_t seed;
    double mib, step_ms, seconds;
    const char *dir;       /* for files */
    const char *shared;    /* file that all ranks map */
} options;

/* State whose content follows from who holds it and how often it was changed. */
typedef struct content {
    uint64_t *word;
    size_t words;
    int64_t changes; /* registered as small state */
} content;

/* One kill, as all see it in the shared file; doubles only, swap.py reads them. */
typedef struct kill_record {
    double killed, victim, slot, step, redone, wrong, reserved[2];
    struct {
        double resumed, steps_restored, phase_s[OPI_SWAP_PHASES];
    } rank[MAX_RANKS];
} kill_record;

double now_s(void);
void pause_s(double seconds);
_Noreturn void die(const char *what, const opi_error *err);
int content_make(content *c, double mib);
void content_change(content *c, int32_t slot);             /* one optimizer step: a word on each page */
int content_right(const content *c, int32_t slot);
void content_register(opi_swap *swap, content *c);
int32_t until_reached(void *user);                          /* a `done` for opi_swap_idle: *user is the time */

int bench_steps(const options *o, int rank, int ranks);
int bench_kills(const options *o, int rank, int ranks);
int bench_idle(const options *o, int rank, int ranks);
#endif
