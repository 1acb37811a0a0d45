# SPDX-License-Identifier: Apache-2.0
"""What the command's tests share: running it, the small model it asks, and what every refusal looks like."""

import csv
import io
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

BINARY = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 and os.path.exists(sys.argv[1])
                         else os.environ.get("OMNIPILOT", "build/tools/omnipilot"))
LIMIT_S = 600
WORK = tempfile.mkdtemp(prefix="omnipilot-cli-")
MODEL = os.path.join(WORK, "small.opim")


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __str__(self):
        return "exit %d\n--- stdout\n%s\n--- stderr\n%s" % (self.code, self.out[:3000], self.err[:3000])


def run(*args, env=None, stdin=None, **kw):
    done = subprocess.run([BINARY, *[str(a) for a in args]], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          input=stdin,
                          env=dict(os.environ, **(env or {})), timeout=LIMIT_S, **kw)
    return Result(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


def path(name):
    return os.path.join(WORK, name)


def write(name, content):
    with open(path(name), "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path(name)


SINGLE = ["--llm", "Qwen/Qwen2.5-72B-Instruct", "--gpu", "H100-80GB-SXM", "--tp", 4, "--precision", "fp8", "--engine",
          "vllm",
          "--input", 1024, "--output", 256, "--concurrency", 16]
REQUEST = ["--llm", "Qwen/Qwen2.5-72B-Instruct", "--input", 1024, "--output", 256, "--concurrency", 16]
INVENTORY = ["--inventory", "H100-80GB-SXM:8,A100-80GB-SXM:8"]


def bad_lengths():
    return ["0", "-5", "nan", "NaN", "inf", "-inf", "1e308", "1e999", "99999999999", "abc", "1,5", "1 000", "0x10",
            "1e", "--",
            "5k"]


class Cli(unittest.TestCase):
    def expect(self, code, *args, **kw):
        r = run(*args, **kw)
        self.assertEqual(r.code, code, "%s\n%s" % (shlex.join([str(a) for a in args]), r))
        return r

    def refused(self, *args, code=2, says=(), **kw):
        """Fails as it should: status, one clear line, nothing on stdout."""
        r = self.expect(code, *args, **kw)
        self.assertEqual(r.out, "", "a refusal prints no results: %s" % r)
        self.assertTrue(r.err.startswith("omnipilot"), str(r))
        for bad in ("Traceback", "assert", "Segmentation", "Sanitizer"):
            self.assertNotIn(bad, r.err)
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word.lower(), r.err.lower(), str(r))
        return r

    def fits_100(self, text):
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100, repr(line))

    def rows(self, text):
        return list(csv.DictReader(io.StringIO(text)))
