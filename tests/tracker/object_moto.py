#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The S3 client with independent programs: 1,000 random signatures equal botocore's; it reads, writes, lists and
trains from moto's server, which checks signatures against the keys of its users; a wrong secret is refused first. The
run records what it was trained on, by REST and MLflow's routes, and none of its files contains the key."""
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
TOOL = os.path.join(BUILD, "tests", "tracker", "object_tool")
DELIVER = os.path.join(BUILD, "tests", "data", "deliver")
sys.path[:0] = [os.path.join(SRC, "tests", "bench"), os.path.join(SRC, "tests", "whole"), os.path.join(SRC, "tests")]
import packages  # noqa: E402
import serve  # noqa: E402
from ports import free_port  # noqa: E402

REGION = "eu-west-1"
SIGNED = """
import json, sys
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
import botocore.auth, datetime

class Then(datetime.datetime):
    @classmethod
    def utcnow(cls):
        return cls(2026, 11, 21, 17, 0, 5)

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 21, 17, 0, 5, tzinfo=tz)

botocore.auth.datetime.datetime = Then
if hasattr(botocore.auth, "get_current_datetime"):
    botocore.auth.get_current_datetime = lambda **_: Then.now()
for line in sys.stdin:
    r = json.loads(line)
    url = "http://store.example:9000/" + r["encoded"]
    request = AWSRequest(method=r["method"], url=url, params=dict(r["query"]), headers=dict(r["headers"]), data=b"")
    request.context["payload_signing_enabled"] = True
    S3SigV4Auth(Credentials(r["id"], r["secret"]), "s3", "eu-west-1").add_auth(request)
    print(request.headers["Authorization"])
"""


def same_signatures(python):
    from urllib.parse import quote
    draw = random.Random(7)
    letters = "abcXYZ019-._~ /+%&=?#!*'()@:;,$äß€字[]{}|^`\"<>\\"
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    secret, ours, theirs = "wJalr/+XUtnFEMI=K7MDENGbPxRfiCY", "", ""
    for _ in range(1000):
        key = "".join(draw.choice(letters) for _ in range(draw.randrange(1, 40))).lstrip("/") or "k"
        while "//" in key:
            key = key.replace("//", "/")
        names = draw.sample(["prefix", "list-type", "uploadId", "partNumber", "delimiter", "uploads", "x-id", "marker"], draw.randrange(4))
        query = [(n, "".join(draw.choice(letters) for _ in range(draw.randrange(9)))) for n in names]
        extra = [(n, "%x" % draw.getrandbits(60)) for n in draw.sample(["range", "if-match", "x-amz-meta-a", "content-type"], draw.randrange(3))]
        headers = sorted([("host", "store.example:9000"), ("x-amz-content-sha256", empty), ("x-amz-date", "20261121T170005Z"), *extra])
        method = draw.choice(["GET", "PUT", "HEAD", "POST", "DELETE"])
        ours += "\n".join([method, key, empty, str(len(query)), *sum(map(list, query), []), str(len(headers)), *sum(map(list, headers), [])]) + "\n"
        theirs += json.dumps({"method": method, "encoded": quote(key, safe="/~"), "query": query, "headers": extra, "id": "AKIA", "secret": secret}) + "\n"
    a = subprocess.run([TOOL, "sign", "AKIA", secret, REGION, "20261121T170005Z"], input=ours, capture_output=True, text=True, check=True).stdout.splitlines()
    b = subprocess.run([python, "-c", SIGNED], input=theirs, capture_output=True, text=True, check=True).stdout.splitlines()
    differing = [i for i, (x, y) in enumerate(zip(a, b)) if x != y]
    assert len(a) == len(b) == 1000 and not differing, (len(differing), a[differing[0]], b[differing[0]], theirs.splitlines()[differing[0]])


USERS = """
import boto3, json, sys
root = dict(endpoint_url=sys.argv[1], aws_access_key_id="any", aws_secret_access_key="any", region_name="eu-west-1")
iam = boto3.client("iam", **root)
iam.create_user(UserName="trainer")
iam.put_user_policy(UserName="trainer", PolicyName="s3", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}))
key = iam.create_access_key(UserName="trainer")["AccessKey"]
s3 = boto3.client("s3", **{**root, "aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]})
s3.create_bucket(Bucket="shop", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
print(key["AccessKeyId"], key["SecretAccessKey"])
"""


def start(python):
    port = free_port()
    server = subprocess.Popen([os.path.join(os.path.dirname(python), "moto_server"), "-p", str(port)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "3"})
    url = f"http://127.0.0.1:{port}"
    until = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return server, url
        except OSError:
            assert server.poll() is None and time.monotonic() < until, "moto_server does not start"
            time.sleep(0.1)


def run(env, *args, data=b"", code=0, tool=TOOL):
    done = subprocess.run([tool, *args], input=data, capture_output=True, timeout=100, check=False, env=env)
    assert done.returncode == code, (args, done.returncode, done.stdout[:200], done.stderr)
    return done.stderr.decode() if code else done.stdout


def objects(env):
    wrong = run({**env, "AWS_SECRET_ACCESS_KEY": "planted"}, "list", "shop", "", code=1)
    assert "SignatureDoesNotMatch" in wrong and "planted" not in wrong, wrong
    assert "InvalidAccessKeyId" in run({**env, "AWS_ACCESS_KEY_ID": "AKIAOTHER"}, "get", "shop", "x", code=1)
    big = os.urandom(11 << 20)
    for key in ("plain", "a b/~c.txt"):  # moto refuses even botocore's signatures of other characters
        run(env, "put", "shop", key, data=big[:70000])
        assert run(env, "get", "shop", key, "100", "700") == big[100:800], key
    assert run(env, "head", "shop", "plain").startswith(b"70000 \"")
    run(env, "upload", "shop", "parts/one", str(5 << 20), data=big)
    assert run(env, "get", "shop", "parts/one") == big
    assert run(env, "list", "shop", "").decode().splitlines() == [  # with a slash in the query it refuses even botocore's
        "object 70000 a b/~c.txt", f"object {len(big)} parts/one", "object 70000 plain"]
    assert run(env, "list", "shop", "pl").decode() == "object 70000 plain\n"
    for key in ("plain", "none"):
        run(env, "delete", "shop", key)
    assert "not found: NoSuchKey" in run(env, "get", "shop", "plain", code=1)


def shards(env, folder):
    """The stream of shards in the bucket equals that of the same shards on disk."""
    import io
    import tarfile
    draw = random.Random(3)
    os.makedirs(folder)
    for s in range(3):
        with tarfile.open(f"{folder}/train-{s:06d}.tar", "w") as t:
            for i in range(40):
                pixels = b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '|u1', 'fortran_order': False, 'shape': (8, 8, 3), }".ljust(117) + b"\n" + draw.randbytes(192)
                for field, data in (("npy", pixels), ("cls", str(i % 3).encode())):
                    info = tarfile.TarInfo(f"{s * 40 + i:06d}.{field}")
                    info.size = len(data)
                    t.addfile(info, io.BytesIO(data))
        with open(f"{folder}/train-{s:06d}.tar", "rb") as f:
            run(env, "put", "shop", f"set/train-{s:06d}.tar", data=f.read())
    args = ["shuffle=3", "window=30", "epochs=2", "ranks=2", "workers=2"]
    spec = "s3://shop/set/train-{000000..000002}.tar"
    local = run(env, folder, *args, tool=DELIVER)
    assert b"samples 240" in local and run(env, spec, *args, tool=DELIVER) == local
    wrong = run({**env, "AWS_SECRET_ACCESS_KEY": "planted"}, spec, tool=DELIVER, code=1)
    assert "SignatureDoesNotMatch" in wrong and len(wrong.splitlines()) == 1, wrong


def trained(env, runs):
    """The record of a run's data; no file below its folder contains the key."""
    flags = ["--model", "resnet20", "-b", "16", "--threads", "1", "--workers", "1", "--max-steps", "2", "--experiment", "far"]
    serve.train(*flags, "--runs-dir", runs, "--data-path", "s3://shop/set/train-{000000..000001}.tar", "--val-path", "s3://shop/set/train-000002.tar",
                "--nproc-per-node", "2", env=env)
    files = [os.path.join(d, f) for d, _, names in os.walk(runs) for f in names]
    with serve.Server(runs) as server:
        (one,) = server.json("/runs?experiment=far")["runs"]
        inputs = server.json(f"/runs/{one['id']}")["inputs"]
        with urllib.request.urlopen(f"{server.url}/api/2.0/mlflow/runs/get?run_id={one['id']}", timeout=30) as reply:
            theirs = json.load(reply)["run"]["inputs"]["dataset_inputs"]
        files += [os.path.join(d, f) for d, _, names in os.walk(runs) for f in names]
    for path in {f for f in files if os.path.exists(f)}:
        with open(path, "rb") as f:
            said = f.read()
        for secret in (env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]):
            assert secret.encode() not in said, path
    inputs_of_run = [(i["context"], i["source_type"], i["source"], json.loads(i["profile"])["samples"], json.loads(i["profile"])["shards"]) for i in inputs]
    assert inputs_of_run == [("training", "s3", "s3://shop/set/train-{000000..000001}.tar", 80, 2), ("validation", "s3", "s3://shop/set/train-000002.tar", 40, 1)], inputs_of_run
    assert [(d["dataset"]["source"], d["dataset"]["digest"], d["tags"][0]["value"]) for d in theirs] == [
        (i["source"], i["digest"], i["context"]) for i in inputs], (theirs, inputs)
    assert len(files) > 3 and len({i["digest"] for i in inputs}) == 2, (files, inputs)


try:
    program = packages.python(BUILD, "moto", ["moto[server]==5.1.4", "boto3==1.44.5"])
except packages.Unavailable as e:
    print(e)
    sys.exit(77)
same_signatures(program)
moto, address = start(program)
try:
    who = subprocess.run([program, "-c", USERS, address], capture_output=True, text=True, check=True).stdout.split()
    with tempfile.TemporaryDirectory(prefix="dptrack-moto-") as tmp:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        here = {**clean, "HOME": tmp, "XDG_CACHE_HOME": tmp, "no_proxy": "*", "AWS_ENDPOINT_URL_S3": address, "AWS_REGION": REGION,
                "AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": who[0], "AWS_SECRET_ACCESS_KEY": who[1]}
        objects(here)
        shards(here, os.path.join(tmp, "shards"))
        trained(here, os.path.join(tmp, "runs"))
finally:
    moto.terminate()
    moto.wait()
print("object_moto: 1000 signatures equal botocore's; read, wrote, listed and trained from moto")
