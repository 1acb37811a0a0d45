/* SPDX-License-Identifier: Apache-2.0 */
/* Measured rows in memory. */
#ifndef OPI_FACTS_TABLE_H
#define OPI_FACTS_TABLE_H
#include "base/mem.h"
#include "facts/schema.h"
#include "omnipilot/table.h"

typedef struct opi__row {
    opi_config config;             /* strings, llm and gpu live in the table's arena or the compiled-in tables */
    double value[OPI__T_COUNT];    /* measured targets; NaN = none */
    uint64_t cell, cell_mix;       /* FNV-1a-64 of the cell's raw text (data README's fold rule); _mix: the mix's measured
                                      mean lengths left blank when workload does not start with "fixed-" */
    uint64_t hardware;             /* FNV of gpu|n_gpus|tp|pp|ep|dp|precision (raw texts) */
    uint64_t decision;             /* FNV of source|engine|engine_version|cell text */
    uint64_t repeat;               /* FNV of every configuration column: equal = a repeated measurement */
    uint64_t content;              /* FNV of every field: equal = a copied line */
    const char *source, *workload, *license, *fail_reason, *source_ref;
    const char *model, *gpu_name;  /* raw names as in the file */
    int32_t launch_ok;             /* 1, 0, or -1 not stated */
    int32_t status;                /* OPI_OK or why the row cannot be used */
    const char *reason;            /* one line; "" when usable */
    uint64_t line;
} opi__row;

/* One thing the report says about one line. `kind` is machine-readable and static. */
typedef struct opi__problem {
    const char *kind;
    const char *column; /* static; NULL when it concerns the row */
    const char *value;  /* as in the file, cut; NULL when none */
    const char *reason;
    uint64_t line;
} opi__problem;

struct opi_table {
    opi_ctx *ctx;
    opi__arena arena;
    opi__row *rows;
    size_t n, cap;
    opi__problem *problems;  /* the first OPI__MAX_PROBLEMS of them */
    size_t n_problems, cap_problems;
    uint64_t total_problems, rows_with_problems, last_problem_line;
    const char **unknown_columns;
    size_t n_unknown_columns;
    uint64_t columns[2];     /* bit i: column i of opi__columns is in the file */
    uint64_t blank_lines;
    const char *format;      /* "csv" or an importer's name; static */
    char sha256[65];         /* of the bytes read */
};
#define OPI__MAX_PROBLEMS 10000

/* Reads a CSV table. `options` were taken (struct_size rule) by the caller and may be all-zero. */
int32_t opi__table_from_csv(opi_ctx *ctx, const char *bytes, size_t size, const opi_table_options *options,
                            opi_table **out, opi_error *err);
#endif
