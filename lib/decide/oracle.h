/* SPDX-License-Identifier: Apache-2.0 */
/* The seam to the model: what a decision asks of predictions. Tests put their own behind it. */
#ifndef OPI_DECIDE_ORACLE_H
#define OPI_DECIDE_ORACLE_H
#include "omnipilot/predict.h"

typedef struct opi__oracle {
    const void *user;
    /* As opi_predict; out entries are sizeof(opi_prediction) apart. */
    int32_t (*predict)(const void *user, const opi_config *configs, size_t n, const opi_predict_options *options,
                       opi_prediction *out, opi_error *err);
    int32_t (*exceed)(const void *user, const opi_config *config, size_t target, double limit, double *probability,
                      opi_error *err);
    size_t (*reason)(const void *user, const opi_config *config, const opi_prediction *prediction, char *buf, size_t size);
    int32_t (*support)(const void *user, const opi_config *config, size_t target, opi_support *out, opi_error *err);
} opi__oracle;
#endif
