# SPDX-License-Identifier: Apache-2.0
"""Damaged stores of other trackers, imported: what can be read is there, every loss is named with its file, the exit code is 0. First
cases with known answers, then real stores with random damage: a run whose files are intact is imported as from the intact store.
SEED=N repeats a failure; ROUNDS=N makes more."""
import sys
sys.dont_write_bytecode = True
import json
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "api"))
import lib

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = "{:08x}000000000000000000000000".format  # folders are told apart by the first 8 digits


def call(*args):
    environment = {k: v for k, v in os.environ.items() if k not in ("DPTRACK_TOKEN", "DPTRACK_URL")}
    return subprocess.run([lib.PROGRAM, *args], capture_output=True, text=True, timeout=120, env=environment, errors="replace")


def imported(path, into):
    """({run id: run as /runs lists it}, what the import printed)"""
    done = call("import", path, "--logdir", into)
    lib.equal((done.returncode, done.stderr), (0, ""), f"import {path}")
    listed = call("ls", "--logdir", into, "--json", "--limit", "1000")
    runs = json.loads(listed.stdout) if listed.returncode == 0 else {"runs": []}
    return {r["id"]: r for r in (runs["runs"] if isinstance(runs, dict) else runs)}, done.stdout


def points(into, run, key):
    rows = call("export", "--logdir", into, "--series", run, "--json").stdout
    return [(p["step"], p["value"]) for p in json.loads(rows) if p["key"] == key]


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w" if isinstance(text, str) else "wb") as f:
        f.write(text)


def mlruns(root, *runs):
    write(f"{root}/0/meta.yaml", f"artifact_location: file://{root}/0\nexperiment_id: '0'\nlifecycle_stage: active\nname: Default\n")
    for run in runs:
        write(f"{root}/0/{run}/meta.yaml", f"artifact_uri: file://{root}/0/{run}/artifacts\nend_time: 1700000009000\nexperiment_id: '0'\n"
              f"lifecycle_stage: active\nrun_id: {run}\nrun_name: n\nstart_time: 1700000000000\nstatus: 3\n")
        write(f"{root}/0/{run}/metrics/loss", "1700000001000 0.5 1\n")
        write(f"{root}/0/{run}/params/lr", "0.1")


def named(said, *words):
    line = [text for text in said.splitlines() if text.startswith("skipped:") and all(w in text for w in words)]
    return lib.check(line, f"no line with {words}: {said}")


def lines(folder):
    """A line of a metric that is not what MLflow writes is named, with its number; numbers are read as Python reads them."""
    root, run = f"{folder}/lines/mlruns", RUN(1)
    mlruns(root, run)
    write(f"{root}/0/{run}/metrics/loss", "1700000001000 0.5 1\n1700000001001 abc 2\n1700000001002 0.25 x\n1700000001003  1\n"
          "1700000001004 0x10 4\n1700000001005 1.5 99999999999999999999\n1700000001006 0.75 6\r\n1700000001007 2\n"
          "1700000001008 3 8 4 5 6\n")
    write(f"{root}/0/{run}/metrics/float", "1650548532.123 0.9 0\n")
    write(f"{root}/0/{run}/metrics/odd", "1700000001000 nan 1\n1700000001001 -inf 2\n1700000001002 1e400 3\n1700000001003 7 4 d 5\n1700000001004 0.")
    runs, said = imported(root, f"{folder}/lines/into")
    lib.equal(points(f"{folder}/lines/into", run, "loss"), [(0, 2.0), (1, 0.5), (6, 0.75)], "lines of a metric")
    lib.equal(points(f"{folder}/lines/into", run, "float"), [(0, 0.9)], "a float time")
    lib.equal(points(f"{folder}/lines/into", run, "odd"), [(1, "NaN"), (2, "-Infinity"), (3, "Infinity"), (4, 7.0)], "non-finite values")
    named(said, f"6 times a point of {root}/0/{run}/metrics/loss: line 2", "1700000001001 abc 2")
    named(said, f"{run}/metrics/odd: line 5 does not end")


def files(folder):
    """meta.yaml that is empty, missing, torn or has no run id; files that are no files; names that are no run."""
    root = f"{folder}/files/mlruns"
    mlruns(root, *map(RUN, range(1, 8)))
    write(f"{root}/0/{RUN(1)}/meta.yaml", "")
    os.unlink(f"{root}/0/{RUN(2)}/meta.yaml")
    write(f"{root}/0/{RUN(3)}/meta.yaml", "run_id: 'torn\n")
    write(f"{root}/0/{RUN(4)}/meta.yaml", "run_id: nobody\nstatus: 3\n")
    write(f"{root}/0/{RUN(5)}/params/nul", b"a\0b")
    os.mkfifo(f"{root}/0/{RUN(5)}/params/pipe")
    os.symlink("nowhere", f"{root}/0/{RUN(5)}/tags")
    write(f"{root}/0/{RUN(6)}/meta.yaml", f"run_id: {RUN(6)}\nstart_time: soon\nstatus: 99\n")
    write(f"{root}/7/meta.yaml", "")
    write(f"{root}/8/other", "")
    runs, said = imported(root, f"{folder}/files/into")
    lib.equal(sorted(runs), [RUN(5), RUN(6), RUN(7)], "runs that can be read")
    lib.equal(runs[RUN(5)]["params"], {"lr": "0.1"}, "params")
    for words in ([f"0/{RUN(1)}/meta.yaml", "empty"], [f"0/{RUN(2)}", "missing"], [f"0/{RUN(3)}/meta.yaml", "line 2"], [f"0/{RUN(4)}/meta.yaml", "nobody"],
                  ["params/nul", "NUL"], ["params/pipe", "regular"], [f"0/{RUN(5)}/tags: a symbolic link"], ["start_time", "soon"], ["status", "99"], ["mlruns/7/meta.yaml"], ["mlruns/8", "missing"]):
        named(said, *words)


def links(folder):
    """Links to files inside are followed; links to folders, upwards and out of the store are not."""
    root, run = f"{folder}/links/mlruns", RUN(1)
    mlruns(root, run)
    top = f"{root}/0/{run}/artifacts"
    write(f"{top}/model/weights", "w")
    write(f"{folder}/links/secret", "s")
    for name, to in (("self", "."), ("up", ".."), ("model/loop", "../model"), ("passwd", "/etc/passwd"), ("secret", f"{folder}/links/secret"),
                     ("gone", "nothing"), ("same", "model/weights")):
        os.symlink(to, f"{top}/{name}")
    os.symlink(f"{folder}/links", f"{root}/9")
    into = f"{folder}/links/into"
    _, said = imported(root, into)
    for name in ("self", "up", "model/loop", "passwd", "secret", "gone"):
        named(said, f"artifacts/{name}: a symbolic link")
    named(said, f"{root}/9")
    lib.check("2 files" in said, said)
    server = lib.Server(into)
    lib.equal(server.request("GET", f"/api/v1/runs/{run}/artifacts/same")[2], b"w", "a link inside")
    lib.equal([f["path"] for f in server.json("GET", f"/api/v1/runs/{run}/artifacts")[1]["files"]], ["model", "same"], "files")
    lib.equal(server.stop(), 0, "exit code")


def database(path):
    with open(os.path.join(HERE, "mlflow.sql"), encoding="utf-8") as f, sqlite3.connect(path) as db:
        db.executescript(f.read().replace("@HERE@", os.path.dirname(path)))
    db.close()


def texts(folder):
    """Texts in columns of numbers: SQLite would read them as 0."""
    path, into = f"{folder}/texts/mlflow.db", f"{folder}/texts/into"
    os.makedirs(os.path.dirname(path))
    database(path)
    with sqlite3.connect(path) as db:
        run = db.execute("SELECT run_uuid FROM metrics WHERE key = 'loss' LIMIT 1").fetchone()[0]
        db.execute("DELETE FROM metrics WHERE run_uuid = ?", (run,))
        for at, (value, step) in enumerate(((0.5, 1), ("abc", 2), (0.25, "x"), (b"\1", 4))):
            db.execute("INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES ('loss', ?, ?, ?, ?, 0)", (value, 1700000000000 + at, run, step))
        db.execute("INSERT INTO runs SELECT 'not-an-id', name, source_type, source_name, entry_point_name, user_id, status, start_time, end_time, source_version, "
                   "lifecycle_stage, artifact_uri, experiment_id, deleted_time FROM runs LIMIT 1")
    db.close()
    runs, said = imported(path, into)
    lib.equal(points(into, run, "loss"), [(1, 0.5)], "points of numbers")
    named(said, f"3 times a point of loss in run {run}")
    named(said, "not-an-id")


def damage(draw, path):
    with open(path, "rb") as f:
        data = bytearray(f.read())
    kind = draw.randrange(5)
    at = draw.randrange(len(data) + 1)
    if kind == 0:
        data = data[:at]
    elif kind == 1:
        data[at:at + draw.randrange(64)] = bytes(draw.randrange(256) for _ in range(draw.randrange(64)))
    elif kind == 2:
        data[at:at + 512] = bytes(len(data[at:at + 512]))
    elif kind == 3:
        for _ in range(draw.randrange(1, 9)):
            if data:
                data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    else:
        data = data[:at] + data[at + draw.randrange(1, 200):]
    with open(path, "wb") as f:
        f.write(data)
    return kind


def all_files(folder):
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)


def facts(r):
    return {k: r[k] for k in ("name", "status", "start_time", "end_time", "params", "tags", "metrics") if k in r}


def broken_stores(folder, draw, rounds):
    """Random damage of real stores: no crash; intact runs are whole. Of a file with all runs the process ends in an orderly way."""
    def run_of(path):
        return next((part for part in path.split("/") if len(part) == 32), None)

    whole, _ = imported(os.path.join(HERE, "mlruns"), f"{folder}/whole")
    for i in range(rounds):
        root = f"{folder}/m{i}/mlruns"
        shutil.copytree(os.path.join(HERE, "mlruns"), root)
        hit = [p for p in draw.sample(all_files(root), 3) if run_of(p.removeprefix(root)) and "/datasets/" not in p]
        for path in hit:
            damage(draw, path)
        runs, said = imported(root, f"{folder}/m{i}/into")
        for run, want in whole.items():
            if run not in map(run_of, hit):
                lib.check(run in runs and facts(runs[run]) == facts(want), f"round {i}: intact run {run} differs: {hit}: {said}")
            elif run not in runs:
                lib.check("skipped:" in said or "meta.yaml" not in " ".join(hit), f"round {i}: run {run} is lost without a word: {hit}: {said}")
        shutil.rmtree(f"{folder}/m{i}")


def broken_files(folder, draw, rounds, made, name):
    """One damaged file with all runs: exit 0, or one line of error; never a signal."""
    for i in range(rounds):
        root = f"{folder}/{name}{i}"
        path = made(root)
        hit = draw.choice([p for p in all_files(path) if p.endswith((".wandb", ".db")) or "tfevents" in p] if os.path.isdir(path) else [path])
        damage(draw, hit)
        done = call("import", path, "--logdir", f"{root}/into")
        lib.check(done.returncode in (0, 1, 2) and done.stderr.count("\n") <= 1, f"{name} {i}: {done.returncode} {done.stderr}")
        lib.check(done.returncode == 0 or hit in done.stderr or name != "wandb", f"{name} {i}: {done.stderr}")
        shutil.rmtree(root)


def sample_db(root):
    os.makedirs(root)
    database(f"{root}/mlflow.db")
    return f"{root}/mlflow.db"


def sample_wandb(root):
    shutil.copytree(os.path.join(HERE, "wandb"), f"{root}/wandb")
    return f"{root}/wandb"


def sample_events(root):
    """Event files as `dptrack export --events` writes them."""
    os.makedirs(root)
    call("import", os.path.join(HERE, "mlruns"), "--logdir", f"{root}/from")
    call("export", "--logdir", f"{root}/from", "--events", f"{root}/logs")
    return f"{root}/logs"


def main():
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    rounds = int(os.environ.get("ROUNDS", 12))
    print(f"SEED={seed}")
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        for case in (lines, files, links, texts):
            case(folder)
        broken_stores(folder, draw, rounds)
        broken_files(folder, draw, rounds, sample_db, "mlflow")
        broken_files(folder, draw, rounds, sample_wandb, "wandb")
        broken_files(folder, draw, rounds // 2, sample_events, "events")
    lib.finish("damaged")


main()
