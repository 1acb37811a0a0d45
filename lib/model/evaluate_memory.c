/* SPDX-License-Identifier: Apache-2.0 */
/* How right the memory formula is: engines' start-up logs (weights, cache size, failures), and launches that ran out of
 * memory. Nothing here is fitted; what the report assumes beyond the rows' own columns it says. */
#include "base/ctx.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "facts/csv.h"
#include "facts/gpu.h"
#include "facts/llm.h"
#include "facts/table.h"
#include "omnipilot/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Prompt lengths of published workloads whose rows leave them blank: a launch is decided by the longest prompt. */
static const struct {
    const char *prefix, *said;
    double tokens;
} longest_prompts[] = {
    {"humaneval-infill",
     "the longest prompt of HumanEval single-line infilling: 655 tokens (1,978 characters, Mistral 7B's tokenizer)",
     655},
};

/* ---- start-up logs ---- */

enum {
    C_ENGINE, C_VERSION, C_MODEL, C_PRECISION, C_GPU, C_TP, C_LENGTH, C_UTIL, C_KV_TYPE, C_WEIGHTS, C_KV, C_TOKENS,
    C_STATUS, C_COUNT
};
static const char *const column_names[C_COUNT] = {
    "engine", "engine_version", "model", "precision", "gpu", "tp", "max_model_len", "gpu_mem_util", "kv_dtype",
    "weights_gib_per_gpu", "kv_gib_per_gpu", "kv_tokens", "status"};

typedef struct errors {
    double *ape;
    size_t n;
    double worst;
    char worst_name[96];
} errors;

typedef struct capacity {
    errors weights, cache, tokens;
    int64_t rows, unscored, launched, launched_fit, failed, failed_predicted;
} capacity;

typedef struct log_row {
    char text[C_COUNT][96];
    uint64_t line;
} log_row;

/* NaN for a blank; a text that is no number is an error. */
static int32_t number(const log_row *r, int column, double *out, opi_error *err)
{
    const char *t = r->text[column];
    *out = NAN;
    if (!t[0] || opi__parse_double(t, strlen(t), out))
        return OPI_OK;
    return opi__fail(err, OPI_E_FORMAT, -1, "capacity, line %llu, column %s: \"%s\" is not a number",
                     (unsigned long long)r->line, column_names[column], t);
}

static void add_error(errors *e, double computed, double logged, const char *name)
{
    if (isnan(logged) || logged == 0 || isnan(computed))
        return;
    double ape = fabs(computed / logged - 1);
    e->ape[e->n++] = ape;
    if (ape >= e->worst) {
        e->worst = ape;
        opi__copy_text(e->worst_name, sizeof e->worst_name, name);
    }
}

static int32_t score_log(const log_row *r, capacity *s, opi_error *err)
{
    double tp, length, util, weights, cache, tokens;
    const opi_gpu *gpu = opi__gpu_by_name(r->text[C_GPU]);
    const opi_llm *llm = opi__llm_by_name(r->text[C_MODEL]);
    opi_memory m = {.struct_size = sizeof m};
    int32_t status = number(r, C_TP, &tp, err);
    status = status ? status : number(r, C_LENGTH, &length, err);
    status = status ? status : number(r, C_UTIL, &util, err);
    status = status ? status : number(r, C_WEIGHTS, &weights, err);
    status = status ? status : number(r, C_KV, &cache, err);
    status = status ? status : number(r, C_TOKENS, &tokens, err);
    if (status)
        return status;
    opi_config c = {.struct_size = sizeof c, .llm = llm, .gpu = gpu, .engine = r->text[C_ENGINE],
                    .engine_version = r->text[C_VERSION], .precision = r->text[C_PRECISION],
                    .tp = tp >= 1 && tp <= 4096 ? (int32_t)tp : 0, .max_context = length > 0 ? length : 0,
                    .mem_util = util > 0 ? util : 0, .kv_bits = strstr(r->text[C_KV_TYPE], "fp8") ? 8 : 0};
    s->rows++;
    if (!llm || !gpu || opi_memory_fit(&c, &m, NULL) != OPI_OK) {
        s->unscored++;
        return OPI_OK;
    }
    add_error(&s->weights, m.weights_gib, weights, r->text[C_MODEL]);
    if (opi__equal_nocase(r->text[C_STATUS], "ok")) {
        add_error(&s->cache, m.kv_gib, cache, r->text[C_MODEL]);
        add_error(&s->tokens, m.kv_tokens, tokens, r->text[C_MODEL]);
        s->launched++;
        s->launched_fit += m.fits;
    } else {
        s->failed++;
        s->failed_predicted += !m.fits;
    }
    return OPI_OK;
}

static int32_t read_header(const opi__csv *csv, size_t where[C_COUNT], opi_error *err)
{
    for (int i = 0; i < C_COUNT; i++) {
        where[i] = csv->n_fields;
        for (size_t f = 0; f < csv->n_fields; f++) {
            if (csv->fields[f].size == strlen(column_names[i]) &&
                memcmp(csv->fields[f].text, column_names[i], csv->fields[f].size) == 0)
                where[i] = f;
        }
        if (where[i] == csv->n_fields)
            return opi__fail(err, OPI_E_FORMAT, -1, "capacity: the header has no column %s", column_names[i]);
    }
    return OPI_OK;
}

static int32_t read_logs(opi__csv *csv, capacity *s, size_t most, opi_error *err)
{
    size_t where[C_COUNT];
    int32_t status = opi__csv_next(csv, err);
    if (status == 0)
        return opi__fail(err, OPI_E_FORMAT, -1, "capacity: the text is empty");
    status = status < 0 ? status : read_header(csv, where, err);
    while (status >= 0 && (size_t)s->rows < most) {
        log_row r;
        status = opi__csv_next(csv, err);
        if (status <= 0)
            break;
        r.line = csv->line;
        for (int i = 0; i < C_COUNT; i++) {
            const opi__csv_field *f = where[i] < csv->n_fields ? &csv->fields[where[i]] : NULL;
            size_t n = f ? f->size : 0;
            n = n < sizeof r.text[i] ? n : sizeof r.text[i] - 1;
            if (n)
                memcpy(r.text[i], f->text, n);
            r.text[i][n] = '\0';
        }
        status = score_log(&r, s, err);
    }
    return status;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_errors(opi__json *parent, const char *key, errors *e)
{
    opi__json *o = opi__json_add_object(parent, key);
    opi__json_add_int(o, "n", (int64_t)e->n);
    if (e->n == 0)
        return;
    qsort(e->ape, e->n, sizeof *e->ape, ascending);
    double median = e->n % 2 ? e->ape[e->n / 2] : (e->ape[e->n / 2 - 1] + e->ape[e->n / 2]) / 2;
    opi__json_add_number(o, "median_ape", median);
    opi__json_add_number(o, "max_ape", e->worst);
    opi__json_add_string(o, "worst", e->worst_name);
}

static int32_t score_capacity(opi_ctx *ctx, const char *text, size_t size, opi__json *report, opi_error *err)
{
    opi__csv csv;
    capacity s = {.rows = 0};
    size_t most = 1;
    int32_t status = opi__csv_open(&csv, ctx, text, size, ',', err);
    if (status)
        return status;
    for (size_t i = 0; i < size; i++)
        most += text[i] == '\n' || text[i] == '\r';
    double *block = opi__alloc(ctx, most * 3, sizeof *block);
    if (!block) {
        opi__csv_close(&csv);
        return opi__fail_memory(err, most * 3 * sizeof *block);
    }
    s.weights.ape = block;
    s.cache.ape = block + most;
    s.tokens.ape = block + 2 * most;
    status = read_logs(&csv, &s, most, err);
    if (status >= 0) {
        opi__json *o = opi__json_add_object(report, "capacity");
        opi__json_add_int(o, "rows", s.rows);
        opi__json_add_int(o, "unscored", s.unscored);
        print_errors(o, "weights_gib", &s.weights);
        print_errors(o, "kv_gib", &s.cache);
        print_errors(o, "kv_tokens", &s.tokens);
        opi__json_add_int(o, "launched", s.launched);
        opi__json_add_int(o, "launched_predicted_to_fit", s.launched_fit);
        opi__json_add_int(o, "failed", s.failed);
        opi__json_add_int(o, "failed_predicted", s.failed_predicted);
    }
    opi__csv_close(&csv);
    opi__free(ctx, block);
    return status < 0 ? status : OPI_OK;
}

/* ---- launches ---- */

#define MOST_ENGINES 16

typedef struct confusion {
    const char *engine;
    int64_t rows, oom, caught, false_alarms, unscored;
} confusion;

static int starts_with(const char *text, const char *prefix)
{
    return text && strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Fills the longest prompt of a known workload in; returns its index + 1, 0 when none was needed. */
static size_t fill_prompt(opi_config *c, const char *workload)
{
    for (size_t i = 0; c->input_len <= 0 && i < sizeof longest_prompts / sizeof longest_prompts[0]; i++) {
        if (starts_with(workload, longest_prompts[i].prefix)) {
            c->input_len = longest_prompts[i].tokens;
            return i + 1;
        }
    }
    return 0;
}

static confusion *engine_of(confusion *all, const char *engine)
{
    for (size_t i = 1; i <= MOST_ENGINES; i++) {
        if (!all[i].engine)
            all[i].engine = engine;
        if (strcmp(all[i].engine, engine) == 0)
            return &all[i];
    }
    return &all[MOST_ENGINES + 1];
}

static void count(confusion *k, int oom, int fits)
{
    k->rows++;
    k->oom += oom;
    k->caught += oom && !fits;
    k->false_alarms += !oom && !fits;
}

static void print_confusion(opi__json *o, const confusion *k)
{
    int64_t alarms = k->caught + k->false_alarms;
    opi__json_add_int(o, "rows", k->rows);
    opi__json_add_int(o, "unscored", k->unscored);
    opi__json_add_int(o, "oom", k->oom);
    opi__json_add_int(o, "oom_predicted", k->caught);
    opi__json_add_int(o, "false_alarms", k->false_alarms);
    opi__json_add_number(o, "precision", alarms ? (double)k->caught / (double)alarms : NAN);
    opi__json_add_number(o, "recall", k->oom ? (double)k->caught / (double)k->oom : NAN);
    int64_t ran = k->rows - k->oom;
    opi__json_add_number(o, "false_alarm_rate", ran ? (double)k->false_alarms / (double)ran : NAN);
}

/* Only launches that ran and launches that ran out of memory count; other failures say nothing about memory. */
static void score_launches(const opi_table *table, opi__json *report)
{
    confusion all[MOST_ENGINES + 2];
    uint32_t assumed = 0;
    memset(all, 0, sizeof all);
    all[MOST_ENGINES + 1].engine = "(other engines)";
    for (size_t i = 0; i < table->n; i++) {
        const opi__row *r = &table->rows[i];
        int oom = r->launch_ok == 0 && r->fail_reason && strstr(r->fail_reason, "oom") != NULL;
        opi_config c = r->config;
        opi_memory m = {.struct_size = sizeof m};
        if (!oom && r->launch_ok != 1)
            continue;
        confusion *k = engine_of(all, c.engine && c.engine[0] ? c.engine : "(not stated)");
        size_t prompt = fill_prompt(&c, r->workload);
        if (r->status != OPI_OK || opi_memory_fit(&c, &m, NULL) != OPI_OK) {
            k->unscored++;
            all[0].unscored++;
            continue;
        }
        assumed |= prompt ? 1u << prompt : 0;
        count(k, oom, m.fits);
        count(&all[0], oom, m.fits);
    }
    opi__json *o = opi__json_add_object(report, "launches");
    print_confusion(o, &all[0]);
    opi__json *engines = opi__json_add_object(o, "engines");
    for (size_t i = 1; i <= MOST_ENGINES + 1; i++) {
        if (all[i].rows + all[i].unscored > 0)
            print_confusion(opi__json_add_object(engines, all[i].engine), &all[i]);
    }
    opi__json *says = opi__json_add_array(o, "assumed");
    for (size_t i = 0; i < sizeof longest_prompts / sizeof longest_prompts[0]; i++) {
        if (assumed & 1u << (i + 1))
            opi__json_add_string(says, NULL, longest_prompts[i].said);
    }
}

int32_t opi_evaluate_memory(opi_ctx *ctx, const char *capacity_text, size_t capacity_size, const opi_table *launches,
                            opi_text **out, opi_error *err)
{
    if (!ctx || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "%s is NULL", ctx ? "out" : "ctx");
    if (!capacity_text && !launches)
        return opi__fail(err, OPI_E_INVALID, -1, "capacity and launches are both NULL: nothing to score");
    opi__json *report = opi__json_new_object();
    opi__json_add_string(report, "schema", "omnipilot.memory-evaluation");
    opi__json_add_int(report, "version", 1);
    int32_t status = capacity_text ? score_capacity(ctx, capacity_text, capacity_size, report, err) : OPI_OK;
    if (status) {
        opi__json_free(report);
        return status;
    }
    if (launches)
        score_launches(launches, report);
    return opi__json_text(ctx, report, out, err);
}
