/* SPDX-License-Identifier: Apache-2.0 */
/* The covariance of two configurations: five levels of Matern-3/2 kernels, each over rows that share more and more, plus
 * linear terms, offsets, and the random effect of the site. Works on plain arrays.
 *
 *   k(x, x') = sum over levels s of  v_s * m(|l_s * (x - x')|) * [same key of level s] * product of soft r_su^[differs]
 *            + constant + linear + offsets per key
 *            + [same site] * (w_0 + w_1 m(|l_0 (x - x')|) + w_2 [same GPU] + w_3 [same LLM])
 *   m(d) = (1 + sqrt(3) d) exp(-sqrt(3) d)
 *
 * Rasmussen and Williams 2006, chapters 2, 4 and 5. */
#ifndef OPI_LEARN_KERNEL_H
#define OPI_LEARN_KERNEL_H
#include <stddef.h>
#include <stdint.h>

/* Keys of a row: small numbers, equal when the thing is the same; OPI__NO_KEY is the same as nothing. */
enum {
    OPI__K_LLM,
    OPI__K_GPU_ENGINE,
    OPI__K_LLM_GPU_ENGINE,
    OPI__K_CONFIG,
    OPI__K_ENGINE_VERSION,
    OPI__K_LOAD_ENGINE,
    OPI__K_PRECISION,
    OPI__K_GPU,
    OPI__K_SITE,
    OPI__K_SITE_GPU,
    OPI__K_SITE_LLM,
    OPI__KEYS
};
#define OPI__NO_KEY UINT32_MAX

#define OPI__LEVELS  5
#define OPI__SOFTS   4
#define OPI__OFFSETS 3
#define OPI__SITES   4
#define OPI__ROUGHS  32 /* sites with a noise of their own; others share them by remainder */
#define OPI__DIMS    48 /* numbers of a row, standardized */

/* Hyperparameters, as the optimizer sees them: logarithms, and logits for the soft factors. All doubles. */
typedef struct opi__kernel {
    double v[OPI__LEVELS];
    double length[OPI__LEVELS][OPI__DIMS]; /* log of the inverse length scale */
    double soft[OPI__LEVELS][OPI__SOFTS];  /* logit of the factor where the soft key differs */
    double linear[OPI__DIMS];
    double constant;
    double offset[OPI__OFFSETS];
    double site[OPI__SITES];
    double noise;                /* variance of what nothing explains, */
    double rough[OPI__ROUGHS];   /* times this: campaigns differ in how well they repeat themselves */
} opi__kernel;
#define OPI__KERNEL_PARAMETERS (sizeof(opi__kernel) / sizeof(double))

/* x: [n * OPI__DIMS], key: [n * OPI__KEYS]. */
typedef struct opi__points {
    size_t n;
    const double *x;
    const uint32_t *key;
} opi__points;

void opi__kernel_start(opi__kernel *k);
/* c [a.n * b.n] = covariances, without noise. `work`: opi__kernel_work(a.n, b.n) doubles. with_site 0: the site terms are
 * left out. */
size_t opi__kernel_work(size_t a, size_t b);
void opi__kernel_cross(const opi__kernel *k, const opi__points *a, const opi__points *b, int with_site, double *work,
                       double *c);
/* How near the nearest row is that is not of the row's own block: at each level the largest correlation m times soft
 * factors, 0 when none shares the key, and last whether any shares the site. block[kind]: [n] each; near[kind]:
 * [n * OPI__NEARS] each. work: opi__kernel_work(n, n) doubles. */
#define OPI__NEARS (OPI__LEVELS + 1)
void opi__kernel_near(const opi__kernel *k, const opi__points *p, int kinds, const uint32_t *const *block, double *work,
                      float *const *near);
/* Noise variance of a row. */
double opi__kernel_noise(const opi__kernel *k, const uint32_t *key);
/* Variance of a point by itself, without noise. */
double opi__kernel_self(const opi__kernel *k, const double *x, int with_site);
/* Negative log marginal likelihood of y [n] a row, with weak priors on length scales and site variances, and its
 * gradient (laid out as opi__kernel). work: opi__kernel_gradient_work(n) doubles. 0, or -1 when the covariance is not
 * positive definite. */
size_t opi__kernel_gradient_work(size_t n);
int opi__kernel_gradient(const opi__kernel *k, const opi__points *p, const double *y, double *work, double *value,
                         opi__kernel *gradient);

/* The product of the soft factors of a level for each combination of soft keys that are the same (16 entries), and the
 * combination of two rows. */
void opi__kernel_soft(const opi__kernel *k, int level, double *product);
unsigned opi__kernel_soft_bits(const uint32_t *a, const uint32_t *b);
/* Level keys and soft keys, for those who evaluate a single point (krige.c). */
extern const int opi__level_key[OPI__LEVELS]; /* -1: everybody */
extern const int opi__soft_key[OPI__SOFTS];
extern const int opi__offset_key[OPI__OFFSETS];
#endif
