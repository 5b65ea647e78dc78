# SPDX-License-Identifier: Apache-2.0
"""More than 300 spellings of a path out of the store, as every name in an address of routes.def and with each of its
methods: no reply contains a byte of a file, nothing appears outside the store, and the server keeps running. A
spelling that once worked stays in the list. MLflow's second prefix too: tests/api/paths.py --full"""
import sys
sys.dont_write_bytecode = True
import itertools
import os
import re
import socket
import tempfile
import lib

CANARY = "the-canary-that-nobody-may-read"
DOTS = ["..", "%2e%2e", "%2E%2e", ".%2e", "%2e.", "%252e%252e", "%25252e%25252e", "%c0%ae%c0%ae", "%e0%80%ae%e0%80%ae", "%f0%80%80%ae", "...", "....",
        "..;", "..%3b", "..%00", "..%20", "%20..", "..%0a", "%u002e%u002e", "%ef%bc%8e%ef%bc%8e", "..%e2%80%8b", "%%32%65%%32%65", "..%ff"]
SLASHES = ["/", "%2f", "%2F", "%252f", "%5c", "%255c", "%c0%af", "%e0%80%af", "%ef%bc%8f", "%e2%88%95", "//", "/./", "%2f%2f", "%u2215"]
GOALS = ["canary.txt", "etc/passwd", "runs/dptrack.db", "runs/dptrack.db.lock"]
FIXED = ["/etc/passwd", "%2fetc%2fpasswd", "//etc/passwd", "file:///etc/passwd", "file:%2f%2f%2fetc%2fpasswd", "file:canary.txt", "C:%5cWindows", "C:/Windows",
         "%5c%5chost%5cshare", "~/canary.txt", "%7eroot", "$HOME", "%24%7bHOME%7d", "canary.txt%00", "canary.txt%00.png", "%00", "%0a", "%0d%0a", "%7f", ".", "..", "",
         "%2e", "%2e%2e", "-rf", "*", "%2a", "%3f", "?../canary.txt", "%23", ";", "a;/../canary.txt", "a%3b/../canary.txt", "a?/../../canary.txt", "%ed%a0%80",
         "%ff%fe", "%c3", "%e2%82", "a" * 256, "a" * 4000, "a/" * 70, "%2e" * 300, "..%2f" * 200, "../" * 60, "dptrack.db", "dptrack.db-wal", "dptrack.db.lock",
         "dptrack.artifacts", "proc/self/environ", "/proc/self/maps", "/dev/stdin", "/proc/self/root/etc/passwd", "%2fproc%2fself%2fcwd%2fcanary.txt",
         "mlflow-artifacts:/0/../../canary.txt", "http://127.0.0.1:1/", "s3://bucket/x", "0/../../canary.txt", "50%.png", "%", "%zz", "%2", "100%25", "%2525"]


def spellings():
    found = list(FIXED)
    for dots, slash, depth in itertools.product(DOTS, SLASHES, (1, 3)):
        found.append((dots + slash) * depth + GOALS[(len(found)) % len(GOALS)])
    for dots, goal in itertools.product(DOTS[:6], GOALS):
        found.append(f"model/{dots}/{dots}/{dots}/{dots}/{dots}/{goal}")
        found.append(f"model%2f{dots}%2f{dots}%2f{dots}%2f{goal}")
    return sorted(set(found))


def targets(run):
    """Returns (method, address with one {} to fill, body) for each name of each address; the other names are valid."""
    for method, pattern, _, _, limit in lib.routes():
        if pattern.startswith("/ajax-api/") and "--full" not in sys.argv:
            continue  # the same handlers as below /api
        names = re.findall(r"\{\w+\}|\*", pattern)
        for i, name in enumerate(names):
            address = pattern
            for k, other in enumerate(names):
                good = run if other == "{run}" else "model" if other == "*" else "name"
                address = address.replace(other, "\0" if k == i else good, 1)
            body = b'{"value":"x"}' if limit else b""
            for verb in (method, "HEAD") if method == "GET" else (method,):
                yield verb, address, body
    for query in ("/api/v1/runs/{run}/journal?writer=\0", "/api/v1/series?run=\0", "/api/v1/export/series.csv?run=\0", "/api/v1/export/runs.csv?experiment=\0",
                  "/api/v1/runs/{run}/artifacts?path=\0", "/api/2.0/mlflow/artifacts/list?run_id={run}&path=\0", "/api/2.0/mlflow-artifacts/artifacts?path=\0",
                  "/get-artifact?run_uuid={run}&path=\0", "/get-artifact?path=ok&run_uuid=\0", "/model-versions/get-artifact?path=\0&name=a&version=1"):
        yield "GET", query.replace("{run}", run), b""


class Raw:
    """One persistent connection; the address is sent unmodified."""

    def __init__(self, server):
        self.server, self.socket = server, None

    def ask(self, verb, address, body):
        request = (f"{verb} {address} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
        for attempt in (1, 2):
            if self.socket is None:
                self.socket = self.server.socket(timeout=60)
                self.data = b""
            try:
                self.socket.sendall(request)
                return self.reply(verb)
            except (ConnectionError, EOFError):
                self.socket = None
        raise AssertionError(f"{verb} {address}: connection closed without a reply")

    def more(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise EOFError
        self.data += piece

    def reply(self, verb):
        while b"\r\n\r\n" not in self.data:
            self.more()
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        lower = head.lower()
        length = re.search(rb"content-length: (\d+)", lower)
        n = 0 if verb == "HEAD" or not length else int(length[1])
        while len(self.data) < n or (b"chunked" in lower and verb != "HEAD" and not self.data.endswith(b"0\r\n\r\n")):
            self.more()
        n = len(self.data) if b"chunked" in lower else n
        body, self.data = self.data[:n], self.data[n:]
        if b"connection: close" in lower:
            self.socket.close()
            self.socket = None
        return int(head.split()[1]), body


def tree(folder, runs):
    """Everything in the folder except the store's own artifacts."""
    own = os.path.join(runs, "dptrack.artifacts")
    return sorted(os.path.join(at, name) for at, folders, files in os.walk(folder) for name in folders + files
                  if not os.path.join(at, name).startswith(own + os.sep))


def traps(runs, run, folder):
    """Creates links out of the artifacts, as a user with access to the disk could."""
    inside = os.path.join(runs, "dptrack.artifacts", "1", run, "artifacts")
    os.makedirs(inside, exist_ok=True)
    for name, goal in (("up", ".."), ("out", folder), ("canary", os.path.join(folder, "canary.txt")), ("etc", "/etc"), ("proc", "/proc/self/root"), ("gone", "/nowhere")):
        os.symlink(goal, os.path.join(inside, name))
    return ["up/artifacts", "out/canary.txt", "canary", "etc/passwd", "proc/etc/passwd", "gone", "up/../../../../canary.txt", "out%2fcanary.txt", "not-there"]


def main():
    corpus = spellings()
    lib.check(len(corpus) >= 300, f"{len(corpus)} spellings")
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        with open(os.path.join(folder, "canary.txt"), "w", encoding="utf-8") as f:
            f.write(CANARY)
        runs = os.path.join(folder, "runs")
        server = lib.Server(runs)
        run = lib.make_run(server)
        secrets = [CANARY.encode(), b"root:x:0:0", b"SQLite format 3\0"] + ([] if lib.IN_DATABASE else [server.owner_token().encode()])
        links = traps(runs, run, folder)
        before, asked, raw = tree(folder, runs), 0, Raw(server)
        corpus += links + [f"1/{run}/artifacts/{link}" for link in links]
        for verb, address, body in targets(run):
            places = {}
            for spelling in corpus:
                target = address.replace("\0", spelling)
                if len(target) > 8000:
                    continue
                status, data = raw.ask(verb, target, body)
                asked += 1
                lib.check(status < 500 or status == 501, f"{verb} {target}: {status}")
                lib.check(not any(s in data for s in secrets), f"{verb} {target}: a file's bytes are in the reply")
                if verb == "GET":
                    places.setdefault(status, target)
            lib.check(not set(places) - {200, 302, 303, 400, 403, 404, 410, 413, 414, 501}, f"{verb} {address}: {places}")
        lib.equal(tree(folder, runs), before, "files outside the artifacts")
        lib.equal(server.request("GET", "/health")[0], 200, "afterwards")
        lib.equal(server.stop(), 0, "exit code")
    print(f"{len(corpus)} spellings, {asked} requests")
    lib.finish("paths")


main()
