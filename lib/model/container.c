/* SPDX-License-Identifier: Apache-2.0 */
#include "model/container.h"
#include "base/hash.h"
#include "base/status.h"
#include <string.h>

static const unsigned char magic[8] = {0x89, 'O', 'P', 'I', 'M', '\r', '\n', '\n'};
#define CHECKED 32 /* the checksum covers what follows the header */

/* Model files are little-endian and read in place; the library refuses to work elsewhere. */
static int little_endian(void)
{
    const uint32_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1;
}

void opi__write_start(opi__writer *w, opi_ctx *ctx)
{
    opi__buf_init(&w->buf, ctx);
    opi__buf_put(&w->buf, magic, sizeof magic);
    opi__write_u32(w, OPI__FORMAT_VERSION);
    opi__write_u32(w, 0);
    opi__write_u64(w, 0);
    opi__write_u64(w, 0);
}

static void align(opi__writer *w, size_t size)
{
    static const char zero[8] = {0};
    if (w->buf.len % size)
        opi__buf_put(&w->buf, zero, size - w->buf.len % size);
}

void opi__write_u32(opi__writer *w, uint32_t v)
{
    align(w, 4);
    opi__buf_put(&w->buf, &v, 4);
}
void opi__write_u64(opi__writer *w, uint64_t v)
{
    align(w, 8);
    opi__buf_put(&w->buf, &v, 8);
}
void opi__write_f64(opi__writer *w, double v)
{
    align(w, 8);
    opi__buf_put(&w->buf, &v, 8);
}
void opi__write_text(opi__writer *w, const char *s)
{
    opi__write_array(w, s, strlen(s) + 1, 1);
}

void opi__write_array(opi__writer *w, const void *data, size_t count, size_t size)
{
    opi__write_u64(w, count);
    align(w, size > 8 ? 8 : size);
    if (count)
        opi__buf_put(&w->buf, data, count * size);
}

int32_t opi__write_finish(opi__writer *w, opi_text **out, opi_error *err)
{
    uint64_t size = w->buf.len, sum;
    if (!little_endian()) {
        opi__buf_free(&w->buf);
        return opi__fail(err, OPI_E_UNSUPPORTED, -1, "model files need a little-endian machine");
    }
    if (!w->buf.status) {
        sum = opi__checksum64(w->buf.data + CHECKED, w->buf.len - CHECKED);
        memcpy(w->buf.data + 16, &size, 8);
        memcpy(w->buf.data + 24, &sum, 8);
    }
    return opi__buf_text(&w->buf, out, err);
}

int32_t opi__read_start(opi__reader *r, const void *bytes, size_t size, opi_error *err)
{
    uint32_t version, reserved;
    uint64_t stated, sum;
    if (!little_endian())
        return opi__fail(err, OPI_E_UNSUPPORTED, -1, "model files need a little-endian machine");
    if (size < OPI__HEADER_BYTES)
        return opi__fail(err, OPI_E_FORMAT, (int64_t)size, "not a model: %zu bytes, a header alone has %d", size,
                         OPI__HEADER_BYTES);
    if (memcmp(bytes, magic, sizeof magic))
        return opi__fail(err, OPI_E_FORMAT, 0, "not a model: the first 8 bytes differ");
    memcpy(&version, (const char *)bytes + 8, 4);
    memcpy(&reserved, (const char *)bytes + 12, 4);
    memcpy(&stated, (const char *)bytes + 16, 8);
    memcpy(&sum, (const char *)bytes + 24, 8);
    if (version == 0 || version > OPI__FORMAT_VERSION)
        return opi__fail(err, OPI_E_VERSION, 8, "model format %u: this library reads 1 to %u", version,
                         OPI__FORMAT_VERSION);
    if (reserved)
        return opi__fail(err, OPI_E_FORMAT, 12, "damaged model: byte 12 is not zero");
    if (stated != size)
        return opi__fail(err, OPI_E_FORMAT, 16, "damaged model: %zu bytes here, %llu expected", size,
                         (unsigned long long)stated);
    if (opi__checksum64((const char *)bytes + CHECKED, size - CHECKED) != sum)
        return opi__fail(err, OPI_E_FORMAT, 24, "damaged model: the checksum does not match");
    r->bytes = bytes;
    r->size = size;
    r->at = OPI__HEADER_BYTES;
    r->failed = 0;
    return OPI_OK;
}

static const void *take(opi__reader *r, size_t alignment, size_t bytes)
{
    size_t at = (r->at + alignment - 1) / alignment * alignment;
    if (r->failed || at > r->size || bytes > r->size - at) {
        r->failed = 1;
        return NULL;
    }
    r->at = at + bytes;
    return r->bytes + at;
}

uint32_t opi__read_u32(opi__reader *r)
{
    uint32_t v = 0;
    const void *p = take(r, 4, 4);
    if (p)
        memcpy(&v, p, 4);
    return v;
}
uint64_t opi__read_u64(opi__reader *r)
{
    uint64_t v = 0;
    const void *p = take(r, 8, 8);
    if (p)
        memcpy(&v, p, 8);
    return v;
}
double opi__read_f64(opi__reader *r)
{
    double v = 0;
    const void *p = take(r, 8, 8);
    if (p)
        memcpy(&v, p, 8);
    return v;
}

const char *opi__read_text(opi__reader *r)
{
    size_t n;
    const char *s = opi__read_array(r, 1, 1, SIZE_MAX, &n);
    if (s && (s[n - 1] || strlen(s) + 1 != n))
        r->failed = 1;
    return s && !r->failed ? s : "";
}

const void *opi__read_array(opi__reader *r, size_t size, size_t least, size_t most, size_t *count)
{
    uint64_t n = opi__read_u64(r);
    *count = 0;
    if (r->failed || n < least || n > most || n > r->size / size) {
        r->failed = 1;
        return NULL;
    }
    const void *p = take(r, size > 8 ? 8 : size, (size_t)n * size);
    if (p)
        *count = (size_t)n;
    return n ? p : NULL;
}

int32_t opi__read_error(const opi__reader *r, opi_error *err)
{
    return opi__fail(err, OPI_E_FORMAT, (int64_t)r->at, "damaged model: a field near byte %zu is out of bounds", r->at);
}
