/* SPDX-License-Identifier: Apache-2.0 */
/* gpus and llms: the compiled-in facts. */
#include "out.h"
#include "tool.h"

#include <math.h>
#include <string.h>

static const char *mark(uint32_t flags)
{
    return flags & OPI_FACT_VERIFIED ? "verified" : flags & OPI_FACT_RECALLED ? "recalled" : "not marked";
}

static void pair(const char *name, const char *value)
{
    out_printf("  %-26s ", name);
    out_wrap(29, 29, *value ? value : "-");
}

static void pair_number(const char *name, double v, const char *unit)
{
    char num[OUT_NUM], line[OUT_NUM + 48];
    snprintf(line, sizeof line, "%s%s%s", out_human(num, v, 6), isnan(v) ? "" : " ", isnan(v) ? "" : unit);
    pair(name, line);
}

static void cell_number(out_table *t, double v, int digits)
{
    char num[OUT_NUM];
    out_cell(t, out_human(num, v, digits));
}

/* ---- gpus ---- */
static void gpu_json(const opi_gpu *g)
{
    json_begin_object(NULL);
    json_text("name", g->name);
    json_text("arch", g->arch);
    json_int("year", g->year);
    json_number("mem_gb", g->mem_gb);
    json_number("mem_bw_gbs", g->mem_bw_gbs);
    json_number("fp16_tflops", g->fp16_tflops);
    json_number("fp8_tflops", g->fp8_tflops);
    json_number("int8_tops", g->int8_tops);
    json_number("fp4_tflops", g->fp4_tflops);
    json_text("link", g->link);
    json_number("link_gbs", g->link_gbs);
    json_number("tdp_w", g->tdp_w);
    json_number("price_ondemand_usd_h", g->price_ondemand_usd_h);
    json_number("price_rental_usd_h", g->price_rental_usd_h);
    json_text("mark", mark(g->flags));
    json_text("source", g->source);
    json_end_object();
}

static void gpu_show(const opi_gpu *g)
{
    char year[16];
    snprintf(year, sizeof year, "%d", g->year);
    out_printf("%s%s%s\n", out_on(OUT_BOLD), g->name, out_off());
    pair("architecture", g->arch);
    pair("year", g->year ? year : "-");
    pair_number("memory", g->mem_gb, "GB");
    pair_number("memory bandwidth", g->mem_bw_gbs, "GB/s");
    pair_number("FP16 dense peak", g->fp16_tflops, "TFLOP/s");
    pair_number("FP8 dense peak", g->fp8_tflops, "TFLOP/s");
    pair_number("INT8 dense peak", g->int8_tops, "TOP/s");
    pair_number("FP4 dense peak", g->fp4_tflops, "TFLOP/s");
    pair("link", g->link);
    pair_number("link, one direction", g->link_gbs, "GB/s");
    pair_number("power limit", g->tdp_w, "W");
    pair_number("price on demand (cited)", g->price_ondemand_usd_h, "$/h");
    pair_number("price rental (cited)", g->price_rental_usd_h, "$/h");
    pair("mark", mark(g->flags));
    pair("source", g->source);
}

static void gpu_table(void)
{
    static const char *const heads[] = {"GPU",     ">mem GB",    ">GB/s",  ">FP16 TF", ">FP8 TF",
                                        ">FP4 TF", ">link GB/s", ">TDP W", ">$/h",     "mark"};
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < opi_gpu_count(); i++) {
        opi_gpu g = {.struct_size = sizeof g};
        if (opi_gpu_at(i, &g, NULL)) {
            continue;
        }
        out_cell(t, g.name);
        cell_number(t, g.mem_gb, 5);
        cell_number(t, g.mem_bw_gbs, 6);
        cell_number(t, g.fp16_tflops, 5);
        cell_number(t, g.fp8_tflops, 5);
        cell_number(t, g.fp4_tflops, 5);
        cell_number(t, g.link_gbs, 5);
        cell_number(t, g.tdp_w, 5);
        cell_number(t, g.price_ondemand_usd_h, 4);
        out_cell(t, mark(g.flags));
    }
    out_table_end(t, 0);
    out_puts("\n");
    out_wrap(0, 0,
             "TF: dense peak, TFLOP/s; $/h: a cited on-demand price per GPU; '-' means that no cited source states the "
             "figure. 'recalled': at "
             "least one figure is not confirmed by a stored source ('omnipilot gpus NAME' shows it).");
}

int run_gpus(const args *a)
{
    opi_gpu one;
    int json = args_has(a, "json");
    if (a->n_operands) {
        int status = tool_gpu("gpu", a->operands[0], &one);
        if (status) {
            return status;
        }
        if (json) {
            gpu_json(&one);
        } else {
            gpu_show(&one);
        }
        return X_OK;
    }
    if (!json) {
        gpu_table();
        return X_OK;
    }
    json_begin_object(NULL);
    json_text("schema", "omnipilot.gpus");
    json_int("version", 1);
    json_begin_array("gpus");
    for (size_t i = 0; i < opi_gpu_count(); i++) {
        opi_gpu g = {.struct_size = sizeof g};
        if (!opi_gpu_at(i, &g, NULL)) {
            gpu_json(&g);
        }
    }
    json_end_array();
    json_end_object();
    return X_OK;
}

static const opt_def json_only[] = {{"json", NULL, 0, "print JSON"}, {NULL, NULL, 0, NULL}};

const verb verb_gpus = {
    .name = "gpus",
    .summary = "the GPUs it knows: memory, bandwidth, peaks, link, power, cited prices",
    .usage = "[NAME] [--json]",
    .about = "Lists the compiled-in GPU table, or everything about one GPU. Names may be abbreviated (H100-80GB-SXM, "
             "h100-sxm, A100 80GB); an ambiguous one lists its candidates.",
    .examples = "  omnipilot gpus\n  omnipilot gpus H200\n  omnipilot gpus --json\n",
    .options = json_only,
    .max_operands = 1,
    .run = run_gpus,
};

/* ---- llms ---- */
static void llm_json(const opi_llm *m)
{
    json_begin_object(NULL);
    json_text("name", m->name);
    json_text("family", m->family);
    json_text("arch", m->arch);
    json_text("attention", m->attention);
    json_number("params_b", m->params_b);
    json_number("active_params_b", m->active_params_b);
    json_int("n_layers", m->n_layers);
    json_int("n_kv_layers", m->n_kv_layers);
    json_int("hidden_size", m->hidden_size);
    json_int("intermediate_size", m->intermediate_size);
    json_int("n_heads", m->n_heads);
    json_int("n_kv_heads", m->n_kv_heads);
    json_int("head_dim", m->head_dim);
    json_int("vocab_size", m->vocab_size);
    json_int("max_context", m->max_context);
    json_bool("is_moe", m->is_moe > 0);
    json_int("n_experts", m->n_experts);
    json_int("experts_per_token", m->experts_per_token);
    json_int("moe_intermediate_size", m->moe_intermediate_size);
    json_int("kv_lora_rank", m->kv_lora_rank);
    json_int("qk_rope_head_dim", m->qk_rope_head_dim);
    json_int("sliding_window", m->sliding_window);
    json_number("kv_elems_per_token", m->kv_elems_per_token);
    json_number("weight_bits", m->weight_bits);
    json_number("kv_bits", m->kv_bits);
    json_text("quant", *m->quant ? m->quant : NULL);
    json_text("mark", mark(m->flags));
    json_text("source", m->source);
    json_end_object();
}

static void pair_int(const char *name, int32_t v, const char *unit)
{
    if (v) {
        pair_number(name, v, unit);
    }
}

static void llm_show(const opi_llm *m)
{
    out_printf("%s%s%s\n", out_on(OUT_BOLD), m->name, out_off());
    pair("family", m->family);
    pair("architecture", m->arch);
    pair("attention", m->attention);
    pair_number("parameters", m->params_b, "billion");
    pair_number("active per token", m->active_params_b, "billion");
    pair_int("layers", m->n_layers, "");
    pair_int("layers with a KV cache", m->n_kv_layers, "");
    pair_int("hidden size", m->hidden_size, "");
    pair_int("attention heads", m->n_heads, "");
    pair_int("KV heads", m->n_kv_heads, "");
    pair_int("head dimension", m->head_dim, "");
    pair_int("vocabulary", m->vocab_size, "");
    pair_int("longest context", m->max_context, "tokens");
    pair_int("sliding window", m->sliding_window, "tokens");
    pair_int("experts", m->n_experts, "");
    pair_int("experts per token", m->experts_per_token, "");
    pair_number("KV cache at 16 bits", m->kv_elems_per_token * 2 / 1024, "KiB per token");
    pair("checkpoint format", *m->quant ? m->quant : "16 bits");
    pair("mark", mark(m->flags));
    pair("source", m->source);
}

static void llm_table(void)
{
    static const char *const heads[] = {"LLM", ">params", ">active", ">context", "attention", "mark"};
    out_table *t = out_table_new(heads, sizeof heads / sizeof heads[0]);
    out_table_flex(t, 0);
    for (size_t i = 0; i < opi_llm_count(); i++) {
        opi_llm m = {.struct_size = sizeof m};
        if (opi_llm_at(i, &m, NULL)) {
            continue;
        }
        out_cell(t, m.name);
        cell_number(t, m.params_b, 4);
        cell_number(t, m.active_params_b, 4);
        cell_number(t, m.max_context ? m.max_context : NAN, 8);
        out_cell(t, m.attention);
        out_cell(t, mark(m.flags));
    }
    out_table_end(t, 0);
    out_puts("\n");
    out_wrap(0, 0,
             "params: billions, all and active per token; context: longest, tokens. 'recalled': not confirmed by a "
             "stored config. 'omnipilot llms NAME' shows everything about one. Any other model: pass its Hugging Face "
             "config.json to --llm.");
}

int run_llms(const args *a)
{
    int json = args_has(a, "json"), status = 0;
    if (a->n_operands) {
        opi_llm one;
        opi_ctx *ctx = NULL;
        status = tool_context(&ctx);
        status = status ? status : tool_llm(ctx, a->operands[0], &one, NULL);
        if (!status && json) {
            llm_json(&one);
        } else if (!status) {
            llm_show(&one);
        }
        opi_ctx_destroy(ctx);
        return status;
    }
    if (!json) {
        llm_table();
        return X_OK;
    }
    json_begin_object(NULL);
    json_text("schema", "omnipilot.llms");
    json_int("version", 1);
    json_begin_array("llms");
    for (size_t i = 0; i < opi_llm_count(); i++) {
        opi_llm m = {.struct_size = sizeof m};
        if (!opi_llm_at(i, &m, NULL)) {
            llm_json(&m);
        }
    }
    json_end_array();
    json_end_object();
    return X_OK;
}

const verb verb_llms = {
    .name = "llms",
    .summary = "the LLM architectures it knows; any other comes from its config.json",
    .usage = "[NAME | config.json] [--json]",
    .about = "Lists the compiled-in LLM table, or everything about one LLM: a name people use (llama-3.1-70b), or the "
             "path of "
             "a Hugging Face config.json.",
    .examples =
        "  omnipilot llms\n  omnipilot llms Qwen/Qwen2.5-72B-Instruct\n  omnipilot llms ./checkpoint/config.json\n",
    .options = json_only,
    .max_operands = 1,
    .run = run_llms,
};
