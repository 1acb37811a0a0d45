/* SPDX-License-Identifier: Apache-2.0 */
/* Measured rows in memory. */
#ifndef OPI_FACTS_TABLE_H
#define OPI_FACTS_TABLE_H
#include "facts/schema.h"
#include "omnipilot/table.h"
#include "base/mem.h"

typedef struct opi__row {
    opi_config config;             /* strings, llm and gpu live in the table's arena or the compiled-in tables */
    double value[OPI__T_COUNT];    /* measured targets; NaN = none */
    uint64_t cell, cell_mix;       /* FNV-1a-64 of the cell's raw text (data README's fold rule); _mix: the mix's measured
                                      mean lengths left blank when workload does not start with "fixed-" */
    uint64_t hardware;             /* FNV of gpu|n_gpus|tp|pp|ep|dp|precision (raw texts) */
    uint64_t decision;             /* FNV of source|engine|engine_version|cell text */
    uint64_t repeat;               /* FNV of every configuration column: equal = a repeated measurement */
    const char *source, *workload, *license, *fail_reason, *source_ref;
    const char *model, *gpu_name;  /* raw names as in the file */
    int32_t launch_ok;             /* 1, 0, or -1 not stated */
    int32_t status;                /* OPI_OK or why the row cannot be used */
    const char *reason;            /* one line; "" when usable */
    uint64_t line;
} opi__row;

struct opi_table {
    opi_ctx *ctx;
    opi__arena arena;
    opi__row *rows;
    size_t n, cap;
    opi__arena *notes;       /* see table.c: problems for the report */
    void *report;            /* table.c's own list of problems */
    char sha256[65];         /* of the bytes read */
};
#endif
