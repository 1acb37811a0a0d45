/* SPDX-License-Identifier: Apache-2.0 */
/* What the program says: steps, a timeline of each recovery, JSON lines, the losses in the end. The process that holds
 * slot 0 speaks; as any process may become it, all keep the events of the latest recovery. */
#ifndef TRAIN_REPORT_H
#define TRAIN_REPORT_H
#include "trainer.h"

typedef struct kept_event {
    opi_swap_event event;
    char message[400];
} kept_event;

typedef struct report {
    const options *opt;
    kept_event *events;
    int count, room;
    int *holder, *before; /* rank of each slot, now and before the latest recovery; -1 = none or not known */
    int slots;            /* of the widths training began with */
    int knows;            /* holder[] was valid before: this process had a slot */
    double *step_s;       /* each step that was computed here */
    int64_t steps, step_room;
    double began;         /* the present step; 0 = not known */
} report;

int report_open(report *r, const options *opt, int rank); /* 0 = no memory */
void report_close(report *r);
/* The library's event callback. */
void report_event(report *r, const opi_swap_event *event);
/* All active processes tell each other who they are, in the rebuild callback. Returns 0 or a fault. */
int32_t report_holders(report *r, const opi_swap_view *view);
/* A step begins; what happened since the last one is told. */
void report_begin(report *r, const trainer *t, int64_t step);
/* A step was committed. */
void report_step(report *r, const trainer *t, int64_t step);
/* The end; writes the losses. 0 = the file could not be written. */
int report_end(report *r, const trainer *t);
#endif
