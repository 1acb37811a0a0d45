/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/launch.h"
#include "learn/prior.h"

#include <check.h>
#include <math.h>
#include <string.h>

Suite *suite_prior(void);

START_TEST(log_gamma_values)
{
    ck_assert_double_eq_tol(opi__log_gamma(1), 0, 1e-14);
    ck_assert_double_eq_tol(opi__log_gamma(2), 0, 1e-14);
    ck_assert_double_eq_tol(opi__log_gamma(0.5), 0.5 * log(acos(-1)), 1e-14);
    ck_assert_double_eq_tol(opi__log_gamma(11), log(3628800), 1e-13);
    ck_assert_double_eq_tol(opi__log_gamma(171) / 706.57306224578734, 1, 1e-14); /* ln 170! */
    for (double x = 1e-3; x < 1e7; x *= 3.3)
        ck_assert_double_eq_tol(opi__log_gamma(x + 1), opi__log_gamma(x) + log(x), 1e-13 * (1 + x * log(x + 2)));
}
END_TEST

START_TEST(beta_cdf_closed_forms)
{
    for (double x = 0.05; x < 1; x += 0.05) {
        ck_assert_double_eq_tol(opi__beta_cdf(1, 1, x), x, 1e-14);
        ck_assert_double_eq_tol(opi__beta_cdf(2.5, 1, x), pow(x, 2.5), 1e-14);
        ck_assert_double_eq_tol(opi__beta_cdf(1, 3, x), 1 - pow(1 - x, 3), 1e-14);
        ck_assert_double_eq_tol(opi__beta_cdf(2, 3, x), x * x * (6 - 8 * x + 3 * x * x), 1e-14);
        ck_assert_double_eq_tol(opi__beta_cdf(0.5, 0.5, x), 2 / acos(-1) * asin(sqrt(x)), 1e-13);
        ck_assert_double_eq_tol(opi__beta_cdf(7.3, 2.1, x), 1 - opi__beta_cdf(2.1, 7.3, 1 - x), 1e-14);
    }
    ck_assert_double_eq(opi__beta_cdf(2, 2, 0), 0);
    ck_assert_double_eq(opi__beta_cdf(2, 2, 1), 1);
    /* Many trials: close to the normal distribution (mean 0.5, sd 0.0005). */
    ck_assert_double_eq_tol(opi__beta_cdf(500000, 500000, 0.5005), 0.8413447, 1e-5);
}
END_TEST

START_TEST(beta_quantile_inverts)
{
    const double shapes[][2] = {{1, 1}, {0.3, 4}, {21.7, 3.8}, {3e5, 2.8e5}, {5.7, 3.8}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (double p = 0.01; p < 1; p += 0.07) {
            const double x = opi__beta_quantile(shapes[i][0], shapes[i][1], p);
            ck_assert_double_eq_tol(opi__beta_cdf(shapes[i][0], shapes[i][1], x), p, 1e-9);
        }
    ck_assert_double_eq_tol(opi__beta_quantile(3, 1, 0.1), cbrt(0.1), 1e-14);
    ck_assert_double_eq(opi__beta_quantile(3, 1, 0), 0);
    ck_assert_double_eq(opi__beta_quantile(3, 1, 1), 1);
    ck_assert_double_eq(opi__beta_quantile(3, 1, NAN), 0);
}
END_TEST

START_TEST(fit_of_groups)
{
    double a, b;
    /* Alike groups: the mean is their rate and the precision high; unlike ones: low. */
    const double n[] = {1000, 1000, 1000, 1000, 1000, 1000}, same[] = {700, 702, 698, 700, 701, 699};
    const double apart[] = {50, 950, 400, 990, 100, 600};
    ck_assert_int_eq(opi__beta_binomial_fit(n, same, 6, &a, &b), 1);
    ck_assert_double_eq_tol(a / (a + b), 0.7, 1e-3);
    ck_assert_double_gt(a + b, 500);
    ck_assert_int_eq(opi__beta_binomial_fit(n, apart, 6, &a, &b), 1);
    ck_assert_double_lt(a + b, 4);
    /* It is a maximum: no neighbor is more likely. */
    const double at = a, bt = b;
    double best = -INFINITY, here = 0;
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++) {
            const double x = at * (1 + 0.02 * i), y = bt * (1 + 0.02 * j), s = x + y;
            double sum = log(s) - 2 * log1p(s);
            for (int g = 0; g < 6; g++)
                sum += lgamma(x + apart[g]) + lgamma(y + n[g] - apart[g]) - lgamma(s + n[g]) - lgamma(x) - lgamma(y) +
                       lgamma(s);
            best = fmax(best, sum);
            if (i == 0 && j == 0)
                here = sum;
        }
    ck_assert_double_eq_tol(here, best, 1e-9);
    /* A single group is not certain. */
    ck_assert_int_eq(opi__beta_binomial_fit(n, same, 1, &a, &b), 1);
    ck_assert_double_lt(a + b, 1000);
}
END_TEST

START_TEST(fit_refuses)
{
    double a = -1, b = -2;
    const double none[] = {0, 0}, n[] = {5, 5}, more[] = {6, 1}, negative[] = {-1, 1}, bad[] = {NAN, 1};
    ck_assert_int_eq(opi__beta_binomial_fit(none, none, 2, &a, &b), 0);
    ck_assert_int_eq(opi__beta_binomial_fit(n, more, 2, &a, &b), 0);
    ck_assert_int_eq(opi__beta_binomial_fit(n, negative, 2, &a, &b), 0);
    ck_assert_int_eq(opi__beta_binomial_fit(n, bad, 2, &a, &b), 0);
    ck_assert_int_eq(opi__beta_binomial_fit(n, n, 0, &a, &b), 0);
    ck_assert_double_eq(a, -1);
    ck_assert_double_eq(b, -2);
}
END_TEST

START_TEST(constants_are_the_fit)
{
    double attempts[64], successes[64], a, b, ka, kb;
    ck_assert_uint_le(opi__launch_count(), 64);
    for (int all = 0; all < 2; all++) {
        const size_t n = opi__launch_groups(all, attempts, successes);
        ck_assert_uint_eq(n, all ? 21 : 12);
        ck_assert_int_eq(opi__beta_binomial_fit(attempts, successes, n, &a, &b), 1);
        opi__launch_fitted(all, &ka, &kb);
        ck_assert_double_eq_tol(ka, a, 1e-6);
        ck_assert_double_eq_tol(kb, b, 1e-6);
    }
    /* Repeats of a pair are one group: 63 + 9 launches on one H100. */
    opi__launch_groups(0, attempts, successes);
    ck_assert_double_eq(attempts[0], 72);
    ck_assert_double_eq(successes[0], 56);
    for (size_t i = 0; i < opi__launch_count(); i++)
        ck_assert_ptr_nonnull(strchr(opi__launch_at(i)->source, '@'));
    ck_assert_ptr_null(opi__launch_at(opi__launch_count()));
}
END_TEST

START_TEST(prior_of_measured_pair)
{
    opi_prior p = {.struct_size = sizeof p};
    opi_error err;
    double a, b;
    opi__launch_fitted(0, &a, &b);
    ck_assert_int_eq(opi_prior_launch("H100-80GB-SXM", 4, &p, &err), OPI_OK);
    ck_assert_int_eq(p.serving_rows, 1);
    ck_assert_double_eq(p.attempts, 16);
    ck_assert_double_eq_tol(p.mean, (a + 16) / (a + b + 16), 1e-12); /* 16 of 16, shrunk */
    ck_assert_double_lt(p.mean, 1);
    ck_assert_double_eq_tol(opi__beta_cdf(a + 16, b, p.lo), 0.1, 1e-9);
    ck_assert_double_eq_tol(opi__beta_cdf(a + 16, b, p.hi), 0.9, 1e-9);
    ck_assert_ptr_nonnull(strstr(p.basis, "16 of 16 server launches"));
    ck_assert_int_eq(opi_prior_launch("A100-40GB-SXM", 1, &p, &err), OPI_OK);
    ck_assert_ptr_nonnull(strstr(p.basis, "static-batch"));
    ck_assert_ptr_nonnull(strstr(p.basis, "out of memory"));
    ck_assert_double_eq_tol(p.mean, 191. / 429, 0.01); /* many attempts: hardly shrunk */
}
END_TEST

START_TEST(prior_of_unmeasured_pair)
{
    opi_prior p = {.struct_size = sizeof p};
    opi_error err;
    double a, b;
    opi__launch_fitted(1, &a, &b);
    /* 633,364 training jobs ended there (canceled ones left out): named, not counted. */
    ck_assert_int_eq(opi_prior_launch("A100-80GB-SXM", 4, &p, &err), OPI_OK);
    ck_assert_int_eq(p.serving_rows, 0);
    ck_assert_double_eq(p.attempts, 0);
    ck_assert_double_eq_tol(p.mean, a / (a + b), 1e-12);
    ck_assert_double_gt(p.hi - p.lo, 0.4);
    ck_assert_ptr_nonnull(strstr(p.basis, "no serving launch observed"));
    ck_assert_ptr_nonnull(strstr(p.basis, "training jobs (633364 on this GPU)"));
    /* A measured GPU at a count never tried. */
    ck_assert_int_eq(opi_prior_launch("H100-80GB-SXM", 16, &p, &err), OPI_OK);
    ck_assert_int_eq(p.serving_rows, 0);
    ck_assert_ptr_nonnull(strstr(p.basis, "training jobs and pods"));
}
END_TEST

START_TEST(prior_refuses)
{
    opi_prior p = {.struct_size = sizeof p, .mean = -7};
    opi_error err = {0};
    ck_assert_int_eq(opi_prior_launch("H100-80GB-SXM", 0, &p, &err), OPI_E_RANGE);
    ck_assert_ptr_nonnull(strstr(err.message, "0 GPUs"));
    ck_assert_int_eq(opi_prior_launch("H100-80GB-SXM", -3, &p, &err), OPI_E_RANGE);
    ck_assert_int_eq(opi_prior_launch("Z9000", 1, &p, &err), OPI_E_UNKNOWN);
    ck_assert_int_eq(opi_prior_launch(NULL, 1, &p, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_prior_launch("H100-80GB-SXM", 1, NULL, &err), OPI_E_INVALID);
    ck_assert_double_eq(p.mean, -7);
}
END_TEST

Suite *suite_prior(void)
{
    Suite *s = suite_create("prior");
    TCase *t = tcase_create("prior");
    tcase_add_test(t, log_gamma_values);
    tcase_add_test(t, beta_cdf_closed_forms);
    tcase_add_test(t, beta_quantile_inverts);
    tcase_add_test(t, fit_of_groups);
    tcase_add_test(t, fit_refuses);
    tcase_add_test(t, constants_are_the_fit);
    tcase_add_test(t, prior_of_measured_pair);
    tcase_add_test(t, prior_of_unmeasured_pair);
    tcase_add_test(t, prior_refuses);
    suite_add_tcase(s, t);
    return s;
}
