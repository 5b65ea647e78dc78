# SPDX-License-Identifier: Apache-2.0
"""Pictures per second of the loader alone (articles 2 and 3): the same PNGs as a folder, LMDB, tar shards, Parquet, Arrow, in
memory and on tmpfs, cold and warm, with 0 to 4 loader threads. The article's numbers are trainings on one V100 that waited
for the disk (228 images/s) and from tmpfs (873): only the ratio from disk to memory can be compared. This disk is a virtual
one whose host caches too, so "cold" evicts the pages of this machine only."""
import json
import os
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "bench"), os.path.join(HERE, "..", "..", "bench", "storage")]
import noisy
import objectserver
import packages
from record import BUILD, DPTRAIN

COLD, THREADS = "cold, -j 2", [0, 1, 2, 4]
WARM = ["warm, -j %d" % n for n in THREADS]
ARTICLE = {("folder", COLD): 228, ("tmpfs", "warm, -j 2"): 873}
ARROW = """
import os, sys, pyarrow, pyarrow.ipc
place, folder = sys.argv[1:]
data = [open(p, "rb").read() for p in sorted(os.path.join(d, f) for d, _, names in os.walk(os.path.join(folder, "train")) for f in names)]
os.makedirs(place)
struct = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
schema = pyarrow.schema([("image", struct), ("label", pyarrow.int64())])
with pyarrow.ipc.new_file(os.path.join(place, "train.arrow"), schema) as out:
    for at in range(0, len(data), 100):
        some = data[at:at + 100]
        out.write_batch(pyarrow.record_batch([pyarrow.array([{"bytes": d, "path": None} for d in some], struct),
                                              pyarrow.array([(at + i) % 10 for i in range(len(some))], pyarrow.int64())], schema=schema))
"""


def make(s, folder):
    """Returns {row: (place, flags)}."""
    data = os.path.dirname(folder)
    places = {"folder": (folder, ["--shuffle", "global"]), "folder, in order": (folder, ["--shuffle", "none"])}
    shards = os.path.join(data, "shards")
    subprocess.run([DPTRAIN, "shard", "--data-path", folder, "--out", shards, "--shard-size", "4MiB"], check=True, stdout=subprocess.DEVNULL)
    places["shards"] = (shards, [])
    places["shards, in order"] = (shards, ["--shuffle", "none"])
    if s.quick:
        s.problems.append("LMDB, Parquet, Arrow: --quick installs no packages that write them")
        return places
    try:
        python = packages.python(BUILD, "bench-study", ["lmdb==1.7.5", "pyarrow==26.0.1"])
    except packages.Unavailable as e:
        s.problems.append("LMDB, Parquet, Arrow: %s" % e)
        return places
    peer = os.path.join(HERE, "..", "..", "bench", "storage")
    for kind in ("lmdb", "parquet", "arrow"):
        place = os.path.join(data, kind)
        words = [python, "-c", ARROW, place, folder] if kind == "arrow" else [python, os.path.join(peer, "peer_sets.py"), kind, place, folder]
        if subprocess.run(words, check=False).returncode:
            s.problems.append("%s: cannot be written" % kind)
            continue
        name = {"lmdb": "LMDB, shuffled", "parquet": "Parquet", "arrow": "Arrow"}[kind]
        places[name] = (place, ["--shuffle", "global"] if kind == "lmdb" else [])
        if kind == "lmdb":
            places["LMDB, in order"] = (place, ["--shuffle", "none"])
    return places


def evict(place):
    for d, _, names in os.walk(place):
        for name in names:
            with open(os.path.join(d, name), "rb") as f:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def rate(s, place, flags, workers, passes):
    out = s.tool("bench", "--loader", "--data-path", place, "-b", 32, "-j", workers, "--image-size", 64, "--epochs", passes, "--val-split", 0, "--json", *flags)
    return statistics.median(p["samples_per_s"] for p in json.loads(out)["passes"][-max(1, passes - 1):]) if out else None


def facts(s, t):
    warm = "warm, -j %d"
    for finding, a, b, expected in (("LMDB is slower shuffled than in order", ("LMDB, shuffled", warm % 2), ("LMDB, in order", warm % 2), (0, 1)),
                                    ("memory removes the wait for the disk", ("tmpfs", warm % 2), ("folder", COLD), (1, 1e9)),
                                    ("more loader threads than cores do not help", ("folder", warm % 4), ("folder", warm % 2), (0, 1.1))):
        s.compare(finding, (t.cells.get(a), t.cells.get(b)), expected, "%.2f of the rate")


def measure(s):
    count, repeats = (160, 1) if s.quick else (600, 8) if s.short else (2000, 5)
    data = os.path.join(s.work, "data")
    os.makedirs(data)
    folder = os.path.join(data, "pictures")
    noisy.folder(folder, {"train": count, "val": 3})
    places = make(s, folder)
    memory = os.path.join("/dev/shm", "dptrain-study-%d" % os.getpid())
    shutil.copytree(folder, memory)
    server = objectserver.Server(data)
    places["tmpfs"] = (memory, ["--shuffle", "global"])
    places["RAM (--cache ram)"] = (server.url + "/shards/train.json", ["--cache", "ram"])
    t = s.table("loader", "pictures/s", [COLD, *WARM], base=("folder", COLD), article=ARTICLE, form="%.4g")
    s.metrics = ["samples_per_s"]

    def one(cell, turn):
        row, column = cell
        place, flags = places[row]
        if column == COLD:
            evict(place)
        value = rate(s, place, flags, int(column.rsplit(" ", 1)[1]), 1 if column == COLD else 2)
        if value:
            t.add(row, column, value, s.keep("%s, %s, %d" % (row, column, turn + 1), {"samples_per_s": value}, {"format": row, "read": column}))
    try:
        columns = [COLD, "warm, -j 2"] if s.quick else [COLD, *WARM]
        s.turns([(row, c) for row in places for c in columns if c != COLD or os.path.isdir(places[row][0]) and row != "tmpfs"], repeats, one)
    finally:
        server.shutdown()
        shutil.rmtree(memory, ignore_errors=True)
    facts(s, t)
    s.notes.append("%d noisy PNGs of 24 KB, decoded to 64 px. \"RAM\" is a second pass over an object server with `--cache ram`." % count)
