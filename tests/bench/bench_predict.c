/* SPDX-License-Identifier: Apache-2.0 */
/* How long the calls take that a scheduler or an engine makes: loading, one prediction, a batch, one advice. Medians of
 * repeated runs; no test depends on them. */
#include <omnipilot/omnipilot.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 31, BATCH = 256 };

typedef struct world {
    opi_ctx *ctx;
    opi_model *model;
    opi_gpu gpu;
    opi_llm llm;
    opi_config config[BATCH];
    size_t target[3];
    opi_predict_options options;
    opi_prediction *out;
} world;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *what, int32_t (*call)(world *), world *w, int repeat, double per)
{
    double took[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        double start = now_us();
        for (int i = 0; i < repeat; i++) {
            if (call(w) < 0) {
                printf("%-44s failed\n", what);
                return;
            }
        }
        took[r] = (now_us() - start) / repeat / per;
    }
    qsort(took, ROUNDS, sizeof took[0], by_size);
    printf("%-44s %10.2f us  (%.2f ... %.2f)\n", what, took[ROUNDS / 2], took[ROUNDS / 10], took[ROUNDS * 9 / 10]);
}

static int32_t load(world *w)
{
    opi_model *m;
    int32_t rc = opi_model_load_default(w->ctx, &m, NULL);
    if (rc == OPI_OK)
        opi_model_free(m);
    return rc;
}

static int32_t memory(world *w)
{
    opi_memory m = {.struct_size = sizeof m};
    return opi_memory_fit(&w->config[0], &m, NULL);
}

static int32_t roofline(world *w)
{
    opi_roofline r = {.struct_size = sizeof r};
    return opi_roofline_of(&w->config[0], &r, NULL);
}

static int32_t predict_some(world *w, size_t n, size_t targets)
{
    w->options.n_targets = targets;
    return opi_predict(w->model, w->config, n, &w->options, w->out, sizeof *w->out, NULL);
}

static int32_t one_target(world *w) { return predict_some(w, 1, 1); }
static int32_t three_targets(world *w) { return predict_some(w, 1, 3); }
static int32_t batch(world *w) { return predict_some(w, BATCH, 3); }

static int32_t exceed(world *w)
{
    double p;
    return opi_predict_exceed(w->model, &w->config[0], w->target[0], 40, &p, NULL);
}

static int32_t advise(world *w)
{
    opi_inventory inventory = {.struct_size = sizeof inventory, .gpu = &w->gpu, .count = 8};
    opi_advise_request request = {.struct_size = sizeof request, .llm = &w->llm, .input_len = 1024, .output_len = 256,
                                  .concurrency = 64, .inventory = &inventory, .n_inventory = 1};
    opi_advice *advice;
    int32_t rc = opi_advise(w->ctx, w->model, &request, &advice, NULL);
    if (rc == OPI_OK)
        opi_advice_free(advice);
    return rc;
}

static int open_world(world *w, opi_error *err)
{
    static const char *const names[] = {"itl_p50", "ttft_p50", "throughput_out_tok_s"};
    w->gpu.struct_size = sizeof w->gpu;
    w->llm.struct_size = sizeof w->llm;
    if (opi_ctx_create(NULL, &w->ctx, err) < 0 || opi_model_load_default(w->ctx, &w->model, err) < 0 ||
        opi_gpu_find("H100-80GB-SXM", &w->gpu, err) < 0 ||
        opi_llm_find("meta-llama/Llama-3.1-70B-Instruct", &w->llm, err) < 0)
        return -1;
    for (int i = 0; i < 3; i++) {
        if (opi_target_find(names[i], &w->target[i], err) < 0)
            return -1;
    }
    w->options = (opi_predict_options){.struct_size = sizeof w->options, .targets = w->target};
    for (int i = 0; i < BATCH; i++)
        w->config[i] = (opi_config){.struct_size = sizeof w->config[i], .llm = &w->llm, .gpu = &w->gpu, .n_gpus = 4,
                                    .tp = 4, .engine = "vllm", .precision = "fp8", .load_kind = "concurrency",
                                    .input_len = 1024, .output_len = 1024, .concurrency = 1 + i};
    w->out = calloc(3 * BATCH, sizeof *w->out);
    return w->out ? 0 : -1;
}

int main(void)
{
    static world w;
    opi_error err = {.message = "out of memory"};
    if (open_world(&w, &err) < 0) {
        fprintf(stderr, "bench_predict: %s\n", err.message);
        return 1;
    }
    report("load and free the default model", load, &w, 5, 1);
    report("opi_memory_fit", memory, &w, 2000, 1);
    report("opi_roofline_of", roofline, &w, 2000, 1);
    report("opi_predict, 1 configuration, 1 target", one_target, &w, 500, 1);
    report("opi_predict, 1 configuration, 3 targets", three_targets, &w, 500, 1);
    report("opi_predict, 256 x 3, per configuration", batch, &w, 4, BATCH);
    report("opi_predict_exceed", exceed, &w, 500, 1);
    report("opi_advise, 8 x H100", advise, &w, 5, 1);
    free(w.out);
    opi_model_free(w.model);
    opi_ctx_destroy(w.ctx);
    return 0;
}
