# SPDX-License-Identifier: Apache-2.0
"""predict: one configuration, and tables of them."""

import json

import cli_table
from cli_case import MODEL, SINGLE, WORK, Cli, bad_lengths, path, run, write


class Predict(Cli):
    def one(self, *more):
        return run("predict", "--model", MODEL, *SINGLE, *more)

    def test_human(self):
        r = self.one()
        self.assertEqual(r.code, 0, str(r))
        self.fits_100(r.out)
        self.assertIn("H100-80GB-SXM x 4, TP 4, fp8, vllm", r.out)
        self.assertRegex(r.out, r"(?m)^TTFT p50 +[\d .]+ +\[[\d .]+ … [\d .]+\] +ms +inside")
        self.assertIn("Rests on:", r.out)

    def test_csv(self):
        r = self.one("--csv")
        self.assertEqual(r.code, 0, str(r))
        self.assertEqual(r.out.split("\n")[0], "row,target,p10,p50,p90,lo,hi,level,status,ood_distance,ood_axis,reason")
        rows = self.rows(r.out)
        self.assertEqual(len({x["target"] for x in rows}), len(rows))
        by = {x["target"]: x for x in rows}
        for name in ("throughput_out_tok_s", "ttft_ms_p50", "itl_ms_p50"):
            x = by[name]
            self.assertEqual((x["row"], x["status"], x["level"], x["reason"]), ("1", "ok", "0.8", ""))
            self.assertLessEqual(float(x["p10"]), float(x["p50"]))
            self.assertLessEqual(float(x["p50"]), float(x["p90"]))
            self.assertLessEqual(float(x["lo"]), float(x["p50"]))
            self.assertLessEqual(float(x["p50"]), float(x["hi"]))
        kv = by["kv_cache_usage"]  # no rows to learn from: physics, and no interval
        self.assertEqual(kv["status"], "uncalibrated")
        self.assertEqual((kv["p10"], kv["p90"], kv["lo"], kv["hi"]), ("", "", "", ""))
        self.assertTrue(0 < float(kv["p50"]) <= 1)

    def test_prediction_is_near_the_rows_it_learned(self):
        by = {x["target"]: x for x in self.rows(self.one("--csv").out)}
        truth = cli_table.truth("Qwen/Qwen2.5-72B-Instruct", "H100-80GB-SXM", 4, "fp8", 1024, 256, 16)
        for name in ("throughput_out_tok_s", "ttft_ms_p50", "itl_ms_p50"):
            self.assertAlmostEqual(float(by[name]["p50"]) / truth[name], 1, delta=0.25, msg=name)

    def test_json_has_the_same_numbers(self):
        doc = json.loads(self.one("--json").out)
        by = {x["target"]: x for x in self.rows(self.one("--csv").out)}
        targets = doc["rows"][0]["targets"]
        self.assertEqual(set(targets), set(by))
        for name, x in targets.items():
            for key in ("p10", "p50", "p90", "lo", "hi"):
                self.assertEqual(x[key], float(by[name][key]) if by[name][key] else None, name)

    def test_targets_and_level(self):
        r = self.one("--csv", "--target", "ttft_p50,itl_p50", "--level", "0.95")
        rows = self.rows(r.out)
        self.assertEqual([x["target"] for x in rows], ["ttft_ms_p50", "itl_ms_p50"])
        self.assertEqual({x["level"] for x in rows}, {"0.95"})
        narrow = self.rows(self.one("--csv", "--target", "ttft_p50", "--level", "50%").out)[0]
        self.assertEqual(narrow["level"], "0.5")
        self.assertLess(float(narrow["hi"]) - float(narrow["lo"]), float(rows[0]["hi"] or "inf") - float(rows[0]["lo"]))

    def test_bad_targets_and_levels(self):
        for level in ("0", "1", "0.3", "0.999", "-1", "nan", "high", "101%"):
            self.refused("predict", "--model", MODEL, *SINGLE, "--level=" + level, says="--level")
        self.refused("predict", "--model", MODEL, *SINGLE, "--target", "ttft_p5", says=["ttft_p5", "ttft_p50"])
        self.refused("predict", "--model", MODEL, *SINGLE, "--target", "ttft_p50,TTFT p50", says="twice")
        self.refused("predict", "--model", MODEL, *SINGLE, "--target", "ttft_p50,,itl_p50", says="empty")

    def test_bad_lengths(self):
        for option in ("input", "output", "concurrency"):
            for value in bad_lengths():
                args = list(SINGLE)
                k = args.index("--" + option)
                args[k:k + 2] = ["--%s=%s" % (option, value)]
                self.refused("predict", "--model", MODEL, *args, says="--" + option)

    def test_missing_parts(self):
        for option in ("--llm", "--gpu", "--input", "--output"):
            k = SINGLE.index(option)
            self.refused("predict", "--model", MODEL, *SINGLE[:k], *SINGLE[k + 2:], says=option + " is missing")
        k = SINGLE.index("--concurrency")
        self.refused("predict", "--model", MODEL, *SINGLE[:k], says="the load is missing")
        self.refused("predict", "--model", MODEL, *SINGLE, "--rate", 3, says="cannot be used together")
        self.refused("predict", "--model", MODEL, *SINGLE, "--load-kind", "burst", says="burst")
        self.refused("predict", "--model", MODEL, *SINGLE, "--json", "--csv", says="cannot be used together")

    def test_unknown_names(self):
        args = list(SINGLE)
        args[args.index("--gpu") + 1] = "H1000-80GB-SXM"
        self.refused("predict", "--model", MODEL, *args, says="H100-80GB-SXM")
        args = list(SINGLE)
        args[args.index("--llm") + 1] = "Qwen/Qwen2.5-72B-Instrct"
        self.refused("predict", "--model", MODEL, *args, says="Qwen/Qwen2.5-72B-Instruct")

    def test_infeasible(self):
        args = list(SINGLE)
        args[args.index("--tp") + 1] = 3
        r = self.expect(4, "predict", "--model", MODEL, *args, "--csv")
        self.assertEqual({x["status"] for x in self.rows(r.out)}, {"infeasible"})
        for x in self.rows(r.out):
            self.assertEqual([x[k] for k in ("p10", "p50", "p90", "lo", "hi")], [""] * 5)
            self.assertTrue(x["reason"])

    def test_longer_than_the_model_can_hold(self):
        args = list(SINGLE)
        args[args.index("--input") + 1] = 500000
        r = self.expect(4, "predict", "--model", MODEL, *args, "--csv")
        self.assertEqual({x["status"] for x in self.rows(r.out)}, {"infeasible"})

    def test_outside(self):
        args = list(SINGLE)
        args[args.index("--gpu") + 1] = "MI300X-192GB"
        r = self.expect(3, "predict", "--model", MODEL, *args, "--csv")
        x = [x for x in self.rows(r.out) if x["target"] == "ttft_ms_p50"][0]
        self.assertEqual(x["status"], "ood")
        self.assertEqual(x["ood_axis"], "gpu")
        self.assertGreater(float(x["ood_distance"]), 1)
        self.assertIn("MI300X", x["reason"])
        r = self.expect(3, "predict", "--model", MODEL, *args)
        self.assertIn("outside", r.out)

    def test_assumptions_are_said(self):
        args = list(SINGLE)
        k = args.index("--tp")
        r = run("predict", "--model", MODEL, *args[:k], *args[k + 2:])
        self.assertIn("TP 1", r.err)


class PredictTable(Cli):
    COLUMNS = ["model", "gpu", "n_gpus", "tp", "precision", "engine", "input_len", "output_len", "concurrency",
               "load_kind"]
    GOOD = ["Qwen/Qwen2.5-72B-Instruct", "H100-80GB-SXM", "4", "4", "fp8", "vllm", "1024", "256", "16", "concurrency"]

    def table(self, rows, columns=None, newline="\n", bom=False):
        text = newline.join(",".join(r) for r in [columns or self.COLUMNS] + rows) + newline
        return write("questions.csv", (b"\xef\xbb\xbf" if bom else b"") + text.encode())

    def predict(self, file, code=0, *more):
        r = self.expect(code, "predict", "--model", MODEL, "--table", file, "--csv", *more)
        return self.rows(r.out), r

    def test_same_as_options(self):
        rows, _ = self.predict(self.table([self.GOOD]))
        single = self.rows(self.expect(0, "predict", "--model", MODEL, *SINGLE, "--csv").out)
        self.assertEqual(rows, single)

    def test_every_row_in_order(self):
        good = [self.GOOD[:8] + [str(c), "concurrency"] for c in range(1, 301)]
        rows, _ = self.predict(self.table(good), 0, "--target", "ttft_p50,itl_p50")
        self.assertEqual([x["row"] for x in rows], [str(i) for i in range(1, 301) for _ in range(2)])

    def test_unusable_rows_stay(self):
        bad = list(self.GOOD)
        bad[6] = "-7"
        unknown = list(self.GOOD)
        unknown[1] = "H1000"
        rows, r = self.predict(self.table([self.GOOD, bad, self.GOOD, unknown]))
        by_row = {}
        for x in rows:
            by_row.setdefault(x["row"], []).append(x)
        self.assertEqual(len(by_row["1"]), len(by_row["2"]))
        self.assertEqual({x["status"] for x in by_row["2"]}, {"error"})
        for x in by_row["2"]:
            self.assertEqual([x[k] for k in ("p10", "p50", "p90", "lo", "hi", "ood_distance")], [""] * 6)
            self.assertIn("-7", x["reason"])
        self.assertTrue(all("H1000" in x["reason"] for x in by_row["4"]), by_row["4"][0])
        strip = lambda xs: [dict(x, row="") for x in xs]  # noqa: E731
        self.assertEqual(strip(by_row["1"]), strip(by_row["3"]))
        self.assertIn("2 of 4 rows", r.err)

    def test_all_rows_unusable(self):
        bad = list(self.GOOD)
        bad[6] = "x"
        rows, r = self.predict(self.table([bad, bad]), 2)
        self.assertEqual({x["status"] for x in rows}, {"error"})

    def test_crlf_bom_and_quotes(self):
        plain, _ = self.predict(self.table([self.GOOD]))
        dos, _ = self.predict(self.table([self.GOOD], newline="\r\n", bom=True))
        self.assertEqual(plain, dos)
        quoted, _ = self.predict(self.table([['"%s"' % v for v in self.GOOD] + ['"a, ""b"""']],
                                            self.COLUMNS + ["notes"]))
        self.assertEqual(plain, quoted)

    def test_decimal_comma_is_refused(self):
        row = list(self.GOOD)
        row[6] = '"1024,5"'
        r = run("predict", "--model", MODEL, "--table", self.table([row]), "--csv")
        self.assertEqual(r.code, 2, str(r))
        self.assertIn("comma", r.out + r.err)

    def test_missing_column(self):
        columns = [c for c in self.COLUMNS if c != "gpu"]
        row = [v for c, v in zip(self.COLUMNS, self.GOOD) if c != "gpu"]
        r = run("predict", "--model", MODEL, "--table", self.table([row], columns), "--csv")
        self.assertEqual(r.code, 2, str(r))
        self.assertIn("gpu", (r.out + r.err).lower())

    def test_unknown_column_is_said(self):
        plain, _ = self.predict(self.table([self.GOOD]))
        rows, _ = self.predict(self.table([self.GOOD + ["7"]], self.COLUMNS + ["favorite_color"]))
        self.assertEqual(rows, plain)

    def test_stdin(self):
        data = open(self.table([self.GOOD]), "rb").read()
        r = self.expect(0, "predict", "--model", MODEL, "--table", "-", "--csv", stdin=data)
        self.assertEqual(self.rows(r.out), self.predict(self.table([self.GOOD]))[0])

    def test_json_and_human(self):
        file = self.table([self.GOOD, self.GOOD[:6] + ["-1"] + self.GOOD[7:]])
        doc = json.loads(self.expect(0, "predict", "--model", MODEL, "--table", file, "--json").out)
        self.assertEqual([r["row"] for r in doc["rows"]], [1, 2])
        self.assertEqual(doc["rows"][1]["status"], "error")
        r = self.expect(0, "predict", "--model", MODEL, "--table", file)
        self.fits_100(r.out)
        self.assertIn("error: ", r.out)

    def test_not_a_table(self):
        self.refused("predict", "--model", MODEL, "--table", path("nothing.csv"), says="nothing.csv")
        self.refused("predict", "--model", MODEL, "--table", WORK)
        self.refused("predict", "--model", MODEL, "--table", write("empty.csv", ""))
        self.refused("predict", "--model", MODEL, "--table", MODEL, "--csv")
        self.refused("predict", "--model", MODEL, "--table", self.table([self.GOOD]), "--tp", 4, says="--tp")
        self.refused("predict", "--model", MODEL, "--table", self.table([self.GOOD]), "--format", "excel", says="excel")
