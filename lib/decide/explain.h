/* SPDX-License-Identifier: Apache-2.0 */
/* The answer in words. */
#ifndef OPI_DECIDE_EXPLAIN_H
#define OPI_DECIDE_EXPLAIN_H
#include "decide/advice.h"

/* "2 replicas of 4 x H200-141GB TP 4 fp8 vllm". */
void opi__label(const opi__cand *c, char *buf, size_t cap);
/* Three significant digits below 100, whole numbers from there; "no number" for NaN and infinities. */
void opi__nice(char buf[32], double v);
/* a->sentence: why the winner wins, or why the answer is withheld. */
void opi__explain(opi_advice *a);
/* Notes that follow from the request and the scored candidates. */
void opi__take_notes(opi_advice *a);
#endif
