# SPDX-License-Identifier: Apache-2.0
"""Everything at once for a moment: writers of points and runs by both APIs, journals uploaded and followed, files
created and deleted, all kinds of readers, event streams, sign-ins, tokens added and revoked, gc, backups and checks,
clients that disconnect or send too much. Afterwards all counts agree. tests/sanitizers.sh runs it under the sanitizers.
    tests/api/load.py [SECONDS [tls]]        (2 seconds of plain HTTP)"""
import sys
sys.dont_write_bytecode = True
import hashlib
import os
import random
import shutil
import ssl
import tempfile
import threading
import time
import urllib.parse
import lib

sys.path.append(os.path.join(lib.SOURCE, "tests"))
import certificate


class Worker(threading.Thread):
    def __init__(self, load, work):
        super().__init__(daemon=True)
        self.load, self.work, self.rounds, self.problem = load, work, 0, None
        self.random = random.Random(work.__name__ + str(len(load.workers)))
        self.start()

    def run(self):
        try:
            while time.monotonic() < self.load.end:
                self.work(self)
                self.rounds += 1
        except Exception as e:  # reported by the main thread
            self.problem = f"{self.work.__name__}: {e!r}"


class Load:
    def __init__(self, server, seconds):
        self.server, self.end, self.workers, self.lock = server, time.monotonic() + seconds, [], threading.Lock()
        self.runs = [lib.make_run(server, name=f"load{i}") for i in range(4)]
        self.folder = os.path.dirname(server.logdir)
        self.stored = dict.fromkeys(self.runs, 0)

    def expect(self, got, *statuses):
        if got[0] not in statuses:
            raise AssertionError(f"{got[0]}, {got[2][:200]!r}")
        return got[2]

    def socket(self):
        s = self.server.socket(timeout=60)
        return self.server.tls.wrap_socket(s, server_hostname="localhost") if self.server.tls else s

    def points(self, w):
        run, n = w.random.choice(self.runs), w.random.randrange(1, 200)
        points = [{"key": f"k{w.random.randrange(5)}", "step": w.rounds, "value": w.random.random(), "rank": w.random.randrange(-1, 2)} for _ in range(n)]
        self.expect(self.server.request("POST", f"/api/v1/runs/{run}/metrics", {"points": points}), 200)
        with self.lock:
            self.stored[run] += n

    def changes(self, w):
        run = lib.make_run(self.server, name="short")
        self.expect(self.server.request("PUT", f"/api/v1/runs/{run}/tags/t", {"value": str(w.rounds)}), 200)
        self.expect(self.server.request("DELETE", f"/api/v1/runs/{run}"), 200, 410)  # gc may run at once
        self.expect(self.server.request("POST", f"/api/v1/runs/{run}/restore"), 200, 410)

    def reads(self, w):
        run = w.random.choice(self.runs)
        path = w.random.choice(["/api/v1/runs?order_by=metrics.k1.last DESC".replace(" ", "%20"), f"/api/v1/runs/{run}", f"/api/v1/series?run={run}&buckets=50&key=k1",
                                f"/api/v1/export/series.csv?run={run}", "/api/v1/export/runs.jsonl", "/metrics", f"/api/v1/compare?run={self.runs[0]}&run={run}",
                                "/api/v1/changes", "/api/v1/keys", "/health?verbose=1"])
        self.expect(self.server.request("GET", path, headers={"Accept-Encoding": "gzip"} if w.rounds % 2 else {}), 200, 400)

    def streams(self, w):
        with self.socket() as s:
            s.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " + self.server.token.encode() + b"\r\n\r\n")
            if not s.recv(4096).startswith(b"HTTP/1.1 200"):
                raise AssertionError("no event stream")
            if w.rounds % 2 and time.monotonic() < self.end:
                s.settimeout(5)
                try:
                    s.recv(4096)
                except TimeoutError:
                    pass  # nothing changed

    def mlflow(self, w):
        run, n = w.random.choice(self.runs), w.random.randrange(1, 100)
        metrics = [{"key": f"m{w.random.randrange(5)}", "value": w.random.random(), "timestamp": 1795000000000 + w.rounds, "step": w.rounds * 100 + i} for i in range(n)]
        self.expect(self.server.request("POST", "/api/2.0/mlflow/runs/log-batch", {"run_id": run, "metrics": metrics, "tags": [{"key": "round", "value": str(w.rounds)}]}), 200)
        self.expect(self.server.request("POST", "/api/2.0/mlflow/runs/search", {"experiment_ids": ["1"], "filter": "metrics.m1 > 0.5", "max_results": 20}), 200)
        with self.lock:
            self.stored[run] += n

    def journals(self, w):
        """A recorded run whose journal reaches the server over HTTP, from the folder, or both ways."""
        runs = os.path.join(self.folder, "elsewhere") if w.rounds % 3 == 1 else self.server.logdir
        url = "" if w.rounds % 3 == 0 or self.server.tls else self.server.url
        if not url:
            runs = self.server.logdir
        r = lib.Recorder(runs, url=url, token=self.server.token, close_wait_s=60)
        r.say("burst 500 loss 0")
        if "closed 0 0" not in r.close():
            raise AssertionError("the library could not close its run")
        with self.lock:
            self.stored[r.id] = 500

    def files(self, w):
        data = w.random.randbytes(w.random.randrange(1, 300000))
        name = f"/api/v1/runs/{self.runs[0]}/artifacts/a/{w.random.randrange(10)}"
        self.expect(self.server.request("PUT", name, data), 200)
        got = self.server.request("GET", name, headers={"Range": "bytes=-10"})
        if self.expect(got, 206) != data[-10:]:  # there is a single writer
            raise AssertionError("other bytes than were sent")
        if hashlib.sha256(self.expect(self.server.request("GET", name), 200)).digest() != hashlib.sha256(data).digest():
            raise AssertionError("other bytes than were sent")
        self.expect(self.server.request("GET", f"/api/v1/runs/{self.runs[0]}/artifacts"), 200)
        if w.rounds % 3 == 0:
            self.expect(self.server.request("DELETE", name), 204)

    def upkeep(self, w):
        path = os.path.join(self.folder, f"backup{w.rounds}")
        self.expect(self.server.request("POST", "/api/v1/backup", {"path": path}), 200)
        self.expect(self.server.request("POST", "/api/v1/gc", {}), 200, 409)
        self.expect(self.server.request("POST", "/api/v1/doctor", {"full": w.rounds % 2 == 0}), 200)
        shutil.rmtree(path, ignore_errors=True)
        time.sleep(0.1)

    def sign_in(self, w):
        form = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        status, headers, _ = self.server.request("POST", "/login", f"token={urllib.parse.quote(self.server.token)}".encode(), form)
        if status != 303:
            raise AssertionError(f"sign in: {status}")
        self.expect(self.server.request("GET", "/api/v1/runs", headers={"Authorization": "Bearer dpt_" + 64 * "0"}), 401)
        connection = self.server.connection()
        connection.request("GET", "/api/v1/runs", headers={"Cookie": headers["Set-Cookie"].split(";")[0]})
        r = connection.getresponse()
        self.expect((r.status, None, r.read()), 200)
        connection.close()
        time.sleep(0.05)

    def tokens(self, w):
        name = f"t{w.rounds}"
        self.expect(self.server.request("POST", "/api/v1/tokens", {"name": name, "scope": "read"}), 201)
        self.expect(self.server.request("DELETE", f"/api/v1/tokens/{name}"), 200)
        time.sleep(0.05)

    def hangs_up(self, w):
        run = w.random.choice(self.runs)
        for head in (f"GET /api/v1/export/series.csv?run={run} HTTP/1.1\r\n", "POST /api/v1/experiments HTTP/1.1\r\nContent-Length: 900\r\n",
                     f"PATCH /api/v1/runs/{run} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 13\r\n"):
            with self.socket() as s:
                s.sendall((head + f"Host: localhost\r\nAuthorization: Bearer {self.server.token}\r\n\r\n" + '{"notes":"x"}' * (head[:2] == "PA")).encode())
                if w.rounds % 2 and head[:2] != "PO":  # the body is never sent
                    s.recv(100)
        time.sleep(0.01)

    def sends_too_much(self, w):
        connection = self.server.connection()
        try:
            connection.request("POST", "/api/v1/experiments", b" " * (w.random.randrange(2, 8) << 20), dict(lib.JSON, Authorization=f"Bearer {self.server.token}"))
            r = connection.getresponse()
            self.expect((r.status, None, r.read()), 413)
        except (ConnectionError, ssl.SSLError):
            pass  # closed while it was still sending
        connection.close()
        time.sleep(0.05)


def encrypted(folder):
    """Returns the options of a server with TLS, and the SSL context of its clients."""
    cert, key = certificate.make(folder, "cert")
    return ["--tls-cert", cert, "--tls-key", key], ssl.create_default_context(cafile=cert)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        options, context = encrypted(folder) if "tls" in sys.argv else ([], None)
        with lib.fresh(*options) as server:
            server.tls = context
            under_load(server, seconds)
    lib.finish("load")


def under_load(server, seconds):
    server.token = server.owner_token()
    lib.equal(server.request("POST", "/api/v1/tokens", {"name": "first", "scope": "read"})[0], 201, "the first token; from now on tokens are required")
    load = Load(server, seconds)
    works = [load.points, load.points, load.mlflow, load.changes, load.reads, load.reads, load.streams, load.files, load.upkeep, load.sign_in, load.tokens,
             load.hangs_up, load.sends_too_much]
    if os.path.exists(lib.RECORD):
        works.append(load.journals)
    for work in works:
        load.workers.append(Worker(load, work))
    for w in load.workers:
        w.join(seconds + 120)
        lib.check(w.problem is None, w.problem)
        lib.check(w.rounds > 0, f"{w.work.__name__} completed no round")
    for run, n in load.stored.items():
        end, rows = time.monotonic() + 60, -1
        while rows != n and time.monotonic() < end:  # the folder is read with a delay
            status, _, data = server.request("GET", f"/api/v1/export/series.csv?run={run}")
            rows = data.count(b"\n") - 1 if status == 200 else -1
        lib.equal(rows, n, "points of a run")
    print(", ".join(f"{w.work.__name__} {w.rounds}" for w in load.workers), flush=True)


main()
