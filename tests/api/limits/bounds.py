# SPDX-License-Identifier: Apache-2.0
"""What one client may make the server do or keep has a bound: levels of percent-encoding in paths and sources, the length
of a source and of an Idempotency-Key, the number of views and reports. Steps are seen as processor time of the server."""
import sys
sys.dont_write_bytecode = True
import os
import time
import urllib.parse
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib

API = "/api/2.0/mlflow"
MIB = 1 << 20


def busy_s(server):
    """Seconds of processor time that the server has taken."""
    with open(f"/proc/{server.process.pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def refused_soon(server, method, path, body, want=400, most_s=1):
    before = busy_s(server)
    status, reply = server.json(method, path, body)
    lib.equal(status, want, f"{method} {path[:200]}: {str(reply)[:200]}")
    took = busy_s(server) - before
    lib.check(took < most_s * (10 if lib.sanitized(server) else 1), f"{method} {path[:200]} took {took:.2f} s of the processor")


def levels(server):
    """CVE-2024-3848 and its like hide a path below levels of percent-encoding: few are undone, more are refused."""
    run = lib.make_run(server)
    deep = "%" + "25" * ((MIB - 200) // 2)
    refused_soon(server, "GET", API + "/artifacts/list", {"run_id": run, "path": deep})
    for source in ("s3://b/", "models:/", "mlflow-artifacts:/0/", "runs:/" + run + "/", "file:///"):
        refused_soon(server, "POST", API + "/model-versions/create", {"name": "m", "source": source + deep})
        refused_soon(server, "POST", API + "/model-versions/create", {"name": "m", "source": source + deep[:1900]})
    for path in (f"/get-artifact?run_uuid={run}&path=", "/api/2.0/mlflow-artifacts/artifacts?path=", "/api/2.0/mlflow-artifacts/artifacts/",
                 "/model-versions/get-artifact?name=m&version=1&path=", f"/api/v1/runs/{run}/artifacts/"):
        refused_soon(server, "GET", path + "%25" * 1300, None)
    for rounds in (1, 5, 12):
        quoted = "a%b"
        for _ in range(rounds):
            quoted = urllib.parse.quote(quoted)
        status, reply = server.json("GET", API + "/artifacts/list?" + urllib.parse.urlencode({"run_id": run, "path": quoted}))
        lib.equal(status, 200 if rounds < 8 else 400, f"{rounds} levels: {reply}")


def lengths(server):
    server.json("POST", API + "/registered-models/create", {"name": "m"})
    for n, want in ((2048, 200), (2049, 400)):
        status, reply = server.json("POST", API + "/model-versions/create", {"name": "m", "source": ("s3://b/" + "x" * n)[:n]})
        lib.equal(status, want, f"a source of {n}: {str(reply)[:200]}")
    run = lib.make_run(server)
    for path, body in ((f"/runs/{run}/metrics", {"points": []}), ("/runs", {"experiment": "e"})):
        for n, good in ((255, True), (256, False), (30000, False)):
            status, reply = server.json("POST", "/api/v1" + path, body, {"Idempotency-Key": "k" * n})
            lib.equal(status < 300, good, f"{path}: an Idempotency-Key of {n}: {status} {reply}")


def filters(server):
    """The steps of all tests of a filter are counted: patterns that nearly match long texts are refused, others are not."""
    for i in range(16):
        text = "a" * 7999 + "ab"[i % 2]
        made = server.json("POST", "/api/v1/runs", {"experiment": "long", "params": {"x": text}, "tags": {"x": text}})
        lib.equal(made[0], 201, "a run")
    experiment = server.json("GET", API + "/experiments/get-by-name?experiment_name=long")[1]["experiment"]["experiment_id"]
    for many in ("%" + "a" * 3900 + "c", "%" + "_" * 3900 + "c"):
        test = " OR ".join(f"tags.x LIKE '{many}'" for _ in range(4))
        refused_soon(server, "GET", "/api/v1/runs?" + urllib.parse.urlencode({"filter": test}), None, most_s=5)
        test = " AND ".join(f"tags.x ILIKE '{many[:-1]}%'" for _ in range(4)) + f" AND params.x LIKE '{many}'"
        refused_soon(server, "POST", API + "/runs/search", {"experiment_ids": [experiment], "filter": test}, most_s=5)
    for test, want in (("tags.x LIKE '%b'", 8), ("tags.x LIKE '%" + "a" * 3900 + "%'", 16), ("tags.x LIKE '" + "_" * 8000 + "'", 16),
                       ("run_id IN (" + ", ".join(f"'{i:032x}'" for i in range(300)) + ")", 0)):
        status, reply = server.json("GET", "/api/v1/runs?" + urllib.parse.urlencode({"experiment": "long", "filter": test}))
        lib.equal((status, len(reply.get("runs", []))), (200, want), test[:80])


def once(server):
    """A run or a key that is named many times is exported once, where it was first."""
    a, b = lib.make_run(server, "twice"), lib.make_run(server, "twice")
    for run in (a, b):
        points = [{"key": key, "step": s, "value": 1, "wall_time": 1.8e9} for key in ("x", "y") for s in range(5)]
        lib.equal(server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": points})[0], 200, "points")
    for kind in ("series.csv", "series.json", "series.jsonl"):
        few = [("run", b), ("run", a), ("key", "y"), ("key", "x")]
        many = [("run", b), ("run", a)] + [("run", a[:12]), ("run", b)] * 50 + [("key", "y"), ("key", "x")] * 50
        want, got = (server.request("GET", f"/api/v1/export/{kind}?" + urllib.parse.urlencode(q)) for q in (few, many))
        lib.equal((got[0], got[2]), (200, want[2]), f"{kind}: runs and keys named many times")
    query = "/api/v1/series?" + urllib.parse.urlencode([("run", a)] * 50 + [("key", "x")] * 50)
    reply = server.json("GET", query)
    lib.equal((reply[0], str(reply[1]).count(a)), (200, 5), f"the points of one line: {reply}")


def kept(server):
    lib.make_run(server, "many")
    for shelf, text in (("reports", "text"), ("views", "query")):
        made = [server.json("POST", "/api/v1/" + shelf, {"experiment": "many", "name": f"n {i}", text: "?"}) for i in range(501)]
        lib.equal([i for i, (status, _) in enumerate(made) if status != 201], [500], f"{shelf} of one experiment: {made[-1]}")
        lib.equal(server.json("DELETE", f"/api/v1/{shelf}/{made[0][1]['id']}")[0], 200, "deleted")
        lib.equal(server.json("POST", "/api/v1/" + shelf, {"experiment": "many", "name": "again", text: "?"})[0], 201, "a place is free again")


def main():
    with lib.fresh() as server:
        levels(server)
        lengths(server)
        filters(server)
        once(server)
        kept(server)
    lib.finish("bounds")


main()
