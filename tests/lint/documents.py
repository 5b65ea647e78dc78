#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documents do not exceed their lengths, their links resolve, and the paths they name exist. Of the pages for
maintainers (docs/internals, ARCHITECTURE.md, CONTRIBUTING.md): paths in drawings and names of files exist, the function of
"file.c:function" is in that file, names with an underscore are in the source, and each room and folder of tests is named."""
import functools
import os
import re

import tree

LENGTHS = {"README.md": 120, "ARCHITECTURE.md": 200, "NEWS.md": 110}
BARE_PATH = r"(?:tracker|trainer|web|schema|tests|docs)/[\w./@+-]+"
PATH = re.compile(f"`({BARE_PATH})`")

QUOTED = re.compile(r"`([^`]+)`")
NAME = re.compile(r"(?<![\w/>.-])[a-z][a-z0-9]*_[a-z0-9_]+\b")
ENDS = (".c", ".h", ".cu", ".def", ".sql", ".py", ".ts", ".tsx", ".mjs", ".sh", ".awk")
FILE = re.compile(r"(?<![\w/<>*.-])([\w./-]+(?:%s))\b(?::(\w+))?" % "|".join(map(re.escape, ENDS)))
MAINTAINERS = ("docs/internals/", "ARCHITECTURE.md", "CONTRIBUTING.md")
ROOMS = (("ARCHITECTURE.md", ("tracker", "trainer", "web", "web/store")), ("CONTRIBUTING.md", ("tests",)))


@functools.cache
def sources():
    """The text of each source."""
    return {path: tree.read(path) for path in tree.files(*ENDS, ".json", ".mk")}


@functools.cache
def source_names():
    """All names with an underscore in the sources."""
    return {name for text in sources().values() for name in re.findall(r"\b[a-z][a-z0-9]*_[a-z0-9_]+\b", text)}


def unknown_file(name, function):
    """What is wrong with "name:function", None if nothing; name: the end of a path, or a header of a library."""
    found = [path for path in sources() if f"/{path}".endswith(f"/{name}")]
    if not found and f"<{name}>" not in tree.read("tests/lint/allowed.txt"):
        return f"names {name}, which does not exist"
    if function and not any(re.search(rf"\b{function}\b", sources()[path]) for path in found):
        return f"names {function}, which is not in {name}"
    return None


def unknown_names(path, text):
    """(line, description) of each file, path in a drawing, and name that no source has."""
    if not path.startswith(MAINTAINERS):
        return
    drawing = False
    for number, line in enumerate(text.splitlines(), 1):
        drawing ^= line.startswith("```")
        for target in re.findall(BARE_PATH, line) if drawing else ():
            if not os.path.exists(f"{tree.SRC}/{target}"):
                yield number, f"names {target}, which does not exist"
        for quoted in QUOTED.findall(line):
            for name, function in FILE.findall(quoted):
                if what := unknown_file(name, function):
                    yield number, what
            for name in set(NAME.findall(FILE.sub("", quoted))) - source_names():
                yield number, f"names {name}, which is not in the source"


def unnamed_rooms():
    """(document, room) of each folder without a line that says what it is for."""
    for document, tops in ROOMS:
        text, held = tree.read(document), {os.path.dirname(path) for path in tree.files("")}
        for top in tops:
            rooms = {"/".join(folder.split("/")[:top.count("/") + 2]) for folder in held if folder.startswith(f"{top}/")}
            yield from ((document, room) for room in sorted(rooms) if not re.search(f"`{room}[`/]", text))


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
    for document, room in unnamed_rooms():
        lost += 1
        print(f"{document}: names no {room}: say what it is for")
    verdict.rule("lengths of README, ARCHITECTURE and NEWS", long)
    verdict.rule("links, paths and names", lost)
    verdict.end(f"{len(documents())} documents")


main()
