/* SPDX-License-Identifier: Apache-2.0 */
/* The dense form of a table, and what a model knows about where it was measured: verdicts and nearest cells. No
 * learner is fitted here. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tiny_model.h"

Suite *suite_support(void);

#define HEADER                                                                                                         \
    "source,license,engine,engine_version,model,precision,gpu,n_gpus,tp,input_len,output_len,concurrency,load_kind,"   \
    "request_rate,workload,launch_ok,throughput_out_tok_s,ttft_ms_p50\n"
#define QWEN "Qwen/Qwen2.5-14B-Instruct"

static opi_ctx *ctx;
static opi_table *table;
static opi__dataset data;
static opi_model *model;
static opi_error err;
static char text[WORLD_BYTES];
static size_t length;

static void setup(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
    table = NULL;
    model = NULL;
    memset(&data, 0, sizeof data);
    length = (size_t)snprintf(text, sizeof text, HEADER);
}

static void teardown(void)
{
    opi_model_free(model);
    opi__dataset_free(&data);
    opi_table_free(table);
    opi_ctx_destroy(ctx);
}

static void row(const char *line)
{
    length += (size_t)snprintf(text + length, sizeof text - length, "%s\n", line);
}

static void build(int by_mix)
{
    opi_table_free(table);
    table = NULL;
    ck_assert_msg(opi_table_parse(ctx, text, length, NULL, &table, &err) == OPI_OK, "%s", err.message);
    ck_assert_msg(opi__dataset_build(ctx, table, by_mix, &data, &err) == OPI_OK, "%s", err.message);
}

static opi_model *know(const uint32_t *rows, size_t n)
{
    const opi__fit_settings s = {.seed = 1, .threads = 1, .support_only = 1};
    opi_model *m = NULL;
    ck_assert_msg(opi__fit_rows(ctx, &data, rows, n, &s, &m, NULL, &err) == OPI_OK, "%s", err.message);
    return m;
}

static uint32_t every[WORLD_MOST_ROWS];

static void know_all(void)
{
    for (uint32_t i = 0; i < data.n; i++)
        every[i] = i;
    model = know(every, data.n);
}

static uint64_t fnv(const char *s)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
    return h;
}

/* ---- dataset ---- */

/* The fold rule's cell: raw texts between bars, blanks stay empty; by mix, lengths of a named mix are left out. */
START_TEST(cells)
{
    row("a,CC0-1.0,vllm,1,"   QWEN ",bf16,H100-80GB-SXM,1,1,100,200,8,concurrency,,fixed-100x200,1,5,");
    row("a,CC0-1.0,vllm,1,"   QWEN ",bf16,H100-80GB-SXM,1,1,101.5,200.25,8,concurrency,,sharegpt,1,5,");
    row("b,CC0-1.0,sglang,2," QWEN ",fp8,L40S-48GB,2,2,101.5,200.25,,rate,2.50,sharegpt,1,6,");
    build(0);
    ck_assert_uint_eq(data.n, 3);
    ck_assert_uint_eq(data.cell[0], fnv("a|" QWEN "|fixed-100x200|100|200|8|concurrency|"));
    ck_assert_uint_eq(data.cell[1], fnv("a|" QWEN "|sharegpt|101.5|200.25|8|concurrency|"));
    ck_assert_uint_eq(data.cell[2], fnv("b|" QWEN "|sharegpt|101.5|200.25||rate|2.50"));
    opi__dataset_free(&data);
    build(1);
    ck_assert_uint_eq(data.cell[0], fnv("a|" QWEN "|fixed-100x200|100|200|8|concurrency|"));
    ck_assert_uint_eq(data.cell[1], fnv("a|" QWEN "|sharegpt|||8|concurrency|"));
    ck_assert_uint_eq(data.cell[2], fnv("b|" QWEN "|sharegpt||||rate|2.50"));
    ck_assert_uint_eq(data.sources.n, 2);
    ck_assert(data.source[0] == data.source[1] && data.source[2] != data.source[0]);
}
END_TEST

/* log(value) = base + y, the base from the roofline; what was not measured, or not launched, is no label. */
START_TEST(labels)
{
    opi_roofline r = {.struct_size = sizeof r};
    opi_config c = {.struct_size = sizeof c};
    row("a,CC0-1.0,vllm,1," QWEN ",bf16,H100-80GB-SXM,1,1,100,200,8,concurrency,,fixed,1,512,");
    row("a,CC0-1.0,vllm,1," QWEN ",bf16,H100-80GB-SXM,1,1,100,200,8,concurrency,,fixed,0,512,30");
    row("a,CC0-1.0,vllm,1," QWEN ",bf16,no-such-gpu,1,1,100,200,8,concurrency,,fixed,1,512,30");
    row("a,CC0-1.0,vllm,1," QWEN ",bf16,H100-80GB-SXM,1,1,100,200,9,concurrency,,fixed,,,45");
    build(0);
    ck_assert_uint_eq(data.n, 2); /* rows 0 and 3: a failed launch teaches nothing about speed */
    ck_assert_uint_eq(data.row[1], 3);
    ck_assert_int_eq(opi_table_config(table, 0, &c, NULL, NULL), OPI_OK);
    ck_assert_int_eq(opi_roofline_of(&c, &r, NULL), OPI_OK);
    ck_assert_double_eq_tol(data.base[OPI__T_OUT_TOK_S][0], log(r.out_tok_s), 1e-12);
    ck_assert_double_eq_tol(data.base[OPI__T_OUT_TOK_S][0] + data.y[OPI__T_OUT_TOK_S][0], log(512), 1e-12);
    ck_assert(isnan(data.y[OPI__T_TTFT_P50][0]) && isnan(data.y[OPI__T_OUT_TOK_S][1]));
    ck_assert_double_eq_tol(data.base[OPI__T_TTFT_P50][1] + data.y[OPI__T_TTFT_P50][1], log(45), 1e-12);
}
END_TEST

START_TEST(names)
{
    row("a,CC0-1.0,vllm,1,"   QWEN ",bf16,H100-80GB-SXM,1,1,100,200,8,concurrency,,f,1,5,");
    row("a,CC0-1.0,sglang,1," QWEN ",,A100-80GB-SXM,1,1,100,200,8,concurrency,,f,1,5,");
    row("a,CC0-1.0,vllm,1,"   QWEN ",fp8,L40S-48GB,1,1,100,200,8,concurrency,,f,1,5,");
    build(0);
    const opi__names *gpus = &data.names[OPI__C_GPU], *precisions = &data.names[OPI__C_PRECISION];
    ck_assert_uint_eq(gpus->n, 3);
    for (uint32_t i = 0; i < gpus->n; i++)
        ck_assert_int_eq(opi__names_find(gpus, gpus->name[i]), (int32_t)i);
    ck_assert_int_eq(opi__names_find(gpus, "A100-80GB-SXM"), 0);
    ck_assert_int_eq(opi__names_find(gpus, "A100"), -1);
    ck_assert_int_eq(opi__names_find(gpus, ""), -1);
    ck_assert_int_eq(opi__names_find(gpus, "Z"), -1);
    ck_assert_int_eq(opi__names_find(precisions, ""), 0); /* a blank is a category */
    ck_assert_int_eq(data.code[1 * OPI__CATEGORIES + OPI__C_PRECISION], 0);
    ck_assert_float_eq(data.x[2 * OPI__FEATURES + OPI__NUMBERS + OPI__C_GPU], 2);
}
END_TEST

/* ---- verdicts ---- */

static opi__verdict judge(const opi_model *m, int32_t target, size_t i)
{
    double at[OPI__ENVELOPE];
    opi__verdict v;
    for (int e = 0; e < OPI__ENVELOPE; e++)
        at[e] = data.envelope[e][i];
    opi__judge(m, target, at, &data.code[i * OPI__CATEGORIES], &v);
    return v;
}

static const world whole = {.targets = 2};

/* Nothing that was measured is outside or new. */
START_TEST(measured_rows_are_inside)
{
    length = world_text(&whole, text);
    build(0);
    know_all();
    for (size_t i = 0; i < data.n; i++)
        for (int32_t t = 0; t < OPI__T_COUNT; t++)
            if (model->target[t].learned) {
                opi__verdict v = judge(model, t, i);
                ck_assert_int_eq(v.status, OPI_P_OK);
                ck_assert_double_eq(v.distance, 0);
                ck_assert_int_eq(v.axis, -1);
            }
}
END_TEST

/* A GPU type or a family left out is outside, every row of it, and named. */
START_TEST(left_out_categories_are_outside)
{
    static const int axes[] = {OPI__C_GPU, OPI__C_FAMILY};
    size_t asked = 0;
    length = world_text(&whole, text);
    build(0);
    for (int a = 0; a < 2; a++)
        for (int32_t group = 0; group < (int32_t)data.names[axes[a]].n; group++) {
            size_t n = 0;
            for (uint32_t i = 0; i < data.n; i++)
                if (data.code[i * OPI__CATEGORIES + (size_t)axes[a]] != group)
                    every[n++] = i;
            opi_model *m = know(every, n);
            for (size_t i = 0; i < data.n; i++) {
                if (!m->target[OPI__T_OUT_TOK_S].learned || data.code[i * OPI__CATEGORIES + (size_t)axes[a]] != group)
                    continue;
                opi__verdict v = judge(m, OPI__T_OUT_TOK_S, i);
                ck_assert_int_eq(v.status, OPI_P_OOD);
                ck_assert_int_eq(v.axis, opi__category_axis(axes[a]));
                ck_assert_double_eq(v.distance, OPI__FAR);
                asked++;
            }
            opi_model_free(m);
        }
    ck_assert(asked >
              data.n * 5 /
                  4); /* every row by its GPU, and the smaller family (without the larger, too little is left) */
}
END_TEST

/* Whole cells held out, every category still known: at most a few rows in a hundred may be called outside. */
START_TEST(held_out_cells_are_mostly_inside)
{
    size_t flagged = 0, asked = 0;
    opi__rng rng;
    opi__rng_seed(&rng, 20);
    for (int i = 0; i < 500; i++) { /* lengths and loads all over the place, most in the middle */
        char line[256];
        int in = (int)(200 * exp(opi__rng_normal(&rng))) + 8, c = (int)(8 * exp(opi__rng_normal(&rng))) + 1;
        snprintf(line, sizeof line, "a,CC0-1.0,vllm,1,%s,bf16,H100-80GB-SXM,%d,%d,%d,128,%d,concurrency,,f,1,100,",
                 i % 2 ? QWEN : WORLD_LLM, 1 << i / 2 % 3, 1 << i / 2 % 3, in, c);
        row(line);
    }
    build(0);
    for (uint64_t fold = 0; fold < 5; fold++) {
        size_t n = 0;
        for (uint32_t i = 0; i < data.n; i++)
            if (data.cell[i] % 5 != fold)
                every[n++] = i;
        opi_model *m = know(every, n);
        for (size_t i = 0; i < data.n; i++)
            if (data.cell[i] % 5 == fold) {
                flagged += judge(m, OPI__T_OUT_TOK_S, i).status == OPI_P_OOD;
                asked++;
            }
        opi_model_free(m);
    }
    ck_assert_uint_eq(asked, data.n);
    ck_assert_msg(flagged * 100 <= asked * 5, "%zu of %zu flagged", flagged, asked);
    ck_assert_msg(flagged > 0, "nothing is ever flagged"); /* the slack is no wider than it must be */
}
END_TEST

/* One row in ten lies far away, all in one cell: held out, they would all be flagged, so the slack grows, but not
 * past six times its start: half as much again is outside on the paper's size and load axes. Steps of whole numbers
 * keep theirs. */
START_TEST(slack_has_an_end)
{
    static const int axes[] = {OPI__E_PARAMS, OPI__E_ACTIVE, OPI__E_CONTEXT, OPI__E_CONCURRENCY};
    for (int i = 0; i < 110; i++) {
        char line[256];
        int far = i % 11 == 0, gpus = far ? 1 << i / 11 % 4 : 1 << i % 4;
        snprintf(line, sizeof line,
                 "a,CC0-1.0,vllm,1," WORLD_LLM ",bf16,H100-80GB-SXM,%d,%d,%d,16,%d,concurrency,,f,1,100,", gpus, gpus,
                 far ? 100000 : 100 + i, far ? 1 : 1 + i % 3);
        row(line);
    }
    build(0);
    know_all();
    const opi__range *r = model->target[OPI__T_OUT_TOK_S].range;
    for (size_t a = 0; a < 4; a++) {
        ck_assert_double_eq_tol(r[axes[a]].slack, .3, 1e-12);
        ck_assert(opi__range_distance(&r[axes[a]], r[axes[a]].hi + log(1.5), OPI__FAR) > 1);
    }
    ck_assert(opi__range_distance(&r[OPI__E_TP], 9, OPI__FAR) > 1 &&
              opi__range_distance(&r[OPI__E_BITS], 15, OPI__FAR) > 1);
    ck_assert_double_eq(r[OPI__E_TP].slack, .1);
}
END_TEST

/* A family that was measured, though not for this target: a new combination when others of its attention kind were,
 * else outside. Each target has its own envelope. */
START_TEST(family_measured_for_another_target)
{
    static const struct {
        const char *llm;
        int32_t status;
    } known[] = {{QWEN, OPI_P_NEW_COMBINATION}, {"google/gemma-2-27b-it", OPI_P_OOD}};
    for (int k = 0; k < 2; k++) {
        length = (size_t)snprintf(text, sizeof text, HEADER);
        for (int i = 0; i < 60; i++) {
            char line[256];
            for (int with = 0; with < 3; with++) { /* throughput of Llama 8B and 70B, TTFT of all three */
                const char *llm = with == 0   ? WORLD_LLM
                                  : with == 1 ? "meta-llama/Llama-3.1-70B-Instruct"
                                              : known[k].llm;
                snprintf(line, sizeof line,
                         "a,CC0-1.0,vllm,1,%s,bf16,H100-80GB-SXM,8,8,%d,128,8,concurrency,,f,1,%s,20", llm, 100 + i,
                         with < 2 ? "100" : "");
                row(line);
            }
        }
        build(0);
        know_all();
        ck_assert_uint_eq(model->target[OPI__T_OUT_TOK_S].rows, 120);
        opi__verdict v = judge(model, OPI__T_OUT_TOK_S, 2);
        ck_assert_int_eq(v.status, known[k].status);
        ck_assert_int_eq(v.axis, opi__category_axis(OPI__C_FAMILY));
        ck_assert_int_eq(v.axis2, -1);
        ck_assert_int_eq(judge(model, OPI__T_TTFT_P50, 2).status, OPI_P_OK);
        opi_model_free(model);
        opi__dataset_free(&data);
        model = NULL;
    }
}
END_TEST

/* ---- nearest cells ---- */

START_TEST(nearest_cell_in_words)
{
    const world small = {.targets = 2, .hardware = 3};
    opi_support s = {.struct_size = sizeof s}, far = {.struct_size = sizeof far};
    opi_gpu gpu;
    opi_llm llm;
    opi_config c = world_config(&gpu, &llm);
    length = world_text(&small, text);
    build(0);
    know_all();
    ck_assert_int_eq(opi_predict_support(model, &c, OPI__T_OUT_TOK_S, &s, &err), OPI_OK);
    ck_assert_double_eq_tol(s.nearest_distance, 0, 1e-3); /* it was measured; anchors are floats */
    ck_assert_str_eq(s.nearest, WORLD_LLM " on H100-80GB-SXM, vllm, 16-bit");
    ck_assert(s.cells >= 1);
    c.concurrency = 20;
    ck_assert_int_eq(opi_predict_support(model, &c, OPI__T_OUT_TOK_S, &far, &err), OPI_OK);
    ck_assert(far.nearest_distance > .1);
    double near = far.nearest_distance;
    c.concurrency = 5000;
    ck_assert_int_eq(opi_predict_support(model, &c, OPI__T_OUT_TOK_S, &far, &err), OPI_OK);
    ck_assert(far.nearest_distance > 2 * near && far.cells < s.cells);
    c.concurrency = 8, c.engine = "tensorrt-llm", c.load_kind = "offline"; /* two categories differ */
    ck_assert_int_eq(opi_predict_support(model, &c, OPI__T_OUT_TOK_S, &far, &err), OPI_OK);
    ck_assert_double_eq_tol(far.nearest_distance * model->spacing, sqrt(2), 1e-3);
    ck_assert_int_eq(opi_predict_support(model, &c, OPI__T_COLD_START, &far, &err), OPI_OK); /* learned from nothing */
    ck_assert(isinf(far.nearest_distance) && far.cells == 0 && far.nearest[0] == 0);
}
END_TEST

/* Distances are those of whitened coordinates: symmetric, zero only at home, and never shorter through a third cell. */
START_TEST(distances_are_a_metric)
{
    const world small = {.targets = 1, .hardware = 3};
    length = world_text(&small, text);
    build(0);
    know_all();
    size_t n = model->n_anchors < 12 ? model->n_anchors : 12;
    double d[12][12];
    for (size_t i = 0; i < n; i++) {
        const opi__anchor *a = &model->anchor[i * (model->n_anchors / n)];
        double at[OPI__ENVELOPE];
        int32_t code[OPI__CATEGORIES] = {0};
        for (int e = 0; e < OPI__ENVELOPE; e++)
            at[e] = (double)a->at[e];
        for (int k = 0; k < OPI__SEEN_KINDS; k++)
            code[opi__seen_axes[k]] = a->code[k];
        for (size_t j = 0; j < n; j++)
            d[i][j] = opi__anchor_distance(model, at, code, &model->anchor[j * (model->n_anchors / n)]);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            ck_assert(i == j ? d[i][j] == 0 : d[i][j] > 0);
            ck_assert_double_eq_tol(d[i][j], d[j][i], 1e-9);
            for (size_t k = 0; k < n; k++)
                ck_assert(d[i][k] <= d[i][j] + d[j][k] + 1e-9);
        }
}
END_TEST

Suite *suite_support(void)
{
    Suite *s = suite_create("support");
    TCase *t = tcase_create("support");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, cells);
    tcase_add_test(t, labels);
    tcase_add_test(t, names);
    tcase_add_test(t, measured_rows_are_inside);
    tcase_add_test(t, left_out_categories_are_outside);
    tcase_add_test(t, held_out_cells_are_mostly_inside);
    tcase_add_test(t, slack_has_an_end);
    tcase_add_test(t, family_measured_for_another_target);
    tcase_add_test(t, nearest_cell_in_words);
    tcase_add_test(t, distances_are_a_metric);
    suite_add_tcase(s, t);
    return s;
}
