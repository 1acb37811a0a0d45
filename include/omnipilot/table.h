/* SPDX-License-Identifier: Apache-2.0 */
/** @file table.h
 * Measurements in: the CSV table and the importers of formats users bring.
 */
#ifndef OMNIPILOT_TABLE_H
#define OMNIPILOT_TABLE_H

#include "omnipilot/catalog.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Measured rows. Owner: the caller, opi_table_free. Threads: one builder, then many readers. */
typedef struct opi_table opi_table;

typedef struct opi_table_options {
    uint32_t struct_size;
    int32_t keep_unlabeled;  /**< 1: rows without any measurement are kept (questions to predict) */
    const char *format;      /**< "csv", or an importer's name (opi_import_name_at); NULL: recognized from the content */
    const char *source;      /**< name of the measurement campaign when the file has none; NULL: "user" */
    const opi_config *defaults; /**< what the file does not state (GPU, LLM, TP, precision …); NULL: nothing */
} opi_table_options;

OPI_API int32_t opi_table_read(opi_ctx *ctx, const char *path, const opi_table_options *options, opi_table **out,
                               opi_error *err);
OPI_API int32_t opi_table_parse(opi_ctx *ctx, const char *bytes, size_t size, const opi_table_options *options,
                                opi_table **out, opi_error *err);
OPI_API void opi_table_free(opi_table *table);
OPI_API size_t opi_table_rows(const opi_table *table);
/** Row `row` (0 = first data line) as a configuration; pointers inside live as long as the table. `status` (nullable):
 *  OPI_OK, or why the row cannot be used; its one-line reason is opi_table_reason(). */
OPI_API int32_t opi_table_config(const opi_table *table, size_t row, opi_config *out, int32_t *status, opi_error *err);
/** The row's measured value of a target; NaN when not measured. */
OPI_API double opi_table_value(const opi_table *table, size_t row, size_t target);
/** Line of the file the row starts on (header = 1). */
OPI_API uint64_t opi_table_line(const opi_table *table, size_t row);
/** Why a row is not usable; "" when it is. Lives as long as the table. */
OPI_API const char *opi_table_reason(const opi_table *table, size_t row);
/** JSON: rows, usable rows, unknown columns, per-row problems (line, column, value, reason), duplicates, contradicting
 *  repeats. Owner: the caller, opi_text_free. */
OPI_API int32_t opi_table_report(const opi_table *table, opi_text **out, opi_error *err);

OPI_API size_t opi_import_count(void);
OPI_API const char *opi_import_name_at(size_t index); /**< NULL past the end */

#ifdef __cplusplus
}
#endif
#endif
