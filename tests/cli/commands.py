# SPDX-License-Identifier: Apache-2.0
"""The commands give the same answer from the folder, through the server that holds it, and by URL; tables for people;
one line and exit code 2 for a usage error."""
import sys
sys.dont_write_bytecode = True
import contextlib
import csv
import fcntl
import io
import json
import os
import pty
import re
import signal
import socket
import sqlite3
import struct
import subprocess
import tempfile
import termios
import time
import unicodedata
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib
from calls import bad, good, run


def fill(server):
    ids = []
    for name, lr, top in (("slow", 0.01, 80.5), ("quick", 0.1, 91.25), ("lost", 0.8, "NaN")):
        run_id = lib.make_run(server, "digits", name, {"lr": lr, "model": "cnn"})
        points = [{"key": "epoch/top1", "step": e, "wall_time": 1795000000.5 + e, "value": v} for e, v in ((1, 50.0), (2, top))]
        lib.equal(server.json("POST", f"/api/v1/runs/{run_id}/metrics", {"points": points})[0], 200, "POST metrics")
        end = {"status": "failed" if name == "lost" else "finished", "end_time": 1895000000000}
        lib.equal(server.json("PATCH", f"/api/v1/runs/{run_id}", end)[0], 200, "PATCH run")
        ids.append(run_id)
    return ids


def same_everywhere(places, *args):
    """Returns the output of a command, which must be equal at each place."""
    outputs = [good(*args, *place) for place in places]
    lib.check(len(set(outputs)) == 1, f"{' '.join(args)}: differs between places: {[o[:200] for o in outputs]}")
    return outputs[0]


def ask(places, ids):
    got = json.loads(same_everywhere(places, "ls", "--json"))
    lib.equal({r["id"] for r in got["runs"]}, set(ids), "ls --json")
    text = same_everywhere(places, "ls", "digits", "--order-by", "name")
    lines = text.splitlines()
    lib.equal((len(lines), lines[0].split()[:3]), (4, ["id", "name", "experiment"]), "ls")
    lib.equal(len({line.index(w) for line, w in zip(lines, ("experiment", "digits", "digits", "digits"))}), 1, "ls: aligned")
    lib.check("digits" in same_everywhere(places, "ls", "--experiments"), "ls --experiments")
    rows = list(csv.DictReader(io.StringIO(same_everywhere(places, "ls", "--csv"))))
    lib.equal({r["run_id"] for r in rows}, set(ids), "ls --csv")
    shown = same_everywhere(places, "show", "quick")
    lib.check(ids[1] in shown and "91.25" in shown and "0.1" in shown, f"show: {shown}")
    lib.equal(json.loads(same_everywhere(places, "show", ids[0][:8], "--json"))["id"], ids[0], "show by the first digits")
    table = same_everywhere(places, "compare", "--experiment", "digits")
    lib.check("lr" in table.splitlines()[0] and "model" not in table.splitlines()[0], f"compare: differing params only: {table}")
    lib.check("epoch/top1 max" in table.splitlines()[0] and "91.25" in table, f"compare: goal: {table}")
    lib.check("failed" in table, "compare: status in words")
    bests = [float(line.split()[2]) for line in table.splitlines()[1:]]
    lib.equal(bests, sorted(bests, reverse=True), "compare: best first")
    two = json.loads(same_everywhere(places, "compare", "slow", "quick", "--json"))
    lib.equal([r["id"] for r in two["runs"]], ids[:2], "compare: runs in the order of the arguments")
    lr = next(p for p in two["params"] if p["key"] == "lr")
    lib.equal((lr["differs"], lr["values"]), (True, ["0.01", "0.1"]), "compare: lr")
    points = list(csv.DictReader(io.StringIO(same_everywhere(places, "export", "--series", "quick"))))
    lib.equal([(p["step"], p["value"]) for p in points], [("1", "50"), ("2", "91.25")], "export --series")
    lib.equal(len(same_everywhere(places, "export", "--series", "--experiment", "digits", "--jsonl").splitlines()), 6, "export --jsonl")
    lib.equal(len(json.loads(same_everywhere(places, "export", "--json", "--filter", "params.lr = 0.1"))), 1, "export --filter")


def zones(place):
    """A time that ls prints is read by a filter as the same time, whatever the zone of the machine (reported for
    Rello/analytics, issue 424, and clearml, issue 152)."""
    before, printed = os.environ.get("TZ"), set()
    for zone in ("UTC", "America/New_York", "Asia/Kolkata"):
        os.environ["TZ"] = zone
        rows = [re.split(r"  +", line) for line in good("ls", "digits", *place).splitlines()]
        started = {row[1]: row[rows[0].index("started")] for row in rows[1:]}
        printed.add(started["quick"])
        bare = started["quick"].rstrip("Z")
        for when in (started["quick"], bare):
            found = named(place, "--filter", f"attributes.start_time >= '{when}' AND attributes.start_time < '{when[:17]}59.999{when[19:]}'")
            lib.check("quick" in found, f"{zone}: {when!r} finds {found}")
    del os.environ["TZ"]
    if before is not None:
        os.environ["TZ"] = before
    lib.check(len(printed) == 1 and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", printed.pop()), f"UTC everywhere: {printed}")


def named(place, *args):
    return [r["name"] for r in json.loads(good("ls", "--json", "--order-by", "name", *args, *place))["runs"]]


def change(place, ids):
    """tag, rm and restore, by name, by id and by filter; a command that fails changes nothing."""
    good("tag", "slow", ids[1][:8], "team=vision", "k e=v=w", *place)
    rows = list(csv.DictReader(io.StringIO(good("tag", "--experiment", "digits", "--csv", *place))))
    lib.equal({(r["id"], r["tag"], r["value"]) for r in rows}, {(i, t, v) for i in ids[:2] for t, v in (("team", "vision"), ("k e", "v=w"))}, "tag --csv")
    good("tag", "slow", "--remove", "k e", *place)
    lib.equal(json.loads(good("tag", "slow", "--json", *place)), {ids[0]: {"team": "vision"}}, "tag --remove")
    lib.equal(len({line.index("vision") for line in good("tag", "slow", "quick", *place).splitlines() if "vision" in line}), 1, "tag: aligned")
    bad(["no tag"], "tag", "slow", "--remove", "nothing", *place)
    bad(["KEY=VALUE"], "tag", "slow", "=x", *place)
    bad(["--yes"], "rm", "slow", *place)
    bad(["nobody"], "rm", "slow", "nobody", "--yes", *place)
    lib.equal(named(place), ["lost", "quick", "slow"], "nothing was deleted")
    lib.check("1 run deleted" in good("rm", "slow", "--yes", *place), "rm by name")
    lib.equal(json.loads(good("rm", "--filter", "params.lr > 0.5", ids[1], "--yes", "--json", *place)), {"runs": ids[1:]}, "rm by id and filter")
    lib.equal(named(place), [], "all are deleted")
    lib.equal(named(place, "--deleted"), ["lost", "quick", "slow"], "ls --deleted")
    bad(["no run slow"], "rm", "slow", "--yes", *place)
    lib.check("nothing deleted" in good("rm", "--experiment", "digits", "--yes", *place), "rm of nothing")
    lib.equal(good("restore", "slow", "--yes", "--csv", *place), f"run_id,run_name\n{ids[0]},slow\n", "restore by name")
    lib.check("2 runs restored" in good("restore", "--experiment", "digits", "--yes", *place), "restore by experiment")
    lib.equal(named(place), ["lost", "quick", "slow"], "all are back")
    good("tag", "slow", "quick", "--remove", "team", *place)
    good("tag", "quick", "--remove", "k e", *place)


def on_terminal(columns, *args):
    """Returns the lines that a command prints on a terminal of that width."""
    lead, follow = pty.openpty()
    fcntl.ioctl(follow, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    r = subprocess.Popen([lib.PROGRAM, *args], stdout=follow, stderr=follow, env=lib.environment_of(args))
    os.close(follow)
    shown = b""
    with contextlib.suppress(OSError):
        while piece := os.read(lead, 65536):
            shown += piece
    os.close(lead)
    lib.equal(r.wait(60), 0, f"{args[0]} on a terminal")
    return shown.decode().splitlines()


def width(text):
    """Columns of a text by Unicode's width tables."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def wide(server, place):
    """A very long name moves no other row unless rows are cut; characters of two columns and of zero columns are
    counted as such."""
    names = ["n" * 490, "\u6f22\u5b57\u30ab\u30ca", "\ud55c\uad6d\uc5b4", "e\u0301tude", "plain"]
    for name in names:
        lib.equal(server.json("POST", "/api/v1/runs", {"experiment": "wide", "name": name})[0], 201, "POST /runs")
    title, *rows = good("ls", "--experiment", "wide", *place).splitlines()
    at = title.index("experiment")
    lib.equal(len(rows), len(names), "a line for each run")
    for row in rows:
        before, found, _ = row.partition(" wide ")
        lib.check(found and any(before.rstrip().endswith(name) for name in names), f"a whole name: {row}")
        lib.check("n" * 490 in row or width(before) + 1 == at < 200, f"experiments begin at {at}: {row}")
    for columns in (70, 100):
        lines = [line for line in on_terminal(columns, "ls", "--experiment", "wide", *place) if not line.startswith("(")]
        lib.check(all(width(line) <= columns for line in lines), f"{columns} columns: {lines}")
        lib.equal(len({width(line.partition(" wide")[0]) for line in lines if " wide" in line}), 1, f"rows are aligned: {lines}")


def terminal(place):
    """On a narrow terminal every row is one line, with a notice about dropped columns; names and status remain."""
    for columns in (50, 400):
        lines = on_terminal(columns, "compare", "--experiment", "digits", *place)
        rows = [line for line in lines if not line.startswith("(")]
        lib.equal(len(rows), 4, f"{columns} columns: {lines}")
        lib.check(all(len(line) <= columns for line in rows), f"{columns} columns: {lines}")
        lib.check(all(word in "".join(rows) for word in ("slow", "quick", "lost", "finished", "failed")), f"{columns} columns: {lines}")
        lib.equal(len(lines) > 4, columns == 50, f"the notice about dropped columns: {lines}")


def quoted(server, place):
    """Names and notes with special characters."""
    run_id = lib.make_run(server, "odd", "it's mine", {})
    server.json("PATCH", f"/api/v1/runs/{run_id}", {"notes": "first\n\n\x1b[31mred"})
    shown = good("show", "it's mine", *place)
    lib.check("notes\n  first\n\n   [31mred\n" in shown, f"notes: {shown!r}")
    good("rm", "it's mine", "--yes", *place)
    run_id = lib.make_run(server, "odd", "\x1b[31m\u009b1mred\u202e\u2066\u2028", {"a": "\u009d"})
    other = lib.make_run(server, "odd", "b\u009b", {"a": "\x1b]0;x"})
    for one in (run_id, other):
        points = [{"key": "phase/step", "step": step, "value": 0.5, "rank": 0} for step in range(1, 100)]
        lib.equal(server.json("POST", f"/api/v1/runs/{one}/metrics", {"points": points})[0], 200, "points")
    for command in (("show", run_id), ("ls", "odd"), ("compare", run_id, other), ("compare", "--why", run_id, other)):
        shown = good(*command, *place)
        lib.check("red" in shown, f"{command}: {shown!r}")
        lib.check(not set(shown) & set("\x1b\x9b\x9d\u202e\u2066\u2028"), f"{command}: {shown!r}")
    good("rm", run_id, other, "--yes", *place)


def mechanism(server, place):
    """Params that follow from others, or say how a program was started, are no columns of compare and no change of their own."""
    params = {"lr": "0.1", "world_size": "1", "shard_degree": "1", "threads": "2", "resume": "auto"}
    runs = [lib.make_run(server, "ranks", "one", params), lib.make_run(server, "ranks", "two", {"lr": "0.1", "world_size": "2", "shard_degree": "2", "threads": "1"}),
            lib.make_run(server, "ranks", "threads", {**params, "threads": "1"})]
    for one in runs:
        points = [{"key": "phase/step", "step": step, "value": 0.5, "rank": 0} for step in range(1, 30)]
        lib.equal(server.json("POST", f"/api/v1/runs/{one}/metrics", {"points": points})[0], 200, "points")
    head = good("compare", "--experiment", "ranks", *place).splitlines()[0].split()
    lib.check("world_size" in head and not {"shard_degree", "threads", "resume"} & set(head), f"compare: {head}")
    lib.check("threads" in good("compare", runs[0], runs[2], *place).splitlines()[0], "a param that differs alone is a column")
    why = good("compare", "--why", runs[0], runs[1], *place)
    lib.check("world_size 1 -> 2" in why and "at once" not in why and "resume" not in why, f"--why: {why}")


def layers(server, place):
    """Per-layer series are one line of show, and no part of a CSV export, unless --all is given."""
    run_id = lib.make_run(server, "deep", "layered", {"a": 'x,"y"\nz'})
    keys = [f"grad_norm/l{i}.weight" for i in range(5)] + ['dead_units/a,"b"', "epoch/top1", "grad_norm", "train/loss"]
    points = [{"key": key, "step": step, "value": float(step)} for key in keys for step in (1, 2, 3)]
    points.append({"key": "tokens", "step": 2**53 + 1, "value": 1234567890123})
    lib.equal(server.json("POST", f"/api/v1/runs/{run_id}/metrics", {"points": points})[0], 200, "points")
    shown = good("show", "layered", *place)
    lib.check("grad_norm/… (5 series: --all)" in shown and "dead_units/… (1 series: --all)" in shown and "l3.weight" not in shown, shown)
    lib.check(re.search(r"\ntokens +1234567890123 +1234567890123 +9007199254740993 ", shown), f"a step has all its digits: {shown}")
    order = [shown.index(word) for word in ("status", "goal        epoch/top1 3, best 3 at epoch 3", "metric ", "train/loss", "param ")]
    lib.equal(order, sorted(order), f"order of show: {shown}")
    lib.check(all(key in good("show", "layered", "--all", *place) for key in keys), "show --all")
    for args, column in ((("--experiment", "deep"), None), (("--series", "layered"), 2)):
        r = run("export", *args, *place)
        lib.equal((r.returncode, "--all exports them" in r.stderr), (0, True), f"export: {r.stderr}")
        some, every = (list(csv.reader(io.StringIO(text))) for text in (r.stdout, good("export", "--all", *args, *place)))
        if column is None:
            kept = [i for i, name in enumerate(every[0]) if not re.match(r"metrics\.(grad_norm|dead_units)/", name)]
            lib.equal(some, [[row[i] for i in kept] for row in every], "columns of export")
            lib.equal(len(every[0]) - len(kept), 6 * 8, "columns that are left out")
            for more, wanted in (("", some), ("&all=1", every)):
                text = server.request("GET", "/api/v1/export/runs.csv?experiment=deep" + more)[2].decode()
                lib.equal(list(csv.reader(io.StringIO(text))), wanted, f"runs.csv{more}, the same over REST")
        else:
            lib.equal(some, [row for row in every if not re.match("(grad_norm|dead_units)/", row[column])], "rows of export --series")
            lib.equal(len(every) - len(some), 6 * 3, "rows that are left out")
    lib.equal(len(good("export", "--series", "layered", "--key", keys[0], *place).splitlines()), 4, "a series that is named")
    lib.equal(good("export", "--jsonl", "--series", "layered", *place).count("l3.weight"), 3, "JSON has all")
    good("rm", "layered", "--yes", *place)


def prefixes(server, place):
    """A prefix of an id names its run in every route; where several begin so, one line lists them."""
    ids = ["abcd" + digit * 28 for digit in "012345"] + ["abce" + "0" * 28]
    for run_id in ids:
        lib.equal(server.json("POST", "/api/v1/runs", {"id": run_id, "experiment": "twins", "name": f"t{run_id[4]}"})[0], 201, "POST runs")
    for path in ("", "/alerts", "/console", "/diagnosis", "/artifacts"):
        want, got = (server.request("GET", f"/api/v1/runs/{run}{path}") for run in (ids[6], "abce"))
        lib.equal((got[0], got[2]), (want[0], want[2]), f"GET runs/abce{path}")
        status, answer = server.json("GET", f"/api/v1/runs/abcd{path}")
        lib.check(status == 400 and all(i in json.dumps(answer) for i in ids[:5]) and "and more" in json.dumps(answer), f"{path}: {status} {answer}")
    for query in ("runs?run=%s", "runs?run=%s&run=" + ids[0], "compare?run=%s&run=abcd1",
                  "export/series.csv?run=%s", "export/series.tfevents?run=%s", "series?run=%s"):
        want, got = (server.request("GET", "/api/v1/" + query % run) for run in (ids[6], "abce"))
        lib.equal((got[0], got[2]), (want[0], want[2]), f"GET {query % 'abce'}")
        lib.equal(got[0], 200, f"{query}: {got[2]}")
        status, answer = server.json("GET", "/api/v1/" + query % "abcd")
        lib.check(status == 400 and ids[0] in json.dumps(answer), f"{query}: {status} {answer}")
        lib.equal(server.json("GET", "/api/v1/" + query % "abcf")[0], 404, query % "abcf")
        lib.equal(server.json("GET", "/api/v1/" + query % "abc")[0], 400, query % "abc")
    want, got = (server.json("POST", "/api/v1/compare", {"runs": [run, "abcd1"]}) for run in (ids[6], "abce"))
    lib.equal((got[0], got), (200, want), "POST compare")
    lib.equal(server.json("PUT", "/api/v1/runs/abce/tags/k", {"value": "v"})[0], 200, "a tag by prefix")
    lib.equal(server.json("GET", "/api/v1/runs/" + ids[6])[1]["tags"], {"k": "v"}, "that tag")
    for missing in ("abcf", "abc", "ABCE", "abce" + "1" * 28):
        lib.equal(server.json("GET", f"/api/v1/runs/{missing}/alerts")[0], 404, f"GET runs/{missing}/alerts")
    bad([ids[0], ids[4], "and more", "give more digits"], "show", "abcd", *place)
    lib.check(ids[1] in good("show", "abcd1", *place), "show by a longer prefix")
    good("rm", *ids, "--yes", *place)


def closed_output(folder):
    """A reader that ends early, as `head` does, ends a command quietly, also where the caller ignores SIGPIPE."""
    for args in (("ls", "--logdir", folder), ("--help", "all"), ("export", "--logdir", folder)):
        for ignored in (False, True):
            before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            try:
                reader, writer = os.pipe()
                os.close(reader)
                p = subprocess.run([lib.PROGRAM, *args], stdout=writer, stderr=subprocess.PIPE, restore_signals=not ignored,
                                   env=lib.environment_of(args), check=False)
                os.close(writer)
            finally:
                signal.signal(signal.SIGPIPE, before)
            lib.equal((p.returncode, p.stderr), (-signal.SIGPIPE, b""), f"{args} without a reader")


def misuse(folder):
    place = ("--logdir", folder)
    bad(["serve?"], "serv")
    bad(["unknown command"], "zzzzzz")
    bad(["--limit?"], "ls", "--limitt", "3", *place)
    bad(["--limit 0"], "ls", "--limit", "0", *place)
    bad(["needs a value"], "ls", "--filter")
    bad(["takes no value"], "ls", "--json=1", *place)
    for flag, args in (("--events", ("export", *place)), ("--db", ("ls", *place)), ("--logdir", ("ls",)), ("--artifacts", ("serve", "--port", "0", *place))):
        bad([flag, "needs a value"], *args, flag, "")
    bad(["no folder"], "ls", "--logdir", folder + "/none")
    bad(["no folder", "none/deeper"], "token", "add", "x", "--scope", "read", "--logdir", folder + "/none/deeper")
    bad(["backup", "no folder", "create it"], "backup", folder + "/none/copy.db", *place)
    bad(["no folder"], "sync", "--url", "http://127.0.0.1:1", "--logdir", folder + "/none")
    bad(["no run nobody below"], "sync", "nobody", "--url", "http://127.0.0.1:1", *place)
    bad(["--expires 2001-01-01", "past"], "token", "add", "x", "--scope", "read", "--expires", "2001-01-01", *place)
    bad(["no run"], "show", "nobody", *place)
    bad(["expected a run"], "show", *place)
    bad(["--scope god", "read", "write", "admin"], "token", "add", "x", "--scope", "god", *place)
    bad(["filter"], "ls", "--filter", "metrics.", *place)
    bad(["http://"], "ls", "--url", "ftp://x")
    for url in ("http://", "https:///x", "http://:80", "http://?x"):
        bad([f'"{url}" is not an http:// or https:// URL'], "ls", "--url", url)
    bad(["http://127.0.0.1:99999: not a valid URL"], "ls", "--url", "http://127.0.0.1:99999")
    bad(["127.0.0.1:1"], "ls", "--url", "http://127.0.0.1:1", code=1)
    bad(["127.0.0.1:1", "running there"], "show", "quick", "--url", "http://127.0.0.1:1", code=1)
    bad(["--json and --csv"], "ls", "--json", "--csv", *place)
    bad(["one of --csv, --json and --jsonl"], "export", "--json", "--jsonl", *place)
    for choice in (("--key", "train/loss"), ("--rank", "0"), ("--segments", "all")):
        bad([choice[0], "--series"], "export", *choice, *place)
    for printed in ("--series", "--jsonl", "--json", "--csv"):
        bad(["--events excludes"], "export", "--events", folder + "/out", printed, *place)
    bad(["--metric nope"], "compare", "--experiment", "digits", "--metric", "nope", *place)
    bad(["cannot read", "none"], "import", folder + "/none", *place)
    bad(["contains no event files"], "import", lib.SOURCE + "/schema", *place)
    bad(["--url and --logdir"], "ls", "--url", "http://127.0.0.1:1", *place)
    lib.equal(run().returncode, 2, "no command")
    for args in (["--help"], ["ls", "--help"], ["serve", "--help"], ["--version"]):
        lib.check("dptrack" in good(*args), " ".join(args))
    names = re.findall(r"^  (?!dptrack )(\w+) +[a-z]", good("--help"), re.M)
    lib.equal(len(names), 22, f"commands in --help: {names}")
    for name in names:
        text = good(name, "-h")
        lib.equal(text, good(name, "--help"), f"{name} -h")
        lib.check(max(map(len, text.splitlines()), default=0) <= 108, f"{name} --help: a line of more than 108 columns")
        lib.equal(text, good("help", name), f"help {name}")
        lib.check(f"Examples\n  " in text and f"dptrack {name}" in text.partition("Examples")[2], f"{name} --help: no example")
    for text in (good("--help"), good("--help", "all")):
        lib.check(set(names) <= set(re.findall(r"\w+", text)), "commands in the help")
    lib.check(max(map(len, run("--help", columns=80).stdout.splitlines())) <= 80, "--help of 80 columns")
    lib.check(len(good("--help").splitlines()) <= 52, "--help fits a screen")
    for word, expected in (("csv", "dptrack ls:"), ("--expires", "dptrack token:"), ("perfetto", "dptrack trace:"), ("order_by", "--order-by KEYS")):
        lib.check(expected in good("--help", word), f"--help {word}")
    lib.check("--limit" in good("ls", "--help", "at_most") and "--json" not in good("ls", "--help", "at_most"), "ls --help WORD")
    bad(["zork", "dptrack --help"], "--help", "zork")
    bad(["zork", "dptrack ls --help"], "ls", "--help", "zork")
    lib.equal({good(*args) for args in (["-V"], ["--version"], ["version"])}, {good("--version")}, "version")


@contextlib.contextmanager
def stopped():
    """Commands that wait for a server that does not answer exit with one line that reports it."""
    with lib.fresh(alone=True) as server:  # with a database, commands need no server
        server.process.send_signal(signal.SIGSTOP)
        asked = [(place, subprocess.Popen([lib.PROGRAM, "ls", *place], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
                 for place in (("--url", server.url), ("--logdir", server.logdir))]
        yield
        for place, process in asked:
            out, errors = process.communicate(timeout=60)
            lib.equal((process.returncode, out, errors.count("\n")), (1, "", 1), f"an unresponsive server, {place}: {errors!r}")
            lib.check(server.url in errors and "no answer for 30 s" in errors, f"an unresponsive server, {place}: {errors!r}")
        server.process.send_signal(signal.SIGCONT)


def ending_server(folder):
    """A server that holds the store while it ends, but accepts no connection any more: commands wait for its end."""
    with open(os.path.join(folder, "dptrack.db.lock"), "w", encoding="utf-8") as lock, socket.create_server(("127.0.0.1", 0)) as closed:
        lock.write(f"pid {os.getpid()}\naddress http://127.0.0.1:{closed.getsockname()[1]}\ntoken x\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        closed.close()
        p = subprocess.Popen([lib.PROGRAM, "ls", "--logdir", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        lib.equal(p.poll(), None, "a command waits for the end of a server")
    out, errors = p.communicate(timeout=60)
    lib.equal((p.returncode, errors, "quick" in out), (0, "", True), "a command after the end of a server")


def silent(folder):
    """A run that is killed, and that a command saw running, is killed for the commands of later minutes, without a server."""
    runs = os.path.join(folder, "silent")
    recorder = lib.Recorder(runs, url="")
    recorder.say("log 1 loss 1")
    recorder.say("flush")
    recorder.process.kill()
    recorder.process.wait()
    show = lambda: json.loads(good("ls", "--json", "--logdir", runs))["runs"][0]
    lib.equal(show()["status"], "running", "a run that was killed a moment ago")
    if lib.IN_DATABASE:
        return
    with contextlib.closing(sqlite3.connect(os.path.join(runs, "dptrack.db"))) as db, db:
        db.execute("UPDATE run SET last_ms = last_ms - 600000")
    seen = show()
    lib.equal((seen["status"], seen["status_inferred"]), ("killed", True), "a run that is silent for ten minutes")
    lib.check(seen["end_time"] and seen["end_time"] - seen["start_time"] < 60000, f"it lived until its last record: {seen}")


def main():
    with stopped():
        rest()
    lib.finish("commands")


def rest():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        runs = os.path.join(folder, "runs")
        server = lib.Server(runs)
        ids = fill(server)
        ask([("--logdir", runs), ("--url", server.url), (f"--url={server.url}/",)], ids)
        zones(("--logdir", runs))
        change(("--logdir", runs), ids)
        change(("--url", server.url), ids)
        terminal(("--logdir", runs))
        lib.equal(server.stop(), 0, "exit code")
        before = sorted(os.listdir(runs))
        ask([("--logdir", runs)], ids)
        lib.equal([n for n in sorted(os.listdir(runs)) if n not in before], [], "files left by commands")
        change(("--logdir", runs), ids)
        misuse(runs)
        closed_output(runs)
        ending_server(runs)
        silent(folder)
        server = lib.Server(runs)
        quoted(server, ("--logdir", runs))
        mechanism(server, ("--logdir", runs))
        layers(server, ("--logdir", runs))
        prefixes(server, ("--logdir", runs))
        wide(server, ("--logdir", runs))
        lib.equal(server.stop(), 0, "exit code")


main()
