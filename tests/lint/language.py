# SPDX-License-Identifier: Apache-2.0
"""Names, parameters, comments and the size of rooms, in the product's C source.

    language.py [--lower]    --lower removes unneeded entries from the tables and never adds any

Within a program the name of a static function, the tag of a struct and the base name of a .c file are used once. Two
definitions of a static function in one file are alternatives of an #if. The name of a static function has two words,
or it is a macro in capitals. A function has at most five parameters; a static function of more than 20 lines has a
comment above. A room has a line budget. names.txt and parameters.txt list the exceptions; an unneeded entry fails,
too."""
import sys

import c_source
import tree
from table import Table

PARAMETERS = 5
UNCOMMENTED_LINES = 20
ROUND_TO = 50


def static_names(source):
    return [(f.name, f.place) for f in source.functions if f.static and f.named]


def struct_tags(source):
    return [(tag, source.path) for tag in source.tags]


def file_names(source):
    return [(c_source.base_name(source), source.path)] if source.path.endswith(".c") else []


def shared_names(names_of):
    """{name: places} of names that two files of one program define; names_of gives the (name, place) pairs of a
    file."""
    shared = {}
    for folders in c_source.PROGRAMS.values():
        places = {}
        for source in c_source.sources():
            if source.path.startswith(folders):
                for name, place in names_of(source):
                    places.setdefault(name, {})[source.path] = place
        shared.update({name: sorted(by_file.values()) for name, by_file in places.items() if len(by_file) > 1})
    return shared


def short_names():
    """{name: places} of static functions named with one word in lower case."""
    short = {}
    for function in c_source.functions():
        if function.static and function.named and "_" not in function.name and not function.name.isupper():
            short.setdefault(function.name, []).append(function.place)
    return short


def wide_functions():
    """{name: places} of functions with too many parameters; the file counts as name for those whose name is built by a
    macro."""
    wide = {}
    for function in c_source.functions():
        if function.parameters > PARAMETERS:
            wide.setdefault(function.name if function.named else function.path, []).append(function.place)
    return wide


def uncommented():
    return [f for f in c_source.functions() if f.static and f.lines > UNCOMMENTED_LINES and not f.commented]


class Exceptions:
    """A table of entries "KIND NAME: reason", or "NAME: reason" without kinds, and which of them were needed."""

    def __init__(self, name):
        self.table, self.needed = Table(name), set()

    def check(self, found, text, kind=""):
        """Prints each name found that is not listed; returns their number."""
        bad = 0
        for name, places in sorted(found.items()):
            key = f"{kind} {name}".strip()
            self.needed.add(key)
            if key not in self.table.entries:
                print(f"{places[-1]}: {name}: {text}" + (f" ({', '.join(places)})" if len(places) > 1 else ""))
                bad += 1
        return bad

    def unexplained(self):
        bare = [key for key, reason in self.table.entries.items() if not reason]
        for key in bare:
            print(f"{self.table.path}: {key}: no reason: write it after the colon")
        return len(bare)

    def unneeded(self):
        unneeded = [key for key in self.table.entries if key not in self.needed]
        for key in unneeded:
            print(f"{self.table.path}: {key}: this entry is not needed: delete it")
        return len(unneeded)

    def lower(self):
        self.table.write({key: value for key, value in self.table.entries.items() if key in self.needed})


def check_rooms(table):
    """Prints each room that exceeds its budget, has none, or does not exist; returns their number."""
    lines, budgets, bad = c_source.room_lines(), table.numbers(), 0
    for room in sorted({*lines, *budgets}):
        if room not in lines:
            print(f"{table.path}: {room}: there is no such room: delete the entry")
        elif room not in budgets:
            print(f"{room}: no line budget: add it to {table.path}")
        elif lines[room] > budgets[room]:
            print(f"{room}: {lines[room]} lines, {budgets[room]} at most: delete some, or raise the budget in {table.path} and say why")
        else:
            continue
        bad += 1
    return bad


def lower_rooms(table):
    lines = c_source.room_lines()
    table.write({room: min(budget, -(-lines[room] // ROUND_TO) * ROUND_TO)
                 for room, budget in table.numbers().items() if room in lines})


def check_comments():
    bare = uncommented()
    for function in bare:
        print(f"{function.place}: {function.name}: {function.lines} lines without a comment above: say in a sentence what it does")
    return len(bare)


def main():
    names, parameters, rooms = Exceptions("names.txt"), Exceptions("parameters.txt"), Table("room_lines.txt")
    verdict = tree.Verdict("language")
    once = "this {} is used by another file of the program: rename it"
    verdict.rule("static-names", names.check(shared_names(static_names), once.format("static name"), "static"))
    verdict.rule("struct-tags", names.check(shared_names(struct_tags), once.format("struct tag"), "tag"))
    verdict.rule("file-names", names.check(shared_names(file_names), once.format("file name"), "file"))
    verdict.rule("two-words", names.check(short_names(), "a static function is named with two words", "word"))
    verdict.rule("parameters", parameters.check(wide_functions(), f"more than {PARAMETERS} parameters: pass a struct") + parameters.unexplained())
    verdict.rule("comments", check_comments())
    if "--lower" in sys.argv:
        names.lower()
        parameters.lower()
        lower_rooms(rooms)
        return
    verdict.rule("exceptions", names.unneeded() + parameters.unneeded())
    verdict.rule("room-lines", check_rooms(rooms))
    verdict.end(f"{len(c_source.functions())} functions in {len(c_source.sources())} files")


if __name__ == "__main__":
    main()
