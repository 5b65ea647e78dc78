# SPDX-License-Identifier: Apache-2.0
"""The figures of names, pieces and prose, next to the goal of each:

    srcdir=. python3 tests/lint/measure.py"""
import collections
import statistics

import c_source
import dialect
import language
import tree
from table import Table


def percent(part, whole):
    return round(100 * part / whole, 1)


def name_figures():
    names = [f.name for f in c_source.functions() if f.static and f.named]
    uses = collections.Counter(names)
    yield "static functions that share their name, %", percent(sum(uses[n] > 1 for n in names), len(names)), 8
    yield "static functions named with one word, %", percent(sum("_" not in n for n in names), len(names)), 3
    bases = collections.Counter(c_source.base_name(s) for s in c_source.sources() if s.path.endswith(".c"))
    tags = collections.Counter(tag for source in c_source.sources() for tag in source.tags)
    yield "struct tags defined in several files", sum(n > 1 for n in tags.values()), 8
    yield ".c file names used several times", sum(n > 1 for n in bases.values()), 12


def piece_figures():
    sources = c_source.sources()
    lines = [s.lines for s in sources]
    yield "lines of the median file", statistics.median(lines), -120
    yield "files of at most 40 lines, %", percent(sum(n <= 40 for n in lines), len(lines)), 12
    yield "#include lines, %", percent(sum(s.includes for s in sources), sum(lines)), 2.2
    yield "long static functions without a comment", len(language.uncommented()), 0
    excused = Table("parameters.txt").entries
    yield "functions with more than 5 parameters", len(set(language.wide_functions()) - set(excused)), 0
    yield "  listed in parameters.txt with a reason", len(excused), len(excused)


def size_figures():
    yield "words of the dialect", sum(dialect.counts().values()), 220
    yield "lines of C", sum(s.lines for s in c_source.sources()), 161000
    yield "lines of TypeScript", sum(tree.lines(tree.read(path)) for path in c_source.scripts()), 17500
    for name, aim in ("README.md", 120), ("ARCHITECTURE.md", 200), ("NEWS.md", 110):
        yield f"lines of {name}", tree.read(name).count("\n"), aim


def main():
    """A goal below zero is a minimum; the others are maximums."""
    print(f"{'':45}{'ours':>10}{'aim':>10}")
    for name, ours, aim in (*name_figures(), *piece_figures(), *size_figures()):
        missed = ours < -aim if aim < 0 else ours > aim
        print(f"{name:45}{ours:>10,}{abs(aim):>10,}{'  missed' if missed else ''}")


main()
