/* SPDX-License-Identifier: Apache-2.0 */
/* Roofline (Williams, Waterman and Patterson 2009) of prefill and decode. Deliberately without fitted efficiencies:
 * what an engine reaches of these bounds is what the model learns. */
#include "facts/roofline.h"
#include "base/take.h"
#include "facts/config.h"
#include "facts/memory.h"
#include "facts/precision.h"
#include <math.h>

/* What a blank means, for the bound only (the model sees blanks as blanks). */
#define BLANK_INPUT     512.
#define BLANK_OUTPUT    256.
#define BLANK_BATCH     256.
#define BLANK_BANDWIDTH 1600. /* GB/s */
#define BLANK_TDP       500.  /* W */
#define LINK_LATENCY    8e-6  /* s per collective: the order of a small NVLink all-reduce */
#define LOAD_BYTES_S    1.5e9 /* checkpoint bytes read per second and GPU */
#define START_S         45.   /* process start, graph capture, warm-up */

static double stated(double v, double blank)
{
    return v > 0 ? v : blank;
}
static double known(double v, double blank)
{
    return isnan(v) ? blank : v;
}

static double peak_flops(const opi_gpu *g, double math_bits)
{
    double fp16 = g->fp16_tflops, fp8 = known(g->fp8_tflops, fp16), fp4 = known(g->fp4_tflops, fp8);
    return (math_bits > 8 ? fp16 : math_bits > 4.5 ? fp8 : fp4) * 1e12;
}

static void sizes(const opi_config *c, opi__physics *p)
{
    const opi__precision *format = opi__precision_find(c->precision);
    const opi_llm *m = c->llm;
    p->params = m->params_b * 1e9;
    p->active = m->active_params_b > 0 ? m->active_params_b * 1e9 : p->params;
    p->bits = stated(c->weight_bits, format ? format->weight_bits : 16);
    p->kv_bits = stated(c->kv_bits, 16);
    p->input = stated(c->input_len, BLANK_INPUT);
    p->output = stated(c->output_len, BLANK_OUTPUT);
    p->rate = c->request_rate > 0 ? c->request_rate : NAN;
    p->tp = c->tp > 0 ? c->tp : NAN;
    p->gpus = c->n_gpus > 0 ? c->n_gpus : stated(c->tp, 1) * stated(c->pp, 1) * stated(c->dp, 1);
    double dp = c->dp > 0 && c->dp <= p->gpus ? c->dp : 1;
    p->replica_gpus = p->gpus / dp;
    p->batch = stated(c->concurrency, BLANK_BATCH) / dp;
    p->memory = c->gpu->mem_gb * 1e9;
    p->bandwidth = known(c->gpu->mem_bw_gbs, BLANK_BANDWIDTH) * 1e9;
    p->flops = peak_flops(c->gpu, format && !(c->weight_bits > 0) ? format->math_bits : p->bits);
    p->link = known(c->gpu->link_gbs, 30) * 1e9;
}

/* Bytes by the one memory formula, of a whole replica. Where that cannot say (an LLM whose cache is not known, a
 * precision nobody knows): bits times parameters, and keys and values of every layer. */
static void bytes(const opi_config *c, opi__physics *p)
{
    const opi_llm *m = c->llm;
    opi__plan plan;
    opi__storage storage;
    double length = p->input + p->output / 2, weights = NAN, cache = NAN, other = 0;
    if (opi__storage_of(c, &storage, NULL) == OPI_OK) {
        opi__plan_of(c, &plan);
        weights = opi__weight_bytes(c, &plan, &storage) * p->replica_gpus;
        cache = opi__kv_bytes(c, &plan, &storage, length) / length * p->replica_gpus;
        other = opi__activation_bytes(c, &plan, &storage) + opi__runtime_bytes(c, &plan);
    }
    if (!(cache > 0)) {
        int heads = m->n_kv_heads > 0 ? m->n_kv_heads : m->n_heads;
        cache = 2. * m->n_layers * heads * (m->head_dim > 0 ? m->head_dim : 128) * p->kv_bits / 8;
    }
    p->weight_bytes = weights > 0 ? weights : p->params * p->bits / 8;
    p->kv_token_bytes = cache;
    p->kv_room = fmax((p->memory * stated(c->mem_util, .9) - other) * p->replica_gpus - p->weight_bytes, .5e9);
}

static void decode(opi__physics *p, const opi_llm *m)
{
    double share = p->active / p->params, read = p->weight_bytes;
    double b = p->batch < 1 ? 1 : p->batch > 512 ? 512 : p->batch;
    /* Experts a batch touches, each token choosing at random: 1 - (1 - a)^b. */
    if (m->is_moe)
        read *= fmax(1 - pow(1 - fmin(fmax(share, 1e-3), 1), b), share);
    p->mem_s = (read + p->kv_bytes) / (p->bandwidth * p->replica_gpus);
    p->flop_s = 2 * p->active * p->batch / (p->flops * p->replica_gpus);
    double tp = known(p->tp, p->replica_gpus), layers = m->n_layers > 0 ? m->n_layers : 32;
    double hidden = m->hidden_size > 0 ? m->hidden_size : 4096;
    p->link_s = tp > 1 ? 2 * layers * (LINK_LATENCY + 2 * (tp - 1) / tp * p->batch * hidden * 2 / p->link) : 0;
    p->step_s = fmax(p->mem_s, p->flop_s);
}

/* In an open loop the requests in flight follow from the rate (Little's law); four rounds settle it. */
static void settle(opi__physics *p, const opi_llm *m)
{
    for (int i = 0;; i++) {
        p->kv_bytes = p->kv_token_bytes * (p->input + p->output / 2) * p->batch;
        decode(p, m);
        p->prefill_s = 2 * p->active * p->input / (p->flops * p->replica_gpus);
        if (isnan(p->rate) || i == 4)
            break;
        double dp = p->gpus / p->replica_gpus, busy = p->rate / dp * (p->step_s * p->output + p->prefill_s) * 2;
        p->batch = fmin(fmax(busy, 1), 1024);
    }
}

void opi__physics_of(const opi_config *config, opi__physics *p)
{
    const opi_llm *m = config->llm;
    double dp;
    sizes(config, p);
    bytes(config, p);
    if (config->concurrency > 0)
        p->rate = NAN;
    settle(p, m);
    p->rate = config->request_rate > 0 ? config->request_rate : NAN;
    dp = p->gpus / p->replica_gpus;
    p->kv_pressure = p->kv_bytes / p->kv_room;
    p->running = p->kv_pressure > 1 ? fmax(p->batch / p->kv_pressure, 1) : p->batch;
    p->out_tok_s = dp * p->batch * p->output / (p->step_s * p->output + p->prefill_s * p->batch);
    p->total_tok_s = p->out_tok_s * (1 + p->input / p->output);
    p->req_s = p->out_tok_s / p->output;
    p->ttft_s = p->prefill_s;
    p->e2e_s = p->step_s * p->output + p->prefill_s;
    p->power_w = known(config->gpu->tdp_w, BLANK_TDP);
    p->tokens_per_joule = p->out_tok_s / (p->power_w * p->gpus);
    p->cold_start_s = START_S + p->weight_bytes / (LOAD_BYTES_S * p->replica_gpus);
}

int32_t opi_roofline_of(const opi_config *config, opi_roofline *out, opi_error *err)
{
    opi_config c;
    opi__physics p;
    opi_roofline r = {0};
    int32_t status = opi__config_take(config, &c, err);
    if (status)
        return status;
    opi__physics_of(&c, &p);
    r.decode_step_s = p.step_s, r.decode_mem_s = p.mem_s, r.decode_flop_s = p.flop_s, r.link_s = p.link_s;
    r.prefill_s = p.prefill_s;
    r.out_tok_s = p.out_tok_s, r.total_tok_s = p.total_tok_s, r.req_s = p.req_s;
    r.ttft_ms = p.ttft_s * 1e3, r.itl_ms = p.step_s * 1e3, r.e2e_s = p.e2e_s;
    r.power_w = p.power_w, r.tokens_per_joule = p.tokens_per_joule, r.cold_start_s = p.cold_start_s;
    r.kv_usage = fmin(p.kv_pressure, 1);
    r.sm_activity = 1; /* busy all the time at the bound */
    r.tensor_activity = fmin(p.flop_s / p.step_s, 1);
    return opi__give(out, &r, sizeof r, "opi_roofline", err);
}
