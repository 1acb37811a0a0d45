/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's program on the installed libomnipilot-swap, built by tests/embed/install.py: as C and C++ without an MPI
 * of its own, and with mpicc (WITH_MPI), where three ranks ask the library whether their MPI will do. */
#include <omnipilot/swap.h>

#ifdef WITH_MPI
#include <mpi.h>
#endif
#include <stdio.h>
#include <string.h>

/* 10 elements in 3 parts are 4 + 3 + 3; names are those of the header. */
static int facts(void)
{
    static const uint64_t begins[] = {0, 4, 7}, ends[] = {4, 7, 10};
    for (int32_t i = 0; i < 3; i++) {
        uint64_t begin = 99, end = 99;
        opi_swap_range(10, 3, i, &begin, &end);
        if (begin != begins[i] || end != ends[i])
            return 1;
    }
    return strcmp(opi_swap_event_name(OPI_SWAP_PROCESS_LOST), "process-lost") != 0 ||
           strcmp(opi_swap_phase_name(OPI_SWAP_DETECTED), "detected") != 0;
}

int main(int argc, char **argv)
{
    int bad = facts(), rank = 0;
    if (bad)
        fprintf(stderr, "a range or a name is wrong\n");
#ifdef WITH_MPI
    int level = 0, all = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    opi_error err;
    memset(&err, 0, sizeof err);
    if (opi_swap_check_mpi(&err) < 0) {
        fprintf(stderr, "opi_swap_check_mpi: %s\n", err.message);
        bad = 1;
    }
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    bad = all;
    MPI_Finalize();
#else
    (void)argc;
    (void)argv;
#endif
    if (!bad && rank == 0)
        printf("swap consumer ok\n");
    return bad;
}
