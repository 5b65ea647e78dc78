# SPDX-License-Identifier: Apache-2.0
"""No circular calls between files or between rooms, and no symbol exported by two files: read with nm from the objects
of the build, so that function tables count as well as calls.

    calls.py [SOURCE=OBJECT…]        objects of a source, in addition to those of the build

Only objects named in the Makefile are read: objects left from deleted or renamed sources do not count. Tests are
separate programs and are not checked. A file belongs to the room of its folder unless a "room" line of allowed.txt
says otherwise: an op's cpu kernel belongs to the cpu backend, whose module.c lists it. A table is a user of the
entries that it lists."""
import os
import re
import subprocess
import sys

import tree

# Each program has one; each backend module exports the same name.
SHARED = {"main", "dptrain_backend_v1", "dptrain_link_v4"}


def makefile():
    """The build's Makefile with continued lines joined; lines disabled by configure are comments in it."""
    try:
        with open(f"{tree.BUILD}/Makefile", encoding="utf-8") as f:
            return f.read().replace("\\\n", " ")
    except OSError:
        print(f"calls: nothing is built in {tree.BUILD}")
        sys.exit(77)


def objects():
    """(source, object) of everything that the build links and that has been built."""
    text = makefile()
    source = {os.path.splitext(o)[0]: c for o, c in re.findall(r"^(\S+\.l?o): +(\S+\.c)$", text, re.M)}
    names = set()
    for line in re.findall(r"^am_\w+_OBJECTS = (.*)$|^am__objects_\d+ = (.*)$", text, re.M):
        names.update(re.findall(r"(\S+)\.(lo|\$\(OBJEXT\))", " ".join(line)))
    for name, kind in sorted(names):
        folder, base = os.path.split(name)
        for path in ([f"{folder}/.libs/{base}.o"] if kind == "lo" else []) + [f"{name}.o"]:
            if os.path.exists(f"{tree.BUILD}/{path}"):
                kernel = os.path.exists(f"{tree.SRC}/{name}.cu")  # built by a pattern rule
                yield source.get(name, f"{name}.cu" if kernel else f"{name}.c"), f"{tree.BUILD}/{path}"
                break


def symbols(pairs):
    """{symbol: files that define it}, {file: symbols it uses}."""
    of = dict((o, s) for s, o in pairs)
    text = subprocess.run(["nm", "-A", "-g", "-P", *of], capture_output=True, text=True, check=False).stdout
    defined, wanted = {}, {}
    for line in text.splitlines():
        path, _, rest = line.partition(": ")
        name, kind = rest.split()[:2]
        if name.startswith("__"):  # symbols of the sanitizers
            continue
        if kind in "Uw":
            wanted.setdefault(of[path], set()).add(name)
        else:
            defined.setdefault(name, set()).add(of[path])
    return defined, wanted


def edges_of(defined, wanted):
    files, rooms = {}, {}
    for a in sorted(wanted):
        for name in sorted(wanted[a]):
            for b in sorted(defined.get(name, ())):
                if b == a or a in defined[name]:
                    continue
                files.setdefault(a, {}).setdefault(b, []).append(name)
                x, y = tree.neighbours(a, b)
                if x != y:
                    rooms.setdefault(x, {}).setdefault(y, f"{a} uses {name} of {b}")
    return {a: {b: "uses " + ", ".join(n) for b, n in to.items()} for a, to in files.items()}, rooms


def main():
    pairs = [(s, o) for s, o in [*objects(), *(a.split("=", 1) for a in sys.argv[1:])] if not s.startswith("tests/")]
    defined, wanted = symbols(pairs)
    twice = {n: sorted(f) for n, f in defined.items() if len(f) > 1 and n not in SHARED}
    for name in sorted(twice):
        print(f"symbol twice: {name} is exported by {' and '.join(twice[name])}: make it static, or rename it after its file")
    files, rooms = edges_of(defined, wanted)
    verdict = tree.Verdict("calls")
    verdict.rule("symbols-twice", len(twice))
    verdict.rule("file-calls", tree.show_knots("call circle", files, "move what both need into a file below both, or pass it in"))
    verdict.rule("room-calls", tree.show_knots("room call circle", rooms, "move what is called the wrong way into the room that "
                                               "uses it, or below both", tree.has_room))
    verdict.end(f"{len(pairs)} objects, {len(defined)} symbols")


main()
