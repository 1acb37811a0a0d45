/* SPDX-License-Identifier: Apache-2.0 */
/* Inside fitting: what fit.c, calibrate.c and support.c share. */
#ifndef OPI_MODEL_FIT_H
#define OPI_MODEL_FIT_H
#include "model/model.h"

#define OPI__NOVEL_KINDS     (OPI__HELD_FAMILY + 1) /* kinds of combination held out, fit.c */
#define OPI__MOST_CELL_FOLDS 20
#define OPI__COARSE_FOLDS    4

/* Held-out results of one target. */
typedef struct opi__target_work {
    uint32_t *row; /* [n] dataset rows with this target */
    size_t n;
    double *held, *spread;           /* [n] location from the fold that held the row's cell out, and its spread */
    double *coarse;                  /* [n] the same location from OPI__COARSE_FOLDS folds, for the learning curve */
    double *novel[OPI__NOVEL_KINDS]; /* [n] standardized residual with the row's combination held out; NaN where that
                                        leaves the row outside */
    double *apart[OPI__HELD_KINDS];  /* [n] the same whether inside or not; NULL without a closed form */
    double *z;                       /* [dataset rows] standardized residual of the held-out location, for the head */
    double (*head)[3];               /* [n] outputs of heads that did not see the row's cell */
} opi__target_work;

/* Folds of cells for n rows, and the fold of one cell. */
uint32_t opi__cell_folds(size_t n);
uint32_t opi__cell_fold(uint64_t cell, uint64_t seed, size_t n);
/* Chooses the head's share and fills the target's groups and scores. OPI_OK or OPI_E_NOMEM. */
int32_t opi__calibrate(opi_model *m, int32_t target, const opi__dataset *d, const opi__target_work *w, uint64_t seed);
int32_t opi__summarize(const opi_model *m, int32_t target, const opi__dataset *d, const opi__target_work *w,
                       uint64_t seed, opi__fit_summary *out);

/* Dictionaries, envelope, seen values and pairs, anchors: everything a model knows about where it was measured. */
int32_t opi__support_build(opi_model *m, const opi__dataset *d, const uint32_t *row, size_t n,
                           const opi__fit_settings *s);
/* Threads for an option: 0 = the cores this process may use, at most 16. */
int32_t opi__threads(int32_t asked);
#endif
