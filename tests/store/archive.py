# SPDX-License-Identifier: Apache-2.0
"""Points of ended runs as objects (tests/data/s3server.py): every reply equals the one from rows, byte for byte. A run
that gets new points becomes rows again, with any number of concurrent writers. The object store is down; servers are
killed in every phase; gc, doctor and migrate work."""
import hashlib
import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "api"), os.path.join(HERE, "..", "data")]
import lib
from lib import check, equal
import s3server

ADDRESS = "s3://shop/team"
NEVER, SOON = ("--archive-after", "0"), ("--archive-after", "1s")
STREAMS = ("/api/2.0/mlflow/metrics/get-history?run_id={}&metric_key=loss", "/api/v1/export/series.csv?run={}&key=loss",
           "/api/v1/export/series.tfevents?run={}")
POINTS = 9000  # several chunks and a part of one


def serve(folder, s3, *args):
    return lib.Server(folder, *args, env=s3.environment())


def until(ask, what, wait=30):
    end = time.monotonic() + wait
    while not ask() and time.monotonic() < end:
        time.sleep(0.05)
    check(ask(), what)


def objects(s3):
    folder = os.path.join(s3.folder, "shop", "team")
    return set(os.listdir(folder)) if os.path.isdir(folder) else set()


def value(i):
    return {5: "NaN", 77: "Infinity", 4097: "-Infinity", 4100: -0.0}.get(i, (i * 7919 % 1009) / 7)


def points(key, first, n, rank=-1):
    return [{"key": key, "step": i, "value": value(i), "wall_time": 1.7e9 + i / 8, "rank": rank} for i in range(first, first + n)]


def post(server, run, some):
    return server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": some})


def make(server, name, n, end=True):
    run = lib.make_run(server, "Default", name, {"lr": "0.1"})
    for first in range(0, n, 3000):
        some = points("loss", first, min(3000, n - first)) + points("grad/norm", first, min(3000, n - first), rank=1)
        equal(post(server, run, some)[0], 200, "points")
    back = [{"key": "back", "step": (i * 31) % 500, "value": i, "wall_time": 1.7e9 + i} for i in range(2500)]
    equal(post(server, run, back)[0], 200, "points with descending steps")
    if end:
        equal(server.json("PATCH", f"/api/v1/runs/{run}", {"status": "finished"})[0], 200, "end")
    return run


def asked(server, runs):
    """Returns {query: reply} for every way to read points."""
    questions = ["/api/v1/export/runs.json?experiment=Default", "/api/v1/runs?experiment=Default"]
    for run in runs:
        questions += [f"/api/v1/export/series.csv?run={run}", f"/api/v1/export/series.jsonl?run={run}&key=loss",
                      f"/api/v1/series?run={run}&key=loss&key=back&key=grad/norm&buckets=50",
                      f"/api/v1/series?run={run}&key=loss&buckets=7&from=4000&to=4200", f"/api/v1/series?run={run}&key=loss&buckets=9&x=time",
                      f"/api/v1/series?run={run}&key=loss&from=4090&to=4110", f"/api/v1/export/series.jsonl?run={run}&key=back",
                      f"/api/2.0/mlflow/metrics/get-history?run_id={run}&metric_key=loss&max_results=1000",
                      f"/api/2.0/mlflow/metrics/get-history?run_id={run}&metric_key=back"]
    return {q: server.request("GET", q)[::2] for q in questions}


def same(got, want, what):
    for question, answer in want.items():
        check(got[question] == answer, f"{what}: {question}: {got[question][0]} {got[question][1][:300]}, want {answer[0]} {answer[1][:300]}")


def dump(folder, s3):
    """The store as text (dptrack migrate --dump), which does not show where points are stored."""
    done = subprocess.run([lib.PROGRAM, "migrate", "--dump", lib.in_database(folder).get("DPTRACK_DB", folder)], capture_output=True,
                          env=s3.environment(), timeout=120)
    check(done.returncode == 0, f"dump: {done.stderr.decode()}")
    return hashlib.sha256(done.stdout).hexdigest()


def rows_left(folder):
    return lib.number(folder, "SELECT coalesce(sum(length(data)), 0) FROM chunk")


def archived(folder):
    return lib.number(folder, "SELECT count(*) FROM archive")


def folded(folder):
    return lib.number(folder, "SELECT count(*) FROM log") == 0


def check_metrics(server, **want):
    """Checks the archive metrics in /metrics."""
    text = server.request("GET", "/metrics")[2].decode()
    got = {name: int(re.search(rf"^dptrack_archive_{name}_total (\d+)$", text, re.M)[1]) for name in want}
    equal(got, want, "/metrics")
    check(bool(want["runs"]) == (float(re.search(r"^dptrack_archive_last_timestamp_seconds (\S+)$", text, re.M)[1]) > 1.7e9), text)


def runs_become_archives(folder, s3):
    """Archives give the same replies as rows."""
    server = serve(folder, s3, "--artifacts", ADDRESS, *NEVER)
    equal(server.request("PUT", f"/api/v1/runs/{make(server, 'keeps', 10)}/artifacts/a.txt", b"hello")[0], 200, "PUT")
    runs = [make(server, "long", POINTS), make(server, "short", 30)]
    going = make(server, "going", 3000, end=False)
    until(lambda: folded(folder), "folding")
    want = asked(server, runs + [going])
    equal(server.stop(), 0, "exit code")
    before, text, kept = rows_left(folder), dump(folder, s3), objects(s3)
    server = serve(folder, s3, *SOON)
    until(lambda: archived(folder) == 3, "the ended runs are archived")
    same(asked(server, runs + [going]), want, "archived")
    same(asked(server, runs + [going]), want, "archived, again")
    equal(len(objects(s3) - kept), 3, "objects of archives")
    check_metrics(server, runs=3, series=9, returns=0, failures=0, bytes=lib.number(folder, "SELECT sum(bytes) FROM archive"))
    alone = lib.number(folder, f"SELECT coalesce(sum(length(c.data)), 0) FROM chunk c JOIN series s ON s.id = c.id / 1048576 "
                           f"JOIN run r ON r.id = s.run_id WHERE r.uuid = '{going}'")
    check(rows_left(folder) == alone and alone < before, f"{rows_left(folder)} bytes of rows, {alone} of the live run, {before}")
    equal(server.stop(), 0, "exit code")
    equal(dump(folder, s3), text, "the store as text")
    server = serve(folder, s3, *NEVER)
    same(asked(server, runs + [going]), want, "archived, by a fresh process")
    return server, runs, going, want


def grows_again(server, folder, runs):
    """New points of an archived run, from several clients at once: each is stored once, after the old ones."""
    run, n = runs[0], archived(folder)
    old = server.request("GET", f"/api/v1/export/series.jsonl?run={run}&key=loss")[2]
    repeat = {"run_id": run, "metrics": [{"key": "loss", "value": value(100), "timestamp": int((1.7e9 + 100 / 8) * 1000), "step": 100},
                                         {"key": "loss", "value": 3.5, "timestamp": 1800000000000, "step": 20000}]}
    answers = []

    def send(k):
        answers.append(post(server, run, points("more", 10 * k, 10)))

    threads = [threading.Thread(target=send, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    equal([a for a in answers if a != (200, {"accepted": 10})], [], "new points")
    equal(server.json("POST", "/api/2.0/mlflow/runs/log-batch", repeat)[0], 200, "log-batch")
    equal(archived(folder), n - 1, "the run is rows again")
    check_metrics(server, runs=0, returns=1, failures=0)
    got = server.request("GET", f"/api/v1/export/series.jsonl?run={run}&key=loss")[2]
    check(got.startswith(old) and got.count(b"\n") == old.count(b"\n") + 1, f"old points and one: {got[len(old):]}")
    lines = server.request("GET", f"/api/v1/export/series.csv?run={run}&key=more")[2].splitlines()
    equal(sorted(int(line.split(b",")[5]) for line in lines[1:]), list(range(80)), "steps")
    equal(server.json("PATCH", f"/api/v1/runs/{runs[1]}", {"notes": "n"})[0], 200, "a note of an archived run")
    equal(archived(folder), n - 1, "a note leaves the run archived")


def object_store_down(server, folder, s3, runs, going):
    """While the object store is down, reading or adding archived points quickly gives 503; other runs work."""
    port = s3.server_address[1]
    s3.stop()
    began = time.monotonic()
    equal(server.request("GET", f"/api/v1/series?run={runs[1]}&key=loss&buckets=5")[0], 503, "a chart without the object store")
    for question in STREAMS:
        equal(server.request("GET", question.format(runs[1]))[0], 503, f"a stream without the object store: {question}")
    equal(post(server, runs[1], points("loss", 99999, 1))[0], 503, "a point of an archived run")
    check(time.monotonic() - began < 25, "answers without the object store")
    check_metrics(server, runs=0, returns=0, failures=1)
    equal(post(server, going, points("loss", 99999, 1))[0], 200, "a point of another run")
    equal(server.request("GET", f"/api/v1/series?run={going}&key=loss&buckets=5")[0], 200, "its chart")
    back = s3server.S3(s3.folder, port=port)
    until(lambda: server.request("GET", f"/api/v1/series?run={runs[1]}&key=loss&buckets=5")[0] == 200, "the object store is back")
    until(lambda: post(server, runs[1], points("loss", 99999, 1))[0] == 200, "points, too")
    return back


def lost(folder, s3):
    """A missing object is a server error (a store that is down gives 503), and is logged once."""
    server = serve(folder, s3, *NEVER)
    run = lib.text(folder, "SELECT r.uuid FROM archive a JOIN run r ON r.id = a.run_id")
    name = lib.text(folder, "SELECT object FROM archive")
    path = os.path.join(s3.folder, "shop", "team", name)
    os.rename(path, path + ".away")
    chart = f"/api/v1/series?run={run}&key=loss&buckets=5"
    for _ in range(2):
        status, _, body = server.request("GET", chart)
        check(status == 500 and name.encode() in body and json.loads(body)["error"]["code"] == "damaged",
              f"a chart of a lost object: {status} {body}")
    os.rename(path + ".away", path)
    damaged(folder, server, path, name)
    cut(folder, server, path)
    equal(server.request("GET", chart)[0], 200, "after its copy is restored")
    equal(server.stop(), 0, "exit code")
    undumped(folder, s3, path, name)
    equal(server.stderr().count(f"team/{name}"), 2, "log lines that name the object: lost, damaged")


def damaged(folder, server, path, name):
    """Wrong bytes in an object: the error names it and does not blame the client; a restored copy is read again."""
    run = lib.text(folder, "SELECT r.uuid FROM archive a JOIN run r ON r.id = a.run_id")
    with open(path, "rb") as f:
        good = f.read()
    index = int.from_bytes(good[-24:-16], "little")
    word = f"team/{name}".encode()
    for bad in (bytes(len(good)), bytes(index) + good[index:]):
        with open(path, "wb") as f:
            f.write(bad)
        status, _, body = server.request("GET", f"/api/v1/series?run={run}&key=loss&buckets=5")
        check(status == 500 and word in body and json.loads(body)["error"]["code"] == "damaged", f"a damaged object: {status} {body}")
        for question in STREAMS:
            status, _, body = server.request("GET", question.format(run))
            check(status == 500 and word in body, f"a stream of a damaged object: {question}: {status} {body[:300]}")
    with open(path, "wb") as f:
        f.write(good)


def undumped(folder, s3, path, name):
    """Damaged points are not migrated to another store."""
    with open(path, "rb") as f:
        good = f.read()
    with open(path, "wb") as f:
        f.write(good[:100] + bytes([good[100] ^ 1]) + good[101:])
    done = subprocess.run([lib.PROGRAM, "migrate", "--dump", lib.in_database(folder).get("DPTRACK_DB", folder)], capture_output=True,
                          env=s3.environment(), text=True, timeout=120)
    check(done.returncode and f"team/{name}" in done.stderr, f"a dump of damaged points: {done.returncode} {done.stderr}")
    with open(path, "wb") as f:
        f.write(good)


def cut(folder, server, path):
    """Damage found after bytes were sent: the connection is closed before the reply ends."""
    run, series = lib.text(folder, "SELECT r.uuid || ' ' || s.id FROM archive a JOIN run r ON r.id = a.run_id JOIN series s ON s.run_id = r.id "
                                   "JOIN key k ON k.id = s.key_id WHERE k.name = 'loss'").split()
    with open(path, "rb") as f:
        good = f.read()
    index = int.from_bytes(good[-24:-16], "little")
    last = [e for e in (good[at:at + 56] for at in range(index, len(good) - 24, 56)) if int.from_bytes(e[:8], "little") >> 20 == int(series)][-1]
    size, offset = int.from_bytes(last[12:16], "little"), int.from_bytes(last[16:24], "little")
    with open(path, "wb") as f:
        f.write(good[:offset] + bytes(size) + good[offset + size:])
    for question in STREAMS:
        try:
            status, _, body = server.request("GET", question.format(run))
            check(status == 500, f"truncated, but looks complete: {question}: {status}, {len(body)} bytes")
        except http.client.IncompleteRead as e:
            check(e.partial, f"no bytes of {question}")
    with open(path, "wb") as f:
        f.write(good)
    for question in STREAMS:
        equal(server.request("GET", question.format(run))[0], 200, f"after its copy is restored: {question}")


def killed(folder, s3, runs, rounds):
    """Killed while runs move to objects and back: no point is lost, duplicated or partial, and gc deletes the rest."""
    expected = {run: set() for run in runs}
    for i in range(rounds):
        server = serve(folder, s3, *SOON)
        sent = {}
        time.sleep(random.uniform(0.1, 1.6))

        def send(run):
            try:
                if post(server, run, points("killed", i, 1))[0] == 200:
                    expected[run].add(i)
            except (OSError, ValueError):
                sent[run] = i  # unknown
        threads = [threading.Thread(target=send, args=(run,)) for run in runs]
        for t in threads:
            t.start()
        time.sleep(random.uniform(0, 0.1))
        server.process.kill()
        server.process.wait()
        for t in threads:
            t.join()
        for run, step in sent.items():
            expected[run].add(("maybe", step))
    server = serve(folder, s3, *NEVER)
    for run in runs:
        lines = server.request("GET", f"/api/v1/export/series.csv?run={run}&key=killed")[2].splitlines()
        got = [int(line.split(b",")[5]) for line in lines[1:]]
        sure = {e for e in expected[run] if isinstance(e, int)}
        maybe = {e[1] for e in expected[run] if not isinstance(e, int)}
        check(len(got) == len(set(got)) and sure <= set(got) <= sure | maybe, f"steps {got}, acknowledged {sure}, perhaps {maybe}")
    status, reply = server.json("POST", "/api/v1/gc", {"keep_objects_days": 0})
    equal(status, 200, f"gc: {reply}")
    equal(len(objects(s3)), archived(folder) + 1, "objects after gc: archives, and a file")
    check(not s3.uploads, f"{len(s3.uploads)} uploads are open")
    return server


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        bucket, store = os.path.join(folder, "bucket"), os.path.join(folder, "runs")
        os.makedirs(os.path.join(bucket, "shop"))
        s3 = s3server.S3(bucket)
        server, runs, going, want = runs_become_archives(store, s3)
        grows_again(server, store, runs)
        equal(server.stop(), 0, "exit code")
        server = serve(store, s3, *NEVER)  # a fresh process
        s3 = object_store_down(server, store, s3, runs, going)
        equal(server.stop(), 0, "exit code")
        lost(store, s3)
        server = killed(store, s3, runs, rounds)
        same(asked(server, runs), {q: a for q, a in want.items() if any(f"{r}&key=back" in q or f"{r}&metric_key=back" in q for r in runs)},
             "an untouched key, at the end")
        equal(server.stop(), 0, "exit code")
        server = serve(store, s3, *SOON)
        until(lambda: archived(store) == 3, "archived at the end")
        for run in runs:
            equal(server.request("DELETE", f"/api/v1/runs/{run}")[0], 200, "DELETE")
        equal(server.json("POST", "/api/v1/gc", {"keep_objects_days": 0})[1]["runs"], 2, "gc of runs")
        equal((archived(store), len(objects(s3))), (1, 2), "remaining archives and objects")
        equal(server.stop(), 0, "exit code")
        check("Sanitizer" not in server.stderr(), server.stderr())
        s3.stop()
    lib.finish("archive")


main()
