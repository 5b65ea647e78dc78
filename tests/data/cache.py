#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cache of fetched data: the stream equals that of the shards on disk whatever the cache contains; later epochs,
runs, ranks, jobs and trainings fetch nothing twice; killed writers, flipped bytes, a full disk, a small limit, files
of other users; memory that is released."""
import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
DPTRACK = os.path.join(BUILD, "dptrack")
DPTRAIN = os.path.join(BUILD, "dptrain")
DELIVER = os.path.join(BUILD, "tests", "data", "deliver")
sys.path.insert(0, os.path.join(SRC, "tests", "data"))
import noisy  # noqa: E402
from objectserver import Server  # noqa: E402

RAM = f"/dev/shm/dptrain-cache-{os.geteuid()}"
HOW = ["shuffle=3", "window=30", "batch=8", "epochs=2"]


def begin(spec, *more, before=()):
    return subprocess.Popen([*before, DELIVER, spec, *HOW, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/xdg", "no_proxy": "*"})


def end(job, code=0):
    out, err = job.communicate(timeout=100)
    assert job.returncode == code, (job.args, job.returncode, out, err)
    return err if code else out.splitlines()


def deliver(spec, *more, code=0, before=()):
    return end(begin(spec, *more, before=before), code)


def blocks(folder):
    return sorted(os.path.join(d, f) for d, _, files in os.walk(f"{folder}/dptrain-blocks") for f in files if f != "lock")


class Counted(Server):
    """Counts the fetched bytes of shards, without requests for their sizes."""

    def fetched(self):
        n = 0
        for path, headers in self.log:
            begin_end = headers.get("Range", "")[6:].split("-")
            if path.endswith(".tar") and begin_end != ["0", "0"]:
                n += min(int(begin_end[1]) + 1, os.path.getsize(self.folder + path)) - int(begin_end[0])
        self.log.clear()
        return n


def fetched_once(shards, local, size):
    server = Counted(shards)
    spec, cache = server.url + "/train.json", f"{tmp}/once"
    assert deliver(spec, f"cache={cache}") == local
    assert server.fetched() == size, "two epochs fetch the set once"
    assert {os.stat(b).st_mode & 0o777 for b in blocks(cache)} == {0o600}, "private to this user"
    for more in (["workers=0"], ["workers=7"], ["ranks=4", "workers=1"], ["shuffle=2", "workers=2"]):
        got = deliver(spec, f"cache={cache}", *more)
        assert got[0] == local[0] and (got == local or "shuffle=2" in more), (more, got)
    assert server.fetched() == 0, "later runs fetch nothing"
    jobs = [begin(spec, f"cache={tmp}/jobs", "ranks=2", "workers=2") for _ in range(2)]
    assert [end(j) for j in jobs] == [local, local]
    assert server.fetched() == size, "two jobs fetch each byte once"
    server.stop()


def timed(shards, size):
    """By the server's count, `dptrain bench --loader` fetches nothing in its second pass."""
    server = Counted(shards)
    flags = ["--data-path", server.url + "/train.json", "--image-size", "32", "-b", "8", "--val-split", "0", "--json"]
    done = subprocess.run([DPTRAIN, "bench", "--loader", *flags, "--cache", f"{tmp}/timed", "--epochs", "2", "--nproc-per-node", "2"],
                          capture_output=True, text=True, timeout=100, check=True, env={**os.environ, "no_proxy": "*"})
    said = json.loads(done.stdout)
    first, second = said["passes"]
    assert said["ranks"] == 2 and first["samples"] == second["samples"] == 66, said
    assert server.fetched() == size and second["remote_bytes"] == second["requests"] == 0, said
    assert first["cache_bytes"] + second["cache_bytes"] > 0 and second["bytes"] > 0, said
    done = subprocess.run([DPTRAIN, "bench", "--loader", "--data-path", shards, "-b", "8", "--json", "--no-decode", "--consume-rate", "200", "-j", "1"],
                          capture_output=True, text=True, timeout=100, check=True)
    only = json.loads(done.stdout)["passes"][0]
    assert only["seconds"] >= 66 / 200 and only["local_bytes"] >= only["bytes"] > 0 and only["samples_per_s"] <= 200, only
    server.stop()


def points(runs):
    """What a run recorded: its losses as printed, and the bytes from servers by (rank, step)."""
    said = subprocess.run([DPTRACK, "export", "--series", "--csv", "--experiment", "cached", "--logdir", runs], capture_output=True, text=True,
                          timeout=100, check=True).stdout
    rows = list(csv.DictReader(said.splitlines()))
    return ([r["value"] for r in rows if r["key"] == "train/loss"],
            {(r["rank"], int(r["step"])): float(r["value"]) for r in rows if r["key"] == "data/remote_bytes"})


def trained(shards, size):
    """Two concurrent trainings of two ranks fetch each byte once between them, in the first epoch; the losses are
    those with the shards on disk."""
    server = Counted(shards)

    def start(name, *where):
        return subprocess.Popen([DPTRAIN, "--model", "resnet20", "--image-size", "16", "-b", "8", "--nproc-per-node", "2", "--threads", "1", "--workers", "1",
                                 "--deterministic", "--epochs", "2", "--val-split", "0", "--shuffle", "window", "--shuffle-window", "30", "--experiment", "cached",
                                 "--runs-dir", f"{tmp}/runs-{name}", "--data-path", *where], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/xdg-{name}", "no_proxy": "*"})
    jobs = [start(name, server.url + "/train.json", "--cache", f"{tmp}/trained") for name in ("a", "b")]
    for job in [*jobs, start("disk", f"{shards}/train.json")]:
        end(job)
    assert server.fetched() == size, "two trainings of two ranks fetch each byte once"
    (a, from_a), (b, from_b), (disk, _) = (points(f"{tmp}/runs-{name}") for name in ("a", "b", "disk"))
    steps = len(disk) // 2
    assert a == b == disk and len(disk) == 2 * steps and steps == 5, (a, b, disk)
    came = {key: from_a[key] + from_b[key] for key in from_a}
    assert {rank for rank, _ in came} == {"0", "1"} and max(step for _, step in came) == 2 * steps, came
    assert sum(came.values()) >= size > 0 and not any(n for (_, step), n in came.items() if step > steps + 1), came
    server.stop()


def damaged(shards, local, size):
    server = Counted(shards)
    spec, cache = server.url + "/train.json", f"{tmp}/damaged"
    deliver(spec, f"cache={cache}")
    server.fetched()
    draw, files = random.Random(5), blocks(cache)
    for kind in ("flip", "cut", "tail", "readable", "gone"):
        path = draw.choice(blocks(cache))
        data = bytearray(open(path, "rb").read())
        if kind == "flip":
            data[draw.randrange(len(data) - 60)] ^= 4
        elif kind == "tail":
            data[-3] ^= 1
        elif kind == "cut":
            del data[len(data) // 2:]
        os.chmod(path, 0o666 if kind == "readable" else 0o600)
        with open(path, "wb") as f:
            f.write(data)
        if kind == "gone":
            os.unlink(path)
        assert deliver(spec, f"cache={cache}", "workers=2") == local, kind
        again = server.fetched()
        assert 0 < again < size / 2, (kind, again)
        if kind == "readable":
            os.unlink(path)
    assert len(files) > 3
    job = begin(spec, f"cache={tmp}/killed", "workers=2", "epochs=50")
    while len(blocks(f"{tmp}/killed")) < 2:
        time.sleep(0.002)
    job.kill()
    job.communicate()
    assert deliver(spec, f"cache={tmp}/killed") == local
    server.stop()


def limits(shards, local, size):
    server = Counted(shards)
    spec = server.url + "/train.json"
    assert deliver(spec, f"cache={tmp}/small", f"cache_bytes={size // 2}", "workers=2") == local
    held = sum(map(os.path.getsize, blocks(f"{tmp}/small")))
    assert size // 8 < held <= size // 2, (held, size)
    os.makedirs(f"{tmp}/full")
    full = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=700k none {tmp}/full && exec "$0" "$@"']
    if subprocess.run([*full, "true"], capture_output=True, check=False).returncode:
        full = ["sh", "-c", 'trap "" XFSZ; ulimit -f 300; exec "$0" "$@"']
    got = deliver(spec, f"cache={tmp}/full", "workers=2", before=full)
    assert got[:-1] == local and "blocks are not cached" in got[-1], got
    os.makedirs(f"{tmp}/no-room")
    full = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=4k none {tmp}/no-room && head -c 4096 /dev/zero >{tmp}/no-room/file && exec "$0" "$@"']
    if not subprocess.run([*full, "true"], capture_output=True, check=False).returncode:
        assert "No space left on device" in deliver(spec, f"cache={tmp}/no-room", code=1, before=full)
    os.makedirs(f"{tmp}/others/dptrain-blocks", mode=0o777)
    os.chmod(f"{tmp}/others/dptrain-blocks", 0o777)
    assert "only you can write" in deliver(spec, f"cache={tmp}/others", code=1)
    assert "No such file" in deliver(spec, f"cache={tmp}/none/there", code=1)
    server.stop()


def memory(shards, local, size):
    if os.path.exists(RAM):
        print(f"{RAM} exists and may be in use: the cache in memory is not tested")
        return
    server = Counted(shards)
    spec = server.url + "/train.json"
    said = deliver(spec, "cache=ram", f"memory_bytes={size // 2}", code=1)
    assert said.startswith("--cache ram: ") and "have room for" in said, said
    jobs = [begin(spec, "cache=ram", "epochs=2", "ranks=2") for _ in range(2)]
    assert [end(j) for j in jobs] == [local, local]
    assert server.fetched() <= 2 * size
    wait_gone("the last job ended")
    job = begin(spec, "cache=ram", "epochs=1000")
    while not blocks(RAM):
        time.sleep(0.002)
    other = begin(spec, "cache=ram")
    job.send_signal(signal.SIGKILL)
    job.communicate()
    assert end(other) == local
    wait_gone("one was killed, the other ended")
    server.stop()


def wait_gone(when):
    until = time.monotonic() + 10
    while os.path.exists(RAM):
        assert time.monotonic() < until, f"{RAM} still exists although {when}"
        time.sleep(0.01)


with tempfile.TemporaryDirectory(prefix="dptrain-cache-") as tmp:
    noisy.folder(f"{tmp}/folder", {"train": 66, "val": 9})
    there = f"{tmp}/shards"
    subprocess.run([DPTRAIN, "shard", "--data-path", f"{tmp}/folder", "--out", there, "--shard-size", "200kB"], check=True,
                   stdout=subprocess.DEVNULL)
    stream = deliver(there)
    total = sum(os.path.getsize(f"{there}/{n}") for n in os.listdir(there) if n.startswith("train") and n.endswith(".tar"))
    fetched_once(there, stream, total)
    timed(there, total)
    trained(there, total)
    damaged(there, stream, total)
    limits(there, stream, total)
    memory(there, stream, total)
print("cache: one stream, each byte fetched once; damage, limits, released memory")
