# SPDX-License-Identifier: Apache-2.0
"""A server is killed with SIGKILL many times under load, during ingest, gc and backups. Every client keeps a ledger:
what was acknowledged is stored afterwards, once; everything else is sent again under the same name.

    tests/fault/server_kill.py        20 kills (make check)
    tests/fault/server_kill.py 200    the long version"""
import sys
sys.dont_write_bytecode = True
import csv
import http.client
import json
import os
import random
import signal
import tempfile
import threading
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib

CLIENTS = 3
BATCH = 25


class Client:
    """Sends batches of points in sequence, each with its own Idempotency-Key."""

    def __init__(self, number, run):
        self.number, self.run, self.acked = number, run, 0

    def send(self, server, stop):
        connection = http.client.HTTPConnection(server.host, server.port, timeout=20)
        while not stop.is_set():
            points = [{"key": f"c{self.number}", "step": self.acked * BATCH + i, "value": self.number + 0.5} for i in range(BATCH)]
            try:
                status, _, _ = server.request("POST", f"/api/v1/runs/{self.run}/metrics", {"points": points},
                                              {"Idempotency-Key": f"{self.number}-{self.acked}"}, connection)
            except (OSError, http.client.HTTPException):
                return
            if status != 200:
                return
            self.acked += 1


def upkeep(server, round_number, runs, stop):
    """Long operations for the kill to interrupt: a run that is removed, a backup."""
    try:
        if round_number % 2:
            run = server.json("POST", "/api/v1/runs", {"experiment": "old", "name": "x"})[1]["id"]
            points = [{"key": f"k{i % 50}", "step": i, "value": 1} for i in range(5000)]
            server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": points})
            server.json("DELETE", f"/api/v1/runs/{run}")
            server.json("POST", "/api/v1/gc", {})
        else:
            server.json("POST", "/api/v1/backup", {"path": os.path.join(runs, f"../copy{round_number}")}, headers=server.as_owner())
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        pass
    stop.wait(0)


def audit(server, client, what):
    status, _, data = server.request("GET", f"/api/v1/export/series.csv?run={client.run}&key=c{client.number}")
    steps = [int(row["step"]) for row in csv.DictReader(data.decode().splitlines())]
    want = client.acked * BATCH
    lib.equal(status, 200, f"{what}: export")
    if len(steps) == want + BATCH:
        client.acked += 1  # stored, but the reply was lost
        want += BATCH
    lib.check(steps == list(range(want)), f"{what}: client {client.number}: {len(steps)} points, acknowledged {want}")


def one_round(runs, clients, number, dice):
    server = lib.Server(runs, wait=60)
    try:
        for client in clients:
            client.run = client.run or lib.make_run(server, "kill", f"c{client.number}")
            audit(server, client, f"round {number}")
        stop = threading.Event()
        threads = [threading.Thread(target=c.send, args=(server, stop)) for c in clients]
        threads.append(threading.Thread(target=upkeep, args=(server, number, runs, stop)))
        for t in threads:
            t.start()
        time.sleep(dice.uniform(0.02, 0.25))
        server.process.send_signal(signal.SIGKILL)
        stop.set()
        server.process.wait(30)
        for t in threads:
            t.join(60)
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait(30)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    dice = random.Random(1)
    clients = [Client(i, None) for i in range(CLIENTS)]
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        runs = os.path.join(folder, "runs")
        for number in range(rounds):
            one_round(runs, clients, number, dice)
        server = lib.Server(runs, wait=60)
        for client in clients:
            audit(server, client, "at the end")
        cleaned, end = server.json("POST", "/api/v1/gc", {}), time.monotonic() + 60
        while lib.IN_DATABASE and cleaned[0] == 503 and time.monotonic() < end:  # until the lease of a killed gc expires
            time.sleep(0.1)
            cleaned = server.json("POST", "/api/v1/gc", {})
        lib.equal(cleaned[0], 200, f"gc finishes interrupted removals: {cleaned}")
        lib.equal(server.stop(), 0, "exit code")
        lib.equal(lib.number(runs, "SELECT count(*) FROM gone WHERE stage = 0"), 0, "unfinished removals")
        lib.equal(lib.number(runs, "SELECT count(*) FROM log WHERE run_id NOT IN (SELECT id FROM run)"), 0, "logged rows without a run")
        if not lib.IN_DATABASE:
            lib.equal(lib.number(runs, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1, "integrity")
    total = sum(c.acked for c in clients) * BATCH
    lib.check(total > 0, "something was acknowledged")
    print(f"{rounds} kills, {total} points acknowledged and found")
    lib.finish("kill")


main()
