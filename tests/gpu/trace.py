# SPDX-License-Identifier: Apache-2.0
"""--trace-steps on a device: in each traced step every node of the program is one span of its stream, spans of a
stream do not overlap, collectives have separate rows and overlap the backward pass; the phases of the compute stream
fill the step. The losses equal those of a run without a trace."""
import collections
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import BUILD, Folder, check, dptrain, environment, finish, read_run, skip

os.environ["XDG_CACHE_HOME"] = "/dev/null"  # the fakes must not use the user's cache
FAKE = os.path.join(BUILD, "tests", "fakes", "cuda", ".libs")
ENV = {"DPTRAIN_BACKEND_PATH": FAKE, "DPTRAIN_FAKE_DEVICES": "2"}
NET = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 16, "--block-size", 8, "--vocab-size", 32, "--synthetic",
       "--seq-len", 8, "-b", 3, "--backend", "cuda", "--threads", 1, "--system-interval", 0, "--strategy", "fsdp"]
STEPS = (2, 3)


def losses(folder):
    return read_run(folder)["series"][("train/loss", -1)]


def spans(runs, name):
    """Returns {(rank, step): {row: spans, by time}}."""
    p = subprocess.run([os.path.join(BUILD, "dptrack"), "trace", name, "--logdir", runs], env=environment(), timeout=60,
                       stdout=subprocess.PIPE, universal_newlines=True, check=True)
    events = json.loads(p.stdout)["traceEvents"]
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for e in sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["ts"], e["dur"])):
        found[e["pid"], e["args"]["step"]][rows[e["pid"], e["tid"]]].append(e)
    return found


def nodes_of_step():
    """The nodes of the training program, as planned for rank 0."""
    said = dptrain("plan", *[f for f in NET if f not in ("--system-interval", 0)], "--nproc-per-node", 2, env=ENV).stdout
    return next(int(line.split()[2]) for line in said.splitlines() if line.startswith("program train-"))


def check_step(about, rows, want):
    """want: the number of nodes; None: another rank, which has other tensors."""
    nodes = collections.Counter()
    for row, own in rows.items():
        if row in ("step", "writer") or row.startswith("loader"):
            continue
        nodes.update(e["args"]["node"] for e in own)
        for a, b in zip(own, own[1:]):
            check(a["ts"] + a["dur"] <= b["ts"] + 1, "%s: %s and %s overlap on stream %s" % (about, a["name"], b["name"], row))
    check(want in (None, len(nodes)) and set(nodes.values()) == {1}, "%s: %d nodes of %s, as often as %s" % (
        about, len(nodes), want, set(nodes.values())))
    check({"compute", "comm", "gather"} <= set(rows), "%s: rows %s" % (about, sorted(rows)))
    check(all(e["cat"] == "comm" for e in rows["gather"]), "%s: the category of collectives" % about)
    check({"forward", "backward", "optimizer"} <= {e["cat"] for e in rows["step"]}, "%s: phases of the step" % about)


def during_backward(rows):
    """Whether a collective began before the end of the backward pass."""
    ends = [e["ts"] + e["dur"] for e in rows["compute"] if e["cat"] == "backward"]
    return any(e["ts"] < max(ends) for row in ("comm", "gather") for e in rows[row] if "reduce" in e["name"])


def main():
    if not os.path.exists(os.path.join(FAKE, "libnccl.so.2")):
        skip("the fake of NCCL was not built (no CUDA toolkit, or no header of NCCL)")
    want = nodes_of_step()
    with Folder() as traced, Folder() as plain:
        for folder, more in ((traced, ["--trace-steps", "%d:%d" % STEPS]), (plain, [])):
            p = dptrain(*NET, "--nproc-per-node", 2, "--max-steps", 4, "--run-name", "t", "--runs-dir", folder, *more, env=ENV)
            check(p.returncode == 0, "exit %d: %s" % (p.returncode, p.stderr[-1000:]))
        check(losses(traced) == losses(plain), "a traced run has the losses of an untraced one")
        found = spans(traced, "t")
        check(set(found) == {(r, s) for r in (0, 1) for s in STEPS}, "ranks and steps: %s" % sorted(found))
        for (rank, step), rows in sorted(found.items()):
            check_step("rank %d, step %d" % (rank, step), rows, None if rank else want)
        check(any(during_backward(rows) for rows in found.values()), "collectives overlap the backward pass: %s" % sorted(
            {e["name"] for rows in found.values() for row in ("comm", "gather") for e in rows[row]}))
    finish("trace")


main()
