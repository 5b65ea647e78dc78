# SPDX-License-Identifier: Apache-2.0
"""A strategy changes speed and memory, never the results: the same global batch on 1, 2 and 3 ranks, with every
strategy that supports them, gives the same losses (architecture: invariants). In f64 on ref, with batch norm over all
ranks (which the stages of a pipeline do not support). Blocks begin as the identity: otherwise these ten full-size
steps without a warm-up reach a kink of ReLU (with GELU they agree to 1e-12 either way)."""
import os

from helper import DPTRAIN, FASHION, Folder, check, dptrain, finish, make_set, read_run, skip, strategies


def losses(ranks, batch, steps, more=()):
    with Folder() as runs:
        p = dptrain("--data-path", FASHION, "--model", "resnet20", "--global-batch-size", batch, "--max-steps", steps,
                    "--backend", "ref", "--precision", "fp64", "--sync-bn", "--zero-init-residual", "--lr", 0.1, "--nproc-per-node", ranks,
                    "--runs-dir", runs, *more)
        if not check(p.returncode == 0, "%d ranks, batch %d: exit %d: %s" % (ranks, batch, p.returncode, p.stderr)):
            return None
        series = read_run(runs)["series"]
        for key in ("train/loss", "train/grad_norm", "train/lr"):
            check(sorted(series.get((key, -1), {})) == list(range(1, steps + 1)), "%d ranks: %s is complete" % (ranks, key))
        return series.get(("train/loss", -1), {}), series.get(("train/grad_norm", -1), {})


def compare(name, one, many, key, first, limit):
    for step in one:
        tolerance = first if step <= 5 else limit
        a, b = one[step], many.get(step, float("nan"))
        check(abs(a - b) <= tolerance * abs(a), "%s: %s of step %d is %.17g, on one rank %.17g" % (name, key, step, b, a))


def same_evaluation():
    """Without --sync-bn all ranks use rank 0's running statistics: the saved weights, evaluated on one rank, give the
    results that the three ranks recorded together on uneven parts of the set."""
    with Folder() as tmp:
        data, weights, runs = make_set(tmp, 24, 11), os.path.join(tmp, "w.safetensors"), os.path.join(tmp, "runs")
        common = ["--data-path", data, "--model", "resnet20", "--backend", "ref"]
        p = dptrain(*common, "--global-batch-size", 10, "--epochs", 1, "--nproc-per-node", 3, "--runs-dir", runs, "--save-weights", weights)
        check(p.returncode == 0, "three ranks: exit %d: %s" % (p.returncode, p.stderr))
        series = read_run(runs)["series"]
        p = dptrain(*common, "-b", 4, "--test-only", "--init-from", weights)
        check(p.returncode == 0, "evaluation alone: exit %d: %s" % (p.returncode, p.stderr))
        want = "loss %.6f, top-1 %.2f %%" % (series[("epoch/val_loss", -1)][1], series[("epoch/top1", -1)][1])
        check("evaluation of 11 samples" in p.stdout and want in p.stdout, "evaluation alone printed %r, recorded is %r" % (p.stdout, want))


def main():
    same_evaluation()
    if not os.path.isdir(FASHION):
        finish("ranks, without the losses of Fashion-MNIST")
        skip("dataset-fashion-mnist is not installed")
    check(os.access(DPTRAIN, os.X_OK), "dptrain is built")
    for batch, steps in ((12, 10), (10, 5)):
        one = losses(1, batch, steps)
        for ranks, strategy in [(r, s) for r in (2, 3) for s in strategies(r) if s != "pdp"]:  # tested by strategies/pipelines.py
            many = losses(ranks, batch, steps, ("--bucket-cap-mb", 0.2, "--strategy", strategy))
            if one and many:
                name = "%s, batch %d on %d ranks" % (strategy, batch, ranks)
                compare(name, one[0], many[0], "loss", 1e-9, 1e-6)
                compare(name, one[1], many[1], "gradient norm", 1e-7, 1e-4)
    finish("ranks")


main()
