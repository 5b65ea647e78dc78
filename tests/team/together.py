# SPDX-License-Identifier: Apache-2.0
"""Several processes on one database: what one stores the others return at once; changes are reported in commit order,
streams are notified, a token revoked through one is refused by the others; passwords and wrong addresses give one
line."""
import http.client
import json
import subprocess
import tempfile
import threading
import time
import os
import sys

import lib
from lib import check, until

import cluster
import wire

sys.path.append(os.path.join(cluster.SOURCE, "tests", "store"))
import earlier

RUNS, POINTS = 6, 40


def log(process, run, step, key="loss"):
    status, reply = process.json("POST", f"/api/v1/runs/{run}/metrics", {"points": [{"key": key, "step": step, "value": step / 2}]})
    check(status == 200 and reply["accepted"] == 1, f"POST metrics: {status} {reply}")


def read_everywhere(team):
    """The next read after a write finds it, through every process."""
    status, run = team[0].json("POST", "/api/v1/runs", {"experiment": "e", "name": "one"})
    check(status == 201, f"POST /runs: {status} {run}")
    for step in range(1, POINTS + 1):
        log(team[step % 3], run["id"], step)
        other = team[(step + 1) % 3]
        got = other.json("GET", f"/api/v1/runs/{run['id']}")[1]["metrics"]["loss"]
        check((got["count"], got["last_step"]) == (step, step), f"step {step}: read {got}")
        rows = team[(step + 2) % 3].json("GET", f"/api/v1/series?run={run['id']}&key=loss")[1]["points"]
        check([r["step"] for r in rows] == list(range(1, step + 1)), f"step {step}: {len(rows)} points")
        found = other.json("GET", f"/api/v1/runs?filter=metrics.loss%20%3E%3D%20{step / 2}")[1]["runs"]
        check([r["id"] for r in found] == [run["id"]], f"step {step}: not found by its value")


def spikes_are_reported_at_once(team):
    """A jump of the loss is reported at once, although folding, which also finds it, is delayed; whichever process got
    the points before."""
    run = team[0].json("POST", "/api/v1/runs", {"experiment": "e", "name": "spike"})[1]["id"]
    values = [1 + 0.01 * (i % 7) for i in range(60)]
    values[30] = 50
    for i, part in enumerate((range(0, 30), range(30, 31), range(31, 60))):
        points = [{"key": "train/loss", "step": s, "value": values[s]} for s in part]
        status, reply = team[i].json("POST", f"/api/v1/runs/{run}/metrics", {"points": points})
        check(status == 200, f"points: {status} {reply}")
    for p in team:
        alerts = p.json("GET", f"/api/v1/runs/{run}")[1]["alerts"]
        check([(a["kind"], a["key"], a["step"]) for a in alerts] == [("spike", "train/loss", 30)], f"alerts: {alerts}")


def one_run_through_all_processes(team, db):
    """New keys in opposite orders, into one run, through three processes at once: exact, without deadlocks."""
    run = team[0].json("POST", "/api/v1/runs", {"experiment": "e", "name": "shared"})[1]["id"]
    keys = [f"k{i}" for i in range(20)]

    def client(i):
        for n in range(10):
            order = keys if i % 2 else keys[::-1]
            points = [{"key": k, "step": 100 * i + n, "value": 1.0} for k in order]
            status, reply = team[i % 3].json("POST", f"/api/v1/runs/{run}/metrics", {"points": points})
            check(status == 200, f"client {i}: {status} {reply}")

    threads = [threading.Thread(target=client, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for p in team:
        metrics = p.json("GET", f"/api/v1/runs/{run}")[1]["metrics"]
        check({k: m["count"] for k, m in metrics.items()} == {k: 60 for k in keys}, f"counts: {metrics}")
    check(db.sql("t1", "SELECT deadlocks FROM pg_stat_database WHERE datname = 't1'") == ["0"], "deadlocks")


def changes_miss_nothing(team):
    """A client that follows changes since a token sees every run, while all processes create some."""
    token, seen, made = team[1].json("GET", "/api/v1/changes")[1]["token"], set(), []

    def client(i):
        for n in range(15):
            made.append(team[i].json("POST", "/api/v1/runs", {"experiment": "e", "name": f"c{i}-{n}"})[1]["id"])

    threads = [threading.Thread(target=client, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    end = time.monotonic() + 20
    while time.monotonic() < end and (any(t.is_alive() for t in threads) or not seen.issuperset(made)):
        reply = team[1].json("GET", f"/api/v1/changes?since={token}")[1]
        token = reply["token"]
        seen.update(reply["runs"])
    for t in threads:
        t.join()
    check(seen.issuperset(made), f"{len(set(made) - seen)} of {len(made)} new runs were not reported")


def streams_wake(team):
    """An event stream of one process reports what another one stored."""
    c = team[2].connection()
    c.request("GET", "/api/v1/events")
    reply = c.getresponse()
    reply.fp.readline()
    run = team[0].json("POST", "/api/v1/runs", {"experiment": "e", "name": "told"})[1]["id"]
    end, text = time.monotonic() + 10, ""
    while time.monotonic() < end and run not in text:
        text += reply.fp.readline().decode()
    check(run in text, f"the stream sent {text!r}")
    c.close()


def tokens_are_shared(team, address):
    """The first token is made by the command; a token added through one process is valid on another; after its revocation there, it is refused here."""
    check(team[0].request("POST", "/api/v1/tokens", {"name": "boss", "scope": "admin"})[0] == 403, "a first token of anybody")
    made = subprocess.run([cluster.PROGRAM, "token", "add", "boss", "--scope", "admin"], env=dict(os.environ, DPTRACK_DB=address),
                          capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    boss = {"Authorization": f"Bearer {made}"}
    check(until(5, lambda: team[1].request("GET", "/api/v1/runs")[0] == 401), "without a token: not refused")
    check(team[1].request("GET", "/api/v1/runs", headers=boss)[0] == 200, "the token of another process is not known")
    second = team[1].json("POST", "/api/v1/tokens", {"name": "reader", "scope": "read"}, headers=boss)[1]["token"]
    reader = {"Authorization": f"Bearer {second}"}
    check(until(5, lambda: team[2].request("GET", "/api/v1/runs", headers=reader)[0] == 200), "a new token is not known")
    check(team[0].request("DELETE", "/api/v1/tokens/reader", headers=boss)[0] in (200, 204), "revoking")
    check(until(5, lambda: team[2].request("GET", "/api/v1/runs", headers=reader)[0] == 401), "a revoked token is still good")
    return made


def ends_within(stream, seconds):
    """Whether the server ends an event stream within this time."""
    began = time.monotonic()
    try:
        while stream.fp and stream.readline():
            pass
    except OSError:
        return False
    return time.monotonic() - began < seconds


def revoked_everywhere(team, administrator):
    """A token revoked through one process is refused by another within a second, and so are its session and its
    stream; a session of one process is valid on the others, and ends on all."""
    boss = {"Authorization": "Bearer " + administrator}
    made = team[0].json("POST", "/api/v1/tokens", {"name": "guest", "scope": "read"}, headers=boss)[1]["token"]
    guest = {"Authorization": f"Bearer {made}"}

    def asked(process, who):
        return process.request("GET", "/api/v1/runs", headers=who)[0]

    check(until(5, lambda: [asked(p, guest) for p in team] == [200] * 3), "a guest")
    first, second = sign_in(team[0], made), sign_in(team[0], made)
    found = [asked(p, first) for p in team]
    check(found == [200] * 3, f"a session of one process, used on all: {found}")
    found = team[1].request("DELETE", "/api/v1/session", headers={**first, "Sec-Fetch-Site": "same-origin"})
    check(found[0] == 200, f"signing out: {found}")
    began = time.monotonic()
    check(until(20, lambda: [asked(p, first) for p in team] == [401] * 3), "an ended session is still accepted")
    print(f"together: a session had ended everywhere after {time.monotonic() - began:.2f} s")
    check([asked(p, second) for p in team] == [200] * 3, "another session has ended, too")
    c = team[2].connection(timeout=10)
    c.request("GET", "/api/v1/events", headers=second)
    stream = c.getresponse()
    check(stream.status == 200, f"a stream: {stream.status}")
    stream.readline()
    check(team[0].request("DELETE", "/api/v1/tokens/guest", headers=boss)[0] in (200, 204), "revoking")
    began = time.monotonic()
    check(until(20, lambda: asked(team[2], second) == 401), "the session of a revoked token is still accepted")
    print(f"together: a token was refused elsewhere after {time.monotonic() - began:.2f} s")
    check(ends_within(stream, 20), "the stream of a revoked token continues")
    print(f"together: its stream had ended after {time.monotonic() - began:.2f} s")
    team[1].kill()
    team[1].start()
    third = sign_in(team[0], administrator)
    check(asked(team[1], third) == 200, "a session is not known to a process that started later")


def uploads_outlive_a_start(team, administrator):
    """A starting process deletes what killed uploads left, and nothing that another process is receiving."""
    boss = {"Authorization": "Bearer " + administrator}
    run = team[0].json("POST", "/api/v1/runs", {"experiment": "e", "name": "files"}, headers=boss)[1]["id"]
    whole = b"x" * 300000

    def begun(process, name):
        c = process.connection(timeout=20)
        c.putrequest("PUT", f"/api/v1/runs/{run}/artifacts/{name}")
        for header in [("Content-Length", str(len(whole))), *boss.items()]:
            c.putheader(*header)
        c.endheaders(whole[:100000])
        return c

    uploads = os.path.join(team[0].artifacts, ".uploads")
    alive, killed = begun(team[0], "alive"), begun(team[1], "killed")
    check(until(10, lambda: os.path.isdir(uploads) and len(os.listdir(uploads)) == 2), "two uploads are under way")
    team[1].kill()
    killed.close()
    team[1].start()
    check(team[1].request("PUT", f"/api/v1/runs/{run}/artifacts/other", b"y", headers=boss)[0] == 200, "a file of the new process")
    check(len(os.listdir(uploads)) == 1, f"after a start: {os.listdir(uploads)}")
    alive.send(whole[100000:])
    r = alive.getresponse()
    check(r.status == 200, f"an upload during which another process started: {r.status} {r.read()}")
    got = team[1].request("GET", f"/api/v1/runs/{run}/artifacts/alive", headers=boss)
    check(got == (200, whole), f"the file: {got[0]}, {len(got[1])} bytes")


def sign_in(process, token):
    c = process.connection()
    c.request("POST", "/login", f"token={token}", {"Content-Type": "application/x-www-form-urlencoded"})
    r = c.getresponse()
    check(r.status == 303, f"login: {r.status}")
    return {"Cookie": r.headers["Set-Cookie"].split(";")[0]}


def ready_or_not(team, db):
    """/ready follows the database, and fails when a process is stopping."""
    def ready(process):
        return process.request("GET", "/ready")[0]

    check([ready(p) for p in team] == [200] * 3, "/ready")
    db.stop()
    check(until(60, lambda: [ready(p) for p in team] == [503] * 3), f"/ready without the database: {[ready(p) for p in team]}")
    check(team[0].request("GET", "/health")[0] in (200, 503), "/health")
    db.start()
    check(until(10, lambda: [ready(p) for p in team] == [200] * 3), "/ready with the database again")


def upgraded(db):
    """A program of the next version (tests/store/next.c) adds its table; a store of a newer or of a very old version is refused."""
    def tool(word):
        done = subprocess.run([cluster.PROGRAM, "db", word, "--db", db.address("old")], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    db.store("old")
    check("up to date" in tool("upgrade")[1], "an upgrade without need")
    columns = "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
    want = db.sql("old", columns)
    for version in sorted(earlier.BACK, reverse=True):
        db.sql("old", earlier.BACK[version])
    db.sql("old", f"UPDATE meta SET value = '{earlier.FIRST}' WHERE name = 'version'")
    code, text = tool("upgrade")
    check(code == 0 and db.sql("old", columns) == want, f"a store of 0.1.0: {code} {text}")
    done = subprocess.run([os.path.join(cluster.BUILD, "tests", "store", "next"), db.address("old")], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and db.sql("old", "SELECT count(*) FROM made_up") == ["0"], f"the next version: {done}")
    check(tool("upgrade")[0] != 0, "a newer store is accepted")
    db.sql("old", "UPDATE meta SET value = '3' WHERE name = 'version'")
    code, text = tool("upgrade")
    check(code != 0 and "before 0.1.0" in text and text.count("\n") == 1, f"upgrade of version 3: {code} {text}")


def refusals(db):
    def tool(*args, env=None):
        done = subprocess.run([cluster.PROGRAM, *args], capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=60)
        return done.returncode, done.stderr

    code, text = tool("ls", "--db", "postgresql://me:hunter2@127.0.0.1/x")
    check(code == 2 and "PGPASSWORD" in text and "hunter2" not in text, f"a password in argv: {code} {text}")
    code, text = tool("serve", "--port", "0", env={"DPTRACK_DB": "postgresql://me:hunter2@127.0.0.1:1/x"})
    check(code != 0 and text.count("\n") == 1 and "hunter2" not in text, f"no server at the address: {code} {text}")
    code, text = tool("ls", "--db", db.address("postgres"))
    check(code == 2 and "dptrack db init" in text, f"a database without tables: {code} {text}")
    code, text = tool("db", "status", "--db", db.address("dptrack"))
    check(code == 0, f"db status: {code} {text}")
    code, text = tool("db", "init", "--db", db.address("dptrack"))
    check(code != 0 and "already" in text, f"db init twice: {code} {text}")


def stops_without_its_database(db, folder):
    """A process that must stop while writes wait for a lost database gives up, and stops normally."""
    p = lib.Process(db.address("t1"), os.path.join(folder, "artifacts"))
    boss = {"Authorization": "Bearer " + cluster.add_token(lambda sql: db.sql("t1", sql))}
    check(until(10, lambda: p.request("GET", "/api/v1/runs", headers=boss)[0] == 200), "an administrator")
    began = threading.Event()

    def write():
        try:
            while True:
                p.request("POST", "/api/v1/runs", {"experiment": "e", "name": "late"}, boss)
                began.set()
        except (OSError, http.client.HTTPException):
            pass

    writers = [threading.Thread(target=write) for _ in range(3)]
    for t in writers:
        t.start()
    check(began.wait(20), "writers")
    db.kill()
    p.stop()
    for t in writers:
        t.join(20)
    db.start()


def stays_lost_during_a_commit(db, folder):
    """A database that goes during a commit and stays away (reported for langfuse, issue 4200, and sematic, issue 799):
    the client gets its answer within seconds, /health is 503 meanwhile, and the log has a line for each of both
    changes. The repeated request counts once."""
    w = wire.Wire(db.folder, db.port)
    process = lib.Process(w.address("t1"), os.path.join(folder, "lost"))
    run = process.json("POST", "/api/v1/runs", {"experiment": "lost", "name": "one"})[1]["id"]
    metrics = [{"key": "a", "step": n, "timestamp": 1795000000000 + n, "value": 1.0} for n in range(3)]
    batch, replies, far = {"run_id": run, "metrics": metrics}, [], w.far

    def write():
        began = time.monotonic()
        replies.append((*process.request("POST", "/api/2.0/mlflow/runs/log-batch", batch), time.monotonic() - began))

    writer = threading.Thread(target=write)
    w.far = os.path.join(folder, "nothing")
    w.trap = "reply"
    writer.start()
    check(until(9, lambda: process.request("GET", "/health")[0] == 503), f"/health: {process.request('GET', '/health')}")
    check(b'"writes":false' in process.request("GET", "/health?verbose=1")[1], "/health?verbose=1")
    writer.join()
    status, text, waited_s = replies[0]
    check(status == 503 and b"stored or not" in text and waited_s < 18, f"a commit without an outcome: {replies}")
    began = time.monotonic()
    status, reply = process.request("POST", "/api/2.0/mlflow/runs/log-batch", batch)
    check(status == 503 and time.monotonic() - began < 5, f"the next one: {status} {reply} after {time.monotonic() - began:.1f} s")
    w.far = far
    check(until(20, lambda: process.request("GET", "/health")[0] == 200), f"/health: {process.request('GET', '/health')}")
    write()
    count = process.json("GET", f"/api/v1/runs/{run}")[1]["metrics"]["a"]["count"]
    check(replies[-1][0] == 200 and count == 3, f"repeated: {replies[-1]}, {count} points")
    process.stop()
    lines = [line for line in process.serving.stderr().splitlines() if "database" in line]
    check(len(lines) == 2 and "refused until it is back" in lines[0] and "the database is back" in lines[1], f"its log: {lines}")


def main():
    why = cluster.reason()
    if why:
        print(f"together: {why}")
        sys.exit(77)
    with cluster.Cluster() as db, tempfile.TemporaryDirectory(prefix="dptrack-team.") as folder:
        address = db.store("t1")
        team = [lib.Process(address, os.path.join(folder, "artifacts")) for _ in range(3)]
        read_everywhere(team)
        spikes_are_reported_at_once(team)
        one_run_through_all_processes(team, db)
        changes_miss_nothing(team)
        streams_wake(team)
        stays_lost_during_a_commit(db, folder)
        administrator = tokens_are_shared(team, address)
        revoked_everywhere(team, administrator)
        uploads_outlive_a_start(team, administrator)
        ready_or_not(team, db)
        for p in team:
            p.stop()
        upgraded(db)
        refusals(db)
        stops_without_its_database(db, folder)
    lib.finish("together")


if __name__ == "__main__":
    main()
