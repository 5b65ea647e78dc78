#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""webdataset 1.0.2 and Pillow (from PyPI, in build/venv/webdataset; exit 77 with the reason without them) compared
with dptrain: it reads all of our shards, with the folder's files and labels; we read all that its ShardWriter writes;
archives with names drawn by $SEED have the same samples in both. tests/data/shards.py also runs with them, and then
compares pixels with Pillow's."""
import hashlib
import io
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile

SRC = os.path.abspath(os.environ.get("srcdir", "."))
BUILD = os.path.abspath(os.environ.get("builddir", "."))
DPTRAIN = os.path.join(BUILD, "dptrain")
DELIVER = os.path.join(BUILD, "tests", "data", "deliver")
PICTURES = os.path.join(SRC, "tests", "data", "pictures")
sys.path[:0] = [os.path.join(SRC, "tests", "bench"), os.path.join(SRC, "tests", "data")]
import noisy  # noqa: E402
import packages  # noqa: E402


def sha(data):
    return hashlib.sha256(data).hexdigest()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def labels(spec, *more):
    """Labels of all training samples, in stored order."""
    done = subprocess.run([DELIVER, spec, "list=1", "plain=1", "shuffle=0", *more], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache"})
    assert done.returncode == 0, (spec, done)
    lines = done.stdout.splitlines()
    return [int(line.split()[0]) for line in lines[:next(i for i, line in enumerate(lines) if line.startswith("samples "))]]


def shards_of(folder, *more):
    out = tempfile.mkdtemp(dir=tmp) + "/shards"
    subprocess.run([DPTRAIN, "shard", "--data-path", folder, "--out", out, "--shard-size", "300kB", *more], check=True, stdout=subprocess.DEVNULL)
    return sorted(f"{out}/{n}" for n in os.listdir(out) if n.startswith("train") and n.endswith(".tar"))


def theirs(urls):
    return list(wds.WebDataset(urls, shardshuffle=False, empty_check=False))


def peers_read_ours():
    """Every file of a folder with the number of its class; for JPEGs with restart markers the pixels."""
    noisy.folder(f"{tmp}/noisy", {"train": 40, "val": 3})
    os.makedirs(f"{tmp}/jpegs/train/0")
    for name in [n for n in os.listdir(PICTURES) if n.endswith(".jpg")]:
        os.symlink(os.path.join(PICTURES, name), f"{tmp}/jpegs/train/0/{name}")
    for folder, more in ((f"{tmp}/noisy", ()), (f"{tmp}/jpegs", ()), (f"{tmp}/jpegs", ("--restart-markers",))):
        classes = sorted(os.listdir(f"{folder}/train"))
        files = [(i, read(f"{folder}/train/{c}/{n}")) for i, c in enumerate(classes) for n in os.listdir(f"{folder}/train/{c}")]
        got = [(int(s["cls"]), s.get("jpg", s.get("png"))) for s in theirs(shards_of(folder, "--val-split", "0", *more))]
        if more:
            files, got = ([(i, ImageOps.exif_transpose(Image.open(io.BytesIO(f))).tobytes()) for i, f in which] for which in (files, got))
        assert sorted((i, sha(f)) for i, f in got) == sorted((i, sha(f)) for i, f in files), (folder, more)
    return sorted(read(os.path.join(d, f)) for d, _, names in os.walk(f"{tmp}/noisy/train") for f in names)


def we_read_theirs(pictures):
    with wds.ShardWriter(f"{tmp}/w-%06d.tar", maxcount=7, verbose=0) as sink:
        for i in range(40):
            sink.write({"__key__": f"a/b.c/s{i:03d}", "png": pictures[i], "cls": i, "txt": "words", "json": {"label": i + 1}})
    with wds.ShardWriter(f"{tmp}/big-%06d.tar", maxsize=100000, verbose=0) as sink:
        for i in range(40):
            sink.write({"__key__": f"{i:09d}", "seg.png": b"none", "png": pictures[i], "cls": i})
    for spec in (f"{tmp}/w-{{000000..000005}}.tar", f"{tmp}/big-{{000000..{len([n for n in os.listdir(tmp) if n.startswith('big')]) - 1:06d}}}.tar"):
        assert labels(spec, "val_share=0") == list(range(40)), spec
    assert labels(f"{tmp}/w-000000.tar", "val_share=0", "label_field=json:label") == list(range(1, 8))


def drawn_archive(draw, path, pictures):
    """Names in folders with dots, with several dots, in capitals, of programs and without a field; samples lack fields
    or have extra ones; keys recur later. The label of each is its number."""
    with tarfile.open(path, "w") as tar:
        def put(name, data):
            m = tarfile.TarInfo(name)
            m.size = len(data)
            tar.addfile(m, io.BytesIO(data))
        for i in range(60):
            folder = draw.choice(["", "", "d/", "d.x/", "a/b.c/", "./e/"])
            key = folder + draw.choice(["k", "k.", "sample", "__k", "k-1", ""]).rstrip(".") + (str(i) if draw.random() < 0.9 else f"same{i % 7}")
            fields = [("png" if draw.random() < 0.8 else "PNG", pictures[i % len(pictures)]), ("cls" if draw.random() < 0.9 else "Cls", b"%d" % i)]
            fields += draw.sample([("txt", b"x"), ("seg.png", b"x"), ("json", json.dumps({"label": 0}).encode()), ("a.b.c", b"x")], draw.randrange(3))
            draw.shuffle(fields)
            for field, data in fields[draw.random() < 0.15:]:
                put(f"{key}.{field}", data)
            put(*draw.choice([("__meta__", b"x"), (f"__info__/{i}.png", b"x"), (f"noext{i}", b"x"), (f"d/.hidden{i}", b"x"), (f"d/._{i}.png", b"x"),
                              (f"other{i}.txt", b"x")]))


def same_groups(pictures):
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    print(f"SEED={seed}")
    draw = random.Random(seed)
    for i in range(20):
        path = f"{tmp}/drawn{i}.tar"
        drawn_archive(draw, path, pictures)
        want = [int(s["cls"]) for s in theirs([path]) if "png" in s and "cls" in s]
        got = labels(path, "val_share=0", "max_unreadable=0", "image_field=png")
        assert want == got and len(want) > 30, (seed, i, want, got)


def main():
    pictures = peers_read_ours()
    we_read_theirs(pictures)
    same_groups(pictures)
    subprocess.run([sys.executable, os.path.join(SRC, "tests", "data", "shards.py")], check=True, timeout=300)
    print("peers: webdataset", wds.__version__)


if len(sys.argv) == 1:
    try:
        program = packages.python(BUILD, "webdataset", ["webdataset==1.0.2", "pillow==12.0.0"])
    except packages.Unavailable as why:
        print("skipped:", why)
        sys.exit(77)
    os.execv(program, [program, "-B", os.path.abspath(__file__), "installed"])
import webdataset as wds  # noqa: E402
from PIL import Image, ImageOps  # noqa: E402
with tempfile.TemporaryDirectory(prefix="dptrain-peers-") as tmp:
    main()
