/* SPDX-License-Identifier: Apache-2.0 */
#include "swap/events.h"
#include "base/mem.h"
#include "base/status.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define KINDS ((int32_t)(sizeof kind_names / sizeof kind_names[0]))

static const char *const kind_names[] = {
    "?",          "process-lost",  "node-lost",          "spare-lost", "comm-fault", "copies-lost",
    "corruption", "storage-fault", "straggler",          "fenced",     "recovered",  "shrunk",
    "joined",     "checkpointed",  "checkpoint-skipped", "stopped",    "loaded",     "snapshot-failed"};
static const char *const phase_names[OPI_SWAP_PHASES] = {"detected", "revoked", "agreed",   "classified",
                                                         "assigned", "rebuilt", "restored", "resumed"};

const char *opi_swap_event_name(int32_t kind)
{
    return kind > 0 && kind < KINDS ? kind_names[kind] : "?";
}

const char *opi_swap_phase_name(int32_t phase)
{
    return phase >= 0 && phase < OPI_SWAP_PHASES ? phase_names[phase] : "?";
}

int32_t opi__journal_open(opi__journal *j, opi_ctx *ctx, const char *path, int32_t rank, opi_error *err)
{
    j->ctx = ctx;
    j->rank = rank;
    j->file = -1;
    j->counters.struct_size = (uint32_t)sizeof j->counters;
    if (!path)
        return OPI_OK;
    opi__buf name;
    opi__buf_init(&name, ctx);
    for (const char *p = path; *p; p++) {
        if (p[0] == '%' && p[1] == 'r') {
            opi__buf_format(&name, "%d", (int)rank);
            p++;
        } else {
            opi__buf_put(&name, p, 1);
        }
    }
    if (name.status) {
        opi__buf_free(&name);
        return opi__fail_memory(err, strlen(path));
    }
    j->file = open(name.data, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int why = errno;
    int32_t rc = OPI_OK;
    if (j->file < 0)
        rc = opi__fail(err, OPI_E_IO, -1, "event log %s cannot be opened: error %d of the system", name.data, why);
    opi__buf_free(&name);
    return rc;
}

/* A JSON string: quotes, backslashes and control characters escaped. */
static void put_string(opi__buf *b, const char *s)
{
    opi__buf_puts(b, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            opi__buf_format(b, "\\%c", c);
        else if (c < 0x20)
            opi__buf_format(b, "\\u00%c%c", '0' + (c >> 4), "0123456789abcdef"[c & 15]);
        else
            opi__buf_put(b, s, 1);
    }
    opi__buf_puts(b, "\"");
}

static void put_phases(opi__buf *b, const double *phase_s)
{
    opi__buf_puts(b, ",\"phases_s\":{");
    for (int32_t i = 0; i < OPI_SWAP_PHASES; i++)
        opi__buf_format(b, "%s\"%s\":%.6g", i ? "," : "", phase_names[i], phase_s[i]);
    opi__buf_puts(b, "}");
}

/* One write a line: lines of several processes in one file do not mix. */
static void put_line(opi__journal *j, opi__buf *b)
{
    opi__buf_puts(b, "}\n");
    if (!b->status) {
        ssize_t written = write(j->file, b->data, b->len);
        (void)written;
    }
    opi__buf_free(b);
}

static void write_event(opi__journal *j, const opi_swap_event *e)
{
    opi__buf b;
    opi__buf_init(&b, j->ctx);
    opi__buf_format(&b, "{\"kind\":\"%s\",\"by\":%d,\"epoch\":%d,\"time_s\":%.15g", opi_swap_event_name(e->kind),
                    (int)j->rank, (int)e->epoch, e->time_s);
    if (e->rank >= 0)
        opi__buf_format(&b, ",\"rank\":%d", (int)e->rank);
    if (e->slot >= 0)
        opi__buf_format(&b, ",\"slot\":%d", (int)e->slot);
    opi__buf_format(&b, ",\"step\":%lld", (long long)e->step);
    if (e->kind == OPI_SWAP_RECOVERED || e->lost)
        opi__buf_format(&b, ",\"lost\":%d,\"redone\":%lld", (int)e->lost, (long long)e->redone);
    if (e->kind == OPI_SWAP_RECOVERED)
        put_phases(&b, e->phase_s);
    opi__buf_puts(&b, ",\"message\":");
    put_string(&b, e->message);
    put_line(j, &b);
}

void opi__journal_event(opi__journal *j, opi_swap_event *event, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    opi__vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    event->struct_size = (uint32_t)sizeof *event;
    if (event->step < -1)
        event->step = -1; /* the runtime's own mark for "none" */
    event->message = text;
    if (event->kind > 0 && event->kind < 32)
        j->counters.by_kind[event->kind]++;
    if (event->kind == OPI_SWAP_RECOVERED) {
        j->counters.recoveries++;
        if (event->redone > 0)
            j->counters.steps_redone += (uint64_t)event->redone;
        for (int32_t i = 0; i < OPI_SWAP_PHASES; i++)
            j->counters.phase_s[i] += event->phase_s[i];
    }
    if (j->file >= 0)
        write_event(j, event);
    if (j->event)
        j->event(j->user, event);
}

void opi__journal_close(opi__journal *j)
{
    if (j->file < 0)
        return;
    const opi_swap_counters *c = &j->counters;
    opi__buf b;
    opi__buf_init(&b, j->ctx);
    opi__buf_format(&b, "{\"kind\":\"counters\",\"by\":%d,\"stopped\":%d", (int)j->rank, (int)c->stopped);
    const struct {
        const char *name;
        uint64_t value;
    } whole[] = {{"snapshots", c->snapshots},
                 {"snapshot_bytes", c->snapshot_bytes},
                 {"replica_bytes", c->replica_bytes},
                 {"buffer_bytes", c->buffer_bytes},
                 {"waits", c->waits},
                 {"recoveries", c->recoveries},
                 {"steps_redone", c->steps_redone},
                 {"checkpoints", c->checkpoints},
                 {"checkpoint_bytes", c->checkpoint_bytes}};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        opi__buf_format(&b, ",\"%s\":%llu", whole[i].name, (unsigned long long)whole[i].value);
    opi__buf_format(&b, ",\"wait_s\":%.6g", c->wait_s);
    const char *comma = "";
    opi__buf_puts(&b, ",\"events\":{"); /* apart: a kind may be called like a field */
    for (int32_t kind = 1; kind < KINDS; kind++)
        if (c->by_kind[kind]) {
            opi__buf_format(&b, "%s\"%s\":%llu", comma, kind_names[kind], (unsigned long long)c->by_kind[kind]);
            comma = ",";
        }
    opi__buf_puts(&b, "}");
    put_phases(&b, c->phase_s);
    put_line(j, &b);
    close(j->file);
    j->file = -1;
}
