/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/utility.h"

#include "base/status.h"
#include "base/take.h"
#include "base/text.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef struct weight {
    const char *name;
    size_t offset;
    double fallback, lo, hi;
} weight;

#define W(name, fallback, lo, hi) {#name, offsetof(opi_utility, name), fallback, lo, hi}
/* Default: cheapest, no electricity bill of one's own (a cloud price contains it), waiting at $5 an hour. */
static const weight weights[] = {
    W(value_usd_per_mtok, 0, 0, 1e9),     W(queue_usd_per_h, 5, 0, 1e9),      W(restart_usd, 1, 0, 1e9),
    W(restart_node_h, 0.25, 0, 1e4),      W(slo_penalty_usd_per_h, 20, 0, 1e9), W(kv_penalty_usd_per_h, 5, 0, 1e9),
    W(kv_knee, 0.85, 0, 0.999),           W(power_usd_per_kwh, 0, 0, 1e6),    W(amortize_h, 24, 1e-3, 1e6),
    W(risk, 0, 0, 1),
};
#define N_WEIGHTS (sizeof weights / sizeof *weights)

static double *field(opi_utility *u, const weight *w)
{
    return (double *)(void *)((char *)u + w->offset);
}

void opi_utility_default(opi_utility *out)
{
    if (!out)
        return;
    /* The struct only ever grows and callers hand in fresh memory: what is written is the size of this version. */
    *out = (opi_utility){.struct_size = sizeof *out};
    for (size_t i = 0; i < N_WEIGHTS; i++)
        *field(out, &weights[i]) = weights[i].fallback;
}

static int32_t check_one(const weight *w, double v, opi_error *err)
{
    if (!(v >= w->lo && v <= w->hi))
        return opi__fail(err, OPI_E_RANGE, -1, "utility: %s = %g, must be a number from %g to %g", w->name, v, w->lo,
                         w->hi);
    return OPI_OK;
}

int32_t opi__utility_check(opi_utility *u, opi_error *err)
{
    if (u->kv_knee == 0)
        u->kv_knee = 0.85;
    if (u->amortize_h == 0)
        u->amortize_h = 24;
    for (size_t i = 0; i < N_WEIGHTS; i++) {
        const int32_t rc = check_one(&weights[i], *field(u, &weights[i]), err);
        if (rc)
            return rc;
    }
    return OPI_OK;
}

static const weight *find_weight(const char *name, const char **nearest)
{
    size_t best = 4;
    *nearest = NULL;
    for (size_t i = 0; i < N_WEIGHTS; i++) {
        if (!strcmp(weights[i].name, name))
            return &weights[i];
        const size_t d = strlen(name) < 64 ? opi__edit_distance(name, weights[i].name, 4) : 5;
        if (d < best) {
            best = d;
            *nearest = weights[i].name;
        }
    }
    return NULL;
}

static int32_t override(const opi__json *v, size_t i, opi_utility *u, opi_error *err)
{
    const char *key = opi__json_key(v), *nearest;
    double number;
    const weight *w = find_weight(key, &nearest);
    if (!w && !strcmp(key, "version")) {
        if (!opi__json_number(v, &number) || number != 1)
            return opi__fail(err, OPI_E_VERSION, (int64_t)i, "utility: \"version\" must be 1");
        return OPI_OK;
    }
    if (!w && nearest)
        return opi__fail(err, OPI_E_UNKNOWN, (int64_t)i, "utility: \"%.*s\" is not a weight; nearest: \"%s\"", 64, key,
                         nearest);
    if (!w)
        return opi__fail(err, OPI_E_UNKNOWN, (int64_t)i, "utility: \"%.*s\" is not a weight; docs/json.md lists them", 64,
                         key);
    if (!opi__json_number(v, &number))
        return opi__fail(err, OPI_E_FORMAT, (int64_t)i, "utility: \"%s\" is not a number", w->name);
    const int32_t rc = check_one(w, number, err);
    if (rc == OPI_OK)
        *field(u, w) = number;
    return rc;
}

int32_t opi_utility_parse(opi_ctx *ctx, const char *json, size_t size, opi_utility *inout, opi_error *err)
{
    (void)ctx;
    if (!json)
        return opi__fail(err, OPI_E_INVALID, -1, "utility: the JSON text is NULL");
    opi_utility u;
    int32_t rc = opi__take(&u, sizeof u, inout, "opi_utility", err);
    if (rc)
        return rc;
    opi__json *root = NULL;
    rc = opi__json_parse(json, size, "utility", &root, err);
    if (rc)
        return rc;
    if (!opi__json_is_object(root))
        rc = opi__fail(err, OPI_E_FORMAT, 0, "utility: must be a JSON object of weights");
    for (size_t i = 0; rc == OPI_OK && i < opi__json_size(root); i++)
        rc = override(opi__json_at(root, i), i, &u, err);
    opi__json_free(root);
    return rc ? rc : opi__give(inout, &u, sizeof u, "opi_utility", err);
}

/* Share of the way from the knee to full. More than full does not exist: what overload costs shows in the latency. */
static double saturation(const opi_utility *u, double usage)
{
    if (!(usage > u->kv_knee))
        return 0;
    return (fmin(usage, 1) - u->kv_knee) / (1 - u->kv_knee);
}

void opi__utility_terms(const opi_utility *u, const opi__outcome *o, opi_terms *out)
{
    const double node = isnan(o->price) ? 0 : o->price * o->gpus;
    const double useful = o->demand > 0 ? fmin(o->tok_s, o->demand) : o->tok_s;
    /* Launches that fail before one comes up, a geometric wait, for each replica. */
    const double p = fmax(o->launch_success, 1e-3), failed = (1 - p) / p * o->replicas;
    /* 0 - x, not -x: a term that does not apply is 0, not the negative zero. */
    out->value = u->value_usd_per_mtok * useful * 3600 / 1e6;
    out->node = 0 - node;
    out->queue = 0 - u->queue_usd_per_h * (o->queue_s / 3600) / u->amortize_h;
    out->restart = 0 - failed * (u->restart_usd + u->restart_node_h * node / o->replicas) / u->amortize_h;
    out->slo = 0 - u->slo_penalty_usd_per_h * o->violations;
    out->kv = 0 - u->kv_penalty_usd_per_h * saturation(u, o->kv_usage);
    out->power = isnan(o->power_w) ? 0 : 0 - u->power_usd_per_kwh * o->power_w * o->gpus / 1000;
    out->total = out->value + out->node + out->queue + out->restart + out->slo + out->kv + out->power;
}

void opi__utility_json(opi__json *o, const opi_utility *u)
{
    opi_utility copy = *u;
    for (size_t i = 0; i < N_WEIGHTS; i++)
        opi__json_add_number(o, weights[i].name, *field(&copy, &weights[i]));
}
