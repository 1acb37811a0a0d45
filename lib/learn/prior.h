/* SPDX-License-Identifier: Apache-2.0 */
/* Beta-binomial empirical Bayes on plain arrays: the launch-success prior's mathematics. */
#ifndef OPI_LEARN_PRIOR_H
#define OPI_LEARN_PRIOR_H
#include <stddef.h>

/* ln Gamma(x), x > 0 (the C library's lgamma writes the global signgam). Relative error below 1e-14. */
double opi__log_gamma(double x);
/* Regularized incomplete beta function I_x(a, b): the distribution function of Beta(a, b); a, b > 0. */
double opi__beta_cdf(double a, double b, double x);
/* The x with I_x(a, b) = p; p outside (0, 1) gives 0 or 1. */
double opi__beta_quantile(double a, double b, double p);
/* Beta(a, b) of the success rates of n groups, by the maximum of the beta-binomial marginal likelihood times a weak
 * prior on the precision s = a + b (uniform on s / (1 + s)), which keeps a single group from looking certain.
 * 1 = done, 0 = nothing to fit (no attempts, or an entry that is not 0 <= successes <= attempts). */
int opi__beta_binomial_fit(const double *attempts, const double *successes, size_t n, double *a, double *b);
#endif
