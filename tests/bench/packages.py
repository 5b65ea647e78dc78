# SPDX-License-Identifier: Apache-2.0
"""Programs of other projects for comparison: each set in a virtual environment, installed once from PyPI below
$XDG_CACHE_HOME/dptrack-venv (~/.cache), for all build folders; BUILD/venv/NAME is a link to it."""
import contextlib
import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import time

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "dptrack-venv")
UNUSED_S = 30 * 86400


class Unavailable(Exception):
    """The reason, in one line, why it cannot be installed."""


@contextlib.contextmanager
def locked(folder):
    """Two builds may ask for one set at a time."""
    os.makedirs(CACHE, exist_ok=True)
    with open(folder + ".lock", "w", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def install(folder, packages):
    shutil.rmtree(folder, ignore_errors=True)
    program = os.path.join(folder, "bin", "python")
    for command in ([sys.executable, "-m", "venv", folder],
                    [program, "-m", "pip", "install", "-q", "--timeout", "20", "--retries", "1", *packages]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            said = (done.stdout.strip().splitlines() or ["no reason given"])[-1]
            raise Unavailable("%s cannot be installed: %s" % (packages[0], said))


def link(build, name, folder):
    place = os.path.join(os.path.abspath(build), "venv", name)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.islink(place):
        os.unlink(place)
    shutil.rmtree(place, ignore_errors=True)
    os.symlink(folder, place)


def python(build, name, packages):
    """Returns the Python of an environment with these packages and versions. Removes what was unused for 30 days."""
    wanted = sys.executable + " " + " ".join(packages)
    folder = os.path.join(CACHE, name + "-" + hashlib.sha256(wanted.encode()).hexdigest()[:8])
    mark = os.path.join(folder, "complete")
    with locked(folder):
        if not os.path.exists(mark):
            install(folder, packages)
        with open(mark, "w", encoding="ascii") as f:
            f.write(wanted + "\n")
        link(build, name, folder)
    for other in glob.glob(os.path.join(CACHE, "*", "complete")):
        if time.time() - os.path.getmtime(other) > UNUSED_S:
            shutil.rmtree(os.path.dirname(other), ignore_errors=True)
    return os.path.join(folder, "bin", "python")
