#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--cache-shared, two ranks on each of two or three nodes: by the store's count each block is fetched once; a second job
fetches nothing, whatever the order of the nodes; caches that together hold the set push out copies, not blocks; smaller
ones, which hold half of the set or less, fetch again, and the job counts the bytes as the store does."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "train"), os.path.join(HERE, "..", "data")]

from helper import DPTRAIN, check, environment, finish
from jobs import ended
from shared_jobs import KEY, SAMPLES, launch, stored


def bench(name, folder, store, *flags, nodes=2):
    """Times the loader for two passes; returns the sums of both passes, and all output."""
    job = launch(folder, "--loader", "--cache-shared", "--data-path", store.url + "/train.json", "--image-size", 16, "-b", 8, "--val-split", 0, "--json",
                 "--epochs", 2, *flags, command=["bench"], nodes=nodes)
    codes, texts = ended(name, job)
    if not check(codes == [0] * nodes, "%s: exit codes %s: %s" % (name, codes, texts)):
        return {}, texts
    passes = json.loads(texts[0][:texts[0].rindex("}") + 1])["passes"]
    check(all(p["samples"] == SAMPLES for p in passes), "%s: every sample is delivered: %s" % (name, passes))
    return {k: sum(p[k] for p in passes) for k in passes[0]}, texts


def each_block_once(folder, store, total, n_blocks, nodes):
    name = "once on %d nodes" % nodes
    said, texts = bench(name, folder, store, nodes=nodes)
    blocks = store.blocks()
    check(len(blocks) == len(set(blocks)) == n_blocks, "%s: %d requests for %d of %d blocks" % (name, len(blocks), len(set(blocks)), n_blocks))
    check(said.get("peer_failures") == said.get("refetched_bytes") == 0 and said.get("remote_bytes") == total, "%s: the job counts it: %s" % (name, said))
    # of the blocks that a node reads, the others own (1 - 1/nodes)
    check(said.get("peer_bytes", 0) > (1 - 1 / nodes) * total / 2, "%s: the nodes served each other: %s" % (name, said))
    check("--cache-shared: %d machines, %d caches" % (nodes, nodes) in "".join(texts), "%s: the first rank says who shares: %s" % (name, texts))
    for turn in ("again", "nodes in the other order"):
        said, texts = bench(turn, folder, store, nodes=nodes)
        check(not store.blocks() and said.get("remote_bytes") == 0, "%s, %s: nothing is fetched: %s, %s" % (name, turn, said, texts))
        caches = [os.path.join(folder, "cache%d" % i) for i in range(nodes)]
        for old, new in zip(caches, [*(c + "-" for c in caches[1:]), caches[0] + "-"]):
            os.rename(old, new)
        for c in caches:
            os.rename(c + "-", c)


def held_bytes(folder, nodes):
    return [sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(os.path.join(folder, "cache%d" % i)) for f in files if f != "lock") for i in range(nodes)]


def small_caches(folder, store, total, n_blocks, nodes, part):
    """Two jobs of two passes on caches of that part of the set each. Where they hold it with room to spare, a node's own
    blocks push out the copies. Otherwise a job fetches at least what they do not hold when it begins: its processes have
    nothing in memory then. No cache exceeds its limit, though two ranks fill it."""
    name, where, known = "%d caches of %.2f" % (nodes, part), "%s-%d-%d" % (folder, nodes, 100 * part), set()
    for turn in range(2):
        lacks = total - sum(held_bytes(where, nodes))
        said, texts = bench(name, where, store, "--cache-size", int(part * total), nodes=nodes)
        blocks = store.blocks()
        counted = sum(store.size(*b) for b in blocks)
        again = counted - sum(store.size(*b) for b in set(blocks) - known)
        known |= set(blocks)
        check(said.get("peer_failures") == 0, "%s: %s, %s" % (name, said, texts))
        check(said.get("remote_bytes") == counted, "%s, job %d: the store sent %d, the job says %s" % (name, turn, counted, said))
        check(said.get("refetched_bytes") == again, "%s, job %d: the store sent %d again, the job says %s" % (name, turn, again, said))
        if part >= 0.7:  # more than any node owns: a half or a third of some 50 blocks, more or less
            check(len(blocks) == (0 if turn else n_blocks), "%s, job %d: %d blocks fetched" % (name, turn, len(blocks)))
        else:
            check(lacks <= counted <= 2 * total, "%s, job %d: %d of %d bytes fetched, not %d to twice the set" % (name, turn, counted, total, lacks))
    held = held_bytes(where, nodes)
    check(all(h <= part * total for h in held), "%s: they hold %s" % (name, held))


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
        for nodes in (2, 3):
            each_block_once(os.path.join(folder, "once%d" % nodes), store, total, n_blocks, nodes)
        for nodes, part in ((2, 0.8), (2, 0.5), (2, 0.25), (2, 0.2), (3, 0.7), (3, 1 / 6)):
            small_caches(os.path.join(folder, "small"), store, total, n_blocks, nodes, part)
        refusals(folder, store)
    finish("shared cache")


main()
