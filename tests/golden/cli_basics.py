# SPDX-License-Identifier: Apache-2.0
"""Usage, the fact tables, the memory breakdown."""

import json
import os
import re
import shutil

from cli_case import Cli, path, write


class Usage(Cli):
    VERBS = ["advise", "predict", "memory", "gpus", "llms", "inspect", "fit", "adapt", "evaluate", "gate", "preferences",
             "plan-training"]

    def test_no_verb(self):
        self.refused(says="a verb is needed")

    def test_version(self):
        self.assertRegex(self.expect(0, "--version").out, r"^omnipilot \d+\.\d+\.\d+\n$")

    def test_help_names_every_verb(self):
        for how in (["--help"], ["-h"], ["help"]):
            out = self.expect(0, *how).out
            for verb in self.VERBS:
                self.assertRegex(out, r"(?m)^  %s +\S" % verb)
            self.fits_100(out)

    def test_help_of_each_verb(self):
        for verb in self.VERBS:
            r = self.expect(0, verb, "--help")
            self.assertEqual(r.err, "")
            self.assertIn("Usage: omnipilot " + verb, r.out)
            self.assertIn("Examples:", r.out)
            self.assertIn("  omnipilot " + verb, r.out.split("Examples:")[1])
            self.fits_100(r.out)
            self.assertEqual(r.out, self.expect(0, verb, "-h").out)
            self.assertEqual(r.out, self.expect(0, "help", verb).out)

    def test_unknown_verb_suggests(self):
        self.refused("advice", says=["unknown verb 'advice'", "did you mean 'advise'"])
        self.refused("qqqqqq", says="unknown verb")
        self.refused("--frob", says="unknown option '--frob'")

    def test_unknown_option_suggests(self):
        self.refused("advise", "--concurency", "4", says=["'--concurency'", "did you mean '--concurrency'"])
        self.refused("predict", "--presicion=fp8", says="did you mean '--precision'")
        self.refused("gpus", "--jsn", says="did you mean '--json'")
        self.refused("advise", "--zzzzzzzzz", says="unknown option")
        self.refused("gpus", "-j", says="unknown option '-j'")

    def test_missing_value(self):
        self.refused("advise", "--llm", says="--llm needs a value")
        self.refused("advise", "--llm", "--input", "4", says="--llm needs a value")
        self.refused("advise", "--llm=", says="empty")

    def test_duplicate(self):
        self.refused("predict", "--tp", "1", "--tp=2", says="--tp is given twice")
        self.refused("gpus", "--json", "--json", says="--json is given twice")

    def test_flag_takes_no_value(self):
        self.refused("gpus", "--json=yes", says="takes no value")

    def test_unexpected_argument(self):
        self.refused("inspect", "something", says="unexpected argument 'something'")

    def test_double_dash_ends_options(self):
        self.refused("gpus", "--", "--json", says="--json")  # a GPU of that name is not known
        self.assertEqual(self.expect(0, "gpus", "--", "H200-141GB").out, self.expect(0, "gpus", "H200-141GB").out)

    def test_equals_form_is_the_same(self):
        a = self.expect(0, "memory", "--llm", "Qwen/Qwen2.5-72B-Instruct", "--gpu", "H200-141GB", "--tp", "2")
        b = self.expect(0, "memory", "--llm=Qwen/Qwen2.5-72B-Instruct", "--gpu=H200-141GB", "--tp=2")
        self.assertEqual(a.out, b.out)

    def test_messages_carry_no_control_characters(self):
        r = self.refused("gpus", "a\x1b[31mb\nc")
        self.assertNotIn("\x1b", r.err)
        self.assertEqual(r.err.count("\n"), 1)


class Facts(Cli):
    def test_gpus(self):
        r = self.expect(0, "gpus")
        self.fits_100(r.out)
        self.assertEqual(r.err, "")
        for name in ("H100-80GB-SXM", "L40S-48GB", "MI355X-288GB-1000Wcap"):
            self.assertIn(name, r.out)

    def test_gpus_json(self):
        doc = json.loads(self.expect(0, "gpus", "--json").out)
        by_name = {g["name"]: g for g in doc["gpus"]}
        self.assertEqual(by_name["H100-80GB-SXM"]["mem_gb"], 80)
        self.assertEqual(by_name["H100-80GB-SXM"]["mem_bw_gbs"], 3350)
        self.assertEqual(by_name["A100-80GB-SXM"]["fp8_tflops"], None)
        self.assertTrue(all(g["mark"] in ("verified", "recalled") for g in doc["gpus"]))
        self.assertTrue(all(g["source"] for g in doc["gpus"]))

    def test_one_gpu(self):
        r = self.expect(0, "gpus", "h200")
        self.assertIn("H200-141GB", r.out)
        self.assertIn("4 800 GB/s", r.out)
        self.assertEqual(json.loads(self.expect(0, "gpus", "h200", "--json").out)["mem_bw_gbs"], 4800)

    def test_gpu_names(self):
        self.refused("gpus", "A100", says=["A100-80GB-SXM", "A100-40GB-PCIe"])  # ambiguous: says which
        self.assertIn("H100-80GB-SXM\n", self.expect(0, "gpus", "h100-sxm").out)
        self.refused("gpus", "H20000", says="H200")  # unknown: the nearest

    def test_llms(self):
        r = self.expect(0, "llms")
        self.fits_100(r.out)
        self.assertIn("Qwen/Qwen2.5-72B-Instruct", r.out)
        doc = json.loads(self.expect(0, "llms", "--json").out)
        one = [m for m in doc["llms"] if m["name"] == "Qwen/Qwen2.5-72B-Instruct"][0]
        self.assertEqual((one["n_layers"], one["n_heads"], one["n_kv_heads"], one["head_dim"]), (80, 64, 8, 128))

    def test_llm_names(self):
        self.assertIn("Qwen/Qwen2.5-72B-Instruct\n", self.expect(0, "llms", "qwen2.5-72b-instruct").out)
        self.refused("llms", "Qwen/Qwen2.5-72B-Instrukt", says="Qwen/Qwen2.5-72B-Instruct")
        self.refused("llms", "no-such-model-at-all")

    CONFIG = {"model_type": "llama", "_name_or_path": "acme/tiny", "hidden_size": 4096, "num_hidden_layers": 32,
              "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
              "max_position_embeddings": 8192, "torch_dtype": "bfloat16"}

    def test_config_json(self):
        file = write("config.json", json.dumps(self.CONFIG))
        one = json.loads(self.expect(0, "llms", file, "--json").out)
        self.assertEqual((one["n_layers"], one["n_kv_heads"], one["head_dim"]), (32, 8, 128))
        self.assertAlmostEqual(one["params_b"], 8.03, delta=0.05)
        os.makedirs(path("checkpoint"), exist_ok=True)
        shutil.copy(file, path("checkpoint/config.json"))
        self.assertEqual(json.loads(self.expect(0, "llms", path("checkpoint"), "--json").out), one)

    def test_bad_config_json(self):
        self.refused("llms", path("missing.json"), says="cannot open")
        self.refused("llms", write("cut.json", json.dumps(self.CONFIG)[:60]))
        self.refused("llms", write("empty.json", ""))
        self.refused("llms", write("list.json", "[1, 2]"))
        self.refused("llms", write("deep.json", "[" * 100000))
        self.refused("llms", write("minus.json", json.dumps(dict(self.CONFIG, hidden_size=-4096))))


class Memory(Cli):
    def test_fits(self):
        r = self.expect(0, "memory", "--llm", "Qwen/Qwen2.5-72B-Instruct", "--gpu", "H200-141GB", "--tp", 2,
                        "--precision",
                        "bf16", "--max-context", 4096, "--concurrency", 8, "--input", 1000, "--output", 200)
        self.assertRegex(r.out, r"margin: \+\d+\.\d\d GiB, fits")
        self.fits_100(r.out)
        # 72.7e9 weights of two bytes on two GPUs are 67.7 GiB each.
        weights = float(re.search(r"weights +([\d.]+) GiB", r.out).group(1))
        self.assertAlmostEqual(weights, 67.7, delta=2.1)

    def test_json_is_the_same_arithmetic(self):
        m = json.loads(self.expect(0, "memory", "--llm", "Qwen/Qwen2.5-72B-Instruct", "--gpu", "H200-141GB", "--tp", 2,
                                   "--precision", "bf16", "--max-context", 4096, "--json").out)
        self.assertAlmostEqual(m["kv_gib"],
                               m["usable_gib"] - m["weights_gib"] - m["activation_gib"] - m["runtime_gib"], 6)
        self.assertAlmostEqual(m["margin_gib"], m["kv_gib"] - m["kv_needed_tokens"] * m["kv_bytes_per_token"] / 2**30,
                               6)
        self.assertEqual(m["kv_bytes_per_token"],
                         2 * 80 * 4 * 128 * 2)  # K and V, layers, KV heads of a rank, dim, bytes

    def test_impossible(self):
        r = self.expect(4, "memory", "--llm", "meta-llama/Llama-3.1-405B-Instruct", "--gpu", "L4-24GB", "--precision",
                        "bf16")
        self.assertRegex(r.out, r"margin: -[78]\d\d\.\d\d GiB, does not fit")

    def test_tp_that_does_not_divide(self):
        r = self.expect(4, "memory", "--llm", "Qwen/Qwen2.5-72B-Instruct", "--gpu", "H200-141GB", "--tp", 3)
        self.assertIn("3", r.out)
        self.assertNotIn(", fits", r.out)

    def test_required(self):
        self.refused("memory", "--gpu", "H200", says="--llm is missing")
        self.refused("memory", "--llm", "llama-3.1-8b", says="--gpu is missing")

    def test_bad_numbers(self):
        base = ["memory", "--llm", "Qwen/Qwen2.5-72B-Instruct", "--gpu", "H200-141GB"]
        for option, value in (("tp", "0"), ("tp", "-1"), ("tp", "2.5"), ("tp", "1e9"), ("mem-util", "0"),
                              ("mem-util", "1.5"),
                              ("kv-bits", "0"), ("max-context", "-1"), ("max-context", "1e308"),
                              ("max-context", "nan")):
            self.refused(*base, "--%s=%s" % (option, value), says=["--" + option])

    def test_unknown_precision(self):
        self.refused("memory", "--llm", "Qwen/Qwen2.5-72B-Instruct", "--gpu", "H200-141GB", "--precision", "fp9",
                     says="fp9")
