#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One ctrl-C while a run waits for data that do not arrive: it ends at once as interrupted, on all ranks, including
those next to the waiting one, with a checkpoint of the last complete step, from which --resume auto gives the bits of
an undisturbed run."""
import os
import signal
import subprocess
import sys
import tempfile
import time

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
DPTRAIN = os.path.join(BUILD, "dptrain")
sys.path.insert(0, os.path.join(SRC, "tests", "data"))
sys.path.insert(0, os.path.join(SRC, "tests", "train"))
import noisy  # noqa: E402
from helper import KILLED, LAUNCHER, fast, read_run  # noqa: E402
from objectserver import Server  # noqa: E402
from s3server import S3  # noqa: E402

FOR_EVER = 600  # seconds, longer than anything here takes
BATCH, STEPS = 4, 3  # steps before the waiting one
LAYOUTS = {
    "a rank": [],
    "a rank without threads": ["--workers", "0"],
    "ranks": ["--nproc-per-node", "2"],
    "ranks, micro-batches": ["--nproc-per-node", "2", "--batch-size", "1", "--workers", "0"],
    "parts": ["--nproc-per-node", "2", "--strategy", "fsdp"],
    "stages": ["--nproc-per-node", "2", "--strategy", "pdp"],
}


def flags(spec, runs, *more):
    return [DPTRAIN, "train", "--model", "resnet20", "--image-size", "16", "--global-batch-size", str(BATCH), "--epochs", "1", "--workers", "2",
            "--seed", "3", "--shuffle", "global", "--augment", "none", "--deterministic", "--data-timeout", str(FOR_EVER), "--data-path", spec,
            "--run-name", "r", "--runs-dir", runs, *map(str, fast()), *more]


def started(server, line):
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
                            env={**server.environment(), "XDG_CACHE_HOME": os.path.join(tmp, "cache")})


def ended(run, code, name):
    try:
        said = run.communicate(timeout=FOR_EVER / 2)[0]
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        raise
    assert run.returncode == code, (name, run.returncode, said)
    return said


def await_that(ready, run, name):
    while not ready():
        assert run.poll() is None, (name, run.communicate()[0])
        time.sleep(0.02)


def interrupted(run, name):
    """Sends SIGINT as a terminal does, to the launcher and the ranks."""
    began = time.monotonic()
    os.killpg(run.pid, signal.SIGINT)
    said = ended(run, 130, name)
    print("%s: ended after %.2f s" % (name, time.monotonic() - began))
    assert time.monotonic() - began < FOR_EVER / 10, (name, said)
    return said


def weights(runs):
    with open(os.path.join(read_run(runs)["folder"], "model.safetensors"), "rb") as f:
        return f.read()


def losses(runs):
    return read_run(runs)["series"].get(("train/loss", -1), {})


def order_of(server, spec):
    """The pictures in the order of their samples: one request at a time."""
    ended(started(server, flags(spec, os.path.join(tmp, "order"), "--workers", "0", "--read-ahead", "1")), 0, "order")
    return list(dict.fromkeys(path for path, _ in server.log if path.endswith(".png") and "/train/" in path))


def resumes(server, spec, stuck, name, layout):
    """A run stalls at one picture, is interrupted, and is resumed when the picture is available."""
    plain, cut = (os.path.join(tmp, f"{part} {name}") for part in ("plain", "cut"))
    server.held = None
    ended(started(server, flags(spec, plain, *layout)), 0, name)
    server.held = stuck
    run = started(server, flags(spec, cut, *layout))
    await_that(lambda: len(losses(cut)) == STEPS, run, name)
    said = interrupted(run, name)
    assert "waiting" not in said, (name, said)
    before = read_run(cut)
    assert before["status"][LAUNCHER] == KILLED and len(losses(cut)) == STEPS, (name, before)
    assert os.listdir(os.path.join(before["folder"], "checkpoints")) == [f"step-{STEPS}"], name
    server.held = None
    ended(started(server, flags(spec, cut, "--resume", "auto", *layout)), 0, name + ", resumed")
    assert losses(cut) == losses(plain), (name, losses(cut), losses(plain))
    assert weights(cut) == weights(plain), name


def starts_nothing(shards):
    """Before the run exists: a server that does not answer requests for its objects."""
    server = Server(shards)
    server.environment = lambda: {**os.environ, "no_proxy": "*"}
    for what in (".json", ".tar"):
        server.held = what
        for layout in ([], ["--nproc-per-node", "2"]):
            server.standing.clear()
            runs = os.path.join(tmp, "none")
            run = started(server, flags(f"{server.url}/train-{{000000..000001}}.tar" if what == ".tar" else f"{server.url}/train.json", runs, *layout))
            await_that(server.standing.is_set, run, what)
            interrupted(run, f"the start, {what} {' '.join(layout)}")
            assert not os.path.exists(runs) or not os.listdir(runs)
    server.held = None
    server.stop()


def server_gone(spec, stuck):
    """A server that disappears during a run: exit code 1 in time, with its name."""
    for ranks in ("1", "2"):
        server, runs = S3(tmp), os.path.join(tmp, "gone " + ranks)
        server.held = stuck
        run = started(server, [*flags(spec, runs, "--nproc-per-node", ranks), "--data-timeout", "2"])
        await_that(lambda: len(losses(runs)) == STEPS, run, "gone")
        server.stop()
        began = time.monotonic()
        said = ended(run, 1, "gone")
        print("no server, %s ranks: ended after %.1f s of 2" % (ranks, time.monotonic() - began))
        assert "nothing has arrived for" in said and stuck.strip("/") in said, said


with tempfile.TemporaryDirectory(prefix="dptrain-waits-") as tmp:
    noisy.folder(f"{tmp}/b/folder", {"train": 8 * BATCH, "val": 3})
    subprocess.run([DPTRAIN, "shard", "--data-path", f"{tmp}/b/folder", "--out", f"{tmp}/shards", "--shard-size", "300kB"], check=True,
                   stdout=subprocess.DEVNULL)
    bucket = S3(tmp)
    late = order_of(bucket, "s3://b/folder")[STEPS * BATCH]
    for word, more in LAYOUTS.items():
        resumes(bucket, "s3://b/folder", late, word, more)
    bucket.stop()
    starts_nothing(f"{tmp}/shards")
    server_gone("s3://b/folder", late)
print("waits: one ctrl-C ends them")
