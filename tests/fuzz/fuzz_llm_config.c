/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a config.json: an error of one line, or facts whose memory is computed or refused, never a crash. */
#include "omnipilot/omnipilot.h"

#include <math.h>
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

static void check_memory(const opi_llm *llm, int32_t tp)
{
    opi_error err = {0};
    opi_gpu gpu = {.struct_size = sizeof gpu};
    opi_memory memory = {.struct_size = sizeof memory};
    if (opi_gpu_find("H100-80GB-SXM", &gpu, NULL) != OPI_OK)
        abort();
    opi_config config = {.struct_size = sizeof config, .llm = llm, .gpu = &gpu, .tp = tp, .input_len = 1000,
                         .output_len = 100, .concurrency = 8};
    int32_t rc = opi_memory_fit(&config, &memory, &err);
    check(rc, &err);
    if (rc == OPI_OK && (!isfinite(memory.weights_gib) || !isfinite(memory.margin_gib) || !(memory.weights_gib > 0) ||
                         !(memory.kv_bytes_per_token > 0) || memory.fits != (memory.limit[0] == 0)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static opi_ctx *ctx;
    opi_error err = {0};
    opi_llm llm = {.struct_size = sizeof llm};
    if (!ctx && opi_ctx_create(NULL, &ctx, NULL) != OPI_OK)
        abort();
    if (size == 0)
        return 0;
    int32_t rc = opi_llm_from_config(ctx, (const char *)data, size, NULL, &llm, &err);
    check(rc, &err);
    if (rc != OPI_OK)
        return 0;
    if (llm.n_layers < 1 || llm.n_heads < 1 || llm.n_kv_heads < 1 || llm.n_kv_heads > llm.n_heads ||
        !(llm.params_b > 0) || !(llm.active_params_b <= llm.params_b) || llm.n_window_layers > llm.n_layers ||
        llm.n_kv_layers > llm.n_layers || llm.n_moe_layers > llm.n_layers || !(llm.kv_elems_per_token > 0))
        abort();
    check_memory(&llm, 1);
    check_memory(&llm, data[size - 1] % 17 + 1);
    return 0;
}
