"""Who may do what, for every route of routes.def: with a token set nothing but /health answers without it, whatever the
verb; foreign Hosts, Origins and cross-site requests are refused everywhere; the refusal comes before the body is read."""
import sys
sys.dont_write_bytecode = True
import base64
import os
import re
import stat
import tempfile
import lib

SECRET = "correct-horse-battery"
RUN = "0123456789abcdef" * 2


def routes():
    with open(os.path.join(lib.SOURCE, "schema", "api", "routes.def"), encoding="utf-8") as f:
        text = f.read()
    found = re.findall(r'^ROUTE\((\w+),\s*"([^"]+)",\s*\w+,\s*(\w+),\s*(\d+)\)', text, re.M)
    lib.check(len(found) > 30, "routes.def is read")
    for method, path, scope, limit in found:
        yield method, path.replace("{run}", RUN).replace("{key}", "k").replace("/*", "/index.html"), scope, int(limit)


def verbs(method):
    return [method, "HEAD", "OPTIONS"] if method == "GET" else [method]


def tokens(server):
    basic = "Basic " + base64.b64encode(f"anyone:{SECRET}".encode()).decode()
    refused = [None, "Bearer wrong", "Bearer", "Bearer ", "Basic !!", f"Bearer {SECRET}x", f"Bearer {SECRET[:-1]}", f"Token {SECRET}",
               "Basic " + base64.b64encode(SECRET.encode()).decode()]
    for method, path, scope, limit in routes():
        for verb in verbs(method if path != "/api/v1/events" else "HEAD"):  # a GET of it would not end
            for value in refused:
                headers = {"Authorization": value} if value is not None else {}
                status, got, _ = server.request(verb, path, b"{}" if limit else None, dict(headers, **lib.JSON))
                known = 204 if verb == "OPTIONS" else 200
                lib.equal(status, known if scope == "OPEN" else 401, f"{verb} {path} with {value}")
                lib.check(status != 401 or got["WWW-Authenticate"].startswith("Basic "), f"{verb} {path}: WWW-Authenticate")
            for value in (f"Bearer {SECRET}", basic, f"bearer {SECRET}"):
                status = server.request(verb, path, b"{}" if limit else None, dict(lib.JSON, Authorization=value))[0]
                lib.check(status not in (401, 403, 405), f"{verb} {path} with the token: {status}")
    lib.equal(server.request("GET", "/health", headers={"Host": "tracker.lab:80"})[0], 200, "any name of this machine")


def foreign(server):
    for method, path, _, limit in routes():
        body = b"{}" if limit else None
        if path == "/api/v1/events":
            method = "HEAD"
        for headers in ({"Host": "evil.example"}, {"Host": "evil.example:6007"}, {"Host": "127.0.0.1.evil.example"},
                        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"https://{server.host}:1"},
                        {"Origin": f"http://{server.host}.evil.example:{server.port}"}):
            lib.equal(server.request(method, path, body, dict(lib.JSON, **headers))[0], 403, f"{method} {path} with {headers}")
        if method not in ("GET", "HEAD"):
            for site in ("cross-site", "same-site"):
                status = server.request(method, path, body, dict(lib.JSON, **{"Sec-Fetch-Site": site}))[0]
                lib.equal(status, 403, f"{method} {path} from {site}")
        own = {"Origin": f"http://{server.host}:{server.port}", "Sec-Fetch-Site": "same-origin"}
        lib.check(server.request(method, path, body, dict(lib.JSON, **own))[0] not in (401, 403), f"{method} {path} from the page")


def before_the_body(server):
    """The head alone is enough for a refusal; nobody without a token makes the server read 16 MiB."""
    with server.socket() as s:
        s.sendall(f"POST /api/v1/runs/{RUN}/journal?writer={RUN}&offset=0 HTTP/1.1\r\nHost: localhost\r\n"
                  "Content-Length: 16000000\r\n\r\n".encode())
        data, closed = lib.read_all(s)
    lib.equal((lib.replies(data)[0][0], closed), (401, True), "a large body without a token")


def main():
    lib.bound(300)
    with lib.fresh("--host", "0.0.0.0", env={"DPTRACK_TOKEN": SECRET}) as server:
        server.host = "127.0.0.1"
        tokens(server)
        before_the_body(server)
    with lib.fresh() as server:
        foreign(server)
    with tempfile.NamedTemporaryFile("w") as f:
        f.write(SECRET + "\n")
        f.flush()
        with lib.fresh("--token-file", f.name) as server:
            lib.equal(server.request("GET", "/api/v1/runs")[0], 401, "a token on loopback is asked for too")
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        runs = os.path.join(folder, "runs")
        server = lib.Server(runs, env={"DPTRACK_TOKEN": SECRET})
        mode = stat.S_IMODE(os.stat(os.path.join(runs, "dptrack.db.lock")).st_mode)
        lib.equal(mode, 0o600, "the lock file holds the owner's token")
        with open(os.path.join(runs, "dptrack.db.lock"), encoding="utf-8") as f:
            owner = re.search(r"[0-9a-f]{64}", f.read())
        lib.check(owner, "the lock file names the owner's token")
        if owner:
            status = server.request("GET", "/api/v1/runs", headers={"Authorization": f"Bearer {owner[0]}"})[0]
            lib.equal(status, 200, "commands of the owner go through the server")
        lib.equal(server.stop(), 0, "exit code")
    lib.finish("access")


main()
