/* SPDX-License-Identifier: Apache-2.0 */
#include "swap/store_file.h"

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"

#include <string.h>

/* ---- bytes: where each field is ---- */

static const unsigned char magic[8] = {0x89, 'O', 'P', 'I', 'C', '\r', '\n', '\n'};
enum { AT_VERSION = 8, AT_KIND = 12, AT_HEADER_SUM = 16, AT_STEP = 24, AT_SAVE = 32 };
enum { AT_SIZE = 40, AT_SUM = 48, AT_SLOT = 56, AT_PART = 60 };             /* of a shard */
enum { AT_DP = 40, AT_TP = 44, AT_PP = 48, AT_COMMON = 52, AT_ZERO = 56 };  /* of `complete` */
enum { KIND_SHARD = 1, KIND_COMPLETE = 2 };

static void put(unsigned char *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (unsigned char)(v >> 8 * i);
}

static uint64_t get(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static int32_t get_int32(const unsigned char *p)
{
    uint32_t v = (uint32_t)get(p, 4);
    return v <= INT32_MAX ? (int32_t)v : -(int32_t)(UINT32_MAX - v) - 1;
}

static int64_t get_int64(const unsigned char *p)
{
    uint64_t v = get(p, 8);
    return v <= INT64_MAX ? (int64_t)v : -(int64_t)(UINT64_MAX - v) - 1;
}

/* Over the whole header, its own field taken as zero. */
static uint64_t header_sum(const unsigned char *bytes)
{
    unsigned char copy[OPI__STORE_HEADER];
    memcpy(copy, bytes, sizeof copy);
    put(copy + AT_HEADER_SUM, 0, 8);
    return opi__checksum64(copy, sizeof copy);
}

uint64_t opi__store_add_block(uint64_t sum, const void *block, size_t size)
{
    unsigned char pair[16];
    put(pair, sum, 8);
    put(pair + 8, opi__checksum64(block, size), 8);
    return opi__checksum64(pair, sizeof pair);
}

static void put_start(unsigned char *bytes, uint32_t kind, int64_t step, uint64_t save)
{
    memset(bytes, 0, OPI__STORE_HEADER);
    memcpy(bytes, magic, sizeof magic);
    put(bytes + AT_VERSION, OPI__STORE_VERSION, 4);
    put(bytes + AT_KIND, kind, 4);
    put(bytes + AT_STEP, (uint64_t)step, 8);
    put(bytes + AT_SAVE, save, 8);
}

void opi__store_put_shard(unsigned char bytes[OPI__STORE_HEADER], const opi__shard_header *header)
{
    put_start(bytes, KIND_SHARD, header->id.step, header->id.save);
    put(bytes + AT_SIZE, header->size, 8);
    put(bytes + AT_SUM, header->sum, 8);
    put(bytes + AT_SLOT, (uint32_t)header->id.slot, 4);
    put(bytes + AT_PART, (uint32_t)header->id.part, 4);
    put(bytes + AT_HEADER_SUM, header_sum(bytes), 8);
}

void opi__store_put_mark(unsigned char bytes[OPI__STORE_HEADER], const opi__store_mark *mark)
{
    put_start(bytes, KIND_COMPLETE, mark->step, mark->save);
    put(bytes + AT_DP, (uint32_t)mark->grid.dp, 4);
    put(bytes + AT_TP, (uint32_t)mark->grid.tp, 4);
    put(bytes + AT_PP, (uint32_t)mark->grid.pp, 4);
    put(bytes + AT_COMMON, (uint32_t)mark->common_row, 4);
    put(bytes + AT_HEADER_SUM, header_sum(bytes), 8);
}

static int32_t damaged(opi_error *err, const char *path, int64_t byte, const char *why)
{
    return opi__fail(err, OPI_E_FORMAT, byte, "damaged '%.280s': %s", path, why);
}

static int32_t get_start(const unsigned char *bytes, uint64_t size, uint32_t kind, const char *path, opi_error *err)
{
    if (size < OPI__STORE_HEADER)
        return opi__fail(err, OPI_E_FORMAT, (int64_t)size, "damaged '%.280s': %llu bytes, a header alone has %d",
                         path, (unsigned long long)size, OPI__STORE_HEADER);
    if (memcmp(bytes, magic, sizeof magic) != 0)
        return damaged(err, path, 0, "not a file of a checkpoint, the first 8 bytes differ");
    uint32_t version = (uint32_t)get(bytes + AT_VERSION, 4);
    if (version > OPI__STORE_VERSION) /* before the checksum: what follows may be laid out in another way */
        return opi__fail(err, OPI_E_VERSION, AT_VERSION, "'%.280s' has format %u: this library reads 1 to %u", path,
                         version, OPI__STORE_VERSION);
    if (get(bytes + AT_HEADER_SUM, 8) != header_sum(bytes))
        return damaged(err, path, AT_HEADER_SUM, "the header's checksum does not match");
    if (version == 0)
        return damaged(err, path, AT_VERSION, "format 0 does not exist");
    if (get(bytes + AT_KIND, 4) != kind)
        return damaged(err, path, AT_KIND, kind == KIND_SHARD ? "not a shard" : "not the mark of a checkpoint");
    return OPI_OK;
}

int32_t opi__store_get_shard(const unsigned char *bytes, uint64_t size, const char *path, opi__shard_header *header,
                             opi_error *err)
{
    int32_t status = get_start(bytes, size, KIND_SHARD, path, err);
    if (status)
        return status;
    const opi__shard_header h = {{get_int64(bytes + AT_STEP), get(bytes + AT_SAVE, 8), get_int32(bytes + AT_SLOT),
                                  get_int32(bytes + AT_PART)}, get(bytes + AT_SIZE, 8), get(bytes + AT_SUM, 8)};
    if (opi__store_check_id(&h.id, NULL))
        return damaged(err, path, AT_STEP, "step, slot or part is out of range");
    if (h.size != size - OPI__STORE_HEADER)
        return opi__fail(err, OPI_E_FORMAT, AT_SIZE, "damaged '%.280s': %llu bytes behind the header, %llu expected",
                         path, (unsigned long long)(size - OPI__STORE_HEADER), (unsigned long long)h.size);
    *header = h;
    return OPI_OK;
}

int32_t opi__store_get_mark(const unsigned char *bytes, uint64_t size, const char *path, opi__store_mark *mark,
                            opi_error *err)
{
    int32_t status = get_start(bytes, size, KIND_COMPLETE, path, err);
    if (status)
        return status;
    const opi__store_mark m = {get_int64(bytes + AT_STEP), get(bytes + AT_SAVE, 8),
                               {get_int32(bytes + AT_DP), get_int32(bytes + AT_TP), get_int32(bytes + AT_PP)},
                               get_int32(bytes + AT_COMMON)};
    if (size != OPI__STORE_HEADER || get(bytes + AT_ZERO, 8) != 0)
        return damaged(err, path, AT_ZERO, "more than a mark is in it");
    if (opi__store_check_mark(&m, NULL))
        return damaged(err, path, AT_STEP, "step, grid or row is out of range");
    *mark = m;
    return OPI_OK;
}

int32_t opi__store_check_id(const opi__shard_id *id, opi_error *err)
{
    if (!id)
        return opi__fail(err, OPI_E_INVALID, -1, "the name of the shard is NULL");
    if (id->step < 0)
        return opi__fail(err, OPI_E_RANGE, -1, "the shard's step is %lld, the least is 0", (long long)id->step);
    if (id->slot < 0)
        return opi__fail(err, OPI_E_RANGE, -1, "the shard's slot is %d, the least is 0", id->slot);
    if (id->part < 0 || id->part > 1)
        return opi__fail(err, OPI_E_RANGE, -1, "the shard's part is %d, it must be 0 or 1", id->part);
    return OPI_OK;
}

int32_t opi__store_check_mark(const opi__store_mark *mark, opi_error *err)
{
    if (!mark)
        return opi__fail(err, OPI_E_INVALID, -1, "the mark of the checkpoint is NULL");
    const opi__grid *g = &mark->grid;
    if (mark->step < 0)
        return opi__fail(err, OPI_E_RANGE, -1, "the checkpoint's step is %lld, the least is 0", (long long)mark->step);
    if (g->dp < 1 || g->tp < 1 || g->pp < 1 || (int64_t)g->dp * g->tp > INT32_MAX ||
        (int64_t)g->dp * g->tp * g->pp > INT32_MAX)
        return opi__fail(err, OPI_E_RANGE, -1, "the checkpoint's grid is %d x %d x %d: each 1 or more, at most %d "
                         "slots", g->dp, g->tp, g->pp, INT32_MAX);
    if (mark->common_row < -1 || mark->common_row >= g->dp)
        return opi__fail(err, OPI_E_RANGE, -1, "the checkpoint's common row is %d, it must be -1 to %d",
                         mark->common_row, g->dp - 1);
    return OPI_OK;
}

/* ---- names ---- */

void opi__store_step_name(char name[OPI__STORE_NAME], int64_t step)
{
    opi__format(name, OPI__STORE_NAME, "step-%012lld", (long long)step);
}

void opi__store_shard_name(char name[OPI__STORE_NAME], const opi__shard_id *id)
{
    opi__format(name, OPI__STORE_NAME, "slot-%06d-part-%d-%016llx", id->slot, id->part, (unsigned long long)id->save);
}

/* Digits of `base` from *s on; 0 when there is none or the number is above `most`. *s moves behind them. */
static int take_number(const char **s, unsigned base, uint64_t most, uint64_t *out)
{
    const char *p = *s;
    uint64_t v = 0;
    for (;; p++) {
        unsigned digit = *p >= '0' && *p <= '9' ? (unsigned)(*p - '0')
                         : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a') + 10 : base;
        if (digit >= base)
            break;
        if (v > (most - digit) / base)
            return 0;
        v = v * base + digit;
    }
    if (p == *s)
        return 0;
    *s = p;
    *out = v;
    return 1;
}

/* `*s` starts with `text`; it moves behind it. */
static int take_text(const char **s, const char *text)
{
    size_t n = strlen(text);
    if (strncmp(*s, text, n) != 0)
        return 0;
    *s += n;
    return 1;
}

int opi__store_parse_step(const char *name, int64_t *step)
{
    char canonical[OPI__STORE_NAME];
    const char *s = name;
    uint64_t v;
    if (!take_text(&s, "step-") || !take_number(&s, 10, INT64_MAX, &v) || *s)
        return 0;
    opi__store_step_name(canonical, (int64_t)v); /* one name a step: no other number of zeros */
    if (strcmp(canonical, name) != 0)
        return 0;
    *step = (int64_t)v;
    return 1;
}

int opi__store_parse_shard(const char *name, opi__shard_id *id)
{
    char canonical[OPI__STORE_NAME];
    const char *s = name;
    uint64_t slot, part, save;
    if (!take_text(&s, "slot-") || !take_number(&s, 10, INT32_MAX, &slot) || !take_text(&s, "-part-") ||
        !take_number(&s, 10, 1, &part) || !take_text(&s, "-") || !take_number(&s, 16, UINT64_MAX, &save) || *s)
        return 0;
    const opi__shard_id found = {0, save, (int32_t)slot, (int32_t)part};
    opi__store_shard_name(canonical, &found);
    if (strcmp(canonical, name) != 0)
        return 0;
    *id = found;
    return 1;
}

int opi__store_is_temporary(const char *name)
{
    uint64_t number;
    return take_text(&name, ".opi-") && take_number(&name, 16, UINT64_MAX, &number) && strcmp(name, ".tmp") == 0;
}

int32_t opi__store_path(char path[OPI__STORE_PATH], const char *dir, int64_t step, const char *name, opi_error *err)
{
    char folder[OPI__STORE_NAME];
    if (!dir || !dir[0])
        return opi__fail(err, OPI_E_INVALID, -1, "the checkpoint folder's path is %s", dir ? "empty" : "NULL");
    opi__store_step_name(folder, step);
    size_t n = opi__format(path, OPI__STORE_PATH, "%s/%s%s%s", dir, folder, name ? "/" : "", name ? name : "");
    if (n >= OPI__STORE_PATH)
        return opi__fail(err, OPI_E_RANGE, -1, "the checkpoint folder's path has %zu bytes, too long for its files",
                         strlen(dir));
    return OPI_OK;
}
