# SPDX-License-Identifier: Apache-2.0
"""Shared by tests of jobs that are asked to end in a step that takes long: steps are slowed down by DPTRAIN_TEST_PACE, so they take
their time however busy the machine is."""
import os
import time

from helper import check, read_run

PACE = {"DPTRAIN_TEST_PACE": "6e7"}  # a step of about 8 s, of many nodes
COMMON = ["--backend", "ref", "--synthetic", "--model", "resnet20", "--classes", 10, "--image-size", 32, "-b", 2, "--max-steps", 3,
          "--print-freq", 1, "--watch-steps", 0, "--system-interval", 0, "--report-to", "none", "--run-name", "slow"]


def checkpoints(runs):
    return sorted(name for _, folders, _ in os.walk(runs) for name in folders if name.startswith("step-"))


def read_until(name, p, after):
    """Returns what the process prints up to a line with `after`, and gives the next step time to begin."""
    said = ""
    for line in p.stdout:
        said += line
        if after in line:
            break
    check(after in said, "%s: never printed %r: %s" % (name, after, said))
    time.sleep(1)
    return said


def result(runs):
    """The losses of the run, exactly, and its weights."""
    run = read_run(runs)
    with open(os.path.join(run["folder"], "model.safetensors"), "rb") as f:
        weights = f.read()
    return {s: repr(v) for s, v in run["series"][("train/loss", -1)].items()}, weights
