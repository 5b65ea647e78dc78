# SPDX-License-Identifier: Apache-2.0
"""The speedup of a change, for runs with a known truth: factor, interval, phases, params, exports; and refused
requests."""
import sys
sys.dont_write_bytecode = True
import csv
import io
import json
import math
import os
import random
import subprocess
import xml.dom.minidom
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib

STEPS, WARMUP, BATCH = 60, 10, 4
T95 = {1: 12.706204736432095, 2: 4.302652729749462, 3: 3.182446305284263, 4: 2.7764451051977987}


def record(server, name, params, phases, noise=0.0, seed=0, ranks=1, gap=0.0):
    """A run whose steps take `phases`, with a warm-up of twice the time; gap: seconds after every tenth step."""
    draw = random.Random(f"{name} {seed}")
    run = lib.make_run(server, "why", name, {"global_batch_size": BATCH, **params, "seed": seed, "run_name": name})
    own, now, points = math.exp(noise * draw.gauss(0, 1)), 1795000000.0, []
    for step in range(1, STEPS + 1):
        slow = 2 if step <= WARMUP else 1
        parts = {k: v * own * slow * (1 + 0.01 * draw.random()) for k, v in phases.items()}
        now += sum(parts.values()) + (gap if step % 10 == 0 else 0)
        for rank in range(ranks):
            mine = dict(parts)
            if rank + 1 < ranks:  # the others wait for the last one
                mine["backward"] = parts["backward"] / 2
                mine["comm_exposed"] = parts["backward"] / 2
            points += [{"key": f"phase/{k}", "step": step, "value": v, "wall_time": now, "rank": rank} for k, v in mine.items()]
            points.append({"key": "phase/step", "step": step, "value": sum(parts.values()), "wall_time": now, "rank": rank})
        points.append({"key": "train/loss", "step": step, "value": 2.0 + 1 / step, "wall_time": now})
    lib.equal(server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": points})[0], 200, "POST metrics")
    return run


def why(server, *runs, suffix=""):
    status, _, data = server.request("GET", f"/api/v1/compare/why{suffix}?" + "&".join(f"run={r}" for r in runs))
    lib.equal(status, 200, f"compare/why{suffix}: {data[:200]}")
    return json.loads(data) if not suffix else data.decode()


def near(got, want, limit, what):
    lib.check(got is not None and abs(got - want) <= limit * abs(want), f"{what}: {got}, want {want}")


def sums(pair, what):
    total = sum(p["seconds"] for p in pair["phases"].values())
    lib.check(abs(total - pair["difference"]["seconds"]) < 1e-12, f"{what}: phases sum to {total}, not {pair['difference']['seconds']}")


def single(server):
    """One run per side: the spread of equal runs is unknown."""
    a = record(server, "slow", {"workers": 1}, {"backward": 0.1, "data_wait": 0.1})
    b = record(server, "quick", {"workers": 4}, {"backward": 0.1, "data_wait": 0.05})
    got = why(server, a, b)
    pair = got["pairs"][0]
    near(pair["factor"], 4 / 3, 0.01, "factor")
    lib.equal((pair["low"], pair["high"], pair["basis"]), (None, None, "single runs"), "one run per side")
    lib.check(pair["sentence"].startswith("per sample, quick took 0.75x the time of slow, all of it in data_wait"), pair["sentence"])
    lib.equal(pair["params"], [{"key": "workers", "a": "1", "b": "4"}], "params")
    left_out = got["runs"][0]["repeats"][0]["warmup"]
    lib.check(WARMUP <= left_out <= STEPS // 2, f"warm-up: {left_out} steps, want {WARMUP} at least")
    near(pair["phases"]["data_wait"]["seconds"], -0.05 / BATCH, 0.02, "data_wait")
    sums(pair, "one run per side")
    return a, b


def unknown_batch(server, a):
    """A run that does not say its batch size is compared by the step, and everything says so."""
    c = record(server, "no-batch", {"global_batch_size": 0}, {"backward": 0.1, "data_wait": 0.05})
    got = why(server, a, c)
    lib.equal((why(server, a, a)["per"], got["per"]), ("sample", "step"), "per")
    near(got["runs"][0]["seconds"], 0.2, 0.02, "seconds of a step")
    lib.check(got["pairs"][0]["sentence"].startswith("per step, no-batch took 0.75x"), got["pairs"][0]["sentence"])
    lib.check("| ms per step |" in why(server, a, c, suffix=".md"), "Markdown")
    lib.check("ms per step" in why(server, a, c, suffix=".svg"), "SVG")


def repeated(server, a, b):
    """Repeats are found in the experiment; Welch's t on the logarithms of the runs' times."""
    for seed in (1, 2, 3):
        record(server, f"slow-{seed}", {"workers": 1}, {"backward": 0.1, "data_wait": 0.1}, 0.01, seed)
        record(server, f"quick-{seed}", {"workers": 4}, {"backward": 0.1, "data_wait": 0.05}, 0.01, seed)
    got = why(server, a, b)
    pair, logs = got["pairs"][0], [[math.log(r["seconds"]) for r in side["repeats"]] for side in got["runs"]]
    lib.equal([len(v) for v in logs], [4, 4], "repeats")
    means = [sum(v) / len(v) for v in logs]
    near(pair["factor"], math.exp(means[0] - means[1]), 1e-9, "factor of geometric means")
    variances = [sum((x - m) ** 2 for x in v) / 3 / 4 for v, m in zip(logs, means)]
    half = math.log(pair["high"] / pair["factor"]) / math.sqrt(sum(variances))
    lib.check(T95[4] - 0.5 < half < T95[3], f"{half} is not a t between 3 and 6 degrees of freedom")
    lib.check(pair["sentence"].startswith("quick is 1.3") and "all of it in data_wait" in pair["sentence"], pair["sentence"])
    back = why(server, b, a)["pairs"][0]
    near(back["factor"] * pair["factor"], 1, 1e-9, "there and back")
    lib.check("slower" in back["sentence"], back["sentence"])
    near(why(server, a, a)["pairs"][0]["factor"], 1, 1e-12, "a run compared with itself")


def pooled(server, a):
    """Two equal runs compared: the other repeats show how much such runs differ."""
    c = record(server, "again", {"workers": 1}, {"backward": 0.1, "data_wait": 0.1}, 0.01, 9)
    pair = why(server, a, c)["pairs"][0]
    lib.equal(pair["basis"], "other repeats", "basis")
    lib.check(pair["low"] < 1 < pair["high"] and "no significant difference" in pair["sentence"], pair["sentence"])


def ranks(server):
    """The rank that the others wait for determines the time; evaluation is between the steps."""
    a = record(server, "two", {"world": 2}, {"forward": 0.1, "backward": 0.2}, ranks=2)
    b = record(server, "two-evaluated", {"world": 2, "eval_steps": 10}, {"forward": 0.1, "backward": 0.2}, ranks=2, gap=1.0)
    pair = why(server, a, b)["pairs"][0]
    near(pair["phases"]["between"]["seconds"], 0.1 / BATCH, 0.03, "between")
    lib.check(abs(pair["phases"]["comm_exposed"]["seconds"]) < 1e-4 and "all of it in between" in pair["sentence"], pair["sentence"])
    sums(pair, "two ranks")


def exports(server, a, b):
    c = record(server, "third", {"workers": 4, "precision": "bf16"}, {"backward": 0.05, "data_wait": 0.05})
    whole = why(server, a, b, c)
    pairs = whole["pairs"]
    near(pairs[1]["product"], pairs[0]["factor"] * pairs[1]["factor"], 1e-12, "product")
    near(pairs[1]["product"], why(server, a, c)["pairs"][0]["factor"], 1e-9, "factors multiply to the whole")
    rows = list(csv.DictReader(io.StringIO(why(server, a, b, c, suffix=".csv"))))
    for row, pair in zip(rows, pairs):
        lib.equal((float(row["factor"]), float(row["product"]), row["sentence"]), (pair["factor"], pair["product"], pair["sentence"]), "csv")
        for name, part in pair["phases"].items():
            lib.equal(float(row[name]), part["seconds"], f"csv: {name}")
    lines = why(server, a, b, c, suffix=".md").splitlines()
    for line, pair in zip(lines[3:], pairs):
        lib.check(f"| {pair['factor']:.2f}" in line and f"| {pair['product']:.2f} |" in line, f"markdown: {line}")
    svg = xml.dom.minidom.parseString(why(server, a, b, c, suffix=".svg"))
    text = "".join(t.firstChild.data for t in svg.getElementsByTagName("text"))
    lib.check(all(f"{p['product']:.2f}x in total" in text for p in pairs), f"svg: {text}")
    return whole


def foreign(server, a):
    """A run without phases, or with a phase/step that is no time: the times of its points, and the sentence says so."""
    runs = []
    for name, every, step_s in (("foreign", 2.0, None), ("foreign-2", 1.0, 0), ("foreign-3", 1.0, -1), ("foreign-4", 1.0, "NaN")):
        run = lib.make_run(server, "why", name)
        points = [{"key": "loss", "step": 10 * i, "value": 1, "wall_time": 1795000000 + every * i + 0.01 * (i % 3)} for i in range(1, 50)]
        points += [{"key": "phase/step", "step": p["step"], "value": step_s, "wall_time": p["wall_time"]} for p in points if step_s is not None]
        lib.equal(server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": points})[0], 200, "POST metrics")
        runs.append(run)
    near(why(server, *runs)["pairs"][0]["factor"], 2, 0.01, "foreign runs")
    for pair, (one, other) in zip(why(server, *runs)["pairs"], (("foreign", "foreign-2"), ("foreign-2", "foreign-3"), ("foreign-3", "foreign-4"))):
        lib.check(f"; {one} and {other} without a phase/step above 0: timed by the clock" in pair["sentence"], pair["sentence"])
    lib.check("; foreign-2 without a phase/step" in why(server, a, runs[1])["pairs"][0]["sentence"], "one of two")
    lib.check("by the clock" not in why(server, a, a)["pairs"][0]["sentence"], "none")


def refused(server, a):
    empty = lib.make_run(server, "why", "empty")
    for query, field in ((f"run={a}", "run"), (f"run={a}&run=xyz", "run"), (f"run={a}&run={empty}", "run")):
        status, _, data = server.request("GET", "/api/v1/compare/why?" + query)
        lib.equal((status, json.loads(data)["error"]["field"]), (400, field), query)
    lib.equal(server.request("GET", f"/api/v1/compare/why?run={a}&run={'f' * 32}")[0], 404, "no such run")


def command(server, a, b, whole):
    def run(*args):
        return subprocess.run([lib.PROGRAM, "compare", *args, "--url", server.url], capture_output=True, text=True, timeout=60)

    text = run("--why", a[:8], "quick").stdout
    lib.check(whole["pairs"][0]["sentence"] in text and "changed: workers 1 -> 4" in text, text)
    table = run("--why", a, b, whole["runs"][2]["id"]).stdout.splitlines()
    row = next(line.split() for line in table if line.startswith("third"))
    lib.check(row[2] == f"{whole['pairs'][1]['factor']:.2f}" and row[-1] == f"{whole['pairs'][1]['product']:.2f}", f"waterfall: {row}")
    for flag, suffix in (("--csv", ".csv"), ("--markdown", ".md"), ("--svg", ".svg")):
        lib.equal(run("--why", a, b, flag).stdout, why(server, a, b, suffix=suffix), flag)
    lib.equal(json.loads(run("--why", a, b, "--json").stdout)["pairs"], whole["pairs"][:1], "--json")
    for args, word in ((("--why", a), "two or more"), (("--svg", a, b), "--why"), (("--why", a, b, "--svg", "--csv"), "one of")):
        r = run(*args)
        lib.check(r.returncode == 2 and word in r.stderr and r.stderr.count("\n") == 1, f"{args}: {r.stderr!r}")


def main():
    with lib.fresh() as server:
        a, b = single(server)
        unknown_batch(server, a)
        repeated(server, a, b)
        pooled(server, a)
        ranks(server)
        whole = exports(server, a, b)
        foreign(server, a)
        refused(server, a)
        command(server, a, b, whole)
    lib.finish("why")


main()
