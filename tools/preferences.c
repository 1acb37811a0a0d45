/* SPDX-License-Identifier: Apache-2.0 */
/* preferences: utility weights from what operators chose among offered configurations. */
#include "out.h"
#include "parse.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_FILE ((size_t)1 << 30)

static void cell_number(out_table *t, double v)
{
    char num[OUT_NUM];
    out_cell(t, out_human(num, v, 3));
}

static void cell_interval(out_table *t, double lo, double hi)
{
    char l[OUT_NUM], h[OUT_NUM];
    if (isnan(lo) || isnan(hi)) {
        out_cell(t, "-");
    } else {
        out_cellf(t, "%s … %s", out_human(l, lo, 3), out_human(h, hi, 3));
    }
}

static int print_weights(const opi_preferences *p, double level)
{
    char head[32];
    const char *const heads[] = {"weight", "unit", ">estimate", ">s.e.", head, ">used", "told by the choices"};
    opi_error err;
    snprintf(head, sizeof head, ">%.4g %% interval", 100 * level);
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < opi_preferences_count(p); i++) {
        opi_preference w = {.struct_size = sizeof w};
        if (opi_preferences_at(p, i, &w, &err)) {
            return tool_error(&err, NULL);
        }
        int known = w.status == OPI_PREF_IDENTIFIED;
        out_cell(t, w.name);
        out_cell(t, w.unit);
        cell_number(t, w.weight);
        cell_number(t, w.se);
        cell_interval(t, w.lo, w.hi);
        cell_number(t, w.used);
        out_cell_style(t, known ? "yes" : opi_preference_status_name(w.status), known ? OUT_PLAIN : OUT_WARN);
    }
    out_table_end(t, 2);
    return 0;
}

static const char *describe_fit(char *buf, size_t cap, const opi_preferences_summary *s)
{
    char hits[OUT_NUM], noise[OUT_NUM], waver[100] = "";
    if (s->cost_status == OPI_PREF_IDENTIFIED) {
        snprintf(waver, sizeof waver, "; choices waver by %s $/h (one standard deviation)",
                 out_human(noise, s->noise_usd_per_h, 3));
    }
    snprintf(buf, cap,
             "The fitted utility puts the choice first in %s of them; pseudo R2 %.3f (log likelihood %.2f; %.2f when all "
             "configurations are alike)%s.",
             out_human(hits, (double)s->hits, 15), 1 - s->log_likelihood / s->log_likelihood_null, s->log_likelihood,
             s->log_likelihood_null, waver);
    return buf;
}

static int print_tables(const opi_preferences *p)
{
    opi_preferences_summary s = {.struct_size = sizeof s};
    opi_error err;
    char a[OUT_NUM], b[OUT_NUM], line[400];
    if (opi_preferences_get_summary(p, &s, &err)) {
        return tool_error(&err, NULL);
    }
    out_printf("%s choices among %s configurations", out_human(a, (double)s.situations, 15),
               out_human(b, (double)s.alternatives, 15));
    if (s.left_out) {
        out_printf(", %s left out", out_human(a, (double)s.left_out, 15));
    }
    out_puts("\n\n");
    int status = print_weights(p, s.level);
    if (status) {
        return status;
    }
    out_puts("\n");
    out_wrap(0, 2, describe_fit(line, sizeof line, &s));
    for (size_t i = 0; i < opi_preferences_note_count(p); i++) {
        out_puts("Note: ");
        out_wrap(6, 2, opi_preferences_note(p, i));
    }
    return 0;
}

static int print_json(const opi_preferences *p)
{
    opi_text *text = NULL;
    opi_error err;
    if (opi_preferences_json(p, &text, &err)) {
        return tool_error(&err, NULL);
    }
    out_bytes(opi_text_data(text), opi_text_size(text));
    out_puts("\n");
    opi_text_free(text);
    return 0;
}

/* Writes what was asked for, and says what the exit status means when there is no answer. */
static int finish(const args *a, const opi_preferences *p)
{
    opi_utility u = {.struct_size = sizeof u};
    opi_error err;
    const char *path = args_get(a, "out");
    int32_t rc = opi_preferences_utility(p, &u, &err);
    if (rc == OPI_E_NODATA) {
        return tool_fail(X_ABSTAIN, "%s%s", err.message, path ? "; nothing was written" : "");
    }
    if (rc) {
        return tool_error(&err, NULL);
    }
    if (path && opi_preferences_save_file(p, path, &err)) {
        return tool_fail(X_FAIL, "--out: %s", err.message);
    }
    return 0;
}

static int read_base(opi_ctx *ctx, const args *a, opi_utility *u)
{
    const char *path = args_get(a, "utility");
    char *bytes = NULL;
    size_t size = 0;
    opi_error err;
    opi_utility_default(u);
    int status = path ? tool_read_file("utility", path, 1u << 20, &bytes, &size) : 0;
    if (path && !status) {
        status = opi_utility_parse(ctx, bytes, size, u, &err) ? tool_error(&err, "utility") : 0;
    }
    free(bytes);
    return status;
}

int run_preferences(const args *a)
{
    opi_ctx *ctx = NULL;
    opi_preferences *p = NULL;
    opi_utility base;
    opi_preferences_options options = {.struct_size = sizeof options, .base = &base, .level = 0.95};
    opi_error err;
    char *bytes = NULL;
    size_t size = 0;
    int status = args_require(a, "choices", "a CSV of the configurations that were offered and chosen");
    status = status ? status : parse_level_option(a, &options.level);
    status = status ? status : parse_number_option(a, "ridge", 1e-6, 0, 1e6, &options.ridge);
    status = status ? status : tool_context(&ctx);
    status = status ? status : read_base(ctx, a, &base);
    status = status ? status : tool_read_file("choices", args_get(a, "choices"), LARGEST_FILE, &bytes, &size);
    if (!status && opi_preferences_fit(ctx, bytes, size, &options, &p, &err)) {
        status = tool_error(&err, "choices");
    }
    if (!status) {
        status = args_has(a, "json") ? print_json(p) : print_tables(p);
    }
    status = status ? status : finish(a, p);
    opi_preferences_free(p);
    opi_ctx_destroy(ctx);
    free(bytes);
    return status;
}

static const opt_def options[] = {
    {"choices", "FILE", 0,
     "a CSV, a line an offered configuration (-: standard input): choice (which lines were offered together), chosen (1 or "
     "0), usd_per_h and any of out_tok_s, queue_s, launch_success with replicas, slo_violation, kv_usage, power_w"},
    {"out", "FILE", 0, "write the weights as the JSON that 'advise --utility' reads"},
    {"utility", "FILE", 0, "the utility to start from: what the choices do not tell is kept (default: the defaults)"},
    {"level", "SHARE", 0, "of the intervals, 0.5 to 0.99 (default 0.95)"},
    {"ridge", "N", 0, "pull towards 0, on columns in units of their spread (default 0.1)"},
    {"json", NULL, 0, "print JSON (docs/json.md)"},
    {NULL, NULL, 0, NULL},
};

const verb verb_preferences = {
    .name = "preferences",
    .summary = "utility weights from what operators chose",
    .usage = "--choices FILE [--out FILE] [options]",
    .about = "Fits a conditional logit to recorded choices and gives the utility's weights in dollars, each with its "
             "standard error and interval, or says why the choices do not tell it. A file that contradicts itself is "
             "refused by name. Exit status 3: the choices do not show what a dollar weighs. docs/preferences.md has the "
             "columns and the model.",
    .examples = "  omnipilot preferences --choices choices.csv --out ours.json\n"
                "  omnipilot advise --utility ours.json …\n",
    .options = options,
    .run = run_preferences,
};
