/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "base/take.h"
#include "decide/advice.h"
#include "decide/everyday.h"
#include "decide/explain.h"
#include "decide/load.h"
#include "decide/probe.h"
#include "decide/rank.h"
#include "decide/score.h"

#include <math.h>
#include <string.h>

static int32_t rank_all(opi_advice *a, opi_error *err)
{
    a->order = opi__alloc(a->ctx, a->cands.n, sizeof *a->order);
    if (!a->order)
        return opi__fail_memory(err, a->cands.n * sizeof *a->order);
    opi__rank(a->cands.v, a->cands.n, a->order);
    while (a->n_feasible < a->cands.n && !opi__ranked(a, a->n_feasible)->pub.infeasible)
        a->n_feasible++;
    opi__pick(a);
    return OPI_OK;
}

static void look_up_rank(opi_advice *a, const opi__oracle *oracle, size_t rank)
{
    opi_support *s = &a->support[a->n_support];
    opi_error ignored;
    *s = (opi_support){.struct_size = sizeof *s};
    if (oracle->support(oracle->user, &opi__ranked(a, rank)->pub.config, OPI__T_OUT_TOK_S, s, &ignored) == OPI_OK)
        a->support_rank[a->n_support++] = rank;
}

/* What the first ranks and the winner rest on. A model that cannot say leaves it out. */
static void look_up_support(opi_advice *a, const opi__oracle *oracle)
{
    for (size_t r = 0; r < a->n_feasible && r < OPI__SUPPORTED - 1; r++)
        look_up_rank(a, oracle, r);
    if (a->winner != SIZE_MAX && a->winner >= OPI__SUPPORTED - 1)
        look_up_rank(a, oracle, a->winner);
}

static int32_t decide(opi_advice *a, const opi__oracle *oracle, opi_error *err)
{
    opi__cands bases = {.ctx = a->ctx};
    int32_t rc = opi__enumerate(&a->ask, &bases, err);
    if (!rc)
        rc = opi__share_load(&a->ask, oracle, &bases, &a->cands, &a->converted, err);
    opi__cands_free(&bases);
    if (!rc)
        rc = opi__score_all(a, oracle, err);
    if (!rc)
        rc = rank_all(a, err);
    if (rc)
        return rc;
    opi__take_notes(a);
    opi__explain(a);
    opi__probe(a);
    look_up_support(a, oracle);
    return OPI_OK;
}

int32_t opi__advise_with(opi_ctx *ctx, const opi__oracle *oracle, const opi_advise_request *request, opi_advice **out,
                         opi_error *err)
{
    opi_advice *a = opi__zalloc(ctx, 1, sizeof *a);
    if (!a)
        return opi__fail_memory(err, sizeof *a);
    a->ctx = ctx;
    a->cands.ctx = ctx;
    opi__arena_init(&a->arena, ctx);
    int32_t rc = opi__ask_take(&a->arena, request, &a->ask, err);
    if (!rc)
        rc = decide(a, oracle, err);
    if (rc) {
        opi_advice_free(a);
        return rc;
    }
    *out = a;
    return OPI_OK;
}

/* ---- the real model behind the seam ---- */

static int32_t model_predict(const void *user, const opi_config *configs, size_t n, const opi_predict_options *options,
                             opi_prediction *out, opi_error *err)
{
    return opi_predict(user, configs, n, options, out, sizeof *out, err);
}

static int32_t model_exceed(const void *user, const opi_config *config, size_t target, double limit, double *probability,
                            opi_error *err)
{
    return opi_predict_exceed(user, config, target, limit, probability, err);
}

static size_t model_reason(const void *user, const opi_config *config, const opi_prediction *prediction, char *buf,
                           size_t size)
{
    return opi_predict_reason(user, config, prediction, buf, size);
}

static int32_t model_support(const void *user, const opi_config *config, size_t target, opi_support *out, opi_error *err)
{
    return opi_predict_support(user, config, target, out, err);
}

int32_t opi_advise(opi_ctx *ctx, const opi_model *model, const opi_advise_request *request, opi_advice **out,
                   opi_error *err)
{
    if (!ctx || !model || !request || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_advise: %s is NULL",
                         !ctx ? "ctx" : !model ? "model" : !request ? "request" : "out");
    const opi__oracle oracle = {model, model_predict, model_exceed, model_reason, model_support};
    return opi__advise_with(ctx, &oracle, request, out, err);
}

int32_t opi_evaluate_everyday(opi_ctx *ctx, const opi_model *model, opi_text **out, opi_error *err)
{
    if (!ctx || !model || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_evaluate_everyday: %s is NULL",
                         !ctx ? "ctx" : !model ? "model" : "out");
    const opi__oracle oracle = {model, model_predict, model_exceed, model_reason, model_support};
    return opi__everyday_with(ctx, &oracle, out, err);
}

/* ---- the answer ---- */

void opi_advice_free(opi_advice *advice)
{
    if (!advice)
        return;
    opi_ctx *ctx = advice->ctx;
    opi__cands_free(&advice->cands);
    opi__free(ctx, advice->predictions);
    opi__free(ctx, advice->violations);
    opi__free(ctx, advice->order);
    opi__arena_free(&advice->arena);
    opi__free(ctx, advice);
}

int32_t opi_advice_verdict(const opi_advice *advice, size_t *winner)
{
    if (winner)
        *winner = advice ? advice->winner : SIZE_MAX;
    return advice ? advice->verdict : OPI_ADVISE_NOTHING_FEASIBLE;
}

size_t opi_advice_count(const opi_advice *advice)
{
    return advice ? advice->cands.n : 0;
}

size_t opi_advice_feasible(const opi_advice *advice)
{
    return advice ? advice->n_feasible : 0;
}

static int32_t check_rank(const opi_advice *a, size_t rank, size_t end, const char *what, opi_error *err)
{
    if (!a)
        return opi__fail(err, OPI_E_INVALID, -1, "the advice is NULL");
    if (rank >= end)
        return opi__fail(err, OPI_E_RANGE, (int64_t)rank, "rank %zu: there are %zu %s candidates, ranks start at 0", rank,
                         end, what);
    return OPI_OK;
}

int32_t opi_advice_candidate(const opi_advice *advice, size_t rank, opi_candidate *out, opi_error *err)
{
    const int32_t rc = check_rank(advice, rank, opi_advice_count(advice), "ranked", err);
    return rc ? rc : opi__give(out, &opi__ranked(advice, rank)->pub, sizeof *out, "opi_candidate", err);
}

int32_t opi_advice_prediction(const opi_advice *advice, size_t rank, size_t target, opi_prediction *out, size_t out_size,
                              opi_error *err)
{
    const int32_t rc = check_rank(advice, rank, opi_advice_feasible(advice), "feasible", err);
    if (rc)
        return rc;
    if (target >= OPI__T_COUNT)
        return opi__fail(err, OPI_E_RANGE, (int64_t)target, "target %zu: there are %d targets", target, (int)OPI__T_COUNT);
    if (!out || out_size < 8)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_advice_prediction: out is NULL or out_size (%zu) is not its size",
                         out_size);
    const opi_prediction *p = &opi__ranked(advice, rank)->pred[target];
    /* A newer caller's longer entry: what this library does not know stays zero. */
    memset(out, 0, out_size);
    memcpy(out, p, out_size < sizeof *p ? out_size : sizeof *p);
    return OPI_OK;
}

const char *opi_advice_sentence(const opi_advice *advice)
{
    return advice ? advice->sentence : "";
}

const char *opi_advice_probe(const opi_advice *advice)
{
    return advice ? advice->probe : "";
}

size_t opi_advice_note_count(const opi_advice *advice)
{
    return advice ? advice->n_notes : 0;
}

const char *opi_advice_note(const opi_advice *advice, size_t index)
{
    return advice && index < advice->n_notes ? advice->notes[index].text : NULL;
}

const char *opi_reason_name(int32_t reason)
{
    static const char *const names[] = {"feasible", "memory", "divisibility", "inventory", "context", "precision", "facts",
                                        "engine"};
    return reason >= 0 && reason <= OPI_R_ENGINE ? names[reason] : "unknown";
}
