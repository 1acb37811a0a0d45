#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/omnipilot-mpirun: its flags, its refusals, and that no rank outlives it. The programs it starts use no MPI."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

LAUNCHER = os.path.join(harness.ROOT, "tools/omnipilot-mpirun")
FAKE = """#!/bin/sh
echo "%s"
"""
PATIENCE_S = 60  # of a busy machine; nothing here takes so long
SLEEPER = ["sleep", "987"]


def launch(*arguments, **more):
    return subprocess.run([LAUNCHER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=2 * PATIENCE_S, **more)


def fake(folder, version, info=None):
    """An mpirun that only says what it is."""
    for name, text in (("mpirun", version), ("ompi_info", info)):
        path = os.path.join(folder, name)
        if text is None:
            if os.path.exists(path):
                os.remove(path)
            continue
        with open(path, "w") as f:
            f.write(FAKE % text)
        os.chmod(path, 0o755)
    return os.path.join(folder, "mpirun")


def check_refusals(t, folder):
    for version, info, word in (("mpirun (Open MPI) 5.0.10", None, "crashes survivors"),
                                ("mpirun (Open MPI) 5.0.11", None, "crashes survivors"),
                                ("mpirun (Open MPI) 4.1.4", None, "no ULFM"),
                                ("HYDRA build details:", None, "not Open MPI"),
                                ("mpirun (Open MPI) 5.0.9", "FT MPI support: no", "without ULFM")):
        done = launch("-n", "2", "--mpirun", fake(folder, version, info), "true")
        t.check("refuses %s%s" % (version, ", " + info if info else ""), done.returncode == 125 and word in done.stderr,
                "status %d: %s" % (done.returncode, done.stderr))
    good = fake(folder, "mpirun (Open MPI) 5.0.9", "FT MPI support: yes")
    for arguments, word in ((["true"], "-n is missing"), (["-n", "0", "true"], '"0"'), (["-n", "2"], "no program"),
                            (["-n", "2x", "true"], '"2x"'), (["-n", "2", "--transport", "ib", "true"], '"ib"'),
                            (["-n", "2", "--timeout", "0", "true"], "more than 0"),
                            (["-n", "2", "--heartbeat", "1.2.3", "true"], '"1.2.3"'), (["-n"], "needs a value"),
                            (["-n", "2", "--fast", "true"], "--fast")):
        done = launch("--mpirun", good, *arguments)
        t.check("refuses " + " ".join(arguments), done.returncode == 125 and word in done.stderr,
                "status %d: %s" % (done.returncode, done.stderr))


def check_flags(t, folder):
    good = fake(folder, "mpirun (Open MPI) 5.0.9")

    def flags(*arguments):
        return launch("--mpirun", good, "--dry-run", *arguments, "prog", "it's").stdout

    sm, tcp = flags("-n", "4"), flags("-n", "4", "--transport", "tcp", "--heartbeat", "1")
    hosts = flags("-n", "4", "--hosts", "a,b:2", "--mca", "x", "y z")
    for word in ("--with-ft ulfm", "--oversubscribe", "async_mpi_finalize 1", "coll_ftagree_era_topology 2",
                 "state_base_recoverable 1", "-n 4 "):
        t.check("always: " + word, word in sm and word in tcp and word in hosts, sm + tcp + hosts)
    t.check("shared memory is the default", "--mca btl self,sm " in sm and "mpi_ft_detector" not in sm, sm)
    t.check("TCP on the loopback", "--mca btl self,tcp --mca btl_tcp_if_include lo " in tcp, tcp)
    t.check("TCP connections are made at the start, of few ranks", "--mca mpi_preconnect_mpi 1 " in tcp and
            "preconnect" not in flags("-n", "257", "--transport", "tcp") + sm, tcp)
    t.check("heartbeats", "mpi_ft_detector 1 " in tcp and "detector_period 0.3000 " in tcp and
            "detector_timeout 1 " in tcp, tcp)
    t.check("across hosts", "--host 'a,b:2' --mca coll ^han,cuda" in hosts and "btl self,tcp " in hosts and
            "if_include lo" not in hosts, hosts)
    t.check("parameters and arguments are quoted", "--mca 'x' 'y z'" in hosts and hosts.endswith("'prog' 'it'\\''s'\n"),
            hosts)
    t.check("--dry-run leaves nothing", not re.search(r"omnipilot\.(?!XXXXXX)\w{6}", sm), sm)


def default_signals():
    """A launch in the background may have them ignored, and a shell cannot trap what it was started without."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


class Run:
    """A launch whose processes are known by a mark of ours in their environment."""

    def __init__(self, *arguments, **more):
        self.mark = "OPI_TEST_MARK=" + uuid.uuid4().hex
        env = dict(os.environ, OPI_TEST_MARK=self.mark.split("=")[1])
        self.process = subprocess.Popen([LAUNCHER, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env=env, preexec_fn=default_signals, **more)

    def alive(self, command=None):
        found = []
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % number, "rb") as f:
                    marked = self.mark.encode() in f.read()
                with open("/proc/%s/cmdline" % number, "rb") as f:
                    line = f.read().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if marked and line and (command is None or line.startswith(command)):
                found.append("%s: %s" % (number, line))
        return found

    def wait_until(self, condition):
        end = time.time() + PATIENCE_S
        while not condition() and time.time() < end:
            time.sleep(0.1)
        return condition()

    def gone(self):
        return self.wait_until(lambda: not self.alive())


def check_ends(t):
    run = Run("-n", "3", "--timeout", "2", *SLEEPER)
    t.check("--timeout ends with 124", run.process.wait(PATIENCE_S) == 124, str(run.process.returncode))
    t.check("--timeout leaves no process", run.gone(), str(run.alive()))
    for number, name in ((signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT")):
        run = Run("-n", "3", "sh", "-c", "trap '' TERM; sleep 987; true")
        started = run.wait_until(lambda: len(run.alive("sleep 987")) == 3)
        run.process.send_signal(number)
        status = run.process.wait(PATIENCE_S)
        t.check("%s: status 128 + signal" % name, started and status == 128 + number, "%s, %d" % (started, status))
        t.check("%s leaves no process" % name, run.gone(), str(run.alive()))
    run = Run("-n", "3", *SLEEPER)
    started = run.wait_until(lambda: len(run.alive("sleep 987")) == 3)
    run.process.kill()
    run.process.wait()
    t.check("SIGKILL of the launcher leaves no process", started and run.gone(), "%s %s" % (started, run.alive()))
    run = Run("-n", "3", "sh", "-c", 'test "$OMPI_COMM_WORLD_RANK" != 1 || kill -STOP $$')
    t.check("a stopped rank does not keep it from ending", run.process.wait(PATIENCE_S) is not None)
    t.check("a stopped rank does not stay", run.gone(), str(run.alive()))


def check_passes(t):
    done = launch("-n", "1", "sh", "-c", 'printf "%s|" "$@"; cat', "x", "a  b", "it's", "$HOME", input="in\n")
    t.check("arguments and input reach the program", done.stdout == "a  b|it's|$HOME|in\n",
            repr(done.stdout + done.stderr))
    done = launch("-n", "1", "sh", "-c", "exit 7")
    t.check("the exit status is mpirun's", done.returncode == 7, str(done.returncode))
    bare = {k: v for k, v in os.environ.items() if k not in ("HOME", "OPENBLAS_NUM_THREADS")}
    done = launch("-n", "1", "sh", "-c", 'echo "$OPENBLAS_NUM_THREADS ${HOME:+home}"', env=bare)
    t.check("HOME and OPENBLAS_NUM_THREADS are set when missing", done.stdout == "1 home\n", done.stdout + done.stderr)
    done = launch("-n", "1", "sh", "-c", 'echo "$OPENBLAS_NUM_THREADS"', env=dict(bare, OPENBLAS_NUM_THREADS="3"))
    t.check("OPENBLAS_NUM_THREADS is kept when set", done.stdout == "3\n", done.stdout + done.stderr)


def main():
    t = harness.Checks()
    with tempfile.TemporaryDirectory() as folder:
        check_refusals(t, folder)
        check_flags(t, folder)
    probe = launch("--dry-run", "-n", "1", "true")
    if probe.returncode == 0:
        check_ends(t)
        check_passes(t)
    else:
        t.skip("launches", probe.stderr.strip())
    t.done()


if __name__ == "__main__":
    main()
