# SPDX-License-Identifier: Apache-2.0
"""--trace-steps: a trace of some steps of two ranks, as `dptrack trace` prints it: one slice per rank and step, filled
by its parts, phases equal to those of phase/..., collectives and loader threads on separate rows, one clock."""
import sys
sys.dont_write_bytecode = True
import collections
import json
import os
import subprocess
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", f) for f in ("api", "train")]
import helper
import lib
from traced import FIRST, LAST, make_text, slices_of, trace_text, train

PHASES = ("data_wait", "h2d", "forward", "backward", "comm_exposed", "optimizer", "other")


def recorded(runs, name):
    """Returns phase/... by (phase, rank, step)."""
    r = subprocess.run([lib.PROGRAM, "export", name, "--series", "--json", "--logdir", runs], capture_output=True, text=True, timeout=60)
    rows = json.loads(r.stdout)
    return {(p["key"][6:], max(p["rank"], 0), p["step"]): p["value"] for p in rows if p["key"].startswith("phase/")}


def check_step(slices, threads, seconds, rank, step):
    own = [e for e in slices if e["pid"] == rank and e["args"]["step"] == step]
    (whole,) = [e for e in own if e["name"] == f"step {step}"]
    parts = sorted((e for e in own if threads[rank, e["tid"]] == "step" and e is not whole), key=lambda e: e["ts"])
    at, by = whole["ts"], collections.Counter()
    for e in parts:
        lib.check(abs(e["ts"] - at) < 1, f"rank {rank} step {step}: a gap before {e['name']}: {e['ts'] - at} us")
        at = e["ts"] + e["dur"]
        by[e["cat"]] += e["dur"] / 1e6
    lib.check(abs(at - whole["ts"] - whole["dur"]) < 1, f"rank {rank} step {step}: its parts end with the step")
    lib.check(abs(whole["dur"] / 1e6 - seconds["step", rank, step]) < 1e-5, f"rank {rank} step {step}: phase/step")
    for phase in PHASES:
        want = seconds[phase, rank, step]
        lib.check(abs(by[phase] - want) <= 0.01 * want + 3e-5, f"rank {rank} step {step}: {phase} {by[phase]} s in the trace, {want} s")
    nodes = {e["args"]["node"] for e in parts}
    lib.check(len(nodes) > 40, f"{len(nodes)} nodes")


def check_order(steps):
    """Steps of one rank, in order: none begins before the previous one ends, not even by a nanosecond (a viewer would
    nest it)."""
    for a, b in zip(steps, steps[1:]):
        lib.check(round(1000 * b["ts"]) >= round(1000 * a["ts"]) + round(1000 * a["dur"]), f"{b['name']} begins within {a['name']}")


def two_ranks(runs, text):
    train(runs, text, "--run-name", "two", "--nproc-per-node", "2", "--trace-steps", f"{FIRST}:{LAST}", slow_ms=20)  # its loader is active in each step
    (slices, threads), seconds = slices_of(trace_text(runs, "two")), recorded(runs, "two")
    lib.equal({e["args"]["step"] for e in slices}, set(range(FIRST, LAST + 1)), "steps")
    for rank in (0, 1):
        for step in range(FIRST, LAST + 1):
            check_step(slices, threads, seconds, rank, step)
        check_order([e for e in slices if e["pid"] == rank and e["name"].startswith("step ")])
        names = {name for (r, _), name in threads.items() if r == rank}
        lib.check({"step", "comm", "loader 0"} <= names, f"rows of rank {rank}: {names}")
        lib.check([e for e in slices if e["pid"] == rank and threads[rank, e["tid"]] == "comm" and e["cat"] == "comm"], "collectives")
    lib.equal(min(e["ts"] for e in slices), 0, "the clock begins with the trace")
    begins = [[e["ts"] for e in slices if e["pid"] == r and e["name"] == f"step {LAST}"][0] for r in (0, 1)]
    ends = [[e["ts"] + e["dur"] for e in slices if e["pid"] == r and e["name"] == f"step {LAST}"][0] for r in (0, 1)]
    lib.check(max(begins) < min(ends), f"ranks overlap on one clock: {begins} {ends}")


def others(runs, text):
    train(runs, text, "--run-name", "none")
    r = subprocess.run([lib.PROGRAM, "trace", "none", "--logdir", runs], capture_output=True, text=True, timeout=60)
    lib.equal((r.returncode, json.loads(r.stdout)["traceEvents"]), (0, []), "a run that was not traced")
    lib.check("--trace-steps" in r.stderr and r.stderr.count("\n") == 1, f"the message explains how to trace it: {r.stderr!r}")
    lib.check("10:13" in train(runs, text, "--trace-steps", "9:4", code=2), "steps that go backwards")
    lib.check("10:13" in train(runs, text, "--trace-steps", "a", code=2), "no steps")


def main():
    with helper.Folder() as folder:
        runs, text = os.path.join(folder, "runs"), make_text(folder)
        two_ranks(runs, text)
        others(runs, text)
    lib.finish("trace")


main()
