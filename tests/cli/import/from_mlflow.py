# SPDX-License-Identifier: Apache-2.0
"""Stores of MLflow imported by `dptrack import`: samples in this folder that MLflow wrote (make_mlflow.py), as a
SQLite store and as folders, into a folder of runs and to a server. Every run, param, tag, point, data set, file,
experiment and version must equal what MLflow's client returned for it, and a repeat must change nothing.
`from_mlflow.py FOLDER` uses a store that make_mlflow.py made there."""
import sys
sys.dont_write_bytecode = True
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import urllib.parse
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "api"))
import lib

HERE = os.path.dirname(os.path.abspath(__file__))
ML = "/api/2.0/mlflow/"


def run(*args, code=0):
    environment = {k: v for k, v in os.environ.items() if k not in ("DPTRACK_TOKEN", "DPTRACK_URL")}
    r = subprocess.run([lib.PROGRAM, *args], capture_output=True, text=True, timeout=120, env=environment)
    lib.equal(r.returncode, code, f"{' '.join(args)}: {r.stderr!r}")
    return r.stdout if code == 0 else r.stderr


def sample(folder):
    """Copies the committed samples to where their paths refer."""
    shutil.copytree(os.path.join(HERE, "mlruns"), os.path.join(folder, "mlruns"))
    shutil.copytree(os.path.join(HERE, "files"), os.path.join(folder, "files"))
    shutil.copy(os.path.join(HERE, "mlflow.json"), folder)
    with open(os.path.join(HERE, "mlflow.sql"), encoding="utf-8") as f, sqlite3.connect(os.path.join(folder, "mlflow.db")) as db:
        db.executescript(f.read().replace("@HERE@", folder))


class Store:
    """What a server returns by MLflow's routes, in the form of make_mlflow.py's describe()."""

    def __init__(self, server):
        self.server = server

    def ask(self, method, route, body=None, **args):
        target = ML + route + ("?" + urllib.parse.urlencode(args) if args else "")
        status, _, reply = self.server.request(method, target, body)
        lib.equal(status, 200, f"{method} {target}: {reply[:200]!r}")
        return json.loads(reply)

    def said(self):
        out = {"experiments": [], "runs": [], "models": []}
        for e in self.ask("POST", "experiments/search", {"view_type": "ALL", "max_results": 100})["experiments"]:
            tags = {t["key"]: t["value"] for t in e.get("tags", [])}
            out["experiments"].append([e["name"], e["lifecycle_stage"], tags])
            runs = self.ask("POST", "runs/search", {"experiment_ids": [e["experiment_id"]], "run_view_type": "ALL"}).get("runs", [])
            out["runs"] += [self.run(r, e["name"]) for r in runs]
        for m in self.ask("GET", "registered-models/search").get("registered_models", []):
            versions = self.ask("GET", "model-versions/search", filter=f"name='{m['name']}'").get("model_versions", [])
            out["models"].append([m["name"], m.get("description", ""), {t["key"]: t["value"] for t in m.get("tags", [])},
                                  {a["alias"]: a["version"] for a in m.get("aliases", [])},
                                  sorted([int(v["version"]), v.get("description", ""), v["current_stage"], v.get("run_id"),
                                          {t["key"]: t["value"] for t in v.get("tags", [])}] for v in versions)])
        for part in ("experiments", "models"):
            out[part].sort(key=lambda item: item[0])
        out["runs"].sort(key=lambda r: r["id"])
        return out

    def run(self, r, experiment):
        i, data = r["info"], r["data"]
        keys = [m["key"] for m in data.get("metrics", [])]
        history = {k: sorted([repr(float(m["value"])), m["timestamp"], m["step"]]
                             for m in self.ask("GET", "metrics/get-history", run_id=i["run_id"], metric_key=k)["metrics"]) for k in keys}
        inputs = [[d["dataset"]["name"], d["dataset"]["digest"], d["dataset"]["source_type"], sorted([t["key"], t["value"]] for t in d.get("tags", []))]
                  for d in r.get("inputs", {}).get("dataset_inputs", [])]
        return {"id": i["run_id"], "name": i["run_name"], "status": i["status"], "start": i["start_time"], "end": i.get("end_time"),
                "stage": i["lifecycle_stage"], "experiment": experiment, "params": {p["key"]: p["value"] for p in data.get("params", [])},
                "tags": {t["key"]: t["value"] for t in data.get("tags", [])}, "history": history, "inputs": inputs,
                "latest": {m["key"]: repr(float(m["value"])) for m in data.get("metrics", [])}, "files": self.files(i["run_id"], "")}

    def files(self, run_id, path):
        found = {}
        for f in self.ask("GET", "artifacts/list", run_id=run_id, path=path).get("files", []):
            found.update(self.files(run_id, f["path"]) if f["is_dir"] else {f["path"]: int(f.get("file_size", 0))})
        return found


def compare(got, want, what):
    for part in ("experiments", "models"):
        lib.equal(got[part], want[part], f"{what}: {part}")
    lib.equal([r["id"] for r in got["runs"]], [r["id"] for r in want["runs"]], f"{what}: the runs")
    for mine, theirs in zip(got["runs"], want["runs"]):
        for field, value in theirs.items():
            lib.equal(mine[field], value, f"{what}: {field} of {theirs['name']}")


def imports_store(folder, store, want, what):
    into, path = os.path.join(folder, "into-" + what), os.path.join(folder, store)
    said = run("import", path, "--logdir", into)
    lib.check(f"{len(want['runs'])} runs, " in said and "4 files" in said, said)
    lib.check("0 files" in run("import", path, "--logdir", into), "a repeat imports no file again")
    server = lib.Server(into)
    got = Store(server).said()
    compare(got, want, what)
    first = next(r["id"] for r in want["runs"] if "notes/hello.txt" in r["files"])
    lib.equal(server.request("GET", f"/api/v1/runs/{first}/artifacts/notes/hello.txt")[2], b"hello\n", what + ": the bytes of a file")
    version = server.request("GET", "/model-versions/get-artifact?name=resnet&version=3&path=MLmodel")
    lib.equal(version[2], b"model\n", what + ": a version's file, by its number")
    run("import", path, "--logdir", into)
    lib.equal(Store(server).said(), got, what + ": a repeat while a server holds the store")
    lib.equal(server.stop(), 0, "exit code")


def sent(folder, want):
    """Imports to a server elsewhere, all into one experiment."""
    server = lib.Server(os.path.join(folder, "far"))
    for _ in range(2):
        run("import", os.path.join(folder, "mlflow.db"), "--url", server.url, "--experiment", "all of it")
    got = Store(server).said()["runs"]
    lib.equal({r["experiment"] for r in got}, {"all of it"}, "--experiment")
    for mine, theirs in zip(got, want["runs"]):
        lib.equal([mine["params"], mine["history"], mine["files"], mine["stage"]],
                  [theirs["params"], theirs["history"], theirs["files"], theirs["stage"]], "sent: " + theirs["name"])
    lib.equal(server.stop(), 0, "exit code")


def grown(folder, want):
    """A run that grew after its import: the second import adds the new data and its end."""
    path, into = os.path.join(folder, "mlflow.db"), os.path.join(folder, "into-db")
    running = next(r for r in want["runs"] if r["status"] == "RUNNING")
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES ('loss', 0.5, 1700000390000, ?, 99, 0)", (running["id"],))
        db.execute("UPDATE runs SET status = 'FINISHED', end_time = 1700000391000 WHERE run_uuid = ?", (running["id"],))
        db.execute("INSERT INTO params (key, value, run_uuid) VALUES ('late', 'x', ?)", (running["id"],))
    db.close()
    run("import", path, "--logdir", into)
    server = lib.Server(into)
    got = next(r for r in Store(server).said()["runs"] if r["id"] == running["id"])
    lib.equal(got["history"]["loss"], sorted(running["history"]["loss"] + [["0.5", 1700000390000, 99]]), "grown: its points")
    lib.equal([got["status"], got["end"], got["params"]["late"]], ["FINISHED", 1700000391000, "x"], "grown: its end")
    lib.equal(server.stop(), 0, "exit code")


def refused(folder):
    other = os.path.join(folder, "other.db")
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    into = os.path.join(folder, "refused")
    lib.check("without MLflow's table" in run("import", other, "--logdir", into, code=2), "a SQLite file of another program")
    with open(os.path.join(folder, "mlflow.db"), "rb") as f:
        head = f.read(40000)
    with open(other, "wb") as f:
        f.write(head)
    lib.check(other in run("import", other, "--logdir", into, code=1), "the message names a damaged store")
    plain = os.path.join(folder, "plain.txt")
    with open(plain, "w", encoding="ascii") as f:
        f.write("x")
    lib.check("unknown format" in run("import", plain, "--logdir", into, code=2), "a file that is not a store")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        if len(sys.argv) > 1:
            shutil.copytree(sys.argv[1], folder, dirs_exist_ok=True)
        else:
            sample(folder)
        with open(os.path.join(folder, "mlflow.json"), encoding="utf-8") as f:
            want = json.load(f)
        imports_store(folder, "mlflow.db", want["db"], "db")
        imports_store(folder, "mlruns", want["mlruns"], "mlruns")
        sent(folder, want["db"])
        grown(folder, want["db"])
        refused(folder)
    lib.finish("import/mlflow")


if __name__ == "__main__":
    main()
