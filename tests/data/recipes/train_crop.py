#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--train-crop-size: training images of folders have this size, evaluation keeps that of --image-size."""
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "train"))
from helper import Folder, check, dptrain, finish, read_run

NET = ["--model", "resnet18", "--backend", "ref", "--precision", "fp64", "--system-interval", 0, "-b", 2, "--max-steps", 1]


def make_folder(folder):
    for split in ("train", "val"):
        for k, name in enumerate(("photo.jpg", "plain.jpg", "noise.png", "photo.png")):
            os.makedirs(os.path.join(folder, split, str(k % 2)), exist_ok=True)
            shutil.copy(os.path.join(HERE, "..", "pictures", name), os.path.join(folder, split, str(k % 2), name))


def loss(tmp, data, name, *flags):
    """Of the first step, or what --test-only prints."""
    runs = os.path.join(tmp, name)
    p = dptrain("--data-path", data, *NET, "--lr", 1e-9, "--runs-dir", runs, *flags)
    if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr)):
        return None
    if "--test-only" in flags:
        return re.search(r"loss ([0-9.]+)", p.stdout)[1]
    return read_run(runs)["series"][("train/loss", -1)][1]


def main():
    with Folder() as tmp:
        data = os.path.join(tmp, "data")
        make_folder(data)
        for name, more in (("training", []), ("evaluation", ["--test-only"])):
            small, large = (loss(tmp, data, name + str(side), "--image-size", side, *more) for side in (48, 64))
            both = loss(tmp, data, name + "both", "--image-size", 64, "--train-crop-size", 48, *more)
            same = loss(tmp, data, name + "same", "--image-size", 64, "--train-crop-size", 64, *more)
            check(small != large and same == large, "%s: %s at 48 pixels, %s at 64, %s at 64 twice" % (name, small, large, same))
            check(both == (large if more else small), "%s: %s at 48 and 64 pixels; %s at 48, %s at 64" % (name, both, small, large))
    finish("train_crop")


main()
