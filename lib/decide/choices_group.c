/* SPDX-License-Identifier: Apache-2.0 */
/* Choice situations from rows, and where a choice file contradicts itself. */
#include "decide/choices.h"

#include "base/status.h"
#include "base/text.h"
#include "facts/table_cell.h"

#include <stdlib.h>
#include <string.h>

#define LISTED 6 /* lines named of one situation */

static int compare_x(const double *a, const double *b)
{
    for (size_t k = 0; k < OPI__ATTRIBUTES; k++)
        if (a[k] != b[k])
            return a[k] < b[k] ? -1 : 1;
    return 0;
}

/* By situation; inside it by what was offered, the chosen one first among equals. Lines last: they decide no number. */
static int compare_offers(const void *a, const void *b)
{
    const opi__offer *p = a, *q = b;
    int c = strcmp(p->id, q->id);
    c = c ? c : compare_x(p->x, q->x);
    c = c ? c : q->chosen - p->chosen;
    return c ? c : p->line < q->line ? -1 : p->line > q->line;
}

static int compare_offered(const opi__situation *p, const opi__situation *q)
{
    if (p->n != q->n)
        return p->n < q->n ? -1 : 1;
    for (size_t i = 0; i < p->n; i++) {
        const int c = compare_x(p->offer[i].x, q->offer[i].x);
        if (c)
            return c;
    }
    return 0;
}

static int compare_situations(const void *a, const void *b)
{
    const opi__situation *p = a, *q = b;
    const int c = compare_offered(p, q);
    if (c || p->chosen != q->chosen)
        return c ? c : p->chosen < q->chosen ? -1 : 1;
    return strcmp(p->offer->id, q->offer->id);
}

static uint64_t first_line(const opi__situation *s)
{
    uint64_t line = s->offer[0].line;
    for (size_t i = 1; i < s->n; i++)
        line = s->offer[i].line < line ? s->offer[i].line : line;
    return line;
}

/* "choice "7", lines 3, 4 and 9", in the order of the file; chosen: only the lines marked as taken. */
static void name_situation(char *buf, size_t cap, const opi__situation *s, int chosen)
{
    char shown[48];
    opi__cell_show(shown, sizeof shown, s->offer->id, strlen(s->offer->id));
    size_t total = 0, at;
    for (size_t i = 0; i < s->n; i++)
        total += !chosen || s->offer[i].chosen;
    at = opi__format(buf, cap, "choice \"%s\", line%s", shown, total == 1 ? "" : "s");
    uint64_t last = 0;
    for (size_t k = 0; k < total && k < LISTED; k++) {
        uint64_t line = UINT64_MAX;
        for (size_t i = 0; i < s->n; i++)
            if ((!chosen || s->offer[i].chosen) && s->offer[i].line > last && s->offer[i].line < line)
                line = s->offer[i].line;
        last = line;
        if (at < cap)
            at += opi__format(buf + at, cap - at, "%s%llu", k == 0 ? " " : k + 1 == total ? " and " : ", ",
                              (unsigned long long)line);
    }
    if (total > LISTED && at < cap)
        opi__format(buf + at, cap - at, " and %zu more", total - LISTED);
}

/* The situation of the kind that begins first in the file, and how many there are. */
typedef struct finding {
    const opi__situation *first;
    size_t count, a, b; /* offers of it, where two are concerned */
    const opi__situation *other;
} finding;

static void found(finding *f, const opi__situation *s, size_t a, size_t b, const opi__situation *other)
{
    if (f->count++ == 0 || first_line(s) < first_line(f->first)) {
        f->first = s;
        f->a = a;
        f->b = b;
        f->other = other;
    }
}

static const char *more(const finding *f, char *buf, size_t cap)
{
    buf[0] = 0;
    if (f->count > 1)
        opi__format(buf, cap, " (and %zu more situation%s like it)", f->count - 1, f->count > 2 ? "s" : "");
    return buf;
}

static int32_t refuse_contradictions(const opi__choices *c, opi_error *err)
{
    finding none = {0}, several = {0};
    char where[200], rest[64];
    for (size_t i = 0; i < c->n_situations; i++) {
        const opi__situation *s = &c->situations[i];
        size_t taken = 0;
        for (size_t k = 0; k < s->n; k++)
            taken += s->offer[k].chosen != 0;
        if (taken == 0)
            found(&none, s, 0, 0, NULL);
        if (taken > 1)
            found(&several, s, 0, 0, NULL);
    }
    if (several.count > 0) {
        name_situation(where, sizeof where, several.first, 1);
        return opi__fail(err, OPI_E_FORMAT, -1,
                         "%s: more than one configuration is marked as chosen%s; one row of a situation has chosen = 1", where,
                         more(&several, rest, sizeof rest));
    }
    if (none.count > 0) {
        name_situation(where, sizeof where, none.first, 0);
        return opi__fail(err, OPI_E_FORMAT, -1,
                         "%s: no configuration is marked as chosen%s; leave situations without a choice out", where,
                         more(&none, rest, sizeof rest));
    }
    return OPI_OK;
}

static void find_chosen(opi__situation *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->offer[i].chosen)
            s->chosen = i;
}

/* At least as good in everything and better in something; offers of one situation. */
static int dominates(const opi__offer *p, const opi__offer *q)
{
    int better = 0;
    for (size_t k = 0; k < OPI__ATTRIBUTES; k++) {
        if (p->x[k] < q->x[k])
            return 0;
        better |= p->x[k] > q->x[k];
    }
    return better;
}

static void look_inside(const opi__situation *s, finding *twins, finding *dominated)
{
    const opi__offer *taken = &s->offer[s->chosen];
    int twin = 0, worse = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (i != s->chosen && !twin && compare_x(s->offer[i].x, taken->x) == 0) {
            twin = 1;
            found(twins, s, s->chosen, i, NULL);
        }
        if (!worse && dominates(&s->offer[i], taken)) {
            worse = 1;
            found(dominated, s, s->chosen, i, NULL);
        }
    }
}

/* The same offer twice, another choice: no error (people waver, and that is what the model measures), but said. */
static void look_across(const opi__choices *c, finding *wavering)
{
    for (size_t i = 1; i < c->n_situations; i++) {
        const opi__situation *p = &c->situations[i - 1], *q = &c->situations[i];
        if (compare_offered(p, q) != 0 || compare_x(p->offer[p->chosen].x, q->offer[q->chosen].x) == 0)
            continue;
        const int in_order = first_line(p) < first_line(q);
        found(wavering, in_order ? p : q, 0, 0, in_order ? q : p);
    }
}

static void note_pair(opi__choices *c, const finding *f, const char *code, const char *says)
{
    char shown[48], rest[64];
    if (f->count == 0)
        return;
    opi__cell_show(shown, sizeof shown, f->first->offer->id, strlen(f->first->offer->id));
    opi__choices_note(c, code, says, shown, (unsigned long long)f->first->offer[f->a].line,
                      (unsigned long long)f->first->offer[f->b].line, more(f, rest, sizeof rest));
}

static void note_oddities(opi__choices *c, const finding *single)
{
    finding twins = {0}, dominated = {0}, wavering = {0};
    char where[160], other[160], rest[64];
    for (size_t i = 0; i < c->n_situations; i++)
        look_inside(&c->situations[i], &twins, &dominated);
    look_across(c, &wavering);
    if (single->count > 0) {
        name_situation(where, sizeof where, single->first, 0);
        opi__choices_note(c, "single-alternative", "%s: only one configuration was offered%s: left out, it was no choice",
                          where, more(single, rest, sizeof rest));
    }
    if (wavering.count > 0) {
        name_situation(where, sizeof where, wavering.first, 1);
        name_situation(other, sizeof other, wavering.other, 1);
        opi__choices_note(c, "same-offer-other-choice", "%s, and %s: the same configurations were offered and different ones "
                          "chosen%s: counted as wavering", where, other, more(&wavering, rest, sizeof rest));
    }
    note_pair(c, &dominated, "dominated-choice", "choice \"%s\": line %llu was chosen although line %llu is at least as "
              "good in every column used%s: a column that mattered may be missing");
    note_pair(c, &twins, "identical-alternatives", "choice \"%s\": line %llu was chosen and line %llu is the same in every "
              "column used%s: a column that mattered may be missing");
}

int32_t opi__choices_group(opi__choices *c, opi_error *err)
{
    finding single = {0};
    qsort(c->offers, c->n_offers, sizeof *c->offers, compare_offers);
    for (size_t i = 0; i < c->n_offers; i++)
        c->n_situations += i == 0 || strcmp(c->offers[i].id, c->offers[i - 1].id) != 0;
    c->situations = opi__zalloc(c->ctx, c->n_situations, sizeof *c->situations);
    if (!c->situations)
        return opi__fail_memory(err, c->n_situations * sizeof *c->situations);
    opi__situation *s = c->situations;
    for (size_t i = 0; i < c->n_offers; i++) {
        if (i > 0 && strcmp(c->offers[i].id, c->offers[i - 1].id) != 0)
            s++;
        if (s->n++ == 0)
            s->offer = &c->offers[i];
    }
    const int32_t rc = refuse_contradictions(c, err);
    if (rc)
        return rc;
    size_t kept = 0;
    opi__situation alone = {NULL, 0, 0}; /* named below, once the array is packed */
    for (size_t i = 0; i < c->n_situations; i++) {
        find_chosen(&c->situations[i]);
        if (c->situations[i].n > 1) {
            c->situations[kept++] = c->situations[i];
            continue;
        }
        c->n_single++;
        if (single.count++ == 0 || first_line(&c->situations[i]) < first_line(&alone))
            alone = c->situations[i];
    }
    single.first = &alone;
    c->n_situations = kept;
    qsort(c->situations, kept, sizeof *c->situations, compare_situations);
    note_oddities(c, &single);
    if (kept == 0)
        return opi__fail(err, OPI_E_NODATA, -1, "no choice to learn from: every situation offers one configuration only; the "
                         "rows of one situation share their value of choice");
    return OPI_OK;
}
