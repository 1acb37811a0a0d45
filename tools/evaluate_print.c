/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluation documents as tables. */
#include "evaluate_view.h"

#include "out.h"

#include <math.h>
#include <string.h>

static void cell(out_table *t, double v, int digits)
{
    char num[OUT_NUM];
    out_cell(t, out_human(num, v, digits));
}

static void percent(out_table *t, double share)
{
    char num[OUT_NUM];
    snprintf(num, sizeof num, isfinite(share) ? "%.1f" : "-", 100 * share);
    out_cell(t, num);
}

static void fixed(out_table *t, double v, int decimals)
{
    char num[OUT_NUM];
    snprintf(num, sizeof num, isfinite(v) ? "%.*f" : "-", decimals, v);
    out_cell(t, num);
}

/* The group whose coverage is furthest below what was promised, among those with enough rows to say so. Groups come by
 * kind: {"gpu": [{"name": …, "n": …, "coverage": …}], …}. */
static const cJSON *worst_group(const cJSON *target, const char **kind)
{
    const cJSON *list, *item, *worst = NULL;
    cJSON_ArrayForEach(list, jv_get(target, "groups"))
    {
        cJSON_ArrayForEach(item, list)
        {
            if (jv_number(item, "n") >= 30 && (!worst || jv_number(item, "coverage") < jv_number(worst, "coverage"))) {
                worst = item;
                *kind = list->string ? list->string : "";
            }
        }
    }
    return worst;
}

static void targets(const cJSON *report)
{
    static const char *const heads[] = {"target",  ">n",       ">median %", ">mean %", ">P90 %",
                                        ">R2 log", ">pinball", ">cover %",  ">width",  ">no upper end"};
    const cJSON *list = jv_get(report, "targets"), *item;
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    cJSON_ArrayForEach(item, list)
    {
        out_cell(t, item->string ? item->string : "");
        cell(t, jv_number(item, "n"), 8);
        percent(t, jv_number(item, "median_ape"));
        percent(t, jv_number(item, "mape"));
        percent(t, jv_number(item, "p90_ape"));
        fixed(t, jv_number(item, "r2_log"), 3);
        fixed(t, jv_number(item, "pinball"), 4);
        percent(t, jv_number(item, "coverage"));
        fixed(t, jv_number(item, "width_log"), 3);
        cell(t, jv_number(item, "unbounded"), 8);
    }
    out_table_end(t, 0);
    out_puts("\n");
    out_wrap(
        0, 0,
        "Errors of the median, held-out cells, percent of the measured value; pinball and width (of the interval) in "
        "natural-log units; cover: share of measured values inside the interval; no upper end: intervals up to "
        "infinity, for want of calibration rows.");
}

static void flags(const cJSON *report)
{
    static const char *const heads[] = {"target",       ">outside %",      ">falsely %",
                                        ">new comb. %", ">lowest cover %", "in group"};
    const cJSON *item;
    out_puts("\n");
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    out_table_flex(t, 5);
    cJSON_ArrayForEach(item, jv_get(report, "targets"))
    {
        const char *kind = "";
        const cJSON *worst = worst_group(item, &kind);
        out_cell(t, item->string ? item->string : "");
        percent(t, jv_number(item, "outside"));
        percent(t, jv_number(item, "in_range_flagged"));
        percent(t, jv_number(item, "new_combination"));
        percent(t, jv_number(worst, "coverage"));
        if (worst) {
            out_cellf(t, "%s %s", kind, *jv_text(worst, "name") ? jv_text(worst, "name") : "(blank)");
        } else {
            out_cell(t, "-");
        }
    }
    out_table_end(t, 0);
    out_puts("\n");
    out_wrap(0, 0,
             "outside, new comb.: share of held-out rows so flagged; falsely: of those in range on every axis. The "
             "group (of at "
             "least 30 rows) whose interval covers least.");
}

/* Left out of training one at a time: how many of its rows are flagged. */
static void left_out(const cJSON *report)
{
    static const char *const heads[] = {"left out", "name", ">rows", ">flagged %"};
    const cJSON *kind, *item;
    if (!jv_get(report, "left_out")) {
        return;
    }
    out_puts("\n");
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    cJSON_ArrayForEach(kind, jv_get(report, "left_out"))
    {
        out_cell(t, kind->string ? kind->string : "");
        out_cell(t, "all");
        out_cell(t, "");
        percent(t, jv_number(kind, "flagged"));
        cJSON_ArrayForEach(item, jv_get(kind, "groups"))
        {
            out_cell(t, "");
            out_cell(t, *jv_text(item, "name") ? jv_text(item, "name") : "(blank)");
            cell(t, jv_number(item, "rows"), 8);
            percent(t, jv_number(item, "flagged"));
        }
    }
    out_table_end(t, 0);
}

static void picker_row(out_table *t, const char *utility, const char *picker, const cJSON *v, double n)
{
    out_cell(t, utility);
    out_cell(t, picker);
    cell(t, isnan(n) ? jv_number(v, "n") : n, 8);
    percent(t, jv_number(v, "top1"));
    percent(t, jv_number(v, "regret"));
}

static void decisions(const cJSON *report)
{
    static const char *const heads[] = {"choice by", "picked by", ">choices", ">top-1 %", ">mean regret %"};
    const cJSON *list = jv_get(report, "decisions"), *item, *base;
    if (!list || !list->child) {
        return;
    }
    out_puts("\n");
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    cJSON_ArrayForEach(item, list)
    {
        picker_row(t, item->string ? item->string : "", "omnipilot", item, NAN);
        cJSON_ArrayForEach(base, jv_get(item, "baselines"))
        {
            picker_row(t, "", base->string ? base->string : jv_text(base, "name"), base, jv_number(item, "n"));
        }
    }
    out_table_end(t, 0);
}

/* Members this program has no table for are printed as they are: nothing the library says is dropped. */
static void the_rest(const cJSON *report, const char *const *done, size_t n)
{
    const cJSON *item;
    int first = 1;
    cJSON_ArrayForEach(item, report)
    {
        int known = 0;
        for (size_t i = 0; i < n; i++) {
            known |= item->string && strcmp(item->string, done[i]) == 0;
        }
        if (known) {
            continue;
        }
        if (first) {
            out_puts("\n");
            first = 0;
        }
        cJSON alone = {0};
        cJSON copy = *item;
        copy.next = copy.prev = NULL;
        alone.type = cJSON_Object;
        alone.child = &copy;
        jv_print_any(&alone, 0);
    }
}

void evaluation_print(const cJSON *report)
{
    static const char *const done[] = {"schema", "version", "targets", "decisions", "left_out"};
    targets(report);
    flags(report);
    left_out(report);
    decisions(report);
    the_rest(report, done, sizeof done / sizeof done[0]);
}

void everyday_print(const cJSON *report, int each)
{
    static const char *const heads[] = {"use", "LLM", "verdict", "recommended"};
    static const char *const done[] = {"schema",      "version",           "requests", "n",
                                       "recommended", "recommended_share", "verdicts"};
    const cJSON *item;
    char line[400];
    size_t n = (size_t)snprintf(line, sizeof line, "Everyday requests: %.0f of %.0f get a recommendation (%.0f %%):",
                                jv_number(report, "recommended"), jv_number(report, "n"),
                                100 * jv_number(report, "recommended_share"));
    cJSON_ArrayForEach(item, jv_get(report, "verdicts"))
    {
        n += n < sizeof line
                 ? (size_t)snprintf(line + n, sizeof line - n, " %s %.0f%s", item->string ? item->string : "",
                                    item->valuedouble, item->next ? "," : ".")
                 : 0;
    }
    out_puts("\n");
    out_wrap(0, 2, line);
    the_rest(report, done, sizeof done / sizeof done[0]);
    if (!each) {
        return;
    }
    out_puts("\n");
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    out_table_flex(t, 3);
    cJSON_ArrayForEach(item, jv_get(report, "requests"))
    {
        out_cell(t, jv_text(item, "use"));
        out_cell(t, jv_text(item, "llm"));
        out_cell(t, jv_text(item, "verdict"));
        out_cell(t, *jv_text(item, "winner") ? jv_text(item, "winner") : "-");
    }
    out_table_end(t, 0);
}

static void capacity_print(const cJSON *c)
{
    static const char *const heads[] = {"from start-up logs", ">n", ">median error %", ">largest %", "largest of"};
    static const char *const parts[] = {"weights_gib", "kv_gib", "kv_tokens"};
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const cJSON *part = jv_get(c, parts[i]);
        out_cell(t, parts[i]);
        cell(t, jv_number(part, "n"), 8);
        percent(t, jv_number(part, "median_ape"));
        percent(t, jv_number(part, "max_ape"));
        out_cell(t, jv_text(part, "worst"));
    }
    out_table_end(t, 0);
    out_printf("%.0f of %.0f that launched were predicted to fit; %.0f of %.0f failures were predicted.\n",
               jv_number(c, "launched_predicted_to_fit"), jv_number(c, "launched"), jv_number(c, "failed_predicted"),
               jv_number(c, "failed"));
}

static void launch_row(out_table *t, const char *name, const cJSON *v)
{
    out_cell(t, *name ? name : "(blank)");
    cell(t, jv_number(v, "rows"), 8);
    cell(t, jv_number(v, "unscored"), 8);
    cell(t, jv_number(v, "oom"), 8);
    cell(t, jv_number(v, "oom_predicted"), 8);
    cell(t, jv_number(v, "false_alarms"), 8);
    percent(t, jv_number(v, "precision"));
    percent(t, jv_number(v, "recall"));
}

static void launches_print(const cJSON *l)
{
    static const char *const heads[] = {"launches",   ">rows",         ">not scored",  ">out of memory",
                                        ">predicted", ">false alarms", ">precision %", ">recall %"};
    const cJSON *item;
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    launch_row(t, "all", l);
    cJSON_ArrayForEach(item, jv_get(l, "engines"))
    {
        launch_row(t, item->string ? item->string : "", item);
    }
    out_table_end(t, 0);
    if (*jv_text(l, "assumed")) {
        out_puts("Assumed: ");
        out_wrap(9, 2, jv_text(l, "assumed"));
    }
}

void memory_report_print(const cJSON *report)
{
    static const char *const done[] = {"schema", "version", "capacity", "launches"};
    const cJSON *capacity = jv_get(report, "capacity"), *launches = jv_get(report, "launches");
    out_puts("\nMemory formula\n");
    if (cJSON_IsObject(capacity)) {
        capacity_print(capacity);
    }
    if (cJSON_IsObject(launches)) {
        out_puts(cJSON_IsObject(capacity) ? "\n" : "");
        launches_print(launches);
    }
    the_rest(report, done, sizeof done / sizeof done[0]);
}
