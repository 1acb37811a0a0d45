/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's findings as a JSON document. */
#include "base/text.h"
#include "model/gate.h"
#include <string.h>

#define REPORT_VERSION 1

static const char *const verdict_name[] = {"same", "better", "unclear", "worse", "lost", "gained", "too-few-cells",
                                           "not-in-table"};

static int32_t add_model(const opi__gate *g, int side, opi__json *root, opi_error *err)
{
    const opi_model *m = g->model[side];
    opi__json *manifest = NULL;
    int32_t status = opi__json_parse(m->manifest, strlen(m->manifest), "the model's manifest", &manifest, err);
    if (status)
        return status;
    opi__json *o = opi__json_add_object(root, side ? "new" : "old");
    opi__json_add_string(o, "learner", m->learner->name);
    opi__json_add_string(o, "training_table_sha256",
                         opi__json_string(opi__json_get(opi__json_get(manifest, "training_table"), "sha256")));
    opi__json_add_int(o, "adapted", (int64_t)opi__json_size(opi__json_get(manifest, "adapted")));
    opi__json_add_int(o, "rows_measured_before", (int64_t)g->measured[side]);
    opi__json_free(manifest);
    return OPI_OK;
}

static void add_check(const opi__gate_check *c, opi__json *list)
{
    int is_judged = c->verdict <= OPI__G_WORSE;
    opi__json *o = opi__json_add_object(list, NULL);
    opi__json_add_string(o, "of", c->of);
    opi__json_add_string(o, "what", c->what);
    opi__json_add_string(o, "verdict", verdict_name[c->verdict]);
    if (c->verdict == OPI__G_LOST || c->verdict == OPI__G_GAINED)
        return;
    opi__json_add_int(o, "n", (int64_t)c->rows);
    opi__json_add_int(o, "cells", (int64_t)c->cells);
    opi__json_add_number(o, "old", c->value[0]);
    opi__json_add_number(o, "new", c->value[1]);
    if (!is_judged)
        return;
    opi__json_add_number(o, "difference", c->compared.difference);
    opi__json_add_number(o, "lo", c->compared.lo);
    opi__json_add_number(o, "hi", c->compared.hi);
    opi__json_add_number(o, "margin", c->margin);
    opi__json_add_string(o, "worse_when", c->higher_is_worse ? "higher" : "lower");
}

int32_t opi__gate_report(const opi__gate *g, opi_text **out, opi_error *err)
{
    opi__json *root = opi__json_new_object();
    char seed[24]; /* as text: a JSON number would lose bits */
    size_t worse = 0;
    for (size_t i = 0; i < g->n_checks; i++)
        worse += (size_t)opi__gate_worse(&g->check[i]);
    opi__format(seed, sizeof seed, "%llu", (unsigned long long)g->o.seed);
    opi__json_add_string(root, "schema", "omnipilot.gate");
    opi__json_add_int(root, "version", REPORT_VERSION);
    opi__json_add_string(root, "library", opi_version());
    opi__json_add_bool(root, "promoted", worse == 0);
    opi__json_add_int(root, "worse", (int64_t)worse);
    int32_t status = add_model(g, 0, root, err);
    if (!status)
        status = add_model(g, 1, root, err);
    if (status) {
        opi__json_free(root);
        return status;
    }
    opi__json *table = opi__json_add_object(root, "table");
    opi__json_add_string(table, "sha256", g->d.table->sha256);
    opi__json_add_int(table, "rows", (int64_t)g->d.table->n);
    opi__json_add_int(table, "usable_rows", (int64_t)g->d.n);
    opi__json_add_int(table, "cells", (int64_t)g->cells);
    opi__json_add_number(root, "bound_level", OPI__GATE_LEVEL);
    opi__json_add_int(root, "resamples", (int64_t)g->resamples);
    opi__json_add_string(root, "seed", seed);
    opi__json *list = opi__json_add_array(root, "checks");
    for (size_t i = 0; i < g->n_checks; i++)
        add_check(&g->check[i], list);
    return opi__json_text(g->ctx, root, out, err);
}
