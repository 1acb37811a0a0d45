/* SPDX-License-Identifier: Apache-2.0 */
/* Two models on the same rows: what gate.c measures and gate_report.c writes. */
#ifndef OPI_MODEL_GATE_H
#define OPI_MODEL_GATE_H
#include "learn/paired.h"
#include "model/score.h"

/* What a verdict rests on; docs/gate.md explains each number. */
#define OPI__GATE_LEVEL        .95   /* of each one-sided bound */
#define OPI__GATE_RESAMPLES    2000
#define OPI__GATE_LEAST_CELLS  20    /* fewer cells tell nothing about noise */
#define OPI__GATE_PINBALL      .05   /* margins: of the old model's loss, */
#define OPI__GATE_PINBALL_LOG  .005  /* but at least this: an error of the median of 1 % of the measured value */
#define OPI__GATE_COVERAGE     .02   /* absolute shares */
#define OPI__GATE_FLAGGED      .01
#define OPI__GATE_TOP1         .01
#define OPI__GATE_REGRET       .002
#define OPI__GATE_BAND         .75   /* coverage of the 80 % interval that is enough */
#define OPI__GATE_UNBOUNDED    6.907755278982137 /* log 1000: how far an end at infinity is from the median, in the loss */

enum { OPI__G_SAME, OPI__G_BETTER, OPI__G_UNCLEAR, OPI__G_WORSE, OPI__G_LOST, OPI__G_GAINED, OPI__G_FEW, OPI__G_ABSENT };

typedef struct opi__gate_check {
    const char *of, *what; /* target or utility; figure */
    size_t rows, cells;    /* rows: decisions for choices */
    double value[2];       /* what is shown: old, new */
    opi__paired compared;  /* of what is compared: the value itself, or what coverage lacks to the band */
    double margin;
    int32_t higher_is_worse;
    int32_t verdict;
} opi__gate_check;

#define OPI__GATE_CHECKS (3 * OPI__T_COUNT + 2 * OPI__UTILITIES)
typedef struct opi__gate {
    opi_ctx *ctx;
    const opi_model *model[2]; /* old, new */
    opi_gate_options o;
    opi__dataset d;
    opi__held *held[2]; /* [d.n] scratch: answers of one target */
    size_t resamples, cells, measured[2], n_checks;
    opi__gate_check check[OPI__GATE_CHECKS];
} opi__gate;

int opi__gate_worse(const opi__gate_check *c);
int32_t opi__gate_report(const opi__gate *g, opi_text **out, opi_error *err);
#endif
