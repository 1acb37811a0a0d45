/* SPDX-License-Identifier: Apache-2.0 */
/* advise: the request from options, the answer in the form asked for, the exit status. */
#include "advise_view.h"
#include "config.h"
#include "out.h"
#include "parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LINES 256
#define MOST_SLOS  32

typedef struct advise_in {
    opi_llm llm;
    char *llm_path;
    opi_gpu gpus[MOST_LINES];
    opi_inventory lines[MOST_LINES];
    opi_slo slos[MOST_SLOS];
    char **precisions, **engines;
    size_t n_precisions, n_engines;
    opi_utility utility;
    opi_advise_request request;
} advise_in;

static int read_utility(opi_ctx *ctx, const args *a, opi_utility *u)
{
    const char *path = args_get(a, "utility");
    char *bytes;
    size_t size;
    opi_error err;
    int status = 0;
    memset(u, 0, sizeof *u);
    u->struct_size = sizeof *u;
    opi_utility_default(u);
    if (path) {
        status = tool_read_file("utility", path, 1u << 20, &bytes, &size);
        if (status) {
            return status;
        }
        status = opi_utility_parse(ctx, bytes, size, u, &err) ? tool_error(&err, "utility") : 0;
        free(bytes);
    }
    if (args_has(a, "value")) {
        const char *text = args_get(a, "value");
        status = status ? status : parse_number("value", text + (text[0] == '$'), 0, 1, 1e6, &u->value_usd_per_mtok);
    }
    status = status ? status : parse_number_option(a, "power-price", 0, 0, 1e3, &u->power_usd_per_kwh);
    return status ? status : parse_number_option(a, "risk", 0, 0, 1, &u->risk);
}

static int read_load(const args *a, opi_advise_request *r)
{
    int status = args_require(a, "input", "mean prompt tokens of a request");
    status = status ? status : args_require(a, "output", "mean tokens a request generates");
    status = status ? status : parse_number_option(a, "input", 1, 0, LONGEST_TEXT, &r->input_len);
    status = status ? status : parse_number_option(a, "output", 1, 0, LONGEST_TEXT, &r->output_len);
    status = status ? status : args_exclude(a, "concurrency", "rate");
    if (!status && !args_has(a, "concurrency") && !args_has(a, "rate") && !args_has(a, "demand")) {
        status =
            tool_fail(X_USAGE, "the load is missing: give --concurrency (requests in flight), --rate (requests/s) or --demand");
    }
    status = status ? status : parse_number_option(a, "concurrency", 0, 1, MOST_REQUESTS, &r->concurrency);
    status = status ? status : parse_number_option(a, "rate", 0, 1, MOST_RATE, &r->request_rate);
    status = status ? status : parse_number_option(a, "max-context", 1, 0, LONGEST_TEXT, &r->max_context);
    status = status ? status : parse_number_option(a, "demand", 0, 1, 1e12, &r->demand_tok_s);
    return status ? status : parse_level_option(a, &r->level);
}

static int read_request(opi_ctx *ctx, const args *a, advise_in *in)
{
    opi_advise_request *r = &in->request;
    size_t n = 0;
    r->struct_size = sizeof *r;
    r->level = 0.8;
    r->llm = &in->llm;
    r->pipeline = args_has(a, "pipeline");
    int status = args_require(a, "llm", "a name ('omnipilot llms' lists them) or the path of a config.json");
    status = status ? status : args_require(a, "inventory", "the GPUs you have, such as H100-80GB-SXM:8,L40S:4");
    status = status ? status : read_load(a, r);
    status = status ? status : tool_llm(ctx, args_get(a, "llm"), &in->llm, &in->llm_path);
    status = status ? status : parse_inventory(a, in->gpus, in->lines, MOST_LINES, &n);
    r->inventory = in->lines;
    r->n_inventory = n;
    status = status ? status : parse_slos(a, in->slos, MOST_SLOS, &r->n_slos);
    r->slos = in->slos;
    status = status ? status : parse_list(a, "precision", &in->precisions, &in->n_precisions);
    status = status ? status : parse_list(a, "engine", &in->engines, &in->n_engines);
    r->precisions = in->n_precisions ? (const char *const *)in->precisions : NULL;
    r->n_precisions = in->n_precisions;
    for (size_t i = 0; i < in->n_engines; i++) {
        const char *name = in->engines[i];
        if (name != in->engines[i]) {
            free(in->engines[i]);
            in->engines[i] = tool_copy(name, strlen(name));
        }
    }
    r->engines = in->n_engines ? (const char *const *)in->engines : NULL;
    r->n_engines = in->n_engines;
    status = status ? status : read_utility(ctx, a, &in->utility);
    r->utility = &in->utility;
    return status;
}

/* ---- what the views share ---- */
int advise_adds_up(const opi_target_info *info)
{
    return strcmp(info->unit, "tokens/s") == 0 || strcmp(info->unit, "requests/s") == 0;
}

size_t advise_target(const char *name)
{
    size_t index;
    return opi_target_find(name, &index, NULL) ? SIZE_MAX : index;
}

int advise_prediction(const advise_view *v, size_t rank, const opi_candidate *c, size_t target, opi_prediction *out)
{
    opi_target_info info = {.struct_size = sizeof info};
    if (target == SIZE_MAX || opi_advice_prediction(v->advice, rank, target, out, sizeof *out, NULL) ||
        opi_target_at(target, &info, NULL)) {
        return 0;
    }
    if (advise_adds_up(&info)) {
        double k = c->replicas > 0 ? c->replicas : 1;
        out->p10 *= k;
        out->p50 *= k;
        out->p90 *= k;
        out->lo *= k;
        out->hi *= k;
    }
    if (target == advise_target("throughput_out_tok_s") && v->request->request_rate > 0) {
        double offered =
            v->request->request_rate * v->request->output_len; /* no more can come out than was asked for */
        out->p10 = out->p10 > offered ? offered : out->p10;
        out->p50 = out->p50 > offered ? offered : out->p50;
        out->p90 = out->p90 > offered ? offered : out->p90;
        out->lo = out->lo > offered ? offered : out->lo;
        out->hi = out->hi > offered ? offered : out->hi;
    }
    return 1;
}

/* ---- CSV ---- */
static void csv_targets(const advise_view *v, size_t rank, const opi_candidate *c)
{
    for (size_t t = 0; t < opi_target_count(); t++) {
        opi_prediction p;
        if (c->infeasible != OPI_FEASIBLE || !advise_prediction(v, rank, c, t, &p)) {
            out_puts(",,,,");
            continue;
        }
        csv_number(p.p50, 0);
        csv_number(p.lo, 0);
        csv_number(p.hi, 0);
        csv_text(opi_prediction_status_name(p.status), 0);
    }
}

static void csv_candidate(const advise_view *v, size_t rank, const opi_candidate *c)
{
    int ok = c->infeasible == OPI_FEASIBLE;
    csv_int((int64_t)rank + 1, 0);
    csv_int(rank == v->winner, 0);
    csv_text(ok ? opi_prediction_status_name(c->verdict) : "infeasible", 0);
    csv_text(c->config.gpu ? c->config.gpu->name : "", 0);
    csv_int((int64_t)c->config.n_gpus * (c->replicas > 0 ? c->replicas : 1), 0);
    csv_int(c->config.tp, 0);
    csv_int(c->config.pp, 0);
    csv_int(c->replicas, 0);
    csv_text(c->config.precision, 0);
    csv_text(c->config.engine, 0);
    csv_number(ok ? c->slo_violation : NAN, 0);
    csv_number(ok && c->price_stated ? -c->terms.node : NAN, 0);
    csv_number(ok ? c->usd_per_mtok : NAN, 0);
    csv_number(ok ? c->terms.total : NAN, 0);
    csv_number(ok ? c->score : NAN, 0);
    csv_number(ok ? c->launch_success : NAN, 0);
    csv_number(c->memory.margin_gib, 0);
    csv_targets(v, rank, c);
    csv_text(ok ? "" : opi_reason_name(c->infeasible), 0);
    csv_text(c->reason, 1);
}

void advise_csv(const advise_view *v)
{
    out_puts("rank,recommended,verdict,gpu,n_gpus,tp,pp,replicas,precision,engine,slo_violation,usd_per_h,usd_per_mtok,"
             "utility_usd_per_h,score,launch_success,margin_gib,");
    for (size_t t = 0; t < opi_target_count(); t++) {
        opi_target_info info = {.struct_size = sizeof info};
        opi_target_at(t, &info, NULL);
        out_printf("%s,%s_lo,%s_hi,%s_status,", info.name, info.name, info.name, info.name);
    }
    out_puts("reason_code,reason\n");
    for (size_t i = 0; i < v->count && i < v->top && !out_failed(); i++) {
        opi_candidate c = {.struct_size = sizeof c};
        if (!opi_advice_candidate(v->advice, i, &c, NULL)) {
            csv_candidate(v, i, &c);
        }
    }
}

/* ---- the verb ---- */
static int show(advise_view *v)
{
    const args *a = v->a;
    opi_text *text = NULL;
    opi_error err;
    const char *emit = args_get(a, "emit");
    if (emit) {
        return launch_print(v, args_has(a, "json"));
    }
    if (args_has(a, "json")) {
        if (opi_advice_json(v->advice, &text, &err)) {
            return tool_error(&err, NULL);
        }
        out_bytes(opi_text_data(text), opi_text_size(text));
        if (opi_text_size(text) && opi_text_data(text)[opi_text_size(text) - 1] != '\n') {
            out_puts("\n");
        }
        opi_text_free(text);
    } else if (args_has(a, "csv")) {
        advise_csv(v);
    } else {
        advise_print(v);
        if (args_has(a, "explain")) {
            advise_explain(v);
        }
    }
    return 0;
}

static int answer(opi_ctx *ctx, const args *a, const opi_model *model, const advise_in *in)
{
    static const int statuses[] = {X_OK, X_ABSTAIN, X_NONE};
    int32_t top = 0;
    opi_advice *advice = NULL;
    opi_error err;
    int status = parse_int_option(a, "top", 1, 1000000, &top);
    if (status) {
        return status;
    }
    if (opi_advise(ctx, model, &in->request, &advice, &err)) {
        return tool_error(&err, NULL);
    }
    advise_view v = {.a = a, .model = model, .request = &in->request, .utility = &in->utility, .advice = advice};
    v.llm_path = in->llm_path;
    v.level = in->request.level;
    v.winner = SIZE_MAX;
    v.verdict = opi_advice_verdict(advice, &v.winner);
    v.count = opi_advice_count(advice);
    v.feasible = opi_advice_feasible(advice);
    v.top = top ? (size_t)top : args_has(a, "csv") ? v.count : args_has(a, "explain") ? 3 : 10;
    status = show(&v);
    if (!status) {
        status = v.verdict >= 0 && v.verdict <= 2 ? statuses[v.verdict] : X_FAIL;
        int read_by_people = !args_has(a, "json") && !args_has(a, "csv") && !args_has(a, "emit");
        if (!read_by_people && (status == X_ABSTAIN || status == X_NONE)) { /* the table for people has said it */
            tool_note("%s: %s", status == X_ABSTAIN ? "no recommendation" : "nothing feasible",
                      opi_advice_sentence(advice));
        }
    }
    opi_advice_free(advice);
    return status;
}

static int check_forms(const args *a)
{
    const char *emit = args_get(a, "emit");
    int status = args_exclude(a, "json", "csv");
    status = status ? status : args_exclude(a, "explain", "csv");
    status = status ? status : args_exclude(a, "explain", "emit");
    status = status ? status : args_exclude(a, "emit", "csv");
    if (!status && emit && strcmp(emit, "launch") != 0) {
        status = tool_fail(X_USAGE, "--emit: '%s' is not known; 'launch' is the only form", emit);
    }
    return status;
}

int run_advise(const args *a)
{
    opi_ctx *ctx = NULL;
    opi_model *model = NULL;
    advise_in *in = tool_alloc(1, sizeof *in);
    int status = check_forms(a);
    status = status ? status : tool_context(&ctx);
    status = status ? status : read_request(ctx, a, in);
    status = status ? status : tool_model(ctx, a, &model);
    status = status ? status : answer(ctx, a, model, in);
    opi_model_free(model);
    opi_ctx_destroy(ctx);
    parse_list_free(in->precisions, in->n_precisions);
    parse_list_free(in->engines, in->n_engines);
    free(in->llm_path);
    free(in);
    return status;
}

static const opt_def options[] = {
    {"llm", "NAME|config.json", 0, "the LLM: a name of 'omnipilot llms', or a Hugging Face config.json"},
    {"input", "TOKENS", 0, "mean prompt length"},
    {"output", "TOKENS", 0, "mean generated length"},
    {"concurrency", "N", 0, "requests in flight, over all replicas"},
    {"rate", "R", 0, "requests per second, instead of --concurrency"},
    {"inventory", "GPU:count[@per_node][,…]", 1, "the GPUs there are; per_node: GPUs of one node (default 8)"},
    {"max-context", "TOKENS", 0, "tokens one request may need (default: twice input + output, at most the model's)"},
    {"precision", "NAME[,NAME]", 1, "weights in these precisions only (default: those the GPU supports)"},
    {"engine", "NAME[,NAME]", 1, "these engines only (default: those measured as servers)"},
    {"pipeline", NULL, 0, "also consider pipeline parallelism"},
    {"slo", "NAME=VALUE[UNIT][,…]", 1, "a limit: ttft_p50=2s, itl_p95=50ms, throughput_out_tok_s=900 …"},
    {"demand", "TOKENS/S", 0, "output tokens per second to be met; replicas are added"},
    {"value", "$/MTOK", 0, "what a million output tokens are worth (default: the cheapest that meets the demand)"},
    {"price", "GPU=$/H[,…]", 1, "price of a GPU hour (default: the cited one of 'omnipilot gpus')"},
    {"power-price", "$/KWH", 0, "price of electricity"},
    {"queue", "GPU=SECONDS[,…]", 1, "expected wait for this GPU"},
    {"utility", "FILE.json", 0, "weights of the utility; options above win over it"},
    {"risk", "0..1", 0, "0: rank by the expectation; 1: by the interval's bad end"},
    {"level", "SHARE", 0, "of the intervals, 0.5 to 0.99 (default 0.8)"},
    {"top", "N", 0, "candidates to show (default 10; 3 with --explain; all in CSV; JSON always has all)"},
    {"explain", NULL, 0, "every utility term, launch prior, memory, fact marks and support behind the answer"},
    {"emit", "launch", 0, "print the winner's launch command and the load test that checks the prediction"},
    {"model", "FILE", 0, "a model of 'omnipilot fit' (default: the compiled-in one)"},
    {"json", NULL, 0, "print JSON (docs/json.md)"},
    {"csv", NULL, 0, "print CSV, one line per candidate"},
    {NULL, NULL, 0, NULL},
};

const verb verb_advise = {
    .name = "advise",
    .summary = "rank the ways to serve an LLM on the GPUs you have, and recommend one",
    .usage = "--llm LLM --input N --output N (--concurrency N | --rate R) --inventory GPU:count[,…] [options]",
    .about =
        "Ranks every feasible GPU x count x TP x precision x engine by its utility, with calibrated intervals, and "
        "recommends one: or says why it does not. Exit status: 0 recommended, 3 no honest recommendation, 4 nothing "
        "feasible, 2 bad input.",
    .examples = "  omnipilot advise --llm Qwen/Qwen2.5-72B-Instruct --input 1024 --output 256 --concurrency 64 \\\n"
                "      --inventory H200-141GB:8,H100-80GB-SXM:8,L40S-48GB:4 --slo ttft_p50=2s,itl_p50=50ms\n"
                "  omnipilot advise --llm llama-3.1-8b --input 500 --output 200 --rate 12 --inventory L40S:4 \\\n"
                "      --price L40S=0.9 --emit launch\n",
    .options = options,
    .run = run_advise,
};
