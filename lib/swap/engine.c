/* SPDX-License-Identifier: Apache-2.0 */
#include "swap/runtime.h"
#include "base/status.h"
#include <sched.h>
#include <string.h>
#include <time.h>

#define DRAIN_S 10.0

double opi__now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void opi__pause(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

void opi__yield(void)
{
    sched_yield();
}

/* Open MPI 5.0.10 and 5.0.11 call a NULL pointer in MPIX_Comm_shrink of innocent survivors. */
static int32_t check_version(opi_error *err)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS)
        length = 0;
    text[length < 0 ? 0 : length] = 0;
    static const char *const bad[] = {"v5.0.10", "v5.0.11"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (strstr(text, bad[i]))
            return opi__fail(err, OPI_E_UNSUPPORTED, -1,
                             "Open MPI %s crashes survivors in MPIX_Comm_shrink; versions 5.0.8 and 5.0.9 do not",
                             bad[i]);
    return OPI_OK;
}

int32_t opi__engine_check(opi_error *err)
{
    int ready = 0, level = MPI_THREAD_SINGLE, found = 0;
    void *value = NULL;
    if (MPI_Initialized(&ready) != MPI_SUCCESS || !ready)
        return opi__fail(err, OPI_E_INVALID, -1, "MPI is not initialized: call MPI_Init_thread first");
    int32_t rc = check_version(err);
    if (rc)
        return rc;
    if (MPI_Query_thread(&level) != MPI_SUCCESS || level < MPI_THREAD_FUNNELED)
        return opi__fail(err, OPI_E_UNSUPPORTED, -1,
                         "MPI's thread level is MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED or SERIALIZED is needed");
    if (level == MPI_THREAD_MULTIPLE)
        return opi__fail(err, OPI_E_UNSUPPORTED, -1,
                         "MPI's thread level is MPI_THREAD_MULTIPLE, which can block in recovery over TCP: ask for "
                         "MPI_THREAD_SERIALIZED");
    if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_FT, &value, &found) != MPI_SUCCESS || !found || !value || !*(int *)value)
        return opi__fail(err, OPI_E_UNSUPPORTED, -1,
                         "fault tolerance is off in this MPI job: start it with omnipilot-mpirun, or give mpirun "
                         "--with-ft ulfm");
    return OPI_OK;
}

/* Open MPI's parameter `btl`: "self,sm" spans no second job; a leading ^ excludes instead. "" when it is not known. */
static void read_transports(char *text, int room)
{
    int level = 0, index = -1, count = 0, length = 0;
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    text[0] = 0;
    if (MPI_T_init_thread(MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return;
    if (MPI_T_cvar_get_index("btl", &index) == MPI_SUCCESS &&
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS) {
        if (count > 0 && count <= room && MPI_T_cvar_read(handle, text) == MPI_SUCCESS)
            length = count;
        MPI_T_cvar_handle_free(&handle);
    }
    text[length < room ? length : room - 1] = 0;
    MPI_T_finalize();
}

int32_t opi__engine_check_join(opi_error *err)
{
    char text[4096];
    read_transports(text, (int)sizeof text);
    int network = strstr(text, "tcp") || strstr(text, "ofi") || strstr(text, "uct") || strstr(text, "ugni");
    if (!text[0] || text[0] == '^' || network)
        return OPI_OK;
    return opi__fail(err, OPI_E_UNSUPPORTED, -1,
                     "policy wait: processes that start later cannot talk to these over \"%.60s\": start the job with "
                     "omnipilot-mpirun --transport tcp",
                     text);
}

void opi__engine_quiet(MPI_Comm comm)
{
    if (comm != MPI_COMM_NULL)
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

int opi__engine_dup(MPI_Comm comm, MPI_Comm *out)
{
    MPI_Comm made = MPI_COMM_NULL;
    if (MPI_Comm_dup(comm, &made) != MPI_SUCCESS || made == MPI_COMM_NULL)
        return 0;
    opi__engine_quiet(made);
    *out = made;
    return 1;
}

int opi__engine_split(MPI_Comm comm, int color, int key, MPI_Comm *out)
{
    MPI_Comm made = MPI_COMM_NULL;
    if (MPI_Comm_split(comm, color < 0 ? MPI_UNDEFINED : color, key, &made) != MPI_SUCCESS)
        return 0;
    if (color >= 0 && made == MPI_COMM_NULL)
        return 0;
    opi__engine_quiet(made);
    *out = made;
    return 1;
}

int opi__engine_shrink(MPI_Comm world, MPI_Comm *out)
{
    MPI_Comm made = MPI_COMM_NULL;
    if (MPIX_Comm_shrink(world, &made) != MPI_SUCCESS || made == MPI_COMM_NULL)
        return 0;
    opi__engine_quiet(made);
    *out = made;
    return 1;
}

int opi__engine_gather(MPI_Comm comm, const void *mine, void *all, int bytes)
{
    return MPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm) == MPI_SUCCESS;
}

int opi__engine_barrier(MPI_Comm comm)
{
    return MPI_Barrier(comm) == MPI_SUCCESS;
}

void opi__engine_revoke(MPI_Comm comm)
{
    if (comm != MPI_COMM_NULL)
        MPIX_Comm_revoke(comm);
}

int opi__engine_agree(MPI_Comm comm, int *flags)
{
    return MPIX_Comm_agree(comm, flags) == MPI_SUCCESS;
}

int opi__engine_iagree(MPI_Comm comm, int *flags, MPI_Request *request)
{
    return MPIX_Comm_iagree(comm, flags, request) == MPI_SUCCESS;
}

int opi__engine_translate(MPI_Comm comm, MPI_Comm world, int n, int *rank_in_world)
{
    MPI_Group from, to = MPI_GROUP_NULL;
    if (MPI_Comm_group(comm, &from) != MPI_SUCCESS)
        return 0;
    int done = MPI_Comm_group(world, &to) == MPI_SUCCESS;
    for (int i = 0; done && i < n; i++)
        done = MPI_Group_translate_ranks(from, 1, &i, to, &rank_in_world[i]) == MPI_SUCCESS && rank_in_world[i] >= 0;
    if (to != MPI_GROUP_NULL)
        MPI_Group_free(&to);
    MPI_Group_free(&from);
    return done;
}

int opi__engine_test(MPI_Request *request, MPI_Status *status)
{
    int flag = 0;
    if (*request == MPI_REQUEST_NULL)
        return 1;
    int rc = MPI_Test(request, &flag, status ? status : MPI_STATUS_IGNORE);
    if (rc == MPI_SUCCESS)
        return flag ? 1 : 0;
    return -1;
}

int opi__engine_test_any(MPI_Request *request, int *from)
{
    int flag = 0;
    MPI_Status status;
    if (*request == MPI_REQUEST_NULL)
        return 1;
    int rc = MPI_Test(request, &flag, &status);
    if (!flag)
        return rc == MPI_SUCCESS ? 0 : -1;
    /* Open MPI 5.0: after a death was acknowledged, a message may arrive together with the old error, and the request is
     * still there. The message is whole. */
    if (*request != MPI_REQUEST_NULL)
        MPI_Request_free(request);
    *from = status.MPI_SOURCE;
    return 1;
}

int opi__engine_drain(MPI_Request *request, size_t n)
{
    double end = opi__now() + DRAIN_S;
    int all = 1;
    for (size_t i = 0; i < n; i++) {
        while (opi__engine_test(&request[i], NULL) != 1 && request[i] != MPI_REQUEST_NULL) {
            if (opi__now() > end) {
                all = 0;
                break;
            }
            opi__pause(20e-6);
        }
    }
    return all;
}

int opi__engine_dead(MPI_Comm comm, int size, int32_t *dead)
{
    MPI_Group failed = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
    int n = 0, found = 0;
    MPIX_Comm_failure_ack(comm);
    if (MPIX_Comm_failure_get_acked(comm, &failed) != MPI_SUCCESS || failed == MPI_GROUP_NULL)
        return 0;
    if (MPI_Group_size(failed, &n) != MPI_SUCCESS)
        n = 0;
    if (n && MPI_Comm_group(comm, &all) == MPI_SUCCESS) {
        for (int i = 0; i < n; i++) {
            int rank = MPI_UNDEFINED;
            if (MPI_Group_translate_ranks(failed, 1, &i, all, &rank) != MPI_SUCCESS || rank < 0 || rank >= size)
                continue;
            found += !dead[rank];
            dead[rank] = 1;
        }
        MPI_Group_free(&all);
    }
    if (failed != MPI_GROUP_EMPTY)
        MPI_Group_free(&failed);
    return found;
}

void opi__engine_acknowledge(MPI_Comm comm)
{
    MPIX_Comm_failure_ack(comm);
}

#ifdef OPI_SWAP_HOOKS
opi__hook_fn opi__swap_hook;
#endif
