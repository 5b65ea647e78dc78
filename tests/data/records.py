#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TFRecord files written here by hand are read as the folder's pictures and labels; damaged ones lose only the damaged
records, which are named."""
import os
import subprocess
import sys
import tempfile

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
DELIVER = os.path.join(BUILD, "tests", "data", "deliver")
sys.path.insert(0, os.path.join(SRC, "tests", "data"))
sys.path.insert(0, os.path.join(SRC, "tests", "tracker"))
import noisy  # noqa: E402
from wire import field, record, varint  # noqa: E402


def example(**features):
    """Features are bytes, an int (packed), or [int] (one value per field)."""
    entries = b""
    for name, v in features.items():
        if isinstance(v, bytes):
            feature = field(1, field(1, v))
        elif isinstance(v, int):
            feature = field(3, field(1, varint(v)))
        else:
            feature = field(3, b"".join(varint(8) + varint(n) for n in v))
        entries += field(1, field(1, name.replace("__", "/").encode()) + field(2, feature))
    return field(1, entries)


def deliver(spec, code=0, **options):
    done = subprocess.run([DELIVER, spec, "list=1", "plain=1", "shuffle=0", *[f"{k}={v}" for k, v in options.items()]],
                          capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache"})
    assert done.returncode == code, (spec, options, done)
    lines = (done.stderr if code else done.stdout).splitlines()
    return lines if code else ([x for x in lines if len(x.split()) == 2 and len(x) > 65], [x for x in lines if x.startswith(("/", "train", "one"))])


def write(path, records):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(b"".join(records))


def samples(folder, split):
    for label, name in enumerate("abc"):
        for file in sorted(os.listdir(f"{folder}/{split}/{name}")):
            with open(f"{folder}/{split}/{name}/{file}", "rb") as f:
                yield label, f.read()


def same(folder):
    for split, parts in (("train", 3), ("validation", 1)):
        local = list(samples(folder, {"validation": "val"}.get(split, split)))
        for p in range(parts):
            write(f"{tmp}/set/{split}-{p:05d}-of-{parts:05d}", [
                record(example(image__filename=b"x", image__class__label=label if i % 2 else [label], image__encoded=data, image__height=90))
                for i, (label, data) in enumerate(local) if i % parts == p])
    for val in (0, 1):
        want, got = deliver(folder, val=val), deliver(f"{tmp}/set", val=val)
        assert got[1] == [] and sorted(got[0]) == sorted(want[0]) and len(got[0]) == (9 if val else 30), got
    with open(f"{tmp}/set/train-00000-of-00003", "rb") as f:
        write(f"{tmp}/one.tfrecord", [f.read()])
    assert len(deliver(f"{tmp}/one.tfrecord")[0]) == 10


def other_names(folder):
    data = next(samples(folder, "train"))[1]
    write(f"{tmp}/names/a.tfrecords", [record(example(label=2, image__encoded=b"no picture", thumb=data)), record(example(label=1, thumb=data, kind=5))])
    got = deliver(f"{tmp}/names", image_field="thumb", label_field="kind;label")
    assert [line.split()[0] for line in got[0]] == ["2", "5"], got
    write(f"{tmp}/ones/a.tfrecord", [record(example(image__class__label=n, image__encoded=data)) for n in (1, 2)])
    assert any("labels begin at 1" in line for line in deliver(f"{tmp}/ones")[1])


def damaged(folder):
    data = [d for _, d in samples(folder, "train")]
    good = [record(example(image__class__label=0, image__encoded=d)) for d in data[:6]]
    bad = bytearray(good[1])
    bad[400] ^= 1
    write(f"{tmp}/bad/one.tfrecord", [good[0], bytes(bad), record(b"\xff\xff"), record(example(image__encoded=data[0])),
                                      record(example(image__class__label=-3, image__encoded=data[0])), record(example(image__class__label=1)),
                                      record(example(image__class__label=2**40, image__encoded=data[0])),
                                      good[2], good[3][:12], b"\0" + good[4]])
    lines, said = deliver(f"{tmp}/bad")
    assert len(lines) == 2, lines
    for words in ("record 1: its checksum is wrong", "record 2: is not an Example", "record 3: has no label", "record 4: its label is not an integer",
                  "record 5: has no picture",
                  "record 6: its label is larger than 2147483646", "the records after it are skipped"):
        assert any(words in line for line in said), (words, said)


with tempfile.TemporaryDirectory(prefix="dptrain-records-") as tmp:
    noisy.folder(f"{tmp}/folder", {"train": 30, "val": 9})
    same(f"{tmp}/folder")
    other_names(f"{tmp}/folder")
    damaged(f"{tmp}/folder")
print("records: equal to the folder, with any feature names; damage is reported")
