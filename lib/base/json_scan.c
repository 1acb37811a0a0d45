/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_scan.h"

#include "base/text.h"

#include <string.h>

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

const char *opi__json_scan_number(const char *p, const char *end)
{
    if (p < end && *p == '-')
        p++;
    const char *digits = p;
    p = skip_digits(p, end);
    if (p == digits || (*digits == '0' && p - digits > 1))
        return NULL;
    if (p < end && *p == '.') {
        digits = ++p;
        p = skip_digits(p, end);
        if (p == digits)
            return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        digits = p;
        p = skip_digits(p, end);
        if (p == digits)
            return NULL;
    }
    return p;
}

static int hex4(const char *p, const char *end, uint32_t *out)
{
    if (end - p < 4)
        return 0;
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        char c = opi__lower(p[i]);
        if (c >= '0' && c <= '9')
            v = v * 16 + (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v * 16 + (uint32_t)(c - 'a' + 10);
        else
            return 0;
    }
    *out = v;
    return 1;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; /* continuation bytes */
    *to++ = (char)((0xffu << (7 - more)) | c >> 6 * more);
    while (more-- > 0)
        *to++ = (char)(0x80 | (c >> 6 * more & 0x3f));
    return to;
}

typedef struct cursor {
    const char *p, *end;
    char *to;
} cursor;

/* \uXXXX, p behind the u. */
static const char *unicode(cursor *c)
{
    uint32_t v, low;
    if (!hex4(c->p, c->end, &v))
        return "\\u is not followed by four hexadecimal digits";
    c->p += 4;
    if (v >= 0xd800 && v <= 0xdbff && c->end - c->p >= 6 && c->p[0] == '\\' && c->p[1] == 'u' &&
        hex4(c->p + 2, c->end, &low) && low >= 0xdc00 && low <= 0xdfff) {
        v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
        c->p += 6;
    } else if (v >= 0xd800 && v <= 0xdfff) {
        return "half a surrogate pair";
    }
    if (v == 0)
        return "a zero character inside a text is not supported";
    c->to = put_utf8(c->to, v);
    return NULL;
}

static const char *escape(cursor *c)
{
    static const char from[] = "\"\\/bfnrt", as[] = "\"\\/\b\f\n\r\t";
    c->p++;
    char name = c->p < c->end ? *c->p++ : '\0';
    if (name == 'u')
        return unicode(c);
    const char *found = name ? strchr(from, name) : NULL;
    if (!found)
        return "unknown escape behind a backslash";
    *c->to++ = as[found - from];
    return NULL;
}

const char *opi__json_unescape(const char *p, const char *end, char *to, const char **bad)
{
    cursor c = {p, end, to};
    while (c.p < end) {
        *bad = c.p;
        if (*c.p == '\\') {
            const char *problem = escape(&c);
            if (problem)
                return problem;
            continue;
        }
        if ((unsigned char)*c.p < 0x20)
            return "a control character inside a text (it must be escaped)";
        size_t n = opi__utf8_sequence(c.p, (size_t)(end - c.p));
        if (n == 0)
            return "a text is not valid UTF-8";
        memcpy(c.to, c.p, n);
        c.to += n;
        c.p += n;
    }
    *c.to = '\0';
    return NULL;
}
