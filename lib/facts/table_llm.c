/* SPDX-License-Identifier: Apache-2.0 */
/* Interned texts, and the GPU and LLM of a row: each distinct name or architecture is resolved once. */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "facts/table_build.h"

static int memo_grow(opi__memo *m)
{
    size_t cap = m->cap ? m->cap * 2 : 256;
    opi__memo_entry *slots = opi__zalloc(m->ctx, cap, sizeof *slots);
    if (!slots)
        return 0;
    for (size_t i = 0; i < m->cap; i++) {
        if (!m->slots[i].key)
            continue;
        size_t at = (size_t)m->slots[i].hash & (cap - 1);
        while (slots[at].key)
            at = (at + 1) & (cap - 1);
        slots[at] = m->slots[i];
    }
    opi__free(m->ctx, m->slots);
    m->slots = slots;
    m->cap = cap;
    return 1;
}

opi__memo_entry *opi__memo_at(opi__memo *m, opi__arena *arena, const char *key, size_t size, int *is_new)
{
    if (m->n * 2 >= m->cap && !memo_grow(m))
        return NULL;
    uint64_t hash = opi__fnv1a64(OPI__FNV_START, key, size);
    size_t at = (size_t)hash & (m->cap - 1);
    for (; m->slots[at].key; at = (at + 1) & (m->cap - 1)) {
        opi__memo_entry *e = &m->slots[at];
        if (e->hash == hash && e->size == size && memcmp(e->key, key, size) == 0) {
            *is_new = 0;
            return e;
        }
    }
    char *copy = opi__arena_text(arena, key, size);
    if (!copy)
        return NULL;
    m->slots[at] = (opi__memo_entry){.hash = hash, .key = copy, .size = size};
    m->n++;
    *is_new = 1;
    return &m->slots[at];
}

const char *opi__builder_text(opi__builder *b, const char *text, size_t size)
{
    int is_new;
    opi__memo_entry *e = opi__memo_at(&b->texts, &b->table->arena, text, size, &is_new);
    return e ? e->key : NULL;
}

/* A name that is in no table costs a search for the nearest ones; a file of a million such names should not cost hours. */
#define UNKNOWN_NAMES 2000
static const char *const given_up = "not looked up: 2000 other names of this table are in no table";

int32_t opi__builder_gpu(opi__builder *b, const char *name, size_t size, const opi_gpu **out, const char **reason)
{
    int is_new;
    opi__memo_entry *e = opi__memo_at(&b->gpus, &b->table->arena, name, size, &is_new);
    if (!e)
        return OPI_E_NOMEM;
    if (is_new) {
        opi_error why = {0};
        opi_gpu found = {.struct_size = sizeof found};
        e->status = b->n_unknown < UNKNOWN_NAMES ? opi_gpu_find(e->key, &found, &why) : OPI_E_UNKNOWN;
        b->n_unknown += e->status < 0;
        if (e->status == OPI_OK) {
            opi_gpu *copy = opi__arena_alloc(&b->table->arena, sizeof *copy);
            if (!copy)
                return OPI_E_NOMEM;
            *copy = found;
            e->value = copy;
        } else if (!why.message[0]) {
            e->reason = given_up;
        } else if (!(e->reason = opi__builder_text(b, why.message, strlen(why.message)))) {
            return OPI_E_NOMEM;
        }
    }
    *reason = e->reason;
    if (e->status == OPI_OK)
        *out = e->value;
    return e->status;
}

static const int architecture[] = {OPI__COL_FAMILY,    OPI__COL_PARAMS_B,    OPI__COL_ACTIVE_PARAMS_B, OPI__COL_N_LAYERS,
                                   OPI__COL_HIDDEN_SIZE, OPI__COL_N_HEADS,   OPI__COL_N_KV_HEADS,      OPI__COL_HEAD_DIM,
                                   OPI__COL_MAX_CONTEXT, OPI__COL_IS_MOE,    OPI__COL_N_EXPERTS, OPI__COL_EXPERTS_PER_TOKEN,
                                   OPI__COL_ATTENTION, OPI__COL_KV_ELEMS};
#define N_ARCHITECTURE (sizeof architecture / sizeof architecture[0])

static int override_int(int32_t *field, double stated)
{
    if (isnan(stated) || (double)*field == stated)
        return 0;
    *field = (int32_t)stated;
    return 1;
}

static int override_double(double *field, double stated)
{
    if (isnan(stated) || *field == stated)
        return 0;
    *field = stated;
    return 1;
}

static int override_text(char *field, size_t cap, const opi__cells *cells, int column)
{
    size_t n = cells->text[column] ? cells->size[column] : 0;
    if (n == 0 || (strlen(field) == n && memcmp(field, cells->text[column], n) == 0))
        return 0;
    char copy[64];
    opi__format(copy, sizeof copy, "%.*s", (int)(n < sizeof copy ? n : sizeof copy - 1), cells->text[column]);
    opi__copy_text(field, cap, copy);
    return 1;
}

/* Cached elements per token: keys and values of every KV head and layer, or the latent vector of MLA. */
static double kv_elements(const opi_llm *m)
{
    double layers = m->n_kv_layers > 0 && m->n_kv_layers <= m->n_layers ? m->n_kv_layers : m->n_layers;
    if (m->kv_lora_rank > 0)
        return layers * (m->kv_lora_rank + m->qk_rope_head_dim);
    return 2.0 * layers * m->n_kv_heads * m->head_dim;
}

/* The cache of latent or mixed attention does not follow from heads and layers: then only the catalog knows it. */
static int is_plain_attention(const opi_llm *m)
{
    return m->kv_lora_rank > 0 || (!opi__equal_nocase(m->attention, "mla") && !opi__equal_nocase(m->attention, "hybrid"));
}

/* An LLM the catalog does not know is what the row says and what follows from it. */
static void derive_architecture(opi_llm *m)
{
    if (m->n_kv_heads == 0)
        m->n_kv_heads = m->n_heads;
    if (m->head_dim == 0 && m->n_heads > 0)
        m->head_dim = m->hidden_size / m->n_heads;
    if (isnan(m->active_params_b) && !m->is_moe)
        m->active_params_b = m->params_b;
    if (!m->attention[0] && m->n_heads > 0)
        opi__copy_text(m->attention, sizeof m->attention,
                       m->n_kv_heads == m->n_heads ? "mha" : m->n_kv_heads == 1 ? "mqa" : "gqa");
}

/* Replaces the facts the row states itself. Returns whether any differs from the catalog's. */
static int apply_architecture(opi_llm *m, const opi__cells *cells, const double *number, int is_known)
{
    int changed = 0, shape = 0;
    shape |= override_int(&m->n_layers, number[OPI__COL_N_LAYERS]);
    shape |= override_int(&m->n_kv_heads, number[OPI__COL_N_KV_HEADS]);
    shape |= override_int(&m->head_dim, number[OPI__COL_HEAD_DIM]);
    changed |= override_double(&m->params_b, number[OPI__COL_PARAMS_B]);
    changed |= override_double(&m->active_params_b, number[OPI__COL_ACTIVE_PARAMS_B]);
    changed |= override_int(&m->hidden_size, number[OPI__COL_HIDDEN_SIZE]);
    changed |= override_int(&m->n_heads, number[OPI__COL_N_HEADS]);
    changed |= override_int(&m->max_context, number[OPI__COL_MAX_CONTEXT]);
    changed |= override_int(&m->is_moe, number[OPI__COL_IS_MOE]);
    changed |= override_int(&m->n_experts, number[OPI__COL_N_EXPERTS]);
    changed |= override_int(&m->experts_per_token, number[OPI__COL_EXPERTS_PER_TOKEN]);
    changed |= override_text(m->family, sizeof m->family, cells, OPI__COL_FAMILY);
    changed |= override_text(m->attention, sizeof m->attention, cells, OPI__COL_ATTENTION);
    if (m->n_window_layers > m->n_layers) /* the catalog's, of a model with more layers */
        m->n_window_layers = m->n_layers;
    if (m->n_moe_layers > m->n_layers)
        m->n_moe_layers = m->n_layers;
    if (!is_known)
        derive_architecture(m);
    if ((shape || !is_known) && is_plain_attention(m))
        m->kv_elems_per_token = kv_elements(m);
    changed |= override_double(&m->kv_elems_per_token, number[OPI__COL_KV_ELEMS]);
    return changed | shape;
}

static opi_llm blank_llm(const char *name)
{
    opi_llm m = {.struct_size = sizeof m, .params_b = NAN, .active_params_b = NAN, .kv_elems_per_token = NAN,
                 .weight_bits = NAN, .kv_bits = NAN};
    opi__copy_text(m.name, sizeof m.name, name[0] ? name : "(unnamed)");
    opi__copy_text(m.source, sizeof m.source, "the table's own architecture columns");
    return m;
}

/* Resolves one distinct combination of name and architecture columns. */
static int32_t resolve_llm(opi__builder *b, const opi__cells *cells, const double *number, const char *name,
                           opi__memo_entry *e)
{
    opi_error why = {0};
    opi_llm m = {.struct_size = sizeof m};
    int32_t status = name[0] && b->n_unknown < UNKNOWN_NAMES ? opi_llm_find(name, &m, &why) : OPI_E_UNKNOWN;
    if (status < 0) {
        m = blank_llm(name);
        b->n_unknown += name[0] != 0;
    }
    int changed = apply_architecture(&m, cells, number, status == OPI_OK);
    if (status < 0 && !(m.params_b > 0 && m.n_layers > 0 && m.kv_elems_per_token > 0)) {
        const char *need = "or state params_b, n_layers, n_heads, n_kv_heads and head_dim (kv_elems_per_token for mla "
                           "and hybrid attention)";
        opi__buf *s = &b->scratch;
        s->len = 0;
        opi__buf_format(s, "%s; %s", !name[0] ? "no LLM: the column model is blank" : why.message[0] ? why.message : given_up,
                        need);
        if (s->status < 0 || !(e->reason = opi__builder_text(b, s->data, s->len)))
            return OPI_E_NOMEM;
        return e->status = status;
    }
    opi_llm *copy = opi__arena_alloc(&b->table->arena, sizeof *copy);
    if (!copy)
        return OPI_E_NOMEM;
    if (changed && status == OPI_OK)
        opi__copy_text(m.source, sizeof m.source, "the LLM table, with the measured table's own architecture columns");
    *copy = m;
    e->value = copy;
    return e->status = OPI_OK;
}

int32_t opi__builder_llm(opi__builder *b, const opi__cells *cells, const double *number, const opi_llm **out,
                         const char **reason)
{
    size_t n_name = cells->text[OPI__COL_MODEL] ? cells->size[OPI__COL_MODEL] : 0;
    size_t stated = n_name;
    opi__buf *key = &b->scratch;
    key->len = 0;
    opi__buf_put(key, cells->text[OPI__COL_MODEL], n_name);
    for (size_t i = 0; i < N_ARCHITECTURE; i++) {
        const char *text = cells->text[architecture[i]];
        opi__buf_put(key, "\x1f", 1);
        opi__buf_put(key, text, text ? cells->size[architecture[i]] : 0);
        stated += text ? cells->size[architecture[i]] : 0;
    }
    if (stated == 0 && b->defaults.llm) {
        *out = b->defaults.llm;
        return OPI_OK;
    }
    if (key->status < 0)
        return OPI_E_NOMEM;
    int is_new;
    opi__memo_entry *e = opi__memo_at(&b->llms, &b->table->arena, key->data, key->len, &is_new);
    if (!e)
        return OPI_E_NOMEM;
    if (is_new) {
        const char *name = opi__builder_text(b, cells->text[OPI__COL_MODEL] ? cells->text[OPI__COL_MODEL] : "", n_name);
        int32_t status = name ? resolve_llm(b, cells, number, name, e) : OPI_E_NOMEM;
        if (status == OPI_E_NOMEM)
            return status;
    }
    *reason = e->reason;
    if (e->status == OPI_OK)
        *out = e->value;
    return e->status;
}
