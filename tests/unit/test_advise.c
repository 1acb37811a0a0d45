/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ctx.h"
#include "base/json.h"
#include "decide/everyday.h"
#include "decide/rank.h"
#include "decide/score.h"
#include "fake_oracle.h"

#include <check.h>
#include <stdlib.h>

Suite *suite_advise(void);

static opi_ctx *ctx;
static opi_llm llm;
static opi_gpu h100, a100, h200;
static opi_inventory lines[3];
static opi_advise_request request;
static fake model;

static void setup(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
    llm = fake_llm();
    h100 = fake_gpu("H100-80GB-SXM");
    a100 = fake_gpu("A100-80GB-SXM");
    h200 = fake_gpu("H200-141GB");
    lines[0] = (opi_inventory){.struct_size = sizeof *lines, .count = 8, .gpu = &h100, .price_usd_h = 3};
    lines[1] = (opi_inventory){.struct_size = sizeof *lines, .count = 8, .gpu = &a100, .price_usd_h = 2};
    lines[2] = (opi_inventory){.struct_size = sizeof *lines, .count = 8, .gpu = &h200, .price_usd_h = 4};
    request = fake_request(&llm, lines, 3);
    model = (fake){0};
}

static void teardown(void)
{
    opi_ctx_destroy(ctx);
}

static opi_advice *advise(void)
{
    const opi__oracle oracle = fake_oracle(&model);
    opi_advice *a = NULL;
    opi_error err = {0};
    ck_assert_msg(opi__advise_with(ctx, &oracle, &request, &a, &err) == OPI_OK, "%s", err.message);
    return a;
}

static opi_candidate at(const opi_advice *a, size_t rank)
{
    opi_candidate c = {.struct_size = sizeof c};
    ck_assert_int_eq(opi_advice_candidate(a, rank, &c, NULL), OPI_OK);
    return c;
}

static opi_candidate winner_of(const opi_advice *a)
{
    size_t w = SIZE_MAX;
    ck_assert_int_eq(opi_advice_verdict(a, &w), OPI_ADVISE_RECOMMENDED);
    return at(a, w);
}

static int has_note(const opi_advice *a, const char *code)
{
    for (size_t i = 0; i < a->n_notes; i++)
        if (!strcmp(a->notes[i].code, code))
            return 1;
    return 0;
}

static void slo(const char *name, double limit, opi_slo *out)
{
    ck_assert_int_eq(opi_target_find(name, &out->target, NULL), OPI_OK);
    out->limit = limit;
    request.slos = out;
    request.n_slos = 1;
}

/* ---- order and terms ---- */

START_TEST(cheapest_per_token)
{
    opi_advice *a = advise();
    ck_assert_int_eq(model.calls, 1); /* one call for all candidates and targets */
    double last = INFINITY;
    ck_assert_uint_gt(opi_advice_feasible(a), 30);
    for (size_t r = 0; r < opi_advice_feasible(a); r++) {
        const opi_candidate c = at(a, r);
        const opi_terms *t = &c.terms;
        ck_assert_int_eq(c.infeasible, OPI_FEASIBLE);
        ck_assert_double_le(c.score, last);
        last = c.score;
        ck_assert_double_eq(t->total, t->value + t->node + t->queue + t->restart + t->slo + t->kv + t->power);
        const double gpus = (double)c.config.n_gpus * c.replicas;
        ck_assert_double_eq_tol(t->node, -lines[c.inventory_index].price_usd_h * gpus, 1e-9);
        ck_assert_double_eq_tol(c.out_tok_s, c.replicas * fake_tok_s(&model, &c.config), 1e-6);
        ck_assert_double_eq_tol(c.usd_per_mtok, -t->node / (c.out_tok_s * 0.0036), 1e-9);
        ck_assert_double_eq_tol(c.score, t->total / (c.out_tok_s * 0.0036), 1e-9);
        ck_assert_int_eq(c.verdict, OPI_P_OK);
    }
    for (size_t r = opi_advice_feasible(a); r < opi_advice_count(a); r++)
        ck_assert_int_ne(at(a, r).infeasible, OPI_FEASIBLE);
    ck_assert_uint_lt(opi_advice_feasible(a), opi_advice_count(a));
    size_t w;
    ck_assert_int_eq(opi_advice_verdict(a, &w), OPI_ADVISE_RECOMMENDED);
    ck_assert_uint_eq(w, 0);
    ck_assert(has_note(a, "cheapest-per-token"));
    ck_assert_str_eq(opi_advice_probe(a), "");
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), " wins with $"));
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "; next is "));
    opi_advice_free(a);
}
END_TEST

START_TEST(value_and_demand)
{
    opi_utility u;
    opi_utility_default(&u);
    u.value_usd_per_mtok = 6;
    request.utility = &u;
    opi_advice *a = advise();
    const opi_candidate valued = winner_of(a);
    for (size_t r = 0; r < opi_advice_feasible(a); r++) {
        const opi_candidate c = at(a, r);
        ck_assert_double_eq_tol(c.terms.value, 6 * c.out_tok_s * 0.0036, 1e-9);
        ck_assert_double_eq(c.score, c.terms.total);
        ck_assert_double_le(c.score, valued.score);
    }
    opi_advice_free(a);

    u.value_usd_per_mtok = 0;
    request.demand_tok_s = 3000;
    a = advise();
    const opi_candidate cheap = winner_of(a);
    ck_assert_int_eq(cheap.meets_demand, 1);
    ck_assert_double_ge(cheap.out_tok_s, 3000);
    ck_assert(has_note(a, "cheapest-for-demand"));
    int missed = 0;
    for (size_t r = 0; r < opi_advice_feasible(a); r++) {
        const opi_candidate c = at(a, r);
        ck_assert_int_eq(c.meets_demand, c.out_tok_s >= 3000);
        if (c.meets_demand) {
            ck_assert_int_eq(missed, 0); /* those that miss it rank below all that meet it */
            ck_assert_double_ge(c.terms.node, cheap.terms.node * 8);
            ck_assert_double_le(c.score, cheap.score);
        }
        missed |= !c.meets_demand;
    }
    opi_advice_free(a);

    request.demand_tok_s = 1e8;
    a = advise();
    size_t w = 0;
    ck_assert_int_eq(opi_advice_verdict(a, &w), OPI_ADVISE_ABSTAINED);
    ck_assert_uint_eq(w, SIZE_MAX);
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "delivers the 100000000 output tokens/s asked for"));
    for (size_t r = 1; r < opi_advice_feasible(a); r++)
        ck_assert_double_ge(at(a, r - 1).out_tok_s, at(a, r).out_tok_s);
    opi_advice_free(a);
}
END_TEST

START_TEST(risk_takes_the_bad_end)
{
    opi_utility u;
    opi_utility_default(&u);
    u.value_usd_per_mtok = 6;
    u.power_usd_per_kwh = 0.2;
    request.utility = &u;
    for (int i = 0; i <= 2; i++) {
        u.risk = i / 2.0;
        opi_advice *a = advise();
        for (size_t r = 0; r < opi_advice_feasible(a); r++) {
            const opi_candidate c = at(a, r);
            const double lost = c.terms.value - c.terms.value / 1.25;
            const double watts = 0.5 * c.config.gpu->tdp_w, worse = fmin(watts * 1.25, c.config.gpu->tdp_w);
            const double power = 0.2 * (worse - watts) * c.config.n_gpus * c.replicas / 1000;
            ck_assert_double_eq_tol(c.score, c.terms.total - u.risk * (lost + power), 1e-9);
        }
        opi_advice_free(a);
    }
}
END_TEST

START_TEST(launch_and_memory_of_candidates)
{
    opi_advice *a = advise();
    for (size_t r = 0; r < opi_advice_feasible(a); r++) {
        const opi_candidate c = at(a, r);
        opi_prior p = {.struct_size = sizeof p};
        opi_memory m = {.struct_size = sizeof m};
        ck_assert_int_eq(opi_prior_launch(c.config.gpu->name, c.config.n_gpus, &p, NULL), OPI_OK);
        ck_assert_double_eq(c.launch_success, p.mean);
        ck_assert_double_eq(c.launch_lo, p.lo);
        ck_assert_double_eq(c.launch_hi, p.hi);
        ck_assert_int_eq(opi_memory_fit(&c.config, &m, NULL), OPI_OK); /* under this replica's share of the load */
        ck_assert_double_eq(c.memory.kv_pressure, m.kv_pressure);
    }
    opi_advice_free(a);
}
END_TEST

/* ---- prices ---- */

START_TEST(unpriced_is_not_free)
{
    opi_gpu own = h100; /* nobody cites a price for it */
    own.price_ondemand_usd_h = own.price_rental_usd_h = NAN;
    lines[0].gpu = &own;
    lines[0].price_usd_h = 0;
    opi_advice *a = advise();
    int unpriced = 0;
    for (size_t r = 0; r < opi_advice_feasible(a); r++) {
        const opi_candidate c = at(a, r);
        ck_assert_int_eq(c.price_stated, c.inventory_index != 0);
        if (c.price_stated)
            ck_assert_int_eq(unpriced, 0);
        else {
            unpriced = 1;
            ck_assert(isnan(c.usd_per_mtok));
            ck_assert_double_eq(c.terms.node, 0);
        }
    }
    ck_assert_int_eq(unpriced, 1);
    ck_assert(has_note(a, "price-not-stated"));
    ck_assert(!has_note(a, "rank-without-price"));
    opi_advice_free(a);

    request.n_inventory = 1; /* no price at all */
    a = advise();
    ck_assert(has_note(a, "rank-without-price"));
    const opi_candidate w = winner_of(a);
    ck_assert_double_eq_tol(w.score, w.out_tok_s / (w.config.n_gpus * w.replicas), 1e-9);
    for (size_t r = 0; r < opi_advice_feasible(a); r++)
        ck_assert_double_le(at(a, r).score, w.score);
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "no price stated"));
    opi_advice_free(a);
}
END_TEST

START_TEST(cited_prices_of_one_kind)
{
    for (int i = 0; i < 3; i++)
        lines[i].price_usd_h = 0;
    h100.price_ondemand_usd_h = 10;
    a100.price_ondemand_usd_h = 5;
    h200.price_ondemand_usd_h = NAN;
    h100.price_rental_usd_h = h200.price_rental_usd_h = a100.price_rental_usd_h = NAN;
    h200.price_rental_usd_h = 1; /* a long-term rental beside on-demand prices is not comparable */
    opi_advice *a = advise();
    ck_assert_double_eq(a->ask.lines[0].price, 10);
    ck_assert_double_eq(a->ask.lines[1].price, 5);
    ck_assert_int_eq(a->ask.lines[2].price_kind, OPI__PRICE_NONE);
    ck_assert(has_note(a, "price-cited"));
    ck_assert(has_note(a, "price-not-stated"));
    opi_advice_free(a);
    h100.price_rental_usd_h = a100.price_rental_usd_h = 2;
    a = advise();
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(a->ask.lines[i].price_kind, OPI__PRICE_RENTAL);
    opi_advice_free(a);
}
END_TEST

/* ---- service-level objectives ---- */

START_TEST(slo_from_the_distribution)
{
    opi_slo s;
    slo("itl_p50", 8, &s);
    opi_advice *a = advise();
    int missed = 0;
    for (size_t r = 0; r < opi_advice_feasible(a); r++) {
        const opi_candidate c = at(a, r);
        double above;
        fake_exceed(&model, &c.config, s.target, 8, &above, NULL);
        ck_assert_double_eq_tol(c.slo_violation, above, 1e-12);
        ck_assert_int_eq(c.meets_slo, above < 0.5);
        ck_assert_double_eq_tol(c.terms.slo, -20 * above, 1e-9);
        ck_assert(!(c.meets_slo && missed)); /* missing it ranks below */
        missed |= !c.meets_slo;
    }
    ck_assert_int_eq(missed, 1);
    ck_assert_int_eq(winner_of(a).meets_slo, 1);
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "SLO met with probability"));
    opi_advice_free(a);
}
END_TEST

START_TEST(slo_of_a_sum_is_shared)
{
    opi_slo s;
    slo("throughput_out_tok_s", 2000, &s); /* at least; all replicas together */
    opi_advice *a = advise();
    for (size_t r = 0; r < opi_advice_feasible(a); r++) {
        const opi_candidate c = at(a, r);
        double above;
        fake_exceed(&model, &c.config, s.target, 2000.0 / c.replicas, &above, NULL);
        ck_assert_double_eq_tol(c.slo_violation, 1 - above, 1e-12);
    }
    opi_advice_free(a);
}
END_TEST

START_TEST(slos_together)
{
    opi_slo s[2];
    slo("itl_p50", 8, &s[0]);
    ck_assert_int_eq(opi_target_find("ttft_p50", &s[1].target, NULL), OPI_OK);
    s[1].limit = 90;
    request.n_slos = 2;
    opi_advice *a = advise();
    for (size_t r = 0; r < opi_advice_feasible(a); r++) {
        const opi_candidate c = at(a, r);
        double p, q;
        fake_exceed(&model, &c.config, s[0].target, 8, &p, NULL);
        fake_exceed(&model, &c.config, s[1].target, 90, &q, NULL);
        ck_assert_double_eq_tol(c.slo_violation, 1 - (1 - p) * (1 - q), 1e-9);
        ck_assert_double_eq_tol(c.terms.slo, -20 * (p + q), 1e-9);
    }
    opi_advice_free(a);
}
END_TEST

START_TEST(slo_nobody_meets)
{
    opi_slo s;
    slo("itl_p50", 0.5, &s);
    opi_advice *a = advise();
    size_t w = 0;
    ck_assert_int_eq(opi_advice_verdict(a, &w), OPI_ADVISE_ABSTAINED);
    ck_assert_uint_eq(w, SIZE_MAX);
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "no configuration meets the SLO"));
    for (size_t r = 1; r < opi_advice_feasible(a); r++)
        ck_assert_double_le(at(a, r - 1).slo_violation, at(a, r).slo_violation);
    opi_advice_free(a);
}
END_TEST

START_TEST(slo_without_calibration)
{
    opi_slo s;
    slo("itl_p50", 8, &s);
    model.uncalibrated = 1u << OPI__T_ITL_P50;
    opi_advice *a = advise();
    ck_assert(has_note(a, "slo-uncalibrated"));
    for (size_t r = 0; r < opi_advice_feasible(a); r++) {
        const opi_candidate c = at(a, r);
        ck_assert_double_eq(c.slo_violation, fake_p50(&model, &c.config, OPI__T_ITL_P50) > 8);
        ck_assert_int_eq(c.verdict, OPI_P_OK);
    }
    opi_advice_free(a);
}
END_TEST

/* ---- honesty ---- */

START_TEST(outside_is_never_recommended)
{
    opi_advice *a = advise();
    const opi_candidate open = winner_of(a);
    opi_advice_free(a);
    model.outside_gpu = open.inventory_index == 0 ? "H100-80GB-SXM" : open.inventory_index == 1 ? "A100-80GB-SXM" : "H200-141GB";
    a = advise();
    size_t w = SIZE_MAX;
    ck_assert_int_eq(opi_advice_verdict(a, &w), OPI_ADVISE_RECOMMENDED);
    ck_assert_uint_gt(w, 0);
    ck_assert_int_eq(at(a, 0).verdict, OPI_P_OOD); /* still the best-looking, still shown */
    ck_assert_str_ne(at(a, 0).reason, "");
    ck_assert_int_eq(at(a, w).verdict, OPI_P_OK);
    for (size_t r = 0; r < w; r++)
        ck_assert_int_eq(at(a, r).verdict, OPI_P_OOD);
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "is not recommended"));
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), model.outside_gpu));
    ck_assert_ptr_nonnull(strstr(opi_advice_probe(a), model.outside_gpu));
    ck_assert_ptr_nonnull(strstr(opi_advice_probe(a), "Measuring test/Llama-70B on "));
    ck_assert_ptr_nonnull(strstr(opi_advice_probe(a), "1024 input and 256 output tokens"));
    opi_advice_free(a);
}
END_TEST

START_TEST(all_outside_abstains)
{
    request.n_inventory = 1;
    model.outside_gpu = "H100-80GB-SXM";
    opi_advice *a = advise();
    size_t w = 0;
    ck_assert_int_eq(opi_advice_verdict(a, &w), OPI_ADVISE_ABSTAINED);
    ck_assert_uint_eq(w, SIZE_MAX);
    ck_assert_uint_gt(opi_advice_feasible(a), 0); /* the ranked table is still there */
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "every feasible configuration lies outside"));
    ck_assert_str_ne(opi_advice_probe(a), "");
    opi_advice_free(a);

    request.n_inventory = 2; /* inside ones that miss the SLO do not stand in for outside ones that seem to meet it */
    opi_slo s;
    slo("itl_p50", 8, &s);
    a = advise();
    ck_assert_int_eq(opi_advice_verdict(a, NULL), OPI_ADVISE_ABSTAINED);
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "that seems to meet the requirements"));
    opi_advice_free(a);
}
END_TEST

START_TEST(measured_beats_a_close_new_combination)
{
    request.n_inventory = 1;
    model.new_engine = "vllm"; /* the engines are alike but for this */
    model.slow_new = 1.03;
    opi_advice *a = advise();
    size_t w = SIZE_MAX;
    ck_assert_int_eq(opi_advice_verdict(a, &w), OPI_ADVISE_RECOMMENDED);
    ck_assert_int_eq(at(a, 0).verdict, OPI_P_NEW_COMBINATION);
    ck_assert_int_eq(at(a, w).verdict, OPI_P_OK);
    ck_assert_double_ge(at(a, w).score, at(a, 0).score * 1.05); /* costs: within 5 % */
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "the measured one is preferred"));
    opi_advice_free(a);
    model.slow_new = 1.3; /* clearly better: recommended, and said to be new */
    a = advise();
    ck_assert_int_eq(opi_advice_verdict(a, &w), OPI_ADVISE_RECOMMENDED);
    ck_assert_uint_eq(w, 0);
    ck_assert_int_eq(at(a, 0).verdict, OPI_P_NEW_COMBINATION);
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "a new combination (H100-80GB-SXM is not measured so)"));
    ck_assert_ptr_nonnull(strstr(opi_advice_probe(a), "vllm"));
    opi_advice_free(a);
}
END_TEST

START_TEST(verdict_over_the_targets_used)
{
    model.uncalibrated = 1u << OPI__T_OUT_TOK_S; /* throughput itself from physics only: nothing to recommend */
    opi_advice *a = advise();
    ck_assert_int_eq(opi_advice_verdict(a, NULL), OPI_ADVISE_ABSTAINED);
    ck_assert_int_eq(at(a, 0).verdict, OPI_P_UNCALIBRATED);
    opi_advice_free(a);
    model.uncalibrated = 1u << OPI__T_POWER | 1u << OPI__T_KV_USAGE; /* not used, or a small term */
    a = advise();
    ck_assert_int_eq(opi_advice_verdict(a, NULL), OPI_ADVISE_RECOMMENDED);
    opi_advice_free(a);
}
END_TEST

START_TEST(nothing_feasible)
{
    opi_gpu l4 = fake_gpu("L4-24GB");
    llm.params_b = llm.active_params_b = 405;
    llm.n_layers = 126;
    llm.hidden_size = 16384;
    llm.n_heads = 128;
    llm.intermediate_size = 53248;
    const char *bf16[] = {"bf16"};
    request.precisions = bf16;
    request.n_precisions = 1;
    lines[0].gpu = &l4;
    lines[0].count = 1;
    request.n_inventory = 1;
    opi_advice *a = advise();
    size_t w = 0;
    ck_assert_int_eq(opi_advice_verdict(a, &w), OPI_ADVISE_NOTHING_FEASIBLE);
    ck_assert_uint_eq(w, SIZE_MAX);
    ck_assert_uint_eq(opi_advice_feasible(a), 0);
    ck_assert_uint_gt(opi_advice_count(a), 0);
    ck_assert_int_eq(model.calls, 0);
    const opi_candidate c = at(a, 0);
    ck_assert_int_eq(c.infeasible, OPI_R_MEMORY);
    ck_assert_double_lt(c.memory.margin_gib, -700);
    ck_assert_ptr_nonnull(strstr(c.reason, "GiB a GPU missing"));
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "Nothing is feasible"));
    opi_prediction p;
    ck_assert_int_eq(opi_advice_prediction(a, 0, 0, &p, sizeof p, NULL), OPI_E_RANGE);
    opi_advice_free(a);
}
END_TEST

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

/* ---- thousands of candidates ---- */

START_TEST(ranks_many)
{
    lines[0].count = lines[1].count = lines[2].count = 4096;
    request.concurrency = 100000;
    request.pipeline = 1;
    opi_advice *a = advise();
    ck_assert_uint_gt(opi_advice_feasible(a), 1500);
    ck_assert_int_eq(model.calls, 1);
    char *seen = calloc(opi_advice_count(a), 1);
    for (size_t r = 0; r < opi_advice_count(a); r++) {
        ck_assert_int_eq(seen[a->order[r]], 0); /* a permutation … */
        seen[a->order[r]] = 1;
        if (r > 0)
            ck_assert_int_eq(opi__ranks_before(opi__ranked(a, r), opi__ranked(a, r - 1)), 0); /* … in order */
    }
    free(seen);
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

Suite *suite_advise(void)
{
    Suite *s = suite_create("advise");
    TCase *t = tcase_create("advise");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, cheapest_per_token);
    tcase_add_test(t, value_and_demand);
    tcase_add_test(t, risk_takes_the_bad_end);
    tcase_add_test(t, launch_and_memory_of_candidates);
    tcase_add_test(t, unpriced_is_not_free);
    tcase_add_test(t, cited_prices_of_one_kind);
    tcase_add_test(t, slo_from_the_distribution);
    tcase_add_test(t, slo_of_a_sum_is_shared);
    tcase_add_test(t, slos_together);
    tcase_add_test(t, slo_nobody_meets);
    tcase_add_test(t, slo_without_calibration);
    tcase_add_test(t, outside_is_never_recommended);
    tcase_add_test(t, all_outside_abstains);
    tcase_add_test(t, measured_beats_a_close_new_combination);
    tcase_add_test(t, verdict_over_the_targets_used);
    tcase_add_test(t, nothing_feasible);
    tcase_add_test(t, getters);
    tcase_add_test(t, json_document);
    tcase_add_test(t, same_question_same_answer);
    tcase_add_test(t, answer_outlives_the_request);
    tcase_add_test(t, ranks_many);
    tcase_add_loop_test(t, bad_input, 0, sizeof spoils / sizeof *spoils);
    tcase_add_test(t, context_beyond_the_llm);
    tcase_add_test(t, model_that_fails);
    tcase_add_test(t, out_of_memory);
    tcase_add_test(t, everyday_is_the_table);
    tcase_add_test(t, everyday_counts_verdicts);
    suite_add_tcase(s, t);
    return s;
}
