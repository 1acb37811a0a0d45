/* SPDX-License-Identifier: Apache-2.0 */
/* advise --emit launch: the server's command line, and the load test that checks the prediction. Option names as the
 * engines' own documentation has them (vLLM serve and bench serve, SGLang launch_server and bench_serving,
 * trtllm-serve). */
#include "advise_view.h"
#include "config.h"
#include "out.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORDS 64
#define MOST_NOTES 6

typedef struct command {
    char *word[MOST_WORDS];
    size_t n;
} command;

static void add(command *c, const char *word)
{
    if (c->n < MOST_WORDS) {
        c->word[c->n++] = tool_copy(word, strlen(word));
    }
}

static void add_option(command *c, const char *option, const char *value)
{
    add(c, option);
    add(c, value);
}

static void add_number(command *c, const char *option, double v)
{
    char num[OUT_NUM];
    add_option(c, option, out_exact(num, v));
}

static void release(command *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->word[i]);
    }
}

/* What one launch needs to know. */
typedef struct plan {
    const opi_candidate *c;
    const char *model;
    double context, at_once, rate; /* of one replica */
    double input, output;
    double mem_util;
    int fp8_kv;
    const char *notes[MOST_NOTES];
    size_t n_notes;
} plan;

static void remark(plan *p, const char *text)
{
    if (p->n_notes < MOST_NOTES) {
        p->notes[p->n_notes++] = text;
    }
}

static int is(const char *a, const char *b)
{
    return a && args_distance(a, b) == 0;
}

/* The server's weight-format options. Formats that live in the checkpoint need the right checkpoint, not an option. */
static void add_precision(command *c, plan *p, const char *dtype_option, const char *quant_option)
{
    const char *precision = p->c->config.precision;
    const opi_llm *llm = p->c->config.llm;
    int own = llm->weight_bits > 0 && llm->weight_bits <= 8; /* the checkpoint itself is quantized */
    if (is(precision, "bf16")) {
        add_option(c, dtype_option, "bfloat16");
    } else if (is(precision, "fp16")) {
        add_option(c, dtype_option, "float16");
    } else if (is(precision, "fp8")) {
        if (!own && quant_option) {
            add_option(c, quant_option, "fp8");
        } else if (!own) {
            remark(p, "MODEL must be an fp8 checkpoint: this server does not quantize while loading");
        }
    } else if (precision && !own) {
        remark(p, "the chosen precision needs a checkpoint quantized to it: replace the model's name");
    }
}

static void vllm(command *c, plan *p)
{
    const opi_config *f = &p->c->config;
    add(c, "vllm");
    add_option(c, "serve", p->model);
    add_number(c, "--tensor-parallel-size", f->tp);
    if (f->pp > 1) {
        add_number(c, "--pipeline-parallel-size", f->pp);
    }
    if (f->dp > 1) {
        add_number(c, "--data-parallel-size", f->dp);
    }
    if (f->ep > 1) {
        add(c, "--enable-expert-parallel");
    }
    add_precision(c, p, "--dtype", "--quantization");
    if (p->fp8_kv) {
        add_option(c, "--kv-cache-dtype", "fp8");
    }
    add_number(c, "--max-model-len", p->context);
    add_number(c, "--max-num-seqs", p->at_once);
    add_number(c, "--gpu-memory-utilization", p->mem_util);
}

static void sglang(command *c, plan *p)
{
    const opi_config *f = &p->c->config;
    add(c, "python");
    add_option(c, "-m", "sglang.launch_server");
    add_option(c, "--model-path", p->model);
    add_number(c, "--tp-size", f->tp);
    if (f->pp > 1) {
        add_number(c, "--pp-size", f->pp);
    }
    if (f->dp > 1) {
        add_number(c, "--dp-size", f->dp);
    }
    if (f->ep > 1) {
        add_number(c, "--ep-size", f->ep);
    }
    add_precision(c, p, "--dtype", "--quantization");
    if (p->fp8_kv) {
        add_option(c, "--kv-cache-dtype", "fp8_e4m3");
    }
    add_number(c, "--context-length", p->context);
    add_number(c, "--max-running-requests", p->at_once);
    add_number(c, "--mem-fraction-static", p->mem_util);
    add_number(c, "--port", 8000);
}

static void trtllm(command *c, plan *p)
{
    const opi_config *f = &p->c->config;
    command none = {.n = 0};
    add(c, "trtllm-serve");
    add(c, p->model);
    add_number(c, "--tp_size", f->tp);
    if (f->pp > 1) {
        add_number(c, "--pp_size", f->pp);
    }
    if (f->ep > 1) {
        add_number(c, "--ep_size", f->ep);
    }
    add_precision(&none, p, "", NULL); /* for its remarks: the type of the weights is the checkpoint's */
    release(&none);
    if (p->fp8_kv) {
        remark(p, "the KV cache is planned at 8 bits: set kv_cache_config.dtype to fp8 in the server's YAML options");
    }
    add_number(c, "--max_seq_len", p->context);
    add_number(c, "--max_batch_size", p->at_once);
    add_number(c, "--kv_cache_free_gpu_memory_fraction", p->mem_util);
}

static void load_test(command *c, const plan *p, int engine)
{
    /* Ten waves of requests reach a steady state; a handful at least. */
    double prompts = fmax(32, ceil(10 * (p->rate > 0 ? p->rate * 10 : p->at_once)));
    if (engine == 1) {
        add(c, "python");
        add_option(c, "-m", "sglang.bench_serving");
        add_option(c, "--backend", "sglang");
        add_number(c, "--port", 8000);
    } else if (engine == 2) {
        add(c, "python");
        add_option(c, "-m", "tensorrt_llm.serve.scripts.benchmark_serving");
        add_option(c, "--backend", "openai");
        add_number(c, "--port", 8000);
    } else {
        add(c, "vllm");
        add_option(c, "bench", "serve");
        add_number(c, "--port", 8000);
    }
    add_option(c, "--model", p->model);
    add_option(c, "--dataset-name", "random");
    add_number(c, "--random-input-len", rint(p->input));
    add_number(c, "--random-output-len", rint(p->output));
    if (engine == 1) {
        add_number(c, "--random-range-ratio", 1); /* SGLang: the shortest as a share of the longest */
    } else {
        add(c, "--ignore-eos");
        add_option(c, "--percentile-metrics", "ttft,tpot,itl,e2el");
        add_option(c, "--metric-percentiles", "50,95");
    }
    if (p->rate > 0) {
        add_number(c, "--request-rate", p->rate);
    } else {
        add_number(c, "--max-concurrency", p->at_once);
    }
    add_number(c, "--num-prompts", prompts);
}

/* ---- printing ---- */
static int plain_word(const char *w)
{
    if (!*w) {
        return 0;
    }
    for (; *w; w++) {
        if (!isalnum((unsigned char)*w) && !strchr("-_./:,=+@%", *w)) {
            return 0;
        }
    }
    return 1;
}

static void print_word(const char *w)
{
    if (plain_word(w)) {
        out_puts(w);
        return;
    }
    out_puts("'");
    for (; *w; w++) {
        if (*w == '\'') {
            out_puts("'\\''");
        } else {
            out_bytes(w, 1);
        }
    }
    out_puts("'");
}

static void print_command(const command *c)
{
    size_t column = 0;
    for (size_t i = 0; i < c->n; i++) {
        int option = i > 0 && c->word[i][0] == '-' && c->word[i][1] == '-';
        size_t pair = strlen(c->word[i]) + (i + 1 < c->n ? strlen(c->word[i + 1]) + 1 : 0);
        if (option && column + pair > 92) {
            out_puts(" \\\n    ");
            column = 4;
        } else if (i) {
            out_puts(" ");
            column++;
        }
        print_word(c->word[i]);
        column += strlen(c->word[i]);
    }
    out_puts("\n");
}

static void print_expected(const advise_view *v, const opi_candidate *c)
{
    static const char *const names[] = {"throughput_out_tok_s", "ttft_ms_p50", "itl_ms_p50"};
    char num[4 * OUT_NUM];
    for (size_t i = 0; i < 3; i++) {
        size_t t = advise_target(names[i]);
        opi_target_info info = {.struct_size = sizeof info};
        opi_prediction p;
        if (t == SIZE_MAX || opi_advice_prediction(v->advice, v->winner, t, &p, sizeof p, NULL) ||
            opi_target_at(t, &info, NULL)) {
            continue;
        }
        out_printf("#   %s: %s %s\n", info.title, out_interval(num, p.p50, p.lo, p.hi), info.unit);
    }
    if (c->replicas > 1) {
        out_printf("# Start it %d times, on GPUs of its own each; the figures are those of one replica.\n",
                   c->replicas);
    }
}

static void json_words(const char *key, const command *c)
{
    json_begin_array(key);
    for (size_t i = 0; i < c->n; i++) {
        json_text(NULL, c->word[i]);
    }
    json_end_array();
}

static void print_json(const plan *p, const command *serve, const command *test)
{
    json_begin_object(NULL);
    json_text("schema", "omnipilot.launch");
    json_int("version", 1);
    json_begin_object("config");
    config_json(&p->c->config);
    json_end_object();
    json_int("replicas", p->c->replicas);
    json_words("serve", serve);
    json_words("load_test", test);
    json_begin_array("notes");
    for (size_t i = 0; i < p->n_notes; i++) {
        json_text(NULL, p->notes[i]);
    }
    json_end_array();
    json_end_object();
}

static void print_script(const advise_view *v, const plan *p, const command *serve, const command *test)
{
    char where[256], safe[256];
    out_printf("# %s, replicas: %d\n", out_clean(safe, sizeof safe, config_where(where, sizeof where, &p->c->config)),
               p->c->replicas);
    if (p->c->verdict != OPI_P_OK) {
        out_printf("# %s: %s\n", opi_prediction_status_name(p->c->verdict), out_clean(safe, sizeof safe, p->c->reason));
    }
    for (size_t i = 0; i < p->n_notes; i++) {
        out_printf("# Note: %s\n", p->notes[i]);
    }
    print_command(serve);
    out_printf("\n# Once it answers, check the prediction (%.4g %% intervals):\n", 100 * v->level);
    print_expected(v, p->c);
    print_command(test);
}

int launch_print(const advise_view *v, int json)
{
    static void (*const servers[])(command *, plan *) = {vllm, sglang, trtllm};
    static const char *const engines[] = {"vllm", "sglang", "tensorrt-llm"};
    opi_candidate c = {.struct_size = sizeof c};
    opi_error err;
    int engine = 0;
    if (v->winner == SIZE_MAX) {
        return 0; /* nothing to launch: the caller says why and exits 3 or 4 */
    }
    if (opi_advice_candidate(v->advice, v->winner, &c, &err)) {
        return tool_error(&err, NULL);
    }
    while (engine < 3 && !is(c.config.engine, engines[engine])) {
        engine++;
    }
    if (engine == 3) {
        return tool_fail(X_FAIL,
                         "--emit: no launch command is known for the engine '%s' of the winner; --engine "
                         "vllm,sglang,tensorrt-llm limits the choice to those that have one",
                         c.config.engine ? c.config.engine : "");
    }
    command serve = {.n = 0}, test = {.n = 0};
    plan p = {.c = &c, .model = v->llm_path ? v->llm_path : c.config.llm->name};
    p.input = c.config.input_len;
    p.output = c.config.output_len;
    p.context = ceil(fmax(c.config.max_context, p.input + p.output));
    p.rate = c.config.request_rate;
    p.at_once = ceil(c.config.concurrency > 0 ? c.config.concurrency : 256);
    p.mem_util = c.config.mem_util > 0 ? c.config.mem_util : 0.9;
    p.fp8_kv = c.config.kv_bits > 0 && c.config.kv_bits <= 8;
    servers[engine](&serve, &p);
    load_test(&test, &p, engine);
    if (json) {
        print_json(&p, &serve, &test);
    } else {
        print_script(v, &p, &serve, &test);
    }
    release(&serve);
    release(&test);
    return 0;
}
