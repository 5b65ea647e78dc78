# SPDX-License-Identifier: Apache-2.0
"""--activation-checkpointing gives the same losses, bit for bit, with less memory: networks with batch norm, on 2
ranks with batch norm over both, with several micro-batches per step, and a language model with dropout."""
import os
import re

from helper import Folder, check, dptrain, fast, finish, make_set, read_run

MODES = ("none", "selective", "full")


def losses(name, *flags):
    with Folder() as runs:
        p = dptrain(*flags, "--deterministic", "--runs-dir", runs)
        if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr)):
            return {}
        series = read_run(runs)["series"]
        return series.get(("train/loss", -1), {}), series.get(("train/grad_norm", -1), {})


def activations(*flags):
    p = dptrain("plan", *flags, "--dump=summary")
    found = re.search(r"activations +([0-9.]+) MiB", p.stdout)
    return float(found.group(1)) if check(found, "plan %s: %s%s" % (flags, p.stdout, p.stderr)) else 0


def compare(name, *flags):
    results = {mode: losses("%s, %s" % (name, mode), *flags, "--activation-checkpointing", mode) for mode in MODES}
    check(len(results["none"][0]) > 1, "%s: recorded losses" % name)
    for mode in MODES[1:]:
        check(results[mode] == results["none"], "%s: %s changes losses or gradients: %s, without %s"
              % (name, mode, results[mode], results["none"]))


def main():
    words = ["--model", "gpt2-124m", "--n-layer", 4, "--n-head", 2, "--n-embd", 32, "--block-size", 24, "--vocab-size", 61]
    with Folder() as tmp:
        data = make_set(tmp, 26, 4)
        images = ["--data-path", data, "--model", "resnet20", "--global-batch-size", 8, "--max-steps", 4]
        compare("batch norm", *images, *fast())
        compare("batch norm on 2 ranks", *images, "--sync-bn", "--nproc-per-node", 2, *fast())
        compare("micro-batches", *images, "-b", 3, *fast())
    compare("dropout", *words, "--dropout", 0.1, "--synthetic", "--max-steps", 3, "-b", 4, *fast())
    compare("dropout in f64", *words, "--dropout", 0.1, "--synthetic", "--max-steps", 2, "-b", 2, "--backend", "ref")
    for name, flags in (("resnet56", ["--model", "resnet56", "-b", 64]), ("words", [*words, "-b", 16])):
        none, selective, full = (activations(*flags, "--backend", "ref", "--activation-checkpointing", m) for m in MODES)
        check(selective < 0.8 * none and full < 0.6 * none, "%s: activations of %.1f, %.1f and %.1f MiB" % (name, none, selective, full))
    finish("recompute")


main()
