#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HDF5 files that h5py wrote (tests/data/formats/hdf5, by make_formats.py there): the pixels and labels of each sample, whatever the
arrays are named, however they are stored. libhdf5 is loaded for such sets alone: dptrain starts without it. Where it is missing, one line says
what to install."""
import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
FORMATS = os.path.join(SRC, "tests", "data", "formats")
sys.path.insert(0, FORMATS)
from make_formats import pixel  # noqa: E402

HDF5 = os.path.join(FORMATS, "hdf5")
HEIGHT, WIDTH = 8, 6


def deliver(spec, code=0, libraries="", **options):
    done = subprocess.run([os.path.join(BUILD, "tests", "data", "deliver"), spec, "list=1", "plain=1", "shuffle=0", "names=1",
                           *[f"{k}={v}" for k, v in options.items()]], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache", "LD_LIBRARY_PATH": libraries or os.environ.get("LD_LIBRARY_PATH", "")})
    assert done.returncode == code, (spec, options, done)
    if code:
        assert len(done.stderr.splitlines()) == 1, done.stderr
        return done.stderr
    lines = done.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("samples "))
    names = [line.split(" ", 2)[2] for line in lines if line.startswith("class ")]
    return [(int(line.split()[0]), line.split()[1]) for line in lines[:at]], names


def shards(spec):
    """The pixels and labels of training as `dptrain shard` stores them: bytes, unchanged."""
    out = tempfile.mkdtemp(dir=tmp)
    subprocess.run([os.path.join(BUILD, "dptrain"), "shard", "--data-path", spec, "--out", f"{out}/s", "--order", "kept", "--val-split", "0"],
                   check=True, capture_output=True, timeout=60)
    got = {}
    with tarfile.open(f"{out}/s/train-000000.tar") as tar:
        for m in tar:
            got.setdefault(m.name.split(".")[0], {})[m.name.split(".")[1]] = tar.extractfile(m).read()
    return [(int(s["cls"]), s["npy"][-HEIGHT * WIDTH * (3 if len(s["npy"]) > 200 else 1):]) for _, s in sorted(got.items())]


def raw(i, channels=3):
    return bytes(pixel(i, y, x, c) for y in range(HEIGHT) for x in range(WIDTH) for c in range(channels))


def real(i):
    values = [pixel(i, y, x, c) / 8 for y in range(HEIGHT) for x in range(WIDTH) for c in range(3)]
    return hashlib.sha256(struct.pack(f"<{len(values)}f", *values)).hexdigest()


def labels(got):
    return [label for label, _ in got[0]]


def sets():
    path = f"{HDF5}/named.h5"
    assert shards(path) == [(i % 3, raw(i)) for i in range(12)]
    got = deliver(path)
    assert labels(got) == [i % 3 for i in range(12)] and got[1] == []
    assert labels(deliver(path, val=1)) == [2, 0], "validation, not test"
    assert deliver(path, workers=3, ranks=2, batch=4)[0] and sorted(deliver(path, workers=3, batch=4)[0]) == sorted(got[0])
    os.mkdir(f"{tmp}/idx")
    for name, head, data in (("images-idx4", (0x804, 12, HEIGHT, WIDTH, 3), b"".join(raw(i) for i in range(12))), ("labels-idx1", (0x801, 12), bytes(i % 3 for i in range(12)))):
        with open(f"{tmp}/idx/train-{name}-ubyte", "wb") as f:
            f.write(struct.pack(f">{len(head)}I", *head) + data)
    assert got == deliver(f"{tmp}/idx"), "normalised like the same images in IDX files"
    path = f"{HDF5}/packed.hdf5"
    assert shards(path) == [(i % 2, raw(i, 1)) for i in range(10)]
    n = [len(deliver(path, val_share=0.4, val=v)[0]) for v in (0, 1)]
    assert sum(n) == 10 and all(n), n
    path = f"{HDF5}/groups.h5"
    assert deliver(path) == ([([2, 1, 0][i % 3], real(i)) for i in range(6)], ["Bär", "cat", "dog"])
    assert deliver(path, val=1)[0] == [([2, 1, 0][i % 3], real(i + 6)) for i in range(3)]
    path = f"{HDF5}/split"
    assert shards(path) == [(i % 2, raw(i)) for i in range(5)] and deliver(path)[1] == ["no", "yes"]
    assert labels(deliver(path, val=1)) == [0, 1]
    os.mkdir(f"{tmp}/halves")
    for half in "xy":
        shutil.copy(f"{HDF5}/halves_{half}.h5", f"{tmp}/halves")
    assert shards(f"{tmp}/halves") == [(i, raw(i)) for i in range(4)]


def refusals():
    said = deliver(f"{HDF5}/other.h5", code=1)
    assert "no array of images" in said and "pictures" in said and "group/kinds" in said, said
    said = deliver(f"{HDF5}/halves_x.h5", code=1)
    assert "no array of labels" in said, said
    cut = f"{tmp}/cut.h5"
    shutil.copy(f"{HDF5}/named.h5", cut)
    os.truncate(cut, os.path.getsize(cut) // 2)
    assert "is not a complete HDF5 file" in deliver(cut, code=1)
    with open(f"{tmp}/pointer.h5", "wb") as f:
        f.write(b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"1" * 64 + b"\nsize 123456\n")
    assert "git lfs pull" in deliver(f"{tmp}/pointer.h5", code=1)


def odd_labels():
    """One-hot rows are read; the first label of each reason is named: autokeras#23, analytics-zoo#1122, tflearn#406."""
    inspect = lambda name: subprocess.run([os.path.join(BUILD, "dptrain"), "inspect", "--data-path", f"{HDF5}/{name}.h5", "--val-split", "0"],
                                          capture_output=True, text=True, timeout=60, check=False)
    assert labels(deliver(f"{HDF5}/hot.h5", val_share=0)) == [i % 3 for i in range(12) if i != 5]
    assert "left out 1 sample: its label is neither a number nor one-hot (row 5)" in inspect("hot").stdout, inspect("hot")
    assert labels(deliver(f"{HDF5}/far.h5", val_share=0)) == [i % 3 for i in range(12) if i != 7]
    assert "left out 1 sample: its label is larger than 2147483646 (row 7: 1000000000000)" in inspect("far").stdout, inspect("far")
    said = inspect("real")
    assert said.returncode == 2 and "no images to train on: left out 12 samples: its label is not an integer >= 0 (row 0: 0.5)" in said.stderr, said


def loads_library_late():
    """The program is not linked with libhdf5, trains on such a set, and refuses it in one line if the library is missing."""
    dptrain = os.path.join(BUILD, "dptrain")
    needed = subprocess.run(["ldd", dptrain], capture_output=True, text=True, check=True).stdout
    assert "libc.so" in needed and "libhdf5" not in needed and "libcurl" not in needed, needed
    train = [dptrain, "--data-path", f"{HDF5}/named.h5", "--model", "resnet20", "--backend", "ref", "--precision", "fp64", "-b", "4", "--max-steps", "2", "--runs-dir", f"{tmp}/runs"]
    done = subprocess.run(train, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "step 2/" in done.stdout, done
    with open(os.path.join(BUILD, "config.h"), encoding="utf-8") as f:
        soname = re.search(r'^#define HDF5_SONAME "(.*)"$', f.read(), re.MULTILINE)[1]
    os.mkdir(f"{tmp}/libraries")
    with open(f"{tmp}/libraries/{soname}", "w", encoding="ascii") as f:
        f.write("no library")
    said = deliver(f"{HDF5}/named.h5", code=1, libraries=f"{tmp}/libraries")
    assert f"{HDF5}/named.h5: HDF5 needs libhdf5 (Debian: libhdf5-dev): " in said and soname in said, said


with tempfile.TemporaryDirectory(prefix="dptrain-hdf5-") as tmp:
    probe = subprocess.run([os.path.join(BUILD, "tests", "data", "deliver"), f"{HDF5}/named.h5"], capture_output=True, text=True, timeout=60, check=False)
    if "this build lacks" in probe.stderr:
        assert "libhdf5-dev" in probe.stderr and probe.returncode == 1
        print("hdf5: this build lacks libhdf5")
        sys.exit(77)
    sets()
    refusals()
    odd_labels()
    loads_library_late()
print("hdf5: arrays of every name and layout; the library is loaded for them alone")
