#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server of our own tests of Google Cloud Storage, spoken to by Google's own client (google-cloud-storage of PyPI): it
gets its tokens with the same key file, uploads, lists and reads; tokens are revoked meanwhile. Each program reads what the
other one wrote, and dptrain trains from the objects that Google's client uploaded; the run records their generations."""
import json
import os
import subprocess
import sys
import tempfile

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
TOOL = os.path.join(BUILD, "tests", "tracker", "object_tool")
sys.path[:0] = [os.path.join(SRC, "tests", name) for name in ("bench", "data", "tracker", "whole")]
import noisy  # noqa: E402
import packages  # noqa: E402
import serve  # noqa: E402
from gcsserver import GCS  # noqa: E402

PINNED = ["google-cloud-storage==3.17.1"]

CLIENT = """
import json, os, sys
from google.cloud import storage
url, key, folder = sys.argv[1:]
client = storage.Client.from_service_account_json(key, client_options={"api_endpoint": url})
bucket = client.bucket("shop")
for name in sorted(os.listdir(folder)):
    bucket.blob("set/" + name).upload_from_filename(os.path.join(folder, name))
wrote = bucket.blob("ours").download_as_bytes()
bucket.blob("theirs").upload_from_string(wrote[::-1])
print(json.dumps({b.name: [b.generation, b.size] for b in client.list_blobs("shop")}))
"""


def run(env, *args, data=b""):
    return subprocess.run([TOOL, *args], input=data, stdout=subprocess.PIPE, timeout=100, check=True, env={"OBJECT_SCHEME": "gs://", **env}).stdout


def main(python, tmp):
    os.makedirs(f"{tmp}/store/shop")
    noisy.folder(f"{tmp}/folder", {"train": 40, "val": 8})
    serve.train("shard", "--data-path", f"{tmp}/folder", "--out", f"{tmp}/shards", "--shard-size", "200kB")
    shards = [n for n in sorted(os.listdir(f"{tmp}/shards")) if not n.startswith(".")]
    server = GCS(f"{tmp}/store")
    key = server.key_file(f"{tmp}/key.json")
    env = server.environment(GOOGLE_APPLICATION_CREDENTIALS=key, XDG_CACHE_HOME=f"{tmp}/cache")
    written = os.urandom(70000)
    run(env, "put", "shop", "ours", data=written)
    server.asked, server.revoke_at, server.unauthorized = 0, {2, 5}, 0
    clean = {k: v for k, v in env.items() if k not in ("STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS")}
    done = subprocess.run([python, "-c", CLIENT, server.url, key, f"{tmp}/shards"], capture_output=True, text=True, timeout=200, check=False, env=clean)
    assert done.returncode == 0, done.stderr[-2000:]
    assert server.unauthorized >= 2, server.unauthorized  # a slow client may also meet an expired token
    listed = {k: (int(g), n) for k, (g, n) in json.loads(done.stdout).items()}
    assert set(listed) == {"ours", "theirs", *("set/" + n for n in shards)}, listed
    server.asked, server.revoke_at, server.unauthorized = 0, {3}, 0
    assert run(env, "get", "shop", "theirs") == written[::-1]
    assert run(env, "list", "shop", "").decode().splitlines() == [f"object {listed[k][1]} {k}" for k in sorted(listed)]
    serve.train("--model", "resnet20", "--image-size", "16", "-b", "4", "--threads", "1", "--max-steps", "2", "--experiment", "google", "--runs-dir", f"{tmp}/runs",
                "--data-path", "gs://shop/set", env=env)
    assert server.unauthorized, "no token was revoked"
    with serve.Server(f"{tmp}/runs") as shown:
        (one,) = shown.json("/runs?experiment=google")["runs"]
        inputs = shown.json(f"/runs/{one['id']}")["inputs"]
    got = {i["source"]: json.loads(i["profile"])["bytes"] for i in inputs if i["context"].endswith(" object")}
    assert got == {f"gs://shop/set/{n}#{listed['set/' + n][0]}": listed["set/" + n][1] for n in shards if n.endswith(".tar")}, (got, listed)
    server.stop()
    print("object_google_client: Google's client and ours read what the other one wrote; a run records the generations it names")


try:
    program = packages.python(BUILD, "google", PINNED)
except packages.Unavailable as e:
    print(e)
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="dptrack-google-") as scratch:
    main(program, scratch)
