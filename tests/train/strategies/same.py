"""A strategy changes speed and memory, never the maths: losses and gradient norms of 5 steps, an evaluation and the
weights afterwards are those of one rank, in f64 on ref, whatever is combined: strategy, ranks, recomputation, passes a
step, optimiser, clipping, averages, frozen weights, what is offloaded, and what each strategy can be asked for. Every pair of values of two
of these is in some run; --full tries all combinations (483,840: days), --full K/N the Kth of N equal parts of them, drawn evenly.
Settings that change the maths are those of the run on one rank.
Then the same with parts that
are broken on purpose (DPTRAIN_TEST_FAULT): each is noticed. Learning rates are low enough that no run comes to a kink of ReLU within its steps."""
import itertools
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from helper import Folder, check, dptrain, finish, make_set, read_run, safetensors

STEPS = 5
TOLERANCE = 1e-9
MODELS = {
    "gpt-tied": ["--model", "gpt2-124m", "--n-layer", 3, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--dropout", 0.1, "--tie-weights"],
    "gpt": ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 16, "--block-size", 16, "--no-tie-weights"],
    "resnet20": ["--model", "resnet20", "--sync-bn"],
}
# Of the maths: the run on one rank has the same.
MATHS = {
    "model": list(MODELS),
    "opt": ["sgd", "adamw", "lars", "lamb"],
    "clip": [0, 0.3],
    "ema": [False, True],
    "freeze": [False, True],
    "batch": [12, 10],
}
# How it is done.
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
    if name == "pdp": # two stages, also beside each other; its passes are micro-batches
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
    """Everything that the run left: {what: numbers}; a text when it failed."""
    with Folder() as tmp:
        weights = os.path.join(tmp, "w.safetensors")
        if flags[flags.index("--global-batch-size") + 1] == 10: # not always: they lie in memory of their own then
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
    """Text of the first number that differs; None."""
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
    """Settings that only some strategies know are at their first value elsewhere; batch norm sees a pass."""
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


def pairs_of(c):
    return {(a, c[a], b, c[b]) for a, b in itertools.combinations(sorted(c), 2)}


def cover(axes, allowed, seed=1, tries=60):
    """Combinations in which every pair of values that goes together occurs: greedy, by drawing."""
    draw = random.Random(seed)
    missing = set()
    for a, b in itertools.combinations(sorted(axes), 2):
        missing |= {(a, x, b, y) for x in axes[a] for y in axes[b]}
    chosen, idle = [], 0
    while missing and idle < 400:
        best = None
        for _ in range(tries):
            a, x, b, y = draw.choice(sorted(missing, key=repr))
            c = {k: draw.choice(v) for k, v in axes.items()}
            c[a], c[b] = x, y
            if allowed(c) and (best is None or len(pairs_of(c) & missing) > len(pairs_of(best) & missing)):
                best = c
        idle += 1
        if best and pairs_of(best) & missing:
            chosen.append(best)
            missing -= pairs_of(best)
            idle = 0
    return chosen


def faults(data):
    """What is broken on purpose is noticed."""
    c = {"strategy": "fsdp 3", "world": 2, "recompute": "none", "passes": 2, "unit": "block", "degree": "all", "reshard": True, "prefetch": 1,
         "sync": True, "model": "gpt", "opt": "sgd", "clip": 0.3, "ema": False, "freeze": False, "batch": 12, "offload": "none"}
    alone = run(maths_flags(c, data))
    for name in ("ddp", "fsdp 1", "fsdp 2", "fsdp 3"):
        for fault in ("reduce", "micro") if name == "ddp" else ("reduce", "gather", "norm", "micro"):
            flags = maths_flags(c, data) + way_flags(dict(c, strategy=name))
            wrong = first_difference(run(flags, {"DPTRAIN_TEST_FAULT": fault}), alone)
            check(wrong and not wrong.startswith("exit"), "%s with a broken %s: %s" % (name, fault, wrong or "nothing is noticed"))


    for name in ("ddp", "fsdp 3"):
        flags = maths_flags(c, data) + way_flags(dict(c, strategy=name, offload="activation param optim"))
        wrong = first_difference(run(flags, {"DPTRAIN_TEST_FAULT": "offload"}), alone)
        check(wrong and not wrong.startswith("exit"), "%s with a broken offload: %s" % (name, wrong or "nothing is noticed"))


def every(axes, part):
    """All combinations, or of part "K/N" every Nth of them, the Kth of each, in an order drawn once for all parts."""
    combinations = (dict(zip(axes, values)) for values in itertools.product(*axes.values()))
    allowed = [c for c in combinations if is_run(c)]
    k, _, n = (part or "1/1").partition("/")
    random.Random(1).shuffle(allowed)
    return allowed[int(k) - 1::int(n)]


def name_of(c):
    return " ".join("%s=%s" % (k, c[k]) for k in c)


def main():
    axes = dict(WAYS, **MATHS)
    with Folder() as tmp:
        data = {"gpt": os.path.join(tmp, "words"), "resnet20": os.path.join(tmp, "images")}
        for folder in data.values():
            os.mkdir(folder)
        make_words(data["gpt"])
        make_set(data["resnet20"], 60, 7, size=10)
        if "--full" in sys.argv:
            chosen = every(axes, "".join(sys.argv[sys.argv.index("--full") + 1:][:1]))
        else:
            chosen = cover(axes, is_run)
        alone = {}
        for c in chosen:
            maths = tuple(c[k] for k in MATHS)
            if maths not in alone:
                alone[maths] = run(maths_flags(c, data))
                check(not isinstance(alone[maths], str), "one rank, %s: %s" % (maths, alone[maths]))
            if not isinstance(alone[maths], str):
                wrong = first_difference(run(maths_flags(c, data) + way_flags(c)), alone[maths])
                check(not wrong, "%s: %s" % (name_of(c), wrong))
        faults(data)
        print("%d combinations, %d runs on one rank" % (len(chosen), len(alone)))
    finish("strategies")


if __name__ == "__main__":
    main()
