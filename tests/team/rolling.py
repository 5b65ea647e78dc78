"""HAProxy with the shipped configuration before two processes: while clients write, read and upload through it, each process is
restarted in turn; no request fails, and everything that was acknowledged is there."""
import http.client
import json
import os
import signal
import sys
import tempfile
import threading
import time

import lib
from lib import check, ready, until

import cluster

TOKEN = "rolling-" + "0123456789" * 3
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}


class Client(threading.Thread):
    """Asks through the proxy on a connection that it keeps for as long as it is given."""

    def __init__(self, port, number, stop):
        super().__init__()
        self.port, self.number, self.stop, self.c, self.asked, self.points = port, number, stop, None, 0, 0
        self.run_id = self.ask("POST", "/api/v1/runs", {"experiment": "rolling", "name": f"c{number}"}, 201)["id"]

    def ask(self, method, path, body, want):
        self.c = self.c or http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        self.c.request(method, path, json.dumps(body) if isinstance(body, dict) else body, HEADERS)
        r = self.c.getresponse()
        data = r.read()
        self.asked += 1
        check(r.status == want, f"client {self.number}: {method} {path}: {r.status} {data[:200]}")
        if r.will_close:
            self.c.close()
            self.c = None
        return json.loads(data) if data[:1] in (b"{", b"[") else data

    def run(self):
        try:
            while not self.stop.is_set():
                point = {"key": "a", "step": self.points, "value": 1.0}
                self.ask("POST", f"/api/v1/runs/{self.run_id}/metrics", {"points": [point]}, 200)
                self.points += 1
                self.ask("GET", f"/api/v1/runs/{self.run_id}", None, 200)
                if self.points % 20 == 0:
                    self.ask("PUT", f"/api/v1/runs/{self.run_id}/artifacts/f{self.points}", b"x" * 100000, 200)
        except (OSError, http.client.HTTPException) as e:
            check(False, f"client {self.number}, request {self.asked}: {e!r}")


def restart(process):
    process.process.send_signal(signal.SIGTERM)
    check(until(2, lambda: ready(process.port) == 503), "/ready while a process is stopping")
    check(process.process.wait(30) == 0, "exit code")
    process.start()
    check(until(5, lambda: ready(process.port) == 200), "/ready of a process that has started")


def main():
    why = lib.proxy_reason()
    if why:
        print(f"rolling: {why}")
        sys.exit(77)
    os.environ["DPTRACK_TOKEN"] = TOKEN
    with cluster.Cluster() as db, tempfile.TemporaryDirectory(prefix="dptrack-team.") as folder:
        team = [lib.Process(db.store("t1") if not i else db.address("t1"), os.path.join(folder, "artifacts"), "--behind-proxy",
                            "--drain", "2", keep=("DPTRACK_TOKEN",)) for i in range(2)]
        proxy = lib.Proxy(team)
        stop = threading.Event()
        clients = [Client(proxy.port, i, stop) for i in range(4)]
        for c in clients:
            c.start()
        for process in team:
            time.sleep(1)
            restart(process)
        time.sleep(1)
        stop.set()
        for c in clients:
            c.join(30)
        for c in clients:
            metrics = c.ask("GET", f"/api/v1/runs/{c.run_id}", None, 200)["metrics"]
            check(metrics["a"]["count"] == c.points, f"client {c.number}: {metrics['a']['count']} points, {c.points} were acknowledged")
        print(f"rolling: {sum(c.asked for c in clients)} requests while both processes were restarted")
        for p in team:
            p.stop()
        proxy.close()
    lib.finish("rolling")


main()
