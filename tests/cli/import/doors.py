# SPDX-License-Identifier: Apache-2.0
"""How `dptrack import` starts the importers in Python: without one it says what to install, nothing is imported from the current folder,
a killed import goes on, a server is asked by REST, what stands in a wrong place of an mlruns folder is named. DPTRACK_LONG=1: a million
points of a SQLite store within two minutes."""
import sys
sys.dont_write_bytecode = True
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "api"))
import lib

HERE = os.path.dirname(os.path.abspath(__file__))


def start(*args, cwd=None, **variables):
    environment = {k: v for k, v in os.environ.items() if k not in ("DPTRACK_TOKEN", "DPTRACK_URL")}
    environment.update(variables)
    return subprocess.Popen([lib.PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=cwd, start_new_session=True)


def run(*args, code=0, **more):
    process = start(*args, **more)
    out, errors = process.communicate(timeout=300)
    lib.equal(process.returncode, code, f"{args}: {out} {errors}")
    return out if code == 0 else errors


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def store(folder, runs=0, points=0):
    """The sample of MLflow, with further runs."""
    path = os.path.join(folder, "mlflow.db")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(HERE, "mlflow.sql"), encoding="utf-8") as f, sqlite3.connect(path) as db:
        db.executescript(f.read().replace("@HERE@", folder))
        first = db.execute("SELECT run_uuid FROM runs WHERE status = 'RUNNING'").fetchone()[0]
        columns = [c[1] for c in db.execute("PRAGMA table_info(runs)")]
        for n in range(runs):
            new = f"{n * 4099 + 1:08x}" + "5" * 24
            db.execute(f"INSERT INTO runs SELECT {', '.join('?' if c == 'run_uuid' else c for c in columns)} FROM runs WHERE run_uuid = ?", (new, first))
            db.executemany("INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, 0)",
                           ((f"m{i % 20}", 1 / (i + 3), 1700000000000 + i, new, i // 20) for i in range(points)))
    db.close()
    return path


def all_points(into):
    runs = json.loads(run("ls", "--logdir", into, "--json", "--limit", "1000"))
    ids = [r["id"] for r in (runs["runs"] if isinstance(runs, dict) else runs)]
    rows = run("export", "--logdir", into, "--series", "--json", *ids)
    return sorted((p["run_id"], p["key"], p["step"], p["wall_time"], str(p["value"])) for p in json.loads(rows))


def without_python(folder):
    source, into = os.path.join(HERE, "mlruns"), os.path.join(folder, "none")
    said = run("import", source, "--logdir", into, code=2, DPTRACK_PYTHON="/nonexistent/python3")
    lib.check("/nonexistent/python3" in said and "pip install" in said and "DPTRACK_PYTHON" in said and said.count("\n") == 1, said)
    said = run("import", source, "--logdir", into, code=2, PYTHONPATH="/nonexistent", DPTRACK_PYTHON=sys.executable)
    lib.check("lacks the package dptrack" in said and "pip install" in said and said.count("\n") == 1, said)
    lib.check(not os.path.exists(into), "nothing is made")


def foreign_code(folder):
    """Modules in the current folder and in the source are not imported."""
    for name in ("dptrack/__init__.py", "json.py", "sqlite3.py", "argparse.py", "runpy.py"):
        write(f"{folder}/code/{name}", f"open({folder + '/code/ran'!r}, 'w')\n")
    shutil.copytree(os.path.join(HERE, "mlruns"), f"{folder}/code/mlruns")
    lib.check("5 runs" in run("import", ".", "--logdir", f"{folder}/code-into", cwd=f"{folder}/code"), "import .")
    lib.check(not os.path.exists(f"{folder}/code/ran"), "code of the current folder was run")


def misplaced(folder):
    """MLflow 3 keeps runs in mlflow.db, and their files in mlruns: the message names the database."""
    path = store(f"{folder}/three")
    write(f"{folder}/three/mlruns/1/{'a' * 32}/artifacts/model", "x")
    said = run("import", f"{folder}/three/mlruns", "--logdir", f"{folder}/three-into", code=2)
    lib.check(path.replace("mlflow.db", "mlruns/../mlflow.db") in said and "import that file" in said, said)
    lib.check("5 runs" in run("import", f"{folder}/three", "--logdir", f"{folder}/three-into"), "the folder above")
    root, ok, odd = f"{folder}/odd/mlruns", "1" * 32, "2" * 32
    write(f"{root}/0/meta.yaml", f"artifact_location: file://{root}/0\nexperiment_id: '0'\nlifecycle_stage: active\nname: Default\n")
    for one in (ok, odd):
        write(f"{root}/0/{one}/meta.yaml", f"artifact_uri: ''\nrun_id: {one}\nrun_name: n\nstart_time: 1700000000000\nstatus: 3\n")
        write(f"{root}/0/{one}/metrics/loss", "1700000001000 0.5 1\n")
    shutil.rmtree(f"{root}/0/{odd}/metrics")
    write(f"{root}/0/{odd}/metrics", "x")
    write(f"{root}/0/{odd}/params", "x")
    os.makedirs(f"{root}/0/{ok}/metrics/folder")
    write(f"{root}/0/{ok}/metrics/nul", b"1700000001000 0.5 1\n\0")
    write(f"{root}/0/{ok}/tags/" + "k\u00e4y", "v\udce4".encode("utf-8", "surrogateescape"))
    said = run("import", root, "--logdir", f"{folder}/odd-into")
    for name in (f"{odd}/metrics: expected a folder", f"{odd}/params: expected a folder", f"{ok}/metrics/folder: an empty folder", "nul: contains a NUL"):
        lib.check(name in said, f"{name} is named: {said}")
    lib.check("2 runs, 1 point, " in said, said)
    tags = json.loads(run("ls", "--logdir", f"{folder}/odd-into", "--json"))
    tags = {k: v for r in (tags["runs"] if isinstance(tags, dict) else tags) for k, v in r["tags"].items()}
    lib.equal(tags, {"k\u00e4y": "v\ufffd"}, "a text that is not UTF-8")


def killed(folder):
    """The import is killed with its processes while runs arrive, at several times; another one goes on. Each point is there once."""
    path, into, kills = store(f"{folder}/killed", 30, 2000), f"{folder}/killed-into", 0
    lib.check("35 runs, 60235 points" in run("import", path, "--logdir", f"{folder}/whole"), "undisturbed")
    for wanted in (1, 5, 12, 25):
        process = start("import", path, "--logdir", into, TMPDIR=folder)
        until = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < until:
            if sum(len(names) for _, _, names in os.walk(into)) >= 2 * wanted:
                break
            time.sleep(0.002)
        kills += process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    lib.check(kills >= 2, f"{kills} of 4 imports were killed")
    run("import", path, "--logdir", into)
    lib.check(all_points(into) == all_points(f"{folder}/whole"), "the points after kills")


def served(folder):
    """A server of MLflow's REST API, here our own, as source: all that MLflow's routes say of it is said of the copy."""
    sys.path.insert(0, HERE)
    os.makedirs(f"{folder}/served")
    shutil.copytree(os.path.join(HERE, "mlruns"), f"{folder}/served/mlruns")
    run("import", f"{folder}/served/mlruns", "--logdir", f"{folder}/served/first")
    first = lib.Server(f"{folder}/served/first")
    for _ in range(2):
        said = run("import", first.url, "--logdir", f"{folder}/served/second")
        lib.check("5 runs, 235 points" in said, said)
    second = lib.Server(f"{folder}/served/second")
    import from_mlflow
    from_mlflow.compare(from_mlflow.Store(second).said(), from_mlflow.Store(first).said(), "from a server")
    lib.equal((first.stop(), second.stop()), (0, 0), "exit codes")
    said = run("import", first.url, "--logdir", f"{folder}/served/third", code=1)
    lib.check(first.url in said and said.count("\n") == 1, f"a server that is gone: {said}")


def million(folder):
    path = store(f"{folder}/million", 4, 250000)
    begin = time.monotonic()
    said = run("import", path, "--logdir", f"{folder}/million-into")
    lib.check("1000235 points" in said and time.monotonic() - begin < 120, f"{time.monotonic() - begin:.0f} s: {said}")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        for case in (without_python, foreign_code, misplaced, killed, served, *([million] if os.environ.get("DPTRACK_LONG") else [])):
            case(folder)
    lib.finish("import/doors")


if __name__ == "__main__":
    main()
