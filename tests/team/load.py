# SPDX-License-Identifier: Apache-2.0
"""Clients that write, read and upload through one address until stopped, and a restart that must not affect them."""
import http.client
import json
import signal
import threading
import time

from lib import check, ready, until

BYTES = 100000  # per file


class Client(threading.Thread):
    """Sends requests on a persistent connection. A `patient` client repeats a request after 503, and its points have a
    key, so that a repeat counts once."""

    def __init__(self, port, number, stop, token, pause_s=0):
        super().__init__(daemon=True)
        self.port, self.number, self.stop, self.token, self.pause_s, self.c = port, number, stop, token, pause_s, None
        self.asked, self.refused, self.points, self.files, self.patient = 0, 0, 0, [], False
        self.run_id = self.ask("POST", "/api/v1/runs", {"experiment": "rolling", "name": f"c{number}"}, 201)["id"]

    def once(self, method, path, body, headers):
        self.c = self.c or http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        self.c.request(method, path, json.dumps(body) if isinstance(body, dict) else body,
                       {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **headers})
        r = self.c.getresponse()
        data = r.read()
        self.asked += 1
        if r.will_close:
            self.close()
        return r.status, data

    def ask(self, method, path, body, want, **headers):
        """Returns the reply; None if its status is not the expected one."""
        status, data = self.once(method, path, body, headers)
        end_s = time.monotonic() + 60
        while status == 503 and self.patient and time.monotonic() < end_s:
            self.refused += 1
            time.sleep(0.1)
            status, data = self.once(method, path, body, headers)
        if not check(status == want, f"client {self.number}: {method} {path}: {status} {data[:200]}"):
            return None
        return json.loads(data) if data[:1] in (b"{", b"[") else data

    def close(self):
        if self.c:
            self.c.close()
        self.c = None

    def write(self):
        """Writes the next point; only a patient client sends its key, so that an unintended repeat is detected."""
        point = {"key": "a", "step": self.points, "value": 1.0}
        key = {"Idempotency-Key": f"{self.run_id}-{self.points}"} if self.patient else {}
        if self.ask("POST", f"/api/v1/runs/{self.run_id}/metrics", {"points": [point]}, 200, **key):
            self.points += 1

    def file(self, n):
        return f"/api/v1/runs/{self.run_id}/artifacts/f{n}"

    def content(self, n):
        return f"{self.number} {n} ".encode().ljust(BYTES, b"x")

    def upload(self, n):
        if self.ask("PUT", self.file(n), self.content(n), 200) is not None:
            self.files.append(n)

    def run(self):
        try:
            while not self.stop.is_set():
                self.write()
                self.ask("GET", f"/api/v1/runs/{self.run_id}", None, 200)
                if self.points % 20 == 0:
                    self.upload(self.points)
                time.sleep(self.pause_s)
        except (OSError, http.client.HTTPException) as e:
            check(False, f"client {self.number}, request {self.asked}: {e!r}")
        self.close()

    def judge(self, port=None):
        """Checks that everything acknowledged is stored once; port: the server to ask."""
        self.close()
        self.port = port or self.port
        seen = self.ask("GET", f"/api/v1/runs/{self.run_id}", None, 200)
        count = seen["metrics"].get("a", {}).get("count", 0) if seen else None
        check(count == self.points, f"client {self.number}: {count} points, {self.points} were acknowledged")
        for n in self.files:
            check(self.ask("GET", self.file(n), None, 200) == self.content(n), f"client {self.number}: file f{n}")
        self.close()


class Load:
    """Runs `count` clients during the block, and checks them afterwards."""

    def __init__(self, port, token, pause_s=0, count=4):
        self.stop = threading.Event()
        self.clients = [Client(port, i, self.stop, token, pause_s) for i in range(count)]

    def __enter__(self):
        for c in self.clients:
            c.start()
        return self

    def __exit__(self, kind, *_):
        self.stop.set()
        for c in self.clients:
            c.join(60)
            check(not c.is_alive(), f"client {c.number} still waits for an answer")
        if not kind:
            self.judge()

    def judge(self, port=None):
        for c in self.clients:
            c.judge(port)

    def asked(self):
        return sum(c.asked for c in self.clients)

    def refused(self):
        return sum(c.refused for c in self.clients)

    def go_on(self, seconds):
        """Each client gets answers again within this time."""
        before = [c.points for c in self.clients]
        check(until(seconds, lambda: all(c.points > n for c, n in zip(self.clients, before))), f"no answers for {seconds} s")


def restart(process, between=lambda start: start()):
    """Restarts a process; returns when HAProxy, which checks twice a second, sends it requests again, so that the next
    one can be restarted. between: performs the start, if something must be done around it."""
    process.process.send_signal(signal.SIGTERM)
    check(until(2, lambda: ready(process.port) == 503), "/ready while a process is stopping")
    check(process.process.wait(30) == 0, "exit code")
    between(process.start)
    check(until(5, lambda: ready(process.port) == 200), "/ready of a process that has started")
    time.sleep(1.2)
