# SPDX-License-Identifier: Apache-2.0
"""Event files imported and exported again: every scalar must return in its place with every bit of its step, wall time
and value (including NaN payloads and signalling NaNs), whether the run was imported into a folder or through a server,
from the ingest log or from folded chunks; the import lists what is not a scalar. The test writes its files record by
record, and has its own reader."""
import sys
sys.dont_write_bytecode = True
import glob
import json
import os
import random
import struct
import subprocess
import tempfile
import time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
sys.path.insert(0, os.path.join(HERE, "..", "web"))
sys.path.insert(0, os.path.join(HERE, "..", "tracker"))
import journal
import lib
import twelve
import wire

F32 = (0x00000000, 0x80000000, 0x3f800000, 0x00000001, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fc12345, 0xffc00001,
       0x7f800001, 0xffbfffff)
F64 = (0x3fb999999999999a, 0x7ff8000000000001, 0xfff0000000000001, 0x7ff0000000000001, 0x7fefffffffffffff, 0x0000000000000001,
       0x8000000000000000, 0x47f0000000000000)
TIMES = (0.0, -1.5, 1795000000.125, 1795000000.125, 1e-300, 1795000000.1250002, 5e9, float("inf"))
STEPS = (0, 1, -1, 2 ** 63 - 1, -2 ** 63, 7, 7)


def run(*args):
    r = subprocess.run([lib.PROGRAM, *args], capture_output=True, text=True, timeout=120, env=lib.environment_of(args))
    lib.equal(r.returncode, 0, f"{' '.join(args)}: {r.stderr!r}")
    return r.stdout


# ---- writing ------------------------------------------------------------------------------------------------------

def fixed(number, bits, size):
    return wire.varint(number << 3 | (5 if size == 4 else 1)) + bits.to_bytes(size, "little")


def simple(tag, bits):
    return twelve.field(1, tag) + fixed(2, bits, 4)


def tensor(tag, bits):
    """A double as TensorFlow 2 writes scalars: dtype 2, tensor_content."""
    return twelve.field(1, tag) + twelve.field(8, twelve.field(1, 2) + twelve.field(4, bits.to_bytes(8, "little"))) + twelve.plugin("scalars")


def widened(bits):
    """The bits of the double equal to a float of these bits; NaNs keep their payload."""
    if bits & 0x7f800000 == 0x7f800000:
        return (bits & 0x80000000) << 32 | 0x7ff << 52 | (bits & 0x7fffff) << 29
    return struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", bits))[0]))[0]


def others():
    """Values that runs do not store: an image, a histogram, a text."""
    image = twelve.field(1, "image") + twelve.field(4, twelve.field(1, 1) + twelve.field(4, b"\x89PNG"))
    histogram = twelve.field(1, "weights") + twelve.field(5, twelve.field(1, 0.5) + twelve.field(2, 1.5))
    return [image, histogram, twelve.text_value("words", "as they are")]


def write(path, rng, count, first=0):
    """Writes a file in a random order; returns its scalars as (tag, step, bits of the time, bits of the value)."""
    want, tags = [], ["loss", "äé/β", "eval/acc", "a tag", "late"]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(wire.record(twelve.event(1795000000.0, 0, version="brain.Event:2")))
        if first:
            out.write(wire.record(twelve.event(1795000000.0, first) + twelve.field(7, twelve.field(1, 1))))
        for i in range(count):
            wild = not first and i < 400
            wall = rng.choice(TIMES) if wild else 1795000000 + i * 0.25 - rng.random() * (i % 3)
            step = first + (rng.choice(STEPS) if wild else i // 3)
            values = []
            for _ in range(rng.choice((1, 1, 1, 2, 5))):
                tag = rng.choice(tags[:5 if i > count // 2 else 4])
                if rng.random() < 0.2:
                    bits = rng.choice(F64)
                    values.append(tensor(tag, bits))
                else:
                    narrow = rng.choice(F32) if rng.random() < 0.5 else rng.getrandbits(32)
                    bits = widened(narrow)
                    values.append(simple(tag, narrow))
                want.append((tag, step, struct.pack("<d", wall), bits))
            record = twelve.field(1, wall) + (twelve.field(2, step) if step else b"") + twelve.field(5, b"".join(twelve.field(1, v) for v in values))
            out.write(wire.record(record))
        for value in others():
            out.write(wire.record(twelve.event(1795009999.0, first + count, value)))
    return want


# ---- reading ------------------------------------------------------------------------------------------------------

def fields(data):
    """Yields (number, value) of every field of a message: bytes or an integer."""
    at = 0

    def number():
        nonlocal at
        v = shift = 0
        while True:
            v |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return v

    while at < len(data):
        key = number()
        kind = key & 7
        if kind == 0:
            yield key >> 3, number()
            continue
        size = {1: 8, 5: 4}.get(kind) or number()
        yield key >> 3, data[at:at + size] if kind == 2 else int.from_bytes(data[at:at + size], "little")
        at += size


def read(path):
    """Returns the scalars of a file, in the form of write()."""
    with open(path, "rb") as f:
        data = f.read()
    at, out = 0, []
    while at < len(data):
        size = int.from_bytes(data[at:at + 8], "little")
        if journal.masked_crc(data[at:at + 8]) != int.from_bytes(data[at + 8:at + 12], "little"):
            raise AssertionError(f"{path}: damaged at {at}")
        event = dict(fields(data[at + 12:at + 12 + size]))
        step = (event.get(2, 0) ^ 1 << 63) - (1 << 63)
        for number, value in fields(event.get(5, b"")):
            v = dict(fields(value))
            if 2 in v:
                out.append((v[1].decode(), step, event.get(1, 0).to_bytes(8, "little"), v.get(1001, widened(v[2]))))
        at += 16 + size
    return out


# ---- there and back -----------------------------------------------------------------------------------------------

def exported(folder, name, *where):
    out = os.path.join(folder, name)
    run("export", "--events", out, *where)
    lib.check(not glob.glob(f"{out}/**/*.part-*", recursive=True), f"{name}: partial files are left")
    return {os.path.basename(os.path.dirname(p)).rpartition("-")[0] + p[-1:]: read(p)
            for p in glob.glob(f"{out}/**/events.out.tfevents.*", recursive=True)}


def compare(got, want, what):
    lib.equal(sorted(got), sorted(want), f"{what}: files")
    for name in want:
        have = got.get(name, [])
        lib.equal(len(have), len(want[name]), f"{what}: scalars of {name}")
        wrong = next(((i, a, b) for i, (a, b) in enumerate(zip(have, want[name])) if a != b), None)
        lib.check(wrong is None, f"{what}: {name}: first difference (index, got, want): {wrong}")


def damaged(folder):
    """A wrong bit costs its record, or everything after a damaged length, and is reported; no raw tag reaches the
    terminal."""
    source, into = os.path.join(folder, "damaged"), os.path.join(folder, "mended")
    for name, wrong in (("value", 30), ("length", 3)):
        path = os.path.join(source, "e", name, "events.out.tfevents.1.x")
        os.makedirs(os.path.dirname(path))
        with open(path, "wb") as out:
            for step in range(10):
                at = out.tell()
                out.write(wire.record(twelve.event(1795000000.0, step, simple("a\x1b[31m" if step == 9 else "loss", 0x3f800000))))
                if step == 4:
                    place = at + wrong
        with open(path, "r+b") as out:
            out.seek(place)
            byte = out.read(1)[0]
            out.seek(place)
            out.write(bytes([byte ^ 4]))
    for i in range(2):
        with open(os.path.join(source, f"events.out.tfevents.{i}.\x1b[31m"), "wb") as f:
            f.write(b"<html>")
    said = run("import", source, "--logdir", into)
    for line in ("2 runs, 2 files, 12 scalars", "skipped: 1 record damaged",
                 "skipped: the end of 1 file, after a damaged length (e/length/events.out.tfevents.1.x)",
                 "skipped: 2 files without a complete record (events.out.tfevents.0.\\x1b[31m)", "1 times scalars whose tag is not a valid key: a\\x1b[31m"):
        lib.check(line in said, f"import reports: {line}: {said!r}")
    rows = run("export", "--series", "--experiment", "e", "--logdir", into).splitlines()[1:]
    steps = [(r.split(",")[1].split("-")[0], int(r.split(",")[5])) for r in rows]
    lib.equal(sorted(steps), [("length", s) for s in range(4)] + [("value", s) for s in range(9) if s != 4], "the undamaged records")


def facts(*where):
    """What runs.json of the export and the runs' own pages say, without what differs between stores."""
    found = {}
    for row in json.loads(run("export", "--json", *where)):
        shown = json.loads(run("show", row["run_id"], "--json", *where))
        keep = {k: shown.get(k) for k in ("name", "experiment", "status", "status_reason", "tags", "params", "notes", "start_time", "end_time", "environment")}
        keep["segments"] = [(s["number"], s["first_step"], s["world_size"], s["status"]) for s in shown["segments"]]
        keep["points"] = sorted(tuple(p.items()) for p in json.loads(run("export", row["run_id"], "--series", "--json", *where)))
        found[row["run_id"]] = keep
    return found


def kept(folder):
    """Exported and imported runs keep their ids, names, tags, notes, ranks and segments; their origin has them already
    (langfuse#4200 and the exports of other trackers lose these)."""
    origin, out, into = (os.path.join(folder, n) for n in ("origin", "origin-out", "origin-into"))
    server = lib.Server(origin)
    for i, name in enumerate(("fold 1's", "=1+1", "a/b: ü")):
        ident = server.json("POST", "/api/v1/runs", {"experiment": "e/x y", "name": name, "tags": {"t": "v", "u w": "é"},
                                                     "params": {"lr": "0.1"}})[1]["id"]
        server.json("POST", f"/api/v1/runs/{ident}/metrics", {"points": [{"key": "loss", "step": s, "value": s / 3, "rank": r, "wall_time": 1e9 + s}
                                                                         for s in range(9) for r in (-1, 0, 1)][: 27 if i else 9]})
        server.json("PATCH", f"/api/v1/runs/{ident}", {"status": "failed" if i else "finished", "notes": "# why"})
    lib.equal(server.stop(), 0, "exit code")
    recorder = lib.Recorder(origin)
    recorder.close()
    want = facts("--logdir", origin)
    run("export", "--events", out, "--logdir", origin)
    for again in ("6 files", "0 runs"):
        said = run("import", out, "--logdir", into)
        lib.equal(facts("--logdir", into), want, f"{said!r}: exported and imported")
    before = sorted(glob.glob(f"{origin}/**", recursive=True))
    said = run("import", out, "--logdir", origin)
    lib.check("skipped: 4 exported runs" in said, f"the origin has its runs: {said!r}")
    lib.equal(sorted(glob.glob(f"{origin}/**", recursive=True)), before, "no file is added to the origin")
    lib.equal(facts("--logdir", origin), want, "nothing is added to the origin")
    run("import", out, "--logdir", into, "--experiment", "copies")
    lib.equal(len(facts("--logdir", into)), 8, "--experiment copies the runs")
    run("export", "--events", os.path.join(origin, "inside"), "--logdir", origin)
    lib.equal(facts("--logdir", origin), want, "exported into the followed folder")
    server = lib.Server(origin)
    said = run("sync", "--logdir", out, "--url", server.url)
    lib.check("0 journals" in said and "event files of other programs" in said, f"sync: {said!r}")
    lib.equal(facts("--url", server.url), want, "the followed folder has its own export")
    lib.equal(server.stop(), 0, "exit code")
    server = lib.Server(os.path.join(folder, "origin-far"))
    run("import", out, "--url", server.url)
    lib.equal(facts("--url", server.url), want, "imported into a server")
    lib.equal(server.stop(), 0, "exit code")


def ended(folder):
    """Imported files are a copy: their runs are finished at once, and end with their last record, as those of a followed
    folder that is old; also when a file is read in several parts."""
    source, into = os.path.join(folder, "ended"), os.path.join(folder, "ended-into")
    for name, age_s, n in (("fresh", 35, 30), ("old", 1e5, 30), ("long", 1e5, 40000)):
        path = os.path.join(source, "e", name, "events.out.tfevents.1.h")
        os.makedirs(os.path.dirname(path))
        start = int(time.time() - age_s)
        with open(path, "wb") as out:
            out.write(wire.record(twelve.event(float(start), 0, version="brain.Event:2")))
            out.write(b"".join(wire.record(twelve.event(float(start + i), i, simple("loss", 0x3f800000))) for i in range(n)))
        os.utime(path, (start + n, start + n))
    run("import", source, "--logdir", into)
    want = {"fresh": ("finished", 29), "old": ("finished", 29), "long": ("finished", 39999)}
    for where, known in ((into, want), (source, {**want, "fresh": ("running", None)})):
        rows = json.loads(run("ls", "--json", "--logdir", where))["runs"]
        found = {r["name"]: (r["status"], r["end_time"] and round((r["end_time"] - r["start_time"]) / 1000)) for r in rows}
        lib.equal(found, known, f"how runs ended: {where}")


def wait_folded(server):
    until = time.monotonic() + 60
    while time.monotonic() < until and "dptrack_store_unfolded_points 0\n" not in server.request("GET", "/metrics")[2].decode():
        time.sleep(0.1)


def main():
    rng = random.Random(4)
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        damaged(folder)
        kept(folder)
        ended(folder)
        source, into, far = (os.path.join(folder, n) for n in ("source", "into", "far"))
        name = "events.out.tfevents.1795000000.here.%d.0"
        want = {"long0": write(os.path.join(source, "e", "long", name % 0), rng, 15000),
                "twice0": write(os.path.join(source, "e", "twice", name % 0), rng, 700),
                "twice1": write(os.path.join(source, "e", "twice", name % 1), rng, 500, first=300)}
        said = run("import", source, "--logdir", into)
        lib.check("9 images, histograms, texts and audio clips" in said, f"import reports what it skipped: {said!r}")
        compare(exported(folder, "out", "--logdir", into), want, "a folder")
        server = lib.Server(far)
        said = run("import", source, "--url", server.url)
        lib.check("9 images, histograms, texts and audio clips" in said, said)
        compare(exported(folder, "out-url", "--url", server.url), want, "a server")
        wait_folded(server)
        compare(exported(folder, "out-folded", "--url", server.url), want, "a server, folded")
        run("import", os.path.join(folder, "out-url"), "--url", server.url, "--experiment", "again")
        again = exported(folder, "out-again", "--url", server.url, "--experiment", "again")
        compare(again, want, "an export, imported and exported again")
        lib.equal(server.stop(), 0, "exit code")
    lib.finish("roundtrip")


main()
