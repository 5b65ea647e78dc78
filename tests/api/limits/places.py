# SPDX-License-Identifier: Apache-2.0
"""Who loses the place when connections grow scarce. More slow connections than places, from one address: refused bodies and accepted ones
that drip, and replies that are hardly read, without a token or with one. Another address, and many connections with another token from the
same address, are served at once and stay connected, directly and through the HAProxy of web/deploy. A refused body ends after seconds; few
file descriptors mean fewer places. The shipped numbers (500 places, 520 slow connections, 256 others, 1 s) with DPT_TEST_FULL=1."""
import sys
sys.dont_write_bytecode = True
import os
import resource
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import lib
from ports import free_port  # lib has made it findable

FULL = bool(os.environ.get("DPT_TEST_FULL"))
PLACES, SLOW, OTHERS, WAIT_S = (500, 520, 256, 1) if FULL else (64, 80, 32, 10)
ADMIN = "0123456789abcdef0123456789abcdef"
DRIP_S, DRIP = 0.25, b" " * 300


def head(line, token=None, *fields):
    own = [f"Authorization: Bearer {token}"] if token else []
    return "\r\n".join((line + " HTTP/1.1", "Host: localhost", *own, *fields, "", "")).encode()


def connect(port, source="127.0.0.1", receive=None):
    s = socket.socket()
    if receive:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    s.bind((source, 0))
    s.settimeout(60)
    s.connect(("127.0.0.1", port))
    return s


class Slow:
    """Connections that send `first`, then a little of a body, or read a little, four times a second; one that is closed comes back."""

    def __init__(self, port, first, reads=False):
        self.port, self.first, self.reads, self.dropped, self.stop = port, first, reads, 0, False
        self.socks = []
        for _ in range(SLOW):
            self.socks.append(self.open())
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def open(self):
        s = socket.socket()
        if self.reads:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.bind(("127.0.0.1", 0))
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", self.port))
        return [s, self.first]

    def step(self, slot):
        s, left = slot
        try:
            if left:
                slot[1] = left[s.send(left):]
            elif self.reads:
                if not s.recv(500):
                    raise ConnectionResetError
            else:
                s.send(DRIP)
                if not s.recv(1, socket.MSG_PEEK):
                    raise ConnectionResetError
        except BlockingIOError:
            pass
        except OSError:
            self.dropped += 1
            s.close()
            slot[:] = self.open()

    def run(self):
        while not self.stop:
            begun = time.monotonic()
            for slot in self.socks:
                self.step(slot)
            time.sleep(max(0.05, DRIP_S - (time.monotonic() - begun)))

    def end(self):
        self.stop = True
        self.thread.join(60)
        for s, _ in self.socks:
            s.close()


def ask(s, request):
    """The status of a reply and the seconds until it is there."""
    begun = time.monotonic()
    s.sendall(request)
    data = b""
    while b"\r\n\r\n" not in data:
        piece = s.recv(65536)
        if not piece:
            return 0, time.monotonic() - begun
        data += piece
    return int(data.split()[1]), time.monotonic() - begun


def ask_anew(port, source, request):
    """The status of a reply and the seconds until it is there. "Try again soon" (503) is followed: while the server itself is late, it
    cannot know yet who is slow."""
    begun, status = time.monotonic(), 503
    while status == 503 and time.monotonic() - begun < WAIT_S:
        try:
            with connect(port, source) as s:
                status = ask(s, request)[0]
        except OSError as e:
            status = e
    return status, time.monotonic() - begun


def crowd(port, token):
    """Connections with another token: each is answered, and again a few times while all stay open. Returns the longest wait."""
    request = head("GET /api/v1/version", token)
    socks, worst, lost = [], 0, 0
    for _ in range(OTHERS):
        begun = time.monotonic()
        s = connect(port)
        status, _ = ask(s, request)
        lib.equal(status, 200, "a connection with another token of the same address")
        worst = max(worst, time.monotonic() - begun)
        socks.append(s)
    end = time.monotonic() + (3 if FULL else 1)
    while time.monotonic() < end and not lost:
        for s in socks:
            try:
                status, took = ask(s, request)
            except OSError:
                status, took = 0, 0
            lost += status != 200
            worst = max(worst, took)
        time.sleep(0.1)
    lib.equal(lost, 0, "connections with another token that were closed")
    for s in socks:
        s.close()
    return worst


def scarce(what, port, token, first, reads=False):
    slow = Slow(port, first, reads)
    time.sleep(3 if FULL else 2)  # until all of them are known to be slow
    found = []
    for _ in range(3):
        for source, request in (("127.0.0.2", head("GET /health")), ("127.0.0.2", head("GET /api/v1/version", token))):
            status, took = ask_anew(port, source, request)
            lib.equal(status, 200, f"{what}: another address")
            found.append(took)
        time.sleep(0.3)
    found.append(crowd(port, token))
    slow.end()
    lib.check(max(found) < WAIT_S, f"{what}: another client waited {max(found):.2f} s")
    lib.check(slow.dropped > 0, f"{what}: no slow connection was closed")
    print(f"{what}: others wait {max(found) * 1e3:.0f} ms at most, {slow.dropped} slow connections closed", flush=True)


def add_token(server, name, scope):
    status, answer = server.json("POST", "/api/v1/tokens", {"name": name, "scope": scope})
    lib.equal(status, 201, "POST /tokens")
    return answer["token"]


def long_reply(server):
    """The address of a file of 20 MB."""
    address = f"/api/v1/runs/{lib.make_run(server)}/artifacts/long.bin"
    lib.equal(server.request("PUT", address, bytes(20 << 20))[0], 200, "PUT a file")
    return address


def doors(server, proxied):
    slow, other = add_token(server, f"slow{proxied}", "write"), add_token(server, f"other{proxied}", "write")
    body = ("Content-Type: application/json", "Content-Length: 1000000")
    port = proxied or server.port
    way = "through HAProxy" if proxied else "directly"
    scarce(f"refused bodies {way}", port, other, head("POST /api/v1/experiments", None, *body))
    scarce(f"bodies {way}", port, other, head("POST /api/v1/experiments", slow, *body))
    if not proxied:  # which reads replies ahead
        scarce(f"replies {way}", port, other, head("GET " + long_reply(server), slow), reads=True)


def refused_body_ends(server):
    """A refused body at more than the rate of an accepted one is read for seconds only."""
    with server.socket(timeout=60) as s:
        s.sendall(head("POST /api/v1/experiments", None, "Content-Length: 1000000"))
        begun = time.monotonic()
        try:
            while time.monotonic() < begun + 60 and not select.select([s], [], [], 0.1)[0]:
                s.sendall(b" " * 300)
        except OSError:
            pass
        took = time.monotonic() - begun
    lib.check(2 < took < 30, f"a refused body was read for {took:.1f} s")


def few_files():
    """Idle connections up to the limit of open files leave some for requests, and the log names the limit."""
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        limited, program = os.path.join(folder, "limited"), lib.PROGRAM
        with open(limited, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nulimit -n 64\nexec "{program}" "$@"\n')
        os.chmod(limited, 0o755)
        lib.PROGRAM = limited
        server = lib.Server(os.path.join(folder, "runs"))
        lib.PROGRAM = program
        held = [server.socket() for _ in range(120)]
        for i in range(10):
            lib.equal(server.json("POST", "/api/v1/experiments", {"name": f"e{i}"})[0], 201, "a write beside idle connections")
        lib.equal(server.request("GET", "/health")[0], 200, "health beside idle connections")
        for s in held:
            s.close()
        lib.equal(server.stop(), 0, "exit code with few files")
        lib.check("limit of 64 open files" in server.stderr(), f"the log: {server.stderr()}")


def through_haproxy(server):
    port = free_port()
    place = f"127.0.0.1:{server.port}"
    settings = os.path.join(lib.SOURCE, "web", "deploy", "haproxy.cfg")
    environment = {**os.environ, "DPTRACK_BIND": f"127.0.0.1:{port}", "DPTRACK_A": place, "DPTRACK_B": place}
    with subprocess.Popen(["haproxy", "-db", "-q", "-f", settings], env=environment) as proxy:
        try:
            end, status = time.monotonic() + 60, 0
            while status != 200 and time.monotonic() < end:
                status = ask_anew(port, "127.0.0.1", head("GET /health"))[0]
            lib.equal(status, 200, "HAProxy answers")
            doors(server, port)
        finally:
            proxy.terminate()


def main():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    few_files()
    for proxied in (False, True):
        if proxied and not shutil.which("haproxy"):
            print("haproxy is not installed: not tested through it")
            continue
        options = ("--max-connections", str(PLACES), *(["--behind-proxy"] if proxied else []))
        with lib.fresh(*options, env={"DPTRACK_TOKEN": ADMIN}) as server:
            server.token = ADMIN
            if proxied:
                through_haproxy(server)
            else:
                refused_body_ends(server)
                doors(server, None)
    lib.finish("places")


main()
