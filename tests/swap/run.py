#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functional tests of the hot-swap runtime: real MPI ranks, real deaths, each kind of fault reported as that kind, and
the state in the end always that of a run without failures.

    run.py BUILD [--mpirun PATH] [NAME…]        names: parts of the names of the checks"""

import argparse
import concurrent.futures
import contextlib
import io
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
import campaign  # noqa: E402
import launch  # noqa: E402
import sizes  # noqa: E402
from case import Case  # noqa: E402

TESTS = list(sizes.TESTS)


def test(function):
    TESTS.append(function)
    return function


# ---- nothing fails --------------------------------------------------------------------------------------------------
@test
def no_failure(t):
    for transport in ("sm", "tcp"):
        done = t.run(6, "--steps 20", transport)
        t.same(done)
        t.losses(done)
        t.recoveries(done, 0)
        t.need({e["snapshots"] for e in done.kind("end") if e["role"] == 1} == {21}, "not a snapshot a step, and one before")


@test
def three_dimensions_and_options(t):
    for options in ("--interval 3 --copy 1", "--replicas 2 --user-comm 1 --opaque 1", "--replicas -1 --interval 2"):
        done = t.run(9, "--dp 2 --tp 2 --pp 2 --kill begin:6:5 " + options)
        t.same(done, 2, 2, 2, "--opaque 1" if "opaque" in options else "")
        t.need(done.kind("recovered"), "no recovery")
        if "replicas -1" in options:
            t.has(done, "copies-lost", "step 0")


@test
def sleeping_spare(t):
    done = t.run(3, "--dp 2 --tp 1 --steps 25 --pace-us 100000")
    spare = [e for e in done.kind("end") if e["role"] == 0][0]
    start = [s for s in done.kind("start") if s["by"] == spare["by"]][0]
    t.notes.append("a sleeping spare used %.1f %% of a core (below 5 is the aim)" % (
        100 * spare["cpu_s"] / (spare["time_s"] - start["time_s"])))


# ---- each class of fault, by its name -------------------------------------------------------------------------------
@test
def process_lost(t):
    for transport in ("sm", "tcp"):
        for rank in (0, 1):
            done = t.run(6, "--kill begin:5:%d" % rank, transport)
            t.same(done)
            t.losses(done, "process-lost")
            t.has(done, "process-lost", r"rank %d \(slot %d\)" % (rank, rank), lost=1)
            t.has(done, "recovered", "rank 4 takes slot %d" % rank)
            t.recoveries(done, 1)


@test
def in_the_optimizer(t):
    """State that is half changed is put back."""
    for point in ("moments", "spread", "update", "commit", "reduce", "forward"):
        done = t.run(5, "--kill %s:6:2" % point, "tcp" if point in ("moments", "commit") else "sm")
        t.same(done)
        t.recoveries(done, 1)


@test
def node_lost(t):
    done = t.run(6, "--dp 4 --tp 1 --ranks-per-node 2 --kill begin:5:2+3")
    t.same(done, 4, 1)
    t.losses(done, "node-lost")
    t.has(done, "node-lost", lost=2)


@test
def spare_lost(t):
    done = t.run(6, "--steps 60 --pace-us 3000 --kill begin:5:0>5")
    t.same(done, more="--steps 60")
    t.losses(done, "spare-lost")
    t.has(done, "spare-lost", rank=5)
    t.recoveries(done, 0)


@test
def communicator_fault(t):
    for what in ("--revoke begin:5:1", "--fault begin:5:1", "--fault begin:5:0 --user-comm 1"):
        done = t.run(5, what)
        t.same(done)
        t.losses(done, "comm-fault")
        t.recoveries(done, 1)
        t.none(done, "kill")


@test
def copies_lost(t):
    """Three of four slots and so some slot's only replica: the checkpoint, else step 0, else an error that says so."""
    done = t.run(7, "--dp 4 --tp 1 --kill begin:9:0+1+2 --pace-us 30000")
    t.same(done, 4, 1)
    t.losses(done, "process-lost", "copies-lost")
    t.has(done, "copies-lost", "back to step 0")
    done = t.run(7, "--dp 4 --tp 1 --kill begin:9:0+1+2 --pace-us 30000 --dir FOLDER/ck --checkpoint-interval 3")
    t.same(done, 4, 1)
    t.has(done, "copies-lost", "persistent checkpoint")
    t.has(done, "loaded", "step [25]")
    done = t.run(7, "--dp 4 --tp 1 --kill begin:1:0+1+2 --fail init:2:3")
    t.same(done, 4, 1)


@test
def copies_lost_for_good(t):
    done = t.run(7, "--dp 4 --tp 1 --kill begin:9:0+1+2 --replicas -1 --dir FOLDER/ck --checkpoint-interval 2 --no-init 0")
    t.same(done, 4, 1)


@test
def corrupted_snapshot(t):
    """Its own snapshot of the step to go back to is bad in one rank: its replica is used."""
    done = t.run(6, "--dp 4 --tp 1 --replicas 2 --corrupt-own detected:1:2 --kill moments:6:0")
    t.same(done, 4, 1)
    t.losses(done, "process-lost", "corruption")
    t.has(done, "corruption", "rank 2's copy of slot 2")
    t.recoveries(done, 1)


@test
def corrupted_replica(t):
    """Of the two replicas of the lost slot the one that would be taken first is bad."""
    done = t.run(5, "--dp 4 --tp 1 --replicas 2 --corrupt-held detected:1:2 --kill begin:6:1")
    t.need([f for f in done.kind("flipped") if f["slot"] == 1], "rank 2 keeps no copy of slot 1: another rank must be chosen")
    t.same(done, 4, 1)
    t.losses(done, "process-lost", "corruption")
    t.has(done, "corruption", "rank 2's copy of slot 1")
    t.recoveries(done, 1)


@test
def every_replica_corrupted(t):
    every = " ".join("--corrupt-held detected:1:%d" % r for r in (0, 2, 3))
    done = t.run(5, "--dp 4 --tp 1 --replicas 2 --kill begin:6:1 --pace-us 2000 " + every)
    t.same(done, 4, 1)
    t.losses(done, "process-lost", "corruption", "copies-lost")


@test
def storage_fault(t):
    open(t.path("file"), "w").close()
    done = t.run(4, "--dir FOLDER/file/x --checkpoint-interval 5 --pace-us 2000")
    t.same(done)
    t.losses(done, "storage-fault")
    t.has(done, "storage-fault", "Not a directory; given up, training goes on")
    t.none(done, "checkpointed")
    done = t.run(4, "--dir FOLDER/file/x --fallback FOLDER/other --checkpoint-interval 5 --pace-us 2000")
    t.same(done)
    t.losses(done, "storage-fault")
    t.has(done, "checkpointed", "other")
    t.need(os.path.isdir(t.path("other")), "no folder")


@test
def disk_full(t):
    """Files may not grow beyond 100 KiB, a shard has about 160."""
    done = t.run(4, "--size 20000 --dir FOLDER/ck --checkpoint-interval 5 --fsize 100000 --steps 12 --pace-us 2000")
    t.same(done, more="--size 20000 --steps 12")
    t.losses(done, "storage-fault")
    t.has(done, "storage-fault", "too large|space|EFBIG")
    t.none(done, "checkpointed")
    left = [f for base, _, names in os.walk(t.path("ck")) for f in names]
    t.need(not left, "what a failed save left: %s" % left)


@test
def straggler(t):
    done = t.run(4, "--straggler 3 --slow-rank 2 --slow-us 4000 --steps 10")
    t.same(done, more="--steps 10")
    t.losses(done, "straggler")
    t.has(done, "straggler", "slot 2 was busy", slot=2, rank=2)
    done = t.run(4, "--straggler 1000 --slow-rank -1 --steps 10")
    t.losses(done)


@test
def hung_rank(t):
    """Stopped, not dead: the launcher's heartbeat declares it dead, --evict ends it."""
    done = t.run(6, "--evict 1 --freeze begin:5:1", launcher=("--heartbeat", "1"))
    t.same(done)
    t.losses(done, "process-lost")
    t.recoveries(done, 1)


@test
def declared_dead_and_back(t):
    """Stopped, replaced, and woken while the others go on: it must not disturb them."""
    done = t.run(6, "--steps 60 --pace-us 50000 --freeze begin:5:1 --thaw @2500000:0>1", launcher=("--heartbeat", "1"))
    t.same(done, more="--steps 60")
    t.losses(done, "process-lost")
    t.recoveries(done, 1)
    t.need(done.kind("thaw") and 1 not in {e["by"] for e in done.kind("end")}, "rank 1 was not woken, or ended as if alive")


@test
def left_by_exit(t):
    done = t.run(6, "--exit begin:5:1", launcher=("--heartbeat", "1"))
    t.same(done)
    t.losses(done, "process-lost")


@test
def fenced(t):
    done = t.run(5, "--fence begin:5:0>1")
    t.same(done)
    t.losses(done, "fenced", "process-lost")
    t.has(done, "fenced", rank=1)
    t.refused(done, "FENCED", "rank 1 was declared dead")


@test
def failing_callbacks(t):
    done = t.run(5, "--fail rebuild:2:2 --kill begin:4:1")
    t.same(done)
    t.recoveries(done, 1)
    done = t.run(4, "--copy 1 --fail save:9:2 --pace-us 2000")
    t.same(done)
    t.losses(done, "snapshot-failed")
    t.has(done, "snapshot-failed", slot=2)
    for what in ("--fail rebuild:0:2", "--fail init:0:2"):
        done = t.run(5, what)
        t.refused(done, "INVALID", r"callback (rebuild|init) of rank 2 for slot 2 returned 4[23]", 5)
    done = t.run(5, "--fail assign:0:4 --kill begin:4:1")
    t.refused(done, "INVALID", "callback assign of rank 4 for slot 1 returned 41")
    done = t.run(5, "--copy 1 --fail restore:1:4 --kill begin:4:1")
    t.refused(done, "INVALID", "callback copy returned 45 while it restored state")


@test
def fault_that_stays(t):
    """One rank says in each step that it failed, and nobody dies: that must end, and not be mistaken for deaths."""
    done = t.run(5, "--fault begin:0:1")
    t.refused(done, "INVALID", "20 recoveries in a row without a death and without a step between")
    t.need({e["by"] for e in done.kind("error")} == set(range(5)), "not all ranks have an error")
    t.losses(done, "comm-fault")
    t.none(done, "end")
    done = t.run(5, "--steps 40 " + " ".join("--fault begin:%d:1" % n for n in range(1, 60, 2)))
    t.same(done, more="--steps 40")  # 30 of them with a step between
    t.recoveries(done, 30)


# ---- losses during a recovery ---------------------------------------------------------------------------------------
def second_loss(point, transport):
    def check(t):
        # The victims of the second: a slot's holder, and the spare that has just been given a slot.
        for victim in ("3", "4"):
            occurrence = 1 if point in ("detected", "revoked", "moving", "spawned") else 2
            if victim == "4" and point in ("detected", "revoked"):
                continue
            done = t.run(7, "--kill begin:4:1 --kill %s:%d:%s" % (point, occurrence, victim), transport)
            t.same(done)
            t.need(len(done.kind("kill")) == 2, "the second kill did not happen")
    check.__name__ = "second_loss_%s_%s" % (point, transport)
    return check


for number, name in enumerate(campaign.RECOVERY_POINTS):
    TESTS.append(second_loss(name, ("sm", "tcp")[number % 2]))


@test
def successive_losses(t):
    """Every rank that began is replaced, one after the other."""
    done = t.run(8, "--steps 30 --kill begin:4:0 --kill begin:8:1 --kill begin:12:2 --kill begin:16:3 --pace-us 1000")
    t.same(done, more="--steps 30")
    t.recoveries(done, 4)
    t.need({e["by"] for e in done.kind("final")} == {4, 5, 6, 7}, "not the four spares hold the slots")


# ---- policies -------------------------------------------------------------------------------------------------------
@test
def policy_stop(t):
    done = t.run(4, "--kill begin:9:1 --dir FOLDER/ck --pace-us 2000")
    t.losses(done, "process-lost", "stopped")
    t.has(done, "checkpointed", "step [678]")
    t.need({e["stopped"] for e in done.kind("end")} == {1} and len(done.kind("end")) == 3, "not all stopped")
    done = t.run(4, "--dir FOLDER/ck")
    t.has(done, "loaded", "step [678]")
    t.same(done)


@test
def restart_with_other_widths(t):
    done = t.run(4, "--kill begin:9:1 --dir FOLDER/ck --pace-us 2000")
    t.has(done, "stopped")
    for width in (1, 3):
        shutil.copytree(t.path("ck"), t.path("ck%d" % width))
        done = t.run(2 * width, "--dp %d --dir FOLDER/ck%d" % (width, width))
        t.has(done, "loaded", "step [678]")
        t.same(done, width)
    for _ in range(2):  # an error again: nothing was done to the files
        done = t.run(3, "--tp 1 --pp 1 --dir FOLDER/ck")
        t.refused(done, "INVALID", "tensor-parallel width 2 and pipeline width 1, here they are 1 and 1: use another folder")
        t.none(done, "checkpoint-skipped", "final")
    done = t.run(4, "--dir FOLDER/ck")
    t.has(done, "loaded", "step [678]")
    t.same(done)


@test
def policy_shrink(t):
    done = t.run(4, "--dp 4 --tp 1 --policy 1 --kill begin:5:1 --kill begin:9:2")
    t.same(done, 2, 1)
    t.losses(done, "process-lost", "shrunk")
    t.has(done, "shrunk", "width 3, was 4")
    t.has(done, "shrunk", "width 2, was 3")
    done = t.run(5, "--dp 2 --tp 2 --policy 1 --kill begin:5:1 --kill begin:9:3 --kill begin:15:0", "tcp")
    t.has(done, "shrunk", "width 1, was 2")
    done = t.run(2, "--dp 2 --tp 1 --policy 1 --opaque 1 --kill begin:5:1")
    t.has(done, "stopped")
    done = t.run(2, "--dp 1 --tp 2 --policy 1 --kill begin:5:1")
    t.has(done, "stopped")


@test
def policy_wait(t):
    """New processes share no memory segment with the old ones, so over TCP."""
    done = t.run(4, "--policy 2 --steps 40 --kill begin:5:1 --pace-us 1000 --wait 30", "tcp")
    t.same(done, more="--steps 40")
    t.losses(done, "process-lost", "joined")
    t.has(done, "joined", "1 new")
    done = t.run(4, "--policy 2 --kill begin:5:1", "sm")
    t.refused(done, "UNSUPPORTED", "policy wait: .* cannot talk to these over .*sm.*: start the job with .*--transport tcp", 4)


@test
def nobody_is_left(t):
    done = t.run(6, "--kill begin:9:0+1+2+3+4+5 --dir FOLDER/ck --checkpoint-interval 3 --pace-us 4000")
    t.need(not done.kind("end"), "somebody ended well")
    done = t.run(4, "--dir FOLDER/ck")
    t.has(done, "loaded")
    t.same(done)


# ---- persistent checkpoints -----------------------------------------------------------------------------------------
@test
def damaged_checkpoint(t):
    done = t.run(4, "--steps 12 --dir FOLDER/ck --checkpoint-interval 3 --pace-us 8000")
    steps = sorted(name for name in os.listdir(t.path("ck")) if name.startswith("step-"))
    t.need(len(steps) == 2, "kept: %s" % steps)
    newest = os.path.join(t.path("ck"), steps[-1])
    shard = sorted(n for n in os.listdir(newest) if n != "complete")[0]
    with open(os.path.join(newest, shard), "r+b") as f:
        f.seek(os.path.getsize(f.name) - 100)
        byte = f.read(1)
        f.seek(-1, 1)
        f.write(bytes([byte[0] ^ 1]))
    shutil.copytree(t.path("ck"), t.path("half"))
    done = t.run(4, "--steps 20 --dir FOLDER/ck")
    t.has(done, "checkpoint-skipped", "step %d" % int(steps[-1].split("-")[1]))
    t.has(done, "loaded", "step %d" % int(steps[0].split("-")[1]))
    t.same(done, more="--steps 20")
    os.remove(os.path.join(t.path("half"), steps[0], "complete"))  # now the older one is half written
    done = t.run(4, "--steps 20 --dir FOLDER/half")
    t.none(done, "loaded")
    t.same(done, more="--steps 20")


@test
def checkpoint_on_demand(t):
    done = t.run(4, "--dir FOLDER/ck --bad checkpoint-call --pace-us 3000")
    t.has(done, "checkpointed", step=3)
    t.same(done)


# ---- bad use --------------------------------------------------------------------------------------------------------
@test
def fault_tolerance_off(t):
    mpirun = t.args.mpirun or os.environ.get("OMNIPILOT_MPIRUN") or os.path.join(launch.ROOT, ".mpi/bin/mpirun")
    mpirun = mpirun if os.path.exists(mpirun) else shutil.which("mpirun")
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    done = subprocess.run([mpirun, *root, "--timeout", "40", "--oversubscribe", "-n", "2", t.program, "--dp", "2", "--tp",
                           "1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, HOME=os.environ.get("HOME", "/")))
    t.last = "mpirun without --with-ft ulfm"
    t.need("--with-ft ulfm" in done.stdout and '"code":-13' in done.stdout, "no such message: %s" % done.stdout[:800])


@test
def refused_at_creation(t):
    t.refused(t.run(3, ""), "RANGE", "2 x tp 2 x pp 1 are 4 slots, the communicator has 3 ranks", 3)
    t.refused(t.run(4, "--bad options"), "INVALID", "rank 1 was created with other options", 4)
    t.refused(t.run(4, "--steps 0"), "RANGE", "steps is 0", 4)
    t.refused(t.run(4, "--policy 7"), "RANGE", "policy is 7", 4)
    t.refused(t.run(4, "--bad size0"), "INVALID", "struct_size", 4)
    t.refused(t.run(4, "--checkpoint-interval 3"), "INVALID", "checkpoint_dir is NULL", 4)
    t.refused(t.run(4, "--bad multiple"), "UNSUPPORTED", "MPI_THREAD_MULTIPLE", 4)


@test
def refused_at_registration(t):
    t.refused(t.run(4, "--bad twice"), "INVALID", 'state "parameters" is registered already', 4)
    t.refused(t.run(4, "--bad range"), "INVALID", r'"more": size 40, but elements', 4)
    t.refused(t.run(4, "--memory 10000"), "NOMEM", r"need \d{5} bytes of buffers, memory_limit is 10000 bytes", 4)


@test
def registered_differently(t):
    """Rank 1 is a tensor-parallel neighbor when tp is 2, a data-parallel peer when it is 1."""
    t.refused(t.run(2, "--tp 1 --bad sizes"), "INVALID", r'"more" has \d+ bytes on rank . and \d+ bytes', 2)
    t.refused(t.run(4, "--bad kinds"), "INVALID", r'"more" has kind . on rank \d and kind', 4)
    t.refused(t.run(4, "--bad missing"), "INVALID", r'"more" is registered on rank \d and not on rank 1', 4)


@test
def out_of_order(t):
    """Each is refused, and nothing else happens: training ends in the right state."""
    done = t.run(4, "--bad step-twice,late,watch,checkpoint,null,commit,update")
    t.refused(done, "INVALID", "step 2 was not committed")
    t.refused(done, "INVALID", 'state "late" is new')
    t.refused(done, "INVALID", "comm is MPI_COMM_NULL")
    t.refused(done, "INVALID", "options had no checkpoint_dir")
    t.refused(done, "INVALID", "opi_swap_register: a NULL argument")
    t.refused(done, "INVALID", "opi_swap_commit outside of a step")
    t.refused(done, "INVALID", "opi_swap_update outside of a step")
    t.same(done)


@test
def header_in_cxx(t):
    source = t.path("x.cpp")
    with open(source, "w") as f:
        f.write('#include "omnipilot/swap.h"\nint main() { opi_swap_view v = {}; return v.slot; }\n')
    compiler = shutil.which("c++") or shutil.which("g++")
    t.last = "c++ -fsyntax-only"
    done = subprocess.run([compiler, "-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only",
                           "-I" + os.path.join(launch.ROOT, "include"), source], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    t.need(done.returncode == 0, done.stdout[:600])


@test
def events_and_counters(t):
    done = t.run(6, "--kill begin:5:1 --kill begin:9:2 --pace-us 1000")
    for line in done.kind("counters"):
        t.need(line["recoveries"] == line["events"].get("recovered", 0) == 2, "counters do not fit: %s" % line)
    for line in done.kind("recovered"):
        t.need(set(line["phases_s"]) == {"detected", "revoked", "agreed", "classified", "assigned", "rebuilt", "restored",
                                         "resumed"}, "phases: %s" % line)
        t.need(all(0 <= v < 30 for v in line["phases_s"].values()), "phases: %s" % line)
    t.need(len(done.kind("counters")) == 4, "a counters line of each that is left")
    t.same(done)


# ---- the rest -------------------------------------------------------------------------------------------------------
@test
def training_example(t):
    demo, t.last = os.path.join(launch.ROOT, "examples/train/demo.py"), "examples/train/demo.py"
    train = os.path.join(t.args.build, "examples/train/train")
    if not os.path.exists(train):
        t.notes.append("skip the training example: %s is not built" % train)
        return
    done = subprocess.run([sys.executable, demo, "--build", train, "--steps", "30", "--json", "--timeout", "100"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, stdin=subprocess.DEVNULL)
    t.need(done.returncode == 0, "status %d: %s" % (done.returncode, done.stdout[-1500:]))


def one(args, function):
    t = Case(args)
    t.last = ""
    try:
        function(t)
    except Exception as e:  # a test must not take the others with it
        t.problems.append("%s: %s [%s]" % (type(e).__name__, e, t.last))
    finally:
        shutil.rmtree(t.folder, ignore_errors=True)
    return function.__name__.replace("_", " "), t


def short_campaign(args, checks):
    out = io.StringIO()
    line = ["--build", args.build, "--runs", "20", "--seed", "1", "--policy", "some", "--seconds", "60"]
    with contextlib.redirect_stdout(out):
        status = campaign.main(line + (["--mpirun", args.mpirun] if args.mpirun else []))
    checks.check("a short campaign of random faults", status == 0, "\n" + out.getvalue())
    if os.environ.get("VERBOSE"):
        print(out.getvalue())


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build")
    p.add_argument("--mpirun")
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    checks = harness.Checks()
    if not os.path.exists(os.path.join(args.build, "tests/swap/swap-worker")) and not os.access(args.build, os.X_OK | os.R_OK):
        checks.skip("the hot-swap runtime", "it was not built: no Open MPI with ULFM")
        checks.passed = 1
        checks.done()
    chosen = [f for f in TESTS if not args.names or any(n in f.__name__ for n in args.names)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, t in pool.map(lambda f: one(args, f), chosen):
            checks.none(name, t.problems)
            for note in t.notes:
                print("note %s" % note if not note.startswith("skip") else note)
            sys.stdout.flush()
    if not args.names or "campaign" in args.names:
        short_campaign(args, checks)
    checks.done()


if __name__ == "__main__":
    main()
