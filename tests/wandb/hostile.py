#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile requests to W&B's routes: GraphQL beyond its bounds, upload addresses with another file, size, method, run or
time, of a deleted run and of a revoked token; scopes of root fields; repeated requests of the stream; what is left out
is named, and secrets are hidden."""
import hmac
import json
import os
import sys
import time
import urllib.parse
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "api"))
import lib  # noqa: E402

UPSERT = 'mutation U($n: String) { upsertBucket(input: {name: $n, modelName: "p", config: "{}"}) { bucket { id name } inserted } }'
FILES = 'mutation F { createRunFiles(input: {projectName: "p", runName: "r", files: ["a/b.txt"]}) { files { name uploadUrl } } }'
SPREADS = "query { " + " ".join(["...A"] * 2) + " } " + " ".join(f"fragment {a} on Q {{ ...{b} ...{b} ...{b} }}" for a, b in zip("ABCDEFGHIJKLMNO", "BCDEFGHIJKLMNOP")) + \
    " fragment P on Q { viewer { id } }"

# what is sent, the status of the answer, a word of it
BOUNDS = (
    ("query { viewer { id } }" + " " * (256 << 10), 400, "256 KiB"),
    ("query { " + "a { " * 33 + "b" + " }" * 33 + " }", 400, "32 levels"),
    ("query { viewer { " + "id " * 2001 + "} }", 400, "2000 fields"),
    (SPREADS, 400, "fields"),
    ("query { ...A } fragment A on Q { ...B } fragment B on Q { ...A }", 400, "contains itself"),
    ("query { ...A }", 400, "does not have"),
    ("query { viewer { id }", 400, "query"),
    ("query { viewer(a: " + "[" * 40 + "]" * 40 + ") { id } }", 400, "32 levels"),
    ("query { viewer(a: \"x) { id } }", 400, "query"),
    ("query A { viewer { id } } query B { viewer { id } }", 400, "several operations"),
    ("subscription { viewer { id } }", 400, "subscriptions"),
    ("", 400, "query"),
    ("}", 400, "query"),
    ("query { " + " ".join(f"v{i}: viewer {{ id }}" for i in range(51)) + " }", 400, "root fields"),
    ("query { nothing { id } }", 200, "is not here"),
    ("query { viewer { id unknown } }", 200, "null"),
    ("query { __type(name: \"Query\") { fields { name } } }", 200, '"fields":[]'),
    ("query { __schema { types { name } } }", 200, "is not here"),
    ("query A { viewer { id @skip(if: true) name: username @include(if: true) ... on User { email } } }", 200, '"name":"dptrack","email":""'),
    ("mutation { upsertSweep(input: {}) { id } }", 200, "sweeps are not here"),
)


def graphql(server, text, variables=None, headers=None):
    status, _, data = server.request("POST", "/graphql", {"query": text, "variables": variables or {}}, headers=headers)
    return status, data.decode()


def bounds():
    with lib.fresh() as server:
        for text, status, word in BOUNDS:
            got, data = graphql(server, text)
            lib.check(got == status and word in data, f"{text[:60]!r}: got {got} {data[:300]}, want {status} {word!r}")
        health = server.json("GET", "/health?verbose=1")[1]["graphql"]
        lib.check(health["refused"] >= 2 and health["unknown"] >= 1, f"what was not here is counted: {health}")
        lib.equal(server.request("POST", "/graphql", {"query": "query A { viewer { id } }", "operationName": ""})[0], 200, "no name of an operation")
        lib.equal(server.request("POST", "/graphql", b"[{}]", {"Content-Type": "application/json"})[0], 400, "a batch")
        lib.equal(server.request("POST", "/graphql", b"query { viewer { id } }", {"Content-Type": "application/graphql"})[0], 415, "another type")
        lib.equal(server.request("POST", "/graphql", {"query": "{ viewer { id } }"}, {"Origin": "http://elsewhere"})[0], 403, "another origin")


def address(server, headers=None, path="a/b.txt"):
    status, data = graphql(server, FILES.replace("a/b.txt", path), headers=headers)
    lib.equal(status, 200, "createRunFiles: " + data)
    found = urllib.parse.urlsplit(json.loads(data)["data"]["createRunFiles"]["files"][0]["uploadUrl"])
    return found.path, urllib.parse.parse_qs(found.query)


def put(server, path, query, method="PUT", body=b"bytes"):
    return server.request(method, path + "?" + urllib.parse.urlencode(query, doseq=True), body if method == "PUT" else None)[0]


def addresses():
    with lib.fresh() as server:
        graphql(server, UPSERT, {"n": "r"})
        graphql(server, UPSERT, {"n": "other"})
        path, query = address(server)
        other = json.loads(graphql(server, UPSERT, {"n": "other"})[1])["data"]["upsertBucket"]["bucket"]["id"]
        run = path.split("/")[2]
        for what, changed in (("another file", (path.replace("b.txt", "c.txt"), query)), ("another run", (path.replace(run, other), query)),
                              ("another size", (path, dict(query, n="5"))), ("another time", (path, dict(query, e="99999999999"))), ("another token", (path, dict(query, o="1"))),
                              ("another MAC", (path, dict(query, k="0" * 64))), ("no MAC", (path, {k: v for k, v in query.items() if k != "k"})),
                              ("a short MAC", (path, dict(query, k=query["k"][0][:10]))), ("a path upwards", (path.replace("a/b.txt", "a/%2e%2e/c"), query))):
            lib.check(put(server, *changed) in (400, 403), f"{what} is refused")
        lib.equal(put(server, path, query, method="GET"), 403, "another method")
        key = lib.text(server.logdir, "SELECT value FROM meta WHERE name = 'address_key'")
        for seconds, status, said in ((3600, 200, b""), (-2, 403, b"this address has expired")):  # signed here
            until = str(int(time.time()) + seconds)
            mac = hmac.new(key.encode(), "\n".join(["PUT", run, "a/b.txt", query["n"][0], until, "0"]).encode(), "sha256").hexdigest()
            got = server.request("PUT", f"{path}?" + urllib.parse.urlencode(dict(query, e=until, k=mac), doseq=True), b"bytes")
            lib.check(got[0] == status and said in got[2], f"an address that ends {seconds} s from now: {got}")
        lib.equal(put(server, path, query), 200, "the address itself")
        lib.equal(server.request("GET", f"/api/v1/runs/{run}/artifacts/a/b.txt")[2], b"bytes", "the file")
        server.request("DELETE", f"/api/v1/runs/{run}")
        lib.equal(put(server, path, query), 410, "a deleted run")


def tokens():
    with lib.fresh() as server:
        graphql(server, UPSERT, {"n": "r"})
        owner = {"Authorization": f"Bearer {server.owner_token()}"}
        made = {scope: server.json("POST", "/api/v1/tokens", {"name": scope, "scope": scope}, headers=owner)[1]["token"] for scope in ("read", "write")}
        reader, writer = ({"Authorization": "Bearer " + made[scope]} for scope in ("read", "write"))
        lib.equal(graphql(server, "{ viewer { id } }")[0], 401, "no token")
        lib.equal(graphql(server, "{ viewer { id } }", headers=reader)[0], 200, "viewer may be read")
        lib.equal(graphql(server, UPSERT, {"n": "x"}, headers=reader)[0], 403, "upsertBucket needs write")
        mixed = 'mutation { viewer { id } deleteRun(input: {id: "0"}) { success } }'
        lib.equal(graphql(server, mixed, headers=reader)[0], 403, "viewer beside deleteRun is write")
        lib.equal(server.request("POST", "/files/dptrack/p/r/file_stream", {}, reader)[0], 403, "the stream needs write")
        path, query = address(server, writer)
        lib.equal(put(server, path, query), 200, "an address needs no token")
        lib.equal(server.request("DELETE", "/api/v1/tokens/write", headers=owner)[0], 200, "revoked")
        lib.equal(put(server, path, query), 403, "the address of a revoked token")


def stream():
    """A request that is sent twice, and one that overlaps, add each line once."""
    with lib.fresh() as server:
        run = json.loads(graphql(server, UPSERT, {"n": "r"})[1])["data"]["upsertBucket"]["bucket"]["id"]

        def lines(first, last, **more):
            return {"files": {"wandb-history.jsonl": {"offset": first, "content": [json.dumps({"x": i, "_step": i, "_timestamp": 1.7e9 + i}) for i in range(first, last)]},
                              "output.log": {"offset": first, "content": [f"line {i}" for i in range(first, last)]}}, **more}
        for body in (lines(0, 5), lines(0, 5), lines(3, 8), {}, lines(8, 9, complete=True, exitcode=0), lines(8, 9, complete=True, exitcode=0)):
            lib.equal(server.request("POST", "/files/dptrack/p/r/file_stream", body)[0], 200, "the stream")
        rows = json.loads(server.request("GET", f"/api/v1/export/series.json?run={run}&key=x")[2])
        lib.equal([(row["step"], row["value"]) for row in rows], [(i, i) for i in range(9)], "each line once")
        found = server.json("GET", f"/api/v1/runs/{run}/console")[1]["lines"]
        lib.equal([line["text"] for line in found], [f"line {i}" for i in range(9)], "each console line once")
        for body, status in ((b"\x00", 400), ({"files": {"wandb-history.jsonl": {"offset": -5, "content": ["no JSON", 7, "[]", "{}"]}}}, 200), ({"files": 7}, 200)):
            lib.equal(server.request("POST", "/files/dptrack/p/r/file_stream", body, {"Content-Type": "application/json"})[0], status, f"the stream with {body}")
        lib.equal(server.request("POST", "/files/dptrack/p/r/file_stream", b"x", {"Content-Type": "application/vnd.wandb.filestream.v1+protobuf"})[0], 400, "a newer form")
        lib.equal(server.request("POST", "/files/dptrack/p/none/file_stream", {})[0], 404, "no run")


def named():
    """What cannot be stored as it came is a problem of the run and a line of the server; secrets of the config are hidden."""
    with lib.fresh() as server:
        config = {"api_key": {"value": "abcdef123456"}, "deep": {"value": {"password": "hunter22", "lr": 0.1}}, "pad_token": {"value": "<pad>"}}
        text = UPSERT.replace('config: "{}"', "config: $c").replace("($n: String)", "($n: String, $c: JSONString)")
        run = json.loads(graphql(server, text, {"n": "r", "c": json.dumps(config)})[1])["data"]["upsertBucket"]["bucket"]["id"]
        found = server.json("GET", "/api/v1/runs/" + run)[1]
        lib.equal(found["params"], {"api_key": "(hidden)", "deep.password": "(hidden)", "deep.lr": "0.1", "pad_token": "<pad>"}, "params")
        read = json.loads(graphql(server, '{ project(name: "p") { run(name: "r") { config } } }')[1])["data"]["project"]["run"]["config"]
        lib.equal((json.loads(read)["deep"], "abcdef123456" in read), ({"value": {"password": "(hidden)", "lr": 0.1}}, False), "the config that is read back")
        big, odd = "media/table/big.table.json", "media/object3D/odd.json"
        rows = [{"big": {"_type": "table-file", "path": big}, "_step": 0}, {"odd": {"_type": "object3D-file", "path": odd}, "_step": 1},
                {"none": {"_type": "image-file"}, "hist": {"_type": "histogram", "values": [1, 2], "bins": [0, 1]}, "_step": 2}]
        body = {"files": {"wandb-history.jsonl": {"offset": 0, "content": ["no JSON", "[]", *map(json.dumps, rows)]},
                          "output.log": {"offset": 0, "content": ["x" * 20000, 7, "short"]}}}
        for _ in range(2):  # what is repeated is named once
            lib.equal(server.request("POST", "/files/dptrack/p/r/file_stream", body)[0], 200, "the stream")
        table = json.dumps({"columns": ["a"], "data": [["x" * 1000]] * 9000}).encode()
        for path, content in ((big, table), (odd, b"{}")):
            at, query = address(server, path=path)
            lib.equal(put(server, at, query, body=content), 200, "an upload")
            lib.equal(server.request("GET", f"/api/v1/runs/{run}/artifacts/{path}")[2], content, "the file")
        problems = {p["text"]: p["count"] for p in server.json("GET", "/api/v1/runs/" + run)[1]["problems"]}
        lib.equal(problems, {"a line of wandb-history.jsonl that is no JSON object was left out": 2, "a line of output.log that is no text was left out": 1,
                             "a line of the console was cut to 16384 bytes": 1, "'none': a value of type image-file without a file was left out": 1,
                             "'hist': a histogram whose bins and counts do not match was left out": 1,
                             f"'big': {big} is larger than 8 MiB: it is in Files alone": 1, f"'odd': {odd} cannot be shown: it is in Files alone": 1}, "problems")
        said = server.stderr()
        lib.check(all(text in said for text in problems), f"the server's log: {said}")


def site():
    """The addresses that the client prints."""
    with lib.fresh() as server:
        run = json.loads(graphql(server, UPSERT, {"n": "r"})[1])["data"]["upsertBucket"]["bucket"]["id"]
        for path, to in (("/dptrack/p/runs/r", f"../../../?r={run}"), ("/dptrack/p", "../?e=p"), ("/authorize", "./")):
            status, headers, _ = server.request("GET", path)
            lib.equal((status, headers["Location"]), (302, to), path)
        lib.equal(server.request("GET", "/dptrack/none")[0], 404, "a project that is not there")
        server.json("POST", "/api/v1/tokens", {"name": "one", "scope": "read"}, headers={"Authorization": f"Bearer {server.owner_token()}"})
        status, _, form = server.request("GET", "/dptrack/p", headers={"Accept": "text/html"})
        lib.check(status == 401 and b'action="../login"' in form, "the sign-in form below a project's address")


def main():
    site()
    bounds()
    addresses()
    tokens()
    stream()
    named()
    lib.finish("hostile")


main()
