/* SPDX-License-Identifier: Apache-2.0 */
/* Covariances, their gradient, held-out residuals and means against hand values, differences and refitting. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/linalg.h"
#include "base/rng.h"
#include "learn/krige.h"

#define ROWS 40

typedef struct world {
    size_t n;
    double *x, *y;
    uint32_t *key;
    opi__points points;
} world;

static world make_world(size_t n, uint64_t seed, uint32_t values)
{
    opi__rng r;
    world w = {.n = n};
    opi__rng_seed(&r, seed);
    w.x = malloc(n * OPI__DIMS * sizeof *w.x);
    w.y = malloc(n * sizeof *w.y);
    w.key = malloc(n * OPI__KEYS * sizeof *w.key);
    for (size_t i = 0; i < n * OPI__DIMS; i++)
        w.x[i] = opi__rng_normal(&r);
    for (size_t i = 0; i < n; i++)
        w.y[i] = sin(w.x[i * OPI__DIMS]) + .5 * w.x[i * OPI__DIMS + 1];
    for (size_t i = 0; i < n * OPI__KEYS; i++)
        w.key[i] = (uint32_t)opi__rng_below(&r, values);
    w.points = (opi__points){n, w.x, w.key};
    return w;
}

static void free_world(world *w)
{
    free(w->x);
    free(w->y);
    free(w->key);
}

static double *covariance(const opi__kernel *k, const world *w)
{
    double *c = malloc(w->n * w->n * sizeof *c), *work = malloc(opi__kernel_work(w->n, w->n) * sizeof *work);
    opi__kernel_cross(k, &w->points, &w->points, 1, work, c);
    for (size_t i = 0; i < w->n; i++)
        c[i * w->n + i] += opi__kernel_noise(k, w->key + i * OPI__KEYS);
    free(work);
    return c;
}

START_TEST(covariance_is_the_formula)
{
    /* Two rows, by hand: nothing in common, then everything. */
    double x[2 * OPI__DIMS] = {0}, c[4], work[4096];
    uint32_t key[2 * OPI__KEYS];
    opi__kernel k;
    opi__kernel_start(&k);
    x[3] = 2; /* only one number differs, by 2 */
    for (uint32_t i = 0; i < 2 * OPI__KEYS; i++)
        key[i] = i;
    opi__points p = {2, x, key};
    opi__kernel_cross(&k, &p, &p, 1, work, c);
    double r = sqrt(3.) * 2 * exp(-2.2), m = (1 + r) * exp(-r), linear = 4 * exp(-6.);
    /* Level 1 with four soft keys that differ (factor 1/2 each), the constant, the linear term of row 0 with row 1 (0). */
    ck_assert_double_eq_tol(c[1], .3 * m / 16 + exp(-1.), 1e-12);
    ck_assert_double_eq_tol(c[0], .3 + .1 + .1 + .05 + .05 + exp(-1.) + 3 * exp(-4.) + .04 + 3 * .02 + linear, 1e-12);
    ck_assert_double_eq_tol(c[0], opi__kernel_self(&k, x, 1), 1e-12);
    ck_assert_double_eq_tol(c[3], c[0] - linear, 1e-12);
    memcpy(key + OPI__KEYS, key, OPI__KEYS * sizeof *key);
    opi__kernel_cross(&k, &p, &p, 1, work, c);
    ck_assert_double_eq_tol(c[1], .6 * m + exp(-1.) + 3 * exp(-4.) + .04 + .02 * m + .04, 1e-12);
    opi__kernel_cross(&k, &p, &p, 0, work, c);
    ck_assert_double_eq_tol(c[1], .6 * m + exp(-1.) + 3 * exp(-4.), 1e-12);
    key[OPI__K_LLM] = key[OPI__KEYS + OPI__K_LLM] = OPI__NO_KEY; /* what is not known is the same as nothing */
    opi__kernel_cross(&k, &p, &p, 0, work, c);
    ck_assert_double_eq_tol(c[1], .5 * m + exp(-1.) + 2 * exp(-4.), 1e-12);
}
END_TEST

START_TEST(gradient_is_that_of_differences)
{
    world w = make_world(ROWS, 3, 3);
    opi__kernel k, g, ignored;
    opi__kernel_start(&k);
    opi__rng r;
    opi__rng_seed(&r, 9);
    double *flat = (double *)&k, *slope = (double *)&g, value, above, below;
    for (size_t i = 0; i < OPI__KERNEL_PARAMETERS; i++)
        flat[i] += .3 * opi__rng_normal(&r); /* away from the start, where priors are flat */
    double *work = malloc(opi__kernel_gradient_work(w.n) * sizeof *work);
    ck_assert_int_eq(opi__kernel_gradient(&k, &w.points, w.y, work, &value, &g), 0);
    for (size_t i = 0; i < OPI__KERNEL_PARAMETERS; i++) {
        const double h = 1e-5, at = flat[i];
        flat[i] = at + h;
        opi__kernel_gradient(&k, &w.points, w.y, work, &above, &ignored);
        flat[i] = at - h;
        opi__kernel_gradient(&k, &w.points, w.y, work, &below, &ignored);
        flat[i] = at;
        ck_assert_double_eq_tol(slope[i], (above - below) / (2 * h), 1e-8);
    }
    free(work);
    free_world(&w);
}
END_TEST

START_TEST(held_out_blocks_are_what_refitting_gives)
{
    world w = make_world(ROWS, 5, 4);
    opi__kernel k;
    opi__kernel_start(&k);
    double *c = covariance(&k, &w), *inverse = malloc(w.n * w.n * sizeof *inverse), a[ROWS], held[ROWS], variance[ROWS];
    uint32_t block[ROWS], order[ROWS];
    for (size_t i = 0; i < w.n; i++)
        block[i] = (uint32_t)(i % 7);
    memcpy(inverse, c, w.n * w.n * sizeof *c);
    ck_assert_int_eq(opi__cholesky(w.n, inverse), 0);
    memcpy(a, w.y, sizeof a);
    opi__solve_cholesky(w.n, 1, inverse, a);
    opi__inverse(w.n, inverse);
    double *work = malloc(opi__krige_blocks_work(w.n, block) * sizeof *work);
    ck_assert_int_eq(opi__krige_blocks(w.n, inverse, a, block, order, work, held, variance), 0);
    for (size_t out = 0; out < w.n; out++) { /* the slow way: the rows of other blocks alone */
        size_t keep[ROWS], m = 0;
        double part[ROWS * ROWS], y[ROWS], cross[ROWS];
        for (size_t i = 0; i < w.n; i++)
            if (block[i] != block[out])
                keep[m++] = i;
        for (size_t i = 0; i < m; i++) {
            y[i] = w.y[keep[i]];
            cross[i] = c[out * w.n + keep[i]];
            for (size_t j = 0; j < m; j++)
                part[i * m + j] = c[keep[i] * w.n + keep[j]];
        }
        ck_assert_int_eq(opi__cholesky(m, part), 0);
        opi__solve_cholesky(m, 1, part, y);
        double mean = 0, gone = 0;
        for (size_t i = 0; i < m; i++)
            mean += cross[i] * y[i];
        opi__solve_lower(m, 1, part, cross);
        for (size_t i = 0; i < m; i++)
            gone += cross[i] * cross[i];
        ck_assert_double_eq_tol(held[out], w.y[out] - mean, 1e-8);
        ck_assert_double_eq_tol(variance[out], c[out * w.n + out] - gone, 1e-8);
    }
    free(work);
    free(inverse);
    free(c);
    free_world(&w);
}
END_TEST

START_TEST(mean_is_the_covariance_times_the_weights)
{
    world w = make_world(ROWS, 6, 3);
    float *x = malloc(w.n * OPI__DIMS * sizeof *x), near[OPI__NEARS];
    opi__krige k = {.n = w.n, .x = x, .key = w.key, .mean = 2};
    opi__kernel_start(&k.kernel);
    for (size_t i = 0; i < w.n * OPI__DIMS; i++) {
        x[i] = (float)w.x[i];
        w.x[i] = (double)x[i];
    }
    double *c = covariance(&k.kernel, &w), *factor = malloc(w.n * w.n * sizeof *factor), weight[ROWS];
    memcpy(factor, c, w.n * w.n * sizeof *c);
    opi__cholesky(w.n, factor);
    memcpy(weight, w.y, sizeof weight);
    opi__solve_cholesky(w.n, 1, factor, weight);
    k.weight = weight;
    opi__krige_ready(&k);
    for (size_t i = 0; i < w.n; i++) {
        double want = 2 - opi__kernel_noise(&k.kernel, w.key + i * OPI__KEYS) * weight[i];
        for (size_t j = 0; j < w.n; j++)
            want += c[i * w.n + j] * weight[j];
        ck_assert_double_eq_tol(opi__krige_mean(&k, x + i * OPI__DIMS, w.key + i * OPI__KEYS, near), want, 1e-5);
        for (int s = 0; s < OPI__LEVELS; s++)
            ck_assert_float_eq_tol(near[s], 1, 1e-6); /* the row itself */
        ck_assert_float_eq(near[OPI__LEVELS], 1);
    }
    uint32_t nowhere[OPI__KEYS];
    memset(nowhere, 0xff, sizeof nowhere);
    opi__krige_mean(&k, x, nowhere, near);
    ck_assert_float_eq_tol(near[0], 1.f / 16, 1e-6); /* the numbers are a row's, no soft key is */
    for (int s = 1; s <= OPI__LEVELS; s++)
        ck_assert_float_eq(near[s], 0);
    free(factor);
    free(c);
    free(x);
    free_world(&w);
}
END_TEST

START_TEST(nearness_leaves_the_own_block_out)
{
    world w = make_world(ROWS, 8, 3);
    opi__kernel k;
    opi__kernel_start(&k);
    uint32_t own[ROWS], all[ROWS] = {0};
    const uint32_t *block[2] = {own, all};
    float first[ROWS * OPI__NEARS], second[ROWS * OPI__NEARS], *near[2] = {first, second};
    for (uint32_t i = 0; i < ROWS; i++)
        own[i] = i;
    memcpy(w.x + OPI__DIMS, w.x, OPI__DIMS * sizeof *w.x); /* rows 0 and 1 are the same */
    memcpy(w.key + OPI__KEYS, w.key, OPI__KEYS * sizeof *w.key);
    double *work = malloc(opi__kernel_work(ROWS, ROWS) * sizeof *work);
    opi__kernel_near(&k, &w.points, 2, block, work, near);
    for (int s = 0; s < OPI__NEARS; s++)
        ck_assert_float_eq_tol(first[s], 1, 1e-6);
    for (size_t i = 0; i < ROWS * OPI__NEARS; i++)
        ck_assert_float_eq(second[i], 0); /* everything is one block: nothing is left */
    free(work);
    free_world(&w);
}
END_TEST

static double likelihood(const opi__kernel *k, const world *w)
{
    double value = 0;
    opi__kernel ignored;
    double *work = malloc(opi__kernel_gradient_work(w->n) * sizeof *work);
    ck_assert_int_eq(opi__kernel_gradient(k, &w->points, w->y, work, &value, &ignored), 0);
    free(work);
    return value;
}

static int stop_at_once(void *user)
{
    ++*(int *)user;
    return 1;
}

START_TEST(learning_lowers_the_loss_and_repeats)
{
    world w = make_world(120, 4, 3);
    opi__kernel start, k, again;
    opi__krige_options o = {100, 30, .08, 1, NULL, NULL};
    double *work = malloc(opi__krige_learn_work(&o, w.n) * sizeof *work);
    opi__kernel_start(&start);
    k = again = start;
    ck_assert_int_eq(opi__krige_learn(&o, &w.points, w.y, work, &k), 0);
    ck_assert_int_eq(opi__krige_learn(&o, &w.points, w.y, work, &again), 0);
    ck_assert_mem_eq(&k, &again, sizeof k);
    ck_assert_double_lt(likelihood(&k, &w), likelihood(&start, &w) - .3);
    /* The target depends on the first two numbers only: their inverse lengths or slopes stand out. */
    ck_assert_double_gt(k.length[0][0], k.length[0][7]);
    int asked = 0;
    o.stop = stop_at_once;
    o.user = &asked;
    again = start;
    opi__krige_learn(&o, &w.points, w.y, work, &again);
    ck_assert_mem_eq(&again, &start, sizeof start);
    ck_assert_int_eq(asked, 1);
    free(work);
    free_world(&w);
}
END_TEST

Suite *suite_krige(void);
Suite *suite_krige(void)
{
    Suite *s = suite_create("krige");
    TCase *t = tcase_create("krige");
    tcase_add_test(t, covariance_is_the_formula);
    tcase_add_test(t, gradient_is_that_of_differences);
    tcase_add_test(t, held_out_blocks_are_what_refitting_gives);
    tcase_add_test(t, mean_is_the_covariance_times_the_weights);
    tcase_add_test(t, nearness_leaves_the_own_block_out);
    tcase_add_test(t, learning_lowers_the_loss_and_repeats);
    suite_add_tcase(s, t);
    return s;
}
