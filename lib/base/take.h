/* SPDX-License-Identifier: Apache-2.0 */
/* The struct_size rule. Input: a short struct is zero-filled, a longer one with a non-zero tail is refused
 * (OPI_E_VERSION), size 0 (or below 8) is refused. Output: min(size) bytes are written, struct_size stays the
 * caller's. */
#ifndef OPI_BASE_TAKE_H
#define OPI_BASE_TAKE_H
#include "omnipilot/types.h"

int32_t opi__take(void *dst, size_t dst_size, const void *src, const char *name, opi_error *err);
int32_t opi__give(void *dst, const void *src, size_t src_size, const char *name, opi_error *err);
#endif
