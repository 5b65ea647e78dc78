#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A device is asked to end in a step that takes long: the step is given up before its next run, the step before it, whose results
are read late, is recorded and saved, and the run that continues ends with the bits of an undisturbed one. On the fake device; with
DPTRAIN_GPU=1 on the machine's GPU."""
import os
import re
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "launch")]
from device import ENV, REAL
from helper import Folder, check, dptrain, finish, read_run, skip, start
from slow_steps import checkpoints, read_until, result

SLOW = {"DPTRAIN_TEST_SLOW_RANK": "0:5500"}  # each step rests before its first micro-batch
GPT = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 16, "--block-size", 8, "--vocab-size", 32, "--synthetic",
       "--seq-len", 8, "-b", 4, "--backend", "cuda", "--deterministic", "--print-freq", 1, "--watch-steps", 0, "--system-interval", 0,
       "--report-to", "none", "--run-name", "slow", "--max-steps", 5]


def given_up(name, flags, runs):
    """Returns the number of the step that was given up."""
    p = start(*GPT, *flags, "--runs-dir", runs, env={**ENV, **SLOW})
    said = read_until(name, p, "step 1/5")
    p.send_signal(signal.SIGTERM)
    out, errors = p.communicate(timeout=100)
    left = re.search(r"step (\d+) is given up; the checkpoint is of the step before it", said + out + errors)
    check(p.returncode == 75 and left, "%s: exit %d: %s" % (name, p.returncode, said + out + errors))
    return int(left[1]) if left else 0


def continued(tmp, name, *flags):
    runs, whole = os.path.join(tmp, name), os.path.join(tmp, name + ", whole")
    left = given_up(name, flags, runs)
    check(1 < left < 5 and checkpoints(runs) == ["step-%d" % (left - 1)], "%s: step %d, checkpoints: %s" % (name, left, checkpoints(runs)))
    recorded = sorted(read_run(runs)["series"][("train/loss", -1)])
    check(recorded == list(range(1, left)), "%s: steps %s are recorded" % (name, recorded))
    for folder, more in ((runs, ["--resume", "auto"]), (whole, [])):
        p = dptrain(*GPT, *flags, "--runs-dir", folder, *more, env=ENV)
        check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr))
    check(result(runs) == result(whole), "%s: differs from an undisturbed run: %s, %s" % (name, result(runs)[0], result(whole)[0]))


def main():
    if "fp64" not in next((line for line in dptrain("backends", env=ENV).stdout.splitlines() if line.startswith("cuda")), ""):
        skip("there is no GPU" if REAL else "the fake device was not built (no CUDA toolkit)")
    with Folder() as tmp:
        continued(tmp, "one run a step")
        continued(tmp, "micro-batches", "--grad-accum-steps", 3)
    finish("stopped_step")


main()
