# SPDX-License-Identifier: Apache-2.0
"""The peers of tests/bench/storage/formats: pictures read by each format's own Python library and processed as by
dptrain: RandomResizedCrop, flip and normalisation to f32 of 224 x 224 (Pillow, NumPy); npy: normalised only.

usage: formats_peer.py KIND ADDRESS PROCESSES [CACHE]
ADDRESS: the set's folder, or its address on a server. CACHE: a folder; the second pass is then measured. Each process
delivers its part of the shards, or of the samples. Prints images per second of all, or "-" and why there is no such
reader."""
import http.client
import importlib
import importlib.util
import io
import itertools
import math
import multiprocessing
import os
import random
import sys
import time
import urllib.parse
import urllib.request

import numpy
from PIL import Image

PARQUET = "datasets" if importlib.util.find_spec("datasets") else "pyarrow.parquet"
LIBRARIES = {"folder": [], "tar": ["webdataset"], "npy": ["webdataset"], "lmdb": ["lmdb"], "tfrecord": ["tfrecord.reader"], "parquet": [PARQUET]}
MEAN, STD = numpy.array([0.485, 0.456, 0.406], "f4"), numpy.array([0.229, 0.224, 0.225], "f4")


def box(width, height):
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    return 0, 0, width, height


def normalised(pixels):
    return (numpy.asarray(pixels, "f4") / 255 - MEAN) / STD


def deliver(kind, data):
    if kind == "npy":
        return normalised(numpy.load(io.BytesIO(data)))
    image = Image.open(io.BytesIO(data)).convert("RGB")
    x, y, w, h = box(*image.size)
    image = image.crop((x, y, x + w, y + h)).resize((224, 224), Image.Resampling.BILINEAR)
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return normalised(image)


class Set:
    """One process's part of a set: number `part` of `parts`."""
    def __init__(self, kind, address, cache, part, parts):
        self.kind, self.address, self.cache, self.part, self.parts = kind, address, cache, part, parts
        self.remote, self.rows = "://" in address, None

    def names(self):
        """The set's files, relative to its address; a server lists them in files.txt."""
        if self.remote:
            with urllib.request.urlopen(self.address + "/files.txt") as reply:
                return [line.split(" ", 1)[1] for line in reply.read().decode().splitlines()]
        return sorted(os.path.relpath(os.path.join(d, f), self.address) for d, _, names in os.walk(self.address) for f in names)

    def files(self, end):
        """The files of this part."""
        return ["%s/%s" % (self.address, n) for n in self.names() if n.startswith("train") and n.endswith(end)][self.part::self.parts]

    def every(self, samples):
        """The samples of this part, for a container that cannot be opened in parts."""
        return itertools.islice(samples, self.part, None, self.parts)

    def folder(self):
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.address).netloc) if self.remote else None
        for name in self.files(".jpg"):
            if not connection:
                with open(name, "rb") as f:
                    yield f.read()
                continue
            connection.request("GET", urllib.parse.urlsplit(name).path)
            yield connection.getresponse().read()

    def tar(self):
        import webdataset
        files = self.files(".tar")
        more = {"cache_dir": self.cache} if self.cache else {}
        for sample in webdataset.WebDataset(files, shardshuffle=False, empty_check=False, **more) if files else ():
            yield sample["npy" if self.kind == "npy" else "jpg"]

    npy = tar

    def lmdb(self):
        import lmdb
        with lmdb.open(self.address, readonly=True, lock=False).begin() as txn:
            keys = [key for key in txn.cursor().iternext(values=False) if key.endswith(b".jpg")]
            for key in self.every(keys):
                yield txn.get(key)

    def tfrecord(self):
        from tfrecord.reader import tfrecord_loader
        shape = {"image/encoded": "byte", "image/class/label": "int"}
        for example in self.every(tfrecord_loader(os.path.join(self.address, "train.tfrecord"), None, shape)):
            yield bytes(example["image/encoded"])

    def parquet(self):
        if PARQUET != "datasets":
            yield from self.pyarrow()
            return
        import datasets
        files = self.files(".parquet")
        if files and not self.rows:
            datasets.disable_progress_bars()
            more = {"cache_dir": self.cache} if self.cache else {"streaming": True}
            self.rows = datasets.load_dataset("parquet", data_files=files, split="train", **more)
        for row in self.rows or ():
            yield row["image"]["bytes"]

    def pyarrow(self):
        import pyarrow.parquet
        for name in self.files(".parquet"):
            for batch in pyarrow.parquet.ParquetFile(name).iter_batches(256):
                for row in batch.column("image").to_pylist():
                    yield row["bytes"]


def why_not(kind, address, cache):
    if "://" not in address:
        return None
    if kind in ("lmdb", "tfrecord") or (kind == "parquet" and PARQUET != "datasets"):
        return "its Python library reads local files only"
    return "reads single files without a cache" if cache and kind == "folder" else None


def deliver_all(part):
    """Returns the number of images, and the start and end of their delivery."""
    start = time.monotonic()
    n = sum(deliver(part.kind, data).shape[2] == 3 for data in getattr(part, part.kind)())
    return n, start, time.monotonic()


def run(part, together, said):
    """One process. All start at the same time, once libraries are loaded and the cache is filled."""
    try:
        for name in LIBRARIES[part.kind]:
            importlib.import_module(name)
        if part.cache:
            deliver_all(part)
    except BaseException:
        together.abort()  # the others wait for it
        raise
    together.wait()
    said.put(deliver_all(part))


def main():
    kind, address, processes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    cache = sys.argv[4] if len(sys.argv) > 4 else None
    reason = why_not(kind, address, cache)
    if reason:
        print("- " + reason)
        return
    fork = multiprocessing.get_context("fork")
    together, said = fork.Barrier(processes), fork.SimpleQueue()
    running = [fork.Process(target=run, args=(Set(kind, address, cache, i, processes), together, said)) for i in range(processes)]
    for process in running:
        process.start()
    for process in running:
        process.join()
    if any(process.exitcode for process in running):
        sys.exit(1)
    done = [said.get() for _ in running]
    print(sum(n for n, _, _ in done) / (max(end for _, _, end in done) - min(start for _, start, _ in done)))


if __name__ == "__main__":
    main()
