/* SPDX-License-Identifier: Apache-2.0 */
/* Utility weights from JSON: refused with the weights untouched, or accepted with every weight finite. */
#include "omnipilot/omnipilot.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static opi_ctx *ctx;
    opi_utility before = {.struct_size = sizeof before}, after;
    if (!ctx && opi_ctx_create(NULL, &ctx, NULL) < 0)
        return 0;
    opi_utility_default(&before);
    after = before;
    int32_t rc = opi_utility_parse(ctx, (const char *)data, size, &after, NULL);
    if (rc < 0 && memcmp(&before, &after, sizeof after) != 0)
        abort();
    if (rc == OPI_OK && !(isfinite(after.value_usd_per_mtok) && isfinite(after.risk) && isfinite(after.kv_knee) &&
                          isfinite(after.amortize_h) && isfinite(after.power_usd_per_kwh)))
        abort();
    return 0;
}
