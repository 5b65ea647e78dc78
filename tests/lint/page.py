# SPDX-License-Identifier: Apache-2.0
"""The page's sources (web/ui/src) keep their rooms and limits. Rooms are folders: for each of them allowed.txt lists
the rooms and packages its files may import (a room means itself, not the rooms inside it) and which of its files
others may import ("*" for all). main.tsx may import any face, pure.ts, the entry point for tests, any module. No
circular imports of files or rooms, no module that is never imported, no export that is never used. Only state/ sends
requests to the server, and requests series in two files; text is never inserted as markup. Lines of at most 120
columns (in tests too), functions of at most 70 inner lines."""
import os
import re

import tree

SRC = "web/ui/src"
COLUMNS = 120
LINES = 70

IMPORT = re.compile(r"""(?:^\s*(?:import|export|\})[^'"]*\bfrom\s*|\bimport\s*\(\s*|^\s*import\s+)['"]([^'"]+)['"]""")
EXPORT = re.compile(r"^export (?:async |abstract )*(?:const|let|function\*?|class|interface|type|enum) (\w+)")
COMMENT = re.compile(r"^\s*(?://|/?\*)")
REQUEST = re.compile(r"\bfetch\s*\(|\b(?:EventSource|XMLHttpRequest|WebSocket|sendBeacon)\b")
SERIES = re.compile(r"\bquerySeries\b|series/query")
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(")
FUNCTION = re.compile(r"\bfunction\b|=>")
# A text in lower case that is read by itself: in attributes, and as the whole of an element. The rule is in web/ui/list-texts.mjs.
ALONE = re.compile(r"""\b(?:title|aria-label|alt|placeholder|label|word)=(?:"|\{(?:\w+(?:\.\w+)* \? )?['"`])([a-z]\w+(?: [^"'`]*)?)["'`]"""
                   r"""|<(?:button|h\d|option|th|summary|dt|caption)\b[^<>]*>([a-z][^<>{}]*)</""")
METHOD = re.compile(r"^\s+(?:(?:private|protected|public|static|override|async|get|set) )*"
                    r"(?!(?:if|for|while|switch|catch|return|super)\b)\w+(?:<[^(]*>)?\(")


class Page:
    """The sources by path, the imports of each, and the problems found."""

    def __init__(self):
        self.sources = {f: tree.read(f).split("\n") for f in tree.files(".ts", ".tsx") if f.startswith(SRC + "/")}
        tests = [f for f in tree.files(".mjs") if f.startswith(("tests/web/", "web/ui/"))]
        self.scripts = {f: tree.read(f).split("\n") for f in tests}
        self.imports = {f: imports(f, lines) for f, lines in self.sources.items()}
        self.broken = 0

    def complain(self, path, line, text):
        print(f"{path}:{line}: {text}")
        self.broken += 1

    def taken(self):
        """The number of complaints since the last call."""
        broken, self.broken = self.broken, 0
        return broken


def imports(path, lines):
    """The imports of a file: (line, path of a module or name of a package)."""
    found = []
    for at, line in enumerate(lines, 1):
        for name in IMPORT.findall(line):
            found.append((at, os.path.normpath(f"{os.path.dirname(path)}/{name}") if name.startswith(".") else name))
    return found


def columns(page):
    for path, lines in {**page.sources, **page.scripts}.items():
        for at, line in enumerate(lines, 1):
            wide = len(line.expandtabs(8))
            if wide > COLUMNS:
                page.complain(path, at, f"{wide} columns, {COLUMNS} at most: break the line")
    return page.taken()


def head_end(lines, first):
    """The line where the parentheses of a function's head are closed."""
    depth = 0
    for at in range(first, min(first + 12, len(lines))):
        depth += lines[at].count("(") - lines[at].count(")")
        if depth <= 0:
            return at
    return first


def inner_lines(lines, first):
    """Number of lines inside the function that begins in a line; 0 if none does. It ends where the indentation
    returns."""
    line = lines[first].rstrip()
    head = first if line.endswith(("{", "(", "[")) else head_end(lines, first)
    opened = lines[head].rstrip().endswith(("{", "(", "["))
    if COMMENT.match(line) or not (FUNCTION.search(line) or (METHOD.match(line) and opened)):
        return 0
    indent = len(line) - len(line.lstrip())
    for at in range(head + 1, len(lines)):
        text = lines[at].lstrip()
        if text and len(lines[at]) - len(text) <= indent and (not opened or text[0] in "})]"):
            return at - head - 1
    return 0


def functions(page):
    for path, lines in page.sources.items():
        for first in range(len(lines)):
            inner = inner_lines(lines, first)
            if inner > LINES:
                page.complain(path, first + 1, f"a function of {inner} lines, {LINES} at most")
    return page.taken()


def requests(page):
    for path, lines in page.sources.items():
        for at, line in enumerate(lines, 1):
            if COMMENT.match(line):
                continue
            if REQUEST.search(line) and not path.startswith(f"{SRC}/state/"):
                page.complain(path, at, "only state/ talks to the server")
            if SERIES.search(line) and path not in [f"{SRC}/state/{f}.ts" for f in ("server/api", "points", "exact")]:
                page.complain(path, at, "series are asked for in state/points.ts and state/exact.ts alone")
            if MARKUP.search(line):
                page.complain(path, at, "text must not become markup")
    return page.taken()


def texts(page):
    for path, lines in page.sources.items():
        for at, line in enumerate(lines, 1):
            for words in filter(None, (w for found in ALONE.findall(line) for w in found)):
                page.complain(path, at, f'"{words}" stands alone here: begin it with a capital')
    return page.taken()


def faces(page):
    may = {room: words for room, words in tree.rules("page") if not room.startswith("face ")}
    face = dict(tree.rules("page face"))
    for path, found in page.imports.items():
        room = os.path.dirname(path)
        if path == f"{SRC}/pure.ts":
            continue
        if room != SRC and (room not in may or room not in face):
            page.complain(path, 1, f"allowed.txt has no page line, or no page face line, for {room}")
        for at, name in found:
            target = os.path.dirname(name) if name.startswith(SRC + "/") else name
            if room not in (SRC, target) and target not in may.get(room, []):
                page.complain(path, at, f"{room} may not import {name}")
            elif target not in (SRC, room, name) and not {os.path.basename(name), "*"} & set(face.get(target, [])):
                page.complain(path, at, f"{name} is no face of {target}, whose faces are {' '.join(face.get(target, []))}")
    return page.taken()


def circles(page):
    files, rooms = {}, {}
    for path, found in page.imports.items():
        for at, name in found:
            if name in page.sources:
                files.setdefault(path, {})[name] = f"line {at}"
                a, b = os.path.dirname(path), os.path.dirname(name)
                if a != b:
                    rooms.setdefault(a, {})[b] = f"{path}:{at}"
    return tree.show_knots("circle of the page's files", files, "what both need is a file of its own") \
        + tree.show_knots("circle of the page's rooms", rooms, "what both need belongs to a room below them")


def unused(page):
    imported = {name for found in page.imports.values() for _, name in found}
    words = {path: set(re.findall(r"\w+", "\n".join(lines))) for path, lines in {**page.sources, **page.scripts}.items()}
    for path, lines in page.sources.items():
        if path not in imported and os.path.dirname(path) != SRC:
            page.complain(path, 1, "nobody imports this module")
        for at, line in enumerate(lines, 1):
            export = EXPORT.match(line)
            if export and not any(export[1] in w for other, w in words.items() if other != path):
                page.complain(path, at, f"nobody uses the export {export[1]}")
    return page.taken()


def main():
    page = Page()
    verdict = tree.Verdict("page")
    for rule in columns, functions, requests, texts, faces, circles, unused:
        verdict.rule(f"page-{rule.__name__}", rule(page))
    verdict.end(f"{len(page.sources)} modules")


main()
