# SPDX-License-Identifier: Apache-2.0
"""Results of a long benchmark, saved in a file, so that it can run in parts.

A row disturbed by other programs is measured --tries times and then marked, so that a part ends on a busy machine,
too. A later part measures each marked row once more and keeps the calmer result, so that the parts come to an end."""
import json
import os
import sys
import time
import others


class Over(Exception):
    """The time is over."""


class Results:
    """Rows by key. path: the file, one line per row, or None; its rows are not measured again. words: formats a
    finished row for printing (default: JSON)."""

    def __init__(self, path, minutes, words=json.dumps):
        self.path, self.until, self.rows, self.words = path, time.monotonic() + 60 * minutes, {}, words
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                self.rows = dict(json.loads(line) for line in f if line.endswith("\n"))  # without an incomplete last line
        self.loud = {key for key, row in self.rows.items() if not others.calm(row) and not row.get("again")}

    def get(self, key, make):
        """Returns the row, measured by make() if it is missing. Raises Over once the minutes have passed."""
        late = time.monotonic() > self.until
        if key not in self.rows:
            if late:
                raise Over
            self.keep(key, make())
        elif key in self.loud and not late:
            self.loud.remove(key)
            row = make()
            self.keep(key, dict(min(row, self.rows[key], key=lambda r: r["others"]), again=True))
        return self.rows[key]

    def keep(self, key, row):
        self.rows[key] = row
        print("%s: %s%s" % (key, self.words(row), "" if others.calm(row) else " (others on the cores)"), file=sys.stderr, flush=True)
        if self.path:
            with open(self.path, "a", encoding="utf-8") as f:
                f.write(json.dumps([key, row]) + "\n")

    def calm(self, key, make, tries=3):
        """Like get, for a dict that is measured again while others use the cores; their share is stored as "others"."""
        return self.get(key, lambda: others.marked(make, tries))

    def each(self, keys, make):
        """Yields (key, row) of each, while time is left; prints a line when it is over."""
        for k, key in enumerate(keys):
            try:
                yield key, self.get(key, lambda key=key: make(key))
            except Over:
                print("%d of %d are measured; run the same command to continue" % (k, len(keys)), flush=True)
                return


def add_arguments(p, minutes=1e9):
    """Adds --results FILE and --minutes M of a long command; without a file it runs in one go."""
    p.add_argument("--results", metavar="FILE", help="file for the rows; the same command continues")
    p.add_argument("--minutes", type=float, default=minutes, help="start no row after this time")


def of_arguments(o):
    return Results(o.results, o.minutes)


def options(p):
    """Adds these, --tries and --json."""
    add_arguments(p)
    p.add_argument("--tries", type=int, default=3, help="measurements of a row disturbed by other programs")
    p.add_argument("--json", action="store_true")
