# SPDX-License-Identifier: Apache-2.0
"""objectserver.py with the S3 protocol: folder/BUCKET/KEY, every request's signature checked with the only secret it
knows (AWS Signature Version 4, implemented here independently), listings in pages, objects written in one piece and in
parts. `region` is the bucket's; `tokens` are the valid session tokens (None: none is required)."""
import base64
import contextlib
import hashlib
import hmac
import os
import re
import threading
import urllib.parse
from html import unescape
from xml.sax.saxutils import escape

from objectserver import Handler, Server

ID, SECRET = "AKIATESTTESTTESTTEST", "wJalr/+XUtnFEMI=K7MDENG bPxRfiCY"


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class S3(Server):
    def __init__(self, folder, region="eu-test-1", page=1000, tokens=None, **options):
        super().__init__(folder, **options)
        self.RequestHandlerClass = S3Handler
        self.region, self.page, self.tokens, self.refused = region, page, tokens, 0
        self.refuses_many, self.locked, self.deletions = 0, set(), 0  # the status of requests that delete several objects (0: works); keys that stay; requests
        self.listings = []  # queries
        self.uploads, self.upload_keys = {}, {}  # parts by number, and the key, of unfinished uploads
        self.parts, self.parts_most, self.parts_meet_s = 0, 0, 0  # concurrent parts; seconds that a part waits for a second one
        self.parts_told = threading.Condition()

    def environment(self, **more):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        return {**clean, "AWS_ENDPOINT_URL_S3": self.url, "AWS_ACCESS_KEY_ID": ID, "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": self.region, "AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nonexistent", "no_proxy": "*", **more}


class S3Handler(Handler):
    def error(self, status, code, **headers):
        self.answer(status, f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode(), **headers)

    def signature(self, date, scope, names, payload):
        path, _, query = self.path.partition("?")
        query = "&".join(sorted(query.split("&"))) if query else ""
        lines = "".join(f"{n}:{' '.join(self.headers.get(n, '').split())}\n" for n in names)
        canonical = "\n".join([self.command, path, query, lines, ";".join(names), payload])
        text = "\n".join(["AWS4-HMAC-SHA256", date, "/".join(scope), hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + SECRET).encode()
        for part in scope:
            key = digest(key, part)
        return digest(key, text).hex()

    def refused(self, body):
        """The error code of an invalid request, None if it is authorised."""
        said = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})",
                            self.headers.get("Authorization", ""))
        if not said:
            return "AccessDenied"
        scope, names, payload = said[2].split("/"), said[3].split(";"), self.headers["x-amz-content-sha256"]
        if said[1] != ID:
            return "InvalidAccessKeyId"
        if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names):
            return "AccessDenied"
        if payload != hashlib.sha256(body).hexdigest():
            return "XAmzContentSHA256Mismatch"
        if said[4] != self.signature(self.headers["x-amz-date"], scope, names, payload):
            return "SignatureDoesNotMatch"
        if self.server.tokens is not None and self.headers.get("x-amz-security-token") not in self.server.tokens:
            return "ExpiredToken"
        return None

    def admitted(self, body=b""):
        code = self.refused(body)
        if not code and self.headers["Authorization"].split("/")[2] != self.server.region:
            self.server.refused += 1
            self.error(400, "AuthorizationHeaderMalformed", x_amz_bucket_region=self.server.region)
            return False
        if code:
            self.server.refused += 1
            self.error(400 if code == "ExpiredToken" else 403, code)
        return not code

    def split(self):
        url = urllib.parse.urlsplit(self.path)
        bucket, _, key = urllib.parse.unquote(url.path).lstrip("/").partition("/")
        return bucket, key, dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))

    def do_GET(self):
        if not self.admitted():
            return
        bucket, key, query = self.split()
        if not os.path.isdir(os.path.join(self.server.folder, bucket)):
            self.error(404, "NoSuchBucket")
        elif "uploads" in query:
            self.list_uploads(query)
        elif not key:
            self.list(bucket, query)
        elif not os.path.isfile(os.path.join(self.server.folder, bucket, key)):
            self.error(404, "NoSuchKey")
        else:
            super().do_GET()

    def listed_facts(self, path):
        return ""

    def name(self):
        return "/".join(self.split()[:2])

    def do_HEAD(self):
        bucket, key, _ = self.split()
        path = os.path.join(self.server.folder, bucket, key)
        status = 404 if not os.path.isfile(path) else 200
        if self.refused(b""):
            status = 403
        data = open(path, "rb").read() if status == 200 else b""
        self.send_response(status)
        self.send_header("ETag", '"%s"' % hashlib.md5(data).hexdigest())
        for k, v in self.version_headers().items():
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()

    def list(self, bucket, query):
        root, prefix, slash = os.path.join(self.server.folder, bucket), query.get("prefix", ""), query.get("delimiter", "")
        keys = sorted(os.path.relpath(os.path.join(d, f), root) for d, _, files in os.walk(root) for f in files)
        entries = {}
        self.server.listings.append(query)
        for key in [k for k in keys if k.startswith(prefix)]:
            cut = key.find(slash, len(prefix)) if slash else -1
            entries[key if cut < 0 else key[:cut + 1]] = cut < 0
        names = [n for n in sorted(entries) if n > query.get("continuation-token", "")]
        body = ""
        for name in names[:self.server.page]:
            if entries[name]:
                with open(os.path.join(root, name), "rb") as f:
                    data = f.read()
                tag = hashlib.md5(data).hexdigest()
                body += f"<Contents><Key>{escape(name)}</Key><Size>{len(data)}</Size><ETag>&quot;{tag}&quot;</ETag>{self.listed_facts(os.path.join(root, name))}</Contents>"
            else:
                body += f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
        more = len(names) > self.server.page
        if more:
            body += f"<NextContinuationToken>{escape(names[self.server.page - 1])}</NextContinuationToken>"
        body += f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        self.answer(200, f'<?xml version="1.0"?><ListBucketResult xmlns="urn:x">{body}</ListBucketResult>'.encode())

    def list_uploads(self, query):
        begun = sorted((self.server.upload_keys[u], u) for u in self.server.uploads if self.server.upload_keys[u].startswith(query["prefix"]))
        begun = [b for b in begun if b > (query.get("key-marker", ""), query.get("upload-id-marker", ""))]
        some = begun[:self.server.page]
        body = "".join(f"<Upload><Key>{escape(k)}</Key><UploadId>{escape(u)}</UploadId></Upload>" for k, u in some)
        if len(begun) > len(some):
            body += f"<NextKeyMarker>{escape(some[-1][0])}</NextKeyMarker><NextUploadIdMarker>{escape(some[-1][1])}</NextUploadIdMarker><IsTruncated>true</IsTruncated>"
        self.answer(200, f'<ListMultipartUploadsResult xmlns="urn:x">{body}</ListMultipartUploadsResult>'.encode())

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def do_PUT(self):
        body = self.body()
        if not self.admitted(body):
            return
        bucket, key, query = self.split()
        path = os.path.join(self.server.folder, bucket, key)
        if "uploadId" in query:
            self.meet()
            self.server.uploads[query["uploadId"]][int(query["partNumber"])] = body
        elif self.headers.get("If-None-Match") == "*" and os.path.exists(path):
            self.error(412, "PreconditionFailed")
            return
        else:
            self.store(path, body)
        self.answer(200, ETag='"%s"' % hashlib.md5(body).hexdigest())

    def meet(self):
        s = self.server
        with s.parts_told:
            s.parts += 1
            s.parts_most = max(s.parts_most, s.parts)
            s.parts_told.notify_all()
            s.parts_told.wait_for(lambda: s.parts_most > 1, s.parts_meet_s)
            s.parts -= 1

    def store(self, path, body):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(body)

    def do_POST(self):
        body = self.body()
        if not self.admitted(body):
            return
        bucket, key, query = self.split()
        if "uploads" in query:
            number = f"up+load/{len(self.server.upload_keys)}"
            self.server.uploads[number], self.server.upload_keys[number] = {}, key
            self.answer(200, f"<R><UploadId>{number}</UploadId></R>".encode())
            return
        if "delete" in query:
            self.delete_listed(bucket, body)
            return
        parts = self.server.uploads.pop(query["uploadId"])
        listed = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>&#34;(\w+)&#34;</ETag>", body.decode())
        assert [(str(n), hashlib.md5(p).hexdigest()) for n, p in sorted(parts.items())] == listed, body
        self.store(os.path.join(self.server.folder, bucket, key), b"".join(p for _, p in sorted(parts.items())))
        self.answer(200, b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")

    def delete_listed(self, bucket, body):
        """Up to 1000 objects in a request, whose checksum S3 demands; `locked` ones stay."""
        self.server.deletions += 1
        keys = [unescape(k) for k in re.findall("<Object><Key>([^<]*)</Key></Object>", body.decode())]
        if self.server.refuses_many:
            self.error(self.server.refuses_many, "NotImplemented")
            return
        assert self.headers["Content-MD5"] == base64.b64encode(hashlib.md5(body).digest()).decode() and len(keys) <= 1000, len(keys)
        for key in keys:
            if key not in self.server.locked:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.server.folder, bucket, key))
        kept = "".join(f"<Error><Key>{escape(k)}</Key><Code>AccessDenied</Code><Message>no</Message></Error>" for k in keys if k in self.server.locked)
        self.answer(200, f'<DeleteResult xmlns="urn:x">{kept}</DeleteResult>'.encode())

    def do_DELETE(self):
        if not self.admitted():
            return
        bucket, key, query = self.split()
        self.server.deletions += 1
        if "uploadId" in query:
            self.server.uploads.pop(query["uploadId"], None)
        elif os.path.exists(os.path.join(self.server.folder, bucket, key)):
            os.unlink(os.path.join(self.server.folder, bucket, key))
        self.answer(204)
