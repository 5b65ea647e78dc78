"""Many connections: every count from 120 to 136 is served without a stall (epoll with exactly 128 ready events once
stood still), and clients that never finish their request head lose their places to those who do."""
import sys
sys.dont_write_bytecode = True
import socket
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
    socks = [server.socket() for _ in range(n)]
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


def drip():
    with lib.fresh("--max-connections", "16") as server:
        held = [server.socket() for _ in range(16)]
        for s in held:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
        start = time.monotonic()
        status, _, _ = server.request("GET", "/health")
        lib.equal(status, 200, "a request beside 16 unfinished heads")
        lib.check(time.monotonic() - start < 30, f"it waited {time.monotonic() - start:.1f} s")
        for s in held:
            s.close()


def main():
    lib.bound(300)
    with lib.fresh() as server:
        slowest = max(crowd(server, n) for n in list(range(120, 137)) + [256, 480])
    drip()
    print(f"slowest of the counts: {slowest:.2f} s for {ROUNDS} rounds")
    lib.finish("crowd")


main()
