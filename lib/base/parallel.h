/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPI_BASE_PARALLEL_H
#define OPI_BASE_PARALLEL_H
#include <stddef.h>
#include <stdint.h>

/* Runs fn(user, i) for i in [0, n) on up to `threads` threads (POSIX), joined before it returns. threads <= 1: in
 * place. A thread that cannot start is not an error: its work is done by the others. */
void opi__parallel(int32_t threads, size_t n, void (*fn)(void *user, size_t i), void *user);
/* Cores this process may use, at least 1. */
int32_t opi__cores(void);
#endif
