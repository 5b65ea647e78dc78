# SPDX-License-Identifier: Apache-2.0
"""Waiting times of a new user: until the page answers, until everything is done, and for the page in a second call."""
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

ADDRESS = re.compile(rb"https?://(?:127\.0\.0\.1|localhost|\[::1\]):\d+")
TABLE = re.compile(rb"^id +name .*(?:\n.+)*resnet20-f32", re.MULTILINE)
LIMIT_S = 3600


class Quickstart:
    """./quickstart running in a root, and its output so far."""

    def __init__(self, root, log):
        self.started, self.said = time.monotonic(), b""
        command = root.command(["sh", "-c", "cd dptrack && exec ./quickstart"])
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        self.reader = threading.Thread(target=self.read, args=(log,))
        self.reader.start()

    def read(self, log):
        for block in iter(lambda: os.read(self.process.stdout.fileno(), 65536), b""):
            self.said += block
            log.write(block)
            sys.stdout.buffer.write(block)
            sys.stdout.flush()

    def wait(self, what):
        """Seconds from the start until what() is true; None if the program ended or the limit passed first."""
        while time.monotonic() - self.started < LIMIT_S:
            if what():
                return time.monotonic() - self.started
            if self.process.poll() is not None:
                return None
            time.sleep(0.05)
        return None

    def answers(self):
        address = ADDRESS.search(self.said)
        return address and all(answer(address[0].decode() + path) for path in ("/health", "/"))

    def interrupt(self):
        """ctrl-C: sends SIGINT to each process of the terminal."""
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            print("fresh: ctrl-C did not end ./quickstart within 30 s")
            return False
        finally:
            self.reader.join()
        return True


def answer(address):
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


def measure(root, log):
    """Returns True if one of the times could not be measured."""
    first = Quickstart(root, log)
    page = first.wait(first.answers)
    table = first.wait(lambda: TABLE.search(first.said))
    ended = first.interrupt()
    second = Quickstart(root, log)
    again = second.wait(second.answers)
    ended = second.interrupt() and ended
    for what, seconds in (("page answers", page), ("table printed", table), ("page answers, second call", again)):
        print(f"fresh: {what:28s}" + (f"{seconds:7.1f} s" if seconds else "  never"))
    return not ended or None in (page, table, again)
