# SPDX-License-Identifier: Apache-2.0
"""Filters on duration, notes, last step and dates over REST; quotes in values; both ways of writing notes."""
import sys
sys.dont_write_bytecode = True
import os
import urllib.parse
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib

START = 1_795_000_000_000  # 2026-11-18 11:06:40 UTC
RUNS = {"short": (0, 90, "first try", 5), "long": (3600, 7200, "it's good", 50), "open": (86400, None, "", None)}


def fill(server):
    for name, (start, lasts, notes, last) in RUNS.items():
        body = {"experiment": "f", "name": name, "start_time": START + 1000 * start, "params": {"say": "it's", "word": 'a "b"'}}
        made, run = server.json("POST", "/api/v1/runs", body)
        lib.equal(made, 201, name)
        path = "/api/v1/runs/" + run["id"]
        if last is not None:
            points = [{"key": "loss", "step": s, "wall_time": 1.8e9, "value": 1.0} for s in range(1, last + 1)]
            lib.equal(server.json("POST", path + "/metrics", {"points": points})[0], 200, "points")
        change = {**({"notes": notes} if notes else {}),
                  **({"status": "finished", "end_time": START + 1000 * (start + lasts)} if lasts else {})}
        if change:
            lib.equal(server.json("PATCH", path, change)[0], 200, f"PATCH {change}")


def names(server, test, **more):
    query = urllib.parse.urlencode({"experiment": "f", "filter": test, **more})
    status, reply = server.json("GET", "/api/v1/runs?" + query)
    if not lib.equal(status, 200, f"{test}: {reply}"):
        return None
    return [r["name"] for r in reply["runs"]]


FOUND = {
    "duration > 100": {"long", "open"}, "duration <= 90": {"short"}, "duration = 7200": {"long"},
    "last_step >= 50": {"long"}, "last_step < 50": {"short"}, "last_step IS NULL": {"open"},
    "notes = 'first try'": {"short"}, "notes LIKE '%good'": {"long"}, "notes ILIKE '%TRY'": {"short"}, "notes IS NULL": {"open"},
    "notes = 'it''s good'": {"long"}, "notes = \"it's good\"": {"long"}, "params.say = 'it''s'": {"short", "long", "open"},
    "params.word = 'a \"b\"'": {"short", "long", "open"}, 'params.word = "a ""b"""': {"short", "long", "open"},
    "params.say = 'it'''": set(), "loss < 2": {"short", "long"}, "loss.max < 2 AND say LIKE 'it%'": {"short", "long"},
    "status = finished": {"short", "long"}, "say != never": {"short", "long", "open"}, "loss IS NULL": {"open"},
    "status IN ('FINISHED', running)": {"short", "long", "open"},
    "start_time < '2026-11-19'": {"short", "long"}, "start_time >= '2026-11-18 12:06:40'": {"long", "open"},
    "start_time = '2026-11-18T11:06:40Z'": {"short"}, "start_time = '2026-11-18T12:06:40+01:00'": {"short"},
    "start_time = '2026-11-18T11:06:40.000Z' OR end_time > '2026-11-18T14'": None,
    "end_time < '2026-11-18T11:08:11'": {"short"}, f"start_time = {START}": {"short"},
}
WRONG = {"duration > 'soon'": "a number", "start_time > 'soon'": "a date such as", "start_time > '2026-13-01'": "a date such as",
         "notes > ": "a value in quotes", "status = 'done'": "a status: running, finished, failed, killed, preempted, scheduled at",
         "status IN (failed, crashed)": "a status: running", "NOT status != ''": "a status: running",
         "name = 'it's'": "expected", "lasted > 3": "duration"}


def main():
    with lib.fresh() as server:
        fill(server)
        for test, want in FOUND.items():
            if want is not None:
                got = names(server, test)
                lib.equal(got and set(got) or set(), want, test)
        lib.equal(names(server, "", order_by="duration DESC")[1:], ["long", "short"], "order by duration: the open run is first")
        lib.equal(names(server, "", order_by="last_step"), ["short", "long", "open"], "order by last_step: missing ones last")
        lib.equal(names(server, "", order_by="notes DESC"), ["long", "short", "open"], "order by notes")
        for test, word in WRONG.items():
            status, reply = server.json("GET", "/api/v1/runs?" + urllib.parse.urlencode({"filter": test}))
            lib.check(status == 400 and word in reply["error"]["message"], f"{test}: {status} {reply}")
        run = server.json("GET", "/api/v1/runs?experiment=f&filter=" + urllib.parse.quote("name = 'open'"))[1]["runs"][0]["id"]
        lib.equal(server.json("PATCH", "/api/v1/runs/" + run, {"notes": "late"})[0], 200, "notes")
        lib.equal(names(server, "notes = 'late'"), ["open"], "a note written after the column was read")
        lib.equal(server.json("PATCH", "/api/v1/runs/" + run, {"notes": ""})[0], 200, "no notes")
        lib.equal(names(server, "notes IS NULL"), ["open"], "a note that was removed")
    lib.finish("filters")


main()
