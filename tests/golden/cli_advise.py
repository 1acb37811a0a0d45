# SPDX-License-Identifier: Apache-2.0
"""advise: every form of the answer, every verdict, every bad request."""

import json
import os
import re
import shlex
import subprocess

from cli_basics import Facts
from cli_case import INVENTORY, MODEL, REQUEST, Cli, bad_lengths, path, run, write


class Advise(Cli):
    def ask(self, *more, code=0, inventory=INVENTORY):
        return self.expect(code, "advise", "--model", MODEL, *REQUEST, *inventory, *more)

    def test_human(self):
        r = self.ask("--slo", "ttft_p50=20s,itl_p50=200ms")
        self.fits_100(r.out)
        self.assertIn("Recommended:", r.out)
        self.assertRegex(r.out, r"(?m)^ +\d+\* [HA]100-80GB-SXM")
        self.assertRegex(r.out, r"\d \[[\d .]+ … [\d .]+\]")
        for unit in ("tokens/s", "ms", "$/h", "$/Mtok", "P(SLO)"):
            self.assertIn(unit, r.out)
        self.assertIn("Rests on:", r.out)
        self.assertIn("Intervals: 80 %, for held-out cells of measured sites", r.out)

    def test_infeasible_is_grouped(self):
        r = self.ask(inventory=["--inventory", "H100-80GB-SXM:8,L4-24GB:2"])
        block = r.out.split("Not feasible")[1]
        lines = [x for x in block.splitlines() if x.startswith("  L4-24GB") and " memory " in x]
        self.assertEqual(len(lines), 1, r.out)
        self.assertIn("GiB", block)

    def test_json(self):
        doc = json.loads(self.ask("--json").out)
        self.assertEqual(doc["verdict"], "recommended")
        self.assertIn("schema", doc)

    def test_csv(self):
        rows = self.rows(self.ask("--csv").out)
        self.assertEqual([x["rank"] for x in rows], [str(i + 1) for i in range(len(rows))])
        self.assertEqual(sum(x["recommended"] == "1" for x in rows), 1)
        good = [x for x in rows if x["verdict"] != "infeasible"]
        self.assertTrue(good)
        for x in rows:
            if x["verdict"] == "infeasible":
                self.assertTrue(x["reason_code"] and x["reason"])
                self.assertEqual((x["throughput_out_tok_s"], x["score"]), ("", ""))
        scores = [float(x["score"]) for x in good if x["verdict"] == good[0]["verdict"]]
        self.assertEqual(len(self.rows(self.ask("--csv", "--top", 2).out)), 2)
        self.assertTrue(scores)

    def test_winner_is_the_same_in_every_form(self):
        winner = [x for x in self.rows(self.ask("--csv").out) if x["recommended"] == "1"][0]
        human = self.ask().out
        line = [x for x in human.splitlines() if re.match(r" +\d+\* ", x)][0].split()
        self.assertEqual(line[1:4], [winner["gpu"], winner["n_gpus"], winner["tp"]])
        doc = json.loads(self.ask("--emit", "launch", "--json").out)
        self.assertEqual((doc["config"]["gpu"], str(doc["config"]["tp"])), (winner["gpu"], winner["tp"]))

    def test_explain(self):
        r = self.ask("--explain", "--top", 1, "--value", 2)
        self.fits_100(r.out)
        for word in ("value of the output", "nodes", "queue", "failed launches", "SLO violations",
                     "KV-cache saturation",
                     "power", "total", "$/h", "launch prior", "margin:", "facts", "GPU ", "LLM "):
            self.assertIn(word, r.out)
        terms = dict(re.findall(r"(?m)^    ([a-zA-Z -]+?) +([+-][\d.]+) \$/h", r.out.split("launch prior")[0]))
        total = float(terms.pop("total"))
        self.assertEqual(float(terms.pop("ranked by")), total)  # no risk taken off
        self.assertAlmostEqual(sum(float(v) for v in terms.values()), total, delta=0.01)

    def test_emit_launch(self):
        for engine, word in (("vllm", "vllm serve"), ("sglang", "python -m sglang.launch_server"),
                             ("trtllm", "trtllm-serve")):
            r = run("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--engine", engine, "--emit", "launch")
            if engine != "vllm" and r.code == 3:
                continue  # an engine the small model never measured
            self.assertEqual(r.code, 0, str(r))
            self.assertIn(word, r.out)
            self.assertIn("Qwen/Qwen2.5-72B-Instruct", r.out)
            self.assertRegex(r.out, r"random-input-len 1024")
            subprocess.run(["sh", "-n"], input=r.out.encode(), check=True)

    def test_emit_launch_quotes(self):
        folder = path("it's a \"model\" $HOME")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(dict(Facts.CONFIG), f)
        r = run("advise", "--model", MODEL, "--llm", os.path.join(folder, "config.json"), "--input", 1000, "--output",
                200,
                "--concurrency", 8, "--inventory", "H100-80GB-SXM:1", "--emit", "launch")
        if r.code == 0:
            line = [x for x in r.out.replace("\\\n", " ").splitlines() if "serve" in x and not x.startswith("#")][0]
            self.assertIn(folder, shlex.split(line))
        else:
            self.assertEqual((r.code, r.out), (3, ""))

    def test_emit_bad(self):
        self.refused("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--emit", "yaml", says="yaml")

    def test_demand_adds_replicas(self):
        one = [x for x in self.rows(self.ask("--csv").out) if x["recommended"] == "1"][0]
        want = 3 * float(one["throughput_out_tok_s"]) / int(one["replicas"])
        r = run("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--csv", "--demand", "%.0f" % want)
        self.assertIn(r.code, (0, 3), str(r))
        self.assertTrue(any(int(x["replicas"]) > 1 for x in self.rows(r.out)))

    def test_price_decides(self):
        a = ["--price", "H100-80GB-SXM=1,A100-80GB-SXM=90", "--csv"]
        b = ["--price", "H100-80GB-SXM=90", "--price", "A100-80GB-SXM=$1/h", "--csv"]
        first = [x["gpu"] for x in self.rows(self.ask(*a).out) if x["recommended"] == "1"]
        second = [x["gpu"] for x in self.rows(self.ask(*b).out) if x["recommended"] == "1"]
        self.assertEqual((first, second), (["H100-80GB-SXM"], ["A100-80GB-SXM"]))

    def test_price_zero_and_missing(self):
        self.refused("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--price", "A100-80GB-SXM=0",
                     says=["price", "0"])
        self.refused("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--price", "A100-80GB-SXM=-2", says="--price")
        r = run("advise", "--model", MODEL, *REQUEST, "--inventory", "H100-80GB-PCIe:8")  # no cited price
        self.assertRegex(r.out, r"H100-80GB-PCIe: no price stated")
        self.refused("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--price", "L40S=1", says="not in --inventory")
        self.refused("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--price", "1.5", says="GPU=number")
        self.refused("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--price", "A100-80GB-SXM=1,A100-80GB-SXM=2",
                     says="two prices")

    def test_slo_units(self):
        a = self.ask("--slo", "ttft_p50=2s", "--json").out
        b = self.ask("--slo", "ttft_p50=2000ms", "--json").out
        c = self.ask("--slo", "ttft_p50=2000", "--json").out
        self.assertEqual(a, b)
        self.assertEqual(a, c)

    def test_slo_forms(self):
        for slo, word in (("ttft_p50", "name=value"), ("=2s", "name=value"), ("ttft_p50=", "name=value"),
                          ("ttft_p50=2parsecs", "parsecs"), ("ttft_p50=2tok/s", "tok/s"), ("ttft_p50=0", "--slo"),
                          ("ttft_p50=-1s", "--slo"), ("ttft_p50=nan", "--slo"), ("ttft_p50=fast", "--slo"),
                          ("ttft_p51=2s", "ttft_p5"), ("ttft_p50<=2s", "direction"),
                          ("ttft_p50=2s,ttft_p50=3s", "two limits"),
                          ("ttft_p50=1,5s", "--slo")):
            self.refused("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--slo", slo, says=word)

    def test_slo_nobody_can_meet(self):
        r = self.ask("--slo", "ttft_p50=1us", code=3)
        self.assertIn("No recommendation", r.out)
        self.assertNotIn("Low confidence", r.out)
        self.assertRegex(r.out, r"(?m)^ +1  [HA]100")  # ranked all the same
        r = self.ask("--slo", "ttft_p50=1us", "--emit", "launch", code=3)
        self.assertEqual(r.out, "")
        self.assertIn("SLO", r.err)

    def test_outside_abstains(self):
        r = self.ask(code=3, inventory=["--inventory", "MI300X-192GB:8"])
        self.assertIn("outside", r.out)
        self.assertIn("Low confidence", r.out)
        self.assertIn("would help most", r.out)

    def test_nothing_feasible(self):
        r = self.expect(4, "advise", "--model", MODEL, "--llm", "meta-llama/Llama-3.1-405B-Instruct", "--input", 100,
                        "--output",
                        100, "--concurrency", 1, "--inventory", "L4-24GB:1", "--precision", "bf16")
        self.assertIn("Nothing feasible", r.out)
        self.assertRegex(r.out, r"\d GiB")
        doc = run("advise", "--model", MODEL, "--llm", "meta-llama/Llama-3.1-405B-Instruct", "--input", 100,
                  "--output", 100,
                  "--concurrency", 1, "--inventory", "L4-24GB:1", "--precision", "bf16", "--json")
        self.assertEqual(doc.code, 4)
        self.assertEqual(json.loads(doc.out)["verdict"], "nothing-feasible")

    def test_context_is_checked(self):
        r = self.expect(4, "advise", "--model", MODEL, "--llm", "Qwen/Qwen2.5-72B-Instruct", "--input", 500000,
                        "--output", 256,
                        "--concurrency", 1, *INVENTORY)
        self.assertIn("context", r.out)
        self.assertIn("500256", r.out.replace(" ", ""))

    def test_inventory_forms(self):
        for text, word in (("H100-80GB-SXM", "GPU:count"), (":8", "GPU:count"), ("H100-80GB-SXM:", "GPU:count"),
                           ("H100-80GB-SXM:0", "--inventory"), ("H100-80GB-SXM:-8", "--inventory"),
                           ("H100-80GB-SXM:2.5", "whole"), ("H100-80GB-SXM:1e99", "--inventory"),
                           ("H100-80GB-SXM:eight", "not a number"), ("H100-80GB-SXM:8@0", "--inventory"),
                           ("H100-80GB-SXM:8@", "GPU:count"), ("H100-80GB-SXM:8,,A100-80GB-SXM:8", "empty"),
                           ("H100-80GB-SXM:8,h100-sxm:8", "twice"), ("H1000:8", "H100"), ("A100:8", "A100-40GB-PCIe")):
            self.refused("advise", "--model", MODEL, *REQUEST, "--inventory", text, says=word)

    def test_more_gpus_than_there_are(self):
        rows = self.rows(self.ask("--csv", inventory=["--inventory", "H100-80GB-SXM:4"]).out)
        self.assertTrue(all(int(x["n_gpus"]) <= 4 for x in rows if x["verdict"] != "infeasible"))

    def test_per_node_limits_tp(self):
        rows = self.rows(run("advise", "--model", MODEL, *REQUEST, "--inventory", "H100-80GB-SXM:8@2", "--csv").out)
        self.assertTrue(all(int(x["tp"]) <= 2 for x in rows if x["verdict"] != "infeasible"))

    def test_bad_lengths(self):
        for option in ("input", "output", "concurrency"):
            for value in bad_lengths():
                args = list(REQUEST)
                k = args.index("--" + option)
                args[k:k + 2] = ["--%s=%s" % (option, value)]
                self.refused("advise", "--model", MODEL, *args, *INVENTORY, says="--" + option)

    def test_bad_numbers(self):
        for option, value in (("rate", "0"), ("max-context", "0"), ("demand", "-1"), ("demand", "nan"), ("value", "0"),
                              ("value", "-3"), ("power-price", "-1"), ("risk", "2"), ("risk", "nan"), ("top", "0"),
                              ("top", "1.5"), ("level", "2"), ("queue", "H100-80GB-SXM=-1"),
                              ("queue", "H100-80GB-SXM=soon")):
            args = list(REQUEST)
            if option == "rate":
                k = args.index("--concurrency")
                args = args[:k]
            self.refused("advise", "--model", MODEL, *args, *INVENTORY, "--%s=%s" % (option, value), says="--" + option)

    def test_load_is_needed_once(self):
        self.refused("advise", "--model", MODEL, *REQUEST[:-2], *INVENTORY, says="the load is missing")
        self.refused("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--rate", 2, says="cannot be used together")
        self.refused("advise", "--model", MODEL, *REQUEST, says="--inventory is missing")

    def test_unknown_names(self):
        self.refused("advise", "--model", MODEL, "--llm", "Qwen/Qwen2.5-72B-Instrct", *REQUEST[2:], *INVENTORY,
                     says="Qwen/Qwen2.5-72B-Instruct")
        self.refused("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--precision", "fp9", says="fp9")
        self.refused("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--precision", "fp8,fp8", says="twice")

    def test_utility_file(self):
        good = write("utility.json", json.dumps({"value_usd_per_mtok": 3, "risk": 0.5}))
        doc = json.loads(self.ask("--utility", good, "--json").out)
        self.assertEqual(doc["utility"]["value_usd_per_mtok"], 3)
        doc = json.loads(self.ask("--utility", good, "--value", "4", "--risk", "0", "--json").out)
        self.assertEqual((doc["utility"]["value_usd_per_mtok"], doc["utility"]["risk"]), (4, 0))
        for text in ("{", "[]", '{"valu_usd": 3}', '{"value_usd_per_mtok": "much"}', '{"value_usd_per_mtok": -1}',
                     '{"risk": 1e999}', ""):
            self.refused("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--utility", write("bad.json", text))
        self.refused("advise", "--model", MODEL, *REQUEST, *INVENTORY, "--utility", path("none.json"), says="none.json")

    def test_rate(self):
        args = REQUEST[:-2] + ["--rate", "0.5"]
        r = run("advise", "--model", MODEL, *args, *INVENTORY, "--csv")
        self.assertIn(r.code, (0, 3), str(r))
        best = float(self.rows(r.out)[0]["throughput_out_tok_s"])
        self.assertLessEqual(best, 0.5 * 256 * 1.000001)  # no more comes out than is asked for

    def test_same_answer_twice(self):
        self.assertEqual(self.ask("--json").out, self.ask("--json").out)
