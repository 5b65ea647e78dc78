# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of several processes on one database: a process of `dptrack serve`, requests to it."""
import http.client
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster
from ports import free_port
from serving import Serving

failures = []


def check(ok, what):
    if not ok:
        failures.append(what)
        print("FAILED:", what, flush=True)
    return ok


def finish(name):
    print(f"{name}: {'ok' if not failures else str(len(failures)) + ' failed'}")
    sys.exit(1 if failures else 0)


class Process:
    """dptrack serve on a database, on a port of its own."""

    def __init__(self, address, artifacts, *args, keep=()):
        self.address, self.artifacts, self.args, self.port = address, artifacts, args, free_port()
        self.dropped = {"DPTRACK_TOKEN", "DPTRACK_DB"} - set(keep)  # variables
        self.start()

    def start(self, wait=30):
        environment = {k: v for k, v in os.environ.items() if k not in self.dropped}
        self.serving = Serving(cluster.PROGRAM, "--port", str(self.port), "--db", self.address, "--artifacts", self.artifacts,
                               *self.args, env=environment, wait=wait)
        self.process = self.serving.process

    def connection(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=60):
        c = self.connection(timeout)
        if body is not None and not isinstance(body, bytes):
            body, headers = json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})}
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return r.status, r.read()
        finally:
            c.close()

    def json(self, *args, **kw):
        status, data = self.request(*args, **kw)
        return status, json.loads(data) if data else None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        code, noise = self.serving.stop(), self.serving.stderr()
        check(code == 0 and "Sanitizer" not in noise, f"exit code {code}: {noise}")


class Proxy:
    """HAProxy with the shipped configuration in front of two processes, on a port of its own."""

    def __init__(self, team):
        self.port = free_port()
        places = {"DPTRACK_BIND": f"127.0.0.1:{self.port}", "DPTRACK_A": f"127.0.0.1:{team[0].port}", "DPTRACK_B": f"127.0.0.1:{team[1].port}"}
        self.process = subprocess.Popen(["haproxy", "-db", "-q", "-f", os.path.join(cluster.SOURCE, "web", "deploy", "haproxy.cfg")],
                                        env={**os.environ, **places})
        if not until(60, lambda: ready(self.port) == 200):
            self.close()
            raise AssertionError("HAProxy does not answer")

    def close(self):
        self.process.terminate()
        self.process.wait(60)


def proxy_reason():
    return cluster.reason() or (None if shutil.which("haproxy") else "haproxy is not installed (Debian: haproxy)")


def status(port, path):
    """The status of a GET; 0 if there is no answer."""
    try:
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        c.request("GET", path)
        return c.getresponse().status
    except OSError:
        return 0


def ready(port):
    return status(port, "/ready")


def until(seconds, what):
    """Calls `what` until it returns a true value; returns its last value."""
    end = time.monotonic() + seconds
    value = what()
    while not value and time.monotonic() < end:
        time.sleep(0.02)
        value = what()
    return value
