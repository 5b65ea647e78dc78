#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong flags and damaged files given to the real program: one line on stderr that names the mistake, exit code 2,
nothing recorded."""
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

DPTRAIN = os.path.join(os.environ.get("builddir", "."), "dptrain")
failures = []
runs = 0


def run(args, words, cwd, recorded=False, warnings=(), whole=False):
    """warnings: the ends of the lines before the error. whole: its line ends with the words."""
    global runs
    runs += 1
    done = subprocess.run([DPTRAIN, *args], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    lines = done.stderr.splitlines()
    warned = sorted(line.split(": warning: ")[-1] for line in lines[:-1])
    if done.returncode != 2 or not lines or warned != sorted(warnings) or words not in lines[-1] or \
            (whole and not lines[-1].endswith(words)) or (done.stdout and not recorded):
        failures.append(f"dptrain {' '.join(args)}\n  exit {done.returncode}, expected 2 and '{words}'\n"
                        f"  stdout: {done.stdout!r}\n  stderr: {done.stderr!r}")
    if recorded:
        shutil.rmtree(os.path.join(cwd, "runs"))
    elif os.path.exists(os.path.join(cwd, "runs")):
        failures.append(f"dptrain {' '.join(args)} recorded a run")
        shutil.rmtree(os.path.join(cwd, "runs"))


def idx(dims, data):
    return struct.pack(">HBB", 0, 8, len(dims)) + struct.pack(f">{len(dims)}I", *dims) + bytes(data)


def make_set(folder, **replaced):
    files = {
        "train-images-idx3-ubyte": idx([12, 28, 28], [i % 251 for i in range(12 * 784)]),
        "train-labels-idx1-ubyte": idx([12], [i % 3 for i in range(12)]),
        "t10k-images-idx3-ubyte": idx([4, 28, 28], [i % 241 for i in range(4 * 784)]),
        "t10k-labels-idx1-ubyte": idx([4], [i % 3 for i in range(4)]),
    }
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    for name, data in files.items():
        key = name.split("-idx")[0].replace("-", "_")
        data = replaced.get(key, data)
        if data is not None:
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)


def tensors(path, header, data=b""):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def flags(cwd):
    base = ["--data-path", "set", "--model", "resnet20", "--backend", "ref", "--max-steps", "1", "-b", "4"]
    run([*base, "--lrr", "1"], "did you mean --lr?", cwd)
    run([*base, "--model", "resnet21"], "resnet20", cwd)
    run([*base, "-b", "0"], "from 1 to", cwd)
    run([*base, "--model-ema", "--model-ema-decay", "1"], "from 0 to 0.9999999", cwd, whole=True)
    run([*base, "--seed", "-1"], "from 0 to 9007199254740992", cwd, whole=True)
    run(["plan", "--auto", "--catalogue", "--synthetic", "--tokens", "1e9"], "from 1 to 1000000000000000000", cwd, whole=True)
    run([*base, "--epochs"], "--epochs needs a value", cwd)
    run([*base, "--resume", "auto"], "add --run-name", cwd)
    run([*base, "--strategy", "zero"], "expected one of: single dp ddp fsdp pdp", cwd)
    run([*base, "--nproc-per-node", "2", "--strategy", "single"], "needs one rank", cwd)
    run([*base, "--global-batch-size", "9", "-b", "2", "--grad-accum-steps", "2"], "contradicts", cwd)
    run([*base, "--synthetic"], "contradict", cwd)
    run([*base, "--classes", "2"], "must be below 2 classes", cwd)
    run([*base, "--image-size", "32"], "--image-size 32", cwd)
    run([*base, "--in-channels", "3"], "--in-channels 3", cwd)
    run([*base, "--precision", "bf16"], "--precision", cwd)
    run(["trian"], "did you mean train?", cwd)
    run([], "--data-path DIR is required", cwd)
    run(["bench", "--data-path", "set"], "needs --loader", cwd)
    with open(os.path.join(cwd, "bad.json"), "w", encoding="utf-8") as f:
        f.write('{"lr": 0.1,\n "momentun": 0.9}\n')
    run([*base, "--config", "bad.json"], "bad.json: unknown key 'momentun'; did you mean 'momentum'?", cwd)
    run([*base, "--config", "absent.json"], "absent.json: No such file", cwd)


def sets(cwd):
    def check(words, ranks="1", **replaced):
        make_set(os.path.join(cwd, "bad"), **replaced)
        run(["--data-path", "bad", "--model", "resnet20", "--backend", "ref", "--max-steps", "1", "--nproc-per-node", ranks],
            words, cwd)

    images = idx([12, 28, 28], bytes(12 * 784))
    run(["--data-path", "absent", "--model", "resnet20"], "absent: No such file", cwd)
    run(["--data-path", "bad.json", "--model", "resnet20"], "is neither a folder", cwd)
    os.mkdir(os.path.join(cwd, "empty"))
    run(["--data-path", "empty", "--model", "resnet20"], "no data set recognised", cwd)
    check("truncated", train_images=images[:-1])
    check("truncated", ranks="2", train_images=images[:-1])
    check("too long", train_images=images + b"x")
    check("13 labels, but train-images-idx3-ubyte has 12 images", train_labels=idx([13], bytes(13)))
    check("13 labels", ranks="2", train_labels=idx([13], bytes(13)))
    check("images of 28 x 27 x 1", t10k_images=idx([4, 28, 27], bytes(4 * 28 * 27)))
    check("its header states", train_images=idx([2**32 - 1, 28, 28], bytes(784)))
    check("gzip", train_images=gzip.compress(images)[:-3])
    check("damaged gzip data", train_images=gzip.compress(images)[:-8] + bytes(8))
    check("more than", train_images=gzip.compress(idx([2**31, 2**15, 2**14], bytes(100))))
    check("exceed the address space", train_images=idx([2**32 - 1, 2**32 - 1, 2**32 - 1], bytes(100)))
    check("elements of type 0x0d", train_images=b"\0\0\x0d\x03" + images[4:])
    check("no file of training labels", train_labels=None)
    make_set(os.path.join(cwd, "bad"), train_labels=idx([12], bytes(12)), t10k_labels=idx([4], bytes(4)))
    run(["--data-path", "bad", "--model", "resnet20", "--backend", "ref", "-b", "4"], "all samples have one class", cwd)


def png_header(width, height):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", b"x")


def images_built():
    """Whether this build reads JPEG and PNG."""
    with open(os.path.join(os.environ.get("builddir", "."), "config.log"), encoding="utf-8", errors="replace") as f:
        return "HAVE_IMAGES_TRUE=''\n" in f.read()


def image_folders(cwd):
    base = ["--data-path", "photos", "--model", "resnet20", "--image-size", "16", "--max-steps", "1", "-b", "2", "--backend", "ref"]
    pictures = os.path.join(os.environ.get("srcdir", "."), "tests", "data", "pictures")

    def fresh(**files):
        shutil.rmtree(os.path.join(cwd, "photos"), ignore_errors=True)
        for name, source in {"train/a/1.jpg": "photo.jpg", "train/b/1.png": "noise.png", "val/a/1.jpg": "plain.jpg",
                             "val/b/1.png": "grey.png"}.items():
            os.makedirs(os.path.dirname(os.path.join(cwd, "photos", name)), exist_ok=True)
            shutil.copyfile(os.path.join(pictures, source), os.path.join(cwd, "photos", name))
        return os.path.join(cwd, "photos", "train", "a", "1.jpg")

    fresh()
    os.mkdir(os.path.join(cwd, "photos/train/c"))
    run(base, "train/c: the class has no images", cwd)
    fresh()
    os.rename(os.path.join(cwd, "photos/val/b"), os.path.join(cwd, "photos/val/z"))
    run(base, "val/z: the class has no training images", cwd)
    first = fresh()
    os.remove(first)
    os.symlink("absent.jpg", first)
    run(base, "train/a: none of the 1 images can be read: No such file", cwd)
    fresh()
    shutil.rmtree(os.path.join(cwd, "photos/val"))
    run([*base, "--val-split", "1"], "no images to train on: lower --val-split", cwd)
    first = fresh()
    run([*base, "--classes", "1"], "2 class folders, more than --classes 1", cwd)
    run([*base, "--eval-resize", "8"], "--eval-resize 8: expected at least", cwd)
    run([*base, "--augment", "rrc", "--data-path", "set"], "--augment rrc: set has images of one size", cwd)
    with open(first, "r+b") as f:
        f.truncate(2000)
    run([*base, "--strict"], "train/a/1.jpg: damaged JPEG", cwd, recorded=True)
    with open(first, "wb") as f:
        f.write(png_header(30000, 30000))
    run([*base, "--strict"], "30000 x 30000 pixels", cwd, recorded=True)
    with open(os.path.join(cwd, "photos", "train", "b", "1.png"), "wb") as f:
        f.write(b"no picture")
    run(base, "no image can be read", cwd, recorded=True,
        warnings=["photos/train/b/1.png: is not a picture format that dptrain reads (.jpg .jpeg .png .webp .tif .bmp .ppm)",
                  "photos/train/a/1.jpg: 30000 x 30000 pixels: expected at most 134217728 in total"])
    fresh()
    names = [os.path.join("photos", "val", name) for name in ("a/1.jpg", "b/1.png")]
    for name in names:
        with open(os.path.join(cwd, name), "wb") as f:
            f.write(b"no picture")
    run(base, "photos: no evaluation image can be read", cwd, recorded=True,
        warnings=[name + ": is not a picture format that dptrain reads (.jpg .jpeg .png .webp .tif .bmp .ppm)" for name in names])


def weights(cwd):
    base = ["--data-path", "set", "--model", "resnet20", "--backend", "ref", "--max-steps", "1", "-b", "4",
            "--init-from", "w"]
    path = os.path.join(cwd, "w")
    run(base, "w: No such file", cwd)
    tensors(path, b"{", b"")
    run(base, "is not a safetensors file", cwd)
    tensors(path, {"fc.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}, bytes(23))
    run(base, "data_offsets are outside", cwd)
    tensors(path, {"fc.weight": {"dtype": "F32", "shape": [3, 64], "data_offsets": [0, 768]}}, bytes(768))
    run(base, "missing", cwd)
    run([*base, "--nproc-per-node", "2"], "missing", cwd)
    with open(path, "wb") as f:
        f.write(b"PK\3\4" + bytes(100))
    run(base, "convert it: python3", cwd)
    base = ["--model", "resnet20", "--backend", "ref", "--max-steps", "1", "--batch-from", "b"]
    tensors(os.path.join(cwd, "b"), {"images": {"dtype": "F32", "shape": [1, 1, 2, 2], "data_offsets": [0, 16]}}, bytes(16))
    run(base, "a tensor 'labels' of I64", cwd)


def main():
    with tempfile.TemporaryDirectory(prefix="bad_input.") as cwd:
        make_set(os.path.join(cwd, "set"))
        flags(cwd)
        sets(cwd)
        if images_built():
            image_folders(cwd)
        weights(cwd)
    for text in failures:
        print("FAIL:", text)
    print(f"bad_input: {runs} runs, {len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
