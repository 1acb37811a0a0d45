#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Size and field offsets of every public struct, and every public constant, against tests/abi/layout.txt (libomnipilot)
and tests/abi/layout-swap.txt (libomnipilot-swap).

    layout.py            checks: what is written down stays where it is; additions must be written down
    layout.py --write    rewrites both files (before a release; afterwards only to append)

The Python binding's structs are compared with layout.txt by its own test.
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

RECORDS = {"omnipilot": os.path.join(harness.ROOT, "tests/abi/layout.txt"),
           "omnipilot-swap": os.path.join(harness.ROOT, "tests/abi/layout-swap.txt")}
# Fixed for ever, part of other structs, or array elements whose size the caller passes beside them.
FIXED = {"opi_error", "opi_allocator", "opi_slo", "opi_terms", "opi_prediction", "opi_swap_callbacks"}
HEAD = """# Written by tests/abi/layout.py --write on a 64-bit machine: struct SIZE, field OFFSET SIZE, constant VALUE.
"""


def field_names(body):
    for declaration in body.split(";"):
        declaration = declaration.strip()
        if not declaration:
            continue
        pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", declaration)
        if pointer:
            yield pointer.group(1)
            continue
        for part in declaration.split(","):
            yield re.search(r"(\w+)\s*(?:\[[^\]]*\])?\s*$", part).group(1)


def structs(library):
    for header in harness.public_headers(library):
        code = harness.declarations(harness.text(header))
        # `typedef struct X {…} X;`, or `typedef struct X X;` with `struct X {…};` further down.
        found = [(m.start(), m.group(2), m.group(1))
                 for m in re.finditer(r"typedef\s+struct\s+\w+\s*\{([^{}]*)\}\s*(\w+)\s*;", code)]
        found += [(m.start(), m.group(1), m.group(2))
                  for m in re.finditer(r"^struct\s+(\w+)\s*\{([^{}]*)\}\s*;", code, re.M)]
        for _, name, body in sorted(found):
            yield name, list(field_names(body))


def constants(library):
    for header in harness.public_headers(library):
        for match in re.finditer(r"^#define[ \t]+(OPI_\w+)[ \t]+\(?-?\d\w*\)?", harness.text(header), re.M):
            yield match.group(1)


def measured(library):
    lines = ["#include <stdio.h>"]
    lines += ['#include "omnipilot/%s"' % os.path.basename(header) for header in harness.public_headers(library)]
    lines += ["int main(void)", "{"]
    for name, fields in structs(library):
        lines.append('    printf("struct %s %%zu\\n", sizeof(%s));' % (name, name))
        for field in fields:
            lines.append('    printf("%s.%s %%zu %%zu\\n", offsetof(%s, %s), sizeof(((%s *)0)->%s));'
                         % (name, field, name, field, name, field))
    for name in constants(library):
        lines.append('    printf("constant %s %%lld\\n", (long long)(%s));' % (name, name))
    lines += ["    return 0;", "}", ""]
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w") as f:
            f.write("\n".join(lines))
        subprocess.run([*os.environ.get("CC", "cc").split(), "-std=c11", "-Wall", "-Werror",
                        "-I" + os.path.join(harness.ROOT, "include"), source, "-o", program], check=True)
        return subprocess.run([program], check=True, stdout=subprocess.PIPE,
                              universal_newlines=True).stdout.splitlines()


def table(lines):
    return {line.rsplit(" ", line.count(" ") if "." in line.split()[0] else 1)[0]: line for line in lines
            if line and not line.startswith("#")}


def check(t, library):
    recorded = table(harness.text(RECORDS[library]).splitlines())
    now = table(measured(library))
    versions = ("constant OPI_VERSION_MAJOR", "constant OPI_VERSION_MINOR", "constant OPI_VERSION_PATCH")
    t.check("the headers of lib%s have structs and constants" % library, len(now) > 50, "found %d entries" % len(now))
    changed = {}
    for key, line in recorded.items():
        group = "constants" if key.startswith("constant ") else key.split(".")[0].split()[-1]
        changed.setdefault(group, [])
        if key not in versions and now.get(key) != line:
            changed[group].append("is now \"%s\", was \"%s\"" % (now.get(key, "gone"), line))
    for group, problems in changed.items():
        t.none("as written down for lib%s: %s" % (library, group), problems)
    t.none("everything of lib%s is written down (tests/abi/layout.py --write)" % library,
           sorted(set(now) - set(recorded)))
    missing = [name for name, fields in structs(library) if fields[0] != "struct_size"]
    t.none("growable structs of lib%s start with struct_size" % library, sorted(set(missing) - FIXED))


def main():
    if sys.argv[1:] == ["--write"]:
        for library, record in RECORDS.items():
            lines = measured(library)
            with open(record, "w", encoding="utf-8") as f:
                f.write(HEAD + "\n".join(lines) + "\n")
        return
    t = harness.Checks()
    if sys.maxsize < 2 ** 32:
        t.skip("layout", "written down for 64-bit machines")
        for library in RECORDS:
            t.check("lib%s was measured" % library, measured(library))
        t.done()
    for library in RECORDS:
        check(t, library)
    t.done()


if __name__ == "__main__":
    main()
