/* SPDX-License-Identifier: Apache-2.0 */
/* MPI and ULFM as the runtime uses them; engine.h is the only file that includes mpi.h. Every call returns its error:
 * nothing here ends the job. */
#ifndef OPI_SWAP_ENGINE_H
#define OPI_SWAP_ENGINE_H
#include "omnipilot/types.h"
#include <mpi.h>
#include <mpi-ext.h>

/* ULFM there, switched on, no version known to be broken, thread level enough; OPI_E_UNSUPPORTED says which. */
int32_t opi__engine_check(opi_error *err);
/* May processes that are started later talk to these? Not when shared memory is the only way: OPI_E_UNSUPPORTED. */
int32_t opi__engine_check_join(opi_error *err);
/* Errors are returned from now on. */
void opi__engine_quiet(MPI_Comm comm);
/* All 1 = done, 0 = failed. */
int opi__engine_dup(MPI_Comm comm, MPI_Comm *out);
int opi__engine_split(MPI_Comm comm, int color, int key, MPI_Comm *out); /* color < 0: none for this rank */
int opi__engine_shrink(MPI_Comm world, MPI_Comm *out);
int opi__engine_gather(MPI_Comm comm, const void *mine, void *all, int bytes); /* MPI_Allgather of bytes */
int opi__engine_barrier(MPI_Comm comm);
void opi__engine_revoke(MPI_Comm comm); /* MPI_COMM_NULL is allowed */
/* Bitwise and of everybody's flags; 0 = some member died that this communicator's users did not know of. The answer is
 * the same everywhere. */
int opi__engine_agree(MPI_Comm comm, int *flags);
/* The same, not waited for; the flags are out when the request is done. A failed request means: someone died. */
int opi__engine_iagree(MPI_Comm comm, int *flags, MPI_Request *request);
/* *rank_in_world[i] = rank in `world` of member i of `comm`. 1 or 0. */
int opi__engine_translate(MPI_Comm comm, MPI_Comm world, int n, int *rank_in_world);

/* A request: 0 = under way, 1 = done, -1 = failed (it is gone then). NULL request = done. */
int opi__engine_test(MPI_Request *request, MPI_Status *status);
/* The same for a receive from anyone, *from = who sent it; -1 = somebody died, and the request goes on. */
int opi__engine_test_any(MPI_Request *request, int *from);
/* Every request on a revoked communicator ends soon; this waits for it, and gives up after some seconds (then the memory
 * must not be reused: 0). Waiting for all at once (MPI_Waitall) would leave requests alive after an error. */
int opi__engine_drain(MPI_Request *request, size_t n);
double opi__now(void); /* CLOCK_MONOTONIC, seconds */
void opi__pause(double seconds);
void opi__yield(void);

/* Marks in dead[rank] who of `comm` is known to have died, and acknowledges it, so that receives from anyone go on.
 * Returns how many are newly marked. */
int opi__engine_dead(MPI_Comm comm, int size, int32_t *dead);
/* The deaths known now are no reason for an agreement on `comm` to fail. */
void opi__engine_acknowledge(MPI_Comm comm);
#endif
