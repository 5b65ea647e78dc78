"""Everything at once for a moment: writers of points and runs, readers of every kind, event streams that come and go, tokens
made and revoked, clients that hang up; all counts agree afterwards. Under the thread sanitizer:
    mkdir build-tsan && cd build-tsan && ../configure CFLAGS='-O1 -g' --enable-sanitizers=thread --with-cuda=no --without-ui
    make && srcdir=$PWD/.. builddir=$PWD python3 ../tests/api/load.py 60        # seconds"""
import sys
sys.dont_write_bytecode = True
import random
import threading
import time
import lib


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
        except Exception as e:  # told by the main thread
            self.problem = f"{self.work.__name__}: {e!r}"


class Load:
    def __init__(self, server, seconds):
        self.server, self.end, self.workers, self.lock = server, time.monotonic() + seconds, [], threading.Lock()
        self.runs = [lib.make_run(server, name=f"load{i}") for i in range(4)]
        self.stored = dict.fromkeys(self.runs, 0)

    def expect(self, got, *statuses):
        if got[0] not in statuses:
            raise AssertionError(f"{got[0]}, {got[2][:200]!r}")
        return got[2]

    def points(self, w):
        run, n = w.random.choice(self.runs), w.random.randrange(1, 200)
        points = [{"key": f"k{w.random.randrange(5)}", "step": w.rounds, "value": w.random.random(), "rank": w.random.randrange(-1, 2)} for _ in range(n)]
        self.expect(self.server.request("POST", f"/api/v1/runs/{run}/metrics", {"points": points}), 200)
        with self.lock:
            self.stored[run] += n

    def changes(self, w):
        run = lib.make_run(self.server, name="short")
        self.expect(self.server.request("PUT", f"/api/v1/runs/{run}/tags/t", {"value": str(w.rounds)}), 200)
        self.expect(self.server.request("DELETE", f"/api/v1/runs/{run}"), 200)
        self.expect(self.server.request("POST", f"/api/v1/runs/{run}/restore"), 200)

    def reads(self, w):
        run = w.random.choice(self.runs)
        path = w.random.choice(["/api/v1/runs?order_by=metrics.k1.last DESC".replace(" ", "%20"), f"/api/v1/runs/{run}", f"/api/v1/series?run={run}&buckets=50&key=k1",
                                f"/api/v1/export/series.csv?run={run}", "/api/v1/export/runs.jsonl", "/metrics", f"/api/v1/compare?run={self.runs[0]}&run={run}",
                                "/api/v1/changes", "/api/v1/keys", "/health?verbose=1"])
        self.expect(self.server.request("GET", path, headers={"Accept-Encoding": "gzip"} if w.rounds % 2 else {}), 200, 400)

    def streams(self, w):
        with self.server.socket(timeout=60) as s:
            s.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " + self.server.token.encode() + b"\r\n\r\n")
            if not s.recv(4096).startswith(b"HTTP/1.1 200"):
                raise AssertionError("no event stream")
            if w.rounds % 2 and time.monotonic() < self.end:
                s.settimeout(5)
                try:
                    s.recv(4096)
                except TimeoutError:
                    pass  # nothing changed

    def tokens(self, w):
        name = f"t{w.rounds}"
        self.expect(self.server.request("POST", "/api/v1/tokens", {"name": name, "scope": "read"}), 201)
        self.expect(self.server.request("DELETE", f"/api/v1/tokens/{name}"), 200)
        time.sleep(0.05)

    def hangs_up(self, w):
        run = w.random.choice(self.runs)
        for head in (f"GET /api/v1/export/series.csv?run={run} HTTP/1.1\r\n", "POST /api/v1/experiments HTTP/1.1\r\nContent-Length: 900\r\n",
                     f"PATCH /api/v1/runs/{run} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 13\r\n"):
            with self.server.socket(timeout=60) as s:
                s.sendall((head + f"Host: localhost\r\nAuthorization: Bearer {self.server.token}\r\n\r\n" + '{"notes":"x"}' * (head[:2] == "PA")).encode())
                if w.rounds % 2 and head[:2] != "PO":  # whose body never comes
                    s.recv(100)
        time.sleep(0.01)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2
    lib.bound(int(seconds) * 3 + 300)
    with lib.fresh() as server:
        server.token = server.owner_token()
        load = Load(server, seconds)
        for work in (load.points, load.points, load.changes, load.reads, load.reads, load.streams, load.tokens, load.hangs_up):
            load.workers.append(Worker(load, work))
        for w in load.workers:
            w.join(seconds + 120)
            lib.check(w.problem is None, w.problem)
            lib.check(w.rounds > 0, f"{w.work.__name__} got nowhere")
        for run, n in load.stored.items():
            rows = load.expect(server.request("GET", f"/api/v1/export/series.csv?run={run}"), 200).count(b"\n") - 1
            lib.equal(rows, n, "points of a run")
        print(", ".join(f"{w.work.__name__} {w.rounds}" for w in load.workers), flush=True)
    lib.finish("load")


main()
