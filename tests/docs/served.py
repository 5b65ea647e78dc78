# SPDX-License-Identifier: Apache-2.0
"""/docs: a static site from a folder, without a token, with types, compression, entity tags and the page's content security policy;
nothing but its files; one sentence where it is missing."""
import sys
sys.dont_write_bytecode = True
import gzip
import json
import os
import subprocess
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib  # noqa: E402

PAGE = "<!doctype html><title>first</title>" + "text " * 1000
FILES = {"index.html": PAGE, "guides/ddp.html": PAGE, "assets/a.js": "let a;", "assets/a.css": "p{}", "search/search_index.json": "{}"}
TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "json": "application/json"}


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def make_site(folder):
    for name, text in FILES.items():
        write(f"{folder}/site/{name}", text.encode())
    write(f"{folder}/site/packed.html.gz", gzip.compress(PAGE.encode()))
    write(f"{folder}/site/packed.html", b"older")
    write(f"{folder}/site/.hidden", b"hidden")
    write(f"{folder}/secret.txt", b"secret")
    os.symlink("../secret.txt", f"{folder}/site/link.txt")
    os.symlink("..", f"{folder}/site/up")
    return f"{folder}/site"


def check_files(server):
    for name, text in FILES.items():
        status, headers, data = server.request("GET", "/docs/" + name)
        lib.equal((status, data.decode()), (200, text), name)
        lib.equal(headers["Content-Type"], TYPES[name.rsplit(".", 1)[1]], f"{name}: type")
        csp = headers["Content-Security-Policy"]
        lib.check("script-src 'self'" in csp and "worker-src 'self'" in csp and "unsafe" not in csp, f"{name}: {csp}")
        lib.equal(server.request("HEAD", "/docs/" + name)[::2], (200, b""), f"{name}: HEAD")
        lib.equal(server.request("GET", "/docs/" + name, None, {"If-None-Match": headers["ETag"]})[0], 304, f"{name}: unchanged")
    lib.equal(server.request("GET", "/docs/guides/ddp.html?h=ranks")[0], 200, "arguments are ignored")
    status, headers, _ = server.request("GET", "/docs")
    lib.equal((status, headers["Location"]), (302, "docs/index.html"), "/docs")
    lib.equal(server.request("GET", "/docs/")[::2], (200, PAGE.encode()), "/docs/ is the first page, so its relative links hold")


def check_packed(server):
    status, headers, data = server.request("GET", "/docs/packed.html", None, {"Accept-Encoding": "gzip"})
    lib.equal((status, headers["Content-Encoding"], gzip.decompress(data).decode()), (200, "gzip", PAGE), "packed")
    lib.check("Accept-Encoding" in headers["Vary"], "packed: Vary")
    status, headers, data = server.request("GET", "/docs/packed.html")
    lib.equal((status, headers["Content-Encoding"], data.decode()), (200, None, PAGE), "unpacked for a client without gzip")


def check_others(server):
    for path in ("link.txt", "up/secret.txt", ".hidden", "packed.html.gz", "none.html", "guides", "assets/a.js/x"):
        status, _, data = server.request("GET", "/docs/" + path)
        lib.equal((status, json.loads(data)["error"]["code"]), (404, "not_found"), path)
    for path in ("../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "//etc/passwd", "guides/", "/", "assets//a.js"):
        lib.check(server.request("GET", "/docs/" + path)[0] in (400, 404), path)
    lib.equal(server.request("POST", "/docs/index.html", b"x")[0], 405, "POST")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        site = make_site(folder)
        with lib.fresh("--docs", site) as server:
            check_files(server)
            check_packed(server)
            check_others(server)
            server.token = server.owner_token()
            lib.equal(server.request("POST", "/api/v1/tokens", {"name": "a", "scope": "read"})[0], 201, "a token")
            server.token = None
            lib.equal(server.request("GET", "/api/v1/runs")[0], 401, "the API needs a token now")
            lib.equal(server.request("GET", "/docs/index.html")[0], 200, "the documents need none")
        empty = f"{folder}/empty"
        os.mkdir(empty)
        done = subprocess.run([lib.PROGRAM, "serve", "--logdir", f"{folder}/runs", "--docs", empty], capture_output=True, text=True, timeout=60)
        lib.equal(done.returncode, 2, "a folder without a site")
        lib.check("index.html" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
        missing(folder)
    lib.finish("docs")


def missing(folder):
    """A program away from its build folder finds no site."""
    program = f"{folder}/bin/dptrack"
    os.mkdir(f"{folder}/bin")
    with open(lib.PROGRAM, "rb") as f:
        write(program, f.read())
    os.chmod(program, 0o755)
    lib.PROGRAM, kept = program, lib.PROGRAM
    with lib.fresh() as server:
        for path in ("/docs", "/docs/index.html"):
            status, _, data = server.request("GET", path)
            lib.equal(status, 404, path)
            lib.check("make docs" in json.loads(data)["error"]["message"], data)
    write(f"{folder}/share/dptrack/docs/index.html", b"here")
    with lib.fresh() as server:
        lib.equal(server.request("GET", "/docs/index.html")[2], b"here", "share/dptrack/docs next to bin")
    lib.PROGRAM = kept


main()
