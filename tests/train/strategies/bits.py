"""With --deterministic the bits of a run do not depend on how many ranks make it, nor on what they share out: one digest
of losses, gradient norms and weights (moments too, where a checkpoint is kept) over strategies and worlds, where global
batch, -b and --threads are equal. Leaves are ragged here, parts of ranks uneven, the last batch of an epoch shorter."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from helper import Folder, check, digest, dptrain, fast, finish, make_set

GPT = ["--model", "gpt2-124m", "--no-tie-weights", "--n-layer", 3, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--vocab-size", 61, "--dropout", 0.1,
       "--synthetic", "--max-steps", 3]
MODELS = {
    "gpt": [*GPT, "--opt", "adamw", "--clip-grad-norm", 0.5, "--global-batch-size", 21, "-b", 2],   # 11 leaves, the last of one sample
    "gpt-tied": [*GPT[:2], "--tie-weights", *GPT[3:], "--opt", "lamb", "--lr", 0.01, "--global-batch-size", 16, "-b", 2],
    "resnet20": ["--model", "resnet20", "--opt", "lars", "--lr", 0.1, "--global-batch-size", 24, "-b", 4, "--epochs", 1],
}
WAYS = {"ddp": ["--strategy", "ddp"]}
WAYS.update({"fsdp %d" % stage: ["--strategy", "fsdp", "--zero-stage", stage] for stage in (1, 2, 3)})
WAYS.update({"pdp %d" % s: ["--strategy", "pdp", "--pp-stages", s] for s in (1, 2, 3)})
WAYS.update({"pdp %d zero" % s: [*WAYS["pdp %d" % s], "--zero-stage", 1, "--pp-schedule", "gpipe"] for s in (1, 2)})
WAYS["dp"] = ["--strategy", "dp"]
WAYS.update({"hsdp %d" % stage: ["--strategy", "fsdp", "--zero-stage", stage, "--shard-degree", 2] for stage in (1, 3)})
TIED_APART = [way for way in WAYS if way[:3] == "pdp" and way[4] != "1"]    # both ends of a pipeline add to a tied table
MOST = [("ddp", 2), ("fsdp 1", 3), ("fsdp 2", 4), ("fsdp 3", 8), ("hsdp 3", 4), ("pdp 2", 4), ("pdp 3", 3), ("pdp 2 zero", 4), ("dp", 1)]
FEW = [("ddp", 3), ("fsdp 3", 3)]
CUT = [("pdp 2", 2)]


def worlds(way):
    if way == "dp":
        return [1]
    if way[0] == "h":
        return [4, 8]
    multiple = int(way[4]) if way[:3] == "pdp" else 1
    return [w for w in (2, 3, 4, 8) if w % multiple == 0]


ALL = [(way, world) for way in WAYS for world in worlds(way)]


def digest_of(flags):
    """Of what a run leaves; a text when it fails."""
    with Folder() as runs:
        p = dptrain(*flags, "--deterministic", "--runs-dir", runs, "--report-to", "none", "--workers", 0)
        return "exit %d: %s" % (p.returncode, p.stderr) if p.returncode else digest(runs)


def value(flags, name):
    return flags[flags.index(name) + 1]


def cut(flags, way, world):
    """flags, with the batch of each rank such that its parts are the leaves of the run on one rank."""
    whole, leaf = value(flags, "--global-batch-size"), value(flags, "-b")
    if way == "dp":
        each = -(-whole // leaf) * leaf
        return ["-b", each, "--dp-devices", each // leaf]
    if way[:3] != "pdp":
        return []
    stages = int(way[4])
    each = stages * -(-whole // (world * leaf)) * leaf      # of a pipeline: whole leaves
    return ["-b", each // stages, "--microbatches", each // leaf]


def check_model(name, flags, runs):
    alone = digest_of(flags)
    check(not alone.startswith("exit"), "%s, one rank: %s" % (name, alone))
    for way, world in runs:
        if name.startswith("gpt-tied") and way in TIED_APART:
            continue
        got = digest_of([*flags, "--nproc-per-node", world, *WAYS[way], *cut(flags, way, world)])
        check(got == alone, "%s, %s on %d ranks: %s, on one rank %s" % (name, way, world, got, alone))
    return alone


def main():
    backend = fast()
    bf16 = "bf16" in "".join(line for line in dptrain("backends").stdout.splitlines() if line.startswith("cpu"))
    precisions = ["fp64"] if "ref" in backend else ["fp32"] + ["bf16"] * bf16
    with Folder() as tmp:
        MODELS["resnet20"] += ["--data-path", make_set(tmp, 58, 4, size=10)]
        for precision in precisions:
            for name, flags in MODELS.items():
                runs = ALL if "--full" in sys.argv else MOST if name == "gpt" and precision == precisions[-1] else FEW + CUT if name == "resnet20" else FEW
                one = check_model("%s, %s" % (name, precision), [*backend, *flags, "--precision", precision], runs)
        other = digest_of([*backend, *flags, "--precision", precision, "-b", 3])
        check(other != one, "other leaves, the same bits: nothing is compared")
    finish("bits")


main()
