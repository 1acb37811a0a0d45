/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/kernel.h"
#include "base/linalg.h"
#include <math.h>
#include <string.h>

const int opi__level_key[OPI__LEVELS] = {-1, OPI__K_LLM, OPI__K_GPU_ENGINE, OPI__K_LLM_GPU_ENGINE, OPI__K_CONFIG};
const int opi__soft_key[OPI__SOFTS] = {OPI__K_ENGINE_VERSION, OPI__K_LOAD_ENGINE, OPI__K_PRECISION, OPI__K_GPU};
const int opi__offset_key[OPI__OFFSETS] = {OPI__K_LLM, OPI__K_GPU_ENGINE, OPI__K_ENGINE_VERSION};

static const double site_prior[OPI__SITES] = {.04, .02, .02, .02};
#define LENGTH_PRIOR .002
#define SITE_PRIOR   .5
#define ROUGH_PRIOR  .25

static double factor(double logit)
{
    return 1 / (1 + exp(-logit));
}

void opi__kernel_start(opi__kernel *k)
{
    static const double v[OPI__LEVELS] = {.3, .1, .1, .05, .05};
    memset(k, 0, sizeof *k);
    for (int s = 0; s < OPI__LEVELS; s++) {
        k->v[s] = log(v[s]);
        for (int d = 0; d < OPI__DIMS; d++)
            k->length[s][d] = -2.2;
    }
    for (int d = 0; d < OPI__DIMS; d++)
        k->linear[d] = -3;
    k->constant = -1;
    for (int o = 0; o < OPI__OFFSETS; o++)
        k->offset[o] = -4;
    for (int w = 0; w < OPI__SITES; w++)
        k->site[w] = log(site_prior[w]);
    k->noise = -6;
}

/* Which keys of two rows are the same, one bit each: looked at once for all levels. */
static void compare_keys(const opi__points *a, const opi__points *b, uint16_t *mask)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < b->n; j++) {
            const uint32_t *ka = a->key + i * OPI__KEYS, *kb = b->key + j * OPI__KEYS;
            unsigned bits = 0;
            for (int k = 0; k < OPI__KEYS; k++)
                bits |= (unsigned)(ka[k] == kb[k] && ka[k] != OPI__NO_KEY) << k;
            mask[i * b->n + j] = (uint16_t)bits;
        }
}

static int same(unsigned mask, int key)
{
    return (int)(mask >> key & 1);
}

/* ---- covariances ---- */

static size_t scaled_bytes(size_t n)
{
    return n * (OPI__DIMS + 1);
}

static size_t mask_doubles(size_t pairs)
{
    return (pairs + 3) / 4;
}

size_t opi__kernel_work(size_t a, size_t b)
{
    return scaled_bytes(a) + scaled_bytes(b) + a * b + mask_doubles(a * b);
}

/* y = x * exp(length), and the squared norms. */
static void scale(const double *x, size_t n, const double *length, double *y, double *norm)
{
    double by[OPI__DIMS];
    for (int d = 0; d < OPI__DIMS; d++)
        by[d] = exp(length[d]);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (int d = 0; d < OPI__DIMS; d++) {
            double v = x[i * OPI__DIMS + (size_t)d] * by[d];
            y[i * OPI__DIMS + (size_t)d] = v;
            sum += v * v;
        }
        norm[i] = sum;
    }
}

/* q [a.n * b.n] = squared scaled distances. */
static void distances(const opi__points *a, const opi__points *b, const double *length, double *work, double *q)
{
    double *ya = work, *na = ya + a->n * OPI__DIMS, *yb = na + a->n, *nb = yb + b->n * OPI__DIMS;
    scale(a->x, a->n, length, ya, na);
    scale(b->x, b->n, length, yb, nb);
    opi__gemm_nt(a->n, b->n, OPI__DIMS, -2, ya, yb, 0, q);
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < b->n; j++) {
            double v = q[i * b->n + j] + na[i] + nb[j];
            q[i * b->n + j] = v > 0 ? v : 0;
        }
}

/* The product of soft factors for each combination of soft keys that are the same: the soft keys are neighbors. */
#define SOFT_FIRST OPI__K_ENGINE_VERSION
_Static_assert(OPI__K_LOAD_ENGINE == SOFT_FIRST + 1 && OPI__K_PRECISION == SOFT_FIRST + 2 &&
                   OPI__K_GPU == SOFT_FIRST + 3,
               "the soft keys are four bits in a row of a mask");
static void soft_table(const double *logit, double *product)
{
    for (unsigned bits = 0; bits < 1u << OPI__SOFTS; bits++) {
        product[bits] = 1;
        for (int u = 0; u < OPI__SOFTS; u++)
            if (!(bits >> u & 1))
                product[bits] *= factor(logit[u]);
    }
}

static unsigned soft_bits(unsigned mask)
{
    return mask >> SOFT_FIRST & ((1u << OPI__SOFTS) - 1);
}

static double site_part(const double *w, unsigned mask, double m)
{
    if (!same(mask, OPI__K_SITE))
        return 0;
    return w[0] + w[1] * m + (same(mask, OPI__K_SITE_GPU) ? w[2] : 0) + (same(mask, OPI__K_SITE_LLM) ? w[3] : 0);
}

static void exps(const double *log_value, int n, double *value)
{
    for (int i = 0; i < n; i++)
        value[i] = exp(log_value[i]);
}

static void add_level(const opi__kernel *k, int s, size_t pairs, const uint16_t *mask, int with_site, const double *q,
                      double *c)
{
    double soft[1u << OPI__SOFTS], w[OPI__SITES], v = exp(k->v[s]);
    int key = opi__level_key[s];
    soft_table(k->soft[s], soft);
    exps(k->site, OPI__SITES, w);
    for (size_t i = 0; i < pairs; i++) {
        if (key >= 0 && !same(mask[i], key))
            continue;
        double r = sqrt(3 * q[i]), m = (1 + r) * exp(-r);
        c[i] += v * m * soft[soft_bits(mask[i])];
        if (s == 0 && with_site)
            c[i] += site_part(w, mask[i], m);
    }
}

static void add_plain(const opi__kernel *k, const opi__points *a, const opi__points *b, const uint16_t *mask,
                      double *work, double *c)
{
    double offset[OPI__OFFSETS];
    double *ya = work, *na = ya + a->n * OPI__DIMS, *yb = na + a->n, *nb = yb + b->n * OPI__DIMS;
    exps(k->offset, OPI__OFFSETS, offset);
    double constant = exp(k->constant);
    scale(a->x, a->n, k->linear, ya, na);
    scale(b->x, b->n, k->linear, yb, nb);
    opi__gemm_nt(a->n, b->n, OPI__DIMS, 1, ya, yb, 0, c);
    for (size_t i = 0; i < a->n * b->n; i++) {
        c[i] += constant;
        for (int o = 0; o < OPI__OFFSETS; o++)
            c[i] += same(mask[i], opi__offset_key[o]) ? offset[o] : 0;
    }
}

void opi__kernel_cross(const opi__kernel *k, const opi__points *a, const opi__points *b, int with_site, double *work,
                       double *c)
{
    size_t pairs = a->n * b->n;
    double *q = work + scaled_bytes(a->n) + scaled_bytes(b->n);
    uint16_t *mask = (uint16_t *)(q + pairs);
    compare_keys(a, b, mask);
    add_plain(k, a, b, mask, work, c);
    for (int s = 0; s < OPI__LEVELS; s++) {
        distances(a, b, k->length[s], work, q);
        add_level(k, s, pairs, mask, with_site, q, c);
    }
}

static size_t rough_of(const uint32_t *key)
{
    return key[OPI__K_SITE] % OPI__ROUGHS;
}

double opi__kernel_noise(const opi__kernel *k, const uint32_t *key)
{
    return exp(k->noise + (key[OPI__K_SITE] == OPI__NO_KEY ? 0 : k->rough[rough_of(key)]));
}

double opi__kernel_self(const opi__kernel *k, const double *x, int with_site)
{
    double sum = exp(k->constant);
    for (int s = 0; s < OPI__LEVELS; s++)
        sum += exp(k->v[s]);
    for (int o = 0; o < OPI__OFFSETS; o++)
        sum += exp(k->offset[o]);
    for (int w = 0; w < OPI__SITES && with_site; w++)
        sum += exp(k->site[w]);
    for (int d = 0; d < OPI__DIMS; d++)
        sum += x[d] * x[d] * exp(2 * k->linear[d]);
    return sum;
}

void opi__kernel_soft(const opi__kernel *k, int level, double *product)
{
    soft_table(k->soft[level], product);
}

unsigned opi__kernel_soft_bits(const uint32_t *a, const uint32_t *b)
{
    unsigned bits = 0;
    for (int u = 0; u < OPI__SOFTS; u++)
        bits |= (unsigned)(a[SOFT_FIRST + u] == b[SOFT_FIRST + u] && a[SOFT_FIRST + u] != OPI__NO_KEY) << u;
    return bits;
}

static void near_level(const opi__kernel *k, int s, size_t n, const uint16_t *mask, const double *q, int kinds,
                       const uint32_t *const *block, float *const *near)
{
    double soft[1u << OPI__SOFTS];
    int key = opi__level_key[s];
    soft_table(k->soft[s], soft);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            size_t at = i * n + j;
            if (key >= 0 && !same(mask[at], key))
                continue;
            double r = sqrt(3 * q[at]);
            float c = (float)((1 + r) * exp(-r) * soft[soft_bits(mask[at])]);
            for (int b = 0; b < kinds; b++) {
                if (block[b][i] == block[b][j])
                    continue;
                float *a = &near[b][i * OPI__NEARS + (size_t)s], *o = &near[b][j * OPI__NEARS + (size_t)s];
                *a = c > *a ? c : *a;
                *o = c > *o ? c : *o;
            }
        }
}

void opi__kernel_near(const opi__kernel *k, const opi__points *p, int kinds, const uint32_t *const *block, double *work,
                      float *const *near)
{
    size_t n = p->n;
    double *q = work + 2 * scaled_bytes(n);
    uint16_t *mask = (uint16_t *)(q + n * n);
    compare_keys(p, p, mask);
    for (int b = 0; b < kinds; b++)
        memset(near[b], 0, n * OPI__NEARS * sizeof **near);
    for (int s = 0; s < OPI__LEVELS; s++) {
        distances(p, p, k->length[s], work, q);
        near_level(k, s, n, mask, q, kinds, block, near);
    }
    for (int b = 0; b < kinds; b++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < i; j++)
                if (same(mask[i * n + j], OPI__K_SITE) && block[b][i] != block[b][j])
                    near[b][i * OPI__NEARS + OPI__LEVELS] = near[b][j * OPI__NEARS + OPI__LEVELS] = 1;
}

/* ---- marginal likelihood ---- */

size_t opi__kernel_gradient_work(size_t n)
{
    return 2 * n * n + opi__kernel_work(n, n) + n * OPI__DIMS + n;
}

/* Sum over pairs of weight * (x_id - x_jd)^2 for every d, times exp(2 length_d): the gradient by log inverse lengths. */
static void length_gradient(const opi__points *p, const double *weight, const double *length, double *wx, double *g)
{
    size_t n = p->n;
    opi__gemm(n, OPI__DIMS, n, 1, weight, p->x, 0, wx);
    for (size_t i = 0; i < n; i++) {
        double row = 0;
        for (size_t j = 0; j < n; j++)
            row += weight[i * n + j];
        for (int d = 0; d < OPI__DIMS; d++) {
            double x = p->x[i * OPI__DIMS + (size_t)d];
            g[d] += 2 * (x * x * row - x * wx[i * OPI__DIMS + (size_t)d]);
        }
    }
    for (int d = 0; d < OPI__DIMS; d++)
        g[d] *= exp(2 * length[d]);
}

/* g: half of (inverse - a a'), the derivative by each covariance. Fills what belongs to level s, and turns the squared
 * distances q into the weights of length_gradient. All is symmetric: pairs below the diagonal count twice. */
static void level_gradient(const opi__kernel *k, int s, size_t n, const uint16_t *mask, const double *g, double *q,
                           opi__kernel *out)
{
    double soft[1u << OPI__SOFTS], lost[OPI__SOFTS], w[OPI__SITES], v = exp(k->v[s]);
    double by_bits[1u << OPI__SOFTS] = {0};
    int key = opi__level_key[s];
    soft_table(k->soft[s], soft);
    exps(k->site, OPI__SITES, w);
    for (int u = 0; u < OPI__SOFTS; u++)
        lost[u] = 1 - factor(k->soft[s][u]);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            size_t at = i * n + j;
            unsigned bits = mask[at];
            double gij = i == j ? g[at] : 2 * g[at];
            if (key >= 0 && !same(bits, key)) {
                q[at] = q[j * n + i] = 0;
                continue;
            }
            double r = sqrt(3 * q[at]), e = exp(-r), m = (1 + r) * e, slope = v * soft[soft_bits(bits)];
            by_bits[soft_bits(bits)] += gij * slope * m;
            if (s == 0 && same(bits, OPI__K_SITE)) {
                slope += w[1];
                out->site[0] += gij * w[0];
                out->site[1] += gij * w[1] * m;
                out->site[2] += same(bits, OPI__K_SITE_GPU) ? gij * w[2] : 0;
                out->site[3] += same(bits, OPI__K_SITE_LLM) ? gij * w[3] : 0;
            }
            q[at] = q[j * n + i] = -3 * g[at] * slope * e;
        }
    for (unsigned bits = 0; bits < 1u << OPI__SOFTS; bits++) {
        out->v[s] += by_bits[bits];
        for (int u = 0; u < OPI__SOFTS; u++)
            out->soft[s][u] += bits >> u & 1 ? 0 : by_bits[bits] * lost[u];
    }
}

static void plain_gradient(const opi__kernel *k, const opi__points *p, const uint16_t *mask, const double *g,
                           double *gx, opi__kernel *out)
{
    size_t n = p->n;
    double by_key[OPI__OFFSETS] = {0}, all = 0;
    opi__gemm(n, OPI__DIMS, n, 1, g, p->x, 0, gx);
    for (size_t i = 0; i < n; i++)
        for (int d = 0; d < OPI__DIMS; d++)
            out->linear[d] += p->x[i * OPI__DIMS + (size_t)d] * gx[i * OPI__DIMS + (size_t)d];
    for (int d = 0; d < OPI__DIMS; d++)
        out->linear[d] *= 2 * exp(2 * k->linear[d]);
    for (size_t i = 0; i < n * n; i++) {
        all += g[i];
        for (int o = 0; o < OPI__OFFSETS; o++)
            by_key[o] += same(mask[i], opi__offset_key[o]) ? g[i] : 0;
    }
    for (size_t i = 0; i < n; i++) {
        double noise = g[i * n + i] * opi__kernel_noise(k, p->key + i * OPI__KEYS);
        out->noise += noise;
        if (p->key[i * OPI__KEYS + OPI__K_SITE] != OPI__NO_KEY)
            out->rough[rough_of(p->key + i * OPI__KEYS)] += noise;
    }
    out->constant = all * exp(k->constant);
    for (int o = 0; o < OPI__OFFSETS; o++)
        out->offset[o] = by_key[o] * exp(k->offset[o]);
}

static void add_priors(const opi__kernel *k, size_t n, double *value, opi__kernel *out)
{
    double rows = (double)n;
    for (int s = 0; s < OPI__LEVELS; s++)
        for (int d = 0; d < OPI__DIMS; d++) {
            double l = k->length[s][d];
            *value += LENGTH_PRIOR * l * l / OPI__LEVELS * rows;
            out->length[s][d] += 2 * LENGTH_PRIOR * l / OPI__LEVELS * rows;
        }
    for (int i = 0; i < OPI__ROUGHS; i++) {
        *value += ROUGH_PRIOR * k->rough[i] * k->rough[i];
        out->rough[i] += 2 * ROUGH_PRIOR * k->rough[i];
    }
    for (int i = 0; i < OPI__SITES; i++) {
        double d = k->site[i] - log(site_prior[i]);
        *value += SITE_PRIOR * d * d;
        out->site[i] += 2 * SITE_PRIOR * d;
    }
}

int opi__kernel_gradient(const opi__kernel *k, const opi__points *p, const double *y, double *work, double *value,
                         opi__kernel *gradient)
{
    size_t n = p->n;
    double *c = work, *g = c + n * n, *scratch = g + n * n, *q = scratch + 2 * scaled_bytes(n);
    const uint16_t *mask = (const uint16_t *)(q + n * n); /* where opi__kernel_cross leaves it */
    double *wx = scratch + opi__kernel_work(n, n), *a = wx + n * OPI__DIMS;
    opi__kernel out;
    memset(&out, 0, sizeof out);
    opi__kernel_cross(k, p, p, 1, scratch, c);
    for (size_t i = 0; i < n; i++)
        c[i * n + i] += opi__kernel_noise(k, p->key + i * OPI__KEYS);
    if (opi__cholesky(n, c))
        return -1;
    memcpy(a, y, n * sizeof *a);
    opi__solve_lower(n, 1, c, a);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += .5 * a[i] * a[i] + log(c[i * n + i]);
    memcpy(a, y, n * sizeof *a);
    opi__solve_cholesky(n, 1, c, a);
    opi__inverse(n, c);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            g[i * n + j] = .5 * (c[i * n + j] - a[i] * a[j]);
    plain_gradient(k, p, mask, g, wx, &out);
    for (int s = 0; s < OPI__LEVELS; s++) {
        distances(p, p, k->length[s], scratch, q);
        level_gradient(k, s, n, mask, g, q, &out);
        length_gradient(p, q, k->length[s], wx, out.length[s]);
    }
    add_priors(k, n, &sum, &out);
    double *flat = (double *)&out;
    for (size_t i = 0; i < OPI__KERNEL_PARAMETERS; i++)
        flat[i] /= (double)n;
    *value = sum / (double)n;
    *gradient = out;
    return 0;
}
