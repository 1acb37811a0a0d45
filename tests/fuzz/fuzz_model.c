/* SPDX-License-Identifier: Apache-2.0 */
/* Model files, structure-aware: a complete small model is changed as the input says, size and checksum are made
 * right again, and what still loads is predicted with, explained, inspected and saved. The first byte 0xff: the
 * input is the body itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/tiny_model.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST 32768

static opi_ctx *ctx;
static unsigned char original[MOST];
static size_t original_size;

static void check(int holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    opi_text *text = NULL;
    check(opi_ctx_create(NULL, &ctx, NULL) == OPI_OK);
    opi_model *m = tiny_model(ctx);
    check(m && opi_model_save_memory(m, &text, NULL) == OPI_OK && opi_text_size(text) <= MOST / 2);
    original_size = opi_text_size(text);
    memcpy(original, opi_text_data(text), original_size);
    opi_text_free(text);
    opi_model_free(m);
    return 0;
}

static uint64_t number(const uint8_t *p, size_t width)
{
    uint64_t v = 0;
    memcpy(&v, p, width);
    return v;
}

/* Eight bytes an edit: kind, width or length, place (16 bits), operand (32 bits). Returns the new size. */
static size_t edit(unsigned char *b, size_t size, const uint8_t *e)
{
    static const uint64_t special[] = {0, 1, UINT64_MAX, (uint64_t)1 << 63, UINT32_MAX, 0x7ff0000000000000ull,
                                       0x7ff8000000000000ull, 0x7f8000007fc00000ull, (uint64_t)1 << 61, 255};
    size_t at = number(e + 2, 2) % size, width = (size_t)1 << (e[1] & 3), length = e[1];
    uint64_t operand = number(e + 4, 4);
    switch (e[0] % 7) {
    case 0: b[at] ^= (unsigned char)(1 << (e[1] & 7)); break;
    case 1: b[at] = e[4]; break;
    case 2: /* a count, code, number or bits of a double */
        at &= ~(width - 1);
        if (at + width <= size)
            memcpy(b + at, &operand, width < 4 ? width : 4);
        break;
    case 3:
        at &= ~(width - 1);
        if (at + width <= size)
            memcpy(b + at, &special[operand % (sizeof special / sizeof *special)], width);
        break;
    case 4: /* a piece from elsewhere */
        operand %= size;
        if (at + length <= size && operand + length <= size)
            memmove(b + at, b + operand, length);
        break;
    case 5: return at > 32 ? at : size; /* cut off */
    default: /* a piece too much */
        if (size + length <= MOST) {
            memmove(b + at + length, b + at, size - at);
            size += length;
        }
        break;
    }
    return size;
}

static void predict(const opi_model *m)
{
    opi_gpu gpu;
    opi_llm llm;
    opi_config c[2];
    opi_prediction p[2 * OPI__T_COUNT];
    c[0] = c[1] = world_config(&gpu, &llm);
    c[1].engine = "sglang", c[1].precision = "fp8", c[1].concurrency = 0, c[1].tp = 4, c[1].n_gpus = 4;
    check(opi_predict(m, c, 2, NULL, p, sizeof *p, NULL) == OPI_OK);
    for (size_t i = 0; i < 2 * OPI__T_COUNT; i++) {
        char reason[200];
        double exceed = -1;
        opi_support support = {.struct_size = sizeof support};
        check(p[i].status >= OPI_P_OK && p[i].status <= OPI_P_ERROR);
        check(!(p[i].lo > p[i].p50) && !(p[i].p50 > p[i].hi) && !(p[i].p10 > p[i].p90));
        size_t n = opi_predict_reason(m, &c[i / OPI__T_COUNT], &p[i], reason, sizeof reason);
        check(strlen(reason) == (n < sizeof reason ? n : sizeof reason - 1));
        check(opi_predict_exceed(m, &c[i / OPI__T_COUNT], i % OPI__T_COUNT, 100, &exceed, NULL) == OPI_OK);
        check(isnan(exceed) || (exceed >= 0 && exceed <= 1));
        check(opi_predict_support(m, &c[i / OPI__T_COUNT], i % OPI__T_COUNT, &support, NULL) == OPI_OK);
        check(memchr(support.nearest, 0, sizeof support.nearest) != NULL);
    }
}

static void use(const opi_model *m)
{
    opi_text *text = NULL, *again = NULL, *json = NULL;
    opi_model *copy = NULL;
    predict(m);
    if (opi_model_inspect(m, &json, NULL) == OPI_OK)
        check(opi_text_data(json)[0] == '{');
    opi_text_free(json);
    check(opi_model_save_memory(m, &text, NULL) == OPI_OK);
    check(opi_model_load_memory(ctx, opi_text_data(text), opi_text_size(text), &copy, NULL) == OPI_OK);
    check(opi_model_save_memory(copy, &again, NULL) == OPI_OK);
    check(opi_text_size(again) == opi_text_size(text));
    check(!memcmp(opi_text_data(again), opi_text_data(text), opi_text_size(text)));
    opi_text_free(text), opi_text_free(again);
    opi_model_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char b[MOST];
    opi_model *m = NULL;
    opi_error err = {0};
    memcpy(b, original, original_size);
    size_t n = original_size;
    if (size > 0 && data[0] == 0xff) {
        n = size - 1 > MOST - 32 ? MOST : size + 31;
        memcpy(b + 32, data + 1, n - 32);
    } else {
        for (size_t i = 0; i + 8 <= size && i < 16 * 8; i += 8)
            n = edit(b, n, data + i);
    }
    tiny_fix(b, n);
    unsigned char *exact = malloc(n); /* of the exact size: a sanitizer sees what lies beyond */
    check(exact != NULL);
    memcpy(exact, b, n);
    int32_t status = opi_model_load_memory(ctx, exact, n, &m, &err);
    free(exact);
    if (status == OPI_OK)
        use(m);
    else
        check(!m && err.code == status && err.message[0] && !strchr(err.message, '\n'));
    opi_model_free(m);
    return 0;
}
