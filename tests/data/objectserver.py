# SPDX-License-Identifier: Apache-2.0
"""An object server on the loopback for tests: serves files of a folder with ranges, ETags and If-Match, counts its
requests, and fails on demand: `faults` is a list of words, each applied to one request in `every`, in turn:
503 429 500 stall cut wrong ignored html cork reset flip. With `once` each object fails once."""
import hashlib
import http.server
import os
import re
import socket
import threading
import time
import urllib.parse


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder, faults=(), every=20, stall=30.0, latency=0.0, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.folder, self.faults, self.every, self.stall, self.latency = folder, list(faults), every, stall, latency
        self.lock = threading.Lock()
        self.requests = self.failed = self.bytes = self.seen = 0
        self.log = []
        self.spares_probes = self.once = self.stopped = False
        self.struck = set()
        self.held, self.standing = None, threading.Event()
        self.url = "http://127.0.0.1:%d" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    def stand(self, path):
        """Waits while a part of the path is `held`; returns whether the server has stopped."""
        if self.held and self.held in path:
            self.standing.set()
        while self.held and self.held in path and not self.stopped:
            time.sleep(0.02)
        return self.stopped

    def fault(self, path, probe):
        """probe: a request for an object's size or for an index."""
        with self.lock:
            self.requests += 1
            if not self.faults or (probe and self.spares_probes) or self.requests % self.every:
                return None
            if self.once and path in self.struck:
                return None
            self.struck.add(path)
            self.failed += 1
            return self.faults[(self.failed - 1) % len(self.faults)]

    def reset(self):
        with self.lock:
            self.requests = self.failed = self.bytes = 0

    def stop(self):
        self.stopped = True  # also closes open connections
        self.shutdown()
        self.server_close()


class Quiet(http.server.BaseHTTPRequestHandler):
    """Prints nothing and keeps connections open."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


class Handler(Quiet):
    wbufsize = 1 << 20

    def parse_request(self):
        if self.server.stopped:
            self.close_connection = True
            return False
        return super().parse_request()

    def refuse(self, fault):
        """Returns whether the fault replaced the answer."""
        if fault in ("503", "429", "500"):
            self.answer(int(fault), b"busy", Retry_After="0.05")
        elif fault == "stall":
            time.sleep(self.server.stall)
            self.close_connection = True
        elif fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.close_connection = True
        elif fault == "html":
            self.answer(200, b"<html>Sign in</html>", Content_Type="text/html")
        else:
            return False
        return True

    def version_headers(self):
        return {}

    def name(self):
        return urllib.parse.unquote(self.path.split("?")[0].lstrip("/"))

    def do_GET(self):
        fault = self.server.fault(self.path, not self.path.endswith(".tar") or self.headers.get("Range") == "bytes=0-0")
        self.server.log.append((self.path, dict(self.headers)))
        if self.server.latency:
            time.sleep(self.server.latency)
        if self.server.stand(self.path):
            self.close_connection = True
            return
        if self.refuse(fault):
            return
        path = os.path.join(self.server.folder, self.name())
        if self.path.startswith("/moved/"):
            self.answer(302, Location=self.path[len("/moved"):])
            return
        if not os.path.isfile(path):
            self.answer(404, b"no such object")
            return
        with open(path, "rb") as f:
            data = f.read()
        tag = '"%s"' % hashlib.md5(data).hexdigest()
        if self.headers.get("If-Match", tag) != tag:
            self.answer(412)
            return
        want = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        begin, end = (int(want[1]), min(int(want[2]) + 1, len(data))) if want else (0, len(data))
        if want and begin >= len(data):
            self.answer(416)
            return
        self.send(data, begin, end, fault, tag, want is not None)

    def send(self, data, begin, end, fault, tag, ranged):
        if fault == "wrong":
            begin, end = begin // 2, begin // 2 + end - begin
        body = data if fault == "ignored" or not ranged else data[begin:end]
        self.send_response(200 if fault == "ignored" or not ranged else 206)
        self.send_header("ETag", tag)
        for k, v in self.version_headers().items():
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(body)))
        if ranged and fault != "ignored":
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{'*' if fault == 'star' else len(data)}")
        self.end_headers()
        if fault == "cork":
            self.wfile.flush()
            time.sleep(0.04)
        if fault == "cut":
            body = body[:len(body) // 2]
            self.close_connection = True
        if fault == "flip":
            body = body[:len(body) // 2] + bytes([body[len(body) // 2] ^ 4]) + body[len(body) // 2 + 1:]
        self.wfile.write(body)
        with self.server.lock:
            self.server.bytes += len(body)
