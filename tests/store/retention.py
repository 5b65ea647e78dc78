# SPDX-License-Identifier: Apache-2.0
"""Rules of retention on many runs, with artifacts on disk and in an object store: the preview, gc's dry run and what is freed are
what this test counts itself; the process is killed again and again meanwhile, and no file is lost that should stay, none stays that
should go, and the audit log has each deleted file once. Then deletion for ever by REST, bad input, and the server's own rounds.
DPT_TEST_FULL=1: 2,000 runs each, and moto's server in place of this repository's."""
import sys
sys.dont_write_bytecode = True
import json
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib  # noqa: E402
sys.path[:0] = [os.path.join(lib.SOURCE, "tests", "data"), os.path.join(lib.SOURCE, "tests", "tracker"), os.path.join(lib.SOURCE, "tests", "bench")]
import s3server  # noqa: E402
from ports import free_port  # noqa: E402

FULL = os.environ.get("DPT_TEST_FULL") == "1"
RUNS, KILLS = (2000, 10) if FULL else (80, 5)
DAY_MS = 86400000
THEN_NS = (int(time.time()) * 1000 - 40 * DAY_MS) * 10**6  # of old files
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # processes die here, not the machine
random.seed(73)


def ok(server, method, path, body=None):
    status, _, data = server.request(method, path, body)
    lib.check(status < 300, f"{method} {path}: {status} {data[:200]}")
    return json.loads(data) if data[:1] in (b"{", b"[") else None


def change(logdir, sql):
    """Changes rows of a store whose server has stopped."""
    if lib.IN_DATABASE:
        import cluster
        return cluster.query_of_folder(logdir, sql)
    import contextlib
    import sqlite3
    with contextlib.closing(sqlite3.connect(os.path.join(logdir, "dptrack.db"))) as db:
        db.execute(sql)
        db.commit()


class Disk:
    """Artifacts in the default folder."""

    def __init__(self, logdir):
        self.logdir, self.root, self.env = logdir, os.path.join(logdir, "dptrack.artifacts"), {}
        self.args = ["--artifacts", self.root] if lib.IN_DATABASE else []

    def age(self, path):
        """Makes a file 40 days old, whose row says so, too."""
        os.utime(os.path.join(self.root, path), ns=(THEN_NS, THEN_NS))

    def files(self):
        return {os.path.relpath(os.path.join(d, f), self.root): os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(self.root) for f in names}


class Objects:
    """Artifacts in an object store."""

    def __init__(self, logdir, environment, sizes):
        self.logdir, self.env, self.sizes, self.args = logdir, environment, sizes, ["--artifacts", "s3://shop/team"]

    def age(self, path):
        """Its row alone says when it was stored."""

    def rows(self):
        return json.loads(lib.text(self.logdir, "SELECT coalesce(json_group_object(path, object), '{}') FROM artifact" if not lib.IN_DATABASE else
                                   "SELECT coalesce(json_object_agg(path, object), '{}') FROM artifact"))

    def files(self):
        sizes = self.sizes()
        return {path: sizes.get(name, -1) for path, name in self.rows().items()}


class Bucket:
    """moto's server, or the one of tests/data."""

    def __init__(self, folder):
        self.stop = lambda: None
        if not FULL:
            at = os.path.join(folder, "shop", "team")
            os.makedirs(at)
            self.server = s3server.S3(folder)
            self.env = self.server.environment()
            self.sizes = lambda: {n: os.path.getsize(os.path.join(at, n)) for n in os.listdir(at)}
            return
        import packages
        program = packages.python(lib.BUILD, "moto", ["moto[server]==5.1.4", "boto3==1.44.5"])
        port, keys = free_port(), {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_REGION": "us-east-1"}
        moto = subprocess.Popen([os.path.join(os.path.dirname(program), "moto_server"), "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.env, self.stop = {**keys, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}, moto.terminate
        script = ("import boto3, sys, time\nc = boto3.client('s3', endpoint_url=sys.argv[1], region_name='us-east-1')\n"
                  "for _ in range(200):\n    try:\n        c.create_bucket(Bucket='shop'); break\n    except Exception: time.sleep(0.1)\n")
        subprocess.run([program, "-c", script, self.env["AWS_ENDPOINT_URL"]], env={**os.environ, **keys}, check=True)
        listing = ("import boto3, json, sys\nc = boto3.client('s3', endpoint_url=sys.argv[1], region_name='us-east-1')\n"
                   "print(json.dumps({o['Key'].split('/')[-1]: o['Size'] for p in c.get_paginator('list_objects_v2').paginate(Bucket='shop') for o in p.get('Contents', [])}))")
        self.sizes = lambda: json.loads(subprocess.run([program, "-c", listing, self.env["AWS_ENDPOINT_URL"]], env={**os.environ, **keys}, check=True, capture_output=True).stdout)


def fill(server, place):
    """Runs of two experiments with files, and what should stay of them: {path: bytes} that go, {path: bytes} of trash, {path} that is old."""
    goes, trash, stays, aged, deleted, kept_ids = {}, {}, {}, [], [], []
    connection = server.connection()
    values = list(range(RUNS))
    random.shuffle(values)
    for i in range(RUNS):
        name = "judged" if i % 2 else "plain"
        run = ok(server, "POST", "/api/v1/runs", {"experiment": name, "name": f"r{i}", "start_time": 1700000000000 + i * 1000, "tags": {"keep": ""} if i % 11 == 3 else {}})
        if name == "judged":
            ok(server, "POST", f"/api/v1/runs/{run['id']}/metrics", {"points": [{"key": "val/acc", "step": 1, "value": values[i]}, {"key": "val/loss", "step": 1, "value": values[i]}]})
        if i % 17 != 5:  # the others are still running
            ok(server, "PATCH", f"/api/v1/runs/{run['id']}", {"status": "finished"})
        if i % 13 == 7:
            ok(server, "POST", "/api/2.0/mlflow/registered-models/create", {"name": f"m{i}"})
            ok(server, "POST", "/api/2.0/mlflow/model-versions/create", {"name": f"m{i}", "source": f"runs:/{run['id']}/w", "run_id": run["id"]})
        if i % 7 == 2:
            deleted.append(run["id"])
        kept_ids.append((i, name, run["id"], values[i]))
    live = [k for k in kept_ids if k[2] not in deleted]
    best = {k[2] for k in sorted((k for k in live if k[1] == "judged"), key=lambda k: -k[3])[:5]} | {k[2] for k in [k for k in live if k[1] == "plain"][-3:]}
    numbers = {e["name"]: e["id"] for e in ok(server, "GET", "/api/v1/experiments")["experiments"]}
    for i, name, run, _ in kept_ids:
        forever = i % 11 == 3 or i % 17 == 5 or i % 13 == 7
        for k in range(130 if i in (10, 40) else 3):
            path, data = f"{numbers[name]}/{run}/artifacts/" + (f"deep/er/{k}.bin" if k % 3 else f"{k} é.bin"), random.randbytes(random.randrange(1, 3000))
            status, _, said = server.request("PUT", "/api/v1/runs/" + path.split("/", 1)[1].replace(" ", "%20").replace("é", "%C3%A9"), data, {"Content-Type": "x/y"}, connection)
            lib.check(status == 200, f"PUT {path}: {status} {said}")
            old = k != 2  # one stays young
            aged += [path] if old else []
            whose = trash if run in deleted and not forever else stays if forever or run in best or not old else goes
            whose[path] = len(data)
    for run in deleted:
        ok(server, "DELETE", f"/api/v1/runs/{run}")
    return goes, trash, stays, aged, add_versions(server, numbers, goes, stays, aged)


def add_versions(server, numbers, goes, stays, aged):
    """Versions of a W&B artifact in a run whose files go: one that nothing needs, the latest, and one that a kept run uses."""
    experiment, run = next(p for p in goes if p.split("/")[0] == numbers["plain"]).split("/")[:2]
    kept = next(p for p in stays if f"{experiment}/{run}" not in p and p.endswith("/artifacts/0 é.bin")).split("/")[1]
    rows = []
    for version in range(3):
        for name in (f"v{version}/a.bin", f"v{version}.wandb_manifest.json"):
            path = f"wandb-artifacts/weights/{name}"
            lib.equal(server.request("PUT", f"/api/v1/runs/{run}/artifacts/{path}", b"w" * 100)[0], 200, f"PUT {path}")
            (stays if version else goes)[f"{experiment}/{run}/artifacts/{path}"] = 100
            aged.append(f"{experiment}/{run}/artifacts/{path}")
        rows.append(f"(9{version}, {experiment}, 'weights', {version}, 'model', 'd{version}', '', '{run}', 1, {THEN_NS // 10**6}, '{{}}')")
    return ["INSERT INTO wandb_artifact (id, experiment_id, collection, version, type, digest, client, run, state, created_ms, said) VALUES " + ", ".join(rows),
            f"INSERT INTO wandb_alias (experiment_id, collection, alias, version) VALUES ({experiment}, 'weights', 'latest', 1)",
            f"INSERT INTO wandb_use (run, artifact_id) VALUES ('{kept}', 92)"]


def make_old(place, aged):
    """Files were stored, and runs deleted, 40 days ago."""
    for path in aged:
        place.age(path)
    for some in (aged[i:i + 1000] for i in range(0, len(aged), 1000)):
        change(place.logdir, f"UPDATE artifact SET time_ns = {THEN_NS} WHERE path IN ({', '.join(repr(p) for p in some)})")
    change(place.logdir, f"UPDATE run SET deleted_ms = deleted_ms - {40 * DAY_MS} WHERE deleted_ms IS NOT NULL")


def serve(place, *args):
    return lib.Server(place.logdir, *place.args, *args, env=place.env)


def collect(server, **more):
    return ok(server, "POST", "/api/v1/gc", {"retention": True, "keep_objects_days": 0, **more})


def kill_during_gc(place, stays):
    """Kills the server during its work, until the work is done; what stays is there each time."""
    kills = 0
    for _ in range(3 * KILLS):
        server = serve(place, "--retention-every", "0")

        def work():
            try:
                server.request("POST", "/api/v1/gc", {"retention": True, "keep_objects_days": 0})
            except OSError:
                pass
            except Exception:  # the reply was cut
                pass
        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(random.uniform(0.02, 1.5 if FULL else 0.3))
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        thread.join()
        if lib.IN_DATABASE:  # or another process waits some seconds for that of the dead one
            change(place.logdir, "DELETE FROM meta WHERE name LIKE 'lease %'")
        there = place.files()
        lost = [p for p in stays if there.get(p) != stays[p]]
        lib.check(not lost, f"after kill {kills + 1} these are lost: {lost[:5]} of {len(lost)}")
        kills += 1
        if kills == KILLS:
            break
    return len(there)


def audited(server):
    """How many files the audit log says were deleted by the rules, and the runs that were removed."""
    files, token = 0, ""
    while True:
        page = ok(server, "GET", f"/api/v1/audit?action=purge&limit=1000{token}")
        for e in page["entries"]:
            files += int(e["name"].split()[0]) if e["object"] == "artifact" else 0
            lib.check(e["object"] != "artifact" or e["detail"].startswith("retention: "), f"detail: {e}")
        if not page["next_page_token"]:
            return files
        token = f"&page_token={page['next_page_token']}"


def rules(place):
    server = serve(place, "--retention-every", "0")
    goes, trash, stays, aged, versions = fill(server, place)
    server.stop()
    make_old(place, aged)
    for sql in versions:
        change(place.logdir, sql)
    server = serve(place, "--retention-every", "0")
    lib.equal(ok(server, "GET", "/api/v1/retention/preview")["artifacts"], 0, "no rule, nothing goes")
    ok(server, "PUT", "/api/v1/retention", {"artifact_days": 30, "keep_best": 3, "trash_days": 20})
    ok(server, "PUT", "/api/v1/retention", {"experiment": "judged", "artifact_days": 30, "keep_best": 5, "trash_days": 20})
    preview = ok(server, "GET", "/api/v1/retention/preview")
    lib.equal((preview["artifacts"], preview["artifact_bytes"]), (len(goes), sum(goes.values())), "the preview's artifacts")
    lib.equal(preview["trash_bytes"], sum(trash.values()), "the preview's trash")
    lib.equal(preview["total_bytes"], sum(sum(x.values()) for x in (goes, trash, stays)), "all bytes")
    lib.equal([(e["goal"], e["best"], e["own"]) for e in preview["experiments"] if e["experiment"] in ("judged", "plain")], [(None, None, False), ("val/acc", "max", True)], "goals")
    dry = collect(server, dry_run=True)
    lib.equal((dry["artifacts"], dry["artifact_bytes"], dry["runs"]), (len(goes) + len(trash), sum(goes.values()) + sum(trash.values()), preview["runs"]), "gc's dry run")
    server.stop()
    before = sum(place.files().values())
    left = kill_during_gc(place, stays)
    lib.check(left < len(goes) + len(trash) + len(stays), "some files went before a kill")
    server = serve(place, "--retention-every", "0")
    collect(server)
    lib.equal(collect(server, dry_run=True)["artifacts"], 0, "nothing is left to do")
    lib.equal(audited(server), len(goes), "files in the audit log")
    done = subprocess.run([lib.PROGRAM, "audit", "--check", "--url", server.url], capture_output=True, text=True, env={**os.environ, **place.env})
    lib.check(done.returncode == 0 and "none changed or missing" in done.stdout, f"audit --check: {done.stdout}{done.stderr}")
    server.stop()
    there = place.files()
    differ = sorted(p for p in {*there, *stays} if there.get(p) != stays.get(p))
    lib.check(not differ, f"what is there is what stays: {len(differ)} differ: {differ[:3]}")
    lib.equal(lib.number(place.logdir, "SELECT count(*) FROM leaving"), 0, "rows of files that leave")
    lib.equal(lib.number(place.logdir, "SELECT version FROM wandb_artifact WHERE state = 2"), 0, "the version of W&B's artifact that went")
    if isinstance(place, Objects):
        lib.check(set(place.sizes()) == set(place.rows().values()), "the bucket has the objects of rows")
    freed = before - sum(place.files().values())
    lib.check(abs(freed - dry["artifact_bytes"]) <= 0.01 * dry["artifact_bytes"], f"freed {freed}, the dry run said {dry['artifact_bytes']}")
    return stays


def quota_and_rounds(place, stays):
    """The server applies a quota by itself: the oldest files go; kept runs' stay."""
    server = serve(place, "--retention-every", "1s")
    preview = ok(server, "GET", "/api/v1/retention/preview?experiment=judged&quota_bytes=1&keep_best=5")["experiments"][0]
    lib.check(0 < preview["artifact_bytes"] < preview["total_bytes"], f"a quota of one byte: {preview}")
    quota = preview["total_bytes"] - preview["artifact_bytes"] // 2
    ok(server, "PUT", "/api/v1/retention", {"experiment": "judged", "quota_bytes": quota, "keep_best": 5})
    end = time.monotonic() + 60
    while (now := ok(server, "GET", "/api/v1/retention/preview?experiment=judged")["experiments"][0])["total_bytes"] > quota and time.monotonic() < end:
        time.sleep(0.2)
    lib.check(quota - 3000 <= now["total_bytes"] <= quota, f"bytes {now['total_bytes']} of {quota}")
    entry = ok(server, "GET", "/api/v1/audit?action=purge&limit=1")["entries"][0]
    lib.check(entry["via"] == "server" and "over the quota" in entry["detail"], f"entry {entry}")
    server.stop()


def purge(place):
    """Deletion for ever by REST, and bad input."""
    server = serve(place, "--retention-every", "0")
    runs = [ok(server, "POST", "/api/v1/runs", {"experiment": "gone", "name": f"g{i}"})["id"] for i in range(3)]
    for run in runs:
        ok(server, "PUT", f"/api/v1/runs/{run}/artifacts/x", b"12345")
        ok(server, "DELETE", f"/api/v1/runs/{run}") if run != runs[2] else None
    lib.equal(ok(server, "POST", "/api/v1/purge", {"runs": [runs[0]], "dry_run": True})["artifact_bytes"], 5, "a dry run of one")
    for body, status, field in (({"runs": [runs[2]]}, 409, "runs"), ({"runs": ["f" * 32]}, 404, "runs"), ({"runs": []}, 400, "runs"), ({"runs": ["x"]}, 400, "runs"), ({}, 400, "runs"),
                                ({"experiment": "quagga"}, 404, "experiment"), ({"experiment": "gone", "runs": runs}, 400, "runs")):
        got = server.json("POST", "/api/v1/purge", body)
        lib.equal((got[0], got[1]["error"]["field"]), (status, field), f"purge {body}: {got[1]}")
    lib.equal(ok(server, "POST", "/api/v1/purge", {"runs": [runs[0]]})["runs"], 1, "one run")
    lib.equal(server.json("POST", "/api/v1/purge", {"runs": [runs[0]]})[0], 410, "twice")
    lib.equal(ok(server, "POST", "/api/v1/purge", {"experiment": "gone"})["runs"], 1, "the trash of the experiment")
    lib.equal(server.request("GET", f"/api/v1/runs/{runs[2]}/artifacts/x")[2], b"12345", "a run that is not deleted")
    for body, status, field in (({"artifact_days": -1}, 400, "artifact_days"), ({"trash_days": -1}, 400, "trash_days"), ({"quota_bytes": 0}, 400, "quota_bytes"), ({"quota_bytes": -5}, 400, "quota_bytes"),
                                ({"artifact_days": "x"}, 400, "artifact_days"), ({"artifact_days": 0, "keep_best": 0}, 400, "artifact_days"), ({"keep_best": -1}, 400, "keep_best"),
                                ({"experiment": "quagga", "trash_days": 1}, 404, "experiment"), ({"inherit": True}, 400, "inherit")):
        got = server.json("PUT", "/api/v1/retention", body)
        lib.equal((got[0], got[1]["error"]["field"]), (status, field), f"rule {body}: {got[1]}")
        lib.check("\n" not in got[1]["error"]["message"], "one line")
    server.stop()


for kind in ("disk", "objects"):
    with tempfile.TemporaryDirectory(prefix="dptrack-retention.", dir=MEMORY) as folder:
        logdir = os.path.join(folder, "runs")
        bucket = Bucket(os.path.join(folder, "bucket")) if kind == "objects" else None
        place = Objects(logdir, bucket.env, bucket.sizes) if bucket else Disk(logdir)
        began = time.monotonic()
        quota_and_rounds(place, rules(place))
        purge(place)
        print(f"{kind}: {time.monotonic() - began:.1f} s")
        if bucket:
            lib.check(FULL or bucket.server.deletions < 50, f"{0 if FULL else bucket.server.deletions} requests: objects are deleted many at a time")
            bucket.stop()
lib.finish("retention")
