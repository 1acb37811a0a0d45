/* SPDX-License-Identifier: Apache-2.0 */
/* Logical slots and who holds them. Free of MPI; the same code runs in the runtime and in the planner. Everything is a
 * pure function of its arguments, so that every rank finds the same answer without talking. */
#ifndef OPI_SWAP_SLOTS_H
#define OPI_SWAP_SLOTS_H
#include <stddef.h>
#include <stdint.h>

/* Where a process lives. Dense numbers from 0; a rack may be a switch. Every node is in one rack. */
typedef struct opi__domain {
    int32_t node, rack;
} opi__domain;

typedef struct opi__grid {
    int32_t dp, tp, pp; /* widths, >= 1 */
} opi__grid;
/* slot = (dp * grid.pp + pp) * grid.tp + tp: a data-parallel row is a run of tp * pp slots. */
int32_t opi__grid_slots(const opi__grid *grid);
int32_t opi__grid_row(const opi__grid *grid); /* slots of one data-parallel row: tp * pp */
int32_t opi__grid_slot(const opi__grid *grid, int32_t dp, int32_t tp, int32_t pp);
void opi__grid_coordinates(const opi__grid *grid, int32_t slot, int32_t *dp, int32_t *tp, int32_t *pp);
/* Part `index` of `parts` of `total`: even, the first ones take the rest (opi_swap_range). */
void opi__range(uint64_t total, int32_t parts, int32_t index, uint64_t *begin, uint64_t *end);

/* A living process. `slot` -1 = spare. */
typedef struct opi__member {
    int32_t slot;
    opi__domain domain;
} opi__member;

/* owner[slot] = index of the member that holds it. Members keep their slots; a lost slot goes to a spare: one on a node
 * where nobody died in this failure before one on such a node, in the rack of the slot's own data-parallel row (most of
 * the row's living members) before another, then the lowest index. shy[member] != 0 marks a member on a node with a
 * death (NULL = none). Lost slots are served in ascending order. Returns how many slots stay without an owner (-1 in
 * owner). Time: O(slots + members) apart from a scan of the spares for each lost slot. */
int32_t opi__assign(const opi__grid *grid, size_t members, const opi__member *member, const uint8_t *shy,
                    int32_t *owner);

/* Fewer data-parallel rows, for when opi__assign left slots without an owner: as many full rows as there are members.
 * Rows with the fewest gaps are kept (ties: the lowest), in their old order, and their gaps are filled by members of
 * the rows given up and by spares, lowest index first. from_row[new row] = old row. Returns the new grid->dp in *rows
 * (0 = not even one row). owner: at least opi__grid_slots(grid) entries, the first *rows * row are meaningful.
 * order: scratch of grid->dp entries. */
void opi__assign_fewer(const opi__grid *grid, size_t members, const opi__member *member, int32_t *owner,
                       int32_t *from_row, int32_t *rows, int32_t *order);
#endif
