/* SPDX-License-Identifier: Apache-2.0 */
/* Filling opi_error. Every failing function of the library ends in `return opi__fail(err, code, index, "…")`. */
#ifndef OPI_BASE_STATUS_H
#define OPI_BASE_STATUS_H
#include "base/text.h"
#include "omnipilot/types.h"

/* Formats with opi__vformat (locale-free; see text.h for the directives). err may be NULL. Returns code. */
OPI__FORMAT(4, 5) int32_t opi__fail(opi_error *err, int32_t code, int64_t index, const char *fmt, ...);
/* OPI_E_NOMEM with the standard sentence. */
int32_t opi__fail_memory(opi_error *err, size_t bytes);
#endif
