#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shards on an HTTP server: the same stream as from the disk, whatever the server does wrong; a server that disappears
or an object that changes ends the run with one line."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
DPTRAIN = os.path.join(BUILD, "dptrain")
DELIVER = os.path.join(BUILD, "tests", "data", "deliver")
sys.path.insert(0, os.path.join(SRC, "tests", "data"))
sys.path.insert(0, os.path.join(SRC, "tests", "tracker"))
import journal  # noqa: E402
import noisy  # noqa: E402
from objectserver import Server  # noqa: E402
from s3server import ID, S3, SECRET  # noqa: E402


def environment(fresh=None, env=()):
    return {**(env or os.environ), "XDG_CACHE_HOME": os.path.join(tmp, fresh or "cache"), "no_proxy": "*"}


def deliver(spec, code=0, fresh=None, env=(), **options):
    done = subprocess.run([DELIVER, spec, *[f"{k}={v}" for k, v in options.items()]], capture_output=True, text=True,
                          timeout=100, check=False, env={**dict(env), **environment(fresh, env)})
    assert done.returncode == code, (spec, options, done)
    if code:
        assert len(done.stderr.splitlines()) == 1, done.stderr
        return done.stderr
    return done.stdout.splitlines()[:2]


def make(folder, shards):
    noisy.folder(folder, {"train": 66, "val": 9})
    subprocess.run([DPTRAIN, "shard", "--data-path", folder, "--out", shards, "--shard-size", "400kB"], check=True,
                   stdout=subprocess.DEVNULL)


def same_stream(shards, local):
    server = Server(shards)
    spec = server.url + "/train.json"
    for kind in (2, 3):
        for ranks, workers in ((1, 0), (2, 1), (4, 7)):
            got = deliver(spec, shuffle=kind, window=30, batch=8, epochs=2, ranks=ranks, workers=workers)
            assert got == local[kind], (kind, ranks, workers, got)
    assert deliver(spec, val=1, val_path=server.url + "/val.json") == deliver(shards, val=1)
    names = sorted(n for n in os.listdir(shards) if n.startswith("train") and n.endswith(".tar"))
    assert deliver(f"{server.url}/moved/train-{{000000..{len(names) - 1:06d}}}.tar", shuffle=3, window=30, batch=8, epochs=2) == local[3]
    server.reset()
    deliver(spec, shuffle=3, window=30, batch=8, ranks=4, workers=2)
    size = sum(os.path.getsize(os.path.join(shards, n)) for n in names)
    assert server.bytes < 1.1 * size + 10000, f"four ranks fetched {server.bytes} of {size} bytes"
    assert any("If-Match" in h for _, h in server.log), "requests have no If-Match"
    server.stop()
    return spec


def faulty(shards, local):
    for kind, faults in ((2, ["503", "cut", "wrong", "429"]), (3, ["503", "ignored", "html", "reset", "500", "cut", "wrong"]), (2, ["cork"])):
        server = Server(shards, faults=faults, every=4 if kind == 3 else 9)
        got = deliver(server.url + "/train.json", shuffle=kind, window=30, batch=8, epochs=2, workers=3, fresh=f"f{kind}{faults[0]}")
        assert server.failed > 2, server.failed
        assert got == local[kind], (faults, got)
        server.stop()
    # The length is in the answer to the first request of an object; later ones need not repeat it (RFC 9110).
    server = Server(shards, faults=["star"], every=1)
    server.spares_probes = True
    assert deliver(server.url + "/train.json", shuffle=2, window=30, batch=8, epochs=2, workers=3, fresh="star") == local[2] and server.failed > 2
    server.spares_probes = False
    said = deliver(server.url + "/train.json", code=1, shuffle=2, window=30, batch=8, fresh="no length")
    assert "the server does not state the length" in said, said
    server.stop()
    server = Server(shards, faults=["flip"], every=1)
    server.spares_probes = server.once = True
    assert deliver(server.url + "/train.json", shuffle=3, window=30, batch=8, epochs=2, workers=3) == local[3]
    assert server.failed > 2, "each shard arrives corrupted once"
    server.once = False
    said = deliver(server.url + "/train.json", code=1, shuffle=3, window=30, batch=8)
    assert "have another CRC-32C than the index" in said and ".tar" in said, said
    server.stop()
    server = Server(shards, faults=["stall"], every=25, stall=30)
    began = time.monotonic()
    assert deliver(server.url + "/train.json", shuffle=2, batch=8, epochs=2, workers=3) == local[2]
    assert server.failed and time.monotonic() - began < 25, "a stalled request is repeated"
    server.stop()


def trained(server, spec, runs, cached):
    """A run over S3 with a cache: bytes by source and step."""
    done = subprocess.run([DPTRAIN, "--model", "resnet20", "--image-size", "16", "-b", "8", "--backend", "ref", "--precision", "fp64",
                           "--max-steps", "3", "--workers", "0", "--data-path", spec, "--cache", os.path.join(tmp, "kept"),
                           "--runs-dir", runs], capture_output=True, text=True, check=False, timeout=100,
                          env={**server.environment(), "XDG_CACHE_HOME": os.path.join(tmp, "cache")})
    assert done.returncode == 0, done
    (main,) = [j for j in journal.journals(next(d for d, _, f in os.walk(runs) if f)) if j.header["rank"] == 0]
    points = {key: dict(main.series(f"data/{key}", 0)) for key in
              ("remote_bytes", "cache_bytes", "local_bytes", "requests", "retries")}
    assert not points["local_bytes"] and not points["retries"], points
    if cached:
        assert not points["remote_bytes"] and not points["requests"] and min(points["cache_bytes"].values()) > 1000, points
    else:
        assert sum(points["remote_bytes"].values()) > 100000 and sum(points["requests"].values()) > 3, points


def s3(shards, local):
    """A bucket: listed as a folder, by the index, by braces; more than one page of names; temporary keys; no key is
    recorded."""
    bucket, folder = os.path.basename(os.path.dirname(shards)), os.path.basename(shards)
    server = S3(os.path.dirname(os.path.dirname(shards)), page=3)
    spec = f"s3://{bucket}/{folder}"
    names = sorted(n for n in os.listdir(shards) if n.startswith("train") and n.endswith(".tar"))
    for kind, where in ((2, spec + "/"), (3, spec), (3, spec + "/train.json"), (2, f"{spec}/train-{{000000..{len(names) - 1:06d}}}.tar")):
        got = deliver(where, env=server.environment(), shuffle=kind, window=30, batch=8, epochs=2, ranks=2, workers=3)
        assert got == local[kind], (where, got)
    assert deliver(spec, env=server.environment(), val=1) == deliver(shards, val=1)
    server.faults, server.every = ["503", "cut", "wrong", "reset", "html"], 4
    assert deliver(spec, env=server.environment(), shuffle=3, window=30, batch=8, epochs=2, workers=3, fresh="s3 faults") == local[3]
    assert server.failed > 3
    server.faults = []
    for name in ("corpus/a.txt", "corpus/b.jsonl"):
        os.makedirs(os.path.dirname(f"{shards}/../{name}"), exist_ok=True)
        with open(f"{shards}/../{name}", "w", encoding="utf-8") as f:
            f.write("{}\n")
    around = os.path.dirname(f"s3://{bucket}/{folder}")
    said = deliver(f"{around}/no-such-prefix", code=1, env=server.environment())
    assert f"{around}/no-such-prefix: nothing is there" in said, said
    os.makedirs(f"{shards}/../saved/train")
    shutil.copy(os.path.join(SRC, "tests", "data", "formats", "stream.arrow"), f"{shards}/../saved/train/data-00000-of-00001.arrow")
    said = deliver(f"{around}/saved", code=1, env=server.environment())
    assert f"{around}/saved: its shards are in folders (train/data-00000-of-00001.arrow): name the folder with those of training" in said, said
    for how in ({}, {"text": 1}):
        said = deliver(f"{around}/corpus", code=1, env=server.environment(), **how)
        assert f"{around}/corpus: holds 2 texts and no shards: dptrain tokenize --data-path {around}/corpus --out DIR" in said, said
    for more, words in (({"AWS_SECRET_ACCESS_KEY": "planted"}, "SignatureDoesNotMatch"), ({"AWS_ACCESS_KEY_ID": ""}, "AWS_ACCESS_KEY_ID is not set")):
        for where in (spec, spec + "/train.json"):
            said = deliver(where, code=1, env=server.environment(**more))
            assert words in said and "planted" not in said, said
    assert "nothing is there" in deliver(f"s3://{bucket}/none", code=1, env=server.environment())
    assert "unsupported URL" in deliver("hdfs://bucket/train.tar", code=1)
    for cached in (0, 1):
        trained(server, spec, os.path.join(tmp, f"s3runs{cached}"), cached)
    for path in [os.path.join(d, f) for d, _, files in os.walk(tmp) for f in files if not f.endswith(".tar")]:
        with open(path, "rb") as f:
            data = f.read()
        assert SECRET.encode() not in data and ID.encode() not in data, path
    server.stop()


def unread(shards):
    """Labels are in our index and offsets in DALI's, so shards are not scanned for samples; except one whose .idx is
    missing."""
    there = f"{tmp}/unread"
    shutil.copytree(shards, there, ignore=shutil.ignore_patterns(".dptrain"))
    server, few = Server(there), {"shuffle": 2, "batch": 6, "first": 10, "val_share": 0}
    tars = {n: os.path.getsize(f"{there}/{n}") for n in os.listdir(there) if n.startswith("train") and n.endswith(".tar")}
    assert len(tars) > 2 and sum(tars.values()) > 1000000

    def opened(cache):
        server.reset()
        done = subprocess.run([DELIVER, f"{server.url}/train.json", *[f"{k}={v}" for k, v in few.items()]], capture_output=True, text=True,
                              timeout=100, check=True, env=environment(cache))
        assert done.stdout.splitlines()[:2] == deliver(f"{shards}/train.json", **few), done
        return server.bytes, done.stdout
    got, said = opened("unread-1")
    assert got < 6 * 30000 + 100000 and "were read" not in said, (got, said)
    name = sorted(tars)[1]
    for i, text in enumerate((None, "v1.2 3\n", "noise")):
        if text is None:
            os.remove(f"{there}/{name[:-4]}.idx")
        else:
            with open(f"{there}/{name[:-4]}.idx", "w", encoding="ascii") as f:
                f.write(text)
        got, said = opened(f"unread-2{i}")
        assert got < 6 * 30000 + 100000 + 2 * tars[name] and "1 of 5 shards have no complete .idx".replace("5", str(len(tars))) in said, (got, said)
    server.stop()


def listed(shards, folder):
    """The ranks of a node request a listing once, however many need it; a later run requests it again; files that
    others wrote or damaged are ignored."""
    server = S3(os.path.dirname(os.path.dirname(shards)))
    home = os.path.join(tmp, "listed")

    def asked(where, samples):
        """For each request for a listing, whether it was the first page."""
        server.listings.clear()
        server.log.clear()
        done = subprocess.run([DPTRAIN, "bench", "--loader", "--data-path", f"s3://{os.path.basename(os.path.dirname(where))}/{os.path.basename(where)}", "-b", "8",
                               "--image-size", "16", "--val-split", "0", "--nproc-per-node", "4", "--epochs", "1", "--json"], capture_output=True, text=True,
                              timeout=100, check=False, env={**server.environment(), "XDG_CACHE_HOME": home})
        assert done.returncode == 0 and json.loads(done.stdout)["passes"][0]["samples"] == samples, done
        return sorted("delimiter" in query for query in server.listings if "continuation-token" not in query)

    os.mkdir(home)
    assert asked(shards, 66) == [True], "four ranks, both splits: one listing"
    probed = [path for path, headers in server.log if path.endswith(".tar") and headers.get("Range") == "bytes=0-0"]
    assert not probed and any(path.endswith(".tar") for path, _ in server.log), "the listing contains the sizes of shards"
    assert asked(shards, 66) == [True], "the next run lists again"
    assert asked(folder, 66) == [False, True], "pictures: the folder's entries, then everything below it"
    kept = [os.path.join(home, "dptrain", n) for n in os.listdir(f"{home}/dptrain") if n.endswith(".list")]
    assert len(kept) == 3 and all(os.stat(path).st_mode & 0o777 == 0o600 for path in kept), kept
    for path in kept:
        os.chmod(path, 0o666)
    assert asked(shards, 66) == 4 * 2 * [True], "files that others may write are ignored"
    server.stop()


def indexed(*folders):
    """The same by http, where an index names the files; names with special characters of URLs; what an index must not
    contain."""
    server = Server(os.path.dirname(folders[0]))
    for folder in folders:
        name = os.path.basename(folder)
        with open(f"{folder}/files.txt", "w", encoding="utf-8") as f:
            for d, _, files in os.walk(folder):
                f.writelines(f"{os.path.getsize(os.path.join(d, n))} {os.path.relpath(os.path.join(d, n), folder)}\n" for n in files)
        for options in ({"shuffle": 2, "batch": 2, "workers": 3}, {"val": 1, "val_share": 0.3}):
            options["max_unreadable"] = 1
            assert deliver(f"{server.url}/{name}/files.txt", **options) == deliver(folder, **options), (folder, options)
    asked = [line for line in server.log if ".png" in str(line)]
    assert any("y%20z%2B.png" in str(line) for line in asked), asked[:3]
    for line in ("train/a.png", "12 /etc/a.png", "x 1.png", "12  a//b.png", "a text, not an index"):
        with open(f"{folders[0]}/files.txt", "w", encoding="utf-8") as f:
            f.write(line + "\n")
        assert "expected a file's size and its path" in deliver(f"{server.url}/{os.path.basename(folders[0])}/files.txt", code=1), line
    assert "password" in deliver("http://me:secret@127.0.0.1:1/files.txt", code=1)
    os.remove(f"{folders[0]}/files.txt")
    server.stop()


def pictures(folder):
    """Single pictures in a bucket, by class: the same set as from the same files on disk, with one request each."""
    server = S3(os.path.dirname(os.path.dirname(folder)), page=7)
    bucket = os.path.basename(os.path.dirname(folder))

    def both(name, **options):
        got = deliver(f"s3://{bucket}/{name}/", env=server.environment(), **options)
        assert got == deliver(os.path.join(os.path.dirname(folder), name), **options), (name, options, got)
        return got
    for ranks, workers in ((1, 0), (3, 4)):
        both("folder", shuffle=2, batch=8, epochs=2, ranks=ranks, workers=workers)
    both("folder", val=1)
    for where, names in (("odd/b", ["x.png", "y z+.png"]), ("odd/a", ["1.png"]), ("odd/a-b", ["1.png", ".2.png"]), ("odd/a/in", ["3.PNG", "notes.txt"]),
                         ("odd/.hidden", ["4.png"]), ("odd", ["alone.png"])):
        os.makedirs(f"{tmp}/{where}", exist_ok=True)
        for i, name in enumerate(names):
            source = sorted(os.path.join(d, f) for d, _, files in os.walk(folder) for f in files)[len(where) * 3 + i]
            shutil.copy(source, f"{tmp}/{where}/{name}")
    assert both("odd", shuffle=2, batch=2, max_unreadable=1)[0] == "samples 5"
    assert both("folder/train", shuffle=2, batch=8, val_share=0.4)[0] != both("folder/train", val=1, val_share=0.4)[0]
    server.log.clear()
    spec, kept = f"s3://{bucket}/folder", f"{tmp}/kept-pictures"
    first = deliver(spec, env=server.environment(), shuffle=3, window=30, batch=8, ranks=2, workers=2, cache=kept)
    asked = [path for path, _ in server.log if path.split("?")[0].endswith(".png")]
    assert first[0] == "samples 66" and len(asked) == len(set(asked)) == 66, "one request per picture, and none for its size"
    server.log.clear()
    assert deliver(spec, env=server.environment(), shuffle=3, window=30, batch=8, cache=kept) == first
    assert all("list-type" in path for path, _ in server.log), "the second run only lists"
    with open(sorted(os.path.join(d, f) for d, _, files in os.walk(f"{folder}/train") for f in files)[3], "r+b") as f:
        f.truncate(100)
    done = subprocess.run([DELIVER, spec, "batch=8"], capture_output=True, text=True, timeout=100, check=True, env=environment(env=server.environment()))
    assert "broken 1" in done.stdout and f"{spec}/train/" in done.stdout, done.stdout
    indexed(folder, f"{tmp}/odd")
    said = deliver(f"s3://{bucket}/none", code=1, env=server.environment())
    assert "nothing is there" in said, said
    server.stop()


def refusals(shards):
    server = Server(shards)
    url = server.url
    assert "status 404" in deliver(url + "/none.json", code=1)
    assert "status 404" in deliver(url + "/train-{000000..000099}.tar", code=1)
    secret = url.replace("http://", "http://user:hush@") + "/none.tar?X-Amz-Signature=hush"
    said = deliver(secret, code=1)
    assert "hush" not in said and ".netrc" in said
    assert ".netrc" in deliver(url + "/train.json?X-Amz-Signature=hush", code=1)
    always = Server(shards, faults=["html"], every=1)
    assert "ignored the requested range" in deliver(always.url + "/train.json", code=1)
    always.stop()
    deliver(url + "/train.json")  # caches the table of samples
    path = os.path.join(shards, "train-000000.tar")
    data = open(path, "rb").read()
    server.stop()
    began = time.monotonic()
    assert "nothing has arrived for" in deliver(url + "/train.json", code=1, timeout=2)
    assert time.monotonic() - began < 20
    changing = Server(shards, latency=0.02)
    run = subprocess.Popen([DELIVER, changing.url + "/train.json", "epochs=40", "shuffle=2", "workers=1"], stderr=subprocess.PIPE,
                           stdout=subprocess.DEVNULL, text=True, env=environment("changing"))
    while changing.requests < 40:
        time.sleep(0.01)
    with open(path, "wb") as f:
        f.write(data[:600] + b"x" + data[601:])
    said = run.communicate(timeout=60)[1]
    assert run.returncode == 1 and "has changed since" in said and "train-000000.tar" in said, said
    with open(path, "wb") as f:
        f.write(data)
    changing.stop()


def dead(shards):
    """A server that names the sizes of its objects and then stops answering: one timeout for all shards, not one each."""
    folder, n = f"{tmp}/dead", 4 * os.cpu_count() + 8
    os.mkdir(folder)
    for i in range(n):
        shutil.copy(os.path.join(shards, "train-000000.tar"), f"{folder}/train-{i:06d}.tar")
    server = Server(folder, faults=["stall"], every=1, stall=1000)
    server.spares_probes = True
    for spec in (f"{server.url}/train-{{000000..{n - 1:06d}}}.tar", f"{server.url}/train.json"):
        server.log.clear()
        if spec.endswith(".json"):  # labels are known: the indexes beside the shards are read first
            with open(os.path.join(shards, "train.json"), encoding="utf-8") as f:
                entry = json.load(f)["shardlist"][0]
            with open(f"{folder}/train.json", "w", encoding="utf-8") as f:
                json.dump({"__kind__": "wids-shard-index-v1",
                           "shardlist": [{**entry, "url": f"train-{i:06d}.tar"} for i in range(n)]}, f)
            server.held = ".idx"
        assert "nothing has arrived for" in deliver(spec, code=1, fresh="dead", timeout=2)
        asked = {path for path, headers in server.log
                 if path.endswith(".idx") or (path.endswith(".tar") and headers.get("Range") != "bytes=0-0")}
        assert 0 < len(asked) <= os.cpu_count(), (spec, sorted(asked))
    server.held = None
    server.stop()


with tempfile.TemporaryDirectory(prefix="dptrain-remote-") as tmp:
    there = f"{tmp}/shards"
    make(f"{tmp}/folder", there)
    unread(there)
    streams = {k: deliver(there, shuffle=k, window=30, batch=8, epochs=2) for k in (2, 3)}
    same_stream(there, streams)
    faulty(there, streams)
    s3(there, streams)
    pictures(f"{tmp}/folder")
    listed(there, f"{tmp}/folder")
    dead(there)
    refusals(there)
print("remote: one stream, despite all faults")
