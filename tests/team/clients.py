# SPDX-License-Identifier: Apache-2.0
"""Clients of several processes, one class per kind: a request goes to any of the processes, and each client records
what was acknowledged, which `judge` compares with what is stored."""
import collections
import http.client
import json
import os
import random
import re
import struct
import subprocess
import threading
import time

from lib import check, until

import cluster

RECORD = os.path.join(cluster.BUILD, "tests", "tracker", "record")
BATCH = 5
JOURNAL_POINTS = 15000
AGAIN = (ConnectionError, http.client.HTTPException, OSError)


class Client(threading.Thread):
    """A client with a run of its own. A batch is five points with consecutive numbers."""

    batch = BATCH

    def __init__(self, team, number, stop):
        super().__init__(daemon=True)
        self.team, self.stop, self.done, self.name = team, stop, 0, f"{type(self).__name__}-{number}"
        self.run_id = self.make_run()

    def make_run(self):
        return self.team[0].json("POST", "/api/v1/runs", {"experiment": "team", "name": self.name})[1]["id"]

    def send(self, path, body, headers, fine=(200, 201)):
        """Returns the reply of the process that accepts the request; None after a stop without a reply."""
        end_s = None
        while end_s is None or time.monotonic() < end_s:
            try:
                status, data = random.choice(self.team).request("POST", path, body, headers, timeout=20)
                if status in fine:
                    return json.loads(data)
                check(status == 503, f"{self.name}: {status} {data[:200]}")
            except AGAIN:
                pass
            time.sleep(0.02)
            if end_s is None and self.stop.is_set():
                end_s = time.monotonic() + 60
        check(False, f"{self.name} no longer gets an answer")
        return None

    def steps(self):
        rows, page = [], ""
        while page is not None:
            reply = random.choice(self.team).json("GET", f"/api/v1/series?run={self.run_id}&key=a{page}")[1]
            rows += [r["step"] for r in reply["points"]]
            page = f"&page_token={reply['next_page_token']}" if reply.get("next_page_token") else None
        return rows

    def judge(self):
        """Exactly the acknowledged points are stored, for a client that repeats requests until acknowledged."""
        steps, want = self.steps(), self.batch * self.done
        twice = [s for s, n in collections.Counter(steps).items() if n > 1]
        check(not twice, f"{self.name}: {len(twice)} points are duplicated")
        lost = set(range(want)) - set(steps)
        check(not lost, f"{self.name}: {len(lost)} of {want} acknowledged points are lost")
        check(set(steps) <= set(range(want)), f"{self.name}: {len(set(steps) - set(range(want)))} points that were not acknowledged")


class Keyed(Client):
    """Repeats unanswered requests with the same Idempotency-Key."""

    def run(self):
        while not self.stop.is_set():
            first = self.done * self.batch
            points = [{"key": "a", "step": first + i, "value": first + i} for i in range(self.batch)]
            if self.send(f"/api/v1/runs/{self.run_id}/metrics", {"points": points}, {"Idempotency-Key": f"b{self.done}"}):
                self.done += 1


class Filler(Keyed):
    """Sends so many points that the log is folded many times."""

    batch = 10000


class Mlflow(Client):
    """Repeats the same batch as MLflow's client does; by MLflow's rules it counts once."""

    def run(self):
        while not self.stop.is_set():
            first = self.done * BATCH
            metrics = [{"key": "a", "step": first + i, "timestamp": 1795000000000 + first + i, "value": 0.5} for i in range(BATCH)]
            body = {"run_id": self.run_id, "metrics": metrics, "params": [], "tags": []}
            if self.send("/api/2.0/mlflow/runs/log-batch", body, {}) is not None:
                self.done += 1


class Journal(Client):
    """Sends the records of a journal written by libdptrack, a few at a time, from the offset that the store returns."""

    def make_run(self):
        folder = os.path.join(self.team[0].artifacts + ".journals", self.name)
        script = "".join(f"burst 1500 a {first}\nflush 5\n" for first in range(0, JOURNAL_POINTS, 1500))
        done = subprocess.run([RECORD, f"runs_dir={folder}", "experiment=team", "run_name=journal", "url="], input=script,
                              capture_output=True, text=True, timeout=60, check=True)
        check("closed 0 0" in done.stdout, f"record: {done.stdout}")
        run, place = done.stdout.split()[1:3]
        name = next(n for n in os.listdir(place) if "tfevents" in n)
        with open(os.path.join(place, name), "rb") as f:
            self.bytes = f.read()
        self.ends = [0]
        while self.ends[-1] < len(self.bytes):
            self.ends.append(self.ends[-1] + 16 + struct.unpack_from("<Q", self.bytes, self.ends[-1])[0])
        self.writer = re.findall(rb"[0-9a-f]{32}", self.bytes[:self.ends[1]])[1].decode()
        return run

    def run(self):
        at = 0  # records
        while not self.stop.is_set() and at + BATCH < len(self.ends):
            begin, end = self.ends[at], self.ends[at + BATCH]
            path = f"/api/v1/runs/{self.run_id}/journal?writer={self.writer}&offset={begin}"
            reply = self.send(path, self.bytes[begin:end], {"Content-Type": "application/octet-stream"}, (200, 409))
            if reply is None:
                return
            check(reply["durable"] >= begin, f"{self.name}: {begin} bytes were acknowledged, {reply['durable']} are stored")
            at = self.ends.index(reply["durable"]) if reply["durable"] in self.ends else at
            check(self.ends[at] == reply["durable"], f"{self.name}: {reply['durable']} is inside a record")
            self.done += 1
        self.acknowledged = self.ends[at]

    def judge(self):
        steps = self.steps()
        check(steps == list(range(len(steps))), f"{self.name}: {len(steps)} points, some twice or missing")
        reply = random.choice(self.team).json("GET", f"/api/v1/runs/{self.run_id}/journal?writer={self.writer}")[1]
        check(reply["durable"] == self.acknowledged, f"{self.name}: {self.acknowledged} bytes were acknowledged, {reply['durable']} are stored")
        records = self.ends.index(self.acknowledged)
        check(records - 10 <= len(steps) <= records, f"{self.name}: {len(steps)} points of {records} records")


class Plain(Client):
    """Batches without a key: one that is unanswered or refused is not repeated; it may be stored or not, but
    completely."""

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
                time.sleep(0.02)
            n += 1

    def judge(self):
        count = collections.Counter(self.steps())
        batches = {s // BATCH for s in count}
        check(set(count.values()) <= {1}, f"{self.name}: {sum(n > 1 for n in count.values())} points are duplicated")
        check(all(BATCH * b + i in count for b in batches for i in range(BATCH)), f"{self.name}: half a batch")
        check(self.known <= batches, f"{self.name}: {len(self.known - batches)} acknowledged batches are lost")
        check(batches <= self.known | self.unknown, f"{self.name}: batches that were not sent")


class Maker(Client):
    """Makes run after run; each acknowledged one is reported to a client that follows the changes."""

    def make_run(self):
        self.made, self.told, self.follower = [], set(), threading.Thread(target=self.follow, daemon=True)
        self.token = self.team[0].json("GET", "/api/v1/changes")[1]["token"]

    def run(self):
        self.follower.start()
        while not self.stop.is_set():
            try:
                status, run = random.choice(self.team).json("POST", "/api/v1/runs", {"experiment": "made", "name": "x"}, timeout=20)
                if status == 201:
                    self.made.append(run["id"])
                    self.done += 1
            except (*AGAIN, ValueError):
                time.sleep(0.02)

    def missing(self):
        return set(self.made) - self.told

    def follow(self):
        """Follows from a token of before the first run; after a reset, lists all runs."""
        end_s = None
        while end_s is None or (time.monotonic() < end_s and self.missing()):
            try:
                status, reply = random.choice(self.team).json("GET", f"/api/v1/changes?since={self.token}", timeout=5)
                if status == 200:
                    self.told.update(self.listed() if reply["reset"] else reply["runs"])
                    self.token = reply["token"]
            except (*AGAIN, ValueError, KeyError):
                pass
            time.sleep(0.002)
            if end_s is None and not self.is_alive():
                end_s = time.monotonic() + 20

    def listed(self):
        ids, page = [], ""
        while page is not None:
            reply = random.choice(self.team).json("GET", f"/api/v1/runs?experiment=made&limit=1000{page}")[1]
            ids += [r["id"] for r in reply["runs"]]
            page = f"&page_token={reply['next_page_token']}" if reply.get("next_page_token") else None
        return ids

    def judge(self):
        until(30, lambda: not self.follower.is_alive())
        check(not self.missing(), f"{self.name}: {len(self.missing())} of {len(self.made)} new runs were not reported")
        gone = [r for r in self.made[-50:] if random.choice(self.team).request("GET", f"/api/v1/runs/{r}")[0] != 200]
        check(not gone, f"{self.name}: {len(gone)} runs are lost")


class Probe(Client):
    """Sends point after point through one process, and records the time of each reply."""

    def __init__(self, team, number, stop):
        super().__init__([team[number]], number, stop)
        self.at_s = []

    def run(self):
        while not self.stop.is_set():
            try:
                point = {"key": "a", "step": self.done, "value": 1.0}
                if self.team[0].request("POST", f"/api/v1/runs/{self.run_id}/metrics", {"points": [point]}, timeout=20)[0] == 200:
                    self.done += 1
                    self.at_s.append(time.monotonic())
            except AGAIN:
                pass
            time.sleep(0.01)

    def stall_s(self, since_s):
        """The longest time between two replies, of those after since_s."""
        at = [t for t in self.at_s if t >= since_s]
        return max((b - a for a, b in zip([since_s] + at, at)), default=float("inf"))

    def judge(self):
        """Unanswered points are repeated, so a point may be stored twice."""
        lost = set(range(self.done)) - set(self.steps())
        check(not lost, f"{self.name}: {len(lost)} of {self.done} acknowledged points are lost")
