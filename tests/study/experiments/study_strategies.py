# SPDX-License-Identifier: Apache-2.0
"""Seconds of an epoch for each strategy and place of the data (articles 1, 3 and 5; four T4 there). A core stands for a GPU:
"single" is one rank on one core, the others use two. "cloud folder" is an object store with one request a picture, shaped to
the article's ratios: one rank needs 804/489 of its time on local files, and the store serves no more requests than 489/432
of that rank's local rate. "cloud shards" are the same pictures in tar shards on the same store. Two cores show ratios of the
places and the order of the strategies, not the article's gain of four GPUs; the store's process shares the cores."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "storage"))
import noisy
import objectserver
import stores
from record import DPTRAIN, mean_of

PLACES = ["local folder", "cloud folder", "cloud shards"]
WAYS = {"single": ["-b", 32, "--threads", 1], "DP": ["-b", 32, "--strategy", "dp", "--dp-devices", 2, "--threads", 2],
        "DDP": ["-b", 16, "--strategy", "ddp", "--nproc-per-node", 2, "--threads", 1],
        "FSDP": ["-b", 16, "--strategy", "fsdp", "--nproc-per-node", 2, "--threads", 1]}
ARTICLE = {("single", PLACES[0]): 489, ("single", PLACES[1]): 804, ("DP", PLACES[0]): 157, ("DP", PLACES[1]): 738, ("DDP", PLACES[0]): 134,
           ("DDP", PLACES[1]): 432, ("DDP", PLACES[2]): 133}
CAP = 432 / 489 # of one rank's local time: the store's fastest epoch


class Places:
    def __init__(self, s, count):
        self.folder, served = os.path.join(s.work, "data", "pictures"), os.path.join(s.work, "data", "served")
        noisy.folder(self.folder, {"train": count, "val": 8})
        os.makedirs(served)
        os.symlink(self.folder, os.path.join(served, "pictures"))
        subprocess.run([DPTRAIN, "shard", "--data-path", self.folder, "--out", os.path.join(served, "shards"), "--shard-size", "1MiB"], check=True,
                       stdout=subprocess.DEVNULL)
        with open(os.path.join(self.folder, "files.txt"), "w", encoding="utf-8") as f:
            for d, _, names in os.walk(self.folder):
                for path in (os.path.join(d, name) for name in sorted(names) if name.endswith(".png")):
                    f.write("%d %s\n" % (os.path.getsize(path), os.path.relpath(path, self.folder)))
        self.server = objectserver.Server(served)
        self.proxy, self.count = stores.Proxy(self.server.url, 20, 100), count

    def shape(self, latency, requests):
        self.proxy.ask("/-/shape", latency=latency, requests=requests)

    def address(self, place):
        return {PLACES[0]: self.folder, PLACES[1]: self.proxy.url + "/pictures/files.txt", PLACES[2]: self.proxy.url + "/shards/train.json"}[place]

    def end(self):
        self.proxy.end()
        self.server.shutdown()


def epoch(s, p, way, place, label):
    """Seconds of the first epoch: after it, memory holds a set of this size."""
    flags = ["--model", "resnet20", "--image-size", 32, "--data-path", p.address(place), "--epochs", 1, "-j", 1, "--shuffle", "window",
             "--lr", 0.05]
    run = s.train(label, *flags, *WAYS[way], env={"no_proxy": "*"})
    return (mean_of(run, "epoch/seconds"), run["id"]) if run else (None, None)


def fit(s, p):
    """Shapes the store by the time of one rank; returns what was set."""
    local, _ = epoch(s, p, "single", PLACES[0], "fit: local")
    if not local:
        return None
    latency, wanted, hidden = 20.0, local * 804 / 489, None
    for turn in range(1 if s.quick else 10):
        p.shape(latency, 0)
        got, _ = epoch(s, p, "single", PLACES[1], "fit: cloud, %.0f ms" % latency)
        if not got:
            return None
        if 0.93 < got / wanted < 1.07:
            break
        if got < 1.2 * local: # reading ahead hides this latency
            hidden, latency = latency, 2 * latency
        else:
            latency = max(0.5, latency * wanted / got)
    s.notes.append("One rank needs %.2f of its local time on the store (article: 1.64)." % (got / local)
                   + (" Reading ahead hides a latency of %.0f ms." % hidden if hidden else ""))
    requests = p.count / (CAP * local)
    p.shape(latency, requests)
    return "store: latency %.1f ms, at most %.0f requests/s" % (latency, requests)


def facts(s, t):
    local, cloud, shards = PLACES
    for finding, a, b, expected, words in (
            ("sharding removes the remote penalty", ("DDP", shards), ("DDP", local), (0, 1.15), "DDP on cloud shards: %.2f of its local time (133/134 = 0.99)"),
            ("DDP beats DP", ("DDP", local), ("DP", local), (0, 1), "DDP: %.2f of DP's local time (134/157 = 0.85)"),
            ("FSDP is near DDP on small models", ("FSDP", local), ("DDP", local), (0.7, 1.25), "FSDP: %.2f of DDP's local time"),
            ("6 times from one GPU on the cloud folder to DDP on shards", ("single", cloud), ("DDP", shards), (2, 1e9),
             "%.2f times on two cores, of which 2 is expected (804/133 = 6.0 on four GPUs)")):
        s.compare(finding, (t.cells.get(a), t.cells.get(b)), expected, words)


def measure(s):
    count, repeats = (96, 1) if s.quick else (1800, 12) if s.short else (9600, 8)
    p = Places(s, count)
    t = s.table("epoch", "seconds", PLACES, base=("single", PLACES[0]), article=ARTICLE)
    s.metrics = ["epoch/seconds", "epoch/samples_per_s"]
    try:
        said = fit(s, p)
        cells = [(way, place) for place in PLACES for way in WAYS] if said else []

        def one(cell, turn):
            value, run = epoch(s, p, *cell, "%s, %s, %d" % (*cell, turn + 1))
            t.add(*cell, value, run)
        s.turns(cells, repeats, one)
    finally:
        p.end()
    s.notes.append("%d pictures of 24 KB, ResNet-20 at 32 px, global batch 32, the first epoch of each run, because later ones find the set in memory; %s. DP keeps its gradients on one device "
                   "and FSDP shards them; the article says that FSDP is similar to DDP, without a number." % (count, said or "the store was not fitted"))
    facts(s, t)
