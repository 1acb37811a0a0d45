/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled-in default model: default.opi beside this file, made by `./dev default-model` (docs/model-format.md). */
#include "base/status.h"
#include "default_model_stamp.h"
#include "model/model.h"

/* Read-only bytes of the file, 64-byte aligned so that arrays can be read in place. ELF and Mach-O assemblers both know
 * .incbin; OPI__DEFAULT_MODEL is its path, from the build. */
#ifdef __APPLE__
#define SECTION      ".const_data\n"
#define SYMBOL(name) "_" name
#define HIDDEN       ".private_extern "
#define RESTORE      ".text\n"
#else
#define SECTION      ".pushsection .rodata\n"
#define SYMBOL(name) name
#define HIDDEN       ".hidden "
#define RESTORE      ".popsection\n"
#endif
__asm__(SECTION ".balign 64\n"
                ".globl " SYMBOL("opi__default_model_begin") "\n" HIDDEN SYMBOL("opi__default_model_begin") "\n" SYMBOL(
                    "opi__default_model_begin") ":\n"
                                                ".incbin \"" OPI__DEFAULT_MODEL "\"\n"
                                                ".globl " SYMBOL("opi__default_model_end") "\n" HIDDEN
                                                    SYMBOL("opi__default_model_end") "\n" SYMBOL(
                                                        "opi__default_model_end") ":\n"
                                                                                  ".byte 0\n" RESTORE);
extern const unsigned char opi__default_model_begin[], opi__default_model_end[];

int32_t opi_model_load_default(opi_ctx *ctx, opi_model **out, opi_error *err)
{
    if (!ctx || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "ctx or out is NULL");
    return opi__model_load(ctx, opi__default_model_begin, (size_t)(opi__default_model_end - opi__default_model_begin),
                           NULL, out, err);
}
