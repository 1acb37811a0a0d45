#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fuzz targets: tests/fuzz/fuzz_NAME.c with seeds in tests/fuzz/corpus/NAME, built by clang with libFuzzer, ASan, UBSan.

    run.py --probe            succeeds when clang can link libFuzzer
    run.py --smoke            builds and runs each target for FUZZ_SECONDS (10); skips by name without libFuzzer
    run.py --seconds S        the same for S seconds each; new inputs stay in build-fuzz/corpus/NAME
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(harness.ROOT, "build-fuzz")


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=harness.ROOT, **more)


def probe():
    clang = shutil.which("clang")
    if not clang:
        return "clang is not installed"
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "probe.c")
        with open(source, "w") as f:
            f.write("#include <stddef.h>\n#include <stdint.h>\nint LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)\n"
                    "{ (void)d; (void)n; return 0; }\n")
        done = run([clang, "-fsanitize=fuzzer,address,undefined", source, "-o", os.path.join(folder, "probe")])
    return None if done.returncode == 0 else "clang's libFuzzer or sanitizer runtime is not installed"


def build():
    """Why the build failed, or None."""
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        shutil.rmtree(BUILD, ignore_errors=True)
        done = run(["meson", "setup", BUILD, "-Dfuzz=true", "-Dtests=disabled", "-Dexamples=false", "-Dtool=false",
                    "-Dswap=disabled", "-Db_sanitize=address,undefined", "-Db_lundef=false"], env=dict(os.environ, CC="clang"))
        if done.returncode:
            return done.stdout.decode("utf-8", "replace")
    done = run(["ninja", "-C", BUILD])
    return done.stdout.decode("utf-8", "replace") if done.returncode else None


def fuzz(t, name, seconds):
    grown = os.path.join(BUILD, "corpus", name)
    artifacts = os.path.join(BUILD, "artifacts", name, "")
    seeds = os.path.join(HERE, "corpus", name)
    for folder in (grown, artifacts):
        os.makedirs(folder, exist_ok=True)
    corpora = [grown] + ([seeds] if os.path.isdir(seeds) else [])
    # allocator_may_return_null: a huge request must fail as it does in production, not end the process.
    env = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=1", UBSAN_OPTIONS="halt_on_error=1")
    done = run([os.path.join(BUILD, "tests/fuzz/fuzz_" + name), "-max_total_time=%d" % seconds, "-timeout=20",
                "-rss_limit_mb=2560", "-print_final_stats=1", "-verbosity=1", "-artifact_prefix=" + artifacts, *corpora],
               env=env)
    output = done.stdout.decode("utf-8", "replace")
    runs = re.search(r"stat::number_of_executed_units: (\d+)", output)
    executed = int(runs.group(1)) if runs else 0
    t.check("fuzz_%s, %d runs" % (name, executed), done.returncode == 0 and executed > 0, output[-4000:])
    print("fuzz_%s: %d runs in %d s" % (name, executed, seconds))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--probe", action="store_true")
    p.add_argument("--smoke", action="store_true")
    p.add_argument("--seconds", type=int, default=0)
    args = p.parse_args()
    why = probe()
    if args.probe:
        return 1 if why else 0
    t = harness.Checks()
    names = sorted(os.path.basename(f)[5:-2] for f in harness.files("tests/fuzz", ext=(".c",))
                   if os.path.basename(f).startswith("fuzz_"))
    t.check("there are fuzz targets", names, "none found")
    t.none("every fuzz target is in tests/fuzz/meson.build",
           [n for n in names if "'%s'" % n not in harness.text(os.path.join(HERE, "meson.build"))])
    if why:
        for name in names:
            t.skip("fuzz_" + name, why)
        t.done()
    problem = build()
    t.check("the fuzz targets build", problem is None, problem)
    if problem is None:
        for name in names:
            fuzz(t, name, args.seconds or int(os.environ.get("FUZZ_SECONDS", "10")))
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
