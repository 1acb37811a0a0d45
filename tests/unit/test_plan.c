/* SPDX-License-Identifier: Apache-2.0 */
/* The planner: its own checks against formulas, cases that can be worked out by hand, and bad input. */
#include "omnipilot/plan.h"
#include "swap/planner.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

Suite *suite_plan(void);

static opi_plan_options small_job(void)
{
    opi_plan_options o = {.struct_size = sizeof o};
    o.gpus = 512;
    o.tp = 8;
    o.pp = 2;
    o.spares = 8;
    o.node_mtbf_h = 1000;
    o.replays = 5;
    return o;
}

static void run_plan(const opi_plan_options *o, opi_plan_result *swap, opi_plan_result *restart, opi_plan_closed *closed)
{
    opi_error err = {0};
    opi_plan *p = NULL;
    ck_assert_msg(opi_plan_run(NULL, o, &p, &err) == OPI_OK, "%s", err.message);
    *swap = (opi_plan_result){.struct_size = sizeof *swap};
    *restart = (opi_plan_result){.struct_size = sizeof *restart};
    *closed = (opi_plan_closed){.struct_size = sizeof *closed};
    ck_assert_int_eq(opi_plan_get_result(p, OPI_PLAN_SWAP, swap, NULL), OPI_OK);
    ck_assert_int_eq(opi_plan_get_result(p, OPI_PLAN_RESTART, restart, NULL), OPI_OK);
    ck_assert_int_eq(opi_plan_get_closed(p, closed, NULL), OPI_OK);
    opi_plan_free(p);
}

static double total(const opi_plan_result *r)
{
    return r->goodput + r->redone + r->stalled + r->narrow + r->recovering + r->restarting + r->waiting;
}

START_TEST(formulas)
{
    for (uint64_t seed = 1; seed <= 3; seed++)
        for (size_t i = 0; i < opi_plan_check_count(); i++) {
            opi_plan_check c = {.struct_size = sizeof c};
            ck_assert_int_eq(opi_plan_check_at(NULL, i, seed, &c, NULL), OPI_OK);
            ck_assert_msg(c.passed && c.tolerance < 0.5 * c.formula, "%s: %g against %g, tolerance %g", c.name,
                          c.simulated, c.formula, c.tolerance);
        }
    ck_assert_int_eq(opi_plan_check_at(NULL, opi_plan_check_count(), 0, NULL, NULL), OPI_E_RANGE);
}
END_TEST

START_TEST(intervals)
{
    /* Young: sqrt(2 * 60 * 10000) = 1095.445; Daly's higher order by hand: 1055.810. */
    ck_assert_double_eq_tol(opi__daly_interval(60, 10000), 1055.8102633820024, 1e-9);
    ck_assert_double_eq(opi__daly_interval(300, 100), 100);
    ck_assert_double_eq_tol(opi__daly_goodput(600, 60, 0, 0), 600.0 / 660, 1e-12);
    /* One segment of an hour, no saving, no restart time, one failure an hour: 1 / (e - 1). */
    ck_assert_double_eq_tol(opi__daly_goodput(3600, 0, 0, 1 / 3600.0), 1 / (exp(1) - 1), 1e-12);
    /* The interval is the best one: neighbors are worse. */
    double best = opi__daly_interval(60, 10000);
    for (double f = 0.7; f < 1.4; f += 0.05)
        ck_assert(opi__daly_goodput(best * f, 60, 600, 1e-4) <= opi__daly_goodput(best, 60, 600, 1e-4) + 1e-6);
}
END_TEST

START_TEST(shares_sum_to_one)
{
    for (int32_t policy = 0; policy < 3; policy++)
        for (int32_t arrivals = 0; arrivals < 4; arrivals++)
            for (int32_t spares = 0; spares < 6; spares += 2) {
                opi_plan_options o = small_job();
                opi_plan_result swap, restart;
                opi_plan_closed closed;
                o.policy = policy;
                o.arrivals = arrivals;
                o.spares = spares;
                run_plan(&o, &swap, &restart, &closed);
                ck_assert_double_eq_tol(total(&swap), 1, 1e-9);
                ck_assert_double_eq_tol(total(&restart), 1, 1e-9);
                const double *v[] = {&swap.goodput, &swap.redone, &swap.narrow, &swap.recovering, &swap.waiting};
                for (size_t i = 0; i < 5; i++)
                    ck_assert(*v[i] >= -1e-12);
                ck_assert_double_eq_tol(swap.steps * 10, swap.goodput * 30 * 86400, 1);
                ck_assert(swap.goodput_low <= swap.goodput_median && swap.goodput_median <= swap.goodput_high);
                ck_assert((swap.narrow > 0) == (policy == OPI_PLAN_SHRINK && swap.shrinks > 0));
                ck_assert(policy != OPI_PLAN_WAIT || swap.stops <= 0);
            }
}
END_TEST

START_TEST(without_failures)
{
    opi_plan_options o = small_job();
    opi_plan_result swap, restart;
    opi_plan_closed closed;
    o.process_mtbf_h = o.node_mtbf_h = o.rack_mtbf_h = -1;
    o.restart_interval_s = 940;
    run_plan(&o, &swap, &restart, &closed);
    ck_assert_double_eq_tol(swap.goodput, 1, 1e-12); /* copies fit beside a step: they cost nothing */
    ck_assert_double_eq_tol(restart.goodput, 0.94, 1e-4);
    ck_assert(swap.failures <= 0 && restart.redone <= 0 && closed.fallbacks <= 0);
}
END_TEST

START_TEST(copies_decide)
{
    opi_plan_options o = small_job();
    opi_plan_result none, one, two, restart;
    opi_plan_closed closed;
    o.spares = 24;
    o.rack_mtbf_h = -1;
    o.node_mtbf_h = 200;
    o.phase_s[0] = 600; /* slow to notice */
    o.days = 90;
    o.replicas = -1;
    run_plan(&o, &none, &restart, &closed);
    ck_assert(none.failures > 100 && fabs(none.fallbacks - none.failures) < 0.1 * none.failures);
    o.replicas = 1;
    run_plan(&o, &one, &restart, &closed);
    ck_assert(one.fallbacks > 0 && one.fallbacks < 0.2 * none.fallbacks);
    ck_assert_double_eq_tol(closed.fallback_probability, 1 - exp(-closed.fallbacks), 1e-12);
    o.replicas = 2;
    run_plan(&o, &two, &restart, &closed);
    ck_assert(two.fallbacks < one.fallbacks && two.goodput > none.goodput);
}
END_TEST

START_TEST(racks_hold_copies_apart)
{
    /* Racks of a quarter of the job: one that dies takes no slot with its copy. One rack alone: it takes all. */
    opi_plan_options o = small_job();
    opi_plan_result swap, restart;
    opi_plan_closed closed;
    o.process_mtbf_h = o.node_mtbf_h = -1;
    o.rack_mtbf_h = 500;
    o.rack_repair_h = 1;
    o.nodes_per_rack = 16;
    o.spares = 32;
    o.days = 60;
    run_plan(&o, &swap, &restart, &closed);
    ck_assert(swap.swaps > 5 && swap.fallbacks <= 0.2 && closed.fallbacks < 0.1);
    o.nodes_per_rack = 64;
    o.spares = 64;
    run_plan(&o, &swap, &restart, &closed);
    ck_assert(swap.failures > 1 && swap.fallbacks >= 0.9 * swap.failures && swap.swaps <= 0.1 * swap.failures);
}
END_TEST

START_TEST(assignment_is_that_of_the_whole_grid)
{
    /* The world asks opi__assign only about rows with lost slots. The answer must be that for all rows. */
    opi__plan_setup s;
    opi_plan_options o = small_job();
    o.spares = 12;
    ck_assert_int_eq(opi__plan_setup_make(&o, &s, NULL), OPI_OK);
    opi__world w;
    ck_assert_int_eq(opi__world_make(&w, NULL, &s, 12, 1, NULL), OPI_OK);
    opi__rng r;
    opi__rng_seed(&r, 7);
    opi__member *m = calloc((size_t)w.gpus, sizeof *m);
    int32_t *gpu = calloc((size_t)w.gpus, sizeof *gpu), *owner = calloc((size_t)w.slots, sizeof *owner);
    uint8_t *shy = calloc((size_t)w.gpus, 1);
    ck_assert(m && gpu && owner && shy);
    for (int i = 0; i < 400; i++) {
        opi__arrival a = {i * 1e4, (int32_t)opi__rng_below(&r, 3), 0, 0};
        int32_t limit[] = {w.gpus, w.nodes, w.nodes / 4}, working, idle, n = 0;
        a.index = (int32_t)opi__rng_below(&r, (uint64_t)limit[a.kind]);
        ck_assert_int_eq(opi__world_fail(&w, &a, &working, &idle, NULL), OPI_OK);
        for (int32_t g = 0; g < w.gpus; g++)
            if (w.gpu_slot[g] != OPI__GPU_DOWN) {
                m[n] = (opi__member){w.gpu_slot[g], {g / 8, g / 32}};
                shy[n] = w.node_hit[g / 8] == w.hit;
                gpu[n++] = g;
            }
        int32_t unserved = opi__assign(&w.grid, (size_t)n, m, shy, owner);
        ck_assert_int_eq(opi__world_assign(&w), unserved == 0);
        for (int32_t slot = 0; slot < w.slots && unserved == 0; slot++)
            ck_assert_int_eq(w.owner[slot], gpu[owner[slot]]);
        while (w.n_heap > 6 || w.n_lost > 0)
            if (!opi__world_assign(&w))
                opi__world_repair(&w);
            else if (w.n_heap > 6)
                opi__world_repair(&w);
        opi__world_replicated(&w);
    }
    free(m);
    free(gpu);
    free(owner);
    free(shy);
    opi__world_free(&w);
}
END_TEST

START_TEST(sweep_and_seed)
{
    opi_plan_options o = small_job();
    opi_error err;
    opi_plan *a = NULL, *b = NULL;
    opi_text *ta = NULL, *tb = NULL;
    o.sweep = 1;
    o.policy = OPI_PLAN_WAIT;
    ck_assert_int_eq(opi_plan_run(NULL, &o, &a, &err), OPI_OK);
    ck_assert_int_eq(opi_plan_run(NULL, &o, &b, &err), OPI_OK);
    ck_assert_int_eq(opi_plan_json(a, &ta, &err), OPI_OK);
    ck_assert_int_eq(opi_plan_json(b, &tb, &err), OPI_OK);
    ck_assert_str_eq(opi_text_data(ta), opi_text_data(tb)); /* the same seed, the same plan */
    size_t n = opi_plan_spares_count(a);
    double best = -INFINITY;
    int32_t best_spares = -1, last = -1, own = 0;
    ck_assert_uint_gt(n, 5);
    for (size_t i = 0; i < n; i++) {
        opi_plan_spares l = {.struct_size = sizeof l};
        ck_assert_int_eq(opi_plan_spares_at(a, i, &l, &err), OPI_OK);
        ck_assert_int_gt(l.spares, last);
        ck_assert_double_eq_tol(l.net, l.goodput * 64 - l.spares, 1e-9);
        best_spares = l.net > best ? l.spares : best_spares;
        best = fmax(best, l.net);
        last = l.spares;
        if (l.spares == o.spares) { /* its own line is its own result: the failures are the same */
            opi_plan_result r = {.struct_size = sizeof r};
            ck_assert_int_eq(opi_plan_get_result(a, OPI_PLAN_SWAP, &r, &err), OPI_OK);
            ck_assert_double_eq(l.goodput, r.goodput);
            own++;
        }
    }
    ck_assert(own == 1 && opi_plan_worth(a) == best_spares && best_spares > 0);
    ck_assert_int_eq(opi_plan_spares_at(a, n, NULL, &err), OPI_E_RANGE);
    opi_text_free(ta);
    opi_text_free(tb);
    opi_plan_free(a);
    opi_plan_free(b);
    opi_plan_free(NULL);
}
END_TEST

static void refused(opi_plan_options o, int32_t code, const char *says)
{
    opi_error err = {0};
    opi_plan *p = (opi_plan *)&err;
    ck_assert_int_eq(opi_plan_run(NULL, &o, &p, &err), code);
    ck_assert_ptr_eq(p, &err); /* untouched */
    ck_assert_msg(strstr(err.message, says) != NULL, "%s", err.message);
}

START_TEST(bad_options)
{
    opi_plan_options o = {.struct_size = sizeof o};
    refused(o, OPI_E_INVALID, "gpus is missing");
#define BAD(field, value, code, says) o = small_job(); o.field = value; refused(o, code, says)
    BAD(gpus, 131073, OPI_E_RANGE, "gpus is 131073: it must be between 2 and 131072");
    BAD(gpus, -1, OPI_E_RANGE, "gpus is -1");
    BAD(gpus, 520, OPI_E_INFEASIBLE, "520 GPUs are no multiple of tp 8 x pp 2 = 16");
    BAD(days, NAN, OPI_E_INVALID, "days is not a number");
    BAD(days, 1e9, OPI_E_RANGE, "days is 1e+09: it must be between 0.001 and 3660");
    BAD(step_s, -1, OPI_E_RANGE, "step_s is -1");
    BAD(policy, 3, OPI_E_RANGE, "policy is 3");
    BAD(arrivals, 4, OPI_E_RANGE, "arrivals is 4");
    BAD(replays, 1, OPI_E_RANGE, "replays is 1: it must be between 2");
    BAD(replicas, 17, OPI_E_RANGE, "replicas is 17");
    BAD(node_mtbf_h, 1e-3, OPI_E_RANGE, "failures are expected in 30 days");
    BAD(phase_s[3], -1, OPI_E_RANGE, "phase_s[3] is -1");
    BAD(state_gb, 1e-3, OPI_E_RANGE, "more than the whole state_gb of 0.001");
    BAD(burst_near, 1.5, OPI_E_RANGE, "burst_near is 1.5");
    BAD(struct_size, 0, OPI_E_INVALID, "struct_size");
    o = small_job();
    o.arrivals = OPI_PLAN_WEIBULL;
    o.burst = 1.5;
    refused(o, OPI_E_RANGE, "burst is 1.5: it must be between 0.2 and 1");
}
END_TEST

#define GOOD "{\"kind\":\"recovered\",\"epoch\":1,\"lost\":2,\"redone\":1,\"phases_s\":{\"detected\":0.2,\"revoked\":0.01," \
             "\"agreed\":0.02,\"classified\":0.03,\"assigned\":0.04,\"rebuilt\":0.05,\"restored\":0.6,\"resumed\":0.07}," \
             "\"new\":[1]}\n"

START_TEST(from_a_run)
{
    static const char log[] = "{\"kind\":\"process-lost\",\"rank\":3}\n" GOOD "\n"
        "{\"kind\":\"recovered\",\"redone\":0,\"phases_s\":{\"detected\":0.4,\"revoked\":0.03,\"agreed\":0.02,"
        "\"classified\":0.03,\"assigned\":0.04,\"rebuilt\":0.05,\"restored\":0.2,\"resumed\":0.07}}\r\n"
        "{\"kind\":\"counters\",\"snapshots\":40,\"snapshot_bytes\":1000,\"replica_bytes\":500,\"wait_s\":0.25}";
    opi_plan_options o = small_job();
    opi_plan_measured m = {.struct_size = sizeof m};
    opi_error err = {0};
    ck_assert_msg(opi_plan_from_run(NULL, log, sizeof log - 1, &o, &m, &err) == OPI_OK, "%s", err.message);
    ck_assert(m.recoveries == 2 && m.lines == 4 && m.snapshots == 40 && m.replica_bytes == 500);
    ck_assert_double_eq_tol(m.redone, 0.5, 1e-12);
    ck_assert_double_eq_tol(o.phase_s[0], 0.3, 1e-12);
    ck_assert_double_eq_tol(o.phase_s[OPI_PLAN_RESTORED], 0.4, 1e-12);
    ck_assert_double_eq_tol(o.phase_s[7], 0.07, 1e-12);
    ck_assert_int_eq(o.gpus, 512);
    /* The recovery of the plan is then that of the run. */
    opi__plan_setup s;
    ck_assert_int_eq(opi__plan_setup_make(&o, &s, NULL), OPI_OK);
    ck_assert_double_eq_tol(s.recover, 0.3 + 0.02 + 0.02 + 0.03 + 0.04 + 0.05 + 0.4 + 0.07, 1e-12);
}
END_TEST

START_TEST(damaged_runs)
{
    static const struct {
        const char *log, *says;
        int32_t code;
        int64_t line;
    } bad[] = {
        {"", "no recovery in 0 lines", OPI_E_NODATA, -1},
        {"{\"kind\":\"spare-lost\"}\n", "no recovery in 1 lines", OPI_E_NODATA, -1},
        {GOOD "{\"kind\":\"recov", "line 2: ", OPI_E_FORMAT, 2},
        {GOOD GOOD "[1]\n", "line 3: \"kind\" is missing", OPI_E_FORMAT, 3},
        {"{\"kind\":\"recovered\"}\n", "line 1: \"phases_s\"", OPI_E_FORMAT, 1},
        {"{\"kind\":\"recovered\",\"phases_s\":{\"detected\":1}}\n", "line 1: \"revoked\" is missing", OPI_E_FORMAT, 1},
        {"\n{\"kind\":\"recovered\",\"phases_s\":{\"detected\":-1}}\n", "line 2: \"detected\"", OPI_E_FORMAT, 2},
        {GOOD "{\"kind\":\"counters\",\"snapshots\":\"x\"}\n", "line 2: \"snapshots\"", OPI_E_FORMAT, 2},
        {GOOD "\0\1\2", "line 2: ", OPI_E_FORMAT, 2},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        opi_plan_options o = small_job(), before = o;
        opi_error err = {0};
        size_t size = i + 1 == sizeof bad / sizeof *bad ? strlen(bad[i].log) + 3 : strlen(bad[i].log);
        ck_assert_int_eq(opi_plan_from_run(NULL, bad[i].log, size, &o, NULL, &err), bad[i].code);
        ck_assert_msg(strstr(err.message, bad[i].says) != NULL, "%zu: %s", i, err.message);
        ck_assert_int_eq(err.index, bad[i].line);
        ck_assert_mem_eq(&o, &before, sizeof o);
    }
}
END_TEST

START_TEST(large)
{
    opi_plan_options o = {.struct_size = sizeof o};
    opi_plan_result swap, restart;
    opi_plan_closed closed;
    o.gpus = 131072;
    o.tp = 8;
    o.pp = 16;
    o.spares = 64;
    o.replays = 2;
    run_plan(&o, &swap, &restart, &closed);
    ck_assert(closed.applies && swap.failures > 1500 && swap.failures < 2000);
    ck_assert_double_eq_tol(swap.goodput, closed.swap_goodput, 0.003);
    ck_assert_double_eq_tol(restart.goodput, closed.restart_goodput, 0.03);
}
END_TEST

Suite *suite_plan(void)
{
    Suite *s = suite_create("plan");
    TCase *c = tcase_create("plan");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, formulas);
    tcase_add_test(c, intervals);
    tcase_add_test(c, shares_sum_to_one);
    tcase_add_test(c, without_failures);
    tcase_add_test(c, copies_decide);
    tcase_add_test(c, racks_hold_copies_apart);
    tcase_add_test(c, assignment_is_that_of_the_whole_grid);
    tcase_add_test(c, sweep_and_seed);
    tcase_add_test(c, bad_options);
    tcase_add_test(c, from_a_run);
    tcase_add_test(c, damaged_runs);
    tcase_add_test(c, large);
    suite_add_tcase(s, c);
    return s;
}
