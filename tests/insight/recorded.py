# SPDX-License-Identifier: Apache-2.0
"""Recorded runs with one fault each (tests/bench/insight/doctor --record): dptrain doctor --run names that fault
first. Each leaf of schema/insight/leaves.def has such a run."""
import glob
import json
import os
import sys
sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "train")]
import helper
import reduced


def judged(archive):
    with helper.Folder() as folder:
        reduced.unpack(archive, folder)
        p = helper.dptrain("doctor", "--run", folder, "--json")
    return json.loads(p.stdout) if helper.check(p.returncode == 0, "%s: %s" % (archive, p.stderr)) else None


def main():
    found = set()
    for archive in sorted(glob.glob(os.path.join(HERE, "recorded", "*.tar.xz"))):
        leaf = os.path.basename(archive).split(".")[0]
        got = judged(archive)
        if got:
            said = [(row["leaf"], round(row["share"], 2), row["evidence"]) for row in got["leaves"]]
            helper.check(got["verdict"] == leaf, "%s: the verdict is %s: %s" % (leaf, got["verdict"], said))
        found.add(leaf)
    leaves = {name for name, *_ in helper.registered("schema/insight/leaves.def", "LEAF")}
    helper.check(found <= leaves, "recorded, but no leaves: %s" % sorted(found - leaves))
    helper.check(leaves <= found, "leaves without a recorded run: %s" % sorted(leaves - found))
    helper.finish("recorded")


main()
