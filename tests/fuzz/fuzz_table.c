/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a CSV table: an error, or rows that all have a configuration or a reason, and a report that is JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "omnipilot/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds)
        abort();
}

static void check_report(const opi_table *table)
{
    opi_text *text = NULL;
    opi__json *root = NULL;
    if (opi_table_report(table, &text, NULL) < 0)
        return;
    check(opi__json_parse(opi_text_data(text), opi_text_size(text), "report", &root, NULL) == OPI_OK);
    opi__json_free(root);
    opi_text_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    opi_ctx *ctx = NULL;
    opi_table *table = NULL;
    opi_error err = {0};
    const opi_table_options options = {.struct_size = sizeof options, .format = "csv", .keep_unlabeled = size & 1};
    check(opi_ctx_create(NULL, &ctx, NULL) == OPI_OK);
    int32_t status = opi_table_parse(ctx, (const char *)data, size, &options, &table, &err);
    if (status == OPI_OK) {
        size_t n = opi_table_rows(table);
        check(n > 0);
        for (size_t i = 0; i < n; i++) {
            opi_config config = {.struct_size = sizeof config};
            int32_t usable = 1;
            check(opi_table_config(table, i, &config, &usable, NULL) == OPI_OK);
            check((usable == OPI_OK) == !opi_table_reason(table, i)[0]);
            check(usable != OPI_OK || (config.gpu && config.llm));
            check(opi_table_line(table, i) > 1);
            for (size_t t = 0; t < opi_target_count(); t++)
                check(!(opi_table_value(table, i, t) <= 0)); /* positive, or NaN */
        }
        check_report(table);
    } else {
        check(!table && err.message[0] && !strchr(err.message, '\n'));
    }
    opi_table_free(table);
    opi_ctx_destroy(ctx);
    return 0;
}
