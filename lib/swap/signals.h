/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPI_SWAP_SIGNALS_H
#define OPI_SWAP_SIGNALS_H
#include <stdint.h>

/* Ends a process of this host that was declared dead. */
void opi__end_process(int64_t pid);
#endif
