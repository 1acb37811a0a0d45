/* SPDX-License-Identifier: Apache-2.0 */
/* Values people type, with their units. Each returns 0, or X_USAGE after a message that names the option, the value and
 * the limit; `out` is untouched on failure. */
#ifndef OMNIPILOT_PARSE_H
#define OMNIPILOT_PARSE_H
#include "args.h"
#include "omnipilot/omnipilot.h"

#include <stdint.h>

/* A decimal number in [lo, hi]; lo itself is refused when `open` is 1. */
int parse_number(const char *option, const char *text, double lo, int open, double hi, double *out);
int parse_int(const char *option, const char *text, int64_t lo, int64_t hi, int64_t *out);
/* The same for an option that may be missing: *out stays as it is then. */
int parse_number_option(const args *a, const char *name, double lo, int open, double hi, double *out);
int parse_int_option(const args *a, const char *name, int64_t lo, int64_t hi, int32_t *out);
/* --level: 0.8, or 80 %. */
int parse_level_option(const args *a, double *out);

/* "2s" for a quantity kept in `unit` ("ms"): the number, converted. A number without a unit is in `unit`. */
int parse_quantity(const char *option, const char *text, const char *unit, double lo, int open, double hi, double *out);

/* --slo name=value[unit][,…]: at most `max`; a target twice is refused. */
int parse_slos(const args *a, opi_slo *out, size_t max, size_t *n);
/* --inventory GPU:count[@per_node][,…] with --price and --queue. gpus and out have `max` entries. */
int parse_inventory(const args *a, opi_gpu *gpus, opi_inventory *out, size_t max, size_t *n);
/* A list option (repeatable, comma-separated). *out: an array of texts, free with parse_list_free. */
int parse_list(const args *a, const char *name, char ***out, size_t *n);
void parse_list_free(char **list, size_t n);
/* --target NAME[,NAME]: indexes; all targets when absent. out has opi_target_count() entries. */
int parse_targets(const args *a, size_t *out, size_t *n);
#endif
