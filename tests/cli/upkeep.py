# SPDX-License-Identifier: Apache-2.0
"""Maintenance of a store: gc on a folder and through its server; backups under load give the same answers."""
import sys
sys.dont_write_bytecode = True
import json
import os
import sqlite3
import subprocess
import tempfile
import threading
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib


def run(*args, code=0, alone=False):
    r = subprocess.run([lib.PROGRAM, *args], capture_output=True, text=True, errors="surrogateescape", timeout=60,
                       env=lib.environment_of(args, alone))
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
    lib.check("0 runs" in run("gc", *place), "gc without deleted runs")
    for run_id in (first, second):
        lib.equal(server.json("DELETE", f"/api/v1/runs/{run_id}")[0], 200, "DELETE")
    lib.equal(json.loads(run("gc", "--older-than", "1", "--json", *place))["runs"], 0, "gc --older-than 1")
    lib.check(run("gc", "--dry-run", *place).startswith("would remove 2 runs with 1000 points"), "gc --dry-run")
    lib.equal(server.json("POST", f"/api/v1/runs/{second}/restore")[0], 200, "restore")
    lib.check(run("gc", *place).startswith("removed 1 run with 500 points"), "gc through the server")
    gone(server, first)
    lib.equal({r["id"] for r in server.json("GET", "/api/v1/runs")[1]["runs"]}, {second, kept}, "runs after gc")
    lib.equal(server.json("POST", "/api/v1/gc", {"older_than_days": -1})[0], 400, "a negative age")
    lib.equal(server.json("POST", "/api/v1/gc", {"journals": 1})[0], 400, "journals: 1")
    lib.equal(server.json("DELETE", f"/api/v1/runs/{second}")[0], 200, "DELETE")
    lib.equal(server.stop(), 0, "exit code")
    lib.equal(json.loads(run("gc", "--json", *place))["runs"], 1, "gc on the folder")
    lib.equal([r["id"] for r in json.loads(run("ls", "--json", *place))["runs"]], [kept], "ls after gc")
    run("gc", "--older-than", "x", *place, code=2)
    run("gc", "--csv", *place, code=2)


def export(place, alone=False):
    runs = run("export", "--experiment", "keep", "--json", "--logdir", place, alone=alone)
    return runs, run("export", "--series", "--experiment", "keep", "--csv", "--logdir", place, alone=alone)


def backups(folder):
    runs, copy, single = (os.path.join(folder, n) for n in ("runs2", "copy", "single/x.db"))
    server = lib.Server(runs)
    ids = [add_run(server, f"r{i}", 3000) for i in range(5)]
    noise = lib.make_run(server, "noise", "noise")
    artifact = os.path.join(runs, "dptrack.artifacts", "1", ids[0], "artifacts", "a", "w.bin")
    os.makedirs(os.path.dirname(artifact))
    with open(artifact, "wb") as f:
        f.write(os.urandom(300000))
    acked, stop = [0], threading.Event()

    def load():
        while not stop.is_set():
            rows = [{"key": "n", "step": acked[0] + i, "value": 1.0} for i in range(500)]
            if server.json("POST", f"/api/v1/runs/{noise}/metrics", {"points": rows})[0] == 200:
                acked[0] += 500

    thread = threading.Thread(target=load)
    thread.start()
    while acked[0] < 5000:
        stop.wait(0.01)
    before = acked[0]
    text = run("backup", copy, "--logdir", runs)
    lib.check(text.startswith(copy) and " 1 artifacts" in text, f"backup: {text!r}")
    stop.set()
    thread.join()
    want = export(runs)
    lib.equal(export(copy, alone=True), want, "the backup's exports")
    rows = run("export", "--series", "--experiment", "noise", "--csv", "--logdir", copy, alone=True).splitlines()[1:]
    steps = [int(r.split(",")[5]) for r in rows]
    lib.check(steps == list(range(len(steps))) and before <= len(steps) <= acked[0], f"noise: {before} {len(steps)} {acked[0]}")
    with open(artifact, "rb") as f, open(artifact.replace(runs, copy), "rb") as g:
        lib.check(f.read() == g.read(), "the artifact")
    lib.check("must be UTF-8" in run("backup", copy + "\udcff", "--logdir", runs, code=2), "a path that is not text")
    lib.check("already exists" in run("backup", copy + "/dptrack.db", "--logdir", runs, code=2), "an existing path")
    for place in ("dptrack.artifacts/x", "dptrack.artifacts/1/x", "dptrack.artifacts/x.db"):
        lib.check("among the artifacts" in run("backup", os.path.join(runs, place), "--logdir", runs, code=2), f"a backup in {place}")
        lib.check(not os.path.exists(os.path.join(runs, place)), f"{place} was not created")
    run("backup", os.path.join(folder, "none", "x"), "--logdir", runs, code=2)
    os.mkdir(os.path.join(folder, "single"))
    lib.equal(server.json("POST", "/api/v1/backup", {"path": single}, headers=server.as_owner())[0], 200, "POST /backup")
    lib.equal(server.json("POST", "/api/v1/backup", {"path": "../x"})[0], 400, "a relative path")
    no_restore = "migrate" if lib.IN_DATABASE else "held by process"
    lib.check(no_restore in run("backup", "--restore", copy, "--logdir", runs, code=2 if lib.IN_DATABASE else 1), "restore while the store is served")
    lib.equal(server.json("DELETE", f"/api/v1/runs/{ids[0]}")[0], 200, "DELETE")
    lib.equal(server.stop(), 0, "exit code")
    run("gc", "--logdir", runs)
    if not lib.IN_DATABASE:
        restored(folder, runs, copy, artifact, want)
        changes_of_a_restored_store(folder)


def restored(folder, runs, copy, artifact, want):
    """A backup replaces the store, which is kept."""
    for itself in (runs, os.path.join(runs, "dptrack.db")):
        lib.check("the store itself" in run("backup", "--restore", itself, "--logdir", runs, code=2), "restore of the store itself")
    lib.check(not any("before-restore" in n for n in os.listdir(runs)), "a refused restore leaves no copy")
    lib.check(export(runs) != want, "the store has changed since the backup")
    single = os.path.join(folder, "single")
    siblings = sorted(os.listdir(single))
    run("backup", "--restore", os.path.join(single, "x.db"), "--logdir", runs)
    lib.equal(sorted(os.listdir(single)), siblings, "a restore adds no files next to the backup")
    lib.equal(export(runs), want, "exports after a restore")
    lib.check(os.path.exists(artifact), "the artifact is restored")
    lib.equal(sum("before-restore" in n for n in os.listdir(runs)) > 0, True, "the replaced store is kept")
    lib.check("before-restore" not in run("backup", "--restore", copy, "--logdir", os.path.join(folder, "empty")), "restore into an empty folder")
    lib.check("is not a backup" in run("backup", "--restore", artifact, "--logdir", runs, code=2), "a file that is not a backup")


def changes_of_a_restored_store(folder):
    """A client is told to reload after a restore, even if the restored store has more changes than the client has
    seen."""
    runs, copy = os.path.join(folder, "runs5"), os.path.join(folder, "copy5")
    server = lib.Server(runs)
    add_run(server, "before", 10)
    run("backup", copy, "--logdir", runs)
    add_run(server, "lost", 10)
    token = server.json("GET", "/api/v1/changes")[1]["token"]
    lib.equal(server.stop(), 0, "exit code")
    for _ in range(2):
        run("backup", "--restore", copy, "--logdir", runs)
        server = lib.Server(runs)
        for i in range(3):
            add_run(server, f"after{i}", 10)
        reply = server.json("GET", f"/api/v1/changes?since={token}")[1]
        lib.equal(reply["reset"], True, "changes since a token of the replaced store")
        token = reply["token"]
        lib.equal(server.json("GET", f"/api/v1/changes?since={token}")[1]["reset"], False, "changes since the reset")
        lib.equal(server.stop(), 0, "exit code")


def cut_short(folder):
    """A backup that is killed while it copies artifacts is not a backup."""
    runs, copy = os.path.join(folder, "runs4"), os.path.join(folder, "cut")
    server = lib.Server(runs)
    run_id = add_run(server, "large", 10)
    lib.equal(server.request("PUT", f"/api/v1/runs/{run_id}/artifacts/large", b"x")[0], 200, "PUT")
    lib.equal(server.stop(), 0, "exit code")
    os.truncate(os.path.join(runs, "dptrack.artifacts", "1", run_id, "artifacts", "large"), 4 << 30)
    backup = subprocess.Popen([lib.PROGRAM, "backup", copy, "--logdir", runs], stderr=subprocess.DEVNULL, env=lib.environment_of(("--logdir", runs)))
    while backup.poll() is None and not os.path.exists(os.path.join(copy, "dptrack.artifacts", "1", run_id, "artifacts", "large")):
        time.sleep(0.001)
    backup.kill()
    lib.check(backup.wait() < 0, "the backup is killed while it copies")
    fresh = os.path.join(folder, "fresh")
    lib.check("is not a backup" in run("backup", "--restore", copy, "--logdir", fresh, code=2, alone=True), "an incomplete backup cannot be restored")


def levels(text):
    report = json.loads(text)
    return report["worst"], {f["check"] for f in report["findings"] if f["level"] == "error"}


def doctor(folder):
    runs = os.path.join(folder, "runs3")
    place = ("--logdir", runs)
    server = lib.Server(runs)
    for i in range(3):
        add_run(server, f"r{i}", 9000)
    end = time.monotonic() + 60
    while server.json("GET", "/health?verbose=1")[1]["checked_time"] is None and time.monotonic() < end:
        time.sleep(0.02)
    health = server.json("GET", "/health?verbose=1")[1]
    lib.check(health["status"] in ("ok", "note", "warning") and health["findings"], f"health: {health}")
    lib.equal(server.request("GET", "/health")[2], b"OK\n", "/health")
    lib.equal(server.request("PUT", "/api/2.0/mlflow-artifacts/artifacts/1/r/artifacts/w.bin", b"weights")[0], 200, "an artifact is stored")
    lib.check("ok" in run("doctor", *place), "doctor through the server")
    lib.check("damage" not in run("doctor", *place), "doctor says how an old SQLite is used, not what that could damage elsewhere")
    lib.equal(server.stop(), 0, "exit code")
    lib.equal(levels(run("doctor", "--full", "--json", *place))[1], set(), "doctor on the folder")
    os.unlink(os.path.join(runs, "dptrack.artifacts", "1", "r", "artifacts", "w.bin"))
    found = subprocess.run([lib.PROGRAM, "doctor", "--full", *place], capture_output=True, text=True, timeout=60).stdout
    lib.check("1 of 1 files are not in" in found and "1/r/artifacts/w.bin" in found, f"missing bytes: {found}")
    path = os.path.join(runs, "dptrack.db")
    with open(path, "rb") as f:
        whole = f.read()
    for change, check in (("UPDATE chunk SET data = CAST(substr(data, 1, 3000) || x'ff' || substr(data, 3002) AS BLOB)", "points"),
                          ("UPDATE series SET max = max + 1 WHERE id = 2", "points"),
                          ("DELETE FROM chunk WHERE id = (SELECT min(id) FROM chunk)", "points")):
        db = sqlite3.connect(path)
        db.execute(change)
        db.commit()
        db.close()
        found = subprocess.run([lib.PROGRAM, "doctor", "--json", *place], capture_output=True, text=True, timeout=60).stdout
        lib.equal(levels(found)[1], {check}, change)
        run("doctor", *place, code=1)
        with open(path, "wb") as f:
            f.write(whole)
    with open(path, "wb") as f:
        f.write(whole[:len(whole) // 2])
    run("doctor", *place, code=1)
    with open(path, "wb") as f:
        f.write(b"nothing of the kind" * 1000)
    lib.check("error" in subprocess.run([lib.PROGRAM, "doctor", *place], capture_output=True, text=True).stdout, "not a store")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        collect(os.path.join(folder, "runs"))
        backups(folder)
        cut_short(folder)
        if not lib.IN_DATABASE:  # doctor looks for damage in a file
            doctor(folder)
    lib.finish("upkeep")


main()
