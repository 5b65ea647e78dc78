#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pdp: a pipeline computes what one rank does, in f64 on ref: losses, gradient norms, evaluations and weights of a
small GPT, with its table tied and not, with dropout, over stages, parallel pipelines, both schedules, numbers of
micro-batches (also those that do not divide the samples), partitions, optimisers, clipping, averages, frozen weights,
offloads and recomputation; ResNet-20 on one pipeline as with as many passes. A run is resumed with another number of
stages. Impossible settings are refused in one line."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import same as strategies
from helper import Folder, check, dptrain, finish, make_set

ALL = ["--activation-offload", "--param-offload", "--optim-offload"]
CASES = [  # model, ranks, flags that change the results, flags of the strategy
    ("gpt", 2, {}, ["--microbatches", 4]),
    ("gpt-tied", 2, {"clip": 0.3, "opt": "adamw"}, ["--microbatches", 5, "--pp-schedule", "gpipe"]),
    ("gpt-tied", 3, {"clip": 0.3, "batch": 10}, ["--activation-checkpointing", "selective"]),
    ("gpt-tied", 4, {"clip": 0.3, "ema": True, "batch": 10}, ["--pp-stages", 2, "--activation-checkpointing", "full", *ALL]),
    ("gpt", 2, {"opt": "lamb", "freeze": True, "batch": 10}, ["--pp-partition", "1,1", "--microbatches", 1]),
    ("gpt-tied", 2, {"opt": "adamw", "ema": True}, ["--microbatches", 4, "--pp-schedule", "gpipe", *ALL]),
    ("gpt-tied", 2, {}, ["--microbatches", 6, "--activation-offload"]),
    ("gpt-tied", 4, {"opt": "adamw", "clip": 0.3, "ema": True}, ["--pp-stages", 2, "--zero-stage", 1]),
    ("gpt", 4, {"opt": "lamb", "freeze": True, "batch": 10}, ["--pp-stages", 2, "--zero-stage", 1, "--optim-offload", "--pp-schedule", "gpipe"]),
    ("gpt", 4, {"opt": "lars"}, ["--pp-stages", 2, "--microbatches", 2]),
]
REFUSED = [  # ranks, flags, message
    (3, ["--pp-stages", 2], "--pp-stages 2: expected a divisor of the 3 ranks"),
    (4, [], "--pp-stages 4: the model has 2 blocks"),
    (2, ["-b", 3, "--microbatches", 7], "--microbatches 7: expected at most 6, the samples of a step"),
    (2, ["--pp-partition", "2,1"], "--pp-partition 2,1: expected 2 numbers of blocks that add up to the model's 2"),
    (2, ["--zero-stage", 2], "--zero-stage 2: pipelines shard only moments"),
    (2, ["--grad-accum-steps", 2], "--microbatches"),
    (2, ["--sync-bn"], "--sync-bn"),
]


def maths(model, given, data):
    c = {"model": model, "opt": "sgd", "clip": 0, "ema": False, "freeze": False, "batch": 12, **given}
    return strategies.maths_flags(c, data)


def same(flags, alone, way, name):
    wrong = strategies.first_difference(strategies.run([*flags, "--strategy", "pdp", *way]), alone)
    check(not wrong, "%s: %s" % (name, wrong))


def pictures(data):
    """Batch norm statistics are updated once per micro-batch, as they are once per pass."""
    flags = [f for f in maths("resnet20", {}, data) if f != "--sync-bn"]
    alone = strategies.run([*flags, "--strategy", "single", "--grad-accum-steps", 3])
    for ranks in (2, 3):
        same(flags, alone, ["--nproc-per-node", ranks, "--microbatches", 3], "resnet20 on %d stages" % ranks)
    wrong = strategies.first_difference(strategies.run([*flags, "--strategy", "dp", "--dp-devices", 3]), alone)
    check(not wrong, "resnet20 on 3 devices: %s" % wrong)


def swapped(data):
    """A backward pass that reads another micro-batch is detected."""
    flags = maths("gpt", {}, data)
    alone = strategies.run([*flags, "--strategy", "single"])
    for way in ("1f1b", "gpipe"):
        run = [*flags, "--strategy", "pdp", "--nproc-per-node", 2, "--microbatches", 4, "--pp-schedule", way]
        wrong = strategies.first_difference(strategies.run(run, {"DPTRAIN_TEST_FAULT": "slot"}), alone)
        check(wrong and not wrong.startswith("exit"), "%s with swapped slots: %s" % (way, wrong or "not detected"))


def continues(tmp, data):
    """A checkpoint of two stages, of one pipeline and of two that shard moments, is resumed by one rank and by three
    stages."""
    flags = maths("gpt-tied", {"opt": "adamw"}, data)
    alone = dptrain(*flags, "--runs-dir", os.path.join(tmp, "a"), "--save-weights", os.path.join(tmp, "a.safetensors"))
    check(alone.returncode == 0, alone.stderr)
    want = strategies.safetensors(os.path.join(tmp, "a.safetensors"))
    for ranks in (1, 3):
        runs, weights = os.path.join(tmp, "b%d" % ranks), os.path.join(tmp, "b%d.safetensors" % ranks)
        cut = flags[:]
        cut[cut.index("--max-steps") + 1] = 3
        way = ["--strategy", "pdp", *(["--nproc-per-node", 2] if ranks == 1 else ["--nproc-per-node", 4, "--pp-stages", 2, "--zero-stage", 1])]
        first = dptrain(*cut, *way, "--runs-dir", runs, "--run-name", "cut")
        check(first.returncode == 0, first.stderr)
        way = ["--strategy", "single" if ranks == 1 else "pdp", "--nproc-per-node", ranks]
        again = dptrain(*flags, *way, "--runs-dir", runs, "--run-name", "cut", "--resume", "auto",
                        "--save-weights", weights)
        check(again.returncode == 0, again.stderr)
        got = strategies.safetensors(weights) if again.returncode == 0 else {}
        wrong = strategies.first_difference({k: v for k, (_, v) in got.items()}, {k: v for k, (_, v) in want.items()})
        check(not wrong, "from 2 stages to %d ranks: %s" % (ranks, wrong))


def refuses(data):
    for ranks, flags, said in REFUSED:
        p = dptrain(*strategies.MODELS["gpt"], "--data-path", data["gpt"], "-b", 4, "--backend", "ref", "--report-to", "none",
                    "--strategy", "pdp", "--nproc-per-node", ranks, *flags)
        lines = [line for line in p.stderr.splitlines() if "error" in line]
        check(p.returncode == 2 and len(lines) == 1 and said in lines[0], "%s: exit %d, %s" % (flags, p.returncode, p.stderr))


def noticed(data):
    """A message that one rank never sends is reported before the first step."""
    p = dptrain(*maths("gpt", {}, data), "--strategy", "pdp", "--nproc-per-node", 2, env={"DPTRAIN_TEST_FAULT": "message"})
    check(p.returncode == 1 and "ranks 0 and 1 disagree" in p.stderr and "group pipeline" in p.stderr and ".recv (recv, f64" in p.stderr,
          "message: exit %d, %s" % (p.returncode, p.stderr))


def main():
    with Folder() as tmp:
        data = {"gpt": os.path.join(tmp, "words"), "resnet20": os.path.join(tmp, "pictures")}
        for folder in data.values():
            os.mkdir(folder)
        strategies.make_words(data["gpt"])
        make_set(data["resnet20"], 60, 7, size=10)
        for model, ranks, given, way in CASES:
            flags = maths(model, given, data)
            alone = strategies.run([*flags, "--strategy", "single"])
            same(flags, alone, ["--nproc-per-node", ranks, *way], "%s on %d ranks, %s %s" % (model, ranks, given, way))
        pictures(data)
        swapped(data)
        continues(tmp, data)
        refuses(data)
        noticed(data)
    finish("pipelines")


main()
