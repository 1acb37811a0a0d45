/* SPDX-License-Identifier: Apache-2.0 */
/* Flat trees: evaluation against hand values, the check against every kind of damage, histogram bins. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "learn/tree.h"

Suite *suite_tree(void);

/* Two trees over two numbers and a category:
 *   x0 <= 1.5 (missing: left) ? (x2 == 3 ? 10 : 20) : 30;   x1 <= 0 (missing: right) ? 1 : 2 */
static uint32_t roots[] = {0, 5, 8};
static opi__node nodes[8];
static opi__forest forest;

static void setup(void)
{
    const opi__node fresh[8] = {{1.5f, 0 | OPI__MISSING_LEFT, 4}, {3, 2, 2}, {10, 0, 0}, {20, 0, 0}, {30, 0, 0},
                                {0, 1, 2}, {1, 0, 0}, {2, 0, 0}};
    const uint32_t fresh_roots[] = {0, 5, 8};
    memcpy(nodes, fresh, sizeof nodes);
    memcpy(roots, fresh_roots, sizeof roots);
    forest = (opi__forest){.n_trees = 2, .n_nodes = 8, .n_features = 3, .n_numbers = 2, .n_out = 1, .root = roots,
                           .node = nodes, .base = {100}};
}

static double value(float a, float b, float c)
{
    const float x[] = {a, b, c};
    double out;
    opi__forest_eval(&forest, x, &out);
    return out;
}

START_TEST(evaluates_by_hand)
{
    ck_assert_int_eq(opi__forest_check(&forest), 1);
    ck_assert_double_eq(value(0, 1, 3), 112);
    ck_assert_double_eq(value(0, 1, 4), 122);
    ck_assert_double_eq(value(2, 1, 3), 132);
    ck_assert_double_eq(value(1.5f, 0, 3), 111);              /* equal goes left */
    ck_assert_double_eq(value(1.5000001f, FLT_MIN, 3), 132);
    ck_assert_double_eq(value(NAN, NAN, 3), 112);             /* missing: left in the first tree, right in the second */
    ck_assert_double_eq(value(0, -INFINITY, NAN), 121);       /* a missing category is not the one asked for */
    ck_assert_double_eq(value(INFINITY, INFINITY, -1), 132);
}
END_TEST

START_TEST(evaluates_vector_leaves)
{
    float leaf[] = {1, 2, 4, 8, 16, 32};
    opi__node two[] = {{0, 0, 2}, {1, 0, 0}, {0, 0, 0}};
    uint32_t start[] = {0, 3};
    opi__forest f = {.n_trees = 1,
                     .n_nodes = 3,
                     .n_leaves = 2,
                     .n_features = 1,
                     .n_numbers = 1,
                     .n_out = 3,
                     .root = start,
                     .node = two,
                     .leaf = leaf,
                     .base = {.5f, .25f, .125f}};
    float x = -1;
    double out[3];
    ck_assert_int_eq(opi__forest_check(&f), 1);
    opi__forest_eval(&f, &x, out); /* left: leaf 1 */
    ck_assert(out[0] == 8.5 && out[1] == 16.25 && out[2] == 32.125);
    x = 1;
    opi__forest_eval(&f, &x, out);
    ck_assert(out[0] == 1.5 && out[1] == 2.25 && out[2] == 4.125);
    f.n_trees = f.n_nodes = 0;
    start[0] = 0;
    opi__forest_eval(&f, &x, out); /* no trees: the base */
    ck_assert(out[0] == .5 && out[1] == .25 && out[2] == .125);
    ck_assert_int_eq(opi__forest_check(&f), 1);
    for (int k = 0; k < 3; k++) {
        const float bad[] = {2, -1, .5f};
        setup();
        f.n_trees = 1, f.n_nodes = 3;
        two[1].value = bad[k];
        ck_assert_msg(!opi__forest_check(&f), "leaf index %g accepted of 2 leaves", (double)bad[k]);
    }
}
END_TEST

/* Each damage alone is refused. */
START_TEST(refuses_damage)
{
    struct {
        void *at;
        size_t size;
        uint32_t value;
    } damage[] = {
        {&forest.n_out, 2, 0},
        {&forest.n_out, 2, 5},
        {&forest.n_numbers, 2, 4},
        {&forest.n_features, 2, 0x8000},
        {&forest.n_features, 2, 2},
        {&forest.n_nodes, 4, 7},
        {&forest.n_nodes, 4, 9},
        {&roots[0], 4, 1},
        {&roots[1], 4, 0},
        {&roots[1], 4, 8},
        {&roots[1], 4, 4},
        {&roots[1], 4, 9},
        {&roots[2], 4, 7},
        {&nodes[0].right, 2, 1},
        {&nodes[0].right, 2, 5},
        {&nodes[0].right, 2, 0xffff},
        {&nodes[1].right, 2, 1},
        {&nodes[4].right, 2, 2},
        {&nodes[7].right, 2, 1},
        {&nodes[5].right, 2, 3},
        {&nodes[0].feature, 2, 3},
        {&nodes[1].feature, 2, 3 | OPI__MISSING_LEFT},
        {&nodes[5].feature, 2, 0x7fff},
        {&nodes[0].value, 4, 0x7fc00000u /* NaN */},
        {&nodes[2].value, 4, 0x7fc00000u},
        {&nodes[7].value, 4, 0x7f800000u /* infinite leaf */},
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        setup();
        memcpy(damage[i].at, &damage[i].value, damage[i].size);
        ck_assert_msg(!opi__forest_check(&forest), "damage %zu was accepted", i);
    }
    setup();
    nodes[0].value = INFINITY; /* "present against missing" is a threshold */
    ck_assert_int_eq(opi__forest_check(&forest), 1);
}
END_TEST

/* Whatever passes the check is safe to evaluate: the walk only moves forward and stays inside its tree. */
START_TEST(accepted_noise_is_safe)
{
    opi__rng rng;
    size_t accepted = 0;
    opi__rng_seed(&rng, 7);
    for (int round = 0; round < 20000; round++) {
        opi__node *node = malloc(12 * sizeof *node); /* of the exact size: a sanitizer sees what lies beyond */
        uint32_t n = 1 + (uint32_t)opi__rng_below(&rng, 12), start[] = {0, n};
        float x[3];
        double out;
        ck_assert_ptr_nonnull(node);
        for (uint32_t i = 0; i < n; i++) {
            node[i].value = (float)opi__rng_normal(&rng);
            node[i].feature = (uint16_t)(opi__rng_below(&rng, 4) | (opi__rng_below(&rng, 2) ? OPI__MISSING_LEFT : 0));
            node[i].right = (uint16_t)(opi__rng_below(&rng, 2) ? 0 : opi__rng_below(&rng, 6));
        }
        opi__forest f = {
            .n_trees = 1, .n_nodes = n, .n_features = 3, .n_numbers = 2, .n_out = 1, .root = start, .node = node};
        if (opi__forest_check(&f)) {
            accepted++;
            for (int k = 0; k < 3; k++)
                x[k] = opi__rng_below(&rng, 4) ? (float)opi__rng_normal(&rng) : NAN;
            opi__forest_eval(&f, x, &out);
            int known = 0;
            for (uint32_t i = 0; i < n; i++)
                known |= node[i].right == 0 && (double)node[i].value == out;
            ck_assert_int_eq(known, 1);
        }
        free(node);
    }
    ck_assert(accepted > 1000 && accepted < 19000);
}
END_TEST

/* ---- bins ---- */

#define ROWS 500
static float x[ROWS * 3], scratch[ROWS], edge[3][OPI__BINS];
static uint8_t code[ROWS * 3];
static uint16_t count[3];

static opi__bins build(size_t n, size_t features, size_t numbers)
{
    opi__bins b = {.n = n, .n_features = features, .n_numbers = numbers, .code = code, .edge = edge, .count = count};
    opi__bins_build(&b, x, scratch);
    return b;
}

START_TEST(few_values_have_a_bin_each)
{
    const float v[] = {3, NAN, 1, 1, 10, 3};
    const uint8_t want[] = {2, 0, 1, 1, 3, 2};
    memcpy(x, v, sizeof v);
    build(6, 1, 1);
    ck_assert_uint_eq(count[0], 3);
    ck_assert_mem_eq(code, want, sizeof want);
    ck_assert(edge[0][0] == 2 && edge[0][1] == 6.5f && isinf(edge[0][2])); /* edges lie in the middle */
    build(6, 1, 0); /* the same as categories: edges are the codes themselves */
    ck_assert_uint_eq(count[0], 3);
    ck_assert_mem_eq(code, want, sizeof want);
    ck_assert(edge[0][0] == 1 && edge[0][1] == 3 && edge[0][2] == 10);
}
END_TEST

START_TEST(degenerate_columns)
{
    for (int i = 0; i < 8; i++) {
        x[3 * i] = NAN;
        x[3 * i + 1] = 4;
        x[3 * i + 2] = i % 2 ? 1e30f : -1e30f;
    }
    build(8, 3, 3);
    ck_assert_uint_eq(count[0], 0);
    ck_assert_uint_eq(count[1], 1);
    ck_assert_uint_eq(count[2], 2);
    for (int i = 0; i < 8; i++) {
        ck_assert_uint_eq(code[3 * i], 0);
        ck_assert_uint_eq(code[3 * i + 1], 1);
        ck_assert_uint_eq(code[3 * i + 2], i % 2 ? 2 : 1);
    }
}
END_TEST

/* A split "code <= b" of a fit and "value <= edge" of the evaluation must be the same question, for every row and
 * bin. */
static void check_numbers(const opi__bins *b, size_t k)
{
    ck_assert(count[k] < OPI__BINS);
    for (unsigned bin = 1; bin < count[k]; bin++)
        ck_assert(edge[k][bin - 1] <= edge[k][bin]);
    for (size_t i = 0; i < b->n; i++) {
        float v = x[i * b->n_features + k];
        unsigned c = code[i * b->n_features + k];
        ck_assert_int_eq(c == 0, isnan(v) != 0);
        for (unsigned bin = 1; bin <= count[k] && c; bin++)
            ck_assert_int_eq(c <= bin, v <= edge[k][bin - 1]);
    }
}

START_TEST(many_values_share_bins)
{
    opi__rng rng;
    opi__rng_seed(&rng, 8);
    for (int round = 0; round < 60; round++) {
        size_t rows = 1 + (size_t)opi__rng_below(&rng, ROWS), most = 0, per_bin[OPI__BINS] = {0};
        uint64_t values = 1 + opi__rng_below(&rng, 400);
        for (size_t i = 0; i < rows; i++) {
            x[3 * i] = (float)opi__rng_normal(&rng);                                    /* all distinct */
            x[3 * i + 1] = (float)(values ? opi__rng_below(&rng, values) * .25 : 0);    /* ties */
            x[3 * i + 2] = opi__rng_below(&rng, 3) ? (float)exp(5 * opi__rng_normal(&rng)) : NAN;
        }
        opi__bins b = build(rows, 3, 3);
        for (size_t k = 0; k < 3; k++)
            check_numbers(&b, k);
        for (size_t i = 0; i < rows; i++)
            per_bin[code[3 * i]]++;
        for (int c = 0; c < OPI__BINS; c++)
            most = per_bin[c] > most ? per_bin[c] : most;
        size_t fair = (rows + OPI__BINS - 2) / (OPI__BINS - 1);
        ck_assert_msg(most <= fair, "%zu of %zu distinct values in one bin", most, rows);
    }
}
END_TEST

/* More categories than bins: those with a bin of their own are known exactly, the others count as never seen. */
START_TEST(many_categories)
{
    for (int i = 0; i < ROWS; i++)
        x[i] = (float)(i % 100);
    opi__bins b = build(ROWS, 1, 0);
    unsigned known = 0;
    ck_assert(count[0] < OPI__BINS);
    for (int i = 0; i < ROWS; i++) {
        known += i < 100 && code[i] > 0;
        ck_assert(code[i] <= count[0]);
        if (code[i])
            ck_assert_float_eq(b.edge[0][code[i] - 1], x[i]);
        ck_assert_uint_eq(code[i], code[i % 100]);
    }
    ck_assert_uint_eq(known, count[0]);
    ck_assert(known >= 40);
}
END_TEST

/* Neighboring floats have no middle; the two sides must still be the same in bins and in evaluation. */
START_TEST(adjacent_floats)
{
    float v = 1;
    for (int i = 0; i < 60; i++, v = nextafterf(v, 2))
        x[i] = v;
    opi__bins b = build(60, 1, 1);
    check_numbers(&b, 0);
    x[0] = -FLT_MAX, x[1] = FLT_MAX, x[2] = 0, x[3] = FLT_MAX / 2;
    b = build(4, 1, 1);
    for (size_t i = 0; i < 4; i++)
        for (unsigned bin = 1; bin <= count[0]; bin++)
            ck_assert_int_eq(code[i] <= bin, x[i] <= edge[0][bin - 1]);
}
END_TEST

Suite *suite_tree(void)
{
    Suite *s = suite_create("tree");
    TCase *t = tcase_create("tree");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, evaluates_by_hand);
    tcase_add_test(t, evaluates_vector_leaves);
    tcase_add_test(t, refuses_damage);
    tcase_add_test(t, accepted_noise_is_safe);
    tcase_add_test(t, few_values_have_a_bin_each);
    tcase_add_test(t, degenerate_columns);
    tcase_add_test(t, many_values_share_bins);
    tcase_add_test(t, many_categories);
    tcase_add_test(t, adjacent_floats);
    suite_add_tcase(s, t);
    return s;
}
