#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the groups of tests against a build folder and adds up what they counted.

    run.py --build FOLDER [--sanitized] [--numpy PYTHON] [GROUP…]
    run.py --list

Without names all groups run, except `measured`, which takes minutes and runs in continuous integration (CI=true) or by
name. Every group prints its own totals (Check's, unittest's, or "N passed, N failed, N skipped"); a group without any, or one
that ends badly without a failed test, counts as one failure. The last line is the sum.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT_S = 1500  # of one group: a hang must end, and say which group hung

CHECK = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", re.M)
PLAIN = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$", re.M)
UNITTEST = re.compile(r"^Ran (\d+) tests?\b", re.M)
UNITTEST_END = re.compile(r"^(?:OK|FAILED)(?: \(([^)]*)\))?\s*$", re.M)
SKIP = re.compile(r"^skip ", re.M)


def python(*arguments):
    return [sys.executable, *arguments]


def groups(args):
    """The command of each group, by name."""
    build = args.build
    known = {
        "golden": python("tests/golden/test_cli.py", os.path.join(build, "tools/omnipilot")),
        "measured": python("tests/golden/measured.py", os.path.join(build, "tools/omnipilot")),
        "unit": [os.path.join(build, "tests/unit/unit")],
        "fuzz": python("tests/fuzz/run.py", "--smoke"),
        "examples": python("tests/embed/examples.py", build),
        "bindings": [args.numpy or sys.executable, "bindings/python/test_omnipilot.py"],
        "alloc": [os.path.join(build, "tests/alloc/alloc")],
        "embed": python("tests/embed/install.py", build),
        "style": python("tests/style/layers.py"),
        "symbols": python("tests/abi/symbols.py", build),
        "layout": python("tests/abi/layout.py"),
        "headers": python("tests/abi/headers.py"),
        "launcher": python("tests/swap/launcher.py"),
    }
    if os.path.exists(os.path.join(ROOT, "tests/swap/run.py")):
        known["swap"] = python("tests/swap/run.py", build)
    return known


def count(output, status):
    """(passed, failed, skipped) from what a group printed."""
    passed = failed = skipped = 0
    found = False
    for checks, failures, errors in CHECK.findall(output):
        found = True
        bad = int(failures) + int(errors)
        skips = len(SKIP.findall(output))
        passed, failed, skipped = int(checks) - bad - skips, bad, skips
    for match in UNITTEST.finditer(output):
        found = True
        end = UNITTEST_END.search(output, match.end())
        marks = dict(re.findall(r"([a-z ]+)=(\d+)", end.group(1) or "") if end else [])
        marks = {k.strip(): int(v) for k, v in marks.items()}
        bad = marks.get("failures", 0) + marks.get("errors", 0) + marks.get("unexpected successes", 0)
        skips = marks.get("skipped", 0)
        passed, failed, skipped = passed + int(match.group(1)) - bad - skips, failed + bad, skipped + skips
    if not found:
        plain = PLAIN.findall(output)
        if plain:
            found = True
            passed, failed, skipped = (int(n or 0) for n in plain[-1])
    if not found or (status != 0 and failed == 0):
        failed += 1
    return passed, failed, skipped


class Runner:
    def __init__(self, args):
        self.args = args
        self.lock = threading.Lock()
        self.totals = [0, 0, 0]
        self.logs = os.path.join(args.build, "test-logs")
        os.makedirs(self.logs, exist_ok=True)
        self.env = dict(os.environ, OMNIPILOT=os.path.join(args.build, "tools/omnipilot"), PYTHONDONTWRITEBYTECODE="1",
                        OMNIPILOT_LIBRARY=os.path.join(args.build, "lib/libomnipilot.so.0"))
        if args.sanitized:
            self.env["OMNIPILOT_SANITIZED"] = "1"
            self.env.setdefault("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1")
            self.env.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
        # Check ends a test after 4 s unless it says otherwise: far too little for a busy machine.
        self.env.setdefault("CK_TIMEOUT_MULTIPLIER", "30" if args.sanitized else "10")

    def run(self, name, command):
        start = time.time()
        log = os.path.join(self.logs, name + ".log")
        try:
            done = subprocess.run(command, cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=LIMIT_S)
            output, status = done.stdout.decode("utf-8", "replace"), done.returncode
        except subprocess.TimeoutExpired as e:
            output, status = (e.stdout or b"").decode("utf-8", "replace") + "\nended after %d s\n" % LIMIT_S, 124
        except OSError as e:
            output, status = "cannot run %s: %s\n" % (shlex.join(command), e), 127
        with open(log, "w", encoding="utf-8") as f:
            f.write("$ " + shlex.join(command) + "\n" + output)
        counts = count(output, status)
        with self.lock:
            self.totals = [a + b for a, b in zip(self.totals, counts)]
            print("%-9s %4d passed, %d failed, %d skipped  (%.1f s)" % (name, *counts, time.time() - start))
            for line in output.splitlines():
                if line.startswith("skip "):
                    print("    " + line)
            if counts[1]:
                lines = output.splitlines()
                print("    ---- %s, from %s" % ("all of it" if len(lines) <= 80 else "the last 80 lines",
                                                os.path.relpath(log, ROOT)))
                for line in lines[-80:]:
                    print("    " + line)
            sys.stdout.flush()

    def all(self, chosen):
        queue = list(chosen)

        def work():
            while True:
                with self.lock:
                    if not queue:
                        return
                    name, command = queue.pop(0)
                self.run(name, command)
        workers = [threading.Thread(target=work) for _ in range(min(2, os.cpu_count() or 1))]
        for w in workers:
            w.start()
        for w in workers:
            w.join()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", default="build")
    p.add_argument("--sanitized", action="store_true", help="the build folder was made with sanitizers")
    p.add_argument("--numpy", default="", help="a Python that can import NumPy")
    p.add_argument("--list", action="store_true")
    p.add_argument("groups", nargs="*")
    args = p.parse_args()
    args.build = os.path.abspath(args.build)
    known = groups(args)
    if args.list:
        print("\n".join(known))
        return 0
    unknown = [g for g in args.groups if g not in known]
    if unknown:
        p.error("no such group: %s (there are: %s)" % (", ".join(unknown), ", ".join(known)))
    runner = Runner(args)
    chosen = args.groups or [name for name in known if name != "measured" or os.environ.get("CI")]
    runner.all([(name, known[name]) for name in known if name in chosen])
    if not args.groups and "measured" not in chosen:
        print("not run: measured (minutes; ./dev test measured)")
    print("\n%d passed, %d failed, %d skipped" % tuple(runner.totals))
    return 1 if runner.totals[1] or not runner.totals[0] else 0


if __name__ == "__main__":
    sys.exit(main())
