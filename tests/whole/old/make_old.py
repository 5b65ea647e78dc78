#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes old.tar.xz with the programs of a build folder: a set of small pictures, one of them damaged, the run of a
training on it (journal and checkpoint), and a store of that run with an alert rule. The weights are zeros and the
learning rate is 0, to keep the archive small.

    builddir=OLD/build tests/whole/old/make_old.py    the committed one is from commit 31a29290"""
import os
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "api"))
import lib

FLAGS = ["--data-path", "set", "--model", "resnet20", "--image-size", "8", "-b", "4", "--backend", "ref", "--threads", "1", "--lr", "0",
         "-j", "1", "--augment", "none", "--lr-scheduler", "constant", "--system-interval", "0"]


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(seed, side=8):
    rows = b"".join(b"\0" + bytes((seed * 31 + x * 7 + y * 13 + c * 5) % 256 for x in range(side) for c in range(3)) for y in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def make_set():
    for split, count in (("train", 16), ("val", 4)):
        for i in range(count):
            folder = f"set/{split}/{'ab'[i % 2]}"
            os.makedirs(folder, exist_ok=True)
            with open(f"{folder}/{i:02}.png", "wb") as f:
                f.write(png(i)[:40 if (split, i) == ("train", 3) else None])


def train(*flags):
    subprocess.run([os.path.join(lib.BUILD, "dptrain"), *FLAGS, *flags], check=True)


def zero_weights():
    train("--max-steps", "1", "--save-weights", "weights.safetensors", "--save-total-limit", "0", "--runs-dir", "scrap")
    with open("weights.safetensors", "rb") as f:
        data = f.read()
    head = 8 + struct.unpack("<Q", data[:8])[0]
    with open("zeros.safetensors", "wb") as f:
        f.write(data[:head] + bytes(len(data) - head))


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-old.") as folder:
        os.chdir(folder)
        make_set()
        zero_weights()
        train("--init-from", "zeros.safetensors", "--max-steps", "4", "--save-steps", "4", "--watch-steps", "4", "--max-broken", "0.5",
              "--run-name", "old", "--runs-dir", "runs")
        server = lib.Server("runs")
        status, reply = server.json("POST", "/api/v1/alerts/rules", {"kind": "metric", "metric": "dead/bn1.relu", "above": 5})
        lib.equal(status, 201, f"a rule: {reply}")
        server.stop()
        os.remove([os.path.join(d, n) for d, _, names in os.walk("runs") for n in names if n == "weights.safetensors"][0])
        with tarfile.open(os.path.join(HERE, "old.tar.xz"), "w:xz", preset=9) as t:
            for name in ("set", "runs"):
                t.add(name, filter=lambda i: i if os.path.basename(i.name) not in ("lock", "dptrack.db-wal", "dptrack.db-shm") else None)


main()
