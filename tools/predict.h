/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OMNIPILOT_PREDICT_TOOL_H
#define OMNIPILOT_PREDICT_TOOL_H
#include "tool.h"

/* Where the answers of one run go, and what was asked. */
typedef struct predict_job {
    const opi_model *model;
    size_t *targets, n_targets;
    double level;
    int csv, json;
} predict_job;

/* One answered (or unusable) configuration. */
typedef struct predict_row {
    size_t row;               /* 1 = first data line */
    uint64_t line;            /* of the file; 0 = not from a file */
    const opi_config *config; /* NULL: unusable */
    const char *error;        /* why it is unusable */
    const opi_prediction *p;  /* n_targets of them; NULL when unusable */
} predict_row;

const char *predict_target_name(size_t target);
void predict_csv_head(void);
void predict_csv(const predict_job *job, const predict_row *row);
void predict_json_row(const predict_job *job, const predict_row *row);
/* One configuration in full. */
void predict_print_one(const predict_job *job, const opi_config *config, const opi_prediction *p);
/* Two lines per row: what was asked and its support, then the first targets. Streamed: nothing waits for the last
 * row. */
void predict_print_head(const predict_job *job);
void predict_print_row(const predict_job *job, const predict_row *row);
/* Why predictions are not inside, a line per distinct reason; physics-only ones are left out. `targets`: their
 * indexes. */
void predict_reasons(const opi_model *model, const opi_config *c, const opi_prediction *p, const size_t *targets,
                     size_t count, size_t indent);
/* "12 measured cells within …; the nearest is …". Returns buf. */
char *predict_support(char *buf, size_t cap, const opi_support *s);
/* "inside", "new combination", "outside", … and its style's number (out_style). */
const char *predict_verdict(int32_t status, int *style);
#endif
