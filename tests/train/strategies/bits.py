"""With --deterministic the bits of a run do not depend on how many ranks make it, nor on what they share out: one digest
of losses, gradient norms and weights (moments too, where a checkpoint is kept) over strategies and worlds, where global
batch, -b and --threads are equal. Leaves are ragged here, parts of ranks uneven, the last batch of an epoch shorter."""
import hashlib
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from helper import Folder, check, dptrain, fast, finish, make_set, read_run

GPT = ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--vocab-size", 61, "--dropout", 0.1,
       "--synthetic", "--max-steps", 3]
MODELS = {
    "gpt": [*GPT, "--opt", "adamw", "--clip-grad-norm", 0.5, "--global-batch-size", 21, "-b", 2],   # 11 leaves, the last of one sample
    "gpt-tied": [*GPT, "--tie-weights", "--opt", "lamb", "--lr", 0.01, "--global-batch-size", 16, "-b", 2],
    "resnet20": ["--model", "resnet20", "--opt", "lars", "--lr", 0.1, "--global-batch-size", 24, "-b", 4, "--epochs", 1],
}
WAYS = {"ddp": ["--strategy", "ddp"]}
WAYS.update({"fsdp %d" % stage: ["--strategy", "fsdp", "--zero-stage", stage] for stage in (1, 2, 3)})
WAYS.update({"hsdp %d" % stage: ["--strategy", "fsdp", "--zero-stage", stage, "--shard-degree", 2] for stage in (1, 3)})
MOST = [("ddp", 2), ("fsdp 1", 3), ("fsdp 2", 4), ("fsdp 3", 8), ("hsdp 3", 4)]
FEW = [("ddp", 3), ("fsdp 3", 3)]
ALL = [(way, world) for way in WAYS for world in (2, 3, 4, 8) if way[0] != "h" or world in (4, 8)]


def digest(flags):
    """Of everything that a run leaves; a text when it fails."""
    with Folder() as tmp:
        p = dptrain(*flags, "--deterministic", "--runs-dir", os.path.join(tmp, "runs"), "--report-to", "none", "--workers", 0)
        if p.returncode:
            return "exit %d: %s" % (p.returncode, p.stderr)
        h = hashlib.sha256()
        series = read_run(os.path.join(tmp, "runs"))["series"]
        for key in ("train/loss", "train/grad_norm"):
            for step, v in sorted(series[key, -1].items()):
                h.update(struct.pack("<qd", step, v))
        for folder, _, names in sorted(os.walk(tmp)):
            for name in sorted(n for n in names if n.endswith(".safetensors")):
                with open(os.path.join(folder, name), "rb") as f:
                    h.update(name.encode() + f.read())
        return h.hexdigest()


def check_model(name, flags, runs):
    alone = digest(flags)
    check(not alone.startswith("exit"), "%s, one rank: %s" % (name, alone))
    for way, world in runs:
        got = digest([*flags, "--nproc-per-node", world, *WAYS[way]])
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
                runs = ALL if "--full" in sys.argv else MOST if name == "gpt" and precision == precisions[-1] else FEW
                one = check_model("%s, %s" % (name, precision), [*backend, *flags, "--precision", precision], runs)
        other = digest([*backend, *flags, "--precision", precision, "-b", 3])
        check(other != one, "other leaves, the same bits: nothing is compared")
    finish("bits")


main()
