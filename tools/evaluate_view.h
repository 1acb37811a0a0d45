/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OMNIPILOT_EVALUATE_VIEW_H
#define OMNIPILOT_EVALUATE_VIEW_H
#include "json_view.h"

void evaluation_print(const cJSON *report);
/* `each` 1: every request, not only the counts. */
void everyday_print(const cJSON *report, int each);
void memory_report_print(const cJSON *report);
#endif
