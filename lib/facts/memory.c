/* SPDX-License-Identifier: Apache-2.0 */
/* The one memory formula: usable = weights + activation + runtime + cache. */
#include "facts/memory.h"

#include "base/status.h"
#include "base/take.h"
#include "base/text.h"
#include "facts/config.h"

#include <math.h>
#include <string.h>

/* Accelerate fills a GPU to 90 % and keeps room for one more layer; what does not fit stays in the host's memory. */
#define PLACED_SHARE 0.9
#define CACHE_BLOCK 16.0

static double needed_tokens(const opi_config *c, const opi__plan *p)
{
    if (p->engine & OPI__WHOLE_BATCH)
        return fmax(ceil(c->concurrency / p->dp), 1) * (opi__prompt_tokens(c) + c->output_len);
    if (c->max_context > 0)
        return c->max_context;
    if (c->input_len + c->output_len > 0)
        return c->input_len + c->output_len;
    return c->llm->max_context > 0 ? c->llm->max_context : 2048;
}

/* Cache bytes per token at the length the engine must hold. */
static double per_token(const opi_config *c, const opi__plan *p, const opi__storage *f, double needed)
{
    double length = (p->engine & OPI__WHOLE_BATCH) ? needed / fmax(ceil(c->concurrency / p->dp), 1) : needed;
    return opi__kv_bytes(c, p, f, length) / length;
}

/* Demand of the requests in flight, halfway through their output, over the capacity. */
static double pressure(const opi_config *c, const opi__plan *p, const opi__storage *f, double room)
{
    double length = c->input_len + c->output_len / 2;
    if (!(c->concurrency > 0) || !(length > 0) || !(room > 0))
        return NAN;
    return c->concurrency / p->dp * opi__kv_bytes(c, p, f, length) / room;
}

static void say_missing(opi_memory *m)
{
    opi__format(m->limit, sizeof m->limit,
                "%.4g GiB per GPU missing: weights %.4g + activation %.3g + runtime %.3g + cache %.3g (%.6g tokens) > "
                "%.4g usable", -m->margin_gib, m->weights_gib, m->activation_gib, m->runtime_gib,
                m->kv_gib - m->margin_gib, m->kv_needed_tokens, m->usable_gib);
}

static void fill(const opi_config *c, const opi__plan *p, const opi__storage *f, opi_memory *m)
{
    m->total_gib = p->visible_gib;
    m->usable_gib = p->visible_gib * p->mem_util;
    m->weights_gib = opi__weight_bytes(c, p, f) / OPI__GIB;
    m->activation_gib = opi__activation_bytes(c, p, f) / OPI__GIB;
    m->runtime_gib = opi__runtime_bytes(c, p) / OPI__GIB;
    if (p->engine & OPI__WHOLE_BATCH) {
        double placed = (m->usable_gib - m->runtime_gib) * PLACED_SHARE - m->weights_gib / p->stage;
        m->weights_gib = fmin(m->weights_gib, fmax(placed, 0));
    }
    double fixed = m->weights_gib + m->activation_gib + m->runtime_gib;
    if (p->engine & OPI__FREE_SHARE)
        m->usable_gib = fixed + fmin((p->visible_gib - fixed) * p->mem_util, p->visible_gib - fixed);
    m->kv_gib = m->usable_gib - fixed;
    m->kv_needed_tokens = needed_tokens(c, p);
    m->kv_bytes_per_token = per_token(c, p, f, m->kv_needed_tokens);
    m->kv_tokens = m->kv_gib > 0 ? floor(m->kv_gib * OPI__GIB / m->kv_bytes_per_token / CACHE_BLOCK) * CACHE_BLOCK : 0;
    m->margin_gib = m->kv_gib - m->kv_needed_tokens * m->kv_bytes_per_token / OPI__GIB;
    m->kv_pressure = pressure(c, p, f, m->kv_gib * OPI__GIB);
    m->fits = m->margin_gib >= 0 && !p->limit[0];
    if (p->limit[0])
        memcpy(m->limit, p->limit, sizeof m->limit);
    else if (!m->fits)
        say_missing(m);
}

int32_t opi_memory_fit(const opi_config *config, opi_memory *out, opi_error *err)
{
    opi_config c;
    opi__plan plan;
    opi__storage storage;
    opi_memory m = {.struct_size = sizeof m};
    int32_t status = opi__config_take_memory(config, &c, err);
    if (!status)
        status = opi__storage_of(&c, &storage, err);
    if (status)
        return status;
    if (!(c.llm->kv_elems_per_token > 0))
        return opi__fail(err, OPI_E_INVALID, -1, "LLM %s: what it caches per token is not known, nor is its memory",
                         c.llm->name);
    opi__plan_of(&c, &plan);
    fill(&c, &plan, &storage, &m);
    return opi__give(out, &m, sizeof m, "opi_memory", err);
}
