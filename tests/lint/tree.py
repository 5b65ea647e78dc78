# SPDX-License-Identifier: Apache-2.0
"""Shared by the lints in Python: the sources in the tree, the room of each, and the search for circular references.
Implements no rule itself."""
import fnmatch
import os
import subprocess
import sys

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", "build")
LICENCE = "SPDX-License-Identifier: Apache-2.0"
TOPS = ("tracker", "trainer", "web", "schema", "docs", "tests")


def files(*ends):
    """Sources by path from the top, as listed by git, or as found in a tarball or a copy."""
    args = ["git", "-C", SRC, "ls-files", "-co", "--exclude-standard", *TOPS]
    found = subprocess.run(args, capture_output=True, text=True).stdout.splitlines() if os.path.exists(f"{SRC}/.git") else []
    if not found:
        for top in TOPS:
            for folder, inner, names in os.walk(f"{SRC}/{top}"):
                inner[:] = [d for d in inner if d not in ("node_modules", "__pycache__", "dist")]
                found += [os.path.relpath(f"{folder}/{name}", SRC) for name in names]
    return sorted(f for f in found if f.endswith(ends) and os.path.exists(f"{SRC}/{f}"))


def read(path):
    with open(f"{SRC}/{path}", encoding="utf-8") as f:
        return f.read()


def lines(text):
    """Lines of a source without the licence line."""
    return text.count("\n") - (LICENCE in text[:200])


def rules(kind):
    """The lines "KIND PATTERN: WORDS" of allowed.txt."""
    found = []
    for line in read("tests/lint/allowed.txt").splitlines():
        key, colon, words = line.partition(":")
        if colon and key.startswith(f"{kind} "):
            found.append((key[len(kind) + 1:], words.split()))
    return found


MOVED = rules("room")


def room(path):
    """The folder that a file belongs to: its own, unless a room line says otherwise."""
    for pattern, words in MOVED:
        if fnmatch.fnmatch(path, pattern):
            return words[0]
    return os.path.dirname(path)


def neighbours(a, b):
    """The two names below the deepest common folder of two files. A room includes everything inside it; a file next to
    rooms counts as itself."""
    a, b = ([*room(f).split("/"), os.path.basename(f)] for f in (a, b))
    at = 0
    while at < min(len(a), len(b)) - 1 and a[at] == b[at]:
        at += 1
    return "/".join(a[:at + 1]), "/".join(b[:at + 1])


def knots(edges):
    """Groups whose members reach each other along edges ({from: {to: reason}}), each with one shortest circle."""
    reach = {}

    def from_(start):
        if start not in reach:
            before, queue = {start: None}, [start]
            for at in queue:
                for to in edges.get(at, ()):
                    if to not in before:
                        before[to] = at
                        queue.append(to)
            reach[start] = before
        return reach[start]

    seen, found = set(), []
    for start in sorted(edges):
        if start in seen:
            continue
        group = [n for n in from_(start) if n != start and start in from_(n)]
        if not group:
            continue
        group.append(start)
        seen.update(group)
        found.append((sorted(group), min((circle(edges, from_, a) for a in group), key=len)))
    return found


def circle(edges, from_, start):
    """The shortest path from start back to it."""
    best = None
    for last in from_(start):
        if start in edges.get(last, ()):
            way, at = [], last
            while at is not None:
                way.insert(0, at)
                at = from_(start)[at]
            if best is None or len(way) < len(best):
                best = way
    return best


def show_knots(what, edges, advice, counts=lambda group: True):
    """Prints each knot that counts with every edge in it; returns their number."""
    found = [(group, way) for group, way in knots(edges) if counts(group)]
    for group, way in found:
        print(f"{what}: " + " -> ".join([*way, way[0]]))
        for a in group:
            for b in sorted(set(edges[a]) & set(group)):
                print(f"    {a} -> {b}: {edges[a][b]}")
    if found:
        print(f"{what}: {advice}")
    return len(found)


def has_room(group):
    """Whether a knot of rooms and files holds a room: one of files alone is a knot of files."""
    return any("." not in os.path.basename(name) for name in group)


class Verdict:
    """Counts violations of each rule."""

    def __init__(self, name):
        self.name, self.bad, self.held = name, 0, []

    def rule(self, name, broken):
        self.bad += broken
        if not broken:
            self.held.append(name)

    def end(self, said):
        if self.bad:
            sys.exit(1)
        print(f"{self.name}: {said}; kept: {', '.join(self.held) or 'none'}")
