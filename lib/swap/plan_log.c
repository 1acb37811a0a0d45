/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters from a measured run: the JSON lines of the runtime's event log. */
#include "base/json.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/take.h"
#include "swap/planner.h"

#include <math.h>
#include <string.h>

#define MOST_RECOVERIES 1000000 /* lines of them */

/* In the order of OPI_SWAP_DETECTED … OPI_SWAP_RESUMED. */
static const char *const phase_names[OPI_PLAN_PHASES] = {"detected", "revoked",  "agreed",   "classified",
                                                         "assigned", "rebuilt",  "restored", "resumed"};

typedef struct reading {
    opi_ctx *ctx;
    opi_plan_measured m;
    double *phase[OPI_PLAN_PHASES]; /* of each recovery */
    size_t cap;
    double redone;
    int64_t line;
} reading;

static int32_t damaged(const reading *r, opi_error *err, const char *key, const char *what)
{
    return opi__fail(err, OPI_E_FORMAT, r->line, "line %lld: \"%s\" %s", (long long)r->line, key, what);
}

/* A number that may be absent (then *v stays) but may not be negative or something else. */
static int32_t get_number(const reading *r, const opi__json *o, const char *key, double *v, opi_error *err)
{
    const opi__json *found = opi__json_get(o, key);
    double number;
    if (!found || opi__json_is_null(found))
        return OPI_OK;
    if (!opi__json_number(found, &number) || number < 0 || number > 1e18)
        return damaged(r, err, key, "is no number from 0 to 1e18");
    *v = number;
    return OPI_OK;
}

static int32_t get_count(const reading *r, const opi__json *o, const char *key, uint64_t *v, opi_error *err)
{
    double number = -1;
    int32_t status = get_number(r, o, key, &number, err);
    if (!status && number >= 0)
        *v = (uint64_t)number;
    return status;
}

static int32_t grow(reading *r, opi_error *err)
{
    if (r->m.recoveries < r->cap)
        return OPI_OK;
    size_t cap = r->cap ? 2 * r->cap : 64;
    for (int i = 0; i < OPI_PLAN_PHASES; i++) {
        double *more = opi__resize(r->ctx, r->phase[i], cap, sizeof *more);
        if (!more)
            return opi__fail_memory(err, cap * sizeof *more);
        r->phase[i] = more;
    }
    r->cap = cap;
    return OPI_OK;
}

static int32_t take_recovery(reading *r, const opi__json *o, opi_error *err)
{
    const opi__json *phases = opi__json_get(o, "phases_s");
    double redone = 0;
    if (!opi__json_is_object(phases))
        return damaged(r, err, "phases_s", "of a recovery is missing or no object");
    int32_t status = grow(r, err);
    status = status ? status : get_number(r, o, "redone", &redone, err);
    for (int i = 0; i < OPI_PLAN_PHASES && !status; i++) {
        double seconds = -1;
        status = get_number(r, phases, phase_names[i], &seconds, err);
        if (!status && (seconds < 0 || seconds > 1e6))
            return damaged(r, err, phase_names[i], "is missing in phases_s, or more than 1e6 s");
        if (!status)
            r->phase[i][r->m.recoveries] = seconds;
    }
    if (!status) {
        r->m.recoveries++;
        r->redone += redone;
    }
    return status;
}

static int32_t take_line(reading *r, const char *bytes, size_t n, opi_error *err)
{
    opi__json *o = NULL;
    opi_error inner;
    int32_t status = opi__json_parse(bytes, n, "the line", &o, &inner);
    if (status)
        return opi__fail(err, status, r->line, "line %lld: %s", (long long)r->line, inner.message);
    const char *kind = opi__json_is_object(o) ? opi__json_string(opi__json_get(o, "kind")) : NULL;
    if (!kind) {
        status = damaged(r, err, "kind", "is missing or no text");
    } else if (strcmp(kind, "recovered") == 0) {
        status = take_recovery(r, o, err);
    } else if (strcmp(kind, "counters") == 0) {
        status = get_count(r, o, "snapshots", &r->m.snapshots, err);
        status = status ? status : get_count(r, o, "snapshot_bytes", &r->m.snapshot_bytes, err);
        status = status ? status : get_count(r, o, "replica_bytes", &r->m.replica_bytes, err);
        status = status ? status : get_number(r, o, "wait_s", &r->m.wait_s, err);
    }
    opi__json_free(o);
    return status;
}

static double median(double *v, size_t n)
{
    for (size_t gap = n / 2; gap > 0; gap /= 2) /* Shell's sort: every rank may log every recovery */
        for (size_t i = gap; i < n; i++) {
            double x = v[i];
            size_t j = i;
            for (; j >= gap && v[j - gap] > x; j -= gap)
                v[j] = v[j - gap];
            v[j] = x;
        }
    return 0.5 * (v[(n - 1) / 2] + v[n / 2]);
}

static int is_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r')
            return 0;
    return 1;
}

static int32_t read_lines(reading *r, const char *bytes, size_t size, opi_error *err)
{
    int32_t status = OPI_OK;
    for (size_t at = 0; at < size && !status;) {
        const char *newline = memchr(bytes + at, '\n', size - at);
        size_t n = newline ? (size_t)(newline - (bytes + at)) : size - at;
        r->line++;
        if (r->m.recoveries >= MOST_RECOVERIES)
            return opi__fail(err, OPI_E_RANGE, r->line, "line %lld: more than %d recoveries", (long long)r->line,
                             MOST_RECOVERIES);
        if (!is_blank(bytes + at, n)) {
            status = take_line(r, bytes + at, n, err);
            r->m.lines++;
        }
        at += n + 1;
    }
    if (!status && r->m.recoveries == 0)
        status = opi__fail(err, OPI_E_NODATA, -1, "no recovery in %llu lines of the event log: nothing to plan with",
                           (unsigned long long)r->m.lines);
    return status;
}

int32_t opi_plan_from_run(opi_ctx *ctx, const char *bytes, size_t size, opi_plan_options *inout,
                          opi_plan_measured *measured, opi_error *err)
{
    reading r = {.ctx = ctx};
    opi_plan_options o;
    if (!bytes && size)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_plan_from_run: bytes is NULL");
    int32_t status = opi__take(&o, sizeof o, inout, "opi_plan_options", err);
    status = status ? status : read_lines(&r, bytes, size, err);
    for (int i = 0; i < OPI_PLAN_PHASES && !status; i++)
        o.phase_s[i] = r.m.phase_s[i] = median(r.phase[i], r.m.recoveries);
    for (int i = 0; i < OPI_PLAN_PHASES; i++)
        opi__free(ctx, r.phase[i]);
    if (status)
        return status;
    r.m.redone = r.redone / (double)r.m.recoveries;
    status = measured ? opi__give(measured, &r.m, sizeof r.m, "opi_plan_measured", err) : OPI_OK;
    return status ? status : opi__give(inout, &o, sizeof o, "opi_plan_options", err);
}
