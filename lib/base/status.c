/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <string.h>

/* Messages quote what users typed and what files hold: whatever that is, the result is one line of UTF-8. */
static void make_one_line(char *message)
{
    for (char *s = message; *s;) {
        size_t n = opi__utf8_sequence(s, 4); /* the final NUL ends any sequence */
        if (n == 0)
            *s = '?';
        else if ((unsigned char)*s < 0x20 || *s == 0x7f)
            *s = ' ';
        s += n ? n : 1;
    }
}

int32_t opi__fail(opi_error *err, int32_t code, int64_t index, const char *fmt, ...)
{
    if (!err)
        return code;
    char message[sizeof err->message]; /* formatted aside: an argument may point into *err */
    va_list ap;
    va_start(ap, fmt);
    opi__vformat(message, sizeof message, fmt, ap);
    va_end(ap);
    make_one_line(message);
    memset(err, 0, sizeof *err);
    err->code = code;
    err->index = index;
    memcpy(err->message, message, strlen(message) + 1);
    return code;
}

int32_t opi__fail_memory(opi_error *err, size_t bytes)
{
    if (bytes == 0)
        return opi__fail(err, OPI_E_NOMEM, -1, "out of memory: the allocator returned NULL");
    return opi__fail(err, OPI_E_NOMEM, -1, "out of memory: the allocator returned NULL for %zu bytes", bytes);
}
