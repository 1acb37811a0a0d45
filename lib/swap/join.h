/* SPDX-License-Identifier: Apache-2.0 */
/* Where processes live, and how new ones come into a job that is running (OPI_SWAP_WAIT). */
#ifndef OPI_SWAP_JOIN_H
#define OPI_SWAP_JOIN_H
#include "swap/meet.h"

/* The first world: tables of who lives where, and the control channel. */
int32_t opi__join_first(opi_swap *s, MPI_Comm world, opi_error *err);
/* Starts a->unfilled processes and makes the world of the living and them. 1 = s->world is new: the recovery begins
 * again with it; 0 = a failure in between, or they did not come: nothing is changed. The answer is the same on all. */
int opi__join(opi_swap *s, opi__attempt *a);
/* In a new process, instead of duplicating the world: 1 = it was started by opi__join. */
int opi__join_parent(MPI_Comm *parent);
int32_t opi__join_world(opi_swap *s, MPI_Comm parent, opi_error *err);
/* Communicators that span jobs must be freed before MPI_Finalize, or it hangs: each one is remembered … */
void opi__join_keep(opi_swap *s, MPI_Comm comm);
/* … and freed, when a process ever joined and all have come to the end. */
void opi__join_release(opi_swap *s);
#endif
