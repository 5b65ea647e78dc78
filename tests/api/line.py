# SPDX-License-Identifier: Apache-2.0
"""Charts as lines (form=line) compared with the same buckets at full precision: the first, smallest, largest and last
point of a bucket is present once, within the resolution of the unit; so are means and counts. Also compares the sizes
of the replies."""
import sys
sys.dont_write_bytecode = True
import math
import random
import lib

DIGITS = 4


def decoded(values, unit):
    at, out = 0, []
    for v in values:
        if isinstance(v, int):
            at += v
            out.append(at * unit)
        else:
            out.append(math.nan if v is None else float(v))
    return out


def wanted(columns):
    """Returns the points of each bucket in the order of x, from its columns."""
    for b in range(len(columns["i"])):
        points = [(columns["x_" + k][b], float(columns[k][b])) for k in ("first", "min", "max", "last")
                  if columns["x_" + k][b] is not None]
        if columns["x_nonfinite"][b] is not None:
            points.append((columns["x_nonfinite"][b], math.nan))
        points.sort(key=lambda p: p[0])
        yield [p for i, p in enumerate(points) if i == 0 or p[0] != points[i - 1][0]]


def near(got, want, unit):
    if math.isnan(want):
        return math.isnan(got)
    return abs(got - want) <= max(0.51 * unit, abs(want) * 1e-12)


def check_means(line, columns, what):
    finite = [(s / (n - bad), n - bad) for s, n, bad in zip(columns["sum"], columns["count"], columns["nonfinite"])
              if n > bad]
    if "m" not in line:
        return
    lib.equal(line["w"], [n for _, n in finite], f"{what}: counts")
    lib.check(all(near(g, m, line["q"]) for g, (m, _) in zip(decoded(line["m"], line["q"]), finite)), f"{what}: means")


def compare(line, exact, what):
    columns = exact["buckets"]
    buckets = list(wanted(columns))
    lib.equal(line["count"], sum(columns["count"]), f"{what}: count")
    lib.equal(line.get("k", [1] * len(buckets)), [len(b) for b in buckets], f"{what}: points per bucket")
    xs, ys = decoded(line["x"], line["xq"]), decoded(line["y"], line["q"])
    points = [p for b in buckets for p in b]
    lib.equal(len(xs), len(points), f"{what}: points")
    for x, y, (want_x, want_y) in zip(xs, ys, points):
        if not lib.check(near(x, want_x, line["xq"]), f"{what}: x {x} is not {want_x}"):
            return
        if not lib.check(near(y, want_y, line["q"]), f"{what}: {y} is not {want_y} (unit {line['q']})"):
            return
    values = sorted(abs(y) for _, y in points if math.isfinite(y) and y)
    for v in values[len(values) // 5:]:
        if not lib.check(line["q"] <= v * 10 ** -(DIGITS - 1), f"{what}: {v} has fewer than {DIGITS} digits"):
            return
    check_means(line, columns, what)


def shapes():
    r = random.Random(17)
    yield "noise", [2 * math.exp(-i / 300) + 0.1 * r.random() for i in range(3000)]
    yield "decay", [10 * math.exp(-i / 40) for i in range(600)]
    yield "spikes", [1e30 if i == 333 else math.sin(i / 50) for i in range(2000)]
    yield "gaps", [math.nan if r.random() < 0.2 else r.gauss(100, 1e-3) for i in range(1500)]
    yield "steps", [float(i // 100) for i in range(900)]
    yield "tiny", [r.gauss(0, 1e-12) for i in range(700)]
    yield "huge", [r.choice([1e300, -1e300, 3.0]) for i in range(500)]
    yield "same", [0.1] * 400
    yield "one", [42.5]


def by_factors(server):
    """Logarithmic buckets of x compared with a brute-force assignment to their edges; steps of 0 and below are left
    out."""
    run = lib.make_run(server, params={"steps_per_epoch": 10})
    values = {step: math.sin(step) + step / 50 for step in range(-3, 2001)}
    points = [{"key": "a", "step": s, "wall_time": 1.8e9 + s, "value": v} for s, v in values.items()]
    lib.equal(server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": points})[0], 200, "points of logarithmic buckets")
    for x, per, zoom in (("step", 1, {}), ("epoch", 10, {}), ("step", 1, {"from": 20, "to": 700}), ("step", 1, {"from": -7})):
        ask = {"runs": [run], "keys": ["a"], "buckets": 40, "x": x, "spacing": "log", **zoom}
        got = server.json("POST", "/api/v1/series/query", ask)[1]
        low, high = max(1 / per, zoom.get("from", 0)), zoom.get("to", 2000 / per)
        edges, b = got["edges"], got["series"][0]["buckets"]
        lib.check(all(abs(e / (low * (high / low) ** (i / 40)) - 1) < 1e-9 for i, e in enumerate(edges)), f"edges {edges}")
        cells = {}
        for step, v in values.items():
            if low <= step / per <= high:
                at = min(39, math.floor(40 * math.log(step / per / low) / math.log(high / low) + 1e-12))
                cells.setdefault(at, []).append(v)
        lib.equal(b["i"], sorted(cells), f"{x} {zoom}: buckets")
        lib.equal(b["count"], [len(cells[i]) for i in b["i"]], f"{x} {zoom}: counts")
        lib.equal((b["min"], b["max"]), ([min(cells[i]) for i in b["i"]], [max(cells[i]) for i in b["i"]]), f"{x} {zoom}: extremes")
        made = server.json("POST", "/api/v1/series/query", {**{k: v for k, v in ask.items() if k != "keys"}, "formula": "a * 1"})[1]
        lib.equal(made["series"][0]["buckets"], b, f"{x} {zoom}: a formula uses the same buckets")
        compare(server.json("POST", "/api/v1/series/query", dict(ask, form="line"))[1]["series"][0], got["series"][0], f"{x}, logarithmic")
        grouped = server.json("POST", "/api/v1/series/query", dict(ask, group_by=["params.steps_per_epoch"]))[1]
        lib.equal((grouped["edges"], [g["i"] for g in grouped["groups"][0]["buckets"]]), (edges, b["i"]), f"{x} {zoom}: groups")
    lib.equal(server.json("POST", "/api/v1/series/query", dict(ask, spacing="odd"))[0], 400, "an unknown spacing")
    lib.equal(server.json("GET", f"/api/v1/series?run={run}&spacing=log")[0], 400, "raw points have no edges")


def main():
    with lib.fresh() as server:
        by_factors(server)
        run = lib.make_run(server, params={"steps_per_epoch": 469})
        for key, values in shapes():
            points = [{"key": key, "step": i + 1, "wall_time": 1.8e9 + i / 7, "value": v if math.isfinite(v) else str(v).replace("nan", "NaN")}
                      for i, v in enumerate(values)]
            lib.equal(server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": points})[0], 200, key)
        for x in ("step", "elapsed", "epoch", "time"):
            for buckets in (1, 57, 600):
                ask = {"runs": [run], "buckets": buckets, "x": x}
                exact = server.json("POST", "/api/v1/series/query", ask)[1]["series"]
                lines = server.json("POST", "/api/v1/series/query", dict(ask, form="line"))[1]["series"]
                lib.equal([s["key"] for s in lines], [s["key"] for s in exact], "the same series")
                for line, one in zip(lines, exact):
                    compare(line, one, f"{one['key']} by {x} in {buckets}")
        ask = {"runs": [run], "buckets": 600, "keys": ["noise", "decay", "steps"]}
        sizes = [len(server.request("POST", "/api/v1/series/query", dict(ask, form=f), {"Accept-Encoding": "gzip"})[2])
                 for f in ("line", "buckets")]
        print(f"bytes, compressed: {sizes[0]} as lines, {sizes[1]} with every digit")
        lib.check(sizes[0] * 4 < sizes[1], f"lines are not shorter: {sizes}")
        lib.equal(server.json("POST", "/api/v1/series/query", dict(ask, form="dots"))[0], 400, "an unknown form")
        lib.equal(server.json("GET", f"/api/v1/series?run={run}&form=line")[0], 400, "raw points have one form")
    lib.finish("line")


main()
