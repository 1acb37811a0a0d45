# SPDX-License-Identifier: Apache-2.0
"""Starts the test program on MPI ranks, waits for it, and reads what it and the library wrote."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LAUNCHER = os.path.join(ROOT, "tools/omnipilot-mpirun")


class Outcome:
    """log: every line of the run, in order of time; hung: it had to be ended."""

    def __init__(self, log, output, status, hung, wall, stacks):
        self.log, self.output, self.status, self.hung, self.wall, self.stacks = log, output, status, hung, wall, stacks

    def kind(self, *kinds):
        return [line for line in self.log if line.get("kind") in kinds]

    def messages(self, *kinds):
        return [line.get("message", "") for line in self.kind(*kinds)]


def redone_problem(done, interval):
    """The promise: a recovery repeats no more completed steps than lie between two snapshots, where some copy is whole."""
    if done.kind("copies-lost", "snapshot-failed", "corruption"):
        return None
    for line in done.kind("recovered"):
        if line["redone"] > interval:
            return "%d completed steps computed again, a snapshot every %d" % (line["redone"], interval)
    for line in done.kind("end"):
        if line["redone"] > line["recoveries"] * interval:
            return "%d steps computed again in %d recoveries, a snapshot every %d" % (line["redone"], line["recoveries"],
                                                                                    interval)
    return None


def worker_of(build):
    for path in (build, os.path.join(build, "worker"), os.path.join(build, "tests/swap/swap-worker")):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    raise SystemExit("no tests/swap/swap-worker in %s: configure it with an Open MPI that has ULFM" % build)


def read_log(path):
    lines = []
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as f:
            for text in f:
                try:
                    lines.append(json.loads(text))
                except ValueError:
                    lines.append({"kind": "unreadable", "message": text.strip(), "time_s": 0})
    # "by" is the rank; sorting is stable, so lines without a time stay where they are.
    last = 0
    for line in lines:
        last = line.setdefault("time_s", last)
    return sorted(lines, key=lambda line: line["time_s"])


def stack(pid):
    """What a process is doing, from gdb or, without it, from the kernel."""
    if shutil.which("gdb"):
        try:
            done = subprocess.run(["gdb", "-batch", "-nx", "-p", str(pid), "-ex", "thread apply all bt 14"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  timeout=40)
            lines = [line for line in done.stdout.splitlines() if line.startswith(("#", "Thread"))]
            if lines:
                return "\n".join("    " + line[:180] for line in lines)
        except (OSError, subprocess.TimeoutExpired):
            pass
    text = ""
    for name in ("wchan", "stack"):
        try:
            with open("/proc/%d/%s" % (pid, name)) as f:
                text += "    %s: %s\n" % (name, f.read().strip())
        except OSError:
            continue
    return text


def alive(pid, program):
    try:
        return os.readlink("/proc/%d/exe" % pid) == os.path.realpath(program)
    except OSError:
        return False


def describe(log, program):
    """Of a run that hangs: the stack of each rank that lives, and the last it said."""
    out = []
    for start in [line for line in log if line.get("kind") == "start"]:
        if not alive(start["pid"], program):
            continue
        last = [line for line in log if line.get("by") == start["by"]][-4:]
        out.append("  rank %d, process %d\n%s\n%s" % (start["by"], start["pid"], stack(start["pid"]),
                                                    "\n".join("    " + json.dumps(line)[:240] for line in last)))
    return "\n".join(out)


def command(program, ranks, transport, limit, arguments, mpirun=None, launch=()):
    line = [LAUNCHER, "-n", str(ranks), "--transport", transport, "--timeout", str(int(limit) + 60), *launch]
    line += ["--mpirun", mpirun] if mpirun else []
    return line + [program] + [str(a) for a in arguments]


def wait_for(process, limit):
    """What it printed. A second in which the whole machine stood still counts as one second, however long it took."""
    left = limit
    while True:
        before = time.monotonic()
        try:
            return process.communicate(timeout=1)[0]
        except subprocess.TimeoutExpired:
            left -= min(time.monotonic() - before, 1.5)
            if left <= 0:
                raise


def run(program, ranks, arguments, transport="sm", limit=60, mpirun=None, launch=(), folder=None):
    """Runs the worker with a log and a pid table in `folder` (made and removed when None)."""
    own = folder is None
    folder = folder or tempfile.mkdtemp(prefix="opi-swap.")
    log = os.path.join(folder, "log")
    for name in ("log", "pids"):
        if os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))
    line = command(program, ranks, transport, limit,
                   list(arguments) + ["--log", log, "--pids", os.path.join(folder, "pids")], mpirun, launch)
    environment = dict(os.environ)
    environment.setdefault("HOME", "/")
    start, hung, stacks = time.time(), False, ""
    process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", env=environment, start_new_session=True)
    try:
        output = wait_for(process, limit)
    except subprocess.TimeoutExpired:
        hung = True
        stacks = describe(read_log(log), program)
        process.send_signal(signal.SIGTERM)  # the launcher ends its ranks
        try:
            output, _ = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        raise
    result = Outcome(read_log(log), output, process.returncode, hung, time.time() - start, stacks)
    if own:
        shutil.rmtree(folder, ignore_errors=True)
    return result
