# SPDX-License-Identifier: Apache-2.0
"""preferences: utility weights from choices."""

import json
import math
import os
import random

from cli_case import INVENTORY, MODEL, REQUEST, WORK, Cli, path, write

HEAD = "choice,chosen,usd_per_h,out_tok_s,queue_s,note\n"


def choices(n=400, seed=3):
    """Operators to whom a million tokens are worth $2 and an hour of waiting $30, spread over 24 hours."""
    r, lines = random.Random(seed), []
    for i in range(n):
        rows = []
        for _ in range(r.randint(2, 4)):
            usd, tok, queue = r.uniform(5, 60), r.uniform(500, 8000), r.uniform(0, 300000)
            worth = 2 * tok * 0.0036 - usd - 30 * queue / 3600 / 24
            rows.append((worth - 8 * math.log(-math.log(r.random())), usd, tok, queue))
        best = max(rows)
        lines += ["%d,%d,%r,%r,%r,x\n" % (i, row is best, *row[1:]) for row in rows]
    return lines


class Preferences(Cli):
    def test_recovers_and_feeds_advise(self):
        out = path("utility.json")
        r = self.expect(0, "preferences", "--choices", write("choices.csv", HEAD + "".join(choices())), "--out", out,
                        "--json")
        doc = json.loads(r.out)
        self.assertEqual((doc["schema"], doc["version"], doc["situations"]), ("omnipilot.preferences", 1, 400))
        weights = {w["name"]: w for w in doc["weights"]}
        for name, truth in (("value_usd_per_mtok", 2), ("queue_usd_per_h", 30)):
            w = weights[name]
            self.assertEqual(w["status"], "identified")
            # One interval in twenty misses; tests/unit/test_preference.c counts how many do.
            self.assertLess(abs(w["weight"] - truth), 3.5 * w["se"], w)
            self.assertTrue(w["lo"] < w["weight"] < w["hi"], w)
            self.assertLess(w["se"], 0.1 * truth)
        self.assertEqual(weights["restart_usd"]["status"], "no-column")
        self.assertIsNone(weights["restart_usd"]["weight"])
        self.assertIn("unknown-columns", [n["code"] for n in doc["notes"]])
        with open(out, encoding="utf-8") as f:
            written = json.load(f)
        self.assertEqual({k: v for k, v in written.items() if k != "version"}, doc["utility"])
        self.assertEqual(written["value_usd_per_mtok"], weights["value_usd_per_mtok"]["used"])
        advice = json.loads(self.expect(0, "advise", "--model", MODEL, *REQUEST, *INVENTORY, "--utility", out,
                                        "--json").out)
        self.assertEqual(advice["utility"], doc["utility"])

    def test_table(self):
        r = self.expect(0, "preferences", "--choices", "-", stdin=(HEAD + "".join(choices())).encode())
        self.fits_100(r.out)
        for word in ("value_usd_per_mtok", "95 % interval", "no-column", "pseudo R2", "Note: 1 column is not used: note"):
            self.assertIn(word, r.out)
        r = self.expect(0, "preferences", "--choices", write("level.csv", HEAD + "".join(choices())), "--level", "80%")
        self.assertIn("80 % interval", r.out)

    def test_order_means_nothing(self):
        lines = choices(100)
        first = self.expect(0, "preferences", "--choices", write("a.csv", HEAD + "".join(lines)), "--json").out
        random.Random(1).shuffle(lines)
        again = self.expect(0, "preferences", "--choices", write("b.csv", HEAD + "".join(lines)), "--json").out
        a, b = json.loads(first), json.loads(again)
        for doc in (a, b):
            doc.pop("notes")  # they name lines
        self.assertEqual(a, b)

    def test_no_scale(self):
        out = path("never.json")
        same = write("same.csv", "choice,chosen,usd_per_h,queue_s\n1,1,5,10\n1,0,5,20\n2,1,5,9\n2,0,5,3\n")
        r = self.expect(3, "preferences", "--choices", same, "--out", out)
        self.assertIn("usd_per_h: constant", r.err)
        self.assertIn("nothing was written", r.err)
        self.assertFalse(os.path.exists(out))
        self.assertIsNone(json.loads(self.expect(3, "preferences", "--choices", same, "--json").out)["utility"])

    def test_contradictions_and_bad_input(self):
        self.refused("preferences", says="--choices is missing")
        self.refused("preferences", "--choices", path("none.csv"), says=["--choices", "none.csv"])
        head = "choice,chosen,usd_per_h,queue_s\n"
        two = write("two.csv", head + "x,1,1,2\ny,1,1,2\nx,0,2,1\nx,1,3,0\ny,0,4,4\n")
        self.refused("preferences", "--choices", two, says=['choice "x", lines 2 and 5', "more than one"])
        none = write("nobody.csv", head + "x,1,1,2\ny,0,1,2\nx,0,2,1\ny,0,4,4\n")
        self.refused("preferences", "--choices", none, says=['choice "y", lines 3 and 5', "no configuration"])
        self.refused("preferences", "--choices", write("unit.csv", head + "x,1,1,2s\n"), says="line 2: queue_s")
        self.refused("preferences", "--choices", write("binary.csv", bytes(range(256))), says="NUL")
        good = write("good.csv", HEAD + "".join(choices(30)))
        for value in ("-1", "0", "nan", "1e9", "x"):
            self.refused("preferences", "--choices", good, "--ridge=" + value, says="--ridge")
        self.refused("preferences", "--choices", good, "--level", "2", says="--level")
        self.refused("preferences", "--choices", good, "--utility", write("u.json", '{"risk": 9}'), says="risk = 9")
        self.expect(1, "preferences", "--choices", write("many.csv", HEAD + "".join(choices())), "--out",
                    os.path.join(WORK, "no", "folder.json"))
