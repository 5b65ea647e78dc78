#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each source begins with the licence line, after #! where there is one. Recorded data has none."""
import re

import tree

ENDS = (".c", ".h", ".cu", ".cuh", ".ts", ".tsx", ".mjs", ".css", ".py", ".sh", ".awk", ".mk", ".m4")
RECORDED = re.compile(r"^tests/.*/(files|fixtures|corpus|recorded|golden)/")


def main():
    verdict, bad = tree.Verdict("licence"), 0
    sources = [path for path in tree.files(*ENDS) if not RECORDED.match(path)]
    for path in sources:
        lines = tree.read(path).split("\n", 2)
        if tree.LICENCE not in lines[lines[0].startswith("#!")]:
            bad += 1
            print(f"{path}: must begin with a comment of {tree.LICENCE}")
    verdict.rule("licence line", bad)
    verdict.end(f"{len(sources)} sources")


main()
