/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "decide/explain.h"
#include "decide/launch.h"
#include "decide/score.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

void opi__note_add(opi_advice *a, const char *code, const char *fmt, ...)
{
    if (a->n_notes == OPI__MOST_NOTES)
        return;
    opi__note *n = &a->notes[a->n_notes];
    va_list ap;
    va_start(ap, fmt);
    opi__vformat(n->text, sizeof n->text, fmt, ap);
    va_end(ap);
    n->code = code;
    for (size_t i = 0; i < a->n_notes; i++)
        if (!strcmp(a->notes[i].code, code) && !strcmp(a->notes[i].text, n->text))
            return;
    a->n_notes++;
}

static void note_prices(opi_advice *a)
{
    const opi__ask *ask = &a->ask;
    for (size_t i = 0; i < ask->n_lines; i++) {
        const opi__line *l = &ask->lines[i];
        char price[32];
        opi__format(price, sizeof price, "%.4g", l->price);
        if (l->price_kind == OPI__PRICE_ONDEMAND || l->price_kind == OPI__PRICE_RENTAL)
            opi__note_add(a, "price-cited", "%s: no price stated; the table's cited %s price of $%s a GPU hour is used",
                          l->gpu.name, l->price_kind == OPI__PRICE_RENTAL ? "long-term rental" : "on-demand", price);
    }
    if (ask->n_priced == ask->n_lines)
        return;
    for (size_t i = 0; i < ask->n_lines; i++)
        if (ask->lines[i].price_kind == OPI__PRICE_NONE)
            opi__note_add(a, "price-not-stated", "%s: no price stated and none cited; its node cost is left out%s",
                          ask->lines[i].gpu.name, ask->n_priced ? " and it ranks below the GPUs with a price" : "");
    if (ask->n_priced)
        return;
    opi__note_add(a, "rank-without-price",
                  ask->utility.value_usd_per_mtok > 0
                      ? "no price stated for any GPU: ranked by value without node cost"
                      : "no price stated for any GPU: ranked by output tokens/s for each GPU, as if all cost the same");
}

static void note_ranking(opi_advice *a)
{
    const opi__ask *ask = &a->ask;
    if (ask->n_priced == 0 || ask->utility.value_usd_per_mtok > 0)
        return;
    if (ask->demand > 0)
        opi__note_add(a, "cheapest-for-demand", "no value of a token stated: ranked by the cost of meeting the demand");
    else
        opi__note_add(a, "cheapest-per-token", "no value of a token stated: ranked by the cost of a million output tokens");
}

static void note_load(opi_advice *a)
{
    const opi__ask *ask = &a->ask;
    char rate[32], demand[32];
    opi__nice(rate, ask->request_rate);
    opi__nice(demand, ask->demand);
    if (ask->open_loop && !ask->demand_implied && ask->request_rate * ask->output_len == ask->demand)
        opi__note_add(a, "rate-from-demand", "no load stated: %s requests/s make the demand of %s output tokens/s", rate,
                      demand);
    if (ask->demand_implied)
        opi__note_add(a, "demand-from-rate", "%s requests/s ask for %s output tokens/s", rate, demand);
    if (a->converted)
        opi__note_add(a, "rate-converted",
                      "%zu of %zu feasible configurations: open-loop load not measured there, so the rate was turned into "
                      "requests in flight by Little's law with the predicted time in the system", a->converted, a->n_feasible);
}

/* Facts from memory of public material show wherever they are used. */
static void note_facts(opi_advice *a)
{
    const opi__ask *ask = &a->ask;
    if (ask->llm.flags & OPI_FACT_RECALLED)
        opi__note_add(a, "facts-recalled", "%s: architecture recalled, not confirmed by a stored config", ask->llm.name);
    if (ask->llm.max_context <= 0)
        opi__note_add(a, "context-unknown", "%s: its context limit is not known and was not checked", ask->llm.name);
    for (size_t i = 0; i < ask->n_lines; i++)
        if (ask->lines[i].gpu.flags & OPI_FACT_RECALLED)
            opi__note_add(a, "facts-recalled", "%s: some figures recalled, not confirmed by a stored datasheet",
                          ask->lines[i].gpu.name);
}

static void note_predictions(opi_advice *a)
{
    size_t power = 0, launch = 0;
    for (size_t r = 0; r < a->n_feasible; r++) {
        const opi__cand *c = opi__ranked(a, r);
        power += isnan(c->pred[OPI__T_POWER].p50) ? 1 : 0;
    }
    if (power && a->ask.utility.power_usd_per_kwh > 0)
        opi__note_add(a, "power-unknown", "%zu configurations: power is not predicted, its cost is left out", power);
    for (size_t i = 0; i < a->ask.n_lines; i++) {
        opi_prior prior = {.struct_size = sizeof prior};
        opi__launch_prior(a->ask.lines[i].gpu.name, 1, &prior);
        launch += prior.serving_rows ? 0 : 1;
    }
    if (launch)
        opi__note_add(a, "launch-pooled",
                      "launch success of %zu of %zu GPU types rests on the pooled rate, training jobs included: no serving "
                      "launch was observed there", launch, a->ask.n_lines);
}

void opi__take_notes(opi_advice *a)
{
    note_prices(a);
    note_ranking(a);
    note_load(a);
    note_facts(a);
    note_predictions(a);
}
