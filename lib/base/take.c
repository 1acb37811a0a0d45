/* SPDX-License-Identifier: Apache-2.0 */
#include "base/take.h"

#include "base/status.h"

#include <string.h>

/* The first version of every growable struct has more than this. */
#define SMALLEST 8u
/* A struct that claims to be this much longer than ours is an uninitialized one: its tail is not even looked at. */
#define LONGEST_TAIL 4096u

/* Reads struct_size without assuming more than its four bytes. */
static int32_t read_size(const void *p, const char *name, uint32_t *size, opi_error *err)
{
    if (!p)
        return opi__fail(err, OPI_E_INVALID, -1, "%s is NULL", name);
    memcpy(size, p, sizeof *size);
    if (*size < SMALLEST)
        return opi__fail(err, OPI_E_INVALID, -1, "%s.struct_size is %u: set it to sizeof(%s)", name, *size, name);
    return OPI_OK;
}

int32_t opi__take(void *dst, size_t dst_size, const void *src, const char *name, opi_error *err)
{
    uint32_t size = 0, ours = (uint32_t)dst_size;
    int32_t status = read_size(src, name, &size, err);
    if (status)
        return status;
    if (size > dst_size && size - dst_size > LONGEST_TAIL)
        return opi__fail(err, OPI_E_VERSION, -1, "%s.struct_size is %u, this library's is %u: not initialized?", name,
                         size, ours);
    const unsigned char *bytes = src;
    for (size_t i = dst_size; i < size; i++)
        if (bytes[i] != 0)
            return opi__fail(err, OPI_E_VERSION, (int64_t)i,
                             "%s.struct_size is %u, this library's is %u, and byte %zu behind it is set: the caller "
                             "was built for a newer library", name, size, ours, i);
    size_t known = size < dst_size ? size : dst_size;
    memcpy(dst, src, known);
    memset((char *)dst + known, 0, dst_size - known);
    memcpy(dst, &ours, sizeof ours);
    return OPI_OK;
}

int32_t opi__give(void *dst, const void *src, size_t src_size, const char *name, opi_error *err)
{
    uint32_t size = 0;
    int32_t status = read_size(dst, name, &size, err);
    if (status)
        return status;
    size_t known = size < src_size ? size : src_size;
    memcpy((char *)dst + sizeof size, (const char *)src + sizeof size, known - sizeof size);
    return OPI_OK;
}
