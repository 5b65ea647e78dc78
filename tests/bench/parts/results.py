"""What a long benchmark has measured, kept in a file, so that it can be made in parts.

Beside others a row is made --tries times and then marked, so that a part ends on a busy machine, too. A later part that finds a
marked row in the file makes it again, once for all parts, so that they come to an end, and keeps the calmer one."""
import json
import os
import sys
import time
import others


class Over(Exception):
    """No time is left."""


class Results:
    """Rows by what they are of. path: the file, a line a row, or None; what stands there is not measured again. words: what is said
    of a row once it is made; else it is printed as it is."""

    def __init__(self, path, minutes, words=json.dumps):
        self.path, self.until, self.rows, self.words = path, time.monotonic() + 60 * minutes, {}, words
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                self.rows = dict(json.loads(line) for line in f if line.endswith("\n"))  # not what it was ended in the middle of
        self.loud = {key for key, row in self.rows.items() if not others.calm(row) and not row.get("again")}

    def get(self, key, make):
        """The row, measured by make() where there is none yet. Raises Over once the minutes have passed."""
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
        """The same of a dict, made again while others are on the cores: how much they were stands in it as "others"."""
        return self.get(key, lambda: others.marked(make, tries))

    def each(self, keys, make):
        """(key, row) of each, as far as there is time; says so where there is none left."""
        for k, key in enumerate(keys):
            try:
                yield key, self.get(key, lambda key=key: make(key))
            except Over:
                print("%d of %d are measured; the same command goes on" % (k, len(keys)), flush=True)
                return


def add_arguments(p, minutes=1e9):
    """--results FILE and --minutes M of a long command; without a file it is made in one go."""
    p.add_argument("--results", metavar="FILE", help="where rows are kept: the same command goes on")
    p.add_argument("--minutes", type=float, default=minutes, help="no row begins later")


def of_arguments(o):
    return Results(o.results, o.minutes)


def options(p):
    """The same, --tries and --json."""
    add_arguments(p)
    p.add_argument("--tries", type=int, default=3, help="how often what others disturb is made")
    p.add_argument("--json", action="store_true")
