# SPDX-License-Identifier: Apache-2.0
"""Shared by tests of jobs on several machines: a small model, and its losses on one machine."""
import subprocess
import time

from helper import Folder, check, dptrain, read_run

GPT = ["--synthetic", "--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--seq-len", 16, "--vocab-size", 64,
       "--dropout", 0.1, "-b", 2, "--max-steps", 3, "--precision", "fp64", "--threads", 1, "--clip-grad-norm", 1]


def losses(folder):
    series = read_run(folder)["series"]
    return [list(series[key, -1].values() if (key, -1) in series else series[key, 0].values()) for key in ("train/loss", "train/grad_norm")]


def same(name, folder, reference):
    found = losses(folder)
    close = all(len(a) == len(b) == 3 and all(abs(x - y) <= 1e-9 * abs(y) for x, y in zip(a, b)) for a, b in zip(found, reference))
    check(close, "%s: losses and norms as on one machine: %s, not %s" % (name, found, reference))


def ended(name, processes, seconds=100):
    """Waits for the processes; returns exit codes and outputs."""
    deadline = time.monotonic() + seconds
    texts = []
    for p in processes:
        try:
            texts.append("".join(p.communicate(timeout=max(0.1, deadline - time.monotonic()))))
        except subprocess.TimeoutExpired:
            check(False, "%s: still running after %g s" % (name, seconds))
            p.kill()
            texts.append("".join(p.communicate()))
    return [p.returncode for p in processes], texts


def alone():
    """The losses and norms of four ranks on one machine."""
    with Folder() as runs:
        p = dptrain(*GPT, "--nproc-per-node", 4, "--runs-dir", runs)
        check(p.returncode == 0, "one machine: " + p.stderr)
        return losses(runs)
