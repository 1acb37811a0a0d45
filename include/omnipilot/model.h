/* SPDX-License-Identifier: Apache-2.0 */
/** @file model.h
 * Models: fit, load, save, inspect, evaluate, gate.
 */
#ifndef OMNIPILOT_MODEL_H
#define OMNIPILOT_MODEL_H

#include "omnipilot/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A fitted model: immutable. Threads: any number may use one without locks. Owner: the caller, opi_model_free. */
typedef struct opi_model opi_model;

/** Called while fitting; `done` of `total` steps. Return 0 to go on, anything else to stop (OPI_E_CANCELED). */
typedef int32_t (*opi_progress_fn)(void *user, const char *stage, uint64_t done, uint64_t total);

typedef struct opi_fit_options {
    uint32_t struct_size;
    int32_t threads;        /**< 0 = one per available core, at most 16 */
    uint64_t seed;
    const char *learner;    /**< NULL = "boost" */
    const char *note;       /**< free text for the manifest; NULL = none */
    const char *date;       /**< for the manifest, e.g. "2026-11-30"; NULL = not stated (the library reads no clock) */
    opi_progress_fn progress;
    void *progress_user;
} opi_fit_options;

/** Fits every target that has enough rows. Deterministic: the same table, options and build give the same bytes. */
OPI_API int32_t opi_model_fit(opi_ctx *ctx, const opi_table *table, const opi_fit_options *options, opi_model **out,
                              opi_error *err);
/** Moves a model to the site it is used at: a handful of that site's own measurements (fifty are plenty) shift its
 * predictions and narrow its intervals, without fitting again. Rows in any order, at once or in several calls, give the
 * same predictions; rows of other targets or that are not usable are passed over (opi_table_report). The manifest
 * records the base and the evidence. Owner: the caller, opi_model_free. Errors: OPI_E_NODATA (no usable figure of a
 * learned target), OPI_E_RANGE (more than 1,000 of one target: fit instead), OPI_E_UNSUPPORTED (a model of learner
 * "boost", as the compiled-in one is). */
OPI_API int32_t opi_model_adapt(const opi_model *base, const opi_table *table, opi_model **out, opi_error *err);
/** The compiled-in default model. */
OPI_API int32_t opi_model_load_default(opi_ctx *ctx, opi_model **out, opi_error *err);
OPI_API int32_t opi_model_load_file(opi_ctx *ctx, const char *path, opi_model **out, opi_error *err);
/** `bytes` are copied. Errors: OPI_E_FORMAT for damaged or foreign bytes (err->index: the byte), OPI_E_VERSION. */
OPI_API int32_t opi_model_load_memory(opi_ctx *ctx, const void *bytes, size_t size, opi_model **out, opi_error *err);
/** Atomic: a temporary file beside `path`, fsync, rename. The old file stays intact on failure. */
OPI_API int32_t opi_model_save_file(const opi_model *model, const char *path, opi_error *err);
OPI_API int32_t opi_model_save_memory(const opi_model *model, opi_text **out, opi_error *err);
OPI_API void opi_model_free(opi_model *model);
/** The manifest and what the model knows, as a versioned JSON document (docs/json.md, "model"). */
OPI_API int32_t opi_model_inspect(const opi_model *model, opi_text **out, opi_error *err);

typedef struct opi_evaluate_options {
    uint32_t struct_size;
    int32_t threads;
    uint64_t seed;
    const char *learner;
    double level;         /**< of the interval; 0 = 0.8 */
    int32_t by_mix;       /**< 1: measured mean lengths of a named mix are left out of the cell (stricter) */
    int32_t leave_out;    /**< 1: also leave GPUs and families out, one at a time (flag rates, errors) */
    opi_progress_fn progress;
    void *progress_user;
} opi_evaluate_options;
/** Cross-validates on the fold rule (whole cells; FNV-1a-64 modulo 5) and returns the report as JSON (docs/json.md,
 *  "evaluation"): targets.NAME.{n,median_ape,mape,p90_ape,r2_log,pinball,coverage,width_log,groups}, decisions.UTILITY. */
OPI_API int32_t opi_evaluate(opi_ctx *ctx, const opi_table *table, const opi_evaluate_options *options, opi_text **out,
                             opi_error *err);
typedef struct opi_gate_options {
    uint32_t struct_size;
    int32_t allow_seen; /**< 1: also a table that one of the models was fitted or adapted on */
    uint64_t seed;      /**< of the resamples */
    int32_t resamples;  /**< of cells; 0 = 2,000; from 100 to 100,000 */
    int32_t reserved;
} opi_gate_options;
/** Whether a new model may take the place of an old one (docs/gate.md): on the table's rows, whose cells the caller held
 * out from both, it must not be worse in pinball loss, coverage, flags or choices of any target beyond noise (paired
 * bootstrap over whole cells), and must have every target the old one learned. Both answer as at a site never measured.
 * *promoted becomes 1 or 0; the report is JSON (docs/json.md, "gate"). Deterministic for a seed, whatever the rows' order.
 * Threads: safe, none is started. Owner of *out: the caller, opi_text_free.
 * Errors: OPI_E_INVALID (the table is one that a model was made from), OPI_E_NODATA (nothing can be compared),
 * OPI_E_RANGE. */
OPI_API int32_t opi_model_gate(const opi_model *old_model, const opi_model *new_model, const opi_table *table,
                               const opi_gate_options *options, int32_t *promoted, opi_text **out, opi_error *err);
/** Scores the memory formula: `capacity` is the text of a CSV of engine start-up logs (NULL = none; columns as
 *  docs/memory.md), `launches` a table with launch_ok and fail_reason (NULL = none). JSON "memory". */
OPI_API int32_t opi_evaluate_memory(opi_ctx *ctx, const char *capacity, size_t capacity_size, const opi_table *launches,
                                    opi_text **out, opi_error *err);

#ifdef __cplusplus
}
#endif
#endif
