"""Three processes on one PostgreSQL while one of them, a backend or all of PostgreSQL is killed: what was acknowledged is there,
once, whole. Clients write through any process; some repeat what was not answered by Idempotency-Key, one never does.
A process and all of PostgreSQL once each; with a number as the first argument that many rounds of every kind."""
import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time

import lib
from lib import check

import cluster

CLIENTS, ROUND_S, BATCH = 4, 1.5, 5
AGAIN = (ConnectionError, http.client.HTTPException, OSError)


class Client(threading.Thread):
    """One run; batches of five points with keys of their own; each is sent until a process acknowledges it."""

    def __init__(self, team, number, stop):
        super().__init__()
        self.team, self.number, self.stop, self.done = team, number, stop, 0
        self.run_id = team[0].json("POST", "/api/v1/runs", {"experiment": "kills", "name": f"c{number}"})[1]["id"]

    def send(self, path, body, headers):
        """The reply's body, from whichever process gives one; None once all shall stop and nobody did."""
        while True:
            try:
                status, data = random.choice(self.team).request("POST", path, body, headers, timeout=20)
                if status // 100 == 2:
                    return json.loads(data)
                check(status == 503, f"client {self.number}: {status} {data[:200]}")
            except AGAIN:
                pass
            time.sleep(0.05)

    def run(self):
        while not self.stop.is_set():
            first = self.done * BATCH
            points = [{"key": "a", "step": first + i, "value": first + i} for i in range(BATCH)]
            self.send(f"/api/v1/runs/{self.run_id}/metrics", {"points": points}, {"Idempotency-Key": f"b{self.done}"})
            self.done += 1


class Plain(Client):
    """Batches without a key: one that is not answered, or refused, is never repeated, and may be there or not, but whole."""

    def run(self):
        self.known, self.unknown, n = set(), set(), 0
        while not self.stop.is_set():
            points = [{"key": "a", "step": BATCH * n + i, "value": 1.0} for i in range(BATCH)]
            try:
                status, _ = random.choice(self.team).request("POST", f"/api/v1/runs/{self.run_id}/metrics", {"points": points}, timeout=20)
                (self.known if status == 200 else self.unknown).add(n)
                self.done += status == 200
            except AGAIN:
                self.unknown.add(n)
                time.sleep(0.05)
            n += 1

    def judge(self, rows):
        steps = [r["step"] for r in rows]
        batches = {s // BATCH for s in steps}
        check(len(steps) == len(set(steps)), f"{len(steps) - len(set(steps))} points of client {self.number} are there twice")
        check(all(steps.count(BATCH * b + i) for b in batches for i in range(BATCH)), f"half a batch of client {self.number}")
        check(self.known <= batches, f"client {self.number}: {len(self.known - batches)} acknowledged batches are lost")
        check(batches <= self.known | self.unknown, f"client {self.number}: batches nobody sent")


def points_of(process, run):
    rows, page = [], ""
    while True:
        reply = process.json("GET", f"/api/v1/series?run={run}&key=a{page}")[1]
        rows += reply["points"]
        if not reply.get("next_page_token"):
            return rows
        page = "&page_token=" + reply["next_page_token"]


def kill_process(team, db):
    victim = random.choice(team)
    victim.kill()
    time.sleep(0.3)
    victim.start()


def kill_database(team, db):
    os.kill(db.pid(), signal.SIGQUIT)  # as after a power cut: no backend ends what it does
    time.sleep(0.5)
    db.start()


def kill_backend(team, db):
    for _ in range(5):
        db.sql("t1", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 't1' AND pid <> pg_backend_pid()")
        time.sleep(0.1)


def stop_process(team, db):
    victim = random.choice(team)
    victim.process.send_signal(signal.SIGSTOP)
    time.sleep(4)
    victim.process.send_signal(signal.SIGCONT)


def one_round(team, db, fault):
    stop = threading.Event()
    clients = [Client(team, i, stop) for i in range(CLIENTS)] + [Plain(team, CLIENTS, stop)]
    for c in clients:
        c.start()
    time.sleep(0.5)
    fault(team, db)
    before, began = [c.done for c in clients], time.monotonic()
    lib.until(30, lambda: all(c.done > n for c, n in zip(clients, before)))
    again_s = time.monotonic() - began
    time.sleep(ROUND_S)
    stop.set()
    for c in clients:
        c.join(60)
        check(not c.is_alive(), f"client {c.number} gets no answer any more")
    for c in clients:
        rows = points_of(random.choice(team), c.run_id)
        if isinstance(c, Plain):
            c.judge(rows)
            continue
        check([r["step"] for r in rows] == list(range(BATCH * c.done)),
              f"client {c.number}: {len(rows)} points are there, {BATCH * c.done} were acknowledged")
    return sum(c.done for c in clients), again_s


def main():
    why = cluster.reason()
    if why:
        print(f"kills: {why}")
        sys.exit(77)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    with cluster.Cluster(fsync=True) as db, tempfile.TemporaryDirectory(prefix="dptrack-team.") as folder:
        address = db.store("t1")
        team = [lib.Process(address, os.path.join(folder, "artifacts")) for _ in range(3)]
        for fault in (kill_process, kill_database, kill_backend, stop_process)[:4 if len(sys.argv) > 1 else 2]:
            batches, worst_s = 0, 0.0  # from the end of the fault until all write again
            for _ in range(rounds):
                n, s = one_round(team, db, fault)
                batches, worst_s = batches + n, max(worst_s, s)
            print(f"{fault.__name__}: {rounds} rounds, {batches} batches acknowledged, all write again {worst_s:.1f} s after it at the latest", flush=True)
        for p in team:
            p.stop()
    lib.finish("kills")


main()
