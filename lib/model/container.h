/* SPDX-License-Identifier: Apache-2.0 */
/* The byte form of a model: little-endian, versioned, checksummed; see docs/model-format.md.
 *
 *   0   8  magic "\x89OPIM\r\n\n"
 *   8   4  format version       12  4  reserved, 0
 *  16   8  size of the file     24  8  checksum64 of all that follows this field
 *  32  …  the body: numbers and arrays, each aligned to its element, arrays preceded by their count */
#ifndef OPI_MODEL_CONTAINER_H
#define OPI_MODEL_CONTAINER_H
#include "base/text.h"

#define OPI__FORMAT_VERSION 1u
#define OPI__HEADER_BYTES   32

typedef struct opi__writer {
    opi__buf buf;
} opi__writer;
void opi__write_start(opi__writer *w, opi_ctx *ctx);
void opi__write_u32(opi__writer *w, uint32_t v);
void opi__write_u64(opi__writer *w, uint64_t v);
void opi__write_f64(opi__writer *w, double v);
void opi__write_text(opi__writer *w, const char *s);
/* count (u64), padding to `size` (1, 2, 4 or 8), elements. */
void opi__write_array(opi__writer *w, const void *data, size_t count, size_t size);
/* Fills in size and checksum; the writer becomes empty. */
int32_t opi__write_finish(opi__writer *w, opi_text **out, opi_error *err);

/* Reads in place. After the first failure every read gives zeros and `failed` stays set: check once per structure. */
typedef struct opi__reader {
    const unsigned char *bytes;
    size_t size, at;
    int failed;
} opi__reader;
/* Checks header, size and checksum. err->index is the byte concerned. */
int32_t opi__read_start(opi__reader *r, const void *bytes, size_t size, opi_error *err);
uint32_t opi__read_u32(opi__reader *r);
uint64_t opi__read_u64(opi__reader *r);
double opi__read_f64(opi__reader *r);
const char *opi__read_text(opi__reader *r); /* NUL-terminated inside the block; "" on failure */
/* Pointer into the block (NULL when empty or on failure). Fails when count is not in [least, most]. */
const void *opi__read_array(opi__reader *r, size_t size, size_t least, size_t most, size_t *count);
/* The standard error for a reader that failed. */
int32_t opi__read_error(const opi__reader *r, opi_error *err);
#endif
