/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/precision.h"
#include "base/text.h"

static const opi__precision table[] = {
    {"fp32", "fp32", 32, 32},       {"float32", "fp32", 32, 32}, {"bf16", "16-bit", 16, 16},
    {"bfloat16", "16-bit", 16, 16}, {"fp16", "16-bit", 16, 16},  {"float16", "16-bit", 16, 16},
    {"half", "16-bit", 16, 16},     {"fp8", "fp8", 8, 8},        {"float8", "fp8", 8, 8},
    {"fp8_e4m3", "fp8", 8, 8},      {"int8", "int8", 8, 8},      {"w8a8", "int8", 8, 8},
    {"fp4", "fp4", 4, 4},           {"nvfp4", "fp4", 4, 4},      {"mxfp4", "fp4", 4, 4},
    {"awq", "int4", 4, 16},         {"gptq", "int4", 4, 16},     {"int4", "int4", 4, 16},
    {"w4a16", "int4", 4, 16},
};

const opi__precision *opi__precision_find(const char *name)
{
    if (!name || !*name)
        return 0;
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
        if (opi__equal_nocase(table[i].name, name))
            return &table[i];
    return 0;
}
