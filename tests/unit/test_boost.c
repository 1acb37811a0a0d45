/* SPDX-License-Identifier: Apache-2.0 */
/* Boosting: single steps against hand values, limits, robustness, quantiles that cannot cross, determinism. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "learn/boost.h"

Suite *suite_boost(void);

#define ROWS 2000
#define FEATURES 3
#define NUMBERS 2

/* A data set and the forest fitted to it; everything is freed by drop. */
typedef struct fit {
    size_t n, used; /* rows of the data; of `row` (0 = n) */
    float x[ROWS * FEATURES];
    double y[ROWS], w[ROWS];
    uint32_t row[ROWS];
    uint8_t code[ROWS * FEATURES];
    float edge[FEATURES][OPI__BINS];
    uint16_t count[FEATURES];
    opi__bins bins;
    opi__forest forest;
    uint32_t trees;
    uint64_t *stop_after; /* trees until the fit is told to stop; NULL = never */
} fit;

static fit *f;

static void setup(void)
{
    f = calloc(1, sizeof *f);
    ck_assert_ptr_nonnull(f);
    for (uint32_t i = 0; i < ROWS; i++) {
        f->row[i] = i;
        f->w[i] = 1;
    }
}

static void drop(void)
{
    free(f->forest.root);
    free(f->forest.node);
    free(f->forest.leaf);
    f->forest = (opi__forest){0};
}

static void teardown(void)
{
    drop();
    free(f);
}

/* One deep exact step: no shrinkage, no sampling, no cut. */
static opi__boost_params plain(void)
{
    return (opi__boost_params){.loss = OPI__LOSS_HUBER, .trees = 1, .leaves = 16, .depth = 8, .rate = 1, .l2 = 0,
                               .min_weight = 1, .row_share = 1, .column_share = 1, .huber = 1e9, .seed = 1};
}

static int stop(void *user)
{
    uint64_t *left = user;
    return (*left)-- == 0;
}

/* Fits, with arrays of exactly the promised sizes and a guard behind each that must stay as it was. */
static void run(const opi__boost_params *p, int weighted)
{
    const size_t guard = 64;
    float *scratch = malloc((f->n + 1) * sizeof *scratch);
    size_t used = f->used ? f->used : f->n, outputs = p->loss == OPI__LOSS_HUBER ? 1 : 3;
    size_t work = opi__boost_workspace(p, used, FEATURES);
    size_t nodes = opi__boost_max_nodes(p) * sizeof(opi__node),
           leaves = opi__boost_max_leaves(p) * outputs * sizeof(float);
    unsigned char *workspace = malloc(work + guard), clean[64];
    drop();
    f->forest.root = malloc((p->trees + 1) * sizeof(uint32_t) + guard);
    f->forest.node = malloc(nodes + guard);
    f->forest.leaf = malloc(leaves + guard);
    memset(clean, 0xa5, guard);
    memcpy((char *)f->forest.root + (p->trees + 1) * sizeof(uint32_t), clean, guard);
    memcpy((char *)f->forest.node + nodes, clean, guard);
    memcpy((char *)f->forest.leaf + leaves, clean, guard);
    memcpy(workspace + work, clean, guard);
    f->bins = (opi__bins){f->n, FEATURES, NUMBERS, f->code, f->edge, f->count};
    opi__bins_build(&f->bins, f->x, scratch);
    f->trees = opi__boost_fit(p, &f->bins, f->row, used, f->y, weighted ? f->w : NULL, f->stop_after ? stop : NULL,
                              f->stop_after, workspace, &f->forest);
    ck_assert_mem_eq((char *)f->forest.root + (p->trees + 1) * sizeof(uint32_t), clean, guard);
    ck_assert_mem_eq((char *)f->forest.node + nodes, clean, guard);
    ck_assert_mem_eq((char *)f->forest.leaf + leaves, clean, guard);
    ck_assert_mem_eq(workspace + work, clean, guard);
    free(scratch);
    free(workspace);
    ck_assert_uint_eq(f->trees, f->forest.n_trees);
    ck_assert_int_eq(opi__forest_check(&f->forest), 1);
    ck_assert(f->forest.n_nodes <= opi__boost_max_nodes(p) && f->forest.n_leaves <= opi__boost_max_leaves(p));
}

static void put(double a, double b, double c, double y)
{
    float *x = &f->x[f->n * FEATURES];
    x[0] = (float)a, x[1] = (float)b, x[2] = (float)c;
    f->y[f->n++] = y;
}

static double at(double a, double b, double c)
{
    const float x[] = {(float)a, (float)b, (float)c};
    double out[3];
    opi__forest_eval(&f->forest, x, out);
    return out[0];
}

static void near(double value, double want, double tolerance)
{
    ck_assert_msg(fabs(value - want) <= tolerance, "%.9g, not %.9g", value, want);
}

START_TEST(one_split_gives_the_means)
{
    opi__boost_params p = plain();
    p.leaves = 2;
    put(1, 0, 0, 2), put(1, 0, 0, 4), put(2, 0, 0, 10), put(2, 0, 0, 16), put(2, 0, 0, 13);
    run(&p, 0);
    near(f->forest.base[0], 9, 1e-6);
    near(at(1, 0, 0), 3, 1e-6);
    near(at(2, 0, 0), 13, 1e-6);
    near(at(1.49, 0, 0), 3, 1e-6); /* the threshold lies in the middle */
    near(at(1.51, 0, 0), 13, 1e-6);
    near(at(-1e30, 0, 0), 3, 1e-6);
}
END_TEST

/* Base 5, gradients 5, 5, -5, -5: a leaf moves by rate x 10 / (2 + l2). */
START_TEST(shrinkage_by_hand)
{
    opi__boost_params p = plain();
    p.leaves = 2, p.rate = .5, p.l2 = 1;
    put(1, 0, 0, 0), put(1, 0, 0, 0), put(2, 0, 0, 10), put(2, 0, 0, 10);
    run(&p, 0);
    near(at(1, 0, 0), 5 - .5 * 10 / 3, 1e-6);
    near(at(2, 0, 0), 5 + .5 * 10 / 3, 1e-6);
    p.trees = 2; /* what is left: 10/3 on either side */
    run(&p, 0);
    near(at(1, 0, 0), 5 - .5 * 10 / 3 * (1 + 2 / 3.), 1e-6);
    p.trees = 200;
    run(&p, 0);
    near(at(1, 0, 0), 0, 1e-4);
    near(at(2, 0, 0), 10, 1e-4);
}
END_TEST

START_TEST(missing_values_choose_their_side)
{
    opi__boost_params p = plain();
    p.leaves = 2;
    for (int side = 0; side < 2; side++) { /* blanks behave as the low, then as the high values */
        f->n = 0;
        for (int i = 0; i < 10; i++) {
            put(1, 0, 0, 0), put(2, 0, 0, 10);
            put(NAN, 0, 0, side ? 10 : 0);
        }
        run(&p, 0);
        near(at(NAN, 0, 0), side ? 10 : 0, 1e-6);
        near(at(1, 0, 0), 0, 1e-6);
        near(at(2, 0, 0), 10, 1e-6);
    }
    f->n = 0; /* blanks against all that is stated */
    for (int i = 0; i < 10; i++)
        put(i % 3, 0, 0, 5), put(NAN, 0, 0, -5);
    run(&p, 0);
    near(at(NAN, 0, 0), -5, 1e-6);
    near(at(1, 0, 0), 5, 1e-6);
    near(at(1e30, 0, 0), 5, 1e-6);
}
END_TEST

START_TEST(categories_split_one_from_the_rest)
{
    opi__boost_params p = plain();
    p.leaves = 2;
    for (int i = 0; i < 30; i++)
        put(0, 0, i % 5, i % 5 == 2 ? 8 : 0);
    run(&p, 0);
    near(at(0, 0, 2), 8, 1e-6);
    near(at(0, 0, 1), 0, 1e-6);
    near(at(0, 0, 3), 0, 1e-6);
    near(at(0, 0, -1), 0, 1e-6); /* a name never seen goes with the rest */
}
END_TEST

static uint32_t widest_tree(void)
{
    uint32_t most = 0;
    for (uint32_t t = 0; t < f->forest.n_trees; t++) {
        uint32_t leaves = 0;
        for (uint32_t i = f->forest.root[t]; i < f->forest.root[t + 1]; i++)
            leaves += f->forest.node[i].right == 0;
        most = leaves > most ? leaves : most;
    }
    return most;
}

static uint32_t depth_below(const opi__node *n)
{
    if (!n->right)
        return 0;
    uint32_t a = depth_below(n + 1), b = depth_below(n + n->right);
    return 1 + (a > b ? a : b);
}

static void staircase(size_t n)
{
    f->n = 0;
    for (size_t i = 0; i < n; i++)
        put((double)(i % 64), (double)(i % 7), (double)(i % 3), (double)(i % 64) + 20 * (double)(i % 3));
}

START_TEST(limits_of_a_tree)
{
    opi__boost_params p = plain();
    staircase(640);
    p.trees = 5;
    for (p.leaves = 2; p.leaves <= 40; p.leaves += 19) {
        run(&p, 0);
        ck_assert_uint_eq(widest_tree(), p.leaves); /* there is enough to split */
    }
    for (p.depth = 1; p.depth <= 3; p.depth++) {
        uint32_t deepest = 0;
        run(&p, 0);
        for (uint32_t t = 0; t < f->forest.n_trees; t++) {
            uint32_t d = depth_below(&f->forest.node[f->forest.root[t]]);
            deepest = d > deepest ? d : deepest;
        }
        ck_assert_uint_eq(deepest, p.depth);
    }
    p.depth = 8, p.trees = 1, p.leaves = 64, p.min_weight = 100;
    run(&p, 0);
    ck_assert(widest_tree() >= 2 && widest_tree() <= 6);
    p.min_weight = 321; /* no split leaves that much on both sides */
    run(&p, 0);
    ck_assert_uint_eq(f->trees, 0);
    near(at(3, 0, 0), f->forest.base[0], 0);
}
END_TEST

/* A weight of 3 is the row three times. */
START_TEST(weights_are_repeats)
{
    opi__boost_params p = plain();
    opi__rng rng;
    double once[50];
    p.trees = 20, p.rate = .3, p.leaves = 6, p.l2 = 1, p.min_weight = 3;
    opi__rng_seed(&rng, 9);
    for (int i = 0; i < 200; i++) /* on a grid: bins must not depend on the repeats */
        put((double)opi__rng_below(&rng, 20), (double)opi__rng_below(&rng, 20), (double)(i % 4),
            opi__rng_normal(&rng) + (i % 4));
    for (size_t i = 0; i < 200; i++)
        f->w[i] = 1 + (double)(i % 3);
    run(&p, 1);
    for (int i = 0; i < 50; i++)
        once[i] = at(f->x[3 * i], f->x[3 * i + 1], f->x[3 * i + 2]);
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i % 3; k++)
            put(f->x[3 * i], f->x[3 * i + 1], f->x[3 * i + 2], f->y[i]);
    run(&p, 0);
    for (int i = 0; i < 50; i++)
        near(at(f->x[3 * i], f->x[3 * i + 1], f->x[3 * i + 2]), once[i], 1e-5);
}
END_TEST

/* Only the rows asked for are learned from. */
START_TEST(rows_are_chosen)
{
    opi__boost_params p = plain();
    for (int i = 0; i < 40; i++)
        put(i % 2, 0, 0, i < 20 ? 1000 : i % 2);
    f->used = 6;
    for (uint32_t i = 0; i < 6; i++)
        f->row[i] = 39 - 3 * i;
    run(&p, 0);
    near(at(0, 0, 0), 0, 1e-6);
    near(at(1, 0, 0), 1, 1e-6);
}
END_TEST

static double surface(double a, double b, double c)
{
    return sin(2 * a) + .5 * a * b + (c == 1 ? 1 : 0);
}

static void sample_surface(size_t n, double noise, uint64_t seed)
{
    opi__rng rng;
    opi__rng_seed(&rng, seed);
    f->n = 0;
    for (size_t i = 0; i < n; i++) {
        double a = 4 * opi__rng_uniform(&rng) - 2, b = 4 * opi__rng_uniform(&rng) - 2,
               c = (double)opi__rng_below(&rng, 3);
        put(a, b, c, surface(a, b, c) + noise * opi__rng_normal(&rng));
    }
}

/* Mean squared error against the truth, relative to its variance, on fresh points. */
static double unexplained(void)
{
    opi__rng rng;
    double error = 0, sum = 0, square = 0;
    opi__rng_seed(&rng, 77);
    for (int i = 0; i < 1000; i++) {
        double a = 3.6 * opi__rng_uniform(&rng) - 1.8, b = 3.6 * opi__rng_uniform(&rng) - 1.8;
        double c = (double)opi__rng_below(&rng, 3), truth = surface(a, b, c), e = at(a, b, c) - truth;
        error += e * e, sum += truth, square += truth * truth;
    }
    return error / (square - sum * sum / 1000);
}

static opi__boost_params usual(void)
{
    return (opi__boost_params){.loss = OPI__LOSS_HUBER, .trees = 150, .leaves = 12, .depth = 8, .rate = .1, .l2 = 1,
                               .min_weight = 3, .row_share = .8, .column_share = .7, .huber = 4, .seed = 3};
}

START_TEST(learns_a_smooth_surface)
{
    opi__boost_params p = usual();
    sample_surface(1500, .1, 10);
    run(&p, 0);
    ck_assert_uint_eq(f->trees, 150);
    ck_assert_msg(unexplained() < .05, "%g of the variance is left", unexplained());
}
END_TEST

/* One row in twenty contradicts the others by far: with the cut the fit survives, without it it does not. */
START_TEST(contradicting_rows_do_not_bend_it)
{
    opi__boost_params p = usual();
    sample_surface(1500, .05, 11);
    for (size_t i = 0; i < f->n; i += 20)
        f->y[i] += 30;
    run(&p, 0);
    double cut = unexplained();
    p.huber = 1e9;
    run(&p, 0);
    ck_assert_msg(cut < .1, "%g of the variance is left", cut);
    ck_assert_msg(unexplained() > 5 * cut, "%g without the cut, %g with it", unexplained(), cut);
}
END_TEST

/* Noise whose width depends on the row: each quantile is found, below and above in each group, and none crosses. */
START_TEST(quantiles_are_found)
{
    opi__boost_params p = {.loss = OPI__LOSS_QUANTILES, .trees = 100, .leaves = 4, .depth = 5, .rate = .05, .l2 = 5,
                           .min_weight = 20, .row_share = .8, .column_share = .7, .seed = 4};
    opi__rng rng;
    opi__rng_seed(&rng, 12);
    for (int i = 0; i < 2000; i++) {
        double a = opi__rng_uniform(&rng), c = i % 2, e = opi__rng_normal(&rng);
        put(a, opi__rng_normal(&rng), c, 3 * a + (c > 0 ? 2 : .5) * (e > 0 ? 2 * e : e));
    }
    run(&p, 0);
    for (int c = 0; c < 2; c++) {
        double below[3] = {0};
        for (int i = 0; i < 4000; i++) {
            double a = opi__rng_uniform(&rng), e = opi__rng_normal(&rng), q[3];
            double y = 3 * a + (c > 0 ? 2 : .5) * (e > 0 ? 2 * e : e);
            const float x[] = {(float)a, (float)opi__rng_normal(&rng), (float)c};
            opi__forest_eval(&f->forest, x, q);
            const double quantile[] = {q[0] - exp(q[1]), q[0], q[0] + exp(q[2])};
            ck_assert(quantile[0] < quantile[1] && quantile[1] < quantile[2]);
            for (int k = 0; k < 3; k++)
                below[k] += y < quantile[k];
        }
        near(below[0] / 4000, .1, .04);
        near(below[1] / 4000, .5, .06);
        near(below[2] / 4000, .9, .04);
    }
}
END_TEST

START_TEST(same_seed_same_bytes)
{
    opi__boost_params p = usual();
    p.trees = 30;
    sample_surface(400, .1, 13);
    run(&p, 0);
    uint32_t n = f->forest.n_nodes;
    opi__node *before = malloc(n * sizeof *before);
    memcpy(before, f->forest.node, n * sizeof *before);
    run(&p, 0);
    ck_assert_uint_eq(f->forest.n_nodes, n);
    ck_assert_mem_eq(f->forest.node, before, n * sizeof *before);
    p.seed++;
    run(&p, 0);
    ck_assert(f->forest.n_nodes != n || memcmp(f->forest.node, before, n * sizeof *before));
    free(before);
}
END_TEST

START_TEST(stops_when_told)
{
    opi__boost_params p = usual();
    uint64_t left = 7;
    sample_surface(300, .1, 14);
    f->stop_after = &left;
    run(&p, 0);
    ck_assert_uint_eq(f->trees, 7);
    left = 0;
    run(&p, 0);
    ck_assert_uint_eq(f->trees, 0);
    ck_assert_uint_eq(f->forest.n_nodes, 0);
}
END_TEST

START_TEST(nothing_to_learn)
{
    opi__boost_params p = usual(), q = p;
    q.loss = OPI__LOSS_QUANTILES;
    f->n = 0;
    run(&p, 0);
    ck_assert_uint_eq(f->trees, 0);
    run(&q, 0);
    ck_assert_uint_eq(f->trees, 0);
    put(1, 2, 0, 7);
    run(&p, 0);
    ck_assert_uint_eq(f->trees, 0);
    near(at(1, 2, 0), 7, 0);
    run(&q, 0);
    near(at(1, 2, 0), 7, 1e-6);
    for (int i = 0; i < 50; i++)
        put(i, -i, i % 3, 7); /* a constant */
    run(&p, 0);
    near(at(25, 1, 1), 7, 1e-6);
    run(&q, 0);
    near(at(25, 1, 1), 7, .01);
}
END_TEST

Suite *suite_boost(void)
{
    Suite *s = suite_create("boost");
    TCase *t = tcase_create("boost");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, one_split_gives_the_means);
    tcase_add_test(t, shrinkage_by_hand);
    tcase_add_test(t, missing_values_choose_their_side);
    tcase_add_test(t, categories_split_one_from_the_rest);
    tcase_add_test(t, limits_of_a_tree);
    tcase_add_test(t, weights_are_repeats);
    tcase_add_test(t, rows_are_chosen);
    tcase_add_test(t, learns_a_smooth_surface);
    tcase_add_test(t, contradicting_rows_do_not_bend_it);
    tcase_add_test(t, quantiles_are_found);
    tcase_add_test(t, same_seed_same_bytes);
    tcase_add_test(t, stops_when_told);
    tcase_add_test(t, nothing_to_learn);
    suite_add_tcase(s, t);
    return s;
}
