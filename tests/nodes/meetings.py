# SPDX-License-Identifier: Apache-2.0
"""A job on two machines, simulated by network namespaces: however the ranks are started and placed, the losses are
those of one machine; and ranks that cannot connect give the reason in one line."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))

from helper import Folder, check, digest, dptrain, fast, finish, read_run, skip
from jobs import GPT, alone, ended, same
from spaces import Spaces, has_transport

def check_job(name, spaces, reference, flags, env=lambda i, k: None, ranks=(1, 1)):
    """One job of processes: ranks[i] of them in namespace i, distinguished by flags(i, k) and env(i, k)."""
    with Folder() as runs:
        job = [spaces.start(i, *GPT, "--runs-dir", runs, *flags(i), env=env(i, k)) for i in range(2) for k in range(ranks[i])]
        codes, texts = ended(name, job)
        if check(not any(codes), "%s: exit codes %s: %s" % (name, codes, texts)):
            same(name, runs, reference)
        check(sum(t.count("ucx between them") for t in texts) == 1, "%s: the transport is named once: %s" % (name, texts))


def bytes_sent(spaces, flags, steps):
    """(bytes to the other machine in the steps, by the ranks' count; all bytes on the wire)"""
    wide = ["--synthetic", "--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 256, "--block-size", 16, "--seq-len", 16, "--vocab-size", 64,
            "-b", 2, "--max-steps", steps, *fast()]
    with Folder() as runs:
        before = [spaces.sent(i) for i in range(2)]
        job = [spaces.start(i, *wide, *flags, "--node-rank", i, "--runs-dir", runs) for i in range(2)]
        codes, texts = ended("bytes", job)
        wire = sum(spaces.sent(i) - b for i, b in enumerate(before))
        check(not any(codes), "bytes: exit codes %s: %s" % (codes, texts))
        series = read_run(runs)["series"]
        return sum(v for r in range(4) for v in series.get(("comm/bytes_nodes", r), {}).values()), wire


def bytes_on_the_wire(spaces, flags):
    """The ranks' count equals the wire's within 2 %: compared over ten extra steps, which excludes start-up and the
    final checkpoint."""
    for way in (["--strategy", "ddp"], ["--strategy", "fsdp"]):
        few, many = (bytes_sent(spaces, [*flags, *way], steps) for steps in (5, 15))
        said, wire = (m - f for m, f in zip(many, few))
        gradients = 4 * 1.6e6 * 10  # f32, every step
        check(said > gradients and abs(wire - said) <= 0.02 * said, "bytes, %s: %d to the other machine by the ranks' count, %d on the wire" % (way, said, wire))


def meetings(spaces):
    reference = alone()
    two = ["--nnodes", 2, "--nproc-per-node", 2]
    at = ["--master-addr", spaces.address[0]]
    sent = spaces.sent(0)
    check_job("flags", spaces, reference, lambda i: [*two, *at, "--node-rank", i])
    check(spaces.sent(0) - sent > 100000, "the gradients went over the wire: %d bytes" % (spaces.sent(0) - sent))
    bytes_on_the_wire(spaces, [*two, *at])
    same_bits(spaces, [*two, *at])
    check_job("first come", spaces, reference, lambda i: [*two, "--rdzv-endpoint", spaces.address[1] + ":29777", "--comm-sockets", 1])
    check_job("fsdp", spaces, reference, lambda i: [*two, *at, "--node-rank", i, "--strategy", "fsdp"])
    check_job("fsdp in pairs across the machines", spaces, reference, lambda i: [*two, *at, "--node-rank", i, "--strategy", "fsdp", "--shard-degree", 2])
    check_job("uneven", spaces, reference, lambda i: ["--nnodes", 2, "--nproc-per-node", 3 - 2 * i, *at, "--node-rank", i])
    torch = lambda i, k: {"RANK": str(2 * i + k), "WORLD_SIZE": "4", "LOCAL_RANK": str(k), "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": spaces.address[0],
                          "MASTER_PORT": "29600", "TORCHELASTIC_RUN_ID": "nodes"}
    check_job("torchrun's variables", spaces, reference, lambda i: ["--comm", "ucx"], torch, (2, 2))
    ompi = lambda i, k: {"OMPI_COMM_WORLD_RANK": str(2 * i + k), "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": str(k),
                         "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "nodes"}
    check_job("Open MPI's variables", spaces, reference, lambda i: at, ompi, (2, 2))
    slurm = lambda i, k: {"SLURM_PROCID": str(2 * i + k), "SLURM_NTASKS": "4", "SLURM_LOCALID": str(k), "SLURM_NODEID": str(i), "SLURM_NNODES": "2",
                          "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_TASKS_PER_NODE": "2(x2)", "SLURM_STEP_NODELIST": "10.77.0.[1-2]",
                          "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0"}
    check_job("Slurm's variables", spaces, reference, lambda i: [], slurm, (2, 2))


def same_bits(spaces, flags):
    """With --deterministic, machines do not change the result: leaves of two samples, the last one smaller, uneven
    parts."""
    model = [*GPT, "--no-tie-weights", "--deterministic", "--global-batch-size", 11, "--workers", 0]
    with Folder() as runs:
        p = dptrain(*model, "--runs-dir", runs)
        alone = digest(runs) if check(p.returncode == 0, "one rank: " + p.stderr) else None
    for way in (["--strategy", "ddp"], ["--strategy", "fsdp"], ["--strategy", "fsdp", "--shard-degree", 2, "--zero-stage", 1],
                ["--strategy", "pdp", "--pp-stages", 2, "-b", 3, "--microbatches", 3]):
        with Folder() as runs:
            codes, texts = ended("bits", [spaces.start(i, *model, *flags, *way, "--node-rank", i, "--runs-dir", runs) for i in range(2)])
            if check(not any(codes), "bits, %s: exit codes %s: %s" % (way, codes, texts)):
                check(digest(runs) == alone, "two machines have the bits of one rank: %s" % way)


def refused(name, spaces, words, flags, nodes=(0, 1), env=lambda i: None, code=1):
    """Each of the started nodes prints one line of error with its words, and exits."""
    job = [spaces.start(i, *GPT, "--nnodes", 2, "--rdzv-timeout", 1.5, *flags(i), env=env(i)) for i in nodes]
    codes, texts = ended(name, job, 30)
    for i, c, t in zip(nodes, codes, texts):
        check(c == code and len([line for line in t.splitlines() if "error" in line]) == 1 and all(w in t for w in words[i]), "%s: node %d: exit %s: %s" % (name, i, c, t))


GARBAGE = """
import socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind((sys.argv[1], 29500)); s.listen()
print("ready", flush=True)
while True:
    c, _ = s.accept()
    c.sendall(bytes(range(256)) * 4)
"""


def refusals(spaces):
    a, b = spaces.address
    flags = lambda i: ["--master-addr", a, "--node-rank", i]
    refused("missing node 1", spaces, {0: ["node 1 of 2", a, "29500"]}, flags, nodes=[0])
    refused("missing node 0", spaces, {1: ["node 0", a, "29500"]}, flags, nodes=[1])
    refused("wrong master", spaces, {0: ["10.77.0.9", "not an address of this machine"]}, lambda i: ["--master-addr", "10.77.0.9", "--node-rank", i], nodes=[0], code=2)
    refused("nobody there", spaces, {1: ["10.77.0.9", "29500"]}, lambda i: ["--master-addr", "10.77.0.9", "--node-rank", i], nodes=[1])
    refused("no name", spaces, {0: ["nowhere.invalid"], 1: ["nowhere.invalid"]}, lambda i: ["--master-addr", "nowhere.invalid", "--node-rank", i], code=2)
    refused("loopback", spaces, {0: ["127.0.0.1", "only this machine reaches"], 1: ["127.0.0.1"]}, lambda i: ["--master-addr", "127.0.0.1", "--node-rank", i])
    refused("another key", spaces, {0: ["node 1 of 2"], 1: ["DPTRAIN_JOB_KEY"]}, flags, env=lambda i: {"DPTRAIN_JOB_KEY": "secret%d" % i})
    refused("no way to meet", spaces, {0: ["--master-addr", "--rdzv-endpoint"]}, lambda i: [], nodes=[0], code=2)
    refused("no node rank", spaces, {0: ["--node-rank"]}, lambda i: ["--master-addr", a], nodes=[0], code=2)
    refused("number beyond", spaces, {0: ["--node-rank 2"]}, lambda i: ["--master-addr", a, "--node-rank", 2], nodes=[0], code=2)
    refused("shm between machines", spaces, {0: ["--comm shm", "ucx"], 1: ["--comm shm", "ucx"]}, lambda i: [*flags(i), "--comm", "shm"], code=2)
    refused("other flags", spaces, 2 * [["--lr: rank 0 has 0.1", "rank 1 has 0.2"]], lambda i: [*flags(i), "--lr", (1 + i) / 10], code=2)
    refused("another strategy", spaces, 2 * [["--strategy: rank 0 has ddp, rank 1 has fsdp"]], lambda i: [*flags(i), "--strategy", ("ddp", "fsdp")[i]], code=2)
    refused("another program", spaces, 2 * [["disagree", "(allreduce, f64, ", "on rank 0 and no more on rank 1"]], flags, env=lambda i: i and {"DPTRAIN_TEST_FAULT": "reduce"})
    if has_transport("mpi"):
        refused("mpi without mpirun", spaces, 2 * [["--comm mpi", "mpirun"]], lambda i: [*flags(i), "--comm", "mpi"], code=2)
    with subprocess.Popen(spaces.command(0, sys.executable, "-c", GARBAGE, a), stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        refused("taken port", spaces, {0: ["port 29500", a, "used"]}, flags, nodes=[0])
        refused("random bytes", spaces, {1: ["29500", a, "another program"]}, flags, nodes=[1])
        other.kill()


if not has_transport("ucx"):
    skip("the ucx transport is not built (Debian: libucx-dev)")
with Spaces() as two_machines:
    meetings(two_machines)
    refusals(two_machines)
finish("nodes")
