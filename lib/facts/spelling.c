/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/spelling.h"
#include "base/text.h"
#include <stddef.h>

static const char *const engines[][2] = {
    {"vllm", "vllm"},
    {"sglang", "sglang"},
    {"tensorrt-llm", "tensorrt-llm"},
    {"tensorrt_llm", "tensorrt-llm"},
    {"tensorrtllm", "tensorrt-llm"},
    {"tensorrt", "tensorrt-llm"},
    {"trt-llm", "tensorrt-llm"},
    {"trtllm", "tensorrt-llm"},
    {"trt", "tensorrt-llm"},
    {"tgis", "tgis"},
    {"llama.cpp", "llama.cpp"},
    {"llamacpp", "llama.cpp"},
    {"deepspeed", "deepspeed"},
    {"deepspeed-mii", "deepspeed-mii"},
    {"sambaflow", "sambaflow"},
    {NULL, NULL},
};
static const char *const precisions[][2] = {
    {"bf16", "bf16"}, {"bfloat16", "bf16"}, {"fp16", "fp16"}, {"float16", "fp16"}, {"half", "fp16"},
    {"fp32", "fp32"}, {"float32", "fp32"},  {"fp8", "fp8"},   {"float8", "fp8"},   {"fp8_e4m3", "fp8"},
    {"int8", "int8"}, {"w8a8", "int8"},     {"fp4", "fp4"},   {"nvfp4", "fp4"},    {"mxfp4", "fp4"},
    {"awq", "awq"},   {"gptq", "gptq"},     {"int4", "int4"}, {"w4a16", "int4"},   {NULL, NULL},
};
static const char *const loads[][2] = {
    {"concurrency", "concurrency"},
    {"closed", "concurrency"},
    {"rate", "rate"},
    {"open", "rate"},
    {"batch", "batch"},
    {"static", "batch"},
    {"offline", "offline"},
    {NULL, NULL},
};

static const char *spell(const char *const (*table)[2], const char *name)
{
    if (!name)
        return NULL;
    for (; (*table)[0]; table++)
        if (opi__equal_nocase(name, (*table)[0]))
            return (*table)[1];
    return name;
}

const char *opi__spell_engine(const char *name)
{
    return spell(engines, name);
}
const char *opi__spell_precision(const char *name)
{
    return spell(precisions, name);
}
const char *opi__spell_load(const char *name)
{
    return spell(loads, name);
}
