/* SPDX-License-Identifier: Apache-2.0 */
/* Scores against hand values: errors, coverage, widths, groups and choices. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/score.h"
#include "model_world.h"

Suite *suite_score(void);

static opi_ctx *ctx;
static opi_table *table;
static opi__dataset data;
static opi__held held[100];
static opi__json *into;
static opi_error err;
static char text[32768];
static size_t length;

static void setup(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
    memset(&data, 0, sizeof data);
    memset(held, 0, sizeof held);
    table = NULL;
    length = (size_t)snprintf(text, sizeof text,
                              "source,model,engine,gpu,n_gpus,tp,input_len,output_len,concurrency,load_kind,"
                              "launch_ok,throughput_out_tok_s\n");
    into = opi__json_new_object();
}

static void teardown(void)
{
    opi__json_free(into);
    opi__dataset_free(&data);
    opi_table_free(table);
    opi_ctx_destroy(ctx);
}

static void row(const char *source, const char *gpu, int n_gpus, int concurrency, double value)
{
    length += (size_t)snprintf(text + length, sizeof text - length,
                               "%s," WORLD_LLM ",vllm,%s,%d,%d,100,100,%d,concurrency,1,%.6g\n", source, gpu, n_gpus,
                               n_gpus, concurrency, value);
}

static void build(void)
{
    ck_assert_msg(opi_table_parse(ctx, text, length, NULL, &table, &err) == OPI_OK, "%s", err.message);
    ck_assert_msg(opi__dataset_build(ctx, table, 0, &data, &err) == OPI_OK, "%s", err.message);
    for (size_t i = 0; i < data.n; i++) {
        double y = log(table->rows[data.row[i]].value[OPI__T_OUT_TOK_S]);
        held[i] = (opi__held){.y = y,
                              .median = y,
                              .q10 = y - 1,
                              .q90 = y + 1,
                              .lo = y - .5,
                              .hi = y + .5,
                              .nearest = NAN,
                              .present = 1,
                              .in_range = 1};
    }
}

static double number(const opi__json *o, const char *key)
{
    double v = NAN;
    ck_assert_msg(opi__json_number(opi__json_get(o, key), &v), "\"%s\" is no number", key);
    return v;
}

static void is(const opi__json *o, const char *key, double want)
{
    ck_assert_msg(fabs(number(o, key) - want) <= 1e-12 * (1 + fabs(want)), "%s = %.17g, not %.17g", key, number(o, key),
                  want);
}

START_TEST(errors_by_hand)
{
    static const double factor[] = {1.1, .8, 1, 1.5}; /* predicted over measured */
    double e[4], sum = 0, square = 0, error = 0, pinball = 0;
    for (int i = 0; i < 5; i++)
        row("a", "H100-80GB-SXM", 1, 1 + i, 100 * (i + 1));
    build();
    for (int i = 0; i < 4; i++) {
        e[i] = log(factor[i]);
        held[i].median = held[i].y + e[i];
        sum += held[i].y, square += held[i].y * held[i].y, error += e[i] * e[i];
        pinball += (.1 + .5 * fabs(e[i]) + .1) / 3; /* one below q90's distance, one above q10's, half the error */
    }
    held[4].present = 0; /* not scored at all */
    held[0].hi = held[0].y - .1;                      /* measured above the interval */
    held[1].lo = held[1].y, held[3].hi = held[3].y;   /* on an end: inside */
    held[2].lo = -INFINITY;                           /* unbounded: covers, has no width */
    held[0].status = OPI_P_OOD, held[0].in_range = 0; /* flagged, rightly */
    held[1].status = OPI_P_OOD;                       /* flagged, though every category was known */
    held[2].status = OPI_P_NEW_COMBINATION;
    ck_assert_int_eq(opi__score_target(&data, held, into), OPI_OK);
    is(into, "n", 4);
    is(into, "median_ape", .15); /* of 0, .1, .2, .5 */
    is(into, "mape", .2);
    is(into, "p90_ape", .2 + .7 * .3);
    is(into, "coverage", .75);
    is(into, "r2_log", 1 - error / (square - sum * sum / 4));
    is(into, "pinball", pinball / 4);
    is(into, "width_log", (.4 + .5 + .5) / 3);
    is(into, "width_log_median", .5);
    is(into, "unbounded", 1);
    is(into, "outside", .5);
    is(into, "new_combination", .25);
    is(into, "in_range_flagged", 1. / 3);
}
END_TEST

START_TEST(nothing_to_score)
{
    row("a", "H100-80GB-SXM", 1, 1, 100);
    build();
    held[0].present = 0;
    ck_assert_int_eq(opi__score_target(&data, held, into), OPI_OK);
    is(into, "n", 0);
    ck_assert_ptr_null(opi__json_get(into, "median_ape")); /* no figure that was not computed */
}
END_TEST

/* Groups are listed from 50 rows on, each with its own figures. */
START_TEST(groups)
{
    for (int i = 0; i < 50; i++)
        row("large", "H100-80GB-SXM", 1, 1 + i, 100);
    for (int i = 0; i < 49; i++)
        row("small", "L40S-48GB", 1, 1 + i, 100);
    build();
    for (size_t i = 0; i < 50; i++)
        held[i].median = held[i].y + log(2);
    ck_assert_int_eq(opi__score_target(&data, held, into), OPI_OK);
    is(into, "n", 99);
    const opi__json *all = opi__json_get(into, "groups"), *sources = opi__json_get(all, "source"),
                    *one = opi__json_at(sources, 0);
    ck_assert_uint_eq(opi__json_size(sources), 1);
    ck_assert_str_eq(opi__json_string(opi__json_get(one, "name")), "large");
    is(one, "n", 50);
    is(one, "median_ape", 1);
    is(one, "coverage", 1);
    ck_assert_str_eq(opi__json_string(opi__json_get(opi__json_at(opi__json_get(all, "gpu"), 0), "name")),
                     "H100-80GB-SXM");
    ck_assert_uint_eq(opi__json_size(opi__json_get(all, "gpu")), 1);
    is(opi__json_at(opi__json_get(all, "engine"), 0), "n", 99);
}
END_TEST

/* ---- choices ---- */

static double price(const char *name)
{
    opi_gpu g = {.struct_size = sizeof g};
    ck_assert_int_eq(opi_gpu_find(name, &g, NULL), OPI_OK);
    return g.price_rental_usd_h > 0 ? g.price_rental_usd_h : g.price_ondemand_usd_h > 0 ? g.price_ondemand_usd_h : 2;
}

static const opi__json *baseline(const opi__json *u, const char *name)
{
    return opi__json_get(opi__json_get(u, "baselines"), name);
}

/* Three options: H100 measured twice (100 and 200: it counts as 150), A100 160, L40S 40. The model takes the H100. */
START_TEST(one_choice_by_hand)
{
    row("a", "H100-80GB-SXM", 1, 8, 100), row("a", "H100-80GB-SXM", 1, 8, 200);
    row("a", "A100-80GB-SXM", 1, 8, 160), row("a", "L40S-48GB", 1, 8, 40);
    row("a", "H100-80GB-SXM", 1, 9, 999), row("a", "L40S-48GB", 1, 9, 1); /* two options are no choice */
    build();
    held[0].median = log(300), held[1].median = log(310);
    for (int i = 0; i < 4; i++)
        held[i].nearest = log(i == 2 ? 50 : 10);
    ck_assert_int_eq(opi__score_decisions(&data, held, into), OPI_OK);
    const opi__json *u = opi__json_get(into, "tok_s");
    is(u, "n", 1);
    is(u, "top1", 0);
    is(u, "regret", 10. / 160);
    is(baseline(u, "nearest_neighbor"), "top1", 1);
    is(baseline(u, "nearest_neighbor"), "regret", 0);
    is(baseline(u, "random"), "top1", 1. / 3);
    is(baseline(u, "random"), "regret", (10. + 0 + 120) / 160 / 3);
    const opi__json *dollars = opi__json_get(into, "tok_s_per_usd"),
                    *profit = opi__json_get(into, "2_usd_per_mtok_less_cost");
    const double cost[] = {price("H100-80GB-SXM"), price("A100-80GB-SXM"), price("L40S-48GB")},
                 speed[] = {150, 160, 40};
    const double taken[] = {305, 160, 40}; /* as predicted */
    double best[2] = {-INFINITY, -INFINITY}, pick[2] = {-INFINITY, -INFINITY}, got[2] = {0, 0};
    for (int i = 0; i < 3; i++) {
        const double actual[] = {speed[i] / cost[i], 2 * speed[i] * .0036 - cost[i]};
        const double predicted[] = {taken[i] / cost[i], 2 * taken[i] * .0036 - cost[i]};
        for (int k = 0; k < 2; k++) {
            best[k] = fmax(best[k], actual[k]);
            if (predicted[k] > pick[k])
                pick[k] = predicted[k], got[k] = actual[k];
        }
    }
    is(dollars, "top1", got[0] == best[0]);
    is(dollars, "regret", (best[0] - got[0]) / best[0]);
    is(profit, "top1", got[1] == best[1]);
    is(profit, "regret", (best[1] - got[1]) / fabs(best[1]));
}
END_TEST

/* Equal predictions share the choice; the newest rule prefers more GPUs of one year. */
START_TEST(ties_are_shared)
{
    row("a", "H100-80GB-SXM", 1, 8, 100), row("a", "H100-80GB-SXM", 2, 8, 150), row("a", "H100-80GB-SXM", 4, 8, 200);
    build();
    held[0].median = log(10), held[1].median = held[2].median = log(20);
    ck_assert_int_eq(opi__score_decisions(&data, held, into), OPI_OK);
    const opi__json *u = opi__json_get(into, "tok_s");
    is(u, "top1", .5);
    is(u, "regret", .5 * 50 / 200);
    is(baseline(u, "newest_most_gpus"), "top1", 1);
    is(baseline(u, "cheapest"), "top1", 0);
    is(baseline(u, "cheapest"), "regret", .5);
}
END_TEST

Suite *suite_score(void)
{
    Suite *s = suite_create("score");
    TCase *t = tcase_create("score");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, errors_by_hand);
    tcase_add_test(t, nothing_to_score);
    tcase_add_test(t, groups);
    tcase_add_test(t, one_choice_by_hand);
    tcase_add_test(t, ties_are_shared);
    suite_add_tcase(s, t);
    return s;
}
