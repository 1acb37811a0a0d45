/* SPDX-License-Identifier: Apache-2.0 */
/* Weights from choices: right numbers. */
#include "choice_help.h"
#include "decide/logit.h"

#include <unistd.h>

Suite *suite_preference(void);

static opi_ctx *ctx;

static void setup(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
}

static void teardown(void)
{
    opi_ctx_destroy(ctx);
}

START_TEST(normal_quantiles)
{
    ck_assert_double_eq_tol(opi__two_sided(0.95), 1.959963984540054, 1e-12);
    ck_assert_double_eq_tol(opi__two_sided(0.8), 1.2815515655446004, 1e-12);
    ck_assert_double_eq_tol(opi__two_sided(0.999), 3.290526731491926, 1e-11);
    ck_assert_double_eq_tol(opi__two_sided(0.5), 0.6744897501960817, 1e-12);
}
END_TEST

/* log likelihood less the ridge, written anew. */
static double objective(const opi__logit *p, double ridge, const double *beta)
{
    double sum = 0;
    for (size_t i = 0; i < p->n_situations; i++) {
        double u[8], all = 0;
        for (size_t r = p->start[i]; r < p->start[i + 1]; r++) {
            u[r - p->start[i]] = 0;
            for (size_t a = 0; a < p->n_attributes; a++)
                u[r - p->start[i]] += beta[a] * p->x[r * p->n_attributes + a];
            all += exp(u[r - p->start[i]]);
        }
        sum += u[p->chosen[i] - p->start[i]] - log(all);
    }
    for (size_t a = 0; a < p->n_attributes; a++)
        sum -= ridge / 2 * beta[a] * beta[a];
    return sum;
}

/* 40 situations of 2 to 4 alternatives with three attributes. */
static size_t starts[41], taken[40];
static double xs[160 * 3];
static opi__logit small_problem(void)
{
    opi__rng r;
    opi__rng_seed(&r, 5);
    for (size_t i = 0; i < 40; i++) {
        starts[i + 1] = starts[i] + 2 + opi__rng_below(&r, 3);
        taken[i] = starts[i] + opi__rng_below(&r, starts[i + 1] - starts[i]);
        for (size_t j = starts[i] * 3; j < starts[i + 1] * 3; j++)
            xs[j] = opi__rng_normal(&r);
    }
    return (opi__logit){40, 3, starts, taken, xs};
}

START_TEST(maximum_and_covariance)
{
    const opi__logit p = small_problem();
    const double ridge = 0.3, h = 1e-4;
    opi__logit_fit f = {.beta = {0}};
    double product[9] = {0}, information[9];
    ck_assert_int_eq(opi__logit_fit_ridge(&p, ridge, 7, &f), 0);
    for (size_t a = 0; a < 3; a++)
        for (size_t b = 0; b < 3; b++) {
            double v[4];
            for (int s = 0; s < 4; s++) {
                double beta[3] = {f.beta[0], f.beta[1], f.beta[2]};
                beta[a] += s & 1 ? h : -h;
                beta[b] += s & 2 ? h : -h;
                v[s] = objective(&p, ridge, beta);
            }
            information[a * 3 + b] = -(v[3] - v[1] - v[2] + v[0]) / (4 * h * h);
        }
    for (size_t a = 0; a < 3; a++) {
        double up[3] = {f.beta[0], f.beta[1], f.beta[2]}, down[3] = {f.beta[0], f.beta[1], f.beta[2]};
        up[a] += h;
        down[a] -= h;
        ck_assert_double_eq_tol((objective(&p, ridge, up) - objective(&p, ridge, down)) / (2 * h), 0, 1e-6);
        for (size_t b = 0; b < 3; b++)
            for (size_t k = 0; k < 3; k++)
                product[a * 3 + b] += information[a * 3 + k] * f.covariance[k * 3 + b];
    }
    for (size_t j = 0; j < 9; j++)
        ck_assert_double_eq_tol(product[j], j % 4 == 0, 1e-4);
    ck_assert_double_eq_tol(f.log_likelihood, objective(&p, 0, f.beta), 1e-10);
}
END_TEST

START_TEST(any_start_one_answer)
{
    const opi__logit p = small_problem();
    opi__logit_fit f = {.beta = {0}}, far = {.beta = {300, -500, 40}}, part = {.beta = {0}};
    ck_assert_int_eq(opi__logit_fit_ridge(&p, 0.1, 7, &f), 0);
    ck_assert_int_eq(opi__logit_fit_ridge(&p, 0.1, 7, &far), 0);
    for (size_t a = 0; a < 3; a++)
        ck_assert_double_eq_tol(f.beta[a], far.beta[a], 1e-9);
    ck_assert_int_eq(opi__logit_fit_ridge(&p, 0.1, 5, &part), 0);
    ck_assert_double_eq(part.beta[1], 0);
    ck_assert_double_eq(part.covariance[4], 0);
    ck_assert_double_lt(part.log_likelihood, f.log_likelihood);
}
END_TEST

/* Two kinds of situations, two configurations in each: A differs in cost alone, B in tokens/s alone. Both are binary logits
 * with one coefficient, log(n / (N - n)) over the difference, of variance N / (n (N - n)) over its square. */
static char *binary_file(int n_a, int cheap, int n_b, int fast)
{
    static char text[40000];
    size_t at = (size_t)sprintf(text, "choice,chosen,usd_per_h,out_tok_s\n");
    for (int i = 0; i < n_a; i++)
        at += (size_t)sprintf(text + at, "a%d,%d,20,1000\na%d,%d,30,1000\n", i, i < cheap, i, i >= cheap);
    for (int i = 0; i < n_b; i++)
        at += (size_t)sprintf(text + at, "b%d,%d,20,1000\nb%d,%d,20,2000\n", i, i >= fast, i, i < fast);
    return text;
}

START_TEST(closed_form)
{
    const opi_preferences_options options = {.struct_size = sizeof options, .ridge = 1e-6, .level = 0.9};
    opi_preferences *p = choice_fit(ctx, binary_file(200, 140, 150, 90), &options);
    const opi_preferences_summary s = choice_summary(p);
    const opi_preference w = choice_weight(p, 0);
    const double m = log(140.0 / 60) / 10, vm = 200.0 / (140 * 60) / 100;
    const double b = log(90.0 / 60) / 3.6, vb = 150.0 / (90 * 60) / (3.6 * 3.6); /* 1000 tokens/s: 3.6 Mtok/h */
    const double z = 1.6448536269514722, q2 = m * m - z * z * vm;
    const double root = sqrt(b * b * m * m - q2 * (b * b - z * z * vb));
    ck_assert_int_eq(s.cost_status, OPI_PREF_IDENTIFIED);
    ck_assert_uint_eq(s.situations, 350);
    ck_assert_uint_eq(s.alternatives, 700);
    ck_assert_uint_eq(s.hits, 230);
    ck_assert_double_eq_tol(s.cost, m, 1e-7);
    ck_assert_double_eq_tol(s.cost_se, sqrt(vm), 1e-7);
    ck_assert_double_eq_tol(s.noise_usd_per_h, 3.141592653589793 / sqrt(6) / m, 1e-4);
    ck_assert_double_eq_tol(s.log_likelihood_null, -350 * log(2), 1e-9);
    ck_assert_double_eq_tol(s.log_likelihood,
                            140 * log(0.7) + 60 * log(0.3) + 90 * log(0.6) + 60 * log(0.4), 1e-6);
    ck_assert_int_eq(w.status, OPI_PREF_IDENTIFIED);
    ck_assert_str_eq(w.name, "value_usd_per_mtok");
    ck_assert_str_eq(w.column, "out_tok_s");
    ck_assert_double_eq_tol(w.coefficient, b, 1e-7);
    ck_assert_double_eq_tol(w.coefficient_se, sqrt(vb), 1e-7);
    ck_assert_double_eq_tol(w.weight, b / m, 1e-6);
    ck_assert_double_eq_tol(w.used, b / m, 1e-6);
    ck_assert_double_eq_tol(w.se, sqrt(vb / (m * m) + b * b * vm / (m * m * m * m)), 1e-6);
    ck_assert_double_eq_tol(w.lo, (b * m - root) / q2, 1e-5);
    ck_assert_double_eq_tol(w.hi, (b * m + root) / q2, 1e-5);
    for (size_t i = 1; i < opi_preferences_count(p); i++)
        ck_assert_int_eq(choice_weight(p, i).status, OPI_PREF_NO_COLUMN);
    opi_preferences_free(p);
}
END_TEST

/* Operators with known weights, 400 logs of 200 choices each: the 95 % intervals hold the truth as often as they say. */
START_TEST(coverage)
{
    enum { LOGS = 400 };
    int inside[CHOICE_WEIGHTS] = {0}, total = 0;
    for (int log = 0; log < LOGS; log++) {
        char *csv = choice_file(20260701 + (uint64_t)log, 200, 12);
        opi_preferences *p = choice_fit(ctx, csv, NULL);
        for (size_t k = 0; k < CHOICE_WEIGHTS; k++) {
            const opi_preference w = choice_weight(p, k);
            ck_assert_int_eq(w.status, OPI_PREF_IDENTIFIED);
            ck_assert(w.lo < w.weight && w.weight < w.hi);
            inside[k] += w.lo <= choice_truth[k] && choice_truth[k] <= w.hi;
        }
        opi_preferences_free(p);
        free(csv);
    }
    /* 99.9 % of binomial draws (400, 0.95) lie in 365 … 393; of the 2,400 (weights of a log are not independent) 94 to 96 %. */
    for (size_t k = 0; k < CHOICE_WEIGHTS; k++) {
        ck_assert_msg(inside[k] >= 365 && inside[k] <= 393, "weight %zu: %d of %d", k, inside[k], LOGS);
        total += inside[k];
    }
    ck_assert_msg(total >= 2256 && total <= 2304, "%d of 2400", total);
}
END_TEST

START_TEST(converges_to_truth)
{
    char *csv = choice_file(7, 20000, 12);
    opi_preferences *p = choice_fit(ctx, csv, NULL);
    for (size_t k = 0; k < CHOICE_WEIGHTS; k++) {
        const opi_preference w = choice_weight(p, k);
        ck_assert_double_eq_tol(w.weight, choice_truth[k], 4 * w.se);
        ck_assert_double_lt(w.se, 0.2 * choice_truth[k]);
    }
    ck_assert_double_eq_tol(choice_summary(p).cost, 1 / 12.0, 0.004);
    opi_preferences_free(p);
    free(csv);
}
END_TEST

/* Splits the file into lines, shuffles all but the first, joins them again. */
static char *shuffled(const char *csv, uint64_t seed)
{
    static const char *line[2000];
    uint32_t order[2000];
    size_t n = 0, at;
    opi__rng r;
    char *out = malloc(strlen(csv) + 1);
    ck_assert_ptr_nonnull(out);
    const char *head_end = strchr(csv, '\n') + 1;
    for (const char *s = head_end; *s; s = strchr(s, '\n') + 1) {
        ck_assert_uint_lt(n, 2000);
        order[n] = (uint32_t)n;
        line[n++] = s;
    }
    opi__rng_seed(&r, seed);
    opi__rng_shuffle(&r, order, n);
    at = (size_t)(head_end - csv);
    memcpy(out, csv, at);
    for (size_t i = 0; i < n; i++) {
        const size_t length = (size_t)(strchr(line[order[i]], '\n') + 1 - line[order[i]]);
        memcpy(out + at, line[order[i]], length);
        at += length;
    }
    out[at] = 0;
    return out;
}

static void check_same(const opi_preferences *p, const opi_preferences *q)
{
    const opi_preferences_summary s = choice_summary(p), t = choice_summary(q);
    ck_assert_mem_eq(&s, &t, sizeof s);
    for (size_t k = 0; k < CHOICE_WEIGHTS; k++) {
        const opi_preference v = choice_weight(p, k), w = choice_weight(q, k);
        ck_assert_mem_eq(&v, &w, sizeof v);
    }
}

START_TEST(order_changes_nothing)
{
    char *csv = choice_file(11, 120, 12);
    opi_preferences *p = choice_fit(ctx, csv, NULL);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        char *other = shuffled(csv, seed);
        ck_assert_str_ne(csv, other);
        opi_preferences *q = choice_fit(ctx, other, NULL);
        check_same(p, q);
        opi_preferences_free(q);
        free(other);
    }
    /* Other names of the situations sort them otherwise. */
    for (char *s = csv; (s = strstr(s, "\ns")) != NULL; s++)
        s[1] = (char)('a' + (s[2] * 7 + s[3]) % 3);
    opi_preferences *q = choice_fit(ctx, csv, NULL);
    check_same(p, q);
    opi_preferences_free(q);
    opi_preferences_free(p);
    free(csv);
}
END_TEST

START_TEST(columns_in_any_order)
{
    static const char a[] = "choice,chosen,usd_per_h,queue_s\n1,1,10,7200\n1,0,12,0\n2,0,10,7200\n2,1,11,0\n"
                            "3,1,9,100\n3,0,12,90\n";
    static const char b[] = "queue_s,chosen,gpu,usd_per_h,choice\r\n7200,1,x,10,1\r\n\r\n0,0,\"a,b\",12,1\r\n7200,0,,10,2\r\n"
                            "0,1,,11,2\r\n100,1,,9,3\r\n90,0,,12,3\r\n";
    opi_preferences *p = choice_fit(ctx, a, NULL), *q = choice_fit(ctx, b, NULL);
    check_same(p, q);
    opi_preferences_free(p);
    opi_preferences_free(q);
}
END_TEST

START_TEST(utility_file)
{
    char *csv = choice_file(3, 300, 10), path[] = "/tmp/omnipilot-preference-XXXXXX", text[2000];
    const int fd = mkstemp(path);
    opi_preferences *p = choice_fit(ctx, csv, NULL);
    opi_utility u = {.struct_size = sizeof u}, read = {.struct_size = sizeof read};
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(opi_preferences_utility(p, &u, NULL), OPI_OK);
    ck_assert_int_eq(opi_preferences_save_file(p, path, NULL), OPI_OK);
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    const size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    close(fd);
    unlink(path);
    opi_utility_default(&read);
    ck_assert_int_eq(opi_utility_parse(ctx, text, n, &read, NULL), OPI_OK);
    ck_assert_mem_eq(&u, &read, sizeof u);
    ck_assert_double_eq(u.value_usd_per_mtok, choice_weight(p, 0).used);
    ck_assert_double_eq(u.queue_usd_per_h, choice_weight(p, 1).used);
    ck_assert_double_eq(u.restart_usd, choice_weight(p, 2).used);
    ck_assert_double_eq(u.slo_penalty_usd_per_h, choice_weight(p, 3).used);
    ck_assert_double_eq(u.kv_penalty_usd_per_h, choice_weight(p, 4).used);
    ck_assert_double_eq(u.power_usd_per_kwh, choice_weight(p, 5).used);
    ck_assert_double_eq(u.kv_knee, 0.85);
    opi_error err = {0};
    ck_assert_int_eq(opi_preferences_save_file(p, "/nonexistent/folder/u.json", &err), OPI_E_IO);
    opi_preferences_free(p);
    free(csv);
}
END_TEST

/* What shapes the terms comes from the base: queue costs are spread over amortize_h, so the weight scales with it. */
START_TEST(base_is_kept)
{
    opi_utility base, u = {.struct_size = sizeof u};
    const opi_preferences_options options = {.struct_size = sizeof options, .base = &base};
    opi_utility_default(&base);
    base.amortize_h = 48;
    base.power_usd_per_kwh = 0.31;
    base.risk = 0.4;
    opi_preferences *p = choice_fit(ctx, binary_file(200, 140, 150, 90), &options);
    ck_assert_int_eq(opi_preferences_utility(p, &u, NULL), OPI_OK);
    ck_assert_double_eq(u.power_usd_per_kwh, 0.31);
    ck_assert_double_eq(u.amortize_h, 48);
    ck_assert_double_eq(u.risk, 0.4);
    ck_assert_double_gt(u.value_usd_per_mtok, 0);
    opi_preferences_free(p);
    char *csv = choice_file(9, 200, 12);
    base.restart_node_h = 0; /* it takes no part in the spread */
    opi_preferences *q = choice_fit(ctx, csv, &options);
    base.amortize_h = 24;
    opi_preferences *r = choice_fit(ctx, csv, &options);
    ck_assert_double_eq_tol(choice_weight(q, 1).weight, 2 * choice_weight(r, 1).weight, 1e-6);
    ck_assert_double_eq_tol(choice_weight(q, 2).weight, 2 * choice_weight(r, 2).weight, 1e-6);
    ck_assert_double_eq_tol(choice_weight(q, 3).weight, choice_weight(r, 3).weight, 1e-7);
    opi_preferences_free(q);
    opi_preferences_free(r);
    free(csv);
}
END_TEST

Suite *suite_preference(void)
{
    Suite *s = suite_create("preference");
    TCase *t = tcase_create("preference");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, normal_quantiles);
    tcase_add_test(t, maximum_and_covariance);
    tcase_add_test(t, any_start_one_answer);
    tcase_add_test(t, closed_form);
    tcase_add_test(t, coverage);
    tcase_add_test(t, converges_to_truth);
    tcase_add_test(t, order_changes_nothing);
    tcase_add_test(t, columns_in_any_order);
    tcase_add_test(t, utility_file);
    tcase_add_test(t, base_is_kept);
    suite_add_tcase(s, t);
    return s;
}
