# SPDX-License-Identifier: Apache-2.0
"""HTTPS with a certificate made for the test: versions, the answer to plain HTTP, commands and events through it,
options refused at the start; and the effect of X-Forwarded-* headers with and without --behind-proxy."""
import sys
sys.dont_write_bytecode = True
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import warnings
import lib

sys.path.append(os.path.join(lib.SOURCE, "tests"))
import certificate


def tool(*args, env=None):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DPTRACK_")}
    return subprocess.run([lib.PROGRAM, *args], capture_output=True, text=True, timeout=60, env=dict(environment, **(env or {})))


def refused(words, *args):
    r = tool("serve", "--port", "0", *args)
    lib.equal((r.returncode, r.stdout, r.stderr.count("\n")), (2, "", 1), f"serve {args}: {r.stderr}")
    for word in words:
        lib.check(word in r.stderr, f"serve {args}: {word!r} is not in {r.stderr!r}")


def handshake(server, version, ciphers=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=ssl.DER_cert_to_PEM_cert(server.tls.get_ca_certs(True)[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context.minimum_version = context.maximum_version = version
        if version < ssl.TLSVersion.TLSv1_2:
            context.set_ciphers("ALL:@SECLEVEL=0")
        elif ciphers:
            context.set_ciphers(ciphers)
    try:
        with context.wrap_socket(server.socket(timeout=60), server_hostname="localhost") as s:
            return s.version()
    except (ssl.SSLError, ConnectionError):
        return None


def events(server):
    s = server.tls.wrap_socket(server.socket(timeout=60), server_hostname="localhost")
    s.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    data = b""
    while b"data:" not in data:
        data += s.recv(4096)
    run = lib.make_run(server, name="seen")
    while run.encode() not in data:
        piece = s.recv(4096)
        if not lib.check(piece, "the event stream continues"):
            break
        data += piece
    s.close()


def encrypted(folder, cert, key):
    runs = os.path.join(folder, "runs")
    server = lib.Server(runs, "--tls-cert", cert, "--tls-key", key)
    server.tls = ssl.create_default_context(cafile=cert)
    lib.check(server.url.startswith("https://"), f"the printed address: {server.url}")
    status, headers, _ = server.request("GET", "/health")
    lib.equal((status, headers["Strict-Transport-Security"]), (200, None), "GET /health")
    big = lib.make_run(server, params={f"p{i}": "x" * 400 for i in range(1500)})
    lib.check(len(server.request("GET", f"/api/v1/runs/{big}")[2]) > 600000, "a long body both ways")
    lib.equal(handshake(server, ssl.TLSVersion.TLSv1_3), "TLSv1.3", "TLS 1.3")
    lib.equal(handshake(server, ssl.TLSVersion.TLSv1_2), "TLSv1.2", "TLS 1.2")
    lib.equal(handshake(server, ssl.TLSVersion.TLSv1_1), None, "TLS 1.1")
    with server.socket() as s:
        s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            lib.check(b"200 OK" not in s.recv(4096), "plain HTTP on the port of HTTPS")
        except (ConnectionError, socket.timeout):
            pass
    events(server)
    lib.equal(tool("ls", "--logdir", runs).returncode, 0, "a command on the folder, through the server")
    lib.equal(tool("ls", "--url", server.url).returncode, 1, "a certificate from an unknown authority")
    for name in ("DPTRACK_CA", "SSL_CERT_FILE"):
        lib.equal(tool("ls", "--url", server.url, env={name: cert}).returncode, 0, name)
    token = tool("token", "add", "t", "--scope", "read", "--logdir", runs).stdout.strip()
    status, headers, _ = server.request("POST", "/login", f"token={token}".encode())
    lib.check(status == 303 and "Secure" in headers["Set-Cookie"], f"the session's cookie: {headers['Set-Cookie']}")
    refused_early(server)
    chunks(server)
    lib.equal(server.stop(), 0, "exit code")


def chunks(server):
    """The framing of a body in chunks is judged as without TLS."""
    head = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"
    for end, want in ((b";a=b\r\n", b" 401 "), (b"\n", b" 400 "), (b";a\n", b" 400 ")):
        with server.tls.wrap_socket(server.socket(timeout=60), server_hostname="localhost") as s:
            s.sendall(head)
            s.sendall(b"7" + end + b"token=x\r\n0\r\n\r\n")
            got = s.recv(4096)
            lib.check(want in got[:20], f"a chunk's size that ends in {end}: {got[:20]}")


def refused_early(server):
    """A body that is refused during the upload: the reply can be read before its end, and after it."""
    own = "Authorization: Bearer " + server.owner_token()
    for what, head in (("too large", f"{own}\r\nContent-Type: application/json\r\nContent-Length: 1000000000"), ("too many chunks", f"{own}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked"),
                       ("no such token", "Authorization: Bearer wrong\r\nTransfer-Encoding: chunked"), ("a wrong Host", "Host: evil.example\r\nContent-Length: 1000000000")):
        s = server.tls.wrap_socket(server.socket(timeout=60), server_hostname="localhost")
        host = "" if "Host" in head else "Host: localhost\r\n"
        s.sendall(f"POST /api/v1/experiments HTTP/1.1\r\n{host}{head}\r\n\r\n".encode())
        sent, got = lib.push(s, b"10000\r\n" + b" " * 65536 + b"\r\n")
        want = b" 413 " if "too" in what else b" 401 " if "token" in what else b" 403 "
        lib.check(want in got[:20] and b"onnection: close" in got and b'"message"' in got, f"{what}: {sent} bytes sent, {got[:200]!r}")
        s.close()
    c = server.connection()
    own = {"Authorization": own.split(": ")[1]}
    c.request("POST", "/api/v1/experiments", (b" " * 65536 for _ in range(40)), encode_chunked=True, headers=dict(lib.JSON, **own, **{"Transfer-Encoding": "chunked"}))
    r = c.getresponse()
    lib.check(r.status == 413 and b"message" in r.read(), f"a client that reads after sending the complete body: {r.status}")
    c.close()


def dates_and_ciphers(folder):
    """A certificate that has expired, or is not valid yet, is named with its date at the start (crossbar#1133); key exchange
    without forward secrecy and ciphers without authentication are refused."""
    for name, start, end, want in (("late", "20200101000000Z", "20200201000000Z", "expired on 2020-02-01"),
                                   ("early", "20900101000000Z", "20910101000000Z", "not valid before 2090-01-01"), ("good", "20200101000000Z", "20900101000000Z", None)):
        cert, key = certificate.issue(folder, name, start, end)
        server = lib.Server(os.path.join(folder, "dates"), "--tls-cert", cert, "--tls-key", key, *([] if want else ["--hsts"]))
        server.tls = ssl.create_default_context(cafile=cert)
        r = tool("ls", "--url", server.url, env={"DPTRACK_CA": cert})
        lib.check(("renew" in r.stderr) == bool(want) and "DPTRACK_CA" not in r.stderr.partition("verification failed")[0], f"ls, {name}: {r.stderr}")
        if not want:
            lib.equal(handshake(server, ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-AES128-GCM-SHA256"), "TLSv1.2", "forward secrecy")
            for weak in ("kRSA", "ECDHE-RSA-AES256-SHA384", "ECDHE-RSA-AES128-SHA"):
                lib.equal(handshake(server, ssl.TLSVersion.TLSv1_2, weak), None, weak)
            lib.equal(server.request("GET", "/health")[1]["Strict-Transport-Security"], "max-age=31536000", "--hsts")
        lib.equal(server.stop(), 0, "exit code")
        lib.check((want or "") in server.stderr() and ("--tls-cert" in server.stderr()) == bool(want), f"{name}: {server.stderr()}")
    with open(os.path.join(folder, "upside.pem"), "w", encoding="utf-8") as f:
        for name in ("late", "good"):
            with open(os.path.join(folder, name + ".pem"), encoding="utf-8") as g:
                f.write(g.read())
    locked = os.path.join(folder, "locked.key")
    subprocess.run(["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:x", "-out", locked], check=True)
    refused(["certificate 2", "put it first"], "--logdir", folder, "--tls-cert", f.name, "--tls-key", key)
    refused(["password", "openssl pkey"], "--logdir", folder, "--tls-cert", cert, "--tls-key", locked)
    refused(["--hsts", "--tls-cert"], "--logdir", folder, "--hsts")


def behind_proxy(folder):
    token = {"Authorization": "Bearer 0123456789abcdef"}
    seen = dict(lib.JSON, Origin="https://tracker.lab", **{"X-Forwarded-Host": "evil, tracker.lab", "X-Forwarded-Proto": "https"}, **token)
    with lib.fresh(env={"DPTRACK_TOKEN": "0123456789abcdef"}) as server:
        lib.equal(server.request("POST", "/api/v1/experiments", {"name": "a"}, seen)[0], 403, "X-Forwarded-Host without --behind-proxy")
        lib.equal(server.request("GET", "/health", headers={"Host": "tracker.lab"})[0], 403, "Host without --behind-proxy")
    with lib.fresh("--behind-proxy", env={"DPTRACK_TOKEN": "0123456789abcdef"}) as server:
        lib.equal(server.request("GET", "/health", headers={"Host": "tracker.lab"})[0], 200, "the proxy's Host")
        lib.equal(server.request("GET", "/version", headers={"Host": "tracker.lab"})[0], 401, "a token is needed")
        lib.equal(server.request("POST", "/api/v1/experiments", {"name": "a"}, seen)[0], 201, "Origin as the proxy saw it")
        first = dict(seen, Origin="https://evil")
        lib.equal(server.request("POST", "/api/v1/experiments", {"name": "b"}, first)[0], 403, "only the last field, added by the proxy, counts")
        with server.socket() as s:
            s.sendall(b"POST /login HTTP/1.1\r\nHost: tracker.lab\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Proto: http\r\nConnection: close\r\n"
                      b"Content-Length: 22\r\n\r\ntoken=0123456789abcdef")
            cookie = lib.replies(lib.read_all(s)[0])[0][1].get("set-cookie", "")
            lib.check(cookie and "Secure" not in cookie, f"the proxy's field is the last one: {cookie!r}")
        for proto, secure in (("https", True), ("http, https", True), ("https, http", False), ("http", False), ("", False)):
            cookie = server.request("POST", "/login", b"token=0123456789abcdef", {"X-Forwarded-Proto": proto})[1]["Set-Cookie"]
            lib.equal("Secure" in cookie, secure, f"X-Forwarded-Proto: {proto}: {cookie}")


def main():
    if not shutil.which("openssl"):
        print("tls: openssl is not installed, which makes the certificate")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        cert, key = certificate.make(folder, "a")
        _, other = certificate.make(folder, "b")
        place = ("--logdir", os.path.join(folder, "runs"))
        refused(["--behind-proxy", "token"], *place, "--behind-proxy")
        if "without TLS" in tool("serve", "--port", "0", *place, "--tls-cert", "/", "--tls-key", "/").stderr:
            behind_proxy(folder)
            print("tls: this libmicrohttpd was built without TLS")
            sys.exit(1 if lib.failures else 77)
        refused(["--tls-key"], *place, "--tls-cert", cert)
        refused(["none.pem", "No such file"], *place, "--tls-cert", os.path.join(folder, "none.pem"), "--tls-key", key)
        refused(["PEM"], *place, "--tls-cert", __file__, "--tls-key", key)
        refused(["must match"], *place, "--tls-cert", cert, "--tls-key", other)
        encrypted(folder, cert, key)
        dates_and_ciphers(folder)
        behind_proxy(folder)
    lib.finish("tls")


main()
