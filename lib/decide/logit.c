/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/logit.h"

#include "base/linalg.h"

#include <math.h>
#include <string.h>

#define MOST OPI__LOGIT_MOST

/* Objective, gradient and negative Hessian at one beta, over the attributes in use. */
typedef struct point {
    double objective, log_likelihood;
    double gradient[MOST], hessian[MOST * MOST];
    size_t hits;
} point;

void opi__logit_scale(double *x, size_t n_situations, const size_t *start, size_t n_attributes, double *scale)
{
    for (size_t k = 0; k < n_attributes; k++) {
        double sum = 0, largest = 0;
        for (size_t i = 0; i < n_situations; i++) {
            const size_t n = start[i + 1] - start[i];
            const double first = x[start[i] * n_attributes + k]; /* equal values must leave exactly 0 */
            double mean = 0;
            for (size_t r = start[i]; r < start[i + 1]; r++)
                mean += (x[r * n_attributes + k] - first) / (double)n;
            for (size_t r = start[i]; r < start[i + 1]; r++) {
                double *v = &x[r * n_attributes + k];
                largest = fmax(largest, fabs(*v));
                *v = (*v - first) - mean;
                sum += *v * *v / (double)n;
            }
        }
        scale[k] = n_situations > 0 ? sqrt(sum / (double)n_situations) : 0;
        if (!(scale[k] > 1e-12 * largest)) /* only the rounding of how the column was computed */
            scale[k] = 0;
        for (size_t r = 0; n_situations > 0 && r < start[n_situations]; r++)
            x[r * n_attributes + k] = scale[k] > 0 ? x[r * n_attributes + k] / scale[k] : 0;
    }
}

int opi__logit_inflation(const opi__logit *p, double *inflation)
{
    const size_t k = p->n_attributes;
    double gram[MOST * MOST] = {0};
    size_t where[MOST], n = 0;
    for (size_t a = 0; a < k; a++)
        inflation[a] = 0;
    for (size_t i = 0; i < p->n_situations; i++)
        for (size_t r = p->start[i]; r < p->start[i + 1]; r++)
            for (size_t a = 0; a < k; a++)
                for (size_t b = 0; b <= a; b++)
                    gram[a * k + b] += p->x[r * k + a] * p->x[r * k + b];
    for (size_t a = 0; a < k; a++)
        if (gram[a * k + a] > 0)
            where[n++] = a;
    double l[MOST * MOST] = {0};
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b <= a; b++) {
            const size_t u = where[a], v = where[b];
            l[a * n + b] = gram[u * k + v] / sqrt(gram[u * k + u] * gram[v * k + v]) + (a == b ? 1e-10 : 0);
        }
    if (opi__cholesky(n, l) != 0 || opi__inverse(n, l) != 0)
        return -1;
    for (size_t a = 0; a < n; a++)
        inflation[where[a]] = l[a * n + a];
    return 0;
}

static double utility_of(const opi__logit *p, size_t row, const double *beta)
{
    double u = 0;
    for (size_t a = 0; a < p->n_attributes; a++)
        u += beta[a] * p->x[row * p->n_attributes + a];
    return u;
}

/* One situation: adds its log likelihood, gradient and curvature. */
static void add_situation(const opi__logit *p, size_t i, const double *beta, point *at)
{
    const size_t k = p->n_attributes, chosen = p->chosen[i];
    const double taken = utility_of(p, chosen, beta);
    double best = -INFINITY, sum = 0, mean[MOST] = {0}, square[MOST * MOST] = {0};
    int hit = 1;
    for (size_t r = p->start[i]; r < p->start[i + 1]; r++) {
        const double u = utility_of(p, r, beta);
        best = fmax(best, u);
        hit &= r == chosen || u < taken;
    }
    for (size_t r = p->start[i]; r < p->start[i + 1]; r++) {
        const double e = exp(utility_of(p, r, beta) - best), *x = &p->x[r * k];
        sum += e;
        for (size_t a = 0; a < k; a++) {
            mean[a] += e * x[a];
            for (size_t b = 0; b <= a; b++)
                square[a * k + b] += e * x[a] * x[b];
        }
    }
    at->hits += hit ? 1 : 0;
    at->log_likelihood += taken - best - log(sum);
    for (size_t a = 0; a < k; a++) {
        at->gradient[a] += p->x[chosen * k + a] - mean[a] / sum;
        for (size_t b = 0; b <= a; b++)
            at->hessian[a * k + b] += square[a * k + b] / sum - (mean[a] / sum) * (mean[b] / sum);
    }
}

static void evaluate(const opi__logit *p, double ridge, const double *beta, point *at)
{
    memset(at, 0, sizeof *at);
    for (size_t i = 0; i < p->n_situations; i++)
        add_situation(p, i, beta, at);
    double norm = 0;
    for (size_t a = 0; a < p->n_attributes; a++) {
        norm += beta[a] * beta[a];
        at->gradient[a] -= ridge * beta[a];
        at->hessian[a * p->n_attributes + a] += ridge;
    }
    at->objective = at->log_likelihood - ridge / 2 * norm;
}

/* Cholesky factor of the curvature among the attributes in use. 0 or -1. */
static int factor(const point *at, size_t k, const size_t *in, size_t n, double *l)
{
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            l[a * n + b] = b <= a ? at->hessian[in[a] * k + in[b]] : 0;
    return opi__cholesky(n, l) == 0 ? 0 : -1;
}

/* The longest of full, half, quarter … of the step that does not lower the objective. 1 = moved. */
static int move(const opi__logit *p, double ridge, const size_t *in, size_t n, const double *step, double *beta, point *at)
{
    double share = 1, tried[MOST];
    point next;
    for (int halved = 0; halved < 40; halved++, share /= 2) {
        memcpy(tried, beta, p->n_attributes * sizeof *tried);
        for (size_t a = 0; a < n; a++)
            tried[in[a]] += share * step[a];
        evaluate(p, ridge, tried, &next);
        if (next.objective > at->objective) {
            memcpy(beta, tried, p->n_attributes * sizeof *tried);
            *at = next;
            return 1;
        }
    }
    return 0;
}

int opi__logit_fit_ridge(const opi__logit *p, double ridge, uint32_t use, opi__logit_fit *out)
{
    const size_t k = p->n_attributes;
    double beta[MOST] = {0}, l[MOST * MOST], step[MOST];
    size_t in[MOST], n = 0;
    point at;
    for (size_t a = 0; a < k; a++)
        if (use >> a & 1) {
            in[n++] = a;
            beta[a] = out->beta[a];
        }
    evaluate(p, ridge, beta, &at);
    double decrement = 0;
    for (int i = 0; i < 200; i++) {
        if (factor(&at, k, in, n, l) != 0)
            return -1;
        for (size_t a = 0; a < n; a++)
            step[a] = at.gradient[in[a]];
        if (opi__solve_cholesky(n, 1, l, step) != 0)
            return -1;
        decrement = 0;
        for (size_t a = 0; a < n; a++)
            decrement += step[a] * at.gradient[in[a]];
        /* A decrement of d leaves beta sqrt(d) standard errors away. */
        if (!(decrement > 1e-20 * (1 + fabs(at.objective))))
            break;
        if (!move(p, ridge, in, n, step, beta, &at)) {
            /* Rounding hides what is left to gain in the objective, not in the gradient: one last whole step. */
            for (size_t a = 0; decrement < 1e-8 && a < n; a++)
                beta[in[a]] += step[a];
            evaluate(p, ridge, beta, &at);
            break;
        }
    }
    if (!isfinite(at.objective) || !(decrement < 1e-8 * (1 + fabs(at.objective))) || factor(&at, k, in, n, l) != 0 ||
        opi__inverse(n, l) != 0)
        return -1;
    memset(out, 0, sizeof *out);
    memcpy(out->beta, beta, k * sizeof *beta);
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            out->covariance[in[a] * k + in[b]] = l[a * n + b];
    out->log_likelihood = at.log_likelihood;
    out->hits = at.hits;
    return 0;
}

double opi__two_sided(double level)
{
    double lo = 0, hi = 40;
    for (int i = 0; i < 200 && lo < hi; i++) {
        const double mid = lo + (hi - lo) / 2;
        if (mid == lo || mid == hi)
            break;
        if (erfc(mid / sqrt(2)) > 1 - level)
            lo = mid;
        else
            hi = mid;
    }
    return hi;
}
