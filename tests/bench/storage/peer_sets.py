# SPDX-License-Identifier: Apache-2.0
"""A folder of pictures written by the library that owns the format: LMDB, TFRecord, Parquet (in PARTS files, as `datasets` does).

usage: peer_sets.py lmdb|tfrecord|parquet PLACE FOLDER
with a Python that has lmdb, tfrecord or pyarrow. The i-th picture has label i % 10."""
import os
import sys

PARTS = 4


def pictures(folder):
    for name in sorted(os.path.join(d, f) for d, _, names in os.walk(os.path.join(folder, "train")) for f in names):
        with open(name, "rb") as f:
            yield f.read()


def make_lmdb(place, data):
    import lmdb
    with lmdb.open(place, map_size=1 << 36).begin(write=True) as txn:
        for i, d in enumerate(data):
            txn.put(b"%08d.jpg" % i, d)
            txn.put(b"%08d.cls" % i, b"%d" % (i % 10))


def make_tfrecord(place, data):
    from tfrecord.writer import TFRecordWriter
    writer = TFRecordWriter(os.path.join(place, "train.tfrecord"))
    for i, d in enumerate(data):
        writer.write({"image/encoded": (d, "byte"), "image/class/label": (i % 10, "int")})
    writer.close()


def make_parquet(place, data):
    import pyarrow
    import pyarrow.parquet
    struct = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    rows = [({"bytes": d, "path": None}, i % 10) for i, d in enumerate(data)]
    for part in range(PARTS):
        some = rows[part * len(rows) // PARTS:(part + 1) * len(rows) // PARTS]
        table = pyarrow.table({"image": pyarrow.array([image for image, _ in some], struct), "label": [label for _, label in some]})
        pyarrow.parquet.write_table(table, os.path.join(place, "train-%05d-of-%05d.parquet" % (part, PARTS)), row_group_size=100)


def main():
    kind, place, folder = sys.argv[1:]
    os.makedirs(place)
    {"lmdb": make_lmdb, "tfrecord": make_tfrecord, "parquet": make_parquet}[kind](place, pictures(folder))


main()
