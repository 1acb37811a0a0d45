/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OMNIPILOT_MEMORY_VIEW_H
#define OMNIPILOT_MEMORY_VIEW_H
#include "omnipilot/omnipilot.h"

/* The breakdown, a line each. */
void memory_print(const opi_config *c, const opi_memory *m, size_t indent);
/* The members of a breakdown, into the JSON object that is open. */
void memory_members(const opi_memory *m);
#endif
