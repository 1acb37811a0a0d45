/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions of a fitted model: numbers, intervals and verdicts. What is refused is in test_predict_refuse.c. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/model.h"
#include "model_world.h"

Suite *suite_predict(void);

static const world made = {.targets = 3, .hardware = 4};

static opi_ctx *ctx;
static opi_table *table;
static opi_model *model;
static opi_gpu gpu, other_gpu;
static opi_llm llm, other_llm;
static opi_config config;
static opi_error err;
static size_t allocations;

static void *counted(void *user, size_t size)
{
    (void)user;
    allocations++;
    return malloc(size);
}
static void *counted_again(void *user, void *memory, size_t size)
{
    (void)user;
    allocations++;
    return realloc(memory, size);
}
static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static void once(void)
{
    const opi_ctx_options counting = {.struct_size = sizeof counting,
                                      .allocator = {NULL, counted, counted_again, release}};
    const opi_fit_options o = {.struct_size = sizeof o, .seed = 1, .learner = "boost"};
    ck_assert_int_eq(opi_ctx_create(&counting, &ctx, NULL), OPI_OK);
    table = world_table(ctx, &made);
    ck_assert_ptr_nonnull(table);
    ck_assert_msg(opi_model_fit(ctx, table, &o, &model, &err) == OPI_OK, "%s", err.message);
}

static void done(void)
{
    opi_model_free(model);
    opi_table_free(table);
    opi_ctx_destroy(ctx);
}

static void setup(void)
{
    config = world_config(&gpu, &llm);
    ck_assert_uint_eq(config.struct_size, sizeof config);
    memset(&err, 0, sizeof err);
}

static opi_prediction predict(const opi_config *c, size_t target, double level)
{
    const opi_predict_options o = {.struct_size = sizeof o, .level = level, .targets = &target, .n_targets = 1};
    opi_prediction p;
    memset(&p, 0, sizeof p);
    ck_assert_msg(opi_predict(model, c, 1, &o, &p, sizeof p, &err) == OPI_OK, "%s", err.message);
    ck_assert_int_eq(p.target, (int32_t)target);
    return p;
}

static const char *axis_name(int32_t axis)
{
    opi_axis_info info = {.struct_size = sizeof info};
    return axis >= 0 && opi_axis_at((size_t)axis, &info, NULL) == OPI_OK ? info.name : "";
}

static const char *reason(const opi_config *c, const opi_prediction *p)
{
    static char text[300];
    ck_assert_uint_eq(opi_predict_reason(model, c, p, text, sizeof text), strlen(text));
    return text;
}

static void use_gpu(const char *name)
{
    other_gpu = (opi_gpu){.struct_size = sizeof other_gpu};
    ck_assert_msg(opi_gpu_find(name, &other_gpu, &err) == OPI_OK, "%s", err.message);
    config.gpu = &other_gpu;
}

static void use_llm(const char *name)
{
    other_llm = (opi_llm){.struct_size = sizeof other_llm};
    ck_assert_msg(opi_llm_find(name, &other_llm, &err) == OPI_OK, "%s", err.message);
    config.llm = &other_llm;
}

/* Copies of the LLM and GPU in use, to change one fact of. */
static void own_llm(void)
{
    other_llm = *config.llm;
    config.llm = &other_llm;
}

#define MOST 400
static opi_config rows[MOST];

/* The rows of the table as questions. */
static size_t questions(void)
{
    size_t n = opi_table_rows(table);
    ck_assert(n > 100 && n <= MOST);
    for (size_t i = 0; i < n; i++) {
        rows[i] = (opi_config){.struct_size = sizeof rows[i]};
        ck_assert_int_eq(opi_table_config(table, i, &rows[i], NULL, NULL), OPI_OK);
    }
    return n;
}

/* ---- numbers ---- */

START_TEST(learned_what_was_measured)
{
    size_t n = questions(), close = 0, inside = 0;
    for (size_t i = 0; i < n; i++) {
        opi_prediction p = predict(&rows[i], OPI__T_OUT_TOK_S, 0);
        double y = opi_table_value(table, i, OPI__T_OUT_TOK_S);
        ck_assert_int_eq(p.status, OPI_P_OK);
        ck_assert_double_eq(p.ood_distance, 0);
        ck_assert_int_eq(p.ood_axis, -1);
        close += p.p50 > y / 1.15 && p.p50 < y * 1.15;
        inside += p.lo <= y && y <= p.hi;
    }
    ck_assert_msg(close > n * 9 / 10, "%zu of %zu within 15 %%", close, n);
    ck_assert_msg(inside > n * 7 / 10, "%zu of %zu inside the 80 %% interval", inside, n);
}
END_TEST

START_TEST(batch_is_single)
{
    static opi_prediction all[MOST * OPI__T_COUNT];
    const size_t some[] = {OPI__T_TTFT_P50, OPI__T_COLD_START, OPI__T_OUT_TOK_S};
    const opi_predict_options o = {.struct_size = sizeof o, .level = .9, .targets = some, .n_targets = 3};
    size_t n = questions();
    memset(all, 0, sizeof all);
    ck_assert_int_eq(opi_predict(model, rows, n, &(opi_predict_options){.struct_size = sizeof o, .level = .9}, all,
                                 sizeof *all, NULL), OPI_OK);
    for (size_t i = 0; i < n; i++) {
        opi_prediction three[3];
        memset(three, 0, sizeof three);
        ck_assert_int_eq(opi_predict(model, &rows[i], 1, &o, three, sizeof *three, NULL), OPI_OK);
        for (size_t k = 0; k < 3; k++)
            ck_assert_mem_eq(&three[k], &all[i * OPI__T_COUNT + some[k]], sizeof *three);
    }
}
END_TEST

START_TEST(no_heap)
{
    opi_prediction p[OPI__T_COUNT];
    opi_support s = {.struct_size = sizeof s};
    double probability;
    char text[200];
    size_t before = allocations;
    ck_assert(before > 100); /* the fit was counted */
    ck_assert_int_eq(opi_predict(model, &config, 1, NULL, p, sizeof *p, NULL), OPI_OK);
    ck_assert_int_eq(opi_predict_exceed(model, &config, 0, 1, &probability, NULL), OPI_OK);
    ck_assert_int_eq(opi_predict_support(model, &config, 0, &s, NULL), OPI_OK);
    opi_predict_reason(model, &config, &p[0], text, sizeof text);
    ck_assert_uint_eq(allocations, before);
}
END_TEST

/* One configuration a verdict: inside, a new combination, outside. */
static void of_verdict(int verdict)
{
    setup();
    if (verdict == OPI_P_NEW_COMBINATION)
        config.precision = "fp8", use_gpu("A100-80GB-SXM");
    if (verdict == OPI_P_OOD)
        config.concurrency = 2000;
}

static const int verdicts[] = {OPI_P_OK, OPI_P_NEW_COMBINATION, OPI_P_OOD};
static const size_t learned[] = {OPI__T_OUT_TOK_S, OPI__T_TTFT_P50,
                                 OPI__T_POWER}; /* the last on one GPU, by fewer rows */

START_TEST(intervals_grow_with_level)
{
    size_t unbounded = 0;
    for (int v = 0; v < 3; v++)
        for (int k = 0; k < (v == 1 ? 2 : 3); k++) {
            opi_prediction last = {.lo = INFINITY, .hi = 0};
            of_verdict(verdicts[v]);
            for (double level = .5; level < .9905; level += .005) {
                opi_prediction p = predict(&config, learned[k], level > .99 ? .99 : level);
                ck_assert_int_eq(p.status, verdicts[v]);
                ck_assert_double_eq(p.level, level > .99 ? .99 : level);
                ck_assert(isfinite(p.p50) && p.p50 > 0 && isfinite(p.lo) && p.lo >= 0);
                ck_assert(p.lo <= p.p50 && p.p50 <= p.hi && p.p10 <= p.p50 && p.p50 <= p.p90);
                ck_assert_msg(p.lo <= last.lo && p.hi >= last.hi, "level %g: %g to %g, narrower than %g to %g", level,
                              p.lo, p.hi, last.lo, last.hi);
                ck_assert(last.p50 == 0 || (p.p50 == last.p50 && p.p10 == last.p10 && p.p90 == last.p90));
                /* Too few scores for the level: no bound at all. */
                int enough = (p.calibration_rows + 1) * p.level <= p.calibration_rows + 1e-9;
                ck_assert_int_eq(isfinite(p.hi) != 0, enough);
                ck_assert_int_eq(p.lo > 0, enough);
                unbounded += !enough;
                last = p;
            }
        }
    ck_assert(unbounded > 0);
}
END_TEST

START_TEST(quantiles_are_the_default_interval)
{
    opi_prediction p = predict(&config, OPI__T_OUT_TOK_S, 0), q = predict(&config, OPI__T_OUT_TOK_S, .8);
    ck_assert_mem_eq(&p, &q, sizeof p);
    ck_assert_double_eq(p.level, .8);
    ck_assert(p.lo == p.p10 && p.hi == p.p90);
    ck_assert(p.p10 < p.p50 && p.p50 < p.p90);
}
END_TEST

/* The group an interval names exists, has that many scores, and stands for the verdict. */
START_TEST(calibration_is_named)
{
    opi_text *text = NULL;
    opi__json *root = NULL;
    ck_assert_int_eq(opi_model_inspect(model, &text, NULL), OPI_OK);
    ck_assert_int_eq(opi__json_parse(opi_text_data(text), opi_text_size(text), "inspect", &root, NULL), OPI_OK);
    const opi__json *targets = opi__json_get(root, "targets");
    for (int v = 0; v < 3; v++) {
        double scores = -1;
        of_verdict(verdicts[v]);
        opi_prediction p = predict(&config, OPI__T_OUT_TOK_S, 0);
        const opi__json *groups = opi__json_get(opi__json_at(targets, OPI__T_OUT_TOK_S), "calibration_groups");
        const opi__json *g = opi__json_at(groups, p.calibration_group);
        ck_assert_ptr_nonnull(g);
        ck_assert_int_eq(opi__json_number(opi__json_get(g, "scores"), &scores), 1);
        ck_assert_double_eq(scores, p.calibration_rows);
        ck_assert_str_eq(opi__json_string(opi__json_get(g, "novelty")), v ? "new-combination" : "known");
        if (v == 0)
            ck_assert_str_eq(opi__json_string(opi__json_get(g, "name")), "concurrency / vllm / 16-bit");
    }
    opi__json_free(root);
    opi_text_free(text);
}
END_TEST

START_TEST(exceed_falls_with_the_limit)
{
    for (int v = 0; v < 3; v++)
        for (int k = 0; k < 2; k++) {
            double last = 1, probability = -1;
            of_verdict(verdicts[v]);
            opi_prediction p = predict(&config, learned[k], 0);
            for (double limit = p.p50 / 30; limit < p.p50 * 30; limit *= 1.03, last = probability) {
                ck_assert_int_eq(opi_predict_exceed(model, &config, learned[k], limit, &probability, NULL), OPI_OK);
                ck_assert_msg(probability <= last && probability > 0, "%g at %g, %g before", probability, limit, last);
            }
            double least = 1. / (p.calibration_rows + 1);
            ck_assert_int_eq(opi_predict_exceed(model, &config, learned[k], INFINITY, &probability, NULL), OPI_OK);
            ck_assert_double_eq_tol(probability, least, 1e-12); /* never 0: that many cases were seen, no more */
            ck_assert_int_eq(opi_predict_exceed(model, &config, learned[k], 0, &probability, NULL), OPI_OK);
            ck_assert_double_eq(probability, 1);
            ck_assert_int_eq(opi_predict_exceed(model, &config, learned[k], -5, &probability, NULL), OPI_OK);
            ck_assert_double_eq(probability, 1);
        }
}
END_TEST

/* Half of what an interval leaves out may lie above its upper end, and half below its lower one. */
START_TEST(exceed_agrees_with_the_interval)
{
    size_t n = questions();
    for (size_t i = 0; i < n; i += 7)
        for (int k = 0; k < 2; k++)
            for (double level = .5; level <= .95; level += .05) {
                opi_prediction p = predict(&rows[i], learned[k], level);
                double above, below, tail = (1 - level) / 2, nudge = 1e-7;
                if (!isfinite(p.hi) || (p.calibration_rows + 1) * tail < 1)
                    continue;
                opi_predict_exceed(model, &rows[i], learned[k], p.hi * (1 + nudge), &above, NULL);
                opi_predict_exceed(model, &rows[i], learned[k], p.lo * (1 - nudge), &below, NULL);
                ck_assert_msg(above <= tail + 1e-9, "level %g: %g above the upper end", level, above);
                ck_assert_msg(1 - below <= tail + 1e-9, "level %g: %g below the lower end", level, 1 - below);
                ck_assert(above >= tail - 3. / (p.calibration_rows + 1) || p.hi == p.p50);
            }
}
END_TEST

/* ---- physics ---- */

START_TEST(uncalibrated_targets_have_no_interval)
{
    opi_roofline r = {.struct_size = sizeof r};
    ck_assert_int_eq(opi_roofline_of(&config, &r, NULL), OPI_OK);
    for (size_t t = 0; t < opi_target_count(); t++) {
        opi_prediction p = predict(&config, t, .9);
        double probability = 7;
        if (opi__residual_of((int32_t)t) == OPI__T_OUT_TOK_S || t == OPI__T_TTFT_P50 || t == OPI__T_POWER) {
            ck_assert_int_eq(p.status, OPI_P_OK);
            continue;
        }
        ck_assert_int_eq(p.status, OPI_P_UNCALIBRATED);
        ck_assert(isfinite(p.p50) && p.p50 > 0 && p.p50 <= opi__targets[t].upper);
        ck_assert(isnan(p.p10) && isnan(p.p90) && isnan(p.lo) && isnan(p.hi) && isnan(p.ood_distance));
        ck_assert_uint_eq(p.calibration_rows, 0);
        ck_assert_int_eq(p.ood_axis, -1);
        ck_assert_int_eq(opi_predict_exceed(model, &config, t, 1, &probability, NULL), OPI_OK);
        ck_assert(isnan(probability));
        ck_assert_msg(strstr(reason(&config, &p), "physics only, no interval") != NULL, "%s", reason(&config, &p));
    }
    ck_assert_double_eq_tol(predict(&config, OPI__T_COLD_START, 0).p50, r.cold_start_s, 1e-9 * r.cold_start_s);
    ck_assert_double_eq_tol(predict(&config, OPI__T_ITL_P50, 0).p50, r.itl_ms, 1e-9 * r.itl_ms);
    ck_assert_double_eq_tol(predict(&config, OPI__T_KV_USAGE, 0).p50, r.kv_usage, 1e-9);
    opi_prediction cold = predict(&config, OPI__T_COLD_START, 0);
    ck_assert_msg(strstr(reason(&config, &cold), " 3 measured rows") != NULL, "%s", reason(&config, &cold));
}
END_TEST

/* A share that becomes learned: its upper quantiles end at 1. */
START_TEST(shares_end_at_one)
{
    static char csv[16384];
    const size_t target = OPI__T_KV_USAGE;
    const opi_predict_options o = {.struct_size = sizeof o, .level = .95, .targets = &target, .n_targets = 1};
    const opi_fit_options f = {.struct_size = sizeof f, .seed = 1, .learner = "boost"};
    opi_table *full = NULL;
    opi_model *m = NULL;
    opi_prediction p;
    size_t n = (size_t)snprintf(csv, sizeof csv,
                                "source,model,engine,precision,gpu,n_gpus,tp,input_len,output_len,concurrency,"
                                "load_kind,launch_ok,kv_cache_usage\n");
    for (int i = 0; i < 60; i++) /* half of them full, the others anything */
        n += (size_t)snprintf(csv + n, sizeof csv - n,
                              "s," WORLD_LLM ",vllm,bf16,H100-80GB-SXM,1,1,%d,256,8,concurrency,1,%g\n", 1000 + i,
                              i % 2 ? 1 : .2 + .01 * i);
    ck_assert_msg(opi_table_parse(ctx, csv, n, NULL, &full, &err) == OPI_OK, "%s", err.message);
    ck_assert_msg(opi_model_fit(ctx, full, &f, &m, &err) == OPI_OK, "%s", err.message);
    ck_assert_int_eq(opi_predict(m, &config, 1, &o, &p, sizeof p, NULL), OPI_OK);
    ck_assert_int_eq(p.status, OPI_P_OK);
    ck_assert(p.p50 <= 1 && p.p90 <= 1 && p.lo < p.p50);
    ck_assert_double_eq(p.hi, 1);
    opi_model_free(m);
    opi_table_free(full);
}
END_TEST

/* ---- verdicts ---- */

static void outside(const char *axis, const char *word)
{
    for (int k = 0; k < 2; k++) {
        opi_prediction p = predict(&config, learned[k], 0);
        ck_assert_msg(p.status == OPI_P_OOD, "status %d, %s asked", p.status, axis);
        ck_assert_str_eq(axis_name(p.ood_axis), axis);
        ck_assert(p.ood_distance > 1);
        ck_assert(isfinite(p.p50) && p.lo <= p.p50 && p.p50 <= p.hi);
        ck_assert_msg(strstr(reason(&config, &p), word) != NULL, "\"%s\" lacks \"%s\"", reason(&config, &p), word);
    }
}

START_TEST(categories_never_measured)
{
    use_gpu("MI300X-192GB");
    outside("gpu", "MI300X-192GB was never measured");
    opi_prediction p = predict(&config, OPI__T_OUT_TOK_S, 0);
    ck_assert(isnan(p.ood_value) && isnan(p.ood_lo) && isnan(p.ood_hi));
    ck_assert_double_eq(p.ood_distance, OPI__FAR);
    setup();
    config.engine = "tensorrt-llm";
    outside("engine", "tensorrt-llm");
    config.engine = NULL;
    outside("engine", "not stated");
    setup();
    config.precision = "awq";
    outside("precision", "awq");
    setup();
    config.load_kind = "offline";
    outside("load_kind", "offline");
    setup();
    own_llm();
    strcpy(other_llm.family, "gpt-9");
    outside("family", "gpt-9");
}
END_TEST

static void outside_by_number(const char *axis, double value, double lo, double hi)
{
    char word[64];
    opi_prediction p = predict(&config, OPI__T_OUT_TOK_S, 0);
    snprintf(word, sizeof word, "outside the measured %.4g to %.4g", lo, hi);
    outside(axis, word);
    ck_assert_double_eq_tol(p.ood_value / value, 1, 1e-9);
    ck_assert_double_eq_tol(p.ood_lo / lo, 1, 1e-9);
    ck_assert_double_eq_tol(p.ood_hi / hi, 1, 1e-9);
    ck_assert_int_eq(p.ood_axis2, -1);
}

/* Each of the seven axes alone is pushed out of what was measured, above or below; the others stay inside. */
START_TEST(each_axis_alone)
{
    double small_params = llm.params_b, big_params;
    use_llm("meta-llama/Llama-3.1-70B-Instruct");
    big_params = other_llm.params_b;
    config.n_gpus = config.tp = 8;
    own_llm();
    other_llm.params_b = 2 * big_params;
    outside_by_number("params_b", 2 * big_params, small_params, big_params);
    setup();
    own_llm();
    other_llm.active_params_b = 3;
    outside_by_number("active_params_b", 3, small_params, big_params);
    setup();
    config.input_len = 11000, config.output_len = 1000;
    outside_by_number("context", 12000, 256, 3072);
    config.input_len = 60, config.output_len = 60;
    outside_by_number("context", 120, 256, 3072);
    setup();
    config.input_len = config.output_len = 128, config.concurrency = 1024;
    outside_by_number("concurrency", 1024, 1, 128);
    setup();
    config.n_gpus = config.tp = 16;
    outside_by_number("tp", 16, 1, 8);
    setup();
    config.precision = "fp8", config.weight_bits = 4;
    outside_by_number("weight_bits", 4, 8, 16);
}
END_TEST

START_TEST(kv_pressure_alone)
{
    double lo = INFINITY, hi = 0;
    size_t n = questions();
    for (size_t i = 0; i < n; i++) { /* the measured range, from the roofline's own share */
        opi__encoded e;
        opi__encode(&rows[i], &e);
        lo = fmin(lo, e.envelope[OPI__E_KV]), hi = fmax(hi, e.envelope[OPI__E_KV]);
    }
    for (int up = 0; up < 2; up++) {
        opi__encoded e;
        setup();
        own_llm();
        other_llm.kv_elems_per_token *= up ? 200 : 1e-3;
        opi__encode(&config, &e);
        ck_assert(up ? e.envelope[OPI__E_KV] > hi : e.envelope[OPI__E_KV] < lo);
        outside_by_number("kv_pressure", e.envelope[OPI__E_KV], lo, hi);
    }
}
END_TEST

START_TEST(not_stated_where_always_measured)
{
    config.concurrency = 0;
    outside("concurrency", "is not stated");
    setup();
    config.tp = 0;
    outside("tp", "is not stated");
    setup();
    config.input_len = config.output_len = 0;
    outside("context", "is not stated");
}
END_TEST

/* Slack by slack around the border of every axis, on the scale of the envelope. */
START_TEST(border_of_each_axis)
{
    const opi__target_model *g = &model->target[OPI__T_OUT_TOK_S];
    for (int e = 0; e < OPI__ENVELOPE; e++)
        for (int up = 0; up < 2; up++)
            for (double slacks = .5; slacks < 2; slacks += .9) { /* half a slack beyond, and almost one and a half */
                opi__question q;
                opi__verdict v;
                opi__question_make(model, &config, &q);
                double at =
                    up ? g->range[e].hi + slacks * g->range[e].slack : g->range[e].lo - slacks * g->range[e].slack;
                q.encoded.envelope[e] = at;
                opi__judge(model, OPI__T_OUT_TOK_S, q.encoded.envelope, q.code, &v);
                ck_assert_int_eq(v.status, slacks < 1 ? OPI_P_OK : OPI_P_OOD);
                ck_assert_double_eq_tol(v.distance, slacks, 1e-6);
                ck_assert_int_eq(v.axis, slacks < 1 ? -1 : opi__envelope_axis(e));
            }
}
END_TEST

static void combined(const char *axis, const char *axis2, const char *word)
{
    for (int k = 0; k < 2; k++) {
        opi_prediction p = predict(&config, learned[k], 0);
        ck_assert_int_eq(p.status, OPI_P_NEW_COMBINATION);
        ck_assert_str_eq(axis_name(p.ood_axis), axis);
        ck_assert_str_eq(axis_name(p.ood_axis2), axis2);
        ck_assert(p.ood_distance <= 1);
        ck_assert_msg(strstr(reason(&config, &p), word) != NULL, "\"%s\" lacks \"%s\"", reason(&config, &p), word);
    }
}

START_TEST(new_combinations_are_named)
{
    use_gpu("A100-80GB-SXM");
    config.precision = "fp8";
    combined("gpu", "precision", "A100-80GB-SXM with Quantization format fp8 was never measured together");
    setup();
    use_gpu("L40S-48GB");
    config.engine = "sglang";
    combined("gpu", "engine", "L40S-48GB with Serving engine sglang");
    setup();
    use_llm("Qwen/Qwen2.5-32B-Instruct"); /* another size of a measured family, within the measured sizes */
    config.n_gpus = config.tp = 4;
    combined("model", "", "Qwen/Qwen2.5-32B-Instruct was never measured");
}
END_TEST

Suite *suite_predict(void)
{
    Suite *s = suite_create("predict");
    TCase *t = tcase_create("predict");
    tcase_set_timeout(t, 300);
    tcase_add_unchecked_fixture(t, once, done);
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, learned_what_was_measured);
    tcase_add_test(t, batch_is_single);
    tcase_add_test(t, no_heap);
    tcase_add_test(t, intervals_grow_with_level);
    tcase_add_test(t, quantiles_are_the_default_interval);
    tcase_add_test(t, calibration_is_named);
    tcase_add_test(t, exceed_falls_with_the_limit);
    tcase_add_test(t, exceed_agrees_with_the_interval);
    tcase_add_test(t, uncalibrated_targets_have_no_interval);
    tcase_add_test(t, shares_end_at_one);
    tcase_add_test(t, categories_never_measured);
    tcase_add_test(t, each_axis_alone);
    tcase_add_test(t, kv_pressure_alone);
    tcase_add_test(t, not_stated_where_always_measured);
    tcase_add_test(t, border_of_each_axis);
    tcase_add_test(t, new_combinations_are_named);
    suite_add_tcase(s, t);
    return s;
}
