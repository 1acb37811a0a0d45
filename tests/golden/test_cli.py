#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The omnipilot command from outside: every verb, every exit status, every bad input.

    test_cli.py [BINARY] [-v] [CLASS.TEST…]      (or the path in the environment variable OMNIPILOT)

Most tests ask a small model that is fitted here from made-up rows (cli_table.py), so that they do not depend on what
the compiled-in model knows.
"""

import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cli_case  # noqa: E402
import cli_table  # noqa: E402
from cli_advise import Advise  # noqa: E402, F401
from cli_basics import Facts, Memory, Usage  # noqa: E402, F401
from cli_models import Evaluate, Fit, Gate, Models  # noqa: E402, F401
from cli_output import Output  # noqa: E402, F401
from cli_plan import Plan  # noqa: E402, F401
from cli_preferences import Preferences  # noqa: E402, F401
from cli_predict import Predict, PredictTable  # noqa: E402, F401


def main():
    if not os.access(cli_case.BINARY, os.X_OK):
        print("no program at %s (give its path, or set OMNIPILOT)\n0 passed, 1 failed" % cli_case.BINARY)
        return 1
    cli_case.write("train.csv", cli_table.table())
    cli_case.write("large.csv", cli_table.table(copies=6))
    cli_case.write("one.csv", cli_table.table(targets=["throughput_out_tok_s"]))  # quicker to fit
    fitted = cli_case.run("fit", "--table", cli_case.path("train.csv"), "--out", cli_case.MODEL)
    if fitted.code:
        print("FAIL the small model could not be fitted: %s" % fitted)
    here, loader = sys.modules[__name__], unittest.TestLoader()
    names = [a for a in sys.argv[1:] if not a.startswith("-") and not os.path.exists(a)]
    suite = loader.loadTestsFromNames(names, here) if names else loader.loadTestsFromModule(here)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2 if "-v" in sys.argv else 1).run(suite)
    shutil.rmtree(cli_case.WORK, ignore_errors=True)
    bad = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    for test, why in result.skipped:
        print("skip %s: %s" % (test.id(), why))
    print("%d passed, %d failed, %d skipped" % (max(result.testsRun - bad - skipped, 0), bad + (fitted.code != 0),
                                                skipped))
    return 1 if bad or fitted.code or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
