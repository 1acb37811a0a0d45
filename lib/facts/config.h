/* SPDX-License-Identifier: Apache-2.0 */
/* Checking a configuration at the door: everything behind it may rely on finite numbers and present facts. */
#ifndef OPI_FACTS_CONFIG_H
#define OPI_FACTS_CONFIG_H
#include "omnipilot/catalog.h"

#define OPI__MOST_TOKENS   1e7
#define OPI__MOST_REQUESTS 1e6
#define OPI__MOST_GPUS     1000000

/* Copies by the struct_size rule and checks: LLM and GPU present, numbers finite, not negative (0 = not stated) and
 * within the limits above, degrees that multiply to no more than n_gpus. Errors name the field, the value and the
 * limit. */
int32_t opi__config_take(const opi_config *in, opi_config *out, opi_error *err);
/* The same where only memory is asked: the GPU's FLOP/s need not be known. */
int32_t opi__config_take_memory(const opi_config *in, opi_config *out, opi_error *err);
/* 1 when input + output and max_context are within what the LLM can hold. */
int opi__config_context_fits(const opi_config *config);
#endif
