# SPDX-License-Identifier: Apache-2.0
"""Archived runs of several processes on one PostgreSQL and one object store (tests/data/s3server.py): each run is
archived once, whichever process does it, and every process gives bit for bit the answers from rows. Points sent
through several processes unarchive a run once. While the object store is down, archived points give 503 and other runs
work. Another process continues the work of a killed one; a process that waits while another unarchives a run learns of
it."""
import os
import re
import subprocess
import sys
import tempfile
import threading

import lib
from lib import check, until

import cluster

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))
import s3server

POINTS, RUNS = 5000, 4  # of each: two chunks and a part


def make(team, n):
    """A run whose points were sent through all processes."""
    run = team[0].json("POST", "/api/v1/runs", {"experiment": "e", "name": f"r{n}"})[1]["id"]
    for k, first in enumerate(range(0, POINTS, 1000)):
        some = [{"key": "loss", "step": s, "value": (s * 7919 % 1009 + n) / 7, "wall_time": 1.7e9 + s / 8} for s in range(first, first + 1000)]
        status, reply = team[k % len(team)].json("POST", f"/api/v1/runs/{run}/metrics", {"points": some})
        check((status, reply) == (200, {"accepted": 1000}), f"points: {status} {reply}")
    return run


def end(process, run):
    check(process.request("PATCH", f"/api/v1/runs/{run}", {"status": "finished"})[0] == 200, "end")


def chart(process, run):
    status, text = process.request("GET", f"/api/v1/series?run={run}&key=loss&buckets=50")
    return status, re.sub(rb',"rev":\d+', b"", text)


def answers(process, runs):
    return [process.request("GET", f"/api/v1/export/series.csv?run={run}") for run in runs] + [chart(process, run) for run in runs]


def count(db, table):
    return int(db.sql("t1", f"SELECT count(*) FROM {table}")[0])


def sum_counter(team, name):
    """The sum of a /metrics counter over all processes."""
    texts = [p.request("GET", "/metrics")[1].decode() for p in team]
    return sum(float(re.search(rf"^dptrack_archive_{name} (\S+)$", text, re.M)[1]) for text in texts)


def at_once(calls):
    threads = [threading.Thread(target=call) for call in calls]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def restart(team, *args):
    def again(p):
        p.stop()
        p.args = args
        p.start()
    at_once([lambda p=p: again(p) for p in team])


def runs_are_archived(db, team, runs):
    """All processes try to archive; afterwards the answers are those from rows, also from a fresh process."""
    check(until(60, lambda: count(db, "log") == 0), "folding")
    want = answers(team[0], runs)
    check(all(status == 200 for status, _ in want), "answers of rows")
    restart(team, "--archive-after", "1s")
    check(until(60, lambda: count(db, "archive") == len(runs)), f"{count(db, 'archive')} of {len(runs)} runs are archived")
    check(count(db, "chunk c JOIN series s ON s.id = c.id / 1048576 JOIN archive a ON a.run_id = s.run_id") == 0, "rows are left")
    for n, p in enumerate(team):
        check(answers(p, runs) == want, f"process {n} gives different answers")
    seen = {name: sum_counter(team, name) for name in ("runs_total", "series_total", "points_total", "returns_total", "failures_total")}
    check(list(seen.values()) == [len(runs), len(runs), len(runs) * POINTS, 0, 0], f"/metrics: {seen}")
    bytes_ = sum(map(int, db.sql("t1", "SELECT bytes FROM archive")))
    check(sum_counter(team, "bytes_total") == bytes_ > 0, f"/metrics: {sum_counter(team, 'bytes_total')} bytes of {bytes_}")
    check(sum_counter(team, "last_timestamp_seconds") > 1.7e9, "/metrics: time of the last move")


def grows_again(db, team, run):
    """New points through all processes at once: each is stored once, and the run is unarchived once."""
    restart(team, "--archive-after", "0")
    got = []

    def send(k):
        point = {"key": "more", "step": k, "value": k}
        got.append(team[k % len(team)].json("POST", f"/api/v1/runs/{run}/metrics", {"points": [point]}))
    at_once([lambda k=k: send(k) for k in range(9)])
    check(got == [(200, {"accepted": 1})] * 9, f"points of an archived run: {got}")
    check(count(db, "archive") == RUNS - 1, "archived runs")
    check(sum_counter(team, "returns_total") == 1, f"/metrics: {sum_counter(team, 'returns_total')} runs came back")
    for p in team:
        lines = p.request("GET", f"/api/v1/export/series.csv?run={run}&key=more")[1].decode().splitlines()[1:]
        check(sorted(int(line.split(",")[5]) for line in lines) == list(range(9)), f"new points: {lines}")


def object_store_down(s3, team, run, going):
    """The object store does not answer."""
    port = s3.server_address[1]
    s3.stop()
    restart(team, "--archive-after", "0")  # nothing is cached

    def ask(p):
        status, text = chart(p, run)
        check(status == 503, f"an archived run's chart: {status} {text}")
        status = p.request("POST", f"/api/v1/runs/{going}/metrics", {"points": [{"key": "loss", "step": 9999, "value": 1}]})[0]
        check(status == 200, f"a point of another run: {status}")
        check(chart(p, going)[0] == 200, "its chart")
    at_once([lambda p=p: ask(p) for p in team])
    s3 = s3server.S3(s3.folder, port=port)
    for p in team:
        check(until(30, lambda: chart(p, run)[0] == 200), "the chart once the object store is back")
    return s3


def killed(db, team, run):
    """The process with the lease is killed: another one archives what ends later."""
    restart(team, "--archive-after", "1s")
    check(until(60, lambda: count(db, "archive") == RUNS), "the grown run is archived again")
    rows = db.sql("t1", "SELECT split_part(split_part(value, ' ', 2), ':', 2) FROM meta WHERE name LIKE 'lease archive%'")
    victim = next((p for p in team if [str(p.process.pid)] == rows), None)
    if not check(victim is not None, f"holder of the lease: {rows}"):
        return
    victim.kill()
    rest = [p for p in team if p is not victim]
    before = answers(rest[0], [run])
    end(rest[0], run)
    check(until(60, lambda: count(db, "archive") == RUNS + 1), "another process continues")
    check([answers(p, [run]) for p in rest] == [before] * 2, "answers of the newly archived run")
    victim.start()


class Gate:
    """Blocks reads from the object store."""

    def __init__(self):
        self.asked, self.open = threading.Event(), threading.Event()
        self.get = s3server.S3Handler.do_GET

    def __enter__(self):
        def held(handler):
            self.asked.set()
            self.open.wait(60)
            self.get(handler)
        s3server.S3Handler.do_GET = held
        return self

    def __exit__(self, *_):
        self.open.set()
        s3server.S3Handler.do_GET = self.get


def unarchived_meanwhile(db, team, run):
    """A process has read the archive and waits for the run's row; meanwhile the row's holder has unarchived it (here
    to nothing)."""
    got = []
    send = threading.Thread(target=lambda: got.append(
        team[0].request("POST", f"/api/v1/runs/{run}/metrics", {"points": [{"key": "late", "step": 1, "value": 1}]})[0]))
    with Gate() as gate:
        send.start()
        check(gate.asked.wait(60), "the archive is read")
        other = subprocess.Popen(db.psql("t1"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        other.stdin.write(f"BEGIN;\nSELECT id FROM run WHERE uuid = '{run}' FOR UPDATE;\n")
        other.stdin.flush()
        row = int(other.stdout.readline())
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    check(until(30, lambda: db.sql("t1", waits) != ["0"]), "the process waits for the row")
    other.communicate(f"DELETE FROM archive WHERE run_id = {row};\nUPDATE run SET version = version + 1 WHERE id = {row};\nCOMMIT;\n")
    send.join(30)
    check(got == [200], f"a point of a run that another process unarchived: {got or 'no answer'}")


def main():
    why = cluster.reason()
    if why:
        print(f"archive: {why}")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="dptrack-archive.") as folder, cluster.Cluster() as db:
        os.makedirs(os.path.join(folder, "shop"))
        s3 = s3server.S3(folder)
        os.environ.update({k: v for k, v in s3.environment().items() if k.startswith("AWS_") or k == "no_proxy"})
        db.store("t1")
        team = [lib.Process(db.address("t1"), "s3://shop/team", "--archive-after", "0") for _ in range(3)]
        runs = [make(team, n) for n in range(RUNS)]
        going = make(team, RUNS)
        for run in runs:
            end(team[1], run)
        runs_are_archived(db, team, runs)
        grows_again(db, team, runs[0])
        s3 = object_store_down(s3, team, runs[1], going)
        killed(db, team, going)
        unarchived_meanwhile(db, team, runs[2])
        for p in team:
            p.stop()
        s3.stop()
    lib.finish("archive")


main()
