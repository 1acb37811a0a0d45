/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPI_TEST_ALLOC_SCENARIOS_H
#define OPI_TEST_ALLOC_SCENARIOS_H
#include <omnipilot/omnipilot.h>

typedef struct meter {
    uint64_t calls, refused;
    uint64_t fail_at; /* the call that is refused; 0 = none */
    int all_later;    /* 1: and all after it */
    int64_t live;     /* blocks not yet released */
} meter;

typedef struct scenario {
    const char *name;
    int32_t (*run)(const char **problem); /* frees all it made; sets *problem when an output was touched on failure */
    uint64_t at_least;                    /* allocations expected through the context, so that the test tests something */
    uint64_t points;                          /* failing allocations tried, spread evenly, in each of the two modes */
} scenario;

extern const scenario scenarios[]; /* ends with a NULL name */
int32_t metered_context(opi_ctx **out);
#endif
