"""README.md's own commands, as they stand there."""
import os
import re

SRC = os.path.abspath(os.environ.get("srcdir", "."))


def commands(start, end):
    """The indented lines between two texts, one after the other."""
    with open(os.path.join(SRC, "README.md"), encoding="utf-8") as f:
        part = f.read().split(start)[1].split(end)[0]
    return "".join(line[4:] + "\n" for line in part.splitlines() if line.startswith("    "))


def replaced(script, *changes):
    """Each (pattern, text) once; nothing else."""
    for old, new in changes:
        script, n = re.subn(old, lambda _, new=new: new, script, flags=re.M)
        assert n == 1, f"README.md: {old!r} stands there {n} times"
    return script
