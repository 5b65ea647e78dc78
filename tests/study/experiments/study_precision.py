# SPDX-License-Identifier: Apache-2.0
"""Apex's levels and bf16 (articles 3 and 5; 87.989 to 70.1 s for 300 batches in fp16 there, without loss of accuracy): time of
a step, memory and accuracy over seeds, of ResNet-20 on Fashion-MNIST. The processor has no fp16 arithmetic: O1 to O3 are
emulated in f32, so their time says nothing of a GPU; bf16 is native. Accuracy and memory mean here what they mean there."""
import os
import re
import statistics

from helper import FASHION, make_set
from record import interval, last_of, median_of

LEVELS = {"O0": ["--opt-level", "O0"], "O1": ["--opt-level", "O1"], "O2": ["--opt-level", "O2"], "O3": ["--opt-level", "O3"], "bf16": ["--precision", "bf16"]}
PARTS = ("parameters", "masters", "gradients", "optimizer", "activations")


def planned(s, level, flags):
    """MiB of each part by `dptrain plan`."""
    out = s.tool("plan", *flags, *LEVELS[level])
    found = dict(re.findall(r"^\s+(\w+)\s+([0-9.]+) MiB", out or "", re.M))
    return {k: float(v) for k, v in found.items()}


def verdict_of(gap, bound):
    """Of a difference in points, plus or minus bound: confirmed if it excludes a loss of more than one point."""
    return "confirmed" if gap - bound >= -1 else "not confirmed" if gap + bound < 0 else "not testable here"


def pairs(accuracy, level):
    """Differences to O0 of the runs with equal seeds, which share their weights and the order of their samples."""
    a, b = (accuracy.get(x, {}) for x in ("O0", level))
    return [b[seed] - a[seed] for seed in sorted(set(a) & set(b))]


def facts(s, accuracy, state):
    """accuracy: {level: {seed: percent}}"""
    for level in ("O1", "O2", "bf16", "O3"):
        gaps = pairs(accuracy, level)
        if not gaps:
            s.fact("%s keeps the accuracy of O0" % level, "not testable here", "no time for these runs")
            continue
        gap, words = statistics.mean(gaps), "%+.2f points of %.2f %%" % (statistics.mean(gaps), statistics.mean(accuracy["O0"].values()))
        if len(gaps) < 2:
            s.fact("%s keeps the accuracy of O0" % level, "not testable here", words + "; one seed")
        else:
            bound = interval(gaps)[1]
            s.fact("%s keeps the accuracy of O0" % level, verdict_of(gap, bound),
                   words + ", 95 %%: %+.2f to %+.2f, %d seeds in pairs" % (gap - bound, gap + bound, len(gaps)))
    both = [state.cells.get((x, "together")) for x in ("O2", "O3")]
    if all(c and c.values for c in both):
        o2, o3 = (c.middle() for c in both)
        s.fact("O3 stores less than O2: parameters, masters, gradients, optimizer", "confirmed" if o3 < o2 else "not confirmed", "%.2f and %.2f MiB (plan)" % (o3, o2))


def measure(s):
    batch, steps, seeds = (16, 5, 1) if s.quick else (64, 200, 15)
    data = FASHION
    if not os.path.isdir(data):
        data = os.path.join(s.work, "data")
        os.makedirs(data)
        make_set(data, 2000, 300)
    common = ["--model", "resnet20", "--data-path", data, "-b", batch, "--lr", 0.05]
    length = ["--max-steps", steps, *([] if s.quick else ["--eval-steps", steps, "--lr", 0.2])]
    time_s = s.table("step", "milliseconds", ["time"], base=("O0", "time"))
    memory = s.table("memory of a rank", "MiB", ["at most"], base=("O0", "at most"))
    accuracy = s.table("accuracy after %d steps" % steps, "percent", ["top-1"], form="%.2f")
    state = s.table("planned", "MiB", [*PARTS[:4], "together", "activations"])
    s.metrics = ["train/loss", "phase/step", "train/loss_scale"]
    by_seed = {}
    for level in LEVELS:
        parts = planned(s, level, common)
        for part in PARTS:
            state.plan(level, part, parts.get(part, "–"), "dptrain plan --model resnet20 -b %d %s …" % (batch, " ".join(LEVELS[level])))
        state.plan(level, "together", sum(parts.get(k, 0) for k in PARTS[:4]), "dptrain plan --model resnet20 -b %d %s …" % (batch, " ".join(LEVELS[level])))

    def one(level, turn):
        run = s.train("%s, seed %d" % (level, turn), *common, *length, "--threads", 1 if s.quick else 2, "--seed", turn, *LEVELS[level])
        if not run:
            return
        step_s, used, top1 = median_of(run, "phase/step"), last_of(run, "memory/used_bytes"), last_of(run, "val/top1")
        time_s.add(level, "time", step_s and 1e3 * step_s, run["id"])
        memory.add(level, "at most", used and used / 2**20, run["id"])
        accuracy.add(level, "top-1", top1, run["id"])
        if top1 is not None:
            by_seed.setdefault(level, {})[turn] = top1
        skipped = last_of(run, "train/skipped_steps")
        if skipped:
            s.notes.append("%s, seed %d: %d steps skipped because their gradients were not finite." % (level, turn, skipped))
    s.turns(list(LEVELS), seeds, one)
    facts(s, by_seed, state)
    s.notes.append("The article warns that O3 may diverge, without a number. Batch %d." % batch)
