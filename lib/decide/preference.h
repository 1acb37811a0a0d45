/* SPDX-License-Identifier: Apache-2.0 */
/* Utility weights from choices. */
#ifndef OPI_DECIDE_PREFERENCE_H
#define OPI_DECIDE_PREFERENCE_H
#include "decide/choices.h"

struct opi_preferences {
    opi_ctx *ctx;
    opi_utility base, used; /* used: only where summary.cost_status is OPI_PREF_IDENTIFIED */
    opi_preferences_summary summary;
    opi_preference weight[OPI__ATTRIBUTES]; /* OPI__A_COST: the cost; `weight` of it means nothing */
    opi__choice_note notes[OPI__CHOICES_NOTES];
    size_t n_notes;
};
/* OPI_E_NODATA and why, when there is no scale. */
int32_t opi__preferences_scaled(const opi_preferences *p, opi_error *err);
#endif
