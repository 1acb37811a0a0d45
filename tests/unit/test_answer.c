/* SPDX-License-Identifier: Apache-2.0 */
/* The answer as an object: getters, JSON, lifetime, bad input, memory, the everyday requests. */
#include "base/ctx.h"
#include "base/json.h"
#include "decide/everyday.h"
#include "fake_world.h"

#include <stdlib.h>

Suite *suite_answer(void);

/* ---- getters, JSON ---- */

START_TEST(getters)
{
    opi_error err = {0};
    opi_advice *a = advise();
    opi_prediction p, before;
    opi_candidate c = {.struct_size = sizeof c};
    ck_assert_int_eq(opi_advice_prediction(a, 3, OPI__T_POWER, &p, sizeof p, &err), OPI_OK);
    ck_assert_int_eq(p.target, OPI__T_POWER);
    ck_assert_double_eq(p.p50, 0.5 * at(a, 3).config.gpu->tdp_w);
    before = p;
    ck_assert_int_eq(opi_advice_prediction(a, 3, OPI__T_COUNT, &p, sizeof p, &err), OPI_E_RANGE);
    ck_assert_int_eq(opi_advice_prediction(a, opi_advice_feasible(a), 0, &p, sizeof p, &err), OPI_E_RANGE);
    ck_assert_int_eq(opi_advice_prediction(a, 0, 0, &p, 0, &err), OPI_E_INVALID);
    ck_assert_mem_eq(&p, &before, sizeof p);
    ck_assert_int_eq(opi_advice_candidate(a, opi_advice_count(a), &c, &err), OPI_E_RANGE);
    ck_assert_int_eq(opi_advice_candidate(a, 0, NULL, &err), OPI_E_INVALID);
    ck_assert_ptr_null(opi_advice_note(a, opi_advice_note_count(a)));
    opi_advice_free(a);
    opi_advice_free(NULL);
    ck_assert_uint_eq(opi_advice_count(NULL), 0);
    ck_assert_str_eq(opi_advice_sentence(NULL), "");
    ck_assert_str_eq(opi_reason_name(OPI_R_MEMORY), "memory");
    ck_assert_str_eq(opi_reason_name(OPI_R_ENGINE), "engine");
    ck_assert_str_eq(opi_reason_name(99), "unknown");
    ck_assert_str_eq(opi_reason_name(-1), "unknown");
}
END_TEST

static double number(const opi__json *o, const char *key)
{
    double v = NAN;
    opi__json_number(opi__json_get(o, key), &v);
    return v;
}

START_TEST(json_document)
{
    opi_slo s;
    slo("itl_p50", 8, &s);
    opi_gpu own = a100;
    own.price_ondemand_usd_h = own.price_rental_usd_h = NAN;
    lines[1].gpu = &own;
    lines[1].price_usd_h = 0;
    opi_advice *a = advise();
    opi_text *text = NULL;
    opi__json *root = NULL;
    ck_assert_int_eq(opi_advice_json(a, &text, NULL), OPI_OK);
    ck_assert_int_eq(opi__json_parse(opi_text_data(text), opi_text_size(text), "advice", &root, NULL), OPI_OK);
    ck_assert_str_eq(opi__json_string(opi__json_get(root, "schema")), "omnipilot.advice");
    ck_assert_double_eq(number(root, "version"), 1);
    ck_assert_str_eq(opi__json_string(opi__json_get(root, "verdict")), "recommended");
    ck_assert_str_eq(opi__json_string(opi__json_get(root, "sentence")), opi_advice_sentence(a));
    const opi__json *list = opi__json_get(root, "candidates");
    ck_assert_uint_eq(opi__json_size(list), opi_advice_feasible(a));
    for (size_t r = 0; r < opi__json_size(list); r++) {
        const opi__json *o = opi__json_at(list, r), *t = opi__json_get(o, "terms_usd_per_h");
        const opi_candidate c = at(a, r);
        ck_assert_double_eq(number(o, "rank"), (double)r);
        ck_assert_str_eq(opi__json_string(opi__json_get(o, "gpu")), c.config.gpu->name);
        ck_assert_double_eq(number(t, "value") + number(t, "node") + number(t, "queue") + number(t, "restart") +
                                number(t, "slo") + number(t, "kv") + number(t, "power"), number(t, "total"));
        ck_assert_double_eq(number(o, "score"), c.score);
        ck_assert_int_eq(opi__json_is_null(opi__json_get(o, "usd_per_mtok")), !c.price_stated); /* never a made-up number */
        ck_assert_uint_eq(opi__json_size(opi__json_get(o, "predictions_per_replica")), opi_target_count());
    }
    size_t infeasible = 0;
    const opi__json *groups = opi__json_get(root, "infeasible");
    for (size_t g = 0; g < opi__json_size(groups); g++)
        infeasible += opi__json_size(opi__json_get(opi__json_at(groups, g), "candidates"));
    ck_assert_uint_eq(infeasible, opi_advice_count(a) - opi_advice_feasible(a));
    ck_assert_int_eq(opi_advice_json(a, NULL, NULL), OPI_E_INVALID);
    opi__json_free(root);
    opi_text_free(text);
    opi_advice_free(a);
}
END_TEST

START_TEST(same_question_same_answer)
{
    opi_text *x = NULL, *y = NULL;
    opi_advice *a = advise(), *b = advise();
    ck_assert_int_eq(opi_advice_json(a, &x, NULL), OPI_OK);
    ck_assert_int_eq(opi_advice_json(b, &y, NULL), OPI_OK);
    ck_assert_str_eq(opi_text_data(x), opi_text_data(y));
    opi_text_free(x);
    opi_text_free(y);
    opi_advice_free(a);
    opi_advice_free(b);
}
END_TEST

START_TEST(answer_outlives_the_request)
{
    const char *names[] = {strdup("bf16")};
    request.precisions = names;
    request.n_precisions = 1;
    opi_advice *a = advise();
    memset((void *)(uintptr_t)names[0], 'x', 4);
    free((void *)(uintptr_t)names[0]);
    memset(&llm, 0x55, sizeof llm);
    memset(lines, 0x55, sizeof lines);
    memset(&h100, 0x55, sizeof h100);
    const opi_candidate c = winner_of(a);
    ck_assert_str_eq(c.config.llm->name, "test/Llama-70B");
    ck_assert_str_eq(c.config.precision, "bf16");
    ck_assert_ptr_nonnull(strchr(c.config.gpu->name, '-'));
    opi_advice_free(a);
}
END_TEST
/* ---- bad input ---- */

typedef void (*spoil)(void);
static void input_zero(void) { request.input_len = 0; }
static void input_negative(void) { request.input_len = -5; }
static void input_nan(void) { request.input_len = NAN; }
static void input_huge(void) { request.input_len = 1e308; }
static void input_long(void) { request.input_len = 1.5e7; }
static void output_zero(void) { request.output_len = 0; }
static void output_infinite(void) { request.output_len = INFINITY; }
static void context_small(void) { request.max_context = 100; }
static void load_none(void) { request.concurrency = 0; }
static void load_negative(void) { request.concurrency = -1; }
static void load_nan(void) { request.concurrency = NAN; }
static void load_huge(void) { request.concurrency = 1e7; }
static void rate_nan(void) { request.request_rate = NAN; }
static void rate_negative(void) { request.request_rate = -2; }
static void demand_infinite(void) { request.demand_tok_s = INFINITY; }
static void level_one(void) { request.level = 1; }
static void level_nan(void) { request.level = NAN; }
static void count_zero(void) { lines[0].count = 0; }
static void count_negative(void) { lines[1].count = -8; }
static void node_negative(void) { lines[0].per_node = -1; }
static void node_huge(void) { lines[0].per_node = 100000; }
static void price_negative(void) { lines[2].price_usd_h = -1; }
static void price_nan(void) { lines[2].price_usd_h = NAN; }
static void price_huge(void) { lines[2].price_usd_h = 1e308; }
static void queue_nan(void) { lines[0].queue_s = NAN; }
static void inventory_none(void) { request.n_inventory = 0; }
static void inventory_many(void) { request.n_inventory = 257; }
static void inventory_size(void) { lines[0].struct_size = 0; }
static void gpu_null(void) { lines[0].gpu = NULL; }
static void llm_null(void) { request.llm = NULL; }
static void llm_empty(void) { llm.params_b = NAN; }
static void precision_unknown(void)
{
    static const char *const names[] = {"bf17"};
    request.precisions = names;
    request.n_precisions = 1;
}
static void engine_empty(void)
{
    static const char *const names[] = {""};
    request.engines = names;
    request.n_engines = 1;
}
static opi_slo bad_slo;
static void slo_zero(void) { slo("itl_p50", 0, &bad_slo); }
static void slo_nan(void) { slo("itl_p50", NAN, &bad_slo); }
static void slo_target(void) { slo("itl_p50", 5, &bad_slo), bad_slo.target = 99; }
static void slo_null(void) { request.n_slos = 1; }
static void request_size(void) { request.struct_size = 0; }

static const struct {
    spoil spoil;
    int32_t code;
    const char *says; /* the value or the place */
} spoils[] = {
    {input_zero, OPI_E_RANGE, "input_len = 0"}, {input_negative, OPI_E_RANGE, "input_len = -5"},
    {input_nan, OPI_E_RANGE, "input_len = nan"}, {input_huge, OPI_E_RANGE, "1e+308"}, {input_long, OPI_E_RANGE, "input_len"},
    {output_zero, OPI_E_RANGE, "output_len = 0"}, {output_infinite, OPI_E_RANGE, "output_len = inf"},
    {context_small, OPI_E_RANGE, "max_context = 100"}, {load_none, OPI_E_INVALID, "no load"},
    {load_negative, OPI_E_RANGE, "concurrency = -1"}, {load_nan, OPI_E_RANGE, "concurrency = nan"},
    {load_huge, OPI_E_RANGE, "concurrency"}, {rate_nan, OPI_E_RANGE, "request_rate"}, {rate_negative, OPI_E_RANGE, "-2"},
    {demand_infinite, OPI_E_RANGE, "demand_tok_s"}, {level_one, OPI_E_RANGE, "level = 1"}, {level_nan, OPI_E_RANGE, "level"},
    {count_zero, OPI_E_RANGE, "H100-80GB-SXM: 0 GPUs"}, {count_negative, OPI_E_RANGE, "A100-80GB-SXM: -8 GPUs"},
    {node_negative, OPI_E_RANGE, "per node"}, {node_huge, OPI_E_RANGE, "100000"}, {price_negative, OPI_E_RANGE, "H200-141GB"},
    {price_nan, OPI_E_RANGE, "price"}, {price_huge, OPI_E_RANGE, "price"}, {queue_nan, OPI_E_RANGE, "queue"},
    {inventory_none, OPI_E_INVALID, "inventory"}, {inventory_many, OPI_E_RANGE, "257"},
    {inventory_size, OPI_E_INVALID, "struct_size"}, {gpu_null, OPI_E_INVALID, "gpu is NULL"},
    {llm_null, OPI_E_INVALID, "llm is NULL"}, {llm_empty, OPI_E_RANGE, "params_b"},
    {precision_unknown, OPI_E_UNKNOWN, "bf17"}, {engine_empty, OPI_E_INVALID, "engine 0"}, {slo_zero, OPI_E_RANGE, "itl_p50"},
    {slo_nan, OPI_E_RANGE, "itl_p50"}, {slo_target, OPI_E_RANGE, "target 99"}, {slo_null, OPI_E_INVALID, "slos is NULL"},
    {request_size, OPI_E_INVALID, "struct_size"},
};

START_TEST(bad_input)
{
    const opi__oracle oracle = fake_oracle(&model);
    opi_advice *a = NULL;
    opi_error err = {0};
    spoils[_i].spoil();
    ck_assert_msg(opi__advise_with(ctx, &oracle, &request, &a, &err) == spoils[_i].code, "%s: %d %s", spoils[_i].says,
                  (int)err.code, err.message);
    ck_assert_ptr_null(a);
    ck_assert_int_eq(err.code, spoils[_i].code);
    ck_assert_msg(strstr(err.message, spoils[_i].says) != NULL, "\"%s\" does not say \"%s\"", err.message, spoils[_i].says);
}
END_TEST

START_TEST(context_beyond_the_llm)
{
    llm.max_context = 40960;
    request.input_len = 500000;
    opi_advice *a = advise();
    ck_assert_int_eq(opi_advice_verdict(a, NULL), OPI_ADVISE_NOTHING_FEASIBLE);
    ck_assert_int_eq(at(a, 0).infeasible, OPI_R_CONTEXT);
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "500256"));
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "40960"));
    opi_advice_free(a);
}
END_TEST

START_TEST(model_that_fails)
{
    const opi__oracle oracle = fake_oracle(&model);
    opi_advice *a = NULL;
    opi_error err = {0};
    model.fail_predict = OPI_E_RANGE;
    ck_assert_int_eq(opi__advise_with(ctx, &oracle, &request, &a, &err), OPI_E_RANGE);
    ck_assert_str_eq(err.message, "the fake refuses");
    ck_assert_ptr_null(a);
    ck_assert_int_eq(opi_advise(ctx, NULL, &request, &a, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_evaluate_everyday(ctx, NULL, NULL, &err), OPI_E_INVALID);
}
END_TEST

/* Every allocation fails once: an error, no leak (the sanitizers look), no partial answer. */
typedef struct counter {
    size_t left;
    int live;
} counter;

static void *count_alloc(void *user, size_t n)
{
    counter *c = user;
    if (c->left == 0)
        return NULL;
    c->left--;
    c->live++;
    return malloc(n);
}

static void *count_resize(void *user, void *p, size_t n)
{
    counter *c = user;
    if (c->left == 0)
        return NULL;
    c->left--;
    return realloc(p, n);
}

static void count_release(void *user, void *p)
{
    ((counter *)user)->live--;
    free(p);
}

START_TEST(out_of_memory)
{
    counter c = {.left = SIZE_MAX};
    const opi_ctx_options o = {.struct_size = sizeof o, .allocator = {&c, count_alloc, count_resize, count_release}};
    const opi__oracle oracle = fake_oracle(&model);
    opi_ctx *small = NULL;
    ck_assert_int_eq(opi_ctx_create(&o, &small, NULL), OPI_OK);
    for (int kind = 0; kind < 2; kind++) {
        const int base = c.live;
        size_t n = 0;
        request.concurrency = kind ? 0 : 64;
        request.request_rate = kind ? 10 : 0;
        request.demand_tok_s = kind ? 0 : 2000;
        for (;; n++) {
            opi_advice *a = NULL;
            opi_error err = {0};
            c.left = n;
            const int32_t rc = opi__advise_with(small, &oracle, &request, &a, &err);
            opi_advice_free(a);
            ck_assert_int_eq(c.live, base);
            if (rc == OPI_OK)
                break;
            ck_assert_int_eq(rc, OPI_E_NOMEM);
        }
        ck_assert_uint_gt(n, 8);
    }
    c.left = SIZE_MAX;
    opi_ctx_destroy(small);
}
END_TEST

/* ---- everyday requests ---- */

START_TEST(everyday_is_the_table)
{
    ck_assert_uint_eq(opi__everyday_count(), 60);
    ck_assert_ptr_null(opi__everyday_at(60));
    FILE *f = fopen("tests/golden/everyday.csv", "r");
    char line[512], expected[512];
    ck_assert_msg(f != NULL, "run from the top of the source tree");
    ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
    ck_assert_str_eq(line, "use,llm,input_len,output_len,concurrency,request_rate,inventory,slo\n");
    for (size_t i = 0; i < 60; i++) {
        const opi__everyday *e = opi__everyday_at(i);
        snprintf(expected, sizeof expected, "%s,%s,%g,%g,%g,%g,%s,%s\n", e->use, e->llm, e->input_len, e->output_len,
                 e->concurrency, e->request_rate, e->inventory, e->slo);
        ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
        ck_assert_str_eq(line, expected);
    }
    ck_assert_ptr_null(fgets(line, sizeof line, f));
    fclose(f);
}
END_TEST

START_TEST(everyday_counts_verdicts)
{
    const opi__oracle oracle = fake_oracle(&model);
    opi_text *text = NULL;
    opi_error err = {0};
    model.outside_engine = "vllm";
    model.new_engine = "sglang";
    model.slow_new = 0.5; /* tensorrt-llm, inside, wins wherever it runs */
    ck_assert_msg(opi__everyday_with(ctx, &oracle, &text, &err) == OPI_OK, "%s", err.message);
    opi__json *root = NULL;
    ck_assert_int_eq(opi__json_parse(opi_text_data(text), opi_text_size(text), "everyday", &root, NULL), OPI_OK);
    const opi__json *v = opi__json_get(root, "verdicts"), *list = opi__json_get(root, "requests");
    ck_assert_uint_eq(opi__json_size(list), 60);
    ck_assert_double_eq(number(v, "inside") + number(v, "new-combination") + number(v, "abstained") +
                            number(v, "nothing-feasible"), 60);
    ck_assert_double_eq(number(v, "inside") + number(v, "new-combination"), number(root, "recommended"));
    ck_assert_double_gt(number(v, "inside"), 30);
    for (size_t i = 0; i < 60; i++) {
        const char *winner = opi__json_string(opi__json_get(opi__json_at(list, i), "winner"));
        ck_assert(!winner || !strstr(winner, "vllm")); /* outside: never */
    }
    opi__json_free(root);
    opi_text_free(text);
}
END_TEST

/* The model that ships, through the public functions only: useful, and honest about it. */
START_TEST(everyday_of_the_default_model)
{
    opi_model *shipped = NULL;
    opi_advice *a = NULL;
    opi_text *text = NULL;
    opi_error err = {0};
    opi_candidate c = {.struct_size = sizeof c};
    size_t w = SIZE_MAX;
    ck_assert_msg(opi_model_load_default(ctx, &shipped, &err) == OPI_OK, "%s", err.message);
    ck_assert_msg(opi_evaluate_everyday(ctx, shipped, &text, &err) == OPI_OK, "%s", err.message);
    opi__json *root = NULL;
    ck_assert_int_eq(opi__json_parse(opi_text_data(text), opi_text_size(text), "everyday", &root, NULL), OPI_OK);
    ck_assert_double_ge(number(root, "recommended_share"), 0.6);
    const opi__json *list = opi__json_get(root, "requests");
    for (size_t i = 0; i < 60; i++) {
        const char *verdict = opi__json_string(opi__json_get(opi__json_at(list, i), "verdict"));
        const char *winner = opi__json_string(opi__json_get(opi__json_at(list, i), "winner"));
        ck_assert_int_eq(winner != NULL, !strcmp(verdict, "inside") || !strcmp(verdict, "new-combination"));
    }
    opi__json_free(root);
    opi_text_free(text);

    opi_llm oss = {.struct_size = sizeof oss};
    ck_assert_int_eq(opi_llm_find("openai/gpt-oss-120b", &oss, NULL), OPI_OK);
    request.llm = &oss;
    request.output_len = 1024;
    ck_assert_msg(opi_advise(ctx, shipped, &request, &a, &err) == OPI_OK, "%s", err.message);
    ck_assert_int_eq(opi_advice_verdict(a, &w), OPI_ADVISE_RECOMMENDED);
    opi_model_free(shipped); /* the answer does not need the model any more */
    ck_assert_int_eq(opi_advice_candidate(a, w, &c, NULL), OPI_OK);
    ck_assert_str_eq(c.config.precision, "fp4"); /* as the checkpoint comes */
    ck_assert_int_eq(opi_advice_json(a, &text, NULL), OPI_OK);
    opi_text_free(text);
    opi_advice_free(a);
}
END_TEST

Suite *suite_answer(void)
{
    Suite *s = suite_create("answer");
    TCase *t = tcase_create("answer");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, getters);
    tcase_add_test(t, json_document);
    tcase_add_test(t, same_question_same_answer);
    tcase_add_test(t, answer_outlives_the_request);
    tcase_add_loop_test(t, bad_input, 0, sizeof spoils / sizeof *spoils);
    tcase_add_test(t, context_beyond_the_llm);
    tcase_add_test(t, model_that_fails);
    tcase_add_test(t, out_of_memory);
    tcase_add_test(t, everyday_is_the_table);
    tcase_add_test(t, everyday_counts_verdicts);
    tcase_add_test(t, everyday_of_the_default_model);
    suite_add_tcase(s, t);
    return s;
}
