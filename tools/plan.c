/* SPDX-License-Identifier: Apache-2.0 */
/* plan-training: options into opi_plan_options. */
#include "out.h"
#include "parse.h"
#include "plan_view.h"
#include "tool.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An option that is a number of the library's struct. `zero`: what the user's 0 becomes there, where 0 would mean the
 * default. `never`: the word is allowed too. */
typedef struct field {
    const char *option;
    size_t at;
    const char *unit; /* "" for a share, NULL for a plain number */
    double most;
    int zero, never;
} field;
#define AT(name) offsetof(opi_plan_options, name)
#define ZERO 1
#define NEVER 1

static const field fields[] = {
    {"days", AT(days), "d", 3660, 0, 0},
    {"process-mtbf", AT(process_mtbf_h), "h", 1e12, 0, NEVER},
    {"node-mtbf", AT(node_mtbf_h), "h", 1e12, 0, NEVER},
    {"rack-mtbf", AT(rack_mtbf_h), "h", 1e12, 0, NEVER},
    {"burst", AT(burst), NULL, 1000, 0, 0},
    {"burst-window", AT(burst_window_s), "s", 1e7, 0, 0},
    {"burst-near", AT(burst_near), "", 1, ZERO, 0},
    {"process-repair", AT(process_repair_s), "s", 1e9, 0, 0},
    {"node-repair", AT(node_repair_h), "h", 1e5, 0, 0},
    {"rack-repair", AT(rack_repair_h), "h", 1e5, 0, 0},
    {"repair-cv", AT(repair_cv), NULL, 10, ZERO, 0},
    {"step", AT(step_s), "s", 1e5, 0, 0},
    {"params", AT(params_b), NULL, 1e6, 0, 0},
    {"state-gb", AT(state_gb), NULL, 1e6, 0, 0},
    {"unique-gb", AT(unique_gb), NULL, 1e6, ZERO, 0},
    {"snapshot-gbs", AT(snapshot_gbs), NULL, 1e6, 0, 0},
    {"network-gbs", AT(network_gbs), NULL, 1e6, 0, 0},
    {"overhead", AT(overhead), "", 100, ZERO, 0},
    {"checkpoint-interval", AT(checkpoint_interval_s), "s", 1e9, 0, 0},
    {"checkpoint", AT(checkpoint_s), "s", 1e6, ZERO, 0},
    {"checkpoint-stall", AT(checkpoint_stall_s), "s", 1e6, ZERO, 0},
    {"restart-interval", AT(restart_interval_s), "s", 1e9, 0, 0},
    {"restart", AT(restart_s), "s", 1e7, ZERO, 0},
    {"wait", AT(wait_h), "h", 1e9, 0, NEVER},
    {"idle-cost", AT(idle_cost), NULL, 1e3, ZERO, 0},
};

static int read_fields(const args *a, opi_plan_options *o)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const field *f = &fields[i];
        const char *text = args_get(a, f->option);
        double *to = (double *)((char *)o + f->at);
        if (!text) {
            continue;
        }
        if (f->never && strcmp(text, "never") == 0) {
            *to = -1;
            continue;
        }
        int status = f->unit ? parse_quantity(f->option, text, f->unit, 0, !f->zero, f->most, to)
                             : parse_number(f->option, text, 0, !f->zero, f->most, to);
        if (status) {
            return status;
        }
        *to = *to == 0 ? -1 : *to;
    }
    return 0;
}

static int read_word(const args *a, const char *option, const char *const *words, int32_t *out)
{
    const char *text = args_get(a, option);
    char list[128] = "";
    for (int32_t i = 0; text && words[i]; i++) {
        if (args_distance(text, words[i]) == 0) {
            *out = i;
            return 0;
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", words[i]);
    }
    return text ? tool_fail(X_USAGE, "--%s: '%s' is none of %s", option, text, list) : 0;
}

static int read_seed(const args *a, uint64_t *seed)
{
    int64_t v = 0;
    const char *text = args_get(a, "seed");
    int status = text ? parse_int("seed", text, 0, INT64_MAX, &v) : 0;
    *seed = (uint64_t)v;
    return status;
}

static int read_counts(const args *a, opi_plan_options *o)
{
    int32_t replicas = 1;
    int status = parse_int_option(a, "gpus", 2, 131072, &o->gpus);
    o->tp = o->gpus % 8 == 0 ? 8 : 1;
    status = status ? status : parse_int_option(a, "tp", 1, 1024, &o->tp);
    status = status ? status : parse_int_option(a, "pp", 1, 1024, &o->pp);
    status = status ? status : parse_int_option(a, "gpus-per-node", 1, 1024, &o->per_node);
    status = status ? status : parse_int_option(a, "nodes-per-rack", 1, 65536, &o->nodes_per_rack);
    status = status ? status : parse_int_option(a, "spares", 0, 16384, &o->spares);
    status = status ? status : parse_int_option(a, "replicas", 0, 16, &replicas);
    status = status ? status : parse_int_option(a, "replays", 2, 10000, &o->replays);
    status = status ? status : parse_int_option(a, "snapshot-interval", 1, 1000000, &o->snapshot_interval);
    o->replicas = replicas ? replicas : -1;
    return status;
}

static int read_run(opi_ctx *ctx, const args *a, opi_plan_options *o, opi_plan_measured *measured)
{
    const char *path = args_get(a, "from-run");
    char *bytes;
    size_t size;
    opi_error err;
    int status = path ? tool_read_file("from-run", path, 64u << 20, &bytes, &size) : 0;
    if (status || !path) {
        return status;
    }
    status = opi_plan_from_run(ctx, bytes, size, o, measured, &err);
    free(bytes);
    return status ? tool_error(&err, "from-run") : 0;
}

/* The library names its fields, people type options: the message gets the option's name. */
static int explain(const opi_error *err)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char name[64];
        size_t n = strlen(fields[i].option);
        snprintf(name, sizeof name, "%s", fields[i].option);
        for (char *c = name; *c; c++) {
            *c = *c == '-' ? '_' : *c;
        }
        /* node_mtbf_h is --node-mtbf */
        if (strncmp(err->message, name, n) == 0 && (err->message[n] == ' ' || err->message[n] == '_') &&
            strncmp(err->message + n, "_i", 2) != 0) {
            return tool_error(err, fields[i].option);
        }
    }
    return tool_error(err, NULL);
}

static int answer(opi_ctx *ctx, const args *a, const opi_plan_options *o, const opi_plan_measured *measured)
{
    opi_plan *plan = NULL;
    opi_text *json = NULL;
    opi_error err;
    int status = 0;
    if (opi_plan_run(ctx, o, &plan, &err)) {
        return explain(&err);
    }
    if (!args_has(a, "json")) {
        status = plan_print(plan, measured);
    } else if (opi_plan_json(plan, &json, &err)) {
        status = tool_error(&err, NULL);
    } else {
        out_bytes(opi_text_data(json), opi_text_size(json));
        out_puts("\n");
        opi_text_free(json);
    }
    opi_plan_free(plan);
    return status;
}

int run_plan(const args *a)
{
    static const char *const policies[] = {"stop", "shrink", "wait", NULL};
    static const char *const arrivals[] = {"exponential", "weibull", "hyperexponential", "clustered", NULL};
    opi_plan_options o = {.struct_size = sizeof o};
    opi_plan_measured measured = {.struct_size = sizeof measured};
    opi_ctx *ctx = NULL;
    int status = tool_context(&ctx);
    status = status ? status : read_seed(a, &o.seed);
    if (!status && args_has(a, "check")) {
        status = plan_print_checks(ctx, o.seed, args_has(a, "json"));
        opi_ctx_destroy(ctx);
        return status;
    }
    status = status ? status : args_require(a, "gpus", "the number of GPUs that train");
    status = status ? status : args_exclude(a, "recovery", "from-run");
    status = status ? status : read_counts(a, &o);
    status = status ? status : read_word(a, "policy", policies, &o.policy);
    status = status ? status : read_word(a, "failures", arrivals, &o.arrivals);
    status = status ? status : read_fields(a, &o);
    status = status ? status : read_run(ctx, a, &o, &measured);
    if (!status && args_get(a, "recovery")) {
        status = parse_quantity("recovery", args_get(a, "recovery"), "s", 0, 1, 1e6, &o.phase_s[0]);
    }
    if (!status && args_has(a, "burst") && o.arrivals == OPI_PLAN_EXPONENTIAL) {
        status = tool_fail(X_USAGE, "--burst: exponential failures have no bursts; choose --failures weibull, "
                                    "hyperexponential or clustered");
    }
    o.sweep = !args_has(a, "no-sweep");
    status = status ? status : answer(ctx, a, &o, measured.recoveries ? &measured : NULL);
    opi_ctx_destroy(ctx);
    return status;
}

static const opt_def options[] = {
    {"gpus", "N", 0, "GPUs that train, spares not counted; 2 to 131072"},
    {"tp", "N", 0, "tensor-parallel width (default 8 where it divides)"},
    {"pp", "N", 0, "pipeline-parallel width (default 1)"},
    {"gpus-per-node", "N", 0, "GPUs of a node (default 8)"},
    {"nodes-per-rack", "N", 0, "nodes that one switch takes with it (default 4)"},
    {"spares", "N", 0, "idle nodes beside those that train (default 0)"},
    {"replicas", "N", 0, "copies of unique state on other nodes (default 1)"},
    {"policy", "WORD", 0, "when spares run out: stop (default), shrink the data-parallel width, or wait"},
    {"failures", "WORD", 0, "exponential (default), weibull, hyperexponential or clustered"},
    {"burst", "X", 0, "weibull: shape (0.7); hyperexponential: coefficient of variation (3); clustered: mean size (3)"},
    {"burst-window", "TIME", 0, "clustered: mean delay of a follower (10min)"},
    {"burst-near", "SHARE", 0, "clustered: share of followers in the same rack (0.5)"},
    {"process-mtbf", "TIME|never", 0, "between failures of one process on a healthy node (340000h)"},
    {"node-mtbf", "TIME|never", 0, "between failures of one node (8300h)"},
    {"rack-mtbf", "TIME|never", 0, "between failures of one rack (38000h)"},
    {"process-repair", "TIME", 0, "until a new process is there (300s)"},
    {"node-repair", "TIME", 0, "mean time until a failed node is back (12h)"},
    {"rack-repair", "TIME", 0, "the same for a rack (4h)"},
    {"repair-cv", "X", 0, "coefficient of variation of repair times (1)"},
    {"days", "TIME", 0, "length of a replay, in days (30)"},
    {"replays", "N", 0, "independent replays (10)"},
    {"seed", "N", 0, "the same seed, the same failures (0)"},
    {"step", "TIME", 0, "a training step (10s)"},
    {"params", "B", 0, "billions of parameters, from which the sizes of the state follow (70)"},
    {"state-gb", "GB", 0, "state of one process"},
    {"unique-gb", "GB", 0, "its part that only it has (optimizer shards)"},
    {"snapshot-interval", "STEPS", 0, "steps between snapshots (1)"},
    {"snapshot-gbs", "GB/S", 0, "from a device to host memory (20)"},
    {"network-gbs", "GB/S", 0, "of one process to a peer (20)"},
    {"overhead", "SHARE", 0, "what snapshots add to a step beside waiting (0)"},
    {"recovery", "TIME", 0, "a recovery, moving state not counted (24.2s)"},
    {"from-run", "FILE", 0, "take the phases of a recovery from a run's event log (JSON lines)"},
    {"checkpoint-interval", "TIME", 0, "persistent checkpoints of the hot-swap run (1h)"},
    {"checkpoint", "TIME", 0, "writing one (60s)"},
    {"checkpoint-stall", "TIME", 0, "how long one stops the run that restarts from it (as --checkpoint)"},
    {"restart-interval", "TIME", 0, "checkpoints of the run that restarts (Young and Daly's)"},
    {"restart", "TIME", 0, "from a failure to the first step of a job started again (10min)"},
    {"wait", "TIME|never", 0, "--policy wait: then stop (never)"},
    {"idle-cost", "X", 0, "of an idle node, as a share of what a working one is worth (1)"},
    {"no-sweep", NULL, 0, "do not try other numbers of spares"},
    {"check", NULL, 0, "compare the simulator with formulas instead of planning"},
    {"json", NULL, 0, "print JSON"},
    {NULL, NULL, 0, NULL},
};

const verb verb_plan = {
    .name = "plan-training",
    .summary = "goodput of a training run that hot-swaps failed ranks; how many spares pay",
    .usage = "--gpus N [options]",
    .about = "Replays failures of a cluster for a training run that replaces failed ranks by spares while it lives, "
             "beside the same run restarting from checkpoints. TIME is a number with ms, s, min, h or d; without a "
             "unit it is in the unit of the default. The model and its sources: docs/planning.md.",
    .examples = "  omnipilot plan-training --gpus 16384 --tp 8 --pp 16 --params 405 --spares 12 --policy wait\n"
                "  omnipilot plan-training --gpus 1024 --failures clustered --from-run events.jsonl --json\n"
                "  omnipilot plan-training --check\n",
    .options = options,
    .run = run_plan,
};
