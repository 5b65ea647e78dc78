# SPDX-License-Identifier: Apache-2.0
"""Data come out as they went in: points bit for bit through every export format, gzip both ways, ETag and 304, HEAD,
OPTIONS and 405, error fields, M4 buckets compared with a plain recount."""
import sys
sys.dont_write_bytecode = True
import csv
import gzip
import io
import json
import math
import random
import re
import struct
import lib

WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def number(v):
    if isinstance(v, str):
        return WORDS[v] if v in WORDS else float(v)
    return float(v)


def bits(v):
    return "nan" if math.isnan(v) else struct.pack(">d", v).hex()


def word(v):
    return v if math.isfinite(v) else "NaN" if math.isnan(v) else "Infinity" if v > 0 else "-Infinity"


def some_points():
    r = random.Random(7)
    values = [0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, math.nan,
              math.inf, -math.inf, 1e22, 1e23, 123456789012345680.0, 9007199254740993.0, -2.5e-7, 4.35, 0.1 + 0.2]
    values += [struct.unpack(">d", r.randbytes(8))[0] for _ in range(500)]
    values += [r.uniform(-1, 1) for _ in range(500)]
    return [("train/loss", i, 1795000000 + i * 0.1 + r.random(), v) for i, v in enumerate(values)]


def post_points(server, run, points, headers=None, compress=False):
    body = json.dumps({"points": [{"key": k, "step": s, "wall_time": t, "value": word(v)} for k, s, t, v in points]}).encode()
    head = dict(lib.JSON, **(headers or {}))
    if compress:
        body = gzip.compress(body)
        head["Content-Encoding"] = "gzip"
    status, _, data = server.request("POST", f"/api/v1/runs/{run}/metrics", body, head)
    lib.equal(status, 200, f"POST metrics: {data[:200]!r}")
    return json.loads(data)


def as_rows(text, kind):
    if kind == "csv":
        return list(csv.DictReader(io.StringIO(text, newline="")))
    return json.loads(text) if kind == "json" else [json.loads(line) for line in text.splitlines()]


def round_trip(server):
    points = some_points()
    run = lib.make_run(server, params={"lr": 0.1, "text": 'a "b", c\nd', "big": 12345678901234567890123 // 10**6})
    half = len(points) // 2
    lib.equal(post_points(server, run, points[:half])["accepted"], half, "accepted")
    lib.equal(post_points(server, run, points[half:], compress=True)["accepted"], len(points) - half, "accepted (gzip)")
    want = [(k, s, bits(t), bits(v)) for k, s, t, v in points]
    for kind in ("csv", "json", "jsonl"):
        for headers in ({}, {"Accept-Encoding": "gzip"}):
            status, got_headers, data = server.request("GET", f"/api/v1/export/series.{kind}?run={run}", headers=headers)
            lib.equal(status, 200, kind)
            lib.equal(got_headers.get("Content-Encoding"), "gzip" if headers else None, f"{kind}: encoding")
            rows = as_rows((gzip.decompress(data) if headers else data).decode(), kind)
            got = [(r["key"], int(r["step"]), bits(number(r["wall_time"])), bits(number(r["value"]))) for r in rows]
            lib.check(got == want, f"series.{kind}: {len(got)} rows; first difference {next((p for p in zip(got, want) if p[0] != p[1]), None)}")
            lib.equal({(r["run_id"], int(r["rank"]), int(r["segment"])) for r in rows}, {(run, -1, 0)}, f"{kind}: columns")
    pages, token = [], ""
    while token is not None:
        status, page = server.json("GET", f"/api/v1/series?run={run}&limit=300" + (f"&page_token={token}" if token else ""))
        lib.equal(status, 200, "pages of /series")
        pages += page["points"]
        token = page["next_page_token"]
    lib.check([(p["key"], p["step"], bits(number(p["wall_time"])), bits(number(p["value"]))) for p in pages] == want, "pages of /series")
    return run


def table(server, run):
    for kind in ("csv", "json", "jsonl"):
        _, _, data = server.request("GET", f"/api/v1/export/runs.{kind}?experiment=digits")
        rows = [r for r in as_rows(data.decode(), kind) if r["run_id"] == run]
        lib.equal(len(rows), 1, f"runs.{kind}")
        lib.equal((rows[0]["params.lr"], rows[0]["params.text"]), ("0.1", 'a "b", c\nd'), f"runs.{kind}: params")
        lib.check(math.isfinite(number(rows[0]["metrics.train/loss.max"])), f"runs.{kind}: max is of finite values")
    head = server.request("GET", "/api/v1/export/runs.csv?experiment=digits")[2].decode().splitlines()[0]
    lib.check(head.startswith("run_id,run_name,status,start_time,end_time,params."), f"runs.csv: {head[:80]}")


def idempotent(server, run):
    points = [("again", 1, 1795000000.5, 2.0)]
    first = post_points(server, run, points, {"Idempotency-Key": "k1"})
    lib.equal(post_points(server, run, points, {"Idempotency-Key": "k1"}), first, "a repeated request gets the first reply")
    post_points(server, run, points)
    _, got = server.json("GET", f"/api/v1/runs/{run}")
    lib.equal(got["metrics"]["again"]["count"], 2, "equal points without a key are two points")


def buckets(server):
    run = lib.make_run(server, name="buckets")
    r = random.Random(3)
    points = [("loss", s, 1795000000.0 + s, r.gauss(0, 1)) for s in range(1000)]
    points[337] = ("loss", 337, 1795000337.0, 4850.0)
    points[600] = ("loss", 600, 1795000600.0, math.nan)
    post_points(server, run, points)
    status, got = server.json("POST", "/api/v1/series/query", {"runs": [run], "keys": ["loss"], "buckets": 20, "x": "step"})
    lib.equal(status, 200, "POST /series/query")
    edges, line = got["edges"], got["series"][0]
    b = line["buckets"]
    lib.equal((len(edges), line["count"], sum(b["count"]), sum(b["nonfinite"])), (21, 1000, 1000, 1), "edges and counts")
    lib.equal(len({len(v) for v in b.values()}), 1, "columns of equal length")
    for n, i in enumerate(b["i"]):
        inside = [p for p in points if edges[i] <= p[1] and (p[1] < edges[i + 1] or (i == 19 and p[1] <= edges[20]))]
        finite = [p for p in inside if math.isfinite(p[3])]
        low, high = min(finite, key=lambda p: p[3]), max(finite, key=lambda p: p[3])
        want = (finite[0][1], finite[0][3], low[1], low[3], high[1], high[3], finite[-1][1], finite[-1][3], len(inside))
        have = tuple(b[k][n] for k in ("x_first", "first", "x_min", "min", "x_max", "max", "x_last", "last", "count"))
        lib.equal(have, want, f"bucket {i}")
        lib.check(math.isclose(b["sum"][n], sum(p[3] for p in finite), rel_tol=1e-12, abs_tol=1e-9), f"sum of bucket {i}")
    lib.check(4850.0 in b["max"], "the spike is in a bucket")
    status, same = server.json("GET", f"/api/v1/series?run={run}&key=loss&buckets=20")
    lib.equal((status, same["series"]), (200, got["series"]), "GET /series returns the same")


def http_rules(server, run):
    status, headers, data = server.request("GET", f"/api/v1/runs/{run}")
    status, again, empty = server.request("GET", f"/api/v1/runs/{run}", headers={"If-None-Match": headers["ETag"]})
    lib.equal((status, empty, again["ETag"]), (304, b"", headers["ETag"]), "If-None-Match")
    status, zipped, body = server.request("GET", f"/api/v1/runs/{run}", headers={"Accept-Encoding": "br, gzip;q=0.5"})
    lib.equal((zipped.get("Content-Encoding"), gzip.decompress(body)), ("gzip", data), "gzip reply")
    status, plain, _ = server.request("GET", f"/api/v1/runs/{run}", headers={"Accept-Encoding": "gzip;q=0"})
    lib.equal(plain.get("Content-Encoding"), None, "gzip refused")
    status, head, body = server.request("HEAD", f"/api/v1/runs/{run}")
    lib.equal((status, body, head["Content-Length"]), (200, b"", headers["Content-Length"]), "HEAD")
    lib.equal(server.request("HEAD", f"/api/v1/export/series.csv?run={run}")[::2], (200, b""), "HEAD of a stream")
    lib.equal(server.request("HEAD", "/api/v1/events")[::2], (200, b""), "HEAD of events")
    for path in (f"/api/v1/export/series.csv?run={run}", f"/api/v1/export/series.jsonl?run={run}&key=again", "/api/v1/export/runs.csv?experiment=digits"):
        tag = server.request("GET", path)[1]["ETag"]
        other = lib.make_run(server, experiment="elsewhere", name="another")
        status, _, body = server.request("GET", path, headers={"If-None-Match": f'"x", {tag}'})
        lib.check(status == 304 and body == b"" if "series" in path else status == 200, f"{path}: {status} after a change of another run")
        tag = server.request("GET", path)[1]["ETag"]
        lib.equal(server.request("GET", path, headers={"If-None-Match": tag})[0], 304, f"{path} unchanged")
        lib.equal(server.request("GET", path.replace("csv", "json"), headers={"If-None-Match": tag})[0], 304 if "jsonl" in path else 200, f"{path}: another format")
        post_points(server, run, [("again", 9, 1795000009.0, 1.0)])
        lib.equal(server.request("GET", path, headers={"If-None-Match": tag})[0], 200, f"{path} with a new point")
    status, options, _ = server.request("OPTIONS", f"/api/v1/runs/{run}")
    lib.equal((status, options["Allow"]), (204, "GET, HEAD, PATCH, DELETE, OPTIONS"), "OPTIONS")
    lib.check("Access-Control-Allow-Origin" not in options, "no CORS")
    status, refused, _ = server.request("PUT", "/api/v1/runs")
    lib.equal((status, refused["Allow"]), (405, "GET, HEAD, POST, OPTIONS"), "405 with Allow")
    for path in ("/", "/api/v1/runs", "/api/v1/nope", "/metrics"):
        got = server.request("GET", path)[1]
        for name, value in (("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
                            ("Cross-Origin-Resource-Policy", "same-origin")):
            lib.equal(got[name], value, f"{path}: {name}")
        lib.check("default-src 'none'" in got["Content-Security-Policy"], f"{path}: CSP")


def prometheus(server):
    """The rules of the text format 0.0.4 and of promtool's check metrics."""
    status, headers, data = server.request("GET", "/metrics")
    lib.equal((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"), "/metrics")
    text = data.decode()
    lib.check(text.endswith("\n") and "\r" not in text, "/metrics ends in a line break")
    types, helps, seen, last = {}, {}, set(), None
    for line in text.splitlines():
        head = re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)", line)
        if head:
            kind, name, rest = head.groups()
            lib.check(name not in (helps if kind == "HELP" else types), f"{kind} of {name} twice")
            (helps if kind == "HELP" else types)[name] = rest
            continue
        sample = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)+\})? (\S+)', line)
        if not lib.check(sample, f"/metrics: {line!r} is not a sample"):
            continue
        name = sample[1]
        float(sample[3].replace("Infinity", "Inf"))
        lib.check(name in types and name in helps, f"{name} has neither TYPE nor HELP before it")
        lib.check(types.get(name) in ("counter", "gauge"), f"{name}: type {types.get(name)}")
        lib.equal(types.get(name) == "counter", name.endswith("_total"), f"{name}: counters end in _total, others do not")
        lib.check((name, sample[2]) not in seen, f"{line}: twice")
        lib.check(name == last or not any(n == name for n, _ in seen), f"{name}: its samples are not adjacent")
        seen.add((name, sample[2]))
        last = name
    lib.equal(set(types), {n for n, _ in seen}, "names with a TYPE, and names with a sample")
    lib.check(len(seen) > 15, f"{len(seen)} samples")


def errors(server, run):
    def error(method, path, body, status, field, headers=None):
        got, reply = server.json(method, path, body, headers)
        lib.equal((got, reply["error"]["field"]), (status, field), f"{method} {path} {body}")
        lib.check(reply["error"]["message"] and reply["error"]["code"], f"{method} {path}: {reply}")
    point = {"key": "k", "step": 1, "value": 1.0}
    metrics = f"/api/v1/runs/{run}/metrics"
    error("POST", metrics, {"points": [point, dict(point, value="high")]}, 400, "points[1].value")
    error("POST", metrics, {"points": [dict(point, step=1.5)]}, 400, "points[0].step")
    error("POST", metrics, {"points": [dict(point, step=2**63)]}, 400, None)
    error("POST", metrics, {"points": [{"step": 1, "value": 1}]}, 400, "points[0].key")
    error("POST", metrics, {"points": [dict(point, x=1)]}, 400, "points[0].x")
    error("POST", metrics, {"points": [dict(point, rank=-2)]}, 400, "points[0].rank")
    error("POST", metrics, {}, 400, "points")
    error("POST", "/api/v1/runs", {"params": {"a": []}}, 400, "params.a")
    error("POST", "/api/v1/runs", {"nme": "x"}, 400, "nme")
    error("POST", "/api/v1/runs", {"tags": {"Größe": "x" * 9000}}, 400, "tags.Größe")
    error("POST", "/api/v1/runs", {"experiment": "x" * 600}, 400, "experiment")
    error("PATCH", f"/api/v1/runs/{run}", {"status": "done"}, 400, "status")
    error("POST", "/api/v1/backup", {"path": "../elsewhere"}, 400, "path")
    error("POST", "/api/v1/experiments", {"name": 1}, 400, "name")
    error("GET", "/api/v1/runs?limit=0", None, 400, "limit")
    error("GET", "/api/v1/runs?limit=1&limit=2", None, 400, "limit")
    error("GET", "/api/v1/runs?filter=metrics.", None, 400, "filter")
    error("GET", "/api/v1/runs?order_by=metrics.", None, 400, "order_by")
    error("GET", "/api/v1/runs?page_token=x", None, 400, "page_token")
    error("GET", "/api/v1/runs?experiment=none", None, 404, "experiment")
    error("GET", "/api/v1/runs/" + "f" * 32, None, 404, "run")
    error("GET", f"/api/v1/series?run={run}&rank=x", None, 400, "rank")
    error("GET", f"/api/v1/series?run={run}&buckets=0", None, 400, "buckets")
    error("GET", "/api/v1/series", None, 400, "run")
    error("GET", f"/api/v1/compare?run={'f' * 32}", None, 404, "run")
    error("GET", "/api/v1/changes?since=nonsense", None, 400, "since")
    error("POST", f"/api/v1/runs/{run}/params", {"params": {"lr": "0.2"}}, 409, None)
    error("POST", f"/api/v1/runs/{run}/journal?writer=x&offset=0", b"", 400, "writer", {"Content-Type": "application/octet-stream"})
    big = gzip.compress(b" " * (9 << 20))
    status, _, _ = server.request("POST", metrics, big, dict(lib.JSON, **{"Content-Encoding": "gzip"}))
    lib.equal(status, 413, "a small body that inflates beyond the limit")


def main():
    with lib.fresh() as server:
        run = round_trip(server)
        table(server, run)
        idempotent(server, run)
        buckets(server)
        http_rules(server, run)
        prometheus(server)
        errors(server, run)
    lib.finish("transfer")


main()
