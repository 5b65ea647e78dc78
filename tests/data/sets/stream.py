#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One stream, wherever a set is stored and whoever reads it: the SHA-256 of two epochs is the same for 1 to 4 ranks x
0, 1 and 7 workers x disk, HTTP, S3, a cache (empty, then full) and a cache in memory, for each shuffle; every epoch
has each sample once."""
import collections
import itertools
import os
import subprocess
import sys
import tempfile

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
sys.path.insert(0, os.path.join(SRC, "tests", "data"))
import noisy  # noqa: E402
import objectserver  # noqa: E402
import s3server  # noqa: E402


def deliver(spec, **options):
    done = subprocess.run([os.path.join(BUILD, "tests", "data", "deliver"), spec, "window=30", "batch=8", "epochs=2",
                           *[f"{k}={v}" for k, v in options.items()]], capture_output=True, text=True, timeout=100, check=False,
                          env={**s3.environment(), "XDG_CACHE_HOME": os.path.join(tmp, "kept")})
    assert done.returncode == 0, (spec, options, done)
    return done.stdout.splitlines()


def each_once(spec, shuffle):
    """Two epochs, without augmentation, contain each stored sample twice, in different orders."""
    def samples(**options):
        return [line for line in deliver(spec, list=1, plain=1, **options) if len(line.split()[-1]) == 64 and " " in line]
    stored, delivered = samples(shuffle=0)[:66], samples(shuffle=shuffle)
    assert len(set(stored)) == 66 and collections.Counter(delivered) == {s: 2 for s in stored} and delivered[:66] != stored, shuffle
    assert sorted(delivered[:66]) == sorted(stored) and delivered[:66] != delivered[66:], "the second epoch has another order"


def main():
    http = objectserver.Server(shards)
    places = {"file": (shards, {}), "http": (http.url + "/train.json", {}), "s3": (f"s3://{os.path.basename(tmp)}/shards", {}),
              "cache": (http.url + "/train.json", {"cache": f"{tmp}/cache"}), "ram": (http.url + "/train.json", {"cache": "ram"})}
    for shuffle in (2, 3):  # global, window
        each_once(shards, shuffle)
        sums = collections.defaultdict(list)
        for (name, (spec, more)), ranks, workers in itertools.product(places.items(), (1, 2, 3, 4), (0, 1, 7)):
            sums[tuple(deliver(spec, shuffle=shuffle, ranks=ranks, workers=workers, **more)[:2])].append((name, ranks, workers))
        assert len(sums) == 1, (shuffle, dict(sums))
        assert sum(map(len, sums.values())) == 60 and next(iter(sums))[0] == "samples 132", sums
    http.stop()


with tempfile.TemporaryDirectory(prefix="dptrain-stream-") as tmp:
    shards = f"{tmp}/shards"
    noisy.folder(f"{tmp}/folder", {"train": 66, "val": 3})
    subprocess.run([os.path.join(BUILD, "dptrain"), "shard", "--data-path", f"{tmp}/folder", "--out", shards, "--shard-size", "400kB"], check=True,
                   stdout=subprocess.DEVNULL)
    s3 = s3server.S3(os.path.dirname(tmp))
    main()
    s3.stop()
print("stream: 2 shuffles x 60 readers, one sum each")
