# SPDX-License-Identifier: Apache-2.0
"""A rank's planned bytes of parameters, gradients and moments follow from the model's sizes: P parameters of w bytes
as nodes read them, 4 bytes each in the optimiser, o bytes of moments. DDP P(8 + o); ZeRO-1 P(w + 4) + P(o + m)/n;
ZeRO-2 Pw + P(4 + o + m)/n + two neighbouring buckets; ZeRO-3 P(8 + o)/n + gathered parameters and those in transit (m:
4 if w < 4). ZeRO-3 peaks at the classifier: it is gathered together with the block whose backward pass comes next, and
its gradient is complete. The classifier has a separate table, and embeddings are read in f32."""
import os
import re
import resource
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from helper import check, dptrain, finish, sanitized

WIDTH, VOCAB, CONTEXT, LAYERS = 768, 50257, 1024, 12
EMBEDDING = (VOCAB + CONTEXT) * WIDTH
MATRICES, VECTORS = 12 * WIDTH * WIDTH, 13 * WIDTH
HEAD, NORM = VOCAB * WIDTH, 2 * WIDTH
ALL = EMBEDDING + LAYERS * (MATRICES + VECTORS) + HEAD + NORM
MIB = 1048576
ADAMW = 8


def plan(more):
    p = dptrain("plan", "--synthetic", "--model", "gpt2-124m", "--no-tie-weights", "-b", 1, "--seq-len", 16, "--opt", "adamw", *more)
    check(p.returncode == 0, "%s: exit %d: %s" % (more, p.returncode, p.stderr))
    return {k: float(v) for k, v in re.findall(r"^  (\w+) +([0-9.]+) MiB$", p.stdout, re.M)}


def sent(stage, n, bf16):
    """Bytes a rank sends per step: DDP 2(n-1)/n G; ZeRO-1/2 (n-1)/n (G + W); ZeRO-3 (n-1)/n (G + F + B): blocks are
    gathered twice."""
    if stage == 0:
        return {"allreduce": 2 * (n - 1) / n * 4 * ALL}
    again = LAYERS * (low(bf16) * MATRICES + 4 * VECTORS) if stage == 3 else 0
    return {"reduce_scatter": (n - 1) / n * 4 * ALL, "all_gather": (n - 1) / n * (as_read(bf16) + again)}


def low(bf16):
    """Bytes of a number of a matrix or of the classifier as it is read."""
    return 2 if bf16 else 4


def as_read(bf16):
    return 4 * (EMBEDDING + LAYERS * VECTORS + NORM) + low(bf16) * (LAYERS * MATRICES + HEAD)


def masters(bf16):
    return LAYERS * MATRICES + HEAD if bf16 else 0


def expected(stage, n, bf16, prefetch=1):
    block = low(bf16) * MATRICES + 4 * VECTORS
    if stage == 0:
        return {"parameters": 4 * ALL, "gradients": 4 * ALL, "optimizer": ADAMW * ALL}
    if stage < 3:
        want = {"gathered": as_read(bf16), "shards": 4 * masters(bf16) / n, "optimizer": ADAMW * ALL / n}
        return dict(want, gradients=4 * ALL) if stage == 1 else dict(
            want, gradients=4 * ALL / n, buckets=4 * (EMBEDDING + MATRICES + VECTORS))
    return {"shards": 4 * ALL / n, "gradients": 4 * ALL / n, "optimizer": ADAMW * ALL / n,
            "gathered": low(bf16) * HEAD + 4 * NORM + prefetch * block, "buckets": 4 * (HEAD + NORM)}


def large():
    """A plan allocates no tensor memory: 175 G parameters on 1,024 ranks, and 500 layers with one unit per matrix."""
    got = plan(["--model", "gpt-175b", "--nnodes", 128, "--nproc-per-node", 8, "--strategy", "fsdp"])
    per_rank = 96 * (12 * 12288 ** 2 + 13 * 12288) + (2 * VOCAB + 2048 + 2) * 12288
    for name, each in (("shards", 4), ("optimizer", ADAMW)):
        check(abs(got.get(name, 0) - each * per_rank / 1024 / MIB) <= 1 + 1e-3 * got.get(name, 0), "gpt-175b: %s %s" % (name, got.get(name)))
    plan(["--n-layer", 500, "--nproc-per-node", 8, "--strategy", "fsdp", "--fsdp-unit", "layer"])
    most_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    check(sanitized() or most_mib <= 200, "plans of large models use %.0f MiB" % most_mib)


def units():
    """Units: what precedes the blocks, each matrix of the first block (four: nothing else hides them), each other
    block, and what follows the last; or each matrix of all blocks."""
    for unit, want in (("block", 1 + 4 + LAYERS - 1 + 1), ("layer", 2 + 4 * LAYERS + 1)):
        p = dptrain("plan", "--synthetic", "--model", "gpt2-124m", "--no-tie-weights", "-b", 1, "--seq-len", 16, "--strategy", "fsdp", "--nproc-per-node", 2,
                    "--fsdp-unit", unit, "--dump", "graph")
        found = set(re.findall(r"\bunit\.(\d+)\.", p.stdout))
        check(len(found) == want, "--fsdp-unit %s: %d units, not %d: %s" % (unit, len(found), want, p.stderr))


def tied():
    """A table shared with the classifier has one gradient, although two nodes add to it: first and last in the
    backward pass."""
    own = 4 * (ALL - HEAD)
    ways = [(["--strategy", "ddp"], own)] + [(["--strategy", "fsdp", "--zero-stage", stage], own / part) for stage, part in ((1, 1), (2, 4))]
    for way, gradients in ways:
        more = ["--tie-weights", "--nproc-per-node", 4, *way]
        compare(more, plan(more), {"gradients": gradients})


def stages():
    """All stages of a pipeline are listed, with the micro-batches that they hold, and the plan is that of the largest
    stage."""
    for schedule, held in (("1f1b", [4, 3, 2, 1]), ("gpipe", [8, 8, 8, 8])):
        p = dptrain("plan", "--synthetic", "--model", "gpt2-124m", "--no-tie-weights", "-b", 2, "--seq-len", 16, "--opt", "adamw", "--strategy", "pdp",
                    "--nproc-per-node", 4, "--microbatches", 8, "--pp-schedule", schedule)
        lines = re.findall(r"^stage (\d) of 4: ([0-9.]+) MiB planned, keeps (\d) of 8 micro-batches at once$", p.stdout, re.M)
        whole = re.search(r"^memory of a rank: ([0-9.]+) MiB", p.stdout, re.M)
        check([int(s) for s, _, _ in lines] == [0, 1, 2, 3] and [int(n) for _, _, n in lines] == held, "%s: %s: %s" % (schedule, p.stdout, p.stderr))
        check(whole and lines and float(whole.group(1)) == max(float(mib) for _, mib, _ in lines), "%s: the plan of the largest stage: %s" % (schedule, p.stdout))


def pipelines():
    """The largest stage, which has the tables: P_s parameters of its own, as in DDP; besides the sums of gradients,
    those that a micro-batch produces last, of both tables. With moments sharded over r pipelines (f32): P_s(4 + 4) +
    P_s o/r."""
    own, tables = EMBEDDING + LAYERS // 2 * (MATRICES + VECTORS), EMBEDDING
    for ranks, zero, want in ((2, [], {"parameters": 4 * own, "optimizer": ADAMW * own}),
                              (4, [], {"parameters": 4 * own, "optimizer": ADAMW * own, "allreduce": 2 * (2 - 1) / 2 * 4 * own}),
                              (4, ["--zero-stage", 1], {"gathered": 4 * own, "optimizer": ADAMW * own / 2, "reduce_scatter": 4 * own / 2,
                                                        "all_gather": 4 * own / 2})):
        more = ["--strategy", "pdp", "--pp-stages", 2, "--nproc-per-node", ranks, "--pp-partition", "%d,%d" % (LAYERS // 2, LAYERS // 2), *zero]
        compare(more, plan([*more, "-b", 2]), dict(want, gradients=4 * (own + tables), send=4 * 4 * 16 * WIDTH))


def compare(more, got, want):
    padding = 2 * 128 * 200 * 4 / MIB + 0.05 # at most 128 numbers for each of 200 tensors; and how the plan is printed
    for name, bytes_ in want.items():
        check(abs(got.get(name, 0) - bytes_ / MIB) <= padding,
              "%s: %s uses %.1f MiB, expected from the sizes %.1f" % (" ".join(map(str, more)), name, got.get(name, 0), bytes_ / MIB))


def main():
    large()
    units()
    tied()
    stages()
    pipelines()
    bf16s = [False] + [True] * any(line.startswith("cpu") and "bf16" in line for line in dptrain("backends").stdout.splitlines())
    for bf16 in bf16s:
        for n in (2, 4):
            for stage in range(4):
                more = ["--nproc-per-node", n, "--precision", "bf16" if bf16 else "fp32"]
                more += ["--strategy", "fsdp", "--zero-stage", stage] if stage else ["--strategy", "ddp"]
                compare(more, plan(more), dict(expected(stage, n, bf16), **sent(stage, n, bf16)))
    finish("shares")


main()
