/* SPDX-License-Identifier: Apache-2.0 */
/* Slots and placement against plain slow answers written here a second time, on random worlds. */
#include "base/rng.h"
#include "swap/placement.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

Suite *suite_slots(void);

#define WORLD 96

typedef struct world {
    opi__grid grid;
    size_t members;
    opi__member member[WORLD];
    uint8_t shy[WORLD];
    int32_t owner[WORLD], from_row[WORLD], order[WORLD];
} world;

/* A grid whose members are numbered anyhow, some of them dead, with spares. */
static void make_world(world *w, opi__rng *r)
{
    do {
        w->grid.dp = 1 + (int32_t)opi__rng_below(r, 6);
        w->grid.tp = 1 + (int32_t)opi__rng_below(r, 4);
        w->grid.pp = 1 + (int32_t)opi__rng_below(r, 3);
    } while (opi__grid_slots(&w->grid) > 64);
    int32_t per_node = 1 + (int32_t)opi__rng_below(r, 8), per_rack = 1 + (int32_t)opi__rng_below(r, 3);
    int32_t alive = 1 + (int32_t)opi__rng_below(r, 4), spares = (int32_t)opi__rng_below(r, 20);
    w->members = 0;
    for (int32_t i = 0; i < opi__grid_slots(&w->grid) + spares; i++) {
        int spare = i >= opi__grid_slots(&w->grid);
        if (!spare && opi__rng_below(r, 4) >= (uint64_t)alive)
            continue;
        opi__member *m = &w->member[w->members];
        m->slot = spare ? -1 : i;
        m->domain.node = i / per_node;
        m->domain.rack = m->domain.node / per_rack;
        w->shy[w->members++] = (uint8_t)(opi__rng_below(r, 3) == 0);
    }
    for (size_t i = w->members; i > 1; i--) {
        size_t j = (size_t)opi__rng_below(r, i);
        opi__member swap = w->member[j];
        w->member[j] = w->member[i - 1];
        w->member[i - 1] = swap;
    }
}

START_TEST(grid_and_range)
{
    opi__grid g = {3, 4, 2};
    ck_assert_int_eq(opi__grid_slots(&g), 24);
    ck_assert_int_eq(opi__grid_row(&g), 8);
    int32_t slot = 0;
    for (int32_t dp = 0; dp < 3; dp++)
        for (int32_t pp = 0; pp < 2; pp++)
            for (int32_t tp = 0; tp < 4; tp++, slot++) {
                int32_t d, t, p;
                ck_assert_int_eq(opi__grid_slot(&g, dp, tp, pp), slot);
                opi__grid_coordinates(&g, slot, &d, &t, &p);
                ck_assert(d == dp && t == tp && p == pp);
            }
    const uint64_t totals[] = {0, 1, 7, 8, 9, 1000003, UINT64_MAX};
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++)
        for (int32_t parts = 1; parts < 12; parts++) {
            uint64_t at = 0, begin, end, longest = 0, shortest = UINT64_MAX;
            for (int32_t k = 0; k < parts; k++) {
                opi__range(totals[i], parts, k, &begin, &end);
                ck_assert_uint_eq(begin, at);
                ck_assert(end - begin <= (k ? longest : UINT64_MAX)); /* the first ones take the rest */
                longest = k ? longest : end - begin;
                shortest = end - begin;
                at = end;
            }
            ck_assert_uint_eq(at, totals[i]);
            ck_assert(longest - shortest <= 1);
        }
}
END_TEST

/* The rules of slots.h, word by word. */
static int32_t plain_rack(const world *w, const int32_t *owner, int32_t row)
{
    int32_t size = opi__grid_row(&w->grid), best = -1, most = 0;
    for (int32_t rack = 0; rack < WORLD; rack++) {
        int32_t count = 0;
        for (int32_t s = row * size; s < (row + 1) * size; s++)
            count += owner[s] >= 0 && w->member[owner[s]].domain.rack == rack;
        if (count > most) {
            most = count;
            best = rack;
        }
    }
    return best;
}

static int32_t plain_assign(const world *w, const uint8_t *shy, int32_t *owner)
{
    int32_t slots = opi__grid_slots(&w->grid), row = opi__grid_row(&w->grid), unserved = 0;
    int32_t living[WORLD];
    int used[WORLD] = {0};
    for (int32_t s = 0; s < slots; s++) {
        living[s] = -1;
        for (size_t m = 0; m < w->members; m++)
            if (w->member[m].slot == s)
                living[s] = (int32_t)m;
        owner[s] = living[s];
    }
    for (int32_t s = 0; s < slots; s++) {
        if (living[s] >= 0)
            continue;
        int32_t rack = plain_rack(w, living, s / row), best = -1, best_key = INT32_MAX;
        for (int32_t t = s / row * row; t < s && rack < 0; t++)
            rack = owner[t] >= 0 ? w->member[owner[t]].domain.rack : -1;
        for (size_t m = 0; m < w->members; m++) {
            int32_t key = (shy && shy[m] ? 20000 : 0) + (w->member[m].domain.rack != rack && rack >= 0 ? 10000 : 0) +
                          (int32_t)m;
            if (w->member[m].slot < 0 && !used[m] && key < best_key) {
                best_key = key;
                best = (int32_t)m;
            }
        }
        owner[s] = best;
        if (best >= 0)
            used[best] = 1;
        else
            unserved++;
    }
    return unserved;
}

START_TEST(assign_as_the_rules_say)
{
    opi__rng r;
    opi__rng_seed(&r, 1);
    world w;
    int32_t plain[WORLD], full = 0, short_of = 0;
    for (int i = 0; i < 4000; i++) {
        make_world(&w, &r);
        const uint8_t *shy = i % 5 ? w.shy : NULL;
        int32_t unserved = plain_assign(&w, shy, plain);
        ck_assert_int_eq(opi__assign(&w.grid, w.members, w.member, shy, w.owner), unserved);
        ck_assert_mem_eq(w.owner, plain, sizeof(int32_t) * (size_t)opi__grid_slots(&w.grid));
        full += unserved == 0;
        short_of += unserved > 0;
    }
    ck_assert(full > 500 && short_of > 500); /* both kinds of world were seen */
}
END_TEST

START_TEST(assign_prefers)
{
    /* Two nodes of two in rack 0, spares on nodes 2 (rack 0) and 3 (rack 1). Node 1 dies with slots 2 and 3. */
    opi__grid g = {2, 2, 1};
    opi__member m[] = {{0, {0, 0}}, {1, {0, 0}}, {-1, {3, 1}}, {-1, {3, 1}}, {-1, {2, 0}}};
    uint8_t shy[5] = {0};
    int32_t owner[4];
    ck_assert_int_eq(opi__assign(&g, 5, m, shy, owner), 0);
    ck_assert(owner[0] == 0 && owner[1] == 1 && owner[2] == 2 && owner[3] == 3); /* an empty row stays together */
    opi__grid one = {1, 4, 1};
    ck_assert_int_eq(opi__assign(&one, 5, m, shy, owner), 0);
    ck_assert(owner[2] == 4 && owner[3] == 2); /* the row's rack first */
    shy[4] = 1;
    ck_assert_int_eq(opi__assign(&one, 5, m, shy, owner), 0);
    ck_assert(owner[2] == 2 && owner[3] == 3); /* a node where somebody died comes last, rack or no rack */
    ck_assert_int_eq(opi__assign(&one, 3, m, NULL, owner), 1);
    ck_assert(owner[2] == 2 && owner[3] == -1);
    m[1].slot = 0; /* claimed twice: the first one holds it, the second is no spare */
    ck_assert_int_eq(opi__assign(&one, 3, m, NULL, owner), 2);
    ck_assert(owner[0] == 0 && owner[1] == 2 && owner[2] == -1 && owner[3] == -1);
}
END_TEST

START_TEST(assign_many_spares)
{
    /* More spares than are marked by bits, and the best ones are the last. */
    enum { SPARES = 70000, SLOTS = 16 };
    opi__grid g = {2, 8, 1};
    opi__member *m = calloc(SPARES, sizeof *m);
    uint8_t *shy = calloc(SPARES, 1);
    int32_t owner[SLOTS];
    ck_assert(m && shy);
    for (int32_t i = 0; i < SPARES; i++) {
        m[i] = (opi__member){-1, {i / 8, 0}};
        shy[i] = i < SPARES - 12;
    }
    ck_assert_int_eq(opi__assign(&g, SPARES, m, shy, owner), 0);
    for (int32_t s = 0; s < SLOTS; s++)
        ck_assert_int_eq(owner[s], s < 12 ? SPARES - 12 + s : s - 12);
    free(m);
    free(shy);
}
END_TEST

static void check_fewer(world *w)
{
    int32_t slots = opi__grid_slots(&w->grid), row = opi__grid_row(&w->grid), rows = -1;
    int32_t gaps[WORLD] = {0}, alive[WORLD], used[WORLD] = {0};
    for (int32_t s = 0; s < slots; s++)
        alive[s] = -1;
    for (size_t m = 0; m < w->members; m++)
        if (w->member[m].slot >= 0)
            alive[w->member[m].slot] = (int32_t)m;
    for (int32_t s = 0; s < slots; s++)
        gaps[s / row] += alive[s] < 0;
    opi__assign_fewer(&w->grid, w->members, w->member, w->owner, w->from_row, &rows, w->order);
    int32_t want = (int32_t)w->members / row;
    ck_assert_int_eq(rows, want < w->grid.dp ? want : w->grid.dp);
    int kept[WORLD] = {0};
    int32_t last_free = -1;
    for (int32_t n = 0; n < rows; n++) {
        ck_assert(w->from_row[n] >= 0 && w->from_row[n] < w->grid.dp && (!n || w->from_row[n] > w->from_row[n - 1]));
        kept[w->from_row[n]] = 1;
    }
    for (int32_t a = 0; a < w->grid.dp; a++)
        for (int32_t b = 0; b < w->grid.dp; b++) /* no row given up has fewer gaps, or as few and a lower number */
            ck_assert(!(kept[a] && !kept[b] && (gaps[b] < gaps[a] || (gaps[b] == gaps[a] && b < a))));
    for (int32_t n = 0; n < rows; n++)
        for (int32_t i = 0; i < row; i++) {
            int32_t m = w->owner[n * row + i], old = alive[w->from_row[n] * row + i];
            ck_assert(m >= 0 && (size_t)m < w->members && !used[m]++);
            if (old >= 0) {
                ck_assert_int_eq(m, old); /* who is alive stays */
            } else {
                ck_assert(w->member[m].slot < 0 || !kept[w->member[m].slot / row]);
                ck_assert_int_gt(m, last_free); /* lowest index first */
                last_free = m;
            }
        }
}

START_TEST(fewer_rows)
{
    opi__rng r;
    opi__rng_seed(&r, 2);
    world w;
    for (int i = 0; i < 4000; i++) {
        make_world(&w, &r);
        check_fewer(&w);
    }
    opi__grid g = {2, 2, 1};
    opi__member m = {1, {0, 0}};
    int32_t rows = -1;
    opi__assign_fewer(&g, 1, &m, w.owner, w.from_row, &rows, w.order);
    ck_assert_int_eq(rows, 0); /* one process is not a row of two */
}
END_TEST

/* ---- placement ---- */

typedef struct placed {
    int32_t *holder, *scratch;
    opi__placement_quality q;
} placed;

static void place(placed *p, size_t slots, const opi__domain *domain, int32_t replicas)
{
    p->scratch = malloc(opi__place_scratch(slots) * sizeof *p->scratch);
    p->holder = malloc((slots * (size_t)replicas + 1) * sizeof *p->holder);
    ck_assert(p->scratch && p->holder);
    p->holder[slots * (size_t)replicas] = 12345; /* nothing behind the end is written */
    opi__place(slots, domain, replicas, p->scratch, p->holder, &p->q);
    ck_assert_int_eq(p->holder[slots * (size_t)replicas], 12345);
}

static void unplace(placed *p)
{
    free(p->scratch);
    free(p->holder);
}

/* Every copy looked at again; the quality must be that of the holders. */
static void check_placement(const placed *p, size_t slots, const opi__domain *domain, int32_t replicas)
{
    int32_t *load = calloc(slots + 1, sizeof *load), most = 0, node = 0, rack = 0, missing = 0;
    ck_assert_ptr_nonnull(load);
    for (size_t s = 0; s < slots; s++) {
        const int32_t *h = p->holder + s * (size_t)replicas;
        for (int32_t k = 0; k < replicas; k++) {
            if (h[k] < 0) {
                missing++;
                continue;
            }
            ck_assert((size_t)h[k] < slots && (size_t)h[k] != s);
            int same_node = domain[h[k]].node == domain[s].node, same_rack = domain[h[k]].rack == domain[s].rack;
            for (int32_t c = 0; c < k; c++) {
                ck_assert_int_ne(h[c], h[k]);
                same_node |= domain[h[c]].node == domain[h[k]].node;
                same_rack |= domain[h[c]].rack == domain[h[k]].rack;
            }
            node += same_node;
            rack += same_rack;
            load[h[k]]++;
            most = load[h[k]] > most ? load[h[k]] : most;
        }
    }
    ck_assert_int_eq(p->q.same_node, node);
    ck_assert_int_eq(p->q.same_rack, rack);
    ck_assert_int_eq(p->q.most, most);
    ck_assert_int_eq(p->q.missing, missing);
    free(load);
}

static int32_t largest(size_t slots, const opi__domain *domain, int racks, int32_t *different)
{
    int32_t most = 0;
    *different = 0;
    for (size_t a = 0; a < slots; a++) {
        int32_t count = 0, first = 1;
        for (size_t b = 0; b < slots; b++) {
            int same = racks ? domain[a].rack == domain[b].rack : domain[a].node == domain[b].node;
            count += same;
            first = first && !(same && b < a);
        }
        *different += first;
        most = count > most ? count : most;
    }
    return most;
}

START_TEST(place_random_worlds)
{
    opi__rng r;
    opi__rng_seed(&r, 3);
    opi__domain domain[60];
    int tight = 0, apart = 0, more = 0;
    for (int i = 0; i < 6000; i++) {
        size_t slots = 1 + (size_t)opi__rng_below(&r, 60);
        int32_t nodes = 1 + (int32_t)opi__rng_below(&r, 12), per_rack = 1 + (int32_t)opi__rng_below(&r, 4);
        int32_t replicas = 1 + (int32_t)opi__rng_below(&r, 4), node_count, rack_count;
        uint64_t skew = opi__rng_below(&r, 4);
        for (size_t s = 0; s < slots; s++) {
            int32_t node = (int32_t)opi__rng_below(&r, (uint64_t)nodes);
            domain[s].node = opi__rng_below(&r, 4) < skew ? node / 3 : node; /* unbalanced */
            domain[s].rack = domain[s].node / per_rack;
        }
        int32_t node_most = largest(slots, domain, 0, &node_count), rack_most = largest(slots, domain, 1, &rack_count);
        placed p;
        place(&p, slots, domain, replicas);
        check_placement(&p, slots, domain, replicas);
        int32_t copies = (size_t)replicas < slots ? replicas : (int32_t)slots - 1;
        ck_assert_int_eq(p.q.missing, (int32_t)slots * (replicas - copies));
        if (node_count > copies) { /* enough nodes: never two in one, whatever the sizes */
            ck_assert_int_eq(p.q.same_node, 0);
            apart++;
        }
        if (rack_most <= (int32_t)slots / (copies + 1)) { /* enough room in every rack: perfectly even too */
            ck_assert(p.q.same_rack == 0 && p.q.most == copies);
            tight++;
        } else if (node_most <= (int32_t)slots / (copies + 1)) {
            ck_assert(p.q.same_node == 0 && p.q.most <= replicas + 1);
            more++;
        }
        /* One copy, several nodes in the large rack: as many in another rack as two a slot have room for. */
        if (copies == 1 && replicas == 1 && node_most <= (int32_t)slots / 2) {
            int32_t over = rack_most - 2 * ((int32_t)slots - rack_most);
            ck_assert_int_eq(p.q.same_rack, over > 0 ? over : 0);
        }
        unplace(&p);
    }
    ck_assert(tight > 300 && apart > 1000 && more > 300);
}
END_TEST

/* The short way to know what a failure destroyed gives the answer of the holders. */
START_TEST(place_lost_as_placed)
{
    opi__rng r;
    opi__rng_seed(&r, 4);
    opi__domain domain[60];
    int lost_seen = 0, kept_seen = 0;
    for (int i = 0; i < 20000; i++) {
        int32_t slots = 6 + (int32_t)opi__rng_below(&r, 55), replicas = 1 + (int32_t)opi__rng_below(&r, 3), racks;
        int32_t touched[60], rank[60], m = 0, want = 0;
        uint8_t gone[60] = {0};
        for (int32_t s = 0; s < slots; s++) {
            int32_t node = i % 2 ? s / 2 : (int32_t)opi__rng_below(&r, 24);
            domain[s] = (opi__domain){node, node / 2};
        }
        if (largest((size_t)slots, domain, 1, &racks) > slots / (replicas + 1))
            continue;
        for (uint64_t k = 0, hits = 1 + opi__rng_below(&r, 6); k < hits; k++) {
            int32_t node = domain[opi__rng_below(&r, (uint64_t)slots)].node;
            for (int32_t s = 0; s < slots; s++)
                if (domain[s].node == node && !gone[s]) {
                    gone[s] = (uint8_t)(2 + opi__rng_below(&r, 2));
                    touched[m++] = s;
                }
        }
        placed p;
        place(&p, (size_t)slots, domain, replicas);
        for (int32_t t = 0; t < m; t++) {
            int alive = !(gone[touched[t]] & 1);
            for (int32_t k = 0; k < replicas; k++)
                alive |= !(gone[p.holder[touched[t] * replicas + k]] & 2);
            want |= !alive;
        }
        ck_assert_int_eq(opi__place_lost((size_t)slots, domain, replicas, gone, (size_t)m, touched, rank), want);
        lost_seen += want;
        kept_seen += !want;
        unplace(&p);
    }
    ck_assert(lost_seen > 1000 && kept_seen > 1000);
}
END_TEST

START_TEST(place_one_node)
{
    opi__domain domain[5] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}};
    placed p;
    place(&p, 5, domain, 2);
    check_placement(&p, 5, domain, 2);
    ck_assert(p.q.same_node == 10 && p.q.most == 2 && p.q.missing == 0);
    unplace(&p);
    place(&p, 1, domain, 3);
    ck_assert(p.q.missing == 3 && p.holder[0] == -1 && p.holder[2] == -1);
    unplace(&p);
    place(&p, 3, domain, 4); /* more copies than others */
    check_placement(&p, 3, domain, 4);
    ck_assert(p.q.missing == 6 && p.q.most == 2);
    unplace(&p);
    place(&p, 0, domain, 2);
    ck_assert(p.q.missing == 0 && p.q.most == 0);
    unplace(&p);
}
END_TEST

START_TEST(place_lopsided)
{
    /* Seven of eight slots on one node: their copies all go to the eighth, whatever the load. */
    opi__domain domain[8];
    for (int32_t i = 0; i < 8; i++)
        domain[i] = (opi__domain){i == 4, i == 4};
    placed p;
    place(&p, 8, domain, 1);
    check_placement(&p, 8, domain, 1);
    ck_assert(p.q.same_node == 0 && p.q.same_rack == 0 && p.q.most == 7);
    unplace(&p);
}
END_TEST

START_TEST(place_survives_node_loss)
{
    /* After every single node is lost in turn each slot still has a copy; so has it with two copies and two nodes. */
    opi__domain domain[48];
    for (int32_t i = 0; i < 48; i++)
        domain[i] = (opi__domain){(i * 7 % 48) / 4, (i * 7 % 48) / 12};
    for (int32_t replicas = 1; replicas <= 2; replicas++) {
        placed p;
        place(&p, 48, domain, replicas);
        for (int32_t a = 0; a < 12; a++)
            for (int32_t b = replicas == 2 ? 0 : a; b < (replicas == 2 ? 12 : a + 1); b++)
                for (int32_t s = 0; s < 48; s++) {
                    int alive = domain[s].node != a && domain[s].node != b;
                    for (int32_t k = 0; k < replicas; k++) {
                        int32_t n = domain[p.holder[s * replicas + k]].node;
                        alive |= n != a && n != b;
                    }
                    ck_assert(alive);
                }
        unplace(&p);
    }
}
END_TEST

START_TEST(place_large)
{
    enum { SLOTS = 131072 };
    opi__domain *domain = malloc(SLOTS * sizeof *domain);
    ck_assert_ptr_nonnull(domain);
    for (int shape = 0; shape < 4; shape++) {
        for (int32_t i = 0; i < SLOTS; i++) {
            int32_t at = shape == 1 ? (int32_t)((int64_t)i * 77773 % SLOTS) : i;
            domain[i] = (opi__domain){at / 8, at / 256};
            if (shape == 2 && i < SLOTS - 5000)
                domain[i] = (opi__domain){0, 0}; /* a giant node */
            if (shape == 3 && i < SLOTS - 1)
                domain[i] = (opi__domain){i / 8, 0}; /* a giant rack */
        }
        for (int32_t replicas = 1; replicas <= 3; replicas += 2) {
            placed p;
            place(&p, SLOTS, domain, replicas);
            check_placement(&p, SLOTS, domain, replicas);
            ck_assert(p.q.same_node == 0 && p.q.missing == 0);
            if (shape < 2)
                ck_assert(p.q.same_rack == 0 && p.q.most == replicas);
            unplace(&p);
        }
    }
    free(domain);
}
END_TEST

Suite *suite_slots(void)
{
    Suite *s = suite_create("slots");
    TCase *c = tcase_create("slots");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, grid_and_range);
    tcase_add_test(c, assign_as_the_rules_say);
    tcase_add_test(c, assign_prefers);
    tcase_add_test(c, assign_many_spares);
    tcase_add_test(c, fewer_rows);
    tcase_add_test(c, place_random_worlds);
    tcase_add_test(c, place_lost_as_placed);
    tcase_add_test(c, place_one_node);
    tcase_add_test(c, place_lopsided);
    tcase_add_test(c, place_survives_node_loss);
    tcase_add_test(c, place_large);
    suite_add_tcase(s, c);
    return s;
}
