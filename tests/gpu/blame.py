# SPDX-License-Identifier: Apache-2.0
"""A step with a non-finite loss on a device is detected one step late and reported with its own number; the step
started after it is not recorded. A repeat, node by node, names the node, rank and sample, also with several
micro-batches."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from device import ENV, REAL
from helper import Folder, check, dptrain, finish, read_run, skip
from nonfinite import MADE, NET, batch, spoil_weights

WHERE = re.compile(r"the loss is (?:nan|infinite) at step 1, in the samples of rank 0 of batch 1 .*In a repeat of the step, (.*?)\. Try a lower")
LATER = re.compile(r"(?:at step (\d+), in the samples|the last of them step (\d+)).*In a repeat of the step, (.*?)\. Try a lower")
GPT = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 16, "--block-size", 8, "--vocab-size", 32, "--synthetic",
       "--seq-len", 8, "-b", 4, "--opt", "sgd", "--lr", 1e6, "--lr-scheduler", "constant", "--warmup-steps", 0, "--max-steps", 100]


def cuda(folder, *flags):
    return dptrain(*flags, "--backend", "cuda", "--runs-dir", folder, env=ENV)


def named(about, want, *flags):
    """A bad first step: its origin, in the words that tests/train/nonfinite.py expects of the cpu backend."""
    with Folder() as tmp:
        p = cuda(tmp, *NET, *flags)
    found = WHERE.search(p.stderr)
    check(p.returncode == 1 and found and re.search(want, found[1]), "%s: exit %d, %s wanted: %s" % (about, p.returncode, want, p.stderr[-800:]))


def later():
    """Weights explode after some good steps, in the loss or in gradients: the reported step is the last recorded
    one."""
    with Folder() as tmp:
        p = cuda(tmp, *GPT)
        found = LATER.search(p.stderr)
        if not check(p.returncode == 1 and found, "a later step: exit %d: %s" % (p.returncode, p.stderr[-800:])):
            return
        recorded = sorted(read_run(tmp)["series"][("train/loss", -1)])
    step = int(found[1] or found[2])
    check(step > 1 and recorded == list(range(1, step + 1)), "a later step: step %d is named, %s are recorded" % (step, recorded))
    check(" on rank 0" in found[3], "a later step: no origin is named: %s" % found[3])


def main():
    if "fp64" not in next((line for line in dptrain("backends", env=ENV).stdout.splitlines() if line.startswith("cuda")), ""):
        skip("there is no GPU" if REAL else "the fake device was not built (no CUDA toolkit)")
    with Folder() as tmp:
        spoilt = batch(os.path.join(tmp, "spoilt.safetensors"), 5)
        clean, weights = batch(os.path.join(tmp, "clean.safetensors")), os.path.join(tmp, "weights.safetensors")
        named("a sample", MADE + r"rank 0, in sample 5 of its batch \(number 5 of the set\)", *spoilt)
        named("a sample of a later micro-batch", MADE + r"rank 0, in sample 1 of micro-batch", *spoilt, "--grad-accum-steps", 2)
        p = cuda(tmp, *NET, *clean, "--save-weights", weights)
        check(p.returncode == 0, "a clean run: %s" % p.stderr)
        spoil_weights(weights, "layer2.1.conv1.weight")
        named("a weight", r"layer2\.1\.conv1\.weight holds an infinite number on rank 0, which layer2\.1\.conv1\S* \(\w+, forward\) "
              r"reads first", *clean, "--init-from", weights)
    later()
    finish("blame")


main()
