/* SPDX-License-Identifier: Apache-2.0 */
#include "parse.h"

#include "tool.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the decimal number `s` starts with; 0 when it does not. No hex, no inf, no nan, no grouping. */
static size_t number_length(const char *s)
{
    size_t i = 0, digits = 0;
    i += s[i] == '-' || s[i] == '+';
    for (; isdigit((unsigned char)s[i]); i++) {
        digits++;
    }
    if (s[i] == '.') {
        for (i++; isdigit((unsigned char)s[i]); i++) {
            digits++;
        }
    }
    if (!digits) {
        return 0;
    }
    if (s[i] == 'e' || s[i] == 'E') {
        size_t j = i + 1;
        j += s[j] == '-' || s[j] == '+';
        if (isdigit((unsigned char)s[j])) {
            while (isdigit((unsigned char)s[j])) {
                j++;
            }
            i = j;
        }
    }
    return i;
}

static int not_a_number(const char *option, const char *text)
{
    size_t n = number_length(text);
    if (n && text[n] == ',') {
        return tool_fail(X_USAGE, "--%s: '%s' is not a number: write a decimal point as '.' and do not group digits",
                         option, text);
    }
    return tool_fail(X_USAGE, "--%s: '%s' is not a number", option, text);
}

static int check(const char *option, const char *text, double v, double lo, int open, double hi)
{
    if (!(v >= lo) || (open && v == lo)) {
        return tool_fail(X_USAGE, "--%s: %s is too small: it must be %s %.15g", option, text,
                         open ? "above" : "at least", lo);
    }
    if (!(v <= hi)) {
        return tool_fail(X_USAGE, "--%s: %s is too large: the limit is %.15g", option, text, hi);
    }
    return 0;
}

int parse_number(const char *option, const char *text, double lo, int open, double hi, double *out)
{
    size_t n = number_length(text);
    if (!n || text[n]) {
        return not_a_number(option, text);
    }
    double v = strtod(text, NULL); /* an overflow is infinity and above every limit */
    int status = check(option, text, v, lo, open, hi);
    if (!status) {
        *out = v;
    }
    return status;
}

int parse_int(const char *option, const char *text, int64_t lo, int64_t hi, int64_t *out)
{
    double v = 0;
    int status = parse_number(option, text, (double)lo, 0, (double)hi, &v);
    if (status) {
        return status;
    }
    if (v != floor(v)) {
        return tool_fail(X_USAGE, "--%s: %s is not a whole number", option, text);
    }
    *out = (int64_t)v;
    return 0;
}

int parse_number_option(const args *a, const char *name, double lo, int open, double hi, double *out)
{
    return args_has(a, name) ? parse_number(name, args_get(a, name), lo, open, hi, out) : 0;
}

int parse_int_option(const args *a, const char *name, int64_t lo, int64_t hi, int32_t *out)
{
    int64_t v = 0;
    int status = args_has(a, name) ? parse_int(name, args_get(a, name), lo, hi, &v) : 1;
    if (!args_has(a, name)) {
        return 0;
    }
    if (!status) {
        *out = (int32_t)v;
    }
    return status;
}

int parse_level_option(const args *a, double *out)
{
    const char *text = args_get(a, "level");
    double v;
    if (!text) {
        return 0;
    }
    size_t n = number_length(text);
    if (!n || (text[n] && strcmp(text + n, "%") != 0)) {
        return not_a_number("level", text);
    }
    v = strtod(text, NULL) / (text[n] == '%' ? 100 : 1);
    int status = check("level", text, v, 0.5, 0, 0.99);
    if (!status) {
        *out = v;
    }
    return status;
}

/* ---- units ---- */
typedef struct unit_name {
    const char *base, *name;
    double factor; /* value in base = number * factor */
} unit_name;

static const unit_name units[] = {
    {"ms", "ms", 1},
    {"ms", "s", 1e3},
    {"ms", "us", 1e-3},
    {"ms", "µs", 1e-3},
    {"ms", "min", 6e4},
    {"s", "s", 1},
    {"s", "ms", 1e-3},
    {"s", "us", 1e-6},
    {"s", "µs", 1e-6},
    {"s", "min", 60},
    {"s", "h", 3600},
    {"s", "d", 86400},
    {"h", "h", 1},
    {"h", "s", 1.0 / 3600},
    {"h", "min", 1.0 / 60},
    {"h", "d", 24},
    {"d", "d", 1},
    {"d", "h", 1.0 / 24},
    {"tokens/s", "tokens/s", 1},
    {"tokens/s", "tok/s", 1},
    {"tokens/s", "t/s", 1},
    {"tokens/s", "ktok/s", 1e3},
    {"requests/s", "requests/s", 1},
    {"requests/s", "req/s", 1},
    {"requests/s", "rps", 1},
    {"requests/s", "qps", 1},
    {"requests/s", "/s", 1},
    {"W", "W", 1},
    {"W", "kW", 1e3},
    {"tokens/J", "tokens/J", 1},
    {"tokens/J", "tok/J", 1},
    {"$/h", "$/h", 1},
    {"$/h", "usd/h", 1},
    {"$/h", "/h", 1},
    {"share", "%", 0.01},
};
#define N_UNITS (sizeof units / sizeof units[0])

static int same_word(const char *a, const char *b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
        a++;
        b++;
    }
    return !*a && !*b;
}

int parse_quantity(const char *option, const char *text, const char *unit, double lo, int open, double hi, double *out)
{
    size_t n = number_length(text), at = 0;
    char known[160];
    const char *rest = text + n;
    int is_share = !*unit || same_word(unit, "1") || same_word(unit, "share") || same_word(unit, "fraction");
    const char *base = is_share ? "share" : unit;
    double factor = 0;
    if (!n) {
        return not_a_number(option, text);
    }
    while (*rest == ' ') {
        rest++;
    }
    known[0] = 0;
    if (!*rest || same_word(rest, unit)) {
        factor = 1;
    }
    for (size_t i = 0; i < N_UNITS && factor == 0; i++) {
        if (same_word(units[i].base, base)) {
            factor = same_word(units[i].name, rest) ? units[i].factor : 0;
            at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", units[i].name);
        }
    }
    if (factor == 0 && *rest == ',') {
        return not_a_number(option, text);
    }
    if (factor == 0) {
        return tool_fail(X_USAGE, "--%s: '%s' is not a unit for this; use %s%s", option, rest,
                         is_share ? "a share or " : "", at ? known : unit);
    }
    double v = strtod(text, NULL) * factor;
    int status = check(option, text, v, lo, open, hi);
    if (!status) {
        *out = v;
    }
    return status;
}

/* ---- lists ---- */
/* Calls `each` for every comma-separated piece (spaces around it dropped) of every use of the option. */
typedef int (*piece_fn)(const char *option, const char *piece, void *user);

static int for_pieces(const args *a, const char *name, piece_fn each, void *user)
{
    const char *text;
    for (size_t k = 0; (text = args_nth(a, name, k)) != NULL; k++) {
        for (const char *at = text;;) {
            size_t n = strcspn(at, ","), skip = strspn(at, " ");
            const char *from = at + (skip < n ? skip : n);
            size_t len = (size_t)(at + n - from);
            while (len && from[len - 1] == ' ') {
                len--;
            }
            if (!len) {
                return tool_fail(X_USAGE, "--%s: an empty entry in '%s'", name, text);
            }
            char *piece = tool_copy(from, len);
            int status = each(name, piece, user);
            free(piece);
            if (status) {
                return status;
            }
            if (!at[n]) {
                break;
            }
            at += n + 1;
        }
    }
    return 0;
}

typedef struct text_list {
    char **items;
    size_t n;
} text_list;

static int add_text(const char *option, const char *piece, void *user)
{
    text_list *l = user;
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->items[i], piece) == 0) {
            return tool_fail(X_USAGE, "--%s: '%s' is named twice", option, piece);
        }
    }
    char **grown = tool_alloc(l->n + 1, sizeof *grown);
    if (l->n) {
        memcpy(grown, l->items, l->n * sizeof *grown);
    }
    free(l->items);
    l->items = grown;
    l->items[l->n++] = tool_copy(piece, strlen(piece));
    return 0;
}

int parse_list(const args *a, const char *name, char ***out, size_t *n)
{
    text_list l = {NULL, 0};
    int status = for_pieces(a, name, add_text, &l);
    if (status) {
        parse_list_free(l.items, l.n);
        return status;
    }
    *out = l.items;
    *n = l.n;
    return 0;
}

void parse_list_free(char **list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i]);
    }
    free(list);
}

typedef struct target_list {
    size_t *items, n;
} target_list;

static int add_target(const char *option, const char *piece, void *user)
{
    target_list *l = user;
    opi_error err;
    size_t index;
    if (opi_target_find(piece, &index, &err)) {
        return tool_error(&err, option);
    }
    for (size_t i = 0; i < l->n; i++) {
        if (l->items[i] == index) {
            return tool_fail(X_USAGE, "--%s: '%s' is named twice", option, piece);
        }
    }
    l->items[l->n++] = index;
    return 0;
}

int parse_targets(const args *a, size_t *out, size_t *n)
{
    target_list l = {out, 0};
    int status = for_pieces(a, "target", add_target, &l);
    if (!status && !args_has(a, "target")) {
        for (l.n = 0; l.n < opi_target_count(); l.n++) {
            out[l.n] = l.n;
        }
    }
    *n = l.n;
    return status;
}

/* ---- SLOs ---- */
typedef struct slo_list {
    opi_slo *items;
    size_t n, max;
} slo_list;

static int add_slo(const char *option, const char *piece, void *user)
{
    slo_list *l = user;
    const char *equals = strchr(piece, '=');
    opi_target_info info = {.struct_size = sizeof info};
    opi_error err;
    size_t index;
    double limit;
    if (!equals || equals == piece || !equals[1]) {
        return tool_fail(X_USAGE, "--%s: '%s' is not of the form name=value[unit], such as ttft_p50=2s", option, piece);
    }
    size_t n = (size_t)(equals - piece);
    if (piece[n - 1] == '<' || piece[n - 1] == '>') {
        return tool_fail(X_USAGE, "--%s: write '%.*s=%s'; the direction follows from the target", option, (int)(n - 1),
                         piece, equals + 1);
    }
    char *name = tool_copy(piece, n);
    int32_t found = opi_target_find(name, &index, &err);
    free(name);
    if (found) {
        return tool_error(&err, option);
    }
    opi_target_at(index, &info, NULL);
    int status = parse_quantity(option, equals + 1, info.unit, 0, 1, 1e12, &limit);
    if (status) {
        return status;
    }
    for (size_t i = 0; i < l->n; i++) {
        if (l->items[i].target == index) {
            return tool_fail(X_USAGE, "--%s: %s has two limits; one is allowed", option, info.title);
        }
    }
    if (l->n == l->max) {
        return tool_fail(X_USAGE, "--%s: more than %zu limits", option, l->max);
    }
    l->items[l->n].target = index;
    l->items[l->n++].limit = limit;
    return 0;
}

int parse_slos(const args *a, opi_slo *out, size_t max, size_t *n)
{
    slo_list l = {out, 0, max};
    int status = for_pieces(a, "slo", add_slo, &l);
    *n = l.n;
    return status;
}

/* ---- inventory ---- */
typedef struct inventory {
    opi_gpu *gpus;
    opi_inventory *lines;
    size_t n, max;
} inventory;

static int add_line(const char *option, const char *piece, void *user)
{
    inventory *inv = user;
    const char *colon = strrchr(piece, ':'), *at = colon ? strchr(colon, '@') : NULL;
    int64_t count, per_node = 0;
    if (!colon || colon == piece || !colon[1] || (at && (at == colon + 1 || !at[1]))) {
        return tool_fail(X_USAGE, "--%s: '%s' is not of the form GPU:count or GPU:count@per_node, such as H100:8",
                         option, piece);
    }
    if (inv->n == inv->max) {
        return tool_fail(X_USAGE, "--%s: more than %zu entries", option, inv->max);
    }
    char *name = tool_copy(piece, (size_t)(colon - piece));
    char *number = tool_copy(colon + 1, at ? (size_t)(at - colon - 1) : strlen(colon + 1));
    int status = tool_gpu(option, name, &inv->gpus[inv->n]);
    status = status ? status : parse_int(option, number, 1, 1000000, &count);
    status = status || !at ? status : parse_int(option, at + 1, 1, 1024, &per_node);
    for (size_t i = 0; !status && i < inv->n; i++) {
        if (strcmp(inv->gpus[i].name, inv->gpus[inv->n].name) == 0) {
            status = tool_fail(X_USAGE, "--%s: %s is named twice; add the counts up", option, inv->gpus[i].name);
        }
    }
    free(name);
    free(number);
    if (!status) {
        opi_inventory *line = &inv->lines[inv->n];
        memset(line, 0, sizeof *line);
        line->struct_size = sizeof *line;
        line->count = (int32_t)count;
        line->per_node = (int32_t)per_node;
        line->gpu = &inv->gpus[inv->n++];
    }
    return status;
}

/* "GPU=amount": finds the inventory line of the GPU. */
static int split_amount(const char *option, const char *piece, inventory *inv, opi_inventory **line,
                        const char **amount)
{
    const char *equals = strchr(piece, '=');
    opi_gpu gpu;
    if (!equals || equals == piece || !equals[1]) {
        return tool_fail(X_USAGE, "--%s: '%s' is not of the form GPU=number", option, piece);
    }
    char *name = tool_copy(piece, (size_t)(equals - piece));
    int status = tool_gpu(option, name, &gpu);
    free(name);
    if (status) {
        return status;
    }
    for (size_t i = 0; i < inv->n; i++) {
        if (strcmp(inv->gpus[i].name, gpu.name) == 0) {
            *line = &inv->lines[i];
            *amount = equals + 1;
            return 0;
        }
    }
    return tool_fail(X_USAGE, "--%s: %s is not in --inventory", option, gpu.name);
}

static int add_price(const char *option, const char *piece, void *user)
{
    opi_inventory *line = NULL;
    const char *amount = NULL;
    double price;
    int status = split_amount(option, piece, user, &line, &amount);
    if (status) {
        return status;
    }
    amount += amount[0] == '$';
    size_t n = number_length(amount);
    if (n && strtod(amount, NULL) == 0) {
        return tool_fail(
            X_USAGE,
            "--%s: the price of %s is 0; it must be above 0 $/h (without --%s the cited price is used, and a "
            "GPU that has none is ranked without a node cost and says so)",
            option, line->gpu->name, option);
    }
    status = parse_quantity(option, amount, "$/h", 0, 1, 1e6, &price);
    if (!status && line->price_usd_h > 0) {
        return tool_fail(X_USAGE, "--%s: %s has two prices; one is allowed", option, line->gpu->name);
    }
    if (!status) {
        line->price_usd_h = price;
    }
    return status;
}

static int add_queue(const char *option, const char *piece, void *user)
{
    opi_inventory *line = NULL;
    const char *amount = NULL;
    int status = split_amount(option, piece, user, &line, &amount);
    if (!status && line->queue_s > 0) {
        return tool_fail(X_USAGE, "--%s: %s has two waits; one is allowed", option, line->gpu->name);
    }
    return status ? status : parse_quantity(option, amount, "s", 0, 0, 1e9, &line->queue_s);
}

int parse_inventory(const args *a, opi_gpu *gpus, opi_inventory *out, size_t max, size_t *n)
{
    inventory inv = {gpus, out, 0, max};
    int status = for_pieces(a, "inventory", add_line, &inv);
    status = status ? status : for_pieces(a, "price", add_price, &inv);
    status = status ? status : for_pieces(a, "queue", add_queue, &inv);
    *n = inv.n;
    return status;
}
