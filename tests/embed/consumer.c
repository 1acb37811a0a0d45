/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's program: built by tests/embed/install.py against the installed library, shared and static, as C and as
 * C++. It prints its own line and nothing else; the library prints nothing. */
#include <omnipilot/omnipilot.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what, const opi_error *err)
{
    fprintf(stderr, "%s: %s (%s)\n", what, err->message, opi_status_name(err->code));
    return 1;
}

/* Asks for one prediction and checks that the numbers are in order. */
static int ask(const opi_model *model)
{
    opi_error err;
    memset(&err, 0, sizeof err);
    opi_gpu gpu;
    opi_llm llm;
    memset(&gpu, 0, sizeof gpu);
    memset(&llm, 0, sizeof llm);
    gpu.struct_size = (uint32_t)sizeof gpu;
    llm.struct_size = (uint32_t)sizeof llm;
    if (opi_gpu_find("H100-80GB-SXM", &gpu, &err) < 0)
        return fail("gpu", &err);
    if (opi_llm_find("meta-llama/Llama-3.1-70B-Instruct", &llm, &err) < 0)
        return fail("llm", &err);
    opi_config config;
    memset(&config, 0, sizeof config);
    config.struct_size = (uint32_t)sizeof config;
    config.gpu = &gpu;
    config.llm = &llm;
    config.n_gpus = config.tp = 4;
    config.engine = "vllm";
    config.precision = "fp8";
    config.load_kind = "concurrency";
    config.input_len = config.output_len = 1024;
    config.concurrency = 32;
    size_t target = 0;
    if (opi_target_find("itl_p50", &target, &err) < 0)
        return fail("target", &err);
    opi_predict_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = (uint32_t)sizeof options;
    options.targets = &target;
    options.n_targets = 1;
    opi_prediction p;
    if (opi_predict(model, &config, 1, &options, &p, sizeof p, &err) < 0)
        return fail("predict", &err);
    if (!(p.p50 > 0) || !(p.lo <= p.p50) || !(p.p50 <= p.hi)) {
        fprintf(stderr, "numbers out of order: %g %g %g, status %s\n", p.lo, p.p50, p.hi,
                opi_prediction_status_name(p.status));
        return 1;
    }
    return 0;
}

int main(void)
{
    opi_error err;
    memset(&err, 0, sizeof err);
    opi_ctx *ctx = NULL;
    opi_model *model = NULL;
    if (opi_ctx_create(NULL, &ctx, &err) < 0)
        return fail("ctx", &err);
    if (opi_model_load_default(ctx, &model, &err) < 0)
        return fail("model", &err);
    int bad = ask(model);
    opi_model_free(model);
    opi_ctx_destroy(ctx);
    if (!bad)
        printf("consumer ok, libomnipilot %s\n", opi_version());
    return bad;
}
