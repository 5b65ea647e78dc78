# SPDX-License-Identifier: Apache-2.0
"""The bytes that a step sends, counted where they leave a rank (comm/bytes), follow from the model's sizes and the
strategy alone, to the byte: each parameter here fills complete ranges, so that there is no padding. Besides gradients
and parameters there are the results, the vote and the sums of squares; they are small sums, which every rank sends to
all others. tests/nodes/sent.py checks the same for the transports between machines."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from helper import Folder, check, dptrain, finish, read_run

F32, BF16 = 4, 2
RESULTS, VOTE, SUM_OF_SQUARES = 4 * 8, 8, 64
SMALL = 16384


def net(width, vocab, context, sequence, blocks):
    """Sets the constants of this file to the sizes of the trained model."""
    block = {"matrices": 12 * width * width, "vectors": 13 * width}
    tensors = 2 + 12 * blocks + 2  # tables, blocks, last norm; and the classifier of an untied model
    globals().update(WIDTH=width, VOCAB=vocab, CONTEXT=context, SEQUENCE=sequence, BLOCKS=blocks, BLOCK=block, TENSORS=tensors)


net(512, 512, 256, 8, 2)


def flags_of(ranks, more):
    return ["--synthetic", "--model", "gpt2-124m", "--n-layer", BLOCKS, "--n-head", 2, "--n-embd", WIDTH, "--block-size", CONTEXT,
            "--seq-len", SEQUENCE, "--vocab-size", VOCAB, "--global-batch-size", 2 * ranks, "--max-steps", 2, "--opt", "sgd",
            "--threads", 1, "--report-to", "none", *more]


def measured(ranks, more):
    """Bytes that each rank sent in a step, in the order of the ranks; every step sends the same."""
    with Folder() as runs:
        p = dptrain(*flags_of(ranks, more), "--nproc-per-node", ranks, "--runs-dir", runs)
        if not check(p.returncode == 0, "%s: exit %d: %s" % (more, p.returncode, p.stderr)):
            return None
        return sent(runs, ranks)


def sent(runs, ranks, key="comm/bytes"):
    series = read_run(runs)["series"]
    steps = [[series[(key, r)][step] for r in range(ranks)] for step in (1, 2)]
    check(steps[0] == steps[1], "%s: step 1 sent %s, step 2 %s" % (key, *steps))
    return steps[1]


def sizes(tied, bf16):
    """Sizes of G, W, F and B in bytes. In bf16, matrices of blocks and the classifier are read so, tables and vectors
    in f32."""
    low = BF16 if bf16 else F32
    tables, positions, head = VOCAB * WIDTH, CONTEXT * WIDTH, VOCAB * WIDTH
    block = BLOCK["matrices"] * low + BLOCK["vectors"] * F32
    last = 2 * WIDTH * F32
    gradients = F32 * (tables + positions + BLOCKS * sum(BLOCK.values()) + 2 * WIDTH + (0 if tied else head))
    kept = F32 * (tables + positions) + BLOCKS * block + last + (0 if tied else head * low)
    forward = F32 * (tables + positions) + BLOCKS * block + last + head * low # a tied table twice
    return gradients, kept, forward, BLOCKS * block


def expected(ranks, stage, tied, bf16, passes=1, sync=True, reshard=True, degree=None):
    g, w, f, b = sizes(tied, bf16)
    small = (RESULTS + VOTE) * (ranks - 1)
    s = degree or ranks
    if stage == 0:
        return 2 * (ranks - 1) * g // ranks + small
    small += (TENSORS + (not tied)) * SUM_OF_SQUARES * (s - 1)
    times = passes if stage >= 2 and sync else 1
    read = w if stage < 3 else passes * (f + b if reshard else w)
    r = ranks // s
    return (s - 1) * (times * g + read) // s + times * 2 * (r - 1) * (g // s) // r + small


PIPELINES = ["--no-tie-weights", "--strategy", "pdp", "--pp-stages", 2, "--microbatches", 4, "--pp-partition", "1,1"]


def pipelines_sums():
    """Two pipelines of two stages with one block each: bytes of each rank for its stage's gradients, 2 (r - 1)/r."""
    tables, head = VOCAB * WIDTH + CONTEXT * WIDTH, VOCAB * WIDTH + 2 * WIDTH
    own = [F32 * (sum(BLOCK.values()) + n) for n in (tables, head)]
    return [2 * (2 - 1) * own[r % 2] // 2 for r in range(4)]


def pipelines_crossing():
    """Once per micro-batch, forward from the first stage and backward from the last: one tensor of the pipeline's 2 x
    2 samples."""
    return F32 * WIDTH * SEQUENCE * 4


def pipelines():
    """Sharded moments: as ZeRO-1 over the pipelines. Results and sums of squares go over the world or the pipeline, to
    one rank more or less: they are small compared with the smallest matrix."""
    for zero in (0, 1):
        got = measured(4, [*PIPELINES, "--precision", "fp32", *(["--zero-stage", 1] if zero else [])])
        want = [s + pipelines_crossing() for s in pipelines_sums()]
        check(got and all(0 <= g - w <= SMALL for g, w in zip(got, want)), "pdp, zero stage %d: sent %s bytes, the sizes say %s" % (zero, got, want))


def devices():
    """The devices of one process send nothing."""
    with Folder() as runs:
        p = dptrain(*flags_of(1, ["--strategy", "dp", "--dp-devices", 2]), "--runs-dir", runs)
        series = read_run(runs)["series"]
        check(p.returncode == 0 and not any(v for (key, _), points in series.items() if key == "comm/bytes" for v in points.values()),
              "dp: exit %d, %s" % (p.returncode, p.stderr))


def main():
    cases = [(2, 0, {}), (2, 1, {}), (4, 2, {}), (4, 3, {}), (2, 3, {"tied": False}), (2, 3, {"reshard": False, "tied": False}),
             (2, 1, {"passes": 2}), (2, 2, {"passes": 2}), (2, 2, {"passes": 2, "sync": False}), (2, 3, {"passes": 2}),
             (4, 3, {"degree": 2}), (2, 1, {"bf16": True}), (2, 2, {"bf16": True, "tied": False}), (2, 3, {"bf16": True})]
    bf16 = any(line.startswith("cpu") and "bf16" in line for line in dptrain("backends").stdout.splitlines())
    for ranks, stage, c in cases:
        c = dict({"tied": True, "bf16": False}, **c)
        if c["bf16"] and not bf16:
            print("skipped: no backend computes in bf16")
            continue
        more = ["--tie-weights" if c["tied"] else "--no-tie-weights", "--precision", "bf16" if c["bf16"] else "fp32",
                "--grad-accum-steps", c.get("passes", 1)]
        more += ["--strategy", "ddp"] if stage == 0 else ["--strategy", "fsdp", "--zero-stage", stage]
        more += [] if c.get("sync", True) else ["--no-sync-each-batch"]
        more += [] if c.get("reshard", True) else ["--no-reshard-after-forward"]
        more += ["--shard-degree", c["degree"]] if "degree" in c else []
        got, want = measured(ranks, more), expected(ranks, stage, **c)
        if got is not None:
            check(got == ranks * [want], "%d ranks, %s: sent %s bytes, the sizes say %d" % (ranks, " ".join(map(str, more)), got, want))
    pipelines()
    devices()
    finish("bytes")


if __name__ == "__main__":
    main()
