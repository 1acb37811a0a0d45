/* SPDX-License-Identifier: Apache-2.0 */
#include "args.h"

#include "out.h"
#include "tool.h"

#include <ctype.h>
#include <string.h>

#define LONGEST 64

size_t args_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned char row[3][LONGEST + 1];
    if (n > LONGEST || m > LONGEST) {
        return LONGEST + 1;
    }
    unsigned char *before = row[0], *last = row[1], *now = row[2];
    for (size_t j = 0; j <= m; j++) {
        last[j] = (unsigned char)j;
    }
    memset(before, 0, sizeof row[0]);
    for (size_t i = 1; i <= n; i++) {
        now[0] = (unsigned char)i;
        for (size_t j = 1; j <= m; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            unsigned best = last[j - 1] + (x != y);
            best = last[j] + 1u < best ? last[j] + 1u : best;
            best = now[j - 1] + 1u < best ? now[j - 1] + 1u : best;
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) && y == tolower((unsigned char)a[i - 2]) &&
                before[j - 2] + 1u < best) {
                best = before[j - 2] + 1u;
            }
            now[j] = (unsigned char)best;
        }
        unsigned char *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[m];
}

static const opt_def *find(const verb *v, const char *name, size_t n)
{
    for (const opt_def *d = v->options; d->name; d++) {
        if (strlen(d->name) == n && memcmp(d->name, name, n) == 0) {
            return d;
        }
    }
    return NULL;
}

static int unknown(const verb *v, const char *given, size_t n)
{
    char name[LONGEST + 1];
    const char *best = NULL;
    size_t least = LONGEST + 1;
    snprintf(name, sizeof name, "%.*s", (int)(n < LONGEST ? n : LONGEST), given);
    for (const opt_def *d = v->options; d->name; d++) {
        size_t far = args_distance(name, d->name);
        /* A prefix is the commonest slip ("--conc"): it wins over everything but a closer spelling. */
        if (n >= 2 && strncmp(d->name, name, n) == 0 && far > 1) {
            far = 1;
        }
        if (far < least) {
            least = far;
            best = d->name;
        }
    }
    if (best && least <= 1 + n / 3) {
        return tool_fail(X_USAGE, "unknown option '--%s'; did you mean '--%s'? ('omnipilot %s --help' lists them)",
                         name, best, v->name);
    }
    return tool_fail(X_USAGE, "unknown option '--%s' ('omnipilot %s --help' lists the options)", name, v->name);
}

static int add(args *out, const opt_def *d, const char *value)
{
    if (!d->repeat && args_has(out, d->name)) {
        const char *old = args_get(out, d->name);
        return old ? tool_fail(X_USAGE, "--%s is given twice ('%s' and '%s'); once is allowed", d->name, old, value)
                   : tool_fail(X_USAGE, "--%s is given twice; once is allowed", d->name);
    }
    if (out->n_given == ARGS_MAX) {
        return tool_fail(X_USAGE, "more than %d options", ARGS_MAX);
    }
    out->given[out->n_given].def = d;
    out->given[out->n_given++].value = value;
    return 0;
}

/* One "--…" argument; `next` is the argument after it or NULL. *used is set when it was consumed as the value. */
static int take_option(const verb *v, const char *arg, const char *next, int *used, args *out)
{
    const char *name = arg + 2, *equals = strchr(name, '=');
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    const opt_def *d = find(v, name, n);
    *used = 0;
    if (n == 4 && memcmp(name, "help", 4) == 0 && !equals) {
        out->help = 1;
        return 0;
    }
    if (!d) {
        return unknown(v, name, n);
    }
    if (!d->value) {
        return equals ? tool_fail(X_USAGE, "--%s takes no value (given '%s')", d->name, equals + 1) : add(out, d, NULL);
    }
    const char *value = equals ? equals + 1 : next;
    if (!value || (!equals && strncmp(value, "--", 2) == 0)) {
        return tool_fail(X_USAGE, "--%s needs a value (%s)", d->name, d->value);
    }
    if (!*value) {
        return tool_fail(X_USAGE, "--%s: the value is empty (%s is needed)", d->name, d->value);
    }
    *used = !equals;
    return add(out, d, value);
}

int args_parse(const verb *v, int argc, char **argv, args *out)
{
    int only_operands = 0;
    memset(out, 0, sizeof *out);
    out->verb = v;
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];
        int used = 0, status;
        if (!only_operands && strcmp(arg, "--") == 0) {
            only_operands = 1;
        } else if (!only_operands && strcmp(arg, "-h") == 0) {
            out->help = 1;
        } else if (!only_operands && strncmp(arg, "--", 2) == 0) {
            status = take_option(v, arg, i + 1 < argc ? argv[i + 1] : NULL, &used, out);
            if (status) {
                return status;
            }
            i += used;
        } else if (!only_operands && arg[0] == '-' && arg[1]) {
            return tool_fail(X_USAGE, "unknown option '%s'; options start with two dashes ('omnipilot %s --help')", arg,
                             v->name);
        } else if (out->n_operands >= v->max_operands || out->n_operands == ARGS_MAX) {
            return tool_fail(X_USAGE, "unexpected argument '%s' ('omnipilot %s --help' shows the usage)", arg, v->name);
        } else {
            out->operands[out->n_operands++] = arg;
        }
    }
    return 0;
}

void args_help(const verb *v)
{
    size_t widest = 0;
    char left[96];
    for (const opt_def *d = v->options; d->name; d++) {
        size_t n = strlen(d->name) + (d->value ? strlen(d->value) + 1 : 0);
        widest = n > widest ? n : widest;
    }
    out_puts("Usage: ");
    for (const char *line = v->usage; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char text[256]; /* a verb may have several forms, a line each */
        snprintf(text, sizeof text, "omnipilot %s %.*s", v->name, (int)strcspn(line, "\n"), line);
        out_puts(line == v->usage ? "" : "       ");
        out_wrap(7, 14, text);
    }
    out_puts("\n");
    out_wrap(0, 0, v->about);
    out_puts("\nOptions:\n");
    for (const opt_def *d = v->options; d->name; d++) {
        snprintf(left, sizeof left, "%s%s%s", d->name, d->value ? " " : "", d->value ? d->value : "");
        out_printf("  --%-*s  ", (int)widest, left);
        out_wrap(6 + widest, 6 + widest, d->help);
    }
    out_printf("  -h, --help%*s  this text\n", (int)(widest > 8 ? widest - 8 : 0), "");
    out_printf("\nExamples:\n%s", v->examples);
}

const char *args_nth(const args *a, const char *name, size_t nth)
{
    for (size_t i = 0; i < a->n_given; i++) {
        if (strcmp(a->given[i].def->name, name) == 0 && nth-- == 0) {
            return a->given[i].value;
        }
    }
    return NULL;
}

size_t args_count(const args *a, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_given; i++) {
        n += strcmp(a->given[i].def->name, name) == 0;
    }
    return n;
}

int args_has(const args *a, const char *name)
{
    return args_count(a, name) > 0;
}

const char *args_get(const args *a, const char *name)
{
    return args_nth(a, name, 0);
}

int args_require(const args *a, const char *name, const char *why)
{
    if (args_has(a, name)) {
        return 0;
    }
    return tool_fail(X_USAGE, "--%s is missing: %s", name, why);
}

int args_exclude(const args *a, const char *one, const char *other)
{
    if (args_has(a, one) && args_has(a, other)) {
        return tool_fail(X_USAGE, "--%s and --%s cannot be used together", one, other);
    }
    return 0;
}
