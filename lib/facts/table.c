/* SPDX-License-Identifier: Apache-2.0 */
/* A table's life: built from CSV or by an importer, then only read. */
#include "facts/table.h"

#include <math.h>
#include <string.h>

#include "base/ctx.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/take.h"
#include "facts/csv.h"
#include "facts/table_build.h"
#include "facts/table_cell.h"

/* ---- building ---- */

static int32_t copy_text(opi__builder *b, const char **text, opi_error *err)
{
    if (*text && !(*text = opi__builder_text(b, *text, strlen(*text))))
        return opi__fail_memory(err, 1);
    if (*text && !**text)
        *text = NULL;
    return OPI_OK;
}

/* The defaults outlive the caller's call inside the table, so all they point to is copied. */
static int32_t copy_defaults(opi__builder *b, opi_error *err)
{
    b->defaults.struct_size = sizeof b->defaults;
    if (!b->options->defaults)
        return OPI_OK;
    opi_config *d = &b->defaults;
    int32_t status = opi__take(d, sizeof *d, b->options->defaults, "opi_config", err);
    if (status == OPI_OK && d->gpu) {
        opi_gpu *gpu = opi__arena_alloc(&b->table->arena, sizeof *gpu);
        status = gpu ? opi__take(gpu, sizeof *gpu, d->gpu, "opi_gpu", err) : opi__fail_memory(err, sizeof *gpu);
        d->gpu = gpu;
    }
    if (status == OPI_OK && d->llm) {
        opi_llm *llm = opi__arena_alloc(&b->table->arena, sizeof *llm);
        status = llm ? opi__take(llm, sizeof *llm, d->llm, "opi_llm", err) : opi__fail_memory(err, sizeof *llm);
        d->llm = llm;
    }
    const char **texts[] = {&d->engine, &d->engine_version, &d->precision, &d->load_kind};
    for (size_t i = 0; status == OPI_OK && i < sizeof texts / sizeof texts[0]; i++)
        status = copy_text(b, texts[i], err);
    return status;
}

int32_t opi__builder_begin(opi__builder *b, opi_ctx *ctx, const char *format, const char *bytes, size_t size,
                           const opi_table_options *options, opi_error *err)
{
    memset(b, 0, sizeof *b);
    b->ctx = b->texts.ctx = b->gpus.ctx = b->llms.ctx = ctx;
    b->options = options;
    b->place = "line";
    opi__buf_init(&b->scratch, ctx);
    b->table = opi__zalloc(ctx, 1, sizeof *b->table);
    if (!b->table)
        return opi__fail_memory(err, sizeof *b->table);
    b->table->ctx = ctx;
    b->table->format = format;
    opi__arena_init(&b->table->arena, ctx);
    opi__sha256_hex(bytes, size, b->table->sha256);
    return copy_defaults(b, err);
}

int32_t opi__builder_end(opi__builder *b, int32_t status, opi_table **out, opi_error *err)
{
    opi__free(b->ctx, b->texts.slots);
    opi__free(b->ctx, b->gpus.slots);
    opi__free(b->ctx, b->llms.slots);
    opi__buf_free(&b->scratch);
    if (status == OPI_OK && b->table->n == 0)
        status = opi__fail(err, OPI_E_NODATA, -1, "the table has no data row");
    if (status < 0) {
        opi_table_free(b->table);
        return status;
    }
    if (b->table->total_problems > 0 && b->table->n_problems > 0)
        opi__log(b->ctx, OPI_LOG_WARNING, "%llu problem%s in the table, the first: %s",
                 (unsigned long long)b->table->total_problems, b->table->total_problems > 1 ? "s" : "",
                 b->table->problems[0].reason);
    *out = b->table;
    return OPI_OK;
}

/* ---- CSV ---- */

static int32_t note_unknown_column(opi__builder *b, const char *name, size_t n, size_t *cap, opi_error *err)
{
    opi_table *t = b->table;
    if (t->n_unknown_columns == *cap) {
        size_t grown_cap = *cap ? *cap * 2 : 16;
        const char **grown = opi__resize(b->ctx, (void *)t->unknown_columns, grown_cap, sizeof *grown);
        if (!grown)
            return opi__fail_memory(err, grown_cap * sizeof *grown);
        t->unknown_columns = grown;
        *cap = grown_cap;
    }
    char shown[48];
    opi__cell_show(shown, sizeof shown, name, n);
    const char *copy = opi__builder_text(b, shown, strlen(shown));
    if (!copy)
        return opi__fail_memory(err, n);
    t->unknown_columns[t->n_unknown_columns++] = copy;
    return OPI_OK;
}

/* Separators other programs write, seen in a header that has no comma. */
static int32_t refuse_separator(const opi__csv *csv, opi_error *err)
{
    const char *header = csv->fields[0].text;
    size_t n = csv->fields[0].size;
    if (csv->n_fields != 1)
        return OPI_OK;
    if (memchr(header, ';', n))
        return opi__fail(err, OPI_E_FORMAT, -1, "line %llu: the columns are separated by ';': save the table with ',' "
                         "between columns and '.' in numbers", (unsigned long long)csv->line);
    if (memchr(header, '\t', n))
        return opi__fail(err, OPI_E_FORMAT, -1, "line %llu: the columns are separated by tabs: save the table with ',' "
                         "between columns", (unsigned long long)csv->line);
    return OPI_OK;
}

/* map[i]: the known column at place i of a record, or OPI__COLUMNS. */
static int32_t read_header(opi__builder *b, const opi__csv *csv, size_t *map, opi_error *err)
{
    size_t known = 0, cap = 0;
    int32_t status = refuse_separator(csv, err);
    for (size_t i = 0; status == OPI_OK && i < csv->n_fields; i++) {
        const char *name = csv->fields[i].text;
        size_t n = csv->fields[i].size;
        opi__cell_trim(&name, &n);
        map[i] = opi__column_find(name, n);
        if (map[i] == OPI__COLUMNS) {
            status = note_unknown_column(b, name, n, &cap, err);
            continue;
        }
        for (size_t k = 0; k < i; k++)
            if (map[k] == map[i])
                return opi__fail(err, OPI_E_FORMAT, -1, "line %llu: the column %s stands twice, as columns %zu and %zu",
                                 (unsigned long long)csv->line, opi__column_name(map[i]), k + 1, i + 1);
        b->table->columns[map[i] / 64] |= (uint64_t)1 << map[i] % 64;
        known++;
    }
    if (status == OPI_OK && known == 0) {
        char shown[48];
        opi__cell_show(shown, sizeof shown, csv->fields[0].text, csv->fields[0].size);
        status = opi__fail(err, OPI_E_FORMAT, -1, "line %llu: no known column name in the first line, which starts with "
                           "\"%s\"", (unsigned long long)csv->line, shown);
    }
    return status;
}

static uint64_t hash_record(const opi__csv *csv)
{
    uint64_t h = OPI__FNV_START;
    for (size_t i = 0; i < csv->n_fields; i++) {
        h = opi__fnv1a64(h, csv->fields[i].text, csv->fields[i].size);
        h = opi__fnv1a64(h, "\x1f", 1);
    }
    return h;
}

static int32_t read_records(opi__builder *b, opi__csv *csv, opi_error *err)
{
    size_t map[OPI__CSV_MAX_FIELDS];
    int32_t status = opi__csv_next(csv, err);
    if (status == 0)
        return opi__fail(err, OPI_E_NODATA, -1, "the table is empty: not even a line of column names");
    if (status > 0)
        status = read_header(b, csv, map, err);
    size_t n_columns = csv->n_fields;
    while (status >= 0 && (status = opi__csv_next(csv, err)) > 0) {
        if (csv->n_fields != n_columns) {
            char why[128];
            opi__format(why, sizeof why, "%zu fields, but the line of column names has %zu", csv->n_fields, n_columns);
            status = opi__builder_add_broken(b, hash_record(csv), csv->line, "ragged-row", why, err);
            continue;
        }
        opi__cells cells = {{NULL}, {0}};
        for (size_t i = 0; i < n_columns; i++) {
            if (map[i] == OPI__COLUMNS)
                continue;
            cells.text[map[i]] = csv->fields[i].text;
            cells.size[map[i]] = csv->fields[i].size;
        }
        status = opi__builder_add(b, &cells, hash_record(csv), csv->line, err);
    }
    b->table->blank_lines = csv->blank_lines;
    if (status == 0 && b->table->n == 0)
        return opi__fail(err, OPI_E_NODATA, -1, "the table has a line of column names but no data line");
    return status < 0 ? status : OPI_OK;
}

int32_t opi__table_from_csv(opi_ctx *ctx, const char *bytes, size_t size, const opi_table_options *options,
                            opi_table **out, opi_error *err)
{
    opi__csv csv;
    int32_t status = opi__csv_open(&csv, ctx, bytes, size, ',', err);
    if (status < 0)
        return status;
    opi__builder b;
    status = opi__builder_begin(&b, ctx, "csv", bytes, size, options, err);
    if (status == OPI_OK)
        status = read_records(&b, &csv, err);
    opi__csv_close(&csv);
    return opi__builder_end(&b, status, out, err);
}

/* ---- reading ---- */

void opi_table_free(opi_table *table)
{
    if (!table)
        return;
    opi_ctx *ctx = table->ctx;
    opi__free(ctx, table->rows);
    opi__free(ctx, table->problems);
    opi__free(ctx, (void *)table->unknown_columns);
    opi__arena_free(&table->arena);
    opi__free(ctx, table);
}

size_t opi_table_rows(const opi_table *table)
{
    return table ? table->n : 0;
}

int32_t opi_table_config(const opi_table *table, size_t row, opi_config *out, int32_t *status, opi_error *err)
{
    if (!table)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_table_config: table is NULL");
    if (row >= table->n)
        return opi__fail(err, OPI_E_RANGE, (int64_t)row, "row %zu: the table has %zu rows, 0 to %zu", row, table->n,
                         table->n - 1);
    int32_t given = opi__give(out, &table->rows[row].config, sizeof(opi_config), "opi_config", err);
    if (given == OPI_OK && status)
        *status = table->rows[row].status;
    return given;
}

double opi_table_value(const opi_table *table, size_t row, size_t target)
{
    return table && row < table->n && target < OPI__T_COUNT ? table->rows[row].value[target] : NAN;
}

uint64_t opi_table_line(const opi_table *table, size_t row)
{
    return table && row < table->n ? table->rows[row].line : 0;
}

const char *opi_table_reason(const opi_table *table, size_t row)
{
    return table && row < table->n ? table->rows[row].reason : "";
}
