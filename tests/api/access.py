# SPDX-License-Identifier: Apache-2.0
"""Authorisation of every route in routes.def: each address x every verb x {no, wrong, expired, revoked, read, write,
admin token, session}; foreign Hosts, Origins and cross-site requests. A request is refused before its body is read."""
import sys
sys.dont_write_bytecode = True
import base64
import hashlib
import http.client
import itertools
import json
import os
import re
import stat
import subprocess
import tempfile
import threading
import time
import urllib.parse
import lib

SECRET = "correct-horse-battery"
RUN = "0123456789abcdef" * 2
VERBS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "BREW"]
LEVEL = {"OPEN": 0, "READ": 1, "WRITE": 2, "ADMIN": 3}


def routes():
    """Returns {address: {verb: (scope, body limit)}}, including HEAD and OPTIONS."""
    found = list(lib.routes())
    lib.check(len(found) > 70, "routes.def has more than 70 routes")
    table = {}
    for method, pattern, _, scope, limit in found:
        path = re.sub(r"\{\w+\}", "k", pattern.replace("{run}", RUN)).replace("/*", "/index.html")
        table.setdefault(path, {})[method] = (scope, limit)
        if method == "GET":
            table[path]["HEAD"] = (scope, 0)
    for verbs in table.values():
        verbs["OPTIONS"] = (verbs["GET"][0] if "GET" in verbs else "READ", 0)
    return table


class Asker:
    """One connection that is reopened after the server closed it."""

    def __init__(self, server):
        self.server, self.connection = server, None

    def __call__(self, verb, path, body=None, headers=None):
        for attempt in (1, 2):
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
            try:
                self.connection.request(verb, path, body, headers or {})
                r = self.connection.getresponse()
                data = r.read()
                if r.will_close:
                    self.connection.close()
                    self.connection = None
                return r.status, r.headers, data
            except (http.client.HTTPException, ConnectionError):
                self.connection.close()
                self.connection = None
                if attempt == 2:
                    raise


def harmless(path, verb, limit):
    """Returns a (path, body) that passes authorisation and changes nothing: v1 rejects unknown arguments."""
    body = b"{}" if limit else None
    if path == "/api/v1/events" and verb == "GET":
        return None, None  # would not end
    return path + "?no_such_argument=1", body


def make_token(server, name, scope, **more):
    status, token = server.json("POST", "/api/v1/tokens", dict(name=name, scope=scope, **more))
    lib.equal(status, 201, f"POST /tokens {name}")
    lib.check(re.fullmatch(r"dpt-[0-9a-f]{40}", token["token"]), "a token is 160 bits")
    return token["token"]


def login(ask, token):
    status, headers, _ = ask("POST", "/login", f"token={urllib.parse.quote(token)}&query=a%3D1".encode(),
                             {"Content-Type": "application/x-www-form-urlencoded"})
    lib.equal((status, headers["Location"]), (303, "./?a=1"), "login")
    cookie = headers["Set-Cookie"]
    lib.check("HttpOnly" in cookie and "SameSite=Strict" in cookie and token not in cookie, f"the session's cookie: {cookie}")
    return cookie.split(";")[0]


def credentials(server, ask):
    """Returns a list of (description, headers, level)."""
    server.token = server.owner_token()
    read, write, admin = (make_token(server, s, s) for s in ("read", "write", "admin"))
    gone, old = make_token(server, "gone", "admin"), make_token(server, "old", "admin", expires_time=int(time.time() * 1000) + 1500)
    lib.equal(server.request("DELETE", "/api/v1/tokens/gone")[0], 200, "revoke")
    session = login(ask, read)
    while ask("GET", "/api/v1/version", None, {"Authorization": f"Bearer {old}"})[0] != 401:
        time.sleep(0.1)
    basic = base64.b64encode(f"anyone:{write}".encode()).decode()
    cut = base64.b64encode(write.encode()).decode()
    states = {t["name"]: t["state"] for t in server.json("GET", "/api/v1/tokens")[1]["tokens"]}
    lib.equal((states["read"], states["gone"], states["old"]), ("valid", "revoked", "expired"), "states of tokens")
    return [("nothing", {}, 0), ("a wrong token", {"Authorization": "Bearer dpt_" + 64 * "0"}, 0),
            ("a revoked token", {"Authorization": f"Bearer {gone}"}, 0), ("an expired token", {"Authorization": f"Bearer {old}"}, 0),
            ("a token cut short", {"Authorization": f"Bearer {admin[:-1]}"}, 0), ("a longer token", {"Authorization": f"Bearer {admin}0"}, 0),
            ("no scheme", {"Authorization": admin}, 0), ("Basic without a user", {"Authorization": f"Basic {cut}"}, 0),
            ("a wrong cookie", {"Cookie": session + "0"}, 0), ("the token as a cookie", {"Cookie": session.split("=")[0] + "=" + admin}, 0),
            ("a reading token", {"Authorization": f"Bearer {read}"}, 1), ("a session", {"Cookie": "a=b; " + session}, 1),
            ("a writing token", {"Authorization": f"bearer {write}"}, 2), ("Basic", {"Authorization": f"Basic {basic}"}, 2),
            ("an admin token", {"Authorization": f"Bearer {admin}"}, 3),
            ("the owner", {"Authorization": f"Bearer {server.owner_token()}"}, 3)]


def matrix(server, ask):
    asked = 0
    callers = credentials(server, ask)
    for path, verbs in routes().items():
        for verb in VERBS:
            scope, limit = verbs.get(verb, (None, 0))
            target, body = harmless(path, verb, limit)
            if target is None or (path == "/login" and verb == "POST"):
                continue
            for what, headers, level in callers if scope else callers[:1]:
                if "Cookie" in headers and verb not in ("GET", "HEAD", "OPTIONS"):
                    headers = dict(headers, Origin=f"http://127.0.0.1:{server.port}", Host=f"127.0.0.1:{server.port}")
                status, got, data = ask(verb, target, body, dict(headers, **({} if body is None else lib.JSON)))
                asked += 1
                at = f"{verb} {path} with {what}: {status}"
                if not scope:
                    lib.check(status in (401, 404, 405), at)  # /* serves the page's files for any other address
                elif level >= LEVEL[scope]:
                    lib.check(status not in (401, 403, 405), at)
                elif level:
                    lib.equal(status, 403, at)
                    lib.check(verb == "HEAD" or f"scope {scope.lower()}" in data.decode(), f"{at}: {data}")
                else:
                    lib.equal(status, 401, at)
                    lib.check(got["WWW-Authenticate"].split()[0] == ("Bearer" if "Cookie" in headers else "Basic"), f"{at}: challenge")
    print(f"{asked} requests of the matrix")
    noise = server.stderr()
    lib.check(not any(h["Authorization"].split()[-1] in noise for _, h, level in callers if level and "Authorization" in h),
              "no token in the log")
    return callers


def walls(server):
    """After all these requests the server has loaded no library that opens connections, except libpq if its store is in
    PostgreSQL. Its request threads are sandboxed if the kernel supports it (tests/api/confine_test tests the
    sandbox)."""
    with open(f"/proc/{server.process.pid}/maps", encoding="utf-8") as f:
        loaded = f.read()
    lib.check("libcurl" not in loaded, "the server has loaded libcurl")
    lib.equal("libpq" in loaded, lib.IN_DATABASE, "the server has loaded libpq")
    text = server.request("GET", "/metrics")[2].decode()
    confined = re.search(r"^dptrack_http_confined ([01])$", text, re.M)[1]
    threads = 0
    for task in os.listdir(f"/proc/{server.process.pid}/task"):
        with open(f"/proc/{server.process.pid}/task/{task}/status", encoding="utf-8") as f:
            threads += "NoNewPrivs:\t1" in f.read()
    lib.check(threads > 0 or confined == "0", "confined threads")


def sessions(server, ask, callers):
    cookie = next(h for what, h, _ in callers if what == "a session")
    own = {"Origin": f"http://127.0.0.1:{server.port}"}
    for what, headers, level in callers:
        status, _, body = ask("GET", "/api/v1/session", None, headers)
        scope = ("none", "read", "write", "admin")[level]
        said = {"signed_in": "Cookie" in headers, "scope": scope, "all": scope} | ({"person": scope} if what != "the owner" else {})  # tokens are named like their scope
        if what == "the owner" and lib.IN_DATABASE:
            said["person"] = json.loads(body)["person"]
        lib.equal((status, json.loads(body) if level else None), (200, said) if level else (401, None), f"what {what} may do")
    lib.equal(ask("POST", "/api/v1/compare", b"{}", dict(cookie, **lib.JSON))[0], 401, "a cookie without our Origin does not authorise POST")
    lib.equal(ask("POST", "/api/v1/compare", b"{}", dict(cookie, **own, **lib.JSON))[0], 400, "a cookie with our Origin authorises POST")
    lib.equal(ask("POST", "/api/v1/compare", b"{}", dict(cookie, Origin="http://evil.example", **lib.JSON))[0], 403, "foreign Origin")
    lib.equal(ask("GET", "/", None, dict(cookie, Accept="text/html"))[0], 200, "the page with a session")
    status, headers, body = ask("GET", "/?x=%22%3E", None, {"Accept": "text/html,*/*"})
    lib.equal((status, headers["WWW-Authenticate"]), (401, 'Bearer realm="dptrack"'), "the page without a session")
    lib.check(b"<form" in body and b'"x=%22%3E"' in body, "the login form asks for a token")
    script = re.findall(rb"<script>(.*?)</script>", body)
    lib.check(len(script) == 1 and b"location.hash" in script[0], f"one script, which keeps the fragment of the address: {script}")
    allowed = "'sha256-" + base64.b64encode(hashlib.sha256(b"".join(script)).digest()).decode() + "'"
    lib.check(f"script-src {allowed};" in headers["Content-Security-Policy"], f"the policy allows only {allowed}: {headers['Content-Security-Policy']}")
    status, _, body = ask("POST", "/login", b"token=wrong")
    lib.check(status == 401 and b"<form" in body, "a wrong token gets the form again")
    lib.equal(ask("POST", "/login", b"")[0], 401, "an empty form")
    # an event stream ends when the tokens change, and a revoked reader cannot reconnect
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    c.request("GET", "/api/v1/events", headers=cookie)
    r = c.getresponse()
    lib.equal(r.status, 200, "events with a session")
    threading.Timer(0.3, lambda: server.request("DELETE", "/api/v1/tokens/read")).start()
    r.read()  # until the server ends it
    c.close()
    lib.equal(ask("GET", "/api/v1/events", None, cookie)[0], 401, "events after revoking")
    lib.equal(ask("GET", "/api/v1/runs", None, cookie)[0], 401, "a session ends when its token is revoked")


def foreign(server):
    ask = Asker(server)
    for path, verbs in routes().items():
        verb = "HEAD" if "GET" in verbs else next(iter(verbs))
        body = b"{}" if verbs[verb][1] else None
        for headers in ({"Host": "evil.example"}, {"Host": "evil.example:6007"}, {"Host": "127.0.0.1.evil.example"},
                        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"https://{server.host}:1"},
                        {"Origin": f"http://{server.host}.evil.example:{server.port}"}):
            lib.equal(ask(verb, path, body, dict(lib.JSON, **headers))[0], 403, f"{verb} {path} with {headers}")
        if verb != "HEAD":
            for site in ("cross-site", "same-site"):
                status = ask(verb, path, body, dict(lib.JSON, **{"Sec-Fetch-Site": site}))[0]
                lib.equal(status, 403, f"{verb} {path} from {site}")
        own = {"Origin": f"http://{server.host}:{server.port}", "Sec-Fetch-Site": "same-origin"}
        target, body = harmless(path, verb, verbs[verb][1])
        if path != "/api/v1/tokens":
            lib.check(ask(verb, target, body, dict(lib.JSON, **own))[0] not in (401, 403), f"{verb} {path} from the page")


USES = (None, ("navigate", "document"), ("navigate", "iframe"), ("no-cors", "image"), ("cors", "empty"))  # Sec-Fetch-Mode and -Dest


def host_and_origin(server):
    """Every Host with every Origin, Sec-Fetch-Site, use and verb, compared with the rule: the Host is a loopback name with
    any port; the Origin equals this Host; a foreign page may only open an address, not load it as a part of itself; only
    our own page, or a client without a page, may change anything."""
    port, ask, cells = server.port, Asker(server), 0
    hosts = [(f"127.0.0.1:{port}", True), (f"localhost:{port}", True), ("localhost", True), ("LocalHost:1", True), (f"[::1]:{port}", True),
             ("[::1]", True), ("evil.example", False), (f"evil.example:{port}", False), ("localhost.evil.example", False), ("127.0.0.1.nip.io", False),
             ("localhost.", False), ("[::1", False), ("localhost:x", False), ("localhost:80:80", False), (f"0.0.0.0:{port}", False), ("127.1", False),
             ("user@localhost", False)]
    for host, known in hosts:
        origins = [(None, True), (f"http://{host}", True), (f"https://{host.upper()}", True), ("null", False), ("http://evil.example", False),
                   ("http://localhost:9", host.lower() == "localhost:9"), (f"http://{host}.evil.example", False), (f"ftp://{host}", False), ("", False)]
        for origin, own in origins:
            for site, use in ((None, None), ("same-origin", None), ("none", None), *itertools.product(("same-site", "cross-site"), USES)):
                for verb, body in (("GET", None), ("POST", b'{"runs":[]}')):
                    headers = dict({"Host": host} | ({} if origin is None else {"Origin": origin}) | ({} if site is None else {"Sec-Fetch-Site": site}))
                    headers |= dict(zip(("Sec-Fetch-Mode", "Sec-Fetch-Dest"), use or ()))
                    status, got, _ = ask(verb, "/api/v1/version" if verb == "GET" else "/api/v1/compare", body, dict(headers, **lib.JSON))
                    good = known and own and (site not in ("same-site", "cross-site") or (verb == "GET" and use == ("navigate", "document")))
                    lib.equal(status, (200 if verb == "GET" else 400) if good else 403, f"{verb} with {headers}")
                    lib.check(not any(h.lower().startswith("access-control-") for h in got), f"{verb} with {headers}: CORS")
                    cells += 1
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "application/jsonp"):
        lib.equal(ask("POST", "/api/v1/compare", b'{"runs":[]}', {"Content-Type": kind})[0], 415, f"a form's type {kind!r}")
    print(f"{cells} cells of Host and Origin")


def before_the_body(server):
    """The header is enough for a refusal; a client without a token cannot make the server read 16 MiB."""
    with server.socket() as s:
        s.sendall(f"POST /api/v1/runs/{RUN}/journal?writer={RUN}&offset=0 HTTP/1.1\r\nHost: localhost\r\n"
                  "Content-Length: 16000000\r\n\r\n".encode())
        data, closed = lib.read_all(s)
    lib.equal((lib.replies(data)[0][0], closed), (401, True), "a large body without a token")


def fixed_token():
    """Tokens of DPTRACK_TOKEN and --token-file work without a row in the store; the scope of such a row overrides
    theirs."""
    with lib.fresh("--host", "0.0.0.0", env={"DPTRACK_TOKEN": SECRET}) as server:
        server.host = "127.0.0.1"
        lib.equal(server.request("GET", "/api/v1/runs")[0], 401, "without the token of the environment")
        lib.equal(server.request("GET", "/api/v1/tokens", headers={"Authorization": f"Bearer {SECRET}"})[0], 200, "with it")
        lib.equal(server.request("GET", "/health", headers={"Host": "tracker.lab:80"})[0], 200, "any Host is accepted")
        before_the_body(server)
    with tempfile.NamedTemporaryFile("w") as f:
        f.write(SECRET + "\n")
        f.flush()
        with lib.fresh("--token-file", f.name) as server:
            lib.equal(server.request("GET", "/api/v1/runs")[0], 401, "a token is required on loopback too")


def tool(*args, env=None):
    environment = dict({k: v for k, v in os.environ.items() if k != "DPTRACK_TOKEN"}, **(env or {}))
    if "--logdir" in args:
        environment.update(lib.in_database(args[args.index("--logdir") + 1]))
    return subprocess.run([lib.PROGRAM, *args], capture_output=True, text=True, timeout=60, env=environment)


def chosen_tokens():
    """One rule for tokens that people choose, in the environment and in a file: 16 to 199 visible ASCII characters (MLflow's
    CVE-2025-11200: weak passwords were accepted). Nothing is cut, and a file that others can read is named."""
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        place, path = ("--logdir", os.path.join(folder, "runs"), "--port", "0"), os.path.join(folder, "token")
        for text in ("a", "x" * 15, " " * 20, "correct horse battery staple", SECRET + " ", "\t" + SECRET, "x" * 200, "x" * 300, "pässwörter-pässwörter",
                     "\x7f" + SECRET, "\ufeff" + SECRET):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text + "\n")
            for r in (tool("serve", *place, env={"DPTRACK_TOKEN": text}), tool("serve", *place, "--token-file", path)):
                lib.equal((r.returncode, r.stderr.count("\n")), (2, 1 + r.stderr.count("warning")), f"{text!r}: {r.stderr}")
                lib.check("not ASCII" in r.stderr or "expected 16 to 199, as openssl" in r.stderr, f"{text!r}: {r.stderr}")
                lib.check(text == "a" or text not in r.stderr, f"the token is printed: {r.stderr}")
        for text, mode in (("x" * 16, 0o644), ("y" * 199, 0o600)):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text + "\r\nanother line\n")
            os.chmod(path, mode)
            server = lib.Server(os.path.join(folder, "runs"), "--token-file", path)
            lib.equal([server.request("GET", "/api/v1/runs", headers={"Authorization": "Bearer " + t})[0] for t in (text, text[:-1], text + text[0])],
                      [200, 401, 401], "the whole token")
            lib.equal(server.stop(), 0, "exit code")
            lib.equal("all users of this machine can open it" in server.stderr(), mode == 0o644, f"mode {mode:o}: {server.stderr()}")


def commands():
    """token add|list|revoke on an unserved and a served folder; when a server may start on a public address."""
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        runs = os.path.join(folder, "runs")
        os.mkdir(runs)
        place = ("--logdir", runs)
        r = tool("serve", *place, "--host", "0.0.0.0", "--port", "0")
        lib.equal((r.returncode, r.stderr.count("\n"), "dptrack token add" in r.stderr), (2, 1, True), f"public without a token: {r.stderr}")
        r = tool("token", "add", "boss", "--scope", "admin", *place)
        boss = r.stdout.strip()
        lib.check(re.fullmatch(r"dpt-[0-9a-f]{40}", boss), f"token add: {r}")
        server = lib.Server(runs, "--host", "0.0.0.0", env={"DPTRACK_TOKEN": boss})
        server.host = "127.0.0.1"
        if lib.IN_DATABASE:
            import cluster
            lib.check(not os.path.exists(os.path.join(runs, "dptrack.db.lock")), "a lock file, although the store is in a database")
            lib.check(not any(boss in row for row in cluster.query_of_folder(runs, "SELECT * FROM token")), "the store does not hold the token")
        else:
            lib.equal(stat.S_IMODE(os.stat(os.path.join(runs, "dptrack.db.lock")).st_mode), 0o600, "the lock file's mode")
            lib.check(boss.encode() not in open(os.path.join(runs, "dptrack.db"), "rb").read(), "the store does not hold the token")
        lib.equal(server.request("GET", "/api/v1/runs")[0], 401, "without the token")
        late = tool("token", "add", "late", "--scope", "read", "--expires", "1h", *place).stdout.strip()
        reader = {"Authorization": f"Bearer {late}"}
        lib.equal(lib.heard(lambda: server.request("GET", "/api/v1/runs", headers=reader)[0], 200), 200, "a token added while the server runs")
        lib.equal(tool("ls", "--url", server.url.replace("0.0.0.0", "127.0.0.1"), env={"DPTRACK_TOKEN": late}).returncode, 0, "DPTRACK_TOKEN")
        rows = json.loads(tool("token", "list", "--json", *place).stdout)["tokens"]
        lib.equal([(t["name"], t["scope"]) for t in rows], [("boss", "admin"), ("late", "read")], "token list")
        lib.check("late" in tool("token", "list", "--csv", *place).stdout, "token list --csv")
        lib.equal(tool("token", "add", "late", "--scope", "read", *place).returncode, 2, "a duplicate name")
        for args in (["add", "x"], ["add", "x", "--scope", "root"], ["add"], ["revoke", "nobody"], ["revoke"], ["sell"], [],
                     ["add", "x", "--scope", "read", "--expires", "soon"], ["list", "x"]):
            r = tool("token", *args, *place)
            lib.equal((r.returncode, r.stdout, r.stderr.count("\n")), (2, "", 1), f"token {args}: {r.stderr}")
        lib.equal(tool("token", "revoke", "late", *place).returncode, 0, "token revoke")
        lib.equal(lib.heard(lambda: server.request("GET", "/api/v1/runs", headers=reader)[0], 401), 401, "at once")
        lib.equal(tool("token", "revoke", "boss", *place).returncode, 0, "token revoke of the last token")
        boss = {"Authorization": f"Bearer {boss}"}
        lib.equal(lib.heard(lambda: server.request("GET", "/api/v1/runs", headers=boss)[0], 401), 401,
                  "a revoked token is not revived by DPTRACK_TOKEN")
        lib.equal(tool("ls", *place).returncode, 0, "the owner's command uses the token in the lock file")
        lib.equal(tool("token", "revoke", "--all", *place).returncode, 0, "token revoke --all")
        lib.equal(server.request("GET", "/api/v1/runs")[0], 401, "a public address always requires a token")
        lib.equal(server.stop(), 0, "exit code")


def guesses():
    """Tokens that people choose can be guessed, so guesses are limited. A generated token is never limited; others are
    only during the attack."""
    with lib.fresh(env={"DPTRACK_TOKEN": "open-sesame-open"}) as server:
        owner = {"Authorization": "Bearer " + server.owner_token()}
        good, bad = {"Authorization": "Bearer open-sesame-open"}, {"Authorization": "Bearer barley"}
        drawn = {"Authorization": "Bearer dpt_" + 64 * "1"}
        lib.equal(server.request("GET", "/api/v1/runs", headers=good)[0], 200, "the token of the environment")
        seen = [server.request("GET", "/api/v1/runs", headers=bad) for _ in range(15)]
        lib.equal(seen[0][0], 401, "one wrong guess")
        lib.equal(seen[-1][0], 429, "many wrong guesses")
        lib.check(0 < int(seen[-1][1]["Retry-After"]) <= 5, f"Retry-After: {seen[-1][1]['Retry-After']}")
        status, headers, body = server.request("POST", "/login", b"token=barley", {"Sec-Fetch-Site": "same-origin"})
        lib.check(status == 429 and b"<form" in body and int(headers["Retry-After"]) > 0, f"the form, guessing: {status}")
        lib.equal(server.request("GET", "/api/v1/runs", headers=owner)[0], 200, "a generated token during the attack")
        lib.equal(server.request("GET", "/api/v1/runs", headers=drawn)[0], 401, "an unknown generated token during the attack")
        lib.equal(server.request("GET", "/api/v1/runs")[0], 401, "no token during the attack")
        end = time.monotonic() + 60
        while server.request("GET", "/api/v1/runs", headers=good)[0] == 429 and time.monotonic() < end:
            time.sleep(0.5)
        lib.equal(server.request("GET", "/api/v1/runs", headers=good)[0], 200, "after a moment the right token is accepted")


def forwarded_guesses():
    """Behind a proxy guesses count for the forwarded client: of IPv6 its network, however the address is written."""
    def guess(client):
        return server.request("GET", "/version", headers={"Authorization": "Bearer barley", "X-Forwarded-For": client})[0]

    with lib.fresh("--behind-proxy", env={"DPTRACK_TOKEN": SECRET}) as server:
        for many, same, other in ((lambda i: f"2001:db8:1:2::{i:x}", "[2001:DB8:1:2:ffff::1]:443", "2001:db8:1:3::1"),
                                  (lambda i: f"192.0.2.1:{1000 + i}", "::ffff:192.0.2.1", "192.0.2.2"),
                                  (lambda i: f"198.51.100.{i}, 203.0.113.1", "203.0.113.1", "198.51.100.1")):
            seen = [guess(many(i)) for i in range(1, 21)]
            lib.equal((seen[0], seen[-1]), (401, 429), f"20 guesses of {many(1)} and its neighbours")
            lib.equal((guess(same), guess(other)), (429, 401), f"{same} is the same client, {other} is not")


def main():
    with lib.fresh() as server:
        ask = Asker(server)
        lib.equal(ask("GET", "/api/v1/runs")[0], 200, "no token is required before the first one exists")
        callers = matrix(server, ask)
        walls(server)
        sessions(server, ask, callers)
        lib.equal(server.request("DELETE", "/api/v1/tokens")[0], 200, "forget all")
        server.token = None
        lib.equal(server.request("GET", "/api/v1/runs")[0], 200, "no token is required after all are revoked")
    with lib.fresh() as server:
        foreign(server)
        host_and_origin(server)
    fixed_token()
    chosen_tokens()
    guesses()
    forwarded_guesses()
    commands()
    lib.finish("access")


main()
