# SPDX-License-Identifier: Apache-2.0
"""A server that is paused for longer than its deadlines (by SIGSTOP, or because the machine is overloaded): clients
that sent during the pause are served afterwards, a client that reads a long reply gets all of it, and clients that
sent nothing are dropped. A server that is paused again and again for a moment completes the reply that it was
sending."""
import sys
sys.dont_write_bytecode = True
import os
import signal
import socket
import threading
import time
import lib

PAUSE_S = 13  # the deadlines of a header and of a body are 10 s
BODY = b'{"name":"' + b"x" * 300 + b'"}'
PADDED = b" " * 60000 + BODY


def opened(server, *parts):
    s = server.socket(timeout=60)
    for part in parts:
        s.sendall(part)
    return s


def head(method, path, *fields):
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: localhost", *fields, "", "")).encode()


def answered(s, what):
    data, _ = lib.read_all(s, quiet=0.2, limit=60)
    got = [r[0] for r in lib.replies(data)]
    lib.check(got in ([200], [201]), f"{what}: {got}")
    s.close()


def thrown_out(s, what):
    s.settimeout(60)
    try:
        lib.equal(s.recv(1000), b"", what)
    except ConnectionResetError:
        pass
    except socket.timeout:
        lib.check(False, f"{what}: still connected after a minute")
    s.close()


def download(server, path):
    """The reply to a GET whose client has read the beginning; small buffers keep most of it in the server."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    s.settimeout(60)
    s.connect((server.host, server.port))
    s.sendall(head("GET", path))
    return s, s.recv(20000)


def interrupted(server, target, size):
    """Ten downloads are complete although the server is stopped a thousand times a second during their first half."""
    for n in range(10):
        half = threading.Event()

        def interrupt():
            while not half.is_set():
                for what in (signal.SIGSTOP, signal.SIGCONT):
                    server.process.send_signal(what)
                    time.sleep(0.0005)
        thread = threading.Thread(target=interrupt)
        reading, got = download(server, target)
        got = len(got)
        thread.start()
        try:
            while got < size and (piece := reading.recv(1 << 16)):
                got += len(piece)
                if got > size // 2:
                    half.set()
        except socket.timeout:
            pass
        half.set()
        thread.join()
        reading.close()
        lib.check(got >= size, f"download {n} stalls after {got} bytes")


def main():
    with lib.fresh() as server:
        run = lib.make_run(server)
        data = os.urandom(1 << 16) * 256
        target = f"/api/v1/runs/{run}/artifacts/big"
        lib.equal(server.request("PUT", target, data)[0], 200, "a large file")
        post = head("POST", "/api/v1/experiments", "Content-Type: application/json", f"Content-Length: {len(PADDED)}")
        in_head, in_body = [opened(server, post[:40]) for _ in range(8)], [opened(server, post, PADDED[:1000]) for _ in range(8)]
        in_chunks = opened(server, head("PUT", target + "2", "Transfer-Encoding: chunked"), b"400\r\n" + b"y" * 1024 + b"\r\n")
        idle = server.connection()
        lib.equal(server.request("GET", "/health", connection=idle)[0], 200, "the first request of a connection")
        events = opened(server, head("GET", "/api/v1/events"))
        lib.check(events.recv(4096).startswith(b"HTTP/1.1 200"), "an event stream")
        reading, got = download(server, target)
        silent_head, silent_body = opened(server, post[:40]), opened(server, post, PADDED[:1000])
        server.process.send_signal(signal.SIGSTOP)
        for begun, rest in [(s, post[40:] + PADDED) for s in in_head] + [(s, PADDED[1000:]) for s in in_body]:
            begun.sendall(rest)
        in_chunks.sendall(b"a\r\n0123456789\r\n0\r\n\r\n")
        idle.request("GET", "/health")
        time.sleep(PAUSE_S)
        server.process.send_signal(signal.SIGCONT)
        thrown_out(silent_head, "half a header and then nothing")
        thrown_out(silent_body, "half a body and then nothing")
        for s in in_body:
            answered(s, "a body that arrived during the pause")
        for s in in_head:
            answered(s, "a header and a body that arrived during the pause")
        answered(in_chunks, "chunks that arrived during the pause")
        lib.equal(idle.getresponse().read(), b"OK\n", "a request on an idle connection")
        other = lib.make_run(server, name="after")
        seen, end = b"", time.monotonic() + 60
        while other.encode() not in seen and time.monotonic() < end:
            seen += events.recv(4096)
        lib.check(other.encode() in seen, "the event stream continues")
        while len(got) < len(data):
            piece = reading.recv(1 << 20)
            if not piece:
                break
            got += piece
        lib.check(got.endswith(data[-100:]) and len(got) > len(data), f"the download: {len(got)} bytes")
        interrupted(server, target, len(data))
    lib.finish("paused")


main()
