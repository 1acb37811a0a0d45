/* SPDX-License-Identifier: Apache-2.0 */
/* gate: may a new model take the place of an old one? */
#include "json_view.h"
#include "out.h"
#include "parse.h"
#include "tool.h"

#include <math.h>
#include <string.h>

static int open_model(opi_ctx *ctx, const args *a, const char *option, opi_model **model)
{
    opi_error err;
    return opi_model_load_file(ctx, args_get(a, option), model, &err) ? tool_error(&err, option) : 0;
}

static int is_loss(const cJSON *check)
{
    return strcmp(jv_text(check, "what"), "pinball") == 0;
}

/* Losses in log units, shares in percent; sign: 1 = always shown, -1 = never. Two of them may share one text, so the
 * buffers are the caller's. */
static const char *figure(char *buf, const cJSON *check, const char *key, int sign)
{
    double v = jv_number(check, key);
    if (sign < 0) {
        v = fabs(v);
        sign = 0;
    }
    if (!isfinite(v)) {
        return "-";
    }
    if (is_loss(check)) {
        snprintf(buf, OUT_NUM, sign ? "%+.4f" : "%.4f", v);
    } else {
        snprintf(buf, OUT_NUM, sign ? "%+.2f" : "%.2f", 100 * v);
    }
    return buf;
}

static int is_bad(const char *verdict)
{
    return strcmp(verdict, "worse") == 0 || strcmp(verdict, "lost") == 0;
}

static void check_row(out_table *t, const cJSON *c, int first)
{
    char a[OUT_NUM], b[OUT_NUM];
    const char *verdict = jv_text(c, "verdict");
    out_cell(t, first ? jv_text(c, "of") : "");
    out_cellf(t, "%s%s", jv_text(c, "what"),
              strcmp(jv_text(c, "what"), "learned") == 0 || is_loss(c) ? "" : " %");
    out_cell(t, out_human(a, jv_number(c, "cells"), 15));
    out_cell(t, figure(a, c, "old", 0));
    out_cell(t, figure(a, c, "new", 0));
    out_cell(t, figure(a, c, "difference", 1));
    if (isfinite(jv_number(c, "lo"))) {
        out_cellf(t, "%s … %s", figure(a, c, "lo", 1), figure(b, c, "hi", 1));
    } else {
        out_cell(t, "-");
    }
    out_cell_style(t, verdict,
                   is_bad(verdict) ? OUT_BAD : strcmp(verdict, "better") == 0 ? OUT_GOOD : OUT_PLAIN);
}

/* "ttft_ms_p50, pinball: 0.0312 before, 0.0550 now; worse by 0.0238, surely by 0.0190 (margin 0.005)." */
static void say_worse(const cJSON *c)
{
    char text[400], a[OUT_NUM], b[OUT_NUM], d[OUT_NUM], e[OUT_NUM];
    const char *unit = is_loss(c) ? "" : " %", *what = jv_text(c, "what");
    if (strcmp(jv_text(c, "verdict"), "lost") == 0) {
        snprintf(text, sizeof text, "%s: the old model learned it, the new one did not.", jv_text(c, "of"));
    } else {
        int lower = strcmp(jv_text(c, "worse_when"), "lower") == 0;
        snprintf(text, sizeof text, "%s, %s: %s%s before, %s%s now; %s by %s%s, surely by %s%s (margin %.4g%s).",
                 jv_text(c, "of"), what, figure(a, c, "old", 0), unit, figure(b, c, "new", 0), unit,
                 strcmp(what, "coverage") == 0 ? "further below the band" : "worse",
                 figure(d, c, "difference", -1), unit, figure(e, c, lower ? "hi" : "lo", -1), unit,
                 jv_number(c, "margin") * (is_loss(c) ? 1 : 100), unit);
    }
    out_puts("  ");
    out_wrap(2, 4, text);
}

static int is_absent(const cJSON *check)
{
    return strcmp(jv_text(check, "verdict"), "not-in-table") == 0;
}

static void say_absent(const cJSON *report)
{
    const cJSON *c;
    char text[1024] = "Not in the table, so not compared: ";
    size_t start = strlen(text), n = start;
    const char *last = "";
    cJSON_ArrayForEach(c, jv_get(report, "checks"))
    {
        if (is_absent(c) && strcmp(last, jv_text(c, "of")) && n < sizeof text) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n == start ? "" : ", ", jv_text(c, "of"));
            last = jv_text(c, "of");
        }
    }
    if (n > start) {
        out_wrap(0, 0, text);
    }
}

static void print_table(const cJSON *report)
{
    static const char *const heads[] = {"target",       "what",    ">cells", ">old", ">new", ">difference",
                                        ">95 % bounds", "verdict"};
    const cJSON *c;
    const char *last = "";
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    out_table_flex(t, 0);
    cJSON_ArrayForEach(c, jv_get(report, "checks"))
    {
        if (is_absent(c)) {
            continue;
        }
        check_row(t, c, strcmp(last, jv_text(c, "of")) != 0);
        last = jv_text(c, "of");
    }
    out_table_end(t, 0);
    say_absent(report);
    out_puts("\n");
    out_wrap(0, 0,
             "pinball: mean of the 10, 50 and 90 % quantiles, natural-log units; coverage: of the 80 % interval, its "
             "difference that of what it lacks to 75 %; flagged: rows called outside; top1, regret: "
             "choices among measured hardware. Bounds of new less old, one-sided at 95 % each, from resampled whole "
             "cells. worse: surely beyond the margin; unclear: beyond it, but it may be luck.");
}

static void print_report(const cJSON *report)
{
    const cJSON *c;
    double worse = jv_number(report, "worse");
    print_table(report);
    out_puts("\n");
    if (worse == 0) {
        out_printf("%sPromoted%s: the new model is not worse in anything that was compared.\n", out_on(OUT_GOOD),
                   out_off());
        return;
    }
    out_printf("%sRefused%s: the new model is worse in %.0f figure%s.\n", out_on(OUT_BAD), out_off(), worse,
               worse == 1 ? "" : "s");
    cJSON_ArrayForEach(c, jv_get(report, "checks"))
    {
        if (is_bad(jv_text(c, "verdict"))) {
            say_worse(c);
        }
    }
}

/* Rows that coincide with a model's own training points: perhaps another campaign's, perhaps not held out at all. */
static void say_measured(const cJSON *report)
{
    double rows = jv_number(report, "table.usable_rows"), old = jv_number(report, "old.rows_measured_before");
    double now = jv_number(report, "new.rows_measured_before");
    if (old > 0 || now > 0) {
        tool_warn("of %.0f rows, %.0f coincide in configuration and load with measurements the old model was fitted on, "
                  "%.0f with the new one's: are they held out from both?",
                  rows, old, now);
    }
}

static int show(const args *a, const opi_text *text, int promoted)
{
    cJSON *root = jv_parse(opi_text_data(text), opi_text_size(text));
    if (!root) {
        return X_FAIL;
    }
    say_measured(root);
    if (args_has(a, "json")) {
        out_bytes(opi_text_data(text), opi_text_size(text));
        out_puts("\n");
    } else {
        print_report(root);
    }
    jv_free(root);
    return promoted ? X_OK : X_FAIL;
}

int run_gate(const args *a)
{
    opi_ctx *ctx = NULL;
    opi_model *before = NULL, *after = NULL;
    opi_table *table = NULL;
    opi_text *text = NULL;
    opi_error err;
    opi_table_options how = {.struct_size = sizeof how, .format = args_get(a, "format")};
    opi_gate_options options = {.struct_size = sizeof options, .allow_seen = args_has(a, "allow-seen")};
    int64_t seed = 0;
    int32_t promoted = 0;
    int status = args_require(a, "old", "the model in use");
    status = status ? status : args_require(a, "new", "the model that may take its place");
    status = status ? status : args_require(a, "table", "measurements held out from both");
    status = status ? status : parse_int_option(a, "resamples", 100, 100000, &options.resamples);
    if (!status && args_has(a, "seed")) {
        status = parse_int("seed", args_get(a, "seed"), 0, (int64_t)1 << 53, &seed);
    }
    options.seed = (uint64_t)seed;
    status = status ? status : tool_context(&ctx);
    status = status ? status : open_model(ctx, a, "old", &before);
    status = status ? status : open_model(ctx, a, "new", &after);
    if (!status && opi_table_read(ctx, args_get(a, "table"), &how, &table, &err)) {
        status = tool_error(&err, "table");
    }
    if (!status && opi_model_gate(before, after, table, &options, &promoted, &text, &err)) {
        status = tool_error(&err, NULL);
    }
    status = status ? status : show(a, text, promoted);
    opi_text_free(text);
    opi_table_free(table);
    opi_model_free(before);
    opi_model_free(after);
    opi_ctx_destroy(ctx);
    return status;
}

static const opt_def options[] = {
    {"old", "FILE", 0, "the model in use"},
    {"new", "FILE", 0, "the model that may take its place"},
    {"table", "FILE", 0, "measurements of cells held out from both"},
    {"format", "NAME", 0, "format of --table: csv or an importer's name (default: recognized)"},
    {"allow-seen", NULL, 0, "also a table that one of the models was fitted or adapted on"},
    {"seed", "N", 0, "of the resamples (default 0)"},
    {"resamples", "N", 0, "of the cells, 100 to 100000 (default 2000)"},
    {"json", NULL, 0, "print JSON"},
    {NULL, NULL, 0, NULL},
};

const verb verb_gate = {
    .name = "gate",
    .summary = "may a new model take the place of an old one?",
    .usage = "--old FILE --new FILE --table FILE [options]",
    .about = "Both models answer the table's rows. The new one is promoted (exit status 0) unless it is worse in pinball "
             "loss, coverage, flags or choices of any target, beyond what resampling whole cells explains, or lacks a "
             "target (exit status 1). The rows must be held out from both; docs/gate.md has the rules.",
    .examples = "  omnipilot gate --old site.opi --new candidate.opi --table held_out.csv\n",
    .options = options,
    .run = run_gate,
};
