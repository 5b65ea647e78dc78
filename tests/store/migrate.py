# SPDX-License-Identifier: Apache-2.0
"""A program of the next version (next.c) migrates a store when it opens it: a copy of the old file stays next to it, and the
answers are the same. This program refuses the newer store, and one from before 0.1.0, and leaves both unchanged. It migrates
one of each earlier version since then."""
import sys
sys.dont_write_bytecode = True
import os
import sqlite3
import subprocess
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib
from earlier import BACK, FIRST

NEXT = os.path.join(lib.BUILD, "tests", "store", "next")


def run(*args, code=0, program=lib.PROGRAM):
    r = subprocess.run([program, *args], capture_output=True, text=True, timeout=60)
    lib.equal(r.returncode, code, f"{' '.join(args)}: {r.stdout} {r.stderr}")
    return r.stdout if not code else r.stderr


def answers(runs):
    return run("export", "--json", "--logdir", runs) + run("export", "--series", "--experiment", "old", "--csv", "--logdir", runs)


def fill(folder):
    server = lib.Server(folder, alone=True)
    for name, lr in (("a", "0.1"), ("b", "0.5")):
        run_id = lib.make_run(server, "old", name, {"lr": lr, "model": "cnn"})
        points = [{"key": f"k{i % 2}", "step": i // 2, "wall_time": 1.7e9 + i, "value": "NaN" if i == 40 else i / 7} for i in range(150)]
        server.json("POST", f"/api/v1/runs/{run_id}/metrics", {"points": points})
        server.json("PATCH", f"/api/v1/runs/{run_id}", {"status": "finished", "end_time": 1700000000000, "notes": "**n**"})
    server.stop()


def asked(path, statement):
    db = sqlite3.connect(path)
    found = db.execute(statement).fetchall()
    db.close()
    return found


def earlier(folder, want, version):
    """A store of each earlier version, with a token that goes on, gets the tables of a new one."""
    path = os.path.join(folder, "dptrack.db")
    run("token", "add", "old", "--scope", "read", "--logdir", folder)
    columns = "SELECT m.name, p.name, p.type, p.\"notnull\", p.dflt_value FROM sqlite_master m, pragma_table_info(m.name) p ORDER BY 1, p.cid"
    rows = "SELECT name, hash, scope, expires_ms, revoked_ms, grants FROM token"
    new, tokens = asked(path, columns), asked(path, rows)
    lib.equal(sorted(BACK), list(range(FIRST + 1, version + 1)), "a way back from every version")
    for old in range(version - 1, FIRST - 1, -1):
        db = sqlite3.connect(path)
        for back in range(version, old, -1):
            db.executescript(BACK[back])
        db.execute(f"PRAGMA user_version = {old}")
        db.close()
        lib.equal(answers(folder), want, f"answers of a store of version {old}")
        lib.equal((asked(path, "PRAGMA user_version"), asked(path, columns), asked(path, rows)), ([(version,)], new, tokens), f"migrated from {old}")
        lib.check(os.path.exists(f"{path}.before-{old + 1}"), "a copy of the old one")
        os.remove(f"{path}.before-{old + 1}")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        path = os.path.join(folder, "dptrack.db")
        fill(folder)
        want, (version,) = answers(folder), asked(path, "PRAGMA user_version")[0]
        for what in ("the first time", "again"):
            run(path, program=NEXT)
            lib.equal(asked(path, "SELECT count(*) FROM made_up") + asked(path, "PRAGMA user_version") + asked(path, "PRAGMA integrity_check"),
                      [(0,), (version + 1,), ("ok",)], f"the store, migrated {what}")
        lib.equal([n for n in os.listdir(folder) if ".before-" in n], [f"dptrack.db.before-{version + 1}"], "one copy")
        said = run("ls", "--logdir", folder, code=1)
        lib.check("newer" in said and said.count("\n") == 1, f"a newer store is refused: {said}")
        os.replace(f"{path}.before-{version + 1}", path)
        lib.equal(answers(folder), want, "answers of the copy")
        earlier(folder, want, version)
        asked(path, f"PRAGMA user_version = {FIRST - 1}")
        said = run("ls", "--logdir", folder, code=1)
        lib.check("before 0.1.0" in said and "export --events" in said and said.count("\n") == 1, f"a store from before 0.1.0: {said}")
        lib.equal(asked(path, "PRAGMA user_version"), [(FIRST - 1,)], "it is left unchanged")
    lib.finish("migrate")


main()
