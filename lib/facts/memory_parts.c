/* SPDX-License-Identifier: Apache-2.0 */
/* Weights, cache, activation and runtime of the fullest GPU. Constants come from vLLM's start-up logs and documentation
 * (docs/memory.md); none is fitted to launches. */
#include "facts/llm.h"
#include "facts/memory.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

static double fmax2(double a, double b)
{
    return a > b ? a : b;
}

/* ---- weights ---- */

/* Where the formula lacks facts or misses the stated size: two embeddings, and experts from the active share. */
static void size_or_guess(const opi_llm *m, opi__llm_size *s)
{
    double params = m->params_b * 1e9, active = m->active_params_b * 1e9;
    if (opi__llm_size_of(m, s) && fabs(s->total / params - 1) < 0.15)
        return;
    memset(s, 0, sizeof *s);
    s->embedding = fmin(2.0 * m->hidden_size * m->vocab_size, params / 2);
    if (m->is_moe && active > 0 && active < params && m->n_experts > m->experts_per_token && m->experts_per_token > 0)
        s->experts = fmin((params - active) / (1 - (double)m->experts_per_token / m->n_experts), params - s->embedding);
}

static double round_up(double v, double unit)
{
    return ceil(v / unit) * unit;
}

/* mxfp4 kernels pad the hidden size to 256 and a rank's expert width to 128. */
static double padding(const opi_llm *m, const opi__plan *p)
{
    double width = m->moe_intermediate_size / fmax2(1, (double)p->shards / p->ep);
    if (m->hidden_size <= 0 || width <= 0)
        return 1;
    return round_up(m->hidden_size, 256) / m->hidden_size * (round_up(width, 128) / width);
}

double opi__weight_bytes(const opi_config *config, const opi__plan *plan, const opi__storage *storage)
{
    const opi_llm *m = config->llm;
    opi__llm_size s;
    size_or_guess(m, &s);
    double tp = plan->tp, stage = plan->stage / plan->layers;
    double kv_share = m->n_kv_heads > 0 ? fmax2(1 / tp, 1.0 / m->n_kv_heads) : 1 / tp;
    double params = m->params_b * 1e9, embedding = s.embedding;
    if (s.total > 0 && fabs(params / s.total - 1) < 0.02)
        params = s.total; /* a rounded size; a larger difference is a part the formula does not know (a vision tower) */
    double apart = s.embedding + s.experts + s.router + s.latent_projection + s.kv_projection;
    double rest = fmax2(params - apart, 0);
    if (plan->pp > 1 && !m->tied_embeddings)
        embedding /= 2; /* the first stage has the input's, the last one the output's */
    double linear = rest / tp + s.latent_projection + s.kv_projection * kv_share;
    double experts = s.experts / plan->shards * (storage->pad ? padding(m, plan) : 1);
    double bits = embedding / tp * storage->plain +
                  stage * (linear * storage->linear + s.router * storage->plain + experts * storage->experts);
    return bits / 8;
}

/* ---- cache ---- */

/* Tokens an engine computes at once (vLLM's default: more on GPUs of 70 GiB and up, the A100 excepted). */
static int large_gpu(const opi_config *c, const opi__plan *p)
{
    return p->visible_gib >= 70 && strncmp(c->gpu->name, "A100", 4) != 0;
}

static double chunk_tokens(const opi_config *c, const opi__plan *p)
{
    return large_gpu(c, p) ? 8192 : 2048;
}

#define BLOCK 16.0 /* tokens of a cache block */

double opi__kv_bytes(const opi_config *config, const opi__plan *plan, const opi__storage *storage, double tokens)
{
    const opi_llm *m = config->llm;
    double cached = m->n_kv_layers > 0 && m->n_kv_layers < plan->layers ? m->n_kv_layers : plan->layers;
    double per_layer = m->kv_elems_per_token / cached * storage->kv / 8;
    double share = m->n_kv_heads > 0 ? fmax2(1.0 / plan->tp, 1.0 / m->n_kv_heads) : 1.0 / plan->tp;
    if (m->kv_lora_rank > 0)
        share = 1; /* a latent vector is not split */
    double windows = m->sliding_window > 0 ? fmin(m->n_window_layers, cached) : 0, window = tokens;
    if (windows > 0) {
        double held = m->sliding_window + (plan->engine & OPI__WHOLE_BATCH ? 0 : chunk_tokens(config, plan));
        window = fmin(tokens, held);
    }
    double full = tokens;
    if (!(plan->engine & OPI__WHOLE_BATCH)) {
        full = round_up(tokens, BLOCK);
        window = round_up(window, BLOCK) + BLOCK; /* a window starts inside a block */
    }
    return per_layer * share * ((cached - windows) * full + windows * window) * ceil(cached / plan->pp) / cached;
}

/* ---- activation ---- */

/* Bytes per entry of the [sequences, vocabulary] matrix while tokens are drawn: vLLM sorted it until 0.16. */
#define SAMPLE_SORTED 38.0
#define SAMPLE_FUSED 12.0

/* Minor version of a "0.N…" text; -1 when it is none. */
static int minor_version(const opi_config *c)
{
    int64_t n;
    const char *v = c->engine_version;
    if (!v || !c->engine || !opi__equal_nocase(c->engine, "vllm") || v[0] != '0' || v[1] != '.')
        return -1;
    size_t digits = strspn(v + 2, "0123456789");
    return digits > 0 && digits < 6 && opi__parse_int64(v + 2, digits, &n) ? (int)n : -1;
}

static double forward_bytes(const opi_config *c, const opi__plan *p, double tokens)
{
    const opi_llm *m = c->llm;
    double h = m->hidden_size, width = (double)m->intermediate_size / p->tp;
    double per_token = 6 * h + 3 * width;
    if (m->is_moe)
        per_token += m->experts_per_token * (h + 3.0 * m->moe_intermediate_size / fmax2(1, (double)p->shards / p->ep));
    return tokens * 2 * per_token;
}

/* Attention that writes the whole score matrix: Hugging Face modules without a fused kernel. */
static int writes_scores(const char *arch)
{
    static const char *const eager[] = {"baichuan", "bloom", "chatglm", "codegen", "gpt_neox",
                                        "gptj",     "mpt",   "opt",     "phi"};
    for (size_t i = 0; i < sizeof eager / sizeof eager[0]; i++) {
        if (strcmp(arch, eager[i]) == 0)
            return 1;
    }
    return 0;
}

/* Tensors alive at a layer's peak in eager execution: activation, up projection and their product; a tanh GELU's input
 * and three temporaries; scores, masked scores, softmax and its cast; residual, normed input, output and its sum. */
#define GATED_TENSORS 3
#define PLAIN_TENSORS 4
#define SCORE_TENSORS 4
#define HIDDEN_TENSORS 4

/* A whole batch at once: the largest of the logits of every prompt position (with their 32-bit copy), the MLP's tensors
 * and the attention scores, beside those of the hidden size. */
static double batch_bytes(const opi_config *c, const opi__plan *p, const opi__storage *f)
{
    const opi_llm *m = c->llm;
    double batch = fmax2(ceil(c->concurrency / p->dp), 1), prompt = opi__prompt_tokens(c), tokens = batch * prompt;
    double bytes = f->plain / 8, h = m->hidden_size, width = (double)m->intermediate_size / p->tp;
    if (m->is_moe && width <= 0)
        width = (double)m->moe_intermediate_size * m->experts_per_token / p->tp;
    double wide = (m->mlp_matrices == 2 ? PLAIN_TENSORS : GATED_TENSORS) * tokens * width * bytes;
    double logits = tokens * m->vocab_size * (f->plain > 16 ? 4.0 : 6.0);
    double scores = writes_scores(m->arch) ? SCORE_TENSORS * batch * m->n_heads * prompt * prompt * bytes : 0;
    return fmax2(fmax2(wide, logits), scores) + HIDDEN_TENSORS * tokens * h * bytes;
}

double opi__activation_bytes(const opi_config *config, const opi__plan *plan, const opi__storage *storage)
{
    if (plan->engine & OPI__WHOLE_BATCH)
        return batch_bytes(config, plan, storage);
    int version = minor_version(config);
    double sequences = large_gpu(config, plan) ? 1024 : 256; /* vLLM's default limit of running requests */
    double sample = version >= 5 && version < 17 ? SAMPLE_SORTED : SAMPLE_FUSED;
    return fmax2(forward_bytes(config, plan, chunk_tokens(config, plan)), sequences * config->llm->vocab_size * sample);
}

/* ---- runtime ---- */

double opi__runtime_bytes(const opi_config *config, const opi__plan *plan)
{
    int version = minor_version(config);
    double gib = 0.13 + 0.42 * log2(plan->tp * plan->pp);
    if (plan->engine & OPI__WHOLE_BATCH)
        return 0.6 * OPI__GIB; /* context, libraries and their workspaces, in one process */
    if ((plan->engine & OPI__GRAPHS) && (version < 0 || version >= 21))
        gib += 0.02 * plan->stage; /* CUDA graphs, inside the limit since 0.21 */
    return gib * OPI__GIB;
}
