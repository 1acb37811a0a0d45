/* SPDX-License-Identifier: Apache-2.0 */
#include "model/import/record.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "facts/table_cell.h"

/* More failures than this share of the requests, and what the others saw is not the load that was asked for. */
#define FAILED_SHARE 0.1

void opi__record_start(opi__record *r, opi__builder *b)
{
    memset(&r->cells, 0, sizeof r->cells);
    r->b = b;
    r->n_notes = 0;
}

void opi__record_text(opi__record *r, size_t column, const char *text)
{
    if (!text || !text[0] || r->cells.text[column])
        return;
    r->cells.text[column] = text;
    r->cells.size[column] = strlen(text);
}

void opi__record_number(opi__record *r, size_t column, double value)
{
    if (isnan(value) || r->cells.text[column])
        return;
    r->cells.text[column] = r->number[column];
    r->cells.size[column] = opi__format_double(r->number[column], value);
}

int opi__record_json(opi__record *r, size_t column, const opi__json *value, double scale)
{
    double v;
    int flag;
    if (r->cells.text[column])
        return 0;
    if (opi__json_number(value, &v))
        opi__record_number(r, column, v * scale);
    else if (scale == 1 && opi__json_string(value))
        opi__record_text(r, column, opi__json_string(value));
    else if (opi__json_bool(value, &flag))
        opi__record_text(r, column, flag ? "1" : "0");
    return r->cells.text[column] != NULL;
}

void opi__record_own_columns(opi__record *r, const opi__json *object)
{
    for (size_t c = 0; c < OPI__COLUMNS; c++)
        if (c != OPI__COL_REQUEST_RATE) /* opi__record_load's: clients write "inf" there */
            opi__record_json(r, c, opi__json_get(object, opi__column_name(c)), 1);
}

void opi__record_note(opi__record *r, const char *kind, const char *fmt, ...)
{
    if (r->n_notes == OPI__RECORD_NOTES)
        return;
    va_list ap;
    va_start(ap, fmt);
    opi__vformat(r->notes[r->n_notes].text, sizeof r->notes[0].text, fmt, ap);
    va_end(ap);
    r->notes[r->n_notes++].kind = kind;
}

void opi__record_load(opi__record *r, double rate, double concurrency)
{
    int has_rate = rate > 0 && isfinite(rate), is_limited = concurrency > 0 && isfinite(concurrency);
    if (has_rate)
        opi__record_number(r, OPI__COL_REQUEST_RATE, rate);
    if (is_limited)
        opi__record_number(r, OPI__COL_CONCURRENCY, concurrency);
    opi__record_text(r, OPI__COL_LOAD_KIND, has_rate ? "rate" : is_limited ? "concurrency" : "offline");
}

int opi__record_too_many_failed(opi__record *r, double completed, double failed, char *why, size_t cap)
{
    double total = completed + failed;
    if (isnan(completed))
        return 0;
    if (completed <= 0) {
        opi__format(why, cap, "no request completed");
        return 1;
    }
    if (!(failed > 0))
        return 0;
    if (failed > FAILED_SHARE * total) {
        opi__format(why, cap, "%.6g of %.6g requests failed: what the others saw is not this load (limit: 10 %%)", failed,
                    total);
        return 1;
    }
    opi__record_note(r, "failed-requests", "%.6g of %.6g requests failed; the figures are those of the others", failed,
                     total);
    return 0;
}

/* The caller's defaults stand in for names a benchmark client made up; the report says so. */
static void replace_unknown_names(opi__record *r)
{
    opi_gpu gpu = {.struct_size = sizeof gpu};
    opi_llm llm = {.struct_size = sizeof llm};
    const opi_config *d = &r->b->defaults;
    char shown[48];
    const char *name = r->cells.text[OPI__COL_GPU];
    if (name && d->gpu && opi_gpu_find(name, &gpu, NULL) < 0) {
        opi__cell_show(shown, sizeof shown, name, strlen(name));
        opi__record_note(r, "default-gpu", "GPU \"%s\" is not known: taken as the stated %s", shown, d->gpu->name);
        r->cells.text[OPI__COL_GPU] = NULL;
    }
    name = r->cells.text[OPI__COL_MODEL];
    if (name && d->llm && opi_llm_find(name, &llm, NULL) < 0) {
        opi__cell_show(shown, sizeof shown, name, strlen(name));
        opi__record_note(r, "default-llm", "LLM \"%s\" is not known: taken as the stated %s", shown, d->llm->name);
        r->cells.text[OPI__COL_MODEL] = NULL;
    }
}

static uint64_t hash_cells(const opi__record *r)
{
    uint64_t h = OPI__FNV_START;
    for (size_t c = 0; c < OPI__COLUMNS; c++) {
        h = opi__fnv1a64(h, r->cells.text[c] ? r->cells.text[c] : "", r->cells.text[c] ? r->cells.size[c] : 0);
        h = opi__fnv1a64(h, "\x1f", 1);
    }
    return h;
}

static int32_t say_notes(opi__record *r, opi_error *err)
{
    for (size_t i = 0; i < r->n_notes; i++) {
        int32_t status = opi__builder_say(r->b, r->notes[i].kind, r->notes[i].text, err);
        if (status < 0)
            return status;
    }
    return OPI_OK;
}

int32_t opi__record_add(opi__record *r, opi_error *err)
{
    const char *source = r->b->options->source;
    opi__record_text(r, OPI__COL_SOURCE, source && source[0] ? source : "user");
    replace_unknown_names(r);
    int32_t status = opi__builder_add(r->b, &r->cells, hash_cells(r), r->b->table->n + 1, err);
    return status < 0 ? status : say_notes(r, err);
}

int32_t opi__record_refuse(opi__record *r, const char *kind, const char *why, opi_error *err)
{
    int32_t status = opi__builder_add_broken(r->b, hash_cells(r), r->b->table->n + 1, kind, why, err);
    return status < 0 ? status : say_notes(r, err);
}

const opi__json *opi__json_path(const opi__json *object, const char *path)
{
    char key[64];
    while (object && *path) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof key)
            return NULL;
        memcpy(key, path, n);
        key[n] = 0;
        object = opi__json_get(object, key);
        path += n + (path[n] == '.');
    }
    return object;
}

double opi__json_number_or(const opi__json *value, double otherwise)
{
    double v;
    if (opi__json_number(value, &v))
        return v;
    const char *text = opi__json_string(value);
    return text && opi__parse_double(text, strlen(text), &v) ? v : otherwise;
}
