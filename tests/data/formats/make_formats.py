#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the files in this folder: one small set of pictures in containers of other programs, set.json with each
sample's name, label and the SHA-256 of its file, and a few texts. Run by hand with lmdb (1.7.5), pyarrow (26.0.1),
h5py (3.16.0) and zstandard (0.25.0) installed; the tests read only what is committed.
    make_formats.py [lmdb] [parquet] [arrow] [labels] [named] [hdf5] [texts]"""
import hashlib
import json
import os
import pickle
import shutil
import struct
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tracker"))
from wire import varint  # noqa: E402

N = 48


def png(width, height, seed):
    """Returns a grey PNG file's bytes; every fourth is large enough for pages of its own."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + bytes((seed * 7 + x * 3 + y * 5) % 251 for x in range(width)) for y in range(height))
    pad = b"" if seed % 4 else chunk(b"tEXt", b"Comment\0" + b"x" * 5000)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + pad
            + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def samples():
    """Returns name, label and file of each sample, sorted by name."""
    return [(f"s{i:04d}", i * 7 % 5, png(20 + i % 9, 30 - i % 7, i)) for i in range(N)]


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
        with env.begin(write=True) as txn:  # pages that are freed, and the second meta page
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


def parquet_file(name, rows, **options):
    """Writes pictures as Hugging Face's datasets does: image: {bytes, path}, label."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    image = pa.array([{"bytes": file, "path": f"{name_}.png"} if file is not None else None for name_, _, file in rows],
                     pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    table = pa.table({"path": [r[0] for r in rows], "image": image, "label": pa.array([r[1] for r in rows], pa.int64()),
                      "score": [0.5] * len(rows)})
    pq.write_table(table, os.path.join(HERE, name), **options)


def parquet_files():
    import pyarrow as pa
    import pyarrow.parquet as pq
    all_ = samples()
    for codec in ("none", "snappy", "zstd", "gzip", "lz4"):
        parquet_file(f"{codec}.parquet", all_, compression=codec, row_group_size=20, data_page_version="2.0" if codec in ("none", "zstd") else "1.0",
                     data_page_size=3000, write_batch_size=4, use_dictionary=codec != "gzip", write_page_checksum=codec == "lz4")
    parquet_file("deltas.parquet", all_, use_dictionary=False, data_page_size=3000, write_batch_size=4,
                 column_encoding={"label": "DELTA_BINARY_PACKED", "image.bytes": "DELTA_LENGTH_BYTE_ARRAY"})
    parquet_file("brotli.parquet", all_[:2], compression="brotli")
    parquet_file("prefixes.parquet", all_[:2], use_dictionary=False, column_encoding={"image.bytes": "DELTA_BYTE_ARRAY"})
    parquet_file("nulls.parquet", [(n, None if i % 7 == 3 else label, None if i % 5 == 2 else file) for i, (n, label, file) in enumerate(all_)])
    pq.write_table(pa.table({"image": [[b"x"], [b"y"]], "label": [1, 2]}), os.path.join(HERE, "lists.parquet"))


def left_plain(path):
    """Stores buffers that LZ4 did not shrink uncompressed, with size -1, as writers other than pyarrow do."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    magic, at, plain = bytes.fromhex("04224d18"), 0, 0
    while (at := data.find(magic, at + 1)) > 0:
        n, = struct.unpack_from("<q", data, at - 8)
        if struct.unpack_from("<I", data, at + 7)[0] == n | 1 << 31:
            data[at - 8:at + n] = struct.pack("<q", -1) + data[at + 11:at + 11 + n]
            plain += 1
    assert plain > 10
    with open(path, "wb") as f:
        f.write(data)


def arrow_files():
    """A stream as of datasets' save_to_disk, and a file."""
    import pyarrow as pa
    rows = [(n, None if i == 9 else label, None if i == 5 else file) for i, (n, label, file) in enumerate(samples())]
    def table(rows, label_type, bytes_type):
        image = pa.array([{"bytes": file, "path": None} if file is not None else None for _, _, file in rows],
                         pa.struct([("bytes", bytes_type), ("path", pa.string())]))
        return pa.table({"path": [r[0] for r in rows], "tags": [["a", "b"]] * len(rows), "image": image, "on": [True] * len(rows),
                         "label": pa.array([r[1] for r in rows], label_type)})
    whole = table(samples(), pa.int64(), pa.binary())
    with pa.OSFile(os.path.join(HERE, "stream.arrow"), "wb") as f, pa.ipc.new_stream(f, whole.schema) as w:
        w.write_table(whole, max_chunksize=17)
    small = table(samples(), pa.uint8(), pa.large_binary())
    with pa.OSFile(os.path.join(HERE, "file.arrow"), "wb") as f, pa.ipc.new_file(f, small.schema) as w:
        w.write_table(small, max_chunksize=30)
    nulls = table(rows, pa.int32(), pa.binary())
    with pa.OSFile(os.path.join(HERE, "nulls.arrow"), "wb") as f, pa.ipc.new_stream(f, nulls.schema) as w:
        w.write_table(nulls)
    for codec, rows_each in (("lz4", 3), ("zstd", 17)):
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.OSFile(os.path.join(HERE, f"{codec}.arrow"), "wb") as f, pa.ipc.new_file(f, whole.schema, options=options) as w:
            w.write_table(whole, max_chunksize=rows_each)
    left_plain(os.path.join(HERE, "lz4.arrow"))
    with pa.ipc.open_file(os.path.join(HERE, "lz4.arrow")) as f:
        assert f.read_all().equals(whole)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.OSFile(os.path.join(HERE, "nulls_lz4.arrow"), "wb") as f, pa.ipc.new_stream(f, nulls.schema, options=options) as w:
        w.write_table(nulls)


BREEDS = ["pug", "Bär", "akita", "東京", "pug", "akita"]


def labels():
    """Labels of every type, a column each; what they mean: tests/data/sets/labels.py."""
    return {"breed": [BREEDS[i % 6] for i in range(12)], "digits": [str(7 + i % 3) for i in range(12)],
            "mixed": ["10", "9", "b", "a"] * 3, "good": [i % 3 == 0 for i in range(12)],
            "real": [float(i % 4) for i in range(12)], "part": [i / 2 for i in range(12)],
            "far": [1000 if i == 11 else i % 4 for i in range(12)], "gaps": [i % 4 * 2 for i in range(12)]}


def label_files():
    import pyarrow as pa
    import pyarrow.parquet as pq
    columns = labels()
    table = {"image": pa.array([png(16, 16, i) for i in range(12)], pa.binary()), **columns,
             "kind": pa.array(columns["breed"]).dictionary_encode(),
             "code": pa.DictionaryArray.from_arrays(pa.array([i % 3 for i in range(12)], pa.uint8()), pa.array([30, 10, 20], pa.int16())),
             "hole": pa.array([None if i == 2 else "x" for i in range(12)]),
             "nan": pa.array([float("nan") if i == 2 else float(i % 2) for i in range(12)], pa.float32())}
    whole = pa.table(table)
    pq.write_table(whole.drop_columns(["code"]), os.path.join(HERE, "labels.parquet"), row_group_size=5)
    pq.write_table(whole.drop_columns(["code"]), os.path.join(HERE, "labels_2.parquet"), data_page_version="2.0", use_dictionary=False,
                   column_encoding={"good": "RLE"})
    with pa.OSFile(os.path.join(HERE, "labels.arrow"), "wb") as f, pa.ipc.new_file(f, whole.schema) as w:
        w.write_table(whole, max_chunksize=5)
    options = pa.ipc.IpcWriteOptions(compression="lz4", emit_dictionary_deltas=True)
    seen = list(dict.fromkeys(BREEDS))  # the second batch adds a name to the dictionary
    growing = [t.set_column(t.column_names.index("kind"), "kind", pa.DictionaryArray.from_arrays(
        pa.array([seen.index(b) for b in t["breed"].to_pylist()], pa.int8()), pa.array(seen[:n])))
               for t, n in ((whole.slice(0, 3), 3), (whole.slice(3, 9), 4))]
    with pa.OSFile(os.path.join(HERE, "labels_lz4.arrow"), "wb") as f, pa.ipc.new_stream(f, growing[0].schema, options=options) as w:
        for t in growing:
            w.write_table(t)


CLASSES = ["ant", "bee", "cat", "dog"]


def named_files():
    """As the datasets library writes a column of numbers whose classes have names (ClassLabel). One class does not occur; row 5 is out of
    their range."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    features = {"image": {"_type": "Image"}, "label": {"names": CLASSES, "_type": "ClassLabel"}}
    whole = pa.table({"image": pa.array([{"bytes": png(16, 16, i), "path": None} for i in range(12)]), "label": [4 if i == 5 else i % 3 for i in range(12)]})
    whole = whole.replace_schema_metadata({"other": "x", "huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(whole, os.path.join(HERE, "named.parquet"), compression="none")
    with pa.OSFile(os.path.join(HERE, "named.arrow"), "wb") as f, pa.ipc.new_stream(f, whole.schema) as w:
        w.write_table(whole)


def pixel(i, y, x, c):
    return (i * 7 + y * 3 + x * 5 + c * 11) % 251


def hdf5_files():
    """Arrays as h5py writes them, in the ways in which people name them."""
    import h5py
    import numpy as np
    def images(n, first=0, channels=3):
        all_ = np.array([[[[pixel(i, y, x, c) for c in range(channels)] for x in range(6)] for y in range(8)] for i in range(first, first + n)], np.uint8)
        return all_[..., 0] if channels == 1 else all_
    folder = os.path.join(HERE, "hdf5")
    os.makedirs(folder, exist_ok=True)
    with h5py.File(f"{folder}/named.h5", "w") as f:  # contiguous, channels last
        f["train_images"], f["train_labels"] = images(12), np.arange(12) % 3
        f["test_images"], f["test_labels"] = images(4, 12), np.arange(4).reshape(4, 1) % 3
        f["validation_images"], f["validation_labels"] = images(2, 20), np.array([2, 0], np.uint8)
    with h5py.File(f"{folder}/packed.hdf5", "w") as f:  # chunks, gzip, no channels, truth values
        f.create_dataset("x_train", data=images(10, channels=1), chunks=(4, 8, 6), compression="gzip", shuffle=True)
        f["y_train"] = np.arange(10) % 2 == 1
    with h5py.File(f"{folder}/groups.h5", "w") as f:  # reals, channels first, texts
        for split, n, first in (("train", 6, 0), ("val", 3, 6)):
            f[f"{split}/images"] = (images(n, first).transpose(0, 3, 1, 2) / 8).astype(np.float32)
            f[f"{split}/labels"] = [["dog", "cat", "Bär"][i % 3] for i in range(n)]
    for split, n, first in (("train", 5, 0), ("test", 2, 5)):  # a file for each split, texts of fixed length
        os.makedirs(f"{folder}/split", exist_ok=True)
        with h5py.File(f"{folder}/split/{split}.h5", "w") as f:
            f["images"], f["labels"] = images(n, first), np.array([[b"no", b"yes"][i % 2] for i in range(n)])
    with h5py.File(f"{folder}/halves_x.h5", "w") as f, h5py.File(f"{folder}/halves_y.h5", "w") as g:  # images and labels apart
        f["x"], g["y"] = images(4), np.arange(4.0)
    with h5py.File(f"{folder}/other.h5", "w") as f:
        f["pictures"], f["group/kinds"] = images(2), [0, 1]
    kind = np.arange(12) % 3
    with h5py.File(f"{folder}/hot.h5", "w") as f:  # one-hot rows, one of which has no 1
        f["images"], f["labels"] = images(12), np.eye(3, dtype=np.float32)[kind] * (np.arange(12) != 5)[:, None]
    with h5py.File(f"{folder}/far.h5", "w") as f:
        f["images"], f["labels"] = images(12), np.where(np.arange(12) == 7, 10**12, kind)
    with h5py.File(f"{folder}/real.h5", "w") as f:
        f["images"], f["labels"] = images(12), kind + 0.5


def texts():
    """Documents: of many lines, of one, empty, with UTF-8 characters of every length, and one longer than an encoding
    unit."""
    words = ["to", "be,", "naïve", "Übermut", "東京", "x" * 30, "🙂", "don't", "3.14", "\t", "\"quoted\""]
    out = ["", "one line", "two\nlines\n", "\n", "  spaces  \n\n  and tabs\t\n"]
    for i in range(60):
        out.append("".join(words[(i * 7 + k * k) % len(words)] + ("\n" if (i + k) % 9 == 0 else " ") for k in range(i * 5)))
    out.append("".join(words[k * k % len(words)] + (" " if k % 13 else "\n") for k in range(300000)))
    return out


def text_files():
    import pyarrow as pa
    import pyarrow.parquet as pq
    import zstandard
    all_ = texts()
    table = pa.table({"id": list(range(len(all_))), "text": all_, "meta": [{"url": f"u{i}"} for i in range(len(all_))]})
    pq.write_table(table, os.path.join(HERE, "texts.parquet"), compression="zstd", row_group_size=25)
    lines = [json.dumps({"id": i, "meta": {"text": "no", "body": t}, "text": t}, ensure_ascii=i % 2 == 0) for i, t in enumerate(all_)]
    whole = ("\n".join(lines) + "\n").encode()
    half = len(whole) // 2
    with open(os.path.join(HERE, "texts.jsonl.zst"), "wb") as f:  # two frames, as from two writers
        for part in (whole[:half], whole[half:]):
            f.write(zstandard.ZstdCompressor(level=19).compress(part))


def main():
    os.makedirs(HERE, exist_ok=True)
    with open(os.path.join(HERE, "set.json"), "w", encoding="utf-8") as f:
        json.dump([[name, label, hashlib.sha256(file).hexdigest()] for name, label, file in samples()], f, indent=0)
        f.write("\n")
    for what in sys.argv[1:] or ["lmdb", "parquet", "arrow", "labels", "named", "hdf5", "texts"]:
        {"lmdb": lmdb_files, "parquet": parquet_files, "arrow": arrow_files, "labels": label_files, "named": named_files, "hdf5": hdf5_files, "texts": text_files}[what]()


if __name__ == "__main__":
    main()
