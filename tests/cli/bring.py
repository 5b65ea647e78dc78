# SPDX-License-Identifier: Apache-2.0
"""Import, sync and export: event files of other programs imported into a folder and over the network, journals
uploaded by `sync`, runs exported as event files and read again. The points are equal at each stage."""
import sys
sys.dont_write_bytecode = True
import csv
import gzip
import http.server
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from urllib.parse import quote
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib

RECORD = os.path.join(lib.BUILD, "tests", "tracker", "record")


def run(*args, code=0):
    r = subprocess.run([lib.PROGRAM, *args], capture_output=True, text=True, timeout=120, env=lib.environment_of(args))
    lib.equal(r.returncode, code, f"{' '.join(args)}: {r.stderr!r}")
    return r.stdout if code == 0 else r.stderr


def points(*where):
    """Every point of every run: (name without its id suffix, key, rank, segment, step, wall time, value), sorted."""
    rows = csv.DictReader(io.StringIO(run("export", "--series", "--segments", "all", *where)))
    out = []
    for r in rows:
        stem, dash, tail = r["run_name"].rpartition("-")
        name = stem if dash and len(tail) == 8 and set(tail) <= set("0123456789abcdef") else r["run_name"]
        out.append((name, r["key"], r["rank"], r["segment"], r["step"], r["wall_time"], r["value"]))
    return sorted(out)


def foreign(folder):
    """Files written by PyTorch and tensorboardX, and the twelve runs: with text, hparams, NaN and histograms."""
    source = os.path.join(folder, "foreign")
    shutil.copytree(os.path.join(lib.SOURCE, "tests", "whole", "foreign", "runs"), os.path.join(source))
    subprocess.run([sys.executable, os.path.join(lib.SOURCE, "tests/web/twelve.py"), "--events", source], check=True, timeout=60)
    return source


def imported(folder):
    source, into, far = foreign(folder), os.path.join(folder, "into"), os.path.join(folder, "far")
    want = points("--logdir", source, "--experiment", "fashion")
    lib.check(len(want) > 7000, f"{len(want)} points to compare")
    said = run("import", source, "--logdir", into)
    lib.check("runs" in said and "scalars" in said and "histograms weights" not in said, said)
    lib.check(points("--logdir", into, "--experiment", "fashion") == want, "import --logdir: the points differ")
    again = run("import", source, "--logdir", into)
    lib.equal(again, said, "a second import")
    lib.check(points("--logdir", into, "--experiment", "fashion") == want, "a second import changed the points")
    server = lib.Server(far)
    for _ in range(2):
        run("import", source, "--url", server.url, "--experiment", "all of it")
    lib.check([p[1:] for p in points("--url", server.url, "--filter", "attributes.run_name LIKE 'fashion/%'", "--experiment", "all of it")]
              and sorted((p[0].split("/", 1)[-1], *p[1:]) for p in points("--url", server.url, "--experiment", "all of it")
                         if p[0].startswith("fashion/")) == want, "import --url: the points differ")
    runs = json.loads(server.request("GET", "/api/v1/runs?limit=100")[2])["runs"]
    media = [m for r in runs for m in json.loads(server.request("GET", f"/api/v1/runs/{r['id']}/media")[2])["media"]]
    lib.check(len([m for m in media if m["key"] == "weights" and m["kind"] == "histogram" and m["step"] == 1]) == 2, f"histograms: {media}")
    lib.equal(server.stop(), 0, "exit code")
    return into, want


def tensorboard_hparams(folder):
    """What add_hparams wrote below a run's folder belongs to the run, whether the folder is followed or imported."""
    source, into, made = os.path.join(folder, "beside"), os.path.join(folder, "beside-into"), os.path.join(folder, "foreign")
    shutil.copytree(os.path.join(made, "vision", "torch"), os.path.join(source, "vision", "torch"))
    shutil.copytree(os.path.join(made, "sweep", "trial"), os.path.join(source, "vision", "torch", "1795160303.5"))
    said = run("import", source, "--logdir", into)
    lib.check(said.startswith("1 run, 2 files,"), said)
    tables = [list(csv.DictReader(io.StringIO(run("export", "--csv", "--experiment", "vision", "--logdir", where)))) for where in (source, into)]
    got = [[{k: v for k, v in r.items() if k.startswith(("params.", "metrics."))} for r in t] for t in tables]
    lib.equal(got[1], got[0], "the runs, their params and metrics")
    lib.check(len(got[0]) == 1 and any(k.startswith("params.") for k in got[0][0]), f"one run with params: {got[0]}")


def hparams_alone(folder):
    """add_hparams and nothing else is one run, with params and metric, by both doors (pytorch#184078, tensorboard#5596,
    tensorboardX#670); several sessions of one writer are runs, and the first is not swallowed (pytorch#39250)."""
    source, made = os.path.join(folder, "alone"), os.path.join(folder, "foreign", "sweep")
    silent = next(os.path.join(made, n) for n in os.listdir(made) if "tfevents" in n)
    for path, trials in (("exp/run1", ("1795160303.5",)), ("exp/search", ("trial0", "trial1", "trial2"))):
        for trial in trials:
            shutil.copytree(os.path.join(made, "trial"), os.path.join(source, path, trial))
        shutil.copy(silent, os.path.join(source, path))
    shutil.copytree(os.path.join(folder, "foreign", "vision", "torch"), os.path.join(source, "exp", "data"))
    for trial in ("trial0", "trial1", "trial2"):
        shutil.copytree(os.path.join(made, "trial"), os.path.join(source, "exp", "data", trial))
    said = run("import", source, "--logdir", source + "-into")
    lib.check(said.startswith("8 runs, 8 files,") and "skipped: 2 files without data" in said, said)
    want = sorted(["run1"] + [f"{p}/trial{i}" for p in ("search", "data") for i in range(3)] + ["data"])
    for where in (source + "-into", source):
        table = json.loads(run("export", "--json", "--logdir", where))
        lib.equal(sorted(r["run_name"] for r in table), want, f"{where}: runs")
        for r in table:
            lib.equal(r["status"], "finished", f"{where}: {r['run_name']}")
            lib.check(r["run_name"] == "data" or (r["params.lr"] and any(k == "metrics.hparam/acc.last" and v is not None for k, v in r.items())), f"{where}: {r}")
    server = lib.Server(source)
    got, end = [], time.monotonic() + 20
    while len(got) < 8 and time.monotonic() < end:
        got = sorted(r["name"] for r in server.json("GET", "/api/v1/runs")[1]["runs"])
        time.sleep(.1)
    lib.equal(got, want, "served while they are new")
    lib.equal(server.stop(), 0, "exit code")


def unreadable(folder):
    """A file and a folder that must not be read are named, and the rest is imported or served (tensorboard#1680)."""
    source = os.path.join(folder, "closed")
    for name in ("a", "b", "c"):
        shutil.copytree(os.path.join(folder, "foreign", "vision", "torch"), os.path.join(source, "e", name))
    os.chmod(os.path.join(source, "e", "b", os.listdir(os.path.join(source, "e", "b"))[0]), 0)
    os.chmod(os.path.join(source, "e", "c"), 0)
    for at in (folder, source, os.path.join(source, "e")):
        os.chmod(at, 0o777)
    root = os.geteuid() == 0
    if root and not os.stat(lib.PROGRAM).st_mode & 1:
        return
    if root:
        os.setresuid(65534, 65534, 0)  # a program that it starts has no capabilities
    try:
        said = run("import", source, "--logdir", source + "-into")
        server = lib.Server(source)
        health = server.json("GET", "/health?verbose=1")[1]
        lib.equal(len(server.json("GET", "/api/v1/runs")[1]["runs"]), 1, "the other run is served")
        server.stop()
    finally:
        if root:
            os.setresuid(0, 0, 0)
    lib.check(said.startswith("1 run, 1 file,") and "2 files that cannot be read" in said and "Permission denied" in said, said)
    lib.check(health["folder"]["files_bad"] == 2, f"health: {health}")
    for name in ("closed/e/b/", "closed/e/c: Permission denied"):
        lib.check(name in server.stderr(), f"the log names {name}: {server.stderr()}")


def deep(folder):
    """A run in a deeply nested folder is found."""
    source, into = os.path.join(folder, "deep"), os.path.join(folder, "deep-into")
    inner = os.path.join(source, *("level%d" % n for n in range(60)))
    shutil.copytree(os.path.join(folder, "foreign"), inner)
    run("import", source, "--logdir", into, "--experiment", "deep")
    run("import", os.path.join(folder, "foreign"), "--logdir", into + "-flat", "--experiment", "deep")
    got, want = (sorted(p[1:] for p in points("--logdir", where, "--experiment", "deep")) for where in (into, into + "-flat"))
    lib.check(got == want and len(want) > 7000, f"60 folders deep: {len(got)} points, of {len(want)}")


def interrupted_import(folder):
    """An import interrupted by Ctrl-C while the server is slow leaves nothing behind."""
    tmp = os.path.join(folder, "tmp")
    os.mkdir(tmp)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        command = [lib.PROGRAM, "import", os.path.join(folder, "foreign"), "--url", "http://127.0.0.1:%d" % silent.getsockname()[1]]
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a process started with & ignores it, and so do its children
        p = subprocess.Popen(command, env=dict(os.environ, TMPDIR=tmp), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        silent.settimeout(60)
        peer, _ = silent.accept()
        p.send_signal(signal.SIGINT)
        lib.equal(p.wait(60), -signal.SIGINT, "an interrupted import")
        peer.close()
    lib.equal(os.listdir(tmp), [], "files left in TMPDIR")


def exported(folder, into, want):
    out = os.path.join(folder, "out")
    run("export", "--events", out, "--experiment", "fashion", "--logdir", into)
    lib.check(points("--logdir", out, "--experiment", "fashion") == want, "export --events, read again: the points differ")
    table = [run("compare", "--experiment", "fashion", "--logdir", f, "--csv") for f in (into, out)]
    cut = [[{k: v for k, v in r.items() if k not in ("id", "run_id", "name", "run_name")} for r in csv.DictReader(io.StringIO(t))] for t in table]
    lib.check(cut[0] == cut[1], "export --events: params or ends differ")
    before = run("ls", "--json", "--logdir", into)
    said = run("import", out, "--logdir", into)
    lib.check("0 runs, 0 files" in said and "that the target has already" in said, f"an export of runs that are here: {said}")
    lib.equal(run("ls", "--json", "--logdir", into), before, "runs after the import of their export")


def exported_to_its_server(folder):
    """An export imported into its server skips the runs that are there, however they came, and no others."""
    server = lib.Server(os.path.join(folder, "origin"))
    out, other = os.path.join(folder, "origin-out"), os.path.join(folder, "origin-copy")
    for name in ("first", "second run"):
        one = server.json("POST", "/api/v1/runs", {"experiment": "origin", "name": name})[1]
        points = [{"key": "loss", "step": s, "value": s, "wall_time": 1795000000 + s, "rank": r} for s in range(3) for r in (-1, 0)]
        server.json("POST", f"/api/v1/runs/{one['id']}/metrics", {"points": points})
    run("export", "--events", out, "--url", server.url)
    for where in (("--url", server.url), ("--logdir", os.path.join(folder, "origin"))):
        said = run("import", out, *where)
        lib.check("0 runs, 0 files" in said and "2 exported runs (4 files) that the target has already" in said, f"{where}: {said}")
    lib.equal(len(server.json("GET", "/api/v1/runs")[1]["runs"]), 2, "runs after the import of their export")
    server.request("DELETE", f"/api/v1/runs/{one['id']}")
    said = run("import", out, "--url", server.url)
    lib.check("0 runs, 0 files" in said and "2 exported runs (4 files)" in said, f"a deleted run stays deleted: {said}")
    said = run("import", out, "--logdir", other)
    lib.check(said.startswith("2 runs, 4 files") and "already" not in said, f"into another folder: {said}")
    lib.equal(server.stop(), 0, "exit code")


class Hollow(http.server.BaseHTTPRequestHandler):
    """Accepts every journal, and answers every GET with an HTML page."""
    def log_message(self, *_):
        pass

    def answer(self, data):
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        offset = int(self.path.partition("offset=")[2])
        self.answer(json.dumps({"durable": offset + len(body)}).encode())

    def do_GET(self):
        self.answer(b"<html>welcome</html>")


def not_understood(folder):
    """If the server does not list the saved files, sync reports that they were not accepted."""
    runs = os.path.join(folder, "hollow")
    subprocess.run([RECORD, "runs_dir=" + runs, "url="], input="log 1 loss 1\nclose 1\n", text=True, capture_output=True, check=True, timeout=60)
    service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hollow)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    said = run("sync", "--logdir", runs, "--url", f"http://127.0.0.1:{service.server_address[1]}", code=1)
    lib.check("does not list the files" in said, said)
    service.shutdown()


def synced(folder):
    runs, far = os.path.join(folder, "runs"), os.path.join(folder, "synced")
    kept = {"models/wéights#1.bin": os.urandom(100000), "empty": b""}
    for i, content in enumerate(kept.values()):
        with open(os.path.join(folder, f"kept{i}"), "wb") as f:
            f.write(content)
    script = "param lr 0.1\nburst 20000 train/loss 1\nrank 0 3 phase/step 0.5\nfile gone %s/kept1\n" % folder
    script += "".join("file %s %s/kept%d\n" % (name, folder, i) for i, name in enumerate(kept)) + "close 1\n"
    subprocess.run([RECORD, "runs_dir=" + runs, "url="], input=script, text=True, capture_output=True, check=True, timeout=60)
    want = points("--logdir", runs, "--experiment", "default")
    lib.equal(len(want), 20001, "recorded points")
    place = [d for d, _, names in os.walk(runs) if "gone" in names][0]
    os.unlink(os.path.join(place, "gone"))
    server = lib.Server(far)
    said = run("sync", "--logdir", runs, "--url", server.url)
    lib.check("complete on" in said and "2 kept files, 100000 bytes" in said and "skipped: 1 kept file, replaced" in said, said)
    (one,) = server.json("GET", "/api/v1/runs?experiment=default")[1]["runs"]
    for name, content in kept.items():
        lib.check(server.request("GET", f"/api/v1/runs/{one['id']}/artifacts/{quote(name)}")[2] == content, f"kept file {name}")
    (there,) = [os.path.join(d, f) for d, _, names in os.walk(far) for f in names if os.path.getsize(os.path.join(d, f)) == 100000]
    was = os.stat(there)
    lib.check(points("--url", server.url, "--experiment", "default") == want, "sync: the points differ")
    journal = [os.path.join(d, f) for d, _, names in os.walk(runs) for f in names if "tfevents" in f][0]
    with open(journal, "ab") as f:
        f.write(b"\x05torn")
    run("sync", "--logdir", runs, "--url", server.url)
    lib.check(points("--url", server.url, "--experiment", "default") == want, "a second sync, with a torn tail: the points differ")
    lib.equal((os.stat(there).st_ino, os.stat(there).st_mtime_ns), (was.st_ino, was.st_mtime_ns), "a file that the server has is not sent again")
    with open(os.path.join(place, "empty"), "wb") as f:
        f.write(b"other")
    said = run("sync", "--logdir", runs, "--url", server.url)
    lib.check("1 kept file, 100000 bytes" in said and "skipped: 2 kept files" in said, said)
    port = server.port
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    lib.check("127.0.0.1" in run("sync", "--logdir", runs, "--url", f"http://127.0.0.1:{port}", "--patience", "0", code=1),
              "the message names an unreachable server")
    lib.check("trying again for up to 1 s" in run("sync", "--logdir", runs, "--url", f"http://127.0.0.1:{port}", "--patience", "1", code=1),
              "a wait for an unreachable server is announced")


def refused(folder):
    empty = os.path.join(folder, "empty")
    os.mkdir(empty)
    lib.check("contains no event files" in run("import", empty, "--logdir", os.path.join(folder, "x"), code=2), "an empty folder")
    lib.check("source is missing" in run("import", code=2), "import without a path")
    lib.check("--url" in run("sync", "--logdir", empty, code=2), "sync without a server")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        into, want = imported(folder)
        tensorboard_hparams(folder)
        hparams_alone(folder)
        unreadable(folder)
        deep(folder)
        interrupted_import(folder)
        exported(folder, into, want)
        exported_to_its_server(folder)
        synced(folder)
        not_understood(folder)
        refused(folder)
    lib.finish("bring")


main()
