# SPDX-License-Identifier: Apache-2.0
"""What every package says of the project: version, time of the commit, texts. The same commit gives the same answers."""
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
LICENCE = "Apache-2.0"
SUMMARIES = {
    "dptrack": "Experiment tracking server with its page, command line and Python client",
    "dptrack-trainer": "Data-parallel trainer of ResNets and GPTs for CPUs and NVIDIA GPUs",
}


class Failure(Exception):
    """One line for the user."""


def text(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def init_arguments():
    """The arguments of AC_INIT: name, version and, where they are known, address for reports, tar name, URL."""
    return re.findall(r"\[([^]]*)\]", re.search(r"AC_INIT\((.*)\)", text("configure.ac"))[1])


def version():
    return init_arguments()[1]


def url():
    """The project's address, or an empty text where configure.ac names none."""
    return (init_arguments() + [""] * 5)[4]


def epoch():
    """Seconds: $SOURCE_DATE_EPOCH, else the time of the commit, else that of NEWS.md (a tarball keeps it)."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    try:
        git = subprocess.run(["git", "-C", TOP, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=True)
        return int(git.stdout)
    except (OSError, subprocess.CalledProcessError, ValueError):  # no git, or no checkout
        return int(os.stat(os.path.join(TOP, "NEWS.md")).st_mtime)


def run(words, cwd=None, env=None):
    """Runs a command silently; Failure has its last lines."""
    done = subprocess.run(words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if done.returncode:
        raise Failure("%s: exit status %d: %s" % (" ".join(words[:4]), done.returncode, "\n".join(done.stdout.splitlines()[-15:])))
    return done.stdout


def owner(path):
    """The Debian package of a file; its list may have the path from before /lib became a link to /usr/lib."""
    path = os.path.realpath(path)
    for listed in (path, path.removeprefix("/usr")):
        found = subprocess.run(["dpkg", "-S", listed], capture_output=True, text=True, check=False).stdout
        if found:
            return found.partition(":")[0]
    raise Failure(f"no package owns {path}, so its licence is unknown")
