/* SPDX-License-Identifier: Apache-2.0 */
/* From a row's texts to a configuration, measured values, and the hashes that group rows. */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "facts/config.h"
#include "facts/spelling.h"
#include "facts/table_build.h"
#include "facts/table_cell.h"

/* Columns whose value is a measurement: a bad one is dropped and said, the row stays usable. */
static int is_measured(size_t column)
{
    return column >= OPI__COL_TARGETS || column == OPI__COL_TTFT_MEAN || column == OPI__COL_ITL_MEAN;
}

/* ---- problems ---- */

static int32_t add_problem(opi__builder *b, opi__row *row, const char *kind, const char *column, const char *value,
                           const char *reason)
{
    opi_table *t = b->table;
    if (t->last_problem_line != row->line)
        t->rows_with_problems++;
    t->last_problem_line = row->line;
    t->total_problems++;
    if (t->n_problems == OPI__MAX_PROBLEMS)
        return OPI_OK;
    if (t->n_problems == t->cap_problems) {
        size_t cap = t->cap_problems ? t->cap_problems * 2 : 32;
        opi__problem *grown = opi__resize(b->ctx, t->problems, cap, sizeof *grown);
        if (!grown)
            return OPI_E_NOMEM;
        t->problems = grown;
        t->cap_problems = cap;
    }
    opi__problem p = {.kind = kind, .column = column, .line = row->line};
    p.reason = opi__builder_text(b, reason, strlen(reason));
    p.value = value ? opi__builder_text(b, value, strlen(value)) : NULL;
    if (!p.reason || (value && !p.value))
        return OPI_E_NOMEM;
    t->problems[t->n_problems++] = p;
    return OPI_OK;
}

/* Says what is wrong with a row; `code` < 0 also makes it unusable (the first reason stands). */
static int32_t complain(opi__builder *b, opi__row *row, int32_t code, const char *kind, size_t column,
                        const char *value, const char *why)
{
    char line[640];
    const char *name = column < OPI__COLUMNS ? opi__column_name(column) : NULL;
    opi__format(line, sizeof line, "%s %llu%s%s: %s", b->place, (unsigned long long)row->line, name ? ", column " : "",
                name ? name : "", why);
    if (code < 0 && row->status == OPI_OK) {
        row->status = code;
        row->reason = opi__builder_text(b, line, strlen(line));
        if (!row->reason)
            return OPI_E_NOMEM;
    }
    return add_problem(b, row, kind, name, value, line);
}

/* ---- numbers ---- */

static int32_t refuse(opi__builder *b, opi__row *row, size_t column, const char *text, size_t n, int32_t verdict,
                      opi_error *err)
{
    char shown[48], why[256];
    opi__column_def def = opi__column_at(column);
    opi__cell_show(shown, sizeof shown, text, n);
    opi__format(why, sizeof why, "\"%s\" %s (unit: %s)", shown, opi__cell_advice(verdict), def.unit[0] ? def.unit : "none");
    if (verdict == OPI__CELL_COMMA) /* a file's convention, not a slip of one cell: 1.234 elsewhere would mean 1234 */
        return opi__fail(err, OPI_E_FORMAT, (int64_t)b->table->n, "%s %llu, column %s: %s", b->place,
                         (unsigned long long)row->line, def.name, why);
    if (complain(b, row, is_measured(column) ? OPI_OK : OPI_E_INVALID, opi__cell_kind(verdict), column, shown, why) < 0)
        return opi__fail_memory(err, sizeof(opi__problem));
    return OPI_OK;
}

static int in_limits(const opi__column_def *def, double v, char *limits, size_t cap)
{
    if (def->kind == OPI__K_FLAG) {
        opi__format(limits, cap, "0 or 1");
        return v == 0 || v == 1;
    }
    if (def->kind == OPI__K_COUNT) {
        opi__format(limits, cap, "a whole number from %g to %g", def->lo, def->hi);
        return v >= def->lo && v <= def->hi && v == floor(v);
    }
    opi__format(limits, cap, "more than %g and at most %g", def->lo, def->hi);
    return v > def->lo && v <= def->hi;
}

/* *out: the number, NaN when blank or refused. */
static int32_t read_number(opi__builder *b, opi__row *row, const opi__cells *cells, size_t column, double *out,
                           opi_error *err)
{
    *out = NAN;
    const char *text = cells->text[column];
    size_t n = text ? cells->size[column] : 0;
    if (n == 0)
        return OPI_OK;
    double v;
    int32_t verdict = opi__cell_number(text, n, &v);
    if (verdict != OPI__CELL_NUMBER)
        return refuse(b, row, column, text, n, verdict, err);
    opi__column_def def = opi__column_at(column);
    char limits[96], shown[48], why[256];
    if (in_limits(&def, v, limits, sizeof limits)) {
        *out = v;
        return OPI_OK;
    }
    opi__cell_show(shown, sizeof shown, text, n);
    opi__format(why, sizeof why, "\"%s\" is outside the limits: %s%s%s%s", shown, limits, def.unit[0] ? " " : "", def.unit,
                is_measured(column) ? "; taken as not measured" : "");
    if (complain(b, row, is_measured(column) ? OPI_OK : OPI_E_RANGE, "range", column, shown, why) < 0)
        return opi__fail_memory(err, sizeof(opi__problem));
    return OPI_OK;
}

/* ---- hashes ---- */

static uint64_t hash_columns(uint64_t h, const opi__cells *raw, const uint8_t *columns, size_t n, int blank_lengths)
{
    for (size_t i = 0; i < n; i++) {
        size_t c = columns[i];
        if (i > 0)
            h = opi__fnv1a64(h, "|", 1);
        if (raw->text[c] && !(blank_lengths && (c == OPI__COL_INPUT_LEN || c == OPI__COL_OUTPUT_LEN)))
            h = opi__fnv1a64(h, raw->text[c], raw->size[c]);
    }
    return h;
}

/* The fold rule and its relatives, from the texts as the file has them. */
static void hash_row(opi__row *row, const opi__cells *raw)
{
    static const uint8_t cell[] = {OPI__COL_SOURCE,     OPI__COL_MODEL,       OPI__COL_WORKLOAD,  OPI__COL_INPUT_LEN,
                                   OPI__COL_OUTPUT_LEN, OPI__COL_CONCURRENCY, OPI__COL_LOAD_KIND, OPI__COL_REQUEST_RATE};
    static const uint8_t hardware[] = {OPI__COL_GPU, OPI__COL_N_GPUS, OPI__COL_TP,       OPI__COL_PP,
                                       OPI__COL_EP,  OPI__COL_DP,     OPI__COL_PRECISION};
    static const uint8_t engine[] = {OPI__COL_SOURCE, OPI__COL_ENGINE, OPI__COL_ENGINE_VERSION};
    static const uint8_t rest[] = {OPI__COL_ENGINE,  OPI__COL_ENGINE_VERSION, OPI__COL_WEIGHT_BITS,
                                   OPI__COL_KV_BITS, OPI__COL_MAX_MODEL_LEN,  OPI__COL_MEM_UTIL};
    const uint64_t start = OPI__FNV_START;
    const char *workload = raw->text[OPI__COL_WORKLOAD];
    int is_mix = !workload || raw->size[OPI__COL_WORKLOAD] < 6 || memcmp(workload, "fixed-", 6) != 0;
    row->cell = hash_columns(start, raw, cell, sizeof cell, 0);
    row->cell_mix = hash_columns(start, raw, cell, sizeof cell, is_mix);
    row->hardware = hash_columns(start, raw, hardware, sizeof hardware, 0);
    row->decision = opi__fnv1a64(hash_columns(start, raw, engine, sizeof engine, 0), "|", 1);
    row->decision = hash_columns(row->decision, raw, cell, sizeof cell, 0);
    row->repeat = opi__fnv1a64(hash_columns(start, raw, cell, sizeof cell, 0), "|", 1);
    row->repeat = opi__fnv1a64(hash_columns(row->repeat, raw, hardware, sizeof hardware, 0), "|", 1);
    row->repeat = hash_columns(row->repeat, raw, rest, sizeof rest, 0);
}

/* ---- names ---- */

/* Category in lower case and in the canonical spelling; NULL when blank. */
static int32_t read_category(opi__builder *b, const opi__cells *cells, size_t column,
                             const char *(*spell)(const char *), const char **out)
{
    size_t n = cells->text[column] ? cells->size[column] : 0;
    if (n == 0)
        return OPI_OK;
    char lower[96];
    size_t keep = n < sizeof lower ? n : sizeof lower - 1;
    for (size_t i = 0; i < keep; i++)
        lower[i] = opi__lower(cells->text[column][i]);
    lower[keep] = 0;
    const char *name = spell(lower);
    *out = opi__builder_text(b, name, strlen(name));
    return *out ? OPI_OK : OPI_E_NOMEM;
}

static int32_t read_text(opi__builder *b, const opi__cells *cells, size_t column, const char **out)
{
    *out = opi__builder_text(b, cells->text[column] ? cells->text[column] : "",
                             cells->text[column] ? cells->size[column] : 0);
    return *out ? OPI_OK : OPI_E_NOMEM;
}

static int32_t read_texts(opi__builder *b, opi__row *row, const opi__cells *cells)
{
    opi_config *c = &row->config;
    const char *version = NULL;
    int32_t status = read_text(b, cells, OPI__COL_SOURCE, &row->source);
    if (status == OPI_OK)
        status = read_text(b, cells, OPI__COL_WORKLOAD, &row->workload);
    if (status == OPI_OK)
        status = read_text(b, cells, OPI__COL_LICENSE, &row->license);
    if (status == OPI_OK)
        status = read_text(b, cells, OPI__COL_FAIL_REASON, &row->fail_reason);
    if (status == OPI_OK)
        status = read_text(b, cells, OPI__COL_SOURCE_REF, &row->source_ref);
    if (status == OPI_OK)
        status = read_text(b, cells, OPI__COL_MODEL, &row->model);
    if (status == OPI_OK)
        status = read_text(b, cells, OPI__COL_GPU, &row->gpu_name);
    if (status == OPI_OK)
        status = read_text(b, cells, OPI__COL_ENGINE_VERSION, &version);
    if (status == OPI_OK)
        status = read_category(b, cells, OPI__COL_ENGINE, opi__spell_engine, &c->engine);
    if (status == OPI_OK)
        status = read_category(b, cells, OPI__COL_PRECISION, opi__spell_precision, &c->precision);
    if (status == OPI_OK)
        status = read_category(b, cells, OPI__COL_LOAD_KIND, opi__spell_load, &c->load_kind);
    if (status == OPI_OK && version[0])
        c->engine_version = version;
    if (status == OPI_OK && !row->source[0]) {
        const char *source = b->options->source ? b->options->source : "user";
        row->source = opi__builder_text(b, source, strlen(source));
        status = row->source ? OPI_OK : OPI_E_NOMEM;
    }
    return status;
}

/* ---- the row ---- */

static double stated(double v)
{
    return isnan(v) ? 0 : v;
}

static void fill_config(const opi__builder *b, opi_config *c, const double *number)
{
    const opi_config *d = &b->defaults;
    c->n_gpus = (int32_t)stated(number[OPI__COL_N_GPUS]);
    c->tp = (int32_t)stated(number[OPI__COL_TP]);
    c->pp = (int32_t)stated(number[OPI__COL_PP]);
    c->ep = (int32_t)stated(number[OPI__COL_EP]);
    c->dp = (int32_t)stated(number[OPI__COL_DP]);
    c->weight_bits = stated(number[OPI__COL_WEIGHT_BITS]);
    c->kv_bits = stated(number[OPI__COL_KV_BITS]);
    c->input_len = stated(number[OPI__COL_INPUT_LEN]);
    c->output_len = stated(number[OPI__COL_OUTPUT_LEN]);
    c->concurrency = stated(number[OPI__COL_CONCURRENCY]);
    c->request_rate = stated(number[OPI__COL_REQUEST_RATE]);
    c->max_context = stated(number[OPI__COL_MAX_MODEL_LEN]);
    c->mem_util = stated(number[OPI__COL_MEM_UTIL]);
#define DEFAULT(field) if (!c->field) c->field = d->field
    DEFAULT(n_gpus);
    DEFAULT(tp);
    DEFAULT(pp);
    DEFAULT(ep);
    DEFAULT(dp);
    DEFAULT(engine);
    DEFAULT(engine_version);
    DEFAULT(precision);
    DEFAULT(load_kind);
    DEFAULT(weight_bits);
    DEFAULT(kv_bits);
    DEFAULT(input_len);
    DEFAULT(output_len);
    DEFAULT(concurrency);
    DEFAULT(request_rate);
    DEFAULT(max_context);
    DEFAULT(mem_util);
#undef DEFAULT
}

static int32_t read_facts(opi__builder *b, opi__row *row, const opi__cells *cells, const double *number)
{
    const char *reason = NULL;
    char shown[48];
    size_t n = cells->text[OPI__COL_GPU] ? cells->size[OPI__COL_GPU] : 0;
    int32_t status = OPI_OK;
    row->config.gpu = b->defaults.gpu;
    if (n > 0) {
        row->config.gpu = NULL;
        status = opi__builder_gpu(b, cells->text[OPI__COL_GPU], n, &row->config.gpu, &reason);
    } else if (!row->config.gpu) {
        status = OPI_E_UNKNOWN;
        reason = cells->text[OPI__COL_GPU] ? "no GPU: the cell is blank" : "no GPU: the column is missing";
    }
    if (status == OPI_E_NOMEM)
        return status;
    if (status < 0) {
        opi__cell_show(shown, sizeof shown, n ? cells->text[OPI__COL_GPU] : "", n);
        if (complain(b, row, status, "unknown-gpu", OPI__COL_GPU, shown, reason) < 0)
            return OPI_E_NOMEM;
    }
    status = opi__builder_llm(b, cells, number, &row->config.llm, &reason);
    if (status == OPI_E_NOMEM)
        return status;
    if (status < 0) {
        opi__cell_show(shown, sizeof shown, row->model, strlen(row->model));
        if (complain(b, row, status, "unknown-llm", OPI__COL_MODEL, shown, reason) < 0)
            return OPI_E_NOMEM;
    }
    return OPI_OK;
}

/* What a failed launch printed is not a measurement. */
static int32_t drop_failed(opi__builder *b, opi__row *row, const opi__cells *cells)
{
    size_t measured = 0, first = OPI__COLUMNS;
    for (size_t t = 0; t < OPI__T_COUNT; t++)
        if (!isnan(row->value[t]) && measured++ == 0)
            first = OPI__COL_TARGETS + t;
    if (row->launch_ok != 0 || measured == 0)
        return OPI_OK;
    char why[256], shown[48];
    opi__cell_show(shown, sizeof shown, cells->text[first], cells->size[first]);
    opi__format(why, sizeof why, "the launch failed (launch_ok = 0) but %zu measured value%s stated, the first \"%s\": "
                                 "not used",
                measured, measured > 1 ? "s are" : " is", shown);
    for (size_t t = 0; t < OPI__T_COUNT; t++)
        row->value[t] = NAN;
    return complain(b, row, OPI_OK, "failed-row-numbers", first, shown, why);
}

/* A GPU count that is not tp * pp * dp is worth a word; a configuration nothing can be computed for is not usable. */
static int32_t check_config(opi__builder *b, opi__row *row)
{
    const opi_config *c = &row->config;
    char why[256], shown[48];
    int64_t product = (int64_t)(c->tp ? c->tp : 1) * (c->pp ? c->pp : 1) * (c->dp ? c->dp : 1);
    if (c->n_gpus > 0 && c->tp > 0 && product != c->n_gpus) {
        opi__format(why, sizeof why, "n_gpus is %d but tp * pp * dp is %lld", c->n_gpus, (long long)product);
        opi__format(shown, sizeof shown, "%d", c->n_gpus);
        if (complain(b, row, OPI_OK, "gpu-count", OPI__COL_N_GPUS, shown, why) < 0)
            return OPI_E_NOMEM;
    }
    opi_config checked;
    opi_error invalid = {0};
    int32_t status = row->status == OPI_OK ? opi__config_take(c, &checked, &invalid) : OPI_OK;
    if (status < 0 && complain(b, row, status, "configuration", OPI__COLUMNS, NULL, invalid.message) < 0)
        return OPI_E_NOMEM;
    return OPI_OK;
}

/* A row without any label is a question, not a measurement. */
static int32_t check_label(opi__builder *b, opi__row *row)
{
    if (row->status != OPI_OK || row->launch_ok >= 0 || b->options->keep_unlabeled)
        return OPI_OK;
    for (size_t t = 0; t < OPI__T_COUNT; t++)
        if (!isnan(row->value[t]))
            return OPI_OK;
    char why[96];
    opi__format(why, sizeof why, "%s %llu: nothing was measured in this row", b->place,
                (unsigned long long)row->line);
    row->reason = opi__builder_text(b, why, strlen(why));
    row->status = OPI_E_NODATA;
    return row->reason ? OPI_OK : OPI_E_NOMEM;
}

static int32_t next_row(opi__builder *b, uint64_t content, uint64_t line, opi__row **out, opi_error *err)
{
    opi_table *t = b->table;
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 64;
        opi__row *grown = opi__resize(b->ctx, t->rows, cap, sizeof *grown);
        if (!grown)
            return opi__fail_memory(err, cap * sizeof *grown);
        t->rows = grown;
        t->cap = cap;
    }
    opi__row *row = &t->rows[t->n];
    *row = (opi__row){.config = {.struct_size = sizeof(opi_config)}, .content = content, .launch_ok = -1, .reason = "",
                      .source = "", .workload = "", .license = "", .fail_reason = "", .source_ref = "", .model = "",
                      .gpu_name = "", .line = line};
    for (size_t i = 0; i < OPI__T_COUNT; i++)
        row->value[i] = NAN;
    *out = row;
    return OPI_OK;
}

int32_t opi__builder_add(opi__builder *b, const opi__cells *raw, uint64_t content, uint64_t line, opi_error *err)
{
    opi__row *row;
    int32_t status = next_row(b, content, line, &row, err);
    if (status < 0)
        return status;
    hash_row(row, raw);
    opi__cells cells = *raw;
    for (size_t i = 0; i < OPI__COLUMNS; i++)
        if (cells.text[i])
            opi__cell_trim(&cells.text[i], &cells.size[i]);
    double number[OPI__COLUMNS];
    for (size_t i = 0; i < OPI__COLUMNS; i++) {
        number[i] = NAN;
        if (i < OPI__COL_TARGETS && opi__columns[i].kind == OPI__K_TEXT)
            continue;
        status = read_number(b, row, &cells, i, &number[i], err);
        if (status < 0)
            return status;
    }
    for (size_t t = 0; t < OPI__T_COUNT; t++)
        row->value[t] = number[OPI__COL_TARGETS + t];
    if (!isnan(number[OPI__COL_LAUNCH_OK]))
        row->launch_ok = (int32_t)number[OPI__COL_LAUNCH_OK];
    if (read_texts(b, row, &cells) < 0)
        return opi__fail_memory(err, sizeof *row);
    fill_config(b, &row->config, number);
    if (read_facts(b, row, &cells, number) < 0 || drop_failed(b, row, &cells) < 0 || check_config(b, row) < 0 ||
        check_label(b, row) < 0)
        return opi__fail_memory(err, sizeof *row);
    b->table->n++;
    return OPI_OK;
}

int32_t opi__builder_add_broken(opi__builder *b, uint64_t content, uint64_t line, const char *kind, const char *reason,
                                opi_error *err)
{
    opi__row *row;
    int32_t status = next_row(b, content, line, &row, err);
    if (status < 0)
        return status;
    row->cell = row->cell_mix = row->hardware = row->decision = row->repeat = content;
    if (complain(b, row, OPI_E_FORMAT, kind, OPI__COLUMNS, NULL, reason) < 0)
        return opi__fail_memory(err, sizeof(opi__problem));
    b->table->n++;
    return OPI_OK;
}

int32_t opi__builder_say(opi__builder *b, const char *kind, const char *what, opi_error *err)
{
    if (b->table->n == 0)
        return OPI_OK;
    if (complain(b, &b->table->rows[b->table->n - 1], OPI_OK, kind, OPI__COLUMNS, NULL, what) < 0)
        return opi__fail_memory(err, sizeof(opi__problem));
    return OPI_OK;
}
