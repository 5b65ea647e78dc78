# SPDX-License-Identifier: Apache-2.0
"""Runs as lines of JSON (web/cli/import/json_lines.h), imported from a file and from standard input: every kind of
line is imported, a repeat changes nothing, a run that has grown gains its new points, and an invalid line is reported
with its number and nothing of its run is imported."""
import sys
sys.dont_write_bytecode = True
import base64
import json
import os
import pty
import subprocess
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "api"))
import lib

RUN = "ab" * 16
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAD0lEQVR4nGNk+M/AwMAAAAUGAQJ2cvFQAAAAAElFTkSuQmCC")
HEAD = {"dptrack_runs": 1}
BEGIN = {"run": {"id": RUN, "experiment": "told", "name": "first", "start": 1700000000}}
END = {"end": ["failed", 1700000100.5]}


def import_lines(into, *lines, code=0, path="-", more=()):
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    if path != "-":
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    environment = {k: v for k, v in os.environ.items() if k not in ("DPTRACK_TOKEN", "DPTRACK_URL")}
    r = subprocess.run([lib.PROGRAM, "import", path, "--logdir", into, *more], input=text, capture_output=True, text=True, timeout=120, env=environment)
    lib.equal(r.returncode, code, f"{lines[-1]}: {r.stdout} {r.stderr}")
    return r.stdout if code == 0 else r.stderr


def get(server, target):
    status, _, body = server.request("GET", target)
    lib.equal(status, 200, f"{target}: {body[:200]!r}")
    return body


def points(server):
    rows = get(server, f"/api/v1/export/series.jsonl?run={RUN}").decode().splitlines()
    return [(p["key"], p["step"], p["wall_time"], p["value"]) for p in map(json.loads, rows)]


def all_kinds(folder):
    picture, note = os.path.join(folder, "picture.png"), os.path.join(folder, "note.txt")
    for path, data in ((picture, PNG), (note, b"kept\n")):
        with open(path, "wb") as f:
            f.write(data)
    at = 1700000001.25
    return [HEAD, BEGIN,
            {"param": ["lr", 0.1]}, {"param": ["deep.list", [1, "x"]]}, {"param": ["name", "ünï"]}, {"tag": ["team", "a"]},
            {"environment": ["host", "there"]}, {"code": ["commit", "0123abc"]}, {"note": "# said"},
            {"points": [["loss", 1, at, 0.1], ["loss", 2, at + 1, "NaN"], ["odd", -3, at + 1, "-Infinity"], ["loss", 3, at + 2, True]]},
            {"image": ["picture", 2, at, {"file": picture, "width": 2, "height": 1}]},
            {"image": ["lost", 2, at, {"file": picture + "x", "width": 2, "height": 1}]},
            {"text": ["words", 2, at, {"text": "a *b*"}]},
            {"histogram": ["weights", 2, at, {"values": [1, 2], "bins": [0, 0.5, 1]}]},
            {"table": ["rows", 2, at, {"columns": ["a", "b"], "data": [[1, "x"], [None, 2.5]]}]},
            {"console": [2, at, "a line"]}, {"file": ["notes/note.txt", note]},
            {"left_out": "something of theirs"}, {"end": ["running", 1700000010]}]


def read_run(server):
    run = json.loads(get(server, "/api/v1/runs/" + RUN))
    media = sorted((m["key"], m["kind"], m["step"]) for m in json.loads(get(server, f"/api/v1/runs/{RUN}/media"))["media"])
    console = [(x["stream"], x["text"]) for x in json.loads(get(server, f"/api/v1/runs/{RUN}/console"))["lines"]]
    return {k: run.get(k) for k in ("name", "experiment", "status", "start_time", "end_time", "params", "tags", "notes")}, media, console, sorted(points(server), key=str)


def imports_every_kind(folder):
    into, lines = os.path.join(folder, "into"), all_kinds(folder)
    here = ("--files-from", folder)
    out = import_lines(into, *lines, more=here)
    lib.check("1 run, 4 points, 1 file" in out and "something of theirs" in out and "lost" in out, out)
    lib.check("0 files" in import_lines(into, *lines, path=os.path.join(folder, "told.jsonl")), "a repeat, of a file")
    server = lib.Server(into)
    facts, media, console, got = read_run(server)
    lib.equal(facts, {"name": "first", "experiment": "told", "status": "running", "start_time": 1700000000000, "end_time": None,
                      "params": {"lr": "0.1", "deep.list": '[1,"x"]', "name": "ünï"}, "tags": {"team": "a"}, "notes": "# said"}, "the run")
    lib.equal(media, [("picture", "image", 2), ("rows", "table", 2), ("weights", "histogram", 2), ("words", "text", 2)], "media")
    lib.equal(console, [("stderr", "a line")], "the console")
    lib.equal(got, sorted([("loss", 1, 1700000001.25, 0.1), ("loss", 2, 1700000002.25, "NaN"),
                           ("loss", 3, 1700000003.25, 1), ("odd", -3, 1700000002.25, "-Infinity")], key=str), "points")
    lib.equal(get(server, f"/api/v1/runs/{RUN}/artifacts/notes/note.txt"), b"kept\n", "the file")
    import_lines(into, *lines, more=here)
    lib.equal(read_run(server), (facts, media, console, got), "a repeat while a server holds the store")
    more = lines[:-1] + [{"points": [["loss", 4, 1700000009, 0.25]]}, {"final": ["best", 4, 1700000100, 0.05]}, END]
    import_lines(into, *more, more=here)
    until = time.monotonic() + 120
    while json.loads(get(server, "/api/v1/runs/" + RUN))["status"] == "running" and time.monotonic() < until:
        time.sleep(0.05)  # the server follows the folder
    facts, _, _, now = read_run(server)
    lib.equal(sorted(set(now) - set(got), key=str), [("best", 4, 1700000100, 0.05), ("loss", 4, 1700000009, 0.25)], "the new points of a run that has grown")
    lib.equal((len(now), facts["status"], facts["end_time"]), (len(got) + 2, "failed", 1700000100500), "its end")
    other = "cd" * 16
    import_lines(into, HEAD, {"run": dict(BEGIN["run"], id=other)}, {"deleted": True}, END)
    lib.check(json.loads(get(server, "/api/v1/runs/" + other))["deleted"], "a run that was deleted on the server")
    lib.equal(server.stop(), 0, "exit code")


def models(folder):
    """Experiments, data sets, logged models, what a run made, versions with aliases, alerts, overwritten lines, a resumed run: as MLflow's
    routes and ours return them; a repeat changes nothing."""
    into, other, net = os.path.join(folder, "models"), "cd" * 16, "m-" + "1b" * 16
    note = os.path.join(folder, "note.txt")
    lines = [{**HEAD, "source": "a made one"}, {"experiment": {"name": "told", "tags": {"owner": "ada", "n": 3}}},
             {"registered_model": {"name": "reg", "description": "d", "tags": {"t": "v"}, "aliases": {"best": "3"}, "versions": [
                 {"version": "1", "run_id": RUN, "path": "notes", "description": "first"}, {"version": "3", "source": "models:/" + net, "run_id": RUN, "tags": {"k": "v"}}]}},
             {"logged_model": {"model_id": net, "experiment": "told", "name": "net", "model_type": "t", "source_run_id": RUN, "status": "LOGGED_MODEL_UPLOAD_FAILED",
                               "params": {"p": 1}, "tags": {"t": "v", "mlflow.modelVersions": "x"}, "points": [[RUN, "acc", 3, 1700000001.5, 0.5, "set", "abc"]], "files": folder + "/net"}},
             BEGIN, {"name": "second"}, {"param": ["n", 3]}, {"param": ["f", 1e-05]}, {"param": ["b", True]}, {"points": [["loss", 1, 1700000001, 1], ["loss", 2, 1700000002, 2]]},
             {"input": {"name": "cifar", "digest": "0a1b", "source_type": "http", "source": "{}", "schema": None, "tags": {"mlflow.data.context": "train"}}},
             {"output": [net, 4]}, {"file": ["notes/note.txt", note]}, {"console": [1, 5, "10 %", True]}, {"console": [1, 6, "20 %"]},
             {"alert": ["WARN", 7, 1700000003, "high", "the loss"]}, {"end": ["failed", 1700000010, "exit code 3"]},
             {"run": dict(BEGIN["run"], name="second", part="again", segment=1, first_step=2)}, {"points": [["loss", 2, 1700000020, 5]]}, {"end": ["finished", 1700000030]},
             {"run": dict(BEGIN["run"], id=other, name="gone")}, {"output": [net, 1]}, {"deleted": True}, END]
    os.makedirs(folder + "/net/deep", exist_ok=True)
    for path in (note, folder + "/net/deep/data"):
        with open(path, "w", encoding="ascii") as f:
            f.write("kept\n")
    seen = []
    for _ in range(2):
        said = import_lines(into, *lines, more=("--files-from", folder))
        lib.check("3 runs, 3 points" in said and "from a made one" in said and "skipped" not in said, said)
        server = lib.Server(into)
        ask = lambda route: json.loads(get(server, "/api/2.0/mlflow/" + route))
        experiment, run, model = ask("experiments/get-by-name?experiment_name=told")["experiment"], ask("runs/get?run_id=" + RUN)["run"], ask("logged-models/" + net)["model"]
        version, stored = ask("registered-models/alias?name=reg&alias=best")["model_version"], json.loads(get(server, "/api/v1/runs/" + RUN))
        lib.equal({t["key"]: t["value"] for t in experiment["tags"]}, {"owner": "ada", "n": "3"}, "tags of the experiment")
        dataset, = run["inputs"]["dataset_inputs"]
        lib.equal([dataset["dataset"]["name"], dataset["dataset"]["digest"], dataset["tags"]], ["cifar", "0a1b", [{"key": "mlflow.data.context", "value": "train"}]], "the data set")
        lib.equal([(o["model_id"], int(o["step"])) for o in run["outputs"]["model_outputs"]], [(net, 4)], "what the run made")
        lib.equal([model["info"]["name"], model["info"]["status"], model["data"]["params"], sorted(t["key"] for t in model["info"]["tags"])],
                  ["net", "LOGGED_MODEL_UPLOAD_FAILED", [{"key": "p", "value": "1"}], ["mlflow.modelVersions", "t"]], "the model")
        lib.equal([(m["key"], m["step"], m["timestamp"], m["value"], m["dataset_name"]) for m in model["data"]["metrics"]], [("acc", 3, 1700000001500, 0.5, "set")], "its points")
        lib.equal([version["version"], version["source"], version["tags"]], ["3", "models:/" + net, [{"key": "k", "value": "v"}]], "the version")
        lib.equal(get(server, "/model-versions/get-artifact?name=reg&version=1&path=note.txt"), b"kept\n", "a version's file, of its run")
        lib.equal(get(server, "/model-versions/get-artifact?name=reg&version=3&path=deep/data"), b"kept\n", "a version's file, of its model")
        lib.equal([stored["name"], stored["status"], stored["params"]], ["second", "finished", {"n": "3", "f": "1e-05", "b": "true"}], "the run")
        lib.equal([(a["level"], a["step"], a["title"], a["text"]) for a in json.loads(get(server, f"/api/v1/runs/{RUN}/alerts"))["alerts"]], [("warning", 7, "high", "the loss")], "the alert")
        lib.equal([x["text"] for x in json.loads(get(server, f"/api/v1/runs/{RUN}/console"))["lines"]][-1], "20 %", "a line that overwrites another")
        lib.equal([(p[1], p[3]) for p in points(server) if p[0] == "loss"], [(1, 1), (2, 5)], "points of a resumed run hide older ones")
        lib.check(json.loads(get(server, "/api/v1/runs/" + other))["deleted"], "the deleted run")
        seen.append((points(server), stored["tags"], model["info"]["last_updated_timestamp_ms"] > 0))
        lib.equal(server.stop(), 0, "exit code")
    lib.equal(seen[0], seen[1], "a repeat")


def marked(folder):
    """A byte order mark, which editors and PowerShell write, is no part of the text; Python's bare NaN is a number."""
    path = os.path.join(folder, "marked.jsonl")
    with open(path, "w", encoding="utf-8-sig") as f:
        f.write("\n".join([json.dumps({"dptrack_runs": 1}), json.dumps(BEGIN), '{"points": [["loss", 1, 5, NaN], ["loss", 2, 6, -Infinity]]}',
                           '{"param": ["top", Infinity]}', '{"end": ["finished", 7]}', ""]))
    r = subprocess.run([lib.PROGRAM, "import", path, "--logdir", path + "-into"], capture_output=True, text=True, timeout=60)
    lib.check("1 run, 2 points" in r.stdout, f"a file with a mark: {r}")


def refused(folder):
    into = os.path.join(folder, "refused")
    cases = [(["{}"], 2, "the first line is not"), ([HEAD, BEGIN], 1, "has no \"end\""), ([HEAD, BEGIN, BEGIN], 1, "line 3: the previous run"),
             ([HEAD, {"tag": ["a", "b"]}], 1, "line 2: \"tag\" needs a run"), ([HEAD, BEGIN, "{torn"], 1, "line 3: JSON, column 5: string or '}' expected"),
             ([HEAD, {"note": "a\0b"}], 1, r"line 2: JSON, column 19: a string with a NUL character (\u0000) is not accepted: remove the character"),
             ([HEAD, '{"note\\u0000": 1}'], 1, "a string with a NUL character"), ([HEAD, '{"final": ["k", 0, 0, NaN]}'], 1, '"final" needs a run'),
             ([HEAD, BEGIN, {"what": 1}], 1, "\"what\": unknown kind of line"), ([HEAD, BEGIN, {"a": 1, "b": 2}], 1, "one member"),
             ([HEAD, {"run": {"id": "x", "experiment": "", "name": "", "start": 0}}], 1, "not a run id"), ([HEAD, {"run": {}}], 1, "expected {"),
             ([HEAD, BEGIN, {"points": [["k", "s", 0, 0]]}], 1, "expected [key, step, time, number]"), ([HEAD, BEGIN, {"points": 1}], 1, "a list of points"),
             ([HEAD, BEGIN, {"console": [3, 0, "x"]}], 1, "[1 or 2, time, line]"), ([HEAD, BEGIN, {"end": ["odd", 0]}], 1, "a run's status"),
             ([HEAD, BEGIN, {"param": ["a"]}], 1, "[name, value]"), ([HEAD, BEGIN, {"note": 1}], 1, "expected a string"), ([HEAD, BEGIN, {"file": [1, 2]}], 1, "path on this machine"),
             ([HEAD, {"logged_model": {"model_id": "m-1"}}], 1, "a logged model with model_id and experiment"), ([HEAD, {"registered_model": []}], 1, "a registered model with a name"),
             ([HEAD, {"experiment": "e"}], 1, "an experiment with a name"), ([HEAD, {"input": {"name": "x"}}], 1, "\"input\" needs a run"), ([HEAD, BEGIN, {"input": {}}], 1, "a data set with a name"),
             ([HEAD, BEGIN, {"output": ["m-1"]}], 1, "[id of a logged model, step]"), ([HEAD, BEGIN, {"alert": ["LOUD", 0, 0, "a", "b"]}], 1, "INFO, WARN or ERROR"),
             ([HEAD, BEGIN, {"alert": ["INFO", 0, 0, "a"]}], 1, "[level, step, time, title, text]"), ([HEAD, {"run": dict(BEGIN["run"], segment=-1)}], 1, "expected {"),
             ([HEAD, BEGIN, {"image": ["k"]}], 1, "[key, step, time, content]"), ([HEAD, BEGIN, {"left_out": 1}], 1, "expected a string")]
    for lines, code, words in cases:
        error = import_lines(into, *lines, code=code)
        lib.check(words in error, f"{lines[-1]}: {error!r}, want {words!r}")
    lib.check(not os.path.exists(os.path.join(into, "told")), "nothing of an invalid run is imported")


def odd_names(folder):
    """Names that are not valid file names stay below the folder, are listed, and do not touch the server's files."""
    into, out = os.path.join(folder, "odd", "into"), os.path.join(folder, "odd", "out")
    os.makedirs(into)
    pairs = [("..", ".."), (".hidden", ".hidden"), ("dptrack.artifacts", "a"), ("x" * 490, "y" * 490), ("a/b", "../../c"), ("-x", "--y")]
    lines = [HEAD]
    for i, (experiment, name) in enumerate(pairs):
        lines += [{"run": {"id": f"{i:032x}", "experiment": experiment, "name": name, "start": 1700000000}},
                  {"points": [["loss", 1, 1700000001, i]]}, END]
    import_lines(into, *lines)
    server = lib.Server(into)
    runs = json.loads(get(server, "/api/v1/runs"))["runs"]
    lib.equal(sorted((r["experiment"], r["name"]) for r in runs), sorted(pairs), "runs with odd names")
    lib.equal(server.stop(), 0, "exit code")
    r = subprocess.run([lib.PROGRAM, "export", "--events", out, "--logdir", into], capture_output=True, text=True, timeout=120)
    lib.equal((r.returncode, r.stderr), (0, ""), "export --events")
    lib.equal(len([f for _, _, files in os.walk(out) for f in files]), len(pairs), "event files")
    lib.equal(sorted(os.listdir(os.path.join(folder, "odd"))), ["into", "out"], "files next to the folder")


def shows_progress(folder):
    """An import of more than two seconds counts its runs, on a terminal alone, and leaves an empty line."""
    for terminal in (True, False):
        lead, follow = pty.openpty()
        into = os.path.join(folder, f"progress{terminal}")
        p = subprocess.Popen([lib.PROGRAM, "import", "-", "--logdir", into], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=follow if terminal else subprocess.PIPE)
        lines = [HEAD]
        for i in range(8):
            lines += [{"run": {**BEGIN["run"], "id": "%032x" % (i + 1)}}, END]
        for line in lines:
            p.stdin.write(json.dumps(line).encode() + b"\n")
            p.stdin.flush()
            time.sleep(0.4 if line is END and terminal else 0)
        out, errors = p.communicate(timeout=60)
        os.close(follow)
        shown = os.read(lead, 65536) if terminal else errors
        os.close(lead)
        lib.check(out.startswith(b"8 runs, "), f"{out!r}")
        if terminal:
            lib.check(b"runs imported: 8 after " in shown and shown.endswith(b"\r\x1b[K"), f"progress: {shown!r}")
        else:
            lib.equal(shown, b"", "no progress without a terminal")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        imports_every_kind(folder)
        models(folder)
        refused(folder)
        marked(folder)
        odd_names(folder)
        shows_progress(folder)
    lib.finish("import/lines")


main()
