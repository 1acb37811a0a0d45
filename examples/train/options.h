/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H
#include <stdint.h>

#define MOST_KILLS 32
#define MOST_MICRO_BATCHES 4096

/* Where in a step a process can be made to die. */
enum {
    PHASE_START,   /* before anything */
    PHASE_COMPUTE, /* in the middle of forward and backward */
    PHASE_REDUCE,  /* before the gradients are exchanged */
    PHASE_UPDATE,  /* half of its own range is updated */
    PHASE_SPREAD,  /* before the new parameters go to all rows */
    PHASE_COMMIT,  /* all is computed, the step is not committed */
    PHASE_DONE,    /* just committed */
    PHASES
};
extern const char *const phase_names[PHASES];

typedef struct kill_point {
    int64_t step;
    int slot, phase;
} kill_point;

typedef struct options {
    int dp, tp;
    int64_t steps;
    int layers, width, heads, context, batch, micro_batches;
    uint64_t seed;
    int policy, replicas, interval;
    double wait_s, straggler;
    const char *checkpoint_dir;
    int64_t checkpoint_every;
    int checkpoint_keep;
    kill_point kill[MOST_KILLS];
    int kills;
    int slow_slot;       /* -1 = none */
    double slow_factor;
    const char *losses, *event_log;
    int64_t state_mib;
    double device_ms;
    int ranks_per_node;  /* 0 = what the host's name says */
    int evict;
    int json, quiet, check_gradients, help;
    double rate;
} options;

extern const char options_help[];

/* 1, or 0 and one line in `problem`. */
int options_parse(int argc, char **argv, options *o, char *problem, int room);
#endif
