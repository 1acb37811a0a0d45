# SPDX-License-Identifier: Apache-2.0
"""Made-up measurements for the command's tests: a smooth law with a little noise, the same on every machine."""

import hashlib
import math

# name, billions of parameters, layers, KV heads
LLMS = [("Qwen/Qwen2.5-72B-Instruct", 72.7), ("meta-llama/Llama-3.1-8B-Instruct", 8.03),
        ("Qwen/Qwen2.5-7B-Instruct", 7.6)]
# name, GB/s, TFLOP/s of 16 bits, GB
GPUS = [("H100-80GB-SXM", 3350, 989, 80), ("A100-80GB-SXM", 2039, 312, 80), ("H200-141GB", 4800, 989, 141)]
BYTES = {"bf16": 2, "fp8": 1}
COLUMNS = ["source", "license", "engine", "engine_version", "model", "precision", "gpu", "n_gpus", "tp", "input_len",
           "output_len", "concurrency", "load_kind", "workload", "launch_ok", "throughput_out_tok_s", "ttft_ms_p50",
           "itl_ms_p50", "power_w_per_gpu"]


def noise(*parts):
    digest = hashlib.sha256("|".join(str(p) for p in parts).encode()).digest()
    u = (int.from_bytes(digest[:6], "big") + 0.5) / 2 ** 48
    v = (int.from_bytes(digest[6:12], "big") + 0.5) / 2 ** 48
    return math.exp(0.03 * math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v))


def truth(model, gpu, tp, precision, n_in, n_out, concurrency):
    size = dict(LLMS)[model]
    _, bandwidth, flops, _ = [g for g in GPUS if g[0] == gpu][0]
    step = size * BYTES[precision] / (0.7 * bandwidth * tp) + 2 * size * concurrency / (450.0 * flops * tp) + 0.002
    prefill = 2 * size * n_in / (500.0 * flops * tp) + 0.015
    ttft = prefill * (1 + concurrency / 8)
    itl = step + prefill * concurrency / n_out
    return {"throughput_out_tok_s": concurrency / (ttft / n_out + itl), "ttft_ms_p50": 1000 * ttft,
            "itl_ms_p50": 1000 * itl,
            "power_w_per_gpu": 300 + 60 * math.log2(1 + concurrency)}


def rows():
    for model, size in LLMS:
        for gpu, _, _, memory in GPUS:
            for tp in (1, 2, 4, 8):
                for precision in ("bf16", "fp8"):
                    if gpu.startswith("A100") and precision == "fp8" or size * BYTES[precision] / tp > 0.75 * memory:
                        continue
                    for n_in, n_out in ((128, 128), (1024, 256), (4096, 512)):
                        for concurrency in (1, 4, 16, 64):
                            yield model, gpu, tp, precision, n_in, n_out, concurrency


def table(copies=1, targets=tuple(COLUMNS[15:])):
    lines = [",".join(COLUMNS[:15] + list(targets))]
    for copy in range(copies):
        for model, gpu, tp, precision, n_in, n_out, concurrency in rows():
            exact = truth(model, gpu, tp, precision, n_in, n_out, concurrency)
            seen = {k: v * noise(copy, model, gpu, tp, precision, n_in, n_out, concurrency, k)
                    for k, v in exact.items()}
            cells = ["made-up-%d" % (copy + 1), "Apache-2.0", "vllm", "0.9", model, precision, gpu, tp, tp, n_in, n_out,
                     concurrency, "concurrency", "fixed-%dx%d" % (n_in, n_out), 1]
            cells += ["%.6g" % seen[k] for k in targets]
            lines.append(",".join(str(c) for c in cells))
    return "\n".join(lines) + "\n"
