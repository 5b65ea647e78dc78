# SPDX-License-Identifier: Apache-2.0
"""Runs one command of dptrack and checks its exit code and output."""
import os
import subprocess
import lib


def run(*args, columns=None):
    env = lib.environment_of(args)
    if columns:
        env = {**(os.environ if env is None else env), "COLUMNS": str(columns)}
    return subprocess.run([lib.PROGRAM, *args], capture_output=True, text=True, timeout=60, env=env)


def good(*args):
    r = run(*args)
    lib.equal((r.returncode, r.stderr), (0, ""), " ".join(args))
    return r.stdout


def bad(words, *args, code=2):
    r = run(*args)
    lib.equal((r.returncode, r.stdout, r.stderr.count("\n")), (code, "", 1), f"{' '.join(args)}: {r.stderr!r}")
    for word in words:
        lib.check(word in r.stderr, f"{' '.join(args)}: {word!r} is not in {r.stderr!r}")
