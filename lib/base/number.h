/* SPDX-License-Identifier: Apache-2.0 */
/* Exact conversions between doubles and decimal digits, in integer arithmetic only: neither the locale nor the rounding
 * mode of the host matters. text.c is the only user. */
#ifndef OPI_BASE_NUMBER_H
#define OPI_BASE_NUMBER_H
#include <stddef.h>
#include <stdint.h>

/* Significant digits the exact path looks at; what lies beyond only says "a little more" (768 decide every tie). */
#define OPI__NUMBER_DIGITS 770
/* The double nearest to d[0]d[1]…d[n-1] * 10^exp10 (ties to even); `more` = non-zero digits follow. n <=
 * OPI__NUMBER_DIGITS, d[0] != 0 unless n == 0. 1 = done, 0 = too large for a double. */
int opi__number_from_digits(const uint8_t *d, size_t n, int64_t exp10, int more, double *out);
/* Digits of a finite v > 0: v ~ d[0].d[1]d[2]… * 10^*exp10. want 0: the fewest that read back as v, else that many,
 * rounded exactly (ties to even). d holds >= 17, want <= 17. Returns the count, trailing zeros dropped. */
int opi__number_to_digits(double v, int want, uint8_t *d, int *exp10);
#endif
