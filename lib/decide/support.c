/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU can run: precisions and engines. A new generation or engine is a line in a table here. */
#include "base/text.h"
#include "decide/candidates.h"
#include "facts/precision.h"

#include <math.h>
#include <string.h>

#define NVIDIA 1u
#define AMD 2u
#define INTEL 4u

typedef struct generation {
    const char *arch;
    uint32_t vendor;
    int8_t bf16, fp8, fp4, int8, w4; /* w4: kernels for 4-bit weights with 16-bit arithmetic */
} generation;

static const generation generations[] = {
    {"Volta", NVIDIA, 0, 0, 0, 0, 0},           {"Turing", NVIDIA, 0, 0, 0, 1, 1},
    {"Ampere", NVIDIA, 1, 0, 0, 1, 1},          {"Ada", NVIDIA, 1, 1, 0, 1, 1},
    {"Hopper", NVIDIA, 1, 1, 0, 1, 1},          {"Blackwell", NVIDIA, 1, 1, 1, 1, 1},
    {"Blackwell Ultra", NVIDIA, 1, 1, 1, 1, 1}, {"CDNA2", AMD, 1, 0, 0, 1, 1},
    {"CDNA3", AMD, 1, 1, 0, 1, 1},              {"CDNA4", AMD, 1, 1, 1, 1, 1},
    {"Gaudi2", INTEL, 1, 1, 0, 0, 1},           {"Ponte Vecchio", INTEL, 1, 0, 0, 1, 1},
    {"Battlemage", INTEL, 1, 0, 0, 1, 1},
};

static const struct {
    const char *engine;
    uint32_t vendors;
    const char *runs_on;
} engines[] = {
    {"vllm", NVIDIA | AMD | INTEL, "NVIDIA, AMD and Intel"},
    {"sglang", NVIDIA | AMD, "NVIDIA and AMD"},
    {"tensorrt-llm", NVIDIA, "NVIDIA"},
};

/* An architecture that is not in the table (a user's own GPU) is judged by its figures alone. */
static generation generation_of(const opi_gpu *gpu)
{
    for (size_t i = 0; i < sizeof generations / sizeof *generations; i++)
        if (opi__equal_nocase(generations[i].arch, gpu->arch))
            return generations[i];
    return (generation){gpu->arch, opi__equal_nocase(gpu->arch, "RDU") ? 0 : NVIDIA | AMD | INTEL, 1,
                        gpu->fp8_tflops > 0, gpu->fp4_tflops > 0, gpu->int8_tops > 0, 1};
}

static int contains(const char *text, const char *word)
{
    for (; *text; text++) {
        size_t i = 0;
        while (word[i] && opi__lower(text[i]) == word[i])
            i++;
        if (!word[i])
            return 1;
    }
    return 0;
}

/* The precision the checkpoint itself comes in; NULL when it is not quantized. */
static const char *own_precision(const opi_llm *llm)
{
    static const char *const format[] = {"fp8", "awq", "gptq"};
    const opi__precision *own = opi__precision_find(llm->quant);
    for (size_t i = 0; i < sizeof format / sizeof *format; i++)
        if (opi__equal_nocase(llm->quant, format[i]))
            return format[i];
    if (own && own->weight_bits < 16)
        return own->cls; /* "fp4" for mxfp4, "int4" for w4a16 … */
    if (!(llm->weight_bits > 0) || llm->weight_bits > 9)
        return NULL;
    if (llm->weight_bits > 5)
        return contains(llm->name, "int8") || contains(llm->name, "w8a8") ? "int8" : "fp8";
    if (contains(llm->name, "awq"))
        return "awq";
    if (contains(llm->name, "gptq"))
        return "gptq";
    return contains(llm->name, "int4") || contains(llm->name, "w4a16") ? "int4" : "fp4";
}

int opi__precision_supported(const opi_gpu *gpu, const opi_llm *llm, const char *precision, char *why, size_t cap)
{
    const generation g = generation_of(gpu);
    const opi__precision *p = opi__precision_find(precision);
    const char *cls = p ? p->cls : "", *own = own_precision(llm);
    int ok = 1;
    if (!strcmp(precision, "bf16"))
        ok = g.bf16;
    else if (!strcmp(cls, "fp8"))
        ok = g.fp8 || gpu->fp8_tflops > 0;
    else if (!strcmp(cls, "int8"))
        ok = g.int8;
    else if (!strcmp(cls, "int4"))
        ok = g.w4;
    else if (!strcmp(cls, "fp4"))
        /* A checkpoint that comes in 4-bit floats runs elsewhere too: 16-bit arithmetic on weights kept small. */
        ok = g.fp4 || gpu->fp4_tflops > 0 || (own && !strcmp(own, "fp4") && g.bf16);
    if (!ok && !strcmp(precision, "bf16"))
        opi__format(why, cap, "%s (%s) has no bf16 arithmetic: use fp16", gpu->name, gpu->arch);
    else if (!ok)
        opi__format(why, cap, "%s (%s) does not support %s", gpu->name, gpu->arch, precision);
    return ok;
}

int opi__engine_supported(const opi_gpu *gpu, const char *engine, char *why, size_t cap)
{
    const generation g = generation_of(gpu);
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) {
        if (strcmp(engines[i].engine, engine) != 0)
            continue;
        if (g.vendor & engines[i].vendors)
            return 1;
        opi__format(why, cap, "%s runs on %s GPUs, not on %s", engine, engines[i].runs_on, gpu->name);
        return 0;
    }
    return 1; /* not one of ours: the model's verdict says whether it was measured */
}

size_t opi__default_precisions(const opi_gpu *gpu, const opi_llm *llm, const char *out[4])
{
    const char *own = own_precision(llm);
    const generation g = generation_of(gpu);
    char why[160];
    size_t n = 0;
    /* What the checkpoint comes in is always tried (and, when the GPU cannot, refused by name); then what is smaller. */
    out[n++] = own ? own : g.bf16 ? "bf16" : "fp16";
    if (!own && opi__precision_supported(gpu, llm, "fp8", why, sizeof why))
        out[n++] = "fp8";
    if ((!own || !strcmp(own, "fp8")) && opi__precision_supported(gpu, llm, "fp4", why, sizeof why))
        out[n++] = "fp4";
    return n;
}

int32_t opi__max_replicas(int32_t count, int32_t per_node, int32_t tp, int32_t pp)
{
    const int32_t stages = count / per_node * (per_node / tp) + count % per_node / tp;
    return stages / pp;
}
