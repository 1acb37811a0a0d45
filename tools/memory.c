/* SPDX-License-Identifier: Apache-2.0 */
/* memory: the breakdown of one configuration, with its signed margin. */
#include "config.h"
#include "memory_view.h"
#include "out.h"

#include <math.h>

void memory_members(const opi_memory *m)
{
    json_bool("fits", m->fits);
    json_text("limit", *m->limit ? m->limit : NULL);
    json_number("total_gib", m->total_gib);
    json_number("usable_gib", m->usable_gib);
    json_number("weights_gib", m->weights_gib);
    json_number("activation_gib", m->activation_gib);
    json_number("runtime_gib", m->runtime_gib);
    json_number("kv_gib", m->kv_gib);
    json_number("kv_bytes_per_token", m->kv_bytes_per_token);
    json_number("kv_tokens", m->kv_tokens);
    json_number("kv_needed_tokens", m->kv_needed_tokens);
    json_number("margin_gib", m->margin_gib);
    json_number("kv_pressure", m->kv_pressure);
}

static void line(size_t indent, const char *name, double gib)
{
    char num[OUT_NUM];
    snprintf(num, sizeof num, isfinite(gib) ? "%.2f" : "-", gib);
    out_printf("%*s%-32s %10s GiB\n", (int)indent, "", name, num);
}

void memory_print(const opi_config *c, const opi_memory *m, size_t indent)
{
    char a[OUT_NUM], b[OUT_NUM], d[OUT_NUM];
    int pad = (int)indent;
    if (!m->fits && (!isfinite(m->margin_gib) || m->margin_gib >= 0 || m->weights_gib <= 0)) {
        out_printf("%*s%scannot run:%s ", pad, "", out_on(OUT_BAD),
                   out_off()); /* does not divide: a margin says nothing */
        out_wrap(indent + 12, indent, *m->limit ? m->limit : "this configuration cannot exist");
        return;
    }
    line(indent, "device memory, per GPU", m->total_gib);
    line(indent, "usable", m->usable_gib);
    line(indent, "- weights", m->weights_gib);
    line(indent, "- activations", m->activation_gib);
    line(indent, "- runtime", m->runtime_gib);
    line(indent, "= left for the KV cache", m->kv_gib);
    char text[240];
    snprintf(text, sizeof text, "KV cache: %s KiB per token and GPU; holds %s tokens; one full-length request needs %s",
             out_human(a, m->kv_bytes_per_token / 1024, 4), out_human(b, floor(m->kv_tokens), 15),
             out_human(d, m->kv_needed_tokens, 8));
    out_printf("%*s", pad, "");
    out_wrap(indent, indent + 2, text);
    if (c->concurrency > 0 && isfinite(m->kv_pressure) && m->kv_pressure > 0) {
        out_printf("%*sKV demand of %s requests at once: %s %% of the cache\n", pad, "",
                   out_human(a, c->concurrency, 6), out_human(b, 100 * m->kv_pressure, 3));
    }
    out_printf("%*s%smargin: %+.2f GiB, %s%s\n", pad, "", out_on(m->fits ? OUT_GOOD : OUT_BAD), m->margin_gib,
               m->fits ? "fits" : "does not fit", out_off());
    if (!m->fits && *m->limit) {
        out_printf("%*s", pad, "");
        out_wrap(indent, indent, m->limit);
    }
}

static int show(const args *a, const config_in *in)
{
    opi_memory m = {.struct_size = sizeof m};
    opi_error err;
    char where[256], load[160];
    if (opi_memory_fit(&in->config, &m, &err)) {
        return tool_error(&err, NULL);
    }
    if (args_has(a, "json")) {
        json_begin_object(NULL);
        json_text("schema", "omnipilot.memory");
        json_int("version", 1);
        json_begin_object("config");
        config_json(&in->config);
        json_end_object();
        memory_members(&m);
        json_end_object();
    } else {
        out_printf("%s%s%s on %s\n", out_on(OUT_BOLD), in->llm.name, out_off(),
                   config_where(where, sizeof where, &in->config));
        if (in->config.input_len > 0) {
            out_printf("%s\n", config_load(load, sizeof load, &in->config));
        }
        if (*in->assumed) {
            out_printf("Not stated, taken: %s\n", in->assumed);
        }
        out_puts("\n");
        memory_print(&in->config, &m, 0);
    }
    return m.fits ? X_OK : X_NONE;
}

int run_memory(const args *a)
{
    opi_ctx *ctx = NULL;
    config_in in;
    int status = tool_context(&ctx);
    status = status ? status : config_from_args(ctx, a, 0, &in);
    status = status ? status : show(a, &in);
    opi_ctx_destroy(ctx);
    return status;
}

static const opt_def options[] = {
    {"llm", "NAME|config.json", 0, "the LLM: a name of 'omnipilot llms', or a Hugging Face config.json"},
    {"gpu", "NAME", 0, "the GPU: a name of 'omnipilot gpus'"},
    {"tp", "N", 0, "tensor-parallel degree (default 1)"},
    {"pp", "N", 0, "pipeline-parallel degree (default 1)"},
    {"dp", "N", 0, "data-parallel degree (default 1)"},
    {"ep", "N", 0, "expert-parallel degree"},
    {"precision", "NAME", 0,
     "of the weights: bf16, fp16, fp8, fp4, int8, awq, gptq … (default: the checkpoint's own, else "
     "bf16)"},
    {"kv-bits", "BITS", 0, "bits per cached element (default: the checkpoint's own, else 16)"},
    {"max-context", "TOKENS", 0, "tokens one request may need (default: input + output when stated)"},
    {"mem-util", "SHARE", 0, "share of the device memory the engine may take (default 0.9)"},
    {"input", "TOKENS", 0, "mean prompt length"},
    {"output", "TOKENS", 0, "mean generated length"},
    {"concurrency", "N", 0, "requests at once, for the KV demand"},
    {"engine", "NAME", 0, "vllm, sglang, tensorrt-llm …"},
    {"json", NULL, 0, "print JSON"},
    {NULL, NULL, 0, NULL},
};

const verb verb_memory = {
    .name = "memory",
    .summary = "does it fit? the memory breakdown of one configuration and its margin",
    .usage = "--llm LLM --gpu GPU [options]",
    .about =
        "Weights, activations, runtime and KV cache of one configuration, per GPU in GiB, with the signed margin. Exit "
        "status 4 when it does not fit or does not divide.",
    .examples = "  omnipilot memory --llm llama-3.1-70b --gpu H100-80GB-SXM --tp 4 --max-context 32768\n"
                "  omnipilot memory --llm ./config.json --gpu L40S --precision fp8 --kv-bits 8 --json\n",
    .options = options,
    .run = run_memory,
};
