/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/launch.h"

#include "base/status.h"
#include "base/take.h"
#include "base/text.h"
#include "learn/prior.h"

#include <string.h>

static const opi__launch launches[] = {
#define LAUNCH(gpu, n, kind, ok, failed, source) {gpu, n, OPI__LAUNCH_##kind, ok, failed, source},
#include "decide/launch_data.inc"
#undef LAUNCH
};
#define N_LAUNCHES (sizeof launches / sizeof *launches)

size_t opi__launch_count(void)
{
    return N_LAUNCHES;
}

const opi__launch *opi__launch_at(size_t index)
{
    return index < N_LAUNCHES ? &launches[index] : NULL;
}

static int is_serving(const opi__launch *l)
{
    return l->kind == OPI__LAUNCH_SERVER || l->kind == OPI__LAUNCH_STATIC;
}

size_t opi__launch_groups(int all, double *attempts, double *successes)
{
    size_t n = 0;
    for (size_t i = 0; i < N_LAUNCHES; i++) {
        const opi__launch *l = &launches[i];
        if (!is_serving(l)) {
            if (all) {
                attempts[n] = l->succeeded + l->failed;
                successes[n++] = l->succeeded;
            }
            continue;
        }
        int repeat = 0;
        for (size_t j = 0; j < i; j++)
            repeat |= is_serving(&launches[j]) && launches[j].n_gpus == l->n_gpus && !strcmp(launches[j].gpu, l->gpu);
        if (repeat)
            continue;
        attempts[n] = successes[n] = 0;
        for (size_t j = i; j < N_LAUNCHES; j++)
            if (is_serving(&launches[j]) && launches[j].n_gpus == l->n_gpus && !strcmp(launches[j].gpu, l->gpu)) {
                attempts[n] += launches[j].succeeded + launches[j].failed;
                successes[n] += launches[j].succeeded;
            }
        n++;
    }
    return n;
}

void opi__launch_fitted(int all, double *a, double *b)
{
    /* Serving pairs only: what a measured pair is shrunk toward. All groups: what stands in for a pair never tried. */
    *a = all ? 3.7940840244782756 : 5.6876544563684286;
    *b = all ? 2.787803529032542 : 3.7734448817092567;
}

/* Training jobs on this GPU, of whatever count: named in the basis, never counted as attempts. */
static double training_jobs(const char *gpu)
{
    double jobs = 0;
    for (size_t i = 0; i < N_LAUNCHES; i++)
        if (launches[i].kind == OPI__LAUNCH_TRAINING && !strcmp(launches[i].gpu, gpu))
            jobs += launches[i].succeeded + launches[i].failed;
    return jobs;
}

static void basis_of(const char *gpu, int32_t n_gpus, const double *attempts, const double *ok, opi_prior *out)
{
    const double server = attempts[OPI__LAUNCH_SERVER], fixed = attempts[OPI__LAUNCH_STATIC], jobs = training_jobs(gpu);
    const size_t cap = sizeof out->basis;
    char also[48] = "";
    if (server > 0 && fixed > 0)
        opi__format(out->basis, cap,
                    "observed: %g of %g server launches, %g of %g static-batch runs, shrunk to the pooled rate",
                    ok[OPI__LAUNCH_SERVER], server, ok[OPI__LAUNCH_STATIC], fixed);
    else if (server > 0)
        opi__format(out->basis, cap, "observed: %g of %g server launches on %d x %s, shrunk to the pooled rate",
                    ok[OPI__LAUNCH_SERVER], server, (int)n_gpus, gpu);
    else if (fixed > 0)
        opi__format(out->basis, cap,
                    "observed: %g of %g static-batch runs on %d x %s (failures: out of memory), shrunk to the pooled rate",
                    ok[OPI__LAUNCH_STATIC], fixed, (int)n_gpus, gpu);
    else {
        if (jobs > 0)
            opi__format(also, sizeof also, " (%g on this GPU)", jobs);
        opi__format(out->basis, cap,
                    "no serving launch observed on %d x %s: rate pooled over serving launches, training jobs%s and pods",
                    (int)n_gpus, gpu, also);
    }
}

void opi__launch_prior(const char *gpu, int32_t n_gpus, opi_prior *out)
{
    double attempts[4] = {0}, ok[4] = {0}, a, b;
    for (size_t i = 0; i < N_LAUNCHES; i++)
        if (is_serving(&launches[i]) && launches[i].n_gpus == n_gpus && !strcmp(launches[i].gpu, gpu)) {
            attempts[launches[i].kind] += launches[i].succeeded + launches[i].failed;
            ok[launches[i].kind] += launches[i].succeeded;
        }
    const double tried = attempts[OPI__LAUNCH_SERVER] + attempts[OPI__LAUNCH_STATIC];
    const double came_up = ok[OPI__LAUNCH_SERVER] + ok[OPI__LAUNCH_STATIC];
    opi__launch_fitted(!(tried > 0), &a, &b);
    a += came_up;
    b += tried - came_up;
    out->serving_rows = tried > 0;
    out->attempts = tried;
    out->mean = a / (a + b);
    out->lo = opi__beta_quantile(a, b, 0.1);
    out->hi = opi__beta_quantile(a, b, 0.9);
    basis_of(gpu, n_gpus, attempts, ok, out);
}

int32_t opi_prior_launch(const char *gpu, int32_t n_gpus, opi_prior *out, opi_error *err)
{
    if (!gpu || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "launch prior: %s is NULL", gpu ? "the result" : "the GPU's name");
    if (n_gpus < 1 || n_gpus > 1000000)
        return opi__fail(err, OPI_E_RANGE, -1, "launch prior: %d GPUs, must be 1 to 1000000", n_gpus);
    opi_gpu found = {.struct_size = sizeof found};
    const int32_t rc = opi_gpu_find(gpu, &found, err);
    if (rc)
        return rc;
    opi_prior prior = {.struct_size = sizeof prior};
    opi__launch_prior(found.name, n_gpus, &prior);
    return opi__give(out, &prior, sizeof prior, "opi_prior", err);
}
