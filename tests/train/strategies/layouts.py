"""A checkpoint is the same whoever wrote it: of each layout (strategy, ranks) it is taken up by others, and the losses of
the steps that follow are those of a run that one rank made alone, in f64 on ref; and one that is cut off while it is saved does no harm. --full: each by every other."""
import glob
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from helper import Folder, check, children, dptrain, finish, make_set, read_run, safetensors, start
from same import first_difference, make_words

LAYOUTS = {
    "single": [],
    "ddp on 2": ["--nproc-per-node", 2, "--strategy", "ddp"],
    "ddp on 3": ["--nproc-per-node", 3, "--strategy", "ddp"],
    "ZeRO-1 on 2": ["--nproc-per-node", 2, "--strategy", "fsdp", "--zero-stage", 1],
    "ZeRO-2 on 3": ["--nproc-per-node", 3, "--strategy", "fsdp", "--zero-stage", 2],
    "ZeRO-3 on 2": ["--nproc-per-node", 2, "--strategy", "fsdp"],
    "ZeRO-3 on 4": ["--nproc-per-node", 4, "--strategy", "fsdp", "--fsdp-unit", "layer"],
    "HSDP on 4": ["--nproc-per-node", 4, "--strategy", "fsdp", "--shard-degree", 2],
}
HALF = 5


def train(data, runs, steps, layout, more=()):
    p = dptrain("--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--dropout", 0.1,
                "--data-path", data, "--global-batch-size", 12, "--max-steps", steps, "--lr", 0.001, "--lr-scheduler", "constant",
                "--opt", "adamw", "--model-ema", "--model-ema-decay", 0.9, "--backend", "ref", "--workers", 0, "--runs-dir", runs,
                "--run-name", "r", "--report-to", "none", *LAYOUTS[layout], *more)
    return check(p.returncode == 0, "%s to step %d: exit %d: %s" % (layout, steps, p.returncode, p.stderr))


def left_by(runs, step):
    """Losses so far, and what the checkpoint of that step holds."""
    run = read_run(runs)
    left = {"losses": [v for _, v in sorted(run["series"].get(("train/loss", -1), {}).items())]}
    for name in ("model", "optimizer"):
        path = os.path.join(run["folder"], "checkpoints", "step-%d" % step, name + ".safetensors")
        left.update({name + ": " + tensor: values for tensor, (_, values) in safetensors(path).items()})
    return left


def killed_while_saving(tmp):
    """Of four ranks that hand their ranges over, one is killed: the checkpoint before is taken up."""
    runs = os.path.join(tmp, "killed")
    flags = ["--synthetic", "--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 256, "--block-size", 16, "--vocab-size", 4096,
             "--global-batch-size", 4, "--max-steps", 40, "--threads", 1, "--save-steps", 1, "--strategy", "fsdp", "--nproc-per-node", 4,
             "--runs-dir", runs, "--run-name", "r", "--report-to", "none"]
    p = start(*flags)
    writing, whole = [], []
    while p.poll() is None and not (writing and whole):
        whole = glob.glob(os.path.join(runs, "*", "*", "checkpoints", "step-*"))
        writing = glob.glob(os.path.join(runs, "*", "*", "checkpoints", ".writing-*"))
    ranks = children(p.pid)
    if check(p.poll() is None and len(ranks) == 4, "killed: all was saved before a rank could be killed"):
        os.kill(ranks[2], signal.SIGKILL)
    p.communicate(timeout=60)
    check(p.returncode not in (0, None), "killed: exit %s" % p.returncode)
    p = dptrain(*flags, "--resume", "auto")
    check(p.returncode == 0 and "goes on after step" in p.stderr, "killed, taken up again: exit %d: %s" % (p.returncode, p.stderr))


def stopped_in_evaluation(tmp):
    """Ranks that meet in every batch of an evaluation leave it together when they are asked to stop."""
    data, runs = os.path.join(tmp, "images"), os.path.join(tmp, "stopped")
    os.mkdir(data)
    flags = ["--data-path", make_set(data, 16, 900, size=12), "--model", "resnet20", "--backend", "ref", "-b", 4, "--epochs", 1, "--print-freq", 1,
             "--strategy", "fsdp", "--nproc-per-node", 3, "--runs-dir", runs, "--run-name", "r"]
    p = start(*flags)
    while p.poll() is None and "step 2/2" not in p.stdout.readline():
        pass
    p.send_signal(signal.SIGTERM)
    _, text = p.communicate(timeout=60)
    check(p.returncode == 75, "stopped: exit %d: %s" % (p.returncode, text))
    p = dptrain(*flags, "--resume", "auto")
    check(p.returncode == 0 and "goes on after step" in p.stderr, "stopped, taken up again: exit %d: %s" % (p.returncode, p.stderr))


def main():
    names = list(LAYOUTS)
    with Folder() as tmp:
        data = os.path.join(tmp, "words")
        os.mkdir(data)
        make_words(data)
        if not train(data, os.path.join(tmp, "alone"), 2 * HALF, "single"):
            finish("layouts")
        whole = left_by(os.path.join(tmp, "alone"), 2 * HALF)
        for i, first in enumerate(names):
            half = os.path.join(tmp, "half %d" % i)
            if not train(data, half, HALF, first, ["--save-steps", HALF] if i % 2 else []):
                continue
            others = names if "--full" in sys.argv else [names[(i + 1) % len(names)], names[(i + 3) % len(names)]]
            for other in others:
                runs = os.path.join(tmp, "runs")
                shutil.copytree(half, runs)
                if train(data, runs, 2 * HALF, other, ["--resume", "auto"]):
                    wrong = first_difference(left_by(runs, 2 * HALF), whole)
                    check(not wrong, "%s, taken up by %s: %s" % (first, other, wrong))
                shutil.rmtree(runs)
    with Folder() as tmp:
        killed_while_saving(tmp)
        stopped_in_evaluation(tmp)
    finish("layouts")


main()
