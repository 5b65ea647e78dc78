#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Artifacts of `dptrack serve` in a bucket of Google Cloud Storage: a file in parts up and down, after the token was
revoked, and no key in the messages."""
import os
import sys
import tempfile

SRC = os.environ.get("srcdir", ".")
sys.path[:0] = [os.path.join(SRC, "tests", name) for name in ("api", "tracker")]
import lib  # noqa: E402
from gcsserver import GCS  # noqa: E402


def main(tmp):
    os.makedirs(f"{tmp}/store/shop")
    os.makedirs(f"{tmp}/runs")
    google = GCS(f"{tmp}/store")
    env = google.environment(GOOGLE_APPLICATION_CREDENTIALS=google.key_file(f"{tmp}/key.json"))
    data = os.urandom(34 << 20)
    server = lib.Server(f"{tmp}/runs", "--artifacts", "gs://shop/team", env=env)
    path = f"/api/v1/runs/{lib.make_run(server)}/artifacts/deep/big.bin"
    google.valid.clear()
    lib.equal(server.request("PUT", path, data)[0], 200, "PUT")
    status, _, body = server.request("GET", path)
    lib.check(status == 200 and body == data, f"GET: {status}, {len(body)} bytes")
    lib.equal(server.stop(), 0, "exit code")
    lib.check(not any(word in server.stderr() for word in ("ya29.", "PRIVATE KEY")), "no secret in messages")
    stored = [os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(f"{tmp}/store/shop/team") for f in files]
    lib.check(sum(stored) == len(data), f"objects of {stored} bytes")
    lib.check(google.unauthorized and google.issued == 2, f"{google.unauthorized} refusals, {google.issued} tokens")
    google.stop()
    lib.finish("object_serve")


with tempfile.TemporaryDirectory(prefix="dptrack-google-") as scratch:
    main(scratch)
