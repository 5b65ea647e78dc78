# SPDX-License-Identifier: Apache-2.0
"""The bytes that a step sends follow from sizes and strategy (tests/train/strategies/bytes.py) whatever the transport:
two machines (network namespaces) with two ranks each, over ucx and Open MPI, and between (fake) devices. The bytes to
the other machine are the minimum for any algorithm: with n ranks on N machines of l, 2 (N - 1)/N of G/l for a sum,
half of that for a gather or scatter."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train", "strategies"))

import bytes as sizes
from helper import BUILD, Folder, check, finish, skip
from jobs import ended
from mpirun import HOSTS, Mpirun
from spaces import Spaces, has_transport

RANKS, NODES, LOCAL = 4, 2, 2
FAKE = os.path.join(BUILD, "tests", "fakes", "cuda", ".libs")
CASES = [  # stage of ZeRO (0: ddp), shard degree, flags
    (0, None, ["--strategy", "ddp"]),
    (1, None, ["--strategy", "fsdp", "--zero-stage", 1]),
    (2, None, ["--strategy", "fsdp", "--zero-stage", 2]),
    (3, None, ["--strategy", "fsdp"]),
    (3, 2, ["--strategy", "fsdp", "--shard-degree", 2]),
]


def to_others(stage, degree):
    """A rank's bytes to the other machine. Shards of neighbours stay on one machine: only their sums cross."""
    g, w, f, b = sizes.sizes(True, False)
    if stage == 0:
        return 2 * (NODES - 1) * g // NODES // LOCAL
    if degree:
        return 2 * (NODES - 1) * (g // degree) // NODES
    return (NODES - 1) * (g + (w if stage < 3 else f + b)) // NODES // LOCAL


def judge(name, runs, stage, degree):
    got, far = (sizes.sent(runs, RANKS, key) for key in ("comm/bytes", "comm/bytes_nodes"))
    want, want_far = RANKS * sizes.expected(RANKS, stage, True, False, degree=degree), RANKS * to_others(stage, degree)
    check(abs(sum(got) - want) <= RANKS * sizes.SMALL, "%s: sent %s bytes, expected from the sizes %d each" % (name, got, want // RANKS))
    check(0 <= sum(far) - want_far <= RANKS * sizes.SMALL, "%s: sent %s bytes to the other machine, expected from the sizes %d each" % (name, far, want_far // RANKS))


def judge_pipelines(name, runs):
    """A pipeline is on one machine: only sums cross."""
    got, far = (sizes.sent(runs, RANKS, key) for key in ("comm/bytes", "comm/bytes_nodes"))
    want_far = sizes.pipelines_sums()
    want = [s + sizes.pipelines_crossing() for s in want_far]
    for what, have, asked in (("in all", got, want), ("to the other machine", far, want_far)):
        check(all(0 <= h - a <= sizes.SMALL for h, a in zip(have, asked)), "%s: sent %s bytes %s, expected from the sizes %s" % (name, have, what, asked))


def run_ucx(spaces, flags, env=None):
    return [spaces.start(i, *flags, "--nnodes", NODES, "--nproc-per-node", LOCAL, "--master-addr", spaces.address[0], "--node-rank", i, "--comm", "ucx",
                         env={**env, "NCCL_HOSTID": str(i)} if env else None)
            for i in range(NODES)]


def devices(spaces):
    """A smaller network, because the fake device is slow; NCCL_HOSTID makes NCCL treat one machine as two."""
    if not os.path.exists(os.path.join(FAKE, "libnccl.so.2")):
        return
    sizes.net(256, 128, 64, 4, 1)
    with Folder() as modules:
        for folder, name in ((FAKE, "dptrain_cuda.so"), (os.path.join(BUILD, ".libs"), "dptrain_ucx.so")):
            os.symlink(os.path.join(folder, name), os.path.join(modules, name))
        env = {"DPTRAIN_BACKEND_PATH": modules, "XDG_CACHE_HOME": "/dev/null", "DPTRAIN_FAKE_DEVICES": str(LOCAL)}
        for stage, degree, more in (CASES[0], CASES[4]):
            trained("nccl, " + " ".join(map(str, more)), lambda flags: run_ucx(spaces, [*flags, "--backend", "cuda"], env),
                    ["--tie-weights", *more], lambda runs: judge("nccl", runs, stage, degree))


def trained(name, begin, flags, judges):
    with Folder() as runs:
        codes, texts = ended(name, begin([*sizes.flags_of(RANKS, ["--precision", "fp32", *flags]), "--runs-dir", runs]))
        if check(not any(codes), "%s: exit codes %s: %s" % (name, codes, texts)):
            judges(runs)


def main():
    if not has_transport("ucx"):
        skip("the ucx transport is not built (Debian: libucx-dev)")
    with Spaces() as spaces, Folder() as tmp:
        spaces.give_names(HOSTS)
        ways = {"ucx": lambda flags: run_ucx(spaces, flags)}
        if has_transport("mpi") and shutil.which("mpirun"):
            ways["mpi"] = lambda flags: [Mpirun(spaces, tmp).start(*flags, "--comm", "mpi")]
        for transport, begin in ways.items():
            for stage, degree, more in CASES:
                name = "%s, %s" % (transport, " ".join(map(str, more)))
                trained(name, begin, ["--tie-weights", *more], lambda runs: judge(name, runs, stage, degree))
            trained(transport + ", pdp", begin, sizes.PIPELINES, lambda runs: judge_pipelines(transport + ", pdp", runs))
        devices(spaces)
    finish("bytes between machines")


main()
