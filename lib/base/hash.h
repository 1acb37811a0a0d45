/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPI_BASE_HASH_H
#define OPI_BASE_HASH_H
#include <stddef.h>
#include <stdint.h>

#define OPI__FNV_START 0xcbf29ce484222325ull
uint64_t opi__fnv1a64(uint64_t h, const void *bytes, size_t n); /* start with OPI__FNV_START */
/* Fast 64-bit checksum of a block (8 bytes a step, several lanes); not cryptographic. Same value on every machine. */
uint64_t opi__checksum64(const void *bytes, size_t n);
/* FIPS 180-4. hex: 65 bytes, NUL-terminated. */
void opi__sha256_hex(const void *bytes, size_t n, char *hex);
#endif
