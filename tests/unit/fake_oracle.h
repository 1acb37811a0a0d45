/* SPDX-License-Identifier: Apache-2.0 */
/* A model with known answers, behind the seam of lib/decide/oracle.h. Throughput saturates with the requests in flight:
 * tok_s(C) = s C / (1 + C / 32), s = bandwidth / size * tp^0.9 * (16 / bits)^0.7; the 80 % intervals are p50 / 1.25 …
 * p50 * 1.25 (log-normal); latencies follow from Little's law. */
#ifndef TEST_FAKE_ORACLE_H
#define TEST_FAKE_ORACLE_H
#include "decide/advice.h"
#include "facts/precision.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct fake {
    const char *outside_gpu;      /* OPI_P_OOD on this GPU */
    const char *outside_engine;   /* … with this engine */
    const char *new_precision;    /* OPI_P_NEW_COMBINATION in this precision */
    const char *new_engine;       /* … with this engine */
    uint32_t uncalibrated;        /* bit t: target t is physics only */
    int knows_rate;
    uint32_t rate_unknown_for;    /* bit t: … but not for target t */
    double slow_new;              /* factor on the throughput of new combinations; 0 = 1 */
    int calls;                    /* of predict */
    size_t rows;                  /* over all calls */
    int32_t fail_predict;         /* status to fail with */
} fake;

static inline double fake_tok_s(const fake *f, const opi_config *c)
{
    const opi__precision *p = opi__precision_find(c->precision);
    const double bits = p ? p->weight_bits : 16;
    const double s = c->gpu->mem_bw_gbs / c->llm->params_b * pow(c->tp, 0.9) * pow(16 / bits, 0.7);
    const int combined = (f->new_precision && !strcmp(f->new_precision, c->precision)) ||
                         (f->new_engine && !strcmp(f->new_engine, c->engine));
    const double factor = combined && f->slow_new > 0 ? f->slow_new : 1;
    const double n = c->concurrency > 0 ? c->concurrency : 8;
    return factor * s * n / (1 + n / 32);
}

static inline double fake_p50(const fake *f, const opi_config *c, size_t t)
{
    const double n = c->concurrency > 0 ? c->concurrency : 8;
    const double tok_s = c->request_rate > 0 ? fmin(fake_tok_s(f, c), c->request_rate * c->output_len) : fake_tok_s(f, c);
    switch (t) {
    case OPI__T_OUT_TOK_S: return tok_s;
    case OPI__T_TOTAL_TOK_S: return tok_s * (c->input_len + c->output_len) / c->output_len;
    case OPI__T_REQ_S: return tok_s / c->output_len;
    case OPI__T_ITL_P50: return 1000 * n / tok_s;
    case OPI__T_TTFT_P50: return 10000 * n / tok_s;
    case OPI__T_E2E: return n * c->output_len / tok_s;
    case OPI__T_POWER: return 0.5 * c->gpu->tdp_w;
    case OPI__T_KV_USAGE: return 0.5;
    default: return 1;
    }
}

static inline int32_t fake_status(const fake *f, const opi_config *c, size_t t)
{
    if (f->uncalibrated >> t & 1u)
        return OPI_P_UNCALIBRATED;
    if ((f->outside_gpu && !strcmp(f->outside_gpu, c->gpu->name)) ||
        (f->outside_engine && !strcmp(f->outside_engine, c->engine)))
        return OPI_P_OOD;
    if ((f->new_precision && !strcmp(f->new_precision, c->precision)) ||
        (f->new_engine && !strcmp(f->new_engine, c->engine)) ||
        (!strcmp(c->load_kind, "rate") && (!f->knows_rate || (f->rate_unknown_for >> t & 1u))))
        return OPI_P_NEW_COMBINATION;
    return OPI_P_OK;
}

static inline int32_t fake_predict(const void *user, const opi_config *configs, size_t n, const opi_predict_options *options,
                                   opi_prediction *out, opi_error *err)
{
    fake *f = (fake *)(uintptr_t)user;
    const size_t n_targets = options->targets ? options->n_targets : OPI__T_COUNT;
    f->calls++;
    f->rows += n;
    if (f->fail_predict) {
        if (err) {
            err->code = f->fail_predict;
            snprintf(err->message, sizeof err->message, "the fake refuses");
        }
        return f->fail_predict;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n_targets; k++) {
            const size_t t = options->targets ? options->targets[k] : k;
            const double p50 = fake_p50(f, &configs[i], t);
            opi_prediction p = {.status = fake_status(f, &configs[i], t), .target = (int32_t)t, .p50 = p50, .p10 = p50 / 1.25,
                                .p90 = p50 * 1.25, .lo = p50 / 1.25, .hi = p50 * 1.25, .level = options->level,
                                .ood_axis = -1, .ood_axis2 = -1, .calibration_rows = 100};
            if (p.status == OPI_P_UNCALIBRATED)
                p.p10 = p.p90 = p.lo = p.hi = NAN;
            if (p.status == OPI_P_OOD)
                p.ood_distance = 2;
            out[i * n_targets + k] = p;
        }
    return OPI_OK;
}

static inline int32_t fake_exceed(const void *user, const opi_config *config, size_t target, double limit, double *probability,
                                  opi_error *err)
{
    const double sigma = log(1.25) / 1.2815515655446004;
    (void)err;
    *probability = 0.5 * erfc(log(limit / fake_p50(user, config, target)) / sigma / sqrt(2));
    return OPI_OK;
}

static inline size_t fake_reason(const void *user, const opi_config *config, const opi_prediction *p, char *buf, size_t size)
{
    (void)user;
    return (size_t)snprintf(buf, size, "%s is %s", config->gpu->name, p->status == OPI_P_OOD ? "outside" : "not measured so");
}

static inline int32_t fake_support(const void *user, const opi_config *config, size_t target, opi_support *out, opi_error *err)
{
    (void)user, (void)target, (void)err;
    out->cells = 3;
    out->nearest_distance = 0.5;
    snprintf(out->nearest, sizeof out->nearest, "a cell on %s", config->gpu->name);
    return OPI_OK;
}

static inline opi__oracle fake_oracle(fake *f)
{
    return (opi__oracle){f, fake_predict, fake_exceed, fake_reason, fake_support};
}

/* Llama-3.1-70B's shape, written out so that the tests do not depend on the table. */
static inline opi_llm fake_llm(void)
{
    return (opi_llm){.struct_size = sizeof(opi_llm), .flags = OPI_FACT_VERIFIED, .name = "test/Llama-70B", .family = "llama3.1",
                     .arch = "llama", .attention = "gqa", .params_b = 70.6, .active_params_b = 70.6, .n_layers = 80,
                     .hidden_size = 8192, .n_heads = 64, .n_kv_heads = 8, .head_dim = 128, .intermediate_size = 28672,
                     .vocab_size = 128256, .max_context = 131072, .kv_elems_per_token = 163840, .weight_bits = NAN,
                     .kv_bits = NAN, .mlp_matrices = 3};
}

static inline opi_gpu fake_gpu(const char *name)
{
    opi_gpu g = {.struct_size = sizeof g};
    if (opi_gpu_find(name, &g, NULL))
        memset(&g, 0, sizeof g);
    return g;
}

/* 1,024 tokens in, 256 out, 64 in flight. */
static inline opi_advise_request fake_request(const opi_llm *llm, const opi_inventory *lines, size_t n)
{
    return (opi_advise_request){.struct_size = sizeof(opi_advise_request), .llm = llm, .input_len = 1024, .output_len = 256,
                                .concurrency = 64, .inventory = lines, .n_inventory = n};
}
#endif
