/* SPDX-License-Identifier: Apache-2.0 */
/* Fitting: the same bytes each time, what is learned and what is not, and what the model says of itself. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tiny_model.h"

Suite *suite_model(void);

static const world small = {.targets = 1, .hardware = 2};

static opi_ctx *ctx;
static opi_table *table;
static opi_model *fitted; /* on `small`, seed 1, one thread; made once */
static opi_text *bytes;   /* of it */
static opi_error err;

#define UNTOUCHED ((void *)&ctx)

static opi_model *fit(const opi_table *t, uint64_t seed, int32_t threads)
{
    const opi_fit_options o = {
        .struct_size = sizeof o, .seed = seed, .threads = threads, .learner = "boost", .note = "made up",
        .date = "2026-01-02"};
    opi_model *m = NULL;
    ck_assert_msg(opi_model_fit(ctx, t, &o, &m, &err) == OPI_OK, "%s", err.message);
    return m;
}

static opi_text *saved(const opi_model *m)
{
    opi_text *text = NULL;
    ck_assert_msg(opi_model_save_memory(m, &text, &err) == OPI_OK, "%s", err.message);
    return text;
}

static void once(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
    table = world_table(ctx, &small);
    ck_assert_ptr_nonnull(table);
    fitted = fit(table, 1, 1);
    bytes = saved(fitted);
}

static void done(void)
{
    opi_text_free(bytes);
    opi_model_free(fitted);
    opi_table_free(table);
    opi_ctx_destroy(ctx);
}

static void same_text(const opi_text *a, const opi_text *b)
{
    ck_assert_uint_eq(opi_text_size(a), opi_text_size(b));
    ck_assert_mem_eq(opi_text_data(a), opi_text_data(b), opi_text_size(a));
}

/* Every number the model says about a few configurations, as bytes. */
static size_t answers(const opi_model *m, opi_prediction *out)
{
    opi_gpu gpu;
    opi_llm llm;
    opi_config c[3];
    c[0] = c[1] = c[2] = world_config(&gpu, &llm);
    c[1].concurrency = 40;
    c[2].engine = "sglang", c[2].precision = "fp8";
    memset(out, 0, 3 * OPI__T_COUNT * sizeof *out);
    ck_assert_int_eq(opi_predict(m, c, 3, NULL, out, sizeof *out, NULL), OPI_OK);
    return 3 * OPI__T_COUNT * sizeof *out;
}

/* ---- fitting ---- */

START_TEST(same_bytes_again)
{
    opi_model *again = fit(table, 1, 1), *threads = fit(table, 1, 2);
    opi_text *a = saved(again), *b = saved(threads);
    same_text(bytes, a);
    same_text(bytes, b);
    opi_text_free(a), opi_text_free(b);
    opi_model_free(again), opi_model_free(threads);
}
END_TEST

START_TEST(seed_changes_the_model)
{
    opi_prediction a[3 * OPI__T_COUNT], b[3 * OPI__T_COUNT];
    opi_model *other = fit(table, 2, 1);
    size_t n = answers(fitted, a);
    answers(other, b);
    ck_assert(memcmp(a, b, n) != 0);
    ck_assert_double_eq_tol(b[0].p50 / a[0].p50, 1, .1); /* another sample of rows and columns, the same world */
    opi_model_free(other);
}
END_TEST

/* Codes are sorted names and bins are of values: the order of the lines does not matter to either. */
START_TEST(dataset_without_the_order)
{
    world w = small;
    opi__dataset a, b;
    w.order = 3;
    opi_table *shuffled = world_table(ctx, &w);
    ck_assert_int_eq(opi__dataset_build(ctx, table, 0, &a, &err), OPI_OK);
    ck_assert_int_eq(opi__dataset_build(ctx, shuffled, 0, &b, &err), OPI_OK);
    ck_assert_uint_eq(a.n, b.n);
    for (int c = 0; c < OPI__CATEGORIES; c++) {
        ck_assert_uint_eq(a.names[c].n, b.names[c].n);
        for (uint32_t i = 0; i < a.names[c].n; i++)
            ck_assert_str_eq(a.names[c].name[i], b.names[c].name[i]);
    }
    ck_assert_mem_eq(a.bins.count, b.bins.count, OPI__FEATURES * sizeof *a.bins.count);
    for (int k = 0; k < OPI__FEATURES; k++)
        ck_assert_mem_eq(a.bins.edge[k], b.bins.edge[k], a.bins.count[k] * sizeof(float));
    for (size_t i = 0, moved = 0; i < a.n; i++) { /* cell and TP name a row's numbers: find it again */
        size_t j = 0;
        while (j < b.n && (b.cell[j] != a.cell[i] || b.y[0][j] != a.y[0][i]))
            j++;
        ck_assert(j < b.n);
        moved += j != i;
        ck_assert_mem_eq(&a.bins.code[i * OPI__FEATURES], &b.bins.code[j * OPI__FEATURES], OPI__FEATURES);
        ck_assert(i + 1 < a.n || moved > a.n / 2);
    }
    opi__dataset_free(&a), opi__dataset_free(&b);
    opi_table_free(shuffled);
}
END_TEST

static const opi__json *member(const opi__json *o, const char *key)
{
    const opi__json *v = opi__json_get(o, key);
    ck_assert_msg(v != NULL, "no member \"%s\"", key);
    return v;
}

static double number(const opi__json *o, const char *key)
{
    double v = -1;
    ck_assert_msg(opi__json_number(member(o, key), &v), "\"%s\" is no number", key);
    return v;
}

static opi__json *inspected(const opi_model *m)
{
    opi_text *text = NULL;
    opi__json *root = NULL;
    ck_assert_msg(opi_model_inspect(m, &text, &err) == OPI_OK, "%s", err.message);
    ck_assert_int_eq(opi__json_parse(opi_text_data(text), opi_text_size(text), "inspect", &root, &err), OPI_OK);
    opi_text_free(text);
    return root;
}

START_TEST(manifest_says_where_it_comes_from)
{
    static char text[WORLD_BYTES];
    char sha[65];
    size_t n = world_text(&small, text);
    opi__json *root = inspected(fitted);
    const opi__json *m = member(root, "manifest"), *source = opi__json_at(member(m, "sources"), 0);
    opi__sha256_hex(text, n, sha);
    ck_assert_str_eq(opi__json_string(member(member(m, "training_table"), "sha256")), sha);
    ck_assert_double_eq(number(member(m, "training_table"), "rows"), (double)opi_table_rows(table));
    ck_assert_double_eq(number(member(m, "training_table"), "usable_rows"), (double)opi_table_rows(table));
    ck_assert_str_eq(opi__json_string(member(m, "seed")), "1");
    ck_assert_str_eq(opi__json_string(member(m, "date")), "2026-01-02");
    ck_assert_str_eq(opi__json_string(member(m, "note")), "made up");
    ck_assert_str_eq(opi__json_string(member(m, "library")), opi_version());
    ck_assert_str_eq(opi__json_string(member(m, "learner")), "boost");
    ck_assert_uint_eq(opi__json_size(member(m, "sources")), 1);
    ck_assert_str_eq(opi__json_string(member(source, "source")), "made-up");
    ck_assert_str_eq(opi__json_string(member(source, "license")), "CC0-1.0");
    ck_assert_double_eq(number(source, "rows"), (double)opi_table_rows(table));
    const opi__json *held = member(member(m, "held_out_cells"), "throughput_out_tok_s");
    ck_assert_double_eq(number(held, "rows"), (double)opi_table_rows(table));
    ck_assert_double_eq(number(held, "cells"), 36);
    ck_assert(number(held, "median_ape") > 0 && number(held, "median_ape") < .3);
    ck_assert(number(held, "coverage80") > .6 && number(held, "coverage80") <= 1);
    opi__json_free(root);
}
END_TEST

START_TEST(inspect_says_what_it_knows)
{
    opi__json *root = inspected(fitted);
    const opi__json *targets = member(root, "targets"), *first = opi__json_at(targets, OPI__T_OUT_TOK_S);
    const opi__json *cold = opi__json_at(targets, OPI__T_COLD_START), *axes = member(first, "axes");
    static const char *const axis[] = {"params_b", "active_params_b", "context", "concurrency", "kv_pressure",
                                       "tp",       "weight_bits"};
    static const double low[] = {8.03, 8.03, 256, 1, -1, 1, 16}, high[] = {70.6, 70.6, 3072, 128, -1, 8, 16};
    ck_assert_uint_eq(opi__json_size(targets), OPI__T_COUNT);
    ck_assert_str_eq(opi__json_string(member(first, "answered_by")), "learned");
    ck_assert_uint_eq(opi__json_size(axes), OPI__ENVELOPE);
    for (size_t e = 0; e < OPI__ENVELOPE; e++) {
        ck_assert_str_eq(opi__json_string(member(opi__json_at(axes, e), "name")), axis[e]);
        if (low[e] < 0)
            continue;
        ck_assert_double_eq_tol(number(opi__json_at(axes, e), "min") / low[e], 1, .002);
        ck_assert_double_eq_tol(number(opi__json_at(axes, e), "max") / high[e], 1, .002);
    }
    const opi__json *gpus = member(member(first, "measured"), "gpu");
    ck_assert_uint_eq(opi__json_size(gpus), 3);
    ck_assert_str_eq(opi__json_string(opi__json_at(gpus, 0)), "A100-80GB-SXM");
    ck_assert_str_eq(opi__json_string(member(cold, "answered_by")), "physics, uncalibrated");
    ck_assert_double_eq(number(cold, "rows"), 2);
    ck_assert_ptr_null(opi__json_get(cold, "axes"));
    double most = 0;
    for (const opi__json *g = opi__json_first(member(first, "calibration_groups")); g; g = opi__json_next(g)) {
        ck_assert_ptr_nonnull(opi__json_string(member(g, "name")));
        if (!strcmp(opi__json_string(member(g, "novelty")), "known"))
            most = fmax(most, number(g, "scores"));
    }
    ck_assert_double_eq(most, (double)opi_table_rows(table));
    opi__json_free(root);
}
END_TEST

/* A table of n rows over `cells` cells, one campaign; returns whether output tokens/s were learned. */
static int learns(size_t n, size_t cells)
{
    static char text[16384];
    opi_table *t = NULL;
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "source,model,gpu,n_gpus,tp,input_len,output_len,concurrency,load_kind,"
                                 "launch_ok,throughput_out_tok_s\n");
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(
            text + at, sizeof text - at, "s," WORLD_LLM ",H100-80GB-SXM,%zu,%zu,128,128,%zu,concurrency,1,%zu\n",
            (size_t)1 << i / cells % 4, (size_t)1 << i / cells % 4, 1 + i % cells, 100 + 50 * (i % cells));
    ck_assert_int_eq(opi_table_parse(ctx, text, at, NULL, &t, &err), OPI_OK);
    opi_model *m = fit(t, 1, 2);
    opi__json *root = inspected(m);
    const opi__json *first = opi__json_at(member(root, "targets"), OPI__T_OUT_TOK_S);
    ck_assert_double_eq(number(first, "rows"), (double)n);
    ck_assert_double_eq(number(first, "cells"), (double)cells);
    int learned = !strcmp(opi__json_string(member(first, "answered_by")), "learned");
    opi__json_free(root);
    opi_model_free(m);
    opi_table_free(t);
    return learned;
}

START_TEST(least_rows_and_cells)
{
    ck_assert_int_eq(learns(49, 20), 0);
    ck_assert_int_eq(learns(76, 19), 0);
    ck_assert_int_eq(learns(50, 20), 1);
}
END_TEST

static void fit_refused(const opi_fit_options *o, int32_t code, const char *word)
{
    opi_model *m = UNTOUCHED;
    memset(&err, 0, sizeof err);
    ck_assert_int_eq(opi_model_fit(ctx, table, o, &m, &err), code);
    ck_assert_ptr_eq(m, UNTOUCHED);
    ck_assert_int_eq(err.code, code);
    ck_assert_msg(strstr(err.message, word) != NULL, "\"%s\" lacks \"%s\"", err.message, word);
}

START_TEST(fit_options_refused)
{
    struct {
        opi_fit_options known;
        uint32_t more[4];
    } newer = {.known = {.struct_size = sizeof newer}};
    opi_fit_options o = {.struct_size = 0};
    opi_model *m = UNTOUCHED;
    fit_refused(&o, OPI_E_INVALID, "struct_size");
    o = (opi_fit_options){.struct_size = sizeof o, .threads = -1};
    fit_refused(&o, OPI_E_RANGE, "threads = -1");
    o = (opi_fit_options){.struct_size = sizeof o, .learner = "oracle"};
    fit_refused(&o, OPI_E_UNKNOWN, "\"oracle\"");
    newer.more[2] = 1;
    fit_refused(&newer.known, OPI_E_VERSION, "newer");
    ck_assert_int_eq(opi_model_fit(NULL, table, NULL, &m, NULL), OPI_E_INVALID);
    ck_assert_int_eq(opi_model_fit(ctx, NULL, NULL, &m, NULL), OPI_E_INVALID);
    ck_assert_int_eq(opi_model_fit(ctx, table, NULL, NULL, NULL), OPI_E_INVALID);
    ck_assert_ptr_eq(m, UNTOUCHED);
    opi_model_free(NULL);
}
END_TEST

START_TEST(no_usable_row)
{
    static const char text[] =
        "model,gpu,launch_ok,throughput_out_tok_s\n" WORLD_LLM ",H100-80GB-SXM,0,\n" WORLD_LLM ",no-such-gpu,1,5\n";
    opi_table *t = NULL;
    opi_model *m = UNTOUCHED;
    ck_assert_int_eq(opi_table_parse(ctx, text, sizeof text - 1, NULL, &t, &err), OPI_OK);
    ck_assert_int_eq(opi_model_fit(ctx, t, NULL, &m, &err), OPI_E_NODATA);
    ck_assert_ptr_eq(m, UNTOUCHED);
    ck_assert_msg(strstr(err.message, "2 rows") != NULL, "%s", err.message);
    opi_table_free(t);
}
END_TEST

typedef struct watch {
    uint64_t calls, last, total, stop_at;
    int backwards;
} watch;

static int32_t watching(void *user, const char *stage, uint64_t step, uint64_t total)
{
    watch *w = user;
    w->backwards |= step <= w->last || step > total || !*stage || (w->total && w->total != total);
    w->last = step, w->total = total;
    return ++w->calls == w->stop_at;
}

START_TEST(progress_and_cancel)
{
    watch w = {0};
    opi_model *m = NULL;
    opi_fit_options o = {.struct_size = sizeof o, .threads = 1, .seed = 1, .learner = "boost", .progress = watching,
                         .progress_user = &w};
    ck_assert_int_eq(opi_model_fit(ctx, table, &o, &m, &err), OPI_OK);
    opi_model_free(m);
    ck_assert_int_eq(w.backwards, 0);
    ck_assert_uint_eq(w.last, w.total);
    ck_assert_uint_eq(w.calls, w.total); /* each step is told when one thread works */
    const uint64_t total = w.total, stops[] = {1, total / 2, total - 1};
    for (size_t i = 0; i < 3; i++) {
        w = (watch){.stop_at = stops[i]};
        fit_refused(&o, OPI_E_CANCELED, "canceled");
        ck_assert_uint_eq(w.calls, stops[i]);
    }
}
END_TEST

Suite *suite_model(void)
{
    Suite *s = suite_create("model");
    TCase *t = tcase_create("fit and inspect");
    tcase_set_timeout(t, 300);
    tcase_add_unchecked_fixture(t, once, done);
    tcase_add_test(t, same_bytes_again);
    tcase_add_test(t, seed_changes_the_model);
    tcase_add_test(t, dataset_without_the_order);
    tcase_add_test(t, manifest_says_where_it_comes_from);
    tcase_add_test(t, inspect_says_what_it_knows);
    tcase_add_test(t, least_rows_and_cells);
    tcase_add_test(t, fit_options_refused);
    tcase_add_test(t, no_usable_row);
    tcase_add_test(t, progress_and_cancel);
    suite_add_tcase(s, t);
    return s;
}
