# SPDX-License-Identifier: Apache-2.0
"""Artifacts in an object store (tests/data/s3server.py): files of any size up and down, ranges, folders, name
conflicts; the object store is down while points continue; servers killed during uploads leave no partial file, and gc
deletes all unreferenced objects."""
import hashlib
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))
import lib
from lib import check, equal
import s3server

ADDRESS = "s3://shop/team"
MIB = 1 << 20


def serve(folder, s3, *args, **env):
    return lib.Server(folder, *args, env=s3.environment(**env))


def put(server, run, path, data):
    return server.request("PUT", f"/api/v1/runs/{run}/artifacts/{path}", data)[0]


def get(server, run, path, **headers):
    return server.request("GET", f"/api/v1/runs/{run}/artifacts/{path}", headers={k.replace("_", "-"): v for k, v in headers.items()})


def listed(server, run, path=""):
    reply = server.json("GET", f"/api/v1/runs/{run}/artifacts?path={path}")[1]
    return [(f["path"], f.get("bytes")) for f in reply["files"]]


def objects(s3):
    folder = os.path.join(s3.folder, "shop", "team")
    return set(os.listdir(folder)) if os.path.isdir(folder) else set()


def gc(server, **opts):
    status, reply = server.json("POST", "/api/v1/gc", {"keep_objects_days": 0, **opts})
    equal(status, 200, f"gc: {reply}")
    return reply


def files(server, run, s3):
    small, big = b"hello", random.randbytes(34 * MIB + 12345)  # three parts
    s3.parts_meet_s = 10
    for path, data in (("a.txt", small), ("empty", b""), ("deep/er/big.bin", big[:30 * MIB]),  # two whole parts
                       ("deep/er/big.bin", big), ("deep-er", b"1"), ("deep/z", b"22")):
        equal(put(server, run, path, data), 200, f"PUT {path}")
        status, headers, body = get(server, run, path)
        check(status == 200 and body == data, f"GET {path}: {status}, {len(body)} bytes")
        equal(headers["ETag"], f'"{hashlib.sha256(data).hexdigest()}"', path)
        equal(int(headers["Content-Length"]), len(data), path)
    equal(s3.parts_most, 2, "concurrent parts")
    equal(listed(server, run), [("a.txt", 5), ("deep", None), ("deep-er", 1), ("empty", 0)], "the top")
    equal(listed(server, run, "deep"), [("deep/er", None), ("deep/z", 2)], "a folder")
    equal(listed(server, run, "none"), [], "no folder")
    for first, last in ((0, 0), (5 * MIB - 1, 9 * MIB), (len(big) - 7, len(big) - 1), (100, len(big) - 1)):
        status, headers, body = get(server, run, "deep/er/big.bin", Range=f"bytes={first}-{last}")
        check(status == 206 and body == big[first:last + 1], f"range {first}-{last}: {status}, {len(body)} bytes")
        equal(headers["Content-Range"], f"bytes {first}-{last}/{len(big)}", "Content-Range")
    equal(get(server, run, "deep/er/big.bin", Range=f"bytes={len(big)}-")[0], 416, "a range outside")
    equal(get(server, run, "a.txt", If_None_Match=f'"{hashlib.sha256(small).hexdigest()}"')[0], 304, "the same tag")
    status, headers, body = server.request("HEAD", f"/api/v1/runs/{run}/artifacts/deep/er/big.bin")
    check(status == 200 and not body and int(headers["Content-Length"]) == len(big), f"HEAD: {status} {headers['Content-Length']}")
    equal((get(server, run, "deep")[0], get(server, run, "none")[0]), (400, 404), "a folder, a missing file")
    equal((put(server, run, "deep", b"x"), put(server, run, "a.txt/x", b"x")), (409, 409), "name conflicts")
    proxy = f"/api/2.0/mlflow-artifacts/artifacts/0/{run}/artifacts/by/mlflow"
    equal(server.request("PUT", proxy, big)[0], 200, "MLflow's PUT")
    check(server.request("GET", proxy)[2] == big, "MLflow's GET")
    equal(put(server, run, "a.txt", b"other"), 200, "replacing")
    equal(get(server, run, "a.txt")[2], b"other", "the replacement")
    check(len(s3.uploads) == 0, f"{len(s3.uploads)} uploads are open")
    before = objects(s3)
    equal(server.json("POST", "/api/v1/gc", {})[1]["objects"], 0, "gc keeps objects for a week")
    equal(gc(server, dry_run=True)["objects"], len(before) - 6, "objects of refused and replaced files")
    gc(server)
    equal(len(objects(s3)), 6, "objects of six files")


def many(server, run):
    """The names in a folder are found without listing everything below it."""
    for i in range(80):
        equal(put(server, run, f"many/{'abc'[i // 30]}/{i}", b"x"), 200, "PUT")
    equal(listed(server, run, "many"), [("many/a", None), ("many/b", None), ("many/c", None)], "subfolders")
    equal(len(listed(server, run, "many/a")), 30, "files of a subfolder")
    equal(server.request("DELETE", f"/api/v1/runs/{run}/artifacts/many")[0], 204, "DELETE")
    equal(listed(server, run, "many"), [], "after it")


def away(server, run, s3):
    """While the object store is down, files are refused and points are stored; then it is back."""
    s3.stop()
    found = {}
    asked = [threading.Thread(target=lambda: found.update(put=put(server, run, "b", b"x" * 100))),
             threading.Thread(target=lambda: found.update(get=get(server, run, "a.txt")[0]))]
    for t in asked:
        t.start()
    while any(t.is_alive() for t in asked):
        began = time.monotonic()
        equal(server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": [{"key": "k", "step": 1, "value": 1}]})[0], 200, "points")
        check(time.monotonic() - began < 4, "points waited for the object store")
        time.sleep(0.2)
    equal(found, {"put": 503, "get": 503}, "files while the object store is down")
    again = s3server.S3(s3.folder, port=s3.server_address[1])
    equal(put(server, run, "b", b"y"), 200, "PUT after the object store is back")
    equal(get(server, run, "b")[2], b"y", "GET after the object store is back")
    return again


def killed(folder, s3, run, rounds):
    """SIGKILL during uploads: each file is complete or absent, and gc deletes the rest."""
    data = random.randbytes(20 * MIB)
    for i in range(rounds):
        server = serve(folder, s3)
        path = f"/api/v1/runs/{run}/artifacts/killed{i}"

        def send():
            try:
                server.request("PUT", path, data)
            except (OSError, http.client.HTTPException):
                pass

        sender = threading.Thread(target=send)
        sender.start()
        time.sleep(random.uniform(0, 0.25))
        server.process.kill()
        server.process.wait()
        sender.join()
    server = serve(folder, s3)
    for i in range(rounds):
        status, _, body = get(server, run, f"killed{i}")
        check(status == 404 or body == data, f"half a file: {status}, {len(body)} bytes")
    gc(server)
    named = sum(1 for _ in every_file(server, run, ""))
    equal((len(objects(s3)), len(s3.uploads)), (named, 0), "objects, and unfinished uploads, after gc")
    return server


def every_file(server, run, path):
    for name, size in listed(server, run, path):
        if size is None:
            yield from every_file(server, run, name)
        else:
            yield name


def refused(folder, s3):
    def fails(words, *args, runs=folder, **env):
        done = subprocess.run([lib.PROGRAM, "serve", "--port", "0", "--logdir", runs, *args], text=True, capture_output=True,
                              env={**s3.environment(**env), **lib.in_database(runs)}, timeout=60)
        check(done.returncode != 0 and words in done.stderr and done.stderr.count("\n") == 1 and "planted" not in done.stderr,
              f"{words}: {done.returncode} {done.stderr}")

    fails("SignatureDoesNotMatch", "--artifacts", ADDRESS, AWS_SECRET_ACCESS_KEY="planted")
    fails("the files of this store are in s3://shop/team", "--artifacts", "s3://shop/other")
    fails("the files of this store are in s3://shop/team", "--artifacts", os.path.join(folder, "files"))
    fails("not found", "--artifacts", "s3://nobody", runs=folder + "2")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        bucket, runs = os.path.join(folder, "bucket"), os.path.join(folder, "runs")
        os.makedirs(os.path.join(bucket, "shop"))
        s3 = s3server.S3(bucket)
        server = serve(runs, s3, "--artifacts", ADDRESS + "/")
        run = lib.make_run(server, "Default", "r", {})
        files(server, run, s3)
        many(server, run)
        s3 = away(server, run, s3)
        equal(server.stop(), 0, "exit code")
        server = killed(runs, s3, run, rounds)
        equal(server.request("DELETE", f"/api/v1/runs/{run}")[0], 200, "DELETE the run")
        equal(gc(server)["runs"], 1, "gc of the run")
        equal(objects(s3), set(), "objects of a deleted run")
        last = lib.make_run(server, "Default", "r2", {})
        equal(put(server, last, "one", b"1"), 200, "PUT")
        equal(server.stop(), 0, "exit code")
        check("Sanitizer" not in server.stderr(), server.stderr())
        refused(runs, s3)
        s3.stop()
    lib.finish("objects")


main()
