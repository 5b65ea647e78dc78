# SPDX-License-Identifier: Apache-2.0
"""dptrain bench --bandwidth: every collective over sizes, within a machine and between two (network namespaces); and
the bytes per rank that dptrain bench prints."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))

from helper import check, dptrain, fast, finish
from jobs import ended
from spaces import Spaces, has_transport

COLLECTIVES = {"all-reduce", "reduce-scatter", "all-gather", "broadcast", "send and back", "barrier"}


def judge(name, text, ranks, nodes, transport):
    b = json.loads(text)
    check((b["ranks"], b["nodes"], b["transport"]) == (ranks, nodes, transport), "%s: %s" % (name, {k: b[k] for k in b if k != "collectives"}))
    check({r["collective"] for r in b["collectives"]} == COLLECTIVES, "%s: collectives" % name)
    for r in b["collectives"]:
        share = {"all-reduce": 2 * (ranks - 1) / ranks, "broadcast": 1, "send and back": 2, "barrier": 0}.get(r["collective"], (ranks - 1) / ranks)
        rate = share * r["bytes"] / r["seconds"] / 1e9 if r["seconds"] > 0 else -1
        check(r["seconds"] > 0 and abs((r["sent_gbs"] or 0) - rate) <= 1e-6 * rate, "%s: %s" % (name, r))


def sent():
    """A step of ddp on two ranks sends the gradients' bytes once (2 (n - 1)/n), and little else."""
    p = dptrain("bench", "--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 64, "--block-size", 16, "--vocab-size", 64, "-b", 2, "--steps", 3,
                "--nproc-per-node", 2, "--json", *fast())
    if check(p.returncode == 0, "bench: " + p.stderr):
        comm, gradients = json.loads(p.stdout)["comm"], 4 * (2 * 64 * 64 * 12 + 64 * 64 + 16 * 64)
        check(comm["transport"] == "shm" and comm["bytes_nodes"] == 0 and gradients <= comm["bytes"] <= 1.1 * gradients, "bench: %s of %d" % (comm, gradients))


p = dptrain("bench", "--bandwidth", "--nproc-per-node", 3, "--json")
if check(p.returncode == 0, "one machine: exit %d: %s" % (p.returncode, p.stderr)):
    judge("one machine", p.stdout, 3, 1, "shm")
p = dptrain("bench", "--bandwidth")
check(p.returncode == 2 and "--nproc-per-node 2" in p.stderr and len(p.stderr.splitlines()) == 1, "one rank: exit %d: %s" % (p.returncode, p.stderr))
sent()
if has_transport("ucx"):
    with Spaces() as spaces:
        flags = ["bench", "--bandwidth", "--json", "--nnodes", 2, "--nproc-per-node", 1, "--master-addr", spaces.address[0]]
        codes, texts = ended("two machines", [spaces.start(i, *flags, "--node-rank", i) for i in range(2)])
        if check(codes == [0, 0], "two machines: exit codes %s: %s" % (codes, texts)):
            judge("two machines", texts[0][:texts[0].rindex("}") + 1], 2, 2, "shm and ucx")
finish("bandwidth")
