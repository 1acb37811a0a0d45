/* SPDX-License-Identifier: Apache-2.0 */
/* Which format a file is, and the way from its bytes to a table. */
#include "model/import/import.h"

#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "base/take.h"
#include "facts/csv.h"
#include "facts/table_cell.h"

/* ---- the registry: one line a format; the CSV table itself comes first ---- */
static const opi__import_format csv_table = {"csv", NULL, NULL};
static const opi__import_format *const formats[] = {
    &csv_table,
    &opi__import_vllm_bench,
    &opi__import_guidellm,
    &opi__import_aiperf,
    &opi__import_inferencex,
};
#define N_FORMATS (sizeof formats / sizeof formats[0])

size_t opi_import_count(void)
{
    return N_FORMATS;
}

const char *opi_import_name_at(size_t index)
{
    return index < N_FORMATS ? formats[index]->name : NULL;
}

static int32_t find_format(const char *name, const opi__import_format **out, opi_error *err)
{
    char known[128], shown[48];
    size_t at = 0;
    opi__cell_show(shown, sizeof shown, name, strlen(name));
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (strcmp(formats[i]->name, name) == 0) {
            *out = formats[i];
            return OPI_OK;
        }
        at += opi__format(known + at, sizeof known - at, "%s%s", i ? ", " : "", formats[i]->name);
    }
    return opi__fail(err, OPI_E_UNKNOWN, -1, "format \"%s\" is not known: the formats are %s", shown, known);
}

/* ---- JSON documents ---- */

static int32_t refuse_document(const opi__json *object, const opi__import_format *wanted, size_t record, opi_error *err)
{
    char keys[224] = "", shown[48];
    size_t n = opi__json_is_object(object) ? opi__json_size(object) : 0, at = 0;
    for (size_t i = 0; i < n && i < 4; i++) {
        const char *key = opi__json_key(opi__json_at(object, i));
        opi__cell_show(shown, sizeof shown, key, strlen(key));
        at += opi__format(keys + at, sizeof keys - at, "%s%s", i ? ", " : "", shown);
    }
    if (!opi__json_is_object(object))
        return opi__fail(err, OPI_E_FORMAT, (int64_t)record, "record %zu: not a JSON object", record + 1);
    return opi__fail(err, OPI_E_FORMAT, (int64_t)record, "record %zu: not a document of %s%s (its keys: %s%s)", record + 1,
                     wanted ? "the format " : "a known format", wanted ? wanted->name : "", n ? keys : "none",
                     n > 4 ? ", ..." : "");
}

/* The first document settles the format: a file does not mix them. */
static int32_t read_object(opi__builder *b, const opi__json *object, const opi__import_format **format, size_t record,
                           opi_error *err)
{
    for (size_t i = 0; !*format && i < N_FORMATS; i++)
        if (formats[i]->match && opi__json_is_object(object) && formats[i]->match(object))
            *format = formats[i];
    if (!*format || !opi__json_is_object(object) || !(*format)->match(object))
        return refuse_document(object, *format, record, err);
    b->table->format = (*format)->name;
    return (*format)->read(b, object, err);
}

static int32_t read_root(opi__builder *b, const opi__json *root, const opi__import_format **format, size_t *record,
                         opi_error *err)
{
    if (!opi__json_is_array(root))
        return read_object(b, root, format, (*record)++, err);
    size_t n = opi__json_size(root);
    if (n > OPI__IMPORT_MAX_RECORDS)
        return opi__fail(err, OPI_E_RANGE, -1, "%zu records in one array; the limit is %d: split the file", n,
                         OPI__IMPORT_MAX_RECORDS);
    int32_t status = OPI_OK;
    for (size_t i = 0; status == OPI_OK && i < n; i++)
        status = read_object(b, opi__json_at(root, i), format, (*record)++, err);
    return status;
}

/* 1 when the bytes are one JSON object a line, as appending clients write them. */
static int is_json_lines(const char *bytes, size_t size)
{
    const char *end = memchr(bytes, '\n', size);
    opi__json *first = NULL;
    if (!end || opi__json_parse(bytes, (size_t)(end - bytes), "the first line", &first, NULL) < 0)
        return 0;
    int object = opi__json_is_object(first);
    opi__json_free(first);
    return object;
}

static int is_blank(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r')
            return 0;
    return 1;
}

static int32_t read_json_lines(opi__builder *b, const char *bytes, size_t size, const opi__import_format *format,
                               opi_error *err)
{
    size_t record = 0, pos = 0;
    int32_t status = OPI_OK;
    for (uint64_t line = 1; status == OPI_OK && pos < size; line++) {
        const char *end = memchr(bytes + pos, '\n', size - pos);
        size_t n = end ? (size_t)(end - bytes) - pos : size - pos;
        char what[40];
        opi__json *root = NULL;
        opi__format(what, sizeof what, "the document on line %llu", (unsigned long long)line);
        if (!is_blank(bytes + pos, n))
            status = opi__json_parse(bytes + pos, n, what, &root, err);
        if (status == OPI_OK && root)
            status = read_root(b, root, &format, &record, err);
        opi__json_free(root);
        pos += n + 1;
    }
    return status;
}

static int32_t read_json(opi__builder *b, const char *bytes, size_t size, const opi__import_format *format,
                         opi_error *err)
{
    if (is_json_lines(bytes, size))
        return read_json_lines(b, bytes, size, format, err);
    opi__json *root = NULL;
    size_t record = 0;
    int32_t status = opi__json_parse(bytes, size, "the document", &root, err);
    if (status == OPI_OK)
        status = read_root(b, root, &format, &record, err);
    opi__json_free(root);
    return status;
}

static int32_t from_json(opi_ctx *ctx, const char *bytes, size_t size, const opi_table_options *options,
                         const opi__import_format *format, opi_table **out, opi_error *err)
{
    opi__builder b;
    int32_t status = opi__builder_begin(&b, ctx, "json", bytes, size, options, err);
    b.place = "record";
    if (status == OPI_OK)
        status = read_json(&b, bytes, size, format, err);
    return opi__builder_end(&b, status, out, err);
}

/* ---- the public entries ---- */

static size_t skip_blanks(const char *bytes, size_t size)
{
    size_t at = size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < size && (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\n' || bytes[at] == '\r'))
        at++;
    return at;
}

int32_t opi_table_parse(opi_ctx *ctx, const char *bytes, size_t size, const opi_table_options *options, opi_table **out,
                        opi_error *err)
{
    opi_table_options o = {.struct_size = sizeof o};
    const opi__import_format *format = NULL;
    if (!ctx || !out || (!bytes && size))
        return opi__fail(err, OPI_E_INVALID, -1, "opi_table_parse: %s is NULL", !ctx ? "ctx" : !out ? "out" : "bytes");
    int32_t status = options ? opi__take(&o, sizeof o, options, "opi_table_options", err) : OPI_OK;
    if (status == OPI_OK && o.format)
        status = find_format(o.format, &format, err);
    if (status < 0)
        return status;
    if (size > OPI__CSV_MAX_BYTES)
        return opi__fail(err, OPI_E_RANGE, -1, "the table has %zu bytes; the limit is %zu", size, OPI__CSV_MAX_BYTES);
    size_t start = skip_blanks(bytes, size);
    int looks_json = start < size && (bytes[start] == '{' || bytes[start] == '[');
    if (format ? !format->match : !looks_json)
        return opi__table_from_csv(ctx, bytes, size, &o, out, err);
    return from_json(ctx, bytes + start, size - start, &o, format, out, err);
}

int32_t opi_table_read(opi_ctx *ctx, const char *path, const opi_table_options *options, opi_table **out, opi_error *err)
{
    if (!ctx || !path || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_table_read: %s is NULL", !ctx ? "ctx" : !path ? "path" : "out");
    char *bytes = NULL;
    size_t size = 0;
    opi_error why = {0};
    int32_t status = opi__read_file(ctx, path, OPI__CSV_MAX_BYTES, &bytes, &size, err);
    if (status < 0)
        return status;
    status = opi_table_parse(ctx, bytes, size, options, out, &why);
    opi__free(ctx, bytes);
    return status < 0 ? opi__fail(err, status, why.index, "%s: %s", path, why.message) : OPI_OK;
}
