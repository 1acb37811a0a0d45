/* SPDX-License-Identifier: Apache-2.0 */
/* A model as a JSON document. */
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "model/model.h"
#include <math.h>
#include <string.h>

#define DOCUMENT_VERSION 1

static void copy_json(opi__json *into, const char *key, const opi__json *v);

static void copy_members(opi__json *into, const opi__json *from)
{
    for (size_t i = 0; i < opi__json_size(from); i++) {
        const opi__json *v = opi__json_at(from, i);
        copy_json(into, opi__json_is_object(from) ? opi__json_key(v) : NULL, v);
    }
}

static void copy_json(opi__json *into, const char *key, const opi__json *v)
{
    double number;
    int flag;
    if (opi__json_is_object(v))
        copy_members(opi__json_add_object(into, key), v);
    else if (opi__json_is_array(v))
        copy_members(opi__json_add_array(into, key), v);
    else if (opi__json_string(v))
        opi__json_add_string(into, key, opi__json_string(v));
    else if (opi__json_number(v, &number))
        opi__json_add_number(into, key, number);
    else if (opi__json_bool(v, &flag))
        opi__json_add_bool(into, key, flag);
    else
        opi__json_add_null(into, key);
}

static void add_axes(const opi__target_model *g, opi__json *o)
{
    opi__json *list = opi__json_add_array(o, "axes");
    for (int e = 0; e < OPI__ENVELOPE; e++) {
        const opi__axis_def *axis = &opi__axes[opi__envelope_axis(e)];
        const opi__range *r = &g->range[e];
        opi__json *one = opi__json_add_object(list, NULL);
        opi__json_add_string(one, "name", axis->name);
        opi__json_add_string(one, "unit", axis->unit);
        opi__json_add_number(one, "min", r->seen ? opi__envelope_value(e, r->lo) : NAN);
        opi__json_add_number(one, "max", r->seen ? opi__envelope_value(e, r->hi) : NAN);
        opi__json_add_bool(one, "blank_measured", r->blank_seen);
    }
}

static void add_categories(const opi_model *m, const opi__target_model *g, opi__json *o)
{
    opi__json *all = opi__json_add_object(o, "measured");
    for (int k = 0; k < OPI__SEEN_KINDS; k++) {
        int c = opi__seen_axes[k];
        opi__json *list = opi__json_add_array(all, opi__axes[opi__category_axis(c)].name);
        for (uint32_t i = 0; i < m->names[c].n; i++)
            if (g->seen[c][i])
                opi__json_add_string(list, NULL, m->names[c].name[i]);
    }
}

/* Names of a group's categories, from its key (model.c, opi__group_key). */
static void group_name(const opi_model *m, uint64_t key, char *buf, size_t size)
{
    static const int part[] = {OPI__C_LOAD, OPI__C_ENGINE, OPI__C_PRECISION_CLASS};
    int level = (int)(key >> 56 & 15), parts = OPI__GROUP_LEVELS - 1 - level;
    size_t at = opi__format(buf, size, "%s", parts ? "" : "all");
    for (int i = 0; i < parts && at < size; i++) {
        uint32_t code = (uint32_t)(key >> 16 * i & 0xffff);
        const char *name = code >= 1 && code <= m->names[part[i]].n ? m->names[part[i]].name[code - 1] : "";
        at += opi__format(buf + at, size - at, "%s%s", i ? " / " : "", *name ? name : "not stated");
    }
}

static const char *const novelties[OPI__NOVELTIES] = {"known", "new-combination", "outside", "new-site"};
_Static_assert((OPI__NOVELTIES & (OPI__NOVELTIES - 1)) == 0, "a damaged key must not reach beyond the names");

static void add_groups(const opi_model *m, const opi__target_model *g, opi__json *o)
{
    opi__json *list = opi__json_add_array(o, "calibration_groups");
    for (size_t i = 0; i < g->n_groups; i++) {
        char name[160];
        opi__json *one = opi__json_add_object(list, NULL);
        group_name(m, g->group[i].key, name, sizeof name);
        opi__json_add_string(one, "name", name);
        opi__json_add_string(one, "novelty", novelties[g->group[i].key >> 60 & (OPI__NOVELTIES - 1)]);
        opi__json_add_int(one, "scores", g->group[i].count);
    }
}

int32_t opi_model_inspect(const opi_model *m, opi_text **out, opi_error *err)
{
    opi__json *manifest = NULL;
    if (!m || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "model or out is NULL");
    int32_t status = opi__json_parse(m->manifest, strlen(m->manifest), "manifest", &manifest, err);
    if (status)
        return status;
    opi__json *root = opi__json_new_object();
    opi__json_add_string(root, "schema", "omnipilot.model");
    opi__json_add_int(root, "version", DOCUMENT_VERSION);
    opi__json_add_string(root, "library", opi_version());
    opi__json_add_string(root, "learner", m->learner->name);
    copy_json(root, "manifest", manifest);
    opi__json_free(manifest);
    opi__json_add_int(root, "bytes", (int64_t)m->bytes);
    opi__json_add_int(root, "measured_cells_and_configurations", (int64_t)m->n_anchors);
    opi__json *targets = opi__json_add_array(root, "targets");
    for (int t = 0; t < OPI__T_COUNT; t++) {
        const int32_t source = opi__residual_of(t);
        const opi__target_model *own = &m->target[t], *g = &m->target[source];
        opi__json *o = opi__json_add_object(targets, NULL);
        opi__json_add_string(o, "name", opi__targets[t].name);
        opi__json_add_string(o, "title", opi__targets[t].title);
        opi__json_add_string(o, "unit", opi__targets[t].unit);
        opi__json_add_string(o, "answered_by", g->learned ? "learned" : "physics, uncalibrated");
        opi__json_add_string(o, "by_identity_from", source == t ? NULL : opi__targets[source].name);
        opi__json_add_int(o, "rows", own->rows);
        opi__json_add_int(o, "cells", own->cells);
        opi__json_add_int(o, "campaigns", own->sources);
        if (!g->learned)
            continue;
        add_axes(g, o);
        add_categories(m, g, o);
        add_groups(m, g, o);
    }
    return opi__json_text(m->ctx, root, out, err);
}
