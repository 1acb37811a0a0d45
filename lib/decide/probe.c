/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/probe.h"

#include "base/text.h"
#include "decide/explain.h"

#include <math.h>
#include <string.h>

size_t opi__probe_rank(const opi_advice *a)
{
    const size_t last = a->winner == SIZE_MAX ? a->n_feasible : a->winner + 1;
    for (size_t r = 0; r < last; r++)
        if (opi__ranked(a, r)->pub.verdict != OPI_P_OK)
            return r;
    return SIZE_MAX;
}

static void load_text(const opi_config *k, char *buf, size_t cap)
{
    char in[32], out[32], load[32];
    const int rate = k->request_rate > 0;
    opi__nice(in, k->input_len);
    opi__nice(out, k->output_len);
    opi__nice(load, rate ? k->request_rate : k->concurrency);
    opi__format(buf, cap, "%s input and %s output tokens, %s %s", in, out, load, rate ? "requests/s" : "requests in flight");
}

void opi__probe(opi_advice *a)
{
    const size_t rank = opi__probe_rank(a);
    a->probe[0] = 0;
    if (rank == SIZE_MAX)
        return;
    const opi__cand *c = opi__ranked(a, rank);
    opi__cand one = *c; /* one replica is enough to measure */
    char label[160], load[128];
    one.pub.replicas = 1;
    opi__label(&one, label, sizeof label);
    load_text(&c->pub.config, load, sizeof load);
    opi__format(a->probe, sizeof a->probe, "Measuring %s on %s under %s would help most%s%s.", a->ask.llm.name, label, load,
                *c->pub.reason ? ": " : "", c->pub.reason);
}
