/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "out.h"
#include "parse.h"

#include <string.h>

static void assume(config_in *in, const char *what, const char *value)
{
    size_t n = strlen(in->assumed);
    snprintf(in->assumed + n, sizeof in->assumed - n, "%s%s %s", n ? ", " : "", what, value);
}

static int read_shape(const args *a, config_in *in)
{
    opi_config *c = &in->config;
    int status = parse_int_option(a, "tp", 1, 1024, &c->tp);
    status = status ? status : parse_int_option(a, "pp", 1, 1024, &c->pp);
    status = status ? status : parse_int_option(a, "dp", 1, 1024, &c->dp);
    status = status ? status : parse_int_option(a, "ep", 1, 1024, &c->ep);
    if (status) {
        return status;
    }
    if (!c->tp) {
        c->tp = 1;
        assume(in, "TP", "1");
    }
    c->pp = c->pp ? c->pp : 1;
    c->dp = c->dp ? c->dp : 1;
    int64_t n = (int64_t)c->tp * c->pp * c->dp;
    if (n > 65536) {
        return tool_fail(X_USAGE, "--tp times --pp times --dp is %lld GPUs; the limit is 65536", (long long)n);
    }
    c->n_gpus = (int32_t)n;
    return 0;
}

static int read_format(const args *a, config_in *in)
{
    opi_config *c = &in->config;
    int status = parse_number_option(a, "kv-bits", 1, 0, 64, &c->kv_bits);
    status = status ? status : parse_number_option(a, "mem-util", 0, 1, 1, &c->mem_util);
    c->precision = args_get(a, "precision");
    if (!c->precision) {
        c->precision = tool_precision(&in->llm);
        assume(in, "precision", c->precision);
    }
    c->engine_version = args_get(a, "engine-version");
    c->engine = args_has(a, "engine") ? args_get(a, "engine") : NULL;
    return status;
}

static int known_load(const char *kind)
{
    static const char *const kinds[] = {"concurrency", "rate", "batch", "offline"};
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(kind, kinds[i]) == 0) {
            return 0;
        }
    }
    return tool_fail(X_USAGE, "--load-kind: '%s' is not known; use concurrency, rate, batch or offline", kind);
}

static int read_load(const args *a, int need, config_in *in)
{
    opi_config *c = &in->config;
    int status = parse_number_option(a, "input", 1, 0, LONGEST_TEXT, &c->input_len);
    status = status ? status : parse_number_option(a, "output", 1, 0, LONGEST_TEXT, &c->output_len);
    status = status ? status : parse_number_option(a, "concurrency", 0, 1, MOST_REQUESTS, &c->concurrency);
    status = status ? status : parse_number_option(a, "rate", 0, 1, MOST_RATE, &c->request_rate);
    status = status ? status : parse_number_option(a, "max-context", 1, 0, LONGEST_TEXT, &c->max_context);
    c->load_kind = args_get(a, "load-kind");
    if (!status && c->load_kind) {
        status = known_load(c->load_kind);
    }
    if (status || !need) {
        return status;
    }
    status = args_require(a, "input", "mean prompt tokens of a request");
    status = status ? status : args_require(a, "output", "mean tokens a request generates");
    if (!status && !args_has(a, "concurrency") && !args_has(a, "rate") && !args_has(a, "load-kind")) {
        status =
            tool_fail(X_USAGE, "the load is missing: give --concurrency (requests in flight) or --rate (requests/s)");
    }
    if (!status && !c->load_kind) {
        status = args_exclude(a, "concurrency", "rate");
        c->load_kind = args_has(a, "rate") ? "rate" : "concurrency";
    }
    if (!status && !c->engine) {
        c->engine = "vllm";
        assume(in, "engine", "vllm");
    }
    return status;
}

int config_from_args(opi_ctx *ctx, const args *a, int need_load, config_in *out)
{
    memset(out, 0, sizeof *out);
    out->config.struct_size = sizeof out->config;
    int status = args_require(a, "llm", "a name ('omnipilot llms' lists them) or the path of a config.json");
    status = status ? status : args_require(a, "gpu", "a name ('omnipilot gpus' lists them)");
    status = status ? status : tool_llm(ctx, args_get(a, "llm"), &out->llm, NULL);
    status = status ? status : tool_gpu("gpu", args_get(a, "gpu"), &out->gpu);
    out->config.llm = &out->llm;
    out->config.gpu = &out->gpu;
    status = status ? status : read_shape(a, out);
    status = status ? status : read_format(a, out);
    return status ? status : read_load(a, need_load, out);
}

char *config_where(char *buf, size_t cap, const opi_config *c)
{
    size_t n = (size_t)snprintf(buf, cap, "%s", c->gpu ? c->gpu->name : "unknown GPU");
#define MORE(...) (n += n < cap ? (size_t)snprintf(buf + n, cap - n, __VA_ARGS__) : 0)
    if (c->n_gpus) {
        MORE(" x %d", c->n_gpus);
    }
    if (c->tp) {
        MORE(", TP %d", c->tp);
    }
    if (c->pp > 1) {
        MORE(", PP %d", c->pp);
    }
    if (c->dp > 1) {
        MORE(", DP %d", c->dp);
    }
    if (c->ep > 1) {
        MORE(", EP %d", c->ep);
    }
    if (c->precision && *c->precision) {
        MORE(", %s", c->precision);
    }
    if (c->engine && *c->engine) {
        MORE(", %s%s%s", c->engine, c->engine_version && *c->engine_version ? " " : "",
             c->engine_version ? c->engine_version : "");
    }
#undef MORE
    return buf;
}

char *config_load(char *buf, size_t cap, const opi_config *c)
{
    char in[OUT_NUM], out[OUT_NUM], load[OUT_NUM], extra[80] = "";
    if (c->request_rate > 0) {
        snprintf(extra, sizeof extra, "%s requests/s", out_human(load, c->request_rate, 4));
    } else if (c->concurrency > 0) {
        snprintf(extra, sizeof extra, "%s request%s at once", out_human(load, c->concurrency, 6),
                 c->concurrency == 1 ? "" : "s");
    }
    snprintf(buf, cap, "%s tokens in, %s out%s%s", out_human(in, c->input_len, 6), out_human(out, c->output_len, 6),
             *extra ? ", " : "", extra);
    return buf;
}

static void text_if(const char *key, const char *text)
{
    json_text(key, text && *text ? text : NULL);
}

static void number_if(const char *key, double v)
{
    if (v > 0) {
        json_number(key, v);
    } else {
        json_null(key);
    }
}

void config_json(const opi_config *c)
{
    text_if("llm", c->llm ? c->llm->name : NULL);
    text_if("gpu", c->gpu ? c->gpu->name : NULL);
    number_if("n_gpus", c->n_gpus);
    number_if("tp", c->tp);
    number_if("pp", c->pp);
    number_if("ep", c->ep);
    number_if("dp", c->dp);
    text_if("precision", c->precision);
    number_if("weight_bits", c->weight_bits);
    number_if("kv_bits", c->kv_bits);
    text_if("engine", c->engine);
    text_if("engine_version", c->engine_version);
    text_if("load_kind", c->load_kind);
    number_if("input_len", c->input_len);
    number_if("output_len", c->output_len);
    number_if("concurrency", c->concurrency);
    number_if("request_rate", c->request_rate);
    number_if("max_context", c->max_context);
    number_if("mem_util", c->mem_util);
}
