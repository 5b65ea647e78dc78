# SPDX-License-Identifier: Apache-2.0
"""Leases: one of two processes with one folder of runs follows it, and the other takes over when that one is killed or
stopped for a while; each point is stored once. One process evaluates alert rules. A task that one process runs at a
time is refused by the other; an expired lease is free. `--full`: maintenance also moves from a killed process."""
import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

import lib
from lib import check, until

import cluster

RECORD = os.path.join(cluster.BUILD, "tests", "tracker", "record")


def holder(db, name):
    """The number of the process that holds the lease, or None."""
    rows = db.sql("t1", f"SELECT split_part(split_part(value, ' ', 2), ':', 2) FROM meta WHERE name LIKE 'lease {name}%'")
    check(len(rows) <= 1, f"leases {name}: {rows}")
    return int(rows[0]) if rows else None


def is_holder(db, name, process, when):
    found = holder(db, name)
    check(found == process.process.pid, f"{when}: {found} has the lease {name}, expected {process.process.pid}")


def record(folder, name, points):
    script = "".join(f"log {i} loss {i}\n" for i in range(points)) + "close finished\n"
    done = subprocess.run([RECORD, f"runs_dir={folder}", "experiment=e", f"run_name={name}", "url="], input=script, capture_output=True,
                          text=True, timeout=60)
    check(done.returncode == 0, f"record: {done.stderr}")
    return done.stdout.split()[1]


def arrived(process, run, points):
    def count():
        status, reply = process.json("GET", f"/api/v1/runs/{run}")
        return status == 200 and reply["metrics"].get("loss", {}).get("count") == points
    check(until(60, count), f"{points} points of {run}: {process.json('GET', f'/api/v1/runs/{run}')}")


def one_follows(db, team, folder):
    """The leader is killed, then the next one is stopped and later continued: the folder is followed at all times."""
    runs = [record(folder, "first", 50)]
    for p in team:
        arrived(p, runs[0], 50)
    first = holder(db, "follow")
    leader = next(p for p in team if p.process.pid == first)
    other = next(p for p in team if p is not leader)
    leader.kill()
    runs.append(record(folder, "second", 60))
    arrived(other, runs[1], 60)
    is_holder(db, "follow", other, "after a kill")
    leader.start()
    other.process.send_signal(signal.SIGSTOP)
    runs.append(record(folder, "third", 70))
    arrived(leader, runs[2], 70)
    is_holder(db, "follow", leader, "while the other is stopped")
    other.process.send_signal(signal.SIGCONT)
    runs.append(record(folder, "fourth", 80))
    for p in team:
        for run, points in zip(runs, (50, 60, 70, 80)):
            arrived(p, run, points)
    is_holder(db, "follow", leader, "after both are back")
    rows = leader.json("GET", f"/api/v1/series?run={runs[2]}&key=loss")[1]["points"]
    check([r["step"] for r in rows] == list(range(70)), "the points of a run whose follower changed")
    return leader, other


def one_runs_gc(db, team):
    """gc is refused while another process, which is named, runs it; the lease of a dead process is taken over."""
    until_ms = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
    db.sql("t1", f"INSERT INTO meta VALUES ('lease gc', {until_ms} + 600000 || ' elsewhere:7:x')")
    for p in team:
        status, reply = p.json("POST", "/api/v1/gc", {})
        check(status == 503 and "elsewhere:7:x" in json.dumps(reply), f"gc during another one: {status} {reply}")
    check(team[0].json("POST", "/api/v1/gc", {"dry_run": True})[0] == 200, "counting needs no lease")
    db.sql("t1", f"UPDATE meta SET value = {until_ms} - 1 || ' elsewhere:7:x' WHERE name = 'lease gc'")
    status, reply = team[0].json("POST", "/api/v1/gc", {})
    check(status == 200, f"gc after the death of another one: {status} {reply}")
    check(holder(db, "gc") is None, "the lease of a finished gc")
    check(team[1].json("POST", "/api/v1/gc", {})[0] == 200, "another gc")


def one_evaluates_rules(db, leader, other):
    """One process evaluates rules; when it is killed another one continues, and each alert is raised once."""
    check(leader.json("POST", "/api/v1/runs", {"experiment": "judged", "name": "none"})[0] == 201, "a run")
    status, rule = leader.json("POST", "/api/v1/alerts/rules", {"experiment": "judged", "kind": "metric", "metric": "loss", "above": 10})
    check(status == 201, f"a rule: {status} {rule}")
    check(until(60, lambda: holder(db, "alerts") is not None), "no process evaluates rules")
    judge = next(p for p in (leader, other) if p.process.pid == holder(db, "alerts"))
    rest = next(p for p in (leader, other) if p is not judge)

    def fired(name):
        run = rest.json("POST", "/api/v1/runs", {"experiment": "judged", "name": name})[1]["id"]
        rest.json("POST", f"/api/v1/runs/{run}/metrics", {"points": [{"key": "loss", "step": 1, "value": 11.0}]})
        check(until(60, lambda: run in [a["run"] for a in rest.json("GET", "/api/v1/alerts")[1]["alerts"]]), f"{name}: no alert")

    fired("one")
    judge.kill()
    fired("two")
    is_holder(db, "alerts", rest, "after a kill")
    judge.start()
    alerts = [a["run"] for a in judge.json("GET", "/api/v1/alerts")[1]["alerts"]]
    check(len(alerts) == 2 == len(set(alerts)), f"alerts: {alerts}")
    posted(db, judge, rest, fired)


def posted(db, poster, judge, fired):
    """The process that raises an alert need not be the one that posts it."""
    taken = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["run_name"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    with tempfile.NamedTemporaryFile("w", suffix=".secret") as secret:
        secret.write("sixteen-letters.\n")
        secret.flush()
        poster.stop()
        plain = poster.args
        poster.args += ("--webhook", f"http://127.0.0.1:{receiver.server_address[1]}/", "--webhook-secret-file", secret.name)
        poster.start()
        check(until(30, lambda: holder(db, "webhook") == poster.process.pid), "the posting process has no lease")
        check(holder(db, "alerts") == judge.process.pid, "the evaluating process next to one that posts")
        fired("three")
        check(until(30, lambda: taken) and taken == ["three"], f"posts: {taken}")
        poster.args = plain  # a restart has no receiver and no secret
    receiver.shutdown()
    receiver.server_close()


def upkeep_moves(db, leader, other):
    """One process handles stale runs and old keys; when it is gone, the other does."""
    check(until(30, lambda: holder(db, "upkeep") is not None), "no process handles stale runs")
    busy = next(p for p in (leader, other) if p.process.pid == holder(db, "upkeep"))
    rest = next(p for p in (leader, other) if p is not busy)
    busy.kill()
    check(until(60, lambda: holder(db, "upkeep") == rest.process.pid), "the maintenance of a killed process")
    busy.start()


def after_the_database(db, folder, leader, other):
    """After the database is gone and back, the folder is followed again, even without other writes."""
    db.stop()
    run = record(folder, "away", 90)
    db.start()
    for p in (leader, other):
        arrived(p, run, 90)


def main():
    why = cluster.reason() or (None if os.path.exists(RECORD) else f"{RECORD} is not built")
    if why:
        print(f"leases: {why}")
        sys.exit(77)
    with cluster.Cluster() as db, tempfile.TemporaryDirectory(prefix="dptrack-team.") as folder:
        runs, address = os.path.join(folder, "runs"), db.store("t1")
        os.mkdir(runs)
        team = [lib.Process(address, os.path.join(folder, "artifacts"), "--logdir", runs) for _ in range(2)]
        leader, other = one_follows(db, team, runs)
        one_runs_gc(db, team)
        one_evaluates_rules(db, leader, other)
        if "--full" in sys.argv:
            upkeep_moves(db, leader, other)
        after_the_database(db, runs, leader, other)
        for p in team:
            p.stop()
        check(holder(db, "follow") is None, "the folder's lease after all processes have ended")
    lib.finish("leases")


if __name__ == "__main__":
    main()
