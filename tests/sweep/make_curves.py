# SPDX-License-Identifier: Apache-2.0
"""make_curves.py: regenerates curves.json next to this script: the correct answers after each of 27 epochs of 200
settings of a network of two layers on Fashion-MNIST (Debian: dataset-fashion-mnist), with pictures averaged to 8 x 8,
4000 for training and 5000 for evaluation; SGD with momentum, the learning rate follows a cosine. Takes a minute or
two, with NumPy (curves.json was made with 2.4.6)."""
import gzip
import json
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
FASHION = "/usr/share/datasets/fashion-mnist"
SETTINGS, EPOCHS, CLASSES = 200, 27, 10
COUNTS = {"train": 4000, "t10k": 5000}


def load(part):
    """Pictures as rows of 64 numbers around 0, and labels."""
    n = COUNTS[part]
    with gzip.open(f"{FASHION}/{part}-images-idx3-ubyte.gz") as f:
        pixels = np.frombuffer(f.read()[16:16 + n * 784], np.uint8).reshape(n, 28, 28)[:, 2:26, 2:26]
    with gzip.open(f"{FASHION}/{part}-labels-idx1-ubyte.gz") as f:
        labels = np.frombuffer(f.read()[8:8 + n], np.uint8)
    return (pixels.reshape(n, 8, 3, 8, 3).mean((2, 4)).reshape(n, 64) / 255 - 0.3).astype(np.float32), labels


def draw(r):
    return {"lr": 10 ** r.uniform(-3.5, 0.5), "momentum": r.choice([0, 0.5, 0.9, 0.97]), "wd": 10 ** r.uniform(-5, -2),
            "batch": int(r.choice([16, 32, 64, 128])), "width": int(r.choice([8, 16, 32, 64, 128])), "smooth": r.choice([0, 0.1])}


def forward(weights, x):
    hidden = np.maximum(x @ weights[0] + weights[1], 0)
    return hidden, hidden @ weights[2] + weights[3]


def gradients(weights, x, y, smooth):
    hidden, out = forward(weights, x)
    e = np.exp(out - out.max(1, keepdims=True))
    e /= e.sum(1, keepdims=True)
    e -= smooth / CLASSES
    e[np.arange(len(y)), y] -= 1 - smooth
    e /= len(y)
    back = (e @ weights[2].T) * (hidden > 0)
    return [x.T @ back, back.sum(0), hidden.T @ e, e.sum(0)]


def curve(s, r, train, judged):
    """The number of correct answers after each epoch."""
    x, y = train
    weights = [w.astype(np.float32) for w in (r.normal(0, 0.18, (64, s["width"])), np.zeros(s["width"]),
                                              r.normal(0, (1 / s["width"]) ** 0.5, (s["width"], CLASSES)), np.zeros(CLASSES))]
    speed = [np.zeros_like(w) for w in weights]
    steps, step, right = -(-len(y) // s["batch"]), 0, []
    for _ in range(EPOCHS):
        order = r.permutation(len(y))
        for at in range(0, len(y), s["batch"]):
            lr = np.float32(s["lr"] * (1 + np.cos(np.pi * step / (steps * EPOCHS))) / 2)
            rows, step = order[at:at + s["batch"]], step + 1
            for w, v, g in zip(weights, speed, gradients(weights, x[rows], y[rows], s["smooth"])):
                v *= np.float32(s["momentum"])
                v += g + np.float32(s["wd"]) * w
                w -= lr * v
        right.append(int((forward(weights, judged[0])[1].argmax(1) == judged[1]).sum()))
    return right


def main():
    train, judged = load("train"), load("t10k")
    rows = []
    with np.errstate(all="ignore"):  # some settings diverge
        for number in range(SETTINGS):
            r = np.random.default_rng(number)
            rows.append(json.dumps(curve(draw(r), r, train, judged), separators=(",", ":")))
    with open(os.path.join(HERE, "curves.json"), "w", encoding="ascii") as f:
        f.write('{"judged_by": %d, "right": [\n%s]}\n' % (COUNTS["t10k"], ",\n".join(rows)))


main()
