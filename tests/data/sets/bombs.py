#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small files that claim to be large, and self-containing parts: each gives one line that names the file, within
bounded memory. A training with more broken samples than --max-unreadable allows exits with 1 and names shard and key
of the first ones."""
import gzip
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import io
import zlib

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
DPTRAIN = os.path.join(BUILD, "dptrain")
DELIVER = os.path.join(BUILD, "tests", "data", "deliver")
FORMATS = os.path.join(SRC, "tests", "data", "formats")
RSS_MAX_KB = 700 << 10  # an empty sanitized program uses a tenth of it
# A sanitizer retains freed memory, 256 MiB by default.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}


def run(args, code):
    """Returns a program's stderr, which must be one line; checks its peak memory."""
    with tempfile.TemporaryFile("w+") as said:
        job = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=said, env={**ENVIRONMENT, "XDG_CACHE_HOME": f"{tmp}/cache"})
        _, status, usage = os.wait4(job.pid, 0)
        job.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    assert job.returncode == code, (args, job.returncode, text)
    assert usage.ru_maxrss < RSS_MAX_KB, (args, usage.ru_maxrss)
    return text


def refused(words, *args, code=1):
    said = run(args, code)
    assert len(said.splitlines()) == 1 and all(w in said for w in words), (words, said)


def write(name, data):
    path = f"{tmp}/{name}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return path


def zstd(n, byte):
    """Returns a frame (RFC 8878) of n pieces of 128 KiB of one byte, four bytes each."""
    head = struct.pack("<IBB", 0xFD2FB528, 0, 0x38)  # no size, a window of 128 KiB
    return head + b"".join(struct.pack("<I", (i == n - 1) | 1 << 1 | (128 << 10) << 3)[:3] + byte for i in range(n))


def packed_texts():
    """A line of 2 GiB in 64 kB, one of 300 MiB in 0.3 MB."""
    def tokenized(path):
        refused([os.path.basename(path), ":1: ", "MiB"], DPTRAIN, "tokenize", "--data-path", path, "--out", f"{tmp}/tokens", code=2)
    tokenized(write("bomb.jsonl.zst", zstd(1 << 14, b" ")))
    tokenized(write("bomb.jsonl.gz", gzip.compress(bytes(300 << 20).replace(b"\0", b" "), 1)))


def footers():
    """Footers of Parquet: nested structs, a list of arbitrary length, a page of 2 GiB."""
    def footer(name, data):
        return write(name, b"PAR1" + data + struct.pack("<I", len(data)) + b"PAR1")
    refused(["deep.parquet"], DELIVER, footer("deep.parquet", b"\x1c" * 1000000))
    refused(["long.parquet"], DELIVER, footer("long.parquet", b"\x15\x02\x19\xfc\xff\xff\xff\xff\x07" + b"\0" * 64))
    refused(["maps.parquet"], DELIVER, footer("maps.parquet", b"\x1b\xff\xff\xff\xff\x07\xbb" * 1000))


def pictures():
    """A PNG of 900 million pixels and one with endless rows, among valid ones: they are named and skipped."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    def png(width, height, rows):
        return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))
    good = png(24, 24, bytes(25 * 24))
    bad = {3: png(30000, 30000, bytes(30001 * 30)), 7: png(24, 24, bytes(100 << 20)), 9: good[:50]}
    path = f"{tmp}/p/train-000000.tar"
    os.makedirs(os.path.dirname(path))
    with tarfile.open(path, "w") as tar:
        for i in range(40):
            for name, data in ((f"{i:03d}.png", bad.get(i, good)), (f"{i:03d}.cls", b"%d" % (i % 2))):
                m = tarfile.TarInfo(name)
                m.size = len(data)
                tar.addfile(m, io.BytesIO(data))
    flags = ["--model", "resnet20", "--backend", "ref", "--image-size", "8", "-b", "8", "--epochs", "1", "--val-split", "0", "--workers", "1",
             "--runs-dir", f"{tmp}/runs", "--data-path", path]
    said = run([DPTRAIN, *flags], 0)
    assert "train-000000.tar: 003.png" in said and "30000 x 30000" in said and "train-000000.tar: 009.png" in said, said
    with open(path, "r+b") as f:  # twelve of forty
        with tarfile.open(path) as tar:
            for m in [m for m in tar if m.name.endswith(".png")][10:22]:
                f.seek(m.offset_data)
                f.write(b"\xff" * 40)
    said = run([DPTRAIN, *flags], 1)
    assert "more than 10" in said.splitlines()[-1] and "--max-unreadable" in said and "train-000000.tar: 0" in said.splitlines()[0], said
    shutil.rmtree(f"{tmp}/runs")


with tempfile.TemporaryDirectory(prefix="dptrain-bombs-") as tmp:
    packed_texts()
    footers()
    pictures()
print("bombs: one line each, in bounded memory")
sys.exit(0)
