# SPDX-License-Identifier: Apache-2.0
"""Programs of other projects for comparison: each set in a virtual environment under the build folder, installed once
from PyPI."""
import os
import shutil
import subprocess
import sys


class Unavailable(Exception):
    """The reason, in one line, why it cannot be installed."""


def python(build, name, packages):
    """Returns the Python of build/venv/NAME with these packages and versions; recreated if others are requested."""
    folder = os.path.abspath(os.path.join(build, "venv", name))
    program, mark, wanted = os.path.join(folder, "bin", "python"), os.path.join(folder, "complete"), " ".join(packages) + "\n"
    if os.path.exists(mark):
        with open(mark, encoding="ascii") as f:
            if f.read() == wanted:
                return program
    shutil.rmtree(folder, ignore_errors=True)
    for command in ([sys.executable, "-m", "venv", folder],
                    [program, "-m", "pip", "install", "-q", "--timeout", "20", "--retries", "1", *packages]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            said = (done.stdout.strip().splitlines() or ["no reason given"])[-1]
            raise Unavailable("%s cannot be installed: %s" % (packages[0], said))
    with open(mark, "w", encoding="ascii") as f:
        f.write(wanted)
    return program
