#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tar shards: `dptrain shard` output compared with the folder it was made of, and archives of other writers (Python's
tarfile, GNU tar, webdataset where it is installed), intact and damaged. Entries are grouped into samples as WebDataset
1.0.2 groups them."""
import contextlib
import glob
import hashlib
import io
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib

BUILD = os.environ.get("builddir", ".")
DPTRAIN = os.path.join(BUILD, "dptrain")
DELIVER = os.path.join(BUILD, "tests", "data", "deliver")
CLASSES = ["ant", "bee", "cat"]


def png(width, height, seed):
    """Returns a grey PNG file's bytes."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + bytes((seed * 7 + x * 3 + y * 5) % 251 for x in range(width)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 6)) + chunk(b"IEND", b""))


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def deliver(spec, code=0, **options):
    """Returns a dict: lines of every sample (with list=1), the sum of the stream, the notices."""
    done = subprocess.run([DELIVER, spec, *[f"{k}={v}" for k, v in options.items()]], capture_output=True, text=True,
                          timeout=60, check=False, env={**os.environ, "XDG_CACHE_HOME": os.path.join(tmp, "cache")})
    assert done.returncode == code, (spec, options, done)
    if code:
        return done.stderr
    lines = done.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("samples "))
    return {"list": lines[:at], "n": int(lines[at].split()[1]), "sum": lines[at + 1],
            "broken": int(lines[at + 2].split()[1]), "said": lines[at + 3:]}


def listed(spec, **options):
    return deliver(spec, list=1, plain=1, shuffle=0, **options)


def shard(*args, code=0):
    done = subprocess.run([DPTRAIN, "shard", *args], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done
    assert not code or len(done.stderr.splitlines()) == 1, done.stderr
    return done.stdout + done.stderr


def progress():
    """A long sharding reports its progress: one that was stopped for 2 s after its start does so at once."""
    folder = f"{tmp}/idx"
    for name in ("train", "t10k"):
        write(f"{folder}/{name}-images-idx3-ubyte", struct.pack(">IIII", 0x803, 40000, 4, 4) + bytes(16 * 40000))
        write(f"{folder}/{name}-labels-idx1-ubyte", struct.pack(">II", 0x801, 40000) + bytes([0, 1]) * 20000)
    terminal, other = pty.openpty()
    child = subprocess.Popen([DPTRAIN, "shard", "--data-path", folder, "--out", f"{tmp}/many"], stdout=subprocess.DEVNULL, stderr=other)
    os.close(other)
    while child.poll() is None and not glob.glob(f"{tmp}/many.*/*"):
        time.sleep(0.001)
    child.send_signal(signal.SIGSTOP)
    time.sleep(2.2)
    child.send_signal(signal.SIGCONT)
    said = ""
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(terminal, 65536):
            said += part.decode()
    os.close(terminal)
    assert child.wait(timeout=60) == 0, said
    lines = [line for line in said.replace("\x1b[K", "").split("\r") if line.strip()]
    assert lines and all(re.fullmatch(r"(training|validation) samples: \d+ of 40000 after \d+ s(, about (\d+ h )?\d+ (s|min) left)?", line) for line in lines), said


def stopped():
    """A sharding that is stopped leaves no shards; the process ends by that signal."""
    for number in (signal.SIGINT, signal.SIGTERM):
        child = subprocess.Popen([DPTRAIN, "shard", "--data-path", f"{tmp}/idx", "--out", f"{tmp}/part"], stderr=subprocess.DEVNULL,
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))  # a background job ignores it
        while child.poll() is None and not glob.glob(f"{tmp}/part.*/*"):
            time.sleep(0.001)
        child.send_signal(number)
        assert child.wait(timeout=60) == -number and not glob.glob(f"{tmp}/part*"), (number, child.returncode, glob.glob(f"{tmp}/part*"))


def make_folder(root):
    for part, n in (("train", 60), ("val", 12)):
        for i in range(n):
            write(f"{root}/{part}/{CLASSES[i % 3]}/{'deep/' if i % 2 else ''}p{i:03d}.png", png(20 + i % 9, 30 - i % 7, i))


def tree(root):
    return {name: hashlib.sha256(open(os.path.join(root, name), "rb").read()).hexdigest() for name in os.listdir(root) if name[0] != "."}


def written():
    folder, kept, dealt = f"{tmp}/folder", f"{tmp}/kept", f"{tmp}/dealt"
    make_folder(folder)
    shard("--data-path", folder, "--out", kept, "--order", "kept", "--shard-size", "20KiB")
    shard("--data-path", folder, "--out", dealt, "--shard-size", "20kb")
    for split in (0, 1):
        theirs, ours, mixed = listed(folder, val=split), listed(kept, val=split), listed(dealt, val=split)
        assert theirs["sum"] == ours["sum"] and theirs["n"] == (12 if split else 60)
        assert mixed["sum"] != theirs["sum"] and sorted(mixed["list"]) == sorted(theirs["list"])
    assert deliver(folder, epochs=2)["sum"] == deliver(kept, epochs=2, ranks=3, workers=2)["sum"], "crops and flips differ"
    shard("--data-path", folder, "--out", f"{tmp}/again", "--shard-size", "20kb")
    assert tree(dealt) == tree(f"{tmp}/again"), "the same input gave other bytes"
    shard("--data-path", folder, "--out", f"{tmp}/seeded", "--shard-size", "20kb", "--seed", "1")
    assert tree(dealt) != tree(f"{tmp}/seeded")
    shard("--data-path", dealt, "--out", f"{tmp}/twice", "--order", "kept")
    assert listed(f"{tmp}/twice")["sum"] == listed(dealt)["sum"], "shards of shards"
    assert "is not empty" in shard("--data-path", folder, "--out", dealt, code=2)
    assert "--shard-size" in shard("--data-path", folder, "--out", f"{tmp}/no", "--shard-size", "12 cows", code=2)
    said = shard("--data-path", folder, "--out", f"{tmp}/no", "--shard-size", "1", code=2)
    assert "is too small: the first sample takes" in said, said
    shard("--data-path", folder, "--out", f"{tmp}/smallest", "--shard-size", said.split("give ")[1].split()[0])
    assert not [n for n in os.listdir(tmp) if n.startswith("no")], "an incomplete set remains"
    return folder, kept, dealt


def indexes(dealt):
    """Sums of wids by hashlib, offsets of DALI's index by tarfile, CRC-32C of the pieces by a bitwise table."""
    def crc32c(data):
        crc = 0xffffffff
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
        return crc ^ 0xffffffff
    index = json.load(open(f"{dealt}/train.json", encoding="utf-8"))
    assert index["__kind__"] == "wids-shard-index-v1" and index["wids_version"] == 1 and index["classes"] == CLASSES
    assert len(index["shardlist"]) > 2 and sum(s["nsamples"] for s in index["shardlist"]) == 60
    for s in index["shardlist"]:
        data = open(f"{dealt}/{s['url']}", "rb").read()
        assert s["filesize"] == len(data) <= 20000 and s["md5sum"] == hashlib.md5(data).hexdigest()
        assert s["crc32c"] == [f"{crc32c(data):08x}"]
        with tarfile.open(fileobj=io.BytesIO(data)) as t:
            assert s["labels"] == " ".join(t.extractfile(m).read().decode() for m in t if m.name.endswith(".cls"))
        lines = open(f"{dealt}/{s['url'][:-4]}.idx", encoding="utf-8").read().splitlines()
        assert lines[0] == f"v1.2 {s['nsamples']}"
        members = iter(tarfile.open(f"{dealt}/{s['url']}"))
        for line in lines[1:]:
            words = line.split()
            for i in range(0, len(words), 4):
                m = next(members)
                assert words[i:i + 4] == [m.name.split(".")[1], str(m.offset_data), str(m.size), m.name]
        assert next(members, None) is None
    whole = listed(dealt)
    names = [s["url"] for s in index["shardlist"]]
    assert listed(f"{dealt}/train.json", val_share=0)["sum"] == whole["sum"]
    assert listed(f"{dealt}/train-{{000000..{len(names) - 1:06d}}}.tar")["sum"] == whole["sum"]
    assert listed("::".join(f"{dealt}/{n}" for n in names))["sum"] == whole["sum"]
    assert listed(dealt, val_path=f"{dealt}/val.json", val=1)["sum"] == listed(dealt, val=1)["sum"]
    part = listed(f"{dealt}/{names[0]}", val_share=0.3)
    assert part["n"] + listed(f"{dealt}/{names[0]}", val_share=0.3, val=1)["n"] == index["shardlist"][0]["nsamples"]
    assert 0 < part["n"] < index["shardlist"][0]["nsamples"]


def arrays():
    """Sets without image files: NumPy arrays, and the same stream as from the set itself."""
    def idx(dims, data):
        return struct.pack(">HBB", 0, 8, len(dims)) + struct.pack(f">{len(dims)}I", *dims) + bytes(data)
    folder, out = f"{tmp}/idx", f"{tmp}/arrays"
    for name, n in (("train", 30), ("t10k", 10)):
        write(f"{folder}/{name}-images-idx3-ubyte", idx([n, 28, 28], [(i * 31 >> 3) % 251 for i in range(n * 784)]))
        write(f"{folder}/{name}-labels-idx1-ubyte", idx([n], [i % 4 for i in range(n)]))
    shard("--data-path", folder, "--out", out, "--order", "kept")
    for split in (0, 1):
        assert listed(folder, val=split)["sum"] == listed(out, val=split)["sum"]
    os.remove(f"{out}/train.json")
    assert listed(folder)["sum"] == listed(out)["sum"], "mean and deviation, measured"
    with tarfile.open(f"{out}/train-000000.tar") as t:
        data = t.extractfile(t.getmembers()[2]).read()
    head = data[10:10 + struct.unpack("<H", data[8:10])[0]]
    assert eval(head) == {"descr": "|u1", "fortran_order": False, "shape": (28, 28)}, head  # pylint: disable=eval-used
    assert len(data) == 128 + 784


def marked():
    """JPEGs with restart markers are delivered as without them, whatever part is decoded; baseline ones grow by at
    most 2 %. Pillow, where it is installed, decodes the same pixels."""
    pictures = os.path.join(os.environ.get("srcdir", "."), "tests", "data", "pictures")
    names = sorted(n for n in os.listdir(pictures) if n.endswith(".jpg"))
    for part in ("train", "val"):
        for i, name in enumerate(names):
            write(f"{tmp}/jpegs/{part}/{CLASSES[i % 3]}/{name}", open(os.path.join(pictures, name), "rb").read())
    folder, plain, out = f"{tmp}/jpegs", f"{tmp}/plain", f"{tmp}/marked"
    shard("--data-path", folder, "--out", plain, "--order", "kept")
    said = shard("--data-path", folder, "--out", out, "--order", "kept", "--restart-markers")
    assert f"{len(names) - 1} of {len(names)} pictures have restart markers" in said, said
    for side in (64, 224):
        assert deliver(plain, epochs=4, side=side)["sum"] == deliver(out, epochs=4, side=side, workers=2)["sum"], side
    assert listed(plain, val=1)["sum"] == listed(out, val=1)["sum"]
    before, after = ([t.extractfile(m).read() for t in [tarfile.open(f"{d}/train-000000.tar")] for m in t if m.name.endswith("jpg")] for d in (plain, out))
    assert len(before) == len(after) == len(names)
    for a, b in zip(before, after):
        if a != b and b"\xff\xc2" not in a:
            assert len(b) <= len(a) * 1.02 and b"\xff\xdd" in b and b"\xff\xd0" in b, (len(a), len(b))
    shard("--data-path", out, "--out", f"{tmp}/twice-marked", "--order", "kept", "--restart-markers")
    assert deliver(out, epochs=2)["sum"] == deliver(f"{tmp}/twice-marked", epochs=2)["sum"]
    try:
        from PIL import Image, ImageOps
    except ImportError:
        print("shards: Pillow is not installed; libjpeg compares marked pictures (entropy_test)")
        return
    for a, b in zip(before, after):
        seen = [ImageOps.exif_transpose(Image.open(io.BytesIO(x))).tobytes() for x in (a, b)]
        assert seen[0] == seen[1]


def npy(data):
    """Returns height, width and the bytes of an RGB array."""
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    head = eval(data[10:begin])  # pylint: disable=eval-used
    assert data[:8] == b"\x93NUMPY\x01\0" and head["descr"] == "|u1" and not head["fortran_order"] and begin % 64 == 0
    assert head["shape"][2] == 3 and len(data) - begin == 3 * head["shape"][0] * head["shape"][1]
    return head["shape"][0], head["shape"][1], data[begin:]


def scaled(length, out):
    """For each output pixel of an axis, the source pixels under a triangle filter, and their weights."""
    scale = length / out
    reach = max(scale, 1.0)
    rows = []
    for i in range(out):
        middle = (i + 0.5) * scale
        weights = {x: max(0.0, 1 - abs((x + 0.5 - middle) / reach)) for x in range(length)}
        whole = sum(weights.values())
        rows.append([(x, w / whole) for x, w in weights.items() if w > 0])
    return rows


def decoded(folder):
    """--decode: arrays of the requested size, whose pixels equal a resize by hand, and which the loader delivers as it
    delivers the files; no metadata claims that they are encoded pictures."""
    out, seen = f"{tmp}/decoded", 0
    shard("--data-path", folder, "--out", out, "--order", "kept", "--decode", "16")
    assert json.load(open(f"{out}/train.json", encoding="utf-8"))["dptrain"] == {"decoded": True}
    files = sorted(os.path.join(d, n) for d, _, names in os.walk(f"{folder}/val") for n in names)
    with tarfile.open(f"{out}/val-000000.tar") as t:
        arrays = [npy(t.extractfile(m).read()) for m in t if m.name.endswith(".npy")]
    assert len(arrays) == len(files) == 12
    for file, (height, width, pixels) in zip(files, arrays):
        i = int(os.path.basename(file)[1:4])
        w, h = 20 + i % 9, 30 - i % 7
        assert (width, height) == (w * 16 // min(w, h), h * 16 // min(w, h)), (w, h, width, height)
        across, down = scaled(w, width), scaled(h, height)
        for y in range(0, height, 5):
            for x in range(0, width, 3):
                true = sum(v * u * ((i * 7 + sx * 3 + sy * 5) % 251) for sy, v in down[y] for sx, u in across[x])
                got = pixels[3 * (y * width + x):3 * (y * width + x) + 3]
                assert all(abs(p - true) <= 1 for p in got), (file, x, y, true, list(got))
                seen += 1
    assert seen > 200
    for val in (0, 1):
        assert listed(out, val=val, side=14)["sum"] == listed(folder, val=val, side=14)["sum"], "the central 14 of 16 pixels"
    assert deliver(out, epochs=2, side=12)["sum"] == deliver(out, epochs=2, side=12, ranks=2, workers=3)["sum"]
    shard("--data-path", out, "--out", f"{tmp}/decoded-again", "--order", "kept")
    assert listed(f"{tmp}/decoded-again", side=14)["sum"] == listed(out, side=14)["sum"]
    os.remove(f"{tmp}/decoded-again/train.json")
    assert listed(f"{tmp}/decoded-again", side=14)["sum"] == listed(out, side=14)["sum"], "with various sizes"
    write(f"{tmp}/broken/train/ant/a.png", png(30, 30, 1))
    write(f"{tmp}/broken/train/ant/b.png", png(30, 30, 1)[:-30])
    write(f"{tmp}/broken/val/ant/a.png", png(12, 12, 2))
    said = shard("--data-path", f"{tmp}/broken", "--out", f"{tmp}/unbroken", "--decode", "24")
    assert "b.png" in said and "left out 1 of 2 training samples: cannot be read" in said and "1 training sample in" in said, said
    with tarfile.open(f"{tmp}/unbroken/val-000000.tar") as t:
        assert npy(t.extractfile(t.getmembers()[0]).read())[:2] == (12, 12), "a small picture is not enlarged"
    assert listed(f"{tmp}/unbroken", side=20)["n"] == 1
    assert "contradict" in shard("--data-path", folder, "--out", f"{tmp}/no", "--decode", "16", "--restart-markers", code=2)
    assert "no encoded pictures" in shard("--data-path", f"{tmp}/idx", "--out", f"{tmp}/no", "--decode", "16", code=2)


def archive(path, entries, **options):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, "w", **options) as t:
        for name, data in entries:
            m = tarfile.TarInfo(name)
            m.size = len(data)
            t.addfile(m, io.BytesIO(data))
    return path


PICTURE = [png(24, 24, i) for i in range(40)]


def labels(spec, **options):
    return [int(line.split()[0]) for line in listed(spec, **options)["list"]]


def grouping():
    """The cases of webdataset's base_plus_ext and group_by_keys, with the results of its 1.0.2."""
    path = archive(f"{tmp}/g/a.tar", [
        ("__meta__", b"x"), ("__info__/x.jpg", b"x"), ("dir.x/a.png", PICTURE[0]), ("dir.x/a.cls", b"0"),
        ("a/b.c/d.cls", b"1\n"), ("a/b.c/d.PNG", PICTURE[1]), ("noext", b"x"), (".hidden", b"x"), ("d/._e.png", b"x"),
        ("f.seg.png", b"x"), ("f.png", PICTURE[2]), ("f.cls", b" 2 "), ("g.txt", b"x"), ("g.png", PICTURE[3]), ("g.cls", b"0"),
        ("h.png", PICTURE[4]), ("i.cls", b"1"), ("h.cls", b"1"), ("j.png", PICTURE[5]), ("j.cls", b"one"),
        ("k.png", PICTURE[6]), ("k.png", PICTURE[6]), ("k.cls", b"1"), ("l.jpg", PICTURE[7]), ("l.png", PICTURE[8]), ("l.cls", b"2")])
    got = listed(path)
    assert labels(path) == [0, 1, 2, 0, 2], got
    assert got["broken"] == 5 and sum("has no label" in s for s in got["said"]) == 1, got
    for words in ("sample h: has no picture", "sample i: has no picture", "j.png: its label is not a number", "sample k: has a field twice"):
        assert any(words in s and "a.tar" in s for s in got["said"]), (words, got["said"])
    assert any("a.tar: f.seg.png" in s for s in listed(path, image_field="seg.png;png")["said"])
    assert listed(path, image_field="png")["list"][-1] != got["list"][-1], "l.jpg precedes l.png"
    path = archive(f"{tmp}/g/b.tar", [x for i in range(6) for x in ((f"{i}.png", PICTURE[i]), (f"{i}.json", json.dumps(
        {"label": i % 3, "deep": [[1]], "x": "y"}).encode()))])
    assert labels(path, label_field="cls;json:label") == [0, 1, 2, 0, 1, 2]
    assert "no samples" in deliver(path, code=1) or "no images" in deliver(path, code=1)
    assert "has no picture" not in deliver(path, code=1, label_field="json:none")


def names():
    """Long and unusual names, as every archive format encodes them."""
    entries = [x for i in range(6) for x in ((f"{'long/' * (1 + 12 * i)}{'ä' * 20}{i}.png", PICTURE[i]), (f"{'long/' * (1 + 12 * i)}{'ä' * 20}{i}.cls", b"%d" % i))]
    sums = {listed(archive(f"{tmp}/n/{n}.tar", entries, format=f))["sum"] for n, f in (("pax", tarfile.PAX_FORMAT), ("gnu", tarfile.GNU_FORMAT))}
    assert len(sums) == 1 and labels(f"{tmp}/n/pax.tar") == list(range(6))
    short = [x for i in range(6) for x in ((f"{'d/' * 60}{i}.png", PICTURE[i]), (f"{'d/' * 60}{i}.cls", b"%d" % i))]
    assert labels(archive(f"{tmp}/n/ustar.tar", short, format=tarfile.USTAR_FORMAT)) == list(range(6))
    path = archive(f"{tmp}/n/evil.tar", [("../../x.png", PICTURE[0]), ("../../x.cls", b"0"), ("/etc/y.png", PICTURE[1]), ("/etc/y.cls", b"1")])
    assert labels(path) == [0, 1] and not os.path.exists(os.path.join(tmp, "x.png"))
    with tarfile.open(f"{tmp}/n/size.tar", "w", format=tarfile.PAX_FORMAT) as t:  # sizes in pax records
        for i in range(4):
            for name, data in ((f"{i}.png", PICTURE[i]), (f"{i}.cls", b"%d" % i)):
                m = tarfile.TarInfo(name)
                m.size = len(data)
                m.pax_headers = {"size": str(len(data)), "comment": "=\n="}
                t.addfile(m, io.BytesIO(data))
    assert labels(f"{tmp}/n/size.tar") == list(range(4))


def damage():
    entries = [x for i in range(20) for x in ((f"{i:02d}.png", PICTURE[i]), (f"{i:02d}.cls", b"%d" % (i % 3)))]
    whole = archive(f"{tmp}/d/whole.tar", entries)
    data = open(whole, "rb").read()
    with tarfile.open(whole) as t:
        at = {m.name: (m.offset, m.offset_data) for m in t}

    def changed(name, *edits, cut=None):
        copy = bytearray(data)
        for where, what in edits:
            copy[where:where + len(what)] = what
        write(f"{tmp}/d/{name}.tar", bytes(copy[:cut]))
        return f"{tmp}/d/{name}.tar"
    got = listed(changed("header", (at["05.png"][0] + 10, b"\xff" * 40)))
    assert got["n"] == 19 and got["said"] and "damaged from byte" in got["said"][0] and "header.tar" in got["said"][0], got
    got = listed(changed("picture", (at["05.png"][1] + 20, b"\xff" * 60)))
    assert got["n"] == 20 and got["broken"] == 1 and "picture.tar: 05.png" in got["said"][0], got
    got = listed(changed("cut", cut=at["12.png"][1] + 30))
    assert got["n"] == 12 and "damaged" in got["said"][0], got
    size = bytearray(data[at["07.png"][0]:at["07.png"][0] + 512])
    size[124:136] = b"77777777777\0"
    size[148:156] = b" " * 8
    size[148:156] = b"%06o\0 " % sum(size)
    got = listed(changed("lying", (at["07.png"][0], size)))
    assert got["n"] == 19, got
    got = listed(changed("hole", (at["09.png"][0], bytes(at["10.png"][0] - at["09.png"][0]))))
    assert got["n"] == 19 and "damaged" in got["said"][0], got
    broken = changed("many", *[(at[f"{i:02d}.png"][1] + 20, b"\xff" * 60) for i in range(11)])
    assert "more than 10" in deliver(broken, code=1) and deliver(broken, max_unreadable=0.9)["broken"] == 11
    assert deliver(broken, max_unreadable=0)["n"] == 20, "broken samples are replaced by others"
    write(f"{tmp}/d/empty.tar", b"")
    write(f"{tmp}/d/noise.tar", os.urandom(100000))
    for name in ("empty", "noise"):
        assert "no images to train on" in deliver(f"{tmp}/d/{name}.tar", code=1)
    assert "is compressed" in deliver(archive(f"{tmp}/d/z.tar.gz", entries[:2]), code=1)
    assert "No such file" in deliver(f"{tmp}/d/{{whole,gone}}.tar", code=1)
    write(f"{tmp}/d/bad.json", b'{"__kind__": "wids-shard-index-v1", "shardlist": [{}]}')
    assert 'has no "url"' in deliver(f"{tmp}/d/bad.json", code=1)


def kept_index(dealt):
    """An index cache that another user wrote, or a damaged one, is ignored and rebuilt."""
    before = listed(dealt)["sum"]
    tables = [os.path.join(dealt, ".dptrain", n) for n in os.listdir(f"{dealt}/.dptrain") if n.endswith(".samples")]
    assert tables
    for table in tables:
        data = bytearray(open(table, "rb").read())
        data[40] ^= 255
        write(table, bytes(data))
    assert listed(dealt)["sum"] == before
    os.utime(f"{dealt}/train-000000.tar")
    assert listed(dealt)["sum"] == before
    shutil.rmtree(f"{dealt}/.dptrain")
    os.chmod(dealt, 0o555)
    assert listed(dealt)["sum"] == before
    os.chmod(dealt, 0o755)


def orders(folder, dealt):
    """The stream depends only on the order, not on ranks, workers and storage; no rank starves."""
    one = archive(f"{tmp}/o/one.tar", [x for i in range(40) for x in ((f"{i:02d}.png", PICTURE[i]), (f"{i:02d}.cls", b"%d" % (i % 3)))])
    seven = [archive(f"{tmp}/o/s{k}.tar", [x for i in range(k, 40, 7) for x in ((f"{i:02d}.png", PICTURE[i] if i != 8 else b"broken"), (f"{i:02d}.cls", b"1"))])
             for k in range(7)]
    for kind in (1, 2, 3):  # table, global, window
        sums = {deliver(dealt, shuffle=kind, window=20, batch=10, epochs=3, ranks=r, workers=w)["sum"] for r in (1, 2, 3, 4) for w in (0, 1, 7)}
        assert len(sums) == 1, (kind, sums)
        alone = listed(dealt)["list"]
        for epochs in (1, 2):
            many = deliver(dealt, shuffle=kind, window=20, batch=7, plain=1, list=1, epochs=epochs)["list"]
            assert sorted(many) == sorted(alone * epochs) and many[:60] != alone, "each sample once per epoch, shuffled"
        assert kind == 3 or deliver(f"{tmp}/kept", shuffle=kind)["sum"] == deliver(folder, shuffle=kind)["sum"]
        assert deliver(one, shuffle=kind, batch=9, ranks=3, workers=8, epochs=2)["n"] == 80
        got = {(g["sum"], g["n"], g["broken"]) for g in (deliver("::".join(seven), shuffle=kind, batch=9, ranks=r, workers=w) for r, w in ((1, 0), (3, 8), (2, 1)))}
        assert len(got) == 1 and got.pop()[1:] == (40, 1)


def webdataset(dealt):
    """webdataset itself reads our shards, and we read those of its writer."""
    try:
        import webdataset as wds
    except ImportError:
        print("shards: webdataset is not installed; its grouping was compared with a recording")
        return
    urls = [f"{dealt}/{s['url']}" for s in json.load(open(f"{dealt}/train.json", encoding="utf-8"))["shardlist"]]
    theirs = [(int(s["cls"]), hashlib.sha256(s["png"]).hexdigest()) for s in wds.WebDataset(urls, shardshuffle=False)]
    assert [c for c, _ in theirs] == labels(dealt) and len(theirs) == 60
    with wds.ShardWriter(f"{tmp}/w-%06d.tar", maxcount=7, verbose=0) as sink:
        for i in range(20):
            sink.write({"__key__": f"s{i:03d}", "png": PICTURE[i], "cls": i % 3})
    assert labels(f"{tmp}/w-{{000000..000002}}.tar") == [i % 3 for i in range(20)]


with tempfile.TemporaryDirectory(prefix="dptrain-shards-") as tmp:
    made, kept_set, dealt_set = written()
    indexes(dealt_set)
    arrays()
    decoded(made)
    marked()
    grouping()
    names()
    damage()
    orders(made, dealt_set)
    webdataset(dealt_set)
    kept_index(dealt_set)
    progress()
    stopped()
print("shards: written, read, grouped and damaged archives are correct")
sys.exit(0)
