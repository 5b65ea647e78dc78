#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes of torchvision's reference scripts: mixed, erased and augmented images give the same losses on 1, 2 and 3 ranks;
--model-ema-steps skips updates; --ra-sampler ends an epoch as RASampler does; contradictions are refused. What each of them
computes is compared with torchvision in augment_test.c and tests/ops."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "train"))
from helper import Folder, check, dptrain, finish, make_set, read_run, safetensors

NET = ["--model", "resnet20", "--backend", "ref", "--precision", "fp64", "--system-interval", 0]
RECIPES = [
    ["--mixup-alpha", 0.4],
    ["--cutmix-alpha", 1, "--label-smoothing", 0.1],
    ["--mixup-alpha", 0.2, "--cutmix-alpha", 1, "--auto-augment", "ta_wide", "--random-erase", 0.5, "--augment", "crop,flip"],
    ["--ra-sampler", "--ra-reps", 2, "--auto-augment", "ra"],
]


def run(tmp, name, *flags):
    """The series of a run."""
    runs = os.path.join(tmp, name)
    p = dptrain("--data-path", os.path.join(tmp, "data"), *NET, "--runs-dir", runs, *flags)
    check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr))
    return read_run(runs)["series"] if p.returncode == 0 else {}


def same_on_all_ranks(tmp):
    seen = []
    for k, recipe in enumerate([[], *RECIPES]):
        losses = []
        for ranks in (1, 2, 3):
            series = run(tmp, "ranks-%d-%d" % (k, ranks), *recipe, "--global-batch-size", 8, "--max-steps", 3, "--sync-bn",
                         "--zero-init-residual", "--lr", 0.02, "--nproc-per-node", ranks)
            losses.append([v for _, v in sorted(series.get(("train/loss", -1), {}).items())])
        for many in losses[1:]:
            check(len(many) == 3 and all(abs(a - b) <= 1e-9 * abs(a) for a, b in zip(losses[0], many)),
                  "%s: losses %s, on one rank %s" % (recipe, many, losses[0]))
        check(losses[0] not in seen, "%s changes the losses" % recipe)
        seen.append(losses[0])


def averages(tmp):
    """With decay 1/2. An epoch has three steps: --model-ema-steps 2 updates in its first and third one, 100 in its first one."""
    common = ["--global-batch-size", 8, "--lr", 0.02, "--lr-scheduler", "constant"]
    weights = {}
    for steps in (1, 3, 4):
        path = os.path.join(tmp, "after-%d.safetensors" % steps)
        run(tmp, "weights-%d" % steps, *common, "--max-steps", steps, "--save-weights", path)
        weights[steps] = safetensors(path)
    for every, steps, updates in ((100, 3, (1, 1)), (100, 4, (1, 4)), (2, 3, (1, 3))):
        name = "every-%d-%d" % (every, steps)
        path = os.path.join(tmp, name + ".safetensors")
        run(tmp, name, *common, "--max-steps", steps, "--save-weights", path, "--model-ema", "--model-ema-decay", 0.5, "--model-ema-steps", every)
        got = safetensors(os.path.join(tmp, name + "-ema.safetensors"))
        for tensor in ("conv1.weight", "fc.weight", "fc.bias", "bn1.running_mean"):
            a, b = (weights[k][tensor][1] for k in updates)
            check(all(abs(v - (x + y) / 2) <= 1e-6 * (1 + abs(v)) for v, x, y in zip(got[tensor][1], a, b)), "%s: %s" % (name, tensor))


def repeated(tmp):
    """300 images: an epoch has 256 samples."""
    make_set(os.path.join(tmp, "data"), 300, 6)
    series = run(tmp, "repeated", "--global-batch-size", 64, "--epochs", 1, "--ra-sampler")
    check(sorted(series.get(("train/loss", -1), {})) == [1, 2, 3, 4], "steps of an epoch: %s" % sorted(series.get(("train/loss", -1), {})))


def refused(tmp):
    data = os.path.join(tmp, "data")
    for flags, want in ((["--ra-reps", 2], "--ra-reps: needs --ra-sampler"),
                        (["--model-ema-steps", 2], "--model-ema-steps: needs --model-ema"),
                        (["--train-crop-size", 20], "has images of one size"),
                        (["--auto-augment", "aa"], "none ra ta_wide")):
        p = dptrain("--data-path", data, *NET, "--max-steps", 1, "--runs-dir", os.path.join(tmp, "refused"), *flags)
        check(p.returncode == 2 and want in p.stderr, "%s: exit %d: %s" % (flags, p.returncode, p.stderr))


def main():
    with Folder() as tmp:
        os.mkdir(os.path.join(tmp, "data"))
        make_set(os.path.join(tmp, "data"), 24, 6)
        same_on_all_ranks(tmp)
        averages(tmp)
        refused(tmp)
        repeated(tmp)
    finish("recipes")


main()
