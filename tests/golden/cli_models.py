# SPDX-License-Identifier: Apache-2.0
"""Model files, fit, evaluate, gate, inspect."""

import json
import os
import signal
import subprocess
import time

from cli_case import BINARY, INVENTORY, LIMIT_S, MODEL, REQUEST, SINGLE, WORK, Cli, path, run, write


class Models(Cli):
    def setUp(self):
        with open(MODEL, "rb") as f:
            self.bytes = f.read()

    def test_damaged(self):
        n = len(self.bytes)
        cases = {"cut": self.bytes[:n // 2], "short": self.bytes[:20], "empty": b"",
                 "foreign": b"PK\x03\x04" + b"x" * 1000,
                 "longer": self.bytes + b"\0", "zeros": bytes(n)}
        for at in (0, 9, 30, 40, n // 3, n - 1):
            flipped = bytearray(self.bytes)
            flipped[at] ^= 0x10
            cases["flip %d" % at] = bytes(flipped)
        for name, data in cases.items():
            file = write("damaged.opim", data)
            self.refused("inspect", "--model", file)
            self.refused("predict", "--model", file, *SINGLE)

    def test_missing_and_folder(self):
        self.refused("inspect", "--model", path("none.opim"), says="none.opim")
        self.refused("inspect", "--model", WORK)
        self.refused("advise", "--model", path("none.opim"), *REQUEST, *INVENTORY, says="none.opim")

    def test_inspect(self):
        doc = json.loads(self.expect(0, "inspect", "--model", MODEL, "--json").out)
        text = json.dumps(doc)
        for word in ("ttft_ms_p50", "params_b", "sha256", "license"):
            self.assertIn(word, text)
        r = self.expect(0, "inspect", "--model", MODEL)
        self.fits_100(r.out)
        for word in ("TTFT p50", "made-up", "Apache-2.0"):
            self.assertIn(word, r.out)

    def test_default_model(self):
        r = self.expect(0, "advise", "--llm", "Qwen/Qwen2.5-72B-Instruct", "--input", 1024, "--output", 256,
                        "--concurrency", 64,
                        "--inventory", "H200-141GB:8,H100-80GB-SXM:8,A100-80GB-SXM:8,L40S-48GB:4", "--slo",
                        "ttft_p50=2s,itl_p50=50ms")
        self.fits_100(r.out)
        self.assertIn("Recommended:", r.out)
        self.expect(0, "inspect")


class Fit(Cli):
    def test_same_bytes(self):
        again = path("again.opim")
        r = self.expect(0, "fit", "--table", path("train.csv"), "--out", again, "--threads", 1)
        self.assertIn(again, r.out)
        with open(MODEL, "rb") as a, open(again, "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_json(self):
        doc = json.loads(self.expect(0, "fit", "--table", path("one.csv"), "--out", path("noted.opim"), "--note",
                                     "a note",
                                     "--seed", 5, "--json").out)
        self.assertIn("a note", json.dumps(doc))

    def test_published_example(self):
        table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/data/published.csv")
        self.expect(0, "fit", "--table", table, "--out", path("published.opi"))
        self.assertIn("throughput_out_tok_s", self.expect(0, "evaluate", "--table", table).out)
        self.assertIn("splitwise-sim", self.expect(0, "inspect", "--model", path("published.opi")).out)

    def test_required_and_bad(self):
        self.refused("fit", "--out", path("x.opim"), says="--table is missing")
        self.refused("fit", "--table", path("train.csv"), says="--out is missing")
        self.refused("fit", "--table", path("none.csv"), "--out", path("x.opim"), says="none.csv")
        self.refused("fit", "--table", path("train.csv"), "--out", path("no/such/x.opim"), says="no/such")
        self.refused("fit", "--table", path("train.csv"), "--out", WORK, says="folder")
        self.refused("fit", "--table", path("train.csv"), "--out", path("x.opim"), "--learner", "oracle", says="oracle")
        self.refused("fit", "--table", path("train.csv"), "--out", path("x.opim"), "--seed", "-1", says="--seed")
        self.refused("fit", "--table", path("train.csv"), "--out", path("x.opim"), "--threads", "0", says="--threads")
        self.assertFalse(os.path.exists(path("x.opim")))

    def test_too_few_rows(self):
        with open(path("train.csv")) as f:
            head = "".join(f.readlines()[:4])
        self.refused("fit", "--table", write("few.csv", head), "--out", path("x.opim"))
        self.assertFalse(os.path.exists(path("x.opim")))

    def test_dirty_table(self):
        with open(path("one.csv")) as f:
            lines = f.read().splitlines()
        columns = lines[0].split(",")
        failed = lines[1].split(",")
        failed[columns.index("launch_ok")] = "0"
        lines = ["\ufeff" + lines[0] + ",mood"] + [x + ",fine" for x in lines[1:]] + [lines[1] + ",fine"] * 2 + [
            ",".join(failed) + ",bad"]
        r = self.expect(0, "fit", "--table", write("dirty.csv", "\r\n".join(lines) + "\r\n"), "--out",
                        path("dirty.opim"))
        self.assertIn("mood", r.err)
        self.assertIn("copies", r.err)

    def test_old_file_survives_a_failure(self):
        old = write("old.opim", "precious")
        self.refused("fit", "--table", path("none.csv"), "--out", old)
        with open(old) as f:
            self.assertEqual(f.read(), "precious")

    def test_interrupt(self):
        target = path("interrupted.opim")
        before = set(os.listdir(WORK))
        child = subprocess.Popen([BINARY, "fit", "--table", path("large.csv"), "--out", target], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=LIMIT_S)
        if child.returncode == 0:
            self.skipTest("the fit was over before the signal came")
        self.assertEqual((child.returncode, out), (1, b""), err)
        self.assertIn(b"canceled", err)
        self.assertEqual(set(os.listdir(WORK)), before)


class Evaluate(Cli):
    def test_table(self):
        r = self.expect(0, "evaluate", "--table", path("one.csv"))
        self.fits_100(r.out)
        for word in ("throughput_out_tok_s", "median %", "cover %", "top-1 %", "cheapest"):
            self.assertIn(word, r.out)

    def test_json(self):
        doc = json.loads(self.expect(0, "evaluate", "--table", path("one.csv"), "--by-mix", "--json").out)
        one = doc["targets"]["throughput_out_tok_s"]
        for key in ("n", "median_ape", "mape", "p90_ape", "r2_log", "pinball", "coverage", "width_log", "groups"):
            self.assertIn(key, one)
        self.assertLess(one["median_ape"], 0.15)
        for value in doc["decisions"].values():
            for key in ("n", "top1", "regret", "baselines"):
                self.assertIn(key, value)

    def test_memory(self):
        logs = write("capacity.csv", "engine,engine_version,model,precision,gpu,tp,max_model_len,gpu_mem_util,kv_dtype,"
                     "weights_gib_per_gpu,kv_gib_per_gpu,kv_tokens,status\n"
                     "vllm,0.9,Qwen/Qwen2.5-72B-Instruct,bf16,H200-141GB,2,4096,0.9,auto,67.7,50,327680,ok\n")
        r = self.expect(0, "evaluate", "--memory", logs)
        self.assertIn("Memory formula", r.out)
        json.loads(self.expect(0, "evaluate", "--memory", logs, "--json").out)
        self.refused("evaluate", "--memory", path("none.csv"), says="none.csv")

    def test_everyday(self):
        r = self.expect(0, "evaluate", "--everyday", "--model", MODEL)
        self.assertIn("Everyday", r.out)
        json.loads(self.expect(0, "evaluate", "--everyday", "--model", MODEL, "--json").out)

    def test_bad(self):
        self.refused("evaluate", says="nothing to evaluate")
        self.refused("evaluate", "--table", path("train.csv"), "--model", MODEL, says="--everyday")
        self.refused("evaluate", "--everyday", "--by-mix", says="--by-mix needs --table")
        self.refused("evaluate", "--table", path("none.csv"), says="none.csv")
        self.refused("evaluate", "--table", path("train.csv"), "--level", "0.2", says="--level")


class Gate(Cli):
    @classmethod
    def setUpClass(cls):
        """Two models of one half of the cells: one with the labels as measured, one with the labels in another order."""
        with open(path("one.csv")) as f:
            lines = f.read().splitlines()
        columns = lines[0].split(",")
        cell = [columns.index(c) for c in ("model", "input_len", "concurrency")]
        rows = [line.split(",") for line in lines[1:]]
        keys = sorted({tuple(r[c] for c in cell) for r in rows})
        # 36 cells: 20 to learn from, 24 to judge on, eight of them seen; the gate cannot know, and says what it sees.
        train = [r for r in rows if keys.index(tuple(r[c] for c in cell)) % 9 < 5]
        judge = [r for r in rows if keys.index(tuple(r[c] for c in cell)) % 9 > 2]
        labels = [r[-1] for r in train]
        bad = [r[:-1] + [v] for r, v in zip(train, labels[131:] + labels[:131])]
        for name, part in (("gate-train", train), ("gate-bad", bad), ("gate-judge", judge)):
            write(name + ".csv", "\n".join([lines[0]] + [",".join(r) for r in part]) + "\n")
        for name in ("gate-train", "gate-bad"):
            made = run("fit", "--table", path(name + ".csv"), "--out", path(name + ".opi"), "--learner", "boost")
            assert made.code == 0, made

    def ask(self, old, new, *more):
        return ("gate", "--old", path(old + ".opi"), "--new", path(new + ".opi"), "--table", path("gate-judge.csv"), *more)

    def test_itself(self):
        r = self.expect(0, *self.ask("gate-train", "gate-train"))
        self.fits_100(r.out)
        self.assertIn("Promoted: the new model is not worse in anything that was compared.", r.out)
        self.assertIn("coincide", r.err)

    def test_refused(self):
        r = self.expect(1, *self.ask("gate-train", "gate-bad"))
        self.fits_100(r.out)
        self.assertRegex(r.out, r"throughput_out_tok_s +pinball .* worse\n")
        self.assertIn("Refused: the new model is worse in ", r.out)
        self.assertIn("throughput_out_tok_s, pinball: 0.", r.out)

    def test_json(self):
        a, b = (self.expect(1, *self.ask("gate-train", "gate-bad", "--json", "--seed", 3)).out for _ in range(2))
        self.assertEqual(a, b)
        doc = json.loads(a)
        self.assertEqual((doc["schema"], doc["promoted"], doc["seed"], doc["resamples"]), ("omnipilot.gate", False, "3", 2000))
        worse = [c for c in doc["checks"] if c["verdict"] == "worse"]
        self.assertEqual(len(worse), doc["worse"])
        self.assertIn(("throughput_out_tok_s", "pinball"), [(c["of"], c["what"]) for c in worse])
        for c in worse:
            self.assertGreater(c["lo"] if c["worse_when"] == "higher" else -c["hi"], c["margin"])
        self.assertEqual(self.expect(1, *self.ask("gate-train", "gate-bad", "--json", "--seed=3", "--resamples", 2000)).out, a)

    def test_seen(self):
        words = ["gate", "--old", path("gate-bad.opi"), "--new", path("gate-train.opi"), "--table", path("gate-train.csv")]
        self.refused(*words, says="the new model was fitted on this very table")
        self.expect(0, *words, "--allow-seen")

    def test_bad(self):
        self.refused("gate", "--new", MODEL, "--table", path("one.csv"), says="--old is missing")
        self.refused("gate", "--old", MODEL, "--table", path("one.csv"), says="--new is missing")
        self.refused("gate", "--old", MODEL, "--new", MODEL, says="--table is missing")
        self.refused("gate", "--old", path("none.opi"), "--new", MODEL, "--table", path("one.csv"), says="--old")
        self.refused("gate", "--old", MODEL, "--new", MODEL, "--table", path("none.csv"), says="none.csv")
        self.refused(*self.ask("gate-train", "gate-bad", "--resamples", 99), says="--resamples")
