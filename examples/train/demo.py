#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the example once without failures and once with two ranks killed, and shows that nothing but time was lost.

    demo.py --build build                 a timeline of each recovery and the losses of both runs side by side
    demo.py --build build --json          the same as one JSON document

Exit status: 0 only when both runs ended, every killed rank was replaced and all losses and parameters are identical."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PHASES = ("detected", "revoked", "agreed", "classified", "assigned", "rebuilt", "restored", "resumed")
LOSSES = ("process-lost", "node-lost", "spare-lost", "comm-fault", "copies-lost")


class Failed(Exception):
    pass


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", required=True, help="the build folder (or the program itself)")
    p.add_argument("--launcher", default=os.path.join(HERE, "../../tools/omnipilot-mpirun"))
    p.add_argument("--mpirun", help="the mpirun that the launcher uses")
    p.add_argument("--transport", choices=("sm", "tcp"), default="sm")
    p.add_argument("--dp", type=int, default=2)
    p.add_argument("--tp", type=int, default=2)
    p.add_argument("--spares", type=int, default=2)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--kill", action="append", help="STEP:SLOT[:PHASE]; default: slot 0 and the last one")
    p.add_argument("--timeout", type=int, default=120, help="seconds a run may take")
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    if not args.kill:
        last = args.dp * args.tp - 1
        args.kill = ["%d:0:compute" % (args.steps // 3), "%d:%d:update" % (2 * args.steps // 3, last)]
    return args


def program(build):
    for path in (build, os.path.join(build, "train"), os.path.join(build, "examples/train"),
                 os.path.join(build, "examples/train/train")):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    raise Failed("no program `train` in %s: build first (./dev swap-demo builds and runs), with an MPI that has ULFM" % build)


def launch(args, losses, kills):
    """Runs the trainer; returns what it said: a list of JSON objects."""
    command = [args.launcher, "-n", str(args.dp * args.tp + args.spares), "--transport", args.transport,
               "--timeout", str(args.timeout)]
    command += ["--mpirun", args.mpirun] if args.mpirun else []
    command += [program(args.build), "--dp", str(args.dp), "--tp", str(args.tp), "--steps", str(args.steps), "--json",
                "--quiet", "--losses", losses]
    for kill in kills:
        command += ["--kill", kill]
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    environment.setdefault("HOME", "/")  # Open MPI needs one
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        out, err = process.communicate(timeout=args.timeout + 30)
    except subprocess.TimeoutExpired:
        process.terminate()  # the launcher ends its ranks
        out, err = process.communicate()
        raise Failed("a run took more than %d s\n%s" % (args.timeout, err))
    said = []
    for line in out.splitlines():
        try:
            said.append(json.loads(line))
        except ValueError:
            continue  # a remark of mpirun
    if process.returncode or not any(s.get("kind") == "finished" for s in said):
        raise Failed("a run ended with status %d before training was over\n%s%s"
                     % (process.returncode, err, "" if said else out))
    return said


def read_losses(path):
    """[(step, loss, hash)], as text, so that equal means equal in every bit."""
    with open(path) as f:
        return [tuple(line.split()) for line in f]


def recoveries(said):
    """One entry a recovery: who was killed, what the library found, how long each phase took, who took over."""
    timed = sorted((s for s in said if "time_s" in s), key=lambda s: s["time_s"])
    found, kills, events = [], [], []
    for s in timed:
        if s["kind"] == "kill":
            kills.append({"rank": s["by"], "slot": s["slot"], "step": s["step"], "phase": s["phase"],
                          "time_s": s["time_s"]})
        elif s["kind"] == "recovered":
            found.append({"epoch": s["epoch"], "killed": kills, "events": events, "lost": s["lost"],
                          "phases_ms": {p: 1e3 * s["phases_s"][p] for p in PHASES}, "swaps": s["swaps"],
                          "step": s["step"], "redone": s["redone"], "message": s["message"],
                          "resumed_s": s["time_s"]})
            kills, events = [], []
        elif s["kind"] == "resumed" and found:
            found[-1]["resumed_s"] = s["time_s"]
        elif s["kind"] in LOSSES:
            events.append({"kind": s["kind"], "message": s["message"]})
    for r in found:
        if r["killed"]:
            r["kill_to_step_ms"] = 1e3 * (r["resumed_s"] - r["killed"][0]["time_s"])
    return found


def show_recovery(r):
    for k in r["killed"]:
        print("  step %d: rank %d, which has slot %d, kills itself (phase %s)" % (k["step"], k["rank"], k["slot"],
                                                                                  k["phase"]))
    for e in r["events"]:
        print("    %s: %s" % (e["kind"], e["message"]))
    total = 0.0
    for phase in PHASES:
        total += r["phases_ms"][phase]
        print("    %-11s %8.2f ms   %8.2f ms in all" % (phase, r["phases_ms"][phase], total))
    for s in r["swaps"]:
        if s["to"] < 0:
            print("    slot %d (rank %d) is given up" % (s["slot"], s["from"]))
        else:
            print("    slot %d: rank %d takes over from rank %d" % (s["slot"], s["to"], s["from"]))
    print("    goes on with step %d; completed steps computed again: %d" % (r["step"], r["redone"]))
    if "kill_to_step_ms" in r:
        print("    from the kill to the first new step: %.1f ms" % r["kill_to_step_ms"])
    print()


def show_losses(plain, swapped, kills):
    every = max(1, len(plain) // 10)
    marks = {int(k.split(":")[0]) for k in kills}
    print("  %5s  %-22s %-22s %s" % ("step", "loss without failures", "with failures", "identical"))
    for i, row in enumerate(plain):
        if i % every and i not in marks and i + 1 < len(plain):
            continue
        other = swapped[i] if i < len(swapped) else ("-", "-", "-")
        print("  %5s  %-22s %-22s %s%s" % (row[0], row[1], other[1], "yes" if row == other else "NO",
                                           "   a rank was killed" if i in marks else ""))
    print()


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("plain", "swapped")]
        if not args.json:
            print("A GPT on %d x %d = %d slots (data x tensor parallel), %d spares, %d steps, transport %s\n"
                  % (args.dp, args.tp, args.dp * args.tp, args.spares, args.steps, args.transport), flush=True)
        plain_said = launch(args, paths[0], [])
        if not args.json:
            print("without failures: %.1f ms a step\n" % (1e3 * plain_said[-1].get("median_step_s", 0)))
            print("with SIGKILL of %d of its ranks:" % len(args.kill), flush=True)
        said = launch(args, paths[1], args.kill)
        plain, swapped = read_losses(paths[0]), read_losses(paths[1])
    found = recoveries(said)
    identical = plain == swapped and len(plain) == args.steps
    killed = sum(len(r["killed"]) for r in found)
    redone = sum(r["redone"] for r in found)
    right = identical and killed == len(args.kill)
    if args.json:
        losses = [{"step": int(a[0]), "without": float(a[1]), "with": float(b[1]), "identical": a == b}
                  for a, b in zip(plain, swapped)]
        json.dump({"dp": args.dp, "tp": args.tp, "spares": args.spares, "steps": args.steps, "kills": args.kill,
                   "transport": args.transport, "recoveries": found, "steps_redone": redone, "losses": losses,
                   "identical": identical, "right": right}, sys.stdout, indent=1)
        print()
        return 0 if right else 1
    for r in found:
        show_recovery(r)
    show_losses(plain, swapped, args.kill)
    if killed != len(args.kill):
        print("only %d of %d kills were recovered from" % (killed, len(args.kill)))
    print("ranks killed: %d; completed steps computed again: %d; loss %s -> %s" % (killed, redone, plain[0][1],
                                                                                   swapped[-1][1]))
    print("losses and parameters identical bit for bit: %s" % ("yes" if identical else "NO"))
    return 0 if right else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as e:
        print("demo.py: %s" % e, file=sys.stderr)
        sys.exit(1)
