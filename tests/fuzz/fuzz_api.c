/* SPDX-License-Identifier: Apache-2.0 */
/* A caller gone mad: the input is a sequence of API calls with arguments from palettes of sense and nonsense. After
 * each call the promises of the headers are checked: statuses, untouched outputs, ordered quantiles, probabilities. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/tiny_model.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

static opi_ctx *ctx;
static opi_model *models[2]; /* a tiny one and the default one; NULL is asked for too */
static char csv[WORLD_BYTES];
static size_t csv_size;

static void check(int holds)
{
    if (!holds)
        abort();
}

static unsigned next(input *in)
{
    if (in->size == 0)
        return 0;
    in->size--;
    return *in->data++;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const world w = {.targets = 2, .hardware = 2};
    (void)argc, (void)argv;
    check(opi_ctx_create(NULL, &ctx, NULL) == OPI_OK);
    csv_size = world_text(&w, csv);
    models[0] = tiny_model(ctx);
    check(models[0] != NULL);
    check(opi_model_load_default(ctx, &models[1], NULL) == OPI_OK);
    return 0;
}

/* ---- arguments ---- */

static double a_number(input *in)
{
    static const double palette[] = {0,   1,   8,      64,    100,    256,      1024,      4096, 131072,
                                     1e6, 1e7, 1e9,    1e308, 1e-300, .5,       .8,        .9,   .95,
                                     .99, -1,  -1e308, 16,    4,      INFINITY, -INFINITY, NAN};
    unsigned k = next(in);
    return k < 208 ? palette[k % 22] : palette[22 + k % 4];
}

static int32_t an_integer(input *in)
{
    static const int32_t palette[] = {0, 1, 2, 4, 8, 16, 3, 64, -1, 1000001, INT32_MAX, INT32_MIN};
    return palette[next(in) % (next(in) % 4 ? 6 : 12)];
}

static const char *a_text(input *in, const char *const *palette, unsigned n)
{
    unsigned k = next(in) % (n + 1);
    return k < n ? palette[k] : NULL;
}

static const char *const engines[] = {"vllm", "sglang", "tensorrt-llm", "", "no such engine"};
static const char *const precisions[] = {"bf16", "fp8", "fp4", "awq", "int3", ""};
static const char *const loads[] = {"concurrency", "rate", "batch", "offline", ""};

typedef struct question {
    opi_config config;
    opi_gpu gpu;
    opi_llm llm;
} question;

static void a_config(input *in, question *q)
{
    memset(q, 0, sizeof *q);
    q->gpu.struct_size = sizeof q->gpu;
    q->llm.struct_size = sizeof q->llm;
    check(opi_gpu_at(next(in) % opi_gpu_count(), &q->gpu, NULL) == OPI_OK);
    check(opi_llm_at(next(in) % opi_llm_count(), &q->llm, NULL) == OPI_OK);
    if (next(in) % 8 == 0) { /* an LLM of the caller's own making */
        q->llm.params_b = a_number(in), q->llm.active_params_b = a_number(in), q->llm.kv_elems_per_token = a_number(in);
        q->llm.n_heads = an_integer(in), q->llm.n_kv_heads = an_integer(in), q->llm.n_layers = an_integer(in);
        q->llm.is_moe = an_integer(in), q->llm.n_experts = an_integer(in), q->llm.head_dim = an_integer(in);
        q->llm.sliding_window = an_integer(in), q->llm.n_window_layers = an_integer(in),
        q->llm.hidden_size = an_integer(in);
    }
    if (next(in) % 8 == 0)
        q->gpu.mem_gb = a_number(in), q->gpu.mem_bw_gbs = a_number(in), q->gpu.tdp_w = a_number(in),
        q->gpu.link_gbs = a_number(in);
    q->config = (opi_config){.struct_size = sizeof q->config, .llm = &q->llm, .gpu = &q->gpu};
    q->config.n_gpus = an_integer(in), q->config.tp = an_integer(in), q->config.pp = an_integer(in);
    q->config.ep = an_integer(in), q->config.dp = an_integer(in);
    q->config.engine = a_text(in, engines, 5), q->config.precision = a_text(in, precisions, 6);
    q->config.load_kind = a_text(in, loads, 5);
    q->config.input_len = a_number(in), q->config.output_len = a_number(in), q->config.concurrency = a_number(in);
    if (next(in) % 4 == 0) {
        q->config.request_rate = a_number(in), q->config.max_context = a_number(in), q->config.mem_util = a_number(in);
        q->config.weight_bits = a_number(in), q->config.kv_bits = a_number(in);
    }
    if (next(in) % 16 == 0)
        q->config.llm = next(in) & 1 ? NULL : q->config.llm, q->config.gpu = NULL;
    if (next(in) % 16 == 0)
        q->config.struct_size = (uint32_t)(next(in) % (sizeof q->config / 8 + 1) * 8); /* never half a pointer */
}

static const opi_model *a_model(input *in)
{
    unsigned k = next(in) % 16;
    return k == 15 ? NULL : models[k & 1];
}

static void failed(int32_t status, const opi_error *err)
{
    check(status < 0 && err->code == status && err->message[0] && !strchr(err->message, '\n'));
    check(memchr(err->message, 0, sizeof err->message) != NULL);
}

/* ---- calls ---- */

static void sound(const opi_prediction *p)
{
    check(p->status >= OPI_P_OK && p->status <= OPI_P_ERROR);
    check(!(p->lo > p->p50) && !(p->p50 > p->hi) && !(p->p10 > p->p50) && !(p->p50 > p->p90) && !(p->p50 < 0));
    if (p->status == OPI_P_ERROR || p->status == OPI_P_INFEASIBLE)
        check(isnan(p->p50) && isnan(p->lo) && isnan(p->hi));
    else if (p->status != OPI_P_UNCALIBRATED)
        check(!isnan(p->p50) && !isnan(p->lo) && !isnan(p->hi) && p->lo >= 0);
}

static void call_predict(input *in)
{
    question q;
    a_config(in, &q);
    const opi_model *m = a_model(in);
    const size_t targets[] = {next(in) % 16, next(in) % 14};
    opi_predict_options o = {
        .struct_size = sizeof o, .level = a_number(in), .targets = targets, .n_targets = next(in) % 3};
    opi_prediction p[OPI__T_COUNT], before[OPI__T_COUNT];
    opi_error err = {0};
    char reason[64 + 256];
    if (next(in) & 1)
        o.targets = NULL;
    memset(p, 0x5a, sizeof p);
    memcpy(before, p, sizeof p);
    int32_t status = opi_predict(m, &q.config, 1, &o, p, sizeof *p, &err);
    if (status < 0) {
        failed(status, &err);
        check(!memcmp(p, before, sizeof p));
        return;
    }
    for (size_t i = 0; i < (o.targets ? o.n_targets : OPI__T_COUNT); i++) {
        size_t room = next(in) + 1;
        memset(reason, 0x5a, sizeof reason);
        sound(&p[i]);
        opi_predict_reason(m, &q.config, &p[i], reason, room);
        check(memchr(reason, 0, room) != NULL && reason[room] == 0x5a);
    }
}

static void call_exceed(input *in)
{
    question q;
    opi_error err = {0};
    double last = 1, probability = 7, limit = fabs(a_number(in));
    a_config(in, &q);
    const opi_model *m = a_model(in);
    size_t target = next(in) % 15;
    for (int i = 0; i < 3; i++, limit *= 2) {
        int32_t status = opi_predict_exceed(m, &q.config, target, limit, &probability, &err);
        if (status < 0) {
            failed(status, &err);
            check(probability == 7);
            return;
        }
        check(isnan(probability) || (probability >= 0 && probability <= last));
        last = isnan(probability) ? 1 : probability;
    }
}

static void call_support(input *in)
{
    question q;
    opi_error err = {0};
    opi_support s = {.struct_size = sizeof s, .nearest_distance = -7};
    a_config(in, &q);
    const opi_model *m = a_model(in);
    int32_t status = opi_predict_support(m, &q.config, next(in) % 15, &s, &err);
    if (status < 0)
        failed(status, &err);
    check(status < 0 ? s.nearest_distance == -7 : s.nearest_distance >= 0 && memchr(s.nearest, 0, sizeof s.nearest));
}

static void call_physics(input *in)
{
    question q;
    opi_error err = {0};
    opi_memory memory = {.struct_size = sizeof memory};
    opi_roofline roofline = {.struct_size = sizeof roofline, .out_tok_s = -7};
    a_config(in, &q);
    int32_t status = opi_memory_fit(&q.config, &memory, &err);
    if (status < 0)
        failed(status, &err);
    else
        check(memchr(memory.limit, 0, sizeof memory.limit) && (memory.fits != 0) == (memory.limit[0] == 0));
    status = opi_roofline_of(&q.config, &roofline, &err);
    if (status < 0)
        failed(status, &err);
    check(status < 0 ? roofline.out_tok_s == -7 : roofline.out_tok_s >= 0);
}

static int32_t stop_after(void *user, const char *stage, uint64_t step, uint64_t total)
{
    unsigned *left = user;
    check(stage[0] && step <= total);
    return (*left)-- == 0;
}

static opi_table *a_table(input *in)
{
    static char text[WORLD_BYTES];
    opi_error err = {0};
    opi_table *table = NULL;
    memcpy(text, csv, csv_size);
    for (unsigned n = next(in) % 4; n > 0; n--) {
        unsigned a = next(in), b = next(in);
        text[(a * 256 + b) % csv_size] = (char)next(in);
    }
    int32_t status = opi_table_parse(ctx, text, csv_size, NULL, &table, &err);
    if (status < 0)
        failed(status, &err);
    check((status == OPI_OK) == (table != NULL));
    return table;
}

static void call_fit(input *in)
{
    if (next(in) % 64) { /* a fit is worth a thousand other calls, in time too */
        opi_table_free(a_table(in));
        return;
    }
    opi_table *table = a_table(in);
    unsigned left = next(in) % 2;
    opi_error err = {0};
    opi_model *m = NULL;
    opi_text *text = NULL;
    const opi_fit_options fit = {.struct_size = sizeof fit, .threads = (int32_t)(next(in) % 3), .seed = next(in),
                                 .progress = stop_after, .progress_user = &left};
    const opi_evaluate_options evaluate = {.struct_size = sizeof evaluate, .threads = 1, .level = a_number(in),
                                           .progress = stop_after, .progress_user = &left};
    if (next(in) & 1) {
        int32_t status = opi_model_fit(ctx, table, &fit, &m, &err);
        if (status < 0)
            failed(status, &err);
        check((status == OPI_OK) == (m != NULL));
    } else {
        int32_t status = opi_evaluate(ctx, table, &evaluate, &text, &err);
        if (status < 0)
            failed(status, &err);
        check((status == OPI_OK) == (text != NULL));
    }
    opi_text_free(text);
    opi_model_free(m);
    opi_table_free(table);
}

static void call_advise(input *in)
{
    question q;
    opi_error err = {0};
    opi_advice *advice = NULL;
    a_config(in, &q);
    const opi_model *m = a_model(in);
    const opi_inventory inventory = {.struct_size = sizeof inventory,
                                     .count = an_integer(in),
                                     .per_node = an_integer(in),
                                     .gpu = &q.gpu,
                                     .price_usd_h = a_number(in),
                                     .queue_s = a_number(in)};
    const opi_slo slo = {.target = next(in) % 15, .limit = a_number(in)};
    const opi_advise_request r = {.struct_size = sizeof r, .llm = q.config.llm, .input_len = q.config.input_len,
                                  .output_len = q.config.output_len, .concurrency = q.config.concurrency,
                                  .request_rate = q.config.request_rate, .max_context = q.config.max_context,
                                  .inventory = &inventory, .n_inventory = 1, .slos = &slo, .n_slos = next(in) & 1,
                                  .pipeline = next(in) & 1};
    int32_t status = opi_advise(ctx, m, &r, &advice, &err);
    if (status < 0) {
        failed(status, &err);
        check(!advice);
        return;
    }
    size_t winner = 0, n = opi_advice_count(advice);
    int32_t verdict = opi_advice_verdict(advice, &winner);
    check((verdict == OPI_ADVISE_RECOMMENDED) == (winner < n) && opi_advice_feasible(advice) <= n);
    for (size_t i = 0; i < n; i++) {
        opi_candidate c = {.struct_size = sizeof c};
        check(opi_advice_candidate(advice, i, &c, NULL) == OPI_OK);
        check((c.infeasible == OPI_FEASIBLE) == (i < opi_advice_feasible(advice)));
        check(i != winner || (c.verdict != OPI_P_OOD && !c.infeasible));
    }
    opi_text *json = NULL;
    check(opi_advice_json(advice, &json, NULL) == OPI_OK);
    opi_text_free(json);
    opi_advice_free(advice);
}

static void call_model(input *in)
{
    const opi_model *m = next(in) % 8 ? models[0] : a_model(in); /* the default one is large, and always the same */
    opi_text *text = NULL;
    opi_error err = {0};
    int32_t status = next(in) & 1 ? opi_model_inspect(m, &text, &err) : opi_model_save_memory(m, &text, &err);
    if (status < 0)
        failed(status, &err);
    check((status == OPI_OK) == (m != NULL) && (text != NULL) == (m != NULL));
    opi_text_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const calls[])(input *) = {call_predict, call_exceed, call_support, call_physics, call_advise,
                                             call_predict, call_exceed, call_model,   call_fit};
    input in = {data, size};
    for (int n = 0; in.size > 0 && n < 8; n++)
        calls[next(&in) % (sizeof calls / sizeof *calls)](&in);
    return 0;
}
