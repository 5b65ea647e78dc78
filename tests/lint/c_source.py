# SPDX-License-Identifier: Apache-2.0
"""The product's C source for the lints: each file is read once, and its functions, struct tags, includes and lines are
stored. A function begins with a name and a parenthesis on a line that starts in column 0, and ends at a brace in
column 0."""
import functools
import os
import re

import tree

PRODUCT = ("trainer/", "tracker/", "web/", "schema/")
# The groups of files that are linked together. A static name may be used again in another program.
PROGRAMS = {"dptrain": ("trainer/", "tracker/", "schema/"), "dptrack": ("web/", "tracker/", "schema/")}

START = re.compile(r"^(?!typedef|struct \{)[A-Za-z_][^;={}#\n]*?\b(\w+)\(", re.M)
TAG = re.compile(r"^struct (\w+) \{", re.M)
INCLUDE = re.compile(r"^\s*#\s*include", re.M)
STATIC = re.compile(r"\bstatic\b")
HEAD_LINES = 12
# For these the name of the function is inside the parentheses.
WRAPPERS = ("V", "__attribute__", "target", "format")


class Function:
    """A definition: where it starts, its head up to the brace, and the number of lines after the brace."""

    def __init__(self, path, line, name, head, lines, commented):
        self.path, self.line, self.name, self.lines, self.commented = path, line, name, lines, commented
        self.static = bool(STATIC.search(head))
        self.parameters = count_parameters(head)

    @property
    def named(self):
        return self.name not in WRAPPERS

    @property
    def place(self):
        return f"{self.path}:{self.line}"


class Source:
    """A file: its functions, the tags of the structs it defines, and its counts of lines and includes."""

    def __init__(self, path):
        text = tree.read(path)
        self.path, self.lines = path, tree.lines(text)
        self.tags = set(TAG.findall(text))
        self.includes = len(INCLUDE.findall(text))
        self.functions = list(find_functions(path, text))


def count_parameters(head):
    """The number of parameters in the first parentheses: one more than the commas outside inner parentheses, not
    counting an ellipsis."""
    depth, count = 0, 0 if re.match(r"[^()]*\([^()]*\.\.\.\)", head) else 1
    for at in range(head.index("("), len(head)):
        if head[at] == "(":
            depth += 1
        elif head[at] == ")":
            depth -= 1
            if not depth:
                break
        elif head[at] == "," and depth == 1:
            count += 1
    return count


def find_brace(lines, first):
    """The line that opens the body of a function; None for a declaration."""
    for at in range(first, min(first + HEAD_LINES + 1, len(lines))):
        line = lines[at].rstrip()
        if line.startswith("{") or (line.endswith("{") and ")" in line):
            return at
        if line.endswith((";", "{")):
            return None
    return None


def has_comment(lines, first):
    """Whether a comment ends on the line above; a // comment may be followed by empty lines."""
    if first and lines[first - 1].rstrip().endswith("*/"):
        return True
    at = first - 1
    while at >= 0 and not lines[at].strip():
        at -= 1
    return at >= 0 and lines[at].lstrip().startswith("//")


def find_functions(path, text):
    lines, seen, offset, line = text.split("\n"), -1, 0, 0
    for start in START.finditer(text):
        line += text.count("\n", offset, start.start())
        offset = start.start()
        brace = find_brace(lines, line) if line > seen else None
        if brace is None:
            continue
        seen = brace
        while seen < len(lines) and not lines[seen].startswith("}"):
            seen += 1
        head = " ".join(lines[line:brace + 1])
        yield Function(path, line + 1, start[1], head, seen - brace, has_comment(lines, line))


@functools.cache
def sources():
    paths = tree.files(".c", ".h", ".cu", ".cuh")
    return [Source(path) for path in paths if path.startswith(PRODUCT)]


def functions():
    return [f for source in sources() for f in source.functions]


def base_name(source):
    return os.path.basename(source.path).removesuffix(".c")


def room(path):
    """The room in whose line budget a file is counted: the first two folders of its path."""
    return "/".join(os.path.dirname(path).split("/")[:2])


def room_lines():
    """{room: lines}: its C source, and the TypeScript of the page."""
    found = {}
    for source in sources():
        found[room(source.path)] = found.get(room(source.path), 0) + source.lines
    for path in scripts():
        found[room(path)] = found.get(room(path), 0) + tree.lines(tree.read(path))
    return found


def scripts():
    return [path for path in tree.files(".ts", ".tsx") if path.startswith("web/ui/src/")]
