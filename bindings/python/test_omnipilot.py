# SPDX-License-Identifier: Apache-2.0
"""Tests of the Python binding; needs the built library (OMNIPILOT_LIBRARY or build/lib)."""

import ctypes
import math
import os
import re
import sys
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(ROOT, "tests"))
import harness  # noqa: E402
import omnipilot  # noqa: E402
from omnipilot import _abi  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None


class Layout(unittest.TestCase):
    """The structs and functions declared in Python are the C ones."""

    def setUp(self):
        self.sizes, self.fields = {}, {}
        for line in harness.text(os.path.join(ROOT, "tests/abi/layout.txt")).splitlines():
            words = line.split()
            if words[0] == "struct":
                self.sizes[words[1]] = int(words[2])
            elif "." in words[0]:
                struct, field = words[0].split(".")
                self.fields.setdefault(struct, []).append((field, int(words[1]), int(words[2])))

    def test_every_struct_is_declared(self):
        self.assertEqual(set(self.sizes), set(_abi.STRUCTS))

    def test_sizes_and_offsets(self):
        for name, struct in _abi.STRUCTS.items():
            with self.subTest(name):
                mine = [(f[0], getattr(struct, f[0]).offset, getattr(struct, f[0]).size) for f in struct._fields_]
                self.assertEqual(mine, self.fields[name])
                self.assertEqual(ctypes.sizeof(struct), self.sizes[name])

    def test_every_function_is_declared(self):
        self.assertEqual(set(_abi.FUNCTIONS), set(harness.map_symbols()))

    def test_argument_counts(self):
        declared = {}
        for header in harness.public_headers("omnipilot"):
            code = harness.declarations(harness.text(header))
            for match in re.finditer(r"\bOPI_API\b[^;]*?\b(\w+)\s*\(([^;]*)\)\s*;", code):
                arguments = match.group(2).strip()
                declared[match.group(1)] = 0 if arguments == "void" else arguments.count(",") + 1
        self.assertEqual({n: len(a) for n, (_, a) in _abi.FUNCTIONS.items()}, declared)


class Facts(unittest.TestCase):
    def test_version(self):
        self.assertEqual(omnipilot.library_version(), omnipilot.__version__)

    def test_gpu_by_alias(self):
        self.assertEqual(omnipilot.gpu("H100-80GB-SXM").name, b"H100-80GB-SXM")
        self.assertEqual(omnipilot.gpu("h100-80gb-sxm").mem_gb, 80.0)

    def test_tables(self):
        self.assertIn("H200-141GB", [g.name.decode() for g in omnipilot.gpus()])
        self.assertIn("Qwen/Qwen2.5-72B-Instruct", [m.name.decode() for m in omnipilot.llms()])
        self.assertGreater(omnipilot.as_dict(omnipilot.llm("Qwen/Qwen2.5-72B-Instruct"))["params_b"], 72)

    def test_error_carries_code_and_message(self):
        with self.assertRaises(omnipilot.Error) as caught:
            omnipilot.gpu("no-such-gpu")
        self.assertEqual((caught.exception.code, caught.exception.name), (-6, "OPI_E_UNKNOWN"))
        self.assertIn("no-such-gpu", caught.exception.message)

    def test_range_error(self):
        with self.assertRaises(omnipilot.Error) as caught:
            omnipilot._entry(omnipilot.Gpu, omnipilot._lib.opi_gpu_at, len(omnipilot.gpus()))
        self.assertEqual(caught.exception.name, "OPI_E_RANGE")

    def test_unknown_field_is_refused(self):
        with self.assertRaises(TypeError):
            omnipilot.config("Qwen/Qwen2.5-72B-Instruct", "H100-80GB-SXM", tensor_parallel=4)

    def test_memory(self):
        c = omnipilot.config("Qwen/Qwen2.5-72B-Instruct", "H100-80GB-SXM", tp=1, precision="bf16", max_context=2048.0)
        self.assertEqual(omnipilot.memory(c).fits, 0)
        c.tp = c.n_gpus = 4
        m = omnipilot.memory(c)
        self.assertEqual(m.fits, 1)
        # 72.7e9 parameters of 2 bytes on 4 GPUs.
        self.assertAlmostEqual(m.weights_gib, 72.7e9 * 2 / 4 / 2 ** 30, delta=1.0)

    def test_config_text(self):
        text = ('{"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,'
                ' "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,'
                ' "max_position_embeddings": 8192}')
        with omnipilot.Context() as ctx:
            llm = ctx.llm_from_config(text, "mine")
            self.assertEqual((llm.name, llm.n_layers, llm.n_kv_heads, llm.head_dim), (b"mine", 32, 8, 128))
            with self.assertRaises(omnipilot.Error) as caught:
                ctx.llm_from_config("{")
            self.assertEqual(caught.exception.name, "OPI_E_FORMAT")


class WithModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ctx = omnipilot.Context()
        cls.model = cls.ctx.default_model()
        cls.config = omnipilot.config("meta-llama/Llama-3.1-70B-Instruct", "H100-80GB-SXM", tp=4, precision="fp8",
                                      engine="vllm", load_kind="concurrency", input_len=1024.0, output_len=1024.0,
                                      concurrency=32.0)

    @classmethod
    def tearDownClass(cls):
        cls.ctx.close()

    def test_predict_orders_its_numbers(self):
        p = self.model.predict(self.config, targets="itl_ms_p50")[0]
        self.assertIn(p.status, (omnipilot.OK, omnipilot.NEW_COMBINATION))
        self.assertTrue(0 < p.p10 <= p.p50 <= p.p90)
        self.assertTrue(p.lo <= p.p50 <= p.hi)
        self.assertEqual(p.level, 0.8)
        self.assertEqual(p.target, omnipilot.target_index("itl_p50"))

    def test_wider_level_is_wider(self):
        narrow = self.model.predict(self.config, ["throughput_out_tok_s"], level=0.5)[0]
        wide = self.model.predict(self.config, ["throughput_out_tok_s"], level=0.95)[0]
        self.assertTrue(wide.lo <= narrow.lo and narrow.hi <= wide.hi and wide.hi - wide.lo > narrow.hi - narrow.lo)

    def test_level_out_of_range(self):
        with self.assertRaises(omnipilot.Error) as caught:
            self.model.predict(self.config, level=1.5)
        self.assertEqual(caught.exception.name, "OPI_E_RANGE")

    def test_exceed_falls_with_the_limit(self):
        p = self.model.predict(self.config, ["itl_ms_p50"])[0]
        low, high = (self.model.exceed(self.config, "itl_ms_p50", p.p50 * f) for f in (0.5, 2.0))
        self.assertTrue(0.0 <= high < low <= 1.0)

    def test_batch_is_row_by_row(self):
        rows = []
        for concurrency in (1.0, 8.0, 64.0):
            c = omnipilot.config("meta-llama/Llama-3.1-70B-Instruct", "H100-80GB-SXM", tp=4, precision="fp8",
                                 engine="vllm", input_len=1024.0, output_len=1024.0, concurrency=concurrency)
            rows.append(c)
        batch = self.model.predict(rows)
        self.assertEqual(len(batch), 3)
        for row, answers in zip(rows, batch):
            self.assertEqual([bytes(p) for p in self.model.predict(row)], [bytes(p) for p in answers])

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_array(self):
        out = self.model.predict_array([self.config] * 4, targets=["itl_ms_p50", "ttft_ms_p50"])
        self.assertEqual(out.shape, (4, 2))
        self.assertEqual(out["p50"][3, 0], self.model.predict(self.config, ["itl_ms_p50"])[0].p50)
        self.assertTrue((out["lo"] <= out["hi"]).all())

    def test_threads_agree(self):
        answers = [None] * 4

        def work(i):
            for _ in range(50):
                answers[i] = bytes(self.model.predict(self.config, ["itl_ms_p50"])[0])
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(set(answers)), 1)

    def test_advise(self):
        with self.ctx.advise(self.model, "meta-llama/Llama-3.1-70B-Instruct", {"H100-80GB-SXM": 8, "L40S-48GB": 4},
                             slo={"itl_p50": 80.0}, input_len=1024.0, output_len=1024.0, concurrency=32.0) as advice:
            self.assertGreater(advice.feasible, 0)
            self.assertTrue(advice.sentence)
            document = advice.json()
            self.assertIsInstance(document, dict)
            first = advice.candidate(0)
            terms = omnipilot.as_dict(first.terms)
            total = terms.pop("total")
            self.assertTrue(math.isclose(sum(terms.values()), total, rel_tol=1e-9, abs_tol=1e-9))
            self.assertEqual(first.infeasible, 0)
            if advice.verdict == omnipilot.RECOMMENDED:
                self.assertIn(advice.candidate(advice.winner).verdict, (omnipilot.OK, omnipilot.NEW_COMBINATION))
            else:
                self.assertIsNone(advice.winner)

    def test_save_and_load(self):
        block = self.model.to_bytes()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.opi")
            self.model.save(path)
            with open(path, "rb") as f:
                self.assertEqual(f.read(), block)
            with self.ctx.load(path) as again, self.ctx.load(block) as third:
                want = bytes(self.model.predict(self.config)[0])
                self.assertEqual(bytes(again.predict(self.config)[0]), want)
                self.assertEqual(bytes(third.predict(self.config)[0]), want)

    def test_damaged_model(self):
        block = bytearray(self.model.to_bytes())
        block[len(block) // 2] ^= 1
        with self.assertRaises(omnipilot.Error) as caught:
            self.ctx.load(block)
        self.assertEqual(caught.exception.name, "OPI_E_FORMAT")

    def test_inspect(self):
        self.assertIsInstance(self.model.inspect(), dict)

    def test_launch_prior(self):
        p = omnipilot.launch_prior("A100-80GB-SXM", 4)
        self.assertTrue(0 < p.lo <= p.mean <= p.hi <= 1)


class Lifetime(unittest.TestCase):
    def test_closing_the_context_closes_the_model(self):
        ctx = omnipilot.Context()
        model = ctx.default_model()
        ctx.close()
        with self.assertRaises(ValueError):
            model.inspect()
        ctx.close()  # twice is fine

    def test_progress_exception_reaches_the_caller(self):
        # A table too small to fit is refused before the callback runs, so the wrapper is tried by itself.
        options = omnipilot._new(_abi.FitOptions)

        def broken(*_):
            raise KeyError("stop")
        with self.assertRaises(KeyError):
            with omnipilot._Progress(options, broken):
                self.assertEqual(options.progress(None, b"fit", 1, 2), 1)


if __name__ == "__main__":
    unittest.main(verbosity=1)
