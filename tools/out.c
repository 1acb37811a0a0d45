/* SPDX-License-Identifier: Apache-2.0 */
#include "out.h"

#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int color, broken, broken_errno;

static void hold(int fd, int flags)
{
    /* A closed descriptor would be handed to the next file that is opened, and results would land in that file.
     * Writing to a read-only descriptor fails, which is what a closed stdout deserves. */
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
        int got = open("/dev/null", flags);
        if (got >= 0 && got != fd) {
            dup2(got, fd);
            close(got);
        }
    }
}

void out_begin(void)
{
    hold(0, O_RDONLY);
    hold(1, O_RDONLY);
    hold(2, O_WRONLY);
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is a failed write, not a death in the middle of a save */
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    color = isatty(1) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

static void note_failure(void)
{
    if (!broken) {
        broken = 1;
        broken_errno = errno;
    }
}

int out_end(void)
{
    if (fflush(stdout) != 0) {
        note_failure();
    }
    if (fclose(stdout) != 0) {
        note_failure();
    }
    if (!broken) {
        return 0;
    }
    if (broken_errno != EPIPE) { /* `omnipilot … | head` is no news */
        tool_fail(1, "cannot write the results to standard output: %s", strerror(broken_errno));
    }
    return 1;
}

int out_failed(void)
{
    return broken;
}

void out_bytes(const char *bytes, size_t n)
{
    if (n && !broken && fwrite(bytes, 1, n, stdout) != n) {
        note_failure();
    }
}

void out_puts(const char *s)
{
    out_bytes(s, strlen(s));
}

void out_printf(const char *fmt, ...)
{
    va_list ap;
    if (broken) {
        return;
    }
    va_start(ap, fmt);
    if (vfprintf(stdout, fmt, ap) < 0) {
        note_failure();
    }
    va_end(ap);
}

char *out_clean(char *buf, size_t cap, const char *text)
{
    size_t n = strlen(text);
    if (n >= cap) {
        n = cap - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) { /* not inside a character */
            n--;
        }
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        buf[i] = c < 0x20 || c == 0x7f ? '?' : (char)c;
    }
    buf[n] = 0;
    return buf;
}

/* ---- UTF-8 ---- */
static unsigned long next_char(const char **at)
{
    const unsigned char *s = (const unsigned char *)*at;
    int more = *s >= 0xf0 ? 3 : *s >= 0xe0 ? 2 : *s >= 0xc0 ? 1 : 0;
    unsigned long c = more == 3 ? *s & 7u : more == 2 ? *s & 15u : more == 1 ? *s & 31u : *s;
    s++;
    while (more-- > 0 && (*s & 0xc0) == 0x80) {
        c = c << 6 | (*s++ & 63u);
    }
    *at = (const char *)s;
    return c;
}

static size_t char_columns(unsigned long c)
{
    if ((c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200f) || (c >= 0xfe00 && c <= 0xfe0f) || c == 0xfeff) {
        return 0;
    }
    if ((c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
        (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
        (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd)) {
        return 2;
    }
    return 1;
}

size_t out_columns(const char *text)
{
    size_t columns = 0;
    while (*text) {
        columns += char_columns(next_char(&text));
    }
    return columns;
}

size_t out_prefix(const char *text, size_t columns)
{
    const char *at = text, *good = text;
    size_t used = 0;
    while (*at) {
        used += char_columns(next_char(&at));
        if (used > columns) {
            break;
        }
        good = at;
    }
    return (size_t)(good - text);
}

void out_wrap(size_t column, size_t indent, const char *text)
{
    int first = 1;
    while (*text) {
        char word[512], safe[512];
        size_t n = strcspn(text, " \n");
        if (text[0] == ' ' || text[0] == '\n') {
            text++;
            continue;
        }
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), text);
        text += n;
        size_t width = out_columns(out_clean(safe, sizeof safe, word));
        if (!first && column + 1 + width > OUT_WIDTH) {
            out_printf("\n%*s", (int)indent, "");
            column = indent;
            first = 1;
        }
        out_printf("%s%s", first ? "" : " ", safe);
        column += width + !first;
        first = 0;
    }
    out_puts("\n");
}

/* ---- styles ---- */
const char *out_on(out_style s)
{
    static const char *const codes[] = {"", "\033[1m", "\033[32m", "\033[33m", "\033[31m", "\033[2m"};
    return color ? codes[s] : "";
}

const char *out_off(void)
{
    return color ? "\033[0m" : "";
}

/* ---- numbers ---- */
char *out_human(char *buf, double v, int digits)
{
    char raw[64];
    if (isnan(v)) {
        return strcpy(buf, "-");
    }
    if (isinf(v)) {
        return strcpy(buf, v > 0 ? "inf" : "-inf");
    }
    double size = fabs(v);
    if (size >= 1e15 || (size > 0 && size < 1e-6)) {
        snprintf(buf, OUT_NUM, "%.*e", digits - 1, v);
        return buf;
    }
    snprintf(raw, sizeof raw, "%.*e", digits - 1, v); /* rounded to the digits asked … */
    double rounded = strtod(raw, NULL);
    int exponent = rounded != 0 ? (int)floor(log10(fabs(rounded)) + 1e-12) : 0;
    int decimals = digits - 1 - exponent;
    decimals = decimals < 0 || rounded == 0 ? 0 : decimals > 9 ? 9 : decimals;
    int n = snprintf(raw, sizeof raw, "%.*f", decimals, rounded); /* … and written without an exponent */
    while (digits > 3 && decimals > 0 && (raw[n - 1] == '0' || raw[n - 1] == '.')) { /* a fact, not a prediction */
        decimals -= raw[n - 1] == '.' ? decimals : 0;
        raw[--n] = 0;
    }
    int whole = (int)strcspn(raw, "."), at = 0;
    for (int i = 0; i < n && at < OUT_NUM - 2; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0 && raw[i - 1] != '-') {
            buf[at++] = ' ';
        }
        buf[at++] = raw[i];
    }
    buf[at] = 0;
    return buf;
}

char *out_interval(char *buf, double mid, double lo, double hi)
{
    char m[OUT_NUM], l[OUT_NUM], h[OUT_NUM];
    out_human(m, mid, 3);
    if (isnan(mid)) {
        return strcpy(buf, "-");
    }
    if (isnan(lo) || isnan(hi)) {
        snprintf(buf, 4 * OUT_NUM, "%s (no interval)", m);
    } else {
        snprintf(buf, 4 * OUT_NUM, "%s [%s … %s]", m, out_human(l, lo, 3), out_human(h, hi, 3));
    }
    return buf;
}

char *out_exact(char *buf, double v)
{
    if (isnan(v)) {
        return strcpy(buf, "");
    }
    if (isinf(v)) {
        return strcpy(buf, v > 0 ? "inf" : "-inf");
    }
    snprintf(buf, OUT_NUM, "%.15g", v);
    if (strtod(buf, NULL) != v) {
        snprintf(buf, OUT_NUM, "%.17g", v);
    }
    return buf;
}

/* ---- CSV ---- */
void csv_text(const char *text, int last)
{
    if (text && text[strcspn(text, ",\"\r\n")]) {
        out_puts("\"");
        for (const char *p = text; *p; p++) {
            out_bytes(p, 1);
            if (*p == '"') {
                out_puts("\"");
            }
        }
        out_puts("\"");
    } else if (text) {
        out_puts(text);
    }
    out_puts(last ? "\n" : ",");
}

void csv_number(double v, int last)
{
    char buf[OUT_NUM];
    out_puts(out_exact(buf, v));
    out_puts(last ? "\n" : ",");
}

void csv_int(int64_t v, int last)
{
    out_printf("%lld%s", (long long)v, last ? "\n" : ",");
}

/* ---- JSON ---- */
static int depth, filled[64];

static void json_string(const char *s)
{
    out_puts("\"");
    const char *from = s;
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f) {
            continue;
        }
        out_bytes(from, (size_t)(s - from));
        if (c == '"' || c == '\\') {
            out_printf("\\%c", c);
        } else {
            out_printf("\\u%04x", c);
        }
        from = s + 1;
    }
    out_bytes(from, (size_t)(s - from));
    out_puts("\"");
}

static void json_key(const char *key)
{
    if (depth > 0) {
        out_puts(filled[depth] ? ",\n" : "\n");
        out_printf("%*s", 2 * depth, "");
        filled[depth] = 1;
    }
    if (key) {
        json_string(key);
        out_puts(": ");
    }
}

static void json_open(const char *key, const char *bracket)
{
    json_key(key);
    out_puts(bracket);
    filled[++depth] = 0;
}

static void json_close(const char *bracket)
{
    int was = filled[depth--];
    if (was) {
        out_printf("\n%*s", 2 * depth, "");
    }
    out_puts(bracket);
    if (depth == 0) {
        out_puts("\n");
    }
}

void json_begin_object(const char *key)
{
    json_open(key, "{");
}
void json_end_object(void)
{
    json_close("}");
}
void json_begin_array(const char *key)
{
    json_open(key, "[");
}
void json_end_array(void)
{
    json_close("]");
}

void json_text(const char *key, const char *text)
{
    json_key(key);
    if (text) {
        json_string(text);
    } else {
        out_puts("null");
    }
}

void json_number(const char *key, double v)
{
    char buf[OUT_NUM];
    json_key(key);
    out_puts(isfinite(v) ? out_exact(buf, v) : "null");
}

void json_int(const char *key, int64_t v)
{
    json_key(key);
    out_printf("%lld", (long long)v);
}

void json_bool(const char *key, int v)
{
    json_key(key);
    out_puts(v ? "true" : "false");
}

void json_null(const char *key)
{
    json_key(key);
    out_puts("null");
}

void json_raw(const char *key, const char *json, size_t n)
{
    json_key(key);
    out_bytes(json, n);
}
