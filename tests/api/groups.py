# SPDX-License-Identifier: Apache-2.0
"""Grouped runs (group_by of /series/query and /runs) compared with NumPy, or Python's statistics if it is missing, on
the values of /export/series.csv: 20 settings of 5 seeds, with NaN, a run that failed at 60 %, a spike, a param that
some runs lack, and a series that each seed logs at other steps."""
import sys
sys.dont_write_bytecode = True
import collections
import csv
import io
import math
import random
import statistics
import time
import urllib.parse
import lib

try:
    import numpy as np
    mean_of, median_of = np.mean, np.median

    def std_of(values):
        return np.std(values, ddof=1)
except ImportError:
    mean_of, median_of, std_of = statistics.fmean, statistics.median, statistics.stdev

NEAR = 1e-12
SETTINGS, SEEDS, POINTS, BUCKETS = 20, 5, 120, 37
# Steps between the points of "epoch", by seed: up to five buckets.
SPACING = (7, 11, 17, 30, 50)
# scipy 1.17.1: stats.t.ppf(0.975, freedom)
T975 = {1: 12.706204736174694, 2: 4.302652729749462, 3: 3.182446305283708, 4: 2.7764451051977934}


def near(got, want, scale=1.0):
    """scale: the magnitude of the operands when the number is a difference."""
    return got == want or abs(got - want) <= NEAR * max(scale, abs(want))


def fill(server):
    r = random.Random(5)
    ids = []
    for i in range(SETTINGS):
        for seed in range(SEEDS):
            params = {"lr": str(round(0.01 * (i + 1), 2)), "seed": str(seed), "opt": "adam" if i % 2 else "sgd"}
            if i == 3:
                del params["opt"]
            run = lib.make_run(server, params=params, name=f"{i}-{seed}")
            ids.append(run)
            n = POINTS * 6 // 10 if (i, seed) == (2, 1) else POINTS
            values = [2 * math.exp(-s / 40) + r.gauss(i / 10, 0.05) for s in range(n)]
            if (i, seed) == (4, 0):
                values[50:60] = [math.nan] * 10
            if (i, seed) == (5, 2):
                values[77] = 1e6
            points = [{"key": key, "step": 3 * s + seed + 1, "wall_time": 1.8e9 + s, "value": "NaN" if math.isnan(v) else v + shift}
                      for key, shift in (("loss", 0), ("acc", 50)) for s, v in enumerate(values)]
            points += [{"key": "epoch", "step": s, "wall_time": 1.8e9 + s, "value": "NaN" if (seed, s) == (3, 150) else i + seed / 8 + s / 360}
                       for s in range(SPACING[seed], 3 * n, SPACING[seed])]
            lib.equal(server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": points})[0], 200, "points")
    return ids


def exported(server, ids):
    out = collections.defaultdict(list)
    for at in range(0, len(ids), 50):
        query = urllib.parse.urlencode([("run", i) for i in ids[at:at + 50]])
        status, _, data = server.request("GET", "/api/v1/export/series.csv?" + query)
        lib.equal(status, 200, "series.csv")
        for row in csv.DictReader(io.StringIO(data.decode())):
            out[row["run_id"], row["key"]].append((int(row["step"]), float(row["value"])))
    return out


def bucket_of(edges, x):
    n = len(edges) - 1
    return min(n - 1, int(math.floor((x - edges[0]) / ((edges[-1] - edges[0]) / n))))


def together(points, group, edges, band):
    """Returns {bucket: (n, mean, median, low, high, nonfinite)} of a group's runs. In a bucket between its own a run
    has its last value before."""
    cells = collections.defaultdict(lambda: collections.defaultdict(list))
    for run in group["runs"]:
        for step, value in points[run, group["key"]]:
            cells[bucket_of(edges, step)][run].append(value)
    own = {run: sorted(i for i in cells if run in cells[i]) for run in group["runs"]}
    held = {i: {run: cells[max(k for k in at if k < i)][run][-1] for run, at in own.items()
                if at and at[0] < i < at[-1] and i not in at} for i in cells}
    out = {}
    for i, by_run in cells.items():
        by_run = dict(by_run, **{run: [v] for run, v in held[i].items() if math.isfinite(v)})
        finite = {run: [v for v in l if math.isfinite(v)] for run, l in by_run.items()}
        means = [mean_of(l) for l in finite.values() if l]
        bad = sum(not math.isfinite(v) for l in by_run.values() for v in l)
        if not means:
            out[i] = (0, None, None, None, None, bad)
            continue
        mean, n = mean_of(means), len(means)
        std = std_of(means) if n > 1 else 0
        reach = {"std": std, "se": std / math.sqrt(n), "t95": std / math.sqrt(n) * T975.get(n - 1, 0)}.get(band, 0)
        values = [v for l in finite.values() for v in l]
        low, high = (min(values), max(values)) if band == "minmax" else (mean - reach, mean + reach)
        out[i] = (n, mean, median_of(means), low, high, bad)
    return out


def check_series(server, ids, points):
    for band in ("minmax", "std", "se", "t95"):
        for by in (["params.lr"], ["params.lr", "params.opt"]):
            ask = {"runs": ids, "keys": ["loss", "acc", "epoch"], "buckets": BUCKETS, "group_by": by, "band": band}
            status, got = server.json("POST", "/api/v1/series/query", ask)
            lib.equal(status, 200, f"{band} {by}: {got if status != 200 else ''}")
            lib.equal(len(got["groups"]), 3 * SETTINGS, "groups")
            for group in got["groups"]:
                want = together(points, group, got["edges"], band)
                lib.equal([b["i"] for b in group["buckets"]], sorted(want), f"{group['group']}: buckets")
                for b in group["buckets"]:
                    have = (b["n"], b["mean"], b["median"], b["low"], b["high"], b.get("nonfinite", 0))
                    ok = all(h is w if w is None or h is None else near(h, w, abs(b["mean"] or 1)) for h, w in zip(have, want[b["i"]]))
                    if not lib.check(ok, f"{band} {group['key']} {group['group']} bucket {b['i']}: {have}, want {want[b['i']]}"):
                        return
    lacking = [g for g in got["groups"] if g["group"]["params.opt"] is None]
    lib.equal([len(g["runs"]) for g in lacking], [SEEDS] * 3, "runs without the param form a group")


def check_rows(server, points):
    status, got = server.json("GET", "/api/v1/runs?group_by=params.lr&metrics=loss")
    lib.equal(status, 200, "GET /runs?group_by=")
    lib.equal(sorted(g["n"] for g in got["groups"]), [SEEDS] * SETTINGS, "runs of each group")
    for group in got["groups"]:
        lib.equal(list(group["metrics"]), ["loss"], "only the requested metric")
        lists = [[v for _, v in points[run, "loss"]] for run in group["runs"]]
        finite = [[v for v in l if math.isfinite(v)] for l in lists]
        columns = {"first": [l[0] for l in lists], "last": [l[-1] for l in lists], "min": [min(l) for l in finite],
                   "max": [max(l) for l in finite]}
        for name, values in columns.items():
            values = [v for v in values if math.isfinite(v)]
            have = group["metrics"]["loss"][name]
            lib.check(have["n"] == len(values) and near(have["mean"], mean_of(values)) and near(have["std"], std_of(values)),
                      f"{group['group']} {name}: {have}")
    status, got = server.json("GET", "/api/v1/runs?group_by=status&metrics=")
    lib.equal([g["n"] for g in got["groups"]], [SETTINGS * SEEDS], "by status")


def check_experiments(server, here):
    """Runs of two experiments are those of each; groups by experiment have the sums."""
    there = [lib.make_run(server, "other", name=str(i)) for i in range(3)]
    lists = {e: [r["id"] for r in server.json("GET", f"/api/v1/runs?experiment={e}&limit=1000")[1]["runs"]] for e in ("digits", "other")}
    lib.equal([sorted(lists["digits"]), sorted(lists["other"])], [sorted(here), sorted(there)], "runs of each")
    both = "experiment=digits&experiment=other"
    runs = server.json("GET", f"/api/v1/runs?{both}&limit=1000")[1]["runs"]
    lib.equal(sorted(r["id"] for r in runs), sorted(here + there), "runs of both")
    groups = server.json("GET", f"/api/v1/runs?{both}&group_by=experiment")[1]["groups"]
    lib.equal({g["group"]["experiment"]: sorted(g["runs"]) for g in groups}, {e: sorted(ids) for e, ids in lists.items()}, "groups by experiment")
    lib.equal(server.json("GET", f"/api/v1/runs?{both}&experiment=none")[0], 404, "a name that is not there")


def main():
    with lib.fresh() as server:
        ids = fill(server)
        points = exported(server, ids)
        check_series(server, ids, points)
        check_rows(server, points)
        check_experiments(server, ids)
        began = time.monotonic()
        server.json("POST", "/api/v1/series/query", {"runs": ids, "keys": ["loss"], "buckets": 600, "group_by": ["params.lr"], "band": "t95"})
        print(f"{len(ids)} runs in {SETTINGS} groups: {1000 * (time.monotonic() - began):.0f} ms")
        for wrong in ({"group_by": ["lr"]}, {"group_by": ["params."]}, {"group_by": ["params.lr"], "form": "line"},
                      {"group_by": ["params.lr"], "band": "wide"}, {"group_by": "params.lr"}):
            lib.equal(server.json("POST", "/api/v1/series/query", dict({"runs": ids[:2], "buckets": 5}, **wrong))[0], 400, wrong)
        lib.equal(server.json("GET", "/api/v1/runs?group_by=lr")[0], 400, "an unknown field")
    lib.finish("groups")


main()
