/* SPDX-License-Identifier: Apache-2.0 */
/* fit: a model from a table of measurements. */
#include "json_view.h"
#include "out.h"
#include "parse.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Finds out before minutes of fitting that the result could not be saved. */
static int check_destination(const char *path)
{
    struct stat st;
    char *folder = tool_dirname(path);
    int status = 0;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        status = tool_fail(X_USAGE, "--out: '%s' is a folder", path);
    } else if (access(folder, W_OK | X_OK) != 0) {
        status = tool_fail(X_USAGE, "--out: cannot write into '%s': %s", folder, strerror(errno));
    }
    free(folder);
    return status;
}

/* What the reader dropped or doubted, in one or two lines on stderr. */
static void say_report(const opi_table *table)
{
    opi_text *text = NULL;
    if (opi_table_report(table, &text, NULL)) {
        return;
    }
    json_view_table_report(opi_text_data(text), opi_text_size(text));
    opi_text_free(text);
}

static int save(const args *a, const opi_model *model, const char *path)
{
    opi_error err;
    struct stat st;
    char num[OUT_NUM];
    if (opi_model_save_file(model, path, &err)) {
        return tool_fail(X_FAIL, "--out: %s", err.message);
    }
    if (args_has(a, "json")) {
        opi_text *text = NULL;
        if (opi_model_inspect(model, &text, &err)) {
            return tool_error(&err, NULL);
        }
        out_bytes(opi_text_data(text), opi_text_size(text));
        out_puts("\n");
        opi_text_free(text);
    } else {
        double size = stat(path, &st) == 0 ? (double)st.st_size : 0;
        out_printf("%s: %s bytes ('omnipilot inspect --model %s' shows what it knows)\n", path,
                   out_human(num, size, 15), path);
    }
    return 0;
}

/* A model that learned nothing would answer everything from physics: nobody wants that written over a good one. */
static int check_learned(const opi_model *model)
{
    opi_text *text = NULL;
    opi_error err;
    if (opi_model_inspect(model, &text, &err)) {
        return tool_error(&err, NULL);
    }
    int learned = json_view_learned_targets(opi_text_data(text), opi_text_size(text));
    opi_text_free(text);
    return learned
               ? 0
               : tool_fail(X_USAGE, "--table: no target has enough measured rows to learn from; nothing was written");
}

static int fit(opi_ctx *ctx, const args *a, const opi_table *table, const opi_fit_options *options)
{
    opi_model *model = NULL;
    opi_error err;
    tool_progress *p = options->progress_user;
    int32_t failed = opi_model_fit(ctx, table, options, &model, &err);
    tool_progress_end(p);
    if (failed == OPI_E_CANCELED) {
        return tool_fail(X_FAIL, "canceled; nothing was written");
    }
    int status = failed ? tool_error(&err, NULL) : check_learned(model);
    status = status ? status : save(a, model, args_get(a, "out"));
    opi_model_free(model);
    return status;
}

int run_fit(const args *a)
{
    opi_ctx *ctx = NULL;
    opi_table *table = NULL;
    opi_error err;
    tool_progress progress;
    opi_table_options how = {.struct_size = sizeof how};
    opi_fit_options options = {.struct_size = sizeof options, .progress = tool_on_progress, .progress_user = &progress};
    int64_t seed = 0;
    int status = args_require(a, "table", "a CSV of measurements");
    status = status ? status : args_require(a, "out", "the file the model is written to");
    status = status ? status : parse_int_option(a, "threads", 1, 16, &options.threads);
    if (!status && args_has(a, "seed")) {
        status = parse_int("seed", args_get(a, "seed"), 0, (int64_t)1 << 53, &seed);
    }
    options.seed = (uint64_t)seed;
    options.learner = args_get(a, "learner");
    options.note = args_get(a, "note");
    options.date = args_get(a, "date");
    how.format = args_get(a, "format");
    how.source = args_get(a, "source");
    tool_progress_begin(&progress); /* before the table is read: Ctrl-C then stops at the first step of the fit */
    status = status ? status : check_destination(args_get(a, "out"));
    status = status ? status : tool_context(&ctx);
    if (!status && opi_table_read(ctx, args_get(a, "table"), &how, &table, &err)) {
        status = tool_error(&err, "table");
    }
    if (!status) {
        say_report(table);
        status = fit(ctx, a, table, &options);
    }
    opi_table_free(table);
    opi_ctx_destroy(ctx);
    return status;
}

int run_adapt(const args *a)
{
    opi_ctx *ctx = NULL;
    opi_table *table = NULL;
    opi_model *base = NULL, *model = NULL;
    opi_error err;
    opi_table_options how = {.struct_size = sizeof how};
    int status = args_require(a, "table", "a CSV of your own measurements");
    status = status ? status : args_require(a, "model", "a model fitted with --learner krige");
    status = status ? status : args_require(a, "out", "the file the model is written to");
    how.format = args_get(a, "format");
    status = status ? status : check_destination(args_get(a, "out"));
    status = status ? status : tool_context(&ctx);
    status = status ? status : tool_model(ctx, a, &base);
    if (!status && opi_table_read(ctx, args_get(a, "table"), &how, &table, &err)) {
        status = tool_error(&err, "table");
    }
    if (!status) {
        say_report(table);
        status = opi_model_adapt(base, table, &model, &err) ? tool_error(&err, NULL) : 0;
    }
    status = status ? status : save(a, model, args_get(a, "out"));
    opi_model_free(model);
    opi_model_free(base);
    opi_table_free(table);
    opi_ctx_destroy(ctx);
    return status;
}

static const opt_def adapt_options[] = {
    {"table", "FILE", 0, "measurements of your site: a CSV as for 'fit', or a file one of the importers reads"},
    {"out", "FILE", 0, "the adapted model; written beside it first and renamed"},
    {"model", "FILE", 0, "the model to start from, fitted with --learner krige"},
    {"format", "NAME", 0, "format of --table: csv or an importer's name (default: recognized)"},
    {"json", NULL, 0, "print what the model knows, as 'inspect --json' does"},
    {NULL, NULL, 0, NULL},
};

const verb verb_adapt = {
    .name = "adapt",
    .summary = "move a model to your site with a few of your own measurements",
    .usage = "--model FILE --table FILE --out FILE [options]",
    .about = "Every cluster differs from those the model was fitted on, and until it has seen yours its intervals are as "
             "wide as clusters differ. Ten to fifty measurements shift its predictions and narrow its intervals, in "
             "under a second. Adapting an adapted model adds up.",
    .examples = "  omnipilot fit --learner krige --table measured.csv --out base.opi\n"
                "  omnipilot adapt --model base.opi --table my_runs.csv --out site.opi\n"
                "  omnipilot advise --model site.opi …\n",
    .options = adapt_options,
    .run = run_adapt,
};

static const opt_def options[] = {
    {"table", "FILE", 0,
     "the measurements: a CSV, or a file one of the importers reads (docs/table.md has the columns)"},
    {"out", "FILE", 0, "the model; written beside it first and renamed, so an old file survives any failure"},
    {"format", "NAME", 0, "format of --table: csv or an importer's name (default: recognized)"},
    {"source", "NAME", 0, "name of the measurement campaign when the file states none (default: user)"},
    {"seed", "N", 0, "of the random numbers (default 0); the same input and seed give the same bytes"},
    {"threads", "N", 0, "1 to 16 (default: one per core); does not change the result"},
    {"learner", "NAME", 0,
     "what learns the residual: boost (default) or krige: slower, more accurate, can be adapted"},
    {"note", "TEXT", 0, "free text for the manifest"},
    {"date", "TEXT", 0,
     "date for the manifest (default: none, so that the same input gives the same bytes on any day)"},
    {"json", NULL, 0, "print what the model knows, as 'inspect --json' does"},
    {NULL, NULL, 0, NULL},
};

const verb verb_fit = {
    .name = "fit",
    .summary = "learn a model from your own measurements",
    .usage = "--table FILE --out FILE [options]",
    .about = "Fits every target that has enough rows, calibrates the intervals on held-out cells and writes one file. "
             "One table "
             "is taken; concatenate several that share their columns. Ctrl-C stops it and writes nothing.",
    .examples = "  omnipilot fit --table measured.csv --out mine.opi --note 'cluster A, May'\n"
                "  omnipilot advise --model mine.opi …\n",
    .options = options,
    .run = run_fit,
};
