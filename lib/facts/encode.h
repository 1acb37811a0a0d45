/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration as a dense row: what learners, envelope and calibration see. */
#ifndef OPI_FACTS_ENCODE_H
#define OPI_FACTS_ENCODE_H
#include "facts/roofline.h"
#include "facts/schema.h"

#define OPI__ENCODING 1 /* raised whenever a feature of the same name changes its meaning */
#define OPI__NUMBERS 48 /* numeric features of a learner; see encode.c for their order */
/* Categories. The first OPI__TREE_CATEGORIES are features of the trees; all can key groups, levels and combinations. */
enum {
    OPI__C_GPU,
    OPI__C_PRECISION,
    OPI__C_ENGINE,
    OPI__C_FAMILY,
    OPI__C_LOAD,
    OPI__C_ATTENTION,
    OPI__C_ARCH,
    OPI__TREE_CATEGORIES,
    OPI__C_MODEL = OPI__TREE_CATEGORIES,
    OPI__C_VERSION,
    OPI__C_PRECISION_CLASS,
    OPI__C_SHAPE, /* family, layers, width: base and instruct checkpoints of one architecture are one LLM here */
    OPI__CATEGORIES
};
/* Numeric axes of the support envelope, in the paper's order; all but tp and bits on a log scale. */
enum {
    OPI__E_PARAMS,
    OPI__E_ACTIVE,
    OPI__E_CONTEXT,
    OPI__E_CONCURRENCY,
    OPI__E_KV,
    OPI__E_TP,
    OPI__E_BITS,
    OPI__ENVELOPE
};

typedef struct opi__encoded {
    float number[OPI__NUMBERS]; /* NaN = not stated or not known */
    const char
        *category[OPI__CATEGORIES]; /* "" = not stated; pointers into the configuration's own strings, or `shape` */
    char shape[64];
    double envelope[OPI__ENVELOPE]; /* raw units; NaN = not stated */
    double base[OPI__T_COUNT];      /* log of the physics value each residual is taken from */
} opi__encoded;

/* `config` has passed opi__config_take. No heap. */
void opi__encode(const opi_config *config, opi__encoded *out);
extern const char *const opi__number_names[OPI__NUMBERS];
/* Axis index (opi__axes) of a category and of an envelope number. */
int32_t opi__category_axis(int category);
int32_t opi__envelope_axis(int e);
#endif
