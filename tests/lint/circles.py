# SPDX-License-Identifier: Apache-2.0
"""No circular includes between headers or between rooms. In each folder, its rooms and files that include each other,
each room with all its contents, must have an order."""
import re

import tree

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)


def main():
    sources = tree.files(".c", ".h", ".cu", ".def")
    known = set(sources)
    headers, rooms = {}, {}
    for a in sources:
        for b in INCLUDE.findall(tree.read(a)):
            if b not in known:
                continue
            headers.setdefault(a, {})[b] = "includes it"
            x, y = tree.neighbours(a, b)
            if x != y and not a.startswith("tests/"):
                rooms.setdefault(x, {}).setdefault(y, f"{a} includes {b}")
    verdict = tree.Verdict("circles")
    verdict.rule("header-circles", tree.show_knots("header circle", headers, "the lower header must not need the upper one: "
                                                   "declare the struct, or move what both need below both"))
    verdict.rule("room-circles", tree.show_knots("room circle", rooms, "move what is included the wrong way into the room "
                                                 "that uses it, or below both", tree.has_room))
    verdict.end(f"{len(sources)} files")


main()
