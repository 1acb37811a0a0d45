/* SPDX-License-Identifier: Apache-2.0 */
#include "base/linalg.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>

/* 32-bit and 64-bit builds of BLAS take the same calls here: no size above INT32_MAX ever reaches them. */
static int fits(size_t n)
{
    return n <= (size_t)INT32_MAX;
}

static int usable_factor(size_t n, const double *l)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(l[i * n + i]) || l[i * n + i] == 0.0)
            return 0;
    return 1;
}

/* OpenBLAS picks its kernels by the processor, and they differ in the last bit. What is this small is done here, so that
 * the same table gives the same model on every machine. */
#define SMALL 32
static int small_cholesky(size_t n, double *a)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            if (i == j && !(sum > 0 && isfinite(sum)))
                return (int)(i + 1);
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
        for (size_t j = i + 1; j < n; j++)
            a[i * n + j] = 0;
    }
    return 0;
}

int opi__cholesky(size_t n, double *a)
{
    if (n == 0)
        return 0;
    if (!fits(n) || !a)
        return -1;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            if (!isfinite(a[i * n + j]))
                return -1;
    if (n < SMALL)
        return small_cholesky(n, a);
    /* A row-major lower triangle is a column-major upper one: in that layout LAPACKE passes the array straight on, and
     * neither transposes (malloc) nor prints. */
    lapack_int k = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (lapack_int)n, a, (lapack_int)n);
    if (k != 0)
        return k > 0 ? (int)k : -1;
    for (size_t i = 0; i < n; i++) {
        if (!(a[i * n + i] > 0.0) || !isfinite(a[i * n + i]))
            return (int)(i + 1);
        for (size_t j = i + 1; j < n; j++)
            a[i * n + j] = 0.0;
    }
    return 0;
}

static int solve(size_t n, size_t m, const double *l, double *b, int both)
{
    if (n == 0 || m == 0)
        return 0;
    if (!fits(n) || !fits(m) || !l || !b || !usable_factor(n, l))
        return -1;
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (blasint)n, (blasint)m, 1.0, l,
                (blasint)n, b, (blasint)m);
    if (both)
        cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, (blasint)n, (blasint)m, 1.0, l,
                    (blasint)n, b, (blasint)m);
    return 0;
}

int opi__solve_lower(size_t n, size_t m, const double *l, double *b)
{
    return solve(n, m, l, b, 0);
}

int opi__solve_cholesky(size_t n, size_t m, const double *l, double *b)
{
    return solve(n, m, l, b, 1);
}

static int multiply(size_t n, size_t k, size_t m, double alpha, const double *a, const double *b, int b_transposed,
                    double beta, double *c)
{
    if (n == 0 || k == 0)
        return 0;
    if (!fits(n) || !fits(k) || !fits(m) || !c || (m > 0 && (!a || !b)))
        return -1;
    if (m == 0) { /* an empty product: BLAS would still want leading dimensions of at least 1 */
        for (size_t i = 0; i < n * k; i++)
            c[i] = beta == 0.0 ? 0.0 : beta * c[i];
        return 0;
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, b_transposed ? CblasTrans : CblasNoTrans, (blasint)n, (blasint)k, (blasint)m,
                alpha, a, (blasint)m, b, (blasint)(b_transposed ? m : k), beta, c, (blasint)k);
    return 0;
}

int opi__gemm(size_t n, size_t k, size_t m, double alpha, const double *a, const double *b, double beta, double *c)
{
    return multiply(n, k, m, alpha, a, b, 0, beta, c);
}

int opi__gemm_nt(size_t n, size_t k, size_t m, double alpha, const double *a, const double *b, double beta, double *c)
{
    return multiply(n, k, m, alpha, a, b, 1, beta, c);
}

int opi__inverse(size_t n, double *l)
{
    if (n == 0)
        return 0;
    if (!fits(n) || !l || !usable_factor(n, l))
        return -1;
    if (LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'U', (lapack_int)n, l, (lapack_int)n) != 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            l[i * n + j] = l[j * n + i];
    return 0;
}
