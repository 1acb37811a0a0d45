/* SPDX-License-Identifier: Apache-2.0 */
/* opi_llm_from_config: the shape of the language model in a Hugging Face config.json. Keys differ by generation and by
 * maker; what a missing key means follows each model type's own default in the Transformers library. */
#include "facts/llm_config.h"

#include "base/status.h"
#include "base/take.h"
#include "base/text.h"
#include "facts/llm.h"
#include "facts/names.h"

#include <math.h>
#include <string.h>

#define MOST_BYTES ((size_t)4 << 20)

/* ---- the reader ---- */

void opi__config_fail(opi__config_reader *r, int32_t code, const char *fmt, ...)
{
    char line[400];
    va_list ap;
    if (r->status)
        return;
    va_start(ap, fmt);
    opi__vformat(line, sizeof line, fmt, ap);
    va_end(ap);
    opi__name_flatten(line);
    r->status = opi__fail(r->err, code, -1, "config.json: %s", line);
}

static const opi__json *follow(const opi__json *object, const char *path)
{
    char key[64];
    while (object && opi__json_is_object(object)) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof key)
            return NULL;
        memcpy(key, path, n);
        key[n] = '\0';
        object = opi__json_get(object, key);
        if (!path[n])
            return object && opi__json_is_null(object) ? NULL : object;
        path += n + 1;
    }
    return NULL;
}

const opi__json *opi__config_get(const opi__config_reader *r, const char *keys, char *key)
{
    char path[64];
    const opi__json *const places[] = {r->text, r->root};
    for (int place = 0; place < 2; place++) {
        const char *t;
        size_t at = 0, n;
        while ((n = opi__name_token(keys, &at, &t)) > 0) {
            opi__format(path, sizeof path, "%.*s", (int)n, t);
            const opi__json *v = follow(places[place], path);
            if (!v)
                continue;
            if (key)
                memcpy(key, path, sizeof path);
            return v;
        }
    }
    return NULL;
}

int32_t opi__config_int(opi__config_reader *r, const char *keys, int32_t lo, int32_t hi, int32_t fallback)
{
    char key[64] = "";
    double v;
    const opi__json *found = opi__config_get(r, keys, key);
    if (!found || r->status)
        return fallback;
    if (!opi__json_number(found, &v))
        opi__config_fail(r, OPI_E_FORMAT, "%s is not a number", key);
    else if (!(v >= lo) || !(v <= hi) || v != floor(v))
        opi__config_fail(r, OPI_E_RANGE, "%s = %.10g: must be a whole number from %d to %d", key, v, lo, hi);
    else
        return (int32_t)v;
    return fallback;
}

int opi__config_flag(opi__config_reader *r, const char *keys, int fallback)
{
    char key[64] = "";
    int v;
    const opi__json *found = opi__config_get(r, keys, key);
    if (!found)
        return fallback;
    if (!opi__json_bool(found, &v)) {
        opi__config_fail(r, OPI_E_FORMAT, "%s is neither true nor false", key);
        return fallback;
    }
    return v;
}

const char *opi__config_text(const opi__config_reader *r, const char *keys)
{
    const opi__json *found = opi__config_get(r, keys, NULL);
    const char *s = found ? opi__json_string(found) : NULL;
    return s ? s : "";
}

int opi__config_is(const opi__config_reader *r, const char *types)
{
    return r->type[0] && opi__name_has(types, r->type, strlen(r->type));
}

/* ---- the shape ---- */

#define OLD_FALCON "RefinedWeb RefinedWebModel"
#define PLAIN_MLP                                                                                                    \
    "gpt2 gpt_neo gpt_neox gptj codegen bloom opt falcon mpt phi gpt_bigcode starcoder2 persimmon nemotron arcee "   \
    OLD_FALCON
#define TIED_UNLESS_SAID                                                                                             \
    "gpt2 gpt_neo bloom opt falcon mpt gpt_bigcode starcoder2 gemma gemma2 gemma3 cohere cohere2 " OLD_FALCON

static int32_t kv_heads(opi__config_reader *r, int32_t heads)
{
    int states_query = opi__config_is(r, "falcon gpt_bigcode " OLD_FALCON);
    int grouped = opi__config_is(r, "falcon") && opi__config_flag(r, "new_decoder_architecture", 0);
    if (states_query && !grouped && opi__config_flag(r, "multi_query", 1))
        return 1;
    if (states_query)
        return opi__config_int(r, "num_kv_heads n_head_kv", 1, 4096, heads);
    if (opi__config_flag(r, "multi_query_attention", 0))
        return opi__config_int(r, "multi_query_group_num", 1, 4096, heads);
    return opi__config_int(r, "num_key_value_heads num_kv_heads n_head_kv n_kv_heads attn_config.kv_n_heads", 1, 4096,
                           opi__config_is(r, "gemma3") ? 4 : heads);
}

static void heads(opi__config_reader *r, opi_llm *m)
{
    /* Gemma 3 leaves out what equals its class's defaults. */
    int bare = opi__config_is(r, "gemma3");
    m->n_heads = opi__config_int(r, "num_attention_heads n_head n_heads num_heads", 1, 4096, bare ? 8 : 0);
    if (m->n_heads == 0) {
        opi__config_fail(r, OPI_E_FORMAT, "there is no num_attention_heads (nor n_head)");
        return;
    }
    m->n_kv_heads = kv_heads(r, m->n_heads);
    m->kv_lora_rank = opi__config_int(r, "kv_lora_rank", 0, 65536, 0);
    m->q_lora_rank = opi__config_int(r, "q_lora_rank", 0, 65536, 0);
    m->qk_rope_head_dim = m->kv_lora_rank ? opi__config_int(r, "qk_rope_head_dim", 1, 4096, 64) : 0;
    if (!m->kv_lora_rank)
        m->head_dim = opi__config_int(r, "head_dim attention_head_dim kv_channels", 1, 4096, bare ? 256 : 0);
    if (m->n_kv_heads > m->n_heads || m->n_heads % m->n_kv_heads != 0)
        opi__config_fail(r, OPI_E_RANGE, "num_key_value_heads = %d: must divide the %d attention heads", m->n_kv_heads,
                         m->n_heads);
    if (m->head_dim > 0 || m->kv_lora_rank > 0)
        return;
    if (m->hidden_size % m->n_heads != 0)
        opi__config_fail(r, OPI_E_RANGE, "hidden_size = %d: not a multiple of the %d heads, and head_dim is not stated",
                         m->hidden_size, m->n_heads);
    else
        m->head_dim = m->hidden_size / m->n_heads;
}

static void shape(opi__config_reader *r, opi_llm *m)
{
    m->n_layers = opi__config_int(r, "num_hidden_layers n_layer n_layers num_layers", 1, 4096, 0);
    m->hidden_size = opi__config_int(r, "hidden_size n_embd n_embed d_model", 1, 1 << 20, 0);
    m->vocab_size = opi__config_int(r, "vocab_size padded_vocab_size", 1, 1 << 26,
                                    opi__config_is(r, "gemma3") ? 262208 : 0);
    if (m->n_layers == 0)
        opi__config_fail(r, OPI_E_FORMAT, "there is no num_hidden_layers (nor n_layer): not a language model's");
    if (m->hidden_size == 0)
        opi__config_fail(r, OPI_E_FORMAT, "there is no hidden_size (nor n_embd)");
    if (m->vocab_size == 0)
        opi__config_fail(r, OPI_E_FORMAT, "there is no vocab_size");
    if (r->status)
        return;
    heads(r, m);
    m->mlp_matrices = opi__config_is(r, PLAIN_MLP) ? 2 : 3;
    m->intermediate_size = opi__config_int(r, "intermediate_size_mlp intermediate_size n_inner ffn_hidden_size ffn_dim",
                                           1, 1 << 24, m->mlp_matrices == 2 ? 4 * m->hidden_size : 0);
    if (opi__config_is(r, "qwen"))
        m->intermediate_size /= 2; /* the first Qwen states the two halves of its gated MLP together */
    m->max_context = opi__config_int(r, "max_position_embeddings n_positions seq_length max_seq_len "
                                        "max_sequence_length n_ctx", 1, 1 << 30,
                                     opi__config_is(r, "gemma3") ? 131072 : 0);
    m->tied_embeddings = opi__config_flag(r, "tie_word_embeddings", opi__config_is(r, TIED_UNLESS_SAID));
}

/* ---- the rest ---- */

static void derive(opi_llm *m)
{
    opi__llm_size s;
    opi_llm whole = *m;
    double cached = m->n_kv_layers > 0 ? m->n_kv_layers : m->n_layers;
    m->kv_elems_per_token = cached * (m->kv_lora_rank > 0 ? (double)m->kv_lora_rank + m->qk_rope_head_dim
                                                          : 2.0 * m->n_kv_heads * m->head_dim);
    /* Layers without a cache are taken to be as large as the others: an estimate, and marked as such. */
    whole.n_kv_layers = 0;
    if (opi__llm_size_of(&whole, &s)) {
        m->params_b = s.total / 1e9;
        m->active_params_b = s.active / 1e9;
    }
    m->flags = m->n_kv_layers > 0 ? OPI_FACT_RECALLED : OPI_FACT_VERIFIED;
    opi__format(m->source, sizeof m->source, "its config.json; the size %s",
                m->n_kv_layers > 0 ? "is an estimate" : "by formula");
}

static void name_it(const opi__config_reader *r, const char *name, opi_llm *m)
{
    const char *kind = m->kv_lora_rank > 0           ? "mla"
                       : m->n_kv_layers > 0          ? "hybrid"
                       : m->n_kv_heads == m->n_heads ? "mha"
                       : m->n_kv_heads == 1          ? "mqa"
                                                     : "gqa";
    const char *stated = opi__config_text(r, "_name_or_path");
    const char *own = stated[0] ? stated : r->type[0] ? r->type : "(unnamed)";
    opi__copy_text(m->arch, sizeof m->arch, r->type);
    opi__format(m->attention, sizeof m->attention, "%s%s", kind, m->n_window_layers > 0 ? "-sliding" : "");
    opi__copy_text(m->name, sizeof m->name, name && *name ? name : own);
    opi__name_flatten(m->name);
    opi__copy_text(m->family, sizeof m->family, r->type);
    for (char *c = m->family; *c; c++)
        *c = *c == '_' ? '-' : *c;
    /* The table knows finer families than model_type ("llama3", "qwen2.5"): the same shape is the same one. */
    const opi_llm *like = NULL;
    for (size_t i = 0; i < opi__llm_entries; i++) {
        const opi_llm *t = &opi__llms[i];
        if (strcmp(t->arch, m->arch) == 0 && opi__llm_same_shape(t, m) && (!like || t->max_context == m->max_context))
            like = t;
    }
    if (like) {
        memcpy(m->family, like->family, sizeof m->family);
        memcpy(m->attention, like->attention, sizeof m->attention);
    }
}

static int32_t open_config(opi__config_reader *r, const opi__json *root)
{
    static const char *const nested[] = {"text_config", "llm_config", "language_config"};
    if (!opi__json_is_object(root))
        return opi__fail(r->err, OPI_E_FORMAT, -1, "config.json: the text is not a JSON object");
    r->root = r->text = root;
    for (size_t i = 0; i < sizeof nested / sizeof nested[0]; i++) {
        const opi__json *inner = opi__json_get(root, nested[i]);
        if (inner && opi__json_is_object(inner))
            r->text = inner;
    }
    const char *type = opi__json_string(opi__json_get(r->text, "model_type"));
    if (!type)
        type = opi__json_string(opi__json_get(root, "model_type"));
    opi__copy_text(r->type, sizeof r->type, type ? type : "");
    opi__name_flatten(r->type);
    size_t n = strlen(r->type);
    if (n > 5 && strcmp(r->type + n - 5, "_text") == 0)
        r->type[n - 5] = '\0';
    return OPI_OK;
}

static int32_t read_config(opi__config_reader *r, const char *name, opi_llm *m)
{
    if (opi__config_flag(r, "is_encoder_decoder", 0))
        opi__config_fail(r, OPI_E_UNSUPPORTED, "an encoder-decoder (%s) is not read", r->type);
    if (!r->status)
        shape(r, m);
    if (!r->status)
        opi__config_layers(r, m);
    if (!r->status)
        opi__config_experts(r, m);
    if (!r->status)
        opi__config_quantization(r, m);
    if (r->status)
        return r->status;
    derive(m);
    if (!(m->params_b > 0) || m->params_b > 1e5)
        return opi__fail(r->err, OPI_E_RANGE, -1,
                         "config.json: %.6g billion parameters by its keys (is intermediate_size stated?): must be "
                         "above 0 and at most 100000", m->params_b);
    name_it(r, name, m);
    return OPI_OK;
}

int32_t opi_llm_from_config(opi_ctx *ctx, const char *json, size_t size, const char *name, opi_llm *out, opi_error *err)
{
    opi__json *root = NULL;
    opi__config_reader r = {.err = err};
    opi_llm m = {.struct_size = sizeof m, .params_b = NAN, .active_params_b = NAN, .kv_elems_per_token = NAN,
                 .weight_bits = NAN, .kv_bits = NAN};
    if (!ctx || !json || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "%s is NULL", !ctx ? "ctx" : !json ? "json" : "out");
    if (size > MOST_BYTES)
        return opi__fail(err, OPI_E_RANGE, -1, "config.json has %zu bytes; the limit is %zu", size, MOST_BYTES);
    int32_t status = opi__json_parse(json, size, "config.json", &root, err);
    if (status)
        return status;
    status = open_config(&r, root);
    if (!status)
        status = read_config(&r, name, &m);
    opi__json_free(root);
    return status ? status : opi__give(out, &m, sizeof m, "opi_llm", err);
}
