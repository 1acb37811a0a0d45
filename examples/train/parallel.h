/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that is communicated in a training step. Each function returns 0 or a fault: MPI's return code, or
 * FAULT_KNOWN. All sums have a fixed order. MPI_Allreduce promises none: it may choose another algorithm when a slot
 * has moved to a rank of another node, and the last bits would change. So values are gathered and added here.
 *
 * The gradient of a step is a sum over its micro-batches, added along a fixed binary tree over them:
 * ((0 + 1) + (2 + 3)), whatever the number of data-parallel rows. A row has consecutive micro-batches, adds what lies
 * inside one branch itself and sends one vector a branch. With fewer rows the same additions are made elsewhere, so
 * the losses stay the same bit for bit when the data-parallel width shrinks. */
#ifndef TRAIN_PARALLEL_H
#define TRAIN_PARALLEL_H
#include <mpi.h>
#include <stdint.h>

#define FAULT_KNOWN (-1) /* the library knows of a failure: the step cannot be finished */
#define TREE_NODES 64    /* most branches a row can have (2 log2 of the most micro-batches) */

typedef struct parallel {
    MPI_Comm dp, tp; /* refreshed after each recovery */
    int dp_rank, dp_width, tp_rank, tp_width;
    int micro_batches;                /* of a step */
    int64_t parameters;               /* of one tensor-parallel rank */
    int32_t (*moment)(void *user);    /* called between layers; non-zero = a fault */
    void *user;
    double *gathered;                 /* room for tp_width times what is summed over tp */
    double *branches;                 /* what other rows sent: one owned range a branch */
    double waited_s;                  /* processor time spent in MPI since the caller set it to 0 */
} parallel;

/* A branch of the tree: micro-batches [begin, end). */
typedef struct branch {
    int begin, end;
} branch;

/* Makes room for the present widths; largest = the most elements parallel_sum_tp is called with. 0 = no memory. */
int parallel_room(parallel *p, int64_t largest);
void parallel_free(parallel *p);

/* x becomes the sum over the tensor-parallel ranks, the same bits on all of them. */
int32_t parallel_sum_tp(parallel *p, double *x, int64_t n);
/* The same value of all tensor-parallel ranks in, all of them out: all[tp_width]. */
int32_t parallel_gather_tp(parallel *p, uint64_t value, uint64_t *all);

/* The branches that row `row` adds up itself; returns how many. */
int parallel_branches(const parallel *p, int row, branch *out);
/* vectors[i] = the sum of branch i of this row, `parameters` elements each. *sum: this row's range of the total. */
int32_t parallel_reduce(parallel *p, double *const *vectors, const double **sum);
/* Each row's range of the parameters to all rows. */
int32_t parallel_spread(parallel *p, double *parameters);
/* values[micro_batches]: each row has filled in its own; in the end all are there. */
int32_t parallel_losses(parallel *p, double *values);

double parallel_clock(void); /* processor seconds of this thread */
void *aligned_room(int64_t bytes); /* zeroed; its address does not change what BLAS computes. NULL = no memory */
#endif
