/* SPDX-License-Identifier: Apache-2.0 */
/* inspect: what a model is made of and knows. */
#include "json_view.h"
#include "out.h"
#include "tool.h"

#include <math.h>
#include <string.h>

int run_inspect(const args *a) {
    opi_ctx *ctx = NULL;
    opi_model *model = NULL;
    opi_text *text = NULL;
    opi_error err;
    int status = tool_context(&ctx);
    status = status ? status : tool_model(ctx, a, &model);
    if (!status && opi_model_inspect(model, &text, &err)) {
        status = tool_error(&err, NULL);
    }
    if (!status && args_has(a, "json")) {
        out_bytes(opi_text_data(text), opi_text_size(text));
        out_puts("\n");
    } else if (!status) {
        cJSON *root = jv_parse(opi_text_data(text), opi_text_size(text));
        if (root) {
            jv_print_any(root, 0);
            cJSON_Delete(root);
        } else {
            status = X_FAIL;
        }
    }
    opi_text_free(text);
    opi_model_free(model);
    opi_ctx_destroy(ctx);
    return status;
}

static const opt_def options[] = {
    {"model", "FILE", 0, "a model of 'omnipilot fit' (default: the compiled-in one)"},
    {"json", NULL, 0, "print JSON"},
    {NULL, NULL, 0, NULL},
};

const verb verb_inspect = {
    .name = "inspect",
    .summary = "what a model was made from and what it knows",
    .usage = "[--model FILE] [--json]",
    .about = "The manifest (sources, licenses, row counts, hash of the training table, software), the targets, the axes with "
             "their measured ranges, the calibration groups, the size.",
    .examples = "  omnipilot inspect\n  omnipilot inspect --model mine.opim --json\n",
    .options = options,
    .run = run_inspect,
};
