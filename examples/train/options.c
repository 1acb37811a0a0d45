/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <omnipilot/swap.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const phase_names[PHASES] = {"start", "compute", "reduce", "update", "spread", "commit", "done"};

const char options_help[] =
    "train: a small GPT, data and tensor parallel, that goes on when ranks die\n"
    "usage: omnipilot-mpirun -n RANKS train [options]     (RANKS beyond dp * tp are spares)\n"
    "  --dp N --tp N           data- and tensor-parallel width (2, 2)\n"
    "  --steps N               (60)\n"
    "  --layers N --width N --heads N --context N           the model (2, 64, 4, 32)\n"
    "  --batch N               samples of a step, over all rows (8)\n"
    "  --micro-batches N       of a step; keeps sums in order when dp changes (max(4, dp) or more)\n"
    "  --rate X --seed N       learning rate (0.003), seed (1)\n"
    "  --policy stop|shrink|wait   when spares run out (stop); --wait S: seconds to wait for new processes\n"
    "  --replicas N            copies of the optimizer state on peers (1; -1: none)\n"
    "  --interval N            a snapshot every N steps (1)\n"
    "  --checkpoint-dir DIR --checkpoint-every N --checkpoint-keep N   persistent checkpoints\n"
    "  --ranks-per-node N      pretend that N ranks in a row share a node\n"
    "  --evict                 end ranks of this host that hang and were declared dead (with --heartbeat)\n"
    "  --straggler X           report a slot that is busy X times the median\n"
    "  --losses FILE           \"step loss hash-of-parameters\" lines, written in the end by slot 0\n"
    "  --event-log FILE        the library's events as JSON lines (%r = rank)\n"
    "  --json, --quiet         JSON lines on stdout; no step lines\n"
    "  --check-gradients       compare with finite differences and with the model that is not split, then end\n"
    "to try things out:\n"
    "  --kill STEP:SLOT[:PHASE]  the holder of SLOT kills itself; PHASE start, compute (default), reduce, update,\n"
    "                            spread, commit or done; may be repeated\n"
    "  --slow SLOT:FACTOR      this slot's computing takes FACTOR times as long\n"
    "  --state-mib N           so much more sharded state a rank\n"
    "  --device-ms N           a step takes a device N ms; the host waits\n";

enum kind { WHOLE32, WHOLE64, REAL, TEXT, FLAG };
typedef struct rule {
    const char *name;
    enum kind kind;
    size_t offset;
    double least, most;
} rule;

#define FIELD(name) offsetof(options, name)
static const rule rules[] = {
    {"--dp", WHOLE32, FIELD(dp), 1, 1024},
    {"--tp", WHOLE32, FIELD(tp), 1, 64},
    {"--steps", WHOLE64, FIELD(steps), 1, 1e7},
    {"--layers", WHOLE32, FIELD(layers), 1, 128},
    {"--width", WHOLE32, FIELD(width), 2, 4096},
    {"--heads", WHOLE32, FIELD(heads), 1, 64},
    {"--context", WHOLE32, FIELD(context), 2, 2048},
    {"--batch", WHOLE32, FIELD(batch), 1, 4096},
    {"--micro-batches", WHOLE32, FIELD(micro_batches), 1, MOST_MICRO_BATCHES},
    {"--rate", REAL, FIELD(rate), 0, 1},
    {"--seed", WHOLE64, FIELD(seed), 0, 9e15},
    {"--replicas", WHOLE32, FIELD(replicas), -1, 16},
    {"--interval", WHOLE32, FIELD(interval), 1, 1e6},
    {"--wait", REAL, FIELD(wait_s), 0, 1e6},
    {"--straggler", REAL, FIELD(straggler), 0, 1e6},
    {"--checkpoint-dir", TEXT, FIELD(checkpoint_dir), 0, 0},
    {"--checkpoint-every", WHOLE64, FIELD(checkpoint_every), 0, 1e9},
    {"--checkpoint-keep", WHOLE32, FIELD(checkpoint_keep), 1, 1e6},
    {"--ranks-per-node", WHOLE32, FIELD(ranks_per_node), 1, 1e6},
    {"--losses", TEXT, FIELD(losses), 0, 0},
    {"--event-log", TEXT, FIELD(event_log), 0, 0},
    {"--state-mib", WHOLE64, FIELD(state_mib), 0, 1e6},
    {"--device-ms", REAL, FIELD(device_ms), 0, 1e6},
    {"--evict", FLAG, FIELD(evict), 0, 0},
    {"--json", FLAG, FIELD(json), 0, 0},
    {"--quiet", FLAG, FIELD(quiet), 0, 0},
    {"--check-gradients", FLAG, FIELD(check_gradients), 0, 0},
    {"--help", FLAG, FIELD(help), 0, 0},
};

static int set_value(const rule *r, const char *text, options *o, char *problem, size_t room)
{
    char *at = (char *)o + r->offset, *end;
    if (r->kind == TEXT) {
        *(const char **)at = text;
        return 1;
    }
    double x = strtod(text, &end);
    if (end == text || *end || !(x >= r->least && x <= r->most) || (r->kind != REAL && x != (double)(int64_t)x)) {
        snprintf(problem, room, "%s %s: it is a %snumber from %.9g to %.9g", r->name, text,
                 r->kind == REAL ? "" : "whole ", r->least, r->most);
        return 0;
    }
    if (r->kind == REAL)
        *(double *)at = x;
    else if (r->kind == WHOLE32)
        *(int *)at = (int)x;
    else
        *(int64_t *)at = (int64_t)x;
    return 1;
}

static int add_kill(const char *text, options *o)
{
    long long step;
    int slot, used = 0;
    if (sscanf(text, "%lld:%d%n", &step, &slot, &used) < 2 || o->kills == MOST_KILLS)
        return 0;
    kill_point k = {step, slot, PHASE_COMPUTE};
    if (text[used] == ':') {
        for (k.phase = 0; k.phase < PHASES && strcmp(phase_names[k.phase], text + used + 1); k.phase++)
            ;
    } else if (text[used]) {
        return 0;
    }
    if (k.phase == PHASES)
        return 0;
    o->kill[o->kills++] = k;
    return 1;
}

/* Options with a form of their own: 1 = taken, 0 = no such option, -1 = a bad value. */
static int set_special(const char *name, const char *text, options *o)
{
    static const char *const policies[] = {"stop", "shrink", "wait"}; /* OPI_SWAP_STOP, _SHRINK, _WAIT */
    if (!strcmp(name, "--kill"))
        return add_kill(text, o) ? 1 : -1;
    if (!strcmp(name, "--slow"))
        return sscanf(text, "%d:%lf", &o->slow_slot, &o->slow_factor) == 2 && o->slow_factor >= 1 ? 1 : -1;
    if (strcmp(name, "--policy"))
        return 0;
    for (int i = 0; i < 3; i++) {
        if (!strcmp(text, policies[i])) {
            o->policy = i;
            return 1;
        }
    }
    return -1;
}

static int check(options *o, char *problem, size_t room)
{
    problem[0] = '\0';
    if (!o->micro_batches) {
        for (o->micro_batches = 4; o->micro_batches < o->dp;)
            o->micro_batches *= 2;
        if (o->micro_batches > o->batch)
            o->micro_batches = o->batch;
    }
    if (o->width % o->heads)
        snprintf(problem, room, "--width %d is no multiple of --heads %d", o->width, o->heads);
    else if (o->heads % o->tp)
        snprintf(problem, room, "--heads %d is no multiple of --tp %d", o->heads, o->tp);
    else if (o->batch % o->micro_batches)
        snprintf(problem, room, "--batch %d is no multiple of --micro-batches %d", o->batch, o->micro_batches);
    else if (o->micro_batches < o->dp)
        snprintf(problem, room, "--micro-batches %d is less than --dp %d: a row would have none", o->micro_batches,
                 o->dp);
    return !problem[0];
}

int options_parse(int argc, char **argv, options *o, char *problem, int room)
{
    const size_t count = sizeof rules / sizeof *rules;
    *o = (options){.dp = 2, .tp = 2, .steps = 60, .layers = 2, .width = 64, .heads = 4, .context = 32, .batch = 8,
                   .seed = 1, .replicas = 1, .interval = 1, .slow_slot = -1, .slow_factor = 1, .rate = 0.003};
    for (int i = 1; i < argc; i++) {
        const char *text = i + 1 < argc ? argv[i + 1] : NULL;
        size_t r = 0;
        while (r < count && strcmp(rules[r].name, argv[i]))
            r++;
        if (r < count && rules[r].kind == FLAG) {
            *(int *)((char *)o + rules[r].offset) = 1;
            continue;
        }
        int special = r == count && text ? set_special(argv[i], text, o) : 0;
        if (special < 0) {
            snprintf(problem, (size_t)room, "%s %s: see --help", argv[i], text);
            return 0;
        }
        if (r == count && !special) {
            snprintf(problem, (size_t)room, "%s: no such option, or its value is missing; see --help", argv[i]);
            return 0;
        }
        if (!text) {
            snprintf(problem, (size_t)room, "%s: its value is missing", argv[i]);
            return 0;
        }
        if (!special && !set_value(&rules[r], text, o, problem, (size_t)room))
            return 0;
        i++;
    }
    return check(o, problem, (size_t)room);
}
