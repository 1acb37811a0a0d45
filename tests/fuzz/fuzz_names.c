/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups by whatever people type: GPU, LLM, target, launch prior. A success names an entry of the table; a failure
 * has one printable line. */
#include "omnipilot/omnipilot.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int32_t rc, const opi_error *err)
{
    if (rc == OPI_OK)
        return;
    if (rc != err->code || !memchr(err->message, 0, sizeof err->message) || err->message[0] == 0 ||
        strchr(err->message, '\n'))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[600];
    opi_error err;
    opi_gpu gpu = {.struct_size = sizeof gpu};
    opi_llm llm = {.struct_size = sizeof llm};
    opi_prior prior = {.struct_size = sizeof prior};
    size_t target = 0;
    if (size >= sizeof name)
        return 0;
    if (size > 0)
        memcpy(name, data, size);
    name[size] = 0;
    memset(&err, 0, sizeof err);
    check(opi_gpu_find(name, &gpu, &err), &err);
    check(opi_llm_find(name, &llm, &err), &err);
    check(opi_target_find(name, &target, &err), &err);
    check(opi_prior_launch(name, size > 0 ? data[0] % 17 : 1, &prior, &err), &err);
    if (target >= opi_target_count() || (gpu.name[0] != 0 && opi_gpu_find(gpu.name, &gpu, NULL) != OPI_OK) ||
        (llm.name[0] != 0 && opi_llm_find(llm.name, &llm, NULL) != OPI_OK))
        abort();
    return 0;
}
