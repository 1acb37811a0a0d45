/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/explain.h"

#include "base/text.h"
#include "decide/rank.h"
#include "decide/score.h"

#include <math.h>
#include <string.h>

void opi__nice(char buf[32], double v)
{
    if (!isfinite(v) || fabs(v) > 9e15)
        opi__copy_text(buf, 32, "no number");
    else if (fabs(v) >= 99.5)
        opi__format(buf, 32, "%lld", (long long)(v < 0 ? v - 0.5 : v + 0.5));
    else
        opi__format(buf, 32, "%.3g", v);
}

void opi__label(const opi__cand *c, char *buf, size_t cap)
{
    const opi_config *k = &c->pub.config;
    char replicas[32] = "", pp[16] = "";
    if (c->pub.replicas > 1)
        opi__format(replicas, sizeof replicas, "%d replicas of ", (int)c->pub.replicas);
    if (k->pp > 1)
        opi__format(pp, sizeof pp, " PP %d", (int)k->pp);
    opi__format(buf, cap, "%s%d x %s TP %d%s %s %s", replicas, (int)k->n_gpus, c->line->gpu.name, (int)k->tp, pp,
                k->precision ? k->precision : "", k->engine ? k->engine : "");
}

/* "net $12.3/h at 5321 tokens/s, SLOs met with probability 97 %": what a candidate is ranked by. */
static void figures(const opi_advice *a, const opi__cand *c, char *buf, size_t cap)
{
    char money[32], tok_s[32], odds[64] = "";
    opi__nice(tok_s, c->pub.out_tok_s);
    if (a->ask.n_slos) {
        char percent[32];
        opi__nice(percent, 100 * (1 - c->pub.slo_violation));
        opi__format(odds, sizeof odds, ", SLO%s met with probability %s %%", a->ask.n_slos > 1 ? "s" : "", percent);
    }
    const int32_t unit = opi__score_unit(&a->ask, c);
    if (unit == OPI__TOK_S_PER_GPU) {
        opi__nice(money, c->pub.score);
        opi__format(buf, cap, "%s tokens/s, %s a GPU (no price stated)%s", tok_s, money, odds);
    } else if (unit == OPI__USD_PER_MTOK) {
        opi__nice(money, -c->pub.score);
        opi__format(buf, cap, "$%s a million output tokens, all costs in, at %s tokens/s%s", money, tok_s, odds);
    } else if (a->ask.utility.value_usd_per_mtok > 0) {
        opi__nice(money, fabs(c->pub.score));
        opi__format(buf, cap, "a net %s$%s/h%s at %s tokens/s%s", c->pub.score < 0 ? "loss of " : "", money,
                    c->pub.price_stated ? "" : " before node costs (no price stated)", tok_s, odds);
    } else {
        opi__nice(money, -c->pub.score);
        opi__format(buf, cap, "$%s/h, all costs in, for %s tokens/s%s", money, tok_s, odds);
    }
}

static const char *standing(const opi__cand *c)
{
    return c->pub.verdict == OPI_P_OK ? "inside what was measured"
           : c->pub.verdict == OPI_P_NEW_COMBINATION ? "a new combination"
           : c->pub.verdict == OPI_P_UNCALIBRATED ? "without calibration" : "outside what was measured";
}

typedef struct text {
    char *at;
    size_t left;
} text;

static void say(text *t, const char *s)
{
    const int cut = opi__copy_text(t->at, t->left, s);
    const size_t n = cut ? t->left - 1 : strlen(s);
    t->at += n;
    t->left -= n;
}

static void say_candidate(text *t, const opi_advice *a, const opi__cand *c, const char *verb)
{
    char label[160], what[256];
    opi__label(c, label, sizeof label);
    figures(a, c, what, sizeof what);
    say(t, label);
    say(t, verb);
    say(t, what);
    say(t, ", ");
    say(t, standing(c));
    if (c->pub.verdict != OPI_P_OK && *c->pub.reason) {
        say(t, " (");
        say(t, c->pub.reason);
        say(t, ")");
    }
}

static void explain_winner(opi_advice *a, text *t)
{
    const opi__cand *w = opi__ranked(a, a->winner), *best = opi__ranked(a, 0);
    say_candidate(t, a, w, " wins with ");
    const int preferred = a->runner_up < a->winner;
    if (a->runner_up != SIZE_MAX) {
        say(t, preferred ? "; within 5 % of it the measured one is preferred to " : "; next is ");
        say_candidate(t, a, opi__ranked(a, a->runner_up), " with ");
    }
    if (a->winner > 0 && !opi__within(best)) {
        say(t, "; ");
        say_candidate(t, a, best, " looks better with ");
        say(t, ", and is not recommended");
    }
    say(t, ".");
}

/* Why nothing is recommended although something is feasible: outside, an SLO, or the demand. */
static void explain_abstention(opi_advice *a, text *t)
{
    const opi__cand *best = opi__ranked(a, 0);
    char label[160], number[32], demand[32];
    opi__label(best, label, sizeof label);
    if (best->tier == 0) {
        int inside = 0;
        for (size_t r = 0; r < a->n_feasible; r++)
            inside += opi__within(opi__ranked(a, r));
        say(t, "Every ");
        say(t, inside ? "configuration that seems to meet the requirements" : "feasible configuration");
        say(t, " lies outside what was measured; the best-looking, ");
        say_candidate(t, a, best, ", has ");
    } else if (best->tier == 2) {
        say(t, a->ask.n_slos > 1 ? "No configuration meets the SLOs; the nearest, "
                                 : "No configuration meets the SLO; the nearest, ");
        opi__nice(number, 100 * best->pub.slo_violation);
        say(t, label);
        say(t, ", violates at least one with probability ");
        say(t, number);
        say(t, " %, ");
        say(t, standing(best));
    } else {
        opi__nice(number, best->pub.out_tok_s);
        opi__nice(demand, a->ask.demand);
        say(t, "No configuration of this inventory delivers the ");
        say(t, demand);
        say(t, a->ask.demand_implied ? " output tokens/s of the offered rate" : " output tokens/s asked for");
        say(t, "; the most, ");
        say(t, label);
        say(t, ", delivers ");
        say(t, number);
        say(t, ", ");
        say(t, standing(best));
    }
    say(t, ".");
}

/* Why nothing can run: memory when it was the limit anywhere, else the reason that refused most candidates. */
static void explain_nothing(opi_advice *a, text *t)
{
    size_t count[OPI_R_ENGINE + 1] = {0};
    int32_t most = OPI_R_MEMORY;
    const opi__cand *nearest = NULL;
    for (size_t i = 0; i < a->cands.n; i++)
        count[a->cands.v[i].pub.infeasible]++;
    for (int32_t r = OPI_R_MEMORY; r <= OPI_R_ENGINE; r++)
        most = count[r] > count[most] ? r : most;
    /* Memory was looked at only where the inventory sufficed: where it fails there, more of the same GPU may not help. */
    if (count[OPI_R_MEMORY])
        most = OPI_R_MEMORY;
    for (size_t i = 0; i < a->cands.n; i++) {
        const opi__cand *c = &a->cands.v[i];
        if (c->pub.infeasible == most && (!nearest || c->pub.memory.margin_gib > nearest->pub.memory.margin_gib))
            nearest = c;
    }
    if (!nearest) {
        say(t, "No engine serves these GPUs.");
        return;
    }
    say(t, "The nearest miss: ");
    if (nearest->pub.config.n_gpus > 0) {
        char label[160];
        opi__label(nearest, label, sizeof label);
        for (size_t n = strlen(label); n > 0 && label[n - 1] == ' '; n--)
            label[n - 1] = 0;
        say(t, label);
        say(t, ": ");
    }
    say(t, nearest->pub.reason);
    say(t, ".");
}

void opi__explain(opi_advice *a)
{
    text t = {a->sentence, sizeof a->sentence};
    if (a->verdict == OPI_ADVISE_NOTHING_FEASIBLE)
        explain_nothing(a, &t);
    else if (a->verdict == OPI_ADVISE_ABSTAINED)
        explain_abstention(a, &t);
    else
        explain_winner(a, &t);
}
