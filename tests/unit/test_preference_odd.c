/* SPDX-License-Identifier: Apache-2.0 */
/* Choice files that contradict themselves, are damaged, or do not tell a weight. */
#include "choice_help.h"

Suite *suite_preference_odd(void);

static opi_ctx *ctx;

static void setup(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
}

static void teardown(void)
{
    opi_ctx_destroy(ctx);
}

#define HEAD "choice,chosen,usd_per_h,queue_s\n"

START_TEST(refusals)
{
    static const struct {
        const char *csv;
        int32_t code;
        const char *says[3];
    } bad[] = {
        {HEAD "a,1,2,3\nb,0,2,3\na,1,3,1\nb,1,2,9\n", OPI_E_FORMAT, {"choice \"a\", lines 2 and 4:", "more than one", NULL}},
        {HEAD "a,1,2,3\na,0,3,1\nb,0,3,1\nc,0,3,2\nb,0,3,2\n", OPI_E_FORMAT,
         {"choice \"b\", lines 4 and 6:", "no configuration", "1 more situation like it"}},
        {HEAD "a,1,2,3\nb,1,3,1\n", OPI_E_NODATA, {"one configuration only", NULL, NULL}},
        {HEAD "a,0,2,3\n", OPI_E_FORMAT, {"choice \"a\", line 2:", "no configuration", NULL}},
        {HEAD "a,1,2,3\na,0,3\n", OPI_E_FORMAT, {"line 3: 3 fields", NULL, NULL}},
        {HEAD "a,2,2,3\n", OPI_E_FORMAT, {"line 2: chosen = \"2\"", NULL, NULL}},
        {HEAD "a,yes,2,3\n", OPI_E_FORMAT, {"line 2: chosen = \"yes\"", NULL, NULL}},
        {HEAD "a,1,,3\n", OPI_E_FORMAT, {"line 2: usd_per_h is blank", NULL, NULL}},
        {HEAD "a,1,2,3s\n", OPI_E_FORMAT, {"line 2: queue_s = \"3s\"", "unit", NULL}},
        {HEAD "a,1,2,nan\n", OPI_E_FORMAT, {"line 2: queue_s = \"nan\"", NULL, NULL}},
        {HEAD "a,1,2,inf\n", OPI_E_FORMAT, {"line 2: queue_s = \"inf\"", NULL, NULL}},
        {HEAD "a,1,2,1e999\n", OPI_E_FORMAT, {"line 2: queue_s = \"1e999\"", NULL, NULL}},
        {HEAD "a,1,-2,3\n", OPI_E_RANGE, {"line 2: usd_per_h = -2", "at least 0", NULL}},
        {HEAD "a,1,2e9,3\n", OPI_E_RANGE, {"line 2: usd_per_h = 2000000000", "at most 1000000000", NULL}},
        {HEAD " ,1,2,3\n", OPI_E_FORMAT, {"line 2: choice is blank", NULL, NULL}},
        {HEAD "\"a,1,2,3\n", OPI_E_FORMAT, {"line 2", "never closed", NULL}},
        {"choice,chosen,usd_per_h,launch_success\na,1,2,0\n", OPI_E_RANGE, {"launch_success = 0", "above 0", NULL}},
        {"choice,chosen,usd_per_h,launch_success,replicas\na,1,2,1,0.5\n", OPI_E_RANGE, {"replicas = 0.5", NULL, NULL}},
        {"choice,chosen,usd_per_h\na,1,2\n", OPI_E_FORMAT, {"no column besides usd_per_h", NULL, NULL}},
        {"choice,chosen,queue_s\na,1,2\n", OPI_E_FORMAT, {"no column \"usd_per_h\"", NULL, NULL}},
        {"choice;chosen;usd_per_h;queue_s\na;1;2;3\n", OPI_E_FORMAT, {"no column \"choice\"", "commas", NULL}},
        {"choice,chosen,usd_per_h,queue_s,chosen\n", OPI_E_FORMAT, {"chosen stands twice", NULL, NULL}},
        {HEAD, OPI_E_NODATA, {"no data line", NULL, NULL}},
        {"", OPI_E_NODATA, {"empty", NULL, NULL}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        opi_preferences *p = (void *)&bad;
        opi_error err = {0};
        const int32_t rc = opi_preferences_fit(ctx, bad[i].csv, strlen(bad[i].csv), NULL, &p, &err);
        ck_assert_msg(rc == bad[i].code && err.code == rc, "%zu: %d %s", i, rc, err.message);
        ck_assert_ptr_eq(p, (void *)&bad);
        for (size_t k = 0; k < 3 && bad[i].says[k]; k++)
            ck_assert_msg(strstr(err.message, bad[i].says[k]) != NULL, "%zu: %s", i, err.message);
        ck_assert_ptr_null(strchr(err.message, '\n'));
    }
}
END_TEST

static void check_note(const opi_preferences *p, const char *part)
{
    for (size_t i = 0; i < opi_preferences_note_count(p); i++)
        if (strstr(opi_preferences_note(p, i), part))
            return;
    ck_abort_msg("no note says \"%s\"; the first: %s", part, opi_preferences_note(p, 0));
}

START_TEST(oddities_are_said)
{
    opi_preferences *p = choice_fit(ctx,
        "choice,chosen,usd_per_h,queue_s,queues,gpu\n"
        "one,1,10,5,x,y\n"                                      /* a single alternative */
        "twin,0,10,5,x,y\ntwin,1,10,5,x,y\ntwin,0,20,9,x,y\n"   /* lines 3 to 5 */
        "w1,1,10,50,x,y\nw2,0,10,50,x,y\nw2,1,20,5,x,y\nw1,0,20,5,x,y\n" /* lines 6 to 9 */
        "worse,1,30,90,x,y\nworse,0,20,80,x,y\n", NULL);        /* lines 10 and 11 */
    ck_assert_uint_eq(choice_summary(p).left_out, 1);
    ck_assert_uint_eq(choice_summary(p).situations, 4);
    check_note(p, "choice \"one\", line 2: only one");
    check_note(p, "choice \"twin\": line 4 was chosen and line 3 is the same");
    check_note(p, "choice \"w1\", line 6, and choice \"w2\", line 8: the same configurations");
    check_note(p, "choice \"worse\": line 10 was chosen although line 11");
    check_note(p, "2 columns are not used: queues, gpu");
    check_note(p, "no column out_tok_s, launch_success, slo_violation, kv_usage and power_w");
    ck_assert_ptr_null(opi_preferences_note(p, opi_preferences_note_count(p)));
    opi_preferences_free(p);
    p = choice_fit(ctx, "choice,chosen,usd_per_h,queue_s,kv_usge\na,1,1,2,3\na,0,2,1,3\n", NULL);
    check_note(p, "the column \"kv_usge\" is not used; did you mean kv_usage?");
    opi_preferences_free(p);
}
END_TEST

/* A file of choices between two configurations; each(i, r, x, y) fills the rows, the first is taken where it returns 1. */
static opi_preferences *fit_pairs(const char *head, int n, int (*each)(int i, opi__rng *r, char *x, char *y))
{
    static char text[200000];
    char x[200], y[200];
    opi__rng r;
    opi__rng_seed(&r, 99);
    size_t at = (size_t)sprintf(text, "%s", head);
    for (int i = 0; i < n; i++) {
        const int first = each(i, &r, x, y);
        at += (size_t)sprintf(text + at, "%d,%d,%s\n%d,%d,%s\n", i, first, x, i, !first, y);
    }
    return choice_fit(ctx, text, NULL);
}

static int logit(opi__rng *r, double u)
{
    return opi__rng_uniform(r) < 1 / (1 + exp(-u));
}

static int constant_queue(int i, opi__rng *r, char *x, char *y)
{
    const double a = 10 * opi__rng_uniform(r), b = 10 * opi__rng_uniform(r);
    const double s = opi__rng_uniform(r), t = opi__rng_uniform(r);
    sprintf(x, "%.17g,%d,%.17g", a, 100 * i, s);
    sprintf(y, "%.17g,%d,%.17g", b, 100 * i, t);
    return logit(r, 0.5 * (b - a) + 5 * (t - s));
}

START_TEST(constant_within_situations)
{
    opi_preferences *p = fit_pairs("choice,chosen,usd_per_h,queue_s,slo_violation\n", 300, constant_queue);
    opi_utility u = {.struct_size = sizeof u};
    ck_assert_int_eq(choice_weight(p, 1).status, OPI_PREF_CONSTANT);
    ck_assert_int_eq(choice_weight(p, 3).status, OPI_PREF_IDENTIFIED);
    ck_assert(isnan(choice_weight(p, 1).weight) && isnan(choice_weight(p, 1).lo));
    check_note(p, "queue_s: the same for all configurations of a situation");
    ck_assert_int_eq(opi_preferences_utility(p, &u, NULL), OPI_OK);
    ck_assert_double_eq(u.queue_usd_per_h, 5);
    ck_assert_double_eq_tol(u.slo_penalty_usd_per_h, 10, 3 * choice_weight(p, 3).se);
    opi_preferences_free(p);
}
END_TEST

static int collinear_power(int i, opi__rng *r, char *x, char *y)
{
    const double a = 10 * opi__rng_uniform(r), b = 10 * opi__rng_uniform(r);
    const double q = 1000 * opi__rng_uniform(r), s = opi__rng_uniform(r);
    sprintf(x, "%.17g,%.17g,%.17g,%.17g", a, q, 50 + 3 * q, s); /* power: a straight line of the queue */
    sprintf(y, "%.17g,%d,%d,0", b, i, 50 + 3 * i);
    return logit(r, 0.5 * (b - a) - 2 * s);
}

START_TEST(collinear_columns)
{
    opi_preferences *p = fit_pairs("choice,chosen,usd_per_h,queue_s,power_w,slo_violation\n", 300, collinear_power);
    ck_assert_int_eq(choice_weight(p, 1).status, OPI_PREF_COLLINEAR);
    ck_assert_int_eq(choice_weight(p, 5).status, OPI_PREF_COLLINEAR);
    ck_assert_int_eq(choice_weight(p, 3).status, OPI_PREF_IDENTIFIED);
    check_note(p, "queue_s and power_w move together in every situation");
    opi_preferences_free(p);
}
END_TEST

static int power_is_cost(int i, opi__rng *r, char *x, char *y)
{
    (void)i;
    const double a = 10 * opi__rng_uniform(r), b = 10 * opi__rng_uniform(r), s = opi__rng_uniform(r);
    sprintf(x, "%.17g,%.17g,%.17g", a, 700 * a, s);
    sprintf(y, "%.17g,%.17g,0", b, 700 * b);
    return logit(r, 0.5 * (b - a) - 2 * s);
}

START_TEST(no_scale_when_cost_is_collinear)
{
    opi_preferences *p = fit_pairs("choice,chosen,usd_per_h,power_w,slo_violation\n", 300, power_is_cost);
    opi_utility u = {.struct_size = sizeof u};
    opi_error err = {0};
    ck_assert_int_eq(choice_summary(p).cost_status, OPI_PREF_COLLINEAR);
    ck_assert_int_eq(choice_weight(p, 3).status, OPI_PREF_NO_SCALE);
    ck_assert(isnan(choice_weight(p, 3).weight));
    ck_assert_double_gt(choice_weight(p, 3).coefficient, 0); /* the coefficient itself is known */
    check_note(p, "usd_per_h and power_w move together");
    ck_assert_int_eq(opi_preferences_utility(p, &u, &err), OPI_E_NODATA);
    ck_assert_ptr_nonnull(strstr(err.message, "usd_per_h: collinear"));
    ck_assert_double_eq(u.kv_knee, 0); /* untouched */
    ck_assert_int_eq(opi_preferences_save_file(p, "/nonexistent/u.json", &err), OPI_E_NODATA);
    opi_preferences_free(p);
}
END_TEST

/* Never a configuration that may break an SLO when another does not: only ties of the SLO tell about cost and value. */
static int slo_first(int i, opi__rng *r, char *x, char *y)
{
    const double a = 10 * opi__rng_uniform(r), b = 10 * opi__rng_uniform(r);
    const double q = 2e5 * opi__rng_uniform(r);
    const double s = i % 3 ? 0.1 : 0.1 + 0.5 * opi__rng_uniform(r);
    sprintf(x, "%.17g,%.17g,%.17g", a, q, s);
    sprintf(y, "%.17g,0,0.1", b);
    return i % 3 ? logit(r, 0.5 * (b - a) - 1e-5 * q) : 0;
}

START_TEST(separated_by_one)
{
    opi_preferences *p = fit_pairs("choice,chosen,usd_per_h,queue_s,slo_violation\n", 600, slo_first);
    opi_utility u = {.struct_size = sizeof u};
    ck_assert_int_eq(choice_weight(p, 3).status, OPI_PREF_SEPARATED);
    ck_assert_int_eq(choice_summary(p).cost_status, OPI_PREF_IDENTIFIED);
    ck_assert_int_eq(choice_weight(p, 1).status, OPI_PREF_IDENTIFIED);
    /* 1e-5 / 0.5 dollars a second, spread over 24 hours. */
    ck_assert_double_eq_tol(choice_weight(p, 1).weight, 2e-5 * 3600 * 24, 4 * choice_weight(p, 1).se);
    check_note(p, "slo_violation: choices follow it without exception");
    ck_assert_int_eq(opi_preferences_utility(p, &u, NULL), OPI_OK);
    ck_assert_double_eq(u.slo_penalty_usd_per_h, 20); /* the base's */
    opi_preferences_free(p);
}
END_TEST

static int without_noise(int i, opi__rng *r, char *x, char *y)
{
    (void)i;
    const double a = 10 * opi__rng_uniform(r), b = 10 * opi__rng_uniform(r);
    const double s = opi__rng_uniform(r), t = opi__rng_uniform(r);
    sprintf(x, "%.17g,%.17g", a, s);
    sprintf(y, "%.17g,%.17g", b, t);
    return b - a + 10 * (t - s) > 0;
}

START_TEST(separated_together)
{
    for (int n = 10; n <= 1000; n *= 10) {
        opi_preferences *p = fit_pairs("choice,chosen,usd_per_h,slo_violation\n", n, without_noise);
        ck_assert_msg(choice_summary(p).cost_status == OPI_PREF_SEPARATED, "%d choices", n);
        ck_assert_int_eq(choice_weight(p, 3).status, OPI_PREF_SEPARATED);
        check_note(p, "perfect separation");
        opi_preferences_free(p);
    }
}
END_TEST

static int cost_ignored(int i, opi__rng *r, char *x, char *y)
{
    (void)i;
    const double s = opi__rng_uniform(r), t = opi__rng_uniform(r);
    sprintf(x, "%.17g,%.17g", 10 * opi__rng_uniform(r), s);
    sprintf(y, "%.17g,%.17g", 10 * opi__rng_uniform(r), t);
    return logit(r, 5 * (t - s));
}

START_TEST(no_scale_when_cost_is_ignored)
{
    opi_preferences *p = fit_pairs("choice,chosen,usd_per_h,slo_violation\n", 300, cost_ignored);
    ck_assert_int_eq(choice_summary(p).cost_status, OPI_PREF_NO_SCALE);
    ck_assert_int_eq(choice_weight(p, 3).status, OPI_PREF_NO_SCALE);
    ck_assert(isnan(choice_summary(p).noise_usd_per_h));
    check_note(p, "no weight can be put into dollars");
    opi_preferences_free(p);
}
END_TEST

/* Operators who prefer to wait: no weight of the utility says that. */
static int likes_queues(int i, opi__rng *r, char *x, char *y)
{
    (void)i;
    const double a = 10 * opi__rng_uniform(r), b = 10 * opi__rng_uniform(r);
    const double q = 2e5 * opi__rng_uniform(r), s = opi__rng_uniform(r);
    sprintf(x, "%.17g,%.17g,%.17g", a, q, s);
    sprintf(y, "%.17g,0,0", b);
    return logit(r, 0.5 * (b - a) + 1e-5 * q - 2 * s);
}

START_TEST(wrong_sign)
{
    opi_preferences *p = fit_pairs("choice,chosen,usd_per_h,queue_s,slo_violation\n", 600, likes_queues);
    opi_utility u = {.struct_size = sizeof u};
    const opi_preference w = choice_weight(p, 1);
    ck_assert_int_eq(w.status, OPI_PREF_IDENTIFIED);
    ck_assert_double_lt(w.hi, 0);
    ck_assert_double_eq(w.used, 0);
    check_note(p, "queue_usd_per_h: the choices pull the wrong way");
    check_note(p, "not by chance");
    ck_assert_int_eq(opi_preferences_utility(p, &u, NULL), OPI_OK);
    ck_assert_double_eq(u.queue_usd_per_h, 0);
    ck_assert_double_gt(u.slo_penalty_usd_per_h, 0);
    opi_preferences_free(p);
}
END_TEST

START_TEST(arguments)
{
    char csv[] = HEAD "a,1,2,3\na,0,3,1\n";
    opi_preferences *p = NULL;
    opi_error err = {0};
    opi_utility bad;
    opi_preferences_options o = {.struct_size = sizeof o, .ridge = -1};
    ck_assert_int_eq(opi_preferences_fit(ctx, csv, strlen(csv), &o, &p, &err), OPI_E_RANGE);
    ck_assert_ptr_nonnull(strstr(err.message, "ridge = -1"));
    o = (opi_preferences_options){.struct_size = sizeof o, .level = NAN};
    ck_assert_int_eq(opi_preferences_fit(ctx, csv, strlen(csv), &o, &p, &err), OPI_E_RANGE);
    opi_utility_default(&bad);
    bad.risk = 7;
    o = (opi_preferences_options){.struct_size = sizeof o, .base = &bad};
    ck_assert_int_eq(opi_preferences_fit(ctx, csv, strlen(csv), &o, &p, &err), OPI_E_RANGE);
    ck_assert_ptr_nonnull(strstr(err.message, "risk = 7"));
    o.struct_size = 0;
    ck_assert_int_eq(opi_preferences_fit(ctx, csv, strlen(csv), &o, &p, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_preferences_fit(ctx, NULL, 0, NULL, &p, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_preferences_fit(NULL, csv, 1, NULL, &p, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_preferences_fit(ctx, csv, strlen(csv), NULL, NULL, &err), OPI_E_INVALID);
    ck_assert_ptr_null(p);
    p = choice_fit(ctx, csv, NULL);
    opi_preference w = {.struct_size = sizeof w}, none = {0};
    ck_assert_uint_eq(opi_preferences_count(p), CHOICE_WEIGHTS);
    ck_assert_int_eq(opi_preferences_at(p, CHOICE_WEIGHTS, &w, &err), OPI_E_RANGE);
    ck_assert_int_eq(opi_preferences_at(p, 0, &none, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_preferences_at(NULL, 0, &w, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_preferences_json(p, NULL, &err), OPI_E_INVALID);
    ck_assert_uint_eq(opi_preferences_count(NULL), 0);
    ck_assert_uint_eq(opi_preferences_note_count(NULL), 0);
    ck_assert_str_eq(opi_preference_status_name(OPI_PREF_SEPARATED), "separated");
    ck_assert_str_eq(opi_preference_status_name(-3), "?");
    opi_preferences_free(NULL);
    opi_preferences_free(p);
}
END_TEST

/* Costs and rates at the ends of their ranges: numbers, or a status, never NaN in the utility. */
START_TEST(extreme_numbers)
{
    static const char *const rows[] = {"1e9", "1e-300", "0", "5e-324", "999999999.5"};
    char text[4000];
    size_t at = (size_t)sprintf(text, "choice,chosen,usd_per_h,out_tok_s,power_w\n");
    for (int i = 0; i < 25; i++)
        at += (size_t)sprintf(text + at, "%d,1,%s,%s,1\n%d,0,%s,1e12,1e12\n", i, rows[i % 5], rows[i / 5], i,
                              rows[(i + 2) % 5]);
    opi_preferences *p = choice_fit(ctx, text, NULL);
    opi_utility u = {.struct_size = sizeof u};
    ck_assert(isfinite(choice_summary(p).log_likelihood));
    if (opi_preferences_utility(p, &u, NULL) == OPI_OK)
        ck_assert(isfinite(u.value_usd_per_mtok) && isfinite(u.power_usd_per_kwh));
    opi_preferences_free(p);
}
END_TEST

Suite *suite_preference_odd(void)
{
    Suite *s = suite_create("preference_odd");
    TCase *t = tcase_create("preference_odd");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, refusals);
    tcase_add_test(t, oddities_are_said);
    tcase_add_test(t, constant_within_situations);
    tcase_add_test(t, collinear_columns);
    tcase_add_test(t, no_scale_when_cost_is_collinear);
    tcase_add_test(t, separated_by_one);
    tcase_add_test(t, separated_together);
    tcase_add_test(t, no_scale_when_cost_is_ignored);
    tcase_add_test(t, wrong_sign);
    tcase_add_test(t, arguments);
    tcase_add_test(t, extreme_numbers);
    suite_add_tcase(s, t);
    return s;
}
