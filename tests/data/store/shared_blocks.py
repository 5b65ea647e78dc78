#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node of a job with --cache-shared against another node that this test plays, with its own implementation of the
protocol: blocks come from their owner and are kept as copies; an owner that is gone, hangs, refuses, sends wrong bytes or
never has the block costs one line and the request to the store, and never a sample."""
import concurrent.futures
import contextlib
import hashlib
import hmac
import http.server
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
DPTRAIN = os.path.join(BUILD, "dptrain")
DELIVER = os.path.join(BUILD, "tests", "data", "deliver")
sys.path.insert(0, os.path.join(SRC, "tests", "data"))
import noisy  # noqa: E402
from objectserver import Quiet, Server  # noqa: E402

KEY = "the key of the job"
HOW = ["shuffle=3", "window=30", "batch=8", "epochs=2", f"job_key={KEY}"]


def crc32c(data):
    table = crc32c.table
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def crc_row(n):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    return n


crc32c.table = [crc_row(n) for n in range(256)]


def proof(who, nonce, name, *numbers):
    return hmac.new(KEY.encode(), " ".join(["dptrain", who, nonce, name, *numbers]).encode(), hashlib.sha256).hexdigest()


class Node(http.server.ThreadingHTTPServer):
    """The other node. way: how it answers; shards: by the number of an object in the set."""
    daemon_threads = True

    def __init__(self, shards, way):
        super().__init__(("127.0.0.1", 0), Handler)
        self.shards, self.way, self.names, self.later, self.hung = shards, way, [], set(), threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    def stop(self):
        self.hung.set()
        self.shutdown()
        self.server_close()


class Handler(Quiet):
    def do_GET(self):
        way = self.server.way
        name, *numbers = re.fullmatch(r"/block/([0-9a-f]{64})\?object=(\d+)&begin=(\d+)&bytes=(\d+)", self.path).groups()
        _, nonce, given = self.headers["Authorization"].split()
        assert hmac.compare_digest(given, proof("asks", nonce, name, *numbers)), "the request proves the key"
        assert KEY not in str(self.headers)
        self.server.names.append(name)
        number, begin, n = map(int, numbers)
        with open(self.server.shards[number], "rb") as f:
            f.seek(begin)
            data = f.read(n)
        if way == "hangs":
            self.server.hung.wait()
            return
        if way == "never" or (way == "later" and name not in self.server.later):
            self.server.later.add(name)
            self.answer(202)
            return
        if way == "refuses":
            self.answer(403, b"another job key (DPTRAIN_JOB_KEY)\n")
            return
        if way == "forges":
            data = data[:-1] + bytes([data[-1] ^ 1])
        crc = "%08x" % crc32c(data if way != "flips" else data[:-1] + bytes([data[-1] ^ 1]))
        signed = proof("serves " + crc, nonce, name, *numbers) if way not in ("unproven", "forges") else "0" * 64
        if way == "cuts":
            self.close_connection = True
            self.answer(200, data, DPTrain_Block=f"{crc} {signed}", Connection="close") if len(self.server.names) % 2 else self.answer(200, data[:100])
            return
        self.answer(200, data, DPTrain_Block=f"{crc} {signed}")


def deliver(spec, *more):
    done = subprocess.run([DELIVER, spec, *HOW, *more], capture_output=True, text=True, timeout=100, env={**os.environ, "no_proxy": "*"})
    assert done.returncode == 0, (done.args, done.stdout, done.stderr)
    lines = done.stdout.splitlines()
    counts = {k: int(v) for k, v in (line.split() for line in lines if re.fullmatch(r"(peer_|remote_)\w+ \d+", line))}
    return lines[:3], counts, [line for line in lines[3:] if line.startswith("--")]


def fetched(server):
    """The blocks that the store sent, each as often as it did."""
    found = [(path, headers["Range"]) for path, headers in server.log if path.endswith(".tar") and headers.get("Range") != "bytes=0-0"]
    server.log.clear()
    return found


@contextlib.contextmanager
def other(shards, way):
    node = Node(shards, way)
    try:
        yield node
    finally:
        node.stop()


def kept(folder):
    """The modes of the blocks in the cache."""
    return [os.stat(os.path.join(d, f)).st_mode & 0o777 for d, _, files in os.walk(folder) for f in files if f != "lock"]


def helps(server, shards, plain, all_blocks):
    """Each block comes from one place: the owner's cache or the store; it is kept, those of the owner as copies."""
    for way in ("serves", "later"):
        with other(shards, way) as node:
            cache = f"{tmp}/{way}"
            got, counts, notices = deliver(server.url + "/train.json", f"cache={cache}", f"peer={node.server_port}", "workers=2")
            mine = fetched(server)
            asked = set(node.names)
            assert got == plain and not notices and counts["peer_failures"] == 0, (way, got, plain, notices, counts)
            assert len(mine) == len(set(mine)) and len(mine) + len(asked) == len(all_blocks), (way, len(mine), len(asked))
            assert 0 < len(mine) < len(all_blocks), len(mine)
            assert way == "later" or len(node.names) == len(asked), "a block that is there is requested once"
            assert counts["remote_bytes"] + counts["peer_bytes"] >= sum(map(os.path.getsize, shards)), counts
            assert sorted(kept(cache)) == [0o400] * len(asked) + [0o600] * len(mine), kept(cache)
            got, counts, notices = deliver(server.url + "/train.json", f"cache={cache}", f"peer={node.server_port}", "ranks=2")
            assert got == plain and not fetched(server) and len(set(node.names)) == len(asked) and counts["peer_bytes"] == 0, (way, counts)


WAYS = (("gone", "[Cc]onnect"), ("refuses", r"it refused a request \(status 403, another job key"), ("forges", "its response is not a block of this job"),
        ("unproven", "its response is not a block of this job"), ("flips", "its response is not a block of this job"),
        ("cuts", "its response is not a block of this job"), ("never", "it did not get a block in time"))


def fails(server, shards, plain, all_blocks, ways):
    """An owner that does not serve: the store sends its blocks, and one line says why."""
    for way, why in ways:
        with other(shards, way) as node:
            if way == "gone":
                node.stop()
            got, counts, notices = deliver(server.url + "/train.json", f"cache={tmp}/{way}", f"peer={node.server_port}", "workers=2", "timeout=4")
            assert got == plain, (way, got, plain)
            assert len(notices) == 1 and re.search(why, notices[0]) and notices[0].startswith(f"--cache-shared: node 1 (127.0.0.1 port {node.server_port}): "), (way, notices)
            mine = fetched(server)
            assert counts["peer_failures"] > 0 and len(mine) == len(set(mine)), (way, counts)
            assert len(mine) == len(all_blocks) or way == "cuts", (way, len(mine))


with tempfile.TemporaryDirectory(prefix="dptrain-peers-") as tmp:
    noisy.folder(f"{tmp}/folder", {"train": 200, "val": 9})
    subprocess.run([DPTRAIN, "shard", "--data-path", f"{tmp}/folder", "--out", f"{tmp}/shards", "--shard-size", "100kB"], check=True,
                   stdout=subprocess.DEVNULL)
    names = sorted(f"{tmp}/shards/{n}" for n in os.listdir(f"{tmp}/shards") if n.startswith("train") and n.endswith(".tar"))
    store = Server(f"{tmp}/shards")
    disk, _, _ = deliver(f"{tmp}/shards")
    deliver(store.url + "/train.json", f"cache={tmp}/all")
    blocks = fetched(store)
    assert len(blocks) == len(set(blocks)) == len(names), "a block is a whole shard here"
    slow = Server(f"{tmp}/shards")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        hangs = pool.submit(fails, slow, names, disk, blocks, [("hangs", "Less than 1 byte")])
        helps(store, names, disk, blocks)
        fails(store, names, disk, blocks, WAYS)
        hangs.result()
    slow.stop()
    store.stop()
print("peers: blocks from their owners, each once; owners that fail cost a line and a request to the store")
