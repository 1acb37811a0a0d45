/* SPDX-License-Identifier: Apache-2.0 */
/* One process of the training program: its state and what a step does. The loop and the library's callbacks are in
 * train.c. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H
#include <omnipilot/swap.h>

#include "adamw.h"
#include "gpt.h"
#include "options.h"
#include "parallel.h"

#define MOST_DEPTH 16 /* of the tree over micro-batches */

/* Where training is: small state. */
typedef struct position {
    int64_t steps;   /* done */
    int64_t samples; /* of the text that were read */
    uint64_t random; /* stream of the next step's text */
} position;

typedef struct record {
    double loss;
    uint64_t hash; /* of all parameters after the step */
} record;

typedef struct trainer {
    options opt;
    opi_swap *swap;
    opi_swap_view view;
    parallel net;
    gpt model;
    adamw adam;

    double *parameters;     /* replicated over the data-parallel rows */
    double *mean, *square;  /* AdamW's moments of elements [begin, end): sharded */
    uint64_t begin, end;
    uint64_t *padding;      /* more sharded state (--state-mib): elements [padding_begin, padding_end) */
    uint64_t padding_begin, padding_end, padding_total;
    position at;            /* small */
    record *history;        /* small: one a step */
    int64_t history_room;   /* a round number, so that a checkpoint can be taken further with more --steps */

    double *vector[MOST_DEPTH + TREE_NODES]; /* gradients: of the row's branches, then one a level of the tree */
    int vectors;
    double *losses;         /* one a micro-batch */
    const double *gradient; /* of the own range, after trainer_gradients */
    int32_t *tokens;        /* of a micro-batch */

    double started;         /* the present step, in processor time */
    double started_at;      /* and on the clock */
    double slept_s;         /* in this step, as busy as computing */
    int64_t spent_step;     /* kill points up to here were for the slot's last holder */
    int64_t moments;        /* calls of `moment` in this step */
    int64_t step;           /* being computed */
} trainer;

/* The shape of the model on this slot. */
gpt_shape trainer_shape(const options *o, int tp_width, int tp_rank);
/* Makes room for what t->view says, old contents are not kept. 0 = no memory. */
int trainer_room(trainer *t);
void trainer_free(trainer *t);
/* The state before the first step. */
void trainer_initialize(trainer *t);
/* Whether the padding is that of t->at.steps: all of it, or only what every step changes. */
int trainer_padding_right(const trainer *t, int all);

/* Forward and backward, sum of the gradients; no registered state is changed. Returns 0 or a fault. */
int32_t trainer_gradients(trainer *t, int64_t step);
/* Changes the state to that after the step. Returns 0 or a fault. */
int32_t trainer_update(trainer *t, int64_t step);
/* Seconds this process was busy in the step: computing, not waiting for others. */
double trainer_busy(const trainer *t);

/* CLOCK_MONOTONIC. */
double trainer_clock(void);

/* faults.c: dies here if a kill point says so. */
void trainer_dies_at(trainer *t, int64_t step, int phase);
/* Called between layers (t->net.moment): lets the library work. Returns 0 or a fault. */
int32_t trainer_moment(void *user);
/* What --slow and --device-ms add to computing. Returns 0 or a fault. */
int32_t trainer_device(trainer *t);
#endif
