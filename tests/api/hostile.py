# SPDX-License-Identifier: Apache-2.0
"""Malformed, ambiguous or oversized requests: each gets the stated status and exactly one reply, and the connection is
closed after it where stated. The server works as before afterwards."""
import gzip
import json
import socket
import subprocess
import sys
sys.dont_write_bytecode = True
import lib

H = b"Host: localhost\r\n"
SECOND = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
J = b"Content-Type: application/json\r\n"
RUNS = b"POST /api/v1/experiments HTTP/1.1\r\n" + H + J


def get(path, extra=b"", version=b"HTTP/1.1", method=b"GET"):
    return method + b" " + path + b" " + version + b"\r\n" + H + extra + b"\r\n"


def post(extra, body=b""):
    return RUNS + extra + b"\r\n" + body


FORM = b"token=x"
SIGNED_IN = 303  # the reply of /login, whatever the token


def chunked(body):
    return get(b"/login", b"Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n", method=b"POST") + body


# A connection that stays open must be in sync: this request after the row's own is then answered too, and closes it.
LAST = get(b"/health", b"Connection: close\r\n")
# name, bytes, status (or several), whether the connection must be closed after the first reply
CLOSE, KEEP, ANY = True, False, None
NO_REPLY = 0
# libmicrohttpd 1.0 refuses some of these in another way than 0.9: with another status, or by closing the connection at once.
NEW = int(subprocess.run(["pkg-config", "--modversion", "libmicrohttpd"], stdout=subprocess.PIPE, check=True).stdout.split(b".")[0]) >= 1
UNKNOWN_CODING = 400 if NEW else 501
TABLE = [
    # ambiguous ends of a request
    ("CL and TE", post(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n" + SECOND), 400, CLOSE),
    ("TE and CL", post(b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n" + SECOND), 400, CLOSE),
    ("two lengths", post(b"Content-Length: 2\r\nContent-Length: 5\r\n", b"{}" + SECOND), 400, CLOSE),
    ("the same length twice", post(b"Content-Length: 2\r\nContent-Length: 2\r\n", b"{}" + SECOND), 400, CLOSE),
    ("a list of lengths", post(b"Content-Length: 2, 2\r\n", b"{}" + SECOND), 400, CLOSE),
    ("length with a plus", post(b"Content-Length: +2\r\n", b"{}" + SECOND), 400, CLOSE),
    ("length below zero", post(b"Content-Length: -1\r\n", b"{}" + SECOND), 400, CLOSE),
    ("length in hex", post(b"Content-Length: 0x2\r\n", b"{}" + SECOND), 400, CLOSE),
    ("empty length", post(b"Content-Length: \r\n", b"{}" + SECOND), 400, CLOSE),
    ("length with a letter", post(b"Content-Length: 2a\r\n", b"{}" + SECOND), 400, CLOSE),
    ("length 2^64", post(b"Content-Length: 18446744073709551616\r\n", SECOND), 413, CLOSE),
    ("length 2^63", post(b"Content-Length: 9223372036854775808\r\n", SECOND), 413, CLOSE),
    ("length 2^63-1", post(b"Content-Length: 9223372036854775807\r\n", SECOND), 413, CLOSE),
    ("space before the colon of TE", post(b"Transfer-Encoding : chunked\r\nContent-Length: 2\r\n", b"{}" + SECOND), 400, CLOSE),
    ("space before the colon", get(b"/health", b"X-Y : z\r\n") + SECOND, 400, CLOSE),
    ("tab in a name", get(b"/health", b"X\tY: z\r\n") + SECOND, 400, CLOSE),
    ("TE xchunked", post(b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n" + SECOND), UNKNOWN_CODING, CLOSE),
    ("TE chunked, identity", post(b"Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\n" + SECOND), UNKNOWN_CODING, CLOSE),
    ("TE gzip, chunked", post(b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n" + SECOND), UNKNOWN_CODING, CLOSE),
    ("two TE", post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n" + SECOND), 400, CLOSE),
    ("TE in HTTP/1.0", b"POST /api/v1/experiments HTTP/1.0\r\n" + H + J + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, CLOSE),
    ("folded header", get(b"/health", b"X-A: b\r\n Content-Length: 3\r\n") + SECOND, 400, CLOSE),
    ("folded with a tab", get(b"/health", b"X-A: b\r\n\tX-C: d\r\n") + SECOND, (200, 400), ANY),
    ("header without a name", get(b"/health", b": v\r\n"), (200, 400), ANY),
    ("header with brackets", get(b"/health", b"X[a]: v\r\n") + SECOND, 400, CLOSE),
    ("header with a quote", get(b"/health", b'X"a: v\r\n') + SECOND, 400, CLOSE),
    ("header that is not ASCII", get(b"/health", b"X\xc3\xa9: v\r\n") + SECOND, 400, CLOSE),
    ("control character in a value", get(b"/health", b"X-A: b\x01c\r\n") + SECOND, 400, CLOSE),
    ("DEL in a value", get(b"/health", b"X-A: b\x7fc\r\n") + SECOND, 400, CLOSE),
    # line endings, which parsers treat differently
    ("bare LF after a header", b"GET /health HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n" + SECOND, 400, CLOSE),
    ("bare LF that hides a length", post(b"X: y\nContent-Length: 40\r\n", SECOND), 400, CLOSE),
    ("bare LF after the last header", b"GET /health HTTP/1.1\r\nHost: localhost\n\r\n" + SECOND, 400, CLOSE),
    ("bare LF as the empty line", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\n" + SECOND, 400, CLOSE),
    ("bare LFs only", b"GET /health HTTP/1.1\nHost: localhost\n\n" + SECOND, 400, CLOSE),
    ("bare LF after the request line", b"GET /health HTTP/1.1\nHost: localhost\r\n\r\n" + SECOND, 400, CLOSE),
    ("bare CR in a value", get(b"/health", b"X: a\rContent-Length: 3\r\n") + SECOND, 400, CLOSE),
    ("CR CR LF", get(b"/health", b"X: a\r\r\n") + SECOND, 400, CLOSE),
    ("NUL in a value", get(b"/health", b"X: a\0b\r\n") + SECOND, 400, CLOSE),
    ("NUL after a value", get(b"/health", b"X: a\0\r\nY: b\r\n") + SECOND, 400, CLOSE),
    ("NUL in a name", get(b"/health", b"X\0Y: a\r\n") + SECOND, 400, CLOSE),
    ("NUL in the address", get(b"/health\0/../x") + SECOND, NO_REPLY if NEW else 400, CLOSE),
    ("NUL in the length", post(b"Content-Length: 2\x000\r\n", b"{}" + SECOND), 400, CLOSE),
    ("NUL in chunked", post(b"Transfer-Encoding: chunked\0x\r\n", b"0\r\n\r\n" + SECOND), 400, CLOSE),
    ("NUL after the version", b"GET /health HTTP/1.1\0\r\n" + H + b"\r\n" + SECOND, NO_REPLY if NEW else (400, 505), CLOSE),
    ("two blanks in the request line", b"GET  /health HTTP/1.1\r\n" + H + b"\r\n" + SECOND, 400, CLOSE),
    ("two blanks before the version", b"GET /health  HTTP/1.1\r\n" + H + b"\r\n" + SECOND, ANY, CLOSE),
    ("tab in the request line", b"GET\t/health HTTP/1.1\r\n" + H + b"\r\n" + SECOND, NO_REPLY if NEW else (400, 405, 505), CLOSE),
    ("blank after the version", b"GET /health HTTP/1.1 \r\n" + H + b"\r\n" + SECOND, (400, 505), CLOSE),
    ("blank before the first header", b"GET /health HTTP/1.1\r\n Host: localhost\r\n\r\n" + SECOND, 400, CLOSE),
    ("blanks around a value", get(b"/health", b"X:  \t a b \t \r\n"), 200, KEEP),
    ("a value without a blank", get(b"/health", b"X:y\r\n"), 200, KEEP),
    ("an empty value", get(b"/health", b"X:\r\n"), 200, KEEP),
    ("an empty line before the request", b"\r\n" + get(b"/health"), 200, KEEP),
    ("two empty lines before the request", b"\r\n\r\n" + get(b"/health"), *((NO_REPLY, CLOSE) if NEW else (200, KEEP))),
    ("two requests at once", get(b"/health") + get(b"/health"), 200, ANY),
    # Host
    ("no Host", b"GET /health HTTP/1.1\r\n\r\n", 400, CLOSE),
    ("two Hosts", b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n" + SECOND, 400, CLOSE),
    ("the same Host twice", b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n" + SECOND, 400, CLOSE),
    ("foreign Host", b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, KEEP),
    ("foreign Host with a port", b"GET /health HTTP/1.1\r\nHost: evil.example:6007\r\n\r\n", 403, KEEP),
    ("localhost as a part of a name", b"GET /health HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 403, KEEP),
    ("Host with a word for a port", b"GET /health HTTP/1.1\r\nHost: localhost:x\r\n\r\n", 403, KEEP),
    ("empty Host", b"GET /health HTTP/1.1\r\nHost: \r\n\r\n", (400, 403), ANY),
    ("Host [::1]", b"GET /health HTTP/1.1\r\nHost: [::1]:6007\r\n\r\n", 200, KEEP),
    ("Host 127.0.0.1", b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", 200, KEEP),
    ("Host LOCALHOST", b"GET /health HTTP/1.1\r\nHost: LOCALHOST:9\r\n\r\n", 200, KEEP),
    ("HTTP/1.0 without a Host", b"GET /health HTTP/1.0\r\n\r\n", 200, CLOSE),
    # methods, versions, addresses
    ("method G@T", get(b"/health", method=b"G@T") + SECOND, 405, CLOSE),
    ("method TRACE", get(b"/health", method=b"TRACE") + SECOND, 405, CLOSE),
    ("method CONNECT", b"CONNECT localhost:80 HTTP/1.1\r\n" + H + b"\r\n" + SECOND, 405, CLOSE),
    ("method in small letters", get(b"/health", method=b"get") + SECOND, 405, CLOSE),
    ("unknown method", get(b"/health", method=b"PURGE") + SECOND, 405, CLOSE),
    ("HTTP/1.2", get(b"/health", version=b"HTTP/1.2") + SECOND, (400, 505), CLOSE),
    ("HTTP/2.0", get(b"/health", version=b"HTTP/2.0") + SECOND, (400, 505), CLOSE),
    ("no version", b"GET /health\r\n" + H + b"\r\n", (400, 505), CLOSE),
    ("absolute address", get(b"http://localhost/health") + SECOND, 400, CLOSE),
    ("address without a slash", get(b"health") + SECOND, 400, CLOSE),
    ("fragment in the address", get(b"/health#x") + SECOND, 400, CLOSE),
    ("backslash in the address", get(b"/..\\health") + SECOND, 400, CLOSE),
    ("high byte in the address", get(b"/h\xe9alth") + SECOND, 400, CLOSE),
    ("2000 query arguments", get(b"/health?" + b"&".join([b"a"] * 2000)), 400, KEEP),
    ("4000 query arguments", get(b"/health?" + b"&".join([b"a"] * 4000)), 400, KEEP),
    ("600 query arguments with values", get(b"/api/v1/runs?" + b"&".join([b"run=x123456"] * 600)), 400, KEEP),
    ("600 first digits of no run", get(b"/api/v1/runs?" + b"&".join([b"run=0123456"] * 600)), 404, KEEP),
    ("9000 query arguments", get(b"/health?" + b"&".join([b"a"] * 9000)), 400, KEEP),
    ("25000 query arguments", get(b"/health?" + b"&".join([b"a"] * 25000)), 414, CLOSE),
    ("a head of 40 KB", get(b"/health", b"X: " + b"a" * 40000 + b"\r\n"), 431, CLOSE),
    ("a head of 500 fields", get(b"/health", b"X: a\r\n" * 500), 431, CLOSE),
    ("49 KiB of address", get(b"/health?" + b"a" * 49200) + SECOND, 414, CLOSE),
    ("100 KiB of address", get(b"/health?" + b"a" * 100000), 414, CLOSE),
    ("60 KiB of header", get(b"/health", b"X: " + b"a" * 60000 + b"\r\n"), 431, CLOSE),
    ("2000 headers", get(b"/health", b"".join(b"X%d: y\r\n" % i for i in range(2000))), 431, CLOSE),
    ("101 headers", get(b"/health", b"".join(b"X%d: y\r\n" % i for i in range(101))) + SECOND, 431, CLOSE),
    ("%00 in the path", get(b"/health%00"), 400, KEEP),
    ("%00 in the query", get(b"/api/v1/runs?filter=%00"), 400, KEEP),
    ("% without digits", get(b"/health%zz"), 400, KEEP),
    ("% at the end", get(b"/health%"), 400, KEEP),
    ("overlong UTF-8", get(b"/%c0%ae%c0%ae/etc"), 400, KEEP),
    ("half a UTF-8 sequence", get(b"/%e2%82"), 400, KEEP),
    ("surrogate", get(b"/%ed%a0%80"), 400, KEEP),
    ("..", get(b"/../etc/passwd"), 400, KEEP),
    ("%2e%2e", get(b"/%2e%2e/etc/passwd"), 400, KEEP),
    ("%252e", get(b"/%252e%252e/etc/passwd"), 404, KEEP),
    ("%2f in a segment", get(b"/api%2fv1/runs"), 404, KEEP),
    ("two slashes", get(b"//api/v1/runs"), 400, KEEP),
    ("slash at the end", get(b"/api/v1/runs/"), (400, 404), KEEP),
    ("unknown address of the API", get(b"/api/v1/nope"), 404, KEEP),
    ("newline in a segment", get(b"/api/v1/runs/a%0ab"), 400, KEEP),
    ("run id in capitals", get(b"/api/v1/runs/0123456789ABCDEF0123456789ABCDEF"), 404, KEEP),
    ("run id as a path", get(b"/api/v1/runs/..%2f..%2fetc"), 400, KEEP),
    # bodies
    ("body with a GET", get(b"/health", b"Content-Length: 3\r\n") + b"abc", 413, KEEP),
    ("body larger than the limit", post(b"Content-Length: 1048577\r\n"), 413, CLOSE),
    ("chunks larger than the limit", post(b"Transfer-Encoding: chunked\r\n", b"110000\r\n" + b" " * 0x110000 + b"\r\n0\r\n\r\n"), 413, KEEP),
    ("chunks far larger than the limit", post(b"Transfer-Encoding: chunked\r\n", b"800000\r\n" + b" " * 0x800000 + b"\r\n0\r\n\r\n"), 413, KEEP),
    ("a chunk with an extension", chunked(b"7;a=b\r\n" + FORM + b"\r\n0\r\nX: y\r\n\r\n"), SIGNED_IN, KEEP),
    ("a chunk size that ends in LF", chunked(b"7\n" + FORM + b"\r\n0\r\n\r\n" + SECOND), 400, CLOSE),
    ("an empty extension that ends in LF", chunked(b"7;\n" + FORM + b"\r\n0\r\n\r\n" + SECOND), 400, CLOSE),
    ("an extension that ends in LF", chunked(b"7;a=b\n" + FORM + b"\r\n0\r\n\r\n" + SECOND), 400, CLOSE),
    ("NUL in an extension", chunked(b"7;a=\0b\r\n" + FORM + b"\r\n0\r\n\r\n" + SECOND), 400, CLOSE),
    ("CR in an extension", chunked(b"7;a=\rb\r\n" + FORM + b"\r\n0\r\n\r\n" + SECOND), 400, CLOSE),
    ("a chunk that ends in LF", chunked(b"7\r\n" + FORM + b"\n0\r\n\r\n" + SECOND), 400, CLOSE),
    ("a last chunk that ends in LF", chunked(b"7\r\n" + FORM + b"\r\n0\n\r\n" + SECOND), 400, CLOSE),
    ("a body that ends in LF", chunked(b"7\r\n" + FORM + b"\r\n0\r\n\n" + SECOND), 400, CLOSE),
    ("a trailer that ends in LF", chunked(b"7\r\n" + FORM + b"\r\n0\r\nX: y\n\r\n" + SECOND), 400, CLOSE),
    ("60 KB of chunk extension", post(b"Transfer-Encoding: chunked\r\n", b"2;" + b"a" * 60000 + b"\r\n{}\r\n0\r\n\r\n"), ANY, ANY),
    ("invalid chunk size", post(b"Transfer-Encoding: chunked\r\n", b"zz\r\n{}\r\n0\r\n\r\n"), (400, ANY), CLOSE),
    ("another expectation", post(b"Expect: a-miracle\r\nContent-Length: 2\r\n", b"{}"), 417, CLOSE),
    ("unknown Content-Encoding", post(b"Content-Encoding: br\r\nContent-Length: 2\r\n", b"{}"), 415, CLOSE),
    ("invalid gzip", post(b"Content-Encoding: gzip\r\nContent-Length: 4\r\n", b"abcd"), 400, KEEP),
    ("text/plain", b"POST /api/v1/experiments HTTP/1.1\r\n" + H + b"Content-Type: text/plain\r\nContent-Length: 12\r\n\r\n{\"name\":\"x\"}", 415, KEEP),
    ("a form", b"POST /api/v1/experiments HTTP/1.1\r\n" + H + b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 6\r\n\r\nname=x", 415, KEEP),
    ("no JSON", post(b"Content-Length: 3\r\n", b"abc"), 400, KEEP),
    ("an array", post(b"Content-Length: 2\r\n", b"[]"), 400, KEEP),
    ("a duplicate key", post(b"Content-Length: 23\r\n", b'{"name":"a","name":"b"}'), 400, KEEP),
    ("unknown field", post(b"Content-Length: 20\r\n", b'{"name":"a","x":"b"}'), 400, KEEP),
    ("33 levels", post(b"Content-Length: 75\r\n", b'{"name":' + b"[" * 33 + b"]" * 33 + b"}"), 400, KEEP),
    # foreign pages
    ("foreign Origin writes", post(b"Origin: http://evil.example\r\nContent-Length: 12\r\n", b'{"name":"x"}'), 403, KEEP),
    ("Origin null writes", post(b"Origin: null\r\nContent-Length: 12\r\n", b'{"name":"x"}'), 403, KEEP),
    ("Origin of another port", post(b"Origin: http://localhost:1\r\nContent-Length: 12\r\n", b'{"name":"x"}'), 403, KEEP),
    ("cross-site writes", post(b"Sec-Fetch-Site: cross-site\r\nContent-Length: 12\r\n", b'{"name":"x"}'), 403, KEEP),
    ("same-site writes", post(b"Sec-Fetch-Site: same-site\r\nContent-Length: 12\r\n", b'{"name":"x"}'), 403, KEEP),
    ("foreign Origin reads", get(b"/api/v1/runs", b"Origin: http://evil.example\r\n"), 403, KEEP),
    ("own Origin writes", post(b"Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 12\r\n", b'{"name":"x"}'), 201, KEEP),
]


def pieces(raw, bytewise):
    return [raw[i:i + 1] for i in range(len(raw))] if bytewise else [raw]


def attempt(server, name, raw, want, close, bytewise=False):
    with server.socket() as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for piece in pieces(raw + (LAST if close is KEEP else b""), bytewise):
                s.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        data, closed = lib.read_all(s)
    try:
        got = lib.replies(data)
    except AssertionError as e:
        if not data.startswith(b"HTTP/1.1 4"):
            lib.check(False, f"{name}: {e}")
            return
        got = [(int(data.split()[1]), {}, b"")]  # cut off: the client was still sending
    statuses = [r[0] for r in got]
    if want is not ANY:
        allowed = want if isinstance(want, tuple) else (want,)
        lib.check((statuses or [NO_REPLY])[0] in allowed, f"{name}: got {statuses}, want {want}")
    if close is KEEP:
        lib.check(statuses[1:] == [200] and closed, f"{name}: the connection is not in step: {statuses}, closed {closed}")
    elif close is CLOSE:
        lib.check(len(statuses) <= 1 and closed, f"{name}: {statuses}, connection {'closed' if closed else 'open'}")
    if got and statuses[0] >= 400 and got[0][1]:
        lib.equal(got[0][1].get("content-type"), "application/json", f"{name}: type")
        lib.check("error" in json.loads(got[0][2]), f"{name}: {got[0][2]!r}")
        lib.equal(got[0][1].get("x-content-type-options"), "nosniff", f"{name}: header")


def error_messages(server):
    """Error messages describe what is wrong with the request, not the internals of the server."""
    metrics = f"/api/v1/runs/{lib.make_run(server)}/metrics"
    artifact = metrics.replace("metrics", "artifacts/" + "x" * 256)
    for method, path, body, want in (
            ("GET", metrics + "/", None, "a slash too many"), ("GET", "/api/v1//runs", None, "a slash too many"),
            ("GET", "/api/v1/runs?filter=%zz", None, "a '%' that begins no escape"), ("PUT", artifact, "x", "at most 255 bytes"),
            ("POST", metrics, '{"points":[{"key":"a","step":1,"value":NaN}]}', 'the strings "NaN"'),
            ("POST", metrics, '{"points":[{"key":"a","step":1,"value":-Infinity}]}', 'the strings "NaN"'),
            ("POST", metrics, '{"points":[{"key":"\\u0000","step":1,"value":1}]}', "NUL character"),
            ("POST", metrics, b'{"points":[{"key":"\xff","step":1,"value":1}]}', "is not UTF-8"),
            ("POST", "/api/v1/runs", b'{"name":"a\\nb"}', "name: contains a line break"), ("POST", "/api/v1/runs", b'{"experiment":"a\\u000d"}', "experiment: contains"),
            ("POST", "/api/v1/experiments", b'{"name":"a\\rb"}', "name: contains a line break"),
            ("POST", metrics, '{"points":[]}'.encode("utf-16"), "encode the text as UTF-8"), ("POST", metrics, b"\xef\xbb\xbf{]", "line 1, column 2"),
            ("POST", metrics, '{"points":[{"k\\u0000":"a","step":1,"value":1}]}', "NUL character")):
        status, _, data = server.request(method, path, body.encode() if isinstance(body, str) else body, lib.JSON)
        message = json.loads(data)["error"]["message"]
        lib.check(status == 400 and want in message, f"{method} {path} {body}: {status} {message!r}, want {want!r}")


def too_large(server):
    """A body that is too large is refused with the limit, whether its length is known or not."""
    for headers in (lib.JSON, dict(lib.JSON, **{"Content-Encoding": "gzip"})):
        body = b'{"name":"' + b"x" * (3 << 20) + b'"}'
        body = gzip.compress(body) if "Content-Encoding" in headers else body
        status, _, data = server.request("POST", "/api/v1/runs", body, headers)
        lib.check(status == 413 and "larger than the 1024 KiB that this route accepts" in json.loads(data)["error"]["message"], f"{status} {data}")


def main():
    with lib.fresh() as server:
        for row in TABLE:
            attempt(server, *row)
            if b"\r\nTransfer-Encoding: chunked\r\n" in row[1] and len(row[1]) < 1000:
                attempt(server, *row, bytewise=True)
        error_messages(server)
        too_large(server)
        for _ in range(3):
            lib.equal(server.request("GET", "/health")[2], b"OK\n", "after all of it")
    print(f"{len(TABLE)} requests")
    lib.finish("hostile")


main()
