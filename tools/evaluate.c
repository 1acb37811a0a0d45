/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate: held-out accuracy on a table, the everyday requests, the memory formula against logs. */
#include "evaluate_view.h"
#include "out.h"
#include "parse.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

typedef struct reports {
    opi_text *evaluation, *everyday, *memory;
} reports;

static int read_table(opi_ctx *ctx, const char *option, const char *path, int keep, opi_table **table)
{
    opi_table_options how = {.struct_size = sizeof how, .keep_unlabeled = keep};
    opi_error err;
    return opi_table_read(ctx, path, &how, table, &err) ? tool_error(&err, option) : 0;
}

static int evaluate_table(opi_ctx *ctx, const args *a, opi_text **out)
{
    tool_progress progress;
    opi_evaluate_options options = {.struct_size = sizeof options, .progress = tool_on_progress, .level = 0.8};
    opi_table *table = NULL;
    opi_error err;
    int64_t seed = 0;
    options.progress_user = &progress;
    options.by_mix = args_has(a, "by-mix");
    options.leave_out = args_has(a, "leave-out");
    options.learner = args_get(a, "learner");
    int status = parse_level_option(a, &options.level);
    status = status ? status : parse_int_option(a, "threads", 1, 16, &options.threads);
    if (!status && args_has(a, "seed")) {
        status = parse_int("seed", args_get(a, "seed"), 0, (int64_t)1 << 53, &seed);
    }
    options.seed = (uint64_t)seed;
    tool_progress_begin(&progress);
    status = status ? status : read_table(ctx, "table", args_get(a, "table"), 0, &table);
    if (!status) {
        int32_t failed = opi_evaluate(ctx, table, &options, out, &err);
        tool_progress_end(&progress);
        status = failed == OPI_E_CANCELED ? tool_fail(X_FAIL, "canceled") : failed ? tool_error(&err, NULL) : 0;
    }
    opi_table_free(table);
    return status;
}

/* Runs beside --table too, with the compiled-in model; a build without one then only loses this part. */
static int evaluate_everyday(opi_ctx *ctx, const args *a, opi_text **out)
{
    opi_model *model = NULL;
    opi_error err;
    if (!args_has(a, "everyday") && opi_model_load_default(ctx, &model, &err)) {
        tool_warn("everyday requests are left out: %s", err.message);
        return 0;
    }
    int status = model ? 0 : tool_model(ctx, a, &model);
    if (!status && opi_evaluate_everyday(ctx, model, out, &err)) {
        status = tool_error(&err, NULL);
    }
    opi_model_free(model);
    return status;
}

static int evaluate_memory(opi_ctx *ctx, const args *a, opi_text **out)
{
    const char *path = args_get(a, "memory");
    char *bytes = NULL;
    size_t size = 0;
    opi_table *launches = NULL;
    opi_error err;
    int status = path ? tool_read_file("memory", path, (size_t)1 << 28, &bytes, &size) : 0;
    if (!status && args_has(a, "launches")) {
        status = read_table(ctx, "launches", args_get(a, "launches"), 1, &launches);
    }
    if (!status && opi_evaluate_memory(ctx, bytes, size, launches, out, &err)) {
        status = tool_error(&err, path ? "memory" : "launches");
    }
    opi_table_free(launches);
    free(bytes);
    return status;
}

/* ---- printing ---- */
/* Length of a JSON object's text without its closing brace and the space before it. */
static size_t open_length(const opi_text *t)
{
    const char *s = opi_text_data(t);
    size_t n = opi_text_size(t);
    while (n && s[n - 1] != '}') {
        n--;
    }
    n -= n > 0;
    while (n && (s[n - 1] == '\n' || s[n - 1] == ' ' || s[n - 1] == '\t')) {
        n--;
    }
    return n;
}

/* One document: the first report, with the others as members. Spliced as text, so that every digit stays as it was. */
static void print_json(const reports *r)
{
    const opi_text *root = r->evaluation ? r->evaluation : r->everyday ? r->everyday : r->memory;
    out_bytes(opi_text_data(root), open_length(root));
    if (r->everyday && r->everyday != root) {
        out_puts(",\n  \"everyday\": ");
        out_bytes(opi_text_data(r->everyday), opi_text_size(r->everyday));
    }
    if (r->memory && r->memory != root) {
        out_puts(",\n  \"memory\": ");
        out_bytes(opi_text_data(r->memory), opi_text_size(r->memory));
    }
    out_puts("\n}\n");
}

/* The document as a tree; NULL when there is none, *status set when it cannot be read. Free with jv_free. */
static cJSON *tree(const opi_text *t, int *status)
{
    cJSON *root = t && !*status ? jv_parse(opi_text_data(t), opi_text_size(t)) : NULL;
    if (t && !root) {
        *status = X_FAIL;
    }
    return root;
}

static int print_tables(const args *a, const reports *r)
{
    int status = 0;
    cJSON *evaluation = tree(r->evaluation, &status), *everyday = tree(r->everyday, &status);
    cJSON *memory = tree(r->memory, &status);
    if (!status && evaluation) {
        evaluation_print(evaluation);
    }
    if (!status && everyday) {
        everyday_print(everyday, args_has(a, "everyday"));
    }
    if (!status && memory) {
        memory_report_print(memory);
    }
    jv_free(evaluation);
    jv_free(everyday);
    jv_free(memory);
    return status;
}

int run_evaluate(const args *a)
{
    opi_ctx *ctx = NULL;
    reports r = {NULL, NULL, NULL};
    int table = args_has(a, "table"), memory = args_has(a, "memory") || args_has(a, "launches");
    int everyday = args_has(a, "everyday") || table;
    int status = tool_context(&ctx);
    if (!status && !table && !memory && !everyday) {
        status =
            tool_fail(X_USAGE, "nothing to evaluate: give --table FILE, --everyday, --memory FILE or --launches FILE");
    }
    if (!status && args_has(a, "model") && !args_has(a, "everyday")) {
        status = tool_fail(X_USAGE,
                           "--model is for --everyday only: --table is cross-validated, each fold with a model of its "
                           "own");
    }
    for (size_t i = 0; !status && !table && i < a->n_given; i++) {
        static const char *const needs[] = {"by-mix", "leave-out", "level", "learner", "seed", "threads"};
        for (size_t k = 0; k < sizeof needs / sizeof needs[0] && !status; k++) {
            if (strcmp(a->given[i].def->name, needs[k]) == 0) {
                status = tool_fail(X_USAGE, "--%s needs --table", needs[k]);
            }
        }
    }
    status = status || !memory ? status : evaluate_memory(ctx, a, &r.memory);
    status = status || !everyday ? status : evaluate_everyday(ctx, a, &r.everyday);
    status = status || !table ? status : evaluate_table(ctx, a, &r.evaluation);
    if (!status && args_has(a, "json")) {
        print_json(&r);
    } else if (!status) {
        status = print_tables(a, &r);
    }
    opi_text_free(r.evaluation);
    opi_text_free(r.everyday);
    opi_text_free(r.memory);
    opi_ctx_destroy(ctx);
    return status;
}

static const opt_def options[] = {
    {"table", "FILE", 0, "measurements: five-fold cross-validation on whole cells"},
    {"by-mix", NULL, 0, "stricter cells: the measured mean lengths of a named mix are left out of them"},
    {"leave-out", NULL, 0, "also leave each GPU and each family out: how often is it flagged, how wrong is it"},
    {"level", "SHARE", 0, "of the intervals, 0.5 to 0.99 (default 0.8)"},
    {"learner", "NAME", 0, "what learns the residual: boost (default) or krige"},
    {"seed", "N", 0, "of the random numbers (default 0)"},
    {"threads", "N", 0, "1 to 16 (default: one per core)"},
    {"everyday", NULL, 0, "ask 60 everyday requests and count the verdicts (always done beside --table)"},
    {"model", "FILE", 0, "the model --everyday asks (default: the compiled-in one)"},
    {"memory", "CAPACITY.csv", 0, "score the memory formula on engine start-up logs (columns as docs/memory.md)"},
    {"launches", "FILE.csv", 0, "score it on launches with launch_ok and fail_reason"},
    {"json", NULL, 0, "print JSON: the evaluation, with 'everyday' and 'memory' as members when asked together"},
    {NULL, NULL, 0, NULL},
};

const verb verb_evaluate = {
    .name = "evaluate",
    .summary = "held-out accuracy on a table, everyday requests, the memory formula",
    .usage = "--table FILE [--by-mix] [--leave-out] [--everyday] [--memory FILE] [--launches FILE] [--json]",
    .about = "Cross-validates on whole cells (never random rows): errors, interval coverage and choices per target. "
             "The fold of "
             "a cell is a hash of its text, so that others can be scored on the same folds.",
    .examples = "  omnipilot evaluate --table measured.csv\n"
                "  omnipilot evaluate --table measured.csv --by-mix --leave-out --json > report.json\n"
                "  omnipilot evaluate --everyday\n",
    .options = options,
    .run = run_evaluate,
};
