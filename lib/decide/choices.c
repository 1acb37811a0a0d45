/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/choices.h"

#include "base/status.h"
#include "base/text.h"
#include "decide/utility.h"
#include "facts/csv.h"
#include "facts/table_cell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define A(name, weight, unit) {name, #weight, unit, offsetof(opi_utility, weight)}
const opi__attribute opi__attributes[OPI__ATTRIBUTES] = {
    [OPI__A_COST] = {"usd_per_h", NULL, "1/($/h)", 0},
    [OPI__A_VALUE] = A("out_tok_s", value_usd_per_mtok, "$/Mtok"),
    [OPI__A_QUEUE] = A("queue_s", queue_usd_per_h, "$/h"),
    [OPI__A_RESTART] = A("launch_success", restart_usd, "$"),
    [OPI__A_SLO] = A("slo_violation", slo_penalty_usd_per_h, "$/h"),
    [OPI__A_KV] = A("kv_usage", kv_penalty_usd_per_h, "$/h"),
    [OPI__A_POWER] = A("power_w", power_usd_per_kwh, "$/kWh"),
};

/* Columns that are no attribute of their own. */
enum { C_ID = OPI__ATTRIBUTES, C_CHOSEN, C_REPLICAS, COLUMNS };
typedef struct limits {
    double lo, hi;
    int open; /* 1: above lo */
} limits;
static const limits ranges[COLUMNS] = {
    [OPI__A_COST] = {0, 1e9, 0}, [OPI__A_VALUE] = {0, 1e12, 0}, [OPI__A_QUEUE] = {0, 1e9, 0},
    [OPI__A_RESTART] = {0, 1, 1}, [OPI__A_SLO] = {0, 1000, 0},  [OPI__A_KV] = {0, 1e6, 0},
    [OPI__A_POWER] = {0, 1e12, 0}, [C_REPLICAS] = {1, 1e6, 0},
};

typedef struct reader {
    opi__choices *out;
    const opi_utility *base;
    opi__csv csv;
    size_t map[OPI__CSV_MAX_FIELDS]; /* column at place i of a record, or COLUMNS */
    size_t n_fields;
    int has[COLUMNS];
} reader;

static const char *column_name(size_t c)
{
    return c == C_ID ? "choice" : c == C_CHOSEN ? "chosen" : c == C_REPLICAS ? "replicas" : opi__attributes[c].column;
}

void opi__choices_note(opi__choices *c, const char *code, const char *fmt, ...)
{
    if (c->n_notes == OPI__CHOICES_NOTES)
        return;
    opi__choice_note *n = &c->notes[c->n_notes++];
    va_list ap;
    n->code = code;
    va_start(ap, fmt);
    opi__vformat(n->text, sizeof n->text, fmt, ap);
    va_end(ap);
}

/* ---- the first line ---- */

/* One note for all of them; one more for each that is nearly a column's name. */
static void note_unknown(reader *r)
{
    char names[240] = "", shown[48];
    size_t count = 0, at = 0;
    for (size_t i = 0; i < r->n_fields; i++) {
        const char *name = r->csv.fields[i].text;
        size_t n = r->csv.fields[i].size;
        if (r->map[i] != COLUMNS)
            continue;
        opi__cell_trim(&name, &n);
        opi__cell_show(shown, sizeof shown, name, n);
        for (size_t c = 0; c < COLUMNS; c++)
            if (!r->has[c] && strlen(shown) < 48 && opi__edit_distance(shown, column_name(c), 3) < 3)
                opi__choices_note(r->out, "unknown-column-near", "the column \"%s\" is not used; did you mean %s?", shown,
                                  column_name(c));
        if (count++ < 12 && at < sizeof names)
            at += opi__format(names + at, sizeof names - at, "%s%s", at ? ", " : "", shown);
    }
    if (count > 0)
        opi__choices_note(r->out, "unknown-columns", "%zu column%s not used: %s%s", count, count > 1 ? "s are" : " is", names,
                          count > 12 ? ", …" : "");
}

static int32_t read_header(reader *r, opi_error *err)
{
    const opi__csv *csv = &r->csv;
    int attributes = 0;
    r->n_fields = csv->n_fields;
    for (size_t i = 0; i < csv->n_fields; i++) {
        const char *name = csv->fields[i].text;
        size_t n = csv->fields[i].size, c = 0;
        opi__cell_trim(&name, &n);
        while (c < COLUMNS && !(strlen(column_name(c)) == n && memcmp(column_name(c), name, n) == 0))
            c++;
        r->map[i] = c;
        if (c < COLUMNS && r->has[c]++)
            return opi__fail(err, OPI_E_FORMAT, -1, "line %llu: the column %s stands twice", (unsigned long long)csv->line,
                             column_name(c));
        attributes += c > OPI__A_COST && c < OPI__ATTRIBUTES;
        if (c < OPI__ATTRIBUTES)
            r->out->columns |= 1u << c;
    }
    note_unknown(r);
    static const size_t needed[] = {C_ID, C_CHOSEN, OPI__A_COST};
    for (size_t i = 0; i < 3; i++)
        if (!r->has[needed[i]])
            return opi__fail(err, OPI_E_FORMAT, -1, "line %llu: there is no column \"%s\"; choice, chosen, usd_per_h and at "
                             "least one of the others are needed, separated by commas", (unsigned long long)csv->line,
                             column_name(needed[i]));
    if (!attributes)
        return opi__fail(err, OPI_E_FORMAT, -1, "line %llu: no column besides usd_per_h to learn a weight from: out_tok_s, "
                         "queue_s, launch_success, slo_violation, kv_usage, power_w", (unsigned long long)csv->line);
    return OPI_OK;
}

/* ---- the rows ---- */

static int32_t read_cell(const reader *r, size_t c, const char *text, size_t n, double *out, opi_error *err)
{
    const unsigned long long line = r->csv.line;
    const int64_t row = (int64_t)r->out->n_offers;
    char shown[48];
    opi__cell_show(shown, sizeof shown, text, n);
    if (n == 0)
        return opi__fail(err, OPI_E_FORMAT, row, "line %llu: %s is blank: every row states every attribute the file has", line,
                         column_name(c));
    const int32_t kind = opi__cell_number(text, n, out);
    if (c == C_CHOSEN) {
        if (kind != OPI__CELL_NUMBER || (*out != 0 && *out != 1))
            return opi__fail(err, OPI_E_FORMAT, row, "line %llu: chosen = \"%s\", must be 1 (taken) or 0", line, shown);
        return OPI_OK;
    }
    if (kind != OPI__CELL_NUMBER)
        return opi__fail(err, OPI_E_FORMAT, row, "line %llu: %s = \"%s\" %s", line, column_name(c), shown,
                         opi__cell_advice(kind));
    const limits *l = &ranges[c];
    if (!(*out >= l->lo && *out <= l->hi) || (l->open && *out == l->lo))
        return opi__fail(err, OPI_E_RANGE, row, "line %llu: %s = %g, must be %s %g and at most %g", line, column_name(c), *out,
                         l->open ? "above" : "at least", l->lo, l->hi);
    return OPI_OK;
}

/* The terms at weights of 1, from the one formula of the utility. */
static void attributes_of(const reader *r, const double *v, double *x)
{
    opi_utility u = *r->base;
    opi_terms t;
    opi__outcome o = {.gpus = 1, .replicas = r->has[C_REPLICAS] ? v[C_REPLICAS] : 1, .price = v[OPI__A_COST],
                      .queue_s = v[OPI__A_QUEUE], .launch_success = r->has[OPI__A_RESTART] ? v[OPI__A_RESTART] : 1,
                      .tok_s = v[OPI__A_VALUE], .violations = v[OPI__A_SLO], .kv_usage = v[OPI__A_KV],
                      .power_w = v[OPI__A_POWER]};
    u.value_usd_per_mtok = u.queue_usd_per_h = u.slo_penalty_usd_per_h = u.kv_penalty_usd_per_h = u.power_usd_per_kwh = 1;
    u.restart_usd = 0; /* node time burned is money, like the nodes themselves */
    opi__utility_terms(&u, &o, &t);
    x[OPI__A_COST] = t.node + t.restart;
    x[OPI__A_VALUE] = t.value;
    x[OPI__A_QUEUE] = t.queue;
    x[OPI__A_SLO] = t.slo;
    x[OPI__A_KV] = t.kv;
    x[OPI__A_POWER] = t.power;
    u.restart_usd = 1;
    u.restart_node_h = 0;
    opi__utility_terms(&u, &o, &t);
    x[OPI__A_RESTART] = t.restart;
}

static int32_t grow(reader *r, opi_error *err)
{
    opi__choices *out = r->out;
    if (out->n_offers == OPI__CHOICES_ROWS)
        return opi__fail(err, OPI_E_RANGE, (int64_t)out->n_offers, "line %llu: more than %d rows",
                         (unsigned long long)r->csv.line, OPI__CHOICES_ROWS);
    if (out->n_offers < out->cap_offers)
        return OPI_OK;
    const size_t cap = out->cap_offers ? 2 * out->cap_offers : 64;
    opi__offer *grown = opi__resize(out->ctx, out->offers, cap, sizeof *grown);
    if (!grown)
        return opi__fail_memory(err, cap * sizeof *grown);
    out->offers = grown;
    out->cap_offers = cap;
    return OPI_OK;
}

static int32_t read_row(reader *r, opi_error *err)
{
    const opi__csv *csv = &r->csv;
    const int64_t row = (int64_t)r->out->n_offers;
    double v[COLUMNS] = {0};
    if (csv->n_fields != r->n_fields)
        return opi__fail(err, OPI_E_FORMAT, row, "line %llu: %zu fields, but the line of column names has %zu",
                         (unsigned long long)csv->line, csv->n_fields, r->n_fields);
    int32_t rc = grow(r, err);
    if (rc)
        return rc;
    opi__offer *o = &r->out->offers[r->out->n_offers];
    memset(o, 0, sizeof *o);
    for (size_t i = 0; i < csv->n_fields; i++) {
        const size_t c = r->map[i];
        const char *text = csv->fields[i].text;
        size_t n = csv->fields[i].size;
        if (c == COLUMNS)
            continue;
        opi__cell_trim(&text, &n);
        if (c != C_ID)
            rc = read_cell(r, c, text, n, &v[c], err);
        else if (n == 0)
            rc = opi__fail(err, OPI_E_FORMAT, row, "line %llu: choice is blank: it names the situation the row was offered in",
                           (unsigned long long)csv->line);
        else if (!(o->id = opi__arena_text(&r->out->texts, text, n)))
            rc = opi__fail_memory(err, n);
        if (rc)
            return rc;
    }
    o->line = csv->line;
    o->chosen = v[C_CHOSEN] == 1;
    attributes_of(r, v, o->x);
    r->out->n_offers++;
    return OPI_OK;
}

/* ---- the whole ---- */

static int32_t read_all(reader *r, opi_error *err)
{
    int32_t rc = opi__csv_next(&r->csv, err);
    if (rc == 0)
        return opi__fail(err, OPI_E_NODATA, -1, "the choice file is empty: not even a line of column names");
    if (rc > 0)
        rc = read_header(r, err);
    while (rc >= 0 && (rc = opi__csv_next(&r->csv, err)) > 0)
        rc = read_row(r, err);
    if (rc == OPI_OK && r->out->n_offers == 0)
        rc = opi__fail(err, OPI_E_NODATA, -1, "the choice file has a line of column names but no data line");
    return rc;
}

int32_t opi__choices_read(opi_ctx *ctx, const char *bytes, size_t size, const opi_utility *base, opi__choices *out,
                          opi_error *err)
{
    memset(out, 0, sizeof *out);
    out->ctx = ctx;
    opi__arena_init(&out->texts, ctx);
    reader *r = opi__zalloc(ctx, 1, sizeof *r);
    if (!r)
        return opi__fail_memory(err, sizeof *r);
    r->out = out;
    r->base = base;
    int32_t rc = opi__csv_open(&r->csv, ctx, bytes, size, ',', err);
    if (rc == OPI_OK) {
        rc = read_all(r, err);
        opi__csv_close(&r->csv);
    }
    opi__free(ctx, r);
    return rc == OPI_OK ? opi__choices_group(out, err) : rc;
}

void opi__choices_free(opi__choices *c)
{
    opi__free(c->ctx, c->offers);
    opi__free(c->ctx, c->situations);
    opi__arena_free(&c->texts);
}
