/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPI_FACTS_GPU_H
#define OPI_FACTS_GPU_H
#include "omnipilot/catalog.h"

typedef struct opi__gpu_entry {
    opi_gpu gpu;
    const char *aliases; /* other spellings, separated by | */
    double visible_gib;  /* device memory as a process sees it; 0 = not known */
} opi__gpu_entry;
extern const opi__gpu_entry opi__gpus[]; /* sorted by name */
extern const size_t opi__gpu_entries;

/* Entry by canonical name or alias; NULL when unknown or ambiguous. Static storage, no heap. */
const opi_gpu *opi__gpu_by_name(const char *name);
/* Device memory a process sees, GiB: as measured for the table's GPUs, else a cautious share of the nominal size. */
double opi__gpu_visible_gib(const opi_gpu *gpu);
#endif
