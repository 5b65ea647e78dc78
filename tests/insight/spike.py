# SPDX-License-Identifier: Apache-2.0
"""A loss spike names the samples that caused it: a picture in the wrong class folder, by its file, on one rank, on
two, with several micro-batches per step and through a pipeline; a sample of a text, by its position. Calm runs name
nothing."""
import sys
sys.dont_write_bytecode = True
import os
import random
import re
import struct
import zlib
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import BUILD, Folder, check, dptrain, fast, finish

SIZE, EACH = 12, 60
ALERT = re.compile(r"loss spike at step (\d+): \S+, usually \S+; its largest losses: (.*)")
SAMPLE = re.compile(r"sample (\d+)(?: \(([^)]*)\))?: loss ([\d.e+-]+)")
LAYOUTS = [[], ["--nproc-per-node", 2], ["--grad-accum-steps", 2], ["--nproc-per-node", 2, "--strategy", "fsdp"],
           ["--nproc-per-node", 2, "--strategy", "pdp", "--microbatches", 2]]


def images_built():
    with open(os.path.join(BUILD, "config.log"), encoding="utf-8", errors="replace") as f:
        return "HAVE_IMAGES_TRUE=''\n" in f.read()


def png(path, across, draw):
    """A PNG that is bright in its upper half, or in its left half."""
    rows = b"".join(b"\0" + bytes(draw.randrange(60) + (160 if (y if across else x) < SIZE // 2 else 20) for x in range(SIZE) for _ in range(3))
                    for y in range(SIZE))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIZE, SIZE, 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def pictures(folder, wrong):
    """Two classes; with `wrong`, a picture bright in its upper half is among those bright on the left."""
    draw = random.Random(3)
    for name in ("above", "left"):
        os.makedirs(os.path.join(folder, "train", name))
        for i in range(EACH):
            png(os.path.join(folder, "train", name, "%02d.png" % i), name == "above", draw)
    if wrong:
        png(os.path.join(folder, "train", "left", "odd.png"), True, draw)
    return folder


def alerts(what, *flags):
    """Returns [(step, [(number, place, loss)])] of a run."""
    p = dptrain(*flags, *fast(), "--report-to", "none", "--lr-scheduler", "constant")
    check(p.returncode == 0, "%s: exit %d: %s" % (what, p.returncode, p.stderr[-600:]))
    return [(int(step), [(int(n), where, float(loss)) for n, where, loss in SAMPLE.findall(text)])
            for step, text in ALERT.findall(p.stderr)]


def of_pictures(tmp):
    odd, calm = pictures(os.path.join(tmp, "odd"), True), pictures(os.path.join(tmp, "calm"), False)
    base, weights = ["--model", "resnet20", "--image-size", SIZE, "--augment", "none", "-j", 1, "--val-split", 0], os.path.join(tmp, "weights")
    learnt = dptrain(*base, "--data-path", calm, "-b", 24, "--epochs", 12, "--lr", 0.05, "--save-weights", weights, "--runs-dir",
                     os.path.join(tmp, "first"), *fast())
    check(learnt.returncode == 0, "the first run: %s" % learnt.stderr[-600:])
    base += ["--init-from", weights, "--lr", 0, "--epochs", 6, "--global-batch-size", 12]
    for k, layout in enumerate(LAYOUTS):
        said = alerts(layout, *base, "--data-path", odd, "--runs-dir", os.path.join(tmp, "runs%d" % k), *layout)
        check(any(samples[0][1] == "train/left/odd.png" for _, samples in said), "%s: the odd picture in %s" % (layout, said))
        check(all(1 <= len(s) <= 5 and [x[2] for x in s] == sorted((x[2] for x in s), reverse=True) for _, s in said),
              "%s: at most five, largest first: %s" % (layout, said))
    said = alerts("calm", *base, "--global-batch-size", 60, "--epochs", 30, "--data-path", calm, "--runs-dir", os.path.join(tmp, "calm-runs"))
    check(not said, "calm pictures: %s" % said)


def text(folder, odd):
    os.makedirs(folder)
    whole = "abcdefghijklmnop" * 200
    with open(os.path.join(folder, "a.txt"), "w", encoding="ascii") as f:
        f.write(whole[:16 * odd] + "pnlkjzzqwxyhgfda" + whole[16 * odd + 16:] if odd else whole)
    return folder


def of_words(tmp):
    base = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--tokenizer", "bytes", "--val-split", 0,
            "--wd", 0, "-j", 1, "--opt", "adamw"]
    weights = os.path.join(tmp, "words")
    learnt = dptrain(*base, "--data-path", text(os.path.join(tmp, "plain"), 0), "-b", 20, "--epochs", 12, "--lr", 0.01, "--save-weights", weights,
                     "--runs-dir", os.path.join(tmp, "words-first"), *fast())
    check(learnt.returncode == 0, "the first run on words: %s" % learnt.stderr[-600:])
    said = alerts("words", *base, "--data-path", text(os.path.join(tmp, "odd-text"), 77), "--init-from", weights, "--lr", 0, "-b", 8,
                  "--epochs", 3, "--runs-dir", os.path.join(tmp, "words-runs"))
    check(any(samples[0][:2] == (77, "train.tokens: from token 1232 on") for _, samples in said), "the odd words: %s" % said)


def main():
    with Folder() as tmp:
        if images_built():
            of_pictures(tmp)
        else:
            print("spike: this build reads no pictures: texts only")
        of_words(tmp)
    finish("spike")


main()
