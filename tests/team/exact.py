# SPDX-License-Identifier: Apache-2.0
"""One run through three processes: journals of 8 ranks and 16 clients of MLflow's API, which create the same keys in
opposite orders, at once: every point is stored once, without deadlocks. Then writes through the processes in turn,
each read through another one by one of the reading routes: no read is stale.

usage: tests/team/exact.py [--seconds 4] [--writes 240] [--mlflow]; the long run: --seconds 60 --writes 10000 --mlflow
--mlflow: also runs the 16 clients on MLflow's own server on the same PostgreSQL, and prints its deadlocks"""
import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import lib
from lib import check

import cluster

for room in ("", "parts"):
    sys.path.append(os.path.join(cluster.SOURCE, "tests", "bench", room))
import mlflow_server  # noqa: E402

RECORD = os.path.join(cluster.BUILD, "tests", "tracker", "record")
PROCESSES, RANKS, CLIENTS, KEYS = 3, 8, 16, 20
PER_RUN = 120  # writes
MLFLOW = "/api/2.0/mlflow"


class Connection:
    """A persistent connection to one process."""

    def __init__(self, process):
        self.c = http.client.HTTPConnection("127.0.0.1", process.port, timeout=60)

    def json(self, method, path, body=None):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        self.c.request(method, path, json.dumps(body).encode() if body is not None else None, headers)
        r = self.c.getresponse()
        data = r.read()
        if r.status >= 300:
            raise AssertionError(f"{method} {path}: {r.status} {data[:200]}")
        return json.loads(data)


# --- one run through all processes ------------------------------------------------------------------------------------

class Rank(threading.Thread):
    """A rank of the run: libdptrack records, and uploads the journal to a process."""

    def __init__(self, folder, run, rank, process, seconds):
        super().__init__()
        self.seconds, self.points = seconds, 0
        env = {**os.environ, "DPTRACK_URL": f"http://127.0.0.1:{process.port}"}
        self.process = subprocess.Popen([RECORD, f"runs_dir={folder}", f"run_id={run}", "experiment=exact", "run_name=one", f"rank={rank}",
                                         f"world_size={RANKS}", "close_wait_s=60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=env)

    def run(self):
        end_s = time.monotonic() + self.seconds
        while time.monotonic() < end_s:
            self.process.stdin.write(f"burst 50 time/step {self.points}\nsleep 0.1\n")
            self.process.stdin.flush()
            self.points += 50
            time.sleep(0.1)
        out, _ = self.process.communicate("close 1\n", timeout=180)
        check("closed 0 0" in out, f"a rank's journal: {out[-300:]}")


class Client(threading.Thread):
    """Sends batches of the same keys, half of the clients in reverse order; steps are unique to the client."""

    def __init__(self, run, number, process, seconds):
        super().__init__()
        self.run_id, self.number, self.connection, self.seconds, self.batches = run, number, Connection(process), seconds, 0

    def run(self):
        keys = [f"k{i:02}" for i in range(KEYS)]
        keys = keys[::-1] if self.number % 2 else keys
        end_s = time.monotonic() + self.seconds
        while time.monotonic() < end_s:
            step = self.batches * CLIENTS + self.number
            metrics = [{"key": k, "step": step, "timestamp": 1795000000000 + step, "value": step / 4} for k in keys]
            self.send({"run_id": self.run_id, "metrics": metrics, "params": [], "tags": []})
            self.batches += 1

    def send(self, batch):
        self.connection.json("POST", f"{MLFLOW}/runs/log-batch", batch)


class Impatient(Client):
    """A client of a server that may refuse."""

    refused = 0

    def send(self, batch):
        try:
            super().send(batch)
        except (AssertionError, OSError, http.client.HTTPException):
            self.refused += 1
            self.connection.c.close()


def points_of(process, run, key, rank=None):
    """Their steps, page by page."""
    rows, page = [], ""
    while page is not None:
        where = f"run={run}&key={key}" + ("" if rank is None else f"&rank={rank}")
        reply = process.json("GET", f"/api/v1/series?{where}&limit=10000{page}")[1]
        rows += [(r["step"], r["value"]) for r in reply["points"]]
        page = f"&page_token={reply['next_page_token']}" if reply.get("next_page_token") else None
    return rows


def deadlocks_of(db, name):
    return int(db.sql("postgres", f"SELECT deadlocks FROM pg_stat_database WHERE datname = '{name}'")[0])


def one_run(team, db, folder, seconds):
    run = "5" * 32
    ranks = [Rank(folder, run, r, team[r % PROCESSES], seconds) for r in range(RANKS)]
    check(lib.until(60, lambda: team[0].request("GET", f"/api/v1/runs/{run}")[0] == 200), "the run is missing")
    clients = [Client(run, n, team[n % PROCESSES], seconds) for n in range(CLIENTS)]
    for t in ranks + clients:
        t.start()
    for t in ranks + clients:
        t.join()
    want = sorted(b * CLIENTS + c.number for c in clients for b in range(c.batches))
    for n in range(KEYS):
        got = points_of(team[n % PROCESSES], run, f"k{n:02}")
        check(sorted(s for s, _ in got) == want, f"k{n:02}: {len(got)} points, {len(want)} were acknowledged")
        check(all(v == s / 4 for s, v in got), f"k{n:02}: values")
    for r, rank in enumerate(ranks):
        got = points_of(team[r % PROCESSES], run, "time/step", rank=r or -1)  # rank 0 records the run's series
        check([s for s, _ in got] == list(range(rank.points)), f"rank {r}: {len(got)} points of {rank.points}")
    for p in team:
        metrics = p.json("GET", f"/api/v1/runs/{run}")[1]["metrics"]
        counts = {metrics[f"k{n:02}"]["count"] for n in range(KEYS)}
        check(counts == {len(want)}, f"summaries: {counts}, {len(want)} points")
    deadlocks = deadlocks_of(db, "t1")
    check(deadlocks == 0, f"deadlocks: {deadlocks}")
    print(f"exact: {len(want) * KEYS + sum(r.points for r in ranks)} points of one run in {seconds:g} s through {PROCESSES} processes, "
          f"deadlocks {deadlocks}", flush=True)


class Theirs:
    """MLflow's server, with two workers."""

    def __init__(self, db, folder):
        self.port, python = lib.free_port(), mlflow_server.python(cluster.BUILD, postgresql=True)
        command, variables = mlflow_server.command(python, self.port, mlflow_server.database(db), folder)
        self.process = subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)
        check(lib.until(120, self.make_run), "MLflow's server did not start")

    def make_run(self):
        """Whether a run can be created: one worker may answer before the other."""
        try:
            made = Connection(self).json("POST", f"{MLFLOW}/runs/create", {"experiment_id": "0", "start_time": 1795000000000})
        except (AssertionError, OSError, http.client.HTTPException):
            return False
        self.run = made["run"]["info"]["run_id"]
        return True

    def stop(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(60)


def of_mlflow(db, folder, seconds):
    """The same clients on MLflow's server: nothing is required of it."""
    theirs = Theirs(db, folder)
    try:
        clients = [Impatient(theirs.run, n, theirs, seconds) for n in range(CLIENTS)]
        for c in clients:
            c.start()
        for c in clients:
            c.join()
    finally:
        theirs.stop()
    refused = sum(c.refused for c in clients)
    print(f"exact: MLflow on the same PostgreSQL: {KEYS * (sum(c.batches for c in clients) - refused)} points by the same {CLIENTS} clients in "
          f"{seconds:g} s, {refused} batches refused, deadlocks {deadlocks_of(db, 'mlflow')}", flush=True)


# --- written through one process, read through another ----------------------------------------------------

def last(points, name="value"):
    return points[-1][name] if points else None


def mlflow_metric(run):
    return {m["key"]: m["value"] for m in run["data"]["metrics"]}.get("v")


ROUTES = {  # the newest value of `v` by each route; w: the write
    "run": lambda c, w: c.json("GET", f"/api/v1/runs/{w.run}")["metrics"]["v"]["last"],
    "runs, filtered": lambda c, w: w.n if [r["id"] for r in c.json("GET", f"/api/v1/runs?filter=metrics.v%20%3D%20{w.n}&limit=5")["runs"]]
    == [w.run] else None,
    "runs, ordered": lambda c, w: w.n if c.json("GET", "/api/v1/runs?order_by=metrics.v%20desc&limit=1")["runs"][0]["id"] == w.run else None,
    "series": lambda c, w: last(c.json("GET", f"/api/v1/series?run={w.run}&key=v&from={w.n}")["points"]),
    "chart": lambda c, w: c.json("GET", f"/api/v1/series?run={w.run}&key=v&buckets=4")["series"][0]["buckets"]["last"][-1],
    "compare": lambda c, w: next(m["last"][0] for m in c.json("GET", f"/api/v1/compare?run={w.run}&run={w.other}")["metrics"]
                                 if m["key"] == "v"),
    "export of runs": lambda c, w: w.n if w.run in {r["run_id"] for r in c.json("GET", f"/api/v1/export/runs.json?filter=metrics.v%20%3D%20{w.n}")}
    else None,
    "export of series": lambda c, w: last(c.json("GET", f"/api/v1/export/series.json?run={w.run}&key=v&from={w.n}")),
    "keys": lambda c, w: w.n if w.key in c.json("GET", "/api/v1/keys?experiment=written")["metrics"] else None,
    "experiments": lambda c, w: w.n if {e["name"]: e["run_count"] for e in c.json("GET", "/api/v1/experiments")["experiments"]}["written"] == w.runs
    else None,
    "changes": lambda c, w: w.n if w.run in c.json("GET", f"/api/v1/changes?since={w.token}")["runs"] else None,
    "mlflow run": lambda c, w: mlflow_metric(c.json("GET", f"/api/2.0/mlflow/runs/get?run_id={w.run}")["run"]),
    "mlflow search": lambda c, w: mlflow_metric(c.json("POST", "/api/2.0/mlflow/runs/search", {
        "experiment_ids": [w.experiment], "filter": f"metrics.v = {w.n}", "max_results": 5})["runs"][0]),
    "mlflow history": lambda c, w: last(c.json("GET", f"/api/2.0/mlflow/metrics/get-history?run_id={w.run}&metric_key=v")["metrics"]),
}


class Write:
    """The newest write: value n of `v` in run `run`, and a value of a new key."""

    def __init__(self):
        self.n, self.runs, self.run, self.other, self.token = 0, 0, None, None, None

    def make(self, c):
        if self.n % PER_RUN == 0:
            self.other = self.run
            made = c.json("POST", "/api/v1/runs", {"experiment": "written", "name": f"r{self.n}"})
            self.run, self.experiment = made["id"], c.json("GET", f"/api/2.0/mlflow/runs/get?run_id={made['id']}")["run"]["info"]["experiment_id"]
            self.other = self.other or c.json("POST", "/api/v1/runs", {"experiment": "other", "name": "other"})["id"]
            self.runs += 1
        self.n += 1
        self.key = f"only{self.n % 500}"
        self.token = c.json("GET", "/api/v1/changes")["token"]
        c.json("POST", f"/api/v1/runs/{self.run}/metrics", {"points": [{"key": k, "step": self.n, "value": float(self.n)} for k in ("v", self.key)]})


def written_and_read(team, writes):
    connections, w = [Connection(p) for p in team], Write()
    names, stale, began_s = list(ROUTES), [], time.monotonic()
    while w.n < writes:
        w.make(connections[w.n % PROCESSES])
        name = names[w.n % len(names)]
        try:
            got = ROUTES[name](connections[(w.n + 1 + w.n // len(names) % (PROCESSES - 1)) % PROCESSES], w)
        except (KeyError, IndexError, TypeError) as missing:
            got = repr(missing)
        if got != w.n:
            stale.append((name, w.n, got))
    check(not stale, f"{len(stale)} reads were stale, such as {stale[:5]}")
    print(f"exact: {writes} writes, each read elsewhere by one of {len(names)} routes in {time.monotonic() - began_s:.0f} s: {len(stale)} stale", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--writes", type=int, default=240)
    parser.add_argument("--mlflow", action="store_true")
    args = parser.parse_args()
    why = cluster.reason() or (None if os.path.exists(RECORD) else f"{RECORD} is not built")
    if why:
        print(f"exact: {why}")
        sys.exit(77)
    with cluster.Cluster() as db, tempfile.TemporaryDirectory(prefix="dptrack-team.") as folder:
        address = db.store("t1")
        team = [lib.Process(address, os.path.join(folder, "artifacts")) for _ in range(PROCESSES)]
        try:
            one_run(team, db, os.path.join(folder, "runs"), args.seconds)
            if args.mlflow:
                of_mlflow(db, os.path.join(folder, "mlflow"), args.seconds)
            written_and_read(team, args.writes)
        finally:
            for p in team:
                p.stop()
    lib.finish("exact")


if __name__ == "__main__":
    main()
