/* SPDX-License-Identifier: Apache-2.0 */
/* What is recommended, and in which order. */
#include "decide/rank.h"
#include "fake_world.h"

#include <stdlib.h>

Suite *suite_advise(void);

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
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "No configuration meets the SLO"));
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
    static const char *const gpus[] = {"H100-80GB-SXM", "A100-80GB-SXM", "H200-141GB"};
    model.outside_gpu = gpus[open.inventory_index];
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
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "Every feasible configuration lies outside"));
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
    ck_assert_ptr_nonnull(strstr(opi_advice_sentence(a), "nearest miss"));
    opi_prediction p;
    ck_assert_int_eq(opi_advice_prediction(a, 0, 0, &p, sizeof p, NULL), OPI_E_RANGE);
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
    tcase_add_test(t, ranks_many);
    suite_add_tcase(s, t);
    return s;
}
