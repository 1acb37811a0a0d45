/* SPDX-License-Identifier: Apache-2.0 */
/* Options of one verb: --name value, --name=value, flags, operands, `--`. */
#ifndef OMNIPILOT_ARGS_H
#define OMNIPILOT_ARGS_H
#include <stddef.h>

typedef struct opt_def {
    const char *name;  /* without dashes; NULL ends a list */
    const char *value; /* placeholder of the value; NULL: a flag */
    int repeat;        /* 1: may be given more than once */
    const char *help;
} opt_def;

struct args;
typedef struct verb {
    const char *name;
    const char *summary;  /* one line of the verb table */
    const char *usage;    /* what follows "omnipilot NAME" */
    const char *about;    /* a paragraph of --help */
    const char *examples; /* whole lines */
    const opt_def *options;
    size_t max_operands;
    int (*run)(const struct args *a);
} verb;

#define ARGS_MAX 512
typedef struct args {
    const verb *verb;
    struct {
        const opt_def *def;
        const char *value; /* NULL for a flag */
    } given[ARGS_MAX];
    size_t n_given;
    const char *operands[ARGS_MAX];
    size_t n_operands;
    int help; /* -h or --help was seen */
} args;

/* Fills `out`. 0, or an exit status after a message. */
int args_parse(const verb *v, int argc, char **argv, args *out);
void args_help(const verb *v);

int args_has(const args *a, const char *name);
/* The value, or NULL when the option was not given. */
const char *args_get(const args *a, const char *name);
size_t args_count(const args *a, const char *name);
const char *args_nth(const args *a, const char *name, size_t nth);
/* A message and X_USAGE when the option is missing; else 0. */
int args_require(const args *a, const char *name, const char *why);
/* A message and X_USAGE when both are given; else 0. */
int args_exclude(const args *a, const char *one, const char *other);

/* Edit distance (restricted Damerau) of short texts, ASCII case ignored. */
size_t args_distance(const char *a, const char *b);
#endif
