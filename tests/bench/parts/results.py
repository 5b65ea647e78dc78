"""What a long benchmark has measured, kept in a file, so that it can be made in parts."""
import json
import os
import sys
import time


class Over(Exception):
    """No time is left."""


class Results:
    """Rows by what they are of. path: the file, a line a row, or None; what stands there is not measured again."""

    def __init__(self, path, minutes):
        self.path, self.until, self.rows = path, time.monotonic() + 60 * minutes, {}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                self.rows = dict(json.loads(line) for line in f)

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
