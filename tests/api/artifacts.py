# SPDX-License-Identifier: Apache-2.0
"""Files of runs over REST v1 and MLflow's proxy: bytes and digests, ranges, conditions, chunked and gzip bodies,
names, links and mounts below the root, limits, a client that disconnects during an upload, a restart."""
import sys
sys.dont_write_bytecode = True
import base64
import gzip
import hashlib
import http.client
import json
import os
import random
import subprocess
import tempfile
import time
import urllib.parse
import lib

PROXY = "/api/2.0/mlflow-artifacts/artifacts"
DATA = random.Random(5).randbytes(700001)
SHA = hashlib.sha256(DATA).hexdigest()


def address(run, path):
    return f"/api/v1/runs/{run}/artifacts/" + urllib.parse.quote(path)


def put(server, target, data, **headers):
    return server.request("PUT", target, data, headers)


def round_trip(server, run):
    status, _, body = put(server, address(run, "a/data.bin"), DATA)
    lib.equal((status, json.loads(body)), (200, {"path": "a/data.bin", "bytes": len(DATA), "sha256": SHA}), "PUT")
    status, headers, body = server.request("GET", address(run, "a/data.bin"))
    lib.equal((status, body == DATA, headers["ETag"], headers["Accept-Ranges"]), (200, True, f'"{SHA}"', "bytes"), "GET")
    lib.equal(headers["Repr-Digest"], "sha-256=:" + base64.b64encode(bytes.fromhex(SHA)).decode() + ":", "the digest")
    lib.equal(headers["Content-Type"], "application/octet-stream", "type")
    lib.equal(headers["Content-Disposition"], "attachment; filename=data.bin", "disposition")
    lib.check("sandbox" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff", "no script runs")
    status, headers, body = server.request("HEAD", address(run, "a/data.bin"))
    lib.equal((status, headers["Content-Length"], body), (200, str(len(DATA)), b""), "HEAD")
    status, headers, body = server.request("GET", address(run, "a/data.bin"), headers={"If-None-Match": f'"{SHA}"', "Range": "bytes=0-1"})
    lib.equal((status, body, headers["ETag"]), (304, b"", f'"{SHA}"'), "If-None-Match")
    put(server, address(run, "a/data.bin"), b"new")
    status, headers, body = server.request("GET", address(run, "a/data.bin"), headers={"If-None-Match": f'"{SHA}"'})
    lib.equal((status, body), (200, b"new"), "replaced")
    put(server, address(run, "a/data.bin"), DATA)


def ranges(server, run):
    n = len(DATA)
    for text, want in (("bytes=0-9", (0, 10)), ("bytes=100-", (100, n)), ("bytes=-5", (n - 5, n)), (f"bytes=0-{n + 50}", (0, n)),
                       (f"bytes=-{n + 9}", (0, n)), (f"bytes={n - 1}-", (n - 1, n)), ("bytes=65535-65536", (65535, 65537))):
        status, headers, body = server.request("GET", address(run, "a/data.bin"), headers={"Range": text})
        lib.equal((status, headers["Content-Range"], body == DATA[want[0]:want[1]]),
                  (206, f"bytes {want[0]}-{want[1] - 1}/{n}", True), text)
    for text in ("bytes=5-4", "bytes=a-b", "bytes=0-1,5-6", "lines=0-1", "bytes=", "bytes=-", "bytes=99999999999999999999-"):
        status, headers, body = server.request("GET", address(run, "a/data.bin"), headers={"Range": text})
        lib.equal((status, body == DATA), (200, True), f"{text!r} is ignored")
    for text in (f"bytes={n}-", "bytes=-0"):
        status, headers, _ = server.request("GET", address(run, "a/data.bin"), headers={"Range": text})
        lib.equal((status, headers["Content-Range"]), (416, f"bytes */{n}"), text)
    for etag, want in ((f'"{SHA}"', 206), ('"other"', 200)):
        status = server.request("GET", address(run, "a/data.bin"), headers={"Range": "bytes=0-1", "If-Range": etag})[0]
        lib.equal(status, want, f"If-Range {etag}")


def bodies(server, run):
    def pieces():
        for i in range(0, len(DATA), 50000):
            yield DATA[i:i + 50000]
    c = http.client.HTTPConnection(server.host, server.port, timeout=60)
    c.request("PUT", address(run, "chunked"), pieces(), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    r = c.getresponse()
    lib.equal((r.status, json.loads(r.read())["sha256"]), (200, SHA), "a chunked body")
    c.request("PUT", address(run, "nothing"), iter([]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    r = c.getresponse()
    lib.equal((r.status, json.loads(r.read())["bytes"]), (200, 0), "an empty chunked body")
    c.close()
    status, _, body = put(server, address(run, "zipped"), gzip.compress(DATA), **{"Content-Encoding": "gzip"})
    lib.equal((status, json.loads(body)["sha256"]), (200, SHA), "a gzip body")
    lib.equal(put(server, address(run, "torn"), gzip.compress(DATA)[:-9], **{"Content-Encoding": "gzip"})[0], 400, "a torn gzip body")
    lib.equal(server.request("GET", address(run, "torn"))[0], 404, "nothing of it is stored")
    lib.equal(server.request("GET", address(run, "nothing"))[2], b"", "an empty file")
    with server.socket() as s:
        s.sendall(f"PUT {address(run, 'left')} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n".encode() + DATA[:200000])
    lib.equal(server.request("GET", address(run, "left"))[0], 404, "an interrupted upload leaves no file")


NAMES = ["plain.txt", "50%.png", "a b.txt", "a+b", "grüße.txt", "日本.json", "semi;colon", "quo\"te", "q?x=1", "hash#1", "%zz", "x%2", "..a",
         "a..", "...", "-", "~", "a'b", "a,b", "deep/er/still/deeper/x", ".hidden", "con", "nul.txt", "name.HTML", "s.svg", "x" * 255]
BAD = ["..", "../x", "a/../b", "a/..", "./a", "a/./b", "a//b", "/a", "a/", "a\\b", "..\\x", "a\nb", "a\x7fb", "%2e%2e/x", "a/%2e%2e",
       "%252e%252e/x", "x%2f..%2fy", "%5c", "%00", "a%00b", ".uploads/x", "x" * 256, "/".join("d" * 70)]


def digests(server, run):
    """Two files of one name and size are distinguished; a file changed on disk, without the server, has no digest."""
    for data in (b"one", b"two"):
        lib.equal(put(server, address(run, "d/f.txt"), data)[0], 200, "PUT")
        files = server.json("GET", f"/api/v1/runs/{run}/artifacts?path=d&include=digests")[1]["files"]
        lib.equal(files, [{"path": "d/f.txt", "folder": False, "bytes": 3, "sha256": hashlib.sha256(data).hexdigest()}], "digests")
    lib.check("sha256" not in server.json("GET", f"/api/v1/runs/{run}/artifacts?path=d")[1]["files"][0], "digests only on request")
    lib.equal(server.json("GET", f"/api/v1/runs/{run}/artifacts?include=all")[0], 400, "an unknown word")


def frames(server, run):
    """HTML in a frame has no origin and cannot reach the server; other files are served as before."""
    for name in ("f/page.html", "f/page.svg", "f/page.txt"):
        put(server, address(run, name), b"<script>1</script>")
        headers = server.request("GET", address(run, name) + "?view=frame")[1]
        policy = headers["Content-Security-Policy"]
        framed = name.endswith("html")
        lib.equal((headers["X-Frame-Options"], "'self'" in policy.split("frame-ancestors")[1], "allow-scripts" in policy),
                  ("SAMEORIGIN", True, True) if framed else ("DENY", False, False), f"{name} in a frame")
        lib.check("sandbox" in policy and "allow-same-origin" not in policy and "default-src 'none'" in policy and
                  "connect-src" not in policy and "http" not in policy, f"{name}: {policy}")
    headers = server.request("GET", address(run, "f/page.html"))[1]
    lib.equal((headers["X-Frame-Options"], headers["Content-Disposition"].split(";")[0]), ("DENY", "attachment"), "unframed")


def names(server, run):
    for name in NAMES:
        lib.equal(put(server, address(run, name), name.encode())[0], 200, f"PUT {name!r}")
        status, headers, body = server.request("GET", address(run, name))
        lib.equal((status, body), (200, name.encode()), f"GET {name!r}")
        lib.check("attachment" in headers["Content-Disposition"] or headers["Content-Type"] in ("text/plain", "image/png"), f"{name!r} is shown inline")
    status, listing = server.json("GET", f"/api/v1/runs/{run}/artifacts")
    listed = {f["path"]: (f["folder"], f["bytes"]) for f in listing["files"]}
    lib.equal(status, 200, "list")
    for name in NAMES:
        if "/" not in name:
            lib.equal(listed.get(name), (False, len(name.encode())), f"{name!r} is listed")
    lib.equal(listed.get("deep"), (True, None), "a folder is listed")
    lib.equal(server.json("GET", f"/api/v1/runs/{run}/artifacts?path=deep/er")[1]["files"],
              [{"path": "deep/er/still", "folder": True, "bytes": None}], "list of a folder")
    lib.equal([f["path"] for f in server.json("GET", f"/api/v1/runs/{run}")[1]["artifacts"]], [f["path"] for f in listing["files"]],
              "the run lists the files")
    for name in BAD:
        quoted = urllib.parse.quote(name, safe="")
        for method, target, data in (("PUT", f"/api/v1/runs/{run}/artifacts/{quoted}", b"x"), ("GET", f"/api/v1/runs/{run}/artifacts/{quoted}", None),
                                     ("DELETE", f"/api/v1/runs/{run}/artifacts/{quoted}", None), ("PUT", f"{PROXY}/{quoted}", b"x"),
                                     ("GET", f"{PROXY}/{quoted}", None), ("GET", f"{PROXY}?path={quoted}", None),
                                     ("GET", f"/api/v1/runs/{run}/artifacts?path={quoted}", None)):
            if name in ("/a", "a/") and "?path=" in target or name == ".uploads/x" and "/runs/" in target:
                continue
            nowhere = "mlflow-artifacts/artifacts?path=" in target and name in ("./a", "a/./b", "a//b")  # path components that MLflow ignores
            status = server.request(method, target, data)[0]
            lib.equal(status, 200 if nowhere else 400, f"{method} {target}")


def links(server, run, root):
    folder = os.path.join(root, "1", run, "artifacts")
    secret = os.path.join(os.path.dirname(root), "secret")
    with open(secret, "w") as f:
        f.write("secret")
    os.symlink(secret, os.path.join(folder, "link"))
    os.symlink(os.path.dirname(root), os.path.join(folder, "up"))
    os.mkfifo(os.path.join(folder, "pipe"))
    for path in ("link", "up/secret", "pipe"):
        status, _, body = server.request("GET", address(run, path))
        lib.check(status in (400, 404) and b"secret" != body, f"{path} is not followed: {status}")
    lib.check(put(server, address(run, "up/x"), b"x")[0] >= 400 and not os.path.exists(os.path.join(os.path.dirname(root), "x")), "no file outside")
    lib.equal(put(server, address(run, "link"), b"x")[0], 200, "a link is replaced, not followed")
    lib.equal(open(secret).read(), "secret", "the target of the link is unchanged")
    os.symlink(os.path.dirname(root), os.path.join(folder, "sub"))
    lib.equal(server.request("DELETE", address(run, "sub"))[0], 204, "a link is removed")
    lib.check(os.path.exists(secret), "the target of the link still exists")
    lib.check("up" not in [f["path"] for f in server.json("GET", f"/api/v1/runs/{run}/artifacts")[1]["files"]], "links are not listed")


def hard_links(server, run, root):
    """A hard link to a file elsewhere: neither an upload nor a deletion changes that file."""
    inside, outside = os.path.join(root, "1", run, "artifacts", "second"), os.path.join(os.path.dirname(root), "first")
    for method, status in (("PUT", 200), ("DELETE", 204)):
        with open(outside, "w", encoding="utf-8") as f:
            f.write("as it was")
        os.link(outside, inside)
        lib.equal(server.request(method, address(run, "second"), b"new" if method == "PUT" else None)[0], status, f"{method} of a hard link")
        with open(outside, encoding="utf-8") as f:
            lib.equal((f.read(), os.stat(outside).st_nlink), ("as it was", 1), f"the other name after {method}")
        lib.equal(server.request("DELETE", address(run, "second"))[0], 204, "DELETE")


def mounts(server, root):
    """A folder mounted below the artifacts can be read, but no deletion enters it."""
    run, other = lib.make_run(server, name="mounted"), os.path.join(os.path.dirname(root), "other")
    point = os.path.join(root, "1", run, "artifacts", "a", "mounted")
    os.makedirs(other)
    os.makedirs(point)
    kept = os.path.join(other, "kept")
    with open(kept, "w", encoding="utf-8") as f:
        f.write("kept")
    if subprocess.run(["mount", "--bind", other, point], capture_output=True).returncode:
        print("mounts: skipped, mounting is not permitted here")
        return
    try:
        lib.equal(server.request("GET", address(run, "a/mounted/kept"))[::2], (200, b"kept"), "a file of a mounted folder")
        for path in ("a/mounted", "a"):
            lib.check(server.request("DELETE", address(run, path))[0] >= 400 and os.path.exists(kept), f"DELETE of {path}")
        lib.equal(server.json("DELETE", f"/api/v1/runs/{run}")[0], 200, "DELETE of the run")
        lib.check(server.json("POST", "/api/v1/gc", {})[0] >= 400 and os.path.exists(kept), "gc")
    finally:
        subprocess.run(["umount", point], check=True)
    lib.equal((server.json("POST", "/api/v1/gc", {})[0], os.path.exists(os.path.join(root, "1", run))), (200, False), "gc after unmounting")


def refusals(server, run):
    lib.equal(put(server, address("f" * 32, "x"), b"x")[0], 404, "no such run")
    lib.equal(server.request("GET", address(run, "no/such"))[0], 404, "no such file")
    lib.equal(server.request("GET", address(run, "deep"))[0], 400, "GET of a folder")
    lib.equal(put(server, address(run, "plain.txt/x"), b"x")[0], 409, "a file in place of a folder")
    lib.equal(put(server, address(run, "deep"), b"x")[0], 409, "a folder in place of the file")
    lib.equal(put(server, f"/api/v1/runs/{run}/artifacts", b"x")[0], 405, "no name")
    lib.equal(server.request("DELETE", address(run, "deep"))[0], 204, "DELETE of a folder")
    lib.equal(server.request("DELETE", address(run, "deep"))[0], 204, "DELETE again")
    lib.equal(server.json("GET", f"/api/v1/runs/{run}/artifacts?path=deep")[1]["files"], [], "the folder is deleted")


def proxy(server, run):
    lib.equal(put(server, f"{PROXY}/1/{run}/artifacts/m/a%20b.txt", b"12345")[0::2], (200, b"{}"), "PUT through the proxy")
    status, headers, body = server.request("GET", f"/ajax-api/2.0/mlflow-artifacts/artifacts/1/{run}/artifacts/m/a%20b.txt")
    lib.equal((status, body, headers["Content-Type"], headers["Content-Disposition"]),
              (200, b"12345", "text/plain", 'attachment; filename="a b.txt"'), "GET through the proxy")
    lib.equal(server.json("GET", f"{PROXY}?path=1/{run}/artifacts/m")[1],
              {"files": [{"path": "a b.txt", "is_dir": False, "file_size": 5}]}, "list through the proxy")
    lib.equal(server.json("GET", f"/api/2.0/mlflow/artifacts/list?run_id={run}&path=m")[1],
              {"root_uri": f"mlflow-artifacts:/1/{run}/artifacts", "files": [{"path": "m/a b.txt", "is_dir": False, "file_size": 5}]}, "artifacts/list")
    lib.equal(server.request("GET", f"/get-artifact?run_uuid={run}&path=m/a%20b.txt")[2], b"12345", "/get-artifact")
    lib.equal(server.json("DELETE", f"{PROXY}/1/{run}/artifacts/m"), (200, {}), "DELETE through the proxy")
    lib.equal(server.json("GET", f"{PROXY}?path=1/{run}/artifacts/m"), (200, {}), "list of a missing folder")
    status, reply = server.json("GET", f"{PROXY}/1/{run}/artifacts/m/x")
    lib.equal((status, reply["error_code"]), (404, "RESOURCE_DOES_NOT_EXIST"), "a missing file")
    for path in ("mpu/create/x", "mpu/complete/x", "mpu/abort/x"):
        status, reply = server.json("POST", f"/api/2.0/mlflow-artifacts/{path}", {"path": "x", "num_parts": 1})
        lib.equal((status, reply["message"][:33]), (501, "Multipart upload is not supported"), path)


def pages(server, run):
    """A folder in pages, by both APIs; a path with a part that does not exist, as MLflow's clients send it."""
    names = [f"{i:03}.txt" for i in range(25)]
    for name in names:
        lib.equal(put(server, address(run, "many/" + name), b"x")[0], 200, "PUT")
    root = f"1/{run}/artifacts"
    for base, size, prefix in ((f"/api/v1/runs/{run}/artifacts?path=many&", "limit", "many/"), (f"{PROXY}?path={root}/many&", "max_results", ""),
                               (f"/api/2.0/mlflow/artifacts/list?run_id={run}&path=many&", "max_results", "many/")):
        seen, token, count = [], None, 0
        while count == 0 or token:
            status, reply = server.json("GET", f"{base}{size}=10" + (f"&page_token={token}" if token else ""))
            lib.check(status == 200 and len(reply["files"]) <= 10, f"{base}: {status} {reply}")
            seen += [f["path"] for f in reply["files"]]
            token, count = reply.get("next_page_token"), count + 1
        lib.equal((seen, count), ([prefix + n for n in names], 3), base)
        lib.equal(len(server.json("GET", base + "x=" if "v1" not in base else base[:-1])[1]["files"]), 25, f"{base}: without pages")
        lib.equal(server.request("GET", f"{base}{size}=0")[0], 400, f"{base}{size}=0")
    for path in (root + "/many/.", root + "/./many", root + "//many"):
        lib.equal(len(server.json("GET", f"{PROXY}?path={path}")[1]["files"]), 25, path)
    lib.check("many" in [f["path"] for f in server.json("GET", f"{PROXY}?path={root}/.")[1]["files"]], "the folder itself")
    top = server.json("GET", f"/api/2.0/mlflow/artifacts/list?run_id={run}&path=.")[1]["files"]
    lib.check("./many" in [f["path"] for f in top], f"path=.: {top}")
    lib.equal(server.request("GET", f"/get-artifact?run_uuid={run}&path=./many/001.txt")[0::2], (200, b"x"), "./many/001.txt")
    upload = f"/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run}&path="
    for path, body, words in (("../x", b"", "Invalid path"), ("/x", b"", "Invalid path"), ("x", b"", "Request must specify data.")):
        status, reply = server.json("POST", upload + path, body)
        lib.equal((status, reply["message"]), (400, words), f"upload-artifact {path}")


def cut_off(server, run):
    """Bodies that are refused during the upload: the reply can still be read, and the client stops early."""
    target, piece = address(run, "endless"), b"10000\r\n" + b"x" * 65536 + b"\r\n"
    for kind, head in (("chunked", "Transfer-Encoding: chunked"), ("10 GB", "Content-Length: 10000000000")):
        with server.socket(timeout=60) as s:
            s.sendall(f"PUT {target} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode())
            sent, got = lib.push(s, piece)
            lib.check(b" 413 " in got[:20] and b"at most" in got and b"onnection: close" in got, f"{kind}: {sent} bytes sent, {got[:200]!r}")
    c = http.client.HTTPConnection(server.host, server.port, timeout=60)
    c.request("PUT", target, (b"x" * 65536 for _ in range(200)), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    lib.equal(c.getresponse().status, 413, "a client that reads after sending the complete body")
    c.close()
    lib.equal(server.request("GET", target)[0], 404, "nothing is stored")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        runs, root = os.path.join(folder, "runs"), os.path.join(folder, "files")
        server = lib.Server(runs, "--artifacts", root, "--max-artifact-mib", "2")
        run = lib.make_run(server)
        for step in (round_trip, ranges, bodies, names, refusals, proxy, pages, digests, frames):
            step(server, run)
        links(server, run, root)
        hard_links(server, run, root)
        mounts(server, root)
        cut_off(server, run)
        status = put(server, address(run, "large"), b"x" * (2 << 20) + b"x")[0]
        lib.equal((status, server.request("GET", address(run, "large"))[0]), (413, 404), "larger than --max-artifact-mib")
        end = time.time() + 30
        while os.listdir(os.path.join(root, ".uploads")) and time.time() < end:
            time.sleep(0.1)
        lib.equal(os.listdir(os.path.join(root, ".uploads")), [], "temporary files")
        lib.equal(server.stop(), 0, "exit code")
        with open(os.path.join(root, ".uploads", "0123"), "w"):
            pass
        server = lib.Server(runs, "--artifacts", root)
        headers = server.request("HEAD", address(run, "a/data.bin"))[1]
        lib.equal(headers["ETag"], f'"{SHA}"', "the digest after a restart")
        lib.equal(os.listdir(os.path.join(root, ".uploads")), [], "temporary files of a killed server")
        os.utime(os.path.join(root, "1", run, "artifacts", "a", "data.bin"), (1, 1))
        headers = server.request("HEAD", address(run, "a/data.bin"))[1]
        lib.check(headers["ETag"].startswith("W/") and "Repr-Digest" not in headers, "a file changed without the server has no digest")
        lib.equal(server.stop(), 0, "exit code")
    lib.finish("artifacts")


main()
