/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/gpu.h"

#include "base/status.h"
#include "base/take.h"
#include "base/text.h"
#include "facts/names.h"

#include <string.h>

/* Words people put around a name that say nothing about which GPU it is. */
#define NOISE "nvidia amd intel habana tesla geforce instinct oam gpu accelerator sambanova graphics"
/* Where the visible size was not measured: vendors' "GB" of device memory are GiB, less what firmware and ECC keep. */
#define VISIBLE_SHARE 0.97

static int order(const char *a, const char *b)
{
    for (; *a && opi__lower(*a) == opi__lower(*b); a++, b++)
        ;
    return (unsigned char)opi__lower(*a) - (unsigned char)opi__lower(*b);
}

static const opi__gpu_entry *exact(const char *name)
{
    size_t lo = 0, hi = opi__gpu_entries;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = order(name, opi__gpus[mid].gpu.name);
        if (c == 0)
            return &opi__gpus[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

/* One spelling of an entry: its name (index 0), then its aliases. 0 when there is no such. */
static int spelling(const opi__gpu_entry *e, size_t index, opi__name *out)
{
    const char *s = e->gpu.name, *end = s + strlen(s);
    for (size_t i = 0; i < index; i++) {
        s = i == 0 ? e->aliases : end + 1;
        end = s + strcspn(s, "|");
        if (i + 1 < index && !*end)
            return 0;
    }
    return end > s && opi__name_of(s, (size_t)(end - s), NOISE, out);
}

/* A number that names a chip ("h100", "4090"), not a memory size. */
static int names_a_chip(const opi__name *asked)
{
    const char *t;
    size_t at = 0, n;
    while ((n = opi__name_token(asked->words, &at, &t)) > 0) {
        int digits = 0;
        for (size_t i = 0; i < n; i++)
            digits |= t[i] >= '0' && t[i] <= '9';
        if (digits && !(n > 2 && memcmp(t + n - 2, "gb", 2) == 0))
            return 1;
    }
    return 0;
}

/* Entries that have every token asked for. A spelling that is equal letter by letter wins at once. */
static size_t candidates(const opi__name *asked, size_t *first, opi__list *list)
{
    size_t found = 0;
    for (size_t i = 0; i < opi__gpu_entries; i++) {
        opi__name all = {"", ""}, one;
        for (size_t s = 0; spelling(&opi__gpus[i], s, &one); s++) {
            if (strcmp(one.tight, asked->tight) == 0) {
                *first = i;
                return 1;
            }
            opi__name_join(&all, &one);
        }
        if (names_a_chip(asked) && opi__name_missing(asked->words, all.words, NULL) == 0) {
            if (found++ == 0)
                *first = i;
            opi__list_add(list, opi__gpus[i].gpu.name);
        }
    }
    return found;
}

static void nearest_names(const opi__name *asked, opi__list *list)
{
    opi__nearest nearest = {0};
    for (size_t i = 0; i < opi__gpu_entries; i++) {
        size_t best = (size_t)-1;
        opi__name one;
        for (size_t s = 0; spelling(&opi__gpus[i], s, &one); s++) {
            size_t d = opi__name_distance(asked, &one);
            best = d < best ? d : best;
        }
        opi__nearest_offer(&nearest, i, best);
    }
    for (size_t i = 0; i < nearest.n; i++)
        opi__list_add(list, opi__gpus[nearest.index[i]].gpu.name);
}

static int32_t lookup(const char *name, const opi__gpu_entry **out, opi_error *err)
{
    char shown[OPI__SHOWN_CAP];
    opi__name asked;
    opi__list list = {"", 0, 0, 0};
    size_t first = 0;
    if (!name || !*name)
        return opi__fail(err, OPI_E_INVALID, -1, "the GPU's name is %s", name ? "empty" : "NULL");
    if ((*out = exact(name)) != NULL)
        return OPI_OK;
    if (!opi__name_of(name, strlen(name), NOISE, &asked))
        return opi__fail(err, OPI_E_UNKNOWN, -1, "no GPU is named \"%s\"", opi__name_shown(name, shown));
    size_t found = candidates(&asked, &first, &list);
    if (found == 1) {
        *out = &opi__gpus[first];
        return OPI_OK;
    }
    if (found > 1)
        return opi__fail(err, OPI_E_AMBIGUOUS, -1, "\"%s\" fits %zu GPUs: %s", opi__name_shown(name, shown), found,
                         opi__list_text(&list));
    nearest_names(&asked, &list);
    return opi__fail(err, OPI_E_UNKNOWN, -1, "no GPU is named \"%s\"; the nearest names: %s",
                     opi__name_shown(name, shown), opi__list_text(&list));
}

const opi_gpu *opi__gpu_by_name(const char *name)
{
    const opi__gpu_entry *e = NULL;
    return lookup(name, &e, NULL) == OPI_OK ? &e->gpu : NULL;
}

double opi__gpu_visible_gib(const opi_gpu *gpu)
{
    const opi__gpu_entry *e = exact(gpu->name);
    if (e && e->visible_gib > 0 && e->gpu.mem_gb == gpu->mem_gb)
        return e->visible_gib;
    return gpu->mem_gb * VISIBLE_SHARE;
}

size_t opi_gpu_count(void)
{
    return opi__gpu_entries;
}

int32_t opi_gpu_at(size_t index, opi_gpu *out, opi_error *err)
{
    if (index >= opi__gpu_entries)
        return opi__fail(err, OPI_E_RANGE, (int64_t)index, "GPU index %zu: the table has %zu entries", index,
                         opi__gpu_entries);
    return opi__give(out, &opi__gpus[index].gpu, sizeof(opi_gpu), "opi_gpu", err);
}

int32_t opi_gpu_find(const char *name, opi_gpu *out, opi_error *err)
{
    const opi__gpu_entry *e = NULL;
    int32_t status = lookup(name, &e, err);
    return status ? status : opi__give(out, &e->gpu, sizeof e->gpu, "opi_gpu", err);
}
