/* SPDX-License-Identifier: Apache-2.0 */
/* Finite-sample ranks, bounds and exceedance of split-conformal calibration. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "learn/conformal.h"

Suite *suite_conformal(void);

#define MOST 400

static void draw(opi__rng *rng, float *scores, size_t n, double shift)
{
    for (size_t i = 0; i < n; i++)
        scores[i] = (float)(opi__rng_normal(rng) + shift);
    opi__conformal_sort(scores, n);
}

START_TEST(sorts_scores)
{
    float v[] = {3, -1, 2, -7.5f, 2, 0}, want[] = {-7.5f, -1, 0, 2, 2, 3}, one[] = {4};
    opi__conformal_sort(v, 6);
    ck_assert_mem_eq(v, want, sizeof want);
    opi__conformal_sort(one, 1);
    ck_assert_float_eq(one[0], 4);
    opi__conformal_sort(NULL, 0);
}
END_TEST

/* The ceil((n + 1) level)-th smallest, by hand. With scores 1 … n the value is the rank. */
START_TEST(upper_rank_by_hand)
{
    static const struct {
        size_t n;
        double level, rank; /* 0: past n */
    } known[] = {{9, .9, 9},  {9, .8, 8},   {9, .91, 0},  {9, .5, 5},    {10, .9, 10},  {10, .8, 9},    {10, .95, 0},
                 {19, .95, 19}, {19, .951, 0}, {99, .99, 99}, {98, .99, 0},  {100, .5, 51}, {100, .9, 91}, {1, .5, 1},
                 {1, .51, 0},   {4, .8, 4},    {4, .75, 4},   {199, .7, 140}, {999, .3, 300}, {39, .1, 4}};
    float v[1000];
    for (size_t i = 0; i < 1000; i++)
        v[i] = (float)(i + 1);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        double got = opi__conformal_upper(v, known[k].n, known[k].level);
        double want = known[k].rank > 0 ? known[k].rank : INFINITY;
        ck_assert_msg(got == want, "n %zu, level %g: %g, not %g", known[k].n, known[k].level, got, want);
    }
    ck_assert(isinf(opi__conformal_upper(v, 0, .5)));
}
END_TEST

/* (n + 1) level is a whole number in exact arithmetic: rounding must not cost a rank. */
START_TEST(upper_rank_exact_products)
{
    float v[1000];
    for (size_t i = 0; i < 1000; i++)
        v[i] = (float)(i + 1);
    for (int percent = 50; percent < 100; percent++)
        for (size_t n = 1; n < 1000; n++) {
            size_t exact = ((n + 1) * (size_t)percent + 99) / 100;
            double got = opi__conformal_upper(v, n, percent / 100.), want = exact > n ? INFINITY : (double)exact;
            ck_assert_msg(got == want, "n %zu, level %d %%: %g, not %g", n, percent, got, want);
        }
}
END_TEST

START_TEST(bounds_by_hand)
{
    float v[19];
    double lo = 9, hi = 9;
    for (int i = 0; i < 19; i++)
        v[i] = (float)(i - 9); /* -9 … 9 */
    opi__conformal_bounds(v, 19, .8, &lo, &hi); /* 10 % of 20 on either side: the 2nd and the 18th */
    ck_assert_double_eq(lo, -8);
    ck_assert_double_eq(hi, 8);
    opi__conformal_bounds(v, 19, .9, &lo, &hi); /* the 1st and the 19th */
    ck_assert_double_eq(lo, -9);
    ck_assert_double_eq(hi, 9);
    opi__conformal_bounds(v, 19, .5, &lo, &hi); /* the 5th and the 15th */
    ck_assert_double_eq(lo, -5);
    ck_assert_double_eq(hi, 5);
    v[18] = 30;
    opi__conformal_bounds(v, 19, .95, &lo, &hi); /* too few for two tails: all 19 absolute values */
    ck_assert_double_eq(lo, -30);
    ck_assert_double_eq(hi, 30);
    opi__conformal_bounds(v, 19, .96, &lo, &hi);
    ck_assert(isinf(lo) && lo < 0 && isinf(hi) && hi > 0);
    opi__conformal_bounds(NULL, 0, .5, &lo, &hi);
    ck_assert(isinf(lo) && lo < 0 && isinf(hi) && hi > 0);
}
END_TEST

/* Scores all on one side still give bounds around the median. */
START_TEST(bounds_hold_zero)
{
    float above[50], below[50];
    double lo, hi;
    for (int i = 0; i < 50; i++) {
        above[i] = (float)(i + 1);
        below[i] = (float)(i - 50);
    }
    opi__conformal_bounds(above, 50, .8, &lo, &hi);
    ck_assert_double_eq(lo, 0);
    ck_assert_double_eq(hi, 46);
    opi__conformal_bounds(below, 50, .8, &lo, &hi);
    ck_assert_double_eq(lo, -46);
    ck_assert_double_eq(hi, 0);
}
END_TEST

/* Never a clipped level: finite exactly when (n + 1) level <= n, and then as many scores inside as the rank asks
 * for. */
START_TEST(infinite_when_too_few)
{
    opi__rng rng;
    float v[MOST];
    opi__rng_seed(&rng, 1);
    for (size_t n = 1; n < MOST; n += 1 + n / 20) {
        draw(&rng, v, n, 0);
        for (int permille = 500; permille <= 990; permille += 5) {
            double level = permille / 1000., lo, hi;
            int enough = (n + 1) * (size_t)permille <= n * 1000;
            size_t inside = 0, need = ((n + 1) * (size_t)permille + 999) / 1000;
            opi__conformal_bounds(v, n, level, &lo, &hi);
            ck_assert_msg((isfinite(lo) && isfinite(hi)) == enough, "n %zu, level %g: %g to %g", n, level, lo, hi);
            ck_assert_int_eq(isinf(opi__conformal_upper(v, n, level)) != 0, !enough);
            for (size_t i = 0; i < n; i++)
                inside += (double)v[i] >= lo && (double)v[i] <= hi;
            ck_assert_msg(!enough || inside >= need, "n %zu, level %g: %zu inside, %zu needed", n, level, inside, need);
        }
    }
}
END_TEST

START_TEST(bounds_grow_with_level)
{
    opi__rng rng;
    float v[MOST];
    opi__rng_seed(&rng, 2);
    for (int round = 0; round < 600; round++) {
        size_t n = 1 + (size_t)opi__rng_below(&rng, MOST - 1);
        double last_lo = 0, last_hi = 0, last_upper = -INFINITY;
        draw(&rng, v, n, round % 3 - 1);
        for (double level = .5; level < .9905; level += .0025) {
            double lo, hi, upper = opi__conformal_upper(v, n, level);
            opi__conformal_bounds(v, n, level, &lo, &hi);
            ck_assert_msg(lo <= 0 && hi >= 0, "n %zu, level %g: %g to %g", n, level, lo, hi);
            ck_assert_msg(lo <= last_lo && hi >= last_hi && upper >= last_upper,
                          "n %zu, level %g: %g to %g inside the narrower level's %g to %g", n, level, lo, hi, last_lo,
                          last_hi);
            last_lo = lo, last_hi = hi, last_upper = upper;
        }
    }
}
END_TEST

#define SEEDS 40
#define TRIALS 1500

/* A new score, exchangeable with n others, lies inside with exactly the probability of the ranks. Over many seeds
 * the hits are binomial: each seed within 4.5 standard deviations, all together within 3.5. */
static void coverage(size_t n, double level, double inside, double beyond)
{
    float v[MOST];
    size_t all_in = 0, all_over = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        opi__rng rng;
        size_t in = 0, over = 0;
        opi__rng_seed(&rng, seed * 1000 + n);
        for (int trial = 0; trial < TRIALS; trial++) {
            double lo, hi, next;
            draw(&rng, v, n, 0);
            next = (double)(float)opi__rng_normal(&rng);
            opi__conformal_bounds(v, n, level, &lo, &hi);
            in += next >= lo && next <= hi;
            over += next <= opi__conformal_upper(v, n, level);
        }
        ck_assert_msg(fabs((double)in - TRIALS * inside) <= 4.5 * sqrt(TRIALS * inside * (1 - inside)),
                      "n %zu, level %g, seed %d: %zu of %d inside, %g expected", n, level, (int)seed, in, TRIALS,
                      inside);
        all_in += in;
        all_over += over;
    }
    double total = (double)SEEDS * TRIALS;
    ck_assert_msg(fabs((double)all_in - total * inside) <= 3.5 * sqrt(total * inside * (1 - inside)),
                  "n %zu, level %g: %zu of %g inside, %g expected", n, level, all_in, total, inside);
    ck_assert_msg(fabs((double)all_over - total * beyond) <= 3.5 * sqrt(total * beyond * (1 - beyond)),
                  "n %zu, level %g: %zu of %g below the upper bound, %g expected", n, level, all_over, total, beyond);
}

START_TEST(coverage_is_exact)
{
    coverage(24, .8, 21. / 25, 20. / 25);  /* two tails of 2 ranks, 25 gaps; one tail: rank 20 */
    coverage(39, .9, 36. / 40, 36. / 40);
    coverage(12, .9, 12. / 13, 12. / 13);  /* too few for two tails: the largest of 12 */
    coverage(99, .8, .8, .8);
    coverage(8, .95, 1, 1);                /* infinite */
}
END_TEST

START_TEST(exceed_counts)
{
    static const float ties[] = {-2, -1, -1, 0, 3, 3, 3, 5};
    ck_assert_double_eq_tol(opi__conformal_exceed(ties, 8, -3), 1, 1e-15);
    ck_assert_double_eq_tol(opi__conformal_exceed(ties, 8, -1), 6. / 9, 1e-15);
    ck_assert_double_eq_tol(opi__conformal_exceed(ties, 8, 2.5), 5. / 9, 1e-15);
    ck_assert_double_eq_tol(opi__conformal_exceed(ties, 8, 3), 2. / 9, 1e-15);
    ck_assert_double_eq_tol(opi__conformal_exceed(ties, 8, 5), 1. / 9, 1e-15);
    ck_assert_double_eq_tol(opi__conformal_exceed(ties, 8, INFINITY), 1. / 9, 1e-15);
    ck_assert_double_eq(opi__conformal_exceed(ties, 8, -INFINITY), 1);
    ck_assert_double_eq(opi__conformal_exceed(NULL, 0, 0), 1);
    opi__rng rng;
    float v[MOST];
    opi__rng_seed(&rng, 3);
    for (int round = 0; round < 300; round++) {
        size_t n = (size_t)opi__rng_below(&rng, MOST), above = 0;
        draw(&rng, v, n, 0);
        double z = n && round % 2 ? (double)v[opi__rng_below(&rng, n)] : opi__rng_normal(&rng);
        for (size_t i = 0; i < n; i++)
            above += (double)v[i] > z;
        ck_assert_double_eq(opi__conformal_exceed(v, n, z), ((double)above + 1) / ((double)n + 1));
    }
}
END_TEST

/* The upper bound at `level` is exceeded with probability 1 - level at most, and just below it no longer. */
START_TEST(exceed_inverts_upper)
{
    opi__rng rng;
    float v[MOST];
    opi__rng_seed(&rng, 4);
    for (int round = 0; round < 300; round++) {
        size_t n = 50 + (size_t)opi__rng_below(&rng, MOST - 50);
        double level = .5 + .45 * opi__rng_uniform(&rng);
        draw(&rng, v, n, 0);
        double q = opi__conformal_upper(v, n, level);
        ck_assert(opi__conformal_exceed(v, n, q) <= 1 - level + 1. / (double)(n + 1) + 1e-12);
        ck_assert(opi__conformal_exceed(v, n, nextafterf((float)q, -INFINITY)) > 1 - level);
    }
}
END_TEST

Suite *suite_conformal(void)
{
    Suite *s = suite_create("conformal");
    TCase *t = tcase_create("conformal");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, sorts_scores);
    tcase_add_test(t, upper_rank_by_hand);
    tcase_add_test(t, upper_rank_exact_products);
    tcase_add_test(t, bounds_by_hand);
    tcase_add_test(t, bounds_hold_zero);
    tcase_add_test(t, infinite_when_too_few);
    tcase_add_test(t, bounds_grow_with_level);
    tcase_add_test(t, coverage_is_exact);
    tcase_add_test(t, exceed_counts);
    tcase_add_test(t, exceed_inverts_upper);
    suite_add_tcase(s, t);
    return s;
}
