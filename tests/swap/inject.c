/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in a run, and when. */
#include "worker.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile pid_t *pids; /* of the ranks on this host, in a file that all map */
static pthread_t timer[MAX_INJECT];
static int opened;

/* POINT:OCCURRENCE:RANK[+RANK…] or @MICROSECONDS:RANK[+RANK…]: the first rank is the one whose clock or step counts; it
 * takes the others with it; occurrence 0 = each time. RANK>RANK[+RANK…]: it goes free. */
int inject_parse(options *o, int what, const char *text)
{
    if (o->injects == MAX_INJECT)
        return 0;
    inject *e = &o->inject[o->injects];
    memset(e, 0, sizeof *e);
    e->what = what;
    e->usec = -1;
    const char *at = text;
    char *end;
    if (*at == '@') {
        e->usec = strtol(at + 1, &end, 10);
    } else {
        const char *colon = strchr(at, ':');
        if (!colon || (size_t)(colon - at) >= sizeof e->point)
            return 0;
        memcpy(e->point, at, (size_t)(colon - at));
        e->occurrence = (int)strtol(colon + 1, &end, 10);
    }
    if (*end != ':')
        return 0;
    e->rank = (int)strtol(end + 1, &end, 10);
    if (*end != '>')
        e->victim[e->victims++] = e->rank;
    while ((*end == '+' || *end == '>') && e->victims < MAX_VICTIMS)
        e->victim[e->victims++] = (int)strtol(end + 1, &end, 10);
    o->injects++;
    return !*end;
}

static void kill_all(const inject *e, const char *where)
{
    for (int i = e->victims; i-- > 0;) {
        int v = e->victim[i];
        pid_t pid = v == worker.rank ? getpid() : pids && v >= 0 && v < MAX_PIDS ? pids[v] : 0;
        if (pid <= 0)
            continue;
        int sign = e->what == DO_FREEZE ? SIGSTOP : e->what == DO_THAW ? SIGCONT : SIGKILL;
        worker_log("\"kind\":\"%s\",\"rank\":%d,\"point\":\"%s\",\"occurrence\":%d",
                   sign == SIGKILL ? "kill" : sign == SIGSTOP ? "freeze" : "thaw", v, where, e->occurrence);
        if (sign == SIGKILL && pids && v >= 0 && v < MAX_PIDS)
            pids[v] = 0;
        kill(pid, sign);
    }
}

static void *timer_thread(void *user)
{
    const inject *e = user;
    struct timespec t = {e->usec / 1000000, e->usec % 1000000 * 1000};
    nanosleep(&t, NULL);
    kill_all(e, "timer");
    return NULL;
}

/* Before all ranks have left opi_swap_create a death ends it with an error; the timers start when that is over. */
static void start_timers(void)
{
    opened = 1;
    for (int i = 0; i < worker.opt.injects; i++) {
        inject *e = &worker.opt.inject[i];
        if (e->usec >= 0 && e->rank == worker.rank)
            pthread_create(&timer[i], NULL, timer_thread, e);
    }
}

static void flip(void *blob, size_t bytes, const char *what, int slot, long long step)
{
    if (!blob || bytes < 8)
        return;
    ((unsigned char *)blob)[bytes - bytes / 3] ^= 0x10;
    worker_log("\"kind\":\"flipped\",\"what\":\"%s\",\"slot\":%d,\"step\":%lld", what, slot, step);
}

static void corrupt_own(void)
{
    for (int i = 0; i < OPI__SNAPS; i++) {
        opi__snap *n = &worker.swap->snap[i];
        if (n->phase >= OPI__LOCAL)
            flip(n->blob[0], n->bytes[0], "own", n->slot, (long long)n->step);
    }
}

static void corrupt_held(void)
{
    for (int i = 0; i < OPI__HELD; i++) {
        opi__held *h = &worker.swap->held[i];
        if (h->complete)
            flip(h->blob, h->bytes, "held", h->slot, (long long)h->step);
    }
}

void inject_point(const char *point)
{
    if (!opened && !strcmp(point, "shrunk"))
        start_timers();
    for (int i = 0; i < worker.opt.injects; i++) {
        inject *e = &worker.opt.inject[i];
        if (e->usec >= 0 || e->rank != worker.rank || e->what == DO_FAIL || strcmp(e->point, point) ||
            (++e->seen != e->occurrence && e->occurrence))
            continue;
        switch (e->what) {
        case DO_CORRUPT_OWN:
            corrupt_own();
            break;
        case DO_CORRUPT_HELD:
            corrupt_held();
            break;
        case DO_FAULT:
            worker.fault_now = 1;
            break;
        case DO_REVOKE:
            MPIX_Comm_revoke(MPI_Comm_f2c(worker.m.view.comm_dp));
            MPIX_Comm_revoke(MPI_Comm_f2c(worker.m.view.comm_tp));
            break;
        case DO_FENCE: /* as a rank that takes the place of one declared dead tells it */
            opi__control_send(worker.swap, e->victim[0], OPI__WIRE_FENCED);
            break;
        case DO_EXIT:
            worker_log("\"kind\":\"kill\",\"rank\":%d,\"point\":\"exit\"", worker.rank);
            _exit(3);
        default:
            kill_all(e, point);
        }
    }
}

/* CALLBACK:OCCURRENCE:RANK; occurrence 0 = each time. */
int inject_fails(const char *callback)
{
    for (int i = 0; i < worker.opt.injects; i++) {
        inject *e = &worker.opt.inject[i];
        if (e->what != DO_FAIL || e->rank != worker.rank || strcmp(e->point, callback))
            continue;
        e->seen++;
        if (!e->occurrence || e->seen == e->occurrence)
            return 1;
    }
    return 0;
}

void inject_open(void)
{
    if (worker.opt.pids) {
        int file = open(worker.opt.pids, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file >= 0 && !ftruncate(file, MAX_PIDS * sizeof *pids)) {
            void *p = mmap(NULL, MAX_PIDS * sizeof *pids, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            pids = p == MAP_FAILED ? NULL : p;
        }
        if (file >= 0)
            close(file);
    }
    if (pids && worker.rank < MAX_PIDS)
        pids[worker.rank] = getpid();
    opi__swap_hook = inject_point;
}
