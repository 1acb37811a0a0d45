/* SPDX-License-Identifier: Apache-2.0 */
/* Names and bytes of the persistent checkpoint's files, and looking at them; docs/checkpoint-format.md. Shared by
 * store.c (writes, removes) and store_read.c (lists, reads). */
#ifndef OPI_SWAP_STORE_FILE_H
#define OPI_SWAP_STORE_FILE_H
#include "swap/store.h"

#define OPI__STORE_VERSION 1u
#define OPI__STORE_HEADER  64                /* bytes; the whole of `complete` */
#define OPI__STORE_BLOCK   ((size_t)1 << 20) /* the checksum's: fits a cache, so what is read is verified while warm */
#define OPI__STORE_PATH    4096
#define OPI__STORE_NAME    64                /* room for any file name of a checkpoint */

#define OPI__STORE_COMPLETE "complete"
#define OPI__STORE_REFUSED  "refused" /* `complete` of a checkpoint that training went back behind */

typedef struct opi__shard_header {
    opi__shard_id id;
    uint64_t size, sum; /* of the payload */
} opi__shard_header;

/* ---- bytes ---- */

/* The payload's checksum, block by block: start with 0, every block but the last has OPI__STORE_BLOCK bytes. */
uint64_t opi__store_add_block(uint64_t sum, const void *block, size_t size);
void opi__store_put_shard(unsigned char bytes[OPI__STORE_HEADER], const opi__shard_header *header);
void opi__store_put_mark(unsigned char bytes[OPI__STORE_HEADER], const opi__store_mark *mark);
/* `size`: bytes of the file. `path` is for messages. Errors: OPI_E_FORMAT, OPI_E_VERSION. */
int32_t opi__store_get_shard(const unsigned char *bytes, uint64_t size, const char *path, opi__shard_header *header,
                             opi_error *err);
int32_t opi__store_get_mark(const unsigned char *bytes, uint64_t size, const char *path, opi__store_mark *mark,
                            opi_error *err);
/* OPI_E_RANGE or OPI_E_INVALID when the numbers are not those of a shard or a checkpoint. */
int32_t opi__store_check_id(const opi__shard_id *id, opi_error *err);
int32_t opi__store_check_mark(const opi__store_mark *mark, opi_error *err);

/* ---- names ---- */

void opi__store_step_name(char name[OPI__STORE_NAME], int64_t step);
void opi__store_shard_name(char name[OPI__STORE_NAME], const opi__shard_id *id);
/* 1 when `name` is exactly what the functions above make. A shard's name does not say the step. */
int opi__store_parse_step(const char *name, int64_t *step);
int opi__store_parse_shard(const char *name, opi__shard_id *id);
int opi__store_is_temporary(const char *name);
/* dir/step-…, and with `name` dir/step-…/name. Errors: OPI_E_INVALID, OPI_E_RANGE (too long). */
int32_t opi__store_path(char path[OPI__STORE_PATH], const char *dir, int64_t step, const char *name, opi_error *err);

/* ---- looking ---- */

typedef void (*opi__store_tell)(void *user, const char *line);

/* Opens the folder of a step, never a symbolic link; `top` is the open `dir`. Errors: OPI_E_FORMAT (there is none, or
 * it is something else), OPI_E_IO. */
int32_t opi__store_open_step(int top, const char *dir, int64_t step, int *folder, opi_error *err);
/* The steps that have a folder in `dir`, newest first; every other name but hidden ones is told to `tell` (or NULL).
 * *top: the open `dir`, -1 where there is none. Owner of *steps: the caller, opi__free. */
int32_t opi__store_scan(opi_ctx *ctx, const char *dir, opi__store_tell tell, void *user, int *top, int64_t **steps,
                        size_t *count, opi_error *err);
/* Reads `complete` or `refused` of an open step folder. Errors: OPI_E_FORMAT (missing or damaged), OPI_E_VERSION,
 * OPI_E_IO (what it is cannot be told now). */
int32_t opi__store_read_mark(int folder, const char *dir, int64_t step, const char *name, opi__store_mark *mark,
                             opi_error *err);
/* Whether the checkpoint is complete: its mark, and of each shard name, header and size. Errors: as above. */
int32_t opi__store_check_step(int top, const char *dir, int64_t step, opi__store_mark *mark, opi_error *err);
#endif
