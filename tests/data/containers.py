#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Containers written by other programs (tests/data/formats, made by make_formats.py there): files and labels are read
as they were written, in the order of their names; a refused file gets a message with what to do; damage costs only
what is damaged."""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
WRITTEN = os.path.join(SRC, "tests", "data", "formats")
sys.path[:0] = [os.path.join(SRC, "tests", "data"), WRITTEN]
import make_formats  # noqa: E402
import objectserver  # noqa: E402


def run(program, *args, code=0):
    done = subprocess.run([os.path.join(BUILD, *program.split("/")), *args], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache"})
    assert done.returncode == code, (args, done)
    assert not code or len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr if code else done.stdout


def files(spec, *more):
    """Label and SHA-256 of every sample's file, in the set's order: as shards store them."""
    out = tempfile.mkdtemp(dir=tmp)
    run("dptrain", "shard", "--data-path", spec, "--out", f"{out}/shards", "--order", "kept", "--val-split", "0", *more)
    got = {}
    for name in sorted(os.listdir(f"{out}/shards")):
        if name.endswith(".tar"):
            with tarfile.open(f"{out}/shards/{name}") as tar:
                for m in tar:
                    got.setdefault((name, m.name.split(".")[0]), {})[m.name.split(".")[1]] = tar.extractfile(m).read()
    return [[int(s["cls"]), hashlib.sha256(s["png"]).hexdigest()] for _, s in sorted(got.items())]


def place(name, path):
    os.makedirs(os.path.dirname(f"{tmp}/{path}"), exist_ok=True)
    shutil.copy(os.path.join(FORMATS, name), f"{tmp}/{path}")
    return f"{tmp}/{path}"


def refused(path, *words):
    said = run("tests/data/deliver", path, code=1)
    assert all(w in said for w in words), said


def same(names):
    with open(os.path.join(FORMATS, "set.json"), encoding="utf-8") as f:
        want = [x[1:] for x in json.load(f)]
    assert want == [[label, hashlib.sha256(file).hexdigest()] for _, label, file in make_formats.samples()]
    for name in names:
        assert files(os.path.join(FORMATS, name)) == want, name
    return want


def damaged(page):
    """Damages a page; returns whether it was a tree page. The other samples are still read."""
    path = place("datum.mdb", f"page{page}/data.mdb")
    with open(path, "r+b") as f:
        f.seek(page * 4096)
        f.write(bytes(16))
    done = subprocess.run([f"{BUILD}/tests/data/deliver", path, "plain=1"], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache"})
    return done.returncode == 0 and f"page {page} is not a tree page" in done.stdout and 0 < int(done.stdout.split()[1]) < make_formats.N


def lmdb():
    want = same(["entries.mdb", "datum.mdb"])
    for part, name in (("train", "entries.mdb"), ("val", "datum.mdb")):
        place(name, f"caffe/{part}_lmdb/data.mdb")
        place(name, f"caffe/{part}_lmdb/lock.mdb")
    assert files(f"{tmp}/caffe") == want * 2, "training, then validation"
    server = objectserver.Server(FORMATS)
    assert files(f"{server.url}/datum.mdb") == want, "over http"
    server.stop()
    refused(place("pickled.mdb", "p/data.mdb"), "pickled", "pickle.loads", ".cls")
    refused(place("raw.mdb", "r/data.mdb"), "-encoded")
    path = place("datum.mdb", "newer/data.mdb")
    with open(path, "r+b") as f:
        f.seek(20)
        f.write(b"\2")
    refused(path, "LMDB 1.0", "mdb_dump")
    for part in (1, 2, 3):
        path = place("datum.mdb", f"cut{part}/data.mdb")
        os.truncate(path, os.path.getsize(path) * part // 4)
        refused(path, "no images to train on", "is truncated: ")
    assert any(damaged(page) for page in range(2, 40)), "no page was a tree page"


def unpacks(*kinds):
    """Whether this build has the libraries; otherwise the message names the compression."""
    for kind in kinds:
        done = subprocess.run([f"{BUILD}/tests/data/deliver", f"{FORMATS}/{kind}.parquet"], capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache"})
        if "this build lacks" in done.stderr:
            assert f"is compressed with {kind}" in done.stderr, done
            print(f"containers: Parquet skipped: this build has no {kind}")
            return False
    return True


def read_once(name):
    """A page is read and decompressed once, however many workers need its samples at the same time."""
    flags = ["--no-decode", "--data-path", os.path.join(FORMATS, name), "-b", "4", "--epochs", "3", "--val-split", "0", "--json"]
    read = [sum(p["local_bytes"] for p in json.loads(run("dptrain", "bench", "--loader", *flags, "-j", str(w)))["passes"]) for w in (0, 1, 4)]
    assert read[0] == read[1] == read[2] > 0, (name, read)


def parquet():
    if not unpacks("snappy", "zstd", "lz4"):
        return
    want = same(["none.parquet", "snappy.parquet", "zstd.parquet", "gzip.parquet", "lz4.parquet", "deltas.parquet"])
    read_once("snappy.parquet")
    read_once("deltas.parquet")
    server = objectserver.Server(FORMATS)
    assert files(f"{server.url}/snappy.parquet") == want, "over http"
    server.stop()
    for i in range(2):
        place("zstd.parquet", f"hf/data/train-0000{i}-of-00002.parquet")
    place("none.parquet", "hf/data/test-00000-of-00001.parquet")
    assert files(f"{tmp}/hf/data") == want * 3
    sums = {run("tests/data/deliver", os.path.join(FORMATS, "snappy.parquet"), "shuffle=2", "window=10", f"workers={w}", f"ranks={r}", "batch=8", "epochs=2")
            for w, r in ((0, 1), (3, 2), (1, 4))}
    assert len(sums) == 1, sums
    said = run("tests/data/deliver", os.path.join(FORMATS, "nulls.parquet"), "list=1", "plain=1", "shuffle=0", "max_unreadable=1")
    lost = [i for i in range(make_formats.N) if i % 7 == 3 or i % 5 == 2]
    assert f"samples {make_formats.N - len(lost)}" in said and "row 2: has no picture" in said and "row 3: has no label" in said, said
    refused(os.path.join(FORMATS, "brotli.parquet"), "column label is compressed with brotli")
    refused(os.path.join(FORMATS, "prefixes.parquet"), "image.bytes", "DELTA_BYTE_ARRAY")
    refused(os.path.join(FORMATS, "lists.parquet"), "no column of encoded pictures", "image.list.element")
    path = place("snappy.parquet", "cut/x.parquet")
    os.truncate(path, os.path.getsize(path) - 10)
    refused(path, "it has no footer at its end")


def planned():
    """Cached decompressed pages are in the plan, at most those of the set."""
    lines = run("dptrain", "plan", "--model", "resnet18", "--backend", "ref", "--image-size", "32", "-b", "2", "--data-path",
                os.path.join(FORMATS, "gzip.parquet"), "--val-split", "0").splitlines()
    data = [float(l.split()[1]) for l in lines if l.split()[:1] == ["data"]]
    bytes_ = sum(len(file) for _, _, file in make_formats.samples())
    assert len(data) == 1 and 0 <= data[0] - bytes_ / 2**20 <= 0.1, (data, bytes_, lines)
    server = objectserver.Server(FORMATS)
    lines = run("dptrain", "plan", "--model", "resnet18", "--backend", "ref", "--image-size", "32", "-b", "2", "--data-path",
                f"{server.url}/none.parquet", "--val-split", "0").splitlines()
    server.stop()
    assert [l for l in lines if l.split()[:1] == ["data"]], "read-ahead of a remote set"


def packed_arrow(nulls):
    if not unpacks("zstd", "lz4"):
        return
    want = same(["lz4.arrow", "zstd.arrow"])
    server = objectserver.Server(FORMATS)
    assert files(f"{server.url}/zstd.arrow") == want, "over http"
    server.stop()
    said = run("tests/data/deliver", os.path.join(FORMATS, "nulls_lz4.arrow"), "plain=1", "max_unreadable=1")
    assert said.replace("nulls_lz4", "nulls") == nulls, said
    for name in ("lz4.arrow", "zstd.arrow"):  # a buffer of pictures with a wrong size, or damaged
        with open(os.path.join(FORMATS, name), "rb") as f:
            whole = f.read()
        path = place(name, f"damaged/{name}")
        lost = 0
        for at in range(200, len(whole) - 8, len(whole) // 60):
            with open(path, "wb") as f:
                f.write(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
            done = subprocess.run([f"{BUILD}/tests/data/deliver", path, "plain=1", "max_unreadable=1"], capture_output=True, text=True, timeout=60, check=False,
                                  env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache"})
            assert done.returncode in (0, 1) and len(done.stderr.splitlines()) == done.returncode, done
            lost += done.returncode or "are skipped" in done.stdout or "broken 0" not in done.stdout
        assert lost > 10, (name, lost)


def arrow():
    same(["stream.arrow", "file.arrow"])
    said = run("tests/data/deliver", os.path.join(FORMATS, "nulls.arrow"), "plain=1", "max_unreadable=1")
    assert f"samples {make_formats.N - 2}" in said and "row 5: has no picture" in said and "row 9: has no label" in said, said
    packed_arrow(said)
    path = place("stream.arrow", "cut/x.arrow")
    os.truncate(path, os.path.getsize(path) * 3 // 4)
    said = run("tests/data/deliver", path, "plain=1", "max_unreadable=1")
    assert "damaged or truncated at byte" in said and 0 < int(said.split()[1]) < make_formats.N, said


with tempfile.TemporaryDirectory(prefix="dptrain-containers-") as tmp:
    FORMATS = shutil.copytree(WRITTEN, f"{tmp}/formats")  # tables of samples are kept next to the files
    lmdb()
    parquet()
    arrow()
    planned()
print("containers: LMDB, Parquet and Arrow equal their source, alone, in folders, over http; refusals and damage are explained")
