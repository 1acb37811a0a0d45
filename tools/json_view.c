/* SPDX-License-Identifier: Apache-2.0 */
#include "json_view.h"

#include "out.h"
#include "tool.h"

#include <math.h>
#include <string.h>

cJSON *jv_parse(const char *json, size_t n)
{
    cJSON *v = cJSON_ParseWithLength(json, n);
    if (!v) {
        tool_fail(X_FAIL, "the library returned a document that is not JSON (%zu bytes)", n);
    }
    return v;
}

void jv_free(cJSON *v)
{
    cJSON_Delete(v);
}

const cJSON *jv_get(const cJSON *v, const char *path)
{
    char key[128];
    while (v && *path) {
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        v = cJSON_GetObjectItemCaseSensitive(v, key);
        path += n + (path[n] == '.');
    }
    return v;
}

double jv_number(const cJSON *v, const char *path)
{
    const cJSON *item = jv_get(v, path);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

const char *jv_text(const cJSON *v, const char *path)
{
    const cJSON *item = jv_get(v, path);
    return cJSON_IsString(item) ? item->valuestring : "";
}

char *jv_percent(char *buf, double share, int digits)
{
    return out_human(buf, 100 * share, digits);
}

static void scalar(const cJSON *v)
{
    char num[OUT_NUM], text[512];
    if (cJSON_IsNumber(v)) {
        out_puts(out_human(num, v->valuedouble, v->valuedouble == floor(v->valuedouble) ? 15 : 4));
    } else if (cJSON_IsString(v)) {
        out_clean(text, sizeof text, v->valuestring);
        size_t n = out_prefix(text, 64);
        out_bytes(text, n);
        out_puts(text[n] ? "…" : "");
    } else {
        out_puts(cJSON_IsTrue(v) ? "yes" : cJSON_IsFalse(v) ? "no" : "-");
    }
}

static int flat(const cJSON *v)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, v)
    {
        if (item->child) {
            return 0;
        }
    }
    return 1;
}

void jv_print_any(const cJSON *v, size_t indent)
{
    const cJSON *item;
    int pad = (int)indent;
    if (indent > 12) {
        return;
    }
    cJSON_ArrayForEach(item, v)
    {
        char name[64];
        snprintf(name, sizeof name, "%s", item->string ? item->string : "-");
        if (!item->child) {
            out_printf("%*s%-*s ", pad, "", 34 - pad, name);
            scalar(item);
            out_puts("\n");
        } else if (cJSON_IsArray(item) && flat(item)) {
            const cJSON *part;
            out_printf("%*s%-*s ", pad, "", 34 - pad, name);
            cJSON_ArrayForEach(part, item)
            {
                scalar(part);
                out_puts(part->next ? ", " : "");
            }
            out_puts("\n");
        } else {
            out_printf("%*s%s\n", pad, "", name);
            jv_print_any(item, indent + 2);
        }
    }
}

/* ---- the table report ---- */
static void say_unknown_columns(const cJSON *report)
{
    const cJSON *list = jv_get(report, "unknown_columns"), *item;
    char line[512] = "";
    size_t n = 0, shown = 0;
    cJSON_ArrayForEach(item, list)
    {
        const char *near = jv_text(item, "nearest");
        if (shown++ < 8 && n < sizeof line) {
            n += (size_t)snprintf(line + n, sizeof line - n, "%s'%s'%s%s%s", n ? ", " : "", jv_text(item, "name"),
                                  *near ? " (did you mean '" : "", near, *near ? "'?)" : "");
        }
    }
    if (shown) {
        tool_warn("%zu unknown column%s ignored: %s%s", shown, shown == 1 ? "" : "s", line, shown > 8 ? ", …" : "");
    }
}

void json_view_table_report(const char *json, size_t n)
{
    cJSON *report = jv_parse(json, n);
    if (!report) {
        return;
    }
    double rows = jv_number(report, "rows"), usable = jv_number(report, "usable_rows");
    double copies = jv_number(report, "duplicates.surplus_rows"), bad = jv_number(report, "contradictions.rows");
    const cJSON *first = cJSON_GetArrayItem(jv_get(report, "problems"), 0);
    say_unknown_columns(report);
    if (usable < rows) {
        tool_note("%.0f of %.0f rows are usable", usable, rows);
    }
    if (first) {
        double total = jv_number(report, "problems_total");
        tool_warn("%s%s", jv_text(first, "reason"), total > 1 ? "; and more of its kind" : "");
        if (total > 1) {
            tool_note("%.0f problems in all, in %.0f rows", total, jv_number(report, "rows_with_problems"));
        }
    }
    if (copies > 0) {
        tool_note("%.0f rows are exact copies of others", copies);
    }
    if (bad > 0) {
        tool_warn("%.0f rows repeat a configuration and contradict each other by more than a factor of %.3g", bad,
                  jv_number(report, "contradictions.factor"));
    }
    cJSON_Delete(report);
}

int json_view_learned_targets(const char *json, size_t n)
{
    cJSON *root = jv_parse(json, n);
    const cJSON *item;
    int learned = 0;
    cJSON_ArrayForEach(item, jv_get(root, "targets"))
    {
        learned += strcmp(jv_text(item, "answered_by"), "learned") == 0;
    }
    cJSON_Delete(root);
    return learned;
}
