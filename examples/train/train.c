/* SPDX-License-Identifier: Apache-2.0 */
/* A small GPT trained over data- and tensor-parallel ranks that goes on when ranks die. What libomnipilot-swap needs of
 * a training program is all in this file: the loop in `train`, what state there is in `register_states`, and three
 * callbacks. The rest of the folder is the training program itself.
 *
 *     omnipilot-mpirun -n 6 train --dp 2 --tp 2 --kill 10:0 --kill 20:3       # four slots, two spares, two deaths
 */
#include <math.h>
#include <mpi.h>
#include <omnipilot/swap.h>
#include <stdio.h>
#include <unistd.h>

#include "check.h"
#include "report.h"
#include "trainer.h"

/* OpenBLAS: one thread, so that a product has the same bits whatever the number of cores. */
extern void openblas_set_num_threads(int count);

typedef struct program {
    trainer t;
    report r;
} program;

/* ---- what the library calls ---- */

/* The parameters are the same on all data-parallel rows: a copy is there when a rank is lost. The moments of a range are
 * on one slot only: the library keeps them on others in memory. The position table can be computed. */
static int32_t register_states(trainer *t)
{
    uint64_t positions = (uint64_t)t->opt.context * (uint64_t)t->opt.width * 8, count = (uint64_t)t->net.parameters;
    const opi_swap_state states[] = {
        {sizeof *states, OPI_SWAP_REPLICATED, "parameters", t->parameters, count * 8, 0, 0},
        {sizeof *states, OPI_SWAP_SHARDED, "mean", t->mean, (t->end - t->begin) * 8, count, 8},
        {sizeof *states, OPI_SWAP_SHARDED, "square", t->square, (t->end - t->begin) * 8, count, 8},
        {sizeof *states, OPI_SWAP_SMALL, "position", &t->at, sizeof t->at, 0, 0},
        {sizeof *states, OPI_SWAP_SMALL, "history", t->history, (uint64_t)t->history_room * sizeof *t->history, 0, 0},
        {sizeof *states, OPI_SWAP_DERIVED, "positions", t->model.positions, positions, 0, 0},
        {sizeof *states, OPI_SWAP_SHARDED, "padding", t->padding, (t->padding_end - t->padding_begin) * 8,
         t->padding_total, 8}, /* only with --state-mib */
    };
    size_t number = sizeof states / sizeof *states - (t->padding_total ? 0 : 1);
    opi_error err;
    for (size_t i = 0; i < number; i++) {
        if (opi_swap_register(t->swap, &states[i], &err)) {
            fprintf(stderr, "train: %s\n", err.message);
            return 1;
        }
    }
    return 0;
}

/* A slot for this process, or other widths: room for what it needs, registered. */
static int32_t assign(void *user, const opi_swap_view *view)
{
    trainer *t = &((program *)user)->t;
    if (view->slot != t->view.slot)
        t->spent_step = INT64_MAX; /* until the recovery says which step failed; see event() */
    t->view = *view;
    if (!trainer_room(t)) {
        fprintf(stderr, "train: not enough memory for slot %d\n", view->slot);
        return 1;
    }
    for (int i = 0; i < t->opt.context * t->opt.width; i++)
        t->model.positions[i] = NAN; /* derived state that was not rebuilt would be seen */
    return register_states(t);
}

static int32_t init(void *user, const opi_swap_view *view)
{
    (void)view;
    trainer_initialize(&((program *)user)->t);
    return 0;
}

/* State is there, communicators are new. */
static int32_t rebuild(void *user, const opi_swap_view *view)
{
    program *p = user;
    trainer *t = &p->t;
    t->view = *view;
    t->net.dp = MPI_Comm_f2c(view->comm_dp);
    t->net.tp = MPI_Comm_f2c(view->comm_tp);
    gpt_positions(&t->model.shape, t->model.positions);
    if (!trainer_padding_right(t, 0)) {
        fprintf(stderr, "train: slot %d has other padding than step %lld\n", view->slot, (long long)t->at.steps);
        return 1;
    }
    return report_holders(&p->r, view);
}

static void event(void *user, const opi_swap_event *event)
{
    program *p = user;
    trainer *t = &p->t;
    report_event(&p->r, event);
    if (event->kind != OPI_SWAP_RECOVERED)
        return;
    if (t->spent_step == INT64_MAX)
        t->spent_step = event->step + event->redone;
    opi_swap_get_view(t->swap, &t->view, NULL);
    if (t->view.role == OPI_SWAP_SPARE)
        p->r.knows = 0; /* others go on without this process, at least for now */
}

/* ---- the loop ---- */

static int train(program *p)
{
    trainer *t = &p->t;
    opi_error err;
    int64_t step;
    int32_t more, rc = 0;
    while ((more = opi_swap_step(t->swap, &step, &err)) > 0) {
        report_begin(&p->r, t, step);
        int32_t fault = trainer_gradients(t, step);
        if (!fault && !(fault = opi_swap_update(t->swap, &err)))
            fault = trainer_update(t, step);
        rc = opi_swap_commit(t->swap, fault, trainer_busy(t), &err);
        if (rc < 0)
            break;
        if (!fault)
            report_step(&p->r, t, step);
        trainer_dies_at(t, step, PHASE_DONE);
    }
    opi_swap_get_view(t->swap, &t->view, NULL);
    if (more < 0 || rc < 0) {
        fprintf(stderr, "train: rank %d: %s\n", t->view.rank, err.message);
        /* The others go on without a rank that was declared dead: it has no part in MPI_Finalize, and its end is no
         * error of the job. */
        if (more == OPI_E_FENCED || rc == OPI_E_FENCED)
            _exit(0);
        return 0;
    }
    int right = report_end(&p->r, t);
    if (!right)
        fprintf(stderr, "train: %s could not be written\n", t->opt.losses);
    if (t->at.steps == t->opt.steps && t->view.role == OPI_SWAP_ACTIVE && !trainer_padding_right(t, 1)) {
        fprintf(stderr, "train: slot %d has wrong padding in the end\n", t->view.slot);
        right = 0;
    }
    return right;
}

static int run(program *p, int rank, char **argv)
{
    const options *o = &p->t.opt;
    char node[32];
    opi_error err = {.message = "not enough memory"};
    MPI_Comm parent;
    opi_swap_options wanted = {
        .struct_size = sizeof wanted, .world = MPI_Comm_c2f(MPI_COMM_WORLD), .dp = o->dp, .tp = o->tp,
        .policy = o->policy, .steps = o->steps, .replicas = o->replicas, .interval = o->interval,
        .checkpoint_dir = o->checkpoint_dir, .checkpoint_interval = o->checkpoint_every,
        .checkpoint_keep = o->checkpoint_keep, .evict = o->evict, .straggler = o->straggler, .wait_s = o->wait_s,
        .event_log = o->event_log, .arguments = argv + 1,
        .callbacks = {.user = p, .assign = assign, .init = init, .rebuild = rebuild, .event = event},
    };
    if (o->ranks_per_node) {
        snprintf(node, sizeof node, "node-%d", rank / o->ranks_per_node);
        wanted.node = node;
    }
    MPI_Comm_get_parent(&parent); /* of a process that was started in place of a lost one */
    p->t.view.struct_size = sizeof p->t.view;
    p->t.view.slot = parent == MPI_COMM_NULL && rank < o->dp * o->tp ? rank : -1;
    p->t.spent_step = -1;
    p->t.net.moment = trainer_moment;
    p->t.net.user = &p->t;
    p->t.adam = (adamw){.rate = o->rate, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .decay = 0.01, .warmup = 10};
    if (!report_open(&p->r, o, rank) || opi_swap_create(NULL, &wanted, &p->t.swap, &err)) {
        fprintf(stderr, "train: rank %d: %s\n", rank, err.message);
        return 0;
    }
    int right = train(p);
    opi_swap_destroy(p->t.swap);
    report_close(&p->r);
    trainer_free(&p->t);
    return right;
}

int main(int argc, char **argv)
{
    static program p;
    char problem[200];
    int level, rank, right = 0;
    opi_swap_ignore_sigpipe();
    setvbuf(stdout, NULL, _IOLBF, 1 << 16); /* lines of several ranks do not mix */
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level))
        return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    openblas_set_num_threads(1);
    if (!options_parse(argc, argv, &p.t.opt, problem, sizeof problem)) {
        if (rank == 0)
            fprintf(stderr, "train: %s\n", problem);
    } else if (p.t.opt.help) {
        if (rank == 0)
            fputs(options_help, stdout);
        right = 1;
    } else {
        right = p.t.opt.check_gradients ? check_gradients(&p.t.opt) : run(&p, rank, argv);
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
