/* SPDX-License-Identifier: Apache-2.0 */
/* The parameter count of a decoder-only transformer from its shape. Norms and biases (below 0.1 %) are left out. */
#include "facts/llm.h"

#include <math.h>
#include <string.h>

/* DeepSeek's head sizes (DeepSeek-V2, 2024): 128 without position, 128 of a value; later latent models use them too. */
#define LATENT_NOPE 128.0
#define LATENT_VALUE 128.0

static int32_t moe_layers(const opi_llm *m)
{
    if (!m->is_moe)
        return 0;
    return m->n_moe_layers > 0 && m->n_moe_layers <= m->n_layers ? m->n_moe_layers : m->n_layers;
}

static void latent_attention(const opi_llm *m, opi__llm_size *s)
{
    double h = m->hidden_size, heads = m->n_heads, rank = m->kv_lora_rank, rope = m->qk_rope_head_dim;
    double head = LATENT_NOPE + rope, down = rank + rope, query = m->q_lora_rank;
    double q = query > 0 ? query * heads * head : h * heads * head;
    s->latent_projection = m->n_layers * h * (down + query);
    s->attention = s->latent_projection + m->n_layers * (q + rank * heads * (LATENT_NOPE + LATENT_VALUE) +
                                                        heads * LATENT_VALUE * h);
}

int opi__llm_size_of(const opi_llm *m, opi__llm_size *out)
{
    opi__llm_size s = {0};
    double layers = m->n_layers, h = m->hidden_size, matrices = m->mlp_matrices;
    int latent = m->kv_lora_rank > 0, hybrid = m->n_kv_layers > 0 && m->n_kv_layers < m->n_layers;
    memset(out, 0, sizeof *out);
    if (layers <= 0 || h <= 0 || m->vocab_size <= 0 || m->n_heads <= 0 || matrices <= 0 || hybrid ||
        strcmp(m->attention, "enc-dec") == 0)
        return 0;
    if (latent) {
        latent_attention(m, &s);
    } else {
        if (m->head_dim <= 0 || m->n_kv_heads <= 0)
            return 0;
        s.kv_projection = layers * 2 * h * m->n_kv_heads * m->head_dim;
        s.attention = s.kv_projection + layers * 2 * h * m->n_heads * m->head_dim;
    }
    double moe = moe_layers(m), dense = layers - moe;
    if ((dense > 0 && m->intermediate_size <= 0) ||
        (moe > 0 && (m->n_experts <= 0 || m->experts_per_token <= 0 || m->moe_intermediate_size <= 0)))
        return 0;
    s.embedding = h * m->vocab_size * (m->tied_embeddings ? 1 : 2);
    s.mlp = dense * matrices * h * m->intermediate_size + moe * matrices * h * m->shared_intermediate_size;
    s.router = moe * h * m->n_experts;
    s.experts = moe * m->n_experts * matrices * h * m->moe_intermediate_size;
    s.total = s.embedding + s.attention + s.mlp + s.router + s.experts;
    s.active = s.total;
    if (moe > 0)
        s.active -= s.experts * (1 - (double)m->experts_per_token / m->n_experts);
    *out = s;
    return 1;
}
