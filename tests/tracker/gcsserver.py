# SPDX-License-Identifier: Apache-2.0
"""s3server.py as Google Cloud Storage: the XML API with access tokens or HMAC keys, what the JSON API needs to look up,
read, write and list objects, a token server that checks the signature of service accounts (RSA, computed here), and a
metadata server. Tokens are valid for `lifetime` seconds, whatever `promised` says, and until the requests with the
numbers `revoke_at`, which revoke all; `denied` are closed buckets."""
import base64
import hashlib
import json
import os
import secrets
import subprocess
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data"))
from s3server import ID, S3, SECRET, S3Handler  # noqa: E402

EMAIL = "trainer@project.iam.gserviceaccount.com"
AUDIENCE = "https://oauth2.googleapis.com/token"  # of Google's clients, whatever the file says
SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")  # of PKCS #1, in front of the digest


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return base64.b64encode((crc ^ 0xffffffff).to_bytes(4, "big")).decode()


def unpad(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class GCS(S3):
    def __init__(self, folder, lifetime=3600, promised=None, **options):
        super().__init__(folder, region="auto", **options)
        self.RequestHandlerClass = GCSHandler
        self.lifetime, self.promised = lifetime, promised or lifetime
        self.valid, self.issued, self.denied, self.modulus, self.skew, self.token_faults = {}, 0, set(), 0, 0, []
        self.unauthorized, self.asked, self.revoke_at, self.pause = 0, 0, set(), 0

    def issue(self):
        token = "ya29." + secrets.token_urlsafe(30)
        self.valid[token] = time.monotonic() + self.lifetime
        self.issued += 1
        return {"access_token": token, "expires_in": self.promised, "token_type": "Bearer"}

    def key_file(self, path, **more):
        """Writes the key of a new service account, which the token server knows from now on."""
        pem = subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], check=True, capture_output=True, text=True).stdout
        text = subprocess.run(["openssl", "rsa", "-noout", "-modulus"], input=pem, check=True, capture_output=True, text=True).stdout
        self.modulus = int(text.split("=")[1], 16)
        key = {"type": "service_account", "project_id": "project", "private_key_id": "k1", "private_key": pem, "client_email": EMAIL,
               "client_id": "1", "token_uri": self.url + "/token", **more}
        with open(path, "w", encoding="utf-8") as f:
            json.dump(key, f)
        return path

    def environment(self, **more):
        """more: GS_…, GOOGLE_APPLICATION_CREDENTIALS or GCE_METADATA_HOST."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "GS_", "GOOGLE_", "GCE_", "CLOUDSDK_"))}
        return {**clean, "STORAGE_EMULATOR_HOST": self.url, "HOME": "/nonexistent", "no_proxy": "*", **more}

    def keys(self):
        return {"GS_ACCESS_KEY_ID": ID, "GS_SECRET_ACCESS_KEY": SECRET}

    def metadata(self):
        return {"GCE_METADATA_HOST": self.url[len("http://"):]}


class GCSHandler(S3Handler):
    def refused(self, body):
        said = self.headers.get("Authorization", "")
        if self.split()[0] in self.server.denied:
            return "AccessDenied"
        if not said:
            return None if self.split()[0] == "public" else "AuthenticationRequired"
        if not said.startswith("Bearer "):
            return super().refused(body)
        return None if self.is_valid(said[7:]) else "InvalidToken"

    def is_valid(self, token):
        time.sleep(self.server.pause)
        with self.server.lock:
            self.server.asked += 1
            if self.server.asked in self.server.revoke_at:
                self.server.valid.clear()
        return self.server.valid.get(token, 0) > time.monotonic()


    def admitted(self, body=b""):
        code = self.refused(body)
        if code:
            self.server.unauthorized += code in ("InvalidToken", "AuthenticationRequired")
            self.error(401 if code in ("InvalidToken", "AuthenticationRequired") else 403, code)
        return not code

    def generation(self, path):
        return os.stat(path).st_mtime_ns // 1000

    def file(self):
        return os.path.join(self.server.folder, *self.split()[:2])

    def version_headers(self):
        path = self.file()
        return {"x-goog-generation": str(self.generation(path)), "x-goog-metageneration": "1"} if os.path.isfile(path) else {}

    def listed_facts(self, path):
        return f"<Generation>{self.generation(path)}</Generation><MetaGeneration>1</MetaGeneration>"

    def say(self, value, status=200):
        self.answer(status, json.dumps(value).encode(), Content_Type="application/json; charset=UTF-8", Date=self.date_time_string(time.time() + self.server.skew))

    # ---- tokens ----

    def token(self, form):
        if self.server.token_faults:
            self.answer(self.server.token_faults.pop(0), b"busy")
            return
        kind = form.get("grant_type", [""])[0]
        if kind == "refresh_token" and form["refresh_token"] == ["planted-refresh"] and form["client_secret"] == ["planted-secret"]:
            self.say(self.server.issue())
        elif kind == "urn:ietf:params:oauth:grant-type:jwt-bearer":
            why = self.wrong_assertion(form["assertion"][0])
            self.say({"error": "invalid_grant", "error_description": why} if why else self.server.issue(), 400 if why else 200)
        else:
            self.say({"error": "invalid_grant", "error_description": "Bad Request"}, 400)

    def wrong_assertion(self, text):
        head, claims, signature = text.split(".")
        size = (self.server.modulus.bit_length() + 7) // 8
        block = pow(int.from_bytes(unpad(signature), "big"), 65537, self.server.modulus).to_bytes(size, "big")
        digest = SHA256 + hashlib.sha256(f"{head}.{claims}".encode()).digest()
        if block != b"\0\1" + b"\xff" * (size - len(digest) - 3) + b"\0" + digest:
            return "Invalid JWT Signature."
        head, claims = json.loads(unpad(head)), json.loads(unpad(claims))
        now = time.time() + self.server.skew
        if head["alg"] != "RS256" or claims["iss"] != EMAIL or claims["aud"] not in (self.server.url + "/token", AUDIENCE):
            return "Invalid grant: account not found"
        if not now - 3900 < claims["iat"] < now + 300 or not claims["iat"] < claims["exp"] <= claims["iat"] + 3600:
            return "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."
        return None if "devstorage" in claims["scope"] or "cloud-platform" in claims["scope"] else "invalid_scope"

    # ---- the JSON API ----

    def resource(self, bucket, key):
        path = os.path.join(self.server.folder, bucket, key)
        with open(path, "rb") as f:
            data = f.read()
        generation = self.generation(path)
        return {"kind": "storage#object", "id": f"{bucket}/{key}/{generation}", "name": key, "bucket": bucket, "generation": str(generation), "metageneration": "1",
                "size": str(len(data)), "md5Hash": base64.b64encode(hashlib.md5(data).digest()).decode(), "crc32c": crc32c(data), "etag": "e%d" % generation}

    def json_api(self, body=b""):
        """Answers a request to the JSON API; False: it is another one."""
        url = urllib.parse.urlsplit(self.path)
        parts, query = url.path.split("/"), dict(urllib.parse.parse_qsl(url.query))
        if "/storage/v1/b/" not in url.path:
            return False
        at = parts.index("b")
        bucket, key = parts[at + 1], urllib.parse.unquote("/".join(parts[at + 3:]))
        path = os.path.join(self.server.folder, bucket, key)
        if not self.is_valid(self.headers.get("Authorization", "")[7:]):
            self.server.unauthorized += 1
            self.say({"error": {"code": 401, "message": "Invalid Credentials"}}, 401)
        elif not os.path.isdir(os.path.join(self.server.folder, bucket)) or (self.command == "GET" and key and not os.path.isfile(path)):
            self.say({"error": {"code": 404, "message": "not found"}}, 404)
        elif self.command == "POST":
            self.upload(bucket, query, body)
        elif self.command == "DELETE":
            os.unlink(path)
            self.answer(204)
        elif query.get("alt") == "media":
            self.path = "/" + bucket + "/" + urllib.parse.quote(key)
            super().do_GET()
        elif key:
            self.say(self.resource(bucket, key))
        elif parts[at + 2:at + 3] == ["o"]:
            root = os.path.join(self.server.folder, bucket)
            keys = sorted(os.path.relpath(os.path.join(d, f), root) for d, _, files in os.walk(root) for f in files)
            self.say({"kind": "storage#objects", "items": [self.resource(bucket, k) for k in keys if k.startswith(query.get("prefix", ""))]})
        else:
            self.say({"kind": "storage#bucket", "id": bucket, "name": bucket})
        return True

    def upload(self, bucket, query, body):
        boundary = b"--" + self.headers["Content-Type"].split("boundary=")[1].strip("\"'").encode()
        facts, content = body.split(boundary)[1:3]
        facts = json.loads(facts.split(b"\r\n\r\n", 1)[1])
        key = query.get("name") or facts["name"]
        self.store(os.path.join(self.server.folder, bucket, key), content.split(b"\r\n\r\n", 1)[1][:-2])
        self.say(self.resource(bucket, key))

    # ---- requests ----

    def do_GET(self):
        if self.path.startswith("/computeMetadata/"):
            if self.headers.get("Metadata-Flavor") != "Google":
                self.answer(403, b"Missing Metadata-Flavor:Google header.")
            elif self.server.token_faults:
                self.answer(self.server.token_faults.pop(0), b"busy")
            else:
                self.say(self.server.issue())
        elif not self.json_api():
            super().do_GET()

    def do_POST(self):
        if self.path == "/token":
            self.token(urllib.parse.parse_qs(self.body().decode()))
        elif "/storage/v1/b/" in self.path:
            self.json_api(self.body())
        else:
            super().do_POST()

    def do_DELETE(self):
        if not self.json_api():
            super().do_DELETE()

    def do_PUT(self):
        path = self.file()
        if self.headers.get("x-goog-if-generation-match") == "0" and os.path.exists(path):
            self.body()
            self.error(412, "PreconditionFailed")
            return
        super().do_PUT()
