/* SPDX-License-Identifier: Apache-2.0 */
/* Slots are put in the order of their racks and nodes, and copy k of the slot at position p goes to position
 * p + k * n / (replicas + 1), round and round: every slot keeps exactly `replicas` copies for others, and a slot and its
 * copies are in different racks whenever no rack has more than n / (replicas + 1) slots (the same for nodes). Where a
 * node or a rack is larger than that, its copies are moved one by one to where there is room. Another node is worth any
 * load, since one lost node would take slot and copy together; another rack is worth one copy more than `replicas`. */
#include "swap/placement.h"

size_t opi__place_scratch(size_t slots)
{
    return 5 * slots + 2;
}

/* Everything is told by position in the sorted order. A rack is a run of positions, known by where it ends. */
typedef struct layout {
    int32_t n, replicas, copies; /* copies: as many of the replicas as have a place, at most n - 1 */
    int32_t *order;              /* slot at each position */
    int32_t *rack_end, *node_end;
    int32_t *load;               /* copies kept */
    int32_t *room;               /* next position with room, itself if it has: union-find with path halving */
    int32_t *holder;             /* the result, as positions until the end */
} layout;

/* From a slot to its copy k, in positions. */
static int32_t shift_of(int32_t n, int32_t copies, int32_t k)
{
    return (int32_t)((int64_t)n * (k + 1) / (copies + 1));
}

static int is_before(const opi__domain *a, const opi__domain *b)
{
    return a->rack != b->rack ? a->rack < b->rack : a->node < b->node;
}

#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)

/* One pass of a stable radix sort by a digit of the nodes or racks. 0: all digits are the same, nothing was moved. */
static int sort_pass(int32_t n, const opi__domain *domain, int by_rack, int shift, const int32_t *from, int32_t *to)
{
    int32_t start[DIGITS] = {0};
    for (int32_t i = 0; i < n; i++)
        start[(uint32_t)(by_rack ? domain[i].rack : domain[i].node) >> shift & (DIGITS - 1)]++;
    if (start[(uint32_t)(by_rack ? domain[0].rack : domain[0].node) >> shift & (DIGITS - 1)] == n)
        return 0;
    for (int32_t i = 0, sum = 0; i < DIGITS; i++) {
        int32_t count = start[i];
        start[i] = sum;
        sum += count;
    }
    for (int32_t i = 0; i < n; i++) {
        const opi__domain *d = &domain[from[i]];
        to[start[(uint32_t)(by_rack ? d->rack : d->node) >> shift & (DIGITS - 1)]++] = from[i];
    }
    return 1;
}

static void sort_slots(layout *l, const opi__domain *domain)
{
    int sorted = 1;
    for (int32_t i = 0; i < l->n; i++) {
        l->order[i] = i;
        sorted = sorted && (i == 0 || !is_before(&domain[i], &domain[i - 1]));
    }
    for (int pass = 0; !sorted && pass < 6; pass++)
        if (sort_pass(l->n, domain, pass >= 3, pass % 3 * DIGIT_BITS, l->order, l->room)) {
            int32_t *other = l->order;
            l->order = l->room;
            l->room = other;
        }
    for (int32_t p = l->n - 1; p >= 0; p--) {
        const opi__domain *here = &domain[l->order[p]], *next = p + 1 < l->n ? &domain[l->order[p + 1]] : here;
        int last = p + 1 == l->n;
        l->rack_end[p] = last || here->rack != next->rack ? p + 1 : l->rack_end[p + 1];
        l->node_end[p] = last || here->rack != next->rack || here->node != next->node ? p + 1 : l->node_end[p + 1];
    }
}

static int32_t find_room(int32_t *room, int32_t p)
{
    while (room[p] != p) {
        room[p] = room[room[p]];
        p = room[p];
    }
    return p;
}

/* Whether position q is in a domain of the slot at p or of one of its copies other than k; *end: where that domain's
 * run ends. */
static int conflicts(const layout *l, const int32_t *domain_end, int32_t p, int32_t k, int32_t q, int32_t *end)
{
    const int32_t *held = l->holder + (size_t)l->order[p] * (size_t)l->replicas;
    *end = domain_end[q];
    if (domain_end[p] == *end)
        return 1;
    for (int32_t c = 0; c < l->copies; c++)
        if (c != k && domain_end[held[c]] == *end)
            return 1;
    return 0;
}

/* A position for copy k of the slot at p with no domain in common, from *cursor on; -1 when there is none. With `any`
 * full positions count too. Each domain in conflict is passed in one jump. */
static int32_t search(layout *l, const int32_t *domain_end, int32_t p, int32_t k, int any, int32_t *cursor)
{
    int32_t q = *cursor, wrapped = 0;
    for (int32_t tries = 0; tries < 2 * (l->copies + 3); tries++) {
        int32_t end;
        q = any || q == l->n ? q : find_room(l->room, q);
        if (q == l->n) {
            if (wrapped++)
                return -1;
            q = 0;
            continue;
        }
        if (!conflicts(l, domain_end, p, k, q, &end)) {
            *cursor = q + 1;
            return q;
        }
        q = end;
    }
    return -1;
}

static void move(layout *l, int32_t p, int32_t k, int32_t q)
{
    int32_t *held = l->holder + (size_t)l->order[p] * (size_t)l->replicas;
    l->load[held[k]]--; /* a full position that gets room again is not looked at again: it is in a crowded domain */
    held[k] = q;
    if (++l->load[q] > l->replicas)
        l->room[q] = q + 1;
}

/* Moves what shares a node, then what shares a rack. */
static void repair(layout *l)
{
    int32_t cursor[3] = {0, 0, 0}, q, end;
    for (int racks = 0; racks < 2; racks++) {
        const int32_t *domain_end = racks ? l->rack_end : l->node_end;
        for (int32_t p = 0; p < l->n; p++) {
            const int32_t *held = l->holder + (size_t)l->order[p] * (size_t)l->replicas;
            for (int32_t k = 0; k < l->copies; k++) {
                if (!conflicts(l, domain_end, p, k, held[k], &end))
                    continue;
                q = search(l, l->rack_end, p, k, 0, &cursor[0]);
                q = q < 0 && !racks ? search(l, l->node_end, p, k, 0, &cursor[1]) : q;
                q = q < 0 && !racks ? search(l, l->node_end, p, k, 1, &cursor[2]) : q;
                if (q >= 0)
                    move(l, p, k, q);
            }
        }
    }
}

/* Positions become slots, and the result is judged. */
static void finish(layout *l, opi__placement_quality *quality)
{
    int64_t missing = (int64_t)l->n * (l->replicas - l->copies);
    opi__placement_quality total = {0, 0, 0, missing < INT32_MAX ? (int32_t)missing : INT32_MAX};
    for (int32_t p = 0; p < l->n; p++) {
        int32_t *held = l->holder + (size_t)l->order[p] * (size_t)l->replicas;
        for (int32_t k = 0; k < l->copies; k++) {
            int node = l->node_end[p] == l->node_end[held[k]], rack = l->rack_end[p] == l->rack_end[held[k]];
            for (int32_t c = 0; c < k; c++) {
                node |= l->node_end[held[c]] == l->node_end[held[k]];
                rack |= l->rack_end[held[c]] == l->rack_end[held[k]];
            }
            total.same_node += node;
            total.same_rack += rack;
        }
        total.most = l->load[p] > total.most ? l->load[p] : total.most;
    }
    for (int32_t s = 0; s < l->n; s++)
        for (int32_t k = 0; k < l->copies; k++) {
            int32_t *held = l->holder + (size_t)s * (size_t)l->replicas + k;
            *held = l->order[*held];
        }
    if (quality)
        *quality = total;
}

void opi__place(size_t slots, const opi__domain *domain, int32_t replicas, int32_t *scratch, int32_t *holder,
                opi__placement_quality *quality)
{
    int32_t n = (int32_t)slots, crowded = 0;
    int32_t copies = replicas < n ? replicas : n > 0 ? n - 1 : 0;
    layout l = {n, replicas, copies, scratch, scratch + slots + 1, scratch + 2 * slots + 1, scratch + 3 * slots + 1,
                scratch + 4 * slots + 1, holder};
    sort_slots(&l, domain);
    int32_t even = n / (copies + 1);
    for (int32_t k = 0; k < replicas; k++) {
        int32_t shift = shift_of(n, copies, k);
        for (int32_t p = 0; p < n; p++)
            holder[(size_t)l.order[p] * (size_t)replicas + (size_t)k] =
                k >= copies ? -1 : p < n - shift ? p + shift : p - (n - shift);
    }
    for (int32_t p = 0; p < n; p++)
        l.load[p] = copies;
    for (int32_t p = 0; p < n; p = l.rack_end[p])
        crowded |= l.rack_end[p] - p > even;
    if (crowded) {
        for (int32_t p = 0; p <= n; p++)
            l.room[p] = p;
        repair(&l);
    }
    finish(&l, quality);
}

/* ---- few slots ---- */

/* How many of the touched slots, in sorted order, are not behind slot i. */
static size_t not_behind(const opi__domain *domain, const int32_t *touched, size_t m, int32_t i)
{
    size_t lo = 0, hi = m;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const opi__domain *there = &domain[touched[mid]];
        int behind = is_before(&domain[i], there) || (!is_before(there, &domain[i]) && i < touched[mid]);
        hi = behind ? mid : hi;
        lo = behind ? lo : mid + 1;
    }
    return lo;
}

/* Positions of the touched slots: how many slots sort before each. */
static void find_ranks(size_t slots, const opi__domain *domain, size_t m, int32_t *touched, int32_t *rank)
{
    for (size_t a = 1; a < m; a++) { /* runs of slots on a node: nearly sorted */
        int32_t x = touched[a];
        size_t b = a;
        for (; b > 0; b--) {
            const opi__domain *there = &domain[touched[b - 1]];
            if (is_before(there, &domain[x]) || (!is_before(&domain[x], there) && touched[b - 1] < x))
                break;
            touched[b] = touched[b - 1];
        }
        touched[b] = x;
    }
    for (size_t a = 0; a < m; a++)
        rank[a] = 0;
    for (size_t i = 0; i < slots;) {
        size_t end = i + 1, first = not_behind(domain, touched, m, (int32_t)i);
        while (end < slots && domain[end].node == domain[i].node && domain[end].rack == domain[i].rack)
            end++; /* neighbors on one node are asked for once */
        size_t last = end - i > 1 ? not_behind(domain, touched, m, (int32_t)end - 1) : first;
        if (first == last && first < m)
            rank[first] += (int32_t)(end - i);
        for (size_t j = i; j < end && first != last; j++) {
            size_t at = not_behind(domain, touched, m, (int32_t)j);
            if (at < m)
                rank[at]++;
        }
        i = end;
    }
    for (size_t a = 1; a < m; a++)
        rank[a] += rank[a - 1];
}

int opi__place_lost(size_t slots, const opi__domain *domain, int32_t replicas, const uint8_t *gone, size_t m,
                    int32_t *touched, int32_t *rank)
{
    int32_t n = (int32_t)slots, copies = replicas < n ? replicas : n - 1;
    find_ranks(slots, domain, m, touched, rank);
    for (size_t a = 0; a < m; a++) {
        int alive = !(gone[touched[a]] & 1);
        for (int32_t k = 0; k < copies && !alive; k++) {
            int32_t shift = shift_of(n, copies, k), at = rank[a] < n - shift ? rank[a] + shift : rank[a] - (n - shift);
            size_t lo = 0, hi = m;
            while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                lo = rank[mid] < at ? mid + 1 : lo;
                hi = rank[mid] < at ? hi : mid;
            }
            alive = lo == m || rank[lo] != at || !(gone[touched[lo]] & 2);
        }
        if (!alive)
            return 1;
    }
    return 0;
}
