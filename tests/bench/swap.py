#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libomnipilot-swap costs while nothing fails, and how long a recovery takes.

    swap.py --build FOLDER [--quick] [--json] [--only overhead,recovery,spare] [--rounds N] [--kills N]

Everything that is compared was measured in turns in one run, so a busy machine makes both sides slower. Nothing here is
a test: no time decides anything. All of it takes about eight minutes, --quick about two."""

import argparse
import array
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LAUNCHER = os.path.join(ROOT, "tools/omnipilot-mpirun")
MIB = 1048576
STEP_MS = 200

# As in bench_swap.h.
PHASES = ("detected", "revoked", "agreed", "classified", "assigned", "rebuilt", "restored", "resumed")
MAX_RANKS, MAX_KILLS, RECORD_HEAD = 64, 16, 8
RECORD_RANK = 2 + len(PHASES)
RECORD = RECORD_HEAD + MAX_RANKS * RECORD_RANK


def median(values):
    return statistics.median(values) if values else float("nan")


def launch(args, ranks, transport, words, limit=300):
    line = [LAUNCHER, "-n", str(ranks), "--transport", transport, "--timeout", str(limit)]
    if args.mpirun:
        line += ["--mpirun", args.mpirun]
    done = subprocess.run(line + [args.program] + [str(w) for w in words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode:
        raise SystemExit("swap.py: a run ended with status %d: %s\n%s" %
                         (done.returncode, " ".join(map(str, words)), done.stderr[-2000:]))
    return [json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]


def free_memory():
    with open("/proc/meminfo") as f:
        for line in f:
            if line.startswith("MemAvailable"):
                return int(line.split()[1]) * 1024
    return 0


def fits(mib, ranks, copies):
    return mib * MIB * ranks * copies < 0.8 * free_memory()


def note(text):
    print("  … " + text, file=sys.stderr, flush=True)


# ---- step time without failures ----

def overhead(args, host, mib, ranks, more, rounds, folder):
    block = 6
    note("%s mode, %d MiB a rank" % ("host" if host else "device", mib))
    words = ["steps", "--dp", ranks, "--mib", mib, "--step-ms", STEP_MS, "--host", int(host), "--rounds", rounds,
             "--block", block, "--more", int(more), "--dir", folder]
    answer = launch(args, ranks + 1, "sm", words)[0]
    # The first step of a block has the end of the other variant's work in it; the first block has the page faults.
    steps = {name: [t for i, t in enumerate(answer[name]) if i % block and i >= block]
             for name in ("with", "without", "blocking")}
    steps["file"] = answer["file"][2:] or answer["file"]
    base = median(steps["without"])
    row = {"mode": "host" if host else "device", "mib": mib, "ranks": ranks, "without_s": base,
           "copy_rate": answer["copy_rate"], "waits": answer["waits"], "wait_s": answer["wait_s"],
           "buffer_bytes": answer["buffer_bytes"]}
    for name in ("with", "blocking", "file"):
        if steps[name]:
            row[name + "_s"] = median(steps[name])
            row[name + "_ratio"] = median(steps[name]) / base
            row[name + "_worst"] = max(steps[name]) / base
    # What cannot be avoided where all cores compute: the copy of a rank's state and the copy that arrives from a peer.
    row["limit_s"] = 2 * mib * MIB / answer["copy_rate"]
    row["added_s"] = row["with_s"] - base
    row["times_limit"] = row["added_s"] / row["limit_s"]
    row["noise_s"] = median([abs(t - base) for t in steps["without"]])
    return row


def overheads(args):
    ranks = max(2, min(os.cpu_count() or 2, 8))
    sizes = args.sizes or ((1, 16, 64) if args.quick else (1, 4, 16, 64, 256))
    rows = []
    with tempfile.TemporaryDirectory(prefix="opi-bench.", dir=args.dir) as folder:
        for host in (False, True):
            for mib in sizes:
                if not fits(mib, ranks, 8):
                    note("%d MiB a rank do not fit into this machine's memory: left out" % mib)
                    continue
                rows.append(overhead(args, host, mib, ranks, mib == 64, args.rounds if mib == 64 else
                                     max(2, args.rounds * 2 // 3), folder))
    return rows


def show_overheads(rows):
    if not rows:
        return
    ranks = rows[0]["ranks"]
    print("\nStep time while nothing fails: %d ranks that train and a spare, steps of %d ms, a snapshot of every step and"
          "\na replica on a peer; x = beside the same loop and calls without snapshots, in turns in the same run.\n"
          % (ranks, STEP_MS))
    print("Device mode: the host waits in opi_swap_idle, as for a GPU. Aim: x 1.01 at 64 MiB.")
    print("  MiB/rank   without       with  median   worst   waits")
    for r in rows:
        if r["mode"] == "device":
            print("  %8d  %6.1f ms  %6.1f ms  x%5.3f  x%5.3f  %6d" %
                  (r["mib"], 1e3 * r["without_s"], 1e3 * r["with_s"], r["with_ratio"], r["with_worst"], r["waits"]))
    print("\nHost mode: every core computes, so each copy costs its time. Limit: the copy of a rank's state and the one it"
          "\nkeeps for a peer at the speed at which all ranks together copy memory. Aim: added time <= 1.3 x limit.")
    print("  MiB/rank   without       with  median   worst     added     limit  added/limit   memory")
    for r in rows:
        if r["mode"] == "host":
            noise = r["limit_s"] < 2 * r["noise_s"]  # steps without snapshots differ by more than that
            print("  %8d  %6.1f ms  %6.1f ms  x%5.3f  x%5.3f  %5.1f ms  %5.1f ms  %11s  %4.1f GB/s" %
                  (r["mib"], 1e3 * r["without_s"], 1e3 * r["with_s"], r["with_ratio"], r["with_worst"],
                   1e3 * r["added_s"], 1e3 * r["limit_s"], "in noise" if noise else "%.2f" % r["times_limit"],
                   r["copy_rate"] / 1e9))
    if not any("blocking_ratio" in r for r in rows):
        return
    print("\nThe same loop with other ways to save its state each step (median, worst):")
    print("  mode     MiB/rank    this library      copy + exchange,    file + fsync,")
    print("                                         waited for          waited for")
    for r in rows:
        if "blocking_ratio" in r:
            print("  %-7s  %8d    x%5.2f x%5.2f      x%5.2f x%5.2f         x%5.2f x%5.2f" %
                  (r["mode"], r["mib"], r["with_ratio"], r["with_worst"], r["blocking_ratio"], r["blocking_worst"],
                   r["file_ratio"], r["file_worst"]))


# ---- recovery ----

def read_kills(path, ranks, kills):
    with open(path, "rb") as f:
        a = array.array("d", f.read())
    out = []
    for k in range(kills):
        at = k * RECORD
        killed, victim, slot, step, redone, wrong = a[at:at + 6]
        seen = []
        for rank in range(ranks):
            r = at + RECORD_HEAD + rank * RECORD_RANK
            if a[r] > 0:
                phases = dict(zip(PHASES, a[r + 2:r + 2 + len(PHASES)]))
                # The library's own "detected" begins at its last good call; here it begins at the kill.
                phases["detected"] = a[r] - killed - sum(phases[p] for p in PHASES[1:])
                seen.append({"total": a[r] - killed, "phases": phases})
        if not killed or not seen:
            raise SystemExit("swap.py: kill %d of a run was not recovered from" % k)
        if wrong:
            raise SystemExit("swap.py: a slot had wrong state after kill %d" % k)
        last = max(seen, key=lambda s: s["total"])
        out.append({"copy_rate": a[RECORD_HEAD - 2], "total_s": last["total"], "phases_s": last["phases"],
                    "redone": int(redone), "slot": int(slot), "resumed": len(seen)})
    return out


def kill_step_ms(active, mib):
    """Long enough for the replica traffic of a step to be over within it."""
    return int(100 * max(1, active * mib / 96))


def kill_run(args, transport, dp, tp, spares, mib, kills, seed):
    ranks = dp * tp + spares
    with tempfile.NamedTemporaryFile(prefix="opi-bench.") as shared:
        shared.write(bytes(8 * RECORD * MAX_KILLS))
        shared.flush()
        launch(args, ranks, transport, ["kills", "--dp", dp, "--tp", tp, "--mib", mib, "--step-ms",
                                        kill_step_ms(dp * tp, mib), "--kills", kills, "--seed", seed, "--shared",
                                        shared.name])
        found = read_kills(shared.name, ranks, kills)
    for one in found:
        if one["resumed"] != dp * tp:
            raise SystemExit("swap.py: %d of %d slots went on after a kill" % (one["resumed"], dp * tp))
    return found


def recovery(args, transport, dp, tp, mib, kills):
    """Two spares, so two kills a run."""
    ranks = dp * tp + 2
    note("recovery: %s, %d ranks, %d MiB" % (transport, ranks, mib))
    found = []
    seed = 0
    while len(found) < kills:
        found += kill_run(args, transport, dp, tp, 2, mib, 2, seed)
        seed += 1
    totals = sorted(one["total_s"] for one in found)
    restored = median([one["phases_s"]["restored"] for one in found])
    rate = median([one["copy_rate"] for one in found])
    return {"copy_rate": rate, "restored_copies": restored * rate / (mib * MIB), "step_ms": kill_step_ms(dp * tp, mib),
            "transport": transport, "ranks": ranks, "active": dp * tp, "spares": 2, "mib": mib, "kills": len(found),
            "median_s": median(totals), "p90_s": totals[int(0.9 * (len(totals) - 1) + 0.5)], "worst_s": totals[-1],
            "redone": sum(one["redone"] for one in found) / len(found),
            "phases_s": {p: median([one["phases_s"][p] for one in found]) for p in PHASES}}


def recoveries(args):
    kills, few = args.kills, max(4, args.kills // 2)
    rows = {"main": [], "ranks": [], "size": []}
    for transport in ("sm", "tcp"):
        rows["main"].append(recovery(args, transport, 3, 2, 16, kills))
    for dp, tp in ((2, 1), (7, 2)) if args.quick else ((2, 1), (7, 2), (15, 2)):
        for transport in ("sm", "tcp"):
            if fits(16, dp * tp, 5):
                rows["ranks"].append(recovery(args, transport, dp, tp, 16, few))
    for mib in (1, 64) if args.quick else (1, 64, 256):
        if fits(mib, 6, 5):
            rows["size"].append(recovery(args, "sm", 3, 2, mib, 4))
    return rows


def show_recovery_rows(rows):
    shown = ("detected", "revoked", "agreed", "rebuilt", "restored", "resumed")
    print("  transport  ranks  MiB/rank  kills   median      p90    worst  redone  " + " ".join("%9s" % p for p in shown))
    for r in rows:
        print("  %-9s  %5d  %8d  %5d  %5.0f ms %5.0f ms %5.0f ms  %6.2f  " %
              (r["transport"], r["ranks"], r["mib"], r["kills"], 1e3 * r["median_s"], 1e3 * r["p90_s"],
               1e3 * r["worst_s"], r["redone"]) + " ".join("%6.1f ms" % (1e3 * r["phases_s"][p]) for p in shown))


def show_recoveries(rows, cores):
    print("\nRecovery: from the SIGKILL of a rank that holds a slot to the first new step of the last slot, on %d cores."
          "\nSteps of 100 ms (more where the copies of a step take longer) of device work in kernels of 5 ms; two"
          "\nof the ranks are spares, two kills a run. Phases are medians on the rank that was last; redone: completed steps"
          "\ncomputed again, on average. State checked after each. Aim: median <= 100 ms with 8 ranks of 16 MiB on either"
          "\ntransport.\n" % cores)
    show_recovery_rows(rows["main"])
    print("\nGrowth with the number of ranks (more of them than cores):")
    show_recovery_rows(sorted([r for r in rows["main"]] + rows["ranks"], key=lambda r: (r["transport"], r["ranks"])))
    print("\nGrowth with the size of the state:")
    by_size = sorted([r for r in rows["main"] if r["transport"] == "sm"] + rows["size"], key=lambda r: r["mib"])
    show_recovery_rows(by_size)
    print("\nThe phase `restored` beside one copy of a rank's state in memory, which one rank alone makes in the same run:")
    for r in by_size:
        print("  %8d MiB  %7.1f ms  = %4.1f copies at %4.1f GB/s" %
              (r["mib"], 1e3 * r["phases_s"]["restored"], r["restored_copies"], r["copy_rate"] / 1e9))


# ---- the spare ----

def spare(args):
    note("an idle spare")
    answers = launch(args, 4, "sm", ["idle", "--dp", 2, "--mib", 16, "--step-ms", 100, "--seconds", 2 if args.quick else 5])
    return {a["who"]: a["share"] for a in answers if a["kind"] == "cpu"}


def show_spare(row):
    print("\nProcessor time of a rank that waits, in percent of a core: a spare in opi_swap_step %.1f %%, the same inside a"
          "\nblocking MPI call %.0f %%." % (100 * row.get("spare", float("nan")),
                                          100 * row.get("blocked in MPI", float("nan"))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="folder of an optimized build with libomnipilot-swap")
    parser.add_argument("--json", action="store_true", help="the same for a machine")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and repetitions: about two minutes")
    parser.add_argument("--only", default="overhead,recovery,spare", help="parts, separated by commas")
    parser.add_argument("--rounds", type=int, help="turns of each variant of the step")
    parser.add_argument("--sizes", type=lambda text: [int(word) for word in text.split(",")],
                        help="MiB of sharded state a rank, separated by commas, for the step times")
    parser.add_argument("--kills", type=int, help="kills of each kind of recovery")
    parser.add_argument("--dir", help="folder for the file checkpoints that are compared with; default: the temporary one")
    parser.add_argument("--mpirun")
    args = parser.parse_args()
    args.rounds = args.rounds or (4 if args.quick else 6)
    args.kills = args.kills or (8 if args.quick else 16)
    args.program = os.path.abspath(os.path.join(args.build, "tests/bench/swap-bench"))
    if not os.path.exists(args.program):
        sys.exit("swap.py: no tests/bench/swap-bench in %s: was it configured with an Open MPI that has ULFM?" % args.build)
    parts = args.only.split(",")
    result = {"cores": os.cpu_count(), "load_before": os.getloadavg()[0]}
    if "overhead" in parts:
        result["overhead"] = overheads(args)
    if "recovery" in parts:
        result["recovery"] = recoveries(args)
    if "spare" in parts:
        result["spare"] = spare(args)
    result["load_after"] = os.getloadavg()[0]
    if args.json:
        json.dump(result, sys.stdout, indent=1)
        print()
        return
    if result["load_before"] > 0.5:
        print("Other work was running here when this began (load %.1f): trust ratios, not times." % result["load_before"])
    show_overheads(result.get("overhead"))
    if "recovery" in result:
        show_recoveries(result["recovery"], result["cores"])
    if "spare" in result:
        show_spare(result["spare"])


if __name__ == "__main__":
    main()
