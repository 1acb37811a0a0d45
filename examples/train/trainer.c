/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "grammar.h"
#include "random.h"

enum { PADDING_STRIDE = 512 }; /* one number in so many changes in a step: one a page */

double trainer_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

gpt_shape trainer_shape(const options *o, int tp_width, int tp_rank)
{
    return (gpt_shape){.layers = o->layers, .width = o->width, .heads = o->heads, .context = o->context,
                       .vocab = GRAMMAR_VOCAB, .samples = o->batch / o->micro_batches, .tp_width = tp_width,
                       .tp_rank = tp_rank};
}

/* ---- memory ---- */

static void free_shards(trainer *t)
{
    free(t->mean);
    free(t->square);
    free(t->padding);
    for (int i = 0; i < t->vectors; i++)
        free(t->vector[i]);
    t->mean = t->square = NULL;
    t->padding = NULL;
    t->vectors = 0;
}

void trainer_free(trainer *t)
{
    free_shards(t);
    free(t->parameters);
    free(t->history);
    free(t->losses);
    free(t->tokens);
    free(t->model.positions);
    gpt_free(&t->model);
    parallel_free(&t->net);
}

/* A slot's whole life: what does not depend on the data-parallel width. */
static int room_once(trainer *t, const gpt_shape *shape)
{
    const options *o = &t->opt;
    if (t->parameters)
        return 1;
    t->parameters = aligned_room(t->net.parameters * 8);
    t->history_room = (o->steps + 1023) / 1024 * 1024;
    t->history = aligned_room(t->history_room * (int64_t)sizeof *t->history);
    t->losses = aligned_room(o->micro_batches * 8);
    t->tokens = aligned_room((int64_t)shape->samples * (shape->context + 1) * (int64_t)sizeof *t->tokens);
    t->model.positions = aligned_room((int64_t)shape->context * shape->width * 8);
    return t->parameters && t->history && t->losses && t->tokens && t->model.positions;
}

int trainer_room(trainer *t)
{
    const options *o = &t->opt;
    parallel *net = &t->net;
    gpt_shape shape = trainer_shape(o, t->view.tp_width, t->view.tp);
    branch branches[TREE_NODES];
    net->dp_rank = t->view.dp;
    net->dp_width = t->view.dp_width;
    net->tp_rank = t->view.tp;
    net->tp_width = t->view.tp_width;
    net->micro_batches = o->micro_batches;
    net->parameters = gpt_parameters(&shape);
    if (!room_once(t, &shape) || !gpt_room(&t->model, &shape) ||
        !parallel_room(net, (int64_t)shape.samples * shape.context * shape.width))
        return 0;
    free_shards(t);
    opi_swap_range((uint64_t)net->parameters, net->dp_width, net->dp_rank, &t->begin, &t->end);
    t->padding_total = (uint64_t)o->state_mib * (1u << 20) / 8 * (uint64_t)o->dp;
    opi_swap_range(t->padding_total, net->dp_width, net->dp_rank, &t->padding_begin, &t->padding_end);
    t->mean = aligned_room((int64_t)(t->end - t->begin) * 8);
    t->square = aligned_room((int64_t)(t->end - t->begin) * 8);
    t->padding = aligned_room((int64_t)(t->padding_end - t->padding_begin) * 8);
    int wanted = parallel_branches(net, net->dp_rank, branches), largest = 1;
    for (int i = 0; i < wanted; i++)
        largest = branches[i].end - branches[i].begin > largest ? branches[i].end - branches[i].begin : largest;
    for (; largest > 1; largest = (largest + 1) / 2)
        wanted++; /* one a level below the deepest branch */
    for (; t->vectors < wanted; t->vectors++)
        if (!(t->vector[t->vectors] = aligned_room(net->parameters * 8)))
            return 0;
    return t->mean && t->square && t->padding;
}

/* ---- padding: state that is only there to be large; its numbers are known, so a wrong restore is seen ---- */

static uint64_t padding_value(const trainer *t, uint64_t i, int64_t steps)
{
    return random_mix(i + ((uint64_t)t->view.tp << 48), i % PADDING_STRIDE ? 0 : (uint64_t)steps);
}

/* The first number from padding_begin on that changes. */
static uint64_t first_changing(const trainer *t)
{
    return (t->padding_begin + PADDING_STRIDE - 1) / PADDING_STRIDE * PADDING_STRIDE;
}

int trainer_padding_right(const trainer *t, int all)
{
    for (uint64_t i = all ? t->padding_begin : first_changing(t); i < t->padding_end; i += all ? 1 : PADDING_STRIDE)
        if (t->padding[i - t->padding_begin] != padding_value(t, i, t->at.steps))
            return 0;
    return 1;
}

static void change_padding(trainer *t, int64_t steps)
{
    for (uint64_t i = first_changing(t); i < t->padding_end; i += PADDING_STRIDE)
        t->padding[i - t->padding_begin] = padding_value(t, i, steps);
}

void trainer_initialize(trainer *t)
{
    size_t owned = (size_t)(t->end - t->begin) * 8;
    gpt_initialize(&t->model.shape, t->opt.seed, t->parameters);
    memset(t->mean, 0, owned);
    memset(t->square, 0, owned);
    memset(t->history, 0, (size_t)t->history_room * sizeof *t->history);
    t->at = (position){0, 0, random_mix(t->opt.seed, 0)};
    for (uint64_t i = t->padding_begin; i < t->padding_end; i++)
        t->padding[i - t->padding_begin] = padding_value(t, i, 0);
}

/* ---- a step ---- */

/* The gradient of micro-batches [begin, end) into vector[into], with the levels from `level` on as scratch. */
static int32_t branch_gradient(trainer *t, int begin, int end, int into, int level)
{
    if (end - begin == 1) {
        const gpt_shape *s = &t->model.shape;
        for (int i = 0; i < s->samples; i++)
            grammar_sample(t->at.random, t->at.samples + (int64_t)begin * s->samples + i, s->context + 1,
                           t->tokens + (int64_t)i * (s->context + 1));
        double factor = 1.0 / ((double)t->opt.batch * s->context);
        return gpt_gradient(&t->model, &t->net, t->parameters, t->tokens, factor, t->vector[into], &t->losses[begin]);
    }
    int middle = begin + (end - begin) / 2;
    int32_t fault = branch_gradient(t, begin, middle, into, level);
    if (!fault)
        fault = branch_gradient(t, middle, end, level, level + 1);
    for (int64_t i = 0; !fault && i < t->net.parameters; i++)
        t->vector[into][i] += t->vector[level][i];
    return fault;
}

int32_t trainer_gradients(trainer *t, int64_t step)
{
    branch list[TREE_NODES];
    int count = parallel_branches(&t->net, t->net.dp_rank, list);
    int32_t fault = 0;
    t->step = step;
    t->moments = 0;
    t->net.waited_s = t->slept_s = 0;
    t->started = parallel_clock();
    t->started_at = trainer_clock();
    trainer_dies_at(t, step, PHASE_START);
    for (int i = 0; i < count && !fault; i++)
        fault = branch_gradient(t, list[i].begin, list[i].end, i, count);
    if (!fault)
        fault = trainer_device(t);
    trainer_dies_at(t, step, PHASE_REDUCE);
    if (!fault)
        fault = parallel_reduce(&t->net, t->vector, &t->gradient);
    return fault ? fault : parallel_losses(&t->net, t->losses);
}

static uint64_t hash_words(const double *values, int64_t count)
{
    uint64_t hash = 0, word;
    for (int64_t i = 0; i < count; i++) {
        memcpy(&word, values + i, 8);
        hash = random_mix(hash, word);
    }
    return hash;
}

int32_t trainer_update(trainer *t, int64_t step)
{
    const int64_t count = (int64_t)(t->end - t->begin), half = count / 2;
    double *own = t->parameters + t->begin;
    uint64_t hash[64], all = 0; /* --tp is at most 64 */
    adamw_update(&t->adam, step, half, t->gradient, t->mean, t->square, own);
    trainer_dies_at(t, step, PHASE_UPDATE);
    adamw_update(&t->adam, step, count - half, t->gradient + half, t->mean + half, t->square + half, own + half);
    change_padding(t, step + 1);
    trainer_dies_at(t, step, PHASE_SPREAD);
    int32_t fault = parallel_spread(&t->net, t->parameters);
    if (!fault)
        fault = parallel_gather_tp(&t->net, hash_words(t->parameters, t->net.parameters), hash);
    if (fault)
        return fault;
    record *r = &t->history[step];
    r->loss = 0;
    for (int i = 0; i < t->opt.micro_batches; i++)
        r->loss += t->losses[i];
    r->loss /= (double)t->opt.batch * t->opt.context;
    for (int i = 0; i < t->net.tp_width; i++)
        all = random_mix(all, hash[i]);
    r->hash = all;
    t->at = (position){step + 1, t->at.samples + t->opt.batch, random_mix(t->at.random, (uint64_t)step)};
    trainer_dies_at(t, step, PHASE_COMMIT);
    return 0;
}

double trainer_busy(const trainer *t)
{
    return parallel_clock() - t->started - t->net.waited_s + t->slept_s;
}
