/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that includes cblas.h and lapacke.h. Row-major, arguments checked first, so xerbla cannot fire. */
#ifndef OPI_BASE_LINALG_H
#define OPI_BASE_LINALG_H
#include <stddef.h>
#include <stdint.h>

/* In place: lower triangle of the n x n symmetric positive definite `a` becomes its Cholesky factor L; the strict upper
 * triangle is zeroed. 0 = done, k > 0 = leading minor k is not positive, -1 = bad argument (size, NaN). */
int opi__cholesky(size_t n, double *a);
/* b (n x m, row-major) <- L^-1 b. 0 or -1. */
int opi__solve_lower(size_t n, size_t m, const double *l, double *b);
/* b (n x m) <- (L L^T)^-1 b. */
int opi__solve_cholesky(size_t n, size_t m, const double *l, double *b);
/* c (n x k) = alpha a (n x m) b (m x k) + beta c. */
int opi__gemm(size_t n, size_t k, size_t m, double alpha, const double *a, const double *b, double beta, double *c);
/* c (n x k) = alpha a (n x m) b^T (k x m) + beta c. */
int opi__gemm_nt(size_t n, size_t k, size_t m, double alpha, const double *a, const double *b, double beta, double *c);
/* In place: the Cholesky factor L (opi__cholesky) becomes the whole, symmetric inverse of L L^T. 0 or -1. */
int opi__inverse(size_t n, double *l);
#endif
