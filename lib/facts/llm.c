/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/llm.h"

#include "base/status.h"
#include "base/take.h"
#include "base/text.h"
#include "facts/names.h"

#include <string.h>

/* Words that say nothing about which architecture it is: the maker, the storage, "hf" of converted checkpoints. */
#define NOISE "meta hf bf16 fp16 gguf safetensors"
/* Tunings of one architecture: served at the same cost. */
#define TUNINGS "instruct chat it base preview"

/* Short names that leave out what an entry's name states (its size, a date) and yet mean one model. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    {"codestral", "mistralai/Codestral-22B-v0.1"},
    {"command-r", "CohereForAI/c4ai-command-r-v01"},
    {"command-r-plus", "CohereForAI/c4ai-command-r-plus"},
    {"deepseek-coder-v2-lite", "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct"},
    {"dbrx", "databricks/dbrx-instruct"},
    {"llama-4-maverick", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"},
    {"llama-4-scout", "meta-llama/Llama-4-Scout-17B-16E-Instruct"},
    {"minicpm3", "openbmb/MiniCPM3-4B"},
    {"mistral-large", "mistralai/Mistral-Large-Instruct-2411"},
    {"mistral-nemo", "mistralai/Mistral-Nemo-Instruct-2407"},
    {"phi-3-mini", "microsoft/Phi-3-mini-4k-instruct"},
    {"phi-3-medium", "microsoft/Phi-3-medium-4k-instruct"},
    {"zephyr", "HuggingFaceH4/zephyr-7b-beta"},
};

static int order(const char *a, size_t n, const char *b)
{
    size_t i = 0;
    for (; i < n && opi__lower(a[i]) == opi__lower(b[i]); i++)
        ;
    return i == n ? -(unsigned char)b[i] : (unsigned char)opi__lower(a[i]) - (unsigned char)opi__lower(b[i]);
}

static const opi_llm *exact(const char *name)
{
    size_t lo = 0, hi = opi__llm_entries, n = strlen(name);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = order(name, n, opi__llms[mid].name);
        if (c == 0)
            return &opi__llms[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

int opi__llm_same_shape(const opi_llm *a, const opi_llm *b)
{
    return a->n_layers == b->n_layers && a->hidden_size == b->hidden_size && a->n_heads == b->n_heads &&
           a->n_kv_heads == b->n_kv_heads && a->head_dim == b->head_dim &&
           a->intermediate_size == b->intermediate_size && a->vocab_size == b->vocab_size && a->is_moe == b->is_moe &&
           a->n_experts == b->n_experts &&
           a->experts_per_token == b->experts_per_token && a->moe_intermediate_size == b->moe_intermediate_size &&
           a->kv_lora_rank == b->kv_lora_rank && a->sliding_window == b->sliding_window &&
           a->n_window_layers == b->n_window_layers && a->n_kv_layers == b->n_kv_layers;
}

/* ---- what was asked, and how an entry answers it ---- */

typedef struct question {
    opi__name name;
    const char *org; /* before the slash; NULL = not stated */
    size_t org_size;
} question;

enum { SAME, SAME_BUT_TUNING, LONGER, UNLIKE };

static int is_tuning(const char *t, size_t n)
{
    return opi__name_has(TUNINGS, t, n);
}

static void split(const char *text, question *q)
{
    const char *slash = strrchr(text, '/');
    q->org = slash ? text : NULL;
    q->org_size = slash ? (size_t)(slash - text) : 0;
    const char *base = slash ? slash + 1 : text;
    opi__name_of(base, strlen(base), NOISE, &q->name);
}

static int same_org(const question *q, const question *entry)
{
    return !q->org || (q->org_size == entry->org_size && order(q->org, q->org_size, entry->org) == -(unsigned char)'/');
}

static int compare(const question *q, const question *entry)
{
    if (!same_org(q, entry) || opi__name_missing(q->name.words, entry->name.words, is_tuning) > 0)
        return UNLIKE;
    if (strcmp(q->name.tight, entry->name.tight) == 0)
        return SAME;
    if (opi__name_missing(entry->name.words, q->name.words, is_tuning) > 0)
        return LONGER;
    return SAME_BUT_TUNING;
}

/* A part of a name that only dates or numbers a release ("v0.1", "2407"), or repeats the active size ("a22b"). */
static int is_release(const char *t, size_t n)
{
    size_t digits = 0;
    for (size_t i = 0; i < n; i++)
        digits += t[i] >= '0' && t[i] <= '9';
    if (digits == n)
        return n == 4;
    if (t[0] == 'v' && n > 1 && t[1] >= '0' && t[1] <= '9')
        return 1;
    return (t[0] == 'a' && t[n - 1] == 'b' && digits > 0) || is_tuning(t, n);
}

typedef struct answer {
    const opi_llm *best;
    size_t found, shapes; /* how many entries, and whether their shapes differ (then > 1) */
    int complete;         /* best lacks nothing but a release */
    opi__list list;
} answer;

/* Among equals the shortest name: "Llama-3.1-70B" before "Meta-Llama-3.1-70B-Instruct". */
static void consider(answer *a, const question *q, const question *entry, const opi_llm *m)
{
    int complete = opi__name_missing(entry->name.words, q->name.words, is_release) == 0;
    opi__list_add(&a->list, m->name);
    if (a->found++ == 0 || !a->best) {
        a->best = m;
        a->complete = complete;
        a->shapes = 1;
        return;
    }
    a->shapes += !opi__llm_same_shape(a->best, m);
    if (complete > a->complete || (complete == a->complete && strlen(m->name) < strlen(a->best->name))) {
        a->best = m;
        a->complete = complete;
    }
}

static void search(const question *q, answer found[3])
{
    for (size_t i = 0; i < opi__llm_entries; i++) {
        question entry;
        split(opi__llms[i].name, &entry);
        int how = compare(q, &entry);
        if (how != UNLIKE)
            consider(&found[how], q, &entry, &opi__llms[i]);
    }
}

static int32_t unknown(const char *name, const question *q, opi_error *err)
{
    char shown[OPI__SHOWN_CAP];
    opi__nearest nearest = {0};
    opi__list list = {"", 0, 0, 0};
    for (size_t i = 0; i < opi__llm_entries; i++) {
        question entry;
        split(opi__llms[i].name, &entry);
        opi__nearest_offer(&nearest, i, opi__name_distance(&q->name, &entry.name));
    }
    for (size_t i = 0; i < nearest.n; i++)
        opi__list_add(&list, opi__llms[nearest.index[i]].name);
    return opi__fail(err, OPI_E_UNKNOWN, -1,
                     "no LLM is named \"%s\"; the nearest names: %s (another one: give its config.json)",
                     opi__name_shown(name, shown), opi__list_text(&list));
}

static const opi_llm *by_alias(const question *q)
{
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        opi__name one;
        opi__name_of(aliases[i].alias, strlen(aliases[i].alias), NOISE, &one);
        if (strcmp(one.tight, q->name.tight) == 0)
            return exact(aliases[i].name);
    }
    return NULL;
}

static int32_t lookup(const char *name, const opi_llm **out, opi_error *err)
{
    char shown[OPI__SHOWN_CAP];
    question q;
    answer found[3];
    if (!name || !*name)
        return opi__fail(err, OPI_E_INVALID, -1, "the LLM's name is %s", name ? "empty" : "NULL");
    if ((*out = exact(name)) != NULL)
        return OPI_OK;
    split(name, &q);
    if (!q.name.words[0])
        return opi__fail(err, OPI_E_UNKNOWN, -1, "no LLM is named \"%s\"", opi__name_shown(name, shown));
    memset(found, 0, sizeof found);
    search(&q, found);
    for (int how = SAME; how <= SAME_BUT_TUNING; how++) {
        if (found[how].found > 0 && found[how].shapes == 1) {
            *out = found[how].best;
            return OPI_OK;
        }
        if (found[how].found > 0)
            return opi__fail(err, OPI_E_AMBIGUOUS, -1, "\"%s\" fits %zu LLMs of different shapes: %s",
                             opi__name_shown(name, shown), found[how].found, opi__list_text(&found[how].list));
    }
    if (!q.org && (*out = by_alias(&q)) != NULL)
        return OPI_OK;
    if (found[LONGER].found > 0 && found[LONGER].shapes == 1 && found[LONGER].complete) {
        *out = found[LONGER].best;
        return OPI_OK;
    }
    if (found[LONGER].found > 0)
        return opi__fail(err, OPI_E_AMBIGUOUS, -1, "\"%s\" is not the whole name of an LLM; it fits: %s",
                         opi__name_shown(name, shown), opi__list_text(&found[LONGER].list));
    return unknown(name, &q, err);
}

const opi_llm *opi__llm_by_name(const char *name)
{
    const opi_llm *m = NULL;
    return lookup(name, &m, NULL) == OPI_OK ? m : NULL;
}

size_t opi_llm_count(void)
{
    return opi__llm_entries;
}

int32_t opi_llm_at(size_t index, opi_llm *out, opi_error *err)
{
    if (index >= opi__llm_entries)
        return opi__fail(err, OPI_E_RANGE, (int64_t)index, "LLM index %zu: the table has %zu entries", index,
                         opi__llm_entries);
    return opi__give(out, &opi__llms[index], sizeof(opi_llm), "opi_llm", err);
}

int32_t opi_llm_find(const char *name, opi_llm *out, opi_error *err)
{
    const opi_llm *m = NULL;
    int32_t status = lookup(name, &m, err);
    return status ? status : opi__give(out, m, sizeof *m, "opi_llm", err);
}
