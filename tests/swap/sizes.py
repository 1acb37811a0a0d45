# SPDX-License-Identifier: Apache-2.0
"""Functional tests of state whose size changes from step to step (the worker's --grow); run.py runs them."""

import shutil

TESTS = []


def test(function):
    TESTS.append(function)
    return function


@test
def sizes_change(t):
    for transport, options in (("sm", ""), ("tcp", "--copy 1"), ("sm", "--interval 3 --replicas 2")):
        for point in ("begin", "spread", "commit"):
            done = t.run(6, "--grow 1 --kill %s:6:2 --kill %s:11:1 %s" % (point, point, options), transport)
            t.same(done, more="--grow 1")
            t.recoveries(done, 2)
    done = t.run(6, "--grow 1 --fault spread:5:1 --fault begin:9:0")
    t.same(done, more="--grow 1")
    t.losses(done, "comm-fault")
    done = t.run(7, "--dp 4 --tp 1 --grow 1 --kill begin:9:0+1+2 --pace-us 3000")
    t.has(done, "copies-lost", "back to step 0")
    t.same(done, 4, 1, more="--grow 1")


@test
def sizes_change_and_files(t):
    done = t.run(4, "--grow 1 --kill begin:9:1 --dir FOLDER/ck --pace-us 2000")
    t.has(done, "stopped")
    for width in (1, 3):
        shutil.copytree(t.path("ck"), t.path("ck%d" % width))
        done = t.run(2 * width, "--grow 1 --dp %d --dir FOLDER/ck%d" % (width, width))
        t.has(done, "loaded", "step [678]")
        t.same(done, width, more="--grow 1")
    done = t.run(5, "--grow 1 --dir FOLDER/ck --kill begin:4:2")
    t.has(done, "loaded", "step [678]")
    t.same(done, more="--grow 1")


@test
def sizes_change_and_rows_fewer(t):
    done = t.run(4, "--grow 1 --dp 4 --tp 1 --policy 1 --kill begin:5:1 --kill spread:9:2")
    t.same(done, 2, 1, more="--grow 1")
    t.losses(done, "process-lost", "shrunk")
    done = t.run(5, "--grow 1 --dp 2 --tp 2 --policy 1 --kill begin:5:1 --kill begin:9:3", "tcp")
    t.same(done, 1, more="--grow 1")


@test
def sizes_change_unannounced(t):
    done = t.run(5, "--grow 2 --kill begin:6:2")
    t.refused(done, "FORMAT",
              r'state "(list|piece)" has \d+ bytes here and \d+ bytes as saved, and there is no resize callback')
    done = t.run(5, "--grow 1 --kill begin:6:2 --fail resize:1:4")
    t.refused(done, "INVALID", r'callback resize returned 46 for \d+ bytes of state "(list|piece)"')
