# SPDX-License-Identifier: Apache-2.0
"""NaN and infinities: never the best of anything, never in a mean, kept where single values are. The rows are those of
docs/internals/nonfinite.md; each row that names no page has a check here."""
import csv
import io
import json
import os
import re
import subprocess
import sys
import time
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib

RUNS = {"good": [3.0, 2.0, 1.0], "minus": [3.0, "-Infinity", 1.5], "plus": [3.0, "Infinity", 2.5], "end": [3.0, 2.75, "-Infinity"],
        "nan": ["NaN", "NaN", "NaN"], "inf": ["Infinity", "-Infinity", "Infinity"]}
BEST = {"good": 1.0, "minus": 1.5, "plus": 2.5, "end": 2.75}
ROWS = os.path.join(lib.SOURCE, "docs", "internals", "nonfinite.md")


def fill(server):
    ids = {}
    for name, values in RUNS.items():
        ids[name] = lib.make_run(server, "nf", name)
        points = [{"key": "loss", "step": i + 1, "wall_time": 1.8e9 + i, "value": v} for i, v in enumerate(values)]
        lib.equal(server.json("POST", f"/api/v1/runs/{ids[name]}/metrics", {"points": points})[0], 200, name)
    return ids


def order(server, by):
    status, reply = server.json("GET", f"/api/v1/runs?experiment=nf&order_by={by}")
    lib.equal(status, 200, by)
    return [r["name"] for r in reply["runs"]]


def found(server, test):
    status, reply = server.json("GET", "/api/v1/runs?experiment=nf&filter=" + test.replace(" ", "%20").replace("'", "%27").replace("<", "%3C"))
    lib.equal(status, 200, test)
    return sorted(r["name"] for r in reply["runs"])


def loss(server, run):
    metrics = server.json("GET", f"/api/v1/runs/{run}")[1]["metrics"]
    return metrics["loss"] if isinstance(metrics, dict) else next(m for m in metrics if m["key"] == "loss")


def first_last(server, ids):
    lib.equal([loss(server, ids["inf"])[k] for k in ("first", "last")], ["Infinity", "Infinity"], "first and last")
    lib.equal(loss(server, ids["end"])["last"], "-Infinity", "last")


def extremes(server, ids):
    for name, values in RUNS.items():
        m, finite = loss(server, ids[name]), [v for v in values if not isinstance(v, str)]
        lib.equal((m["min"], m["max"]), (min(finite), max(finite)) if finite else (None, None), f"{name}: min and max")
        lib.equal(m["min_step"], values.index(min(finite)) + 1 if finite else None, f"{name}: min_step")


def counted(server, ids):
    for name, values in RUNS.items():
        bad = [i + 1 for i, v in enumerate(values) if isinstance(v, str)]
        m = loss(server, ids[name])
        lib.equal((m["nonfinite"], m["first_nonfinite_step"]), (len(bad), bad[0] if bad else None), f"{name}: nonfinite")


def ordered(server, ids):
    for by, down in (("metrics.loss.min", False), ("metrics.loss.min%20DESC", True)):
        got = order(server, by)
        lib.equal(got[:4], sorted(BEST, key=BEST.get, reverse=down), by)
        lib.equal(set(got[4:]), {"nan", "inf"}, f"{by}: the rest")
    for by in ("metrics.loss", "metrics.loss%20DESC"):
        lib.equal(set(order(server, by)[3:]), {"end", "nan", "inf"}, f"{by}: values that are not finite come last")


def filtered(server, ids):
    lib.equal(found(server, "metrics.loss.min < -1000"), [], "min below a bound")
    lib.equal(found(server, "metrics.loss = '-Infinity'"), ["end"], "last")
    lib.equal(found(server, "metrics.loss = 'NaN'"), ["nan"], "NaN")
    lib.equal(found(server, "metrics.loss < 2"), ["end", "good", "minus"], "as numbers")


def compared(server, ids):
    status, reply = server.json("GET", "/api/v1/compare?" + "&".join(f"run={r}" for r in ids.values()))
    lib.equal(status, 200, "compare")
    metric = next(m for m in reply["metrics"] if m["key"] == "loss")
    names = {v: k for k, v in ids.items()}
    got = {names[r["id"] if isinstance(r, dict) else r]: v for r, v in zip(reply["runs"], metric["min"])}
    lib.equal(got, {n: BEST.get(n) for n in RUNS}, "min of each run")


def terminal(server, ids):
    out = subprocess.run([lib.PROGRAM, "compare", "--url", server.url, *ids.values()], capture_output=True, text=True, timeout=60)
    lib.equal(out.returncode, 0, f"dptrack compare: {out.stderr}")
    names = re.findall(r"\b(good|minus|plus|end|nan|inf)\b", out.stdout)
    seen = list(dict.fromkeys(names))
    lib.equal(seen[:4], ["good", "minus", "plus", "end"], "dptrack compare: best first")


def table(server, ids):
    text = server.request("GET", "/api/v1/export/runs.csv?experiment=nf")[2].decode()
    rows = {r["run_name"]: r for r in csv.DictReader(io.StringIO(text))}
    for name in RUNS:
        got = rows[name]["metrics.loss.min"]
        lib.equal(float(got) if got else None, BEST.get(name), f"runs.csv: {name}")


def points(server, ids):
    text = server.request("GET", f"/api/v1/export/series.csv?run={ids['inf']}&key=loss")[2].decode()
    lib.equal(re.findall(r"-?Infinity", text), ["Infinity", "-Infinity", "Infinity"], "series.csv")


def buckets(server, ids):
    reply = server.json("GET", f"/api/v1/series?run={ids['minus']}&key=loss&buckets=1")[1]["series"][0]["buckets"]
    got = {k: v[0] if isinstance(v, list) else v for k, v in reply.items()}
    lib.equal((got["nonfinite"], got["min"], got["sum"]), (1, 1.5, 4.5), f"a bucket: {got}")


def grouped(server, ids):
    body = {"runs": list(ids.values()), "keys": ["loss"], "buckets": 1, "group_by": ["params.none"], "band": "minmax"}
    status, reply = server.json("POST", "/api/v1/series/query", body)
    lib.equal(status, 200, f"groups: {reply}")
    text = json.dumps(reply["groups"])
    lib.check("Infinity" not in text and "NaN" not in text, f"groups have finite numbers: {text[:200]}")


def add_rules(server):
    """Rules find runs that change after they were made."""
    rules = {"metric": {"kind": "metric", "experiment": "nf", "metric": "loss", "below": -1e300}, "nan": {"kind": "nan", "experiment": "nf"}}
    lib.equal(server.json("POST", "/api/v1/experiments", {"name": "nf"})[0], 201, "the experiment")
    for kind, rule in rules.items():
        status, reply = server.json("POST", "/api/v1/alerts/rules", rule)
        lib.equal(status, 201, f"{kind}: {reply}")


def fired(server):
    return server.json("GET", "/api/v1/alerts?experiment=nf")[1]["alerts"]


def bounded(server, ids):
    end = time.monotonic() + 60
    while len([a for a in fired(server) if a["kind"] == "nan"]) < 5 and time.monotonic() < end:
        time.sleep(0.1)
    lib.equal([a["text"] for a in fired(server) if a["kind"] == "metric"], [], "a rule on a bound")


def on_nan(server, ids):
    names = {v: k for k, v in ids.items()}
    lib.equal({names[a["run"]] for a in fired(server) if a["kind"] == "nan"}, set(RUNS) - {"good"}, "a rule on values that are not finite")


def latest(server, ids):
    reply = server.json("GET", f"/api/2.0/mlflow/runs/get?run_id={ids['end']}")[1]
    value = next(m["value"] for m in reply["run"]["data"]["metrics"] if m["key"] == "loss")
    lib.check(value in ("-Infinity", -1.7976931348623157e308, float("-inf")), f"MLflow's latest value: {value!r}")


def mlflow_order(server, ids):
    experiment = server.json("GET", "/api/2.0/mlflow/experiments/get-by-name?experiment_name=nf")[1]["experiment"]["experiment_id"]
    reply = server.json("POST", "/api/2.0/mlflow/runs/search", {"experiment_ids": [experiment], "order_by": ["metrics.loss ASC"]})[1]
    names = [r["info"]["run_name"] for r in reply["runs"]]
    lib.equal((names[0], names[-1]), ("end", "nan"), "MLflow's order")


CHECKS = {"summary: first, last": first_last, "summary: min, max": extremes, "summary: nonfinite, first_nonfinite_step": counted,
          "order_by of a metric": ordered, "filter of a metric": filtered, "/compare": compared, "`dptrack compare`": terminal,
          "runs table, CSV and JSON": table, "points, CSV": points, "buckets of /series": buckets,
          "groups of runs: mean, std, band": grouped, "alert rule on a bound": bounded, "alert rule on non-finite values": on_nan,
          "MLflow: latest value, history": latest, "MLflow: order_by": mlflow_order}


def main():
    with open(ROWS, encoding="utf-8") as f:
        rows = [line.split("|")[1].strip() for line in f if line.startswith("| ") and not line.startswith("| place")]
    lib.equal({r for r in rows if not r.startswith("page:")}, set(CHECKS), "rows of the table and checks")
    with lib.fresh() as server:
        add_rules(server)
        ids = fill(server)
        for fn in CHECKS.values():
            fn(server, ids)
    lib.finish("nonfinite")


main()
