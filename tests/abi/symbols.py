#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the library lets out: exported symbols = lib/omnipilot.map = the OPI_API functions of the public headers, every
global symbol of the static archive starts with opi_, and neither pulls in a function the library must never call.

    symbols.py BUILD_FOLDER        checks
    symbols.py --write             rewrites lib/omnipilot.map from the headers
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

MAP = os.path.join(harness.ROOT, "lib/omnipilot.map")
HEAD = """/* Every exported symbol by name, no wildcard: what is not here stays inside (cJSON's and OpenBLAS's names too).
 * Written by tests/abi/symbols.py --write from the OPI_API functions of include/omnipilot. */
OMNIPILOT_0 {
global:
"""
# Printing, exiting, handlers, locale-bound numbers, checked on the object code. fopen and friends are fine (files
# are read), stdout and stderr are not.
FORBIDDEN = {
    "exit", "_exit", "_Exit", "quick_exit", "abort", "__assert_fail", "__assert", "atexit", "at_quick_exit", "on_exit",
    "__cxa_atexit", "__cxa_thread_atexit_impl", "printf", "fprintf", "vprintf", "vfprintf", "dprintf", "vdprintf",
    "puts", "putchar", "perror", "sprintf", "vsprintf", "snprintf", "vsnprintf", "asprintf", "vasprintf", "strtod",
    "strtof", "strtold", "strtol", "strtoul", "strtoll", "strtoull", "__isoc23_strtol", "__isoc23_strtoul",
    "__isoc23_strtoll", "__isoc23_strtoull", "atof", "atoi", "atol", "atoll", "sscanf", "fscanf", "scanf", "setlocale",
    "uselocale", "newlocale", "signal", "sigaction", "sigprocmask", "raise", "kill", "system",
    "popen", "fork", "rand", "srand", "random", "strtok", "strerror", "getenv", "setenv", "feenableexcept",
    "fesetround", "fesetenv", "stdout", "stderr", "__tls_get_addr", "alloca",
}
# What a toolchain adds to every shared library by itself.
TOOLCHAIN = {"__cxa_finalize", "__stack_chk_fail", "__gmon_start__"}


def nm(*arguments):
    return subprocess.run(["nm", *arguments], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def write_map():
    with open(MAP, "w", encoding="utf-8") as f:
        f.write(HEAD)
        for name in sorted(harness.exported_in_headers()):
            f.write("    %s;\n" % name)
        f.write("local:\n    *;\n};\n")


def base_name(symbol):
    name = symbol.split("@")[0]
    fortified = re.fullmatch(r"__(\w+)_chk", name)
    if fortified and name not in TOOLCHAIN:
        return fortified.group(1)
    return name[len("__isoc99_"):] if name.startswith("__isoc99_") else name


def forbidden(symbols):
    return sorted({s for s in symbols if base_name(s) in FORBIDDEN and s.split("@")[0] not in TOOLCHAIN})


def sections(path):
    out = subprocess.run(["readelf", "-W", "-S", path], check=True, stdout=subprocess.PIPE,
                         universal_newlines=True).stdout
    return set(re.findall(r"\]\s+(\.\S+)", out))


def archive_symbols(path):
    """(member, kind, name) of every global symbol."""
    member = ""
    for line in nm("-g", path).splitlines():
        if line.endswith(":"):
            member = line[:-1]
        fields = line.split()
        if len(fields) >= 2 and len(fields[-2]) == 1:
            yield member, fields[-2], fields[-1]


def main(build):
    t = harness.Checks()
    shared = os.path.join(build, "lib/libomnipilot.so.0")
    static = os.path.join(build, "lib/libomnipilot.a")
    declared = harness.exported_in_headers()
    in_map = harness.map_symbols()
    t.none("the map has no wildcard among the exported names", [s for s in in_map if not re.fullmatch(r"\w+", s)])
    t.none("every OPI_API function is in the map", sorted(declared - set(in_map)))
    t.none("every name in the map is an OPI_API function", sorted(set(in_map) - declared))
    t.none("the map names each symbol once", sorted({s for s in in_map if in_map.count(s) > 1}))

    lines = [line.split() for line in nm("-D", "--defined-only", shared).splitlines()]
    exported = {f[-1].split("@")[0] for f in lines if f[-2] != "A"}
    t.none("exported symbols that the map does not name", sorted(exported - set(in_map)))
    t.none("map names that the library does not export", sorted(set(in_map) - exported))
    t.none("exported data (only functions may be exported)", ["%s %s" % (f[-2], f[-1]) for f in lines
                                                             if f[-2] not in "TAi"])
    soname = subprocess.run(["readelf", "-d", shared], check=True, stdout=subprocess.PIPE,
                            universal_newlines=True).stdout
    t.check("SONAME is libomnipilot.so.0", "[libomnipilot.so.0]" in soname, soname)
    t.none("the shared library calls nothing forbidden",
           forbidden(line.split()[-1] for line in nm("-D", "-u", shared).splitlines()))
    # .init_array and .fini_array of a shared library hold the toolchain's own frame_dummy; more than one entry is ours.
    inits = subprocess.run(["readelf", "-W", "-S", shared], check=True, stdout=subprocess.PIPE,
                           universal_newlines=True).stdout
    for name in (".init_array", ".fini_array"):
        size = re.search(re.escape(name) + r"\s+\S+\s+\S+\s+\S+\s+(\S+)", inits)
        t.check("no constructor or destructor of ours in " + name, not size or int(size.group(1), 16) <= 8,
                "holds %s bytes" % (size.group(1) if size else 0))
    t.none("no thread-local storage", sorted(sections(shared) & {".tbss", ".tdata"}))

    symbols = list(archive_symbols(static))
    t.check("the archive has global symbols", any(k in "TDBRV" for _, k, _ in symbols), "nm shows none")
    t.none("global symbols of the archive start with opi_",
           ["%s in %s" % (n, m) for m, k, n in symbols if k not in "Uwv" and not n.startswith("opi_")])
    t.none("the archive calls nothing forbidden",
           sorted({"%s in %s" % (n, m) for m, k, n in symbols if k == "U" and forbidden([n])}))
    t.done()


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] == "--write":
        write_map()
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit(__doc__)
