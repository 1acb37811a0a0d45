/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ctx.h"
#include "decide/load.h"
#include "fake_oracle.h"

#include <check.h>

Suite *suite_candidates(void);

/* A request, enumerated. */
typedef struct setup {
    opi_ctx *ctx;
    opi__arena arena;
    opi__ask ask;
    opi__cands bases, all;
    size_t converted;
} setup;

static void enumerate(setup *s, const opi_advise_request *r)
{
    opi_error err = {0};
    memset(s, 0, sizeof *s);
    ck_assert_int_eq(opi_ctx_create(NULL, &s->ctx, NULL), OPI_OK);
    opi__arena_init(&s->arena, s->ctx);
    s->bases.ctx = s->all.ctx = s->ctx;
    ck_assert_msg(opi__ask_take(&s->arena, r, &s->ask, &err) == OPI_OK, "%s", err.message);
    ck_assert_int_eq(opi__enumerate(&s->ask, &s->bases, &err), OPI_OK);
}

static void share(setup *s, fake *f)
{
    const opi__oracle oracle = fake_oracle(f);
    ck_assert_int_eq(opi__share_load(&s->ask, &oracle, &s->bases, &s->all, &s->converted, NULL), OPI_OK);
}

static void finish(setup *s)
{
    opi__cands_free(&s->bases);
    opi__cands_free(&s->all);
    opi__arena_free(&s->arena);
    opi_ctx_destroy(s->ctx);
}

/* First entry with these figures; engine "" = NULL engine. */
static const opi__cand *find(const opi__cands *list, int32_t tp, const char *precision, const char *engine)
{
    for (size_t i = 0; i < list->n; i++) {
        const opi_config *k = &list->v[i].pub.config;
        if (k->tp == tp && !strcmp(k->precision, precision) && !strcmp(k->engine ? k->engine : "", engine))
            return &list->v[i];
    }
    return NULL;
}

static opi_inventory line_of(const opi_gpu *gpu, int32_t count)
{
    return (opi_inventory){.struct_size = sizeof(opi_inventory), .count = count, .gpu = gpu, .price_usd_h = 2};
}

START_TEST(precisions_of_generations)
{
    static const struct {
        const char *gpu, *precision;
        int supported;
    } cases[] = {
        {"H100-80GB-SXM", "bf16", 1},  {"H100-80GB-SXM", "fp8", 1},  {"H100-80GB-SXM", "fp4", 0},
        {"A100-80GB-SXM", "bf16", 1},  {"A100-80GB-SXM", "fp8", 0},  {"A100-80GB-SXM", "int8", 1},
        {"A100-80GB-SXM", "awq", 1},   {"L40S-48GB", "fp8", 1},      {"L4-24GB", "fp8", 1},
        {"V100-32GB-SXM", "bf16", 0},  {"V100-32GB-SXM", "fp16", 1}, {"V100-32GB-SXM", "awq", 0},
        {"T4-16GB", "bf16", 0},        {"T4-16GB", "int8", 1},       {"B200-180GB", "fp4", 1},
        {"MI300X-192GB", "fp8", 1},    {"MI300X-192GB", "fp4", 0},   {"MI355X-288GB", "fp4", 1},
        {"MI250-128GB", "fp8", 0},     {"A10-24GB", "gptq", 1},
    };
    const opi_llm llm = fake_llm();
    char why[200];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const opi_gpu g = fake_gpu(cases[i].gpu);
        ck_assert_str_eq(g.name, cases[i].gpu);
        why[0] = 0;
        ck_assert_msg(opi__precision_supported(&g, &llm, cases[i].precision, why, sizeof why) == cases[i].supported,
                      "%s %s", cases[i].gpu, cases[i].precision);
        ck_assert_msg(cases[i].supported || strstr(why, cases[i].gpu), "\"%s\" does not name %s", why, cases[i].gpu);
    }
}
END_TEST

static void check_defaults(const char *gpu, const opi_llm *llm, const char *expected)
{
    const opi_gpu g = fake_gpu(gpu);
    const char *list[4];
    char joined[64] = "";
    const size_t n = opi__default_precisions(&g, llm, list);
    for (size_t i = 0; i < n; i++) {
        strcat(joined, i ? " " : "");
        strcat(joined, list[i]);
    }
    ck_assert_msg(!strcmp(joined, expected), "%s: %s, expected %s", gpu, joined, expected);
}

START_TEST(default_precisions)
{
    opi_llm llm = fake_llm();
    check_defaults("H100-80GB-SXM", &llm, "bf16 fp8");
    check_defaults("A100-80GB-SXM", &llm, "bf16");
    check_defaults("V100-32GB-SXM", &llm, "fp16");
    check_defaults("T4-16GB", &llm, "fp16");
    check_defaults("B200-180GB", &llm, "bf16 fp8 fp4");
    /* A checkpoint that comes quantized is served as it comes, or smaller; 4-bit floats also without fp4 arithmetic. */
    strcpy(llm.quant, "mxfp4");
    llm.weight_bits = 4;
    check_defaults("H100-80GB-SXM", &llm, "fp4");
    check_defaults("MI300X-192GB", &llm, "fp4");
    strcpy(llm.quant, "fp8");
    llm.weight_bits = 8;
    check_defaults("H200-141GB", &llm, "fp8");
    check_defaults("B200-180GB", &llm, "fp8 fp4");
    check_defaults("A100-80GB-SXM", &llm, "fp8"); /* refused by name later */
    strcpy(llm.quant, "awq");
    llm.weight_bits = 4;
    check_defaults("A10-24GB", &llm, "awq");
    llm.quant[0] = 0; /* only the bits known */
    check_defaults("H100-80GB-SXM", &llm, "fp4");
    strcpy(llm.name, "somebody/Llama-70B-GPTQ");
    check_defaults("H100-80GB-SXM", &llm, "gptq");
}
END_TEST

START_TEST(engines_of_vendors)
{
    const opi_gpu h100 = fake_gpu("H100-80GB-SXM"), mi300 = fake_gpu("MI300X-192GB"), gaudi = fake_gpu("Gaudi2-96GB");
    char why[200];
    ck_assert_int_eq(opi__engine_supported(&h100, "tensorrt-llm", why, sizeof why), 1);
    ck_assert_int_eq(opi__engine_supported(&mi300, "tensorrt-llm", why, sizeof why), 0);
    ck_assert_str_eq(why, "tensorrt-llm runs on NVIDIA GPUs, not on MI300X-192GB");
    ck_assert_int_eq(opi__engine_supported(&mi300, "sglang", why, sizeof why), 1);
    ck_assert_int_eq(opi__engine_supported(&gaudi, "sglang", why, sizeof why), 0);
    ck_assert_int_eq(opi__engine_supported(&gaudi, "vllm", why, sizeof why), 1);
    ck_assert_int_eq(opi__engine_supported(&h100, "my-own", why, sizeof why), 1);
}
END_TEST

START_TEST(replicas_fit_nodes)
{
    ck_assert_int_eq(opi__max_replicas(8, 8, 2, 1), 4);
    ck_assert_int_eq(opi__max_replicas(8, 8, 3, 1), 2);
    ck_assert_int_eq(opi__max_replicas(16, 8, 8, 1), 2);
    ck_assert_int_eq(opi__max_replicas(16, 4, 8, 1), 0); /* a stage stays in a node */
    ck_assert_int_eq(opi__max_replicas(16, 8, 8, 2), 1);
    ck_assert_int_eq(opi__max_replicas(20, 8, 4, 1), 5);
    ck_assert_int_eq(opi__max_replicas(3, 8, 4, 1), 0);
}
END_TEST

START_TEST(degrees_and_reasons)
{
    opi_llm llm = fake_llm();
    const opi_gpu h100 = fake_gpu("H100-80GB-SXM");
    const opi_inventory line = line_of(&h100, 4);
    opi_advise_request r = fake_request(&llm, &line, 1);
    setup s;
    llm.n_heads = 24; /* TP 1 2 3 4 6 8 */
    llm.n_kv_heads = 24;
    enumerate(&s, &r);
    ck_assert_ptr_nonnull(find(&s.bases, 3, "bf16", "vllm"));
    ck_assert_ptr_nonnull(find(&s.bases, 6, "bf16", ""));
    ck_assert_ptr_null(find(&s.bases, 5, "bf16", ""));
    /* 141 GB of weights on one GPU. */
    const opi__cand *c = find(&s.bases, 1, "bf16", "");
    ck_assert_int_eq(c->pub.infeasible, OPI_R_MEMORY);
    ck_assert_int_eq(c->pub.verdict, OPI_P_INFEASIBLE);
    ck_assert_double_lt(c->pub.memory.margin_gib, -50);
    ck_assert_ptr_nonnull(strstr(c->pub.reason, "GiB a GPU missing"));
    c = find(&s.bases, 8, "bf16", "");
    ck_assert_int_eq(c->pub.infeasible, OPI_R_INVENTORY);
    ck_assert_str_eq(c->pub.reason, "needs 8 x H100-80GB-SXM (8 in a node), the inventory has 4 in nodes of 8");
    c = find(&s.bases, 4, "bf16", "vllm");
    ck_assert_int_eq(c->pub.infeasible, OPI_FEASIBLE);
    ck_assert_int_eq(c->pub.config.n_gpus, 4);
    ck_assert_int_eq(c->max_replicas, 1);
    ck_assert_int_eq(c->pub.memory.fits, 1);
    ck_assert_ptr_nonnull(find(&s.bases, 4, "bf16", "sglang"));
    ck_assert_ptr_nonnull(find(&s.bases, 4, "bf16", "tensorrt-llm"));
    finish(&s);

    llm.n_heads = 28; /* 8 does not divide, 7 does (not the 4 KV heads) */
    llm.n_kv_heads = 4;
    const opi_inventory node = line_of(&h100, 8);
    r = fake_request(&llm, &node, 1);
    enumerate(&s, &r);
    c = find(&s.bases, 8, "bf16", "");
    ck_assert_int_eq(c->pub.infeasible, OPI_R_DIVISIBILITY);
    ck_assert_str_eq(c->pub.reason, "28 attention heads do not divide over TP 8");
    finish(&s);
}
END_TEST

START_TEST(pipeline_only_when_asked)
{
    const opi_llm llm = fake_llm();
    const opi_gpu a100 = fake_gpu("A100-80GB-SXM");
    const opi_inventory line = line_of(&a100, 16);
    opi_advise_request r = fake_request(&llm, &line, 1);
    setup s;
    enumerate(&s, &r);
    for (size_t i = 0; i < s.bases.n; i++)
        ck_assert_int_eq(s.bases.v[i].pub.config.pp, 1);
    finish(&s);
    r.pipeline = 1;
    enumerate(&s, &r);
    int found = 0;
    for (size_t i = 0; i < s.bases.n; i++) {
        const opi__cand *c = &s.bases.v[i];
        ck_assert_int_eq(c->pub.config.n_gpus, c->pub.config.tp * c->pub.config.pp);
        found |= c->pub.config.tp == 8 && c->pub.config.pp == 2 && !c->pub.infeasible;
    }
    ck_assert_int_eq(found, 1);
    finish(&s);
}
END_TEST

START_TEST(context_precision_facts_engine)
{
    opi_llm llm = fake_llm();
    opi_gpu gpu = fake_gpu("A100-80GB-SXM");
    const opi_inventory line = line_of(&gpu, 8);
    opi_advise_request r = fake_request(&llm, &line, 1);
    setup s;
    llm.max_context = 40960;
    r.input_len = 500000;
    enumerate(&s, &r);
    ck_assert_uint_eq(s.bases.n, 1);
    ck_assert_int_eq(s.bases.v[0].pub.infeasible, OPI_R_CONTEXT);
    ck_assert_str_eq(s.bases.v[0].pub.reason, "input + output = 500256 tokens, test/Llama-70B holds 40960");
    finish(&s);
    r.input_len = 1024;
    r.max_context = 65536;
    enumerate(&s, &r);
    ck_assert_int_eq(s.bases.v[0].pub.infeasible, OPI_R_CONTEXT);
    ck_assert_ptr_nonnull(strstr(s.bases.v[0].pub.reason, "65536"));
    ck_assert_ptr_nonnull(strstr(s.bases.v[0].pub.reason, "40960"));
    finish(&s);
    r.max_context = 0;

    const char *precisions[] = {"FP8", "BFloat16", "bf16"}, *engines[] = {"TRTLLM", "vllm"};
    r.precisions = precisions;
    r.n_precisions = 3;
    r.engines = engines;
    r.n_engines = 2;
    enumerate(&s, &r);
    ck_assert_uint_eq(s.ask.n_precisions, 2); /* one name for one thing */
    ck_assert_int_eq(find(&s.bases, 8, "fp8", "")->pub.infeasible, OPI_R_PRECISION);
    ck_assert_int_eq(find(&s.bases, 8, "bf16", "tensorrt-llm")->pub.infeasible, OPI_FEASIBLE);
    ck_assert_ptr_null(find(&s.bases, 8, "bf16", "sglang"));
    finish(&s);

    gpu = fake_gpu("MI300X-192GB");
    r.precisions = NULL;
    r.n_precisions = 0;
    enumerate(&s, &r);
    ck_assert_int_eq(find(&s.bases, 8, "bf16", "tensorrt-llm")->pub.infeasible, OPI_R_ENGINE);
    ck_assert_int_eq(find(&s.bases, 8, "bf16", "vllm")->pub.infeasible, OPI_FEASIBLE);
    finish(&s);

    gpu = fake_gpu("SN40L-64GB"); /* no bandwidth in the table */
    enumerate(&s, &r);
    ck_assert_uint_eq(s.bases.n, 1);
    ck_assert_int_eq(s.bases.v[0].pub.infeasible, OPI_R_FACTS);
    ck_assert_str_eq(s.bases.v[0].pub.reason, "the memory bandwidth of SN40L-64GB is not known");
    finish(&s);
}
END_TEST

START_TEST(in_flight_is_split)
{
    const opi_llm llm = fake_llm();
    const opi_gpu h100 = fake_gpu("H100-80GB-SXM");
    const opi_inventory line = line_of(&h100, 24);
    opi_advise_request r = fake_request(&llm, &line, 1);
    fake f = {0};
    setup s;
    int seen[33] = {0};
    enumerate(&s, &r);
    share(&s, &f);
    ck_assert_int_eq(f.calls, 0); /* nothing has to be predicted to split */
    for (size_t i = 0; i < s.all.n; i++) {
        const opi__cand *c = &s.all.v[i];
        if (c->pub.infeasible)
            continue;
        ck_assert_double_eq_tol(c->pub.config.concurrency * c->pub.replicas, 64, 1e-9);
        ck_assert_str_eq(c->pub.config.load_kind, "concurrency");
        ck_assert_int_le(c->pub.replicas * c->pub.config.n_gpus, 24);
        if (c->pub.config.tp == 4 && !strcmp(c->pub.config.precision, "bf16") && !strcmp(c->pub.config.engine, "vllm"))
            seen[c->pub.replicas]++;
    }
    for (int k = 0; k <= 32; k++) /* powers of two, and all six */
        ck_assert_int_eq(seen[k], k == 1 || k == 2 || k == 4 || k == 6);
    finish(&s);
    r.concurrency = 2.5; /* no more replicas than requests */
    enumerate(&s, &r);
    share(&s, &f);
    for (size_t i = 0; i < s.all.n; i++)
        ck_assert_int_le(s.all.v[i].pub.replicas, 2);
    finish(&s);
}
END_TEST

START_TEST(fewest_replicas_for_a_demand)
{
    const opi_llm llm = fake_llm();
    const opi_gpu h100 = fake_gpu("H100-80GB-SXM");
    const opi_inventory line = line_of(&h100, 800);
    opi_advise_request r = fake_request(&llm, &line, 1);
    fake f = {0};
    setup s;
    r.concurrency = 2000;
    r.demand_tok_s = 50000;
    enumerate(&s, &r);
    share(&s, &f);
    size_t checked = 0;
    for (size_t i = 0; i < s.all.n; i++) {
        opi__cand c = s.all.v[i];
        if (c.pub.infeasible)
            continue;
        const int32_t n = c.pub.replicas;
        const int first = i == 0 || s.all.v[i - 1].pub.infeasible || s.all.v[i - 1].pub.config.tp != c.pub.config.tp ||
                          strcmp(s.all.v[i - 1].pub.config.precision, c.pub.config.precision) != 0 ||
                          strcmp(s.all.v[i - 1].pub.config.engine, c.pub.config.engine) != 0;
        ck_assert_double_ge(n * fake_tok_s(&f, &c.pub.config), 50000);
        if (!first || n == 1)
            continue;
        c.pub.config.concurrency = 2000.0 / (n - 1); /* one less does not do */
        ck_assert_double_lt((n - 1) * fake_tok_s(&f, &c.pub.config), 50000);
        checked++;
    }
    ck_assert_uint_ge(checked, 6);
    ck_assert_int_le(f.calls, 12); /* bisection, all bases in one call a step */
    finish(&s);

    r.demand_tok_s = 1e9; /* nobody can: the most each can do stays in the table */
    enumerate(&s, &r);
    share(&s, &f);
    for (size_t i = 0; i < s.all.n; i++)
        if (!s.all.v[i].pub.infeasible)
            ck_assert_int_eq(s.all.v[i].pub.replicas, s.all.v[i].max_replicas);
    finish(&s);
}
END_TEST

START_TEST(rate_by_little)
{
    const opi_llm llm = fake_llm();
    const opi_gpu h100 = fake_gpu("H100-80GB-SXM");
    const opi_inventory line = line_of(&h100, 64);
    opi_advise_request r = fake_request(&llm, &line, 1);
    fake f = {0};
    setup s;
    r.concurrency = 0;
    r.request_rate = 40; /* 10,240 output tokens/s */
    enumerate(&s, &r);
    ck_assert_int_eq(s.ask.open_loop, 1);
    ck_assert_int_eq(s.ask.demand_implied, 1);
    ck_assert_double_eq(s.ask.demand, 10240);
    share(&s, &f);
    size_t feasible = 0, unsustained = 0, busy = 0;
    for (size_t i = 0; i < s.all.n; i++) {
        const opi__cand *c = &s.all.v[i];
        const opi_config *k = &c->pub.config;
        if (c->pub.infeasible)
            continue;
        feasible++;
        ck_assert_str_eq(k->load_kind, "concurrency");
        ck_assert_double_eq(k->request_rate, 0);
        if (!c->sustained) {
            unsustained++;
            continue;
        }
        const double tok_s = fake_tok_s(&f, k), rate = 40.0 / c->pub.replicas;
        ck_assert_double_ge(tok_s * c->pub.replicas, 10240);
        if (k->concurrency > 1) { /* C = rate * T(C) within the last halving of the bracket */
            ck_assert_double_eq_tol(rate * fake_p50(&f, k, OPI__T_E2E) / k->concurrency, 1, 0.1);
            busy++;
        }
    }
    ck_assert_uint_eq(s.converted, feasible - unsustained);
    ck_assert_uint_ge(busy, 6);
    finish(&s);
}
END_TEST

START_TEST(rate_kept_where_measured)
{
    const opi_llm llm = fake_llm();
    const opi_gpu h100 = fake_gpu("H100-80GB-SXM");
    const opi_inventory line = line_of(&h100, 64);
    opi_advise_request r = fake_request(&llm, &line, 1);
    fake f = {.knows_rate = 1};
    setup s;
    r.concurrency = 0;
    r.request_rate = 40;
    size_t kept = 0;
    enumerate(&s, &r);
    share(&s, &f);
    for (size_t i = 0; i < s.all.n; i++)
        if (!s.all.v[i].pub.infeasible && s.all.v[i].sustained) {
            ck_assert_str_eq(s.all.v[i].pub.config.load_kind, "rate");
            ck_assert_double_eq_tol(s.all.v[i].pub.config.request_rate * s.all.v[i].pub.replicas, 40, 1e-9);
            ck_assert_double_eq(s.all.v[i].pub.config.concurrency, 0);
            kept++;
        }
    ck_assert_uint_ge(kept, 6);
    ck_assert_uint_eq(s.converted, 0);
    finish(&s);

    opi_slo slo = {OPI__T_ITL_P50, 50}; /* … for every target in use */
    r.slos = &slo;
    r.n_slos = 1;
    f.rate_unknown_for = 1u << OPI__T_ITL_P50;
    enumerate(&s, &r);
    share(&s, &f);
    for (size_t i = 0; i < s.all.n; i++)
        if (!s.all.v[i].pub.infeasible)
            ck_assert_str_eq(s.all.v[i].pub.config.load_kind, "concurrency");
    ck_assert_uint_ge(s.converted, 6);
    finish(&s);
}
END_TEST

START_TEST(rate_beyond_the_inventory)
{
    const opi_llm llm = fake_llm();
    const opi_gpu h100 = fake_gpu("H100-80GB-SXM");
    const opi_inventory line = line_of(&h100, 4);
    opi_advise_request r = fake_request(&llm, &line, 1);
    fake f = {0};
    setup s;
    r.concurrency = 0;
    r.request_rate = 1e5;
    enumerate(&s, &r);
    share(&s, &f);
    for (size_t i = 0; i < s.all.n; i++)
        if (!s.all.v[i].pub.infeasible) {
            ck_assert_int_eq(s.all.v[i].sustained, 0);
            ck_assert_int_eq(s.all.v[i].pub.replicas, s.all.v[i].max_replicas);
        }
    finish(&s);
}
END_TEST

START_TEST(demand_alone_is_a_rate)
{
    const opi_llm llm = fake_llm();
    const opi_gpu h100 = fake_gpu("H100-80GB-SXM");
    const opi_inventory line = line_of(&h100, 64);
    opi_advise_request r = fake_request(&llm, &line, 1);
    setup s;
    r.concurrency = 0;
    r.demand_tok_s = 5120;
    enumerate(&s, &r);
    ck_assert_int_eq(s.ask.open_loop, 1);
    ck_assert_int_eq(s.ask.demand_implied, 0);
    ck_assert_double_eq(s.ask.request_rate, 20);
    finish(&s);
}
END_TEST

START_TEST(judged_throughput)
{
    opi_prediction p = {.p50 = 100, .lo = 60};
    ck_assert_double_eq(opi__judged(&p, 0), 100);
    ck_assert_double_eq(opi__judged(&p, 1), 60);
    ck_assert_double_eq_tol(opi__judged(&p, 0.25), 90, 1e-12);
    p.lo = NAN;
    ck_assert_double_eq(opi__judged(&p, 1), 100);
    p.lo = -INFINITY;
    ck_assert_double_eq(opi__judged(&p, 1), 100);
    p.p50 = NAN;
    ck_assert_double_eq(opi__judged(&p, 0), 0);
}
END_TEST

Suite *suite_candidates(void)
{
    Suite *s = suite_create("candidates");
    TCase *t = tcase_create("candidates");
    tcase_add_test(t, precisions_of_generations);
    tcase_add_test(t, default_precisions);
    tcase_add_test(t, engines_of_vendors);
    tcase_add_test(t, replicas_fit_nodes);
    tcase_add_test(t, degrees_and_reasons);
    tcase_add_test(t, pipeline_only_when_asked);
    tcase_add_test(t, context_precision_facts_engine);
    tcase_add_test(t, in_flight_is_split);
    tcase_add_test(t, fewest_replicas_for_a_demand);
    tcase_add_test(t, rate_by_little);
    tcase_add_test(t, rate_kept_where_measured);
    tcase_add_test(t, rate_beyond_the_inventory);
    tcase_add_test(t, demand_alone_is_a_rate);
    tcase_add_test(t, judged_throughput);
    suite_add_tcase(s, t);
    return s;
}
