# SPDX-License-Identifier: Apache-2.0
"""Words that plain English avoids (dialect_words.txt) stay within the budget of each file (dialect_budget.txt; a
file that is not listed has none). Tests and NEWS.md are not checked.

    dialect.py [--lower]    --lower reduces each budget to the count of the file

A count below its budget passes, so that two changes can be merged in any order; the lint prints how much can be
lowered."""
import os
import re
import sys

import tree
from table import Table

ENDS = (".c", ".h", ".cu", ".cuh", ".ts", ".tsx", ".py", ".md", ".def", ".sh", ".sql")
PYTHON_NONE = re.compile(r"\bis None\b")


def pattern():
    return re.compile(rf"\b({'|'.join(Table('dialect_words.txt').entries)})\b", re.I)


def texts():
    """Everything that a reader of the product may read, by path."""
    below = [path for path in tree.files(*ENDS) if not path.startswith("tests/")]
    top = [name for name in os.listdir(tree.SRC) if name.endswith(".md") and name != "NEWS.md"]
    return sorted(below + top)


def counts():
    """{path: occurrences}, without the files that have none."""
    words = pattern()
    found = {path: sum(1 for _ in words.finditer(PYTHON_NONE.sub("", tree.read(path)))) for path in texts()}
    return {path: count for path, count in found.items() if count}


def show(path, words):
    for at, line in enumerate(tree.read(path).split("\n"), 1):
        for word in words.finditer(line):
            print(f"    {path}:{at}: {word[0]}")


def main():
    table, found = Table("dialect_budget.txt"), counts()
    budgets = table.numbers()
    if "--lower" in sys.argv:
        table.write({path: min(budgets[path], found[path]) for path in budgets if path in found})
        return
    over = {path: count for path, count in found.items() if count > budgets.get(path, 0)}
    for path, count in over.items():
        print(f"{path}: {count} words of the dialect, {budgets.get(path, 0)} at most: rephrase")
        show(path, pattern())
    spare = sum(max(budget - found.get(path, 0), 0) for path, budget in budgets.items())
    verdict = tree.Verdict("dialect")
    verdict.rule("words", len(over))
    verdict.end(f"{sum(found.values())} words" + (f", {spare} below the budget: dialect.py --lower" if spare else ""))


if __name__ == "__main__":
    main()
