# SPDX-License-Identifier: Apache-2.0
"""A strategy changes speed and memory, never the results: losses and gradient norms of 5 steps, an evaluation and the
final weights are those of one rank, in f64 on ref, for any combination of strategy, ranks, recomputation, passes per
step, optimiser, clipping, averages, frozen weights, offloading and options of the strategy. Every pair of values of
two of these is in some run. Settings that change the results also apply to the run on one rank. Then the same with
deliberate faults (DPTRAIN_TEST_FAULT): each is detected. Learning rates are so low that no run reaches a kink of ReLU
within its steps.

    same.py [--triples | --ways | --full] [--results FILE] [--minutes M]

--triples: every three compatible values (about 200 combinations); --ways: all strategies and options, of every model,
with the same results (7,560: hours); --full: all combinations (483,840: days). In an order that is drawn once: with
--results a part of them is a fair sample, and the same command continues where the previous one stopped."""
import argparse
import itertools
import os
import random
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "..", "..", "bench", "parts")]
import results
from helper import Folder, check, dptrain, finish, make_set, read_run, safetensors

STEPS = 5
TOLERANCE = 1e-9
MODELS = {
    "gpt-tied": ["--model", "gpt2-124m", "--n-layer", 3, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--dropout", 0.1, "--tie-weights"],
    "gpt": ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 16, "--block-size", 16, "--no-tie-weights"],
    "resnet20": ["--model", "resnet20", "--sync-bn"],
}
# Settings that change the results: the run on one rank has them too.
MATHS = {
    "model": list(MODELS),
    "opt": ["sgd", "adamw", "lars", "lamb"],
    "clip": [0, 0.3],
    "ema": [False, True],
    "freeze": [False, True],
    "batch": [12, 10],
}
# Settings that must not change the results.
WAYS = {
    "strategy": ["dp", "ddp", "fsdp 1", "fsdp 2", "fsdp 3", "pdp"],
    "world": [2, 3, 4, 1],
    "recompute": ["none", "selective", "full"],
    "passes": [1, 2],
    "unit": ["block", "layer"],
    "reshard": [True, False],
    "prefetch": [1, 0, 3],
    "sync": [True, False],
    "offload": ["none", "activation", "param", "optim", "activation param optim", "activation param optim file"],
}
AXES = dict(WAYS, **MATHS)
ONE_MATHS = {"opt": ["adamw"], "clip": [0.3], "ema": [True], "freeze": [False], "batch": [10]}
LEARNING = {"sgd": 0.01, "adamw": 0.001, "lars": 0.01, "lamb": 0.001}
FILES = tempfile.gettempdir()
FROZEN = {"gpt-tied": "*.h.1.*,*.wpe.*", "gpt": "*.h.0.*,*.mlp.*.bias", "resnet20": "layer2.0.*"}


def make_words(folder):
    draw = random.Random(3)
    for name, n in (("train.txt", 500), ("val.txt", 60)):
        with open(os.path.join(folder, name), "w", encoding="ascii") as f:
            f.write(" ".join(draw.choice(["the", "same", "loss", "on", "any", "rank"]) for _ in range(n)))


def maths_flags(c, data):
    flags = [*MODELS[c["model"]], "--data-path", data["resnet20" if c["model"] == "resnet20" else "gpt"], "--opt", c["opt"],
             "--lr", LEARNING[c["opt"]], "--lr-scheduler", "constant", "--global-batch-size", c["batch"], "--max-steps", STEPS,
             "--eval-steps", STEPS, "--backend", "ref", "--workers", 0, "--report-to", "none"]
    if c["clip"]:
        flags += ["--clip-grad-norm", c["clip"]]
    if c["ema"]:
        flags += ["--model-ema", "--model-ema-decay", 0.9]
    if c["freeze"]:
        flags += ["--freeze", FROZEN[c["model"]]]
    return flags


def way_flags(c):
    name, _, stage = c["strategy"].partition(" ")
    flags = ["--strategy", name, "--dp-devices" if name == "dp" else "--nproc-per-node", c["world"], "--activation-checkpointing", c["recompute"]]
    if name == "pdp": # two stages, also in parallel pipelines; its passes are micro-batches
        flags += ["--pp-stages", 2, "--microbatches", 2 if c["passes"] == 1 else 5]
    elif c["passes"] > 1:
        flags += ["--grad-accum-steps", c["passes"]]
    if stage:
        flags += ["--zero-stage", stage, "--fsdp-unit", c["unit"]]
    if stage == "3":
        flags += ["--reshard-after-forward" if c["reshard"] else "--no-reshard-after-forward", "--gather-prefetch", c["prefetch"]]
    if stage in ("2", "3"):
        flags += ["--sync-each-batch" if c["sync"] else "--no-sync-each-batch"]
    if name == "ddp":
        flags += ["--bucket-cap-mb", 0.05]
    for what in c["offload"].replace("none", "").split():
        flags += ["--offload-dir", FILES] if what == "file" else ["--%s-offload" % what]
    return flags


def run(flags, env=None):
    """Runs dptrain; returns everything that it left: {what: numbers}; an error text if it failed."""
    with Folder() as tmp:
        weights = os.path.join(tmp, "w.safetensors")
        if flags[flags.index("--global-batch-size") + 1] == 10: # only sometimes, because then they are in separate memory
            flags = [*flags, "--dump-grads", os.path.join(tmp, "g.safetensors")]
        p = dptrain(*flags, "--runs-dir", os.path.join(tmp, "runs"), "--save-weights", weights, env=env)
        if p.returncode:
            return "exit %d: %s" % (p.returncode, p.stderr)
        series = read_run(os.path.join(tmp, "runs"))["series"]
        left = {key: [v for _, v in sorted(series.get((key, -1), {}).items())] for key in ("train/loss", "train/grad_norm", "val/loss")}
        for name in sorted(n for n in os.listdir(tmp) if n.endswith(".safetensors")):
            left.update({name + ": " + tensor: values for tensor, (_, values) in safetensors(os.path.join(tmp, name)).items()})
        return left


def first_difference(got, want):
    """Describes the first number that differs; None if none does."""
    if isinstance(got, str):
        return got
    if set(got) != set(want):
        return "other tensors: %s" % sorted(set(got) ^ set(want))[:3]
    for key, values in want.items():
        scale = max([1e-3, *map(abs, values)])
        if len(values) != len(got[key]) or not values:
            return "%s: %d numbers, not %d" % (key, len(got[key]), len(values))
        for i, (a, b) in enumerate(zip(got[key], values)):
            if not abs(a - b) <= TOLERANCE * scale:
                return "%s[%d] is %.17g, on one rank %.17g" % (key, i, a, b)
    return None


def is_run(c):
    """Settings that only some strategies have are at their first value elsewhere; batch norm is computed per pass."""
    stage = c["strategy"].partition(" ")[2]
    first = {k: v[0] for k, v in WAYS.items()}
    if c["strategy"] == "pdp" and (c["model"] == "resnet20" or c["world"] % 2):
        return False
    if c["strategy"] == "dp" and (c["model"] == "resnet20" or c["passes"] > 1):
        return False
    return (not (c["model"] == "resnet20" and c["passes"] > 1)
            and not (not stage and c["unit"] != first["unit"])
            and not (stage != "3" and (c["reshard"] != first["reshard"] or c["prefetch"] != first["prefetch"]))
            and not (stage in ("1", "2") and "param" in c["offload"])
            and not ((stage not in ("2", "3") or c["passes"] == 1) and c["sync"] != first["sync"]))


def tuples_of(c, n):
    return {tuple((k, c[k]) for k in keys) for keys in itertools.combinations(sorted(c), n)}


def allowed_ways():
    """All combinations that is_run allows, of the settings that it checks."""
    axes = dict({k: v for k, v in WAYS.items() if k != "recompute"}, model=MATHS["model"])
    found = (dict(zip(axes, values)) for values in itertools.product(*axes.values()))
    return [c for c in found if is_run(c)], [k for k in AXES if k not in axes]


def drawn(draw, ways, free, wanted):
    """Draws a combination with these values; None if they are incompatible."""
    fit = [w for w in ways if all(w.get(k, v) == v for k, v in wanted)]
    return {**draw.choice(fit), **{k: draw.choice(AXES[k]) for k in free}, **dict(wanted)} if fit else None


def cover(n, seed=1, tries=40):
    """Combinations that contain every n compatible values: greedy, by drawing."""
    draw, (ways, free) = random.Random(seed), allowed_ways()
    missing = [tuple(zip(keys, values)) for keys in itertools.combinations(sorted(AXES), n) for values in itertools.product(*(AXES[k] for k in keys))]
    draw.shuffle(missing)
    covered, chosen = set(), []
    for wanted in missing:
        if wanted in covered or not drawn(draw, ways, free, wanted):
            continue
        best = max((drawn(draw, ways, free, wanted) for _ in range(tries)), key=lambda c: len(tuples_of(c, n) - covered))
        chosen.append(best)
        covered |= tuples_of(best, n)
    return chosen


def faults(data):
    """Deliberate faults are detected."""
    c = {"strategy": "fsdp 3", "world": 2, "recompute": "none", "passes": 2, "unit": "block", "degree": "all", "reshard": True, "prefetch": 1,
         "sync": True, "model": "gpt", "opt": "sgd", "clip": 0.3, "ema": False, "freeze": False, "batch": 12, "offload": "none"}
    alone = run(maths_flags(c, data))
    for name in ("ddp", "fsdp 1", "fsdp 2", "fsdp 3"):
        for fault in ("reduce", "micro") if name == "ddp" else ("reduce", "gather", "norm", "micro"):
            flags = maths_flags(c, data) + way_flags(dict(c, strategy=name))
            wrong = first_difference(run(flags, {"DPTRAIN_TEST_FAULT": fault}), alone)
            check(wrong and not wrong.startswith("exit"), "%s with a broken %s: %s" % (name, fault, wrong or "not detected"))


    for name in ("ddp", "fsdp 3"):
        flags = maths_flags(c, data) + way_flags(dict(c, strategy=name, offload="activation param optim"))
        wrong = first_difference(run(flags, {"DPTRAIN_TEST_FAULT": "offload"}), alone)
        check(wrong and not wrong.startswith("exit"), "%s with a broken offload: %s" % (name, wrong or "not detected"))


def every(axes):
    """All combinations, in an order drawn once."""
    combinations = (dict(zip(axes, values)) for values in itertools.product(*axes.values()))
    allowed = [c for c in combinations if is_run(c)]
    random.Random(1).shuffle(allowed)
    return allowed


def name_of(c):
    return " ".join("%s=%s" % (k, c[k]) for k in c)


class Runs:
    """Results of the runs; those on one rank are computed on demand."""

    def __init__(self, data):
        self.data, self.alone = data, {}

    def of_one_rank(self, c):
        maths = tuple(c[k] for k in MATHS)
        if maths not in self.alone:
            self.alone[maths] = run(maths_flags(c, self.data))
            check(not isinstance(self.alone[maths], str), "one rank, %s: %s" % (maths, self.alone[maths]))
        return self.alone[maths]

    def wrong(self, c):
        """Describes how a combination differs; None if it does not."""
        alone = self.of_one_rank(c)
        return alone if isinstance(alone, str) else first_difference(run(maths_flags(c, self.data) + way_flags(c)), alone)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--triples", dest="chosen", action="store_const", const=lambda: cover(3))
    p.add_argument("--ways", dest="chosen", action="store_const", const=lambda: every(dict(AXES, **ONE_MATHS)))
    p.add_argument("--full", dest="chosen", action="store_const", const=lambda: every(AXES))
    results.add_arguments(p)
    o = p.parse_args()
    with Folder() as tmp:
        data = {"gpt": os.path.join(tmp, "words"), "resnet20": os.path.join(tmp, "images")}
        for folder in data.values():
            os.mkdir(folder)
        make_words(data["gpt"])
        make_set(data["resnet20"], 60, 7, size=10)
        chosen, runs, done = {name_of(c): c for c in (o.chosen or (lambda: cover(2)))()}, Runs(data), 0
        for name, wrong in results.of_arguments(o).each(list(chosen), lambda name: runs.wrong(chosen[name])):
            done += 1
            check(not wrong, "%s: %s" % (name, wrong))
        if not o.chosen:
            faults(data)
        print("%d combinations, %d runs on one rank" % (done, len(runs.alone)))
    finish("strategies")


if __name__ == "__main__":
    main()
