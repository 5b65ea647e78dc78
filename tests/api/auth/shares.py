# SPDX-License-Identifier: Apache-2.0
"""Links that show one thing. The session of a link of each kind asks every route of routes.def for what it shows, for a hidden run of the
same experiment, for another experiment and for what never was: it reads what it shows, everything else is as if it was not there, and
no reply has a word of the rest. Then: who may make one, what is stored, ends within 2 s, deleted and moved targets, the audit log."""
import sys
sys.dont_write_bytecode = True
import json
import os
import re
import time
import urllib.parse
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import grants  # noqa: E402
from grants import MISSING, PNG, SECRET, lib, make_token, ok  # noqa: E402


class Visitor:
    """A browser that opened a link."""

    def __init__(self, server, secret, cookie=None):
        self.server, self.cookie, self.c = server, cookie, server.connection()
        status, headers, data = self.raw("POST", "/api/v1/shares/exchange", {"secret": secret})
        self.status, self.said = status, json.loads(data)
        self.cookie = headers["Set-Cookie"].split(";")[0] if "Set-Cookie" in headers else cookie

    def raw(self, method, target, body=None):
        keep, self.server.token = self.server.token, None
        headers = {"Sec-Fetch-Site": "same-origin"} | ({"Cookie": self.cookie} if self.cookie else {})
        reply = self.server.request(method, target, body, dict(headers, **({"Content-Type": "text/plain"} if isinstance(body, bytes) else {})), self.c)
        self.server.token = keep
        if reply[1].get("Connection") == "close":
            self.c.close()
            self.c = self.server.connection()
        return reply

    def __call__(self, method, target, body=None):
        status, _, data = self.raw(method, target, body)
        return status, data.decode("utf-8", "replace")


def share(server, kind, *target, code=201, token=None, **more):
    status, reply = server.json("POST", "/api/v1/shares", {"kind": kind, "target": list(target), **more}, {"Authorization": f"Bearer {token}"} if token else None)
    lib.equal(status, code, f"a link to a {kind} {target}: {reply}")
    return reply


def hidden_run(server, experiment):
    run = ok(server, "POST", "/api/v1/runs", {"experiment": experiment, "name": SECRET + "-run", "params": {SECRET + "/lr": SECRET, "lr": "9"}, "tags": {SECRET: "1"}})["id"]
    ok(server, "POST", f"/api/v1/runs/{run}/metrics", {"points": [{"key": key, "step": 1, "value": 1} for key in ("loss", SECRET + "/loss")]})
    ok(server, "PUT", f"/api/v1/runs/{run}/artifacts/a.txt", SECRET.encode(), {"Content-Type": "text/plain"})
    ok(server, "PUT", f"/api/v1/runs/{run}/artifacts/images/{SECRET}+step+1+timestamp+5+x.png", PNG, {"Content-Type": "image/png"})
    ok(server, "PATCH", f"/api/v1/runs/{run}", {"status": "finished"})
    return run


def shared_of():
    with open(f"{lib.SOURCE}/schema/api/access.def", encoding="utf-8") as f:
        return dict(re.findall(r"^SHARED\((\w+), \w+, (\w+)\)$", f.read(), re.M))


def copy_of(thing, **other):
    made = grants.Thing(thing.name)
    made.__dict__.update(thing.__dict__, **other)
    return made


# What the page may ask of the list of runs, in place of the arguments of grants.py: a link does not search.
LISTED = {"experiment": "okapi", "include": "keys", "limit": "200"}
MAY_BE_EMPTY = {"run_trace", "code_get", "console_get", "artifact_list_get", "journal_get", "compare_get", "compare_post"}


def matrix(server, links, own, hidden, foreign):
    shared, count = shared_of(), 0
    routes = [r for r in lib.routes() if r[3] != "OPEN" and r[2] not in ("login_post", "device_post")]
    lib.check(len(shared) > 15, "access.def says what links show")
    for kind, link in links.items():
        v = Visitor(server, link["secret"])
        lib.equal(v.status, 200, f"the link to a {kind} is opened: {v.said}")
        for method, path, handler, _, _ in routes:
            at = f"{method} {path}, link to a {kind}"
            answers = []
            for thing in (own, MISSING, hidden, foreign):
                target, body = grants.request_of(method, path.replace("{name}", "first"), handler, thing)
                if handler == "run_list":
                    target = "/api/v1/runs?" + urllib.parse.urlencode(dict(LISTED, experiment=thing.name))
                status, text = v(method, target, body)
                said = target + (json.dumps(body) if isinstance(body, dict) else "")
                lib.check(SECRET not in text.replace(thing.run, "") or SECRET in said, f"{at}: tells of {SECRET}: {text[:300]}")
                answers.append((status, thing.blank(text)))
                count += 1
            (status, text), missing, *others = answers
            what = shared.get(handler)
            if what is None:
                lib.check(all(a[0] in (403, 404, 405) for a in answers), f"{at}: {[a[0] for a in answers]} {text[:200]}")
            elif what == "OPEN":
                lib.check(status in (200, 404), f"{at}: {status} {text[:200]}")
            elif what == "TEXT":
                lib.equal(status, 200 if handler.startswith(kind) else 404, f"{at}: {text[:200]}")
                lib.check(all(a[0] == 404 for a in answers[1:]), f"{at}: others {answers[1:]}")
            else:
                lib.check(status == 200 or (status == 404 and handler in MAY_BE_EMPTY), f"{at}: {status} {text[:300]}")
                if handler == "run_list":
                    lib.equal(others[1][0], missing[0], f"{at}: a foreign experiment, and what never was")
                else:
                    lib.equal(others, [missing, missing], f"{at}: hidden, foreign, and what never was")
        only(v, kind, own, hidden)
    print(f"{count} requests")


def only(v, kind, own, hidden):
    """The list has what the link shows; arguments that search are refused; a prefix finds no other run."""
    want = {"run": {own.run}, "comparison": {own.run, own.other}, "view": {own.run, own.other}, "report": {own.run}}[kind]
    listed = json.loads(v("GET", "/api/v1/runs?" + urllib.parse.urlencode(LISTED))[1])
    lib.equal({r["id"] for r in listed["runs"]}, want, f"{kind}: the runs")
    lib.check(not listed.get("changes_token") and "default_view" not in listed and "deleted_runs" not in listed, f"{kind}: {sorted(listed)}")
    for more in ("filter=lr>0", "order_by=metrics.loss.last", "deleted=all", "group_by=params.lr", f"run={hidden.run}", f"run={hidden.run[:8]}&run={own.run}"):
        status, text = v("GET", f"/api/v1/runs?experiment={own.name}&{more}")
        lib.check(status == (404 if more.startswith("run") else 403), f"{kind}: {more}: {status} {text}")
    lib.equal(json.loads(v("GET", f"/api/v1/runs/{own.run[:12]}")[1])["id"], own.run, f"{kind}: a prefix of its run")
    lib.equal(v("GET", f"/api/v1/runs/{hidden.run[:12]}")[0], 404, f"{kind}: a prefix of another run")
    lib.equal(v("POST", "/api/v1/series/query", {"runs": [own.run, hidden.run], "keys": ["loss"], "buckets": 4})[0], 404, f"{kind}: a chart with another run")
    lib.equal(v("GET", f"/api/v1/runs/{own.run}/artifacts/a.txt")[1], own.name, f"{kind}: a file")
    session = json.loads(v("GET", "/api/v1/session")[1])
    lib.equal((session["scope"], session["share"]["kind"]), ("read", kind), f"{kind}: the session says what it is")


def processes(server, own):
    """A link made and revoked in one process opens and ends in another."""
    other = lib.Server(server.logdir)
    link = share(server, "run", own.run)
    v = Visitor(other, link["secret"])
    lib.equal(v("GET", f"/api/v1/runs/{own.run}")[0], 200, "in another process")
    began = time.monotonic()
    ok(server, "DELETE", f"/api/v1/shares/{link['id']}")
    while v("GET", f"/api/v1/runs/{own.run}")[0] == 200 and time.monotonic() - began < 5:
        time.sleep(0.05)
    lib.check(time.monotonic() - began < 2, f"it ends there after {time.monotonic() - began:.1f} s")
    lib.equal(other.stop(), 0, "exit code of the other process")


def crowd(server, own):
    """A thousand links are enough; ended ones go after 90 days."""
    if lib.IN_DATABASE:
        return
    import sqlite3
    db = sqlite3.connect(os.path.join(server.logdir, "dptrack.db"), timeout=10)
    now = int(time.time() * 1000)
    with db:
        db.executemany("INSERT INTO token (name, hash, scope, created_ms, expires_ms, share, experiment_id) VALUES (?, ?, 1, 0, ?, 'run x', 0)",
                       [(f"share/{i}", f"{i:064d}", now + 10**7 if i < 1000 else now - 91 * 86400_000) for i in range(1200)])
    lib.check("1000 links" in share(server, "run", own.run, code=409)["error"]["message"], "one link more")
    with db:
        db.execute("UPDATE token SET revoked_ms = ? WHERE expires_ms > ? AND hash LIKE '0000%'", (now, now))
    share(server, "run", own.run)
    lib.equal(db.execute("SELECT count(*) FROM token WHERE hash LIKE '0000%'").fetchone()[0], 1000, "those that ended long ago are gone")
    with db:
        db.execute("DELETE FROM token WHERE hash LIKE '0000%'")
    db.close()


def life(server, own):
    """The end, revocation, the own session of a person, what is stored and logged."""
    first = share(server, "run", own.run)
    lib.check(abs(first["expires_time"] - first["created_time"] - 30 * 86400_000) < 2000, f"a link ends after 30 days: {first}")
    v = Visitor(server, first["secret"])
    lib.equal(v("GET", f"/api/v1/runs/{own.run}")[0], 200, "it is open")
    lib.equal(server.request("GET", f"/api/v1/runs/{own.run}", headers={"Authorization": "Bearer " + first["secret"]})[0], 401, "its secret is no token")
    text = lib.text(server.logdir, "SELECT group_concat(name || hash || grants || share, ' ') FROM token") if not lib.IN_DATABASE else ""
    lib.check(first["secret"] not in text and first["secret"][4:] not in text, "the secret is not stored")
    rows = {s["id"]: s for s in ok(server, "GET", "/api/v1/shares")["shares"]}
    lib.check(first["secret"] not in json.dumps(rows) and rows[first["id"]]["used_time"], f"the list: {rows[first['id']]}")
    lib.equal([t["name"] for t in ok(server, "GET", "/api/v1/tokens")["tokens"] if "share" in t["name"]], [], "links are not in the list of tokens")
    began = time.monotonic()
    ok(server, "DELETE", f"/api/v1/shares/{first['id']}")
    while v("GET", f"/api/v1/runs/{own.run}")[0] == 200 and time.monotonic() - began < 5:
        time.sleep(0.05)
    lib.check(time.monotonic() - began < 2, f"a revoked link ends after {time.monotonic() - began:.1f} s")
    gone = Visitor(server, first["secret"])
    lib.check(gone.status == 410 and "has ended" in gone.said["error"]["message"], f"opened again: {gone.said}")
    lib.equal(server.request("DELETE", f"/api/v1/shares/{first['id']}")[0], 404, "revoked twice")
    lib.equal(Visitor(server, "dpt-" + "0" * 40).status, 404, "a wrong secret")
    short = share(server, "run", own.run, expires_time=int(time.time() * 1000) + 1500)
    v = Visitor(server, short["secret"])
    lib.equal(v("GET", f"/api/v1/runs/{own.run}")[0], 200, "a short link")
    time.sleep(1.6)
    lib.equal((v("GET", f"/api/v1/runs/{own.run}")[0], Visitor(server, short["secret"]).status), (401, 410), "it has ended")
    for days in (-1, 400):
        share(server, "run", own.run, code=400, expires_time=int(time.time() * 1000) + days * 86400_000)
    reader = make_token(server, "colleague", "read", f"{own.name}=read")
    cookie = server.request("POST", "/login", f"token={reader}&query=".encode(), {"Content-Type": "application/x-www-form-urlencoded"})[1]["Set-Cookie"].split(";")[0]
    link = share(server, "run", own.run)
    v = Visitor(server, link["secret"], cookie)
    lib.equal((v.status, v.cookie, v.said["page"]), (200, cookie, f"?e={own.name}&r={own.run[:12]}"), "a person who sees it anyway keeps the own session")
    entries = ok(server, "GET", "/api/v1/audit?object=share&limit=1000&order=asc")["entries"]
    lib.equal([(e["action"], e["name"], e["detail"]) for e in entries if e["id"] == first["id"]], [("share", own.name + "-run", f"run {own.run}"), ("revoke", own.name + "-run", f"run {own.run}")],
              "the audit log")
    lib.check(link["secret"] not in json.dumps(entries), "without the secret")


def makers(server, own, foreign):
    """An admin of the experiment makes and sees its links; others do not."""
    admin = make_token(server, "part-admin", "admin", f"{own.name}=admin,{foreign.name}=write")
    writer = make_token(server, "all-writer", "write")
    made = share(server, "report", own.report, token=admin)
    share(server, "run", own.run, token=writer, code=403)
    share(server, "run", foreign.run, token=admin, code=403)
    share(server, "run", MISSING.run, token=admin, code=404)
    share(server, "view", "9999", code=404)
    share(server, "comparison", own.run, foreign.run, code=400)
    share(server, "comparison", own.run, code=400)
    share(server, "folder", own.run, code=400)
    seen = json.loads(server.request("GET", "/api/v1/shares", headers={"Authorization": f"Bearer {admin}"})[2])["shares"]
    lib.check(made["id"] in {s["id"] for s in seen} and {s["experiment"] for s in seen} == {own.name}, f"an admin's list: {seen}")
    other = share(server, "run", foreign.run)
    lib.equal(server.request("DELETE", f"/api/v1/shares/{other['id']}", headers={"Authorization": f"Bearer {admin}"})[0], 403, "a link of another experiment")
    lib.equal(made["person"], "part-admin", "who made it")


def targets(server, own, hidden):
    """Deleted, moved and renamed."""
    words = ok(server, "POST", "/api/v1/views", {"experiment": own.name, "name": "words", "query": f"e={own.name}&q=some+words"})["id"]
    lib.check("by words" in share(server, "view", words, code=400)["error"]["message"], "a view of words")
    one = share(server, "run", own.other)
    v = Visitor(server, one["secret"])
    ok(server, "PATCH", f"/api/v1/experiments/{own.id}", {"name": "renamed"})
    lib.equal(v("GET", f"/api/v1/runs/{own.other}")[0], 200, "the experiment is renamed")
    ok(server, "PATCH", f"/api/v1/experiments/{own.id}", {"name": own.name})
    ok(server, "DELETE", f"/api/v1/runs/{own.other}")
    status, text = v("GET", f"/api/v1/runs/{own.other}")
    lib.check(status == 410 and "deleted or moved" in text and Visitor(server, one["secret"]).status == 410, f"its run is deleted: {status} {text}")
    ok(server, "POST", f"/api/v1/runs/{own.other}/restore")
    lib.equal(v("GET", f"/api/v1/runs/{own.other}")[0], 200, "and restored")
    ok(server, "PATCH", f"/api/v1/runs/{own.other}", {"experiment": "elsewhere"})
    lib.equal((v("GET", f"/api/v1/runs/{own.other}")[0], Visitor(server, one["secret"]).status), (410, 410), "its run is moved")
    ok(server, "PATCH", f"/api/v1/runs/{own.other}", {"experiment": own.name})
    view = share(server, "view", own.view)
    v = Visitor(server, view["secret"])
    ok(server, "PATCH", f"/api/v1/views/{own.view}", {"query": f"?e={own.name}&q=params.lr+%3D+%27none%27"})
    lib.equal(json.loads(v("GET", "/api/v1/runs?limit=10")[1])["runs"], [], "the view selects none")
    ok(server, "PATCH", f"/api/v1/views/{own.view}", {"query": f"?e={own.name}&only&o={hidden.run[:8]}"})
    lib.equal([r["id"] for r in json.loads(v("GET", "/api/v1/runs?limit=10")[1])["runs"]], [hidden.run], "the view selects another run")
    ok(server, "DELETE", f"/api/v1/views/{own.view}")
    lib.equal((v("GET", "/api/v1/runs?limit=10")[0], Visitor(server, view["secret"]).status), (410, 410), "the view is deleted")
    ok(server, "DELETE", f"/api/v1/experiments/{own.id}")
    lib.equal(Visitor(server, share(server, "run", own.run, code=404)["error"]["message"]).status, 404, "the experiment is deleted: no new link")


def main():
    with lib.fresh() as server:
        server.token = server.owner_token()
        status, reply = server.json("POST", "/api/v1/shares", {"kind": "run", "target": ["f" * 32]})
        lib.check(lib.IN_DATABASE or (status == 403 and "needs no token" in reply["error"]["message"]), f"without tokens: {status} {reply}")
        make_token(server, "first", "admin")
        own, foreign = grants.fill(server, "okapi"), grants.fill(server, SECRET)
        hidden = copy_of(own, run=hidden_run(server, own.name), view=foreign.view, report=foreign.report)
        panels = f"```panel\nmetrics: loss\nruns: {own.run[:8]}\n```\ntext\n```panel\nmetrics: loss\nexperiment: {SECRET}\n```\n```panel\nruns: {foreign.run}\n```\n"
        ok(server, "PATCH", f"/api/v1/reports/{own.report}", {"text": panels.replace(SECRET, "quagga")})
        ok(server, "PATCH", f"/api/v1/views/{own.view}", {"query": f"?e={own.name}&q=params.lr+%3D+%271%27"})
        links = {"run": share(server, "run", own.run), "comparison": share(server, "comparison", own.run, own.other), "view": share(server, "view", own.view), "report": share(server, "report", own.report)}
        matrix(server, links, own, hidden, foreign)
        makers(server, own, foreign)
        life(server, own)
        if lib.IN_DATABASE:
            processes(server, own)
        crowd(server, own)
        targets(server, own, hidden)
    lib.finish("shares")


if __name__ == "__main__":
    main()
