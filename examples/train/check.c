/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "grammar.h"
#include "trainer.h"

enum { PER_TENSOR = 4 }; /* elements compared with finite differences */

typedef struct trial {
    gpt_shape shape;
    gpt model;
    parallel net;
    int64_t count;
    double *parameters, *gradient;
    int32_t *tokens;
} trial;

static int trial_open(trial *t, const options *o, MPI_Comm tp)
{
    MPI_Comm_size(tp, &t->net.tp_width);
    MPI_Comm_rank(tp, &t->net.tp_rank);
    t->shape = trainer_shape(o, t->net.tp_width, t->net.tp_rank);
    t->count = gpt_parameters(&t->shape);
    t->net.tp = tp;
    t->net.dp_width = t->net.micro_batches = 1;
    t->net.parameters = t->count;
    t->parameters = aligned_room(t->count * 8);
    t->gradient = aligned_room(t->count * 8);
    t->tokens = aligned_room((int64_t)t->shape.samples * (t->shape.context + 1) * 4);
    t->model.positions = aligned_room((int64_t)t->shape.context * t->shape.width * 8);
    if (!t->parameters || !t->gradient || !t->tokens || !t->model.positions || !gpt_room(&t->model, &t->shape) ||
        !parallel_room(&t->net, (int64_t)t->shape.samples * t->shape.context * t->shape.width))
        return 0;
    gpt_initialize(&t->shape, o->seed, t->parameters);
    gpt_positions(&t->shape, t->model.positions);
    for (int i = 0; i < t->shape.samples; i++)
        grammar_sample(o->seed, i, t->shape.context + 1, t->tokens + (int64_t)i * (t->shape.context + 1));
    return 1;
}

static void trial_close(trial *t)
{
    free(t->parameters);
    free(t->gradient);
    free(t->tokens);
    free(t->model.positions);
    gpt_free(&t->model);
    parallel_free(&t->net);
}

static double loss_at(trial *t, double *gradient)
{
    double loss = NAN;
    return gpt_gradient(&t->model, &t->net, t->parameters, t->tokens, 1.0, gradient, &loss) ? NAN : loss;
}

/* The largest difference, relative to the largest slope of the same tensor. */
static double against_differences(trial *t, double *scratch)
{
    double worst = 0;
    loss_at(t, t->gradient);
    for (int index = 0; index < gpt_tensors(&t->shape); index++) {
        tensor place = gpt_tensor(&t->shape, index);
        int64_t size = (int64_t)place.rows * place.cols;
        double largest = 1e-6;
        for (int64_t i = 0; i < size; i++)
            largest = fmax(largest, fabs(t->gradient[place.offset + i]));
        for (int i = 0; i < PER_TENSOR; i++) {
            int64_t element = place.offset + (size - 1) * i / (PER_TENSOR - 1);
            const double kept = t->parameters[element], move = 1e-5;
            t->parameters[element] = kept + move;
            double above = loss_at(t, scratch);
            t->parameters[element] = kept - move;
            double slope = (above - loss_at(t, scratch)) / (2 * move);
            t->parameters[element] = kept;
            double error = fabs(slope - t->gradient[element]) / largest;
            worst = error <= worst ? worst : error; /* not-a-number stays */
        }
    }
    return worst;
}

/* The same of the split model's gradient and loss against the whole one's. */
static double against_whole(trial *split, const trial *whole, double loss)
{
    double worst = fabs(loss_at(split, split->gradient) - loss) / loss;
    for (int index = 0; index < gpt_tensors(&split->shape); index++) {
        tensor mine = gpt_tensor(&split->shape, index), all = gpt_tensor(&whole->shape, index);
        double largest = 1e-6;
        for (int64_t i = 0; i < (int64_t)all.rows * all.cols; i++)
            largest = fmax(largest, fabs(whole->gradient[all.offset + i]));
        for (int64_t i = 0; i < (int64_t)mine.rows * mine.cols; i++) {
            int64_t there = all.offset + gpt_whole_element(&split->shape, index, i);
            double error = fabs(split->gradient[mine.offset + i] - whole->gradient[there]) / largest;
            worst = error <= worst ? worst : error;
        }
    }
    return worst;
}

int check_gradients(const options *o)
{
    trial whole = {0}, split = {0};
    double worst[2] = {NAN, NAN}, all[2] = {NAN, NAN};
    int size, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (size != 1 && size != o->tp) {
        if (rank == 0)
            fprintf(stderr, "train: --check-gradients runs on 1 rank or on --tp %d ranks, not on %d\n", o->tp, size);
        return 0;
    }
    if (trial_open(&whole, o, MPI_COMM_SELF) && trial_open(&split, o, MPI_COMM_WORLD)) {
        double *scratch = aligned_room(whole.count * 8);
        if (scratch) {
            worst[0] = against_differences(&whole, scratch);
            worst[1] = against_whole(&split, &whole, loss_at(&whole, whole.gradient));
        }
        free(scratch);
    }
    trial_close(&whole);
    trial_close(&split);
    /* The largest on any rank; a rank that could not compute it says so by not-a-number, which is below no limit. */
    for (int i = 0; i < 2; i++)
        worst[i] = worst[i] >= 0 ? worst[i] : INFINITY;
    if (MPI_Allreduce(worst, all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD))
        return 0;
    int right = all[0] < 1e-6 && all[1] < 1e-10;
    if (rank == 0)
        printf("gradients: %.2g from finite differences (limit 1e-06), split over %d ranks %.2g from the whole model "
               "(limit 1e-10): %s\n", all[0], size, all[1], right ? "right" : "WRONG");
    return right;
}
