# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of --cache-shared: a store that counts, and jobs of two ranks on each of two or three nodes, which
are launchers on this machine with a cache each."""
import contextlib
import os
import socket
import subprocess

import noisy
from helper import DPTRAIN, Folder, environment, skip
from objectserver import Server
from spaces import has_transport

SAMPLES = 400
KEY = {"DPTRAIN_JOB_KEY": "a secret of this job", "no_proxy": "*"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Store(Server):
    """Counts the blocks that were fetched, without requests for sizes."""

    def blocks(self):
        found = [(path, headers["Range"]) for path, headers in self.log if path.endswith(".tar") and headers.get("Range") != "bytes=0-0"]
        self.log.clear()
        return found

    def size(self, path, wanted):
        begin, end = map(int, wanted[6:].split("-"))
        return min(end + 1, os.path.getsize(self.folder + path)) - begin


def launch(folder, *flags, before=(), command=(), nodes=2, nnodes=None):
    """Starts a job; cache0, cache1, ... in the folder are the caches of its nodes. before: a command line for each node
    that runs the program."""
    port = free_port()
    job = []
    for i in range(nodes):
        cache = os.path.join(folder, "cache%d" % i)
        os.makedirs(cache, exist_ok=True)
        flags_i = ["--nnodes", nnodes or nodes, "--nproc-per-node", 2, "--master-addr", "127.0.0.1", "--master-port", port, "--node-rank", i, "--threads", 1,
                   "--cache", cache, *flags]
        job.append(subprocess.Popen([*(before[i] if before else ()), DPTRAIN, *command, *map(str, flags_i)], env=environment(KEY), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    universal_newlines=True, stdin=subprocess.DEVNULL))
    return job


@contextlib.contextmanager
def stored(samples=SAMPLES):
    """Yields a folder, a store of shards in it, and the bytes and the number of the shards, which are a block each."""
    if not has_transport("ucx"):
        skip("transport ucx is not built")
    with Folder() as folder:
        noisy.folder(os.path.join(folder, "pictures"), {"train": samples, "val": 9})
        shards = os.path.join(folder, "shards")
        subprocess.run([DPTRAIN, "shard", "--data-path", os.path.join(folder, "pictures"), "--out", shards, "--shard-size", "200kB"], check=True,
                       stdout=subprocess.DEVNULL)
        names = [n for n in os.listdir(shards) if n.startswith("train") and n.endswith(".tar")]
        store = Store(shards)
        yield folder, store, sum(os.path.getsize(os.path.join(shards, n)) for n in names), len(names)
        store.stop()
