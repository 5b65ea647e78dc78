# SPDX-License-Identifier: Apache-2.0
"""A store of the first version (old_1.sql) is migrated when it is opened: a copy of the old file stays next to it, and
it gives the same answers as then (old_1.csv). A newer store is refused and left unchanged.

    tests/store/migrate.py --record    makes old_1.sql and old_1.csv from a current store, in the tables of 0001_start.sql"""
import sys
sys.dont_write_bytecode = True
import json
import os
import sqlite3
import subprocess
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*args, code=0):
    r = subprocess.run([lib.PROGRAM, *args], capture_output=True, text=True, timeout=60)
    lib.equal(r.returncode, code, f"{' '.join(args)}: {r.stderr}")
    return r.stdout if not code else r.stderr


def answers(runs):
    return run("export", "--json", "--logdir", runs) + run("export", "--series", "--experiment", "old", "--csv", "--logdir", runs)


def literal(v):
    if v is None:
        return "NULL"
    if isinstance(v, bytes):
        return f"x'{v.hex()}'"
    return repr(v) if isinstance(v, (int, float)) else "'" + v.replace("'", "''") + "'"


def record():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        server = lib.Server(folder)
        for name, lr in (("a", "0.1"), ("b", "0.5")):
            run_id = lib.make_run(server, "old", name, {"lr": lr, "model": "cnn"})
            points = [{"key": f"k{i % 2}", "step": i // 2, "wall_time": 1.7e9 + i, "value": "NaN" if i == 40 else i / 7}
                      for i in range(150)]
            server.json("POST", f"/api/v1/runs/{run_id}/metrics", {"points": points})
            server.json("PUT", f"/api/v1/runs/{run_id}/tags/who", {"value": "it's me"})
            server.json("PATCH", f"/api/v1/runs/{run_id}", {"status": "finished", "end_time": 1700000000000, "notes": "**n**"})
        server.stop()
        want = answers(folder)
        old = sqlite3.connect(":memory:")
        with open(os.path.join(lib.SOURCE, "schema", "sql", "0001_start.sql"), encoding="utf-8") as f:
            old.executescript(f.read())
        now = sqlite3.connect(os.path.join(folder, "dptrack.db"))
        lines = []
        for table, in old.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall():
            columns = ", ".join(c[1] for c in old.execute(f"PRAGMA table_info({table})"))
            for row in now.execute(f"SELECT {columns} FROM {table}"):
                lines.append(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({', '.join(map(literal, row))});")
    with open(os.path.join(HERE, "old_1.sql"), "w", encoding="utf-8") as f:
        f.write("-- Rows of a store of version 1, to be put into the tables of 0001_start.sql; made by migrate.py --record.\n")
        f.write("\n".join(lines) + "\n")
    with open(os.path.join(HERE, "old_1.csv"), "w", encoding="utf-8") as f:
        f.write(want)


def make_old(path):
    db = sqlite3.connect(path)
    for file in ("schema/sql/0001_start.sql", "tests/store/old_1.sql"):
        with open(os.path.join(lib.SOURCE, file), encoding="utf-8") as f:
            db.executescript(f.read())
    db.commit()
    db.close()
    os.chmod(path, 0o600)


def version(path):
    db = sqlite3.connect(path)
    found = db.execute("PRAGMA user_version").fetchone()[0], db.execute("PRAGMA integrity_check").fetchone()[0]
    db.close()
    return found


def main():
    with open(os.path.join(lib.SOURCE, "tests", "store", "old_1.csv"), encoding="utf-8") as f:
        want = f.read()
    newest = max(int(n[:4]) for n in os.listdir(os.path.join(lib.SOURCE, "schema", "sql")) if n[:4].isdigit())
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        path = os.path.join(folder, "dptrack.db")
        make_old(path)
        lib.equal(answers(folder), want, "answers of a migrated store")
        lib.equal(version(path), (newest, "ok"), "the migrated store")
        copies = sorted(n for n in os.listdir(folder) if ".before-" in n)
        lib.equal(copies, ["dptrack.db.before-2"], "one copy for all steps")
        lib.equal(version(f"{path}.before-2"), (1, "ok"), "the copy")
        lib.equal(answers(folder), want, "answers the second time")
        worst = json.loads(run("doctor", "--full", "--json", "--logdir", folder))["worst"]
        lib.check(worst in ("ok", "note"), f"doctor: {worst}")
        db = sqlite3.connect(path)
        db.execute(f"PRAGMA user_version = {newest + 1}")
        db.close()
        lib.check("newer" in run("ls", "--logdir", folder, code=1), "a newer store is refused")
        lib.equal(version(path)[0], newest + 1, "a newer store is left unchanged")
    lib.finish("migrate")


record() if "--record" in sys.argv else main()
