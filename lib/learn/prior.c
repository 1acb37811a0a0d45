/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/prior.h"

#include <math.h>

double opi__log_gamma(double x)
{
    /* Stirling's series (Abramowitz and Stegun 6.1.40) once x is at least 12, reached by Gamma(x + 1) = x Gamma(x). */
    static const double c[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};
    double product = 1;
    while (x < 12) {
        product *= x;
        x += 1;
    }
    double sum = 0, inverse = 1 / x, power = inverse;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        sum += c[i] * power;
        power *= inverse * inverse;
    }
    return (x - 0.5) * log(x) - x + 0.91893853320467274178 + sum - log(product);
}

/* Continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), modified Lentz. It converges fast
 * for x < (a + 1) / (a + b + 2); the caller sees to that. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double d = 1 - (a + b) * x / (a + 1), c = 1;
    if (fabs(d) < tiny)
        d = tiny;
    d = 1 / d;
    double h = d;
    for (int m = 1; m < 100000; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        const double coefficient[2] = {even, odd};
        double delta = 1;
        for (int i = 0; i < 2; i++) {
            d = 1 + coefficient[i] * d;
            c = 1 + coefficient[i] / c;
            if (fabs(d) < tiny)
                d = tiny;
            if (fabs(c) < tiny)
                c = tiny;
            d = 1 / d;
            delta = d * c;
            h *= delta;
        }
        if (fabs(delta - 1) < 1e-15)
            break;
    }
    return h;
}

double opi__beta_cdf(double a, double b, double x)
{
    if (!(x > 0))
        return 0;
    if (!(x < 1))
        return 1;
    const double front = exp(opi__log_gamma(a + b) - opi__log_gamma(a) - opi__log_gamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double opi__beta_quantile(double a, double b, double p)
{
    if (!(p > 0))
        return 0;
    if (!(p < 1))
        return 1;
    /* Bisection cannot leave the bracket, whatever the shape; 64 halvings reach the last bit. */
    double lo = 0, hi = 1;
    for (int i = 0; i < 64; i++) {
        const double mid = 0.5 * (lo + hi);
        if (opi__beta_cdf(a, b, mid) < p)
            lo = mid;
        else
            hi = mid;
    }
    return 0.5 * (lo + hi);
}

typedef struct groups {
    const double *attempts, *successes;
    size_t n;
} groups;

static double log_beta(double a, double b)
{
    return opi__log_gamma(a) + opi__log_gamma(b) - opi__log_gamma(a + b);
}

/* Log of the marginal likelihood times the prior, at mean 1 / (1 + exp(-logit)) and precision exp(log_s). */
static double objective(const groups *g, double logit, double log_s)
{
    const double s = exp(log_s), mean = 1 / (1 + exp(-logit));
    const double a = mean * s, b = s / (1 + exp(logit)), base = log_beta(a, b);
    double sum = log_s - 2 * log1p(s);
    for (size_t i = 0; i < g->n; i++) {
        const double ok = g->successes[i], failed = g->attempts[i] - ok;
        sum += log_beta(a + ok, b + failed) - base;
    }
    return sum;
}

typedef double (*curve)(const groups *g, double x, double fixed);

/* Golden-section search of the maximum of a unimodal curve on [lo, hi]. */
static double golden_max(curve f, const groups *g, double fixed, double lo, double hi)
{
    const double ratio = 0.61803398874989484820;
    double x1 = hi - ratio * (hi - lo), x2 = lo + ratio * (hi - lo);
    double f1 = f(g, x1, fixed), f2 = f(g, x2, fixed);
    for (int i = 0; i < 60; i++) {
        if (f1 >= f2) {
            hi = x2;
            x2 = x1;
            f2 = f1;
            x1 = hi - ratio * (hi - lo);
            f1 = f(g, x1, fixed);
        } else {
            lo = x1;
            x1 = x2;
            f1 = f2;
            x2 = lo + ratio * (hi - lo);
            f2 = f(g, x2, fixed);
        }
    }
    return 0.5 * (lo + hi);
}

static double by_mean(const groups *g, double logit, double log_s)
{
    return objective(g, logit, log_s);
}

static double by_precision(const groups *g, double log_s, double unused)
{
    (void)unused;
    return objective(g, golden_max(by_mean, g, log_s, -12, 12), log_s);
}

int opi__beta_binomial_fit(const double *attempts, const double *successes, size_t n, double *a, double *b)
{
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(successes[i] >= 0) || !(attempts[i] >= successes[i]) || !isfinite(attempts[i]))
            return 0;
        total += attempts[i];
    }
    if (!(total > 0))
        return 0;
    const groups g = {attempts, successes, n};
    const double log_s = golden_max(by_precision, &g, 0, -3, 12);
    const double logit = golden_max(by_mean, &g, log_s, -12, 12);
    const double s = exp(log_s), mean = 1 / (1 + exp(-logit));
    *a = mean * s;
    *b = s / (1 + exp(logit));
    return 1;
}
