#!/usr/bin/env python3
"""Makes tests/data/formats: one small set of pictures in the containers that others write, and set.json: of each sample its name,
label and the SHA-256 of its file. Run by hand with lmdb (1.7.5) installed; the tests read only what is
committed.
    make_formats.py [lmdb]"""
import hashlib
import json
import os
import pickle
import shutil
import struct
import sys
import tempfile
import zlib

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "formats")
N = 48


def png(width, height, seed):
    """A grey PNG file's bytes; every fourth is large enough for pages of its own."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + bytes((seed * 7 + x * 3 + y * 5) % 251 for x in range(width)) for y in range(height))
    pad = b"" if seed % 4 else chunk(b"tEXt", b"Comment\0" + b"x" * 5000)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + pad
            + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def samples():
    """Name, label and file of each, in the order of names."""
    return [(f"s{i:04d}", i * 7 % 5, png(20 + i % 9, 30 - i % 7, i)) for i in range(N)]


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def datum(label, data, encoded):
    """Caffe's Datum: channels, height, width, data, label, encoded."""
    return (b"\x08\x03\x10\x1e\x18\x14" + b"\x22" + varint(len(data)) + data + b"\x28" + varint(label)
            + (b"\x38\x01" if encoded else b""))


def database(name, entries):
    import lmdb
    with tempfile.TemporaryDirectory() as tmp:
        env = lmdb.open(tmp, map_size=1 << 24)
        with env.begin(write=True) as txn:
            for key, value in entries:
                txn.put(key, value)
        with env.begin(write=True) as txn:  # pages that are free again, and the other first page
            txn.put(b"s9999.jpg", b"x" * 9000)
        with env.begin(write=True) as txn:
            txn.delete(b"s9999.jpg")
        env.close()
        shutil.copy(f"{tmp}/data.mdb", os.path.join(HERE, name))


def lmdb_files():
    all_ = samples()
    entries = [e for name, label, file in all_ for e in ((f"{name}.cls".encode(), b"%d\n" % label), (f"{name}.png".encode(), file),
                                                         (f"{name}.txt".encode(), b"of no use"))]
    database("entries.mdb", entries)
    database("datum.mdb", [(f"{name}_n01/{name}.JPEG".encode(), datum(label, file, True)) for name, label, file in all_])
    database("raw.mdb", [(name.encode(), datum(label, b"\1" * 300, False)) for name, label, _ in all_[:2]])
    database("pickled.mdb", [(name.encode(), pickle.dumps((file, label), 4)) for name, label, file in all_[:2]])


def main():
    os.makedirs(HERE, exist_ok=True)
    with open(os.path.join(HERE, "set.json"), "w", encoding="utf-8") as f:
        json.dump([[name, label, hashlib.sha256(file).hexdigest()] for name, label, file in samples()], f, indent=0)
        f.write("\n")
    for what in sys.argv[1:] or ["lmdb"]:
        {"lmdb": lmdb_files}[what]()


if __name__ == "__main__":
    main()
