# SPDX-License-Identifier: Apache-2.0
"""Gradient accumulation: several micro-batches form one optimiser step. On ref, in f64, compared with PyTorch's
recorded losses (reference/make_accumulation.py) on 1, 2 and 3 ranks, with micro-batches of unequal size and an empty
one. Every other backend is compared with itself: what is recorded, and the last, smaller batches of an epoch."""
import json
import os

from helper import SOURCE, Folder, check, distance, dptrain, fast, finish, make_set, norm, read_run, safetensors

HERE = os.path.join(SOURCE, "tests", "train", "reference")


def train(name, folder, *flags):
    p = dptrain(*flags, "--runs-dir", folder)
    if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr)):
        return {}
    return read_run(folder)["series"]


def compare(name, got, want, limit):
    for i, value in enumerate(want):
        have = got.get(i + 1, float("nan"))
        check(abs(have - value) <= limit * abs(value), "%s of step %d is %.17g, PyTorch's %.17g" % (name, i + 1, have, value))


def recorded(case, want):
    ranks, batch = case.split("x")
    with Folder() as tmp:
        outputs = os.path.join(tmp, "o.safetensors")
        series = train(case, os.path.join(tmp, "runs"), "--model", "resnet20", "--init-from", os.path.join(HERE, "weights.safetensors"),
                       "--batch-from", os.path.join(HERE, "batch.safetensors"), "--lr", 0.01, "--lr-scheduler", "constant",
                       "-b", batch, "--nproc-per-node", ranks, "--sync-bn", "--max-steps", len(want["losses"]), "--backend", "ref",
                       "--precision", "fp64", "--save-outputs", outputs)
        compare("%s: loss" % case, series.get(("train/loss", -1), {}), want["losses"], 1e-8)
        compare("%s: gradient norm" % case, series.get(("train/grad_norm", -1), {}), want["grad_norms"], 1e-7)
        if series:
            d = distance(safetensors(outputs)["logits"][1], want["eval_logits"], norm(want["eval_logits"]))
            check(d <= 1e-7, "%s: evaluation outputs are %.2e from PyTorch's" % (case, d))


def one_big_batch():
    """In a language model's batch samples do not interact, and dropout depends on the sample only: any division of a
    step into micro-batches and ranks gives the same losses and gradients."""
    def run(*flags):
        with Folder() as runs:
            series = train("words, %s" % (flags,), runs, "--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 32,
                           "--block-size", 16, "--vocab-size", 61, "--dropout", 0.1, "--synthetic", "--backend", "ref", "--max-steps", 4,
                           "--lr", 0.05, "--global-batch-size", 7, *flags)
            return [series.get(("train/" + key, -1), {}) for key in ("loss", "grad_norm")]

    whole = run("-b", 7)
    check(len(whole[0]) == 4, "words: four recorded steps")
    for flags in (["-b", 3], ["-b", 2, "--nproc-per-node", 2], ["-b", 1, "--nproc-per-node", 3, "--activation-checkpointing", "full"]):
        for name, got, want in zip(("loss", "gradient norm"), run(*flags), whole):
            for step, value in want.items():
                have = got.get(step, float("nan"))
                check(abs(have - value) <= 1e-9 * abs(value), "words, %s: %s of step %d is %.17g, of one big batch %.17g"
                      % (flags, name, step, have, value))


def words_like_torch():
    """Micro-batches of three and of one of the four samples: padding makes the numbers of tokens differ too. The
    losses are those of the complete batch, as PyTorch recorded them with two optimisers."""
    with open(os.path.join(HERE, "optimizers.json"), encoding="utf-8") as f:
        runs = json.load(f)["runs"]
    for name in ("sgd", "adamw"):
        with Folder() as runs_dir:
            series = train("words, " + name, runs_dir, "--model", "gpt2-124m", "--n-layer", 2, "--n-head", 3, "--n-embd", 24, "--block-size", 19,
                           "--vocab-size", 61, "--init-from", os.path.join(HERE, "gpt-tied.safetensors"), "--batch-from",
                           os.path.join(HERE, "gpt-batch.safetensors"), "--lr", 0.01, "--wd", 0.1, *runs[name]["flags"], "--backend", "ref",
                           "-b", 3, "--max-steps", len(runs[name]["losses"]))
            compare("words, %s: loss" % name, series.get(("train/loss", -1), {}), runs[name]["losses"], 1e-8)
            compare("words, %s: gradient norm" % name, series.get(("train/grad_norm", -1), {}), runs[name]["norms"], 1e-7)


def tails():
    """26 samples in steps of 8: three full steps of two passes, then 2 samples in one pass; with every precision
    available, and equal numbers in two runs."""
    with Folder() as tmp:
        data = make_set(tmp, 26, 6)
        for ranks in (1, 2):
            flags = ["--data-path", data, "--model", "resnet20", "--global-batch-size", 8, "--grad-accum-steps", 2 if ranks == 1 else 4,
                     "--nproc-per-node", ranks, "--epochs", 1, "--deterministic", *fast()]
            first = train("tail", os.path.join(tmp, "a%d" % ranks), *flags)
            again = train("tail", os.path.join(tmp, "b%d" % ranks), *flags)
            check(sorted(first.get(("train/loss", -1), {})) == [1, 2, 3, 4], "%d ranks: four recorded steps" % ranks)
            check(first.get(("train/loss", -1)) == again.get(("train/loss", -1)), "%d ranks: two runs have the same losses" % ranks)


def main():
    with open(os.path.join(HERE, "accumulation.json"), encoding="utf-8") as f:
        for case, want in json.load(f).items():
            recorded(case, want)
    words_like_torch()
    one_big_batch()
    tails()
    finish("accumulation")


main()
