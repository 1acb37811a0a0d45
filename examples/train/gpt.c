/* SPDX-License-Identifier: Apache-2.0 */
#include "gpt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"
#include "random.h"

enum { ALL = 0, BY_ROWS = 1, BY_COLS = 2 };

/* Tensors: the embedding, then those of each layer, then gain and bias of the last norm. */
enum {
    GAIN1, BIAS1, QKV_WEIGHT, QKV_BIAS, OUT_WEIGHT, OUT_BIAS,
    GAIN2, BIAS2, UP_WEIGHT, UP_BIAS, DOWN_WEIGHT, DOWN_BIAS,
    PER_LAYER
};

int gpt_tensors(const gpt_shape *s)
{
    return s->layers * PER_LAYER + 3;
}

/* Everything but the offset. */
static tensor describe(const gpt_shape *s, int index)
{
    int width = s->width, part = width / s->tp_width;
    double narrow = 0.02 / sqrt(2.0 * s->layers); /* what is added to the residual stream starts small */
    if (index == 0)
        return (tensor){0, s->vocab, width, ALL, 1, 0.0, 0.02};
    if (index == gpt_tensors(s) - 2)
        return (tensor){0, width, 1, ALL, 1, 1.0, 0.0};
    if (index == gpt_tensors(s) - 1)
        return (tensor){0, width, 1, ALL, 1, 0.0, 0.0};
    switch ((index - 1) % PER_LAYER) {
    case GAIN1:
    case GAIN2: return (tensor){0, width, 1, ALL, 1, 1.0, 0.0};
    case QKV_WEIGHT: return (tensor){0, 3 * part, width, BY_ROWS, 3, 0.0, 0.02};
    case QKV_BIAS: return (tensor){0, 3 * part, 1, BY_ROWS, 3, 0.0, 0.0};
    case OUT_WEIGHT: return (tensor){0, width, part, BY_COLS, 1, 0.0, narrow};
    case UP_WEIGHT: return (tensor){0, 4 * part, width, BY_ROWS, 1, 0.0, 0.02};
    case UP_BIAS: return (tensor){0, 4 * part, 1, BY_ROWS, 1, 0.0, 0.0};
    case DOWN_WEIGHT: return (tensor){0, width, 4 * part, BY_COLS, 1, 0.0, narrow};
    default: return (tensor){0, width, 1, ALL, 1, 0.0, 0.0}; /* BIAS1, BIAS2, OUT_BIAS, DOWN_BIAS */
    }
}

tensor gpt_tensor(const gpt_shape *s, int index)
{
    tensor t = describe(s, index);
    for (int i = 0; i < index; i++) {
        tensor before = describe(s, i);
        t.offset += (int64_t)before.rows * before.cols;
    }
    return t;
}

int64_t gpt_parameters(const gpt_shape *s)
{
    tensor last = gpt_tensor(s, gpt_tensors(s) - 1);
    return last.offset + last.rows;
}

int64_t gpt_whole_element(const gpt_shape *s, int index, int64_t element)
{
    tensor t = describe(s, index);
    int64_t row = element / t.cols, col = element % t.cols, cols = t.cols;
    if (t.split == BY_ROWS) {
        int64_t group = t.rows / t.groups;
        row = (row / group * s->tp_width + s->tp_rank) * group + row % group;
    } else if (t.split == BY_COLS) {
        col += (int64_t)s->tp_rank * t.cols;
        cols *= s->tp_width;
    }
    return row * cols + col;
}

void gpt_initialize(const gpt_shape *s, uint64_t seed, double *parameters)
{
    for (int index = 0; index < gpt_tensors(s); index++) {
        tensor t = gpt_tensor(s, index);
        for (int64_t i = 0; i < (int64_t)t.rows * t.cols; i++) {
            uint64_t r = random_mix(random_mix(seed, (uint64_t)index), (uint64_t)gpt_whole_element(s, index, i));
            double radius = sqrt(-2.0 * log(random_uniform(r))); /* Box and Muller */
            double normal = radius * cos(6.28318530717958647693 * random_uniform(random_mix(r, 1)));
            parameters[t.offset + i] = t.mean + t.deviation * normal;
        }
    }
}

void gpt_positions(const gpt_shape *s, double *positions)
{
    for (int t = 0; t < s->context; t++) {
        for (int j = 0; j < s->width; j++) {
            double angle = t * pow(10000.0, -(double)(j / 2 * 2) / s->width);
            positions[t * s->width + j] = 0.02 * (j % 2 ? cos(angle) : sin(angle)); /* as large as the embedding */
        }
    }
}

/* ---- memory ---- */

typedef struct wish {
    double **where;
    int64_t count;
} wish;

/* Gives each wish its part of the block; with block NULL it only counts. */
static int64_t carve(double *block, const wish *wishes, int count)
{
    int64_t used = 0;
    for (int i = 0; i < count; i++) {
        if (block)
            *wishes[i].where = block + used;
        used += (wishes[i].count + 7) / 8 * 8; /* each begins at a cache line */
    }
    return used;
}

static int64_t carve_all(gpt *m, double *block)
{
    const gpt_shape *s = &m->shape;
    int64_t rows = (int64_t)s->samples * s->context, stream = rows * s->width, part = stream / s->tp_width;
    int64_t weights = (int64_t)s->samples * s->heads / s->tp_width * s->context * s->context, used = 0;
    for (int i = 0; i < s->layers; i++) {
        gpt_layer *l = &m->layer[i];
        const wish of_layer[] = {
            {&l->x, stream}, {&l->norm1, stream}, {&l->mean1, rows}, {&l->scale1, rows}, {&l->qkv, 3 * part},
            {&l->weights, weights}, {&l->mixed, part}, {&l->middle, stream}, {&l->norm2, stream}, {&l->mean2, rows},
            {&l->scale2, rows}, {&l->inner, 4 * part}, {&l->active, 4 * part},
        };
        used += carve(block ? block + used : NULL, of_layer, sizeof of_layer / sizeof *of_layer);
    }
    const wish rest[] = {
        {&m->x, stream}, {&m->final, stream}, {&m->final_mean, rows}, {&m->final_scale, rows},
        {&m->logits, rows * s->vocab}, {&m->dx, stream}, {&m->dnorm, stream}, {&m->dqkv, 3 * part}, {&m->dmixed, part},
        {&m->dinner, 4 * part}, {&m->scratch, (int64_t)s->context * s->context}, {&m->block, stream},
    };
    return used + carve(block ? block + used : NULL, rest, sizeof rest / sizeof *rest);
}

int gpt_room(gpt *m, const gpt_shape *shape)
{
    gpt_free(m);
    m->shape = *shape;
    m->layer = calloc((size_t)shape->layers, sizeof *m->layer);
    m->offset = calloc((size_t)gpt_tensors(shape), sizeof *m->offset);
    m->inputs = aligned_room(2 * (int64_t)shape->samples * shape->context * (int64_t)sizeof *m->inputs);
    m->room = m->layer ? aligned_room(carve_all(m, NULL) * 8) : NULL;
    if (!m->layer || !m->offset || !m->inputs || !m->room)
        return 0;
    carve_all(m, m->room);
    for (int i = 0; i < gpt_tensors(shape); i++)
        m->offset[i] = gpt_tensor(shape, i).offset;
    return 1;
}

void gpt_free(gpt *m)
{
    free(m->layer);
    free(m->offset);
    free(m->inputs);
    free(m->room);
    m->layer = NULL;
    m->offset = NULL;
    m->inputs = NULL;
    m->room = NULL;
}

/* ---- one micro-batch ---- */

typedef struct pass {
    gpt *m;
    parallel *net;
    const double *parameters;
    double *gradient;
    const int64_t *offset; /* of the present layer's tensors */
    int n;                 /* tokens */
    int width, part, heads;
} pass;

static const double *value(const pass *p, int which)
{
    return p->parameters + p->offset[which];
}

static double *slope(const pass *p, int which)
{
    return p->gradient + p->offset[which];
}

/* out = x + the tensor-parallel sum of `block` + bias: the end of a block. */
static int32_t add_block(const pass *p, const double *x, double *block, const double *bias, double *out)
{
    int32_t fault = parallel_sum_tp(p->net, block, (int64_t)p->n * p->width);
    for (int i = 0; !fault && i < p->n; i++)
        for (int j = 0; j < p->width; j++) {
            int64_t at = (int64_t)i * p->width + j;
            out[at] = x[at] + (block[at] + bias[j]);
        }
    return fault;
}

static int32_t layer_forward(const pass *p, gpt_layer *l, double *out)
{
    const gpt_shape *s = &p->m->shape;
    double *block = p->m->block;
    norm(p->n, p->width, l->x, value(p, GAIN1), value(p, BIAS1), l->norm1, l->mean1, l->scale1);
    linear(p->n, p->width, 3 * p->part, l->norm1, value(p, QKV_WEIGHT), value(p, QKV_BIAS), l->qkv);
    attention(s->samples, s->context, p->heads, p->part / p->heads, l->qkv, l->weights, l->mixed);
    linear(p->n, p->part, p->width, l->mixed, value(p, OUT_WEIGHT), NULL, block);
    int32_t fault = add_block(p, l->x, block, value(p, OUT_BIAS), l->middle);
    if (fault)
        return fault;
    norm(p->n, p->width, l->middle, value(p, GAIN2), value(p, BIAS2), l->norm2, l->mean2, l->scale2);
    linear(p->n, p->width, 4 * p->part, l->norm2, value(p, UP_WEIGHT), value(p, UP_BIAS), l->inner);
    gelu((int64_t)p->n * 4 * p->part, l->inner, l->active);
    linear(p->n, 4 * p->part, p->width, l->active, value(p, DOWN_WEIGHT), NULL, block);
    return add_block(p, l->middle, block, value(p, DOWN_BIAS), out);
}

/* The gradient of a block's last product and its bias; dx is that of the block's output. */
static void block_backward(const pass *p, int in, const double *x, int weight, int bias, double *dinput)
{
    linear_backward(p->n, in, p->width, x, value(p, weight), p->m->dx, dinput, slope(p, weight), slope(p, bias));
}

/* m->dx: gradient of the layer's output in, of its input out. */
static int32_t layer_backward(const pass *p, const gpt_layer *l)
{
    gpt *m = p->m;
    const gpt_shape *s = &m->shape;
    block_backward(p, 4 * p->part, l->active, DOWN_WEIGHT, DOWN_BIAS, m->dinner);
    gelu_backward((int64_t)p->n * 4 * p->part, l->inner, m->dinner);
    linear_backward(p->n, p->width, 4 * p->part, l->norm2, value(p, UP_WEIGHT), m->dinner, m->dnorm,
                    slope(p, UP_WEIGHT), slope(p, UP_BIAS));
    int32_t fault = parallel_sum_tp(p->net, m->dnorm, (int64_t)p->n * p->width);
    if (fault)
        return fault;
    norm_backward(p->n, p->width, l->middle, value(p, GAIN2), l->mean2, l->scale2, m->dnorm, m->dx, slope(p, GAIN2),
                  slope(p, BIAS2));
    block_backward(p, p->part, l->mixed, OUT_WEIGHT, OUT_BIAS, m->dmixed);
    attention_backward(s->samples, s->context, p->heads, p->part / p->heads, l->qkv, l->weights, m->dmixed, m->dqkv,
                       m->scratch);
    linear_backward(p->n, p->width, 3 * p->part, l->norm1, value(p, QKV_WEIGHT), m->dqkv, m->dnorm,
                    slope(p, QKV_WEIGHT), slope(p, QKV_BIAS));
    fault = parallel_sum_tp(p->net, m->dnorm, (int64_t)p->n * p->width);
    if (!fault)
        norm_backward(p->n, p->width, l->x, value(p, GAIN1), l->mean1, l->scale1, m->dnorm, m->dx, slope(p, GAIN1),
                      slope(p, BIAS1));
    return fault;
}

static void embed(const pass *p, const int32_t *tokens, double *x)
{
    int context = p->m->shape.context;
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->width; j++)
            x[(int64_t)i * p->width + j] = p->parameters[(int64_t)tokens[i] * p->width + j] +
                                           p->m->positions[(int64_t)(i % context) * p->width + j];
}

/* From the last layer's output to the loss, and back to m->dx. */
static double head(const pass *p, const double *gain, double *dgain, const int32_t *targets, double factor)
{
    gpt *m = p->m;
    int vocab = m->shape.vocab, width = p->width;
    norm(p->n, width, m->x, gain, gain + width, m->final, m->final_mean, m->final_scale);
    linear(p->n, width, vocab, m->final, p->parameters, NULL, m->logits);
    double loss = cross_entropy(p->n, vocab, m->logits, targets, factor);
    linear_backward(p->n, width, vocab, m->final, p->parameters, m->logits, m->dnorm, p->gradient, NULL);
    memset(m->dx, 0, (size_t)p->n * (size_t)width * 8);
    norm_backward(p->n, width, m->x, gain, m->final_mean, m->final_scale, m->dnorm, m->dx, dgain, dgain + width);
    return loss;
}

static int32_t forward_backward(pass *p, const int32_t *inputs, const int32_t *targets, double factor, double *loss)
{
    gpt *m = p->m;
    int layers = m->shape.layers;
    int64_t last = m->offset[gpt_tensors(&m->shape) - 2];
    int32_t fault = 0;
    embed(p, inputs, m->layer[0].x);
    for (int l = 0; l < layers && !fault; l++) {
        p->offset = m->offset + 1 + l * PER_LAYER;
        fault = layer_forward(p, &m->layer[l], l + 1 < layers ? m->layer[l + 1].x : m->x);
    }
    if (fault)
        return fault;
    *loss = head(p, p->parameters + last, p->gradient + last, targets, factor);
    for (int l = layers - 1; l >= 0 && !fault; l--) {
        p->offset = m->offset + 1 + l * PER_LAYER;
        fault = layer_backward(p, &m->layer[l]);
    }
    for (int i = 0; i < p->n && !fault; i++)
        for (int j = 0; j < p->width; j++)
            p->gradient[(int64_t)inputs[i] * p->width + j] += m->dx[(int64_t)i * p->width + j];
    return fault;
}

int32_t gpt_gradient(gpt *m, parallel *net, const double *parameters, const int32_t *tokens, double factor,
                     double *gradient, double *loss)
{
    const gpt_shape *s = &m->shape;
    pass p = {m, net, parameters, gradient, NULL, s->samples * s->context, s->width, s->width / s->tp_width,
              s->heads / s->tp_width};
    int32_t *targets = m->inputs + p.n;
    for (int i = 0; i < p.n; i++) {
        const int32_t *at = tokens + (int64_t)(i / s->context) * (s->context + 1) + i % s->context;
        m->inputs[i] = at[0];
        targets[i] = at[1];
    }
    memset(gradient, 0, (size_t)gpt_parameters(s) * 8);
    return forward_backward(&p, m->inputs, targets, factor, loss);
}
