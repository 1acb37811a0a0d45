/* SPDX-License-Identifier: Apache-2.0 */
/* One answered request, as the parts of `advise` show it. */
#ifndef OMNIPILOT_ADVISE_VIEW_H
#define OMNIPILOT_ADVISE_VIEW_H
#include "tool.h"

typedef struct advise_view {
    const args *a;
    const opi_model *model;
    const opi_advise_request *request;
    const opi_utility *utility;
    const opi_advice *advice;
    const char *llm_path; /* folder of the checkpoint when --llm was a file; else NULL */
    int32_t verdict;      /* OPI_ADVISE_… */
    size_t winner;        /* SIZE_MAX: none */
    size_t count, feasible, top;
    double level;
} advise_view;

void advise_print(const advise_view *v);
void advise_csv(const advise_view *v);
/* Everything behind the candidates shown: utility terms, launch prior, memory, facts, support. */
void advise_explain(const advise_view *v);
/* The winner's launch command and the load test that checks the prediction; 0 or an exit status after a message. */
int launch_print(const advise_view *v, int json);

/* A candidate's prediction, over all its replicas (rates add up, latencies do not). 0 when there is none. */
int advise_prediction(const advise_view *v, size_t rank, const opi_candidate *c, size_t target, opi_prediction *out);
/* 1 when a target counts tokens or requests per second: replicas add up. */
int advise_adds_up(const opi_target_info *info);
/* Index of a target by its column name, SIZE_MAX when the library has none. */
size_t advise_target(const char *name);
#endif
