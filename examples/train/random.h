/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers without a state: a number is a function of what it is for, so any process can make any of them. */
#ifndef TRAIN_RANDOM_H
#define TRAIN_RANDOM_H
#include <stdint.h>

/* The splitmix64 finalizer over two words. */
static inline uint64_t random_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* In (0, 1). */
static inline double random_uniform(uint64_t x)
{
    return ((double)(x >> 11) + 0.5) * 0x1p-53;
}
#endif
