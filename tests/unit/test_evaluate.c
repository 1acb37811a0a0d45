/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluation report on a made-up world: what it says, on which folds, and that shuffled labels score badly. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model_world.h"

Suite *suite_evaluate(void);

#define TARGET "throughput_out_tok_s"
#define ROWS 132
#define CELLS 36

static opi_ctx *ctx;
static opi_error err;
static opi__json *honest; /* the report on `small`, with left-out groups; made once */
static const world small = {.targets = 1, .hardware = 3};

static opi_text *evaluate(const world *w, opi_evaluate_options o)
{
    opi_table *table = world_table(ctx, w);
    opi_text *text = NULL;
    o.struct_size = sizeof o;
    o.learner = "boost"; /* quick; kriging has its own tests */
    ck_assert_ptr_nonnull(table);
    ck_assert_msg(opi_evaluate(ctx, table, &o, &text, &err) == OPI_OK, "%s", err.message);
    opi_table_free(table);
    return text;
}

static opi__json *report(const world *w, opi_evaluate_options o)
{
    opi_text *text = evaluate(w, o);
    opi__json *root = NULL;
    ck_assert_int_eq(opi__json_parse(opi_text_data(text), opi_text_size(text), "report", &root, &err), OPI_OK);
    opi_text_free(text);
    return root;
}

static const opi__json *member(const opi__json *o, const char *key)
{
    const opi__json *v = opi__json_get(o, key);
    ck_assert_msg(v != NULL, "no member \"%s\"", key);
    return v;
}

static double number(const opi__json *o, const char *key)
{
    double v = NAN;
    ck_assert_msg(opi__json_number(member(o, key), &v), "\"%s\" is no number", key);
    return v;
}

static const opi__json *target_of(const opi__json *root)
{
    return member(member(root, "targets"), TARGET);
}

typedef struct watch {
    uint64_t calls, last, stop_at;
    int wrong;
} watch;

static int32_t watching(void *user, const char *stage, uint64_t step, uint64_t total)
{
    watch *w = user;
    w->wrong |= step < w->last || step > total || !*stage;
    w->last = step;
    return ++w->calls == w->stop_at;
}

static watch watched;

static void once(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
    honest = report(
        &small, (opi_evaluate_options){.threads = 1, .leave_out = 1, .progress = watching, .progress_user = &watched});
}

static void done(void)
{
    opi__json_free(honest);
    opi_ctx_destroy(ctx);
}

START_TEST(documented_keys)
{
    static const char *const keys[] = {"median_ape", "mape", "p90_ape", "r2_log", "pinball", "coverage", "width_log"};
    static const char *const groups[] = {"source", "gpu", "family", "engine"};
    static const char *const baselines[] = {"nearest_neighbor", "cheapest", "newest_most_gpus", "random"};
    const opi__json *t = target_of(honest);
    ck_assert_double_eq(number(honest, "version"), 1);
    ck_assert_str_eq(opi__json_string(member(honest, "learner")), "boost");
    ck_assert_str_eq(opi__json_string(member(honest, "cells")), "full");
    ck_assert_double_eq(number(honest, "level"), .8);
    ck_assert_double_eq(number(member(honest, "table"), "usable_rows"), ROWS);
    ck_assert_uint_eq(opi__json_size(member(honest, "targets")), 1);
    ck_assert_double_eq(number(t, "n"), ROWS); /* every row once, by a model that never saw its cell */
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ck_assert_msg(isfinite(number(t, keys[i])) && (number(t, keys[i]) > 0), "%s", keys[i]);
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(opi__json_is_array(member(member(t, "groups"), groups[i])), 1);
    ck_assert_uint_eq(opi__json_size(member(honest, "decisions")), 3);
    for (const opi__json *u = opi__json_first(member(honest, "decisions")); u; u = opi__json_next(u)) {
        ck_assert_double_eq(number(u, "n"), CELLS);
        ck_assert(number(u, "top1") >= 0 && number(u, "top1") <= 1 && number(u, "regret") >= 0);
        ck_assert_uint_eq(opi__json_size(member(u, "baselines")), 4);
        for (size_t i = 0; i < 4; i++) {
            const opi__json *b = member(member(u, "baselines"), baselines[i]);
            ck_assert(number(b, "top1") >= 0 && number(b, "top1") <= 1 && number(b, "regret") >= 0);
        }
    }
}
END_TEST

START_TEST(figures_make_sense)
{
    const opi__json *t = target_of(honest), *source = opi__json_at(member(member(t, "groups"), "source"), 0);
    ck_assert_msg(number(t, "median_ape") < .12, "%g", number(t, "median_ape"));
    ck_assert(number(t, "median_ape") < number(t, "p90_ape") && number(t, "mape") < number(t, "p90_ape"));
    ck_assert_msg(number(t, "r2_log") > .95 && number(t, "r2_log") < 1, "%g", number(t, "r2_log"));
    ck_assert_msg(number(t, "coverage") > .6, "%g", number(t, "coverage"));
    ck_assert_msg(number(t, "in_range_flagged") <= .05, "%g", number(t, "in_range_flagged"));
    ck_assert_double_eq(number(t, "unbounded"), 0);
    ck_assert_str_eq(opi__json_string(member(source, "name")), "made-up"); /* one campaign: the same figures */
    ck_assert_double_eq(number(source, "median_ape"), number(t, "median_ape"));
    ck_assert_double_eq(number(source, "coverage"), number(t, "coverage"));
}
END_TEST

START_TEST(choices_beat_blind_rules)
{
    const opi__json *u = member(member(honest, "decisions"), "tok_s"), *b = member(u, "baselines");
    ck_assert(number(u, "top1") > .7 && number(u, "regret") < .05);
    ck_assert(number(u, "regret") < number(member(b, "cheapest"), "regret") / 3);
    ck_assert(number(u, "regret") < number(member(b, "newest_most_gpus"), "regret") / 3);
    ck_assert_double_eq_tol(number(member(b, "random"), "top1"), 1. / 3, 1e-9); /* three options each, no ties */
}
END_TEST

START_TEST(shuffled_labels_score_worse)
{
    world w = small;
    w.shuffle = 1;
    opi__json *root = report(&w, (opi_evaluate_options){.threads = 2});
    const opi__json *t = target_of(root), *good = target_of(honest);
    ck_assert_double_eq(number(t, "n"), ROWS);
    ck_assert_msg(number(t, "median_ape") > 5 * number(good, "median_ape"), "%g", number(t, "median_ape"));
    ck_assert_msg(number(t, "r2_log") < .2, "%g", number(t, "r2_log"));
    ck_assert(number(t, "pinball") > 5 * number(good, "pinball"));
    ck_assert(number(t, "width_log") > 3 * number(good, "width_log")); /* and it knows: the intervals are wide */
    ck_assert(number(t, "coverage") > .65 && number(t, "coverage") < .95);
    ck_assert(number(member(member(root, "decisions"), "tok_s"), "top1") < .6);
    ck_assert_ptr_null(opi__json_get(root, "left_out"));
    opi__json_free(root);
}
END_TEST

START_TEST(left_out_groups_are_flagged)
{
    const opi__json *left = member(honest, "left_out"), *gpus = member(member(left, "gpu"), "groups");
    double rows = 0;
    ck_assert(number(member(left, "gpu"), "flagged") >= .95);
    ck_assert(number(member(left, "family"), "flagged") >= .95);
    ck_assert_uint_eq(opi__json_size(gpus), 3);
    for (const opi__json *g = opi__json_first(gpus); g; g = opi__json_next(g)) {
        ck_assert(number(g, "flagged") >= .95);
        ck_assert_ptr_nonnull(opi__json_string(member(g, "name")));
        rows += number(g, "rows");
    }
    ck_assert_double_eq(rows, ROWS);
}
END_TEST

/* Cells named so that the rule puts them all into one fold: training on the others is training on nothing, and held
 * out there is nothing else. A report that still scores a row does not follow the rule. */
START_TEST(folds_are_the_rule)
{
    world w = small;
    w.one_fold = 4;
    opi__json *root = report(&w, (opi_evaluate_options){.threads = 2});
    const opi__json *choice = member(member(root, "decisions"), "tok_s");
    ck_assert_double_eq(number(member(root, "table"), "usable_rows"), ROWS);
    ck_assert_uint_eq(opi__json_size(member(root, "targets")), 0);
    ck_assert_double_eq(number(choice, "n"), 0);
    ck_assert_int_eq(opi__json_is_null(member(choice, "top1")), 1);
    opi__json_free(root);
}
END_TEST

/* By mix, the measured mean lengths of a named mix do not make cells: 12 are left, too few to learn from. */
START_TEST(mixes_are_one_cell)
{
    world w = small;
    w.mix = 1;
    opi__json *root = report(&w, (opi_evaluate_options){.threads = 2, .by_mix = 1});
    ck_assert_double_eq(number(member(root, "table"), "usable_rows"), ROWS);
    ck_assert_uint_eq(opi__json_size(member(root, "targets")), 0);
    ck_assert_str_eq(opi__json_string(member(root, "cells")), "by mix");
    opi__json_free(root);
}
END_TEST

START_TEST(level_and_threads)
{
    opi_text *a = evaluate(&small, (opi_evaluate_options){.threads = 1, .level = .5});
    opi_text *b = evaluate(&small, (opi_evaluate_options){.threads = 2, .level = .5});
    opi__json *narrow = NULL;
    ck_assert_uint_eq(opi_text_size(a), opi_text_size(b));
    ck_assert_mem_eq(opi_text_data(a), opi_text_data(b), opi_text_size(a));
    ck_assert_int_eq(opi__json_parse(opi_text_data(a), opi_text_size(a), "report", &narrow, NULL), OPI_OK);
    const opi__json *t = target_of(honest), *n = target_of(narrow);
    ck_assert_double_eq(number(narrow, "level"), .5);
    ck_assert(number(n, "width_log") < number(t, "width_log") && number(n, "coverage") < number(t, "coverage"));
    ck_assert_double_eq(number(n, "median_ape"), number(t, "median_ape"));
    ck_assert_double_eq(number(n, "pinball"), number(t, "pinball")); /* of the model's own quantiles */
    opi__json_free(narrow);
    opi_text_free(a), opi_text_free(b);
}
END_TEST

START_TEST(progress_goes_forward)
{
    ck_assert_int_eq(watched.wrong, 0);
    ck_assert(watched.calls > 20);
}
END_TEST

START_TEST(refused)
{
    opi_table *table = world_table(ctx, &small);
    opi_text *const untouched = (opi_text *)&ctx, *text = untouched;
    watch w = {.stop_at = 3};
    static const struct {
        opi_evaluate_options o;
        int32_t code;
        const char *word;
    } bad[] = {{{.struct_size = 0}, OPI_E_INVALID, "struct_size"},
               {{.struct_size = sizeof bad->o, .level = .3}, OPI_E_RANGE, "level = 0.3"},
               {{.struct_size = sizeof bad->o, .level = NAN}, OPI_E_RANGE, "level = nan"},
               {{.struct_size = sizeof bad->o, .threads = -2}, OPI_E_RANGE, "threads = -2"},
               {{.struct_size = sizeof bad->o, .learner = "oracle"}, OPI_E_UNKNOWN, "oracle"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(opi_evaluate(ctx, table, &bad[i].o, &text, &err), bad[i].code);
        ck_assert_msg(strstr(err.message, bad[i].word) != NULL, "%s", err.message);
    }
    ck_assert_int_eq(opi_evaluate(NULL, table, NULL, &text, NULL), OPI_E_INVALID);
    ck_assert_int_eq(opi_evaluate(ctx, NULL, NULL, &text, NULL), OPI_E_INVALID);
    ck_assert_int_eq(opi_evaluate(ctx, table, NULL, NULL, NULL), OPI_E_INVALID);
    opi_evaluate_options o = {.struct_size = sizeof o, .threads = 1, .progress = watching, .progress_user = &w};
    ck_assert_int_eq(opi_evaluate(ctx, table, &o, &text, &err), OPI_E_CANCELED);
    ck_assert_uint_eq(w.calls, 3);
    ck_assert_ptr_eq(text, untouched);
    opi_table_free(table);
}
END_TEST

Suite *suite_evaluate(void)
{
    Suite *s = suite_create("evaluate");
    TCase *t = tcase_create("evaluate");
    tcase_set_timeout(t, 300);
    tcase_add_unchecked_fixture(t, once, done);
    tcase_add_test(t, documented_keys);
    tcase_add_test(t, figures_make_sense);
    tcase_add_test(t, choices_beat_blind_rules);
    tcase_add_test(t, shuffled_labels_score_worse);
    tcase_add_test(t, left_out_groups_are_flagged);
    tcase_add_test(t, folds_are_the_rule);
    tcase_add_test(t, mixes_are_one_cell);
    tcase_add_test(t, level_and_threads);
    tcase_add_test(t, progress_goes_forward);
    tcase_add_test(t, refused);
    suite_add_tcase(s, t);
    return s;
}
