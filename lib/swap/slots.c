/* SPDX-License-Identifier: Apache-2.0 */
#include "swap/slots.h"

int32_t opi__grid_slots(const opi__grid *grid)
{
    return grid->dp * grid->tp * grid->pp;
}

int32_t opi__grid_row(const opi__grid *grid)
{
    return grid->tp * grid->pp;
}

int32_t opi__grid_slot(const opi__grid *grid, int32_t dp, int32_t tp, int32_t pp)
{
    return (dp * grid->pp + pp) * grid->tp + tp;
}

void opi__grid_coordinates(const opi__grid *grid, int32_t slot, int32_t *dp, int32_t *tp, int32_t *pp)
{
    *tp = slot % grid->tp;
    *pp = slot / grid->tp % grid->pp;
    *dp = slot / opi__grid_row(grid);
}

void opi__range(uint64_t total, int32_t parts, int32_t index, uint64_t *begin, uint64_t *end)
{
    uint64_t n = (uint64_t)parts, i = (uint64_t)index, share = total / n, rest = total % n;
    *begin = share * i + (i < rest ? i : rest);
    *end = *begin + share + (i < rest);
}

/* The members that hold a slot. Of two that claim the same one the first holds it; the other one and a member with a
 * slot that the grid does not have are nobody's spares. Returns how many slots are held. */
static int32_t hold(int32_t slots, size_t members, const opi__member *member, int32_t *owner)
{
    int32_t held = 0;
    for (int32_t s = 0; s < slots; s++)
        owner[s] = -1;
    for (size_t m = 0; m < members; m++) {
        int32_t slot = member[m].slot;
        if (slot >= 0 && slot < slots && owner[slot] < 0) {
            owner[slot] = (int32_t)m;
            held++;
        }
    }
    return held;
}

/* The rack of most members that hold slots [begin, end); ties: the lowest number; -1 when nobody does. Rack by rack in
 * rising order, which needs no memory: a row lies in few racks. */
static int32_t row_rack(const opi__member *member, const int32_t *owner, int32_t begin, int32_t end)
{
    int32_t best = -1, most = 0, counted = 0, living = 0;
    int64_t last = -1;
    for (int32_t s = begin; s < end; s++)
        living += owner[s] >= 0;
    while (living - counted > most) {
        int64_t rack = INT64_MAX;
        int32_t count = 0;
        for (int32_t s = begin; s < end; s++) {
            int32_t r = owner[s] < 0 ? -1 : member[owner[s]].domain.rack;
            if (r > last && r < rack) {
                rack = r;
                count = 0;
            }
            count += r == rack;
        }
        if (rack == INT64_MAX)
            break;
        if (count > most) {
            most = count;
            best = (int32_t)rack;
        }
        counted += count;
        last = rack;
    }
    return best;
}

/* Which spares are given away: one bit for each of the first ones, so that assignment needs no memory from outside;
 * those behind are looked up among the slots served. */
#define MARKED 65536

typedef struct pool {
    const opi__member *member;
    const uint8_t *shy;
    const int32_t *owner;
    size_t begin, end;   /* members between which the spares are */
    int32_t first, last; /* slots between which the served ones are */
    uint64_t given[MARKED / 64];
} pool;

static int is_given(const pool *p, size_t ordinal, size_t m)
{
    if (ordinal < MARKED)
        return (p->given[ordinal / 64] >> ordinal % 64 & 1) != 0;
    for (int32_t s = p->first; s < p->last; s++) {
        if (p->owner[s] == (int32_t)m)
            return 1;
    }
    return 0;
}

/* The best spare for a slot whose row lives in `rack`, marked as given; -1 when none is left. */
static int32_t take_spare(pool *p, int32_t rack)
{
    size_t best = 0, best_ordinal = 0, ordinal = 0;
    int best_rank = 4;
    for (size_t m = p->begin; m < p->end && best_rank > 0; m++) {
        if (p->member[m].slot >= 0)
            continue;
        int rank = (p->shy && p->shy[m] ? 2 : 0) + (rack >= 0 && p->member[m].domain.rack != rack);
        if (rank < best_rank && !is_given(p, ordinal, m)) {
            best_rank = rank;
            best = m;
            best_ordinal = ordinal;
        }
        ordinal++;
    }
    if (best_rank == 4)
        return -1;
    if (best_ordinal < MARKED)
        p->given[best_ordinal / 64] |= (uint64_t)1 << best_ordinal % 64;
    return (int32_t)best;
}

static void find_spares(pool *p, size_t members)
{
    p->begin = members;
    p->end = 0;
    for (size_t m = 0; m < members; m++) {
        if (p->member[m].slot < 0) {
            p->begin = m < p->begin ? m : p->begin;
            p->end = m + 1;
        }
    }
    for (size_t i = 0; i < MARKED / 64; i++)
        p->given[i] = 0;
}

int32_t opi__assign(const opi__grid *grid, size_t members, const opi__member *member, const uint8_t *shy,
                    int32_t *owner)
{
    int32_t slots = opi__grid_slots(grid), row = opi__grid_row(grid), rack = -1, rack_of = -1;
    int32_t lost = slots - hold(slots, members, member, owner), unserved = 0;
    if (!lost)
        return 0;
    pool p;
    p.member = member;
    p.shy = shy;
    p.owner = owner;
    p.first = p.last = -1;
    find_spares(&p, members);
    for (int32_t s = 0; s < slots; s++) {
        if (owner[s] >= 0)
            continue;
        if (rack_of != s / row) {
            rack_of = s / row;
            rack = row_rack(member, owner, rack_of * row, (rack_of + 1) * row);
        }
        p.first = p.first < 0 ? s : p.first;
        p.last = s;
        owner[s] = take_spare(&p, rack);
        if (owner[s] < 0) {
            unserved++;
        } else if (rack < 0) {
            rack = member[owner[s]].domain.rack; /* a row of which nobody is left gathers around its first spare */
        }
    }
    return unserved;
}

/* New row of each old one in order[], -1 for the rows given up: the `rows` with the fewest gaps, the lowest of equals.
 * order[] comes in with the gaps of each row. */
static void keep_rows(const opi__grid *grid, int32_t rows, int32_t *from_row, int32_t *order)
{
    int32_t limit = -1, below = 0, within = 0;
    do { /* the number of gaps that the worst kept row has */
        below = within;
        limit++;
        for (int32_t r = 0; r < grid->dp; r++)
            within += order[r] == limit;
    } while (within < rows);
    int32_t equals = rows - below, next = 0;
    for (int32_t r = 0; r < grid->dp; r++) {
        int keep = order[r] < limit || (order[r] == limit && equals-- > 0);
        if (keep)
            from_row[next] = r;
        order[r] = keep ? next++ : -1;
    }
}

void opi__assign_fewer(const opi__grid *grid, size_t members, const opi__member *member, int32_t *owner,
                       int32_t *from_row, int32_t *rows, int32_t *order)
{
    int32_t slots = opi__grid_slots(grid), row = opi__grid_row(grid);
    int64_t usable = hold(slots, members, member, owner);
    for (size_t m = 0; m < members; m++)
        usable += member[m].slot < 0;
    int32_t keep = usable / row < grid->dp ? (int32_t)(usable / row) : grid->dp;
    *rows = keep;
    if (keep == 0)
        return;
    for (int32_t r = 0; r < grid->dp; r++) {
        order[r] = 0;
        for (int32_t s = r * row; s < (r + 1) * row; s++)
            order[r] += owner[s] < 0;
    }
    keep_rows(grid, keep, from_row, order);
    for (int32_t r = 0; r < grid->dp; r++) {
        for (int32_t i = 0; i < row && order[r] >= 0; i++)
            owner[order[r] * row + i] = owner[r * row + i];
    }
    int32_t gap = 0;
    for (size_t m = 0; m < members && gap < keep * row; m++) {
        int32_t slot = member[m].slot;
        if (slot >= slots || (slot >= 0 && order[slot / row] >= 0))
            continue;
        while (gap < keep * row && owner[gap] >= 0)
            gap++;
        if (gap < keep * row)
            owner[gap++] = (int32_t)m;
    }
}
