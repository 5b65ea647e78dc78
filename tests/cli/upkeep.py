"""What keeps a store: gc on a folder and through its server."""
import sys
sys.dont_write_bytecode = True
import json
import os
import subprocess
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib


def run(*args, code=0):
    environment = {k: v for k, v in os.environ.items() if k != "DPTRACK_TOKEN"}
    r = subprocess.run([lib.PROGRAM, *args], capture_output=True, text=True, timeout=60, env=environment)
    lib.equal(r.returncode, code, f"{' '.join(args)}: {r.stderr}")
    return r.stdout if not code else r.stderr


def add_run(server, name, points=500):
    run_id = lib.make_run(server, "keep", name, {"lr": 0.1})
    rows = [{"key": f"k{i % 3}", "step": i, "value": i * 0.5} for i in range(points)]
    lib.equal(server.json("POST", f"/api/v1/runs/{run_id}/metrics", {"points": rows})[0], 200, "POST metrics")
    return run_id


def gone(server, run_id):
    for method, path, body in (("GET", "", None), ("PATCH", "", {"name": "x"}), ("DELETE", "", None), ("POST", "/restore", None),
                               ("POST", "/metrics", {"points": []}), ("POST", f"/journal?writer={'a' * 32}&offset=0", b""),
                               ("GET", f"/journal?writer={'a' * 32}", None)):
        headers = {"Content-Type": "application/octet-stream"} if body == b"" else {}
        status, reply = server.json(method, f"/api/v1/runs/{run_id}{path}", body, headers)
        lib.equal((status, (reply or {}).get("error", {}).get("code")), (410, "gone"), f"{method} {path} of a removed run")


def collect(runs):
    server = lib.Server(runs)
    first, second, kept = (add_run(server, name) for name in ("first", "second", "kept"))
    place = ("--logdir", runs)
    lib.check("0 runs" in run("gc", *place), "gc: nothing is deleted")
    for run_id in (first, second):
        lib.equal(server.json("DELETE", f"/api/v1/runs/{run_id}")[0], 200, "DELETE")
    lib.equal(json.loads(run("gc", "--older-than", "1", "--json", *place))["runs"], 0, "gc --older-than 1")
    lib.check(run("gc", "--dry-run", *place).startswith("would remove 2 runs with 1000 points"), "gc --dry-run")
    lib.equal(server.json("POST", f"/api/v1/runs/{second}/restore")[0], 200, "restore")
    lib.check(run("gc", *place).startswith("removed 1 run with 500 points"), "gc through the server")
    gone(server, first)
    lib.equal({r["id"] for r in server.json("GET", "/api/v1/runs")[1]["runs"]}, {second, kept}, "the others stay")
    lib.equal(server.json("POST", "/api/v1/gc", {"older_than_days": -1})[0], 400, "a negative age")
    lib.equal(server.json("POST", "/api/v1/gc", {"journals": 1})[0], 400, "journals: 1")
    lib.equal(server.json("DELETE", f"/api/v1/runs/{second}")[0], 200, "DELETE")
    lib.equal(server.stop(), 0, "exit code")
    lib.equal(json.loads(run("gc", "--json", *place))["runs"], 1, "gc on the folder")
    lib.equal([r["id"] for r in json.loads(run("ls", "--json", *place))["runs"]], [kept], "ls after gc")
    run("gc", "--older-than", "x", *place, code=2)
    run("gc", "--csv", *place, code=2)


def main():
    lib.bound(120)
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        collect(os.path.join(folder, "runs"))
    lib.finish("upkeep")


main()
