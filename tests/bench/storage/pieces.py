# SPDX-License-Identifier: Apache-2.0
"""A benchmark that runs in parts: results are saved in a file, from which a later call continues."""
import json
import os
import time


class Pieces:
    def __init__(self, path, minutes, empty):
        """path: the file, or None; minutes: limit of this call; empty: the content before the first."""
        self.path, self.end, self.taken = path, time.monotonic() + 60 * minutes, empty
        if path and os.path.exists(path):
            with open(path, encoding="ascii") as f:
                self.taken = json.load(f)

    def over(self):
        return time.monotonic() >= self.end

    def keep(self):
        if not self.path:
            return
        with open(self.path + ".new", "w", encoding="ascii") as f:
            json.dump(self.taken, f)
        os.replace(self.path + ".new", self.path)
