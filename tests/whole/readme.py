# SPDX-License-Identifier: Apache-2.0
"""Extracts the commands of the documents, unchanged."""
import os
import re

SRC = os.path.abspath(os.environ.get("srcdir", "."))


def commands(path, start, end):
    """The lines of the ```sh blocks between two texts of a page, in order."""
    with open(os.path.join(SRC, path), encoding="utf-8") as f:
        part = f.read().split(start)[1].split(end)[0]
    return "".join(re.findall(r"^```sh\n(.*?)^```$", part, flags=re.M | re.S))


def replaced(script, *changes):
    """Replaces each (pattern, text); each pattern must match exactly once."""
    for old, new in changes:
        script, n = re.subn(old, lambda _, new=new: new, script, flags=re.M)
        assert n == 1, f"{old!r} matches {n} times"
    return script
