"""Archived runs of several processes on one PostgreSQL and one object store (tests/data/s3server.py): each run moves once, whichever
process moves it, and every process answers bit for bit as rows did; points through several processes bring a run back once; while
the object store is away archived points are 503 and all others go on; a killed process leaves its work to another one; who brings a
run back and waits for another one that does hears of it."""
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

POINTS, RUNS = 5000, 4  # of each: two chunks and a piece


def make(team, n):
    """A run whose points came through all of them."""
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


def told(team, name):
    """A counter of /metrics, of all processes together."""
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


def moves(db, team, runs):
    """All of them want to; what was rows answers as rows did, also by a process that has read nothing yet."""
    check(until(60, lambda: count(db, "log") == 0), "folding")
    want = answers(team[0], runs)
    check(all(status == 200 for status, _ in want), "answers of rows")
    restart(team, "--archive-after", "1s")
    check(until(60, lambda: count(db, "archive") == len(runs)), f"{count(db, 'archive')} of {len(runs)} runs are archived")
    check(count(db, "chunk c JOIN series s ON s.id = c.id / 1048576 JOIN archive a ON a.run_id = s.run_id") == 0, "rows are left")
    for n, p in enumerate(team):
        check(answers(p, runs) == want, f"process {n} answers otherwise")
    seen = {name: told(team, name) for name in ("runs_total", "series_total", "points_total", "returns_total", "failures_total")}
    check(list(seen.values()) == [len(runs), len(runs), len(runs) * POINTS, 0, 0], f"/metrics: {seen}")
    bytes_ = sum(map(int, db.sql("t1", "SELECT bytes FROM archive")))
    check(told(team, "bytes_total") == bytes_ > 0, f"/metrics: {told(team, 'bytes_total')} bytes of {bytes_}")
    check(told(team, "last_timestamp_seconds") > 1.7e9, "/metrics: when the last one was moved")


def goes_on(db, team, run):
    """New points through all of them at once: each once, and the run moved back once."""
    restart(team, "--archive-after", "0")
    got = []

    def send(k):
        point = {"key": "more", "step": k, "value": k}
        got.append(team[k % len(team)].json("POST", f"/api/v1/runs/{run}/metrics", {"points": [point]}))
    at_once([lambda k=k: send(k) for k in range(9)])
    check(got == [(200, {"accepted": 1})] * 9, f"points of an archived run: {got}")
    check(count(db, "archive") == RUNS - 1, "one run is rows again")
    check(told(team, "returns_total") == 1, f"/metrics: {told(team, 'returns_total')} runs came back")
    for p in team:
        lines = p.request("GET", f"/api/v1/export/series.csv?run={run}&key=more")[1].decode().splitlines()[1:]
        check(sorted(int(line.split(",")[5]) for line in lines) == list(range(9)), f"points behind it: {lines}")


def away(s3, team, run, going):
    """The object store does not answer."""
    port = s3.server_address[1]
    s3.stop()
    restart(team, "--archive-after", "0")  # nothing is in memory

    def ask(p):
        status, text = chart(p, run)
        check(status == 503, f"an archived run's chart: {status} {text}")
        status = p.request("POST", f"/api/v1/runs/{going}/metrics", {"points": [{"key": "loss", "step": 9999, "value": 1}]})[0]
        check(status == 200, f"a point of another run: {status}")
        check(chart(p, going)[0] == 200, "its chart")
    at_once([lambda p=p: ask(p) for p in team])
    s3 = s3server.S3(s3.folder, port=port)
    for p in team:
        check(until(30, lambda: chart(p, run)[0] == 200), "its chart once the store is back")
    return s3


def killed(db, team, run):
    """Whoever has the lease is killed: another one moves what ends later."""
    restart(team, "--archive-after", "1s")
    check(until(60, lambda: count(db, "archive") == RUNS), "the run that went on is archived again")
    rows = db.sql("t1", "SELECT split_part(split_part(value, ' ', 2), ':', 2) FROM meta WHERE name LIKE 'lease archive%'")
    victim = next((p for p in team if [str(p.process.pid)] == rows), None)
    if not check(victim is not None, f"who has the lease: {rows}"):
        return
    victim.kill()
    rest = [p for p in team if p is not victim]
    before = answers(rest[0], [run])
    end(rest[0], run)
    check(until(60, lambda: count(db, "archive") == RUNS + 1), "another process goes on with it")
    check([answers(p, [run]) for p in rest] == [before] * 2, "what it moved answers as before")
    victim.start()


class Gate:
    """Holds up who asks the object store for bytes."""

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


def overtaken(db, team, run):
    """A process has read the archive and waits for the run's row; whoever holds that has meanwhile made rows of it (here: of nothing)."""
    got = []
    send = threading.Thread(target=lambda: got.append(
        team[0].request("POST", f"/api/v1/runs/{run}/metrics", {"points": [{"key": "late", "step": 1, "value": 1}]})[0]))
    with Gate() as gate:
        send.start()
        check(gate.asked.wait(60), "the archive is asked for")
        other = subprocess.Popen(db.psql("t1"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        other.stdin.write(f"BEGIN;\nSELECT id FROM run WHERE uuid = '{run}' FOR UPDATE;\n")
        other.stdin.flush()
        row = int(other.stdout.readline())
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    check(until(30, lambda: db.sql("t1", waits) != ["0"]), "it waits for the row")
    other.communicate(f"DELETE FROM archive WHERE run_id = {row};\nUPDATE run SET version = version + 1 WHERE id = {row};\nCOMMIT;\n")
    send.join(30)
    check(got == [200], f"a point of a run that another process brought back: {got or 'no answer'}")


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
        moves(db, team, runs)
        goes_on(db, team, runs[0])
        s3 = away(s3, team, runs[1], going)
        killed(db, team, going)
        overtaken(db, team, runs[2])
        for p in team:
            p.stop()
        s3.stop()
    lib.finish("archive")


main()
