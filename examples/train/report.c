/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int report_open(report *r, const options *opt, int rank)
{
    memset(r, 0, sizeof *r);
    r->opt = opt;
    r->slots = opt->dp * opt->tp;
    r->holder = malloc((size_t)r->slots * sizeof *r->holder);
    r->before = malloc((size_t)r->slots * sizeof *r->before);
    if (!r->holder || !r->before)
        return 0;
    for (int i = 0; i < r->slots; i++)
        r->holder[i] = r->before[i] = i;
    if (opt->json)
        printf("{\"kind\":\"process\",\"by\":%d,\"pid\":%ld}\n", rank, (long)getpid());
    fflush(stdout);
    return 1;
}

void report_close(report *r)
{
    free(r->events);
    free(r->holder);
    free(r->before);
    free(r->step_s);
}

/* ---- events ---- */

void report_event(report *r, const opi_swap_event *event)
{
    if (r->count == r->room) {
        int room = r->room ? 2 * r->room : 16;
        kept_event *more = realloc(r->events, (size_t)room * sizeof *more);
        if (!more)
            return; /* an event less is told */
        r->events = more;
        r->room = room;
    }
    kept_event *kept = &r->events[r->count++];
    kept->event = *event;
    snprintf(kept->message, sizeof kept->message, "%s", event->message ? event->message : "");
}

int32_t report_holders(report *r, const opi_swap_view *view)
{
    MPI_Comm active = MPI_Comm_f2c(view->comm_active);
    int mine[2] = {view->rank, r->knows}, slots = view->dp_width * view->pp_width * view->tp_width, root = 0;
    int *all = malloc((size_t)slots * sizeof mine);
    if (!all)
        return MPI_ERR_NO_MEM;
    int32_t fault = MPI_Allgather(mine, 2, MPI_INT, all, 2, MPI_INT, active);
    while (!fault && root < slots - 1 && !all[2 * root + 1])
        root++;
    if (!fault && view->epoch > 0) { /* those who were spares until now are told who had the slots before */
        memcpy(r->before, r->holder, (size_t)r->slots * sizeof *r->before);
        fault = MPI_Bcast(r->before, r->slots, MPI_INT, root, active);
    }
    for (int i = 0; !fault && i < r->slots; i++)
        r->holder[i] = i < slots ? all[2 * i] : -1;
    r->knows = fault ? r->knows : 1;
    free(all);
    return fault;
}

static void print_text(const char *text)
{
    putchar('"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            printf("\\%c", *c);
        else if (*c < 32)
            printf("\\u%04x", *c);
        else
            putchar(*c);
    }
    putchar('"');
}

static void print_json(const report *r, const kept_event *kept, int by)
{
    const opi_swap_event *e = &kept->event;
    printf("{\"kind\":\"%s\",\"by\":%d,\"epoch\":%d,\"rank\":%d,\"slot\":%d,\"lost\":%d,\"step\":%lld,\"redone\":%lld,"
           "\"time_s\":%.9f", opi_swap_event_name(e->kind), by, e->epoch, e->rank, e->slot, e->lost,
           (long long)e->step, (long long)e->redone, e->time_s);
    if (e->kind == OPI_SWAP_RECOVERED) {
        const char *mark = "";
        printf(",\"phases_s\":{");
        for (int i = 0; i < OPI_SWAP_PHASES; i++)
            printf("%s\"%s\":%.9f", i ? "," : "", opi_swap_phase_name(i), e->phase_s[i]);
        printf("},\"swaps\":[");
        for (int i = 0; i < r->slots; i++) {
            if (r->holder[i] == r->before[i])
                continue;
            printf("%s{\"slot\":%d,\"from\":%d,\"to\":%d}", mark, i, r->before[i], r->holder[i]);
            mark = ",";
        }
        printf("]");
    }
    printf(",\"message\":");
    print_text(kept->message);
    printf("}\n");
}

static void print_timeline(const report *r, const opi_swap_event *e)
{
    double sum = 0;
    printf("recovery %d: %d lost\n", e->epoch, e->lost);
    for (int i = 0; i < OPI_SWAP_PHASES; i++) {
        sum += e->phase_s[i];
        printf("  %-11s %8.2f ms   %8.2f ms in all\n", opi_swap_phase_name(i), 1e3 * e->phase_s[i], 1e3 * sum);
    }
    for (int i = 0; i < r->slots; i++) {
        if (r->holder[i] == r->before[i])
            continue;
        if (r->holder[i] < 0)
            printf("  slot %d (rank %d) is given up\n", i, r->before[i]);
        else
            printf("  slot %d: rank %d -> rank %d\n", i, r->before[i], r->holder[i]);
    }
    printf("  goes on with step %lld; completed steps that are computed again: %lld\n", (long long)e->step,
           (long long)e->redone);
}

/* What a spare kept of earlier recoveries was told by others: begin after the last RECOVERED but one. */
static int first_untold(const report *r)
{
    int first = 0, seen = 0;
    for (int i = r->count - 1; i >= 0 && !first; i--)
        if (r->events[i].event.kind == OPI_SWAP_RECOVERED && seen++)
            first = i + 1;
    return first;
}

/* Slot 0 tells everything; others only what concerns themselves and is no recovery, as slot 0 may not know of it. */
static void tell(report *r, const opi_swap_view *view, int all)
{
    for (int i = first_untold(r); i < r->count; i++) {
        const opi_swap_event *e = &r->events[i].event;
        if (view->slot != 0 && !all && (e->rank != view->rank || e->kind == OPI_SWAP_RECOVERED))
            continue;
        if (r->opt->json)
            print_json(r, &r->events[i], view->rank);
        else if (e->kind == OPI_SWAP_RECOVERED)
            print_timeline(r, e);
        else if (view->slot == 0)
            printf("%s: %s\n", opi_swap_event_name(e->kind), r->events[i].message);
        else
            printf("rank %d: %s: %s\n", view->rank, opi_swap_event_name(e->kind), r->events[i].message);
    }
    r->count = 0;
    fflush(stdout);
}

/* ---- steps ---- */

void report_begin(report *r, const trainer *t, int64_t step)
{
    int recovered = 0;
    for (int i = 0; i < r->count; i++)
        recovered |= r->events[i].event.kind == OPI_SWAP_RECOVERED;
    r->began = trainer_clock();
    if (r->opt->json && recovered && t->view.slot == 0)
        printf("{\"kind\":\"resumed\",\"by\":%d,\"step\":%lld,\"time_s\":%.9f}\n", t->view.rank, (long long)step,
               r->began);
    tell(r, &t->view, 0);
}

void report_step(report *r, const trainer *t, int64_t step)
{
    if (r->steps == r->step_room) {
        int64_t room = r->step_room ? 2 * r->step_room : 64;
        double *more = realloc(r->step_s, (size_t)room * sizeof *more);
        if (!more)
            return;
        r->step_s = more;
        r->step_room = room;
    }
    r->step_s[r->steps++] = trainer_clock() - r->began;
    if (r->opt->quiet || t->view.slot != 0)
        return;
    double loss = t->history[step].loss;
    if (r->opt->json)
        printf("{\"kind\":\"step\",\"step\":%lld,\"loss\":%.17g,\"hash\":\"%016" PRIx64 "\"}\n", (long long)step, loss,
               t->history[step].hash);
    else if (step % 10 == 0 || step + 1 == t->opt.steps)
        printf("step %4lld   loss %.6f   %.1f ms\n", (long long)step, loss, 1e3 * r->step_s[r->steps - 1]);
    fflush(stdout);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Under a name of its own first: after a stop, several processes write the same. */
static int write_losses(const trainer *t)
{
    char name[1024];
    int length = snprintf(name, sizeof name, "%s.%d", t->opt.losses, t->view.rank);
    FILE *file = length < (int)sizeof name ? fopen(name, "w") : NULL;
    if (!file)
        return 0;
    for (int64_t i = 0; i < t->at.steps; i++)
        fprintf(file, "%lld %.17g %016" PRIx64 "\n", (long long)i, t->history[i].loss, t->history[i].hash);
    int wrong = ferror(file);
    return !fclose(file) && !wrong && !rename(name, t->opt.losses);
}

int report_end(report *r, const trainer *t)
{
    opi_swap_counters c = {.struct_size = sizeof c};
    opi_swap_get_counters(t->swap, &c, NULL);
    /* After a stop there may be no slot 0: all that had a slot speak. */
    int speaks = t->view.slot == 0 || (c.stopped && t->view.slot > 0);
    tell(r, &t->view, speaks);
    if (!speaks)
        return 1;
    qsort(r->step_s, (size_t)r->steps, sizeof *r->step_s, ascending);
    double median = r->steps ? r->step_s[r->steps / 2] : 0;
    const char *how = c.stopped ? "stopped" : "finished";
    if (r->opt->json) {
        printf("{\"kind\":\"%s\",\"by\":%d,\"steps\":%lld,\"dp\":%d,\"median_step_s\":%.9f,\"snapshots\":%" PRIu64
               ",\"snapshot_bytes\":%" PRIu64 ",\"replica_bytes\":%" PRIu64 ",\"buffer_bytes\":%" PRIu64
               ",\"waits\":%" PRIu64 ",\"wait_s\":%.9f,\"recoveries\":%" PRIu64 ",\"steps_redone\":%" PRIu64
               ",\"checkpoints\":%" PRIu64 ",\"checkpoint_bytes\":%" PRIu64 "}\n",
               how, t->view.rank, (long long)t->at.steps, t->view.dp_width, median, c.snapshots, c.snapshot_bytes,
               c.replica_bytes, c.buffer_bytes, c.waits, c.wait_s, c.recoveries, c.steps_redone, c.checkpoints,
               c.checkpoint_bytes);
    } else {
        if (c.stopped)
            printf("rank %d: ", t->view.rank);
        printf("%s after %lld steps, median %.1f ms: %" PRIu64 " recoveries, %" PRIu64 " completed steps computed "
               "again, %" PRIu64 " snapshots, %.3f s waited for copies\n", how, (long long)t->at.steps, 1e3 * median,
               c.recoveries, c.steps_redone, c.snapshots, c.wait_s);
    }
    fflush(stdout);
    return !t->opt.losses || write_losses(t);
}
