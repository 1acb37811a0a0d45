/* SPDX-License-Identifier: Apache-2.0 */
/* A scheduler plug-in: the model is loaded once, then every job in the queue is advised on what is still free, placed,
 * and its GPUs are taken from the inventory. The last look before placing, opi_predict, runs under the scheduler's lock
 * and therefore uses no heap; the counting allocator below shows it. */
#include <omnipilot/omnipilot.h>

#include <stdio.h>
#include <stdlib.h>

enum { N_INVENTORY = 3 };

typedef struct plugin {
    opi_ctx *ctx;
    opi_model *model;
    opi_gpu gpu[N_INVENTORY];
    opi_inventory inventory[N_INVENTORY];
    size_t heap_calls; /* how often the library asked for memory */
} plugin;

typedef struct job {
    const char *name, *llm;
    double input_len, output_len, concurrency;
    double itl_limit_ms;
} job;

/* ---- an allocator that counts; a scheduler would pass its own pools ---- */
static void *count_alloc(void *user, size_t size)
{
    ++*(size_t *)user;
    return malloc(size);
}

static void *count_resize(void *user, void *memory, size_t size)
{
    ++*(size_t *)user;
    return realloc(memory, size);
}

static void count_release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static int fail(const char *what, const opi_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->message);
    return -1;
}

/* Once, when the scheduler loads the plug-in. */
static int plugin_open(plugin *p)
{
    static const struct {
        const char *gpu;
        int32_t count;
        double price;
    } cluster[N_INVENTORY] = {{"H100-80GB-SXM", 16, 2.50}, {"A100-80GB-SXM", 8, 1.60}, {"L40S-48GB", 8, 0.90}};
    opi_error err;
    opi_ctx_options options = {.struct_size = sizeof options,
                               .allocator = {&p->heap_calls, count_alloc, count_resize, count_release}};
    if (opi_ctx_create(&options, &p->ctx, &err) < 0)
        return fail("context", &err);
    if (opi_model_load_default(p->ctx, &p->model, &err) < 0)
        return fail("model", &err);
    for (size_t i = 0; i < N_INVENTORY; i++) {
        p->gpu[i].struct_size = sizeof p->gpu[i];
        if (opi_gpu_find(cluster[i].gpu, &p->gpu[i], &err) < 0)
            return fail(cluster[i].gpu, &err);
        p->inventory[i] = (opi_inventory){.struct_size = sizeof p->inventory[i], .gpu = &p->gpu[i],
                                          .count = cluster[i].count, .per_node = 8, .price_usd_h = cluster[i].price};
    }
    return 0;
}

static void plugin_close(plugin *p)
{
    opi_model_free(p->model);
    opi_ctx_destroy(p->ctx);
}

/* Under the lock: one prediction into a struct on the stack. */
static int last_look(plugin *p, const opi_config *config, size_t target, opi_prediction *out, opi_error *err)
{
    size_t before = p->heap_calls;
    opi_predict_options options = {.struct_size = sizeof options, .targets = &target, .n_targets = 1};
    int32_t rc = opi_predict(p->model, config, 1, &options, out, sizeof *out, err);
    if (p->heap_calls != before)
        printf("heap used under the lock\n"); /* the library promises that this line never appears */
    return rc;
}

static int place(plugin *p, const job *j, const opi_advice *advice, size_t itl)
{
    opi_error err;
    size_t winner;
    if (opi_advice_verdict(advice, &winner) != OPI_ADVISE_RECOMMENDED) {
        printf("%-8s held back: %s\n", j->name, opi_advice_sentence(advice));
        return 0;
    }
    opi_candidate c = {.struct_size = sizeof c};
    opi_prediction look;
    if (opi_advice_candidate(advice, winner, &c, &err) < 0 || last_look(p, &c.config, itl, &look, &err) < 0)
        return fail(j->name, &err);
    int32_t taken = c.config.n_gpus * c.replicas;
    p->inventory[c.inventory_index].count -= taken;
    printf("%-8s %d x %s, TP %d, %s on %s: ITL p50 %.1f ms [%.1f ... %.1f], %s; %d left\n", j->name, (int)taken,
           c.config.gpu->name, (int)c.config.tp, c.config.precision, c.config.engine, look.p50, look.lo, look.hi,
           opi_prediction_status_name(look.status), (int)p->inventory[c.inventory_index].count);
    return 0;
}

/* Per job: enumerate and rank what is free now. */
static int schedule(plugin *p, const job *j)
{
    opi_error err;
    opi_llm llm = {.struct_size = sizeof llm};
    opi_slo slo = {0, j->itl_limit_ms};
    if (opi_llm_find(j->llm, &llm, &err) < 0)
        return fail(j->llm, &err);
    if (opi_target_find("itl_p50", &slo.target, &err) < 0)
        return fail("target", &err);
    opi_advise_request request = {.struct_size = sizeof request, .llm = &llm, .input_len = j->input_len,
                                  .output_len = j->output_len, .concurrency = j->concurrency,
                                  .inventory = p->inventory, .n_inventory = N_INVENTORY, .slos = &slo, .n_slos = 1};
    opi_advice *advice = NULL;
    if (opi_advise(p->ctx, p->model, &request, &advice, &err) < 0)
        return fail(j->name, &err);
    int rc = place(p, j, advice, slo.target);
    opi_advice_free(advice);
    return rc;
}

int main(void)
{
    static const job queue[] = {
        {"chat", "meta-llama/Llama-3.1-70B-Instruct", 1024, 256, 32, 60},
        {"rag", "meta-llama/Llama-3.1-8B-Instruct", 1024, 128, 32, 40},
        {"code", "Qwen/Qwen2.5-72B-Instruct", 1024, 1024, 16, 60},
        {"huge", "meta-llama/Llama-3.1-405B-Instruct", 1024, 1024, 64, 50},
    };
    plugin p = {0};
    int rc = plugin_open(&p);
    for (size_t i = 0; rc == 0 && i < sizeof queue / sizeof queue[0]; i++)
        rc = schedule(&p, &queue[i]);
    plugin_close(&p);
    return rc == 0 ? 0 : 1;
}
