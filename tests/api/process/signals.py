# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: with nohup the server goes on, from a service manager it reads certificate and token file again; a new folder is
named at the start; a client that closes its sending side gets its reply and the end of the connection; the end closes new
connections."""
import sys
sys.dont_write_bytecode = True
import os
import signal
import socket
import ssl
import subprocess
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib

sys.path.append(os.path.join(lib.SOURCE, "tests"))
import certificate

TOKENS = ("a-token-of-the-first-day", "a-token-of-the-second-day")


def wait(ask, what, seconds=30):
    end = time.monotonic() + seconds
    while not ask() and time.monotonic() < end:
        time.sleep(0.05)
    return lib.check(ask(), what)


def status(server, token):
    return server.request("GET", "/api/v1/runs", headers={"Authorization": f"Bearer {token}"})[0]


def token_file(folder):
    path = os.path.join(folder, "token")
    with open(path, "w", encoding="utf-8") as f:
        f.write(TOKENS[0] + "\n")
    server = lib.Server(os.path.join(folder, "runs"), "--token-file", path)
    lib.equal([status(server, t) for t in TOKENS], [200, 401], "the first token")
    with open(path, "w", encoding="utf-8") as f:
        f.write(TOKENS[1] + "\n")
    server.process.send_signal(signal.SIGHUP)
    wait(lambda: [status(server, t) for t in TOKENS] == [401, 200], "SIGHUP: the second token")
    with open(path, "w", encoding="utf-8") as f:
        f.write("short\n")
    server.process.send_signal(signal.SIGHUP)
    wait(lambda: "stays in use" in server.stderr(), "a token that is too short is refused")
    lib.equal(status(server, TOKENS[1]), 200, "the last token stays")
    lib.equal(server.stop(), 0, "SIGTERM ends")


def fingerprint(server):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(server.socket()) as s:
        return s.getpeercert(True)


def certificates(folder):
    places = [os.path.join(folder, n) for n in ("one", "two")]
    for place in places:
        os.makedirs(place)
    try:
        pairs = [certificate.make(p, "server") for p in places]
    except Exception as e:  # no openssl here
        print("no certificate can be made:", e)
        return
    cert, key = (os.path.join(folder, n) for n in ("cert.pem", "key.pem"))

    def use(pair):
        for source, target in zip(pair, (cert, key)):
            with open(source, "rb") as f, open(target + ".new", "wb") as t:
                t.write(f.read())
            os.replace(target + ".new", target)

    use(pairs[0])
    server = lib.Server(os.path.join(folder, "tls"), "--tls-cert", cert, "--tls-key", key)
    first = fingerprint(server)
    use(pairs[1])
    lib.equal(fingerprint(server), first, "no signal, no change")
    server.process.send_signal(signal.SIGHUP)
    wait(lambda: fingerprint(server) != first, "SIGHUP: the second certificate")
    second = fingerprint(server)
    use((pairs[0][0], pairs[1][1]))
    server.process.send_signal(signal.SIGHUP)
    wait(lambda: "stays in use" in server.stderr(), "a key of another certificate is refused")
    lib.equal(fingerprint(server), second, "the last certificate stays")
    lib.equal(server.stop(), 0, "exit code")


def ignored(folder):
    """As nohup starts it: SIGHUP is ignored."""
    command = [lib.PROGRAM, "serve", "--logdir", os.path.join(folder, "nohup"), "--port", "0"]
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    lib.check(p.stdout.readline().startswith("dptrack: serving"), "served")
    p.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    lib.equal(p.poll(), None, "nohup: SIGHUP does not end it")
    p.terminate()
    lib.equal(p.wait(60), 0, "SIGTERM does")


def new_folder(folder):
    os.makedirs(os.path.join(folder, "my_runs"))
    for name, words in (("my_rnus", ("made an empty one", "my_runs?")), ("qqqqqqqqqqqqqq", ("made an empty one",)), ("my_runs", ())):
        server = lib.Server(os.path.join(folder, name))
        lib.equal(server.stop(), 0, name)
        for word in words:
            lib.check(word in server.stderr(), f"{name}: {word!r} is not in {server.stderr()!r}")
        lib.check(words or "made an empty" not in server.stderr(), f"{name} was there")


def half_closed(server):
    for target in ("/health", "/api/v1/runs", "/nothing") * 10:
        with server.socket() as s:
            s.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            s.shutdown(socket.SHUT_WR)
            begun = time.monotonic()
            data, closed = lib.read_all(s, quiet=20, limit=30)
            lib.check(closed and data.startswith(b"HTTP/1.1 "), f"{target}: closed {closed} after {time.monotonic() - begun:.1f} s: {data[:30]!r}")


def last_request(folder):
    """During its end the server answers the request under way, closes new connections at once, and exits with 0."""
    server = lib.Server(os.path.join(folder, "last"))
    body = b'{"name":"last"}'
    with server.socket(timeout=30) as s:
        s.sendall(b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:5])
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        try:
            with server.socket(timeout=5) as late:
                got = late.recv(100)
        except (ConnectionRefusedError, ConnectionResetError):
            got = b""
        lib.equal(got, b"", "a connection during the end")
        s.sendall(body[5:])
        got = s.recv(4000)
        lib.check(got[:13] in (b"HTTP/1.1 201 ", b"HTTP/1.1 503 "), f"the request under way: {got[:200]!r}")
    lib.equal(server.process.wait(60), 0, "exit code")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        token_file(folder)
        certificates(folder)
        ignored(folder)
        new_folder(folder)
        last_request(folder)
    with lib.fresh() as server:
        half_closed(server)
    lib.finish("signals")


main()
