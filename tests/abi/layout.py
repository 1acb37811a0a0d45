#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Size and field offsets of every public struct, and every public constant, against tests/abi/layout.txt.

    layout.py            checks: what is written down stays where it is; additions must be written down
    layout.py --write    rewrites layout.txt (before a release; afterwards only to append)

The Python binding's structs are compared with the same table by its own test.
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

RECORD = os.path.join(harness.ROOT, "tests/abi/layout.txt")
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


def structs():
    for header in harness.files("include", ext=(".h",)):
        code = harness.declarations(harness.text(header))
        for match in re.finditer(r"typedef\s+struct\s+\w+\s*\{(.*?)\}\s*(\w+)\s*;", code, re.S):
            yield match.group(2), list(field_names(match.group(1)))


def constants():
    for header in harness.files("include", ext=(".h",)):
        for match in re.finditer(r"^#define[ \t]+(OPI_\w+)[ \t]+\(?-?\d\w*\)?", harness.text(header), re.M):
            yield match.group(1)


def measured():
    lines = ["#include <stdio.h>", "#include \"omnipilot/omnipilot.h\"", "int main(void)", "{"]
    for name, fields in structs():
        lines.append('    printf("struct %s %%zu\\n", sizeof(%s));' % (name, name))
        for field in fields:
            lines.append('    printf("%s.%s %%zu %%zu\\n", offsetof(%s, %s), sizeof(((%s *)0)->%s));'
                         % (name, field, name, field, name, field))
    for name in constants():
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


def main():
    now = measured()
    if sys.argv[1:] == ["--write"]:
        with open(RECORD, "w", encoding="utf-8") as f:
            f.write(HEAD + "\n".join(now) + "\n")
        return
    t = harness.Checks()
    recorded = table(harness.text(RECORD).splitlines())
    measured_now = table(now)
    versions = ("constant OPI_VERSION_MAJOR", "constant OPI_VERSION_MINOR", "constant OPI_VERSION_PATCH")
    if sys.maxsize < 2 ** 32:
        t.skip("layout", "written down for 64-bit machines")
        t.ok("layout was measured")
        t.done()
    t.check("the headers have structs and constants", len(measured_now) > 100, "found %d entries" % len(measured_now))
    changed = {}
    for key, line in recorded.items():
        group = "constants" if key.startswith("constant ") else key.split(".")[0].split()[-1]
        changed.setdefault(group, [])
        if key not in versions and measured_now.get(key) != line:
            changed[group].append("is now \"%s\", was \"%s\"" % (measured_now.get(key, "gone"), line))
    for group, problems in changed.items():
        t.none("as written down: " + group, problems)
    t.none("everything is written down (tests/abi/layout.py --write)", sorted(set(measured_now) - set(recorded)))
    missing = [name for name, fields in structs() if fields[0] != "struct_size"]
    # These two are fixed for ever, or are array elements whose size the caller passes beside them.
    fixed = {"opi_error", "opi_allocator", "opi_slo", "opi_terms", "opi_prediction"}
    t.none("growable structs start with struct_size", sorted(set(missing) - fixed))
    t.done()


if __name__ == "__main__":
    main()
