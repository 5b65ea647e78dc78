# SPDX-License-Identifier: Apache-2.0
"""A list of runs gives each run the same texts, params, tags, metrics and alerts as a query of that run alone,
whichever parts are requested. On PostgreSQL a list reads its runs by sets, a single run row by row."""
import sys
sys.dont_write_bytecode = True
import math
import os
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib

PARTS = ("name", "experiment", "status", "start_time", "last_step", "params", "tags", "metrics", "alerts")
SPIKE_AT = 150


def number(v):
    return v if math.isfinite(v) else "NaN" if math.isnan(v) else "Infinity"


def add(server, name, params, metrics, tags=None, status=None):
    """metrics: {key: values}."""
    made, run = server.json("POST", "/api/v1/runs", {"experiment": "lists", "name": name, "params": params, "tags": tags or {}})
    lib.equal(made, 201, name)
    for key, values in metrics.items():
        points = [{"key": key, "step": i + 1, "wall_time": 1.8e9 + i, "value": number(v)} for i, v in enumerate(values)]
        lib.equal(server.json("POST", f"/api/v1/runs/{run['id']}/metrics", {"points": points})[0], 200, key)
    if status:
        lib.equal(server.json("PATCH", "/api/v1/runs/" + run["id"], {"status": status})[0], 200, f"{name}: {status}")


def fill(server):
    spiky = [1 + 0.01 * math.sin(i) for i in range(200)]
    spiky[SPIKE_AT] = 900.0
    add(server, "bare", {}, {})
    add(server, "few", {"lr": 0.1}, {"train/loss": [2, 1.5, 1]}, {"by": "us"})
    add(server, "nan", {"lr": 0.2, "b": "x"}, {"train/loss": [1, math.nan, math.nan], "val/loss": [math.inf]}, status="failed")
    add(server, "diverged", {"lr": 0.3, "arch": "cnn"}, {"train/loss": [2 - i / 20 for i in range(20)] + [50, 60]})
    add(server, "spiky", {"lr": 0.4, "b": "y", "z": ""}, {"train/loss": spiky, "acc": [0.5]}, {"by": "them", "z": "ä"})
    for n in range(40):
        add(server, f"many{n}", {f"p{k}": n * k for k in range(n % 7)}, {f"m{k}": [n, k] for k in range(n % 5)})


def listed(server, words=""):
    status, answer = server.json("GET", f"/api/v1/runs?experiment=lists&limit=1000{words}")
    lib.equal(status, 200, words)
    return {r["id"]: r for r in answer["runs"]}


def same_as_single_run(server):
    runs = listed(server)
    alone = {i: server.json("GET", f"/api/v1/runs/{i}")[1] for i in runs}
    lib.equal(len(runs), 45, "runs")
    for i, run in runs.items():
        for part in PARTS:
            lib.equal(run.get(part), alone[i].get(part), f"{run['name']}: {part}")
    kinds = {a["kind"] for r in runs.values() for a in r["alerts"]}
    lib.equal(kinds, {"failed", "nan", "diverged", "spike"}, "kinds of alerts")
    return alone


def cut(metrics, keys):
    return {k: v for k, v in metrics.items() if k in keys}


def some_parts(server, alone):
    for words, keys in (("&metrics=train/loss", {"train/loss"}), ("&metrics=acc&metrics=nobody&include=keys", {"acc"}),
                        ("&metrics_max=2&metrics=m1", {"m1"})):
        for i, run in listed(server, words).items():
            lib.equal(run["metrics"], cut(alone[i]["metrics"], keys), f"{run['name']}, {words}")
            if "=keys" in words or "_max" in words:  # otherwise the metrics behind the alerts are not read
                lib.equal(run["alerts"], alone[i]["alerts"], f"{run['name']}: alerts, {words}")
    for words, must in (("&params_max=3&params=lr", "lr"), ("&params_max=1&params=arch", "arch")):
        runs = listed(server, words)
        shown = {k for r in runs.values() for k in r["params"]}
        lib.check(must in shown and len(shown) == int(words[12]), f"{words}: {shown}")
        for i, run in runs.items():
            lib.equal(run["params"], cut(alone[i]["params"], shown), f"{run['name']}, {words}")


def spike_is_found(server):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        runs = server.json("GET", "/api/v1/runs?experiment=lists&limit=1000")[1]["runs"]
        if any(a["kind"] == "spike" for r in runs for a in r["alerts"]):
            return True
        time.sleep(0.1)
    return False


def main():
    with lib.fresh() as server:
        fill(server)
        lib.check(spike_is_found(server), "no spike was found in 30 s")
        some_parts(server, same_as_single_run(server))
    lib.finish("lists")


main()
