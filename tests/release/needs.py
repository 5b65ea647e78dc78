#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each target that makes packages names all that it lacks in one line, before it works: on a machine with hardly any program."""
import os
import shutil
import subprocess
import sys
import tempfile

SRC = os.path.abspath(os.environ.get("srcdir", "."))
SHELL = ["sh", "dirname", "realpath", "id", "ls", "sort", "tr"]
WANTED = {"wheels": ["python3", "python3-venv", "dpkg-dev", "binutils", "tcl"],
          "deb": ["python3", "debhelper", "dh-python", "lintian"],
          "image": ["python3", "umoci", "run make deb"]}
WANTED["static"] = WANTED["wheels"]
WANTED["release"] = WANTED["wheels"] + WANTED["deb"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name in SHELL:
            os.symlink(shutil.which(name), f"{folder}/{name}")
        for target, wanted in WANTED.items():
            done = subprocess.run(["sh", os.path.join(SRC, "web", "deploy", "needs.sh"), target, folder], capture_output=True, text=True,
                                  env={"PATH": folder}, check=False)
            words = done.stderr.replace(";", " ").split()
            assert done.returncode == 1 and done.stderr.startswith(f"make {target}: missing ") and done.stderr.count("\n") == 1, done
            assert all(word in words or " " in word and word in done.stderr for word in wanted), (wanted, done.stderr)
            assert len(words) == len(set(words)) or target == "image", done.stderr
    with open(os.path.join(SRC, "web", "deploy", "local.mk"), encoding="utf-8") as f:
        text = f.read()
    assert text.count("web/deploy/needs.sh $@ $(builddir)\n") == 2, "make asks needs.sh before it works"
    print(f"needs: {', '.join(WANTED)}")


if __name__ == "__main__":
    sys.exit(main())
