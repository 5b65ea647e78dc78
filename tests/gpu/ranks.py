# SPDX-License-Identifier: Apache-2.0
"""Several ranks on the cuda backend, one fake device each, connected by the fake of NCCL. One, two and three ranks of
every strategy have one rank's losses in f64 to 1e-9; so have pipelines of two to four stages, `dp`, and offloading,
which has the same bits from a file. --deterministic has one rank's bits; runs with and without graphs, and with other
orders of the devices' work, have equal bits; comm/bytes follows from the sizes, with and without graphs; a killed rank
ends the others within five seconds, and they name it. In full: more strategies and orders.
`ranks.py PART...`: only those of PARTS. With DPTRAIN_GPU=1 all ranks share the first GPU, and use real NCCL."""
import os
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(HERE, "..", "train", "strategies")]
import bytes as sizes
from device import ENV, FAKE, FULL, REAL
from helper import Folder, check, dptrain, finish, read_run, skip, start
from ports import free_port

ENV = {**ENV, "DPTRAIN_FAKE_DEVICES": "4"}
NET = ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 16, "--block-size", 8, "--vocab-size", 32, "--synthetic",
       "--seq-len", 8, "--global-batch-size", 6, "--backend", "cuda", "--threads", 1, "--system-interval", 0]
SHARED = ["--share-gpu", "--device", 0] if REAL else []
CLIPPED = ["--opt", "adamw", "--clip-grad-norm", 0.1, "--max-steps", 2, "--precision", "fp64"]
LEAVES = ["--deterministic", "--no-tie-weights", "-b", 1, "--max-steps", 2, "--precision", "fp32"]

# flags, ranks
SAME = [
    (["-b", 3, "--strategy", "ddp", "--bucket-cap-mb", 0.02], 2),
    (["-b", 1, "--strategy", "fsdp", "--zero-stage", 2], 3),
    (["-b", 2, "--strategy", "fsdp", "--zero-stage", 3, "--activation-checkpointing", "full"], 2),
]
SAME_FULL = [
    (["-b", 2, "--strategy", "ddp"], 3),
    (["-b", 3, "--strategy", "fsdp", "--zero-stage", 1], 2),
    (["-b", 3, "--strategy", "fsdp", "--zero-stage", 3, "--no-reshard-after-forward"], 2),
    (["-b", 2, "--strategy", "fsdp", "--zero-stage", 3, "--shard-degree", 2, "--gather-prefetch", 2], 4),
]

# The same for a network divided into stages.
DEEP = ["--n-layer", 4, "--global-batch-size", 12, "--dropout", 0.1]
AWAY = ["--activation-offload", "--param-offload", "--optim-offload"]
FILE = ["--offload-dir", tempfile.gettempdir()]
PIPES = [
    (["-b", 12, "--strategy", "pdp", "--pp-stages", 3, "--microbatches", 4, "--activation-checkpointing", "full"], 3),
    (["-b", 6, "--strategy", "pdp", "--pp-stages", 2, "--microbatches", 3, "--pp-schedule", "gpipe", "--zero-stage", 1, "--model-ema"], 4),
    (["-b", 12, "--strategy", "dp", "--dp-devices", 3, *AWAY, *FILE], 1),
]
PIPES_FULL = [
    (["-b", 12, "--strategy", "pdp", "--pp-stages", 4, "--microbatches", 6], 4),
    (["-b", 12, "--strategy", "pdp", "--pp-stages", 2, "--microbatches", 5, *AWAY], 2),
    (["-b", 6, "--strategy", "pdp", "--pp-stages", 2, "--microbatches", 6, "--activation-checkpointing", "selective"], 4),
    (["-b", 4, "--strategy", "pdp", "--pp-stages", 1, "--microbatches", 2, "--zero-stage", 1], 3),
    (["-b", 6, "--strategy", "fsdp", *AWAY], 2),
    (["-b", 6, "--strategy", "fsdp", *AWAY, *FILE], 2),
]


def losses(name, flags, ranks, env=None):
    with Folder() as tmp:
        p = dptrain(*NET, *flags, "--nproc-per-node", ranks, *SHARED, "--runs-dir", tmp, timeout=400, env={**ENV, **(env or {})})
        if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr[-2000:])):
            return {}
        return read_run(tmp)["series"][("train/loss", -1)]


def same_numbers(common, rows):
    want = losses("one rank", common, 1)
    for flags, ranks in rows:
        name = " ".join(map(str, flags)) + " on %d ranks" % ranks
        got = losses(name, [*common, *flags], ranks)
        for step, loss in want.items():
            check(abs(got.get(step, 9e9) - loss) <= 1e-9 * abs(loss),
                  "%s: loss of step %d is %.17g, one rank's %.17g" % (name, step, got.get(step, 9e9), loss))


def leaves(size, ways):
    """One rank's bits, whichever rank has which leaves of the samples; two pipelines divide three leaves unevenly."""
    want = losses("one rank", [*LEAVES, "-b", size], 1)
    for flags, ranks, env in ways:
        check(losses("--deterministic", [*LEAVES, *flags], ranks, env) == want,
              "--deterministic: the bits of one rank on %d: %s" % (ranks, " ".join(map(str, flags))))


def same_bits():
    """The results depend neither on who has which samples, nor on how a step is enqueued, nor on the order of the
    devices' work."""
    leaves(1, [(["--strategy", "ddp"], 3, {}), (["--strategy", "fsdp"], 2, {"DPTRAIN_FAKE_SEED": "7"})])
    pipes = ["--strategy", "pdp", "--pp-stages", 2, "--microbatches", 2]
    leaves(2, [([*pipes, "-b", 2, "--zero-stage", 1], 4, {"DPTRAIN_FAKE_SEED": "3"})])
    step = ["-b", 3, "--max-steps", 1, "--precision", "bf16"]
    for name, flags, seeds in (("fsdp", [*step, "--strategy", "fsdp"], [5]),
                               ("pdp", [*step, *pipes, "--microbatches", 3], range(2, 12) if FULL else [6])):
        want = losses(name + ", graphs", flags, 2)
        check(losses(name + ", no graphs", [*flags, "--no-cuda-graphs"], 2) == want, "%s without graphs: the same bits" % name)
        for seed in [] if REAL else seeds:
            check(losses(name + ", another order", flags, 2, {"DPTRAIN_FAKE_SEED": str(seed)}) == want,
                  "%s in order %s: the same bits" % (name, seed))


def in_a_file():
    """Parameters and moments of several pieces have the bits of host memory, in any order of the device's work."""
    flags = ["-b", 1, "--global-batch-size", 1, "--vocab-size", 70000, "--max-steps", 2, "--precision", "fp32", "--opt", "adamw",
             "--param-offload", "--optim-offload"]
    want = losses("in host memory", flags, 1)
    for name, more, env in (("in a file", [], {}), ("in a file, no graphs", ["--no-cuda-graphs"], {"DPTRAIN_FAKE_SEED": "4"})):
        check(losses(name, [*flags, *FILE, *more], 1, env) == want, "%s: the bits of host memory" % name)


# flags, ZeRO's stage (0: ddp), 16 bits
SENT = [(["--strategy", "ddp", "--precision", "fp32"], 0, False), (["--strategy", "fsdp", "--precision", "bf16"], 3, True)]
SENT_FULL = [(["--strategy", "fsdp", "--zero-stage", 1, "--precision", "fp32"], 1, False),
             (["--strategy", "fsdp", "--precision", "fp32", "--no-cuda-graphs"], 3, False)]


def sent():
    """On two ranks the device's small sums count as those of hosts do."""
    sizes.net(256, 128, 64, 4, 1)
    for flags, stage, low in SENT + (SENT_FULL if FULL else []):
        name, want = " ".join(map(str, flags)), sizes.expected(2, stage, True, low)
        with Folder() as tmp:
            p = dptrain(*sizes.flags_of(2, ["--tie-weights", "--backend", "cuda", *SHARED, *flags]), "--nproc-per-node", 2, "--runs-dir", tmp,
                        env=ENV, timeout=400)
            if check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr[-2000:])):
                got = sizes.sent(tmp, 2)
                check(got == [want, want], "%s: sent %s bytes, expected from the sizes %d" % (name, got, want))


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def dead_rank():
    """There is no launcher: the surviving rank must notice by itself, while its device waits for the other's."""
    port = str(free_port())
    with Folder() as tmp:
        flags = [*NET, *SHARED, "--strategy", "ddp", "--precision", "fp32", "--max-steps", 100000, "-b", 3, "--runs-dir", tmp]
        ranks = [start(*flags, env={**ENV, "RANK": str(r), "WORLD_SIZE": "2", "LOCAL_RANK": str(r), "LOCAL_WORLD_SIZE": "2",
                                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}) for r in range(2)]
        try:
            runs = os.path.join(tmp, "default")
            check(until(lambda: os.path.isdir(runs) and os.listdir(runs)), "two ranks start to train")
            time.sleep(1)
            ranks[1].send_signal(signal.SIGKILL)
            killed = time.monotonic()
            _, said = ranks[0].communicate(timeout=30)
            took = time.monotonic() - killed
        finally:
            for p in ranks:
                p.kill()
                p.wait()
        check(took < 5, "the other rank ends within 5 s of the death, not %.1f" % took)
        check(ranks[0].returncode == 1 and said.splitlines()[-1:] == ["dptrain: error: rank 0: rank 1 died"],
              "exit %d: %s" % (ranks[0].returncode, said[-500:]))


PARTS = {
    "numbers": lambda: same_numbers([*CLIPPED, "-b", 6], SAME + (SAME_FULL if FULL else [])),
    "stages": lambda: same_numbers([*CLIPPED, *DEEP, "-b", 12], PIPES + (PIPES_FULL if FULL else [])),
    "bits": same_bits,
    "file": in_a_file,
    "bytes": sent,
    "death": dead_rank,
}


def main():
    if not REAL and not os.path.exists(os.path.join(FAKE, "libnccl.so.2")):
        skip("the fake of NCCL was not built (no CUDA toolkit, or no header of NCCL)")
    wanted = set(sys.argv[1:])
    for name, part in PARTS.items():
        if not wanted or name in wanted:
            part()
    finish("ranks " + " ".join(wanted) if wanted else "ranks")


main()
