/* SPDX-License-Identifier: Apache-2.0 */
/* Precisions: one line each in precision.c. */
#ifndef OPI_FACTS_PRECISION_H
#define OPI_FACTS_PRECISION_H

typedef struct opi__precision {
    const char *name;
    const char *cls;    /* what counts as the same arithmetic and bytes: bf16 and fp16 are both "16-bit" */
    double weight_bits; /* stored bits per weight without scales */
    double math_bits;   /* bits of the multiplications: 16 for weight-only formats */
} opi__precision;

/* Case-insensitive; "nvfp4", "w4a16" … are aliases. NULL for NULL, "" or an unknown name. */
const opi__precision *opi__precision_find(const char *name);
#endif
