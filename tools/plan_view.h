/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OMNIPILOT_PLAN_VIEW_H
#define OMNIPILOT_PLAN_VIEW_H
#include "omnipilot/omnipilot.h"

/* The plan for people. `measured` is NULL unless its recoveries were read from a run. */
int plan_print(const opi_plan *plan, const opi_plan_measured *measured);
/* The simulator against its formulas; X_FAIL when one does not agree. */
int plan_print_checks(opi_ctx *ctx, uint64_t seed, int json);
#endif
