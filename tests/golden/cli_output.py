# SPDX-License-Identifier: Apache-2.0
"""Where results go: full disks, closed pipes, terminals, locales."""

import json
import os
import pty
import re
import select
import subprocess

from cli_predict import PredictTable
from cli_case import BINARY, LIMIT_S, MODEL, SINGLE, Cli, path, run, write


class Output(Cli):
    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        for args in (["gpus"], ["llms", "--json"], ["predict", "--model", MODEL, *SINGLE, "--csv"], ["--help"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([BINARY, *[str(a) for a in args]], stdout=full, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 1, args)
            self.assertIn(b"cannot write", done.stderr)

    def test_closed_stdout(self):
        done = subprocess.run(["sh", "-c", 'exec "$0" gpus >&-', BINARY], stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cannot write", done.stderr)

    def test_reader_goes_away(self):
        questions = write("many.csv",
                          ",".join(PredictTable.COLUMNS) + "\n" + (",".join(PredictTable.GOOD) + "\n") * 3000)
        child = subprocess.Popen([BINARY, "predict", "--model", MODEL, "--table", questions, "--csv"],
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        child.stdout.readline()
        child.stdout.close()
        err = child.stderr.read()
        child.stderr.close()
        self.assertEqual(child.wait(LIMIT_S), 1)
        self.assertEqual(err, b"")

    def test_results_and_messages_are_apart(self):
        r = run("predict", "--model", MODEL, *SINGLE, "--json")
        json.loads(r.out)
        r = run("gpus")
        self.assertEqual(r.err, "")

    def on_terminal(self, *args, env=None):
        main, sub = pty.openpty()
        child = subprocess.Popen([BINARY, *[str(a) for a in args]], stdout=sub, stderr=subprocess.DEVNULL,
                                 env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm",
                                      **(env or {})})
        os.close(sub)
        data = b""
        while select.select([main], [], [], LIMIT_S)[0]:
            try:
                part = os.read(main, 65536)
            except OSError:
                break
            if not part:
                break
            data += part
        os.close(main)
        child.wait(LIMIT_S)
        return data.decode().replace("\r\n", "\n")

    def test_color(self):
        plain = run("gpus").out
        colored = self.on_terminal("gpus")
        self.assertNotIn("\x1b", plain)
        self.assertIn("\x1b[1m", colored)
        self.assertEqual(re.sub("\x1b\\[[0-9]*m", "", colored), plain)  # color adds nothing one needs
        self.assertEqual(self.on_terminal("gpus", env={"NO_COLOR": "1"}), plain)
        self.assertEqual(self.on_terminal("gpus", env={"TERM": "dumb"}), plain)

    def test_locale_changes_nothing(self):
        args = ["predict", "--model", MODEL, *SINGLE, "--csv"]
        plain = run(*args).out
        for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C"):
            self.assertEqual(run(*args, env={"LC_ALL": name, "LANG": name}).out, plain)
