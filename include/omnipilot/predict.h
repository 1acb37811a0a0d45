/* SPDX-License-Identifier: Apache-2.0 */
/** @file predict.h
 * Predictions with calibrated intervals and a verdict on whether the model may speak at all.
 * No heap, locks, threads or I/O; safe after fork and inside a scheduler's lock.
 */
#ifndef OMNIPILOT_PREDICT_H
#define OMNIPILOT_PREDICT_H

#include "omnipilot/model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OPI_P_OK 0              /**< inside what was measured */
#define OPI_P_NEW_COMBINATION 1 /**< each value was measured, never together: wider calibration, named */
#define OPI_P_UNCALIBRATED 2    /**< physics only: no interval (lo, hi, p10, p90 are NaN) */
#define OPI_P_OOD 3             /**< outside: an axis beyond its range, or a category never measured */
#define OPI_P_INFEASIBLE 4      /**< does not fit or does not divide: no numbers */
#define OPI_P_ERROR 5           /**< the row itself is unusable: no numbers */

/** One target of one configuration, in the target's unit. Numbers that were not computed are NaN. */
typedef struct opi_prediction {
    int32_t status;        /**< OPI_P_… */
    int32_t target;        /**< index of the target */
    double p10, p50, p90;  /**< quantiles of the calibrated predictive distribution (p50: the median) */
    double lo, hi;         /**< conformal interval at `level`; hi = +inf when too few calibration cells */
    double level;
    double ood_distance;   /**< 0 inside; > threshold (1) outside; unit: thresholds */
    int32_t ood_axis;      /**< worst axis (index), -1 when none */
    int32_t ood_axis2;     /**< the second axis of a new combination, -1 when none */
    double ood_value;      /**< the value on that axis (NaN for a category) */
    double ood_lo, ood_hi; /**< the measured range of that axis (NaN for a category) */
    uint32_t calibration_rows;  /**< residuals behind the interval */
    uint32_t calibration_group; /**< which group, opi_model_inspect lists them */
} opi_prediction;

typedef struct opi_predict_options {
    uint32_t struct_size;
    uint32_t reserved;
    double level;              /**< 0.5 … 0.99; 0 = 0.8 */
    const size_t *targets;     /**< indexes; NULL = all */
    size_t n_targets;
} opi_predict_options;

/** Predicts n configurations. Shape: out has n * n_targets entries of `out_size` bytes (sizeof(opi_prediction)), row by
 *  row, targets in the order asked. Errors: OPI_E_INVALID, OPI_E_RANGE (level); a bad row is a status, not an error. */
OPI_API int32_t opi_predict(const opi_model *model, const opi_config *configs, size_t n,
                            const opi_predict_options *options, opi_prediction *out, size_t out_size, opi_error *err);
/** Probability that the target exceeds `limit`, from the calibrated predictive distribution. NaN if uncalibrated
 *  or infeasible. */
OPI_API int32_t opi_predict_exceed(const opi_model *model, const opi_config *config, size_t target, double limit,
                                   double *probability, opi_error *err);
/** Writes the one-line reason of a status into buf (NUL-terminated, cut to size). Returns the length. */
OPI_API size_t opi_predict_reason(const opi_model *model, const opi_config *config, const opi_prediction *prediction,
                                  char *buf, size_t size);
/** "ok", "new-combination", "uncalibrated", "ood", "infeasible", "error"; static storage. */
OPI_API const char *opi_prediction_status_name(int32_t status);

/** What an answer rests on: the nearest measured cells in the whitened space of the envelope's axes. */
typedef struct opi_support {
    uint32_t struct_size;
    uint32_t cells;           /**< measured cells within one typical spacing */
    double nearest_distance;  /**< to the nearest one; 1 = the distance within which nine of ten cells have another */
    char nearest[160];        /**< it, in words */
} opi_support;
OPI_API int32_t opi_predict_support(const opi_model *model, const opi_config *config, size_t target, opi_support *out,
                                    opi_error *err);

#ifdef __cplusplus
}
#endif
#endif
