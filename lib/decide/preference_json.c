/* SPDX-License-Identifier: Apache-2.0 */
/* Preferences as JSON (docs/json.md, "preferences"), and the utility file that `advise --utility` reads. */
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "decide/preference.h"
#include "decide/utility.h"

#include <math.h>

static void add_cost(opi__json *root, const opi_preferences_summary *s)
{
    opi__json *o = opi__json_add_object(root, "cost");
    opi__json_add_string(o, "column", opi__attributes[OPI__A_COST].column);
    opi__json_add_string(o, "status", opi_preference_status_name(s->cost_status));
    opi__json_add_number(o, "coefficient", s->cost);
    opi__json_add_number(o, "coefficient_se", s->cost_se);
    opi__json_add_number(o, "noise_usd_per_h", s->noise_usd_per_h);
}

static void add_weight(opi__json *list, const opi_preference *w)
{
    opi__json *o = opi__json_add_object(list, NULL);
    opi__json_add_string(o, "name", w->name);
    opi__json_add_string(o, "column", w->column);
    opi__json_add_string(o, "unit", w->unit);
    opi__json_add_string(o, "status", opi_preference_status_name(w->status));
    opi__json_add_number(o, "weight", w->weight); /* NaN prints as null */
    opi__json_add_number(o, "se", w->se);
    opi__json_add_number(o, "lo", w->lo);
    opi__json_add_number(o, "hi", w->hi);
    opi__json_add_number(o, "used", w->used);
    opi__json_add_number(o, "coefficient", w->coefficient);
    opi__json_add_number(o, "coefficient_se", w->coefficient_se);
}

int32_t opi_preferences_json(const opi_preferences *preferences, opi_text **out, opi_error *err)
{
    if (!preferences || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_preferences_json: %s is NULL", preferences ? "out" : "preferences");
    const opi_preferences_summary *s = &preferences->summary;
    opi__json *root = opi__json_new_object();
    opi__json_add_string(root, "schema", "omnipilot.preferences");
    opi__json_add_int(root, "version", 1);
    opi__json_add_string(root, "library", opi_version());
    opi__json_add_int(root, "situations", (int64_t)s->situations);
    opi__json_add_int(root, "alternatives", (int64_t)s->alternatives);
    opi__json_add_int(root, "left_out", (int64_t)s->left_out);
    opi__json_add_number(root, "ridge", s->ridge);
    opi__json_add_number(root, "level", s->level);
    opi__json_add_number(root, "log_likelihood", s->log_likelihood);
    opi__json_add_number(root, "log_likelihood_null", s->log_likelihood_null);
    opi__json_add_number(root, "pseudo_r2", 1 - s->log_likelihood / s->log_likelihood_null);
    opi__json_add_int(root, "hits", (int64_t)s->hits);
    add_cost(root, s);
    opi__json *list = opi__json_add_array(root, "weights");
    for (size_t a = OPI__A_COST + 1; a < OPI__ATTRIBUTES; a++)
        add_weight(list, &preferences->weight[a]);
    if (s->cost_status == OPI_PREF_IDENTIFIED)
        opi__utility_json(opi__json_add_object(root, "utility"), &preferences->used);
    else
        opi__json_add_null(root, "utility");
    list = opi__json_add_array(root, "notes");
    for (size_t i = 0; i < preferences->n_notes; i++) {
        opi__json *o = opi__json_add_object(list, NULL);
        opi__json_add_string(o, "code", preferences->notes[i].code);
        opi__json_add_string(o, "text", preferences->notes[i].text);
    }
    return opi__json_text(preferences->ctx, root, out, err);
}

int32_t opi_preferences_save_file(const opi_preferences *preferences, const char *path, opi_error *err)
{
    opi_utility u = {.struct_size = sizeof u};
    opi_text *text = NULL;
    if (!path)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_preferences_save_file: path is NULL");
    int32_t rc = opi_preferences_utility(preferences, &u, err);
    if (rc)
        return rc;
    opi__json *root = opi__json_new_object();
    opi__json_add_int(root, "version", 1);
    opi__utility_json(root, &u);
    rc = opi__json_text(preferences->ctx, root, &text, err);
    if (rc)
        return rc;
    opi__buf file;
    opi__buf_init(&file, preferences->ctx);
    opi__buf_puts(&file, opi_text_data(text));
    opi__buf_puts(&file, "\n");
    rc = file.status < 0 ? opi__fail_memory(err, opi_text_size(text))
                         : opi__write_file_atomic(path, file.data, file.len, err);
    opi__buf_free(&file);
    opi_text_free(text);
    return rc;
}
