/* SPDX-License-Identifier: Apache-2.0 */
/* A serving engine's admission check. Before a request joins the running batch, the engine asks, while it holds its
 * scheduling lock: would the KV cache saturate, and how likely is the ITL objective to break, with one more in flight?
 * Both questions are answered without heap, locks or I/O. */
#include <omnipilot/omnipilot.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#define KV_KNEE 0.85      /* beyond this share of the KV cache engines start to preempt */
#define MAX_VIOLATION 0.1 /* admit while P(ITL p50 > limit) stays below */

typedef struct engine {
    pthread_mutex_t lock;
    const opi_model *model;
    opi_config deployment; /* what runs: fixed at launch */
    size_t itl;
    double itl_limit_ms;
    int in_flight;
} engine;

typedef enum answer { ADMIT, KV_FULL, TOO_SLOW, FAILED } answer;

/* Call with the lock held. `pressure` and `violation` explain the answer; a violation of NaN means the model may not
 * speak about this load, and the KV cache alone decides. */
static answer may_admit(const engine *e, double *pressure, double *violation, opi_error *err)
{
    opi_config next = e->deployment;
    next.concurrency = e->in_flight + 1;
    opi_memory memory = {.struct_size = sizeof memory};
    if (opi_memory_fit(&next, &memory, err) < 0 ||
        opi_predict_exceed(e->model, &next, e->itl, e->itl_limit_ms, violation, err) < 0)
        return FAILED;
    *pressure = memory.kv_pressure;
    if (!memory.fits || memory.kv_pressure > KV_KNEE)
        return KV_FULL;
    if (!isnan(*violation) && *violation > MAX_VIOLATION)
        return TOO_SLOW;
    return ADMIT;
}

/* A request arrives: admitted requests stay in flight until the engine finishes them (not shown). */
static answer on_request(engine *e, double *pressure, double *violation, opi_error *err)
{
    pthread_mutex_lock(&e->lock);
    answer a = may_admit(e, pressure, violation, err);
    if (a == ADMIT)
        e->in_flight++;
    pthread_mutex_unlock(&e->lock);
    return a;
}

static int serve(engine *e)
{
    opi_error err;
    for (int request = 1; request <= 4096; request++) {
        double pressure = 0, violation = 0;
        answer a = on_request(e, &pressure, &violation, &err);
        if (a == FAILED) {
            fprintf(stderr, "admission check: %s\n", err.message);
            return 1;
        }
        int show = a != ADMIT || (request & (request - 1)) == 0; /* 1, 2, 4, 8, …: enough to see the trend */
        if (show)
            printf("request %4d: KV cache %3.0f %%, P(ITL p50 > %.0f ms) = %.2f, %s\n", request, 100 * pressure,
                   e->itl_limit_ms, violation,
                   a == ADMIT ? "admitted" : a == KV_FULL ? "refused: KV cache" : "refused: too slow");
        if (a != ADMIT)
            return 0;
    }
    printf("4096 requests admitted; the limit lies beyond\n");
    return 0;
}

int main(void)
{
    opi_error err;
    opi_ctx *ctx = NULL;
    opi_model *model = NULL;
    opi_gpu gpu = {.struct_size = sizeof gpu};
    opi_llm llm = {.struct_size = sizeof llm};
    engine e = {.lock = PTHREAD_MUTEX_INITIALIZER, .itl_limit_ms = 40};
    int rc = 1;
    if (opi_ctx_create(NULL, &ctx, &err) < 0 || opi_model_load_default(ctx, &model, &err) < 0 ||
        opi_gpu_find("H100-80GB-SXM", &gpu, &err) < 0 ||
        opi_llm_find("meta-llama/Llama-3.1-70B-Instruct", &llm, &err) < 0 ||
        opi_target_find("itl_p50", &e.itl, &err) < 0) {
        fprintf(stderr, "start-up: %s\n", err.message);
    } else {
        e.model = model;
        e.deployment = (opi_config){.struct_size = sizeof e.deployment, .llm = &llm, .gpu = &gpu, .n_gpus = 4, .tp = 4,
                                    .engine = "vllm", .precision = "fp8", .load_kind = "concurrency",
                                    .input_len = 1024, .output_len = 1024, .max_context = 4096};
        rc = serve(&e);
    }
    opi_model_free(model);
    opi_ctx_destroy(ctx);
    return rc;
}
