# SPDX-License-Identifier: Apache-2.0
"""Downloads by clients that do not read, and changes of files during a download: memory stays bounded, others are
served, a link that replaces a file is never followed, a deleted file still arrives complete; names in both Unicode
forms and of every length; a folder of many files. With "deadline" (about a minute): a client that reads nothing is
disconnected, a slow one is not."""
import sys
sys.dont_write_bytecode = True
import hashlib
import json
import os
import socket
import threading
import time
import urllib.parse
import lib

MB = 1 << 20
READERS = 12


def resident(server):
    with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as f:
        return int(f.read().split("VmRSS:")[1].split()[0]) >> 10


def ask(server, path):
    """Opens a connection with a small window and requests path."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    s.settimeout(60)
    s.connect((server.host, server.port))
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    return s


def rest(s, have=b""):
    pieces = [have]
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MB)
    while piece := s.recv(MB):
        pieces.append(piece)
    s.close()
    return b"".join(pieces).partition(b"\r\n\r\n")


def idle(server, path, least):
    """Clients that request a large reply and do not read it: memory held for them in the server, latency of others."""
    before, readers = resident(server), [ask(server, path) for _ in range(READERS)]
    for s in readers:
        lib.check(s.recv(12) == b"HTTP/1.1 200", f"{path}: a reply begins")
    worst = 0.0
    for _ in range(40):
        began = time.monotonic()
        lib.equal(server.request("GET", "/api/v1/runs?limit=1")[0], 200, "a request next to them")
        worst = max(worst, time.monotonic() - began)
    grown = resident(server) - before
    lib.check(grown < 4 * READERS or lib.sanitized(server), f"{path}: {grown} MiB for {READERS} clients that do not read")
    lib.check(worst < 5, f"{path}: others wait {worst:.1f} s")
    head, _, body = rest(readers.pop(), b"HTTP/1.1 200")
    lib.check(len(body) >= least, f"{path}: {len(body)} bytes reach a client that reads late")
    for s in readers:
        s.close()
    print(f"{path.rsplit('/', 1)[1][:20]}: {grown} MiB for {READERS} clients, others waited at most {worst * 1000:.0f} ms")


def many_points(server, run):
    for block in range(6):
        points = [{"key": "loss", "step": block * 20000 + i, "wall_time": 1.8e9 + i, "value": i / 7} for i in range(20000)]
        lib.equal(server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": points})[0], 200, "points")


def deleted(server, address, digest):
    s = ask(server, address)
    begun = s.recv(4096)
    lib.equal(server.request("DELETE", address)[0], 204, "DELETE of a file that is being read")
    lib.equal(server.request("GET", address)[0], 404, "GET after DELETE")
    lib.equal(hashlib.sha256(rest(s, begun)[2]).hexdigest(), digest, "a download begun before the deletion is complete")


def swapped(server, run, folder):
    """A file is replaced by a link to a secret, and back, many times while it is read."""
    secret = os.path.join(folder, "secret")
    with open(secret, "w", encoding="utf-8") as f:
        f.write("secret")
    address = f"/api/v1/runs/{run}/artifacts/here/x"
    lib.equal(server.request("PUT", address, b"public")[0], 200, "PUT")
    store = os.path.join(server.logdir, "dptrack.artifacts")
    here = next(d for d, _, files in os.walk(store) if files == ["x"])
    os.mkdir(os.path.join(folder, "outside"))
    os.link(secret, os.path.join(folder, "outside", "x"))
    end = time.monotonic() + 2

    def swap():
        n = 0
        while time.monotonic() < end:
            n += 1
            os.rename(os.path.join(here, "x"), os.path.join(here, "y"))
            os.symlink(secret, os.path.join(here, "x"))
            os.rename(os.path.join(here, "y"), os.path.join(here, "x"))
            os.rename(here, here + ".aside")
            os.symlink(os.path.join(folder, "outside"), here)
            os.unlink(here)
            os.rename(here + ".aside", here)
    swapper = threading.Thread(target=swap)
    swapper.start()
    seen = {}
    while time.monotonic() < end:
        status, _, body = server.request("GET", address)
        seen[status] = seen.get(status, 0) + 1
        lib.check(b"secret" not in body and status in (200, 404), f"a swapped link: {status} {body[:100]!r}")
        lib.check(b"secret" not in server.request("GET", f"/api/v1/runs/{run}/artifacts?path=here")[2], "a swapped folder is listed")
    swapper.join()
    print("replies while a link was swapped in:", seen)


def names(server, run):
    base = f"/api/v1/runs/{run}/artifacts/names/"
    for name, want in (("caf\u00e9", 200), ("cafe\u0301", 200), ("\uac00", 200), ("\u1100\u1161", 200), ("x" * 255, 200), ("x" * 256, 400), ("\u00e9" * 127, 200), ("\u00e9" * 128, 400),
                       ("/".join(["d" * 250] * 30), 400), ("CON", 200), ("a.", 200), (" a", 200), ("a ", 200), ("\u202etxt.exe", 200), ("*", 200), ("-rf", 200), ("~", 200)):
        status = server.request("PUT", base + urllib.parse.quote(name), name.encode())[0]
        lib.equal(status, want, f"PUT {name!r:.60}")
        if want == 200:
            status, headers, body = server.request("GET", base + urllib.parse.quote(name))
            lib.equal((status, body), (200, name.encode()), f"GET {name!r:.60}")
            lib.check(all(ord(ch) < 128 for ch in headers.get("Content-Disposition", "")), f"header of {name!r:.60}")
    listed = [f["path"] for f in server.json("GET", f"/api/v1/runs/{run}/artifacts?path=names")[1]["files"]]
    for name in ("caf\u00e9", "cafe\u0301"):
        lib.check("names/" + name in listed or name in listed, f"{name!r} is listed unchanged: {listed[:3]}")


def crowd(server, run, count):
    address = f"/api/v1/runs/{run}/artifacts/crowd/"
    lib.equal(server.request("PUT", address + "first", b"x")[0], 200, "PUT")
    store = os.path.join(server.logdir, "dptrack.artifacts")
    here = next(d for d, _, files in os.walk(store) if files == ["first"])
    for i in range(count):
        os.close(os.open(os.path.join(here, f"file-{i:06d}"), os.O_CREAT | os.O_WRONLY, 0o600))
    before, began = resident(server), time.monotonic()
    status, _, body = server.request("GET", f"/api/v1/runs/{run}/artifacts?path=crowd")
    took = time.monotonic() - began
    lib.equal((status, len(json.loads(body)["files"])), (200, count + 1), "a folder of many files")
    lib.check(took < 30, f"{count} files are listed in {took:.1f} s")
    print(f"{count} files: {took:.2f} s, {len(body) / MB:.1f} MiB, {resident(server) - before} MiB resident afterwards")


def deadline(server, address, size):
    """A client that reads nothing is disconnected after two checks, 15 s apart; one that reads slowly stays connected."""
    stuck, slow = ask(server, address), ask(server, address)
    end, begun = time.monotonic() + 50, b""
    while time.monotonic() < end:
        begun += slow.recv(16384)
        time.sleep(0.25)
    lib.check(len(rest(stuck)[2]) < size, "a client that takes nothing keeps its connection")
    lib.equal(len(rest(slow, begun)[2]), size, "a client that reads slowly")


def main():
    with lib.fresh() as server:
        run = lib.make_run(server)
        content = os.urandom(MB) * 24
        address = f"/api/v1/runs/{run}/artifacts/big/bytes"
        lib.equal(server.request("PUT", address, content)[0], 200, "PUT")
        if "deadline" in sys.argv[1:]:
            deadline(server, address, len(content))
        idle(server, address, len(content))
        many_points(server, run)
        idle(server, f"/api/v1/export/series.csv?run={run}", 4 * MB)
        deleted(server, address, hashlib.sha256(content).hexdigest())
        names(server, run)
        swapped(server, run, os.path.dirname(server.logdir))
        crowd(server, run, 100000 if "deadline" in sys.argv[1:] else 5000)
    lib.finish("downloads")


main()
