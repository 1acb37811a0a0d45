/* SPDX-License-Identifier: Apache-2.0 */
/* A question about three GPU types, asked of the model of fake_oracle.h; setup() is the fixture. */
#ifndef TEST_FAKE_WORLD_H
#define TEST_FAKE_WORLD_H
#include "fake_oracle.h"

#include <check.h>

static opi_ctx *ctx;
static opi_llm llm;
static opi_gpu h100, a100, h200;
static opi_inventory lines[3];
static opi_advise_request request;
static fake model;

static inline void setup(void)
{
    ck_assert_int_eq(opi_ctx_create(NULL, &ctx, NULL), OPI_OK);
    llm = fake_llm();
    h100 = fake_gpu("H100-80GB-SXM");
    a100 = fake_gpu("A100-80GB-SXM");
    h200 = fake_gpu("H200-141GB");
    lines[0] = (opi_inventory){.struct_size = sizeof *lines, .count = 8, .gpu = &h100, .price_usd_h = 3};
    lines[1] = (opi_inventory){.struct_size = sizeof *lines, .count = 8, .gpu = &a100, .price_usd_h = 2};
    lines[2] = (opi_inventory){.struct_size = sizeof *lines, .count = 8, .gpu = &h200, .price_usd_h = 4};
    request = fake_request(&llm, lines, 3);
    model = (fake){0};
}

static inline void teardown(void)
{
    opi_ctx_destroy(ctx);
}

static inline opi_advice *advise(void)
{
    const opi__oracle oracle = fake_oracle(&model);
    opi_advice *a = NULL;
    opi_error err = {0};
    ck_assert_msg(opi__advise_with(ctx, &oracle, &request, &a, &err) == OPI_OK, "%s", err.message);
    return a;
}

static inline opi_candidate at(const opi_advice *a, size_t rank)
{
    opi_candidate c = {.struct_size = sizeof c};
    ck_assert_int_eq(opi_advice_candidate(a, rank, &c, NULL), OPI_OK);
    return c;
}

static inline opi_candidate winner_of(const opi_advice *a)
{
    size_t w = SIZE_MAX;
    ck_assert_int_eq(opi_advice_verdict(a, &w), OPI_ADVISE_RECOMMENDED);
    return at(a, w);
}

static inline int has_note(const opi_advice *a, const char *code)
{
    for (size_t i = 0; i < a->n_notes; i++)
        if (!strcmp(a->notes[i].code, code))
            return 1;
    return 0;
}

static inline void slo(const char *name, double limit, opi_slo *out)
{
    ck_assert_int_eq(opi_target_find(name, &out->target, NULL), OPI_OK);
    out->limit = limit;
    request.slos = out;
    request.n_slos = 1;
}
#endif
