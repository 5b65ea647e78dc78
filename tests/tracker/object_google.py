#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Google Cloud Storage with a server that checks keys, tokens and the signatures of service accounts: HMAC keys, a key
file, a user's file and the metadata server; tokens that expire sooner than promised; busy servers and truncated bodies;
and refusals in one line without secrets."""
import json
import os
import subprocess
import sys
import tempfile
import time

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
TOOL = os.path.join(BUILD, "tests", "tracker", "object_tool")
sys.path[:0] = [os.path.join(SRC, "tests", name) for name in ("data", "tracker")]
from gcsserver import EMAIL, GCS  # noqa: E402
from s3server import SECRET  # noqa: E402


def run(env, *args, data=b"", code=0):
    done = subprocess.run([TOOL, *args], input=data, capture_output=True, timeout=100, check=False, env={"OBJECT_SCHEME": "gs://", "OBJECT_TIMEOUT": "5", **env})
    assert done.returncode == code, (args, done.returncode, done.stdout[:200], done.stderr)
    said = done.stderr.decode()
    for secret in (SECRET, "planted", "ya29.", "PRIVATE KEY"):
        assert secret not in said, said
    if code:
        assert len(said.splitlines()) == 1, said
        return said
    return done.stdout


def ways(server, tmp):
    """The credentials that a machine can have."""
    user, gcloud = os.path.join(tmp, "user.json"), os.path.join(tmp, "gcloud")
    os.mkdir(gcloud)
    said = {"type": "authorized_user", "client_id": "1", "client_secret": "planted-secret", "refresh_token": "planted-refresh", "token_uri": server.url + "/token"}
    for path in (user, os.path.join(gcloud, "application_default_credentials.json")):
        with open(path, "w", encoding="utf-8") as f:
            json.dump(said, f)
    return {"HMAC": server.keys(), "account": {"GOOGLE_APPLICATION_CREDENTIALS": server.key_file(os.path.join(tmp, "key.json"))},
            "user": {"GOOGLE_APPLICATION_CREDENTIALS": user}, "metadata": server.metadata()}


def objects(server, env, way):
    """Everything that is done with objects."""
    body, big = os.urandom(70000), os.urandom(11 << 20)
    run(env, "put", "shop", "a b/ü+%41&=?#.txt", data=body)
    assert run(env, "get", "shop", "a b/ü+%41&=?#.txt") == body, way
    assert run(env, "get", "shop", "a b/ü+%41&=?#.txt", "100", "7") == body[100:107], way
    assert run(env, "head", "shop", "a b/ü+%41&=?#.txt").startswith(b"70000 \""), way
    assert run(env, "fresh", "shop", "a b/ü+%41&=?#.txt", data=b"x", code=1).startswith("-3 gs://shop/a b/ü+%41&=?#.txt: already exists"), way
    run(env, "upload", "shop", "parts/one", str(5 << 20), data=big)
    assert run(env, "get", "shop", "parts/one") == big and not server.uploads, way
    for i in range(8):
        run(env, "put", "shop", f"list/{i}", data=b"12")
    assert run(env, "list", "shop", "list/").decode() == "".join(f"object 2 list/{i}\n" for i in range(8)), way
    assert run(env, "list", "shop", "", "/").decode().splitlines() == ["shared 0 a b/", "shared 0 list/", "shared 0 parts/"], way
    run(env, "delete", "shop", "list/7")
    assert "not found: NoSuchKey" in run(env, "get", "shop", "list/7", code=1), way
    assert run(env, "list", "absent", "", code=1).startswith("-2 gs://absent/: not found: NoSuchBucket"), way


def expiry(server, env):
    """Tokens are replaced before they expire, and after a refusal, once for each request."""
    server.promised, server.pause, server.unauthorized, issued = 1, 0.3, 0, server.issued
    run(env, "list", "shop", "")
    assert server.issued - issued >= 2 and not server.unauthorized, (server.issued - issued, server.unauthorized)
    server.promised, server.pause, server.asked, server.revoke_at, issued = 3600, 0, 0, {1, 4, 9}, server.issued
    run(env, "upload", "shop", "parts/slow", str(5 << 20), data=os.urandom(22 << 20))
    run(env, "list", "shop", "")
    assert server.unauthorized == 3 and server.issued - issued == 5, (server.unauthorized, server.issued - issued)
    server.revoke_at, server.lifetime, server.unauthorized, issued = set(), -1, 0, server.issued
    said = run(env, "get", "shop", "list/1", code=1)
    assert "-1 gs://shop/list/1: the server answered status 401, InvalidToken: the server does not accept the token" in said, said
    assert server.unauthorized == 2 and server.issued - issued == 2, (server.unauthorized, server.issued - issued)
    server.lifetime = 3600


def busy(server, env):
    server.token_faults = [503, 429, 500]
    assert run(env, "get", "shop", "list/1") == b"12" and not server.token_faults
    server.faults, server.every = ["503", "cut", "429", "reset"], 2
    for _ in range(4):
        assert len(run(env, "get", "shop", "parts/one", "1000", str(10 << 20))) == 10 << 20
    assert server.failed > 3
    server.faults = []
    server.token_faults = [503] * 9
    said = run(env, "get", "shop", "list/1", code=1)
    assert "-5 gs://shop: " in said and "the token server answered status 503" in said, said
    server.token_faults = []


def refusals(server, every, tmp):
    account, key = every["account"], every["account"]["GOOGLE_APPLICATION_CREDENTIALS"]

    def changed(**more):
        with open(key, encoding="utf-8") as f:
            value = {k: v for k, v in {**json.load(f), **more}.items() if v is not None}
        path = os.path.join(tmp, f"changed-{'-'.join(more)}.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(value, f)
        return {"GOOGLE_APPLICATION_CREDENTIALS": path}

    other = os.path.join(tmp, "other.json")
    known = server.modulus
    server.key_file(other)
    server.modulus = known
    broken = os.path.join(tmp, "broken.json")
    with open(broken, "w", encoding="utf-8") as f:
        f.write("{\n nothing")
    wrong = [({}, "status 401, AuthenticationRequired: no credentials were sent: set GOOGLE_APPLICATION_CREDENTIALS"),
             ({"GS_ACCESS_KEY_ID": "x"}, "GS_SECRET_ACCESS_KEY is not set"),
             ({**server.keys(), "GS_SECRET_ACCESS_KEY": "planted"}, "status 403, SignatureDoesNotMatch"),
             ({"GOOGLE_APPLICATION_CREDENTIALS": "/nonexistent/k.json"}, "GOOGLE_APPLICATION_CREDENTIALS=/nonexistent/k.json: no such file"),
             ({"GOOGLE_APPLICATION_CREDENTIALS": broken}, "is not a file of Google credentials: line 2"),
             ({"GOOGLE_APPLICATION_CREDENTIALS": other}, "status 400, invalid_grant: Invalid JWT Signature."),
             (changed(private_key=None), "has no private_key"), (changed(private_key="planted", x=1), "private_key is not an RSA key"),
             (changed(type="external_account"), "type external_account are not supported: expected service_account"),
             (changed(token_uri="http://127.0.0.1:9/"), "the token server cannot be reached: "),
             ({"STORAGE_EMULATOR_HOST": "http://me:planted@localhost"}, "is not an http:// or https:// URL"),
             ({"STORAGE_EMULATOR_HOST": server.url + "/storage/v1"}, "a path is not allowed")]
    for more, words in wrong:
        said = run(server.environment(**more), "get", "shop", "list/1", code=1)
        assert words in said and "gs://shop" in said, (more, said)
    for skew, words in ((4000, "s slow: set it"), (-4000, "s fast: set it")):
        server.skew = skew
        said = run(server.environment(**account), "get", "shop", "list/1", code=1)
        assert "invalid_grant: Invalid JWT: Token must be a short-lived token" in said and words in said, said
    server.skew = 0
    server.denied = {"shop"}
    assert f"status 403, AccessDenied: grant {EMAIL} the role Storage Object Viewer" in run(server.environment(**account), "get", "shop", "list/1", code=1)
    server.denied = set()


def alone(server):
    """No credentials, and no metadata server: one line that names all sources, soon. A public bucket needs none."""
    env = server.environment(GCE_METADATA_HOST="127.0.0.1:9")
    began = time.monotonic()
    said = run(env, "get", "shop", "list/1", code=1)
    assert "no credentials for Google Cloud Storage: set GOOGLE_APPLICATION_CREDENTIALS, or GS_ACCESS_KEY_ID" in said, said
    assert time.monotonic() - began < 15
    for more in ({}, {**env, "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true"}):
        assert run(server.environment(**more), "get", "public", "readme") == b"hello"


with tempfile.TemporaryDirectory(prefix="dptrack-google-") as scratch:
    root = os.path.join(scratch, "store")
    for name in ("shop", "public"):
        os.makedirs(os.path.join(root, name))
    with open(os.path.join(root, "public", "readme"), "wb") as file:
        file.write(b"hello")
    gcs = GCS(root, page=3)
    all_ways = ways(gcs, scratch)
    for label, variables in all_ways.items():
        objects(gcs, gcs.environment(**variables), label)
    gcloud_env = gcs.environment(CLOUDSDK_CONFIG=os.path.join(scratch, "gcloud"))
    for label in ("account", "metadata"):
        expiry(gcs, gcs.environment(**all_ways[label]))
        busy(gcs, gcs.environment(**all_ways[label]))
    refusals(gcs, all_ways, scratch)
    alone(gcs)
    gcs.stop()
print("object_google: HMAC keys, key file, user's file, metadata server; expiring tokens, busy servers, refusals")
