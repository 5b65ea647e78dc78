#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documents do not exceed their lengths, their links resolve, and the paths they name exist. The functions and other
names with an underscore that docs/internals and ARCHITECTURE.md put in back quotes occur in the source."""
import functools
import os
import re

import tree

LENGTHS = {"README.md": 120, "ARCHITECTURE.md": 200, "NEWS.md": 110}
PATH = re.compile(r"`((?:tracker|trainer|web|schema|tests|docs)/[\w./@+-]+)`")

QUOTED = re.compile(r"`([^`/]+)`")
NAME = re.compile(r"\b[a-z][a-z0-9]*_[a-z0-9_]+\b")


@functools.cache
def source_names():
    """All names with an underscore in the sources."""
    text = "\n".join(tree.read(path) for path in tree.files(".c", ".h", ".cu", ".def", ".sql", ".py", ".ts", ".tsx"))
    return set(NAME.findall(text))


def unknown_names(path, text):
    """(line, description) of each quoted name that no source has."""
    if not path.startswith(("docs/internals/", "ARCHITECTURE.md")):
        return
    for number, line in enumerate(text.splitlines(), 1):
        for quoted in QUOTED.findall(line):
            for name in set(NAME.findall(quoted)) - source_names():
                yield number, f"names {name}, which is not in the source"


def documents():
    found = [name for name in os.listdir(tree.SRC) if name.endswith(".md")]
    for folder, _, names in os.walk(f"{tree.SRC}/docs"):
        found += [os.path.relpath(f"{folder}/{name}", tree.SRC) for name in names if name.endswith(".md")]
    return sorted(found)


def broken(path, text):
    """(line, description) of each link and path that does not exist."""
    for number, line in enumerate(text.splitlines(), 1):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
            at = os.path.join(tree.SRC, os.path.dirname(path), target)
            if "://" not in target and not os.path.exists(at):
                yield number, f"link to {target}, which does not exist"
        for target in PATH.findall(line):
            if not os.path.exists(f"{tree.SRC}/{target}") and not os.path.exists(f"{tree.SRC}/{target}.c"):
                yield number, f"names {target}, which does not exist"


def main():
    verdict, long, lost = tree.Verdict("documents"), 0, 0
    for path in documents():
        text = tree.read(path)
        lines = text.count("\n")
        if lines > LENGTHS.get(path, lines):
            long += 1
            print(f"{path}: {lines} lines, at most {LENGTHS[path]}: move details to docs/")
        for number, what in (*broken(path, text), *unknown_names(path, text)):
            lost += 1
            print(f"{path}:{number}: {what}")
    verdict.rule("lengths of README, ARCHITECTURE and NEWS", long)
    verdict.rule("links, paths and names", lost)
    verdict.end(f"{len(documents())} documents")


main()
