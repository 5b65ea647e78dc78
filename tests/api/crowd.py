# SPDX-License-Identifier: Apache-2.0
"""Many connections. Every count from 120 to 136, 256 and 512 is served without a stall (epoll with exactly 128 ready
events once stalled). Slow clients that send their request byte by byte, and event streams, do not delay new requests;
when connections run out, slow clients are dropped. The full load (1,000 slow clients, 100 streams, 30 s):
tests/api/crowd.py --full"""
import sys
sys.dont_write_bytecode = True
import resource
import socket
import threading
import time
import lib

REQUEST = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
ROUNDS = 4


def read_reply(s):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = s.recv(4096)
        if not piece:
            raise AssertionError("closed")
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += s.recv(4096)
    return int(head.split()[1])


def crowd(server, n):
    socks = [server.socket(timeout=60) for _ in range(n)]
    start = time.monotonic()
    try:
        for _ in range(ROUNDS):
            for s in socks:
                s.sendall(REQUEST)
            for s in socks:
                lib.equal(read_reply(s), 200, f"{n} connections")
    except (socket.timeout, AssertionError) as e:
        lib.check(False, f"{n} connections: {e!r}")
    seconds = time.monotonic() - start
    lib.check(seconds < 30, f"{n} connections: {ROUNDS} rounds took {seconds:.1f} s")
    for s in socks:
        s.close()
    return seconds


class Drippers:
    """Slow clients that send one byte of a header per second and reconnect when they are dropped."""

    def __init__(self, server, n):
        self.server, self.n, self.socks, self.thrown_out, self.stop = server, n, [], 0, False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def connect(self):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex((self.server.host, self.server.port))
        return s

    def run(self):
        text = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 4000
        sent = {}
        while not self.stop:
            begun = time.monotonic()
            while len(self.socks) < self.n:
                self.socks.append(self.connect())
            for i, s in enumerate(self.socks):
                try:
                    sent[i] = sent.get(i, 0) + s.send(text[sent.get(i, 0):][:1])
                    if s.recv(1, socket.MSG_PEEK) == b"":
                        raise ConnectionResetError
                except BlockingIOError:
                    pass
                except OSError:
                    self.thrown_out += 1
                    s.close()
                    self.socks[i], sent[i] = self.connect(), 0
            time.sleep(max(0, 1 - (time.monotonic() - begun)))

    def end(self):
        self.stop = True
        self.thread.join(60)
        for s in self.socks:
            s.close()


def one_request(server):
    start = time.monotonic()
    with server.socket(timeout=60) as s:
        s.sendall(b"GET /api/v1/experiments HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        while s.recv(65536):
            pass
    return time.monotonic() - start


def streams(server, n):
    found = []
    for _ in range(n):
        s = server.socket(timeout=60)
        s.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        lib.check(s.recv(4096).startswith(b"HTTP/1.1 200"), "an event stream next to slow clients")
        found.append(s)
    return found


def time_new_requests(limit, drippers, listeners, seconds):
    """Returns the 99th percentile of new requests' times next to slow clients and event streams."""
    with lib.fresh("--max-connections", str(limit)) as server:
        held = Drippers(server, drippers)
        open_streams = streams(server, listeners)
        took, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            took.append(one_request(server))
            if len(took) % 50 == 0:
                lib.make_run(server, name=f"r{len(took)}")
            time.sleep(0.005)
        thrown_out = held.thrown_out
        held.end()
        for s in open_streams:
            s.close()
        baseline = time.monotonic() + 60
        while b"dptrack_http_connections 1\n" not in server.request("GET", "/metrics")[2] and time.monotonic() < baseline:
            time.sleep(0.2)
        lib.check(time.monotonic() < baseline, "connections return to the baseline")
    took.sort()
    p99 = took[len(took) * 99 // 100]
    print(f"limit {limit}, {drippers} slow clients, {listeners} streams: {len(took)} new requests, p50 {took[len(took) // 2] * 1e3:.1f} ms, "
          f"p99 {p99 * 1e3:.1f} ms; {thrown_out} slow clients dropped", flush=True)
    return p99, thrown_out


def unfinished_headers():
    with lib.fresh("--max-connections", "16") as server:
        held = [server.socket() for _ in range(16)]
        for s in held:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
        start = time.monotonic()
        status, _, _ = server.request("GET", "/health")
        lib.equal(status, 200, "a request next to 16 unfinished headers")
        lib.check(time.monotonic() - start < 30, f"it waited {time.monotonic() - start:.1f} s")
        for s in held:
            s.close()


def main():
    full = "--full" in sys.argv
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    many = 512 if hard == resource.RLIM_INFINITY or hard > 700 else 200
    with lib.fresh("--max-connections", "640") as server:
        slowest = max(crowd(server, n) for n in [*range(120, 137), 256 if many > 256 else many, many])
    print(f"slowest count: {slowest:.2f} s for {ROUNDS} rounds")
    unfinished_headers()
    if full:
        p99, _ = time_new_requests(1500, 1000, 100, 30)
        lib.check(p99 <= 1, f"new requests next to 1,000 slow clients: p99 {p99:.2f} s")
        p99, thrown_out = time_new_requests(500, 1000, 10, 30)
        lib.check(p99 <= 5, f"new requests next to more slow clients than connections: p99 {p99:.2f} s")
        lib.check(thrown_out >= 1000, f"only {thrown_out} slow clients were dropped")
    else:
        p99, _ = time_new_requests(150, 100, 10, 2)
        lib.check(p99 <= 30, f"new requests next to slow clients: p99 {p99:.2f} s")
        p99, thrown_out = time_new_requests(60, 100, 4, 4)
        lib.check(p99 <= 30, f"new requests next to more slow clients than connections: p99 {p99:.2f} s")
        lib.check(thrown_out > 0, "no slow client was dropped")
    lib.finish("crowd")


main()
