# SPDX-License-Identifier: Apache-2.0
"""Counting for the tests that are Python scripts: ok, fail and skip by name, one closing line."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Checks:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def ok(self, name):
        self.passed += 1
        if os.environ.get("VERBOSE"):
            print("ok   " + name)

    def fail(self, name, why):
        self.failed += 1
        print("FAIL %s: %s" % (name, why))

    def skip(self, name, why):
        self.skipped += 1
        print("skip %s: %s" % (name, why))

    def check(self, name, condition, why="does not hold"):
        if condition:
            self.ok(name)
        else:
            self.fail(name, why)

    def none(self, name, problems):
        """Passes when the list of problems is empty; otherwise shows each."""
        problems = list(problems)
        if problems:
            self.fail(name, "%d problem%s\n    %s" % (len(problems), "s" if len(problems) > 1 else "",
                                                     "\n    ".join(problems)))
        else:
            self.ok(name)

    def done(self):
        print("%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped))
        sys.exit(1 if self.failed or not self.passed else 0)


def rel(path):
    return os.path.relpath(path, ROOT)


def files(*folders, ext=(".c", ".h")):
    """Every file below the folders (relative to the repository) with one of the extensions, sorted."""
    found = []
    for folder in folders:
        for base, dirs, names in os.walk(os.path.join(ROOT, folder)):
            dirs[:] = sorted(d for d in dirs if not d.startswith((".", "build", "__pycache__")))
            found += [os.path.join(base, n) for n in names if n.endswith(tuple(ext))]
    return sorted(found)


def text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_only(source):
    """C source with comments and the insides of string and character literals blanked; line numbers are kept."""
    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token[0] + " " * (len(token) - 2) + token[0]
        return re.sub(r"[^\n]", " ", token)
    return _TOKEN.sub(blank, source)


def line_of(source, offset):
    return source.count("\n", 0, offset) + 1


def declarations(source):
    """code_only without preprocessor lines."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", code_only(source), flags=re.M)


# Each shared library: its version script and the public headers that are not the other one's.
MAPS = {"omnipilot": "lib/omnipilot.map", "omnipilot-swap": "lib/swap/omnipilot-swap.map"}
SWAP_HEADERS = ("swap.h",)


def swap_built(build):
    """Whether a build folder is configured with libomnipilot-swap; the file alone may be of an earlier configuration."""
    ninja = os.path.join(build, "build.ninja")
    return os.path.exists(ninja) and "lib/swap/libomnipilot-swap.so.0" in text(ninja)


def public_headers(library):
    """The public headers that describe a library (types.h counts as libomnipilot's)."""
    return [path for path in files("include", ext=(".h",))
            if (os.path.basename(path) in SWAP_HEADERS) == (library == "omnipilot-swap")]


def exported_in_headers(library="omnipilot"):
    """Names of the functions the library's public headers declare with OPI_API."""
    names = set()
    for path in public_headers(library):
        code = declarations(text(path))
        for match in re.finditer(r"\bOPI_API\b([^;{]*?)\b(\w+)\s*\(", code):
            names.add(match.group(2))
    return names


def map_symbols(library="omnipilot"):
    """Names in the library's version script."""
    body = text(os.path.join(ROOT, MAPS[library]))
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    body = body.split("global:")[1].split("local:")[0]
    return [s.strip() for s in body.split(";") if s.strip()]
