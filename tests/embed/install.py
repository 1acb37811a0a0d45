#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the build into a temporary tree and builds strangers' programs against it, through pkg-config alone."""

import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, **more)


class Tree:
    """The staged installation."""

    def __init__(self, build, folder):
        options = json.loads(run(["meson", "introspect", "--buildoptions", build]).stdout)
        options = {o["name"]: o["value"] for o in options}
        beside = os.path.join(harness.ROOT, ".mpi/bin/mpicc")
        self.mpicc = options["mpicc"] or (beside if os.access(beside, os.X_OK) else shutil.which("mpicc"))
        self.root = os.path.join(folder, "root")
        self.log = run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", self.root])
        self.prefix = self.root + options["prefix"]
        self.libdir = os.path.join(self.prefix, options["libdir"])
        self.include = os.path.join(self.prefix, options["includedir"])
        self.bin = os.path.join(self.prefix, options["bindir"])
        self.swap = harness.swap_built(build)
        self.man = os.path.join(self.prefix, options["mandir"])

    def pkg_config(self, *arguments, package="omnipilot"):
        # PKG_CONFIG_LIBDIR hides every other .pc file: the -dev packages of OpenBLAS and cJSON need not be there.
        return run(["pkg-config", "--define-variable=prefix=" + self.prefix, *arguments, package],
                   env=dict(os.environ, PKG_CONFIG_LIBDIR=os.path.join(self.libdir, "pkgconfig"), PKG_CONFIG_PATH=""))


def check_files(t, tree):
    installed = sorted(os.path.relpath(p, tree.include) for p in glob.glob(tree.include + "/**", recursive=True)
                       if os.path.isfile(p))
    headers = [p for library in ("omnipilot", *(["omnipilot-swap"] if tree.swap else []))
               for p in harness.public_headers(library)]
    public = sorted(os.path.relpath(p, os.path.join(harness.ROOT, "include")) for p in headers)
    t.check("exactly the public headers are installed", installed == public, "%s, not %s" % (installed, public))
    libraries = sorted(n for n in os.listdir(tree.libdir) if n.startswith("lib"))
    swap = ["libomnipilot-swap.so", "libomnipilot-swap.so.0"] if tree.swap else []
    t.check("the libraries are installed",
            libraries == [*swap, "libomnipilot.a", "libomnipilot.so", "libomnipilot.so.0"], str(libraries))
    t.check("the command is installed", os.access(os.path.join(tree.bin, "omnipilot"), os.X_OK), "not executable")
    pages = [n for _, _, names in os.walk(tree.man) for n in names]
    t.check("the man page is installed", any(n.startswith("omnipilot.1") for n in pages), str(pages))
    leaks = [p for p in glob.glob(tree.root + "/**", recursive=True) if os.path.isfile(p) and p.endswith((".pc", ".h"))
             and harness.ROOT in harness.text(p)]
    t.none("no installed text names the checkout", leaks)


def check_pc(t, tree):
    shared = tree.pkg_config("--cflags", "--libs")
    t.check("pkg-config --cflags --libs without other -dev packages", shared.returncode == 0, shared.stdout)
    t.none("shared linking names no other library",
           [w for w in shlex.split(shared.stdout) if w.startswith("-l") and w != "-lomnipilot"])
    static = tree.pkg_config("--static", "--libs")
    names = shlex.split(static.stdout)
    t.none("static linking names every library it needs",
           [w for w in ("-lomnipilot", "-lopenblas", "-lcjson", "-lm") if w not in names])
    version = tree.pkg_config("--modversion").stdout.strip()
    t.check("pkg-config --modversion", version == "0.1.0", version)


def check_consumer(t, tree, folder, language, link):
    name = "consumer, %s, %s" % (language, link)
    compiler = os.environ.get("CC", "cc") if language == "C" else os.environ.get("CXX", "c++")
    if not shutil.which(shlex.split(compiler)[0]):
        t.skip(name, "no " + compiler)
        return
    standard = ["-std=c11"] if language == "C" else ["-x", "c++", "-std=c++17"]
    if link == "static":
        libs = shlex.split(tree.pkg_config("--static", "--libs").stdout)
        libs = [os.path.join(tree.libdir, "libomnipilot.a") if w == "-lomnipilot" else w for w in libs]
    else:
        libs = shlex.split(tree.pkg_config("--libs").stdout)
    cflags = shlex.split(tree.pkg_config("--cflags").stdout)
    program = os.path.join(folder, "consumer-%s-%s" % (language.replace("+", "p"), link))
    built = run([*shlex.split(compiler), *standard, "-Wall", "-Wextra", "-Werror", *cflags,
                 os.path.join(HERE, "consumer.c"), "-x", "none", "-o", program, *libs])
    t.check(name + ": builds", built.returncode == 0, built.stdout)
    if built.returncode:
        return
    env = dict(os.environ)
    env.pop("OMNIPILOT_LIBRARY", None)
    env["LD_LIBRARY_PATH"] = tree.libdir if link == "shared" else ""
    done = run([program], env=env)
    t.check(name + ": runs and prints only its own line",
            done.returncode == 0 and done.stdout == "consumer ok, libomnipilot 0.1.0\n", done.stdout)
    needs = run(["readelf", "-d", program]).stdout
    t.check(name + ": is linked as asked", ("libomnipilot.so.0" in needs) == (link == "shared"), needs)
    if link == "shared":
        t.check(name + ": needs only libomnipilot", "openblas" not in needs and "cjson" not in needs, needs)


def check_loader(t, tree, folder):
    program = os.path.join(folder, "loader")
    built = run([*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra",
                 "-Werror", os.path.join(HERE, "loader.c"), "-o", program, "-ldl"])
    t.check("loader builds", built.returncode == 0, built.stdout)
    if built.returncode == 0:
        done = run([program, os.path.join(tree.libdir, "libomnipilot.so.0")])
        t.check("load, use, fork, unload, three times", done.returncode == 0 and done.stdout == "loader ok\n",
                "status %d: %s" % (done.returncode, done.stdout))


def swap_consumer(t, tree, folder, name, compiler, launch=()):
    """Builds swap_consumer.c with one compiler and pkg-config, and runs it."""
    flags = tree.pkg_config("--cflags", "--libs", package="omnipilot-swap")
    t.check(name + ": pkg-config", flags.returncode == 0, flags.stdout)
    if flags.returncode:
        return
    program = os.path.join(folder, "swap-consumer")
    words = shlex.split(flags.stdout)
    built = run([*compiler, "-Wall", "-Wextra", "-Werror", *[w for w in words if w.startswith("-I")],
                 os.path.join(HERE, "swap_consumer.c"), "-x", "none", "-o", program,
                 *[w for w in words if not w.startswith("-I")]])
    t.check(name + ": builds", built.returncode == 0, built.stdout)
    if built.returncode == 0:
        done = run([*launch, program], env=dict(os.environ, LD_LIBRARY_PATH=tree.libdir), stdin=subprocess.DEVNULL)
        t.check(name + ": runs and prints only its own line",
                done.returncode == 0 and done.stdout == "swap consumer ok\n",
                "status %d: %s" % (done.returncode, done.stdout))


def check_swap(t, tree, folder):
    """libomnipilot-swap: a program without MPI needs nothing but pkg-config; one with MPI adds that MPI's mpicc."""
    if not tree.swap:
        t.skip("installed libomnipilot-swap", "it was not built (no MPI with ULFM)")
        return
    launcher = os.path.join(tree.bin, "omnipilot-mpirun")
    t.check("the launcher is installed", os.access(launcher, os.X_OK), "not executable")
    pages = [n for _, _, names in os.walk(tree.man) for n in names]
    t.check("the launcher's man page is installed", any(n.startswith("omnipilot-mpirun.1") for n in pages), str(pages))
    compiler = shlex.split(os.environ.get("CC", "cc"))
    swap_consumer(t, tree, folder, "swap consumer, C", [*compiler, "-std=c11"])
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    if shutil.which(compiler[0]):
        swap_consumer(t, tree, folder, "swap consumer, C++", [*compiler, "-std=c++17", "-x", "c++"])
    else:
        t.skip("swap consumer, C++", "no " + compiler[0])
    if not tree.mpicc:
        t.skip("swap consumer, mpicc", "no mpicc")
        return
    mpirun = os.path.join(os.path.dirname(tree.mpicc), "mpirun")
    swap_consumer(t, tree, folder, "swap consumer, mpicc", [tree.mpicc, "-std=c11", "-DWITH_MPI"],
                  launch=[launcher, "-n", "3", "--timeout", "120", "--mpirun", mpirun])


def main(build):
    t = harness.Checks()
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(build, folder)
        t.check("meson install", tree.log.returncode == 0, tree.log.stdout)
        if tree.log.returncode == 0:
            check_files(t, tree)
            check_pc(t, tree)
            for language in ("C", "C++"):
                for link in ("shared", "static"):
                    check_consumer(t, tree, folder, language, link)
            check_loader(t, tree, folder)
            check_swap(t, tree, folder)
            done = run([os.path.join(tree.bin, "omnipilot"), "gpus"], env=dict(os.environ, LD_LIBRARY_PATH=tree.libdir))
            t.check("the installed command runs", done.returncode == 0 and "H100-80GB-SXM" in done.stdout, done.stdout)
    t.done()


if __name__ == "__main__":
    main(sys.argv[1])
