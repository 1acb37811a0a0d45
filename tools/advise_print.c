/* SPDX-License-Identifier: Apache-2.0 */
/* advise, for people: the request, the ranked candidates in two lines each, the reasons. */
#include "advise_view.h"
#include "config.h"
#include "out.h"
#include "predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COLUMNS 8
#define METRIC_WIDTH 28

static opi_target_info info_of(size_t target)
{
    opi_target_info info = {.struct_size = sizeof info};
    opi_target_at(target, &info, NULL);
    return info;
}

/* ---- the request ---- */
static void print_request(const advise_view *v)
{
    const opi_advise_request *r = v->request;
    opi_config load = {.struct_size = sizeof load, .input_len = r->input_len, .output_len = r->output_len};
    char line[1024], num[OUT_NUM], text[160];
    size_t n = 0;
    load.concurrency = r->concurrency;
    load.request_rate = r->request_rate;
    out_printf("%s%s%s: %s\n", out_on(OUT_BOLD), r->llm->name, out_off(), config_load(text, sizeof text, &load));
    for (size_t i = 0; i < r->n_inventory && n < sizeof line; i++) {
        n += (size_t)snprintf(line + n, sizeof line - n, "%s%d x %s", i ? ", " : "", r->inventory[i].count,
                              r->inventory[i].gpu->name);
    }
    out_puts("GPUs: ");
    out_wrap(6, 6, line);
    if (r->n_slos) {
        line[n = 0] = 0;
        for (size_t i = 0; i < r->n_slos && n < sizeof line; i++) {
            opi_target_info info = info_of(r->slos[i].target);
            n += (size_t)snprintf(line + n, sizeof line - n, "%s%s %s %s %s", i ? ", " : "", info.title,
                                  info.higher_is_better ? ">=" : "<=", out_human(num, r->slos[i].limit, 6), info.unit);
        }
        out_puts("SLO: ");
        out_wrap(5, 5, line);
    }
    if (v->utility->value_usd_per_mtok > 0) {
        out_printf("Value: $%s per million output tokens\n", out_human(num, v->utility->value_usd_per_mtok, 4));
    }
}

/* ---- candidates ---- */
/* The targets shown: throughput, TTFT and ITL, then whatever an SLO names. */
static size_t columns(const advise_view *v, size_t *out)
{
    static const char *const always[] = {"throughput_out_tok_s", "ttft_ms_p50", "itl_ms_p50"};
    size_t n = 0;
    for (size_t i = 0; i < 3; i++) {
        size_t t = advise_target(always[i]);
        if (t != SIZE_MAX) {
            out[n++] = t;
        }
    }
    for (size_t i = 0; i < v->request->n_slos && n < MOST_COLUMNS; i++) {
        size_t k = 0;
        while (k < n && out[k] != v->request->slos[i].target) {
            k++;
        }
        if (k == n) {
            out[n++] = v->request->slos[i].target;
        }
    }
    return n;
}

/* Cells of the second line, three a line; the padding comes before a cell, so that no line ends in blanks. */
static void metric_line(size_t i, const char *text, size_t *column)
{
    size_t want = 5 + (i % 3 ? 4 + METRIC_WIDTH * (i % 3) : 0);
    if (i % 3 == 0) {
        out_puts(i ? "\n" : "");
        *column = 0;
    }
    out_printf("%*s%s", (int)(*column < want ? want - *column : 1), "", text);
    *column = (*column < want ? want : *column + 1) + out_columns(text);
}

static void print_heads(const advise_view *v, const size_t *target, size_t n)
{
    char text[128];
    size_t column = 0;
    out_printf("\n%s%3s  %-21s %4s %3s%s %5s  %-6s %-13s%6s%7s%8s  %s\n", out_on(OUT_BOLD), "#", "GPU", "GPUs", "TP",
               v->request->pipeline ? "  PP" : "", "repl.", "prec.", "engine", v->request->n_slos ? "P(SLO)" : "",
               "$/h", "$/Mtok", "support");
    for (size_t i = 0; i < n; i++) {
        opi_target_info info = info_of(target[i]);
        snprintf(text, sizeof text, "%s%s%s", info.title, strstr(info.title, info.unit) ? "" : ", ",
                 strstr(info.title, info.unit) ? "" : info.unit);
        metric_line(i, text, &column);
    }
    out_printf("%s\n", out_off());
}

static const char *short_verdict(int32_t verdict, int *style)
{
    predict_verdict(verdict, style);
    return verdict == OPI_P_OK ? "inside" : verdict == OPI_P_NEW_COMBINATION ? "new combo" : "outside";
}

static void print_candidate(const advise_view *v, size_t rank, const size_t *target, size_t n)
{
    opi_candidate c = {.struct_size = sizeof c};
    char slo[OUT_NUM] = "", pp[OUT_NUM] = "", cost[OUT_NUM], mtok[OUT_NUM], cell[4 * OUT_NUM];
    size_t column = 0;
    int style;
    if (opi_advice_candidate(v->advice, rank, &c, NULL)) {
        return;
    }
    if (v->request->n_slos) {
        snprintf(slo, sizeof slo, isnan(c.slo_violation) ? "-" : "%.2f", 1 - c.slo_violation);
    }
    if (v->request->pipeline) {
        snprintf(pp, sizeof pp, " %3d", c.config.pp > 0 ? c.config.pp : 1);
    }
    out_human(cost, c.price_stated ? -c.terms.node : NAN, 3);
    /* All costs in, as it is ranked; the node alone is in --json and --csv. */
    out_human(mtok, c.price_stated ? (c.terms.value - c.terms.total) / (c.out_tok_s * 0.0036) : NAN, 3);
    const char *word = short_verdict(c.verdict, &style);
    int replicas = c.replicas > 0 ? c.replicas : 1;
    out_printf("%s%3zu%s%s %-21s %4d %3d%s %5d  %-6s %-13s%6s%7s%8s  %s%s%s\n",
               rank == v->winner ? out_on(OUT_BOLD) : "", rank + 1, rank == v->winner ? out_off() : "",
               rank == v->winner ? "*" : " ", c.config.gpu->name, c.config.n_gpus * replicas, c.config.tp, pp, replicas,
               c.config.precision ? c.config.precision : "-", c.config.engine ? c.config.engine : "-", slo, cost, mtok,
               out_on((out_style)style), word, out_off());
    for (size_t i = 0; i < n; i++) {
        opi_prediction p;
        if (advise_prediction(v, rank, &c, target[i], &p)) {
            metric_line(i, out_interval(cell, p.p50, p.lo, p.hi), &column);
        } else {
            metric_line(i, "-", &column);
        }
    }
    out_puts("\n");
}

/* ---- what is infeasible: one line per GPU and reason ---- */
typedef struct why {
    const char *gpu;
    int32_t code;
    size_t n;
    double least; /* memory: the smallest shortage, GiB */
    int32_t tp;   /* of that one */
    char precision[24], text[200];
} why;

static void add_why(why *list, size_t *n, size_t max, const opi_candidate *c)
{
    const char *gpu = c->config.gpu ? c->config.gpu->name : "?";
    size_t k = 0;
    while (k < *n && (list[k].code != c->infeasible || strcmp(list[k].gpu, gpu) != 0)) {
        k++;
    }
    if (k == *n) {
        if (k == max) {
            return;
        }
        memset(&list[k], 0, sizeof list[k]);
        list[k].gpu = gpu;
        list[k].code = c->infeasible;
        list[k].least = INFINITY;
        (*n)++;
    }
    double missing = -c->memory.margin_gib;
    list[k].n++;
    if (list[k].n == 1 || (c->infeasible == OPI_R_MEMORY && missing < list[k].least)) {
        list[k].least = missing;
        list[k].tp = c->config.tp;
        snprintf(list[k].precision, sizeof list[k].precision, "%s", c->config.precision ? c->config.precision : "");
        snprintf(list[k].text, sizeof list[k].text, "%s", c->reason);
    }
}

static void print_why(const why *w)
{
    char line[512];
    size_t n = 0;
    if (w->n > 1 && w->code == OPI_R_MEMORY) {
        n = (size_t)snprintf(line, sizeof line, "%zu configurations; the closest, TP %d %s: ", w->n, w->tp,
                             w->precision);
    } else if (w->n > 1) {
        n = (size_t)snprintf(line, sizeof line, "%zu configurations; the first: ", w->n);
    }
    snprintf(line + n, sizeof line - n, "%s", *w->text ? w->text : opi_reason_name(w->code));
    n = (size_t)snprintf(NULL, 0, "  %-21s %-12s ", w->gpu, opi_reason_name(w->code));
    out_printf("  %-21s %-12s ", w->gpu, opi_reason_name(w->code));
    out_wrap(n, n, line);
}

static void print_infeasible(const advise_view *v)
{
    enum { MOST = 64 };
    why *list = tool_alloc(MOST, sizeof *list);
    size_t n = 0;
    for (size_t i = v->feasible; i < v->count; i++) {
        opi_candidate c = {.struct_size = sizeof c};
        if (!opi_advice_candidate(v->advice, i, &c, NULL)) {
            add_why(list, &n, MOST, &c);
        }
    }
    if (n) {
        out_printf("\nNot feasible (%zu of %zu configurations):\n", v->count - v->feasible, v->count);
    }
    for (size_t i = 0; i < n; i++) {
        print_why(&list[i]);
    }
    free(list);
}

/* ---- what it rests on ---- */
static void print_support(const advise_view *v)
{
    size_t rank = v->winner != SIZE_MAX ? v->winner : 0, target = advise_target("throughput_out_tok_s");
    opi_candidate c = {.struct_size = sizeof c};
    opi_support s = {.struct_size = sizeof s};
    char line[420];
    size_t n;
    if (target == SIZE_MAX || !v->feasible || opi_advice_candidate(v->advice, rank, &c, NULL) ||
        opi_predict_support(v->model, &c.config, target, &s, NULL)) {
        return;
    }
    n = (size_t)snprintf(line, sizeof line, "(#%zu) ", rank + 1);
    predict_support(line + n, sizeof line - n, &s);
    out_puts("Rests on: ");
    out_wrap(10, 2, line);
}

static void print_notes(const advise_view *v)
{
    for (size_t i = 0; i < opi_advice_note_count(v->advice); i++) {
        out_puts("Note: ");
        out_wrap(6, 2, opi_advice_note(v->advice, i));
    }
}

static void print_verdict(const advise_view *v)
{
    const char *probe = opi_advice_probe(v->advice);
    const char *head = v->verdict == OPI_ADVISE_RECOMMENDED ? "Recommended:"
                       : v->verdict == OPI_ADVISE_ABSTAINED ? "No recommendation:"
                                                            : "Nothing feasible:";
    out_printf("%s%s%s ", out_on(v->verdict == OPI_ADVISE_RECOMMENDED ? OUT_GOOD : OUT_BAD), head, out_off());
    out_wrap(strlen(head) + 1, 2, opi_advice_sentence(v->advice));
    if (probe && *probe) {
        out_wrap(0, 2, probe);
    }
}

static int leader_is_outside(const advise_view *v)
{
    opi_candidate c = {.struct_size = sizeof c};
    return !opi_advice_candidate(v->advice, 0, &c, NULL) && c.verdict != OPI_P_OK && c.verdict != OPI_P_NEW_COMBINATION;
}

void advise_print(const advise_view *v)
{
    size_t target[MOST_COLUMNS], n = columns(v, target);
    size_t shown = v->feasible < v->top ? v->feasible : v->top;
    print_request(v);
    if (shown) {
        print_heads(v, target, n);
    }
    for (size_t i = 0; i < shown; i++) {
        print_candidate(v, i, target, n);
    }
    if (v->winner != SIZE_MAX && v->winner >= shown) { /* what looks better lies outside: the winner still shows */
        out_puts("     …\n");
        print_candidate(v, v->winner, target, n);
    }
    if (shown < v->feasible) {
        out_printf("     … %zu more feasible (--top %zu shows all)\n", v->feasible - shown, v->feasible);
    }
    out_puts("\n");
    if (v->verdict == OPI_ADVISE_ABSTAINED && shown && leader_is_outside(v)) {
        out_printf("%sLow confidence:%s the ranking above is not a recommendation.\n", out_on(OUT_WARN), out_off());
    }
    print_verdict(v);
    print_support(v);
    print_notes(v);
    print_infeasible(v);
    if (shown) {
        char line[256];
        snprintf(line, sizeof line,
                 "\nIntervals: %.4g %%, for held-out cells of measured sites; another cluster may differ by more. "
                 "Throughput is "
                 "that of all replicas; P(SLO): probability that every limit is met; $/h: nodes; $/Mtok: all costs.",
                 100 * v->level);
        out_wrap(0, 0, line);
    }
}
