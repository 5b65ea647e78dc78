# SPDX-License-Identifier: Apache-2.0
"""A wire between dptrack and PostgreSQL that parses the traffic: it can go silent, swallow a commit's reply or the
commit itself, and replace a statement by another (so that a test shows its purpose)."""
import re
import socket
import struct
import threading

NO_TLS = (80877103, 80877104)  # SSLRequest, GSSENCRequest
NOTICED_S = 3  # until PostgreSQL notices a silent peer, as set by dptrack's groups; tested by tests/team/silent.py


def messages(data, first):
    """Splits bytes into complete messages and the rest; the `first` ones have no type letter."""
    found = []
    while len(data) >= (4 if first else 5):
        length = struct.unpack(">I", data[:4] if first else data[1:5])[0] + (0 if first else 1)
        if len(data) < length:
            break
        found.append(data[:length])
        data = data[length:]
        if first:
            break
    return found, data


def shut(s):
    try:
        s.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class Connection:
    """Two threads, one for each direction; either closes both sockets."""

    def __init__(self, wire, near, far):
        self.wire, self.near, self.far, self.commits, self.writes = wire, near, far, set(), False

    def close(self):
        shut(self.near)
        shut(self.far)

    def end(self):
        """One side ended: closes the other, unless the wire is silent."""
        self.wire.flows.wait()
        self.close()

    def forth(self):
        rest, first = b"", True
        try:
            while data := self.near.recv(1 << 16):
                found, rest = messages(rest + data, first)
                while first and found:
                    if struct.unpack(">I", found[0][4:8])[0] in NO_TLS:
                        self.near.sendall(b"N")
                        found, rest = messages(rest, True)
                        continue
                    first = False
                    more, rest = messages(rest, False)
                    found += more
                self.pass_on(self.far, [self.of_client(m) for m in found])
        except OSError:
            pass
        self.end()

    def back(self):
        rest = b""
        try:
            while data := self.far.recv(1 << 16):
                found, rest = messages(rest + data, False)
                for m in found:
                    if m[:1] == b"C" and m[5:] == b"COMMIT\0" and self.writes:
                        self.spring("reply")
                self.pass_on(self.near, found)
        except OSError:
            pass
        self.end()

    def pass_on(self, to, found):
        self.wire.flows.wait()
        if found:
            to.sendall(b"".join(found))

    def spring(self, what):
        if self.wire.take(what):
            raise OSError(what)

    def of_client(self, m):
        if m[:1] == b"P":
            name, text, rest = m[5:].split(b"\0", 2)
            if text.startswith(b"COMMIT"):
                self.commits.add(name)
            self.writes = self.writes or text.startswith(b"WITH known AS (UPDATE process")
            for old, new in self.wire.instead:
                text = re.sub(old, new, text.decode(), flags=re.S).encode()
            body = b"\0".join((name, text, rest))
            return b"P" + struct.pack(">I", len(body) + 4) + body
        if m[:1] == b"B" and self.writes and m[5:].split(b"\0", 2)[1] in self.commits:
            self.spring("request")
        return m


class Wire:
    """Listens on a port of its own; instead: pairs of a pattern and its replacement in statements."""

    def __init__(self, folder, port, instead=()):
        self.far, self.instead, self.flows = f"{folder}/.s.PGSQL.{port}", instead, threading.Event()
        self.flows.set()
        self.lock, self.trap, self.sprung, self.open = threading.Lock(), None, threading.Event(), []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def address(self, database):
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def accept(self):
        while True:
            near = self.listener.accept()[0]
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self.far)
            except OSError:
                near.close()
                continue
            c = Connection(self, near, far)
            with self.lock:
                self.open.append(c)
            for direction in (c.forth, c.back):
                threading.Thread(target=direction, daemon=True).start()

    def cut(self):
        """From now on nothing passes, and no connection is closed; PostgreSQL notices."""
        self.flows.clear()
        threading.Thread(target=self.notice, daemon=True).start()

    def notice(self):
        if self.flows.wait(NOTICED_S):
            return
        with self.lock:
            for c in self.open:
                shut(c.far)

    def mend(self):
        """Traffic in transit is lost; new connections pass."""
        with self.lock:
            gone, self.open = self.open, []
        for c in gone:
            c.close()
        self.flows.set()

    def swallow(self, what, seconds):
        """Loses the next group's commit ("request") or its reply ("reply") with the connection; returns whether one
        came."""
        self.sprung.clear()
        with self.lock:
            self.trap = what
        sprung = self.sprung.wait(seconds)
        with self.lock:
            self.trap = None
        return sprung

    def take(self, what):
        with self.lock:
            if self.trap != what:
                return False
            self.trap = None
        self.sprung.set()
        return True

