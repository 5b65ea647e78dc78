# SPDX-License-Identifier: Apache-2.0
"""Event streams, and how a server starts and stops: a change is reported within a second, streams get half of the
connections, a stop ends them and exits with 0, a second server on a folder names the first, a port in use gives one
line."""
import sys
sys.dont_write_bytecode = True
import json
import os
import signal
import subprocess
import tempfile
import time
import lib


class Stream:
    def __init__(self, server, path="/api/v1/events", headers=""):
        self.socket = server.socket(timeout=30)
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
        self.data = b""
        self.head = self.until(b"\r\n\r\n").decode()
        self.status = int(self.head.split()[1])

    def until(self, mark):
        while mark not in self.data:
            piece = self.socket.recv(4096)
            if not piece:
                raise AssertionError(f"the stream ended: {self.data!r}")
            self.data += piece
        out, _, self.data = self.data.partition(mark)
        return out

    def event(self):
        """Returns the data of the next event; chunk sizes are between the lines."""
        while True:
            block = self.until(b"\n\n").decode()
            for line in block.splitlines():
                if line.startswith("data: "):
                    return json.loads(line[6:])


def reports_changes(server):
    s = Stream(server)
    lib.equal(s.status, 200, "GET /events")
    lib.check("text/event-stream" in s.head, "type of /events")
    lib.check("\r\nX-Accel-Buffering: no" in s.head, "nginx passes events on at once (nginx#1505)")
    first = s.event()
    run = lib.make_run(server)
    changed = s.event()
    lib.check(run in changed["runs"], f"{run} is not in {changed}")
    again = Stream(server, headers=f"Last-Event-ID: {first['token']}\r\n")
    lib.check(run in again.event()["runs"], "a stream that resumes where the last one ended")
    status, changes = server.json("GET", f"/api/v1/changes?since={first['token']}")
    lib.equal((status, run in changes["runs"]), (200, True), "GET /changes")
    s.socket.close()
    again.socket.close()


def follows_a_list(server):
    """A list of runs names the token of every change after it: of a run that ends, then of nothing."""
    run = lib.make_run(server)
    listed = lambda: server.json("GET", f"/api/v1/runs?include=keys&run={run}")[1]["changes_token"]
    before = listed()
    status, _ = server.json("PATCH", f"/api/v1/runs/{run}", {"status": "finished"})
    lib.equal(status, 200, "a run ends")
    s = Stream(server, f"/api/v1/events?since={before}")
    lib.equal(s.event()["runs"], [run], "the change after the list")
    s.socket.close()
    lib.equal(server.json("GET", f"/api/v1/changes?since={listed()}")[1]["runs"], [], "changes after the second list")


def limited():
    with lib.fresh("--max-connections", "8") as server:
        streams = [Stream(server) for _ in range(4)]
        lib.equal([s.status for s in streams], [200] * 4, "streams get half of the connections")
        lib.equal(Stream(server).status, 503, "one stream too many")
        streams.pop().socket.close()
        end = time.monotonic() + 30
        while time.monotonic() < end and b"event_streams 3" not in server.request("GET", "/metrics")[2]:
            time.sleep(0.1)
        lib.check(time.monotonic() < end, "a disconnected client is noticed")
        streams.append(Stream(server))
        lib.equal(streams[-1].status, 200, "its connection is free again")
        lib.equal(server.request("GET", "/health")[0], 200, "a request next to streams")
        half = server.socket()
        half.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
        start = time.monotonic()
        lib.equal(server.stop(signal.SIGINT), 0, "exit code with open streams")
        lib.check(time.monotonic() - start < 30, f"stopping took {time.monotonic() - start:.1f} s")


def run_serve(*args, env=None):
    environment = {k: v for k, v in os.environ.items() if k != "DPTRACK_TOKEN"}
    environment.update(env or {})
    return subprocess.run([lib.PROGRAM, "serve", *args], capture_output=True, text=True, timeout=60, env=environment)


def one_line(result, code, words, what):
    lib.equal(result.returncode, code, f"{what}: exit code ({result.stderr!r})")
    lib.equal(result.stdout, "", f"{what}: stdout")
    lib.equal(result.stderr.count("\n"), 1, f"{what}: lines of {result.stderr!r}")
    for word in words:
        lib.check(word in result.stderr, f"{what}: {word!r} is not in {result.stderr!r}")


def refusals():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        runs = os.path.join(folder, "runs")
        server = lib.Server(runs, alone=True)
        one_line(run_serve("--logdir", runs, "--port", "0"), 1, [server.url, runs], "a second server on the folder")
        other = os.path.join(folder, "other")
        one_line(run_serve("--logdir", other, "--port", str(server.port)), 1, [str(server.port), "--port"], "a port in use")
        one_line(run_serve("--logdir", other, "--host", "0.0.0.0", "--port", "0"), 2, ["DPTRACK_TOKEN"], "every address without a token")
        one_line(run_serve("--logdir", other, "--port", "70000"), 2, ["70000"], "an invalid port")
        one_line(run_serve("--logdirr", other), 2, ["--logdirr", "--logdir?"], "an unknown flag")
        server.process.kill()
        server.process.wait()
        server = lib.Server(runs, alone=True)
        lib.equal(server.request("GET", "/health")[0], 200, "a start after SIGKILL")
        lib.equal(server.stop(), 0, "exit code")


def main():
    with lib.fresh() as server:
        reports_changes(server)
        follows_a_list(server)
    limited()
    refusals()
    lib.finish("events")


main()
