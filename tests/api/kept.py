# SPDX-License-Identifier: Apache-2.0
"""Saved views and reports: names, editions, the default view of an experiment; unchanged after a restart and in a
backup, deleted with their experiment."""
import sys
sys.dont_write_bytecode = True
import json
import os
import subprocess
import tempfile
import lib

EDITIONS = 50


def refused(server, method, path, body, status, word):
    code, reply = server.json(method, "/api/v1" + path, body)
    lib.equal(code, status, f"{method} {path} {body}: {reply}")
    lib.check(word in reply.get("error", {}).get("message", ""), f"{method} {path}: {reply}, expected {word!r}")


def ask(server, method, path, body=None, want=200):
    code, reply = server.json(method, "/api/v1" + path, body)
    lib.equal(code, want, f"{method} {path}: {reply}")
    return reply


def names(server):
    lib.make_run(server, "a/one")
    lib.make_run(server, "two")
    view = ask(server, "POST", "/views", {"experiment": "a/one", "name": "été", "query": "?e=a/one&log"}, 201)
    lib.equal((view["query"], view["default"], view["edition"], len(view["editions"])), ("?e=a/one&log", False, 1, 1), "a view as created")
    refused(server, "POST", "/views", {"experiment": "a/one", "name": "été", "query": "?"}, 409, "already")
    ask(server, "POST", "/views", {"experiment": "two", "name": "été", "query": "?e=two"}, 201)
    ask(server, "POST", "/reports", {"experiment": "a/one", "name": "été", "text": "# x"}, 201)
    refused(server, "POST", "/views", {"experiment": "none", "name": "x", "query": "?"}, 404, "none")
    refused(server, "POST", "/views", {"name": "", "query": "?"}, 400, "name")
    refused(server, "POST", "/views", {"name": "x"}, 400, "query")
    refused(server, "POST", "/views", {"name": "x", "query": "?", "default": "yes"}, 400, "default")
    refused(server, "POST", "/views", {"name": "x", "query": "?" * 32769}, 400, "32768")
    refused(server, "GET", "/views/77", None, 404, "77")
    refused(server, "GET", "/views/0x1", None, 404, "0x1")
    refused(server, "GET", "/reports/" + view["id"], None, 404, view["id"])
    refused(server, "PATCH", "/views/" + view["id"], {"text": "x"}, 400, "text")
    lib.equal([v["name"] for v in ask(server, "GET", "/views?experiment=a/one")["views"]], ["été"], "views of one experiment")
    lib.equal([v["experiment"] for v in ask(server, "GET", "/views")["views"]], ["a/one", "two"], "views of all")
    return view["id"]


def deleted_runs(server):
    """The first page has the deleted runs of its experiment, the earliest 64, with the params of the listed ones."""
    params = lambda i: {f"p{k}": str(i) for k in range(3)}
    made = [ask(server, "POST", "/runs", {"experiment": "looks", "name": str(i), "start_time": 1000 + i, "params": params(i)}, 201)["id"]
            for i in range(70)]
    for run in made[:2] + made[3:]:
        ask(server, "DELETE", "/runs/" + run)
    page = ask(server, "GET", "/runs?include=keys&experiment=looks")
    lib.equal([r["id"] for r in page["runs"]], [made[2]], "the listed run")
    want = [{"id": made[i], "start_time": 1000 + i, "params": params(i)} for i in range(66) if i != 2][:64]
    lib.equal(page["deleted_runs"], want, "the deleted runs that started first")
    few = ask(server, "GET", "/runs?include=keys&experiment=looks&params_max=2&params=p2")
    lib.equal(sorted(few["runs"][0]["params"]), sorted(few["deleted_runs"][0]["params"]), "the same params")
    lib.equal(ask(server, "GET", "/runs?include=keys&experiment=two")["deleted_runs"], [], "an experiment without deleted runs")
    lib.equal("deleted_runs" in ask(server, "GET", "/runs?experiment=looks"), False, "without include=keys")


def preferred(server, first):
    second = ask(server, "POST", "/views", {"experiment": "a/one", "name": "b", "query": "?e=a/one&x=time", "default": True}, 201)["id"]
    at = lambda: {v["id"]: v["default"] for v in ask(server, "GET", "/views?experiment=a/one")["views"]}
    lib.equal(at(), {first: False, second: True}, "the default view")
    ask(server, "PATCH", "/views/" + first, {"default": True})
    lib.equal(at(), {first: True, second: False}, "only one view is the default")
    first_page = lambda query: ask(server, "GET", "/runs?include=keys" + query).get("default_view")
    lib.equal(first_page("&experiment=a/one"), {"id": first, "query": "?e=a/one&log"}, "the page gets the default view")
    lib.equal(first_page("&experiment=two"), None, "an experiment without a default")
    ask(server, "PATCH", "/views/" + first, {"default": False})
    deleted_runs(server)
    lib.equal(at(), {first: False, second: False}, "no default")
    refused(server, "PATCH", "/views/" + first, {"name": "b"}, 409, "already")
    lib.equal(ask(server, "PATCH", "/views/" + second, {"name": "c"})["editions"], ask(server, "GET", "/views/" + second)["editions"], "a new name adds no edition")
    gone = ask(server, "DELETE", "/views/" + second)
    lib.equal((gone["name"], gone["query"]), ("c", "?e=a/one&x=time"), "DELETE returns the deleted view")
    refused(server, "DELETE", "/views/" + second, None, 404, second)
    third = ask(server, "POST", "/views", {"experiment": "a/one", "name": "c", "query": "?"}, 201)["id"]
    lib.check(third not in (first, second), "the id of a deleted view is not reused")


def editions(server):
    report = ask(server, "POST", "/reports", {"experiment": "two", "name": "week", "text": "0"}, 201)["id"]
    for n in range(1, EDITIONS + 10):
        ask(server, "PATCH", "/reports/" + report, {"text": str(n)})
    now = ask(server, "GET", "/reports/" + report)
    lib.equal((now["text"], now["edition"]), (str(EDITIONS + 9), EDITIONS + 10), "the newest edition")
    lib.equal([e["edition"] for e in now["editions"]], list(range(11, EDITIONS + 11)), "the last editions are kept")
    lib.equal(ask(server, "GET", f"/reports/{report}?edition=20")["text"], "19", "an earlier edition")
    refused(server, "GET", f"/reports/{report}?edition=3", None, 404, "edition")
    lib.check(all("text" not in r for r in ask(server, "GET", "/reports")["reports"]), "lists contain no texts of reports")
    big = "é" * (2 << 20)
    lib.equal(ask(server, "PATCH", "/reports/" + report, {"text": big})["text"], big, "the largest report")
    refused(server, "PATCH", "/reports/" + report, {"text": big + "x"}, 400, "4194304")


def seen(server, path, body, etag, editing=None):
    """Writes as an author who has read what has this entity tag: the status, the reply, and the tag of what is stored then."""
    body = body if editing is None else {**body, "editing": editing}
    status, headers, data = server.request("PATCH", "/api/v1" + path, body, {"Content-Type": "application/json", **({"If-Match": etag} if etag else {})})
    return status, json.loads(data), headers.get("ETag")


def nothing_lost(server, path, name, tag_of):
    """Two authors of one text: the second is refused and gets what the first wrote; an author without If-Match writes, and the text
    before is an edition; what one author writes under one word is one. tag_of returns the entity tag of what is stored."""
    write = lambda text, etag, editing=None: seen(server, path, {name: text}, etag, editing)
    read = lambda edition="": ask(server, "GET", path + ("/notes" if name == "notes" else "") + (f"?edition={edition}" if edition else ""))
    count = lambda: [e["edition"] for e in read()["editions"]]
    first = tag_of()
    lib.equal(write("by A", first)[0], 200, "the author saw what is stored")
    status, reply, _ = write("by B", first)
    lib.equal((status, reply["error"]["field"], reply["stored"][name]), (409, "If-Match", "by A"), "the second author is refused")
    lib.equal(write("by B", '"0", ' + tag_of())[0], 200, "one of several tags")
    lib.equal(write("by C", "*")[0], 200, "any text")
    before = count()
    lib.equal(read(before[-2])[name], "by B", "the text before is an edition")
    for text in ("d", "du", "du bist"):
        lib.equal(write(text, tag_of(), "tab 1")[0], 200, f"saved as it is typed: {text}")
    write("E", None, "tab 2")
    lib.equal((len(count()), read(count()[-2])[name]), (len(before) + 2, "du bist"), "what one tab typed is one edition")
    place = path + ("/notes/" if name == "notes" else "/editions/")
    refused(server, "DELETE", f"{place}{count()[-1]}", None, 409, "newest")
    refused(server, "DELETE", place + "99999", None, 404, "99999")
    gone = count()[-2]
    lib.check(gone not in [e["edition"] for e in ask(server, "DELETE", f"{place}{gone}")["editions"]], "an edition is deleted")
    refused(server, "GET", path + ("/notes" if name == "notes" else "") + f"?edition={gone}", None, 404, "edition")
    return read()


def notes(server):
    run = lib.make_run(server, "two")
    tag = lambda: ask(server, "GET", f"/runs/{run}")["notes_etag"]
    nothing_lost(server, f"/runs/{run}", "notes", tag)
    status, reply = server.json("POST", "/api/2.0/mlflow/runs/set-tag", {"run_id": run, "key": "mlflow.note.content", "value": "by MLflow"})
    lib.equal((status, ask(server, "GET", f"/runs/{run}/notes")["notes"]), (200, "by MLflow"), f"a client that knows no editions: {reply}")
    for n in range(EDITIONS + 5):
        ask(server, "PATCH", f"/runs/{run}", {"notes": str(n)})
    held = ask(server, "GET", f"/runs/{run}/notes")
    lib.equal((held["notes"], len(held["editions"])), (str(EDITIONS + 4), EDITIONS), "the last editions are kept")
    lib.equal(ask(server, "GET", f"/runs/{run}/notes?edition={held['editions'][0]['edition']}")["notes"], "5", "the oldest of them")
    ask(server, "PATCH", f"/runs/{run}", {"notes": ""})
    lib.equal(ask(server, "GET", f"/runs/{run}/notes?edition={held['editions'][-1]['edition']}")["notes"], str(EDITIONS + 4), "cleared notes are kept")


def lasts(server, logdir):
    """Unchanged after a restart and in a backup; not listed for a deleted experiment."""
    everything = lambda s: [ask(s, "GET", f"/{k}/{x['id']}") for k in ("views", "reports") for x in ask(s, "GET", "/" + k)[k]]
    want = everything(server)
    server.stop()
    again = lib.Server(logdir)
    lib.equal(everything(again), want, "after a restart")
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        copy = os.path.join(folder, "copy")
        r = subprocess.run([lib.PROGRAM, "backup", "--logdir", logdir, copy], capture_output=True, text=True, timeout=60,
                           env={**os.environ, **lib.in_database(logdir)})
        lib.equal(r.returncode, 0, r.stderr)
        other = lib.Server(copy, alone=True)
        lib.equal(everything(other), want, "in a backup")
        other.stop()
    ask(again, "PATCH", "/experiments/1", {"name": "renamed"})
    lib.equal({v["experiment"] for v in ask(again, "GET", "/views")["views"]}, {"renamed", "two"}, "a renamed experiment keeps its views")
    ask(again, "DELETE", "/experiments/2")
    lib.equal(len(ask(again, "GET", "/reports")["reports"]), 1, "reports of a deleted experiment are not listed")
    ask(again, "POST", "/gc", {"older_than_days": 0})
    again.stop()
    lib.equal(lib.number(logdir, "SELECT count(*) FROM kept WHERE experiment_id = 2"), 0, "gc deletes the views and reports of an experiment")
    lib.equal(lib.number(logdir, "SELECT count(*) FROM kept_text WHERE kept_id NOT IN (SELECT id FROM kept)"), 0, "texts without a view")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as logdir:
        server = lib.Server(logdir)
        first = names(server)
        preferred(server, first)
        editions(server)
        for kind, name in (("views", "query"), ("reports", "text")):
            item = ask(server, "POST", "/" + kind, {"experiment": "two", "name": "shared", name: ""}, 201)["id"]
            path = f"/{kind}/{item}"
            if kind == "reports":
                nothing_lost(server, path, name, lambda: server.request("GET", "/api/v1" + path)[1]["ETag"])
            lib.equal(seen(server, path, {name: "x"}, '"0"')[0], 409, f"{kind}: another text was read")
        notes(server)
        lasts(server, logdir)
    lib.finish("kept")


main()
