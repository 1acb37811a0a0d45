/* SPDX-License-Identifier: Apache-2.0 */
/* The seam between a model and what learns the location of a log residual. A learner is one line in learners[]
 * (learner.c). */
#ifndef OPI_MODEL_LEARNER_H
#define OPI_MODEL_LEARNER_H
#include "learn/boost.h"
#include "model/container.h"
#include "model/dataset.h"

/* What can be left out beside cells: combinations of two categories, or one category whole. */
enum {
    OPI__HELD_GPU_PRECISION,
    OPI__HELD_FAMILY_ENGINE,
    OPI__HELD_LLM,
    OPI__HELD_FAMILY,
    OPI__HELD_GPU,
    OPI__HELD_SITE,
    OPI__HELD_KINDS
};
/* Equal for rows that are left out together. */
uint64_t opi__held_key(const opi__dataset *d, int kind, size_t row);

/* Where a learner with a closed form puts, for each row of the job, what the model without the row's … says. */
typedef struct opi__held_out {
    double *location, *spread;     /* without its cell */
    double *kind[OPI__HELD_KINDS]; /* standardized residual without all rows of the same key */
} opi__held_out;

typedef struct opi__fit_job {
    const opi__dataset *data;
    int32_t target;
    const uint32_t *row; /* [n] rows of the dataset to learn from */
    size_t n;
    uint64_t seed;
    int (*stop)(void *user);
    void *user;
    const opi__held_out *held; /* NULL: not wanted */
} opi__fit_job;

typedef struct opi__learner {
    const char *name;
    int32_t closed_form; /* 1: fit fills job->held, so that nothing must be fitted again without a fold */
    int32_t (*fit)(opi_ctx *ctx, const opi__fit_job *job, void **state, opi_error *err);
    /* Location of the residual and its own idea of the spread (1 when it has none). site: code of the campaign, -1 = one
     * never seen. No heap. */
    void (*predict)(const void *state, const float *x, const int32_t *code, int32_t site, double *mean, double *spread);
    /* Adds measurements of the site the model is to be used at (residuals as in fit); NULL when a learner cannot. The same
     * rows in any order, at once or one by one, give the same state. OPI_E_RANGE: more than OPI__LOCAL_MOST. */
    int32_t (*adapt)(opi_ctx *ctx, void *state, size_t n, const float *x, const int32_t *code, const double *y,
                     opi_error *err);
    size_t (*local)(const void *state); /* how many it has; NULL as adapt */
    void (*save)(const void *state, opi__writer *w);
    int32_t (*load)(opi_ctx *ctx, opi__reader *r, void **state, opi_error *err);
    void (*release)(opi_ctx *ctx, void *state);
} opi__learner;

extern const opi__learner opi__learner_krige;
/* NULL name = the first. NULL when there is no such learner. */
const opi__learner *opi__learner_find(const char *name);

/* Forests in the caller's context, shared by the boosting learner and the quantile head. */
int32_t opi__forest_grow(opi_ctx *ctx, const opi__boost_params *p, const opi__bins *bins, const uint32_t *row, size_t n,
                         const double *y, int (*stop)(void *), void *user, opi__forest *out);
void opi__forest_free(opi_ctx *ctx, opi__forest *f);
void opi__forest_save(const opi__forest *f, opi__writer *w);
/* Arrays point into the reader's block, but for `root`. Checked: opi__forest_check, at most `features` features. */
int32_t opi__forest_load(opi__reader *r, size_t features, opi__forest *out, opi_error *err);
#endif
