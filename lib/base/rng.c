/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include <math.h>

uint64_t opi__mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

void opi__rng_seed(opi__rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15ull;
        r->s[i] = opi__mix64(seed);
    }
}

static uint64_t rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t opi__rng_next(opi__rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

double opi__rng_uniform(opi__rng *r)
{
    return (double)(opi__rng_next(r) >> 11) * 0x1p-53;
}

uint64_t opi__rng_below(opi__rng *r, uint64_t n)
{
    /* 2^64 mod n of the 2^64 values are surplus: those are drawn again. */
    uint64_t surplus = (0 - n) % n, x;
    do
        x = opi__rng_next(r);
    while (x < surplus);
    return x % n;
}

double opi__rng_normal(opi__rng *r)
{
    /* Marsaglia's polar method; its second value is dropped so that the state is the four words alone. */
    double u, q;
    do {
        u = 2.0 * opi__rng_uniform(r) - 1.0;
        double v = 2.0 * opi__rng_uniform(r) - 1.0;
        q = u * u + v * v;
    } while (q >= 1.0 || q == 0.0);
    return u * sqrt(-2.0 * log(q) / q);
}

void opi__rng_shuffle(opi__rng *r, uint32_t *v, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)opi__rng_below(r, i);
        uint32_t t = v[i - 1];
        v[i - 1] = v[j];
        v[j] = t;
    }
}
