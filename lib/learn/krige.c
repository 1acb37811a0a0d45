/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/krige.h"
#include "base/linalg.h"
#include "base/rng.h"
#include <math.h>
#include <string.h>

/* ---- hyperparameters ---- */

size_t opi__krige_learn_work(const opi__krige_options *o, size_t n)
{
    size_t m = o->rows < n ? o->rows : n;
    return opi__kernel_gradient_work(m) + m * (OPI__DIMS + 1) + m * OPI__KEYS / 2 + 1 + 2 * OPI__KERNEL_PARAMETERS +
           (n + 1) / 2;
}

static void draw(opi__rng *r, const opi__points *p, const double *y, size_t m, uint32_t *order, double *x,
                 uint32_t *key, double *ym)
{
    for (size_t i = 0; i < p->n; i++)
        order[i] = (uint32_t)i;
    for (size_t i = 0; i < m; i++) { /* the first m of a shuffle */
        size_t k = i + (size_t)opi__rng_below(r, p->n - i);
        uint32_t t = order[i];
        order[i] = order[k];
        order[k] = t;
        memcpy(x + i * OPI__DIMS, p->x + (size_t)order[i] * OPI__DIMS, OPI__DIMS * sizeof *x);
        memcpy(key + i * OPI__KEYS, p->key + (size_t)order[i] * OPI__KEYS, OPI__KEYS * sizeof *key);
        ym[i] = y[order[i]];
    }
}

int opi__krige_learn(const opi__krige_options *o, const opi__points *p, const double *y, double *work, opi__kernel *k)
{
    size_t m = o->rows < p->n ? o->rows : p->n;
    double *x = work + opi__kernel_gradient_work(m), *ym = x + m * OPI__DIMS, *first = ym + m;
    double *second = first + OPI__KERNEL_PARAMETERS;
    uint32_t *key = (uint32_t *)(second + OPI__KERNEL_PARAMETERS), *order = key + m * OPI__KEYS;
    opi__points part = {m, x, key};
    opi__rng rng;
    opi__rng_seed(&rng, o->seed);
    memset(first, 0, 2 * OPI__KERNEL_PARAMETERS * sizeof *first);
    int fine = -1;
    for (int32_t i = 0; i < o->steps; i++) {
        opi__kernel g;
        double value, *flat = (double *)k, *slope = (double *)&g;
        if (o->stop && o->stop(o->user))
            break;
        if (i % OPI__KRIGE_SUBSET == 0)
            draw(&rng, p, y, m, order, x, key, ym);
        if (opi__kernel_gradient(k, &part, ym, work, &value, &g)) {
            k->noise += .5; /* ill-conditioned: more noise is the way out */
            continue;
        }
        fine = 0;
        double rate = o->rate * (1 - .9 * i / (double)o->steps);
        double c1 = 1 - pow(.9, i + 1), c2 = 1 - pow(.99, i + 1);
        for (size_t q = 0; q < OPI__KERNEL_PARAMETERS; q++) {
            first[q] = .9 * first[q] + .1 * slope[q];
            second[q] = .99 * second[q] + .01 * slope[q] * slope[q];
            flat[q] -= rate * first[q] / c1 / (sqrt(second[q] / c2) + 1e-8);
        }
        if (k->noise < -12)
            k->noise = -12;
    }
    return fine;
}

/* ---- held-out blocks ---- */

static size_t largest(size_t n, const uint32_t *block)
{
    size_t most = 0;
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++)
        top = block[i] > top ? block[i] : top;
    for (uint32_t b = 0; b <= top && n; b++) { /* callers number blocks densely */
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
            count += block[i] == b;
        most = count > most ? count : most;
    }
    return most;
}

size_t opi__krige_blocks_work(size_t n, const uint32_t *block)
{
    size_t m = largest(n, block);
    return m * m + m;
}

int opi__krige_blocks(size_t n, const double *inverse, const double *a, const uint32_t *block, uint32_t *order,
                      double *work, double *held, double *variance)
{
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++)
        top = block[i] > top ? block[i] : top;
    for (uint32_t b = 0; b <= top && n; b++) {
        size_t m = 0;
        for (size_t i = 0; i < n; i++)
            if (block[i] == b)
                order[m++] = (uint32_t)i;
        double *p = work, *r = work + m * m;
        for (size_t i = 0; i < m; i++) {
            for (size_t j = 0; j < m; j++)
                p[i * m + j] = inverse[(size_t)order[i] * n + order[j]];
            r[i] = a[order[i]];
        }
        if (opi__cholesky(m, p) || opi__solve_cholesky(m, 1, p, r) || opi__inverse(m, p))
            return -1;
        for (size_t i = 0; i < m; i++) {
            held[order[i]] = r[i];
            variance[order[i]] = p[i * m + i];
        }
    }
    return 0;
}

/* ---- means ---- */

void opi__krige_ready(opi__krige *k)
{
    const opi__kernel *h = &k->kernel;
    double total = 0;
    for (int s = 0; s < OPI__LEVELS; s++) {
        k->v[s] = exp(h->v[s]);
        opi__kernel_soft(h, s, k->soft[s]);
        for (int d = 0; d < OPI__DIMS; d++)
            k->metric[s][d] = (float)exp(2 * h->length[s][d]);
    }
    for (int o = 0; o < OPI__OFFSETS; o++)
        k->offset[o] = exp(h->offset[o]);
    for (int w = 0; w < OPI__SITES; w++)
        k->site[w] = exp(h->site[w]);
    memset(k->linear, 0, sizeof k->linear);
    for (size_t i = 0; i < k->n; i++) {
        total += k->weight[i];
        for (int d = 0; d < OPI__DIMS; d++)
            k->linear[d] += k->weight[i] * (double)k->x[i * OPI__DIMS + (size_t)d];
    }
    for (int d = 0; d < OPI__DIMS; d++)
        k->linear[d] *= exp(2 * h->linear[d]);
    k->constant = total * exp(h->constant) + k->mean;
}

static int equal(const uint32_t *a, const uint32_t *b, int key)
{
    return a[key] == b[key] && a[key] != OPI__NO_KEY;
}

/* Squared scaled distance; sixteen sums side by side, so that the compiler may use vectors without changing the result. */
static double distance(const float *metric, const float *a, const float *b)
{
    float lane[16] = {0};
    for (int d = 0; d < OPI__DIMS; d += 16)
        for (int l = 0; l < 16; l++) {
            float t = a[d + l] - b[d + l];
            lane[l] += metric[d + l] * t * t;
        }
    for (int half = 8; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return (double)lane[0];
}
_Static_assert(OPI__DIMS % 16 == 0, "distance works on sixteen numbers at a time");

static double offsets(const opi__krige *k, const uint32_t *a, const uint32_t *b)
{
    double sum = 0;
    for (int o = 0; o < OPI__OFFSETS; o++)
        sum += equal(a, b, opi__offset_key[o]) ? k->offset[o] : 0;
    return sum;
}

double opi__krige_mean(const opi__krige *k, const float *x, const uint32_t *key, float *near)
{
    double sum = k->constant;
    memset(near, 0, OPI__NEARS * sizeof *near);
    for (int d = 0; d < OPI__DIMS; d++)
        sum += k->linear[d] * (double)x[d];
    for (size_t i = 0; i < k->n; i++) {
        const float *xi = k->x + i * OPI__DIMS;
        const uint32_t *ki = k->key + i * OPI__KEYS;
        unsigned bits = opi__kernel_soft_bits(key, ki);
        double c = offsets(k, key, ki);
        int site = equal(key, ki, OPI__K_SITE);
        for (int s = 0; s < OPI__LEVELS; s++) {
            if (opi__level_key[s] >= 0 && !equal(key, ki, opi__level_key[s]))
                continue;
            double r = sqrt(3 * distance(k->metric[s], x, xi)), m = (1 + r) * exp(-r), soft = m * k->soft[s][bits];
            c += k->v[s] * soft;
            near[s] = (float)soft > near[s] ? (float)soft : near[s];
            if (s == 0 && site)
                c += k->site[0] + k->site[1] * m + (equal(key, ki, OPI__K_SITE_GPU) ? k->site[2] : 0) +
                     (equal(key, ki, OPI__K_SITE_LLM) ? k->site[3] : 0);
        }
        if (site)
            near[OPI__LEVELS] = 1;
        sum += c * k->weight[i];
    }
    return sum;
}

/* ---- a new site ---- */

#define LEAST_SHARE .05 /* of a spread's square that stays whatever the local rows say */

static double site_variance(const opi__krige *k)
{
    return k->site[0] + k->site[1] + k->site[2] + k->site[3];
}

/* What the fitted process is unsure of at a point, beside site and noise. */
static double unsure(const opi__krige *k, double spread)
{
    double left = spread * spread - site_variance(k) - exp(k->kernel.noise);
    return sqrt(fmax(left, LEAST_SHARE * spread * spread));
}

static double local_covariance(const opi__krige *k, const float *a, const uint32_t *ka, double unsure_a, const float *b,
                               const uint32_t *kb, double unsure_b)
{
    unsigned bits = opi__kernel_soft_bits(ka, kb);
    double shared = 0, all = 0, m0 = 0;
    for (int s = 0; s < OPI__LEVELS; s++) {
        all += k->v[s];
        if (opi__level_key[s] >= 0 && !equal(ka, kb, opi__level_key[s]))
            continue;
        double r = sqrt(3 * distance(k->metric[s], a, b)), m = (1 + r) * exp(-r);
        shared += k->v[s] * m * k->soft[s][bits];
        if (s == 0)
            m0 = m;
    }
    double site = k->site[0] + k->site[1] * m0 + (equal(ka, kb, OPI__K_GPU) ? k->site[2] : 0) +
                  (equal(ka, kb, OPI__K_LLM) ? k->site[3] : 0);
    return site + unsure_a * unsure_b * shared / all;
}

int opi__krige_localize(const opi__krige *k, const opi__krige_local *l, double *weight, double *factor)
{
    size_t n = l->n;
    for (double noise = exp(k->kernel.noise); noise < 1; noise *= 4) {
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                factor[i * n + j] =
                    local_covariance(k, l->x + i * OPI__DIMS, l->key + i * OPI__KEYS, unsure(k, l->spread[i]),
                                     l->x + j * OPI__DIMS, l->key + j * OPI__KEYS, unsure(k, l->spread[j])) +
                    (i == j ? noise : 0);
        if (opi__cholesky(n, factor) == 0)
            return opi__solve_cholesky(n, 1, factor, weight);
    }
    return -1;
}

void opi__krige_here(const opi__krige *k, const opi__krige_local *l, const float *x, const uint32_t *key, double *c,
                     double *mean, double *spread)
{
    double gone = 0, own = unsure(k, *spread);
    for (size_t i = 0; i < l->n; i++) {
        c[i] = local_covariance(k, x, key, own, l->x + i * OPI__DIMS, l->key + i * OPI__KEYS, unsure(k, l->spread[i]));
        *mean += c[i] * l->weight[i];
    }
    for (size_t i = 0; i < l->n; i++) { /* forward substitution */
        double sum = c[i];
        for (size_t j = 0; j < i; j++)
            sum -= l->factor[i * l->n + j] * c[j];
        c[i] = sum / l->factor[i * l->n + i];
        gone += c[i] * c[i];
    }
    double square = *spread * *spread;
    *spread = sqrt(fmax(square - gone, LEAST_SHARE * square));
}
