/* SPDX-License-Identifier: Apache-2.0 */
/* Persistent checkpoints: sharded, checksummed, crash-consistent. Free of MPI. A checkpoint is a folder
 * DIR/step-000000000123/ with one file a shard and, written last, the file `complete`, without which it does not count.
 * Every file: temporary name, fsync, rename, directory fsync. The bytes of a shard are opaque here. */
#ifndef OPI_SWAP_STORE_H
#define OPI_SWAP_STORE_H
#include "omnipilot/types.h"
#include "swap/slots.h"

#define OPI__STORE_KEEP_DEFAULT 2

/* Which shard: part 0 = what only this slot has, part 1 = what its data-parallel peers have too. */
typedef struct opi__shard_id {
    int64_t step;
    uint64_t save;  /* the same in all shards of one save, another in the next: halves of two saves never mix */
    int32_t slot, part;
} opi__shard_id;

/* What `complete` records. */
typedef struct opi__store_mark {
    int64_t step;
    uint64_t save;
    opi__grid grid;       /* of the ranks that wrote it */
    int32_t common_row;   /* the data-parallel row whose slots wrote part 1; -1 = there is no part 1 (dp = 1) */
} opi__store_mark;

/* Makes the folder of the step where it is missing (its own fsync included; `dir` too, the folder above it not) and
 * writes one shard. A complete checkpoint has part 0 of every slot and part 1 of the common row's, empty ones too.
 * Errors: OPI_E_IO with the path and the system's reason. Never touches a complete checkpoint of another save. Threads:
 * any. */
int32_t opi__store_write(const char *dir, const opi__shard_id *id, const void *bytes, size_t size, opi_error *err);
/* Writes `complete`. To be called by one process when all shards are written. Errors: OPI_E_IO. */
int32_t opi__store_complete(const char *dir, const opi__store_mark *mark, opi_error *err);
/* Removes all but the `keep` newest complete checkpoints, and folders of older steps that never became complete (a
 * folder newer than the newest complete one may still be in the making and stays). Errors: OPI_E_IO (what could be
 * removed was). */
int32_t opi__store_prune(opi_ctx *ctx, const char *dir, int32_t keep, opi_error *err);

/* Removes what a failed save of `step` left, so that it does not fill the disk; its mark first, if there is one. To be
 * called by one process when nobody writes that save any more. Errors: OPI_E_IO. */
int32_t opi__store_discard(const char *dir, int64_t step, uint64_t save, opi_error *err);
/* Training goes on from the checkpoint of `step` (-1: from none of them). Complete ones of later steps are of a course
 * that was left: their `complete` becomes `refused`, so they neither count nor push others out, and they go when prune
 * has passed them. What was left half-written there or beside the shards of `step` is removed. To be called by one
 * process while nobody writes. Errors: OPI_E_IO (what could be done was). */
int32_t opi__store_resume(opi_ctx *ctx, const char *dir, int64_t step, opi_error *err);

/* Complete checkpoints, newest step first; what is no checkpoint or is damaged is skipped, told to `skipped` (may be
 * NULL) by one line each. *marks: owner the caller, opi__free. A folder that does not exist has none. */
int32_t opi__store_list(opi_ctx *ctx, const char *dir, void (*skipped)(void *user, const char *line), void *user,
                        opi__store_mark **marks, size_t *count, opi_error *err);
/* Reads and verifies one shard (name, step, save, size, checksum). Owner of *bytes: the caller, opi__free. Errors:
 * OPI_E_IO, OPI_E_FORMAT (damaged, half-written, of another save), OPI_E_NOMEM. */
int32_t opi__store_read(opi_ctx *ctx, const char *dir, const opi__shard_id *id, void **bytes, size_t *size,
                        opi_error *err);
#endif
