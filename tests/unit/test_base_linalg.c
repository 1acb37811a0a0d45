/* SPDX-License-Identifier: Apache-2.0 */
/* Checked against plain loops and by multiplying back. */
#include "base/linalg.h"
#include "base/rng.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 150, M = 7 };
static double a[N * N], l[N * N], b[N * M], x[N * M];

/* A random symmetric positive definite matrix; its strict upper triangle holds NaN where the code may not look. */
static void make_spd(size_t n)
{
    opi__rng r;
    opi__rng_seed(&r, 31 + n);
    static double g[N * N];
    for (size_t i = 0; i < n * n; i++)
        g[i] = opi__rng_normal(&r);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = i == j ? 1.0 : 0.0;
            for (size_t k = 0; k < n; k++)
                sum += g[i * n + k] * g[j * n + k];
            a[i * n + j] = sum;
            l[i * n + j] = j <= i ? sum : (double)NAN;
        }
    for (size_t i = 0; i < n * M; i++)
        b[i] = opi__rng_normal(&r);
}

static void check_near(double got, double want, double scale)
{
    ck_assert_msg(fabs(got - want) <= 1e-9 * scale, "%.17g, not %.17g", got, want);
}

static const size_t sizes[] = {1, 2, 3, 5, 16, 33, 64, 65, N};

START_TEST(cholesky_multiplies_back)
{
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t n = sizes[s];
        make_spd(n);
        ck_assert_int_eq(opi__cholesky(n, l), 0);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                if (j > i) {
                    ck_assert(l[i * n + j] == 0.0);
                    continue;
                }
                double sum = 0.0;
                for (size_t k = 0; k <= j; k++)
                    sum += l[i * n + k] * l[j * n + k];
                check_near(sum, a[i * n + j], (double)n);
            }
        for (size_t i = 0; i < n; i++)
            ck_assert_double_gt(l[i * n + i], 0.0);
    }
    double known[] = {4.0, 99.0, 99.0, 12.0, 37.0, 99.0, -16.0, -43.0, 98.0}; /* the textbook example */
    static const double factor[] = {2.0, 0.0, 0.0, 6.0, 1.0, 0.0, -8.0, 5.0, 3.0};
    ck_assert_int_eq(opi__cholesky(3, known), 0);
    for (int i = 0; i < 9; i++)
        check_near(known[i], factor[i], 1e-3);
}
END_TEST

START_TEST(cholesky_names_the_minor)
{
    double two[] = {1.0, 0.0, 2.0, 1.0}; /* det < 0 */
    ck_assert_int_eq(opi__cholesky(2, two), 2);
    double first[] = {-1.0, 0.0, 0.0, 1.0};
    ck_assert_int_eq(opi__cholesky(2, first), 1);
    double zero[] = {0.0};
    ck_assert_int_eq(opi__cholesky(1, zero), 1);
    make_spd(N);
    l[99 * N + 99] = -1.0;
    ck_assert_int_eq(opi__cholesky(N, l), 100);
}
END_TEST

START_TEST(cholesky_refuses_bad_arguments)
{
    make_spd(5);
    static const double bad[] = {(double)NAN, HUGE_VAL, -HUGE_VAL};
    for (int i = 0; i < 3; i++) {
        double keep = l[3 * 5 + 1], copy[25];
        l[3 * 5 + 1] = bad[i];
        memcpy(copy, l, sizeof copy);
        ck_assert_int_eq(opi__cholesky(5, l), -1);
        ck_assert_int_eq(memcmp(copy, l, sizeof copy), 0); /* untouched */
        l[3 * 5 + 1] = keep;
    }
    ck_assert_int_eq(opi__cholesky(5, NULL), -1);
    ck_assert_int_eq(opi__cholesky((size_t)INT32_MAX + 1, l), -1);
    ck_assert_int_eq(opi__cholesky(0, NULL), 0);
}
END_TEST

/* L from a random matrix, not from opi__cholesky: well conditioned by its diagonal. */
static void make_lower(size_t n)
{
    opi__rng r;
    opi__rng_seed(&r, 77 + n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            l[i * n + j] = j > i    ? (double)NAN
                           : j == i ? 2.0 + opi__rng_uniform(&r)
                                    : opi__rng_normal(&r) / sqrt((double)n);
    for (size_t i = 0; i < n * M; i++)
        b[i] = opi__rng_normal(&r);
}

START_TEST(solves_lower_systems)
{
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t m = 1; m <= M; m += 3) {
            size_t n = sizes[s];
            make_lower(n);
            memcpy(x, b, n * m * sizeof *x);
            ck_assert_int_eq(opi__solve_lower(n, m, l, x), 0);
            for (size_t i = 0; i < n; i++)
                for (size_t c = 0; c < m; c++) {
                    double sum = 0.0;
                    for (size_t k = 0; k <= i; k++)
                        sum += l[i * n + k] * x[k * m + c];
                    check_near(sum, b[i * m + c], 10.0);
                }
        }
}
END_TEST

START_TEST(solves_with_the_factor)
{
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t m = 1; m <= M; m += 3) {
            size_t n = sizes[s];
            make_spd(n);
            ck_assert_int_eq(opi__cholesky(n, l), 0);
            memcpy(x, b, n * m * sizeof *x);
            ck_assert_int_eq(opi__solve_cholesky(n, m, l, x), 0);
            for (size_t i = 0; i < n; i++)
                for (size_t c = 0; c < m; c++) {
                    double sum = 0.0;
                    for (size_t k = 0; k < n; k++)
                        sum += a[i * n + k] * x[k * m + c];
                    check_near(sum, b[i * m + c], (double)n);
                }
        }
}
END_TEST

START_TEST(solvers_refuse_bad_arguments)
{
    make_lower(4);
    memcpy(x, b, sizeof x);
    static const double bad[] = {0.0, (double)NAN, HUGE_VAL};
    for (int i = 0; i < 3; i++) {
        double keep = l[10];
        l[10] = bad[i];
        ck_assert_int_eq(opi__solve_lower(4, 2, l, x), -1);
        ck_assert_int_eq(opi__solve_cholesky(4, 2, l, x), -1);
        l[10] = keep;
    }
    ck_assert_int_eq(opi__solve_lower((size_t)INT32_MAX + 1, 1, l, x), -1);
    ck_assert_int_eq(opi__solve_lower(1, (size_t)INT32_MAX + 1, l, x), -1);
    ck_assert_int_eq(opi__solve_lower(4, 2, NULL, x), -1);
    ck_assert_int_eq(opi__solve_cholesky(4, 2, l, NULL), -1);
    ck_assert_int_eq(memcmp(x, b, sizeof x), 0);
    ck_assert_int_eq(opi__solve_lower(0, 2, NULL, NULL), 0);
    ck_assert_int_eq(opi__solve_cholesky(4, 0, l, NULL), 0);
}
END_TEST

START_TEST(multiplies_as_plain_loops)
{
    static const size_t shapes[][3] = {{1, 1, 1}, {2, 3, 4}, {7, 1, 5}, {1, 9, 40}, {33, 17, 65}, {50, 60, 1}};
    static double p[4000], q[4000], c[4000], want[4000];
    opi__rng r;
    opi__rng_seed(&r, 41);
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int t = 0; t < 3; t++) {
            size_t n = shapes[s][0], k = shapes[s][1], m = shapes[s][2];
            double alpha = t == 0 ? 1.0 : -0.5, beta = t == 2 ? 0.25 : 0.0;
            for (size_t i = 0; i < n * m; i++)
                p[i] = opi__rng_normal(&r);
            for (size_t i = 0; i < m * k; i++)
                q[i] = opi__rng_normal(&r);
            for (size_t i = 0; i < n * k; i++) {
                c[i] = t == 2 ? opi__rng_normal(&r) : (double)NAN; /* beta 0: what stood there does not count */
                want[i] = t == 2 ? beta * c[i] : 0.0;
                for (size_t j = 0; j < m; j++)
                    want[i] += alpha * p[i / k * m + j] * q[j * k + i % k];
            }
            ck_assert_int_eq(opi__gemm(n, k, m, alpha, p, q, beta, c), 0);
            for (size_t i = 0; i < n * k; i++)
                check_near(c[i], want[i], (double)m);
        }
    double two[2] = {3.0, (double)NAN};
    ck_assert_int_eq(opi__gemm(1, 2, 0, 1.0, NULL, NULL, 0.0, two), 0); /* an empty sum is 0 */
    ck_assert(two[0] == 0.0 && two[1] == 0.0);
    two[0] = 3.0;
    ck_assert_int_eq(opi__gemm(1, 1, 0, 1.0, NULL, NULL, 2.0, two), 0);
    ck_assert(two[0] == 6.0);
    ck_assert_int_eq(opi__gemm(0, 5, 5, 1.0, NULL, NULL, 0.0, NULL), 0);
    ck_assert_int_eq(opi__gemm(1, 1, 1, 1.0, NULL, q, 0.0, two), -1);
    ck_assert_int_eq(opi__gemm(1, 1, (size_t)INT32_MAX + 1, 1.0, p, q, 0.0, two), -1);
    ck_assert(two[0] == 6.0);
}
END_TEST

Suite *suite_base_linalg(void);
Suite *suite_base_linalg(void)
{
    Suite *s = suite_create("base_linalg");
    TCase *t = tcase_create("linalg");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, cholesky_multiplies_back);
    tcase_add_test(t, cholesky_names_the_minor);
    tcase_add_test(t, cholesky_refuses_bad_arguments);
    tcase_add_test(t, solves_lower_systems);
    tcase_add_test(t, solves_with_the_factor);
    tcase_add_test(t, solvers_refuse_bad_arguments);
    tcase_add_test(t, multiplies_as_plain_loops);
    suite_add_tcase(s, t);
    return s;
}
