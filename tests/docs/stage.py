# SPDX-License-Identifier: Apache-2.0
"""What the guides presuppose: small data sets of each format, logs of other programs, and servers of remote data."""
import os
import shutil
import struct
import subprocess
import sys
import zlib

SRC = os.path.abspath(os.environ.get("srcdir", "."))
sys.path[:0] = [os.path.join(SRC, "tests", folder) for folder in ("train", "data", "tracker")]
import gcsserver  # noqa: E402
import helper  # noqa: E402
import objectserver  # noqa: E402
import s3server  # noqa: E402

FORMATS = os.path.join(SRC, "tests", "data", "formats")
CLASSES = ["bag", "boot", "coat", "dress", "pullover", "sandal", "shirt", "sneaker", "top", "trouser"]
_running = []


def png(size, shade):
    """A grey PNG file of one shade with a frame."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + bytes(0 if y in (0, size - 1) else shade for _ in range(size)) for y in range(size))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def make_images(folder):
    for split, count in (("train", 6), ("val", 2)):
        for label, name in enumerate(CLASSES):
            os.makedirs(f"{folder}/{split}/{name}")
            for i in range(count):
                with open(f"{folder}/{split}/{name}/{i:05d}.png", "wb") as f:
                    f.write(png(28, 20 * label + 3 * i + 10))


def make_texts(folder):
    os.makedirs(folder)
    for name in ("README.md", "ARCHITECTURE.md"):
        shutil.copy(os.path.join(SRC, name), os.path.join(folder, name[:-3].lower() + ".txt"))


def copy(folder, name, path):
    os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
    shutil.copy(os.path.join(FORMATS, name), f"{folder}/{path}")


def make_foreign(folder):
    """Logs of other programs, by the folders that guides call them by."""
    shutil.copytree(os.path.join(SRC, "tests", "whole", "foreign", "runs"), f"{folder}/tensorboard-logs")
    shutil.copytree(os.path.join(SRC, "tests", "cli", "import", "mlruns"), f"{folder}/mlruns")
    shutil.copytree(os.path.join(SRC, "tests", "cli", "import", "wandb"), f"{folder}/wandb")


def make(folder, script, small):
    """Makes the sets in a folder; `data` with 96 images, or 512 if not `small`; others only where the script names them."""
    os.makedirs(f"{folder}/data")
    helper.make_set(f"{folder}/data", *((96, 32, 12) if small else (512, 64, 28)))
    if "images" in script or "shards" in script:
        make_images(f"{folder}/images")
    make_texts(f"{folder}/texts")
    copy(folder, "entries.mdb", "lmdb/data.mdb")
    copy(folder, "zstd.parquet", "parquet/train-00000-of-00001.parquet")
    copy(folder, "file.arrow", "arrow/file.arrow")
    copy(folder, "labels.parquet", "labels.parquet")
    make_foreign(folder)
    if "before-upgrade" in script:
        os.makedirs(f"{folder}/runs")


def servers(folder, script):
    """Starts a web server of `folder` and a store with the bucket `bucket` where the script needs them; returns variables for it."""
    if "s3://bucket" not in script and "gs://bucket" not in script:
        return {}
    subprocess.run([helper.DPTRAIN, "shard", "--data-path", f"{folder}/images", "--out", f"{folder}/shards"], check=True, stdout=subprocess.DEVNULL)
    os.makedirs(f"{folder}/s3")
    os.symlink("..", f"{folder}/s3/bucket")
    web, store = objectserver.Server(folder), s3server.S3(f"{folder}/s3")
    _running.extend([web, store])
    if "gs://bucket" in script:
        google = gcsserver.GCS(f"{folder}/s3")
        _running.append(google)
        google.key_file(f"{folder}/key.json")
        return {"STORAGE_EMULATOR_HOST": google.url, "no_proxy": "*"}
    wanted = ("AWS_", "no_proxy")
    return {"WEB": web.url, **{k: v for k, v in store.environment().items() if k.startswith(wanted)}}


def end():
    while _running:
        _running.pop().shutdown()
