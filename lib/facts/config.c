/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/config.h"
#include "base/status.h"
#include "base/take.h"
#include <math.h>

#define LEAST_TOKENS 1.
#define LEAST_REQUESTS 1e-3 /* of a replica: a share of a request in flight, or a request in a quarter of an hour */

static int32_t number(const char *field, double v, double least, double most, opi_error *err)
{
    if (isnan(v) || v < 0 || v > most || (v > 0 && v < least))
        return opi__fail(err, OPI_E_RANGE, -1, "%s = %.6g: must be 0 (not stated), or from %.6g to %.6g", field, v, least,
                         most);
    return OPI_OK;
}

static int32_t integer(const char *field, int32_t v, opi_error *err)
{
    if (v < 0 || v > OPI__MOST_GPUS)
        return opi__fail(err, OPI_E_RANGE, -1, "%s = %d: must be from 0 (not stated) to %d", field, (int)v,
                         OPI__MOST_GPUS);
    return OPI_OK;
}

static int32_t degrees(const opi_config *c, opi_error *err)
{
    const struct {
        const char *name;
        int32_t value;
    } field[] = {{"n_gpus", c->n_gpus}, {"tp", c->tp}, {"pp", c->pp}, {"ep", c->ep}, {"dp", c->dp}};
    int64_t product = 1;
    for (unsigned i = 0; i < sizeof field / sizeof *field; i++) {
        int32_t status = integer(field[i].name, field[i].value, err);
        if (status)
            return status;
    }
    product = (int64_t)(c->tp ? c->tp : 1) * (c->pp ? c->pp : 1);
    if (c->n_gpus && product > c->n_gpus)
        return opi__fail(err, OPI_E_RANGE, -1, "tp %d x pp %d = %lld GPUs, more than n_gpus = %d", (int)c->tp,
                         (int)c->pp, (long long)product, (int)c->n_gpus);
    return OPI_OK;
}

static int32_t facts(const opi_config *c, opi_error *err)
{
    if (!c->llm)
        return opi__fail(err, OPI_E_INVALID, -1, "llm is NULL: name the LLM (opi_llm_find, opi_llm_from_config)");
    if (!c->gpu)
        return opi__fail(err, OPI_E_INVALID, -1, "gpu is NULL: name the GPU (opi_gpu_find)");
    if (c->llm->struct_size < sizeof(opi_llm) || c->gpu->struct_size < sizeof(opi_gpu))
        return opi__fail(err, OPI_E_INVALID, -1, "llm or gpu has struct_size %u: set it before filling the struct",
                         (unsigned)(c->llm->struct_size < sizeof(opi_llm) ? c->llm->struct_size : c->gpu->struct_size));
    if (!(c->llm->params_b > 0) || !(c->llm->params_b < 1e6))
        return opi__fail(err, OPI_E_RANGE, -1, "LLM %s: params_b = %.6g: must be above 0 and below 1e6", c->llm->name,
                         c->llm->params_b);
    if (!(c->gpu->mem_gb > 0))
        return opi__fail(err, OPI_E_INVALID, -1, "GPU %s: its memory is not known, nothing can be computed",
                         c->gpu->name);
    return OPI_OK;
}

int32_t opi__config_take_memory(const opi_config *in, opi_config *out, opi_error *err)
{
    opi_config c;
    int32_t status = opi__take(&c, sizeof c, in, "opi_config", err);
    if (!status)
        status = facts(&c, err);
    if (!status)
        status = degrees(&c, err);
    if (!status)
        status = number("input_len", c.input_len, LEAST_TOKENS, OPI__MOST_TOKENS, err);
    if (!status)
        status = number("output_len", c.output_len, LEAST_TOKENS, OPI__MOST_TOKENS, err);
    if (!status)
        status = number("max_context", c.max_context, LEAST_TOKENS, OPI__MOST_TOKENS, err);
    if (!status)
        status = number("concurrency", c.concurrency, LEAST_REQUESTS, OPI__MOST_REQUESTS, err);
    if (!status)
        status = number("request_rate", c.request_rate, LEAST_REQUESTS, OPI__MOST_REQUESTS, err);
    if (!status)
        status = number("weight_bits", c.weight_bits, 1, 64, err);
    if (!status)
        status = number("kv_bits", c.kv_bits, 1, 64, err);
    if (!status)
        status = number("mem_util", c.mem_util, .01, 1, err);
    if (!status)
        *out = c;
    return status;
}

int32_t opi__config_take(const opi_config *in, opi_config *out, opi_error *err)
{
    opi_config c;
    int32_t status = opi__config_take_memory(in, &c, err);
    if (!status && !(c.gpu->fp16_tflops > 0))
        status =
            opi__fail(err, OPI_E_INVALID, -1, "GPU %s: its FLOP/s are not known, no time can be computed", c.gpu->name);
    if (!status)
        *out = c;
    return status;
}

int opi__config_context_fits(const opi_config *config)
{
    double longest = config->max_context > 0 ? config->max_context : 0, need = config->input_len + config->output_len;
    if (need > longest)
        longest = need;
    return config->llm->max_context <= 0 || longest <= config->llm->max_context;
}
