#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each file below the top-level folders is in the tarball: named in a local.mk, or below a folder that is. Reads make's
own list, so that what distcheck would find late is found early."""
import os
import subprocess
import sys

import tree

# Made by make dist, so that an unpacked tarball has it; copied by dist-docs.
HOOKED = ("web/ui/prebuilt", "docs/")


def ask_make(*words):
    """What make prints for a target; not a part of the make that runs this test."""
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(["make", "-s", "-C", tree.BUILD, *words], env=env, capture_output=True, text=True, check=True).stdout.strip()


def distributed():
    """Files and folders that `make dist` takes, by path from the top."""
    try:
        ask_make("Makefile")
        top, made = ask_make("print-tests", "NAMES=srcdir"), ask_make("print-tests", "NAMES=DISTFILES")
    except subprocess.CalledProcessError:
        print(f"tarball: nothing is built in {tree.BUILD}")
        sys.exit(77)
    return {os.path.normpath(word.removeprefix(top + "/")) for word in made.split()}


def main():
    verdict, taken, bad = tree.Verdict("tarball"), distributed(), 0
    paths = [path for path in tree.files("") if not path.startswith(HOOKED)]
    for path in paths:
        parts = path.split("/")
        if not any("/".join(parts[:n]) in taken for n in range(1, len(parts) + 1)):
            bad += 1
            print(f"{path}: not in the tarball: add it to its folder's local.mk")
    verdict.rule("files", bad)
    verdict.end(f"{len(paths)} files")


main()
