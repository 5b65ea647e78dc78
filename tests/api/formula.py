# SPDX-License-Identifier: Apache-2.0
"""Formulas over series compared with NumPy on the values of /export/series.csv: each value, bucket minima and maxima,
spikes, NaN, steps that only some series have, params, other axes, groups; errors name the position in the formula."""
import sys
sys.dont_write_bytecode = True
import csv
import io
import math
import os
import random
import warnings
import lib

try:
    import numpy as np
except ImportError:
    sys.path.append(os.path.join(lib.SOURCE, "tests", "bench"))
    import packages
    try:
        program = packages.python(lib.BUILD, "numpy", ["numpy==2.3.5"])
    except packages.Unavailable as why:
        print("skipped:", why)
        sys.exit(77)
    os.execv(program, [program, "-B", os.path.abspath(__file__)])

POINTS = 3000
FORMULAS = {
    "train/loss - val/loss": lambda m, p: m["train/loss"] - m["val/loss"],
    "params.lr*params.batch_size / train/loss": lambda m, p: p["lr"] * p["batch_size"] / m["train/loss"],
    "-train/loss ^ 2 ^ 0.5 + 1e-3": lambda m, p: -(m["train/loss"] ** (2 ** 0.5)) + 1e-3,
    "log(abs(train/loss - 1)) * (2 - val/loss)": lambda m, p: np.log(np.abs(m["train/loss"] - 1)) * (2 - m["val/loss"]),
    'max("a name, with (signs)", 0) / min(val/loss, .5)': lambda m, p: np.fmax(m["a name, with (signs)"], 0) / np.fmin(m["val/loss"], .5),
    "sqrt(train/loss)-0 * exp(val/loss) - log2(8) - log10(train/loss)":
        lambda m, p: np.sqrt(m["train/loss"]) - 0 * np.exp(m["val/loss"]) - 3 - np.log10(m["train/loss"]),
}
WRONG = {
    "": "the formula is incomplete: expected a name or a number at character 1", "a +": "the formula is incomplete: expected a name or a number at character 4", "a b": "expected an operator at character 3",
    "(a": "expected )", "sin(a)": "unknown function", "min(a)": "expected a comma", '"a': "not closed", "1 + params.lr": "contains no metric",
    "a + *": "expected a name or a number at character 5", "(" * 300 + "a": "too deep", " + ".join(f"k{i}" for i in range(17)): "too many names",
    " + ".join(["a"] * 200): "too long", "-" * 100 + "a": "too deep",
}


def fill(server):
    r = random.Random(3)
    runs = []
    for n in range(3):
        run = lib.make_run(server, "f", f"r{n}", {"lr": str(0.1 * (n + 1)), "batch_size": "32", "steps_per_epoch": "50", "opt": "sgd"})
        values = {"train/loss": [(s, 1 + math.exp(-s / 300) + r.random() / 9) for s in range(POINTS)],
                  "val/loss": [(s, 2 * math.exp(-s / 400) + r.random()) for s in range(0, POINTS, 7)],
                  "a name, with (signs)": [(s, r.gauss(0, 1)) for s in range(1, POINTS, 3)], "lonely": [(-5, 1.0)]}
        values["train/loss"][777] = (777, 1e6)     # a spike where both have a point
        values["val/loss"][20] = (140, math.nan)
        values["val/loss"].append((7, 0.25))       # a duplicate step: the last point counts
        for key, points in values.items():
            body = [{"key": key, "step": s, "wall_time": 1.7e9 + s / 8 + len(key), "value": v if v == v else "NaN"} for s, v in points]
            server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": body})
        runs.append(run)
    return runs


def columns(server, run):
    """Returns the export as {key: {step: (value, wall time)}}, with the last point of each step."""
    _, _, data = server.request("GET", f"/api/v1/export/series.csv?run={run}")
    out = {}
    for row in csv.DictReader(io.StringIO(data.decode())):
        out.setdefault(row["key"], {})[int(row["step"])] = (float(row["value"]), float(row["wall_time"]))
    return out


def ask(server, body):
    status, reply = server.json("POST", "/api/v1/series/query", body)
    lib.equal(status, 200, f"{body}: {reply}")
    return reply


def expected(have, formula, params):
    """The steps and values that NumPy computes."""
    keys = [k for k in have if k in formula]
    steps = sorted(set.intersection(*(set(have[k]) for k in keys)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = FORMULAS[formula]({k: np.array([have[k][s][0] for s in steps]) for k in keys}, params)
    times = [max(have[k][s][1] for k in keys) for s in steps]
    return steps, np.broadcast_to(values, len(steps)), times


def same(got, want, what):
    lib.check(got == want or (got is None and not math.isfinite(want)) or abs(got - want) <= 1e-12 * max(1, abs(want)), f"{what}: got {got}, want {want}")


def exact(server, runs):
    """With enough buckets that each holds one point."""
    for formula in FORMULAS:
        reply = ask(server, {"runs": runs, "formula": formula, "buckets": 10000})
        lib.equal([(s["run"], s["key"], s["rank"]) for s in reply["series"]], [(r, formula, -1) for r in runs], formula)
        for n, s in enumerate(reply["series"]):
            steps, values, _ = expected(columns(server, runs[n]), formula, {"lr": float(str(0.1 * (n + 1))), "batch_size": 32.0})
            b = s["buckets"]
            lib.equal((s["count"], len(b["i"])), (len(steps), len(steps)), f"{formula}: points")
            lib.equal(sum(b["nonfinite"]), int((~np.isfinite(values)).sum()), f"{formula}: non-finite points")
            for x, v, step, want in zip(b["x_first"], b["first"], steps, values):
                lib.check(x in (step, None), f"{formula}: {x} is step {step}")
                same(v, float(want), f"{formula} at {step}")


def buckets(server, runs):
    """With few buckets: count, extremes, sums; a spike is never lost."""
    formula = "train/loss - val/loss"
    for x, place in (("step", lambda s, t: s), ("time", lambda s, t: t), ("epoch", lambda s, t: s / 50)):
        reply = ask(server, {"runs": runs[:1], "formula": formula, "buckets": 37, "x": x})
        b, edges = reply["series"][0]["buckets"], reply["edges"]
        steps, values, times = expected(columns(server, runs[0]), formula, {})
        at = np.array([place(s, t) for s, t in zip(steps, times)])
        index = np.minimum(np.floor((at - edges[0]) / ((edges[-1] - edges[0]) / 37)), 36)
        for k, i in enumerate(b["i"]):
            inside = values[index == i]
            finite = inside[np.isfinite(inside)]
            lib.equal((b["count"][k], b["nonfinite"][k]), (len(inside), len(inside) - len(finite)), f"{x}: bucket {i}")
            for name, want in (("min", finite.min()), ("max", finite.max()), ("sum", finite.sum())):
                same(b[name][k], float(want), f"{x}: {name} of bucket {i}")
        lib.check(max(b["max"]) > 9e5, "the spike is in a bucket")
    line = ask(server, {"runs": runs, "formula": formula, "buckets": 37, "form": "line"})["series"]
    lib.equal([s["count"] for s in line], [len(expected(columns(server, r), formula, {})[0]) for r in runs], "drawn lines")
    groups = ask(server, {"runs": runs, "formula": formula, "buckets": 5, "group_by": ["params.opt"], "band": "minmax"})["groups"]
    lib.equal([(g["key"], sorted(g["runs"]), {b["n"] for b in g["buckets"]}) for g in groups], [(formula, sorted(runs), {3})], "groups")


def refused(server, runs):
    for formula, word in WRONG.items():
        status, reply = server.json("POST", "/api/v1/series/query", {"runs": runs, "formula": formula, "buckets": 5})
        lib.check(status == 400 and word in reply["error"]["message"] and reply["error"]["field"] == "formula", f"{formula[:40]!r}: {status} {reply}")
    for more in ({}, {"buckets": 5, "keys": ["a"]}, {"buckets": 5, "segments": "all"}):
        status, reply = server.json("POST", "/api/v1/series/query", {"runs": runs, "formula": "a", **more})
        lib.equal((status, reply["error"]["field"]), (400, "formula"), f"with {more}")
    for formula in ("train/loss + params.none", "train/loss + none", "train/loss - lonely"):
        lib.equal(ask(server, {"runs": runs, "formula": formula, "buckets": 5})["series"], [], formula)
    status, reply = server.json("GET", f"/api/v1/series?run={runs[0]}&formula=2*lonely&buckets=3")
    lib.equal((status, reply["series"][0]["buckets"]["sum"]), (200, [2]), "by GET")


def main():
    with lib.fresh() as server:
        runs = fill(server)
        exact(server, runs)
        buckets(server, runs)
        refused(server, runs)
    lib.finish("formula")


main()
