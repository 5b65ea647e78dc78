"""What a long benchmark has measured, kept in a file, so that it can be made in parts."""
import json
import os
import sys
import time
import others


class Over(Exception):
    """No time is left."""


class Results:
    """Rows by what they are of. path: the file, a line a row, or None; what stands there is not measured again."""

    def __init__(self, path, minutes):
        self.path, self.until, self.rows = path, time.monotonic() + 60 * minutes, {}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                self.rows = dict(json.loads(line) for line in f if line.endswith("\n"))  # not what it was ended in the middle of

    def get(self, key, make):
        """The row, measured by make() where there is none yet. Raises Over once the minutes have passed."""
        if key not in self.rows:
            if time.monotonic() > self.until:
                raise Over
            self.rows[key] = make()
            print("%s: %s" % (key, json.dumps(self.rows[key])), file=sys.stderr, flush=True)
            if self.path:
                with open(self.path, "a", encoding="utf-8") as f:
                    f.write(json.dumps([key, self.rows[key]]) + "\n")
        return self.rows[key]

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
