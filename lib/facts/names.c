/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/names.h"

#include "base/text.h"

#include <string.h>

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int in_list(const char *list, const char *token, size_t size)
{
    return list && opi__name_has(list, token, size);
}

size_t opi__name_token(const char *words, size_t *at, const char **token)
{
    size_t i = *at;
    while (words[i] == ' ')
        i++;
    size_t start = i;
    while (words[i] && words[i] != ' ')
        i++;
    *token = words + start;
    *at = i;
    return i - start;
}

int opi__name_has(const char *words, const char *token, size_t size)
{
    const char *t;
    size_t at = 0, n;
    while ((n = opi__name_token(words, &at, &t)) > 0) {
        if (n == size && memcmp(t, token, size) == 0)
            return 1;
    }
    return 0;
}

size_t opi__name_missing(const char *a, const char *b, int (*skip)(const char *token, size_t size))
{
    const char *t;
    size_t at = 0, n, missing = 0;
    while ((n = opi__name_token(a, &at, &t)) > 0)
        missing += !opi__name_has(b, t, n) && !(skip && skip(t, n));
    return missing;
}

/* Where "llama3.1" falls into a word and a number: two letters or more, then only digits and dots. 0 = nowhere. */
static size_t word_number(const char *t, size_t n)
{
    size_t letters = 0;
    while (letters < n && is_letter(t[letters]))
        letters++;
    if (letters < 2 || letters == n)
        return 0;
    for (size_t i = letters; i < n; i++) {
        if (!is_digit(t[i]) && t[i] != '.')
            return 0;
    }
    return letters;
}

static int all_digits(const char *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(t[i]))
            return 0;
    }
    return n > 0;
}

/* Adds a lower-case token; "gb", "gib" and "g" after a number belong to it. */
static void add_token(opi__name *out, const char *token, size_t n, const char *noise)
{
    size_t len = strlen(out->words), last = len;
    if (n == 0 || in_list(noise, token, n) || len + n + 2 > OPI__NAME_CAP)
        return;
    while (last > 0 && out->words[last - 1] != ' ')
        last--;
    int unit = (n == 1 && token[0] == 'g') || (n == 2 && memcmp(token, "gb", 2) == 0) ||
               (n == 3 && memcmp(token, "gib", 3) == 0);
    if (unit && len > 0 && all_digits(out->words + last, len - last)) {
        memcpy(out->words + len, "gb", 3);
        return;
    }
    if (len > 0)
        out->words[len++] = ' ';
    memcpy(out->words + len, token, n);
    len += n;
    /* "80g" and "80gib" are spellings of 80gb. */
    size_t digits = 0;
    while (digits < n && is_digit(token[digits]))
        digits++;
    int short_unit = n == digits + 1 && token[n - 1] == 'g';
    int long_unit = n == digits + 3 && memcmp(token + digits, "gib", 3) == 0;
    if (digits > 0 && (short_unit || long_unit)) {
        len = len - n + digits;
        memcpy(out->words + len, "gb", 2);
        len += 2;
    }
    out->words[len] = '\0';
}

static void tighten(opi__name *out)
{
    size_t n = 0;
    for (const char *c = out->words; *c; c++) {
        if (*c != ' ')
            out->tight[n++] = *c;
    }
    out->tight[n] = '\0';
}

int opi__name_of(const char *text, size_t size, const char *noise, opi__name *out)
{
    char token[OPI__NAME_CAP];
    size_t n = 0;
    out->words[0] = out->tight[0] = '\0';
    if (!text || size >= OPI__NAME_CAP / 2)
        return 0;
    for (size_t i = 0; i <= size; i++) {
        char c = i < size ? text[i] : ' ';
        int inside = i > 0 && i + 1 < size && is_digit(text[i - 1]) && is_digit(text[i + 1]);
        if (inside && (c == '.' || (c == '_' && all_digits(token, n)))) {
            token[n++] = '.';
        } else if (is_letter(c) || is_digit(c) || (unsigned char)c >= 128) {
            token[n++] = opi__lower(c);
        } else {
            size_t cut = word_number(token, n);
            add_token(out, token, cut, noise);
            add_token(out, token + cut, n - cut, noise);
            n = 0;
        }
    }
    tighten(out);
    return out->words[0] != '\0';
}

void opi__name_join(opi__name *name, const opi__name *other)
{
    const char *t;
    size_t at = 0, n;
    while ((n = opi__name_token(other->words, &at, &t)) > 0) {
        size_t len = strlen(name->words);
        if (opi__name_has(name->words, t, n) || len + n + 2 > OPI__NAME_CAP)
            continue;
        name->words[len] = ' ';
        memcpy(name->words + len + 1, t, n);
        name->words[len + 1 + n] = '\0';
    }
}

void opi__name_flatten(char *text)
{
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    }
}

const char *opi__name_shown(const char *text, char *shown)
{
    if (opi__copy_text(shown, OPI__SHOWN_CAP - 3, text))
        opi__format(shown + strlen(shown), 4, "...");
    opi__name_flatten(shown);
    return shown;
}

void opi__nearest_offer(opi__nearest *nearest, size_t index, size_t score)
{
    size_t at = nearest->n;
    while (at > 0 && nearest->score[at - 1] > score)
        at--;
    if (at >= OPI__NEAREST)
        return;
    size_t last = nearest->n < OPI__NEAREST ? nearest->n++ : OPI__NEAREST - 1;
    for (size_t i = last; i > at; i--) {
        nearest->index[i] = nearest->index[i - 1];
        nearest->score[i] = nearest->score[i - 1];
    }
    nearest->index[at] = index;
    nearest->score[at] = score;
}

size_t opi__name_distance(const opi__name *a, const opi__name *b)
{
    size_t apart = opi__edit_distance(a->tight, b->tight, 64);
    size_t missing = opi__name_missing(a->words, b->words, NULL), more = opi__name_missing(b->words, a->words, NULL);
    return 6 * missing + 2 * more + 2 * apart;
}

void opi__list_add(opi__list *list, const char *name)
{
    size_t room = sizeof list->text - 24; /* for " and 999 more" */
    size_t n = strlen(name);
    list->n++;
    if (list->len + n + 2 > room) {
        list->hidden++;
        return;
    }
    const char *comma = list->len ? ", " : "";
    list->len += opi__format(list->text + list->len, sizeof list->text - list->len, "%s%s", comma, name);
}

const char *opi__list_text(opi__list *list)
{
    if (list->hidden)
        opi__format(list->text + list->len, sizeof list->text - list->len, " and %zu more", list->hidden);
    return list->text;
}
