/* SPDX-License-Identifier: Apache-2.0 */
/* inspect: what a model is made of and knows. */
#include "json_view.h"
#include "out.h"
#include "tool.h"

#include <math.h>
#include <string.h>

static void fact(const char *name, const char *value)
{
    out_printf("%-18s ", name);
    out_wrap(19, 19, *value ? value : "-");
}

static void print_manifest(const cJSON *root)
{
    const cJSON *m = jv_get(root, "manifest");
    char text[320], a[OUT_NUM], b[OUT_NUM];
    snprintf(text, sizeof text, "%s, written by omnipilot %s", jv_text(root, "learner"), jv_text(m, "library"));
    fact("learner", text);
    fact("size", strcat(out_human(text, jv_number(root, "bytes"), 15), " bytes"));
    fact("date", jv_text(m, "date"));
    fact("note", jv_text(m, "note"));
    fact("seed", jv_text(m, "seed"));
    snprintf(text, sizeof text, "%s; %s", jv_text(m, "software.compiler"), jv_text(m, "software.arithmetic"));
    fact("software", text);
    snprintf(text, sizeof text, "%s rows, %s usable; SHA-256 %s", out_human(a, jv_number(m, "training_table.rows"), 15),
             out_human(b, jv_number(m, "training_table.usable_rows"), 15), jv_text(m, "training_table.sha256"));
    fact("training table", text);
}

static void print_sources(const cJSON *root)
{
    static const char *const heads[] = {"source", "license", ">rows"};
    const cJSON *item;
    char num[OUT_NUM];
    out_puts("\n");
    out_table *t = out_table_new(heads, 3);
    out_table_flex(t, 0);
    cJSON_ArrayForEach(item, jv_get(root, "manifest.sources"))
    {
        out_cell(t, jv_text(item, "source"));
        out_cell(t, jv_text(item, "license"));
        out_cell(t, out_human(num, jv_number(item, "rows"), 15));
    }
    out_table_end(t, 0);
}

static void percent(out_table *t, double share)
{
    char num[OUT_NUM];
    snprintf(num, sizeof num, isfinite(share) ? "%.1f" : "-", 100 * share);
    out_cell(t, num);
}

static void print_targets(const cJSON *root)
{
    static const char *const heads[] = {
        "target", "unit", "answered by", ">rows", ">cells", ">median error %", ">80 % interval covers %"};
    const cJSON *item;
    char num[OUT_NUM];
    out_puts("\n");
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    cJSON_ArrayForEach(item, jv_get(root, "targets"))
    {
        const cJSON *held = jv_get(jv_get(root, "manifest.held_out_cells"), jv_text(item, "name"));
        out_cell(t, jv_text(item, "title"));
        out_cell(t, jv_text(item, "unit"));
        out_cell(t, strcmp(jv_text(item, "answered_by"), "learned") == 0 ? "learned" : "physics");
        out_cell(t, out_human(num, jv_number(item, "rows"), 15));
        out_cell(t, out_human(num, jv_number(item, "cells"), 15));
        percent(t, jv_number(held, "median_ape"));
        percent(t, jv_number(held, "coverage80"));
    }
    out_table_end(t, 0);
    out_wrap(0, 0, "Error and coverage: held-out cells of the training table, when the model was fitted.");
}

/* Every axis with its range over all targets; a target's own range may be narrower (--json has each). */
static void print_axes(const cJSON *root)
{
    static const char *const heads[] = {"axis", ">from", ">to", "unit"};
    const cJSON *targets = jv_get(root, "targets"), *target, *axis, *other, *first = NULL;
    char num[OUT_NUM];
    cJSON_ArrayForEach(target, targets)
    {
        first = !first && jv_get(target, "axes") ? target : first;
    }
    if (!first) {
        return;
    }
    out_puts("\n");
    out_table *t = out_table_new(heads, 4);
    cJSON_ArrayForEach(axis, jv_get(first, "axes"))
    {
        double lo = INFINITY, hi = -INFINITY;
        cJSON_ArrayForEach(target, targets)
        {
            cJSON_ArrayForEach(other, jv_get(target, "axes"))
            {
                if (strcmp(jv_text(other, "name"), jv_text(axis, "name")) == 0) {
                    lo = fmin(lo, jv_number(other, "min"));
                    hi = fmax(hi, jv_number(other, "max"));
                }
            }
        }
        out_cell(t, jv_text(axis, "name"));
        out_cell(t, out_human(num, lo, 4));
        out_cell(t, out_human(num, hi, 4));
        out_cell(t, jv_text(axis, "unit"));
    }
    out_table_end(t, 0);
    cJSON_ArrayForEach(axis, jv_get(first, "measured"))
    {
        const cJSON *name;
        char line[4096] = "";
        size_t n = 0;
        cJSON_ArrayForEach(name, axis)
        {
            const char *text = cJSON_IsString(name) && *name->valuestring ? name->valuestring : "(blank)";
            n += n < sizeof line ? (size_t)snprintf(line + n, sizeof line - n, "%s%s", n ? ", " : "", text) : 0;
        }
        fact(axis->string ? axis->string : "", line);
    }
    out_wrap(
        0, 0,
        "Ranges: the widest over all targets; names: those measured for the first target (--json has each target).");
}

static void print_groups(const cJSON *root)
{
    static const char *const heads[] = {"target", "calibration group", "for", ">scores"};
    const cJSON *target, *group;
    char num[OUT_NUM];
    out_puts("\n");
    out_table *t = out_table_new(heads, 4);
    out_table_flex(t, 1);
    cJSON_ArrayForEach(target, jv_get(root, "targets"))
    {
        cJSON_ArrayForEach(group, jv_get(target, "calibration_groups"))
        {
            out_cell(t, jv_text(target, "title"));
            out_cell(t, jv_text(group, "name"));
            out_cell(t, jv_text(group, "novelty"));
            out_cell(t, out_human(num, jv_number(group, "scores"), 15));
        }
    }
    out_table_end(t, 0);
}

static void print_model(const cJSON *root)
{
    print_manifest(root);
    print_sources(root);
    print_targets(root);
    print_axes(root);
    print_groups(root);
}

int run_inspect(const args *a)
{
    opi_ctx *ctx = NULL;
    opi_model *model = NULL;
    opi_text *text = NULL;
    opi_error err;
    int status = tool_context(&ctx);
    status = status ? status : tool_model(ctx, a, &model);
    if (!status && opi_model_inspect(model, &text, &err)) {
        status = tool_error(&err, NULL);
    }
    if (!status && args_has(a, "json")) {
        out_bytes(opi_text_data(text), opi_text_size(text));
        out_puts("\n");
    } else if (!status) {
        cJSON *root = jv_parse(opi_text_data(text), opi_text_size(text));
        if (root) {
            print_model(root);
            jv_free(root);
        } else {
            status = X_FAIL;
        }
    }
    opi_text_free(text);
    opi_model_free(model);
    opi_ctx_destroy(ctx);
    return status;
}

static const opt_def options[] = {
    {"model", "FILE", 0, "a model of 'omnipilot fit' (default: the compiled-in one)"},
    {"json", NULL, 0, "print JSON"},
    {NULL, NULL, 0, NULL},
};

const verb verb_inspect = {
    .name = "inspect",
    .summary = "what a model was made from and what it knows",
    .usage = "[--model FILE] [--json]",
    .about = "The manifest (sources, licenses, row counts, hash of the training table, software), the targets, the "
             "axes with "
             "their measured ranges, the calibration groups, the size.",
    .examples = "  omnipilot inspect\n  omnipilot inspect --model mine.opi --json\n",
    .options = options,
    .run = run_inspect,
};
