# SPDX-License-Identifier: Apache-2.0
"""Helpers of the server's tests: start a server on a fresh folder, send requests, count failures. Only the standard
library."""
import contextlib
import http.client
import json
import os
import re
import select
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from serving import Serving  # noqa: E402

SOURCE = os.environ.get("srcdir") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("builddir") or os.path.join(SOURCE, "build")
PROGRAM = os.path.join(BUILD, "dptrack")
RECORD = os.path.join(BUILD, "tests", "tracker", "record")
# The importers in Python, which `dptrack import` starts.
os.environ.setdefault("DPTRACK_PYTHON", sys.executable)
os.environ["PYTHONPATH"] = os.path.join(os.path.abspath(SOURCE), "tracker", "python")
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
JSON = {"Content-Type": "application/json"}
IN_DATABASE = os.environ.get("DPTRACK_TEST_STORE") == "postgresql"
failures, checked = [], [0]
MLFLOW_PREFIXES = {"MLFLOW": ("/api/2.0/mlflow", "/ajax-api/2.0/mlflow"), "MLFLOW_AJAX": ("/ajax-api/2.0/mlflow",),
                   "MLFLOW_FILES": ("/api/2.0/mlflow-artifacts", "/ajax-api/2.0/mlflow-artifacts"),
                   "MLFLOW_INFO": ("/api/3.0/mlflow", "/ajax-api/3.0/mlflow"), "MLFLOW_SITE": ("",)}


def routes(mlflow=True):
    """Every route of routes.def as (method, path, handler, scope, body limit); MLflow's under each of its prefixes."""
    with open(os.path.join(SOURCE, "schema", "api", "routes.def"), encoding="utf-8") as f:
        text = f.read()
    found = re.findall(r'^(ROUTE|MLFLOW\w*|WANDB)\((?:V1, )?(\w+),\s*"([^"]*)",\s*(\w+),\s*(\w+),\s*(\d+)\)', text, re.M)
    for macro, method, path, handler, scope, limit in found:
        if macro == "ROUTE" or mlflow:
            for prefix in MLFLOW_PREFIXES.get(macro, ("",)):
                yield method, prefix + path, handler, scope, int(limit)


def check(ok, what):
    checked[0] += 1
    if not ok:
        failures.append(what)
        print("FAILED:", what, flush=True)
    return ok


def equal(got, want, what):
    return check(got == want, f"{what}: got {got!r}, want {want!r}")


def finish(name):
    print(f"{name}: {'ok' if not failures else str(len(failures)) + ' failed'}, {checked[0]} checks")
    sys.exit(1 if failures else 0)


def in_database(logdir):
    """DPTRACK_TEST_STORE=postgresql (tests/team/cluster.py): each folder's store is in a database of its own."""
    if not IN_DATABASE:
        return {}
    sys.path.insert(0, os.path.join(SOURCE, "tests", "team"))
    import cluster
    return {"DPTRACK_DB": cluster.of_folder(logdir)}


def heard(ask, want):
    """Returns the result of ask(). Commands change a database directly: polls until its server sees the change."""
    got, end = ask(), time.monotonic() + 60
    while IN_DATABASE and got != want and time.monotonic() < end:
        time.sleep(0.02)
        got = ask()
    return got


def number(logdir, query):
    """Runs a query for one number on a store whose server has stopped."""
    found = text(logdir, query)
    return int(found) if IN_DATABASE else found


def text(logdir, query):
    if IN_DATABASE:
        import cluster
        return cluster.query_of_folder(logdir, query)[0]
    with contextlib.closing(sqlite3.connect(os.path.join(logdir, "dptrack.db"))) as db:
        return db.execute(query).fetchone()[0]


def environment_of(args, alone=False):
    """Variables of a command: --logdir names the store of the folder's test server; alone: the store in the folder
    itself."""
    environment = {k: v for k, v in os.environ.items() if k not in ("DPTRACK_TOKEN", "DPTRACK_URL")}
    if "--logdir" in args and not alone:
        environment.update(in_database(args[args.index("--logdir") + 1]))
    return environment


class Server(Serving):
    """dptrack serve on a free port; stop() checks the exit code. alone: the store is in the folder itself."""

    def __init__(self, logdir, *args, env=None, wait=60, alone=False):
        environment = {k: v for k, v in os.environ.items() if k != "DPTRACK_TOKEN"}
        environment.update(env or {})
        database = {} if alone else in_database(logdir)
        environment.update(database)
        backups = ["--backup-dir", os.path.dirname(os.path.abspath(logdir))] if database else []  # a database has no owner's token
        super().__init__(PROGRAM, "--logdir", logdir, "--port", "0", *backups, *args, env=environment, wait=wait)
        self.tls = None  # an ssl context, for https
        self.logdir, self.token = logdir, None

    def request(self, method, path, body=None, headers=None, connection=None):
        """Returns (status, headers, body bytes); a body that is not bytes is sent as JSON."""
        headers = dict(headers or {})
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        c = connection or self.connection(timeout=60)
        c.request(method, path, body, headers)
        r = c.getresponse()
        data = r.read()
        if connection is None:
            c.close()
        return r.status, r.headers, data

    def owner_token(self):
        """The token in the lock file. A database has none: one is added to it, and the server then requires it."""
        if IN_DATABASE:
            import cluster
            text, end = cluster.owner_token(self.logdir), time.monotonic() + 60
            while not self.knows(text) and time.monotonic() < end:
                time.sleep(0.02)
            return text
        with open(os.path.join(self.logdir, "dptrack.db.lock"), encoding="utf-8") as f:
            return re.search(r"^token (\S+)$", f.read(), re.M)[1]

    def as_owner(self):
        """Headers with the token of the lock file; without one, those of everybody."""
        return {} if IN_DATABASE else {"Authorization": f"Bearer {self.owner_token()}"}

    def knows(self, token):
        """Whether the server requires tokens by now, after one was added to its database."""
        with contextlib.closing(self.connection()) as c:
            c.request("GET", "/api/v1/runs")
            asks = c.getresponse().status == 401
        return asks and self.request("GET", "/api/v1/runs", headers={"Authorization": f"Bearer {token}"})[0] == 200

    def json(self, method, path, body=None, headers=None):
        status, _, data = self.request(method, path, body, headers)
        return status, json.loads(data) if data else None

    def connection(self, timeout=60):
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def socket(self, timeout=30):
        return socket.create_connection((self.host, self.port), timeout=timeout)


@contextlib.contextmanager
def fresh(*args, **kw):
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        server = Server(os.path.join(folder, "runs"), *args, **kw)
        try:
            yield server
        finally:
            if server.process.poll() is None:
                equal(server.stop(), 0, "exit code of the server")
            noise = server.stderr()
            check("Sanitizer" not in noise, "sanitizer report:\n" + noise)


def replies(raw):
    """Splits a byte stream into (status, headers, body); raises if it is not a sequence of complete replies."""
    out = []
    while raw:
        head, sep, rest = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        if not sep or not lines[0].startswith("HTTP/1."):
            raise AssertionError(f"no reply: {raw[:80]!r}")
        status = int(lines[0].split()[1])
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        n = int(headers.get("content-length", "0"))
        out.append((status, headers, rest[:n]))
        raw = rest[n:]
        if status == 100:
            out.pop()
    return out


def read_all(s, quiet=1.0, limit=30.0):
    """Reads until the peer closes (closed True) or, after some bytes, nothing arrives for `quiet` seconds."""
    data, closed, end = b"", False, time.monotonic() + limit
    while time.monotonic() < end:
        s.settimeout(quiet if data else limit)
        try:
            piece = s.recv(65536)
        except socket.timeout:
            break
        except ConnectionResetError:
            closed = True
            break
        if not piece:
            closed = True
            break
        data += piece
    return data, closed


def push(s, piece, most=60 << 20):
    """Sends pieces of a body until the server answers or `most` bytes are sent; returns the bytes sent and the
    reply."""
    sent, got = 0, b""
    while not got and sent < most:
        s.sendall(piece)
        sent += len(piece)
        got = s.recv(65536) if select.select([s], [], [], 0)[0] else b""
    while got and b"}" not in got:
        got += s.recv(65536)
    return sent, got


def sanitized(server):
    with open(f"/proc/{server.process.pid}/maps", encoding="utf-8") as f:
        return "san.so" in f.read()


def make_run(server, experiment="digits", name="base", params=None):
    status, run = server.json("POST", "/api/v1/runs", {"experiment": experiment, "name": name, "params": params or {}})
    equal(status, 201, "POST /runs")
    return run["id"]


class Recorder:
    """A program that records a run through the library, controlled line by line (tests/tracker/record.c)."""

    def __init__(self, runs, **options):
        args = [f"{k}={v}" for k, v in dict(runs_dir=runs, experiment="way", run_name="way", **options).items()]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DPTRACK_")}
        self.process = subprocess.Popen([RECORD, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        line = self.process.stdout.readline()
        match = re.match(r"run ([0-9a-f]{32}) ", line)
        assert match, line
        self.id = match[1]

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def close(self, code=1):
        self.say(f"close {code}")
        self.process.stdin.close()
        out = self.process.stdout.read()
        self.process.wait(60)
        return out
