/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up but smooth world of measurements, for the suites that need a fitted model. Every number follows from
 * the row's position, so that a test knows what was measured where:
 *
 * 3 LLMs x 4 loads x 3 lengths = 36 cells, each on up to 8 configurations of hardware (those that hold the LLM),
 * all with vllm, a third of them with sglang too; fp8 only on H100; sglang never on L40S. throughput_out_tok_s and
 * ttft_ms_p50 in every row, power on H100, cold_start_s in every 60th row (too few to learn). */
#ifndef TEST_MODEL_WORLD_H
#define TEST_MODEL_WORLD_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "facts/schema.h"
#include "omnipilot/omnipilot.h"

#define WORLD_LLM "meta-llama/Llama-3.1-8B-Instruct"
#define WORLD_BYTES 131072
#define WORLD_MOST_ROWS 1024

typedef struct world {
    int targets;        /* 1: throughput only; 2: and TTFT; 3: and power, on H100 */
    size_t hardware;    /* configurations of hardware a cell; 0 = all 8 */
    uint64_t order;     /* 0 = as made; else a seed to permute the lines */
    uint64_t shuffle;   /* 0 = honest; else a seed to permute the labels among the rows */
    int one_fold;       /* 1 … 5: cells are renamed until their fold of the fold rule is one_fold - 1 */
    int mix;            /* 1: the workload is a named mix instead of fixed lengths */
    int loads;          /* 1: eight loads instead of four, 72 cells */
    int part;           /* 1 or 2: only the one or the other half of the cells */
    int campaigns;      /* 2: every other load was measured by "made-up-too" */
    int seconds;        /* 1: and that campaign wrote seconds into ttft_ms_p50 */
    int blind;          /* 1: the precision is not stated */
    const char *without; /* initials of GPUs that are left out */
} world;

typedef struct world_row {
    const char *source, *llm, *gpu, *engine, *precision;
    int tp, input, output, concurrency;
    double tok_s, ttft, power;
    int power_known;
    char workload[32];
} world_row;

static const char *const world_llms[] = {WORLD_LLM, "Qwen/Qwen2.5-14B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"};
static const double world_sizes[] = {8, 14, 70};

/* The fold of the row's cell, spelled out again here: FNV-1a-64 of its raw texts, modulo 5. */
static inline uint64_t world_cell(const world_row *r)
{
    char text[256];
    snprintf(text, sizeof text, "%s|%s|%s|%d|%d|%d|concurrency|", r->source, r->llm, r->workload, r->input, r->output,
             r->concurrency);
    uint64_t h = 0xcbf29ce484222325ull;
    for (const char *c = text; *c; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001b3ull;
    return h;
}

/* About 3 % of noise that belongs to the row. */
static inline double world_noise(const world_row *r, int target)
{
    uint64_t h = world_cell(r) ^
                 opi__mix64((uint64_t)(r->tp * 64 + r->gpu[0] * 8 + r->precision[0] + r->engine[0] * 4096 + target));
    return 1 + .06 * ((double)(opi__mix64(h) >> 11) * 0x1p-53 - .5);
}

static inline void world_measure(world_row *r, double size)
{
    double speed = r->gpu[0] == 'H' ? 1 : r->gpu[0] == 'A' ? .6 : .3, c = r->concurrency;
    if (r->precision[0] == 'f')
        speed *= 1.5;
    if (r->engine[0] == 's')
        speed *= 1.1;
    speed *= pow(r->tp, .8) / size;
    r->tok_s = 1200 * speed * c / (1 + c / 40) / (1 + r->input / 8000.) * world_noise(r, 0);
    r->ttft = 4 * pow(r->input, .9) / 100 / speed * (1 + c / 60) * world_noise(r, 1);
    r->power = (r->gpu[0] == 'H' ? 600 : r->gpu[0] == 'A' ? 350 : 300) * (1 - .4 / (1 + c / 8)) * world_noise(r, 2);
    r->power_known = r->gpu[0] == 'H';
}

static inline size_t world_rows(const world *w, world_row *rows)
{
    static const struct { const char *gpu, *precision; int tp, gb; } hardware[] = {
        {"H100-80GB-SXM", "bf16", 1, 80}, {"A100-80GB-SXM", "bf16", 4, 80}, {"L40S-48GB", "bf16", 8, 48},
        {"H100-80GB-SXM", "fp8", 4, 80}, {"H100-80GB-SXM", "bf16", 4, 80}, {"H100-80GB-SXM", "fp8", 1, 80},
        {"A100-80GB-SXM", "bf16", 2, 80}, {"L40S-48GB", "bf16", 2, 48}};
    static const int load[] = {1, 8, 32, 128, 2, 4, 16, 64}, length[][2] = {{128, 128}, {1024, 256}, {2048, 1024}};
    size_t n = 0;
    for (int m = 0; m < 3; m++)
        for (int l = 0; l < (w->loads ? 8 : 4); l++)
            for (int k = 0; k < 3; k++)
                for (size_t h = 0, taken = 0; h < 8 && taken < (w->hardware ? w->hardware : 8); h++) {
                    if (world_sizes[m] * (hardware[h].precision[0] == 'f' ? 1 : 2) >
                        0.8 * hardware[h].gb * hardware[h].tp ||
                        (w->without && strchr(w->without, hardware[h].gpu[0])))
                        continue;
                    taken++;
                    for (int e = 0; e < (hardware[h].gpu[0] != 'L' && k == 1 ? 2 : 1); e++) {
                        world_row r = {.source = w->campaigns > 1 && l % 2 ? "made-up-too" : "made-up",
                                       .llm = world_llms[m], .gpu = hardware[h].gpu, .engine = e ? "sglang" : "vllm",
                                       .precision = hardware[h].precision, .tp = hardware[h].tp, .input = length[k][0],
                                       .output = length[k][1], .concurrency = load[l], .workload = "fixed-made-up"};
                        for (int t = 0; w->one_fold && world_cell(&r) % 5 != (uint64_t)w->one_fold - 1; t++)
                            snprintf(r.workload, sizeof r.workload, "fixed-%d", t);
                        if (w->part && opi__mix64(world_cell(&r)) % 2 != (uint64_t)w->part - 1)
                            continue;
                        if (w->mix)
                            strcpy(r.workload, "chatter");
                        world_measure(&r, world_sizes[m]);
                        rows[n++] = r;
                    }
            }
    return n;
}

/* The table as CSV text; returns its length. buffer: WORLD_BYTES. */
static inline size_t world_text(const world *w, char *buffer)
{
    static world_row rows[WORLD_MOST_ROWS];
    static uint32_t line[WORLD_MOST_ROWS], label[WORLD_MOST_ROWS];
    size_t n = world_rows(w, rows);
    opi__rng rng;
    for (size_t i = 0; i < n; i++)
        line[i] = label[i] = (uint32_t)i;
    opi__rng_seed(&rng, w->order);
    if (w->order)
        opi__rng_shuffle(&rng, line, n);
    opi__rng_seed(&rng, w->shuffle);
    if (w->shuffle)
        opi__rng_shuffle(&rng, label, n);
    size_t at = (size_t)snprintf(buffer, WORLD_BYTES,
                                 "source,license,engine,model,precision,gpu,n_gpus,tp,input_len,output_len,"
                                 "concurrency,load_kind,workload,launch_ok,throughput_out_tok_s,ttft_ms_p50,"
                                 "power_w_per_gpu,cold_start_s\n");
    for (size_t i = 0; i < n; i++) {
        const world_row *r = &rows[line[i]], *m = &rows[label[line[i]]];
        char ttft[32] = "", power[32] = "";
        if (w->targets > 1)
            snprintf(ttft, sizeof ttft, "%.6g", w->seconds && strlen(r->source) > 7 ? m->ttft / 1000 : m->ttft);
        if (w->targets > 2 && m->power_known)
            snprintf(power, sizeof power, "%.6g", m->power);
        at += (size_t)snprintf(buffer + at, WORLD_BYTES - at,
                               "%s,CC0-1.0,%s,%s,%s,%s,%d,%d,%d,%d,%d,concurrency,%s,1,%.6g,%s,%s,%s\n", r->source,
                               r->engine, r->llm, w->blind ? "" : r->precision, r->gpu, r->tp, r->tp, r->input,
                               r->output, r->concurrency, r->workload, m->tok_s, ttft, power, line[i] % 60 ? "" : "75");
    }
    return at;
}

/* NULL on failure. */
static inline opi_table *world_table(opi_ctx *ctx, const world *w)
{
    static char text[WORLD_BYTES];
    opi_table *table = NULL;
    size_t size = world_text(w, text);
    return opi_table_parse(ctx, text, size, NULL, &table, NULL) == OPI_OK ? table : NULL;
}

/* A configuration of the world that was measured (the first LLM, H100, bf16, TP 1, 1024 + 256 tokens, 8 requests);
 * gpu and llm are filled in. */
static inline opi_config world_config(opi_gpu *gpu, opi_llm *llm)
{
    *gpu = (opi_gpu){.struct_size = sizeof *gpu};
    *llm = (opi_llm){.struct_size = sizeof *llm};
    if (opi_gpu_find("H100-80GB-SXM", gpu, NULL) != OPI_OK || opi_llm_find(WORLD_LLM, llm, NULL) != OPI_OK)
        return (opi_config){0};
    return (opi_config){.struct_size = sizeof(opi_config), .n_gpus = 1, .tp = 1, .llm = llm, .gpu = gpu,
                        .engine = "vllm", .precision = "bf16", .load_kind = "concurrency", .input_len = 1024,
                        .output_len = 256, .concurrency = 8};
}
#endif
