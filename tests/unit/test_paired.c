/* SPDX-License-Identifier: Apache-2.0 */
/* The paired bootstrap against what is known by hand and by the normal law. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "learn/paired.h"

Suite *suite_paired(void);

#define MOST 400
#define RESAMPLES 2000
static opi__cluster cluster[MOST];
static double scratch[OPI__PAIRED_FIGURES * RESAMPLES];
static opi__paired out[OPI__PAIRED_FIGURES];
static const opi__worth plain[OPI__PAIRED_FIGURES];

static double beyond_one(double mean)
{
    return fmax(mean - 1, 0);
}

static void setup(void)
{
    memset(cluster, 0, sizeof cluster);
    memset(out, 0, sizeof out);
}

START_TEST(means_by_hand)
{
    static const opi__worth worth[OPI__PAIRED_FIGURES] = {NULL, beyond_one, NULL};
    cluster[0] = (opi__cluster){2, {{1, 2}, {4, 1}, {0, 0}}};
    cluster[1] = (opi__cluster){6, {{3, 6}, {8, 3}, {0, 0}}};
    opi__paired_compare(cluster, 2, 3, worth, .95, 1, 200, scratch, out);
    ck_assert_double_eq(out[0].value[0], .5); /* 4 of 8 rows, not the mean of the two clusters' means */
    ck_assert_double_eq(out[0].value[1], 1);
    ck_assert_double_eq(out[0].difference, .5);
    ck_assert_double_eq(out[1].value[0], .5); /* 12 / 8 is half beyond one */
    ck_assert_double_eq(out[1].value[1], 0);
    ck_assert_double_eq(out[1].difference, -.5);
    ck_assert(out[2].value[0] == 0 && out[2].difference == 0 && out[2].lo == 0 && out[2].hi == 0);
}
END_TEST

/* The same shift in every row is no noise at all, however much the rows themselves vary. */
START_TEST(pairing_takes_the_noise_out)
{
    opi__rng rng;
    opi__rng_seed(&rng, 5);
    for (int i = 0; i < 50; i++) {
        double y = 100 * opi__rng_normal(&rng);
        cluster[i].n = 1;
        cluster[i].sum[0][0] = y;
        cluster[i].sum[0][1] = y + .25;
    }
    opi__paired_compare(cluster, 50, 1, plain, .95, 1, RESAMPLES, scratch, out);
    ck_assert_double_eq_tol(out[0].lo, .25, 1e-9);
    ck_assert_double_eq_tol(out[0].hi, .25, 1e-9);
}
END_TEST

START_TEST(bounds_follow_the_normal_law)
{
    opi__rng rng;
    double sum = 0, square = 0;
    opi__rng_seed(&rng, 9);
    for (int i = 0; i < MOST; i++) {
        double d = .1 + opi__rng_normal(&rng);
        cluster[i].n = 1, cluster[i].sum[0][1] = d;
        sum += d, square += d * d;
    }
    double mean = sum / MOST, error = sqrt((square / MOST - mean * mean) / MOST);
    opi__paired_compare(cluster, MOST, 1, plain, .95, 3, RESAMPLES, scratch, out);
    ck_assert_double_eq_tol(out[0].difference, mean, 1e-12);
    ck_assert_double_eq_tol(out[0].lo, mean - 1.645 * error, .15 * error);
    ck_assert_double_eq_tol(out[0].hi, mean + 1.645 * error, .15 * error);
}
END_TEST

/* Ten copies of a row in its cluster are no new evidence. */
START_TEST(rows_of_a_cluster_are_one_draw)
{
    opi__rng rng;
    opi__rng_seed(&rng, 11);
    for (int i = 0; i < 40; i++)
        cluster[i].n = 1, cluster[i].sum[0][1] = opi__rng_normal(&rng);
    opi__paired_compare(cluster, 40, 1, plain, .95, 3, 500, scratch, out);
    opi__paired one = out[0];
    for (int i = 0; i < 40; i++)
        cluster[i].n = 10, cluster[i].sum[0][1] *= 10;
    opi__paired_compare(cluster, 40, 1, plain, .95, 3, 500, scratch, out);
    ck_assert_double_eq_tol(out[0].lo, one.lo, 1e-12);
    ck_assert_double_eq_tol(out[0].hi, one.hi, 1e-12);
}
END_TEST

/* Without a real difference the lower bound lies above zero about once in twenty. */
START_TEST(false_alarms_are_as_promised)
{
    opi__rng rng;
    int alarms = 0, trials = 600;
    opi__rng_seed(&rng, 21);
    for (int k = 0; k < trials; k++) {
        for (int i = 0; i < 40; i++)
            cluster[i].n = 1, cluster[i].sum[0][1] = opi__rng_normal(&rng);
        opi__paired_compare(cluster, 40, 1, plain, .95, (uint64_t)k, 400, scratch, out);
        alarms += out[0].lo > 0;
    }
    ck_assert_msg(alarms > .03 * trials && alarms < .09 * trials, "%d of %d", alarms, trials);
}
END_TEST

START_TEST(a_seed_gives_the_same_bits)
{
    opi__paired first[2];
    opi__rng rng;
    opi__rng_seed(&rng, 2);
    for (int i = 0; i < 30; i++)
        cluster[i].n = 1 + i % 3, cluster[i].sum[0][0] = opi__rng_normal(&rng), cluster[i].sum[1][1] = opi__rng_normal(&rng);
    opi__paired_compare(cluster, 30, 2, plain, .95, 7, 300, scratch, out);
    memcpy(first, out, sizeof first);
    opi__paired_compare(cluster, 30, 2, plain, .95, 7, 300, scratch, out);
    ck_assert_mem_eq(first, out, sizeof first);
    opi__paired_compare(cluster, 30, 2, plain, .95, 8, 300, scratch, out);
    ck_assert(first[0].difference == out[0].difference && first[0].lo != out[0].lo);
}
END_TEST

Suite *suite_paired(void)
{
    Suite *s = suite_create("paired");
    TCase *t = tcase_create("paired");
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, means_by_hand);
    tcase_add_test(t, pairing_takes_the_noise_out);
    tcase_add_test(t, bounds_follow_the_normal_law);
    tcase_add_test(t, rows_of_a_cluster_are_one_draw);
    tcase_add_test(t, false_alarms_are_as_promised);
    tcase_add_test(t, a_seed_gives_the_same_bits);
    suite_add_tcase(s, t);
    return s;
}
