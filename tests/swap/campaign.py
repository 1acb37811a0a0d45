#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training runs under random faults. Every run must end, and end with the state of a run without failures.

    campaign.py --build FOLDER --runs N --seed S [--transport sm|tcp|both] [--seconds LIMIT] [--policy NAME]
    campaign.py --build FOLDER --only SEED            one run, told in full (what a failing run prints)
    campaign.py --build FOLDER --line "sm 6 --dp 2 …" the same for a line of seeds.txt

Run number i of a campaign has the seed S + i, and everything about it follows from that number (and from --transport
and --policy). Runs that failed once are kept in tests/swap/seeds.txt, in full, and are run first, always."""

import argparse
import collections
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time

import launch

SEEDS = os.path.join(launch.HERE, "seeds.txt")
POLICIES = ("stop", "shrink", "wait")
STEP_POINTS = ("step", "begin", "forward", "reduce", "update", "moments", "spread", "commit")
RECOVERY_POINTS = ("detected", "revoked", "shrunk", "met", "assigned", "split", "rebuilt", "moving", "restored",
                   "agreeing", "agreed")
SHAPES = [(2, 1, 1), (3, 1, 1), (4, 1, 1), (2, 2, 1), (2, 1, 2), (1, 2, 1), (1, 2, 2), (2, 3, 1), (3, 2, 1), (2, 2, 2),
          (4, 2, 1), (1, 1, 2), (5, 1, 1), (8, 1, 1)]


class Plan:
    """What one run is, from its seed."""

    def __init__(self, seed, transport, policies):
        r = self.r = random.Random("omnipilot-swap %d" % seed)
        self.seed = seed
        self.transport = r.choice(("sm", "tcp"))
        if transport != "both":
            self.transport = transport
        self.policy = r.choice(policies)
        if self.policy == "wait":
            self.transport = "tcp"  # processes started later share no memory with the first ones
        self.dp, self.tp, self.pp = r.choice(SHAPES)
        self.slots = self.dp * self.tp * self.pp
        self.spares = r.choice((0, 1, 2, 2, 3, 3, 4, 4)) if self.slots < 8 else r.choice((1, 2, 3))
        self.ranks = self.slots + self.spares
        self.steps = r.randint(6, 24)
        self.size = r.choice((200, 1500, 1500, 20000))
        self.opaque = int(self.policy != "shrink" and r.random() < 0.4)
        # State whose size changes; of a generator of its own, so that the rest of a seed stays what it was.
        self.grow = int(random.Random("omnipilot-swap grow %d" % seed).random() < 0.4)
        self.options = {"replicas": r.choice((1, 1, 1, 2, -1)), "interval": r.choice((1, 1, 2, 3)),
                        "user-comm": r.choice((0, 1)), "copy": r.choice((0, 1)), "pace-us": r.choice((0, 500, 3000))}
        if r.random() < 0.6:
            self.options["ranks-per-node"] = r.choice((1, 2, 3))
            self.options["nodes-per-rack"] = r.choice((0, 2))
        self.files = r.random() < 0.5
        if self.files:
            self.options["checkpoint-interval"] = r.choice((0, 2, 3, 5))
        self.kills = []
        for _ in range(r.choice((1, 1, 2, 2, 3))):
            self.kills.append(self.one_kill())
        if self.spares < 2 or self.kills[0].startswith("finishing") or r.random() < 0.5:
            return
        # A second loss in the recovery from the first.
        points = RECOVERY_POINTS + (("spawned",) if self.policy == "wait" else ())
        self.kills.append("%s:%d:%s" % (r.choice(points), r.choice((1, 2, 2, 2, 3)), self.victims()))

    def victims(self):
        # Mostly what the spares can make good, so that the runs do not all end with a stop.
        most = 3 if self.r.random() < 0.25 else max(1, self.spares // 2)
        count = min(self.r.choice((1, 1, 1, 2, 2, 3)), most, self.ranks)
        return "+".join(map(str, self.r.sample(range(self.ranks), count)))

    def one_kill(self):
        r = self.r
        way = r.random()
        if way < 0.25:
            return "@%d:%s" % (r.choice((r.randint(0, 3000), r.randint(0, 40000), r.randint(0, 150000))), self.victims())
        if way < 0.3:
            return "finishing:1:%s" % self.victims()
        if way < 0.4:
            return "%s:1:%s" % (r.choice(("shrunk", "met", "split", "rebuilt", "agreeing", "agreed")), self.victims())
        # The first of the victims must hold a slot to pass a point of the step.
        victims = self.victims().split("+")
        victims[0] = str(r.randrange(self.slots))
        victims = list(dict.fromkeys(victims))
        return "%s:%d:%s" % (r.choice(STEP_POINTS), r.randint(1, self.steps), "+".join(victims))

    def klass(self):
        points = [k.split(":")[0] for k in self.kills]
        if any(p in RECOVERY_POINTS + ("spawned",) for p in points):
            return "in recovery"
        if any("+" in k for k in self.kills):
            return "several at once"
        if any(p.startswith("@") for p in points):
            return "any moment"
        return "one after another" if len(self.kills) > 1 else "one"

    def state(self):
        """What the final state depends on, the data-parallel width apart."""
        return ["--tp", self.tp, "--pp", self.pp, "--steps", self.steps, "--size", self.size, "--opaque", self.opaque] + (
            ["--grow", self.grow] if self.grow else [])

    def arguments(self, folder):
        line = ["--dp", self.dp] + self.state() + ["--policy", POLICIES.index(self.policy)]
        for name, value in self.options.items():
            line += ["--" + name, value]
        if self.policy == "wait":
            line += ["--wait", 20]
        if self.files:
            line += ["--dir", os.path.join(folder, "checkpoints")]
        return line

    def fault_arguments(self):
        return [word for kill in self.kills for word in ("--kill", kill)]

    def line(self):
        """All of it, as seeds.txt has it."""
        return "%s %d %s" % (self.transport, self.ranks, " ".join(map(str, self.arguments("FOLDER") + self.fault_arguments())))

    def told(self):
        return "seed %s: %s, dp %d tp %d pp %d + %d, %s%s, %s" % (
            self.seed, self.transport, self.dp, self.tp, self.pp, self.spares, self.policy,
            (", files" if self.files else "") + (", sizes change" if self.grow else ""),
            " ".join("--kill " + k for k in self.kills))


class KeptPlan(Plan):
    """One from its line."""

    def __init__(self, line):
        words = line.split()
        self.seed, self.transport, self.ranks = "kept", words[0], int(words[1])
        given = list(zip(words[2::2], words[3::2]))
        self.kills = [value for name, value in given if name == "--kill"]
        self.options = {name[2:]: value for name, value in given if name != "--kill"}
        take = self.options.pop
        self.dp, self.tp, self.pp = (int(take(name)) for name in ("dp", "tp", "pp"))
        self.slots = self.dp * self.tp * self.pp
        self.spares = self.ranks - self.slots
        self.steps, self.size, self.opaque = (int(take(name)) for name in ("steps", "size", "opaque"))
        self.grow = int(take("grow", 0))
        self.policy = POLICIES[int(take("policy"))]
        self.files = bool(take("dir", None))
        take("wait", None)


class Campaign:
    def __init__(self, args):
        self.args = args
        self.program = launch.worker_of(args.build)
        self.cache = {}

    def run(self, ranks, arguments, transport, folder, limit=None):
        return launch.run(self.program, ranks, arguments, transport, limit or self.args.limit, self.args.mpirun, folder=folder)

    def reference(self, plan, dp):
        """The final line of each slot of a run of that width without failures."""
        key = (dp, *map(str, plan.state()))
        if key not in self.cache:
            done = self.run(dp * plan.tp * plan.pp, ["--dp", dp] + plan.state(), "sm", None, 2 * self.args.limit)
            finals = {line["slot"]: line["hash"] for line in done.kind("final")}
            if done.hung or len(finals) != dp * plan.tp * plan.pp:
                raise SystemExit("the run without failures does not end well:\n%s\n%s" % (done.output, done.stacks))
            self.cache[key] = finals
        return self.cache[key]

    def judge(self, plan, done, may_stop):
        """(problem or None, ended well before the last step)."""
        if done.hung:
            return "HANG: not over after %.0f s\n%s" % (self.args.limit, done.stacks), False
        for line in done.kind("wrong", "error", "unreadable"):
            return "%s %s" % (line["kind"], line.get("what") or line.get("message")), False
        again = launch.redone_problem(done, int(plan.options.get("interval", 1)))
        if again:
            return again, False
        killed = {line["rank"] for line in done.kind("kill")}
        started = {line["by"] for line in done.kind("start")}
        ends = {line["by"]: line for line in done.kind("end")}
        for rank in sorted(started - killed):
            if rank not in ends:
                return "rank %d was not killed and has not ended" % rank, False
        stopped = {line["stopped"] for line in ends.values()}
        if len(stopped) > 1:
            return "some ranks say stopped, others do not", False
        if not ends:
            return (None, True) if len(started - killed) == 0 else ("no rank ended", False)
        if stopped == {1}:
            if not may_stop:
                return "stopped although policy or spares did not ask for it", False
            if not done.kind("stopped"):
                return "stopped without the event", False
            return None, True
        finals = done.kind("final")
        if not finals:
            # All that held slots may have been killed when they were done.
            return (None, True) if any(k["point"] == "timer" for k in done.kind("kill")) else ("no final state", False)
        width = finals[0]["dp_width"]
        if width > plan.dp or (width < plan.dp and plan.policy != "shrink"):
            return "data-parallel width %d" % width, False
        want = self.reference(plan, width)
        seen = {}
        for line in finals:
            if line["dp_width"] != width or line["steps"] != plan.steps:
                return "slot %d ended at step %d of width %d" % (line["slot"], line["steps"], line["dp_width"]), False
            if want.get(line["slot"]) != line["hash"]:
                return "WRONG STATE of slot %d: %s, without failures %s" % (line["slot"], line["hash"],
                                                                           want.get(line["slot"])), False
            seen[line["slot"]] = 1
        # One that died after the last agreement has no line.
        last = max(line["time_s"] for line in finals)
        late = [k for k in done.kind("kill") if k["point"] == "timer" or k["time_s"] > min(f["time_s"] for f in finals)]
        if len(seen) != len(want) and not late:
            return "slots without a final state: %s (%.3f)" % (sorted(set(want) - set(seen)), last), False
        return None, False

    def times(self, done):
        """Kill to first new step, ms, for each recovery that a kill began."""
        out, first = [], None
        for line in done.log:
            if line.get("kind") == "kill" and first is None:
                first = line["time_s"]
            elif line.get("kind") == "go" and first is not None:
                out.append(1e3 * (line["time_s"] - first))
                first = None
        return out

    def one(self, plan, verbose=False):
        """(problem, recoveries, times in ms)"""
        folder = tempfile.mkdtemp(prefix="opi-swap.")
        try:
            done = self.run(plan.ranks, plan.arguments(folder) + plan.fault_arguments(), plan.transport, folder)
            if verbose:
                show(done)
            recoveries = max([line["recoveries"] for line in done.kind("end")] or [0])
            problem, early = self.judge(plan, done, plan.policy != "wait" or plan.spares == 0)
            times = self.times(done)
            if not problem and early:
                problem = self.restart(plan, folder, done, verbose)
            if problem and not verbose:
                problem += "\n    mpirun said: %s" % done.output[-1500:] if done.output.strip() else ""
                problem += "\n    the last lines of the log:\n" + "\n".join(
                    "    " + str(line)[:260] for line in done.log if line["kind"] not in ("counters", "start"))[-6000:]
            return problem, recoveries, times, early
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def restart(self, plan, folder, first, verbose):
        """After a stop: from its checkpoint, to the same state. Without files it begins anew."""
        written = first.kind("checkpointed")
        again = self.run(plan.slots, plan.arguments(folder), plan.transport, folder)
        if verbose:
            show(again)
        problem, early = self.judge(plan, again, False)
        if problem or early:
            return "after the restart: %s" % (problem or "stopped again")
        if written and not again.kind("loaded"):
            return "after the restart: a checkpoint was written and not loaded"
        return None


def show(done):
    for line in done.log:
        print("  " + str(line)[:400])
    print("  mpirun: status %d, %.1f s\n%s" % (done.status, done.wall, done.output))


def repeat(args, plan):
    if plan.seed == "kept":
        return "python3 tests/swap/campaign.py --build %s --line \"%s\"" % (args.build, plan.line())
    return "python3 tests/swap/campaign.py --build %s --transport %s --policy %s --only %d" % (
        args.build, args.transport, args.policy, plan.seed)


def kept(path=SEEDS):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        lines = [line.split("#")[0].strip() for line in f]
    return [KeptPlan(line) for line in lines if line]


def table(rows):
    print("\n%-18s %-4s %5s %6s %10s %9s %9s" % ("kills", "", "runs", "failed", "recoveries", "median ms", "p90 ms"))
    for (klass, transport), runs in sorted(rows.items()):
        times = sorted(t for run in runs for t in run[2])
        half = "%.0f" % statistics.median(times) if times else "-"
        most = "%.0f" % times[-(-9 * len(times) // 10) - 1] if len(times) >= 10 else "-"  # of fewer it says nothing
        print("%-18s %-4s %5d %6d %10d %9s %9s" % (klass, transport, len(runs), sum(1 for x in runs if x[0]),
                                                   sum(x[1] for x in runs), half, most))


def policies_of(name):
    return tuple(POLICIES) if name == "all" else (name,) if name in POLICIES else ("stop", "shrink")


def main(arguments=None):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", default="build")
    p.add_argument("--mpirun", help="tools/omnipilot-mpirun (which finds its mpirun) or an mpirun")
    p.add_argument("--runs", type=int, default=20)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--transport", choices=("sm", "tcp", "both"), default="both")
    p.add_argument("--policy", choices=POLICIES + ("all", "some"), default="all", help="some: all but wait")
    p.add_argument("--seconds", type=float, default=0, help="begin no further run after so long")
    p.add_argument("--limit", type=float, default=60, help="seconds a run may take before it counts as hanging")
    p.add_argument("--only", type=int, help="one run, told in full")
    p.add_argument("--line", help="one run, told in full, from a line of seeds.txt")
    p.add_argument("--no-kept", action="store_true", help="without the seeds of seeds.txt")
    args = p.parse_args(arguments)
    if args.mpirun and os.path.basename(args.mpirun) == "omnipilot-mpirun":
        args.mpirun = None
    c = Campaign(args)
    if args.only is not None or args.line:
        plan = KeptPlan(args.line) if args.line else Plan(args.only, args.transport, policies_of(args.policy))
        print(plan.told() + "\n" + plan.line())
        problem = c.one(plan, True)[0]
        print(problem or "passed")
        return 1 if problem else 0
    todo = [] if args.no_kept else kept()
    todo += [Plan(args.seed + i, args.transport, policies_of(args.policy)) for i in range(args.runs)]
    rows, failed, passed, start, early = collections.defaultdict(list), 0, 0, time.time(), 0
    for plan in todo:
        if args.seconds and time.time() - start > args.seconds:
            print("time is up: %d of %d runs" % (passed + failed, len(todo)))
            break
        result = c.one(plan)
        rows[(plan.klass(), plan.transport)].append(result)
        early += result[3]
        if result[0]:
            failed += 1
            print("FAIL %s\n  %s\n  again: %s\n  for seeds.txt: %s" % (plan.told(), result[0], repeat(args, plan),
                                                                     plan.line()))
            sys.stdout.flush()
        else:
            passed += 1
    table(rows)
    print("%d runs stopped before the last step, and were restarted; %.0f s in all" % (early, time.time() - start))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that ranks and folders go too
    sys.exit(main())
