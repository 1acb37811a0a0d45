/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges, their slack and sets of pairs. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "learn/envelope.h"

Suite *suite_envelope(void);

#define FAR 10.

START_TEST(range_of_chosen_rows)
{
    const double v[] = {100, 3, NAN, -2, 7, 1000};
    const uint32_t row[] = {1, 3, 4}, with_blank[] = {1, 2}, blank[] = {2};
    opi__range r;
    opi__range_fit(&r, v, row, 3, .5);
    ck_assert_double_eq(r.lo, -2);
    ck_assert_double_eq(r.hi, 7);
    ck_assert_double_eq(r.slack, .5);
    ck_assert_int_eq(r.seen, 1);
    ck_assert_int_eq(r.blank_seen, 0);
    opi__range_fit(&r, v, with_blank, 2, .5);
    ck_assert_double_eq(r.lo, 3);
    ck_assert_double_eq(r.hi, 3);
    ck_assert_int_eq(r.blank_seen, 1);
    opi__range_fit(&r, v, blank, 1, .5);
    ck_assert_int_eq(r.seen, 0);
    ck_assert_int_eq(r.blank_seen, 1);
    opi__range_fit(&r, v, row, 0, .5);
    ck_assert_int_eq(r.seen, 0);
    ck_assert_int_eq(r.blank_seen, 0);
}
END_TEST

START_TEST(distance_in_units_of_slack)
{
    opi__range r = {.lo = -2, .hi = 7, .slack = .5, .seen = 1};
    ck_assert_double_eq(opi__range_distance(&r, -2, FAR), 0);
    ck_assert_double_eq(opi__range_distance(&r, 7, FAR), 0);
    ck_assert_double_eq(opi__range_distance(&r, 0, FAR), 0);
    ck_assert_double_eq(opi__range_distance(&r, 7.25, FAR), .5);
    ck_assert_double_eq(opi__range_distance(&r, 7.5, FAR), 1);
    ck_assert_double_eq(opi__range_distance(&r, -4, FAR), 4);
    ck_assert_double_eq(opi__range_distance(&r, 1e9, FAR), FAR); /* no farther than a category never seen */
    ck_assert_double_eq(opi__range_distance(&r, -INFINITY, FAR), FAR);
}
END_TEST

START_TEST(blanks)
{
    opi__range r = {.lo = 1, .hi = 2, .slack = 1, .seen = 1};
    ck_assert_double_eq(opi__range_distance(&r, NAN, FAR), FAR); /* stated in every row, not stated here */
    r.blank_seen = 1;
    ck_assert_double_eq(opi__range_distance(&r, NAN, FAR), 0);
    ck_assert_double_eq(opi__range_distance(&r, 1.5, FAR), 0);
    r.seen = 0; /* never stated: no number is in range */
    ck_assert_double_eq(opi__range_distance(&r, 1.5, FAR), FAR);
    ck_assert_double_eq(opi__range_distance(&r, NAN, FAR), 0);
}
END_TEST

START_TEST(slack_factor_by_hand)
{
    double v[] = {0, 5, 1, 0, 2, 0, 0, 0, 0, 3}, one[] = {4};
    ck_assert_double_eq(opi__slack_factor(v, 10, .1, 1), 3);  /* one may stay outside: the 5 */
    ck_assert_double_eq(opi__slack_factor(v, 10, .2, 1), 2);
    ck_assert_double_eq(opi__slack_factor(v, 10, .29, 1), 2); /* not three of ten */
    ck_assert_double_eq(opi__slack_factor(v, 10, .5, 1), 1);  /* never below the least */
    ck_assert_double_eq(opi__slack_factor(v, 10, 0, 1), 5);
    ck_assert_double_eq(opi__slack_factor(one, 1, .99, 1), 4);
    ck_assert_double_eq(opi__slack_factor(one, 1, 1, 1), 4);
    ck_assert_double_eq(opi__slack_factor(NULL, 0, .1, 1.5), 1.5);
}
END_TEST

/* At most the share stays outside, and no smaller factor would do. */
START_TEST(slack_factor_is_the_smallest)
{
    opi__rng rng;
    double v[200], share, factor;
    opi__rng_seed(&rng, 5);
    for (int round = 0; round < 500; round++) {
        size_t n = 1 + (size_t)opi__rng_below(&rng, 200), outside = 0, almost = 0;
        share = .2 * opi__rng_uniform(&rng);
        for (size_t i = 0; i < n; i++)
            v[i] = floor(exp(opi__rng_normal(&rng)) * 4) / 4; /* ties */
        factor = opi__slack_factor(v, n, share, .25);
        for (size_t i = 0; i < n; i++) {
            outside += v[i] > factor;
            almost += v[i] > factor * (1 - 1e-9);
        }
        ck_assert((double)outside <= share * (double)n);
        ck_assert(factor == .25 || (double)almost > share * (double)n);
    }
}
END_TEST

START_TEST(pairs_against_counting)
{
    opi__rng rng;
    uint64_t all[300], set[300];
    opi__rng_seed(&rng, 6);
    for (int round = 0; round < 200; round++) {
        size_t n = (size_t)opi__rng_below(&rng, 300), distinct = 0;
        for (size_t i = 0; i < n; i++) {
            all[i] = set[i] = opi__pair((int32_t)opi__rng_below(&rng, 12), (int32_t)opi__rng_below(&rng, 12) - 1);
            size_t k = 0;
            while (all[k] != all[i])
                k++;
            distinct += k == i;
        }
        size_t kept = opi__pairs_build(set, n);
        ck_assert_uint_eq(kept, distinct);
        for (size_t i = 1; i < kept; i++)
            ck_assert(set[i - 1] < set[i]);
        for (int32_t a = -1; a < 13; a++)
            for (int32_t b = -1; b < 13; b++) {
                int there = 0;
                for (size_t i = 0; i < n; i++)
                    there |= all[i] == opi__pair(a, b);
                ck_assert_int_eq(opi__pairs_has(set, kept, opi__pair(a, b)), there);
            }
    }
}
END_TEST

START_TEST(pairs_do_not_mix)
{
    uint64_t one = opi__pair(1, 2);
    ck_assert_uint_ne(opi__pair(1, 2), opi__pair(2, 1));
    ck_assert_uint_ne(opi__pair(-1, 0), opi__pair(0, -1));
    ck_assert_uint_ne(opi__pair(0, -1), opi__pair(-1, -1));
    ck_assert_int_eq(opi__pairs_has(&one, 1, opi__pair(1, 2)), 1);
    ck_assert_int_eq(opi__pairs_has(&one, 1, opi__pair(1, 3)), 0);
    ck_assert_int_eq(opi__pairs_has(NULL, 0, 0), 0);
    ck_assert_uint_eq(opi__pairs_build(NULL, 0), 0);
}
END_TEST

Suite *suite_envelope(void)
{
    Suite *s = suite_create("envelope");
    TCase *t = tcase_create("envelope");
    tcase_add_test(t, range_of_chosen_rows);
    tcase_add_test(t, distance_in_units_of_slack);
    tcase_add_test(t, blanks);
    tcase_add_test(t, slack_factor_by_hand);
    tcase_add_test(t, slack_factor_is_the_smallest);
    tcase_add_test(t, pairs_against_counting);
    tcase_add_test(t, pairs_do_not_mix);
    suite_add_tcase(s, t);
    return s;
}
