/* SPDX-License-Identifier: Apache-2.0 */
/* What a user's program has no need for: it dies, is slow, or pretends to have a device, as the command line says. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "trainer.h"

/* A process that kept its slot has not passed the kill point yet, or it would be dead. One that took the slot over
 * ignores those up to the step that failed (spent_step): they were its predecessor's. */
void trainer_dies_at(trainer *t, int64_t step, int phase)
{
    for (int i = 0; i < t->opt.kills; i++) {
        const kill_point *k = &t->opt.kill[i];
        if (k->step != step || k->slot != t->view.slot || k->phase != phase || step <= t->spent_step)
            continue;
        if (t->opt.json) {
            char line[200];
            int length = snprintf(line, sizeof line, "{\"kind\":\"kill\",\"by\":%d,\"slot\":%d,\"step\":%lld,"
                                  "\"phase\":\"%s\",\"time_s\":%.9f}\n", t->view.rank, t->view.slot,
                                  (long long)step, phase_names[phase], trainer_clock());
            ssize_t written = write(STDOUT_FILENO, line, (size_t)length);
            (void)written;
        }
        kill(getpid(), SIGKILL);
    }
}

static int32_t reached(void *user)
{
    return trainer_clock() >= *(const double *)user;
}

int32_t trainer_moment(void *user)
{
    trainer *t = user;
    branch list[TREE_NODES];
    int count = parallel_branches(&t->net, t->net.dp_rank, list), micro_batches = 0;
    for (int i = 0; i < count; i++)
        micro_batches += list[i].end - list[i].begin;
    /* Four a layer and micro-batch: this one is in the middle of them. */
    if (t->moments++ == (int64_t)2 * micro_batches * t->opt.layers)
        trainer_dies_at(t, t->step, PHASE_COMPUTE);
    return opi_swap_progress(t->swap) ? FAULT_KNOWN : 0;
}

int32_t trainer_device(trainer *t)
{
    double factor = t->opt.slow_slot == t->view.slot ? t->opt.slow_factor : 1.0;
    double start = trainer_clock(), until = start + trainer_busy(t) * (factor - 1.0);
    if (t->opt.device_ms > 0)
        until = t->started_at + t->opt.device_ms * 1e-3 * factor;
    if (until <= start)
        return 0;
    t->slept_s += until - start;
    return opi_swap_idle(t->swap, reached, &until) ? FAULT_KNOWN : 0;
}
