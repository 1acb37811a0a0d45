/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/csv.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"

/* Marks a field's offset as one into `unquoted`: the text is settled once the record is complete, since it may move. */
#define IN_BUFFER ((size_t)1 << (sizeof(size_t) * 8 - 1))

static uint64_t line_of(const char *bytes, size_t offset)
{
    uint64_t line = 1;
    for (size_t i = 0; i < offset; i++)
        if (bytes[i] == '\n' || (bytes[i] == '\r' && (i + 1 >= offset || bytes[i + 1] != '\n')))
            line++;
    return line;
}

int32_t opi__csv_open(opi__csv *c, opi_ctx *ctx, const char *bytes, size_t size, char separator, opi_error *err)
{
    if (size > OPI__CSV_MAX_BYTES)
        return opi__fail(err, OPI_E_RANGE, -1, "the table has %zu bytes; the limit is %zu", size, OPI__CSV_MAX_BYTES);
    if (size > 0 && !bytes)
        return opi__fail(err, OPI_E_INVALID, -1, "the table's bytes are NULL");
    if (size >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
        return opi__fail(err, OPI_E_FORMAT, 0, "the table is UTF-16 text: save it as UTF-8");
    const char *nul = size ? memchr(bytes, 0, size) : NULL;
    if (nul)
        return opi__fail(err, OPI_E_FORMAT, nul - bytes, "line %llu: a NUL byte (byte %zu): this is not a text table",
                         (unsigned long long)line_of(bytes, (size_t)(nul - bytes)), (size_t)(nul - bytes));
    memset(c, 0, sizeof *c);
    c->bytes = bytes;
    c->size = size;
    c->separator = separator;
    c->next_line = 1;
    if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        c->pos = 3;
    opi__buf_init(&c->unquoted, ctx);
    return OPI_OK;
}

void opi__csv_close(opi__csv *c)
{
    opi__free(c->unquoted.ctx, c->fields);
    opi__buf_free(&c->unquoted);
    c->fields = NULL;
    c->n_fields = c->cap_fields = 0;
}

/* Steps over one line end at pos: LF, CRLF or CR. */
static void skip_line_end(opi__csv *c)
{
    if (c->bytes[c->pos] == '\r' && c->pos + 1 < c->size && c->bytes[c->pos + 1] == '\n')
        c->pos++;
    c->pos++;
    c->next_line++;
}

static int32_t add_field(opi__csv *c, size_t start, size_t size, opi_error *err)
{
    if (size > OPI__CSV_MAX_FIELD)
        return opi__fail(err, OPI_E_RANGE, (int64_t)c->records - 1, "line %llu: field %zu has %zu bytes; the limit is %zu",
                         (unsigned long long)c->line, c->n_fields + 1, size, OPI__CSV_MAX_FIELD);
    if (c->n_fields == OPI__CSV_MAX_FIELDS)
        return opi__fail(err, OPI_E_RANGE, (int64_t)c->records - 1, "line %llu: more than %d fields",
                         (unsigned long long)c->line, OPI__CSV_MAX_FIELDS);
    if (c->n_fields == c->cap_fields) {
        size_t cap = c->cap_fields ? c->cap_fields * 2 : 64;
        opi__csv_field *grown = opi__resize(c->unquoted.ctx, c->fields, cap, sizeof *grown);
        if (!grown)
            return opi__fail_memory(err, cap * sizeof *grown);
        c->fields = grown;
        c->cap_fields = cap;
    }
    c->fields[c->n_fields].at = start;
    c->fields[c->n_fields++].size = size;
    return OPI_OK;
}

static void settle(opi__csv *c)
{
    for (size_t i = 0; i < c->n_fields; i++) {
        size_t at = c->fields[i].at;
        if (c->fields[i].size == 0)
            c->fields[i].text = "";
        else
            c->fields[i].text = at & IN_BUFFER ? c->unquoted.data + (at & ~IN_BUFFER) : c->bytes + at;
    }
}

static int at_field_end(const opi__csv *c)
{
    return c->pos >= c->size || c->bytes[c->pos] == c->separator || c->bytes[c->pos] == '\n' ||
           c->bytes[c->pos] == '\r';
}

static int32_t quoted_field(opi__csv *c, opi_error *err)
{
    uint64_t line = c->next_line; /* next_line counts the newlines inside the quotes as they pass */
    size_t start = ++c->pos, in_buffer = c->unquoted.len;
    int copied = 0;
    for (;;) {
        const char *quote = c->pos < c->size ? memchr(c->bytes + c->pos, '"', c->size - c->pos) : NULL;
        if (!quote)
            return opi__fail(err, OPI_E_FORMAT, (int64_t)c->records - 1,
                             "line %llu: a quoted field (field %zu of the record that starts on line %llu) is never "
                             "closed", (unsigned long long)line, c->n_fields + 1, (unsigned long long)c->line);
        size_t end = (size_t)(quote - c->bytes);
        for (size_t i = c->pos; i < end; i++)
            if (c->bytes[i] == '\n' || (c->bytes[i] == '\r' && c->bytes[i + 1] != '\n'))
                c->next_line++;
        c->pos = end + 1;
        if (c->pos < c->size && c->bytes[c->pos] == '"') { /* doubled: one quote, with all text before it */
            opi__buf_put(&c->unquoted, c->bytes + start, c->pos - start);
            copied = 1;
            start = ++c->pos;
            continue;
        }
        if (!at_field_end(c))
            return opi__fail(err, OPI_E_FORMAT, (int64_t)c->records - 1,
                             "line %llu: text after the closing quote of field %zu: a quote inside a quoted field is "
                             "written twice", (unsigned long long)c->next_line, c->n_fields + 1);
        if (!copied)
            return add_field(c, start, end - start, err);
        opi__buf_put(&c->unquoted, c->bytes + start, end - start);
        if (c->unquoted.status < 0)
            return opi__fail_memory(err, c->unquoted.len);
        return add_field(c, in_buffer | IN_BUFFER, c->unquoted.len - in_buffer, err);
    }
}

int32_t opi__csv_next(opi__csv *c, opi_error *err)
{
    while (c->pos < c->size && (c->bytes[c->pos] == '\n' || c->bytes[c->pos] == '\r')) {
        skip_line_end(c);
        c->blank_lines++;
    }
    if (c->pos >= c->size)
        return 0;
    c->n_fields = 0;
    c->unquoted.len = 0;
    c->line = c->next_line;
    if (c->records == OPI__CSV_MAX_RECORDS)
        return opi__fail(err, OPI_E_RANGE, (int64_t)c->records - 1, "line %llu: more than %d lines of data",
                         (unsigned long long)c->line, OPI__CSV_MAX_RECORDS);
    for (;;) {
        int32_t status;
        if (c->pos < c->size && c->bytes[c->pos] == '"') {
            status = quoted_field(c, err);
        } else {
            size_t start = c->pos;
            while (!at_field_end(c))
                c->pos++;
            status = add_field(c, start, c->pos - start, err);
        }
        if (status < 0)
            return status;
        if (c->pos >= c->size)
            break;
        if (c->bytes[c->pos] != c->separator) {
            skip_line_end(c);
            break;
        }
        c->pos++;
    }
    settle(c);
    c->records++;
    return 1;
}
