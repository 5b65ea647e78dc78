# SPDX-License-Identifier: Apache-2.0
"""Traced runs of small models, for trace.py and perfetto.py."""
import json
import os
import subprocess
import helper
import lib

FIRST, LAST = 6, 8


def train(runs, text, *flags, code=0, slow_ms=0):
    """slow_ms: minimum time to load each batch."""
    slow = {"DPTRAIN_TEST_SLOW_LOADER": str(slow_ms)} if slow_ms else {}
    line = [helper.program(slow), "--experiment", "traces", "--runs-dir", runs, "--data-path", text, "--tokenizer", "bytes", "--max-steps", "10",
            "--model", "gpt2-124m", "--n-layer", "2", "--n-head", "2", "--n-embd", "64", "--block-size", "32", "-b", "8", "--threads", "1",
            "--backend", "ref", "--precision", "fp64", "-j", "1", *flags]
    r = subprocess.run(line, capture_output=True, text=True, timeout=120, env=dict(os.environ, **slow))
    lib.equal(r.returncode, code, f"{flags}: {r.stderr}")
    return r.stderr


def trace_text(runs, name):
    r = subprocess.run([lib.PROGRAM, "trace", name, "--logdir", runs], capture_output=True, text=True, timeout=60)
    lib.equal(r.returncode, 0, r.stderr)
    return r.stdout


def make_text(folder):
    """A data set of one file."""
    text = os.path.join(folder, "text")
    os.mkdir(text)
    with open(os.path.join(text, "a.txt"), "w", encoding="ascii") as f:
        f.write("the quick brown fox jumps over the lazy dog\n" * 400)
    return text


def slices_of(text):
    """Returns the slices of a trace, and the name of each row by (rank, row)."""
    events = json.loads(text)["traceEvents"]
    return [e for e in events if e["ph"] == "X"], {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
