/* SPDX-License-Identifier: Apache-2.0 */
/* The verb table. */
#include "args.h"
#include "out.h"
#include "tool.h"

#include <string.h>

static const verb *const verbs[] = {&verb_advise, &verb_predict, &verb_memory, &verb_gpus,
                                    &verb_llms,   &verb_inspect, &verb_fit,    &verb_adapt, &verb_evaluate,
                                    &verb_gate,   &verb_preferences, &verb_plan};
#define N_VERBS (sizeof verbs / sizeof verbs[0])

static void help(void)
{
    out_puts("omnipilot: what will an LLM deliver on these GPUs, and which ones should serve it?\n\n"
             "Usage: omnipilot VERB [options]\n\nVerbs:\n");
    for (size_t i = 0; i < N_VERBS; i++) {
        out_printf("  %-13s %s\n", verbs[i]->name, verbs[i]->summary);
    }
    out_puts("\n  omnipilot VERB --help   options and examples of a verb\n"
             "  omnipilot --version     the version\n\n"
             "Exit status: 0 recommended or done, 2 bad usage or input, 3 no honest recommendation,\n"
             "4 nothing feasible, 1 any other failure. Results go to standard output, messages to\n"
             "standard error.\n\nExample:\n"
             "  omnipilot advise --llm Qwen/Qwen2.5-72B-Instruct --input 1024 --output 256 \\\n"
             "      --concurrency 64 --inventory H200:8,H100-80GB-SXM:8 --slo ttft_p50=2s\n");
}

static int unknown_verb(const char *name)
{
    const verb *best = NULL;
    size_t least = 99;
    for (size_t i = 0; i < N_VERBS; i++) {
        size_t far = args_distance(name, verbs[i]->name);
        if (far < least) {
            least = far;
            best = verbs[i];
        }
    }
    if (name[0] == '-') {
        return tool_fail(X_USAGE, "unknown option '%s'; a verb comes first ('omnipilot --help' lists them)", name);
    }
    if (best && least <= 1 + strlen(name) / 3) {
        return tool_fail(X_USAGE, "unknown verb '%s'; did you mean '%s'?", name, best->name);
    }
    return tool_fail(X_USAGE, "unknown verb '%s' ('omnipilot --help' lists them)", name);
}

static int run_verb(const verb *v, int argc, char **argv)
{
    static args a; /* large: kept off the stack */
    tool_set_verb(v->name);
    int status = args_parse(v, argc, argv, &a);
    if (status) {
        return status;
    }
    if (a.help) {
        args_help(v);
        return X_OK;
    }
    return v->run(&a);
}

static const verb *find_verb(const char *name)
{
    for (size_t i = 0; i < N_VERBS; i++) {
        if (strcmp(verbs[i]->name, name) == 0) {
            return verbs[i];
        }
    }
    return NULL;
}

static int dispatch(int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : NULL;
    if (!first) {
        return tool_fail(X_USAGE, "a verb is needed: advise, predict, memory, gpus, llms, inspect, fit, adapt, evaluate, "
                                  "gate, preferences or plan-training ('omnipilot --help' explains them)");
    }
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0 || strcmp(first, "version") == 0) {
        out_printf("omnipilot %s\n", opi_version());
        return X_OK;
    }
    if (strcmp(first, "help") == 0 && argc > 2) {
        const verb *v = find_verb(argv[2]);
        if (!v) {
            return unknown_verb(argv[2]);
        }
        args_help(v);
        return X_OK;
    }
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0) {
        help();
        return X_OK;
    }
    const verb *v = find_verb(first);
    return v ? run_verb(v, argc - 2, argv + 2) : unknown_verb(first);
}

int main(int argc, char **argv)
{
    out_begin();
    int status = dispatch(argc, argv);
    int written = out_end();
    return written ? X_FAIL : status;
}
