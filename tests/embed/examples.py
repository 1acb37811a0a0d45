#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every example of libomnipilot and checks what it prints; tests/swap runs examples/train."""

import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                          cwd=harness.ROOT)
    return done.returncode, done.stdout, done.stderr


def scheduler_loop(t, build):
    status, out, err = run(os.path.join(build, "examples/scheduler_loop"))
    t.check("scheduler_loop runs quietly", status == 0 and not err, "status %d: %s" % (status, err))
    lines = out.splitlines()
    t.check("scheduler_loop answers every job", [line.split()[0] for line in lines] == ["chat", "rag", "code", "huge"],
            out)
    t.check("scheduler_loop: no heap under the lock", "heap used" not in out, out)
    placed = [re.match(r"\w+ +(\d+) x (\S+), TP (\d+), \S+ on \S+: ITL p50 ([\d.]+) ms \[([\d.]+) ... (\S+)\], "
                       r"(ok|new-combination); (\d+) left$", line) for line in lines if "held back" not in line]
    t.check("scheduler_loop places at least one job", bool(placed) and all(placed), out)
    free = {"H100-80GB-SXM": 16, "A100-80GB-SXM": 8, "L40S-48GB": 8}
    for match in filter(None, placed):
        free[match.group(2)] -= int(match.group(1))
        t.check("scheduler_loop's inventory adds up", free[match.group(2)] == int(match.group(8)) >= 0, match.group(0))
        t.check("scheduler_loop's interval holds its median",
                float(match.group(5)) <= float(match.group(4)) <= float(match.group(6).rstrip("]")), match.group(0))


def admission_check(t, build):
    status, out, err = run(os.path.join(build, "examples/admission_check"))
    t.check("admission_check runs quietly", status == 0 and not err, "status %d: %s" % (status, err))
    lines = out.splitlines()
    pattern = r"request +(\d+): KV cache +(\d+) %, P\(ITL p50 > 40 ms\) = (-?nan|[\d.]+), (admitted|refused: .*)$"
    rows = [re.match(pattern, line) for line in lines if line.startswith("request")]
    t.check("admission_check prints its lines", len(rows) > 1 and all(rows), out)
    if rows and all(rows):
        pressure = [int(r.group(2)) for r in rows]
        t.check("KV pressure grows with the load", pressure == sorted(pressure) and pressure[-1] > pressure[0], out)
        t.check("the first request is admitted", rows[0].group(4) == "admitted", out)
        t.check("it ends with a refusal", rows[-1].group(4) != "admitted", out)


def predict_ctypes(t):
    if os.environ.get("OMNIPILOT_SANITIZED"):
        t.skip("predict_ctypes", "an uninstrumented Python cannot load a library built with AddressSanitizer")
        return
    status, out, err = run(sys.executable, "examples/predict_ctypes.py")
    t.check("predict_ctypes runs quietly", status == 0 and not err, "status %d: %s" % (status, err))
    rows = [line.split() for line in out.splitlines() if re.match(r" +\d+ ", line)]
    t.check("predict_ctypes prints a row a load", [r[0] for r in rows] == ["1", "4", "16", "64", "256", "65536"], out)
    if len(rows) == 6:
        t.check("more load, more tokens/s", float(rows[0][1]) < float(rows[2][1]) < float(rows[4][1]), out)
        t.check("a load far outside is named", "is outside the measured" in out.splitlines()[-1], out)


def readme(t, build):
    """The README's own programs work as printed."""
    text = harness.text(os.path.join(harness.ROOT, "README.md"))
    c, py = (re.search(r"```%s\n(.*?)```" % language, text, re.S).group(1) for language in ("c", "python"))
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "readme.c"), os.path.join(folder, "readme")
        with open(source, "w", encoding="utf-8") as f:
            f.write(c)
        flags = ["-fsanitize=address,undefined"] if os.environ.get("OMNIPILOT_SANITIZED") else []
        library = os.path.join(build, "lib")
        status, out, err = run(*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-Wall", "-Wextra", "-Werror",
                               *flags, "-I" + os.path.join(harness.ROOT, "include"), source, "-o", program,
                               "-L" + library, "-lomnipilot", "-Wl,-rpath," + library)
        t.check("README's C program builds", status == 0, out + err)
        if status == 0:
            status, out, err = run(program)
            t.check("README's C program answers", status == 0 and not err and
                    re.match(r"ITL p50 [\d.]+ ms, 80 % interval [\d.]+ to [\d.]+ \((ok|new-combination)\)\n$", out),
                    "status %d: %s%s" % (status, out, err))
    if os.environ.get("OMNIPILOT_SANITIZED"):
        return
    sys.path.insert(0, os.path.join(harness.ROOT, "bindings/python"))
    status, out, err = run(sys.executable, "-c", "import sys; sys.path.insert(0, %r)\n%s" % (sys.path[0], py))
    t.check("README's Python program answers", status == 0 and not err and "'p50': " in out, out + err)


def main(build):
    t = harness.Checks()
    scheduler_loop(t, build)
    admission_check(t, build)
    predict_ctypes(t)
    readme(t, build)
    known = {"scheduler_loop.c", "admission_check.c", "predict_ctypes.py"}
    there = {os.path.basename(p) for p in harness.files("examples", ext=(".c", ".py"))
             if not harness.rel(p).startswith("examples/train/")}
    t.check("every example is run here", there == known, str(there ^ known))
    t.done()


if __name__ == "__main__":
    main(sys.argv[1])
