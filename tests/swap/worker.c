/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

program worker;

/* One write a line: lines of several ranks do not mix. */
void worker_log(const char *format, ...)
{
    char line[1400];
    int n = snprintf(line, sizeof line, "{\"by\":%d,\"time_s\":%.9f,", worker.rank, opi__now());
    va_list ap;
    va_start(ap, format);
    n += vsnprintf(line + n, sizeof line - 4 - (size_t)n, format, ap);
    va_end(ap);
    if (n > (int)sizeof line - 4)
        n = (int)sizeof line - 4;
    memcpy(line + n, "}\n", 2);
    ssize_t written = write(worker.log, line, (size_t)n + 2);
    (void)written;
}

/* Messages of the library have quotes in them. */
static void log_error(const char *call, int32_t code, const char *message)
{
    char text[600];
    size_t n = 0;
    for (; *message && n < sizeof text - 2; message++) {
        if (*message == '"' || *message == '\\')
            text[n++] = '\\';
        text[n++] = *message;
    }
    text[n] = 0;
    worker_log("\"kind\":\"error\",\"call\":\"%s\",\"code\":%d,\"message\":\"%s\"", call, (int)code, text);
}

/* ---- callbacks --------------------------------------------------------------------------------------------------- */

static int32_t on_assign(void *user, const opi_swap_view *view)
{
    program *p = user;
    p->m.view = *view;
    if (inject_fails("assign") || !model_room(p))
        return 41;
    return model_register(p);
}

static int32_t on_init(void *user, const opi_swap_view *view)
{
    (void)view;
    model_init(user);
    /* Where all state was lost, the lists here may be those of a later step. */
    return inject_fails("init") ? 42 : model_grow(user, 0);
}

static int32_t on_rebuild(void *user, const opi_swap_view *view)
{
    program *p = user;
    opi_error err;
    p->m.view = *view;
    model_rebuild(p);
    if (inject_fails("rebuild"))
        return 43;
    p->user = MPI_COMM_NULL;
    if (!p->opt.user_comm)
        return 0;
    if (MPI_Comm_dup(MPI_Comm_f2c(view->comm_active), &p->user))
        return 44;
    MPI_Comm_set_errhandler(p->user, MPI_ERRORS_RETURN);
    return opi_swap_watch(p->swap, (int32_t)MPI_Comm_c2f(p->user), &err);
}

static int32_t on_copy(void *user, int32_t direction, const char *name, void *program_side, void *host, uint64_t bytes)
{
    (void)user;
    (void)name;
    if (inject_fails(direction == OPI_SWAP_COPY_SAVE ? "save" : "restore"))
        return 45;
    if (direction == OPI_SWAP_COPY_SAVE)
        memcpy(host, program_side, (size_t)bytes);
    else
        memcpy(program_side, host, (size_t)bytes);
    return 0;
}

static int32_t on_resize(void *user, const char *name, uint64_t bytes, void **data)
{
    return inject_fails("resize") ? 46 : model_resize(user, name, bytes, data);
}

static void on_event(void *user, const opi_swap_event *event)
{
    program *p = user;
    if (event->kind == OPI_SWAP_RECOVERED)
        p->recovered = 1;
}

/* ---- bad use ----------------------------------------------------------------------------------------------------- */

/* --bad takes a list: what,what */
static int bad(const char *what)
{
    size_t n = strlen(what);
    for (const char *at = worker.opt.bad; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, what, n) && (!at[n] || at[n] == ','))
            return 1;
    }
    return 0;
}

static int32_t bad_registration(program *p)
{
    static char more[64];
    opi_swap_state s = {sizeof s, OPI_SWAP_REPLICATED, "more", more, sizeof more, 0, 0};
    opi_error err = {0};
    int32_t rc = 0;
    if (bad("twice"))
        s.name = "parameters";
    else if (bad("sizes") && p->rank == 1)
        s.size = 32;
    else if (bad("kinds") && p->rank == 1)
        s.kind = OPI_SWAP_DERIVED;
    else if (bad("missing") && p->rank == 1)
        return 0;
    else if (bad("range"))
        s = (opi_swap_state){sizeof s, OPI_SWAP_SHARDED, "more", more, 40, 64, 1};
    else if (!bad("sizes") && !bad("kinds") && !bad("missing"))
        return 0;
    if ((rc = opi_swap_register(p->swap, &s, &err)))
        log_error("register", rc, err.message);
    return rc;
}

/* Calls out of order in step 2; each must refuse and change nothing. */
static void bad_calls(program *p, int64_t step)
{
    static char more[64];
    opi_swap_state s = {sizeof s, OPI_SWAP_SMALL, "late", more, sizeof more, 0, 0};
    opi_error err = {0};
    int64_t other;
    if (step != 2)
        return;
    if (bad("step-twice"))
        log_error("step", opi_swap_step(p->swap, &other, &err), err.message);
    if (bad("late"))
        log_error("register", opi_swap_register(p->swap, &s, &err), err.message);
    if (bad("watch"))
        log_error("watch", opi_swap_watch(p->swap, (int32_t)MPI_Comm_c2f(MPI_COMM_NULL), &err), err.message);
    if (bad("checkpoint"))
        log_error("checkpoint", opi_swap_checkpoint(p->swap, &err), err.message);
    if (bad("null"))
        log_error("register", opi_swap_register(p->swap, NULL, &err), err.message);
}

static void bad_outside(program *p)
{
    opi_error err = {0};
    if (bad("commit"))
        log_error("commit", opi_swap_commit(p->swap, 0, 0, &err), err.message);
    if (bad("update"))
        log_error("update", opi_swap_update(p->swap, &err), err.message);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static double busy_since(double start, int slow)
{
    if (!slow)
        return opi__now() - start + 1e-6;
    opi__pause(1e-6 * worker.opt.slow_us);
    return 1e-6 * worker.opt.slow_us;
}

static int32_t train(program *p)
{
    opi_error err = {0};
    int64_t step;
    int32_t more;
    while ((more = opi_swap_step(p->swap, &step, &err)) > 0) {
        if (p->recovered)
            worker_log("\"kind\":\"go\",\"step\":%lld,\"epoch\":%d", (long long)step, (int)p->m.view.epoch);
        p->recovered = p->fault_now = 0;
        inject_point("begin");
        bad_calls(p, step);
        if (p->opt.pace_us)
            opi__pause(1e-6 * p->opt.pace_us);
        int32_t fault = model_gradient(p, step);
        /* The straggler is told by what it says of itself; the others did next to nothing. */
        double busy = p->opt.straggler > 0 ? busy_since(opi__now(), p->opt.slow_rank == p->rank) : 0;
        if (!fault && !(fault = opi_swap_update(p->swap, &err)))
            fault = model_update(p, step);
        if (!fault && p->fault_now)
            fault = 77;
        if (bad("checkpoint-call") && step == 3)
            opi_swap_checkpoint(p->swap, &err);
        int32_t rc = opi_swap_commit(p->swap, fault, busy, &err);
        if (rc < 0) {
            more = rc;
            break;
        }
        bad_outside(p);
    }
    if (more < 0) {
        log_error("step", more, err.message);
        if (more == OPI_E_FENCED) {
            worker_log("\"kind\":\"kill\",\"rank\":%d,\"point\":\"fenced\"", p->rank);
            kill(getpid(), SIGKILL); /* one that was fenced is dead to the others */
        }
        return more;
    }
    opi_swap_counters c = {.struct_size = sizeof c};
    opi_swap_view v = {.struct_size = sizeof v};
    opi_swap_get_counters(p->swap, &c, NULL);
    opi_swap_get_view(p->swap, &v, NULL);
    if (v.role == OPI_SWAP_ACTIVE && !c.stopped)
        model_final(p);
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    worker_log("\"kind\":\"end\",\"stopped\":%d,\"role\":%d,\"slot\":%d,\"recoveries\":%llu,\"redone\":%llu,\"snapshots\":%llu,"
               "\"cpu_s\":%.3f",
               (int)c.stopped, (int)v.role, (int)v.slot, (unsigned long long)c.recoveries,
               (unsigned long long)c.steps_redone, (unsigned long long)c.snapshots,
               (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                   1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec));
    return 0;
}

static int32_t run(program *p, char **argv)
{
    options *o = &p->opt;
    char node[32], rack[32];
    opi_error err = {0};
    opi_swap_options w = {
        .struct_size = sizeof w, .world = (int32_t)MPI_Comm_c2f(MPI_COMM_WORLD), .dp = o->dp, .tp = o->tp, .pp = o->pp,
        .policy = o->policy, .steps = o->steps, .replicas = o->replicas, .interval = o->interval,
        .checkpoint_dir = o->dir, .checkpoint_fallback_dir = o->fallback,
        .checkpoint_interval = o->checkpoint_interval, .checkpoint_keep = o->keep, .evict = o->evict,
        .straggler = o->straggler, .wait_s = o->wait_s, .memory_limit = (uint64_t)o->memory, .event_log = o->log,
        .arguments = argv + 1,
        .callbacks = {.user = p, .assign = on_assign, .init = o->no_init ? NULL : on_init, .rebuild = on_rebuild,
                      .copy = o->copy ? on_copy : NULL, .event = on_event,
                      .resize = o->grow == 1 ? on_resize : NULL},
    };
    if (o->ranks_per_node) {
        snprintf(node, sizeof node, "n%d", p->rank / o->ranks_per_node);
        w.node = node;
    }
    if (o->ranks_per_node && o->nodes_per_rack) {
        snprintf(rack, sizeof rack, "r%d", p->rank / o->ranks_per_node / o->nodes_per_rack);
        w.rack = rack;
    }
    if (bad("options") && p->rank == 1)
        w.steps++;
    if (bad("size0"))
        w.struct_size = 0;
    int32_t rc = opi_swap_create(NULL, &w, &p->swap, &err);
    if (rc) {
        log_error("create", rc, err.message);
        return rc;
    }
    opi_swap_view v = {.struct_size = sizeof v};
    opi_swap_get_view(p->swap, &v, &err);
    p->rank = v.rank;
    p->m.view = v;
    inject_open();
    worker_log("\"kind\":\"start\",\"pid\":%d,\"slot\":%d", (int)getpid(), (int)v.slot);
    /* Slot holders of the first hour register before the first step, spares and newcomers in `assign`. */
    if (v.slot >= 0) {
        rc = model_room(p) ? model_register(p) : OPI_E_NOMEM;
        if (!rc && p->opt.bad)
            rc = bad_registration(p);
    }
    if (!rc)
        rc = train(p);
    opi_swap_destroy(p->swap);
    return rc;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static int number_option(options *o, const char *name, const char *value)
{
    const struct {
        const char *name;
        int *to;
    } table[] = {{"dp", &o->dp}, {"tp", &o->tp}, {"pp", &o->pp}, {"policy", &o->policy}, {"replicas", &o->replicas},
                 {"interval", &o->interval}, {"steps", &o->steps}, {"size", &o->size}, {"micro", &o->micro},
                 {"ranks-per-node", &o->ranks_per_node}, {"nodes-per-rack", &o->nodes_per_rack},
                 {"checkpoint-interval", &o->checkpoint_interval}, {"keep", &o->keep}, {"opaque", &o->opaque},
                 {"user-comm", &o->user_comm}, {"copy", &o->copy}, {"evict", &o->evict}, {"no-init", &o->no_init},
                 {"pace-us", &o->pace_us}, {"slow-rank", &o->slow_rank}, {"slow-us", &o->slow_us},
                 {"grow", &o->grow}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(name, table[i].name)) {
            *table[i].to = atoi(value);
            return 1;
        }
    return 0;
}

static int parse(options *o, int argc, char **argv)
{
    static const char *const events[] = {"", "kill", "freeze", "corrupt-own", "corrupt-held", "fault", "revoke", "fail",
                                         "exit", "fence", "thaw"};
    *o = (options){.dp = 2, .tp = 2, .pp = 1, .replicas = 1, .interval = 1, .steps = 20, .size = 1500, .micro = 12,
                   .slow_rank = -1, .seed = 1};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        int known = !strncmp(name, "--", 2);
        name += 2;
        const struct {
            const char *name;
            const char **to;
        } text[] = {{"dir", &o->dir}, {"fallback", &o->fallback}, {"log", &o->log}, {"bad", &o->bad},
                    {"pids", &o->pids}};
        int taken = known && number_option(o, name, value);
        for (size_t k = 0; known && k < sizeof text / sizeof *text; k++)
            if (!strcmp(name, text[k].name)) {
                *text[k].to = value;
                taken = 1;
            }
        for (int k = 1; known && k < (int)(sizeof events / sizeof *events); k++)
            if (!strcmp(name, events[k]))
                taken = inject_parse(o, k, value);
        if (!strcmp(name, "seed") && (taken = 1))
            o->seed = strtoull(value, NULL, 10);
        if (!strcmp(name, "fsize") && (taken = 1))
            o->fsize = atol(value);
        if (!strcmp(name, "memory") && (taken = 1))
            o->memory = atol(value);
        if (!strcmp(name, "straggler") && (taken = 1))
            o->straggler = atof(value);
        if (!strcmp(name, "wait") && (taken = 1))
            o->wait_s = atof(value);
        if (!taken) {
            fprintf(stderr, "worker: what is %s %s?\n", argv[i], value);
            return 0;
        }
    }
    return argc % 2;
}

int main(int argc, char **argv)
{
    int level = 0, rank = 0;
    if (!parse(&worker.opt, argc, argv))
        return 2;
    if (!bad("sigpipe"))
        opi_swap_ignore_sigpipe();
    if (MPI_Init_thread(&argc, &argv, bad("multiple") ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level))
        return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    worker.rank = rank;
    worker.user = MPI_COMM_NULL;
    worker.log = worker.opt.log ? open(worker.opt.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : 1;
    if (worker.opt.fsize) {
        struct rlimit most = {(rlim_t)worker.opt.fsize, (rlim_t)worker.opt.fsize};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &most);
    }
    int32_t rc = run(&worker, argv);
    worker_log("\"kind\":\"left\",\"code\":%d", (int)rc);
    MPI_Finalize();
    return rc ? 1 : 0;
}
