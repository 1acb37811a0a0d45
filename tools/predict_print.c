/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "memory_view.h"
#include "out.h"
#include "predict.h"

#include <math.h>
#include <string.h>

static opi_target_info target_info(size_t target)
{
    opi_target_info info = {.struct_size = sizeof info};
    if (opi_target_at(target, &info, NULL)) {
        info.name = info.alias = info.unit = info.title = "";
    }
    return info;
}

const char *predict_target_name(size_t target)
{
    return target_info(target).name;
}

const char *predict_verdict(int32_t status, int *style)
{
    static const char *const words[] = {"inside", "new combination", "physics only", "outside", "infeasible", "error"};
    static const int styles[] = {OUT_GOOD, OUT_WARN, OUT_DIM, OUT_BAD, OUT_BAD, OUT_BAD};
    if (status < 0 || status > OPI_P_ERROR) {
        status = OPI_P_ERROR;
    }
    if (style) {
        *style = styles[status];
    }
    return words[status];
}

static const char *axis_name(int32_t axis)
{
    opi_axis_info info = {.struct_size = sizeof info};
    return axis < 0 || opi_axis_at((size_t)axis, &info, NULL) ? "" : info.name;
}

/* "gpu", or "gpu+precision" of a new combination. Returns buf. */
static char *axes_text(char *buf, size_t cap, const opi_prediction *p)
{
    const char *one = axis_name(p->ood_axis), *two = axis_name(p->ood_axis2);
    snprintf(buf, cap, "%s%s%s", one, *one && *two ? "+" : "", two);
    return buf;
}

static char *reason_of(const predict_job *job, const opi_config *c, const opi_prediction *p, char *buf, size_t cap)
{
    buf[0] = 0;
    if (p->status != OPI_P_OK) {
        opi_predict_reason(job->model, c, p, buf, cap);
    }
    return buf;
}

/* ---- CSV ---- */
void predict_csv_head(void)
{
    out_puts("row,target,p10,p50,p90,lo,hi,level,status,ood_distance,ood_axis,reason\n");
}

static void csv_unusable(const predict_job *job, const predict_row *row, size_t target)
{
    csv_int((int64_t)row->row, 0);
    csv_text(predict_target_name(target), 0);
    out_puts(",,,,,");
    csv_number(job->level, 0);
    csv_text(opi_prediction_status_name(OPI_P_ERROR), 0);
    out_puts(",,");
    csv_text(row->error, 1);
}

void predict_csv(const predict_job *job, const predict_row *row)
{
    char text[512];
    for (size_t t = 0; t < job->n_targets; t++) {
        if (!row->p) {
            csv_unusable(job, row, job->targets[t]);
            continue;
        }
        const opi_prediction *p = &row->p[t];
        csv_int((int64_t)row->row, 0);
        csv_text(predict_target_name(job->targets[t]), 0);
        csv_number(p->p10, 0);
        csv_number(p->p50, 0);
        csv_number(p->p90, 0);
        csv_number(p->lo, 0);
        csv_number(p->hi, 0);
        csv_number(job->level, 0);
        csv_text(opi_prediction_status_name(p->status), 0);
        csv_number(p->ood_distance, 0);
        csv_text(axes_text(text, sizeof text, p), 0);
        csv_text(reason_of(job, row->config, p, text, sizeof text), 1);
    }
}

/* ---- JSON ---- */
static void json_prediction(const predict_job *job, const opi_config *c, const opi_prediction *p, const char *unit)
{
    char text[512];
    json_text("unit", unit);
    json_text("status", opi_prediction_status_name(p->status));
    json_number("p10", p->p10);
    json_number("p50", p->p50);
    json_number("p90", p->p90);
    json_number("lo", p->lo);
    json_number("hi", p->hi);
    json_bool("unbounded", isinf(p->hi));
    json_number("ood_distance", p->ood_distance);
    json_text("ood_axis", p->ood_axis < 0 ? NULL : axis_name(p->ood_axis));
    json_text("ood_axis2", p->ood_axis2 < 0 ? NULL : axis_name(p->ood_axis2));
    json_number("ood_value", p->ood_value);
    json_number("ood_lo", p->ood_lo);
    json_number("ood_hi", p->ood_hi);
    json_int("calibration_rows", p->calibration_rows);
    json_int("calibration_group", p->calibration_group);
    reason_of(job, c, p, text, sizeof text);
    json_text("reason", *text ? text : NULL);
}

void predict_json_row(const predict_job *job, const predict_row *row)
{
    json_begin_object(NULL);
    json_int("row", (int64_t)row->row);
    if (row->line) {
        json_int("line", (int64_t)row->line);
    }
    if (!row->p) {
        json_text("status", opi_prediction_status_name(OPI_P_ERROR));
        json_text("reason", row->error);
        json_end_object();
        return;
    }
    json_begin_object("config");
    config_json(row->config);
    json_end_object();
    json_begin_object("targets");
    for (size_t t = 0; t < job->n_targets; t++) {
        opi_target_info info = target_info(job->targets[t]);
        json_begin_object(info.name);
        json_prediction(job, row->config, &row->p[t], info.unit);
        json_end_object();
    }
    json_end_object();
    json_end_object();
}

/* ---- one configuration, for people ---- */
static int is_default_level(const opi_prediction *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isnan(p[i].level)) {
            return fabs(p[i].level - 0.8) < 1e-9;
        }
    }
    return 1;
}

static void target_row(out_table *t, const opi_prediction *p, size_t target, int quantiles)
{
    opi_target_info info = target_info(target);
    char num[4 * OUT_NUM], lo[OUT_NUM], hi[OUT_NUM];
    int style;
    out_cell(t, info.title);
    out_cell(t, out_human(num, p->p50, 3));
    if (isnan(p->lo) || isnan(p->hi)) {
        out_cell(t, "-");
    } else {
        out_cellf(t, "[%s … %s]", out_human(lo, p->lo, 3), out_human(hi, p->hi, 3));
    }
    out_cell(t, info.unit);
    const char *word = predict_verdict(p->status, &style);
    out_cell_style(t, word, (out_style)style);
    if (p->calibration_rows) {
        out_cell(t, out_human(num, p->calibration_rows, 8));
    } else {
        out_cell(t, "-");
    }
    if (quantiles && (isnan(p->p10) || isnan(p->p90))) {
        out_cell(t, "-");
    } else if (quantiles) {
        out_cellf(t, "%s … %s", out_human(lo, p->p10, 3), out_human(hi, p->p90, 3));
    }
}

/* Same verdict for the same reason: told once. */
static int alike(const opi_prediction *a, const opi_prediction *b)
{
    return a->status == b->status && a->ood_axis == b->ood_axis && a->ood_axis2 == b->ood_axis2;
}

static int needs_reason(const opi_prediction *p)
{
    return p->status != OPI_P_OK && p->status != OPI_P_UNCALIBRATED;
}

/* The targets of `p` that are like number i and come after it, by title: " (also: TTFT p95, ITL p50)". */
static void add_alike(char *buf, size_t cap, const opi_prediction *p, const size_t *targets, size_t i, size_t count)
{
    size_t n = strlen(buf), named = 0;
    for (size_t k = i + 1; k < count && n < cap; k++) {
        if (needs_reason(&p[k]) && alike(&p[i], &p[k])) {
            n += (size_t)snprintf(buf + n, cap - n, "%s%s", named++ ? ", " : " (also: ", target_info(targets[k]).title);
        }
    }
    if (named && n < cap) {
        snprintf(buf + n, cap - n, ")");
    }
}

void predict_reasons(const opi_model *model, const opi_config *c, const opi_prediction *p, const size_t *targets,
                     size_t count, size_t indent)
{
    for (size_t i = 0; i < count; i++) {
        char text[1024];
        size_t k = 0;
        while (k < i && !alike(&p[k], &p[i])) {
            k++;
        }
        if (!needs_reason(&p[i]) || k < i) {
            continue;
        }
        const char *word = predict_verdict(p[i].status, NULL);
        opi_predict_reason(model, c, &p[i], text, 512);
        if (p[i].status != OPI_P_INFEASIBLE && p[i].status != OPI_P_ERROR) {
            add_alike(text, sizeof text, p, targets, i, count);
        }
        out_printf("%*s%s: ", (int)indent, "", word);
        out_wrap(indent + out_columns(word) + 2, indent + 2, text);
    }
}

char *predict_support(char *buf, size_t cap, const opi_support *s)
{
    char far[OUT_NUM], where[80];
    if (s->nearest_distance < 0.005) {
        snprintf(where, sizeof where, "the nearest is this very point");
    } else {
        snprintf(where, sizeof where, "the nearest is %s spacings away", out_human(far, s->nearest_distance, 2));
    }
    snprintf(buf, cap, "%u measured cell%s within one typical spacing; %s%s%s.", s->cells, s->cells == 1 ? "" : "s",
             where, *s->nearest ? ": " : "", s->nearest);
    return buf;
}

static void support_line(const predict_job *job, const opi_config *c)
{
    opi_support s = {.struct_size = sizeof s};
    char line[400];
    if (job->n_targets == 0 || opi_predict_support(job->model, c, job->targets[0], &s, NULL)) {
        return;
    }
    predict_support(line, sizeof line, &s);
    out_puts("Rests on: ");
    out_wrap(10, 2, line);
}

void predict_print_one(const predict_job *job, const opi_config *config, const opi_prediction *p)
{
    static const char *const all[] = {"target", ">median", "interval", "unit", "support", ">calibrated on", "10 % … 90 %"};
    /* At 80 % the interval is the range from the 10 % to the 90 % quantile: said once. */
    const size_t heads = sizeof all / sizeof all[0] - (is_default_level(p, job->n_targets) ? 1 : 0);
    char where[256], load[160];
    opi_memory m = {.struct_size = sizeof m};
    out_printf("%s%s%s on %s\n%s\n\n", out_on(OUT_BOLD), config->llm->name, out_off(),
               config_where(where, sizeof where, config), config_load(load, sizeof load, config));
    if (p[0].status == OPI_P_INFEASIBLE || p[0].status == OPI_P_ERROR) { /* no numbers: only why */
        predict_reasons(job->model, config, p, job->targets, job->n_targets, 0);
        return;
    }
    out_table *t = out_table_new(all, heads);
    for (size_t i = 0; i < job->n_targets; i++) {
        target_row(t, &p[i], job->targets[i], heads == sizeof all / sizeof all[0]);
    }
    out_table_end(t, 0);
    out_puts("\n");
    predict_reasons(job->model, config, p, job->targets, job->n_targets, 0);
    if (!opi_memory_fit(config, &m, NULL)) {
        char line[200];
        snprintf(line, sizeof line,
                 "Memory: %.1f of %.1f GiB per GPU for weights, margin %+.1f GiB ('omnipilot memory' has the "
                 "breakdown).",
                 m.weights_gib, m.total_gib, m.margin_gib);
        out_wrap(0, 2, line);
    }
    support_line(job, config);
    out_printf("Intervals: %.4g %%, for held-out cells of measured sites.\n", 100 * job->level);
}

/* ---- many configurations, for people ---- */
#define SHOWN 3

void predict_print_head(const predict_job *job)
{
    out_printf("%srow%s; intervals: %.4g %%, for held-out cells of measured sites\n", out_on(OUT_BOLD), out_off(),
               100 * job->level);
}

void predict_print_row(const predict_job *job, const predict_row *row)
{
    char text[600], num[4 * OUT_NUM];
    size_t n = 0;
    int style = OUT_BAD;
    if (!row->p) {
        out_printf("%6zu  %serror%s: ", row->row, out_on(OUT_BAD), out_off());
        out_wrap(15, 8, row->error ? row->error : "");
        return;
    }
    const opi_config *c = row->config;
    const char *word = predict_verdict(row->p[0].status, &style);
    out_printf("%6zu  %s%s%s: ", row->row, out_on((out_style)style), word, out_off());
    n = (size_t)snprintf(text, sizeof text, "%s on ", c->llm ? c->llm->name : "unknown LLM");
    config_where(text + n, sizeof text - n, c);
    out_wrap(10 + strlen(word), 8, text);
    for (size_t i = n = 0; i < job->n_targets && i < SHOWN && n < sizeof text; i++) {
        opi_target_info info = target_info(job->targets[i]);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %s %s", i ? "; " : "", info.title,
                              out_interval(num, row->p[i].p50, row->p[i].lo, row->p[i].hi), info.unit);
    }
    out_printf("%8s", "");
    out_wrap(8, 8, text);
}
