/* SPDX-License-Identifier: Apache-2.0 */
/* A model to bytes and back. Loading is in place: big arrays point into the block. */
#include "base/ctx.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "model/model.h"
#include <math.h>
#include <string.h>

#define MOST_FILE  ((size_t)1 << 30)
#define MOST_NAMES 65536

/* What the numbers of a row mean: trees know features by position, so a file made with others must not be read. */
static uint32_t fingerprint(void)
{
    uint64_t h = OPI__FNV_START;
    for (int i = 0; i < OPI__NUMBERS; i++)
        h = opi__fnv1a64(h, opi__number_names[i], strlen(opi__number_names[i]) + 1);
    return (uint32_t)(h ^ h >> 32) + OPI__ENCODING;
}

/* ---- save ---- */

static void save_names(const opi_model *m, opi__writer *w)
{
    for (int c = 0; c < OPI__CATEGORIES; c++) {
        opi__write_u32(w, m->names[c].n);
        for (uint32_t i = 0; i < m->names[c].n; i++)
            opi__write_text(w, m->names[c].name[i]);
        opi__write_array(w, m->known[c], m->names[c].n, 1);
    }
}

static void save_target(const opi_model *m, const opi__target_model *g, opi__writer *w)
{
    opi__write_u32(w, g->learned);
    opi__write_u32(w, g->rows);
    opi__write_u32(w, g->cells);
    opi__write_u32(w, g->sources);
    if (!g->learned)
        return;
    m->learner->save(g->state, w);
    opi__forest_save(&g->head, w);
    opi__write_f64(w, g->head_share);
    opi__write_array(w, g->group, g->n_groups, sizeof *g->group);
    opi__write_array(w, g->score, g->n_scores, sizeof *g->score);
    opi__write_array(w, g->range, OPI__ENVELOPE, sizeof *g->range);
    for (int c = 0; c < OPI__CATEGORIES; c++)
        opi__write_array(w, g->seen[c], m->names[c].n, 1);
    for (int k = 0; k < OPI__PAIR_KINDS; k++)
        opi__write_array(w, g->pairs[k], g->n_pairs[k], sizeof(uint64_t));
}

int32_t opi_model_save_memory(const opi_model *m, opi_text **out, opi_error *err)
{
    opi__writer w;
    if (!m || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "model or out is NULL");
    opi__write_start(&w, m->ctx);
    opi__write_text(&w, m->manifest);
    opi__write_text(&w, m->learner->name);
    opi__write_u32(&w, OPI__T_COUNT);
    opi__write_u32(&w, OPI__CATEGORIES);
    opi__write_u32(&w, OPI__FEATURES);
    opi__write_u32(&w, OPI__ENVELOPE);
    opi__write_u32(&w, OPI__PAIR_KINDS);
    opi__write_u32(&w, fingerprint());
    save_names(m, &w);
    for (int t = 0; t < OPI__T_COUNT; t++) {
        opi__write_text(&w, opi__targets[t].name);
        save_target(m, &m->target[t], &w);
    }
    opi__write_array(&w, m->anchor, m->n_anchors, sizeof *m->anchor);
    opi__write_array(&w, m->whiten, OPI__ENVELOPE * OPI__ENVELOPE, sizeof *m->whiten);
    opi__write_f64(&w, m->spacing);
    return opi__write_finish(&w, out, err);
}

int32_t opi_model_save_file(const opi_model *m, const char *path, opi_error *err)
{
    opi_text *bytes = NULL;
    if (!path)
        return opi__fail(err, OPI_E_INVALID, -1, "path is NULL");
    int32_t status = opi_model_save_memory(m, &bytes, err);
    if (!status)
        status = opi__write_file_atomic(path, opi_text_data(bytes), opi_text_size(bytes), err);
    opi_text_free(bytes);
    return status;
}

/* ---- load ---- */

static int32_t load_names(opi_model *m, opi__reader *r, opi_error *err)
{
    for (int c = 0; c < OPI__CATEGORIES; c++) {
        opi__names *names = &m->names[c];
        uint32_t n = opi__read_u32(r);
        size_t known;
        /* Each name takes at least 9 bytes: a count the block cannot hold is refused before anything is allocated. */
        if (r->failed || n > MOST_NAMES || n > r->size / 9)
            return opi__read_error(r, err);
        names->name = opi__alloc(m->ctx, n, sizeof *names->name);
        if (!names->name)
            return opi__fail_memory(err, n * sizeof *names->name);
        for (names->n = 0; names->n < n; names->n++) {
            names->name[names->n] = opi__read_text(r);
            if (r->failed || (names->n && strcmp(names->name[names->n - 1], names->name[names->n]) >= 0))
                return opi__read_error(r, err);
        }
        m->known[c] = (uint8_t *)opi__read_array(r, 1, n, n, &known);
        if (r->failed)
            return opi__read_error(r, err);
    }
    return OPI_OK;
}

static int sound_groups(const opi__target_model *g)
{
    for (size_t i = 0; i < g->n_groups; i++) {
        const opi__group *group = &g->group[i];
        if (i && g->group[i - 1].key >= group->key)
            return 0;
        if (group->count == 0 || group->first > g->n_scores || group->count > g->n_scores - group->first)
            return 0;
        for (uint32_t k = 0; k < group->count; k++) {
            const float *s = &g->score[group->first + k];
            if (!isfinite(*s) || (k && s[-1] > s[0]))
                return 0;
        }
    }
    return 1;
}

static int sound_ranges(const opi__target_model *g)
{
    for (int e = 0; e < OPI__ENVELOPE; e++) {
        const opi__range *r = &g->range[e];
        if (!(r->slack > 0) || (r->seen && !(r->lo <= r->hi)))
            return 0;
    }
    return 1;
}

static int32_t load_target(opi_model *m, opi__target_model *g, opi__reader *r, opi_error *err)
{
    size_t n;
    g->learned = opi__read_u32(r);
    g->rows = opi__read_u32(r);
    g->cells = opi__read_u32(r);
    g->sources = opi__read_u32(r);
    if (r->failed || g->learned > 1)
        return opi__read_error(r, err);
    if (!g->learned)
        return OPI_OK;
    int32_t status = m->learner->load(m->ctx, r, &g->state, err);
    if (!status)
        status = opi__forest_load(r, OPI__FEATURES, &g->head, err);
    if (!status && g->head.n_out != 3)
        status = opi__read_error(r, err);
    if (status)
        return status;
    g->head_share = opi__read_f64(r);
    if (!(g->head_share >= 0 && g->head_share <= 1))
        return opi__read_error(r, err);
    g->group = (opi__group *)opi__read_array(r, sizeof *g->group, 0, UINT32_MAX, &g->n_groups);
    g->score = (float *)opi__read_array(r, sizeof *g->score, 0, UINT32_MAX, &g->n_scores);
    const void *range = opi__read_array(r, sizeof *g->range, OPI__ENVELOPE, OPI__ENVELOPE, &n);
    if (range)
        memcpy(g->range, range, sizeof g->range);
    for (int c = 0; c < OPI__CATEGORIES; c++)
        g->seen[c] = (uint8_t *)opi__read_array(r, 1, m->names[c].n, m->names[c].n, &n);
    for (int k = 0; k < OPI__PAIR_KINDS; k++)
        g->pairs[k] = (uint64_t *)opi__read_array(r, sizeof(uint64_t), 0, UINT32_MAX, &g->n_pairs[k]);
    if (r->failed || !sound_groups(g) || !sound_ranges(g))
        return opi__read_error(r, err);
    return OPI_OK;
}

static int sound_anchors(const opi_model *m)
{
    for (size_t i = 0; i < m->n_anchors; i++) {
        if (m->anchor[i].model >= m->names[OPI__C_MODEL].n)
            return 0;
        for (int k = 0; k < OPI__SEEN_KINDS; k++)
            if (m->anchor[i].code[k] >= m->names[opi__seen_axes[k]].n)
                return 0;
    }
    for (int a = 0; a < OPI__ENVELOPE; a++)
        if (!(m->whiten[a * OPI__ENVELOPE + a] > 0))
            return 0;
    return m->spacing > 0 && isfinite(m->spacing);
}

/* Targets are only ever appended: a file with fewer has nothing learned for the new ones. */
static int32_t load_shape(opi__reader *r, uint32_t *targets, opi_error *err)
{
    const uint32_t shape[] = {OPI__T_COUNT, OPI__CATEGORIES, OPI__FEATURES, OPI__ENVELOPE, OPI__PAIR_KINDS,
                              fingerprint()};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        uint32_t have = opi__read_u32(r);
        if (r->failed)
            return opi__read_error(r, err);
        if (i == 0 ? have == 0 || have > shape[0] : have != shape[i])
            return opi__fail(err, OPI_E_VERSION, (int64_t)r->at, "model schema: %u in field %zu, this library has %u",
                             have, i, shape[i]);
        if (i == 0)
            *targets = have;
    }
    return OPI_OK;
}

static int32_t load_body(opi_model *m, opi__reader *r, opi_error *err)
{
    size_t n;
    m->manifest = (char *)opi__read_text(r);
    const char *learner = opi__read_text(r);
    if (r->failed)
        return opi__read_error(r, err);
    m->learner = opi__learner_find(learner);
    if (!m->learner)
        return opi__fail(err, OPI_E_VERSION, (int64_t)r->at, "model of learner \"%.40s\": not in this library",
                         learner);
    uint32_t targets = 0;
    int32_t status = load_shape(r, &targets, err);
    if (!status)
        status = load_names(m, r, err);
    for (uint32_t t = 0; t < targets && !status; t++) {
        if (strcmp(opi__read_text(r), opi__targets[t].name) || r->failed)
            return opi__read_error(r, err);
        status = load_target(m, &m->target[t], r, err);
    }
    if (status)
        return status;
    m->anchor = (opi__anchor *)opi__read_array(r, sizeof *m->anchor, 0, UINT32_MAX, &m->n_anchors);
    const void *whiten =
        opi__read_array(r, sizeof *m->whiten, OPI__ENVELOPE * OPI__ENVELOPE, OPI__ENVELOPE * OPI__ENVELOPE, &n);
    if (whiten)
        memcpy(m->whiten, whiten, sizeof m->whiten);
    m->spacing = opi__read_f64(r);
    if (r->failed || r->at != r->size || !sound_anchors(m))
        return opi__read_error(r, err);
    return OPI_OK;
}

int32_t opi__model_load(opi_ctx *ctx, const void *bytes, size_t size, opi_text *block, opi_model **out, opi_error *err)
{
    opi__reader r;
    int32_t status = opi__read_start(&r, bytes, size, err);
    if (status)
        return status;
    opi_model *m = opi__zalloc(ctx, 1, sizeof *m);
    if (!m)
        return opi__fail_memory(err, sizeof *m);
    m->ctx = ctx;
    m->in_block = 1;
    m->bytes = size;
    status = load_body(m, &r, err);
    if (status) {
        opi_model_free(m);
        return status;
    }
    m->block = block;
    *out = m;
    return OPI_OK;
}

int32_t opi_model_load_memory(opi_ctx *ctx, const void *bytes, size_t size, opi_model **out, opi_error *err)
{
    if (!ctx || !bytes || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "ctx, bytes or out is NULL");
    if (size > MOST_FILE)
        return opi__fail(err, OPI_E_RANGE, -1, "a model of %zu bytes: the limit is %zu", size, (size_t)MOST_FILE);
    opi_text *block = opi__alloc(ctx, 1, sizeof *block + size + 1);
    if (!block)
        return opi__fail_memory(err, size);
    block->ctx = ctx;
    block->size = size;
    memcpy(block->data, bytes, size);
    int32_t status = opi__model_load(ctx, block->data, size, block, out, err);
    if (status)
        opi_text_free(block);
    return status;
}

int32_t opi_model_load_file(opi_ctx *ctx, const char *path, opi_model **out, opi_error *err)
{
    char *bytes = NULL;
    size_t size = 0;
    if (!ctx || !path || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "ctx, path or out is NULL");
    int32_t status = opi__read_file(ctx, path, MOST_FILE, &bytes, &size, err);
    if (!status)
        status = opi_model_load_memory(ctx, bytes, size, out, err);
    opi__free(ctx, bytes);
    return status;
}
