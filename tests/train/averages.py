"""--model-ema: averages that forget everything at once evaluate to what the weights themselves do, on one rank and two;
slow averages stay where the first step put them; nothing but the evaluation is changed by keeping averages."""
import math
import os

from helper import Folder, check, dptrain, finish, make_set, read_run


def run(tmp, name, ranks, *flags):
    runs = os.path.join(tmp, name)
    p = dptrain("--data-path", tmp, "--model", "resnet20", "--backend", "ref", "--global-batch-size", 8, "--epochs", 1, "--threads", 1,
                "--lr", 0.02, "--nproc-per-node", ranks, "--runs-dir", runs, *flags)
    if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr)):
        return None, None
    series = read_run(runs)["series"]
    return series[("train/loss", -1)], series[("epoch/val_loss", -1)][1]


def main():
    with Folder() as tmp:
        make_set(tmp, 24, 6)
        for ranks in (1, 2):
            losses, plain = run(tmp, "plain-%d" % ranks, ranks)
            same, forgets = run(tmp, "forgets-%d" % ranks, ranks, "--model-ema", "--model-ema-decay", 1e-300)
            check(same == losses, "%d ranks: averages change no loss: %s, %s" % (ranks, same, losses))
            check(forgets is not None and math.isfinite(forgets) and forgets == plain, "%d ranks: no memory: %s, weights: %s" % (ranks, forgets, plain))
        unused, slow = run(tmp, "slow", 1, "--model-ema", "--model-ema-decay", 0.999)
        check(slow is not None and math.isfinite(slow) and slow != plain, "slow averages evaluate to something else: %s" % slow)
    finish("averages")


main()
