# SPDX-License-Identifier: Apache-2.0
"""A checkpoint does not depend on its writer: the checkpoint of each layout (strategy, ranks) is resumed by others,
and the losses of the following steps are those of a run on one rank, in f64 on ref; with --deterministic both of its
safetensors files equal, byte for byte, the files that one rank writes. Rank 0, which receives the ranges of all
others, needs hardly any memory for it; and a kill during a save does no harm. --full: each layout resumed by every
other, and rank 0's memory with GPT-2 124M."""
import glob
import hashlib
import json
import os
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from helper import Folder, check, children, dptrain, fast, finish, make_set, read_run, safetensors, sanitized, start
from same import first_difference, make_words

LAYOUTS = {
    "single": [],
    "ddp on 3": ["--nproc-per-node", 3, "--strategy", "ddp"],
    "ZeRO-1 on 2": ["--nproc-per-node", 2, "--strategy", "fsdp", "--zero-stage", 1],
    "ZeRO-2 on 3": ["--nproc-per-node", 3, "--strategy", "fsdp", "--zero-stage", 2],
    "ZeRO-3 on 2": ["--nproc-per-node", 2, "--strategy", "fsdp"],
    "ZeRO-3 on 4": ["--nproc-per-node", 4, "--strategy", "fsdp", "--fsdp-unit", "layer"],
    "HSDP on 4": ["--nproc-per-node", 4, "--strategy", "fsdp", "--shard-degree", 2],
    "pdp, 2 stages on 4": ["--nproc-per-node", 4, "--strategy", "pdp", "--pp-stages", 2, "--zero-stage", 1, "--microbatches", 3],
}
HALF = 5
MIB = 1048576
BEYOND_PLAN = 64 * MIB


def train(data, runs, steps, layout, more=()):
    p = dptrain("--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--dropout", 0.1,
                "--data-path", data, "--global-batch-size", 12, "--max-steps", steps, "--lr", 0.001, "--lr-scheduler", "constant",
                "--opt", "adamw", "--model-ema", "--model-ema-decay", 0.9, "--backend", "ref", "--workers", 0, "--runs-dir", runs,
                "--run-name", "r", "--report-to", "none", *LAYOUTS[layout], *more)
    return check(p.returncode == 0, "%s to step %d: exit %d: %s" % (layout, steps, p.returncode, p.stderr))


def left_by(runs, step):
    """Losses so far, and the contents of that step's checkpoint."""
    run = read_run(runs)
    left = {"losses": [v for _, v in sorted(run["series"].get(("train/loss", -1), {}).items())]}
    for name in ("model", "optimizer"):
        path = os.path.join(run["folder"], "checkpoints", "step-%d" % step, name + ".safetensors")
        left.update({name + ": " + tensor: values for tensor, (_, values) in safetensors(path).items()})
    return left


def files_of(runs, step):
    """SHA-256 of a checkpoint's safetensors."""
    found = {}
    for name in ("model", "optimizer"):
        with open(os.path.join(read_run(runs)["folder"], "checkpoints", "step-%d" % step, name + ".safetensors"), "rb") as f:
            found[name] = hashlib.sha256(f.read()).hexdigest()
    return found


def same_files(tmp, data):
    """Leaves have one sample, whatever a rank's part of the batch is."""
    written = {}
    for name in LAYOUTS:
        runs = os.path.join(tmp, "bits")
        leaf = ["-b", 3, "--microbatches", 6] if "pdp" in name else ["-b", 1]
        if train(data, runs, HALF, name, [*leaf, "--no-tie-weights", "--deterministic"]):
            written[name] = files_of(runs, HALF)
        shutil.rmtree(runs, ignore_errors=True)
    for name, files in written.items():
        check(files == written.get("single"), "%s writes other files than one rank: %s" % (name, files))


def peak_of(pid):
    """Peak memory so far, in bytes; 0 if the process has ended."""
    try:
        with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as f:
            return max([int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM")], default=0)
    except OSError:
        return 0


def most_memory(*flags):
    """Peak memory of rank 0 over its lifetime, and the output."""
    p = start(*flags)
    most = 0
    while p.poll() is None:
        most = max([most, *(peak_of(r) for r in children(p.pid)[:1])])
        time.sleep(0.01)
    out, said = p.communicate()
    return most if check(p.returncode == 0, "rank 0's memory: exit %d: %s" % (p.returncode, said)) else 0, out


def memory_of_rank_0():
    """Extra memory of rank 0 of four when it saves, receiving three quarters from the others: the snapshot of its own
    ranges, which its plan includes, and little more. The file of the moments alone is larger than this limit."""
    sizes = ["--seq-len", 128] if "--full" in sys.argv else ["--n-layer", 4, "--vocab-size", 16384, "--seq-len", 32]
    way = ["--model", "gpt2-124m", *sizes, "-b", 1, "--opt", "adamw", "--strategy", "fsdp", "--nproc-per-node", 4, *fast()]
    with Folder() as runs:
        saving, _ = most_memory("train", "--synthetic", *way, "--max-steps", 2, "--save-steps", 1, "--report-to", "none", "--workers", 0, "--runs-dir", runs)
        run = read_run(runs)
        planned = max(run["series"].get(("memory/planned_bytes", 0), {0: 0}).values())
        check(all(os.path.exists(os.path.join(run["folder"], "checkpoints", "step-%d" % s)) for s in (1, 2)), "rank 0's memory: two checkpoints")
    without, said = most_memory("bench", *way, "--steps", 2, "--json")
    if saving and without:
        snapshot = planned - json.loads(said)["planned_bytes"]
        beyond = saving - without - snapshot
        print("rank 0: %.1f MiB, %.1f where it saves: %.1f of snapshot and %.1f" % tuple(n / MIB for n in (without, saving, snapshot, beyond)))
        check(snapshot > 0 and beyond <= BEYOND_PLAN, "rank 0 uses %.1f MiB beyond its plan while it saves" % (beyond / MIB))


def killed_while_saving(tmp):
    """One of four ranks is killed while they send their ranges: the previous checkpoint is resumed."""
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
    check(p.returncode == 0 and "continuing after step" in p.stderr, "killed and resumed: exit %d: %s" % (p.returncode, p.stderr))


def stopped_in_evaluation(tmp):
    """Ranks that synchronise in every batch of an evaluation stop together on request."""
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
    check(p.returncode == 0 and "continuing after step" in p.stderr, "stopped and resumed: exit %d: %s" % (p.returncode, p.stderr))


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
                    check(not wrong, "%s, resumed by %s: %s" % (first, other, wrong))
                shutil.rmtree(runs)
        same_files(tmp, data)
    with Folder() as tmp:
        killed_while_saving(tmp)
        stopped_in_evaluation(tmp)
    if not sanitized():
        memory_of_rank_0()
    finish("layouts")


main()
