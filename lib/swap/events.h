/* SPDX-License-Identifier: Apache-2.0 */
/* Events: to the program's callback, into the counters, and as JSON lines. Free of MPI. */
#ifndef OPI_SWAP_EVENTS_H
#define OPI_SWAP_EVENTS_H
#include "base/text.h"
#include "omnipilot/swap.h"

typedef struct opi__journal {
    opi_ctx *ctx;
    void (*event)(void *user, const opi_swap_event *event);
    void *user;
    int32_t rank, file; /* file: descriptor, -1 = none */
    opi_swap_counters counters;
} opi__journal;

/* path NULL = no file; %r in it is the rank. Errors: OPI_E_IO. */
int32_t opi__journal_open(opi__journal *j, opi_ctx *ctx, const char *path, int32_t rank, opi_error *err);
/* Counts it, calls the callback, writes the line. struct_size is filled in. A line that cannot be written is dropped: an
 * event must not stop training. */
OPI__FORMAT(3, 4) void opi__journal_event(opi__journal *j, opi_swap_event *event, const char *fmt, ...);
/* The last line: kind "counters". */
void opi__journal_close(opi__journal *j);
#endif
