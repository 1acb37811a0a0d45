/* SPDX-License-Identifier: Apache-2.0 */
/* A fitted model: dictionaries, and per target its learner, quantile head, calibration and envelope. */
#ifndef OPI_MODEL_MODEL_H
#define OPI_MODEL_MODEL_H
#include "learn/envelope.h"
#include "model/learner.h"
#include "omnipilot/predict.h"

/* Pairs of categories whose combinations are watched. */
#define OPI__PAIR_KINDS 5
extern const int opi__pair_axes[OPI__PAIR_KINDS][2];
/* Categories whose values must have been measured. */
#define OPI__SEEN_KINDS 5
extern const int opi__seen_axes[OPI__SEEN_KINDS];

/* Novelty a calibration stands for. */
enum { OPI__N_KNOWN, OPI__N_COMBINATION, OPI__N_OUTSIDE, OPI__N_SITE, OPI__NOVELTIES };
#define OPI__GROUP_LEVELS 4
/* Finest level for new combinations: finer groups would each rest on the errors of one or two held-out combinations. */
#define OPI__COMBINATION_LEVEL 2
#define OPI__GROUP_LEAST       50 /* scores a group needs to stand alone */
typedef struct opi__group {
    uint64_t key;
    uint32_t first, count; /* in scores: ascending */
} opi__group;

typedef struct opi__target_model {
    uint32_t learned; /* 0: answered from physics */
    uint32_t rows, cells, sources;
    void *state;       /* of the learner */
    opi__forest head;  /* a, b, c on the standardized residual: a shifts the median, e^b and e^c are the gaps
                                  below and above it (opi__gap) */
    double head_share; /* how much of a is believed, 0 to 1 */
    size_t n_groups, n_scores;
    opi__group *group; /* ascending keys */
    float *score;      /* signed, in gaps (learn/conformal.h) */
    opi__range range[OPI__ENVELOPE];
    uint8_t *seen[OPI__CATEGORIES]; /* per code: 1 = measured for this target */
    uint64_t *pairs[OPI__PAIR_KINDS];
    size_t n_pairs[OPI__PAIR_KINDS];
} opi__target_model;

/* One measured cell and configuration, for "what does the answer rest on". */
typedef struct opi__anchor {
    float at[OPI__ENVELOPE]; /* on the envelope's scale; NaN = blank */
    uint16_t code[OPI__SEEN_KINDS], model;
    uint16_t targets; /* bit t: measured */
    uint16_t rows;
} opi__anchor;

struct opi_model {
    opi_ctx *ctx;
    const opi__learner *learner;
    opi_text *block;  /* the loaded bytes; NULL when static or fitted here */
    int32_t in_block; /* 1: the arrays point into a block */
    size_t bytes;     /* of the loaded block; 0 when fitted here */
    char *manifest;   /* JSON object text; owned unless in_block and not own_manifest */
    int32_t own_manifest;
    opi__names names[OPI__CATEGORIES];
    uint8_t *known[OPI__CATEGORIES]; /* per code: in the training rows at all */
    opi__target_model target[OPI__T_COUNT];
    size_t n_anchors;
    opi__anchor *anchor;
    double whiten[OPI__ENVELOPE * OPI__ENVELOPE]; /* lower Cholesky factor of the anchors' covariance */
    double spacing;                               /* distance within which nine of ten anchors have another */
};

/* An encoded question. */
typedef struct opi__question {
    opi__encoded encoded;
    float x[OPI__FEATURES];
    int32_t code[OPI__CATEGORIES];
    int32_t identity[OPI__T_COUNT]; /* 1: the lengths that the target's identity needs are stated */
} opi__question;
void opi__question_make(const opi_model *m, const opi_config *taken, opi__question *q);

typedef struct opi__verdict {
    int32_t status; /* OPI_P_OK, OPI_P_NEW_COMBINATION or OPI_P_OOD */
    int32_t axis, axis2;
    double distance, value, lo, hi;
} opi__verdict;
/* Back from the envelope's scale, to 12 digits. */
double opi__envelope_value(int e, double scaled);
#define OPI__FAR 10. /* distance of a category never measured */
void opi__judge(const opi_model *m, int32_t target, const double *envelope, const int32_t *code, opi__verdict *v);

/* Location of the log value and the unit its scores are in. */
typedef struct opi__location {
    double median, gap; /* log scale */
} opi__location;
double opi__gap(const double *head); /* from the head's outputs */
void opi__locate(const opi_model *m, int32_t target, const float *x, const int32_t *code, int32_t site, double base,
                 opi__location *l);
/* The calibration group that answers for this row: the finest level with enough scores. NULL when there is none at
 * all. */
const opi__group *opi__group_of(const opi__target_model *t, int novelty, const int32_t *code);
uint64_t opi__group_key(int novelty, int level, const int32_t *code);

#define OPI__NEW_SITE (-1) /* a user's cluster is a campaign nobody has measured */
/* The one path from a row to an answer, on the log scale: prediction, probabilities and evaluation all go through it. */
typedef struct opi__answer {
    opi__verdict verdict;
    opi__location location;
    const float *score; /* [n] ascending: the calibration that answers for this row */
    size_t n;
    uint32_t group; /* its index; UINT32_MAX = there is none */
} opi__answer;
/* The target (or the one whose residual it shares) must be learned. site: of the dataset, or OPI__NEW_SITE. base: log of
 * the target's own physics value. */
void opi__answer_row(const opi_model *m, int32_t target, const double *envelope, const float *x, const int32_t *code,
                     int32_t site, double base, opi__answer *out);
void opi__answer_bounds(const opi__answer *a, double level, double *lo, double *hi);

/* Distance of a question to a measured anchor: whitened numbers, one unit per differing category. */
double opi__anchor_distance(const opi_model *m, const double *at, const int32_t *code, const opi__anchor *to);

/* 1: this very configuration under this very load is among the measured anchors, whatever campaign it came from. */
int opi__measured_here(const opi_model *m, const double *envelope, const int32_t *code);

/* Loads in place. `block` owns the bytes (it becomes the model's), or is NULL when they are static. */
int32_t opi__model_load(opi_ctx *ctx, const void *bytes, size_t size, opi_text *block, opi_model **out, opi_error *err);

/* Fits on a subset of a dataset's rows (all targets with enough of them). */
typedef struct opi__fit_settings {
    const char *learner;
    uint64_t seed;
    int32_t threads;
    int32_t support_only; /* 1: dictionaries and envelope, no learner (flag rates) */
    opi_progress_fn progress;
    void *progress_user;
} opi__fit_settings;
typedef struct opi__fit_summary {      /* of one target, from cells held out inside the fit; NaN when not learned */
    double median_ape, mape, coverage; /* coverage: of the 80 % interval, calibrated without the row's own fold */
} opi__fit_summary;
/* summary: [OPI__T_COUNT] or NULL. */
int32_t opi__fit_rows(opi_ctx *ctx, const opi__dataset *d, const uint32_t *row, size_t n, const opi__fit_settings *s,
                      opi_model **out, opi__fit_summary *summary, opi_error *err);
#define OPI__LEAST_ROWS  50 /* rows and */
#define OPI__LEAST_CELLS 20 /* cells a target needs to be learned */
#endif
