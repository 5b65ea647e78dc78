# SPDX-License-Identifier: Apache-2.0
"""What a slow link costs each strategy, by size of the model and batch (article 4): the time of a step over a link of 200 Mbit/s
divided by that over 2 Gbit/s, measured between two network namespaces whose link is shaped (TBF), one rank and one core each;
and planned for 100 Gbit/s against NVLink, 8 A100. Two cores show DDP and FSDP. A pipeline
of two stages spans both machines here, so its activations cross the link; in the article both stages share a machine, which
needs four cores. The article's ratios are images."""
import json
import os
import subprocess

from record import median_of
from spaces import Spaces, has_transport

WAYS = {"DDP": ["--strategy", "ddp"], "FSDP": ["--strategy", "fsdp"], "PDP": ["--strategy", "pdp", "--pp-stages", 2, "--microbatches", 4]}
FAST, SLOW = 2e9, 2e8


def shape(spaces, rate):
    for i, name in enumerate(spaces.names):
        subprocess.run(["tc", "-n", name, "qdisc", "replace", "dev", spaces.wire[i], "root", "tbf", "rate", "%dbit" % rate, "burst", "%d" % max(65536, rate / 2000),
                        "latency", "50ms"], check=True)


def planned(s):
    out = s.tool("plan", "--map", "--hardware", "a100-40gb-x8", "--json", "--explain")
    if not out:
        return
    t = s.table("planned: samples/s on NVLink divided by those on 100 Gbit/s, of the fastest strategy", "ratio", ["batch %d" % b for b in (8, 16, 32, 64, 128, 256)])
    at = {(c["model"], c["batch_size"], c["link"]): c for c in json.loads(out)["cells"]}
    for (model, batch, link), c in at.items():
        slow = at[model, batch, "slow"]
        if link == "fast" and c["strategy"] and slow["strategy"]:
            t.plan(model, "batch %d" % batch, c["samples_per_s"] / slow["samples_per_s"], "dptrain plan --map --hardware a100-40gb-x8")
    m = t.means()
    small, large = m.get(("125m", "batch 8")), m.get(("6.7b", "batch 8"))
    s.fact("the cost of a slow link rises with the model and falls with the batch", "confirmed" if small and large and large > m[("6.7b", "batch 64")] else
           "not confirmed", "batch 8: %.2f at 125m, %.2f at 6.7b; batch 64 at 6.7b: %.2f (plan)" % (small, large, m[("6.7b", "batch 64")]))


def measure(s):
    steps, repeats, sizes = (3, 1, [(2, 128)]) if s.quick else (8, 3, [(4, 256), (8, 512)])
    batches = [4] if s.quick else [4, 16]
    s.metrics = ["phase/step", "phase/comm_exposed"]
    t = s.table("measured: step on 200 Mbit/s divided by step on 2 Gbit/s", "ratio", list(WAYS))
    planned(s)
    if not has_transport("ucx") or os.geteuid():
        s.problems.append("shaped links: %s" % ("needs root" if os.geteuid() else "this build has no ucx transport"))
        return
    cores = sorted(os.sched_getaffinity(0))
    with Spaces() as spaces:
        def step(size, batch, way, rate, label):
            shape(spaces, rate)
            layers, width = size
            flags = ["--model", "gpt2-124m", "--no-tie-weights", "--n-head", 8, "--block-size", 128, "--seq-len", 128, "--opt", "sgd", "--n-layer", layers, "--n-embd",
                     width, "--vocab-size", 1024, "--synthetic", "--threads", 1, "--workers", 0, "--max-steps", steps, "--nnodes", 2, "--nproc-per-node", 1,
                     "--master-addr", spaces.address[0], "--comm", "ucx", "-b", batch, "--runs-dir", s.runs_dir, "--experiment", "study-bandwidth", "--run-name", label,
                     "--report-to", "none", *WAYS[way]]
            jobs = [spaces.start(i, *flags, "--node-rank", i, before=("taskset", "-c", cores[i % len(cores)])) for i in range(2)]
            said = [j.communicate(timeout=300) for j in jobs]
            folder = s.found(label)
            if any(j.returncode for j in jobs) or not folder:
                s.problems.append("%s: %s" % (label, said[0][1].strip().splitlines()[-1:]))
                return None, None
            run = s.recorded_run(folder)
            return median_of(run, "phase/step"), run["id"]

        def one(cell, turn):
            size, batch, way = cell
            name = "GPT %d x %d, batch %d" % (*size, batch)
            times = [step(size, batch, way, rate, "%s, %s, %d Mbit/s, %d" % (name, way, rate / 1e6, turn + 1)) for rate in (FAST, SLOW)]
            if all(v for v, _ in times):
                t.add(name, way, times[1][0] / times[0][0], times[0][1])
                t.cell(name, way).runs.append(times[1][1])
        s.turns([(size, batch, way) for size in sizes for batch in batches for way in WAYS], repeats, one)
    m = t.means()
    rows = [r for r in t.rows if all((r, w) in m for w in WAYS)]
    if rows:
        least = sum(m[r, "PDP"] == min(m[r, w] for w in WAYS) for r in rows)
        s.fact("PDP suffers least from a slow link", "not testable here", "in %d of %d rows, with the stages on two machines instead of one" % (least, len(rows)))
