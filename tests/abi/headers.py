#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every public header compiles alone, twice, as C11, C17 and C++, with pedantic warnings as errors; and none of them
uses what has no fixed size or no counterpart in other languages."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

NEVER = {
    "enum types": r"\benum\b", "bool": r"\b(?:_Bool|bool)\b", "long": r"\blong\b", "bit-fields": r"\w\s*:\s*\d+\s*;",
    "varargs": r"\.\.\.", "FILE": r"\bFILE\b", "exported data": r"\bextern\s+(?!\" *\")\w",
    "long double": r"\blong\s+double\b", "wchar_t": r"\bwchar_t\b",
}


def compilers():
    for name in (os.environ.get("CC", "cc"), "clang"):
        if shutil.which(name.split()[0]):
            yield name.split(), "c", ("-std=c11", "-std=c17")
    for name in (os.environ.get("CXX", "c++"), "clang++"):
        if shutil.which(name.split()[0]):
            yield name.split(), "c++", ("-std=c++11", "-std=c++17")


def main():
    t = harness.Checks()
    headers = harness.files("include", ext=(".h",))
    t.check("there are public headers", len(headers) >= 7, "found %d" % len(headers))
    seen = set()
    problems = {header: [] for header in headers}
    with tempfile.TemporaryDirectory() as folder:
        for command, language, standards in compilers():
            real = os.path.realpath(shutil.which(command[0]))
            if (real, language) in seen:
                continue
            seen.add((real, language))
            for header in headers:
                include = os.path.relpath(header, os.path.join(harness.ROOT, "include"))
                source = os.path.join(folder, "one.c" if language == "c" else "one.cpp")
                with open(source, "w") as f:
                    f.write('#include "%s"\n#include "%s"\nint opi_test_unit;\n' % (include, include))
                for standard in standards:
                    done = subprocess.run([*command, standard, "-x", language, "-Wall", "-Wextra", "-Wpedantic",
                                           "-Wshadow", "-Wundef", "-Werror", "-fsyntax-only",
                                           "-I" + os.path.join(harness.ROOT, "include"), source],
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
                    if done.returncode:
                        problems[header].append("%s %s: %s" % (command[0], standard, done.stdout))
    for header in headers:
        t.none("compiles alone: " + harness.rel(header), problems[header])
    languages = {language for _, language in seen}
    if "c++" not in languages:
        t.skip("headers as C++", "no C++ compiler")
    for what, pattern in NEVER.items():
        t.none("public headers never use " + what,
               ["%s:%d" % (harness.rel(h), harness.line_of(c, m.start()))
                for h in headers for c in [harness.code_only(harness.text(h))] for m in re.finditer(pattern, c)])
    by_value = []
    for header in headers:
        code = harness.declarations(harness.text(header))
        structs = re.findall(r"\}\s*(opi_\w+)\s*;", code) + re.findall(r"^struct\s+(opi_\w+)\s*\{", code, re.M)
        for match in re.finditer(r"\bOPI_API\b([^;]*);", code):
            for struct in structs:
                if re.search(r"\b%s\b(?!\s*\*|\s*\w*\()" % struct, match.group(1)):
                    by_value.append("%s:%d: %s" % (harness.rel(header), harness.line_of(code, match.start()), struct))
    t.none("no struct passes by value", by_value)
    for header in headers:
        code = harness.text(header)
        if "OPI_API" in harness.code_only(code).split("#define OPI_API")[-1]:
            t.check("extern \"C\" in " + harness.rel(header), 'extern "C" {' in code, "is missing")
    t.done()


if __name__ == "__main__":
    main()
