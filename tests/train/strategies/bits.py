# SPDX-License-Identifier: Apache-2.0
"""With --deterministic the bits of a run depend neither on the number of ranks nor on what is sharded: one digest of
losses, gradient norms and weights (and moments, where a checkpoint is written) over strategies and world sizes with
equal global batch, -b and --threads. Leaves are ragged here, parts of ranks uneven, the last batch of an epoch smaller.
--full tries every strategy on every world size with every model and type, on one machine and on two (network
namespaces, ucx): about 380 runs; --full K/N every Nth of them, from the Kth on."""
import contextlib
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", *folder) for folder in ((), ("..", "nodes"))]
from helper import Folder, check, digest, dptrain, fast, finish, make_set
from jobs import ended
from spaces import Spaces, has_transport

GPT = ["--model", "gpt2-124m", "--no-tie-weights", "--n-layer", 3, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--vocab-size", 61, "--dropout", 0.1,
       "--synthetic", "--max-steps", 3]
MODELS = {
    "gpt": [*GPT, "--opt", "adamw", "--clip-grad-norm", 0.5, "--global-batch-size", 21, "-b", 2],   # 11 leaves, the last has one sample
    "gpt-tied": [*GPT[:2], "--tie-weights", *GPT[3:], "--opt", "lamb", "--lr", 0.01, "--global-batch-size", 16, "-b", 2],
    "resnet20": ["--model", "resnet20", "--opt", "lars", "--lr", 0.1, "--global-batch-size", 24, "-b", 4, "--epochs", 1],
}
WAYS = {"ddp": ["--strategy", "ddp"]}
WAYS.update({"fsdp %d" % stage: ["--strategy", "fsdp", "--zero-stage", stage] for stage in (1, 2, 3)})
WAYS.update({"pdp %d" % s: ["--strategy", "pdp", "--pp-stages", s] for s in (1, 2, 3)})
WAYS.update({"pdp %d zero" % s: [*WAYS["pdp %d" % s], "--zero-stage", 1, "--pp-schedule", "gpipe"] for s in (1, 2)})
WAYS["dp"] = ["--strategy", "dp"]
WAYS["dp offloaded"] = [*WAYS["dp"], "--activation-offload", "--param-offload"]
WAYS["pdp 2 offloaded"] = [*WAYS["pdp 2"], "--activation-offload", "--param-offload", "--optim-offload"]
WAYS["pdp 1 offloaded"] = [*WAYS["pdp 1"], "--activation-offload"]
WAYS.update({"hsdp %d" % stage: ["--strategy", "fsdp", "--zero-stage", stage, "--shard-degree", 2] for stage in (1, 3)})
TIED_APART = [way for way in WAYS if way[:3] == "pdp" and way[4] != "1"]    # both ends of a pipeline add to a tied table
MOST = [("ddp", 2), ("fsdp 1", 3), ("fsdp 2", 4), ("fsdp 3", 8), ("hsdp 3", 4), ("pdp 2", 4), ("pdp 3", 3), ("pdp 2 zero", 4), ("dp", 1),
        ("dp offloaded", 1), ("pdp 2 offloaded", 2), ("pdp 1 offloaded", 2)]
FEW = [("ddp", 3), ("fsdp 3", 3)]
CUT = [("pdp 2", 2)]


def worlds(way):
    if way[:2] == "dp":
        return [1]
    if way[0] == "h":
        return [4, 8]
    multiple = int(way[4]) if way[:3] == "pdp" else 1
    return [w for w in (2, 3, 4, 8) if w % multiple == 0]


ALL = [(way, world) for way in WAYS for world in worlds(way)]


def digest_of(flags, spaces=None):
    """Digest of a run's results, by ranks on one machine or (spaces) on two; an error text if it fails."""
    with Folder() as runs:
        flags = [*flags, "--deterministic", "--runs-dir", runs, "--report-to", "none", "--workers", 0]
        if spaces:
            meet = ["--nnodes", 2, "--master-addr", spaces.address[0], "--comm", "ucx"]
            codes, texts = ended("bits", [spaces.start(i, *flags, *meet, "--node-rank", i) for i in range(2)])
        else:
            p = dptrain(*flags)
            codes, texts = [p.returncode], [p.stderr]
        return "exit %s: %s" % (codes, texts) if any(codes) else digest(runs)


def value(flags, name):
    return flags[flags.index(name) + 1]


def cut(flags, way, world):
    """Returns flags with a per-rank batch such that the parts of a rank are the leaves of the run on one rank."""
    whole, leaf = value(flags, "--global-batch-size"), value(flags, "-b")
    if way[:2] == "dp":
        each = -(-whole // leaf) * leaf
        return ["-b", each, "--dp-devices", each // leaf]
    if way[:3] != "pdp":
        return []
    stages = int(way[4])
    each = stages * -(-whole // (world * leaf)) * leaf      # for a pipeline: complete leaves
    return ["-b", each // stages, "--microbatches", each // leaf]


class Bits:
    def __init__(self, models, spaces):
        self.models, self.spaces, self.alone = models, spaces, {}

    def of_one_rank(self, name):
        if name not in self.alone:
            self.alone[name] = digest_of(self.models[name])
            check(not self.alone[name].startswith("exit"), "%s, one rank: %s" % (name, self.alone[name]))
        return self.alone[name]

    def judge(self, name, way, world, machines):
        flags, alone = self.models[name], self.of_one_rank(name)
        got = digest_of([*flags, "--nproc-per-node", world // machines, *WAYS[way], *cut(flags, way, world)], self.spaces if machines > 1 else None)
        check(got == alone, "%s, %s on %d ranks of %d machines: %s, on one rank %s" % (name, way, world, machines, got, alone))


def chosen(model, last):
    """Cases of a model, in the last type or in the others."""
    if "--full" not in sys.argv:
        return [(*run, 1) for run in (MOST if model == "gpt" and last else FEW + CUT if model == "resnet20" else FEW)]
    return [(*run, 1) for run in ALL] + [(way, world, 2) for way, world in ALL if world % 2 == 0]


def part_of(runs):
    """--full K/N: the Kth of every N."""
    k, _, n = ("".join(sys.argv[sys.argv.index("--full") + 1:][:1]) if "--full" in sys.argv else "").partition("/")
    return runs[int(k) - 1::int(n)] if n else runs


def two_machines():
    if "--full" not in sys.argv:
        return contextlib.nullcontext()
    if os.geteuid() or not has_transport("ucx"):
        print("two machines: skipped (root and the ucx transport are needed)")
        return contextlib.nullcontext()
    return Spaces()


def main():
    backend = fast()
    bf16 = "bf16" in "".join(line for line in dptrain("backends").stdout.splitlines() if line.startswith("cpu"))
    precisions = ["fp64"] if "ref" in backend else ["fp32"] + ["bf16"] * bf16
    with Folder() as tmp, two_machines() as spaces:
        MODELS["resnet20"] += ["--data-path", make_set(tmp, 58, 4, size=10)]
        bits = Bits({(name, p): [*backend, *flags, "--precision", p] for name, flags in MODELS.items() for p in precisions}, spaces)
        runs = [(name, *run) for name in bits.models for run in chosen(name[0], name[1] == precisions[-1])]
        runs = part_of([r for r in runs if (r[3] == 1 or spaces) and not (r[0][0] == "gpt-tied" and r[1] in TIED_APART)])
        for k, run in enumerate(runs):
            bits.judge(*run)
            if "--full" in sys.argv and k % 20 == 19:
                print("%d of %d runs" % (k + 1, len(runs)), flush=True)
        name = ("resnet20", precisions[-1])
        check(digest_of([*bits.models[name], "-b", 3]) != bits.of_one_rank(name), "other leaves give the same bits: the digest compares nothing")
    finish("bits")


main()
