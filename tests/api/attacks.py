# SPDX-License-Identifier: Apache-2.0
"""Attacks that the tables of hostile.py, paths.py and access.py do not contain: decompression bombs, JSON that is
deep, long or badly encoded, hundreds of ranges, malformed chunks, special files in the log folder, names with line
breaks and terminal sequences on stderr and in tables, and file modes towards other users."""
import sys
sys.dont_write_bytecode = True
import gzip
import os
import re
import stat
import subprocess
import tempfile
import time
import lib

RED = "a\nb\x1b[31m\x07\u2028\u202e\u009b"


def post(server, path, body, want, what, **headers):
    began = time.monotonic()
    status, _, reply = server.request("POST", path, body, dict(lib.JSON, **{k.replace("_", "-"): v for k, v in headers.items()}))
    lib.check(status in want, f"{what}: {status} {reply[:200]!r}")
    lib.check(time.monotonic() - began < 20, f"{what}: {time.monotonic() - began:.1f} s")
    return reply


def compressed(server, run):
    path, packed = f"/api/v1/runs/{run}/metrics", {"Content_Encoding": "gzip"}
    body = b'{"points":[]}'
    members = gzip.compress(body[:5]) + gzip.compress(b"") * 1000 + gzip.compress(body[5:])
    post(server, path, members, (200,), "a body of a thousand members", **packed)
    post(server, path, gzip.compress(b"") * 200000, (400,), "a body of empty members", **packed)
    post(server, path, gzip.compress(gzip.compress(b" " * (1 << 20))), (400,), "compressed twice: decompressed once", **packed)
    post(server, path, gzip.compress(body) + b"more", (400,), "bytes after the last member", **packed)
    post(server, path, gzip.compress(b" " * (512 << 20), 1), (413,), "512 MiB in 2", **packed)
    post(server, path, gzip.compress(body)[:-4], (400,), "no checksum", **packed)


def json_bodies(server, run):
    path = f"/api/v1/runs/{run}/metrics"
    for what, body in (("a million levels", b"[" * 1000000), ("a million objects", b'{"a":' * 200000), ("many small values", b'{"points":[' + b"{}," * 2000000 + b"{}]}"),
                       ("a number of a million digits", b'{"points":[{"key":"a","step":1,"value":' + b"1" * 1000000 + b"}]}"),
                       ("2^63", b'{"points":[{"key":"a","step":9223372036854775808,"value":1}]}'), ("1e400", b'{"points":[{"key":"a","step":1,"value":1e400}]}'),
                       ("NUL", b'{"points":[{"key":"a\\u0000b","step":1,"value":1}]}'), ("a raw NUL", b'{"points":[]\0}'),
                       ("overlong", b'{"points":[{"key":"\xc0\xae","step":1,"value":1}]}'), ("a surrogate", b'{"points":[{"key":"\\ud800","step":1,"value":1}]}'),
                       ("a raw surrogate", b'{"points":[{"key":"\xed\xa0\x80","step":1,"value":1}]}'), ("trailing text", b'{"points":[]}{}'), ("UTF-16", '{"points":[]}'.encode("utf-16")),
                       ("a byte order mark within", b'{\xef\xbb\xbf"points":[]}')):
        post(server, path, body, (400, 413), what)


def ranges(server, run):
    target = f"/api/v1/runs/{run}/artifacts/some"
    lib.equal(server.request("PUT", target, b"0123456789" * 1000)[0], 200, "a file")
    for many in (",".join(f"{i}-{i}" for i in range(700)), ",".join(["0-"] * 1000), "0-9,5-14"):
        status, headers, data = server.request("GET", target, headers={"Range": "bytes=" + many})
        lib.check((status, len(data)) in ((200, 10000), (416, len(data))) and "multipart" not in headers["Content-Type"], f"{many[:20]}: {status}, {len(data)} bytes")


def chunks(server):
    """At most one reply, and no second request parsed out of a chunk."""
    begin = b"POST /api/v1/experiments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    second = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for what, body in (("-1", b"-1\r\n{}\r\n0\r\n\r\n"), ("0x2", b"0x2\r\n{}\r\n0\r\n\r\n"), ("2^64 + 2", b"10000000000000002\r\n{}\r\n0\r\n\r\n"), ("empty", b"\r\n{}\r\n0\r\n\r\n"),
                       ("longer than its size", b"2\r\n{}xx\r\n0\r\n\r\n"), ("a blank", b" 2\r\n{}\r\n0\r\n\r\n"), ("a plus", b"+2\r\n{}\r\n0\r\n\r\n")):
        with server.socket() as s:
            s.sendall(begin + body + second)
            data, closed = lib.read_all(s, quiet=0.3)
            lib.check(closed and data.count(b"HTTP/1.1 ") <= 1 and b"HTTP/1.1 2" not in data and b"no such address" not in data, f"chunk size {what}: {data[:100]!r}")
    with server.socket() as s:  # fields after the last chunk are not headers of a request
        s.sendall(begin + b"d\r\n" + b'{"name":"tr"}' + b"\r\n0\r\nContent-Length: 40\r\nHost: evil.example\r\nAuthorization: Bearer x\r\n\r\n"
                  b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        data, closed = lib.read_all(s)
        lib.equal([r[0] for r in lib.replies(data)], [201, 200], "fields after the chunks")


def log_folder(folder):
    """The server follows a folder to which others may write."""
    runs = os.path.join(folder, "odd")
    for name in ("good", RED, "\udcff\udcfe"):
        os.makedirs(os.path.join(runs, "e", name))
    os.mkfifo(os.path.join(runs, "e", "good", "events.out.tfevents.1.pipe"))
    for name, goal in (("zero", "/dev/zero"), ("tty", "/dev/tty"), ("self", "events.out.tfevents.2.self"), ("gone", "/nowhere"), ("memory", "/proc/self/mem")):
        os.symlink(goal, os.path.join(runs, "e", "good", "events.out.tfevents.2." + name))
    os.symlink("..", os.path.join(runs, "e", "good", "loop"))
    for name in ("good", RED):
        with open(os.path.join(runs, "e", name, "events.out.tfevents.3.broken"), "wb") as f:
            f.write(b"no records at all, but long enough for a header " * 10)
    os.umask(0)
    server = lib.Server(runs)
    os.umask(0o022)
    lib.equal(server.json("POST", "/api/v1/runs", {"experiment": RED})[0], 400, "a line break in a name")
    run = lib.make_run(server, experiment=RED.replace("\n", " "), name=RED.replace("\n", " "))
    lib.equal(server.request("PUT", f"/api/v1/runs/{run}/artifacts/a/b", b"x")[0], 200, "a file")
    r = subprocess.run([lib.PROGRAM, "backup", os.path.join(folder, "copy"), "--logdir", runs], capture_output=True, text=True, timeout=60, umask=0)
    lib.equal(r.returncode, 0, f"backup: {r.stderr}")
    time.sleep(1)
    lib.equal(server.request("GET", "/health")[0], 200, "the server with pipes, devices and loops in its folder")
    lib.equal(server.request("GET", "/api/v1/runs")[0], 200, "runs in that folder")
    for top in (os.path.join(folder, "copy"), *(os.path.join(runs, n) for n in os.listdir(runs) if n.startswith("dptrack"))):
        for at in [top] + [os.path.join(d, n) for d, folders, files in os.walk(top) for n in folders + files]:
            mode = stat.S_IMODE(os.lstat(at).st_mode)
            lib.check(not mode & 0o077, f"{at} can be opened by others: {mode:o}")
    for command in (("ls",), ("show", run), ("compare", run, run)):
        r = subprocess.run([lib.PROGRAM, *command, "--logdir", runs], capture_output=True, text=True, timeout=60)
        lib.check("\x1b[31m" not in r.stdout + r.stderr and "\x07" not in r.stdout + r.stderr, f"{command[0]} prints a terminal's sequences: {r.stdout!r}")
        lib.check("b\n" not in r.stdout or command[0] != "ls" or r.stdout.count("\n") <= 4, f"{command[0]}: {r.stdout!r}")
    lib.equal(server.stop(), 0, "exit code")
    noise = server.stderr()
    lib.check(not set(noise) & set("\x1b\x07\x9b\u2028\u202e\u2066"), f"a terminal's sequence on stderr: {noise!r}")
    for line in noise.splitlines():
        lib.check(line.startswith("dptrack: "), f"a line without our prefix: {line!r}")
    print(noise, end="")


def secrets():
    """Timing cannot be tested, but the comparison can be read: it compares hashes, not texts, in constant time."""
    with open(os.path.join(lib.SOURCE, "web", "store", "auth", "token.c"), encoding="utf-8") as f:
        source = f.read()
    body = re.search(r"^static bool is_same_hash\(.*?^}", source, re.M | re.S)[0]
    lib.check("|=" in body and body.count("return") == 1 and "break" not in body, "is_same_hash looks at every byte")
    early = re.findall(r"\b(?:str|mem)n?(?:case)?cmp\([^()\n]*(?:hash|\bid\b|token)[^()\n]*\)", source)
    lib.equal(early, [], "hashes compared by a function that returns early")


def main():
    secrets()
    with lib.fresh() as server:
        run = lib.make_run(server)
        for step in (compressed, json_bodies, ranges):
            step(server, run)
        chunks(server)
        with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as f:
            peak = int(f.read().split("VmHWM:")[1].split()[0]) >> 10
        lib.check(peak < 256 or lib.sanitized(server), f"{peak} MiB resident")
        print(f"peak {peak} MiB")
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        log_folder(folder)
    lib.finish("attacks")


main()
