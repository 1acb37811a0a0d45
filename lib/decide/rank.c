/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/rank.h"

#include "decide/score.h"

#include <math.h>

/* -1, 0, 1; NaN counts as the least. */
static int compare(double x, double y)
{
    if (isnan(x) || isnan(y))
        return isnan(y) - isnan(x);
    return (x > y) - (x < y);
}

static int compare_missed(const opi__cand *x, const opi__cand *y)
{
    if (x->tier == 1)
        return compare(x->judged_tok_s, y->judged_tok_s);
    return x->tier == 2 ? compare(y->pub.slo_violation, x->pub.slo_violation) : 0;
}

static int64_t gpus_of(const opi__cand *c)
{
    return (int64_t)c->pub.config.n_gpus * c->pub.replicas;
}

int opi__ranks_before(const opi__cand *x, const opi__cand *y)
{
    if (!x->pub.infeasible != !y->pub.infeasible)
        return !x->pub.infeasible;
    if (x->pub.infeasible)
        return x->pub.infeasible != y->pub.infeasible ? x->pub.infeasible < y->pub.infeasible : x->order < y->order;
    if (x->tier != y->tier)
        return x->tier < y->tier;
    int c = compare_missed(x, y);
    if (c == 0)
        c = x->pub.price_stated - y->pub.price_stated;
    if (c == 0)
        c = compare(x->pub.score, y->pub.score);
    if (c == 0)
        c = gpus_of(x) < gpus_of(y) ? 1 : gpus_of(x) > gpus_of(y) ? -1 : 0;
    return c ? c > 0 : x->order < y->order;
}

static void sift(const opi__cand *v, uint32_t *order, size_t root, size_t n)
{
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && opi__ranks_before(&v[order[child]], &v[order[child + 1]]))
            child++;
        if (!opi__ranks_before(&v[order[root]], &v[order[child]]))
            return;
        const uint32_t swap = order[root];
        order[root] = order[child];
        order[child] = swap;
    }
}

void opi__rank(const opi__cand *v, size_t n, uint32_t *order)
{
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    for (size_t i = n / 2; i-- > 0;)
        sift(v, order, i, n);
    for (size_t end = n; end-- > 1;) {
        const uint32_t last = order[0];
        order[0] = order[end];
        order[end] = last;
        sift(v, order, 0, end);
    }
}

int opi__within(const opi__cand *c)
{
    return c->pub.verdict == OPI_P_OK || c->pub.verdict == OPI_P_NEW_COMBINATION;
}

int opi__recommendable(const opi__cand *c)
{
    return !c->pub.infeasible && c->tier == 0 && opi__within(c);
}

static double tie_width(const opi__ask *ask, const opi__cand *c)
{
    const opi_terms *t = &c->pub.terms;
    const int dollars = opi__score_unit(ask, c) == OPI__USD_PER_H;
    return OPI__TIE_SHARE * (dollars ? fmax(fabs(t->value), fabs(t->node)) : fabs(c->pub.score));
}

/* First rank >= from that may be recommended, SIZE_MAX when there is none. */
static size_t next_recommendable(const opi_advice *a, size_t from)
{
    for (size_t r = from; r < a->n_feasible; r++)
        if (opi__recommendable(opi__ranked(a, r)))
            return r;
    return SIZE_MAX;
}

void opi__pick(opi_advice *a)
{
    a->winner = next_recommendable(a, 0);
    a->runner_up = SIZE_MAX;
    a->verdict = a->n_feasible == 0 ? OPI_ADVISE_NOTHING_FEASIBLE
                 : a->winner == SIZE_MAX ? OPI_ADVISE_ABSTAINED : OPI_ADVISE_RECOMMENDED;
    if (a->winner == SIZE_MAX)
        return;
    const size_t first = a->winner;
    const opi__cand *best = opi__ranked(a, first);
    for (size_t r = first + 1; best->pub.verdict == OPI_P_NEW_COMBINATION && r < a->n_feasible; r++) {
        const opi__cand *c = opi__ranked(a, r);
        if (c->tier != best->tier || c->pub.price_stated != best->pub.price_stated ||
            !(c->pub.score >= best->pub.score - tie_width(&a->ask, best)))
            break;
        if (c->pub.verdict == OPI_P_OK) {
            a->winner = r;
            break;
        }
    }
    a->runner_up = a->winner != first ? first : next_recommendable(a, first + 1);
}
