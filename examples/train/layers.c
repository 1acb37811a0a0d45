/* SPDX-License-Identifier: Apache-2.0 */
#include "layers.h"

#include <cblas.h>
#include <math.h>

static const double norm_epsilon = 1e-5;
static const double gelu_slope = 0.79788456080286535588; /* sqrt(2 / pi) */
static const double gelu_cubic = 0.044715;

void linear(int n, int in, int out, const double *x, const double *w, const double *bias, double *y)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, out, in, 1.0, x, in, w, in, 0.0, y, out);
    for (int i = 0; bias && i < n; i++)
        for (int j = 0; j < out; j++)
            y[(int64_t)i * out + j] += bias[j];
}

void linear_backward(int n, int in, int out, const double *x, const double *w, const double *dy, double *dx, double *dw,
                     double *dbias)
{
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, in, n, 1.0, dy, out, x, in, 1.0, dw, in);
    for (int i = 0; dbias && i < n; i++)
        for (int j = 0; j < out; j++)
            dbias[j] += dy[(int64_t)i * out + j];
    if (dx)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, in, out, 1.0, dy, out, w, in, 0.0, dx, in);
}

void norm(int n, int width, const double *x, const double *gain, const double *bias, double *y, double *mean,
          double *scale)
{
    for (int i = 0; i < n; i++, x += width, y += width) {
        double sum = 0, squares = 0;
        for (int j = 0; j < width; j++)
            sum += x[j];
        mean[i] = sum / width;
        for (int j = 0; j < width; j++)
            squares += (x[j] - mean[i]) * (x[j] - mean[i]);
        scale[i] = 1.0 / sqrt(squares / width + norm_epsilon);
        for (int j = 0; j < width; j++)
            y[j] = (x[j] - mean[i]) * scale[i] * gain[j] + bias[j];
    }
}

void norm_backward(int n, int width, const double *x, const double *gain, const double *mean, const double *scale,
                   const double *dy, double *dx, double *dgain, double *dbias)
{
    for (int i = 0; i < n; i++, x += width, dy += width, dx += width) {
        double sum = 0, along = 0;
        for (int j = 0; j < width; j++) {
            double z = (x[j] - mean[i]) * scale[i], dz = dy[j] * gain[j];
            sum += dz;
            along += dz * z;
            dgain[j] += dy[j] * z;
            dbias[j] += dy[j];
        }
        for (int j = 0; j < width; j++) {
            double z = (x[j] - mean[i]) * scale[i];
            dx[j] += scale[i] * (dy[j] * gain[j] - (sum + z * along) / width);
        }
    }
}

/* Row t sees positions 0 to t only; the others get the weight 0. */
static void causal_softmax(int context, double *weights)
{
    for (int t = 0; t < context; t++, weights += context) {
        double most = weights[0], sum = 0;
        for (int s = 1; s <= t; s++)
            most = weights[s] > most ? weights[s] : most;
        for (int s = 0; s <= t; s++)
            sum += weights[s] = exp(weights[s] - most);
        for (int s = 0; s < context; s++)
            weights[s] = s <= t ? weights[s] / sum : 0.0;
    }
}

void attention(int samples, int context, int heads, int depth, const double *qkv, double *weights, double *out)
{
    int width = heads * depth, row = 3 * width;
    double factor = 1.0 / sqrt((double)depth);
    for (int i = 0; i < samples * heads; i++, weights += (int64_t)context * context) {
        const double *q = qkv + (int64_t)(i / heads) * context * row + i % heads * depth;
        const double *k = q + width, *v = k + width;
        double *o = out + (int64_t)(i / heads) * context * width + i % heads * depth;
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, context, context, depth, factor, q, row, k, row, 0.0,
                    weights, context);
        causal_softmax(context, weights);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, context, depth, context, 1.0, weights, context, v, row,
                    0.0, o, width);
    }
}

void attention_backward(int samples, int context, int heads, int depth, const double *qkv, const double *weights,
                        const double *dout, double *dqkv, double *scratch)
{
    int width = heads * depth, row = 3 * width;
    double factor = 1.0 / sqrt((double)depth);
    for (int i = 0; i < samples * heads; i++, weights += (int64_t)context * context) {
        int64_t at = (int64_t)(i / heads) * context * row + i % heads * depth;
        const double *q = qkv + at, *k = q + width, *v = k + width;
        double *dq = dqkv + at, *dk = dq + width, *dv = dk + width;
        const double *o = dout + (int64_t)(i / heads) * context * width + i % heads * depth;
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, context, depth, context, 1.0, weights, context, o, width,
                    0.0, dv, row);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, context, context, depth, 1.0, o, width, v, row, 0.0,
                    scratch, context);
        for (int t = 0; t < context; t++) {
            const double *w = weights + (int64_t)t * context;
            double *d = scratch + (int64_t)t * context, sum = 0;
            for (int s = 0; s <= t; s++)
                sum += w[s] * d[s];
            for (int s = 0; s < context; s++)
                d[s] = w[s] * (d[s] - sum);
        }
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, context, depth, context, factor, scratch, context, k,
                    row, 0.0, dq, row);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, context, depth, context, factor, scratch, context, q, row,
                    0.0, dk, row);
    }
}

void gelu(int64_t n, const double *x, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = 0.5 * x[i] * (1.0 + tanh(gelu_slope * (x[i] + gelu_cubic * x[i] * x[i] * x[i])));
}

void gelu_backward(int64_t n, const double *x, double *dy)
{
    for (int64_t i = 0; i < n; i++) {
        double t = tanh(gelu_slope * (x[i] + gelu_cubic * x[i] * x[i] * x[i]));
        double inner = gelu_slope * (1.0 + 3.0 * gelu_cubic * x[i] * x[i]);
        dy[i] *= 0.5 * (1.0 + t) + 0.5 * x[i] * (1.0 - t * t) * inner;
    }
}

double cross_entropy(int n, int vocab, double *logits, const int32_t *targets, double factor)
{
    double loss = 0;
    for (int i = 0; i < n; i++, logits += vocab) {
        double most = logits[0], sum = 0;
        for (int j = 1; j < vocab; j++)
            most = logits[j] > most ? logits[j] : most;
        loss += most - logits[targets[i]];
        for (int j = 0; j < vocab; j++)
            sum += logits[j] = exp(logits[j] - most);
        loss += log(sum);
        for (int j = 0; j < vocab; j++)
            logits[j] = factor * (logits[j] / sum - (j == targets[i]));
    }
    return loss;
}
