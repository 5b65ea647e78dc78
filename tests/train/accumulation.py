"""Gradient accumulation: several micro-batches are one optimiser step. On ref, in f64, against PyTorch's recorded losses
(reference/make_accumulation.py) on 1, 2 and 3 ranks, with micro-batches of unequal size and one that is empty; on every
backend's own terms: what is recorded, and the last, smaller batches of an epoch."""
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


def tails():
    """26 samples in steps of 8: three whole ones of two passes, then 2 samples in one pass; every precision that is there,
    and twice the same numbers."""
    with Folder() as tmp:
        data = make_set(tmp, 26, 6)
        for ranks in (1, 2):
            flags = ["--data-path", data, "--model", "resnet20", "--global-batch-size", 8, "--grad-accum-steps", 2 if ranks == 1 else 4,
                     "--nproc-per-node", ranks, "--epochs", 1, "--deterministic", *fast()]
            first = train("tail", os.path.join(tmp, "a%d" % ranks), *flags)
            again = train("tail", os.path.join(tmp, "b%d" % ranks), *flags)
            check(sorted(first.get(("train/loss", -1), {})) == [1, 2, 3, 4], "%d ranks: four steps are recorded" % ranks)
            check(first.get(("train/loss", -1)) == again.get(("train/loss", -1)), "%d ranks: two runs have the same losses" % ranks)


def main():
    with open(os.path.join(HERE, "accumulation.json"), encoding="utf-8") as f:
        for case, want in json.load(f).items():
            recorded(case, want)
    tails()
    finish("accumulation")


main()
