# SPDX-License-Identifier: Apache-2.0
"""Python through ctypes: how does latency grow with the load, and where does the model stop knowing?

Run from a checkout after ./dev demo, or anywhere with the library installed and bindings/python on the path.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bindings/python"))
import omnipilot  # noqa: E402

TARGETS = ["throughput_out_tok_s", "ttft_ms_p50", "itl_ms_p50"]


def main():
    with omnipilot.Context() as ctx, ctx.default_model() as model:
        llm, gpu = omnipilot.llm("meta-llama/Llama-3.1-70B-Instruct"), omnipilot.gpu("H100-80GB-SXM")
        configs = [omnipilot.config(llm, gpu, tp=4, precision="fp8", engine="vllm", load_kind="concurrency",
                                    input_len=1024.0, output_len=1024.0, concurrency=float(n))
                   for n in (1, 4, 16, 64, 256, 65536)]
        print("%11s  %-34s %-28s %s" % ("concurrency", "output tokens/s", "TTFT p50, ms", "ITL p50, ms"))
        for c, answers in zip(configs, model.predict(configs, TARGETS, level=0.8)):
            cells = ["%.4g [%.4g ... %.4g]" % (p.p50, p.lo, p.hi) for p in answers]
            print("%11d  %-34s %-28s %s" % (c.concurrency, *cells))
            if any(p.status == omnipilot.OOD for p in answers):
                print("%13s%s" % ("", model.reason(c, answers[0])))


if __name__ == "__main__":
    main()
