/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/number.h"

#include <string.h>

/* ---- parsing ---- */

static int is_space(char c)
{
    return c == ' ' || c == '\t';
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void trim(const char **s, const char **end)
{
    while (*s < *end && is_space(**s))
        ++*s;
    while (*end > *s && is_space((*end)[-1]))
        --*end;
}

/* The mantissa of a decimal: significant digits without leading zeros, and the exponent of the last one. */
typedef struct decimal {
    uint8_t d[OPI__NUMBER_DIGITS];
    size_t n;
    int64_t exp10;
    int more;
} decimal;

/* Reads digits, point, digits. Returns where it stopped, NULL when there is no digit. */
static const char *read_mantissa(const char *s, const char *end, decimal *out)
{
    int seen = 0, point = 0;
    for (; s < end; s++) {
        if (*s == '.' && !point) {
            point = 1;
            continue;
        }
        if (!is_digit(*s))
            break;
        seen = 1;
        int stored = out->n < OPI__NUMBER_DIGITS && (out->n > 0 || *s != '0');
        if (stored)
            out->d[out->n++] = (uint8_t)(*s - '0');
        else if (out->n > 0 && *s != '0')
            out->more = 1;
        /* A digit moves the exponent when it is behind the point and kept (or a leading zero), or before it and not. */
        if (point && (stored || out->n == 0))
            out->exp10--;
        else if (!point && !stored && out->n > 0)
            out->exp10++;
    }
    return seen ? s : NULL;
}

/* Reads e[+-]digits to the end; saturates far outside a double's range. 1 = parsed. */
static int read_exponent(const char *s, const char *end, int64_t *exp10)
{
    if (s == end)
        return 1;
    if (*s != 'e' && *s != 'E')
        return 0;
    s++;
    int negative = s < end && *s == '-';
    if (s < end && (*s == '-' || *s == '+'))
        s++;
    if (s == end)
        return 0;
    int64_t e = 0;
    for (; s < end; s++) {
        if (!is_digit(*s))
            return 0;
        if (e < INT64_MAX / 100)
            e = e * 10 + (*s - '0');
    }
    *exp10 += negative ? -e : e;
    return 1;
}

int opi__parse_double(const char *s, size_t n, double *out)
{
    if (!s)
        return 0;
    const char *end = s + n;
    trim(&s, &end);
    int negative = s < end && *s == '-';
    if (s < end && (*s == '-' || *s == '+'))
        s++;
    decimal dec;
    dec.n = 0;
    dec.exp10 = 0;
    dec.more = 0;
    double v;
    s = read_mantissa(s, end, &dec);
    if (!s || !read_exponent(s, end, &dec.exp10) ||
        !opi__number_from_digits(dec.d, dec.n, dec.exp10, dec.more, &v))
        return 0;
    *out = negative ? -v : v;
    return 1;
}

int opi__parse_int64(const char *s, size_t n, int64_t *out)
{
    if (!s)
        return 0;
    const char *end = s + n;
    trim(&s, &end);
    int negative = s < end && *s == '-';
    if (s < end && (*s == '-' || *s == '+'))
        s++;
    if (s == end)
        return 0;
    uint64_t v = 0, limit = (uint64_t)INT64_MAX + (uint64_t)negative;
    for (; s < end; s++) {
        if (!is_digit(*s))
            return 0;
        uint64_t digit = (uint64_t)(*s - '0');
        if (v > (limit - digit) / 10)
            return 0;
        v = v * 10 + digit;
    }
    *out = !negative ? (int64_t)v : v == limit ? INT64_MIN : -(int64_t)v;
    return 1;
}

/* ---- formatting numbers ---- */

static char *put_zeros(char *p, int n)
{
    while (n-- > 0)
        *p++ = '0';
    return p;
}

static char *put_digits(char *p, const uint8_t *d, int n)
{
    for (int i = 0; i < n; i++)
        *p++ = (char)('0' + d[i]);
    return p;
}

static char *put_plain(char *p, const uint8_t *d, int n, int x)
{
    if (x < 0) {
        *p++ = '0';
        *p++ = '.';
        p = put_zeros(p, -x - 1);
        return put_digits(p, d, n);
    }
    int whole = n < x + 1 ? n : x + 1;
    p = put_digits(p, d, whole);
    p = put_zeros(p, x + 1 - whole);
    if (n > whole) {
        *p++ = '.';
        p = put_digits(p, d + whole, n - whole);
    }
    return p;
}

/* c_style: a sign and at least two exponent digits, as the C library prints. */
static char *put_scientific(char *p, const uint8_t *d, int n, int x, int c_style)
{
    *p++ = (char)('0' + d[0]);
    if (n > 1) {
        *p++ = '.';
        p = put_digits(p, d + 1, n - 1);
    }
    *p++ = 'e';
    if (x < 0)
        *p++ = '-';
    else if (c_style)
        *p++ = '+';
    int a = x < 0 ? -x : x;
    if (a >= 100)
        *p++ = (char)('0' + a / 100);
    if (a >= 10 || c_style)
        *p++ = (char)('0' + a / 10 % 10);
    *p++ = (char)('0' + a % 10);
    return p;
}

/* digits 0 = shortest. */
static size_t format_number(char *buf, double v, int digits)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    char *p = buf;
    int negative = (int)(bits >> 63);
    uint64_t magnitude = bits & ~(1ull << 63);
    if (magnitude > 0x7ff0000000000000ull) {
        memcpy(buf, "nan", 4);
        return 3;
    }
    if (negative)
        *p++ = '-';
    if (magnitude == 0x7ff0000000000000ull) {
        memcpy(p, "inf", 3);
        p += 3;
    } else if (magnitude == 0) {
        *p++ = '0';
    } else {
        uint8_t d[17];
        int x, n = opi__number_to_digits(negative ? -v : v, digits, d, &x);
        int plain = digits ? x >= -4 && x < digits : x >= -5 && x <= 15;
        p = plain ? put_plain(p, d, n, x) : put_scientific(p, d, n, x, digits != 0);
    }
    *p = '\0';
    return (size_t)(p - buf);
}

size_t opi__format_double(char *buf, double v)
{
    return format_number(buf, v, 0);
}

size_t opi__format_short(char *buf, double v, int digits)
{
    return format_number(buf, v, digits < 1 ? 1 : digits > 17 ? 17 : digits);
}

/* ---- the formatter ---- */

typedef struct sink {
    char *buf;
    size_t cap, len;
} sink;

static void sink_put(sink *o, const char *s, size_t n)
{
    if (o->len < o->cap) {
        size_t room = o->cap - o->len;
        memcpy(o->buf + o->len, s, n < room ? n : room);
    }
    o->len += n;
}

static void sink_fill(sink *o, char c, int n)
{
    while (n-- > 0)
        sink_put(o, &c, 1);
}

typedef struct spec {
    int left, zero, width;
    int precision; /* -1 = none */
    int length;    /* 0 int, 1 long, 2 long long, 3 size_t */
    char what;
} spec;

static int read_count(const char **fmt, va_list *ap)
{
    if (**fmt == '*') {
        ++*fmt;
        return va_arg(*ap, int);
    }
    int v = 0;
    for (; is_digit(**fmt); ++*fmt)
        if (v < 100000)
            v = v * 10 + (**fmt - '0');
    return v;
}

static spec read_spec(const char **fmt, va_list *ap)
{
    spec s = {0, 0, 0, -1, 0, '\0'};
    for (; **fmt == '-' || **fmt == '0'; ++*fmt)
        *(**fmt == '-' ? &s.left : &s.zero) = 1;
    s.width = read_count(fmt, ap);
    if (s.width < 0) {
        s.left = 1;
        s.width = s.width == INT32_MIN ? 0 : -s.width;
    }
    if (**fmt == '.') {
        ++*fmt;
        s.precision = read_count(fmt, ap);
    }
    if (**fmt == 'z') {
        s.length = 3;
        ++*fmt;
    }
    for (; **fmt == 'l' && s.length < 2; ++*fmt)
        s.length++;
    s.what = **fmt;
    if (s.what)
        ++*fmt;
    return s;
}

static void sink_padded(sink *o, const spec *s, const char *text, size_t n, int zero)
{
    int pad = n < (size_t)s->width ? s->width - (int)n : 0;
    size_t sign = zero && n > 0 && text[0] == '-';
    if (s->left) {
        sink_put(o, text, n);
        sink_fill(o, ' ', pad);
    } else {
        sink_put(o, text, sign);
        sink_fill(o, zero ? '0' : ' ', pad);
        sink_put(o, text + sign, n - sign);
    }
}

static void sink_integer(sink *o, const spec *s, uint64_t magnitude, int negative)
{
    char text[24];
    size_t at = sizeof text;
    unsigned base = s->what == 'x' ? 16 : 10;
    do {
        text[--at] = "0123456789abcdef"[magnitude % base];
        magnitude /= base;
    } while (magnitude);
    if (negative)
        text[--at] = '-';
    sink_padded(o, s, text + at, sizeof text - at, s->zero);
}

static void sink_signed(sink *o, const spec *s, va_list *ap)
{
    int64_t v = s->length == 0 ? va_arg(*ap, int)
                : s->length == 1 ? va_arg(*ap, long)
                : s->length == 2 ? va_arg(*ap, long long)
                                 : (int64_t)va_arg(*ap, size_t);
    sink_integer(o, s, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
}

static void sink_unsigned(sink *o, const spec *s, va_list *ap)
{
    uint64_t v = s->length == 0 ? va_arg(*ap, unsigned)
                 : s->length == 1 ? va_arg(*ap, unsigned long)
                 : s->length == 2 ? va_arg(*ap, unsigned long long)
                                  : va_arg(*ap, size_t);
    sink_integer(o, s, v, 0);
}

static void sink_text(sink *o, const spec *s, const char *text)
{
    if (!text)
        text = "(null)";
    size_t n = 0;
    while ((s->precision < 0 || n < (size_t)s->precision) && text[n])
        n++;
    sink_padded(o, s, text, n, 0);
}

/* One directive. 0 = not one of ours: the caller copies the rest as it stands, since its argument's size is unknown. */
static int sink_directive(sink *o, const spec *s, va_list *ap)
{
    char text[40];
    switch (s->what) {
    case '%':
        sink_put(o, "%", 1);
        return 1;
    case 's':
        sink_text(o, s, va_arg(*ap, const char *));
        return 1;
    case 'c':
        text[0] = (char)va_arg(*ap, int);
        sink_padded(o, s, text, 1, 0);
        return 1;
    case 'd':
        sink_signed(o, s, ap);
        return 1;
    case 'u':
    case 'x':
        sink_unsigned(o, s, ap);
        return 1;
    case 'g': {
        double v = va_arg(*ap, double);
        size_t n = s->precision < 0 ? opi__format_double(text, v) : opi__format_short(text, v, s->precision);
        sink_padded(o, s, text, n, s->zero);
        return 1;
    }
    default:
        return 0;
    }
}

size_t opi__utf8_sequence(const char *text, size_t left)
{
    const unsigned char *s = (const unsigned char *)text;
    if (left == 0 || s[0] < 0x80)
        return left > 0;
    size_t n = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, above U+10FFFF. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static int is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The largest length <= n that does not cut a UTF-8 sequence of s (s[n] may be looked at). */
static size_t utf8_floor(const char *s, size_t n)
{
    size_t back = 0;
    while (back < 4 && back < n && is_continuation(s[n - back]))
        back++;
    return back < 4 && !is_continuation(s[n - back]) ? n - back : n;
}

size_t opi__vformat(char *buf, size_t cap, const char *fmt, va_list ap)
{
    sink o = {buf, cap, 0};
    va_list args;
    va_copy(args, ap); /* a va_list parameter may be an array type: only a copy has an address of the right type */
    while (*fmt) {
        const char *start = fmt;
        while (*fmt && *fmt != '%')
            fmt++;
        sink_put(&o, start, (size_t)(fmt - start));
        if (!*fmt)
            break;
        start = fmt++;
        spec s = read_spec(&fmt, &args);
        if (!sink_directive(&o, &s, &args)) {
            sink_put(&o, start, strlen(start));
            break;
        }
    }
    va_end(args);
    if (cap > 0)
        buf[o.len < cap ? o.len : utf8_floor(buf, cap - 1)] = '\0';
    return o.len;
}

size_t opi__format(char *buf, size_t cap, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    size_t n = opi__vformat(buf, cap, fmt, ap);
    va_end(ap);
    return n;
}

/* ---- words ---- */

char opi__lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int opi__equal_nocase(const char *a, const char *b)
{
    while (*a && opi__lower(*a) == opi__lower(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

int opi__copy_text(char *dst, size_t cap, const char *src)
{
    size_t n = strlen(src);
    if (cap == 0)
        return n > 0;
    int cut = n >= cap;
    if (cut)
        n = utf8_floor(src, cap - 1);
    memmove(dst, src, n);
    dst[n] = '\0';
    return cut;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t opi__edit_distance(const char *a, const char *b, size_t limit)
{
    enum { MAX = 128 };
    size_t rows[3][MAX + 1], n = strlen(a), m = strlen(b);
    if (n > MAX || m > MAX || (n > m ? n - m : m - n) > limit)
        return limit + 1;
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= m; j++)
        before[j] = last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        char x = opi__lower(a[i - 1]);
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            char y = opi__lower(b[j - 1]);
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == opi__lower(b[j - 2]) && opi__lower(a[i - 2]) == y)
                now[j] = least(now[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }
    return last[m] > limit ? limit + 1 : last[m];
}
