#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders that lack something: Git LFS pointers in place of files, numbered shards or shards of an index that are missing; and
folders with several splits, of which training uses one and evaluation one."""
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
FORMATS = os.path.join(SRC, "tests", "data", "formats")
sys.path[:0] = [FORMATS, os.path.join(SRC, "tests", "data")]
import make_formats  # noqa: E402
from objectserver import Server  # noqa: E402

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"1" * 64 + b"\nsize 123456\n"


def run(program, *args, code=0, both=False):
    done = subprocess.run([os.path.join(BUILD, *program.split("/")), *args], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache", "no_proxy": "*"})
    assert done.returncode == code, (args, done)
    return done.stdout + done.stderr if both else done.stderr if code else done.stdout


def refused(path, *words):
    said = run("tests/data/deliver", path, code=1)
    assert len(said.splitlines()) == 1 and all(w in said for w in words), said


def count(path, *options):
    """Samples for training and for evaluation; of an empty split nothing is delivered."""
    got = []
    for val in (0, 1):
        done = subprocess.run([f"{BUILD}/tests/data/deliver", path, f"val={val}", "max_unreadable=1", *options], capture_output=True, text=True,
                              timeout=60, check=False, env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache"})
        assert not done.returncode or (val and "has 0 samples in the val split" in done.stderr), done
        got.append(0 if done.returncode else int(done.stdout.split("samples ")[1].split()[0]))
    return got


def write(path, data):
    path = os.path.join(tmp, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return path


def place(name, path):
    with open(os.path.join(FORMATS, name), "rb") as f:
        return write(path, f.read())


def archive(path, n, label=lambda i: i % 2):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(n):
            for field, data in (("png", make_formats.png(16, 16, i)), ("cls", b"%d" % label(i))):
                info = tarfile.TarInfo(f"{i:04d}.{field}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return write(path, out.getvalue())


def pointers():
    words = ("is a Git LFS pointer", "git lfs pull")
    for kind in ("parquet", "tar", "tfrecord", "arrow", "mdb"):
        folder = f"lfs/{kind}"
        archive(f"{folder}/train-0.tar", 4)
        refused(os.path.dirname(write(f"{folder}/train-1.{kind}", POINTER)), f"train-1.{kind}", *words)
    with Serving(f"{tmp}/lfs/tar") as url:
        refused(f"{url}/train-{{0..1}}.tar", "train-1.tar", *words)
    picture = make_formats.png(16, 16, 1)
    for name in ("a/1.png", "a/2.png", "b/1.png"):
        write(f"lfs/folder/train/{name}", picture)
    refused(f"{os.path.dirname(write('lfs/folder/train/b/2.png', POINTER))}/../..", "b/2.png", *words)
    write("lfs/idx/train-images-idx3-ubyte", POINTER)
    refused(os.path.dirname(write("lfs/idx/train-labels-idx1-ubyte", POINTER)), "train-images-idx3-ubyte", *words)
    for name in ("data_batch_1.bin", "cifar-10-binary.tar.gz"):
        refused(os.path.dirname(write(f"lfs/{name[:5]}/{name}", POINTER)), name, *words)
    refused(os.path.dirname(write("lfs/tokens/train.tokens", POINTER)), "train.tokens", *words)
    for name in ("a.txt", "a.jsonl", "a.parquet"):
        said = run("dptrain", "tokenize", "--data-path", os.path.dirname(write(f"lfs/{name[2:]}s/{name}", POINTER)), "--out", f"{tmp}/t", code=2)
        assert name in said and all(w in said for w in words), said
    write("lfs/bpe/vocab.json", POINTER)
    write("lfs/bpe/merges.txt", POINTER)
    write("lfs/plain/a.txt", b"a text\n" * 99)
    said = run("dptrain", "tokenize", "--data-path", f"{tmp}/lfs/plain", "--tokenizer", f"{tmp}/lfs/bpe", "--out", f"{tmp}/t", code=2)
    assert "vocab.json" in said and all(w in said for w in words), said
    write("weights/model.safetensors", POINTER)
    archive("lfs/whole/train-0.tar", 8)
    said = run("dptrain", "train", "--model", "resnet20", "--image-size", "16", "--backend", "ref", "-b", "2", "--max-steps", "1", "--data-path",
               f"{tmp}/lfs/whole", "--init-from", f"{tmp}/weights/model.safetensors", "--runs-dir", f"{tmp}/runs", code=2)
    assert all(w in said for w in words), said


class Serving:
    def __init__(self, folder):
        self.server = Server(folder)

    def __enter__(self):
        return self.server.url

    def __exit__(self, *_):
        self.server.stop()


def unnumbered(kind):
    """Shards that do not state how many there are: a gap in their numbers gives one warning, with --strict an error."""
    folder = f"plain-{kind}"
    make = (lambda i: archive(f"{folder}/train-{i:06d}.tar", 4)) if kind == "tar" else (
        lambda i: place(f"none.{kind}", f"{folder}/train-{i:06d}.{kind}"))
    for i in (0, 2, 3):
        make(i)
    words = ["dptrain", "train", "--model", "resnet20", "--image-size", "16", "--backend", "ref", "-b", "2", "--max-steps", "1", "--data-path",
             f"{tmp}/{folder}", "--runs-dir", f"{tmp}/runs"]
    said = run(*words, code=0, both=True)
    want = f"{folder}: 1 of the numbered shards missing, the first is train-000001"
    assert said.count(want) == 1, said
    assert want in run(*words, "--strict", code=2)
    make(1)
    assert "missing" not in run(*words, code=0, both=True)


def missing():
    for name in ("train-{:05d}-of-00003.parquet", "train-{:05d}-of-00003-0a1b2c3d.parquet", "x/train-{:05d}-of-00003.parquet"):
        folder = f"gap{len(name)}"
        for i in (0, 2):
            place("none.parquet", f"{folder}/" + name.format(i))
        where = os.path.dirname(f"{tmp}/{folder}/{name}")
        refused(where, "shard 00001 of 00003 is missing")
        refused(f"{where}::{where}", "shard 00001 of 00003 is missing")
        place("none.parquet", f"{folder}/" + name.format(1))
        assert count(where) == [3 * make_formats.N, 0]
        os.remove(f"{tmp}/{folder}/" + name.format(2))
        refused(where, "shard 00002 of 00003 is missing")
        one = f"{tmp}/{folder}/" + name.format(0)
        assert count(one) == [make_formats.N, 0], "named by the user"
    for kind in ("tar", "parquet"):
        unnumbered(kind)
    place("none.parquet", "both/train-00000-of-00001.parquet")
    place("none.parquet", "both/validation-00000-of-00002.parquet")
    refused(f"{tmp}/both", "shard 00001 of 00002 is missing", "validation-")
    for i in (1, 2):
        archive(f"ones/part-{i}-of-2.tar", 3)
    assert count(f"{tmp}/ones") == [6, 0], "numbers that begin at 1"
    for i in (0, 2):
        write(f"corpus/texts-{i:05d}-of-00003.txt", b"a text\n")
    said = run("dptrain", "tokenize", "--data-path", f"{tmp}/corpus", "--out", f"{tmp}/tokens", code=2)
    assert "shard 00001 of 00003 is missing" in said, said
    write("json/c4-train.00000-of-00003.jsonl", b'{"text": "a text"}\n' * 200)
    for command in ("tokenize", "inspect"):
        said = run("dptrain", command, "--data-path", f"{tmp}/json", *(["--out", f"{tmp}/tokens"] if command == "tokenize" else []), code=2)
        assert "shard 00001 of 00003 is missing" in said, said
    shards = [os.path.basename(archive(f"index/train-{i:06d}.tar", 3)) for i in range(3)]
    write("index/train.json", b"\xef\xbb\xbf" + json.dumps(
        {"__kind__": "wids-shard-index-v1", "shardlist": [{"url": name} for name in reversed(shards)]}).encode())
    assert count(f"{tmp}/index") == [9, 0]
    os.remove(f"{tmp}/index/{shards[1]}")
    refused(f"{tmp}/index", f"lists {shards[1]}, which is missing")
    archive("hollow/a.tar", 4)
    archive("hollow/b.tar", 0)
    assert "b.tar: has no samples" in run("tests/data/deliver", f"{tmp}/hollow")


def splits():
    """Evaluation uses validation, else valid, else val, else test; never two of them, and training none of them."""
    size = {"train": 7, "validation": 2, "valid": 3, "val": 4, "test": 5}
    for name in ("{}-0.tar", "{}/0.tar", "{}.tar"):
        folder = f"splits{len(name)}{name[-5] == '0'}{name[2] == '/'}"
        for split, n in size.items():
            archive(f"{folder}/" + name.format(split), n)
        for split in ("validation", "valid", "val", "test"):
            assert count(f"{tmp}/{folder}") == [7, size[split]], (folder, split)
            os.remove(f"{tmp}/{folder}/" + name.format(split))
    for i, n in enumerate((6, 2)):
        archive(f"unnamed/{('part-0', 'val-0')[i]}.tar", n)
    assert count(f"{tmp}/unnamed") == [6, 2], "shards that name no split are for training"
    archive("alone/test-0.tar", 3)
    assert count(f"{tmp}/alone") == [3, 0]
    archive("labels/train-0.tar", 4)
    archive("labels/validation-0.tar", 2)
    archive("labels/test-0.tar", 6, label=lambda i: -1)
    assert count(f"{tmp}/labels") == [4, 2] and "label" not in run("tests/data/deliver", f"{tmp}/labels").split("broken")[1]


with tempfile.TemporaryDirectory(prefix="dptrain-incomplete-") as tmp:
    pointers()
    missing()
    splits()
print("incomplete: what is missing is named, and no split is used for two things")
