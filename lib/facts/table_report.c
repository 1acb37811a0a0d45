/* SPDX-License-Identifier: Apache-2.0 */
/* What a table holds and what is wrong with it, as JSON: nothing of it changes the rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "facts/table_build.h"
#include "facts/table_cell.h"

#define LISTED 100           /* groups and lines listed of each kind; all are counted */
#define CONTRADICTION 3.0    /* repeats further apart than this factor contradict each other */

typedef struct entry {
    uint64_t key;
    size_t row;
} entry;

static int compare_entries(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int compare_groups(const void *a, const void *b)
{
    const entry *x = *(const entry *const *)a, *y = *(const entry *const *)b;
    return x->row < y->row ? -1 : x->row > y->row;
}

static void add_lines(opi__json *parent, const char *key, const opi_table *t, const entry *group, size_t n)
{
    opi__json *lines = opi__json_add_array(parent, key);
    for (size_t i = 0; i < n && i < LISTED; i++)
        opi__json_add_int(lines, NULL, (int64_t)t->rows[group[i].row].line);
}

/* Rows sorted by a hash; rows that never got columns are left out. Returns how many. */
static size_t sort_by(const opi_table *t, entry *entries, size_t offset)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (t->rows[i].status == OPI_E_FORMAT)
            continue;
        memcpy(&entries[n].key, (const char *)&t->rows[i] + offset, sizeof entries[n].key);
        entries[n++].row = i;
    }
    qsort(entries, n, sizeof *entries, compare_entries);
    return n;
}

static size_t group_length(const entry *entries, size_t n, size_t i)
{
    size_t k = i + 1;
    while (k < n && entries[k].key == entries[i].key)
        k++;
    return k - i;
}

/* Copied lines: equal in every field. */
static void report_copies(const opi_table *t, entry *entries, opi__json *parent)
{
    size_t n = sort_by(t, entries, offsetof(opi__row, content)), rows = 0, groups = 0;
    opi__json *object = opi__json_add_object(parent, "duplicates"), *list = opi__json_add_array(object, "listed");
    for (size_t i = 0, k; i < n; i += k) {
        k = group_length(entries, n, i);
        if (k < 2)
            continue;
        groups++;
        rows += k - 1;
        if (groups <= LISTED)
            add_lines(opi__json_add_object(list, NULL), "lines", t, entries + i, k);
    }
    opi__json_add_int(object, "groups", (int64_t)groups);
    opi__json_add_int(object, "surplus_rows", (int64_t)rows);
}

/* Smallest and largest measured value of a group; 0 when fewer than two were measured. */
static double spread(const opi_table *t, const entry *group, size_t n, size_t target, double *low, double *high)
{
    size_t measured = 0;
    *low = INFINITY;
    *high = 0;
    for (size_t i = 0; i < n; i++) {
        double v = t->rows[group[i].row].value[target];
        if (isnan(v))
            continue;
        measured++;
        *low = v < *low ? v : *low;
        *high = v > *high ? v : *high;
    }
    return measured < 2 ? 0 : *high / *low;
}

/* The target whose repeats lie furthest apart. */
static double worst_spread(const opi_table *t, const entry *group, size_t n, size_t *target, double *low, double *high)
{
    double worst = 0, lo, hi;
    for (size_t k = 0; k < OPI__T_COUNT; k++) {
        double ratio = spread(t, group, n, k, &lo, &hi);
        if (ratio > worst) {
            worst = ratio;
            *target = k;
            *low = lo;
            *high = hi;
        }
    }
    return worst;
}

static void add_contradiction(const opi_table *t, const entry *group, size_t n, opi__json *list)
{
    size_t target = 0;
    double low = 0, high = 0, ratio = worst_spread(t, group, n, &target, &low, &high);
    opi__json *object = opi__json_add_object(list, NULL);
    add_lines(object, "lines", t, group, n);
    opi__json_add_string(object, "target", opi__targets[target].name);
    opi__json_add_number(object, "lowest", low);
    opi__json_add_number(object, "highest", high);
    opi__json_add_number(object, "ratio", ratio);
}

/* Repeats: equal configuration columns. They contradict each other when some target is a factor of 3 apart. */
static int32_t report_repeats(const opi_table *t, entry *entries, opi__json *parent, opi_error *err)
{
    size_t n = sort_by(t, entries, offsetof(opi__row, repeat)), groups = 0, rows = 0, bad = 0, bad_rows = 0;
    const entry **first = opi__alloc(t->ctx, n / 2 + 1, sizeof *first);
    if (!first)
        return opi__fail_memory(err, (n / 2 + 1) * sizeof *first);
    for (size_t i = 0, k; i < n; i += k) {
        size_t target = 0;
        double low = 0, high = 0;
        k = group_length(entries, n, i);
        if (k < 2)
            continue;
        groups++;
        rows += k;
        if (worst_spread(t, entries + i, k, &target, &low, &high) > CONTRADICTION) {
            first[bad++] = entries + i;
            bad_rows += k;
        }
    }
    opi__json *object = opi__json_add_object(parent, "repeats");
    opi__json_add_int(object, "groups", (int64_t)groups);
    opi__json_add_int(object, "rows", (int64_t)rows);
    object = opi__json_add_object(parent, "contradictions");
    opi__json_add_number(object, "factor", CONTRADICTION);
    opi__json_add_int(object, "groups", (int64_t)bad);
    opi__json_add_int(object, "rows", (int64_t)bad_rows);
    opi__json *list = opi__json_add_array(object, "listed");
    qsort((void *)first, bad, sizeof *first, compare_groups); /* in the file's order */
    for (size_t i = 0; i < bad && i < LISTED; i++)
        add_contradiction(t, first[i], group_length(entries, n, (size_t)(first[i] - entries)), list);
    opi__free(t->ctx, (void *)first);
    return OPI_OK;
}

static void report_problems(const opi_table *t, opi__json *parent)
{
    opi__json *list = opi__json_add_array(parent, "problems");
    for (size_t i = 0; i < t->n_problems; i++) {
        const opi__problem *p = &t->problems[i];
        opi__json *object = opi__json_add_object(list, NULL);
        opi__json_add_int(object, "line", (int64_t)p->line);
        opi__json_add_string(object, "kind", p->kind);
        opi__json_add_string(object, "column", p->column);
        opi__json_add_string(object, "value", p->value);
        opi__json_add_string(object, "reason", p->reason);
    }
}

static void report_columns(const opi_table *t, opi__json *parent)
{
    opi__json *unknown = opi__json_add_array(parent, "unknown_columns");
    for (size_t i = 0; i < t->n_unknown_columns; i++) {
        opi__json *object = opi__json_add_object(unknown, NULL);
        size_t best = OPI__COLUMNS, distance = 3;
        for (size_t c = 0; c < OPI__COLUMNS; c++) {
            size_t d = opi__edit_distance(t->unknown_columns[i], opi__column_name(c), 2);
            if (d < distance) {
                distance = d;
                best = c;
            }
        }
        opi__json_add_string(object, "name", t->unknown_columns[i]);
        opi__json_add_string(object, "nearest", best < OPI__COLUMNS ? opi__column_name(best) : NULL);
    }
    opi__json *missing = opi__json_add_array(parent, "missing_columns");
    for (size_t c = 0; c < OPI__COLUMNS; c++)
        if (opi__column_at(c).usual && !(t->columns[c / 64] >> c % 64 & 1))
            opi__json_add_string(missing, NULL, opi__column_name(c));
}

static void report_counts(const opi_table *t, opi__json *parent)
{
    size_t usable = 0, failed = 0, labels[OPI__T_COUNT] = {0};
    for (size_t i = 0; i < t->n; i++) {
        usable += t->rows[i].status == OPI_OK;
        failed += t->rows[i].launch_ok == 0;
        for (size_t k = 0; t->rows[i].status == OPI_OK && k < OPI__T_COUNT; k++)
            labels[k] += !isnan(t->rows[i].value[k]);
    }
    opi__json_add_int(parent, "rows", (int64_t)t->n);
    opi__json_add_int(parent, "usable_rows", (int64_t)usable);
    opi__json_add_int(parent, "failed_launches", (int64_t)failed);
    opi__json_add_int(parent, "blank_lines", (int64_t)t->blank_lines);
    opi__json_add_int(parent, "rows_with_problems", (int64_t)t->rows_with_problems);
    opi__json_add_int(parent, "problems_total", (int64_t)t->total_problems);
    opi__json *object = opi__json_add_object(parent, "labels");
    for (size_t k = 0; k < OPI__T_COUNT; k++)
        opi__json_add_int(object, opi__targets[k].name, (int64_t)labels[k]);
}

int32_t opi_table_report(const opi_table *table, opi_text **out, opi_error *err)
{
    if (!table || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_table_report: %s is NULL", table ? "out" : "table");
    entry *entries = opi__alloc(table->ctx, table->n, sizeof *entries);
    if (!entries)
        return opi__fail_memory(err, table->n * sizeof *entries);
    opi__json *root = opi__json_new_object();
    opi__json_add_string(root, "schema", "omnipilot.table/1");
    opi__json_add_string(root, "format", table->format);
    opi__json_add_string(root, "sha256", table->sha256);
    report_counts(table, root);
    report_columns(table, root);
    report_copies(table, entries, root);
    int32_t status = report_repeats(table, entries, root, err);
    report_problems(table, root);
    opi__free(table->ctx, entries);
    if (status < 0) {
        opi__json_free(root);
        return status;
    }
    return opi__json_text(table->ctx, root, out, err);
}
