/* SPDX-License-Identifier: Apache-2.0 */
#include "out.h"
#include "tool.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct cell {
    char *text;
    out_style style;
} cell;

struct out_table {
    size_t columns, n, cap, flex;
    const char *const *heads;
    cell *cells;
};

out_table *out_table_new(const char *const *heads, size_t n)
{
    out_table *t = tool_alloc(1, sizeof *t);
    t->columns = n;
    t->heads = heads;
    t->flex = n;
    return t;
}

void out_table_flex(out_table *t, size_t column)
{
    t->flex = column;
}

void out_cell_style(out_table *t, const char *text, out_style style)
{
    char safe[512];
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 64;
        cell *grown = tool_alloc(cap, sizeof *grown);
        if (t->n) {
            memcpy(grown, t->cells, t->n * sizeof *grown);
        }
        free(t->cells);
        t->cells = grown;
        t->cap = cap;
    }
    out_clean(safe, sizeof safe, text);
    t->cells[t->n].text = tool_copy(safe, strlen(safe));
    t->cells[t->n++].style = style;
}

void out_cell(out_table *t, const char *text)
{
    out_cell_style(t, text, OUT_PLAIN);
}

void out_cellf(out_table *t, const char *fmt, ...)
{
    char buf[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    out_cell(t, buf);
}

static const char *head_text(const out_table *t, size_t c, int *right)
{
    *right = t->heads[c][0] == '>';
    return t->heads[c] + *right;
}

static void print_cell(const char *text, size_t width, int right, int last, out_style style)
{
    size_t columns = out_columns(text), cut = 0;
    char shorter[520];
    if (columns > width && width > 0) { /* only the flexible column can be too wide */
        cut = out_prefix(text, width - 1);
        snprintf(shorter, sizeof shorter, "%.*s…", (int)cut, text);
        text = shorter;
        columns = out_columns(text);
    }
    size_t pad = width > columns ? width - columns : 0;
    if (right) {
        out_printf("%*s", (int)pad, "");
    }
    out_puts(out_on(style));
    out_puts(text);
    if (style != OUT_PLAIN) {
        out_puts(out_off());
    }
    if (!last) {
        out_printf("%*s", (int)(right ? 2 : pad + 2), "");
    }
}

static void measure(const out_table *t, size_t indent, size_t *widths)
{
    size_t total = indent;
    for (size_t c = 0; c < t->columns; c++) {
        int right;
        widths[c] = out_columns(head_text(t, c, &right));
        for (size_t i = c; i < t->n; i += t->columns) {
            size_t w = out_columns(t->cells[i].text);
            widths[c] = w > widths[c] ? w : widths[c];
        }
        total += widths[c] + (c + 1 < t->columns ? 2 : 0);
    }
    if (total > OUT_WIDTH && t->flex < t->columns) {
        size_t over = total - OUT_WIDTH, least = 8;
        widths[t->flex] = widths[t->flex] > over + least ? widths[t->flex] - over : least;
    }
}

void out_table_end(out_table *t, size_t indent)
{
    size_t *widths = tool_alloc(t->columns, sizeof *widths);
    int right;
    measure(t, indent, widths);
    out_printf("%*s", (int)indent, "");
    for (size_t c = 0; c < t->columns; c++) {
        const char *head = head_text(t, c, &right);
        print_cell(head, widths[c], right, c + 1 == t->columns, OUT_BOLD);
    }
    out_puts("\n");
    for (size_t i = 0; i < t->n; i++) {
        size_t c = i % t->columns;
        if (c == 0) {
            out_printf("%*s", (int)indent, "");
        }
        head_text(t, c, &right);
        print_cell(t->cells[i].text, widths[c], right, c + 1 == t->columns, t->cells[i].style);
        if (c + 1 == t->columns) {
            out_puts("\n");
        }
    }
    for (size_t i = 0; i < t->n; i++) {
        free(t->cells[i].text);
    }
    free(t->cells);
    free(widths);
    free(t);
}
