# SPDX-License-Identifier: Apache-2.0
"""Random histories of event files under a served folder: files and folders are created, appended to, renamed, replaced,
deleted, moved, copied and synced. In the end the runs that are not marked gone have exactly what the final folder has: by a
reader of this test's own, and by TensorBoard's where it is installed. Usage: histories.py [HISTORIES [SEED]]; the default is
short, `histories.py 200` is the long form."""
import sys
sys.dont_write_bytecode = True
import json
import os
import random
import shutil
import struct
import subprocess
import tempfile
import time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
sys.path.insert(0, os.path.join(HERE, "..", "tracker"))
import journal
import lib
import wire

TENSORBOARD = os.path.join(lib.BUILD, "venv", "tensorboard", "bin", "python")
KEYS = ("loss", "acc")
FOLDERS = ("exp1", "exp2", "proj/a", "proj/b", "deep/er/c")
SETTLE_S = 30
STEP, TIME = 5, 6  # columns of series.csv
READER = """
import json, os, sys
from tensorboard.backend.event_processing import event_accumulator
found = {}
for folder, _, files in os.walk(sys.argv[1]):
    if any("tfevents" in f for f in files):
        a = event_accumulator.EventAccumulator(folder, size_guidance={"scalars": 0})
        a.Reload()
        points = [(k, e.step, e.wall_time) for k in a.Tags()["scalars"] for e in a.Scalars(k)]
        if points:
            found[os.path.relpath(folder, sys.argv[1])] = points
print(json.dumps(found))
"""


def simple(key, value):
    return wire.field(1, key.encode()) + bytes([0x15]) + struct.pack("<f", value)


class History:
    def __init__(self, root, rng):
        self.root, self.rng, self.clock, self.files, self.log = root, rng, 1.7e9, 0, []

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def tick(self):
        """Each record has a time of its own, so that a point is known by it."""
        self.clock += 0.125
        return self.clock

    def version(self):
        return wire.record(wire.field(1, self.tick()) + wire.field(3, b"brain.Event:2"))

    def points(self, n, first=0):
        return b"".join(wire.record(wire.field(1, self.tick()) + wire.field(2, first + i + 1) +
                                    wire.field(5, wire.field(1, simple(self.rng.choice(KEYS), i / 4)))) for i in range(n))

    def content(self):
        return self.version() + self.points(self.rng.randrange(1, 9))

    def name(self):
        self.files += 1
        return "events.out.tfevents.%d.host.%d" % (1700000000 + self.files, self.files)

    def events(self):
        return sorted(os.path.join(d, f) for d, _, files in os.walk(self.root) for f in files if "tfevents" in f)

    def folders(self):
        return sorted({os.path.dirname(p) for p in self.events()} - {self.root})

    def a_file(self):
        files = self.events()
        return self.rng.choice(files) if files else self.create()

    def create(self):
        folder = self.path(self.rng.choice(FOLDERS))
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, self.name())
        with open(path, "wb") as f:
            f.write(self.content())
        return path

    def append(self):
        with open(self.a_file(), "ab") as f:
            f.write(self.points(self.rng.randrange(1, 6), 100))

    def rename(self):
        path = self.a_file()
        os.rename(path, os.path.join(os.path.dirname(path), self.name()))

    def replace(self):
        path = self.a_file()
        with open(path, "rb") as f:
            old = f.read()
        new = self.rng.choice((self.content, lambda: old[:journal.records(old[:len(old) // 2])[1]] or self.content()))()
        if self.rng.random() < .5:
            with open(path, "wb") as f:
                f.write(new)
            return
        part = os.path.join(os.path.dirname(path), ".part")
        with open(part, "wb") as f:
            f.write(new)
        os.rename(part, path)

    def delete(self):
        os.remove(self.a_file())

    def delete_folder(self):
        if self.folders():
            shutil.rmtree(self.rng.choice(self.folders()))

    def retrain(self):
        """A folder is removed, and trained into again at once."""
        if self.folders():
            folder = self.rng.choice(self.folders())
            shutil.rmtree(folder)
            os.makedirs(folder)
            with open(os.path.join(folder, self.name()), "wb") as f:
                f.write(self.content())

    def move(self):
        path, folder = self.a_file(), self.path(self.rng.choice(FOLDERS))
        os.makedirs(folder, exist_ok=True)
        os.rename(path, os.path.join(folder, os.path.basename(path)))

    def move_folder(self):
        if self.folders():
            folder = self.rng.choice(self.folders())
            os.rename(folder, self.path("moved%d" % self.files))
            self.files += 1

    def copy(self):
        path = self.a_file()
        folder = self.rng.choice((os.path.dirname(path), self.path(self.rng.choice(FOLDERS))))
        os.makedirs(folder, exist_ok=True)
        shutil.copyfile(path, os.path.join(folder, self.name()))

    def copy_folder(self):
        if self.folders():
            shutil.copytree(self.rng.choice(self.folders()), self.path("copy%d" % self.files))
            self.files += 1

    def sync(self):
        """As `aws s3 sync` brings a file that grew: whole, under another name next to it, then renamed."""
        path = self.a_file()
        with open(path, "rb") as f:
            new = f.read() + self.points(3, 200)
        part = path + ".1a2b3c4d"
        with open(part, "wb") as f:
            f.write(new[:len(new) // 2])
            f.flush()
            self.pause(.02)
            f.write(new[len(new) // 2:])
        os.rename(part, path)

    def pause(self, most):
        if self.rng.random() < .5:
            time.sleep(self.rng.random() * most)

    def play(self):
        steps = (self.create,) * 4 + (self.append,) * 4 + (self.rename, self.replace, self.delete, self.delete_folder, self.retrain,
                                                           self.move, self.move_folder, self.copy, self.copy_folder, self.sync)
        for _ in range(self.rng.randrange(4, 14)):
            step = self.rng.choice(steps)
            self.log.append(step.__name__)
            step()
            self.pause(.6 if self.rng.random() < .2 else .05)

    def read(self):
        """{(experiment, name): {(key, step, time)}} of the folder as it is."""
        found = {}
        for path in self.events():
            with open(path, "rb") as f:
                payloads, _ = journal.records(f.read())
            for payload in payloads:
                event = dict(journal.fields(payload))
                if 5 in event:
                    value = dict(journal.fields(dict(journal.fields(event[5]))[1]))
                    point = (value[1].decode(), event.get(2, 0), struct.unpack("<d", struct.pack("<Q", event[1]))[0])
                    found.setdefault(os.path.relpath(os.path.dirname(path), self.root), set()).add(point)
        return found


def has_tensorboard():
    return os.path.exists(TENSORBOARD) and not subprocess.run([TENSORBOARD, "-c", "import tensorboard"], capture_output=True).returncode


def named(found):
    """Runs by experiment and name, as their folders give them."""
    return {tuple(folder.split("/", 1)) if "/" in folder else ("Default", folder): set(map(tuple, points))
            for folder, points in found.items()}


def shown(server):
    """What the server has, of runs that are there and of those marked gone."""
    there, gone = {}, []
    status, body = server.json("GET", "/api/v1/runs?limit=1000")
    for run in body["runs"]:
        detail = server.json("GET", "/api/v1/runs/" + run["id"])[1]
        points = []
        for key in KEYS:
            status, _, data = server.request("GET", f"/api/v1/export/series.csv?run={run['id']}&key={key}")
            for line in data.decode().splitlines()[1:] if status == 200 else ():
                columns = line.split(",")
                points.append((key, int(columns[STEP]), float(columns[TIME])))
        if detail.get("tags", {}).get("dptrack.source") == "gone":
            gone.append(points)
        else:
            there.setdefault((detail["experiment"], detail["name"]), []).append(points)
    return there, gone


def compare(server, want):
    there, gone = shown(server)
    if any(len(runs) > 1 for runs in there.values()):
        return "two runs of one name", there, gone
    return {name: set(runs[0]) for name, runs in there.items() if runs[0]} == want, there, gone


def play_one(seed, tensorboard):
    rng = random.Random(seed)
    with lib.fresh() as server:
        h = History(server.logdir, rng)
        h.play()
        want, end = named(h.read()), time.monotonic() + SETTLE_S
        if tensorboard:
            read = subprocess.run([TENSORBOARD, "-c", READER, server.logdir], capture_output=True, text=True, check=True)
            lib.equal(named(json.loads(read.stdout)), want, f"history {seed}: TensorBoard's reading and this test's")
        same, there, gone = compare(server, want)
        while same is not True and time.monotonic() < end:
            time.sleep(.1)
            same, there, gone = compare(server, want)
        if not lib.check(same is True, f"history {seed}: {' '.join(h.log)}: {same}"):
            print(" want", {k: len(v) for k, v in want.items()}, "\n have", {k: [len(x) for x in v] for k, v in there.items()},
                  "\n gone", [len(x) for x in gone])


def main():
    histories = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    tensorboard = has_tensorboard()
    for seed in range(first, first + histories):
        play_one(seed, tensorboard)
    print("with" if tensorboard else "without", "TensorBoard's reader")
    lib.finish("histories")


if __name__ == "__main__":
    main()
