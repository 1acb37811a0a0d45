/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot in memory: one self-describing block of bytes a part, so that the same block is kept, sent to peers,
 * written to a file and read back by a rank that knows nothing else. Free of MPI. Native byte order: a job runs on one
 * kind of machine, and another one is recognized by the magic number. */
#ifndef OPI_SWAP_BLOB_H
#define OPI_SWAP_BLOB_H
#include "omnipilot/swap.h"
#include "swap/slots.h"

#define OPI__NAME_BYTES 48
#define OPI__STATES 256 /* most registered states */

/* Part 0: what only this slot has (SHARDED, SMALL; REPLICATED too when there is no peer). Part 1: REPLICATED. */
#define OPI__UNIQUE 0
#define OPI__COMMON 1

typedef struct opi__state {
    char name[OPI__NAME_BYTES];
    int32_t kind;
    void *data;
    uint64_t size, total, element;
} opi__state;

typedef struct opi__blob_id {
    int64_t step;
    int32_t dp; /* data-parallel width of the grid the slot number belongs to */
    int32_t slot, part; /* OPI__COMMON: the slot of row 0, so that all peers have the same bytes */
} opi__blob_id;

typedef int32_t (*opi__copy_fn)(void *user, int32_t direction, const char *name, void *program, void *host,
                                uint64_t bytes);

typedef int32_t (*opi__resize_fn)(void *user, const char *name, uint64_t bytes, void **data);

/* Which part a kind goes into; -1 = none (DERIVED). */
int32_t opi__blob_part(int32_t kind, int32_t dp);
/* Bytes of the block for these states. */
size_t opi__blob_bytes(const opi__state *state, size_t n, int32_t part, int32_t dp);
/* Writes head and table of a block of opi__blob_bytes bytes; copies the SMALL states at once (they may change before
 * the rest is copied). */
void opi__blob_begin(void *blob, const opi__blob_id *id, const opi__state *state, size_t n);
/* Copies the other states in, block by block. *filled = bytes of the block that are final (for a sender that follows;
 * written with release order), *sum = opi__blob_sum of the result. copy NULL = memcpy. 0, or what copy returned. */
int32_t opi__blob_fill(void *blob, const opi__state *state, size_t n, opi__copy_fn copy, void *user, size_t *filled,
                       uint64_t *sum);
/* Chained checksum of a block. */
uint64_t opi__blob_sum(const void *blob, size_t bytes);
/* Is this a well-formed block of that identity (step < 0: any)? Reads `bytes` bytes, trusts nothing. 1 or 0. */
int opi__blob_valid(const void *blob, size_t bytes, const opi__blob_id *id);

/* Puts the states of one part into the program's memory from blocks of a grid with `from_dp` data-parallel rows. blob[d]
 * is the block of row d of the same (tp, pp), NULL where it is not needed; `home` is the row whose SMALL and opaque
 * states this slot takes. Sharded state with a total is put together anew when the widths differ. only_small: nothing
 * but SMALL. Errors: OPI_E_FORMAT (a state is missing or has another size), OPI_E_INVALID (copy failed). */
typedef struct opi__blob_source {
    const void *const *blob;
    int32_t from_dp, home;
    int32_t dp, row; /* of the slot now */
    int32_t part, only_small;
    opi__copy_fn copy;
    opi__resize_fn resize; /* NULL: other sizes than the saved ones are an error; else state[] is brought up to date */
    void *user;
} opi__blob_source;
int32_t opi__blob_restore(const opi__blob_source *r, opi__state *state, size_t n, opi_error *err);
/* Rows [*first, *last] of a grid with from_dp rows whose blocks a slot of row `row` of `dp` needs. 0 = the widths differ
 * and some sharded state is opaque: impossible. */
int opi__blob_rows(const opi__state *state, size_t n, int32_t from_dp, int32_t dp, int32_t row, int32_t *first,
                   int32_t *last);
#endif
