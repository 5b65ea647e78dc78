#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command in the section "A training day" of docs/tutorial.md runs, on a small data set in place of
Fashion-MNIST, and has the results that the text describes."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

SRC = os.path.abspath(os.environ.get("srcdir", "."))
BUILD = os.path.abspath(os.environ.get("builddir", "build"))
sys.path.insert(0, os.path.join(SRC, "tests", "train"))
import helper  # noqa: E402
import readme  # noqa: E402


def small(script, data, other):
    """Substitutes smaller data and a death at a known step, and nothing else."""
    return readme.replaced(script, (r"^DATA=.*$", "DATA=" + data), (r"^OTHER=.*$", "OTHER=" + other),
                           (r"^timeout -s KILL 60 dptrain ", "DPTRAIN_TEST_DIE=launcher:5 %s " % helper.HOOKED),
                           (r"--save-steps \d+", "--save-steps 2"), (r"--epochs 4", "--max-steps 5"))


def without_torch(script):
    """Reads the export with PyTorch where it is installed; removes that command otherwise."""
    if subprocess.run(["python3", "-c", "import torch, safetensors"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        return script
    print("PyTorch and safetensors are not installed: the export is not read with them")
    return re.sub(r"^python3 -c .*$", ":", script, flags=re.M)


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-tour-") as tmp:
        data, other = os.path.join(tmp, "data"), os.path.join(tmp, "other")
        os.mkdir(data)
        os.mkdir(other)
        shutil.copy(os.path.join(SRC, "README.md"), tmp)
        os.symlink(os.path.join(SRC, "docs"), os.path.join(tmp, "docs"))
        helper.make_set(data, 512, 64)
        helper.make_set(other, 256, 64, classes=5)
        script = without_torch(small(readme.commands("docs/tutorial.md", "\n## A training day\n", "\n## "), data, other))
        p = subprocess.run(["bash", "-e"], input=script, cwd=tmp, env=helper.environment({"PATH": BUILD + ":" + os.environ["PATH"]}), timeout=280, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, universal_newlines=True, errors="replace")
        assert p.returncode == 0, "exit %d\n%s\n%s" % (p.returncode, script, p.stdout)
        runs = glob.glob(os.path.join(tmp, "runs", "tour", "*"))
        names = sorted(re.sub("-[0-9a-f]{8}$", "", os.path.basename(r)) for r in runs)
        assert names == ["day", "shards", "text", "tuned"], names
        assert len(glob.glob(os.path.join(tmp, "runs", "tour", "day-*", "events*"))) >= 2, "the run was continued"
        for run in runs:
            assert os.path.exists(os.path.join(run, "model.safetensors")), run
        assert "evaluation of 64 samples" in p.stdout and "The run " in p.stdout, p.stdout
    print("tour: %d commands" % len([c for c in script.splitlines() if c and not c.startswith((" ", "#"))]))


if __name__ == "__main__":
    try:
        main()
    except AssertionError as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
