/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is asked: terms sum up, the load and the inventory are respected, the order holds, and nothing outside what was
 * measured or short of the requirements is recommended. */
#include "../unit/fake_oracle.h"
#include "base/rng.h"
#include "decide/rank.h"

#include <check.h>

Suite *suite_decide(void);

#define ROUNDS 300

typedef struct question {
    opi_llm llm;
    opi_gpu gpu[3];
    opi_inventory line[3];
    opi_slo slo[2];
    opi_utility utility;
    opi_advise_request request;
    fake model;
} question;

static double log_uniform(opi__rng *r, double lo, double hi)
{
    return lo * pow(hi / lo, opi__rng_uniform(r));
}

static const char *one_of(opi__rng *r, const char *const *list, uint64_t n)
{
    return list[opi__rng_below(r, n)];
}

static void draw_model(opi__rng *r, fake *f)
{
    static const char *const gpus[] = {NULL, NULL, "H100-80GB-SXM", "L40S-48GB", "MI300X-192GB"};
    static const char *const engines[] = {NULL, NULL, "vllm", "sglang"};
    *f = (fake){.outside_gpu = one_of(r, gpus, 5), .outside_engine = one_of(r, engines, 4),
                .new_engine = one_of(r, engines, 4), .slow_new = 0.8 + 0.5 * opi__rng_uniform(r),
                .knows_rate = (int)opi__rng_below(r, 2)};
    if (opi__rng_below(r, 4) == 0)
        f->uncalibrated = (uint32_t)opi__rng_below(r, 1u << OPI__T_COUNT);
}

static void draw(opi__rng *r, question *q)
{
    static const char *const gpus[] = {"H100-80GB-SXM", "A100-80GB-SXM", "L40S-48GB", "MI300X-192GB", "B200-180GB", "L4-24GB",
                                       "V100-32GB-SXM"};
    static const int32_t heads[] = {64, 28, 40, 24, 12};
    static const size_t targets[] = {OPI__T_ITL_P50, OPI__T_TTFT_P50, OPI__T_OUT_TOK_S, OPI__T_SM_ACTIVITY};
    memset(q, 0, sizeof *q);
    q->llm = fake_llm();
    q->llm.params_b = q->llm.active_params_b = log_uniform(r, 1, 400);
    q->llm.n_heads = q->llm.n_kv_heads = heads[opi__rng_below(r, 5)];
    q->request = fake_request(&q->llm, q->line, 1 + opi__rng_below(r, 3));
    for (size_t i = 0; i < q->request.n_inventory; i++) {
        q->gpu[i] = fake_gpu(one_of(r, gpus, 7));
        q->line[i] = (opi_inventory){.struct_size = sizeof q->line[i], .gpu = &q->gpu[i],
                                     .count = (int32_t)log_uniform(r, 1, 200), .per_node = (int32_t)opi__rng_below(r, 17),
                                     .price_usd_h = opi__rng_below(r, 3) ? log_uniform(r, 0.1, 20) : 0,
                                     .queue_s = opi__rng_below(r, 2) ? log_uniform(r, 1, 1e5) : 0};
    }
    q->request.input_len = log_uniform(r, 1, 40000);
    q->request.output_len = log_uniform(r, 1, 8000);
    q->request.concurrency = opi__rng_below(r, 3) ? log_uniform(r, 1, 5000) : 0;
    q->request.request_rate = q->request.concurrency > 0 ? 0 : log_uniform(r, 0.01, 100);
    q->request.demand_tok_s = opi__rng_below(r, 2) ? log_uniform(r, 1, 1e5) : 0;
    q->request.pipeline = (int32_t)opi__rng_below(r, 2);
    q->request.n_slos = opi__rng_below(r, 3);
    q->request.slos = q->slo;
    for (size_t i = 0; i < 2; i++)
        q->slo[i] = (opi_slo){targets[opi__rng_below(r, 4)], log_uniform(r, 1, 1e4)};
    opi_utility_default(&q->utility);
    q->utility.value_usd_per_mtok = opi__rng_below(r, 2) ? log_uniform(r, 0.1, 50) : 0;
    q->utility.risk = opi__rng_uniform(r);
    q->utility.power_usd_per_kwh = opi__rng_below(r, 2) ? 0.15 : 0;
    q->request.utility = &q->utility;
    draw_model(r, &q->model);
}

static void check_feasible(const question *q, const opi_advice *a, size_t rank)
{
    const opi__cand *c = opi__ranked(a, rank);
    const opi_terms *t = &c->pub.terms;
    const opi_config *k = &c->pub.config;
    ck_assert(isfinite(t->total));
    ck_assert_double_eq(t->total, t->value + t->node + t->queue + t->restart + t->slo + t->kv + t->power);
    ck_assert_double_ge(t->value, 0);
    ck_assert(t->node <= 0 && t->queue <= 0 && t->restart <= 0 && t->slo <= 0 && t->kv <= 0 && t->power <= 0);
    ck_assert(c->pub.slo_violation >= 0 && c->pub.slo_violation <= 1);
    ck_assert_int_eq(c->pub.meets_slo, c->pub.slo_violation < 0.5);
    ck_assert_int_eq(k->n_gpus, k->tp * k->pp);
    ck_assert_int_le((int64_t)k->n_gpus * c->pub.replicas, q->line[c->pub.inventory_index].count);
    ck_assert_int_eq(c->pub.memory.fits, 1);
    ck_assert((k->concurrency > 0) != (k->request_rate > 0));
    if (q->request.concurrency > 0)
        ck_assert_double_eq_tol(k->concurrency * c->pub.replicas / q->request.concurrency, 1, 1e-9);
    else
        ck_assert_double_le(c->pub.out_tok_s, a->ask.request_rate * a->ask.output_len * (1 + 1e-9));
    ck_assert_int_eq(isnan(c->pub.usd_per_mtok), !c->pub.price_stated);
    if (rank > 0)
        ck_assert_int_eq(opi__ranks_before(c, opi__ranked(a, rank - 1)), 0);
}

static void check_verdict(const opi_advice *a)
{
    size_t recommendable = 0;
    for (size_t r = 0; r < a->n_feasible; r++)
        recommendable += opi__recommendable(opi__ranked(a, r)) ? 1 : 0;
    ck_assert_int_eq(a->verdict, a->n_feasible == 0 ? OPI_ADVISE_NOTHING_FEASIBLE
                                 : recommendable ? OPI_ADVISE_RECOMMENDED : OPI_ADVISE_ABSTAINED);
    ck_assert_int_eq(a->winner == SIZE_MAX, a->verdict != OPI_ADVISE_RECOMMENDED);
    if (a->winner != SIZE_MAX) {
        const opi__cand *w = opi__ranked(a, a->winner);
        ck_assert(w->pub.verdict == OPI_P_OK || w->pub.verdict == OPI_P_NEW_COMBINATION);
        ck_assert(w->pub.meets_slo && w->pub.meets_demand);
    }
    ck_assert_uint_gt(strlen(a->sentence), 20);
    ck_assert_int_eq(a->sentence[strlen(a->sentence) - 1], '.');
    ck_assert_ptr_null(strstr(a->sentence, "nan"));
    ck_assert_ptr_null(strstr(a->sentence, "no number"));
}

START_TEST(invariants)
{
    opi__rng r;
    opi_ctx *ctx = NULL;
    size_t verdicts[3] = {0};
    opi__rng_seed(&r, 20260701);
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
    for (int round = 0; round < ROUNDS; round++) {
        static question q;
        opi_advice *a = NULL;
        opi_error err = {0};
        draw(&r, &q);
        const opi__oracle oracle = fake_oracle(&q.model);
        ck_assert_msg(opi__advise_with(ctx, &oracle, &q.request, &a, &err) == OPI_OK, "round %d: %s", round, err.message);
        for (size_t rank = 0; rank < a->n_feasible; rank++)
            check_feasible(&q, a, rank);
        for (size_t rank = a->n_feasible; rank < a->cands.n; rank++) {
            const opi__cand *c = opi__ranked(a, rank);
            ck_assert_int_ne(c->pub.infeasible, OPI_FEASIBLE);
            ck_assert_str_ne(c->pub.reason, "");
            ck_assert_int_eq(c->pub.verdict, OPI_P_INFEASIBLE);
        }
        check_verdict(a);
        verdicts[a->verdict]++;
        opi_advice_free(a);
    }
    for (int v = 0; v < 3; v++) /* the draw reaches every verdict */
        ck_assert_uint_gt(verdicts[v], 10);
    opi_ctx_destroy(ctx);
}
END_TEST

Suite *suite_decide(void)
{
    Suite *s = suite_create("decide");
    TCase *t = tcase_create("decide");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, invariants);
    suite_add_tcase(s, t);
    return s;
}
