#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each library lets out: exported symbols = its version script = the OPI_API functions of its public headers, every
global symbol of the static archive starts with opi_, and nothing pulls in a function the library must never call.
libomnipilot-swap is looked at where it was built.

    symbols.py BUILD_FOLDER        checks
    symbols.py --write             rewrites the version scripts from the headers
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

HEAD = """/* Every exported symbol by name, no wildcard: what is not here stays inside (%s).
 * Written by tests/abi/symbols.py --write from the OPI_API functions of include/omnipilot. */
%s {
global:
"""
INSIDE = {"omnipilot": "cJSON's and OpenBLAS's names too", "omnipilot-swap": "lib/base and the MPI-free parts too"}
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
# opi_swap_ignore_sigpipe, and opi_swap_options.evict; only lib/swap/signal.c calls them (tests/style/layers.py).
ALLOWED = {"omnipilot": set(), "omnipilot-swap": {"sigaction", "kill"}}
# What a toolchain adds to every shared library by itself.
TOOLCHAIN = {"__cxa_finalize", "__stack_chk_fail", "__gmon_start__"}


def nm(*arguments):
    return subprocess.run(["nm", *arguments], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def write_map(library):
    version = library.upper().replace("-", "_") + "_0"
    with open(os.path.join(harness.ROOT, harness.MAPS[library]), "w", encoding="utf-8") as f:
        f.write(HEAD % (INSIDE[library], version))
        for name in sorted(harness.exported_in_headers(library)):
            f.write("    %s;\n" % name)
        f.write("local:\n    *;\n};\n")


def base_name(symbol):
    name = symbol.split("@")[0]
    fortified = re.fullmatch(r"__(\w+)_chk", name)
    if fortified and name not in TOOLCHAIN:
        return fortified.group(1)
    return name[len("__isoc99_"):] if name.startswith("__isoc99_") else name


def forbidden(symbols, library):
    return sorted({s for s in symbols if base_name(s) in FORBIDDEN - ALLOWED[library]
                   and s.split("@")[0] not in TOOLCHAIN})


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


def check_map(t, library):
    declared, in_map = harness.exported_in_headers(library), harness.map_symbols(library)
    name = harness.MAPS[library]
    t.none(name + " has no wildcard among the exported names", [s for s in in_map if not re.fullmatch(r"\w+", s)])
    t.none("every OPI_API function is in " + name, sorted(declared - set(in_map)))
    t.none("every name in %s is an OPI_API function" % name, sorted(set(in_map) - declared))
    t.none(name + " names each symbol once", sorted({s for s in in_map if in_map.count(s) > 1}))


def check_shared(t, library, shared):
    what = "lib%s" % library
    in_map = set(harness.map_symbols(library))
    lines = [line.split() for line in nm("-D", "--defined-only", shared).splitlines()]
    exported = {f[-1].split("@")[0] for f in lines if f[-2] != "A"}
    t.none("symbols %s exports that its map does not name" % what, sorted(exported - in_map))
    t.none("map names that %s does not export" % what, sorted(in_map - exported))
    t.none("data exported by %s (only functions may be)" % what, ["%s %s" % (f[-2], f[-1]) for f in lines
                                                                  if f[-2] not in "TAi"])
    dynamic = subprocess.run(["readelf", "-d", shared], check=True, stdout=subprocess.PIPE,
                             universal_newlines=True).stdout
    t.check("SONAME is %s.so.0" % what, "[%s.so.0]" % what in dynamic, dynamic)
    t.none("%s.so calls nothing forbidden" % what,
           forbidden((line.split()[-1] for line in nm("-D", "-u", shared).splitlines()), library))
    # .init_array and .fini_array of a shared library hold the toolchain's own frame_dummy; more than one entry is ours.
    inits = subprocess.run(["readelf", "-W", "-S", shared], check=True, stdout=subprocess.PIPE,
                           universal_newlines=True).stdout
    for name in (".init_array", ".fini_array"):
        size = re.search(re.escape(name) + r"\s+\S+\s+\S+\s+\S+\s+(\S+)", inits)
        t.check("no constructor or destructor of ours in %s of %s" % (name, what), not size or int(size.group(1), 16) <= 8,
                "holds %s bytes" % (size.group(1) if size else 0))
    t.none("no thread-local storage in " + what, sorted(sections(shared) & {".tbss", ".tdata"}))
    return dynamic


def check_swap(t, shared):
    """What only libomnipilot-swap has: an MPI it finds by itself, and none of libomnipilot's dependencies."""
    dynamic = check_shared(t, "omnipilot-swap", shared)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    t.none("libomnipilot-swap needs only MPI and the C library",
           [n for n in needed if not re.match(r"(libmpi|libopen-|libc|libm|libpthread|ld-)\b", n)])
    t.check("libomnipilot-swap needs MPI", any(n.startswith("libmpi.") for n in needed), str(needed))


def check_archive(t, static, library):
    what = os.path.basename(static)
    symbols = list(archive_symbols(static))
    t.check(what + " has global symbols", any(k in "TDBRV" for _, k, _ in symbols), "nm shows none")
    t.none("global symbols of %s start with opi_" % what,
           ["%s in %s" % (n, m) for m, k, n in symbols if k not in "Uwv" and not n.startswith("opi_")])
    t.none(what + " calls nothing forbidden",
           sorted({"%s in %s" % (n, m) for m, k, n in symbols if k == "U" and forbidden([n], library)}))


def main(build):
    t = harness.Checks()
    for library in harness.MAPS:
        check_map(t, library)
    check_shared(t, "omnipilot", os.path.join(build, "lib/libomnipilot.so.0"))
    check_archive(t, os.path.join(build, "lib/libomnipilot.a"), "omnipilot")
    if harness.swap_built(build):
        check_swap(t, os.path.join(build, "lib/swap/libomnipilot-swap.so.0"))
    else:
        t.skip("symbols of libomnipilot-swap", "it was not built (no MPI with ULFM)")
    t.done()


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] == "--write":
        for each in harness.MAPS:
            write_map(each)
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit(__doc__)
