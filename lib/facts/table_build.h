/* SPDX-License-Identifier: Apache-2.0 */
/* Building a table row by row from texts: the CSV reader and every importer go through here, so that one set of rules
 * decides what a cell's text means. */
#ifndef OPI_FACTS_TABLE_BUILD_H
#define OPI_FACTS_TABLE_BUILD_H
#include "base/text.h"
#include "facts/table.h"

/* Columns, in the order of opi__columns. The targets' columns follow OPI__COL_TARGETS in the order of the schema. */
enum {
    OPI__COL_SOURCE, OPI__COL_SOURCE_REF, OPI__COL_LICENSE, OPI__COL_ENGINE, OPI__COL_ENGINE_VERSION, OPI__COL_MODEL,
    OPI__COL_FAMILY, OPI__COL_PARAMS_B, OPI__COL_ACTIVE_PARAMS_B, OPI__COL_N_LAYERS, OPI__COL_HIDDEN_SIZE,
    OPI__COL_N_HEADS, OPI__COL_N_KV_HEADS, OPI__COL_HEAD_DIM, OPI__COL_MAX_CONTEXT, OPI__COL_IS_MOE, OPI__COL_N_EXPERTS,
    OPI__COL_EXPERTS_PER_TOKEN, OPI__COL_ATTENTION, OPI__COL_KV_ELEMS, OPI__COL_PRECISION, OPI__COL_WEIGHT_BITS,
    OPI__COL_KV_BITS, OPI__COL_GPU, OPI__COL_N_GPUS, OPI__COL_TP, OPI__COL_PP, OPI__COL_EP, OPI__COL_DP,
    OPI__COL_INPUT_LEN, OPI__COL_OUTPUT_LEN, OPI__COL_CONCURRENCY, OPI__COL_LOAD_KIND, OPI__COL_REQUEST_RATE,
    OPI__COL_WORKLOAD, OPI__COL_MAX_MODEL_LEN, OPI__COL_MEM_UTIL, OPI__COL_LAUNCH_OK, OPI__COL_FAIL_REASON,
    OPI__COL_TTFT_MEAN, OPI__COL_ITL_MEAN, OPI__COL_NOTES, OPI__COL_TARGETS,
    OPI__COLUMNS = OPI__COL_TARGETS + OPI__T_COUNT
};

enum { OPI__K_TEXT, OPI__K_NUMBER, OPI__K_COUNT, OPI__K_FLAG };
typedef struct opi__column_def {
    const char *name, *unit;
    int32_t kind;
    int32_t usual;  /* 1: a column of the usual table, whose absence the report names */
    double lo, hi;  /* inclusive; lo 0 excludes 0 itself (a blank says "not stated") unless it is a flag */
} opi__column_def;
extern const opi__column_def opi__columns[OPI__COL_TARGETS];
const char *opi__column_name(size_t column);
opi__column_def opi__column_at(size_t column); /* targets included */
/* Index of a column, or OPI__COLUMNS. */
size_t opi__column_find(const char *name, size_t size);

/* One row's texts; text NULL = the file has no such column. */
typedef struct opi__cells {
    const char *text[OPI__COLUMNS];
    size_t size[OPI__COLUMNS];
} opi__cells;

/* Interned texts and resolved facts, alive while a table is built. */
typedef struct opi__memo_entry {
    uint64_t hash;
    const char *key;
    size_t size;
    const void *value;
    int32_t status;
    const char *reason;
} opi__memo_entry;
typedef struct opi__memo {
    opi_ctx *ctx;
    opi__memo_entry *slots;
    size_t n, cap;
} opi__memo;
/* The entry of a key, made (value NULL, status 0) when new; NULL = out of memory. The pointer lives until the next call. */
opi__memo_entry *opi__memo_at(opi__memo *m, opi__arena *arena, const char *key, size_t size, int *is_new);

typedef struct opi__builder {
    opi_ctx *ctx;
    opi_table *table;
    const opi_table_options *options;
    const char *place;        /* what a row is called in messages: "line", or "record" of a document */
    opi_config defaults;      /* strings and facts copied into the arena */
    opi__memo texts, gpus, llms;
    size_t n_unknown;         /* distinct names that were in no table */
    opi__buf scratch;
} opi__builder;

int32_t opi__builder_begin(opi__builder *b, opi_ctx *ctx, const char *format, const char *bytes, size_t size,
                           const opi_table_options *options, opi_error *err);
/* Adds the row the cells describe. A row that cannot be used is kept with its reason; only a failure of the whole file
 * (memory, a decimal comma, too many rows) is an error. `content`: FNV of the record. */
int32_t opi__builder_add(opi__builder *b, const opi__cells *cells, uint64_t content, uint64_t line, opi_error *err);
/* Adds a row that could not even be split into columns. */
int32_t opi__builder_add_broken(opi__builder *b, uint64_t content, uint64_t line, const char *kind, const char *reason,
                                opi_error *err);
/* Adds a remark about the row added last. */
int32_t opi__builder_say(opi__builder *b, const char *kind, const char *what, opi_error *err);
/* Hands the table over, or frees everything when status < 0. Returns status. */
int32_t opi__builder_end(opi__builder *b, int32_t status, opi_table **out, opi_error *err);

/* table_llm.c: the LLM and the GPU of a row. On failure *reason is set (arena or static) and the status returned;
 * OPI_E_NOMEM alone is a failure of the build. */
int32_t opi__builder_llm(opi__builder *b, const opi__cells *cells, const double *number, const opi_llm **out,
                         const char **reason);
int32_t opi__builder_gpu(opi__builder *b, const char *name, size_t size, const opi_gpu **out, const char **reason);
/* NUL-terminated copy shared by equal texts; NULL = out of memory. */
const char *opi__builder_text(opi__builder *b, const char *text, size_t size);
#endif
