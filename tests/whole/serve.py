# SPDX-License-Identifier: Apache-2.0
"""serve.py: starts, kills and queries `dptrack serve` for the tests of the complete path. Loopback only, every wait is
bounded."""
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from serving import Serving  # noqa: E402

SRC = os.path.abspath(os.environ.get("srcdir", "."))
BUILD = os.path.abspath(os.environ.get("builddir", "build"))
DPTRACK = os.path.join(BUILD, "dptrack")
DPTRAIN = os.path.join(BUILD, "dptrain")


class Server:
    """One `dptrack serve`; `with` stops it. A restart after a kill keeps its port."""

    def __init__(self, logdir):
        self.logdir, self.port, self.process = logdir, 0, None
        self.start()

    def start(self):
        serving = Serving(DPTRACK, "--logdir", self.logdir, "--port", str(self.port), wait=30)
        self.process, self.url, self.port = serving.process, serving.url, serving.port

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def text(self, path):
        with urllib.request.urlopen(self.url + "/api/v1" + path, timeout=30) as reply:
            return reply.read().decode()

    def json(self, path):
        return json.loads(self.text(path))


def train(*flags, wait=True, **options):
    """Runs dptrain with flags; with wait, its exit code must be 0."""
    command = [DPTRAIN, *flags]
    if not wait:
        return subprocess.Popen(command, **options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)
    assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def until(condition, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s")
