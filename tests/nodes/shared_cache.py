#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--cache-shared, four loaders on two nodes: by the store's count each block is fetched once; a second job fetches
nothing, whatever the order of the nodes; two caches that together hold the set push out copies, not blocks; smaller
ones fetch again."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "train"), os.path.join(HERE, "..", "data")]

from helper import DPTRAIN, check, environment, finish
from jobs import ended
from shared_jobs import KEY, SAMPLES, launch, stored


def bench(name, folder, store, *flags, **more):
    """Times the loader for two passes; returns the sums of both passes, and all output."""
    job = launch(folder, "--loader", "--cache-shared", "--data-path", store.url + "/train.json", "--image-size", 16, "-b", 8, "--val-split", 0, "--json",
                 "--epochs", 2, *flags, command=["bench"], **more)
    codes, texts = ended(name, job)
    if not check(codes == [0, 0], "%s: exit codes %s: %s" % (name, codes, texts)):
        return {}, texts
    passes = json.loads(texts[0][:texts[0].rindex("}") + 1])["passes"]
    check(all(p["samples"] == SAMPLES for p in passes), "%s: every sample is delivered: %s" % (name, passes))
    return {k: sum(p[k] for p in passes) for k in passes[0]}, texts


def each_block_once(folder, store, total, n_blocks):
    said, texts = bench("once", folder, store)
    blocks = store.blocks()
    check(len(blocks) == len(set(blocks)) == n_blocks, "each block is fetched once: %d requests for %d of %d blocks" % (len(blocks), len(set(blocks)), n_blocks))
    check(said.get("peer_failures") == 0 and 0 < said.get("remote_bytes", 0) <= total, "the job counts it: %s" % said)
    check(said.get("peer_bytes", 0) > total / 4, "the nodes served each other: %s" % said)
    check("--cache-shared: 2 machines, 2 caches" in texts[0] + texts[1], "the first rank says who shares: %s" % texts)
    for turn in ("again", "nodes in the other order"):
        said, texts = bench(turn, folder, store)
        check(not store.blocks() and said.get("remote_bytes") == 0, "%s: nothing is fetched: %s, %s" % (turn, said, texts))
        for old, new in (("cache0", "tmp"), ("cache1", "cache0"), ("tmp", "cache1")):
            os.rename(os.path.join(folder, old), os.path.join(folder, new))


def small_caches(folder, store, total, n_blocks):
    """Two caches of four fifths of the set hold it: a node's own blocks push out the copies. Two caches of a fifth do
    not: the second job fetches again. A block for each rank may exceed the limit."""
    for part, fits in ((0.8, True), (0.2, False)):
        where = "%s-%d" % (folder, 10 * part)
        for turn in range(2):
            said, texts = bench("cache of %g" % part, where, store, "--cache-size", int(part * total))
            blocks = store.blocks()
            counted = sum(store.size(*b) for b in blocks)
            check(said.get("peer_failures") == 0, "cache of %g: %s, %s" % (part, said, texts))
            if fits:
                check(len(blocks) == (0 if turn else n_blocks), "cache of %g, job %d: %d blocks fetched" % (part, turn, len(blocks)))
            else:
                check(turn == 0 or 0.3 * total < counted <= 2 * total, "cache of %g, job %d: %d of %d bytes fetched" % (part, turn, counted, total))
        held = [sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(os.path.join(where, "cache%d" % i)) for f in files if f != "lock") for i in range(2)]
        check(all(h <= part * total + 2 * 240000 for h in held), "cache of %g: the caches hold %s" % (part, held))


def refusals(folder, store):
    flags = ["--loader", "--data-path", store.url + "/train.json", "--image-size", 16, "--json", "--cache-shared", "--val-split", 0]
    p = subprocess.run([DPTRAIN, "bench", *map(str, flags)], env=environment(KEY), stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60)
    check(p.returncode == 2 and "--cache-shared: needs --cache DIR or --cache ram" in p.stderr, "no cache: %d: %s" % (p.returncode, p.stderr))
    p = subprocess.run([DPTRAIN, "bench", *map(str, flags), "--cache", folder], env=environment(KEY), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       universal_newlines=True, timeout=60)
    check(p.returncode == 0, "one machine: %d: %s" % (p.returncode, p.stderr))
    store.blocks()


def main():
    with stored() as (folder, store, total, n_blocks):
        each_block_once(os.path.join(folder, "once"), store, total, n_blocks)
        small_caches(os.path.join(folder, "small"), store, total, n_blocks)
        refusals(folder, store)
    finish("shared cache")


main()
