/* SPDX-License-Identifier: Apache-2.0 */
/* A run's event log: refused with the options untouched, or accepted with phases that a plan takes. */
#include "omnipilot/omnipilot.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    opi_plan_options before = {.struct_size = sizeof before}, after = before;
    opi_plan_measured measured = {.struct_size = sizeof measured};
    int32_t rc = opi_plan_from_run(NULL, (const char *)data, size, &after, &measured, NULL);
    if (rc < 0 && memcmp(&before, &after, sizeof after) != 0)
        abort();
    for (int i = 0; rc == OPI_OK && i < OPI_PLAN_PHASES; i++)
        if (!(after.phase_s[i] >= 0 && after.phase_s[i] <= 1e6))
            abort();
    if (rc == OPI_OK && measured.recoveries == 0)
        abort();
    return 0;
}
