# SPDX-License-Identifier: Apache-2.0
"""--model-ema: averages with decay 0 evaluate like the weights themselves, on one rank and two; slow averages stay
where the first step put them; keeping averages changes nothing except the evaluation. In f64 on ref, losses and
averages equal those of PyTorch's AveragedModel (reference/make_averages.py), and the file with the averages is an
ordinary weights file."""
import json
import math
import os

import pattern
from helper import SOURCE, Folder, check, distance, dptrain, finish, make_set, read_run, safetensors

HERE = os.path.join(SOURCE, "tests", "train", "reference")
NETS = {
    "resnet20": ["--model", "resnet20", "--init-from", os.path.join(HERE, "weights.safetensors"), "--batch-from",
                 os.path.join(HERE, "batch.safetensors"), "--precision", "fp64"],
    "gpt": ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 3, "--n-embd", 24, "--block-size", 19, "--vocab-size", 61, "--init-from",
            os.path.join(HERE, "gpt-tied.safetensors"), "--batch-from", os.path.join(HERE, "gpt-batch.safetensors"), "--opt", "adamw",
            "--wd", 0.1],
}


def run(tmp, name, ranks, *flags):
    runs = os.path.join(tmp, name)
    p = dptrain("--data-path", tmp, "--model", "resnet20", "--backend", "ref", "--global-batch-size", 8, "--epochs", 1, "--threads", 1,
                "--lr", 0.02, "--nproc-per-node", ranks, "--runs-dir", runs, *flags)
    if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr)):
        return None, None
    series = read_run(runs)["series"]
    return series[("train/loss", -1)], series[("epoch/val_loss", -1)][1]


def as_recorded(name, want, decay):
    with Folder() as tmp:
        logits = [os.path.join(tmp, n) for n in ("logits", "again")]
        start = [*NETS[name], "--backend", "ref"]
        p = dptrain(*start, "--lr", 0.01, "--lr-scheduler", "constant", "--max-steps", len(want["losses"]), "--model-ema", "--model-ema-decay",
                    decay, "--runs-dir", tmp, "--save-outputs", logits[0])
        if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr)):
            return
        run = read_run(tmp)
        for step, loss in enumerate(want["losses"], 1):
            got = run["series"][("train/loss", -1)].get(step, math.nan)
            check(abs(got - loss) <= 1e-8 * loss, "%s: loss of step %d is %.17g, PyTorch's %.17g" % (name, step, got, loss))
        path = os.path.join(run["folder"], "model-ema.safetensors")
        got = safetensors(path)
        check(set(got) == set(want["averages"]), "%s: averages of %s" % (name, sorted(set(got) ^ set(want["averages"]))))
        for k, values in want["averages"].items():
            d = distance(pattern.spread(got[k][1]), values, 1)
            check(d <= 1e-8, "%s: the average of %s is %.2e from PyTorch's" % (name, k, d))
        p = dptrain(*start, "--init-from", path, "--test-only", "--save-outputs", logits[1])
        check(p.returncode == 0, "%s: --test-only of the averages: exit %d: %s" % (name, p.returncode, p.stderr))
        check(p.returncode == 0 and safetensors(logits[0]) == safetensors(logits[1]), "%s: the file gives the run's outputs" % name)


def main():
    with open(os.path.join(HERE, "averages.json"), encoding="utf-8") as f:
        recorded = json.load(f)
    for name in NETS:
        as_recorded(name, recorded[name], recorded["decay"])
    with Folder() as tmp:
        make_set(tmp, 24, 6)
        for ranks in (1, 2):
            losses, plain = run(tmp, "plain-%d" % ranks, ranks)
            same, forgets = run(tmp, "forgets-%d" % ranks, ranks, "--model-ema", "--model-ema-decay", 1e-300)
            check(same == losses, "%d ranks: averages change no loss: %s, %s" % (ranks, same, losses))
            check(forgets is not None and math.isfinite(forgets) and forgets == plain, "%d ranks: decay 0: %s, weights: %s" % (ranks, forgets, plain))
        unused, slow = run(tmp, "slow", 1, "--model-ema", "--model-ema-decay", 0.999)
        check(slow is not None and math.isfinite(slow) and slow != plain, "slow averages evaluate to something else: %s" % slow)
    finish("averages")


main()
