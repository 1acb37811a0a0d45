/* SPDX-License-Identifier: Apache-2.0 */
/* What the text of a number cell means, and what to tell its author when it means nothing. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "facts/table_cell.h"

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_letter(char c)
{
    return opi__lower(c) >= 'a' && opi__lower(c) <= 'z';
}

void opi__cell_show(char *out, size_t cap, const char *text, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n && at + 4 < cap; i++) {
        unsigned char c = (unsigned char)text[i];
        if (i == 40) {
            memcpy(out + at, "...", 3);
            at += 3;
            break;
        }
        out[at++] = c < 0x20 || c >= 0x7f || c == '"' ? '?' : (char)c;
    }
    out[at] = 0;
}

void opi__cell_trim(const char **text, size_t *n)
{
    while (*n > 0 && ((*text)[0] == ' ' || (*text)[0] == '\t')) {
        (*text)++;
        (*n)--;
    }
    while (*n > 0 && ((*text)[*n - 1] == ' ' || (*text)[*n - 1] == '\t'))
        (*n)--;
}

static int equals(const char *text, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (!word[i] || opi__lower(text[i]) != word[i])
            return 0;
    return !word[n];
}

static int is_missing_mark(const char *text, size_t n)
{
    static const char *const marks[] = {"nan", "+nan", "-nan", "na", "n/a", "none", "null", "-", "--", "?", "nil"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (equals(text, n, marks[i]))
            return 1;
    return 0;
}

static int is_infinite_mark(const char *text, size_t n)
{
    size_t sign = n > 0 && (text[0] == '-' || text[0] == '+');
    return equals(text + sign, n - sign, "inf") || equals(text + sign, n - sign, "infinity");
}

/* Length of the number at the start of the text: digits, one point, an exponent. 0 = none. */
static size_t number_prefix(const char *text, size_t n)
{
    size_t i = n > 0 && (text[0] == '-' || text[0] == '+'), digits = 0;
    for (; i < n && is_digit(text[i]); i++)
        digits++;
    if (i < n && text[i] == '.')
        for (i++; i < n && is_digit(text[i]); i++)
            digits++;
    if (digits == 0)
        return 0;
    size_t e = i;
    if (e < n && (text[e] == 'e' || text[e] == 'E')) {
        e += 1 + (e + 1 < n && (text[e + 1] == '-' || text[e + 1] == '+'));
        size_t first = e;
        while (e < n && is_digit(text[e]))
            e++;
        if (e > first)
            i = e;
    }
    return i;
}

/* Only digits, signs and the marks people write inside numbers. */
static int is_grouped(const char *text, size_t n, const char *marks)
{
    int digit = 0, mark = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_digit(text[i]))
            digit = 1;
        else if (strchr(marks, text[i]) && text[i])
            mark = 1;
        else if (text[i] != '.' && text[i] != '-' && text[i] != '+' && text[i] != 'e' && text[i] != 'E')
            return 0;
    }
    return digit && mark;
}

int32_t opi__cell_number(const char *text, size_t n, double *out)
{
    if (opi__parse_double(text, n, out))
        return OPI__CELL_NUMBER;
    if (is_missing_mark(text, n))
        return OPI__CELL_NAN;
    if (is_infinite_mark(text, n))
        return OPI__CELL_INFINITE;
    if (is_grouped(text, n, ","))
        return OPI__CELL_COMMA;
    size_t prefix = number_prefix(text, n);
    if (prefix == n)
        return OPI__CELL_TOO_LARGE;
    if (is_grouped(text, n, " '_"))
        return OPI__CELL_GROUPED;
    if (prefix > 0) {
        size_t unit = prefix;
        while (unit < n && text[unit] == ' ')
            unit++;
        unsigned char c = (unsigned char)text[unit];
        if (is_letter(text[unit]) || c == '%' || c == '/' || c >= 0x80)
            return OPI__CELL_UNIT;
    }
    return OPI__CELL_NOT_A_NUMBER;
}

const char *opi__cell_kind(int32_t verdict)
{
    switch (verdict) {
    case OPI__CELL_NAN: return "not-measured-mark";
    case OPI__CELL_COMMA: return "decimal-comma";
    case OPI__CELL_GROUPED: return "thousands-separator";
    case OPI__CELL_UNIT: return "unit";
    case OPI__CELL_INFINITE:
    case OPI__CELL_TOO_LARGE: return "range";
    default: return "not-a-number";
    }
}

const char *opi__cell_advice(int32_t verdict)
{
    switch (verdict) {
    case OPI__CELL_NAN: return "is not a number: leave the cell blank when it was not measured";
    case OPI__CELL_COMMA:
        return "has a comma: a decimal comma or a thousands separator, which cannot be told apart; write numbers with a "
               "decimal point and without separators";
    case OPI__CELL_GROUPED: return "has a thousands separator: write the digits without it";
    case OPI__CELL_UNIT: return "has a unit: convert it to the column's unit and write the number alone";
    case OPI__CELL_INFINITE: return "is not finite: leave the cell blank when there is no number";
    case OPI__CELL_TOO_LARGE: return "is beyond every number a double can hold";
    default: return "is not a number";
    }
}
