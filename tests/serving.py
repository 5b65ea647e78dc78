# SPDX-License-Identifier: Apache-2.0
"""Starts `dptrack serve` for the tests and waits until it answers; every test that runs a server uses it."""
import re
import select
import signal
import subprocess
import tempfile


class Serving:
    """The process, its url (scheme, host, port) and what it printed as errors. Raises AssertionError if it does not start."""

    def __init__(self, program, *args, env=None, wait=60):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([program, "serve", *args], env=env, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        ready, _, _ = select.select([self.process.stdout], [], [], wait)
        line = self.process.stdout.readline() if ready else ""
        match = re.fullmatch(r"dptrack: serving ((https?)://(.*):(\d+))\n", line)
        if not match:
            self.process.kill()
            raise AssertionError(f"the server did not start: {line!r} {self.stderr()}")
        self.url, self.scheme, self.host, self.port = match[1], match[2], match[3].strip("[]"), int(match[4])

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read()

    def stop(self, how=signal.SIGTERM, wait=60):
        """Its exit code."""
        self.process.send_signal(how)
        return self.process.wait(wait)
