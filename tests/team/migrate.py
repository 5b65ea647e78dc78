# SPDX-License-Identifier: Apache-2.0
"""`dptrack migrate`: a store moves from a file into PostgreSQL and back, its files from a folder into an object store
and back, and is the same everywhere (one text, one SHA-256); a non-empty target is refused. Migrations are killed: the
source stays unchanged, an incomplete target is not accepted as a store, and the next attempt completes it. With a number
as the first argument, that many kills in each direction. A dump of a served database, restored, gives the same answers,
and change tokens are reset."""
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import lib
from lib import check

import cluster

sys.path.insert(0, os.path.join(cluster.SOURCE, "tests", "data"))
import s3server


def run(*args, env=None, code=0):
    done = subprocess.run([cluster.PROGRAM, *args], capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=120)
    check(done.returncode == code, f"{' '.join(args)}: {done.returncode} {done.stderr}")
    return done.stdout if not code else done.stderr


def digest(place, *args, env=None):
    return hashlib.sha256(run("migrate", "--dump", place, *args, env=env).encode()).hexdigest()


class Folder(lib.Process):
    """A server of a folder of runs."""

    def __init__(self, folder):
        super().__init__(os.path.join(folder, "dptrack.db"), os.path.join(folder, "dptrack.artifacts"), "--logdir", folder)


def made(process, experiment, name, points):
    run_id = process.json("POST", "/api/v1/runs", {"experiment": experiment, "name": name, "params": {"lr": "0.1", "text": "a\tb\\\nc"},
                                                   "tags": {"who": "it's ü"}})[1]["id"]
    status, reply = process.json("POST", f"/api/v1/runs/{run_id}/metrics", {"points": points}, {"Idempotency-Key": "once"})
    check(status == 200, f"points: {status} {reply}")
    return run_id


def fill(folder):
    """Creates some of everything that a store contains."""
    s = Folder(folder)
    for n in range(6):
        values = ["NaN", "Infinity", "-Infinity", -0.0, 1e-300, 0.1]
        points = [{"key": f"k{i % 7}", "step": i // 7, "value": values[i] if i < 6 else i / 3, "wall_time": 1.7e9 + i} for i in range(900)]
        run_id = made(s, f"e{n % 2}", f"r{n}", points)
        for name, data in (("a.txt", b"hello"), ("deep/er/empty", b""), ("deep/b.bin", os.urandom(300000 + n))):
            check(s.request("PUT", f"/api/v1/runs/{run_id}/artifacts/{name}", data)[0] == 200, f"PUT {name}")
        s.json("PATCH", f"/api/v1/runs/{run_id}", {"status": "finished", "end_time": 1700000000000, "notes": "**n**"})
    check(s.request("DELETE", f"/api/v1/runs/{run_id}")[0] in (200, 204), "DELETE")
    s.json("POST", "/api/2.0/mlflow/registered-models/create", {"name": "m", "description": "d"})
    s.json("POST", "/api/2.0/mlflow/registered-models/alias", {"name": "m", "alias": "x", "version": "1"})
    s.stop()


def answers(*place, experiment="e0"):
    return run("export", "--json", *place) + run("export", "--series", "--experiment", experiment, "--csv", *place)


def there_and_back(db, folder):
    """From a file into a database, and into another folder: equal texts, equal answers; the moved store accepts
    writes."""
    first, back = os.path.join(folder, "first"), os.path.join(folder, "back")
    os.mkdir(first)
    fill(first)
    want, expected = digest(first), answers("--logdir", first)
    check(len(run("migrate", "--dump", first).splitlines()) > 100, "the text of a store")
    db.sql("postgres", "CREATE DATABASE moved")  # has no tables
    address, files = db.address("moved"), os.path.join(folder, "moved.files")
    said = run("migrate", first, address, "--artifacts", files)
    check(want in said, f"migrate said {said!r}, the source is {want}")
    check(digest(address, "--from-artifacts", files) == want, "the text of the database")
    check(answers("--db", address) == expected, "answers of the database")
    check("already has a store" in run("migrate", first, address, "--artifacts", files + "2", code=2), "a target in use")
    team = [lib.Process(address, files) for _ in range(2)]
    held = run("migrate", address, back, "--from-artifacts", files)  # from a snapshot, while it is served
    check(want in held, f"a served database: {held}")
    check(digest(back) == want and answers("--logdir", back) == expected, "the store moved back")
    runs = {made(p, "new", f"n{i}", [{"key": "k0", "step": 1, "value": 1.0}]) for i, p in enumerate(team)}
    check(len(runs) == 2, "new runs in a moved store")
    found = team[0].json("GET", "/api/v1/runs?experiment=new")[1]["runs"]
    check({r["id"] for r in found} == runs, f"found {found}")
    check("stop it first" in run("migrate", back, address, code=1), "into a database that is served")
    for p in team:
        p.stop()
    s = Folder(back)
    made(s, "new", "n", [{"key": "k0", "step": 1, "value": 1.0}])
    check("held by process" in run("migrate", back, os.path.join(folder, "third"), code=1), "a store that is served")
    s.stop()
    return first, want


def files_into_objects(db, folder, source, want):
    """A folder's files become objects of an S3 store, and files again; two stores do not share objects."""
    s3 = s3server.S3(os.path.join(folder, "s3"))
    env, address = s3.environment(), db.store("objects")
    os.makedirs(os.path.join(folder, "s3", "shop"), exist_ok=True)
    said = run("migrate", source, address, "--artifacts", "s3://shop/team", env=env)
    check(want in said, f"into an object store: {said}")
    check(digest(address, env=env) == want, "the text of database and objects")
    kept = set(os.listdir(os.path.join(folder, "s3", "shop", "team")))
    check(len(kept) == 18, f"{len(kept)} objects")
    check("another prefix" in run("migrate", address, os.path.join(folder, "x"), "--artifacts", "s3://shop/team", env=env, code=2), "shared")
    run("migrate", address, os.path.join(folder, "y"), "--artifacts", "s3://shop/other/", env=env)
    check(digest(os.path.join(folder, "y"), env=env) == want, "from objects to objects, into a file store")
    # The rows say that files are objects; a folder has to be given.
    run("migrate", address, os.path.join(folder, "z"), env=env)
    check(digest(os.path.join(folder, "z")) == want, "objects as files again")
    with open(os.path.join(folder, "s3", "shop", "team", sorted(kept)[0]), "r+b") as f:
        f.write(b"X")
    check("is damaged" in run("migrate", address, os.path.join(folder, "w"), env=env, code=1), "a damaged object is not refused")
    s3.stop()


def backed_up(db, folder):
    """`dptrack backup` of a database makes a folder that can be served: from one snapshot, complete batches, during
    writes."""
    address, files = db.address("moved"), os.path.join(folder, "moved.files")
    team = [lib.Process(address, files, "--backup-dir", folder) for _ in range(2)]
    run_id = made(team[0], "new", "busy", [{"key": "k0", "step": -1, "value": 1.0}])
    stop, acknowledged = threading.Event(), [0]

    def write():
        while not stop.is_set():
            first = 5 * acknowledged[0]
            points = [{"key": "k0", "step": first + i, "value": 1.0} for i in range(5)]
            check(team[0].request("POST", f"/api/v1/runs/{run_id}/metrics", {"points": points})[0] == 200, "a batch")
            acknowledged[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    check(lib.until(30, lambda: acknowledged[0] > 3), "batches")
    before = acknowledged[0]
    status, reply = team[1].json("POST", "/api/v1/backup", {"path": os.path.join(folder, "busy")})
    check(status == 200 and reply["artifacts"] == 18, f"a backup while others write: {status} {reply}")
    after = acknowledged[0] + 1
    stop.set()
    writer.join()
    s = Folder(os.path.join(folder, "busy"))
    count = s.json("GET", f"/api/v1/runs/{run_id}")[1]["metrics"]["k0"]["count"] - 1
    check(count % 5 == 0 and 5 * before <= count <= 5 * after, f"{count} points, {before} to {after} batches")
    s.stop()
    for p in team:
        p.stop()
    run("backup", os.path.join(folder, "quiet"), "--db", address, "--json", env={"DPTRACK_DB": ""})
    check(digest(os.path.join(folder, "quiet")) == digest(address, "--from-artifacts", files),
          "a backup of a database without processes has the files in the folder that the store remembers")
    check("ok" in run("doctor", "--full", "--logdir", os.path.join(folder, "quiet")), "doctor")


def dumped(db, folder):
    """pg_dump during writes; restored, it gives the answers of that time, and clients that follow changes are told to
    reload, even if more has changed since than before."""
    address, files = db.store("dumped"), os.path.join(folder, "dumped.files")
    s, dump = lib.Process(address, files), os.path.join(db.folder, "dumped.pgdump")
    for n in range(3):
        made(s, "e0", f"r{n}", [{"key": "k", "step": i, "value": i / 3} for i in range(100)])
    want = answers("--db", address)
    db.tool("pg_dump", "-h", db.folder, "-p", str(db.port), "-U", "postgres", "-Fc", "-f", dump, "dumped")
    lost = made(s, "e0", "lost", [{"key": "k", "step": 1, "value": 1.0}])
    heard = s.json("GET", "/api/v1/changes")[1]["token"]
    check(not s.json("GET", f"/api/v1/changes?since={heard}")[1]["reset"], "a current token")
    s.stop()
    db.sql("postgres", "DROP DATABASE dumped")
    db.sql("postgres", "CREATE DATABASE dumped")
    db.tool("pg_restore", "-h", db.folder, "-p", str(db.port), "-U", "postgres", "-d", "dumped", dump)
    check(answers("--db", address) == want, "answers of a restored dump")
    s = lib.Process(address, files)
    check(s.json("GET", f"/api/v1/changes?since={heard}")[1]["reset"], "a token of rows that are lost")
    for n in range(20):
        made(s, "e0", f"new{n}", [{"key": "k", "step": 1, "value": 1.0}])
    check(s.json("GET", f"/api/v1/changes?since={heard}")[1]["reset"], "a token that newer changes have overtaken")
    check(s.request("GET", f"/api/v1/runs/{lost}")[0] == 404, "a run created after the dump")
    s.stop()


def killed(source, target, wait_s, env):
    """Kills a migration after a while; returns whether it had ended before."""
    process = subprocess.Popen([cluster.PROGRAM, "migrate", *source, *target], env={**os.environ, **env}, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    return process.wait() == 0


def is_no_store(place, env):
    """An incomplete target is refused by a server."""
    done = subprocess.run([cluster.PROGRAM, "ls", *place], capture_output=True, text=True, env={**os.environ, **env}, timeout=60)
    empty = done.returncode == 0 and "r0" not in done.stdout
    return empty or "incomplete copy" in done.stderr or "no store" in done.stderr or "no folder" in done.stderr


def kills(name, source, target, want, count, env):
    """Kills at moments spread over a migration; the source stays unchanged; then the last one is completed. target(n):
    the arguments of a new target, and those of commands that read it."""
    began = time.monotonic()
    run("migrate", *source, *target(0)[0], env=env)
    span, died, tried = time.monotonic() - began, 0, 1
    arguments, place = target(tried)
    while died < count:
        wait_s = span * (died + random.random()) / count
        began = time.monotonic()
        ended = killed(source, arguments, wait_s, env)
        span = min(span, time.monotonic() - began) if ended else span
        died += not ended
        if not is_no_store(place, env):  # it finished in time, or was killed after the last step
            check(digest(arguments[0], env=env) == want, f"{name}: after {wait_s:.3f} s an incomplete target is accepted as a store")
            tried += 1
            arguments, place = target(tried)
            continue
        check(not ended, f"{name}: a migration succeeded without a store")
        if died % 5 == 0 or died == count:
            check(digest(*source, env=env) == want, f"{name}: after {wait_s:.3f} s the source has changed")
    said = run("migrate", *source, *arguments, env=env)
    check(want in said, f"{name}: completing a killed migration: {said}")
    check(digest(arguments[0], env=env) == want, f"{name}: the target of a killed migration")
    print(f"migrate: {name}: {died} kills on {tried} targets")


def main():
    why = cluster.reason()
    if why:
        print(f"migrate: {why}")
        sys.exit(77)
    count = int(sys.argv[1]) if sys.argv[1:] else 2
    with cluster.Cluster() as db, tempfile.TemporaryDirectory(prefix="dptrack-team.") as folder:
        source, want = there_and_back(db, folder)
        backed_up(db, folder)
        dumped(db, folder)
        files_into_objects(db, folder, source, want)
        s3 = s3server.S3(os.path.join(folder, "killed.s3"))
        os.makedirs(os.path.join(folder, "killed.s3", "shop"))
        kills("into a database and objects", [source],
              lambda n: ([db.store(f"into{n}"), "--artifacts", f"s3://shop/{n}"], ["--db", db.address(f"into{n}")]), want, count,
              s3.environment())
        kills("into a folder", [db.address("into0")],
              lambda n: ([os.path.join(folder, f"into{n}")], ["--logdir", os.path.join(folder, f"into{n}")]), want, count,
              s3.environment())
        s3.stop()
    lib.finish("migrate")


if __name__ == "__main__":
    main()
