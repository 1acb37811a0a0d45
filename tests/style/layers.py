#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The written rules that a compiler does not check: who may include what, what the library may not call, sizes."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

MAX_LINES = 550       # of a file
MAX_COLUMNS = 128     # 120 is the aim (.editorconfig); a comment that ends a little later is no reason to fail
LONG_FUNCTION = 60    # reported
MAX_FUNCTION = 100    # refused
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[>"]', re.M)
# The layer whose business a public header describes: layers above it may not know it.
HEADER_LAYER = {"types.h": "base", "catalog.h": "facts", "table.h": "facts", "model.h": "model", "predict.h": "model",
                "advise.h": "decide", "plan.h": "swap", "swap.h": "swap"}
# lib/learn works on plain arrays: no context beyond the allocator, no JSON, no files.
LEARN_NEVER = {"base/ctx.h", "base/json.h", "omnipilot/catalog.h", "omnipilot/table.h"}
# The one place of each foreign library, and folders outside lib that may use it too.
OWNERS = {"cJSON.h": ("lib/base/json.c",), "cjson/cJSON.h": ("lib/base/json.c", "tools/json_view."),
          "cblas.h": ("lib/base/linalg.c", "examples/train/"), "lapacke.h": ("lib/base/linalg.c",),
          "mpi.h": ("lib/swap/engine.", "examples/train/"), "mpi-ext.h": ("lib/swap/engine.",)}
GENERATED = {"default_model_stamp.h"}  # written by the build, into the build folder
# Folders of generated or transcribed tables, where the length of a file says nothing.
TABLE_FILE = re.compile(r"_(table|data|rows)\.(c|h|inc)$|_model(_\w+)?\.(c|inc)$")
NUMBER_CALLS = (r"strto(?:d|f|ld|l|ul|ll|ull|imax|umax)|ato[fil]l?|s?n?printf|vs?n?printf|f?scanf|sscanf|"
                r"asprintf|vasprintf|strfrom[dfl]|[ef]cvt|gcvt")
FORBIDDEN = {
    "ends the process": r"exit|_exit|_Exit|quick_exit|abort|assert|raise|kill|MPI_Abort",
    "prints": r"printf|fprintf|vprintf|vfprintf|dprintf|puts|putchar|perror",
    "parses or prints numbers (only base/text.c may, and it does so itself)": NUMBER_CALLS,
    "touches the locale, handlers or the environment": r"setlocale|uselocale|signal|sigaction|getenv|setenv|atexit",
    "has hidden state": r"rand|srand|random|strtok|strerror|localtime|gmtime",
    "runs programs": r"system|popen|fork|execv|execvp",
    "uses the stack without bound": r"alloca",
}
MEMORY_CALLS = r"malloc|calloc|realloc|free|strdup|strndup|aligned_alloc|posix_memalign"
MEMORY_FILES = {"lib/base/mem.c", "lib/base/ctx.c"}
# What the host asks for by name: opi_swap_ignore_sigpipe (or Open MPI's TCP transport kills survivors), and the end of
# processes that were declared dead and replaced (opi_swap_options.evict).
ALLOWED_CALLS = {"lib/swap/signal.c": {"sigaction", "kill"}}
WORDS = {
    "thread-local storage": r"\b(?:_Thread_local|__thread|thread_local)\b",
    "constructors": r"__attribute__\s*\(\s*\(\s*(?:con|de)structor",
    "standard streams": r"\b(?:stdout|stderr|stdin)\b",
}


def calls(pattern, code):
    """(offset, name) of calls; member accesses (a->free(…)) and declarations of opi__ names are not calls."""
    for match in re.finditer(r"(?<![\w.>])(%s)\s*\(" % pattern, code):
        yield match.start(), match.group(1)


def includes(path):
    source = harness.text(path)
    bare = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)), source, flags=re.S)
    for match in INCLUDE.finditer(bare):
        yield harness.line_of(source, match.start()), match.group(1), match.group(2)


def read_layers():
    """The layers in order, each with those it may include: a line `layer`, all above it; `layer: A B`, only these."""
    layers = {}
    for line in harness.text(os.path.join(harness.ROOT, "lib/LAYERS")).splitlines():
        name, colon, only = line.partition(":")
        name = name.strip()
        layers[name] = {name} | (set(only.split()) if colon else set(layers))
    return layers


def layer_problem(layers, layer, included):
    """Why a file of `layer` may not include `included`, or None."""
    folder = included.split("/")[0]
    if folder == "omnipilot":
        header = included.split("/", 1)[1]
        if header not in HEADER_LAYER:
            return "the umbrella header is for users of the library"
        owner = HEADER_LAYER[header]
    elif folder in layers:
        owner = folder
    elif "/" in included:
        return "is in no layer"
    else:
        return "name the folder too (\"%s/%s\")" % (layer, included)
    if owner not in layers[layer]:
        return "%s may not use %s (lib/LAYERS)" % (layer, owner)
    if layer == "learn" and included in LEARN_NEVER:
        return "lib/learn works on plain arrays"
    return None


def owned_elsewhere(name, included):
    return included in OWNERS and not name.startswith(OWNERS[included])


def check_includes(t, layers):
    order, exclusive, public, tool = [], [], [], []
    for path in harness.files("lib"):
        name = harness.rel(path)
        layer = name.split("/")[1]
        if layer not in layers:
            order.append("%s: folder lib/%s is not in lib/LAYERS" % (name, layer))
            continue
        for line, mark, included in includes(path):
            if owned_elsewhere(name, included):
                exclusive.append("%s:%d: only %s* includes %s" % (name, line, OWNERS[included][0], included))
            if mark == '"' and included not in GENERATED:
                problem = layer_problem(layers, layer, included)
                if problem:
                    order.append("%s:%d: \"%s\": %s" % (name, line, included, problem))
    for path in harness.files("include"):
        for line, mark, included in includes(path):
            if mark == '"' and not included.startswith("omnipilot/"):
                public.append("%s:%d: \"%s\" is not a public header" % (harness.rel(path), line, included))
            if mark == "<" and included not in ("stddef.h", "stdint.h"):
                public.append("%s:%d: <%s>: stddef.h and stdint.h are enough" % (harness.rel(path), line, included))
    for path in harness.files("tools", "examples"):
        own = os.path.dirname(path)
        for line, mark, included in includes(path):
            beside = os.path.exists(os.path.join(own, included))
            if mark == '"' and not included.startswith("omnipilot/") and not beside:
                tool.append("%s:%d: \"%s\" is not a public header" % (harness.rel(path), line, included))
            if owned_elsewhere(harness.rel(path), included):
                tool.append("%s:%d: \"%s\" belongs to the library" % (harness.rel(path), line, included))
    t.none("each file includes only what lib/LAYERS allows its layer", order)
    t.none("cJSON only in json.c, BLAS and LAPACKE only in linalg.c, MPI only in lib/swap/engine.[ch]", exclusive)
    t.none("public headers include only public headers", public)
    t.none("tools and examples include only public headers", tool)


def reaches_mpi(path, seen):
    """The chain of includes from a file of lib to mpi.h, or None."""
    for _, _, included in includes(path):
        if included in ("mpi.h", "mpi-ext.h"):
            return [included]
        target = os.path.join(harness.ROOT, "lib", included)
        if target not in seen and os.path.exists(target):
            seen.add(target)
            chain = reaches_mpi(target, seen)
            if chain:
                return [included] + chain
    return None


def check_swap(t):
    """The lists of lib/swap/meson.build say what is free of MPI; the planner and the unit tests count on it."""
    build = harness.text(os.path.join(harness.ROOT, "lib/swap/meson.build"))
    listed = {part: re.findall(r"'(\w+)'", body)
              for part, body in re.findall(r"^  '(plan|planner|local|mpi)': \[(.*?)\]", build, re.M | re.S)}
    t.check("lib/swap/meson.build has its four lists", len(listed) == 4, str(sorted(listed)))
    everywhere = [name for names in listed.values() for name in names]
    there = [os.path.basename(p)[:-2] for p in harness.files("lib/swap", ext=(".c",))]
    t.none("each lib/swap/*.c is in one list of lib/swap/meson.build",
           [name for name in there if everywhere.count(name) != 1])
    problems = []
    for name in listed.get("plan", []) + listed.get("planner", []) + listed.get("local", []):
        path = os.path.join(harness.ROOT, "lib/swap", name + ".c")
        if not os.path.exists(path):
            continue
        chain = reaches_mpi(path, set())
        if chain:
            problems.append("%s includes %s" % (harness.rel(path), " -> ".join(chain)))
        code = harness.code_only(harness.text(path))
        problems += ["%s:%d: %s" % (harness.rel(path), harness.line_of(code, m.start()), m.group(0))
                     for m in re.finditer(r"\bMPIX?_\w+", code)]
    t.none("what lib/swap/meson.build lists as free of MPI is", problems)


def check_calls(t):
    found = {why: [] for why in list(FORBIDDEN) + list(WORDS)}
    memory = []
    for path in harness.files("lib"):
        name = harness.rel(path)
        code = harness.code_only(harness.text(path))
        for why, pattern in FORBIDDEN.items():
            for offset, call in calls(pattern, code):
                if call in ALLOWED_CALLS.get(name, ()):
                    continue
                found[why].append("%s:%d: %s" % (name, harness.line_of(code, offset), call))
        for why, pattern in WORDS.items():
            for match in re.finditer(pattern, code):
                found[why].append("%s:%d: %s" % (name, harness.line_of(code, match.start()), match.group(0)))
        if name not in MEMORY_FILES:
            memory += ["%s:%d: %s" % (name, harness.line_of(code, o), c) for o, c in calls(MEMORY_CALLS, code)]
    for why, problems in found.items():
        t.none("lib never: " + why, problems)
    t.none("lib takes memory only through opi__alloc and its relatives", memory)


def functions(code):
    """(line, length, name) of every function definition: opening brace in the first column, as this code is written."""
    lines = code.split("\n")
    start = None
    for i, line in enumerate(lines):
        if line.startswith("{") and i and not lines[i - 1].rstrip().endswith(("=", ";", "\\")):
            start = i
        elif line.startswith("}") and start is not None:
            head, j = "", start - 1
            while j >= 0 and lines[j].strip() and not lines[j].startswith(("}", "#")) and not lines[j].endswith(";"):
                head = lines[j].strip() + " " + head
                j -= 1
            match = re.search(r"(\w+)\s*\(", head)
            if match:
                yield start + 1, i - start - 1, match.group(1)
            start = None


def check_sizes(t):
    long_files, long_functions, reported = [], [], []
    for path in harness.files("lib", "include", "tools", "examples", "tests", "bindings", ext=(".c", ".h", ".py")):
        name = harness.rel(path)
        source = harness.text(path)
        lines = source.count("\n")
        if lines > MAX_LINES and not TABLE_FILE.search(name):
            long_files.append("%s: %d lines" % (name, lines))
        if path.endswith(".c"):
            for line, length, function in functions(harness.code_only(source)):
                where = "%s:%d: %s, %d lines" % (name, line, function, length)
                if length > MAX_FUNCTION:
                    long_functions.append(where)
                elif length > LONG_FUNCTION:
                    reported.append(where)
    t.none("files have at most %d lines" % MAX_LINES, long_files)
    t.none("functions have at most %d lines" % MAX_FUNCTION, long_functions)
    for where in reported:
        print("note: long function: " + where)


def check_text(t):
    spdx, width, tabs, names, guards = [], [], [], [], []
    for path in harness.files("lib", "include", "tools", "examples", "tests", "bindings", ext=(".c", ".h", ".py")):
        name = harness.rel(path)
        source = harness.text(path)
        if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(source.split("\n")[:3]):
            spdx.append(name)
        if TABLE_FILE.search(name):
            continue
        for i, line in enumerate(source.split("\n"), 1):
            if len(line) > MAX_COLUMNS:
                width.append("%s:%d: %d columns" % (name, i, len(line)))
            if "\t" in line or line != line.rstrip():
                tabs.append("%s:%d" % (name, i))
    for path in harness.files("lib", ext=(".h",)):
        code = harness.code_only(harness.text(path))
        if "#ifndef OPI_" not in code:
            guards.append(harness.rel(path))
        for match in re.finditer(r"^(?!static|typedef|\s)[\w *]+?\b(\w+)\s*\([^;{]*\)\s*;", code, re.M):
            if not match.group(1).startswith("opi__"):
                names.append("%s:%d: %s" % (harness.rel(path), harness.line_of(code, match.start()), match.group(1)))
    t.none("every source file names its license in the first lines", spdx)
    t.none("lines have at most %d columns" % MAX_COLUMNS, width)
    t.none("no tabs and no trailing blanks", tabs)
    t.none("internal functions start with opi__", names)
    t.none("internal headers have an include guard that starts with OPI_", guards)


def check_suites(t):
    listed = set(re.findall(r"^SUITE\((\w+)\)", harness.text(os.path.join(harness.ROOT, "tests/unit/suites.h")), re.M))
    there = {os.path.basename(p)[5:-2] for p in harness.files("tests/unit", "tests/property", ext=(".c",))
             if os.path.basename(p).startswith("test_")}
    t.none("every tests/{unit,property}/test_*.c is in suites.h", sorted(there - listed))


def main():
    t = harness.Checks()
    layers = read_layers()
    t.none("lib/LAYERS names existing folders",
           [n for n in layers if not os.path.isdir(os.path.join(harness.ROOT, "lib", n))])
    check_includes(t, layers)
    check_swap(t)
    check_calls(t)
    check_sizes(t)
    check_text(t)
    check_suites(t)
    t.done()


if __name__ == "__main__":
    main()
