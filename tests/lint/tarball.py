#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each file below the top-level folders is in the tarball: named in a local.mk, or below a folder that is. Reads make's
own list, so that what distcheck would find late is found early."""
import os
import subprocess
import sys

import tree


def distributed():
    """Files and folders that `make dist` takes, by path from the top."""
    try:
        subprocess.run(["make", "-s", "-C", tree.BUILD, "Makefile"], stdout=subprocess.DEVNULL, check=True)
        top = subprocess.run(["make", "-s", "-C", tree.BUILD, "print-tests", "NAMES=srcdir"], capture_output=True, text=True, check=True)
        made = subprocess.run(["make", "-s", "-C", tree.BUILD, "print-tests", "NAMES=DISTFILES"], capture_output=True, text=True, check=True)
    except subprocess.CalledProcessError:
        print(f"tarball: nothing is built in {tree.BUILD}")
        sys.exit(77)
    return {os.path.normpath(word.removeprefix(top.stdout.strip() + "/")) for word in made.stdout.split()}


def main():
    verdict, taken, bad = tree.Verdict("tarball"), distributed(), 0
    paths = tree.files("")
    for path in paths:
        parts = path.split("/")
        if not any("/".join(parts[:n]) in taken for n in range(1, len(parts) + 1)):
            bad += 1
            print(f"{path}: not in the tarball: add it to its folder's local.mk")
    verdict.rule("files", bad)
    verdict.end(f"{len(paths)} files")


main()
