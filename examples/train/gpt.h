/* SPDX-License-Identifier: Apache-2.0 */
/* A small GPT: token embedding (also the output matrix), sine positions, layers of causal attention and MLP with layer
 * norm in front, final layer norm. In double precision, so that a gradient can be checked sharply.
 *
 * Tensor parallel as in Megatron: a rank has some of the heads and some of the MLP's inner units. The products into
 * them are split by output (no communication), those out of them by input (one sum each over the ranks, on the way
 * back one for each block's input). Embedding, norms and the biases of the residual stream are on all ranks and stay
 * equal, because what they are changed by is equal bit for bit.
 *
 * All parameters of a tensor-parallel rank lie in one flat vector. */
#ifndef TRAIN_GPT_H
#define TRAIN_GPT_H
#include <stdint.h>

#include "parallel.h"

typedef struct gpt_shape {
    int layers, width, heads, context, vocab;
    int samples; /* of a micro-batch */
    int tp_width, tp_rank;
} gpt_shape;

/* A parameter tensor's place in the flat vector and in the whole (not split) model. */
typedef struct tensor {
    int64_t offset;
    int rows, cols;    /* of this rank */
    int split;         /* 0 = on all ranks, 1 = by rows, 2 = by columns */
    int groups;        /* split by rows: in each of so many groups of rows (queries, keys, values) */
    double mean, deviation; /* of the initial values */
} tensor;

typedef struct gpt_layer {
    double *x, *norm1, *mean1, *scale1, *qkv, *weights, *mixed;
    double *middle, *norm2, *mean2, *scale2, *inner, *active;
} gpt_layer;

typedef struct gpt {
    gpt_shape shape;
    double *positions; /* [context][width]: derived state, the caller's; see gpt_positions */
    double *room;      /* one block for all below */
    gpt_layer *layer;
    int64_t *offset;   /* of each tensor */
    int32_t *inputs;   /* of the micro-batch, then the targets */
    double *x, *final, *final_mean, *final_scale, *logits;          /* forward */
    double *dx, *dnorm, *dqkv, *dmixed, *dinner, *scratch, *block; /* backward */
} gpt;

int gpt_tensors(const gpt_shape *shape);
tensor gpt_tensor(const gpt_shape *shape, int index);
int64_t gpt_parameters(const gpt_shape *shape);
/* Where element `element` of tensor `index` lies in the same tensor of the whole model. */
int64_t gpt_whole_element(const gpt_shape *shape, int index, int64_t element);

/* 0 = no memory. */
int gpt_room(gpt *model, const gpt_shape *shape);
void gpt_free(gpt *model);
/* Initial values depend on the seed and the place in the whole model, not on how it is split. */
void gpt_initialize(const gpt_shape *shape, uint64_t seed, double *parameters);
void gpt_positions(const gpt_shape *shape, double *positions);

/* One micro-batch, tokens[samples][context + 1]: *loss = sum of the losses of all tokens, gradient[] (overwritten) =
 * `factor` times its gradient. Returns 0 or a fault. */
int32_t gpt_gradient(gpt *model, parallel *net, const double *parameters, const int32_t *tokens, double factor,
                     double *gradient, double *loss);
#endif
