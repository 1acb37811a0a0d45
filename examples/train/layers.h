/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of a transformer on plain arrays, row-major, forward and backward. No communication. `_backward` functions
 * add to gradients of parameters; what they do with the gradient of their input is said at each. */
#ifndef TRAIN_LAYERS_H
#define TRAIN_LAYERS_H
#include <stdint.h>

/* y[n][out] = x[n][in] w[out][in]^T + bias; bias NULL = none. */
void linear(int n, int in, int out, const double *x, const double *w, const double *bias, double *y);
/* dx (overwritten; NULL = not wanted), dw and dbias (NULL = none; added to). */
void linear_backward(int n, int in, int out, const double *x, const double *w, const double *dy, double *dx, double *dw,
                     double *dbias);

/* Each row of x[n][width] to mean 0 and variance 1, then gain and bias; mean and scale (1/deviation) are kept. */
void norm(int n, int width, const double *x, const double *gain, const double *bias, double *y, double *mean,
          double *scale);
/* Adds to dx: the residual stream's gradient goes past the norm unchanged. */
void norm_backward(int n, int width, const double *x, const double *gain, const double *mean, const double *scale,
                   const double *dy, double *dx, double *dgain, double *dbias);

/* Causal attention. qkv[samples * context][3 * heads * depth] (queries, keys, values), weights[samples][heads][context]
 * [context] are kept for the way back, out[samples * context][heads * depth]. */
void attention(int samples, int context, int heads, int depth, const double *qkv, double *weights, double *out);
/* dqkv is overwritten; scratch[context][context]. */
void attention_backward(int samples, int context, int heads, int depth, const double *qkv, const double *weights,
                        const double *dout, double *dqkv, double *scratch);

/* The tanh form of GELU. */
void gelu(int64_t n, const double *x, double *y);
/* dy becomes dx. */
void gelu_backward(int64_t n, const double *x, double *dy);

/* Sum over the rows of -log softmax(logits[n][vocab])[target]; the logits become `factor` times their gradient. */
double cross_entropy(int n, int vocab, double *logits, const int32_t *targets, double factor);
#endif
