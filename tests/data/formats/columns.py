#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run by hand, with pyarrow (26.0.1) installed: columns of random tables that pyarrow writes, in every supported way,
and of the given files, equal what pyarrow reads.
    tests/data/formats/columns.py [FILE...]"""
import hashlib
import os
import random
import struct
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = os.path.join(os.environ.get("builddir", "build"), "tests", "data", "formats", "columns")


def sums(path):
    """The sums that columns.c prints, by the leaf's name."""
    out = {}

    def add(name, array):
        if pa.types.is_struct(array.type):
            for i in range(array.type.num_fields):
                add(f"{name}.{array.type.field(i).name}", array.flatten()[i])
            return
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if array.type in (pa.date32(), pa.time32("ms")):
            array = array.cast(pa.int32())
        elif pa.types.is_temporal(array.type):
            array = array.cast(pa.int64())
        number = pa.types.is_integer(array.type)
        if not number and not (pa.types.is_binary(array.type) or pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
            return
        values = array.to_pylist()
        sha = hashlib.sha256()
        for v in values:
            b = v.encode() if isinstance(v, str) else v
            sha.update(b"\0" if v is None else b"\1" + (struct.pack("<q", v) if number else struct.pack("<I", len(b)) + b))
        out[name] = f"{len(values)} {sum(v is None for v in values)} {sha.hexdigest()}"
    table = pq.read_table(path)
    for name in table.column_names:
        add(name, table.column(name).combine_chunks() if table.num_rows else table.column(name))
    return out


def compare(path):
    said = subprocess.run([COLUMNS, path], capture_output=True, text=True, timeout=600, check=True).stdout
    ours = dict(line.split(" ", 1) for line in said.splitlines() if ": " not in line)
    theirs = sums(path)
    assert ours and all(theirs[k] == v for k, v in ours.items()), (path, ours, {k: theirs.get(k) for k in ours}, said)
    return len(ours)


def column(kind, n, rng):
    nulls = rng.choice([0, 0, 0.1, 0.9, 1])
    distinct = rng.choice([1, 3, 200, 10 ** 6])

    def value():
        v = rng.randrange(distinct)
        if kind == "bytes":
            return hashlib.sha256(b"%d" % v).digest() * (v % 9) + b"x" * (v % 3)
        return (v * 0x9E3779B97F4A7C15 & (1 << 63) - 1) - (1 << 62) if kind == "int64" else v % (1 << 31) - (1 << 30)
    values = [None if rng.random() < nulls else value() for _ in range(n)]
    return pa.array(values, {"bytes": pa.binary(), "int64": pa.int64(), "int32": pa.int32()}[kind])


def draw(path, rng):
    n = rng.choice([1, 7, 1000, 5000])
    table = pa.table({"a": column("int64", n, rng), "b": column("int32", n, rng), "c": column("bytes", n, rng),
                      "s": pa.StructArray.from_arrays([column("bytes", n, rng), column("int64", n, rng)], ["x", "y"],
                                                      mask=pa.array([rng.random() < 0.2 for _ in range(n)]))})
    encoding = {}
    dictionary = rng.random() < 0.5
    if not dictionary:
        encoding = {k: rng.choice(["PLAIN", "DELTA_LENGTH_BYTE_ARRAY" if k in ("c", "s.x") else "DELTA_BINARY_PACKED"])
                    for k in ("a", "b", "c", "s.x", "s.y")}
    pq.write_table(table, path, compression=rng.choice(["none", "snappy", "zstd", "gzip", "lz4"]), use_dictionary=dictionary,
                   column_encoding=encoding or None, data_page_version=rng.choice(["1.0", "2.0"]), row_group_size=rng.choice([100, 3000, 10 ** 6]),
                   data_page_size=rng.choice([100, 5000, 1 << 20]), write_page_checksum=rng.random() < 0.5,
                   dictionary_pagesize_limit=rng.choice([1000, 1 << 20]))


if sys.argv[1:]:
    for name in sys.argv[1:]:
        print(f"{name}: {compare(name)} columns equal pyarrow's")
else:
    with tempfile.TemporaryDirectory() as tmp:
        for seed in range(200):
            draw(f"{tmp}/x.parquet", random.Random(seed))
            assert compare(f"{tmp}/x.parquet") == 5, seed
    print("200 random tables: every column equals pyarrow's")
