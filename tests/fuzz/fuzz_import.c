/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a document of a format that is recognized from the content, with and without the caller's defaults. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "omnipilot/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds)
        abort();
}

static void read_once(opi_ctx *ctx, const uint8_t *data, size_t size, const opi_config *defaults)
{
    opi_table *table = NULL;
    opi_error err = {0};
    opi_text *text = NULL;
    const opi_table_options options = {.struct_size = sizeof options, .defaults = defaults};
    int32_t status = opi_table_parse(ctx, (const char *)data, size, &options, &table, &err);
    if (status < 0) {
        check(!table && err.message[0] && !strchr(err.message, '\n'));
        return;
    }
    for (size_t i = 0; i < opi_table_rows(table); i++) {
        opi_config config = {.struct_size = sizeof config};
        int32_t usable = 1;
        check(opi_table_config(table, i, &config, &usable, NULL) == OPI_OK);
        check(usable != OPI_OK || (config.gpu && config.llm));
        check((usable == OPI_OK) == !opi_table_reason(table, i)[0]);
    }
    if (opi_table_report(table, &text, NULL) == OPI_OK)
        opi_text_free(text);
    opi_table_free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    opi_ctx *ctx = NULL;
    opi_gpu gpu = {.struct_size = sizeof gpu};
    opi_llm llm = {.struct_size = sizeof llm};
    check(opi_ctx_create(NULL, &ctx, NULL) == OPI_OK);
    check(opi_gpu_at(0, &gpu, NULL) == OPI_OK && opi_llm_at(0, &llm, NULL) == OPI_OK);
    const opi_config defaults = {.struct_size = sizeof defaults, .gpu = &gpu, .llm = &llm, .tp = 1, .engine = "vllm"};
    read_once(ctx, data, size, NULL);
    read_once(ctx, data, size, &defaults);
    opi_ctx_destroy(ctx);
    return 0;
}
