#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The S3 client with a server that checks every signature: published signatures, keys of any characters, ranges,
listings in pages, uploads in parts, busy and truncated replies, credentials from variables, files, containers and
instances, and refusals."""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
TOOL = os.path.join(BUILD, "tests", "tracker", "object_tool")
sys.path.insert(0, os.path.join(SRC, "tests", "data"))
from s3server import ID, S3, SECRET  # noqa: E402

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def run(env, *args, data=b"", code=0):
    done = subprocess.run([TOOL, *args], input=data, capture_output=True, timeout=60, check=False, env=env)
    assert done.returncode == code, (args, done.returncode, done.stdout[:200], done.stderr)
    said = done.stderr.decode()
    for secret in (SECRET, "planted"):
        assert secret not in said, said
    if code:
        assert len(said.splitlines()) == 1, said
        return said
    return done.stdout


def published():
    """Amazon S3 API Reference, "Signature Calculations for the Authorization Header": its four examples."""
    host, date = ("host", "examplebucket.s3.amazonaws.com"), ("x-amz-date", "20130524T000000Z")
    put = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"
    examples = [
        ("GET", "test.txt", EMPTY, [], [host, ("range", "bytes=0-9"), ("x-amz-content-sha256", EMPTY), date],
         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        ("PUT", "test$file.text", put, [], [("date", "Fri, 24 May 2013 00:00:00 GMT"), host, ("x-amz-content-sha256", put), date,
                                            ("x-amz-storage-class", "REDUCED_REDUNDANCY")],
         "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        ("GET", "", EMPTY, [("lifecycle", "")], [host, ("x-amz-content-sha256", EMPTY), date],
         "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("GET", "", EMPTY, [("max-keys", "2"), ("prefix", "J")], [host, ("x-amz-content-sha256", EMPTY), date],
         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")]
    text = ""
    for method, key, payload, query, headers, _ in examples:
        lines = [method, key, payload, str(len(query)), *sum(map(list, query), []), str(len(headers)), *sum(map(list, headers), [])]
        text += "\n".join(lines) + "\n"
    got = run(os.environ, "sign", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1",
              "20130524T000000Z", data=text.encode()).decode().splitlines()
    assert [g[-64:] for g in got] == [e[-1] for e in examples], got


def objects(root):
    server = S3(root, page=3)
    env = server.environment()
    for key in ("plain", "a b/ü+%41&=?#.txt", "x/../y//z", "~*'()!@:,;$"):
        body = os.urandom(70000)
        if ".." not in key:
            run(env, "put", "shop", key, data=body)
            assert run(env, "get", "shop", key) == body
            assert run(env, "get", "shop", key, "100", "7") == body[100:107]
            assert run(env, "head", "shop", key).startswith(b"70000 \"")
        else:
            assert "not found" in run(env, "get", "shop", key, code=1)
    assert run(env, "fresh", "shop", "plain", data=b"x", code=1).startswith("-3 s3://shop/plain: already exists")
    big = os.urandom(12 << 20)
    run(env, "upload", "shop", "parts/one", str(5 << 20), data=big)
    assert run(env, "get", "shop", "parts/one") == big and not server.uploads
    run({**env, "OBJECT_GIVE_UP": "1"}, "upload", "shop", "parts/two", str(5 << 20), data=big)
    assert not server.uploads and "not found" in run(env, "head", "shop", "parts/two", code=1)
    for i in range(8):
        run(env, "put", "shop", f"list/{i}", data=b"12")
    assert run(env, "list", "shop", "list/").decode() == "".join(f"object 2 list/{i}\n" for i in range(8))
    assert run(env, "list", "shop", "", "/").decode().splitlines() == [
        "shared 0 a b/", "shared 0 list/", "shared 0 parts/", "object 70000 plain", "object 70000 ~*'()!@:,;$"]
    run(env, "delete", "shop", "plain")
    run(env, "delete", "shop", "plain")
    delete_many(server, env)
    assert run(env, "get", "shop", "plain", code=1).startswith("-2 s3://shop/plain: not found: NoSuchKey")
    assert run(env, "list", "nobody", "", code=1).startswith("-2 s3://nobody/: not found: NoSuchBucket")
    server.stop()
    return big


def delete_many(server, env):
    """Several in one request, by servers that know it or not; uploads are looked for in pages, and the first key that stays is named."""
    keys = [f"many/{i} é&<'>" for i in range(9)]
    for status in (0, 400, 501):
        server.refuses_many = status
        for key in keys[1:]:
            run(env, "put", "shop", key, data=b"1")
        server.deletions = 0
        run({**env, "OBJECT_TIMEOUT": "1"}, "delete", "shop", *keys)
        assert run(env, "list", "shop", "many/") == b"" and server.deletions in ({0: [1], 400: [10], 501: range(11, 99)}[status]), (status, server.deletions)
    server.refuses_many, server.locked = 0, {keys[4]}
    run(env, "put", "shop", keys[4], data=b"1")
    said = run(env, "delete", "shop", *keys[2:6], code=1)
    assert said == f"-1 s3://…/{keys[4]}: the server did not delete it: AccessDenied\n", said
    server.locked = set()
    run(env, "delete", "shop", keys[4])
    server.uploads.update({str(i): {} for i in range(8)})
    server.upload_keys.update({str(i): f"many/{i}" for i in range(8)})
    run(env, "abandon", "shop", "many/1", "many/6", "many/9", "many/3")
    assert sorted(server.upload_keys[u] for u in server.uploads) == [f"many/{i}" for i in (0, 2, 4, 5, 7)], server.uploads
    server.uploads.clear()


def faults(root, big):
    server = S3(root, faults=["503", "cut", "500", "reset", "ignored"], every=2)
    server.spares_probes = False
    for _ in range(6):
        assert run(server.environment(), "get", "shop", "parts/one", "1000", str(11 << 20)) == big[1000:1000 + (11 << 20)]
    assert server.failed >= 5
    server.stop()
    began = time.monotonic()
    said = run(server.environment(OBJECT_TIMEOUT="1"), "get", "shop", "plain", code=1)
    assert said.startswith("-5 s3://shop/plain:") and time.monotonic() - began < 20, said


def refusals(root):
    server = S3(root)
    wrong = [({"AWS_SECRET_ACCESS_KEY": "planted"}, "-1 s3://shop/plain: the server answered status 403, SignatureDoesNotMatch"),
             ({"AWS_ACCESS_KEY_ID": "AKIAOTHER"}, "status 403, InvalidAccessKeyId"),
             ({"AWS_SECRET_ACCESS_KEY": ""}, "AWS_SECRET_ACCESS_KEY is not set"),
             ({"AWS_SECRET_ACCESS_KEY": "", "AWS_ACCESS_KEY_ID": ""}, "no keys for S3"),
             ({"AWS_ENDPOINT_URL_S3": "http://me:planted@localhost"}, "is not an http:// or https:// URL"),
             ({"AWS_ENDPOINT_URL_S3": "localhost:9000"}, "is not an http:// or https:// URL"),
             ({"AWS_REGION": "here/there"}, "is not the name of a region"),
             ({"AWS_PROFILE": "none"}, "no such profile")]
    for more, words in wrong:
        said = run(server.environment(**more), "get", "shop", "plain", code=1)
        assert words in said, (more, said)
    # A bucket in another region: signed again for the region that the server names.
    assert run(server.environment(AWS_REGION="us-west-2"), "get", "shop", "list/1") == b"12" and server.refused
    server.stop()


def files(root, home):
    server = S3(root)
    env = server.environment(HOME=home, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", AWS_REGION="", AWS_ENDPOINT_URL_S3="")
    os.makedirs(f"{home}/.aws")
    with open(f"{home}/.aws/credentials", "w", encoding="utf-8") as f:
        f.write(f"# keys\n[default]\naws_access_key_id = wrong\naws_secret_access_key = wrong\n\n[ lab ]\r\naws_access_key_id={ID}\r\n"
                f"AWS_SECRET_ACCESS_KEY =  {SECRET}\n")
    with open(f"{home}/.aws/config", "w", encoding="utf-8") as f:
        f.write(f"[default]\nregion = nowhere-1\n[profile  lab]\nregion={server.region}\nservices = near\n"
                f"[services near]\nother =\n  endpoint_url = http://wrong\ns3 = \n  endpoint_url = {server.url}\n"
                "[profile away]\nrole_arn = x\n")
    assert run({**env, "AWS_PROFILE": "lab"}, "get", "shop", "list/1") == b"12"
    assert "gets its keys from role_arn" in run({**env, "AWS_PROFILE": "away", "AWS_ENDPOINT_URL": server.url}, "get", "shop", "x", code=1)
    assert "InvalidAccessKeyId" in run({**env, "AWS_ENDPOINT_URL": server.url, "AWS_REGION": server.region}, "get", "shop", "x", code=1)
    server.stop()


class Machine(http.server.BaseHTTPRequestHandler):
    """Metadata service: the credentials of an instance and of a container."""

    def log_message(self, *_):
        pass

    def answer(self, status, text=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        self.answer(200 if self.headers.get("X-aws-ec2-metadata-token-ttl-seconds") else 400, "session")

    def do_GET(self):
        s = self.server
        s.asked += 1
        keys = json.dumps({"AccessKeyId": ID, "SecretAccessKey": SECRET, "Token": f"lent{s.asked}",
                           "Expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + s.left))})
        if self.path == "/task" and self.headers.get("Authorization") == "known":
            self.answer(200, keys)
        elif self.headers.get("X-aws-ec2-metadata-token") != "session":
            self.answer(401)
        elif self.path == "/latest/meta-data/iam/security-credentials/":
            self.answer(200, "role")
        else:
            self.answer(200 if self.path.endswith("/role") else 404, keys)


def roles(root):
    machine = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Machine)
    machine.asked, machine.left = 0, 3600
    threading.Thread(target=machine.serve_forever, daemon=True).start()
    there = "http://127.0.0.1:%d" % machine.server_address[1]
    server = S3(root, tokens={"lent2"})
    bare = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": ""}
    assert run(server.environment(**bare, AWS_EC2_METADATA_SERVICE_ENDPOINT=there + "/"), "get", "shop", "list/1") == b"12"
    server.tokens = {"lent4"}  # the third is refused as expired, and another one is requested
    container = {**bare, "AWS_CONTAINER_CREDENTIALS_FULL_URI": there + "/task", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "known"}
    assert run(server.environment(**container), "get", "shop", "list/1") == b"12" and machine.asked == 4
    machine.left, server.tokens = 60, {"lent6"}  # about to expire: requested again before they are used
    assert run(server.environment(**container), "get", "shop", "list/1") == b"12"
    assert "did not return keys" in run(server.environment(**{**container, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "no"}), "get", "shop", "x", code=1)
    server.stop()
    machine.shutdown()


with tempfile.TemporaryDirectory(prefix="dptrack-object-") as tmp:
    os.makedirs(f"{tmp}/store/shop")
    published()
    big_object = objects(f"{tmp}/store")
    faults(f"{tmp}/store", big_object)
    refusals(f"{tmp}/store")
    files(f"{tmp}/store", f"{tmp}/home")
    roles(f"{tmp}/store")
print("object: signed, read, written, listed, refused as expected")
