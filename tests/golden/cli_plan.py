# SPDX-License-Identifier: Apache-2.0
"""plan-training: what it says, what it refuses, and that its parts agree with each other."""

import json
import math

from cli_case import Cli, path, run, write

PLAN = ["plan-training", "--gpus", 1024, "--tp", 8, "--pp", 4, "--node-mtbf", "1000h", "--replays", 4]
PHASES = {"detected": 0.2, "revoked": 0.01, "agreed": 0.02, "classified": 0.03, "assigned": 0.04, "rebuilt": 0.05,
          "restored": 0.6, "resumed": 0.05}


def event(**more):
    return json.dumps(dict({"kind": "recovered", "epoch": 1, "lost": 1, "redone": 1, "phases_s": PHASES}, **more)) + "\n"


class Plan(Cli):
    def plan(self, *more):
        r = self.expect(0, *PLAN, "--json", *more)
        self.assertEqual(r.err, "")
        return json.loads(r.out)

    def test_human(self):
        r = self.expect(0, *PLAN, "--spares", 2, "--policy", "wait")
        self.assertEqual(r.err, "")
        self.fits_100(r.out)
        for text in ("Training on 1 024 GPUs: 128 nodes of 8", "hot swap", "restart from checkpoints", "goodput, mean",
                     "the job waits", "<- as asked", "worth paying for", "Net nodes"):
            self.assertIn(text, r.out)
        self.assertNotIn("smaller data-parallel width  ", r.out)
        self.assertIn("smaller data-parallel width", self.expect(0, *PLAN, "--policy", "shrink", "--no-sweep").out)

    def test_json(self):
        doc = self.plan("--spares", 16, "--seed", 3)
        self.assertEqual((doc["schema"], doc["version"]), ("omnipilot.plan", 1))
        self.assertEqual([doc["request"][k] for k in ("gpus", "dp", "tp", "pp", "nodes", "spares", "replicas", "policy",
                                                      "seed")], [1024, 32, 8, 4, 128, 16, 1, "stop", 3])
        for way in ("hot_swap", "restart"):
            one = doc[way]
            self.assertAlmostEqual(one["goodput"] + sum(one["time_share"].values()), 1, 9)
            self.assertLessEqual(one["goodput_low"], one["goodput_median"])
            self.assertAlmostEqual(one["steps"] * 10 / (30 * 86400), one["goodput"], 9)
        self.assertTrue(doc["closed_form"]["applies"])
        self.assertAlmostEqual(doc["hot_swap"]["goodput"], doc["closed_form"]["swap_goodput"], delta=0.005)
        self.assertAlmostEqual(doc["restart"]["goodput"], doc["closed_form"]["restart_goodput"], delta=0.03)
        # Daly's interval from the plan's own rate and checkpoint time.
        mtbf = doc["closed_form"]["job_mtbf_s"]
        q = 60 / (2 * mtbf)
        self.assertAlmostEqual(doc["request"]["restart_interval_s"],
                               math.sqrt(120 * mtbf) * (1 + math.sqrt(q) / 3 + q / 9) - 60, 6)
        best = max(doc["spares"], key=lambda line: line["net"])
        self.assertEqual(doc["spares_worth"], best["spares"])
        self.assertIn(16, [line["spares"] for line in doc["spares"]])

    def test_same_seed_same_plan(self):
        a = self.expect(0, *PLAN, "--json", "--seed", 5).out
        self.assertEqual(a, self.expect(0, *PLAN, "--json", "--seed", 5).out)
        self.assertNotEqual(a, self.expect(0, *PLAN, "--json", "--seed", 6).out)

    def test_no_sweep(self):
        doc = self.plan("--no-sweep")
        self.assertIsNone(doc["spares_worth"])
        self.assertNotIn("spares", doc)

    def test_failures_never(self):
        r = self.expect(0, "plan-training", "--gpus", 1024, "--node-mtbf", "never", "--process-mtbf", "never",
                        "--rack-mtbf", "never", "--restart-interval", "940s", "--no-sweep", "--json")
        doc = json.loads(r.out)
        self.assertAlmostEqual(doc["hot_swap"]["goodput"], 1, 12)
        self.assertAlmostEqual(doc["restart"]["goodput"], 0.94, 3)
        self.assertIsNone(doc["request"]["node_mtbf_h"])

    def test_bursts(self):
        for name in ("weibull", "hyperexponential", "clustered"):
            doc = self.plan("--failures", name, "--no-sweep")
            self.assertEqual(doc["request"]["arrivals"], name)
            self.assertFalse(doc["closed_form"]["applies"])
        self.refused(*PLAN, "--burst", 0.7, says="exponential failures have no bursts")
        self.refused(*PLAN, "--failures", "weibull", "--burst", 1.5, says="--burst: burst is 1.5")

    def test_no_replicas(self):
        doc = self.plan("--replicas", 0, "--spares", 16, "--no-sweep")
        self.assertEqual(doc["request"]["replicas"], 0)
        self.assertGreater(doc["hot_swap"]["fallbacks"], 0.9 * doc["hot_swap"]["failures"])

    def test_units(self):
        a = self.plan("--no-sweep", "--node-repair", "12", "--days", "30", "--restart", "600")
        b = self.plan("--no-sweep", "--node-repair", "0.5d", "--days", "720h", "--restart", "10min")
        self.assertEqual(a, b)

    def test_from_run(self):
        log = write("events.jsonl", '{"kind":"process-lost","rank":1}\n' + event() + event(new_key=[1, {}]) +
                    '{"kind":"counters","snapshots":9,"snapshot_bytes":1,"replica_bytes":1,"wait_s":0,'
                    '"recoveries":2,"steps_redone":2}\n')
        doc = self.plan("--no-sweep", "--from-run", log)
        self.assertAlmostEqual(doc["request"]["recovery_s"], 1.0, 9)
        self.assertEqual(doc["request"]["phase_s"], list(PHASES.values()))
        self.assertIn("the median of 2", self.expect(0, *PLAN, "--no-sweep", "--from-run", log).out)

    def test_damaged_run(self):
        self.refused(*PLAN, "--from-run", path("missing.jsonl"), says="cannot open")
        self.refused(*PLAN, "--from-run", write("empty.jsonl", ""), says="no recovery")
        cut = write("cut.jsonl", event() + event()[:40])
        self.refused(*PLAN, "--from-run", cut, says=["--from-run", "line 2"])
        self.refused(*PLAN, "--from-run", write("part.jsonl", event(phases_s={"detected": 1})), says="line 1")
        self.refused(*PLAN, "--from-run", write("binary.jsonl", bytes(range(256))), says="line 1")
        self.refused(*PLAN, "--from-run", cut, "--recovery", "1s", says="--recovery")

    def test_bad_input(self):
        self.refused("plan-training", says="--gpus is missing")
        self.refused("plan-training", "--gpus", 1, says="--gpus: 1 is too small")
        self.refused("plan-training", "--gpus", 131073, says="131072")
        self.refused("plan-training", "--gpus", 100, "--tp", 8, code=4, says="100 GPUs are no multiple of tp 8")
        self.refused(*PLAN, "--policy", "hope", says="'hope' is none of stop, shrink, wait")
        self.refused(*PLAN, "--node-mtbf", "3 fortnights", says=["--node-mtbf", "fortnights"])
        self.refused("plan-training", "--gpus", 1024, "--node-mtbf", "1min", says="failures are expected in 30 days")
        for option in ("step", "days", "node-mtbf", "restart", "network-gbs", "state-gb", "burst-near"):
            base = ["plan-training", "--gpus", 1024]
            for value in ("-5", "nan", "inf", "1e308", "abc", "1,5", "0x10"):
                self.refused(*base, "--%s=%s" % (option, value), says="--" + option)
        for option in ("step", "days", "node-mtbf", "network-gbs"):
            self.refused("plan-training", "--gpus", 1024, "--%s=0" % option, says="--" + option)

    def test_check(self):
        r = self.expect(0, "plan-training", "--check")
        self.fits_100(r.out)
        self.assertEqual(r.out.count("agrees"), 10)
        doc = json.loads(self.expect(0, "plan-training", "--check", "--json", "--seed", 4).out)
        self.assertEqual(len(doc["checks"]), 10)
        for check in doc["checks"]:
            self.assertEqual(check["passed"], abs(check["simulated"] - check["formula"]) <= check["tolerance"])

    def test_large(self):
        r = run("plan-training", "--gpus", 131072, "--tp", 8, "--pp", 16, "--spares", 64, "--replays", 2, "--no-sweep",
                "--json")
        self.assertEqual(r.code, 0, str(r))
        doc = json.loads(r.out)
        self.assertGreater(doc["hot_swap"]["failures"], 1500)  # 16 384 nodes, 720 h, 8 300 h between failures
        self.assertGreater(doc["hot_swap"]["goodput"], doc["restart"]["goodput"] + 0.3)
