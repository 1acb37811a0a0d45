/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluation documents as tables. */
#include "evaluate_view.h"

#include "out.h"

#include <math.h>
#include <string.h>

static void cell(out_table *t, double v, int digits) {
    char num[OUT_NUM];
    out_cell(t, out_human(num, v, digits));
}

static void percent(out_table *t, double share) {
    char num[OUT_NUM];
    snprintf(num, sizeof num, isfinite(share) ? "%.1f" : "-", 100 * share);
    out_cell(t, num);
}

static void fixed(out_table *t, double v, int decimals) {
    char num[OUT_NUM];
    snprintf(num, sizeof num, isfinite(v) ? "%.*f" : "-", decimals, v);
    out_cell(t, num);
}

/* The group whose coverage is furthest below what was promised, among those with enough rows to say so. */
static const cJSON *worst_group(const cJSON *target) {
    const cJSON *groups = jv_get(target, "groups"), *item, *worst = NULL;
    cJSON_ArrayForEach(item, groups) {
        if (jv_number(item, "n") >= 30 &&
            (!worst || jv_number(item, "coverage") < jv_number(worst, "coverage"))) {
            worst = item;
        }
    }
    return worst;
}

static void targets(const cJSON *report) {
    static const char *const heads[] = {"target",  ">n",         ">median %", ">mean %", ">P90 %",
                                        ">R2 log", ">pinball", ">cover %",  ">width",  "worst group (cover %)"};
    const cJSON *list = jv_get(report, "targets"), *item;
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    out_table_flex(t, 9);
    cJSON_ArrayForEach(item, list) {
        const cJSON *worst = worst_group(item);
        const char *name = worst && worst->string ? worst->string : jv_text(worst, "name");
        out_cell(t, item->string ? item->string : "");
        cell(t, jv_number(item, "n"), 8);
        percent(t, jv_number(item, "median_ape"));
        percent(t, jv_number(item, "mape"));
        percent(t, jv_number(item, "p90_ape"));
        fixed(t, jv_number(item, "r2_log"), 3);
        fixed(t, jv_number(item, "pinball"), 4);
        percent(t, jv_number(item, "coverage"));
        fixed(t, jv_number(item, "width_log"), 3);
        if (worst) {
            out_cellf(t, "%s (%.0f)", name, 100 * jv_number(worst, "coverage"));
        } else {
            out_cell(t, "-");
        }
    }
    out_table_end(t, 0);
    out_puts("\n");
    out_wrap(0, 0, "Errors of the median, held-out cells, percent of the measured value; pinball and width (of the interval) in "
                   "natural-log units; cover: share of measured values inside the interval.");
}

static void picker_row(out_table *t, const char *utility, const char *picker, const cJSON *v, double n) {
    out_cell(t, utility);
    out_cell(t, picker);
    cell(t, isnan(n) ? jv_number(v, "n") : n, 8);
    percent(t, jv_number(v, "top1"));
    percent(t, jv_number(v, "regret"));
}

static void decisions(const cJSON *report) {
    static const char *const heads[] = {"choice by", "picked by", ">choices", ">top-1 %", ">mean regret %"};
    const cJSON *list = jv_get(report, "decisions"), *item, *base;
    if (!list || !list->child) {
        return;
    }
    out_puts("\n");
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    cJSON_ArrayForEach(item, list) {
        picker_row(t, item->string ? item->string : "", "omnipilot", item, NAN);
        cJSON_ArrayForEach(base, jv_get(item, "baselines")) {
            picker_row(t, "", base->string ? base->string : jv_text(base, "name"), base, jv_number(item, "n"));
        }
    }
    out_table_end(t, 0);
}

/* Members this program has no table for are printed as they are: nothing the library says is dropped. */
static void the_rest(const cJSON *report, const char *const *done, size_t n) {
    const cJSON *item;
    int first = 1;
    cJSON_ArrayForEach(item, report) {
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

void evaluation_print(const cJSON *report) {
    static const char *const done[] = {"schema", "targets", "decisions"};
    targets(report);
    decisions(report);
    the_rest(report, done, 3);
}

void everyday_print(const cJSON *report) {
    static const char *const done[] = {"schema", "rows"};
    out_puts("\nEveryday requests\n");
    the_rest(report, done, 2);
}

void memory_report_print(const cJSON *report) {
    static const char *const done[] = {"schema"};
    out_puts("\nMemory formula\n");
    the_rest(report, done, 1);
}
