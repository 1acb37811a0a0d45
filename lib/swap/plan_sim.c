/* SPDX-License-Identifier: Apache-2.0 */
/* One replay, event by event. Work is counted in steps of full width. The hot-swap run goes back to its last complete
 * snapshot after a failure, the run that restarts to its last checkpoint. What a formula leaves out is here: failures
 * during recovery, spares that die, nodes that come back, waiting. */
#include "swap/planner.h"

#include <math.h>
#include <string.h>

enum { RUNNING, RECOVERING, WAITING, DOWN, RESTARTING };

typedef struct replay {
    const opi__plan_setup *s;
    opi__world w;
    opi__tally t;
    int swap;              /* the hot-swap run; else the one that restarts */
    int32_t state;
    double now, until;     /* of the present state */
    double began, from;    /* RUNNING: since when, and the progress then */
    double progress;       /* steps, when not running */
    double snapshot, saved; /* last complete ones */
    double ready;          /* DOWN: the checkpoint of a stop is written then */
    double complete;       /* when all copies exist again */
    double wait_until;
    double regret;         /* work lost to a narrow run since it became narrow, in seconds of the full one */
} replay;

static double width(const replay *r)
{
    return (double)r->s->grid.dp / r->w.grid.dp;
}

/* Seconds of a step now, the run's own waiting included for the hot-swap run. */
static double step_now(const replay *r)
{
    return (r->swap ? r->s->step : r->s->o.step_s) * width(r);
}

/* Progress after `dt` seconds of running, and what of it is in a checkpoint (of the run that restarts). */
static double progress_after(const replay *r, double dt, double *saved)
{
    double step = step_now(r), work = r->s->saved_interval * width(r), cycle = work + r->s->o.checkpoint_stall_s;
    if (r->swap) {
        *saved = r->saved;
        return r->from + dt / step;
    }
    double cycles = floor(dt / cycle), rest = fmin(dt - cycles * cycle, work);
    *saved = r->from + cycles * work / step;
    return *saved + rest / step;
}

/* Last multiple of `every` steps that was complete `late` seconds before progress x. */
static double last_complete(double x, double every, double late_steps, double known)
{
    return fmax(known, floor((x - late_steps) / every + 1e-9) * every);
}

static void stop_running(replay *r)
{
    const opi__plan_setup *s = r->s;
    double dt = r->now - r->began, saved, x = progress_after(r, dt, &saved), step = step_now(r);
    double done = (x - r->from) * s->o.step_s;
    r->t.useful += done; /* what is lost later moves to redone */
    r->t.narrow += done * (width(r) - 1);
    r->t.stalled += dt - done * width(r);
    if (r->swap) {
        double every = fmax(1, rint(s->o.checkpoint_interval_s / step));
        r->snapshot = last_complete(x, s->o.snapshot_interval, s->latency / step, r->snapshot);
        saved = last_complete(x, every, s->o.checkpoint_s / step, r->saved);
    }
    r->saved = saved;
    r->progress = x;
}

static void go_back(replay *r, double to)
{
    double lost = r->progress - to;
    r->t.steps_redone += lost;
    r->t.redone += lost * r->s->o.step_s;
    r->t.useful -= lost * r->s->o.step_s;
    r->progress = to;
    r->snapshot = fmin(r->snapshot, to);
}

/* Share of the work that is lost to being narrower than the live GPUs allow. */
static double regret_rate(const replay *r)
{
    int32_t better = opi__world_rows(&r->w) - r->w.grid.dp;
    return better > 0 ? (double)better / r->s->grid.dp : 0;
}

/* A narrow run is started again at a greater width once being narrow has cost as much as a restart does (the rule for
 * renting skis: at most twice what the best choice in hindsight costs). */
static void plan_widening(replay *r)
{
    double rate = regret_rate(r), price = r->s->o.checkpoint_s + r->s->o.restart_s;
    r->until = rate > 0 ? r->now + fmax(0, price - r->regret) / rate : INFINITY;
}

static void run(replay *r)
{
    r->state = RUNNING;
    r->began = r->now;
    r->from = r->progress;
    if (r->w.grid.dp == r->s->grid.dp)
        r->regret = 0;
    plan_widening(r);
}

/* Starts the job again if there are nodes for it. */
static void restart(replay *r)
{
    int32_t least = r->s->o.policy == OPI_PLAN_SHRINK ? 1 : r->s->grid.dp;
    if (opi__world_refill(&r->w, least)) {
        r->state = RESTARTING;
        r->until = fmax(r->now, r->ready) + r->s->o.restart_s;
        r->t.restarts++;
    } else {
        r->state = DOWN;
        r->until = INFINITY;
    }
}

static void stop(replay *r)
{
    r->t.stops++;
    r->saved = r->progress; /* the survivors' snapshot is written before the job ends */
    r->ready = r->now + r->s->o.checkpoint_s;
    restart(r);
}

static void recover(replay *r, double seconds)
{
    r->state = RECOVERING;
    r->until = r->now + seconds;
}

/* A swap, or what the policy says when spares have run out. */
static void swap(replay *r)
{
    int32_t rows = r->w.grid.dp;
    if (opi__world_assign(&r->w)) {
        r->t.swaps++;
        recover(r, r->s->recover);
    } else if (r->s->o.policy == OPI_PLAN_WAIT) {
        if (r->state != WAITING)
            r->wait_until = r->now + r->s->o.wait_h * 3600;
        r->state = WAITING;
        r->until = r->wait_until;
    } else if (r->s->o.policy == OPI_PLAN_SHRINK && opi__world_shrink(&r->w)) {
        r->t.swaps++;
        r->t.shrinks += r->w.grid.dp < rows;
        recover(r, r->s->recover);
    } else {
        stop(r);
    }
}

static void fall_back(replay *r)
{
    r->t.fallbacks++;
    go_back(r, r->saved);
    r->ready = r->now;
    restart(r);
}

static int32_t on_failure(replay *r, const opi__arrival *a, opi_error *err)
{
    int32_t working, idle, status;
    int was_running = r->state == RUNNING;
    if (was_running && r->w.n_touched && r->now >= r->complete)
        opi__world_replicated(&r->w); /* before this failure is counted among the losses since */
    status = opi__world_fail(&r->w, a, &working, &idle, err);
    if (status || working + idle == 0)
        return status;
    r->t.failures += working > 0;
    if (r->state == DOWN || r->state == RESTARTING) {
        if (working)
            restart(r);
        return OPI_OK;
    }
    if (!working) { /* a spare: the job does not notice */
        if (was_running && !r->swap)
            plan_widening(r);
        return OPI_OK;
    }
    if (was_running)
        stop_running(r);
    if (!r->swap) {
        go_back(r, r->saved);
        r->ready = r->now;
        restart(r);
    } else if (opi__world_copies_lost(&r->w)) {
        fall_back(r);
    } else {
        go_back(r, fmin(r->progress, r->snapshot));
        swap(r);
    }
    return OPI_OK;
}

static void on_timer(replay *r)
{
    switch (r->state) {
    case RECOVERING:
        opi__world_restored(&r->w);
        run(r);
        r->complete = r->now + r->s->o.snapshot_interval * step_now(r) + r->s->latency;
        break;
    case WAITING:
        stop(r);
        break;
    case RESTARTING:
        opi__world_restored(&r->w);
        opi__world_replicated(&r->w);
        r->snapshot = r->progress;
        run(r);
        break;
    case RUNNING: /* a planned restart to a greater width: a checkpoint first, so nothing is lost */
        stop_running(r);
        r->regret = 0;
        r->saved = r->progress;
        r->ready = r->now + r->s->o.checkpoint_s;
        restart(r);
        break;
    default:
        break;
    }
}

static void on_repair(replay *r)
{
    opi__world_repair(&r->w);
    if (r->state == WAITING && r->w.n_spare >= r->w.n_lost)
        swap(r);
    else if (r->state == DOWN)
        restart(r);
    else if (r->state == RUNNING)
        plan_widening(r);
}

static void pass_time(replay *r, double to)
{
    double dt = to - r->now;
    r->t.node_seconds_down += dt * r->w.down_nodes;
    switch (r->state) {
    case RUNNING: r->regret += dt * regret_rate(r); break;
    case RECOVERING: r->t.recovering += dt; break;
    case RESTARTING: r->t.restarting += dt; break;
    default: r->t.waiting += dt; break;
    }
    r->now = to;
}

static int32_t play(replay *r, opi__arrivals *arrivals, opi_error *err)
{
    opi__arrival a;
    int32_t status = opi__arrivals_next(arrivals, &a, err);
    run(r);
    while (!status) {
        double repair = opi__world_next_repair(&r->w), next = fmin(fmin(a.at, repair), r->until);
        if (next >= r->s->horizon)
            break;
        pass_time(r, next);
        if (r->until <= next) {
            on_timer(r);
        } else if (repair <= next) {
            on_repair(r);
        } else {
            status = on_failure(r, &a, err);
            status = status ? status : opi__arrivals_next(arrivals, &a, err);
        }
    }
    if (status)
        return status;
    pass_time(r, r->s->horizon);
    if (r->state == RUNNING)
        stop_running(r);
    r->t.steps = r->progress;
    return OPI_OK;
}

int32_t opi__plan_simulate(opi_ctx *ctx, const opi__plan_setup *s, int32_t way, int32_t spares, uint64_t seed,
                           opi__tally *out, opi_error *err)
{
    replay r;
    opi__arrivals arrivals;
    memset(&r, 0, sizeof r);
    r.s = s;
    r.swap = way == OPI_PLAN_SWAP;
    r.until = INFINITY;
    int32_t status = opi__world_make(&r.w, ctx, s, spares, r.swap ? s->o.replicas : 0, err);
    if (status)
        return status;
    opi__arrivals_start(&arrivals, ctx, s, seed);
    status = play(&r, &arrivals, err);
    if (!status)
        *out = r.t;
    opi__arrivals_end(&arrivals);
    opi__world_free(&r.w);
    return status;
}
