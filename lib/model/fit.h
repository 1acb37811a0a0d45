/* SPDX-License-Identifier: Apache-2.0 */
/* Inside fitting: what fit.c asks of support.c. */
#ifndef OPI_MODEL_FIT_H
#define OPI_MODEL_FIT_H
#include "model/model.h"

/* Dictionaries, envelope, seen values and pairs, anchors: everything a model knows about where it was measured. */
int32_t opi__support_build(opi_model *m, const opi__dataset *d, const uint32_t *row, size_t n, const opi__fit_settings *s);
/* Threads for an option: 0 = the cores this process may use, at most 16. */
int32_t opi__threads(int32_t asked);
#endif
