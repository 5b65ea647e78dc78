#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shards and class folders in a bucket of Google Cloud Storage: the same stream as from the disk, by a service account's
key, the metadata server and HMAC keys, also with tokens that expire while the data is read and with a server that is
busy and truncates; the run records each object with its generation and size; refusals are one line."""
import json
import os
import subprocess
import sys
import tempfile

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
DPTRAIN = os.path.join(BUILD, "dptrain")
DELIVER = os.path.join(BUILD, "tests", "data", "deliver")
sys.path[:0] = [os.path.join(SRC, "tests", name) for name in ("data", "tracker", "whole")]
import noisy  # noqa: E402
import serve  # noqa: E402
from gcsserver import GCS  # noqa: E402
from s3server import ID, SECRET  # noqa: E402

ARGS = {"shuffle": 3, "window": 30, "batch": 8, "epochs": 2, "ranks": 2, "workers": 3}


def deliver(spec, env, code=0, **options):
    done = subprocess.run([DELIVER, spec, *[f"{k}={v}" for k, v in options.items()]], capture_output=True, text=True, timeout=100, check=False, env=env)
    assert done.returncode == code, (spec, done)
    if code:
        assert len(done.stderr.splitlines()) == 1 and "ya29." not in done.stderr and SECRET not in done.stderr, done.stderr
        return done.stderr
    return done.stdout.splitlines()[:2]


def streams(server, env, tmp):
    local = deliver(f"{tmp}/set/shards", env, **ARGS)
    names = sorted(n for n in os.listdir(f"{tmp}/set/shards") if n.startswith("train") and n.endswith(".tar"))
    for i, more in enumerate((server.keys(), server.metadata(), {"GOOGLE_APPLICATION_CREDENTIALS": server.key_file(f"{tmp}/key.json")})):
        env = server.environment(XDG_CACHE_HOME=f"{tmp}/cache{i}", **more)
        for where in ("gs://set/shards", "gs://set/shards/train.json", f"gs://set/shards/train-{{000000..{len(names) - 1:06d}}}.tar"):
            assert deliver(where, env, **ARGS) == local, (more, where)
    for number in range(1, 6):
        server.asked, server.revoke_at, server.unauthorized = 0, {number}, 0
        assert deliver("gs://set/shards", env, **ARGS) == local
        assert server.unauthorized, number
    server.revoke_at = set()
    server.faults, server.every = ["503", "cut", "wrong", "429", "reset"], 3
    for _ in range(3):
        assert deliver("gs://set/shards", env, **ARGS) == local
    assert server.failed > 3, server.failed
    server.faults = []
    return env


def refused(server, env):
    said = deliver("gs://other/shards", env, code=1)
    assert "not found: NoSuchBucket" in said or "does not exist" in said, said
    server.denied = {"set"}
    for where in ("gs://set/shards", "gs://set/shards/train.json"):
        said = deliver(where, env, code=1)
        assert "status 403, AccessDenied: grant trainer@project.iam.gserviceaccount.com the role Storage Object Viewer" in said, said
    server.denied = set()
    server.lifetime = -1
    said = deliver("gs://set/shards/train.json", env, code=1)
    assert "status 401, InvalidToken: the server does not accept the token" in said, said
    server.lifetime = 3600


def recorded(server, env, tmp):
    flags = ["--model", "resnet20", "--image-size", "16", "-b", "4", "--threads", "1", "--workers", "1", "--experiment", "far", "--max-steps", "2", "--runs-dir", f"{tmp}/runs"]
    serve.train(*flags, "--run-name", "shards", "--data-path", "gs://set/shards", env=env)
    serve.train(*flags, "--run-name", "folder", "--data-path", "gs://set/folder/", env=env)
    with serve.Server(f"{tmp}/runs") as shown:
        runs = {r["name"]: shown.json(f"/runs/{r['id']}")["inputs"] for r in shown.json("/runs?experiment=far")["runs"]}
    for name, inputs in runs.items():
        root = f"{tmp}/set/{name}"
        assert [(i["context"], i["source_type"], i["source"].rstrip("/")) for i in inputs if not i["context"].endswith(" object")] == [
            ("training", "gs", f"gs://set/{name}"), ("validation", "gs", f"gs://set/{name}")], inputs
        want = {}
        for folder, _, files in os.walk(root):
            for file in files:
                path = os.path.join(folder, file)
                if not file.endswith((".json", ".idx")) and "/.dptrain" not in path:
                    want["gs://set/" + os.path.relpath(path, f"{tmp}/set")] = (os.stat(path).st_mtime_ns // 1000, os.path.getsize(path))
        got = {}
        for i in inputs:
            if i["context"].endswith(" object"):
                address, generation = i["source"].rsplit("#", 1)
                profile = json.loads(i["profile"])
                assert profile["generation"] == generation and i["source_type"] == "gs" and len(i["digest"]) == 64, i
                got[address] = (int(generation), profile["bytes"])
        assert got == want and len(want) > 1, (name, sorted(set(got.items()) ^ set(want.items())))
    for path in [os.path.join(d, f) for d, _, files in os.walk(f"{tmp}/runs") for f in files]:
        with open(path, "rb") as f:
            data = f.read()
        assert not any(s.encode() in data for s in (ID, SECRET, "ya29.", "PRIVATE KEY")), path


def main(tmp):
    noisy.folder(f"{tmp}/set/folder", {"train": 66, "val": 9})
    subprocess.run([DPTRAIN, "shard", "--data-path", f"{tmp}/set/folder", "--out", f"{tmp}/set/shards", "--shard-size", "400kB"], check=True, stdout=subprocess.DEVNULL)
    server = GCS(tmp, page=7)
    env = streams(server, {**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache"}, tmp)
    refused(server, env)
    recorded(server, env, tmp)
    server.stop()
    print("google: the same stream from a bucket, expiring tokens, objects recorded with generations")


with tempfile.TemporaryDirectory(prefix="dptrain-google-") as scratch:
    main(scratch)
