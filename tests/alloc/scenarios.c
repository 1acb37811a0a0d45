/* SPDX-License-Identifier: Apache-2.0 */
#include "scenarios.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Never a valid pointer: shows whether a failing call wrote to its output. */
static char untouched_mark;
#define UNTOUCHED ((void *)&untouched_mark)

static void settle(int32_t rc, const void *out, const char **problem)
{
    if (rc < 0 && out != UNTOUCHED)
        *problem = "the output was touched on failure";
    if (rc == OPI_OK && out == UNTOUCHED)
        *problem = "success without an output";
}

static int32_t run_context(const char **problem)
{
    opi_ctx *ctx = UNTOUCHED;
    int32_t rc = metered_context(&ctx);
    settle(rc, ctx, problem);
    if (rc == OPI_OK)
        opi_ctx_destroy(ctx);
    return rc;
}

static const char csv[] =
    "source,license,engine,model,precision,gpu,n_gpus,tp,input_len,output_len,concurrency,load_kind,launch_ok,"
    "throughput_out_tok_s,ttft_ms_p50,itl_ms_p50,made_up_column\n"
    "mine,Apache-2.0,vllm,meta-llama/Llama-3.1-70B-Instruct,fp8,H100-80GB-SXM,4,4,1024,256,32,concurrency,1,"
    "900.5,310,31.5,x\n"
    "mine,Apache-2.0,vllm,meta-llama/Llama-3.1-70B-Instruct,fp8,H100-80GB-SXM,4,4,1024,256,64,concurrency,1,"
    "1500,410,\"38.25\",y\n"
    "mine,Apache-2.0,vllm,no/such-model,fp8,H100-80GB-SXM,4,4,1024,256,64,concurrency,1,1500,410,38,z\n";

static int32_t run_table(const char **problem)
{
    opi_ctx *ctx = NULL;
    opi_table *table = UNTOUCHED;
    opi_text *text = UNTOUCHED;
    int32_t rc = metered_context(&ctx);
    if (rc < 0)
        return rc;
    rc = opi_table_parse(ctx, csv, sizeof csv - 1, NULL, &table, NULL);
    settle(rc, table, problem);
    if (rc == OPI_OK) {
        if (opi_table_rows(table) != 3)
            *problem = "the table has not three rows";
        rc = opi_table_report(table, &text, NULL);
        settle(rc, text, problem);
        if (rc == OPI_OK)
            opi_text_free(text);
        opi_table_free(table);
    }
    opi_ctx_destroy(ctx);
    return rc;
}

static int32_t run_llm_config(const char **problem)
{
    static const char json[] = "{\"model_type\": \"llama\", \"num_hidden_layers\": 32, \"hidden_size\": 4096,"
                               " \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"vocab_size\": 128256,"
                               " \"intermediate_size\": 14336, \"max_position_embeddings\": 8192}";
    opi_ctx *ctx = NULL;
    opi_llm llm = {.struct_size = sizeof llm, .n_layers = -7};
    int32_t rc = metered_context(&ctx);
    if (rc < 0)
        return rc;
    rc = opi_llm_from_config(ctx, json, sizeof json - 1, "mine", &llm, NULL);
    if (rc < 0 && llm.n_layers != -7)
        *problem = "the output was touched on failure";
    if (rc == OPI_OK && llm.n_layers != 32)
        *problem = "not 32 layers";
    opi_ctx_destroy(ctx);
    return rc;
}

/* A loaded default model, or a status. */
static int32_t with_model(opi_ctx **ctx, opi_model **model, const char **problem)
{
    int32_t rc = metered_context(ctx);
    if (rc < 0)
        return rc;
    *model = UNTOUCHED;
    rc = opi_model_load_default(*ctx, model, NULL);
    settle(rc, *model, problem);
    if (rc < 0)
        opi_ctx_destroy(*ctx);
    return rc;
}

static int32_t run_load(const char **problem)
{
    opi_ctx *ctx;
    opi_model *model;
    int32_t rc = with_model(&ctx, &model, problem);
    if (rc < 0)
        return rc;
    opi_model_free(model);
    opi_ctx_destroy(ctx);
    return rc;
}

static int32_t run_save(const char **problem)
{
    opi_ctx *ctx;
    opi_model *model, *again = UNTOUCHED;
    opi_text *text = UNTOUCHED;
    int32_t rc = with_model(&ctx, &model, problem);
    if (rc < 0)
        return rc;
    rc = opi_model_save_memory(model, &text, NULL);
    settle(rc, text, problem);
    if (rc == OPI_OK) {
        rc = opi_model_load_memory(ctx, opi_text_data(text), opi_text_size(text), &again, NULL);
        settle(rc, again, problem);
        if (rc == OPI_OK)
            opi_model_free(again);
        opi_text_free(text);
    }
    opi_model_free(model);
    opi_ctx_destroy(ctx);
    return rc;
}

static int32_t run_inspect(const char **problem)
{
    opi_ctx *ctx;
    opi_model *model;
    opi_text *text = UNTOUCHED;
    int32_t rc = with_model(&ctx, &model, problem);
    if (rc < 0)
        return rc;
    rc = opi_model_inspect(model, &text, NULL);
    settle(rc, text, problem);
    if (rc == OPI_OK)
        opi_text_free(text);
    opi_model_free(model);
    opi_ctx_destroy(ctx);
    return rc;
}

static int32_t run_advise(const char **problem)
{
    opi_ctx *ctx;
    opi_model *model;
    opi_advice *advice = UNTOUCHED;
    opi_text *text = UNTOUCHED;
    opi_gpu gpu = {.struct_size = sizeof gpu};
    opi_llm llm = {.struct_size = sizeof llm};
    int32_t rc = with_model(&ctx, &model, problem);
    if (rc < 0)
        return rc;
    if (opi_gpu_find("H100-80GB-SXM", &gpu, NULL) < 0 ||
        opi_llm_find("meta-llama/Llama-3.1-70B-Instruct", &llm, NULL) < 0)
        *problem = "a name is not in the tables";
    opi_inventory inventory = {.struct_size = sizeof inventory, .gpu = &gpu, .count = 8};
    opi_advise_request request = {.struct_size = sizeof request, .llm = &llm, .input_len = 1024, .output_len = 256,
                                  .concurrency = 64, .inventory = &inventory, .n_inventory = 1};
    rc = opi_advise(ctx, model, &request, &advice, NULL);
    settle(rc, advice, problem);
    if (rc == OPI_OK) {
        rc = opi_advice_json(advice, &text, NULL);
        settle(rc, text, problem);
        if (rc == OPI_OK)
            opi_text_free(text);
        opi_advice_free(advice);
    }
    opi_model_free(model);
    opi_ctx_destroy(ctx);
    return rc;
}

/* A small smooth world: enough rows for a fit, few enough for hundreds of fits. Returns the length. */
static size_t small_world(char *buffer, size_t size)
{
    static const char *const gpus[] = {"H100-80GB-SXM", "A100-80GB-SXM", "L40S-48GB"};
    static const double speed[] = {1.0, 0.6, 0.35};
    size_t used = (size_t)snprintf(buffer, size, "source,license,engine,model,precision,gpu,n_gpus,tp,input_len,"
                                   "output_len,concurrency,load_kind,launch_ok,throughput_out_tok_s,itl_ms_p50\n");
    for (size_t g = 0; g < 3; g++) {
        for (int tp = 1; tp <= 4; tp *= 2) {
            for (int c = 1; c <= 64; c *= 2) {
                for (int length = 128; length <= 1024 && used < size; length *= 2) {
                    double itl = (8.0 + 0.2 * c + 0.002 * length) / speed[g] / sqrt(tp);
                    used += (size_t)snprintf(buffer + used, size - used,
                                             "mine,Apache-2.0,vllm,meta-llama/Llama-3.1-8B-Instruct,bf16,%s,%d,%d,%d,"
                                             "256,%d,concurrency,1,%d,%d\n", gpus[g], tp, tp, length, c,
                                             (int)(1000.0 * c / itl), (int)(itl + 0.5));
                }
            }
        }
    }
    return used;
}

static int32_t run_fit(const char **problem)
{
    static char world[65536];
    size_t size = small_world(world, sizeof world);
    opi_ctx *ctx = NULL;
    opi_table *table = UNTOUCHED;
    opi_model *model = UNTOUCHED;
    int32_t rc = metered_context(&ctx);
    if (rc < 0)
        return rc;
    rc = opi_table_parse(ctx, world, size, NULL, &table, NULL);
    settle(rc, table, problem);
    if (rc == OPI_OK) {
        opi_fit_options options = {.struct_size = sizeof options, .threads = 1, .learner = "boost"};
        rc = opi_model_fit(ctx, table, &options, &model, NULL);
        settle(rc, model, problem);
        if (rc == OPI_OK)
            opi_model_free(model);
        opi_table_free(table);
    }
    opi_ctx_destroy(ctx);
    return rc;
}

static const char event_log[] =
    "{\"kind\":\"recovered\",\"redone\":1,\"phases_s\":{\"detected\":0.2,\"revoked\":0.01,\"agreed\":0.02,"
    "\"classified\":0.03,\"assigned\":0.04,\"rebuilt\":0.05,\"restored\":0.6,\"resumed\":0.05}}\n";

static int32_t run_plan(const char **problem)
{
    opi_ctx *ctx = NULL;
    opi_plan *plan = UNTOUCHED;
    opi_text *text = UNTOUCHED;
    opi_plan_options o = {.struct_size = sizeof o}, before;
    int32_t rc = metered_context(&ctx);
    if (rc < 0)
        return rc;
    o.gpus = 64;
    o.node_mtbf_h = 30;
    o.replays = 2;
    o.days = 2;
    o.policy = OPI_PLAN_SHRINK;
    o.arrivals = OPI_PLAN_CLUSTERED;
    o.sweep = 1;
    before = o;
    rc = opi_plan_from_run(ctx, event_log, sizeof event_log - 1, &o, NULL, NULL);
    if (rc < 0 && memcmp(&o, &before, sizeof o) != 0)
        *problem = "the options were touched on failure";
    if (rc == OPI_OK) {
        rc = opi_plan_run(ctx, &o, &plan, NULL);
        settle(rc, plan, problem);
    }
    if (rc == OPI_OK) {
        rc = opi_plan_json(plan, &text, NULL);
        settle(rc, text, problem);
        if (rc == OPI_OK)
            opi_text_free(text);
        opi_plan_free(plan);
    }
    opi_ctx_destroy(ctx);
    return rc;
}

static const char choices[] =
    "choice,chosen,usd_per_h,out_tok_s,queue_s\n"
    "a,1,10,1000,0\na,0,12,1500,60\nb,0,10,1000,0\nb,1,12,2500,60\nc,0,9,1000,600\n\"c\",1,9.5,1000,60\n"
    "d,1,9,900,3600\nd,0,20,1000,60\ne,0,9,1100,100\ne,1,8,1000,500\nf,1,7,10,1\nf,0,7,12,1\n";

static int32_t run_preferences(const char **problem)
{
    opi_ctx *ctx = NULL;
    opi_preferences *p = UNTOUCHED;
    opi_text *text = UNTOUCHED;
    int32_t rc = metered_context(&ctx);
    if (rc < 0)
        return rc;
    rc = opi_preferences_fit(ctx, choices, sizeof choices - 1, NULL, &p, NULL);
    settle(rc, p, problem);
    if (rc == OPI_OK) {
        rc = opi_preferences_json(p, &text, NULL);
        settle(rc, text, problem);
        if (rc == OPI_OK)
            opi_text_free(text);
        opi_preferences_free(p);
    }
    opi_ctx_destroy(ctx);
    return rc;
}

const scenario scenarios[] = {
    {"context", run_context, 1, 400},
    {"table", run_table, 3, 400},
    {"llm-config", run_llm_config, 1, 400},
    {"load", run_load, 2, 400},
    {"save", run_save, 3, 100},
    {"inspect", run_inspect, 3, 100},
    {"advise", run_advise, 4, 200},
    {"preferences", run_preferences, 8, 40},
    {"plan", run_plan, 40, 40},
    {"fit", run_fit, 10, 10},
    {NULL, NULL, 0, 0},
};
