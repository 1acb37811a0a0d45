/* SPDX-License-Identifier: Apache-2.0 */
/* Formats users bring. A new format is one file and one line in import.c's registry. */
#ifndef OPI_MODEL_IMPORT_H
#define OPI_MODEL_IMPORT_H
#include "base/json.h"
#include "facts/table_build.h"

typedef struct opi__import_format {
    const char *name;
    /* 1 when the object is a document of this format. */
    int (*match)(const opi__json *object);
    /* Adds the object's rows. A measurement that cannot be used becomes a row with its reason. */
    int32_t (*read)(opi__builder *b, const opi__json *object, opi_error *err);
} opi__import_format;

extern const opi__import_format opi__import_vllm_bench, opi__import_guidellm, opi__import_aiperf, opi__import_inferencex;

#define OPI__IMPORT_MAX_RECORDS 20000
#endif
