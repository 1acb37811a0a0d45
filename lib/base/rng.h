/* SPDX-License-Identifier: Apache-2.0 */
/* Deterministic random numbers (xoshiro256**, seeded by splitmix64; Blackman and Vigna 2018). */
#ifndef OPI_BASE_RNG_H
#define OPI_BASE_RNG_H
#include <stddef.h>
#include <stdint.h>

typedef struct opi__rng {
    uint64_t s[4];
} opi__rng;
void opi__rng_seed(opi__rng *r, uint64_t seed);
uint64_t opi__rng_next(opi__rng *r);
double opi__rng_uniform(opi__rng *r);               /* [0, 1) */
uint64_t opi__rng_below(opi__rng *r, uint64_t n);   /* unbiased; n > 0 */
double opi__rng_normal(opi__rng *r);
void opi__rng_shuffle(opi__rng *r, uint32_t *v, size_t n);
uint64_t opi__mix64(uint64_t x);                    /* splitmix64 finalizer */
#endif
