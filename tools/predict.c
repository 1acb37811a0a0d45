/* SPDX-License-Identifier: Apache-2.0 */
/* predict: one configuration by options, or a table of many. */
#include "predict.h"

#include "config.h"
#include "out.h"
#include "parse.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 256

static void emit(const predict_job *job, const predict_row *row)
{
    if (job->csv) {
        predict_csv(job, row);
    } else if (job->json) {
        predict_json_row(job, row);
    } else {
        predict_print_row(job, row);
    }
}

static void begin(const predict_job *job)
{
    if (job->csv) {
        predict_csv_head();
    } else if (job->json) {
        json_begin_object(NULL);
        json_text("schema", "omnipilot.prediction");
        json_int("version", 1);
        json_number("level", job->level);
        json_begin_array("rows");
    } else {
        predict_print_head(job);
    }
}

static void finish(const predict_job *job)
{
    if (job->json) {
        json_end_array();
        json_end_object();
    }
}

/* ---- a table ---- */
typedef struct batch {
    opi_config configs[BATCH]; /* the usable rows, packed */
    predict_row rows[BATCH];   /* all rows, in order */
    size_t n_rows, n_configs;
    opi_prediction *p;
} batch;

static int answer(const predict_job *job, batch *b)
{
    opi_predict_options options = {.struct_size = sizeof options, .level = job->level};
    opi_error err;
    options.targets = job->targets;
    options.n_targets = job->n_targets;
    if (b->n_configs && opi_predict(job->model, b->configs, b->n_configs, &options, b->p, sizeof *b->p, &err)) {
        return tool_error(&err, NULL);
    }
    for (size_t i = 0, k = 0; i < b->n_rows; i++) {
        if (b->rows[i].config) {
            b->rows[i].p = b->p + k++ * job->n_targets;
        }
        emit(job, &b->rows[i]);
    }
    b->n_rows = b->n_configs = 0;
    return out_failed() ? X_FAIL : 0;
}

static int take_row(const opi_table *table, size_t row, batch *b, size_t *usable)
{
    predict_row *r = &b->rows[b->n_rows];
    opi_config *c = &b->configs[b->n_configs];
    int32_t unusable = OPI_OK;
    opi_error err;
    memset(c, 0, sizeof *c);
    c->struct_size = sizeof *c;
    if (opi_table_config(table, row, c, &unusable, &err)) {
        return tool_error(&err, "table");
    }
    memset(r, 0, sizeof *r);
    r->row = row + 1;
    r->line = opi_table_line(table, row);
    if (unusable) {
        r->error = opi_table_reason(table, row);
    } else {
        r->config = c;
        b->n_configs++;
        (*usable)++;
    }
    b->n_rows++;
    return 0;
}

static int all_rows(const predict_job *job, const opi_table *table)
{
    batch *b = tool_alloc(1, sizeof *b);
    size_t n = opi_table_rows(table), usable = 0;
    int status = 0;
    b->p = tool_alloc(BATCH * job->n_targets, sizeof *b->p);
    begin(job);
    for (size_t row = 0; row < n && !status; row++) {
        status = take_row(table, row, b, &usable);
        if (!status && (b->n_rows == BATCH || row + 1 == n)) {
            status = answer(job, b);
        }
    }
    finish(job);
    free(b->p);
    free(b);
    if (!status && !usable) {
        status =
            n ? tool_fail(X_USAGE, "none of the %zu rows can be used; the first: %s", n, opi_table_reason(table, 0))
              : tool_fail(X_USAGE, "the table has no rows");
    } else if (!status && usable < n) {
        tool_note("%zu of %zu rows cannot be used; each says why", n - usable, n);
    }
    return status;
}

static int predict_table(opi_ctx *ctx, const args *a, const predict_job *job)
{
    opi_table_options options = {.struct_size = sizeof options, .keep_unlabeled = 1};
    opi_table *table = NULL;
    opi_error err;
    options.format = args_get(a, "format");
    for (size_t i = 0; i < a->n_given; i++) {
        static const char *const fine[] = {"table", "model", "target", "level", "csv", "json", "format"};
        int known = 0;
        for (size_t k = 0; k < sizeof fine / sizeof fine[0]; k++) {
            known |= strcmp(a->given[i].def->name, fine[k]) == 0;
        }
        if (!known) {
            return tool_fail(X_USAGE, "--%s describes one configuration and cannot be used with --table",
                             a->given[i].def->name);
        }
    }
    const char *path = args_get(a, "table");
    char *bytes = NULL;
    size_t size = 0;
    int status = 0;
    if (strcmp(path, "-") == 0) {
        status = tool_read_file("table", path, (size_t)1 << 31, &bytes, &size);
        status = status ? status
                        : (opi_table_parse(ctx, bytes, size, &options, &table, &err) ? tool_error(&err, "table") : 0);
        free(bytes);
    } else if (opi_table_read(ctx, path, &options, &table, &err)) {
        status = tool_error(&err, "table");
    }
    status = status ? status : all_rows(job, table);
    opi_table_free(table);
    return status;
}

/* ---- one configuration ---- */
/* Exit status of one configuration: an answer to any target is an answer. */
static int verdict_status(const opi_prediction *p, size_t n)
{
    int outside = 0, infeasible = 0, bad = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i].status == OPI_P_OK || p[i].status == OPI_P_NEW_COMBINATION) {
            return X_OK;
        }
        outside |= p[i].status == OPI_P_OOD;
        infeasible |= p[i].status == OPI_P_INFEASIBLE;
        bad |= p[i].status == OPI_P_ERROR;
    }
    return bad ? X_USAGE : infeasible ? X_NONE : outside ? X_ABSTAIN : X_OK;
}

static int predict_one(opi_ctx *ctx, const args *a, const predict_job *job)
{
    opi_predict_options options = {.struct_size = sizeof options, .level = job->level};
    config_in in;
    opi_error err;
    int status = config_from_args(ctx, a, 1, &in);
    if (status) {
        return status;
    }
    /* A misspelled precision is a mistake, not a new one: the memory formula knows the names. */
    opi_memory memory = {.struct_size = sizeof memory};
    if (opi_memory_fit(&in.config, &memory, &err) == OPI_E_INVALID && strstr(err.message, "precision")) {
        return tool_error(&err, "precision");
    }
    opi_prediction *p = tool_alloc(job->n_targets, sizeof *p);
    options.targets = job->targets;
    options.n_targets = job->n_targets;
    if (opi_predict(job->model, &in.config, 1, &options, p, sizeof *p, &err)) {
        free(p);
        return tool_error(&err, NULL);
    }
    predict_row row = {1, 0, &in.config, NULL, p};
    if (job->csv || job->json) {
        begin(job);
        emit(job, &row);
        finish(job);
    } else {
        predict_print_one(job, &in.config, p);
    }
    if (*in.assumed) {
        tool_note("not stated, taken: %s", in.assumed);
    }
    status = verdict_status(p, job->n_targets);
    free(p);
    return status;
}

int run_predict(const args *a)
{
    predict_job job = {.level = 0.8};
    opi_ctx *ctx = NULL;
    opi_model *model = NULL;
    size_t targets = opi_target_count();
    job.targets = tool_alloc(targets, sizeof *job.targets);
    job.csv = args_has(a, "csv");
    job.json = args_has(a, "json");
    int status = args_exclude(a, "csv", "json");
    status = status ? status : parse_level_option(a, &job.level);
    status = status ? status : parse_targets(a, job.targets, &job.n_targets);
    status = status ? status : tool_context(&ctx);
    status = status ? status : tool_model(ctx, a, &model);
    job.model = model;
    if (!status) {
        status = args_has(a, "table") ? predict_table(ctx, a, &job) : predict_one(ctx, a, &job);
    }
    opi_model_free(model);
    opi_ctx_destroy(ctx);
    free(job.targets);
    return status;
}

static const opt_def options[] = {
    {"llm", "NAME|config.json", 0, "the LLM: a name of 'omnipilot llms', or a Hugging Face config.json"},
    {"gpu", "NAME", 0, "the GPU: a name of 'omnipilot gpus'"},
    {"tp", "N", 0, "tensor-parallel degree (default 1)"},
    {"pp", "N", 0, "pipeline-parallel degree (default 1)"},
    {"dp", "N", 0, "data-parallel degree (default 1)"},
    {"ep", "N", 0, "expert-parallel degree"},
    {"precision", "NAME", 0,
     "of the weights: bf16, fp16, fp8, fp4, int8, awq, gptq … (default: the checkpoint's own, else "
     "bf16)"},
    {"kv-bits", "BITS", 0, "bits per cached element"},
    {"engine", "NAME", 0, "vllm, sglang, tensorrt-llm … (default vllm)"},
    {"engine-version", "TEXT", 0, "as the engine prints it"},
    {"load-kind", "KIND", 0,
     "concurrency (requests kept in flight), rate (open loop), batch (static), offline (all at once); "
     "default: what --concurrency or --rate says"},
    {"input", "TOKENS", 0, "mean prompt length"},
    {"output", "TOKENS", 0, "mean generated length"},
    {"concurrency", "N", 0, "requests in flight"},
    {"rate", "R", 0, "requests per second"},
    {"max-context", "TOKENS", 0, "tokens one request may need"},
    {"mem-util", "SHARE", 0, "share of the device memory the engine may take (default 0.9)"},
    {"table", "FILE", 0, "predict every row of a CSV instead ('-': standard input); columns as docs/table.md"},
    {"format", "NAME", 0, "format of --table: csv or an importer's name (default: recognized)"},
    {"target", "NAME[,NAME]", 1, "only these targets (ttft_p50, throughput_out_tok_s …; default: all)"},
    {"level", "SHARE", 0, "of the interval, 0.5 to 0.99 (default 0.8)"},
    {"model", "FILE", 0, "a model of 'omnipilot fit' (default: the compiled-in one)"},
    {"csv", NULL, 0, "one line per row and target"},
    {"json", NULL, 0, "print JSON"},
    {NULL, NULL, 0, NULL},
};

const verb verb_predict = {
    .name = "predict",
    .summary = "what one configuration, or every row of a table, will deliver",
    .usage = "--llm LLM --gpu GPU --input N --output N (--concurrency N | --rate R) [options]\n"
             "--table FILE.csv [options]",
    .about =
        "Medians, 10 % and 90 % quantiles and calibrated intervals of every target, and whether the model may speak at "
        "all. Exit status of one configuration: 0 answered, 3 outside what was measured, 4 infeasible. With --table "
        "every row has its own status.",
    .examples = "  omnipilot predict --llm llama-3.1-70b --gpu H100-80GB-SXM --tp 4 --precision fp8 \\\n"
                "      --input 1024 --output 256 --concurrency 64\n"
                "  omnipilot predict --table questions.csv --csv --target ttft_p50,itl_p50 --level 0.9\n",
    .options = options,
    .run = run_predict,
};
