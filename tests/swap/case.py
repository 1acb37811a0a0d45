# SPDX-License-Identifier: Apache-2.0
"""One functional test of the hot-swap runtime: it runs the worker and notes what does not hold."""

import os
import re
import tempfile

import launch

CODES = {"INVALID": -1, "NOMEM": -2, "IO": -3, "FORMAT": -4, "RANGE": -8, "UNSUPPORTED": -13, "FENCED": -15, "LOST": -16}


class Case:
    """One test: a folder of its own, and what does not hold."""

    references = {}

    def __init__(self, args):
        self.args = args
        self.program = launch.worker_of(args.build)
        self.problems, self.notes = [], []
        self.folder = tempfile.mkdtemp(prefix="opi-swap.")

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, ranks, arguments, transport="sm", launcher=(), limit=60):
        words = arguments.split() if isinstance(arguments, str) else [str(a) for a in arguments]
        words = [w.replace("FOLDER", self.folder) for w in words]
        done = launch.run(self.program, ranks, words, transport, limit, self.args.mpirun, launcher, self.folder)
        self.last = "%d ranks, %s: %s" % (ranks, transport, " ".join(words))
        if done.hung:
            self.problems.append("HANG in %s\n%s" % (self.last, done.stacks))
        self.need(not done.kind("unreadable"), "lines of the log that are no JSON: %s" % done.messages("unreadable"))
        self.none(done, "wrong")
        interval = int(words[words.index("--interval") + 1]) if "--interval" in words else 1
        again = launch.redone_problem(done, interval)
        self.need(not again, again)
        return done

    def need(self, condition, why):
        if not condition:
            self.problems.append("%s  [%s]" % (why, self.last))

    def has(self, done, kind, pattern="", **fields):
        """An event of that kind whose message matches and whose fields are these."""
        found = [line for line in done.kind(kind) if re.search(pattern, line.get("message", "")) and
                 all(line.get(k) == v for k, v in fields.items())]
        self.need(found, "no event %s %s %s; there are: %s" % (kind, pattern, fields or "", sorted(
            {"%s: %s" % (line["kind"], line["message"]) for line in done.log if "message" in line})))
        return found

    def none(self, done, *kinds):
        lines = done.kind(*kinds)
        self.need(not lines, "unexpected: %s" % lines[:3])

    def losses(self, done, *kinds):
        """Of the kinds of losses exactly these were reported."""
        for kind in ("process-lost", "node-lost", "spare-lost", "comm-fault", "copies-lost", "corruption", "storage-fault",
                     "straggler", "fenced", "snapshot-failed", "stopped", "shrunk", "joined"):
            if kind not in kinds:
                self.none(done, kind)
            else:
                self.need(done.kind(kind), "no event %s" % kind)

    def same(self, done, dp=2, tp=2, pp=1, more=""):
        """All slots ended, with the state of a run without failures."""
        key = (dp, tp, pp, more)
        if key not in self.references:
            clean = launch.run(self.program, dp * tp * pp, ("--dp %d --tp %d --pp %d %s" % key).split(), "sm", 60,
                               self.args.mpirun)
            self.references[key] = {line["slot"]: line["hash"] for line in clean.kind("final")}
        want = self.references[key]
        have = {line["slot"]: line["hash"] for line in done.kind("final") if line["dp_width"] == dp}
        self.need(len(want) == dp * tp * pp, "the run without failures has %d final states" % len(want))
        self.need(have == want, "final state differs: slots %s of %s are right" % (
            sorted(k for k in have if want.get(k) == have[k]), sorted(want)))

    def recoveries(self, done, number):
        ends = done.kind("end")
        self.need(ends and max(e["recoveries"] for e in ends) == number, "recoveries: %s, not %d" % (
            sorted(e["recoveries"] for e in ends), number))

    def refused(self, done, code, pattern, ranks=None):
        """Those ranks (None = somebody) got that error."""
        found = [line for line in done.kind("error") if line["code"] == CODES[code] and re.search(pattern, line["message"])]
        self.need(found, "no error %s with \"%s\"; there are: %s %s" % (
            code, pattern, sorted({(line["code"], line["message"]) for line in done.kind("error")}), done.output[:600]))
        if ranks is not None:
            self.need({line["by"] for line in done.kind("error")} == set(range(ranks)), "not all ranks have an error")
